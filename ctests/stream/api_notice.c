/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Completion without waiting: functions that are called and eventfds that are raised when a run or an event is over.
 * Once each, with the right outcome, when it is over and not before, whatever the pool is and whatever is released
 * first.
 */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <weir/ops.h>
#include <weir/inspect.h>
#include <weir/testing.h>

#include "later.h"
#include "threads.h"

/* What a notice has heard. */
typedef struct ear {
    atomic_int calls, releases;
    atomic_int status;
    _Atomic(weir_run *) run;
    atomic_int done;          /* what the query said inside */
    _Atomic(uint64_t) thread; /* where */
    weir_event *event;        /* asked inside, if it is there */
    int again;                /* it is given to one run after the other */
    char text[256], node[128];
} ear;

static void hear(void *ctx, weir_status status, weir_run *run) {
    ear *e = ctx;
    weir_failure failure = {.struct_size = sizeof failure};
    int32_t done = -1;
    if (status != WEIR_OK) {
        snprintf(e->text, sizeof e->text, "%.255s", weir_last_error_message());
        CHECK_OK(weir_thread_get_failure(&failure));
        snprintf(e->node, sizeof e->node, "%s", failure.node);
    }
    if (run != NULL) {
        weir_failure of_run = {.struct_size = sizeof of_run};
        CHECK_OK(weir_run_query(run, &done));
        CHECK_EQ(weir_run_synchronize(run, 0), status);
        CHECK_OK(weir_run_get_failure(run, &of_run));
        CHECK_EQ(of_run.code, status);
    }
    if (e->event != NULL) CHECK_OK(weir_event_query(e->event, &done));
    if (!e->again) CHECK_EQ(atomic_load(&e->releases), 0);
    atomic_store(&e->done, done);
    atomic_store(&e->status, status);
    atomic_store(&e->run, run);
    atomic_store(&e->thread, this_thread());
    atomic_fetch_add(&e->calls, 1);
}

static void let_go(void *ctx) {
    ear *e = ctx;
    atomic_fetch_add(&e->releases, 1);
}

static weir_notice notice_of(ear *e) {
    const weir_notice notice = {.struct_size = sizeof notice, .notify = hear, .ctx = e, .release = let_go};
    return notice;
}

/* It was called once, and released once. */
static void check_heard(ear *e, weir_status status) {
    EVENTUALLY(atomic_load(&e->releases) == 1);
    CHECK_EQ(atomic_load(&e->calls), 1);
    CHECK_EQ(atomic_load(&e->status), status);
}

/* x -> "body" -> y, whose kernel does what it is told. */
typedef struct body {
    atomic_int hold, entered, fail_with;
} body;

static int32_t do_body(void *user, weir_kernel_context *context) {
    body *b = user;
    int32_t cancelled = 0;
    atomic_fetch_add(&b->entered, 1);
    while (atomic_load(&b->hold) && !cancelled) {
        CHECK_OK(weir_kernel_context_is_cancelled(context, &cancelled));
        sleep_ns(20000);
    }
    add_one(context);
    return atomic_load(&b->fail_with);
}

typedef struct network {
    weir_engine *engine;
    weir_program *program;
    weir_tensor *in, *out;
    body body;
} network;

static network *make_network(weir_threadpool *pool) {
    network *net = calloc(1, sizeof *net);
    const weir_tensor_desc desc = vector_desc(WIDTH);
    weir_value v;
    CHECK(net != NULL);
    net->engine = make_engine(pool);
    weir_kernel *kernel = make_unary_kernel(net->engine, "body", do_body, &net->body, &desc);
    weir_graph *graph = make_graph("network");
    CHECK_OK(weir_graph_add_input(graph, "x", &desc, &v));
    CHECK_OK(weir_graph_add_kernel(graph, "body", kernel, &v, 1, &v, 1, NULL));
    CHECK_OK(weir_graph_add_kernel(graph, "behind", kernel, &v, 1, &v, 1, NULL));
    CHECK_OK(weir_graph_add_output(graph, "y", v));
    net->program = compile(graph, net->engine);
    weir_graph_destroy(graph);
    weir_kernel_release(kernel);
    net->in = make_tensor(net->engine, desc);
    net->out = make_tensor(net->engine, desc);
    fill(net->in, 3);
    return net;
}

static void free_network(network *net) {
    weir_tensor_release(net->in);
    weir_tensor_release(net->out);
    weir_program_release(net->program);
    weir_engine_release(net->engine);
    free(net);
}

static weir_run *start(network *net, weir_stream *stream, const weir_run_options *options) {
    weir_run *run = NULL;
    CHECK_OK(weir_program_start(net->program, stream, &net->in, 1, &net->out, 1, options, &run));
    return run;
}

static weir_run_options options_with(const weir_notice *notice) {
    const weir_run_options options = {.struct_size = sizeof options, .notice = notice};
    return options;
}

/* Every way to hear of a run and of an event, and every way in which they end. Where `may_hold`, who submits does not
 * run it. */
static void test_outcomes(weir_threadpool *pool, int may_hold) {
    network *net = make_network(pool);
    weir_stream *stream = make_stream(net->engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "s");
    weir_event *event = make_event(net->engine, 0);
    const struct {
        int fail_with, cancel;
        uint64_t deadline_ns;
        weir_status status;
    } ends[] = {{WEIR_OK, 0, 0, WEIR_OK}, {WEIR_DATA_LOSS, 0, 0, WEIR_DATA_LOSS}, {WEIR_OK, 1, 0, WEIR_CANCELLED},
                {WEIR_OK, 0, 1, WEIR_DEADLINE_EXCEEDED}};
    for (int round = 0; round < scale(40); round++) {
        for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
            ear by_options = {0}, by_call = {0}, second = {0}, of_event = {.event = event};
            if (ends[i].cancel && !may_hold) continue;
            const weir_notice with_start = notice_of(&by_options);
            const weir_run_options options = {
                .struct_size = sizeof options, .notice = &with_start, .deadline_ns = ends[i].deadline_ns};
            const weir_notice notice = notice_of(&by_call), another = notice_of(&second), reached = notice_of(&of_event);
            atomic_store(&net->body.fail_with, ends[i].fail_with);
            atomic_store(&net->body.hold, ends[i].cancel);
            /* Cancelled while it runs, or while its turn has not come. */
            weir_run *run = start(net, stream, &options);
            if (ends[i].cancel) CHECK_OK(weir_run_cancel(run));
            CHECK_OK(weir_run_notify(run, &notice));
            CHECK_OK(weir_run_notify(run, &another));
            CHECK_OK(weir_event_record(event, stream));
            CHECK_OK(weir_event_notify(event, &reached));
            /* Before the notice has come: it is the run's and not the handle's. */
            if (round % 2 == 0) weir_run_release(run);
            check_heard(&by_call, ends[i].status);
            check_heard(&second, ends[i].status);
            check_heard(&of_event, WEIR_OK);
            CHECK_EQ(by_call.done, 1);
            CHECK_EQ(of_event.done, 1);
            CHECK(of_event.run == NULL && by_call.run != NULL);
            check_heard(&by_options, ends[i].status);
            CHECK(by_options.run == by_call.run);
            CHECK_EQ(by_options.done, 1);
            if (ends[i].status == WEIR_DATA_LOSS) {
                CHECK_TEXT(by_options.text, "weir_program_start: ");
                CHECK_TEXT(by_call.text, "weir_run_notify: ");
                CHECK_TEXT(by_call.text, "body");
                CHECK_TEXT(by_call.node, "body");
            }
            if (round % 2 == 1) weir_run_release(run);
        }
    }
    atomic_store(&net->body.hold, 0);
    atomic_store(&net->body.fail_with, 0);
    weir_event_release(event);
    weir_stream_release(stream);
    free_network(net);
}

/* weir_program_run on an asynchronous stream: the stream has the failure, and what is behind it hears of that. */
static void test_program_run(weir_threadpool *pool) {
    network *net = make_network(pool);
    weir_stream *stream = make_stream(net->engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "s");
    weir_event *event = make_event(net->engine, 0);
    ear good = {0}, bad = {0}, behind = {0}, failed_event = {0};
    const weir_notice notices[] = {notice_of(&good), notice_of(&bad), notice_of(&behind)};
    weir_run_options options[3];
    for (int i = 0; i < 3; i++) options[i] = options_with(&notices[i]);
    CHECK_OK(weir_program_run(net->program, stream, &net->in, 1, &net->out, 1, &options[0]));
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    atomic_store(&net->body.fail_with, WEIR_DATA_LOSS);
    weir_status second = weir_program_run(net->program, stream, &net->in, 1, &net->out, 1, &options[1]);
    CHECK_OK(second);
    weir_status third = weir_program_run(net->program, stream, &net->in, 1, &net->out, 1, &options[2]);
    CHECK_OK(weir_event_record(event, stream));
    const weir_notice notice = notice_of(&failed_event);
    CHECK_OK(weir_event_notify(event, &notice));
    CHECK_CODE(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE), WEIR_DATA_LOSS, "body");
    check_heard(&good, WEIR_OK);
    check_heard(&bad, WEIR_DATA_LOSS);
    CHECK(bad.run == NULL);
    check_heard(&failed_event, WEIR_DATA_LOSS);
    /* A stream that had failed by then took no run, and then nothing is told of one. */
    if (third == WEIR_OK) {
        check_heard(&behind, WEIR_ABORTED);
        CHECK_TEXT(behind.text, "did not begin");
    } else {
        CHECK_EQ(third, WEIR_FAILED_PRECONDITION);
        CHECK_EQ(atomic_load(&behind.calls) + atomic_load(&behind.releases), 0);
    }
    weir_event_release(event);
    weir_stream_release(stream);
    free_network(net);
}

/* What is over, and what was never begun, is told of at once, here; the thread's own last error is left as it was. */
static void test_at_once(void) {
    network *net = make_network(NULL);
    weir_stream *stream = make_stream(net->engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "s");
    weir_stream *synchronous = make_stream(net->engine, 0, NULL, NULL);
    weir_event *event = make_event(net->engine, 0);
    ear never = {.event = event}, over = {0}, reached = {.event = event};
    weir_notice notice = notice_of(&never);
    CHECK_OK(weir_event_notify(event, &notice));
    CHECK_EQ(never.calls, 1);
    CHECK_EQ(never.releases, 1);
    CHECK_EQ(never.done, 1);
    CHECK_EQ(never.thread, this_thread());
    CHECK_OK(weir_event_record(event, synchronous));
    notice = notice_of(&reached);
    CHECK_OK(weir_event_notify(event, &notice));
    CHECK_EQ(reached.calls, 1);
    atomic_store(&net->body.fail_with, WEIR_DATA_LOSS);
    weir_run *run = start(net, stream, NULL);
    CHECK_CODE(weir_run_synchronize(run, WEIR_TIMEOUT_INFINITE), WEIR_DATA_LOSS, "body");
    CHECK_CODE(weir_event_record(NULL, stream), WEIR_INVALID_ARGUMENT, "event is NULL");
    notice = notice_of(&over);
    CHECK_OK(weir_run_notify(run, &notice));
    CHECK_EQ(over.calls, 1);
    CHECK_EQ(over.releases, 1);
    CHECK_EQ(over.status, WEIR_DATA_LOSS);
    CHECK_EQ(over.thread, this_thread());
    CHECK(over.run == run);
    CHECK_TEXT(over.text, "weir_run_notify: ");
    CHECK_TEXT(weir_last_error_message(), "event is NULL");
    weir_run_release(run);
    weir_stream_release(stream);
    weir_event_release(event);
    weir_stream_release(synchronous);
    free_network(net);
}

/* A notice is of the record at the time of the call, and the event may go. */
static void test_recorded_again(void) {
    weir_threadpool *handle = NULL;
    test_pool *pool = test_pool_create_exact(POOL_FIFO, 3, &handle);
    weir_engine *engine = make_engine(handle);
    weir_stream *slow = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "slow");
    weir_stream *fast = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "fast");
    weir_event *event = make_event(engine, 0);
    gate g = {0};
    ear first = {0}, second = {0};
    const weir_notice one = notice_of(&first), two = notice_of(&second);
    CHECK_OK(weir_enqueue_task(slow, pass_gate, &g, NULL));
    CHECK_OK(weir_event_record(event, slow));
    CHECK_OK(weir_event_notify(event, &one));
    CHECK_OK(weir_event_record(event, fast));
    CHECK_OK(weir_event_notify(event, &two));
    weir_event_release(event);
    check_heard(&second, WEIR_OK);
    CHECK_EQ(atomic_load(&first.calls), 0);
    weir_stream_release(slow);
    open_gate(&g);
    check_heard(&first, WEIR_OK);
    weir_stream_release(fast);
    weir_engine_release(engine);
    weir_threadpool_release(handle);
    test_pool_destroy(pool);
}

static uint64_t take(int fd) {
    uint64_t count = 0;
    ssize_t got = read(fd, &count, sizeof count);
    if (got < 0) CHECK_EQ(errno, EAGAIN);
    return got == (ssize_t)sizeof count ? count : 0;
}

/* The host's eventfd gets one for each, and stays the host's. */
static void test_eventfd(void) {
    network *net = make_network(NULL);
    weir_stream *stream = make_stream(net->engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "s");
    weir_event *event = make_event(net->engine, 0);
    const int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), blocking = eventfd(0, EFD_CLOEXEC);
    int pipes[2];
    CHECK(fd > 0 && blocking > 0 && pipe(pipes) == 0);
    weir_notice notice = {.struct_size = sizeof notice, .event_fd = fd};
    weir_notice wrong = {.struct_size = sizeof wrong, .release = let_go};
    weir_run_options options = options_with(&notice);
    uint64_t sum = 0;
    for (int i = 0; i < 10; i++) {
        CHECK_OK(weir_program_run(net->program, stream, &net->in, 1, &net->out, 1, &options));
        CHECK_OK(weir_event_record(event, stream));
        CHECK_OK(weir_event_notify(event, &notice));
    }
    EVENTUALLY((sum += take(fd)) == 20);
    /* Full: nobody waits, nothing is added. */
    const uint64_t full = UINT64_MAX - 1;
    CHECK(write(fd, &full, sizeof full) == (ssize_t)sizeof full);
    ear e = {0};
    weir_notice both = notice_of(&e);
    both.event_fd = fd;
    CHECK_OK(weir_event_record(event, stream));
    CHECK_OK(weir_event_notify(event, &both));
    check_heard(&e, WEIR_OK);
    CHECK_EQ(take(fd), full);
    /* Both: the function first. */
    e = (ear){0};
    CHECK_OK(weir_event_record(event, stream));
    CHECK_OK(weir_event_notify(event, &both));
    EVENTUALLY(take(fd) == 1);
    CHECK_EQ(atomic_load(&e.calls), 1);
    check_heard(&e, WEIR_OK);
    /* Refused, and then nothing is called, released or kept. */
    e = (ear){0};
    wrong.ctx = &e;
    CHECK_CODE(weir_event_notify(event, &wrong), WEIR_INVALID_ARGUMENT, "neither a function nor an eventfd");
    wrong.event_fd = -1;
    CHECK_CODE(weir_event_notify(event, &wrong), WEIR_INVALID_ARGUMENT, "notice->event_fd is -1, which is no open file");
    wrong.event_fd = 1000000;
    CHECK_CODE(weir_event_notify(event, &wrong), WEIR_INVALID_ARGUMENT, "is 1000000, which is no open file");
    wrong.event_fd = pipes[1];
    CHECK_CODE(weir_event_notify(event, &wrong), WEIR_INVALID_ARGUMENT, "which is no eventfd but pipe:");
    wrong.event_fd = blocking;
    CHECK_CODE(weir_event_notify(event, &wrong), WEIR_INVALID_ARGUMENT, "make it with EFD_NONBLOCK");
    wrong.notify = hear;
    options.notice = &wrong;
    CHECK_CODE(weir_program_run(net->program, stream, &net->in, 1, &net->out, 1, &options), WEIR_INVALID_ARGUMENT,
               "make it with EFD_NONBLOCK");
    weir_event_release(event);
    weir_stream_release(stream);
    free_network(net);
    CHECK_EQ(atomic_load(&e.calls) + atomic_load(&e.releases), 0);
    CHECK_EQ(take(fd), 0);
    close(fd), close(blocking), close(pipes[0]), close(pipes[1]);
}

/* Runs that are over when their call returns take no notice. */
static void test_refused(void) {
    network *net = make_network(NULL);
    weir_stream *synchronous = make_stream(net->engine, 0, NULL, NULL);
    ear e = {0};
    const weir_notice notice = notice_of(&e);
    const weir_run_options options = options_with(&notice);
    const char *text = "options->notice is given, which is for runs on asynchronous streams";
    CHECK_CODE(weir_program_run(net->program, NULL, &net->in, 1, &net->out, 1, &options), WEIR_INVALID_ARGUMENT, text);
    CHECK_CODE(weir_program_run(net->program, synchronous, &net->in, 1, &net->out, 1, &options), WEIR_INVALID_ARGUMENT,
               text);
    CHECK_CODE(weir_program_run_many(net->program, 1, &net->in, 1, &net->out, 1, &options), WEIR_INVALID_ARGUMENT, text);
    CHECK_EQ(atomic_load(&net->body.entered), 0);
    CHECK_EQ(atomic_load(&e.calls) + atomic_load(&e.releases), 0);
    weir_stream_release(synchronous);
    free_network(net);
}

/* Each notice starts the next run: up to 100,000 times, on no more stack than once. */
typedef struct chain {
    network *net;
    weir_stream *streams[2];
    int with_options; /* else asks after the start */
    atomic_int left;
} chain;

static void next_link(void *ctx, weir_status status, weir_run *run);

static void begin_link(chain *c) {
    const weir_notice notice = {.struct_size = sizeof notice, .notify = next_link, .ctx = c};
    const weir_run_options options = options_with(&notice);
    /* With options the chain may be over, and `c` gone, when the start is. */
    const int with_options = c->with_options;
    weir_run *run = start(c->net, c->streams[atomic_load(&c->left) % 2], with_options ? &options : NULL);
    if (!with_options) CHECK_OK(weir_run_notify(run, &notice));
    weir_run_release(run);
}

static _Thread_local char *deepest, *highest;

static void next_link(void *ctx, weir_status status, weir_run *run) {
    char here;
    chain *c = ctx;
    CHECK_EQ(status, WEIR_OK);
    CHECK(run != NULL);
    if (deepest == NULL || &here < deepest) deepest = &here;
    if (highest == NULL || &here > highest) highest = &here;
    CHECK(highest - deepest < 100000);
    if (atomic_fetch_sub(&c->left, 1) > 1) begin_link(c);
}

static void test_chain(weir_threadpool *pool, int links) {
    for (int with_options = 0; with_options < 2; with_options++) {
        chain c = {.net = make_network(pool), .with_options = with_options};
        deepest = highest = NULL;
        for (int i = 0; i < 2; i++) c.streams[i] = make_stream(c.net->engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
        atomic_store(&c.left, links);
        begin_link(&c);
        EVENTUALLY(atomic_load(&c.left) <= 0);
        CHECK_EQ(atomic_load(&c.left), 0);
        for (int i = 0; i < 2; i++) {
            CHECK_OK(weir_stream_synchronize(c.streams[i], WEIR_TIMEOUT_INFINITE));
            weir_stream_release(c.streams[i]);
        }
        free_network(c.net);
    }
}

/* Many threads ask while the run ends. */
typedef struct asker {
    weir_run *run;
    weir_event *event;
    atomic_int *go;
    ear ears[8];
} asker;

static void *ask(void *arg) {
    asker *a = arg;
    while (!atomic_load(a->go)) sched_yield();
    for (int i = 0; i < 8; i++) {
        const weir_notice notice = notice_of(&a->ears[i]);
        CHECK_OK(i % 2 ? weir_run_notify(a->run, &notice) : weir_event_notify(a->event, &notice));
    }
    return NULL;
}

static void test_many_threads(weir_threadpool *pool, int may_hold) {
    enum { ASKERS = 4 };
    network *net = make_network(pool);
    weir_stream *stream = make_stream(net->engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
    weir_event *event = make_event(net->engine, 0);
    for (int round = 0; round < scale(200); round++) {
        pthread_t threads[ASKERS];
        asker askers[ASKERS];
        atomic_int go = 0;
        memset(askers, 0, sizeof askers);
        atomic_store(&net->body.hold, may_hold);
        weir_run *run = start(net, stream, NULL);
        CHECK_OK(weir_event_record(event, stream));
        for (int i = 0; i < ASKERS; i++) {
            askers[i].run = run, askers[i].event = event, askers[i].go = &go;
            CHECK(pthread_create(&threads[i], NULL, ask, &askers[i]) == 0);
        }
        atomic_store(&go, 1);
        atomic_store(&net->body.hold, 0);
        for (int i = 0; i < ASKERS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
        for (int i = 0; i < ASKERS; i++) {
            for (int k = 0; k < 8; k++) check_heard(&askers[i].ears[k], WEIR_OK);
        }
        weir_run_release(run);
    }
    weir_event_release(event);
    weir_stream_release(stream);
    free_network(net);
}

/* A run with a notice allocates no more than one without. */
static void test_no_allocations(weir_threadpool *pool) {
    network *net = make_network(pool);
    weir_stream *stream = make_stream(net->engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
    ear e = {.again = 1};
    const weir_notice notice = notice_of(&e);
    const weir_run_options options = options_with(&notice);
    int quiet = 0;
    for (int i = 0; i < 200 && quiet < 20; i++) {
        const uint64_t before = runtime_info().allocations;
        CHECK_OK(weir_program_run(net->program, stream, &net->in, 1, &net->out, 1, &options));
        CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
        EVENTUALLY(atomic_load(&e.releases) == i + 1);
        CHECK_EQ(atomic_load(&e.calls), i + 1);
        quiet = runtime_info().allocations == before ? quiet + 1 : 0;
    }
    CHECK_EQ(quiet, 20);
    weir_stream_release(stream);
    free_network(net);
}

/* Runs whose kernels complete later, in a thread of the host's that is nobody's worker. */
static void test_later(weir_threadpool *pool) {
    weir_engine *engine = make_engine(pool);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
    const weir_tensor_desc desc = vector_desc(WIDTH);
    weir_tensor *in = make_tensor(engine, desc), *out = make_tensor(engine, desc);
    for (how how = INLINE; how <= RACING; how++) {
        for (int fails = 0; fails < 2; fails++) {
            const weir_status status = fails ? WEIR_DATA_LOSS : WEIR_OK;
            later l = {.how = how, .status = status, .text = "as planned"};
            weir_kernel *kernel = make_later_kernel(engine, "later", &l);
            weir_graph *graph = make_graph("later");
            weir_value v;
            CHECK_OK(weir_graph_add_input(graph, "x", &desc, &v));
            CHECK_OK(weir_graph_add_kernel(graph, "later", kernel, &v, 1, &v, 1, NULL));
            CHECK_OK(weir_graph_add_output(graph, "y", v));
            weir_program *program = compile(graph, engine);
            weir_graph_destroy(graph);
            weir_kernel_release(kernel);
            for (int i = 0; i < scale(20); i++) {
                ear by_options = {0}, by_call = {0};
                const weir_notice with_start = notice_of(&by_options), notice = notice_of(&by_call);
                const weir_run_options options = options_with(&with_start);
                weir_run *run = NULL;
                CHECK_OK(weir_program_start(program, stream, &in, 1, &out, 1, &options, &run));
                CHECK_OK(weir_run_notify(run, &notice));
                check_heard(&by_options, status);
                check_heard(&by_call, status);
                weir_run_release(run);
            }
            weir_program_release(program);
        }
    }
    weir_tensor_release(in);
    weir_tensor_release(out);
    weir_stream_release(stream);
    weir_engine_release(engine);
}

/* What a function may do: release everything it knows, wait for what is over; not wait for everything. */
typedef struct inside {
    weir_stream *stream;
    weir_run *run;
    weir_event *event;
    atomic_int calls;
} inside;

static void look_around(void *ctx, weir_status status, weir_run *run) {
    inside *i = ctx;
    int32_t done = 0;
    CHECK_EQ(status, WEIR_OK);
    CHECK(run == i->run);
    CHECK_OK(weir_run_synchronize(run, WEIR_TIMEOUT_INFINITE));
    CHECK_OK(weir_run_query(run, &done));
    CHECK_EQ(done, 1);
    CHECK_CODE(weir_sync_devices(WEIR_TIMEOUT_INFINITE, NULL, 0, NULL), WEIR_FAILED_PRECONDITION, "synchronising all engines");
    /* Something behind this notice on its own stream, which cannot go on before it returns. */
    CHECK_OK(weir_event_record(i->event, i->stream));
    CHECK_CODE(weir_event_synchronize(i->event, WEIR_TIMEOUT_INFINITE), WEIR_FAILED_PRECONDITION,
               "from inside that stream's own work would never end");
    weir_event_release(i->event);
    weir_run_release(i->run);
    weir_stream_release(i->stream);
    atomic_fetch_add(&i->calls, 1);
}

static void test_inside(weir_threadpool *pool) {
    network *net = make_network(pool);
    inside i = {.stream = make_stream(net->engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL), .event = make_event(net->engine, 0)};
    const weir_notice notice = {.struct_size = sizeof notice, .notify = look_around, .ctx = &i};
    gate g = {0};
    CHECK_OK(weir_enqueue_task(i.stream, pass_gate, &g, NULL));
    i.run = start(net, i.stream, NULL);
    CHECK_OK(weir_run_notify(i.run, &notice));
    open_gate(&g);
    EVENTUALLY(atomic_load(&i.calls) == 1);
    free_network(net);
}

/* ---- what a device ends ---- */

static weir_engine *make_emulated(weir_emulation emulation) {
    weir_engine_attr *attr = NULL;
    weir_engine *engine = NULL;
    emulation.struct_size = sizeof emulation;
    CHECK_OK(weir_engine_attr_create(WEIR_ENGINE_EMULATED, &attr));
    CHECK_OK(weir_engine_attr_set_emulation(attr, &emulation));
    CHECK_OK(weir_engine_create(WEIR_ENGINE_EMULATED, 1, attr, &engine));
    weir_engine_attr_destroy(attr);
    return engine;
}

/* The lane for notices, by its name. */
static uint64_t notice_lane(void) {
    weir_thread_info threads[32] = {{.struct_size = sizeof *threads}};
    size_t count = 0;
    CHECK_OK(weir_runtime_get_threads(threads, 32, &count));
    for (size_t i = 0; i < count; i++) {
        if (strncmp(threads[i].name, "weir-notice-", 12) != 0) continue;
        CHECK_EQ(threads[i].origin, WEIR_THREAD_ORIGIN_LANE);
        CHECK_TEXT(threads[i].name, "weir-notice-emulated1");
        return threads[i].os_id;
    }
    return 0;
}

static void test_device(weir_emulation emulation, weir_status status) {
    const weir_runtime_info before = runtime_info();
    weir_engine *host = make_engine(NULL), *engine = make_emulated(emulation);
    weir_stream *stream = NULL;
    const weir_tensor_desc desc = vector_desc(1024);
    CHECK_OK(weir_stream_create(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, &stream));
    weir_tensor *tensor = make_tensor(engine, desc);
    weir_event *events[8];
    ear ears[8] = {{0}};
    const int fd = eventfd(0, EFD_NONBLOCK);
    CHECK(fd > 0);
    /* An eventfd alone needs no thread. */
    weir_event *first = make_event(engine, 0);
    const weir_notice raise = {.struct_size = sizeof raise, .event_fd = fd};
    CHECK_OK(weir_enqueue_fill(stream, tensor, 0));
    CHECK_OK(weir_event_record(first, stream));
    CHECK_OK(weir_event_notify(first, &raise));
    EVENTUALLY(take(fd) == 1);
    CHECK_EQ(notice_lane(), 0);
    for (int i = 0; i < 8; i++) {
        events[i] = make_event(engine, 0);
        ears[i].event = i % 2 ? events[i] : NULL;
        const weir_notice notice = notice_of(&ears[i]);
        /* A stream that is known to have failed takes no more. */
        const weir_status filled = weir_enqueue_fill(stream, tensor, (uint8_t)i);
        CHECK(filled == WEIR_OK || status != WEIR_OK);
        CHECK_OK(weir_event_record(events[i], stream));
        CHECK_OK(weir_event_notify(events[i], &notice));
        if (i % 2 == 0) weir_event_release(events[i]);
    }
    weir_stream_release(stream);
    for (int i = 0; i < 8; i++) {
        check_heard(&ears[i], status);
        if (i % 2) CHECK_EQ(ears[i].done, 1);
        /* The last ones may have been over when they were asked for. */
        CHECK(ears[i].thread == notice_lane() || ears[i].thread == this_thread());
        if (i % 2) weir_event_release(events[i]);
    }
    weir_event_release(first);
    weir_tensor_release(tensor);
    weir_engine_release(engine);
    weir_engine_release(host);
    close(fd);
    /* The lane ends with the engine. */
    check_released(&before);
    EVENTUALLY(notice_lane() == 0);
}

/* The record lies in a queue that is held up when the host asks: the device does not know of it yet. */
static void test_not_issued(void) {
    weir_engine *host = make_engine(NULL), *engine = make_emulated((weir_emulation){0});
    weir_stream *first = make_stream(host, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL), *second = NULL;
    weir_event *open = make_event(host, 0), *event = make_event(engine, 0);
    weir_tensor *tensor = make_tensor(engine, vector_desc(64));
    gate g = {0};
    ear e = {.event = event}, alone = {0};
    const weir_notice notice = notice_of(&e), another = notice_of(&alone);
    CHECK_OK(weir_stream_create(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, &second));
    CHECK_OK(weir_enqueue_task(first, pass_gate, &g, NULL));
    CHECK_OK(weir_event_record(open, first));
    CHECK_OK(weir_stream_wait_event(second, open));
    CHECK_OK(weir_enqueue_fill(second, tensor, 0));
    CHECK_OK(weir_event_record(event, second));
    CHECK_OK(weir_event_notify(event, &notice));
    CHECK_OK(weir_event_notify(event, &another));
    CHECK_EQ(atomic_load(&e.calls), 0);
    open_gate(&g);
    check_heard(&e, WEIR_OK);
    check_heard(&alone, WEIR_OK);
    CHECK_EQ(e.thread, notice_lane());
    weir_tensor_release(tensor);
    weir_event_release(open);
    weir_event_release(event);
    weir_stream_release(first);
    weir_stream_release(second);
    weir_engine_release(engine);
    weir_engine_release(host);
    /* The next test looks for the lane of its own engine. */
    EVENTUALLY(notice_lane() == 0);
}

/* x doubled on the device, and rectified by the host if so wanted; x and the result are in the device's memory. */
static weir_program *make_double(weir_engine *host, weir_engine *engine, int with_cpu) {
    const weir_tensor_desc desc = vector_desc(64);
    weir_engine *engines[] = {host, engine};
    weir_graph *graph = make_graph("double");
    weir_kernel *add = NULL;
    weir_program *program = NULL;
    weir_value x, in[2], y;
    CHECK_OK(weir_kernel_create_binary(engine, BINARY(ADD), NULL, &add));
    CHECK_OK(weir_graph_add_input(graph, "x", &desc, &x));
    in[0] = in[1] = x;
    CHECK_OK(weir_graph_add_kernel(graph, "sum", add, in, 2, &y, 1, NULL));
    if (with_cpu) {
        weir_kernel *on_host = NULL;
        CHECK_OK(weir_kernel_create_eltwise(host, ELTWISE(RELU), NULL, &on_host));
        CHECK_OK(weir_graph_add_kernel(graph, "relu", on_host, &y, 1, &y, 1, NULL));
        weir_kernel_release(on_host);
    }
    CHECK_OK(weir_graph_add_output(graph, "y", y));
    CHECK_OK(weir_graph_set_port_engine(graph, WEIR_PORT_INPUT, 0, engine));
    CHECK_OK(weir_graph_set_port_engine(graph, WEIR_PORT_OUTPUT, 0, engine));
    CHECK_OK(weir_graph_compile(graph, engines, 2, NULL, &program));
    weir_graph_destroy(graph);
    weir_kernel_release(add);
    return program;
}

/* A program that the device does all of: issued as kernels are, or, with a handle, driven by the host. */
static void test_device_program(int with_cpu) {
    const weir_runtime_info before = runtime_info();
    weir_engine *host = make_engine(NULL), *engine = make_emulated((weir_emulation){0});
    weir_stream *stream = NULL;
    CHECK_OK(weir_stream_create(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, &stream));
    weir_program *program = make_double(host, engine, with_cpu);
    weir_tensor *a = make_tensor(engine, vector_desc(64)), *b = make_tensor(engine, vector_desc(64));
    CHECK_OK(weir_enqueue_fill(stream, a, 0));
    ear runs = {.again = 1}, started = {0};
    const weir_notice of_runs = notice_of(&runs), of_start = notice_of(&started);
    const weir_run_options options[] = {options_with(&of_runs), options_with(&of_start)};
    for (int i = 0; i < scale(200); i++) {
        CHECK_OK(weir_program_run(program, stream, &a, 1, &b, 1, &options[0]));
        if (i % 4 == 0) EVENTUALLY(atomic_load(&runs.calls) == i + 1);
    }
    /* Nobody waits for the stream: the device says it. */
    EVENTUALLY(atomic_load(&runs.calls) == scale(200));
    CHECK_EQ(runs.status, WEIR_OK);
    CHECK_EQ(runs.thread, notice_lane());
    CHECK(runs.run == NULL);
    /* In the steady state a notice takes no memory. What is not steady yet takes some now and then. */
    uint64_t least[2] = {UINT64_MAX, UINT64_MAX};
    for (int i = 0; i < 200; i++) {
        const int calls = atomic_load(&runs.calls), with = i % 2;
        const uint64_t allocations = runtime_info().allocations;
        CHECK_OK(weir_program_run(program, stream, &a, 1, &b, 1, with ? &options[0] : NULL));
        if (with) EVENTUALLY(atomic_load(&runs.calls) == calls + 1);
        CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
        const uint64_t taken = runtime_info().allocations - allocations;
        if (taken < least[with]) least[with] = taken;
    }
    CHECK_EQ(least[0], 0);
    CHECK_EQ(least[1], 0);
    weir_run *run = NULL;
    CHECK_OK(weir_program_start(program, stream, &a, 1, &b, 1, &options[1], &run));
    EVENTUALLY(atomic_load(&started.calls) == 1);
    CHECK(started.run == run);
    CHECK_EQ(started.done, 1);
    CHECK_EQ(started.thread, notice_lane());
    weir_run_release(run);
    EVENTUALLY(atomic_load(&runs.releases) == atomic_load(&runs.calls) && atomic_load(&started.releases) == 1);
    CHECK_OK(weir_sync_devices(WEIR_TIMEOUT_INFINITE, NULL, 0, NULL));
    weir_tensor_release(a);
    weir_tensor_release(b);
    weir_program_release(program);
    weir_stream_release(stream);
    weir_engine_release(engine);
    weir_engine_release(host);
    check_released(&before);
    EVENTUALLY(notice_lane() == 0);
}

/* A failure of the device's in the middle of runs that only notices tell of. */
static void test_device_failure(void) {
    weir_engine *host = make_engine(NULL), *engine = make_emulated((weir_emulation){.fail_operation = 5});
    weir_stream *stream = NULL;
    CHECK_OK(weir_stream_create(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, &stream));
    weir_program *program = make_double(host, engine, 0);
    weir_tensor *a = make_tensor(engine, vector_desc(64)), *b = make_tensor(engine, vector_desc(64));
    enum { RUNS = 12 };
    ear ears[RUNS] = {{0}};
    int accepted = 0, failed = 0;
    CHECK_OK(weir_enqueue_fill(stream, a, 0));
    for (int i = 0; i < RUNS; i++) {
        const weir_notice notice = notice_of(&ears[i]);
        const weir_run_options options = options_with(&notice);
        const weir_status status = weir_program_run(program, stream, &a, 1, &b, 1, &options);
        EVENTUALLY(atomic_load(&ears[i].releases) == (status == WEIR_OK));
        CHECK_EQ(atomic_load(&ears[i].calls), status == WEIR_OK);
        accepted += status == WEIR_OK;
        failed += status == WEIR_OK && ears[i].status != WEIR_OK;
        if (status == WEIR_OK && ears[i].status != WEIR_OK) CHECK_TEXT(ears[i].text, "stream");
    }
    CHECK(accepted > 0 && failed > 0);
    CHECK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE) != WEIR_OK);
    weir_tensor_release(a);
    weir_tensor_release(b);
    weir_program_release(program);
    weir_stream_release(stream);
    weir_engine_release(engine);
    weir_engine_release(host);
}

int main(void) {
    CHECK_OK(weir_emulated_register());
    const weir_runtime_info before = runtime_info();
    finisher_start();
    for (int kind = 0; kind < POOL_KINDS; kind++) {
        weir_threadpool *handle = NULL;
        test_pool *pool = test_pool_create_exact((pool_kind)kind, 2, &handle);
        if (kind == POOL_LATE) test_pool_let_go(pool);
        const int may_hold = pool_kind_is_threaded((pool_kind)kind);
        test_outcomes(handle, may_hold);
        test_program_run(handle);
        test_later(handle);
        test_many_threads(handle, may_hold);
        test_chain(handle, scale(kind == POOL_INLINE ? 100000 : 2000));
        if (may_hold) test_inside(handle);
        weir_threadpool_release(handle);
        test_pool_destroy(pool);
    }
    test_outcomes(NULL, 1);
    test_program_run(NULL);
    test_later(NULL);
    test_many_threads(NULL, 1);
    test_chain(NULL, scale(20000));
    test_inside(NULL);
    test_no_allocations(NULL);
    test_at_once();
    test_recorded_again();
    test_eventfd();
    test_refused();
    for (int round = 0; round < scale(20); round++) {
        test_device((weir_emulation){.kernel_ns = 0}, WEIR_OK);
        test_device((weir_emulation){.latency_ns = 20000}, WEIR_OK);
        test_device((weir_emulation){.seed = (uint64_t)round + 1}, WEIR_OK);
        test_device((weir_emulation){.fail_operation = 2}, WEIR_INTERNAL);
        test_device((weir_emulation){.lose_operation = 2}, WEIR_DEVICE_LOST);
    }
    test_not_issued();
    test_device_program(0);
    test_device_program(1);
    test_device_failure();
    finisher_stop();
    check_released(&before);
    return 0;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Runs of programs: many at once, on streams and without, started, waited for, cancelled, failing; and none of the
 * later ones allocates.
 */

#include "interpose.h"

#include <pthread.h>
#include <sched.h>
#include <weir/inspect.h>

#include "make.h"
#include "test_pools.h"

/* A kernel that can be told what to do while programs run. */
typedef struct control {
    atomic_int fail_with; /* a status, or WEIR_OK */
    atomic_int hold;      /* runs wait in the kernel while it is 1 */
    atomic_int entered;
    atomic_int saw_cancel;
} control;

static int32_t controlled_compute(void *user, weir_kernel_context *context) {
    control *c = user;
    const weir_tensor_view *in = NULL, *out = NULL;
    size_t num_in = 0, num_out = 0;
    int32_t cancelled = 0;
    CHECK_OK(weir_kernel_context_get_inputs(context, &in, &num_in));
    CHECK_OK(weir_kernel_context_get_outputs(context, &out, &num_out));
    atomic_fetch_add(&c->entered, 1);
    while (atomic_load(&c->hold)) {
        CHECK_OK(weir_kernel_context_is_cancelled(context, &cancelled));
        if (cancelled) {
            atomic_fetch_add(&c->saw_cancel, 1);
            break;
        }
        sleep_ns(20000);
    }
    for (int64_t i = 0; i < in->desc.dims[0]; i++) ((float *)out->data)[i] = ((const float *)in->data)[i] + 1;
    return atomic_load(&c->fail_with);
}

/* x -> "first" -> "second" -> "last" -> y, with the controlled kernel in the middle, and a task at the side. */
typedef struct network {
    weir_threadpool *pool;
    weir_engine *engine;
    weir_program *program;
    control control;
    control quiet;
    atomic_int tasks;
} network;

enum { WIDTH = 64 };

static void network_create(network *net, weir_threadpool *pool) {
    weir_tensor_desc desc = vector_desc(WIDTH);
    weir_value v;
    weir_node node, side;
    memset(net, 0, sizeof *net);
    net->pool = pool;
    net->engine = make_engine(pool);
    weir_kernel *plain = make_unary_kernel(net->engine, "plus one", controlled_compute, &net->quiet, &desc);
    weir_kernel *middle = make_unary_kernel(net->engine, "controlled", controlled_compute, &net->control, &desc);
    weir_graph *graph = make_graph("chain");
    CHECK_OK(weir_graph_add_input(graph, "x", &desc, &v));
    CHECK_OK(weir_graph_add_kernel(graph, "first", plain, &v, 1, &v, 1, &node));
    CHECK_OK(weir_graph_add_task(graph, "side", count_run, &net->tasks, NULL, 0, &side));
    CHECK_OK(weir_graph_add_control_edge(graph, node, side));
    CHECK_OK(weir_graph_add_kernel(graph, "second", middle, &v, 1, &v, 1, NULL));
    CHECK_OK(weir_graph_add_kernel(graph, "last", plain, &v, 1, &v, 1, NULL));
    CHECK_OK(weir_graph_add_output(graph, "y", v));
    net->program = compile(graph, net->engine);
    weir_graph_destroy(graph);
    weir_kernel_release(plain);
    weir_kernel_release(middle);
}

static void network_destroy(network *net) {
    weir_program_release(net->program);
    weir_engine_release(net->engine);
}

/* One run's tensors. */
typedef struct feed {
    weir_tensor *in, *out;
} feed;

static feed feed_create(const network *net, int seed) {
    feed f = {make_tensor(net->engine, vector_desc(WIDTH)), make_tensor(net->engine, vector_desc(WIDTH))};
    fill(f.in, seed);
    return f;
}

static void feed_destroy(feed *f) {
    weir_tensor_release(f->in);
    weir_tensor_release(f->out);
}

static void check_result(const feed *f) {
    for (int i = 0; i < WIDTH; i++) CHECK(floats(f->out)[i] == floats(f->in)[i] + 3);
    memset(floats(f->out), 0, WIDTH * sizeof(float));
}

typedef struct runner {
    network *net;
    weir_stream *stream; /* NULL: in the thread itself */
    int rounds;
    int seed;
} runner;

static void *run_many(void *arg) {
    runner *r = arg;
    feed f = feed_create(r->net, r->seed);
    for (int i = 0; i < r->rounds; i++) {
        CHECK_OK(weir_program_run(r->net->program, r->stream, &f.in, 1, &f.out, 1, NULL));
        if (r->stream != NULL) CHECK_OK(weir_stream_synchronize(r->stream, WEIR_TIMEOUT_INFINITE));
        check_result(&f);
    }
    feed_destroy(&f);
    return NULL;
}

/* Six threads run one program: two by themselves, two on one stream, two on synchronous streams. */
static void test_many_at_once(weir_threadpool *pool) {
    enum { RUNNERS = 6 };
    network net;
    pthread_t threads[RUNNERS];
    runner runners[RUNNERS];
    network_create(&net, pool);
    weir_stream *shared = make_stream(net.engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "shared");
    weir_stream *streams[RUNNERS] = {NULL, NULL, shared, shared};
    for (int i = 4; i < RUNNERS; i++) streams[i] = make_stream(net.engine, WEIR_STREAM_DEFAULT, NULL, NULL);
    int rounds = scale(300);
    for (int i = 0; i < RUNNERS; i++) {
        runners[i] = (runner){.net = &net, .stream = streams[i], .rounds = rounds, .seed = i};
        CHECK(pthread_create(&threads[i], NULL, run_many, &runners[i]) == 0);
    }
    for (int i = 0; i < RUNNERS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK_EQ(atomic_load(&net.tasks), RUNNERS * rounds);
    weir_stream_release(shared);
    for (int i = 4; i < RUNNERS; i++) weir_stream_release(streams[i]);
    network_destroy(&net);
}

/* Many runs queued on several streams before the first is waited for. */
static void test_many_started(weir_threadpool *pool) {
    enum { STREAMS = 3, RUNS = 60 };
    network net;
    weir_stream *streams[STREAMS];
    feed feeds[RUNS];
    weir_run *runs[RUNS];
    network_create(&net, pool);
    for (int i = 0; i < STREAMS; i++) streams[i] = make_stream(net.engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
    for (int i = 0; i < RUNS; i++) {
        feeds[i] = feed_create(&net, i);
        weir_stream *stream = streams[i % STREAMS];
        CHECK_OK(weir_program_start(net.program, stream, &feeds[i].in, 1, &feeds[i].out, 1, NULL, &runs[i]));
    }
    for (int i = 0; i < RUNS; i++) {
        int32_t done = 0;
        weir_failure failure = {.struct_size = sizeof failure};
        CHECK_OK(weir_run_synchronize(runs[i], WEIR_TIMEOUT_INFINITE));
        CHECK_OK(weir_run_query(runs[i], &done));
        CHECK_EQ(done, 1);
        CHECK_OK(weir_run_get_failure(runs[i], &failure));
        CHECK_EQ(failure.code, WEIR_OK);
        CHECK_EQ(strlen(failure.message), 0);
        CHECK_OK(weir_run_synchronize(runs[i], 0));
        check_result(&feeds[i]);
        weir_run_release(runs[i]);
        feed_destroy(&feeds[i]);
    }
    for (int i = 0; i < STREAMS; i++) weir_stream_release(streams[i]);
    network_destroy(&net);
}

static void check_run_error(const weir_run *run, int code, const char *part) {
    weir_failure failure = {.struct_size = sizeof failure};
    CHECK_OK(weir_run_get_failure(run, &failure));
    CHECK_EQ(failure.code, code);
    CHECK_TEXT(failure.message, part);
}

/* The first failure ends the run and names the node; nothing behind it runs, and the program is free at once. */
static void test_failure(weir_threadpool *pool) {
    network net;
    weir_run *run = NULL;
    network_create(&net, pool);
    feed f = feed_create(&net, 1);
    weir_stream *stream = make_stream(net.engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "runs");
    for (int round = 0; round < 3; round++) {
        atomic_store(&net.control.fail_with, WEIR_DATA_LOSS);
        int entered = atomic_load(&net.quiet.entered);
        CHECK_CODE(weir_program_run(net.program, NULL, &f.in, 1, &f.out, 1, NULL), WEIR_DATA_LOSS, "'second'");
        CHECK_EQ(atomic_load(&net.quiet.entered), entered + 1); /* "first", and not "last" */

        CHECK_OK(weir_program_start(net.program, stream, &f.in, 1, &f.out, 1, NULL, &run));
        CHECK_CODE(weir_run_synchronize(run, WEIR_TIMEOUT_INFINITE), WEIR_DATA_LOSS, "'second'");
        CHECK_CODE(weir_run_synchronize(run, WEIR_TIMEOUT_INFINITE), WEIR_DATA_LOSS, "'second'"); /* each time */
        check_run_error(run, WEIR_DATA_LOSS, "'second'");
        weir_run_release(run);
        CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE)); /* the failure is the run's own */

        atomic_store(&net.control.fail_with, WEIR_OK);
        CHECK_OK(weir_program_run(net.program, NULL, &f.in, 1, &f.out, 1, NULL));
        check_result(&f);
        CHECK_OK(weir_program_run(net.program, stream, &f.in, 1, &f.out, 1, NULL));
        CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
        check_result(&f);
    }
    atomic_store(&net.control.fail_with, WEIR_DATA_LOSS); /* without a handle the failure is the stream's */
    CHECK_OK(weir_program_run(net.program, stream, &f.in, 1, &f.out, 1, NULL));
    CHECK_CODE(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE), WEIR_DATA_LOSS, "'second'");
    CHECK_TEXT(weir_last_error_message(), "runs");
    CHECK_CODE(weir_program_run(net.program, stream, &f.in, 1, &f.out, 1, NULL), WEIR_FAILED_PRECONDITION, "runs");
    run = (weir_run *)stream;
    CHECK_CODE(weir_program_start(net.program, stream, &f.in, 1, &f.out, 1, NULL, &run), WEIR_FAILED_PRECONDITION,
               "runs");
    CHECK(run == NULL);
    weir_stream_release(stream);
    feed_destroy(&f);
    network_destroy(&net);
}

/* A run queued behind a failure of its stream is given up: ABORTED, with the origin. */
static void test_aborted(void) {
    network net;
    network_create(&net, NULL);
    feed f = feed_create(&net, 1);
    weir_stream *stream = make_stream(net.engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "runs");
    gate held = {.result = WEIR_DATA_LOSS};
    weir_run *run = NULL;
    int32_t done = -1;
    CHECK_OK(weir_enqueue_task(stream, pass_gate, &held, NULL));
    CHECK_OK(weir_program_start(net.program, stream, &f.in, 1, &f.out, 1, NULL, &run));
    CHECK_OK(weir_run_query(run, &done));
    CHECK_EQ(done, 0);
    open_gate(&held);
    CHECK_CODE(weir_run_synchronize(run, WEIR_TIMEOUT_INFINITE), WEIR_ABORTED, "DATA_LOSS");
    check_run_error(run, WEIR_ABORTED, "runs");
    CHECK_EQ(atomic_load(&net.quiet.entered), 0);
    weir_run_release(run);
    weir_stream_release(stream);
    feed_destroy(&f);
    network_destroy(&net);
}

/* The wait has a limit and the run goes on; cancel ends it after the kernel that runs. */
static void test_deadline_and_cancel(weir_threadpool *pool) {
    network net;
    weir_run *run = NULL;
    network_create(&net, pool);
    feed f = feed_create(&net, 1);
    weir_stream *stream = make_stream(net.engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
    atomic_store(&net.control.hold, 1);
    CHECK_OK(weir_program_start(net.program, stream, &f.in, 1, &f.out, 1, NULL, &run));
    CHECK_CODE(weir_run_synchronize(run, 0), WEIR_DEADLINE_EXCEEDED, "weir_run_synchronize: ");
    CHECK_CODE(weir_run_synchronize(run, 2000000), WEIR_DEADLINE_EXCEEDED, "weir_run_synchronize: ");
    check_run_error(run, WEIR_OK, "");
    atomic_store(&net.control.hold, 0);
    CHECK_OK(weir_run_synchronize(run, WEIR_TIMEOUT_INFINITE));
    check_result(&f);
    CHECK_OK(weir_run_cancel(run)); /* it is done, so it is left alone */
    CHECK_OK(weir_run_synchronize(run, WEIR_TIMEOUT_INFINITE));
    weir_run_release(run);

    int first_and_last = atomic_load(&net.quiet.entered);
    atomic_store(&net.control.hold, 1);
    atomic_store(&net.control.entered, 0);
    CHECK_OK(weir_program_start(net.program, stream, &f.in, 1, &f.out, 1, NULL, &run));
    EVENTUALLY(atomic_load(&net.control.entered) == 1);
    CHECK_OK(weir_run_retain(run));
    CHECK_OK(weir_run_cancel(run));
    CHECK_CODE(weir_run_synchronize(run, WEIR_TIMEOUT_INFINITE), WEIR_CANCELLED, "weir_run_synchronize: ");
    check_run_error(run, WEIR_CANCELLED, "");
    CHECK_EQ(atomic_load(&net.control.saw_cancel), 1);
    CHECK_EQ(atomic_load(&net.quiet.entered), first_and_last + 1);
    weir_run_release(run);
    weir_run_release(run);

    atomic_store(&net.control.hold, 0);
    CHECK_OK(weir_program_run(net.program, stream, &f.in, 1, &f.out, 1, NULL));
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    check_result(&f);
    weir_stream_release(stream);
    feed_destroy(&f);
    network_destroy(&net);
}

/* A run that is cancelled before its turn never begins. */
static void test_cancel_before_it_begins(void) {
    network net;
    weir_run *run = NULL;
    network_create(&net, NULL);
    feed f = feed_create(&net, 1);
    weir_stream *stream = make_stream(net.engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
    gate held = {.result = WEIR_OK};
    CHECK_OK(weir_enqueue_task(stream, pass_gate, &held, NULL));
    CHECK_OK(weir_program_start(net.program, stream, &f.in, 1, &f.out, 1, NULL, &run));
    CHECK_OK(weir_run_cancel(run));
    open_gate(&held);
    CHECK_CODE(weir_run_synchronize(run, WEIR_TIMEOUT_INFINITE), WEIR_CANCELLED, "weir_run_synchronize: ");
    CHECK_EQ(atomic_load(&net.quiet.entered), 0);
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    weir_run_release(run);
    weir_stream_release(stream);
    feed_destroy(&f);
    network_destroy(&net);
}

/* Cancels whatever run it is shown, at some moment. */
typedef struct canceller {
    _Atomic(weir_run *) run;
    atomic_int stop;
} canceller;

static void *cancel_runs(void *arg) {
    canceller *c = arg;
    unsigned step = 1;
    while (!atomic_load(&c->stop)) {
        weir_run *run = atomic_exchange(&c->run, NULL);
        if (run == NULL) {
            sched_yield();
            continue;
        }
        for (volatile unsigned delay = (step = step * 1103515245u + 12345) >> 24; delay > 0; delay--) continue;
        CHECK_OK(weir_run_cancel(run));
        weir_run_release(run);
    }
    return NULL;
}

/* Starts runs that are cancelled at some moment, and after each one that nobody cancels. */
static void *start_runs(void *arg) {
    network *net = arg;
    canceller c = {.run = NULL};
    pthread_t thread;
    feed f = feed_create(net, 1);
    weir_stream *stream = make_stream(net->engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
    CHECK(pthread_create(&thread, NULL, cancel_runs, &c) == 0);
    for (int i = 0; i < scale(10000); i++) {
        weir_run *run = NULL;
        CHECK_OK(weir_program_start(net->program, stream, &f.in, 1, &f.out, 1, NULL, &run));
        CHECK_OK(weir_run_retain(run));
        weir_run *unseen = atomic_exchange(&c.run, run);
        if (unseen != NULL) weir_run_release(unseen);
        weir_status status = weir_run_synchronize(run, WEIR_TIMEOUT_INFINITE);
        CHECK(status == WEIR_OK || status == WEIR_CANCELLED);
        if (status == WEIR_OK) check_result(&f);
        weir_run_release(run);
        memset(floats(f.out), 0, WIDTH * sizeof(float));
        CHECK_OK(weir_program_run(net->program, NULL, &f.in, 1, &f.out, 1, NULL));
        check_result(&f);
    }
    atomic_store(&c.stop, 1);
    CHECK(pthread_join(thread, NULL) == 0);
    if (atomic_load(&c.run) != NULL) weir_run_release(atomic_load(&c.run));
    weir_stream_release(stream);
    feed_destroy(&f);
    return NULL;
}

/* A cancel that comes while its run ends hits that run or none: the next run in the same memory is whole. */
static void test_cancel_at_the_end(weir_threadpool *pool) {
    enum { STARTERS = 6 };
    network net;
    pthread_t threads[STARTERS];
    network_create(&net, pool);
    for (int i = 0; i < STARTERS; i++) CHECK(pthread_create(&threads[i], NULL, start_runs, &net) == 0);
    for (int i = 0; i < STARTERS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    network_destroy(&net);
}

/* From the second run on the library asks for no memory: by its own count, and as malloc sees it. */
static void check_no_allocations(weir_threadpool *pool, uint64_t stream_flags, int with_stream) {
    network net;
    network_create(&net, pool);
    feed f = feed_create(&net, 2);
    weir_stream *stream = with_stream ? make_stream(net.engine, stream_flags, NULL, NULL) : NULL;
    for (int round = 0; round < 1 + scale(200); round++) {
        uint64_t before = runtime_info().allocations;
#if INTERPOSED
        interpose_reset(0, 0);
#endif
        CHECK_OK(weir_program_run(net.program, stream, &f.in, 1, &f.out, 1, NULL));
        if (stream != NULL) CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
        if (stream_flags & WEIR_STREAM_ASYNCHRONOUS) {
            weir_run *runs[2] = {NULL, NULL};
            for (int i = 0; i < 2; i++) {
                CHECK_OK(weir_program_start(net.program, stream, &f.in, 1, &f.out, 1, NULL, &runs[i]));
            }
            for (int i = 0; i < 2; i++) {
                CHECK_OK(weir_run_synchronize(runs[i], WEIR_TIMEOUT_INFINITE));
                weir_run_release(runs[i]);
            }
        }
        if (round > 0) {
            CHECK_EQ(runtime_info().allocations, before);
#if INTERPOSED
            CHECK_EQ(atomic_load(&library_requests), 0);
#endif
        }
        check_result(&f);
    }
    if (stream != NULL) weir_stream_release(stream);
    feed_destroy(&f);
    network_destroy(&net);
}

static void test_no_allocations(void) {
    static const pool_kind kinds[] = {POOL_FIFO, POOL_PARALLEL_FOR, POOL_FULL};
    weir_threadpool *pool = NULL;
    check_no_allocations(NULL, 0, 0);
    check_no_allocations(NULL, WEIR_STREAM_DEFAULT, 1);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        test_pool *host = test_pool_create(kinds[k], 2, &pool);
        check_no_allocations(pool, 0, 0);
        check_no_allocations(pool, WEIR_STREAM_DEFAULT, 1);
        check_no_allocations(pool, WEIR_STREAM_ASYNCHRONOUS, 1);
        weir_threadpool_release(pool);
        test_pool_destroy(host);
    }
    CHECK_OK(weir_threadpool_create_builtin(NULL, &pool));
    check_no_allocations(pool, 0, 0);
    check_no_allocations(pool, WEIR_STREAM_ASYNCHRONOUS, 1);
    weir_threadpool_release(pool);
}

int main(void) {
    weir_runtime_info before = runtime_info();
#if INTERPOSED
    (void)interpose_start();
#endif
    test_many_at_once(NULL);
    test_failure(NULL);
    test_deadline_and_cancel(NULL);
    test_many_started(NULL);
    for (int kind = 0; kind < POOL_LATE; kind++) {
        weir_threadpool *pool = NULL;
        test_pool *host = test_pool_create((pool_kind)kind, 2, &pool);
        test_many_at_once(pool);
        test_many_started(pool);
        test_failure(pool);
        weir_threadpool_release(pool);
        test_pool_destroy(host);
        if (!pool_kind_is_threaded((pool_kind)kind)) continue;
        host = test_pool_create_threaded((pool_kind)kind, 2, &pool);
        test_deadline_and_cancel(pool);
        weir_threadpool_release(pool);
        test_pool_destroy(host);
    }
    test_aborted();
    test_cancel_before_it_begins();
    test_cancel_at_the_end(NULL);
    test_no_allocations();
    check_released(&before);
    return 0;
}

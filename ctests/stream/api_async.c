/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Asynchronous kernels: done at once, later, by other threads, twice, with errors; on every kind of pool and stream.
 */

#include <weir/inspect.h>

#include "later.h"

enum { MOST = 64 };

static int32_t compute_sum(void *user, weir_kernel_context *context) {
    const weir_tensor_view *in = NULL, *result = NULL;
    size_t count = 0, one = 0;
    (void)user;
    CHECK_OK(weir_kernel_context_get_inputs(context, &in, &count));
    CHECK_OK(weir_kernel_context_get_outputs(context, &result, &one));
    float *y = result[0].data;
    for (int i = 0; i < WIDTH; i++) {
        y[i] = 0;
        for (size_t k = 0; k < count; k++) y[i] += ((const float *)in[k].data)[i];
    }
    return WEIR_OK;
}

static weir_kernel *make_sum_kernel(weir_engine *engine, size_t inputs) {
    weir_tensor_desc like = vector_desc(WIDTH);
    weir_host_kernel_desc desc = make_kernel_desc("sum", compute_sum, NULL);
    weir_kernel *kernel = NULL;
    desc.num_inputs = inputs;
    desc.num_outputs = 1;
    desc.outputs = &like;
    CHECK_OK(weir_kernel_create_host(engine, &desc, &kernel));
    return kernel;
}

/* x -> `wide` chains of `deep` asynchronous nodes each -> sum */
static weir_program *make_program(weir_engine *engine, later *l, int wide, int deep) {
    weir_tensor_desc desc = vector_desc(WIDTH);
    weir_value x, ends[MOST], sum;
    char name[32];
    weir_kernel *kernel = make_later_kernel(engine, "later", l), *sums = make_sum_kernel(engine, (size_t)wide);
    weir_graph *graph = make_graph("later");
    CHECK_OK(weir_graph_add_input(graph, "x", &desc, &x));
    for (int i = 0; i < wide; i++) {
        ends[i] = x;
        for (int k = 0; k < deep; k++) {
            snprintf(name, sizeof name, "later %d.%d", i, k);
            CHECK_OK(weir_graph_add_kernel(graph, name, kernel, &ends[i], 1, &ends[i], 1, NULL));
        }
    }
    CHECK_OK(weir_graph_add_kernel(graph, "sum", sums, ends, (size_t)wide, &sum, 1, NULL));
    CHECK_OK(weir_graph_add_output(graph, "y", sum));
    weir_program *program = compile(graph, engine);
    weir_graph_destroy(graph);
    weir_kernel_release(kernel);
    weir_kernel_release(sums);
    return program;
}

typedef struct feed {
    weir_tensor *in, *out;
} feed;

static feed feed_create(weir_engine *engine) {
    feed f = {make_tensor(engine, vector_desc(WIDTH)), make_tensor(engine, vector_desc(WIDTH))};
    fill(f.in, 3);
    return f;
}

static void feed_destroy(feed *f) {
    weir_tensor_release(f->in);
    weir_tensor_release(f->out);
}

static void check_result(const feed *f, int wide, int deep) {
    for (int i = 0; i < WIDTH; i++) CHECK_EQ(floats(f->out)[i], (float)wide * (floats(f->in)[i] + (float)deep));
    memset(floats(f->out), 0, WIDTH * sizeof(float));
}

/* Every way to be done, on this pool: without a stream, on a synchronous and on an asynchronous one. */
static void test_ways(weir_threadpool *pool) {
    static const how ways[] = {INLINE, ELSEWHERE, RACING};
    enum { WIDE = 8, DEEP = 6 };
    weir_engine *engine = make_engine(pool);
    feed f = feed_create(engine);
    weir_stream *streams[3] = {NULL, make_stream(engine, WEIR_STREAM_DEFAULT, NULL, NULL),
                               make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "later")};
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
        later l = {.how = ways[way]};
        weir_program *program = make_program(engine, &l, WIDE, DEEP);
        int rounds = scale(ways[way] == RACING ? 20 : 60);
        for (int s = 0; s < 3; s++) {
            for (int i = 0; i < rounds; i++) {
                CHECK_OK(weir_program_run(program, streams[s], &f.in, 1, &f.out, 1, NULL));
                if (streams[s] != NULL) CHECK_OK(weir_stream_synchronize(streams[s], WEIR_TIMEOUT_INFINITE));
                check_result(&f, WIDE, DEEP);
            }
        }
        CHECK_EQ(atomic_load(&l.begun), 3 * rounds * WIDE * DEEP);
        /* Many queued at once. */
        for (int i = 0; i < rounds; i++) CHECK_OK(weir_program_run(program, streams[2], &f.in, 1, &f.out, 1, NULL));
        CHECK_OK(weir_stream_synchronize(streams[2], WEIR_TIMEOUT_INFINITE));
        check_result(&f, WIDE, DEEP);
        weir_program_release(program);
    }
    weir_stream_release(streams[1]);
    weir_stream_release(streams[2]);
    feed_destroy(&f);
    weir_engine_release(engine);
}

static void *run_here(void *arg) {
    void **args = arg;
    feed *f = args[1];
    for (int i = 0; i < scale(60); i++) {
        CHECK_OK(weir_program_run(args[0], NULL, &f->in, 1, &f->out, 1, NULL));
        check_result(f, 4, 3);
    }
    return NULL;
}

/* From some run on the library asks for no memory; the first ones measure. */
static void test_allocations(weir_threadpool *pool) {
    weir_engine *engine = make_engine(pool);
    feed f = feed_create(engine);
    later l = {.how = INLINE};
    weir_program *program = make_program(engine, &l, 8, 4);
    complete_only_once();
    for (int way = 0; way < 2; way++) {
        l.how = way == 0 ? INLINE : ELSEWHERE;
        for (int i = 0; i < 100; i++) {
            uint64_t before = runtime_info().allocations;
            CHECK_OK(weir_program_run(program, NULL, &f.in, 1, &f.out, 1, NULL));
            if (i >= 8) CHECK_EQ(runtime_info().allocations, before);
            check_result(&f, 8, 4);
        }
    }
    only_once = 0;
    weir_program_release(program);
    feed_destroy(&f);
    weir_engine_release(engine);
}

/* Several runs of one program at once, each with a caller of its own. */
static void test_several(weir_threadpool *pool) {
    weir_engine *engine = make_engine(pool);
    later l = {.how = ELSEWHERE};
    weir_program *program = make_program(engine, &l, 4, 3);
    pthread_t threads[3];
    feed feeds[3];
    void *args[3][2];
    for (int i = 0; i < 3; i++) {
        feeds[i] = feed_create(engine);
        args[i][0] = program, args[i][1] = &feeds[i];
        CHECK(pthread_create(&threads[i], NULL, run_here, args[i]) == 0);
    }
    for (int i = 0; i < 3; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
        feed_destroy(&feeds[i]);
    }
    weir_program_release(program);
    weir_engine_release(engine);
}

/* Errors name the node; the program is reusable at once. */
static void test_errors(weir_threadpool *pool) {
    weir_engine *engine = make_engine(pool);
    feed f = feed_create(engine);
    static const how ways[] = {INLINE, ELSEWHERE, RACING};
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
        later l = {.how = ways[way], .status = WEIR_DATA_LOSS, .text = "the disk is gone"};
        weir_program *program = make_program(engine, &l, 1, 3);
        for (int i = 0; i < 5; i++) {
            CHECK_CODE(weir_program_run(program, NULL, &f.in, 1, &f.out, 1, NULL), WEIR_DATA_LOSS,
                       "node 'later 0.0': the disk is gone");
        }
        l.text = NULL;
        CHECK_CODE(weir_program_run(program, NULL, &f.in, 1, &f.out, 1, NULL), WEIR_DATA_LOSS,
                   "node 'later 0.0': its completion failed with DATA_LOSS");
        CHECK_EQ(atomic_load(&l.begun), 6);
        l.status = WEIR_OK;
        CHECK_OK(weir_program_run(program, NULL, &f.in, 1, &f.out, 1, NULL));
        check_result(&f, 1, 3);
        l.how = REFUSED;
        CHECK_CODE(weir_program_run(program, NULL, &f.in, 1, &f.out, 1, NULL), WEIR_UNAVAILABLE,
                   "node 'later 0.0': its compute_async function failed with UNAVAILABLE");
        weir_program_release(program);
    }
    feed_destroy(&f);
    weir_engine_release(engine);
}

/* A cancel begins nothing more, and waits for what is pending. */
static void test_cancel(weir_threadpool *pool) {
    weir_engine *engine = make_engine(pool);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "cancelled");
    feed f = feed_create(engine);
    later l = {.how = BY_HAND};
    weir_program *program = make_program(engine, &l, 1, 2);
    for (int i = 0; i < scale(20); i++) {
        weir_run *run = NULL;
        int32_t done = 1, cancelled = 0;
        atomic_store(&l.done, NULL);
        CHECK_OK(weir_program_start(program, stream, &f.in, 1, &f.out, 1, NULL, &run));
        EVENTUALLY(atomic_load(&l.done) != NULL);
        CHECK_OK(weir_run_query(run, &done));
        CHECK_EQ(done, 0);
        CHECK_OK(weir_run_cancel(run));
        CHECK_OK(weir_kernel_context_is_cancelled(atomic_load(&l.context), &cancelled));
        CHECK_EQ(cancelled, 1);
        CHECK_CODE(weir_run_synchronize(run, 1000000), WEIR_DEADLINE_EXCEEDED, "");
        CHECK_OK(weir_completion_done(atomic_load(&l.done), WEIR_OK, NULL));
        CHECK_CODE(weir_run_synchronize(run, WEIR_TIMEOUT_INFINITE), WEIR_CANCELLED, "cancelled");
        CHECK_EQ(atomic_load(&l.begun), i + 1);
        CHECK_CODE(weir_completion_done(atomic_load(&l.done), WEIR_OK, NULL), WEIR_FAILED_PRECONDITION,
                   "completed before");
        weir_run_release(run);
    }
    /* Not cancelled: both nodes by hand. */
    weir_run *run = NULL;
    l.how = ELSEWHERE;
    CHECK_OK(weir_program_start(program, stream, &f.in, 1, &f.out, 1, NULL, &run));
    CHECK_OK(weir_run_synchronize(run, WEIR_TIMEOUT_INFINITE));
    check_result(&f, 1, 2);
    weir_run_release(run);
    weir_completion *late = atomic_load(&l.done);
    weir_program_release(program);
    weir_stream_release(stream);
    feed_destroy(&f);
    weir_engine_release(engine);
    CHECK_CODE(weir_completion_done(late, WEIR_OK, NULL), WEIR_FAILED_PRECONDITION, "completed before");
}

/* A node of the run itself completes another one: the second of the two to begin completes the asynchronous one. */
static struct pair {
    pthread_mutex_t mutex;
    job waiting;
    int task_was_there;
} pair = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static int32_t begin_paired(void *user, weir_kernel_context *context, weir_completion *done) {
    job j = {.context = context, .done = done};
    (void)user;
    pthread_mutex_lock(&pair.mutex);
    int now = pair.task_was_there;
    if (!now) pair.waiting = j;
    pair.task_was_there = 0;
    pthread_mutex_unlock(&pair.mutex);
    if (now) finish(&j);
    return WEIR_OK;
}

static int32_t complete_paired(void *arg) {
    (void)arg;
    pthread_mutex_lock(&pair.mutex);
    job j = pair.waiting;
    pair.waiting.done = NULL;
    if (j.done == NULL) pair.task_was_there = 1;
    pthread_mutex_unlock(&pair.mutex);
    if (j.done != NULL) finish(&j);
    return WEIR_OK;
}

static void test_done_by_a_node(weir_threadpool *pool) {
    weir_engine *engine = make_engine(pool);
    weir_stream *streams[2] = {NULL, make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL)};
    weir_tensor_desc like = vector_desc(WIDTH);
    weir_host_kernel_desc desc = make_kernel_desc("paired", NULL, NULL);
    weir_kernel *kernel = NULL;
    desc.compute_async = begin_paired;
    desc.num_inputs = desc.num_outputs = 1;
    desc.inputs = desc.outputs = &like;
    CHECK_OK(weir_kernel_create_host(engine, &desc, &kernel));
    feed f = feed_create(engine);
    for (int cost = 0; cost < 2; cost++) {
        weir_graph *graph = make_graph("pair");
        weir_value v;
        CHECK_OK(weir_graph_add_input(graph, "x", &like, &v));
        weir_node task;
        CHECK_OK(weir_graph_add_kernel(graph, "paired", kernel, &v, 1, &v, 1, NULL));
        /* The longer path goes first. */
        CHECK_OK(weir_graph_add_task(graph, "completes", complete_paired, NULL, NULL, cost ? 1000000 : 1, &task));
        CHECK_OK(weir_graph_add_output(graph, "y", v));
        weir_program *program = compile(graph, engine);
        for (int s = 0; s < 2; s++) {
            for (int i = 0; i < scale(100); i++) {
                CHECK_OK(weir_program_run(program, streams[s], &f.in, 1, &f.out, 1, NULL));
                if (s == 1) CHECK_OK(weir_stream_synchronize(streams[s], WEIR_TIMEOUT_INFINITE));
                check_result(&f, 1, 1);
            }
        }
        weir_program_release(program);
        weir_graph_destroy(graph);
    }
    weir_kernel_release(kernel);
    weir_stream_release(streams[1]);
    feed_destroy(&f);
    weir_engine_release(engine);
}

/* A long chain of nodes that are done at once does not grow the stack. */
static pool_kind test_pool_of_chain;

static void *run_chain(void *arg) {
    weir_threadpool *pool = arg;
    weir_engine *engine = make_engine(pool);
    int length = scale(pool != NULL && test_pool_of_chain == POOL_INLINE ? 1000000 : 100000);
    later l = {.how = INLINE};
    weir_tensor_desc desc = vector_desc(WIDTH);
    weir_kernel *kernel = make_later_kernel(engine, "later", &l);
    weir_graph *graph = make_graph("chain");
    weir_value v;
    char name[32];
    CHECK_OK(weir_graph_add_input(graph, "x", &desc, &v));
    for (int i = 0; i < length; i++) {
        snprintf(name, sizeof name, "%d", i);
        CHECK_OK(weir_graph_add_kernel(graph, name, kernel, &v, 1, &v, 1, NULL));
    }
    CHECK_OK(weir_graph_add_output(graph, "y", v));
    weir_program *program = compile(graph, engine);
    weir_graph_destroy(graph);
    weir_kernel_release(kernel);
    feed f = feed_create(engine);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
    for (int s = 0; s < 2; s++) {
        CHECK_OK(weir_program_run(program, s == 0 ? NULL : stream, &f.in, 1, &f.out, 1, NULL));
        CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
        check_result(&f, 1, length);
    }
    weir_stream_release(stream);
    feed_destroy(&f);
    weir_program_release(program);
    weir_engine_release(engine);
    return NULL;
}

static void test_chain(weir_threadpool *pool) {
    pthread_t thread;
    pthread_attr_t attr;
    CHECK(pthread_attr_init(&attr) == 0);
    CHECK(pthread_attr_setstacksize(&attr, (WITH_TSAN || WITH_ASAN ? 2048 : 256) * 1024) == 0);
    CHECK(pthread_create(&thread, &attr, run_chain, pool) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(pthread_attr_destroy(&attr) == 0);
}

/* Waiting in a worker would keep it from what may have to complete the node. */
typedef struct inside {
    weir_program *program;
    feed *f;
    atomic_int done;
} inside;

static int32_t run_inside(void *arg, int64_t begin, int64_t end, int32_t slot) {
    inside *i = arg;
    (void)begin, (void)end, (void)slot;
    CHECK_CODE(weir_program_run(i->program, NULL, &i->f->in, 1, &i->f->out, 1, NULL), WEIR_FAILED_PRECONDITION,
               "would block a worker of a thread pool");
    atomic_fetch_add(&i->done, 1);
    return WEIR_OK;
}

static int32_t run_in_task(void *arg) {
    return run_inside(arg, 0, 1, 0);
}

static void test_in_a_worker(void) {
    weir_threadpool *pool = NULL;
    test_pool *threads = test_pool_create_threaded(POOL_FIFO, 1, &pool);
    weir_engine *engine = make_engine(pool);
    feed f = feed_create(engine);
    later l = {.how = ELSEWHERE};
    inside i = {.program = make_program(engine, &l, 1, 1), .f = &f};
    weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
    CHECK_OK(weir_enqueue_task(stream, run_in_task, &i, NULL));
    EVENTUALLY(atomic_load(&i.done) == 1); /* who waits for the stream might run the task, and is no worker */
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    weir_stream_release(stream);
    weir_program_release(i.program);
    feed_destroy(&f);
    weir_engine_release(engine);
    weir_threadpool_release(pool);
    test_pool_destroy(threads);
}

static void test_signatures(void) {
    weir_engine *engine = make_engine(NULL);
    later l = {.how = INLINE};
    weir_host_kernel_desc desc = make_kernel_desc("both", compute_sum, &l);
    weir_kernel *kernel = NULL;
    desc.compute_async = begin_later;
    CHECK_CODE(weir_kernel_create_host(engine, &desc, &kernel), WEIR_INVALID_ARGUMENT,
               "desc->compute and desc->compute_async are given");
    desc.compute = NULL, desc.compute_async = NULL;
    CHECK_CODE(weir_kernel_create_host(engine, &desc, &kernel), WEIR_INVALID_ARGUMENT, "desc->compute is NULL");
    weir_engine_release(engine);
}

int main(void) {
    weir_runtime_info before = runtime_info();
    finisher_start();
    test_signatures();
    test_ways(NULL);
    test_allocations(NULL);
    test_several(NULL);
    test_errors(NULL);
    test_cancel(NULL);
    test_chain(NULL);
    for (int kind = 0; kind < POOL_KINDS; kind++) {
        for (int threads = 1; threads <= 3; threads += 2) {
            weir_threadpool *pool = NULL;
            if (kind == POOL_LATE) continue;
            test_pool *of = test_pool_create(kind, threads, &pool);
            test_ways(pool);
            if (kind == POOL_FIFO) test_allocations(pool);
            test_several(pool);
            test_errors(pool);
            test_cancel(pool);
            test_done_by_a_node(pool);
            test_pool_of_chain = test_pool_kind(of);
            if (threads == 1 && (kind == POOL_INLINE || kind == POOL_FIFO)) test_chain(pool);
            weir_threadpool_release(pool);
            test_pool_destroy(of);
        }
    }
    test_in_a_worker();
    finisher_stop();
    check_released(&before);
    puts("ok");
    return 0;
}

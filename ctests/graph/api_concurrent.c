/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Programs that have no more than so many runs at once: who waits, who is refused, and who is part of another run.
 */

#include <pthread.h>
#include <weir/inspect.h>

#include "make.h"
#include "test_pools.h"

/* What the one task of the program does. */
typedef struct world {
    weir_engine *engine;
    weir_threadpool *pool;
    weir_program *program;
    int most;
    atomic_int inside, highest, runs;
    atomic_int held, begun; /* tasks wait while held */
    atomic_int depth;       /* runs the program itself from inside, so many times */
    weir_stream *awaited;   /* waits for it from inside */
    weir_status status;
} world;

static int32_t be_inside(void *arg) {
    world *w = arg;
    int depth = atomic_load(&w->depth);
    if (depth > 0) {
        /* Inside of a run of its own: never refused, never waits. */
        atomic_store(&w->depth, depth - 1);
        CHECK_OK(weir_program_run(w->program, NULL, NULL, 0, NULL, 0, NULL));
        return WEIR_OK;
    }
    if (w->awaited != NULL) {
        weir_stream *stream = w->awaited;
        w->awaited = NULL;
        w->status = weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE);
        return WEIR_OK;
    }
    int now = atomic_fetch_add(&w->inside, 1) + 1, highest = atomic_load(&w->highest);
    while (now > highest && !atomic_compare_exchange_weak(&w->highest, &highest, now)) {
    }
    atomic_fetch_add(&w->begun, 1);
    sleep_ns(20000);
    while (atomic_load(&w->held)) sleep_ns(20000);
    atomic_fetch_sub(&w->inside, 1);
    atomic_fetch_add(&w->runs, 1);
    return WEIR_OK;
}

static weir_program *compile_bounded(world *w, weir_graph *graph, uint32_t most) {
    weir_compile_options options = {.struct_size = sizeof options, .max_concurrent_runs = most};
    weir_program *program = NULL;
    CHECK_OK(weir_graph_compile(graph, &w->engine, 1, &options, &program));
    options.max_concurrent_runs = 7;
    CHECK_OK(weir_program_get_options(program, &options));
    CHECK_EQ(options.max_concurrent_runs, most);
    weir_graph_destroy(graph);
    return program;
}

static void world_create(world *w, weir_threadpool *pool, int most) {
    weir_graph *graph = make_graph("bounded");
    weir_node node;
    memset(w, 0, sizeof *w);
    w->engine = make_engine(pool);
    w->pool = pool;
    w->most = most;
    CHECK_OK(weir_graph_add_task(graph, "inside", be_inside, w, NULL, 1000, &node));
    w->program = compile_bounded(w, graph, (uint32_t)most);
}

static void world_destroy(world *w) {
    weir_program_release(w->program);
    weir_engine_release(w->engine);
}

static weir_status run(world *w, weir_stream *stream, const weir_run_options *options) {
    return weir_program_run(w->program, stream, NULL, 0, NULL, 0, options);
}

static void *run_often(void *arg) {
    world *w = arg;
    for (int i = 0; i < scale(40); i++) CHECK_OK(run(w, NULL, NULL));
    return NULL;
}

static void *run_once(void *arg) {
    CHECK_OK(run(arg, NULL, NULL));
    return NULL;
}

/* Many threads of the host's: all get their turn, and never more at once than so many. */
static void test_threads(weir_threadpool *pool, int most) {
    enum { THREADS = 6 };
    world w;
    pthread_t threads[THREADS];
    world_create(&w, pool, most);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, run_often, &w) == 0);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK_EQ(atomic_load(&w.runs), THREADS * scale(40));
    CHECK(atomic_load(&w.highest) <= most);
    world_destroy(&w);
}

static void wait_for(atomic_int *value, int at_least) {
    for (int i = 0; atomic_load(value) < at_least; i++) {
        CHECK(i < 100000);
        sleep_ns(100000);
    }
}

static void test_no_wait(void) {
    world w;
    pthread_t holder, waiter;
    const weir_run_options hasty = {.struct_size = sizeof hasty, .flags = WEIR_RUN_NO_WAIT};
    const weir_run_options late = {.struct_size = sizeof late, .deadline_ns = 3000000};
    world_create(&w, NULL, 1);
    CHECK_OK(run(&w, NULL, &hasty));

    atomic_store(&w.begun, 0);
    atomic_store(&w.held, 1);
    CHECK(pthread_create(&holder, NULL, run_once, &w) == 0);
    wait_for(&w.begun, 1);
    CHECK_CODE(run(&w, NULL, &hasty), WEIR_RESOURCE_EXHAUSTED,
               "program 'bounded' has as many runs under way as it may have at once, 1, and the run is not to wait");
    CHECK_CODE(run(&w, NULL, &late), WEIR_DEADLINE_EXCEEDED, "before program 'bounded' had less than 1 runs under way");
    CHECK_CODE(weir_program_run_many(w.program, 5, NULL, 0, NULL, 0, &hasty), WEIR_RESOURCE_EXHAUSTED, "'bounded'");
    weir_stream *stream = make_stream(w.engine, WEIR_STREAM_DEFAULT, NULL, NULL);
    CHECK_CODE(run(&w, stream, &hasty), WEIR_RESOURCE_EXHAUSTED, "'bounded'");
    CHECK(pthread_create(&waiter, NULL, run_once, &w) == 0);
    sleep_ns(2000000);
    CHECK_EQ(atomic_load(&w.begun), 1);
    atomic_store(&w.held, 0);
    CHECK(pthread_join(holder, NULL) == 0);
    CHECK(pthread_join(waiter, NULL) == 0);
    CHECK_EQ(atomic_load(&w.runs), 3);
    CHECK_EQ(atomic_load(&w.highest), 1);
    CHECK_OK(run(&w, NULL, &hasty));
    CHECK_OK(run(&w, stream, &hasty));
    weir_stream_release(stream);
    world_destroy(&w);
}

/* Streams take runs without blocking the caller, and hold them back without a thread; on pools of one thread and of
 * many. */
static void test_streams(weir_threadpool *pool, int most) {
    enum { STREAMS = 5, EACH = 20 };
    world w;
    weir_stream *streams[STREAMS];
    world_create(&w, pool, most);
    for (int i = 0; i < STREAMS; i++) streams[i] = make_stream(w.engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
    for (int k = 0; k < EACH; k++) {
        for (int i = 0; i < STREAMS; i++) CHECK_OK(run(&w, streams[i], NULL));
    }
    CHECK_OK(run(&w, NULL, NULL));
    for (int i = 0; i < STREAMS; i++) CHECK_OK(weir_stream_synchronize(streams[i], WEIR_TIMEOUT_INFINITE));
    CHECK_EQ(atomic_load(&w.runs), STREAMS * EACH + 1);
    CHECK(atomic_load(&w.highest) <= most);
    for (int i = 0; i < STREAMS; i++) weir_stream_release(streams[i]);
    world_destroy(&w);
}

/* On streams with threads of their own: refused at the call, cancelled in the line, gone on with behind it. */
static void test_streams_in_line(void) {
    world w;
    weir_run *first = NULL, *second = NULL, *third = NULL;
    world_create(&w, NULL, 1);
    weir_stream *a = make_stream(w.engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "a");
    weir_stream *b = make_stream(w.engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "b");
    const weir_run_options hasty = {.struct_size = sizeof hasty, .flags = WEIR_RUN_NO_WAIT};
    atomic_store(&w.held, 1);
    CHECK_OK(weir_program_start(w.program, a, NULL, 0, NULL, 0, &hasty, &first));
    wait_for(&w.begun, 1);
    CHECK_CODE(weir_program_start(w.program, b, NULL, 0, NULL, 0, &hasty, &second), WEIR_RESOURCE_EXHAUSTED, "'bounded'");
    CHECK(second == NULL);
    CHECK_OK(weir_program_start(w.program, b, NULL, 0, NULL, 0, NULL, &second));
    CHECK_OK(weir_program_start(w.program, b, NULL, 0, NULL, 0, NULL, &third));
    sleep_ns(1000000);
    CHECK_OK(weir_run_cancel(second));
    CHECK_EQ(atomic_load(&w.begun), 1);
    atomic_store(&w.held, 0);
    CHECK_OK(weir_run_synchronize(first, WEIR_TIMEOUT_INFINITE));
    CHECK_CODE(weir_run_synchronize(second, WEIR_TIMEOUT_INFINITE), WEIR_CANCELLED, "");
    CHECK_OK(weir_run_synchronize(third, WEIR_TIMEOUT_INFINITE));
    CHECK_EQ(atomic_load(&w.begun), 2);
    weir_run_release(first);
    CHECK_OK(weir_program_start(w.program, b, NULL, 0, NULL, 0, &hasty, &first));
    CHECK_OK(weir_run_synchronize(first, WEIR_TIMEOUT_INFINITE));
    weir_run_release(first);
    weir_run_release(second);
    weir_run_release(third);
    weir_stream_release(a);
    weir_stream_release(b);
    world_destroy(&w);
}

/* A program that runs itself, on one place. */
static void test_recursion(weir_threadpool *pool) {
    world w;
    world_create(&w, pool, 1);
    weir_stream *stream = make_stream(w.engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
    weir_stream *direct = make_stream(w.engine, WEIR_STREAM_DEFAULT, NULL, NULL);
    weir_stream *on[] = {NULL, direct, stream};
    for (int i = 0; i < 3; i++) {
        atomic_store(&w.depth, 3);
        CHECK_OK(run(&w, on[i], NULL));
        if (on[i] != NULL) CHECK_OK(weir_stream_synchronize(on[i], WEIR_TIMEOUT_INFINITE));
        CHECK_EQ(atomic_load(&w.depth), 0);
        CHECK_EQ(atomic_load(&w.runs), i + 1);
    }
    weir_stream_release(stream);
    weir_stream_release(direct);
    world_destroy(&w);
}

/* A node that is the program, twice in a graph of its own bound: takes no place. */
static void test_nodes(weir_threadpool *pool) {
    world w;
    weir_graph *graph = make_graph("outer");
    world_create(&w, pool, 1);
    CHECK_OK(weir_graph_add_program(graph, "one", w.program, NULL, 0, NULL, 0, NULL));
    CHECK_OK(weir_graph_add_program(graph, "two", w.program, NULL, 0, NULL, 0, NULL));
    weir_program *outer = compile_bounded(&w, graph, 1);
    for (int i = 0; i < 10; i++) CHECK_OK(weir_program_run(outer, NULL, NULL, 0, NULL, 0, NULL));
    CHECK_EQ(atomic_load(&w.runs), 20);
    weir_program_release(outer);
    world_destroy(&w);
}

/* A task of a pool does not sleep for a place. */
static int32_t run_in_task(void *arg) {
    world *w = arg;
    w->status = run(w, NULL, NULL);
    CHECK(w->status == WEIR_FAILED_PRECONDITION);
    CHECK_TEXT(weir_last_error_message(), "program 'bounded' has as many runs under way as it may have at once, 1, and this thread");
    return WEIR_OK;
}

static void test_in_a_task(weir_threadpool *pool) {
    world w;
    pthread_t holder;
    world_create(&w, NULL, 1);
    weir_engine *engine = make_engine(pool);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
    atomic_store(&w.held, 1);
    CHECK(pthread_create(&holder, NULL, run_once, &w) == 0);
    wait_for(&w.begun, 1);
    CHECK_OK(weir_enqueue_task(stream, run_in_task, &w, NULL));
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    CHECK_EQ(w.status, WEIR_FAILED_PRECONDITION);
    atomic_store(&w.held, 0);
    CHECK(pthread_join(holder, NULL) == 0);
    CHECK_OK(run(&w, NULL, NULL));
    weir_stream_release(stream);
    weir_engine_release(engine);
    world_destroy(&w);
}

/* A run that waits for a stream on which another run of the program waits for the place of the first. */
static void test_circle(void) {
    world w;
    gate g;
    memset(&g, 0, sizeof g);
    world_create(&w, NULL, 1);
    weir_stream *stream = make_stream(w.engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "awaited");
    /* The stream comes to its run when the outer one has begun. */
    CHECK_OK(weir_enqueue_task(stream, pass_gate, &g, NULL));
    CHECK_OK(run(&w, stream, NULL));
    w.awaited = stream;
    pthread_t opener;
    CHECK(pthread_create(&opener, NULL, run_once, &w) == 0);
    sleep_ns(2000000);
    open_gate(&g);
    CHECK(pthread_join(opener, NULL) == 0);
    CHECK_EQ(w.status, WEIR_FAILED_PRECONDITION);
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    CHECK_EQ(atomic_load(&w.runs), 1);
    weir_stream_release(stream);
    world_destroy(&w);
}

static void test_many(weir_threadpool *pool, int most) {
    world w;
    world_create(&w, pool, most);
    CHECK_OK(weir_program_run_many(w.program, 40, NULL, 0, NULL, 0, NULL));
    CHECK_EQ(atomic_load(&w.runs), 40);
    CHECK(atomic_load(&w.highest) <= most);
    world_destroy(&w);
}

static void test_no_allocations(void) {
    world w;
    world_create(&w, NULL, 2);
    weir_stream *stream = make_stream(w.engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
    for (int i = 0; i < 20; i++) {
        uint64_t before = runtime_info().allocations;
        CHECK_OK(run(&w, NULL, NULL));
        CHECK_OK(run(&w, stream, NULL));
        CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
        if (i > 0) CHECK_EQ(runtime_info().allocations, before);
    }
    weir_stream_release(stream);
    world_destroy(&w);
}

int main(void) {
    weir_runtime_info before = runtime_info();
    test_threads(NULL, 1);
    test_threads(NULL, 3);
    test_streams(NULL, 1);
    test_streams(NULL, 2);
    test_no_wait();
    test_streams_in_line();
    test_recursion(NULL);
    test_nodes(NULL);
    test_circle();
    test_many(NULL, 1);
    test_no_allocations();
    for (int kind = 0; kind < POOL_KINDS; kind++) {
        for (int threads = 1; threads <= 3; threads += 2) {
            weir_threadpool *pool = NULL;
            if (kind == POOL_LATE) continue;
            test_pool *of = test_pool_create(kind, threads, &pool);
            test_threads(pool, 2);
            test_streams(pool, 1);
            test_streams(pool, 2);
            test_recursion(pool);
            test_nodes(pool);
            test_many(pool, 2);
            weir_threadpool_release(pool);
            test_pool_destroy(of);
        }
    }
    weir_threadpool *pool = NULL;
    test_pool *of = test_pool_create_threaded(POOL_FIFO, 1, &pool);
    test_in_a_task(pool);
    weir_threadpool_release(pool);
    test_pool_destroy(of);
    check_released(&before);
    puts("ok");
    return 0;
}

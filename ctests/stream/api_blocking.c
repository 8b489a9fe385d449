/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Kernels that may block: refused without a pool for them, run on it, or by a thread that would only wait for them.
 */

#include <pthread.h>
#include <weir/inspect.h>

#include "make.h"
#include "test_pools.h"

enum { WIDTH = 8, READS = 3 };

typedef struct reader {
    gate gate;
    test_pool *lane;    /* where it must run; NULL: anywhere */
    atomic_int computed; /* of the other kernels */
} reader;

static void add_one(const weir_kernel_context *context) {
    const weir_tensor_view *in = NULL, *result = NULL;
    size_t count = 0;
    CHECK_OK(weir_kernel_context_get_inputs(context, &in, &count));
    CHECK_OK(weir_kernel_context_get_outputs(context, &result, &count));
    for (int i = 0; i < WIDTH; i++) ((float *)result[0].data)[i] = ((const float *)in[0].data)[i] + 1;
}

static int32_t read_blocking(void *user, weir_kernel_context *context) {
    reader *r = user;
    if (r->lane != NULL) CHECK(test_pool_is_here(r->lane));
    add_one(context);
    return pass_gate(&r->gate);
}

static int32_t compute_one(void *user, weir_kernel_context *context) {
    reader *r = user;
    add_one(context);
    atomic_fetch_add(&r->computed, 1);
    return WEIR_OK;
}

typedef struct program {
    weir_engine *engine;
    weir_graph *graph;
    weir_kernel *kernel;
    weir_program *program;
    weir_tensor *in, *outs[READS + 1];
} program;

/* x -> `READS` nodes that block -> as many that do not; and one that does not block beside them. */
static program program_create(weir_threadpool *pool, weir_threadpool *lane, reader *r) {
    program p = {.engine = make_engine(pool)};
    weir_tensor_desc like = vector_desc(WIDTH);
    weir_host_kernel_desc desc = make_kernel_desc("read", read_blocking, r);
    weir_value x, v;
    char name[16];
    desc.num_inputs = desc.num_outputs = 1;
    desc.inputs = desc.outputs = &like;
    desc.flags = WEIR_KERNEL_MAY_BLOCK;
    CHECK_OK(weir_kernel_create_host(p.engine, &desc, &p.kernel));
    weir_kernel *plain = make_unary_kernel(p.engine, "plain", compute_one, r, &like);
    p.graph = make_graph("reads");
    CHECK_OK(weir_graph_add_input(p.graph, "x", &like, &x));
    for (int i = 0; i <= READS; i++) {
        v = x;
        snprintf(name, sizeof name, "read %d", i);
        if (i < READS) CHECK_OK(weir_graph_add_kernel(p.graph, name, p.kernel, &v, 1, &v, 1, NULL));
        snprintf(name, sizeof name, "plain %d", i);
        CHECK_OK(weir_graph_add_kernel(p.graph, name, plain, &v, 1, &v, 1, NULL));
        snprintf(name, sizeof name, "y%d", i);
        CHECK_OK(weir_graph_add_output(p.graph, name, v));
        p.outs[i] = make_tensor(p.engine, like);
    }
    CHECK_CODE(weir_graph_compile(p.graph, &p.engine, 1, NULL, &p.program), WEIR_FAILED_PRECONDITION,
               "node 'read 0' may block a worker of the pool; give a blocking lane");
    weir_compile_options options = {.struct_size = sizeof options, .blocking_threadpool = lane};
    CHECK_OK(weir_graph_compile(p.graph, &p.engine, 1, &options, &p.program));
    options.blocking_threadpool = NULL;
    CHECK_OK(weir_program_get_options(p.program, &options));
    CHECK(options.blocking_threadpool == lane);
    weir_kernel_release(plain);
    p.in = make_tensor(p.engine, like);
    fill(p.in, 1);
    return p;
}

static void program_destroy(program *p) {
    for (int i = 0; i <= READS; i++) weir_tensor_release(p->outs[i]);
    weir_tensor_release(p->in);
    weir_program_release(p->program);
    weir_graph_destroy(p->graph);
    weir_kernel_release(p->kernel);
    weir_engine_release(p->engine);
}

static void check_results(const program *p) {
    for (int i = 0; i <= READS; i++) {
        for (int k = 0; k < WIDTH; k++) CHECK(floats(p->outs[i])[k] == floats(p->in)[k] + (i < READS ? 2 : 1));
        memset(floats(p->outs[i]), 0, WIDTH * sizeof(float));
    }
}

/* All of them block at once, while one thread does the rest. */
static void test_beside(weir_threadpool *pool) {
    weir_threadpool *lane = NULL;
    test_pool *lanes = test_pool_create_exact(POOL_FIFO, READS, &lane);
    reader r = {.lane = lanes};
    program p = program_create(pool, lane, &r);
    weir_stream *stream = make_stream(p.engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
    for (int i = 0; i < scale(20); i++) {
        atomic_store(&r.gate.begun, 0), atomic_store(&r.gate.open, 0), atomic_store(&r.computed, 0);
        CHECK_OK(weir_program_run(p.program, stream, &p.in, 1, p.outs, READS + 1, NULL));
        EVENTUALLY(atomic_load(&r.gate.begun) == READS);
        EVENTUALLY(atomic_load(&r.computed) == 1);
        open_gate(&r.gate);
        CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
        check_results(&p);
        /* A caller that waits does one itself that no thread of the lane has come to for a while. */
        r.lane = NULL;
        CHECK_OK(weir_program_run(p.program, NULL, &p.in, 1, p.outs, READS + 1, NULL));
        check_results(&p);
        r.lane = lanes;
    }
    r.lane = NULL;
    r.gate.result = WEIR_DATA_LOSS;
    CHECK_CODE(weir_program_run(p.program, NULL, &p.in, 1, p.outs, READS + 1, NULL), WEIR_DATA_LOSS, "node 'read ");
    weir_stream_release(stream);
    program_destroy(&p);
    weir_threadpool_release(lane);
    test_pool_destroy(lanes);
}

/* A lane that refuses: the caller does it, also what a worker has come to; a worker does not. */
static void test_refusing(void) {
    weir_threadpool *lane = NULL, *pool = NULL;
    test_pool *lanes = test_pool_create_exact(POOL_REFUSING, 1, &lane);
    test_pool *workers = test_pool_create_exact(POOL_FIFO, 1, &pool);
    reader r = {.gate = {.open = 1}};
    program p = program_create(NULL, lane, &r);
    CHECK_OK(weir_program_run(p.program, NULL, &p.in, 1, p.outs, READS + 1, NULL));
    check_results(&p);
    weir_stream *stream = make_stream(p.engine, WEIR_STREAM_ASYNCHRONOUS, pool, NULL);
    CHECK_OK(weir_program_run(p.program, stream, &p.in, 1, p.outs, READS + 1, NULL));
    /* Waiting would do it here, where it may block. */
    for (int32_t done = 0; !done;) CHECK_OK(weir_stream_query(stream, &done));
    CHECK_CODE(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE), WEIR_UNAVAILABLE,
               "the pool for kernels that block refuses it");
    weir_stream_release(stream);
    /* On streams: not on a pool's workers. */
    stream = make_stream(p.engine, WEIR_STREAM_ASYNCHRONOUS, pool, "on a pool");
    CHECK_CODE(weir_enqueue(stream, p.kernel, &p.in, 1, p.outs, 1), WEIR_FAILED_PRECONDITION,
               "may block a worker of the pool of stream 'on a pool'");
    weir_stream_release(stream);
    stream = make_stream(p.engine, WEIR_STREAM_DEFAULT, NULL, NULL);
    CHECK_OK(weir_enqueue(stream, p.kernel, &p.in, 1, p.outs, 1));
    weir_stream_release(stream);
    program_destroy(&p);
    p = program_create(pool, lane, &r);
    for (int i = 0; i < scale(50); i++) {
        CHECK_OK(weir_program_run(p.program, NULL, &p.in, 1, p.outs, READS + 1, NULL));
        check_results(&p);
    }
    program_destroy(&p);
    weir_threadpool_release(lane);
    weir_threadpool_release(pool);
    test_pool_destroy(lanes);
    test_pool_destroy(workers);
}

typedef struct waiter {
    weir_stream *stream;
    atomic_int begun;
} waiter;

static int32_t wait_for_stream(void *arg) {
    waiter *w = arg;
    atomic_store(&w->begun, 1);
    CHECK_OK(weir_stream_synchronize(w->stream, WEIR_TIMEOUT_INFINITE));
    return WEIR_OK;
}

/* The lane's one thread waits for a worker, which waits for what the lane is to do: the worker does it. */
static void test_waiting_worker(void) {
    weir_threadpool *lane = NULL, *pool = NULL, *third = NULL;
    test_pool *lanes = test_pool_create_exact(POOL_FIFO, 1, &lane);
    test_pool *workers = test_pool_create_exact(POOL_FULL, 1, &pool), *thirds = test_pool_create_exact(POOL_FIFO, 1, &third);
    reader r = {.gate = {.open = 1}};
    gate occupied = {0};
    program p = program_create(NULL, lane, &r);
    weir_stream *run = make_stream(p.engine, WEIR_STREAM_ASYNCHRONOUS, third, "run");
    weir_stream *worker = make_stream(p.engine, WEIR_STREAM_ASYNCHRONOUS, pool, "worker");
    weir_stream *last = make_stream(p.engine, WEIR_STREAM_ASYNCHRONOUS, lane, "last");
    CHECK_OK(weir_enqueue_task(last, pass_gate, &occupied, NULL));
    waiter for_worker = {.stream = worker}, for_run = {.stream = run};
    CHECK_OK(weir_enqueue_task(last, wait_for_stream, &for_worker, NULL));
    EVENTUALLY(atomic_load(&occupied.begun) == 1);
    CHECK_OK(weir_program_run(p.program, run, &p.in, 1, p.outs, READS + 1, NULL));
    CHECK_OK(weir_enqueue_task(worker, wait_for_stream, &for_run, NULL));
    EVENTUALLY(atomic_load(&for_run.begun) == 1);
    open_gate(&occupied);
    /* A wait here would do it. */
    for (int32_t done = 0; !done; sleep_ns(1000000)) CHECK_OK(weir_stream_query(last, &done));
    CHECK_OK(weir_stream_synchronize(worker, WEIR_TIMEOUT_INFINITE));
    CHECK_OK(weir_stream_synchronize(last, WEIR_TIMEOUT_INFINITE));
    check_results(&p);
    weir_stream *const streams[] = {run, worker, last};
    for (int i = 0; i < 3; i++) weir_stream_release(streams[i]);
    program_destroy(&p);
    weir_threadpool *const handles[] = {lane, pool, third};
    for (int i = 0; i < 3; i++) weir_threadpool_release(handles[i]);
    test_pool_destroy(lanes);
    test_pool_destroy(workers);
    test_pool_destroy(thirds);
}

/* The lane's one thread waits for the host, which waits for the run a little at a time: it begins by itself what the
 * lane has left for long, however short each wait is. */
static void test_short_waits(void) {
    weir_threadpool *lane = NULL, *pool = NULL;
    test_pool *lanes = test_pool_create_exact(POOL_FIFO, 1, &lane);
    test_pool *workers = test_pool_create_exact(POOL_FIFO, 1, &pool);
    reader r = {.gate = {.open = 1}};
    gate occupied = {0};
    program p = program_create(NULL, lane, &r);
    weir_stream *run = make_stream(p.engine, WEIR_STREAM_ASYNCHRONOUS, pool, "run");
    weir_stream *before = make_stream(p.engine, WEIR_STREAM_ASYNCHRONOUS, lane, "before");
    CHECK_OK(weir_enqueue_task(before, pass_gate, &occupied, NULL));
    EVENTUALLY(atomic_load(&occupied.begun) == 1);
    CHECK_OK(weir_program_run(p.program, run, &p.in, 1, p.outs, READS + 1, NULL));
    EVENTUALLY(weir_stream_synchronize(run, 5000000) == WEIR_OK);
    open_gate(&occupied);
    CHECK_OK(weir_stream_synchronize(before, WEIR_TIMEOUT_INFINITE));
    check_results(&p);
    weir_stream_release(run);
    weir_stream_release(before);
    program_destroy(&p);
    weir_threadpool_release(lane);
    weir_threadpool_release(pool);
    test_pool_destroy(lanes);
    test_pool_destroy(workers);
}

static void test_no_lane(void) {
    weir_threadpool *lane = NULL;
    test_pool *lanes = test_pool_create_exact(POOL_PARALLEL_FOR, 1, &lane);
    weir_graph *graph = make_graph("empty");
    weir_engine *engine = make_engine(NULL);
    weir_program *program = NULL;
    const weir_compile_options options = {.struct_size = sizeof options, .blocking_threadpool = lane};
    CHECK_CODE(weir_graph_compile(graph, &engine, 1, &options, &program), WEIR_INVALID_ARGUMENT,
               "options->blocking_threadpool takes no single tasks");
    weir_graph_destroy(graph);
    weir_engine_release(engine);
    weir_threadpool_release(lane);
    test_pool_destroy(lanes);
}

int main(void) {
    weir_runtime_info before = runtime_info();
    test_no_lane();
    test_refusing();
    test_waiting_worker();
    test_short_waits();
    test_beside(NULL);
    for (int kind = 0; kind < POOL_KINDS; kind++) {
        weir_threadpool *pool = NULL;
        if (kind == POOL_LATE) continue;
        test_pool *of = test_pool_create(kind, 1, &pool);
        test_beside(pool);
        weir_threadpool_release(pool);
        test_pool_destroy(of);
    }
    check_released(&before);
    puts("ok");
    return 0;
}

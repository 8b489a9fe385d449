/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Programs as nodes whose kernels complete later or may block: at once, later, by other threads, by hand; two deep;
 * with errors, cancels and deadlines; on every kind of pool and stream. No thread waits for them.
 */

#include <weir/ops.h>
#include <weir/inspect.h>

#include "later.h"

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

static void check_result(const feed *f, float wide, float deep) {
    for (int i = 0; i < WIDTH; i++) CHECK_EQ(floats(f->out)[i], wide * (floats(f->in)[i] + deep));
    memset(floats(f->out), 0, WIDTH * sizeof(float));
}

static weir_program *compile_graph(weir_graph *graph, weir_engine *engine) {
    weir_program *program = compile(graph, engine);
    weir_graph_destroy(graph);
    return program;
}

/* Adds the sum of `wide` values. */
static weir_value add_sum(weir_graph *graph, weir_engine *engine, const weir_value *values, int wide) {
    weir_kernel *add = NULL;
    weir_value sum = values[0];
    CHECK_OK(weir_kernel_create_binary(engine, BINARY(ADD), NULL, &add));
    for (int i = 1; i < wide; i++) {
        weir_value both[2] = {sum, values[i]};
        char name[16];
        snprintf(name, sizeof name, "sum %d", i);
        CHECK_OK(weir_graph_add_kernel(graph, name, add, both, 2, &sum, 1, NULL));
    }
    weir_kernel_release(add);
    return sum;
}

/* x -> 2 chains of 2 nodes that complete later -> their sum, 2 * (x + 2). */
static weir_program *make_inner(weir_engine *engine, later *l) {
    weir_tensor_desc desc = vector_desc(WIDTH);
    weir_kernel *kernel = make_later_kernel(engine, "later", l);
    weir_graph *graph = make_graph("inner");
    weir_value x, ends[2];
    char name[16];
    CHECK_OK(weir_graph_add_input(graph, "x", &desc, &x));
    for (int i = 0; i < 2; i++) {
        ends[i] = x;
        for (int k = 0; k < 2; k++) {
            snprintf(name, sizeof name, "later %d.%d", i, k);
            CHECK_OK(weir_graph_add_kernel(graph, name, kernel, &ends[i], 1, &ends[i], 1, NULL));
        }
    }
    CHECK_OK(weir_graph_add_output(graph, "y", add_sum(graph, engine, ends, 2)));
    weir_kernel_release(kernel);
    return compile_graph(graph, engine);
}

/* x -> one node that completes later. */
static weir_program *make_single(weir_engine *engine, later *l) {
    weir_tensor_desc desc = vector_desc(WIDTH);
    weir_kernel *kernel = make_later_kernel(engine, "later", l);
    weir_graph *graph = make_graph("single");
    weir_value x;
    CHECK_OK(weir_graph_add_input(graph, "x", &desc, &x));
    CHECK_OK(weir_graph_add_kernel(graph, "later", kernel, &x, 1, &x, 1, NULL));
    CHECK_OK(weir_graph_add_output(graph, "y", x));
    weir_kernel_release(kernel);
    return compile_graph(graph, engine);
}

/* x -> `wide` nodes side by side, each the program -> their sum. */
static weir_program *make_outer(weir_engine *engine, weir_program *inner, const char *name, int wide) {
    weir_tensor_desc desc = vector_desc(WIDTH);
    weir_graph *graph = make_graph(name);
    weir_value x, ends[8];
    char node[32];
    CHECK_OK(weir_graph_add_input(graph, "x", &desc, &x));
    for (int i = 0; i < wide; i++) {
        snprintf(node, sizeof node, "%s %d", name, i);
        CHECK_OK(weir_graph_add_program(graph, node, inner, &x, 1, &ends[i], 1, NULL));
    }
    CHECK_OK(weir_graph_add_output(graph, "y", add_sum(graph, engine, ends, wide)));
    return compile_graph(graph, engine);
}

/* Every way to be done, in runs inside of runs inside of runs. */
static void test_ways(weir_threadpool *pool) {
    static const how ways[] = {INLINE, ELSEWHERE, RACING};
    enum { MIDDLE = 3, TOP = 2 };
    weir_engine *engine = make_engine(pool);
    feed f = feed_create(engine);
    weir_stream *streams[3] = {NULL, make_stream(engine, WEIR_STREAM_DEFAULT, NULL, NULL),
                               make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "nested")};
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
        later l = {.how = ways[way]};
        weir_program *inner = make_inner(engine, &l), *middle = make_outer(engine, inner, "middle", MIDDLE);
        weir_program *top = make_outer(engine, middle, "top", TOP);
        weir_program_release(inner);
        weir_program_release(middle);
        int rounds = scale(ways[way] == RACING ? 10 : 40);
        for (int s = 0; s < 3; s++) {
            for (int i = 0; i < rounds; i++) {
                CHECK_OK(weir_program_run(top, streams[s], &f.in, 1, &f.out, 1, NULL));
                if (streams[s] != NULL) CHECK_OK(weir_stream_synchronize(streams[s], WEIR_TIMEOUT_INFINITE));
                check_result(&f, TOP * MIDDLE * 2, 2);
            }
        }
        CHECK_EQ(atomic_load(&l.begun), 3 * rounds * TOP * MIDDLE * 4);
        for (int i = 0; i < rounds; i++) CHECK_OK(weir_program_run(top, streams[2], &f.in, 1, &f.out, 1, NULL));
        CHECK_OK(weir_stream_synchronize(streams[2], WEIR_TIMEOUT_INFINITE));
        check_result(&f, TOP * MIDDLE * 2, 2);
        weir_program_release(top);
    }
    weir_stream_release(streams[1]);
    weir_stream_release(streams[2]);
    feed_destroy(&f);
    weir_engine_release(engine);
}

/* From some run on the library asks for no memory. */
static void test_allocations(weir_threadpool *pool) {
    weir_engine *engine = make_engine(pool);
    feed f = feed_create(engine);
    later l = {.how = ELSEWHERE};
    weir_program *inner = make_inner(engine, &l), *middle = make_outer(engine, inner, "middle", 1);
    weir_program *top = make_outer(engine, middle, "top", 1);
    complete_only_once();
    for (int i = 0; i < 100; i++) {
        uint64_t before = runtime_info().allocations;
        CHECK_OK(weir_program_run(top, NULL, &f.in, 1, &f.out, 1, NULL));
        if (i >= 8) CHECK_EQ(runtime_info().allocations, before);
        check_result(&f, 2, 2);
    }
    only_once = 0;
    weir_program_release(inner);
    weir_program_release(middle);
    weir_program_release(top);
    feed_destroy(&f);
    weir_engine_release(engine);
}

/* Errors name every node on the way; the programs are reusable at once. */
static void test_errors(weir_threadpool *pool) {
    static const how ways[] = {INLINE, ELSEWHERE, RACING};
    weir_engine *engine = make_engine(pool);
    feed f = feed_create(engine);
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
        later l = {.how = ways[way], .status = WEIR_DATA_LOSS, .text = "the disk is gone"};
        weir_program *single = make_single(engine, &l), *middle = make_outer(engine, single, "middle", 1);
        weir_program *top = make_outer(engine, middle, "top", 1);
        for (int i = 0; i < 5; i++) {
            CHECK_CODE(weir_program_run(top, NULL, &f.in, 1, &f.out, 1, NULL), WEIR_DATA_LOSS,
                       "node 'top 0': node 'middle 0': node 'later': the disk is gone");
        }
        CHECK_EQ(atomic_load(&l.begun), 5);
        l.status = WEIR_OK, l.text = NULL;
        CHECK_OK(weir_program_run(top, NULL, &f.in, 1, &f.out, 1, NULL));
        check_result(&f, 1, 1);
        l.how = REFUSED;
        CHECK_CODE(weir_program_run(top, NULL, &f.in, 1, &f.out, 1, NULL), WEIR_UNAVAILABLE,
                   "node 'top 0': node 'middle 0': node 'later': its compute_async function failed with UNAVAILABLE");
        weir_program_release(single);
        weir_program_release(middle);
        weir_program_release(top);
    }
    /* Several fail at once, and others are under way. */
    later l = {.how = RACING, .status = WEIR_DATA_LOSS, .text = "all disks are gone"};
    weir_program *inner = make_inner(engine, &l), *middle = make_outer(engine, inner, "middle", 6);
    for (int i = 0; i < scale(20); i++) {
        CHECK_CODE(weir_program_run(middle, NULL, &f.in, 1, &f.out, 1, NULL), WEIR_DATA_LOSS, "': node 'later ");
    }
    l.status = WEIR_OK, l.text = NULL;
    CHECK_OK(weir_program_run(middle, NULL, &f.in, 1, &f.out, 1, NULL));
    check_result(&f, 12, 2);
    weir_program_release(inner);
    weir_program_release(middle);
    feed_destroy(&f);
    weir_engine_release(engine);
}

/* A cancel and a deadline begin nothing more, at any depth, and wait for what is pending. */
static void test_stops(weir_threadpool *pool) {
    weir_engine *engine = make_engine(pool);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "stopped");
    feed f = feed_create(engine);
    later l = {.how = BY_HAND};
    weir_tensor_desc desc = vector_desc(WIDTH);
    const weir_run_options soon = {.struct_size = sizeof soon, .deadline_ns = 5000000};
    /* Two one behind the other: the second is not begun. */
    weir_program *single = make_single(engine, &l);
    weir_graph *graph = make_graph("chain");
    weir_value v;
    CHECK_OK(weir_graph_add_input(graph, "x", &desc, &v));
    CHECK_OK(weir_graph_add_program(graph, "first", single, &v, 1, &v, 1, NULL));
    CHECK_OK(weir_graph_add_program(graph, "second", single, &v, 1, &v, 1, NULL));
    CHECK_OK(weir_graph_add_output(graph, "y", v));
    weir_program *middle = compile_graph(graph, engine), *top = make_outer(engine, middle, "top", 1);
    int begun = 0;
    for (int i = 0; i < scale(20); i++) {
        int late = i % 2;
        weir_run *run = NULL;
        int32_t done = 1, cancelled = 0;
        atomic_store(&l.done, NULL);
        CHECK_OK(weir_program_start(top, stream, &f.in, 1, &f.out, 1, late ? &soon : NULL, &run));
        if (late) {
            /* The run may have been too late to begin anything. */
            while (atomic_load(&l.done) == NULL && weir_run_synchronize(run, 100000) == WEIR_DEADLINE_EXCEEDED) {
                CHECK_OK(weir_run_query(run, &done));
                if (done) break;
            }
        } else {
            EVENTUALLY(atomic_load(&l.done) != NULL);
            CHECK_OK(weir_run_query(run, &done));
            CHECK_EQ(done, 0);
            CHECK_OK(weir_run_cancel(run));
        }
        if (atomic_load(&l.done) != NULL) {
            begun++;
            weir_kernel_context *context = atomic_load(&l.context);
            while (!cancelled) CHECK_OK(weir_kernel_context_is_cancelled(context, &cancelled));
            CHECK_OK(weir_run_query(run, &done));
            CHECK_EQ(done, 0);
            CHECK_OK(weir_completion_done(atomic_load(&l.done), WEIR_OK, NULL));
            CHECK_CODE(weir_completion_done(atomic_load(&l.done), WEIR_OK, NULL), WEIR_FAILED_PRECONDITION, "before");
        }
        CHECK_CODE(weir_run_synchronize(run, WEIR_TIMEOUT_INFINITE), late ? WEIR_DEADLINE_EXCEEDED : WEIR_CANCELLED,
                   late ? "5000000 ns" : "cancelled");
        CHECK_EQ(atomic_load(&l.begun), begun);
        weir_run_release(run);
    }
    CHECK(begun > 0);
    weir_run *run = NULL;
    l.how = ELSEWHERE;
    CHECK_OK(weir_program_start(top, stream, &f.in, 1, &f.out, 1, NULL, &run));
    CHECK_OK(weir_run_synchronize(run, WEIR_TIMEOUT_INFINITE));
    check_result(&f, 1, 2);
    weir_run_release(run);
    weir_program_release(single);
    weir_program_release(middle);
    weir_program_release(top);
    weir_stream_release(stream);
    feed_destroy(&f);
    weir_engine_release(engine);
}

static int32_t compute_plain(void *user, weir_kernel_context *context) {
    add_one(context);
    atomic_fetch_add((atomic_int *)user, 1);
    return WEIR_OK;
}

/* While inner runs wait, the pool's threads do other things: other nodes of the run, and other runs. */
static void test_beside(weir_threadpool *pool) {
    weir_engine *engine = make_engine(pool);
    weir_stream *streams[2] = {make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL),
                               make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL)};
    feed f = feed_create(engine), other = feed_create(engine);
    later l = {.how = BY_HAND};
    atomic_int plain = 0;
    weir_tensor_desc desc = vector_desc(WIDTH);
    weir_kernel *kernel = make_unary_kernel(engine, "plain", compute_plain, &plain, &desc);
    weir_program *single = make_single(engine, &l), *middle = make_outer(engine, single, "middle", 1);
    weir_graph *graph = make_graph("beside");
    weir_value x, ends[2];
    CHECK_OK(weir_graph_add_input(graph, "x", &desc, &x));
    CHECK_OK(weir_graph_add_program(graph, "waits", middle, &x, 1, &ends[0], 1, NULL));
    CHECK_OK(weir_graph_add_kernel(graph, "plain", kernel, &x, 1, &ends[1], 1, NULL));
    CHECK_OK(weir_graph_add_output(graph, "y", add_sum(graph, engine, ends, 2)));
    weir_program *beside = compile_graph(graph, engine);
    graph = make_graph("plain");
    CHECK_OK(weir_graph_add_input(graph, "x", &desc, &x));
    CHECK_OK(weir_graph_add_kernel(graph, "plain", kernel, &x, 1, &x, 1, NULL));
    CHECK_OK(weir_graph_add_output(graph, "y", x));
    weir_program *alone = compile_graph(graph, engine);
    for (int i = 0; i < scale(20); i++) {
        atomic_store(&l.done, NULL);
        atomic_store(&plain, 0);
        CHECK_OK(weir_program_run(beside, streams[0], &f.in, 1, &f.out, 1, NULL));
        EVENTUALLY(atomic_load(&l.done) != NULL);
        EVENTUALLY(atomic_load(&plain) == 1);
        CHECK_OK(weir_program_run(alone, streams[1], &other.in, 1, &other.out, 1, NULL));
        CHECK_OK(weir_stream_synchronize(streams[1], WEIR_TIMEOUT_INFINITE));
        check_result(&other, 1, 1);
        job j = {.context = atomic_load(&l.context), .done = atomic_load(&l.done)};
        finish(&j);
        CHECK_OK(weir_stream_synchronize(streams[0], WEIR_TIMEOUT_INFINITE));
        check_result(&f, 2, 1);
    }
    weir_kernel_release(kernel);
    weir_program_release(single);
    weir_program_release(middle);
    weir_program_release(beside);
    weir_program_release(alone);
    weir_stream_release(streams[0]);
    weir_stream_release(streams[1]);
    feed_destroy(&f);
    feed_destroy(&other);
    weir_engine_release(engine);
}

typedef struct reader {
    test_pool *lane;
    gate gate;
} reader;

static int32_t read_blocking(void *user, weir_kernel_context *context) {
    reader *r = user;
    CHECK(test_pool_is_here(r->lane));
    add_one(context);
    return pass_gate(&r->gate);
}

/* What may block runs on the pool that the inner program was given, and the outer one needs none. */
static void test_blocking(weir_threadpool *pool) {
    weir_threadpool *lane = NULL;
    reader r = {.lane = test_pool_create_exact(POOL_FIFO, 2, &lane), .gate = {.open = 0}};
    weir_engine *engine = make_engine(pool);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
    weir_tensor_desc like = vector_desc(WIDTH);
    weir_host_kernel_desc desc = make_kernel_desc("read", read_blocking, &r);
    weir_kernel *kernel = NULL;
    weir_program *inner = NULL;
    weir_value x;
    desc.num_inputs = desc.num_outputs = 1;
    desc.inputs = desc.outputs = &like;
    desc.flags = WEIR_KERNEL_MAY_BLOCK;
    CHECK_OK(weir_kernel_create_host(engine, &desc, &kernel));
    weir_graph *graph = make_graph("reads");
    CHECK_OK(weir_graph_add_input(graph, "x", &like, &x));
    CHECK_OK(weir_graph_add_kernel(graph, "read", kernel, &x, 1, &x, 1, NULL));
    CHECK_OK(weir_graph_add_output(graph, "y", x));
    const weir_compile_options options = {.struct_size = sizeof options, .blocking_threadpool = lane};
    CHECK_OK(weir_graph_compile(graph, &engine, 1, &options, &inner));
    weir_graph_destroy(graph);
    weir_program *outer = make_outer(engine, inner, "outer", 2);
    feed f = feed_create(engine);
    for (int i = 0; i < scale(10); i++) {
        atomic_store(&r.gate.begun, 0), atomic_store(&r.gate.open, 0);
        CHECK_OK(weir_program_run(outer, stream, &f.in, 1, &f.out, 1, NULL));
        EVENTUALLY(atomic_load(&r.gate.begun) == 2);
        open_gate(&r.gate);
        CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
        check_result(&f, 2, 1);
        CHECK_OK(weir_program_run(outer, NULL, &f.in, 1, &f.out, 1, NULL));
        check_result(&f, 2, 1);
    }
    r.gate.result = WEIR_DATA_LOSS;
    CHECK_CODE(weir_program_run(outer, NULL, &f.in, 1, &f.out, 1, NULL), WEIR_DATA_LOSS, "': node 'read': ");
    feed_destroy(&f);
    weir_kernel_release(kernel);
    weir_program_release(inner);
    weir_program_release(outer);
    weir_stream_release(stream);
    weir_engine_release(engine);
    weir_threadpool_release(lane);
    test_pool_destroy(r.lane);
}

/* A run that is deterministic, or finishes what is independent, starts each such node in its turn and waits for it; on
 * a stream whose pool's worker that would block it is refused. */
static void test_one_by_one(void) {
    static const how ways[] = {INLINE, ELSEWHERE, RACING};
    enum { MIDDLE = 3, TOP = 2 };
    weir_threadpool *pool = NULL;
    test_pool *of = test_pool_create_exact(POOL_FIFO, 2, &pool);
    weir_engine *engine = make_engine(NULL), *pooled = make_engine(pool);
    feed f = feed_create(engine);
    weir_stream *streams[3] = {NULL, make_stream(engine, WEIR_STREAM_DEFAULT, NULL, NULL),
                               make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "own thread")};
    weir_stream *busy = make_stream(pooled, WEIR_STREAM_ASYNCHRONOUS, NULL, "pooled");
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
        later l = {.how = ways[way]};
        weir_program *inner = make_inner(engine, &l), *middle = make_outer(engine, inner, "middle", MIDDLE);
        weir_program *top = make_outer(engine, middle, "top", TOP);
        for (int independent = 0; independent < 2; independent++) {
            const weir_run_options options = {
                .struct_size = sizeof options, .flags = independent ? WEIR_RUN_FINISH_INDEPENDENT : WEIR_RUN_DETERMINISTIC};
            for (int s = 0; s < 3; s++) {
                for (int i = 0; i < scale(10); i++) {
                    CHECK_OK(weir_program_run(top, streams[s], &f.in, 1, &f.out, 1, &options));
                    if (streams[s] != NULL) CHECK_OK(weir_stream_synchronize(streams[s], WEIR_TIMEOUT_INFINITE));
                    check_result(&f, TOP * MIDDLE * 2, 2);
                }
            }
            CHECK_CODE(weir_program_run(top, busy, &f.in, 1, &f.out, 1, &options), WEIR_FAILED_PRECONDITION,
                       "would block a worker of its thread pool");
        }
        weir_program_release(inner);
        weir_program_release(middle);
        weir_program_release(top);
    }
    weir_stream_release(streams[1]);
    weir_stream_release(streams[2]);
    weir_stream_release(busy);
    feed_destroy(&f);
    weir_engine_release(engine);
    weir_engine_release(pooled);
    weir_threadpool_release(pool);
    test_pool_destroy(of);
}

int main(void) {
    weir_runtime_info before = runtime_info();
    finisher_start();
    test_one_by_one();
    test_ways(NULL);
    test_allocations(NULL);
    test_errors(NULL);
    test_stops(NULL);
    test_beside(NULL);
    test_blocking(NULL);
    for (int kind = 0; kind < POOL_KINDS; kind++) {
        for (int threads = 1; threads <= 3; threads += 2) {
            weir_threadpool *pool = NULL;
            if (kind == POOL_LATE) continue;
            test_pool *of = test_pool_create(kind, threads, &pool);
            test_ways(pool);
            if (kind == POOL_FIFO) test_allocations(pool);
            test_errors(pool);
            test_stops(pool);
            test_beside(pool);
            test_blocking(pool);
            weir_threadpool_release(pool);
            test_pool_destroy(of);
        }
    }
    finisher_stop();
    check_released(&before);
    puts("ok");
    return 0;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Programs inside of programs: as a node, and many times over from inside a kernel.
 */

#include <weir/ops.h>
#include <weir/inspect.h>

#include "make.h"
#include "test_pools.h"

enum { WIDTH = 32, MANY = 40 };

static weir_program *compile_graph(weir_graph *graph, weir_engine *engine) {
    weir_program *program = compile(graph, engine);
    weir_graph_destroy(graph);
    return program;
}

typedef struct adder {
    atomic_int fails;
    atomic_int calls;
} adder;

static int32_t add_one(void *user, weir_kernel_context *context) {
    const weir_tensor_view *in = NULL, *result = NULL;
    size_t count = 0;
    adder *a = user;
    atomic_fetch_add(&a->calls, 1);
    if (atomic_load(&a->fails)) {
        CHECK_OK(weir_kernel_context_fail(context, WEIR_DATA_LOSS, "asked to fail"));
        return WEIR_OK;
    }
    CHECK_OK(weir_kernel_context_get_inputs(context, &in, &count));
    CHECK_OK(weir_kernel_context_get_outputs(context, &result, &count));
    for (int i = 0; i < WIDTH; i++) ((float *)result[0].data)[i] = ((const float *)in[0].data)[i] + 1;
    return WEIR_OK;
}

/* x -> 4 branches of 3 nodes that add one -> y0 ... y3 would be outputs; only the sum of the first two is one. */
static weir_program *make_inner(weir_engine *engine, adder *a) {
    weir_tensor_desc desc = vector_desc(WIDTH);
    weir_kernel *kernel = make_unary_kernel(engine, "plus one", add_one, a, &desc), *sum = NULL;
    weir_graph *graph = make_graph("inner graph");
    weir_value x, branch[2], y;
    char name[16];
    CHECK_OK(weir_kernel_create_binary(engine, BINARY(ADD), NULL, &sum));
    CHECK_OK(weir_graph_add_input(graph, "x", &desc, &x));
    for (int i = 0; i < 2; i++) {
        branch[i] = x;
        for (int k = 0; k < 3; k++) {
            snprintf(name, sizeof name, "inner %d.%d", i, k);
            CHECK_OK(weir_graph_add_kernel(graph, name, kernel, &branch[i], 1, &branch[i], 1, NULL));
        }
    }
    CHECK_OK(weir_graph_add_kernel(graph, "sum", sum, branch, 2, &y, 1, NULL));
    CHECK_OK(weir_graph_add_output(graph, "y", y));
    weir_kernel_release(kernel);
    weir_kernel_release(sum);
    return compile_graph(graph, engine);
}

/* What it computes: 2 * (x + 3) */
static float inner_of(float x) {
    return 2 * (x + 3);
}

static void test_node(weir_threadpool *pool) {
    weir_engine *engine = make_engine(pool);
    adder a = {.fails = 0};
    weir_program *inner = make_inner(engine, &a);
    weir_tensor_desc desc = vector_desc(WIDTH), wrong = vector_desc(WIDTH + 1);
    weir_value x, y[3], odd;
    weir_node node;
    /* Twice after one another, and once beside; and twice nested. */
    weir_graph *graph = make_graph("middle");
    CHECK_OK(weir_graph_add_input(graph, "x", &desc, &x));
    CHECK_OK(weir_graph_add_program(graph, "outer", inner, &x, 1, &y[0], 1, &node));
    CHECK_OK(weir_graph_add_program(graph, "again", inner, &y[0], 1, &y[1], 1, NULL));
    CHECK_OK(weir_graph_add_program(graph, "beside", inner, &x, 1, &y[2], 1, NULL));
    CHECK_OK(weir_graph_add_output(graph, "y1", y[1]));
    CHECK_OK(weir_graph_add_output(graph, "y2", y[2]));
    weir_program *middle = compile_graph(graph, engine);
    weir_program_release(inner);
    graph = make_graph("top");
    CHECK_OK(weir_graph_add_input(graph, "x", &desc, &x));
    CHECK_OK(weir_graph_add_program(graph, "top", middle, &x, 1, y, 2, NULL));
    CHECK_OK(weir_graph_add_output(graph, "y1", y[0]));
    CHECK_OK(weir_graph_add_output(graph, "y2", y[1]));
    weir_program *top = compile_graph(graph, engine);

    weir_tensor *in = make_tensor(engine, desc), *outs[2] = {make_tensor(engine, desc), make_tensor(engine, desc)};
    weir_stream *streams[2] = {NULL, make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL)};
    fill(in, 5);
    for (int i = 0; i < scale(200); i++) {
        weir_stream *stream = streams[i % 2];
        CHECK_OK(weir_program_run(i % 4 < 2 ? middle : top, stream, &in, 1, outs, 2, NULL));
        if (stream != NULL) CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
        for (int k = 0; k < WIDTH; k++) {
            CHECK(floats(outs[0])[k] == inner_of(inner_of(floats(in)[k])));
            CHECK(floats(outs[1])[k] == inner_of(floats(in)[k]));
            floats(outs[0])[k] = floats(outs[1])[k] = 0;
        }
    }
    /* Errors name all of them. */
    atomic_store(&a.fails, 1);
    CHECK_CODE(weir_program_run(middle, NULL, &in, 1, outs, 2, NULL), WEIR_DATA_LOSS, "': node 'inner ");
    CHECK_TEXT(weir_last_error_message(), "asked to fail");
    CHECK_CODE(weir_program_run(top, NULL, &in, 1, outs, 2, NULL), WEIR_DATA_LOSS, "node 'top': node '");
    CHECK_TEXT(weir_last_error_message(), "': node 'inner ");
    atomic_store(&a.fails, 0);
    CHECK_OK(weir_program_run(top, NULL, &in, 1, outs, 2, NULL));

    graph = make_graph("wrong");
    CHECK_OK(weir_graph_add_input(graph, "x", &wrong, &x));
    CHECK_OK(weir_graph_add_program(graph, "outer", middle, &x, 1, y, 2, NULL));
    CHECK_OK(weir_graph_add_output(graph, "y", y[0]));
    weir_program *none = NULL;
    CHECK_CODE(weir_graph_compile(graph, &engine, 1, NULL, &none), WEIR_INVALID_ARGUMENT, "node 'outer' input 0: expected");
    CHECK_CODE(weir_graph_add_program(graph, "few", middle, &x, 1, &odd, 1, NULL), WEIR_INVALID_ARGUMENT, "node 'few'");
    weir_graph_destroy(graph);

    weir_stream_release(streams[1]);
    weir_program_release(middle);
    weir_program_release(top);
    weir_tensor_release(in);
    weir_tensor_release(outs[0]);
    weir_tensor_release(outs[1]);
    weir_engine_release(engine);
}

static int32_t count_task(void *arg) {
    atomic_fetch_add((atomic_int *)arg, 1);
    return WEIR_OK;
}

/* A program with a task in it is run although nobody uses its output; a run for some outputs does without. */
static void test_unused_node(weir_threadpool *pool) {
    weir_engine *engine = make_engine(pool);
    adder a = {.fails = 0};
    weir_program *pure = make_inner(engine, &a), *programs[3];
    const weir_tensor_desc desc = vector_desc(WIDTH);
    atomic_int tasks = 0;
    for (int depth = 0; depth < 3; depth++) {
        weir_graph *graph = make_graph("inner");
        weir_value x, y;
        CHECK_OK(weir_graph_add_input(graph, "x", &desc, &x));
        CHECK_OK(weir_graph_add_program(graph, "pure", pure, &x, 1, &y, 1, NULL));
        if (depth == 0) {
            CHECK_OK(weir_graph_add_task(graph, "task", count_task, &tasks, NULL, 0, NULL));
        } else {
            weir_value unused;
            CHECK_OK(weir_graph_add_program(graph, "unused", programs[depth - 1], &x, 1, &unused, 1, NULL));
        }
        CHECK_OK(weir_graph_add_output(graph, "y", y));
        const weir_compile_options options = {.struct_size = sizeof options, .partial_runs = 1};
        CHECK_OK(weir_graph_compile(graph, &engine, 1, &options, &programs[depth]));
        weir_graph_destroy(graph);
    }
    weir_tensor *in = make_tensor(engine, desc), *out = make_tensor(engine, desc);
    fill(in, 5);
    for (int depth = 0; depth < 3; depth++) {
        atomic_store(&tasks, 0);
        CHECK_OK(weir_program_run(programs[depth], NULL, &in, 1, &out, 1, NULL));
        CHECK(atomic_load(&tasks) == 1);
        const size_t first = 0;
        const weir_run_options some = {.struct_size = sizeof some, .outputs = &first, .num_outputs = 1};
        CHECK_OK(weir_program_run(programs[depth], NULL, &in, 1, &out, 1, &some));
        CHECK(atomic_load(&tasks) == 1);
        CHECK(floats(out)[0] == inner_of(floats(in)[0]));
    }
    for (int depth = 0; depth < 3; depth++) weir_program_release(programs[depth]);
    weir_program_release(pure);
    weir_tensor_release(in);
    weir_tensor_release(out);
    weir_engine_release(engine);
}

/* A kernel that runs a program for each row. */
typedef struct spawner {
    weir_program *program;
    weir_tensor *ins[MANY], *outs[MANY];
    size_t count;
} spawner;

static int32_t spawn_all(void *user, weir_kernel_context *context) {
    spawner *s = user;
    weir_status status = weir_kernel_context_run_program(context, s->program, s->count, s->ins, 1, s->outs, 1);
    if (status != WEIR_OK) CHECK_OK(weir_kernel_context_fail(context, status, weir_last_error_message()));
    return status;
}

static void test_many(weir_threadpool *pool) {
    weir_engine *engine = make_engine(pool);
    weir_tensor_desc desc = vector_desc(WIDTH);
    adder a = {.fails = 0};
    spawner s = {.program = make_inner(engine, &a)};
    weir_host_kernel_desc kernel_desc = make_kernel_desc("spawner", spawn_all, &s);
    weir_kernel *kernel = NULL;
    CHECK_OK(weir_kernel_create_host(engine, &kernel_desc, &kernel));
    for (int i = 0; i < MANY; i++) {
        s.ins[i] = make_tensor(engine, desc), s.outs[i] = make_tensor(engine, desc);
        fill(s.ins[i], i);
    }
    weir_graph *graph = make_graph("spawning");
    CHECK_OK(weir_graph_add_kernel(graph, "spawner", kernel, NULL, 0, NULL, 0, NULL));
    weir_program *program = compile_graph(graph, engine);
    for (int round = 0; round < scale(40); round++) {
        s.count = round % 3 == 0 ? MANY : (size_t)(round % MANY);
        atomic_store(&a.calls, 0);
        CHECK_OK(weir_program_run(program, NULL, NULL, 0, NULL, 0, NULL));
        CHECK_EQ(atomic_load(&a.calls), 6 * (int)s.count);
        for (size_t i = 0; i < s.count; i++) {
            for (int k = 0; k < WIDTH; k++) {
                CHECK(floats(s.outs[i])[k] == inner_of(floats(s.ins[i])[k]));
                floats(s.outs[i])[k] = 0;
            }
        }
    }
    s.count = MANY;
    atomic_store(&a.fails, 1);
    CHECK_CODE(weir_program_run(program, NULL, NULL, 0, NULL, 0, NULL), WEIR_DATA_LOSS, "node 'spawner': ");
    CHECK_TEXT(weir_last_error_message(), "program 'inner graph' instance ");
    CHECK_TEXT(weir_last_error_message(), "node 'inner ");
    atomic_store(&a.fails, 0);
    atomic_store(&a.calls, 0);
    /* One wrong tensor, and nothing is run. */
    weir_tensor *last = s.outs[MANY - 1];
    s.outs[MANY - 1] = s.ins[MANY - 1];
    CHECK_CODE(weir_program_run(program, NULL, NULL, 0, NULL, 0, NULL), WEIR_INVALID_ARGUMENT,
               "instance 39: output 0 shares memory with input 0");
    CHECK_EQ(atomic_load(&a.calls), 0);
    s.outs[MANY - 1] = last;
    CHECK_OK(weir_program_run(program, NULL, NULL, 0, NULL, 0, NULL));
    for (int i = 0; i < MANY; i++) {
        weir_tensor_release(s.ins[i]);
        weir_tensor_release(s.outs[i]);
    }
    weir_program_release(program);
    weir_program_release(s.program);
    weir_kernel_release(kernel);
    weir_engine_release(engine);
}

/* Waits, two runs deep, until it is told that nobody wants its result. */
typedef struct waiter {
    atomic_int begun, behind;
    weir_program *inner; /* of the kernel that runs a program itself */
} waiter;

static int32_t wait_for_the_stop(void *user, weir_kernel_context *context) {
    waiter *w = user;
    int32_t cancelled = 0;
    atomic_fetch_add(&w->begun, 1);
    while (!cancelled) {
        sleep_ns(20000);
        CHECK_OK(weir_kernel_context_is_cancelled(context, &cancelled));
    }
    return WEIR_OK;
}

static int32_t be_behind(void *user, weir_kernel_context *context) {
    (void)context;
    atomic_fetch_add(&((waiter *)user)->behind, 1);
    return WEIR_OK;
}

static int32_t run_inner(void *user, weir_kernel_context *context) {
    waiter *w = user;
    weir_status status = weir_kernel_context_run_program(context, w->inner, 2, NULL, 0, NULL, 0);
    if (status != WEIR_OK) CHECK_OK(weir_kernel_context_fail(context, status, weir_last_error_message()));
    return status;
}

/* A program whose one node, or whose two nodes one behind the other, are these. */
static weir_program *make_chain(weir_engine *engine, waiter *w, weir_compute_fn first, weir_compute_fn second) {
    weir_compute_fn bodies[2] = {first, second};
    weir_node nodes[2];
    weir_graph *graph = make_graph("chain");
    for (int i = 0; i < 2; i++) {
        weir_kernel *kernel = NULL;
        weir_host_kernel_desc desc = make_kernel_desc(i ? "behind" : "first", bodies[i], w);
        CHECK_OK(weir_kernel_create_host(engine, &desc, &kernel));
        CHECK_OK(weir_graph_add_kernel(graph, i ? "behind" : "first", kernel, NULL, 0, NULL, 0, &nodes[i]));
        weir_kernel_release(kernel);
    }
    CHECK_OK(weir_graph_add_control_edge(graph, nodes[0], nodes[1]));
    return compile_graph(graph, engine);
}

/* What stops the outer run stops what runs inside at once: a cancel, a deadline. */
static void test_stops(weir_threadpool *pool) {
    /* A stream with a thread of its own: pools that run what they are given at once would never come back from the
     * start. */
    weir_engine *engine = make_engine(pool), *without_pool = make_engine(NULL);
    weir_stream *stream = make_stream(without_pool, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
    const weir_run_options on_pool = {.struct_size = sizeof on_pool, .threadpool = pool};
    const weir_run_options soon = {.struct_size = sizeof soon, .deadline_ns = 3000000};
    for (int spawned = 0; spawned < 2; spawned++) {
        waiter w = {.begun = 0};
        weir_program *inner = make_chain(engine, &w, wait_for_the_stop, be_behind), *middle = NULL, *outer = NULL;
        w.inner = inner;
        if (spawned) {
            middle = make_chain(engine, &w, run_inner, be_behind);
        } else {
            weir_graph *graph = make_graph("middle");
            CHECK_OK(weir_graph_add_program(graph, "inner", inner, NULL, 0, NULL, 0, NULL));
            middle = compile_graph(graph, engine);
        }
        weir_graph *graph = make_graph("outer");
        CHECK_OK(weir_graph_add_program(graph, "middle", middle, NULL, 0, NULL, 0, NULL));
        outer = compile_graph(graph, engine);
        for (int i = 0; i < scale(10); i++) {
            weir_run *run = NULL;
            atomic_store(&w.begun, 0);
            CHECK_OK(weir_program_start(outer, stream, NULL, 0, NULL, 0, &on_pool, &run));
            EVENTUALLY(atomic_load(&w.begun) > 0);
            CHECK_OK(weir_run_cancel(run));
            CHECK_CODE(weir_run_synchronize(run, WEIR_TIMEOUT_INFINITE), WEIR_CANCELLED, "");
            weir_run_release(run);
            CHECK_CODE(weir_program_run(outer, NULL, NULL, 0, NULL, 0, &soon), WEIR_DEADLINE_EXCEEDED, "3000000 ns");
            CHECK_EQ(atomic_load(&w.behind), 0);
        }
        weir_program_release(inner);
        weir_program_release(middle);
        weir_program_release(outer);
    }
    weir_stream_release(stream);
    weir_engine_release(without_pool);
    weir_engine_release(engine);
}

int main(void) {
    weir_runtime_info before = runtime_info();
    test_stops(NULL);
    test_node(NULL);
    test_unused_node(NULL);
    test_many(NULL);
    for (int kind = 0; kind < POOL_KINDS; kind++) {
        for (int threads = 1; threads <= 3; threads += 2) {
            weir_threadpool *pool = NULL;
            if (kind == POOL_LATE) continue;
            test_pool *of = test_pool_create(kind, threads, &pool);
            test_node(pool);
            test_unused_node(pool);
            test_many(pool);
            test_stops(pool);
            weir_threadpool_release(pool);
            test_pool_destroy(of);
        }
    }
    check_released(&before);
    puts("ok");
    return 0;
}

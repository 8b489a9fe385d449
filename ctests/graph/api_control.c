/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Graphs with cond, case, while, switch and merge, on every kind of pool; and none of the later runs allocates.
 */

#include <weir/control.h>
#include <weir/inspect.h>

#include "make.h"
#include "test_pools.h"

static const weir_tensor_desc number = {.dtype = WEIR_S32, .rank = 1, .dims = {1}};

typedef int32_t (*function)(int32_t a, int32_t b);

static int32_t compute(void *user, weir_kernel_context *context) {
    const weir_tensor_view *in = NULL, *out = NULL;
    size_t num_in = 0, num_out = 0;
    CHECK_OK(weir_kernel_context_get_inputs(context, &in, &num_in));
    CHECK_OK(weir_kernel_context_get_outputs(context, &out, &num_out));
    const int32_t *a = in[0].data, *b = num_in > 1 ? in[1].data : a;
    *(int32_t *)out->data = (*(function *)user)(*a, *b);
    return WEIR_OK;
}

/* Adds f(a, b), or f(a, a) if b is 0. */
static weir_value apply(weir_engine *engine, weir_graph *graph, const char *name, function *f, weir_value a, weir_value b) {
    const weir_tensor_desc inputs[] = {number, number};
    weir_value values[] = {a, b}, value = 0;
    weir_kernel *kernel = NULL;
    weir_host_kernel_desc desc = make_kernel_desc(name, compute, f);
    desc.num_inputs = b == 0 ? 1 : 2;
    desc.inputs = inputs;
    desc.num_outputs = 1;
    desc.outputs = &number;
    desc.cost_ns = 20000;
    CHECK_OK(weir_kernel_create_host(engine, &desc, &kernel));
    CHECK_OK(weir_graph_add_kernel(graph, name, kernel, values, desc.num_inputs, &value, 1, NULL));
    weir_kernel_release(kernel);
    return value;
}

static int32_t is_odd(int32_t a, int32_t b) {
    (void)b;
    return a & 1;
}
static int32_t half(int32_t a, int32_t b) {
    (void)b;
    return a / 2;
}
static int32_t triple_plus_one(int32_t a, int32_t b) {
    (void)b;
    return 3 * a + 1;
}
static int32_t is_above_one(int32_t a, int32_t b) {
    (void)b;
    return a > 1;
}
static int32_t plus_one(int32_t a, int32_t b) {
    (void)b;
    return a + 1;
}
static int32_t sum(int32_t a, int32_t b) {
    return a + b;
}

static function fs[] = {is_odd, half, triple_plus_one, is_above_one, plus_one, sum};
enum { IS_ODD, HALF, TRIPLE_PLUS_ONE, IS_ABOVE_ONE, PLUS_ONE, SUM };

static weir_value input(weir_graph *graph, const char *name) {
    weir_value value = 0;
    CHECK_OK(weir_graph_add_input(graph, name, &number, &value));
    return value;
}

static weir_graph *branch(weir_engine *engine, const char *name, int f) {
    weir_graph *graph = make_graph(name);
    weir_value x = input(graph, "x");
    CHECK_OK(weir_graph_add_output(graph, "y", apply(engine, graph, "f", &fs[f], x, 0)));
    return graph;
}

/* steps, x = 0, n; while x > 1: x = x odd ? 3 x + 1 : x / 2, steps += 1. And n odd ? n + 1 : n / 2 by switch and
 * merge. */
static weir_program *make_program(weir_engine *engine, int32_t parallel) {
    weir_graph *odd = branch(engine, "odd", TRIPLE_PLUS_ONE), *even = branch(engine, "even", HALF);
    weir_graph *condition = make_graph("condition"), *body = make_graph("body"), *graph = make_graph("collatz");
    weir_value x, steps, next, last[2], on_false, on_true, sides[2], merged, index;
    x = input(condition, "x");
    (void)input(condition, "steps");
    CHECK_OK(weir_graph_add_output(condition, "more", apply(engine, condition, "more", &fs[IS_ABOVE_ONE], x, 0)));
    x = input(body, "x");
    steps = input(body, "steps");
    CHECK_OK(weir_graph_add_cond(body, "step", &(weir_cond_desc){.struct_size = sizeof(weir_cond_desc),
        .predicate = apply(engine, body, "is odd", &fs[IS_ODD], x, 0), .then_graph = odd, .else_graph = even,
        .inputs = &x, .num_inputs = 1}, &next, 1, NULL));
    CHECK_OK(weir_graph_add_output(body, "x", next));
    CHECK_OK(weir_graph_add_output(body, "steps", apply(engine, body, "count", &fs[PLUS_ONE], steps, 0)));

    weir_value variables[2] = {input(graph, "n"), input(graph, "zero")};
    CHECK_OK(weir_graph_add_while(graph, "collatz", &(weir_while_desc){.struct_size = sizeof(weir_while_desc),
        .cond_graph = condition, .body_graph = body, .variables = variables, .num_variables = 2,
        .parallel_iterations = parallel}, last, NULL));
    CHECK_OK(weir_graph_add_output(graph, "steps", last[1]));
    weir_value parity = apply(engine, graph, "parity", &fs[IS_ODD], variables[0], 0);
    CHECK_OK(weir_graph_add_switch(graph, "switch", variables[0], parity, &on_false, &on_true, NULL));
    sides[0] = apply(engine, graph, "halved", &fs[HALF], on_false, 0);
    sides[1] = apply(engine, graph, "next", &fs[PLUS_ONE], on_true, 0);
    CHECK_OK(weir_graph_add_merge(graph, "merge", sides, 2, &merged, &index, NULL));
    CHECK_OK(weir_graph_add_output(graph, "merged", apply(engine, graph, "with index", &fs[SUM], merged, index)));
    weir_program *program = compile(graph, engine);
    weir_graph_destroy(odd);
    weir_graph_destroy(even);
    weir_graph_destroy(condition);
    weir_graph_destroy(body);
    weir_graph_destroy(graph);
    return program;
}

static int32_t *integer(weir_tensor *tensor) {
    void *data = NULL;
    CHECK_OK(weir_tensor_get_data(tensor, &data));
    return data;
}

/* x decides, and steps are counted beside it: iterations may overlap. */
static void check_report(const weir_program *program, int32_t parallel) {
    char report[4096], line[96];
    CHECK_OK(weir_program_report(program, WEIR_REPORT_TEXT, report, sizeof report, NULL));
    (void)snprintf(line, sizeof line, "loop 'collatz': %d of at most %d iterations at once, as asked", (int)parallel, (int)parallel);
    CHECK((strstr(report, line) != NULL) == (parallel > 1));
}

static void test_on(weir_threadpool *pool, int32_t parallel) {
    weir_engine *engine = make_engine(pool);
    weir_program *program = make_program(engine, parallel);
    check_report(program, parallel);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
    weir_tensor *in[2] = {make_tensor(engine, number), make_tensor(engine, number)};
    weir_tensor *out[2] = {make_tensor(engine, number), make_tensor(engine, number)};
    uint64_t before = 0;
    for (int32_t n = 1; n <= scale(40); n++) {
        int32_t steps = 0;
        for (int32_t x = n; x > 1; steps++) x = x & 1 ? 3 * x + 1 : x / 2;
        *integer(in[0]) = n;
        *integer(in[1]) = 0;
        if (n == 3) before = runtime_info().allocations;
        CHECK_OK(weir_program_run(program, n & 2 ? stream : NULL, in, 2, out, 2, NULL));
        CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
        CHECK_EQ(*integer(out[0]), steps);
        CHECK_EQ(*integer(out[1]), n & 1 ? n + 2 : n / 2);
    }
    if (pool == NULL && before != 0) CHECK_EQ(runtime_info().allocations, before);
    for (int i = 0; i < 2; i++) {
        weir_tensor_release(in[i]);
        weir_tensor_release(out[i]);
    }
    weir_stream_release(stream);
    weir_program_release(program);
    weir_engine_release(engine);
}

int main(void) {
    weir_runtime_info before = runtime_info();
    for (int32_t parallel = 1; parallel <= 3; parallel++) test_on(NULL, parallel);
    for (int kind = 0; kind < POOL_LATE; kind++) {
        weir_threadpool *pool = NULL;
        test_pool *host = test_pool_create((pool_kind)kind, 2, &pool);
        for (int32_t parallel = 1; parallel <= 3; parallel++) test_on(pool, parallel);
        weir_threadpool_release(pool);
        test_pool_destroy(host);
    }
    check_released(&before);
    return 0;
}

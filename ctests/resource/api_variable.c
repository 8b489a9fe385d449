/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Variables: nodes and streams that read, assign and add; the order that a graph must give; runs at once; what a
 * deleted name leaves behind.
 */

#include <pthread.h>
#include <weir/control.h>
#include <weir/ops.h>
#include <weir/resource.h>
#include <weir/inspect.h>

#include "test_pools.h"
#include "variables.h"

enum { N = 1000 };

static weir_resource *make_variable(weir_engine *engine, const char *name, weir_tensor_desc desc, uint64_t flags) {
    weir_resource *variable = NULL;
    CHECK_OK(weir_variable_create(engine, NULL, name, &desc, flags, NULL, &variable));
    return variable;
}

static int32_t *integers(const weir_tensor *tensor) {
    return (int32_t *)(void *)floats(tensor);
}

static weir_tensor *constant_integers(weir_engine *engine, int32_t value) {
    weir_tensor *tensor = make_tensor(engine, make_desc(WEIR_S32, 1, N, 0, 0));
    for (int i = 0; i < N; i++) integers(tensor)[i] = value;
    return tensor;
}

/* On a stream, of both kinds: the order is the stream's. */
static void test_streams(weir_threadpool *pool, uint64_t flags, uint64_t stream_flags) {
    weir_engine *engine = make_engine(pool), *other = make_engine(NULL);
    weir_stream *stream = make_stream(engine, stream_flags, NULL, NULL);
    weir_tensor *three = constant_integers(engine, 3), *result = constant_integers(engine, -1), *first = constant_integers(engine, 9);
    weir_tensor_desc desc = make_desc(WEIR_S32, 1, N, 0, 0), less = make_desc(WEIR_S32, 1, 7, 0, 0);
    weir_resource *variable = NULL;
    CHECK_OK(weir_variable_create(engine, "state", "x", &desc, flags, first, &variable));
    kernels k = make_kernels(engine, variable);
    CHECK_OK(weir_enqueue(stream, k.read, NULL, 0, &result, 1));
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    CHECK_EQ(integers(result)[N - 1], 9);
    CHECK_OK(weir_enqueue(stream, k.assign, &three, 1, NULL, 0));
    for (int i = 0; i < 5; i++) CHECK_OK(weir_enqueue(stream, k.add, &three, 1, NULL, 0));
    CHECK_OK(weir_enqueue(stream, k.read, NULL, 0, &result, 1));
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    for (int i = 0; i < N; i++) CHECK_EQ(integers(result)[i], 18);
    CHECK_OK(weir_variable_assign(variable, first));
    CHECK_OK(weir_variable_read(variable, result));
    CHECK_EQ(integers(result)[7], 9);

    weir_tensor *small = make_tensor(engine, less);
    weir_kernel *refused = NULL;
    CHECK_CODE(weir_enqueue(stream, k.assign, &small, 1, NULL, 0), WEIR_INVALID_ARGUMENT,
               "kernel 'variable_assign': input 0: expected s32[1000], got s32[7]");
    CHECK_CODE(weir_variable_read(variable, small), WEIR_INVALID_ARGUMENT, "tensor: expected s32[1000], got s32[7]");
    CHECK_CODE(weir_kernel_create_variable(other, variable, WEIR_VARIABLE_READ, NULL, &refused), WEIR_INVALID_ARGUMENT,
               "variable is variable 'x' of container 'state', of another engine");
    /* The kernel does not keep it. */
    CHECK_OK(weir_resource_delete(engine, "state", "x"));
    if (stream_flags == WEIR_STREAM_DEFAULT) {
        CHECK_CODE(weir_enqueue(stream, k.read, NULL, 0, &result, 1), WEIR_NOT_FOUND,
                   "variable 'x' of container 'state' was destroyed");
    } else {
        CHECK_OK(weir_enqueue(stream, k.read, NULL, 0, &result, 1));
        CHECK_CODE(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE), WEIR_NOT_FOUND, "was destroyed");
    }
    CHECK_OK(weir_variable_read(variable, result)); /* our reference does */
    weir_tensor_release(small);
    weir_tensor_release(three);
    weir_tensor_release(first);
    weir_tensor_release(result);
    release_kernels(&k);
    weir_resource_release(variable);
    weir_stream_release(stream);
    weir_engine_release(other);
    weir_engine_release(engine);
}

/* A step of a model that counts: state += input; output = state. */
static weir_program *counting(weir_engine *engine, kernels *k) {
    weir_graph *graph = make_graph("counting");
    weir_tensor_desc desc = make_desc(WEIR_S32, 1, N, 0, 0);
    weir_value input, output;
    weir_node add, read;
    CHECK_OK(weir_graph_add_input(graph, "input", &desc, &input));
    CHECK_OK(weir_graph_add_kernel(graph, "add", k->add, &input, 1, NULL, 0, &add));
    CHECK_OK(weir_graph_add_kernel(graph, "read", k->read, NULL, 0, &output, 1, &read));
    CHECK_OK(weir_graph_add_output(graph, "state", output));
    CHECK_OK(weir_graph_add_control_edge(graph, add, read));
    weir_program *program = compile(graph, engine);
    weir_graph_destroy(graph);
    return program;
}

typedef struct runner {
    weir_program *program;
    weir_engine *engine;
    int rounds;
} runner;

static void *run_often(void *arg) {
    runner *r = (runner *)arg;
    weir_tensor *one = constant_integers(r->engine, 1), *state = constant_integers(r->engine, 0);
    weir_stream *stream = make_stream(r->engine, WEIR_STREAM_DEFAULT, NULL, NULL);
    int32_t last = 0;
    for (int i = 0; i < r->rounds; i++) {
        CHECK_OK(weir_program_run(r->program, stream, &one, 1, &state, 1, NULL));
        /* Whole, and never less than before. */
        for (int k = 0; k < N; k++) CHECK_EQ(integers(state)[k], integers(state)[0]);
        CHECK(integers(state)[0] > last);
        last = integers(state)[0];
    }
    weir_stream_release(stream);
    weir_tensor_release(one);
    weir_tensor_release(state);
    return NULL;
}

/* Runs of one program in many threads: every sum counts, whatever the pool. A program keeps its variable when the name
 * goes. */
static void test_runs_at_once(weir_threadpool *pool, uint64_t flags) {
    enum { THREADS = 4 };
    weir_engine *engine = make_engine(pool);
    weir_resource *variable = make_variable(engine, "count", make_desc(WEIR_S32, 1, N, 0, 0), flags);
    kernels k = make_kernels(engine, variable);
    runner r = {counting(engine, &k), engine, scale(400)};
    weir_tensor *result = constant_integers(engine, 0);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) CHECK_EQ(pthread_create(&threads[i], NULL, run_often, &r), 0);
    CHECK_OK(weir_resource_delete(engine, NULL, "count"));
    for (int i = 0; i < THREADS; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    CHECK_OK(weir_variable_read(variable, result));
    for (int i = 0; i < N; i++) CHECK_EQ(integers(result)[i], THREADS * r.rounds);
    /* But no program more. */
    weir_graph *graph = make_graph("late");
    weir_node node;
    weir_value value;
    weir_program *none = NULL;
    CHECK_OK(weir_graph_add_kernel(graph, "read", k.read, NULL, 0, &value, 1, &node));
    CHECK_CODE(weir_graph_compile(graph, &engine, 1, NULL, &none), WEIR_NOT_FOUND,
               "node 'read': variable 'count' of container 'default' was destroyed");
    weir_graph_destroy(graph);
    weir_resource_release(variable);
    /* The same, without anybody but the program. */
    r.rounds = 1;
    weir_tensor *one = constant_integers(engine, 1);
    CHECK_OK(weir_program_run(r.program, NULL, &one, 1, &result, 1, NULL));
    CHECK_EQ(integers(result)[5], THREADS * scale(400) + 1);
    weir_tensor_release(one);
    weir_tensor_release(result);
    weir_program_release(r.program);
    release_kernels(&k);
    weir_engine_release(engine);
}

/* Many nodes of one graph at once on an optimistic variable, and streams beside it: no sum is lost. */
static void test_nodes_at_once(weir_threadpool *pool) {
    enum { NODES = 40 };
    weir_engine *engine = make_engine(pool);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
    weir_stream *by_pool = make_stream(engine, WEIR_STREAM_DEFAULT, NULL, NULL);
    weir_resource *variable = make_variable(engine, "sum", make_desc(WEIR_S32, 1, N, 0, 0), WEIR_VARIABLE_OPTIMISTIC);
    kernels k = make_kernels(engine, variable);
    weir_graph *graph = make_graph("wide");
    weir_tensor *one = constant_integers(engine, 1), *result = constant_integers(engine, 0);
    weir_value input;
    weir_tensor_desc desc = make_desc(WEIR_S32, 1, N, 0, 0);
    CHECK_OK(weir_graph_add_input(graph, "one", &desc, &input));
    for (int i = 0; i < NODES; i++) {
        char name[32];
        snprintf(name, sizeof name, "add %d", i);
        CHECK_OK(weir_graph_add_kernel(graph, name, k.add, &input, 1, NULL, 0, NULL));
    }
    weir_program *program = compile(graph, engine);
    int rounds = scale(40);
    for (int i = 0; i < rounds; i++) {
        for (int n = 0; n < 5; n++) CHECK_OK(weir_enqueue(stream, k.add, &one, 1, NULL, 0));
        CHECK_OK(weir_program_run(program, by_pool, &one, 1, NULL, 0, NULL));
    }
    weir_stream_release(by_pool);
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    CHECK_OK(weir_variable_read(variable, result));
    for (int i = 0; i < N; i++) CHECK_EQ(integers(result)[i], rounds * (NODES + 5));
    weir_program_release(program);
    weir_graph_destroy(graph);
    weir_tensor_release(one);
    weir_tensor_release(result);
    release_kernels(&k);
    weir_resource_release(variable);
    weir_stream_release(stream);
    weir_engine_release(engine);
}

/* What a graph must say: which of two comes first. */
static void test_order(void) {
    weir_engine *engine = make_engine(NULL);
    weir_tensor_desc desc = make_desc(WEIR_S32, 1, N, 0, 0), flag = make_desc(WEIR_BOOL, 0, 0, 0, 0);
    weir_resource *x = make_variable(engine, "x", desc, WEIR_VARIABLE_EXCLUSIVE);
    weir_resource *loose = make_variable(engine, "loose", desc, WEIR_VARIABLE_OPTIMISTIC);
    kernels k = make_kernels(engine, x), free_k = make_kernels(engine, loose);
    weir_graph *graph = make_graph("order");
    weir_program *program = NULL;
    weir_value input, predicate, value, value2;
    weir_node read, write, write2, cond;
    CHECK_OK(weir_graph_add_input(graph, "input", &desc, &input));
    CHECK_OK(weir_graph_add_input(graph, "predicate", &flag, &predicate));
    CHECK_OK(weir_graph_add_kernel(graph, "look", k.read, NULL, 0, &value, 1, &read));
    CHECK_OK(weir_graph_add_kernel(graph, "look again", k.read, NULL, 0, &value2, 1, NULL));
    CHECK_OK(weir_graph_compile(graph, &engine, 1, NULL, &program)); /* reads need none */
    weir_program_release(program);
    CHECK_OK(weir_graph_add_kernel(graph, "put", k.assign, &value2, 1, NULL, 0, &write));
    CHECK_CODE(weir_graph_compile(graph, &engine, 1, NULL, &program), WEIR_INVALID_ARGUMENT,
               "node 'look' reads variable 'x' of container 'default' and node 'put' writes it, in no order");
    CHECK_OK(weir_graph_add_control_edge(graph, read, write));
    CHECK_OK(weir_graph_compile(graph, &engine, 1, NULL, &program));
    weir_program_release(program);
    CHECK_OK(weir_graph_add_kernel(graph, "add", k.add, &input, 1, NULL, 0, &write2));
    CHECK_CODE(weir_graph_compile(graph, &engine, 1, NULL, &program), WEIR_INVALID_ARGUMENT, "in no order");
    CHECK_OK(weir_graph_add_control_edge(graph, write, write2));
    CHECK_OK(weir_graph_compile(graph, &engine, 1, NULL, &program));
    weir_program_release(program);

    /* Inside of a cond: one of the branches runs, so they need no order; what is around it does, by control edges. */
    weir_graph *then_graph = make_graph("then"), *else_graph = make_graph("else");
    weir_value then_in, else_in, branch_out;
    CHECK_OK(weir_graph_add_input(then_graph, "in", &desc, &then_in));
    CHECK_OK(weir_graph_add_kernel(then_graph, "put", k.assign, &then_in, 1, NULL, 0, NULL));
    CHECK_OK(weir_graph_add_output(then_graph, "out", then_in));
    CHECK_OK(weir_graph_add_input(else_graph, "in", &desc, &else_in));
    CHECK_OK(weir_graph_add_kernel(else_graph, "more", k.add, &else_in, 1, NULL, 0, NULL));
    CHECK_OK(weir_graph_add_output(else_graph, "out", else_in));
    CHECK_OK(weir_graph_add_cond(graph, "cond", &(weir_cond_desc){.struct_size = sizeof(weir_cond_desc),
        .predicate = predicate, .then_graph = then_graph, .else_graph = else_graph, .inputs = &value, .num_inputs = 1},
        &branch_out, 1, &cond));
    CHECK_CODE(weir_graph_compile(graph, &engine, 1, NULL, &program), WEIR_INVALID_ARGUMENT, "'cond/");
    CHECK_OK(weir_graph_add_control_edge(graph, write2, cond));
    CHECK_OK(weir_graph_compile(graph, &engine, 1, NULL, &program));
    weir_program_release(program);
    weir_node last;
    CHECK_OK(weir_graph_add_kernel(graph, "last", k.assign, &branch_out, 1, NULL, 0, &last));
    CHECK_CODE(weir_graph_compile(graph, &engine, 1, NULL, &program), WEIR_INVALID_ARGUMENT,
               "writes variable 'x' of container 'default' and node 'last' writes it, in no order");
    CHECK_OK(weir_graph_add_control_edge(graph, cond, last));
    CHECK_OK(weir_graph_compile(graph, &engine, 1, NULL, &program));

    /* A program with effects is a node with effects. */
    weir_graph *outer = make_graph("outer");
    weir_value ins[2], none;
    weir_node inner;
    CHECK_OK(weir_graph_add_input(outer, "input", &desc, &ins[0]));
    CHECK_OK(weir_graph_add_input(outer, "predicate", &flag, &ins[1]));
    CHECK_OK(weir_graph_add_program(outer, "inner", program, ins, 2, NULL, 0, &inner));
    CHECK_OK(weir_graph_add_kernel(outer, "look", k.read, NULL, 0, &none, 1, NULL));
    weir_program *refused = NULL;
    CHECK_CODE(weir_graph_compile(outer, &engine, 1, NULL, &refused), WEIR_INVALID_ARGUMENT,
               "node 'inner' writes variable 'x' of container 'default' and node 'look' reads it, in no order");
    weir_graph_destroy(outer);
    weir_program_release(program);

    /* Optimistic: nothing need be said. */
    weir_graph *any = make_graph("any");
    CHECK_OK(weir_graph_add_input(any, "input", &desc, &input));
    CHECK_OK(weir_graph_add_kernel(any, "look", free_k.read, NULL, 0, &value, 1, NULL));
    CHECK_OK(weir_graph_add_kernel(any, "put", free_k.assign, &input, 1, NULL, 0, NULL));
    CHECK_OK(weir_graph_compile(any, &engine, 1, NULL, &program));
    weir_program_release(program);
    weir_graph_destroy(any);
    weir_graph_destroy(then_graph);
    weir_graph_destroy(else_graph);
    weir_graph_destroy(graph);
    release_kernels(&k);
    release_kernels(&free_k);
    weir_resource_release(x);
    weir_resource_release(loose);
    weir_engine_release(engine);
}

/* Passes the step on, in even iterations after a while: what overlapped would be overtaken. */
static int32_t dawdle(void *user, weir_kernel_context *context) {
    const weir_tensor_view *in = NULL, *out = NULL;
    size_t num_in = 0, num_out = 0;
    (void)user;
    CHECK_OK(weir_kernel_context_get_inputs(context, &in, &num_in));
    CHECK_OK(weir_kernel_context_get_outputs(context, &out, &num_out));
    if (*(const int32_t *)in[1].data % 2 == 0) sleep_ms(1);
    memcpy(out[0].data, in[0].data, in[0].bytes);
    return WEIR_OK;
}

/* A loop that adds to a variable and reads it, round after round: iterations come one after the other although many may
 * overlap, and whether or not the loop is written out. */
static void test_loop(weir_threadpool *pool, int32_t trips, int known) {
    weir_engine *engine = make_engine(pool);
    weir_tensor_desc desc = make_desc(WEIR_S32, 1, N, 0, 0), one_desc = make_desc(WEIR_S32, 0, 0, 0, 0);
    weir_resource *x = make_variable(engine, "x", desc, WEIR_VARIABLE_EXCLUSIVE);
    kernels k = make_kernels(engine, x);
    weir_graph *graph = make_graph("loop"), *condition = make_graph("condition"), *body = make_graph("body");
    weir_binary_desc less = {.struct_size = sizeof less, .op = WEIR_BINARY_LT}, plus = {.struct_size = sizeof plus, .op = WEIR_BINARY_ADD};
    weir_kernel *lt = NULL, *sum = NULL;
    CHECK_OK(weir_kernel_create_binary(engine, &less, NULL, &lt));
    CHECK_OK(weir_kernel_create_binary(engine, &plus, NULL, &sum));
    weir_stream *stream = make_stream(engine, WEIR_STREAM_DEFAULT, NULL, NULL);
    weir_tensor_desc slow_in[2] = {desc, one_desc};
    weir_host_kernel_desc slow_desc = make_kernel_desc("dawdle", dawdle, NULL);
    weir_kernel *slow = NULL;
    slow_desc.num_inputs = 2;
    slow_desc.inputs = slow_in;
    slow_desc.cost_ns = 1000000;
    slow_desc.num_outputs = 1;
    slow_desc.outputs = &desc;
    CHECK_OK(weir_kernel_create_host(engine, &slow_desc, &slow));
    weir_tensor *one = make_tensor(engine, one_desc), *limit = make_tensor(engine, one_desc), *zero = make_tensor(engine, one_desc);
    integers(one)[0] = 1;
    integers(limit)[0] = trips;

    /* Variables: i and the value; shared: the limit, the increment, and 1. */
    weir_value c_in[5], b_in[5], goes_on, next[2], in[5], out[2];
    weir_tensor_desc descs[5] = {one_desc, desc, one_desc, desc, one_desc};
    const char *names[5] = {"i", "value", "limit", "step", "one"};
    weir_node add, read;
    for (int i = 0; i < 5; i++) {
        CHECK_OK(weir_graph_add_input(condition, names[i], &descs[i], &c_in[i]));
        CHECK_OK(weir_graph_add_input(body, names[i], &descs[i], &b_in[i]));
    }
    weir_value compared[2] = {c_in[0], c_in[2]}, counted[2] = {b_in[0], b_in[4]};
    CHECK_OK(weir_graph_add_kernel(condition, "less", lt, compared, 2, &goes_on, 1, NULL));
    CHECK_OK(weir_graph_add_output(condition, "goes_on", goes_on));
    CHECK_OK(weir_graph_add_kernel(body, "count", sum, counted, 2, &next[0], 1, NULL));
    weir_value slowed, slow_from[2] = {b_in[3], b_in[0]};
    CHECK_OK(weir_graph_add_kernel(body, "dawdle", slow, slow_from, 2, &slowed, 1, NULL));
    CHECK_OK(weir_graph_add_kernel(body, "add", k.add, &slowed, 1, NULL, 0, &add));
    CHECK_OK(weir_graph_add_kernel(body, "read", k.read, NULL, 0, &next[1], 1, &read));
    CHECK_OK(weir_graph_add_control_edge(body, add, read));
    CHECK_OK(weir_graph_add_output(body, "i", next[0]));
    CHECK_OK(weir_graph_add_output(body, "value", next[1]));

    if (known) {
        CHECK_OK(weir_graph_add_constant(graph, "i", zero, &in[0]));
        CHECK_OK(weir_graph_add_constant(graph, "limit", limit, &in[2]));
        CHECK_OK(weir_graph_add_constant(graph, "one", one, &in[4]));
    } else {
        CHECK_OK(weir_graph_add_input(graph, "i", &one_desc, &in[0]));
        CHECK_OK(weir_graph_add_input(graph, "limit", &one_desc, &in[2]));
        CHECK_OK(weir_graph_add_input(graph, "one", &one_desc, &in[4]));
    }
    CHECK_OK(weir_graph_add_input(graph, "value", &desc, &in[1]));
    CHECK_OK(weir_graph_add_input(graph, "step", &desc, &in[3]));
    CHECK_OK(weir_graph_add_while(graph, "loop", &(weir_while_desc){.struct_size = sizeof(weir_while_desc),
        .cond_graph = condition, .body_graph = body, .variables = in, .num_variables = 2, .invariants = in + 2,
        .num_invariants = 3, .parallel_iterations = 8}, out, NULL));
    CHECK_OK(weir_graph_add_output(graph, "value", out[1]));
    weir_program *program = compile(graph, engine);
    weir_tensor *step = constant_integers(engine, 2), *value = constant_integers(engine, 0), *result = constant_integers(engine, 0);
    weir_tensor *all[5] = {zero, limit, one, value, step}, *few[2] = {value, step};
    for (int run = 1; run <= 3; run++) {
        CHECK_OK(weir_program_run(program, stream, known ? few : all, known ? 2 : 5, &result, 1, NULL));
        for (int i = 0; i < N; i++) CHECK_EQ(integers(result)[i], run * trips * 2);
    }
    weir_program_release(program);
    weir_graph_destroy(graph);
    weir_graph_destroy(condition);
    weir_graph_destroy(body);
    weir_tensor *tensors[] = {one, limit, zero, step, value, result};
    for (size_t i = 0; i < 6; i++) weir_tensor_release(tensors[i]);
    weir_stream_release(stream);
    weir_kernel_release(lt);
    weir_kernel_release(slow);
    weir_kernel_release(sum);
    release_kernels(&k);
    weir_resource_release(x);
    weir_engine_release(engine);
}

/* Sums of every type that has them, the same as the kernel of that name gives. */
static void test_types(void) {
    const weir_dtype types[] = {WEIR_F32, WEIR_BF16, WEIR_F16, WEIR_S64, WEIR_S32, WEIR_S8, WEIR_U8};
    weir_engine *engine = make_engine(NULL);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_DEFAULT, NULL, NULL);
    weir_binary_desc plus = {.struct_size = sizeof plus, .op = WEIR_BINARY_ADD};
    weir_kernel *sum = NULL, *refused = NULL;
    CHECK_OK(weir_kernel_create_binary(engine, &plus, NULL, &sum));
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
        for (uint64_t flags = 0; flags < 2; flags++) {
            weir_tensor_desc desc = make_desc(types[t], 2, 37, 5, 0);
            weir_tensor *ab[2] = {make_tensor(engine, desc), make_tensor(engine, desc)};
            weir_tensor *expected = make_tensor(engine, desc), *got = make_tensor(engine, desc);
            size_t bytes = 0;
            CHECK_OK(weir_tensor_get_size(got, &bytes));
            for (size_t i = 0; i < bytes; i++) {
                ((uint8_t *)floats(ab[0]))[i] = (uint8_t)(i * 37u % 120u);
                ((uint8_t *)floats(ab[1]))[i] = (uint8_t)(i * 11u % 60u);
            }
            CHECK_OK(weir_enqueue(stream, sum, ab, 2, &expected, 1));
            weir_resource *x = NULL;
            CHECK_OK(weir_variable_create(engine, NULL, NULL, &desc, flags, ab[0], &x));
            kernels k = make_kernels(engine, x);
            CHECK_OK(weir_enqueue(stream, k.add, &ab[1], 1, NULL, 0));
            CHECK_OK(weir_enqueue(stream, k.read, NULL, 0, &got, 1));
            CHECK(memcmp(floats(got), floats(expected), bytes) == 0);
            release_kernels(&k);
            weir_resource_release(x);
            for (int i = 0; i < 2; i++) weir_tensor_release(ab[i]);
            weir_tensor_release(expected);
            weir_tensor_release(got);
        }
    }
    weir_tensor_desc truth = make_desc(WEIR_BOOL, 1, 3, 0, 0);
    weir_resource *flags = make_variable(engine, "flags", truth, WEIR_VARIABLE_EXCLUSIVE);
    CHECK_CODE(weir_kernel_create_variable(engine, flags, WEIR_VARIABLE_ASSIGN_ADD, NULL, &refused), WEIR_INVALID_ARGUMENT,
               "variable 'flags' of container 'default': input 0: expected elements that are numbers, got bool[3]");
    weir_resource_release(flags);
    weir_kernel_release(sum);
    weir_stream_release(stream);
    weir_engine_release(engine);
}

/* The second and later runs allocate nothing. */
static void test_allocations(uint64_t flags) {
    weir_engine *engine = make_engine(NULL);
    weir_resource *x = make_variable(engine, "x", make_desc(WEIR_S32, 1, N, 0, 0), flags);
    kernels k = make_kernels(engine, x);
    weir_program *program = counting(engine, &k);
    weir_tensor *one = constant_integers(engine, 1), *state = constant_integers(engine, 0);
    for (int i = 0; i < 3; i++) CHECK_OK(weir_program_run(program, NULL, &one, 1, &state, 1, NULL));
    uint64_t before = runtime_info().allocations;
    for (int i = 0; i < 100; i++) CHECK_OK(weir_program_run(program, NULL, &one, 1, &state, 1, NULL));
    CHECK_EQ(runtime_info().allocations, before);
    CHECK_EQ(integers(state)[0], 103);
    weir_tensor_release(one);
    weir_tensor_release(state);
    weir_program_release(program);
    release_kernels(&k);
    weir_resource_release(x);
    weir_engine_release(engine);
}

int main(void) {
    weir_runtime_info before = runtime_info();
    weir_threadpool *pool = NULL;
    test_pool *threads = test_pool_create(POOL_FIFO, 3, &pool);
    (void)threads;
    for (uint64_t flags = 0; flags < 2; flags++) {
        test_streams(NULL, flags, WEIR_STREAM_DEFAULT);
        test_streams(NULL, flags, WEIR_STREAM_ASYNCHRONOUS);
        test_streams(pool, flags, WEIR_STREAM_ASYNCHRONOUS);
        test_runs_at_once(NULL, flags);
        test_runs_at_once(pool, flags);
        test_allocations(flags);
    }
    test_nodes_at_once(NULL);
    test_nodes_at_once(pool);
    test_order();
    test_loop(NULL, 5, 1);
    test_loop(pool, 5, 1);
    test_loop(NULL, 40, 0);
    test_loop(pool, 40, 0);
    test_types();
    weir_threadpool_release(pool);
    check_released(&before);
    puts("variables keep what runs give them");
    return 0;
}

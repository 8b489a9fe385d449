/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Graphs: what is refused and how the text names the nodes, the order of nodes, constants, odd outputs, and random
 * graphs against a serial evaluation.
 */

#include <weir/control.h>
#include <weir/ops.h>
#include <weir/inspect.h>
#include <weir/testing.h>

#include "make.h"
#include "test_pools.h"

/* A kernel of any number of inputs: the sum of the first elements, and one more. Small enough to stay exact in f32. */
static int32_t sum_compute(void *user, weir_kernel_context *context) {
    const weir_tensor_view *in = NULL, *out = NULL;
    size_t num_in = 0, num_out = 0;
    int64_t sum = 1;
    (void)user;
    CHECK_OK(weir_kernel_context_get_inputs(context, &in, &num_in));
    CHECK_OK(weir_kernel_context_get_outputs(context, &out, &num_out));
    for (size_t i = 0; i < num_in; i++) sum += (int64_t) * (const float *)in[i].data * (int64_t)(i + 1);
    for (size_t i = 0; i < num_out; i++) *(float *)out[i].data = (float)((sum + (int64_t)i) % 9973);
    return WEIR_OK;
}

static weir_kernel *sum_kernel(weir_engine *engine, size_t num_inputs, size_t num_outputs) {
    weir_host_kernel_desc desc = make_kernel_desc("sum", sum_compute, NULL);
    weir_tensor_desc ones[4] = {vector_desc(1), vector_desc(1), vector_desc(1), vector_desc(1)};
    weir_kernel *kernel = NULL;
    desc.num_inputs = num_inputs;
    desc.inputs = ones;
    desc.num_outputs = num_outputs;
    desc.outputs = ones;
    CHECK_OK(weir_kernel_create_host(engine, &desc, &kernel));
    return kernel;
}

static weir_value add_input(weir_graph *graph, const char *name, weir_tensor_desc desc) {
    weir_value value = 0;
    CHECK_OK(weir_graph_add_input(graph, name, &desc, &value));
    return value;
}

static weir_value add_unary(weir_graph *graph, const char *name, weir_kernel *kernel, weir_value input,
                            weir_node *node) {
    weir_value value = 0;
    CHECK_OK(weir_graph_add_kernel(graph, name, kernel, &input, 1, &value, 1, node));
    return value;
}

/* Refused by compile, with `text` in the message; the graph itself stays good for more. */
static void check_refused(const weir_graph *graph, weir_engine *engine, const char *text) {
    weir_program *program = (weir_program *)engine;
    CHECK_CODE(weir_graph_compile(graph, &engine, 1, NULL, &program), WEIR_INVALID_ARGUMENT, text);
    CHECK(program == NULL);
}

static void test_cycle(void) {
    weir_engine *engine = make_engine(NULL);
    weir_kernel *kernel = sum_kernel(engine, 1, 1);
    weir_graph *graph = make_graph("knot");
    weir_node first, second, third;
    weir_value x = add_input(graph, "x", vector_desc(1));
    weir_value y = add_unary(graph, "alpha", kernel, x, &first);
    y = add_unary(graph, "beta", kernel, y, &second);
    y = add_unary(graph, "gamma", kernel, y, &third);
    CHECK_OK(weir_graph_add_output(graph, "y", y));
    CHECK_OK(weir_graph_add_control_edge(graph, third, second));
    check_refused(graph, engine, "cycle");
    CHECK_TEXT(weir_last_error_message(), "'beta'");
    CHECK_TEXT(weir_last_error_message(), "'gamma'");
    CHECK(strstr(weir_last_error_message(), "'alpha'") == NULL); /* it is not part of it */
    weir_graph_destroy(graph);
    weir_kernel_release(kernel);
    weir_engine_release(engine);
}

static void test_wrong_inputs(void) {
    weir_engine *engine = make_engine(NULL);
    weir_matmul_desc with_bias = {.struct_size = sizeof with_bias, .flags = WEIR_MATMUL_BIAS};
    weir_kernel *matmul = NULL;
    CHECK_OK(weir_kernel_create_matmul(engine, &with_bias, NULL, &matmul));

    weir_graph *graph = make_graph("shapes"); /* the bias has the wrong length */
    weir_value in[3] = {add_input(graph, "x", matrix_desc(4, 3)), add_input(graph, "w", matrix_desc(3, 5)),
                        add_input(graph, "b", vector_desc(6))};
    weir_value y;
    CHECK_OK(weir_graph_add_kernel(graph, "dense1", matmul, in, 3, &y, 1, NULL));
    check_refused(graph, engine, "node 'dense1' input 2: expected f32[5], got f32[6]");
    weir_graph_destroy(graph);

    graph = make_graph("types"); /* the second node takes what the first gives, of the wrong type */
    in[0] = add_input(graph, "x", make_desc(WEIR_S32, 2, 4, 3, 0));
    in[1] = add_input(graph, "w", matrix_desc(3, 5));
    in[2] = add_input(graph, "b", vector_desc(5));
    CHECK_OK(weir_graph_add_kernel(graph, "dense2", matmul, in, 3, &y, 1, NULL));
    check_refused(graph, engine, "node 'dense2' input 0: ");
    CHECK_TEXT(weir_last_error_message(), "s32[4,3]");
    weir_graph_destroy(graph);

    weir_kernel_release(matmul);
    weir_engine_release(engine);
}

/* What was made on another engine of the same device is as good: it is the same memory and the same processors. */
static void test_other_engine_of_the_device(void) {
    weir_engine *engine = make_engine(NULL), *other = make_engine(NULL);
    weir_kernel *kernel = sum_kernel(other, 2, 1);
    weir_tensor *constant = make_tensor(other, vector_desc(1)), *in = make_tensor(other, vector_desc(1));
    weir_tensor *out = make_tensor(engine, vector_desc(1));
    weir_graph *graph = make_graph("two engines");
    weir_value values[2] = {add_input(graph, "x", vector_desc(1))}, y;
    floats(constant)[0] = 4;
    CHECK_OK(weir_graph_add_constant(graph, "four", constant, &values[1]));
    CHECK_OK(weir_graph_add_kernel(graph, "sum", kernel, values, 2, &y, 1, NULL));
    CHECK_OK(weir_graph_add_output(graph, "y", y));
    weir_program *program = compile(graph, engine);
    CHECK_OK(weir_program_run(program, NULL, &in, 1, &out, 1, NULL));
    CHECK(floats(out)[0] == 9);
    weir_program_release(program);
    weir_graph_destroy(graph);
    weir_tensor_release(out);
    weir_tensor_release(in);
    weir_tensor_release(constant);
    weir_kernel_release(kernel);
    weir_engine_release(other);
    weir_engine_release(engine);
}

/* A foreign value is refused where it is used, and a refused node leaves its name free. */
static void test_foreign_value(void) {
    weir_engine *engine = make_engine(NULL);
    weir_kernel *kernel = sum_kernel(engine, 1, 1);
    weir_graph *graph = make_graph("mine"), *other = make_graph("other");
    weir_value foreign = add_input(other, "a", vector_desc(1)), out = 77;
    (void)add_input(graph, "x", vector_desc(1));
    CHECK_CODE(weir_graph_add_kernel(graph, "user", kernel, &foreign, 1, &out, 1, NULL), WEIR_INVALID_ARGUMENT,
               "'user'");
    CHECK_EQ(out, 77);
    foreign = add_unary(other, "user", kernel, foreign, NULL);
    CHECK_CODE(weir_graph_add_output(graph, "y", foreign), WEIR_INVALID_ARGUMENT, "value");
    (void)add_unary(graph, "user", kernel, add_input(graph, "z", vector_desc(1)), NULL);
    CHECK_CODE(weir_graph_add_input(graph, "user", &(weir_tensor_desc){.dtype = WEIR_F32}, &out), WEIR_ALREADY_EXISTS,
               "'user'");
    weir_graph_destroy(other);
    weir_graph_destroy(graph);
    weir_kernel_release(kernel);
    weir_engine_release(engine);
}

/* Tasks note their place in the order in which they ran. */
typedef struct place {
    atomic_int *clock;
    atomic_int at;
} place;

static int32_t note_place(void *arg) {
    place *p = arg;
    atomic_store(&p->at, atomic_fetch_add(p->clock, 1));
    return WEIR_OK;
}

/* source -> left, right -> sink, by control edges; the kernel node hangs between left and sink too. */
static void check_order(weir_threadpool *pool) {
    enum { SOURCE, LEFT, RIGHT, SINK, PLACES };
    static const char *const names[PLACES] = {"source", "left", "right", "sink"};
    weir_engine *engine = make_engine(pool);
    weir_kernel *kernel = sum_kernel(engine, 1, 1);
    weir_graph *graph = make_graph("diamond");
    atomic_int clock = 0, destroyed = 0;
    place places[PLACES];
    weir_node nodes[PLACES], middle;
    for (int i = 0; i < PLACES; i++) {
        places[i].clock = &clock;
        uint64_t cost_ns = i == LEFT ? 1000000 : 0;
        CHECK_OK(weir_graph_add_task(graph, names[i], note_place, &places[i], NULL, cost_ns, &nodes[i]));
    }
    CHECK_OK(weir_graph_add_task(graph, "counted", count_run, &destroyed, count_destroy, 0, &middle));
    weir_value y = add_unary(graph, "middle", kernel, add_input(graph, "x", vector_desc(1)), &middle);
    CHECK_OK(weir_graph_add_output(graph, "y", y));
    CHECK_OK(weir_graph_add_control_edge(graph, nodes[SOURCE], nodes[LEFT]));
    CHECK_OK(weir_graph_add_control_edge(graph, nodes[SOURCE], nodes[RIGHT]));
    CHECK_OK(weir_graph_add_control_edge(graph, nodes[LEFT], nodes[SINK]));
    CHECK_OK(weir_graph_add_control_edge(graph, nodes[LEFT], nodes[SINK])); /* twice is once */
    CHECK_OK(weir_graph_add_control_edge(graph, nodes[RIGHT], nodes[SINK]));
    CHECK_OK(weir_graph_add_control_edge(graph, nodes[LEFT], middle));
    CHECK_OK(weir_graph_add_control_edge(graph, middle, nodes[SINK]));
    weir_program *program = compile(graph, engine);
    weir_graph_destroy(graph); /* the program lives on */
    weir_tensor *in = make_tensor(engine, vector_desc(1)), *out = make_tensor(engine, vector_desc(1));
    floats(in)[0] = 5;
    int rounds = scale(500);
    for (int round = 0; round < rounds; round++) {
        atomic_store(&clock, 0);
        floats(out)[0] = 0;
        CHECK_OK(weir_program_run(program, NULL, &in, 1, &out, 1, NULL));
        CHECK_EQ(atomic_load(&clock), PLACES);
        CHECK_EQ(atomic_load(&places[SOURCE].at), 0);
        CHECK_EQ(atomic_load(&places[SINK].at), 3);
        CHECK(floats(out)[0] == 6);
    }
    CHECK_EQ(atomic_load(&destroyed), rounds);
    weir_program_release(program);
    EVENTUALLY(atomic_load(&destroyed) == rounds + 1); /* arg is destroyed once, with the last of graph and program */
    weir_tensor_release(in);
    weir_tensor_release(out);
    weir_kernel_release(kernel);
    weir_engine_release(engine);
}

/* Constants, an input that is an output, one value as two outputs, a constant as an output. */
static void test_odd_outputs(void) {
    weir_engine *engine = make_engine(NULL);
    weir_kernel *kernel = sum_kernel(engine, 2, 2), *unused = sum_kernel(engine, 1, 1);
    weir_graph *graph = make_graph("odd");
    weir_tensor *constant = make_tensor(engine, vector_desc(1)), *in = make_tensor(engine, vector_desc(1));
    weir_value values[2], made[2];
    floats(constant)[0] = 10;
    floats(in)[0] = 3;
    values[0] = add_input(graph, "x", vector_desc(1));
    CHECK_OK(weir_graph_add_constant(graph, "ten", constant, &values[1]));
    CHECK_OK(weir_graph_add_kernel(graph, "sum", kernel, values, 2, made, 2, NULL));
    (void)add_unary(graph, "nobody asks", unused, values[0], NULL);
    static const char *const names[] = {"sum", "again", "second", "the input", "the constant"};
    weir_value outputs[] = {made[0], made[0], made[1], values[0], values[1]};
    const float expected[] = {24, 24, 25, 3, 10};
    enum { OUTPUTS = sizeof outputs / sizeof *outputs };
    weir_tensor *out[OUTPUTS];
    for (int i = 0; i < OUTPUTS; i++) {
        CHECK_OK(weir_graph_add_output(graph, names[i], outputs[i]));
        out[i] = make_tensor(engine, vector_desc(1));
    }
    CHECK_CODE(weir_graph_add_output(graph, "again", made[1]), WEIR_ALREADY_EXISTS, "'again'");
    weir_program *program = compile(graph, engine);
    weir_graph_destroy(graph);
    weir_tensor_release(constant); /* the program keeps it */
    weir_program_info info = {.struct_size = sizeof info};
    weir_port_info port = {.struct_size = sizeof port};
    CHECK_OK(weir_program_get_info(program, &info));
    CHECK(info.num_inputs == 1 && info.num_outputs == OUTPUTS);
    CHECK_OK(weir_program_get_port(program, WEIR_PORT_INPUT, 0, &port));
    CHECK(port.desc.dtype == WEIR_F32 && port.desc.rank == 1 && port.desc.dims[0] == 1);
    CHECK(port.engine == engine);
    CHECK_OK(weir_program_get_port(program, WEIR_PORT_OUTPUT, OUTPUTS - 1, &port));
    CHECK(port.desc.dtype == WEIR_F32 && port.desc.rank == 1 && port.desc.dims[0] == 1);
    CHECK(strcmp(port.name, names[OUTPUTS - 1]) == 0);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < OUTPUTS; i++) floats(out[i])[0] = -1;
        CHECK_OK(weir_program_run(program, NULL, &in, 1, out, OUTPUTS, NULL));
        for (int i = 0; i < OUTPUTS; i++) CHECK(floats(out[i])[0] == expected[i]);
    }
    for (int i = 0; i < OUTPUTS; i++) weir_tensor_release(out[i]);
    weir_tensor_release(in);
    weir_program_release(program);
    weir_kernel_release(kernel);
    weir_kernel_release(unused);
    weir_engine_release(engine);
}

/* A graph may be changed and compiled again; what was compiled stays what it was. */
static void test_compile_again(void) {
    weir_engine *engine = make_engine(NULL);
    weir_kernel *kernel = sum_kernel(engine, 1, 1);
    weir_graph *graph = make_graph(NULL);
    weir_compile_options options = {.struct_size = sizeof options, .hop_ns = 5};
    weir_value y = add_unary(graph, "one", kernel, add_input(graph, "x", vector_desc(1)), NULL);
    CHECK_OK(weir_graph_add_output(graph, "a", y));
    weir_program *small = compile(graph, engine), *large = NULL;
    CHECK_OK(weir_graph_add_output(graph, "b", add_unary(graph, "two", kernel, y, NULL)));
    CHECK_OK(weir_program_get_options(small, &options));
    CHECK_EQ(options.hop_ns, 0); /* what the pool costs */
    options.hop_ns = WEIR_HOP_NONE;
    CHECK_OK(weir_graph_compile(graph, &engine, 1, &options, &large));
    weir_tensor *in = make_tensor(engine, vector_desc(1));
    weir_tensor *out[2] = {make_tensor(engine, vector_desc(1)), make_tensor(engine, vector_desc(1))};
    CHECK_OK(weir_program_run(small, NULL, &in, 1, out, 1, NULL));
    CHECK(floats(out[0])[0] == 1 && floats(out[1])[0] == 0);
    CHECK_OK(weir_program_run(large, NULL, &in, 1, out, 2, NULL));
    CHECK(floats(out[0])[0] == 1 && floats(out[1])[0] == 2);
    weir_tensor_release(in);
    weir_tensor_release(out[0]);
    weir_tensor_release(out[1]);
    weir_program_release(small);
    weir_program_release(large);
    weir_graph_destroy(graph);
    weir_kernel_release(kernel);
    weir_engine_release(engine);
}

/* A chain long enough to overflow the stack of one who recurses, and a node that feeds very many. */
static void test_long_and_wide(weir_threadpool *pool) {
    weir_engine *engine = make_engine(pool);
    weir_kernel *kernel = sum_kernel(engine, 1, 1);
    weir_graph *graph = make_graph("long and wide");
    int n = scale(40000);
    char name[32];
    weir_value x = add_input(graph, "x", vector_desc(1)), y = x;
    atomic_int runs = 0;
    weir_node source, node;
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "link %d", i);
        y = add_unary(graph, name, kernel, y, NULL);
    }
    CHECK_OK(weir_graph_add_output(graph, "y", y));
    CHECK_OK(weir_graph_add_task(graph, "source", count_run, &runs, NULL, 0, &source));
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "leaf %d", i);
        CHECK_OK(weir_graph_add_task(graph, name, count_run, &runs, NULL, 0, &node));
        CHECK_OK(weir_graph_add_control_edge(graph, source, node));
    }
    weir_program *program = compile(graph, engine);
    weir_graph_destroy(graph);
    weir_tensor *in = make_tensor(engine, vector_desc(1)), *out = make_tensor(engine, vector_desc(1));
    for (int round = 1; round <= 3; round++) {
        CHECK_OK(weir_program_run(program, NULL, &in, 1, &out, 1, NULL));
        CHECK_EQ(atomic_load(&runs), round * (n + 1));
        CHECK(floats(out)[0] == (float)(n % 9973));
    }
    weir_tensor_release(in);
    weir_tensor_release(out);
    weir_program_release(program);
    weir_kernel_release(kernel);
    weir_engine_release(engine);
}

/* Who needs no node passes NULL, for a task as for a kernel; of a merge's values the index may be left out. */
static void test_outputs_that_nobody_wants(void) {
    weir_engine *engine = make_engine(NULL);
    weir_kernel *kernel = sum_kernel(engine, 1, 1);
    weir_graph *graph = make_graph("unwanted");
    atomic_int runs = 0;
    weir_value sides[2], merged = {0};
    weir_value x = add_input(graph, "x", vector_desc(1)), which = add_input(graph, "which", make_desc(WEIR_S32, 0, 0, 0, 0));
    CHECK_OK(weir_graph_add_task(graph, "task", count_run, &runs, NULL, 0, NULL));
    CHECK_OK(weir_graph_add_switch(graph, "switch", x, which, &sides[0], &sides[1], NULL));
    sides[0] = add_unary(graph, "side", kernel, sides[0], NULL);
    CHECK_OK(weir_graph_add_merge(graph, "merge", sides, 2, &merged, NULL, NULL));
    CHECK_OK(weir_graph_add_output(graph, "y", merged));
    weir_program *program = compile(graph, engine);
    weir_tensor *in[2] = {make_tensor(engine, vector_desc(1)), make_tensor(engine, make_desc(WEIR_S32, 0, 0, 0, 0))};
    weir_tensor *out = make_tensor(engine, vector_desc(1));
    void *index = NULL;
    CHECK_OK(weir_tensor_get_data(in[1], &index));
    for (int32_t run = 1; run <= 2; run++) {
        *(int32_t *)index = run - 1;
        floats(in[0])[0] = 4;
        CHECK_OK(weir_program_run(program, NULL, in, 2, &out, 1, NULL));
        CHECK_EQ(atomic_load(&runs), run);
        CHECK(floats(out)[0] == (run == 1 ? 5 : 4));
    }
    weir_tensor_release(in[0]);
    weir_tensor_release(in[1]);
    weir_tensor_release(out);
    weir_program_release(program);
    weir_graph_destroy(graph);
    weir_kernel_release(kernel);
    weir_engine_release(engine);
}

static uint32_t random_state = 1;

static uint32_t random_below(uint32_t n) {
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 8) % n;
}

enum { MAX_NODES = 200, RANDOM_INPUTS = 3 };

/* A random graph whose last nodes are outputs, evaluated serially while it is built. */
static void check_random(weir_threadpool *pool, uint32_t seed) {
    weir_engine *engine = make_engine(pool);
    weir_kernel *kernels[4];
    weir_graph *graph = make_graph("random");
    weir_value values[MAX_NODES + RANDOM_INPUTS];
    float expected[MAX_NODES + RANDOM_INPUTS];
    weir_tensor *in[RANDOM_INPUTS], *out[8];
    char name[32];
    random_state = seed;
    int n = RANDOM_INPUTS, end = RANDOM_INPUTS + 1 + (int)random_below(MAX_NODES);
    for (size_t i = 0; i < 4; i++) kernels[i] = sum_kernel(engine, i + 1, 1);
    for (int i = 0; i < RANDOM_INPUTS; i++) {
        snprintf(name, sizeof name, "input %d", i);
        in[i] = make_tensor(engine, vector_desc(1));
        floats(in[i])[0] = expected[i] = (float)random_below(100);
        values[i] = add_input(graph, name, vector_desc(1));
    }
    for (; n < end; n++) {
        uint32_t num_inputs = 1 + random_below(4);
        weir_value chosen[4];
        int64_t sum = 1;
        for (uint32_t i = 0; i < num_inputs; i++) {
            uint32_t from = random_below(2) ? random_below((uint32_t)n) : (uint32_t)n - 1;
            chosen[i] = values[from];
            sum += (int64_t)expected[from] * (int64_t)(i + 1);
        }
        expected[n] = (float)(sum % 9973);
        snprintf(name, sizeof name, "node %d", n);
        CHECK_OK(weir_graph_add_kernel(graph, name, kernels[num_inputs - 1], chosen, num_inputs, &values[n], 1, NULL));
    }
    int num_out = n < 8 ? n : 8;
    for (int i = 0; i < num_out; i++) {
        snprintf(name, sizeof name, "output %d", i);
        CHECK_OK(weir_graph_add_output(graph, name, values[n - 1 - i]));
        out[i] = make_tensor(engine, vector_desc(1));
    }
    weir_program *program = compile(graph, engine);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < num_out; i++) floats(out[i])[0] = -1;
        CHECK_OK(weir_program_run(program, NULL, in, RANDOM_INPUTS, out, (size_t)num_out, NULL));
        for (int i = 0; i < num_out; i++) CHECK(floats(out[i])[0] == expected[n - 1 - i]);
    }
    for (int i = 0; i < num_out; i++) weir_tensor_release(out[i]);
    for (int i = 0; i < RANDOM_INPUTS; i++) weir_tensor_release(in[i]);
    for (int i = 0; i < 4; i++) weir_kernel_release(kernels[i]);
    weir_program_release(program);
    weir_graph_destroy(graph);
    weir_engine_release(engine);
}

static void test_on_every_pool(void) {
    for (int kind = 0; kind < POOL_KINDS; kind++) {
        for (int width = is_slow() ? 3 : 1; width <= 3; width += 2) {
            weir_threadpool *pool = NULL;
            test_pool *host = test_pool_create((pool_kind)kind, width, &pool);
            check_order(pool);
            for (int i = 0; i < scale(40); i++) check_random(pool, (uint32_t)(i * 1000 + kind * 10 + width));
            if (width == 3) test_long_and_wide(pool);
            test_pool_let_go(host);
            weir_threadpool_release(pool);
            test_pool_destroy(host);
        }
    }
    for (uint64_t seed = 0; seed < (uint64_t)scale(100); seed++) {
        weir_threadpool *pool = NULL;
        CHECK_OK(weir_threadpool_create_seeded(seed, 1 + (int32_t)(seed % 4), &pool));
        check_random(pool, (uint32_t)seed);
        weir_threadpool_release(pool);
    }
}

int main(void) {
    weir_runtime_info before = runtime_info();
    test_cycle();
    test_wrong_inputs();
    test_other_engine_of_the_device();
    test_foreign_value();
    test_outputs_that_nobody_wants();
    check_order(NULL);
    test_odd_outputs();
    test_compile_again();
    test_long_and_wide(NULL);
    check_random(NULL, 7);
    test_on_every_pool();
    check_released(&before);
    return 0;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * What a program says of itself: nodes, edges and memory, and what is made of kernels in place, forwarding and pure
 * kernels.
 */

#include <weir/inspect.h>

#include "make.h"

/* out[i] = in[i] + 1, in place too; counts its calls. */
static int32_t add_one(void *user, weir_kernel_context *context) {
    const weir_tensor_view *in = NULL, *out = NULL;
    size_t num_in = 0, num_out = 0;
    CHECK_OK(weir_kernel_context_get_inputs(context, &in, &num_in));
    CHECK_OK(weir_kernel_context_get_outputs(context, &out, &num_out));
    atomic_fetch_add((atomic_int *)user, 1);
    for (size_t i = 0; i < out->bytes / sizeof(float); i++) ((float *)out->data)[i] = ((float *)in->data)[i] + 1;
    return WEIR_OK;
}

static weir_kernel *make_add_one(weir_engine *engine, const weir_tensor_desc *like, atomic_int *calls, uint64_t flags) {
    weir_host_kernel_desc desc = make_kernel_desc("add one", add_one, calls);
    weir_kernel *kernel = NULL;
    desc.num_inputs = desc.num_outputs = 1;
    desc.inputs = desc.outputs = like;
    desc.flags = flags;
    CHECK_OK(weir_kernel_create_host(engine, &desc, &kernel));
    return kernel;
}

static char report[4096];

/* A number of the JSON report. */
static long fact(const weir_program *program, const char *key) {
    char quoted[64];
    CHECK_OK(weir_program_report(program, WEIR_REPORT_JSON, report, sizeof report, NULL));
    (void)snprintf(quoted, sizeof quoted, "\"%s\":", key);
    const char *at = strstr(report, quoted);
    CHECK(at != NULL);
    return strtol(at + strlen(quoted), NULL, 10);
}

enum { LENGTH = 5 };

typedef struct chain {
    weir_graph *graph;
    weir_node nodes[LENGTH];
    weir_value last;
} chain;

static chain make_chain(weir_kernel *kernel, weir_value first, weir_graph *graph) {
    chain c = {.graph = graph, .last = first};
    for (int i = 0; i < LENGTH; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "k%d", i);
        CHECK_OK(weir_graph_add_kernel(graph, name, kernel, &c.last, 1, &c.last, 1, &c.nodes[i]));
    }
    CHECK_OK(weir_graph_add_output(graph, "y", c.last));
    return c;
}

static void run(const weir_program *program, weir_tensor *x, size_t inputs, weir_tensor *y, float expected) {
    CHECK_OK(weir_program_run((weir_program *)program, NULL, &x, inputs, &y, 1, NULL));
    for (size_t i = 0; i < num_floats(y); i++) CHECK(floats(y)[i] == expected);
}

static void test_forwarding(weir_engine *engine) {
    weir_tensor_desc desc = vector_desc(16);
    atomic_int calls = 0;
    weir_kernel *kernel = make_add_one(engine, &desc, &calls, WEIR_KERNEL_IN_PLACE);
    weir_tensor *x = make_tensor(engine, desc), *y = make_tensor(engine, desc);
    weir_value in;
    weir_graph *graph = make_graph("chain");
    CHECK_OK(weir_graph_add_input(graph, "x", &desc, &in));
    chain c = make_chain(kernel, in, graph);

    weir_program *program = compile(graph, engine);
    CHECK_EQ(fact(program, "forwarded"), LENGTH - 1);
    CHECK_EQ(fact(program, "arena_bytes"), 0); /* all of it lies in the output */
    CHECK_EQ(fact(program, "arena_bytes_unshared"), 64 * (LENGTH - 1));
    CHECK_EQ(fact(program, "graph"), LENGTH + 1);
    CHECK_EQ(fact(program, "direct"), LENGTH - 1);
    CHECK_EQ(fact(program, "joins"), 0);
    CHECK_OK(weir_program_report(program, WEIR_REPORT_TEXT, report, sizeof report, NULL));
    CHECK_TEXT(report, "4 values written over an input");
    run(program, x, 1, y, LENGTH);
    run(program, x, 1, y, LENGTH); /* x is as it was */
    weir_program_release(program);

    CHECK_OK(weir_graph_set_forwarding(graph, c.nodes[2], 0, WEIR_FORWARD_NEVER));
    program = compile(graph, engine);
    CHECK_EQ(fact(program, "forwarded"), LENGTH - 2);
    run(program, x, 1, y, LENGTH);
    weir_program_release(program);

    CHECK_OK(weir_graph_set_forwarding(graph, c.nodes[2], 0, WEIR_FORWARD_AUTO));
    CHECK_OK(weir_graph_set_forwarding(graph, c.nodes[3], 0, 0));
    program = compile(graph, engine);
    CHECK_EQ(fact(program, "forwarded"), LENGTH - 1);
    weir_program_release(program);

    CHECK_CODE(weir_graph_set_forwarding(graph, c.nodes[0], 1, 0), WEIR_OUT_OF_RANGE, "output is 1, node 'k0' has 1");
    CHECK_CODE(weir_graph_set_forwarding(graph, c.nodes[0], 0, 1), WEIR_OUT_OF_RANGE, "input is 1, node 'k0' has 1");
    CHECK_OK(weir_graph_set_forwarding(graph, c.nodes[0], 0, 0)); /* the run's own input is not to be written */
    program = NULL;
    CHECK_CODE(weir_graph_compile(graph, &engine, 1, NULL, &program), WEIR_INVALID_ARGUMENT,
               "node 'k0': output 0 cannot take over the memory of input 0");
    weir_graph_destroy(graph);
    weir_kernel_release(kernel);
    weir_tensor_release(x);
    weir_tensor_release(y);
}

static void test_pure(weir_engine *engine) {
    weir_tensor_desc desc = vector_desc(16);
    weir_tensor *x = make_tensor(engine, desc), *y = make_tensor(engine, desc);
    for (int pure = 0; pure < 2; pure++) {
        atomic_int calls = 0;
        weir_kernel *kernel = make_add_one(engine, &desc, &calls, pure ? WEIR_KERNEL_PURE : 0);
        weir_value constant;
        weir_graph *graph = make_graph("constant");
        CHECK_OK(weir_graph_add_constant(graph, "x", x, &constant));
        (void)make_chain(kernel, constant, graph);
        weir_program *program = compile(graph, engine);
        CHECK_EQ(fact(program, "folded"), pure ? LENGTH : 0);
        CHECK_EQ(atomic_load(&calls), pure ? LENGTH : 0);
        run(program, NULL, 0, y, LENGTH);
        CHECK_EQ(atomic_load(&calls), LENGTH);
        run(program, NULL, 0, y, LENGTH);
        CHECK_EQ(atomic_load(&calls), pure ? LENGTH : 2 * LENGTH);
        CHECK_EQ(fact(program, "copies"), pure);
        weir_program_release(program);
        weir_graph_destroy(graph);
        weir_kernel_release(kernel);
    }
    weir_tensor_release(x);
    weir_tensor_release(y);
}

/* a -> b -> c and a -> c: the last one says nothing new. */
static void test_edges(weir_engine *engine) {
    atomic_int runs = 0;
    weir_node nodes[3];
    weir_graph *graph = make_graph("edges");
    static const char *const names[] = {"a", "b", "c"};
    for (int i = 0; i < 3; i++) {
        CHECK_OK(weir_graph_add_task(graph, names[i], count_run, &runs, NULL, 0, &nodes[i]));
        for (int before = 0; before < i; before++) {
            CHECK_OK(weir_graph_add_control_edge(graph, nodes[before], nodes[i]));
            CHECK_OK(weir_graph_add_control_edge(graph, nodes[before], nodes[i]));
        }
    }
    weir_program *program = compile(graph, engine);
    CHECK_EQ(fact(program, "all"), 2);
    CHECK_EQ(fact(program, "parallel"), 3);
    CHECK_EQ(fact(program, "implied"), 1);
    CHECK_EQ(fact(program, "joins"), 0);
    CHECK_OK(weir_program_run(program, NULL, NULL, 0, NULL, 0, NULL));
    CHECK_EQ(atomic_load(&runs), 3);
    weir_program_release(program);
    weir_graph_destroy(graph);
}

int main(void) {
    weir_runtime_info before = runtime_info();
    weir_engine *engine = make_engine(NULL);
    test_forwarding(engine);
    test_pure(engine);
    test_edges(engine);
    weir_engine_release(engine);
    check_released(&before);
    return 0;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Large graphs of host kernels whose values go along the edges: one kernel for many nodes and a kernel for each, few
 * places in memory and many, against a serial evaluation; what a kernel that fails is called there; and that later runs
 * ask for no memory.
 */

#include "make.h"

enum { MOST_INPUTS = 8, MOST_OUTPUTS = 40 };

static const weir_tensor_desc *number(void) {
    static weir_tensor_desc desc[MOST_INPUTS];
    for (int i = 0; i < MOST_INPUTS; i++) desc[i] = make_desc(WEIR_S32, 1, 1, 0, 0);
    return desc;
}

static uint32_t mixed(uint32_t sum, uint32_t value) {
    return sum * 31 + value;
}

/* With a text of its own, with a code alone, or not at all. */
static int fails;

static int32_t mix_compute(void *user, weir_kernel_context *context) {
    const weir_tensor_view *in = NULL, *out = NULL;
    size_t num_in = 0, num_out = 0;
    uint32_t sum = 7;
    (void)user;
    CHECK_OK(weir_kernel_context_get_inputs(context, &in, &num_in));
    CHECK_OK(weir_kernel_context_get_outputs(context, &out, &num_out));
    CHECK_EQ(num_out, 1);
    CHECK_EQ(out[0].bytes, 4);
    for (size_t i = 0; i < num_in; i++) {
        CHECK_EQ(in[i].desc.dtype, WEIR_S32);
        sum = mixed(sum, *(const uint32_t *)in[i].data);
    }
    *(uint32_t *)out[0].data = sum;
    return WEIR_OK;
}

static int32_t failing_compute(void *user, weir_kernel_context *context) {
    if (fails == 1) CHECK_OK(weir_kernel_context_fail(context, WEIR_FAILED_PRECONDITION, "no more of it"));
    if (fails == 2) return WEIR_OUT_OF_RANGE;
    return fails == 1 ? WEIR_INTERNAL : mix_compute(user, context);
}

/* Scratch of 128 bytes, which the kernel fills. */
static int32_t scratch_compute(void *user, weir_kernel_context *context) {
    void *scratch = NULL;
    CHECK_OK(weir_kernel_context_get_scratch(context, 0, &scratch));
    CHECK(scratch != NULL && (uintptr_t)scratch % 64 == 0);
    memset(scratch, 0x5a, 128);
    return mix_compute(user, context);
}

static weir_kernel *make_kernel(weir_engine *engine, weir_compute_fn compute, size_t inputs) {
    weir_host_kernel_desc desc = make_kernel_desc("mix", compute, NULL);
    weir_kernel *kernel = NULL;
    desc.num_inputs = inputs;
    desc.inputs = number();
    desc.num_outputs = 1;
    desc.outputs = number();
    desc.scratch_bytes = compute == scratch_compute ? 128 : 0;
    CHECK_OK(weir_kernel_create_host(engine, &desc, &kernel));
    return kernel;
}

static uint32_t drawn(uint32_t *random, uint32_t below) {
    *random = *random * 1664525u + 1013904223u;
    return (*random >> 8) % below;
}

struct random_graph {
    weir_program *program;
    weir_tensor *outputs[MOST_OUTPUTS];
    uint32_t expected[MOST_OUTPUTS];
    size_t num_outputs;
};

/* `nodes` kernels of up to `most` inputs among the last `near` values; the last ones are outputs. Node n500 fails when
 * it is told to. */
static struct random_graph make_random(weir_engine *engine, uint32_t nodes, uint32_t most, uint32_t near, int own) {
    struct random_graph made;
    weir_graph *graph = make_graph("values");
    weir_kernel *shared[MOST_INPUTS + 1];
    weir_value *values = malloc(nodes * sizeof *values);
    uint32_t *expected = malloc(nodes * sizeof *expected), random = nodes + most;
    memset(&made, 0, sizeof made);
    for (uint32_t i = 0; i <= MOST_INPUTS; i++) shared[i] = make_kernel(engine, mix_compute, i);
    for (uint32_t node = 0; node < nodes; node++) {
        char name[40];
        weir_value in[MOST_INPUTS];
        weir_compute_fn compute = node == 500 ? failing_compute : node % 97 == 1 ? scratch_compute : mix_compute;
        uint32_t sum = 7, count = node == 0 ? 0 : drawn(&random, most + 1);
        /* All nodes lead to the last ones. */
        if (node > 0 && count == 0 && node % 7 != 0) count = 1;
        for (uint32_t i = 0; i < count; i++) {
            uint32_t from = i == 0 ? node - 1 : node - 1 - drawn(&random, near < node ? near : node);
            in[i] = values[from];
            sum = mixed(sum, expected[from]);
        }
        expected[node] = sum;
        snprintf(name, sizeof name, node % 3 == 0 ? "n%u" : "a name that is longer than others %u", (unsigned)node);
        if (node == 500) snprintf(name, sizeof name, "n500");
        weir_kernel *kernel = own || compute != mix_compute ? make_kernel(engine, compute, count) : shared[count];
        CHECK_OK(weir_graph_add_kernel(graph, name, kernel, in, count, &values[node], 1, NULL));
        if (kernel != shared[count]) weir_kernel_release(kernel);
    }
    for (uint32_t i = 0; i < MOST_OUTPUTS; i++) {
        char name[16];
        snprintf(name, sizeof name, "y%u", (unsigned)i);
        CHECK_OK(weir_graph_add_output(graph, name, values[nodes - 1 - i]));
        CHECK_OK(weir_tensor_create(engine, number(), NULL, &made.outputs[i]));
        made.expected[i] = expected[nodes - 1 - i];
    }
    made.num_outputs = MOST_OUTPUTS;
    /* So that it runs, whatever the last ones need. */
    CHECK_OK(weir_graph_add_output(graph, "kept", values[500]));
    CHECK_OK(weir_graph_compile(graph, &engine, 1, NULL, &made.program));
    weir_graph_destroy(graph);
    for (uint32_t i = 0; i <= MOST_INPUTS; i++) weir_kernel_release(shared[i]);
    free(values);
    free(expected);
    return made;
}

static weir_status run(struct random_graph *made, weir_tensor *kept) {
    weir_tensor *outputs[MOST_OUTPUTS + 1];
    memcpy(outputs, made->outputs, sizeof made->outputs);
    outputs[MOST_OUTPUTS] = kept;
    return weir_program_run(made->program, NULL, NULL, 0, outputs, MOST_OUTPUTS + 1, NULL);
}

static void check_values(struct random_graph *made) {
    for (size_t i = 0; i < made->num_outputs; i++) {
        void *data = NULL;
        CHECK_OK(weir_tensor_get_data(made->outputs[i], &data));
        CHECK_EQ(*(uint32_t *)data, made->expected[i]);
        *(uint32_t *)data = 0;
    }
}

static void test_random(weir_engine *engine, uint32_t nodes, uint32_t most, uint32_t near, int own) {
    struct random_graph made = make_random(engine, nodes, most, near, own);
    weir_tensor *kept = NULL;
    CHECK_OK(weir_tensor_create(engine, number(), NULL, &kept));
    for (int round = 0; round < 3; round++) {
        fails = 0;
        CHECK_OK(run(&made, kept));
        check_values(&made);
        fails = 1;
        CHECK_CODE(run(&made, kept), WEIR_FAILED_PRECONDITION, "node 'n500': no more of it");
        fails = 2;
        CHECK_CODE(run(&made, kept), WEIR_OUT_OF_RANGE, "node 'n500': its compute function");
    }
    fails = 0;
    CHECK_OK(run(&made, kept));
    uint64_t before = runtime_info().allocations;
    for (int i = 0; i < 5; i++) CHECK_OK(run(&made, kept));
    CHECK_EQ(runtime_info().allocations, before);
    check_values(&made);
    weir_program_release(made.program);
    for (size_t i = 0; i < made.num_outputs; i++) weir_tensor_release(made.outputs[i]);
    weir_tensor_release(kept);
}

int main(void) {
    weir_engine *engine = make_engine(NULL);
    test_random(engine, 1000, 2, 3, 0);
    test_random(engine, 1000, 2, 3, 1);
    test_random(engine, 40000, 3, 400, 0);
    test_random(engine, 5000, 8, 400, 1);
    weir_engine_release(engine);
    printf("ok\n");
    return 0;
}

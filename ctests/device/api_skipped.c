/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Work on a device that may be skipped, in the bodies of loops and in branches whose values stay on the device: what is
 * handed on does not depend on whether the other work is skipped.
 */

#include <stdbool.h>
#include <weir/control.h>
#include <weir/ops.h>
#include <weir/testing.h>

#include "make.h"

static weir_engine *cpu, *device;

static weir_tensor_desc number(void) {
    return make_desc(WEIR_S32, 1, 1, 0, 0);
}

static weir_tensor *make_number(int32_t value) {
    weir_tensor *tensor = make_tensor(cpu, number());
    void *data = NULL;
    CHECK_OK(weir_tensor_get_data(tensor, &data));
    *(int32_t *)data = value;
    return tensor;
}

static int32_t read_number(const weir_tensor *tensor) {
    void *data = NULL;
    CHECK_OK(weir_tensor_get_data(tensor, &data));
    return *(int32_t *)data;
}

static weir_value input(weir_graph *graph, const char *name) {
    const weir_tensor_desc desc = number();
    weir_value value;
    CHECK_OK(weir_graph_add_input(graph, name, &desc, &value));
    return value;
}

static weir_value constant(weir_graph *graph, const char *name, int32_t number) {
    weir_tensor *tensor = make_number(number);
    weir_value value;
    CHECK_OK(weir_graph_add_constant(graph, name, tensor, &value));
    weir_tensor_release(tensor);
    return value;
}

static weir_value binary(weir_graph *graph, const char *name, weir_engine *on, uint32_t op, weir_value a, weir_value b) {
    const weir_binary_desc desc = {.struct_size = sizeof desc, .op = op};
    const weir_value inputs[] = {a, b};
    weir_kernel *kernel = NULL;
    weir_value value;
    CHECK_OK(weir_kernel_create_binary(on, &desc, NULL, &kernel));
    CHECK_OK(weir_graph_add_kernel(graph, name, kernel, inputs, 2, &value, 1, NULL));
    weir_kernel_release(kernel);
    return value;
}

static int32_t count(void *user, weir_kernel_context *context) {
    (void)context;
    atomic_fetch_add((atomic_int *)user, 1);
    return WEIR_OK;
}

/* Where `chosen` is not 0 the device adds `value` to itself, and the host counts that. */
static void add_skipped(weir_graph *graph, weir_value chosen, weir_value value, atomic_int *counted) {
    const weir_tensor_desc desc = number();
    weir_host_kernel_desc sink = {.struct_size = sizeof sink, .name = "count", .compute = count, .user = counted,
                                  .num_inputs = 1, .inputs = &desc};
    weir_kernel *kernel = NULL;
    weir_value sides[2];
    CHECK_OK(weir_graph_add_switch(graph, "switch", chosen, chosen, &sides[0], &sides[1], NULL));
    weir_value sum = binary(graph, "may be skipped", device, WEIR_BINARY_ADD, sides[1], value);
    CHECK_OK(weir_kernel_create_host(cpu, &sink, &kernel));
    CHECK_OK(weir_graph_add_kernel(graph, "count", kernel, &sum, 1, NULL, 0, NULL));
    weir_kernel_release(kernel);
}

static weir_program *compile_both(weir_graph *graph) {
    weir_engine *engines[] = {cpu, device};
    weir_program *program = NULL;
    CHECK_OK(weir_graph_compile(graph, engines, 2, NULL, &program));
    weir_graph_destroy(graph);
    return program;
}

/* while (i < n) { i = i + 1; x = x + x; }, and in all iterations but the first something besides. */
static void test_loop(weir_engine *counts, uint32_t at_once) {
    atomic_int counted = 0;
    weir_graph *condition = make_graph("condition"), *body = make_graph("body"), *graph = make_graph("loop");
    weir_value i = input(condition, "i");
    (void)input(condition, "x");
    weir_value n = input(condition, "n");
    CHECK_OK(weir_graph_add_output(condition, "more", binary(condition, "less", cpu, WEIR_BINARY_LT, i, n)));
    i = input(body, "i");
    weir_value x = input(body, "x");
    (void)input(body, "n");
    add_skipped(body, i, x, &counted);
    CHECK_OK(weir_graph_add_output(body, "i", binary(body, "next", counts, WEIR_BINARY_ADD, i, constant(body, "one", 1))));
    CHECK_OK(weir_graph_add_output(body, "x", binary(body, "double", device, WEIR_BINARY_ADD, x, x)));
    weir_value variables[] = {constant(graph, "zero", 0), input(graph, "x")}, limit = input(graph, "n"), ends[2];
    const weir_while_desc desc = {.struct_size = sizeof desc, .cond_graph = condition, .body_graph = body,
                                  .variables = variables, .num_variables = 2, .invariants = &limit, .num_invariants = 1,
                                  .parallel_iterations = at_once};
    CHECK_OK(weir_graph_add_while(graph, "while", &desc, ends, NULL));
    CHECK_OK(weir_graph_add_output(graph, "i", ends[0]));
    CHECK_OK(weir_graph_add_output(graph, "x", ends[1]));
    weir_graph_destroy(condition);
    weir_graph_destroy(body);
    weir_program *program = compile_both(graph);
    for (int32_t turns = 0; turns < 8; turns++) {
        weir_tensor *in[] = {make_number(3), make_number(turns)}, *out[] = {make_number(0), make_number(0)};
        atomic_store(&counted, 0);
        CHECK_OK(weir_program_run(program, NULL, in, 2, out, 2, NULL));
        CHECK_EQ(read_number(out[0]), turns);
        CHECK_EQ(read_number(out[1]), 3 << turns);
        CHECK_EQ(atomic_load(&counted), turns > 0 ? turns - 1 : 0);
        for (int k = 0; k < 2; k++) {
            weir_tensor_release(in[k]);
            weir_tensor_release(out[k]);
        }
    }
    weir_program_release(program);
}

/* The same in a branch, of values that the device has made. */
static void test_branch(size_t num_branches) {
    atomic_int counted = 0;
    weir_graph *branches[2], *graph = make_graph("branch");
    for (size_t b = 0; b < 2; b++) {
        branches[b] = make_graph("inside");
        weir_value a = input(branches[b], "a"), chosen = input(branches[b], "chosen");
        if (b == 0) add_skipped(branches[b], chosen, a, &counted);
        weir_value sum = binary(branches[b], "double", device, WEIR_BINARY_ADD, a, a);
        CHECK_OK(weir_graph_add_output(branches[b], "sum", sum));
    }
    weir_value zero = constant(graph, "zero", 0), index = input(graph, "index");
    weir_value a = binary(graph, "a there", device, WEIR_BINARY_ADD, input(graph, "a"), zero);
    weir_value chosen = binary(graph, "chosen there", device, WEIR_BINARY_ADD, input(graph, "chosen"), zero), sum;
    const weir_value inputs[] = {a, chosen};
    CHECK_OK(weir_graph_add_case(graph, "case", &(weir_case_desc){.struct_size = sizeof(weir_case_desc), .index = index,
        .branches = (const weir_graph *const *)branches, .num_branches = num_branches, .inputs = inputs,
        .num_inputs = 2}, &sum, 1, NULL));
    CHECK_OK(weir_graph_add_output(graph, "sum", sum));
    for (int b = 0; b < 2; b++) weir_graph_destroy(branches[b]);
    weir_program *program = compile_both(graph);
    for (int32_t run = 0; run < 12; run++) {
        const int32_t index_now = run / 2 % (int32_t)num_branches;
        weir_tensor *in[] = {make_number(index_now), make_number(run + 1), make_number(run % 2)}, *out = make_number(-1);
        atomic_store(&counted, 0);
        CHECK_OK(weir_program_run(program, NULL, in, 3, &out, 1, NULL));
        CHECK_EQ(read_number(out), 2 * (run + 1));
        CHECK_EQ(atomic_load(&counted), index_now == 0 && run % 2 != 0);
        for (int k = 0; k < 3; k++) weir_tensor_release(in[k]);
        weir_tensor_release(out);
    }
    weir_program_release(program);
}

int main(void) {
    CHECK_OK(weir_emulated_register());
    const weir_runtime_info before = runtime_info();
    CHECK_OK(weir_engine_create(WEIR_ENGINE_CPU, 0, NULL, &cpu));
    CHECK_OK(weir_engine_create(WEIR_ENGINE_EMULATED, 2, NULL, &device));
    for (uint32_t at_once = 1; at_once <= 4; at_once += 3) {
        test_loop(cpu, at_once);
        test_loop(device, at_once);
    }
    test_branch(1);
    test_branch(2);
    weir_engine_release(device);
    weir_engine_release(cpu);
    check_released(&before);
    return 0;
}

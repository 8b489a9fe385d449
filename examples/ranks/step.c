/* Forward, backward, sums over the ranks, update. The sums of a layer's gradients are on their way while the products
 * of the layers before it are computed: only the update of this layer waits for them.
 *
 *     scans -> layer 1 -> layer 2 -> layer 3 -> softmax - targets = error 3
 *
 *                                error 3 -> gradients 3 -> sum over ranks -> update 3
 *                     error 2 <-----'
 *                        `-> gradients 2 -> sum over ranks -> update 2
 *        error 1 <-------'
 *           `-> gradients 1 -> sum over ranks -> update 1
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "step.h"

#include <stdio.h>
#include <weir/ops.h>

#include "weir_check.h"

static const int64_t sizes[STEP_LAYERS + 1] = {64, 96, 48, 10};
static const float RATE = 0.05f, MOMENTUM = 0.9f;

/* A graph in the making. */
struct builder {
    weir_graph *graph;
    weir_engine *engine;
};

/* Adds a call of the kernel, named after the layer, and gives the kernel to the graph. */
static void add_kernel(struct builder *b, const char *what, int layer, weir_kernel *kernel, const weir_value *inputs,
                       size_t num_inputs, weir_value *outputs, size_t num_outputs) {
    char name[32];
    snprintf(name, sizeof name, "%s %d", what, layer + 1);
    CHECK(weir_graph_add_kernel(b->graph, name, kernel, inputs, num_inputs, outputs, num_outputs, NULL));
    weir_kernel_release(kernel);
}

static weir_value add_matmul(struct builder *b, const char *what, int layer, const weir_value *inputs,
                             size_t num_inputs, weir_matmul_desc desc) {
    weir_kernel *kernel;
    weir_value y;
    desc.struct_size = sizeof desc;
    CHECK(weir_kernel_create_matmul(b->engine, &desc, NULL, &kernel));
    add_kernel(b, what, layer, kernel, inputs, num_inputs, &y, 1);
    return y;
}

static weir_value add_binary(struct builder *b, const char *what, int layer, weir_value x, weir_value y,
                             weir_binary_op op) {
    const weir_binary_desc desc = {.struct_size = sizeof desc, .op = op};
    weir_kernel *kernel;
    weir_value z;
    CHECK(weir_kernel_create_binary(b->engine, &desc, NULL, &kernel));
    add_kernel(b, what, layer, kernel, (weir_value[]){x, y}, 2, &z, 1);
    return z;
}

/* The error of a relu's input: where it let nothing through there is none. */
static weir_value add_relu_backward(struct builder *b, int layer, weir_value error, weir_value activation) {
    const weir_eltwise_desc desc = {.struct_size = sizeof desc, .op = WEIR_ELTWISE_SIGN};
    weir_kernel *kernel;
    weir_value passed;
    CHECK(weir_kernel_create_eltwise(b->engine, &desc, NULL, &kernel));
    add_kernel(b, "passed", layer, kernel, &activation, 1, &passed, 1);
    return add_binary(b, "error", layer, error, passed, WEIR_BINARY_MUL);
}

/* Of weights and bias, summed over the scans of this rank. */
static void add_gradients(struct builder *b, int layer, weir_value activation, weir_value error,
                          weir_value gradients[2]) {
    const weir_reduce_desc sum = {.struct_size = sizeof sum, .op = WEIR_REDUCE_SUM, .num_axes = 1, .axes = {0}};
    weir_kernel *kernel;
    gradients[0] = add_matmul(b, "gradient of weights", layer, (weir_value[]){activation, error}, 2,
                              (weir_matmul_desc){.flags = WEIR_MATMUL_TRANSPOSE_A});
    CHECK(weir_kernel_create_reduce(b->engine, &sum, NULL, &kernel));
    add_kernel(b, "gradient of bias", layer, kernel, &error, 1, &gradients[1], 1);
}

/* The sums over all ranks: both gradients in one message, added up in rank order, so that all ranks get the same bits
 * over every transport. */
static void add_sum_over_ranks(struct builder *b, weir_comm *comm, int layer, const weir_value gradients[2],
                               weir_value sums[2]) {
    const weir_communication desc = {.struct_size = sizeof desc,
                                     .op = WEIR_COMM_ALL_REDUCE,
                                     .flags = WEIR_COMMUNICATION_DETERMINISTIC,
                                     .num_tensors = 2};
    weir_kernel *kernel;
    CHECK(weir_kernel_create_communication(b->engine, comm, &desc, NULL, &kernel));
    add_kernel(b, "sum over ranks", layer, kernel, gradients, 2, sums, 2);
}

/* A kernel of this program: weights, bias, their speeds, and the sums of their gradients -> the first four, later. */
static int32_t update(void *user, weir_kernel_context *context) {
    const weir_tensor_view *in, *out;
    size_t count;
    (void)user;
    CHECK(weir_kernel_context_get_inputs(context, &in, &count));
    CHECK(weir_kernel_context_get_outputs(context, &out, &count));
    for (int which = 0; which < 2; which++) { /* weights, bias */
        const float *parameter = in[which].data, *speed = in[2 + which].data, *gradient = in[4 + which].data;
        float *next = out[which].data, *next_speed = out[2 + which].data;
        for (size_t i = 0; i < out[which].bytes / sizeof *next; i++) {
            next_speed[i] = MOMENTUM * speed[i] - RATE / STEP_BATCH * gradient[i];
            next[i] = parameter[i] + next_speed[i];
        }
    }
    return WEIR_OK;
}

static void add_update(struct builder *b, int layer, const weir_value *parameters, const weir_value sums[2],
                       weir_value *next) {
    weir_tensor_desc descs[STEP_A_LAYER + 2];
    weir_value inputs[STEP_A_LAYER + 2];
    weir_kernel *kernel;
    for (int i = 0; i < STEP_A_LAYER + 2; i++) {
        descs[i] = step_input_desc(STEP_PARAMETER + layer * STEP_A_LAYER + i % 2, 0);
        inputs[i] = i < STEP_A_LAYER ? parameters[i] : sums[i - STEP_A_LAYER];
    }
    const weir_host_kernel_desc desc = {.struct_size = sizeof desc, .name = "update", .compute = update,
                                        .num_inputs = STEP_A_LAYER + 2, .inputs = descs,
                                        .num_outputs = STEP_A_LAYER, .outputs = descs};
    CHECK(weir_kernel_create_host(b->engine, &desc, &kernel));
    add_kernel(b, "update", layer, kernel, inputs, STEP_A_LAYER + 2, next, STEP_A_LAYER);
}

static const char *input_name(int input, char name[32]) {
    static const char *const names[STEP_A_LAYER] = {"weights", "bias", "speed of weights", "speed of bias"};
    const int index = input - STEP_PARAMETER;
    if (index < 0) {
        return input == STEP_SCANS ? "scans" : "targets";
    }
    snprintf(name, 32, "%s %d", names[index % STEP_A_LAYER], index / STEP_A_LAYER + 1);
    return name;
}

weir_tensor_desc step_input_desc(int input, int64_t rows) {
    const int index = input - STEP_PARAMETER, layer = index < 0 ? 0 : index / STEP_A_LAYER;
    const weir_tensor_desc weights = {WEIR_F32, 2, {sizes[layer], sizes[layer + 1]}};
    const weir_tensor_desc bias = {WEIR_F32, 1, {sizes[layer + 1]}};
    const weir_tensor_desc batch = {WEIR_F32, 2, {rows, input == STEP_SCANS ? sizes[0] : sizes[STEP_LAYERS]}};
    return index < 0 ? batch : index % 2 == 0 ? weights : bias;
}

weir_program *step_compile(weir_engine *engine, weir_comm *comm, int64_t rows) {
    struct builder b = {.engine = engine};
    weir_value inputs[STEP_INPUTS], activations[STEP_LAYERS + 1], next[STEP_PARAMETERS], gradients[2], sums[2], error;
    weir_kernel *softmax;
    weir_program *program;
    char name[32];

    CHECK(weir_graph_create("step", &b.graph));
    for (int i = 0; i < STEP_INPUTS; i++) {
        const weir_tensor_desc desc = step_input_desc(i, rows);
        CHECK(weir_graph_add_input(b.graph, input_name(i, name), &desc, &inputs[i]));
    }
    const weir_value *const parameters = &inputs[STEP_PARAMETER];

    activations[0] = inputs[STEP_SCANS];
    for (int layer = 0; layer < STEP_LAYERS; layer++) {
        const weir_value *own = &parameters[layer * STEP_A_LAYER];
        const weir_activation last = layer + 1 < STEP_LAYERS ? WEIR_ACTIVATION_RELU : WEIR_ACTIVATION_NONE;
        activations[layer + 1] =
            add_matmul(&b, "layer", layer, (weir_value[]){activations[layer], own[STEP_WEIGHTS], own[STEP_BIAS]}, 3,
                       (weir_matmul_desc){.flags = WEIR_MATMUL_BIAS, .activation = last});
    }
    CHECK(weir_kernel_create_softmax(engine, NULL, NULL, &softmax));
    add_kernel(&b, "softmax", STEP_LAYERS - 1, softmax, &activations[STEP_LAYERS], 1, &error, 1);
    error = add_binary(&b, "error", STEP_LAYERS - 1, error, inputs[STEP_TARGETS], WEIR_BINARY_SUB);

    for (int layer = STEP_LAYERS - 1; layer >= 0; layer--) {
        const weir_value *own = &parameters[layer * STEP_A_LAYER];
        add_gradients(&b, layer, activations[layer], error, gradients);
        add_sum_over_ranks(&b, comm, layer, gradients, sums);
        add_update(&b, layer, own, sums, &next[layer * STEP_A_LAYER]);
        if (layer > 0) {
            error = add_matmul(&b, "error after relu", layer - 1, (weir_value[]){error, own[STEP_WEIGHTS]}, 2,
                               (weir_matmul_desc){.flags = WEIR_MATMUL_TRANSPOSE_B});
            error = add_relu_backward(&b, layer - 1, error, activations[layer]);
        }
    }
    for (int i = 0; i < STEP_PARAMETERS; i++) {
        CHECK(weir_graph_add_output(b.graph, input_name(STEP_PARAMETER + i, name), next[i]));
    }
    CHECK(weir_graph_compile(b.graph, &engine, 1, NULL, &program));
    weir_graph_destroy(b.graph);
    return program;
}

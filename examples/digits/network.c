/* Builds the graph: weights become constants, layers become kernel calls, and three values become outputs.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "network.h"

#include <stdbool.h>
#include <stdio.h>
#include <weir/ops.h>

#include "weir_check.h"

static weir_value add_constant(weir_graph *graph, weir_engine *engine, const char *name, const weir_tensor_desc *desc,
                               float *data) {
    weir_tensor *tensor;
    weir_value value;
    CHECK(weir_tensor_create(engine, desc, &(weir_memory){.struct_size = sizeof(weir_memory), .data = data}, &tensor));
    CHECK(weir_graph_add_constant(graph, name, tensor, &value));
    weir_tensor_release(tensor); /* the graph holds it now */
    return value;
}

static weir_value add_layer(weir_graph *graph, weir_engine *engine, const struct layer *layer, uint32_t number,
                            bool relu, weir_value input) {
    const weir_tensor_desc weights = {WEIR_F32, 2, {layer->inputs, layer->outputs}};
    const weir_tensor_desc bias = {WEIR_F32, 1, {layer->outputs}};
    const weir_activation last = relu ? WEIR_ACTIVATION_RELU : WEIR_ACTIVATION_NONE;
    const weir_matmul_desc matmul = {.struct_size = sizeof matmul, .flags = WEIR_MATMUL_BIAS, .activation = last};
    weir_kernel *kernel;
    weir_value inputs[3] = {input}, output;
    char name[32];

    snprintf(name, sizeof name, "weights %u", (unsigned)number);
    inputs[1] = add_constant(graph, engine, name, &weights, layer->weights);
    snprintf(name, sizeof name, "bias %u", (unsigned)number);
    inputs[2] = add_constant(graph, engine, name, &bias, layer->bias);
    snprintf(name, sizeof name, "layer %u", (unsigned)number);
    CHECK(weir_kernel_create_matmul(engine, &matmul, NULL, &kernel));
    CHECK(weir_graph_add_kernel(graph, name, kernel, inputs, 3, &output, 1, NULL));
    weir_kernel_release(kernel); /* so does the graph hold the kernel */
    return output;
}

weir_program *network_compile(const struct dataset *dataset, weir_engine *engine, int64_t batch,
                              const weir_compile_options *options) {
    const weir_tensor_desc scans = {WEIR_F32, 2, {batch, DIGITS_PIXELS}};
    const weir_reduce_desc best = {.struct_size = sizeof best, .op = WEIR_REDUCE_ARGMAX, .num_axes = 1, .axes = {1}};
    weir_graph *graph;
    weir_kernel *softmax, *argmax;
    weir_program *program;
    weir_value value, probabilities, classes;

    CHECK(weir_graph_create("digits", &graph));
    CHECK(weir_graph_add_input(graph, "scans", &scans, &value));
    for (uint32_t i = 0; i < dataset->num_layers; i++) {
        value = add_layer(graph, engine, &dataset->layers[i], i + 1, i + 1 < dataset->num_layers, value);
    }
    CHECK(weir_kernel_create_softmax(engine, NULL, NULL, &softmax));
    CHECK(weir_graph_add_kernel(graph, "softmax", softmax, &value, 1, &probabilities, 1, NULL));
    CHECK(weir_kernel_create_reduce(engine, &best, NULL, &argmax));
    CHECK(weir_graph_add_kernel(graph, "argmax", argmax, &probabilities, 1, &classes, 1, NULL));

    /* In the order of enum network_output. */
    CHECK(weir_graph_add_output(graph, "logits", value));
    CHECK(weir_graph_add_output(graph, "probabilities", probabilities));
    CHECK(weir_graph_add_output(graph, "classes", classes));

    CHECK(weir_graph_compile(graph, &engine, 1, options, &program));
    weir_kernel_release(argmax);
    weir_kernel_release(softmax);
    weir_graph_destroy(graph);
    return program;
}

weir_tensor_desc network_output_desc(enum network_output output, int64_t batch) {
    weir_tensor_desc rows = {WEIR_F32, 2, {batch, DIGITS_CLASSES}};
    weir_tensor_desc classes = {WEIR_S32, 1, {batch}};
    return output == NETWORK_CLASSES ? classes : rows;
}

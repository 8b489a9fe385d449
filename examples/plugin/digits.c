/* Handwritten digits, read by another process: the network of examples/digits, kernel by kernel on a stream of a device
 * that a plug-in brings, beside the same on the CPU.
 *
 *   remote_digits <remote.so> <folder with digits.bin and weights.bin>
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <weir/ops.h>
#include <weir/device.h>

#include "dataset.h"
#include "weir_check.h"

enum { MAX_STEPS = DIGITS_MAX_LAYERS + 2 };

/* A network on an engine: kernels, what they read, and what they write. */
struct network {
    weir_engine *engine;
    weir_stream *stream;
    int num_steps;
    weir_kernel *kernels[MAX_STEPS];
    weir_tensor *parameters[MAX_STEPS][2]; /* weights and bias of a layer */
    weir_tensor *values[MAX_STEPS + 1];    /* the scans, and what each step makes */
};

/* A tensor over memory of this program's, for copies. */
static weir_tensor *over(weir_engine *cpu, const weir_tensor_desc *desc, void *data) {
    weir_tensor *tensor;
    CHECK(weir_tensor_create(cpu, desc, &(weir_memory){.struct_size = sizeof(weir_memory), .data = data}, &tensor));
    return tensor;
}

/* A tensor on the engine with the content of an array. */
static weir_tensor *uploaded(struct network *network, weir_engine *cpu, const weir_tensor_desc *desc, float *data) {
    weir_tensor *here = over(cpu, desc, data), *there;
    CHECK(weir_tensor_create(network->engine, desc, NULL, &there));
    CHECK(weir_enqueue_copy(network->stream, here, there));
    CHECK(weir_stream_synchronize(network->stream, WEIR_TIMEOUT_INFINITE));
    weir_tensor_release(here);
    return there;
}

static void add_step(struct network *network, weir_kernel *kernel, const weir_tensor_desc *output) {
    network->kernels[network->num_steps++] = kernel;
    CHECK(weir_tensor_create(network->engine, output, NULL, &network->values[network->num_steps]));
}

static void network_make(struct network *network, weir_engine *engine, weir_engine *cpu, const struct dataset *dataset) {
    const int64_t rows = dataset->count;
    const weir_tensor_desc scans = {WEIR_F32, 2, {rows, DIGITS_PIXELS}};
    const weir_tensor_desc classes = {WEIR_S32, 1, {rows}};
    weir_kernel *kernel;
    memset(network, 0, sizeof *network);
    network->engine = engine;
    CHECK(weir_stream_create(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, &network->stream));
    network->values[0] = uploaded(network, cpu, &scans, dataset->pixels);
    for (uint32_t i = 0; i < dataset->num_layers; i++) {
        const struct layer *layer = &dataset->layers[i];
        const weir_tensor_desc weights = {WEIR_F32, 2, {layer->inputs, layer->outputs}};
        const weir_tensor_desc bias = {WEIR_F32, 1, {layer->outputs}};
        const weir_tensor_desc output = {WEIR_F32, 2, {rows, layer->outputs}};
        const weir_activation last = i + 1 < dataset->num_layers ? WEIR_ACTIVATION_RELU : WEIR_ACTIVATION_NONE;
        const weir_matmul_desc matmul = {.struct_size = sizeof matmul, .flags = WEIR_MATMUL_BIAS, .activation = last};
        network->parameters[network->num_steps][0] = uploaded(network, cpu, &weights, layer->weights);
        network->parameters[network->num_steps][1] = uploaded(network, cpu, &bias, layer->bias);
        CHECK(weir_kernel_create_matmul(engine, &matmul, NULL, &kernel));
        add_step(network, kernel, &output);
    }
    const weir_tensor_desc probabilities = {WEIR_F32, 2, {rows, DIGITS_CLASSES}};
    CHECK(weir_kernel_create_softmax(engine, NULL, NULL, &kernel));
    add_step(network, kernel, &probabilities);
    const weir_reduce_desc argmax = {.struct_size = sizeof argmax, .op = WEIR_REDUCE_ARGMAX, .num_axes = 1, .axes = {-1}};
    CHECK(weir_kernel_create_reduce(engine, &argmax, NULL, &kernel));
    add_step(network, kernel, &classes);
}

/* Enqueues all steps and both results; waits once, at the end. */
static void network_run(struct network *network, weir_engine *cpu, const struct dataset *dataset, float *probabilities, int32_t *classes) {
    const weir_tensor_desc rows = {WEIR_F32, 2, {dataset->count, DIGITS_CLASSES}};
    const weir_tensor_desc column = {WEIR_S32, 1, {dataset->count}};
    weir_tensor *results[2] = {over(cpu, &rows, probabilities), over(cpu, &column, classes)};
    for (int i = 0; i < network->num_steps; i++) {
        weir_tensor *inputs[3] = {network->values[i], network->parameters[i][0], network->parameters[i][1]};
        CHECK(weir_enqueue(network->stream, network->kernels[i], inputs, inputs[1] != NULL ? 3 : 1, &network->values[i + 1], 1));
    }
    CHECK(weir_enqueue_copy(network->stream, network->values[network->num_steps - 1], results[0]));
    CHECK(weir_enqueue_copy(network->stream, network->values[network->num_steps], results[1]));
    CHECK(weir_stream_synchronize(network->stream, WEIR_TIMEOUT_INFINITE));
    weir_tensor_release(results[0]);
    weir_tensor_release(results[1]);
}

static void network_free(struct network *network) {
    for (int i = 0; i < network->num_steps; i++) {
        weir_kernel_release(network->kernels[i]);
        weir_tensor_release(network->parameters[i][0]);
        weir_tensor_release(network->parameters[i][1]);
        weir_tensor_release(network->values[i]);
    }
    weir_tensor_release(network->values[network->num_steps]);
    weir_stream_release(network->stream);
}

int main(int argc, char **argv) {
    struct dataset dataset;
    weir_engine_kind remote;
    weir_engine *engines[2];
    weir_engine_info info = {.struct_size = sizeof info};
    float *probabilities[2];
    int32_t *classes[2];
    if (argc != 3) {
        fprintf(stderr, "usage: %s <remote.so> <folder with digits.bin and weights.bin>\n", argv[0]);
        return 2;
    }
    CHECK(weir_check_version(WEIR_VERSION_MAJOR, WEIR_VERSION_MINOR));
    CHECK(weir_device_load(argv[1]));
    CHECK(weir_engine_kind_from_name("remote", &remote));
    CHECK(weir_engine_create(WEIR_ENGINE_CPU, 0, NULL, &engines[0]));
    CHECK(weir_engine_create(remote, 0, NULL, &engines[1]));
    CHECK(weir_engine_get_info(engines[1], &info));
    if (dataset_load(&dataset, argv[2]) != 0) return 1;

    for (int i = 0; i < 2; i++) {
        struct network network;
        probabilities[i] = calloc(dataset.count, DIGITS_CLASSES * sizeof(float));
        classes[i] = calloc(dataset.count, sizeof(int32_t));
        if (probabilities[i] == NULL || classes[i] == NULL) return 1;
        network_make(&network, engines[i], engines[0], &dataset);
        network_run(&network, engines[0], &dataset, probabilities[i], classes[i]);
        network_free(&network);
    }

    uint32_t read = 0, same = 0;
    float furthest = 0;
    for (uint32_t i = 0; i < dataset.count; i++) {
        read += classes[1][i] == dataset.labels[i];
        same += classes[1][i] == classes[0][i];
        for (int j = 0; j < DIGITS_CLASSES; j++) {
            furthest = fmaxf(furthest, fabsf(probabilities[1][i * DIGITS_CLASSES + j] - probabilities[0][i * DIGITS_CLASSES + j]));
        }
    }
    printf("%s (%s:0) has read %u of %u digits, %u of them as the CPU did; probabilities differ by %.1e at most\n", info.name,
           weir_engine_kind_name(remote), read, dataset.count, same, furthest);
    const int is_right = same == dataset.count && furthest < 1e-5f && read * 10 > dataset.count * 9;
    for (int i = 0; i < 2; i++) {
        free(probabilities[i]);
        free(classes[i]);
        weir_engine_release(engines[i]);
    }
    dataset_free(&dataset);
    return is_right ? 0 : 1;
}

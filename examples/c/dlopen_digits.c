/* The digits network through dlopen: nothing of weir is linked, every function is looked up by name.
 *
 *     dlopen_digits libweir.so [folder with digits.bin and weights.bin]
 *
 * This is how a program uses weir if it is there and does without if not, and what a binding for another language
 * does. weir.h gives the types; the addresses come from the library. The graph runs in the calling thread, without any
 * pool. Ends with status 1 if the library does not fit or fewer than 97.5 % of the digits are read right.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir.h>
#include <weir/ops.h>

#include "dataset.h"

#ifndef DIGITS_DATA_DIR
#define DIGITS_DATA_DIR "."
#endif

/* Every function that this program calls. */
#define FUNCTIONS(X)               \
    X(weir_check_version)          \
    X(weir_version_string)         \
    X(weir_status_name)            \
    X(weir_last_error_message)     \
    X(weir_engine_create)          \
    X(weir_engine_release)         \
    X(weir_tensor_create)          \
    X(weir_tensor_release)         \
    X(weir_kernel_create_matmul)   \
    X(weir_kernel_create_softmax)  \
    X(weir_kernel_create_reduce)   \
    X(weir_kernel_release)         \
    X(weir_graph_create)           \
    X(weir_graph_destroy)          \
    X(weir_graph_add_input)        \
    X(weir_graph_add_constant)     \
    X(weir_graph_add_kernel)       \
    X(weir_graph_add_output)       \
    X(weir_graph_compile)          \
    X(weir_program_run)            \
    X(weir_program_release)

/* One pointer for each, of the type that the header declares: __typeof__ reads the declaration and needs no symbol. */
static struct {
#define MEMBER(name) __typeof__(&name) name;
    FUNCTIONS(MEMBER)
#undef MEMBER
} api;

#define CHECK(call) check((call), #call)

static void check(weir_status status, const char *call) {
    if (status != WEIR_OK) {
        fprintf(stderr, "%s\n  %s: %s\n", call, api.weir_status_name(status), api.weir_last_error_message());
        exit(1);
    }
}

/* Fills the table. The library stays open until the process ends. */
static bool load(const char *path) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return false;
    }
#define LOOK_UP(name)                                          \
    {                                                          \
        void *address = dlsym(library, #name);                 \
        if (address == NULL) {                                 \
            fprintf(stderr, "%s has no %s\n", path, #name);    \
            return false;                                      \
        }                                                      \
        memcpy(&api.name, &address, sizeof address);           \
    }
    FUNCTIONS(LOOK_UP)
#undef LOOK_UP
    return true;
}

static weir_value add_constant(weir_graph *graph, weir_engine *engine, const char *name, weir_tensor_desc desc,
                               float *data) {
    weir_tensor *tensor;
    weir_value value;
    CHECK(api.weir_tensor_create(engine, &desc, &(weir_memory){.struct_size = sizeof(weir_memory), .data = data}, &tensor));
    CHECK(api.weir_graph_add_constant(graph, name, tensor, &value));
    api.weir_tensor_release(tensor);
    return value;
}

/* Adds a call of a kernel, and lets go of the kernel: the graph holds it. */
static weir_value add_call(weir_graph *graph, const char *name, weir_kernel *kernel, const weir_value *inputs,
                           size_t count) {
    weir_value output;
    CHECK(api.weir_graph_add_kernel(graph, name, kernel, inputs, count, &output, 1, NULL));
    api.weir_kernel_release(kernel);
    return output;
}

static weir_value add_layer(weir_graph *graph, weir_engine *engine, const struct layer *layer, unsigned number,
                            bool relu, weir_value input) {
    const weir_tensor_desc weights = {WEIR_F32, 2, {layer->inputs, layer->outputs}};
    const weir_tensor_desc bias = {WEIR_F32, 1, {layer->outputs}};
    const weir_activation last = relu ? WEIR_ACTIVATION_RELU : WEIR_ACTIVATION_NONE;
    const weir_matmul_desc desc = {.struct_size = sizeof desc, .flags = WEIR_MATMUL_BIAS, .activation = last};
    weir_kernel *matmul;
    weir_value inputs[3] = {input};
    char name[32];
    snprintf(name, sizeof name, "weights %u", number);
    inputs[1] = add_constant(graph, engine, name, weights, layer->weights);
    snprintf(name, sizeof name, "bias %u", number);
    inputs[2] = add_constant(graph, engine, name, bias, layer->bias);
    snprintf(name, sizeof name, "layer %u", number);
    CHECK(api.weir_kernel_create_matmul(engine, &desc, NULL, &matmul));
    return add_call(graph, name, matmul, inputs, 3);
}

/* All scans are one batch here: f32 [count, 64] in, s32 [count] out. */
static weir_program *compile(const struct dataset *data, weir_engine *engine) {
    const weir_tensor_desc scans = {WEIR_F32, 2, {data->count, DIGITS_PIXELS}};
    const weir_reduce_desc argmax = {.struct_size = sizeof argmax, .op = WEIR_REDUCE_ARGMAX, .num_axes = 1, .axes = {1}};
    weir_graph *graph;
    weir_kernel *kernel;
    weir_program *program;
    weir_value value;
    CHECK(api.weir_graph_create("digits", &graph));
    CHECK(api.weir_graph_add_input(graph, "scans", &scans, &value));
    for (uint32_t i = 0; i < data->num_layers; i++) {
        value = add_layer(graph, engine, &data->layers[i], i + 1, i + 1 < data->num_layers, value);
    }
    CHECK(api.weir_kernel_create_softmax(engine, NULL, NULL, &kernel));
    value = add_call(graph, "softmax", kernel, &value, 1);
    CHECK(api.weir_kernel_create_reduce(engine, &argmax, NULL, &kernel));
    value = add_call(graph, "argmax", kernel, &value, 1);
    CHECK(api.weir_graph_add_output(graph, "classes", value));
    CHECK(api.weir_graph_compile(graph, &engine, 1, NULL, &program));
    api.weir_graph_destroy(graph);
    return program;
}

static void classify(const struct dataset *data, int32_t *classes) {
    const weir_tensor_desc scans = {WEIR_F32, 2, {data->count, DIGITS_PIXELS}};
    const weir_tensor_desc results = {WEIR_S32, 1, {data->count}};
    weir_engine *engine;
    weir_tensor *input, *output;
    CHECK(api.weir_engine_create(WEIR_ENGINE_CPU, 0, NULL, &engine));
    CHECK(api.weir_tensor_create(engine, &scans, &(weir_memory){.struct_size = sizeof(weir_memory), .data = data->pixels}, &input));
    CHECK(api.weir_tensor_create(engine, &results, &(weir_memory){.struct_size = sizeof(weir_memory), .data = classes}, &output));
    weir_program *program = compile(data, engine);
    CHECK(api.weir_program_run(program, NULL, &input, 1, &output, 1, NULL));
    api.weir_program_release(program);
    api.weir_tensor_release(output);
    api.weir_tensor_release(input);
    api.weir_engine_release(engine);
}

int main(int argc, char **argv) {
    struct dataset data;
    if (argc < 2) {
        fprintf(stderr, "usage: %s libweir.so [folder with digits.bin and weights.bin]\n", argv[0]);
        return 1;
    }
    if (!load(argv[1])) {
        return 1;
    }
    CHECK(api.weir_check_version(WEIR_VERSION_MAJOR, WEIR_VERSION_MINOR)); /* before anything else */
    if (dataset_load(&data, argc > 2 ? argv[2] : DIGITS_DATA_DIR) != 0) {
        return 1;
    }
    int32_t *classes = calloc(data.count, sizeof *classes);
    if (classes == NULL) {
        fprintf(stderr, "out of memory\n");
        return 1;
    }
    classify(&data, classes);
    uint32_t right = 0;
    for (uint32_t i = 0; i < data.count; i++) {
        right += classes[i] == data.labels[i];
    }
    const double accuracy = 100.0 * right / data.count;
    printf("weir %s by dlopen: %u of %u digits read right, %.1f %%\n", api.weir_version_string(), (unsigned)right,
           (unsigned)data.count, accuracy);
    free(classes);
    dataset_free(&data);
    return accuracy >= 97.5 ? 0 : 1;
}

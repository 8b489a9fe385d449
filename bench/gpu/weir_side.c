/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "weir_side.h"

#include <string.h>
#include <weir/ops.h>
#include <weir/inspect.h>
#include <weir/cuda.h>

#include "kernels.h"

weir_engine *cuda_engine(uint32_t max_streams) {
    weir_engine_attr *attr = NULL;
    weir_engine *engine = NULL;
    OK(weir_engine_attr_create(WEIR_ENGINE_CUDA, &attr));
    OK(weir_engine_attr_set_max_streams(attr, max_streams));
    OK(weir_engine_create(WEIR_ENGINE_CUDA, 0, attr, &engine));
    weir_engine_attr_destroy(attr);
    return engine;
}

weir_engine *cuda_engine_waiting(weir_wait_policy policy, uint64_t spin_ns) {
    weir_engine_attr *attr = NULL;
    weir_engine *engine = NULL;
    OK(weir_engine_attr_create(WEIR_ENGINE_CUDA, &attr));
    OK(weir_engine_attr_set_wait_policy(attr, policy, spin_ns));
    OK(weir_engine_create(WEIR_ENGINE_CUDA, 0, attr, &engine));
    weir_engine_attr_destroy(attr);
    return engine;
}

weir_stream *cuda_stream(weir_engine *engine) {
    weir_stream *stream = NULL;
    OK(weir_stream_create(engine, 0, NULL, &stream));
    return stream;
}

static weir_tensor_desc floats_desc(int64_t count) {
    return (weir_tensor_desc){WEIR_F32, 1, {count}};
}

weir_tensor *floats_on(weir_engine *engine, int64_t count) {
    const weir_tensor_desc desc = floats_desc(count);
    weir_tensor *tensor = NULL;
    OK(weir_tensor_create(engine, &desc, NULL, &tensor));
    return tensor;
}

uint64_t address_of(const weir_tensor *tensor) {
    void *data = NULL;
    OK(weir_tensor_get_data(tensor, &data));
    return (uint64_t)(uintptr_t)data;
}

static weir_kernel *create(weir_engine *engine, const char *entry, int64_t count, uint64_t flags, size_t inputs, size_t outputs,
                           const weir_cuda_argument *arguments, size_t num_arguments, uint32_t blocks, uint32_t threads) {
    const weir_tensor_desc values[3] = {floats_desc(count), floats_desc(count), floats_desc(count)};
    const weir_tensor_desc results[2] = {floats_desc(count), floats_desc(count)};
    weir_kernel *kernel = NULL;
    weir_cuda_kernel_desc desc = {
        .struct_size = sizeof desc,
        .source = PTX_PLAIN,
        .source_kind = WEIR_CUDA_SOURCE_PTX,
        .entry = entry,
        .grid = {blocks, 1, 1},
        .block = {threads, 1, 1},
        .arguments = arguments,
        .num_arguments = num_arguments,
        .num_inputs = inputs,
        .inputs = values,
        .num_outputs = outputs,
        .outputs = results,
        .flags = flags,
    };
    OK(weir_kernel_create_cuda(engine, &desc, NULL, &kernel));
    return kernel;
}

weir_kernel *empty_kernel(weir_engine *engine, int64_t count) {
    const weir_cuda_argument arguments[] = {{WEIR_CUDA_ARGUMENT_INPUT, 0, NULL, 0},
                                            {WEIR_CUDA_ARGUMENT_INPUT, 1, NULL, 0},
                                            {WEIR_CUDA_ARGUMENT_OUTPUT, 0, NULL, 0},
                                            {WEIR_CUDA_ARGUMENT_OUTPUT, 1, NULL, 0}};
    return create(engine, "empty", count, 0, 2, 2, arguments, 4, 1, 1);
}

weir_kernel *add_one_kernel(weir_engine *engine, int64_t count) {
    const uint32_t n = (uint32_t)count;
    const weir_cuda_argument arguments[] = {{WEIR_CUDA_ARGUMENT_INPUT, 0, NULL, 0},
                                            {WEIR_CUDA_ARGUMENT_OUTPUT, 0, NULL, 0},
                                            {WEIR_CUDA_ARGUMENT_VALUE, 0, &n, sizeof n}};
    return create(engine, "add_one", count, WEIR_KERNEL_IN_PLACE, 1, 1, arguments, 3, (n + 127) / 128, 128);
}

weir_kernel *spin_kernel(weir_engine *engine, uint64_t cycles, uint32_t blocks, size_t inputs) {
    const weir_cuda_argument arguments[] = {{WEIR_CUDA_ARGUMENT_INPUT, 0, NULL, 0},
                                            {WEIR_CUDA_ARGUMENT_OUTPUT, 0, NULL, 0},
                                            {WEIR_CUDA_ARGUMENT_VALUE, 0, &cycles, sizeof cycles}};
    return create(engine, "spin", 1, 0, inputs, 1, arguments, 3, blocks, 32);
}

weir_kernel *less_kernel(weir_engine *engine) {
    const weir_binary_desc desc = {.struct_size = sizeof desc, .op = WEIR_BINARY_LT};
    weir_kernel *kernel = NULL;
    OK(weir_kernel_create_binary(engine, &desc, NULL, &kernel));
    return kernel;
}

const char *decision(const weir_program *program) {
    static char report[1 << 20], text[256];
    size_t length = 0;
    OK(weir_program_report(program, WEIR_REPORT_JSON, report, sizeof report, &length));
    const char *list = strstr(report, "\"device_control\":[");
    const char *how = list == NULL ? NULL : strstr(list, "\"how\":\"");
    if (how == NULL) return "the report does not say.";
    snprintf(text, sizeof text, "%s", how + strlen("\"how\":\""));
    text[strcspn(text, "\"")] = '\0';
    return text;
}

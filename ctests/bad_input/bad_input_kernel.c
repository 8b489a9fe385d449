/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Bad input for kernels, their settings, and calls of them.
 */

#include <weir/ops.h>

#include "bad_input.h"

static void never_released(void *ctx) {
    (void)ctx;
    CHECK(!"what was never taken is released");
}

static int32_t never_computed(void *user, weir_kernel_context *context) {
    (void)user, (void)context;
    CHECK(!"work that was refused is run");
    return WEIR_INTERNAL;
}

static void rows_of_options(void) {
    const struct {
        weir_kernel_options known;
        uint64_t later;
    } newer = {.known = {.struct_size = sizeof newer}, .later = 1};
    const weir_kernel_options small = {.struct_size = 8}, odd = {.struct_size = sizeof odd, .name = BAD_UTF8};

    ROW(weir_kernel_create_matmul, (good.engine, NULL, &small, NEW(kernel)), INVALID, "options->struct_size is 8");
    ROW(weir_kernel_create_matmul, (good.engine, NULL, &newer.known, NEW(kernel)),
        INVALID, "options sets members that this version of weir does not know");
    ROW(weir_kernel_create_matmul, (good.engine, NULL, &odd, NEW(kernel)),
        INVALID, "options->name is not UTF-8 (bad byte at offset 2)");
}

/* One change that makes a good description bad, per row. */
static void rows_of_host_kernels(void) {
    weir_tensor_desc four = vector_desc(4), open = vector_desc(-1), below = vector_desc(-2);
    weir_tensor_desc strange = make_desc(77, 1, 4, 0, 0);
    weir_host_kernel_desc sane = make_kernel_desc("kernel", never_computed, NULL), desc;
    struct {
        weir_host_kernel_desc known;
        uint64_t more;
    } newer = {.more = 1};
    sane.destroy = never_released;
    sane.num_inputs = sane.num_outputs = 1;
    sane.inputs = sane.outputs = &four;

    ROW(weir_kernel_create_host, (NULL, &sane, NEW(kernel)), INVALID, "engine is NULL");
    ROW(weir_kernel_create_host, (good.engine, NULL, NEW(kernel)), INVALID, "desc is NULL");
    ROW(weir_kernel_create_host, (good.engine, &sane, NULL), INVALID, "out_kernel is NULL");
    ROW(weir_kernel_create_host, (WRONG(tensor), &sane, NEW(kernel)),
        INVALID, "engine: expected an engine, got a tensor");
    desc = sane, desc.struct_size = 8;
    ROW(weir_kernel_create_host, (good.engine, &desc, NEW(kernel)), INVALID, "desc->struct_size is 8, expected 112 (at least 104)");
    desc = sane, desc.struct_size = SIZE_MAX / 2;
    ROW(weir_kernel_create_host, (good.engine, &desc, NEW(kernel)),
        INVALID, "desc->struct_size is 9223372036854775807, expected 112");
    newer.known = sane, newer.known.struct_size = sizeof newer;
    ROW(weir_kernel_create_host, (good.engine, &newer.known, NEW(kernel)), INVALID, "desc sets members that");
    desc = sane, desc.compute = NULL;
    ROW(weir_kernel_create_host, (good.engine, &desc, NEW(kernel)), INVALID, "desc->compute is NULL");
    desc = sane, desc.name = BAD_UTF8;
    ROW(weir_kernel_create_host, (good.engine, &desc, NEW(kernel)), INVALID, "desc->name is not UTF-8");
    desc = sane, desc.flags = 24;
    ROW(weir_kernel_create_host, (good.engine, &desc, NEW(kernel)), INVALID, "desc->flags has unknown bits 0x10");
    desc = sane, desc.num_inputs = WEIR_MAX_ARGS + 1;
    ROW(weir_kernel_create_host, (good.engine, &desc, NEW(kernel)), RANGE, "desc->num_inputs is 65");
    desc = sane, desc.num_outputs = SIZE_MAX;
    ROW(weir_kernel_create_host, (good.engine, &desc, NEW(kernel)), RANGE, "desc->num_outputs is 18446744073709551615");
    desc = sane, desc.inputs = &strange;
    ROW(weir_kernel_create_host, (good.engine, &desc, NEW(kernel)), INVALID, "dtype is 77");
    desc = sane, desc.inputs = &below;
    ROW(weir_kernel_create_host, (good.engine, &desc, NEW(kernel)), INVALID, "dims[0] is -2");
    desc = sane, desc.outputs = NULL;
    ROW(weir_kernel_create_host, (good.engine, &desc, NEW(kernel)), INVALID, "infer");
    desc = sane, desc.outputs = &open;
    ROW(weir_kernel_create_host, (good.engine, &desc, NEW(kernel)), INVALID, "infer");
}

static void rows_of_builtin_kernels(void) {
    weir_matmul_desc matmul;
    weir_softmax_desc softmax;

    matmul = (weir_matmul_desc){.struct_size = sizeof matmul, .flags = 128};
    ROW(weir_kernel_create_matmul, (good.engine, &matmul, NULL, NEW(kernel)),
        INVALID, "desc->flags has unknown bits 0x80");
    softmax = (weir_softmax_desc){.struct_size = sizeof softmax, .axis = 8};
    ROW(weir_kernel_create_softmax, (good.engine, &softmax, NULL, NEW(kernel)), RANGE, "desc->axis is 8");
    softmax = (weir_softmax_desc){.struct_size = sizeof softmax, .reserved = 1};
    ROW(weir_kernel_create_softmax, (good.engine, &softmax, NULL, NEW(kernel)), INVALID, "desc->reserved is 1");
}

static void rows_of_kernels(void) {
    weir_kernel_info info = {.struct_size = sizeof info};
    weir_tensor_desc four = vector_desc(4), five = vector_desc(5);

    ROW(weir_kernel_retain, (NULL), INVALID, "kernel is NULL");
    ROW(weir_kernel_retain, (WRONG(engine_attr)), INVALID, "kernel: expected a kernel, got an engine_attr");
    ROW(weir_kernel_get_info, (NULL, &info), INVALID, "kernel is NULL");
    ROW(weir_kernel_get_info, (WRONG(run), &info), INVALID, "kernel: expected a kernel, got a run");
    ROW(weir_kernel_get_info, (good.kernel, NULL), INVALID, "out_info is NULL");
    ROW(weir_kernel_get_info, (good.kernel, &(weir_kernel_info){.struct_size = 8}),
        INVALID, "out_info->struct_size is 8");
    weir_kernel_cache_info cache = {.struct_size = 0};
    ROW(weir_kernel_cache_set_capacity, (1048577), RANGE, "capacity is 1048577, expected 0 to 1048576");
    ROW(weir_kernel_cache_set_capacity, (SIZE_MAX), RANGE, "capacity is 18446744073709551615");
    ROW(weir_kernel_cache_get_info, (NULL), INVALID, "out_info is NULL");
    ROW(weir_kernel_cache_get_info, (&cache), INVALID, "out_info->struct_size is 0, expected 56 (at least 56)");
    ROW(weir_kernel_cache_get_info, (UNALIGNED), INVALID, "out_info is not aligned");
    CHECK(cache.capacity == 0);

    ROW(weir_kernel_infer, (NULL, &four, 1, &out.desc, 1), INVALID, "kernel is NULL");
    ROW(weir_kernel_infer, (WRONG(tensor), &four, 1, &out.desc, 1), INVALID, "kernel: expected a kernel, got a tensor");
    ROW(weir_kernel_infer, (good.kernel, NULL, 1, &out.desc, 1), INVALID, "inputs is NULL, but its length is 1");
    ROW(weir_kernel_infer, (good.kernel, &four, SIZE_MAX, &out.desc, 1), RANGE, "inputs");
    ROW(weir_kernel_infer, (good.kernel, &four, 1, NULL, 1), INVALID, "out_outputs is NULL");
    ROW(weir_kernel_infer, (good.kernel, &four, 1, out.descs, 2), INVALID, "num_outputs is 2");
    ROW(weir_kernel_infer, (good.kernel, NULL, 0, &out.desc, 1), INVALID, "input");
    ROW(weir_kernel_infer, (good.kernel, &five, 1, &out.desc, 1), INVALID, "input 0");
}

static void rows_of_enqueue(void) {
    weir_tensor *in = good.tensor, *missing = NULL, *odd = WRONG(engine);
    weir_tensor *result = make_tensor(good.engine, vector_desc(4));

    ROW(weir_enqueue, (NULL, good.kernel, &in, 1, &result, 1), INVALID, "stream is NULL");
    ROW(weir_enqueue, (good.stream, NULL, &in, 1, &result, 1), INVALID, "kernel is NULL");
    ROW(weir_enqueue, (WRONG(kernel), good.kernel, &in, 1, &result, 1),
        INVALID, "stream: expected a stream, got a kernel");
    ROW(weir_enqueue, (good.stream, WRONG(stream), &in, 1, &result, 1),
        INVALID, "kernel: expected a kernel, got a stream");
    ROW(weir_enqueue, (good.stream, good.kernel, NULL, 1, &result, 1), INVALID, "inputs is NULL, but its length is 1");
    ROW(weir_enqueue, (good.stream, good.kernel, &in, 1, NULL, 1), INVALID, "outputs is NULL, but its length is 1");
    ROW(weir_enqueue, (good.stream, good.kernel, &missing, 1, &result, 1), INVALID, "inputs[0] is NULL");
    ROW(weir_enqueue, (good.stream, good.kernel, &in, 1, &missing, 1), INVALID, "outputs[0] is NULL");
    ROW(weir_enqueue, (good.stream, good.kernel, &odd, 1, &result, 1),
        INVALID, "inputs[0]: expected a tensor, got an engine");
    ROW(weir_enqueue, (good.stream, good.kernel, &in, 1, &odd, 1),
        INVALID, "outputs[0]: expected a tensor, got an engine");
    ROW(weir_enqueue, (good.stream, good.kernel, NULL, 0, &result, 1), INVALID, "input");
    ROW(weir_enqueue, (good.stream, good.kernel, &in, 1, NULL, 0), INVALID, "output");
    ROW(weir_enqueue, (good.stream, good.kernel, &in, SIZE_MAX, &result, 1), RANGE, "inputs");
    ROW(weir_enqueue, (good.stream, good.kernel, &in, 1, &result, SIZE_MAX), RANGE, "outputs");
    ROW(weir_enqueue, (good.stream, good.kernel, &in, 1, &in, 1), INVALID, "output 0");
    weir_tensor_release(result);
}

static void rows_of_calls(void) {
    weir_tensor *in = good.tensor, *missing = NULL;
    weir_tensor *result = make_tensor(good.engine, vector_desc(4));

    ROW(weir_call_create, (NULL, good.kernel, &in, 1, &result, 1, NEW(call)), INVALID, "stream is NULL");
    ROW(weir_call_create, (good.stream, NULL, &in, 1, &result, 1, NEW(call)), INVALID, "kernel is NULL");
    ROW(weir_call_create, (good.stream, good.kernel, &in, 1, &result, 1, NULL), INVALID, "out_call is NULL");
    ROW(weir_call_create, (WRONG(kernel), good.kernel, &in, 1, &result, 1, NEW(call)),
        INVALID, "stream: expected a stream, got a kernel");
    ROW(weir_call_create, (good.stream, good.kernel, NULL, 1, &result, 1, NEW(call)),
        INVALID, "inputs is NULL, but its length is 1");
    ROW(weir_call_create, (good.stream, good.kernel, &in, 1, NULL, 1, NEW(call)),
        INVALID, "outputs is NULL, but its length is 1");
    ROW(weir_call_create, (good.stream, good.kernel, &missing, 1, &result, 1, NEW(call)), INVALID, "inputs[0] is NULL");
    ROW(weir_call_create, (good.stream, good.kernel, &in, SIZE_MAX, &result, 1, NEW(call)), RANGE, "inputs");
    ROW(weir_call_create, (good.stream, good.kernel, NULL, 0, &result, 1, NEW(call)), INVALID, "input");
    ROW(weir_call_create, (good.stream, good.kernel, &in, 1, &in, 1, NEW(call)), INVALID, "output 0");
    ROW(weir_call_retain, (NULL), INVALID, "call is NULL");
    ROW(weir_call_retain, (WRONG(kernel)), INVALID, "call: expected a call, got a kernel");
    ROW(weir_call_enqueue, (NULL), INVALID, "call is NULL");
    ROW(weir_call_enqueue, (WRONG(stream)), INVALID, "call: expected a call, got a stream");
    weir_tensor_release(result);
}

void bad_input_kernel(void) {
    rows_of_options();
    rows_of_host_kernels();
    rows_of_builtin_kernels();
    rows_of_kernels();
    rows_of_enqueue();
    rows_of_calls();
}

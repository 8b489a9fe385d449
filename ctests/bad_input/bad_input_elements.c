/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Bad input for the kernels that compute each element for itself.
 */

#include <weir/ops.h>

#include "bad_input.h"

static void rows_of_functions(void) {
    const float big = 1e38f;
    const float nan = big * big - big * big;
    weir_eltwise_desc sane = {.struct_size = sizeof sane, .op = WEIR_ELTWISE_TANH}, desc;

    desc = sane, desc.op = 0;
    ROW(weir_kernel_create_eltwise, (good.engine, &desc, NULL, NEW(kernel)),
        INVALID, "desc->op is 0, which is no weir_eltwise_op_value");
    desc = sane, desc.op = 35;
    ROW(weir_kernel_create_eltwise, (good.engine, &desc, NULL, NEW(kernel)), INVALID, "desc->op is 35");
    desc = sane, desc.alpha = 1;
    ROW(weir_kernel_create_eltwise, (good.engine, &desc, NULL, NEW(kernel)),
        INVALID, "desc->alpha is 1, but the function does not have it");
    desc = sane, desc.op = WEIR_ELTWISE_SWISH, desc.beta = 2;
    ROW(weir_kernel_create_eltwise, (good.engine, &desc, NULL, NEW(kernel)),
        INVALID, "desc->beta is 2, but the function does not have it");
    desc = sane, desc.op = WEIR_ELTWISE_CLIP, desc.beta = nan;
    ROW(weir_kernel_create_eltwise, (good.engine, &desc, NULL, NEW(kernel)), INVALID, "desc->beta is NaN");
    desc = sane, desc.op = WEIR_ELTWISE_SOFTPLUS;
    ROW(weir_kernel_create_eltwise, (good.engine, &desc, NULL, NEW(kernel)),
        INVALID, "desc->alpha is 0, but softplus divides by it");
    desc = sane, desc.reserved = 1;
    ROW(weir_kernel_create_eltwise, (good.engine, &desc, NULL, NEW(kernel)), INVALID, "desc->reserved is 1");
}

static void rows_of_two(void) {
    weir_binary_desc sane = {.struct_size = sizeof sane, .op = WEIR_BINARY_ADD}, desc;

    desc = sane, desc.op = 15;
    ROW(weir_kernel_create_binary, (good.engine, &desc, NULL, NEW(kernel)),
        INVALID, "desc->op is 15, which is no weir_binary_op_value");
    desc = sane, desc.reserved = 3;
    ROW(weir_kernel_create_binary, (good.engine, &desc, NULL, NEW(kernel)), INVALID, "desc->reserved is 3");
    desc = sane, desc.rounding = 3;
    ROW(weir_kernel_create_binary, (good.engine, &desc, NULL, NEW(kernel)),
        INVALID, "desc->rounding is 3, which is no weir_rounding_value");
    desc = sane, desc.overflow = 2;
    ROW(weir_kernel_create_binary, (good.engine, &desc, NULL, NEW(kernel)),
        INVALID, "desc->overflow is 2, which is no weir_overflow_value");
}

static void rows_of_storage(void) {
    const float big = 1e38f;
    const float nan = big * big - big * big;
    weir_convert_desc convert = {.struct_size = sizeof convert, .dtype = WEIR_S8}, desc;
    weir_quantize_desc quantize = {.struct_size = sizeof quantize, .dtype = WEIR_S8}, there;

    desc = convert, desc.dtype = WEIR_DTYPE_ANY;
    ROW(weir_kernel_create_convert, (good.engine, &desc, NULL, NEW(kernel)), INVALID, "desc: dtype is 0");
    desc = convert, desc.scale = nan;
    ROW(weir_kernel_create_convert, (good.engine, &desc, NULL, NEW(kernel)), INVALID, "desc->scale is NaN");
    desc = convert, desc.shift = nan;
    ROW(weir_kernel_create_convert, (good.engine, &desc, NULL, NEW(kernel)), INVALID, "desc->shift is NaN");
    desc = convert, desc.reserved = 9;
    ROW(weir_kernel_create_convert, (good.engine, &desc, NULL, NEW(kernel)), INVALID, "desc->reserved is 9");
    desc = convert, desc.rounding = 7;
    ROW(weir_kernel_create_convert, (good.engine, &desc, NULL, NEW(kernel)),
        INVALID, "desc->rounding is 7, which is no weir_rounding_value");
    desc = convert, desc.overflow = 7;
    ROW(weir_kernel_create_convert, (good.engine, &desc, NULL, NEW(kernel)),
        INVALID, "desc->overflow is 7, which is no weir_overflow_value");
    there = quantize, there.flags = 4;
    ROW(weir_kernel_create_quantize, (good.engine, &there, NULL, NEW(kernel)), INVALID, "desc->flags has unknown bits 0x4");
    there = quantize, there.dtype = WEIR_F32;
    ROW(weir_kernel_create_quantize, (good.engine, &there, NULL, NEW(kernel)),
        INVALID, "desc->dtype is f32 (1), expected s8, u8 or s32");
    there = quantize, there.axis = 8;
    ROW(weir_kernel_create_quantize, (good.engine, &there, NULL, NEW(kernel)), RANGE, "desc->axis is 8, expected -8 to 7");
    there = quantize, there.flags = WEIR_QUANTIZE_DEQUANTIZE, there.dtype = WEIR_U8;
    ROW(weir_kernel_create_quantize, (good.engine, &there, NULL, NEW(kernel)),
        INVALID, "desc->dtype is u8 (3), expected f32, bf16 or f16");
}

void bad_input_elements(void) {
    rows_of_functions();
    rows_of_two();
    rows_of_storage();
}

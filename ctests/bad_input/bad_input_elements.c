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

    ROW(weir_kernel_create_eltwise, (NULL, &sane, NULL, NEW(kernel)), INVALID, "engine is NULL");
    ROW(weir_kernel_create_eltwise, (good.engine, NULL, NULL, NEW(kernel)), INVALID, "desc is NULL");
    ROW(weir_kernel_create_eltwise, (good.engine, &sane, NULL, NULL), INVALID, "out_kernel is NULL");
    ROW(weir_kernel_create_eltwise, (WRONG(stream), &sane, NULL, NEW(kernel)),
        INVALID, "engine: expected an engine, got a stream");
    ROW(weir_kernel_create_eltwise, (good.engine, &sane, WRONG(graph), NEW(kernel)), INVALID, "attr: expected a kernel_attr");
    desc = sane, desc.struct_size = 8;
    ROW(weir_kernel_create_eltwise, (good.engine, &desc, NULL, NEW(kernel)), INVALID, "desc->struct_size is 8, expected 24");
    desc = sane, desc.op = 0;
    ROW(weir_kernel_create_eltwise, (good.engine, &desc, NULL, NEW(kernel)),
        INVALID, "desc->op is 0, which is none of weir_eltwise_op_value");
    desc = sane, desc.op = 22;
    ROW(weir_kernel_create_eltwise, (good.engine, &desc, NULL, NEW(kernel)), INVALID, "desc->op is 22");
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
    weir_select_desc select = {.struct_size = 7};

    ROW(weir_kernel_create_binary, (NULL, &sane, NULL, NEW(kernel)), INVALID, "engine is NULL");
    ROW(weir_kernel_create_binary, (good.engine, NULL, NULL, NEW(kernel)), INVALID, "desc is NULL");
    ROW(weir_kernel_create_binary, (good.engine, &sane, NULL, NULL), INVALID, "out_kernel is NULL");
    ROW(weir_kernel_create_binary, (NO_OBJECT, &sane, NULL, NEW(kernel)), INVALID, "engine: expected an engine");
    ROW(weir_kernel_create_binary, (good.engine, &sane, WRONG(run), NEW(kernel)), INVALID, "attr: expected a kernel_attr");
    desc = sane, desc.struct_size = 12;
    ROW(weir_kernel_create_binary, (good.engine, &desc, NULL, NEW(kernel)), INVALID, "desc->struct_size is 12, expected 16");
    desc = sane, desc.op = 14;
    ROW(weir_kernel_create_binary, (good.engine, &desc, NULL, NEW(kernel)),
        INVALID, "desc->op is 14, which is none of weir_binary_op_value");
    desc = sane, desc.reserved = 3;
    ROW(weir_kernel_create_binary, (good.engine, &desc, NULL, NEW(kernel)), INVALID, "desc->reserved is 3");
    ROW(weir_kernel_create_select, (NULL, NULL, NULL, NEW(kernel)), INVALID, "engine is NULL");
    ROW(weir_kernel_create_select, (good.engine, NULL, NULL, NULL), INVALID, "out_kernel is NULL");
    ROW(weir_kernel_create_select, (good.engine, NULL, WRONG(tensor), NEW(kernel)), INVALID, "attr: expected a kernel_attr");
    ROW(weir_kernel_create_select, (good.engine, &select, NULL, NEW(kernel)), INVALID, "desc->struct_size is 7, expected 8");
}

static void rows_of_storage(void) {
    const float big = 1e38f;
    const float nan = big * big - big * big;
    weir_convert_desc convert = {.struct_size = sizeof convert, .dtype = WEIR_S8}, desc;
    weir_quantize_desc quantize = {.struct_size = sizeof quantize, .dtype = WEIR_S8}, there;
    weir_dequantize_desc dequantize = {.struct_size = sizeof dequantize}, back;

    ROW(weir_kernel_create_convert, (NULL, &convert, NULL, NEW(kernel)), INVALID, "engine is NULL");
    ROW(weir_kernel_create_convert, (good.engine, NULL, NULL, NEW(kernel)), INVALID, "desc is NULL");
    ROW(weir_kernel_create_convert, (good.engine, &convert, NULL, NULL), INVALID, "out_kernel is NULL");
    ROW(weir_kernel_create_convert, (good.engine, &convert, UNALIGNED, NEW(kernel)), INVALID, "attr: expected a kernel_attr");
    desc = convert, desc.struct_size = 16;
    ROW(weir_kernel_create_convert, (good.engine, &desc, NULL, NEW(kernel)), INVALID, "desc->struct_size is 16, expected 24");
    desc = convert, desc.dtype = WEIR_DTYPE_ANY;
    ROW(weir_kernel_create_convert, (good.engine, &desc, NULL, NEW(kernel)), INVALID, "desc: dtype is 0");
    desc = convert, desc.scale = nan;
    ROW(weir_kernel_create_convert, (good.engine, &desc, NULL, NEW(kernel)), INVALID, "desc->scale is NaN");
    desc = convert, desc.shift = nan;
    ROW(weir_kernel_create_convert, (good.engine, &desc, NULL, NEW(kernel)), INVALID, "desc->shift is NaN");
    desc = convert, desc.reserved = 9;
    ROW(weir_kernel_create_convert, (good.engine, &desc, NULL, NEW(kernel)), INVALID, "desc->reserved is 9");
    ROW(weir_kernel_create_quantize, (NULL, &quantize, NULL, NEW(kernel)), INVALID, "engine is NULL");
    ROW(weir_kernel_create_quantize, (good.engine, NULL, NULL, NEW(kernel)), INVALID, "desc is NULL");
    ROW(weir_kernel_create_quantize, (good.engine, &quantize, NULL, NULL), INVALID, "out_kernel is NULL");
    there = quantize, there.struct_size = 8;
    ROW(weir_kernel_create_quantize, (good.engine, &there, NULL, NEW(kernel)), INVALID, "desc->struct_size is 8, expected 24");
    there = quantize, there.flags = 2;
    ROW(weir_kernel_create_quantize, (good.engine, &there, NULL, NEW(kernel)), INVALID, "desc->flags has unknown bits 0x2");
    there = quantize, there.dtype = WEIR_F32;
    ROW(weir_kernel_create_quantize, (good.engine, &there, NULL, NEW(kernel)),
        INVALID, "desc->dtype is f32 (1), expected s8, u8 or s32");
    there = quantize, there.axis = 8;
    ROW(weir_kernel_create_quantize, (good.engine, &there, NULL, NEW(kernel)), RANGE, "desc->axis is 8, expected -8 to 7");
    ROW(weir_kernel_create_dequantize, (NULL, &dequantize, NULL, NEW(kernel)), INVALID, "engine is NULL");
    ROW(weir_kernel_create_dequantize, (good.engine, NULL, NULL, NEW(kernel)), INVALID, "desc is NULL");
    ROW(weir_kernel_create_dequantize, (good.engine, &dequantize, NULL, NULL), INVALID, "out_kernel is NULL");
    back = dequantize, back.struct_size = 5000;
    ROW(weir_kernel_create_dequantize, (good.engine, &back, NULL, NEW(kernel)), INVALID, "desc->struct_size is 5000, expected 24");
    back = dequantize, back.flags = 4;
    ROW(weir_kernel_create_dequantize, (good.engine, &back, NULL, NEW(kernel)), INVALID, "desc->flags has unknown bits 0x4");
    back = dequantize, back.dtype = WEIR_U8;
    ROW(weir_kernel_create_dequantize, (good.engine, &back, NULL, NEW(kernel)),
        INVALID, "desc->dtype is u8 (3), expected f32, bf16 or f16");
    back = dequantize, back.axis = -9;
    ROW(weir_kernel_create_dequantize, (good.engine, &back, NULL, NEW(kernel)), RANGE, "desc->axis is -9");
}

void bad_input_elements(void) {
    rows_of_functions();
    rows_of_two();
    rows_of_storage();
}

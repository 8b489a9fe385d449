/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Bad input for the kernels that move elements, reduce dimensions, and normalise.
 */

#include <weir/ops.h>

#include "bad_input.h"

static void rows_of_transpose(void) {
    weir_transpose_desc sane = {.struct_size = sizeof sane, .rank = 2, .permutation = {1, 0}}, desc;

    ROW(weir_kernel_create_transpose, (NULL, NULL, NULL, NEW(kernel)), INVALID, "engine is NULL");
    ROW(weir_kernel_create_transpose, (good.engine, &sane, NULL, NULL), INVALID, "out_kernel is NULL");
    ROW(weir_kernel_create_transpose, (WRONG(run), &sane, NULL, NEW(kernel)), INVALID, "engine: expected an engine, got a run");
    ROW(weir_kernel_create_transpose, (good.engine, &sane, WRONG(graph), NEW(kernel)), INVALID, "attr: expected a kernel_attr");
    desc = sane, desc.struct_size = 16;
    ROW(weir_kernel_create_transpose, (good.engine, &desc, NULL, NEW(kernel)),
        INVALID, "desc->struct_size is 16, expected 48");
    desc = sane, desc.rank = 9;
    ROW(weir_kernel_create_transpose, (good.engine, &desc, NULL, NEW(kernel)), RANGE, "desc->rank is 9, expected 0 to 8");
    desc = sane, desc.reserved = 1;
    ROW(weir_kernel_create_transpose, (good.engine, &desc, NULL, NEW(kernel)), INVALID, "desc->reserved is 1");
    desc = sane, desc.permutation[1] = 2;
    ROW(weir_kernel_create_transpose, (good.engine, &desc, NULL, NEW(kernel)), RANGE, "desc->permutation[1] is 2");
    desc = sane, desc.permutation[1] = 1;
    ROW(weir_kernel_create_transpose, (good.engine, &desc, NULL, NEW(kernel)),
        INVALID, "desc->permutation[1] is 1, and so is desc->permutation[0]");
}

static void rows_of_concat_and_slice(void) {
    weir_concat_desc concat = {.struct_size = sizeof concat, .num_inputs = 2};
    weir_slice_desc slice = {.struct_size = sizeof slice, .rank = 1};

    ROW(weir_kernel_create_concat, (NULL, &concat, NULL, NEW(kernel)), INVALID, "engine is NULL");
    ROW(weir_kernel_create_concat, (good.engine, &concat, NULL, NULL), INVALID, "out_kernel is NULL");
    ROW(weir_kernel_create_concat, (good.engine, NULL, NULL, NEW(kernel)), INVALID, "desc is NULL");
    ROW(weir_kernel_create_concat, (WRONG(tensor), &concat, NULL, NEW(kernel)), INVALID, "engine: expected an engine");
    ROW(weir_kernel_create_concat, (good.engine, &concat, WRONG(stream), NEW(kernel)), INVALID, "attr: expected a kernel_attr");
    concat.num_inputs = 0;
    ROW(weir_kernel_create_concat, (good.engine, &concat, NULL, NEW(kernel)), RANGE, "desc->num_inputs is 0, expected 1 to 64");
    concat.num_inputs = 65;
    ROW(weir_kernel_create_concat, (good.engine, &concat, NULL, NEW(kernel)), RANGE, "desc->num_inputs is 65");
    concat.num_inputs = 2, concat.axis = 8;
    ROW(weir_kernel_create_concat, (good.engine, &concat, NULL, NEW(kernel)), RANGE, "desc->axis is 8");
    concat.struct_size = 8;
    ROW(weir_kernel_create_concat, (good.engine, &concat, NULL, NEW(kernel)), INVALID, "desc->struct_size is 8, expected 16");

    ROW(weir_kernel_create_slice, (NULL, &slice, NULL, NEW(kernel)), INVALID, "engine is NULL");
    ROW(weir_kernel_create_slice, (good.engine, &slice, NULL, NULL), INVALID, "out_kernel is NULL");
    ROW(weir_kernel_create_slice, (good.engine, NULL, NULL, NEW(kernel)), INVALID, "desc is NULL");
    ROW(weir_kernel_create_slice, (WRONG(event), &slice, NULL, NEW(kernel)), INVALID, "engine: expected an engine");
    ROW(weir_kernel_create_slice, (good.engine, &slice, NO_OBJECT, NEW(kernel)), INVALID, "attr: expected a kernel_attr");
    slice.rank = UINT32_MAX;
    ROW(weir_kernel_create_slice, (good.engine, &slice, NULL, NEW(kernel)), RANGE, "desc->rank is 4294967295");
    slice.rank = 1, slice.reserved = 7;
    ROW(weir_kernel_create_slice, (good.engine, &slice, NULL, NEW(kernel)), INVALID, "desc->reserved is 7, expected 0");
    slice.struct_size = 0;
    ROW(weir_kernel_create_slice, (good.engine, &slice, NULL, NEW(kernel)), INVALID, "desc->struct_size is 0, expected 208");
}

static void rows_of_pad_reshape_and_gather(void) {
    weir_pad_desc sane = {.struct_size = sizeof sane, .rank = 2}, pad;
    weir_reshape_desc reshape = {.struct_size = sizeof reshape, .rank = 2, .dims = {-1, 2}};
    weir_gather_desc gather = {.struct_size = sizeof gather, .axis = -9};

    ROW(weir_kernel_create_pad, (NULL, &sane, NULL, NEW(kernel)), INVALID, "engine is NULL");
    ROW(weir_kernel_create_pad, (good.engine, &sane, NULL, NULL), INVALID, "out_kernel is NULL");
    ROW(weir_kernel_create_pad, (good.engine, NULL, NULL, NEW(kernel)), INVALID, "desc is NULL");
    ROW(weir_kernel_create_pad, (WRONG(event), &sane, NULL, NEW(kernel)), INVALID, "engine: expected an engine");
    ROW(weir_kernel_create_pad, (good.engine, &sane, NO_OBJECT, NEW(kernel)), INVALID, "attr: expected a kernel_attr");
    pad = sane, pad.struct_size = 8;
    ROW(weir_kernel_create_pad, (good.engine, &pad, NULL, NEW(kernel)), INVALID, "desc->struct_size is 8, expected 152");
    pad = sane, pad.rank = 9;
    ROW(weir_kernel_create_pad, (good.engine, &pad, NULL, NEW(kernel)), RANGE, "desc->rank is 9");
    pad = sane, pad.mode = 3;
    ROW(weir_kernel_create_pad, (good.engine, &pad, NULL, NEW(kernel)), INVALID, "desc->mode is 3, which is no weir_pad_mode");
    pad = sane, pad.before[1] = -1;
    ROW(weir_kernel_create_pad, (good.engine, &pad, NULL, NEW(kernel)), INVALID, "desc->before[1] is -1, expected 0 or more");
    pad = sane, pad.after[0] = INT64_MIN;
    ROW(weir_kernel_create_pad, (good.engine, &pad, NULL, NEW(kernel)), INVALID, "desc->after[0] is -9223372036854775808");

    ROW(weir_kernel_create_reshape, (NULL, &reshape, NULL, NEW(kernel)), INVALID, "engine is NULL");
    ROW(weir_kernel_create_reshape, (good.engine, &reshape, NULL, NULL), INVALID, "out_kernel is NULL");
    ROW(weir_kernel_create_reshape, (good.engine, NULL, NULL, NEW(kernel)), INVALID, "desc is NULL");
    ROW(weir_kernel_create_reshape, (WRONG(event), &reshape, NULL, NEW(kernel)), INVALID, "engine: expected an engine");
    ROW(weir_kernel_create_reshape, (good.engine, &reshape, NO_OBJECT, NEW(kernel)), INVALID, "attr: expected a kernel_attr");
    reshape.dims[1] = -1;
    ROW(weir_kernel_create_reshape, (good.engine, &reshape, NULL, NEW(kernel)),
        INVALID, "desc->dims[1] is -1, and so is desc->dims[0]");
    reshape.dims[1] = -2;
    ROW(weir_kernel_create_reshape, (good.engine, &reshape, NULL, NEW(kernel)), INVALID, "desc->dims[1] is -2");
    reshape.rank = 9;
    ROW(weir_kernel_create_reshape, (good.engine, &reshape, NULL, NEW(kernel)), RANGE, "desc->rank is 9");
    reshape.struct_size = 79;
    ROW(weir_kernel_create_reshape, (good.engine, &reshape, NULL, NEW(kernel)), INVALID, "desc->struct_size is 79, expected 80");

    ROW(weir_kernel_create_gather, (NULL, NULL, NULL, NEW(kernel)), INVALID, "engine is NULL");
    ROW(weir_kernel_create_gather, (good.engine, NULL, NULL, NULL), INVALID, "out_kernel is NULL");
    ROW(weir_kernel_create_gather, (WRONG(event), NULL, NULL, NEW(kernel)), INVALID, "engine: expected an engine");
    ROW(weir_kernel_create_gather, (good.engine, NULL, NO_OBJECT, NEW(kernel)), INVALID, "attr: expected a kernel_attr");
    ROW(weir_kernel_create_gather, (good.engine, &gather, NULL, NEW(kernel)), RANGE, "desc->axis is -9, expected -8 to 7");
    gather.reserved = 1;
    ROW(weir_kernel_create_gather, (good.engine, &gather, NULL, NEW(kernel)), INVALID, "desc->reserved is 1");
    gather.struct_size = 12;
    ROW(weir_kernel_create_gather, (good.engine, &gather, NULL, NEW(kernel)), INVALID, "desc->struct_size is 12, expected 16");
}

static void rows_of_reduce_and_norm(void) {
    weir_reduce_desc sum = {.struct_size = sizeof sum, .op = WEIR_REDUCE_SUM, .num_axes = 1}, reduce;
    weir_reduce_desc length = {.struct_size = sizeof sum, .op = WEIR_REDUCE_NORM_SUM, .p = 2};
    weir_norm_desc layer = {.struct_size = sizeof layer, .op = WEIR_NORM_LAYER, .axis = -1}, norm;
    weir_softmax_desc softmax = {.struct_size = sizeof softmax, .flags = 2};

    ROW(weir_kernel_create_softmax, (good.engine, &softmax, NULL, NEW(kernel)), INVALID, "desc->flags has unknown bits 0x2");

    ROW(weir_kernel_create_reduce, (NULL, &sum, NULL, NEW(kernel)), INVALID, "engine is NULL");
    ROW(weir_kernel_create_reduce, (good.engine, &sum, NULL, NULL), INVALID, "out_kernel is NULL");
    ROW(weir_kernel_create_reduce, (good.engine, NULL, NULL, NEW(kernel)), INVALID, "desc is NULL");
    ROW(weir_kernel_create_reduce, (WRONG(event), &sum, NULL, NEW(kernel)), INVALID, "engine: expected an engine");
    ROW(weir_kernel_create_reduce, (good.engine, &sum, NO_OBJECT, NEW(kernel)), INVALID, "attr: expected a kernel_attr");
    reduce = sum, reduce.struct_size = 8;
    ROW(weir_kernel_create_reduce, (good.engine, &reduce, NULL, NEW(kernel)), INVALID, "desc->struct_size is 8, expected 64");
    reduce = sum, reduce.op = 0;
    ROW(weir_kernel_create_reduce, (good.engine, &reduce, NULL, NEW(kernel)), INVALID, "desc->op is 0, which is no weir_reduce_op");
    reduce = sum, reduce.flags = 2;
    ROW(weir_kernel_create_reduce, (good.engine, &reduce, NULL, NEW(kernel)), INVALID, "desc->flags has unknown bits 0x2");
    reduce = sum, reduce.num_axes = 9;
    ROW(weir_kernel_create_reduce, (good.engine, &reduce, NULL, NEW(kernel)), RANGE, "desc->num_axes is 9");
    reduce = sum, reduce.axes[0] = 8;
    ROW(weir_kernel_create_reduce, (good.engine, &reduce, NULL, NEW(kernel)), RANGE, "desc->axes[0] is 8, expected -8 to 7");
    reduce = sum, reduce.p = 2;
    ROW(weir_kernel_create_reduce, (good.engine, &reduce, NULL, NEW(kernel)), INVALID, "desc->p is 2, expected 0");
    reduce = sum, reduce.eps = 1;
    ROW(weir_kernel_create_reduce, (good.engine, &reduce, NULL, NEW(kernel)), INVALID, "desc->eps is 1, expected 0");
    reduce = length, reduce.p = 3;
    ROW(weir_kernel_create_reduce, (good.engine, &reduce, NULL, NEW(kernel)), INVALID, "desc->p is 3, expected 1 or 2");
    reduce = length, reduce.eps = -1;
    ROW(weir_kernel_create_reduce, (good.engine, &reduce, NULL, NEW(kernel)), INVALID, "desc->eps is -1, expected 0 or more");

    ROW(weir_kernel_create_norm, (NULL, &layer, NULL, NEW(kernel)), INVALID, "engine is NULL");
    ROW(weir_kernel_create_norm, (good.engine, &layer, NULL, NULL), INVALID, "out_kernel is NULL");
    ROW(weir_kernel_create_norm, (good.engine, NULL, NULL, NEW(kernel)), INVALID, "desc is NULL");
    ROW(weir_kernel_create_norm, (WRONG(event), &layer, NULL, NEW(kernel)), INVALID, "engine: expected an engine");
    ROW(weir_kernel_create_norm, (good.engine, &layer, NO_OBJECT, NEW(kernel)), INVALID, "attr: expected a kernel_attr");
    norm = layer, norm.struct_size = 8;
    ROW(weir_kernel_create_norm, (good.engine, &norm, NULL, NEW(kernel)), INVALID, "desc->struct_size is 8, expected 32");
    norm = layer, norm.op = 5;
    ROW(weir_kernel_create_norm, (good.engine, &norm, NULL, NEW(kernel)), INVALID, "desc->op is 5, which is no weir_norm_op");
    norm = layer, norm.flags = 4;
    ROW(weir_kernel_create_norm, (good.engine, &norm, NULL, NEW(kernel)), INVALID, "desc->flags has unknown bits 0x4");
    norm = layer, norm.axis = -9;
    ROW(weir_kernel_create_norm, (good.engine, &norm, NULL, NEW(kernel)), RANGE, "desc->axis is -9");
    norm = layer, norm.groups = 2;
    ROW(weir_kernel_create_norm, (good.engine, &norm, NULL, NEW(kernel)), INVALID, "desc->groups is 2, expected 0");
    norm = layer, norm.op = WEIR_NORM_GROUP;
    ROW(weir_kernel_create_norm, (good.engine, &norm, NULL, NEW(kernel)), INVALID, "desc->groups is 0, expected 1 or more");
    norm = layer, norm.epsilon = -1;
    ROW(weir_kernel_create_norm, (good.engine, &norm, NULL, NEW(kernel)), INVALID, "desc->epsilon is -1, expected 0 or more");
}

void bad_input_rows(void) {
    rows_of_transpose();
    rows_of_concat_and_slice();
    rows_of_pad_reshape_and_gather();
    rows_of_reduce_and_norm();
}

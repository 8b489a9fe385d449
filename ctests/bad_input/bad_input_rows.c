/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Bad input for the kernels that move elements, reduce dimensions, and normalise.
 */

#include <weir/ops.h>

#include "bad_input.h"

static void rows_of_transpose(void) {
    weir_transpose_desc sane = {.struct_size = sizeof sane, .rank = 2, .permutation = {1, 0}}, desc;

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

    concat.num_inputs = 0;
    ROW(weir_kernel_create_concat, (good.engine, &concat, NULL, NEW(kernel)), RANGE, "desc->num_inputs is 0, expected 1 to 64");
    concat.num_inputs = 65;
    ROW(weir_kernel_create_concat, (good.engine, &concat, NULL, NEW(kernel)), RANGE, "desc->num_inputs is 65");
    concat.num_inputs = 2, concat.axis = 8;
    ROW(weir_kernel_create_concat, (good.engine, &concat, NULL, NEW(kernel)), RANGE, "desc->axis is 8");

    slice.rank = UINT32_MAX;
    ROW(weir_kernel_create_slice, (good.engine, &slice, NULL, NEW(kernel)), RANGE, "desc->rank is 4294967295");
    slice.rank = 1, slice.reserved = 7;
    ROW(weir_kernel_create_slice, (good.engine, &slice, NULL, NEW(kernel)), INVALID, "desc->reserved is 7, expected 0");
}

static void rows_of_pad_reshape_and_gather(void) {
    weir_pad_desc sane = {.struct_size = sizeof sane, .rank = 2}, pad;
    weir_reshape_desc reshape = {.struct_size = sizeof reshape, .rank = 2, .dims = {-1, 2}};
    weir_gather_desc gather = {.struct_size = sizeof gather, .axis = -9};

    pad = sane, pad.rank = 9;
    ROW(weir_kernel_create_pad, (good.engine, &pad, NULL, NEW(kernel)), RANGE, "desc->rank is 9");
    pad = sane, pad.mode = 3;
    ROW(weir_kernel_create_pad, (good.engine, &pad, NULL, NEW(kernel)), INVALID, "desc->mode is 3, which is no weir_pad_mode");
    pad = sane, pad.before[1] = -1;
    ROW(weir_kernel_create_pad, (good.engine, &pad, NULL, NEW(kernel)), INVALID, "desc->before[1] is -1, expected 0 or more");
    pad = sane, pad.after[0] = INT64_MIN;
    ROW(weir_kernel_create_pad, (good.engine, &pad, NULL, NEW(kernel)), INVALID, "desc->after[0] is -9223372036854775808");

    weir_tile_desc tile = {.struct_size = sizeof tile, .rank = 2, .counts = {1, -1}};
    ROW(weir_kernel_create_tile, (good.engine, &tile, NULL, NEW(kernel)), INVALID, "desc->counts[1] is -1, expected 0 or more");
    tile.mode = WEIR_TILE_EXPAND, tile.counts[0] = -2;
    ROW(weir_kernel_create_tile, (good.engine, &tile, NULL, NEW(kernel)),
        INVALID, "desc->counts[0] is -2, expected -1 (as in the input), 0 or more");
    tile.mode = 2;
    ROW(weir_kernel_create_tile, (good.engine, &tile, NULL, NEW(kernel)), INVALID, "desc->mode is 2, which is no weir_tile_mode");
    tile.rank = 9;
    ROW(weir_kernel_create_tile, (good.engine, &tile, NULL, NEW(kernel)), RANGE, "desc->rank is 9");

    reshape.dims[1] = -1;
    ROW(weir_kernel_create_reshape, (good.engine, &reshape, NULL, NEW(kernel)),
        INVALID, "desc->dims[1] is -1, and so is desc->dims[0]");
    reshape.dims[1] = -3;
    ROW(weir_kernel_create_reshape, (good.engine, &reshape, NULL, NEW(kernel)), INVALID, "desc->dims[1] is -3");
    reshape.rank = 9;
    ROW(weir_kernel_create_reshape, (good.engine, &reshape, NULL, NEW(kernel)), RANGE, "desc->rank is 9");

    ROW(weir_kernel_create_gather, (good.engine, &gather, NULL, NEW(kernel)), RANGE, "desc->axis is -9, expected -8 to 7");
    gather.reserved = 1;
    ROW(weir_kernel_create_gather, (good.engine, &gather, NULL, NEW(kernel)), INVALID, "desc->reserved is 1");
    gather.reserved = 0, gather.flags = 2;
    ROW(weir_kernel_create_gather, (good.engine, &gather, NULL, NEW(kernel)), INVALID, "desc->flags has unknown bits 0x2");
}

static void rows_of_reduce_and_norm(void) {
    weir_reduce_desc sum = {.struct_size = sizeof sum, .op = WEIR_REDUCE_SUM, .num_axes = 1}, reduce;
    weir_reduce_desc length = {.struct_size = sizeof sum, .op = WEIR_REDUCE_NORM_SUM, .p = 2};
    weir_norm_desc layer = {.struct_size = sizeof layer, .op = WEIR_NORM_LAYER, .axis = -1}, norm;
    weir_softmax_desc softmax = {.struct_size = sizeof softmax, .flags = 2};

    ROW(weir_kernel_create_softmax, (good.engine, &softmax, NULL, NEW(kernel)), INVALID, "desc->flags has unknown bits 0x2");

    reduce = sum, reduce.op = 0;
    ROW(weir_kernel_create_reduce, (good.engine, &reduce, NULL, NEW(kernel)), INVALID, "desc->op is 0, which is no weir_reduce_op");
    reduce = sum, reduce.flags = WEIR_REDUCE_S64_INDICES;
    ROW(weir_kernel_create_reduce, (good.engine, &reduce, NULL, NEW(kernel)),
        INVALID, "desc->flags has WEIR_REDUCE_S64_INDICES, but the operation gives no indices");
    reduce = sum, reduce.flags = 4;
    ROW(weir_kernel_create_reduce, (good.engine, &reduce, NULL, NEW(kernel)), INVALID, "desc->flags has unknown bits 0x4");
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

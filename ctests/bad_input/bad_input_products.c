/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Bad input for convolution, pooling, recurrent cells, products of bytes and packed weights.
 */

#include <stddef.h>
#include <weir/ops.h>

#include "bad_input.h"

static void rows_of_conv(void) {
    weir_conv_desc sane = {.struct_size = sizeof sane}, desc;
    weir_kernel *conv = NULL;
    CHECK_OK(weir_kernel_create_conv(good.engine, NULL, NULL, &conv));
    weir_kernel_release(conv);

    desc = sane, desc.flags = 4;
    ROW(weir_kernel_create_conv, (good.engine, &desc, NULL, NEW(kernel)), INVALID, "desc->flags has unknown bits 0x4");
    desc = sane, desc.data_layout = 1;
    ROW(weir_kernel_create_conv, (good.engine, &desc, NULL, NEW(kernel)), INVALID, "desc->data_layout is 1, which is no weir_");
    desc = sane, desc.weights_layout = 7;
    ROW(weir_kernel_create_conv, (good.engine, &desc, NULL, NEW(kernel)), INVALID, "desc->weights_layout is 7, which is no weir_");
    desc = sane, desc.padding = 2;
    ROW(weir_kernel_create_conv, (good.engine, &desc, NULL, NEW(kernel)), INVALID, "desc->padding is 2, which is no weir_");
    desc = sane, desc.activation = 11;
    ROW(weir_kernel_create_conv, (good.engine, &desc, NULL, NEW(kernel)), INVALID, "desc->activation is 11, which is no weir_");
    desc = sane, desc.activation = WEIR_ACTIVATION_SWISH, desc.alpha = desc.beta = 1;
    ROW(weir_kernel_create_conv, (good.engine, &desc, NULL, NEW(kernel)), INVALID, "desc->beta is 1, but the activation does not have it");
    desc = sane, desc.groups = -1;
    ROW(weir_kernel_create_conv, (good.engine, &desc, NULL, NEW(kernel)), RANGE, "desc->groups is -1, expected 0 to");
    desc = sane, desc.strides[1] = -3;
    ROW(weir_kernel_create_conv, (good.engine, &desc, NULL, NEW(kernel)), RANGE, "desc->strides[1] is -3");
    desc = sane, desc.dilations[0] = INT64_MAX;
    ROW(weir_kernel_create_conv, (good.engine, &desc, NULL, NEW(kernel)), RANGE, "desc->dilations[0] is 9223372036854775807");
    desc = sane, desc.padding_begin[0] = INT64_MIN;
    ROW(weir_kernel_create_conv, (good.engine, &desc, NULL, NEW(kernel)), RANGE, "desc->padding_begin[0] is -9223372036854775808");
    desc = sane, desc.padding_end[1] = -1;
    ROW(weir_kernel_create_conv, (good.engine, &desc, NULL, NEW(kernel)), RANGE, "desc->padding_end[1] is -1");
    desc = sane, desc.depth_stride = -1;
    ROW(weir_kernel_create_conv, (good.engine, &desc, NULL, NEW(kernel)), RANGE, "desc->depth_stride is -1");
    desc = sane, desc.depth_dilation = INT64_MAX;
    ROW(weir_kernel_create_conv, (good.engine, &desc, NULL, NEW(kernel)), RANGE, "desc->depth_dilation is 9223372036854775807");
    desc = sane, desc.depth_padding_begin = -2;
    ROW(weir_kernel_create_conv, (good.engine, &desc, NULL, NEW(kernel)), RANGE, "desc->depth_padding_begin is -2");
    desc = sane, desc.depth_padding_end = -3;
    ROW(weir_kernel_create_conv, (good.engine, &desc, NULL, NEW(kernel)), RANGE, "desc->depth_padding_end is -3");
    desc = sane, desc.struct_size = offsetof(weir_conv_desc, depth_stride) - 1;
    ROW(weir_kernel_create_conv, (good.engine, &desc, NULL, NEW(kernel)), INVALID, "desc->struct_size is 111, expected 144 (at least 112)");

    weir_conv_transpose_desc transpose = {.struct_size = sizeof transpose, .depth_more = -1};
    ROW(weir_kernel_create_conv_transpose, (good.engine, &transpose, NULL, NEW(kernel)), RANGE, "desc->depth_more is -1");
}

static void rows_of_pooling(void) {
    weir_pooling_desc sane = {.struct_size = sizeof sane, .op = WEIR_POOLING_MAX, .kernel = {2, 0}}, desc;

    desc = sane, desc.flags = 8;
    ROW(weir_kernel_create_pooling, (good.engine, &desc, NULL, NEW(kernel)), INVALID, "desc->flags has unknown bits 0x8");
    desc = sane, desc.op = 0;
    ROW(weir_kernel_create_pooling, (good.engine, &desc, NULL, NEW(kernel)), INVALID, "desc->op is 0, which is no weir_");
    desc = sane, desc.data_layout = 3;
    ROW(weir_kernel_create_pooling, (good.engine, &desc, NULL, NEW(kernel)), INVALID, "desc->data_layout is 3");
    desc = sane, desc.kernel[0] = 0;
    ROW(weir_kernel_create_pooling, (good.engine, &desc, NULL, NEW(kernel)), RANGE, "desc->kernel[0] is 0, expected 1 to");
    desc = sane, desc.kernel[1] = -1;
    ROW(weir_kernel_create_pooling, (good.engine, &desc, NULL, NEW(kernel)), RANGE, "desc->kernel[1] is -1, expected 0 to");
    desc = sane, desc.padding_end[0] = 2;
    ROW(weir_kernel_create_pooling, (good.engine, &desc, NULL, NEW(kernel)), RANGE, "desc has a padding of 2 on axis 0, expected less than the 2");
    desc = sane, desc.strides[0] = -1;
    ROW(weir_kernel_create_pooling, (good.engine, &desc, NULL, NEW(kernel)), RANGE, "desc->strides[0] is -1");
    desc = sane, desc.depth_kernel = 2;
    ROW(weir_kernel_create_pooling, (good.engine, &desc, NULL, NEW(kernel)), RANGE, "desc->kernel[1] is 0, expected 1 to");
    desc = sane, desc.depth_kernel = -1;
    ROW(weir_kernel_create_pooling, (good.engine, &desc, NULL, NEW(kernel)), RANGE, "desc->depth_kernel is -1, expected 0 to");
    desc = sane, desc.kernel[1] = 2, desc.depth_kernel = 2, desc.depth_padding_end = 2;
    ROW(weir_kernel_create_pooling, (good.engine, &desc, NULL, NEW(kernel)), RANGE, "desc has a padding of 2 on the axis of depth, expected less than the 2");
    desc = sane, desc.flags = WEIR_POOLING_GLOBAL, desc.kernel[0] = 0, desc.depth_kernel = 1;
    ROW(weir_kernel_create_pooling, (good.engine, &desc, NULL, NEW(kernel)), INVALID, "and WEIR_POOLING_GLOBAL");
    desc = sane, desc.flags = WEIR_POOLING_GLOBAL;
    ROW(weir_kernel_create_pooling, (good.engine, &desc, NULL, NEW(kernel)), INVALID, "and WEIR_POOLING_GLOBAL");
}

static void rows_of_cells(void) {
    weir_lstm_desc sane_lstm = {.struct_size = sizeof sane_lstm}, lstm;
    weir_gru_desc sane_gru = {.struct_size = sizeof sane_gru}, gru;

    lstm = sane_lstm, lstm.flags = 2;
    ROW(weir_kernel_create_lstm, (good.engine, &lstm, NULL, NEW(kernel)), INVALID, "desc->flags has unknown bits 0x2");
    lstm = sane_lstm, lstm.gate_order = 2;
    ROW(weir_kernel_create_lstm, (good.engine, &lstm, NULL, NEW(kernel)), INVALID, "desc->gate_order is 2, which is no weir_");
    lstm = sane_lstm, lstm.reserved = 1;
    ROW(weir_kernel_create_lstm, (good.engine, &lstm, NULL, NEW(kernel)), INVALID, "desc->reserved is 1, expected 0");
    gru = sane_gru, gru.flags = 4;
    ROW(weir_kernel_create_gru, (good.engine, &gru, NULL, NEW(kernel)), INVALID, "desc->flags has unknown bits 0x4");
    gru = sane_gru, gru.gate_order = 5;
    ROW(weir_kernel_create_gru, (good.engine, &gru, NULL, NEW(kernel)), INVALID, "desc->gate_order is 5");
    gru = sane_gru, gru.reserved = 1;
    ROW(weir_kernel_create_gru, (good.engine, &gru, NULL, NEW(kernel)), INVALID, "desc->reserved is 1");
}

static void rows_of_packed_weights(void) {
    weir_packed_weights_desc sane = {.struct_size = sizeof sane}, desc;
    weir_packed_weights *weights = NULL, *bytes = NULL;
    weir_tensor *matrix = make_tensor(good.engine, matrix_desc(3, 4));
    weir_tensor *small = make_tensor(good.engine, make_desc(WEIR_S8, 2, 3, 4, 0));
    CHECK_OK(weir_packed_weights_create(good.engine, matrix, NULL, &weights));
    CHECK_OK(weir_packed_weights_create(good.engine, small, &sane, &bytes));

    ROW(weir_packed_weights_create, (NULL, matrix, &sane, NEW(packed_weights)), INVALID, "engine is NULL");
    ROW(weir_packed_weights_create, (good.engine, NULL, &sane, NEW(packed_weights)), INVALID, "tensor is NULL");
    ROW(weir_packed_weights_create, (good.engine, matrix, &sane, NULL), INVALID, "out_weights is NULL");
    ROW(weir_packed_weights_create, (WRONG(stream), matrix, &sane, NEW(packed_weights)), INVALID, "engine: expected an engine");
    ROW(weir_packed_weights_create, (good.engine, WRONG(kernel), &sane, NEW(packed_weights)), INVALID, "tensor: expected a tensor");
    ROW(weir_packed_weights_create, (good.engine, good.tensor, &sane, NEW(packed_weights)),
        INVALID, "tensor: expected f32[?,?], f16[?,?], bf16[?,?] or s8[?,?], got f32[4]");
    desc = sane, desc.struct_size = 3;
    ROW(weir_packed_weights_create, (good.engine, matrix, &desc, NEW(packed_weights)), INVALID, "desc->struct_size is 3");
    desc = sane, desc.flags = 2;
    ROW(weir_packed_weights_create, (good.engine, matrix, &desc, NEW(packed_weights)), INVALID, "desc->flags has unknown bits 0x2");
    ROW(weir_packed_weights_retain, (NULL), INVALID, "weights is NULL");
    ROW(weir_packed_weights_retain, (WRONG(tensor)), INVALID, "weights: expected packed_weights, got a tensor");
    ROW(weir_packed_weights_release, (NULL));
    ROW(weir_packed_weights_release, (WRONG(kernel)));
    ROW(weir_packed_weights_get_size, (NULL, &out.size), INVALID, "weights is NULL");
    ROW(weir_packed_weights_get_size, (weights, NULL), INVALID, "out_bytes is NULL");
    ROW(weir_packed_weights_get_size, (WRONG(event), &out.size), INVALID, "weights: expected packed_weights, got an event");

    weir_matmul_desc matmul = {.struct_size = sizeof matmul, .weights = bytes};
    ROW(weir_kernel_create_matmul, (good.engine, &matmul, NULL, NEW(kernel)), INVALID, "desc->weights was packed from s8, expected f32 or f16 or bf16");
    matmul.weights = WRONG(tensor);
    ROW(weir_kernel_create_matmul, (good.engine, &matmul, NULL, NEW(kernel)), INVALID, "desc->weights: expected packed_weights, got a tensor");
    matmul.weights = weights, matmul.flags = WEIR_MATMUL_TRANSPOSE_B;
    ROW(weir_kernel_create_matmul, (good.engine, &matmul, NULL, NEW(kernel)), INVALID, "desc->weights are packed, and WEIR_MATMUL_TRANSPOSE_B is set");
    matmul.flags = 0, matmul.activation = 19;
    ROW(weir_kernel_create_matmul, (good.engine, &matmul, NULL, NEW(kernel)), INVALID, "desc->activation is 19");
    matmul.activation = 0, matmul.reserved = 1;
    ROW(weir_kernel_create_matmul, (good.engine, &matmul, NULL, NEW(kernel)), INVALID, "desc->reserved is 1");

    weir_matmul_int8_desc good_int8 = {.struct_size = sizeof good_int8}, int8;
    const float big = 1e38f;
    int8 = good_int8, int8.flags = 16;
    ROW(weir_kernel_create_matmul_int8, (good.engine, &int8, NULL, NEW(kernel)), INVALID, "desc->flags has unknown bits 0x10");
    int8 = good_int8, int8.dtype = WEIR_F16;
    ROW(weir_kernel_create_matmul_int8, (good.engine, &int8, NULL, NEW(kernel)), INVALID, "desc->dtype is 5, expected");
    int8 = good_int8, int8.scale = big * big;
    ROW(weir_kernel_create_matmul_int8, (good.engine, &int8, NULL, NEW(kernel)), INVALID, "desc->scale is inf, expected a finite");
    int8 = good_int8, int8.zero_a = 256;
    ROW(weir_kernel_create_matmul_int8, (good.engine, &int8, NULL, NEW(kernel)), RANGE, "desc->zero_a is 256, expected -128 to 255");
    int8 = good_int8, int8.zero_b = -129;
    ROW(weir_kernel_create_matmul_int8, (good.engine, &int8, NULL, NEW(kernel)), RANGE, "desc->zero_b is -129, expected -128 to 127");
    int8 = good_int8, int8.reserved = 1;
    ROW(weir_kernel_create_matmul_int8, (good.engine, &int8, NULL, NEW(kernel)), INVALID, "desc->reserved is 1");
    int8 = good_int8, int8.weights = weights;
    ROW(weir_kernel_create_matmul_int8, (good.engine, &int8, NULL, NEW(kernel)), INVALID, "desc->weights was packed from f32, expected s8");
    int8 = good_int8, int8.weights = bytes, int8.flags = WEIR_MATMUL_INT8_TRANSPOSE_B;
    ROW(weir_kernel_create_matmul_int8, (good.engine, &int8, NULL, NEW(kernel)), INVALID, "desc->weights are packed");
    weir_packed_weights_release(weights);
    weir_packed_weights_release(bytes);
    weir_tensor_release(matrix);
    weir_tensor_release(small);
}

void bad_input_products(void) {
    rows_of_conv();
    rows_of_pooling();
    rows_of_cells();
    rows_of_packed_weights();
}

/* The built-in operators: their names, and whether the descriptor may be NULL. Generated from src/ops; do not edit.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef WEIR_OPERATORS_H
#define WEIR_OPERATORS_H

#define WEIR_OPERATORS(X) \
    X(matmul, 1) \
    X(matmul_int8, 1) \
    X(conv, 1) \
    X(conv_int8, 1) \
    X(conv_transpose, 1) \
    X(pooling, 0) \
    X(resize, 0) \
    X(grid_sample, 1) \
    X(lstm, 1) \
    X(gru, 1) \
    X(lstm_sequence, 1) \
    X(gru_sequence, 1) \
    X(eltwise, 0) \
    X(binary, 0) \
    X(select, 1) \
    X(convert, 0) \
    X(quantize, 0) \
    X(softmax, 1) \
    X(reduce, 0) \
    X(norm, 0) \
    X(lrn, 0) \
    X(cumsum, 1) \
    X(topk, 0) \
    X(nms, 0) \
    X(transpose, 1) \
    X(concat, 0) \
    X(slice, 0) \
    X(pad, 0) \
    X(tile, 0) \
    X(reshape, 0) \
    X(gather, 1) \
    X(gather_elements, 1) \
    X(gather_nd, 1) \
    X(scatter, 1) \
    X(one_hot, 0) \
    X(nonzero, 1) \
    X(shape, 1) \
    X(range, 1)

#endif

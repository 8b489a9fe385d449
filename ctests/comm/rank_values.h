/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * What each rank has in tests of operations, in every type, and its reductions.
 */
#ifndef WEIR_CTESTS_RANK_VALUES_H
#define WEIR_CTESTS_RANK_VALUES_H

#include <weir/comm.h>

/* Small whole numbers: sums are exact in any order, in halves too. */
static inline int value(int of, int64_t i) {
    static const int values[] = {-2, -1, 1, 2, 1};
    return values[((unsigned)i * 7u + (unsigned)of * 3u) % 5u];
}

static inline int reduced(weir_comm_reduction reduction, int size, int64_t i) {
    int result = value(0, i);
    for (int r = 1; r < size; r++) {
        const int v = value(r, i);
        if (reduction == WEIR_COMM_SUM) result += v;
        if (reduction == WEIR_COMM_PRODUCT) result *= v;
        if (reduction == WEIR_COMM_MIN && v < result) result = v;
        if (reduction == WEIR_COMM_MAX && v > result) result = v;
    }
    return result;
}

/* The bits of small whole numbers in 16 bits. */
static inline uint16_t half_bits(weir_dtype dtype, int number) {
    const int bias = dtype == WEIR_F16 ? 15 : 127, fraction = dtype == WEIR_F16 ? 10 : 7;
    unsigned magnitude = (unsigned)(number < 0 ? -number : number), exponent = 0;
    if (magnitude == 0) return 0;
    while (magnitude >> (exponent + 1) != 0) exponent++;
    return (uint16_t)((number < 0 ? 0x8000u : 0) | (((unsigned)bias + exponent) << fraction) |
                      ((magnitude << fraction >> exponent) & ((1u << fraction) - 1)));
}

static inline void put(void *data, weir_dtype dtype, int64_t i, int number) {
    switch (dtype) {
    case WEIR_F32: ((float *)data)[i] = (float)number; break;
    case WEIR_S32: ((int32_t *)data)[i] = number; break;
    case WEIR_S64: ((int64_t *)data)[i] = number; break;
    case WEIR_F16:
    case WEIR_BF16: ((uint16_t *)data)[i] = half_bits(dtype, number); break;
    default: ((int8_t *)data)[i] = (int8_t)number;
    }
}

#endif /* WEIR_CTESTS_RANK_VALUES_H */

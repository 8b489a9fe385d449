// How a number is taken apart into places along dimensions, and these are made offsets in operands.
#pragma once
#include "number.cuh"

#define MAX_RANK 8

// The last dimension first; strides are in elements, 0 where an operand stretches. At least one dimension.
template <int N> struct Walk {
    u32 rank;
    u32 size[MAX_RANK];
    i64 stride[N][MAX_RANK];
};

template <int N> DEVICE void offsets(const Walk<N> &walk, u32 number, i64 *places) {
    for (int n = 0; n < N; n++) places[n] = 0;
    const u32 last = walk.rank - 1;
    for (u32 i = 0; i < last; i++) {
        const u32 rest = number / walk.size[i], at = number - rest * walk.size[i];
        for (int n = 0; n < N; n++) places[n] += (i64)at * walk.stride[n][i];
        number = rest;
    }
    // What is left is the place along the first dimension.
    for (int n = 0; n < N; n++) places[n] += (i64)number * walk.stride[n][last];
}

// Each thread's share of `count` things, one after the other along a grid in x.
#define FOR_EACH(i, count) \
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < (count); i += gridDim.x * blockDim.x)

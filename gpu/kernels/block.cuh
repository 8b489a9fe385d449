// What the threads of a block have, folded into one value that all of them get. The order of folding depends on the number of threads alone.
#pragma once
#include "number.cuh"

#define ALL_LANES 0xffffffffu
#define MOST_WARPS 32

// `fold` is associative but for rounding. Blocks are of whole warps.
template <class T, class Fold> DEVICE T folded(T value, const Fold &fold) {
    __shared__ T of_warps[MOST_WARPS];
    for (u32 step = 16; step > 0; step /= 2) value = fold(value, fold.other(value, step));
    const u32 warps = blockDim.x / 32;
    if (warps == 1) return value;
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = value;
    __syncthreads();
    value = of_warps[0];
    for (u32 i = 1; i < warps; i++) value = fold(value, of_warps[i]);
    // The next call writes there again.
    __syncthreads();
    return value;
}

struct Add {
    __device__ double operator()(double a, double b) const { return a + b; }
    __device__ double other(double x, u32 step) const { return __shfl_xor_sync(ALL_LANES, x, step); }
};

// The greater one; a NaN if one of them is.
struct Greatest {
    __device__ float operator()(float a, float b) const { return b > a || (b != b && a == a) ? b : a; }
    __device__ float other(float x, u32 step) const { return __shfl_xor_sync(ALL_LANES, x, step); }
};

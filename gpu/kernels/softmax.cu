// Softmax along an axis, exp(x - max) / sum, and its logarithm: the formulas of kernel/vector/softmax.rs, with sums in f64.
#include "block.cuh"
#include "storage.cuh"
#include "walk.cuh"
#include "wide.cuh"

// Blocks of `len` rows of `inner` elements.
struct Softmax {
    const void *x;
    void *y;
    u32 dtype, log, outer, len, inner, reserved;
};

// exp(x - max) * 2^64 for x <= max, with the part of the difference that its rounding lost.
DEVICE float exp_of_difference(float x, float max) {
    const float bias = ROUND + 64.0f + 127.0f;
    const float difference = x - max, shifted = difference - x;
    const float lost = (x - (difference - shifted)) - (max + shifted);
    const float high = greater_of(-105.0f, difference), low = difference > -105.0f ? lost : 0.0f;
    const float rounded = fmaf(high, 1.44269504f, bias), exponent = rounded - bias;
    const float r = fmaf(exponent, -LN2_LOW, fmaf(exponent, -LN2_HIGH, high)) + low;
    float tail = 0.0013814318f;
    tail = fmaf(tail, r, 0.008368852f);
    tail = fmaf(tail, r, 0.0416684f);
    tail = fmaf(tail, r, 0.1666652f);
    tail = fmaf(tail, r, 0.49999994f);
    const float growth = fmaf(r * r, tail, r), power = low_bits_as_exponent(rounded);
    return fmaf(growth, power, power);
}

// What the elements of a row with this maximum and sum are multiplied by, or reduced by.
DEVICE float last_step(const Softmax &p, float max, double sum) {
    if (!(absolute(max) < POSITIVE_INFINITY) || sum != sum) return NOT_A_NUMBER;
    return p.log ? (float)wide_log(sum * 5.421010862427522e-20) : (float)(1.0 / sum);
}

DEVICE float result(const Softmax &p, float x, float max, float last) {
    return p.log ? x - max - last : exp_of_difference(x, max) * last;
}

// A block for each row.
extern "C" __global__ void __launch_bounds__(1024) weir_softmax_rows(const __grid_constant__ Softmax p) {
    for (u32 number = blockIdx.x; number < p.outer * p.inner; number += gridDim.x) {
        const u32 block = number / p.inner;
        const i64 first = (i64)block * p.len * p.inner + (number - block * p.inner);
        float max = -POSITIVE_INFINITY;
        for (u32 i = threadIdx.x; i < p.len; i += blockDim.x) {
            max = Greatest()(max, load_float(p.x, p.dtype, first + (i64)i * p.inner));
        }
        max = folded(max, Greatest());
        double sum = 0.0;
        for (u32 i = threadIdx.x; i < p.len; i += blockDim.x) {
            sum += (double)exp_of_difference(load_float(p.x, p.dtype, first + (i64)i * p.inner), max);
        }
        const float last = last_step(p, max, folded(sum, Add()));
        for (u32 i = threadIdx.x; i < p.len; i += blockDim.x) {
            const i64 at = first + (i64)i * p.inner;
            store_float(p.y, p.dtype, at, result(p, load_float(p.x, p.dtype, at), max, last));
        }
    }
}

// A thread for each row, where neighbouring rows lie side by side, or are short.
extern "C" __global__ void __launch_bounds__(256) weir_softmax_columns(const __grid_constant__ Softmax p) {
    FOR_EACH(number, p.outer * p.inner) {
        const u32 block = number / p.inner;
        const i64 first = (i64)block * p.len * p.inner + (number - block * p.inner);
        float max = -POSITIVE_INFINITY;
        for (u32 i = 0; i < p.len; i++) max = Greatest()(max, load_float(p.x, p.dtype, first + (i64)i * p.inner));
        double sum = 0.0;
        for (u32 i = 0; i < p.len; i++) {
            sum += (double)exp_of_difference(load_float(p.x, p.dtype, first + (i64)i * p.inner), max);
        }
        const float last = last_step(p, max, sum);
        for (u32 i = 0; i < p.len; i++) {
            const i64 at = first + (i64)i * p.inner;
            store_float(p.y, p.dtype, at, result(p, load_float(p.x, p.dtype, at), max, last));
        }
    }
}

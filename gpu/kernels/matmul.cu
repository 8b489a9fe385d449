// Matrix products of floats and halves, then the bias, the addend and the activation.
#include "storage.cuh"
#include "tile.cuh"
#include "walk.cuh"

struct Matmul {
    const void *a, *b, *bias, *addend;
    void *c;
    u32 m, n, k, batch;
    // The type of C, bias and addend.
    u32 to, activation;
    // Elements to the next row of A, along K in A, along K in B, and to the next column of B.
    i64 a_row, a_k, b_k, b_column;
    Walk<2> walk;
};

template <int FROM> DEVICE float load_as(const void *from, i64 at) {
    if (FROM == F32) return ((const float *)from)[at];
    const u16 half = ((const u16 *)from)[at];
    return FROM == F16 ? widened_half(half) : widened_bf16(half);
}

template <int FROM> struct Operands {
    const Matmul &p;
    i64 first[2];
    u32 number;

    __device__ float a(u32 row, u32 k) const { return load_as<FROM>(p.a, first[0] + row * p.a_row + k * p.a_k); }
    __device__ float b(u32 k, u32 column) const { return load_as<FROM>(p.b, first[1] + k * p.b_k + column * p.b_column); }
    __device__ bool a_along_k() const { return p.a_k == 1; }
    __device__ bool b_along_k() const { return p.b_column != 1; }
    __device__ void finish(u32 row, u32 column, float x) const {
        const i64 place = ((i64)number * p.m + row) * p.n + column;
        if (p.bias) x += load_float(p.bias, p.to, column);
        if (p.addend) x += load_float(p.addend, p.to, place);
        store_float(p.c, p.to, place, activated(p.activation, x));
    }
};

template <int EACH, int DEPTH, int FROM> DEVICE void product(const Matmul &p) {
    constexpr u32 SIDE = 16 * EACH;
    const u32 tiles = (p.n + SIDE - 1) / SIDE;
    Operands<FROM> operands = {p, {0, 0}, 0};
    for (u32 number = blockIdx.y; number < p.batch; number += gridDim.y) {
        operands.number = number;
        offsets(p.walk, number, operands.first);
        tile<EACH, DEPTH>(operands, p.m, p.n, p.k, blockIdx.x / tiles * SIDE, blockIdx.x % tiles * SIDE);
    }
}

// Registers are for two blocks at a time on a multiprocessor, so that one computes while the other waits.
#define PRODUCT(name, each, depth, from) \
    extern "C" __global__ void __launch_bounds__(256, 2) name(const __grid_constant__ Matmul p) { product<each, depth, from>(p); }

// Small tiles are for products that are too small to keep a device busy: what they wait for is memory, so they ask for much at a time.
PRODUCT(weir_matmul_16_f32, 1, 64, F32)
PRODUCT(weir_matmul_16_f16, 1, 64, F16)
PRODUCT(weir_matmul_16_bf16, 1, 64, BF16)
PRODUCT(weir_matmul_64_f32, 4, 16, F32)
PRODUCT(weir_matmul_64_f16, 4, 16, F16)
PRODUCT(weir_matmul_64_bf16, 4, 16, BF16)
PRODUCT(weir_matmul_128_f32, 8, 8, F32)

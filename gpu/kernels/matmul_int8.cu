// Products of bytes: exact sums, then bias, scale and zero point.
#include "storage.cuh"

struct MatmulInt8 {
    const void *a;
    const signed char *b;
    const int *bias;
    const float *scales;
    void *c;
    u32 m, n, k, signed_a;
    // The type of C; and whether exact sums only saturate, as neither a scale nor two summands follow.
    u32 to, exact;
    int zero_a, zero_b, zero_c;
    float scale;
    i64 a_row, a_k, b_k, b_column;
};

DEVICE int saturated(i64 x) { return x > 2147483647ll ? 2147483647 : x < -2147483648ll ? (int)-2147483648ll : (int)x; }

// Rounded, with the zero point, saturated. A value that is NaN gives the least one.
DEVICE int whole(double value, double zero, double least, double most) {
    value = value > -1e12 ? value : -1e12;
    value = value < 1e12 ? value : 1e12;
    value = rint(value) + zero;
    value = value > least ? value : least;
    value = value < most ? value : most;
    return __double2int_rn(value);
}

// Tiles of 16 by 16. Sums of 32 bits are exact up to K = 32768; above that they go into 64 bits that often.
extern "C" __global__ void __launch_bounds__(256) weir_matmul_int8(const __grid_constant__ MatmulInt8 p) {
    __shared__ int a_tile[16][17], b_tile[16][17];
    const u32 across = threadIdx.x % 16, down = threadIdx.x / 16, tiles = (p.n + 15) / 16;
    const u32 first_row = blockIdx.x / tiles * 16, first_column = blockIdx.x % tiles * 16;
    const u32 row = first_row + down, column = first_column + across;
    i64 total = 0;
    int sum = 0;
    for (u32 begin = 0; begin < p.k; begin += 16) {
        // Neighbours in memory go to neighbouring threads.
        const u32 i = p.a_k == 1 ? down : across, l = p.a_k == 1 ? across : down;
        int x = 0;
        if (first_row + i < p.m && begin + l < p.k) {
            const i64 at = (first_row + i) * p.a_row + (begin + l) * p.a_k;
            x = (p.signed_a ? (int)((const signed char *)p.a)[at] : (int)((const u8 *)p.a)[at]) - p.zero_a;
        }
        a_tile[l][i] = x;
        const u32 j = p.b_column == 1 ? across : down, o = p.b_column == 1 ? down : across;
        x = 0;
        if (first_column + j < p.n && begin + o < p.k) {
            x = (int)p.b[(begin + o) * p.b_k + (first_column + j) * p.b_column] - p.zero_b;
        }
        b_tile[o][j] = x;
        __syncthreads();
#pragma unroll
        for (u32 k = 0; k < 16; k++) sum += a_tile[k][down] * b_tile[k][across];
        __syncthreads();
        if (begin % 32768 == 32752) {
            total += sum;
            sum = 0;
        }
    }
    total += sum;
    if (row >= p.m || column >= p.n) return;
    const i64 at = (i64)row * p.n + column;
    const int bias = p.bias ? p.bias[column] : 0;
    if (p.exact) {
        ((int *)p.c)[at] = saturated(total + bias + p.zero_c);
        return;
    }
    double x = (double)saturated(total);
    if (p.bias) x += (double)bias;
    x *= p.scales ? (double)p.scale * (double)p.scales[column] : (double)p.scale;
    const double zero = (double)p.zero_c;
    switch (p.to) {
    case F32: ((float *)p.c)[at] = (float)(x + zero); break;
    case S8: ((signed char *)p.c)[at] = (signed char)whole(x, zero, -128.0, 127.0); break;
    case U8: ((u8 *)p.c)[at] = (u8)whole(x, zero, 0.0, 255.0); break;
    default: ((int *)p.c)[at] = whole(x, zero, -2147483648.0, 2147483647.0); break;
    }
}

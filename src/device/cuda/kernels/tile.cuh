// Products in tiles: 256 threads compute 16 EACH by 16 EACH elements, each of them EACH by EACH, and read DEPTH of K at a time into shared memory.
//
// An element is one chain of fused products along K, in the order of K, whatever the tile: the bits of the processor's products of more than
// one column. A Source has
//     float a(u32 row, u32 k), float b(u32 k, u32 column)   what is multiplied, inside of m, n and k
//     bool a_along_k(), b_along_k()                         whether neighbours in memory are neighbours along K
//     void finish(u32 row, u32 column, float x)             takes a sum
#pragma once
#include "number.cuh"

template <int EACH> DEVICE void multiply(const float *a_line, const float *b_line, float (&sums)[EACH][EACH]) {
    float a[EACH], b[EACH];
#pragma unroll
    for (int i = 0; i < EACH; i++) a[i] = a_line[16 * i];
#pragma unroll
    for (int j = 0; j < EACH; j++) b[j] = b_line[16 * j];
#pragma unroll
    for (int i = 0; i < EACH; i++)
#pragma unroll
        for (int j = 0; j < EACH; j++) sums[i][j] = fmaf(a[i], b[j], sums[i][j]);
}

template <int EACH, int DEPTH, class Source>
DEVICE void tile(const Source &source, u32 m, u32 n, u32 k, u32 row, u32 column) {
    constexpr u32 SIDE = 16 * EACH;
    __shared__ float a_tile[DEPTH][SIDE + 1], b_tile[DEPTH][SIDE + 1];
    const u32 thread = threadIdx.x, across = thread % 16, down = thread / 16;
    const bool a_along_k = source.a_along_k(), b_along_k = source.b_along_k();
    float sums[EACH][EACH];
#pragma unroll
    for (int i = 0; i < EACH; i++)
#pragma unroll
        for (int j = 0; j < EACH; j++) sums[i][j] = 0.0f;
    for (u32 begin = 0; begin < k; begin += DEPTH) {
        // Neighbours in memory go to neighbouring threads.
#pragma unroll
        for (u32 at = thread; at < SIDE * DEPTH; at += 256) {
            const u32 i = a_along_k ? at / DEPTH : at % SIDE, l = a_along_k ? at % DEPTH : at / SIDE;
            a_tile[l][i] = row + i < m && begin + l < k ? source.a(row + i, begin + l) : 0.0f;
        }
#pragma unroll
        for (u32 at = thread; at < SIDE * DEPTH; at += 256) {
            const u32 j = b_along_k ? at / DEPTH : at % SIDE, l = b_along_k ? at % DEPTH : at / SIDE;
            b_tile[l][j] = column + j < n && begin + l < k ? source.b(begin + l, column + j) : 0.0f;
        }
        __syncthreads();
        if (k - begin >= DEPTH) {
#pragma unroll
            for (u32 l = 0; l < DEPTH; l++) multiply<EACH>(&a_tile[l][down], &b_tile[l][across], sums);
        } else {
#pragma unroll 1
            for (u32 l = 0; l < k - begin; l++) multiply<EACH>(&a_tile[l][down], &b_tile[l][across], sums);
        }
        __syncthreads();
    }
    // Sums are shifted to the first register, so that what follows them is there once and not for each.
#pragma unroll 1
    for (u32 i = 0; i < EACH; i++) {
#pragma unroll 1
        for (u32 j = 0; j < EACH; j++) {
            const u32 r = row + down + 16 * i, c = column + across + 16 * j;
            if (r < m && c < n) source.finish(r, c, sums[0][0]);
#pragma unroll
            for (int next = 1; next < EACH; next++) sums[0][next - 1] = sums[0][next];
        }
#pragma unroll
        for (int next = 1; next < EACH; next++)
#pragma unroll
            for (int j = 0; j < EACH; j++) sums[next - 1][j] = sums[next][j];
    }
}

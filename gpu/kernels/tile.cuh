// Products in tiles: 256 threads compute 16 EACH by 16 EACH elements, each of them EACH by EACH, and have DEPTH of K at a time in shared memory.
//
// An element is one chain of fused products along K, in the order of K, whatever the tile: the bits of the processor's products of more than
// one column. A Source has
//     float a(u32 row, u32 k), float b(u32 k, u32 column)   what is multiplied, inside of m, n and k
//     bool a_along_k(), b_along_k()                         whether neighbours in memory are neighbours along K
//     void finish(u32 row, u32 column, float x)             takes a sum
#pragma once
#include "number.cuh"

// The i-th of the rows, or columns, of a thread: by fours, which it reads at once while its neighbours read the next fours.
template <int EACH> DEVICE u32 place_of(u32 lane, u32 i) { return EACH % 4 == 0 ? i / 4 * 64 + lane * 4 + i % 4 : lane + 16 * i; }

template <int EACH> DEVICE void line_of(const float *line, u32 lane, float (&values)[EACH]) {
    if (EACH % 4 == 0) {
#pragma unroll
        for (int i = 0; i < EACH; i += 4) {
            const float4 four = *(const float4 *)&line[place_of<EACH>(lane, i)];
            values[i] = four.x, values[i + 1] = four.y, values[i + 2] = four.z, values[i + 3] = four.w;
        }
    } else {
#pragma unroll
        for (int i = 0; i < EACH; i++) values[i] = line[place_of<EACH>(lane, i)];
    }
}

template <int EACH> DEVICE void multiply(const float *a_line, const float *b_line, u32 down, u32 across, float (&sums)[EACH][EACH]) {
    float a[EACH], b[EACH];
    line_of<EACH>(a_line, down, a);
    line_of<EACH>(b_line, across, b);
#pragma unroll
    for (int i = 0; i < EACH; i++)
#pragma unroll
        for (int j = 0; j < EACH; j++) sums[i][j] = fmaf(a[i], b[j], sums[i][j]);
}

template <int EACH, int DEPTH, class Source>
DEVICE void tile(const Source &source, u32 m, u32 n, u32 k, u32 row, u32 column) {
    // Rows do not all begin in the same banks; what is read by fours begins at multiples of 16 bytes.
    constexpr u32 SIDE = 16 * EACH, SHARE = SIDE * DEPTH / 256, LINE = SIDE + (EACH % 4 == 0 ? 4 : 1);
    __shared__ __align__(16) float a_tile[DEPTH][LINE], b_tile[DEPTH][LINE];
    const u32 thread = threadIdx.x, across = thread % 16, down = thread / 16;
    const bool a_along_k = source.a_along_k(), b_along_k = source.b_along_k();
    float sums[EACH][EACH], a_next[SHARE], b_next[SHARE];
#pragma unroll
    for (int i = 0; i < EACH; i++)
#pragma unroll
        for (int j = 0; j < EACH; j++) sums[i][j] = 0.0f;
    // A thread's share of what comes next, on its way while the sums go on. Neighbours in memory go to neighbouring threads.
    auto fetch = [&](u32 begin) {
#pragma unroll
        for (u32 s = 0; s < SHARE; s++) {
            const u32 at = thread + 256 * s;
            const u32 i = a_along_k ? at / DEPTH : at % SIDE, l = a_along_k ? at % DEPTH : at / SIDE;
            a_next[s] = row + i < m && begin + l < k ? source.a(row + i, begin + l) : 0.0f;
        }
#pragma unroll
        for (u32 s = 0; s < SHARE; s++) {
            const u32 at = thread + 256 * s;
            const u32 j = b_along_k ? at / DEPTH : at % SIDE, l = b_along_k ? at % DEPTH : at / SIDE;
            b_next[s] = column + j < n && begin + l < k ? source.b(begin + l, column + j) : 0.0f;
        }
    };
    if (k > 0) fetch(0);
    for (u32 begin = 0; begin < k; begin += DEPTH) {
#pragma unroll
        for (u32 s = 0; s < SHARE; s++) {
            const u32 at = thread + 256 * s;
            a_tile[a_along_k ? at % DEPTH : at / SIDE][a_along_k ? at / DEPTH : at % SIDE] = a_next[s];
            b_tile[b_along_k ? at % DEPTH : at / SIDE][b_along_k ? at / DEPTH : at % SIDE] = b_next[s];
        }
        __syncthreads();
        if (k - begin > DEPTH) fetch(begin + DEPTH);
        if (k - begin >= DEPTH) {
#pragma unroll
            for (u32 l = 0; l < DEPTH; l++) multiply<EACH>(a_tile[l], b_tile[l], down, across, sums);
        } else {
#pragma unroll 1
            for (u32 l = 0; l < k - begin; l++) multiply<EACH>(a_tile[l], b_tile[l], down, across, sums);
        }
        __syncthreads();
    }
    // Sums are shifted to the first register, so that what follows them is there once and not for each.
#pragma unroll 1
    for (u32 i = 0; i < EACH; i++) {
#pragma unroll 1
        for (u32 j = 0; j < EACH; j++) {
            const u32 r = row + place_of<EACH>(down, i), c = column + place_of<EACH>(across, j);
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

// Convolutions: products of the filters with the patches of their windows, which no memory ever holds.
#include "tile.cuh"
#include "window.cuh"

struct Conv {
    const float *x, *weights, *bias;
    float *y;
    // Channels and filters of a group.
    u32 images, groups, channels, filters, activation, reserved;
    Axis rows, columns;
};

// The operands of a group: filters are rows, windows of all images are columns, and K goes over channels, then taps.
struct Patches {
    const Conv &p;
    u32 group, taps, windows;

    __device__ float a(u32 filter, u32 k) const {
        return p.weights[((i64)group * p.filters + filter) * ((i64)p.channels * taps) + k];
    }
    __device__ float b(u32 k, u32 window) const {
        const u32 image = window / windows, place = window - image * windows;
        const u32 down = place / p.columns.output, across = place - down * p.columns.output;
        const u32 channel = k / taps, tap = k - channel * taps;
        const u32 row_tap = tap / p.columns.taps, column_tap = tap - row_tap * p.columns.taps;
        const i64 i = element_of(p.rows, down, row_tap), j = element_of(p.columns, across, column_tap);
        if (i < 0 || j < 0) return 0.0f;
        const i64 plane = ((i64)image * p.groups + group) * p.channels + channel;
        return p.x[(plane * p.rows.input + i) * p.columns.input + j];
    }
    __device__ bool a_along_k() const { return true; }
    __device__ bool b_along_k() const { return false; }
    __device__ void finish(u32 filter, u32 window, float x) const {
        const u32 image = window / windows, place = window - image * windows;
        const i64 plane = ((i64)image * p.groups + group) * p.filters + filter;
        if (p.bias) x += p.bias[(i64)group * p.filters + filter];
        p.y[plane * windows + place] = activated(p.activation, x);
    }
};

DEVICE Patches patches_of(const Conv &p, u32 group) {
    return Patches{p, group, p.rows.taps * p.columns.taps, p.rows.output * p.columns.output};
}

template <int EACH, int DEPTH> DEVICE void tiles(const Conv &p) {
    constexpr u32 SIDE = 16 * EACH;
    for (u32 group = blockIdx.y; group < p.groups; group += gridDim.y) {
        const Patches patches = patches_of(p, group);
        const u32 n = p.images * patches.windows, across = (n + SIDE - 1) / SIDE;
        const u32 row = blockIdx.x / across * SIDE, column = blockIdx.x % across * SIDE;
        tile<EACH, DEPTH>(patches, p.filters, n, p.channels * patches.taps, row, column);
    }
}

extern "C" __global__ void __launch_bounds__(256) weir_conv_16(const __grid_constant__ Conv p) { tiles<1, 32>(p); }
extern "C" __global__ void __launch_bounds__(256) weir_conv_64(const __grid_constant__ Conv p) { tiles<4, 16>(p); }

// For few filters of a group: a thread for each element, along K in its order.
extern "C" __global__ void __launch_bounds__(128) weir_conv_direct(const __grid_constant__ Conv p) {
    const u32 n = p.images * p.rows.output * p.columns.output, window = blockIdx.x * 128 + threadIdx.x;
    if (window >= n) return;
    for (u32 plane = blockIdx.y; plane < p.groups * p.filters; plane += gridDim.y) {
        const u32 group = plane / p.filters, filter = plane - group * p.filters;
        const Patches patches = patches_of(p, group);
        const u32 depth = p.channels * patches.taps;
        float sum = 0.0f;
        for (u32 k = 0; k < depth; k++) sum = fmaf(patches.a(filter, k), patches.b(k, window), sum);
        patches.finish(filter, window, sum);
    }
}

// For few windows: a warp for each element, whose lanes lie along K; the weights are read once, side by side.
extern "C" __global__ void __launch_bounds__(128) weir_conv_dot(const __grid_constant__ Conv p) {
    const u32 lane = threadIdx.x % 32, plane = blockIdx.x * 4 + threadIdx.x / 32;
    if (plane >= p.groups * p.filters) return;
    const u32 group = plane / p.filters, filter = plane - group * p.filters;
    const Patches patches = patches_of(p, group);
    const u32 n = p.images * patches.windows, depth = p.channels * patches.taps;
    for (u32 window = blockIdx.y; window < n; window += gridDim.y) {
        float sum = 0.0f;
        for (u32 k = lane; k < depth; k += 32) sum = fmaf(patches.a(filter, k), patches.b(k, window), sum);
        for (u32 step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
        if (lane == 0) patches.finish(filter, window, sum);
    }
}

// One step of a recurrent cell. A warp has a hidden unit of a row of the batch: its lanes lie along K, as the weights do.
#include "number.cuh"

struct Cell {
    const float *x, *h, *c, *w, *r, *bias_w, *bias_r;
    float *new_h, *new_c;
    u32 rows, inputs, hidden, reserved;
    // The block of each gate. LSTM: input, output, forget, cell. GRU: update, reset, new.
    u32 gate[4];
};

DEVICE float dot(const float *a, const float *b, u32 count, u32 lane) {
    float sum = 0.0f;
    for (u32 k = lane; k < count; k += 32) sum = fmaf(a[k], b[k], sum);
    for (u32 step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    return sum;
}

// x W of a gate's unit, h R of it, and the biases.
struct Unit {
    const Cell &p;
    u32 row, unit, lane;

    __device__ u32 line(u32 gate) const { return p.gate[gate] * p.hidden + unit; }
    __device__ float of_x(u32 gate) const {
        return dot(p.x + (i64)row * p.inputs, p.w + (i64)line(gate) * p.inputs, p.inputs, lane);
    }
    __device__ float of(const float *h, u32 gate) const {
        return dot(h, p.r + (i64)line(gate) * p.hidden, p.hidden, lane);
    }
    __device__ float of_h(u32 gate) const { return of(p.h + (i64)row * p.hidden, gate); }
    __device__ float with_w(u32 gate, float x) const { return p.bias_w ? x + p.bias_w[line(gate)] : x; }
    __device__ float with_r(u32 gate, float x) const { return p.bias_r ? x + p.bias_r[line(gate)] : x; }
    __device__ float gate(u32 gate) const {
        const float x = of_x(gate);
        return with_r(gate, with_w(gate, x + of_h(gate)));
    }
};

extern "C" __global__ void __launch_bounds__(128) weir_lstm(const __grid_constant__ Cell p) {
    const u32 number = blockIdx.x * 4 + threadIdx.x / 32;
    if (number >= p.rows * p.hidden) return;
    const Unit unit = {p, number / p.hidden, number % p.hidden, threadIdx.x % 32};
    const float input = sigmoid_of(unit.gate(0)), output = sigmoid_of(unit.gate(1));
    const float forget = sigmoid_of(unit.gate(2)), cell = tanh_of(unit.gate(3));
    const float c = forget * p.c[number] + input * cell;
    if (unit.lane == 0) {
        p.new_c[number] = c;
        p.new_h[number] = tanh_of(c) * output;
    }
}

extern "C" __global__ void __launch_bounds__(128) weir_gru_linear(const __grid_constant__ Cell p) {
    const u32 number = blockIdx.x * 4 + threadIdx.x / 32;
    if (number >= p.rows * p.hidden) return;
    const Unit unit = {p, number / p.hidden, number % p.hidden, threadIdx.x % 32};
    const float update = sigmoid_of(unit.gate(0)), reset = sigmoid_of(unit.gate(1));
    const float of_x = unit.with_w(2, unit.of_x(2)), of_h = unit.with_r(2, unit.of_h(2));
    const float fresh = tanh_of(of_x + reset * of_h);
    if (unit.lane == 0) p.new_h[number] = (1.0f - update) * fresh + update * p.h[number];
}

// The reset gates of all units are wanted before any unit's product with R, so a block has a whole row.
extern "C" __global__ void __launch_bounds__(1024) weir_gru(const __grid_constant__ Cell p) {
    extern __shared__ float reset_h[];
    const u32 row = blockIdx.x, warps = blockDim.x / 32;
    const float *h = p.h + (i64)row * p.hidden;
    for (u32 number = threadIdx.x / 32; number < p.hidden; number += warps) {
        const Unit unit = {p, row, number, threadIdx.x % 32};
        const float reset = sigmoid_of(unit.gate(1));
        if (unit.lane == 0) reset_h[number] = reset * h[number];
    }
    __syncthreads();
    for (u32 number = threadIdx.x / 32; number < p.hidden; number += warps) {
        const Unit unit = {p, row, number, threadIdx.x % 32};
        const float update = sigmoid_of(unit.gate(0)), of_x = unit.of_x(2);
        const float fresh = tanh_of(unit.with_r(2, unit.with_w(2, of_x + unit.of(reset_h, 2))));
        if (unit.lane == 0) p.new_h[(i64)row * p.hidden + number] = (1.0f - update) * fresh + update * h[number];
    }
}

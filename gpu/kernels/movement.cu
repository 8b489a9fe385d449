// Elements in other places: parts, other orders, margins. Nothing is computed.
#include "walk.cuh"

struct Copy {
    const void *x;
    void *y;
    u32 count, reserved;
    // Of x, and of y.
    Walk<2> walk;
};

template <class T> DEVICE void copy(const Copy &p) {
    FOR_EACH(i, p.count) {
        i64 at[2];
        offsets(p.walk, i, at);
        ((T *)p.y)[at[1]] = ((const T *)p.x)[at[0]];
    }
}

extern "C" __global__ void __launch_bounds__(256) weir_copy_1(const __grid_constant__ Copy p) { copy<u8>(p); }
extern "C" __global__ void __launch_bounds__(256) weir_copy_2(const __grid_constant__ Copy p) { copy<u16>(p); }
extern "C" __global__ void __launch_bounds__(256) weir_copy_4(const __grid_constant__ Copy p) { copy<u32>(p); }
extern "C" __global__ void __launch_bounds__(256) weir_copy_8(const __grid_constant__ Copy p) { copy<u64>(p); }
extern "C" __global__ void __launch_bounds__(256) weir_copy_16(const __grid_constant__ Copy p) { copy<uint4>(p); }

// Where neighbours of x are not neighbours in y: squares of 32 by 32 go through shared memory, so that both sides are read and written along rows.
struct Turn {
    const void *x;
    void *y;
    // Sizes of the dimension whose elements are neighbours in y, and of that where they are in x.
    u32 of_y, of_x;
    // Elements of x from one to the next of the first, and elements of y from one to the next of the second.
    i64 x_step, y_step;
    u32 batch, reserved;
    Walk<2> walk;
};

template <class T> DEVICE void turn(const Turn &p) {
    __shared__ T square[32][33];
    const u32 lane = threadIdx.x % 32, line = threadIdx.x / 32, across = (p.of_y + 31) / 32;
    const u32 y_first = blockIdx.x % across * 32, x_first = blockIdx.x / across * 32;
    for (u32 number = blockIdx.y; number < p.batch; number += gridDim.y) {
        i64 at[2];
        offsets(p.walk, number, at);
        for (u32 i = line; i < 32; i += 8) {
            if (y_first + i < p.of_y && x_first + lane < p.of_x) {
                square[i][lane] = ((const T *)p.x)[at[0] + (y_first + i) * p.x_step + x_first + lane];
            }
        }
        __syncthreads();
        for (u32 i = line; i < 32; i += 8) {
            if (y_first + lane < p.of_y && x_first + i < p.of_x) {
                ((T *)p.y)[at[1] + (x_first + i) * p.y_step + y_first + lane] = square[lane][i];
            }
        }
        __syncthreads();
    }
}

extern "C" __global__ void __launch_bounds__(256) weir_turn_1(const __grid_constant__ Turn p) { turn<u8>(p); }
extern "C" __global__ void __launch_bounds__(256) weir_turn_2(const __grid_constant__ Turn p) { turn<u16>(p); }
extern "C" __global__ void __launch_bounds__(256) weir_turn_4(const __grid_constant__ Turn p) { turn<u32>(p); }
extern "C" __global__ void __launch_bounds__(256) weir_turn_8(const __grid_constant__ Turn p) { turn<u64>(p); }

#define CONSTANT 0
#define REFLECT 1

// A margin, dimension by dimension, the last one first. Elements of 8 bytes have none of a value.
struct Pad {
    const void *x;
    void *y;
    u32 count, mode, rank, reserved;
    u64 value;
    u32 input[MAX_RANK], output[MAX_RANK], before[MAX_RANK];
};

template <class T> DEVICE void pad(const Pad &p) {
    FOR_EACH(i, p.count) {
        u32 number = i;
        i64 at = 0, step = 1;
        bool margin = false;
        for (u32 axis = 0; axis < p.rank; axis++) {
            const u32 rest = number / p.output[axis];
            i64 place = (i64)(number - rest * p.output[axis]) - p.before[axis];
            const i64 size = p.input[axis];
            if (place < 0) {
                margin = margin || p.mode == CONSTANT;
                place = p.mode == REFLECT ? -place : 0;
            } else if (place >= size) {
                margin = margin || p.mode == CONSTANT;
                place = p.mode == REFLECT ? 2 * (size - 1) - place : size - 1;
            }
            at += place * step;
            step *= size;
            number = rest;
        }
        ((T *)p.y)[i] = margin ? (T)p.value : ((const T *)p.x)[at];
    }
}

extern "C" __global__ void __launch_bounds__(256) weir_pad_1(const __grid_constant__ Pad p) { pad<u8>(p); }
extern "C" __global__ void __launch_bounds__(256) weir_pad_2(const __grid_constant__ Pad p) { pad<u16>(p); }
extern "C" __global__ void __launch_bounds__(256) weir_pad_4(const __grid_constant__ Pad p) { pad<u32>(p); }
extern "C" __global__ void __launch_bounds__(256) weir_pad_8(const __grid_constant__ Pad p) { pad<u64>(p); }

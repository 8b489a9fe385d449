// Reductions of any dimensions. Sums and products are kept in f64, those of integers in 64 bits.
#include "block.cuh"
#include "storage.cuh"
#include "walk.cuh"
#include "whole.cuh"

struct Reduce {
    const void *x;
    void *y;
    // Of weir_reduce_op_value; `squares` of a norm whose power is 2; places have 64 bits if they are `wide`.
    u32 dtype, op, squares, outputs, reduced, wide;
    double eps;
    // From an output to its first number, and from there to each of its numbers.
    Walk<1> kept, runs;
};

#define SUM 1
#define MEAN 2
#define LEAST 3
#define MOST 4
#define PRODUCT 5
#define NORM_MAX 6
#define NORM_SUM 7
#define NORM_POWER_MAX 8
#define NORM_POWER_SUM 9

DEVICE double neutral(u32 op) {
    if (op == LEAST) return (double)POSITIVE_INFINITY;
    if (op == MOST) return (double)-POSITIVE_INFINITY;
    return op == PRODUCT ? 1.0 : 0.0;
}

struct Fold {
    u32 op;

    __device__ double operator()(double a, double b) const {
        if (op == LEAST) return b < a || (b != b && a == a) ? b : a;
        if (op == MOST) return b > a || (b != b && a == a) ? b : a;
        return op == PRODUCT ? a * b : a + b;
    }
    __device__ double other(double x, u32 step) const { return __shfl_xor_sync(ALL_LANES, x, step); }
};

// A number as it is folded.
DEVICE double term(const Reduce &p, float x) {
    if (p.op < NORM_MAX) return (double)x;
    return p.squares ? (double)x * (double)x : (double)absolute(x);
}

DEVICE void finish(const Reduce &p, u32 number, double total) {
    if (p.op == MEAN) total /= (double)p.reduced;
    if (p.op == NORM_MAX || p.op == NORM_POWER_MAX) total = total < p.eps ? p.eps : total;
    if (p.op == NORM_SUM || p.op == NORM_POWER_SUM) total += p.eps;
    if (p.squares && (p.op == NORM_MAX || p.op == NORM_SUM)) total = sqrt(total);
    store_float(p.y, p.dtype, number, (float)total);
}

DEVICE float number_of(const Reduce &p, i64 first, u32 place) {
    i64 at;
    offsets(p.runs, place, &at);
    return load_float(p.x, p.dtype, first + at);
}

// A block for each output.
extern "C" __global__ void __launch_bounds__(1024) weir_reduce_rows(const __grid_constant__ Reduce p) {
    const Fold fold = {p.op};
    for (u32 number = blockIdx.x; number < p.outputs; number += gridDim.x) {
        i64 first;
        offsets(p.kept, number, &first);
        double total = neutral(p.op);
        for (u32 i = threadIdx.x; i < p.reduced; i += blockDim.x) total = fold(total, term(p, number_of(p, first, i)));
        total = folded(total, fold);
        if (threadIdx.x == 0) finish(p, number, total);
    }
}

// A thread for each output, where neighbouring outputs have neighbouring numbers, or few.
extern "C" __global__ void __launch_bounds__(256) weir_reduce_columns(const __grid_constant__ Reduce p) {
    const Fold fold = {p.op};
    FOR_EACH(number, p.outputs) {
        i64 first;
        offsets(p.kept, number, &first);
        double total = neutral(p.op);
        for (u32 i = 0; i < p.reduced; i++) total = fold(total, term(p, number_of(p, first, i)));
        finish(p, number, total);
    }
}

// A number and its place among those that are reduced; no place is the place of none.
struct Best {
    float value;
    u32 place;
};

#define NOWHERE 0xffffffffu

DEVICE void put_place(const Reduce &p, u32 number, u32 place) {
    if (p.wide) {
        ((i64 *)p.y)[number] = place;
    } else {
        ((u32 *)p.y)[number] = place;
    }
}

// The first of equals, and the first NaN if there is one.
struct Choose {
    bool least;

    __device__ bool better(float x, float than) const {
        return (least ? x < than : x > than) || (x != x && than == than);
    }
    __device__ Best operator()(Best a, Best b) const {
        if (a.place == NOWHERE || b.place == NOWHERE) return a.place == NOWHERE ? b : a;
        if (better(b.value, a.value)) return b;
        if (better(a.value, b.value)) return a;
        return b.place < a.place ? b : a;
    }
    __device__ Best other(Best x, u32 step) const {
        return Best{__shfl_xor_sync(ALL_LANES, x.value, step), __shfl_xor_sync(ALL_LANES, x.place, step)};
    }
};

extern "C" __global__ void __launch_bounds__(1024) weir_place_rows(const __grid_constant__ Reduce p) {
    const Choose choose = {p.op == 11};
    for (u32 number = blockIdx.x; number < p.outputs; number += gridDim.x) {
        i64 first;
        offsets(p.kept, number, &first);
        Best best = {0.0f, NOWHERE};
        for (u32 i = threadIdx.x; i < p.reduced; i += blockDim.x) best = choose(best, Best{number_of(p, first, i), i});
        best = folded(best, choose);
        if (threadIdx.x == 0) put_place(p, number, best.place);
    }
}

extern "C" __global__ void __launch_bounds__(256) weir_place_columns(const __grid_constant__ Reduce p) {
    const Choose choose = {p.op == 11};
    FOR_EACH(number, p.outputs) {
        i64 first;
        offsets(p.kept, number, &first);
        Best best = {0.0f, NOWHERE};
        for (u32 i = 0; i < p.reduced; i++) best = choose(best, Best{number_of(p, first, i), i});
        put_place(p, number, best.place);
    }
}

// The same of integers and truth values.
DEVICE i64 neutral_whole(u32 op) {
    if (op == LEAST) return MOST_LONG;
    if (op == MOST) return LEAST_LONG;
    return op == PRODUCT ? 1 : 0;
}

struct FoldWhole {
    u32 op;

    __device__ i64 operator()(i64 a, i64 b) const {
        if (op == LEAST) return b < a ? b : a;
        if (op == MOST) return b > a ? b : a;
        return op == PRODUCT ? (i64)((u64)a * (u64)b) : (i64)((u64)a + (u64)b);
    }
    __device__ i64 other(i64 x, u32 step) const { return __shfl_xor_sync(ALL_LANES, x, step); }
};

DEVICE void finish_whole(const Reduce &p, u32 number, i64 total) {
    if (p.op == MEAN) total = p.reduced ? total / (i64)p.reduced : 0;
    // For no elements an extreme is that of the type.
    if (p.op == LEAST || p.op == MOST) total = p.dtype == BOOL ? total > 0 : saturated(p.dtype, total);
    store_whole(p.y, p.dtype, number, total);
}

DEVICE i64 whole_of(const Reduce &p, i64 first, u32 place) {
    i64 at;
    offsets(p.runs, place, &at);
    return load_whole(p.x, p.dtype, first + at);
}

extern "C" __global__ void __launch_bounds__(1024) weir_reduce_whole_rows(const __grid_constant__ Reduce p) {
    const FoldWhole fold = {p.op};
    for (u32 number = blockIdx.x; number < p.outputs; number += gridDim.x) {
        i64 first;
        offsets(p.kept, number, &first);
        i64 total = neutral_whole(p.op);
        for (u32 i = threadIdx.x; i < p.reduced; i += blockDim.x) total = fold(total, whole_of(p, first, i));
        total = folded(total, fold);
        if (threadIdx.x == 0) finish_whole(p, number, total);
    }
}

extern "C" __global__ void __launch_bounds__(256) weir_reduce_whole_columns(const __grid_constant__ Reduce p) {
    const FoldWhole fold = {p.op};
    FOR_EACH(number, p.outputs) {
        i64 first;
        offsets(p.kept, number, &first);
        i64 total = neutral_whole(p.op);
        for (u32 i = 0; i < p.reduced; i++) total = fold(total, whole_of(p, first, i));
        finish_whole(p, number, total);
    }
}

struct BestWhole {
    i64 value;
    u32 place;
};

struct ChooseWhole {
    bool least;

    __device__ bool better(i64 x, i64 than) const { return least ? x < than : x > than; }
    __device__ BestWhole operator()(BestWhole a, BestWhole b) const {
        if (a.place == NOWHERE || b.place == NOWHERE) return a.place == NOWHERE ? b : a;
        if (better(b.value, a.value)) return b;
        if (better(a.value, b.value)) return a;
        return b.place < a.place ? b : a;
    }
    __device__ BestWhole other(BestWhole x, u32 step) const {
        return BestWhole{__shfl_xor_sync(ALL_LANES, x.value, step), __shfl_xor_sync(ALL_LANES, x.place, step)};
    }
};

extern "C" __global__ void __launch_bounds__(1024) weir_place_whole_rows(const __grid_constant__ Reduce p) {
    const ChooseWhole choose = {p.op == 11};
    for (u32 number = blockIdx.x; number < p.outputs; number += gridDim.x) {
        i64 first;
        offsets(p.kept, number, &first);
        BestWhole best = {0, NOWHERE};
        for (u32 i = threadIdx.x; i < p.reduced; i += blockDim.x) best = choose(best, BestWhole{whole_of(p, first, i), i});
        best = folded(best, choose);
        if (threadIdx.x == 0) put_place(p, number, best.place);
    }
}

extern "C" __global__ void __launch_bounds__(256) weir_place_whole_columns(const __grid_constant__ Reduce p) {
    const ChooseWhole choose = {p.op == 11};
    FOR_EACH(number, p.outputs) {
        i64 first;
        offsets(p.kept, number, &first);
        BestWhole best = {0, NOWHERE};
        for (u32 i = 0; i < p.reduced; i++) best = choose(best, BestWhole{whole_of(p, first, i), i});
        put_place(p, number, best.place);
    }
}

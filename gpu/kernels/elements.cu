// Functions of each element for itself; of two elements, with broadcasting; a choice; storage types; quantization.
#include "storage.cuh"
#include "walk.cuh"
#include "wide.cuh"

struct Eltwise {
    const void *x;
    void *y;
    u32 count, dtype, op;
    float alpha, beta;
};

// x^(1/2): of -infinity that is infinity, of -0 it is 0.
DEVICE float root(float x) { return sqrtf(x < FLOAT(0xff7fffffu) ? POSITIVE_INFINITY : x + 0.0f); }
DEVICE float between_0_and_1(float x) { return lesser_of(1.0f, greater_of(0.0f, x)); }

// The number of each function is weir_eltwise_op_value's; from 32 on there are those that a parameter makes of others.
DEVICE float eltwise_of(u32 op, float x, float alpha, float beta) {
    switch (op) {
    case 1: return greater_of(0.0f, x);
    case 2: return x < 0.0f ? exp_minus_one(lesser_of(0.0f, x)) * alpha : x;
    case 3: return damped(x, normal_cdf(x));
    case 4: return gelu_tanh(x);
    case 5: return tanh_of(x);
    case 6: return sigmoid_of(x);
    case 7: return damped(x, sigmoid_of(x * alpha));
    case 8: return exp_of(x);
    case 9: return log_of(x);
    case 10: return sqrtf(x);
    case 11: return x * x;
    case 12: return absolute(x);
    case 13: return negated(x);
    case 14: return lesser_of(beta, greater_of(alpha, x));
    case 15: return fmaf(x, alpha, beta);
    case 16: return alpha * power_of(x, beta);
    case 17: return between_0_and_1(fmaf(x, alpha, beta));
    case 18: return damped(x, between_0_and_1(fmaf(x, alpha, beta)));
    case 19: return rintf(x);
    case 20: {
        float e = exp_of(lesser_of(20.0f, x)), n = e * (e + 2.0f);
        return damped(x, n / (n + 2.0f));
    }
    case 21: {
        float u = x * alpha, small = log_one_plus(exp_not_above_one(negated(absolute(u))));
        return (0.0f < u ? x : 0.0f) + small * (1.0f / alpha);
    }
    case 32: return x < 0.0f ? x * alpha : x;
    case 33: return alpha;
    case 34: return x == x ? beta : x;
    case 35: return x * x * alpha;
    case 36: return x * x * x * alpha;
    case 37: return root(x) * alpha;
    case 38: return root(x) * absolute(x) * alpha;
    case 39: return alpha / root(x);
    default: return alpha / x;
    }
}

extern "C" __global__ void __launch_bounds__(256) weir_eltwise(const __grid_constant__ Eltwise p) {
    FOR_EACH(i, p.count) store_float(p.y, p.dtype, i, eltwise_of(p.op, load_float(p.x, p.dtype, i), p.alpha, p.beta));
}

struct Binary {
    const void *a, *b;
    void *y;
    u32 count, dtype, op, reserved;
    Walk<2> walk;
};

DEVICE float binary_of(u32 op, float a, float b) {
    switch (op) {
    case 1: return a + b;
    case 2: return a - b;
    case 3: return a * b;
    case 4: return a / b;
    case 5: return a == a ? lesser_of(a, b) : a;
    case 6: return a == a ? greater_of(a, b) : a;
    case 7: return power_of(a, b);
    case 8: return a == b;
    case 9: return a != b;
    case 10: return a < b;
    case 11: return a <= b;
    case 12: return a > b;
    default: return a >= b;
    }
}

DEVICE int integer_of(u32 op, int a, int b) {
    switch (op) {
    case 1: return (int)((u32)a + (u32)b);
    case 2: return (int)((u32)a - (u32)b);
    case 3: return (int)((u32)a * (u32)b);
    case 4: {
        double quotient = (double)a / (double)b;
        return quotient != quotient ? 0 : __double2int_rn(quotient);
    }
    case 5: return a < b ? a : b;
    case 6: return a > b ? a : b;
    case 8: return a == b;
    case 9: return a != b;
    case 10: return a < b;
    case 11: return a <= b;
    case 12: return a > b;
    default: return a >= b;
    }
}

extern "C" __global__ void __launch_bounds__(256) weir_binary(const __grid_constant__ Binary p) {
    u32 to = p.op >= 8 ? BOOL : p.dtype;
    FOR_EACH(i, p.count) {
        i64 at[2];
        offsets(p.walk, i, at);
        store(p.y, to, i, binary_of(p.op, load(p.a, p.dtype, at[0]), load(p.b, p.dtype, at[1])));
    }
}

extern "C" __global__ void __launch_bounds__(256) weir_binary_integers(const __grid_constant__ Binary p) {
    FOR_EACH(i, p.count) {
        i64 at[2];
        offsets(p.walk, i, at);
        int y = integer_of(p.op, ((const int *)p.a)[at[0]], ((const int *)p.b)[at[1]]);
        if (p.op >= 8) {
            ((u8 *)p.y)[i] = (u8)y;
        } else {
            ((int *)p.y)[i] = y;
        }
    }
}

struct Select {
    const void *condition, *a, *b;
    void *y;
    u32 count, bytes;
    Walk<3> walk;
};

extern "C" __global__ void __launch_bounds__(256) weir_select(const __grid_constant__ Select p) {
    FOR_EACH(i, p.count) {
        i64 at[3];
        offsets(p.walk, i, at);
        bool yes = ((const u8 *)p.condition)[at[0]] != 0;
        const void *from = yes ? p.a : p.b;
        i64 place = yes ? at[1] : at[2];
        if (p.bytes == 4) {
            ((u32 *)p.y)[i] = ((const u32 *)from)[place];
        } else if (p.bytes == 2) {
            ((u16 *)p.y)[i] = ((const u16 *)from)[place];
        } else {
            ((u8 *)p.y)[i] = ((const u8 *)from)[place];
        }
    }
}

struct Convert {
    const void *x;
    void *y;
    u32 count, from, to, plain;
    float scale, shift;
};

extern "C" __global__ void __launch_bounds__(256) weir_convert(const __grid_constant__ Convert p) {
    FOR_EACH(i, p.count) {
        float x = load(p.x, p.from, i);
        store(p.y, p.to, i, p.plain ? x : x * p.scale + p.shift);
    }
}

// Element i has the scale number i / inner % channels. Without a zero point that is NULL.
struct Quantization {
    const void *x;
    const float *scale;
    const int *zero;
    void *y;
    u32 count, from, to, channels, inner, reserved;
};

extern "C" __global__ void __launch_bounds__(256) weir_quantize(const __grid_constant__ Quantization p) {
    FOR_EACH(i, p.count) {
        u32 channel = p.channels == 1 ? 0 : i / p.inner % p.channels;
        float zero = p.zero ? (float)p.zero[channel] : 0.0f;
        store(p.y, p.to, i, rintf(load(p.x, p.from, i) / p.scale[channel]) + zero);
    }
}

extern "C" __global__ void __launch_bounds__(256) weir_dequantize(const __grid_constant__ Quantization p) {
    FOR_EACH(i, p.count) {
        u32 channel = p.channels == 1 ? 0 : i / p.inner % p.channels;
        float zero = p.zero ? (float)p.zero[channel] : 0.0f;
        store(p.y, p.to, i, (load(p.x, p.from, i) - zero) * p.scale[channel]);
    }
}

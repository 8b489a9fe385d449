// Functions of each element for itself; of two elements, with broadcasting; a choice; storage types; quantization.
#include "storage.cuh"
#include "walk.cuh"
#include "whole.cuh"
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

// The number of each function is weir_eltwise_op_value's; from 64 on there are those that a parameter makes of others.
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
    case 22: return erf_of(x);
    case 23: return floorf(x);
    case 24: return ceilf(x);
    case 25: return truncf(x);
    case 26: return x < 0.0f ? -1.0f : 0.0f < x ? 1.0f : x;
    // Sines, cosines and tangents are the processor's.
    case 30: return asin_of(x);
    case 31: return acos_of(x);
    case 32: return atan_of(x);
    case 33: return sinh_of(x);
    case 34: return cosh_of(x);
    case 64: return x < 0.0f ? x * alpha : x;
    case 65: return alpha;
    case 66: return x == x ? beta : x;
    case 67: return x * x * alpha;
    case 68: return x * x * x * alpha;
    case 69: return root(x) * alpha;
    case 70: return root(x) * absolute(x) * alpha;
    case 71: return alpha / root(x);
    default: return alpha / x;
    }
}

extern "C" __global__ void __launch_bounds__(256) weir_eltwise(const __grid_constant__ Eltwise p) {
    FOR_EACH(i, p.count) store_float(p.y, p.dtype, i, eltwise_of(p.op, load_float(p.x, p.dtype, i), p.alpha, p.beta));
}

// weir_rounding_value, and weir_overflow_value.
#define TO_NEAREST 1
#define TO_FLOOR 2
#define SATURATE 1

struct Binary {
    const void *a, *b;
    void *y;
    // Of `settings` the lowest byte is the rounding, and the next one the overflow.
    u32 count, dtype, op, settings;
    Walk<2> walk;
};

DEVICE bool compares(u32 op) { return op >= 8 && op <= 13; }

// The remainder of C, exact.
DEVICE float fmod_of(float a, float b) {
    u32 x = BITS(a) & ~SIGN, y = BITS(b) & ~SIGN;
    if (x >= 0x7f800000u || y > 0x7f800000u || y == 0) return NOT_A_NUMBER;
    if (x < y) return a;
    // Integers times a power of two; subnormal numbers have the exponent of the least normal ones.
    int above = (int)(x >> 23), below = (int)(y >> 23);
    u64 rest = (x & 0x007fffffu) | (above ? 0x00800000u : 0), of = (y & 0x007fffffu) | (below ? 0x00800000u : 0);
    above = above ? above : 1;
    below = below ? below : 1;
    rest %= of;
    // What is left has 24 bits, so 40 more fit.
    for (int steps = above - below; steps > 0; steps -= 40) rest = (rest << (steps < 40 ? steps : 40)) % of;
    float unit = below > 23 ? FLOAT((u32)(below - 23) << 23) : FLOAT(1u << (below - 1));
    return FLOAT(BITS((float)(u32)rest * unit) | (BITS(a) & SIGN));
}

DEVICE float remainder_of(u32 rounding, float a, float b) {
    if (rounding == TO_NEAREST) {
        // What is left of two b says whether the quotient is even.
        double size = (double)fmod_of(absolute(a), 2.0f * absolute(b)), of = (double)absolute(b);
        if (a != a || b != b) return NOT_A_NUMBER;
        float rest = (float)(size <= 0.5 * of || size != size ? size : size < 1.5 * of ? size - of : size - 2.0 * of);
        return BITS(a) & SIGN ? negated(rest) : rest;
    }
    float rest = fmod_of(a, b);
    if (rounding != TO_FLOOR || rest != rest) return rest;
    if (rest == 0.0f) return FLOAT((BITS(rest) & ~SIGN) | (BITS(b) & SIGN));
    return (BITS(rest) ^ BITS(b)) & SIGN ? rest + b : rest;
}

DEVICE float binary_of(u32 op, u32 settings, float a, float b) {
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
    case 13: return a >= b;
    default: return remainder_of(settings & 0xffu, a, b);
    }
}

// What rounding adds to a quotient that was rounded toward zero and left `rest`.
DEVICE i64 correction(u32 rounding, i64 rest, i64 divisor, i64 quotient) {
    i64 one = (rest < 0) != (divisor < 0) ? -1 : 1;
    if (rounding == TO_FLOOR) return rest != 0 && one < 0 ? -1 : 0;
    if (rounding != TO_NEAREST) return 0;
    u64 over = rest < 0 ? 0 - (u64)rest : (u64)rest, all = divisor < 0 ? 0 - (u64)divisor : (u64)divisor;
    u64 under = all - over;
    return over > under || (over == under && (quotient & 1) != 0) ? one : 0;
}

// Exact modulo 2^64, or saturated there; what is stored of it is brought into its type.
DEVICE i64 integer_of(u32 op, u32 dtype, u32 settings, i64 a, i64 b) {
    u32 rounding = settings & 0xffu;
    bool saturates = settings >> 8 == SATURATE;
    switch (op) {
    case 1: {
        i64 sum = (i64)((u64)a + (u64)b);
        return saturates && ((a ^ sum) & (b ^ sum)) < 0 ? (a < 0 ? LEAST_LONG : MOST_LONG) : sum;
    }
    case 2: {
        i64 difference = (i64)((u64)a - (u64)b);
        return saturates && ((a ^ b) & (a ^ difference)) < 0 ? (a < 0 ? LEAST_LONG : MOST_LONG) : difference;
    }
    case 3: {
        i64 low = (i64)((u64)a * (u64)b);
        return saturates && __mul64hi(a, b) != low >> 63 ? ((a < 0) != (b < 0) ? LEAST_LONG : MOST_LONG) : low;
    }
    case 4: {
        if (b == 0) return !saturates || a == 0 ? 0 : a < 0 ? LEAST_LONG : MOST_LONG;
        if (b == -1) return a == LEAST_LONG ? (saturates ? MOST_LONG : a) : -a;
        // Bytes and words are divided as words, which is sooner done.
        i64 quotient = dtype == S64 ? a / b : (i64)((int)a / (int)b);
        return quotient + correction(rounding, a - quotient * b, b, quotient);
    }
    case 5: return a < b ? a : b;
    case 6: return a > b ? a : b;
    case 8: return a == b;
    case 9: return a != b;
    case 10: return a < b;
    case 11: return a <= b;
    case 12: return a > b;
    case 13: return a >= b;
    default: {
        if (b == 0 || b == -1) return 0;
        i64 quotient = dtype == S64 ? a / b : (i64)((int)a / (int)b), rest = a - quotient * b;
        return (i64)((u64)rest - (u64)correction(rounding, rest, b, quotient) * (u64)b);
    }
    }
}

extern "C" __global__ void __launch_bounds__(256) weir_binary(const __grid_constant__ Binary p) {
    u32 to = compares(p.op) ? BOOL : p.dtype;
    FOR_EACH(i, p.count) {
        i64 at[2];
        offsets(p.walk, i, at);
        store(p.y, to, i, binary_of(p.op, p.settings, load(p.a, p.dtype, at[0]), load(p.b, p.dtype, at[1])));
    }
}

extern "C" __global__ void __launch_bounds__(256) weir_binary_integers(const __grid_constant__ Binary p) {
    u32 to = compares(p.op) ? BOOL : p.dtype;
    bool saturates = p.settings >> 8 == SATURATE;
    FOR_EACH(i, p.count) {
        i64 at[2];
        offsets(p.walk, i, at);
        i64 a = load_whole(p.a, p.dtype, at[0]), b = load_whole(p.b, p.dtype, at[1]);
        i64 y = integer_of(p.op, p.dtype, p.settings, a, b);
        store_whole(p.y, to, i, saturates && to != BOOL ? saturated(to, y) : y);
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
        if (p.bytes == 8) {
            ((u64 *)p.y)[i] = ((const u64 *)from)[place];
        } else if (p.bytes == 4) {
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
    u32 rounding, overflow;
};

extern "C" __global__ void __launch_bounds__(256) weir_convert(const __grid_constant__ Convert p) {
    bool exchanges = p.plain && is_whole(p.from) && is_whole(p.to), rounds = is_integer(p.to);
    bool saturates = p.overflow == SATURATE && p.to != BOOL;
    FOR_EACH(i, p.count) {
        if (exchanges) {
            i64 x = load_whole(p.x, p.from, i);
            store_whole(p.y, p.to, i, saturates ? saturated(p.to, x) : x);
            continue;
        }
        float x = load(p.x, p.from, i);
        if (!p.plain) x = x * p.scale + p.shift;
        if (rounds) x = p.rounding == TO_NEAREST ? rintf(x) : p.rounding == TO_FLOOR ? floorf(x) : truncf(x);
        store(p.y, p.to, i, x);
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

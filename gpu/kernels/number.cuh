// Functions of one number, with the formulas and coefficients that the processor's kernels have (kernel/vector/functions.rs), so that they
// give the bits of its AVX2 level. Every operation is rounded to nearest by itself; only `fmaf` fuses two (the compiler is told not to).
#pragma once

#define DEVICE static __device__ __forceinline__
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

#define BITS(x) __float_as_uint(x)
#define FLOAT(x) __uint_as_float(x)
#define SIGN 0x80000000u
#define POSITIVE_INFINITY FLOAT(0x7f800000u)
#define NOT_A_NUMBER FLOAT(0x7fffffffu)

// The greater one, the lesser one: `b` if one of them is NaN.
DEVICE float greater_of(float a, float b) { return a > b ? a : b; }
DEVICE float lesser_of(float a, float b) { return a < b ? a : b; }
DEVICE float absolute(float x) { return FLOAT(BITS(x) & ~SIGN); }
DEVICE float negated(float x) { return FLOAT(BITS(x) ^ SIGN); }
// The float whose sign and exponent are the lowest nine bits of x.
DEVICE float low_bits_as_exponent(float x) { return FLOAT(BITS(x) << 23); }

#define ROUND 12582912.0f
#define LN2_HIGH (355.0f / 512.0f)
#define LN2_LOW -2.1219444e-4f
#define LOWEST -104.0f

// n rounded after `bias` was added, in the low bits of *rounded, and e^r - 1 where x = n ln 2 + r.
DEVICE float reduced(float x, float bias, float *rounded) {
    *rounded = fmaf(x, 1.44269504f, ROUND + bias);
    float n = *rounded - (ROUND + bias);
    float r = fmaf(n, -LN2_LOW, fmaf(n, -LN2_HIGH, x));
    float tail = 0.0013814515f;
    tail = fmaf(tail, r, 0.008368756f);
    tail = fmaf(tail, r, 0.04166839f);
    tail = fmaf(tail, r, 0.1666652f);
    tail = fmaf(tail, r, 0.49999993f);
    return fmaf(r * r, tail, r);
}

DEVICE float exp_of(float x) {
    float rounded;
    x = lesser_of(89.0f, greater_of(LOWEST, x));
    float growth = reduced(x, 0.0f, &rounded) + 1.0f;
    float n = rounded - ROUND;
    // In two steps, of which the second rounds.
    float first = n < 0.0f ? n + 24.0f : n - 2.0f, second = n < 0.0f ? 1.0f / 16777216.0f : 4.0f;
    return growth * low_bits_as_exponent(first + (ROUND + 127.0f)) * second;
}

// e^x for x that is not above zero.
DEVICE float exp_not_above_one(float x) {
    float rounded, growth = reduced(greater_of(LOWEST, x), 127.0f + 24.0f, &rounded);
    float power = low_bits_as_exponent(rounded);
    return fmaf(growth, power, power) * (1.0f / 16777216.0f);
}

// e^x - 1 for x that is not above zero.
DEVICE float exp_minus_one(float x) {
    float rounded, growth = reduced(greater_of(-20.0f, x), 127.0f, &rounded);
    float power = low_bits_as_exponent(rounded);
    return fmaf(growth, power, power - 1.0f);
}

DEVICE float log_of(float x) {
    bool small = x < 1.17549435e-38f;
    u32 bits = BITS(small ? x * 8388608.0f : x) - 0x3f400000u;
    float m = FLOAT((bits & 0x007fffffu) + 0x3f400000u);
    float e = (float)((int)bits >> 23) + (small ? -23.0f : 0.0f);
    if (!(x < POSITIVE_INFINITY)) {
        m = 1.0f;
        e = x;
    }
    if (!(x > 0.0f)) e = x != x ? x : x < 0.0f ? NOT_A_NUMBER : -POSITIVE_INFINITY;
    float f = m - 1.0f, square = f * f, tail = -0.045074467f;
    tail = fmaf(tail, f, 0.10462996f);
    tail = fmaf(tail, f, -0.13161197f);
    tail = fmaf(tail, f, 0.144784f);
    tail = fmaf(tail, f, -0.16647312f);
    tail = fmaf(tail, f, 0.19990861f);
    tail = fmaf(tail, f, -0.25000095f);
    tail = fmaf(tail, f, 0.3333345f);
    float rest = fmaf(square * f, tail, square * -0.5f);
    rest = fmaf(e, 2.760868e-4f, rest);
    return fmaf(e, 1419.0f / 2048.0f, rest + f);
}

// ln(1 + x) for x from 0 to 1.
DEVICE float log_one_plus(float x) {
    float s = x / (x + 2.0f), square = s * s, tail = 0.24307586f;
    tail = fmaf(tail, square, 0.21426031f);
    tail = fmaf(tail, square, 0.2861702f);
    tail = fmaf(tail, square, 0.39998873f);
    tail = fmaf(tail, square, 0.66666676f);
    return fmaf(s * square, tail, s + s);
}

DEVICE float tanh_of(float x) {
    float t = lesser_of(9.4f, absolute(x)), square = t * t;
    float above = 1.3319091e-8f, below = 7.762033e-7f;
    above = fmaf(above, square, 2.0583514e-5f);
    above = fmaf(above, square, 0.0034940374f);
    above = fmaf(above, square, 0.13379721f);
    above = fmaf(above, square, 1.0f);
    below = fmaf(below, square, 3.283097e-4f);
    below = fmaf(below, square, 0.025871085f);
    below = fmaf(below, square, 0.46713036f);
    below = fmaf(below, square, 1.0f);
    float result = lesser_of(1.0f, t * above / below);
    return FLOAT((BITS(result) & ~SIGN) | (BITS(x) & SIGN));
}

DEVICE float sigmoid_of(float x) {
    float power = exp_not_above_one(negated(absolute(x)));
    return (x < 0.0f ? power : 1.0f) / (power + 1.0f);
}

// The probability that a normal variable is less than x.
DEVICE float normal_cdf(float x) {
    float t = lesser_of(14.5f, absolute(x));
    float power = exp_not_above_one(t * -0.5f * t), above = 1.958354e-7f, below = 0.036901077f;
    above = fmaf(above, t, 0.014711718f);
    above = fmaf(above, t, 0.10918611f);
    above = fmaf(above, t, 0.3428549f);
    above = fmaf(above, t, 0.4999999f);
    below = fmaf(below, t, 0.27318487f);
    below = fmaf(below, t, 0.9021724f);
    below = fmaf(below, t, 1.4835862f);
    below = fmaf(below, t, 1.0f);
    float tail = power * above / below;
    return x < 0.0f ? tail : 1.0f - tail;
}

DEVICE float with_sign_of(float x, float other) { return FLOAT((BITS(x) & ~SIGN) | (BITS(other) & SIGN)); }

DEVICE float erf_of(float x) {
    float t = lesser_of(4.0f, absolute(x)), square = t * t, near = 8.382388e-5f, far = 1.950507e-4f;
    near = fmaf(near, square, -8.145597e-4f);
    near = fmaf(near, square, 0.005201286f);
    near = fmaf(near, square, -0.0268595f);
    near = fmaf(near, square, 0.11283697f);
    near = fmaf(near, square, -0.37612635f);
    near = fmaf(near, square, 0.12837917f);
    far = fmaf(far, t, -0.003034716f);
    far = fmaf(far, t, 0.022193875f);
    far = fmaf(far, t, -0.103864916f);
    far = fmaf(far, t, -0.63725597f);
    far = fmaf(far, t, -1.1276332f);
    far = fmaf(far, t, -2.0559186e-4f);
    return with_sign_of(t < 0.92f ? fmaf(t, near, t) : 1.0f - exp_not_above_one(far), x);
}

// pi / 2 and pi as floats, and what these lack.
#define RIGHT 1.57079637f
#define RIGHT_REST -4.371139e-8f
#define STRAIGHT 3.14159274f
#define STRAIGHT_REST -8.742278e-8f

DEVICE float atan_of(float x) {
    float t = absolute(x), u = 1.0f < t ? 1.0f / t : t, square = u * u, tail = -0.0017935939f;
    tail = fmaf(tail, square, 0.010914481f);
    tail = fmaf(tail, square, -0.031177612f);
    tail = fmaf(tail, square, 0.05795736f);
    tail = fmaf(tail, square, -0.08403437f);
    tail = fmaf(tail, square, 0.10952181f);
    tail = fmaf(tail, square, -0.14264241f);
    tail = fmaf(tail, square, 0.19998549f);
    tail = fmaf(tail, square, -0.333333f);
    float angle = fmaf(u * square, tail, u);
    return with_sign_of(1.0f < t ? RIGHT - (angle - RIGHT_REST) : angle, x);
}

// The arcsine of t, or half of the arccosine if t is above 1/2.
DEVICE float arc_of(float t) {
    float square = 0.5f < t ? (1.0f - t) * 0.5f : t * t, u = 0.5f < t ? sqrtf(square) : t, tail = 0.042218547f;
    tail = fmaf(tail, square, 0.024147611f);
    tail = fmaf(tail, square, 0.045477096f);
    tail = fmaf(tail, square, 0.074952416f);
    tail = fmaf(tail, square, 0.16666754f);
    return fmaf(u * square, tail, u);
}

DEVICE float asin_of(float x) {
    float t = absolute(x), angle = arc_of(t);
    return with_sign_of(0.5f < t ? RIGHT - (angle + angle - RIGHT_REST) : angle, x);
}

DEVICE float acos_of(float x) {
    float t = absolute(x), angle = arc_of(t), twice = angle + angle;
    if (!(0.5f < t)) return RIGHT - (with_sign_of(angle, x) - RIGHT_REST);
    return x < 0.0f ? STRAIGHT - (twice - STRAIGHT_REST) : twice;
}

DEVICE float sinh_of(float x) {
    float t = absolute(x), square = t * t, tail = 2.0377406e-4f, root = exp_of(t * 0.5f);
    tail = fmaf(tail, square, 0.008330211f);
    tail = fmaf(tail, square, 0.16666718f);
    float far = root * 0.5f * root - 0.5f / (root * root);
    return with_sign_of(t < 1.0f ? fmaf(t * square, tail, t) : far, x);
}

DEVICE float cosh_of(float x) {
    float root = exp_of(absolute(x) * 0.5f);
    return root * 0.5f * root + 0.5f / (root * root);
}

// x times a factor that vanishes where x goes to an infinity: zero there, not NaN.
DEVICE float damped(float x, float factor) { return factor < FLOAT(1u) ? 0.0f : x * factor; }

DEVICE float gelu_tanh(float x) { return damped(x, sigmoid_of(fmaf(x * x, 0.071354816f, 1.5957692f) * x)); }

// What follows a product: one of weir_activation_value.
DEVICE float activated(u32 activation, float x) {
    switch (activation) {
    case 1: return greater_of(0.0f, x);
    case 2: return damped(x, normal_cdf(x));
    case 3: return gelu_tanh(x);
    case 4: return sigmoid_of(x);
    case 5: return tanh_of(x);
    default: return x;
    }
}

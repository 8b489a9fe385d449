// Functions in f64, for the few that need more than f32: within 1e-15 of the true value.
#pragma once
#include "number.cuh"

// ln x = e ln 2 + 2 artanh((m - 1) / (m + 1)), with m from 3/4 to 3/2; *high has e, for those that want another base. x is above zero, finite and
// no subnormal number.
DEVICE double log_of_mantissa(double x, double *exponent) {
    i64 bits = __double_as_longlong(x) - 0x3fe8000000000000ll;
    *exponent = (double)(int)(bits >> 52);
    double m = __longlong_as_double((bits & 0x000fffffffffffffll) + 0x3fe8000000000000ll);
    double s = (m - 1.0) / (m + 1.0), square = s * s, sum = 1.0 / 23.0;
    // |s| is at most 1/5: what is left out is below 1e-17.
    sum = fma(sum, square, 1.0 / 21.0);
    sum = fma(sum, square, 1.0 / 19.0);
    sum = fma(sum, square, 1.0 / 17.0);
    sum = fma(sum, square, 1.0 / 15.0);
    sum = fma(sum, square, 1.0 / 13.0);
    sum = fma(sum, square, 1.0 / 11.0);
    sum = fma(sum, square, 1.0 / 9.0);
    sum = fma(sum, square, 1.0 / 7.0);
    sum = fma(sum, square, 1.0 / 5.0);
    sum = fma(sum, square, 1.0 / 3.0);
    return 2.0 * fma(s * square, sum, s);
}

// e^x for |x| up to 700.
DEVICE double wide_exp(double x) {
    double n = rint(x * 1.4426950408889634);
    double r = fma(n, -1.9082149292705877e-10, fma(n, -0.6931471803691238, x)), sum = 1.0 / 6227020800.0;
    sum = fma(sum, r, 1.0 / 479001600.0);
    sum = fma(sum, r, 1.0 / 39916800.0);
    sum = fma(sum, r, 1.0 / 3628800.0);
    sum = fma(sum, r, 1.0 / 362880.0);
    sum = fma(sum, r, 1.0 / 40320.0);
    sum = fma(sum, r, 1.0 / 5040.0);
    sum = fma(sum, r, 1.0 / 720.0);
    sum = fma(sum, r, 1.0 / 120.0);
    sum = fma(sum, r, 1.0 / 24.0);
    sum = fma(sum, r, 1.0 / 6.0);
    sum = fma(sum, r, 0.5);
    sum = fma(sum, r, 1.0);
    sum = fma(sum, r, 1.0);
    return sum * __longlong_as_double(((i64)(int)n + 1023ll) << 52);
}

DEVICE double wide_log(double x) {
    double e, tail = log_of_mantissa(x, &e);
    return fma(e, 0.6931471803691238, fma(e, 1.9082149292705877e-10, tail));
}

// x^y as C's powf has it.
DEVICE float power_of(float x, float y) {
    if (y == 0.0f || x == 1.0f) return 1.0f;
    if (x != x || y != y) return NOT_A_NUMBER;
    float size = absolute(x), whole = absolute(y);
    // From 2^24 on every float is an even integer.
    bool integer = whole >= 16777216.0f || rintf(y) == y;
    bool odd = integer && whole < 16777216.0f && ((int)whole & 1) != 0;
    float sign = odd && (BITS(x) & SIGN) ? -1.0f : 1.0f;
    if (whole == POSITIVE_INFINITY) return size == 1.0f ? 1.0f : (size > 1.0f) == (y > 0.0f) ? POSITIVE_INFINITY : 0.0f;
    if (size == 0.0f) return y > 0.0f ? sign * 0.0f : sign * POSITIVE_INFINITY;
    if (size == POSITIVE_INFINITY) return y > 0.0f ? sign * POSITIVE_INFINITY : sign * 0.0f;
    if (x < 0.0f && !integer) return NOT_A_NUMBER;
    double exponent = (double)y * wide_log((double)size);
    // Beyond these the float is 0 or infinite.
    exponent = exponent > 200.0 ? 200.0 : exponent < -200.0 ? -200.0 : exponent;
    return sign * (float)wide_exp(exponent);
}

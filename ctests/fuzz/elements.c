/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Kernels that compute each element for itself.
 */

#include <stdbool.h>
#include <weir/ops.h>

#include "fuzz.h"

/* Least error of functions that f32 computes: below the normal numbers errors are absolute. */
#define TINY 2e-38

static uint32_t draw_rank(draws *d) {
    return (uint32_t)(draw_once_in(d, 12) ? draw_int(d, 0, 8) : draw_int(d, 1, 4));
}

/* An enumerator, or rarely a number that is none. */
static uint32_t draw_op(draws *d, uint32_t last) {
    return draw_once_in(d, 40) ? (uint32_t)draw_int(d, 0, last + 3) : (uint32_t)draw_int(d, 1, last);
}

/* ---- Functions of one number ------------------------------------------------------------------- */

static const int eltwise_parameters[] = {
    [WEIR_ELTWISE_RELU] = 1, [WEIR_ELTWISE_ELU] = 1, [WEIR_ELTWISE_SWISH] = 1, [WEIR_ELTWISE_SOFTPLUS] = 1,
    [WEIR_ELTWISE_CLIP] = 2, [WEIR_ELTWISE_LINEAR] = 2, [WEIR_ELTWISE_POW] = 2, [WEIR_ELTWISE_HARDSIGMOID] = 2,
    [WEIR_ELTWISE_HARDSWISH] = 2, [WEIR_ELTWISE_COSH] = 0};

static float draw_parameter(draws *d) {
    static const float usual[] = {0, 1, -1, 0.5f, -0.5f, 2, 3, 1.5f, 0.25f, 0.2f, 1 / 6.0f};
    if (!draw_once_in(d, 4)) return usual[draw_bits(d) % (sizeof usual / sizeof *usual)];
    return (float)((draw_unit(d) - 0.5) * 6);
}

static void draw_eltwise(problem *p) {
    weir_eltwise_desc *desc = &p->desc.eltwise;
    *desc = (weir_eltwise_desc){.struct_size = sizeof *desc, .op = draw_op(p->d, WEIR_ELTWISE_COSH)};
    int parameters = desc->op <= WEIR_ELTWISE_COSH ? eltwise_parameters[desc->op] : 0;
    if (parameters > 0 || draw_once_in(p->d, 60)) desc->alpha = draw_parameter(p->d);
    if (parameters > 1 || draw_once_in(p->d, 60)) desc->beta = draw_parameter(p->d);
    if (desc->op == WEIR_ELTWISE_CLIP && draw_once_in(p->d, 3)) desc->beta = INFINITY;
    if (desc->op == WEIR_ELTWISE_SOFTPLUS && desc->alpha == 0) desc->alpha = 1;
    if (draw_once_in(p->d, 100)) desc->alpha = NAN;
    add_input(p, draw_shape(p->d, DRAW_OF(p->d, FLOATS), draw_rank(p->d), 20000), (contents)draw_int(p->d, SMALL, SPECIAL));
}

/* x times something that may vanish: then it is 0, also for infinite x. */
static double times(double x, double factor) {
    return factor == 0 && !isnan(x) ? 0 : x * factor;
}

static double clamped(double x) {
    return isnan(x) ? x : x < 0 ? 0 : x > 1 ? 1 : x;
}

static double eltwise_of(const weir_eltwise_desc *desc, double x, double *error) {
    double a = desc->alpha, b = desc->beta, y = x, t;
    double relative = 4e-6, absolute = TINY;
    switch (desc->op) {
    case WEIR_ELTWISE_RELU: y = x >= 0 || isnan(x) ? x : times(x, a); relative = 0x1p-23; break;
    case WEIR_ELTWISE_ELU: y = x >= 0 || isnan(x) ? x : a * expm1(x); break;
    case WEIR_ELTWISE_GELU_ERF: y = times(x, erfc(-x / sqrt(2)) / 2); relative = 1e-5; break;
    case WEIR_ELTWISE_GELU_TANH:
        t = sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x);
        y = times(x, 1 / (1 + exp(-2 * t)));
        relative = 2e-5;
        break;
    case WEIR_ELTWISE_TANH: y = tanh(x); break;
    case WEIR_ELTWISE_SIGMOID: y = 1 / (1 + exp(-x)); break;
    case WEIR_ELTWISE_SWISH:
        y = times(x, 1 / (1 + exp(-times(x, a))));
        relative = 4e-6 + 2.5e-7 * fmin(fabs(a * x), 120);
        break;
    case WEIR_ELTWISE_EXP: y = exp(x); break;
    case WEIR_ELTWISE_LOG: y = log(x); break;
    case WEIR_ELTWISE_SQRT: y = sqrt(x); relative = 0x1p-22; break;
    case WEIR_ELTWISE_SQUARE: y = x * x; relative = 0x1p-23; break;
    case WEIR_ELTWISE_ABS: y = fabs(x); relative = absolute = 0; break;
    case WEIR_ELTWISE_NEG: y = -x; relative = absolute = 0; break;
    case WEIR_ELTWISE_CLIP: y = isnan(x) ? x : fmin(fmax(x, a), b); relative = absolute = 0; break;
    case WEIR_ELTWISE_LINEAR: y = a * x + b; absolute += 0x1p-23 * (fabs(times(x, a)) + fabs(b)); break;
    case WEIR_ELTWISE_POW:
        t = pow(x, b);
        y = a * rounded(WEIR_F32, t);
        relative = isfinite(t) && fabs(t) > 1e38 ? NAN : 4e-6; /* beyond f32, unless the factor comes first */
        absolute += TINY * fabs(a);
        break;
    case WEIR_ELTWISE_HARDSIGMOID: y = clamped(times(x, a) + b); absolute += 0x1p-22 * (fabs(times(x, a)) + fabs(b)); break;
    case WEIR_ELTWISE_HARDSWISH:
        t = clamped(times(x, a) + b);
        y = times(x, t);
        if (t > 0 && t < 1) absolute += 0x1p-22 * (fabs(times(x, a)) + fabs(b)) * fabs(x);
        if (fabs(a * x + b) < 1e-6) absolute += 1e-6 * fabs(x);
        if (fabs(a * x + b - 1) < 1e-6) absolute += 1e-6 * fabs(x);
        break;
    case WEIR_ELTWISE_ROUND: y = nearbyint(x); relative = absolute = 0; break;
    case WEIR_ELTWISE_MISH:
        t = exp(fmin(x, 40));
        y = x > 40 ? x : times(x, t * (t + 2) / (t * (t + 2) + 2));
        break;
    case WEIR_ELTWISE_SOFTPLUS:
        t = a * x;
        y = (t > 40 ? t : log1p(exp(t))) / a;
        relative = 4e-6 + 2.5e-7 * fmin(fabs(t), 120); /* a x is rounded before it is an exponent */
        break;
    case WEIR_ELTWISE_ERF: y = erf(x); break;
    case WEIR_ELTWISE_FLOOR: y = floor(x); relative = absolute = 0; break;
    case WEIR_ELTWISE_CEIL: y = ceil(x); relative = absolute = 0; break;
    case WEIR_ELTWISE_TRUNC: y = trunc(x); relative = absolute = 0; break;
    case WEIR_ELTWISE_SIGN: y = isnan(x) ? x : (x > 0) - (x < 0); relative = absolute = 0; break;
    case WEIR_ELTWISE_SIN: y = sin(x); break;
    case WEIR_ELTWISE_COS: y = cos(x); break;
    case WEIR_ELTWISE_TAN: y = tan(x); break;
    case WEIR_ELTWISE_ASIN: y = asin(x); break;
    case WEIR_ELTWISE_ACOS: y = acos(x); break;
    case WEIR_ELTWISE_ATAN: y = atan(x); break;
    case WEIR_ELTWISE_SINH: y = sinh(x); break;
    case WEIR_ELTWISE_COSH: y = cosh(x); break;
    default: break;
    }
    *error = relative * fabs(y) + absolute;
    if (!isfinite(y)) *error = isnan(relative) ? relative : 0;
    return y;
}

static verdict solve_eltwise(problem *p) {
    weir_eltwise_desc *desc = &p->desc.eltwise;
    if (p->num_in != 1 || desc->op < 1 || desc->op > WEIR_ELTWISE_COSH || !is_float(p->in[0].desc.dtype)) return REFUSED;
    int parameters = eltwise_parameters[desc->op];
    if (isnan(desc->alpha) || isnan(desc->beta)) return REFUSED;
    if ((parameters < 1 && desc->alpha != 0) || (parameters < 2 && desc->beta != 0)) return REFUSED;
    if (desc->op == WEIR_ELTWISE_SOFTPLUS && desc->alpha == 0) return REFUSED;
    array *out = add_output(p, p->in[0].desc);
    p->in_place = true;
    for (size_t i = 0; i < out->n; i++) {
        double error, y = eltwise_of(desc, p->in[0].v[i], &error);
        put(out, i, y, error);
    }
    return RIGHT;
}

static weir_status create_eltwise(weir_engine *engine, problem *p, weir_kernel **out) {
    return weir_kernel_create_eltwise(engine, &p->desc.eltwise, NULL, out);
}

/* ---- Functions of two numbers ------------------------------------------------------------------ */

/* `count` inputs that broadcast, of these types. */
static void add_broadcast(problem *p, int count, const weir_dtype *dtypes, contents what) {
    weir_tensor_desc full = draw_shape(p->d, dtypes[0], draw_rank(p->d), 20000);
    int whole = (int)draw_int(p->d, 0, count - 1);
    for (int i = 0; i < count; i++) {
        weir_tensor_desc desc = draw_broadcast(p->d, &full, dtypes[i]);
        if (i == whole) desc = full, desc.dtype = dtypes[i];
        add_input(p, desc, what);
    }
}

static bool compares(uint32_t op) {
    return op >= WEIR_BINARY_EQ && op <= WEIR_BINARY_GE;
}

/* A rounding and an overflow: mostly the defaults, rarely numbers that are none. */
static void draw_settings(draws *d, weir_rounding *rounding, weir_overflow *overflow) {
    if (draw_once_in(d, 2)) *rounding = (weir_rounding)draw_int(d, 0, 2);
    if (draw_once_in(d, 2)) *overflow = (weir_overflow)draw_int(d, 0, 1);
    if (draw_once_in(d, 80)) *rounding = (weir_rounding)draw_int(d, 0, 5);
    if (draw_once_in(d, 80)) *overflow = (weir_overflow)draw_int(d, 0, 5);
}

static double rounded_by(weir_rounding rounding, double x) {
    return rounding == WEIR_ROUNDING_ZERO ? trunc(x) : rounding == WEIR_ROUNDING_FLOOR ? floor(x) : nearbyint(x);
}

static void draw_binary(problem *p) {
    weir_binary_desc *desc = &p->desc.binary;
    *desc = (weir_binary_desc){.struct_size = sizeof *desc, .op = draw_op(p->d, WEIR_BINARY_REM)};
    draw_settings(p->d, &desc->rounding, &desc->overflow);
    weir_dtype dtype = draw_once_in(p->d, 2) ? WEIR_F32 : DRAW_OF(p->d, ALL_DTYPES);
    add_broadcast(p, 2, (const weir_dtype[]){dtype, dtype}, (contents)draw_int(p->d, SMALL, SPECIAL));
}

/* a / b, rounded, of integers; b is neither 0 nor -1. */
static int64_t quotient(weir_rounding rounding, int64_t a, int64_t b) {
    int64_t q = a / b, r = a % b;
    int64_t away = (r < 0) != (b < 0) ? -1 : 1;
    uint64_t over = r < 0 ? 0 - (uint64_t)r : (uint64_t)r, all = b < 0 ? 0 - (uint64_t)b : (uint64_t)b;
    if (r == 0 || rounding == WEIR_ROUNDING_ZERO) return q;
    if (rounding == WEIR_ROUNDING_FLOOR) return away < 0 ? q - 1 : q;
    return over > all - over || (over == all - over && q % 2 != 0) ? q + away : q;
}

/* Exact; what leaves 64 bits is a limit, or the lowest bits. */
static int64_t integer_of(const weir_binary_desc *desc, int64_t a, int64_t b) {
    bool saturates = desc->overflow == WEIR_OVERFLOW_SATURATE, over;
    int64_t y = 0;
    switch (desc->op) {
    case WEIR_BINARY_ADD: over = __builtin_add_overflow(a, b, &y); return over && saturates ? (a < 0 ? INT64_MIN : INT64_MAX) : y;
    case WEIR_BINARY_SUB: over = __builtin_sub_overflow(a, b, &y); return over && saturates ? (a < 0 ? INT64_MIN : INT64_MAX) : y;
    case WEIR_BINARY_MUL: over = __builtin_mul_overflow(a, b, &y); return over && saturates ? ((a < 0) != (b < 0) ? INT64_MIN : INT64_MAX) : y;
    case WEIR_BINARY_DIV:
        if (b == 0) return !saturates || a == 0 ? 0 : a < 0 ? INT64_MIN : INT64_MAX;
        if (b == -1) return a == INT64_MIN ? (saturates ? INT64_MAX : a) : -a;
        return quotient(desc->rounding, a, b);
    case WEIR_BINARY_REM:
        if (b == 0 || b == -1) return 0;
        /* Unsigned: the multiple itself may leave 64 bits, the difference does not. */
        return (int64_t)((uint64_t)a - (uint64_t)b * (uint64_t)quotient(desc->rounding, a, b));
    case WEIR_BINARY_MIN: return a < b ? a : b;
    default: return a > b ? a : b;
    }
}

static double float_of(const weir_binary_desc *desc, double a, double b, double *error) {
    double y = 0;
    *error = 0;
    switch (desc->op) {
    case WEIR_BINARY_ADD: y = a + b; break;
    case WEIR_BINARY_SUB: y = a - b; break;
    case WEIR_BINARY_MUL: y = a * b; break;
    case WEIR_BINARY_DIV: y = b == 0 ? (a == 0 || isnan(a) ? NAN : copysign(INFINITY, a) * copysign(1, b)) : a / b; break;
    case WEIR_BINARY_MIN: y = isnan(a) || isnan(b) ? NAN : a < b ? a : b; break;
    case WEIR_BINARY_MAX: y = isnan(a) || isnan(b) ? NAN : a > b ? a : b; break;
    case WEIR_BINARY_POW: y = pow(a, b); *error = 4e-6 * fabs(y) + TINY; break;
    case WEIR_BINARY_EQ: return a == b;
    case WEIR_BINARY_NE: return a != b;
    case WEIR_BINARY_LT: return a < b;
    case WEIR_BINARY_LE: return a <= b;
    case WEIR_BINARY_GT: return a > b;
    case WEIR_BINARY_GE: return a >= b;
    case WEIR_BINARY_REM:
        y = desc->rounding == WEIR_ROUNDING_NEAREST ? remainder(a, b) : fmod(a, b);
        if (desc->rounding != WEIR_ROUNDING_FLOOR || isnan(y)) return y; /* exact */
        if (y != 0 && (y < 0) != (signbit(b) != 0)) y += b;
        break;
    default: break;
    }
    /* Halves are rounded twice. */
    if (desc->op != WEIR_BINARY_POW) *error = 0x1p-24 * fabs(y);
    if (!isfinite(y)) *error = 0;
    return y;
}

static verdict solve_binary(problem *p) {
    const weir_binary_desc *of = &p->desc.binary;
    uint32_t op = of->op;
    if (p->num_in != 2 || op < 1 || op > WEIR_BINARY_REM) return REFUSED;
    if (of->rounding > WEIR_ROUNDING_FLOOR || of->overflow > WEIR_OVERFLOW_SATURATE) return REFUSED;
    const array *a = &p->in[0], *b = &p->in[1];
    weir_dtype dtype = a->desc.dtype;
    weir_tensor_desc desc = a->desc;
    if (dtype != b->desc.dtype || !broadcast(&desc, &b->desc)) return REFUSED;
    if (dtype == WEIR_BOOL && !compares(op) && op != WEIR_BINARY_MIN && op != WEIR_BINARY_MAX) return REFUSED;
    if (op == WEIR_BINARY_POW && !is_float(dtype)) return REFUSED;
    if (compares(op)) desc.dtype = WEIR_BOOL;
    p->in_place = !compares(op);
    array *out = add_output(p, desc);
    if (out == NULL) return EITHER;
    for (size_t i = 0; i < out->n; i++) {
        double x = a->v[broadcast_index(&a->desc, &desc, i)], y = b->v[broadcast_index(&b->desc, &desc, i)], error = 0, z;
        if (is_integer(dtype) && !compares(op)) {
            int64_t exact = integer_of(of, whole(x), whole(y));
            /* What saturates does so when it is compared. */
            z = of->overflow == WEIR_OVERFLOW_SATURATE ? (double)exact : wrapped(dtype, exact);
        } else {
            z = float_of(of, x, y, &error);
        }
        put(out, i, z, error);
    }
    return RIGHT;
}

static weir_status create_binary(weir_engine *engine, problem *p, weir_kernel **out) {
    return weir_kernel_create_binary(engine, &p->desc.binary, NULL, out);
}

static void draw_select(problem *p) {
    weir_dtype dtype = DRAW_OF(p->d, ALL_DTYPES);
    add_broadcast(p, 3, (const weir_dtype[]){draw_once_in(p->d, 40) ? WEIR_U8 : WEIR_BOOL, dtype, dtype}, SPECIAL);
}

static verdict solve_select(problem *p) {
    if (p->num_in != 3) return REFUSED;
    const array *c = &p->in[0], *a = &p->in[1], *b = &p->in[2];
    weir_tensor_desc desc = a->desc;
    if (c->desc.dtype != WEIR_BOOL || a->desc.dtype != b->desc.dtype) return REFUSED;
    if (!broadcast(&desc, &b->desc) || !broadcast(&desc, &c->desc)) return REFUSED;
    array *out = add_output(p, desc);
    if (out == NULL) return EITHER;
    for (size_t i = 0; i < out->n; i++) {
        const array *from = c->v[broadcast_index(&c->desc, &desc, i)] != 0 ? a : b;
        put(out, i, from->v[broadcast_index(&from->desc, &desc, i)], 0);
    }
    return RIGHT;
}

static weir_status create_select(weir_engine *engine, problem *p, weir_kernel **out) {
    (void)p;
    return weir_kernel_create_select(engine, NULL, NULL, out);
}

/* ---- Storage types ----------------------------------------------------------------------------- */

static void draw_convert(problem *p) {
    weir_convert_desc *desc = &p->desc.convert;
    *desc = (weir_convert_desc){.struct_size = sizeof *desc, .dtype = DRAW_OF(p->d, ALL_DTYPES)};
    if (draw_once_in(p->d, 50)) desc->dtype = (weir_dtype)draw_int(p->d, 0, 9);
    draw_settings(p->d, &desc->rounding, &desc->overflow);
    if (draw_once_in(p->d, 2)) desc->scale = draw_parameter(p->d), desc->shift = draw_parameter(p->d);
    if (draw_once_in(p->d, 100)) desc->shift = NAN;
    add_input(p, draw_shape(p->d, DRAW_OF(p->d, ALL_DTYPES), draw_rank(p->d), 20000), (contents)draw_int(p->d, SMALL, SPECIAL));
}

static verdict solve_convert(problem *p) {
    weir_convert_desc *desc = &p->desc.convert;
    if (p->num_in != 1 || desc->dtype < WEIR_F32 || desc->dtype > WEIR_S64) return REFUSED;
    if (isnan(desc->scale) || isnan(desc->shift)) return REFUSED;
    if (desc->rounding > WEIR_ROUNDING_FLOOR || desc->overflow > WEIR_OVERFLOW_SATURATE) return REFUSED;
    const array *x = &p->in[0];
    weir_dtype from = x->desc.dtype, to = desc->dtype;
    weir_tensor_desc like = x->desc;
    like.dtype = to;
    array *out = add_output(p, like);
    double scale = desc->scale == 0 ? 1 : desc->scale, shift = desc->shift;
    bool plain = scale == 1 && shift == 0, longer = from == WEIR_S32 || from == WEIR_S64;
    for (size_t i = 0; i < out->n; i++) {
        double y = x->v[i] * scale + shift;
        double error = 0x1p-22 * (fabs(x->v[i] * scale) + fabs(shift)) + TINY;
        /* Integers go through f32 to the halves. */
        if (plain) error = longer && is_float(to) ? 0x1p-24 * fabs(y) : 0;
        if (plain && is_integer(to) && !is_float(from)) {
            bool wraps = desc->overflow == WEIR_OVERFLOW_WRAP;
            put(out, i, wraps ? wrapped(to, whole(y)) : y, 0);
            continue;
        }
        put(out, i, y, error);
        if (is_integer(to) && isfinite(y)) {
            out->v[i] = rounded_by(desc->rounding, y - error);
            out->hi[i] = rounded_by(desc->rounding, y + error);
        }
        if (to == WEIR_BOOL && (isnan(y) || (fabs(y) <= error && error > 0))) put_anything(out, i);
    }
    return RIGHT;
}

static weir_status create_convert(weir_engine *engine, problem *p, weir_kernel **out) {
    return weir_kernel_create_convert(engine, &p->desc.convert, NULL, out);
}

/* Scales and zero points for input 0. */
static void add_channels(problem *p, bool zero_point, int32_t axis) {
    const weir_tensor_desc *x = &p->in[0].desc;
    int64_t n = 1, index = axis_of(axis, x);
    uint32_t rank = 1;
    if (draw_once_in(p->d, 2) || index < 0) rank = (uint32_t)draw_int(p->d, 0, 1);
    else n = x->dims[index];
    array *scale = add_input(p, make_desc(WEIR_F32, rank, n, 0, 0), NORMAL);
    for (size_t i = 0; i < scale->n; i++) scale->v[i] = rounded(WEIR_F32, fabs(scale->v[i]) + 0.01);
    if (!zero_point) return;
    array *zero = add_input(p, make_desc(WEIR_S32, rank, n, 0, 0), SMALL);
    for (size_t i = 0; i < zero->n; i++) zero->v[i] = (double)draw_int(p->d, -300, 300);
}

/* Whether scales and zero points fit; `*axis` is the one that they lie along, or -1. */
static bool channels_fit(const problem *p, bool zero_point, int32_t axis, int *along) {
    const array *scale = &p->in[1];
    if (p->num_in != (zero_point ? 3 : 2) || scale->desc.dtype != WEIR_F32 || scale->desc.rank > 1) return false;
    if (zero_point && (p->in[2].desc.dtype != WEIR_S32 || p->in[2].desc.rank > 1 || p->in[2].n != scale->n)) return false;
    *along = -1;
    if (scale->n == 1) return true;
    *along = axis_of(axis, &p->in[0].desc);
    return *along >= 0 && (size_t)p->in[0].desc.dims[*along] == scale->n;
}

static size_t channel_of(const weir_tensor_desc *desc, int along, size_t i) {
    size_t outer, len, inner;
    if (along < 0) return 0;
    split(desc, along, &outer, &len, &inner);
    return i / inner % len;
}

static void draw_quantize(problem *p) {
    weir_quantize_desc *desc = &p->desc.quantize;
    *desc = (weir_quantize_desc){.struct_size = sizeof *desc, .dtype = DRAW_OF(p->d, WEIR_S8, WEIR_U8, WEIR_S32)};
    desc->flags = draw_once_in(p->d, 2) ? WEIR_QUANTIZE_ZERO_POINT : 0;
    if (draw_once_in(p->d, 50)) desc->dtype = DRAW_OF(p->d, ALL_DTYPES);
    const array *x = add_input(p, draw_shape(p->d, DRAW_OF(p->d, FLOATS), draw_rank(p->d), 20000),
                               (contents)draw_int(p->d, SMALL, SPECIAL));
    desc->axis = (int32_t)(x->desc.rank == 0 ? 0 : draw_int(p->d, -(int64_t)x->desc.rank, (int64_t)x->desc.rank - 1));
    add_channels(p, desc->flags != 0, desc->axis);
}

static verdict solve_quantize(problem *p) {
    weir_quantize_desc *desc = &p->desc.quantize;
    bool zero_point = desc->flags != 0;
    int along;
    if (desc->dtype != WEIR_S8 && desc->dtype != WEIR_U8 && desc->dtype != WEIR_S32) return REFUSED;
    if (p->num_in < 2 || !is_float(p->in[0].desc.dtype) || !channels_fit(p, zero_point, desc->axis, &along)) return REFUSED;
    if (axis_of(desc->axis, &p->in[0].desc) < 0) return EITHER;
    const array *x = &p->in[0];
    weir_tensor_desc like = x->desc;
    like.dtype = desc->dtype;
    array *out = add_output(p, like);
    for (size_t i = 0; i < out->n; i++) {
        size_t channel = channel_of(&like, along, i);
        double zero = zero_point ? p->in[2].v[channel] : 0, q = x->v[i] / p->in[1].v[channel], error = 0x1p-23 * fabs(q);
        put(out, i, isnan(q) ? 0 : q, 0);
        if (isnan(q) && zero != 0) put_anything(out, i);
        else if (!isfinite(q)) continue;
        else {
            /* The sum is an f32, too. */
            out->v[i] = (nearbyint(q - error) + zero) - 0x1p-23 * fabs(q);
            out->hi[i] = (nearbyint(q + error) + zero) + 0x1p-23 * fabs(q);
        }
    }
    return RIGHT;
}

static weir_status create_quantize(weir_engine *engine, problem *p, weir_kernel **out) {
    return weir_kernel_create_quantize(engine, &p->desc.quantize, NULL, out);
}

static void draw_dequantize(problem *p) {
    weir_quantize_desc *desc = &p->desc.quantize;
    *desc = (weir_quantize_desc){.struct_size = sizeof *desc, .dtype = DRAW_OF(p->d, WEIR_DTYPE_ANY, FLOATS)};
    desc->flags = WEIR_QUANTIZE_DEQUANTIZE | (draw_once_in(p->d, 2) ? WEIR_QUANTIZE_ZERO_POINT : 0);
    if (draw_once_in(p->d, 50)) desc->dtype = DRAW_OF(p->d, ALL_DTYPES);
    const array *x = add_input(p, draw_shape(p->d, DRAW_OF(p->d, WEIR_S8, WEIR_U8, WEIR_S32), draw_rank(p->d), 20000), WIDE);
    desc->axis = (int32_t)(x->desc.rank == 0 ? 0 : draw_int(p->d, -(int64_t)x->desc.rank, (int64_t)x->desc.rank - 1));
    add_channels(p, desc->flags & WEIR_QUANTIZE_ZERO_POINT, desc->axis);
}

static verdict solve_dequantize(problem *p) {
    weir_quantize_desc *desc = &p->desc.quantize;
    weir_dtype dtype = desc->dtype == WEIR_DTYPE_ANY ? WEIR_F32 : desc->dtype;
    bool zero_point = desc->flags & WEIR_QUANTIZE_ZERO_POINT;
    int along;
    if (!is_float(dtype) || p->num_in < 2) return REFUSED;
    const array *x = &p->in[0];
    if (x->desc.dtype != WEIR_S8 && x->desc.dtype != WEIR_U8 && x->desc.dtype != WEIR_S32) return REFUSED;
    if (!channels_fit(p, zero_point, desc->axis, &along)) return REFUSED;
    if (axis_of(desc->axis, &x->desc) < 0) return EITHER;
    weir_tensor_desc like = x->desc;
    like.dtype = dtype;
    array *out = add_output(p, like);
    for (size_t i = 0; i < out->n; i++) {
        size_t channel = channel_of(&like, along, i);
        double zero = zero_point ? p->in[2].v[channel] : 0, scale = p->in[1].v[channel];
        put(out, i, (x->v[i] - zero) * scale, 0x1p-22 * (fabs(x->v[i]) + fabs(zero)) * fabs(scale));
    }
    return RIGHT;
}

#define FAMILY(name) {#name, draw_##name, solve_##name, create_##name}
const family elements_families[] = {FAMILY(eltwise), FAMILY(binary), FAMILY(select),
                                    FAMILY(convert), FAMILY(quantize), {"dequantize", draw_dequantize, solve_dequantize, create_quantize}, {NULL, NULL, NULL, NULL}};

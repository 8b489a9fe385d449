/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Random numbers, storage types, shapes.
 */

#include <float.h>
#include <stdarg.h>
#include <stdbool.h>
#include <weir/ops.h>

#include "fuzz.h"

uint64_t draw_bits(draws *d) {
    uint64_t z = d->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

int64_t draw_int(draws *d, int64_t least, int64_t most) {
    return least + (int64_t)(draw_bits(d) % ((uint64_t)(most - least) + 1));
}

bool draw_once_in(draws *d, int n) {
    return draw_bits(d) % (uint64_t)n == 0;
}

double draw_unit(draws *d) {
    return (double)(draw_bits(d) >> 11) * 0x1p-53;
}

int64_t draw_size(draws *d, int64_t most) {
    int64_t size = draw_once_in(d, 25) ? 0 : draw_once_in(d, 6) ? 1 : draw_int(d, 1, draw_once_in(d, 8) ? most : 9);
    return size < most ? size : most;
}

weir_dtype draw_of(draws *d, const weir_dtype *all, size_t count) {
    return all[draw_bits(d) % count];
}

/* ---- Storage types ----------------------------------------------------------------------------- */

size_t dtype_size(weir_dtype dtype) {
    switch (dtype) {
    case WEIR_S64: return 8;
    case WEIR_F32: case WEIR_S32: return 4;
    case WEIR_F16: case WEIR_BF16: return 2;
    default: return 1;
    }
}

bool is_float(weir_dtype dtype) {
    return dtype == WEIR_F32 || dtype == WEIR_F16 || dtype == WEIR_BF16;
}

bool is_integer(weir_dtype dtype) {
    return dtype == WEIR_S64 || dtype == WEIR_S32 || dtype == WEIR_S8 || dtype == WEIR_U8;
}

double wrapped(weir_dtype dtype, int64_t x) {
    switch (dtype) {
    case WEIR_S32: return (int32_t)x;
    case WEIR_S8: return (int8_t)x;
    case WEIR_U8: return (uint8_t)x;
    default: return (double)x;
    }
}

int64_t whole(double x) {
    return x >= 0x1p63 ? INT64_MAX : (int64_t)x;
}

double dtype_epsilon(weir_dtype dtype) {
    return dtype == WEIR_F32 ? 0x1p-23 : dtype == WEIR_F16 ? 0x1p-10 : dtype == WEIR_BF16 ? 0x1p-7 : 0;
}

static const struct {
    int digits, least, most; /* of the significand; exponents of the least and the greatest normal number */
} layouts[] = {{24, -126, 127}, {11, -14, 15}, {8, -126, 127}};

static int layout_of(weir_dtype dtype) {
    return dtype == WEIR_F32 ? 0 : dtype == WEIR_F16 ? 1 : 2;
}

static double rounded_float(weir_dtype dtype, double x) {
    int layout = layout_of(dtype), exponent;
    if (x == 0 || !isfinite(x)) return x;
    frexp(x, &exponent); /* 0.5 to 1 times 2^exponent */
    if (exponent - 1 < layouts[layout].least) exponent = layouts[layout].least + 1;
    double unit = ldexp(1, exponent - layouts[layout].digits);
    double y = nearbyint(x / unit) * unit;
    double most = ldexp(2 - ldexp(1, 1 - layouts[layout].digits), layouts[layout].most);
    return fabs(y) > most ? copysign(INFINITY, x) : y;
}

double rounded(weir_dtype dtype, double x) {
    double least = 0, most = 255;
    if (is_float(dtype)) return rounded_float(dtype, x);
    if (dtype == WEIR_BOOL) return x != 0 && !isnan(x);
    if (isnan(x)) return 0;
    if (dtype == WEIR_S8) least = -128, most = 127;
    if (dtype == WEIR_S32) least = INT32_MIN, most = INT32_MAX;
    if (dtype == WEIR_S64) least = -0x1p63, most = 0x1p63; /* the greatest one as f64 */
    x = nearbyint(x) + 0.0; /* integers have no -0 */
    return x < least ? least : x > most ? most : x;
}

static double of_bits(int layout, uint32_t bits) {
    int digits = layouts[layout].digits;
    uint32_t fraction = bits & ((1u << (digits - 1)) - 1);
    int field = (int)(bits >> (digits - 1)), most = layouts[layout].most;
    int exponents = 2 * most + 1;
    bool negative = field > exponents;
    double x;
    field &= exponents;
    if (field == exponents) x = fraction == 0 ? INFINITY : NAN;
    else if (field == 0) x = ldexp(fraction, layouts[layout].least - digits + 1);
    else x = ldexp(fraction + ldexp(1, digits - 1), field - most - digits + 1);
    return negative ? -x : x;
}

/* Of a number that the type has. */
static uint32_t to_bits(int layout, double x) {
    int digits = layouts[layout].digits, most = layouts[layout].most, exponent;
    uint32_t sign = signbit(x) ? (uint32_t)(2 * most + 2) << (digits - 1) : 0;
    uint32_t all = (uint32_t)(2 * most + 1) << (digits - 1);
    if (isnan(x)) return all | 1u << (digits - 2);
    if (isinf(x)) return sign | all;
    if (x == 0) return sign;
    frexp(fabs(x), &exponent);
    if (exponent - 1 < layouts[layout].least) return sign | (uint32_t)ldexp(fabs(x), digits - 1 - layouts[layout].least);
    uint32_t significand = (uint32_t)ldexp(fabs(x), digits - exponent);
    return sign | (uint32_t)(exponent - 1 + most) << (digits - 1) | (significand & ((1u << (digits - 1)) - 1));
}

double load(weir_dtype dtype, const void *data, size_t i) {
    uint32_t bits = 0;
    int32_t s32;
    int64_t s64;
    switch (dtype) {
    case WEIR_S64: return memcpy(&s64, (const char *)data + 8 * i, 8), (double)s64;
    case WEIR_S32: return memcpy(&s32, (const char *)data + 4 * i, 4), s32;
    case WEIR_S8: return ((const int8_t *)data)[i];
    case WEIR_U8: case WEIR_BOOL: return ((const uint8_t *)data)[i];
    default: break;
    }
    memcpy(&bits, (const char *)data + i * dtype_size(dtype), dtype_size(dtype));
    return of_bits(layout_of(dtype), bits);
}

void store(weir_dtype dtype, void *data, size_t i, double x) {
    uint32_t bits;
    int32_t s32 = 0;
    int64_t s64 = 0;
    switch (dtype) {
    case WEIR_S64: s64 = whole(x); memcpy((char *)data + 8 * i, &s64, 8); return;
    case WEIR_S32: s32 = (int32_t)x; memcpy((char *)data + 4 * i, &s32, 4); return;
    case WEIR_S8: ((int8_t *)data)[i] = (int8_t)x; return;
    case WEIR_U8: case WEIR_BOOL: ((uint8_t *)data)[i] = (uint8_t)x; return;
    default: break;
    }
    bits = to_bits(layout_of(dtype), x);
    memcpy((char *)data + i * dtype_size(dtype), &bits, dtype_size(dtype));
}

/* ---- Shapes ------------------------------------------------------------------------------------ */

size_t elements(const weir_tensor_desc *desc) {
    size_t n = 1;
    for (uint32_t i = 0; i < desc->rank; i++) n *= (size_t)desc->dims[i];
    return n;
}

weir_tensor_desc shaped(weir_dtype dtype, uint32_t rank, const int64_t *dims) {
    weir_tensor_desc desc = make_desc(dtype, rank, 0, 0, 0);
    for (uint32_t i = 0; i < rank; i++) desc.dims[i] = dims[i];
    return desc;
}

weir_tensor_desc draw_shape(draws *d, weir_dtype dtype, uint32_t rank, int64_t most) {
    weir_tensor_desc desc = make_desc(dtype, rank, 0, 0, 0);
    for (uint32_t i = 0; i < rank; i++) {
        int64_t limit = rank > 4 ? 5 : rank > 2 ? 40 : rank == 2 ? 300 : most;
        desc.dims[i] = draw_size(d, limit < most ? limit : most);
        if (desc.dims[i] > 1) most /= desc.dims[i];
        if (most < 1) most = 1;
    }
    return desc;
}

weir_tensor_desc draw_broadcast(draws *d, const weir_tensor_desc *like, weir_dtype dtype) {
    uint32_t rank = draw_once_in(d, 2) ? like->rank : (uint32_t)draw_int(d, 0, like->rank);
    weir_tensor_desc desc = shaped(dtype, rank, like->dims + (like->rank - rank));
    if (draw_once_in(d, 2)) return desc;
    for (uint32_t i = 0; i < rank; i++) {
        if (draw_once_in(d, 3)) desc.dims[i] = 1;
    }
    return desc;
}

bool broadcast(weir_tensor_desc *all, const weir_tensor_desc *other) {
    weir_tensor_desc result = make_desc(all->dtype, all->rank > other->rank ? all->rank : other->rank, 0, 0, 0);
    for (uint32_t i = 0; i < result.rank; i++) {
        int64_t a = i < all->rank ? all->dims[all->rank - 1 - i] : 1;
        int64_t b = i < other->rank ? other->dims[other->rank - 1 - i] : 1;
        if (a != b && a != 1 && b != 1) return false;
        result.dims[result.rank - 1 - i] = a == 1 ? b : a;
    }
    *all = result;
    return true;
}

size_t broadcast_index(const weir_tensor_desc *from, const weir_tensor_desc *to, size_t i) {
    size_t index = 0, step = 1;
    for (uint32_t k = 0; k < to->rank; k++) {
        size_t size = (size_t)to->dims[to->rank - 1 - k], at = i % size;
        i /= size;
        if (k < from->rank) {
            size_t own = (size_t)from->dims[from->rank - 1 - k];
            if (own > 1) index += at * step;
            step *= own;
        }
    }
    return index;
}

bool same_shape(const weir_tensor_desc *a, const weir_tensor_desc *b) {
    return a->rank == b->rank && memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0;
}

bool is_shape(const weir_tensor_desc *desc, weir_dtype dtype, uint32_t rank, ...) {
    bool is = desc->dtype == dtype && desc->rank == rank;
    va_list dims;
    va_start(dims, rank);
    for (uint32_t i = 0; is && i < rank; i++) is = desc->dims[i] == va_arg(dims, int64_t);
    va_end(dims);
    return is;
}

int axis_of(int32_t axis, const weir_tensor_desc *desc) {
    int index = axis < 0 ? axis + (int)desc->rank : axis;
    return index >= 0 && index < (int)desc->rank ? index : -1;
}

void split(const weir_tensor_desc *desc, int axis, size_t *outer, size_t *len, size_t *inner) {
    *outer = *inner = 1;
    *len = (size_t)desc->dims[axis];
    for (int i = 0; i < axis; i++) *outer *= (size_t)desc->dims[i];
    for (int i = axis + 1; i < (int)desc->rank; i++) *inner *= (size_t)desc->dims[i];
}

/* ---- Inputs and outputs ------------------------------------------------------------------------ */

static double draw_value(draws *d, weir_dtype dtype, contents what) {
    static const double specials[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1e-40, -1e-44, FLT_MAX, -FLT_MAX, FLT_MIN,
                                      65504, 1e-7, -6e-8, 88.5, -88.5, -104, 127.5, 128, -128.5, 255.5, 0.5, 1.5, 2.5,
                                      2147483647, -2147483648.0, 16777217};
    double x;
    if (dtype == WEIR_BOOL) return draw_once_in(d, 2);
    if (what == SPECIAL && draw_once_in(d, 4)) {
        x = specials[draw_bits(d) % (sizeof specials / sizeof *specials)];
    } else if (what == SMALL) {
        x = (double)draw_int(d, -16, 16) / 2;
    } else if (what == NORMAL || (is_float(dtype) && !draw_once_in(d, 3))) {
        x = (draw_unit(d) - 0.5) * 4;
    } else if (is_float(dtype)) {
        x = ldexp(draw_unit(d) - 0.5, (int)draw_int(d, -140, 120) / (draw_once_in(d, 2) ? 1 : 16));
    } else {
        x = draw_once_in(d, 2) ? (double)draw_int(d, INT32_MIN, INT32_MAX) : (double)draw_int(d, -300, 300);
        if (dtype == WEIR_S64 && draw_once_in(d, 2)) x = (double)(draw_int(d, INT64_MIN / 2, INT64_MAX / 2) >> draw_int(d, 0, 62));
        if (dtype == WEIR_S8 || dtype == WEIR_U8) x = (double)draw_int(d, -128, 255);
    }
    if (!is_float(dtype) && (what == SMALL || what == NORMAL)) x = (double)draw_int(d, dtype == WEIR_U8 ? 0 : -9, 9);
    return rounded(dtype, x);
}

array *add_input(problem *p, weir_tensor_desc desc, contents what) {
    CHECK(p->num_in < MAX_IN);
    array *a = &p->in[p->num_in++];
    *a = (array){.desc = desc, .n = elements(&desc)};
    a->v = fuzz_alloc(a->n * sizeof *a->v);
    for (size_t i = 0; i < a->n; i++) a->v[i] = draw_value(p->d, desc.dtype, what);
    return a;
}

array *add_output(problem *p, weir_tensor_desc desc) {
    double n = 1;
    CHECK(p->num_out < MAX_OUT);
    for (uint32_t i = 0; i < desc.rank; i++) n *= (double)desc.dims[i];
    if (desc.rank > WEIR_MAX_RANK || n > 8.0 * MAX_ELEMENTS) return NULL;
    array *a = &p->out[p->num_out++];
    *a = (array){.desc = desc, .n = (size_t)n};
    a->v = fuzz_alloc(a->n * sizeof *a->v);
    a->hi = fuzz_alloc(a->n * sizeof *a->hi);
    return a;
}

void put(array *out, size_t i, double x, double error) {
    out->v[i] = x - error;
    out->hi[i] = x + error;
    if (!isfinite(x)) out->v[i] = out->hi[i] = x;
    if (isnan(error)) put_anything(out, i);
}

void put_anything(array *out, size_t i) {
    out->v[i] = 1;
    out->hi[i] = -1;
}

static int parameters_of(weir_activation activation) {
    switch (activation) {
    case WEIR_ACTIVATION_LEAKY_RELU: case WEIR_ACTIVATION_SWISH: return 1;
    case WEIR_ACTIVATION_CLIP: case WEIR_ACTIVATION_HARDSIGMOID: case WEIR_ACTIVATION_HARDSWISH: return 2;
    default: return 0;
    }
}

void draw_activation(draws *d, weir_activation *activation, float *alpha, float *beta) {
    static const float usual[] = {0, 1, -1, 0.5f, 2, 0.25f, 0.2f, 1 / 6.0f};
    if (draw_once_in(d, 3)) *activation = (weir_activation)draw_int(d, 0, WEIR_ACTIVATION_HARDSWISH);
    if (draw_once_in(d, 60)) *activation = (weir_activation)draw_int(d, 0, WEIR_ACTIVATION_HARDSWISH + 2);
    if (parameters_of(*activation) > 0 || draw_once_in(d, 80)) *alpha = usual[draw_bits(d) % 8];
    if (parameters_of(*activation) > 1 || draw_once_in(d, 80)) *beta = draw_once_in(d, 4) ? INFINITY : usual[draw_bits(d) % 8];
    if (*activation != WEIR_ACTIVATION_CLIP && isinf(*beta)) *beta = 0.5f;
    if (draw_once_in(d, 100)) *alpha = NAN;
}

bool is_activation(weir_activation activation, float alpha, float beta) {
    int parameters = parameters_of(activation);
    if (activation > WEIR_ACTIVATION_HARDSWISH || isnan(alpha) || isnan(beta)) return false;
    return (parameters > 0 || alpha == 0) && (parameters > 1 || beta == 0);
}

static double between(double x, double low, double high) {
    double least = x < low ? low : x;
    return least > high ? high : least;
}

double activated(weir_activation activation, float alpha, float beta, double x, double *error) {
    double y = x, a = alpha, b = beta;
    switch (activation) {
    case WEIR_ACTIVATION_LEAKY_RELU: y = x < 0 ? a * x : x, *error *= fmax(1, fabs(a)); break;
    case WEIR_ACTIVATION_CLIP: return between(x, a, b);
    case WEIR_ACTIVATION_SWISH: y = x / (1 + exp(-a * x)), *error *= 1 + fabs(a); break;
    case WEIR_ACTIVATION_HARDSIGMOID: y = between(a * x + b, 0, 1), *error *= fmax(1, fabs(a)); break;
    case WEIR_ACTIVATION_HARDSWISH:
        y = x * between(a * x + b, 0, 1);
        *error = *error * (1 + fabs(a * x)) + fabs(a) * *error * *error + 1e-6 * fabs(b * x);
        break;
    case WEIR_ACTIVATION_RELU: return x < 0 ? 0 : x;
    case WEIR_ACTIVATION_GELU_ERF: y = x / 2 * erfc(-x / sqrt(2)); break;
    case WEIR_ACTIVATION_GELU_TANH: y = x / 2 * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x))); break;
    case WEIR_ACTIVATION_SIGMOID: y = 1 / (1 + exp(-x)); break;
    case WEIR_ACTIVATION_TANH: y = tanh(x); break;
    default: return x;
    }
    *error = 1.2 * *error + 1e-5 * fabs(y) + 1e-6;
    return y;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Kernels that work on rows: softmax, places of the greatest, reductions, normalisations.
 */

#include <stdbool.h>
#include <weir/ops.h>

#include "fuzz.h"

static uint32_t draw_rank(draws *d) {
    return (uint32_t)(draw_once_in(d, 15) ? draw_int(d, 0, 8) : draw_int(d, 1, 4));
}

static int32_t draw_axis(draws *d, const weir_tensor_desc *desc) {
    if (desc->rank == 0 || draw_once_in(d, 40)) return (int32_t)draw_int(d, -9, 9);
    return (int32_t)draw_int(d, -(int64_t)desc->rank, (int64_t)desc->rank - 1);
}

/* ---- Softmax ----------------------------------------------------------------------------------- */

static void draw_softmax(problem *p) {
    weir_softmax_desc *desc = &p->desc.softmax;
    weir_dtype dtype = draw_once_in(p->d, 40) ? DRAW_OF(p->d, ALL_DTYPES) : DRAW_OF(p->d, FLOATS);
    const array *x = add_input(p, draw_shape(p->d, dtype, draw_rank(p->d), 20000), (contents)draw_int(p->d, SMALL, SPECIAL));
    *desc = (weir_softmax_desc){.struct_size = sizeof *desc, .axis = draw_axis(p->d, &x->desc)};
    if (draw_once_in(p->d, 2)) desc->flags = WEIR_SOFTMAX_LOG;
}

static verdict solve_softmax(problem *p) {
    const weir_softmax_desc *desc = &p->desc.softmax;
    if (p->num_in != 1 || !is_float(p->in[0].desc.dtype)) return REFUSED;
    const array *x = &p->in[0];
    int axis = axis_of(desc->axis, &x->desc);
    if (axis < 0) return REFUSED;
    array *out = add_output(p, x->desc);
    p->in_place = true;
    size_t outer, len, inner;
    split(&x->desc, axis, &outer, &len, &inner);
    for (size_t r = 0; r < outer * inner && out->n > 0; r++) {
        size_t first = r / inner * len * inner + r % inner;
        double most = -INFINITY, sum = 0;
        bool wrong = false;
        for (size_t i = 0; i < len; i++) {
            wrong |= isnan(x->v[first + i * inner]);
            most = fmax(most, x->v[first + i * inner]);
        }
        for (size_t i = 0; i < len; i++) sum += exp(x->v[first + i * inner] - most);
        for (size_t i = 0; i < len; i++) {
            double below = x->v[first + i * inner] - most, y = below - log(sum), error = 1e-5 * (1 + fabs(y));
            if (desc->flags == 0) y = exp(below) / sum, error = (4e-6 + 2.5e-7 * fmin(-below, 120)) * y + 2e-37;
            put(out, first + i * inner, wrong || isinf(most) ? NAN : y, error);
        }
    }
    return RIGHT;
}

static weir_status create_softmax(weir_engine *engine, problem *p, weir_kernel **out) {
    return weir_kernel_create_softmax(engine, &p->desc.softmax, NULL, out);
}

/* The first NaN, or else the first of the greatest (or least). */
static size_t best_of(const double *v, size_t n, size_t step, bool least) {
    size_t best = 0;
    for (size_t i = 0; i < n; i++) {
        if (isnan(v[i * step])) return i;
        if (least ? v[i * step] < v[best * step] : v[i * step] > v[best * step]) best = i;
    }
    return best;
}

/* ---- Reductions -------------------------------------------------------------------------------- */

static bool is_norm(uint32_t op) {
    return op >= WEIR_REDUCE_NORM_MAX && op <= WEIR_REDUCE_NORM_POWER_SUM;
}

static void draw_reduce(problem *p) {
    weir_reduce_desc *desc = &p->desc.reduce;
    uint32_t op = (uint32_t)draw_int(p->d, draw_once_in(p->d, 40) ? 0 : 1, draw_once_in(p->d, 40) ? 13 : 11);
    weir_dtype dtype = draw_once_in(p->d, 3) ? DRAW_OF(p->d, ALL_DTYPES) : DRAW_OF(p->d, FLOATS);
    bool any = op == WEIR_REDUCE_MIN || op == WEIR_REDUCE_MAX || op >= WEIR_REDUCE_ARGMAX;
    array *x = add_input(p, draw_shape(p->d, dtype, draw_rank(p->d), 20000), any ? SPECIAL : (contents)draw_int(p->d, SMALL, NORMAL));
    if (op == WEIR_REDUCE_MUL) {
        static const double factors[] = {1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 2, 0.5};
        for (size_t i = 0; i < x->n; i++) x->v[i] = rounded(dtype, factors[draw_bits(p->d) % 16]);
    }
    *desc = (weir_reduce_desc){.struct_size = sizeof *desc, .op = op};
    if (draw_once_in(p->d, 2)) desc->flags = WEIR_REDUCE_KEEP_DIMS;
    if (draw_once_in(p->d, op >= WEIR_REDUCE_ARGMAX ? 2 : 60)) desc->flags |= WEIR_REDUCE_S64_INDICES;
    desc->num_axes = (uint32_t)draw_int(p->d, 0, x->desc.rank);
    for (uint32_t i = 0, next = 0; i < desc->num_axes; i++) {
        /* In order, with gaps, some of them from the end. */
        next += (uint32_t)draw_int(p->d, 0, x->desc.rank - desc->num_axes + i - next);
        desc->axes[i] = (int32_t)next++ - (draw_once_in(p->d, 3) ? (int32_t)x->desc.rank : 0);
    }
    if (desc->num_axes > 1 && draw_once_in(p->d, 3)) {
        int32_t first = desc->axes[0];
        desc->axes[0] = desc->axes[1];
        desc->axes[1] = first;
    }
    if (draw_once_in(p->d, 30)) desc->axes[draw_int(p->d, 0, 7)] = (int32_t)draw_int(p->d, -9, 9);
    if (is_norm(op)) desc->p = draw_once_in(p->d, 2) ? 1 : 2, desc->eps = draw_once_in(p->d, 2) ? 0 : 0.5f;
    if (draw_once_in(p->d, 60)) desc->p = (float)draw_int(p->d, 0, 3);
    if (draw_once_in(p->d, 60)) desc->eps = draw_once_in(p->d, 2) ? NAN : -1;
    if (draw_once_in(p->d, 60)) desc->num_axes = (uint32_t)draw_int(p->d, 0, 9);
}

/* Of `n` elements, one after the other. */
static double reduction(const weir_reduce_desc *desc, const double *v, size_t n, double *error) {
    double sum = 0, size = 0, product = 1, least = INFINITY, most = -INFINITY, y = 0;
    bool nan = false;
    for (size_t i = 0; i < n; i++) {
        sum += v[i];
        size += desc->p == 2 ? v[i] * v[i] : fabs(v[i]);
        product *= v[i];
        nan |= isnan(v[i]);
        least = fmin(least, v[i]);
        most = fmax(most, v[i]);
    }
    *error = 0;
    switch (desc->op) {
    case WEIR_REDUCE_SUM: *error = 128 * 0x1p-24 * size; return sum;
    case WEIR_REDUCE_MEAN: *error = n == 0 ? 0 : 128 * 0x1p-24 * size / (double)n; return sum / (double)n;
    case WEIR_REDUCE_MIN: return nan ? NAN : least;
    case WEIR_REDUCE_MAX: return nan ? NAN : most;
    case WEIR_REDUCE_MUL: *error = 1e-6 * fabs(product); return product;
    case WEIR_REDUCE_NORM_MAX: case WEIR_REDUCE_NORM_POWER_MAX: y = fmax(size, desc->eps); break;
    default: y = size + desc->eps; break;
    }
    if (desc->op <= WEIR_REDUCE_NORM_SUM && desc->p == 2) y = sqrt(y);
    *error = 128 * 0x1p-24 * y;
    return y;
}

/* Of integers or truth values: exact, modulo 2^64. */
static double whole_reduction(const weir_reduce_desc *desc, weir_dtype dtype, const double *v, size_t n) {
    uint64_t sum = 0, product = 1;
    double least = dtype == WEIR_BOOL ? 1 : INFINITY, most = dtype == WEIR_BOOL ? 0 : -INFINITY;
    for (size_t i = 0; i < n; i++) {
        sum += (uint64_t)whole(v[i]);
        product *= (uint64_t)whole(v[i]);
        least = fmin(least, v[i]);
        most = fmax(most, v[i]);
    }
    switch (desc->op) {
    case WEIR_REDUCE_SUM: return wrapped(dtype, (int64_t)sum);
    case WEIR_REDUCE_MEAN: return n == 0 ? 0 : (double)((int64_t)sum / (int64_t)n);
    case WEIR_REDUCE_MIN: return least;
    case WEIR_REDUCE_MAX: return most;
    default: return wrapped(dtype, (int64_t)product);
    }
}

static verdict solve_reduce(problem *p) {
    const weir_reduce_desc *desc = &p->desc.reduce;
    bool reduced[WEIR_MAX_RANK] = {false}, places = desc->op >= WEIR_REDUCE_ARGMAX;
    if (p->num_in != 1 || desc->op < 1 || desc->op > WEIR_REDUCE_ARGMIN) return REFUSED;
    bool extreme = places || desc->op == WEIR_REDUCE_MIN || desc->op == WEIR_REDUCE_MAX;
    weir_dtype dtype = p->in[0].desc.dtype;
    if (dtype == WEIR_BOOL ? !extreme : is_integer(dtype) && is_norm(desc->op)) return REFUSED;
    if ((desc->flags & WEIR_REDUCE_S64_INDICES) && !places) return REFUSED;
    if (desc->num_axes > WEIR_MAX_RANK || !(desc->eps >= 0)) return REFUSED;
    if (is_norm(desc->op) ? desc->p != 1 && desc->p != 2 : desc->p != 0 || desc->eps != 0) return REFUSED;
    const array *x = &p->in[0];
    for (uint32_t i = 0; i < desc->num_axes; i++) {
        int axis = axis_of(desc->axes[i], &x->desc);
        if (axis < 0 || reduced[axis]) return REFUSED;
        reduced[axis] = true;
    }
    weir_tensor_desc like = make_desc(!places ? dtype : desc->flags & WEIR_REDUCE_S64_INDICES ? WEIR_S64 : WEIR_S32, 0, 0, 0, 0);
    size_t n = 1, count = 1;
    for (uint32_t i = 0; i < x->desc.rank; i++) {
        if (desc->num_axes == 0) reduced[i] = true;
        if (reduced[i]) n *= (size_t)x->desc.dims[i];
        else count *= (size_t)x->desc.dims[i];
        if (!reduced[i]) like.dims[like.rank++] = x->desc.dims[i];
        else if (desc->flags & WEIR_REDUCE_KEEP_DIMS) like.dims[like.rank++] = 1;
    }
    if (places && n == 0) return REFUSED;
    array *out = add_output(p, like);
    if (out == NULL) return EITHER;
    CHECK_EQ(out->n, count);
    if (count == 0) return RIGHT;
    /* What is reduced to one, side by side. */
    double *sorted = fuzz_alloc(count * n * sizeof *sorted);
    size_t *filled = fuzz_alloc(count * sizeof *filled);
    memset(filled, 0, count * sizeof *filled);
    for (size_t i = 0; i < x->n; i++) {
        size_t to = 0, step = 1, rest = i;
        for (uint32_t k = x->desc.rank; k-- > 0;) {
            size_t size = (size_t)x->desc.dims[k];
            if (!reduced[k]) to += rest % size * step, step *= size;
            rest /= size;
        }
        sorted[to * n + filled[to]++] = x->v[i];
    }
    for (size_t i = 0; i < count; i++) {
        double error = 0, y = places ? (double)best_of(sorted + i * n, n, 1, desc->op == WEIR_REDUCE_ARGMIN)
                          : is_float(dtype) ? reduction(desc, sorted + i * n, n, &error)
                                            : whole_reduction(desc, dtype, sorted + i * n, n);
        put(out, i, y, error);
    }
    return RIGHT;
}

static weir_status create_reduce(weir_engine *engine, problem *p, weir_kernel **out) {
    return weir_kernel_create_reduce(engine, &p->desc.reduce, NULL, out);
}

/* ---- Normalisations ---------------------------------------------------------------------------- */

static void draw_norm(problem *p) {
    weir_norm_desc *desc = &p->desc.norm;
    uint32_t op = (uint32_t)draw_int(p->d, draw_once_in(p->d, 40) ? 0 : 1, draw_once_in(p->d, 40) ? 5 : 4);
    weir_dtype type = draw_once_in(p->d, 50) ? DRAW_OF(p->d, ALL_DTYPES) : DRAW_OF(p->d, FLOATS);
    weir_dtype affine = draw_once_in(p->d, 2) ? type : WEIR_F32;
    const array *x = add_input(p, draw_shape(p->d, type, draw_rank(p->d), 20000), NORMAL);
    *desc = (weir_norm_desc){.struct_size = sizeof *desc, .op = op, .epsilon = draw_once_in(p->d, 20) ? 0 : 1e-3f};
    desc->axis = draw_axis(p->d, &x->desc);
    desc->flags = (uint64_t)draw_int(p->d, 0, 3);
    int axis = axis_of(desc->axis, &x->desc);
    int64_t channels = axis < 0 ? 1 : x->desc.dims[axis];
    if (op == WEIR_NORM_GROUP) {
        desc->groups = (uint32_t)draw_int(p->d, 1, 4);
        while (channels % desc->groups != 0) desc->groups--;
    }
    if (draw_once_in(p->d, 40)) desc->groups = (uint32_t)draw_int(p->d, 0, 5);
    if (draw_once_in(p->d, 60)) desc->epsilon = draw_once_in(p->d, 2) ? NAN : -1;
    weir_tensor_desc of_channels = vector_desc(channels), of_rows = of_channels;
    if (op == WEIR_NORM_BATCH) {
        add_input(p, of_channels, NORMAL);
        array *variance = add_input(p, of_channels, NORMAL);
        for (size_t i = 0; i < variance->n; i++) variance->v[i] = rounded(WEIR_F32, fabs(variance->v[i]) + 0.1);
    }
    of_channels.dtype = of_rows.dtype = affine;
    if (axis >= 0) of_rows = shaped(affine, x->desc.rank - (uint32_t)axis, x->desc.dims + axis);
    for (int bit = 1; bit <= 2; bit *= 2) {
        if (desc->flags & (uint64_t)bit) add_input(p, op <= WEIR_NORM_RMS ? of_rows : of_channels, NORMAL);
    }
}

static verdict solve_norm(problem *p) {
    const weir_norm_desc *desc = &p->desc.norm;
    bool batch = desc->op == WEIR_NORM_BATCH, group = desc->op == WEIR_NORM_GROUP;
    size_t scales = (size_t)((desc->flags & 1) != 0), shifts = (size_t)((desc->flags & 2) != 0), first = batch ? 3 : 1;
    if (desc->op < 1 || desc->op > WEIR_NORM_GROUP || !(desc->epsilon >= 0) || group != (desc->groups > 0)) return REFUSED;
    if (p->num_in != first + scales + shifts || !is_float(p->in[0].desc.dtype)) return REFUSED;
    const array *x = &p->in[0];
    int axis = axis_of(desc->axis, &x->desc);
    if (axis < 0) return REFUSED;
    size_t outer, len, inner;
    split(&x->desc, axis, &outer, &len, &inner);
    if (group && len % desc->groups != 0) return REFUSED;
    weir_tensor_desc channels = vector_desc((int64_t)len), affine = channels;
    if (desc->op <= WEIR_NORM_RMS) affine = shaped(WEIR_F32, x->desc.rank - (uint32_t)axis, x->desc.dims + axis);
    for (size_t i = 1; i < p->num_in; i++) {
        /* Scale and shift are floats, or both of the type of x. */
        bool alike = i >= first && p->in[first].desc.dtype == x->desc.dtype;
        if (p->in[i].desc.dtype != (alike ? x->desc.dtype : WEIR_F32)) return REFUSED;
        if (!same_shape(&p->in[i].desc, i < first ? &channels : &affine)) return REFUSED;
    }
    array *out = add_output(p, x->desc);
    p->in_place = true;
    size_t row = len * inner / (group ? desc->groups : 1);
    for (size_t i = 0; i < out->n; i++) {
        size_t channel = i / inner % len;
        double mean = 0, variance = 0;
        if (batch) {
            mean = p->in[1].v[channel], variance = p->in[2].v[channel];
        } else if (i % row > 0) {
            continue; /* with the first one of its row */
        } else {
            const double *v = x->v + i;
            for (size_t k = 0; k < row && desc->op != WEIR_NORM_RMS; k++) mean += v[k] / (double)row;
            for (size_t k = 0; k < row; k++) variance += (v[k] - mean) * (v[k] - mean) / (double)row;
        }
        for (size_t k = i; k < i + (batch ? 1 : row); k++) {
            size_t place = desc->op <= WEIR_NORM_RMS ? k % (len * inner) : k / inner % len;
            double y = (x->v[k] - mean) / sqrt(variance + desc->epsilon), error = 2e-5 * fmax(1, fabs(y));
            double scale = scales ? p->in[first].v[place] : 1, shift = shifts ? p->in[first + scales].v[place] : 0;
            put(out, k, y * scale + shift, error * fabs(scale) + 1e-6 * fabs(shift));
            if (variance + desc->epsilon < 1e-4) put_anything(out, k); /* the last bits of the mean decide */
        }
    }
    return RIGHT;
}

static weir_status create_norm(weir_engine *engine, problem *p, weir_kernel **out) {
    return weir_kernel_create_norm(engine, &p->desc.norm, NULL, out);
}

/* ---- Cumulative sums --------------------------------------------------------------------------- */

static void draw_cumsum(problem *p) {
    weir_cumsum_desc *desc = &p->desc.cumsum;
    weir_dtype dtype = draw_once_in(p->d, 40) ? DRAW_OF(p->d, ALL_DTYPES) : DRAW_OF(p->d, FLOATS, WEIR_S32, WEIR_S64);
    const array *x = add_input(p, draw_shape(p->d, dtype, draw_rank(p->d), 20000), is_integer(dtype) ? SMALL : (contents)draw_int(p->d, SMALL, SPECIAL));
    *desc = (weir_cumsum_desc){.struct_size = sizeof *desc, .axis = draw_axis(p->d, &x->desc), .flags = draw_bits(p->d) & 3};
    if (draw_once_in(p->d, 60)) desc->flags |= 4;
}

static verdict solve_cumsum(problem *p) {
    const weir_cumsum_desc *desc = &p->desc.cumsum;
    if (desc->flags > 3 || p->num_in != 1) return REFUSED;
    const array *x = &p->in[0];
    int axis = axis_of(desc->axis, &x->desc);
    if ((!is_float(x->desc.dtype) && x->desc.dtype != WEIR_S32 && x->desc.dtype != WEIR_S64) || axis < 0) return REFUSED;
    array *out = add_output(p, x->desc);
    p->in_place = true;
    size_t outer, len, inner;
    split(&x->desc, axis, &outer, &len, &inner);
    for (size_t r = 0; r < outer * inner && out->n > 0; r++) {
        double sum = 0;
        for (size_t i = 0; i < len; i++) {
            size_t at = r / inner * len * inner + r % inner;
            at += (desc->flags & WEIR_CUMSUM_REVERSE ? len - 1 - i : i) * inner;
            double with = sum + x->v[at];
            double is = desc->flags & WEIR_CUMSUM_EXCLUSIVE ? sum : with;
            // Halves are rounded to f32 first.
            put(out, at, is, x->desc.dtype == WEIR_F16 || x->desc.dtype == WEIR_BF16 ? 1e-7 * fabs(is) : 0);
            sum = with;
        }
    }
    return RIGHT;
}

static weir_status create_cumsum(weir_engine *engine, problem *p, weir_kernel **out) {
    return weir_kernel_create_cumsum(engine, &p->desc.cumsum, NULL, out);
}

/* ---- The best elements ------------------------------------------------------------------------- */

static void draw_topk(problem *p) {
    weir_topk_desc *desc = &p->desc.topk;
    weir_dtype dtype = draw_once_in(p->d, 3) ? DRAW_OF(p->d, ALL_DTYPES) : DRAW_OF(p->d, FLOATS);
    const array *x = add_input(p, draw_shape(p->d, dtype, draw_rank(p->d), 6000), (contents)draw_int(p->d, SMALL, SPECIAL));
    *desc = (weir_topk_desc){.struct_size = sizeof *desc, .axis = draw_axis(p->d, &x->desc), .flags = draw_bits(p->d) & 3};
    int axis = axis_of(desc->axis, &x->desc);
    int64_t len = axis < 0 ? 1 : x->desc.dims[axis];
    desc->k = draw_once_in(p->d, 3) ? len : draw_int(p->d, 0, len);
    if (desc->k > 300) desc->k = 300;
    if (draw_once_in(p->d, 60)) desc->k = draw_int(p->d, -1, len + 2);
    if (draw_once_in(p->d, 60)) desc->flags |= 4;
}

static bool is_better(double a, double b, bool least) {
    return isnan(a) ? !isnan(b) : least ? a < b : a > b;
}

static verdict solve_topk(problem *p) {
    const weir_topk_desc *desc = &p->desc.topk;
    if (desc->flags > 3 || desc->k < 0 || p->num_in != 1) return REFUSED;
    const array *x = &p->in[0];
    int axis = axis_of(desc->axis, &x->desc);
    if (x->desc.dtype == WEIR_BOOL || axis < 0 || desc->k > x->desc.dims[axis]) return REFUSED;
    weir_tensor_desc like = x->desc;
    like.dims[axis] = desc->k;
    array *values = add_output(p, like);
    like.dtype = desc->flags & WEIR_TOPK_S64_INDICES ? WEIR_S64 : WEIR_S32;
    array *places = add_output(p, like);
    size_t outer, len, inner, k = (size_t)desc->k;
    split(&x->desc, axis, &outer, &len, &inner);
    bool *taken = fuzz_alloc(len);
    for (size_t r = 0; r < outer * inner && values->n > 0; r++) {
        const double *v = x->v + r / inner * len * inner + r % inner;
        memset(taken, 0, len);
        for (size_t i = 0; i < k; i++) {
            size_t best = len;
            for (size_t j = 0; j < len; j++) {
                if (!taken[j] && (best == len || is_better(v[j * inner], v[best * inner], desc->flags & WEIR_TOPK_LEAST))) best = j;
            }
            taken[best] = true;
            put(values, (r / inner * k + i) * inner + r % inner, v[best * inner], 0);
            put(places, (r / inner * k + i) * inner + r % inner, (double)best, 0);
        }
    }
    return RIGHT;
}

static weir_status create_topk(weir_engine *engine, problem *p, weir_kernel **out) {
    return weir_kernel_create_topk(engine, &p->desc.topk, NULL, out);
}

/* ---- Normalisation by neighbouring channels ---------------------------------------------------- */

static void draw_lrn(problem *p) {
    weir_lrn_desc *desc = &p->desc.lrn;
    weir_dtype dtype = draw_once_in(p->d, 40) ? DRAW_OF(p->d, ALL_DTYPES) : DRAW_OF(p->d, FLOATS);
    uint32_t rank = draw_once_in(p->d, 20) ? draw_rank(p->d) : (uint32_t)draw_int(p->d, 2, 5);
    add_input(p, draw_shape(p->d, dtype, rank, 20000), draw_once_in(p->d, 2) ? SMALL : NORMAL);
    static const float betas[] = {0.75f, 0.5f, 1, 0.3f, 2, 0, -0.5f};
    *desc = (weir_lrn_desc){.struct_size = sizeof *desc, .size = draw_once_in(p->d, 3) ? 5 : draw_int(p->d, 1, 12)};
    desc->alpha = (float)draw_unit(p->d), desc->beta = betas[draw_int(p->d, 0, 6)], desc->bias = (float)draw_unit(p->d) + 0.2f;
    if (draw_once_in(p->d, 60)) desc->size = draw_int(p->d, -1, 0);
    if (draw_once_in(p->d, 60)) desc->beta = NAN;
}

static verdict solve_lrn(problem *p) {
    const weir_lrn_desc *desc = &p->desc.lrn;
    if (desc->size < 1 || isnan(desc->beta) || p->num_in != 1) return REFUSED;
    const array *x = &p->in[0];
    if (!is_float(x->desc.dtype) || x->desc.rank < 2) return REFUSED;
    array *out = add_output(p, x->desc);
    size_t outer, channels, inner;
    split(&x->desc, 1, &outer, &channels, &inner);
    for (size_t i = 0; i < out->n; i++) {
        int64_t channel = (int64_t)(i / inner % channels), first = channel - (desc->size - 1) / 2;
        double sum = 0;
        for (int64_t c = first; c < first + desc->size; c++) {
            if (c < 0 || c >= (int64_t)channels) continue;
            double v = x->v[i + (size_t)c * inner - (size_t)channel * inner];
            sum += v * v;
        }
        double y = x->v[i] / pow((double)desc->bias + (double)desc->alpha / (double)desc->size * sum, (double)desc->beta);
        put(out, i, y, 4e-6 * fabs(y));
    }
    return RIGHT;
}

static weir_status create_lrn(weir_engine *engine, problem *p, weir_kernel **out) {
    return weir_kernel_create_lrn(engine, &p->desc.lrn, NULL, out);
}

/* ---- Non-maximum suppression ------------------------------------------------------------------- */

static void draw_nms(problem *p) {
    weir_nms_desc *desc = &p->desc.nms;
    *desc = (weir_nms_desc){.struct_size = sizeof *desc, .flags = draw_bits(p->d) & 3, .most_boxes = draw_int(p->d, 0, 12)};
    desc->most_overlap = (float)draw_int(p->d, 0, 8) / 8;
    desc->least_score = (float)draw_int(p->d, -16, 16) / 4;
    if (draw_once_in(p->d, 60)) desc->most_boxes = -1;
    if (draw_once_in(p->d, 60)) desc->most_overlap = NAN;
    if (draw_once_in(p->d, 60)) desc->flags |= 8;
    int64_t images = draw_int(p->d, 0, 3), classes = draw_int(p->d, 0, 4), boxes = draw_int(p->d, 0, draw_once_in(p->d, 6) ? 200 : 20);
    /* Whole numbers and halves: what f32 computes of them is as good as exact. */
    add_input(p, shaped(WEIR_F32, 3, (int64_t[]){images, boxes, 4}), SMALL);
    add_input(p, shaped(WEIR_F32, 3, (int64_t[]){images, classes, boxes}), draw_once_in(p->d, 4) ? SPECIAL : SMALL);
}

/* Whether two boxes overlap too much; `near` is set if rounding may decide. */
static bool is_over(const weir_nms_desc *desc, const double *a, const double *b, bool *near) {
    double lo[2][2], hi[2][2], area[2];
    for (int i = 0; i < 2; i++) {
        const double *of = i == 0 ? a : b;
        for (int k = 0; k < 2; k++) {
            bool centers = desc->flags & WEIR_NMS_CENTERS;
            lo[i][k] = centers ? of[1 - k] - of[3 - k] / 2 : fmin(of[k], of[k + 2]);
            hi[i][k] = centers ? of[1 - k] + of[3 - k] / 2 : fmax(of[k], of[k + 2]);
        }
        area[i] = (hi[i][0] - lo[i][0]) * (hi[i][1] - lo[i][1]);
    }
    double inside = 1;
    for (int k = 0; k < 2; k++) inside *= fmax(fmin(hi[0][k], hi[1][k]) - fmax(lo[0][k], lo[1][k]), 0);
    if (inside <= 0 || area[0] <= 0 || area[1] <= 0) return false;
    double overlap = inside / (area[0] + area[1] - inside);
    *near |= fabs(overlap - (double)desc->most_overlap) < 1e-5;
    return overlap > (double)desc->most_overlap;
}

static verdict solve_nms(problem *p) {
    const weir_nms_desc *desc = &p->desc.nms;
    if (desc->flags > 3 || desc->most_boxes < 0 || isnan(desc->most_overlap) || p->num_in != 2) return REFUSED;
    const array *boxes = &p->in[0], *scores = &p->in[1];
    if (boxes->desc.rank != 3 || boxes->desc.dtype != WEIR_F32 || boxes->desc.dims[2] != 4) return REFUSED;
    int64_t images = boxes->desc.dims[0], n = boxes->desc.dims[1];
    if (scores->desc.rank != 3 || !is_shape(&scores->desc, WEIR_F32, 3, images, scores->desc.dims[1], n)) return REFUSED;
    int64_t classes = scores->desc.dims[1], most = desc->most_boxes == 0 || desc->most_boxes > n ? n : desc->most_boxes;
    array *out = add_output(p, shaped(WEIR_S64, 2, (int64_t[]){images * classes * most, 3}));
    if (out == NULL) return EITHER;
    array *count = add_output(p, shaped(WEIR_S64, 1, (int64_t[]){1}));
    int64_t found = 0, *kept = fuzz_alloc((size_t)(n + 1) * sizeof *kept);
    bool *done = fuzz_alloc((size_t)n + 1), near = false;
    for (size_t i = 0; i < out->n; i++) put(out, i, -1, 0);
    for (int64_t class = 0; class < images * classes; class++) {
        const double *score = scores->v + class * n, *box = boxes->v + class / classes * n * 4;
        int64_t chosen = 0;
        for (int64_t i = 0; i < n; i++) done[i] = isnan(score[i]) || ((desc->flags & WEIR_NMS_SCORE_BOUND) && !(score[i] > (double)desc->least_score));
        while (chosen < most) {
            int64_t best = -1;
            for (int64_t i = 0; i < n; i++) if (!done[i] && (best < 0 || score[i] > score[best])) best = i;
            if (best < 0) break;
            done[best] = true;
            bool over = false;
            for (int64_t i = 0; i < chosen; i++) over |= is_over(desc, box + best * 4, box + kept[i] * 4, &near);
            if (over) continue;
            kept[chosen++] = best;
            put(out, (size_t)found * 3, (double)(class / classes), 0);
            put(out, (size_t)found * 3 + 1, (double)(class % classes), 0);
            put(out, (size_t)found++ * 3 + 2, (double)best, 0);
        }
    }
    put(count, 0, (double)found, 0);
    for (size_t i = 0; i < out->n && near; i++) put_anything(out, i);
    if (near) put_anything(count, 0);
    return RIGHT;
}

static weir_status create_nms(weir_engine *engine, problem *p, weir_kernel **out) {
    return weir_kernel_create_nms(engine, &p->desc.nms, NULL, out);
}

#define FAMILY(name) {#name, draw_##name, solve_##name, create_##name}
const family rows_families[] = {FAMILY(softmax), FAMILY(reduce), FAMILY(norm), FAMILY(lrn), FAMILY(cumsum), FAMILY(topk), FAMILY(nms),
                                {NULL, NULL, NULL, NULL}};

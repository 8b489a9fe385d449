/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Kernels that move elements and compute nothing.
 */

#include <stdbool.h>
#include <weir/ops.h>

#include "fuzz.h"

/* Element i of a shape as places in each dimension, and back. */
static void places_of(const weir_tensor_desc *desc, size_t i, int64_t *places) {
    for (uint32_t k = desc->rank; k-- > 0;) {
        places[k] = (int64_t)(i % (size_t)desc->dims[k]);
        i /= (size_t)desc->dims[k];
    }
}

static size_t index_of(const weir_tensor_desc *desc, const int64_t *places) {
    size_t index = 0;
    for (uint32_t k = 0; k < desc->rank; k++) index = index * (size_t)desc->dims[k] + (size_t)places[k];
    return index;
}

static array *add_any(problem *p, uint32_t rank) {
    return add_input(p, draw_shape(p->d, DRAW_OF(p->d, ALL_DTYPES), rank, 20000), SPECIAL);
}

static uint32_t draw_rank(draws *d) {
    return (uint32_t)(draw_once_in(d, 10) ? draw_int(d, 0, 8) : draw_int(d, 1, 5));
}

/* ---- Transposition ----------------------------------------------------------------------------- */

static void draw_transpose(problem *p) {
    weir_transpose_desc *desc = &p->desc.transpose;
    const array *x = add_any(p, draw_rank(p->d));
    *desc = (weir_transpose_desc){.struct_size = sizeof *desc, .rank = draw_once_in(p->d, 6) ? 0 : x->desc.rank};
    for (uint32_t i = 0; i < desc->rank; i++) desc->permutation[i] = (int32_t)i;
    for (uint32_t i = desc->rank; i > 1; i--) {
        uint32_t j = (uint32_t)draw_int(p->d, 0, i - 1);
        int32_t other = desc->permutation[i - 1];
        desc->permutation[i - 1] = desc->permutation[j];
        desc->permutation[j] = other;
    }
    if (draw_once_in(p->d, 40)) desc->permutation[draw_int(p->d, 0, 7)] = (int32_t)draw_int(p->d, -1, 8);
    if (draw_once_in(p->d, 60)) desc->rank = (uint32_t)draw_int(p->d, 0, 9);
}

static verdict solve_transpose(problem *p) {
    const weir_transpose_desc *desc = &p->desc.transpose;
    const array *x = &p->in[0];
    uint32_t seen = 0, rank = desc->rank;
    if (p->num_in != 1 || rank > WEIR_MAX_RANK) return REFUSED;
    for (uint32_t i = 0; i < rank; i++) {
        if (desc->permutation[i] < 0 || desc->permutation[i] >= (int32_t)rank) return REFUSED;
        seen |= 1u << desc->permutation[i];
    }
    if (seen != (1u << rank) - 1 || (rank > 0 && rank != x->desc.rank)) return REFUSED;
    weir_tensor_desc like = x->desc;
    uint32_t order[WEIR_MAX_RANK];
    for (uint32_t i = 0; i < like.rank; i++) {
        order[i] = rank == 0 ? like.rank - 1 - i : (uint32_t)desc->permutation[i];
        like.dims[i] = x->desc.dims[order[i]];
    }
    array *out = add_output(p, like);
    for (size_t i = 0; i < out->n; i++) {
        int64_t to[WEIR_MAX_RANK], from[WEIR_MAX_RANK];
        places_of(&like, i, to);
        for (uint32_t k = 0; k < like.rank; k++) from[order[k]] = to[k];
        put(out, i, x->v[index_of(&x->desc, from)], 0);
    }
    return RIGHT;
}

static weir_status create_transpose(weir_engine *engine, problem *p, weir_kernel **out) {
    return weir_kernel_create_transpose(engine, &p->desc.transpose, NULL, out);
}

/* ---- Concatenation ----------------------------------------------------------------------------- */

static void draw_concat(problem *p) {
    weir_concat_desc *desc = &p->desc.concat;
    uint32_t rank = draw_rank(p->d);
    int count = (int)draw_int(p->d, 1, 5);
    weir_tensor_desc like = draw_shape(p->d, DRAW_OF(p->d, ALL_DTYPES), rank, 5000);
    *desc = (weir_concat_desc){.struct_size = sizeof *desc, .num_inputs = (uint32_t)count};
    desc->axis = (int32_t)(rank == 0 ? 0 : draw_int(p->d, -(int64_t)rank, (int64_t)rank - 1));
    for (int i = 0; i < count; i++) {
        if (rank > 0) like.dims[axis_of(desc->axis, &like)] = draw_size(p->d, 12);
        add_input(p, like, SPECIAL);
    }
    if (draw_once_in(p->d, 40)) desc->axis = (int32_t)draw_int(p->d, -10, 10);
    if (draw_once_in(p->d, 40)) desc->num_inputs = (uint32_t)draw_int(p->d, 0, 66);
}

static verdict solve_concat(problem *p) {
    const weir_concat_desc *desc = &p->desc.concat;
    if (p->num_in == 0 || desc->num_inputs != p->num_in) return REFUSED;
    weir_tensor_desc like = p->in[0].desc;
    int axis = axis_of(desc->axis, &like);
    if (axis < 0) return REFUSED;
    for (size_t k = 1; k < p->num_in; k++) {
        weir_tensor_desc other = p->in[k].desc;
        int64_t along = other.rank > (uint32_t)axis ? other.dims[axis] : 0;
        other.dims[axis] = p->in[0].desc.dims[axis];
        if (other.dtype != like.dtype || !same_shape(&other, &p->in[0].desc)) return REFUSED;
        like.dims[axis] += along;
    }
    array *out = add_output(p, like);
    if (out == NULL) return EITHER;
    for (size_t i = 0; i < out->n; i++) {
        int64_t places[WEIR_MAX_RANK];
        size_t k = 0;
        places_of(&like, i, places);
        while (places[axis] >= p->in[k].desc.dims[axis]) places[axis] -= p->in[k++].desc.dims[axis];
        put(out, i, p->in[k].v[index_of(&p->in[k].desc, places)], 0);
    }
    return RIGHT;
}

static weir_status create_concat(weir_engine *engine, problem *p, weir_kernel **out) {
    return weir_kernel_create_concat(engine, &p->desc.concat, NULL, out);
}

/* ---- Slice ------------------------------------------------------------------------------------- */

static void draw_slice(problem *p) {
    weir_slice_desc *desc = &p->desc.slice;
    const array *x = add_any(p, draw_rank(p->d));
    *desc = (weir_slice_desc){.struct_size = sizeof *desc, .rank = x->desc.rank};
    for (uint32_t i = 0; i < 8; i++) {
        int64_t n = i < x->desc.rank ? x->desc.dims[i] : 3;
        desc->begin[i] = draw_int(p->d, -n - 2, n + 2);
        desc->end[i] = draw_int(p->d, -n - 2, n + 2);
        desc->step[i] = draw_once_in(p->d, 3) ? 1 : draw_int(p->d, -3, 3);
        if (draw_once_in(p->d, 3)) desc->begin[i] = 0, desc->end[i] = INT64_MAX, desc->step[i] = 1;
        if (draw_once_in(p->d, 8)) desc->begin[i] = INT64_MAX, desc->end[i] = INT64_MIN, desc->step[i] = -1;
        if (draw_once_in(p->d, 60)) desc->step[i] = draw_once_in(p->d, 2) ? INT64_MAX : INT64_MIN;
    }
    if (draw_once_in(p->d, 40)) desc->rank = (uint32_t)draw_int(p->d, 0, 9);
}

static int64_t clamp(int64_t x, int64_t least, int64_t most) {
    return x < least ? least : x > most ? most : x;
}

static verdict solve_slice(problem *p) {
    const weir_slice_desc *desc = &p->desc.slice;
    if (p->num_in != 1 || desc->rank != p->in[0].desc.rank) return REFUSED;
    const array *x = &p->in[0];
    weir_tensor_desc like = x->desc;
    int64_t begin[WEIR_MAX_RANK];
    for (uint32_t i = 0; i < like.rank; i++) {
        int64_t n = x->desc.dims[i], step = desc->step[i] == 0 ? 1 : desc->step[i], count = 0;
        int64_t b = desc->begin[i] < 0 && desc->begin[i] >= -n ? desc->begin[i] + n : desc->begin[i];
        int64_t e = desc->end[i] < 0 && desc->end[i] >= -n ? desc->end[i] + n : desc->end[i];
        if (step > 0) {
            b = clamp(b, 0, n), e = clamp(e, 0, n);
            for (int64_t at = b; at < e; count++) at = step > n ? n : at + step;
        } else {
            b = clamp(b, -1, n - 1), e = clamp(e, -1, n - 1);
            for (int64_t at = b; at > e; count++) at = step < -n ? -1 : at + step;
        }
        begin[i] = b;
        like.dims[i] = count;
    }
    array *out = add_output(p, like);
    for (size_t i = 0; i < out->n; i++) {
        int64_t places[WEIR_MAX_RANK];
        places_of(&like, i, places);
        for (uint32_t k = 0; k < like.rank; k++) {
            places[k] = places[k] == 0 ? begin[k] : begin[k] + places[k] * (desc->step[k] == 0 ? 1 : desc->step[k]);
        }
        put(out, i, x->v[index_of(&x->desc, places)], 0);
    }
    return RIGHT;
}

static weir_status create_slice(weir_engine *engine, problem *p, weir_kernel **out) {
    return weir_kernel_create_slice(engine, &p->desc.slice, NULL, out);
}

/* ---- Padding ----------------------------------------------------------------------------------- */

static void draw_pad(problem *p) {
    static const double values[] = {0, 1, -1, 0.1, 200, -100, INFINITY, -0.0};
    weir_pad_desc *desc = &p->desc.pad;
    const array *x = add_input(p, draw_shape(p->d, DRAW_OF(p->d, ALL_DTYPES), draw_rank(p->d), 1500), SPECIAL);
    *desc = (weir_pad_desc){.struct_size = sizeof *desc, .rank = x->desc.rank, .mode = (weir_pad_mode)draw_int(p->d, 0, 2)};
    for (uint32_t i = 0; i < 8; i++) {
        int64_t most = x->desc.rank > 3 ? 2 : 6;
        if (desc->mode == WEIR_PAD_REFLECT && i < x->desc.rank && !draw_once_in(p->d, 30)) {
            most = x->desc.dims[i] < 1 ? 0 : x->desc.dims[i] <= most ? x->desc.dims[i] - 1 : most;
        }
        if (draw_once_in(p->d, 2)) desc->before[i] = draw_int(p->d, 0, most), desc->after[i] = draw_int(p->d, 0, most);
    }
    if (desc->mode == WEIR_PAD_CONSTANT) desc->value = values[draw_bits(p->d) % (sizeof values / sizeof *values)];
    if (draw_once_in(p->d, 60)) desc->before[draw_int(p->d, 0, 7)] = -1;
    if (draw_once_in(p->d, 60)) desc->mode = 3;
    if (draw_once_in(p->d, 40)) desc->rank = (uint32_t)draw_int(p->d, 0, 9);
}

static verdict solve_pad(problem *p) {
    const weir_pad_desc *desc = &p->desc.pad;
    if (p->num_in != 1 || desc->rank != p->in[0].desc.rank || desc->mode > WEIR_PAD_EDGE) return REFUSED;
    const array *x = &p->in[0];
    weir_tensor_desc like = x->desc;
    bool margin = false, nothing_to_copy = false;
    for (uint32_t i = 0; i < like.rank; i++) {
        int64_t n = x->desc.dims[i], before = desc->before[i], after = desc->after[i];
        if (before < 0 || after < 0) return REFUSED;
        if (desc->mode == WEIR_PAD_REFLECT && (before > 0 || after > 0) && (before >= n || after >= n)) return REFUSED;
        if (before > 0 || after > 0) margin = true, nothing_to_copy |= n == 0;
        like.dims[i] = n + before + after;
    }
    if (desc->mode == WEIR_PAD_EDGE && nothing_to_copy) return REFUSED;
    bool fits = rounded(like.dtype, desc->value) == desc->value || is_float(like.dtype);
    if (desc->mode == WEIR_PAD_CONSTANT && !fits) return margin ? REFUSED : EITHER;
    array *out = add_output(p, like);
    if (out == NULL) return EITHER;
    for (size_t i = 0; i < out->n; i++) {
        int64_t places[WEIR_MAX_RANK];
        bool outside = false;
        places_of(&like, i, places);
        for (uint32_t k = 0; k < like.rank; k++) {
            int64_t n = x->desc.dims[k], at = places[k] - desc->before[k];
            if (at < 0 || at >= n) outside = true;
            if (desc->mode == WEIR_PAD_EDGE) at = clamp(at, 0, n - 1);
            if (desc->mode == WEIR_PAD_REFLECT) at = at < 0 ? -at : at >= n ? 2 * (n - 1) - at : at;
            places[k] = at;
        }
        double value = desc->mode == WEIR_PAD_CONSTANT && outside ? desc->value : x->v[index_of(&x->desc, places)];
        put(out, i, value, 0);
    }
    return RIGHT;
}

static weir_status create_pad(weir_engine *engine, problem *p, weir_kernel **out) {
    return weir_kernel_create_pad(engine, &p->desc.pad, NULL, out);
}

/* ---- Another shape ----------------------------------------------------------------------------- */

static void draw_reshape(problem *p) {
    weir_reshape_desc *desc = &p->desc.reshape;
    const array *x = add_any(p, draw_rank(p->d));
    *desc = (weir_reshape_desc){.struct_size = sizeof *desc};
    /* Divisors of what is left, and then the rest. */
    int64_t left = (int64_t)x->n;
    desc->rank = (uint32_t)draw_int(p->d, x->n == 1 ? 0 : 1, 5);
    for (uint32_t i = 0; i < desc->rank; i++) {
        int64_t size = draw_int(p->d, 1, 8);
        if (left > 0) while (left % size != 0) size--;
        desc->dims[i] = i + 1 == desc->rank ? left : size;
        if (left > 0) left /= size;
    }
    if (desc->rank > 0 && draw_once_in(p->d, 3)) desc->dims[draw_int(p->d, 0, desc->rank - 1)] = WEIR_RESHAPE_INFER;
    if (draw_once_in(p->d, 3)) {
        /* The first dimensions, and the rest in one. */
        desc->rank = x->desc.rank + (uint32_t)draw_int(p->d, 0, 1);
        for (uint32_t i = 0; i < desc->rank && i < WEIR_MAX_RANK; i++) {
            desc->dims[i] = i + 1 == desc->rank ? WEIR_RESHAPE_INFER : WEIR_RESHAPE_KEEP;
        }
    }
    if (draw_once_in(p->d, 20)) desc->dims[draw_int(p->d, 0, 7)] = draw_int(p->d, -3, 9);
    if (draw_once_in(p->d, 40)) desc->rank = (uint32_t)draw_int(p->d, 0, 9);
}

static verdict solve_reshape(problem *p) {
    const weir_reshape_desc *desc = &p->desc.reshape;
    if (p->num_in != 1 || desc->rank > WEIR_MAX_RANK) return REFUSED;
    const array *x = &p->in[0];
    weir_tensor_desc like = shaped(x->desc.dtype, desc->rank, desc->dims);
    int open = -1;
    /* Elements of what is not kept. */
    size_t from = 1, others = 1;
    for (uint32_t i = 0; i < like.rank; i++) {
        int64_t dim = like.dims[i];
        bool keeps = dim == WEIR_RESHAPE_KEEP;
        if (dim < WEIR_RESHAPE_KEEP || (dim == WEIR_RESHAPE_INFER && open >= 0) || (keeps && i >= x->desc.rank)) return REFUSED;
        if (dim == WEIR_RESHAPE_INFER) open = (int)i;
        else if (!keeps) others *= (size_t)dim;
        if (keeps) like.dims[i] = x->desc.dims[i];
        if (i < x->desc.rank && !keeps) from *= (size_t)x->desc.dims[i];
    }
    for (uint32_t i = like.rank; i < x->desc.rank; i++) from *= (size_t)x->desc.dims[i];
    if (open >= 0 ? others == 0 || from % others != 0 : others != from) return REFUSED;
    if (open >= 0) like.dims[open] = (int64_t)(from / others);
    p->in_place = true;
    array *out = add_output(p, like);
    for (size_t i = 0; i < out->n; i++) put(out, i, x->v[i], 0);
    return RIGHT;
}

static weir_status create_reshape(weir_engine *engine, problem *p, weir_kernel **out) {
    return weir_kernel_create_reshape(engine, &p->desc.reshape, NULL, out);
}

/* ---- Rows by their numbers --------------------------------------------------------------------- */

static void draw_gather(problem *p) {
    weir_gather_desc *desc = &p->desc.gather;
    const array *table = add_input(p, draw_shape(p->d, DRAW_OF(p->d, ALL_DTYPES), draw_rank(p->d), 2000), SPECIAL);
    uint32_t rank = table->desc.rank;
    *desc = (weir_gather_desc){.struct_size = sizeof *desc, .flags = draw_once_in(p->d, 2) ? WEIR_GATHER_FROM_END : 0};
    desc->axis = (int32_t)(rank == 0 ? 0 : draw_int(p->d, -(int64_t)rank, (int64_t)rank - 1));
    int64_t n = rank == 0 ? 1 : table->desc.dims[axis_of(desc->axis, &table->desc)];
    uint32_t most = rank > 5 ? 2 : 3;
    array *indices = add_input(p, draw_shape(p->d, DRAW_OF(p->d, WEIR_S32, WEIR_S64), (uint32_t)draw_int(p->d, 0, most), 40), SMALL);
    for (size_t i = 0; i < indices->n; i++) indices->v[i] = n > 0 ? (double)draw_int(p->d, desc->flags ? -n : 0, n - 1) : 0;
    if (indices->n > 0 && draw_once_in(p->d, 12)) {
        indices->v[draw_bits(p->d) % indices->n] = draw_once_in(p->d, 2) ? (double)(desc->flags ? -n - 1 : -1) : (double)draw_int(p->d, n, INT32_MAX);
    }
    if (draw_once_in(p->d, 40)) desc->axis = (int32_t)draw_int(p->d, -10, 10);
}

static verdict solve_gather(problem *p) {
    const weir_gather_desc *desc = &p->desc.gather;
    if (p->num_in != 2 || (p->in[1].desc.dtype != WEIR_S32 && p->in[1].desc.dtype != WEIR_S64)) return REFUSED;
    const array *table = &p->in[0], *indices = &p->in[1];
    int axis = axis_of(desc->axis, &table->desc);
    if (axis < 0 || table->desc.rank - 1 + indices->desc.rank > WEIR_MAX_RANK) return REFUSED;
    weir_tensor_desc like = make_desc(table->desc.dtype, 0, 0, 0, 0);
    for (int i = 0; i < axis; i++) like.dims[like.rank++] = table->desc.dims[i];
    for (uint32_t i = 0; i < indices->desc.rank; i++) like.dims[like.rank++] = indices->desc.dims[i];
    for (uint32_t i = (uint32_t)axis + 1; i < table->desc.rank; i++) like.dims[like.rank++] = table->desc.dims[i];
    array *out = add_output(p, like);
    if (out == NULL) return EITHER;
    size_t outer, len, inner;
    split(&table->desc, axis, &outer, &len, &inner);
    for (size_t i = 0; i < indices->n; i++) {
        double least = desc->flags ? -(double)len : 0;
        if (indices->v[i] >= least && indices->v[i] < (double)len) continue;
        return out->n == 0 ? EITHER : FAILS;
    }
    for (size_t o = 0; o < outer; o++) {
        for (size_t i = 0; i < indices->n; i++) {
            for (size_t k = 0; k < inner; k++) {
                double at = indices->v[i] < 0 ? indices->v[i] + (double)len : indices->v[i];
                put(out, (o * indices->n + i) * inner + k, table->v[(o * len + (size_t)at) * inner + k], 0);
            }
        }
    }
    return RIGHT;
}

static weir_status create_gather(weir_engine *engine, problem *p, weir_kernel **out) {
    return weir_kernel_create_gather(engine, &p->desc.gather, NULL, out);
}

#define FAMILY(name) {#name, draw_##name, solve_##name, create_##name}
const family moving_families[] = {FAMILY(transpose), FAMILY(concat), FAMILY(slice), FAMILY(pad), FAMILY(reshape),
                                  FAMILY(gather), {NULL, NULL, NULL, NULL}};

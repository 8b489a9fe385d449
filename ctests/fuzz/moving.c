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

/* ---- Copies side by side ------------------------------------------------------------------------ */

static void draw_tile(problem *p) {
    weir_tile_desc *desc = &p->desc.tile;
    int64_t most = draw_once_in(p->d, 6) ? 5000 : 200;
    const array *x = add_input(p, draw_shape(p->d, DRAW_OF(p->d, ALL_DTYPES), draw_rank(p->d), most), SPECIAL);
    *desc = (weir_tile_desc){.struct_size = sizeof *desc, .mode = draw_once_in(p->d, 2) ? WEIR_TILE_EXPAND : WEIR_TILE_REPEAT};
    desc->rank = draw_once_in(p->d, 3) ? (uint32_t)draw_int(p->d, 0, 8) : x->desc.rank;
    for (uint32_t i = 0; i < desc->rank; i++) {
        int64_t own = i + x->desc.rank < desc->rank ? 1 : x->desc.dims[i + x->desc.rank - desc->rank];
        int64_t count = draw_once_in(p->d, 20) ? 0 : draw_once_in(p->d, 8) ? draw_int(p->d, 1, 90) : draw_int(p->d, 1, 4);
        if (draw_once_in(p->d, 2)) desc->counts[i] = 1;
        else if (desc->mode == WEIR_TILE_REPEAT || own == 1) desc->counts[i] = count;
        else desc->counts[i] = draw_once_in(p->d, 2) ? own : -1;
    }
    if (draw_once_in(p->d, 30)) desc->counts[draw_int(p->d, 0, 7)] = draw_int(p->d, -2, 5);
    if (draw_once_in(p->d, 60)) desc->mode = 2;
    if (draw_once_in(p->d, 60)) desc->rank = 9;
}

static verdict solve_tile(problem *p) {
    const weir_tile_desc *desc = &p->desc.tile;
    if (p->num_in != 1 || desc->rank > WEIR_MAX_RANK || desc->mode > WEIR_TILE_EXPAND) return REFUSED;
    const array *x = &p->in[0];
    uint32_t rank = x->desc.rank > desc->rank ? x->desc.rank : desc->rank, more = rank - x->desc.rank;
    weir_tensor_desc like = make_desc(x->desc.dtype, rank, 0, 0, 0);
    for (uint32_t k = 0; k < rank; k++) {
        int64_t own = k < more ? 1 : x->desc.dims[k - more];
        int64_t count = k < rank - desc->rank ? 1 : desc->counts[k - (rank - desc->rank)];
        if (count < (desc->mode == WEIR_TILE_EXPAND ? -1 : 0)) return REFUSED;
        if (desc->mode == WEIR_TILE_REPEAT) like.dims[k] = own * count;
        else if (count == 1 || count == -1 || count == own) like.dims[k] = own;
        else if (own == 1) like.dims[k] = count;
        else return REFUSED;
    }
    array *out = add_output(p, like);
    if (out == NULL) return EITHER;
    for (size_t i = 0; i < out->n; i++) {
        int64_t to[WEIR_MAX_RANK], from[WEIR_MAX_RANK];
        places_of(&like, i, to);
        for (uint32_t k = more; k < rank; k++) from[k - more] = to[k] % x->desc.dims[k - more];
        put(out, i, x->v[index_of(&x->desc, from)], 0);
    }
    return RIGHT;
}

static weir_status create_tile(weir_engine *engine, problem *p, weir_kernel **out) {
    return weir_kernel_create_tile(engine, &p->desc.tile, NULL, out);
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

/* ---- Elements and blocks by their places ------------------------------------------------------- */

/* An index of a dimension, rarely one outside of it. */
static double draw_index(problem *p, int64_t size, bool from_end) {
    if (size == 0) return 0;
    if (!draw_once_in(p->d, 2000)) return (double)draw_int(p->d, from_end ? -size : 0, size - 1);
    return draw_once_in(p->d, 2) ? (double)(from_end ? -size - 1 : -1) : (double)draw_int(p->d, size, INT32_MAX);
}

/* Whether all indices lie in the dimensions from `first` on, `depth` in turn; counts them from the start. */
static bool count_from_start(array *indices, const weir_tensor_desc *table, uint32_t first, uint32_t depth, bool from_end) {
    double *places = fuzz_alloc(indices->n * sizeof *places);
    for (size_t i = 0; i < indices->n; i++) {
        double size = (double)table->dims[first + i % depth], index = indices->v[i];
        if (index < (from_end ? -size : 0) || index >= size) return false;
        places[i] = index < 0 ? index + size : index;
    }
    indices->v = places;
    return true;
}

/* Whether a tensor may be the indices along an axis of another one. */
static bool lies_within(const weir_tensor_desc *indices, const weir_tensor_desc *x, int axis) {
    if ((indices->dtype != WEIR_S32 && indices->dtype != WEIR_S64) || indices->rank != x->rank) return false;
    for (uint32_t i = 0; i < x->rank; i++) {
        if ((int)i != axis && indices->dims[i] > x->dims[i]) return false;
    }
    return true;
}

/* Indices of each element's place along an axis. */
static array *add_element_indices(problem *p, const weir_tensor_desc *x, int32_t along, bool from_end) {
    int axis = axis_of(along, x);
    weir_tensor_desc like = shaped(DRAW_OF(p->d, WEIR_S32, WEIR_S64), x->rank, x->dims);
    for (uint32_t i = 0; i < like.rank; i++) {
        if ((int)i == axis) like.dims[i] = draw_int(p->d, 0, 1 + 300 / (int64_t)(elements(x) + 1) + like.dims[i]);
        else if (draw_once_in(p->d, 3)) like.dims[i] = draw_int(p->d, 0, like.dims[i]);
    }
    array *indices = add_input(p, like, SMALL);
    int64_t size = axis < 0 ? 1 : x->dims[axis];
    for (size_t i = 0; i < indices->n; i++) indices->v[i] = draw_index(p, size, from_end);
    return indices;
}

/* Indices [..., Q] of blocks; the first dimensions are those of the table. */
static array *add_places(problem *p, const weir_tensor_desc *table, uint32_t batch, bool from_end) {
    weir_tensor_desc like = shaped(DRAW_OF(p->d, WEIR_S32, WEIR_S64), batch, table->dims);
    uint32_t depth = (uint32_t)draw_int(p->d, 0, (int64_t)(table->rank - batch));
    for (int64_t more = draw_int(p->d, 0, 2); more > 0 && like.rank < 6; more--) like.dims[like.rank++] = draw_int(p->d, 0, 6);
    like.dims[like.rank++] = depth;
    array *indices = add_input(p, like, SMALL);
    for (size_t i = 0; i < indices->n; i++) indices->v[i] = draw_index(p, table->dims[batch + i % depth], from_end);
    return indices;
}

static void draw_gather_elements(problem *p) {
    weir_gather_elements_desc *desc = &p->desc.gather_elements;
    weir_tensor_desc x = draw_shape(p->d, DRAW_OF(p->d, ALL_DTYPES), draw_rank(p->d), 2000);
    add_input(p, x, SPECIAL);
    *desc = (weir_gather_elements_desc){.struct_size = sizeof *desc, .flags = draw_bits(p->d) & 1};
    desc->axis = (int32_t)(x.rank == 0 ? 0 : draw_int(p->d, -(int64_t)x.rank, (int64_t)x.rank - 1));
    add_element_indices(p, &x, desc->axis, desc->flags != 0);
    if (draw_once_in(p->d, 40)) desc->axis = (int32_t)draw_int(p->d, -10, 10);
}

static verdict solve_gather_elements(problem *p) {
    const weir_gather_elements_desc *desc = &p->desc.gather_elements;
    if (p->num_in != 2) return REFUSED;
    const array *x = &p->in[0];
    array indices = p->in[1];
    int axis = axis_of(desc->axis, &x->desc);
    if (axis < 0 || !lies_within(&indices.desc, &x->desc, axis)) return REFUSED;
    weir_tensor_desc like = indices.desc;
    like.dtype = x->desc.dtype;
    array *out = add_output(p, like);
    if (out == NULL) return EITHER;
    if (!count_from_start(&indices, &x->desc, (uint32_t)axis, 1, desc->flags != 0)) return FAILS;
    for (size_t i = 0; i < out->n; i++) {
        int64_t places[WEIR_MAX_RANK];
        places_of(&like, i, places);
        places[axis] = (int64_t)indices.v[i];
        put(out, i, x->v[index_of(&x->desc, places)], 0);
    }
    return RIGHT;
}

static weir_status create_gather_elements(weir_engine *engine, problem *p, weir_kernel **out) {
    return weir_kernel_create_gather_elements(engine, &p->desc.gather_elements, NULL, out);
}

static void draw_gather_nd(problem *p) {
    weir_gather_nd_desc *desc = &p->desc.gather_nd;
    weir_tensor_desc x = draw_shape(p->d, DRAW_OF(p->d, ALL_DTYPES), draw_rank(p->d), 2000);
    add_input(p, x, SPECIAL);
    *desc = (weir_gather_nd_desc){.struct_size = sizeof *desc, .flags = draw_bits(p->d) & 1};
    desc->batch_dims = (uint64_t)draw_int(p->d, 0, x.rank < 2 ? x.rank : 2);
    add_places(p, &x, (uint32_t)desc->batch_dims, desc->flags != 0);
    if (draw_once_in(p->d, 40)) desc->batch_dims = (uint64_t)draw_int(p->d, 0, 10);
}

static verdict solve_gather_nd(problem *p) {
    const weir_gather_nd_desc *desc = &p->desc.gather_nd;
    if (p->num_in != 2 || (p->in[1].desc.dtype != WEIR_S32 && p->in[1].desc.dtype != WEIR_S64)) return REFUSED;
    const array *x = &p->in[0];
    array indices = p->in[1];
    uint32_t batch = (uint32_t)desc->batch_dims, rank = indices.desc.rank;
    if (batch > WEIR_MAX_RANK || x->desc.rank < batch || rank < batch + 1) return REFUSED;
    int64_t last = indices.desc.dims[rank - 1];
    if (last > (int64_t)(x->desc.rank - batch)) return REFUSED;
    uint32_t depth = (uint32_t)last;
    weir_tensor_desc like = shaped(x->desc.dtype, rank - 1, indices.desc.dims);
    for (uint32_t i = 0; i < batch; i++) if (like.dims[i] != x->desc.dims[i]) return REFUSED;
    if (like.rank + x->desc.rank - batch - depth > WEIR_MAX_RANK) return REFUSED;
    for (uint32_t i = batch + depth; i < x->desc.rank; i++) like.dims[like.rank++] = x->desc.dims[i];
    array *out = add_output(p, like);
    if (out == NULL) return EITHER;
    if (!count_from_start(&indices, &x->desc, batch, depth, desc->flags != 0)) return FAILS;
    for (size_t i = 0; i < out->n; i++) {
        int64_t at[WEIR_MAX_RANK], places[WEIR_MAX_RANK];
        size_t tuple = 0;
        places_of(&like, i, at);
        for (uint32_t k = 0; k + 1 < rank; k++) tuple = tuple * (size_t)like.dims[k] + (size_t)at[k];
        for (uint32_t k = 0; k < x->desc.rank; k++) {
            places[k] = k < batch ? at[k] : k < batch + depth ? (int64_t)indices.v[tuple * depth + k - batch] : at[rank - 1 + k - batch - depth];
        }
        put(out, i, x->v[index_of(&x->desc, places)], 0);
    }
    return RIGHT;
}

static weir_status create_gather_nd(weir_engine *engine, problem *p, weir_kernel **out) {
    return weir_kernel_create_gather_nd(engine, &p->desc.gather_nd, NULL, out);
}

static void draw_scatter(problem *p) {
    weir_scatter_desc *desc = &p->desc.scatter;
    *desc = (weir_scatter_desc){.struct_size = sizeof *desc, .flags = draw_bits(p->d) & 1};
    desc->mode = (weir_scatter_mode)draw_int(p->d, 0, draw_once_in(p->d, 60) ? 2 : 1);
    desc->reduction = (weir_scatter_reduction)draw_int(p->d, 0, draw_once_in(p->d, 60) ? 5 : 4);
    bool reduces = desc->reduction != 0;
    weir_dtype dtype = !reduces || draw_once_in(p->d, 30) ? DRAW_OF(p->d, ALL_DTYPES) : DRAW_OF(p->d, INTEGERS, FLOATS);
    contents what = reduces && is_integer(dtype) ? SMALL : (contents)draw_int(p->d, SMALL, SPECIAL);
    weir_tensor_desc x = draw_shape(p->d, dtype, draw_rank(p->d), draw_once_in(p->d, 4) ? 20000 : 200), like;
    add_input(p, x, what);
    if (desc->mode == WEIR_SCATTER_ELEMENTS) {
        desc->axis = (int32_t)(x.rank == 0 ? 0 : draw_int(p->d, -(int64_t)x.rank, (int64_t)x.rank - 1));
        like = add_element_indices(p, &x, desc->axis, desc->flags != 0)->desc;
        like.dtype = dtype;
    } else {
        weir_tensor_desc places = add_places(p, &x, 0, desc->flags != 0)->desc;
        like = shaped(dtype, places.rank - 1, places.dims);
        for (int64_t i = places.dims[places.rank - 1]; i < (int64_t)x.rank && like.rank < WEIR_MAX_RANK; i++) like.dims[like.rank++] = x.dims[i];
    }
    add_input(p, like, what);
    if (draw_once_in(p->d, 40)) desc->axis = (int32_t)draw_int(p->d, -10, 10);
}

/* An element and its update. */
static double updated(uint32_t reduction, weir_dtype dtype, double a, double b) {
    double y = reduction == WEIR_SCATTER_ADD ? a + b : reduction == WEIR_SCATTER_MUL ? a * b : b;
    bool least = reduction == WEIR_SCATTER_MIN;
    if (reduction == WEIR_SCATTER_NONE) return b;
    if (reduction >= WEIR_SCATTER_MIN) return isnan(a) || (!isnan(b) && (least ? a < b : a > b)) ? a : b;
    if (is_float(dtype)) return rounded(dtype, rounded(WEIR_F32, y));
    uint64_t u = (uint64_t)whole(a), v = (uint64_t)whole(b);
    return wrapped(dtype, (int64_t)(reduction == WEIR_SCATTER_ADD ? u + v : u * v));
}

static verdict solve_scatter(problem *p) {
    const weir_scatter_desc *desc = &p->desc.scatter;
    if (p->num_in != 3 || desc->mode > WEIR_SCATTER_ND || desc->reduction > WEIR_SCATTER_MAX) return REFUSED;
    const array *x = &p->in[0], *updates = &p->in[2];
    array indices = p->in[1];
    weir_dtype dtype = x->desc.dtype;
    bool by_element = desc->mode == WEIR_SCATTER_ELEMENTS;
    uint32_t rank = indices.desc.rank, depth = 1, first = 0;
    weir_tensor_desc like = indices.desc;
    if (updates->desc.dtype != dtype || (desc->reduction != 0 && dtype == WEIR_BOOL)) return REFUSED;
    if (by_element) {
        int axis = axis_of(desc->axis, &x->desc);
        if (axis < 0 || !lies_within(&indices.desc, &x->desc, axis)) return REFUSED;
        first = (uint32_t)axis;
    } else {
        if ((indices.desc.dtype != WEIR_S32 && indices.desc.dtype != WEIR_S64) || desc->axis != 0 || rank == 0) return REFUSED;
        if (indices.desc.dims[rank - 1] > (int64_t)x->desc.rank) return REFUSED;
        depth = (uint32_t)indices.desc.dims[rank - 1];
        like = shaped(dtype, rank - 1, indices.desc.dims);
        if (like.rank + x->desc.rank - depth > WEIR_MAX_RANK) return REFUSED;
        for (uint32_t i = depth; i < x->desc.rank; i++) like.dims[like.rank++] = x->desc.dims[i];
    }
    like.dtype = dtype;
    if (!same_shape(&like, &updates->desc)) return REFUSED;
    array *out = add_output(p, x->desc);
    if (!count_from_start(&indices, &x->desc, first, depth, desc->flags != 0)) return FAILS;
    for (size_t i = 0; i < out->n; i++) put(out, i, x->v[i], 0);
    for (size_t i = 0; i < updates->n; i++) {
        int64_t at[WEIR_MAX_RANK], places[WEIR_MAX_RANK];
        places_of(&like, i, at);
        size_t tuple = 0;
        for (uint32_t k = 0; k + 1 < rank; k++) tuple = tuple * (size_t)like.dims[k] + (size_t)at[k];
        for (uint32_t k = 0; k < x->desc.rank; k++) {
            if (by_element) places[k] = k == first ? (int64_t)indices.v[i] : at[k];
            else places[k] = k < depth ? (int64_t)indices.v[tuple * depth + k] : at[rank - 1 + k - depth];
        }
        size_t to = index_of(&x->desc, places);
        put(out, to, updated(desc->reduction, dtype, out->v[to], updates->v[i]), 0);
    }
    return RIGHT;
}

static weir_status create_scatter(weir_engine *engine, problem *p, weir_kernel **out) {
    return weir_kernel_create_scatter(engine, &p->desc.scatter, NULL, out);
}

/* ---- One-hot encoding -------------------------------------------------------------------------- */

static void draw_one_hot(problem *p) {
    weir_one_hot_desc *desc = &p->desc.one_hot;
    weir_tensor_desc like = draw_shape(p->d, DRAW_OF(p->d, WEIR_S32, WEIR_S64), (uint32_t)draw_int(p->d, 0, draw_once_in(p->d, 20) ? 8 : 4), 300);
    array *indices = add_input(p, like, SMALL);
    *desc = (weir_one_hot_desc){.struct_size = sizeof *desc, .depth = draw_size(p->d, 60), .flags = draw_bits(p->d) & 1};
    desc->axis = (int32_t)draw_int(p->d, -(int64_t)like.rank - 1, like.rank);
    for (size_t i = 0; i < indices->n; i++) indices->v[i] = (double)draw_int(p->d, -desc->depth - 2, desc->depth + 1);
    add_input(p, shaped(DRAW_OF(p->d, ALL_DTYPES), 1, (const int64_t[]){2}), SPECIAL);
    if (draw_once_in(p->d, 40)) desc->axis = (int32_t)draw_int(p->d, -10, 10);
}

static verdict solve_one_hot(problem *p) {
    const weir_one_hot_desc *desc = &p->desc.one_hot;
    if (p->num_in != 2 || (p->in[0].desc.dtype != WEIR_S32 && p->in[0].desc.dtype != WEIR_S64)) return REFUSED;
    const array *indices = &p->in[0], *values = &p->in[1];
    weir_tensor_desc like = make_desc(values->desc.dtype, indices->desc.rank + 1, 0, 0, 0);
    if (like.rank > WEIR_MAX_RANK || !is_shape(&values->desc, values->desc.dtype, 1, (int64_t)2)) return REFUSED;
    int axis = axis_of(desc->axis, &like);
    if (axis < 0) return REFUSED;
    for (uint32_t i = 0, from = 0; i < like.rank; i++) like.dims[i] = (int)i == axis ? desc->depth : indices->desc.dims[from++];
    array *out = add_output(p, like);
    if (out == NULL) return EITHER;
    size_t outer, len, inner;
    split(&like, axis, &outer, &len, &inner);
    for (size_t i = 0; i < out->n; i++) {
        double index = indices->v[i / inner / len * inner + i % inner];
        if (index < 0 && desc->flags) index += (double)len;
        put(out, i, values->v[index == (double)(i / inner % len) ? 1 : 0], 0);
    }
    return RIGHT;
}

static weir_status create_one_hot(weir_engine *engine, problem *p, weir_kernel **out) {
    return weir_kernel_create_one_hot(engine, &p->desc.one_hot, NULL, out);
}

/* ---- Elements that are not 0 ------------------------------------------------------------------- */

static void draw_nonzero(problem *p) {
    p->desc.nonzero = (weir_nonzero_desc){.struct_size = sizeof(weir_nonzero_desc)};
    if (draw_once_in(p->d, 60)) p->desc.nonzero.flags = 2;
    int64_t most = draw_once_in(p->d, 6) ? 20000 : 400;
    array *x = add_input(p, draw_shape(p->d, DRAW_OF(p->d, ALL_DTYPES), draw_rank(p->d), most), draw_once_in(p->d, 2) ? SMALL : SPECIAL);
    for (size_t i = 0; i < x->n && draw_once_in(p->d, 3) == false; i += 2) x->v[i] = 0;
}

static verdict solve_nonzero(problem *p) {
    if (p->desc.nonzero.flags != 0 || p->num_in != 1) return REFUSED;
    const array *x = &p->in[0];
    array *places = add_output(p, shaped(WEIR_S64, 2, (int64_t[]){x->desc.rank, (int64_t)x->n}));
    if (places == NULL) return EITHER;
    array *count = add_output(p, shaped(WEIR_S64, 1, (int64_t[]){1}));
    size_t found = 0;
    for (size_t i = 0; i < places->n; i++) put(places, i, -1, 0);
    for (size_t i = 0; i < x->n; i++) {
        if (x->v[i] == 0) continue;
        size_t left = i;
        for (uint32_t k = x->desc.rank; k-- > 0;) {
            put(places, k * x->n + found, (double)(left % (size_t)x->desc.dims[k]), 0);
            left /= (size_t)x->desc.dims[k];
        }
        found++;
    }
    put(count, 0, (double)found, 0);
    return RIGHT;
}

static weir_status create_nonzero(weir_engine *engine, problem *p, weir_kernel **out) {
    return weir_kernel_create_nonzero(engine, &p->desc.nonzero, NULL, out);
}

/* ---- Shapes ------------------------------------------------------------------------------------ */

static void draw_shape_of(problem *p) {
    p->desc.shape = (weir_shape_desc){.struct_size = sizeof(weir_shape_desc)};
    add_input(p, draw_shape(p->d, DRAW_OF(p->d, ALL_DTYPES), draw_rank(p->d), 400), SMALL);
}

static verdict solve_shape_of(problem *p) {
    if (p->num_in != 1) return REFUSED;
    const weir_tensor_desc *x = &p->in[0].desc;
    array *shape = add_output(p, shaped(WEIR_S64, 1, (int64_t[]){x->rank}));
    for (uint32_t i = 0; i < x->rank; i++) put(shape, i, (double)x->dims[i], 0);
    return RIGHT;
}

static weir_status create_shape_of(weir_engine *engine, problem *p, weir_kernel **out) {
    return weir_kernel_create_shape(engine, &p->desc.shape, NULL, out);
}

#define FAMILY(name) {#name, draw_##name, solve_##name, create_##name}
const family moving_families[] = {FAMILY(transpose), FAMILY(concat), FAMILY(slice), FAMILY(pad), FAMILY(tile), FAMILY(reshape),
                                  FAMILY(gather), FAMILY(gather_elements), FAMILY(gather_nd), FAMILY(scatter), FAMILY(one_hot), FAMILY(nonzero),
                                  {"shape", draw_shape_of, solve_shape_of, create_shape_of},
                                  {NULL, NULL, NULL, NULL}};

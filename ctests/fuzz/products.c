/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Matrix products of floats, halves and bytes, with weights that were packed before and without.
 */

#include <stdbool.h>
#include <weir/ops.h>

#include "fuzz.h"

static weir_tensor_desc transposed(weir_tensor_desc desc, bool is) {
    int64_t last = desc.dims[desc.rank - 1];
    if (is) desc.dims[desc.rank - 1] = desc.dims[desc.rank - 2], desc.dims[desc.rank - 2] = last;
    return desc;
}

/* Sides of a product; now and then one of them is longer than the blocks that products are cut into. */
static void draw_sides(draws *d, int64_t *m, int64_t *n, int64_t *k) {
    int64_t *sides[3] = {m, n, k};
    for (int i = 0; i < 3; i++) *sides[i] = draw_once_in(d, 5) ? draw_int(d, 60, 130) : draw_size(d, 40);
    if (!draw_once_in(d, 10)) return;
    *sides[draw_bits(d) % 3] = draw_int(d, 200, 1100);
    for (int i = 0; i < 3; i++) if (*sides[i] < 200) *sides[i] = draw_size(d, 33);
}

/* ---- Floats and halves ------------------------------------------------------------------------- */

static void draw_matmul(problem *p) {
    weir_matmul_desc *desc = &p->desc.matmul;
    weir_dtype type = draw_once_in(p->d, 2) ? WEIR_F32 : DRAW_OF(p->d, FLOATS);
    *desc = (weir_matmul_desc){.struct_size = sizeof *desc, .flags = draw_bits(p->d) & 31};
    if (draw_once_in(p->d, 2)) desc->flags &= ~(uint64_t)(WEIR_MATMUL_BIAS | WEIR_MATMUL_SUM);
    draw_activation(p->d, &desc->activation, &desc->alpha, &desc->beta);
    if (draw_once_in(p->d, 60)) desc->flags |= 128;
    p->packs = draw_once_in(p->d, 4);
    if (p->packs && !draw_once_in(p->d, 30)) desc->flags &= ~(uint64_t)WEIR_MATMUL_TRANSPOSE_B;
    p->packs_transposed = p->packs && draw_once_in(p->d, 2);
    bool ta = desc->flags & WEIR_MATMUL_TRANSPOSE_A, tb = desc->flags & WEIR_MATMUL_TRANSPOSE_B;

    int64_t m, n, k;
    draw_sides(p->d, &m, &n, &k);
    weir_tensor_desc batch = draw_shape(p->d, type, draw_once_in(p->d, 2) ? 0 : (uint32_t)draw_int(p->d, 1, 3), 6);
    weir_tensor_desc a = draw_broadcast(p->d, &batch, type), b = draw_broadcast(p->d, &batch, type);
    if (p->packs) b.rank = 0;
    contents what = draw_once_in(p->d, 2) ? SMALL : NORMAL;
    a.dims[a.rank] = m, a.dims[a.rank + 1] = k, a.rank += 2;
    b.dims[b.rank] = k, b.dims[b.rank + 1] = n, b.rank += 2;
    add_input(p, transposed(a, ta), what);
    add_input(p, transposed(b, p->packs ? p->packs_transposed : tb), what);
    weir_tensor_desc c = a;
    c.rank -= 2, b.rank -= 2;
    CHECK(broadcast(&c, &b));
    c.dims[c.rank] = m, c.dims[c.rank + 1] = n, c.rank += 2;
    c.dtype = desc->flags & WEIR_MATMUL_F32_RESULT ? WEIR_F32 : type;
    if (desc->flags & WEIR_MATMUL_BIAS) add_input(p, make_desc(c.dtype, 1, n, 0, 0), what);
    if (desc->flags & WEIR_MATMUL_SUM) add_input(p, c, what);
}

static verdict solve_matmul(problem *p) {
    const weir_matmul_desc *desc = &p->desc.matmul;
    bool ta = desc->flags & WEIR_MATMUL_TRANSPOSE_A, tb = desc->flags & WEIR_MATMUL_TRANSPOSE_B;
    bool has_bias = desc->flags & WEIR_MATMUL_BIAS, has_sum = desc->flags & WEIR_MATMUL_SUM;
    if (desc->flags > 63 || !is_activation(desc->activation, desc->alpha, desc->beta)) return REFUSED;
    if (p->packs && tb) return REFUSED;
    if (p->num_in != 2u + has_bias + has_sum) return REFUSED;
    weir_dtype type = p->in[0].desc.dtype, of_c = desc->flags & WEIR_MATMUL_F32_RESULT ? WEIR_F32 : type;
    if (!is_float(type)) return REFUSED;
    for (size_t i = 0; i < p->num_in; i++) if (p->in[i].desc.dtype != (i < 2 ? type : of_c)) return REFUSED;
    const array *a = &p->in[0], *b = &p->in[1], *bias = has_bias ? &p->in[2] : NULL;
    const array *sum = has_sum ? &p->in[2 + has_bias] : NULL;
    if (a->desc.rank < 2 || b->desc.rank < 2 || (p->packs && b->desc.rank != 2)) return REFUSED;
    tb = p->packs ? p->packs_transposed : tb;
    weir_tensor_desc da = transposed(a->desc, ta), db = transposed(b->desc, tb);
    int64_t m = da.dims[da.rank - 2], k = da.dims[da.rank - 1], n = db.dims[db.rank - 1];
    if (db.dims[db.rank - 2] != k) return REFUSED;
    weir_tensor_desc batch = da, batch_a = da, batch_b = db;
    batch.rank -= 2, batch_a.rank -= 2, batch_b.rank -= 2;
    if (!broadcast(&batch, &batch_b)) return REFUSED;
    weir_tensor_desc c = batch;
    c.dims[c.rank] = m, c.dims[c.rank + 1] = n, c.rank += 2;
    c.dtype = of_c;
    if (bias && !is_shape(&bias->desc, of_c, 1, n)) return REFUSED;
    if (sum && !same_shape(&sum->desc, &c)) return REFUSED;
    array *out = add_output(p, c);
    if (out == NULL) return EITHER;
    size_t rows = (size_t)m, columns = (size_t)n, depth = (size_t)k;
    for (size_t i = 0; i < out->n; i++) {
        size_t product = i / (rows * columns), row = i / columns % rows, column = i % columns;
        const double *va = a->v + broadcast_index(&batch_a, &batch, product) * rows * depth;
        const double *vb = b->v + broadcast_index(&batch_b, &batch, product) * depth * columns;
        double y = 0, size = 0;
        for (size_t q = 0; q < depth; q++) {
            double t = va[ta ? q * rows + row : row * depth + q] * vb[tb ? column * depth + q : q * columns + column];
            y += t, size += fabs(t);
        }
        if (bias) y += bias->v[column], size += fabs(bias->v[column]);
        if (sum) y += sum->v[i], size += fabs(sum->v[i]);
        double error = (double)(k + 4) * 0x1p-24 * size;
        y = activated(desc->activation, desc->alpha, desc->beta, y, &error);
        put(out, i, y, error);
    }
    return RIGHT;
}

static weir_status create_matmul(weir_engine *engine, problem *p, weir_kernel **out) {
    return weir_kernel_create_matmul(engine, &p->desc.matmul, NULL, out);
}

/* ---- Bytes ------------------------------------------------------------------------------------- */

static void draw_matmul_int8(problem *p) {
    weir_matmul_int8_desc *desc = &p->desc.int8;
    weir_dtype type = DRAW_OF(p->d, WEIR_U8, WEIR_S8);
    *desc = (weir_matmul_int8_desc){.struct_size = sizeof *desc, .flags = draw_bits(p->d) & 15};
    desc->dtype = DRAW_OF(p->d, WEIR_DTYPE_ANY, WEIR_S32, WEIR_F32, WEIR_S8, WEIR_U8);
    if (draw_once_in(p->d, 2)) desc->scale = (float)(draw_unit(p->d) / 64);
    if (draw_once_in(p->d, 2)) desc->zero_a = (int32_t)draw_int(p->d, type == WEIR_U8 ? 0 : -128, type == WEIR_U8 ? 255 : 127);
    if (draw_once_in(p->d, 2)) desc->zero_b = (int32_t)draw_int(p->d, -128, 127);
    if (draw_once_in(p->d, 2)) desc->zero_c = (int32_t)draw_int(p->d, -200, 200);
    if (draw_once_in(p->d, 40)) desc->zero_a = (int32_t)draw_int(p->d, -130, 260);
    if (draw_once_in(p->d, 60)) desc->scale = INFINITY;
    if (draw_once_in(p->d, 60)) desc->dtype = WEIR_F16;
    p->packs = draw_once_in(p->d, 4);
    if (p->packs && !draw_once_in(p->d, 30)) desc->flags &= ~(uint64_t)WEIR_MATMUL_INT8_TRANSPOSE_B;
    p->packs_transposed = p->packs && draw_once_in(p->d, 2);
    bool ta = desc->flags & WEIR_MATMUL_INT8_TRANSPOSE_A, tb = desc->flags & WEIR_MATMUL_INT8_TRANSPOSE_B;
    int64_t m, n, k;
    draw_sides(p->d, &m, &n, &k);
    weir_tensor_desc a = draw_shape(p->d, type, ta ? 0 : (uint32_t)draw_int(p->d, 0, 2), 6);
    a.dims[a.rank] = m, a.dims[a.rank + 1] = k, a.rank += 2;
    add_input(p, transposed(a, ta), WIDE);
    add_input(p, transposed(make_desc(WEIR_S8, 2, k, n, 0), p->packs ? p->packs_transposed : tb), WIDE);
    if (desc->flags & WEIR_MATMUL_INT8_BIAS) {
        add_input(p, make_desc(WEIR_S32, 1, n, 0, 0), draw_once_in(p->d, 4) ? WIDE : SMALL);
    }
    if (desc->flags & WEIR_MATMUL_INT8_SCALES) add_input(p, vector_desc(n), NORMAL);
}

static verdict solve_matmul_int8(problem *p) {
    const weir_matmul_int8_desc *desc = &p->desc.int8;
    bool ta = desc->flags & WEIR_MATMUL_INT8_TRANSPOSE_A, tb = desc->flags & WEIR_MATMUL_INT8_TRANSPOSE_B;
    bool has_bias = desc->flags & WEIR_MATMUL_INT8_BIAS, has_scales = desc->flags & WEIR_MATMUL_INT8_SCALES;
    weir_dtype dtype = desc->dtype == WEIR_DTYPE_ANY ? WEIR_S32 : desc->dtype;
    if (dtype != WEIR_S32 && dtype != WEIR_F32 && dtype != WEIR_S8 && dtype != WEIR_U8) return REFUSED;
    if (desc->flags > 15 || !isfinite(desc->scale) || (p->packs && tb)) return REFUSED;
    if (p->num_in != 2u + has_bias + has_scales) return REFUSED;
    const array *a = &p->in[0], *b = &p->in[1], *bias = has_bias ? &p->in[2] : NULL;
    const array *scales = has_scales ? &p->in[2 + has_bias] : NULL;
    if ((a->desc.dtype != WEIR_U8 && a->desc.dtype != WEIR_S8) || b->desc.dtype != WEIR_S8) return REFUSED;
    if (rounded(a->desc.dtype, desc->zero_a) != desc->zero_a || rounded(WEIR_S8, desc->zero_b) != desc->zero_b) return REFUSED;
    if (a->desc.rank < 2 || (ta && a->desc.rank != 2) || b->desc.rank != 2) return REFUSED;
    tb = p->packs ? p->packs_transposed : tb;
    weir_tensor_desc c = transposed(a->desc, ta), db = transposed(b->desc, tb);
    int64_t m = c.dims[c.rank - 2], k = c.dims[c.rank - 1], n = db.dims[1];
    if (db.dims[0] != k || (bias && !is_shape(&bias->desc, WEIR_S32, 1, n))) return REFUSED;
    if (scales && !is_shape(&scales->desc, WEIR_F32, 1, n)) return REFUSED;
    c.dtype = dtype;
    c.dims[c.rank - 1] = n;
    array *out = add_output(p, c);
    if (out == NULL) return EITHER;
    size_t rows = (size_t)m, columns = (size_t)n, depth = (size_t)k;
    double scale = desc->scale == 0 ? 1 : desc->scale;
    for (size_t i = 0; i < out->n; i++) {
        size_t row = i / columns, column = i % columns;
        double y = 0;
        for (size_t q = 0; q < depth; q++) {
            y += (a->v[ta ? q * rows + row : row * depth + q] - desc->zero_a) *
                 (b->v[tb ? column * depth + q : q * columns + column] - desc->zero_b);
        }
        y = rounded(WEIR_S32, y) + (bias ? bias->v[column] : 0); /* sums saturate, and what follows does not */
        if (scale != 1 || scales) y *= scale * (scales ? scales->v[column] : 1);
        double error = scale != 1 || scales ? 1e-12 * fabs(y) : 0, zero = desc->zero_c;
        if (dtype == WEIR_F32) {
            put(out, i, y + zero, error);
        } else {
            put(out, i, 0, 0);
            out->v[i] = nearbyint(y - error) + zero;
            out->hi[i] = nearbyint(y + error) + zero;
        }
    }
    return RIGHT;
}

static weir_status create_matmul_int8(weir_engine *engine, problem *p, weir_kernel **out) {
    return weir_kernel_create_matmul_int8(engine, &p->desc.int8, NULL, out);
}

#define FAMILY(name) {#name, draw_##name, solve_##name, create_##name}
const family products_families[] = {FAMILY(matmul), FAMILY(matmul_int8), {NULL, NULL, NULL, NULL}};

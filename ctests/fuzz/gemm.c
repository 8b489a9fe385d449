/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Products of arrays with strides: weir_sgemm and the two products of bytes, some with wrong arguments.
 */

#include <stdbool.h>
#include <weir/ops.h>

#include "fuzz.h"

/* A matrix of `rows` x `columns` elements, `stride` from row to row, that ends where nobody may touch. */
typedef struct matrix {
    int64_t rows, columns, stride;
    weir_dtype dtype;
    size_t span; /* elements from the first to the last one */
    void *data;
} matrix;

static matrix draw_matrix(draws *d, weir_dtype dtype, int64_t rows, int64_t columns, int region, contents what) {
    matrix m = {.rows = rows, .columns = columns, .dtype = dtype};
    problem values = {.d = d};
    m.stride = (columns < 1 ? 1 : columns) + (draw_once_in(d, 2) ? 0 : draw_int(d, 0, 40));
    m.span = rows < 1 || columns < 1 ? 0 : (size_t)((rows - 1) * m.stride + columns);
    m.data = fuzz_region(region, m.span * dtype_size(dtype));
    array *all = add_input(&values, make_desc(dtype, 1, (int64_t)m.span, 0, 0), what);
    for (size_t i = 0; i < m.span; i++) store(dtype, m.data, i, all->v[i]);
    return m;
}

static double at(const matrix *m, bool transposed, int64_t i, int64_t j) {
    return load(m->dtype, m->data, (size_t)(transposed ? j * m->stride + i : i * m->stride + j));
}

static float draw_factor(draws *d) {
    static const float usual[] = {1, 1, 1, 0, -1, 2, 0.5f};
    return draw_once_in(d, 6) ? (float)(draw_unit(d) * 4 - 2) : usual[draw_bits(d) % 7];
}

typedef struct product {
    int kind; /* 0 floats, 1 unsigned, 2 signed bytes */
    int32_t ta, tb;
    int64_t m, n, k, lda, ldb, ldc;
    float alpha, beta;
    matrix a, b, c;
    int32_t ao, bo;
    weir_gemm_offset offsetc;
    int32_t *co;
} product;

static weir_status multiply(const product *p, void *c, weir_threadpool *pool) {
    if (p->kind == 0) {
        return weir_sgemm(p->ta, p->tb, p->m, p->n, p->k, p->alpha, p->a.data, p->lda, p->b.data, p->ldb, p->beta, c, p->ldc, pool);
    }
    if (p->kind == 1) {
        return weir_gemm_u8s8s32(p->ta, p->tb, p->offsetc, p->m, p->n, p->k, p->alpha, p->a.data, p->lda, (uint8_t)p->ao,
                                 p->b.data, p->ldb, (int8_t)p->bo, p->beta, c, p->ldc, p->co, pool);
    }
    return weir_gemm_s8s8s32(p->ta, p->tb, p->offsetc, p->m, p->n, p->k, p->alpha, p->a.data, p->lda, (int8_t)p->ao,
                             p->b.data, p->ldb, (int8_t)p->bo, p->beta, c, p->ldc, p->co, pool);
}

/* What element (i, j) must be. */
static double expected(const product *p, int64_t i, int64_t j, double *error) {
    double sum = 0, size = 0, y = 0;
    for (int64_t q = 0; p->alpha != 0 && q < p->k; q++) {
        double t = (at(&p->a, p->ta, i, q) - p->ao) * (at(&p->b, p->tb, q, j) - p->bo);
        sum += t, size += fabs(t);
    }
    if (p->alpha != 0) y = p->alpha * sum;
    double before = p->beta != 0 ? p->beta * at(&p->c, false, i, j) : 0, offset = 0;
    if (p->kind > 0 && p->co != NULL) {
        offset = p->co[p->offsetc == WEIR_GEMM_OFFSET_FIXED ? 0 : p->offsetc == WEIR_GEMM_OFFSET_ROW ? j : i];
    }
    *error = p->kind == 0 ? (double)(p->k + 4) * 0x1p-24 * (fabs(p->alpha) * size + fabs(before)) : 0x1p-50 * (fabs(y) + fabs(before));
    return y + before + offset;
}

const char *fuzz_gemm(draws *d, weir_threadpool *pool, tally *t) {
    static char text[200];
    product p = {.kind = (int)draw_int(d, 0, 2), .ta = draw_once_in(d, 2), .tb = draw_once_in(d, 2)};
    int64_t *sides[3] = {&p.m, &p.n, &p.k};
    for (int i = 0; i < 3; i++) *sides[i] = draw_once_in(d, 4) ? draw_int(d, 30, 150) : draw_size(d, 40);
    if (draw_once_in(d, 10)) *sides[draw_bits(d) % 3] = draw_int(d, 200, 1100);
    p.alpha = draw_factor(d), p.beta = draw_factor(d);
    weir_dtype dtype = p.kind == 0 ? WEIR_F32 : p.kind == 1 ? WEIR_U8 : WEIR_S8;
    p.a = draw_matrix(d, dtype, p.ta ? p.k : p.m, p.ta ? p.m : p.k, 0, p.kind == 0 ? NORMAL : WIDE);
    p.b = draw_matrix(d, p.kind == 0 ? WEIR_F32 : WEIR_S8, p.tb ? p.n : p.k, p.tb ? p.k : p.n, 1, p.kind == 0 ? NORMAL : WIDE);
    p.c = draw_matrix(d, p.kind == 0 ? WEIR_F32 : WEIR_S32, p.m, p.n, 2, p.kind == 0 ? NORMAL : SMALL);
    p.lda = p.a.stride, p.ldb = p.b.stride, p.ldc = p.c.stride;
    if (p.kind > 0) {
        p.ao = (int32_t)(draw_once_in(d, 2) ? 0 : draw_int(d, p.kind == 1 ? 0 : -128, p.kind == 1 ? 255 : 127));
        p.bo = (int32_t)(draw_once_in(d, 2) ? 0 : draw_int(d, -128, 127));
        p.offsetc = (weir_gemm_offset)draw_int(d, 1, 3);
        int64_t count = p.offsetc == WEIR_GEMM_OFFSET_FIXED ? 1 : p.offsetc == WEIR_GEMM_OFFSET_ROW ? p.n : p.m;
        if (!draw_once_in(d, 3)) p.co = fuzz_region(3, (size_t)count * 4);
        for (int64_t i = 0; p.co != NULL && i < count; i++) p.co[i] = (int32_t)draw_int(d, -1000, 1000);
    }
    bool wrong = draw_once_in(d, 8);
    if (wrong) {
        int64_t least = -1;
        switch (draw_int(d, 0, p.kind > 0 ? 5 : 4)) {
        case 0: p.ta = 2; break;
        case 1: p.tb = -1; break;
        case 2: *sides[draw_bits(d) % 3] = -1; break;
        case 3: p.ldc = draw_int(d, least, p.n - 1); if (p.m < 1 || p.n < 1) p.ta = 2; break;
        case 4: p.lda = draw_int(d, least, p.a.columns - 1); if (p.a.span == 0) p.tb = 2; break;
        default: p.beta = NAN; break;
        }
    }
    size_t bytes = p.c.span * 4;
    void *before = memcpy(fuzz_alloc(bytes), p.c.data, bytes), *alone = fuzz_alloc(bytes);
    weir_status status = multiply(&p, p.c.data, NULL);
    memcpy(alone, p.c.data, bytes);
    if (wrong) {
        t->refused++;
        if (status != WEIR_INVALID_ARGUMENT && status != WEIR_OUT_OF_RANGE) return "accepted wrong arguments";
        return memcmp(alone, before, bytes) != 0 ? "wrote C and failed" : NULL;
    }
    t->right++;
    if (status != WEIR_OK) return "refused what is right";
    memcpy(p.c.data, before, bytes);
    if (multiply(&p, p.c.data, pool) != WEIR_OK || memcmp(alone, p.c.data, bytes) != 0) return "other bits than alone";
    memcpy(p.c.data, before, bytes);
    for (size_t i = 0; i < p.c.span; i++) {
        int64_t row = (int64_t)i / p.c.stride, column = (int64_t)i % p.c.stride;
        double got = load(p.c.dtype, alone, i), error = 0;
        double y = column < p.n ? expected(&p, row, column, &error) : load(p.c.dtype, before, i);
        if (got >= rounded(p.c.dtype, y - error) && got <= rounded(p.c.dtype, y + error)) continue;
        snprintf(text, sizeof text, "kind %d, %lld x %lld x %lld, transposed %d %d, alpha %g, beta %g: (%lld, %lld) is %.9g, expected %.9g",
                 p.kind, (long long)p.m, (long long)p.n, (long long)p.k, p.ta, p.tb, (double)p.alpha, (double)p.beta,
                 (long long)row, (long long)column, got, y);
        return text;
    }
    return NULL;
}

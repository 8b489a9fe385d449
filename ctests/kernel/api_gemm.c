/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The products without an engine: against their definition, with strides and transposes as BLAS has them, and the same
 * bits on every pool. ctest runs this program once per instruction set (WEIR_MAX_ISA).
 */

#ifndef _XOPEN_SOURCE
#define _XOPEN_SOURCE 700
#endif

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <weir/ops.h>
#include <weir/inspect.h>
#include <weir/testing.h>

#include "make.h"
#include "test_pools.h"

/* A call, without its operands. */
typedef struct product {
    int32_t ta, tb;
    int64_t m, n, k;
    float alpha, beta;
    int64_t lda, ldb, ldc;
} product;

/* Integer products have these besides. */
typedef struct integers {
    int is_signed;
    int32_t ao, bo;
    weir_gemm_offset offsetc;
} integers;

static uint32_t state;

static uint32_t draw(void) {
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

/* Elements of a matrix with this many rows. */
static size_t span(int64_t rows, int64_t ld) {
    return (size_t)(rows * ld) + 1;
}

static size_t span_a(const product *p) {
    return span(p->ta ? p->k : p->m, p->lda);
}

static size_t span_b(const product *p) {
    return span(p->tb ? p->n : p->k, p->ldb);
}

static size_t at_a(const product *p, int64_t i, int64_t l) {
    return (size_t)(p->ta ? l * p->lda + i : i * p->lda + l);
}

static size_t at_b(const product *p, int64_t l, int64_t j) {
    return (size_t)(p->tb ? j * p->ldb + l : l * p->ldb + j);
}

static void *filled(size_t bytes, int byte) {
    void *data = malloc(bytes);
    CHECK(data != NULL);
    return memset(data, byte, bytes);
}

/* ---- f32 ---- */

typedef struct floats_of {
    float *a, *b, *old, *c;
} floats_of;

/* Small whole numbers: sums of them are exact in any order. What is between the rows is NaN. */
static float *whole_numbers(size_t len, int64_t rows, int64_t columns, int64_t ld) {
    float *data = filled(len * sizeof(float), 0xff);
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < columns; j++) data[i * ld + j] = (float)(draw() % 17) - 8.0f;
    }
    return data;
}

static floats_of floats_create(const product *p) {
    floats_of f;
    state = 1;
    f.a = whole_numbers(span_a(p), p->ta ? p->k : p->m, p->ta ? p->m : p->k, p->lda);
    f.b = whole_numbers(span_b(p), p->tb ? p->n : p->k, p->tb ? p->k : p->n, p->ldb);
    f.old = whole_numbers(span(p->m, p->ldc), p->m, p->n, p->ldc);
    if (p->beta == 0.0f) memset(f.old, 0xff, span(p->m, p->ldc) * sizeof(float)); /* NaN, and not read */
    f.c = filled(span(p->m, p->ldc) * sizeof(float), 0);
    return f;
}

static void floats_destroy(floats_of *f) {
    free(f->a);
    free(f->b);
    free(f->old);
    free(f->c);
}

static void sgemm(const product *p, floats_of *f, weir_threadpool *pool) {
    memcpy(f->c, f->old, span(p->m, p->ldc) * sizeof(float));
    CHECK_OK(weir_sgemm(p->ta, p->tb, p->m, p->n, p->k, p->alpha, f->a, p->lda, f->b, p->ldb, p->beta, f->c, p->ldc,
                        pool));
}

/* All elements of C, and the gaps between its rows. */
static void check_floats(const product *p, const floats_of *f) {
    for (int64_t i = 0; i < p->m; i++) {
        for (int64_t j = 0; j < p->ldc; j++) {
            size_t at = (size_t)(i * p->ldc + j);
            double sum = 0;
            if (j >= p->n) {
                CHECK(memcmp(&f->c[at], &f->old[at], sizeof(float)) == 0);
                continue;
            }
            for (int64_t l = 0; l < p->k; l++) sum += (double)f->a[at_a(p, i, l)] * (double)f->b[at_b(p, l, j)];
            double want = (double)p->alpha * sum + (p->beta != 0.0f ? (double)p->beta * (double)f->old[at] : 0.0);
            CHECK((double)f->c[at] == want); /* alpha and beta are small multiples of a half */
        }
    }
}

static void check_sgemm(product p) {
    floats_of f = floats_create(&p);
    sgemm(&p, &f, NULL);
    check_floats(&p, &f);
    floats_destroy(&f);
}

/* ---- integers ---- */

typedef struct integers_of {
    uint8_t *a;
    int8_t *b;
    int32_t *old, *c, *co;
} integers_of;

static integers_of integers_create(const product *p) {
    integers_of f = {.a = filled(span_a(p), 0), .b = filled(span_b(p), 0)};
    size_t len = span(p->m, p->ldc), numbers = (size_t)(p->m > p->n ? p->m : p->n) + 1;
    state = 2;
    for (size_t i = 0; i < span_a(p); i++) f.a[i] = (uint8_t)draw();
    for (size_t i = 0; i < span_b(p); i++) f.b[i] = (int8_t)(uint8_t)draw();
    f.old = filled(len * sizeof(int32_t), 0);
    f.c = filled(len * sizeof(int32_t), 0);
    f.co = filled(numbers * sizeof(int32_t), 0);
    for (size_t i = 0; i < len; i++) f.old[i] = (int32_t)draw() - (1 << 23);
    for (size_t i = 0; i < numbers; i++) f.co[i] = (int32_t)(draw() % 1000) - 500;
    return f;
}

static void integers_destroy(integers_of *f) {
    free(f->a);
    free(f->b);
    free(f->old);
    free(f->c);
    free(f->co);
}

static void gemm(const product *p, const integers *q, integers_of *f, weir_threadpool *pool) {
    memcpy(f->c, f->old, span(p->m, p->ldc) * sizeof(int32_t));
    if (q->is_signed) {
        CHECK_OK(weir_gemm_s8s8s32(p->ta, p->tb, q->offsetc, p->m, p->n, p->k, p->alpha, (const int8_t *)f->a, p->lda,
                                   (int8_t)q->ao, f->b, p->ldb, (int8_t)q->bo, p->beta, f->c, p->ldc, f->co, pool));
    } else {
        CHECK_OK(weir_gemm_u8s8s32(p->ta, p->tb, q->offsetc, p->m, p->n, p->k, p->alpha, f->a, p->lda, (uint8_t)q->ao,
                                   f->b, p->ldb, (int8_t)q->bo, p->beta, f->c, p->ldc, f->co, pool));
    }
}

static void check_integers(const product *p, const integers *q, const integers_of *f) {
    for (int64_t i = 0; i < p->m; i++) {
        for (int64_t j = 0; j < p->ldc; j++) {
            size_t at = (size_t)(i * p->ldc + j);
            int64_t sum = 0;
            if (j >= p->n) {
                CHECK_EQ(f->c[at], f->old[at]);
                continue;
            }
            int32_t co = f->co[q->offsetc == WEIR_GEMM_OFFSET_ROW ? j : q->offsetc == WEIR_GEMM_OFFSET_COLUMN ? i : 0];
            for (int64_t l = 0; l < p->k; l++) {
                uint8_t byte = f->a[at_a(p, i, l)];
                int32_t a = q->is_signed ? (int8_t)byte : byte;
                sum += (int64_t)(a - q->ao) * (f->b[at_b(p, l, j)] - q->bo);
            }
            /* Every step is exact in a double, so the order does not matter. */
            double want = (double)p->alpha * (double)sum + (double)p->beta * f->old[at] + co;
            want = want > INT32_MAX ? INT32_MAX : want < INT32_MIN ? INT32_MIN : nearbyint(want);
            CHECK_EQ(f->c[at], want);
        }
    }
}

static void check_gemm(product p, integers q) {
    integers_of f = integers_create(&p);
    gemm(&p, &q, &f, NULL);
    check_integers(&p, &q, &f);
    integers_destroy(&f);
}

/* ---- shapes ---- */

static const weir_gemm_offset offsets[] = {WEIR_GEMM_OFFSET_FIXED, WEIR_GEMM_OFFSET_ROW, WEIR_GEMM_OFFSET_COLUMN};

static void check_all(product p) {
    static unsigned number;
    static const integers zeros[] = {{0, 0, 0, 0}, {0, 255, -128, 0}, {1, -128, 127, 0}, {1, 0, 0, 0}};
    integers q = zeros[number % 4];
    q.offsetc = offsets[number % 3];
    number++;
    check_sgemm(p);
    check_gemm(p, q);
}

static void test_shapes(void) {
    static const int shapes[][3] = {{1, 1, 1},    {10, 1, 30},  {1, 20, 30},  {10, 20, 1},  {1, 1, 300},
                                    {1, 200, 1},  {100, 1, 1},  {10, 20, 30}, {2, 47, 30},  {10, 16, 30},
                                    {5, 65, 17},  {0, 4, 4},    {4, 0, 4},    {4, 4, 0},    {0, 0, 0},
                                    {13, 33, 64}, {61, 129, 3}, {97, 70, 513}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        int64_t m = shapes[s][0], n = shapes[s][1], k = shapes[s][2];
        for (int flags = 0; flags < 4; flags++) {
            int ta = flags & 1, tb = flags >> 1;
            int64_t lda = ta ? m : k, ldb = tb ? k : n;
            product p = {ta, tb, m, n, k, 1, 0, lda > 0 ? lda : 1, ldb > 0 ? ldb : 1, n > 0 ? n : 1};
            check_all(p);
            p.beta = 1;
            p.lda += 3, p.ldb += 1, p.ldc += 7;
            check_all(p);
            p.alpha = -0.5f, p.beta = 2.5f;
            check_all(p);
            p.alpha = 0;
            check_all(p);
        }
    }
}

/* In the style of BLAS: strides far from the sizes. */
static void test_strides(void) {
    static const product tall[] = {{0, 0, 100, 100, 2, 1, 2, 100, 100, 100}, {1, 1, 2, 100, 100, 1, 2, 100, 100, 100},
                                   {0, 0, 2, 2, 10000, 1, 2, 10000, 2, 2},   {1, 1, 2, 2, 10000, 1, 2, 2, 10000, 2},
                                   {0, 0, 2000, 1, 1000, 1, 0, 1000, 1, 1},  {0, 0, 1, 3000, 2000, 1, 0, 2000, 3000, 3000},
                                   {0, 0, 2, 48, 83, 1, 0, 83, 48, 48},      {0, 0, 2, 48, 200, 1, 0, 200, 48, 48},
                                   {0, 0, 2, 16, 251, 1, 0, 251, 16, 16},    {0, 0, 2, 16, 256, 1, 0, 256, 16, 16}};
    for (int flags = 0; flags < 4; flags++) {
        product even = {flags & 1, flags >> 1, 30, 20, 10, 2, 1, 60, 50, 80};
        product odd = {flags & 1, flags >> 1, 31, 21, 11, 2, 1.5f, 61, 51, 81};
        check_all(even);
        check_all(odd);
    }
    /* The first six are the largest. */
    for (size_t i = is_slow() ? 6 : 0; i < sizeof tall / sizeof *tall; i++) check_all(tall[i]);
    for (int64_t m = 4; m <= (is_slow() ? 5 : 8); m++) {
        product layer = {0, 1, m, 512, 512 << (m % 3), 1, 0, 512 << (m % 3), 512 << (m % 3), 512};
        check_all(layer);
    }
}

/* Pairs of products that do not fit in 16 bits, and sums that do not fit in 32. */
static void test_range(void) {
    const uint8_t a[2] = {255, 255};
    const int8_t b[2] = {127, 127};
    int32_t c = 7;
    CHECK_OK(weir_gemm_u8s8s32(0, 0, WEIR_GEMM_OFFSET_FIXED, 1, 1, 2, 1, a, 2, 0, b, 1, 0, 0, &c, 1, NULL, NULL));
    CHECK_EQ(c, 64770);
    for (int sign = -1; sign <= 1; sign += 2) {
        int32_t edge = sign > 0 ? INT32_MAX : INT32_MIN, co = sign * 100;
        for (float beta = 1; beta < 2; beta += 0.5f) {
            c = edge - sign;
            CHECK_OK(weir_gemm_u8s8s32(0, 0, WEIR_GEMM_OFFSET_FIXED, 1, 1, 0, 1, NULL, 1, 0, NULL, 1, 0, beta, &c, 1, &co,
                                       NULL));
            CHECK_EQ(c, edge);
        }
    }
    int32_t halves[4] = {1, 3, -1, -3}; /* 0.5 1.5 -0.5 -1.5 go to the even neighbour */
    CHECK_OK(weir_gemm_u8s8s32(0, 0, WEIR_GEMM_OFFSET_FIXED, 1, 4, 0, 1, NULL, 1, 0, NULL, 4, 0, 0.5f, halves, 4, NULL,
                               NULL));
    CHECK(halves[0] == 0 && halves[1] == 2 && halves[2] == 0 && halves[3] == -2);
}

/* NaN and infinity go the way of IEEE 754, except where something is not read. */
static void test_not_numbers(void) {
    float nan = nanf(""), a = 2, b = 3, c = nan;
    CHECK_OK(weir_sgemm(0, 0, 1, 1, 1, 1, &a, 1, &b, 1, 0, &c, 1, NULL));
    CHECK(c == 6);
    CHECK_OK(weir_sgemm(0, 0, 1, 1, 1, 0, &nan, 1, &b, 1, 0.5f, &c, 1, NULL));
    CHECK(c == 3);
    CHECK_OK(weir_sgemm(0, 0, 1, 1, 0, nan, NULL, 1, NULL, 1, 1, &c, 1, NULL));
    CHECK(c == 3);
    CHECK_OK(weir_sgemm(0, 0, 1, 1, 1, INFINITY, &a, 1, &b, 1, 1, &c, 1, NULL));
    CHECK(c == INFINITY);
    c = 1;
    CHECK_OK(weir_sgemm(0, 0, 1, 1, 1, nan, &a, 1, &b, 1, 1, &c, 1, NULL));
    CHECK(isnan(c));
    c = 1;
    CHECK_OK(weir_sgemm(0, 0, 1, 1, 1, 1, &a, 1, &b, 1, nan, &c, 1, NULL));
    CHECK(isnan(c));
}

/* A refused call leaves C alone. */
static void test_refusals(void) {
    float a[9] = {0}, b[9] = {0}, c[9], before[9];
    for (int i = 0; i < 9; i++) c[i] = before[i] = (float)i;
    CHECK_CODE(weir_sgemm(1, 0, 3, 2, 2, 1, a, 2, b, 2, 0, c, 2, NULL), WEIR_INVALID_ARGUMENT,
               "lda is 2, expected at least 3 (m, as A is transposed)");
    CHECK_CODE(weir_sgemm(0, 0, 3, 2, 2, 1, a, 1, b, 2, 0, c, 2, NULL), WEIR_INVALID_ARGUMENT, "at least 2 (k)");
    CHECK_CODE(weir_sgemm(0, 1, 2, 2, 2, 1, a, 2, b, 1, 0, c, 2, NULL), WEIR_INVALID_ARGUMENT, "ldb is 1");
    CHECK_CODE(weir_sgemm(0, 'd', 2, 2, 2, 1, a, 2, b, 2, 0, c, 2, NULL), WEIR_INVALID_ARGUMENT, "transpose_b is 100");
    CHECK_CODE(weir_sgemm(0, 0, 2, 2, 2, 1, c, 2, b, 2, 0, c, 2, NULL), WEIR_INVALID_ARGUMENT, "c overlaps a");
    CHECK_CODE(weir_sgemm(0, 0, 2, 2, 2, 1, a, 2, c + 3, 2, 0, c, 2, NULL), WEIR_INVALID_ARGUMENT, "c overlaps b");
    CHECK(memcmp(c, before, sizeof c) == 0);
    /* C between the columns of A, in one array. */
    CHECK_OK(weir_sgemm(0, 0, 2, 1, 1, 1, a, 3, b, 1, 0, a + 1, 3, NULL));
}

/* ---- pools ---- */

typedef struct expected {
    product p;
    integers q;
    floats_of f;
    integers_of g;
    float *c;
    int32_t *ic;
} expected;

static void check_on(expected *e, weir_threadpool *pool) {
    sgemm(&e->p, &e->f, pool);
    CHECK(memcmp(e->f.c, e->c, span(e->p.m, e->p.ldc) * sizeof(float)) == 0);
    gemm(&e->p, &e->q, &e->g, pool);
    CHECK(memcmp(e->g.c, e->ic, span(e->p.m, e->p.ldc) * sizeof(int32_t)) == 0);
}

/* The same bits on every kind of pool, of every width. */
static void check_pools(product p) {
    expected e = {.p = p, .q = {0, 3, -5, WEIR_GEMM_OFFSET_ROW}, .f = floats_create(&p), .g = integers_create(&p)};
    size_t len = span(p.m, p.ldc);
    for (size_t i = 0; i < span_a(&p); i++) e.f.a[i] = (float)draw() / 65536.0f - 64.0f; /* rounding shows the order */
    e.c = filled(len * sizeof(float), 0);
    e.ic = filled(len * sizeof(int32_t), 0);
    sgemm(&p, &e.f, NULL);
    gemm(&p, &e.q, &e.g, NULL);
    check_integers(&p, &e.q, &e.g);
    memcpy(e.c, e.f.c, len * sizeof(float));
    memcpy(e.ic, e.g.c, len * sizeof(int32_t));
    for (int kind = 0; kind < POOL_KINDS; kind += is_slow() ? 5 : 1) {
        for (int width = 1; width <= 7; width += is_slow() ? 6 : 3) {
            weir_threadpool *pool = NULL;
            test_pool *host = test_pool_create((pool_kind)kind, width, &pool);
            check_on(&e, pool);
            test_pool_let_go(host);
            weir_threadpool_release(pool);
            test_pool_destroy(host);
        }
    }
    for (uint64_t seed = 0; seed < (uint64_t)scale(20); seed++) {
        weir_threadpool *pool = NULL;
        CHECK_OK(weir_threadpool_create_seeded(seed, 1 + (int32_t)(seed % 5), &pool));
        check_on(&e, pool);
        weir_threadpool_release(pool);
    }
    for (int32_t width = 0; width <= 7; width += is_slow() ? 3 : 1) {
        weir_threadpool *pool = NULL;
        const weir_threadpool_options options = {.struct_size = sizeof options, .num_threads = width};
        if (width == 0) CHECK_OK(weir_threadpool_create_inline(&pool));
        else CHECK_OK(weir_threadpool_create_builtin(&options, &pool));
        check_on(&e, pool);
        weir_threadpool_release(pool);
    }
    free(e.c);
    free(e.ic);
    floats_destroy(&e.f);
    integers_destroy(&e.g);
}

static void test_pools(void) {
    product wide = {0, 1, 90, 330, 130, 1.5f, 0.5f, 133, 131, 331}, tall = {1, 0, 500, 40, 90, 1, 0, 500, 40, 40};
    check_pools(wide);
    check_pools(tall);
}

/* A pool's threads are asked to take part. */
static void test_help(void) {
    weir_threadpool *pool = NULL;
    test_pool *host = test_pool_create(POOL_FIFO, 2, &pool);
    product p = {0, 0, 300, 300, 300, 1, 0, 300, 300, 300};
    floats_of f = floats_create(&p);
    integers_of g = integers_create(&p);
    integers q = {.offsetc = WEIR_GEMM_OFFSET_FIXED};
    sgemm(&p, &f, pool);
    int64_t after_floats = test_pool_counters(host).scheduled;
    CHECK(after_floats > 0);
    EVENTUALLY(test_pool_counters(host).ended == after_floats); /* helpers that come late are not asked for twice */
    gemm(&p, &q, &g, pool);
    CHECK(test_pool_counters(host).scheduled > after_floats);
    floats_destroy(&f);
    integers_destroy(&g);
    weir_threadpool_release(pool);
    test_pool_destroy(host);
}

/* Calls allocate nothing once they have been made. */
static void test_steady_state(void) {
    product p = {0, 0, 100, 200, 300, 1, 1, 300, 200, 200};
    floats_of f = floats_create(&p);
    integers_of g = integers_create(&p);
    integers q = {.offsetc = WEIR_GEMM_OFFSET_FIXED};
    uint64_t before = 0;
    for (int round = 0; round < 5; round++) {
        if (round == 1) before = runtime_info().allocations;
        sgemm(&p, &f, NULL);
        gemm(&p, &q, &g, NULL);
    }
    CHECK_EQ(runtime_info().allocations, before);
    floats_destroy(&f);
    integers_destroy(&g);
}

/* Products do not change what the process may have as a signal stack, unless it has asked for AMX. */
static void test_signal_stack(void) {
    const char *level = getenv("WEIR_MAX_ISA");
    if (level != NULL && strcmp(level, "amx") == 0) return;
    static char memory[8192]; /* as old headers have SIGSTKSZ */
    stack_t stack, old;
    memset(&stack, 0, sizeof stack);
    stack.ss_sp = memory;
    stack.ss_size = sizeof memory;
    CHECK_EQ(sigaltstack(&stack, &old), 0);
    CHECK_EQ(sigaltstack(&old, NULL), 0);
}

int main(int argc, char **argv) {
    weir_runtime_info before = runtime_info();
    if (argc > 1) { /* WEIR_MAX_ISA is nonsense: products are refused, and say why */
        float a = 1, c = 1;
        CHECK_CODE(weir_sgemm(0, 0, 1, 1, 1, 1, &a, 1, &a, 1, 0, &c, 1, NULL), WEIR_INVALID_ARGUMENT, argv[1]);
        CHECK(c == 1);
        return 0;
    }
    test_shapes();
    test_strides();
    test_range();
    test_not_numbers();
    test_refusals();
    test_pools();
    test_help();
    test_steady_state();
    test_signal_stack();
    check_released(&before);
    return 0;
}

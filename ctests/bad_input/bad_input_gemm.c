/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Bad input for the products without an engine.
 */

#include <weir/ops.h>

#include "bad_input.h"

static float a[64], b[64], c[64];
static uint8_t ua[64];
static int8_t sa[64], sb[64];
static int32_t ic[64];

static void rows_of_sgemm(void) {
    const int64_t max = INT64_MAX;
    ROW(weir_sgemm, (2, 0, 1, 1, 1, 1, a, 1, b, 1, 0, c, 1, NULL), INVALID, "transpose_a is 2, expected 0 or 1");
    ROW(weir_sgemm, (0, -1, 1, 1, 1, 1, a, 1, b, 1, 0, c, 1, NULL), INVALID, "transpose_b is -1, expected 0 or 1");
    ROW(weir_sgemm, (0, 0, -1, 1, 1, 1, a, 1, b, 1, 0, c, 1, NULL), INVALID, "m is -1, expected 0 or more");
    ROW(weir_sgemm, (0, 0, 1, -2, 1, 1, a, 1, b, 1, 0, c, 1, NULL), INVALID, "n is -2, expected 0 or more");
    ROW(weir_sgemm, (0, 0, 1, 1, -3, 1, a, 1, b, 1, 0, c, 1, NULL), INVALID, "k is -3, expected 0 or more");
    ROW(weir_sgemm, (0, 0, 2, 2, 3, 1, a, 2, b, 2, 0, c, 2, NULL), INVALID, "lda is 2, expected at least 3 (k)");
    ROW(weir_sgemm, (1, 0, 3, 2, 2, 1, a, 2, b, 2, 0, c, 2, NULL), INVALID, "lda is 2, expected at least 3 (m, as");
    ROW(weir_sgemm, (0, 0, 2, 3, 2, 1, a, 2, b, 2, 0, c, 3, NULL), INVALID, "ldb is 2, expected at least 3 (n)");
    ROW(weir_sgemm, (0, 1, 2, 2, 3, 1, a, 3, b, 2, 0, c, 2, NULL), INVALID, "ldb is 2, expected at least 3 (k, as");
    ROW(weir_sgemm, (0, 0, 2, 3, 2, 1, a, 2, b, 3, 0, c, 2, NULL), INVALID, "ldc is 2, expected at least 3 (n)");
    ROW(weir_sgemm, (0, 0, 0, 0, 0, 1, NULL, 0, NULL, 1, 0, NULL, 1, NULL), INVALID, "lda is 0, expected at least 1");
    ROW(weir_sgemm, (0, 0, 2, 2, 2, 1, a, INT64_MIN, b, 2, 0, c, 2, NULL), INVALID, "lda is -9223372036854775808");
    ROW(weir_sgemm, (0, 0, 2, 2, 2, 1, NULL, 2, b, 2, 0, c, 2, NULL), INVALID, "a is NULL, but has 2 x 2 elements");
    ROW(weir_sgemm, (0, 0, 2, 2, 2, 1, a, 2, NULL, 2, 0, c, 2, NULL), INVALID, "b is NULL");
    ROW(weir_sgemm, (0, 0, 2, 2, 2, 1, a, 2, b, 2, 0, NULL, 2, NULL), INVALID, "c is NULL");
    ROW(weir_sgemm, (0, 0, 2, 2, 2, 1, UNALIGNED, 2, b, 2, 0, c, 2, NULL), INVALID, "a is not aligned");
    ROW(weir_sgemm, (0, 0, 2, 2, 2, 1, a, 2, b, 2, 0, UNALIGNED, 2, NULL), INVALID, "c is not aligned");
    ROW(weir_sgemm, (0, 0, 2, 2, 2, 1, a, max, b, 2, 0, c, 2, NULL), RANGE, "a has 2 rows, lda is 9223372036854775807");
    ROW(weir_sgemm, (0, 0, max, 1, max, 1, a, max, b, 1, 0, c, 1, NULL), RANGE, "a has 9223372036854775807 rows");
    ROW(weir_sgemm, (0, 0, max, 1, 0, 1, a, 1, b, 1, 0, c, 1, NULL), RANGE, "c has 9223372036854775807 rows");
    ROW(weir_sgemm, (0, 0, 2, 2, 2, 1, a, 2, b, 2, 0, a + 3, 2, NULL), INVALID, "c overlaps a");
    ROW(weir_sgemm, (0, 0, 2, 2, 2, 1, a, 2, b, 2, 0, b, 2, NULL), INVALID, "c overlaps b");
    ROW(weir_sgemm, (0, 0, 2, 2, 2, 1, a, 2, b, 2, 0, c, 2, WRONG(engine)), INVALID, "pool: expected a threadpool, got an engine");
    ROW(weir_sgemm, (0, 0, 2, 2, 2, 1, a, 2, b, 2, 0, c, 2, NO_OBJECT), INVALID, "pool: expected a threadpool");
    for (size_t i = 0; i < 64; i++) CHECK(c[i] == 7.0f);
}

static void rows_of_bytes(void) {
    const weir_gemm_offset fixed = WEIR_GEMM_OFFSET_FIXED;
    const float big = 1e38f;
    const float nan = big * big - big * big, inf = big * big;
    ROW(weir_gemm_u8s8s32, (3, 0, fixed, 2, 2, 2, 1, ua, 2, 0, sb, 2, 0, 0, ic, 2, NULL, NULL),
        INVALID, "transpose_a is 3");
    ROW(weir_gemm_u8s8s32, (0, 0, 0, 2, 2, 2, 1, ua, 2, 0, sb, 2, 0, 0, ic, 2, NULL, NULL), INVALID, "offsetc is 0");
    ROW(weir_gemm_u8s8s32, (0, 0, 4, 2, 2, 2, 1, ua, 2, 0, sb, 2, 0, 0, ic, 2, ic, NULL), INVALID, "offsetc is 4");
    ROW(weir_gemm_u8s8s32, (0, 0, fixed, 2, 2, -1, 1, ua, 2, 0, sb, 2, 0, 0, ic, 2, NULL, NULL), INVALID, "k is -1");
    ROW(weir_gemm_u8s8s32, (0, 0, fixed, 2, 2, 2, nan, ua, 2, 0, sb, 2, 0, 0, ic, 2, NULL, NULL),
        INVALID, "alpha is NaN, expected a finite number");
    ROW(weir_gemm_u8s8s32, (0, 0, fixed, 2, 2, 2, 1, ua, 2, 0, sb, 2, 0, -inf, ic, 2, NULL, NULL),
        INVALID, "beta is -inf, expected a finite number");
    ROW(weir_gemm_u8s8s32, (0, 0, fixed, 2, 2, 3, 1, ua, 2, 0, sb, 2, 0, 0, ic, 2, NULL, NULL), INVALID, "lda is 2");
    ROW(weir_gemm_u8s8s32, (0, 0, fixed, 2, 3, 2, 1, ua, 2, 0, sb, 2, 0, 0, ic, 3, NULL, NULL), INVALID, "ldb is 2");
    ROW(weir_gemm_u8s8s32, (0, 0, fixed, 2, 3, 2, 1, ua, 2, 0, sb, 3, 0, 0, ic, 2, NULL, NULL), INVALID, "ldc is 2");
    ROW(weir_gemm_u8s8s32, (0, 0, fixed, 2, 2, 2, 1, NULL, 2, 0, sb, 2, 0, 0, ic, 2, NULL, NULL), INVALID, "a is NULL");
    ROW(weir_gemm_u8s8s32, (0, 0, fixed, 2, 2, 2, 1, ua, 2, 0, sb, 2, 0, 0, NULL, 2, NULL, NULL), INVALID, "c is NULL");
    ROW(weir_gemm_u8s8s32, (0, 0, fixed, 2, 2, 2, 1, ua, 2, 0, sb, 2, 0, 0, UNALIGNED, 2, NULL, NULL),
        INVALID, "c is not aligned");
    ROW(weir_gemm_u8s8s32, (0, 0, fixed, 2, 2, 2, 1, ua, 2, 0, sb, 2, 0, 0, ic, 2, UNALIGNED, NULL),
        INVALID, "co is not aligned");
    ROW(weir_gemm_u8s8s32, (0, 0, fixed, 2, 2, 2, 1, (const uint8_t *)ic, 2, 0, sb, 2, 0, 0, ic, 2, NULL, NULL),
        INVALID, "c overlaps a");
    ROW(weir_gemm_u8s8s32, (0, 0, fixed, 2, 2, 2, 1, ua, 2, 0, sb, 2, 0, 0, ic, 2, NULL, WRONG(tensor)),
        INVALID, "pool: expected a threadpool, got a tensor");
    ROW(weir_gemm_s8s8s32, (0, 9, fixed, 2, 2, 2, 1, sa, 2, 0, sb, 2, 0, 0, ic, 2, NULL, NULL),
        INVALID, "transpose_b is 9");
    ROW(weir_gemm_s8s8s32, (0, 0, 7, 2, 2, 2, 1, sa, 2, 0, sb, 2, 0, 0, ic, 2, NULL, NULL), INVALID, "offsetc is 7");
    ROW(weir_gemm_s8s8s32, (0, 0, fixed, 2, 2, 2, inf, sa, 2, 0, sb, 2, 0, 0, ic, 2, NULL, NULL),
        INVALID, "alpha is inf");
    ROW(weir_gemm_s8s8s32, (0, 0, fixed, 2, 2, 2, 1, sa, 2, 0, NULL, 2, 0, 0, ic, 2, NULL, NULL), INVALID, "b is NULL");
    ROW(weir_gemm_s8s8s32, (0, 0, fixed, 2, 2, 2, 1, sa, 2, 0, sb, 2, 0, 0, ic, 2, NULL, WRONG(stream)),
        INVALID, "pool: expected a threadpool");
    for (size_t i = 0; i < 64; i++) CHECK_EQ(ic[i], 7);
}

void bad_input_gemm(void) {
    for (size_t i = 0; i < 64; i++) c[i] = 7.0f, ic[i] = 7;
    rows_of_sgemm();
    rows_of_bytes();
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The products of weir.hpp: sizes from the matrices, transposes, zero points, refusals, a pool.

#include "expect.hpp"

#include <vector>
#include <weir/ops.h>

static void test_floats(const weir::threadpool &pool) {
    const float a[] = {1, 2, 3, 4, 5, 6}, b[] = {1, 0, 0, 1, 1, 1};
    float c[] = {9, 9, 9, 9};
    const weir::matrix<const float> left(a, 2, 3), right(b, 3, 2);
    const weir::matrix<float> result(c, 2, 2);
    weir::gemm(result, left, right, {}, pool);
    EXPECT(c[0] == 4 && c[1] == 5 && c[2] == 10 && c[3] == 11);
    weir::gemm(result, right.t(), left.t(), {2, 1}, pool);
    EXPECT(c[0] == 12 && c[1] == 25 && c[2] == 20 && c[3] == 33);
    weir::gemm(result, weir::matrix<const float>(a, 2, 2, 3), weir::matrix<const float>(a + 1, 2, 2, 3), {1, 0}, pool);
    EXPECT(c[0] == 12 && c[1] == 15 && c[2] == 33 && c[3] == 42);
    weir::gemm(result, weir::matrix<const float>(nullptr, 2, 0), weir::matrix<const float>(nullptr, 0, 2), {1, 0.5f});
    EXPECT(c[0] == 6 && c[3] == 21);
}

static void test_integers(const weir::threadpool &pool) {
    const std::uint8_t a[] = {255, 255};
    const std::int8_t s[] = {-128, 127}, b[] = {127, 127};
    const std::int32_t co[] = {-70};
    std::int32_t c[] = {5};
    const weir::matrix<std::int32_t> result(c, 1, 1);
    const weir::matrix<const std::int8_t> column(b, 2, 1);
    weir::gemm(result, weir::matrix<const std::uint8_t>(a, 1, 2), column, {}, {}, pool);
    EXPECT(c[0] == 64770);
    weir::gemm(result, weir::matrix<const std::uint8_t>(a, 1, 2), column, {250, 126, WEIR_GEMM_OFFSET_ROW, co}, {1, 1});
    EXPECT(c[0] == 64770 + 10 - 70);
    weir::gemm(result, weir::matrix<const std::int8_t>(s, 1, 2), column, {-1, 0, WEIR_GEMM_OFFSET_FIXED, nullptr});
    EXPECT(c[0] == 127);
}

static void test_refusals() {
    float x[6] = {};
    std::int32_t c[1] = {};
    const std::uint8_t a[1] = {};
    const std::int8_t b[1] = {};
    const weir::matrix<float> wide(x, 2, 3);
    EXPECT_THROWS(weir::gemm(wide, wide, wide), WEIR_INVALID_ARGUMENT, "a is 2 x 3, b is 2 x 3, c is 2 x 3");
    EXPECT_THROWS(weir::gemm(wide.t(), wide, wide), WEIR_INVALID_ARGUMENT, "c is a transpose");
    const weir::matrix<float> one(x, 1, 1);
    EXPECT_THROWS(weir::gemm(one, one, one), WEIR_INVALID_ARGUMENT, "weir_sgemm: c overlaps a");
    EXPECT_THROWS(weir::gemm(weir::matrix<std::int32_t>(c, 1, 1), weir::matrix<const std::uint8_t>(a, 1, 1),
                             weir::matrix<const std::int8_t>(b, 1, 1), {-1}),
                  WEIR_OUT_OF_RANGE, "ao is -1");
}

int main() {
    const auto before = weir::runtime_info();
    test_floats(weir::threadpool());
    test_integers(weir::threadpool());
    {
        const auto pool = weir::threadpool::builtin(2);
        test_floats(pool);
        test_integers(pool);
    }
    test_refusals();
    expect_released(before);
    return 0;
}

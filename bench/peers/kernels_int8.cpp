// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Products of bytes on one thread: plain, with zero points, with packed weights.

#include "kernels_products.hpp"

namespace bench {

namespace {

struct matrices {
    array<std::uint8_t> a;
    array<std::int8_t> b;
    array<std::int32_t> ours, theirs;
    explicit matrices(const shape &s)
        : a(s.size_a(), 0, 255, 1), b(s.size_b(), -128, 127, 2), ours(s.size_c()), theirs(s.size_c()) {}
};

// oneDNN's AVX2 saturates sums of two products: small numbers make it exact.
void calm(const matrices &x) {
    for (std::size_t i = 0; i < x.a.size(); i++) x.a[i] = static_cast<std::uint8_t>(x.a[i] % 100);
}

void check(const shape &s, const matrices &x, const std::vector<side> &sides) {
    for (std::size_t i = 0; i < sides.size(); i++) {
        if (!sides[i]) continue;
        sides[i]();
        if (i > 0) same(s.name(), x.ours.data(), x.theirs.data(), x.ours.size());
    }
}

void compare(const shapes &shapes, int zero_a, int zero_b, const options &options) {
    const std::string points =
        zero_a == 0 ? "" : ", zero points " + std::to_string(zero_a) + " and " + std::to_string(zero_b);
    rates t("u8s8s32" + points + ", " + shapes.name + ", M x N x K", "GOP/s", {"oneDNN gemm", "oneDNN matmul"},
            measured_peaks().bytes, options);
    for (const auto &s : shapes.list) {
        const matrices x(s);
        if (capped()) calm(x);
        const std::vector<side> sides = {
            weir_bytes_of(s, x.a.data(), zero_a, x.b.data(), zero_b, x.ours.data()),
            [&] { dnnl_bytes_of(s, x.a.data(), zero_a, x.b.data(), zero_b, x.theirs.data()); },
            dnnl_matmul(s, x.a.data(), zero_a, x.b.data(), zero_b, x.theirs.data(), false)};
        check(s, x, sides);
        t.row(s.name(), s.operations(), sides);
    }
    t.end();
}

void compare_packed(const shapes &shapes, const options &options) {
    rates t("u8s8s32, packed weights, " + shapes.name + ", M x N x K", "GOP/s", {"oneDNN matmul, packed"},
            measured_peaks().bytes, options);
    for (const auto &s : shapes.list) {
        const matrices x(s);
        if (capped()) calm(x);
        const std::vector<side> sides = {weir_matmul(s, x.a.data(), 0, x.b.data(), 0, x.ours.data(), true),
                                         dnnl_matmul(s, x.a.data(), 0, x.b.data(), 0, x.theirs.data(), true)};
        check(s, x, sides);
        t.row(s.name(), s.operations(), sides);
    }
    t.end();
}

} // namespace

void bench_int8(const options &options) {
    for (const auto &shapes : all_shapes()) compare(shapes, 0, 0, options);
    for (const auto &shapes : all_shapes()) compare(shapes, 128, 3, options);
    compare(transposed_shapes(), 0, 0, options);
    for (const auto &shapes : all_shapes()) compare_packed(shapes, options);
}

} // namespace bench

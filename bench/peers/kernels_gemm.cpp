// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Products of f32 on one thread: plain, with B transposed, with packed weights, and batches of small ones.

#include "kernels_eigen.hpp"
#include "kernels_products.hpp"

namespace bench {

const std::vector<shapes> &all_shapes() {
    static const std::vector<shapes> all = {
        {"squares", {{64, 64, 64}, {128, 128, 128}, {256, 256, 256}, {512, 512, 512}, {1024, 1024, 1024}, {2048, 2048, 2048}}},
        {"few rows", {{1, 1024, 1024}, {8, 1024, 1024}, {32, 1024, 1024}, {1, 4096, 4096}, {8, 4096, 4096}, {32, 4096, 4096}}},
        {"layers of networks",
         {{128, 768, 768},
          {128, 3072, 768},
          {128, 768, 3072},
          {3136, 64, 576},
          {196, 256, 2304},
          {784, 512, 128},
          {2048, 256, 256},
          {2048, 128, 256},
          {2048, 64, 128},
          {2048, 1, 128},
          {2048, 512, 13},
          {2048, 1024, 479},
          {30, 4096, 4096},
          {30, 4096, 14336}}},
    };
    return all;
}

const shapes &transposed_shapes() {
    static const shapes all = {
        "B transposed",
        {{256, 256, 256, true},
         {1024, 1024, 1024, true},
         {1, 1024, 1024, true},
         {8, 1024, 1024, true},
         {32, 1024, 1024, true},
         {1, 4096, 4096, true},
         {8, 4096, 4096, true},
         {32, 4096, 4096, true},
         {128, 768, 768, true},
         {128, 3072, 768, true},
         {4, 512, 512, true},
         {5, 512, 1536, true},
         {7, 512, 2048, true},
         {8, 512, 2048, true}}};
    return all;
}

void eigen_sgemm(const shape &s, const float *a, const float *b, float *c) {
    eigen_product(s.m, s.n, s.k, s.transpose_b, a, b, c);
}

std::string eigen_name() {
    return eigen_version();
}

namespace {

// Small integers: every order of additions gives the same sums.
struct matrices {
    array<float> a, b, ours, theirs;
    explicit matrices(const shape &s, std::size_t batch = 1)
        : a(batch * s.size_a(), -4, 4, 1), b(batch * s.size_b(), -4, 4, 2), ours(batch * s.size_c()),
          theirs(batch * s.size_c()) {}
};

void check(const shape &s, const matrices &x, const std::vector<side> &sides) {
    for (std::size_t i = 0; i < sides.size(); i++) {
        if (!sides[i]) continue;
        const auto &result = i == 0 ? x.ours : x.theirs;
        for (std::size_t at = 0; at < result.size(); at++) result[at] = -1;
        sides[i]();
        if (i > 0) same(s.name(), x.ours.data(), x.theirs.data(), x.ours.size(), 0);
    }
}

// A side that does `count` products one after the other.
template <class F>
side each(F product, const shape &s, const matrices &x, std::size_t count = 1) {
    return [=] {
        for (std::size_t i = 0; i < count; i++) {
            product(s, x.a.data() + i * s.size_a(), x.b.data() + i * s.size_b(), x.theirs.data() + i * s.size_c());
        }
    };
}

// OpenBLAS, BLIS, Eigen, oneDNN's function, its primitive.
std::vector<side> others(const shape &s, const matrices &x, int batch) {
    const auto count = static_cast<std::size_t>(batch);
    std::vector<side> all(5);
    if (!capped()) {
        if (openblas_sgemm(s, x.a.data(), x.b.data(), x.theirs.data())) all[0] = each(openblas_sgemm, s, x, count);
        if (blis_sgemm(s, x.a.data(), x.b.data(), x.theirs.data())) all[1] = each(blis_sgemm, s, x, count);
        all[2] = each(eigen_sgemm, s, x, count);
    }
    all[3] = each(dnnl_sgemm_of, s, x, count);
    all[4] = dnnl_matmul(s, x.a.data(), x.b.data(), x.theirs.data(), false, batch);
    return all;
}

const std::vector<std::string> names = {"OpenBLAS", "BLIS", "Eigen", "oneDNN sgemm", "oneDNN matmul"};

void compare(const shapes &shapes, const options &options) {
    rates t("sgemm, " + shapes.name + ", M x N x K", "GFLOP/s", names, measured_peaks().fma, options);
    for (const auto &s : shapes.list) {
        const matrices x(s);
        auto sides = others(s, x, 1);
        sides.insert(sides.begin(), weir_sgemm_of(s, x.a.data(), x.b.data(), x.ours.data()));
        check(s, x, sides);
        t.row(s.name(), s.operations(), sides);
    }
    t.end();
}

} // namespace

void bench_sgemm(const options &options) {
    for (const auto &shapes : all_shapes()) compare(shapes, options);
    compare(transposed_shapes(), options);
}

void bench_packed(const options &options) {
    for (const auto &shapes : all_shapes()) {
        rates t("f32, packed weights, " + shapes.name + ", M x N x K", "GFLOP/s", {"oneDNN matmul, packed"},
                measured_peaks().fma, options);
        for (const auto &s : shapes.list) {
            const matrices x(s);
            const std::vector<side> sides = {weir_matmul(s, x.a.data(), x.b.data(), x.ours.data(), true),
                                             dnnl_matmul(s, x.a.data(), x.b.data(), x.theirs.data(), true)};
            check(s, x, sides);
            t.row(s.name(), s.operations(), sides);
        }
        t.end();
    }
}

void bench_batches(const options &options) {
    struct batch {
        const char *name;
        int count;
        shape s;
    };
    // The last one is a sixteenth of the 5376 products of a vision transformer's attention: all of them are 1.4 GB.
    const batch batches[] = {{"attention, queries and keys", 12, {128, 128, 64}},
                             {"attention, keys transposed", 12, {128, 128, 64, true}},
                             {"attention, values", 12, {128, 64, 128}},
                             {"vision transformer", 336, {197, 197, 64}}};
    rates t("f32, batches, M x N x K", "GFLOP/s", names, measured_peaks().fma, options);
    for (const auto &b : batches) {
        const matrices x(b.s, static_cast<std::size_t>(b.count));
        auto sides = others(b.s, x, b.count);
        sides.insert(sides.begin(), weir_matmul(b.s, x.a.data(), x.b.data(), x.ours.data(), false, b.count));
        check(b.s, x, sides);
        t.row(std::string(b.name) + ", " + std::to_string(b.count) + " of " + b.s.name(), b.count * b.s.operations(), sides);
    }
    t.end();
}

} // namespace bench

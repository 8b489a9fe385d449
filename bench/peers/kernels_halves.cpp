// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Products of halves on one thread, A and B of bf16 and C of bf16 or f32, beside oneDNN's primitive.

#include <cstring>
#include <weir/ops.h>

#include "kernels_dnnl.hpp"
#include "kernels_products.hpp"

namespace bench {

namespace {

using tag = dnnl::memory::format_tag;
using type = dnnl::memory::data_type;

// Whole numbers from -4 to 4, which bf16 has, as do their sums for f32.
array<std::uint16_t> halves(std::size_t size, std::uint32_t seed) {
    const array<float> x(size, -4, 4, seed);
    array<std::uint16_t> y(size);
    for (std::size_t i = 0; i < size; i++) {
        std::uint32_t bits;
        std::memcpy(&bits, &x[i], sizeof bits);
        y[i] = static_cast<std::uint16_t>(bits >> 16);
    }
    return y;
}

side ours(const shape &s, const array<std::uint16_t> &a, const array<std::uint16_t> &b, void *c, bool wide, bool packed) {
    weir_call call;
    auto desc = weir::sized<weir_matmul_desc>();
    desc.flags = (wide ? WEIR_MATMUL_F32_RESULT : 0) | (s.transpose_b && !packed ? WEIR_MATMUL_TRANSPOSE_B : 0);
    const auto b_desc = s.transpose_b ? weir::desc(WEIR_BF16, {s.n, s.k}) : weir::desc(WEIR_BF16, {s.k, s.n});
    const weir::tensor weights(call.engine, b_desc, b.data());
    if (packed) {
        auto how = weir::sized<weir_packed_weights_desc>();
        how.flags = s.transpose_b ? WEIR_PACKED_WEIGHTS_TRANSPOSED : 0;
        weir::check(weir_packed_weights_create(call.engine, weights, &how, &desc.weights));
    }
    weir_kernel *kernel = nullptr;
    weir::check(weir_kernel_create_matmul(call.engine, &desc, nullptr, &kernel));
    call.kernel = weir::kernel(kernel);
    weir_packed_weights_release(desc.weights);
    call.add(weir::desc(WEIR_BF16, {s.m, s.k}), a.data());
    if (!packed) call.add(b_desc, b.data());
    call.add(weir::desc(wide ? WEIR_F32 : WEIR_BF16, {s.m, s.n}), c);
    return call.run();
}

side theirs(const shape &s, const array<std::uint16_t> &a, const array<std::uint16_t> &b, void *c, bool wide, bool packed) {
    const dnnl::memory::desc of_a({s.m, s.k}, type::bf16, tag::ab), any({s.k, s.n}, type::bf16, tag::any);
    const dnnl::memory::desc of_b({s.k, s.n}, type::bf16, s.transpose_b ? tag::ba : tag::ab);
    const dnnl::memory::desc of_c({s.m, s.n}, wide ? type::f32 : type::bf16, tag::ab);
    try {
        const dnnl::matmul::primitive_desc pd(dnnl::matmul::desc(of_a, packed ? any : of_b, of_c), dnnl_engine());
        dnnl::memory weights(of_b, dnnl_engine(), b.data());
        if (packed && pd.weights_desc() != of_b) {
            dnnl::memory reordered(pd.weights_desc(), dnnl_engine());
            dnnl::stream stream(dnnl_engine());
            dnnl::reorder(weights, reordered).execute(stream, weights, reordered);
            stream.wait();
            weights = reordered;
        }
        return dnnl_side(dnnl::matmul(pd), {{DNNL_ARG_SRC, dnnl::memory(of_a, dnnl_engine(), a.data())},
                                            {DNNL_ARG_WEIGHTS, weights},
                                            {DNNL_ARG_DST, dnnl::memory(of_c, dnnl_engine(), c)}});
    } catch (const dnnl::error &) {
        return {}; // no implementation
    }
}

void product(const shape &s, bool packed, rates &t) {
    const auto a = halves(s.size_a(), 1), b = halves(s.size_b(), 2);
    const array<float> c(s.size_c()), other(s.size_c());
    const std::vector<side> sides = {ours(s, a, b, c.data(), true, packed), theirs(s, a, b, other.data(), true, packed)};
    sides[0]();
    if (sides[1]) sides[1](), same(s.name(), c.data(), other.data(), c.size(), 0);
    t.row(s.name() + (s.transpose_b ? ", B transposed" : "") + (packed ? ", packed" : ""), s.operations(), sides);
}

} // namespace

void bench_halves(const options &options) {
    const shape shapes[] = {{64, 64, 64},      {256, 256, 256},  {1024, 1024, 1024}, {1, 1024, 1024}, {8, 1024, 1024},
                            {32, 1024, 1024},  {128, 768, 768},  {128, 3072, 768},   {2048, 64, 128}, {30, 4096, 4096},
                            {256, 256, 256, true}, {8, 1024, 1024, true}};
    rates t("products of bf16 into f32", "GFLOP/s", {"oneDNN matmul"}, 0, options);
    for (const auto &s : shapes) {
        product(s, false, t);
        if (!s.transpose_b) product(s, true, t);
    }
    t.end();
}

} // namespace bench

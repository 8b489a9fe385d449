// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Functions of elements on one thread, for arrays in the first and second-level cache and beyond.

#include <cstring>
#include <weir/ops.h>

#include "kernels_dnnl.hpp"
#include "kernels_eigen.hpp"
#include "kernels.hpp"

namespace bench {

namespace {

using dnnl::algorithm;
using tag = dnnl::memory::format_tag;
using type = dnnl::memory::data_type;

constexpr std::int64_t sizes[] = {1024, 65536, 1048576};

std::string size_name(std::int64_t size) {
    return size < 1048576 ? std::to_string(size / 1024) + "K" : std::to_string(size / 1048576) + "M";
}

// From -4 to 4; oneDNN's functions are not exact, so what is compared is compared coarsely.
array<float> numbers(std::int64_t size, std::uint32_t seed) {
    array<float> x(static_cast<std::size_t>(size), -4000, 4000, seed);
    for (std::size_t i = 0; i < x.size(); i++) x[i] /= 1000;
    return x;
}

struct data {
    array<float> x, y, ours, theirs;
    explicit data(std::int64_t size)
        : x(numbers(size, 1)), y(numbers(size, 2)), ours(static_cast<std::size_t>(size)),
          theirs(static_cast<std::size_t>(size)) {}
};

dnnl::memory::desc line(std::int64_t size, type type = type::f32) {
    return {{size}, type, tag::a};
}

void check(const std::string &name, const data &d, const std::vector<side> &sides) {
    for (std::size_t i = 0; i < sides.size(); i++) {
        if (!sides[i]) continue;
        sides[i]();
        if (i > 0) same(name, d.ours.data(), d.theirs.data(), d.ours.size(), 2e-4);
    }
}

struct function {
    const char *name;
    weir_eltwise_op op;
    float alpha;
    algorithm theirs;
};

constexpr function functions[] = {
    {"relu", WEIR_ELTWISE_RELU, 0, algorithm::eltwise_relu},
    {"exp", WEIR_ELTWISE_EXP, 0, algorithm::eltwise_exp},
    {"tanh", WEIR_ELTWISE_TANH, 0, algorithm::eltwise_tanh},
    {"sigmoid", WEIR_ELTWISE_SIGMOID, 0, algorithm::eltwise_logistic},
    {"swish", WEIR_ELTWISE_SWISH, 1, algorithm::eltwise_swish},
    {"gelu_tanh", WEIR_ELTWISE_GELU_TANH, 0, algorithm::eltwise_gelu_tanh},
    {"gelu_erf", WEIR_ELTWISE_GELU_ERF, 0, algorithm::eltwise_gelu_erf},
};

void unary(const function &f, std::int64_t size, rates &t) {
    const data d(size);
    weir_call call;
    auto desc = weir::sized<weir_eltwise_desc>();
    desc.op = f.op;
    desc.alpha = f.alpha;
    weir_kernel *kernel = nullptr;
    weir::check(weir_kernel_create_eltwise(call.engine, &desc, nullptr, &kernel));
    call.kernel = weir::kernel(kernel);
    call.add(weir::desc(WEIR_F32, {size}), d.x.data());
    call.add(weir::desc(WEIR_F32, {size}), d.ours.data());
    const dnnl::eltwise_forward::desc theirs(dnnl::prop_kind::forward_inference, f.theirs, line(size), f.alpha);
    std::vector<side> sides = {call.run(), {},
                               dnnl_side(dnnl::eltwise_forward({theirs, dnnl_engine()}),
                                         {{DNNL_ARG_SRC, dnnl::memory(line(size), dnnl_engine(), d.x.data())},
                                          {DNNL_ARG_DST, dnnl::memory(line(size), dnnl_engine(), d.theirs.data())}}),
                               {}};
    if (!capped() && eigen_unary(f.name, d.x.data(), d.theirs.data(), size)) {
        sides[1] = [&] { eigen_unary(f.name, d.x.data(), d.theirs.data(), size); };
    }
    check(f.name, d, sides);
    t.row(std::string(f.name) + " " + size_name(size), 8.0 * static_cast<double>(size), sides);
}

void add(std::int64_t size, rates &t) {
    const data d(size);
    weir_call call;
    call.kernel = weir::kernel::add(call.engine);
    for (const auto &x : {d.x, d.y, d.ours}) call.add(weir::desc(WEIR_F32, {size}), x.data());
    const dnnl::binary::desc theirs(algorithm::binary_add, line(size), line(size), line(size));
    const std::vector<side> sides = {
        call.run(), capped() ? side() : [&] { eigen_add(d.x.data(), d.y.data(), d.theirs.data(), size); },
        dnnl_side(dnnl::binary({theirs, dnnl_engine()}),
                  {{DNNL_ARG_SRC_0, dnnl::memory(line(size), dnnl_engine(), d.x.data())},
                   {DNNL_ARG_SRC_1, dnnl::memory(line(size), dnnl_engine(), d.y.data())},
                   {DNNL_ARG_DST, dnnl::memory(line(size), dnnl_engine(), d.theirs.data())}}),
        {}};
    check("add", d, sides);
    t.row("add " + size_name(size), 12.0 * static_cast<double>(size), sides);
}

void copy(std::int64_t size, rates &t) {
    const data d(size);
    weir_call call;
    auto desc = weir::sized<weir_reshape_desc>();
    desc.rank = 1;
    desc.dims[0] = size;
    weir_kernel *kernel = nullptr;
    weir::check(weir_kernel_create_reshape(call.engine, &desc, nullptr, &kernel));
    call.kernel = weir::kernel(kernel);
    call.add(weir::desc(WEIR_F32, {size}), d.x.data());
    call.add(weir::desc(WEIR_F32, {size}), d.ours.data());
    const dnnl::memory from(line(size), dnnl_engine(), d.x.data()), to(line(size), dnnl_engine(), d.theirs.data());
    const std::vector<side> sides = {call.run(), {},
                                     dnnl_side(dnnl::reorder(from, to), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}), [&] {
                                         std::memcpy(d.theirs.data(), d.x.data(), d.x.size() * sizeof(float));
                                     }};
    check("copy", d, sides);
    t.row("copy " + size_name(size), 8.0 * static_cast<double>(size), sides);
}

void to_bytes(std::int64_t size, rates &t) {
    const data d(size);
    const array<std::int8_t> ours(d.x.size()), theirs(d.x.size());
    weir_call call;
    auto desc = weir::sized<weir_convert_desc>();
    desc.dtype = WEIR_S8;
    desc.rounding = WEIR_ROUNDING_NEAREST; // as the peer does
    weir_kernel *kernel = nullptr;
    weir::check(weir_kernel_create_convert(call.engine, &desc, nullptr, &kernel));
    call.kernel = weir::kernel(kernel);
    call.add(weir::desc(WEIR_F32, {size}), d.x.data());
    call.add(weir::desc(WEIR_S8, {size}), ours.data());
    const dnnl::memory from(line(size), dnnl_engine(), d.x.data());
    const dnnl::memory to(line(size, type::s8), dnnl_engine(), theirs.data());
    const std::vector<side> sides = {
        call.run(), {}, dnnl_side(dnnl::reorder(from, to), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}), {}};
    sides[0]();
    sides[2]();
    if (std::memcmp(ours.data(), theirs.data(), ours.size()) != 0) fail("f32 to s8: the results differ");
    t.row("f32 to s8 " + size_name(size), 5.0 * static_cast<double>(size), sides);
}

} // namespace

void bench_vector(const options &options) {
    rates t("functions of elements, numbers of elements; read and written", "GB/s", {"Eigen", "oneDNN", "memcpy"}, 0, options);
    for (const auto size : sizes) {
        for (const auto &f : functions) unary(f, size, t);
        add(size, t);
        copy(size, t);
        to_bytes(size, t);
    }
    t.end();
}

} // namespace bench

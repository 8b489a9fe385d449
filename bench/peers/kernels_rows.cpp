// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Softmax, layer normalisation, sums and transposition on one thread.

#include <weir/ops.h>

#include "kernels_dnnl.hpp"
#include "kernels_eigen.hpp"
#include "kernels.hpp"

namespace bench {

namespace {

using tag = dnnl::memory::format_tag;
using type = dnnl::memory::data_type;

struct table_of_numbers {
    std::int64_t rows, columns;
    array<float> x, ours, theirs;
    table_of_numbers(std::int64_t rows, std::int64_t columns)
        : rows(rows), columns(columns), x(static_cast<std::size_t>(rows * columns), -4000, 4000, 1), ours(x.size()),
          theirs(x.size()) {
        for (std::size_t i = 0; i < x.size(); i++) x[i] /= 1000;
    }
    dnnl::memory::desc desc() const { return {{rows, columns}, type::f32, tag::ab}; }
    dnnl_arguments arguments() const {
        return {{DNNL_ARG_SRC, dnnl::memory(desc(), dnnl_engine(), x.data())},
                {DNNL_ARG_DST, dnnl::memory(desc(), dnnl_engine(), theirs.data())}};
    }
    std::string name() const { return std::to_string(rows) + " x " + std::to_string(columns); }
    double bytes() const { return 8.0 * static_cast<double>(rows * columns); }
};

// weir's kernel from x to a result of these dimensions.
template <class Create, class Desc>
side ours(const table_of_numbers &x, Create create, const Desc &desc, const weir_tensor_desc &result) {
    weir_call call;
    weir_kernel *kernel = nullptr;
    weir::check(create(call.engine, &desc, nullptr, &kernel));
    call.kernel = weir::kernel(kernel);
    call.add(weir::desc(WEIR_F32, {x.rows, x.columns}), x.x.data());
    call.add(result, x.ours.data());
    return call.run();
}

void compare(const std::string &name, const table_of_numbers &x, double bytes, std::size_t results, double tolerance,
             const std::vector<side> &sides, rates &t) {
    for (std::size_t i = 0; i < sides.size(); i++) {
        if (!sides[i]) continue;
        sides[i]();
        if (i > 0) same(name, x.ours.data(), x.theirs.data(), results, tolerance);
    }
    t.row(name + " " + x.name(), bytes, sides);
}

void softmax(const table_of_numbers &x, rates &t) {
    auto desc = weir::sized<weir_softmax_desc>();
    desc.axis = -1;
    const dnnl::softmax_forward::desc theirs(dnnl::prop_kind::forward_inference, x.desc(), 1);
    compare("softmax", x, x.bytes(), x.x.size(), 1e-5,
            {ours(x, weir_kernel_create_softmax, desc, weir::desc(WEIR_F32, {x.rows, x.columns})), {},
             dnnl_side(dnnl::softmax_forward({theirs, dnnl_engine()}), x.arguments())},
            t);
}

void layer_norm(const table_of_numbers &x, rates &t) {
    auto desc = weir::sized<weir_norm_desc>();
    desc.op = WEIR_NORM_LAYER;
    desc.axis = -1;
    desc.epsilon = 1e-5f;
    const dnnl::layer_normalization_forward::desc theirs(dnnl::prop_kind::forward_inference, x.desc(), 1e-5f,
                                                         dnnl::normalization_flags::none);
    compare("layer norm", x, x.bytes(), x.x.size(), 1e-4,
            {ours(x, weir_kernel_create_norm, desc, weir::desc(WEIR_F32, {x.rows, x.columns})), {},
             dnnl_side(dnnl::layer_normalization_forward({theirs, dnnl_engine()}), x.arguments())},
            t);
}

void transpose(const table_of_numbers &x, rates &t) {
    auto desc = weir::sized<weir_transpose_desc>();
    desc.rank = 2;
    desc.permutation[0] = 1;
    const dnnl::memory from(x.desc(), dnnl_engine(), x.x.data());
    const dnnl::memory to({{x.rows, x.columns}, type::f32, tag::ba}, dnnl_engine(), x.theirs.data());
    compare("transpose", x, x.bytes(), x.x.size(), 0,
            {ours(x, weir_kernel_create_transpose, desc, weir::desc(WEIR_F32, {x.columns, x.rows})),
             capped() ? side() : [&] { eigen_transpose(x.x.data(), x.theirs.data(), x.rows); },
             dnnl_side(dnnl::reorder(from, to), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}})},
            t);
}

void sum(const table_of_numbers &x, rates &t) {
    auto desc = weir::sized<weir_reduce_desc>();
    desc.op = WEIR_REDUCE_SUM;
    const dnnl::memory::desc one({1, 1}, type::f32, tag::ab);
    const dnnl::reduction::desc theirs(dnnl::algorithm::reduction_sum, x.desc(), one, 0, 0);
    auto arguments = x.arguments();
    arguments[DNNL_ARG_DST] = dnnl::memory(one, dnnl_engine(), x.theirs.data());
    compare("sum", x, x.bytes() / 2, 1, 1e-2,
            {ours(x, weir_kernel_create_reduce, desc, weir::desc(WEIR_F32, {})),
             capped() ? side() : [&] { x.theirs[0] = eigen_sum(x.x.data(), x.rows * x.columns); },
             dnnl_side(dnnl::reduction({theirs, dnnl_engine()}), arguments)},
            t);
}

} // namespace

void bench_rows(const options &options) {
    rates t("rows and columns; read and written", "GB/s", {"Eigen", "oneDNN"}, 0, options);
    for (const std::int64_t columns : {128, 1024}) {
        for (const std::int64_t size : {65536, 1048576}) softmax({size / columns, columns}, t);
    }
    for (const std::int64_t columns : {128, 1024}) {
        for (const std::int64_t size : {65536, 1048576}) layer_norm({size / columns, columns}, t);
    }
    for (const std::int64_t side : {32, 256, 1024}) transpose({side, side}, t);
    for (const std::int64_t size : {65536, 1048576}) sum({size / 1024, 1024}, t);
    t.end();
}

} // namespace bench

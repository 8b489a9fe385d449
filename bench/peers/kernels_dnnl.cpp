// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Products by oneDNN: its functions, and its primitive.

#include "kernels_dnnl.hpp"

#include <omp.h>

#include <oneapi/dnnl/dnnl.h>

#include "kernels_products.hpp"

namespace bench {

namespace {

using dims = dnnl::memory::dims;
using type = dnnl::memory::data_type;
using tag = dnnl::memory::format_tag;

struct operands {
    type a, b, c;
    void *data_a, *data_b, *data_c;
    int zero_a = 0, zero_b = 0;
};

side primitive(const shape &s, const operands &o, bool packed, int batch) {
    const auto desc = [batch](std::int64_t rows, std::int64_t columns, type type, bool transposed) {
        if (batch > 1) return dnnl::memory::desc({batch, rows, columns}, type, transposed ? tag::acb : tag::abc);
        return dnnl::memory::desc({rows, columns}, type, transposed ? tag::ba : tag::ab);
    };
    const auto a = desc(s.m, s.k, o.a, false), b = desc(s.k, s.n, o.b, s.transpose_b), c = desc(s.m, s.n, o.c, false);
    const auto any = dnnl::memory::desc(b.dims(), o.b, tag::any);
    dnnl::primitive_attr attr;
    if (o.zero_a != 0) attr.set_zero_points(DNNL_ARG_SRC, 0, {o.zero_a});
    if (o.zero_b != 0) attr.set_zero_points(DNNL_ARG_WEIGHTS, 0, {o.zero_b});
    try {
        const dnnl::matmul::primitive_desc pd(dnnl::matmul::desc(a, packed ? any : b, c), attr, dnnl_engine());
        dnnl::memory weights(b, dnnl_engine(), o.data_b);
        if (packed && pd.weights_desc() != b) {
            dnnl::memory reordered(pd.weights_desc(), dnnl_engine());
            dnnl::stream stream(dnnl_engine());
            dnnl::reorder(weights, reordered).execute(stream, weights, reordered);
            stream.wait();
            weights = reordered;
        }
        return dnnl_side(dnnl::matmul(pd), {{DNNL_ARG_SRC, dnnl::memory(a, dnnl_engine(), o.data_a)},
                                            {DNNL_ARG_WEIGHTS, weights},
                                            {DNNL_ARG_DST, dnnl::memory(c, dnnl_engine(), o.data_c)}});
    } catch (const dnnl::error &) {
        return {}; // no implementation
    }
}

} // namespace

void dnnl_sgemm_of(const shape &s, const float *a, const float *b, float *c) {
    if (dnnl_sgemm('N', s.transpose_b ? 'T' : 'N', s.m, s.n, s.k, 1, a, s.k, b, s.transpose_b ? s.k : s.n, 0, c, s.n) !=
        dnnl_success) {
        fail("dnnl_sgemm");
    }
}

void dnnl_bytes_of(const shape &s, const std::uint8_t *a, int zero_a, const std::int8_t *b, int zero_b, std::int32_t *c) {
    const std::int32_t offset = 0;
    if (dnnl_gemm_u8s8s32('N', s.transpose_b ? 'T' : 'N', 'F', s.m, s.n, s.k, 1, a, s.k, static_cast<std::uint8_t>(zero_a),
                          b, s.transpose_b ? s.k : s.n, static_cast<std::int8_t>(zero_b), 0, c, s.n,
                          &offset) != dnnl_success) {
        fail("dnnl_gemm_u8s8s32");
    }
}

side dnnl_matmul(const shape &s, float *a, float *b, float *c, bool packed, int batch) {
    return primitive(s, {type::f32, type::f32, type::f32, a, b, c}, packed, batch);
}

side dnnl_matmul(const shape &s, std::uint8_t *a, int zero_a, std::int8_t *b, int zero_b, std::int32_t *c, bool packed) {
    return primitive(s, {type::u8, type::s8, type::s32, a, b, c, zero_a, zero_b}, packed, 1);
}

std::string dnnl_name() {
    const auto *version = dnnl_version();
    char isa[16];
    std::snprintf(isa, sizeof isa, "%#x", static_cast<unsigned>(dnnl_get_effective_cpu_isa()));
    return "oneDNN " + std::to_string(version->major) + "." + std::to_string(version->minor) + "." +
           std::to_string(version->patch) + " (instruction sets " + isa + ")";
}

void set_threads(int threads) {
    omp_set_num_threads(threads);
    set_blas_threads(threads);
}

} // namespace bench

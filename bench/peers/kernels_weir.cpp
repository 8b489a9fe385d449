// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Products by weir, through the C interface.

#include <weir/ops.h>

#include "kernels_products.hpp"

namespace bench {

namespace {

// `batch` products in one call, or one with packed weights, which are given up to the kernel.
template <class Create, class Desc>
void make(weir_call &call, Create create, Desc desc, const weir::tensor &b, bool packed, std::uint64_t transposed,
          bool transpose_b) {
    desc.flags = transpose_b && !packed ? transposed : 0;
    if (packed) {
        auto packing = weir::sized<weir_packed_weights_desc>();
        packing.flags = transpose_b ? static_cast<std::uint64_t>(WEIR_PACKED_WEIGHTS_TRANSPOSED) : 0;
        weir::check(weir_packed_weights_create(call.engine, b, &packing, &desc.weights));
    }
    weir_kernel *kernel = nullptr;
    weir::check(create(call.engine, &desc, nullptr, &kernel));
    call.kernel = weir::kernel(kernel);
    if (packed) weir_packed_weights_release(desc.weights);
}

} // namespace

side weir_sgemm_of(const shape &s, const float *a, const float *b, float *c, const weir::threadpool &pool) {
    return [=] {
        weir::check(weir_sgemm(0, s.transpose_b, s.m, s.n, s.k, 1, a, s.k, b, s.transpose_b ? s.k : s.n, 0, c, s.n, pool));
    };
}

side weir_bytes_of(const shape &s, const std::uint8_t *a, int zero_a, const std::int8_t *b, int zero_b, std::int32_t *c,
                   const weir::threadpool &pool) {
    return [=] {
        weir::check(weir_gemm_u8s8s32(0, s.transpose_b, WEIR_GEMM_OFFSET_FIXED, s.m, s.n, s.k, 1, a, s.k,
                                      static_cast<std::uint8_t>(zero_a), b, s.transpose_b ? s.k : s.n,
                                      static_cast<std::int8_t>(zero_b), 0, c, s.n, nullptr, pool));
    };
}

side weir_matmul(const shape &s, float *a, float *b, float *c, bool packed, int batch, const weir::threadpool &pool) {
    weir_call call(pool);
    const auto desc = [batch](std::int64_t rows, std::int64_t columns) {
        return batch > 1 ? weir::desc(WEIR_F32, {batch, rows, columns}) : weir::desc(WEIR_F32, {rows, columns});
    };
    const weir::tensor right(call.engine, s.transpose_b ? desc(s.n, s.k) : desc(s.k, s.n), b);
    make(call, weir_kernel_create_matmul, weir::sized<weir_matmul_desc>(), right, packed, WEIR_MATMUL_TRANSPOSE_B,
         s.transpose_b);
    call.add(desc(s.m, s.k), a);
    if (!packed) call.tensors.push_back(right);
    call.add(desc(s.m, s.n), c);
    return call.run();
}

side weir_matmul(const shape &s, std::uint8_t *a, int zero_a, std::int8_t *b, int zero_b, std::int32_t *c, bool packed) {
    weir_call call;
    const weir::tensor right(call.engine,
                             s.transpose_b ? weir::desc(WEIR_S8, {s.n, s.k}) : weir::desc(WEIR_S8, {s.k, s.n}), b);
    auto desc = weir::sized<weir_matmul_int8_desc>();
    desc.zero_a = zero_a;
    desc.zero_b = zero_b;
    make(call, weir_kernel_create_matmul_int8, desc, right, packed, WEIR_MATMUL_INT8_TRANSPOSE_B, s.transpose_b);
    call.add(weir::desc(WEIR_U8, {s.m, s.k}), a);
    if (!packed) call.tensors.push_back(right);
    call.add(weir::desc(WEIR_S32, {s.m, s.n}), c);
    return call.run();
}

} // namespace bench

// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Products: their shapes, and each library's way to do them. All matrices are dense and row-major.

#ifndef WEIR_BENCH_KERNELS_PRODUCTS_HPP
#define WEIR_BENCH_KERNELS_PRODUCTS_HPP

#include <string>
#include <vector>

#include "kernels.hpp"

namespace bench {

struct shape {
    int m, n, k;
    bool transpose_b = false; // B is n x k
    double operations() const { return 2.0 * m * n * k; }
    std::size_t size_a() const { return static_cast<std::size_t>(m) * static_cast<std::size_t>(k); }
    std::size_t size_b() const { return static_cast<std::size_t>(k) * static_cast<std::size_t>(n); }
    std::size_t size_c() const { return static_cast<std::size_t>(m) * static_cast<std::size_t>(n); }
    std::string name() const {
        return std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k);
    }
};

struct shapes {
    std::string name;
    std::vector<shape> list;
};

/// Squares, few rows, layers of networks.
const std::vector<shapes> &all_shapes();
/// With B transposed.
const shapes &transposed_shapes();

/// C = A * B of f32 by OpenBLAS and BLIS, which have the same names: each comes from its shared library. False if it is
/// not there.
bool openblas_sgemm(const shape &s, const float *a, const float *b, float *c);
bool blis_sgemm(const shape &s, const float *a, const float *b, float *c);
std::string openblas_name();
std::string blis_name();
void set_blas_threads(int threads);

/// By Eigen, compiled for this processor; on one thread.
void eigen_sgemm(const shape &s, const float *a, const float *b, float *c);
std::string eigen_name();

/// By oneDNN's functions.
void dnnl_sgemm_of(const shape &s, const float *a, const float *b, float *c);
void dnnl_bytes_of(const shape &s, const std::uint8_t *a, int zero_a, const std::int8_t *b, int zero_b, std::int32_t *c);
/// By its primitive; `packed` gives it B in the layout that it likes best. Empty if there is none for the shape.
side dnnl_matmul(const shape &s, float *a, float *b, float *c, bool packed, int batch = 1);
side dnnl_matmul(const shape &s, std::uint8_t *a, int zero_a, std::int8_t *b, int zero_b, std::int32_t *c, bool packed);
std::string dnnl_name();

/// By weir: its function, or its kernel.
side weir_sgemm_of(const shape &s, const float *a, const float *b, float *c,
                   const weir::threadpool &pool = weir::threadpool());
side weir_bytes_of(const shape &s, const std::uint8_t *a, int zero_a, const std::int8_t *b, int zero_b, std::int32_t *c,
                   const weir::threadpool &pool = weir::threadpool());
side weir_matmul(const shape &s, float *a, float *b, float *c, bool packed, int batch = 1,
                 const weir::threadpool &pool = weir::threadpool());
side weir_matmul(const shape &s, std::uint8_t *a, int zero_a, std::int8_t *b, int zero_b, std::int32_t *c, bool packed);

} // namespace bench

#endif // WEIR_BENCH_KERNELS_PRODUCTS_HPP

// SPDX-License-Identifier: MIT OR Apache-2.0
//
// What Eigen does here. Its file is compiled for this processor only, so it shares no header with others that has
// inline functions of its own.

#ifndef WEIR_BENCH_KERNELS_EIGEN_HPP
#define WEIR_BENCH_KERNELS_EIGEN_HPP

#include <cstddef>
#include <string>

namespace bench {

void eigen_product(int m, int n, int k, bool transpose_b, const float *a, const float *b, float *c);
/// False if Eigen has no such function.
bool eigen_unary(const std::string &name, const float *x, float *y, std::ptrdiff_t size);
void eigen_add(const float *x, const float *y, float *z, std::ptrdiff_t size);
void eigen_transpose(const float *x, float *y, std::ptrdiff_t side);
float eigen_sum(const float *x, std::ptrdiff_t size);
std::string eigen_version();

} // namespace bench

#endif // WEIR_BENCH_KERNELS_EIGEN_HPP

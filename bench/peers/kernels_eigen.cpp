// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Eigen, compiled for the processor that compiles it. Under another name: other files use it compiled for any processor.

#define Eigen EigenNative
#define EIGEN_DONT_PARALLELIZE

#include <Eigen/Core>

#include "kernels_eigen.hpp"

namespace bench {

namespace {

using rows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using values = Eigen::Map<Eigen::ArrayXf>;
using inputs = Eigen::Map<const Eigen::ArrayXf>;

} // namespace

void eigen_product(int m, int n, int k, bool transpose_b, const float *a, const float *b, float *c) {
    const Eigen::Map<const rows> left(a, m, k);
    Eigen::Map<rows> result(c, m, n);
    if (transpose_b) {
        result.noalias() = left * Eigen::Map<const rows>(b, n, k).transpose();
    } else {
        result.noalias() = left * Eigen::Map<const rows>(b, k, n);
    }
}

bool eigen_unary(const std::string &name, const float *x, float *y, std::ptrdiff_t size) {
    const inputs from(x, size);
    values to(y, size);
    if (name == "exp") {
        to = from.exp();
    } else if (name == "tanh") {
        to = from.tanh();
    } else if (name == "relu") {
        to = from.max(0.0f);
    } else if (name == "sigmoid") {
        to = from.logistic();
    } else if (name == "log") {
        to = from.log();
    } else {
        return false;
    }
    return true;
}

void eigen_add(const float *x, const float *y, float *z, std::ptrdiff_t size) {
    values(z, size) = inputs(x, size) + inputs(y, size);
}

void eigen_transpose(const float *x, float *y, std::ptrdiff_t side) {
    Eigen::Map<rows>(y, side, side) = Eigen::Map<const rows>(x, side, side).transpose();
}

float eigen_sum(const float *x, std::ptrdiff_t size) {
    return inputs(x, size).sum();
}

std::string eigen_version() {
    return "Eigen " + std::to_string(EIGEN_WORLD_VERSION) + "." + std::to_string(EIGEN_MAJOR_VERSION) + "." +
           std::to_string(EIGEN_MINOR_VERSION);
}

} // namespace bench

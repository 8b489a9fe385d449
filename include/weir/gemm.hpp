// Matrix products without an engine, on a pool given by the call.
// SPDX-License-Identifier: MIT OR Apache-2.0

#ifndef WEIR_GEMM_HPP
#define WEIR_GEMM_HPP

#include <cstdint>
#include <string>
#include <type_traits>

#include "ops.h"
#include "threadpool.hpp"

namespace weir {

/// A row-major matrix in your memory, `stride` elements from row to row. t() is its transpose; nothing moves.
template <class T>
struct matrix {
    T *data;                 ///< The first element.
    std::int64_t rows;       ///< As it lies in memory.
    std::int64_t columns;    ///< As it lies in memory.
    std::int64_t stride;     ///< Elements from row to row, at least `columns`.
    bool transposed = false; ///< Whether the transpose is meant.

    /// Rows without a gap.
    matrix(T *first, std::int64_t num_rows, std::int64_t num_columns) noexcept
        : matrix(first, num_rows, num_columns, num_columns > 0 ? num_columns : 1) {}
    /// Rows that are `row_stride` elements apart.
    matrix(T *first, std::int64_t num_rows, std::int64_t num_columns, std::int64_t row_stride) noexcept
        : data(first), rows(num_rows), columns(num_columns), stride(row_stride) {}
    /// A matrix to write is one to read, too.
    template <class U, class = std::enable_if_t<std::is_same<T, const U>::value>>
    matrix(const matrix<U> &other) noexcept
        : data(other.data), rows(other.rows), columns(other.columns), stride(other.stride),
          transposed(other.transposed) {}

    /// The transpose, over the same memory.
    matrix t() const noexcept {
        matrix other = *this;
        other.transposed = !transposed;
        return other;
    }
    /// Rows of what is meant.
    std::int64_t height() const noexcept { return transposed ? columns : rows; }
    /// Columns of what is meant.
    std::int64_t width() const noexcept { return transposed ? rows : columns; }
};

/// C = alpha * A * B + beta * C
struct gemm_scale {
    float alpha = 1.0f; ///< Of the product.
    float beta = 0.0f;  ///< Of C as it was; with 0 C is not read.
};

/// What an integer product has besides: zero points of A and B, and what is added to C.
struct gemm_integers {
    std::int32_t ao = 0;                                ///< Zero point of A, a value of its type.
    std::int32_t bo = 0;                                ///< Zero point of B, a value of its type.
    weir_gemm_offset offsetc = WEIR_GEMM_OFFSET_FIXED;  ///< What `co` has: one number, a row or a column.
    const std::int32_t *co = nullptr;                   ///< What is added to C; nullptr for nothing.
};

namespace detail {

template <class C, class A, class B>
bool fit(const matrix<C> &c, const matrix<A> &a, const matrix<B> &b) {
    const auto text = [](std::int64_t rows, std::int64_t columns) {
        return std::to_string(rows) + " x " + std::to_string(columns);
    };
    if (c.transposed) {
        fail(WEIR_INVALID_ARGUMENT, "weir::gemm: c is a transpose");
        return false;
    }
    if (a.height() != c.rows || a.width() != b.height() || b.width() != c.columns) {
        fail(WEIR_INVALID_ARGUMENT, "weir::gemm: a is " + text(a.height(), a.width()) + ", b is " +
                                        text(b.height(), b.width()) + ", c is " + text(c.rows, c.columns));
        return false;
    }
    return true;
}

template <class T>
bool zero_point(T &zero, std::int32_t value, const char *name) {
    zero = static_cast<T>(value);
    if (zero == value) return true;
    fail(WEIR_OUT_OF_RANGE,
         std::string("weir::gemm: ") + name + " is " + std::to_string(value) + ", which is no value of its matrix");
    return false;
}

} // namespace detail

/// See weir_sgemm. The sizes are those of the matrices, which must fit together.
inline void gemm(const matrix<float> &c, const matrix<const float> &a, const matrix<const float> &b,
                 const gemm_scale &scale = gemm_scale(), const threadpool &pool = threadpool()) {
    if (!detail::fit(c, a, b)) return;
    check(weir_sgemm(a.transposed, b.transposed, c.rows, c.columns, a.width(), scale.alpha, a.data, a.stride, b.data,
                     b.stride, scale.beta, c.data, c.stride, pool));
}

/// See weir_gemm_u8s8s32.
inline void gemm(const matrix<std::int32_t> &c, const matrix<const std::uint8_t> &a,
                 const matrix<const std::int8_t> &b, const gemm_integers &with = gemm_integers(),
                 const gemm_scale &scale = gemm_scale(), const threadpool &pool = threadpool()) {
    std::uint8_t ao;
    std::int8_t bo;
    if (!detail::fit(c, a, b)) return;
    if (!detail::zero_point(ao, with.ao, "ao") || !detail::zero_point(bo, with.bo, "bo")) return;
    check(weir_gemm_u8s8s32(a.transposed, b.transposed, with.offsetc, c.rows, c.columns, a.width(), scale.alpha, a.data,
                            a.stride, ao, b.data, b.stride, bo, scale.beta, c.data, c.stride, with.co, pool));
}

/// See weir_gemm_s8s8s32.
inline void gemm(const matrix<std::int32_t> &c, const matrix<const std::int8_t> &a, const matrix<const std::int8_t> &b,
                 const gemm_integers &with = gemm_integers(), const gemm_scale &scale = gemm_scale(),
                 const threadpool &pool = threadpool()) {
    std::int8_t ao;
    std::int8_t bo;
    if (!detail::fit(c, a, b)) return;
    if (!detail::zero_point(ao, with.ao, "ao") || !detail::zero_point(bo, with.bo, "bo")) return;
    check(weir_gemm_s8s8s32(a.transposed, b.transposed, with.offsetc, c.rows, c.columns, a.width(), scale.alpha, a.data,
                            a.stride, ao, b.data, b.stride, bo, scale.beta, c.data, c.stride, with.co, pool));
}

} // namespace weir

#endif // WEIR_GEMM_HPP

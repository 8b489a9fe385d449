// SPDX-License-Identifier: MIT OR Apache-2.0
//
// weir's kernels beside those of libraries: what the sections share.

#ifndef WEIR_BENCH_KERNELS_HPP
#define WEIR_BENCH_KERNELS_HPP

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "measure.hpp"
#include "weir.hpp"

namespace bench {

/// Cache lines of elements, freed with the last copy.
template <class T>
class array {
public:
    array() = default;
    explicit array(std::size_t size)
        : size_(size), data_(static_cast<T *>(std::aligned_alloc(64, (size * sizeof(T) + 64) / 64 * 64)), std::free) {}
    /// Small integers from `first` to `last`, in no order.
    array(std::size_t size, int first, int last, std::uint32_t seed) : array(size) {
        const auto count = static_cast<std::uint32_t>(last - first + 1);
        for (std::size_t i = 0; i < size; i++) {
            seed = seed * 1664525u + 1013904223u;
            data()[i] = static_cast<T>(first + static_cast<int>((seed >> 8) % count));
        }
    }
    T *data() const { return data_.get(); }
    std::size_t size() const { return size_; }
    T &operator[](std::size_t i) const { return data_.get()[i]; }

private:
    std::size_t size_ = 0;
    std::shared_ptr<T> data_;
};

/// A table: weir's rate first, then those of the others, and the ratio to the best of them in the same rounds.
class rates {
public:
    /// `peak` is what the processor can do at most, in the unit of the rates; 0 = not known.
    rates(std::string title, std::string unit, std::vector<std::string> peers, double peak, const options &options);
    /// `amount` is what one call does, in units times nanoseconds. A side that does not take part is empty. `sides` has
    /// weir first.
    void row(const std::string &name, double amount, const std::vector<side> &sides);
    /// The geometric mean and the worst row.
    void end() const;

private:
    std::vector<std::string> peers_;
    double peak_;
    const options *options_;
    std::unique_ptr<table> table_;
    std::vector<double> ratios_;
    std::string worst_name_;
    double worst_ = 1e9;
};

/// The same with a batch of calls for each, long enough for the clock and short enough for many rounds; `apart` as in
/// take_turns.
timings race(const std::vector<side> &sides, const options &options, bool apart = false);

/// What this processor does at most on one thread, measured.
struct peaks {
    double fma = 0, fma_avx2 = 0; // GFLOP/s in f32
    double bytes = 0;             // GOP/s of u8 times s8; 0 without VNNI
};
const peaks &measured_peaks();

/// One thread each, or two.
void set_threads(int threads);
/// Whether this run is about AVX2 only.
bool capped();

/// The call is done by weir's kernel with these tensors on a synchronous stream.
struct weir_call {
    weir::engine engine;
    weir::stream stream;
    weir::kernel kernel;
    std::vector<weir::tensor> tensors; // the last one is the output

    explicit weir_call(const weir::threadpool &pool = weir::threadpool()) : engine(weir::engine::cpu(pool)), stream(engine) {}
    void add(const weir_tensor_desc &desc, void *data) { tensors.emplace_back(engine, desc, data); }
    side run() const;
};

[[noreturn]] void fail(const std::string &what);
/// Stops the program if two results differ by more than `tolerance` of the larger of 1 and the first one.
void same(const std::string &what, const float *ours, const float *theirs, std::size_t size, double tolerance);
void same(const std::string &what, const std::int32_t *ours, const std::int32_t *theirs, std::size_t size);

// The sections, each a file.
void bench_peaks(const options &options);
void bench_sgemm(const options &options);
void bench_packed(const options &options);
void bench_batches(const options &options);
void bench_int8(const options &options);
void bench_halves(const options &options);
void bench_vector(const options &options);
void bench_rows(const options &options);
void bench_threads(const options &options);

} // namespace bench

#endif // WEIR_BENCH_KERNELS_HPP

// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Random numbers with a fixed seed, so that every run has the same graphs and the same costs.

#ifndef WEIR_BENCH_GRAPHS_RANDOM_HPP
#define WEIR_BENCH_GRAPHS_RANDOM_HPP

#include <cstddef>
#include <cstdint>

namespace bench {

// splitmix64 (Steele, Lea and Flood 2014).
class random_numbers {
public:
    explicit random_numbers(std::uint64_t seed) : state_(seed) {}
    std::uint64_t next() {
        state_ += 0x9E3779B97F4A7C15u;
        std::uint64_t z = state_;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
        return z ^ (z >> 31);
    }
    /// 1 to n.
    std::uint32_t up_to(std::size_t n) { return static_cast<std::uint32_t>(next() % n) + 1; }

private:
    std::uint64_t state_;
};

} // namespace bench

#endif // WEIR_BENCH_GRAPHS_RANDOM_HPP

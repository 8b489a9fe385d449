// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Graphs of weir's that carry values, and what is known of each: built, compiled and run in one thread.

#ifndef WEIR_BENCH_DATA_HPP
#define WEIR_BENCH_DATA_HPP

#include <cstddef>
#include <cstdint>
#include <vector>

#include "weir.hpp"

namespace bench {

/// What the nodes of a graph wait for: chains, or layers of `width` nodes that each wait for two of the layer before.
struct data_shape {
    const char *name;
    std::uint32_t nodes, width;
    /// The nodes that node i waits for, none or up to two.
    std::vector<std::uint32_t> before(std::uint32_t i) const;
};

/// What a graph cost. Bytes are those that the heap has handed out.
struct data_costs {
    double add_ns = 0, compile_ns = 0, first_ns = 0, run_ns = 0;
    std::int64_t graph_bytes = 0, program_bytes = 0, run_bytes = 0;
};

enum class kernels { none, shared, own };

/// Nodes that are tasks, or kernels over one s32 each: one kernel for all of them, or one for each.
data_costs measure_data(const data_shape &shape, kernels kernels, int runs);

/// Nanoseconds of one iteration of a while loop in which each of so many s32 goes through a kernel.
double measure_loop(std::size_t variables, int runs);

} // namespace bench

#endif // WEIR_BENCH_DATA_HPP

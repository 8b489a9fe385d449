// SPDX-License-Identifier: MIT OR Apache-2.0
//
// weir as a contender: the pools that it runs on, and graphs of plain C functions through its C interface.

#ifndef WEIR_BENCH_GRAPHS_WEIR_HPP
#define WEIR_BENCH_GRAPHS_WEIR_HPP

#include "graphs.hpp"
#include "weir.hpp"

namespace bench {

/// A pool with one thread beside the caller, and what it is called.
struct named_pool {
    std::string name;
    weir::threadpool pool;
};
/// TBB, Eigen, OpenMP, and weir's built-in pool. They live until the program ends.
const std::vector<named_pool> &graph_pools();

/// The engine of all graphs.
const weir::engine &cpu();

/// The graph as tasks and control edges, on this pool or, if NULL, on the caller alone.
std::unique_ptr<runner> make_weir(const job &job, const weir::threadpool *pool);

} // namespace bench

#endif // WEIR_BENCH_GRAPHS_WEIR_HPP

// SPDX-License-Identifier: MIT OR Apache-2.0
//
// weir as a contender: the pools that it runs on, and graphs of plain C functions through its C interface.

#ifndef WEIR_BENCH_GRAPHS_WEIR_HPP
#define WEIR_BENCH_GRAPHS_WEIR_HPP

#include "graphs.hpp"
#include "weir.hpp"

namespace bench {

/// A pool, and what it is called.
struct named_pool {
    std::string name;
    weir::threadpool pool;
};
/// TBB, Eigen, OpenMP, and weir's built-in pool, each for so many threads with the caller. They live until the program
/// ends.
const std::vector<named_pool> &graph_pools(int threads = 2);

/// The engine of all graphs.
const weir::engine &cpu();

/// The graph as tasks and control edges. cost_ns are the nodes' hints; NULL: none.
weir::program compile_tasks(const job &job, const std::vector<double> *cost_ns = nullptr);

/// The same, to be run on this pool or, if NULL, on the caller alone.
std::unique_ptr<runner> make_weir(const job &job, const weir::threadpool *pool,
                                  const std::vector<double> *cost_ns = nullptr);

} // namespace bench

#endif // WEIR_BENCH_GRAPHS_WEIR_HPP

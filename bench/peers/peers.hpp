// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The pools that weir is compared with: a team of two on each, the caller and one thread, in their own idiom and as a
// pool of weir's.

#ifndef WEIR_BENCH_PEERS_HPP
#define WEIR_BENCH_PEERS_HPP

#include <functional>
#include <string>
#include <vector>

#include "measure.hpp"
#include "weir.hpp"

namespace bench {

struct peer {
    std::string name;
    weir::threadpool pool;                    // weir on its threads
    std::function<void(const work &)> own;    // the pool's own parallel loop; empty for weir's own pools
    std::function<void(void (*task)())> pair; // its fork and join of two tasks
};

/// OpenMP, TBB, Eigen, std::thread, and last weir's built-in pool. They live until the program ends.
const std::vector<peer> &peers();
const peer &peer_named(const std::string &name);

/// weir over this work; with_hint tells it what an item costs.
void run_weir(const weir::threadpool &pool, const work &work, bool with_hint);

// The sections, each a file.
void bench_regions(const options &options);
void bench_sweep(const options &options);
void bench_uneven(const options &options);
void bench_quiet(const options &options);
void bench_tasks(const options &options);
void bench_operators(const options &options);

} // namespace bench

#endif // WEIR_BENCH_PEERS_HPP

// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Bodies that prove the order: each takes the time when it begins and when it ends from one clock of all.

#ifndef WEIR_BENCH_GRAPHS_ORDER_HPP
#define WEIR_BENCH_GRAPHS_ORDER_HPP

#include <atomic>
#include <deque>

#include "graphs.hpp"

namespace bench {

class order_proof {
public:
    explicit order_proof(const shape &graph);
    const call *calls() const { return calls_.data(); }
    /// Throws unless each node has run exactly once since the call before, and after all that it waits for.
    void expect_one_run(const std::string &who);

private:
    struct stamp {
        std::atomic<std::uint64_t> *clock = nullptr;
        std::uint64_t begun = 0, ended = 0, runs = 0;
    };
    static std::int32_t take_stamp(void *arg);

    const shape &graph_;
    std::atomic<std::uint64_t> clock_{1};
    std::deque<stamp> stamps_;
    std::vector<call> calls_;
    std::uint64_t runs_ = 0;
};

} // namespace bench

#endif // WEIR_BENCH_GRAPHS_ORDER_HPP

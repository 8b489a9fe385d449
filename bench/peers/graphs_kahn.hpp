// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Counting on a task system of any kind: each node has an atomic count of what it waits for, the thread that takes it
// to zero goes on with the node itself if it has no other, and gives the rest to the task system. The counts put
// themselves back. Nodes with one predecessor are not counted.

#ifndef WEIR_BENCH_GRAPHS_KAHN_HPP
#define WEIR_BENCH_GRAPHS_KAHN_HPP

#include <atomic>

#include "graphs.hpp"

namespace bench {

class kahn {
public:
    explicit kahn(const job &job)
        : roots_(job.graph.roots), next_(job.graph.next), nodes_(job.graph.nodes) {
        for (std::uint32_t i = 0; i < job.graph.nodes; i++) {
            auto &node = nodes_[i];
            node.work = job.calls[i];
            node.first = job.graph.first[i];
            node.last = job.graph.first[i + 1];
            node.in_degree = job.graph.in_degree[i];
            node.waits.store(node.in_degree, std::memory_order_relaxed);
        }
    }

    const std::vector<std::uint32_t> &roots() const { return roots_; }

    /// Runs node i and, one after the other, nodes that become ready by it; spawn(k) is told of the others.
    template <class Spawn>
    void follow(std::uint32_t i, const Spawn &spawn) {
        constexpr std::uint32_t none = ~std::uint32_t{0};
        while (i != none) {
            const node &done = nodes_[i];
            done.work.fn(done.work.arg);
            i = none;
            for (std::uint32_t k = done.first; k < done.last; k++) {
                const std::uint32_t to = next_[k];
                if (!arrive(nodes_[to])) continue;
                if (i == none) {
                    i = to;
                } else {
                    spawn(to);
                }
            }
        }
    }

private:
    struct node {
        call work;
        std::uint32_t first, last, in_degree;
        std::atomic<std::uint32_t> waits;
    };

    // Whether that was the last thing that the node waited for.
    static bool arrive(node &to) {
        if (to.in_degree == 1) return true;
        // The last arrival sees what all others did before theirs.
        if (to.waits.fetch_sub(1, std::memory_order_acq_rel) != 1) return false;
        // Nobody arrives again before the next run, which begins after this one has ended.
        to.waits.store(to.in_degree, std::memory_order_relaxed);
        return true;
    }

    std::vector<std::uint32_t> roots_, next_;
    std::vector<node> nodes_;
};

} // namespace bench

#endif // WEIR_BENCH_GRAPHS_KAHN_HPP

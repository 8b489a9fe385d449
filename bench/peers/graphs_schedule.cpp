// SPDX-License-Identifier: MIT OR Apache-2.0
//
// What two threads could do at best, if starting a node cost nothing. All nodes take the same time. Then taking the
// nodes with the longest way to the end first (Hu 1961) comes very close to the optimum; half of the nodes, or the
// longest path, is below it. Where both are the same, that is the optimum. With different costs and more machines the
// same rule is the yardstick.

#include <algorithm>
#include <functional>
#include <queue>

#include "graphs.hpp"

namespace bench {

schedule best_of_two(const shape &graph) {
    std::vector<std::uint32_t> way(graph.nodes, 1); // nodes on the longest path to the end
    std::uint32_t longest = 0;
    for (std::uint32_t i = graph.nodes; i-- > 0;) {
        for (std::uint32_t k = graph.first[i]; k < graph.first[i + 1]; k++) {
            way[i] = std::max(way[i], way[graph.next[k]] + 1);
        }
        longest = std::max(longest, way[i]);
    }

    std::priority_queue<std::pair<std::uint32_t, std::uint32_t>> ready; // (way, node)
    for (const auto root : graph.roots) ready.emplace(way[root], root);
    std::vector<std::uint32_t> waits = graph.in_degree;
    std::uint32_t length = 0;
    while (!ready.empty()) {
        std::uint32_t step[2], taken = 0;
        for (; taken < 2 && !ready.empty(); taken++) {
            step[taken] = ready.top().second;
            ready.pop();
        }
        for (std::uint32_t t = 0; t < taken; t++) {
            for (std::uint32_t k = graph.first[step[t]]; k < graph.first[step[t] + 1]; k++) {
                const std::uint32_t to = graph.next[k];
                if (--waits[to] == 0) ready.emplace(way[to], to);
            }
        }
        length++;
    }
    return {std::max(longest, (graph.nodes + 1) / 2), length};
}

double rank_schedule(const shape &graph, const std::vector<double> &cost, int machines) {
    std::vector<double> rank = cost;
    for (std::uint32_t i = graph.nodes; i-- > 0;) {
        for (std::uint32_t k = graph.first[i]; k < graph.first[i + 1]; k++) {
            rank[i] = std::max(rank[i], cost[i] + rank[graph.next[k]]);
        }
    }
    using timed_node = std::pair<double, std::uint32_t>;
    std::priority_queue<timed_node> ready;                                                        // by rank
    std::priority_queue<timed_node, std::vector<timed_node>, std::greater<timed_node>> running; // by their ends
    for (const auto root : graph.roots) ready.emplace(rank[root], root);
    std::vector<std::uint32_t> waits = graph.in_degree;
    double now = 0;
    for (;;) {
        for (; !ready.empty() && running.size() < static_cast<std::size_t>(machines); ready.pop()) {
            running.emplace(now + cost[ready.top().second], ready.top().second);
        }
        if (running.empty()) return now;
        now = running.top().first;
        while (!running.empty() && running.top().first <= now) {
            const std::uint32_t done = running.top().second;
            running.pop();
            for (std::uint32_t k = graph.first[done]; k < graph.first[done + 1]; k++) {
                const std::uint32_t to = graph.next[k];
                if (--waits[to] == 0) ready.emplace(rank[to], to);
            }
        }
    }
}

} // namespace bench

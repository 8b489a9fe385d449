// SPDX-License-Identifier: MIT OR Apache-2.0
//
// What two threads could do at best, if starting a node cost nothing. All nodes take the same time. Then taking the nodes
// with the longest way to the end first (Hu 1961) comes very close to the optimum; half of the nodes, or the
// longest path, is below it. Where both are the same, that is the optimum.

#include <algorithm>
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

} // namespace bench

// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The first run of a program: nothing is known of its nodes yet. The threads have worked before.

#include <algorithm>
#include <cstdio>

#include "graphs_tables.hpp"

namespace bench {

namespace {

struct first_case {
    std::uint32_t nodes;
    double ns;
    int threads;
    bool sleeps;
    std::string name() const {
        return std::to_string(nodes) + " x " + duration(ns) +
               (sleeps ? " asleep, " + std::to_string(threads) + " threads" : "");
    }
};
const first_case cases[] = {{2, 1e6, 2, false},  {3, 1e6, 2, false},  {4, 1e6, 2, false},  {8, 1e6, 2, false},
                            {64, 1e6, 2, false}, {8, 1e5, 2, false}, {64, 1e5, 2, false}, {4, 1e7, 8, true}};

} // namespace

void bench_first(const graph_options &options) {
    const int rounds = std::max(options.rounds / 2, 3);
    std::printf("\n## The first run of a fresh program: time / the serial loop's\n\n"
                "Independent nodes on two threads. %d programs each in turn, medians; in brackets weir's second run.\n",
                rounds);
    std::vector<std::string> cells = {"nodes", "best"};
    const auto names = side_by_side(options, 2);
    for (std::size_t side = 1; side < names.size(); side++) cells.push_back(names[side].name);
    const table t(cells);
    for (const auto &one : cases) {
        if (one.name().find(options.shape) == std::string::npos) continue;
        const auto sides = side_by_side(options, one.threads);
        const shape graph = independent(one.nodes);
        const std::vector<double> cost(one.nodes, one.ns);
        bodies work(cost, one.sleeps ? 1 : 1e18);
        const shape other = independent(32);
        bodies other_work(std::vector<double>(other.nodes, 2e4));
        for (const auto &side : sides) side.make({other, other_work.calls(), one.threads})->run(); // starts the threads

        timings times(sides.size()), second(sides.size());
        for (int round = 0; round < rounds; round++) {
            for (std::size_t k = 0; k < sides.size(); k++) {
                const std::size_t side = (k + static_cast<std::size_t>(round)) % sides.size();
                const auto built = sides[side].make({graph, work.calls(), one.threads});
                settle();
                const auto start = now_ns();
                built->run();
                times.add(side, static_cast<double>(now_ns() - start));
                work.expect_runs(1, sides[side].name);
                if (sides[side].plays != role::weir) continue;
                const auto again = now_ns();
                built->run();
                second.add(side, static_cast<double>(now_ns() - again));
                work.expect_runs(1, sides[side].name);
            }
        }
        const double serial = times.ns(0);
        cells = {one.name(), fixed(rank_schedule(graph, cost, one.threads) / (one.ns * one.nodes))};
        for (std::size_t side = 1; side < sides.size(); side++) {
            cells.push_back(fixed(times.ratio(side, 0)) +
                            (sides[side].plays == role::weir ? " (" + fixed(second.ns(side) / serial) + ")" : ""));
        }
        t.row(cells);
    }
}

} // namespace bench

// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Narrow forks, one after the other: each is worth less than waking a thread, all of them together are worth much.

#include <cstdio>

#include "graphs_tables.hpp"

namespace bench {

namespace {

// About two milliseconds of work.
std::uint32_t stages_for(std::uint32_t width, double body_ns) {
    return static_cast<std::uint32_t>(std::max(2e6 / (body_ns * (width + 1)), 8.0));
}

void speed_ups(const graph_options &options, std::uint32_t width) {
    std::printf("\nForks of %u, speed-up over the serial loop; best: what two threads can reach:\n", width);
    std::vector<std::string> cells = {"body", "best"};
    const auto sides = side_by_side(options, 2);
    for (std::size_t side = 1; side < sides.size(); side++) cells.push_back(sides[side].name);
    cells.push_back("weir's worst / best peer");
    const table t(cells);
    over_shapes behind;
    for (const int us : {1, 2, 3, 5, 8, 12, 20}) {
        const std::string body = std::to_string(us) + " us";
        shape graph = forks(width, stages_for(width, us * 1e3));
        const std::vector<double> cost(graph.nodes, us * 1e3);
        const double best = graph.nodes * us * 1e3 / rank_schedule(graph, cost, 2);
        bodies work(cost);
        const outcome race = race_one(options, std::move(graph), work, 2);
        cells = {body, fixed(best)};
        for (std::size_t side = 1; side < race.size(); side++) cells.push_back(fixed(race.ratio(0, side)));
        const double worst = race.behind();
        if (worst > 0) behind.add(worst, body);
        cells.push_back(worst > 0 ? fixed(worst) : "");
        t.row(cells);
    }
    std::printf("\nGeometric mean of weir's worst time / best peer's: %s.\n", behind.with_largest().c_str());
}

} // namespace

void bench_forks(const graph_options &options) {
    std::printf("\n## Chains of forks, two threads\n\n%d rounds in turn, medians.\n", options.rounds);
    for (const std::uint32_t width : {2, 4}) speed_ups(options, width);

    std::printf("\nDiamonds of 1 us, ns a node. Goals: 660 with forks of 4; 1.25 x the serial loop with forks of 2.\n");
    std::vector<std::string> cells = {"diamonds", "nodes"};
    for (const auto &side : side_by_side(options, 2)) cells.push_back(side.name);
    const table t(cells);
    for (const std::uint32_t width : {4, 2}) {
        shape graph = forks(width, width == 4 ? 1638 : 2730);
        bodies work(std::vector<double>(graph.nodes, 1000));
        const outcome race = race_one(options, std::move(graph), work, 2);
        cells = {std::to_string(width) + " x 1 us", std::to_string(race.graph().nodes)};
        for (std::size_t side = 0; side < race.size(); side++) {
            cells.push_back(fixed(race.ns_per_node(side), 0) +
                            (side == 0 ? "" : " (" + fixed(race.ratio(0, side)) + " x)"));
        }
        t.row(cells);
    }
}

} // namespace bench

// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Dear nodes among cheap ones: one in eight takes 7.3 us, the others 100 ns, so that a node takes 1 us on average. An
// executor that looks at the newest nodes alone, or at a list's average, takes them for cheap.

#include <cstdio>
#include <numeric>

#include "graphs_random.hpp"
#include "graphs_tables.hpp"

namespace bench {

namespace {

std::vector<shape> uneven_shapes(const graph_options &options) {
    std::vector<shape> list;
    for (auto &shape : shapes(extent::medium)) {
        for (const char *name : {"layers 128x64", "wavefront 90x90", "bm 16x1024", "wide 8192"}) {
            if (shape.name == name) list.push_back(std::move(shape));
        }
    }
    list.push_back(inference(86));
    list.push_back(forks(4, 1638));
    std::vector<shape> asked_for;
    for (auto &shape : list) {
        if (shape.name.find(options.shape) != std::string::npos) asked_for.push_back(std::move(shape));
    }
    return asked_for;
}

std::vector<double> uneven_costs(std::uint32_t nodes) {
    random_numbers random(8);
    std::vector<double> cost;
    for (std::uint32_t i = 0; i < nodes; i++) cost.push_back(random.up_to(8) == 1 ? 7300 : 100);
    return cost;
}

} // namespace

void bench_uneven_nodes(const graph_options &options) {
    std::printf("\n## Uneven nodes, two threads, ns a node\n\n"
                "One node in eight takes 7.3 us, the others 100 ns; which ones is drawn once. %d rounds in turn,\n"
                "medians. Best: the schedule that starts the ready node with the longest way to the end first, at\n"
                "no cost.\n",
                options.rounds);
    std::vector<std::string> cells = {"shape", "nodes", "best"};
    for (const auto &side : side_by_side(options, 2)) cells.push_back(side.name);
    cells.push_back("weir's worst / best peer");
    const table t(cells);
    over_shapes behind;
    for (auto &graph : uneven_shapes(options)) {
        const auto cost = uneven_costs(graph.nodes);
        const double part = rank_schedule(graph, cost, 2) / std::accumulate(cost.begin(), cost.end(), 0.0);
        bodies work(cost);
        const outcome race = race_one(options, std::move(graph), work, 2);
        cells = {race.graph().name, std::to_string(race.graph().nodes), fixed(race.ns_per_node(0) * part, 0)};
        for (std::size_t side = 0; side < race.size(); side++) cells.push_back(fixed(race.ns_per_node(side), 0));
        const double worst = race.behind();
        if (worst > 0) behind.add(worst, race.graph().name);
        cells.push_back(worst > 0 ? fixed(worst) : "");
        t.row(cells);
    }
    std::printf("\nGeometric mean of weir's worst / best peer: %s.\n", behind.with_largest().c_str());
}

} // namespace bench

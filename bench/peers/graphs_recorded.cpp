// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Real networks with what their nodes cost, from small files: one line a node, with its name, its cost in nanoseconds
// and the nodes that it waits for, which stand above it. '#' begins a comment. The nodes compute for as long.

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <numeric>
#include <sstream>
#include <stdexcept>

#include "graphs_tables.hpp"

namespace bench {

namespace {

constexpr const char *names[] = {"transformer_layer", "mobilenet_v2", "resnet50_forward", "resnet50_backward", "voice"};

struct recorded {
    shape graph;
    std::vector<double> cost;
};

recorded read_network(const std::string &name) {
    const std::string path = std::string(WEIR_BENCH_NETWORKS_DIR "/") + name + ".txt";
    std::ifstream file(path);
    if (!file) throw std::runtime_error("there is no " + path);
    recorded network;
    std::map<std::string, std::uint32_t> numbers;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line);
        std::string node;
        if (!(words >> node) || node[0] == '#') continue;
        const auto number = static_cast<std::uint32_t>(network.cost.size());
        double cost = 0;
        if (!(words >> cost) || cost <= 0) throw std::runtime_error(path + ": " + node + " has no cost");
        if (!numbers.emplace(node, number).second) throw std::runtime_error(path + ": " + node + " is there twice");
        network.cost.push_back(cost);
        for (std::string from; words >> from;) {
            const auto known = numbers.find(from);
            if (known == numbers.end()) throw std::runtime_error(path + ": " + node + " waits for an unknown " + from);
            edges.emplace_back(known->second, number);
        }
    }
    network.graph = make_shape(name, static_cast<std::uint32_t>(network.cost.size()), std::move(edges));
    return network;
}

} // namespace

void bench_networks(const graph_options &options) {
    graph_options mine = options;
    mine.rounds = std::max(options.rounds / 4, 2); // a run of the largest takes a tenth of a second
    std::printf("\n## Real networks, two threads: the time taken / the time of a schedule by rank with free hops\n\n"
                "Operators as nodes that compute for as long as bench/peers/networks/*.txt says. %d rounds in turn,\n"
                "medians.\n",
                mine.rounds);
    std::vector<std::string> cells = {"network", "nodes", "work / best", "best"};
    const auto sides = side_by_side(options, 2);
    for (std::size_t side = 1; side < sides.size(); side++) cells.push_back(sides[side].name);
    cells.push_back("weir's worst / best peer");
    const table t(cells);
    over_shapes behind;
    std::vector<over_shapes> over_best(sides.size());
    for (const char *name : names) {
        if (std::string(name).find(options.shape) == std::string::npos) continue;
        recorded network = read_network(name);
        const double all = std::accumulate(network.cost.begin(), network.cost.end(), 0.0);
        const double part = rank_schedule(network.graph, network.cost, 2) / all;
        bodies work(network.cost);
        const outcome race = race_one(mine, std::move(network.graph), work, 2);
        cells = {name, std::to_string(race.graph().nodes), fixed(1 / part),
                 duration(race.ns_per_node(0) * race.graph().nodes * part)};
        for (std::size_t side = 1; side < race.size(); side++) {
            over_best[side].add(race.ratio(side, 0) / part, name);
            cells.push_back(fixed(race.ratio(side, 0) / part, 3));
        }
        const double worst = race.behind();
        if (worst > 0) behind.add(worst, name);
        cells.push_back(worst > 0 ? fixed(worst, 3) : "");
        t.row(cells);
    }
    std::printf("\nGeometric means over the networks:\n\n");
    for (std::size_t side = 1; side < sides.size(); side++) {
        std::printf("- %s: %s.\n", sides[side].name.c_str(), over_best[side].with_largest().c_str());
    }
    std::printf("- weir's worst / best peer: %s.\n", behind.with_largest().c_str());
}

} // namespace bench

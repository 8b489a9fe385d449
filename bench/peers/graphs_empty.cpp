// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Empty bodies: what an executor costs by itself.

#include <algorithm>
#include <cstdio>

#include "graphs_tables.hpp"

namespace bench {

namespace {

std::vector<std::string> head(const graph_options &options, int threads) {
    std::vector<std::string> cells = {"shape", "nodes", "edges"};
    for (const auto &name : side_names(options, threads, 0)) cells.push_back(name);
    return cells;
}

std::vector<std::string> cells_of(const outcome &race) {
    std::vector<std::string> cells = {race.graph().name, std::to_string(race.graph().nodes),
                                      std::to_string(race.graph().edges.size())};
    for (std::size_t side = 0; side < race.size(); side++) cells.push_back(fixed(race.ns_per_node(side)));
    return cells;
}

extent extent_for(const graph_options &options) {
    return options.quick ? extent::medium : extent::all;
}

} // namespace

void bench_empty1(const graph_options &options) {
    std::printf("\n## Empty bodies, one thread, ns per node\n\n"
                "Each node calls a C function that counts; from call to return, %d rounds in turn, medians. weir runs on\n"
                "the caller alone. Eigen, Taskflow and TensorFlow run on one thread of theirs, which the caller waits for.\n",
                options.rounds);
    std::vector<outcome> races;
    {
        const table t(head(options, 1));
        race_all(options, extent_for(options), 1, 0, [&](const outcome &race) {
            t.row(cells_of(race));
            races.push_back(race);
        });
    }
    const table t({"shape", "weir / plain Kahn", "best peer", "best peer / weir"});
    over_shapes to_floor, to_peer;
    for (const auto &race : races) {
        const std::size_t floor = race.find("plain Kahn"), weir = race.find("weir"), best = race.best_peer();
        if (weir == race.size()) continue;
        const double floor_ratio = race.ratio(weir, floor);
        to_floor.add(floor_ratio, race.graph().name);
        if (best == race.size()) {
            t.row({race.graph().name, fixed(floor_ratio), "", ""});
            continue;
        }
        const double peer_ratio = race.ratio(best, weir);
        to_peer.add(peer_ratio, race.graph().name);
        t.row({race.graph().name, fixed(floor_ratio), race.name(best), fixed(peer_ratio)});
    }
    std::printf("\nGeometric means over the shapes: weir / plain Kahn %s, best peer / weir %s, weir behind a peer on %d of "
                "%d.\n",
                to_floor.with_largest().c_str(), to_peer.with_smallest().c_str(), to_peer.below(1), to_peer.count());
}

void bench_empty2(const graph_options &options) {
    std::printf("\n## Empty bodies, two threads, ns per node\n\n"
                "As above. weir, TBB, OpenMP and enkiTS have the caller and one thread, the others two threads and a caller\n"
                "that waits; \"weir\" is weir on the caller alone.\n");
    std::vector<outcome> races;
    {
        const table t(head(options, 2));
        race_all(options, extent_for(options), 2, 0, [&](const outcome &race) {
            t.row(cells_of(race));
            races.push_back(race);
        });
    }
    std::vector<std::string> cells = {"shape", "best peer"};
    std::vector<std::string> pools;
    for (const auto &name : side_names(options, 2, 0)) {
        if (name.rfind("weir on ", 0) == 0) pools.push_back(name);
    }
    for (const auto &pool : pools) cells.push_back(pool + " / weir");
    for (const auto &pool : pools) cells.push_back("best peer / " + pool);
    const table t(cells);
    std::vector<over_shapes> to_alone(pools.size()), to_peer(pools.size());
    for (const auto &race : races) {
        const std::size_t alone = race.find("weir"), best = race.best_peer();
        cells = {race.graph().name, best == race.size() ? "" : race.name(best)};
        for (std::size_t p = 0; p < pools.size(); p++) {
            const std::size_t weir = race.find(pools[p]);
            if (alone == race.size()) continue;
            to_alone[p].add(race.ratio(weir, alone), race.graph().name);
            cells.push_back(fixed(race.ratio(weir, alone)));
        }
        for (std::size_t p = 0; p < pools.size(); p++) {
            if (best == race.size()) continue;
            const double ratio = race.ratio(best, race.find(pools[p]));
            to_peer[p].add(ratio, race.graph().name);
            cells.push_back(fixed(ratio));
        }
        t.row(cells);
    }
    std::printf("\nGeometric means over the shapes:\n\n");
    for (std::size_t p = 0; p < pools.size(); p++) {
        std::printf("- %s: %s of weir on one thread; best peer / weir %s; behind a peer on %d of %d.\n",
                    pools[p].c_str(), to_alone[p].with_largest().c_str(), to_peer[p].with_smallest().c_str(),
                    to_peer[p].below(1), to_peer[p].count());
    }
}

} // namespace bench

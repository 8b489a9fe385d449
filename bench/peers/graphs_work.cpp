// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Bodies of 1 and 20 us on two threads, against the best that two threads could do: the schedule of
// graphs_schedule.cpp, in units of what a node takes in the serial loop of the same round.

#include <cstdio>

#include "graphs_tables.hpp"

namespace bench {

namespace {

void bench_work(const graph_options &options, double body_ns, extent extent) {
    std::printf("\n## Bodies of %s, two threads: the best schedule's time / the time taken\n\n"
                "%d rounds in turn, medians. The best schedule takes the nodes with the longest way to the end first and\n"
                "starts them at no cost. Limit / best: how close it is to a limit that no schedule can pass. Machine: two threads\n"
                "with a plain loop over half of the nodes each, against half of the serial time: 1 if both processors are\n"
                "free and as fast together as one alone.\n",
                duration(body_ns).c_str(), options.rounds);
    const auto names = side_names(options, 2, body_ns);
    std::vector<std::string> cells = {"shape", "nodes", "limit / best", "serial, ns", "best, ns"};
    for (std::size_t side = 1; side < names.size(); side++) cells.push_back(names[side]);
    cells.push_back("weir's worst / best peer");

    const table t(cells);
    over_shapes gap, ahead;
    std::vector<over_shapes> reached(names.size());
    race_all(options, extent, 2, body_ns, [&](const outcome &race) {
        const auto &shape = race.graph();
        const schedule best = best_of_two(shape);
        const double units = static_cast<double>(best.length) / shape.nodes; // of the serial loop
        gap.add(static_cast<double>(best.bound) / best.length, shape.name);
        const double serial_ns = race.ns_per_node(0);
        cells = {shape.name, std::to_string(shape.nodes), fixed(static_cast<double>(best.bound) / best.length, 3),
                 fixed(serial_ns, 0), fixed(serial_ns * units, 0)};
        const auto machine = race.find("machine");
        double worst_weir = 0, best_peer = 0;
        for (std::size_t side = 1; side < race.size(); side++) {
            const double part = (side == machine ? 0.5 : units) / race.ratio(side, 0);
            reached[side].add(part, shape.name);
            cells.push_back(fixed(part, 3));
        }
        for (const auto side : race.all(role::weir)) {
            const double part = units / race.ratio(side, 0);
            worst_weir = worst_weir == 0 || part < worst_weir ? part : worst_weir;
        }
        for (const auto side : race.all(role::peer)) best_peer = std::max(best_peer, units / race.ratio(side, 0));
        if (worst_weir > 0 && best_peer > 0) {
            ahead.add(worst_weir / best_peer, shape.name);
            cells.push_back(fixed(worst_weir / best_peer, 3));
        } else {
            cells.push_back("");
        }
        t.row(cells);
    });
    std::printf("\nGeometric means over the shapes (limit / best %s):\n\n", gap.with_smallest().c_str());
    for (std::size_t side = 1; side < names.size(); side++) {
        std::printf("- %s: %s.\n", names[side].c_str(), reached[side].with_smallest().c_str());
    }
    std::printf("- weir on its worst pool / best peer: %s; behind on %d of %d.\n", ahead.with_smallest().c_str(),
                ahead.below(1), ahead.count());
}

} // namespace

void bench_us1(const graph_options &options) {
    bench_work(options, 1000, options.quick ? extent::small : extent::all);
}

void bench_us20(const graph_options &options) {
    bench_work(options, 20000, extent::small);
}

} // namespace bench

// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Uneven bodies: items that differ by up to fifty times. Efficiency is half of the serial time over the time of two
// threads.

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <random>

#include "peers.hpp"

namespace bench {

namespace {

// Costs from 1 to 50 whose mean becomes mean_ns.
std::vector<std::uint32_t> shape(const std::string &name, std::int64_t n, double mean_ns) {
    std::vector<double> costs(static_cast<std::size_t>(n));
    std::mt19937_64 random(12345);
    for (std::size_t i = 0; i < costs.size(); i++) {
        const double at = static_cast<double>(i) / static_cast<double>(std::max<std::int64_t>(n - 1, 1));
        if (name == "one heavy block") {
            costs[i] = at >= 0.7 && at < 0.8 ? 50 : 1; // a tenth of the items has most of the work
        } else if (name == "random") {
            costs[i] = 1 + 49 * static_cast<double>(random() % 1000) / 999;
        } else {
            costs[i] = 1 + 49 * (name == "ascending" ? at : 1 - at);
        }
    }
    double sum = 0;
    for (const double cost : costs) sum += cost;
    std::vector<std::uint32_t> steps;
    for (const double cost : costs) steps.push_back(steps_for(cost / sum * static_cast<double>(n) * mean_ns));
    return steps;
}

} // namespace

void bench_uneven(const options &options) {
    std::printf("\n## Uneven bodies\n\n"
                "Items that differ by up to 50 times, a team of two: serial time / 2 / time, the median of %d rounds.\n"
                "weir knows the mean cost. The pools alone run their plain loop: static with OpenMP, halves with "
                "std::thread.\n",
                options.rounds);
    std::vector<std::string> head = {"bodies", "items", "mean"};
    for (const auto &peer : peers()) {
        head.push_back("weir on " + peer.name);
        if (peer.own) head.push_back(peer.name + " alone");
    }
    const table t(head);
    std::vector<std::vector<double>> columns(head.size());
    for (const char *name : {"ascending", "descending", "random", "one heavy block"}) {
        for (const std::int64_t n : {64, 256, 1000}) {
            for (const double mean_ns : {2e3, 20e3}) {
                if (options.quick && n != 256) continue;
                const auto steps = shape(name, n, mean_ns);
                const work work{steps.data(), n, mean_ns};
                const int calls = std::max(1, static_cast<int>(1e6 / (mean_ns * static_cast<double>(n))));
                std::vector<std::string> cells = {name, std::to_string(n), duration(mean_ns)};
                const auto efficiency = [&](const timings &time, std::size_t side) {
                    const double value = time.ratio(0, side) / 2;
                    columns[cells.size()].push_back(value);
                    cells.push_back(fixed(100 * value, 0) + " %");
                };
                for (const auto &peer : peers()) {
                    std::vector<side> sides = {[&] { work.run(0, n); }, [&] { run_weir(peer.pool, work, true); }};
                    if (peer.own) sides.push_back([&] { peer.own(work); });
                    const auto time = take_turns(sides, options.rounds, calls);
                    efficiency(time, 1);
                    if (peer.own) efficiency(time, 2);
                }
                t.row(cells);
            }
        }
    }
    std::vector<std::string> means = {"geometric mean", "", ""};
    for (std::size_t i = means.size(); i < columns.size(); i++) {
        means.push_back(fixed(100 * geometric_mean(columns[i]), 1) + " %");
    }
    t.row(means);
}

} // namespace bench

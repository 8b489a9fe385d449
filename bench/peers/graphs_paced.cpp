// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Runs with gaps between them, as of a service: all threads are asleep when a run begins, and what threads do after it
// is paid too.

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "graphs_tables.hpp"

namespace bench {

namespace {

constexpr double body_ns = 5000;

double processor_ns() {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

double percentile(std::vector<double> values, double part) {
    std::sort(values.begin(), values.end());
    return values[std::min(values.size() - 1, static_cast<std::size_t>(part * static_cast<double>(values.size())))];
}

struct paced_times {
    std::vector<double> runs, processor;
};

std::vector<contender> paced_sides(const graph_options &options) {
    std::vector<contender> list;
    for (auto &side : side_by_side(options, 2)) {
        if (side.plays == role::weir || side.name == "TBB tasks") list.push_back(std::move(side));
    }
    return list;
}

} // namespace

void bench_paced(const graph_options &options) {
    const shape graph = inference(86);
    std::printf("\n## Runs with gaps, two threads\n\n"
                "%s, bodies of 5 us: %u nodes. A run of each side in turn, and a pause after each. The processor\n"
                "time is that of the whole process from the run's begin to the pause's end.\n",
                graph.name.c_str(), graph.nodes);
    const table t({"gap", "runs", "", "p50", "p99", "p99 / p50", "processor time a run"});
    bodies work(std::vector<double>(graph.nodes, body_ns));
    const auto sides = paced_sides(options);
    const auto entries = line_up(sides, graph, work, 2);
    for (const int gap_ms : {5, 2, 20}) {
        const int runs = options.quick ? (gap_ms == 20 ? 40 : 100) : (gap_ms == 20 ? 300 : 800);
        const auto gap = std::chrono::milliseconds(gap_ms);
        std::vector<paced_times> times(entries.size());
        settle();
        for (int i = 0; i < runs; i++) {
            for (std::size_t side = 0; side < entries.size(); side++) {
                const double processor = processor_ns();
                const auto start = now_ns();
                entries[side].built->run();
                times[side].runs.push_back(static_cast<double>(now_ns() - start));
                std::this_thread::sleep_for(gap);
                times[side].processor.push_back(processor_ns() - processor);
            }
        }
        work.expect_runs(static_cast<std::uint64_t>(runs) * entries.size(), "paced runs");
        for (std::size_t side = 0; side < entries.size(); side++) {
            const double p50 = median(times[side].runs), p99 = percentile(times[side].runs, 0.99);
            t.row({std::to_string(gap_ms) + " ms", std::to_string(runs), entries[side].name, duration(p50),
                   duration(p99), fixed(p99 / p50, 3), duration(median(times[side].processor))});
        }
    }
}

} // namespace bench

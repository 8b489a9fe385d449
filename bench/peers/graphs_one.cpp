// SPDX-License-Identifier: MIT OR Apache-2.0
//
// One node: what a run costs whatever the graph is. Hot: a thousand runs in a row. Asleep: one run after all threads of
// the process have gone to sleep, and whether it woke one.

#include <algorithm>
#include <cstdio>

#include "graphs.hpp"

namespace bench {

void bench_one(const graph_options &options) {
    constexpr int calls = 1000;
    std::printf("\n## One node, from call to return\n\n"
                "Hot: %d runs in a row, %d rounds in turn. Asleep: one run after all other threads have gone to sleep, the\n"
                "clock's own time taken off. Woken: how often other threads went back to sleep, in 1000 such runs.\n",
                calls, options.rounds);
    const shape graph = single();
    bodies work(graph.nodes, 0);
    for (const int threads : {1, 2}) {
        auto all = contenders(threads);
        all.erase(std::remove_if(all.begin(), all.end(),
                                 [&](const contender &c) {
                                     return c.plays == role::machine ||
                                            (c.plays != role::floor && c.name.find(options.side) == std::string::npos);
                                 }),
                  all.end());
        const auto entries = line_up(all, graph, work, threads);
        std::vector<std::vector<double>> hot(entries.size()), asleep(entries.size());
        std::vector<double> woken(entries.size());
        const double clock = clock_ns();
        for (int round = 0; round < options.rounds; round++) {
            for (std::size_t e = 0; e < entries.size(); e++) {
                const auto check = [&](int runs) {
                    if (entries[e].plays != role::bodiless_peer) work.expect_runs(runs, entries[e].name);
                };
                settle();
                for (int i = 0; i < calls; i++) entries[e].built->run();
                const auto start = now_ns();
                for (int i = 0; i < calls; i++) entries[e].built->run();
                hot[e].push_back(static_cast<double>(now_ns() - start) / calls);
                check(2 * calls);
                for (int i = 0; i < 10; i++) {
                    settle();
                    const auto before = sleeps_of_others();
                    const auto begin = now_ns();
                    entries[e].built->run();
                    asleep[e].push_back(std::max(0.0, static_cast<double>(now_ns() - begin) - clock));
                    check(1);
                    settle();
                    woken[e] += static_cast<double>(sleeps_of_others() - before);
                }
            }
        }
        std::printf("\n%s:\n", threads == 1 ? "One thread" : "Two threads");
        const table t({"", "hot", "asleep", "woken, per 1000 runs"});
        for (std::size_t e = 0; e < entries.size(); e++) {
            const double hot_ns = median(hot[e]);
            t.row({entries[e].name, hot_ns < 1000 ? fixed(hot_ns, 1) + " ns" : duration(hot_ns),
                   duration(median(asleep[e])), fixed(woken[e] * 1000 / (10 * options.rounds), 0)});
        }
    }
}

} // namespace bench

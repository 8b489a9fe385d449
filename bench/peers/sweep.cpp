// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Never slower: loops of all sizes over bodies of all costs. weir decides whether to share a loop, and how; it should
// be as fast as the better one of the serial loop and the pool's own parallel loop.

#include <algorithm>
#include <cstddef>
#include <cstdio>

#include "peers.hpp"

namespace bench {

namespace {

// Ratios are weir's time to the better of the serial loop and the pool's own, with and without a hint.
struct cell {
    double item_ns;
    std::int64_t items;
    double serial = 0, own = 0, hinted = 0, unhinted = 0;
    double ratio = 0, unhinted_ratio = 0, ratio_to_own = 0;
};

std::vector<cell> cells(bool quick) {
    std::vector<double> costs = {100, 300, 1e3, 3e3, 1e4, 3e4, 1e5, 3e5, 1e6};
    std::vector<std::int64_t> sizes = {1, 2, 3, 4, 7, 16, 33, 64, 256, 1024, 4096};
    if (quick) {
        costs = {100, 1e3, 1e4, 1e5};
        sizes = {1, 2, 7, 64, 1024};
    }
    std::vector<cell> all;
    for (const double cost : costs) {
        for (const std::int64_t n : sizes) {
            if (cost * static_cast<double>(n) <= 50e6) all.push_back({cost, n});
        }
    }
    return all;
}

void measure(cell &cell, const peer &peer, int rounds) {
    const std::vector<std::uint32_t> steps(static_cast<std::size_t>(cell.items), steps_for(cell.item_ns));
    const work work{steps.data(), cell.items, cell.item_ns};
    // Some 300 us of work for each timing, and fewer rounds of what takes long by itself.
    const double total = cell.item_ns * static_cast<double>(cell.items);
    const int calls = std::max(1, static_cast<int>(300e3 / total));
    const int turns = total > 1e7 ? std::max(5, rounds / 3) : rounds;
    std::vector<side> sides = {[&] { work.run(0, work.items); }, [&] { run_weir(peer.pool, work, true); },
                               [&] { run_weir(peer.pool, work, false); }};
    if (peer.own) sides.push_back([&] { peer.own(work); });
    const auto time = take_turns(sides, turns, calls);
    const std::size_t own = peer.own ? 3 : 0;
    cell.serial = time.ns(0);
    cell.hinted = time.ns(1);
    cell.unhinted = time.ns(2);
    cell.own = time.ns(own);
    cell.ratio_to_own = time.ratio(1, own);
    cell.ratio = std::max(time.ratio(1, 0), cell.ratio_to_own);
    cell.unhinted_ratio = std::max(time.ratio(2, 0), time.ratio(2, own));
}

void report(const peer &peer, const std::vector<cell> &cells) {
    std::vector<double> hinted, unhinted, against_own;
    const cell *worst = &cells.front();
    int slow = 0;
    for (const auto &cell : cells) {
        hinted.push_back(cell.ratio);
        unhinted.push_back(cell.unhinted_ratio);
        against_own.push_back(cell.ratio_to_own);
        slow += cell.ratio > 1.05;
        if (cell.ratio > worst->ratio) worst = &cell;
    }
    std::printf("\n### %s\n\n"
                "weir against the %s: geometric mean %s with a cost hint, %s without;\n"
                "worst %s (%s x %lld); above 1.05: %d of %zu.",
                peer.name.c_str(), peer.own ? "better of the serial loop and the pool's own" : "serial loop",
                fixed(geometric_mean(hinted), 3).c_str(), fixed(geometric_mean(unhinted), 3).c_str(),
                fixed(worst->ratio).c_str(),
                duration(worst->item_ns).c_str(), static_cast<long long>(worst->items), slow, cells.size());
    if (peer.own) std::printf(" Against the pool's own alone: %s.", fixed(geometric_mean(against_own), 3).c_str());
    std::printf("\n");
    const table t({"cost of an item", "items", "serial", "own", "weir", "weir without hint", "ratio"});
    for (const auto &cell : cells) {
        t.row({duration(cell.item_ns), std::to_string(cell.items), duration(cell.serial),
               peer.own ? duration(cell.own) : "", duration(cell.hinted), duration(cell.unhinted),
               cell.ratio > 1.05 ? "**" + fixed(cell.ratio) + "**" : fixed(cell.ratio)});
    }
}

} // namespace

void bench_sweep(const options &options) {
    std::printf("\n## Never slower\n\n"
                "A team of two; %d rounds in turn (a third of that above 10 ms), medians. Ratio: weir with a cost hint\n"
                "to the better of serial and own, within each round.\n",
                options.rounds);
    for (const auto &peer : peers()) {
        auto all = cells(options.quick);
        for (auto &cell : all) measure(cell, peer, options.rounds);
        report(peer, all);
    }
}

} // namespace bench

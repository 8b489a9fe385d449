// SPDX-License-Identifier: MIT OR Apache-2.0
//
// What it costs to share nothing: an empty region on each pool, against that pool's own fork and join of two empty
// tasks.

#include <atomic>
#include <cstdio>

#include "peers.hpp"

namespace bench {

namespace {

void nothing() {
    asm volatile("" ::: "memory");
}

// Counts the tasks and pieces that another thread than the main one ran.
std::atomic<int> elsewhere{0};
thread_local bool is_main = false;
void count_elsewhere() {
    if (!is_main) ++elsewhere;
}

// An item is said to be dear, so that the region is shared.
void region(const weir::threadpool &pool, void (*body)()) {
    auto hint = weir::sized<weir_parallel_hint>();
    hint.cost_ns = 1000000;
    const auto range = [](void *arg, std::int64_t, std::int64_t, std::int32_t) -> weir_status {
        (*static_cast<void (**)()>(arg))();
        return WEIR_OK;
    };
    weir::check(weir_parallel_for(pool, 2, &hint, range, &body));
}

// How many of a hundred tasks or pieces another thread ran.
template <class Call>
std::string shared(const Call &call) {
    is_main = true;
    elsewhere = 0;
    for (int i = 0; i < 2000; i++) call(count_elsewhere);
    return fixed(elsewhere / 40.0, 0) + " %";
}

std::string with_spread(const summary &s) {
    return duration(s.median) + " (" + duration(s.low) + " to " + duration(s.high) + ")";
}

void hot(const options &options) {
    constexpr int calls = 2000;
    std::printf("\n## An empty region, hot\n\n"
                "A team of two, %d calls in a row, %d rounds in turn: median (middle half). Shared: how many of the\n"
                "tasks and pieces the other thread ran; half of them, or none if the caller does not wait for it.\n",
                calls, options.rounds);
    const table t({"pool", "its own, two empty tasks", "weir on it, two empty pieces", "ratio", "own shared",
                   "weir shared"});
    for (const auto &peer : peers()) {
        const auto on_weir = [&peer](void (*body)()) { region(peer.pool, body); };
        const side weir = [&peer] { region(peer.pool, nothing); };
        if (!peer.pair) {
            const auto time = take_turns({weir}, options.rounds, calls);
            t.row({peer.name, "", with_spread(time.of(0)), "", "", shared(on_weir)});
            continue;
        }
        const auto time = take_turns({[&peer] { peer.pair(nothing); }, weir}, options.rounds, calls);
        t.row({peer.name, with_spread(time.of(0)), with_spread(time.of(1)), fixed(time.ratio(1, 0)),
               shared(peer.pair), shared(on_weir)});
    }
}

// Each region finds the other thread idle for a while.
void after_serial_work(const options &options) {
    constexpr double serial_ns = 500000;
    const auto steps = steps_for(serial_ns);
    const side between = [steps] { spin(steps); };
    std::printf("\n## An empty region after %s of serial work\n\n%d rounds of 10 in turn: median (middle half).\n",
                duration(serial_ns).c_str(), options.rounds);
    const table t({"pool", "its own, two empty tasks", "weir's built-in pool", "ratio"});
    const side builtin = [] { region(peer_named("built-in").pool, nothing); };
    for (const auto &peer : peers()) {
        if (!peer.pair) continue;
        const auto time = take_turns_apart({[&peer] { peer.pair(nothing); }, builtin}, between, options.rounds);
        t.row({peer.name, with_spread(time.of(0)), with_spread(time.of(1)), fixed(time.ratio(1, 0))});
    }
    const table u({"pool", "its own, two empty tasks", "weir on it", "ratio"});
    for (const auto &peer : peers()) {
        if (!peer.pair) continue;
        const std::vector<side> sides = {[&peer] { peer.pair(nothing); }, [&peer] { region(peer.pool, nothing); }};
        const auto time = take_turns_apart(sides, between, options.rounds);
        u.row({peer.name, with_spread(time.of(0)), with_spread(time.of(1)), fixed(time.ratio(1, 0))});
    }
}

} // namespace

void bench_regions(const options &options) {
    hot(options);
    after_serial_work(options);
}

} // namespace bench

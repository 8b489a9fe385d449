// SPDX-License-Identifier: MIT OR Apache-2.0
//
// What the nodes do, and how it is known that they did.

#include <time.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>

#include "graphs.hpp"
#include "graphs_order.hpp"

namespace bench {

namespace {

// All bodies of one process that spin do so for as long; set when they are made.
std::uint32_t steps = 0;

std::int32_t count(void *arg) {
    ++*static_cast<std::uint64_t *>(arg);
    return 0;
}

std::int32_t count_and_spin(void *arg) {
    ++*static_cast<std::uint64_t *>(arg);
    spin(steps);
    return 0;
}

// Three words in a line of their own: how often it ran, steps of spin(), nanoseconds of sleep.
std::int32_t count_and_take_time(void *arg) {
    auto *const words = static_cast<std::uint64_t *>(arg);
    ++words[0];
    if (words[2] == 0) {
        spin(static_cast<std::uint32_t>(words[1]));
        return 0;
    }
    const std::int64_t ns = static_cast<std::int64_t>(words[2]), end = now_ns() + ns;
    // Sleeps end late by a few tens of microseconds, so the rest is waited for.
    const std::int64_t wake = end - std::min<std::int64_t>(ns / 4, 60000);
    const timespec time{static_cast<time_t>(wake / 1000000000), static_cast<long>(wake % 1000000000)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr);
    while (now_ns() < end) {}
    return 0;
}

constexpr std::size_t words_in_a_line = 8;

// Where the first cache line begins.
std::uint64_t *first_line(std::vector<std::uint64_t> &words) {
    const auto misplaced = reinterpret_cast<std::uintptr_t>(words.data()) % 64 / sizeof(std::uint64_t);
    return words.data() + (words_in_a_line - misplaced) % words_in_a_line;
}

} // namespace

// Empty bodies are all about caches: eight counters to a line, as eight small objects might be. Where bodies take time,
// a line of its own for each, so that two threads do not meet in one.
bodies::bodies(std::uint32_t nodes, double ns)
    : nodes_(nodes), stride_(ns > 0 ? 8 : 1), counters_(nodes * stride_ + 8), calls_(nodes) {
    if (ns > 0) steps = steps_for(ns);
    std::uint64_t *const first = first_line(counters_);
    for (std::uint32_t i = 0; i < nodes; i++) calls_[i] = {ns > 0 ? count_and_spin : count, first + i * stride_};
}

bodies::bodies(const std::vector<double> &ns, double asleep_from)
    : nodes_(static_cast<std::uint32_t>(ns.size())), stride_(words_in_a_line),
      counters_((ns.size() + 1) * words_in_a_line), calls_(ns.size()) {
    std::uint64_t *const first = first_line(counters_);
    for (std::uint32_t i = 0; i < nodes_; i++) {
        std::uint64_t *const words = first + i * stride_;
        calls_[i] = {count_and_take_time, words};
        words[1] = steps_for(ns[i]);
        words[2] = ns[i] >= asleep_from ? static_cast<std::uint64_t>(ns[i]) : 0;
    }
}

void bodies::set_all(double ns) {
    for (const auto &call : calls_) static_cast<std::uint64_t *>(call.arg)[1] = steps_for(ns);
}

void bodies::expect_runs(std::uint64_t runs, const std::string &who) {
    runs_ += runs;
    for (std::uint32_t i = 0; i < nodes_; i++) {
        const std::uint64_t ran = *static_cast<const std::uint64_t *>(calls_[i].arg);
        if (ran != runs_) {
            throw std::runtime_error(who + ": after " + std::to_string(runs_) + " runs, node " + std::to_string(i) +
                                     " has run " + std::to_string(ran) + " times");
        }
    }
}

order_proof::order_proof(const shape &graph) : graph_(graph), stamps_(graph.nodes) {
    for (auto &stamp : stamps_) {
        stamp.clock = &clock_;
        calls_.push_back({take_stamp, &stamp});
    }
}

std::int32_t order_proof::take_stamp(void *arg) {
    auto &mine = *static_cast<stamp *>(arg);
    mine.begun = mine.clock->fetch_add(1, std::memory_order_relaxed);
    mine.runs++;
    mine.ended = mine.clock->fetch_add(1, std::memory_order_relaxed);
    return 0;
}

void order_proof::expect_one_run(const std::string &who) {
    runs_++;
    for (std::uint32_t i = 0; i < graph_.nodes; i++) {
        if (stamps_[i].runs != runs_) {
            throw std::runtime_error(who + ": in " + graph_.name + ", node " + std::to_string(i) + " has run " +
                                     std::to_string(stamps_[i].runs) + " times in " + std::to_string(runs_) + " runs");
        }
    }
    for (const auto &[from, to] : graph_.edges) {
        if (stamps_[from].ended >= stamps_[to].begun) {
            throw std::runtime_error(who + ": in " + graph_.name + ", node " + std::to_string(to) +
                                     " began before node " + std::to_string(from) + " had ended");
        }
    }
}

} // namespace bench

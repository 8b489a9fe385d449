// SPDX-License-Identifier: MIT OR Apache-2.0
//
// How the peers are measured: bodies of a known cost, sides that take turns within each round, medians over the rounds,
// tables in Markdown.

#ifndef WEIR_BENCH_MEASURE_HPP
#define WEIR_BENCH_MEASURE_HPP

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace bench {

std::int64_t now_ns();

/// A chain of dependent multiplications, `steps` long. No clock is read and nothing can be left out.
inline void spin(std::uint32_t steps) {
    std::uint64_t x = steps;
    for (std::uint32_t i = 0; i < steps; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        asm volatile("" : "+r"(x));
    }
}

/// Steps of spin() that take about `ns`; the first call measures the processor.
std::uint32_t steps_for(double ns);

/// What all sides of a comparison run: item i costs steps[i].
struct work {
    const std::uint32_t *steps;
    std::int64_t items;
    double item_ns; // on average
    void run(std::int64_t begin, std::int64_t end) const {
        for (std::int64_t i = begin; i < end; i++) spin(steps[i]);
    }
};

/// The median, and the middle half around it.
struct summary {
    double median, low, high;
};
summary summarize(std::vector<double> values);
double median(std::vector<double> values);
double geometric_mean(const std::vector<double> &values);

/// One way to do something, to be timed.
using side = std::function<void()>;

/// Nanoseconds per call: times[side][round].
class timings {
public:
    explicit timings(std::size_t sides) : times_(sides) {}
    void add(std::size_t side, double ns) { times_[side].push_back(ns); }
    summary of(std::size_t side) const { return summarize(times_[side]); }
    double ns(std::size_t side) const { return of(side).median; }
    /// How many times longer `side` takes than `other`: the median over the rounds of what they took in the same round,
    /// so that a slow phase of the machine weighs on both.
    double ratio(std::size_t side, std::size_t other) const;

private:
    std::vector<std::vector<double>> times_;
};

/// Each round times each side once, in turn, beginning with another one; a timing is a batch of `calls` calls after one
/// that is not counted.
/// With `apart` a side begins when the threads of the one before have gone to sleep, and with a few calls of its own.
timings take_turns(const std::vector<side> &sides, int rounds, int calls, bool apart = false);

/// As take_turns, but with `between` before each call, which is not counted; the clock's own time is taken off.
timings take_turns_apart(const std::vector<side> &sides, const side &between, int rounds);

/// A table: the head at once, then row by row.
class table {
public:
    explicit table(const std::vector<std::string> &head);
    void row(const std::vector<std::string> &cells) const;
};

/// "1.2 us", "340 ns".
std::string duration(double ns);
std::string fixed(double value, int digits = 2);

/// Memory requests of the whole process since it began.
std::int64_t memory_requests();

/// What the command line asks for.
struct options {
    int rounds = 15;
    double idle_seconds = 10;
    bool quick = false; // a few cells of the large tables
    std::vector<std::string> sections; // empty = all
    bool wants(const std::string &section) const;
};

} // namespace bench

#endif // WEIR_BENCH_MEASURE_HPP

// SPDX-License-Identifier: MIT OR Apache-2.0

#include "measure.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <thread>

namespace bench {

std::int64_t now_ns() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

summary summarize(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const std::size_t n = values.size();
    if (n == 0) return {0, 0, 0};
    return {values[n / 2], values[n / 4], values[n - 1 - n / 4]};
}

double median(std::vector<double> values) {
    return summarize(std::move(values)).median;
}

double geometric_mean(const std::vector<double> &values) {
    double sum = 0;
    for (const double value : values) sum += std::log(value);
    return values.empty() ? 0 : std::exp(sum / static_cast<double>(values.size()));
}

std::uint32_t steps_for(double ns) {
    // The lower quartile: a step does not get faster by noise, and the processor may be shared.
    static const double step_ns = [] {
        constexpr std::uint32_t steps = 200000;
        std::vector<double> values;
        for (int i = 0; i < 101; i++) {
            const auto start = now_ns();
            spin(steps);
            values.push_back(static_cast<double>(now_ns() - start) / steps);
        }
        return summarize(values).low;
    }();
    return static_cast<std::uint32_t>(std::max(1.0, ns / step_ns));
}

double timings::ratio(std::size_t side, std::size_t other) const {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < times_[side].size(); i++) ratios.push_back(times_[side][i] / times_[other][i]);
    return median(ratios);
}

timings take_turns(const std::vector<side> &sides, int rounds, int calls, bool apart) {
    timings result(sides.size());
    for (int round = 0; round < rounds; round++) {
        for (std::size_t k = 0; k < sides.size(); k++) {
            const std::size_t s = (k + static_cast<std::size_t>(round)) % sides.size();
            // The threads of this side wake up, those of the one before go to sleep.
            if (apart) std::this_thread::sleep_for(std::chrono::milliseconds(3));
            for (int i = 0; i < (apart ? std::min(calls, 5) : 1); i++) sides[s]();
            const auto start = now_ns();
            for (int i = 0; i < calls; i++) sides[s]();
            result.add(s, static_cast<double>(now_ns() - start) / calls);
        }
    }
    return result;
}

timings take_turns_apart(const std::vector<side> &sides, const side &between, int rounds) {
    std::vector<double> clock;
    for (int i = 0; i < 1001; i++) {
        const auto start = now_ns();
        clock.push_back(static_cast<double>(now_ns() - start));
    }
    const double clock_ns = median(clock);
    timings result(sides.size());
    for (int round = 0; round < rounds; round++) {
        for (std::size_t s = 0; s < sides.size(); s++) {
            for (int i = 0; i < 11; i++) {
                between();
                const auto start = now_ns();
                sides[s]();
                const double ns = static_cast<double>(now_ns() - start) - clock_ns;
                if (i > 0) result.add(s, ns > 1 ? ns : 1); // the first one comes after the other side
            }
        }
    }
    return result;
}

table::table(const std::vector<std::string> &head) {
    std::printf("\n");
    row(head);
    for (std::size_t i = 0; i < head.size(); i++) std::printf(i == 0 ? "|---|" : "--:|");
    std::printf("\n");
}

void table::row(const std::vector<std::string> &cells) const {
    std::printf("|");
    for (const auto &cell : cells) std::printf(" %s |", cell.c_str());
    std::printf("\n");
    std::fflush(stdout);
}

std::string fixed(double value, int digits) {
    char text[64];
    std::snprintf(text, sizeof text, "%.*f", digits, value);
    return text;
}

std::string duration(double ns) {
    if (ns < 1000) return fixed(ns, 0) + " ns";
    if (ns < 1e6) return fixed(ns / 1e3, ns < 1e4 ? 2 : 1) + " us";
    return fixed(ns / 1e6, 2) + " ms";
}

bool options::wants(const std::string &section) const {
    return sections.empty() || std::find(sections.begin(), sections.end(), section) != sections.end();
}

} // namespace bench

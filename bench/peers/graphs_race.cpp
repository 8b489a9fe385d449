// SPDX-License-Identifier: MIT OR Apache-2.0
//
// How graphs are timed. All contenders live in one process with threads of their own, so before one is timed the threads
// of the one before must have gone to sleep: OpenMP's spin for a millisecond after a region, and would have the second
// processor.

#include <dirent.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "graphs.hpp"
#include "graphs_order.hpp"

namespace bench {

namespace {

// Whether a thread of this process but the calling one runs or could. From /proc, as the process's clock tells of threads
// on other processors only what the last tick saw, and a tick lasts as long as many runs.
bool others_run() {
    static const long self = syscall(SYS_gettid);
    DIR *const tasks = opendir("/proc/self/task");
    if (tasks == nullptr) return false;
    bool found = false;
    while (const dirent *const task = readdir(tasks)) {
        if (task->d_name[0] == '.' || std::atol(task->d_name) == self) continue;
        const std::string path = std::string("/proc/self/task/") + task->d_name + "/stat";
        std::FILE *const file = std::fopen(path.c_str(), "r");
        if (file == nullptr) continue; // it has ended
        char text[256] = {};
        const std::size_t length = std::fread(text, 1, sizeof text - 1, file);
        std::fclose(file);
        const char *const name_end = std::strrchr(text, ')');
        found = found || (length > 0 && name_end != nullptr && name_end[1] == ' ' && name_end[2] == 'R');
    }
    closedir(tasks);
    return found;
}

double timed_run(const lane &lane) {
    static const double clock = clock_ns();
    const auto start = now_ns();
    lane.run();
    return std::max(static_cast<double>(now_ns() - start) - clock, 1.0);
}

lane lane_of(const entry &entry, bodies &bodies) {
    runner *built = entry.built.get();
    if (entry.plays == role::bodiless_peer) return {[built] { built->run(); }, [](std::uint64_t) {}};
    return {[built] { built->run(); }, [name = entry.name, &bodies](std::uint64_t runs) { bodies.expect_runs(runs, name); }};
}

} // namespace

double clock_ns() {
    std::vector<double> values;
    for (int i = 0; i < 1001; i++) {
        const auto start = now_ns();
        values.push_back(static_cast<double>(now_ns() - start));
    }
    return median(values);
}

void settle() {
    constexpr int in_a_row = 3;
    for (int looks = 0, asleep = 0; looks < 5000 && asleep < in_a_row; looks++) {
        spin(steps_for(20000));
        asleep = others_run() ? 0 : asleep + 1;
    }
}

std::int64_t sleeps_of_others() {
    rusage all{}, mine{};
    getrusage(RUSAGE_SELF, &all);
    getrusage(RUSAGE_THREAD, &mine);
    return all.ru_nvcsw - mine.ru_nvcsw;
}

std::vector<entry> line_up(const std::vector<contender> &contenders, const shape &graph, bodies &bodies, int threads) {
    std::vector<entry> entries;
    for (const auto &contender : contenders) {
        if (contender.plays != role::bodiless_peer && contender.plays != role::machine) {
            order_proof proof(graph);
            const auto tried = contender.make({graph, proof.calls(), threads});
            for (int i = 0; i < 5; i++) {
                tried->run();
                proof.expect_one_run(contender.name);
            }
        }
        entries.push_back({contender.name, contender.plays, contender.make({graph, bodies.calls(), threads})});
        const lane lane = lane_of(entries.back(), bodies);
        settle();
        double spent = 0;
        std::uint64_t runs = 0;
        for (; runs < 20 && spent < 5e6; runs++) spent += timed_run(lane);
        lane.check(runs);
    }
    return entries;
}

timings race(const std::vector<lane> &lanes, int rounds) {
    constexpr double warm_ns = 1e6, enough_ns = 4e6;
    timings result(lanes.size());
    std::vector<double> runs;
    for (int round = 0; round < rounds; round++) {
        for (std::size_t k = 0; k < lanes.size(); k++) {
            const std::size_t l = (k + static_cast<std::size_t>(round)) % lanes.size();
            settle();
            double spent = 0;
            std::uint64_t warm = 0;
            for (; spent < warm_ns; warm++) spent += timed_run(lanes[l]);
            runs.clear();
            for (spent = 0; spent < enough_ns; spent += runs.back()) runs.push_back(timed_run(lanes[l]));
            result.add(l, median(runs));
            // Not between the runs: it would pull what they wrote to this processor's cache, and give threads time to fall asleep.
            lanes[l].check(warm + runs.size());
        }
    }
    return result;
}

timings race(const std::vector<entry> &entries, bodies &bodies, int rounds) {
    std::vector<lane> lanes;
    for (const auto &entry : entries) lanes.push_back(lane_of(entry, bodies));
    return race(lanes, rounds);
}

} // namespace bench

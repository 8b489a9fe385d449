// SPDX-License-Identifier: MIT OR Apache-2.0
//
// What is not there: memory requests in a region, threads of weir's, and processor time of a process that has nothing
// to do.

#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "peers.hpp"

namespace bench {

namespace {

double cpu_seconds() {
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval &t) {
        return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void sleep_for(double seconds) {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

} // namespace

void bench_quiet(const options &options) {
    constexpr int regions = 1000;
    std::printf("\n## Quiet\n\n"
                "%d regions of 64 items of 5 us after as many to warm up; then %s s without work.\n",
                regions, fixed(options.idle_seconds, 0).c_str());
    const std::vector<std::uint32_t> steps(64, steps_for(5000));
    const work work{steps.data(), 64, 5000};
    const table t({"pool", "requests of weir", "requests of the process", "threads started by weir", "CPU while idle"});
    for (const auto &peer : peers()) {
        for (int i = 0; i < regions; i++) run_weir(peer.pool, work, true);
        const auto before = weir::runtime_info();
        const auto all_before = memory_requests();
        for (int i = 0; i < regions; i++) run_weir(peer.pool, work, true);
        const auto all = memory_requests() - all_before;
        const auto after = weir::runtime_info();
        sleep_for(0.1);
        const double busy = cpu_seconds();
        sleep_for(options.idle_seconds);
        const double share = (cpu_seconds() - busy) / options.idle_seconds;
        t.row({peer.name, std::to_string(after.allocations - before.allocations), std::to_string(all),
               std::to_string(after.threads_started - before.threads_started), fixed(100 * share, 3) + " %"});
    }
    std::printf("\nThreads that weir has started in this process: %llu (the built-in pool's one).\n",
                static_cast<unsigned long long>(weir::runtime_info().threads_started));
}

} // namespace bench

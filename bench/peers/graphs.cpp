// SPDX-License-Identifier: MIT OR Apache-2.0
//
//     graphs [--rounds=N] [--quick] [--shape=PART] [--side=PART] [empty1] [empty2] [us1] [us20] [one] [control]
//            [mixed] [uneven] [forks] [changing] [first] [paced] [networks] [data]
//
// weir's graph executor against those of others, all in this process and in turn. A graph is built once and run many
// times; after each run every node must have run once. Nothing is pinned. Prints Markdown.

#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <thread>

#include "graphs.hpp"
#include "weir.h"

namespace {

struct section {
    const char *name;
    void (*run)(const bench::graph_options &);
};

constexpr section sections[] = {
    {"empty1", bench::bench_empty1}, {"empty2", bench::bench_empty2}, {"us1", bench::bench_us1},
    {"us20", bench::bench_us20},     {"one", bench::bench_one},       {"control", bench::bench_control},
    {"mixed", bench::bench_mixed},
    {"uneven", bench::bench_uneven_nodes},
    {"forks", bench::bench_forks},
    {"changing", bench::bench_changing},
    {"first", bench::bench_first},
    {"paced", bench::bench_paced},
    {"networks", bench::bench_networks},
    {"data", bench::bench_data},
};

[[noreturn]] void usage() {
    std::fprintf(stderr, "usage: graphs [--rounds=N] [--quick] [--shape=PART] [--side=PART]");
    for (const auto &section : sections) std::fprintf(stderr, " [%s]", section.name);
    std::fprintf(stderr, "\n");
    std::exit(2);
}

bench::graph_options parse(int argc, char **argv) {
    bench::graph_options options;
    options.rounds = 0;
    for (int i = 1; i < argc; i++) {
        const char *arg = argv[i];
        bool known = true;
        if (std::strncmp(arg, "--rounds=", 9) == 0) {
            options.rounds = std::atoi(arg + 9);
            known = options.rounds > 0;
        } else if (std::strncmp(arg, "--shape=", 8) == 0) {
            options.shape = arg + 8;
        } else if (std::strncmp(arg, "--side=", 7) == 0) {
            options.side = arg + 7;
        } else if (std::strcmp(arg, "--quick") == 0) {
            options.quick = true;
        } else {
            known = false;
            for (const auto &section : sections) known = known || std::strcmp(arg, section.name) == 0;
            options.sections.push_back(arg);
        }
        if (!known) usage();
    }
    if (options.rounds == 0) options.rounds = options.quick ? 5 : 31;
    return options;
}

// Runtimes that run a task at once where it is spawned go as deep as the graph is long, on the caller's stack and on
// those of their threads, whose size is this process's limit when it starts.
void with_deep_stacks(char **argv) {
    constexpr rlim_t wanted = rlim_t{256} << 20;
    rlimit limit{};
    if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= wanted) return;
    limit.rlim_cur = limit.rlim_max == RLIM_INFINITY ? wanted : std::min(wanted, limit.rlim_max);
    if (setrlimit(RLIMIT_STACK, &limit) != 0 || std::getenv("WEIR_BENCH_AGAIN") != nullptr) return;
    setenv("WEIR_BENCH_AGAIN", "1", 1);
    setenv("OMP_STACKSIZE", "256M", 0);
    execv("/proc/self/exe", argv); // returns only if it fails: then the stacks are what they are
}

} // namespace

int main(int argc, char **argv) {
    const auto options = parse(argc, argv);
    with_deep_stacks(argv);
    prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL); // bodies that sleep end in time; all threads have it from this one
    try {
        std::printf("# weir %s: graph executors\n\n"
                    "%u processors. Nothing is pinned. Bodies that take time are chains of dependent multiplications,\n"
                    "calibrated once: 1 us is %u of them.\n",
                    weir_version_string(), std::thread::hardware_concurrency(), bench::steps_for(1000));
        for (const auto &line : bench::missing_contenders()) std::printf("\nLeft out: %s\n", line.c_str());
        for (const auto &section : sections) {
            if (options.wants(section.name)) section.run(options);
        }
    } catch (const std::exception &e) {
        std::fprintf(stderr, "graphs: %s\n", e.what());
        return 1;
    }
    return 0;
}

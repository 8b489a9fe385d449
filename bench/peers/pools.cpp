// SPDX-License-Identifier: MIT OR Apache-2.0
//
//     pools [--rounds=N] [--idle=SECONDS] [--quick] [regions] [sweep] [uneven] [quiet] [tasks] [operators]
//
// weir on the thread pools of others, against these pools themselves. Both sides run in this process and take turns.
// Nothing is pinned. Prints Markdown.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <thread>

#include "peers.hpp"

namespace {

struct section {
    const char *name;
    void (*run)(const bench::options &);
};

constexpr section sections[] = {
    {"regions", bench::bench_regions}, {"sweep", bench::bench_sweep},         {"uneven", bench::bench_uneven},
    {"quiet", bench::bench_quiet},     {"tasks", bench::bench_tasks},
#ifdef WEIR_BENCH_WITH_DNNL
    {"operators", bench::bench_operators},
#endif
};

[[noreturn]] void usage() {
    std::fprintf(stderr, "usage: pools [--rounds=N] [--idle=SECONDS] [--quick]");
    for (const auto &section : sections) std::fprintf(stderr, " [%s]", section.name);
    std::fprintf(stderr, "\n");
    std::exit(2);
}

bench::options parse(int argc, char **argv) {
    bench::options options;
    for (int i = 1; i < argc; i++) {
        const char *arg = argv[i];
        bool known = true;
        if (std::strncmp(arg, "--rounds=", 9) == 0) {
            options.rounds = std::atoi(arg + 9);
        } else if (std::strncmp(arg, "--idle=", 7) == 0) {
            options.idle_seconds = std::atof(arg + 7);
        } else if (std::strcmp(arg, "--quick") == 0) {
            options.quick = true;
        } else {
            known = false;
            for (const auto &section : sections) known = known || std::strcmp(arg, section.name) == 0;
            options.sections.push_back(arg);
        }
        if (!known || options.rounds < 1 || !(options.idle_seconds > 0)) usage();
    }
    return options;
}

} // namespace

int main(int argc, char **argv) {
    const auto options = parse(argc, argv);
    try {
        std::printf("# weir %s on the pools of others\n\n"
                    "%u processors, a team of two threads: the caller and one of the pool. Nothing is pinned.\n"
                    "The bodies are chains of dependent multiplications, calibrated once: 1 us is %u of them.\n",
                    weir_version_string(), std::thread::hardware_concurrency(), bench::steps_for(1000));
        for (const auto &section : sections) {
            if (options.wants(section.name)) section.run(options);
        }
#ifndef WEIR_BENCH_WITH_DNNL
        std::printf("\nSKIPPED: operators, there was no oneDNN with OpenMP when this was built.\n");
#endif
    } catch (const std::exception &e) {
        std::fprintf(stderr, "pools: %s\n", e.what());
        return 1;
    }
    return 0;
}

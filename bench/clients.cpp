// SPDX-License-Identifier: MIT OR Apache-2.0
//
// How many runs a program serves to clients that wait: `weir_program_run`, beside `weir_program_start` on a stream of
// the client's and `weir_run_synchronize`. One program (three layers of four tasks), one pool, threads of the host's as
// clients. Both ways in turn, for half a second each; medians of all rounds: runs a second, and the time of a run that
// one in two, and one in a hundred, exceeds.
//
//     g++ -O2 -std=c++17 -Iinclude bench/clients.cpp -o clients -L<dir> -lweir -ltbb -lpthread
//     LD_LIBRARY_PATH=<dir> ./clients [rounds]

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "weir/adapters/std_thread.hpp"
#include "weir/adapters/tbb.hpp"

namespace {

constexpr int layers = 3, wide = 4;
constexpr auto task_time = std::chrono::nanoseconds(2000);
constexpr auto round_time = std::chrono::milliseconds(500);

using steady = std::chrono::steady_clock;

void ok(weir_status status, const char *what) {
    if (status == WEIR_OK) return;
    std::fprintf(stderr, "%s: %s\n", what, weir_last_error_message());
    std::exit(1);
}
#define OK(call) ok((call), #call)

std::int32_t work(void *) {
    for (const auto end = steady::now() + task_time; steady::now() < end;) continue;
    return WEIR_OK;
}

weir_program *make_program(weir_engine *engine) {
    weir_graph *graph = nullptr;
    weir_program *program = nullptr;
    std::vector<weir_node> before, now;
    OK(weir_graph_create("layers", &graph));
    for (int layer = 0; layer < layers; layer++) {
        now.clear();
        for (int i = 0; i < wide; i++) {
            const std::string name = std::to_string(layer) + "." + std::to_string(i);
            weir_node node;
            OK(weir_graph_add_task(graph, name.c_str(), work, nullptr, nullptr, task_time.count(), &node));
            for (const weir_node from : before) OK(weir_graph_add_control_edge(graph, from, node));
            now.push_back(node);
        }
        before = now;
    }
    OK(weir_graph_compile(graph, &engine, 1, nullptr, &program));
    weir_graph_destroy(graph);
    return program;
}

struct figures {
    double per_second, median_us, worst_us; // worst: of one in a hundred
};

// What `clients` threads get in one round.
figures serve(weir_engine *engine, weir_program *program, int clients, bool started) {
    std::vector<std::vector<double>> times(clients);
    std::vector<std::thread> threads;
    const auto begin = steady::now(), end = begin + round_time;
    for (int client = 0; client < clients; client++) {
        threads.emplace_back([=, &times] {
            weir_stream *stream = nullptr;
            OK(weir_stream_create(engine, WEIR_STREAM_ASYNCHRONOUS, nullptr, &stream));
            for (auto from = steady::now(); from < end;) {
                if (started) {
                    weir_run *run = nullptr;
                    OK(weir_program_start(program, stream, nullptr, 0, nullptr, 0, nullptr, &run));
                    OK(weir_run_synchronize(run, WEIR_TIMEOUT_INFINITE));
                    weir_run_release(run);
                } else {
                    OK(weir_program_run(program, nullptr, nullptr, 0, nullptr, 0, nullptr));
                }
                const auto now = steady::now();
                times[client].push_back(std::chrono::duration<double, std::micro>(now - from).count());
                from = now;
            }
            weir_stream_release(stream);
        });
    }
    for (auto &thread : threads) thread.join();
    const double seconds = std::chrono::duration<double>(steady::now() - begin).count();
    std::vector<double> all;
    for (const auto &some : times) all.insert(all.end(), some.begin(), some.end());
    std::sort(all.begin(), all.end());
    return {all.size() / seconds, all[all.size() / 2], all[all.size() * 99 / 100]};
}

double median(std::vector<double> all) {
    std::sort(all.begin(), all.end());
    return all[all.size() / 2];
}

void compare(const char *name, const weir::threadpool &pool, int clients, int rounds) {
    weir_engine_attr *attr = nullptr;
    weir_engine *engine = nullptr;
    OK(weir_engine_attr_create(WEIR_ENGINE_CPU, &attr));
    OK(weir_engine_attr_set_threadpool(attr, pool.get()));
    OK(weir_engine_create(WEIR_ENGINE_CPU, 0, attr, &engine));
    weir_engine_attr_destroy(attr);
    weir_program *program = make_program(engine);
    std::vector<double> figures_of[2][3], ratios[2];
    for (int round = 0; round < rounds; round++) {
        figures got[2];
        for (int way = 0; way < 2; way++) {
            const int started = (way + round) % 2;
            got[started] = serve(engine, program, clients, started != 0);
            figures_of[started][0].push_back(got[started].per_second);
            figures_of[started][1].push_back(got[started].median_us);
            figures_of[started][2].push_back(got[started].worst_us);
        }
        ratios[0].push_back(got[0].per_second / got[1].per_second);
        ratios[1].push_back(got[1].worst_us / got[0].worst_us);
    }
    std::printf("%-12s%8d", name, clients);
    for (const auto &way : figures_of) {
        std::printf("%12.0f%9.1f%9.1f", median(way[0]), median(way[1]), median(way[2]));
    }
    std::printf("%12.2f%9.2f\n", median(ratios[0]), median(ratios[1]));
    std::fflush(stdout);
    weir_program_release(program);
    weir_engine_release(engine);
}

} // namespace

int main(int argc, char **argv) {
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 11;
    std::printf("%-12s%8s%30s%30s%21s\n", "", "", "run", "start and wait", "ratios");
    std::printf("%-12s%8s%12s%9s%9s%12s%9s%9s%12s%9s\n", "pool", "clients", "runs/s", "p50 us", "p99 us", "runs/s",
                "p50 us", "p99 us", "runs/s", "p99");
    tbb::task_arena arena(3);
    const weir::threadpool of_tbb = weir::adapters::tbb_threadpool(arena);
    const weir::threadpool of_threads = weir::adapters::std_thread_threadpool(2);
    for (const int clients : {1, 2, 8}) {
        compare("TBB", of_tbb, clients, rounds);
        compare("std::thread", of_threads, clients, rounds);
    }
}

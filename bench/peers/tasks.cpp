// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Task groups: recursion, sorting and an uneven tree, by weir's groups, oneTBB's, OpenMP's tasks, and in one thread.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <tbb/task_group.h>

#include "peers.hpp"

namespace bench {

namespace {

// Each way to run tasks: a group with run(f) and wait(), made in each call that forks.
struct in_turn {
    struct group {
        template <class F>
        void run(F f) { f(); }
        void wait() {}
    };
};

struct by_weir {
    static weir_threadpool *pool;
    struct group {
        weir::task_group tasks = weir::task_group::of(pool);
        template <class F>
        void run(F f) { tasks.run(f); }
        void wait() { tasks.synchronize(); }
    };
};
weir_threadpool *by_weir::pool = nullptr;

struct by_tbb {
    struct group {
        tbb::task_group tasks;
        template <class F>
        void run(F f) { tasks.run(f); }
        void wait() { tasks.wait(); }
    };
};

// Inside of a parallel region.
struct by_openmp {
    struct group {
        template <class F>
        void run(F f) {
#pragma omp task firstprivate(f)
            f();
        }
        void wait() {
#pragma omp taskwait
        }
    };
};

long fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

template <class Way>
long fib(int n, int cut_off) {
    if (n <= cut_off || n < 2) return fib(n);
    long one, two;
    typename Way::group group;
    group.run([n, cut_off, &one] { one = fib<Way>(n - 1, cut_off); });
    two = fib<Way>(n - 2, cut_off);
    group.wait();
    return one + two;
}

constexpr std::int64_t few = 500;

template <class Way>
void sort(std::int32_t *begin, std::int32_t *end) {
    if (end - begin < few) {
        std::sort(begin, end);
        return;
    }
    const std::int32_t middle = std::max(std::min(begin[0], end[-1]),
                                         std::min(std::max(begin[0], end[-1]), begin[(end - begin) / 2]));
    auto *const less = std::partition(begin, end, [middle](std::int32_t x) { return x < middle; });
    auto *const more = std::partition(less, end, [middle](std::int32_t x) { return x == middle; });
    typename Way::group group;
    group.run([begin, less] { sort<Way>(begin, less); });
    sort<Way>(more, end);
    group.wait();
}

// A tree whose shape comes from a hash of the path: a node has four children or none.
std::uint64_t mix(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

constexpr int branches = 4;
constexpr double chance = 0.2475;

template <class Way>
long tree(std::uint64_t seed, std::uint32_t steps, int children) {
    spin(steps);
    if (children == 0) return 1;
    long below[64] = {};
    typename Way::group group;
    for (int i = 0; i < children; i++) {
        const std::uint64_t child = mix(seed + static_cast<std::uint64_t>(i));
        const int next = static_cast<double>(child >> 11) < chance * 0x1p53 ? branches : 0;
        group.run([child, steps, next, sum = &below[i]] { *sum = tree<Way>(child, steps, next); });
    }
    group.wait();
    long sum = 1;
    for (int i = 0; i < children; i++) sum += below[i];
    return sum;
}

template <class Call>
void team_of_two(Call call) {
#pragma omp parallel num_threads(2)
#pragma omp single
    call();
}

// The same in all ways: alone, weir, TBB, OpenMP.
template <class Make>
void race(const table &t, const options &options, const char *name, Make make) {
    const auto alone = make(in_turn{});
    const auto weir = make(by_weir{});
    const auto tbb = make(by_tbb{});
    const auto openmp = make(by_openmp{});
    const auto begin = now_ns();
    weir();
    const int calls = std::max(1, static_cast<int>(2e6 / static_cast<double>(now_ns() - begin + 1)));
    const auto time = take_turns({alone, weir, tbb, [&] { team_of_two(openmp); }}, options.rounds, calls, true);
    t.row({name, duration(time.ns(0)), duration(time.ns(1)), duration(time.ns(2)), duration(time.ns(3)),
           fixed(time.ratio(0, 1)), fixed(time.ratio(2, 1)), fixed(time.ratio(3, 1))});
}

void expect(bool right) {
    if (!right) throw std::runtime_error("tasks: a wrong result");
}

} // namespace

void bench_tasks(const options &options) {
    by_weir::pool = peer_named("built-in").pool.get();
    std::printf("\n## Task groups\n\n"
                "A team of two; weir on its own pool of one thread and the caller. The median of %d rounds.\n"
                "A side begins when the others' threads sleep. The last columns say how many times longer they take.\n",
                options.rounds);
    const table t({"tasks", "alone", "weir", "TBB", "OpenMP", "alone / weir", "TBB / weir", "OpenMP / weir"});
    for (const int cut_off : {20, 16, 12, 8, 2}) {
        const auto name = "fib(25), cut off at " + std::to_string(cut_off);
        race(t, options, name.c_str(), [&](auto way) {
            return [cut_off] { expect(fib<decltype(way)>(25, cut_off) == 75025); };
        });
    }

    std::vector<std::int32_t> shuffled(200000);
    std::mt19937 random(7);
    for (auto &x : shuffled) x = static_cast<std::int32_t>(random());
    race(t, options, "sort 200,000 numbers", [&](auto way) {
        return [&shuffled] {
            auto copy = shuffled;
            sort<decltype(way)>(copy.data(), copy.data() + copy.size());
            expect(std::is_sorted(copy.begin(), copy.end()));
        };
    });

    for (const double ns : {20.0, 200.0}) {
        const auto steps = steps_for(ns);
        const auto nodes = tree<in_turn>(1000, steps, 60);
        const auto name = "tree of " + std::to_string(nodes) + " nodes of " + duration(ns);
        race(t, options, name.c_str(), [&](auto way) {
            return [steps, nodes] { expect(tree<decltype(way)>(1000, steps, 60) == nodes); };
        });
    }

    constexpr int spawns = 10000;
    const auto nothing = [](auto way) {
        return [] {
            typename decltype(way)::group group;
            for (int i = 0; i < spawns; i++) group.run([] { asm volatile(""); });
            group.wait();
        };
    };
    race(t, options, "10,000 of nothing", nothing);

    std::printf("\nOne thread, no pool: what a task takes in a loop of 100, and in fib(20) without a cut-off.\n");
    const table one({"", "a spawn in a loop", "a group, a spawn and a wait in fib"});
    const auto pool = std::exchange(by_weir::pool, nullptr);
    const auto hundred = [] {
        by_weir::group group;
        for (int i = 0; i < 100; i++) group.run([] { asm volatile(""); });
        group.wait();
    };
    const auto forks_of = [](auto way) { return [] { expect(fib<decltype(way)>(20, 1) == 6765); }; };
    const auto time = take_turns({hundred, forks_of(by_weir{}), forks_of(in_turn{})}, options.rounds, 20);
    constexpr double forks = 10945; // of fib(20)
    one.row({"weir", duration(time.ns(0) / 100), duration((time.ns(1) - time.ns(2)) / forks)});
    by_weir::pool = pool;
}

} // namespace bench

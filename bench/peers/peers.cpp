// SPDX-License-Identifier: MIT OR Apache-2.0

#define EIGEN_USE_THREADS

#include "peers.hpp"

#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>

#include <memory>
#include <stdexcept>
#include <utility>

#include <unsupported/Eigen/CXX11/Tensor>

#include "weir/adapters/eigen.hpp"
#include "weir/adapters/openmp.h"
#include "weir/adapters/std_thread.hpp"
#include "weir/adapters/tbb.hpp"

namespace bench {

namespace {

constexpr int team = 2;

peer openmp() {
    weir_threadpool *raw = nullptr;
    weir::check(weir_openmp_threadpool_create(team, &raw));
    const auto own = [](const work &work) {
#pragma omp parallel for num_threads(team)
        for (std::int64_t i = 0; i < work.items; i++) spin(work.steps[i]);
    };
    const auto pair = [](void (*task)()) {
#pragma omp parallel for num_threads(team)
        for (int i = 0; i < 2; i++) task();
    };
    return {"OpenMP", weir::threadpool(raw), own, pair};
}

// Both sides use the arena that TBB gives to this thread.
peer tbb_arena() {
    static const tbb::global_control threads(tbb::global_control::max_allowed_parallelism, team);
    tbb::task_arena arena{tbb::attach()};
    const auto own = [](const work &work) {
        using range = tbb::blocked_range<std::int64_t>;
        tbb::parallel_for(range(0, work.items), [&work](const range &part) { work.run(part.begin(), part.end()); });
    };
    const auto pair = [](void (*task)()) { tbb::parallel_for(0, 2, [task](int) { task(); }); };
    return {"TBB", weir::adapters::tbb_threadpool(arena, team - 1), own, pair};
}

// A ThreadPoolDevice counts only the pool's threads and lets the caller wait for them, so its own loop has a pool of
// two threads; weir and the pair of tasks share a pool of one thread with the caller.
peer eigen() {
    static const auto one = std::make_shared<Eigen::ThreadPool>(team - 1);
    static Eigen::ThreadPool two(team);
    static const Eigen::ThreadPoolDevice device(&two, team);
    const auto own = [](const work &work) {
        const Eigen::TensorOpCost cost(0, 0, work.item_ns * 3); // in cycles, of which Eigen takes 3 to be a nanosecond
        device.parallelFor(work.items, cost, [&work](Eigen::Index begin, Eigen::Index end) { work.run(begin, end); });
    };
    const auto pair = [](void (*task)()) {
        Eigen::Barrier done(1);
        one->Schedule([task, &done] {
            task();
            done.Notify();
        });
        task();
        done.Wait();
    };
    return {"Eigen", weir::adapters::eigen_threadpool(one), own, pair};
}

peer std_thread() {
    static const auto threads = std::make_shared<weir::adapters::std_thread_pool>(team - 1);
    const auto own = [](const work &work) {
        const auto half = [](void *arg, std::int32_t i) {
            const auto &work = *static_cast<const struct work *>(arg);
            work.run(work.items * i / team, work.items * (i + 1) / team);
        };
        threads->parallel_for(team, weir::pool_task{half, const_cast<struct work *>(&work)});
    };
    const auto pair = [](void (*task)()) {
        const auto call = [](void *arg, std::int32_t) { (*static_cast<void (**)()>(arg))(); };
        threads->parallel_for(2, weir::pool_task{call, &task});
    };
    return {"std::thread", weir::threadpool::from(threads), own, pair};
}

} // namespace

const std::vector<peer> &peers() {
    static const std::vector<peer> all = [] {
        std::vector<peer> list;
        list.push_back(openmp());
        list.push_back(tbb_arena());
        list.push_back(eigen());
        list.push_back(std_thread());
        list.push_back({"built-in", weir::threadpool::builtin(team - 1), nullptr, nullptr});
        return list;
    }();
    return all;
}

const peer &peer_named(const std::string &name) {
    for (const auto &peer : peers()) {
        if (peer.name == name) return peer;
    }
    throw std::out_of_range("no pool is called " + name);
}

void run_weir(const weir::threadpool &pool, const work &work, bool with_hint) {
    auto hint = weir::sized<weir_parallel_hint>();
    hint.cost_ns = work.item_ns;
    const auto range = [](void *arg, std::int64_t begin, std::int64_t end, std::int32_t) -> weir_status {
        static_cast<const struct work *>(arg)->run(begin, end);
        return WEIR_OK;
    };
    weir::check(weir_parallel_for(pool, work.items, with_hint ? &hint : nullptr, range,
                                  const_cast<struct work *>(&work)));
}

} // namespace bench

// The threads of a tbb::task_arena as a weir thread pool. Needs oneTBB 2021 or later.
// SPDX-License-Identifier: MIT OR Apache-2.0
//
//     tbb::task_arena arena(4);
//     weir::threadpool pool = weir::adapters::tbb_threadpool(arena);
//
// Gives weir schedule (arena.enqueue) and parallel_for (tbb::parallel_for in the arena, isolated: a thread that waits
// in it takes up no other work), and tells it which threads work for the arena. Calls from inside of tasks are welcome.
//
// Ownership: a task_arena is a handle, and the pool has one of its own to the same arena. Yours may end before.
//
// Limits:
//  - enqueue allocates one small object for each task, from TBB's own pool of them.
//  - A thread of TBB's has no lasting number, so there is no thread_index.
//  - TBB cannot run a queued task in a thread that waits, so a wait for a stream inside of a task of the arena returns
//    FAILED_PRECONDITION. A thread of yours that came in with arena.execute() may wait.
//  - The number of threads is read once, when the pool is made.

#ifndef WEIR_ADAPTERS_TBB_HPP
#define WEIR_ADAPTERS_TBB_HPP

#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#include <tbb/task_scheduler_observer.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "../threadpool.hpp"

namespace weir {
namespace adapters {

/// An arena as threadpool::from takes it. It must not be destroyed in a thread that works for the arena.
class tbb_pool : private tbb::task_scheduler_observer {
public:
    static constexpr std::uint64_t flags = WEIR_THREADPOOL_AUTO_BALANCING | WEIR_THREADPOOL_NESTED;

    /// num_threads: the arena's workers; 0 = all slots but the one that an arena keeps for a thread from outside, and
    /// no more than tbb::global_control allows.
    explicit tbb_pool(tbb::task_arena &arena, std::int32_t num_threads = 0)
        : tbb::task_scheduler_observer(arena_), num_threads_(num_threads) {
        arena.execute([this] { arena_.initialize(tbb::attach()); });
        if (num_threads_ <= 0) {
            const auto allowed = tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism);
            const auto slots = static_cast<std::size_t>(arena.max_concurrency());
            num_threads_ = static_cast<std::int32_t>(std::max<std::size_t>(std::min(slots, allowed), 2) - 1);
        }
        observe(true);
    }
    ~tbb_pool() override { observe(false); }

    std::int32_t num_threads() const noexcept { return num_threads_; }
    std::int32_t max_threads() const noexcept { return num_threads_; }
    void schedule(pool_task task) { arena_.enqueue(task); }
    void parallel_for(std::int32_t n, pool_task task) {
        std::atomic<std::int32_t> next{0};
        const auto one = [&](std::int32_t) { task(next.fetch_add(1, std::memory_order_relaxed)); };
        const auto all = [&] { tbb::parallel_for(std::int32_t{0}, n, one, tbb::simple_partitioner()); };
        const bool done = detail::or_else(false, [&] {
            arena_.execute([&] { tbb::this_task_arena::isolate(all); });
            return true;
        });
        // No memory for TBB's own tasks: none of them is left, and the rest is done here.
        while (!done && next.load(std::memory_order_relaxed) < n) one(0);
    }
    bool in_parallel() const noexcept { return std::find(joined.begin(), joined.end(), id_) != joined.end(); }

private:
    // A thread of TBB's enters an arena to work for it and leaves it again, and may do so with another one in between.
    void on_scheduler_entry(bool is_worker) override {
        if (is_worker) joined.push_back(id_);
    }
    void on_scheduler_exit(bool is_worker) override {
        const auto last = std::find(joined.rbegin(), joined.rend(), id_);
        if (is_worker && last != joined.rend()) joined.erase(std::next(last).base());
    }
    static std::uint64_t next_id() noexcept {
        static std::atomic<std::uint64_t> last{0};
        return ++last;
    }

    // The pools that the thread works for. Numbers, because an address may be that of a pool that is no more.
    static inline thread_local std::vector<std::uint64_t> joined;
    const std::uint64_t id_ = next_id();
    tbb::task_arena arena_;
    std::int32_t num_threads_;
};

/// A weir pool on the threads of `arena`. num_threads as for tbb_pool.
inline threadpool tbb_threadpool(tbb::task_arena &arena, std::int32_t num_threads = 0) {
    return threadpool::from(std::make_shared<tbb_pool>(arena, num_threads));
}

} // namespace adapters
} // namespace weir

#endif // WEIR_ADAPTERS_TBB_HPP

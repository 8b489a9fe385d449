// A pool of std::thread that a C++ program can own, and a weir thread pool on it.
// SPDX-License-Identifier: MIT OR Apache-2.0
//
//     weir::threadpool pool = weir::adapters::std_thread_threadpool(4);   // weir's alone, or
//     weir::adapters::std_thread_pool threads(4);                         // the program's, for work of its own too:
//     weir::threadpool pool = weir::threadpool::from_ref(threads);
//
// Gives weir everything that a pool can give: schedule, parallel_for (also inside of tasks), help and the identity of
// its threads. A task is two pointers in a ring of fixed size: handing one over allocates nothing, and no lock is held
// while one runs. Idle threads look around for `spin` and then sleep.
//
// Ownership: the destructor runs what is queued and joins the threads, so it must not run in one of them. A pool that
// was passed to weir by from_ref must outlive what was made on the weir pool; the other ends with it.
//
// Limits: tasks must not throw. schedule refuses when the ring is full (1024 tasks). One lock for all threads: made for
// tens of threads and tasks of microseconds.

#ifndef WEIR_ADAPTERS_STD_THREAD_HPP
#define WEIR_ADAPTERS_STD_THREAD_HPP

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "../threadpool.hpp"

namespace weir {
namespace adapters {

class std_thread_pool {
public:
    static constexpr std::uint64_t flags = WEIR_THREADPOOL_AUTO_BALANCING | WEIR_THREADPOOL_NESTED;
    static constexpr std::size_t capacity = 1024;

    /// Throws std::system_error if threads cannot be started. num_threads below 1 counts as 1.
    explicit std_thread_pool(std::int32_t num_threads, std::chrono::nanoseconds spin = std::chrono::microseconds(20))
        : num_threads_(std::max(num_threads, 1)), spin_(spin) {
        struct unfinished {
            std_thread_pool *pool;
            ~unfinished() {
                if (pool) pool->end();
            }
        } starting{this};
        for (std::int32_t i = 0; i < num_threads_; i++) threads_.emplace_back([this, i] { work(i); });
        starting.pool = nullptr;
    }
    ~std_thread_pool() { end(); }
    std_thread_pool(const std_thread_pool &) = delete;
    std_thread_pool &operator=(const std_thread_pool &) = delete;

    std::int32_t num_threads() const noexcept { return num_threads_; }
    std::int32_t max_threads() const noexcept { return num_threads_; }
    bool in_parallel() const noexcept { return here.pool == this; }
    std::int32_t thread_index() const noexcept { return in_parallel() ? here.index : -1; }

    /// Queues task(0); false if there is no room.
    bool schedule(pool_task task) { return push(task, 1) == 1; }

    /// Runs task(i) for each 0 <= i < n, in the calling thread and in others, and returns when all have returned.
    void parallel_for(std::int32_t n, pool_task task) {
        loop own{*this, task, n};
        const pool_task join{loop::join, &own};
        const std::int32_t wanted = std::min(n - 1, num_threads_);
        own.helpers = wanted;
        if (wanted > 0) own.helpers -= wanted - push(join, wanted);
        while (own.step()) continue;
        // Helpers that have not begun are taken back; those that have are about to end.
        if (own.helpers > 0) {
            own.helpers -= withdraw(join);
            wait_for(own);
        }
    }

    /// Runs one queued task here, if there is one: of a parallel_for one index.
    bool help() {
        for (pool_task task;;) {
            auto guard = lock();
            if (!pop(task)) return false;
            guard.unlock();
            if (task.fn != loop::join) return task(), true;
            auto &joined = *static_cast<loop *>(task.arg);
            const bool ran = joined.step();
            joined.leave();
            if (ran) return true;
        }
    }

private:
    using clock = std::chrono::steady_clock;

    // A parallel_for in progress, on its caller's stack. Helpers touch it no more once they are counted out.
    struct loop {
        std_thread_pool &pool;
        pool_task task;
        std::int32_t n;
        std::atomic<std::int32_t> next{0}, helpers{0};
        bool step() noexcept {
            const std::int32_t i = next.fetch_add(1, std::memory_order_relaxed);
            if (i < n) task(i);
            return i < n;
        }
        void leave() noexcept {
            auto &threads = pool; // this may be gone after the count
            // Sequentially consistent, as in wait_for: either this thread sees the waiter or the waiter sees the count.
            if (helpers.fetch_sub(1) == 1 && threads.waiting_ > 0) {
                threads.lock().unlock(); // the waiter is asleep, or has not looked yet
                threads.left_.notify_all();
            }
        }
        static void join(void *self, std::int32_t) noexcept {
            auto &joined = *static_cast<loop *>(self);
            while (joined.step()) continue;
            joined.leave();
        }
    };
    struct place {
        const std_thread_pool *pool;
        std::int32_t index;
    };

    // What the lock protects is held for a few instructions, so a thread tries a little before it goes to sleep for it.
    std::unique_lock<std::mutex> lock() {
        for (int i = 0; i < 100; i++) {
            if (mutex_.try_lock()) return std::unique_lock<std::mutex>(mutex_, std::adopt_lock);
        }
        return std::unique_lock<std::mutex>(mutex_);
    }
    std::int32_t push(pool_task task, std::int32_t count) {
        auto guard = lock();
        std::size_t end = size_;
        count = std::min(count, static_cast<std::int32_t>(capacity - end));
        for (std::int32_t i = 0; i < count; i++) ring_[(first_ + end++) % capacity] = task;
        size_ = end;
        const std::int32_t wake = std::min(count, asleep_);
        guard.unlock();
        for (std::int32_t i = 0; i < wake; i++) queued_.notify_one();
        return count;
    }
    bool pop(pool_task &task) noexcept {
        if (size_ == 0) return false;
        task = ring_[first_++ % capacity];
        size_ = size_ - 1;
        return true;
    }
    // Takes the copies of a task out of the ring; gives how many there were.
    std::int32_t withdraw(pool_task task) {
        const auto guard = lock();
        std::size_t kept = 0;
        const std::size_t size = size_;
        for (std::size_t i = 0; i < size; i++) {
            const pool_task queued = ring_[(first_ + i) % capacity];
            if (queued.fn != task.fn || queued.arg != task.arg) ring_[(first_ + kept++) % capacity] = queued;
        }
        size_ = kept;
        return static_cast<std::int32_t>(size - kept);
    }
    void wait_for(const loop &own) {
        const auto until = clock::now() + spin_;
        while (own.helpers > 0) {
            if (clock::now() < until) continue;
            ++waiting_;
            auto guard = lock();
            left_.wait(guard, [&] { return own.helpers == 0; });
            --waiting_;
        }
    }
    void work(std::int32_t index) {
        here = {this, index};
        for (pool_task task; take(task);) task();
    }
    // Waits for a task; false when the pool ends and none is left.
    bool take(pool_task &task) {
        const auto until = clock::now() + spin_;
        do {
            if (size_ == 0 || !mutex_.try_lock()) continue;
            const std::lock_guard<std::mutex> guard(mutex_, std::adopt_lock);
            if (pop(task)) return true;
        } while (clock::now() < until);
        std::unique_lock<std::mutex> guard(mutex_);
        ++asleep_;
        queued_.wait(guard, [this] { return size_ > 0 || ending_; });
        --asleep_;
        return pop(task);
    }
    void end() {
        {
            const auto guard = lock();
            ending_ = true;
        }
        queued_.notify_all();
        for (auto &thread : threads_) thread.join();
    }

    static inline thread_local place here{nullptr, -1};
    const std::int32_t num_threads_;
    const std::chrono::nanoseconds spin_;
    std::mutex mutex_; // the ring, asleep_ and ending_; size_ is also looked at without it
    std::condition_variable queued_, left_;
    std::array<pool_task, capacity> ring_;
    std::size_t first_ = 0;
    std::atomic<std::size_t> size_{0};
    std::int32_t asleep_ = 0;
    bool ending_ = false;
    std::atomic<std::int32_t> waiting_{0};
    std::vector<std::thread> threads_;
};

/// A weir pool on `num_threads` threads of its own, which end with it.
inline threadpool std_thread_threadpool(std::int32_t num_threads) {
    return threadpool::from(std::make_shared<std_thread_pool>(num_threads));
}

} // namespace adapters
} // namespace weir

#endif // WEIR_ADAPTERS_STD_THREAD_HPP

// The threads of an Eigen::ThreadPoolInterface (Eigen::ThreadPool, TensorFlow's pools) as a weir thread pool.
// SPDX-License-Identifier: MIT OR Apache-2.0
//
//     auto threads = std::make_shared<Eigen::ThreadPool>(4);
//     weir::threadpool pool = weir::adapters::eigen_threadpool(threads);
//
// Gives weir schedule, and tells it which threads are the pool's. Handing a task over allocates nothing: what Schedule
// is given fits into a std::function.
//
// Ownership: weir shares the Eigen pool, and lets go of it after the last task, outside of the pool's threads. There is
// a form for pools that are somebody else's, by reference. Such a pool must live until weir has called release: that
// may be later than the end of the last handle, in a later call of weir.
//
// Limits: do not call Cancel() on the Eigen pool while weir uses it, since tasks that are thrown away are never run.
// Eigen's interface cannot run a queued task in a thread that waits, so a wait for a stream inside of a task of the
// pool returns FAILED_PRECONDITION.

#ifndef WEIR_ADAPTERS_EIGEN_HPP
#define WEIR_ADAPTERS_EIGEN_HPP

#define EIGEN_USE_THREADS
#include <unsupported/Eigen/CXX11/ThreadPool>

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "../threadpool.hpp"

namespace weir {
namespace adapters {

/// An Eigen pool as threadpool::from takes it.
class eigen_pool {
public:
    /// Work stealing: small tasks are welcome. Schedule never waits, so it may be called from anywhere.
    static constexpr std::uint64_t flags = WEIR_THREADPOOL_AUTO_BALANCING;

    explicit eigen_pool(std::shared_ptr<Eigen::ThreadPoolInterface> pool) noexcept : pool_(std::move(pool)) {}

    std::int32_t num_threads() const { return pool_->NumThreads(); }
    void schedule(pool_task task) { pool_->Schedule(task); }
    bool in_parallel() const { return pool_->CurrentThreadId() >= 0; }
    std::int32_t thread_index() const { return pool_->CurrentThreadId(); }

private:
    // What std::function keeps inside of itself, in libstdc++, libc++ and MSVC.
    static_assert(sizeof(pool_task) <= 2 * sizeof(void *) && std::is_trivially_copyable<pool_task>::value,
                  "a task must not make std::function allocate");
    std::shared_ptr<Eigen::ThreadPoolInterface> pool_;
};

/// A weir pool on the threads of `pool`, which it keeps alive.
inline threadpool eigen_threadpool(std::shared_ptr<Eigen::ThreadPoolInterface> pool) {
    return threadpool::from(std::make_shared<eigen_pool>(std::move(pool)));
}
/// A weir pool on the threads of `pool`, which lives longer than weir uses it: a framework's, or one that never ends.
inline threadpool eigen_threadpool(Eigen::ThreadPoolInterface &pool) {
    return eigen_threadpool(std::shared_ptr<Eigen::ThreadPoolInterface>(std::shared_ptr<void>(), &pool));
}

} // namespace adapters
} // namespace weir

#endif // WEIR_ADAPTERS_EIGEN_HPP

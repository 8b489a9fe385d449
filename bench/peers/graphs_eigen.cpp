// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Counting on Eigen's pool. A thread that waits for it cannot work for it, so all threads are the pool's and the caller
// sleeps until the last closure has said that it was the last.

#define EIGEN_USE_THREADS
#include <unsupported/Eigen/CXX11/ThreadPool>

#include <map>

#include "graphs_kahn.hpp"

namespace bench {

namespace {

Eigen::ThreadPool &pool_of(int threads) {
    static std::map<int, std::unique_ptr<Eigen::ThreadPool>> pools;
    auto &pool = pools[threads];
    if (!pool) pool = std::make_unique<Eigen::ThreadPool>(threads);
    return *pool;
}

class on_eigen : public runner {
public:
    explicit on_eigen(const job &job) : kahn_(job), pool_(pool_of(job.threads)) {}
    void run() override {
        Eigen::Barrier done(1);
        done_ = &done;
        open_.store(kahn_.roots().size(), std::memory_order_relaxed);
        for (const auto root : kahn_.roots()) schedule(root);
        done.Wait();
    }

private:
    void schedule(std::uint32_t node) {
        pool_.Schedule([this, node] {
            kahn_.follow(node, [this](std::uint32_t next) {
                open_.fetch_add(1, std::memory_order_relaxed); // this closure is still open, so it cannot be zero
                schedule(next);
            });
            if (open_.fetch_sub(1, std::memory_order_acq_rel) == 1) done_->Notify();
        });
    }

    kahn kahn_;
    Eigen::ThreadPool &pool_;
    Eigen::Barrier *done_ = nullptr;
    std::atomic<std::size_t> open_{0}; // closures that have not ended
};

} // namespace

std::unique_ptr<runner> make_eigen_kahn(const job &job) {
    return std::make_unique<on_eigen>(job);
}

} // namespace bench

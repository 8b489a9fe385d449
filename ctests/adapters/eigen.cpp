// SPDX-License-Identifier: MIT OR Apache-2.0
//
// weir on Eigen's pools: the work-stealing one, and any other class behind Eigen::ThreadPoolInterface.

#include "weir/adapters/eigen.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "exercise.h"
#include "expect.hpp"
#include "weir.hpp"

namespace {

weir_threadpool *handed_over(weir::threadpool pool) {
    EXPECT(weir_threadpool_retain(pool) == WEIR_OK);
    return pool.get();
}

// Whatever is scheduled runs in its caller, as a framework without threads would have it.
struct inline_pool final : Eigen::ThreadPoolInterface {
    std::atomic<int> scheduled{0};
    void Schedule(std::function<void()> f) override {
        ++scheduled;
        f();
    }
    int NumThreads() const override { return 2; }
    int CurrentThreadId() const override { return -1; }
};

// A wait in a thread of Eigen's, in work that weir did not hand over, is refused and does not block the thread.
void test_wait_in_a_thread() {
    const auto threads = std::make_shared<Eigen::ThreadPool>(1);
    const auto pool = weir::adapters::eigen_threadpool(threads);
    const weir::stream stream(weir::engine::cpu(pool), WEIR_STREAM_ASYNCHRONOUS);
    std::atomic<int> ran{0}, code{-1};
    threads->Schedule([&] {
        stream.enqueue([&ran] { ++ran; });
        try {
            stream.synchronize();
            code = WEIR_OK;
        } catch (const weir::error &e) {
            code = e.code();
        }
    });
    eventually([&] { return code >= 0; });
    EXPECT(code == WEIR_OK ? ran == 1 : code == WEIR_FAILED_PRECONDITION);
    stream.synchronize();
    EXPECT(ran == 1);
}

} // namespace

int main() {
    const auto before = weir::runtime_info();
    for (int n : {1, 2, 5}) {
        auto threads = std::make_shared<Eigen::ThreadPool>(n);
        exercise_pool(handed_over(weir::adapters::eigen_threadpool(threads)), 0);
        void *ctx = nullptr;
        const auto vtable = weir::threadpool::vtable_of(std::make_shared<weir::adapters::eigen_pool>(threads), &ctx);
        exercise_vtable(&vtable, ctx);
        eventually([&] {
            static_cast<void>(weir::runtime_info());
            return threads.use_count() == 1;
        });
    }
    // By reference: this one never ends.
    static Eigen::ThreadPool &forever = *new Eigen::ThreadPool(2);
    exercise_pool(handed_over(weir::adapters::eigen_threadpool(forever)), 0);
    const auto here = std::make_shared<inline_pool>();
    exercise_pool(handed_over(weir::adapters::eigen_threadpool(here)), 0);
    EXPECT(here->scheduled > 0);
    test_wait_in_a_thread();
    expect_released(before);
    return 0;
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//
// weir on the std::thread pool of weir/adapters/std_thread.hpp, and that pool by itself.

#include "weir/adapters/std_thread.hpp"

#include <ctime>
#include <vector>

#include "exercise.h"
#include "expect.hpp"
#include "weir.hpp"

namespace {

using weir::adapters::std_thread_pool;

// Takes over a weir pool's handle, as exercise_pool wants it.
weir_threadpool *handed_over(weir::threadpool pool) {
    EXPECT(weir_threadpool_retain(pool) == WEIR_OK);
    return pool.get();
}

void test_pools() {
    for (int n : {1, 2, 5}) exercise_pool(handed_over(weir::adapters::std_thread_threadpool(n)), 0);
    std_thread_pool threads(3, std::chrono::nanoseconds(0)); // asleep at once
    exercise_pool(handed_over(weir::threadpool::from_ref(threads)), 0);
    void *ctx = nullptr;
    const auto vtable = weir::threadpool::vtable_of(std::make_shared<std_thread_pool>(3), &ctx);
    exercise_vtable(&vtable, ctx);
}

// What was queued is run before the threads end, and a full ring refuses.
void test_end() {
    std::atomic<int> ran{0};
    int accepted = 0;
    {
        std_thread_pool threads(1);
        std::atomic<bool> open{false};
        const auto gate = [](void *arg, std::int32_t) {
            while (!static_cast<std::atomic<bool> *>(arg)->load()) std::this_thread::yield();
        };
        const auto count = [](void *arg, std::int32_t) { ++*static_cast<std::atomic<int> *>(arg); };
        EXPECT(threads.schedule(weir::pool_task{gate, &open}));
        for (int i = 0; i < 2000; i++) accepted += threads.schedule(weir::pool_task{count, &ran});
        EXPECT(accepted >= static_cast<int>(std_thread_pool::capacity) - 1 && accepted < 2000);
        EXPECT(!threads.in_parallel() && threads.thread_index() == -1);
        open = true;
    }
    EXPECT(ran == accepted);
}

std::int64_t cpu_ns() {
    std::timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec * std::int64_t{1000000000} + now.tv_nsec;
}

// After the time to look around is over, waiting costs nothing. The bound is loose: other things of the process run
// too.
void test_idle() {
    const std_thread_pool threads(4);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const auto before = cpu_ns();
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    EXPECT(cpu_ns() - before < 100 * 1000000);
}

} // namespace

int main() {
    const auto before = weir::runtime_info();
    test_pools();
    test_end();
    test_idle();
    expect_released(before);
    return 0;
}

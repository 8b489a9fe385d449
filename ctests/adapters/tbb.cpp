// SPDX-License-Identifier: MIT OR Apache-2.0
//
// weir on the threads of tbb::task_arena.

#include "weir/adapters/tbb.hpp"

#include <tbb/global_control.h>

#include <atomic>
#include <memory>
#include <new>
#include <utility>

#include "exercise.h"
#include "expect.hpp"
#include "weir.hpp"

namespace {

weir_threadpool *handed_over(weir::threadpool pool) {
    EXPECT(weir_threadpool_retain(pool) == WEIR_OK);
    return pool.get();
}

void test_widths() {
    tbb::task_arena four(4), one(1), workers_only(3, 0);
    const tbb::global_control threads(tbb::global_control::max_allowed_parallelism, 3);
    EXPECT(weir::adapters::tbb_threadpool(four).num_threads() == 2);
    EXPECT(weir::adapters::tbb_threadpool(one).num_threads() == 1);
    EXPECT(weir::adapters::tbb_threadpool(workers_only, 3).num_threads() == 3);
}

// Which threads work for an arena: its workers do, also inside of another arena, and a guest does not.
void test_in_parallel() {
    tbb::task_arena arena(3), other(3);
    const auto pool = weir::adapters::tbb_threadpool(arena), elsewhere = weir::adapters::tbb_threadpool(other);
    std::atomic<int> done{0};
    arena.enqueue([&] {
        EXPECT(pool.in_parallel() && !elsewhere.in_parallel());
        other.execute([&] { EXPECT(pool.in_parallel()); });
        EXPECT(pool.in_parallel() && !elsewhere.in_parallel());
        ++done;
    });
    eventually([&] { return done == 1; });
    arena.execute([&] { EXPECT(!pool.in_parallel()); });
    EXPECT(!pool.in_parallel());
    const weir::stream stream(weir::engine::cpu(pool), WEIR_STREAM_ASYNCHRONOUS);
    int ran = 0;
    arena.execute([&] { // a guest may wait
        for (int i = 0; i < 20; i++) stream.enqueue([&ran] { ++ran; });
        stream.synchronize();
    });
    EXPECT(ran == 20);
}

// The pool has a handle of its own to the arena.
void test_the_pool_outlives_the_arena() {
    auto arena = std::make_unique<tbb::task_arena>(3);
    auto pool = weir::adapters::tbb_threadpool(*arena);
    arena.reset();
    exercise_pool(handed_over(std::move(pool)), 0);
}

void test_all() {
    // TBB would start no more threads than there are processors.
    const tbb::global_control threads(tbb::global_control::max_allowed_parallelism, 5);
    const auto before = weir::runtime_info();
    for (int n : {1, 2, 5}) {
        tbb::task_arena arena(n);
        EXPECT(weir::adapters::tbb_threadpool(arena).num_threads() == (n > 1 ? n - 1 : 1));
        exercise_pool(handed_over(weir::adapters::tbb_threadpool(arena)), 0);
        void *ctx = nullptr;
        const auto vtable = weir::threadpool::vtable_of(std::make_shared<weir::adapters::tbb_pool>(arena), &ctx);
        exercise_vtable(&vtable, ctx);
        expect_released(before);
    }
    test_widths();
    test_in_parallel();
    test_the_pool_outlives_the_arena();
    expect_released(before);
}

} // namespace

int main() {
    tbb::task_scheduler_handle scheduler{tbb::attach{}};
    test_all();
    return tbb::finalize(scheduler, std::nothrow) ? 0 : 1; // TBB's threads end
}

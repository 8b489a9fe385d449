// SPDX-License-Identifier: MIT OR Apache-2.0
//
// OpenMP, TBB, Eigen and a std::thread pool in one process: a stream on each, and regions that cross from one to
// another.

#include "weir/adapters/eigen.hpp"
#include "weir/adapters/openmp.h"
#include "weir/adapters/std_thread.hpp"
#include "weir/adapters/tbb.hpp"

#include <tbb/global_control.h>

#include <memory>
#include <new>

#include "exercise.h"
#include "expect.hpp"
#include "weir.hpp"

int main() {
    tbb::task_scheduler_handle scheduler{tbb::attach{}};
    const auto before = weir::runtime_info();
    {
        const tbb::global_control threads(tbb::global_control::max_allowed_parallelism, 3);
        tbb::task_arena arena(3);
        weir_threadpool *team = nullptr;
        weir::check(weir_openmp_threadpool_create(3, &team));
        const weir::threadpool pools[] = {
            weir::threadpool(team),
            weir::adapters::tbb_threadpool(arena),
            weir::adapters::eigen_threadpool(std::make_shared<Eigen::ThreadPool>(2)),
            weir::adapters::std_thread_threadpool(2),
        };
        weir_threadpool *handles[4];
        for (int i = 0; i < 4; i++) handles[i] = pools[i];
        exercise_together(handles, 4);
        // OpenMP takes no single tasks, so its stream has a thread of weir's; the others have none.
        EXPECT(weir::runtime_info().threads_started - before.threads_started == 1);
    }
    expect_released(before);
    // An OpenMP thread that has been in a TBB region stays a user of TBB, and does not end: then this cannot succeed.
    (void)tbb::finalize(scheduler, std::nothrow);
    return 0;
}

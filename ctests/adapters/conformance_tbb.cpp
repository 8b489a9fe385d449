// SPDX-License-Identifier: MIT OR Apache-2.0
//
// A TBB arena for weir_conformance. TBB's threads end with it.

#include "weir/adapters/tbb.hpp"

#include <tbb/global_control.h>

#include <memory>
#include <new>

namespace {

struct scheduler {
    tbb::task_scheduler_handle handle{tbb::attach{}};
    ~scheduler() { tbb::finalize(handle, std::nothrow); }
};

struct owner {
    scheduler threads_end;
    tbb::global_control threads{tbb::global_control::max_allowed_parallelism, 4};
    tbb::task_arena arena{4};
    weir::adapters::tbb_pool adapter{arena};
};

} // namespace

extern "C" int weir_conformance_pool(weir_threadpool_vtable *out_vtable, void **out_ctx) {
    const auto both = std::make_shared<owner>();
    *out_vtable = weir::threadpool::vtable_of(
        std::shared_ptr<weir::adapters::tbb_pool>(both, &both->adapter), out_ctx);
    return 0;
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The std::thread pool for weir_conformance.

#include "weir/adapters/std_thread.hpp"

#include <memory>

extern "C" int weir_conformance_pool(weir_threadpool_vtable *out_vtable, void **out_ctx) {
    *out_vtable = weir::threadpool::vtable_of(std::make_shared<weir::adapters::std_thread_pool>(3), out_ctx);
    return 0;
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Eigen's pool for weir_conformance. The threads end with the adapter.

#include "weir/adapters/eigen.hpp"

#include <memory>

extern "C" int weir_conformance_pool(weir_threadpool_vtable *out_vtable, void **out_ctx) {
    const auto adapter = std::make_shared<weir::adapters::eigen_pool>(std::make_shared<Eigen::ThreadPool>(3));
    *out_vtable = weir::threadpool::vtable_of(adapter, out_ctx);
    return 0;
}

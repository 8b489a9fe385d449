// SPDX-License-Identifier: MIT OR Apache-2.0
//
// oneDNN's primitives as sides of a comparison.

#ifndef WEIR_BENCH_KERNELS_DNNL_HPP
#define WEIR_BENCH_KERNELS_DNNL_HPP

#include <memory>
#include <unordered_map>
#include <utility>

#include <oneapi/dnnl/dnnl.hpp>

#include "measure.hpp"

namespace bench {

inline const dnnl::engine &dnnl_engine() {
    static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    return engine;
}

using dnnl_arguments = std::unordered_map<int, dnnl::memory>;

inline side dnnl_side(dnnl::primitive primitive, dnnl_arguments arguments) {
    struct call {
        dnnl::stream stream{dnnl_engine()};
        dnnl::primitive primitive;
        dnnl_arguments arguments;
    };
    auto it = std::make_shared<call>();
    it->primitive = std::move(primitive);
    it->arguments = std::move(arguments);
    return [it] {
        it->primitive.execute(it->stream, it->arguments);
        it->stream.wait();
    };
}

} // namespace bench

#endif // WEIR_BENCH_KERNELS_DNNL_HPP

// Whether pools, devices and transports keep their side of the contract.
// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Not part of weir.hpp: tests include it.

#ifndef WEIR_CONFORMANCE_HPP
#define WEIR_CONFORMANCE_HPP

#include <cstdint>
#include <type_traits>
#include <utility>

#include "engine.hpp"
#include "conformance.h"

namespace weir {
namespace conformance {

namespace detail {

// report(const weir_conformance_line &) as the C function and its argument.
template <class Report>
void call_report(void *arg, const weir_conformance_line *line) noexcept {
    auto run = [&] { (*static_cast<Report *>(arg))(*line); };
    static_cast<void>(weir::detail::guarded(weir::detail::silent, run));
}

} // namespace detail

/// Tries a pool against each clause of docs/threadpool.md and reports each; how many have failed.
template <class Report>
std::int32_t examine_pool(const weir_threadpool_vtable &vtable, void *ctx, Report &&report,
                          const weir_conformance_options *options = nullptr) {
    return weir::detail::value<std::int32_t>(weir_threadpool_conformance, &vtable, ctx, options,
                                             detail::call_report<std::remove_reference_t<Report>>,
                                             static_cast<void *>(std::addressof(report)));
}

/// The same for device `index` of a kind, against docs/devices.md.
template <class Report>
std::int32_t examine_device(weir_engine_kind kind, std::uint32_t index, Report &&report,
                            const weir_conformance_options *options = nullptr) {
    return weir::detail::value<std::int32_t>(weir_device_conformance, kind, index, options,
                                             detail::call_report<std::remove_reference_t<Report>>,
                                             static_cast<void *>(std::addressof(report)));
}

/// The same for a transport between ranks, against docs/ranks.md. All ranks call it.
template <class Report>
std::int32_t examine_comm(const weir_comm_vtable &vtable, void *ctx, Report &&report,
                          const weir_conformance_options *options = nullptr) {
    return weir::detail::value<std::int32_t>(weir_comm_conformance, &vtable, ctx, options,
                                             detail::call_report<std::remove_reference_t<Report>>,
                                             static_cast<void *>(std::addressof(report)));
}

} // namespace conformance
} // namespace weir

#endif // WEIR_CONFORMANCE_HPP

// Kinds of engines by name, and devices that a program or a plug-in library brings.
// SPDX-License-Identifier: MIT OR Apache-2.0

#ifndef WEIR_DEVICE_HPP
#define WEIR_DEVICE_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "device.h"
#include "handle.hpp"

namespace weir {
namespace devices {

/// The kind with this name; throws NOT_FOUND.
inline weir_engine_kind kind(const std::string &name) {
    return detail::value<weir_engine_kind>(weir_engine_kind_from_name, name.c_str());
}

inline std::string name(weir_engine_kind kind) { return weir_engine_kind_name(kind); }

/// The kinds that somebody makes devices of.
inline std::vector<weir_engine_kind> kinds() {
    std::size_t count = 0;
    check(weir_engine_kind_list(nullptr, 0, &count));
    // Another thread may add one meanwhile.
    std::vector<weir_engine_kind> kinds(count + 8);
    check(weir_engine_kind_list(kinds.data(), kinds.size(), &count));
    kinds.resize(count);
    return kinds;
}

/// Opens a plug-in library, which registers what it brings.
inline void load(const std::string &path) { check(weir_device_load(path.c_str())); }

/// `vtable.release`, if there is one, is called with `ctx` at the end, unless this throws.
inline void add(const std::string &name, std::int32_t priority, const weir_device_vtable &vtable, void *ctx = nullptr) {
    check(weir_device_register(name.c_str(), priority, &vtable, ctx));
}

inline void replace(const std::string &name, std::int32_t priority, const weir_device_vtable &vtable,
                    void *ctx = nullptr) {
    check(weir_device_replace(name.c_str(), priority, &vtable, ctx));
}

inline void remove(const std::string &name, std::int32_t priority) {
    check(weir_device_unregister(name.c_str(), priority));
}

} // namespace devices
} // namespace weir

#endif // WEIR_DEVICE_HPP

// For tests alone: emulated devices, and a pool with a seeded order. Link with libweir_testing too.
// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Not part of weir.hpp: tests include it.

#ifndef WEIR_TESTING_HPP
#define WEIR_TESTING_HPP

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine.hpp"
#include "testing.h"
#include "threadpool.hpp"

namespace weir {
namespace testing {

/// A pool that runs tasks in an order drawn from the seed, and refuses some.
inline threadpool seeded_pool(std::uint64_t seed, std::int32_t num_threads) {
    weir_threadpool *pool = nullptr;
    check(weir_threadpool_create_seeded(seed, num_threads, &pool));
    return threadpool(pool);
}

/// Makes emulated devices known. A program that uses them calls it first.
inline void register_emulated() { check(weir_emulated_register()); }

/// How the device of an emulated engine is emulated; struct_size need not be set.
inline void set_emulation(engine_attr &attr, weir_emulation emulation) {
    emulation.struct_size = sizeof emulation;
    check(weir_engine_attr_set_emulation(attr, &emulation));
}

/// Of attributes, or of an engine's: `emulation(engine.attr())`.
template <class Attr>
weir_emulation emulation(const Attr &attr) {
    auto emulation = sized<weir_emulation>();
    check(weir_engine_attr_get_emulation(attr.get(), &emulation));
    return emulation;
}

inline weir_emulated_counters counters(const engine &of) {
    auto counters = sized<weir_emulated_counters>();
    check(weir_emulated_get_counters(of, &counters));
    return counters;
}

/// The operations' numbers, as the device came to them; the latest 16384 at most.
inline std::vector<std::uint64_t> order(const engine &of) {
    std::size_t count = 0;
    check(weir_emulated_get_order(of, nullptr, 0, &count));
    std::vector<std::uint64_t> order(count);
    check(weir_emulated_get_order(of, order.data(), order.size(), &count));
    return order;
}

/// The reports of the checker.
inline std::vector<weir_emulated_race> races(const engine &of) {
    std::size_t count = 0;
    std::vector<weir_emulated_race> races(256, sized<weir_emulated_race>());
    check(weir_emulated_get_races(of, races.data(), races.size(), &count));
    races.resize(count);
    return races;
}

inline void clear_races(const engine &of) { check(weir_emulated_clear_races(of)); }

} // namespace testing
} // namespace weir

#endif // WEIR_TESTING_HPP

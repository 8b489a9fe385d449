// SPDX-License-Identifier: MIT OR Apache-2.0
//
// What the C++ tests check with, as check.h does for the C tests.

#ifndef WEIR_CTESTS_EXPECT_HPP
#define WEIR_CTESTS_EXPECT_HPP

#include "weir.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <weir/inspect.h>

[[noreturn]] inline void expect_failed(const char *file, int line, const char *what, const char *how) {
    std::fprintf(stderr, "%s:%d: %s %s\n", file, line, what, how);
    std::fflush(nullptr);
    std::_Exit(1);
}

#define EXPECT(...)                                                                                                    \
    do {                                                                                                               \
        if (!(__VA_ARGS__)) expect_failed(__FILE__, __LINE__, #__VA_ARGS__, "is false");                               \
    } while (0)

/// An expression that must throw weir::error with this code and a text that contains `part`.
#define EXPECT_THROWS(expression, expected_code, part)                                                                 \
    do {                                                                                                               \
        bool thrown = false;                                                                                           \
        try {                                                                                                          \
            static_cast<void>(expression);                                                                             \
        } catch (const weir::error &e) {                                                                               \
            thrown = true;                                                                                             \
            if (e.code() != (expected_code)) {                                                                         \
                expect_failed(__FILE__, __LINE__, #expression, weir_status_name(e.code()));                            \
            }                                                                                                          \
            if (std::strstr(e.what(), part) == nullptr) expect_failed(__FILE__, __LINE__, #expression, e.what());      \
        }                                                                                                              \
        if (!thrown) expect_failed(__FILE__, __LINE__, #expression, "throws no weir::error");                          \
    } while (0)

/// Waits for what other threads are about to make true.
template <class Condition>
void eventually(Condition condition) {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!condition()) {
        if (std::chrono::steady_clock::now() > give_up) expect_failed(__FILE__, __LINE__, "this", "never came true");
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
}

/// No kind of object has more than it had in `before`, in which some may have been about to go.
inline void expect_released(const weir_runtime_info &before) {
    eventually([&] {
        const auto now = weir::runtime_info();
        return now.threadpools <= before.threadpools && now.engines <= before.engines && now.runs <= before.runs &&
               now.streams <= before.streams && now.events <= before.events && now.tensors <= before.tensors &&
               now.kernels <= before.kernels && now.graphs <= before.graphs && now.programs <= before.programs &&
               now.attrs <= before.attrs && now.threads_alive <= before.threads_alive;
    });
}

#endif // WEIR_CTESTS_EXPECT_HPP

// C++ callables as C callbacks: a function, its context, and a way to destroy it. No exception leaves one.
// SPDX-License-Identifier: MIT OR Apache-2.0

#ifndef WEIR_CALLBACK_HPP
#define WEIR_CALLBACK_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "handle.hpp"

namespace weir {

namespace detail {

// f(), or `otherwise` if it throws.
template <class T, class F>
T or_else(T otherwise, F f) noexcept {
#if defined(__cpp_exceptions)
    try {
        return f();
    } catch (...) {
        return otherwise;
    }
#else
    static_cast<void>(otherwise);
    return f();
#endif
}

// f(args...), which returns nothing or a weir_status.
template <class F, class... Args>
weir_status called(F &f, Args... args) {
    if constexpr (std::is_void_v<std::invoke_result_t<F &, Args...>>) {
        f(args...);
        return WEIR_OK;
    } else {
        return f(args...);
    }
}

#if defined(__cpp_exceptions)
// The status for the exception that is being handled; `say` receives it with its text.
template <class Say>
weir_status caught(Say say) noexcept {
    const auto report = [&](weir_status code, const char *what) {
        code = code == WEIR_OK ? static_cast<weir_status>(WEIR_UNKNOWN) : code;
        say(code, what);
        return code;
    };
    try {
        throw;
    } catch (const error &e) {
        return report(e.code(), e.what());
    } catch (const std::bad_alloc &e) {
        return report(WEIR_RESOURCE_EXHAUSTED, e.what());
    } catch (const std::exception &e) {
        return report(WEIR_UNKNOWN, e.what());
    } catch (...) {
        return report(WEIR_UNKNOWN, "an exception that is no std::exception");
    }
}

// As `called`. An exception becomes a status.
template <class Say, class F, class... Args>
weir_status guarded(Say say, F &f, Args... args) noexcept {
    try {
        return called(f, args...);
    } catch (...) {
        return caught(say);
    }
}
#else
template <class Say, class F, class... Args>
weir_status guarded(Say, F &f, Args... args) noexcept {
    return called(f, args...);
}
#endif

inline void silent(weir_status, const char *) noexcept {}

// ask(text), and where that is refused the text with a '?' for each byte beyond ASCII: what() is in any encoding.
template <class Ask>
bool tell(const char *text, Ask ask) noexcept {
    if (ask(text) == WEIR_OK) return true;
    if (!text) return false;
    char ascii[1024];
    std::size_t length = 0;
    for (; text[length] != '\0' && length + 1 < sizeof(ascii); length++) {
        ascii[length] = static_cast<unsigned char>(text[length]) < 0x80 ? text[length] : '?';
    }
    ascii[length] = '\0';
    return ask(ascii) == WEIR_OK;
}

// A callable on the heap as a weir_host_fn with its destroy function.
template <class F>
struct host_task {
    F f;
    static weir_status call(void *self) noexcept { return guarded(silent, static_cast<host_task *>(self)->f); }
    static void destroy(void *self) noexcept { delete static_cast<host_task *>(self); }
};

// As host_task, for a stream. A call that fails has either run and destroyed the task or refused it: the caller's own
// share of the task tells which.
template <class F>
struct queued_task {
    F f;
    std::atomic<int> owners{2};
    static weir_status call(void *self) noexcept { return guarded(silent, static_cast<queued_task *>(self)->f); }
    static void destroy(void *self) noexcept { static_cast<queued_task *>(self)->give_up(1); }
    void give_up(int count) noexcept {
        if (owners.fetch_sub(count, std::memory_order_acq_rel) == count) delete this;
    }
};

// A callable on the heap as the function of a weir_notice: f(status) or f(status, run). What it throws is lost.
template <class F>
struct listener {
    F f;
    static void call(void *self, weir_status status, weir_run *run) noexcept {
        auto &f = static_cast<listener *>(self)->f;
        if constexpr (std::is_invocable_v<F &, weir_status, weir_run *>) {
            static_cast<void>(guarded(silent, f, status, run));
        } else {
            static_cast<void>(guarded(silent, f, status));
        }
    }
    static void release(void *self) noexcept { delete static_cast<listener *>(self); }
};

// A callable of the caller's as the function of weir_run_options.progress. What it throws is lost.
template <class F>
struct follower {
    static void call(void *self, const weir_run_progress *progress) noexcept {
        const auto tell = [&] { (*static_cast<F *>(self))(*progress); };
        static_cast<void>(guarded(silent, tell));
    }
};

// Gives such a callable to `ask`, which takes a notice.
template <class F, class Ask>
void notify(F &&f, Ask ask) {
    using kept_listener = listener<std::decay_t<F>>;
    auto kept = std::unique_ptr<kept_listener>(new kept_listener{std::forward<F>(f)});
    auto notice = sized<weir_notice>();
    notice.notify = kept_listener::call;
    notice.ctx = kept.get();
    notice.release = kept_listener::release;
    if (check(ask(&notice))) static_cast<void>(kept.release());
}

template <class Ask>
void notify_fd(int event_fd, Ask ask) {
    auto notice = sized<weir_notice>();
    notice.event_fd = event_fd;
    check(ask(&notice));
}

// A range function with the first exception that a piece threw, to be thrown again where the region was started.
template <class F>
struct region {
    F &f;
#if defined(__cpp_exceptions)
    std::atomic_flag thrown = ATOMIC_FLAG_INIT;
    std::exception_ptr first = nullptr;
    void keep() {
        if (!thrown.test_and_set()) first = std::current_exception();
    }
    void throw_again() {
        if (first) std::rethrow_exception(first);
    }
#else
    void keep() {}
    void throw_again() {}
#endif
    static weir_status call(void *arg, std::int64_t begin, std::int64_t end, std::int32_t slot) noexcept {
        auto &self = *static_cast<region *>(arg);
        return guarded([&self](weir_status, const char *) { self.keep(); }, self.f, begin, end, slot);
    }
    static weir_status call_box(void *arg, const std::int64_t *begin, const std::int64_t *end,
                                std::int32_t slot) noexcept {
        auto &self = *static_cast<region *>(arg);
        return guarded([&self](weir_status, const char *) { self.keep(); }, self.f, begin, end, slot);
    }
    void finish(weir_status status) {
        throw_again();
        check(status);
    }
};

} // namespace detail

} // namespace weir

#endif // WEIR_CALLBACK_HPP

// Handles that release themselves, and statuses that throw.
// SPDX-License-Identifier: MIT OR Apache-2.0

#ifndef WEIR_HANDLE_HPP
#define WEIR_HANDLE_HPP

#if __cplusplus < 201703L
#error "weir.hpp is for C++17 and later; C++11 and C++14 include weir.h, which has the same functions"
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../weir.h"
#include "domain.h"
#include "memory.h"
#include "task_group.h"
#include "ops.h"
#include "resource.h"
#include "comm.h"
#include "trace.h"

namespace weir {

/// A weir call that failed: its code, and as what() the text that names the call, the argument and the cause.
class error : public std::runtime_error {
public:
    /// A failure with a text of the caller's.
    error(weir_status code, const std::string &text) : std::runtime_error(text), code_(code) {}
    /// The status that the call returned.
    weir_status code() const noexcept { return code_; }

private:
    weir_status code_;
};

namespace detail {

#if !defined(__cpp_exceptions)
inline thread_local std::optional<error> kept_error;
#endif

// A failure: an exception, or in a program without them the thread's first one that nobody has taken.
inline void fail(weir_status status, const std::string &text) {
#if defined(__cpp_exceptions)
    throw error(status, text);
#else
    if (!kept_error) kept_error.emplace(status, text);
#endif
}

} // namespace detail

/// True if `status` is WEIR_OK. Otherwise throws weir::error with the calling thread's last error text. In a program
/// that is compiled without exceptions it is false then, and `take_error` has the error.
inline bool check(weir_status status) {
    if (status != WEIR_OK) detail::fail(status, weir_last_error_message());
    return status == WEIR_OK;
}

/// For programs without exceptions: the first failure of this thread's calls since it was taken last. A call
/// that fails returns something empty: a handle, a list, 0. The outputs of a node that was not added are 0, too.
inline std::optional<error> take_error() {
#if defined(__cpp_exceptions)
    return std::nullopt;
#else
    return std::exchange(detail::kept_error, std::nullopt);
#endif
}

/// "INVALID_ARGUMENT", and so on.
inline const char *status_name(weir_status status) noexcept { return weir_status_name(status); }
/// The library's version: major << 16 | minor << 8 | patch.
inline std::uint32_t version() noexcept { return weir_version(); }
inline const char *version_string() noexcept { return weir_version_string(); }
inline const char *dtype_name(weir_dtype dtype) noexcept { return weir_dtype_name(dtype); }

/// A zeroed C struct whose struct_size is set: `auto desc = weir::sized<weir_host_kernel_desc>();`
template <class T>
T sized() noexcept {
    T value{};
    value.struct_size = sizeof(T);
    return value;
}

namespace detail {

inline weir_status retain(weir_threadpool *p) { return weir_threadpool_retain(p); }
inline weir_status retain(weir_task_group *p) { return weir_task_group_retain(p); }
inline weir_status retain(weir_allocator *p) { return weir_allocator_retain(p); }
inline weir_status retain(weir_domain *p) { return weir_domain_retain(p); }
inline weir_status retain(weir_engine *p) { return weir_engine_retain(p); }
inline weir_status retain(weir_stream *p) { return weir_stream_retain(p); }
inline weir_status retain(weir_event *p) { return weir_event_retain(p); }
inline weir_status retain(weir_buffer *p) { return weir_buffer_retain(p); }
inline weir_status retain(weir_tensor *p) { return weir_tensor_retain(p); }
inline weir_status retain(weir_kernel *p) { return weir_kernel_retain(p); }
inline weir_status retain(weir_call *p) { return weir_call_retain(p); }
inline weir_status retain(weir_packed_weights *p) { return weir_packed_weights_retain(p); }
inline weir_status retain(weir_resource *p) { return weir_resource_retain(p); }
inline weir_status retain(weir_program *p) { return weir_program_retain(p); }
inline weir_status retain(weir_run *p) { return weir_run_retain(p); }
inline weir_status retain(weir_trace *p) { return weir_trace_retain(p); }
inline weir_status retain(weir_comm *p) { return weir_comm_retain(p); }

inline void drop(weir_threadpool *p) noexcept { weir_threadpool_release(p); }
inline void drop(weir_task_group *p) noexcept { weir_task_group_release(p); }
inline void drop(weir_allocator *p) noexcept { weir_allocator_release(p); }
inline void drop(weir_domain *p) noexcept { weir_domain_release(p); }
inline void drop(weir_engine *p) noexcept { weir_engine_release(p); }
inline void drop(weir_stream *p) noexcept { weir_stream_release(p); }
inline void drop(weir_event *p) noexcept { weir_event_release(p); }
inline void drop(weir_buffer *p) noexcept { weir_buffer_release(p); }
inline void drop(weir_tensor *p) noexcept { weir_tensor_release(p); }
inline void drop(weir_kernel *p) noexcept { weir_kernel_release(p); }
inline void drop(weir_call *p) noexcept { weir_call_release(p); }
inline void drop(weir_packed_weights *p) noexcept { weir_packed_weights_release(p); }
inline void drop(weir_resource *p) noexcept { weir_resource_release(p); }
inline void drop(weir_program *p) noexcept { weir_program_release(p); }
inline void drop(weir_run *p) noexcept { weir_run_release(p); }
inline void drop(weir_trace *p) noexcept { weir_trace_release(p); }
inline void drop(weir_comm *p) noexcept { weir_comm_release(p); }
inline void drop(weir_engine_attr *p) noexcept { weir_engine_attr_destroy(p); }
inline void drop(weir_stream_attr *p) noexcept { weir_stream_attr_destroy(p); }
inline void drop(weir_graph *p) noexcept { weir_graph_destroy(p); }

// Reads a text through the (buffer, capacity, out_length) protocol: text(weir_engine_get_name, engine).
template <class Call, class... Args>
std::string text(Call call, Args... args) {
    std::string buffer(256, '\0');
    for (;;) {
        std::size_t length = 0;
        const weir_status status = call(args..., buffer.data(), buffer.size(), &length);
        if (status != WEIR_OUT_OF_RANGE || length < buffer.size()) {
            check(status);
            buffer.resize(length);
            return buffer;
        }
        buffer.resize(length + 1);
    }
}

// Reads one plain output: value<int32_t>(weir_event_query, event).
template <class T, class Call, class... Args>
T value(Call call, Args... args) {
    T out{};
    check(call(args..., &out));
    return out;
}

} // namespace detail

/// Bytes of an element.
inline std::size_t dtype_size(weir_dtype dtype) { return detail::value<std::size_t>(weir_dtype_size, dtype); }

/// A failure, with the names of the nodes that were not begun because of it.
struct failure : weir_failure {
    /// In the order of the program.
    std::vector<std::string> nodes_not_run;
    /// As what could be thrown; empty if there is none.
    std::optional<error> as_error() const {
        if (code == WEIR_OK) return std::nullopt;
        return error(code, message);
    }
};

namespace detail {

// Reads a failure: failure_of(weir_run_get_failure, run).
template <class Call, class... Args>
failure failure_of(Call call, Args... args) {
    failure found{};
    found.struct_size = sizeof(weir_failure);
    check(call(args..., &found));
    std::vector<char> names(found.not_run_bytes);
    if (names.empty()) return found;
    found.not_run = names.data();
    found.not_run_capacity = names.size();
    check(call(args..., &found));
    found.not_run = nullptr;
    found.not_run_capacity = 0;
    const auto filled = std::min(names.size(), found.not_run_bytes);
    for (std::size_t at = 0; at < filled; at += found.nodes_not_run.back().size() + 1) {
        found.nodes_not_run.emplace_back(names.data() + at);
    }
    return found;
}

} // namespace detail

/// The failure of the calling thread's last failed call.
inline failure thread_failure() { return detail::failure_of(weir_thread_get_failure); }

/// What all handles are: a pointer to a C object, given up at the end. Attributes, options and graphs are this and no
/// more, so they only move.
template <class Raw>
class owned {
public:
    owned() noexcept = default;
    /// Takes over what the caller owns, as C calls hand it out; nullptr makes an empty handle.
    explicit owned(Raw *raw) noexcept : raw_(raw) {}
    /// Takes over the object; `other` is empty then.
    owned(owned &&other) noexcept : raw_(other.detach()) {}
    /// Gives up its own object for that of `other`, which is empty then.
    owned &operator=(owned &&other) noexcept {
        owned(std::move(other)).swap(*this);
        return *this;
    }
    ~owned() { detail::drop(raw_); }

    /// The object as C sees it; the handle keeps it.
    Raw *get() const noexcept { return raw_; }
    /// As get(), for calls of the C interface.
    operator Raw *() const noexcept { return raw_; }
    /// Leaves the handle empty; the caller owns the object now.
    Raw *detach() noexcept { return std::exchange(raw_, nullptr); }
    /// Exchanges the objects of the two handles.
    void swap(owned &other) noexcept { std::swap(raw_, other.raw_); }

protected:
    /// Where a creating call puts its result.
    Raw **out() noexcept { return &raw_; }

private:
    Raw *raw_ = nullptr;
};

/// A handle of a shared object: a copy takes one more reference.
template <class Raw>
class shared : public owned<Raw> {
public:
    using owned<Raw>::owned;
    shared() noexcept = default;
    /// Takes over the reference.
    shared(shared &&) noexcept = default;
    /// Takes over the reference, and gives up its own.
    shared &operator=(shared &&) noexcept = default;
    /// Takes one more reference; an empty handle stays empty.
    shared(const shared &other) : owned<Raw>(other.get()) {
        // A reference that could not be had is not this handle's to give up.
        if (!other) return;
        const weir_status status = detail::retain(other.get());
        if (status != WEIR_OK) this->detach();
        check(status);
    }
    /// Takes one more reference, and gives up its own.
    shared &operator=(const shared &other) {
        shared(other).swap(*this);
        return *this;
    }
};

/// A handle with a reference of its own to what C lends out: `auto pool = weir::keep<weir::threadpool>(borrowed);`
template <class Handle, class Raw>
Handle keep(Raw *borrowed) {
    return !borrowed || check(detail::retain(borrowed)) ? Handle(borrowed) : Handle();
}

namespace detail {

// What a getter lends out, kept: lent<engine>(weir_stream_get_engine, stream).
template <class Handle, class Object, class Raw>
Handle lent(weir_status (*getter)(const Object *, Raw **), const Object *object) {
    Raw *borrowed = nullptr;
    check(getter(object, &borrowed));
    return keep<Handle>(borrowed);
}

} // namespace detail

/// An array argument: `{a, b, c}`, or a vector of C pointers or values. It refers to what it was made from, so it is
/// for parameters only.
template <class T>
class list {
public:
    /// Of `size` items at `data`.
    list(const T *data, std::size_t size) noexcept : data_(data), size_(size) {}
    /// Of items in braces, which live until the call returns.
    list(std::initializer_list<T> items) noexcept : list(items.begin(), items.size()) {}
    /// Of the items of a vector, which must outlive it.
    list(const std::vector<T> &items) noexcept : list(items.data(), items.size()) {}
    /// The first item.
    const T *data() const noexcept { return data_; }
    /// How many there are.
    std::size_t size() const noexcept { return size_; }

private:
    const T *data_;
    std::size_t size_;
};

} // namespace weir

#endif // WEIR_HANDLE_HPP

// Traces: what ran where and when.
// SPDX-License-Identifier: MIT OR Apache-2.0

#ifndef WEIR_TRACE_HPP
#define WEIR_TRACE_HPP

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "callback.hpp"
#include "handle.hpp"
#include "threadpool.hpp"
#include "trace.h"

namespace weir {

/// Options of a trace: the members of weir_trace_options, with setters that chain. The objects must be valid until the
/// trace has started.
struct trace_options : weir_trace_options {
    trace_options() noexcept : weir_trace_options{} { struct_size = sizeof(weir_trace_options); }
    trace_options &set_flags(std::uint64_t value) noexcept { return flags = value, *this; }
    /** Only what is of this domain. */
    trace_options &of_domain(weir_domain *value) noexcept { return domain = value, *this; }
    /** Only what is of this engine. */
    trace_options &of_engine(weir_engine *value) noexcept { return engine = value, *this; }
    /** Only what is of this program. */
    trace_options &of_program(weir_program *value) noexcept { return program = value, *this; }
    trace_options &set_records_per_thread(std::size_t value) noexcept { return records_per_thread = value, *this; }
    trace_options &set_threads(std::uint32_t value) noexcept { return threads = value, *this; }
};

namespace detail {

// Passes the pieces of a saved trace to f(data, size).
template <class F>
weir_status write_trace(void *f, const void *data, std::size_t size) noexcept {
    return guarded(silent, *static_cast<F *>(f), data, size);
}

} // namespace detail

/// A trace, from its start on:
///
///     weir::trace trace(weir::trace_options{});
///     program.run(inputs, outputs);
///     trace.save("run.perfetto", WEIR_TRACE_PERFETTO);
class trace : public shared<weir_trace> {
public:
    using shared::shared;
    trace() noexcept = default;
    /// Begins to record.
    explicit trace(const trace_options &options) { check(weir_trace_start(&options, out())); }
    /// As above where the options are in braces; {} stands for the default ones, not for an empty handle.
    explicit trace(std::initializer_list<trace_options> options)
        : trace(options.size() > 0 ? *options.begin() : trace_options()) {}
    /// Ends the recording; what was recorded can still be saved.
    void stop() const { check(weir_trace_stop(get())); }
    /// Into a file, which is there whole or not at all.
    void save(const std::string &path, weir_trace_format format) const {
        check(weir_trace_save(get(), path.c_str(), format));
    }
    /// To f(const void *data, std::size_t size), piece by piece; it returns nothing, or a weir_status.
    template <class F>
    void save_to(weir_trace_format format, F &&f) const {
        using function = std::remove_reference_t<F>;
        check(weir_trace_save_to(get(), format, detail::write_trace<function>, &f));
    }
    /// The bytes of a file.
    std::string bytes(weir_trace_format format) const {
        std::string all;
        save_to(format, [&](const void *data, std::size_t size) { all.append(static_cast<const char *>(data), size); });
        return all;
    }
    weir_trace_info info() const {
        auto info = sized<weir_trace_info>();
        check(weir_trace_get_info(get(), &info));
        return info;
    }
    weir_trace_thread thread(std::size_t index) const {
        auto thread = sized<weir_trace_thread>();
        check(weir_trace_get_thread(get(), index, &thread));
        return thread;
    }
};

/// A name for marks and spans of the program's own. Make it once, and keep it.
class trace_name {
public:
    explicit trace_name(const std::string &name) { check(weir_trace_intern(name.c_str(), &number_)); }
    /** The number of the name, as the functions of C take it. */
    std::uint32_t number() const noexcept { return number_; }
    /// Marks this moment.
    void mark(std::uint64_t value = 0) const { check(weir_trace_mark(number_, value)); }

private:
    // Of no name, so that one that could not be made stands for no other.
    std::uint32_t number_ = UINT32_MAX;
};

/// A span of this thread, from its making to its end: `weir::trace_span span(name);`
class trace_span {
public:
    explicit trace_span(const trace_name &name) : has_begun_(check(weir_trace_span_begin(name.number()))) {}
    trace_span(const trace_span &) = delete;
    trace_span &operator=(const trace_span &) = delete;
    ~trace_span() {
        if (has_begun_) weir_trace_span_end();
    }

private:
    bool has_begun_;
};

namespace detail {

template <class T>
using run_begin_of = decltype(std::declval<T &>().run_begin(std::declval<const weir_trace_run &>()));
template <class T>
using run_end_of = decltype(std::declval<T &>().run_end(std::declval<const weir_trace_run &>(), weir_status{}));
template <class T>
using stay_begin_of = decltype(std::declval<T &>().stay_begin(std::declval<const weir_trace_run &>()));
template <class T>
using stay_end_of = decltype(std::declval<T &>().stay_end(std::declval<const weir_trace_run &>()));
template <class T>
using node_begin_of = decltype(std::declval<T &>().node_begin(std::declval<const weir_trace_run &>(),
                                                              std::declval<const weir_trace_node &>()));
template <class T>
using node_end_of = decltype(std::declval<T &>().node_end(std::declval<const weir_trace_run &>(),
                                                          std::declval<const weir_trace_node &>()));
template <class T>
using region_begin_of = decltype(std::declval<T &>().region_begin(std::declval<const weir_trace_region &>()));
template <class T>
using region_end_of = decltype(std::declval<T &>().region_end(std::declval<const weir_trace_region &>()));

// The hooks of a tracer of class T. The context is a std::shared_ptr<T> on the heap.
template <class T>
struct tracer_hooks {
    static T &tracer(void *ctx) noexcept { return **static_cast<std::shared_ptr<T> *>(ctx); }
    static void run_begin(void *ctx, const weir_trace_run *run) noexcept { tracer(ctx).run_begin(*run); }
    static void run_end(void *ctx, const weir_trace_run *run, weir_status status) noexcept {
        tracer(ctx).run_end(*run, status);
    }
    static void stay_begin(void *ctx, const weir_trace_run *run) noexcept { tracer(ctx).stay_begin(*run); }
    static void stay_end(void *ctx, const weir_trace_run *run) noexcept { tracer(ctx).stay_end(*run); }
    static void node_begin(void *ctx, const weir_trace_run *run, const weir_trace_node *node) noexcept {
        tracer(ctx).node_begin(*run, *node);
    }
    static void node_end(void *ctx, const weir_trace_run *run, const weir_trace_node *node) noexcept {
        tracer(ctx).node_end(*run, *node);
    }
    static void region_begin(void *ctx, const weir_trace_region *region) noexcept { tracer(ctx).region_begin(*region); }
    static void region_end(void *ctx, const weir_trace_region *region) noexcept { tracer(ctx).region_end(*region); }
    static void release(void *ctx) noexcept { delete static_cast<std::shared_ptr<T> *>(ctx); }

    static weir_trace_hooks make() noexcept {
        auto hooks = sized<weir_trace_hooks>();
        if constexpr (has<run_begin_of, T>) hooks.run_begin = run_begin;
        if constexpr (has<run_end_of, T>) hooks.run_end = run_end;
        if constexpr (has<stay_begin_of, T>) hooks.stay_begin = stay_begin;
        if constexpr (has<stay_end_of, T>) hooks.stay_end = stay_end;
        if constexpr (has<node_begin_of, T>) hooks.node_begin = node_begin;
        if constexpr (has<node_end_of, T>) hooks.node_end = node_end;
        if constexpr (has<region_begin_of, T>) hooks.region_begin = region_begin;
        if constexpr (has<region_end_of, T>) hooks.region_end = region_end;
        hooks.release = release;
        return hooks;
    }
};

} // namespace detail

/// From here on a tracer of yours is told of runs while they are made, by those of these functions that its class has:
///
///     void run_begin(const weir_trace_run &), void run_end(const weir_trace_run &, weir_status)
///     void stay_begin(const weir_trace_run &), void stay_end(const weir_trace_run &)
///     void node_begin(const weir_trace_run &, const weir_trace_node &), and node_end
///     void region_begin(const weir_trace_region &), and region_end
///
/// They are called from any thread, several at a time. A hook has no status to return, so one that throws ends the
/// program (std::terminate). The tracer lives until nothing calls it any more.
template <class T>
void set_trace_hooks(std::shared_ptr<T> tracer) {
    const auto hooks = detail::tracer_hooks<T>::make();
    auto kept = std::make_unique<std::shared_ptr<T>>(std::move(tracer));
    if (check(weir_trace_set_hooks(&hooks, kept.get()))) static_cast<void>(kept.release());
}

/// Takes the tracer away. Runs that are under way still tell it.
inline void clear_trace_hooks() { check(weir_trace_set_hooks(nullptr, nullptr)); }

/// From here on these tools are told of runs: an OR of weir_trace_markers, 0 for none.
inline void use_trace_markers(std::uint32_t kinds) { check(weir_trace_use_markers(kinds)); }

} // namespace weir

#endif // WEIR_TRACE_HPP

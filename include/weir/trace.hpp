// Traces: what ran where and when.
// SPDX-License-Identifier: MIT OR Apache-2.0

#ifndef WEIR_TRACE_HPP
#define WEIR_TRACE_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include "callback.hpp"
#include "handle.hpp"
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
///     weir::trace trace({});
///     program.run(inputs, outputs);
///     trace.save("run.perfetto", WEIR_TRACE_PERFETTO);
class trace : public shared<weir_trace> {
public:
    using shared::shared;
    trace() noexcept = default;
    /// Begins to record.
    explicit trace(const trace_options &options) { check(weir_trace_start(&options, out())); }
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
    std::uint32_t number_ = 0;
};

/// A span of this thread, from its making to its end: `weir::trace_span span(name);`
class trace_span {
public:
    explicit trace_span(const trace_name &name) { check(weir_trace_span_begin(name.number())); }
    trace_span(const trace_span &) = delete;
    trace_span &operator=(const trace_span &) = delete;
    ~trace_span() { weir_trace_span_end(); }
};

} // namespace weir

#endif // WEIR_TRACE_HPP

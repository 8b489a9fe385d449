// Engines, streams, events, and the wait for everything.
// SPDX-License-Identifier: MIT OR Apache-2.0

#ifndef WEIR_ENGINE_HPP
#define WEIR_ENGINE_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "memory.h"
#include "inspect.h"
#include "device.h"
#include "cuda.h"
#include "threadpool.hpp"

namespace weir {

// ---- engines, streams, events ----

class engine;
class tensor;
class kernel;

/// Functions of yours that engines take their memory from.
class allocator : public shared<weir_allocator> {
public:
    using shared::shared;
    allocator() noexcept = default;
    explicit allocator(const weir_allocator_vtable &vtable, void *ctx) {
        check(weir_allocator_create(&vtable, ctx, out()));
    }
    /// `source` has `void *allocate(size_t bytes, size_t alignment)` and `void deallocate(void *, size_t bytes, size_t
    /// alignment)`, which any thread may call; it lives until everything has gone back to it. A
    /// std::pmr::memory_resource is such a source. An exception out of allocate means that there is no more memory; one
    /// out of deallocate is lost.
    template <class Source>
    static allocator of(std::shared_ptr<Source> source, std::size_t alignment = 0) {
        auto vtable = sized<weir_allocator_vtable>();
        vtable.alignment = alignment;
        vtable.allocate = [](void *ctx, std::size_t bytes, std::size_t aligned) -> void * {
            return detail::or_else(static_cast<void *>(nullptr), [&]() -> void * {
                return (*static_cast<std::shared_ptr<Source> *>(ctx))->allocate(bytes, aligned);
            });
        };
        vtable.deallocate = [](void *ctx, void *data, std::size_t bytes, std::size_t aligned) {
            static_cast<void>(detail::or_else(0, [&] {
                return (*static_cast<std::shared_ptr<Source> *>(ctx))->deallocate(data, bytes, aligned), 0;
            }));
        };
        vtable.release = [](void *ctx) { delete static_cast<std::shared_ptr<Source> *>(ctx); };
        auto kept = std::make_unique<std::shared_ptr<Source>>(std::move(source));
        allocator made(vtable, kept.get());
        if (made.get() != nullptr) static_cast<void>(kept.release());
        return made;
    }
};

/// What one user of the library waits for and is told of, beside other users in the process. An empty one is the
/// default domain.
class domain : public shared<weir_domain> {
public:
    using shared::shared;
    domain() noexcept = default;
    explicit domain(const std::string &name) { check(weir_domain_create(name.c_str(), out())); }
    /// No other domain alive has this name.
    std::string name() const { return detail::text(weir_domain_get_name, get()); }
    /// Waits for everything that was queued before this call on streams of the domain's engines.
    void synchronize(std::uint64_t timeout_ns = WEIR_TIMEOUT_INFINITE) const {
        check(weir_sync_domain(get(), timeout_ns, nullptr, 0, nullptr));
    }
};

/// The getters of engine_attr and engine_attr_view.
template <class Self>
class engine_settings {
public:
    weir_engine_kind kind() const { return detail::value<weir_engine_kind>(weir_engine_attr_get_kind, raw()); }
    weir::threadpool threadpool() const {
        return detail::lent<weir::threadpool>(weir_engine_attr_get_threadpool, raw());
    }
    weir::domain domain() const { return detail::lent<weir::domain>(weir_engine_attr_get_domain, raw()); }
    weir::allocator allocator() const { return detail::lent<weir::allocator>(weir_engine_attr_get_allocator, raw()); }
    std::string name() const { return detail::text(weir_engine_attr_get_name, raw()); }
    weir_thread_mode thread_mode() const {
        return detail::value<weir_thread_mode>(weir_engine_attr_get_thread_mode, raw());
    }
    std::uint32_t thread_count() const {
        return detail::value<std::uint32_t>(weir_engine_attr_get_thread_count, raw());
    }
    std::uint32_t max_streams() const { return detail::value<std::uint32_t>(weir_engine_attr_get_max_streams, raw()); }
    std::uint64_t memory_limit() const {
        return detail::value<std::uint64_t>(weir_engine_attr_get_memory_limit, raw());
    }
    std::uint64_t pinned_limit() const {
        return detail::value<std::uint64_t>(weir_engine_attr_get_pinned_limit, raw());
    }
    weir_memory_mode memory_mode() const {
        return detail::value<weir_memory_mode>(weir_engine_attr_get_memory_mode, raw());
    }
    weir_wait_policy wait_policy() const {
        std::uint64_t ignored = 0;
        weir_wait_policy policy{};
        check(weir_engine_attr_get_wait_policy(raw(), &policy, &ignored));
        return policy;
    }
    /// How long a wait polls first, 0 = as suits the device.
    std::uint64_t wait_spin_ns() const {
        weir_wait_policy ignored{};
        std::uint64_t spin_ns = 0;
        check(weir_engine_attr_get_wait_policy(raw(), &ignored, &spin_ns));
        return spin_ns;
    }
    /// The bytes that set_device_settings was given.
    std::vector<unsigned char> device_settings() const {
        std::size_t bytes = 0;
        check(weir_engine_attr_get_device_settings(raw(), nullptr, 0, &bytes));
        std::vector<unsigned char> settings(bytes);
        if (bytes > 0) check(weir_engine_attr_get_device_settings(raw(), settings.data(), bytes, &bytes));
        return settings;
    }

private:
    const weir_engine_attr *raw() const { return static_cast<const Self &>(*this).get(); }
};

/// The getters of stream_attr and stream_attr_view.
template <class Self>
class stream_settings {
public:
    weir_engine_kind kind() const { return detail::value<weir_engine_kind>(weir_stream_attr_get_kind, raw()); }
    weir::threadpool threadpool() const {
        return detail::lent<weir::threadpool>(weir_stream_attr_get_threadpool, raw());
    }
    bool asynchronous() const { return detail::value<std::int32_t>(weir_stream_attr_get_asynchronous, raw()) != 0; }
    std::uint64_t spin_ns() const { return detail::value<std::uint64_t>(weir_stream_attr_get_spin_ns, raw()); }
    std::int32_t priority() const { return detail::value<std::int32_t>(weir_stream_attr_get_priority, raw()); }
    std::string name() const { return detail::text(weir_stream_attr_get_name, raw()); }

private:
    const weir_stream_attr *raw() const { return static_cast<const Self &>(*this).get(); }
};

/// The settings that an engine was made with; they live as long as the engine.
class engine_attr_view : public engine_settings<engine_attr_view> {
public:
    /// A view of what weir_engine_get_attr lends.
    explicit engine_attr_view(const weir_engine_attr *raw) noexcept : raw_(raw) {}
    /// The settings as C sees them.
    const weir_engine_attr *get() const noexcept { return raw_; }

private:
    const weir_engine_attr *raw_;
};

/// The settings that a stream was made with; they live as long as the stream.
class stream_attr_view : public stream_settings<stream_attr_view> {
public:
    /// A view of what weir_stream_get_attr lends.
    explicit stream_attr_view(const weir_stream_attr *raw) noexcept : raw_(raw) {}
    /// The settings as C sees them.
    const weir_stream_attr *get() const noexcept { return raw_; }

private:
    const weir_stream_attr *raw_;
};

/// Settings for an engine of one kind.
class engine_attr : public owned<weir_engine_attr>, public engine_settings<engine_attr> {
public:
    using owned::owned;
    explicit engine_attr(weir_engine_kind kind = WEIR_ENGINE_CPU) {
        check(weir_engine_attr_create(kind, out()));
    }
    engine_attr &set_threadpool(const weir::threadpool &pool) {
        return check(weir_engine_attr_set_threadpool(*this, pool)), *this;
    }
    /// The domain that the engine is made in; the default one if that is empty.
    engine_attr &set_domain(const weir::domain &domain) {
        return check(weir_engine_attr_set_domain(*this, domain)), *this;
    }
    /// The engine's name in texts, "" for its device's.
    engine_attr &set_name(const std::string &name) {
        return check(weir_engine_attr_set_name(*this, name.c_str())), *this;
    }
    /// Where the engine's threads come from; weir starts some in modes PRIVATE and KIND.
    engine_attr &set_thread_mode(weir_thread_mode mode) {
        return check(weir_engine_attr_set_thread_mode(*this, mode)), *this;
    }
    engine_attr &set_max_streams(std::uint32_t count) {
        return check(weir_engine_attr_set_max_streams(*this, count)), *this;
    }
    /// What the device is opened with, in a form of its plug-in's.
    engine_attr &set_device_settings(const void *settings, std::size_t bytes) {
        return check(weir_engine_attr_set_device_settings(*this, settings, bytes)), *this;
    }
    engine_attr &set_thread_count(std::uint32_t count) {
        return check(weir_engine_attr_set_thread_count(*this, count)), *this;
    }
    /// A CUcontext of the caller's instead of the device's primary one.
    engine_attr &set_cuda_context(void *context) {
        return check(weir_engine_attr_set_cuda_context(*this, context)), *this;
    }
    engine_attr &set_allocator(const weir::allocator &source) {
        return check(weir_engine_attr_set_allocator(*this, source)), *this;
    }
    engine_attr &set_memory_limit(std::uint64_t bytes) {
        return check(weir_engine_attr_set_memory_limit(*this, bytes)), *this;
    }
    engine_attr &set_pinned_limit(std::uint64_t bytes) {
        return check(weir_engine_attr_set_pinned_limit(*this, bytes)), *this;
    }
    engine_attr &set_wait_policy(weir_wait_policy policy, std::uint64_t spin_ns = 0) {
        return check(weir_engine_attr_set_wait_policy(*this, policy, spin_ns)), *this;
    }
    engine_attr &set_memory_mode(weir_memory_mode mode) {
        return check(weir_engine_attr_set_memory_mode(*this, mode)), *this;
    }
};

/// A device: memory, and the means to run kernels.
class engine : public shared<weir_engine> {
public:
    using shared::shared;
    engine() noexcept = default;
    explicit engine(weir_engine_kind kind, std::uint32_t index = 0, const engine_attr &attr = engine_attr(nullptr)) {
        check(weir_engine_create(kind, index, attr, out()));
    }
    /// A CPU engine whose work runs on `pool`, or in the calling thread if that is empty.
    static engine cpu(const weir::threadpool &pool = weir::threadpool()) {
        return engine(WEIR_ENGINE_CPU, 0, engine_attr().set_threadpool(pool));
    }
    /// One for each device of this machine but the emulated ones, the CPU's first.
    static std::vector<engine> all() {
        std::size_t count = 0;
        check(weir_engine_create_all(nullptr, 0, &count));
        std::vector<weir_engine *> made(count);
        check(weir_engine_create_all(made.data(), made.size(), &count));
        std::vector<engine> all;
        all.reserve(count);
        for (weir_engine *one : made) all.push_back(engine(one));
        return all;
    }
    static std::uint32_t count(weir_engine_kind kind) {
        return detail::value<std::uint32_t>(weir_engine_count, kind);
    }

    /// As texts say it: "cpu:0", in a domain "torch/cpu:0".
    std::string name() const { return detail::text(weir_engine_get_name, get()); }
    /// The kind that the engine was made of.
    weir_engine_kind kind() const { return info().kind; }
    /// The number of its device among those of the kind.
    std::uint32_t index() const { return info().index; }
    weir::threadpool threadpool() const {
        return detail::lent<weir::threadpool>(weir_engine_get_threadpool, get());
    }
    engine_attr_view attr() const {
        return engine_attr_view(detail::value<const weir_engine_attr *>(weir_engine_get_attr, get()));
    }
    /// What the interface below calls the device: a CUcontext.
    std::uint64_t native_handle() const { return detail::value<std::uint64_t>(weir_engine_get_native_handle, get()); }
    weir_cuda_device_info cuda_device_info() const {
        auto info = sized<weir_cuda_device_info>();
        check(weir_cuda_get_device_info(*this, &info));
        return info;
    }
    weir_engine_info info() const {
        auto info = sized<weir_engine_info>();
        check(weir_engine_get_info(*this, &info));
        return info;
    }
    weir_memory_info memory_info() const {
        auto info = sized<weir_memory_info>();
        check(weir_engine_get_memory_info(*this, &info));
        return info;
    }
    void reset_memory_peak() const { check(weir_engine_reset_memory_peak(*this)); }
    void trim(std::uint64_t bytes_to_keep = 0) const { check(weir_engine_trim(*this, bytes_to_keep)); }
    /// What the memory holds, as JSON.
    std::string dump_memory() const { return detail::text(weir_engine_dump_memory, get()); }
    void synchronize(std::uint64_t timeout_ns = WEIR_TIMEOUT_INFINITE) const {
        check(weir_engine_synchronize(*this, timeout_ns));
    }
};

/// Settings for a stream on an engine of one kind.
class stream_attr : public owned<weir_stream_attr>, public stream_settings<stream_attr> {
public:
    using owned::owned;
    explicit stream_attr(weir_engine_kind kind = WEIR_ENGINE_CPU) {
        check(weir_stream_attr_create(kind, out()));
    }
    stream_attr &set_threadpool(const weir::threadpool &pool) {
        return check(weir_stream_attr_set_threadpool(*this, pool)), *this;
    }
    stream_attr &set_asynchronous(bool on) {
        return check(weir_stream_attr_set_asynchronous(*this, on)), *this;
    }
    stream_attr &set_spin_ns(std::uint64_t ns) {
        return check(weir_stream_attr_set_spin_ns(*this, ns)), *this;
    }
    stream_attr &set_priority(std::int32_t priority) {
        return check(weir_stream_attr_set_priority(*this, priority)), *this;
    }
    stream_attr &set_name(const std::string &name) {
        return check(weir_stream_attr_set_name(*this, name.c_str())), *this;
    }
};

/// A point in a stream, for other streams and threads to wait for, and for time.
class event : public shared<weir_event> {
public:
    using shared::shared;
    event() noexcept = default;
    explicit event(const engine &on, std::uint64_t flags = WEIR_EVENT_DEFAULT) {
        check(weir_event_create(on, flags, out()));
    }
    /// What the interface below calls it, as recorded last: a CUevent.
    std::uint64_t native_handle() const { return detail::value<std::uint64_t>(weir_event_get_native_handle, get()); }
    bool done() const { return detail::value<std::int32_t>(weir_event_query, get()) != 0; }
    void synchronize(std::uint64_t timeout_ns = WEIR_TIMEOUT_INFINITE) const {
        check(weir_event_synchronize(*this, timeout_ns));
    }
    /// Calls f(status) once when the event, as last recorded, has been reached; before the return if it is.
    /// weir_notice says on which thread.
    template <class F>
    void notify(F &&f) const {
        detail::notify(std::forward<F>(f), [this](const weir_notice *n) { return weir_event_notify(*this, n); });
    }
    /// Adds 1 to an eventfd of the caller's instead.
    void notify_fd(int event_fd) const {
        detail::notify_fd(event_fd, [this](const weir_notice *notice) { return weir_event_notify(*this, notice); });
    }
    static std::int64_t elapsed_ns(const event &start, const event &end) {
        return detail::value<std::int64_t>(weir_event_elapsed_ns, start.get(), end.get());
    }
};

/// An in-order queue of work on one engine: synchronous unless it is made with WEIR_STREAM_ASYNCHRONOUS.
class stream : public shared<weir_stream> {
public:
    using shared::shared;
    stream() noexcept = default;
    explicit stream(const weir::engine &on, std::uint64_t flags = WEIR_STREAM_DEFAULT,
                    const stream_attr &attr = stream_attr(nullptr)) {
        check(weir_stream_create(on, flags, attr, out()));
    }
    /// On a CUstream of the caller's.
    static stream wrap_cuda(const weir::engine &on, void *cuda_stream, const stream_attr &attr = stream_attr(nullptr)) {
        stream wrapped;
        check(weir_stream_wrap_cuda(on, cuda_stream, attr, wrapped.out()));
        return wrapped;
    }
    /// What the interface below calls it: a CUstream.
    std::uint64_t native_handle() const { return detail::value<std::uint64_t>(weir_stream_get_native_handle, get()); }
    /// What is submitted from now on waits for a CUevent of the caller's.
    void wait_cuda_event(void *cuda_event) const { check(weir_stream_wait_cuda_event(get(), cuda_event)); }
    void record_cuda_event(void *cuda_event) const { check(weir_stream_record_cuda_event(get(), cuda_event)); }

    /// Runs f() as one piece of the stream's work. It returns nothing or a weir_status.
    template <class F>
    void enqueue(F &&f) const {
        using task = detail::queued_task<std::decay_t<F>>;
        auto *queued = new task{std::forward<F>(f)};
        const weir_status status = weir_enqueue_task(*this, task::call, queued, task::destroy);
        const bool refused = status != WEIR_OK && queued->owners.load(std::memory_order_acquire) == 2;
        queued->give_up(refused ? 2 : 1);
        check(status);
    }
    void enqueue(const kernel &kernel, list<weir_tensor *> inputs, list<weir_tensor *> outputs) const;

    /// Copies a tensor to another of the same type and shape, also between engines.
    void copy(weir_tensor *source, weir_tensor *target) const { check(weir_enqueue_copy(*this, source, target)); }
    void fill(weir_tensor *tensor, std::uint8_t value) const { check(weir_enqueue_fill(*this, tensor, value)); }

    void record(const event &event) const { check(weir_event_record(event, *this)); }
    void wait(const event &event) const { check(weir_stream_wait_event(*this, event)); }
    void synchronize(std::uint64_t timeout_ns = WEIR_TIMEOUT_INFINITE) const {
        check(weir_stream_synchronize(*this, timeout_ns));
    }
    bool done() const { return detail::value<std::int32_t>(weir_stream_query, get()) != 0; }
    /// The failure that the stream keeps, if it has failed.
    std::optional<weir::error> error() const { return failure().as_error(); }
    /// The same, with the node and the engine if a run failed.
    weir::failure failure() const { return detail::failure_of(weir_stream_get_failure, get()); }
    void clear_error() const { check(weir_stream_clear_error(*this)); }

    weir::engine engine() const { return detail::lent<weir::engine>(weir_stream_get_engine, get()); }
    stream_attr_view attr() const {
        return stream_attr_view(detail::value<const weir_stream_attr *>(weir_stream_get_attr, get()));
    }
    weir::threadpool threadpool() const {
        return detail::lent<weir::threadpool>(weir_stream_get_threadpool, get());
    }
};

/// Waits for everything that was queued before this call, on every stream of every engine.
inline void sync_devices(std::uint64_t timeout_ns = WEIR_TIMEOUT_INFINITE) {
    check(weir_sync_devices(timeout_ns, nullptr, 0, nullptr));
}

/// How long f() and what it queues on the stream take, `repetitions` times, in nanoseconds; see weir_time_ns.
template <class F>
std::vector<std::uint64_t> time_ns(const stream &on, F &&f, std::size_t repetitions) {
    detail::host_task<std::remove_reference_t<F> &> task{f};
    std::vector<std::uint64_t> times(repetitions);
    if (!check(weir_time_ns(on, task.call, &task, repetitions, times.data()))) times.clear();
    return times;
}

/// The library's counters in this process.
inline weir_runtime_info runtime_info() {
    auto info = sized<weir_runtime_info>();
    check(weir_runtime_get_info(&info));
    return info;
}

/// The threads that the library has started and that are running now.
inline std::vector<weir_thread_info> runtime_threads() {
    std::vector<weir_thread_info> threads;
    for (;;) {
        std::size_t count = 0;
        check(weir_runtime_get_threads(nullptr, 0, &count));
        // More may start between the two calls.
        threads.assign(count + 8, sized<weir_thread_info>());
        const weir_status status = weir_runtime_get_threads(threads.data(), threads.size(), &count);
        if (status == WEIR_OUT_OF_RANGE) continue;
        check(status);
        threads.resize(count);
        return threads;
    }
}

/// A stretch of a program whose late failures are told at its end: `weir::async_scope scope; ...; scope.end();`
class async_scope {
public:
    async_scope() : number_(detail::value<std::uint64_t>(weir_async_scope_begin)) {}
    /// Of the domain's streams alone.
    explicit async_scope(const domain &of)
        : number_(detail::value<std::uint64_t>(weir_async_scope_begin_in, of.get())) {}
    /// Waits for all that was queued; throws the first failure since the beginning.
    void end(std::uint64_t timeout_ns = WEIR_TIMEOUT_INFINITE) const {
        check(weir_async_scope_end(number_, timeout_ns));
    }

private:
    std::uint64_t number_;
};

} // namespace weir

#endif // WEIR_ENGINE_HPP

// Thread pools from C++ classes and lambdas, and parallel_for.
// SPDX-License-Identifier: MIT OR Apache-2.0

#ifndef WEIR_THREADPOOL_HPP
#define WEIR_THREADPOOL_HPP

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "conformance.h"
#include "inspect.h"
#include "callback.hpp"

namespace weir {

// ---- thread pools ----

/// What a pool is asked to run: call it as task(i), or as task() where there is no index. It never throws, and it
/// copies freely.
struct pool_task {
    weir_task_fn fn; ///< The function of weir's.
    void *arg;       ///< Its argument.
    /// Runs the task, or its part `i`.
    void operator()(std::int32_t i = 0) const noexcept { fn(arg, i); }
};

namespace detail {

template <template <class> class Expression, class P, class = void>
struct detected : std::false_type {};
template <template <class> class Expression, class P>
struct detected<Expression, P, std::void_t<Expression<P>>> : std::true_type {};
template <template <class> class Expression, class P>
inline constexpr bool has = detected<Expression, P>::value;

template <class P>
using parallel_for_of = decltype(std::declval<P &>().parallel_for(std::int32_t{}, pool_task{}));
template <class P>
using schedule_of = decltype(std::declval<P &>().schedule(pool_task{}));
template <class P>
using hinted_schedule_of = decltype(std::declval<P &>().schedule(pool_task{}, std::declval<const weir_task_hint &>()));
template <class P>
using in_parallel_of = decltype(std::declval<P &>().in_parallel());
template <class P>
using thread_index_of = decltype(std::declval<P &>().thread_index());
template <class P>
using help_of = decltype(std::declval<P &>().help());
template <class P>
using max_threads_of = decltype(std::declval<P &>().max_threads());
template <class P>
using flags_of = decltype(P::flags);

// The vtable of a pool of class P. The context is a std::shared_ptr<P> on the heap, or the object itself.
template <class P, bool Borrowed = false>
struct pool_vtable {
    static P &pool(void *ctx) noexcept {
        if constexpr (Borrowed) {
            return *static_cast<P *>(ctx);
        } else {
            return **static_cast<std::shared_ptr<P> *>(ctx);
        }
    }

    // 0 if f() accepted. An exception is a refusal, as is `false`.
    template <class F>
    static std::int32_t accepted(F f) noexcept {
        return or_else(1, [&]() -> std::int32_t {
            if constexpr (std::is_void_v<decltype(f())>) {
                f();
                return 0;
            } else {
                static_assert(std::is_same_v<decltype(f()), bool>, "a pool returns nothing, or false to refuse");
                return f() ? 0 : 1;
            }
        });
    }
    // f(), or `otherwise` if it throws.
    template <class F>
    static std::int32_t answer(std::int32_t otherwise, F f) noexcept {
        return or_else(otherwise, [&] { return static_cast<std::int32_t>(f()); });
    }
    static std::int32_t num_threads(void *ctx) noexcept {
        return answer(1, [&] { return pool(ctx).num_threads(); });
    }
    static std::int32_t parallel_for(void *ctx, std::int32_t n, weir_task_fn fn, void *arg) noexcept {
        return accepted([&] { return pool(ctx).parallel_for(n, pool_task{fn, arg}); });
    }
    static std::int32_t schedule(void *ctx, weir_task_fn fn, void *arg, const weir_task_hint *hint) noexcept {
        if constexpr (has<hinted_schedule_of, P>) {
            return accepted([&] {
                return pool(ctx).schedule(pool_task{fn, arg}, hint ? *hint : sized<weir_task_hint>());
            });
        } else {
            static_cast<void>(hint);
            return accepted([&] { return pool(ctx).schedule(pool_task{fn, arg}); });
        }
    }
    static std::int32_t in_parallel(void *ctx) noexcept {
        return answer(0, [&] { return pool(ctx).in_parallel(); });
    }
    static std::int32_t thread_index(void *ctx) noexcept {
        return answer(-1, [&] { return pool(ctx).thread_index(); });
    }
    static std::int32_t help(void *ctx) noexcept {
        return answer(0, [&] { return pool(ctx).help(); });
    }
    static std::int32_t max_threads(void *ctx) noexcept {
        return answer(1, [&] { return pool(ctx).max_threads(); });
    }
    static void release(void *ctx) noexcept { delete static_cast<std::shared_ptr<P> *>(ctx); }

    static weir_threadpool_vtable make(std::uint64_t flags) noexcept {
        constexpr bool can_schedule = has<schedule_of, P> || has<hinted_schedule_of, P>;
        static_assert(has<parallel_for_of, P> || can_schedule, "a pool needs parallel_for(n, task) or schedule(task)");
        auto vtable = sized<weir_threadpool_vtable>();
        vtable.flags = flags;
        vtable.num_threads = num_threads;
        if constexpr (!Borrowed) vtable.release = release;
        if constexpr (has<parallel_for_of, P>) vtable.parallel_for = parallel_for;
        if constexpr (can_schedule) vtable.schedule = schedule;
        if constexpr (has<in_parallel_of, P>) vtable.in_parallel = in_parallel;
        if constexpr (has<thread_index_of, P>) vtable.thread_index = thread_index;
        if constexpr (has<help_of, P>) vtable.help = help;
        if constexpr (has<max_threads_of, P>) vtable.max_threads = max_threads;
        return vtable;
    }
};

template <class P>
constexpr std::uint64_t declared_flags() noexcept {
    if constexpr (has<flags_of, P>) return static_cast<std::uint64_t>(P::flags);
    return 0;
}

template <class P>
weir_threadpool_vtable call_pool_vtable() noexcept {
    return pool_vtable<P, true>::make(declared_flags<P>());
}

template <class F>
struct parallel_for_pool {
    std::int32_t threads;
    F f;
    std::int32_t num_threads() const noexcept { return threads; }
    auto parallel_for(std::int32_t n, pool_task task) { return f(n, task); }
};

template <class F>
struct schedule_pool {
    std::int32_t threads;
    F f;
    std::int32_t num_threads() const noexcept { return threads; }
    auto schedule(pool_task task) { return f(task); }
};

} // namespace detail

/// Options of a pool: the members of weir_threadpool_options, with setters that chain.
struct threadpool_options : weir_threadpool_options {
    threadpool_options() noexcept : weir_threadpool_options{} { struct_size = sizeof(weir_threadpool_options); }
    /// Of a builtin pool.
    threadpool_options &set_num_threads(std::int32_t n) noexcept { return num_threads = n, *this; }
    /// Of a builtin pool.
    threadpool_options &set_spin_ns(std::uint64_t ns) noexcept { return spin_ns = ns, *this; }
    /// Of a pool of yours: whether weir checks it on the work that it gets; see threadpool::broken_clause.
    threadpool_options &set_checking(bool on) noexcept { return checking = on ? 1 : 0, *this; }
    /// The costs of the pool's threads; without it weir measures. They live until the pool is made.
    threadpool_options &set_costs(const weir_threadpool_costs &of_pool) noexcept { return costs = &of_pool, *this; }
};

/// A pool of threads: yours, or one of the reference pools. Yours is any class with num_threads() and parallel_for(n,
/// task), schedule(task) or both; it may add schedule(task, hint), in_parallel(), thread_index(), help(), max_threads()
/// and a static constexpr `flags`. All are called from any thread, several at a time. parallel_for and schedule return
/// nothing, or false to refuse. One that throws refuses too, so neither may throw after it has passed a task on.
class threadpool : public shared<weir_threadpool> {
public:
    using shared::shared;
    threadpool() noexcept = default;

    /// A pool object that weir keeps until the last task on it has returned.
    template <class P>
    static threadpool from(std::shared_ptr<P> pool, const threadpool_options &options = {}) {
        return create(std::move(pool), detail::declared_flags<P>(), options);
    }
    /// A pool object that the caller keeps alive for as long as anything uses it.
    template <class P>
    static threadpool from_ref(P &pool, const threadpool_options &options = {}) {
        return from(std::shared_ptr<P>(std::shared_ptr<void>(), &pool), options);
    }
    /// A pool from f(n, task), which calls task(i) once for each 0 <= i < n.
    template <class F>
    static threadpool from_parallel_for(std::int32_t num_threads, F f, std::uint64_t flags = 0,
                                        const threadpool_options &options = {}) {
        using pool = detail::parallel_for_pool<F>;
        return create(std::make_shared<pool>(pool{num_threads, std::move(f)}), flags, options);
    }
    /// A pool from f(task), which sees to it that task() is called once, now or later.
    template <class F>
    static threadpool from_schedule(std::int32_t num_threads, F f, std::uint64_t flags = 0,
                                    const threadpool_options &options = {}) {
        using pool = detail::schedule_pool<F>;
        return create(std::make_shared<pool>(pool{num_threads, std::move(f)}), flags, options);
    }
    static threadpool builtin(const threadpool_options &options = {}) {
        threadpool pool;
        check(weir_threadpool_create_builtin(&options, pool.out()));
        return pool;
    }
    /// weir's own pool with this many threads.
    static threadpool builtin(std::int32_t num_threads) {
        return builtin(threadpool_options().set_num_threads(num_threads));
    }
    static threadpool without_threads() {
        threadpool pool;
        check(weir_threadpool_create_inline(pool.out()));
        return pool;
    }

    /// The pool object as C sees it, for those who pass it on to others: call vtable.release(*out_ctx) once.
    template <class P>
    static weir_threadpool_vtable vtable_of(std::shared_ptr<P> pool, void **out_ctx) {
        *out_ctx = new std::shared_ptr<P>(std::move(pool));
        return detail::pool_vtable<P>::make(detail::declared_flags<P>());
    }

    std::int32_t num_threads() const {
        return detail::value<std::int32_t>(weir_threadpool_get_num_threads, get());
    }
    std::uint64_t flags() const { return detail::value<std::uint64_t>(weir_threadpool_get_flags, get()); }
    /// Measures what bringing the pool's threads costs; the first large region does it too.
    void measure() const { check(weir_threadpool_measure(get())); }
    weir_threadpool_costs costs() const {
        auto costs = sized<weir_threadpool_costs>();
        check(weir_threadpool_get_costs(get(), &costs));
        return costs;
    }
    /// Ends the use of a pool that the caller owns: when this returns weir calls none of its functions any more.
    /// FAILED_PRECONDITION inside of a task of the pool, DEADLINE_EXCEEDED if something was still inside.
    void close(std::uint64_t timeout_ns = WEIR_TIMEOUT_INFINITE) const {
        check(weir_threadpool_close(get(), timeout_ns));
    }
    /// The functions of the pool and their context, for those who run their own work on it: call
    /// vtable.release(*out_ctx) once.
    weir_threadpool_vtable vtable(void **out_ctx) const {
        auto vtable = sized<weir_threadpool_vtable>();
        check(weir_threadpool_get_vtable(get(), &vtable, out_ctx));
        return vtable;
    }
    /// Of a pool that is checked (threadpool_options::set_checking): the first clause of the contract that it has broken, or "".
    std::string broken_clause() const { return detail::text(weir_threadpool_get_broken_clause, get()); }
    std::uint64_t id() const { return detail::value<std::uint64_t>(weir_threadpool_get_id, get()); }
    bool in_parallel() const { return detail::value<std::int32_t>(weir_threadpool_in_parallel, get()) != 0; }

private:
    template <class P>
    static threadpool create(std::shared_ptr<P> object, std::uint64_t flags, const threadpool_options &options) {
        const auto vtable = detail::pool_vtable<P>::make(flags);
        auto ctx = std::make_unique<std::shared_ptr<P>>(std::move(object));
        threadpool pool;
        if (check(weir_threadpool_create(&vtable, ctx.get(), &options, pool.out()))) {
            static_cast<void>(ctx.release());
        }
        return pool;
    }
};

/// A pool that belongs to a call of the host's: made from an object on the stack, and closed at the end of the scope.
/// The object is that of threadpool::from. It is not copied, and nothing calls it after the scope. Not for the inside
/// of a task of that pool.
template <class P>
class call_threadpool {
public:
    explicit call_threadpool(P &pool, const threadpool_options &options = {}) {
        const auto vtable = detail::call_pool_vtable<P>();
        weir_threadpool *made = nullptr;
        check(weir_threadpool_create(&vtable, &pool, &options, &made));
        pool_ = threadpool(made);
    }
    ~call_threadpool() {
        // Only a pool that is closed inside of a task of its own is refused; nothing else can fail without a time-out.
        static_cast<void>(weir_threadpool_close(pool_.get(), WEIR_TIMEOUT_INFINITE));
    }
    call_threadpool(const call_threadpool &) = delete;
    call_threadpool &operator=(const call_threadpool &) = delete;
    /// The pool as a handle.
    operator const threadpool &() const noexcept { return pool_; }
    /// The pool as C sees it.
    weir_threadpool *get() const noexcept { return pool_.get(); }

private:
    threadpool pool_;
};

/// Calls range(begin, end, slot) for the pieces of 0 <= i < n, on the pool and in the calling thread; see
/// weir_parallel_for. The range returns nothing or a weir_status. If one throws, the pieces not begun are skipped and
/// the exception is thrown here.
template <class F>
void parallel_for(const threadpool &pool, std::int64_t n, F &&range, const weir_parallel_hint *hint = nullptr) {
    detail::region<std::remove_reference_t<F>> region{range};
    region.finish(weir_parallel_for(pool, n, hint, region.call, &region));
}

/// Calls box(begin, end, slot) for boxes of the points with 0 <= i[d] < extents[d], `rank` of them; begin and end are
/// arrays of `rank` numbers. tile may be nullptr, or name tile sizes; see weir_parallel_nd. Exceptions are as for
/// parallel_for.
template <class F>
void parallel_nd(const threadpool &pool, std::int32_t rank, const std::int64_t *extents, const std::int64_t *tile,
                 F &&box, const weir_parallel_hint *hint = nullptr) {
    detail::region<std::remove_reference_t<F>> region{box};
    region.finish(weir_parallel_nd(pool, rank, extents, tile, hint, region.call_box, &region));
}

} // namespace weir

#endif // WEIR_THREADPOOL_HPP

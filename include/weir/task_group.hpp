// Task groups with lambdas.
// SPDX-License-Identifier: MIT OR Apache-2.0

#ifndef WEIR_TASK_GROUP_HPP
#define WEIR_TASK_GROUP_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "task_group.h"
#include "callback.hpp"
#include "threadpool.hpp"

namespace weir {

namespace detail {

// A callable that is copied into the place of a task.
template <class F>
inline constexpr bool is_small = sizeof(F) <= 40 && alignof(F) <= alignof(std::uint64_t) &&
                                 std::is_trivially_copyable_v<F> && std::is_trivially_destructible_v<F>;

template <class F>
weir_status call_small(void *f) noexcept {
    return guarded(silent, *static_cast<F *>(f));
}

} // namespace detail

/// Tasks that are spawned while others run, and waited for together:
///
///     weir::task_group group(pool);
///     group.run([&] { left = sum(first, middle); });
///     right = sum(middle, last);
///     group.synchronize();
///
/// A task is called as f(), which returns nothing or a weir_status. What it throws stops the group as a status, without
/// its text.
class task_group : public shared<weir_task_group> {
public:
    using shared::shared;
    task_group() noexcept = default;
    /// An empty handle. nullptr could stand for a kernel's call as well.
    explicit task_group(std::nullptr_t) noexcept {}
    /// A group on this pool; an empty one stands for the threads that spawn and wait.
    explicit task_group(const threadpool &pool) : task_group(of(pool.get())) {}
    /// A group on the pool of a kernel's call.
    explicit task_group(weir_kernel_context *context) {
        check(weir_kernel_context_create_task_group(context, out()));
    }
    /// On a pool that is given by its C handle; nullptr for none.
    static task_group of(weir_threadpool *pool) {
        task_group group;
        check(weir_task_group_create(pool, group.out()));
        return group;
    }

    /// Adds a task. A callable of up to 40 bytes that can be copied as bytes (references and numbers) takes no memory.
    template <class F>
    void run(F &&f) const {
        using task = std::decay_t<F>;
        if constexpr (detail::is_small<task>) {
            task copy(std::forward<F>(f));
            check(weir_task_group_spawn_copy(*this, detail::call_small<task>, std::addressof(copy), sizeof(copy)));
        } else {
            using host_task = detail::host_task<task>;
            auto kept = std::unique_ptr<host_task>(new host_task{std::forward<F>(f)});
            if (check(weir_task_group_spawn(*this, host_task::call, kept.get(), host_task::destroy))) {
                static_cast<void>(kept.release());
            }
        }
    }

    /// Does what has not begun, and waits for the rest. Throws what stopped the group.
    void synchronize() const { check(weir_task_group_synchronize(*this)); }
    void cancel() const { check(weir_task_group_cancel(*this)); }
    bool is_stopped() const { return detail::value<std::int32_t>(weir_task_group_is_stopped, get()) != 0; }

    /// f(status) is called once, when all is done that was spawned.
    template <class F>
    void notify(F &&f) const {
        detail::notify(std::forward<F>(f), [&](const weir_notice *n) { return weir_task_group_notify(*this, n); });
    }
    void notify_fd(int event_fd) const {
        detail::notify_fd(event_fd, [&](const weir_notice *n) { return weir_task_group_notify(*this, n); });
    }
};

} // namespace weir

#endif // WEIR_TASK_GROUP_HPP

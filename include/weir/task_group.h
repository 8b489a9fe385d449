/* weir/task_group.h: tasks that are spawned while others run
 *
 * Generated from src/abi and src/ffi by cbindgen; do not edit.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#ifndef WEIR_TASK_GROUP_H
#define WEIR_TASK_GROUP_H

#include "../weir.h"

/** @file weir/task_group.h
 * tasks that are spawned while others run. */

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Task group ---------------------------------------------------------------------------------------------------
 * Tasks on a pool that are spawned while others run, nest, and are waited for together. A wait runs tasks of its own
 * group.
 */

/** Tasks that are spawned while others run, and waited for together. Shared: create, retain, release. */
typedef struct weir_task_group weir_task_group;

/**
 * Creates a group of tasks: weir_task_group_spawn adds tasks, weir_task_group_synchronize runs those that have not
 * begun and waits for the rest. Helpers come from `pool`, within its budget: inside of a kernel or a region the
 * threads are shared with it. NULL: the tasks run in the threads that spawn and wait.
 *
 * Groups and tasks allocate no memory after the first groups of a thread. A thread holds at most 256 tasks that have
 * not begun, of all its groups; weir_task_group_spawn runs further ones itself. At most 64 threads hold tasks at a
 * time; on others each task runs in its spawn. A group that is created inside of a task is nested in that task's
 * group: cancelling the outer group stops it too, and a wait for the outer group helps with it.
 *
 * Ownership: the group holds the pool. Errors: FAILED_PRECONDITION if the pool is closed; RESOURCE_EXHAUSTED.
 */
WEIR_API WEIR_NODISCARD weir_status weir_task_group_create(weir_threadpool *pool, weir_task_group **out_group);

/**
 * As weir_task_group_create, on the pool of a kernel's call. The group may be used until the kernel returns.
 *
 * Thread safety: the kernel's thread. Errors: RESOURCE_EXHAUSTED.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_kernel_context_create_task_group(weir_kernel_context *context,
                                                  weir_task_group **out_group);

/** Takes one more reference. */
WEIR_API WEIR_NODISCARD weir_status weir_task_group_retain(weir_task_group *group);

/**
 * Gives up one reference. NULL does nothing. If it was the last one and tasks are left, those that have not begun are
 * skipped and their arguments destroyed, now or when they would have begun; running tasks continue. A group with a
 * notice (weir_task_group_notify) continues whole, until the notice has arrived.
 *
 * Thread safety: any thread, also a task of the group.
 */
WEIR_API void weir_task_group_release(weir_task_group *group);

/**
 * Adds a task: fn(arg), once, on any thread that may work for the pool, now or later. This call may run it itself:
 * where many tasks are waiting already and tasks of this function have turned out small, and where there is no room.
 * Do not hold a lock during a spawn that the task takes too. A status other than WEIR_OK stops the group: tasks that
 * have not begun are skipped, and weir_task_group_synchronize returns it. Tasks may spawn into their own group.
 * `destroy`, if it is not NULL, is called once with `arg` when the task is done or skipped.
 *
 * Thread safety: any thread; a caller outside of the group's tasks holds a reference, and spawns before the wait that
 * is to cover the task. Blocking: never, except for the task if it runs here. Ownership: `arg` until it is destroyed.
 * Errors: then `arg` stays with the caller.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_task_group_spawn(weir_task_group *group,
                                  weir_host_fn fn,
                                  void *arg,
                                  weir_destroy_fn destroy);

/**
 * As weir_task_group_spawn, with a copy of `size` bytes at `data`, 40 at most: `fn` is called with the address of a
 * copy, which is aligned as a uint64_t and lives during the call.
 *
 * Thread safety: as weir_task_group_spawn. Blocking: as there. Ownership: `data` is read during the call. Errors:
 * OUT_OF_RANGE if size is above 40.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_task_group_spawn_copy(weir_task_group *group,
                                       weir_host_fn fn,
                                       const void *data,
                                       size_t size);

/**
 * Waits until all tasks are done that were spawned before, and those that they spawned into the group. It runs those
 * that have not begun, and tasks of groups nested in them; never anything else. It sleeps only while other threads run
 * the rest, after spinning for 20 us. Then the group is as new and may be used again.
 *
 * The stack grows with the depth of tasks that wait inside of one another, like that of a recursive function: by less
 * than 1 KiB for each, besides the needs of the tasks themselves.
 *
 * On a pool with WEIR_THREADPOOL_OWN_THREADS_ONLY a foreign thread runs none of the work, and sleeps; it runs only
 * tasks that the pool refuses.
 *
 * Thread safety: any thread; of several that wait at once for a stopped group, one receives the status. Blocking:
 * until the tasks are done. Errors: the first status other than WEIR_OK that a task returned; CANCELLED
 * (weir_task_group_cancel); FAILED_PRECONDITION in a task of the group itself, or of one that was made inside of its
 * tasks.
 */
WEIR_API WEIR_NODISCARD weir_status weir_task_group_synchronize(weir_task_group *group);

/**
 * Cancels the group: tasks that have not begun, of this group and of groups nested in its tasks, are skipped. Running
 * tasks continue, and can ask (weir_task_group_is_stopped). It holds until a wait has returned CANCELLED, or a notice
 * has reported it, so a cancel before the first spawn is not lost. A group that a task has stopped keeps that status.
 *
 * Thread safety: any thread, also a task of the group.
 */
WEIR_API WEIR_NODISCARD weir_status weir_task_group_cancel(weir_task_group *group);

/**
 * Whether tasks of the group that have not begun are skipped (1) or not (0): the group, or one that it is nested in,
 * was cancelled or had a task that failed. Long tasks can use it to end early.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_task_group_is_stopped(const weir_task_group *group,
                                       int32_t *out_stopped);

/**
 * Tells the host, once, when all spawned tasks are done: for callers that must not wait. Call it after the last spawn
 * from outside; if nothing is left then, the notice arrives before this call returns. The notice has the status that a
 * wait would return, and no run. From this call on the pool owes the tasks a thread. If it refuses, or there is none,
 * this call runs the tasks that have not begun, and so does each later spawn. The group is as new after the notice.
 *
 * Blocking: never, except for the tasks that it runs on a pool that refuses them. Ownership: `notice` is read during
 * the call; its ctx is released with `release`. The notice holds the group until it has arrived. Errors:
 * FAILED_PRECONDITION if there is a notice already; RESOURCE_EXHAUSTED.
 */
WEIR_API WEIR_NODISCARD weir_status weir_task_group_notify(weir_task_group *group, const weir_notice *notice);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_TASK_GROUP_H */

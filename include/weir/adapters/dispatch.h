/* A queue of libdispatch (Grand Central Dispatch) as a weir thread pool. C99 or later, C++11 or later, gcc or clang.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 *     weir_threadpool *pool;
 *     weir_status status = weir_dispatch_threadpool_create(dispatch_get_global_queue(0, 0), 0, &pool);
 *
 * Gives weir schedule (dispatch_async_f) and parallel_for (dispatch_apply_f, also inside of tasks). The queue must be a
 * concurrent one: a global queue, or one made with DISPATCH_QUEUE_CONCURRENT. Needs no blocks, but libdispatch's own
 * header needs clang, or gcc 14.
 *
 * Ownership: the pool retains the queue and lets go of it when weir lets go of the pool.
 *
 * Limits:
 *  - libdispatch does not say how many threads it will use, so num_threads is yours to choose; the default is the
 *    number of processors.
 *  - It cannot say whether a thread is one of its own, so there are neither in_parallel nor thread_index. weir knows
 *    the tasks that it handed over. A block of the host's that waits for weir on a global queue blocks its thread, and
 *    libdispatch starts another one.
 *  - dispatch_async_f takes one pointer where weir has two. 64 pairs are kept for that; beyond 64 tasks at a time each
 *    one costs an allocation. What libdispatch allocates for itself comes on top.
 */

#ifndef WEIR_ADAPTERS_DISPATCH_H
#define WEIR_ADAPTERS_DISPATCH_H

#include <dispatch/dispatch.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../weir.h"

#ifdef __cplusplus
extern "C" {
#endif

struct weir_dispatch_pool;

/* A task on its way through the queue. */
typedef struct weir_dispatch_task {
    struct weir_dispatch_pool *pool; /* NULL: from the heap */
    weir_task_fn fn;
    void *arg;
} weir_dispatch_task;

typedef struct weir_dispatch_pool {
    dispatch_queue_t queue;
    int32_t num_threads;
    uint64_t used; /* bit i: kept[i] is in use; changed by several threads */
    weir_dispatch_task kept[64];
} weir_dispatch_pool;

static inline weir_dispatch_task *weir_dispatch_claim(weir_dispatch_pool *pool) {
    uint64_t used = __atomic_load_n(&pool->used, __ATOMIC_RELAXED);
    while (~used != 0) {
        const int i = __builtin_ctzll(~used);
        /* Acquire, with the release in weir_dispatch_run: who had the place before has read it. */
        if (__atomic_compare_exchange_n(&pool->used, &used, used | UINT64_C(1) << i, 1, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED)) {
            pool->kept[i].pool = pool;
            return &pool->kept[i];
        }
    }
    return (weir_dispatch_task *)calloc(1, sizeof(weir_dispatch_task));
}

/* The place is given back before the task runs: after it the pool may be gone. */
static inline void weir_dispatch_run(void *arg) {
    weir_dispatch_task *place = (weir_dispatch_task *)arg;
    const weir_dispatch_task task = *place;
    if (task.pool != NULL) {
        __atomic_fetch_and(&task.pool->used, ~(UINT64_C(1) << (place - task.pool->kept)), __ATOMIC_RELEASE);
    } else {
        free(place);
    }
    task.fn(task.arg, 0);
}

static inline int32_t weir_dispatch_schedule(void *ctx, weir_task_fn fn, void *arg, const weir_task_hint *hint) {
    weir_dispatch_pool *pool = (weir_dispatch_pool *)ctx;
    weir_dispatch_task *task = weir_dispatch_claim(pool);
    (void)hint;
    if (task == NULL) return 1;
    task->fn = fn;
    task->arg = arg;
    dispatch_async_f(pool->queue, task, weir_dispatch_run);
    return 0;
}

static inline void weir_dispatch_run_index(void *arg, size_t i) {
    const weir_dispatch_task *task = (const weir_dispatch_task *)arg;
    task->fn(task->arg, (int32_t)i);
}

static inline int32_t weir_dispatch_parallel_for(void *ctx, int32_t n, weir_task_fn fn, void *arg) {
    weir_dispatch_task task = {NULL, fn, arg};
    dispatch_apply_f((size_t)n, ((weir_dispatch_pool *)ctx)->queue, &task, weir_dispatch_run_index);
    return 0;
}

static inline int32_t weir_dispatch_num_threads(void *ctx) {
    return ((weir_dispatch_pool *)ctx)->num_threads;
}

static inline void weir_dispatch_release(void *ctx) {
    dispatch_release(((weir_dispatch_pool *)ctx)->queue);
    free(ctx);
}

/* The vtable and its context, for those who call weir_threadpool_create themselves: release frees the context. *out_ctx
 * is NULL if there is no memory. */
static inline weir_threadpool_vtable weir_dispatch_vtable(dispatch_queue_t queue, int32_t num_threads, void **out_ctx) {
    weir_dispatch_pool *pool = (weir_dispatch_pool *)calloc(1, sizeof *pool);
    weir_threadpool_vtable vtable;
    memset(&vtable, 0, sizeof vtable);
    vtable.struct_size = sizeof vtable;
    vtable.flags = (uint64_t)WEIR_THREADPOOL_AUTO_BALANCING | (uint64_t)WEIR_THREADPOOL_NESTED;
    vtable.num_threads = weir_dispatch_num_threads;
    vtable.max_threads = weir_dispatch_num_threads;
    vtable.schedule = weir_dispatch_schedule;
    vtable.parallel_for = weir_dispatch_parallel_for;
    vtable.release = weir_dispatch_release;
    if (pool != NULL) {
        dispatch_retain(queue);
        pool->queue = queue;
        pool->num_threads = num_threads > 0 ? num_threads : (int32_t)sysconf(_SC_NPROCESSORS_ONLN);
    }
    *out_ctx = pool;
    return vtable;
}

/* Makes a pool of a concurrent queue. num_threads: how many tasks it may run at once, 0 or less = the number of
 * processors. The caller owns one reference to *out_pool. Errors: RESOURCE_EXHAUSTED, and as weir_threadpool_create. */
static inline weir_status weir_dispatch_threadpool_create(dispatch_queue_t queue, int32_t num_threads,
                                                          weir_threadpool **out_pool) {
    void *ctx;
    const weir_threadpool_vtable vtable = weir_dispatch_vtable(queue, num_threads, &ctx);
    weir_status status;
    if (ctx == NULL) {
        if (out_pool != NULL) *out_pool = NULL;
        return WEIR_RESOURCE_EXHAUSTED;
    }
    status = weir_threadpool_create(&vtable, ctx, NULL, out_pool);
    if (status != WEIR_OK) weir_dispatch_release(ctx);
    return status;
}

#ifdef __cplusplus
}
#endif

#endif /* WEIR_ADAPTERS_DISPATCH_H */

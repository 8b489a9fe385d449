/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Pools that are odd and keep the contract.
 */

#include <stdbool.h>

#include "pools.h"

static int32_t one(void *ctx) {
    (void)ctx;
    return 1;
}

static int32_t schedule_here(void *ctx, weir_task_fn fn, void *arg, const weir_task_hint *hint) {
    (void)ctx, (void)hint;
    fn(arg, 0);
    return 0;
}

static int32_t parallel_for_here(void *ctx, int32_t n, weir_task_fn fn, void *arg) {
    (void)ctx;
    for (int32_t i = n - 1; i >= 0; i--) fn(arg, i);
    return 0;
}

int in_caller(weir_threadpool_vtable *out_vtable, void **out_ctx) {
    weir_threadpool_vtable vtable = {.struct_size = sizeof vtable,
                                     .flags = WEIR_THREADPOOL_NESTED,
                                     .num_threads = one,
                                     .parallel_for = parallel_for_here,
                                     .schedule = schedule_here,
                                     .release = base_release};
    return base_offer_pool(base_create(0), vtable, out_vtable, out_ctx);
}

int lifo(weir_threadpool_vtable *out_vtable, void **out_ctx) {
    base_pool *pool = base_create(BASE_THREADS);
    if (pool != NULL) pool->newest_first = true;
    return base_offer_pool(pool, base_vtable(), out_vtable, out_ctx);
}

int delaying(weir_threadpool_vtable *out_vtable, void **out_ctx) {
    base_pool *pool = base_create(BASE_THREADS);
    if (pool != NULL) pool->delay_ns = 2000000;
    return base_offer_pool(pool, base_vtable(), out_vtable, out_ctx);
}

static int32_t half_schedule(void *ctx, weir_task_fn fn, void *arg, const weir_task_hint *hint) {
    return base_turn(ctx, 2) ? 1 : base_schedule(ctx, fn, arg, hint);
}

static int32_t half_parallel_for(void *ctx, int32_t n, weir_task_fn fn, void *arg) {
    return base_turn(ctx, 2) ? 1 : base_parallel_for(ctx, n, fn, arg);
}

int half(weir_threadpool_vtable *out_vtable, void **out_ctx) {
    weir_threadpool_vtable vtable = base_vtable();
    vtable.schedule = half_schedule;
    vtable.parallel_for = half_parallel_for;
    return base_offer(vtable, out_vtable, out_ctx);
}

int one_thread(weir_threadpool_vtable *out_vtable, void **out_ctx) {
    weir_threadpool_vtable vtable = {.struct_size = sizeof vtable,
                                     .num_threads = base_num_threads,
                                     .schedule = base_schedule,
                                     .release = base_release};
    return base_offer_pool(base_create(1), vtable, out_vtable, out_ctx);
}

int only_bulk(weir_threadpool_vtable *out_vtable, void **out_ctx) {
    weir_threadpool_vtable vtable = {.struct_size = sizeof vtable,
                                     .num_threads = base_num_threads,
                                     .parallel_for = base_parallel_for,
                                     .release = base_release};
    return base_offer(vtable, out_vtable, out_ctx);
}

static int32_t post(void *ctx, int32_t n, weir_task_fn fn, void *arg) {
    for (int32_t i = 0; i < n; i++) base_push(ctx, fn, arg, i, NULL, true);
    return 0;
}

int posting(weir_threadpool_vtable *out_vtable, void **out_ctx) {
    weir_threadpool_vtable vtable = {.struct_size = sizeof vtable,
                                     .flags = WEIR_THREADPOOL_ASYNCHRONOUS,
                                     .num_threads = base_num_threads,
                                     .parallel_for = post,
                                     .release = base_release};
    return base_offer(vtable, out_vtable, out_ctx);
}

/* Some of the threads belong to others now and then: 0 to 3 are said, and 3 is the bound. */
static int32_t breathing_num_threads(void *ctx) {
    base_pool *pool = ctx;
    return atomic_fetch_add(&pool->calls, 1) % (pool->num_threads + 1);
}

int breathing(weir_threadpool_vtable *out_vtable, void **out_ctx) {
    weir_threadpool_vtable vtable = base_vtable();
    vtable.num_threads = breathing_num_threads;
    return base_offer(vtable, out_vtable, out_ctx);
}

static int32_t refuse_schedule(void *ctx, weir_task_fn fn, void *arg, const weir_task_hint *hint) {
    (void)ctx, (void)fn, (void)arg, (void)hint;
    return 1;
}

static int32_t refuse_parallel_for(void *ctx, int32_t n, weir_task_fn fn, void *arg) {
    (void)ctx, (void)n, (void)fn, (void)arg;
    return 1;
}

int refusing(weir_threadpool_vtable *out_vtable, void **out_ctx) {
    weir_threadpool_vtable vtable = base_vtable();
    vtable.schedule = refuse_schedule;
    vtable.parallel_for = refuse_parallel_for;
    return base_offer(vtable, out_vtable, out_ctx);
}

/* The least that a pool can be: it does not say who its threads are. */
int anonymous(weir_threadpool_vtable *out_vtable, void **out_ctx) {
    weir_threadpool_vtable vtable = base_vtable();
    vtable.in_parallel = NULL;
    vtable.thread_index = NULL;
    return base_offer(vtable, out_vtable, out_ctx);
}

/* A team that the caller is one more of, as it should be. */
int team(weir_threadpool_vtable *out_vtable, void **out_ctx) {
    weir_threadpool_vtable vtable = {.struct_size = sizeof vtable,
                                     .num_threads = base_num_threads,
                                     .parallel_for = base_team_parallel_for,
                                     .in_parallel = base_in_parallel,
                                     .release = base_release};
    return base_offer(vtable, out_vtable, out_ctx);
}

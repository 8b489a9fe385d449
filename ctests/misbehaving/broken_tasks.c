/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Pools that do the wrong thing with tasks.
 */

#include <stdbool.h>

#include "pools.h"

static int32_t lossy_schedule(void *ctx, weir_task_fn fn, void *arg, const weir_task_hint *hint) {
    return base_turn(ctx, 8) ? 0 : base_schedule(ctx, fn, arg, hint);
}

int lossy(weir_threadpool_vtable *out_vtable, void **out_ctx) {
    weir_threadpool_vtable vtable = base_vtable();
    vtable.schedule = lossy_schedule;
    return base_offer(vtable, out_vtable, out_ctx);
}

static int32_t duplicating_schedule(void *ctx, weir_task_fn fn, void *arg, const weir_task_hint *hint) {
    if (base_turn(ctx, 8)) base_schedule(ctx, fn, arg, hint);
    return base_schedule(ctx, fn, arg, hint);
}

int duplicating(weir_threadpool_vtable *out_vtable, void **out_ctx) {
    weir_threadpool_vtable vtable = base_vtable();
    vtable.schedule = duplicating_schedule;
    return base_offer(vtable, out_vtable, out_ctx);
}

static int32_t wrong_index_schedule(void *ctx, weir_task_fn fn, void *arg, const weir_task_hint *hint) {
    (void)hint;
    base_push(ctx, fn, arg, 1, NULL, true);
    return 0;
}

int wrong_index(weir_threadpool_vtable *out_vtable, void **out_ctx) {
    weir_threadpool_vtable vtable = base_vtable();
    vtable.schedule = wrong_index_schedule;
    return base_offer(vtable, out_vtable, out_ctx);
}

static int32_t leaving_out_parallel_for(void *ctx, int32_t n, weir_task_fn fn, void *arg) {
    return n > 1 ? base_parallel_for(ctx, n - 1, fn, arg) : base_parallel_for(ctx, n, fn, arg);
}

int leaving_out(weir_threadpool_vtable *out_vtable, void **out_ctx) {
    weir_threadpool_vtable vtable = base_vtable();
    vtable.schedule = NULL;
    vtable.parallel_for = leaving_out_parallel_for;
    return base_offer(vtable, out_vtable, out_ctx);
}

/* A call whose indices are counted from 1. */
typedef struct shifted {
    weir_task_fn fn;
    void *arg;
} shifted;

static void call_shifted(void *arg, int32_t i) {
    shifted *call = arg;
    call->fn(call->arg, i + 1);
}

static int32_t wrong_count_parallel_for(void *ctx, int32_t n, weir_task_fn fn, void *arg) {
    shifted call = {.fn = fn, .arg = arg};
    int32_t threads = base_num_threads(ctx);
    return base_parallel_for(ctx, n < threads ? n : threads, call_shifted, &call);
}

int wrong_count(weir_threadpool_vtable *out_vtable, void **out_ctx) {
    weir_threadpool_vtable vtable = base_vtable();
    vtable.schedule = NULL;
    vtable.parallel_for = wrong_count_parallel_for;
    return base_offer(vtable, out_vtable, out_ctx);
}

static int32_t repeating_parallel_for(void *ctx, int32_t n, weir_task_fn fn, void *arg) {
    int32_t status = base_parallel_for(ctx, n, fn, arg);
    fn(arg, 0);
    return status;
}

int repeating(weir_threadpool_vtable *out_vtable, void **out_ctx) {
    weir_threadpool_vtable vtable = base_vtable();
    vtable.schedule = NULL;
    vtable.parallel_for = repeating_parallel_for;
    return base_offer(vtable, out_vtable, out_ctx);
}

static int32_t early_parallel_for(void *ctx, int32_t n, weir_task_fn fn, void *arg) {
    for (int32_t i = 0; i < n; i++) base_push(ctx, fn, arg, i, NULL, true);
    return 0;
}

int early(weir_threadpool_vtable *out_vtable, void **out_ctx) {
    weir_threadpool_vtable vtable = base_vtable();
    vtable.schedule = NULL;
    vtable.parallel_for = early_parallel_for;
    return base_offer(vtable, out_vtable, out_ctx);
}

/* The task begins after the answer: before it, this would be an answer that comes too late. */
static int32_t after_refusal_schedule(void *ctx, weir_task_fn fn, void *arg, const weir_task_hint *hint) {
    bool refused = base_turn(ctx, 4);
    if (refused) {
        base_push(ctx, fn, arg, 0, NULL, false);
        return 1;
    }
    return base_schedule(ctx, fn, arg, hint);
}

int after_refusal(weir_threadpool_vtable *out_vtable, void **out_ctx) {
    weir_threadpool_vtable vtable = base_vtable();
    vtable.schedule = after_refusal_schedule;
    return base_offer(vtable, out_vtable, out_ctx);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int32_t locking_schedule(void *ctx, weir_task_fn fn, void *arg, const weir_task_hint *hint) {
    (void)ctx, (void)hint;
    pthread_mutex_lock(&lock);
    fn(arg, 0);
    pthread_mutex_unlock(&lock);
    return 0;
}

int locking(weir_threadpool_vtable *out_vtable, void **out_ctx) {
    weir_threadpool_vtable vtable = base_vtable();
    vtable.schedule = locking_schedule;
    vtable.parallel_for = NULL;
    return base_offer(vtable, out_vtable, out_ctx);
}

/* Every third call forgets to wake a thread. */
static int32_t forgetful_schedule(void *ctx, weir_task_fn fn, void *arg, const weir_task_hint *hint) {
    (void)hint;
    base_push(ctx, fn, arg, 0, NULL, !base_turn(ctx, 3));
    return 0;
}

int forgetful(weir_threadpool_vtable *out_vtable, void **out_ctx) {
    weir_threadpool_vtable vtable = base_vtable();
    vtable.schedule = forgetful_schedule;
    vtable.help = NULL;
    return base_offer(vtable, out_vtable, out_ctx);
}

static void release_and_run(void *ctx) {
    base_task last = ((base_pool *)ctx)->last;
    base_release(ctx);
    if (last.fn != NULL) last.fn(last.arg, last.i);
}

int after_release(weir_threadpool_vtable *out_vtable, void **out_ctx) {
    weir_threadpool_vtable vtable = base_vtable();
    vtable.release = release_and_run;
    return base_offer(vtable, out_vtable, out_ctx);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A pool that costs more than it says: loops that do not gain by its threads stay with their callers, and are tried
 * again now and then.
 *
 * The pool here keeps its caller for half a millisecond with every task, while weir is told that it takes next to
 * nothing; then it runs the task, at once and in the caller.
 */

#include <stdatomic.h>
#include <weir/inspect.h>

#include "check.h"

enum { ITEMS = 16 };

static atomic_int asked, items;

static void work_for(uint64_t ns) {
    const uint64_t end = now_ns() + ns;
    while (now_ns() < end) continue;
}

static int32_t num_threads(void *ctx) {
    (void)ctx;
    return 1;
}

static int32_t schedule(void *ctx, weir_task_fn task, void *arg, const weir_task_hint *hint) {
    (void)ctx, (void)hint;
    atomic_fetch_add(&asked, 1);
    work_for(500000);
    task(arg, 0);
    return 0;
}

static int32_t work(void *arg, int64_t begin, int64_t end, int32_t slot) {
    (void)arg, (void)slot;
    atomic_fetch_add(&items, (int)(end - begin));
    for (int64_t i = begin; i < end; i++) work_for(5000);
    return WEIR_OK;
}

enum { ROUNDS = 6 };

/* So many calls; gives how many of them asked for a helper. */
static int calls(weir_threadpool *pool, double cost_ns, int count) {
    const weir_parallel_hint hint = {.struct_size = sizeof hint, .cost_ns = cost_ns};
    const int before = atomic_load(&asked);
    for (int i = 0; i < count; i++) {
        atomic_store(&items, 0);
        CHECK_OK(weir_parallel_for(pool, ITEMS, &hint, work, NULL));
        CHECK_EQ(atomic_load(&items), ITEMS);
    }
    return atomic_load(&asked) - before;
}

/* Whether fewer than `most` of so many calls ask. Where the thread is interrupted while it takes a sample alone, sharing
 * looks like a gain for a while: so not in every round, but in one of them. */
static int are_mostly_alone(weir_threadpool *pool, double cost_ns, int count, int most) {
    for (int round = 0; round < ROUNDS; round++) {
        if (calls(pool, cost_ns, count) < most) return 1;
    }
    return 0;
}

int main(void) {
    const weir_threadpool_vtable vtable = {
        .struct_size = sizeof vtable, .num_threads = num_threads, .schedule = schedule};
    const weir_threadpool_costs costs = {.struct_size = sizeof costs, .submit_ns = 100, .arrive_ns = 100, .join_ns = 100};
    weir_threadpool_attr *attr = NULL;
    weir_threadpool *pool = NULL;
    CHECK_OK(weir_threadpool_attr_create(&attr));
    CHECK_OK(weir_threadpool_attr_set_costs(attr, &costs));
    CHECK_OK(weir_threadpool_create_with_attr(&vtable, NULL, attr, &pool));
    weir_threadpool_attr_destroy(attr);

    /* The figures say that it is worth it, so it is tried; and it takes six times as long. */
    CHECK(calls(pool, 5000, 10) > 0);
    /* A call that asks loses as much as six others take: a part in twenty would be one in 125 calls. */
    CHECK(are_mostly_alone(pool, 5000, 3000, 3000 / 125));
    /* A try that was interrupted has lost more than others, and the next one comes later: but it comes. */
    while (calls(pool, 5000, 100) == 0) continue;
    /* Another loop is tried for itself, and a wrong estimate changes nothing. */
    CHECK(calls(pool, 20000, 10) > 0);
    CHECK(are_mostly_alone(pool, 20000, 300, 10));

    weir_threadpool_release(pool);
    return 0;
}

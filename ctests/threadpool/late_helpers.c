/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Helpers that come when their own region is over, and find the next one open: they serve it like its own, also where a
 * parallel_for shares it, and when there are more of them than it has slots.
 *
 * The pool here keeps what it is to schedule until weir calls its parallel_for. Then it lets the late ones in first,
 * each on a thread of its own, and has each of them stay in its first piece until parallel_for is about to return.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <weir/inspect.h>

#include "check.h"

enum { LATE = 3, ITEMS = 300, SLOTS = 8 };

static struct {
    /* The host. */
    int32_t width;
    int inside; /* what in_parallel says: inside, weir calls no parallel_for */
    int refuses;
    weir_task_fn tasks[LATE];
    void *args[LATE];
    pthread_t threads[LATE];
    int kept, bulks;
    /* The region. */
    int32_t slots;
    atomic_int items[ITEMS];
    atomic_int held[SLOTS];
    atomic_int late_pieces;    /* first pieces of late helpers */
    atomic_ullong leave_at;    /* when they may return, of now_ns */
    atomic_int by_late, by_others, epilogues;
} s;

static _Thread_local int is_late;

/* ---- The host's pool */

static int32_t num_threads(void *ctx) {
    (void)ctx;
    return s.width;
}

static int32_t max_threads(void *ctx) {
    (void)ctx;
    return 2 * LATE;
}

static int32_t in_parallel(void *ctx) {
    (void)ctx;
    return s.inside;
}

static int32_t keep(void *ctx, weir_task_fn task, void *arg, const weir_task_hint *hint) {
    (void)ctx;
    (void)hint;
    if (s.kept == LATE) return 1;
    s.tasks[s.kept] = task;
    s.args[s.kept] = arg;
    s.kept++;
    return 0;
}

static void *come_late(void *index) {
    const size_t i = (size_t)index;
    is_late = 1;
    s.tasks[i](s.args[i], 0);
    return NULL;
}

static int32_t let_in_and_run(void *ctx, int32_t n, weir_task_fn task, void *arg) {
    (void)ctx;
    s.bulks++;
    for (size_t i = 0; i < LATE; i++) CHECK(pthread_create(&s.threads[i], NULL, come_late, (void *)i) == 0);
    EVENTUALLY(atomic_load(&s.late_pieces) == LATE);
    if (!s.refuses) {
        for (int32_t i = 0; i < n; i++) task(arg, i);
    }
    /* Weir's caller has to wait for them. */
    atomic_store(&s.leave_at, now_ns() + UINT64_C(20000000));
    return s.refuses;
}

/* ---- The region */

static int32_t count(void *arg, int64_t begin, int64_t end, int32_t slot) {
    (void)arg;
    CHECK(0 <= slot && slot < s.slots && atomic_exchange(&s.held[slot], 1) == 0);
    for (int64_t i = begin; i < end; i++) CHECK_EQ(atomic_fetch_add(&s.items[i], 1), 0);
    atomic_fetch_add(is_late ? &s.by_late : &s.by_others, (int)(end - begin));
    if (is_late == 1) {
        is_late = 2; /* once is enough */
        atomic_fetch_add(&s.late_pieces, 1);
        while (now_ns() < atomic_load(&s.leave_at)) sleep_ns(100000);
    }
    atomic_store(&s.held[slot], 0);
    return WEIR_OK;
}

static int32_t all_is_done(void *arg) {
    (void)arg;
    CHECK_EQ(atomic_load(&s.by_late) + atomic_load(&s.by_others), ITEMS);
    for (int i = 0; i < SLOTS; i++) CHECK_EQ(atomic_load(&s.held[i]), 0);
    atomic_fetch_add(&s.epilogues, 1);
    return WEIR_OK;
}

static int32_t do_nothing(void *arg, int64_t begin, int64_t end, int32_t slot) {
    (void)arg, (void)begin, (void)end, (void)slot;
    return WEIR_OK;
}

/* A region with so many slots, shared by a parallel_for that may be refused, after one that asked for all the
 * helpers. */
static void a_region_for_the_late(int32_t slots, int refuses) {
    const weir_threadpool_vtable vtable = {
        .struct_size = sizeof vtable, .num_threads = num_threads, .max_threads = max_threads, .schedule = keep,
        .parallel_for = let_in_and_run, .in_parallel = in_parallel};
    /* Dear to ask one by one: with few helpers a parallel_for is the better way. And other costs for each region, so
     * that none learns from another one how late the helpers of this pool are. */
    const weir_threadpool_costs costs = {
        .struct_size = sizeof costs, .submit_ns = 100000.0 + 2 * slots + refuses, .arrive_ns = 1000, .join_ns = 100};
    weir_threadpool_attr *attr = NULL;
    weir_threadpool *pool = NULL;
    memset(&s, 0, sizeof s);
    CHECK_OK(weir_threadpool_attr_create(&attr));
    CHECK_OK(weir_threadpool_attr_set_costs(attr, &costs));
    CHECK_OK(weir_threadpool_create_with_attr(&vtable, NULL, attr, &pool));
    weir_threadpool_attr_destroy(attr);

    weir_parallel_hint hint = {.struct_size = sizeof hint, .cost_ns = 1000000};
    s.width = LATE;
    s.inside = 1;
    CHECK_OK(weir_parallel_for(pool, LATE + 1, &hint, do_nothing, NULL));
    CHECK_EQ(s.kept, LATE);
    CHECK_EQ(s.bulks, 0);

    s.width = 2 * LATE; /* for as many again */
    s.inside = 0;
    s.slots = slots;
    s.refuses = refuses;
    atomic_store(&s.leave_at, UINT64_MAX);
    hint = (weir_parallel_hint){
        .struct_size = sizeof hint, .cost_ns = 400000.0 / ITEMS, .max_slots = slots, .epilogue = all_is_done};
    CHECK_OK(weir_parallel_for(pool, ITEMS, &hint, count, NULL));
    CHECK_EQ(s.bulks, 1);
    CHECK_EQ(s.kept, LATE);
    CHECK_EQ(atomic_load(&s.epilogues), 1);
    for (int i = 0; i < ITEMS; i++) CHECK_EQ(atomic_load(&s.items[i]), 1);
    for (int i = 0; i < LATE; i++) CHECK(pthread_join(s.threads[i], NULL) == 0);
    weir_threadpool_release(pool);
}

int main(void) {
    for (int refuses = 0; refuses <= 1; refuses++) {
        /* Room for all: the late ones, and those whom parallel_for brings or the caller. */
        a_region_for_the_late(LATE + 2, refuses);
        CHECK(atomic_load(&s.by_late) >= LATE && atomic_load(&s.by_others) > 0);
        /* The late ones have all slots: the others, and the caller too, find none, and leave it all to them. */
        a_region_for_the_late(LATE, refuses);
        CHECK_EQ(atomic_load(&s.by_late), ITEMS);
    }
    return 0;
}

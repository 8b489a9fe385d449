/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Thread pools: regions on every kind of pool, errors, widths, vtables of other versions, and the end of a pool.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <weir/inspect.h>
#include <weir/testing.h>

#include "make.h"
#include "test_pools.h"

enum { MAX_ITEMS = 20000, MAX_SLOTS = 64 };

/* What a region is checked with: how often each item was done, and who holds which slot. */
typedef struct tally {
    atomic_int items[MAX_ITEMS];
    atomic_int slot_held[MAX_SLOTS];
    int64_t n;
    int64_t grain;
    int32_t max_slots;
    int nested;              /* whether each piece holds a region on `pool` */
    weir_threadpool *pool;
    atomic_llong inner;      /* items done by the regions inside */
    atomic_llong pieces;
    weir_status fail_with;
} tally;

static tally count;

static void tally_reset(int64_t n, int64_t grain, int32_t max_slots) {
    CHECK(n <= MAX_ITEMS);
    for (int64_t i = 0; i < MAX_ITEMS; i++) atomic_store_explicit(&count.items[i], 0, memory_order_relaxed); /* often, and before the region */
    count.n = n;
    count.grain = grain;
    count.max_slots = max_slots;
    count.nested = 0;
    count.fail_with = WEIR_OK;
    atomic_store(&count.inner, 0);
    atomic_store(&count.pieces, 0);
}

static int32_t inner_range(void *arg, int64_t begin, int64_t end, int32_t slot) {
    CHECK(slot >= 0);
    atomic_fetch_add((atomic_llong *)arg, end - begin);
    return WEIR_OK;
}

static weir_parallel_hint costly(double cost_ns) {
    return (weir_parallel_hint){.struct_size = sizeof(weir_parallel_hint), .cost_ns = cost_ns};
}

static int32_t count_range(void *arg, int64_t begin, int64_t end, int32_t slot) {
    tally *t = arg;
    CHECK(0 <= begin && begin < end && end <= t->n);
    CHECK(begin % t->grain == 0 && (end % t->grain == 0 || end == t->n));
    CHECK(slot >= 0 && slot < t->max_slots);
    CHECK(atomic_exchange(&t->slot_held[slot], 1) == 0);
    atomic_fetch_add(&t->pieces, 1);
    for (int64_t i = begin; i < end; i++) atomic_fetch_add(&t->items[i], 1);
    if (t->nested) {
        weir_parallel_hint hint = costly(100000);
        atomic_store(&t->slot_held[slot], 0); /* the region inside may take up pieces of this one while it waits */
        CHECK_OK(weir_parallel_for(t->pool, 64, &hint, inner_range, &t->inner));
        return WEIR_OK;
    }
    atomic_store(&t->slot_held[slot], 0);
    return t->fail_with;
}

static void check_each_item_once(void) {
    for (int64_t i = 0; i < MAX_ITEMS; i++) CHECK_EQ(atomic_load_explicit(&count.items[i], memory_order_relaxed), i < count.n);
}

static void run_region(weir_threadpool *pool, int64_t n, const weir_parallel_hint *hint, int32_t width) {
    int64_t grain = hint != NULL && hint->grain > 0 ? hint->grain : 1;
    int32_t slots = hint != NULL && hint->max_slots > 0 && hint->max_slots < width + 1 ? hint->max_slots : width + 1;
    tally_reset(n, grain, slots);
    CHECK_OK(weir_parallel_for(pool, n, hint, count_range, &count));
    check_each_item_once();
}

/* Sizes around the number of threads and the grain, cheap and costly items. */
static void run_regions(weir_threadpool *pool, int32_t width) {
    static const int64_t sizes[] = {0, 1, 2, 3, 4, 5, 7, 64, 1000, 10007};
    static const uint64_t costs[] = {0, 1, 100000};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        run_region(pool, sizes[s], NULL, width);
        for (size_t c = 0; c < sizeof costs / sizeof *costs; c++) {
            weir_parallel_hint hint = costly(costs[c]);
            run_region(pool, sizes[s], &hint, width);
            hint.grain = 3;
            run_region(pool, sizes[s], &hint, width);
            hint.max_slots = 2;
            run_region(pool, sizes[s], &hint, width);
            hint.max_slots = 1;
            run_region(pool, sizes[s], &hint, width);
        }
    }
}

static void run_nested(weir_threadpool *pool, int32_t width) {
    weir_parallel_hint hint = costly(100000);
    tally_reset(40, 1, width + 1);
    count.nested = 1;
    count.pool = pool;
    CHECK_OK(weir_parallel_for(pool, 40, &hint, count_range, &count));
    check_each_item_once();
    CHECK_EQ(atomic_load(&count.inner), 64 * atomic_load(&count.pieces));
}

/* A piece that fails stops the pieces that have not begun; each slot may have begun one. */
static void run_failing(weir_threadpool *pool, int32_t width) {
    weir_parallel_hint hint = costly(100000);
    tally_reset(10000, 1, width + 1);
    count.fail_with = WEIR_DATA_LOSS;
    CHECK_CODE(weir_parallel_for(pool, 10000, &hint, count_range, &count), WEIR_DATA_LOSS, "weir_parallel_for: ");
    CHECK(atomic_load(&count.pieces) >= 1 && atomic_load(&count.pieces) <= width + 1);
    for (int64_t i = 0; i < MAX_ITEMS; i++) CHECK(atomic_load(&count.items[i]) <= 1);

    tally_reset(10, 1, width + 1);
    count.fail_with = 4711;
    CHECK_CODE(weir_parallel_for(pool, 10, &hint, count_range, &count), WEIR_UNKNOWN, "4711");
    run_region(pool, 100, &hint, width); /* the pool is none the worse for it */
}

static void test_kinds(void) {
    static const int widths[] = {1, 2, 5};
    for (int kind = 0; kind < POOL_KINDS; kind++) {
        for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
            weir_threadpool *pool = NULL;
            test_pool *host = test_pool_create((pool_kind)kind, widths[w], &pool);
            for (int round = 0; round < scale(20); round++) {
                run_regions(pool, widths[w]);
                run_nested(pool, widths[w]);
                run_failing(pool, widths[w]);
            }
            test_pool_let_go(host);
            weir_threadpool_release(pool);
            test_pool_destroy(host);
        }
    }
}

static void test_reference_pools(void) {
    weir_threadpool_attr *attr = NULL;
    CHECK_OK(weir_threadpool_attr_create(&attr));
    for (int32_t width = 1; width <= 7; width += 3) {
        weir_threadpool *builtin = NULL, *seeded = NULL;
        CHECK_OK(weir_threadpool_attr_set_num_threads(attr, width));
        CHECK_OK(weir_threadpool_create_builtin(attr, &builtin));
        CHECK_OK(weir_threadpool_create_seeded((uint64_t)width, width, &seeded));
        for (int round = 0; round < scale(20); round++) {
            run_regions(builtin, width);
            run_nested(builtin, width);
            run_failing(builtin, width);
            run_regions(seeded, width);
            run_nested(seeded, width);
            run_failing(seeded, width);
        }
        weir_threadpool_release(builtin);
        weir_threadpool_release(seeded);
    }
    weir_threadpool_attr_destroy(attr);

    weir_threadpool *in_caller = NULL;
    CHECK_OK(weir_threadpool_create_inline(&in_caller));
    run_regions(in_caller, 1);
    run_nested(in_caller, 1);
    weir_threadpool_release(in_caller);
    run_regions(NULL, 0); /* no pool: the caller, in slot 0 */
    run_nested(NULL, 0);
    run_failing(NULL, 0);
}

static int32_t add_caller(void *arg, int64_t begin, int64_t end, int32_t slot) {
    atomic_int *callers = arg;
    (void)slot, (void)begin, (void)end;
    atomic_fetch_add(&callers[test_pool_is_here(NULL)], 1);
    return WEIR_OK;
}

/* A pool that refuses everything leaves all of the work to the caller. */
static void test_refusing(void) {
    weir_threadpool *pool = NULL;
    test_pool *host = test_pool_create_exact(POOL_REFUSING, 4, &pool);
    weir_parallel_hint hint = costly(1000000);
    atomic_int callers[2] = {0, 0};
    CHECK_OK(weir_parallel_for(pool, 100, &hint, add_caller, callers));
    CHECK_EQ(atomic_load(&callers[0]), 0);
    CHECK(atomic_load(&callers[1]) > 0); /* test_pool_is_here(NULL): a thread of no pool */
    CHECK(test_pool_counters(host).refused > 0);
    CHECK_EQ(test_pool_counters(host).tasks, 0);
    weir_threadpool_release(pool);
    test_pool_destroy(host);
}

/* Work that is worth it does go to the pool's threads. */
static int32_t slow_range(void *arg, int64_t begin, int64_t end, int32_t slot) {
    (void)slot;
    for (int64_t i = begin; i < end; i++) sleep_ms(2);
    return add_caller(arg, begin, end, slot);
}

static void test_work_reaches_the_pool(void) {
    static const pool_kind kinds[] = {POOL_FIFO, POOL_LIFO, POOL_PARALLEL_FOR, POOL_ASYNCHRONOUS, POOL_FULL};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        weir_threadpool *pool = NULL;
        test_pool *host = test_pool_create_threaded(kinds[k], 3, &pool);
        weir_parallel_hint hint = costly(2000000);
        atomic_int callers[2] = {0, 0};
        CHECK_OK(weir_parallel_for(pool, 64, &hint, slow_range, callers));
        CHECK(atomic_load(&callers[0]) > 0);
        EVENTUALLY(test_pool_counters(host).tasks > 0);
        weir_threadpool_release(pool);
        test_pool_destroy(host);
    }
}

static atomic_int width_now = 3;
static atomic_int width_released;

static int32_t changing_width(void *ctx) {
    (void)ctx;
    return atomic_load(&width_now);
}

static int32_t run_all(void *ctx, int32_t n, weir_task_fn fn, void *arg) {
    (void)ctx;
    for (int32_t i = 0; i < n; i++) fn(arg, i);
    return 0;
}

static void count_release(void *ctx) {
    atomic_fetch_add((atomic_int *)ctx, 1);
}

static void test_width_and_flags(void) {
    weir_threadpool_vtable vtable = {.struct_size = sizeof vtable,
                                     .flags = WEIR_THREADPOOL_AUTO_BALANCING,
                                     .num_threads = changing_width,
                                     .parallel_for = run_all,
                                     .release = count_release};
    static const int widths[] = {3, 8, 1, 0, -5};
    weir_threadpool *pool = NULL;
    uint64_t flags = 0;
    CHECK_OK(weir_threadpool_create(&vtable, &width_released, &pool));
    CHECK_OK(weir_threadpool_get_flags(pool, &flags));
    CHECK_EQ(flags, WEIR_THREADPOOL_AUTO_BALANCING);
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
        int32_t seen = -1;
        atomic_store(&width_now, widths[w]);
        CHECK_OK(weir_threadpool_get_num_threads(pool, &seen));
        CHECK_EQ(seen, widths[w] < 1 ? 1 : widths[w]);
        run_region(pool, 1000, NULL, seen);
    }
    weir_threadpool_release(pool);
    EVENTUALLY(atomic_load(&width_released) == 1);
}

/* A host may be older than the library (fewer members) or newer (more, all zero). */
static void test_vtable_versions(void) {
    struct {
        weir_threadpool_vtable known;
        char beyond[64];
    } newer;
    weir_threadpool *pool = NULL;
    static atomic_int released;

    memset(&newer, 0, sizeof newer);
    newer.known.struct_size = sizeof newer;
    newer.known.num_threads = changing_width;
    newer.known.parallel_for = run_all;
    newer.known.release = count_release;
    atomic_store(&width_now, 2);
    CHECK_OK(weir_threadpool_create(&newer.known, &released, &pool));
    run_region(pool, 1000, NULL, 2);
    weir_threadpool_release(pool);
    EVENTUALLY(atomic_load(&released) == 1);

    newer.beyond[17] = 1;
    CHECK_CODE(weir_threadpool_create(&newer.known, &released, &pool), WEIR_INVALID_ARGUMENT,
               "vtable sets members that this version of weir does not know");
    CHECK(pool == NULL);
    CHECK_EQ(atomic_load(&released), 1);

    weir_threadpool_vtable older = newer.known;
    older.struct_size = offsetof(weir_threadpool_vtable, max_threads);
    memset(&older.max_threads, 0xff, sizeof older.max_threads); /* beyond its end: never read, never called */
    CHECK_OK(weir_threadpool_create(&older, &released, &pool));
    run_region(pool, 1000, NULL, 2);
    weir_threadpool_release(pool);
    EVENTUALLY(atomic_load(&released) == 2);
}

typedef struct seen_from_task {
    weir_threadpool *pool;
    test_pool *host;
    atomic_int in_parallel;
    atomic_int is_worker;
} seen_from_task;

static int32_t look_around(void *arg) {
    seen_from_task *seen = arg;
    int32_t in_parallel = -1;
    CHECK_OK(weir_threadpool_in_parallel(seen->pool, &in_parallel));
    atomic_store(&seen->is_worker, test_pool_is_here(seen->host));
    atomic_store(&seen->in_parallel, in_parallel);
    return WEIR_OK;
}

/* With the host's own in_parallel and without it. */
static void test_in_parallel(void) {
    static const pool_kind kinds[] = {POOL_FIFO, POOL_FULL};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        seen_from_task seen = {.in_parallel = -1, .is_worker = -1};
        int32_t outside = -1;
        seen.host = test_pool_create_threaded(kinds[k], 1, &seen.pool);
        weir_engine *engine = make_engine(seen.pool);
        weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
        CHECK_OK(weir_threadpool_in_parallel(seen.pool, &outside));
        CHECK_EQ(outside, 0);
        CHECK_OK(weir_enqueue_task(stream, look_around, &seen, NULL));
        EVENTUALLY(atomic_load(&seen.in_parallel) != -1); /* not by waiting: that could run it here */
        CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
        CHECK_EQ(atomic_load(&seen.is_worker), 1);
        CHECK_EQ(atomic_load(&seen.in_parallel), 1);
        weir_stream_release(stream);
        weir_engine_release(engine);
        weir_threadpool_release(seen.pool);
        test_pool_destroy(seen.host);
    }
}

static int32_t note_run(void *arg) {
    atomic_fetch_add((atomic_int *)arg, 1);
    return WEIR_OK;
}

/* Attributes, engines, streams and queued work each keep a pool alive; it is released once, when the last is gone. */
static void test_release_once(void) {
    weir_runtime_info before = runtime_info();
    weir_threadpool *pool = NULL;
    test_pool *host = test_pool_create_exact(POOL_LATE, 2, &pool);
    weir_stream_attr *attr = NULL;
    atomic_int runs = 0;
    CHECK_OK(weir_stream_attr_create(WEIR_ENGINE_CPU, &attr));
    CHECK_OK(weir_stream_attr_set_threadpool(attr, pool));
    CHECK_OK(weir_threadpool_retain(pool));
    weir_threadpool_release(pool);
    weir_threadpool_release(pool);
    CHECK_EQ(test_pool_counters(host).released, 0);
    CHECK_EQ(runtime_info().threadpools, before.threadpools + 1);

    weir_engine *engine = make_engine(NULL);
    weir_stream *stream = NULL;
    CHECK_OK(weir_stream_create(engine, WEIR_STREAM_ASYNCHRONOUS, attr, &stream));
    weir_stream_attr_destroy(attr);
    CHECK_EQ(test_pool_counters(host).released, 0);
    CHECK_OK(weir_enqueue_task(stream, note_run, &runs, NULL));
    weir_stream_release(stream);
    weir_engine_release(engine);
    CHECK_EQ(test_pool_counters(host).released, 0);
    CHECK_EQ(atomic_load(&runs), 0);

    test_pool_let_go(host);
    EVENTUALLY((void)runtime_info(), test_pool_counters(host).released == 1);
    CHECK_EQ(atomic_load(&runs), 1);
    test_pool_destroy(host);
    check_released(&before);
}

static atomic_int slow_released;

static void release_slowly(void *ctx) {
    (void)ctx;
    sleep_ms(50);
    atomic_store(&slow_released, 1);
}

static int32_t two(void *ctx) {
    (void)ctx;
    return 2;
}

static void *release_pool(void *arg) {
    weir_threadpool_release(arg);
    return NULL;
}

/* The count of pools falls when release has returned: a host that reads it may unload what release runs. */
static void test_counted_until_released(void) {
    weir_threadpool_vtable vtable = {
        .struct_size = sizeof vtable, .num_threads = two, .parallel_for = run_all, .release = release_slowly};
    weir_runtime_info before = runtime_info();
    weir_threadpool *pool = NULL;
    pthread_t thread;
    CHECK_OK(weir_threadpool_create(&vtable, NULL, &pool));
    CHECK_EQ(pthread_create(&thread, NULL, release_pool, pool), 0);
    EVENTUALLY(runtime_info().threadpools == before.threadpools);
    CHECK_EQ(atomic_load(&slow_released), 1);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

/* The built-in pool starts threads when it is first used, counts them, and ends them after its release. */
static void test_builtin_threads(void) {
    weir_runtime_info before = runtime_info();
    weir_threadpool *pool = NULL;
    weir_threadpool_attr *attr = NULL;
    int32_t width = 0;
    uint64_t spin = 1;
    CHECK_OK(weir_threadpool_attr_create(&attr));
    CHECK_OK(weir_threadpool_attr_get_num_threads(attr, &width));
    CHECK_EQ(width, 0);
    CHECK_OK(weir_threadpool_attr_get_spin_ns(attr, &spin));
    CHECK_EQ(spin, 20000);
    CHECK_OK(weir_threadpool_attr_set_spin_ns(attr, 0));
    CHECK_OK(weir_threadpool_attr_get_spin_ns(attr, &spin));
    CHECK_EQ(spin, 0);
    CHECK_OK(weir_threadpool_attr_set_num_threads(attr, 2));
    CHECK_OK(weir_threadpool_attr_get_num_threads(attr, &width));
    CHECK_EQ(width, 2);
    CHECK_OK(weir_threadpool_create_builtin(attr, &pool));
    weir_threadpool_attr_destroy(attr);
    CHECK_EQ(runtime_info().threads_started, before.threads_started + 2);
    CHECK(runtime_info().threads_alive <= before.threads_alive + 2); /* threads of earlier pools may end now */
    run_regions(pool, 2);
    CHECK_EQ(runtime_info().threads_started, before.threads_started + 2);
    weir_threadpool_release(pool);
    check_released(&before);
}

/* NULL attributes: as many threads as WEIR_NUM_THREADS says. */
static void test_builtin_default_width(void) {
    weir_threadpool *pool = NULL;
    int32_t width = 0;
    CHECK_OK(weir_threadpool_create_builtin(NULL, &pool));
    CHECK_OK(weir_threadpool_get_num_threads(pool, &width));
    CHECK_EQ(width, 3);
    weir_threadpool_release(pool);
}

int main(void) {
    setenv("WEIR_NUM_THREADS", "3", 1);
    weir_runtime_info before = runtime_info();
    test_kinds();
    test_reference_pools();
    test_refusing();
    test_work_reaches_the_pool();
    test_width_and_flags();
    test_vtable_versions();
    test_in_parallel();
    test_release_once();
    test_counted_until_released();
    test_builtin_threads();
    test_builtin_default_width();
    check_released(&before);
    return 0;
}

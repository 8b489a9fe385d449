/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 *     pool_replaced <kind> <threads> <kind of threaded> <threads of threaded>
 *
 * WEIR_TEST_POOL does put another pool in the place of those that tests ask for, where they let it, and that pool has
 * the property that it is there for.
 */

#include "make.h"
#include "test_pools.h"

typedef test_pool *create_fn(pool_kind kind, int num_threads, weir_threadpool **out_handle);

static int32_t note_thread(void *arg, int64_t begin, int64_t end, int32_t slot) {
    (void)slot;
    sleep_ns(100000 * (uint64_t)(end - begin));
    atomic_fetch_add((atomic_int *)arg, (int)(end - begin));
    return WEIR_OK;
}

static pool_counters check_kind(create_fn *create, const char *kind, int threads) {
    weir_threadpool *pool = NULL;
    test_pool *host = create(POOL_FIFO, 3, &pool);
    weir_parallel_hint hint = {.struct_size = sizeof hint, .cost_ns = 1000000};
    int32_t width = 0;
    atomic_int items = 0;
    CHECK_TEXT(pool_kind_name(test_pool_kind(host)), kind);
    CHECK_OK(weir_threadpool_get_num_threads(pool, &width));
    CHECK_EQ(width, threads);
    for (int i = 0; i < 20; i++) CHECK_OK(weir_parallel_for(pool, 12, &hint, note_thread, &items));
    CHECK_EQ(atomic_load(&items), 20 * 12);
    weir_threadpool_release(pool);
    EVENTUALLY((void)runtime_info(), test_pool_counters(host).released == 1);
    EVENTUALLY(test_pool_counters(host).ended == test_pool_counters(host).tasks);
    pool_counters counters = test_pool_counters(host);
    test_pool_destroy(host);
    return counters;
}

int main(int argc, char **argv) {
    CHECK(argc == 5);
    pool_counters counters = check_kind(test_pool_create, argv[1], atoi(argv[2]));
    int refuses = strcmp(argv[1], "half") == 0 || strcmp(argv[1], "seeded") == 0;
    CHECK(counters.scheduled > 0 && (counters.refused > 0) == refuses);
    CHECK_EQ(check_kind(test_pool_create_threaded, argv[3], atoi(argv[4])).refused, 0);
    CHECK_EQ(check_kind(test_pool_create_exact, "fifo", 3).refused, 0);
    return 0;
}

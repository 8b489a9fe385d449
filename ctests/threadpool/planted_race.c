/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 *     planted_race host|library
 *
 * Two races on purpose, which a race detector that is worth its name must report: one in the memory of the host, among
 * the pieces of a region, and one in the memory of the library, whose attributes are for one thread at a time.
 */

#include <pthread.h>

#include "make.h"
#include "test_pools.h"

enum { THREADS = 2, ROUNDS = 1000 };

static long sum;
static atomic_int pieces;

/* The first piece waits for a second one, so that they run on two threads. Relaxed: no order comes from it. */
static int32_t add_without_a_lock(void *arg, int64_t begin, int64_t end, int32_t slot) {
    (void)arg, (void)slot;
    atomic_fetch_add_explicit(&pieces, 1, memory_order_relaxed);
    EVENTUALLY(atomic_load_explicit(&pieces, memory_order_relaxed) >= 2);
    for (int64_t i = begin; i < end; i++) sum += i;
    return WEIR_OK;
}

static void race_in_the_host(void) {
    weir_threadpool *pool = NULL;
    test_pool *host = test_pool_create_exact(POOL_FIFO, THREADS, &pool);
    weir_parallel_hint hint = {.struct_size = sizeof hint, .cost_ns = 1000000};
    CHECK_OK(weir_parallel_for(pool, 1000, &hint, add_without_a_lock, NULL));
    weir_threadpool_release(pool);
    test_pool_destroy(host);
}

static pthread_barrier_t start;

static void *set_and_get(void *arg) {
    weir_threadpool_attr *attr = arg;
    uint64_t spin_ns = 0;
    pthread_barrier_wait(&start);
    for (int i = 0; i < ROUNDS; i++) {
        CHECK_OK(weir_threadpool_attr_set_spin_ns(attr, 1000));
        CHECK_OK(weir_threadpool_attr_get_spin_ns(attr, &spin_ns));
    }
    return NULL;
}

static void race_in_the_library(void) {
    weir_threadpool_attr *attr = NULL;
    pthread_t threads[THREADS];
    CHECK_OK(weir_threadpool_attr_create(&attr));
    CHECK(pthread_barrier_init(&start, NULL, THREADS) == 0);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, set_and_get, attr) == 0);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    weir_threadpool_attr_destroy(attr);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    if (strcmp(argv[1], "host") == 0) race_in_the_host();
    else if (strcmp(argv[1], "library") == 0) race_in_the_library();
    else CHECK(!"host or library");
    return 0;
}

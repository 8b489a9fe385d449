/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 *     planted_race host|library
 *
 * Two races on purpose, which a race detector that is worth its name must report: one in the memory of the host, among
 * the pieces of a region, and one in the memory of the library, whose attributes are for one thread at a time.
 */

#include <pthread.h>
#include <sched.h>

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

static weir_stream_attr *shared;
static atomic_int rounds[THREADS];

/* Each round begins in both threads at once: one that is through before the other begins may be ordered by what the
 * calls do besides. Relaxed, as above. */
static void *set_and_get(void *arg) {
    atomic_int *own = arg, *other = &rounds[own == rounds];
    uint64_t spin_ns = 0;
    for (int i = 1; i <= ROUNDS; i++) {
        atomic_store_explicit(own, i, memory_order_relaxed);
        while (atomic_load_explicit(other, memory_order_relaxed) < i) sched_yield();
        CHECK_OK(weir_stream_attr_set_spin_ns(shared, 1000));
        CHECK_OK(weir_stream_attr_get_spin_ns(shared, &spin_ns));
    }
    return NULL;
}

static void race_in_the_library(void) {
    pthread_t threads[THREADS];
    CHECK_OK(weir_stream_attr_create(WEIR_ENGINE_CPU, &shared));
    for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, set_and_get, &rounds[i]) == 0);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    weir_stream_attr_destroy(shared);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    if (strcmp(argv[1], "host") == 0) race_in_the_host();
    else if (strcmp(argv[1], "library") == 0) race_in_the_library();
    else CHECK(!"host or library");
    return 0;
}

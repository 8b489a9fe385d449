/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A pool that stands before another one and counts what weir asks for.
 */

#ifndef WEIR_CTESTS_SPY_H
#define WEIR_CTESTS_SPY_H

#include <stdatomic.h>

#include "test_pools.h"

typedef struct spy {
    weir_threadpool_vtable host; /* the pool behind it */
    void *ctx;
    atomic_int out, most_out;        /* tasks that were handed over and have not returned, now and at most */
    atomic_int offered;              /* calls of schedule and parallel_for */
    atomic_int least_n, most_n;      /* of parallel_for */
    atomic_int bulk_inside;          /* calls of parallel_for from inside a task */
    atomic_int width_asked;          /* calls of num_threads */
    atomic_int begun, ended;         /* tasks */
    atomic_int releases, release_inside, release_early;
    atomic_int calls_back;           /* whether schedule calls weir before it hands over */
    weir_threadpool *handle;
} spy;

/* Puts a spy before a pool of `kind`; the caller owns spy->handle. */
test_pool *spy_create(spy *s, pool_kind kind, int num_threads);

/* Waits for the release, and ends the pool. */
void spy_destroy(spy *s, test_pool *host);

/* Whether the calling thread is in a task of a spied pool. */
int spy_inside(void);

#endif /* WEIR_CTESTS_SPY_H */

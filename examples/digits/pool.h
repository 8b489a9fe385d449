/* A thread pool as a host program may have one: a queue, a mutex, a few threads.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef DIGITS_POOL_H
#define DIGITS_POOL_H

#include <stdint.h>

#include <weir.h>

struct pool;

typedef void (*pool_fn)(void *arg, int32_t i);

/* Starts the threads. NULL if that is not possible. */
struct pool *pool_create(int32_t threads);

/* Ends the threads when the queue is empty, and returns when weir has released every handle made with pool_to_weir. */
void pool_destroy(struct pool *pool);

/* Calls fn(arg, i) once for each 0 <= i < n, on the pool's threads and in the caller, and returns 0 when all have
 * returned. May be called from inside a job. */
int32_t pool_run(struct pool *pool, int32_t n, pool_fn fn, void *arg);

/* Queues the same n calls and returns 0 at once; nonzero if it cannot, then nothing is called. */
int32_t pool_submit(struct pool *pool, int32_t n, pool_fn fn, void *arg);

/* How many calls the pool has made so far, on its threads and in callers of pool_run. */
uint64_t pool_calls(struct pool *pool);

/* What weir is shown of the pool: pool_run as parallel_for, pool_submit as schedule. One of them is enough. */
enum pool_offer { POOL_PARALLEL_FOR = 1, POOL_SCHEDULE = 2, POOL_BOTH = 3 };

/* Makes a weir handle for the pool; several may exist. The caller owns one reference to *out_handle. */
weir_status pool_to_weir(struct pool *pool, enum pool_offer offer, weir_threadpool **out_handle);

#endif

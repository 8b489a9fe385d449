/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Thread pools as hosts bring them: each kind keeps the contract in another way. They count what they are asked for.
 */

#ifndef WEIR_CTESTS_TEST_POOLS_H
#define WEIR_CTESTS_TEST_POOLS_H

#include <stdbool.h>
#include <stdint.h>

#include "weir.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum pool_kind {
    POOL_FIFO,         /* schedule only, the oldest task first */
    POOL_LIFO,         /* schedule only, the newest task first */
    POOL_PARALLEL_FOR, /* parallel_for only; it returns when all tasks have */
    POOL_ASYNCHRONOUS, /* parallel_for only; it returns when all tasks are queued */
    POOL_FULL,         /* every member, nested calls welcome, many small tasks welcome */
    POOL_INLINE,       /* schedule and parallel_for run everything in their caller */
    POOL_REFUSING,     /* refuses everything */
    POOL_HALF,         /* schedule only, and refuses every second task */
    POOL_SEEDED,       /* draws whether to refuse a task, to run it in its caller, or when to run it */
    POOL_LATE,         /* schedule only; holds tasks back until test_pool_let_go */
    POOL_KINDS
} pool_kind;

typedef struct test_pool test_pool;

typedef struct pool_counters {
    int64_t tasks;        /* tasks begun */
    int64_t ended;        /* tasks that have returned */
    int64_t scheduled;    /* calls of schedule that were accepted */
    int64_t parallel_for; /* calls of parallel_for that were accepted */
    int64_t refused;      /* calls of either that were refused */
    int64_t released;     /* calls of release */
    int32_t priority;     /* of the last hint */
} pool_counters;

const char *pool_kind_name(pool_kind kind);

/* Whether a task that the pool accepts is left to threads of its own, so that it may wait for who handed it over. */
bool pool_kind_is_threaded(pool_kind kind);

/* A pool of `num_threads` threads, and a weir handle for it that the caller owns.
 *
 * The suite runs with other pools in the place of those that its tests ask for, too. WEIR_TEST_POOL says with which:
 *
 *     inline        POOL_INLINE
 *     one           POOL_FIFO with one thread
 *     lifo          POOL_LIFO
 *     half          POOL_HALF
 *     seeded:<n>    POOL_SEEDED, drawing from n and from the number of pools made before
 *
 * Each test says what its result depends on: on no property of the pool (test_pool_create), on tasks being left to the
 * pool's own threads, of which one is enough (test_pool_create_threaded: only `one` and `lifo` replace it), or on this
 * very kind and width (test_pool_create_exact: nothing replaces it). */
test_pool *test_pool_create(pool_kind kind, int num_threads, weir_threadpool **out_handle);
test_pool *test_pool_create_threaded(pool_kind kind, int num_threads, weir_threadpool **out_handle);
test_pool *test_pool_create_exact(pool_kind kind, int num_threads, weir_threadpool **out_handle);

/* What the pool is, and not what was asked for. */
pool_kind test_pool_kind(const test_pool *pool);

/* The same without a handle: for those that show weir a vtable of their own. */
test_pool *test_pool_create_bare(pool_kind kind, int num_threads);

/* The pool's vtable; its context is the test_pool. */
weir_threadpool_vtable test_pool_vtable(const test_pool *pool);

/* Waits until weir has released the pool, and ends its threads. A second release or a task left over fails the test. */
void test_pool_destroy(test_pool *pool);

pool_counters test_pool_counters(const test_pool *pool);

/* Whether the calling thread is one of the pool's. */
bool test_pool_is_here(const test_pool *pool);

/* POOL_LATE: tasks run from now on / are held back from now on. */
void test_pool_let_go(test_pool *pool);
void test_pool_hold(test_pool *pool);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_CTESTS_TEST_POOLS_H */

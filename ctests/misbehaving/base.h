/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * An honest pool, of which the other files here are variations. It offers every function of the vtable.
 */

#ifndef WEIR_CTESTS_MISBEHAVING_BASE_H
#define WEIR_CTESTS_MISBEHAVING_BASE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "weir/conformance.h"

enum { BASE_THREADS = 3 };

typedef struct base_region {
    int32_t left;
    pthread_cond_t done;
} base_region;

typedef struct base_task {
    weir_task_fn fn;
    void *arg;
    int32_t i;
    base_region *region; /* NULL for a task that nobody waits for */
    struct base_task *next;
    struct base_task *previous;
} base_task;

typedef struct base_pool {
    int num_threads;   /* that it has */
    bool newest_first;
    long delay_ns;     /* before each task */
    atomic_int calls;  /* for pools that do something at every n-th call */
    base_task last;    /* a copy of the last task that schedule was given */
    pthread_mutex_t mutex;
    pthread_cond_t work;
    base_task *oldest;
    base_task *newest;
    bool ending;
    pthread_t threads[8];
} base_pool;

/* Makes a pool with threads; NULL if there is no memory or no thread. */
base_pool *base_create(int num_threads);

/* All functions of an honest pool over a base_pool. */
weir_threadpool_vtable base_vtable(void);

/* Fills the two outputs of a weir_conformance_pool function; the second one with a new pool of BASE_THREADS. */
int base_offer_pool(base_pool *pool, weir_threadpool_vtable vtable, weir_threadpool_vtable *out_vtable, void **out_ctx);
int base_offer(weir_threadpool_vtable vtable, weir_threadpool_vtable *out_vtable, void **out_ctx);

/* The honest functions, for those that change them a little. */
int32_t base_num_threads(void *ctx);
int32_t base_schedule(void *ctx, weir_task_fn fn, void *arg, const weir_task_hint *hint);
int32_t base_parallel_for(void *ctx, int32_t n, weir_task_fn fn, void *arg);
int32_t base_team_parallel_for(void *ctx, int32_t n, weir_task_fn fn, void *arg); /* the caller runs index 0 */
int32_t base_in_parallel(void *ctx);
int32_t base_thread_index(void *ctx);
int32_t base_help(void *ctx);
void base_release(void *ctx);

/* Queues one task; wakes a thread if `wake`. */
void base_push(base_pool *pool, weir_task_fn fn, void *arg, int32_t i, base_region *region, bool wake);

/* Whether this is one call of `every`. */
bool base_turn(base_pool *pool, int every);

void base_sleep(long ns);

#endif /* WEIR_CTESTS_MISBEHAVING_BASE_H */

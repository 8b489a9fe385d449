/* OpenMP's threads as a weir thread pool. C99 or later, C++11 or later; compile with OpenMP on (-fopenmp).
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 *     weir_threadpool *pool;
 *     weir_status status = weir_openmp_threadpool_create(0, &pool);
 *
 * Gives weir a parallel_for: regions, kernels and graphs run on a team of OpenMP threads, of which the caller is one.
 *
 * Ownership: the threads stay the OpenMP runtime's. The pool itself is a few bytes, which weir gives back.
 *
 * Limits, which are OpenMP's:
 *  - There are no single tasks outside of a parallel region, so there is no schedule. An asynchronous stream on this
 *    pool has a thread of weir's own.
 *  - A runtime gives each thread that starts a region a team of its own. So that k threads that call weir at once do
 *    not have k teams, the pool has one team at a time: the others do their region alone.
 *  - Every region wakes the whole team, because a runtime that is asked for teams of changing sizes may end threads and
 *    start them again. Ask for fewer threads where the work is small.
 *  - How long idle threads spin is the runtime's choice: OMP_WAIT_POLICY=passive keeps them asleep.
 *  - Inside a parallel region weir works in the calling thread, unless nesting is on when the pool is made
 *    (omp_set_max_active_levels above 1). Then a nested region starts a team of the size that it needs.
 */

#ifndef WEIR_ADAPTERS_OPENMP_H
#define WEIR_ADAPTERS_OPENMP_H

#ifndef _OPENMP
#error "weir/adapters/openmp.h needs OpenMP: compile with -fopenmp"
#endif

#include <omp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../weir.h"

#ifdef __cplusplus
#if defined(__GNUC__)
/* This header is for C as well, so its casts are those of C. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast"
#endif
extern "C" {
#endif

typedef struct weir_openmp_pool {
    int team;    /* threads of a team, the caller among them */
    int helpers; /* threads that are lent to regions now, without their callers; changed by several threads */
} weir_openmp_pool;

/* The caller is one of the team, and weir does not count its caller. */
static inline int32_t weir_openmp_num_threads(void *ctx) {
    const int team = ((weir_openmp_pool *)ctx)->team;
    return team > 1 ? team - 1 : 1;
}

/* Lends `helpers` threads to a region, if there are so many; outside of all regions only to one at a time. */
static inline int weir_openmp_lend(weir_openmp_pool *pool, int helpers) {
    int before;
#pragma omp atomic capture
    {
        before = pool->helpers;
        pool->helpers += helpers;
    }
    if (omp_in_parallel() ? before + helpers < pool->team : before == 0) return 1;
#pragma omp atomic update
    pool->helpers -= helpers;
    return 0;
}

static inline int32_t weir_openmp_parallel_for(void *ctx, int32_t n, weir_task_fn fn, void *arg) {
    weir_openmp_pool *pool = (weir_openmp_pool *)ctx;
    const int helpers = n < pool->team ? (int)n - 1 : pool->team - 1;
    int32_t i;
    if (helpers > 0 && weir_openmp_lend(pool, helpers)) {
        const int threads = omp_in_parallel() ? helpers + 1 : pool->team;
        /* A loop and not a task for each thread number: the runtime may give fewer threads than asked for. */
#pragma omp parallel for num_threads(threads) schedule(static, 1)
        for (i = 0; i < n; i++) fn(arg, i);
#pragma omp atomic update
        pool->helpers -= helpers;
    } else {
        for (i = 0; i < n; i++) fn(arg, i);
    }
    return 0;
}

/* Threads of the host's own parallel regions count too: all of the machine is busy there already. */
static inline int32_t weir_openmp_in_parallel(void *ctx) {
    (void)ctx;
    return omp_in_parallel();
}

static inline void weir_openmp_release(void *ctx) {
    free(ctx);
}

/* The vtable and its context, for those who call weir_threadpool_create themselves: release frees the context. *out_ctx
 * is NULL if there is no memory. num_threads as below. */
static inline weir_threadpool_vtable weir_openmp_vtable(int32_t num_threads, void **out_ctx) {
    weir_openmp_pool *pool = (weir_openmp_pool *)calloc(1, sizeof *pool);
    weir_threadpool_vtable vtable;
    memset(&vtable, 0, sizeof vtable);
    vtable.struct_size = sizeof vtable;
    vtable.flags = omp_get_max_active_levels() > 1 ? (uint64_t)WEIR_THREADPOOL_NESTED : 0;
    vtable.num_threads = weir_openmp_num_threads;
    vtable.max_threads = weir_openmp_num_threads;
    vtable.parallel_for = weir_openmp_parallel_for;
    vtable.in_parallel = weir_openmp_in_parallel;
    vtable.release = weir_openmp_release;
    if (pool != NULL) pool->team = num_threads > 0 ? (int)num_threads : omp_get_max_threads();
    *out_ctx = pool;
    return vtable;
}

/* Makes a pool whose regions run on `num_threads` OpenMP threads, the caller among them; 0 or less: as many as
 * omp_get_max_threads() says now. The caller owns one reference to *out_pool. Errors: RESOURCE_EXHAUSTED, and as
 * weir_threadpool_create. */
static inline weir_status weir_openmp_threadpool_create(int32_t num_threads, weir_threadpool **out_pool) {
    void *ctx;
    const weir_threadpool_vtable vtable = weir_openmp_vtable(num_threads, &ctx);
    weir_status status;
    if (ctx == NULL) {
        if (out_pool != NULL) *out_pool = NULL;
        return WEIR_RESOURCE_EXHAUSTED;
    }
    status = weir_threadpool_create(&vtable, ctx, NULL, out_pool);
    if (status != WEIR_OK) weir_openmp_release(ctx);
    return status;
}

#ifdef __cplusplus
}
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif
#endif

#endif /* WEIR_ADAPTERS_OPENMP_H */

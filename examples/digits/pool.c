/* The pool of the digits demo: a FIFO queue of jobs under one mutex.
 *
 * A job is a function to be called n times. Threads take the indices of the first job in the queue one after the other;
 * the thread that takes the last index takes the job out of the queue, and the thread that returns from the last call
 * ends the job. Whoever waits in pool_run first takes indices of its own job, so it only ever waits for calls that
 * other threads are already in: a pool_run inside a job cannot deadlock, however few threads there are.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "pool.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

struct job {
    pool_fn fn;
    void *arg;
    int32_t n;          /* calls to make */
    int32_t taken;      /* indices given to threads so far */
    int32_t unfinished; /* calls that have not returned */
    bool spare;         /* from pool->spare, otherwise on the stack of a pool_run */
    struct job *next;
};

struct pool {
    pthread_mutex_t mutex;
    pthread_cond_t work;     /* a job was queued, or the end has come */
    pthread_cond_t progress; /* a job ended, or weir released a handle */
    struct job *first;
    struct job **end;        /* where the next job is linked in */
    struct job *free;        /* jobs for pool_submit: a fixed number, so that it never allocates */
    int32_t threads;
    int32_t handles;         /* weir handles not yet released */
    uint64_t calls;          /* made so far */
    bool stop;
    pthread_t ids[64];
    struct job spare[256];
};

static _Thread_local struct pool *current_pool;

static void enqueue(struct pool *pool, struct job *job) {
    job->next = NULL;
    *pool->end = job;
    pool->end = &job->next;
    if (job->n == 1) {
        pthread_cond_signal(&pool->work);
    } else {
        pthread_cond_broadcast(&pool->work);
    }
}

static void unlink_job(struct pool *pool, struct job *job) {
    struct job **at = &pool->first;
    while (*at != job) {
        at = &(*at)->next;
    }
    *at = job->next;
    if (pool->end == &job->next) {
        pool->end = at;
    }
}

/* Makes one call of a job. The mutex is held on entry and on return, but not during the call. */
static void call_once(struct pool *pool, struct job *job) {
    int32_t i = job->taken++;
    pool->calls++;
    if (job->taken == job->n) {
        unlink_job(pool, job);
    }
    pthread_mutex_unlock(&pool->mutex);
    job->fn(job->arg, i);
    pthread_mutex_lock(&pool->mutex);
    if (--job->unfinished > 0) {
        return;
    }
    if (job->spare) {
        job->next = pool->free;
        pool->free = job;
    } else {
        pthread_cond_broadcast(&pool->progress);
    }
}

static void *thread_main(void *arg) {
    struct pool *pool = current_pool = arg;
    pthread_mutex_lock(&pool->mutex);
    for (;;) {
        if (pool->first != NULL) {
            call_once(pool, pool->first);
        } else if (pool->stop) {
            break;
        } else {
            pthread_cond_wait(&pool->work, &pool->mutex);
        }
    }
    pthread_mutex_unlock(&pool->mutex);
    return NULL;
}

int32_t pool_run(struct pool *pool, int32_t n, pool_fn fn, void *arg) {
    struct job job = {.fn = fn, .arg = arg, .n = n, .unfinished = n};
    if (n <= 0) {
        return 0;
    }
    pthread_mutex_lock(&pool->mutex);
    enqueue(pool, &job);
    while (job.taken < n) {
        call_once(pool, &job);
    }
    while (job.unfinished > 0) {
        pthread_cond_wait(&pool->progress, &pool->mutex);
    }
    pthread_mutex_unlock(&pool->mutex);
    return 0;
}

int32_t pool_submit(struct pool *pool, int32_t n, pool_fn fn, void *arg) {
    if (n <= 0) {
        return 0;
    }
    pthread_mutex_lock(&pool->mutex);
    struct job *job = pool->stop ? NULL : pool->free;
    if (job != NULL) {
        pool->free = job->next;
        *job = (struct job){.fn = fn, .arg = arg, .n = n, .unfinished = n, .spare = true};
        enqueue(pool, job);
    }
    pthread_mutex_unlock(&pool->mutex);
    return job != NULL ? 0 : 1;
}

uint64_t pool_calls(struct pool *pool) {
    pthread_mutex_lock(&pool->mutex);
    uint64_t calls = pool->calls;
    pthread_mutex_unlock(&pool->mutex);
    return calls;
}

struct pool *pool_create(int32_t threads) {
    struct pool *pool = calloc(1, sizeof *pool);
    if (pool == NULL) {
        return NULL;
    }
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->work, NULL);
    pthread_cond_init(&pool->progress, NULL);
    pool->end = &pool->first;
    for (size_t i = 0; i < sizeof pool->spare / sizeof pool->spare[0]; i++) {
        pool->spare[i].next = pool->free;
        pool->free = &pool->spare[i];
    }
    const int32_t most = sizeof pool->ids / sizeof pool->ids[0];
    for (int32_t i = 0; i < threads && i < most; i++) {
        if (pthread_create(&pool->ids[i], NULL, thread_main, pool) != 0) {
            pool_destroy(pool);
            return NULL;
        }
        pool->threads++;
    }
    return pool;
}

void pool_destroy(struct pool *pool) {
    pthread_mutex_lock(&pool->mutex);
    pool->stop = true;
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->mutex);
    for (int32_t i = 0; i < pool->threads; i++) {
        pthread_join(pool->ids[i], NULL);
    }
    /* weir never calls release inside a task. If its last reference went there, release comes with the next call of
     * weir from elsewhere, whichever that is. */
    weir_threadpool_release(NULL);
    pthread_mutex_lock(&pool->mutex);
    while (pool->handles > 0) {
        pthread_cond_wait(&pool->progress, &pool->mutex);
    }
    pthread_mutex_unlock(&pool->mutex);
    pthread_cond_destroy(&pool->progress);
    pthread_cond_destroy(&pool->work);
    pthread_mutex_destroy(&pool->mutex);
    free(pool);
}

/* From here on: the pool as weir sees it. */

static int32_t on_num_threads(void *ctx) {
    return ((struct pool *)ctx)->threads;
}

static int32_t on_parallel_for(void *ctx, int32_t n, weir_task_fn task, void *arg) {
    return pool_run(ctx, n, task, arg);
}

static int32_t on_schedule(void *ctx, weir_task_fn task, void *arg, const weir_task_hint *hint) {
    (void)hint; /* a FIFO queue has no use for priorities */
    return pool_submit(ctx, 1, task, arg);
}

static int32_t on_in_parallel(void *ctx) {
    return current_pool == ctx;
}

static void on_release(void *ctx) {
    struct pool *pool = ctx;
    pthread_mutex_lock(&pool->mutex);
    pool->handles--;
    pthread_cond_broadcast(&pool->progress);
    pthread_mutex_unlock(&pool->mutex);
}

weir_status pool_to_weir(struct pool *pool, enum pool_offer offer, weir_threadpool **out_handle) {
    const weir_threadpool_vtable vtable = {
        .struct_size = sizeof vtable,
        .flags = WEIR_THREADPOOL_NESTED,
        .num_threads = on_num_threads,
        .parallel_for = (offer & POOL_PARALLEL_FOR) ? on_parallel_for : NULL,
        .schedule = (offer & POOL_SCHEDULE) ? on_schedule : NULL,
        .in_parallel = on_in_parallel,
        .release = on_release,
    };
    pthread_mutex_lock(&pool->mutex);
    pool->handles++;
    pthread_mutex_unlock(&pool->mutex);
    weir_status status = weir_threadpool_create(&vtable, pool, NULL, out_handle);
    if (status != WEIR_OK) {
        on_release(pool); /* weir took nothing and will not call it */
    }
    return status;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */

#include <stdbool.h>

#include "base.h"

typedef struct worker {
    base_pool *pool;
    int index;
} worker;

static _Thread_local worker here;

void base_sleep(long ns) {
    struct timespec time = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    nanosleep(&time, NULL);
}

bool base_turn(base_pool *pool, int every) {
    return atomic_fetch_add(&pool->calls, 1) % every == every - 1;
}

void base_push(base_pool *pool, weir_task_fn fn, void *arg, int32_t i, base_region *region, bool wake) {
    base_task *task = malloc(sizeof *task);
    if (task == NULL) abort();
    *task = (base_task){.fn = fn, .arg = arg, .i = i, .region = region};
    pthread_mutex_lock(&pool->mutex);
    task->previous = pool->newest;
    if (pool->newest != NULL) pool->newest->next = task;
    pool->newest = task;
    if (pool->oldest == NULL) pool->oldest = task;
    pool->last = *task;
    if (wake) pthread_cond_signal(&pool->work);
    pthread_mutex_unlock(&pool->mutex);
}

/* The mutex is held. */
static base_task *pop(base_pool *pool) {
    base_task *task = pool->newest_first ? pool->newest : pool->oldest;
    if (task == NULL) return NULL;
    if (task->previous != NULL) task->previous->next = task->next;
    if (task->next != NULL) task->next->previous = task->previous;
    if (pool->oldest == task) pool->oldest = task->next;
    if (pool->newest == task) pool->newest = task->previous;
    return task;
}

/* The mutex is held, and let go while the task runs. */
static void run(base_pool *pool, base_task *task) {
    pthread_mutex_unlock(&pool->mutex);
    if (pool->delay_ns > 0) base_sleep(pool->delay_ns);
    task->fn(task->arg, task->i);
    pthread_mutex_lock(&pool->mutex);
    if (task->region != NULL && --task->region->left == 0) pthread_cond_signal(&task->region->done);
    free(task);
}

static void *work(void *arg) {
    here = *(worker *)arg;
    base_pool *pool = here.pool;
    free(arg);
    pthread_mutex_lock(&pool->mutex);
    for (;;) {
        base_task *task = pop(pool);
        if (task != NULL) {
            run(pool, task);
        } else if (pool->ending) {
            break;
        } else {
            pthread_cond_wait(&pool->work, &pool->mutex);
        }
    }
    pthread_mutex_unlock(&pool->mutex);
    return NULL;
}

base_pool *base_create(int num_threads) {
    base_pool *pool = calloc(1, sizeof *pool);
    if (pool == NULL) return NULL;
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->work, NULL);
    for (pool->num_threads = 0; pool->num_threads < num_threads; pool->num_threads++) {
        worker *made = malloc(sizeof *made);
        if (made != NULL) *made = (worker){.pool = pool, .index = pool->num_threads};
        if (made == NULL || pthread_create(&pool->threads[pool->num_threads], NULL, work, made) != 0) {
            free(made);
            base_release(pool);
            return NULL;
        }
    }
    return pool;
}

int32_t base_num_threads(void *ctx) {
    return ((base_pool *)ctx)->num_threads;
}

int32_t base_schedule(void *ctx, weir_task_fn fn, void *arg, const weir_task_hint *hint) {
    (void)hint;
    base_push(ctx, fn, arg, 0, NULL, true);
    return 0;
}

int32_t base_parallel_for(void *ctx, int32_t n, weir_task_fn fn, void *arg) {
    base_pool *pool = ctx;
    base_region region = {.left = n};
    if (here.pool == pool) { /* one of the threads must not wait for the others */
        for (int32_t i = 0; i < n; i++) fn(arg, i);
        return 0;
    }
    pthread_cond_init(&region.done, NULL);
    for (int32_t i = 0; i < n; i++) base_push(pool, fn, arg, i, &region, true);
    pthread_mutex_lock(&pool->mutex);
    while (region.left > 0) pthread_cond_wait(&region.done, &pool->mutex);
    pthread_mutex_unlock(&pool->mutex);
    pthread_cond_destroy(&region.done);
    return 0;
}

int32_t base_team_parallel_for(void *ctx, int32_t n, weir_task_fn fn, void *arg) {
    base_pool *pool = ctx;
    base_region region = {.left = n - 1};
    if (here.pool == pool || n == 1) {
        for (int32_t i = 0; i < n; i++) fn(arg, i);
        return 0;
    }
    pthread_cond_init(&region.done, NULL);
    for (int32_t i = 1; i < n; i++) base_push(pool, fn, arg, i, &region, true);
    fn(arg, 0);
    pthread_mutex_lock(&pool->mutex);
    while (region.left > 0) pthread_cond_wait(&region.done, &pool->mutex);
    pthread_mutex_unlock(&pool->mutex);
    pthread_cond_destroy(&region.done);
    return 0;
}

int32_t base_in_parallel(void *ctx) {
    return here.pool == ctx;
}

int32_t base_thread_index(void *ctx) {
    return here.pool == ctx ? here.index : -1;
}

int32_t base_help(void *ctx) {
    base_pool *pool = ctx;
    pthread_mutex_lock(&pool->mutex);
    base_task *task = pop(pool);
    if (task != NULL) run(pool, task);
    pthread_mutex_unlock(&pool->mutex);
    return task != NULL;
}

void base_release(void *ctx) {
    base_pool *pool = ctx;
    pthread_mutex_lock(&pool->mutex);
    pool->ending = true;
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->mutex);
    for (int i = 0; i < pool->num_threads; i++) pthread_join(pool->threads[i], NULL);
    pthread_cond_destroy(&pool->work);
    pthread_mutex_destroy(&pool->mutex);
    free(pool);
}

weir_threadpool_vtable base_vtable(void) {
    return (weir_threadpool_vtable){.struct_size = sizeof(weir_threadpool_vtable),
                                    .flags = WEIR_THREADPOOL_NESTED,
                                    .num_threads = base_num_threads,
                                    .parallel_for = base_parallel_for,
                                    .schedule = base_schedule,
                                    .in_parallel = base_in_parallel,
                                    .thread_index = base_thread_index,
                                    .help = base_help,
                                    .release = base_release,
                                    .max_threads = base_num_threads};
}

int base_offer_pool(base_pool *pool, weir_threadpool_vtable vtable, weir_threadpool_vtable *out_vtable,
                    void **out_ctx) {
    if (pool == NULL) return 1;
    *out_vtable = vtable;
    *out_ctx = pool;
    return 0;
}

int base_offer(weir_threadpool_vtable vtable, weir_threadpool_vtable *out_vtable, void **out_ctx) {
    return base_offer_pool(base_create(BASE_THREADS), vtable, out_vtable, out_ctx);
}

/* The honest pool itself. */
int weir_conformance_pool(weir_threadpool_vtable *out_vtable, void **out_ctx) {
    return base_offer(base_vtable(), out_vtable, out_ctx);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */

#include "test_pools.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "check.h"

enum { MAX_THREADS = 16 };

typedef struct task {
    weir_task_fn fn;
    void *arg;
    int32_t i;
    struct region *region; /* NULL for a task of schedule */
    struct task *next;
    struct task *previous;
} task;

/* One call of a blocking parallel_for: how many of its tasks have not returned. */
typedef struct region {
    int left;
    pthread_cond_t done;
} region;

struct test_pool {
    pool_kind kind;
    int num_threads;
    pthread_t threads[MAX_THREADS];
    pthread_mutex_t mutex;
    pthread_cond_t work;
    task *oldest;
    task *newest;
    uint64_t random; /* POOL_SEEDED; under the mutex */
    int64_t offered; /* POOL_HALF: calls of schedule; under the mutex */
    bool held;
    bool ending;
    atomic_llong tasks, ended, scheduled, parallel_for, refused, released;
    atomic_int priority;
};

typedef struct worker {
    test_pool *pool;
    int index;
} worker;

static _Thread_local worker here;

const char *pool_kind_name(pool_kind kind) {
    static const char *const names[POOL_KINDS] = {"fifo",   "lifo",     "parallel_for", "asynchronous", "full",
                                                  "inline", "refusing", "half",         "seeded",       "late"};
    return names[kind];
}

static void push(test_pool *pool, weir_task_fn fn, void *arg, int32_t i, region *region) {
    task *added = malloc(sizeof *added);
    CHECK(added != NULL);
    *added = (task){.fn = fn, .arg = arg, .i = i, .region = region, .previous = pool->newest};
    if (pool->newest != NULL) pool->newest->next = added;
    pool->newest = added;
    if (pool->oldest == NULL) pool->oldest = added;
    pthread_cond_signal(&pool->work);
}

/* The mutex is held. splitmix64 (Steele, Lea and Flood 2014). */
static uint64_t draw(test_pool *pool, uint64_t below) {
    uint64_t z = (pool->random += UINT64_C(0x9E3779B97F4A7C15));
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return (z ^ (z >> 31)) % below;
}

/* The mutex is held. Any of the queued tasks. */
static task *draw_task(test_pool *pool) {
    uint64_t n = 0;
    for (task *t = pool->oldest; t != NULL; t = t->next) n++;
    task *drawn = pool->oldest;
    for (uint64_t i = n == 0 ? 0 : draw(pool, n); i > 0; i--) drawn = drawn->next;
    return drawn;
}

/* The mutex is held. NULL if there is nothing to do now. */
static task *pop(test_pool *pool) {
    task *taken = pool->kind == POOL_LIFO ? pool->newest : pool->kind == POOL_SEEDED ? draw_task(pool) : pool->oldest;
    if (taken == NULL || pool->held) return NULL;
    if (taken->previous != NULL) taken->previous->next = taken->next;
    if (taken->next != NULL) taken->next->previous = taken->previous;
    if (pool->oldest == taken) pool->oldest = taken->next;
    if (pool->newest == taken) pool->newest = taken->previous;
    return taken;
}

static void call(test_pool *pool, weir_task_fn fn, void *arg, int32_t i) {
    atomic_fetch_add(&pool->tasks, 1);
    fn(arg, i);
    atomic_fetch_add(&pool->ended, 1);
}

/* The mutex is held, and let go while the task runs. */
static void run_unlocked(test_pool *pool, task *taken) {
    pthread_mutex_unlock(&pool->mutex);
    call(pool, taken->fn, taken->arg, taken->i);
    pthread_mutex_lock(&pool->mutex);
    if (taken->region != NULL && --taken->region->left == 0) pthread_cond_signal(&taken->region->done);
    free(taken);
}

/* The mutex is held, and let go meanwhile. */
static void dawdle(test_pool *pool) {
    uint64_t pause = draw(pool, 8);
    pthread_mutex_unlock(&pool->mutex);
    if (pause == 0) sleep_ns(50000);
    else if (pause <= 2) sched_yield();
    pthread_mutex_lock(&pool->mutex);
}

static void *work(void *arg) {
    here = *(worker *)arg;
    test_pool *pool = here.pool;
    free(arg);
    pthread_mutex_lock(&pool->mutex);
    for (;;) {
        task *taken = pop(pool);
        if (taken != NULL) {
            if (pool->kind == POOL_SEEDED) dawdle(pool);
            run_unlocked(pool, taken);
        } else if (pool->ending) {
            break;
        } else {
            pthread_cond_wait(&pool->work, &pool->mutex);
        }
    }
    pthread_mutex_unlock(&pool->mutex);
    return NULL;
}

static int32_t num_threads(void *ctx) {
    return ((test_pool *)ctx)->num_threads;
}

static int32_t queued_schedule(void *ctx, weir_task_fn fn, void *arg, const weir_task_hint *hint) {
    test_pool *pool = ctx;
    CHECK(hint != NULL && hint->struct_size >= sizeof(weir_task_hint));
    atomic_store(&pool->priority, hint->priority);
    atomic_fetch_add(&pool->scheduled, 1);
    pthread_mutex_lock(&pool->mutex);
    push(pool, fn, arg, 0, NULL);
    pthread_mutex_unlock(&pool->mutex);
    return 0;
}

static int32_t inline_schedule(void *ctx, weir_task_fn fn, void *arg, const weir_task_hint *hint) {
    test_pool *pool = ctx;
    atomic_store(&pool->priority, hint->priority);
    atomic_fetch_add(&pool->scheduled, 1);
    call(pool, fn, arg, 0);
    return 0;
}

static int32_t half_schedule(void *ctx, weir_task_fn fn, void *arg, const weir_task_hint *hint) {
    test_pool *pool = ctx;
    pthread_mutex_lock(&pool->mutex);
    bool refuse = pool->offered++ % 2 != 0;
    pthread_mutex_unlock(&pool->mutex);
    if (!refuse) return queued_schedule(ctx, fn, arg, hint);
    atomic_fetch_add(&pool->refused, 1);
    return 1;
}

static int32_t seeded_schedule(void *ctx, weir_task_fn fn, void *arg, const weir_task_hint *hint) {
    test_pool *pool = ctx;
    pthread_mutex_lock(&pool->mutex);
    uint64_t what = draw(pool, 8);
    pthread_mutex_unlock(&pool->mutex);
    if (what == 1) return inline_schedule(ctx, fn, arg, hint);
    if (what != 0) return queued_schedule(ctx, fn, arg, hint);
    atomic_fetch_add(&pool->refused, 1);
    return 1;
}

static int32_t refuse_schedule(void *ctx, weir_task_fn fn, void *arg, const weir_task_hint *hint) {
    (void)fn, (void)arg, (void)hint;
    atomic_fetch_add(&((test_pool *)ctx)->refused, 1);
    return 1;
}

/* Workers of a pool with one thread cannot wait for its one thread, so a nested call is run where it is made. */
static int32_t blocking_parallel_for(void *ctx, int32_t n, weir_task_fn fn, void *arg) {
    test_pool *pool = ctx;
    region region = {.left = n};
    atomic_fetch_add(&pool->parallel_for, 1);
    if (here.pool == pool) {
        for (int32_t i = 0; i < n; i++) call(pool, fn, arg, i);
        return 0;
    }
    pthread_cond_init(&region.done, NULL);
    pthread_mutex_lock(&pool->mutex);
    for (int32_t i = 0; i < n; i++) push(pool, fn, arg, i, &region);
    while (region.left > 0) pthread_cond_wait(&region.done, &pool->mutex);
    pthread_mutex_unlock(&pool->mutex);
    pthread_cond_destroy(&region.done);
    return 0;
}

static int32_t asynchronous_parallel_for(void *ctx, int32_t n, weir_task_fn fn, void *arg) {
    test_pool *pool = ctx;
    atomic_fetch_add(&pool->parallel_for, 1);
    pthread_mutex_lock(&pool->mutex);
    for (int32_t i = 0; i < n; i++) push(pool, fn, arg, i, NULL);
    pthread_mutex_unlock(&pool->mutex);
    return 0;
}

static int32_t inline_parallel_for(void *ctx, int32_t n, weir_task_fn fn, void *arg) {
    test_pool *pool = ctx;
    atomic_fetch_add(&pool->parallel_for, 1);
    for (int32_t i = 0; i < n; i++) call(pool, fn, arg, i);
    return 0;
}

static int32_t refuse_parallel_for(void *ctx, int32_t n, weir_task_fn fn, void *arg) {
    (void)n, (void)fn, (void)arg;
    atomic_fetch_add(&((test_pool *)ctx)->refused, 1);
    return 1;
}

static int32_t in_parallel(void *ctx) {
    return here.pool == ctx;
}

static int32_t thread_index(void *ctx) {
    return here.pool == ctx ? here.index : -1;
}

static int32_t help(void *ctx) {
    test_pool *pool = ctx;
    pthread_mutex_lock(&pool->mutex);
    task *taken = pop(pool);
    if (taken != NULL) run_unlocked(pool, taken);
    pthread_mutex_unlock(&pool->mutex);
    return taken != NULL;
}

static void release(void *ctx) {
    test_pool *pool = ctx;
    CHECK_EQ(atomic_fetch_add(&pool->released, 1), 0);
}

weir_threadpool_vtable test_pool_vtable(const test_pool *pool) {
    weir_threadpool_vtable vtable = {.struct_size = sizeof vtable, .num_threads = num_threads, .release = release};
    switch (pool->kind) {
    case POOL_FIFO:
    case POOL_LIFO:
    case POOL_LATE:
        vtable.schedule = queued_schedule;
        break;
    case POOL_PARALLEL_FOR:
        vtable.parallel_for = blocking_parallel_for;
        break;
    case POOL_ASYNCHRONOUS:
        vtable.flags = WEIR_THREADPOOL_ASYNCHRONOUS;
        vtable.parallel_for = asynchronous_parallel_for;
        break;
    case POOL_FULL:
        vtable.flags = WEIR_THREADPOOL_NESTED | WEIR_THREADPOOL_AUTO_BALANCING;
        vtable.parallel_for = blocking_parallel_for;
        vtable.schedule = queued_schedule;
        vtable.in_parallel = in_parallel;
        vtable.thread_index = thread_index;
        vtable.help = help;
        vtable.max_threads = num_threads;
        break;
    case POOL_INLINE:
        vtable.parallel_for = inline_parallel_for;
        vtable.schedule = inline_schedule;
        break;
    case POOL_REFUSING:
        vtable.parallel_for = refuse_parallel_for;
        vtable.schedule = refuse_schedule;
        break;
    case POOL_HALF:
        vtable.schedule = half_schedule;
        break;
    case POOL_SEEDED:
        vtable.schedule = seeded_schedule;
        vtable.help = help;
        break;
    case POOL_KINDS:
        CHECK(!"a pool kind");
    }
    return vtable;
}

bool pool_kind_is_threaded(pool_kind kind) {
    return kind != POOL_INLINE && kind != POOL_REFUSING && kind != POOL_HALF && kind != POOL_SEEDED;
}

/* What WEIR_TEST_POOL puts in the place of a kind; false if it is not set. */
static bool replacement(pool_kind *kind, int *threads, uint64_t *seed) {
    const char *name = getenv("WEIR_TEST_POOL");
    char end = 0;
    unsigned long long n = 0;
    if (name == NULL || *name == 0) return false;
    if (strcmp(name, "inline") == 0) *kind = POOL_INLINE;
    else if (strcmp(name, "one") == 0) *kind = POOL_FIFO, *threads = 1;
    else if (strcmp(name, "lifo") == 0) *kind = POOL_LIFO;
    else if (strcmp(name, "half") == 0) *kind = POOL_HALF;
    else if (sscanf(name, "seeded:%llu%c", &n, &end) == 1) *kind = POOL_SEEDED, *seed = n;
    else CHECK(!"WEIR_TEST_POOL is inline, one, lifo, half or seeded:<n>");
    return true;
}

static test_pool *create_bare(pool_kind kind, int threads, uint64_t seed) {
    static atomic_ullong number;
    test_pool *pool = calloc(1, sizeof *pool);
    CHECK(pool != NULL && threads >= 1 && threads <= MAX_THREADS);
    pool->kind = kind;
    pool->num_threads = threads;
    pool->held = kind == POOL_LATE;
    pool->random = seed * 1000003 + atomic_fetch_add(&number, 1);
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->work, NULL);
    for (int i = 0; i < threads; i++) {
        worker *made = malloc(sizeof *made);
        CHECK(made != NULL);
        *made = (worker){.pool = pool, .index = i};
        CHECK(pthread_create(&pool->threads[i], NULL, work, made) == 0);
    }
    return pool;
}

test_pool *test_pool_create_bare(pool_kind kind, int threads) {
    return create_bare(kind, threads, 0);
}

static test_pool *create(pool_kind kind, int threads, uint64_t seed, weir_threadpool **out_handle) {
    test_pool *pool = create_bare(kind, threads, seed);
    weir_threadpool_vtable vtable = test_pool_vtable(pool);
    CHECK_OK(weir_threadpool_create(&vtable, pool, out_handle));
    return pool;
}

test_pool *test_pool_create_exact(pool_kind kind, int threads, weir_threadpool **out_handle) {
    return create(kind, threads, 0, out_handle);
}

test_pool *test_pool_create(pool_kind kind, int threads, weir_threadpool **out_handle) {
    uint64_t seed = 0;
    (void)replacement(&kind, &threads, &seed);
    return create(kind, threads, seed, out_handle);
}

test_pool *test_pool_create_threaded(pool_kind kind, int threads, weir_threadpool **out_handle) {
    pool_kind other = kind;
    int other_threads = threads;
    uint64_t seed = 0;
    CHECK(pool_kind_is_threaded(kind));
    if (replacement(&other, &other_threads, &seed) && pool_kind_is_threaded(other)) {
        kind = other;
        threads = other_threads;
    }
    return create(kind, threads, 0, out_handle);
}

void test_pool_destroy(test_pool *pool) {
    /* A pool whose last reference went in one of its own tasks is released by the next call of the API. */
    EVENTUALLY((void)runtime_info(), atomic_load(&pool->released) == 1);
    /* Who runs the last task may still be on the way out of it. */
    EVENTUALLY(atomic_load(&pool->ended) == atomic_load(&pool->tasks));
    pthread_mutex_lock(&pool->mutex);
    CHECK(pool->oldest == NULL);
    pool->ending = true;
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->mutex);
    for (int i = 0; i < pool->num_threads; i++) pthread_join(pool->threads[i], NULL);
    CHECK_EQ(atomic_load(&pool->released), 1);
    pthread_cond_destroy(&pool->work);
    pthread_mutex_destroy(&pool->mutex);
    free(pool);
}

pool_counters test_pool_counters(const test_pool *pool) {
    test_pool *p = (test_pool *)pool; /* C11 atomics cannot be read through const */
    return (pool_counters){
        .tasks = atomic_load(&p->tasks),
        .ended = atomic_load(&p->ended),
        .scheduled = atomic_load(&p->scheduled),
        .parallel_for = atomic_load(&p->parallel_for),
        .refused = atomic_load(&p->refused),
        .released = atomic_load(&p->released),
        .priority = atomic_load(&p->priority),
    };
}

pool_kind test_pool_kind(const test_pool *pool) {
    return pool->kind;
}

bool test_pool_is_here(const test_pool *pool) {
    return here.pool == pool;
}

void test_pool_let_go(test_pool *pool) {
    pthread_mutex_lock(&pool->mutex);
    pool->held = false;
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->mutex);
}

void test_pool_hold(test_pool *pool) {
    pthread_mutex_lock(&pool->mutex);
    pool->held = true;
    pthread_mutex_unlock(&pool->mutex);
}

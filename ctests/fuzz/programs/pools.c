/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Thread pools of all kinds that the contract allows (docs/threadpool.md). They run jobs of the host's own, too.
 */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/inspect.h>
#include <weir/testing.h>

#include "world.h"

enum { MAX_THREADS = 4 };

typedef struct region {
    int left;
} region;

typedef struct item {
    weir_task_fn task;
    void (*job)(void *);
    void *arg;
    int32_t i;
    region *region;
    uint64_t not_before;
    struct item *next;
} item;

struct own_pool {
    const pool_plan *plan;
    pthread_t threads[MAX_THREADS];
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    item *first;
    dice dice;
    int busy;
    bool ending;
    atomic_int released;
};

typedef struct worker {
    own_pool *pool;
    int index;
} worker;

static _Thread_local worker here;

/* ---- The queue; the mutex is held -------------------------------------------------------------- */

static void put(own_pool *p, item added) {
    item *i = malloc(sizeof *i), **last = &p->first;
    if (i == NULL) abort();
    *i = added;
    i->next = NULL;
    if (p->plan->late_us > 0) i->not_before = clock_ns() + (uint64_t)roll(&p->dice, 0, p->plan->late_us) * 1000;
    while (*last != NULL) last = &(*last)->next;
    *last = i;
    pthread_cond_broadcast(&p->changed);
}

/* What is to be done next; NULL if there is nothing, or nothing yet: then *again says so. */
static item *take(own_pool *p, const region *of, bool *again) {
    item **found = NULL;
    uint64_t now = p->plan->late_us > 0 ? clock_ns() : UINT64_MAX;
    int n = 0;
    for (item **i = &p->first; *i != NULL; i = &(*i)->next) {
        if (of != NULL && (*i)->region != of) continue;
        if ((*i)->not_before > now) {
            *again = true;
            continue;
        }
        n++;
        bool better = found == NULL || p->plan->order == LIFO || (p->plan->order == ANY_ORDER && roll(&p->dice, 1, n) == 1);
        if (better) found = i;
    }
    if (found == NULL) return NULL;
    item *taken = *found;
    *found = taken->next;
    return taken;
}

static void perform(own_pool *p, item *i) {
    p->busy++;
    pthread_mutex_unlock(&p->mutex);
    if (i->job != NULL) i->job(i->arg);
    else i->task(i->arg, i->i);
    pthread_mutex_lock(&p->mutex);
    p->busy--;
    if (i->region != NULL) i->region->left--;
    free(i);
    pthread_cond_broadcast(&p->changed);
}

/* Until something changes, or a task that is held back may run. */
static void rest(own_pool *p, bool again) {
    if (!again) {
        pthread_cond_wait(&p->changed, &p->mutex);
        return;
    }
    pthread_mutex_unlock(&p->mutex);
    doze_us(30);
    pthread_mutex_lock(&p->mutex);
}

static void *work(void *arg) {
    here = *(worker *)arg;
    free(arg);
    own_pool *p = here.pool;
    pthread_mutex_lock(&p->mutex);
    for (;;) {
        bool again = false;
        item *i = take(p, NULL, &again);
        if (i != NULL) perform(p, i);
        else if (again) rest(p, true);
        else if (p->ending) break;
        else rest(p, false);
    }
    pthread_mutex_unlock(&p->mutex);
    return NULL;
}

/* ---- The functions ----------------------------------------------------------------------------- */

static int32_t num_threads(void *ctx) {
    return ((own_pool *)ctx)->plan->threads;
}

static bool refuses(own_pool *p) {
    if (p->plan->refuses == 0) return false;
    pthread_mutex_lock(&p->mutex);
    bool no = chance(&p->dice, p->plan->refuses);
    pthread_mutex_unlock(&p->mutex);
    return no;
}

static int32_t schedule(void *ctx, weir_task_fn task, void *arg, const weir_task_hint *hint) {
    own_pool *p = ctx;
    (void)hint;
    if (refuses(p)) return 1;
    if (p->plan->runs_inline) {
        task(arg, 0);
        return 0;
    }
    pthread_mutex_lock(&p->mutex);
    put(p, (item){.task = task, .arg = arg});
    pthread_mutex_unlock(&p->mutex);
    return 0;
}

/* The caller takes part, so that tasks never wait for threads that are busy. */
static int32_t parallel_for(void *ctx, int32_t n, weir_task_fn task, void *arg) {
    own_pool *p = ctx;
    region r = {.left = n};
    if (refuses(p)) return 1;
    if (p->plan->runs_inline || (here.pool == p && !p->plan->nested)) {
        for (int32_t i = 0; i < n; i++) task(arg, i);
        return 0;
    }
    pthread_mutex_lock(&p->mutex);
    for (int32_t i = 0; i < n; i++) put(p, (item){.task = task, .arg = arg, .i = i, .region = &r});
    while (r.left > 0) {
        bool again = false;
        item *i = p->plan->takes_jobs || here.pool != NULL ? take(p, &r, &again) : NULL;
        if (i != NULL) perform(p, i);
        else rest(p, again);
    }
    pthread_mutex_unlock(&p->mutex);
    return 0;
}

static int32_t posting_parallel_for(void *ctx, int32_t n, weir_task_fn task, void *arg) {
    own_pool *p = ctx;
    if (refuses(p)) return 1;
    pthread_mutex_lock(&p->mutex);
    for (int32_t i = 0; i < n; i++) put(p, (item){.task = task, .arg = arg, .i = i});
    pthread_mutex_unlock(&p->mutex);
    return 0;
}

static int32_t in_parallel(void *ctx) {
    return here.pool == ctx;
}

static int32_t thread_index(void *ctx) {
    return here.pool == ctx ? here.index : -1;
}

static int32_t help(void *ctx) {
    own_pool *p = ctx;
    bool again = false;
    pthread_mutex_lock(&p->mutex);
    item *i = take(p, NULL, &again);
    bool job = i != NULL && i->job != NULL;
    if (job) {
        /* A caller of ours may wait: it is no task to be helped with. */
        i->next = p->first;
        p->first = i;
        i = NULL;
    }
    if (i != NULL) perform(p, i);
    pthread_mutex_unlock(&p->mutex);
    return i != NULL;
}

static void release(void *ctx) {
    own_pool *p = ctx;
    if (atomic_fetch_add(&p->released, 1) != 0) finding("pool", "a pool is released twice");
}

/* ---- Life -------------------------------------------------------------------------------------- */

static weir_threadpool_attr *cheap(bool wanted, int threads, bool checking) {
    weir_threadpool_attr *attr = NULL;
    MUST(weir_threadpool_attr_create(&attr));
    if (threads > 0) MUST(weir_threadpool_attr_set_num_threads(attr, threads));
    if (wanted) {
        weir_threadpool_costs costs = {.struct_size = sizeof costs, .submit_ns = 1, .arrive_ns = 1, .join_ns = 1};
        MUST(weir_threadpool_attr_set_costs(attr, &costs));
    }
    if (checking) MUST(weir_threadpool_attr_set_checking(attr, 1));
    return attr;
}

static weir_threadpool *own_pool_make(const pool_plan *plan, own_pool **out_own) {
    own_pool *p = calloc(1, sizeof *p);
    weir_threadpool *handle = NULL;
    if (p == NULL) abort();
    p->plan = plan;
    p->dice.state = plan->seed;
    pthread_mutex_init(&p->mutex, NULL);
    pthread_cond_init(&p->changed, NULL);
    for (int i = 0; i < plan->threads; i++) {
        worker *made = malloc(sizeof *made);
        if (made == NULL) abort();
        *made = (worker){p, i};
        if (pthread_create(&p->threads[i], NULL, work, made) != 0) abort();
    }
    weir_threadpool_vtable v = {.struct_size = sizeof v, .num_threads = num_threads, .release = release};
    if (plan->schedule) v.schedule = schedule;
    if (plan->parallel_for) v.parallel_for = plan->asynchronous && !plan->runs_inline ? posting_parallel_for : parallel_for;
    if (plan->asynchronous) v.flags |= WEIR_THREADPOOL_ASYNCHRONOUS;
    if (plan->nested) v.flags |= WEIR_THREADPOOL_NESTED;
    if (plan->balancing) v.flags |= WEIR_THREADPOOL_AUTO_BALANCING;
    if (plan->in_parallel) v.in_parallel = in_parallel;
    if (plan->thread_index) v.thread_index = thread_index;
    if (plan->help) v.help = help;
    if (plan->seed % 3 == 0) v.max_threads = num_threads;
    weir_threadpool_attr *attr = cheap(plan->seed % 2 == 0, 0, false);
    MUST(weir_threadpool_create_with_attr(&v, p, attr, &handle));
    weir_threadpool_attr_destroy(attr);
    *out_own = p;
    return handle;
}

weir_threadpool *pool_make(const pool_plan *plan, own_pool **out_own) {
    weir_threadpool *handle = NULL;
    *out_own = NULL;
    switch (plan->source) {
    case POOL_BUILTIN: {
        weir_threadpool_attr *attr = cheap(plan->seed % 2 == 0, plan->threads, false);
        MUST(weir_threadpool_create_builtin(attr, &handle));
        weir_threadpool_attr_destroy(attr);
        break;
    }
    case POOL_WEIR_INLINE: MUST(weir_threadpool_create_inline(&handle)); break;
    case POOL_WEIR_SEEDED: MUST(weir_threadpool_create_seeded(plan->seed, plan->threads, &handle)); break;
    case POOL_OWN: return own_pool_make(plan, out_own);
    default: break;
    }
    return handle;
}

void own_pool_post(own_pool *p, void (*job)(void *), void *arg) {
    pthread_mutex_lock(&p->mutex);
    put(p, (item){.job = job, .arg = arg});
    pthread_mutex_unlock(&p->mutex);
}

void own_pool_end(own_pool *p) {
    int pause_us = 20;
    uint64_t limit = clock_ns() + watch_limit_ns();
    while (atomic_load(&p->released) == 0) {
        weir_threadpool_release(NULL);
        doze_longer(&pause_us);
        if (clock_ns() > limit) finding("pool-release", "a pool is not released");
    }
    pthread_mutex_lock(&p->mutex);
    p->ending = true;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->mutex);
    for (int i = 0; i < p->plan->threads; i++) pthread_join(p->threads[i], NULL);
    if (p->first != NULL) finding("pool", "tasks are left in a pool that was released");
    if (atomic_load(&p->released) != 1) finding("pool", "a pool is released twice");
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->mutex);
    free(p);
}

const char *const pool_class_names[32] = {
    "none", "builtin", "weir inline", "weir seeded", "inline", "refuses all", "refuses some", "late",
    "schedule, fifo", "schedule, lifo", "schedule, any order", "schedule, nameless", "parallel_for", "parallel_for, nameless",
    "asynchronous", "asynchronous, nameless", "all functions", "all functions, nameless"};

int pool_class(const pool_plan *p) {
    if (p->source != POOL_OWN) return (int)p->source;
    bool nameless = !p->in_parallel && !p->thread_index;
    if (p->runs_inline) return 4;
    if (p->refuses == 100) return 5;
    if (p->refuses > 0) return 6;
    if (p->late_us > 0) return 7;
    if (p->schedule && p->parallel_for) return 16 + nameless;
    if (p->asynchronous) return 14 + nameless;
    if (p->parallel_for) return 12 + nameless;
    return nameless ? 11 : 8 + (int)p->order;
}

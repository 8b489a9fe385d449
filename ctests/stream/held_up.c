/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Streams that are busy with something that waits itself: for the very thread that wants the stream, for a thread's
 * turn in a program, for work of the caller's pool. Nobody waits for ever: a wait does what holds it up, or is refused.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <weir/task_group.h>

#include "make.h"

/* A pool of one thread, which it knows; with `help` on request. */
typedef struct one_thread {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t news;
    struct {
        weir_task_fn fn;
        void *arg;
    } tasks[64];
    int first, end;
    bool is_over;
    atomic_bool released;
    weir_threadpool *handle;
} one_thread;

static _Thread_local one_thread *here;

static bool take_task(one_thread *pool, weir_task_fn *fn, void **arg) {
    if (pool->first == pool->end) return false;
    *fn = pool->tasks[pool->first % 64].fn;
    *arg = pool->tasks[pool->first++ % 64].arg;
    return true;
}

static void *work(void *arg) {
    one_thread *pool = here = arg;
    weir_task_fn fn = NULL;
    pthread_mutex_lock(&pool->lock);
    while (!pool->is_over) {
        if (!take_task(pool, &fn, &arg)) {
            pthread_cond_wait(&pool->news, &pool->lock);
            continue;
        }
        pthread_mutex_unlock(&pool->lock);
        fn(arg, 0);
        pthread_mutex_lock(&pool->lock);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

static int32_t schedule(void *ctx, weir_task_fn fn, void *arg, const weir_task_hint *hint) {
    one_thread *pool = ctx;
    (void)hint;
    pthread_mutex_lock(&pool->lock);
    CHECK(pool->end - pool->first < 64);
    pool->tasks[pool->end % 64].fn = fn;
    pool->tasks[pool->end++ % 64].arg = arg;
    pthread_cond_broadcast(&pool->news);
    pthread_mutex_unlock(&pool->lock);
    return 0;
}

static int32_t one(void *ctx) {
    (void)ctx;
    return 1;
}

static int32_t is_here(void *ctx) {
    return here == ctx;
}

static int32_t help(void *ctx) {
    one_thread *pool = ctx;
    weir_task_fn fn = NULL;
    void *arg = NULL;
    pthread_mutex_lock(&pool->lock);
    bool has_one = take_task(pool, &fn, &arg);
    pthread_mutex_unlock(&pool->lock);
    if (has_one) fn(arg, 0);
    return has_one;
}

static void released(void *ctx) {
    atomic_store(&((one_thread *)ctx)->released, true);
}

static one_thread *make_pool(uint64_t flags, bool helps) {
    one_thread *pool = calloc(1, sizeof *pool);
    CHECK(pool != NULL);
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->news, NULL);
    const weir_threadpool_vtable vtable = {.struct_size = sizeof vtable, .num_threads = one, .schedule = schedule,
        .in_parallel = is_here, .help = helps ? help : NULL, .release = released, .flags = flags};
    CHECK_OK(weir_threadpool_create(&vtable, pool, NULL, &pool->handle));
    CHECK(pthread_create(&pool->thread, NULL, work, pool) == 0);
    return pool;
}

static void end_pool(one_thread *pool) {
    weir_threadpool_release(pool->handle);
    /* A pool whose last reference went in one of its own tasks is released by the next call of the API. */
    EVENTUALLY((void)runtime_info(), atomic_load(&pool->released));
    pthread_mutex_lock(&pool->lock);
    pool->is_over = true;
    pthread_cond_broadcast(&pool->news);
    pthread_mutex_unlock(&pool->lock);
    pthread_join(pool->thread, NULL);
    free(pool);
}

typedef struct scene {
    one_thread *pool;
    weir_engine *engine;
    weir_stream *own, *busy, *other;
    weir_event *event;
    weir_program *program;
    atomic_int stage;
    int how;
    weir_status result;
    char text[256];
} scene;

static void await(scene *s, int stage) {
    while (atomic_load(&s->stage) < stage) sleep_ns(50000);
}

static int32_t nothing(void *arg) {
    (void)arg;
    return WEIR_OK;
}

/* On the pool's thread: uses the stream that is busy, when somebody is at it. */
static int32_t use_it(void *arg) {
    scene *s = arg;
    atomic_store(&s->stage, 1);
    await(s, 2);
    sleep_ns(5000000);
    switch (s->how) {
    case 0: s->result = weir_enqueue_task(s->busy, nothing, NULL, NULL); break;
    case 1: s->result = weir_stream_synchronize(s->busy, WEIR_TIMEOUT_INFINITE); break;
    default: s->result = weir_event_record(s->event, s->busy); break;
    }
    if (s->result != WEIR_OK) strncpy(s->text, weir_last_error_message(), sizeof s->text - 1);
    return WEIR_OK;
}

static void complete(void *done, int32_t index) {
    (void)index;
    CHECK_OK(weir_completion_done(done, WEIR_OK, NULL));
}

/* Completes by a task of the pool. */
static int32_t later(void *user, weir_kernel_context *context, weir_completion *done) {
    scene *s = user;
    (void)context;
    schedule(s->pool, complete, done, NULL);
    atomic_store(&s->stage, 2);
    return WEIR_OK;
}

static int32_t compute_nothing(void *user, weir_kernel_context *context) {
    (void)user;
    (void)context;
    return WEIR_OK;
}

static scene *set(scene *s, uint64_t flags, bool helps) {
    memset(s, 0, sizeof *s);
    s->pool = make_pool(flags, helps);
    s->engine = make_engine(NULL);
    s->own = make_stream(s->engine, WEIR_STREAM_ASYNCHRONOUS, s->pool->handle, "own");
    s->other = make_stream(s->engine, WEIR_STREAM_ASYNCHRONOUS, s->pool->handle, "other");
    s->busy = make_stream(s->engine, WEIR_STREAM_DEFAULT, NULL, "busy");
    CHECK_OK(weir_event_create(s->engine, WEIR_EVENT_DEFAULT, &s->event));
    return s;
}

static void clear(scene *s) {
    CHECK_OK(weir_stream_synchronize(s->own, WEIR_TIMEOUT_INFINITE));
    weir_program_release(s->program);
    weir_event_release(s->event);
    weir_stream_release(s->own);
    weir_stream_release(s->other);
    weir_stream_release(s->busy);
    weir_engine_release(s->engine);
    end_pool(s->pool);
}

/* The stream is busy with a kernel that only a task of the caller's pool can complete: the wait is refused. */
static void behind_a_completion(int how) {
    scene s;
    set(&s, 0, false)->how = how;
    weir_kernel *kernel = NULL;
    const weir_host_kernel_desc desc = {.struct_size = sizeof desc, .name = "later", .compute_async = later, .user = &s};
    CHECK_OK(weir_kernel_create_host(s.engine, &desc, &kernel));
    CHECK_OK(weir_enqueue_task(s.own, use_it, &s, NULL));
    await(&s, 1);
    CHECK_OK(weir_enqueue(s.busy, kernel, NULL, 0, NULL, 0));
    CHECK_OK(weir_stream_synchronize(s.own, WEIR_TIMEOUT_INFINITE));
    CHECK_EQ(s.result, WEIR_FAILED_PRECONDITION);
    CHECK_TEXT(s.text, "would block a worker of a thread pool");
    weir_kernel_release(kernel);
    clear(&s);
}

static void *open_stage(void *arg) {
    sleep_ns(20000000);
    atomic_store(&((scene *)arg)->stage, 2);
    return NULL;
}

/* The stream is busy with a run whose kernel may block and was handed to the caller's pool: the caller begins it. */
static void behind_a_blocking_kernel(int how, uint64_t flags) {
    scene s;
    set(&s, flags, false)->how = how;
    weir_kernel *kernel = NULL;
    const weir_host_kernel_desc desc = {
        .struct_size = sizeof desc, .name = "blocks", .compute = compute_nothing, .flags = WEIR_KERNEL_MAY_BLOCK};
    CHECK_OK(weir_kernel_create_host(s.engine, &desc, &kernel));
    weir_graph *graph = make_graph("blocking");
    CHECK_OK(weir_graph_add_kernel(graph, "blocks", kernel, NULL, 0, NULL, 0, NULL));
    const weir_compile_options options = {.struct_size = sizeof options, .blocking_threadpool = s.pool->handle};
    CHECK_OK(weir_graph_compile(graph, &s.engine, 1, &options, &s.program));
    CHECK_OK(weir_enqueue_task(s.own, use_it, &s, NULL));
    await(&s, 1);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, open_stage, &s) == 0);
    CHECK_OK(weir_program_run(s.program, s.busy, NULL, 0, NULL, 0, NULL));
    pthread_join(thread, NULL);
    CHECK_OK(weir_stream_synchronize(s.own, WEIR_TIMEOUT_INFINITE));
    CHECK_EQ(s.result, WEIR_OK);
    weir_graph_destroy(graph);
    weir_kernel_release(kernel);
    clear(&s);
}

/* A program of one run at once. */
static void limit(scene *s) {
    weir_graph *graph = make_graph("limited");
    CHECK_OK(weir_graph_add_task(graph, "task", nothing, NULL, NULL, 0, NULL));
    const weir_compile_options options = {.struct_size = sizeof options, .max_concurrent_runs = 1};
    CHECK_OK(weir_graph_compile(graph, &s->engine, 1, &options, &s->program));
    weir_graph_destroy(graph);
}

static int32_t wait_for_a_run(void *arg) {
    scene *s = arg;
    weir_run *run = NULL;
    atomic_store(&s->stage, 1);
    sleep_ns(20000000);
    CHECK_OK(weir_program_start(s->program, s->other, NULL, 0, NULL, 0, NULL, &run));
    CHECK_OK(weir_run_synchronize(run, WEIR_TIMEOUT_INFINITE));
    weir_run_release(run);
    return WEIR_OK;
}

static void *run_on_the_busy_stream(void *arg) {
    scene *s = arg;
    await(s, 1);
    for (int i = 0; i < 3; i++) CHECK_OK(weir_program_run(s->program, s->busy, NULL, 0, NULL, 0, NULL));
    return NULL;
}

/* A run whose turn has come, but not its stream's, lets others go first. */
static void a_permit_is_not_kept(void) {
    scene s;
    set(&s, 0, false);
    limit(&s);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, run_on_the_busy_stream, &s) == 0);
    CHECK_OK(weir_enqueue_task(s.busy, wait_for_a_run, &s, NULL));
    pthread_join(thread, NULL);
    clear(&s);
}

/* On a thread of its own: waits for work of the pool, whose only thread waits for this. */
static int32_t wait_for_the_pool(void *arg) {
    scene *s = arg;
    await(s, 1);
    sleep_ns(10000000);
    if (s->how == 0) {
        CHECK_OK(weir_enqueue_task(s->other, nothing, NULL, NULL));
        CHECK_OK(weir_stream_synchronize(s->other, WEIR_TIMEOUT_INFINITE));
    } else {
        weir_task_group *group = NULL;
        CHECK_OK(weir_task_group_create(s->pool->handle, &group));
        for (int i = 0; i < 4; i++) CHECK_OK(weir_task_group_spawn(group, nothing, NULL, NULL));
        CHECK_OK(weir_task_group_synchronize(group));
        weir_task_group_release(group);
    }
    return WEIR_OK;
}

static int32_t wait_for_the_lane(void *arg) {
    scene *s = arg;
    atomic_store(&s->stage, 1);
    CHECK_OK(weir_stream_synchronize(s->busy, WEIR_TIMEOUT_INFINITE));
    return WEIR_OK;
}

/* The pool's thread, which alone may do the pool's work, does it while it waits. */
static void behind_the_own_pool(int how, bool helps) {
    scene s;
    set(&s, WEIR_THREADPOOL_OWN_THREADS_ONLY, helps)->how = how;
    weir_stream_release(s.busy);
    s.busy = make_stream(s.engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "lane");
    CHECK_OK(weir_enqueue_task(s.busy, wait_for_the_pool, &s, NULL));
    CHECK_OK(weir_enqueue_task(s.own, wait_for_the_lane, &s, NULL));
    clear(&s);
}

int main(void) {
    for (int how = 0; how < 3; how++) {
        behind_a_completion(how);
        behind_a_blocking_kernel(how, 0);
        behind_a_blocking_kernel(how, WEIR_THREADPOOL_OWN_THREADS_ONLY);
    }
    a_permit_is_not_kept();
    behind_the_own_pool(0, false);
    behind_the_own_pool(0, true);
    behind_the_own_pool(1, true);
    puts("ok");
    return 0;
}

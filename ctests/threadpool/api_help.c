/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Whoever waits, works: all threads of a pool may wait at once, in jobs of the host's own, for work that was given to
 * the same pool, which cannot say who its threads are.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "detached.h"
#include "make.h"
#include "test_pools.h"

enum { JOBS = 4, THREADS = 2, LINKS = 20 };

/* A pool with `schedule` and nothing else, whose queue also takes jobs of the host's own. */
typedef struct job {
    struct job *next;
    weir_task_fn fn;
    void *arg;
} job;

typedef struct plain {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t threads[THREADS];
    job *first, **last;
    int width, over;
    weir_threadpool_vtable vtable;
} plain;

static _Thread_local plain *mine;

static void *plain_work(void *arg) {
    plain *p = mine = arg;
    pthread_mutex_lock(&p->lock);
    for (;;) {
        while (p->first == NULL && !p->over) pthread_cond_wait(&p->changed, &p->lock);
        job *next = p->first;
        if (next == NULL) break;
        p->first = next->next;
        if (p->first == NULL) p->last = &p->first;
        pthread_mutex_unlock(&p->lock);
        next->fn(next->arg, 0);
        free(next);
        pthread_mutex_lock(&p->lock);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

static int32_t plain_schedule(void *ctx, weir_task_fn fn, void *arg, const weir_task_hint *hint) {
    plain *p = ctx;
    job *it = malloc(sizeof *it);
    (void)hint;
    if (it == NULL) return 1;
    *it = (job){.fn = fn, .arg = arg};
    pthread_mutex_lock(&p->lock);
    *p->last = it;
    p->last = &it->next;
    pthread_cond_signal(&p->changed);
    pthread_mutex_unlock(&p->lock);
    return 0;
}

static int32_t plain_num_threads(void *ctx) { return ((plain *)ctx)->width; }
static int32_t plain_in_parallel(void *ctx) { return mine == ctx; }

static weir_threadpool *plain_create(plain *p, int width, bool knows, uint64_t flags) {
    *p = (plain){.width = width};
    p->last = &p->first;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, NULL);
    p->vtable = (weir_threadpool_vtable){.struct_size = sizeof p->vtable,
                                         .flags = flags,
                                         .num_threads = plain_num_threads,
                                         .schedule = plain_schedule,
                                         .in_parallel = knows ? plain_in_parallel : NULL};
    for (int i = 0; i < width; i++) CHECK_EQ(pthread_create(&p->threads[i], NULL, plain_work, p), 0);
    weir_threadpool *pool = NULL;
    CHECK_OK(weir_threadpool_create(&p->vtable, p, NULL, &pool));
    return pool;
}

/* Its memory may serve another pool: weir has to be done with it. */
static void plain_destroy(plain *p, weir_threadpool *pool) {
    CHECK_OK(weir_threadpool_close(pool, WEIR_TIMEOUT_INFINITE));
    weir_threadpool_release(pool);
    pthread_mutex_lock(&p->lock);
    p->over = 1;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < p->width; i++) pthread_join(p->threads[i], NULL);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->changed);
}

/* What a job of the host's does: makes work on streams of the pool that runs it, and waits. */
typedef enum how { BY_STREAM, BY_EVENT, BY_RUN, BY_ENGINE, BY_SYNC, BY_CHAIN, BY_LATER, HOWS } how;

typedef struct task {
    weir_threadpool *pool;
    how how;
    uint64_t timeout_ns;
    weir_status status;
    atomic_int ran;
    atomic_int *over;
} task;

static int32_t add(void *arg) {
    atomic_fetch_add((atomic_int *)arg, 1);
    return WEIR_OK;
}

static weir_program *three(weir_engine *engine, atomic_int *ran) {
    weir_graph *graph = make_graph("three");
    weir_node a, b, c;
    CHECK_OK(weir_graph_add_task(graph, "a", add, ran, NULL, 0, &a));
    CHECK_OK(weir_graph_add_task(graph, "b", add, ran, NULL, 0, &b));
    CHECK_OK(weir_graph_add_task(graph, "c", add, ran, NULL, 0, &c));
    CHECK_OK(weir_graph_add_control_edge(graph, a, c));
    CHECK_OK(weir_graph_add_control_edge(graph, b, c));
    weir_program *program = compile(graph, engine);
    weir_graph_destroy(graph);
    return program;
}

/* Completes on a thread of its own, when the waiting threads are asleep. */
static void *complete(void *arg) {
    sleep_ns(3000000);
    CHECK_OK(weir_completion_done(arg, WEIR_OK, NULL));
    return NULL;
}

static int32_t start_later(void *state, weir_kernel_context *context, weir_completion *done) {
    (void)state, (void)context;
    CHECK_EQ(start_detached(complete, done), 0);
    return WEIR_OK;
}

static weir_kernel *later_kernel(weir_engine *engine) {
    weir_host_kernel_desc desc = {.struct_size = sizeof desc, .name = "later", .compute_async = start_later};
    weir_kernel *kernel = NULL;
    CHECK_OK(weir_kernel_create_host(engine, &desc, &kernel));
    return kernel;
}

static void use(task *t) {
    weir_engine *engine = make_engine(t->pool);
    weir_stream *streams[LINKS];
    weir_event *events[LINKS];
    for (int i = 0; i < LINKS; i++) {
        streams[i] = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
        events[i] = make_event(engine, WEIR_EVENT_DEFAULT);
    }
    int expected = 1;
    switch (t->how) {
    case BY_CHAIN:
        /* Each stream waits for the next, which is filled later; the wait is for the first. */
        expected = LINKS;
        for (int i = LINKS - 1; i >= 0; i--) {
            if (i + 1 < LINKS) CHECK_OK(weir_stream_wait_event(streams[i], events[i + 1]));
            CHECK_OK(weir_enqueue_task(streams[i], add, &t->ran, NULL));
            CHECK_OK(weir_event_record(events[i], streams[i]));
        }
        t->status = weir_stream_synchronize(streams[0], t->timeout_ns);
        break;
    case BY_RUN: {
        expected = 3;
        weir_program *program = three(engine, &t->ran);
        weir_run *run = NULL;
        CHECK_OK(weir_program_start(program, streams[0], NULL, 0, NULL, 0, NULL, &run));
        t->status = weir_run_synchronize(run, t->timeout_ns);
        weir_run_release(run);
        weir_program_release(program);
        break;
    }
    case BY_LATER: {
        weir_kernel *kernel = later_kernel(engine);
        CHECK_OK(weir_enqueue(streams[0], kernel, NULL, 0, NULL, 0));
        CHECK_OK(weir_enqueue_task(streams[0], add, &t->ran, NULL));
        t->status = weir_stream_synchronize(streams[0], t->timeout_ns);
        weir_kernel_release(kernel);
        break;
    }
    default:
        CHECK_OK(weir_enqueue_task(streams[0], add, &t->ran, NULL));
        CHECK_OK(weir_event_record(events[0], streams[0]));
        t->status = t->how == BY_STREAM   ? weir_stream_synchronize(streams[0], t->timeout_ns)
                    : t->how == BY_EVENT  ? weir_event_synchronize(events[0], t->timeout_ns)
                    : t->how == BY_ENGINE ? weir_engine_synchronize(engine, t->timeout_ns)
                                          : weir_sync_devices(t->timeout_ns, NULL, 0, NULL);
    }
    CHECK(t->status != WEIR_OK || atomic_load(&t->ran) == expected);
    for (int i = 0; i < LINKS; i++) {
        weir_stream_release(streams[i]);
        weir_event_release(events[i]);
    }
    weir_engine_release(engine);
}

static void job_of_the_host(void *arg, int32_t index) {
    task *t = arg;
    (void)index;
    use(t);
    atomic_fetch_add(t->over, 1);
}

static void all_threads_wait(how how, int width, bool knows, uint64_t timeout_ns) {
    plain p;
    weir_threadpool *pool = plain_create(&p, width, knows, 0);
    atomic_int over = 0;
    task tasks[JOBS];
    for (int i = 0; i < JOBS; i++) {
        tasks[i] = (task){.pool = pool, .how = how, .timeout_ns = timeout_ns, .status = -1, .over = &over};
        CHECK_EQ(plain_schedule(&p, job_of_the_host, &tasks[i], NULL), 0);
    }
    EVENTUALLY(atomic_load(&over) == JOBS);
    /* A worker that is known to be one is not put to sleep for what nobody is at. */
    bool may_refuse = knows && how == BY_LATER;
    for (int i = 0; i < JOBS; i++) {
        if (!(may_refuse && tasks[i].status == WEIR_FAILED_PRECONDITION)) CHECK_EQ(tasks[i].status, WEIR_OK);
    }
    CHECK_OK(weir_sync_devices(WEIR_TIMEOUT_INFINITE, NULL, 0, NULL));
    plain_destroy(&p, pool);
}

static int32_t note_thread(void *arg) {
    *(pthread_t *)arg = pthread_self();
    return WEIR_OK;
}

/* Such a pool's work is done by its own threads alone, and needs to know them. */
static void a_pool_may_keep_its_work_to_itself(void) {
    plain p;
    weir_threadpool *pool = plain_create(&p, 1, true, WEIR_THREADPOOL_OWN_THREADS_ONLY);
    weir_engine *engine = make_engine(pool);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
    for (int i = 0; i < 200; i++) {
        pthread_t ran_on = pthread_self();
        CHECK_OK(weir_enqueue_task(stream, note_thread, &ran_on, NULL));
        CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
        CHECK(pthread_equal(ran_on, p.threads[0]));
    }
    /* Its own threads help all the same. */
    atomic_int over = 0;
    task t = {.pool = pool, .how = BY_CHAIN, .timeout_ns = WEIR_TIMEOUT_INFINITE, .status = -1, .over = &over};
    CHECK_EQ(plain_schedule(&p, job_of_the_host, &t, NULL), 0);
    EVENTUALLY(atomic_load(&over) == 1);
    CHECK_EQ(t.status, WEIR_OK);
    weir_stream_release(stream);
    weir_engine_release(engine);
    weir_threadpool *none = NULL;
    p.vtable.in_parallel = NULL;
    CHECK_CODE(weir_threadpool_create(&p.vtable, &p, NULL, &none), WEIR_INVALID_ARGUMENT,
               "WEIR_THREADPOOL_OWN_THREADS_ONLY, which requires vtable->in_parallel");
    plain_destroy(&p, pool);
}

/* A wait without time only looks. */
static void a_wait_without_time_takes_nothing_up(void) {
    plain p;
    weir_threadpool *pool = plain_create(&p, 1, false, 0);
    weir_engine *engine = make_engine(pool);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
    gate held = {.result = WEIR_OK};
    weir_stream *keeps = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
    CHECK_OK(weir_enqueue_task(keeps, pass_gate, &held, NULL));
    EVENTUALLY(atomic_load(&held.begun));
    atomic_int ran = 0;
    CHECK_OK(weir_enqueue_task(stream, add, &ran, NULL));
    CHECK_EQ(weir_stream_synchronize(stream, 0), WEIR_DEADLINE_EXCEEDED);
    CHECK_EQ(atomic_load(&ran), 0);
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    CHECK_EQ(atomic_load(&ran), 1);
    open_gate(&held);
    CHECK_OK(weir_stream_synchronize(keeps, WEIR_TIMEOUT_INFINITE));
    weir_stream_release(keeps);
    weir_stream_release(stream);
    weir_engine_release(engine);
    plain_destroy(&p, pool);
}

int main(void) {
    for (how how = 0; how < HOWS; how++) {
        for (int round = 0; round < 5; round++) {
            all_threads_wait(how, THREADS, false, WEIR_TIMEOUT_INFINITE);
            all_threads_wait(how, 1, false, WEIR_TIMEOUT_INFINITE);
            all_threads_wait(how, 1, false, 20000000000u);
            all_threads_wait(how, THREADS, true, WEIR_TIMEOUT_INFINITE);
        }
    }
    a_pool_may_keep_its_work_to_itself();
    a_wait_without_time_takes_nothing_up();
    return 0;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * weir_threadpool_close, as a framework uses it that owns its pool: when it has returned WEIR_OK nothing of the host's
 * is called any more, also by helpers that lay in the host's queue, and release was called, once.
 */

#include <pthread.h>
#include <stdbool.h>
#include <weir/conformance.h>
#include <weir/ops.h>
#include <weir/inspect.h>

#include "make.h"
#include "test_pools.h"

enum { ROUNDS = 300, THREADS = 3, QUEUE = 4096 };

/* ---- A framework with a pool of its own ------------------------------------------------------------------------- */

typedef struct entry {
    weir_task_fn fn;
    void *arg;
} entry;

typedef struct framework {
    pthread_t threads[THREADS];
    pthread_mutex_t lock;
    pthread_cond_t changed;
    entry queue[QUEUE];
    int head, tail;
    bool held, closing; /* held: nothing is begun */
    atomic_int begun;
} framework;

/* What weir gets for a context, in a page of its own in spirit: after close it is filled with nonsense and freed. */
typedef struct context {
    framework *owner;
    atomic_int alive, calls, released;
} context;

static _Thread_local framework *here;

static void *work(void *arg) {
    framework *f = (framework *)arg;
    here = f;
    pthread_mutex_lock(&f->lock);
    for (;;) {
        while ((f->held || f->head == f->tail) && !f->closing) pthread_cond_wait(&f->changed, &f->lock);
        if (f->head == f->tail) break;
        entry next = f->queue[f->head++ % QUEUE];
        pthread_mutex_unlock(&f->lock);
        atomic_fetch_add(&f->begun, 1);
        next.fn(next.arg, 0);
        pthread_mutex_lock(&f->lock);
    }
    pthread_mutex_unlock(&f->lock);
    return NULL;
}

static framework *framework_create(void) {
    framework *f = (framework *)calloc(1, sizeof *f);
    CHECK(f != NULL);
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->changed, NULL);
    for (int i = 0; i < THREADS; i++) CHECK_EQ(pthread_create(&f->threads[i], NULL, work, f), 0);
    return f;
}

static void set_held(framework *f, bool held) {
    pthread_mutex_lock(&f->lock);
    f->held = held;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
}

static bool is_empty(framework *f) {
    pthread_mutex_lock(&f->lock);
    bool empty = f->head == f->tail;
    pthread_mutex_unlock(&f->lock);
    return empty;
}

/* Runs what is queued, and ends. Returns how many entries were run. */
static int framework_destroy(framework *f) {
    pthread_mutex_lock(&f->lock);
    f->closing = true;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
    for (int i = 0; i < THREADS; i++) CHECK_EQ(pthread_join(f->threads[i], NULL), 0);
    pthread_mutex_destroy(&f->lock);
    pthread_cond_destroy(&f->changed);
    int begun = atomic_load(&f->begun);
    free(f);
    return begun;
}

static framework *owner_of(void *ctx) {
    context *c = (context *)ctx;
    CHECK_EQ(atomic_load(&c->alive), 1);
    atomic_fetch_add(&c->calls, 1);
    return c->owner;
}

static int32_t host_num_threads(void *ctx) {
    (void)owner_of(ctx);
    return THREADS;
}

static int32_t host_schedule(void *ctx, weir_task_fn fn, void *arg, const weir_task_hint *hint) {
    framework *f = owner_of(ctx);
    (void)hint;
    pthread_mutex_lock(&f->lock);
    bool room = f->tail - f->head < QUEUE;
    if (room) f->queue[f->tail++ % QUEUE] = (entry){fn, arg};
    pthread_cond_signal(&f->changed);
    pthread_mutex_unlock(&f->lock);
    return room ? 0 : 1;
}

static int32_t host_in_parallel(void *ctx) {
    return here == owner_of(ctx);
}

static void host_release(void *ctx) {
    context *c = (context *)ctx;
    CHECK_EQ(atomic_load(&c->alive), 1);
    CHECK_EQ(atomic_fetch_add(&c->released, 1), 0);
}

static weir_threadpool *make_pool(context *c) {
    const weir_threadpool_vtable vtable = {
        .struct_size = sizeof vtable,
        .num_threads = host_num_threads,
        .schedule = host_schedule,
        .in_parallel = host_in_parallel,
        .release = host_release,
    };
    weir_threadpool *pool = NULL;
    CHECK_OK(weir_threadpool_create(&vtable, c, NULL, &pool));
    return pool;
}

static context *make_context(framework *f) {
    context *c = (context *)calloc(1, sizeof *c);
    CHECK(c != NULL);
    c->owner = f;
    atomic_store(&c->alive, 1);
    return c;
}

/* From here on a call of the host's functions fails the test, or shows under valgrind and AddressSanitizer. */
static void destroy_context(context *c) {
    CHECK_EQ(atomic_load(&c->released), 1);
    atomic_store(&c->alive, 0);
    free(c);
}

/* ---- Work ------------------------------------------------------------------------------------------------------- */

static int32_t add_up(void *arg, int64_t begin, int64_t end, int32_t slot) {
    (void)slot;
    for (int64_t i = begin; i < end; i++) atomic_fetch_add((atomic_int *)arg, 1);
    return WEIR_OK;
}

static void share(weir_threadpool *pool, int64_t items) {
    atomic_int sum = 0;
    weir_parallel_hint hint = {.struct_size = sizeof hint, .cost_ns = 1000000};
    CHECK_OK(weir_parallel_for(pool, items, &hint, add_up, &sum));
    CHECK_EQ(atomic_load(&sum), items);
}

/* ---- Tests ------------------------------------------------------------------------------------------------------ */

/* The framework's threads go on; contexts come and go with its calls. Helpers that lie in the queue come when the
 * context is gone. */
static void test_contexts_come_and_go(void) {
    framework *f = framework_create();
    for (int round = 0; round < (int)scale(ROUNDS); round++) {
        context *c = make_context(f);
        weir_threadpool *pool = make_pool(c);
        set_held(f, round % 2 == 0);
        share(pool, 8);
        CHECK_OK(weir_threadpool_close(pool, WEIR_TIMEOUT_INFINITE));
        destroy_context(c);
        weir_threadpool_release(pool);
        set_held(f, false);
    }
    CHECK(framework_destroy(f) > 0); /* else no helper came late */
}

/* The framework goes with its pool: its threads are torn down as soon as close is back, and run what is queued on their
 * way. */
static void test_threads_go_right_after(void) {
    for (int round = 0; round < (int)scale(ROUNDS); round++) {
        framework *f = framework_create();
        context *c = make_context(f);
        weir_threadpool *pool = make_pool(c);
        weir_engine *engine = make_engine(pool);
        weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "work");
        atomic_int done = 0;
        for (int i = 0; i < 4; i++) CHECK_OK(weir_enqueue_task(stream, count_run, &done, NULL));
        share(pool, 8);
        CHECK_OK(weir_threadpool_close(pool, WEIR_TIMEOUT_INFINITE));
        CHECK_EQ(atomic_load(&c->released), 1);
        if (round % 3 == 0) weir_threadpool_release(pool);
        framework_destroy(f);
        destroy_context(c);
        /* What was queued on the stream is done, by the pool or by whoever waits. */
        CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
        CHECK_EQ(atomic_load(&done), 4);
        weir_stream_release(stream);
        weir_engine_release(engine);
        if (round % 3 != 0) weir_threadpool_release(pool);
    }
}

typedef struct closing {
    weir_threadpool *pool;
    context *c;
} closing;

static void *close_it(void *arg) {
    closing *one = (closing *)arg;
    CHECK_OK(weir_threadpool_close(one->pool, WEIR_TIMEOUT_INFINITE));
    CHECK_EQ(atomic_load(&one->c->released), 1);
    return NULL;
}

static void *share_until_closed(void *arg) {
    closing *one = (closing *)arg;
    weir_parallel_hint hint = {.struct_size = sizeof hint, .cost_ns = 1000000};
    weir_status status;
    do {
        atomic_int sum = 0;
        status = weir_parallel_for(one->pool, 8, &hint, add_up, &sum);
        CHECK_EQ(atomic_load(&sum), status == WEIR_OK ? 8 : 0);
    } while (status == WEIR_OK);
    CHECK_EQ(status, WEIR_FAILED_PRECONDITION);
    return NULL;
}

/* Several close the pool at once while others use it. */
static void test_many_at_once(void) {
    for (int round = 0; round < (int)scale(ROUNDS) / 3; round++) {
        framework *f = framework_create();
        context *c = make_context(f);
        closing one = {make_pool(c), c};
        pthread_t threads[5];
        for (int i = 0; i < 2; i++) CHECK_EQ(pthread_create(&threads[i], NULL, share_until_closed, &one), 0);
        sleep_ns(1000 * (round % 50));
        for (int i = 2; i < 5; i++) CHECK_EQ(pthread_create(&threads[i], NULL, close_it, &one), 0);
        for (int i = 0; i < 5; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
        destroy_context(c);
        framework_destroy(f);
        CHECK_OK(weir_threadpool_close(one.pool, 0));
        weir_threadpool_release(one.pool);
    }
}

static int32_t never(void *arg, int64_t begin, int64_t end, int32_t slot) {
    (void)arg, (void)begin, (void)end, (void)slot;
    check_failed(__FILE__, __LINE__, "a region on a closed pool", "runs");
    return WEIR_INTERNAL;
}

/* What is refused afterwards, and that the text names the pool. */
static void test_refusals(void) {
    framework *f = framework_create();
    context *c = make_context(f);
    weir_threadpool *pool = make_pool(c);
    weir_engine *engine = make_engine(pool);
    weir_stream *stream = make_stream(engine, 0, NULL, "calm"), *other = NULL;
    weir_graph *graph = NULL;
    weir_program *program = NULL;
    weir_engine_attr *attr = NULL;
    weir_engine *plain = make_engine(NULL);
    weir_node node;
    atomic_int runs = 0;
    CHECK_OK(weir_graph_create("once", &graph));
    CHECK_OK(weir_graph_add_task(graph, "task", count_run, &runs, NULL, 0, &node));
    CHECK_OK(weir_graph_compile(graph, &plain, 1, NULL, &program));
    weir_run_options options = {.struct_size = sizeof options, .threadpool = pool};
    uint64_t id = 0;
    CHECK_OK(weir_threadpool_get_id(pool, &id));
    char text[64];
    snprintf(text, sizeof text, "threadpool %llu is closed", (unsigned long long)id);

    CHECK_OK(weir_threadpool_close(pool, 0));
    float one = 1, product = 3;
    int32_t number = 7;
    weir_threadpool_vtable vtable = {.struct_size = sizeof vtable};
    void *ctx = NULL;
    const weir_status refused = WEIR_FAILED_PRECONDITION;
    CHECK_CODE(weir_parallel_for(pool, 100, NULL, never, NULL), refused, text);
    CHECK_CODE(weir_sgemm(0, 0, 1, 1, 1, 1, &one, 1, &one, 1, 0, &product, 1, pool), refused, text);
    CHECK_CODE(weir_program_run(program, NULL, NULL, 0, NULL, 0, &options), refused, text);
    CHECK_CODE(weir_enqueue_task(stream, count_run, &runs, NULL), refused, text);
    CHECK_TEXT(weir_last_error_message(), "stream 'calm'");
    CHECK_CODE(weir_stream_create(engine, 0, NULL, &other), refused, text);
    CHECK_CODE(weir_threadpool_get_num_threads(pool, &number), refused, text);
    CHECK_CODE(weir_threadpool_in_parallel(pool, &number), refused, text);
    CHECK_CODE(weir_threadpool_get_vtable(pool, &vtable, &ctx), refused, text);
    CHECK_CODE(weir_threadpool_measure(pool), refused, text);
    CHECK_OK(weir_engine_attr_create(WEIR_ENGINE_CPU, &attr));
    CHECK_OK(weir_engine_attr_set_threadpool(attr, pool));
    weir_engine *none = NULL;
    CHECK_CODE(weir_engine_create(WEIR_ENGINE_CPU, 0, attr, &none), refused, text);
    weir_engine_attr_destroy(attr);
    CHECK_EQ(atomic_load(&runs), 0);
    CHECK(other == NULL && none == NULL && ctx == NULL);
    CHECK_EQ(number, 7);
    CHECK(product == 3);

    /* What asks the host nothing goes on, and so does the program with another pool. */
    weir_threadpool_costs costs = {.struct_size = sizeof costs};
    CHECK_OK(weir_threadpool_get_costs(pool, &costs));
    CHECK_OK(weir_stream_synchronize(stream, 0));
    options.threadpool = NULL;
    CHECK_OK(weir_program_run(program, NULL, NULL, 0, NULL, 0, &options));
    CHECK_EQ(atomic_load(&runs), 1);

    weir_program_release(program);
    weir_graph_destroy(graph);
    weir_stream_release(stream);
    weir_engine_release(engine);
    weir_engine_release(plain);
    weir_threadpool_release(pool);
    destroy_context(c);
    framework_destroy(f);
}

typedef struct inside {
    weir_threadpool *pool;
    gate gate;
    atomic_int refused;
} inside;

static int32_t close_inside(void *arg) {
    inside *in = (inside *)arg;
    CHECK_CODE(weir_threadpool_close(in->pool, WEIR_TIMEOUT_INFINITE), WEIR_FAILED_PRECONDITION, "inside of a task");
    atomic_store(&in->refused, 1);
    return pass_gate(&in->gate);
}

/* Inside of a task it is refused, and leaves the pool open; a task that has begun is waited for, as long as there is
 * time. */
static void test_inside_and_time(void) {
    framework *f = framework_create();
    context *c = make_context(f);
    inside in = {.pool = make_pool(c)};
    weir_engine *engine = make_engine(in.pool);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "slow");
    CHECK_OK(weir_enqueue_task(stream, close_inside, &in, NULL));
    EVENTUALLY(atomic_load(&in.gate.begun) == 1);
    CHECK_EQ(atomic_load(&in.refused), 1);
    share(in.pool, 8);
    CHECK_CODE(weir_threadpool_close(in.pool, 0), WEIR_DEADLINE_EXCEEDED, "closed to new work");
    CHECK_CODE(weir_threadpool_close(in.pool, 1000000), WEIR_DEADLINE_EXCEEDED, "what it runs");
    CHECK_EQ(atomic_load(&c->released), 0);
    open_gate(&in.gate);
    CHECK_OK(weir_threadpool_close(in.pool, WEIR_TIMEOUT_INFINITE));
    CHECK_EQ(atomic_load(&c->released), 1);
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    weir_stream_release(stream);
    weir_engine_release(engine);
    weir_threadpool_release(in.pool);
    destroy_context(c);
    framework_destroy(f);
}

/* Closed while work is under way, on every kind of pool: the work is done all the same, and nothing of it is lost. */
static void test_every_kind(void) {
    for (int kind = 0; kind < POOL_KINDS; kind++) {
        for (int round = 0; round < 20; round++) {
            weir_threadpool *pool = NULL;
            test_pool *host = test_pool_create_exact((pool_kind)kind, 3, &pool);
            weir_engine *engine = make_engine(pool);
            weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "on it");
            atomic_int done = 0;
            share(pool, 8);
            for (int i = 0; i < 8; i++) CHECK_OK(weir_enqueue_task(stream, count_run, &done, NULL));
            if (kind == POOL_LATE) test_pool_let_go(host);
            CHECK_OK(weir_threadpool_close(pool, WEIR_TIMEOUT_INFINITE));
            CHECK_EQ(test_pool_counters(host).released, 1);
            CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
            CHECK_EQ(atomic_load(&done), 8);
            weir_stream_release(stream);
            weir_engine_release(engine);
            weir_threadpool_release(pool);
            EVENTUALLY(runtime_info().threadpools == 0); /* helpers that came late have left */
            test_pool_destroy(host);
        }
    }
}

/* Pools of weir's own, and one in checking mode. */
static void test_other_pools(void) {
    weir_threadpool *pool = NULL;
    const weir_threadpool_options two = {.struct_size = sizeof two, .num_threads = 2};
    const weir_threadpool_options checked = {.struct_size = sizeof checked, .checking = 1};
    uint64_t threads = runtime_info().threads_alive;
    CHECK_OK(weir_threadpool_create_builtin(&two, &pool));
    share(pool, 8);
    CHECK_OK(weir_threadpool_close(pool, WEIR_TIMEOUT_INFINITE));
    EVENTUALLY(runtime_info().threads_alive == threads);
    weir_threadpool_release(pool);

    framework *f = framework_create();
    for (int round = 0; round < 20; round++) {
        context *c = make_context(f);
        const weir_threadpool_vtable vtable = {
            .struct_size = sizeof vtable,
            .num_threads = host_num_threads,
            .schedule = host_schedule,
            .in_parallel = host_in_parallel,
            .release = host_release,
        };
        CHECK_OK(weir_threadpool_create(&vtable, c, &checked, &pool));
        set_held(f, round % 2 == 0);
        share(pool, 8);
        CHECK_OK(weir_threadpool_close(pool, WEIR_TIMEOUT_INFINITE));
        destroy_context(c);
        set_held(f, false);
        char clause[200];
        EVENTUALLY(is_empty(f));
        CHECK_OK(weir_threadpool_get_broken_clause(pool, clause, sizeof clause, NULL));
        CHECK_TEXT(clause, "");
        CHECK_EQ(strlen(clause), 0);
        weir_threadpool_release(pool);
    }
    framework_destroy(f);
}

int main(void) {
    test_contexts_come_and_go();
    test_threads_go_right_after();
    test_many_at_once();
    test_refusals();
    test_inside_and_time();
    test_every_kind();
    test_other_pools();
    EVENTUALLY(runtime_info().threadpools == 0);
    puts("ok");
    return 0;
}

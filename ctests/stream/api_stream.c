/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Engines and streams: what their getters say, which pool their work runs on, and in which order.
 */

#include <pthread.h>
#include <stdbool.h>
#include <weir/inspect.h>

#include "make.h"
#include "test_pools.h"

static void test_engine_getters(void) {
    weir_threadpool *pool = NULL, *seen = NULL;
    test_pool *host = test_pool_create(POOL_FIFO, 1, &pool);
    weir_engine_attr *attr = NULL;
    const weir_engine_attr *copy = NULL;
    weir_engine *engine = NULL, *plain = NULL;
    weir_engine_kind kind = 0;
    uint32_t index = 7, num_engines = 0;
    weir_engine_info info = {.struct_size = sizeof info};

    CHECK_OK(weir_engine_count(WEIR_ENGINE_CPU, &num_engines));
    CHECK(num_engines >= 1);
    CHECK_OK(weir_engine_attr_create(WEIR_ENGINE_CPU, &attr));
    CHECK_OK(weir_engine_attr_get_kind(attr, &kind));
    CHECK_EQ(kind, WEIR_ENGINE_CPU);
    CHECK_OK(weir_engine_attr_get_max_streams(attr, &index));
    CHECK_EQ(index, 1);
    CHECK_OK(weir_engine_attr_set_max_streams(attr, 4));
    CHECK_OK(weir_engine_attr_get_max_streams(attr, &index));
    CHECK_EQ(index, 4);
    seen = pool;
    CHECK_OK(weir_engine_attr_get_threadpool(attr, &seen));
    CHECK(seen == NULL);
    CHECK_OK(weir_engine_attr_set_threadpool(attr, pool));
    CHECK_OK(weir_engine_attr_get_threadpool(attr, &seen));
    CHECK(seen == pool);
    CHECK_OK(weir_engine_create(WEIR_ENGINE_CPU, 0, attr, &engine));

    CHECK_OK(weir_engine_attr_set_threadpool(attr, NULL)); /* the engine keeps what it was made with */
    weir_engine_attr_destroy(attr);
    CHECK_OK(weir_engine_get_threadpool(engine, &seen));
    CHECK(seen == pool);
    CHECK_OK(weir_engine_get_attr(engine, &copy));
    CHECK_OK(weir_engine_attr_get_threadpool(copy, &seen));
    CHECK(seen == pool);
    CHECK_OK(weir_engine_get_info(engine, &info));
    CHECK_EQ(info.kind, WEIR_ENGINE_CPU);
    CHECK_EQ(info.index, 0);

    CHECK_OK(weir_engine_create(WEIR_ENGINE_CPU, 0, NULL, &plain));
    CHECK_OK(weir_engine_get_threadpool(plain, &seen));
    CHECK(seen == NULL);
    CHECK_OK(weir_engine_get_attr(plain, &copy));
    CHECK_OK(weir_engine_attr_get_kind(copy, &kind));
    CHECK_EQ(kind, WEIR_ENGINE_CPU);

    CHECK_OK(weir_engine_get_info(plain, &info));
    CHECK_EQ(info.struct_size, sizeof info);
    CHECK_EQ(info.kind, WEIR_ENGINE_CPU);
    CHECK(info.num_processors >= 1 && info.alignment >= 16 && info.name[0] != '\0');
    CHECK(memchr(info.name, '\0', sizeof info.name) != NULL);

    weir_engine_release(plain);
    weir_engine_release(engine);
    weir_threadpool_release(pool);
    test_pool_destroy(host);
}

static void check_attr_name(const weir_stream_attr *attr, const char *name) {
    char buffer[32] = "?";
    size_t length = 99;
    CHECK_OK(weir_stream_attr_get_name(attr, NULL, 0, &length));
    CHECK_EQ(length, strlen(name));
    CHECK_OK(weir_stream_attr_get_name(attr, buffer, sizeof buffer, NULL));
    CHECK(strcmp(buffer, name) == 0);
    if (length > 0) CHECK_CODE(weir_stream_attr_get_name(attr, buffer, length, &length), WEIR_OUT_OF_RANGE, "capacity");
}

static void check_attr(const weir_stream_attr *attr, int32_t asynchronous, uint64_t spin_ns, int32_t priority,
                       const char *name, const weir_threadpool *pool) {
    weir_engine_kind kind = 0;
    weir_threadpool *seen_pool = NULL;
    int32_t seen = -1;
    uint64_t spin = 1;
    CHECK_OK(weir_stream_attr_get_kind(attr, &kind));
    CHECK_EQ(kind, WEIR_ENGINE_CPU);
    CHECK_OK(weir_stream_attr_get_asynchronous(attr, &seen));
    CHECK_EQ(seen, asynchronous);
    CHECK_OK(weir_stream_attr_get_spin_ns(attr, &spin));
    CHECK_EQ(spin, spin_ns);
    CHECK_OK(weir_stream_attr_get_priority(attr, &seen));
    CHECK_EQ(seen, priority);
    CHECK_OK(weir_stream_attr_get_threadpool(attr, &seen_pool));
    CHECK(seen_pool == pool);
    check_attr_name(attr, name);
}

static void test_stream_getters(void) {
    weir_threadpool *pool = NULL, *seen = NULL;
    test_pool *host = test_pool_create(POOL_FIFO, 1, &pool);
    weir_engine *engine = make_engine(NULL), *seen_engine = NULL;
    weir_stream_attr *attr = NULL;
    const weir_stream_attr *copy = NULL;
    weir_stream *stream = NULL, *plain = NULL;

    CHECK_OK(weir_stream_attr_create(WEIR_ENGINE_CPU, &attr));
    check_attr(attr, 0, 20000, 0, "", NULL);
    CHECK_OK(weir_stream_attr_set_threadpool(attr, pool));
    CHECK_OK(weir_stream_attr_set_spin_ns(attr, 1000000000));
    CHECK_OK(weir_stream_attr_set_priority(attr, -100));
    CHECK_OK(weir_stream_attr_set_name(attr, "Zürich"));
    check_attr(attr, 0, 1000000000, -100, "Zürich", pool);
    CHECK_OK(weir_stream_create(engine, WEIR_STREAM_ASYNCHRONOUS, attr, &stream));
    CHECK_OK(weir_stream_attr_set_priority(attr, 100));
    CHECK_OK(weir_stream_attr_set_asynchronous(attr, 1));
    CHECK_OK(weir_stream_attr_set_asynchronous(attr, 0));
    weir_stream_attr_destroy(attr);

    CHECK_OK(weir_stream_get_attr(stream, &copy));
    check_attr(copy, 1, 1000000000, -100, "Zürich", pool); /* the flag adds to the attribute */
    CHECK_OK(weir_stream_get_threadpool(stream, &seen));
    CHECK(seen == pool);
    CHECK_OK(weir_stream_get_engine(stream, &seen_engine));
    CHECK(seen_engine == engine);

    CHECK_OK(weir_stream_create(engine, WEIR_STREAM_DEFAULT, NULL, &plain));
    CHECK_OK(weir_stream_get_threadpool(plain, &seen));
    CHECK(seen == NULL);
    CHECK_OK(weir_stream_get_attr(plain, &copy));
    check_attr(copy, 0, 20000, 0, "", NULL);

    weir_stream_release(plain);
    weir_stream_release(stream);
    weir_engine_release(engine);
    weir_threadpool_release(pool);
    test_pool_destroy(host);
}

/* Attributes of another kind have a pool too, for functions of the host's, and fit no CPU engine. */
static void test_other_engine_kind(void) {
    weir_engine *engine = make_engine(NULL), *none = engine;
    weir_engine_attr *engine_attr = NULL;
    weir_stream_attr *stream_attr = NULL;
    weir_threadpool *pool = NULL, *seen = NULL;
    weir_stream *stream = NULL;
    uint32_t num_engines = 0;
    CHECK_OK(weir_threadpool_create_inline(&pool));
    CHECK_OK(weir_engine_attr_create(WEIR_ENGINE_CUDA, &engine_attr));
    CHECK_OK(weir_stream_attr_create(WEIR_ENGINE_CUDA, &stream_attr));

    CHECK_OK(weir_engine_attr_set_threadpool(engine_attr, pool));
    CHECK_OK(weir_engine_attr_get_threadpool(engine_attr, &seen));
    CHECK(seen == pool);
    seen = NULL;
    CHECK_OK(weir_stream_attr_set_threadpool(stream_attr, pool));
    CHECK_OK(weir_stream_attr_get_threadpool(stream_attr, &seen));
    CHECK(seen == pool);
    CHECK_CODE(weir_engine_create(WEIR_ENGINE_CPU, 0, engine_attr, &none), WEIR_INVALID_ARGUMENT, "attr");
    CHECK(none == NULL);
    CHECK_CODE(weir_stream_create(engine, 0, stream_attr, &stream), WEIR_INVALID_ARGUMENT, "attr");
    CHECK(stream == NULL);

    CHECK_OK(weir_engine_count(WEIR_ENGINE_CUDA, &num_engines));
    if (num_engines == 0) {
        weir_status status = weir_engine_create(WEIR_ENGINE_CUDA, 0, engine_attr, &none);
        CHECK(status == WEIR_UNAVAILABLE || status == WEIR_UNIMPLEMENTED);
        CHECK(none == NULL);
        CHECK_TEXT(weir_last_error_message(), "weir_engine_create: ");
    }
    weir_stream_attr_destroy(stream_attr);
    weir_engine_attr_destroy(engine_attr);
    weir_threadpool_release(pool);
    weir_engine_release(engine);
}

/* A kernel whose region is worth all the threads it can get. */
static int32_t slow_items(void *arg, int64_t begin, int64_t end, int32_t slot) {
    (void)arg, (void)slot;
    for (int64_t i = begin; i < end; i++) sleep_ms(2);
    return WEIR_OK;
}

static int32_t slow_compute(void *user, weir_kernel_context *context) {
    weir_parallel_hint hint = {.struct_size = sizeof hint, .cost_ns = 2000000};
    (void)user;
    return weir_kernel_context_parallel_for(context, 48, &hint, slow_items, NULL);
}

enum { FROM_CALL, FROM_STREAM, FROM_ENGINE, NUM_SOURCES };

/* Runs the kernel as a one-node program with the pools in `use`, and checks that only the first of them had work. */
static void check_precedence(const bool use[NUM_SOURCES], bool asynchronous) {
    weir_threadpool *pools[NUM_SOURCES];
    test_pool *hosts[NUM_SOURCES];
    int chosen = NUM_SOURCES;
    for (int i = NUM_SOURCES - 1; i >= 0; i--) {
        hosts[i] = test_pool_create_exact(POOL_FIFO, 2, &pools[i]);
        if (use[i]) chosen = i;
    }
    weir_engine *engine = make_engine(use[FROM_ENGINE] ? pools[FROM_ENGINE] : NULL);
    weir_stream *stream = make_stream(engine, asynchronous ? WEIR_STREAM_ASYNCHRONOUS : WEIR_STREAM_DEFAULT,
                                      use[FROM_STREAM] ? pools[FROM_STREAM] : NULL, NULL);
    weir_tensor_desc desc = vector_desc(1);
    weir_kernel *kernel = make_unary_kernel(engine, "slow", slow_compute, NULL, &desc);
    weir_tensor *in = make_tensor(engine, desc), *out = make_tensor(engine, desc);
    weir_graph *graph = make_graph("precedence");
    weir_value x, y;
    CHECK_OK(weir_graph_add_input(graph, "x", &desc, &x));
    CHECK_OK(weir_graph_add_kernel(graph, "slow", kernel, &x, 1, &y, 1, NULL));
    CHECK_OK(weir_graph_add_output(graph, "y", y));
    weir_program *program = compile(graph, engine);
    const weir_run_options options = {
        .struct_size = sizeof options, .threadpool = use[FROM_CALL] ? pools[FROM_CALL] : NULL};

    CHECK_OK(weir_program_run(program, stream, &in, 1, &out, 1, &options));
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    if (!use[FROM_CALL]) CHECK_OK(weir_enqueue(stream, kernel, &in, 1, &out, 1));
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));

    weir_program_release(program);
    weir_graph_destroy(graph);
    weir_tensor_release(in);
    weir_tensor_release(out);
    weir_kernel_release(kernel);
    weir_stream_release(stream);
    weir_engine_release(engine);
    for (int i = 0; i < NUM_SOURCES; i++) {
        /* An asynchronous stream still needs its own pool to be run at all, so that one may be asked too. */
        if (i == chosen) EVENTUALLY(test_pool_counters(hosts[i]).tasks > 0);
        else if (!asynchronous) CHECK_EQ(test_pool_counters(hosts[i]).scheduled, 0);
        weir_threadpool_release(pools[i]);
        test_pool_destroy(hosts[i]);
    }
}

static void test_precedence(void) {
    for (int mask = 0; mask < 1 << NUM_SOURCES; mask++) {
        bool use[NUM_SOURCES] = {mask & 1, mask & 2, mask & 4};
        check_precedence(use, false);
        check_precedence(use, true);
    }
}

/* A stream's tasks append their number; in order and one at a time they need no lock. */
typedef struct journal {
    int next;
    int misplaced;
    const test_pool *home; /* the pool that the tasks must run on, or NULL */
} journal;

typedef struct entry {
    journal *journal;
    int number;
} entry;

static int32_t write_entry(void *arg) {
    entry *e = arg;
    if (e->journal->next++ != e->number) e->journal->misplaced++;
    if (e->journal->home != NULL && !test_pool_is_here(e->journal->home)) e->journal->misplaced++;
    return WEIR_OK;
}

static void enqueue_entries(weir_stream *stream, journal *journal, int n) {
    for (int i = 0; i < n; i++) {
        entry *e = malloc(sizeof *e);
        CHECK(e != NULL);
        *e = (entry){.journal = journal, .number = i};
        CHECK_OK(weir_enqueue_task(stream, write_entry, e, free));
    }
}

/* Two pools on one engine, three streams on each, all busy at once. */
static void test_many_streams(void) {
    enum { PER_POOL = 3, STREAMS = 2 * PER_POOL };
    weir_threadpool *pools[2];
    test_pool *hosts[2] = {test_pool_create(POOL_FIFO, 2, &pools[0]), test_pool_create(POOL_LIFO, 3, &pools[1])};
    weir_engine *engine = make_engine(pools[0]);
    weir_stream *streams[STREAMS];
    journal journals[STREAMS];
    int n = scale(2000);
    for (int s = 0; s < STREAMS; s++) {
        journals[s] = (journal){.home = NULL};
        streams[s] = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, s < PER_POOL ? NULL : pools[1], NULL);
    }
    for (int s = 0; s < STREAMS; s++) enqueue_entries(streams[s], &journals[s], n);
    CHECK_OK(weir_engine_synchronize(engine, WEIR_TIMEOUT_INFINITE));
    for (int s = 0; s < STREAMS; s++) {
        int32_t done = 0;
        CHECK_OK(weir_stream_query(streams[s], &done));
        CHECK_EQ(done, 1);
        CHECK_EQ(journals[s].next, n);
        CHECK_EQ(journals[s].misplaced, 0);
        weir_stream_release(streams[s]);
    }
    weir_engine_release(engine);
    for (int p = 0; p < 2; p++) {
        EVENTUALLY(test_pool_counters(hosts[p]).tasks > 0);
        weir_threadpool_release(pools[p]);
        test_pool_destroy(hosts[p]);
    }
}

/* Nobody waits, so nobody helps: the tasks run on the pool's own threads. */
static void test_runs_on_its_pool(void) {
    static const pool_kind kinds[] = {POOL_FIFO, POOL_LIFO, POOL_FULL};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        weir_runtime_info before = runtime_info();
        weir_threadpool *pool = NULL;
        test_pool *host = test_pool_create_threaded(kinds[k], 2, &pool);
        weir_engine *engine = make_engine(NULL);
        weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, pool, NULL);
        journal j = {.home = host};
        int32_t done = 0;
        enqueue_entries(stream, &j, 100);
        do {
            sleep_ns(50000);
            CHECK_OK(weir_stream_query(stream, &done));
        } while (!done);
        CHECK_EQ(j.next, 100);
        CHECK_EQ(j.misplaced, 0);
        weir_stream_release(stream);
        weir_engine_release(engine);
        weir_threadpool_release(pool);
        test_pool_destroy(host);
        CHECK_EQ(runtime_info().threads_started, before.threads_started);
        check_released(&before);
    }
}

/* What cannot take single tasks cannot run a stream: the stream has one counted thread then, and no more than one. */
static void check_lane(weir_threadpool *pool) {
    weir_runtime_info before = runtime_info();
    weir_engine *engine = make_engine(pool);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
    journal j = {.home = NULL};
    gate held = {.result = WEIR_OK};
    CHECK_OK(weir_enqueue_task(stream, pass_gate, &held, NULL)); /* returns although the task has not ended */
    enqueue_entries(stream, &j, 100);
    EVENTUALLY(atomic_load(&held.begun));
    CHECK_EQ(runtime_info().threads_started, before.threads_started + 1);
    CHECK_EQ(runtime_info().threads_alive, before.threads_alive + 1);
    open_gate(&held);
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    CHECK_EQ(j.next, 100);
    CHECK_EQ(j.misplaced, 0);
    weir_stream_release(stream);
    weir_engine_release(engine);
    check_released(&before);
    CHECK_EQ(runtime_info().threads_started, before.threads_started + 1);
}

static void test_lanes(void) {
    weir_threadpool *pool = NULL;
    test_pool *host = test_pool_create_exact(POOL_PARALLEL_FOR, 2, &pool);
    check_lane(pool);
    check_lane(NULL);
    weir_threadpool_release(pool);
    test_pool_destroy(host);
}

/* A pool that runs tasks at once, or refuses them, leaves the work to the thread that enqueues. */
static void test_no_thread_but_the_caller(void) {
    static const pool_kind kinds[] = {POOL_INLINE, POOL_REFUSING};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        weir_runtime_info before = runtime_info();
        weir_threadpool *pool = NULL;
        test_pool *host = test_pool_create_exact(kinds[k], 1, &pool);
        weir_engine *engine = make_engine(pool);
        weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
        journal j = {.home = NULL};
        enqueue_entries(stream, &j, 100);
        CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
        CHECK_EQ(j.next, 100);
        CHECK_EQ(j.misplaced, 0);
        CHECK_EQ(runtime_info().threads_started, before.threads_started);
        weir_stream_release(stream);
        weir_engine_release(engine);
        weir_threadpool_release(pool);
        test_pool_destroy(host);
    }
}

static int32_t reenter(void *arg) {
    return weir_enqueue_task((weir_stream *)arg, fail_with_data_loss, NULL, NULL);
}

/* A synchronous stream: the work is done when the call returns, and its status is the call's. */
static void test_synchronous(void) {
    weir_engine *engine = make_engine(NULL);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_DEFAULT, NULL, "ingest");
    atomic_int runs = 0, destroyed = 0;
    weir_failure failure = {.struct_size = sizeof failure};
    int32_t done = 0;
    journal j = {.home = NULL};
    enqueue_entries(stream, &j, 10);
    CHECK_EQ(j.next, 10);
    CHECK_OK(weir_stream_query(stream, &done));
    CHECK_EQ(done, 1);

    CHECK_CODE(weir_enqueue_task(stream, fail_with_data_loss, &destroyed, count_destroy), WEIR_DATA_LOSS, "ingest");
    CHECK_EQ(atomic_load(&destroyed), 1); /* before the call returned, so the caller knows who owns arg */
    CHECK_OK(weir_stream_get_failure(stream, &failure));
    CHECK_EQ(failure.code, WEIR_OK); /* the call has told it: nothing is left to come late */
    CHECK_EQ(strlen(failure.message), 0);
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    CHECK_OK(weir_engine_synchronize(engine, WEIR_TIMEOUT_INFINITE));
    CHECK_OK(weir_enqueue_task(stream, count_run, &runs, NULL));
    CHECK_EQ(atomic_load(&runs), 1);
    CHECK_CODE(weir_enqueue_task(stream, reenter, stream, NULL), WEIR_FAILED_PRECONDITION, "ingest");
    CHECK_OK(weir_stream_clear_error(stream));
    CHECK_OK(weir_enqueue_task(stream, count_run, &runs, NULL));
    weir_stream_release(stream);
    weir_engine_release(engine);
}

typedef struct feeder {
    weir_stream *stream;
    int *plain; /* no atomic: the stream runs one task at a time */
    int rounds;
} feeder;

static int32_t add_one(void *arg) {
    ++*(int *)arg;
    return WEIR_OK;
}

static void *feed(void *arg) {
    feeder *f = arg;
    for (int i = 0; i < f->rounds; i++) CHECK_OK(weir_enqueue_task(f->stream, add_one, f->plain, NULL));
    return NULL;
}

/* Several threads may enqueue on one stream, synchronous or not. */
static void test_many_feeders(void) {
    enum { FEEDERS = 3 };
    weir_threadpool *pool = NULL;
    test_pool *host = test_pool_create(POOL_FIFO, 2, &pool);
    weir_engine *engine = make_engine(pool);
    for (uint64_t flags = 0; flags <= WEIR_STREAM_ASYNCHRONOUS; flags++) {
        weir_stream *stream = make_stream(engine, flags, NULL, NULL);
        int plain = 0;
        pthread_t threads[FEEDERS];
        feeder f = {.stream = stream, .plain = &plain, .rounds = scale(2000)};
        for (int i = 0; i < FEEDERS; i++) CHECK(pthread_create(&threads[i], NULL, feed, &f) == 0);
        for (int i = 0; i < FEEDERS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
        CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
        CHECK_EQ(plain, FEEDERS * f.rounds);
        weir_stream_release(stream);
    }
    weir_engine_release(engine);
    weir_threadpool_release(pool);
    test_pool_destroy(host);
}

static void test_priority_reaches_the_pool(void) {
    weir_threadpool *pool = NULL;
    test_pool *host = test_pool_create_exact(POOL_FIFO, 1, &pool);
    weir_engine *engine = make_engine(NULL);
    weir_stream_attr *attr = NULL;
    weir_stream *stream = NULL;
    atomic_int runs = 0;
    CHECK_OK(weir_stream_attr_create(WEIR_ENGINE_CPU, &attr));
    CHECK_OK(weir_stream_attr_set_threadpool(attr, pool));
    CHECK_OK(weir_stream_attr_set_priority(attr, 42));
    CHECK_OK(weir_stream_create(engine, WEIR_STREAM_ASYNCHRONOUS, attr, &stream));
    weir_stream_attr_destroy(attr);
    CHECK_OK(weir_enqueue_task(stream, count_run, &runs, NULL));
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    CHECK_EQ(test_pool_counters(host).priority, 42);
    weir_stream_release(stream);
    weir_engine_release(engine);
    weir_threadpool_release(pool);
    test_pool_destroy(host);
}

int main(void) {
    weir_runtime_info before = runtime_info();
    test_engine_getters();
    test_stream_getters();
    test_other_engine_kind();
    test_precedence();
    test_many_streams();
    test_runs_on_its_pool();
    test_lanes();
    test_no_thread_but_the_caller();
    test_synchronous();
    test_many_feeders();
    test_priority_reaches_the_pool();
    check_released(&before);
    return 0;
}

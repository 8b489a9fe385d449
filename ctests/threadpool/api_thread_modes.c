/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Thread modes of engines: where the threads come from, who shares them, when they end, and what the environment has
 * to say in it. Each value of the environment is tried in a process of its own, as it is read once.
 */

#include <pthread.h>
#include <sys/wait.h>
#include <weir/inspect.h>

#include "test_pools.h"
#include "threads.h"

static weir_engine *moded(weir_thread_mode mode, int count) {
    weir_engine *engine = NULL;
    CHECK_OK(create_engine(mode, count, NULL, &engine));
    return engine;
}

/* Notes the thread that it runs on. */
static int32_t note_thread(void *arg) {
    atomic_store((atomic_ullong *)arg, this_thread());
    return WEIR_OK;
}

/* Where a task of an asynchronous stream of this engine runs; nobody helps it. */
static uint64_t thread_of_task(weir_engine *engine, weir_threadpool *pool) {
    atomic_ullong seen = 0;
    weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, pool, NULL);
    CHECK_OK(weir_enqueue_task(stream, note_thread, &seen, NULL));
    EVENTUALLY(atomic_load(&seen) != 0);
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    weir_stream_release(stream);
    return atomic_load(&seen);
}

static int has_thread(const listing *l, uint64_t os_id) {
    for (size_t i = 0; i < l->count; i++) {
        if (l->threads[i].os_id == os_id) return 1;
    }
    return 0;
}

static void test_attributes(void) {
    weir_engine_attr *attr = NULL;
    weir_thread_mode mode = 0;
    uint32_t count = 9;
    CHECK_OK(weir_engine_attr_create(WEIR_ENGINE_CPU, &attr));
    CHECK_OK(weir_engine_attr_get_thread_mode(attr, &mode));
    CHECK_EQ(mode, WEIR_THREAD_MODE_GLOBAL);
    CHECK_OK(weir_engine_attr_get_thread_count(attr, &count));
    CHECK_EQ(count, 0);
    for (weir_thread_mode m = WEIR_THREAD_MODE_GLOBAL; m <= WEIR_THREAD_MODE_CALLER; m++) {
        CHECK_OK(weir_engine_attr_set_thread_mode(attr, m));
        CHECK_OK(weir_engine_attr_get_thread_mode(attr, &mode));
        CHECK_EQ(mode, m);
    }
    CHECK_OK(weir_engine_attr_set_thread_count(attr, 256));
    CHECK_OK(weir_engine_attr_get_thread_count(attr, &count));
    CHECK_EQ(count, 256);
    weir_engine_attr_destroy(attr);
}

/* The modes in which weir starts nothing, also if a count is set. */
static void test_no_threads(void) {
    weir_runtime_info before = runtime_info();
    weir_threadpool *pool = NULL;
    test_pool *host = test_pool_create(POOL_FIFO, 2, &pool);
    weir_engine *engine = NULL;
    CHECK_OK(weir_engine_create(WEIR_ENGINE_CPU, 0, NULL, &engine));
    check_engine(engine, WEIR_THREAD_MODE_GLOBAL, 0);
    CHECK(pool_of(engine) == NULL);
    weir_engine_release(engine);
    engine = moded(WEIR_THREAD_MODE_GLOBAL, 2);
    check_engine(engine, WEIR_THREAD_MODE_GLOBAL, 0);
    CHECK(pool_of(engine) == NULL);
    weir_engine_release(engine);
    CHECK_OK(create_engine(WEIR_THREAD_MODE_GLOBAL, 2, pool, &engine));
    check_engine(engine, WEIR_THREAD_MODE_GLOBAL, 0);
    CHECK(pool_of(engine) == pool);
    weir_engine_release(engine);
    engine = moded(WEIR_THREAD_MODE_CALLER, 2);
    check_engine(engine, WEIR_THREAD_MODE_CALLER, 0);
    thread_of_task(engine, pool);
    CHECK_EQ(test_pool_counters(host).tasks, 1); /* a stream's pool counts before the engine's mode */
    weir_engine_release(engine);
    weir_threadpool_release(pool);
    test_pool_destroy(host);
    CHECK_EQ(runtime_info().threads_started, before.threads_started);
    check_released(&before);
}

static void test_private(void) {
    weir_runtime_info before = runtime_info();
    weir_engine *first = moded(WEIR_THREAD_MODE_PRIVATE, 2), *second = moded(WEIR_THREAD_MODE_PRIVATE, 1);
    listing threads = threads_of(pool_id(pool_of(first)));
    check_engine(first, WEIR_THREAD_MODE_PRIVATE, 2);
    check_engine(second, WEIR_THREAD_MODE_PRIVATE, 1);
    CHECK(pool_of(first) != pool_of(second));
    CHECK_EQ(runtime_info().threads_started, before.threads_started + 3);
    CHECK_EQ(runtime_info().threads_of_engines, before.threads_of_engines + 3);
    for (uint32_t i = 0; i < 2; i++) {
        const weir_thread_info *thread = &threads.threads[i];
        char name[] = {'w', 'e', 'i', 'r', '-', 'c', 'p', 'u', '0', '-', (char)('0' + i), '\0'};
        CHECK_EQ(thread->origin, WEIR_THREAD_ORIGIN_ENGINE_POOL);
        CHECK_EQ(thread->index, i);
        CHECK(strcmp(thread->name, name) == 0 && strcmp(thread->owner, "cpu:0") == 0);
        check_system_name(thread, name);
    }
    CHECK(has_thread(&threads, thread_of_task(first, NULL)));
    CHECK(!has_thread(&threads, thread_of_task(second, NULL)));
    CHECK(has_thread(&threads, thread_of_task(second, pool_of(first)))); /* the stream's pool wins */

    /* An engine made like another has as many threads, of its own. */
    const weir_engine_attr *attr = NULL;
    weir_engine *third = NULL;
    CHECK_OK(weir_engine_get_attr(first, &attr));
    CHECK_OK(weir_engine_create(WEIR_ENGINE_CPU, 0, attr, &third));
    check_engine(third, WEIR_THREAD_MODE_PRIVATE, 2);
    CHECK(pool_of(third) != pool_of(first));
    weir_engine_release(third);
    weir_engine_release(second);
    weir_engine_release(first);
    check_released(&before);
}

/* Whoever keeps the pool keeps its threads. */
static void test_private_pool_kept(void) {
    weir_runtime_info before = runtime_info();
    weir_engine *engine = moded(WEIR_THREAD_MODE_PRIVATE, 2);
    weir_threadpool *pool = pool_of(engine);
    CHECK_OK(weir_threadpool_retain(pool));
    weir_engine_release(engine);
    CHECK_EQ(runtime_info().threads_of_engines, before.threads_of_engines + 2);
    engine = make_engine(pool);
    check_engine(engine, WEIR_THREAD_MODE_GLOBAL, 0);
    thread_of_task(engine, NULL);
    weir_engine_release(engine);
    weir_threadpool_release(pool);
    check_released(&before);
}

static void test_kind(void) {
    weir_runtime_info before = runtime_info();
    weir_engine *none = NULL, *engines[4] = {moded(WEIR_THREAD_MODE_KIND, 2), moded(WEIR_THREAD_MODE_KIND, -1),
                                             moded(WEIR_THREAD_MODE_KIND, 0), moded(WEIR_THREAD_MODE_KIND, 2)};
    listing threads = threads_of(pool_id(pool_of(engines[0])));
    for (int i = 0; i < 4; i++) {
        check_engine(engines[i], WEIR_THREAD_MODE_KIND, 2);
        CHECK(pool_of(engines[i]) == pool_of(engines[0]));
        CHECK(has_thread(&threads, thread_of_task(engines[i], NULL)));
    }
    CHECK_EQ(runtime_info().threads_started, before.threads_started + 2);
    CHECK_EQ(runtime_info().threads_of_kinds, before.threads_of_kinds + 2);
    CHECK_EQ(threads.threads[1].origin, WEIR_THREAD_ORIGIN_KIND_POOL);
    CHECK(strcmp(threads.threads[1].name, "weir-kind-cpu-1") == 0 && strcmp(threads.threads[1].owner, "cpu") == 0);
    check_system_name(&threads.threads[1], "weir-kind-cpu-1");
    CHECK_CODE(create_engine(WEIR_THREAD_MODE_KIND, 3, NULL, &none), WEIR_FAILED_PRECONDITION,
               "attr asks for 3 threads, the pool that cpu engines share has 2 already");
    CHECK(none == NULL);

    /* The last one ends the threads, whichever it is; the next one is the first again. */
    for (int i = 0; i < 3; i++) weir_engine_release(engines[i]);
    CHECK_EQ(runtime_info().threads_of_kinds, before.threads_of_kinds + 2);
    weir_engine_release(engines[3]);
    check_released(&before);
    engines[0] = moded(WEIR_THREAD_MODE_KIND, 3);
    check_engine(engines[0], WEIR_THREAD_MODE_KIND, 3);
    weir_engine_release(engines[0]);
    check_released(&before);
}

static atomic_int kinds_alive;

static void *come_and_go(void *unused) {
    (void)unused;
    for (int round = 0; round < scale(200); round++) {
        weir_engine *engine = moded(WEIR_THREAD_MODE_KIND, -1);
        int alive = atomic_fetch_add(&kinds_alive, 1) + 1;
        int32_t width = 0;
        CHECK_OK(weir_threadpool_get_num_threads(pool_of(engine), &width));
        CHECK_EQ(width, 3);
        CHECK(alive >= 1);
        if (round % 16 == 0) thread_of_task(engine, NULL);
        atomic_fetch_sub(&kinds_alive, 1);
        weir_engine_release(engine);
    }
    return NULL;
}

/* First and last engines of a kind in several threads at once: never two pools where one is to be shared. */
static void test_kind_in_threads(void) {
    weir_runtime_info before = runtime_info();
    pthread_t threads[4];
    weir_engine *held = moded(WEIR_THREAD_MODE_KIND, -1);
    for (int i = 0; i < 4; i++) CHECK_EQ(pthread_create(&threads[i], NULL, come_and_go, NULL), 0);
    for (int i = 0; i < 4; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    CHECK_EQ(runtime_info().threads_started, before.threads_started + 3); /* `held` held the pool */
    weir_engine_release(held);
    check_released(&before);
    for (int i = 0; i < 4; i++) CHECK_EQ(pthread_create(&threads[i], NULL, come_and_go, NULL), 0);
    for (int i = 0; i < 4; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    check_released(&before);
}

typedef struct leaving {
    weir_engine *engine;
    weir_stream *stream;
    gate gate;
} leaving;

/* The last references go inside a task of the engine's own pool. */
static int32_t leave(void *arg) {
    leaving *l = (leaving *)arg;
    int32_t status = pass_gate(&l->gate);
    weir_stream_release(l->stream);
    weir_engine_release(l->engine);
    return status;
}

/* Then its threads end by themselves: the library is not called until they have. */
static void test_release_inside(weir_thread_mode mode) {
    weir_runtime_info before = runtime_info();
    EVENTUALLY(system_threads() == 0); /* those of the tests before may still be on their way out */
    leaving l = {.engine = moded(mode, 3)};
    l.stream = make_stream(l.engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
    CHECK_OK(weir_enqueue_task(l.stream, leave, &l, NULL));
    EVENTUALLY(atomic_load(&l.gate.begun));
    EVENTUALLY(system_threads() == 3);
    open_gate(&l.gate);
    EVENTUALLY(system_threads() == 0);
    check_released(&before);
}

/* The child lets go of engines with threads, and the parent goes on. */
static void test_fork(void) {
    weir_runtime_info before = runtime_info();
    weir_engine *private = moded(WEIR_THREAD_MODE_PRIVATE, 2), *kind = moded(WEIR_THREAD_MODE_KIND, 2), *none = NULL;
    weir_engine_attr *attr = NULL;
    int status = -1;
    CHECK_OK(weir_engine_attr_create(WEIR_ENGINE_CPU, &attr));
    fflush(NULL);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        size_t count = 7;
        CHECK_CODE(weir_engine_create(WEIR_ENGINE_CPU, 0, attr, &none), WEIR_FAILED_PRECONDITION, "fork");
        CHECK_CODE(weir_engine_attr_set_thread_mode(attr, WEIR_THREAD_MODE_KIND), WEIR_FAILED_PRECONDITION, "fork");
        CHECK_OK(weir_runtime_get_threads(NULL, 0, &count));
        CHECK_EQ(count, 0);
        weir_engine_attr_destroy(attr);
        weir_engine_release(kind);
        weir_engine_release(private);
        if (under_valgrind()) execl("/bin/true", "true", (char *)NULL); /* to it, what belonged to other threads leaks */
        _Exit(under_valgrind());
    }
    EVENTUALLY(waitpid(pid, &status, WNOHANG) == pid);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 0);
    thread_of_task(private, NULL);
    thread_of_task(kind, NULL);
    weir_engine_attr_destroy(attr);
    weir_engine_release(private);
    weir_engine_release(kind);
    check_released(&before);
}

/* A process with this environment, in which `body` does not fail. NULL = the variable is not there. */
static void with_environment(const char *mode, const char *count, void (*body)(void)) {
    int status = -1;
    fflush(NULL);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        if (mode != NULL) setenv("WEIR_THREAD_MODE", mode, 1);
        if (count != NULL) setenv("WEIR_THREAD_COUNT", count, 1);
        body();
        EVENTUALLY(runtime_info().threads_alive == 0);
        _Exit(0);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 0);
}

static void check_by_environment(weir_thread_mode mode, int count) {
    weir_engine *engine = NULL;
    CHECK_OK(weir_engine_create(WEIR_ENGINE_CPU, 0, NULL, &engine));
    check_engine(engine, mode, count);
    weir_engine_release(engine);
}

static void private_2(void) {
    weir_threadpool *pool = NULL;
    weir_engine *engine = NULL;
    check_by_environment(WEIR_THREAD_MODE_PRIVATE, 2);

    /* Read once. */
    setenv("WEIR_THREAD_MODE", "caller", 1);
    setenv("WEIR_THREAD_COUNT", "1", 1);
    check_by_environment(WEIR_THREAD_MODE_PRIVATE, 2);

    /* A setting counts before it, each by itself; 0 is a setting. */
    for (weir_thread_mode mode = WEIR_THREAD_MODE_GLOBAL; mode <= WEIR_THREAD_MODE_CALLER; mode++) {
        int starts = mode == WEIR_THREAD_MODE_PRIVATE || mode == WEIR_THREAD_MODE_KIND;
        engine = moded(mode, -1);
        check_engine(engine, mode, starts ? 2 : 0);
        weir_engine_release(engine);
    }
    engine = moded(0, 1);
    check_engine(engine, WEIR_THREAD_MODE_PRIVATE, 1);
    weir_engine_release(engine);
    engine = moded(0, 0);
    check_engine(engine, WEIR_THREAD_MODE_PRIVATE, 3);
    weir_engine_release(engine);

    /* So does a pool; with another mode it is refused only if that was set. */
    uint64_t started = runtime_info().threads_started;
    CHECK_OK(weir_threadpool_create_inline(&pool));
    CHECK_OK(create_engine(0, -1, pool, &engine));
    check_engine(engine, WEIR_THREAD_MODE_GLOBAL, 0);
    CHECK(pool_of(engine) == pool);
    weir_engine_release(engine);
    CHECK_CODE(create_engine(WEIR_THREAD_MODE_PRIVATE, -1, pool, &engine), WEIR_INVALID_ARGUMENT,
               "attr has a thread pool and thread mode private");
    CHECK(engine == NULL);
    weir_threadpool_release(pool);
    CHECK_EQ(runtime_info().threads_started, started);
}

/* Nothing says how many: as many as built-in pools have, here WEIR_NUM_THREADS. */
static void private_any(void) {
    check_by_environment(WEIR_THREAD_MODE_PRIVATE, 3);
}

/* The environment's number is no demand: whoever comes second joins. */
static void kind_2(void) {
    weir_engine *four = moded(WEIR_THREAD_MODE_KIND, 4);
    check_by_environment(WEIR_THREAD_MODE_KIND, 4);
    weir_engine_release(four);
    EVENTUALLY(runtime_info().threads_of_kinds == 0);
    check_by_environment(WEIR_THREAD_MODE_KIND, 2);
}

static void global(void) {
    check_by_environment(WEIR_THREAD_MODE_GLOBAL, 0);
    CHECK_EQ(runtime_info().threads_started, 0);
}

static void caller(void) {
    check_by_environment(WEIR_THREAD_MODE_CALLER, 0);
    CHECK_EQ(runtime_info().threads_started, 0);
}

static void bad_mode(void) {
    weir_threadpool *pool = NULL;
    weir_engine *engine = NULL;
    char text[128];
    CHECK_CODE(weir_engine_create(WEIR_ENGINE_CPU, 0, NULL, &engine), WEIR_INVALID_ARGUMENT,
               "the environment variable WEIR_THREAD_MODE is '");
    snprintf(text, sizeof text, "'%.20s', expected global, private, kind or caller", getenv("WEIR_THREAD_MODE"));
    if (strstr(text, "\xff") == NULL) CHECK_TEXT(weir_last_error_message(), text);
    CHECK(engine == NULL);
    /* Whoever does not ask for it is not told. */
    engine = moded(WEIR_THREAD_MODE_GLOBAL, -1);
    weir_engine_release(engine);
    CHECK_OK(weir_threadpool_create_inline(&pool));
    CHECK_OK(create_engine(0, -1, pool, &engine));
    weir_engine_release(engine);
    weir_threadpool_release(pool);
    CHECK_EQ(runtime_info().threads_started, 0);
}

static void bad_count(void) {
    weir_engine *engine = NULL;
    CHECK_CODE(weir_engine_create(WEIR_ENGINE_CPU, 0, NULL, &engine), WEIR_INVALID_ARGUMENT,
               "the environment variable WEIR_THREAD_COUNT is '");
    CHECK_TEXT(weir_last_error_message(), "', expected 0 to 256");
    CHECK(engine == NULL);
    CHECK_CODE(create_engine(WEIR_THREAD_MODE_KIND, -1, NULL, &engine), WEIR_INVALID_ARGUMENT, "WEIR_THREAD_COUNT");
    CHECK_EQ(runtime_info().threads_started, 0);
    engine = moded(WEIR_THREAD_MODE_GLOBAL, -1);
    weir_engine_release(engine);
    engine = moded(0, 1);
    check_engine(engine, WEIR_THREAD_MODE_PRIVATE, 1);
    weir_engine_release(engine);
}

/* Before anything else: a child of a process that has used the library may not use it. */
static void test_environment(void) {
    static const char *const bad_modes[] = {"", "privat", "gpu_private", "global,private", "\xff"};
    static const char *const bad_counts[] = {"", "-1", "257", "2.5", "two", "99999999999999999999"};
    unsetenv("WEIR_THREAD_MODE");
    unsetenv("WEIR_THREAD_COUNT");
    with_environment("private", "2", private_2);
    with_environment("PRIVATE", NULL, private_any);
    with_environment("Private", "0", private_any);
    with_environment("kind", "2", kind_2);
    with_environment("Global", "2", global);
    with_environment(NULL, "2", global);
    with_environment(NULL, NULL, global);
    with_environment(NULL, "nonsense", global); /* where nothing is started, no number is read */
    with_environment("CALLER", "2", caller);
    for (size_t i = 0; i < sizeof bad_modes / sizeof *bad_modes; i++) with_environment(bad_modes[i], "2", bad_mode);
    for (size_t i = 0; i < sizeof bad_counts / sizeof *bad_counts; i++) {
        with_environment("private", bad_counts[i], bad_count);
    }
}

int main(void) {
    setenv("WEIR_NUM_THREADS", "3", 1);
    test_environment();
    weir_runtime_info before = runtime_info();
    test_attributes();
    test_no_threads();
    test_private();
    test_private_pool_kept();
    test_kind();
    test_kind_in_threads();
    test_release_inside(WEIR_THREAD_MODE_PRIVATE);
    test_release_inside(WEIR_THREAD_MODE_KIND);
    test_fork();
    check_released(&before);
    return 0;
}

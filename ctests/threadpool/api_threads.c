/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The list of the library's threads: names, origins, owners, and the same in the system's own lists; while threads
 * come and go too.
 */

#include <pthread.h>
#include <weir/inspect.h>

#include "test_pools.h"
#include "threads.h"

static int same(const char *a, const char *b) {
    return strcmp(a, b) == 0;
}

static void check_sum(void) {
    weir_runtime_info info = runtime_info();
    CHECK_EQ(info.threads_of_builtin_pools + info.threads_of_lanes + info.threads_of_engines +
                 info.threads_of_kinds,
             info.threads_alive);
}

/* Pools that the host makes: each thread has the number of its pool in its name. */
static void test_pools(void) {
    weir_runtime_info before = runtime_info();
    weir_threadpool *pools[2] = {NULL, NULL};
    const weir_threadpool_options options = {.struct_size = sizeof options, .num_threads = 2};
    CHECK_OK(weir_threadpool_create_builtin(&options, &pools[0]));
    CHECK_OK(weir_threadpool_create_builtin(&options, &pools[1]));
    CHECK_EQ(runtime_info().threads_of_builtin_pools, before.threads_of_builtin_pools + 4);
    check_sum();
    for (int p = 0; p < 2; p++) {
        unsigned long long id = pool_id(pools[p]);
        listing l = threads_of(id);
        CHECK_EQ(l.count, 2);
        for (uint32_t i = 0; i < 2; i++) {
            char name[32];
            snprintf(name, sizeof name, "weir-pool%llu-%u", id, (unsigned)i);
            CHECK(same(l.threads[i].name, name) && same(l.threads[i].owner, ""));
            CHECK_EQ(l.threads[i].index, i);
            CHECK_EQ(l.threads[i].origin, WEIR_THREAD_ORIGIN_BUILTIN_POOL);
            CHECK(l.threads[i].os_id != this_thread());
            check_system_name(&l.threads[i], name);
        }
        CHECK(l.threads[0].os_id != l.threads[1].os_id);
    }
    CHECK(pool_id(pools[0]) != pool_id(pools[1]));
    for (int p = 0; p < 2; p++) weir_threadpool_release(pools[p]);
    check_released(&before);
}

/* A stream's own thread carries its name, or its number if it has none. */
static void test_lanes(void) {
    weir_runtime_info before = runtime_info();
    weir_engine *engine = make_engine(NULL);
    static const char *const names[] = {"ingest", NULL, "a name of more than twenty-two bytes, \xc3\xa9t cetera"};
    weir_stream *streams[3];
    for (int i = 0; i < 3; i++) streams[i] = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, names[i]);
    listing l = threads_of(0);
    CHECK_EQ(l.count, 3);
    CHECK_EQ(runtime_info().threads_of_lanes, before.threads_of_lanes + 3);
    check_sum();
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(l.threads[i].origin, WEIR_THREAD_ORIGIN_LANE);
        CHECK_EQ(l.threads[i].index, 0);
    }
    CHECK(same(l.threads[0].name, "weir-lane-ingest") && same(l.threads[0].owner, "ingest"));
    check_system_name(&l.threads[0], "weir-lane-inges");
    unsigned number = 0;
    char name[32], owner[32];
    CHECK_EQ(sscanf(l.threads[1].name, "weir-lane-%u", &number), 1);
    snprintf(name, sizeof name, "weir-lane-%u", number);
    snprintf(owner, sizeof owner, "stream %u", number);
    CHECK(same(l.threads[1].name, name) && same(l.threads[1].owner, owner));
    check_system_name(&l.threads[1], name);
    CHECK(same(l.threads[2].name, "weir-lane-a name of more than t") && same(l.threads[2].owner, names[2]));
    check_system_name(&l.threads[2], "weir-lane-a nam");
    weir_stream_release(streams[0]);
    EVENTUALLY(list_threads().count == 2); /* the others keep their places */
    l = threads_of(0);
    CHECK(same(l.threads[0].name, name) && same(l.threads[1].owner, names[2]));
    for (int i = 1; i < 3; i++) weir_stream_release(streams[i]);
    weir_engine_release(engine);
    check_released(&before);
}

/* What a program that was compiled with a later header would pass. */
typedef struct larger_info {
    weir_thread_info known;
    uint64_t later;
} larger_info;

static void test_arrays(void) {
    weir_threadpool *pool = NULL;
    weir_thread_info infos[4] = {{.struct_size = sizeof *infos}};
    larger_info larger[3] = {{.known = {.struct_size = sizeof *larger}, .later = 7}, {.later = 7}, {.later = 7}};
    size_t count = 9;
    CHECK_OK(weir_runtime_get_threads(NULL, 0, &count));
    CHECK_EQ(count, 0);
    count = 9;
    CHECK_OK(weir_runtime_get_threads(infos, 4, &count));
    CHECK_EQ(count, 0);
    const weir_threadpool_options options = {.struct_size = sizeof options, .num_threads = 3};
    CHECK_OK(weir_threadpool_create_builtin(&options, &pool));
    CHECK_OK(weir_runtime_get_threads(NULL, 0, &count));
    CHECK_EQ(count, 3);
    count = 9;
    CHECK_CODE(weir_runtime_get_threads(infos, 2, &count), WEIR_OUT_OF_RANGE,
               "capacity is 2, 3 threads are running");
    CHECK_EQ(count, 3);
    CHECK(infos[0].origin == 0 && infos[1].struct_size == 0);
    CHECK_OK(weir_runtime_get_threads(infos, 3, &count));
    CHECK_EQ(count, 3);
    CHECK_EQ(infos[3].struct_size, 0);
    CHECK_OK(weir_runtime_get_threads(&larger[0].known, 3, &count));
    for (uint32_t i = 0; i < 3; i++) {
        CHECK_EQ(infos[i].struct_size, sizeof *infos);
        CHECK_EQ(larger[i].known.struct_size, sizeof *larger);
        CHECK_EQ(larger[i].known.index, i);
        CHECK(same(larger[i].known.name, infos[i].name));
        CHECK_EQ(larger[i].later, 0);
    }
    weir_threadpool_release(pool);
    EVENTUALLY(list_threads().count == 0);
}

static atomic_int over;

static void *watch(void *unused) {
    (void)unused;
    while (!atomic_load(&over)) {
        listing l = list_threads();
        for (size_t i = 0; i < l.count; i++) {
            for (size_t j = 0; j < i; j++) { /* no thread twice */
                CHECK(l.threads[i].pool != l.threads[j].pool || l.threads[i].index != l.threads[j].index ||
                      l.threads[i].pool == 0);
                CHECK(l.threads[i].os_id != l.threads[j].os_id || l.threads[i].os_id == 0);
            }
        }
        check_sum();
    }
    return NULL;
}

static void *start_and_end(void *arg) {
    weir_engine *engine = (weir_engine *)arg;
    for (int round = 0; round < scale(200); round++) {
        weir_threadpool *pool = NULL;
        const weir_threadpool_options options = {.struct_size = sizeof options, .num_threads = 1 + round % 4};
        CHECK_OK(weir_threadpool_create_builtin(&options, &pool));
        weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
        CHECK_EQ(threads_of(pool_id(pool)).count, 1 + round % 4);
        weir_stream_release(stream);
        weir_threadpool_release(pool);
        EVENTUALLY(runtime_info().threads_alive < MAX_LISTED / 2); /* they end a moment after they are let go of */
    }
    return NULL;
}

/* A list is always of one moment. */
static void test_in_threads(void) {
    weir_runtime_info before = runtime_info();
    weir_engine *engine = make_engine(NULL);
    pthread_t watchers[2], starters[3];
    for (int i = 0; i < 2; i++) CHECK_EQ(pthread_create(&watchers[i], NULL, watch, NULL), 0);
    for (int i = 0; i < 3; i++) CHECK_EQ(pthread_create(&starters[i], NULL, start_and_end, engine), 0);
    for (int i = 0; i < 3; i++) CHECK_EQ(pthread_join(starters[i], NULL), 0);
    atomic_store(&over, 1);
    for (int i = 0; i < 2; i++) CHECK_EQ(pthread_join(watchers[i], NULL), 0);
    weir_engine_release(engine);
    check_released(&before);
    CHECK_EQ(list_threads().count, before.threads_alive);
}

/* Threads of the host's are the host's. */
static void test_host_pool(void) {
    weir_threadpool *pool = NULL;
    test_pool *host = test_pool_create(POOL_FULL, 2, &pool);
    CHECK_EQ(list_threads().count, 0);
    CHECK_EQ(threads_of(pool_id(pool)).count, 0);
    weir_threadpool_release(pool);
    test_pool_destroy(host);
}

int main(void) {
    weir_runtime_info before = runtime_info();
    test_pools();
    test_lanes();
    test_arrays();
    test_host_pool();
    test_in_threads();
    check_released(&before);
    return 0;
}

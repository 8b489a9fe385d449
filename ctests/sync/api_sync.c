/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The wait for everything: it covers what was queued before it and nothing later, and it never hangs, not even in a
 * task.
 */

#include <pthread.h>
#include <weir/inspect.h>
#include <weir/testing.h>

#include "make.h"
#include "test_pools.h"

/* A thread that submits without pause. It is slowed down only where its queue would fill the memory. */
typedef struct submitter {
    weir_stream *stream;
    atomic_llong queued;
    atomic_llong ran;
    atomic_int stop;
} submitter;

enum { LONGEST_QUEUE = 2000 };

static int32_t count_long(void *arg) {
    atomic_fetch_add((atomic_llong *)arg, 1);
    return WEIR_OK;
}

static void *submit(void *arg) {
    submitter *s = arg;
    while (!atomic_load(&s->stop)) {
        if (atomic_load(&s->queued) - atomic_load(&s->ran) > LONGEST_QUEUE) {
            sleep_ns(100000);
            continue;
        }
        CHECK_OK(weir_enqueue_task(s->stream, count_long, &s->ran, NULL));
        atomic_fetch_add(&s->queued, 1);
    }
    return NULL;
}

/* All that was queued before the call has run when it returns, while two threads go on submitting. */
static void test_snapshot(pool_kind kind, int width) {
    enum { SUBMITTERS = 2 };
    weir_threadpool *pool = NULL;
    test_pool *host = test_pool_create(kind, width, &pool);
    weir_engine *engine = make_engine(pool), *bare = make_engine(NULL);
    submitter others[SUBMITTERS] = {{.stop = 0}, {.stop = 0}};
    pthread_t threads[SUBMITTERS];
    weir_stream *own[2] = {make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL),
                           make_stream(bare, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL)};
    atomic_llong ran[2] = {0, 0};
    for (int i = 0; i < SUBMITTERS; i++) {
        others[i].stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
        CHECK(pthread_create(&threads[i], NULL, submit, &others[i]) == 0);
    }
    for (int i = 0; i < SUBMITTERS; i++) EVENTUALLY(atomic_load(&others[i].queued) > 0);
    int rounds = scale(1000);
    for (int round = 1; round <= rounds; round++) {
        int64_t before[SUBMITTERS];
        for (int s = 0; s < 2; s++) {
            for (int i = 0; i < 3; i++) CHECK_OK(weir_enqueue_task(own[s], count_long, &ran[s], NULL));
        }
        for (int i = 0; i < SUBMITTERS; i++) before[i] = atomic_load(&others[i].queued);
        CHECK_OK(weir_sync_devices(WEIR_TIMEOUT_INFINITE, NULL, 0, NULL));
        for (int i = 0; i < SUBMITTERS; i++) CHECK(atomic_load(&others[i].ran) >= before[i]);
        for (int s = 0; s < 2; s++) CHECK_EQ(atomic_load(&ran[s]), 3 * round);
    }
    for (int i = 0; i < SUBMITTERS; i++) {
        atomic_store(&others[i].stop, 1);
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    CHECK_OK(weir_engine_synchronize(engine, WEIR_TIMEOUT_INFINITE));
    for (int i = 0; i < SUBMITTERS; i++) {
        CHECK_EQ(atomic_load(&others[i].ran), atomic_load(&others[i].queued));
        weir_stream_release(others[i].stream);
    }
    weir_stream_release(own[0]);
    weir_stream_release(own[1]);
    weir_engine_release(engine);
    weir_engine_release(bare);
    weir_threadpool_release(pool);
    test_pool_destroy(host);
}

static void test_timeout(void) {
    weir_threadpool *pool = NULL;
    test_pool *host = test_pool_create_threaded(POOL_FIFO, 2, &pool);
    weir_engine *engine = make_engine(pool), *idle = make_engine(pool);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
    gate held = {.result = WEIR_OK};
    CHECK_OK(weir_sync_devices(0, NULL, 0, NULL));
    CHECK_OK(weir_enqueue_task(stream, pass_gate, &held, NULL));
    EVENTUALLY(atomic_load(&held.begun));
    CHECK_CODE(weir_sync_devices(0, NULL, 0, NULL), WEIR_DEADLINE_EXCEEDED, "weir_sync_devices: ");
    uint64_t begun = now_ns();
    CHECK_CODE(weir_sync_devices(5000000, NULL, 0, NULL), WEIR_DEADLINE_EXCEEDED, "weir_sync_devices: ");
    CHECK(now_ns() - begun >= 5000000);
    CHECK_CODE(weir_engine_synchronize(engine, 1000000), WEIR_DEADLINE_EXCEEDED, "weir_engine_synchronize: ");
    CHECK_OK(weir_engine_synchronize(idle, 0)); /* another engine's work is not its own */
    open_gate(&held);
    CHECK_OK(weir_sync_devices(WEIR_TIMEOUT_INFINITE - 1, NULL, 0, NULL)); /* a deadline that overflows is none */
    weir_stream_release(stream);
    weir_engine_release(engine);
    weir_engine_release(idle);
    weir_threadpool_release(pool);
    test_pool_destroy(host);
}

/* One call reports the error of each engine. */
static void test_errors_of_several_engines(void) {
    weir_engine *engines[2];
    weir_stream *streams[2];
    static const char *const names[2] = {"left", "right"};
    for (int i = 0; i < 2; i++) {
        engines[i] = make_engine(NULL);
        streams[i] = make_stream(engines[i], WEIR_STREAM_ASYNCHRONOUS, NULL, names[i]);
        CHECK_OK(weir_enqueue_task(streams[i], fail_with_data_loss, NULL, NULL));
    }
    CHECK_CODE(weir_sync_devices(WEIR_TIMEOUT_INFINITE, NULL, 0, NULL), WEIR_DATA_LOSS, names[0]);
    CHECK_TEXT(weir_last_error_message(), names[1]);
    CHECK_OK(weir_sync_devices(WEIR_TIMEOUT_INFINITE, NULL, 0, NULL));
    /* With results for each engine the text is the same. */
    for (int i = 0; i < 2; i++) {
        CHECK_OK(weir_stream_clear_error(streams[i]));
        CHECK_OK(weir_enqueue_task(streams[i], fail_with_data_loss, NULL, NULL));
    }
    weir_engine_sync results[8] = {{.struct_size = sizeof results[0]}};
    size_t count = 0;
    CHECK_CODE(weir_sync_devices(WEIR_TIMEOUT_INFINITE, results, 8, &count), WEIR_DATA_LOSS, names[0]);
    CHECK_TEXT(weir_last_error_message(), names[1]);
    CHECK(count == 2 && results[0].status == WEIR_DATA_LOSS && results[1].status == WEIR_DATA_LOSS);
    for (int i = 0; i < 2; i++) {
        CHECK_CODE(weir_stream_synchronize(streams[i], WEIR_TIMEOUT_INFINITE), WEIR_DATA_LOSS, names[i]);
        weir_stream_release(streams[i]);
        weir_engine_release(engines[i]);
    }
}

/* A task that waits for work of another stream on its own pool: by one of the waits, from inside. */
typedef enum wait_kind { WAIT_STREAM, WAIT_EVENT, WAIT_ENGINE, WAIT_DEVICES, WAIT_KINDS } wait_kind;

typedef struct waiter {
    wait_kind kind;
    weir_stream *other;
    weir_event *event;
    weir_engine *engine;
    atomic_int *other_ran;
    atomic_int *meeting; /* others to meet inside of a task first, or NULL */
    atomic_int finished;
} waiter;

static weir_status wait_inside(const waiter *w) {
    switch (w->kind) {
    case WAIT_STREAM:
        return weir_stream_synchronize(w->other, WEIR_TIMEOUT_INFINITE);
    case WAIT_EVENT:
        return weir_event_synchronize(w->event, WEIR_TIMEOUT_INFINITE);
    case WAIT_ENGINE:
        return weir_engine_synchronize(w->engine, WEIR_TIMEOUT_INFINITE);
    case WAIT_DEVICES:
        return weir_sync_devices(WEIR_TIMEOUT_INFINITE, NULL, 0, NULL);
    case WAIT_KINDS:
        break;
    }
    return WEIR_INTERNAL;
}

static int32_t wait_in_task(void *arg) {
    waiter *w = arg;
    if (w->meeting != NULL) {
        atomic_fetch_add(w->meeting, 1);
        while (atomic_load(w->meeting) < 2) sleep_ns(20000);
    }
    weir_status status = wait_inside(w);
    /* A wait for one thing helps or refuses; one for everything refuses always, for this task is part of it. */
    CHECK(status == WEIR_FAILED_PRECONDITION || (status == WEIR_OK && w->kind < WAIT_ENGINE));
    if (status == WEIR_OK && w->other_ran != NULL) CHECK(atomic_load(w->other_ran) > 0);
    atomic_store(&w->finished, 1);
    return WEIR_OK;
}

static int32_t wait_in_range(void *arg, int64_t begin, int64_t end, int32_t slot) {
    (void)begin, (void)end, (void)slot;
    return wait_in_task(arg);
}

/* One task waits for another stream of the same pool, whose work only the waiting thread may be left to do. A pool
 * that may run a task in the thread that enqueues must not be given one that waits for that thread: no gate then. */
static void check_wait_in_task(weir_threadpool *pool, wait_kind kind, int gated) {
    weir_engine *engine = make_engine(pool), *caller = make_engine(NULL);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "waiting");
    weir_stream *other = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "waited for");
    weir_event *event = make_event(engine, WEIR_EVENT_DEFAULT);
    atomic_int ran = 0;
    waiter w = {.kind = kind, .other = other, .event = event, .engine = engine, .other_ran = &ran};
    gate held = {.result = WEIR_OK};
    if (gated) CHECK_OK(weir_enqueue_task(stream, pass_gate, &held, NULL));
    CHECK_OK(weir_enqueue_task(other, count_run, &ran, NULL));
    CHECK_OK(weir_event_record(event, other));
    CHECK_OK(weir_enqueue_task(stream, wait_in_task, &w, NULL));
    open_gate(&held);
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    CHECK_OK(weir_stream_synchronize(other, WEIR_TIMEOUT_INFINITE));
    CHECK_EQ(atomic_load(&w.finished), 1);
    CHECK_EQ(atomic_load(&ran), 1);

    atomic_store(&ran, 0); /* the same from inside of a region on the pool */
    weir_parallel_hint hint = {.struct_size = sizeof hint, .cost_ns = 1000000};
    CHECK_OK(weir_enqueue_task(other, count_run, &ran, NULL));
    CHECK_OK(weir_event_record(event, other));
    CHECK_OK(weir_parallel_for(pool, 8, &hint, wait_in_range, &w));
    CHECK_OK(weir_engine_synchronize(engine, WEIR_TIMEOUT_INFINITE));
    CHECK_EQ(atomic_load(&ran), 1);
    weir_event_release(event);
    weir_stream_release(other);
    weir_stream_release(stream);
    weir_engine_release(caller);
    weir_engine_release(engine);
}

/* Two tasks, each of which waits for the stream of the other: at least one is refused, and both come to an end. */
static void check_wait_for_each_other(weir_threadpool *pool, wait_kind kind) {
    weir_engine *engine = make_engine(pool);
    weir_stream *streams[2] = {make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "one"),
                               make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "two")};
    weir_event *events[2] = {make_event(engine, WEIR_EVENT_DEFAULT), make_event(engine, WEIR_EVENT_DEFAULT)};
    atomic_int meeting = 0;
    waiter waiters[2];
    gate held = {.result = WEIR_OK};
    weir_stream *gated = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "gated");
    weir_event *start = make_event(engine, WEIR_EVENT_DEFAULT);
    CHECK_OK(weir_enqueue_task(gated, pass_gate, &held, NULL)); /* nothing runs before the events are recorded */
    CHECK_OK(weir_event_record(start, gated));
    for (int i = 0; i < 2; i++) {
        waiters[i] = (waiter){.kind = kind, .other = streams[1 - i], .event = events[1 - i], .engine = engine};
        waiters[i].meeting = &meeting;
        CHECK_OK(weir_stream_wait_event(streams[i], start));
        CHECK_OK(weir_enqueue_task(streams[i], wait_in_task, &waiters[i], NULL));
        CHECK_OK(weir_event_record(events[i], streams[i]));
    }
    open_gate(&held);
    for (int i = 0; i < 2; i++) CHECK_OK(weir_stream_synchronize(streams[i], WEIR_TIMEOUT_INFINITE));
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(atomic_load(&waiters[i].finished), 1);
        weir_event_release(events[i]);
        weir_stream_release(streams[i]);
    }
    CHECK_OK(weir_stream_synchronize(gated, WEIR_TIMEOUT_INFINITE));
    weir_event_release(start);
    weir_stream_release(gated);
    weir_engine_release(engine);
}

static void test_waits_in_tasks(void) {
    static const pool_kind kinds[] = {POOL_FIFO, POOL_LIFO, POOL_PARALLEL_FOR, POOL_ASYNCHRONOUS, POOL_FULL};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        for (int width = 1; width <= 2; width++) {
            weir_threadpool *pool = NULL;
            test_pool *host = test_pool_create_threaded(kinds[k], width, &pool);
            for (int wait = 0; wait < WAIT_KINDS; wait++) {
                for (int round = 0; round < scale(20); round++) check_wait_in_task(pool, (wait_kind)wait, 1);
            }
            weir_threadpool_release(pool);
            test_pool_destroy(host);
        }
    }
}

static void test_waits_for_each_other(pool_kind kind) {
    weir_threadpool *pool = NULL;
    test_pool *host = test_pool_create_exact(kind, 2, &pool);
    for (int wait = 0; wait < WAIT_KINDS; wait++) {
        for (int round = 0; round < scale(20); round++) check_wait_for_each_other(pool, (wait_kind)wait);
    }
    weir_threadpool_release(pool);
    test_pool_destroy(host);
}

static void test_waits_in_reference_pools(void) {
    for (int32_t width = 1; width <= 2; width++) {
        weir_threadpool *builtin = NULL;
        const weir_threadpool_options options = {.struct_size = sizeof options, .num_threads = width};
        CHECK_OK(weir_threadpool_create_builtin(&options, &builtin));
        for (int wait = 0; wait < WAIT_KINDS; wait++) {
            for (int round = 0; round < scale(20); round++) check_wait_in_task(builtin, (wait_kind)wait, 1);
            if (width == 2) check_wait_for_each_other(builtin, (wait_kind)wait);
        }
        weir_threadpool_release(builtin);
        for (uint64_t seed = 0; seed < (uint64_t)scale(20); seed++) {
            weir_threadpool *seeded = NULL;
            CHECK_OK(weir_threadpool_create_seeded(seed, width, &seeded));
            for (int wait = 0; wait < WAIT_KINDS; wait++) check_wait_in_task(seeded, (wait_kind)wait, 0);
            weir_threadpool_release(seeded);
        }
    }
}

static atomic_int enough, dawdling;

static int32_t dawdle(void *arg) {
    (void)arg;
    sleep_ms(2);
    atomic_fetch_sub(&dawdling, 1);
    return WEIR_OK;
}

static void keep_busy(weir_stream *stream) {
    while (atomic_load(&dawdling) < 5) {
        atomic_fetch_add(&dawdling, 1);
        CHECK_OK(weir_enqueue_task(stream, dawdle, NULL, NULL));
    }
}

static void *sync_on_and_on(void *arg) {
    (void)arg;
    while (!atomic_load(&enough)) CHECK_OK(weir_sync_devices(WEIR_TIMEOUT_INFINITE, NULL, 0, NULL));
    return NULL;
}

/* A stream that is let go ends, lane and all, although there is always somebody in weir_sync_devices. */
static void test_overlapping_syncs(const weir_runtime_info *before) {
    enum { THREADS = 6 };
    check_released(before); /* threads of earlier tests may still be ending */
    pthread_t threads[THREADS];
    weir_engine *engine = make_engine(NULL);
    weir_stream *busy = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
    atomic_int ran = 0;
    uint64_t alive = before->threads_alive + 1;
    keep_busy(busy);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, sync_on_and_on, NULL) == 0);
    for (int round = 0; round < 1 + scale(20); round++) {
        weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
        CHECK_OK(weir_enqueue_task(stream, count_run, &ran, NULL));
        CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
        weir_stream_release(stream);
        EVENTUALLY(keep_busy(busy), runtime_info().threads_alive == alive);
    }
    atomic_store(&enough, 1);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    weir_stream_release(busy);
    weir_engine_release(engine);
}

int main(void) {
    weir_runtime_info before = runtime_info();
    test_snapshot(POOL_FIFO, 2);
    test_snapshot(POOL_PARALLEL_FOR, 2); /* lanes */
    test_timeout();
    test_errors_of_several_engines();
    test_waits_in_tasks();
    test_waits_for_each_other(POOL_FIFO);
    test_waits_for_each_other(POOL_LIFO);
    test_waits_for_each_other(POOL_FULL);
    test_waits_in_reference_pools();
    test_waits_for_each_other(POOL_PARALLEL_FOR); /* lanes */
    test_overlapping_syncs(&before);
    check_released(&before);
    return 0;
}

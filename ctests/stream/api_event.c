/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Events: points in streams that streams and threads wait for, the failures they carry, and time.
 */

#include <pthread.h>
#include <weir/inspect.h>

#include "make.h"
#include "test_pools.h"

static int32_t is_reached(const weir_event *event) {
    int32_t done = -1;
    CHECK_OK(weir_event_query(event, &done));
    return done;
}

static int32_t is_idle(const weir_stream *stream) {
    int32_t done = -1;
    CHECK_OK(weir_stream_query(stream, &done));
    return done;
}

/* Two asynchronous streams on pools of their own. */
typedef struct pair {
    weir_threadpool *pools[2];
    test_pool *hosts[2];
    weir_engine *engine;
    weir_stream *a, *b;
} pair;

static pair pair_create(void) {
    pair p;
    p.hosts[0] = test_pool_create_threaded(POOL_FIFO, 1, &p.pools[0]);
    p.hosts[1] = test_pool_create_threaded(POOL_LIFO, 1, &p.pools[1]);
    p.engine = make_engine(p.pools[0]);
    p.a = make_stream(p.engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "producer");
    p.b = make_stream(p.engine, WEIR_STREAM_ASYNCHRONOUS, p.pools[1], "consumer");
    return p;
}

static void pair_destroy(pair *p) {
    weir_stream_release(p->a);
    weir_stream_release(p->b);
    weir_engine_release(p->engine);
    for (int i = 0; i < 2; i++) {
        weir_threadpool_release(p->pools[i]);
        test_pool_destroy(p->hosts[i]);
    }
}

static void test_never_recorded(void) {
    pair p = pair_create();
    weir_event *event = make_event(p.engine, WEIR_EVENT_TIMING);
    int64_t ns = 77;
    CHECK_EQ(is_reached(event), 1);
    CHECK_OK(weir_event_synchronize(event, 0));
    CHECK_OK(weir_stream_wait_event(p.a, event));
    CHECK_OK(weir_stream_synchronize(p.a, WEIR_TIMEOUT_INFINITE));
    CHECK_CODE(weir_event_elapsed_ns(event, event, &ns), WEIR_FAILED_PRECONDITION, "recorded");
    CHECK_EQ(ns, 77);
    weir_event_release(event);
    pair_destroy(&p);
}

static void test_wait_across_streams(void) {
    pair p = pair_create();
    weir_event *event = make_event(p.engine, WEIR_EVENT_DEFAULT);
    gate held = {.result = WEIR_OK};
    atomic_int after = 0;
    CHECK_OK(weir_enqueue_task(p.a, pass_gate, &held, NULL));
    CHECK_OK(weir_event_record(event, p.a));
    CHECK_OK(weir_stream_wait_event(p.b, event));
    CHECK_OK(weir_enqueue_task(p.b, count_run, &after, NULL));
    EVENTUALLY(atomic_load(&held.begun));
    sleep_ms(5);
    CHECK_EQ(atomic_load(&after), 0);
    CHECK_EQ(is_reached(event), 0);
    CHECK_EQ(is_idle(p.b), 0);
    CHECK_CODE(weir_event_synchronize(event, 0), WEIR_DEADLINE_EXCEEDED, "weir_event_synchronize: ");
    CHECK_CODE(weir_event_synchronize(event, 1000000), WEIR_DEADLINE_EXCEEDED, "weir_event_synchronize: ");
    open_gate(&held);
    CHECK_OK(weir_event_synchronize(event, WEIR_TIMEOUT_INFINITE));
    CHECK_EQ(is_reached(event), 1);
    CHECK_OK(weir_stream_synchronize(p.b, WEIR_TIMEOUT_INFINITE));
    CHECK_EQ(atomic_load(&after), 1);
    weir_event_release(event);
    pair_destroy(&p);
}

/* Who waits for the earlier record goes on waiting for that one. */
static void test_record_again(void) {
    pair p = pair_create();
    weir_stream *idle = make_stream(p.engine, WEIR_STREAM_DEFAULT, NULL, NULL);
    weir_event *event = make_event(p.engine, WEIR_EVENT_DEFAULT);
    gate held = {.result = WEIR_OK};
    atomic_int after = 0;
    CHECK_OK(weir_enqueue_task(p.a, pass_gate, &held, NULL));
    CHECK_OK(weir_event_record(event, p.a));
    CHECK_OK(weir_stream_wait_event(p.b, event));
    CHECK_OK(weir_event_record(event, idle));
    CHECK_EQ(is_reached(event), 1);
    CHECK_OK(weir_event_synchronize(event, 0));
    CHECK_OK(weir_enqueue_task(p.b, count_run, &after, NULL));
    sleep_ms(5);
    CHECK_EQ(atomic_load(&after), 0);
    open_gate(&held);
    CHECK_OK(weir_stream_synchronize(p.b, WEIR_TIMEOUT_INFINITE));
    CHECK_EQ(atomic_load(&after), 1);
    weir_event_release(event);
    weir_stream_release(idle);
    pair_destroy(&p);
}

/* A recorded event may go before it is reached, and a stream may wait for a point of its own. */
static void test_release_early_and_own_event(void) {
    pair p = pair_create();
    weir_event *event = make_event(p.engine, WEIR_EVENT_DEFAULT);
    gate held = {.result = WEIR_OK};
    atomic_int after = 0;
    CHECK_OK(weir_enqueue_task(p.a, pass_gate, &held, NULL));
    CHECK_OK(weir_event_retain(event));
    CHECK_OK(weir_event_record(event, p.a));
    CHECK_OK(weir_stream_wait_event(p.b, event));
    CHECK_OK(weir_stream_wait_event(p.a, event));
    weir_event_release(event);
    weir_event_release(event);
    CHECK_OK(weir_enqueue_task(p.a, count_run, &after, NULL));
    CHECK_OK(weir_enqueue_task(p.b, count_run, &after, NULL));
    open_gate(&held);
    CHECK_OK(weir_stream_synchronize(p.a, WEIR_TIMEOUT_INFINITE));
    CHECK_OK(weir_stream_synchronize(p.b, WEIR_TIMEOUT_INFINITE));
    CHECK_EQ(atomic_load(&after), 2);
    pair_destroy(&p);
}

/* A failure goes on to the streams that wait, as ABORTED with the text of its origin, and to each thread that waits. */
static void test_failure_travels(void) {
    pair p = pair_create();
    weir_stream *third = make_stream(p.engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "third");
    weir_event *event = make_event(p.engine, WEIR_EVENT_DEFAULT), *next = make_event(p.engine, WEIR_EVENT_DEFAULT);
    atomic_int after = 0;
    gate held = {.result = WEIR_DATA_LOSS};
    CHECK_OK(weir_enqueue_task(p.a, pass_gate, &held, NULL));
    CHECK_OK(weir_event_record(event, p.a));
    CHECK_OK(weir_stream_wait_event(p.b, event));
    CHECK_OK(weir_enqueue_task(p.b, count_run, &after, NULL));
    CHECK_OK(weir_event_record(next, p.b));
    CHECK_OK(weir_stream_wait_event(third, next));
    CHECK_OK(weir_enqueue_task(third, count_run, &after, NULL));
    open_gate(&held);

    CHECK_CODE(weir_event_synchronize(event, WEIR_TIMEOUT_INFINITE), WEIR_DATA_LOSS, "producer");
    CHECK_CODE(weir_event_synchronize(event, WEIR_TIMEOUT_INFINITE), WEIR_DATA_LOSS, "producer");
    CHECK_EQ(is_reached(event), 1);
    CHECK_CODE(weir_stream_synchronize(p.b, WEIR_TIMEOUT_INFINITE), WEIR_ABORTED, "producer");
    CHECK_TEXT(weir_last_error_message(), "DATA_LOSS");
    CHECK_CODE(weir_stream_synchronize(third, WEIR_TIMEOUT_INFINITE), WEIR_ABORTED, "producer");
    CHECK_EQ(atomic_load(&after), 0);
    CHECK_CODE(weir_stream_wait_event(p.b, event), WEIR_FAILED_PRECONDITION, "consumer");

    CHECK_OK(weir_stream_clear_error(p.b)); /* the producer keeps its failure, and an event recorded now carries it */
    CHECK_OK(weir_event_record(event, p.a));
    CHECK_CODE(weir_event_synchronize(event, WEIR_TIMEOUT_INFINITE), WEIR_DATA_LOSS, "producer");
    CHECK_OK(weir_stream_clear_error(p.a));
    CHECK_OK(weir_event_record(event, p.a));
    CHECK_OK(weir_event_synchronize(event, WEIR_TIMEOUT_INFINITE));
    CHECK_OK(weir_stream_wait_event(p.b, event));
    CHECK_OK(weir_enqueue_task(p.b, count_run, &after, NULL));
    CHECK_OK(weir_stream_synchronize(p.b, WEIR_TIMEOUT_INFINITE));
    CHECK_EQ(atomic_load(&after), 1);
    weir_event_release(event);
    weir_event_release(next);
    weir_stream_release(third);
    pair_destroy(&p);
}

static void *open_soon(void *arg) {
    sleep_ms(10);
    open_gate(arg);
    return NULL;
}

/* A synchronous stream waits in the call itself. */
static void test_synchronous_stream_waits(void) {
    pair p = pair_create();
    weir_stream *now = make_stream(p.engine, WEIR_STREAM_DEFAULT, NULL, "now");
    weir_event *event = make_event(p.engine, WEIR_EVENT_DEFAULT);
    gate held = {.result = WEIR_OK};
    pthread_t opener;
    atomic_int runs = 0;
    CHECK_OK(weir_enqueue_task(p.a, pass_gate, &held, NULL));
    CHECK_OK(weir_event_record(event, p.a));
    CHECK(pthread_create(&opener, NULL, open_soon, &held) == 0);
    CHECK_OK(weir_stream_wait_event(now, event));
    CHECK_EQ(is_reached(event), 1);
    CHECK_OK(weir_enqueue_task(now, count_run, &runs, NULL));
    CHECK_EQ(atomic_load(&runs), 1);
    CHECK(pthread_join(opener, NULL) == 0);
    weir_event_release(event);
    weir_stream_release(now);
    pair_destroy(&p);
}

static int32_t nap(void *arg) {
    (void)arg;
    sleep_ms(5);
    return WEIR_OK;
}

static void test_elapsed(void) {
    pair p = pair_create();
    weir_event *start = make_event(p.engine, WEIR_EVENT_TIMING), *end = make_event(p.engine, WEIR_EVENT_TIMING);
    weir_event *timeless = make_event(p.engine, WEIR_EVENT_DEFAULT);
    int64_t ns = -1;
    gate held = {.result = WEIR_OK};
    uint64_t begun = now_ns();
    CHECK_OK(weir_event_record(start, p.a));
    CHECK_OK(weir_enqueue_task(p.a, nap, NULL, NULL));
    CHECK_OK(weir_event_record(end, p.a));
    CHECK_OK(weir_event_record(timeless, p.a));
    CHECK_OK(weir_stream_synchronize(p.a, WEIR_TIMEOUT_INFINITE));
    CHECK_OK(weir_event_elapsed_ns(start, end, &ns));
    CHECK(ns >= 5000000 && ns <= (int64_t)(now_ns() - begun));
    CHECK_OK(weir_event_elapsed_ns(end, start, &ns));
    CHECK(ns <= -5000000);
    CHECK_OK(weir_event_elapsed_ns(start, start, &ns));
    CHECK_EQ(ns, 0);
    CHECK_CODE(weir_event_elapsed_ns(timeless, end, &ns), WEIR_FAILED_PRECONDITION, "start");
    CHECK_CODE(weir_event_elapsed_ns(start, timeless, &ns), WEIR_FAILED_PRECONDITION, "end");

    CHECK_OK(weir_enqueue_task(p.a, pass_gate, &held, NULL));
    CHECK_OK(weir_event_record(end, p.a));
    CHECK_CODE(weir_event_elapsed_ns(start, end, &ns), WEIR_FAILED_PRECONDITION, "end");
    CHECK_EQ(ns, 0);
    open_gate(&held);
    CHECK_OK(weir_event_synchronize(end, WEIR_TIMEOUT_INFINITE));
    CHECK_OK(weir_event_elapsed_ns(start, end, &ns));
    CHECK(ns >= 5000000);
    weir_event_release(start);
    weir_event_release(end);
    weir_event_release(timeless);
    pair_destroy(&p);
}

typedef struct step {
    int *counter; /* no atomic: the events put the steps of all streams in one order */
    int expected;
} step;

static int32_t take_step(void *arg) {
    step *s = arg;
    return (*s->counter)++ == s->expected ? WEIR_OK : WEIR_INTERNAL;
}

/* A token goes round four streams on two pools and a lane; each step waits for the one before by an event. */
static void test_ring(void) {
    enum { STREAMS = 4 };
    pair p = pair_create();
    weir_engine *bare = make_engine(NULL);
    weir_stream *streams[STREAMS] = {p.a, p.b, make_stream(bare, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL),
                                     make_stream(p.engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL)};
    int n = scale(4000), counter = 0;
    weir_event *events[STREAMS];
    step *steps = calloc((size_t)n, sizeof *steps);
    CHECK(steps != NULL);
    for (int i = 0; i < STREAMS; i++) events[i] = make_event(p.engine, WEIR_EVENT_DEFAULT);
    for (int i = 0; i < n; i++) {
        weir_stream *stream = streams[i % STREAMS];
        steps[i] = (step){.counter = &counter, .expected = i};
        if (i > 0) CHECK_OK(weir_stream_wait_event(stream, events[(i - 1) % STREAMS]));
        CHECK_OK(weir_enqueue_task(stream, take_step, &steps[i], NULL));
        CHECK_OK(weir_event_record(events[i % STREAMS], stream));
    }
    CHECK_OK(weir_event_synchronize(events[(n - 1) % STREAMS], WEIR_TIMEOUT_INFINITE));
    CHECK_EQ(counter, n);
    for (int i = 0; i < STREAMS; i++) {
        CHECK_OK(weir_stream_synchronize(streams[i], WEIR_TIMEOUT_INFINITE));
        weir_event_release(events[i]);
    }
    free(steps);
    weir_stream_release(streams[2]);
    weir_stream_release(streams[3]);
    weir_engine_release(bare);
    pair_destroy(&p);
}

int main(void) {
    weir_runtime_info before = runtime_info();
    test_never_recorded();
    test_wait_across_streams();
    test_record_again();
    test_release_early_and_own_event();
    test_failure_travels();
    test_synchronous_stream_waits();
    test_elapsed();
    test_ring();
    check_released(&before);
    return 0;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Waits inside tasks of a pool: they do what they wait for, also across streams and inside a run that others have
 * begun, and they never lie too deep on one stack.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <weir/testing.h>

#include "make.h"
#include "test_pools.h"

typedef struct waiter {
    weir_stream *stream;
    weir_run *run;
    pthread_t thread;
    atomic_int begun;
    atomic_int status;
} waiter;

static int32_t wait_for_stream(void *arg) {
    waiter *w = arg;
    atomic_store(&w->status, weir_stream_synchronize(w->stream, WEIR_TIMEOUT_INFINITE));
    return WEIR_OK;
}

/* One thread: the stream waits for an event of another one, whose work lies behind the waiting task in the pool. */
static void a_wait_follows_what_it_waits_for(void) {
    static const pool_kind kinds[] = {POOL_FIFO, POOL_LIFO, POOL_ASYNCHRONOUS, POOL_FULL};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        for (int round = 0; round < 50; round++) {
            weir_threadpool *pool = NULL;
            test_pool *host = test_pool_create_exact(kinds[k], 1, &pool);
            weir_engine *engine = make_engine(pool);
            weir_stream *first = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "first");
            weir_stream *last = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "last");
            weir_stream *waiting = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "waiting");
            weir_event *event = make_event(engine, WEIR_EVENT_DEFAULT);
            atomic_int ran = 0;
            waiter w = {.stream = last, .status = -1};
            test_pool_hold(host);
            CHECK_OK(weir_enqueue_task(waiting, wait_for_stream, &w, NULL));
            CHECK_OK(weir_enqueue_task(first, count_run, &ran, NULL));
            CHECK_OK(weir_event_record(event, first));
            CHECK_OK(weir_stream_wait_event(last, event));
            CHECK_OK(weir_enqueue_task(last, count_run, &ran, NULL));
            test_pool_let_go(host);
            CHECK_OK(weir_stream_synchronize(waiting, WEIR_TIMEOUT_INFINITE));
            CHECK_EQ(atomic_load(&w.status), WEIR_OK);
            CHECK_EQ(atomic_load(&ran), 2);
            weir_event_release(event);
            weir_stream_release(waiting);
            weir_stream_release(last);
            weir_stream_release(first);
            weir_engine_release(engine);
            weir_threadpool_release(pool);
            test_pool_destroy(host);
        }
    }
}

enum { NODES = 2000 };

typedef struct places {
    atomic_int ran;
    atomic_int here; /* nodes that ran in the thread that waits */
    waiter *w;
} places;

static int32_t slow_node(void *arg) {
    places *p = arg;
    if (atomic_load(&p->w->begun) != 0 && pthread_equal(pthread_self(), p->w->thread)) atomic_fetch_add(&p->here, 1);
    for (uint64_t end = now_ns() + 5000; now_ns() < end;) continue;
    atomic_fetch_add(&p->ran, 1);
    return WEIR_OK;
}

static void add_slow_node(weir_graph *graph, int i, places *p) {
    char name[32];
    weir_node node;
    snprintf(name, sizeof name, "node %d", i);
    CHECK_OK(weir_graph_add_task(graph, name, slow_node, p, NULL, 0, &node));
}

static int32_t wait_for_run(void *arg) {
    waiter *w = arg;
    w->thread = pthread_self();
    atomic_store(&w->begun, 1);
    atomic_store(&w->status, weir_run_synchronize(w->run, WEIR_TIMEOUT_INFINITE));
    return WEIR_OK;
}

/* Whether the waiting thread ran nodes. */
static bool run_and_wait(weir_program *program, weir_stream *running, weir_stream *waiting, places *p) {
    waiter *w = p->w;
    atomic_store(&p->ran, 0);
    atomic_store(&w->begun, 0);
    CHECK_OK(weir_program_start(program, running, NULL, 0, NULL, 0, NULL, &w->run));
    EVENTUALLY(atomic_load(&p->ran) > 0);
    CHECK_OK(weir_enqueue_task(waiting, wait_for_run, w, NULL));
    CHECK_OK(weir_stream_synchronize(waiting, WEIR_TIMEOUT_INFINITE));
    CHECK(atomic_load(&w->status) == WEIR_OK || atomic_load(&w->status) == WEIR_FAILED_PRECONDITION);
    CHECK_OK(weir_stream_synchronize(running, WEIR_TIMEOUT_INFINITE));
    CHECK_EQ(atomic_load(&p->ran), NODES);
    weir_run_release(w->run);
    return atomic_exchange(&p->here, 0) > 0 && atomic_load(&w->status) == WEIR_OK;
}

/* Waits for its work look around for long: the machine may be busy, or run one thread at a time as valgrind does. */
static weir_stream *make_patient_stream(weir_engine *engine) {
    weir_stream_attr *attr = NULL;
    weir_stream *stream = NULL;
    CHECK_OK(weir_stream_attr_create(WEIR_ENGINE_CPU, &attr));
    CHECK_OK(weir_stream_attr_set_spin_ns(attr, 200000000));
    CHECK_OK(weir_stream_attr_set_name(attr, "running"));
    CHECK_OK(weir_stream_create(engine, WEIR_STREAM_ASYNCHRONOUS, attr, &stream));
    weir_stream_attr_destroy(attr);
    return stream;
}

/* Both threads of the pool are taken, one by the run and one by a task that waits for it: that one works in the run. */
static void a_worker_that_waits_for_a_run_works_in_it(void) {
    static const pool_kind kinds[] = {POOL_FIFO, POOL_LIFO, POOL_ASYNCHRONOUS};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        weir_threadpool *pool = NULL;
        test_pool *host = test_pool_create_exact(kinds[k], 2, &pool);
        weir_engine *engine = make_engine(pool);
        weir_stream *running = make_patient_stream(engine);
        weir_stream *waiting = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "waiting");
        waiter w = {.status = -1};
        places p = {.w = &w};
        weir_graph *graph = make_graph("wide");
        for (int i = 0; i < NODES; i++) add_slow_node(graph, i, &p);
        weir_program *program = compile(graph, engine);
        weir_graph_destroy(graph);
        /* The first run finds out what a node costs. */
        CHECK_OK(weir_program_run(program, NULL, NULL, 0, NULL, 0, NULL));
        CHECK_EQ(atomic_exchange(&p.ran, 0), NODES);
        /* On a busy machine the run's own thread may be held up for longer than a wait looks on. */
        bool helped = run_and_wait(program, running, waiting, &p);
        /* valgrind runs one thread at a time: whoever looks around sees nobody work. */
        if (!is_slow()) EVENTUALLY(helped || run_and_wait(program, running, waiting, &p));
        weir_program_release(program);
        weir_stream_release(waiting);
        weir_stream_release(running);
        weir_engine_release(engine);
        weir_threadpool_release(pool);
        test_pool_destroy(host);
    }
}

enum { DEEP = 200 };

typedef struct nest {
    weir_engine *engine;
    atomic_int deepest, depth, refused;
} nest;

static nest nested;
static _Thread_local int here;

/* Each task waits for a stream whose only task holds still, with many more such tasks in the pool to help with. */
static int32_t wait_for_late(void *arg) {
    here++;
    if (here > atomic_load(&nested.deepest)) atomic_store(&nested.deepest, here);
    weir_status status = weir_stream_synchronize(arg, WEIR_TIMEOUT_INFINITE);
    if (status == WEIR_FAILED_PRECONDITION) atomic_fetch_add(&nested.refused, 1);
    here--;
    return WEIR_OK;
}


/* `help` would stack all waiting tasks onto one another. */
static void helping_has_a_bound(void) {
    weir_threadpool *pool = NULL;
    test_pool *host = test_pool_create_exact(POOL_FULL, 2, &pool);
    weir_engine *engine = make_engine(pool);
    weir_stream *held = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "held");
    weir_stream *streams[DEEP];
    gate still = {.result = WEIR_OK};
    CHECK_OK(weir_enqueue_task(held, pass_gate, &still, NULL));
    /* A task that waits for the stream would take its work over, and then be the one that holds still. */
    EVENTUALLY(atomic_load(&still.begun));
    for (int i = 0; i < DEEP; i++) {
        streams[i] = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
        CHECK_OK(weir_enqueue_task(streams[i], wait_for_late, held, NULL));
    }
    EVENTUALLY(atomic_load(&nested.deepest) >= 2);
    open_gate(&still);
    for (int i = 0; i < DEEP; i++) {
        CHECK_OK(weir_stream_synchronize(streams[i], WEIR_TIMEOUT_INFINITE));
        weir_stream_release(streams[i]);
    }
    /* Another thread was at it all the time, so every wait was right to sleep. */
    CHECK_EQ(atomic_load(&nested.refused), 0);
    CHECK(atomic_load(&nested.deepest) <= 9);
    CHECK_OK(weir_stream_synchronize(held, WEIR_TIMEOUT_INFINITE));
    weir_stream_release(held);
    weir_engine_release(engine);
    weir_threadpool_release(pool);
    test_pool_destroy(host);
}

/* A lane's stream, one whose pool refuses everything, and one that is synchronous; each waits for the next. */
typedef struct circle {
    weir_stream *lane, *refused, *synchronous;
    gate held;
    atomic_int refused_begun, synchronous_begun, ran;
} circle;

static int32_t wait_for_synchronous(void *arg) {
    circle *c = arg;
    atomic_store(&c->refused_begun, 1);
    EVENTUALLY(atomic_load(&c->synchronous_begun));
    CHECK_OK(weir_stream_synchronize(c->synchronous, WEIR_TIMEOUT_INFINITE));
    return WEIR_OK;
}

static int32_t wait_for_lane(void *arg) {
    circle *c = arg;
    CHECK_OK(weir_enqueue_task(c->lane, count_run, &c->ran, NULL));
    atomic_store(&c->synchronous_begun, 1);
    CHECK_OK(weir_stream_synchronize(c->lane, WEIR_TIMEOUT_INFINITE));
    return WEIR_OK;
}

/* The lane's event lets the refused stream go on, and the only thread there to run it is the lane's. What it waits for
 * there waits for the lane: a circle that the host did not make. */
static void a_lane_that_runs_other_work_serves_its_own_stream(void) {
    weir_threadpool *pool = NULL;
    test_pool *host = test_pool_create_exact(POOL_REFUSING, 2, &pool);
    weir_engine *engine = make_engine(pool);
    circle c = {.held = {.result = WEIR_OK}};
    weir_event *event = make_event(engine, WEIR_EVENT_DEFAULT);
    weir_engine *alone = make_engine(NULL);
    c.lane = make_stream(alone, WEIR_STREAM_ASYNCHRONOUS, NULL, "lane");
    c.refused = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "refused");
    c.synchronous = make_stream(alone, WEIR_STREAM_DEFAULT, NULL, "synchronous");
    CHECK_OK(weir_enqueue_task(c.lane, pass_gate, &c.held, NULL));
    CHECK_OK(weir_event_record(event, c.lane));
    CHECK_OK(weir_stream_wait_event(c.refused, event));
    CHECK_OK(weir_enqueue_task(c.refused, wait_for_synchronous, &c, NULL));
    open_gate(&c.held);
    EVENTUALLY(atomic_load(&c.refused_begun));
    CHECK_OK(weir_enqueue_task(c.synchronous, wait_for_lane, &c, NULL));
    CHECK_EQ(atomic_load(&c.ran), 1);
    CHECK_OK(weir_stream_synchronize(c.refused, WEIR_TIMEOUT_INFINITE));
    weir_event_release(event);
    weir_stream_release(c.lane);
    weir_stream_release(c.refused);
    weir_stream_release(c.synchronous);
    weir_engine_release(alone);
    weir_engine_release(engine);
    weir_threadpool_release(pool);
    test_pool_destroy(host);
}

static int32_t use_synchronous(void *arg) {
    circle *c = arg;
    atomic_store(&c->refused_begun, 1);
    EVENTUALLY(atomic_load(&c->synchronous_begun));
    atomic_int ran = 0;
    int32_t status = weir_enqueue_task(c->synchronous, count_run, &ran, NULL);
    CHECK(status == WEIR_OK || status == WEIR_FAILED_PRECONDITION);
    atomic_store(&c->ran, status);
    return WEIR_OK;
}

static int32_t try_to_wait_for_lane(void *arg) {
    circle *c = arg;
    atomic_store(&c->synchronous_begun, 1);
    int32_t status = weir_stream_synchronize(c->lane, WEIR_TIMEOUT_INFINITE);
    CHECK(status == WEIR_OK || status == WEIR_FAILED_PRECONDITION);
    return status;
}

/* A task that needs a synchronous stream whose own task waits for it: one of the two is told. */
static void a_circle_through_a_stream_in_use_is_refused(void) {
    weir_engine *engine = make_engine(NULL);
    circle c = {.lane = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "lane"),
                .synchronous = make_stream(engine, WEIR_STREAM_DEFAULT, NULL, "synchronous")};
    CHECK_OK(weir_enqueue_task(c.lane, use_synchronous, &c, NULL));
    EVENTUALLY(atomic_load(&c.refused_begun));
    weir_status status = weir_enqueue_task(c.synchronous, try_to_wait_for_lane, &c, NULL);
    CHECK_OK(weir_stream_synchronize(c.lane, WEIR_TIMEOUT_INFINITE));
    CHECK(status == WEIR_FAILED_PRECONDITION || atomic_load(&c.ran) == WEIR_FAILED_PRECONDITION);
    weir_stream_release(c.lane);
    weir_stream_release(c.synchronous);
    weir_engine_release(engine);
}

typedef struct device_waiter {
    weir_stream *device, *host;
    weir_tensor *tensor;
    weir_event *first, *second;
    atomic_int status;
} device_waiter;

/* In a job of the pool: the host's stream waits for work that the device has, and the device's stream for that one. */
static void wait_for_device(void *arg, int32_t slot) {
    device_waiter *w = arg;
    (void)slot;
    CHECK_OK(weir_enqueue_fill(w->device, w->tensor, 0));
    CHECK_OK(weir_event_record(w->first, w->device));
    CHECK_OK(weir_stream_wait_event(w->host, w->first));
    CHECK_OK(weir_event_record(w->second, w->host));
    CHECK_OK(weir_stream_wait_event(w->device, w->second));
    atomic_store(&w->status, weir_event_synchronize(w->second, WEIR_TIMEOUT_INFINITE));
}

/* One thread, which waits: when the device is done, nobody else can go on with the host's stream. */
static void a_wait_follows_a_device(void) {
    static const pool_kind kinds[] = {POOL_FIFO, POOL_LIFO, POOL_FULL};
    const weir_emulation emulation = {.struct_size = sizeof emulation, .latency_ns = 2000000};
    const weir_task_hint hint = {.struct_size = sizeof hint};
    weir_engine_attr *attr = NULL;
    weir_engine *device = NULL;
    CHECK_OK(weir_emulated_register());
    CHECK_OK(weir_engine_attr_create(WEIR_ENGINE_EMULATED, &attr));
    CHECK_OK(weir_engine_attr_set_emulation(attr, &emulation));
    CHECK_OK(weir_engine_create(WEIR_ENGINE_EMULATED, 0, attr, &device));
    weir_engine_attr_destroy(attr);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        weir_threadpool *pool = NULL;
        test_pool *host = test_pool_create_exact(kinds[k], 1, &pool);
        const weir_threadpool_vtable vtable = test_pool_vtable(host);
        weir_engine *engine = make_engine(pool);
        device_waiter w = {.tensor = make_tensor(device, vector_desc(64))};
        weir_stream_attr *stream_attr = NULL;
        CHECK_OK(weir_stream_attr_create(WEIR_ENGINE_EMULATED, &stream_attr));
        CHECK_OK(weir_stream_attr_set_threadpool(stream_attr, pool));
        CHECK_OK(weir_stream_create(device, WEIR_STREAM_ASYNCHRONOUS, stream_attr, &w.device));
        weir_stream_attr_destroy(stream_attr);
        w.host = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "host");
        w.first = make_event(device, WEIR_EVENT_DEFAULT);
        w.second = make_event(engine, WEIR_EVENT_DEFAULT);
        for (int round = 0; round < 10; round++) {
            atomic_store(&w.status, -1);
            CHECK_EQ(vtable.schedule(host, wait_for_device, &w, &hint), 0);
            EVENTUALLY(atomic_load(&w.status) >= 0);
            CHECK_EQ(atomic_load(&w.status), WEIR_OK);
            CHECK_OK(weir_stream_synchronize(w.device, WEIR_TIMEOUT_INFINITE));
        }
        weir_event_release(w.first);
        weir_event_release(w.second);
        weir_stream_release(w.device);
        weir_stream_release(w.host);
        weir_tensor_release(w.tensor);
        weir_engine_release(engine);
        weir_threadpool_release(pool);
        test_pool_destroy(host);
    }
    weir_engine_release(device);
}

int main(void) {
    a_lane_that_runs_other_work_serves_its_own_stream();
    a_circle_through_a_stream_in_use_is_refused();
    a_wait_follows_what_it_waits_for();
    a_wait_follows_a_device();
    a_worker_that_waits_for_a_run_works_in_it();
    helping_has_a_bound();
    return 0;
}

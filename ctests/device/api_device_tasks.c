/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Functions of the host's on streams whose work a device does: in their place, on the pool of the stream or the engine,
 * on a thread of the stream's own where no pool takes them, and never on the thread that queues or on a device's.
 */

#include <pthread.h>
#include <weir/inspect.h>
#include <weir/device.h>
#include <weir/testing.h>

#include "make.h"
#include "test_device.h"
#include "test_pools.h"

enum { LEN = 16 };

/* A kind of devices, and how to leave it. */
typedef struct board {
    const char *name;
    uint64_t capabilities;
    uint64_t seed;
    test_device *device;
    weir_engine *engine;
} board;

static weir_engine *engine_on(board *b, weir_threadpool *pool) {
    weir_engine_attr *attr = NULL;
    weir_engine_kind kind = WEIR_ENGINE_EMULATED;
    if (b->name != NULL) {
        weir_device_vtable vtable = test_device_vtable();
        b->device = test_device_create(b->capabilities | WEIR_DEVICE_OWN_MEMORY);
        CHECK_OK(weir_device_register(b->name, 0, &vtable, b->device));
        CHECK_OK(weir_engine_kind_from_name(b->name, &kind));
    }
    CHECK_OK(weir_engine_attr_create(kind, &attr));
    if (b->name == NULL) {
        weir_emulation emulation = {.struct_size = sizeof emulation, .flags = WEIR_EMULATION_CHECK, .seed = b->seed};
        CHECK_OK(weir_engine_attr_set_emulation(attr, &emulation));
    }
    CHECK_OK(weir_engine_attr_set_threadpool(attr, pool));
    CHECK_OK(weir_engine_create(kind, 0, attr, &b->engine));
    weir_threadpool *seen = NULL;
    CHECK_OK(weir_engine_get_threadpool(b->engine, &seen));
    CHECK(seen == pool);
    weir_engine_attr_destroy(attr);
    return b->engine;
}

static void leave(board *b) {
    weir_engine_release(b->engine);
    if (b->name == NULL) return;
    CHECK_OK(weir_device_unregister(b->name, 0));
    EVENTUALLY(runtime_info().threads_alive < 1000 && test_device_alive(b->device) == 0 && test_device_releases(b->device) == 1);
    test_device_destroy(b->device);
}

static weir_stream *stream_on(weir_engine *engine, weir_threadpool *pool) {
    weir_stream_attr *attr = NULL;
    weir_stream *stream = NULL;
    weir_engine_info info = {.struct_size = sizeof info};
    CHECK_OK(weir_engine_get_info(engine, &info));
    CHECK_OK(weir_stream_attr_create(info.kind, &attr));
    CHECK_OK(weir_stream_attr_set_threadpool(attr, pool));
    CHECK_OK(weir_stream_attr_set_priority(attr, 7));
    CHECK_OK(weir_stream_create(engine, WEIR_STREAM_ASYNCHRONOUS, attr, &stream));
    weir_stream_attr_destroy(attr);
    return stream;
}

/* What a function saw. */
typedef struct look {
    const float *data;  /* a tensor of the host's that the device has copied to */
    float expected;     /* what it has there when the function runs */
    const test_pool *pool;
    pthread_t queued_by;
    atomic_int ran, on_pool, by_queuer;
} look;

static int32_t look_here(void *arg) {
    look *l = arg;
    /* Whatever fill said, all bytes are alike. */
    for (int i = 0; i < LEN; i++) CHECK(memcmp(&l->data[i], &l->expected, sizeof(float)) == 0);
    if (l->pool != NULL && test_pool_is_here(l->pool)) atomic_fetch_add(&l->on_pool, 1);
    if (pthread_equal(pthread_self(), l->queued_by)) atomic_fetch_add(&l->by_queuer, 1);
    atomic_fetch_add(&l->ran, 1);
    return WEIR_OK;
}

static float all_bytes(int value) {
    float f;
    memset(&f, value, sizeof f);
    return f;
}

/* fill, copy to the host, look; again and again, with the looks in their places. */
static void test_places(board b, int kind, int own_pool) {
    /* The threads of the case before may still be on their way out. */
    EVENTUALLY(runtime_info().threads_alive == 0);
    weir_threadpool *pool = NULL;
    test_pool *host = kind < 0 ? NULL : test_pool_create_exact((pool_kind)kind, 2, &pool);
    weir_engine *engine = engine_on(&b, own_pool ? NULL : pool), *cpu = make_engine(NULL);
    weir_stream *stream = stream_on(engine, own_pool ? pool : NULL);
    weir_tensor_desc desc = vector_desc(LEN);
    weir_tensor *here = make_tensor(cpu, desc), *there = make_tensor(engine, desc);
    look looks[12];
    int n = 2 + scale(10);
    CHECK_OK(weir_enqueue_fill(stream, there, 0)); /* the device's threads are there from now on */
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    uint64_t threads = runtime_info().threads_alive;
    for (int round = 0; round < 3; round++) {
        memset(looks, 0, sizeof looks);
        for (int i = 0; i < n; i++) {
            looks[i] = (look){.data = floats(here), .expected = all_bytes(i + 1), .pool = host, .queued_by = pthread_self()};
            CHECK_OK(weir_enqueue_fill(stream, there, (uint8_t)(i + 1)));
            CHECK_OK(weir_enqueue_copy(stream, there, here));
            CHECK_OK(weir_enqueue_task(stream, look_here, &looks[i], NULL));
        }
        /* While no thread waits, only the pool can run them. */
        if (round == 1 && kind == POOL_FIFO) EVENTUALLY(atomic_load(&looks[n - 1].ran) == 1);
        else if (round == 1) sleep_ms(2);
        /* Not by the calls that queue them; the waits below do what has not begun. */
        for (int i = 0; i < n && kind != POOL_INLINE; i++) CHECK_EQ(looks[i].by_queuer, 0);
        if (round == 2) CHECK_OK(weir_sync_devices(WEIR_TIMEOUT_INFINITE, NULL, 0, NULL));
        CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
        for (int i = 0; i < n; i++) {
            CHECK_EQ(looks[i].ran, 1);
            int schedules = kind == POOL_FIFO || kind == POOL_LIFO || kind == POOL_ASYNCHRONOUS || kind == POOL_FULL;
            if (schedules) CHECK(looks[i].on_pool || looks[i].by_queuer);
        }
        /* No thread but the pool's, where it takes tasks. One that runs them at once, on the device's thread as it may
         * be, does not: nothing of the host's runs there. */
        int may_have_lane = kind == POOL_INLINE || kind == POOL_HALF || kind == POOL_SEEDED;
        int has_lane = kind < 0 || kind == POOL_PARALLEL_FOR || kind == POOL_REFUSING || kind == POOL_HALF;
        uint64_t alive = runtime_info().threads_alive;
        if (!may_have_lane && !has_lane && b.capabilities & WEIR_DEVICE_CALLBACK) CHECK_EQ(alive, threads);
        /* One to watch; those that have nothing left to do may be on their way out. */
        uint64_t most = threads + (uint64_t)(has_lane || may_have_lane) + 1;
        EVENTUALLY(runtime_info().threads_alive <= most);
    }
    if (kind == POOL_FIFO) CHECK_EQ(test_pool_counters(host).priority, 7);
    weir_tensor_release(here);
    weir_tensor_release(there);
    weir_stream_release(stream);
    weir_engine_release(cpu);
    leave(&b);
    if (pool != NULL) {
        weir_threadpool_release(pool);
        test_pool_destroy(host);
    }
}

/* A failure in front of a function skips it; and behind a cleared failure functions wait for the device as before. */
static void test_failure(board b, weir_threadpool *pool, const test_pool *host) {
    weir_engine *engine = engine_on(&b, pool), *cpu = make_engine(NULL);
    weir_stream *stream = stream_on(engine, NULL);
    weir_tensor_desc desc = vector_desc(LEN);
    weir_tensor *here = make_tensor(cpu, desc), *there = make_tensor(engine, desc);
    for (int round = 0; round < 1 + scale(20); round++) {
        atomic_int ran = 0, destroyed = 0;
        gate held = {.result = WEIR_DATA_LOSS};
        look l = {.data = floats(here), .expected = all_bytes(round + 3), .pool = host, .queued_by = pthread_self()};
        CHECK_OK(weir_enqueue_task(stream, pass_gate, &held, NULL));
        /* Two functions behind one another: the second one's place is known when the first one fails. */
        for (int i = 0; i < 2; i++) CHECK_OK(weir_enqueue_task(stream, count_run, &ran, NULL));
        CHECK_OK(weir_enqueue_task(stream, count_run, &destroyed, count_destroy));
        open_gate(&held);
        CHECK_CODE(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE), WEIR_DATA_LOSS, NULL);
        EVENTUALLY(atomic_load(&destroyed) == 1);
        CHECK_EQ(ran, 0);
        CHECK_OK(weir_stream_clear_error(stream));
        CHECK_OK(weir_enqueue_fill(stream, there, (uint8_t)(round + 3)));
        CHECK_OK(weir_enqueue_copy(stream, there, here));
        CHECK_OK(weir_enqueue_task(stream, look_here, &l, NULL));
        CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
        CHECK_EQ(l.ran, 1);
    }
    CHECK_OK(weir_sync_devices(WEIR_TIMEOUT_INFINITE, NULL, 0, NULL)); /* what was cleared is forgotten */
    /* A stream that is released goes on. */
    look last = {.data = floats(here), .expected = all_bytes(99), .pool = host, .queued_by = pthread_self()};
    CHECK_OK(weir_enqueue_fill(stream, there, 99));
    CHECK_OK(weir_enqueue_copy(stream, there, here));
    CHECK_OK(weir_enqueue_task(stream, look_here, &last, NULL));
    weir_stream_release(stream);
    EVENTUALLY(atomic_load(&last.ran) == 1);
    weir_tensor_release(here);
    weir_tensor_release(there);
    weir_engine_release(cpu);
    leave(&b);
}

/* A function that waits for another stream of the device. */
typedef struct waiter {
    weir_stream *other;
    weir_event *event;
    atomic_int finished;
    int may_refuse;
} waiter;

static int32_t wait_here(void *arg) {
    waiter *w = arg;
    weir_status status = weir_event_synchronize(w->event, WEIR_TIMEOUT_INFINITE);
    CHECK(status == WEIR_OK || (w->may_refuse && status == WEIR_FAILED_PRECONDITION));
    status = weir_stream_synchronize(w->other, WEIR_TIMEOUT_INFINITE);
    CHECK(status == WEIR_OK || (w->may_refuse && status == WEIR_FAILED_PRECONDITION));
    CHECK_CODE(weir_sync_devices(WEIR_TIMEOUT_INFINITE, NULL, 0, NULL), WEIR_FAILED_PRECONDITION, "would wait for itself");
    atomic_fetch_add(&w->finished, 1);
    return WEIR_OK;
}

static int32_t compute_and_wait(void *user, weir_kernel_context *context) {
    (void)context;
    return wait_here(user);
}

/* On a pool of one thread, inline, or a lane; on the emulated device also in a kernel, which runs on its only
 * thread. */
static void test_waits(board b, weir_threadpool *pool, int is_lane, int runs_kernels) {
    weir_engine *engine = engine_on(&b, pool);
    weir_stream *stream = stream_on(engine, NULL), *other = stream_on(engine, NULL);
    weir_event *event = make_event(engine, WEIR_EVENT_DEFAULT);
    weir_tensor *tensor = make_tensor(engine, vector_desc(LEN));
    waiter w = {.other = other, .event = event, .may_refuse = !is_lane};
    atomic_int ran = 0;
    for (int round = 1; round <= 1 + scale(20); round++) {
        CHECK_OK(weir_enqueue_fill(other, tensor, 1));
        CHECK_OK(weir_enqueue_task(other, count_run, &ran, NULL));
        CHECK_OK(weir_event_record(event, other));
        CHECK_OK(weir_enqueue_task(stream, wait_here, &w, NULL));
        CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
        CHECK_OK(weir_stream_synchronize(other, WEIR_TIMEOUT_INFINITE));
        CHECK_EQ(w.finished, round);
        CHECK_EQ(ran, round);
    }
    if (runs_kernels) {
        weir_tensor_desc like = vector_desc(LEN);
        gate held = {0};
        waiter inside = {.other = other, .event = event, .may_refuse = 1};
        weir_kernel *kernel = make_unary_kernel(engine, "waits", compute_and_wait, &inside, &like);
        weir_tensor *out = make_tensor(engine, like);
        CHECK_OK(weir_enqueue_task(other, pass_gate, &held, NULL));
        CHECK_OK(weir_enqueue_fill(other, tensor, 1));
        CHECK_OK(weir_event_record(event, other));
        CHECK_OK(weir_enqueue(stream, kernel, &tensor, 1, &out, 1));
        /* It is refused, and so it ends, although the gate is closed. */
        CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
        CHECK_EQ(inside.finished, 1);
        open_gate(&held);
        CHECK_OK(weir_stream_synchronize(other, WEIR_TIMEOUT_INFINITE));
        weir_tensor_release(out);
        weir_kernel_release(kernel);
    }
    weir_tensor_release(tensor);
    weir_event_release(event);
    weir_stream_release(stream);
    weir_stream_release(other);
    leave(&b);
}

int main(void) {
    CHECK_OK(weir_emulated_register());
    weir_runtime_info before = runtime_info();
    static const board boards[] = {
        {.name = NULL, .capabilities = WEIR_DEVICE_CALLBACK},
        {.name = NULL, .capabilities = WEIR_DEVICE_CALLBACK, .seed = 5},
        {.name = "calling-board", .capabilities = WEIR_DEVICE_CONCURRENT | WEIR_DEVICE_CALLBACK},
        {.name = "watched-board", .capabilities = WEIR_DEVICE_CONCURRENT},
        {.name = "serial-board", .capabilities = 0},
    };
    static const int kinds[] = {-1, POOL_FIFO, POOL_LIFO, POOL_PARALLEL_FOR, POOL_ASYNCHRONOUS, POOL_FULL, POOL_INLINE, POOL_REFUSING, POOL_HALF};
    for (size_t i = 0; i < sizeof boards / sizeof *boards; i++) {
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            test_places(boards[i], kinds[k], 0);
            if (kinds[k] >= 0) test_places(boards[i], kinds[k], 1);
        }
        weir_threadpool *pool = NULL;
        test_pool *host = test_pool_create_exact(POOL_FIFO, 1, &pool);
        test_failure(boards[i], NULL, NULL);
        test_failure(boards[i], pool, host);
        int runs_kernels = boards[i].name == NULL && boards[i].seed == 0;
        test_waits(boards[i], NULL, 1, runs_kernels);
        test_waits(boards[i], pool, 0, runs_kernels);
        weir_threadpool_release(pool);
        test_pool_destroy(host);
        weir_threadpool *inline_pool = NULL;
        CHECK_OK(weir_threadpool_create_inline(&inline_pool));
        test_waits(boards[i], inline_pool, 0, 0); /* whoever queues a gate would wait at it */
        weir_threadpool_release(inline_pool);
        check_released(&before);
    }
    puts("functions of the host's run where they belong");
    return 0;
}

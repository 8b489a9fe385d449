/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Streams that wait for an event of another stream go on when it is reached, whatever that stream or the thread that
 * reaches it does next; and what they run then is no part of that stream's work. Nobody waits for them here: they are
 * looked at.
 */

#include <weir/testing.h>

#include "make.h"
#include "test_pools.h"

/* One thread, the event's stream on it, and streams that wait: a device's, and one whose pool runs tasks at once. */
typedef struct world {
    weir_threadpool *pool, *at_once;
    weir_engine *cpu, *device;
    weir_stream *first, *inline_stream, *device_stream;
    weir_event *event, *on_device;
    weir_tensor *tensor;
    gate before, behind;
    atomic_int ran;
} world;

static world *make_world(void) {
    world *w = calloc(1, sizeof *w);
    CHECK(w != NULL);
    test_pool_create_exact(POOL_FIFO, 1, &w->pool);
    test_pool_create_exact(POOL_INLINE, 1, &w->at_once);
    w->cpu = make_engine(NULL);
    CHECK_OK(weir_engine_create(WEIR_ENGINE_EMULATED, 0, NULL, &w->device));
    w->first = make_stream(w->cpu, WEIR_STREAM_ASYNCHRONOUS, w->pool, "first");
    w->inline_stream = make_stream(w->cpu, WEIR_STREAM_ASYNCHRONOUS, w->at_once, "inline");
    CHECK_OK(weir_stream_create(w->device, WEIR_STREAM_DEFAULT, NULL, &w->device_stream));
    w->event = make_event(w->cpu, WEIR_EVENT_DEFAULT);
    w->on_device = make_event(w->device, WEIR_EVENT_DEFAULT);
    w->tensor = make_tensor(w->device, vector_desc(16));
    return w;
}

static void free_world(world *w) {
    open_gate(&w->behind);
    CHECK_OK(weir_sync_devices(WEIR_TIMEOUT_INFINITE, NULL, 0, NULL));
    weir_tensor_release(w->tensor);
    weir_event_release(w->event);
    weir_event_release(w->on_device);
    weir_stream_release(w->first);
    weir_stream_release(w->inline_stream);
    weir_stream_release(w->device_stream);
    weir_engine_release(w->cpu);
    weir_engine_release(w->device);
    weir_threadpool_release(w->pool);
    weir_threadpool_release(w->at_once);
    free(w);
}

/* The device's stream waits for the event, and has an event of its own behind some work. */
static void wait_on_device(world *w) {
    CHECK_OK(weir_stream_wait_event(w->device_stream, w->event));
    CHECK_OK(weir_enqueue_fill(w->device_stream, w->tensor, 1));
    CHECK_OK(weir_event_record(w->on_device, w->device_stream));
}

static int is_over(const weir_event *event) {
    int32_t done = 0;
    CHECK_OK(weir_event_query(event, &done));
    return done;
}

/* Behind the event its stream has a function that does not end. */
static void test_device_beside_the_next_function(void) {
    world *w = make_world();
    CHECK_OK(weir_enqueue_task(w->first, pass_gate, &w->before, NULL));
    CHECK_OK(weir_event_record(w->event, w->first));
    CHECK_OK(weir_enqueue_task(w->first, pass_gate, &w->behind, NULL));
    wait_on_device(w);
    open_gate(&w->before);
    EVENTUALLY(is_over(w->on_device));
    free_world(w);
}

static void test_inline_beside_the_next_function(void) {
    world *w = make_world();
    CHECK_OK(weir_enqueue_task(w->first, pass_gate, &w->before, NULL));
    CHECK_OK(weir_event_record(w->event, w->first));
    CHECK_OK(weir_enqueue_task(w->first, pass_gate, &w->behind, NULL));
    CHECK_OK(weir_stream_wait_event(w->inline_stream, w->event));
    CHECK_OK(weir_enqueue_task(w->inline_stream, count_run, &w->ran, NULL));
    open_gate(&w->before);
    EVENTUALLY(atomic_load(&w->ran) == 1);
    free_world(w);
}

/* The function of a stream whose pool runs it at once, in the thread that waits for the event's stream, is not inside
 * of that stream: it may wait for it. */
static int32_t use_first(void *arg) {
    world *w = arg;
    CHECK_OK(weir_enqueue_task(w->first, count_run, &w->ran, NULL));
    CHECK_OK(weir_stream_synchronize(w->first, WEIR_TIMEOUT_INFINITE));
    CHECK_EQ(atomic_load(&w->ran), 2);
    return WEIR_OK;
}

static void test_inline_inside_of_a_wait(void) {
    world *w = make_world();
    weir_stream *busy = make_stream(w->cpu, WEIR_STREAM_ASYNCHRONOUS, w->pool, "busy");
    CHECK_OK(weir_enqueue_task(busy, pass_gate, &w->behind, NULL));
    EVENTUALLY(atomic_load(&w->behind.begun) == 1);
    CHECK_OK(weir_enqueue_task(w->first, count_run, &w->ran, NULL));
    CHECK_OK(weir_event_record(w->event, w->first));
    CHECK_OK(weir_stream_wait_event(w->inline_stream, w->event));
    CHECK_OK(weir_enqueue_task(w->inline_stream, use_first, w, NULL));
    CHECK_OK(weir_stream_synchronize(w->first, WEIR_TIMEOUT_INFINITE));
    CHECK_OK(weir_stream_synchronize(w->inline_stream, WEIR_TIMEOUT_INFINITE));
    CHECK_EQ(atomic_load(&w->ran), 2);
    weir_stream_release(busy);
    free_world(w);
}

/* Two streams whose pools run tasks at once: their functions take turns in the one thread that runs both. */
typedef struct turns {
    atomic_int count, last[2];
} turns;

static turns taken;

static int32_t take_turn(void *arg) {
    /* All run in one thread. */
    atomic_store(&taken.last[*(int *)arg], atomic_load(&taken.count) + 1);
    atomic_fetch_add(&taken.count, 1);
    return WEIR_OK;
}

static void test_turns(void) {
    static int both[2] = {0, 1};
    world *w = make_world();
    weir_stream *other = make_stream(w->cpu, WEIR_STREAM_ASYNCHRONOUS, w->at_once, "other");
    CHECK_OK(weir_enqueue_task(w->first, pass_gate, &w->before, NULL));
    CHECK_OK(weir_event_record(w->event, w->first));
    CHECK_OK(weir_stream_wait_event(w->inline_stream, w->event));
    CHECK_OK(weir_stream_wait_event(other, w->event));
    for (int i = 0; i < 20; i++) {
        CHECK_OK(weir_enqueue_task(w->inline_stream, take_turn, &both[0], NULL));
        CHECK_OK(weir_enqueue_task(other, take_turn, &both[1], NULL));
    }
    open_gate(&w->before);
    EVENTUALLY(atomic_load(&taken.count) == 40);
    CHECK(atomic_load(&taken.last[0]) >= 39 && atomic_load(&taken.last[1]) >= 39);
    weir_stream_release(other);
    free_world(w);
}

int main(void) {
    CHECK_OK(weir_emulated_register());
    const weir_runtime_info before = runtime_info();
    test_device_beside_the_next_function();
    test_inline_beside_the_next_function();
    test_inline_inside_of_a_wait();
    test_turns();
    check_released(&before);
    return 0;
}

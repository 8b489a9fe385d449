/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * All engines at once with an answer for each; scopes whose late failures are their own; times that wait for what they
 * time.
 */

#include <weir/domain.h>
#include <weir/inspect.h>

#include "make.h"

enum { ENGINES = 3 };

static int is_idle(const weir_stream *stream) {
    int32_t done = 0;
    CHECK_OK(weir_stream_query(stream, &done));
    return done;
}

static weir_engine_sync *sync_all(uint64_t timeout, weir_status expected) {
    static weir_engine_sync results[ENGINES + 1];
    size_t count = 0;
    memset(results, 0, sizeof results);
    results[0].struct_size = sizeof results[0];
    CHECK_EQ(weir_sync_devices(timeout, results, ENGINES + 1, &count), expected);
    CHECK_EQ(count, ENGINES);
    for (int i = 0; i < ENGINES; i++) CHECK(strcmp(results[i].engine, "engine cpu:0") == 0);
    return results;
}

static int32_t sync_inside(void *arg) {
    weir_engine_sync results[ENGINES + 1] = {{.struct_size = sizeof results[0]}};
    size_t count = 0;
    uint64_t time = 0;
    (void)arg;
    CHECK_CODE(weir_sync_devices(WEIR_TIMEOUT_INFINITE, results, ENGINES + 1, &count), WEIR_FAILED_PRECONDITION,
               "would wait for itself here");
    CHECK_CODE(weir_async_scope_end(0, WEIR_TIMEOUT_INFINITE), WEIR_FAILED_PRECONDITION, "inside of a kernel, a task or a callback");
    CHECK_CODE(weir_time_ns(NULL, count_run, NULL, 1, &time), WEIR_FAILED_PRECONDITION, "timing would wait for itself");
    return WEIR_OK;
}

/* One engine is held up, one fails, one is idle: each says so. */
static void test_each(weir_engine **engines, weir_stream **streams) {
    gate g = {0};
    weir_engine_sync *results = sync_all(WEIR_TIMEOUT_INFINITE, WEIR_OK);
    for (int i = 0; i < ENGINES; i++) CHECK(results[i].status == WEIR_OK && results[i].message[0] == 0);
    CHECK_OK(weir_enqueue_task(streams[0], pass_gate, &g, NULL));
    CHECK_OK(weir_enqueue_task(streams[1], fail_with_data_loss, NULL, NULL));
    EVENTUALLY(g.begun == 1 && is_idle(streams[1]));
    results = sync_all(2000000, WEIR_DEADLINE_EXCEEDED);
    CHECK_EQ(results[0].status, WEIR_DEADLINE_EXCEEDED);
    CHECK_EQ(results[1].status, WEIR_DATA_LOSS);
    CHECK_TEXT(results[1].message, "stream 's1'");
    CHECK_EQ(results[2].status, WEIR_OK);
    open_gate(&g);
    results = sync_all(WEIR_TIMEOUT_INFINITE, WEIR_OK); /* what was told is not told again */
    CHECK_OK(weir_stream_clear_error(streams[1]));
    size_t count = 0;
    CHECK_CODE(weir_sync_devices(0, results, ENGINES - 1, &count), WEIR_OUT_OF_RANGE, "there are 3 engines");
    CHECK_EQ(count, ENGINES);
    CHECK_OK(weir_enqueue_task(streams[2], sync_inside, NULL, NULL));
    CHECK_OK(weir_stream_synchronize(streams[2], WEIR_TIMEOUT_INFINITE));
    (void)engines;
}

static void test_scope(weir_stream **streams) {
    uint64_t outer = 0, inner = 0;
    gate g = {0};
    CHECK_OK(weir_enqueue_task(streams[0], fail_with_data_loss, NULL, NULL));
    EVENTUALLY(is_idle(streams[0]));
    CHECK_OK(weir_async_scope_begin(&outer));
    CHECK_OK(weir_async_scope_begin(&inner));
    CHECK_OK(weir_async_scope_end(inner, WEIR_TIMEOUT_INFINITE)); /* what was before is not its own */
    CHECK_OK(weir_enqueue_task(streams[1], pass_gate, &g, NULL));
    CHECK_OK(weir_enqueue_task(streams[1], fail_with_data_loss, NULL, NULL));
    CHECK_CODE(weir_async_scope_end(outer, 1000000), WEIR_DEADLINE_EXCEEDED, "");
    open_gate(&g);
    CHECK_CODE(weir_async_scope_end(outer, WEIR_TIMEOUT_INFINITE), WEIR_DATA_LOSS, "engine cpu:0: stream 's1'");
    CHECK_OK(weir_async_scope_end(outer, WEIR_TIMEOUT_INFINITE)); /* told once */
    CHECK_CODE(weir_sync_devices(WEIR_TIMEOUT_INFINITE, NULL, 0, NULL), WEIR_DATA_LOSS, "stream 's0'"); /* and that one is still there */
    CHECK_OK(weir_stream_clear_error(streams[0]));
    CHECK_OK(weir_stream_clear_error(streams[1]));
}

typedef struct work {
    weir_stream *stream;
    gate *gate;
} work;

static int32_t nap(void *arg) {
    (void)arg;
    sleep_ms(3);
    return WEIR_OK;
}

static int32_t queue_a_nap(void *arg) {
    return weir_enqueue_task(((work *)arg)->stream, nap, NULL, NULL);
}

static int32_t queue_a_gate(void *arg) {
    return weir_enqueue_task(((work *)arg)->stream, pass_gate, ((work *)arg)->gate, NULL);
}

static void test_time(weir_stream **streams) {
    uint64_t times[4] = {0};
    gate g = {0};
    work w = {streams[0], &g};
    CHECK_OK(weir_time_ns(streams[0], queue_a_nap, &w, 4, times));
    for (int i = 0; i < 4; i++) CHECK(times[i] >= 3000000);
    CHECK_OK(weir_time_ns(NULL, queue_a_nap, &w, 1, times));
    CHECK(times[0] >= 3000000);
    /* Another stream's work: no time without waiting for it. */
    uint64_t left = 77;
    CHECK_CODE(weir_time_ns(streams[1], queue_a_gate, &w, 1, &left), WEIR_FAILED_PRECONDITION, "work was queued on stream 's0' meanwhile");
    CHECK_EQ(left, 77);
    open_gate(&g);
    CHECK_CODE(weir_time_ns(streams[1], fail_with_data_loss, NULL, 1, &left), WEIR_DATA_LOSS, "fn failed with DATA_LOSS");
    CHECK_OK(weir_sync_devices(WEIR_TIMEOUT_INFINITE, NULL, 0, NULL));
}

int main(void) {
    weir_runtime_info before = runtime_info();
    weir_engine *engines[ENGINES];
    weir_stream *streams[ENGINES];
    const char *names[ENGINES] = {"s0", "s1", "s2"};
    for (int i = 0; i < ENGINES; i++) {
        engines[i] = make_engine(NULL);
        streams[i] = make_stream(engines[i], WEIR_STREAM_ASYNCHRONOUS, NULL, names[i]);
    }
    test_each(engines, streams);
    test_scope(streams);
    test_time(streams);
    for (int i = 0; i < ENGINES; i++) {
        weir_stream_release(streams[i]);
        weir_engine_release(engines[i]);
    }
    check_released(&before);
    puts("waits end where they should, and say how");
    return 0;
}

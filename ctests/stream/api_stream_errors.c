/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Errors of asynchronous streams: they come late, stay, skip what is behind them, are reported once, can be cleared.
 */

#include <weir/domain.h>
#include <weir/inspect.h>

#include "make.h"
#include "test_pools.h"

static void check_error(const weir_stream *stream, int code, const char *part) {
    weir_failure failure = {.struct_size = sizeof failure};
    CHECK_OK(weir_stream_get_failure(stream, &failure));
    CHECK_EQ(failure.code, code);
    CHECK_TEXT(failure.message, part);
    if (code == WEIR_OK) CHECK_EQ(strlen(failure.message), 0);
}

/* An asynchronous failure: kept, skips what is behind it, reported once to each kind of wait, refused until cleared. */
static void check_late_error(weir_threadpool *pool) {
    weir_engine *engine = make_engine(pool);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "upload");
    weir_stream *healthy = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "other");
    atomic_int runs = 0, destroyed = 0, healthy_runs = 0;
    gate held = {.result = WEIR_DATA_LOSS};

    CHECK_OK(weir_enqueue_task(stream, pass_gate, &held, NULL));
    for (int i = 0; i < 10; i++) CHECK_OK(weir_enqueue_task(stream, count_run, &destroyed, count_destroy));
    for (int i = 0; i < 10; i++) CHECK_OK(weir_enqueue_task(healthy, count_run, &healthy_runs, NULL));
    CHECK_CODE(weir_stream_synchronize(stream, 0), WEIR_DEADLINE_EXCEEDED, "weir_stream_synchronize: ");
    CHECK_CODE(weir_stream_synchronize(stream, 2000000), WEIR_DEADLINE_EXCEEDED, "weir_stream_synchronize: ");
    check_error(stream, WEIR_OK, "");
    open_gate(&held);

    CHECK_CODE(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE), WEIR_DATA_LOSS, "upload");
    CHECK_EQ(atomic_load(&destroyed), 10); /* each was skipped: destroyed, not run */
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    check_error(stream, WEIR_DATA_LOSS, "upload");
    CHECK_CODE(weir_enqueue_task(stream, count_run, &runs, count_destroy), WEIR_FAILED_PRECONDITION, "upload");
    CHECK_EQ(atomic_load(&runs), 0);

    CHECK_CODE(weir_engine_synchronize(engine, WEIR_TIMEOUT_INFINITE), WEIR_DATA_LOSS, "upload");
    CHECK_OK(weir_engine_synchronize(engine, WEIR_TIMEOUT_INFINITE));
    CHECK_CODE(weir_sync_devices(WEIR_TIMEOUT_INFINITE, NULL, 0, NULL), WEIR_DATA_LOSS, "engine cpu:0: stream 'upload'"); /* each reporter tells it once */
    CHECK_OK(weir_sync_devices(WEIR_TIMEOUT_INFINITE, NULL, 0, NULL));
    check_error(healthy, WEIR_OK, "");
    CHECK_EQ(atomic_load(&healthy_runs), 10);

    CHECK_OK(weir_stream_clear_error(stream));
    check_error(stream, WEIR_OK, "");
    CHECK_OK(weir_enqueue_task(stream, count_run, &runs, NULL));
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    CHECK_EQ(atomic_load(&runs), 1);

    CHECK_OK(weir_enqueue_task(stream, fail_with_data_loss, NULL, NULL)); /* a second failure is a new one */
    CHECK_CODE(weir_sync_devices(WEIR_TIMEOUT_INFINITE, NULL, 0, NULL), WEIR_DATA_LOSS, "upload");
    CHECK_CODE(weir_engine_synchronize(engine, WEIR_TIMEOUT_INFINITE), WEIR_DATA_LOSS, "upload");
    CHECK_OK(weir_engine_synchronize(engine, WEIR_TIMEOUT_INFINITE));
    CHECK_CODE(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE), WEIR_DATA_LOSS, "upload");
    weir_stream_release(healthy);
    weir_stream_release(stream);
    weir_engine_release(engine);
}

static void test_late_errors(void) {
    static const pool_kind kinds[] = {POOL_FIFO, POOL_LIFO, POOL_PARALLEL_FOR, POOL_ASYNCHRONOUS, POOL_FULL};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        weir_threadpool *pool = NULL;
        test_pool *host = test_pool_create_threaded(kinds[k], 2, &pool);
        check_late_error(pool);
        weir_threadpool_release(pool);
        test_pool_destroy(host);
    }
    check_late_error(NULL);
}

/* The error of a stream that is gone is the engine's to report. */
static void test_error_of_released_stream(void) {
    weir_threadpool *pool = NULL;
    test_pool *host = test_pool_create_exact(POOL_LATE, 1, &pool);
    weir_engine *engine = make_engine(pool);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "gone");
    CHECK_OK(weir_enqueue_task(stream, fail_with_data_loss, NULL, NULL));
    weir_stream_release(stream);
    test_pool_let_go(host);
    CHECK_CODE(weir_engine_synchronize(engine, WEIR_TIMEOUT_INFINITE), WEIR_DATA_LOSS, "gone");
    CHECK_OK(weir_engine_synchronize(engine, WEIR_TIMEOUT_INFINITE));
    CHECK_CODE(weir_sync_domain(NULL, WEIR_TIMEOUT_INFINITE, NULL, 0, NULL), WEIR_DATA_LOSS, "gone");
    CHECK_CODE(weir_sync_devices(WEIR_TIMEOUT_INFINITE, NULL, 0, NULL), WEIR_DATA_LOSS, "gone");
    CHECK_OK(weir_sync_domain(NULL, WEIR_TIMEOUT_INFINITE, NULL, 0, NULL));
    weir_engine_release(engine);
    weir_threadpool_release(pool);
    test_pool_destroy(host);
}

static gate destroy_gate;

static void destroy_slowly(void *arg) {
    (void)arg;
    (void)pass_gate(&destroy_gate);
}

/* Clearing while skipped work is still queued: that stays skipped, and what is queued after it runs. */
static void test_clear_while_work_is_queued(void) {
    weir_threadpool *pool = NULL;
    test_pool *host = test_pool_create_threaded(POOL_FIFO, 1, &pool);
    weir_engine *engine = make_engine(pool);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "busy");
    atomic_int skipped = 0, destroyed = 0, runs = 0;
    gate held = {.result = WEIR_DATA_LOSS};
    CHECK_OK(weir_enqueue_task(stream, pass_gate, &held, NULL));
    CHECK_OK(weir_enqueue_task(stream, count_run, &skipped, destroy_slowly));
    CHECK_OK(weir_enqueue_task(stream, count_run, &destroyed, count_destroy));
    open_gate(&held);
    EVENTUALLY(atomic_load(&destroy_gate.begun)); /* the stream has failed, and one skipped task is still to come */
    CHECK_CODE(weir_enqueue_task(stream, count_run, &runs, NULL), WEIR_FAILED_PRECONDITION, "busy");
    CHECK_OK(weir_stream_clear_error(stream));
    CHECK_OK(weir_enqueue_task(stream, count_run, &runs, NULL));
    open_gate(&destroy_gate);
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    CHECK_EQ(atomic_load(&skipped), 0);
    CHECK_EQ(atomic_load(&runs), 1);
    CHECK_EQ(atomic_load(&destroyed), 1);
    weir_stream_release(stream);
    weir_engine_release(engine);
    weir_threadpool_release(pool);
    test_pool_destroy(host);
}

int main(void) {
    weir_runtime_info before = runtime_info();
    test_late_errors();
    test_error_of_released_stream();
    test_clear_while_work_is_queued();
    check_released(&before);
    return 0;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Asynchronous kernels on streams, without a graph: the order holds, waits count them, errors stick, streams that are
 * released meanwhile end when their work has; on every kind of pool.
 */

#include <weir/inspect.h>

#include "later.h"

enum { LENGTH = 32 };

static const how ways[] = {INLINE, ELSEWHERE, RACING};

static void *release_later(void *arg) {
    weir_stream_release(arg);
    return NULL;
}

/* y = x + 1, again and again: each call reads what the one before it wrote. */
static void test_order(weir_engine *engine, uint64_t flags) {
    weir_stream *stream = make_stream(engine, flags, NULL, "in order");
    weir_tensor *tensors[2] = {make_tensor(engine, vector_desc(WIDTH)), make_tensor(engine, vector_desc(WIDTH))};
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
        later l = {.how = ways[way]};
        weir_kernel *kernel = make_later_kernel(engine, "later", &l);
        for (int i = 0; i < scale(20); i++) {
            int32_t idle = 0;
            atomic_int between = 0;
            memset(floats(tensors[0]), 0, WIDTH * sizeof(float));
            for (int k = 0; k < LENGTH; k++) {
                CHECK_OK(weir_enqueue(stream, kernel, &tensors[k % 2], 1, &tensors[(k + 1) % 2], 1));
                if (k % 5 == 0) CHECK_OK(weir_enqueue_task(stream, count_run, &between, NULL));
            }
            CHECK_OK(i % 2 ? weir_sync_devices(WEIR_TIMEOUT_INFINITE, NULL, 0, NULL) : weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
            CHECK_OK(weir_stream_query(stream, &idle));
            CHECK_EQ(idle, 1);
            CHECK_EQ(atomic_load(&between), (LENGTH + 4) / 5);
            for (int k = 0; k < WIDTH; k++) CHECK_EQ(floats(tensors[LENGTH % 2])[k], (float)LENGTH);
        }
        weir_kernel_release(kernel);
    }
    weir_tensor_release(tensors[0]);
    weir_tensor_release(tensors[1]);
    weir_stream_release(stream);
}

/* What is behind a pending call does not begin, waits do not end, and all of it goes on when the call is done. */
static void test_pending(weir_engine *engine) {
    weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "pending");
    weir_stream *other = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "other");
    weir_tensor *in = make_tensor(engine, vector_desc(WIDTH)), *out = make_tensor(engine, vector_desc(WIDTH));
    later l = {.how = BY_HAND};
    weir_kernel *kernel = make_later_kernel(engine, "later", &l);
    for (int i = 0; i < scale(20); i++) {
        int32_t idle = 1, reached = 1;
        atomic_int behind = 0, beyond = 0;
        weir_event *event = make_event(engine, 0);
        atomic_store(&l.done, NULL);
        fill(in, i);
        CHECK_OK(weir_enqueue(stream, kernel, &in, 1, &out, 1));
        CHECK_OK(weir_enqueue_task(stream, count_run, &behind, NULL));
        CHECK_OK(weir_event_record(event, stream));
        CHECK_OK(weir_stream_wait_event(other, event));
        CHECK_OK(weir_enqueue_task(other, count_run, &beyond, NULL));
        EVENTUALLY(atomic_load(&l.done) != NULL);
        CHECK_OK(weir_stream_query(stream, &idle));
        CHECK_EQ(idle, 0);
        CHECK_OK(weir_event_query(event, &reached));
        CHECK_EQ(reached, 0);
        CHECK_CODE(weir_stream_synchronize(stream, 1000000), WEIR_DEADLINE_EXCEEDED, "'pending'");
        CHECK_CODE(weir_sync_devices(1000000, NULL, 0, NULL), WEIR_DEADLINE_EXCEEDED, "");
        CHECK_EQ(atomic_load(&behind) + atomic_load(&beyond), 0);
        /* Tensors and kernel are the stream's meanwhile. */
        add_one(atomic_load(&l.context));
        CHECK_OK(weir_completion_done(atomic_load(&l.done), WEIR_OK, NULL));
        CHECK_CODE(weir_completion_done(atomic_load(&l.done), WEIR_OK, NULL), WEIR_FAILED_PRECONDITION,
                   "completed before");
        CHECK_OK(weir_sync_devices(WEIR_TIMEOUT_INFINITE, NULL, 0, NULL));
        CHECK_EQ(atomic_load(&behind), 1);
        CHECK_EQ(atomic_load(&beyond), 1);
        for (int k = 0; k < WIDTH; k++) CHECK_EQ(floats(out)[k], floats(in)[k] + 1);
        weir_event_release(event);
    }
    weir_kernel_release(kernel);
    weir_tensor_release(in);
    weir_tensor_release(out);
    weir_stream_release(stream);
    weir_stream_release(other);
}

/* The stream, the kernel and the tensors are released while the call is pending. */
static void test_release(weir_engine *engine) {
    for (int i = 0; i < scale(20); i++) {
        weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "left alone");
        weir_tensor *in = make_tensor(engine, vector_desc(WIDTH)), *out = make_tensor(engine, vector_desc(WIDTH));
        later l = {.how = i % 2 ? BY_HAND : ELSEWHERE};
        weir_kernel *kernel = make_later_kernel(engine, "later", &l);
        atomic_int behind = 0;
        CHECK_OK(weir_enqueue(stream, kernel, &in, 1, &out, 1));
        CHECK_OK(weir_enqueue(stream, kernel, &in, 1, &out, 1));
        CHECK_OK(weir_enqueue_task(stream, count_run, &behind, count_destroy));
        weir_kernel_release(kernel);
        weir_tensor_release(in);
        weir_tensor_release(out);
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, release_later, stream) == 0);
        for (int call = 1; i % 2 && call <= 2; call++) {
            EVENTUALLY(atomic_load(&l.begun) == call && atomic_load(&l.done) != NULL);
            CHECK_EQ(atomic_load(&behind), 0);
            weir_completion *done = atomic_exchange(&l.done, NULL);
            add_one(atomic_load(&l.context));
            CHECK_OK(weir_completion_done(done, WEIR_OK, NULL));
        }
        CHECK(pthread_join(thread, NULL) == 0);
        /* Once it has run, and once it was destroyed. */
        EVENTUALLY(atomic_load(&behind) == 2);
    }
}

/* A failure sticks to the stream, and what is behind it is skipped. */
static void test_errors(weir_engine *engine) {
    weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "failing");
    weir_stream *here = make_stream(engine, WEIR_STREAM_DEFAULT, NULL, "here");
    weir_tensor *in = make_tensor(engine, vector_desc(WIDTH)), *out = make_tensor(engine, vector_desc(WIDTH));
    fill(in, 1);
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
        later l = {.how = ways[way], .status = WEIR_DATA_LOSS, .text = "the disk is gone"};
        weir_kernel *kernel = make_later_kernel(engine, "later", &l);
        atomic_int behind = 0;
        weir_status status = weir_enqueue(stream, kernel, &in, 1, &out, 1);
        CHECK_OK(status);
        (void)(weir_enqueue_task(stream, count_run, &behind, NULL) == WEIR_OK); /* refused if the failure was faster */
        CHECK_CODE(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE), WEIR_DATA_LOSS,
                   "stream 'failing': kernel 'later': the disk is gone");
        CHECK_EQ(atomic_load(&behind), 0);
        CHECK_CODE(weir_enqueue(stream, kernel, &in, 1, &out, 1), WEIR_FAILED_PRECONDITION, "has failed");
        CHECK_OK(weir_stream_clear_error(stream));
        CHECK_CODE(weir_enqueue(here, kernel, &in, 1, &out, 1), WEIR_DATA_LOSS,
                   "stream 'here': kernel 'later': the disk is gone");
        l.how = REFUSED;
        CHECK_CODE(weir_enqueue(here, kernel, &in, 1, &out, 1), WEIR_UNAVAILABLE,
                   "kernel 'later': its compute_async function failed with UNAVAILABLE");
        l.how = ways[way], l.status = WEIR_OK;
        CHECK_OK(weir_enqueue(stream, kernel, &in, 1, &out, 1));
        CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
        CHECK_OK(weir_enqueue(here, kernel, &in, 1, &out, 1));
        for (int k = 0; k < WIDTH; k++) CHECK_EQ(floats(out)[k], floats(in)[k] + 1);
        weir_kernel_release(kernel);
    }
    weir_tensor_release(in);
    weir_tensor_release(out);
    weir_stream_release(stream);
    weir_stream_release(here);
}

/* In a worker a synchronous stream refuses before anything has begun; an asynchronous one takes the call, and a wait
 * there for what does not come is refused. */
typedef struct inside {
    weir_stream *synchronous, *asynchronous;
    weir_kernel *kernel;
    weir_tensor *in, *out;
    later *l;
    atomic_int done;
} inside;

static int32_t use_inside(void *arg) {
    inside *i = arg;
    CHECK_CODE(weir_enqueue(i->synchronous, i->kernel, &i->in, 1, &i->out, 1), WEIR_FAILED_PRECONDITION,
               "kernel 'later' completes later, and waiting for it here would block a worker of a thread pool");
    CHECK_EQ(atomic_load(&i->l->begun), 0);
    CHECK_OK(weir_enqueue(i->asynchronous, i->kernel, &i->in, 1, &i->out, 1));
    CHECK_CODE(weir_stream_synchronize(i->asynchronous, WEIR_TIMEOUT_INFINITE), WEIR_FAILED_PRECONDITION,
               "would block a worker of a thread pool");
    CHECK_EQ(atomic_load(&i->l->begun), 1);
    atomic_store(&i->done, 1);
    return WEIR_OK;
}

static void test_in_a_worker(void) {
    weir_threadpool *pool = NULL;
    test_pool *threads = test_pool_create_threaded(POOL_FIFO, 1, &pool);
    weir_engine *engine = make_engine(pool);
    later l = {.how = BY_HAND};
    inside i = {.l = &l, .kernel = make_later_kernel(engine, "later", &l)};
    i.in = make_tensor(engine, vector_desc(WIDTH)), i.out = make_tensor(engine, vector_desc(WIDTH));
    i.synchronous = make_stream(engine, WEIR_STREAM_DEFAULT, NULL, NULL);
    i.asynchronous = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
    CHECK_OK(weir_enqueue_task(stream, use_inside, &i, NULL));
    /* Not a wait: that would do the task here. */
    EVENTUALLY(atomic_load(&i.done));
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    CHECK_OK(weir_completion_done(atomic_load(&l.done), WEIR_OK, NULL));
    CHECK_OK(weir_stream_synchronize(i.asynchronous, WEIR_TIMEOUT_INFINITE));
    weir_stream_release(stream);
    weir_stream_release(i.synchronous);
    weir_stream_release(i.asynchronous);
    weir_kernel_release(i.kernel);
    weir_tensor_release(i.in);
    weir_tensor_release(i.out);
    weir_engine_release(engine);
    weir_threadpool_release(pool);
    test_pool_destroy(threads);
}

static void test_all(weir_threadpool *pool) {
    weir_engine *engine = make_engine(pool);
    test_order(engine, WEIR_STREAM_DEFAULT);
    test_order(engine, WEIR_STREAM_ASYNCHRONOUS);
    test_pending(engine);
    test_release(engine);
    test_errors(engine);
    weir_engine_release(engine);
}

int main(void) {
    weir_runtime_info before = runtime_info();
    finisher_start();
    test_all(NULL);
    for (int kind = 0; kind < POOL_KINDS; kind++) {
        for (int threads = 1; threads <= 3; threads += 2) {
            weir_threadpool *pool = NULL;
            if (kind == POOL_LATE) continue;
            test_pool *of = test_pool_create(kind, threads, &pool);
            test_all(pool);
            weir_threadpool_release(pool);
            test_pool_destroy(of);
        }
    }
    test_in_a_worker();
    finisher_stop();
    check_released(&before);
    puts("ok");
    return 0;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Pools in checking mode with live work: each that misbehaves is caught with the number of its clause, its work is
 * done all the same, and nothing is left behind.
 */

#include <weir/inspect.h>
#include <weir/testing.h>

#include "make.h"
#include "../misbehaving/pools.h"

enum { ITEMS = 240 };

typedef struct work {
    atomic_int items[ITEMS];
    weir_threadpool *pool;
} work;

static work done;

static int32_t touch(void *arg, int64_t begin, int64_t end, int32_t slot) {
    (void)slot;
    for (int64_t i = begin; i < end; i++) atomic_fetch_add(&((work *)arg)->items[i], 1);
    sleep_ns(100000);
    return WEIR_OK;
}

static const char *broken_clause(weir_threadpool *pool) {
    static char text[512];
    size_t length = 0;
    CHECK_OK(weir_threadpool_get_broken_clause(pool, text, sizeof text, &length));
    CHECK_EQ(strlen(text), length);
    return text;
}

typedef int pool_maker(weir_threadpool_vtable *out_vtable, void **out_ctx);

static atomic_int releases;
static void (*release_of_host)(void *ctx);

static void count_release(void *ctx) {
    atomic_fetch_add(&releases, 1);
    release_of_host(ctx);
}

static weir_threadpool *make_checked(pool_maker *maker) {
    weir_threadpool_vtable vtable;
    weir_threadpool_attr *attr = NULL;
    weir_threadpool *pool = NULL;
    void *ctx = NULL;
    int32_t checking = -1;
    CHECK_EQ(maker(&vtable, &ctx), 0);
    release_of_host = vtable.release;
    vtable.release = count_release;
    atomic_store(&releases, 0);
    CHECK_OK(weir_threadpool_attr_create(&attr));
    CHECK_OK(weir_threadpool_attr_get_checking(attr, &checking));
    CHECK_EQ(checking, 0);
    CHECK_OK(weir_threadpool_attr_set_checking(attr, 1));
    CHECK_OK(weir_threadpool_attr_get_checking(attr, &checking));
    CHECK_EQ(checking, 1);
    CHECK_OK(weir_threadpool_create_with_attr(&vtable, ctx, attr, &pool));
    weir_threadpool_attr_destroy(attr);
    return pool;
}

/* One region: every item is done once, whatever the pool does and whatever the call returns. */
static weir_status run_region(weir_threadpool *pool) {
    weir_parallel_hint hint = {.struct_size = sizeof hint, .cost_ns = 1000000};
    for (int i = 0; i < ITEMS; i++) atomic_store(&done.items[i], 0);
    weir_status status = weir_parallel_for(pool, ITEMS, &hint, touch, &done);
    for (int i = 0; i < ITEMS; i++) CHECK_EQ(atomic_load(&done.items[i]), 1);
    return status;
}

static int32_t add_one(void *arg) {
    atomic_fetch_add((atomic_int *)arg, 1);
    return WEIR_OK;
}

/* The pool's last reference: it is released once, also if it lost tasks. */
static void let_go(weir_threadpool *pool) {
    weir_threadpool_release(pool);
    EVENTUALLY((void)runtime_info(), atomic_load(&releases) == 1);
}

/* Regions until the pool is caught; then streams on it say so too, and do their work. */
static void test_caught(pool_maker *maker, const char *clause) {
    weir_runtime_info before = runtime_info();
    weir_threadpool *pool = make_checked(maker);
    char expected[64];
    uint64_t give_up = now_ns() + UINT64_C(60000000000);
    while (broken_clause(pool)[0] == '\0') {
        weir_status status = run_region(pool);
        CHECK(status == WEIR_OK || broken_clause(pool)[0] != '\0');
        CHECK(now_ns() < give_up);
    }
    snprintf(expected, sizeof expected, "%s: ", clause);
    CHECK_TEXT(broken_clause(pool), expected);
    snprintf(expected, sizeof expected, "threadpool breaks clause %s: ", clause);
    CHECK_CODE(run_region(pool), WEIR_FAILED_PRECONDITION, expected);

    atomic_int count = 0;
    weir_engine *engine = make_engine(pool);
    weir_stream *streams[] = {make_stream(engine, WEIR_STREAM_DEFAULT, NULL, NULL),
                              make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL)};
    CHECK_CODE(weir_enqueue_task(streams[0], add_one, &count, NULL), WEIR_FAILED_PRECONDITION, expected);
    CHECK_OK(weir_enqueue_task(streams[1], add_one, &count, NULL));
    CHECK_CODE(weir_stream_synchronize(streams[1], WEIR_TIMEOUT_INFINITE), WEIR_FAILED_PRECONDITION, expected);
    CHECK_EQ(atomic_load(&count), 2);
    weir_stream_release(streams[0]);
    weir_stream_release(streams[1]);
    weir_engine_release(engine);

    char small[3] = "ab";
    size_t length = 0;
    CHECK_CODE(weir_threadpool_get_broken_clause(pool, small, sizeof small, &length), WEIR_OUT_OF_RANGE, "capacity is 3");
    CHECK(length > 10 && small[0] == '\0');
    let_go(pool);
    check_released(&before);
}

/* A wait in a task asks for help. The pool's tasks are all kept busy, so that one is queued. */
typedef struct helped {
    weir_stream *awaited;
    atomic_int status;
} helped;

static int32_t wait_inside(void *arg) {
    helped *h = arg;
    atomic_store(&h->status, weir_stream_synchronize(h->awaited, WEIR_TIMEOUT_INFINITE));
    return WEIR_OK;
}

static int32_t dawdle(void *arg) {
    (void)arg;
    sleep_ms(2);
    return WEIR_OK;
}

/* help is used by waits inside of tasks only, and more tasks than num_threads says are handed over by streams only. */
static void test_caught_by_streams(pool_maker *maker, const char *clause) {
    weir_runtime_info before = runtime_info();
    weir_threadpool *pool = make_checked(maker);
    weir_engine *engine = make_engine(pool);
    uint64_t give_up = now_ns() + UINT64_C(60000000000);
    while (broken_clause(pool)[0] == '\0') {
        weir_stream *busy[8], *awaited = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "awaited");
        weir_stream *waiting = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "waiting");
        helped h = {.awaited = awaited, .status = -1};
        CHECK_OK(weir_enqueue_task(awaited, dawdle, NULL, NULL));
        CHECK_OK(weir_enqueue_task(waiting, wait_inside, &h, NULL));
        for (int i = 0; i < 8; i++) {
            busy[i] = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
            CHECK_OK(weir_enqueue_task(busy[i], dawdle, NULL, NULL));
        }
        EVENTUALLY(atomic_load(&h.status) != -1);
        int status = atomic_load(&h.status);
        CHECK(status == WEIR_OK || status == WEIR_FAILED_PRECONDITION);
        for (int i = 0; i < 8; i++) weir_stream_release(busy[i]);
        weir_stream_release(waiting);
        weir_stream_release(awaited);
        CHECK(now_ns() < give_up);
    }
    CHECK_TEXT(broken_clause(pool), clause);
    weir_engine_release(engine);
    let_go(pool);
    check_released(&before);
}

/* A pool that keeps the contract is never accused. */
static void test_not_accused(pool_maker *maker) {
    weir_runtime_info before = runtime_info();
    weir_threadpool *pool = make_checked(maker);
    weir_engine *engine = make_engine(pool);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
    atomic_int count = 0;
    for (int round = 0; round < scale(100); round++) {
        CHECK_OK(run_region(pool));
        CHECK_OK(weir_enqueue_task(stream, add_one, &count, NULL));
    }
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    CHECK_EQ(atomic_load(&count), scale(100));
    CHECK_TEXT(broken_clause(pool), "");
    CHECK_EQ(strlen(broken_clause(pool)), 0);
    weir_stream_release(stream);
    weir_engine_release(engine);
    let_go(pool);
    check_released(&before);
}

/* The same pool without checking mode, and with an attr that sets nothing, says nothing. */
static void test_off(void) {
    weir_runtime_info before = runtime_info();
    weir_threadpool_vtable vtable;
    weir_threadpool_attr *attr = NULL;
    weir_threadpool *pool = NULL;
    void *ctx = NULL;
    CHECK_EQ(shared_index(&vtable, &ctx), 0);
    CHECK_OK(weir_threadpool_attr_create(&attr));
    CHECK_OK(weir_threadpool_create_with_attr(&vtable, ctx, attr, &pool));
    weir_threadpool_attr_destroy(attr);
    for (int round = 0; round < 10; round++) CHECK_OK(run_region(pool));
    CHECK_EQ(strlen(broken_clause(pool)), 0);
    weir_threadpool_release(pool);
    check_released(&before); /* a thread on its way out may still hold it, and the next test counts pools */
}

/* A vtable over a pool of weir's can be handed to weir again. */
static void test_exported_vtable(void) {
    weir_runtime_info before = runtime_info();
    weir_threadpool *inner = NULL, *pool = NULL;
    weir_threadpool_vtable vtable = {.struct_size = sizeof vtable};
    void *ctx = NULL;
    CHECK_OK(weir_threadpool_create_seeded(3, 2, &inner));
    CHECK_OK(weir_threadpool_get_vtable(inner, &vtable, &ctx));
    weir_threadpool_release(inner);
    CHECK_EQ(vtable.num_threads(ctx), 2);
    CHECK(vtable.schedule != NULL && vtable.parallel_for == NULL && vtable.in_parallel(ctx) == 0);
    CHECK_OK(weir_threadpool_create(&vtable, ctx, &pool));
    for (int round = 0; round < scale(100); round++) CHECK_OK(run_region(pool));
    weir_threadpool_release(pool);
    check_released(&before);
}

int main(void) {
    weir_runtime_info before = runtime_info();
    test_caught(duplicating, "H4");
    test_caught(wrong_index, "H4");
    test_caught(leaving_out, "H5");
    test_caught(wrong_count, "H5");
    test_caught(repeating, "H5");
    test_caught(early, "H6");
    test_caught(after_refusal, "H7");
    test_caught(growing, "H3");
    test_caught(index_beyond, "H3");
    test_caught(outside, "H10");
    test_caught(shared_index, "H10");
    test_caught(lossy, "H9");
    test_caught_by_streams(help_lies, "H11: ");
    test_caught_by_streams(help_denies, "H11: ");
    test_caught_by_streams(wide, "H2: ");
    test_not_accused(weir_conformance_pool);
    test_not_accused(in_caller);
    test_not_accused(lifo);
    test_not_accused(delaying);
    test_not_accused(half);
    test_not_accused(one_thread);
    test_not_accused(only_bulk);
    test_not_accused(posting);
    test_not_accused(breathing);
    test_off();
    test_exported_vtable();
    check_released(&before);
    return 0;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Two libraries in one process that know nothing of each other, each with a domain: neither waits for the other's work
 * nor is told of its failures; and a third party that synchronises everything takes nothing away from either.
 */

#include <pthread.h>
#include <weir/domain.h>
#include <weir/inspect.h>
#include <weir/device.h>

#include "make.h"
#include "test_device.h"
#include "test_pools.h"
#include "weir/testing.h"

enum { WIDTH = 32, LENGTH = 4, MOST_ENGINES = 16 };

/* How a library's streams work. */
typedef enum manner { ON_LANES, ON_A_POOL, EMULATED, PLUGGED_IN, MANNERS } manner;

static weir_engine_kind plugged_in;

typedef struct library {
    const char *name; /* also of its stream */
    weir_domain *domain;
    weir_engine *engine;
    weir_stream *stream;
} library;

static weir_engine *make_engine_in(weir_domain *domain, const char *name, weir_engine_kind kind, weir_threadpool *pool) {
    weir_engine_attr *attr = NULL;
    weir_engine *engine = NULL;
    CHECK_OK(weir_engine_attr_create(kind, &attr));
    CHECK_OK(weir_engine_attr_set_domain(attr, domain));
    CHECK_OK(weir_engine_attr_set_threadpool(attr, pool));
    if (name != NULL) CHECK_OK(weir_engine_attr_set_name(attr, name));
    CHECK_OK(weir_engine_create(kind, 0, attr, &engine));
    weir_engine_attr_destroy(attr);
    return engine;
}

static weir_stream *stream_on(weir_engine *engine, const char *name) {
    weir_stream_attr *attr = NULL;
    weir_stream *stream = NULL;
    weir_engine_info info = {.struct_size = sizeof info};
    CHECK_OK(weir_engine_get_info(engine, &info));
    CHECK_OK(weir_stream_attr_create(info.kind, &attr));
    CHECK_OK(weir_stream_attr_set_name(attr, name));
    CHECK_OK(weir_stream_create(engine, WEIR_STREAM_ASYNCHRONOUS, attr, &stream));
    weir_stream_attr_destroy(attr);
    return stream;
}

static int open_libraries;
static uint64_t other_domains;

static library open_library(const char *name, manner how, weir_threadpool *pool) {
    weir_engine_kind kinds[MANNERS] = {WEIR_ENGINE_CPU, WEIR_ENGINE_CPU, WEIR_ENGINE_EMULATED, plugged_in};
    library l = {.name = name};
    if (open_libraries++ == 0) other_domains = runtime_info().domains;
    CHECK_OK(weir_domain_create(name, &l.domain));
    l.engine = make_engine_in(l.domain, NULL, kinds[how], how == ON_A_POOL ? pool : NULL);
    l.stream = stream_on(l.engine, name);
    return l;
}

static void close_library(library *l) {
    /* Failures that are left are told now: a stream that is about to end may still tell them to the next test. */
    while (weir_sync_devices(WEIR_TIMEOUT_INFINITE, NULL, 0, NULL) != WEIR_OK) continue;
    weir_domain_release(l->domain); /* in any order */
    weir_stream_release(l->stream);
    weir_engine_release(l->engine);
    /* A thread that is about to let go of work may keep a domain for a moment. Then its name is free again. */
    if (l->domain != NULL && --open_libraries == 0) EVENTUALLY(runtime_info().domains <= other_domains);
}

/* ---- Failures ---- */

typedef enum reporter { STREAM, ENGINE, DOMAIN, EVERYTHING, REPORTERS } reporter;

static weir_status ask(const library *l, reporter who) {
    weir_engine_sync results[MOST_ENGINES] = {{.struct_size = sizeof results[0]}};
    size_t count = 0;
    switch (who) {
    case STREAM: return weir_stream_synchronize(l->stream, WEIR_TIMEOUT_INFINITE);
    case ENGINE: return weir_engine_synchronize(l->engine, WEIR_TIMEOUT_INFINITE);
    case DOMAIN: return weir_sync_domain(l->domain, WEIR_TIMEOUT_INFINITE, NULL, 0, NULL);
    default: return weir_sync_devices(WEIR_TIMEOUT_INFINITE, results, MOST_ENGINES, &count);
    }
}

/* `other` hears nothing of it. */
static void hears_nothing(const library *other) {
    for (int who = STREAM; who <= DOMAIN; who++) CHECK_OK(ask(other, (reporter)who));
}

/* A library fails, and is told of it by each reporter once, in each order. */
static void test_failures(manner how, weir_threadpool *pool) {
    library left = open_library("left", how, pool), right = open_library("right", how, pool);
    for (int order = 0; order < REPORTERS * REPORTERS * REPORTERS * REPORTERS; order++) {
        reporter asked[REPORTERS];
        int seen = 0;
        for (int i = 0, rest = order; i < REPORTERS; i++, rest /= REPORTERS) {
            asked[i] = (reporter)(rest % REPORTERS);
            seen |= 1 << asked[i];
        }
        if (seen != (1 << REPORTERS) - 1) continue; /* no permutation */
        library *failing = order % 2 ? &left : &right, *healthy = order % 2 ? &right : &left;
        CHECK_OK(weir_enqueue_task(failing->stream, fail_with_data_loss, NULL, NULL));
        for (int i = 0; i < REPORTERS; i++) {
            hears_nothing(healthy);
            CHECK_CODE(ask(failing, asked[i]), WEIR_DATA_LOSS, failing->name);
            if (asked[i] != STREAM) {
                char engine[64];
                snprintf(engine, sizeof engine, "engine %s/", failing->name);
                CHECK_TEXT(weir_last_error_message(), engine);
            }
            for (int again = 0; again <= i; again++) CHECK_OK(ask(failing, asked[again]));
        }
        CHECK_OK(weir_stream_clear_error(failing->stream));
    }
    /* A failure that nobody was told of, and that is cleared, is gone for all. */
    CHECK_OK(weir_enqueue_task(left.stream, fail_with_data_loss, NULL, NULL));
    CHECK_CODE(ask(&left, STREAM), WEIR_DATA_LOSS, "left");
    CHECK_OK(weir_stream_clear_error(left.stream));
    for (int who = STREAM; who < REPORTERS; who++) CHECK_OK(ask(&left, (reporter)who));
    /* Both fail. */
    CHECK_OK(weir_enqueue_task(left.stream, fail_with_data_loss, NULL, NULL));
    CHECK_OK(weir_enqueue_task(right.stream, fail_with_data_loss, NULL, NULL));
    CHECK_CODE(weir_sync_devices(WEIR_TIMEOUT_INFINITE, NULL, 0, NULL), WEIR_DATA_LOSS, "engine left/");
    CHECK_TEXT(weir_last_error_message(), "engine right/");
    CHECK_CODE(ask(&left, DOMAIN), WEIR_DATA_LOSS, "engine left/");
    CHECK(strstr(weir_last_error_message(), "right") == NULL);
    CHECK_CODE(ask(&right, DOMAIN), WEIR_DATA_LOSS, "engine right/");
    CHECK(strstr(weir_last_error_message(), "left") == NULL);
    close_library(&left);
    close_library(&right);
}

/* A failure passes from one domain to the other by an event only, and then it is the other's own. */
static void test_failed_event(void) {
    library left = open_library("left", ON_LANES, NULL), right = open_library("right", ON_LANES, NULL);
    weir_event *event = make_event(left.engine, WEIR_EVENT_DEFAULT);
    gate g = {.result = WEIR_DATA_LOSS};
    CHECK_OK(weir_enqueue_task(left.stream, pass_gate, &g, NULL));
    CHECK_OK(weir_event_record(event, left.stream));
    CHECK_OK(weir_stream_wait_event(right.stream, event));
    CHECK_CODE(weir_sync_domain(right.domain, 1000000, NULL, 0, NULL), WEIR_DEADLINE_EXCEEDED, "weir_sync_domain: ");
    open_gate(&g);
    CHECK_CODE(ask(&right, DOMAIN), WEIR_ABORTED, "engine right/cpu:0: stream 'right': waited for an event of a failed stream");
    CHECK_CODE(ask(&left, DOMAIN), WEIR_DATA_LOSS, "engine left/cpu:0: stream 'left'");
    CHECK_OK(ask(&right, DOMAIN));
    CHECK_OK(ask(&left, DOMAIN));
    weir_event_release(event);
    close_library(&left);
    close_library(&right);
}

/* ---- Waits ---- */

static weir_engine_sync *status_of(const library *l, uint64_t timeout_ns, weir_status expected) {
    static weir_engine_sync results[MOST_ENGINES];
    size_t count = 0;
    memset(results, 0, sizeof results);
    results[0].struct_size = sizeof results[0];
    CHECK_CODE(weir_sync_domain(l->domain, timeout_ns, results, 0, &count), WEIR_OUT_OF_RANGE, "there are 1 engines");
    CHECK_EQ(count, 1);
    CHECK_EQ(weir_sync_domain(l->domain, timeout_ns, results, MOST_ENGINES, &count), expected);
    CHECK_EQ(count, 1);
    char name[64];
    CHECK_OK(weir_engine_get_name(l->engine, name, sizeof name, NULL));
    CHECK(strncmp(results[0].engine, "engine ", 7) == 0 && strcmp(results[0].engine + 7, name) == 0);
    return results;
}

/* One library is held up; the other does not notice. */
static void check_wait(library *held, library *free_one) {
    gate g = {.result = WEIR_DATA_LOSS};
    atomic_int runs = 0;
    uint64_t times[2] = {0}, scope = 0;
    CHECK_OK(weir_enqueue_task(held->stream, pass_gate, &g, NULL));
    EVENTUALLY(atomic_load(&g.begun));
    CHECK_OK(weir_async_scope_begin_in(free_one->domain, &scope));
    for (int i = 0; i < 10; i++) CHECK_OK(weir_enqueue_task(free_one->stream, count_run, &runs, NULL));
    CHECK_OK(ask(free_one, DOMAIN));
    CHECK_EQ(atomic_load(&runs), 10);
    CHECK_EQ(status_of(free_one, WEIR_TIMEOUT_INFINITE, WEIR_OK)->status, WEIR_OK);
    CHECK_OK(ask(free_one, ENGINE));
    CHECK_OK(weir_async_scope_end(scope, WEIR_TIMEOUT_INFINITE));
    CHECK_OK(weir_time_ns(free_one->stream, count_run, &runs, 2, times));
    CHECK_CODE(weir_sync_domain(held->domain, 0, NULL, 0, NULL), WEIR_DEADLINE_EXCEEDED, "weir_sync_domain: ");
    CHECK_CODE(weir_sync_domain(held->domain, 2000000, NULL, 0, NULL), WEIR_DEADLINE_EXCEEDED, "weir_sync_domain: ");
    CHECK_EQ(status_of(held, 2000000, WEIR_DEADLINE_EXCEEDED)->status, WEIR_DEADLINE_EXCEEDED);
    CHECK_CODE(weir_sync_devices(2000000, NULL, 0, NULL), WEIR_DEADLINE_EXCEEDED, "");
    open_gate(&g);
    CHECK_EQ(status_of(held, WEIR_TIMEOUT_INFINITE, WEIR_DATA_LOSS)->status, WEIR_DATA_LOSS);
    CHECK_EQ(status_of(held, WEIR_TIMEOUT_INFINITE, WEIR_OK)->status, WEIR_OK);
    CHECK_OK(ask(free_one, DOMAIN));
    CHECK_CODE(weir_sync_devices(WEIR_TIMEOUT_INFINITE, NULL, 0, NULL), WEIR_DATA_LOSS, held->name);
    CHECK_OK(weir_stream_clear_error(held->stream));
}

static void test_waits(manner how, weir_threadpool *pool) {
    library left = open_library("left", how, pool), right = open_library("right", how, pool);
    check_wait(&left, &right);
    check_wait(&right, &left);
    close_library(&left);
    close_library(&right);
}

typedef struct timed {
    weir_stream *own, *others;
    atomic_int runs;
} timed;

static int32_t queue_both(void *arg) {
    timed *t = arg;
    CHECK_OK(weir_enqueue_task(t->others, count_run, &t->runs, NULL));
    return weir_enqueue_task(t->own, count_run, &t->runs, NULL);
}

/* What another user queues while something is timed is not what is timed. */
static void test_time(void) {
    library left = open_library("left", ON_LANES, NULL), right = open_library("right", ON_LANES, NULL);
    gate g = {0};
    timed t = {.own = left.stream, .others = right.stream};
    uint64_t time = 0;
    CHECK_OK(weir_enqueue_task(right.stream, pass_gate, &g, NULL));
    CHECK_OK(weir_time_ns(left.stream, queue_both, &t, 1, &time));
    weir_stream *second = stream_on(left.engine, "second");
    gate own = {0};
    CHECK_OK(weir_enqueue_task(second, pass_gate, &own, NULL));
    t.others = second;
    CHECK_CODE(weir_time_ns(left.stream, queue_both, &t, 1, &time), WEIR_FAILED_PRECONDITION, "stream 'second' meanwhile");
    open_gate(&g);
    open_gate(&own);
    CHECK_OK(weir_sync_devices(WEIR_TIMEOUT_INFINITE, NULL, 0, NULL));
    weir_stream_release(second);
    close_library(&left);
    close_library(&right);
}

/* ---- Scopes ---- */

static void test_scopes(void) {
    library left = open_library("left", ON_LANES, NULL), right = open_library("right", ON_LANES, NULL);
    uint64_t ours = 0, all = 0;
    CHECK_OK(weir_async_scope_begin_in(left.domain, &ours));
    CHECK_OK(weir_async_scope_begin(&all));
    CHECK_OK(weir_enqueue_task(right.stream, fail_with_data_loss, NULL, NULL));
    CHECK_OK(weir_async_scope_end(ours, WEIR_TIMEOUT_INFINITE));
    CHECK_OK(weir_enqueue_task(left.stream, fail_with_data_loss, NULL, NULL));
    CHECK_CODE(weir_async_scope_end(ours, WEIR_TIMEOUT_INFINITE), WEIR_DATA_LOSS, "engine left/cpu:0");
    CHECK_OK(ask(&left, DOMAIN)); /* told by its scope */
    CHECK_CODE(ask(&left, ENGINE), WEIR_DATA_LOSS, "left");
    CHECK_CODE(weir_async_scope_end(all, WEIR_TIMEOUT_INFINITE), WEIR_DATA_LOSS, "engine left/cpu:0");
    CHECK_TEXT(weir_last_error_message(), "engine right/cpu:0");
    CHECK_OK(weir_sync_devices(WEIR_TIMEOUT_INFINITE, NULL, 0, NULL)); /* told by its scope */
    CHECK_CODE(ask(&right, DOMAIN), WEIR_DATA_LOSS, "right");
    weir_stream_release(left.stream);
    left.stream = stream_on(left.engine, "next");
    /* What failed before a scope is left for the domain; streams that fail and go inside of it are the scope's. */
    CHECK_OK(weir_enqueue_task(left.stream, fail_with_data_loss, NULL, NULL));
    CHECK_CODE(ask(&left, STREAM), WEIR_DATA_LOSS, "'next'");
    weir_stream_release(left.stream);
    CHECK_OK(weir_async_scope_begin_in(left.domain, &ours));
    left.stream = stream_on(left.engine, "brief");
    CHECK_OK(weir_enqueue_task(left.stream, fail_with_data_loss, NULL, NULL));
    CHECK_CODE(ask(&left, STREAM), WEIR_DATA_LOSS, "'brief'");
    weir_stream_release(left.stream);
    left.stream = NULL;
    CHECK_CODE(weir_async_scope_end(ours, WEIR_TIMEOUT_INFINITE), WEIR_DATA_LOSS, "'brief'");
    CHECK_CODE(ask(&left, DOMAIN), WEIR_DATA_LOSS, "'next'");
    CHECK_OK(ask(&left, DOMAIN));
    close_library(&left);
    close_library(&right);
}

/* ---- Those who know nothing of domains ---- */

static void test_default(void) {
    library own = open_library("own", ON_LANES, NULL);
    library plain = {.name = "plain", .domain = NULL, .engine = make_engine_in(NULL, NULL, WEIR_ENGINE_CPU, NULL)};
    plain.stream = stream_on(plain.engine, plain.name);
    check_wait(&own, &plain);
    check_wait(&plain, &own);
    CHECK_OK(weir_enqueue_task(plain.stream, fail_with_data_loss, NULL, NULL));
    CHECK_CODE(weir_sync_domain(NULL, WEIR_TIMEOUT_INFINITE, NULL, 0, NULL), WEIR_DATA_LOSS, "engine cpu:0: stream 'plain'");
    CHECK_CODE(weir_sync_devices(WEIR_TIMEOUT_INFINITE, NULL, 0, NULL), WEIR_DATA_LOSS, "engine cpu:0: stream 'plain'");
    hears_nothing(&own);
    close_library(&plain);
    close_library(&own);
}

int main(void) {
    CHECK_OK(weir_emulated_register());
    weir_runtime_info before = runtime_info();
    weir_threadpool *pool = NULL;
    test_pool *host = test_pool_create_exact(POOL_FIFO, 3, &pool);
    test_device *device = test_device_create(WEIR_DEVICE_OWN_MEMORY | WEIR_DEVICE_CONCURRENT | WEIR_DEVICE_CALLBACK);
    weir_device_vtable vtable = test_device_vtable();
    CHECK(device != NULL);
    CHECK_OK(weir_device_register("board", 0, &vtable, device));
    CHECK_OK(weir_engine_kind_from_name("board", &plugged_in));
    for (manner how = ON_LANES; how < MANNERS; how++) {
        test_failures(how, pool);
        test_waits(how, pool);
    }
    test_failed_event();
    test_time();
    test_scopes();
    test_default();
    CHECK_OK(weir_sync_devices(WEIR_TIMEOUT_INFINITE, NULL, 0, NULL));
    CHECK_OK(weir_device_unregister("board", 0));
    EVENTUALLY(runtime_info().engines <= before.engines && test_device_alive(device) == 0 && test_device_releases(device) == 1);
    test_device_destroy(device);
    weir_threadpool_release(pool);
    test_pool_destroy(host);
    check_released(&before);
    puts("nobody takes another's failure, nor waits for another's work");
    return 0;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Threads that cannot be started: pthread_create is replaced in this program and refuses on request. Whatever the
 * library was about to make is not made, and the threads that did start end again.
 */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <weir/inspect.h>

#include "threads.h"

static atomic_int starts_left = 1 << 30; /* before one is refused */
static atomic_int refused;

#if !WITH_ASAN && !WITH_TSAN
#define INTERPOSED 1

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg) {
    static int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (next == NULL) *(void **)&next = dlsym(RTLD_NEXT, "pthread_create");
    if (atomic_fetch_sub(&starts_left, 1) <= 0) {
        atomic_fetch_add(&refused, 1);
        return EAGAIN;
    }
    return next(thread, attr, run, arg);
}

#else
#define INTERPOSED 0
#endif

/* Makes nothing: the `n`th thread is refused, and those before it end. */
static void check_refusal(weir_thread_mode mode, int n, const char *part) {
    weir_runtime_info before = runtime_info();
    weir_engine *engine = NULL;
    atomic_store(&starts_left, n);
    CHECK_CODE(create_engine(mode, 4, NULL, &engine), WEIR_RESOURCE_EXHAUSTED, part);
    atomic_store(&starts_left, 1 << 30);
    CHECK(engine == NULL);
    CHECK_EQ(atomic_exchange(&refused, 0), 1);
    CHECK_EQ(runtime_info().threads_started, before.threads_started + (uint64_t)n);
    check_released(&before);
    /* It was no last word. */
    CHECK_OK(create_engine(mode, 4, NULL, &engine));
    check_engine(engine, mode, 4);
    weir_engine_release(engine);
    check_released(&before);
}

static void check_lane_refusal(void) {
    weir_runtime_info before = runtime_info();
    weir_engine *engine = make_engine(NULL);
    weir_stream *stream = NULL;
    atomic_store(&starts_left, 0);
    CHECK_CODE(weir_stream_create(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, &stream), WEIR_RESOURCE_EXHAUSTED,
               "cannot start the lane of stream");
    atomic_store(&starts_left, 1 << 30);
    CHECK(stream == NULL);
    CHECK_EQ(list_threads().count, 0);
    CHECK_EQ(runtime_info().threads_started, before.threads_started);
    weir_engine_release(engine);
    check_released(&before);
}

int main(void) {
    if (!INTERPOSED) {
        printf("nothing can be refused here\n");
        return 0;
    }
    for (int n = 0; n < 4; n++) {
        char part[96];
        snprintf(part, sizeof part, "the private pool of engine cpu:0: cannot start thread %d of 4", n);
        check_refusal(WEIR_THREAD_MODE_PRIVATE, n, part);
        snprintf(part, sizeof part, "the pool that cpu engines share: cannot start thread %d of 4", n);
        check_refusal(WEIR_THREAD_MODE_KIND, n, part);
    }
    check_lane_refusal();
    return 0;
}

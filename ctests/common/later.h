/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Kernels that complete later, in whatever way the test says, and a thread that completes them.
 */

#ifndef LATER_H
#define LATER_H

#include <pthread.h>

#include "detached.h"
#include "make.h"
#include "test_pools.h"

enum { WIDTH = 16 };

typedef enum how {
    INLINE,    /* done before compute_async returns */
    ELSEWHERE, /* done by the finisher, some time */
    RACING,    /* done by another thread, which starts at once */
    BY_HAND,   /* done by the test */
    REFUSED,   /* compute_async returns an error */
} how;

typedef struct later {
    how how;
    weir_status status;    /* what done is told */
    const char *text;
    atomic_int begun;
    _Atomic(weir_completion *) done; /* of the last call */
    weir_kernel_context *_Atomic context;
} later;

/* y = x + 1 */
static void add_one(const weir_kernel_context *context) {
    const weir_tensor_view *in = NULL, *result = NULL;
    size_t count = 0;
    CHECK_OK(weir_kernel_context_get_inputs(context, &in, &count));
    CHECK_EQ(count, 1);
    CHECK_OK(weir_kernel_context_get_outputs(context, &result, &count));
    CHECK_EQ(count, 1);
    const float *x = in[0].data;
    float *y = result[0].data;
    for (int i = 0; i < WIDTH; i++) y[i] = x[i] + 1;
}

/* A thread that completes what it is given, the newest first. */
typedef struct job {
    weir_kernel_context *context;
    weir_completion *done;
    weir_status status;
    const char *text;
} job;

static struct finisher {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    job jobs[4096];
    int count, wait_for, ending;
} finisher = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static atomic_int only_once;
/* Jobs of other threads, which may outlive the run: they complete twice. */
static atomic_int with_others;

static void finish(const job *j) {
    add_one(j->context);
    CHECK_OK(weir_completion_done(j->done, j->status, j->text));
    if (only_once) return;
    CHECK_CODE(weir_completion_done(j->done, WEIR_OK, NULL), WEIR_FAILED_PRECONDITION, "completed before");
}

/* From here on every completion is the only one; the error of a second one is memory. */
static inline void complete_only_once(void) {
    only_once = 1;
    EVENTUALLY(atomic_load(&with_others) == 0);
}

static void *finish_all(void *arg) {
    (void)arg;
    pthread_mutex_lock(&finisher.mutex);
    for (;;) {
        if (finisher.count > 0) {
            job j = finisher.jobs[--finisher.count];
            pthread_mutex_unlock(&finisher.mutex);
            finish(&j);
            atomic_fetch_sub(&with_others, 1);
            pthread_mutex_lock(&finisher.mutex);
        } else if (finisher.ending) {
            pthread_mutex_unlock(&finisher.mutex);
            return NULL;
        } else {
            pthread_cond_wait(&finisher.changed, &finisher.mutex);
        }
    }
}

static void *finish_one(void *arg) {
    job *j = arg;
    finish(j);
    free(j);
    atomic_fetch_sub(&with_others, 1);
    return NULL;
}

static int32_t begin_later(void *user, weir_kernel_context *context, weir_completion *done) {
    later *l = user;
    job j = {context, done, l->status, l->text};
    atomic_fetch_add(&l->begun, 1);
    switch (l->how) {
    case INLINE:
        finish(&j);
        return WEIR_OK;
    case ELSEWHERE:
        atomic_fetch_add(&with_others, 1);
        pthread_mutex_lock(&finisher.mutex);
        CHECK(finisher.count < 4096);
        finisher.jobs[finisher.count++] = j;
        pthread_cond_signal(&finisher.changed);
        pthread_mutex_unlock(&finisher.mutex);
        return WEIR_OK;
    case RACING: {
        job *copy = malloc(sizeof *copy);
        *copy = j;
        atomic_fetch_add(&with_others, 1);
        CHECK_EQ(start_detached(finish_one, copy), 0);
        return WEIR_OK;
    }
    case BY_HAND:
        atomic_store(&l->context, context);
        atomic_store(&l->done, done);
        return WEIR_OK;
    case REFUSED:
        return WEIR_UNAVAILABLE;
    }
    return WEIR_INTERNAL;
}

static weir_kernel *make_later_kernel(weir_engine *engine, const char *name, later *l) {
    weir_tensor_desc like = vector_desc(WIDTH);
    weir_host_kernel_desc desc = make_kernel_desc(name, NULL, l);
    weir_kernel *kernel = NULL;
    desc.compute_async = begin_later;
    desc.num_inputs = desc.num_outputs = 1;
    desc.inputs = desc.outputs = &like;
    CHECK_OK(weir_kernel_create_host(engine, &desc, &kernel));
    return kernel;
}

static void finisher_start(void) {
    CHECK(pthread_create(&finisher.thread, NULL, finish_all, NULL) == 0);
}

static void finisher_stop(void) {
    pthread_mutex_lock(&finisher.mutex);
    finisher.ending = 1;
    pthread_cond_signal(&finisher.changed);
    pthread_mutex_unlock(&finisher.mutex);
    CHECK(pthread_join(finisher.thread, NULL) == 0);
}

#endif

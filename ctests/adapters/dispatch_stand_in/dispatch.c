/* SPDX-License-Identifier: MIT OR Apache-2.0 */

#include "dispatch/dispatch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 3 };

typedef struct item {
    dispatch_function_t work;
    void *context;
    struct item *next;
} item;

struct dispatch_queue_stand_in {
    atomic_long references;
    pthread_once_t once;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    item *first;
    item **end;
};

static struct dispatch_queue_stand_in global = {
    .references = 1,
    .once = PTHREAD_ONCE_INIT,
    .mutex = PTHREAD_MUTEX_INITIALIZER,
    .changed = PTHREAD_COND_INITIALIZER,
    .end = &global.first,
};

static void give_up(const char *what) {
    fprintf(stderr, "dispatch stand-in: %s\n", what);
    abort();
}

static void *run(void *unused) {
    (void)unused;
    for (;;) {
        pthread_mutex_lock(&global.mutex);
        while (global.first == NULL) pthread_cond_wait(&global.changed, &global.mutex);
        item *taken = global.first;
        global.first = taken->next;
        if (global.first == NULL) global.end = &global.first;
        pthread_mutex_unlock(&global.mutex);
        taken->work(taken->context);
        free(taken);
    }
    return NULL;
}

static void start(void) {
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, run, NULL) != 0) give_up("no thread");
        pthread_detach(thread);
    }
}

dispatch_queue_t dispatch_get_global_queue(intptr_t identifier, uintptr_t flags) {
    (void)identifier, (void)flags;
    return &global;
}

void dispatch_retain(dispatch_queue_t queue) {
    atomic_fetch_add(&queue->references, 1);
}

void dispatch_release(dispatch_queue_t queue) {
    if (atomic_fetch_sub(&queue->references, 1) <= 1) give_up("the global queue was released once too often");
}

long stand_in_references(dispatch_queue_t queue) {
    return atomic_load(&queue->references);
}

void dispatch_async_f(dispatch_queue_t queue, void *context, dispatch_function_t work) {
    item *added = malloc(sizeof *added);
    if (added == NULL) give_up("no memory");
    *added = (item){.work = work, .context = context};
    pthread_once(&queue->once, start);
    pthread_mutex_lock(&queue->mutex);
    *queue->end = added;
    queue->end = &added->next;
    pthread_cond_signal(&queue->changed);
    pthread_mutex_unlock(&queue->mutex);
}

/* A dispatch_apply_f in progress. Helpers that come late find no index left, and the last one out frees it. */
typedef struct apply {
    size_t n;
    void *context;
    void (*work)(void *, size_t);
    atomic_size_t next, returned;
    atomic_int users;
    pthread_mutex_t mutex;
    pthread_cond_t done;
} apply;

static void apply_run(void *arg) {
    apply *a = arg;
    size_t i, ran = 0;
    while ((i = atomic_fetch_add(&a->next, 1)) < a->n) {
        a->work(a->context, i);
        ran++;
    }
    if (ran > 0 && atomic_fetch_add(&a->returned, ran) + ran == a->n) {
        pthread_mutex_lock(&a->mutex);
        pthread_cond_signal(&a->done);
        pthread_mutex_unlock(&a->mutex);
    }
}

static void apply_leave(apply *a) {
    if (atomic_fetch_sub(&a->users, 1) == 1) {
        pthread_cond_destroy(&a->done);
        pthread_mutex_destroy(&a->mutex);
        free(a);
    }
}

static void apply_help(void *arg) {
    apply_run(arg);
    apply_leave(arg);
}

void dispatch_apply_f(size_t n, dispatch_queue_t queue, void *context, void (*work)(void *, size_t)) {
    int helpers = n > THREADS ? THREADS : n > 0 ? (int)n - 1 : 0;
    apply *a = calloc(1, sizeof *a);
    if (a == NULL) give_up("no memory");
    a->n = n;
    a->context = context;
    a->work = work;
    atomic_init(&a->users, helpers + 1);
    pthread_mutex_init(&a->mutex, NULL);
    pthread_cond_init(&a->done, NULL);
    for (int i = 0; i < helpers; i++) dispatch_async_f(queue, a, apply_help);
    apply_run(a);
    pthread_mutex_lock(&a->mutex);
    while (atomic_load(&a->returned) < n) pthread_cond_wait(&a->done, &a->mutex);
    pthread_mutex_unlock(&a->mutex);
    apply_leave(a);
}

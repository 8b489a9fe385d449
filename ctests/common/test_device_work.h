/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * What the functions of the test device stand on: its state, what they begin and end with, the queues of its streams
 * and the threads that work on them. A part of test_device.c and of nothing else: a plug-in is not to have such names
 * for others to find.
 */

#ifndef WEIR_CTESTS_TEST_DEVICE_WORK_H
#define WEIR_CTESTS_TEST_DEVICE_WORK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <weir/device.h>

#include "test_device.h"
#include "test_device_kernels.h"

/* What makes a pointer an address that the host cannot use. */
#define SPACE (UINT64_C(1) << 62)

static char *pointer(uint64_t address) {
    return (char *)(uintptr_t)(address & ~SPACE);
}

typedef struct event {
    bool under_way;
    int32_t status; /* of the work before it */
    uint64_t time_ns;
    uint64_t records; /* how often it was recorded; waits remember which one they mean */
    uint64_t reached;
    struct { weir_device_callback_fn call; void *arg; } callbacks[8];
    int num_callbacks;
    char why[64];
} event;

typedef enum verb { COPY, FILL, LAUNCH, REPLAY, RECORD, WAIT } verb; /* the first four are work */

typedef struct command {
    struct command *next;
    verb verb;
    char *to;
    const char *from;
    uint64_t bytes;
    void *staged; /* freed when it is done */
    uint8_t value;
    event *event;
    uint64_t record;
    test_kernel *kernel;
    weir_tensor_view views[8];
    size_t num_inputs, num_outputs;
    char *scratch;
    uint64_t scratch_bytes;
    const struct steps *replay;
    char why[64]; /* a function of the host's has failed */
    bool spoiled;
    uint64_t prepared; /* the number of a prepared launch; 0: it is none */
} command;

typedef struct opened {
    struct test_device *context;
    uint32_t index;
    struct stream *streams;
    struct grave { struct grave *next; void *block; void (*end)(void *); } *graves; /* what ends when the device is closed */
    bool drops; /* what is issued in a batch now and then */
} opened;

typedef struct stream {
    struct stream *next;
    opened *device;
    command *first, *last;
    bool ending;
    int32_t status; /* its first failure */
    char why[64];
    pthread_t thread;
} stream;

struct test_device {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    uint64_t capabilities, limit, allocated, slow_ns;
    test_fault fault;
    char planned[32];
    int planned_call;
    int32_t planned_status;
    bool hit;
    bool lost, refuses_control;
    bool spoiled, emptied; /* its kernels, its executables */
    uint32_t max_streams;
    int recordings, updates, prepared, queries, regions, region_nodes;
    uint64_t replays;
    uint64_t num_prepared, last_destroyed; /* numbers of prepared launches */
    const char *left_alone;
    atomic_int callers; /* in a function, waiting for the lock or not */
    int alive, releases, most_callers, turns;
    uint64_t last_address, last_bytes;
    uint64_t pinned;
    void *overlapped[4096]; /* blocks that were given twice, freed at the end */
    int num_overlapped;
};

static _Thread_local char error_text_of_thread[128];

static int32_t fail(int32_t status, const char *text) {
    snprintf(error_text_of_thread, sizeof error_text_of_thread, "%s", text);
    return status;
}

static uint64_t clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void pause_ns(uint64_t ns) {
    struct timespec time = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    if (ns > 0) nanosleep(&time, NULL);
}

/* Whether a plan says that this call fails; with the lock. */
static int32_t planned(test_device *c, const char *function) {
    if (strcmp(c->planned, function) != 0 || --c->planned_call > 0) return WEIR_OK;
    c->planned[0] = 0;
    c->hit = true;
    if (c->planned_status == WEIR_DEVICE_LOST) c->lost = true;
    return fail(c->planned_status, "as planned");
}

/* One in so many times; with the lock. */
static bool turn(test_device *c, test_fault fault, int every) {
    return c->fault == fault && ++c->turns % every == 0;
}

/* Begins a function: takes the lock, and gives the status that it is to fail with. */
static int32_t enter(test_device *c, const char *function) {
    int callers = atomic_fetch_add(&c->callers, 1) + 1;
    pthread_mutex_lock(&c->mutex);
    if (callers > c->most_callers) c->most_callers = callers;
    if (c->lost) return fail(WEIR_DEVICE_LOST, "the device is lost");
    return planned(c, function);
}

static int32_t leave(test_device *c, int32_t status) {
    atomic_fetch_sub(&c->callers, 1);
    pthread_mutex_unlock(&c->mutex);
    return status;
}

/* ---- The work ---- */

static void copy_bytes(test_device *c, command *work) {
    uint64_t bytes = work->bytes;
    if (c->fault == LOSSY_COPIES && bytes > 4096) bytes--;
    memcpy(work->to, work->from, bytes);
}

static int32_t do_replay(test_device *c, command *work);

/* Whether a prepared launch is destroyed. */
static bool has_lapsed(test_device *c, uint64_t prepared) {
    pthread_mutex_lock(&c->mutex);
    bool lapsed = c->last_destroyed >= prepared;
    pthread_mutex_unlock(&c->mutex);
    return lapsed;
}

static int32_t do_work(test_device *c, command *work) {
    if (work->verb != REPLAY) pause_ns(c->slow_ns);
    switch (work->verb) {
    case COPY:
        copy_bytes(c, work);
        return WEIR_OK;
    case FILL: memset(work->to, work->value, work->bytes + (c->fault == OFF_BY_ONE ? 1 : 0)); return WEIR_OK;
    case LAUNCH:
        for (size_t i = 0; i < work->num_inputs + work->num_outputs; i++) {
            work->views[i].data = (void *)(uintptr_t)((uint64_t)(uintptr_t)work->views[i].data & ~SPACE);
        }
        if (c->fault == LAPSING_PREPARED && work->prepared != 0 && has_lapsed(c, work->prepared)) return WEIR_OK;
        if (c->fault == CLEARING_OUTPUTS) {
            for (size_t i = 0; i < work->num_outputs; i++) memset(work->views[work->num_inputs + i].data, 0, work->views[work->num_inputs + i].bytes);
        }
        /* Computes from what is in the scratch: whoever has it too at this time is found out. */
        if (work->scratch_bytes > 0) {
            bool was_clear = work->scratch[0] == 0;
            memcpy(work->scratch, work->views[0].data, work->scratch_bytes);
            if (c->fault == TRUSTING_SCRATCH && !was_clear) memset(work->scratch, 0x40, work->scratch_bytes);
            if (c->fault == SPILLING_SCRATCH) work->scratch[work->scratch_bytes] = 1;
            if (c->slow_ns > 0) pause_ns(c->slow_ns);
            work->views[0].data = work->scratch;
        }
        work->why[0] = '\0';
        return test_kernel_run(work->kernel, work->views, work->views + work->num_inputs, work->num_inputs, work->num_outputs,
                               c->fault == WRONG_KERNEL || work->spoiled, work->why, sizeof work->why);
    case REPLAY: return do_replay(c, work);
    default: return WEIR_OK;
    }
}

/* With the lock, which it gives up while callbacks run. */
static void reach(test_device *c, event *e, uint64_t record, int32_t status) {
    e->under_way = false;
    e->status = c->fault == SWALLOWED_ERRORS && status != WEIR_DEVICE_LOST ? WEIR_OK : status;
    e->time_ns = clock_ns();
    e->reached = record;
    int count = e->num_callbacks;
    e->num_callbacks = 0;
    struct { weir_device_callback_fn call; void *arg; } calls[8];
    memcpy(calls, e->callbacks, sizeof calls);
    pthread_cond_broadcast(&c->changed);
    /* From here on the event may be gone. */
    if (count == 0) return;
    bool twice = c->fault == DOUBLE_CALLBACKS;
    pthread_mutex_unlock(&c->mutex);
    for (int i = 0; i < count; i++) {
        calls[i].call(calls[i].arg);
        if (twice) calls[i].call(calls[i].arg);
    }
    pthread_mutex_lock(&c->mutex);
}

/* The next thing to do, which stays in the queue until it is done; with the lock. */
static command *next_command(test_device *c, stream *s) {
    command *first = s->first, *second = first == NULL ? NULL : first->next;
    if (second != NULL && first->verb <= REPLAY && second->verb <= REPLAY && turn(c, UNORDERED, 2)) {
        first->next = second->next;
        second->next = first;
        s->first = second;
        if (s->last == second) s->last = first;
    }
    return s->first;
}

static void *work_of_stream(void *arg) {
    stream *s = arg;
    test_device *c = s->device->context;
    pthread_mutex_lock(&c->mutex);
    while (!s->ending || s->first != NULL) {
        command *work = next_command(c, s);
        if (work == NULL) {
            pthread_cond_wait(&c->changed, &c->mutex);
            continue;
        }
        if (c->lost && s->status == WEIR_OK) s->status = WEIR_DEVICE_LOST;
        bool skip = s->status != WEIR_OK && (c->fault != GOING_ON || c->lost);
        if (work->verb == WAIT) {
            event *e = work->event;
            bool waits = c->fault != IGNORED_WAITS && !skip;
            if (waits && e->reached < work->record && !c->lost) {
                pthread_cond_wait(&c->changed, &c->mutex);
                continue;
            }
            if (waits && s->status == WEIR_OK && c->fault != UNPROPAGATED) s->status = e->status;
            if (waits && s->status != WEIR_OK && c->fault == RENAMED_ERRORS) s->status = WEIR_CANCELLED;
        } else if (work->verb <= REPLAY && !skip) {
            /* The steps of a replay count one by one. */
            int32_t status = work->verb == REPLAY ? WEIR_OK : planned(c, "work");
            if (status == WEIR_OK) {
                pthread_mutex_unlock(&c->mutex);
                status = do_work(c, work);
                pthread_mutex_lock(&c->mutex);
            }
            if (s->status == WEIR_OK) {
                s->status = status;
                memcpy(s->why, work->why, sizeof s->why);
            }
        }
        s->first = work->next;
        if (s->first == NULL) s->last = NULL;
        if (work->verb == RECORD && s->status != WEIR_OK && c->fault != MUTE) memcpy(work->event->why, s->why, sizeof s->why);
        if (work->verb == RECORD && c->fault != EARLY_EVENTS) reach(c, work->event, work->record, s->status);
        free(work->staged);
        free(work);
        pthread_cond_broadcast(&c->changed);
    }
    pthread_mutex_unlock(&c->mutex);
    return NULL;
}

/* Queues a copy of the command; with the lock. */
static int32_t queue(stream *s, const command *what) {
    command *work = malloc(sizeof *work);
    if (work == NULL) return fail(WEIR_RESOURCE_EXHAUSTED, "no memory for a command");
    *work = *what;
    work->next = NULL;
    if (s->last != NULL) s->last->next = work;
    else s->first = work;
    s->last = work;
    pthread_cond_broadcast(&s->device->context->changed);
    return WEIR_OK;
}

/* A function that queues one command. */
static int32_t issue(void *device, void *on, const char *function, const command *what) {
    test_device *c = ((opened *)device)->context;
    int32_t status = enter(c, function);
    command work = *what;
    work.spoiled = c->spoiled;
    if (status == WEIR_OK) status = queue(on, &work);
    return leave(c, status);
}

#endif /* WEIR_CTESTS_TEST_DEVICE_WORK_H */

/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * What a tool of the tests has been told: beginnings with their names, and ends, in the order in which they came.
 */

#ifndef WEIR_CTESTS_MARKER_LOG_H
#define WEIR_CTESTS_MARKER_LOG_H

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { MOST_MARKERS = 1 << 16 };

typedef struct marker {
    pthread_t thread;
    char name[64]; /* "" for an end */
} marker;

typedef struct marker_log {
    pthread_mutex_t mutex;
    int count;
    char wrong[128]; /* what the tool did not expect, or "" */
    marker markers[MOST_MARKERS];
} marker_log;

/* Of the tool that includes this; the test looks it up by its name. */
#define MARKER_LOG                                                                                                     \
    __attribute__((visibility("default"))) marker_log told_markers = {.mutex = PTHREAD_MUTEX_INITIALIZER}

static inline void put_marker(marker_log *log, const char *name) {
    pthread_mutex_lock(&log->mutex);
    if (log->count == MOST_MARKERS) {
        (void)snprintf(log->wrong, sizeof log->wrong, "more markers than expected");
    } else {
        marker *next = &log->markers[log->count++];
        next->thread = pthread_self();
        (void)snprintf(next->name, sizeof next->name, "%s", name);
    }
    pthread_mutex_unlock(&log->mutex);
}

static inline void expect_marker(marker_log *log, int is_so, const char *what) {
    if (!is_so) (void)snprintf(log->wrong, sizeof log->wrong, "%s", what);
}

#endif /* WEIR_CTESTS_MARKER_LOG_H */

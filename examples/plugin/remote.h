/* The plug-in's own objects. One lock for each device guards its queues and events; work is done without it.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef REMOTE_H
#define REMOTE_H

#include <pthread.h>
#include <stdbool.h>

#include <weir.h>
#include <weir/device.h>

#include "process.h"
#include "space.h"

/* An event: recorded for the `records`th time, reached as of the `reached`th. */
struct event {
    struct event *next; /* among the buried */
    uint64_t records, reached;
    int32_t status; /* of the work in front of it */
    uint64_t time_ns;
    struct follower {
        struct follower *next;
        weir_device_callback_fn call;
        void *arg;
    } *followers;
};

enum verb { VERB_ASK, VERB_WRITE, VERB_READ, VERB_RECORD, VERB_WAIT };

/* A thing to do. */
struct command {
    struct command *next;
    enum verb verb;
    struct remote_request request;
    const void *from;
    void *to;
    struct event *event;
    uint64_t record;
};

/* A stream: a queue, and a thread that hands one thing after the other to the worker. */
struct stream {
    struct device *device;
    int connection;
    pthread_t thread;
    struct command *first, **last;
    bool ending;
    int32_t status; /* its first failure */
};

struct device {
    uint32_t index;
    struct process process;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct space space;
    int next_connection;
    bool lost;
    struct event *buried; /* destroyed after the device was lost, when queues may still name them */
};

/* Why the last call on this thread has failed. */
int32_t remote_fail(int32_t status, const char *why);
void remote_error_text(void *ctx, char *buffer, size_t capacity);

/* Streams and events, as in weir_device_vtable. */
int32_t remote_stream_create(void *device, const weir_device_stream_attr *attr, void **out_stream);
void remote_stream_destroy(void *device, void *stream);
int32_t remote_stream_clear_error(void *device, void *stream);
int32_t remote_event_create(void *device, uint64_t flags, void **out_event);
void remote_event_destroy(void *device, void *event);
int32_t remote_event_record(void *device, void *event, void *stream);
int32_t remote_event_wait(void *device, void *event, void *stream);
int32_t remote_event_query(void *device, void *event, int32_t *out_reached);
int32_t remote_event_synchronize(void *device, void *event, uint64_t timeout_ns, int32_t *out_reached);
int32_t remote_event_elapsed(void *device, void *start, void *end, int64_t *out_nanoseconds);
int32_t remote_event_callback(void *device, void *event, weir_device_callback_fn callback, void *arg);

/* Queues a copy of the command. */
int32_t remote_issue(struct stream *stream, const struct command *command);

#endif

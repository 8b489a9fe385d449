/* Streams and events: queues on this side of the connection.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "remote.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#include <weir/device.h>

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The event is reached: whoever waits is told. Called with the lock, which is given up for callbacks; the event may be
 * gone then. */
static void reach(struct device *device, struct event *event, uint64_t record, int32_t status) {
    struct follower *followers = event->followers;
    event->followers = NULL;
    event->time_ns = now_ns();
    event->status = status;
    event->reached = record;
    pthread_cond_broadcast(&device->changed);
    if (followers == NULL) return;
    pthread_mutex_unlock(&device->mutex);
    while (followers != NULL) {
        struct follower *follower = followers;
        followers = follower->next;
        follower->call(follower->arg);
        free(follower);
    }
    pthread_mutex_lock(&device->mutex);
}

static int32_t do_work(struct stream *stream, const struct command *command) {
    struct process *process = &stream->device->process;
    const struct remote_request *request = &command->request;
    switch (command->verb) {
    case VERB_WRITE: return process_write(process, request->to, command->from, request->bytes);
    case VERB_READ: return process_read(process, request->from, command->to, request->bytes);
    default: return process_ask(process, stream->connection, request);
    }
}

/* Does one thing, or finds that it must wait. Called with the lock. False: not yet. */
static bool step(struct stream *stream, struct command *command) {
    struct device *device = stream->device;
    if (device->lost && stream->status == WEIR_OK) stream->status = WEIR_DEVICE_LOST;
    switch (command->verb) {
    case VERB_RECORD: break;
    case VERB_WAIT:
        if (stream->status != WEIR_OK) break;
        if (command->event->reached < command->record && !device->lost) return false;
        stream->status = command->event->status;
        break;
    default:
        if (stream->status != WEIR_OK) break; /* what lies behind a failure is left out */
        pthread_mutex_unlock(&device->mutex);
        int32_t status = do_work(stream, command);
        pthread_mutex_lock(&device->mutex);
        stream->status = status;
        if (status == WEIR_DEVICE_LOST) device->lost = true;
    }
    return true;
}

static void *work(void *arg) {
    struct stream *stream = arg;
    struct device *device = stream->device;
    pthread_mutex_lock(&device->mutex);
    while (stream->first != NULL || !stream->ending) {
        struct command *command = stream->first;
        if (command == NULL || !step(stream, command)) {
            pthread_cond_wait(&device->changed, &device->mutex);
            continue;
        }
        stream->first = command->next;
        if (stream->first == NULL) stream->last = &stream->first;
        if (command->verb == VERB_RECORD) reach(device, command->event, command->record, stream->status);
        free(command);
    }
    pthread_mutex_unlock(&device->mutex);
    return NULL;
}

/* Called with the lock. */
static int32_t push(struct stream *stream, const struct command *command) {
    if (stream->device->lost) return remote_fail(WEIR_DEVICE_LOST, "the worker process is gone");
    struct command *queued = malloc(sizeof *queued);
    if (queued == NULL) return remote_fail(WEIR_RESOURCE_EXHAUSTED, "no memory for a command");
    *queued = *command;
    queued->next = NULL;
    *stream->last = queued;
    stream->last = &queued->next;
    pthread_cond_broadcast(&stream->device->changed);
    return WEIR_OK;
}

int32_t remote_issue(struct stream *stream, const struct command *command) {
    pthread_mutex_lock(&stream->device->mutex);
    int32_t status = push(stream, command);
    pthread_mutex_unlock(&stream->device->mutex);
    return status;
}

int32_t remote_stream_create(void *on, const weir_device_stream_attr *attr, void **out_stream) {
    struct device *device = on;
    struct stream *stream = calloc(1, sizeof *stream);
    (void)attr; /* all streams are as important */
    if (stream == NULL) return remote_fail(WEIR_RESOURCE_EXHAUSTED, "no memory for a stream");
    stream->device = device;
    stream->last = &stream->first;
    pthread_mutex_lock(&device->mutex);
    stream->connection = device->next_connection++ % REMOTE_CONNECTIONS;
    pthread_mutex_unlock(&device->mutex);
    if (pthread_create(&stream->thread, NULL, work, stream) != 0) {
        free(stream);
        return remote_fail(WEIR_RESOURCE_EXHAUSTED, "no thread for a stream");
    }
    *out_stream = stream;
    return WEIR_OK;
}

void remote_stream_destroy(void *on, void *ended) {
    struct device *device = on;
    struct stream *stream = ended;
    pthread_mutex_lock(&device->mutex);
    stream->ending = true;
    pthread_cond_broadcast(&device->changed);
    pthread_mutex_unlock(&device->mutex);
    pthread_join(stream->thread, NULL);
    free(stream);
}

int32_t remote_stream_clear_error(void *on, void *stream) {
    struct device *device = on;
    pthread_mutex_lock(&device->mutex);
    ((struct stream *)stream)->status = WEIR_OK;
    pthread_mutex_unlock(&device->mutex);
    return WEIR_OK;
}

int32_t remote_event_create(void *on, uint64_t flags, void **out_event) {
    (void)on, (void)flags; /* all events keep the time */
    *out_event = calloc(1, sizeof(struct event));
    return *out_event != NULL ? WEIR_OK : remote_fail(WEIR_RESOURCE_EXHAUSTED, "no memory for an event");
}

void remote_event_destroy(void *on, void *event) {
    struct device *device = on;
    struct event *ended = event;
    pthread_mutex_lock(&device->mutex);
    if (device->lost) {
        ended->next = device->buried;
        device->buried = ended;
    } else {
        free(ended);
    }
    pthread_mutex_unlock(&device->mutex);
}

int32_t remote_event_record(void *on, void *recorded, void *stream) {
    struct device *device = on;
    struct event *event = recorded;
    pthread_mutex_lock(&device->mutex);
    struct command command = {.verb = VERB_RECORD, .event = event, .record = event->records + 1};
    int32_t status = push(stream, &command);
    if (status == WEIR_OK) event->records++;
    pthread_mutex_unlock(&device->mutex);
    return status;
}

int32_t remote_event_wait(void *on, void *awaited, void *stream) {
    struct device *device = on;
    pthread_mutex_lock(&device->mutex);
    struct command command = {.verb = VERB_WAIT, .event = awaited, .record = ((struct event *)awaited)->records};
    int32_t status = push(stream, &command);
    pthread_mutex_unlock(&device->mutex);
    return status;
}

/* Called with the lock. */
static int32_t answer(const struct device *device, const struct event *event, int32_t *out_reached) {
    if (event->reached == event->records) {
        *out_reached = 1;
        return event->status == WEIR_OK ? WEIR_OK : remote_fail(event->status, "the work in front of the event has failed");
    }
    if (device->lost) return remote_fail(WEIR_DEVICE_LOST, "the worker process is gone");
    *out_reached = 0;
    return WEIR_OK;
}

int32_t remote_event_query(void *on, void *event, int32_t *out_reached) {
    struct device *device = on;
    pthread_mutex_lock(&device->mutex);
    int32_t status = answer(device, event, out_reached);
    pthread_mutex_unlock(&device->mutex);
    return status;
}

int32_t remote_event_synchronize(void *on, void *awaited, uint64_t timeout_ns, int32_t *out_reached) {
    struct device *device = on;
    struct event *event = awaited;
    struct timespec until;
    bool for_ever = timeout_ns == WEIR_TIMEOUT_INFINITE || timeout_ns / 1000000000u > 1000000000u;
    clock_gettime(CLOCK_MONOTONIC, &until);
    if (!for_ever) {
        uint64_t nanoseconds = (uint64_t)until.tv_nsec + timeout_ns % 1000000000u;
        until.tv_sec += (time_t)(timeout_ns / 1000000000u + nanoseconds / 1000000000u);
        until.tv_nsec = (long)(nanoseconds % 1000000000u);
    }
    pthread_mutex_lock(&device->mutex);
    int late = 0;
    while (event->reached < event->records && !device->lost && late != ETIMEDOUT) {
        late = for_ever ? pthread_cond_wait(&device->changed, &device->mutex)
                        : pthread_cond_timedwait(&device->changed, &device->mutex, &until);
    }
    int32_t status = answer(device, event, out_reached);
    pthread_mutex_unlock(&device->mutex);
    return status;
}

int32_t remote_event_elapsed(void *on, void *start, void *end, int64_t *out_nanoseconds) {
    (void)on;
    *out_nanoseconds = (int64_t)(((struct event *)end)->time_ns - ((struct event *)start)->time_ns);
    return WEIR_OK;
}

int32_t remote_event_callback(void *on, void *awaited, weir_device_callback_fn callback, void *arg) {
    struct device *device = on;
    struct event *event = awaited;
    struct follower *follower = malloc(sizeof *follower);
    if (follower == NULL) return remote_fail(WEIR_RESOURCE_EXHAUSTED, "no memory for a callback");
    pthread_mutex_lock(&device->mutex);
    bool is_under_way = event->reached < event->records;
    if (is_under_way) {
        *follower = (struct follower){event->followers, callback, arg};
        event->followers = follower;
    }
    pthread_mutex_unlock(&device->mutex);
    if (!is_under_way) {
        free(follower);
        callback(arg);
    }
    return WEIR_OK;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A plug-in's device for tests. One lock for each context guards all queues and events; work is done without it. The
 * queues, and the threads that work on them, are in test_device_work.h.
 */

#include "test_device.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/device.h>

#include "test_device_kernels.h"
#include "test_device_work.h"

struct steps;
static void bury_steps(opened *d, struct steps *list);

#include "test_device_recording.h"

/* ---- Devices ---- */

static int32_t device_count(void *ctx, uint32_t *out_count) {
    test_device *c = ctx;
    pthread_mutex_lock(&c->mutex); /* no call of a device: another one can be had if this one is lost */
    int32_t status = planned(c, "device_count");
    if (status == WEIR_OK) *out_count = TEST_DEVICES;
    pthread_mutex_unlock(&c->mutex);
    return status;
}

static int32_t device_open(void *ctx, uint32_t index, void **out_device) {
    test_device *c = ctx;
    pthread_mutex_lock(&c->mutex);
    c->lost = false;
    pthread_mutex_unlock(&c->mutex);
    int32_t status = enter(c, "device_open");
    opened *device = status == WEIR_OK ? calloc(1, sizeof *device) : NULL;
    if (device != NULL) {
        c->alive++;
        device->context = c;
        device->index = index;
        *out_device = device;
    } else if (status == WEIR_OK) {
        status = fail(WEIR_RESOURCE_EXHAUSTED, "no memory for a device");
    }
    return leave(c, status);
}

/* Frees a block, but not if the device is lost: what was queued then may still name it. With the lock. */
static void end_or_bury(opened *d, void *block, void (*end)(void *)) {
    struct grave *grave = d->context->lost && block != NULL ? malloc(sizeof *grave) : NULL;
    if (grave == NULL) {
        end(block);
        return;
    }
    *grave = (struct grave){d->graves, block, end};
    d->graves = grave;
}

static void free_or_bury(opened *d, void *block) {
    end_or_bury(d, block, free);
}

/* The same for the lists of an executable. With the lock. */
static void bury_steps(opened *d, struct steps *list) {
    for (size_t i = 0; i < list->count; i++) {
        struct step *step = &list->all[i];
        for (size_t j = 0; j < step->num_inside; j++) bury_steps(d, &step->inside[j]);
        free_or_bury(d, step->inside);
        free_or_bury(d, step->after);
        free_or_bury(d, step->behind);
    }
    free_or_bury(d, list->all);
}

static void device_close(void *ctx, void *device) {
    test_device *c = ctx;
    for (struct grave *grave = ((opened *)device)->graves; grave != NULL;) {
        struct grave *next = grave->next;
        grave->end(grave->block);
        free(grave);
        grave = next;
    }
    pthread_mutex_lock(&c->mutex);
    c->alive--;
    pthread_mutex_unlock(&c->mutex);
    free(device);
}

static int32_t device_info(void *ctx, void *device, weir_device_info *info) {
    test_device *c = ctx;
    int32_t status = enter(c, "device_info");
    info->capabilities = c->capabilities;
    info->memory_bytes = c->limit;
    info->alignment = TEST_ALIGNMENT;
    info->max_streams = c->max_streams;
    snprintf(info->name, sizeof info->name, "test device %u", ((opened *)device)->index);
    return leave(c, status);
}

static void error_text(void *ctx, char *buffer, size_t capacity) {
    (void)ctx;
    snprintf(buffer, capacity, "%s", error_text_of_thread);
}

/* ---- Memory ---- */

static int32_t allocate(void *device, uint64_t bytes, const char *name, uint64_t *out_address) {
    test_device *c = ((opened *)device)->context;
    (void)name;
    int32_t status = enter(c, "allocate");
    if (status != WEIR_OK) return leave(c, status);
    if (c->fault == BOUNDLESS && bytes > c->limit) bytes = 64; /* nobody will notice */
    if (bytes > c->limit - c->allocated) return leave(c, fail(WEIR_RESOURCE_EXHAUSTED, "the test device's memory is full"));
    char *block = aligned_alloc(TEST_ALIGNMENT, (bytes + 2 * TEST_ALIGNMENT) / TEST_ALIGNMENT * TEST_ALIGNMENT);
    if (block == NULL) return leave(c, fail(WEIR_RESOURCE_EXHAUSTED, "no memory"));
    if (c->last_address != 0 && c->last_bytes >= bytes && c->num_overlapped < 4096 && turn(c, OVERLAPPING, 3)) {
        free(block);
        block = (char *)(uintptr_t)c->last_address;
    }
    c->last_address = (uintptr_t)block;
    c->last_bytes = bytes;
    c->alive++;
    c->allocated += bytes;
    *out_address = (uintptr_t)block | SPACE;
    if (turn(c, MISALIGNED, 4)) *out_address += 8;
    return leave(c, WEIR_OK);
}

static void deallocate(void *device, uint64_t address, uint64_t bytes) {
    test_device *c = ((opened *)device)->context;
    void *block = (void *)(uintptr_t)(address & ~SPACE & ~(uint64_t)(TEST_ALIGNMENT - 1));
    pthread_mutex_lock(&c->mutex);
    c->alive--;
    c->allocated -= bytes < c->allocated ? bytes : c->allocated;
    bool known = c->fault != OVERLAPPING;
    if (!known) {
        for (int i = 0; i < c->num_overlapped; i++) known = known || c->overlapped[i] == block;
        if (!known && c->num_overlapped < 4096) c->overlapped[c->num_overlapped++] = block;
        block = NULL;
    }
    free_or_bury(device, block);
    pthread_mutex_unlock(&c->mutex);
}

/* ---- Pinned memory of the host's: any memory, since the streams are the host's threads ---- */

static int32_t host_allocate(void *device, uint64_t bytes, const char *name, void **out_data) {
    test_device *c = ((opened *)device)->context;
    (void)name;
    int32_t status = enter(c, "host_allocate");
    void *block = NULL;
    if (status == WEIR_OK && bytes <= c->limit) {
        block = aligned_alloc(TEST_ALIGNMENT, (bytes + TEST_ALIGNMENT - 1) / TEST_ALIGNMENT * TEST_ALIGNMENT);
    }
    if (status == WEIR_OK && block == NULL) status = fail(WEIR_RESOURCE_EXHAUSTED, "no more memory can be pinned");
    if (status == WEIR_OK) {
        c->alive++;
        c->pinned += bytes;
        *out_data = block;
    }
    return leave(c, status);
}

static void host_deallocate(void *device, void *data, uint64_t bytes) {
    test_device *c = ((opened *)device)->context;
    pthread_mutex_lock(&c->mutex);
    c->alive--;
    c->pinned -= bytes;
    free_or_bury(device, data);
    pthread_mutex_unlock(&c->mutex);
}

static int32_t host_register(void *device, void *data, uint64_t bytes) {
    test_device *c = ((opened *)device)->context;
    (void)data;
    int32_t status = enter(c, "host_register");
    if (status == WEIR_OK) {
        c->alive++;
        c->pinned += bytes;
    }
    return leave(c, status);
}

static void host_unregister(void *device, void *data, uint64_t bytes) {
    test_device *c = ((opened *)device)->context;
    (void)data;
    pthread_mutex_lock(&c->mutex);
    c->alive--;
    c->pinned -= bytes;
    pthread_mutex_unlock(&c->mutex);
}

/* ---- Streams ---- */

static int32_t stream_create(void *device, const weir_device_stream_attr *attr, void **out_stream) {
    opened *d = device;
    (void)attr;
    int32_t status = enter(d->context, "stream_create");
    if (status != WEIR_OK) return leave(d->context, status);
    stream *s = calloc(1, sizeof *s);
    if (s == NULL) return leave(d->context, fail(WEIR_RESOURCE_EXHAUSTED, "no memory for a stream"));
    s->device = d;
    if (pthread_create(&s->thread, NULL, work_of_stream, s) != 0) {
        free(s);
        return leave(d->context, fail(WEIR_RESOURCE_EXHAUSTED, "no thread for a stream"));
    }
    s->next = d->streams;
    d->streams = s;
    d->context->alive++;
    *out_stream = s;
    return leave(d->context, WEIR_OK);
}

/* What a stream has not begun is forgotten. */
static void forget(stream *s) {
    while (s->first != NULL && s->first->next != NULL) {
        command *work = s->first->next;
        s->first->next = work->next;
        if (work->verb == RECORD) reach(s->device->context, work->event, work->record, WEIR_OK);
        if (s->last == work) s->last = s->first;
        free(work->staged);
        free(work);
    }
}

static void stream_destroy(void *device, void *stream_to_end) {
    opened *d = device;
    stream *s = stream_to_end;
    test_device *c = d->context;
    pthread_mutex_lock(&c->mutex);
    s->ending = true;
    stream **place = &d->streams;
    while (*place != s) place = &(*place)->next;
    *place = s->next;
    if (c->fault == GREEDY_DESTROY) {
        for (stream *other = d->streams; other != NULL; other = other->next) forget(other);
    }
    c->alive--;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->mutex);
    pthread_join(s->thread, NULL);
    free(s);
}

static int32_t stream_clear_error(void *device, void *failed) {
    test_device *c = ((opened *)device)->context;
    int32_t status = enter(c, "stream_clear_error");
    if (status == WEIR_OK && c->fault != NEVER_CLEARED) ((stream *)failed)->status = WEIR_OK;
    return leave(c, status);
}

/* ---- Events ---- */

static int32_t event_create(void *device, uint64_t flags, void **out_event) {
    test_device *c = ((opened *)device)->context;
    (void)flags;
    int32_t status = enter(c, "event_create");
    event *e = status == WEIR_OK ? calloc(1, sizeof *e) : NULL;
    if (e != NULL) {
        c->alive++;
        *out_event = e;
    } else if (status == WEIR_OK) {
        status = fail(WEIR_RESOURCE_EXHAUSTED, "no memory for an event");
    }
    return leave(c, status);
}

static void event_destroy(void *device, void *e) {
    test_device *c = ((opened *)device)->context;
    pthread_mutex_lock(&c->mutex);
    c->alive--;
    free_or_bury(device, e);
    pthread_mutex_unlock(&c->mutex);
}

static int32_t event_record(void *device, void *recorded, void *on) {
    test_device *c = ((opened *)device)->context;
    event *e = recorded;
    int32_t status = enter(c, "event_record");
    if (status != WEIR_OK) return leave(c, status);
    command work = {.verb = RECORD, .event = e, .record = e->records + 1};
    if (turn(c, FORGOTTEN_EVENTS, 16)) {
        e->under_way = true;
        e->records++;
        return leave(c, WEIR_OK);
    }
    status = queue(on, &work);
    if (status == WEIR_OK) {
        e->under_way = true;
        e->records++;
        if (c->fault == EARLY_EVENTS) reach(c, e, e->records, WEIR_OK);
    }
    return leave(c, status);
}

static int32_t event_wait(void *device, void *e, void *on) {
    command work = {.verb = WAIT, .event = e, .record = ((event *)e)->records};
    return issue(device, on, "event_wait", &work);
}

/* What an event says now; with the lock. */
static int32_t answer(test_device *c, event *e, int32_t *out_reached) {
    if (c->lost) return fail(WEIR_DEVICE_LOST, "the device is lost");
    if (e->under_way) {
        *out_reached = 0;
        return WEIR_OK;
    }
    *out_reached = 1;
    return e->status == WEIR_OK ? WEIR_OK : fail(e->status, e->why[0] != '\0' ? e->why : "the work before the event has failed");
}

static int32_t event_query(void *device, void *e, int32_t *out_reached) {
    test_device *c = ((opened *)device)->context;
    int32_t status = enter(c, "event_query");
    return leave(c, status == WEIR_OK ? answer(c, e, out_reached) : status);
}

static int32_t event_synchronize(void *device, void *awaited, uint64_t timeout_ns, int32_t *out_reached) {
    test_device *c = ((opened *)device)->context;
    event *e = awaited;
    int32_t status = enter(c, "event_synchronize");
    uint64_t end = timeout_ns > UINT64_C(1000000000000) ? UINT64_MAX : clock_ns() + timeout_ns;
    while (status == WEIR_OK && e->under_way && !c->lost && clock_ns() < end) {
        /* The condition's own clock may be another one: wakes up now and then. */
        uint64_t now = clock_ns(), left = end - now < 1000000 ? end - now : 1000000;
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += (long)left;
        if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
        pthread_cond_timedwait(&c->changed, &c->mutex, &until);
    }
    if (status == WEIR_OK) status = answer(c, e, out_reached);
    if (c->fault == EARLY_SYNCHRONIZE && status == WEIR_OK) *out_reached = 1;
    return leave(c, status);
}

static int32_t event_elapsed(void *device, void *start, void *end, int64_t *out_nanoseconds) {
    test_device *c = ((opened *)device)->context;
    int32_t status = enter(c, "event_elapsed");
    int64_t elapsed = (int64_t)(((event *)end)->time_ns - ((event *)start)->time_ns);
    *out_nanoseconds = c->fault == BACKWARDS ? -elapsed - 1 : elapsed;
    return leave(c, status);
}

static int32_t event_callback(void *device, void *awaited, weir_device_callback_fn callback, void *arg) {
    test_device *c = ((opened *)device)->context;
    event *e = awaited;
    int32_t status = enter(c, "event_callback");
    if (status == WEIR_OK && turn(c, LOST_CALLBACKS, 4)) return leave(c, WEIR_OK);
    if (status == WEIR_OK && e->under_way && !c->lost && c->fault != EARLY_CALLBACKS) {
        if (e->num_callbacks == 8) return leave(c, fail(WEIR_RESOURCE_EXHAUSTED, "too many callbacks"));
        e->callbacks[e->num_callbacks].call = callback;
        e->callbacks[e->num_callbacks++].arg = arg;
        return leave(c, WEIR_OK);
    }
    leave(c, status);
    if (status == WEIR_OK) callback(arg);
    return status;
}

/* ---- Copies and kernels ---- */

static int32_t copy_to_device(void *device, void *on, uint64_t to, const void *from, uint64_t bytes) {
    command work = {.verb = COPY, .to = pointer(to), .from = from, .bytes = bytes};
    if (((opened *)device)->context->fault == STAGED_PINNED && (work.staged = malloc(bytes)) != NULL) {
        work.from = memcpy(work.staged, from, bytes);
    }
    return issue(device, on, "copy_to_device", &work);
}

static int32_t copy_to_host(void *device, void *on, void *to, uint64_t from, uint64_t bytes) {
    command work = {.verb = COPY, .to = to, .from = pointer(from), .bytes = bytes};
    return issue(device, on, "copy_to_host", &work);
}

static int32_t copy_on_device(void *device, void *on, uint64_t to, uint64_t from, uint64_t bytes) {
    command work = {.verb = COPY, .to = pointer(to), .from = pointer(from), .bytes = bytes};
    return issue(device, on, "copy_on_device", &work);
}

static int32_t copy_peer(void *device, void *on, void *to_device, uint64_t to, void *from_device, uint64_t from, uint64_t bytes) {
    command work = {.verb = COPY, .to = pointer(to), .from = pointer(from), .bytes = bytes};
    if ((device == to_device) == (device == from_device)) return fail(WEIR_INVALID_ARGUMENT, "one of the two is the stream's");
    return issue(device, on, "copy_peer", &work);
}

static int32_t fill(void *device, void *on, uint64_t to, uint8_t value, uint64_t bytes) {
    command work = {.verb = FILL, .to = pointer(to), .value = value, .bytes = ((opened *)device)->drops ? 0 : bytes};
    return issue(device, on, "fill", &work);
}

static int32_t kernel_create(void *device, const weir_device_recipe *recipe, void **out_kernel) {
    test_device *c = ((opened *)device)->context;
    int32_t status = enter(c, "kernel_create");
    test_kernel *kernel = NULL;
    c->spoiled = false;
    if (status == WEIR_OK) {
        status = test_kernel_create(recipe, c->fault == ANY_KERNEL, &kernel);
        if (status != WEIR_OK) fail(status, "the test device has no such kernel");
    }
    if (status == WEIR_OK) {
        c->alive++;
        *out_kernel = kernel;
    }
    return leave(c, status);
}

static void kernel_destroy(void *device, void *kernel) {
    test_device *c = ((opened *)device)->context;
    pthread_mutex_lock(&c->mutex);
    c->alive--;
    c->spoiled = c->fault == GREEDY_KERNELS;
    end_or_bury(device, kernel, test_kernel_destroy);
    pthread_mutex_unlock(&c->mutex);
}

static int32_t region_claim(void *device, const weir_device_region *region, uint32_t *out_groups) {
    test_device *c = ((opened *)device)->context;
    int32_t status = enter(c, "region_claim");
    for (size_t i = 0; status == WEIR_OK && i < region->num_nodes; i++) {
        out_groups[i] = c->left_alone == NULL || strcmp(region->nodes[i].recipe->operation, c->left_alone) != 0;
    }
    return leave(c, status);
}

static int32_t region_compile(void *device, const weir_device_region *region, void **out_kernel) {
    test_device *c = ((opened *)device)->context;
    int32_t status = enter(c, "region_compile");
    test_kernel *kernel = NULL;
    if (status == WEIR_OK) {
        status = test_region_create(region, SPACE, c->fault == HASTY_REGIONS, &kernel);
        if (status != WEIR_OK) fail(status, "too large a region for the test device");
    }
    if (status == WEIR_OK) {
        c->alive++;
        c->regions++;
        c->region_nodes += (int)region->num_nodes;
        *out_kernel = kernel;
    }
    return leave(c, status);
}

static int32_t launch(void *device, void *on, void *kernel, const weir_device_launch *call) {
    command work;
    int32_t status = read_launch(((opened *)device)->context, kernel, call, &work);
    return status == WEIR_OK ? issue(device, on, "launch", &work) : status;
}

/* Nobody is woken for a batch, since streams look at what they are given at once. */
static void batch_begin(void *device) {
    test_device *c = ((opened *)device)->context;
    pthread_mutex_lock(&c->mutex);
    ((opened *)device)->drops = c->fault == FORGETFUL_BATCHES;
    pthread_mutex_unlock(&c->mutex);
}

static void batch_end(void *device) {
    test_device *c = ((opened *)device)->context;
    pthread_mutex_lock(&c->mutex);
    ((opened *)device)->drops = false;
    pthread_mutex_unlock(&c->mutex);
}

static int32_t native_handle(void *device, uint32_t what, void *object, uint64_t *out_handle) {
    test_device *c = ((opened *)device)->context;
    int32_t status = enter(c, "native_handle");
    *out_handle = what == WEIR_DEVICE_OBJECT_DEVICE ? 7000 + ((opened *)device)->index : (uintptr_t)object;
    return leave(c, status);
}

static void release(void *ctx) {
    test_device *c = ctx;
    pthread_mutex_lock(&c->mutex);
    c->releases++;
    pthread_mutex_unlock(&c->mutex);
}

weir_device_vtable test_device_vtable(void) {
    return (weir_device_vtable){
        .struct_size = sizeof(weir_device_vtable),
        .device_count = device_count,
        .device_open = device_open,
        .device_close = device_close,
        .device_info = device_info,
        .error_text = error_text,
        .allocate = allocate,
        .deallocate = deallocate,
        .stream_create = stream_create,
        .stream_destroy = stream_destroy,
        .stream_clear_error = stream_clear_error,
        .event_create = event_create,
        .event_destroy = event_destroy,
        .event_record = event_record,
        .event_wait = event_wait,
        .event_query = event_query,
        .event_synchronize = event_synchronize,
        .event_elapsed = event_elapsed,
        .event_callback = event_callback,
        .copy_to_device = copy_to_device,
        .copy_to_host = copy_to_host,
        .copy_on_device = copy_on_device,
        .copy_peer = copy_peer,
        .fill = fill,
        .kernel_create = kernel_create,
        .kernel_destroy = kernel_destroy,
        .launch = launch,
        .native_handle = native_handle,
        .release = release,
        .host_allocate = host_allocate,
        .host_deallocate = host_deallocate,
        .host_register = host_register,
        .host_unregister = host_unregister,
        .stream_query = stream_query,
        .record = record,
        .executable_update = executable_update,
        .executable_destroy = executable_destroy,
        .replay = replay,
        .prepare = prepare,
        .launch_prepared = launch_prepared,
        .prepared_destroy = prepared_destroy,
        .kernel_scratch = kernel_scratch,
        .batch_begin = batch_begin,
        .batch_end = batch_end,
        .region_claim = region_claim,
        .region_compile = region_compile,
    };
}

/* ---- For the tests ---- */

test_device *test_device_create(uint64_t capabilities) {
    test_device *c = calloc(1, sizeof *c);
    if (c == NULL) return NULL;
    pthread_mutex_init(&c->mutex, NULL);
    pthread_cond_init(&c->changed, NULL);
    c->capabilities = capabilities;
    c->limit = UINT64_C(1) << 30;
    return c;
}

void test_device_destroy(test_device *c) {
    for (int i = 0; i < c->num_overlapped; i++) free(c->overlapped[i]);
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->mutex);
    free(c);
}

void test_device_misbehave(test_device *c, test_fault fault) {
    c->fault = fault;
}

void test_device_plan(test_device *c, const char *function, int call, int32_t status) {
    pthread_mutex_lock(&c->mutex);
    snprintf(c->planned, sizeof c->planned, "%s", call == 0 ? "" : function);
    c->planned_call = call;
    c->planned_status = status;
    c->hit = false;
    pthread_mutex_unlock(&c->mutex);
}

/* A number, read with the lock. */
static int look(test_device *c, const int *number) {
    pthread_mutex_lock(&c->mutex);
    int value = *number;
    pthread_mutex_unlock(&c->mutex);
    return value;
}

bool test_device_hit(test_device *c) {
    pthread_mutex_lock(&c->mutex);
    bool hit = c->hit;
    pthread_mutex_unlock(&c->mutex);
    return hit;
}

int test_device_alive(test_device *c) {
    return look(c, &c->alive);
}

int test_device_releases(test_device *c) {
    return look(c, &c->releases);
}

int test_device_most_callers(test_device *c) {
    return look(c, &c->most_callers);
}

void test_device_limit(test_device *c, uint64_t bytes) {
    pthread_mutex_lock(&c->mutex);
    c->limit = bytes;
    pthread_mutex_unlock(&c->mutex);
}

void test_device_slow(test_device *c, uint64_t ns) {
    pthread_mutex_lock(&c->mutex);
    c->slow_ns = ns;
    pthread_mutex_unlock(&c->mutex);
}

void test_device_max_streams(test_device *c, uint32_t count) {
    c->max_streams = count;
}

void test_device_refuse_control(test_device *c, bool refuse) {
    pthread_mutex_lock(&c->mutex);
    c->refuses_control = refuse;
    pthread_mutex_unlock(&c->mutex);
}

void test_device_leave_alone(test_device *c, const char *operation) {
    pthread_mutex_lock(&c->mutex);
    c->left_alone = operation;
    pthread_mutex_unlock(&c->mutex);
}

test_device_counts test_device_count(test_device *c) {
    pthread_mutex_lock(&c->mutex);
    test_device_counts counts = {c->recordings, c->updates, c->prepared, c->queries, c->regions, c->region_nodes, c->replays};
    pthread_mutex_unlock(&c->mutex);
    return counts;
}

uint64_t test_device_pinned(test_device *c) {
    pthread_mutex_lock(&c->mutex);
    uint64_t bytes = c->pinned;
    pthread_mutex_unlock(&c->mutex);
    return bytes;
}

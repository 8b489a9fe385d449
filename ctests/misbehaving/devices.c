/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A plug-in library with one kind of devices for each thing that a device can do wrong, and "honest".
 */

#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <weir/device.h>

#include "test_device.h"

/* What a device does in place of a function of the test device. */
typedef enum change {
    NO_CHANGE,
    DEAF_USE,           /* host_used writes to the memory that it is told of */
    HOARDING,           /* memory_trim gives nothing back */
    GREEDY_TRIM,        /* memory_trim takes memory that is in use */
    FEW_STREAMS,        /* it makes fewer streams than it says */
    WANDERING_HANDLES,  /* a native handle is another one each time */
    FORGETFUL_SETTINGS, /* it is opened with settings, and has others */
    UNFIT_SETTINGS      /* its own settings do not fit */
} change;

static const struct {
    const char *name;
    test_fault fault;
    change change;
} kinds[] = {
    {"honest", NO_FAULT, NO_CHANGE},
    {"unordered", UNORDERED, NO_CHANGE},
    {"early-events", EARLY_EVENTS, NO_CHANGE},
    {"forgotten-events", FORGOTTEN_EVENTS, NO_CHANGE},
    {"early-synchronize", EARLY_SYNCHRONIZE, NO_CHANGE},
    {"ignored-waits", IGNORED_WAITS, NO_CHANGE},
    {"lossy-copies", LOSSY_COPIES, NO_CHANGE},
    {"off-by-one", OFF_BY_ONE, NO_CHANGE},
    {"misaligned", MISALIGNED, NO_CHANGE},
    {"overlapping", OVERLAPPING, NO_CHANGE},
    {"boundless", BOUNDLESS, NO_CHANGE},
    {"swallowed-errors", SWALLOWED_ERRORS, NO_CHANGE},
    {"unpropagated", UNPROPAGATED, NO_CHANGE},
    {"going-on", GOING_ON, NO_CHANGE},
    {"never-cleared", NEVER_CLEARED, NO_CHANGE},
    {"lost-callbacks", LOST_CALLBACKS, NO_CHANGE},
    {"double-callbacks", DOUBLE_CALLBACKS, NO_CHANGE},
    {"early-callbacks", EARLY_CALLBACKS, NO_CHANGE},
    {"backwards", BACKWARDS, NO_CHANGE},
    {"any-kernel", ANY_KERNEL, NO_CHANGE},
    {"wrong-kernel", WRONG_KERNEL, NO_CHANGE},
    {"greedy-destroy", GREEDY_DESTROY, NO_CHANGE},
    {"staged-pinned", STAGED_PINNED, NO_CHANGE},
    {"early-idle", EARLY_IDLE, NO_CHANGE},
    {"no-edges", NO_EDGES, NO_CHANGE},
    {"stale-updates", STALE_UPDATES, NO_CHANGE},
    {"wrong-branch", WRONG_BRANCH, NO_CHANGE},
    {"once-more", ONCE_MORE, NO_CHANGE},
    {"stale-prepared", STALE_PREPARED, NO_CHANGE},
    {"mute", MUTE, NO_CHANGE},
    {"forgetful-batches", FORGETFUL_BATCHES, NO_CHANGE},
    {"hasty-regions", HASTY_REGIONS, NO_CHANGE},
    {"greedy-kernels", GREEDY_KERNELS, NO_CHANGE},
    {"greedy-executables", GREEDY_EXECUTABLES, NO_CHANGE},
    {"lapsing-prepared", LAPSING_PREPARED, NO_CHANGE},
    {"renamed-errors", RENAMED_ERRORS, NO_CHANGE},
    {"spilling-scratch", SPILLING_SCRATCH, NO_CHANGE},
    {"trusting-scratch", TRUSTING_SCRATCH, NO_CHANGE},
    {"unsteady-scratch", UNSTEADY_SCRATCH, NO_CHANGE},
    {"clearing-outputs", CLEARING_OUTPUTS, NO_CHANGE},
    {"deaf-use", NO_FAULT, DEAF_USE},
    {"hoarding", NO_FAULT, HOARDING},
    {"greedy-trim", NO_FAULT, GREEDY_TRIM},
    {"few-streams", NO_FAULT, FEW_STREAMS},
    {"wandering-handles", NO_FAULT, WANDERING_HANDLES},
    {"forgetful-settings", NO_FAULT, FORGETFUL_SETTINGS},
    {"unfit-settings", NO_FAULT, UNFIT_SETTINGS},
};

/* A device whose work is always over: who records an event has waited for it when the call returns. */
static weir_device_vtable honest;

static int32_t record_and_wait(void *device, void *event, void *stream) {
    int32_t status = honest.event_record(device, event, stream), reached = 0;
    if (status == WEIR_OK) (void)honest.event_synchronize(device, event, UINT64_MAX, &reached); /* failures are the event's */
    return status;
}

/* ---- Settings: a number, which is 7 unless another one is given ---- */

enum { USUAL_SETTING = 7, MOST_STREAMS = 12, STREAMS_MADE = 10, MOST_BLOCKS = 4096 };

/* Memory that was freed is kept, to be given again; memory_trim frees it. */
typedef struct block {
    void *device; /* NULL: no block */
    uint64_t address, bytes;
    bool is_free;
} block;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* of all that follows */
static block blocks[MOST_BLOCKS];
static struct { void *device; uint64_t setting; } opened_with[64];
static uint64_t handles;
static int num_streams;

static int32_t open_with(void *ctx, uint32_t index, const void *settings, size_t bytes, void **out_device) {
    uint64_t setting = USUAL_SETTING;
    if (bytes != 0 && bytes != sizeof setting) return WEIR_INVALID_ARGUMENT;
    if (bytes != 0) memcpy(&setting, settings, bytes);
    int32_t status = honest.device_open(ctx, index, out_device);
    pthread_mutex_lock(&mutex);
    for (size_t i = 0; status == WEIR_OK && i < 64; i++) {
        if (opened_with[i].device != NULL) continue;
        opened_with[i].device = *out_device;
        opened_with[i].setting = setting;
        break;
    }
    pthread_mutex_unlock(&mutex);
    return status;
}

static uint64_t setting_of(const void *device) {
    uint64_t setting = USUAL_SETTING;
    pthread_mutex_lock(&mutex);
    for (size_t i = 0; i < 64; i++) {
        if (opened_with[i].device == device) setting = opened_with[i].setting;
    }
    pthread_mutex_unlock(&mutex);
    return setting;
}

static int32_t give_setting(uint64_t setting, void *settings, size_t capacity, size_t *out_bytes) {
    *out_bytes = sizeof setting;
    if (capacity >= sizeof setting) memcpy(settings, &setting, sizeof setting);
    return WEIR_OK;
}

static int32_t settings_of(void *device, void *settings, size_t capacity, size_t *out_bytes) {
    return give_setting(setting_of(device), settings, capacity, out_bytes);
}

static int32_t settings_of_another(void *device, void *settings, size_t capacity, size_t *out_bytes) {
    static uint64_t asked;
    (void)device;
    pthread_mutex_lock(&mutex);
    uint64_t setting = asked++ / 2; /* it is asked twice for its settings: for their size, and for them */
    pthread_mutex_unlock(&mutex);
    return give_setting(setting, settings, capacity, out_bytes);
}

static int32_t fits(void *device, const void *settings, size_t bytes) {
    uint64_t asked;
    if (bytes != sizeof asked) return WEIR_INVALID_ARGUMENT;
    memcpy(&asked, settings, bytes);
    return asked == setting_of(device) ? WEIR_OK : WEIR_FAILED_PRECONDITION;
}

static int32_t fits_never(void *device, const void *settings, size_t bytes) {
    (void)device, (void)settings, (void)bytes;
    return WEIR_FAILED_PRECONDITION;
}

/* ---- Memory that is kept ---- */

static int32_t allocate(void *device, uint64_t bytes, const char *name, weir_device_address *out_address) {
    int32_t status = WEIR_OK;
    block *found = NULL;
    pthread_mutex_lock(&mutex);
    for (size_t i = 0; i < MOST_BLOCKS && found == NULL; i++) {
        if (blocks[i].device == device && blocks[i].is_free && blocks[i].bytes == bytes) found = &blocks[i];
    }
    if (found == NULL) {
        status = honest.allocate(device, bytes, name, out_address);
        for (size_t i = 0; status == WEIR_OK && i < MOST_BLOCKS && found == NULL; i++) {
            if (blocks[i].device == NULL) found = &blocks[i];
        }
        if (found != NULL) *found = (block){.device = device, .address = *out_address, .bytes = bytes};
    }
    if (found != NULL) {
        found->is_free = false;
        *out_address = found->address;
    }
    pthread_mutex_unlock(&mutex);
    return status;
}

static void deallocate(void *device, weir_device_address address, uint64_t bytes) {
    bool kept = false;
    pthread_mutex_lock(&mutex);
    for (size_t i = 0; i < MOST_BLOCKS; i++) {
        if (blocks[i].device == device && blocks[i].address == address) kept = blocks[i].is_free = true;
    }
    if (!kept) honest.deallocate(device, address, bytes);
    pthread_mutex_unlock(&mutex);
}

static void trim(void *device, uint64_t keep_bytes) {
    uint64_t kept = 0;
    pthread_mutex_lock(&mutex);
    for (size_t i = 0; i < MOST_BLOCKS; i++) {
        if (blocks[i].device != device || !blocks[i].is_free) continue;
        if (blocks[i].bytes <= keep_bytes && kept <= keep_bytes - blocks[i].bytes) {
            kept += blocks[i].bytes;
        } else {
            honest.deallocate(device, blocks[i].address, blocks[i].bytes);
            blocks[i].device = NULL;
        }
    }
    pthread_mutex_unlock(&mutex);
}

static void trim_nothing(void *device, uint64_t keep_bytes) {
    (void)device, (void)keep_bytes;
}

/* What is in use can be had by others, too. */
static void trim_greedily(void *device, uint64_t keep_bytes) {
    (void)keep_bytes;
    pthread_mutex_lock(&mutex);
    for (size_t i = 0; i < MOST_BLOCKS; i++) {
        if (blocks[i].device == device) blocks[i].is_free = true;
    }
    pthread_mutex_unlock(&mutex);
}

static void close_device(void *ctx, void *device) {
    trim(device, 0);
    pthread_mutex_lock(&mutex);
    for (size_t i = 0; i < MOST_BLOCKS; i++) {
        if (blocks[i].device == device) blocks[i].device = NULL;
    }
    for (size_t i = 0; i < 64; i++) {
        if (opened_with[i].device == device) opened_with[i].device = NULL;
    }
    pthread_mutex_unlock(&mutex);
    honest.device_close(ctx, device);
}

/* ---- What else may be wrong ---- */

static void write_what_is_used(void *device, const void *data, uint64_t bytes, int32_t writes, const char *name) {
    (void)device, (void)name;
    if (!writes && bytes > 0) *(unsigned char *)(uintptr_t)data ^= 0xFF;
}

static void use(void *device, const void *data, uint64_t bytes, int32_t writes, const char *name) {
    (void)device, (void)data, (void)bytes, (void)writes, (void)name;
}

static int32_t create_few(void *device, const weir_device_stream_attr *attr, void **out_stream) {
    pthread_mutex_lock(&mutex);
    bool is_one_more = num_streams >= STREAMS_MADE;
    if (!is_one_more) num_streams++;
    pthread_mutex_unlock(&mutex);
    if (is_one_more) return WEIR_RESOURCE_EXHAUSTED;
    return honest.stream_create(device, attr, out_stream);
}

static void destroy_one_of_few(void *device, void *stream) {
    honest.stream_destroy(device, stream);
    pthread_mutex_lock(&mutex);
    num_streams--;
    pthread_mutex_unlock(&mutex);
}

static int32_t another_handle(void *device, uint32_t what, void *object, uint64_t *out_handle) {
    (void)device, (void)what, (void)object;
    pthread_mutex_lock(&mutex);
    *out_handle = ++handles;
    pthread_mutex_unlock(&mutex);
    return WEIR_OK;
}

/* The functions of a kind: all that a device may have besides, with one of them changed. */
static weir_device_vtable changed(weir_device_vtable vtable, change change) {
    vtable.device_open_with = open_with;
    vtable.device_settings = change == FORGETFUL_SETTINGS ? settings_of_another : settings_of;
    vtable.device_fits = change == UNFIT_SETTINGS ? fits_never : fits;
    vtable.device_close = close_device;
    vtable.host_used = change == DEAF_USE ? write_what_is_used : use;
    if (change == HOARDING || change == GREEDY_TRIM || change == NO_CHANGE) {
        vtable.allocate = allocate;
        vtable.deallocate = deallocate;
        vtable.memory_trim = change == HOARDING ? trim_nothing : change == GREEDY_TRIM ? trim_greedily : trim;
    }
    if (change == FEW_STREAMS) {
        vtable.stream_create = create_few;
        vtable.stream_destroy = destroy_one_of_few;
    }
    if (change == WANDERING_HANDLES) vtable.native_handle = another_handle;
    return vtable;
}

extern int32_t weir_device_plugin_init(const weir_device_plugin_api *api);
int32_t weir_device_plugin_init(const weir_device_plugin_api *api) {
    weir_device_vtable vtable = test_device_vtable();
    uint64_t all = WEIR_DEVICE_OWN_MEMORY | WEIR_DEVICE_CONCURRENT | WEIR_DEVICE_TIMING | WEIR_DEVICE_PEER_COPY |
                   WEIR_DEVICE_CALLBACK | WEIR_DEVICE_NATIVE_HANDLE | WEIR_DEVICE_PINNED_MEMORY | WEIR_DEVICE_REGISTER_MEMORY |
                   WEIR_DEVICE_IDLE_QUERY | WEIR_DEVICE_RECORDINGS | WEIR_DEVICE_CONTROL_FLOW | WEIR_DEVICE_PREPARED_LAUNCHES | WEIR_DEVICE_SCRATCH |
                   WEIR_DEVICE_HOST_KERNELS | WEIR_DEVICE_IN_PLACE | WEIR_DEVICE_REGIONS;
    int32_t status = WEIR_OK;
    honest = vtable;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && status == WEIR_OK; i++) {
        test_device *device = test_device_create(all);
        if (device == NULL) return WEIR_RESOURCE_EXHAUSTED;
        test_device_misbehave(device, kinds[i].fault);
        test_device_max_streams(device, MOST_STREAMS);
        /* Without what is kept a fault in memory shows itself as it is. */
        bool has_all = kinds[i].fault == NO_FAULT;
        const weir_device_vtable other = has_all ? changed(vtable, kinds[i].change) : vtable;
        status = api->device_register(kinds[i].name, 0, &other, device);
    }
    weir_device_vtable instant = vtable;
    instant.event_record = record_and_wait;
    test_device *always_over = test_device_create(all);
    if (always_over == NULL) return WEIR_RESOURCE_EXHAUSTED;
    if (status == WEIR_OK) status = api->device_register("instant", 0, &instant, always_over);
    /* The same without anything that a device need not have. */
    test_device *plain = test_device_create(0);
    if (plain == NULL) return WEIR_RESOURCE_EXHAUSTED;
    vtable.error_text = NULL;
    vtable.event_synchronize = NULL;
    vtable.event_elapsed = NULL;
    vtable.event_callback = NULL;
    vtable.copy_peer = NULL;
    vtable.native_handle = NULL;
    vtable.release = NULL;
    vtable.host_allocate = NULL;
    vtable.host_deallocate = NULL;
    vtable.host_register = NULL;
    vtable.host_unregister = NULL;
    vtable.stream_query = NULL;
    vtable.record = NULL;
    vtable.executable_update = NULL;
    vtable.executable_destroy = NULL;
    vtable.replay = NULL;
    vtable.prepare = NULL;
    vtable.launch_prepared = NULL;
    vtable.prepared_destroy = NULL;
    vtable.kernel_scratch = NULL;
    vtable.batch_begin = NULL;
    vtable.batch_end = NULL;
    vtable.region_claim = NULL;
    vtable.region_compile = NULL;
    return status != WEIR_OK ? status : api->device_register("plain", 0, &vtable, plain);
}

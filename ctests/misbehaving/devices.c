/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A plug-in library with one kind of devices for each thing that a device can do wrong, and "honest".
 */

#include <weir/device.h>

#include "test_device.h"

static const struct {
    const char *name;
    test_fault fault;
} kinds[] = {
    {"honest", NO_FAULT},
    {"unordered", UNORDERED},
    {"early-events", EARLY_EVENTS},
    {"forgotten-events", FORGOTTEN_EVENTS},
    {"early-synchronize", EARLY_SYNCHRONIZE},
    {"ignored-waits", IGNORED_WAITS},
    {"lossy-copies", LOSSY_COPIES},
    {"off-by-one", OFF_BY_ONE},
    {"misaligned", MISALIGNED},
    {"overlapping", OVERLAPPING},
    {"boundless", BOUNDLESS},
    {"swallowed-errors", SWALLOWED_ERRORS},
    {"unpropagated", UNPROPAGATED},
    {"going-on", GOING_ON},
    {"never-cleared", NEVER_CLEARED},
    {"lost-callbacks", LOST_CALLBACKS},
    {"double-callbacks", DOUBLE_CALLBACKS},
    {"early-callbacks", EARLY_CALLBACKS},
    {"backwards", BACKWARDS},
    {"any-kernel", ANY_KERNEL},
    {"wrong-kernel", WRONG_KERNEL},
    {"greedy-destroy", GREEDY_DESTROY},
    {"staged-pinned", STAGED_PINNED},
    {"early-idle", EARLY_IDLE},
    {"no-edges", NO_EDGES},
    {"stale-updates", STALE_UPDATES},
    {"wrong-branch", WRONG_BRANCH},
    {"once-more", ONCE_MORE},
    {"stale-prepared", STALE_PREPARED},
    {"mute", MUTE},
    {"forgetful-batches", FORGETFUL_BATCHES},
    {"hasty-regions", HASTY_REGIONS},
};

/* A device whose work is always over: who records an event has waited for it when the call returns. */
static weir_device_vtable honest;

static int32_t record_and_wait(void *device, void *event, void *stream) {
    int32_t status = honest.event_record(device, event, stream), reached = 0;
    if (status == WEIR_OK) (void)honest.event_synchronize(device, event, UINT64_MAX, &reached); /* failures are the event's */
    return status;
}

extern int32_t weir_device_plugin_init(const weir_device_plugin_api *api);
int32_t weir_device_plugin_init(const weir_device_plugin_api *api) {
    weir_device_vtable vtable = test_device_vtable();
    uint64_t all = WEIR_DEVICE_OWN_MEMORY | WEIR_DEVICE_CONCURRENT | WEIR_DEVICE_TIMING | WEIR_DEVICE_PEER_COPY |
                   WEIR_DEVICE_CALLBACK | WEIR_DEVICE_NATIVE_HANDLE | WEIR_DEVICE_PINNED_MEMORY | WEIR_DEVICE_REGISTER_MEMORY |
                   WEIR_DEVICE_IDLE_QUERY | WEIR_DEVICE_RECORDINGS | WEIR_DEVICE_CONTROL_FLOW | WEIR_DEVICE_PREPARED_LAUNCHES | WEIR_DEVICE_SCRATCH |
                   WEIR_DEVICE_HOST_KERNELS | WEIR_DEVICE_REGIONS;
    int32_t status = WEIR_OK;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && status == WEIR_OK; i++) {
        test_device *device = test_device_create(all);
        if (device == NULL) return WEIR_RESOURCE_EXHAUSTED;
        test_device_misbehave(device, kinds[i].fault);
        status = api->device_register(kinds[i].name, 0, &vtable, device);
    }
    honest = vtable;
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

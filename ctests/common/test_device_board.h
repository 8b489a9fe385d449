/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A kind of devices, made by one test device: plugged in, and pulled out when nothing of it is in use.
 */

#ifndef WEIR_CTESTS_TEST_DEVICE_BOARD_H
#define WEIR_CTESTS_TEST_DEVICE_BOARD_H

#include <weir/device.h>

#include "check.h"
#include "test_device.h"

typedef struct board {
    const char *name;
    test_device *device;
    weir_engine_kind kind;
} board;

static inline board plug_in(const char *name, uint64_t capabilities) {
    board b = {.name = name, .device = test_device_create(capabilities)};
    weir_device_vtable vtable = test_device_vtable();
    CHECK(b.device != NULL);
    CHECK_OK(weir_device_register(name, 0, &vtable, b.device));
    CHECK_OK(weir_engine_kind_from_name(name, &b.kind));
    return b;
}

/* Objects that are alive, after a call of weir, which ends those that were let go of inside callbacks. */
static int alive(const board *b) {
    (void)runtime_info();
    return test_device_alive(b->device);
}

/* Checks that nothing of it is in use. */
static void pull_out(board *b) {
    CHECK_OK(weir_device_unregister(b->name, 0));
    EVENTUALLY(alive(b) == 0 && test_device_releases(b->device) == 1);
    test_device_destroy(b->device);
}

#endif

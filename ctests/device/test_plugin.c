/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A plug-in library for tests, that is not linked against weir. Compiled with FAILING it registers one kind, replaces
 * another, and fails.
 */

#include <stdio.h>
#include <string.h>
#include <weir/device.h>

#include "test_device.h"

#ifndef FAILING
#define FAILING 0
#endif

/* What it has made goes with the library: when that is unloaded, after a failure, or at the end of the process. */
enum { MOST = 8 };
static test_device *made[MOST];

__attribute__((destructor)) static void unload(void) {
    for (int i = 0; i < MOST && made[i] != NULL; i++) test_device_destroy(made[i]);
}

/* How often it was asked. */
extern int test_plugin_inits;
int test_plugin_inits;

extern int32_t weir_device_plugin_init(const weir_device_plugin_api *api);
int32_t weir_device_plugin_init(const weir_device_plugin_api *api) {
    weir_device_vtable vtable = test_device_vtable();
    test_plugin_inits++;
    test_device *device = test_device_create(WEIR_DEVICE_OWN_MEMORY | WEIR_DEVICE_CONCURRENT);
    if (test_plugin_inits <= MOST) made[test_plugin_inits - 1] = device;
    if (device == NULL || api->struct_size < sizeof *api || api->abi_version != WEIR_ABI_VERSION) return WEIR_INTERNAL;
    const char *name = FAILING ? "half-loaded" : "loaded";
    int32_t status = api->device_register(name, 5, &vtable, device);
    if (status != WEIR_OK || !FAILING) return status;
    /* In a library that was loaded before. */
    status = api->device_replace("loaded", 5, &vtable, device);
    if (status != WEIR_OK) return status;
    if (test_plugin_inits == 1) return api->device_register(name, 5, &vtable, device); /* says why itself */
    api->fail("the board is not plugged in");
    return WEIR_UNAVAILABLE;
}

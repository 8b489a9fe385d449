/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Kinds by name, makers of devices with priorities, and plug-in libraries:  api_device_load <plugin.so> <failing
 * plugin.so>
 */

#include <dlfcn.h>
#include <pthread.h>
#include <weir/inspect.h>
#include <weir/device.h>

#include "weir/testing.h"
#include "make.h"
#include "test_device.h"

static weir_engine_kind kind_of(const char *name) {
    weir_engine_kind kind = 0;
    CHECK_OK(weir_engine_kind_from_name(name, &kind));
    CHECK(strcmp(weir_engine_kind_name(kind), name) == 0);
    return kind;
}

static int has_kind(const char *name) {
    weir_engine_kind kinds[32], kind = kind_of(name);
    size_t count = 0;
    CHECK_OK(weir_engine_kind_list(NULL, 0, &count));
    CHECK(count <= 32);
    if (count > 1) CHECK_CODE(weir_engine_kind_list(kinds, count - 1, &count), WEIR_OUT_OF_RANGE, "capacity is");
    CHECK_OK(weir_engine_kind_list(kinds, 32, &count));
    for (size_t i = 0; i < count; i++) {
        if (i > 0) CHECK(kinds[i - 1] < kinds[i]);
        if (kinds[i] == kind) return 1;
    }
    return 0;
}

static void test_kinds(void) {
    weir_engine_kind kind = 0;
    uint32_t count = 9;
    CHECK_EQ(kind_of("cpu"), WEIR_ENGINE_CPU);
    CHECK_EQ(kind_of("cuda"), WEIR_ENGINE_CUDA);
    CHECK(has_kind("cpu"));
    CHECK(!has_kind("emulated"));
    CHECK_OK(weir_emulated_register());
    CHECK_OK(weir_emulated_register());
    CHECK(has_kind("emulated"));
    CHECK_CODE(weir_engine_kind_from_name("first", &kind), WEIR_NOT_FOUND, "'first'");
    test_device *device = test_device_create(0);
    weir_device_vtable vtable = test_device_vtable();
    CHECK_OK(weir_device_register("first", 0, &vtable, device));
    kind = kind_of("first");
    CHECK(kind >= WEIR_ENGINE_PLUGIN_FIRST);
    CHECK(has_kind("first"));
    CHECK_OK(weir_engine_count(kind, &count));
    CHECK_EQ(count, TEST_DEVICES);
    test_device_plan(device, "device_count", 1, WEIR_UNAVAILABLE);
    CHECK_OK(weir_engine_count(kind, &count));
    CHECK_EQ(count, 0);
    weir_engine *engine = NULL;
    test_device_plan(device, "device_count", 1, WEIR_UNAVAILABLE);
    CHECK_CODE(weir_engine_create(kind, 0, NULL, &engine), WEIR_UNAVAILABLE,
               "this machine has no first device: UNAVAILABLE: kind 'first': device_count: as planned");
    CHECK_CODE(weir_engine_create(kind, TEST_DEVICES, NULL, &engine), WEIR_OUT_OF_RANGE, "there are 2 first devices");
    CHECK_OK(weir_engine_create(kind, 1, NULL, &engine));
    weir_engine_info info = {.struct_size = sizeof info};
    CHECK_OK(weir_engine_get_info(engine, &info));
    CHECK_EQ(info.kind, kind);
    CHECK_EQ(info.index, 1);
    CHECK_EQ(info.alignment, TEST_ALIGNMENT);
    CHECK(strcmp(info.name, "test device 1") == 0);
    CHECK_OK(weir_device_unregister("first", 0));
    CHECK_EQ(test_device_releases(device), 0); /* its device is in use */
    CHECK_EQ(test_device_alive(device), 1);
    weir_engine_release(engine);
    CHECK_EQ(test_device_releases(device), 1);
    CHECK_EQ(test_device_alive(device), 0);
    CHECK_EQ(kind_of("first"), kind); /* the name keeps its number */
    CHECK_CODE(weir_engine_create(kind, 0, NULL, &engine), WEIR_UNIMPLEMENTED, "there is no first engine");
    test_device_destroy(device);
}

/* Who makes the device of an engine that is made now: by the name in its info. */
static uint64_t memory_of(weir_engine_kind kind) {
    weir_engine *engine = NULL;
    weir_engine_info info = {.struct_size = sizeof info};
    CHECK_OK(weir_engine_create(kind, 0, NULL, &engine));
    CHECK_OK(weir_engine_get_info(engine, &info));
    weir_engine_release(engine);
    return info.memory_bytes;
}

static void test_priorities(void) {
    weir_device_vtable vtable = test_device_vtable();
    test_device *devices[3];
    for (int i = 0; i < 3; i++) {
        devices[i] = test_device_create(0);
        test_device_limit(devices[i], 1000 + (uint64_t)i);
    }
    CHECK_OK(weir_device_register("ranked", -7, &vtable, devices[0]));
    weir_engine_kind kind = kind_of("ranked");
    CHECK_EQ(memory_of(kind), 1000);
    CHECK_OK(weir_device_register("ranked", 3, &vtable, devices[1]));
    CHECK_EQ(memory_of(kind), 1001);
    CHECK_CODE(weir_device_register("ranked", 3, &vtable, devices[2]), WEIR_ALREADY_EXISTS, "priority 3");
    CHECK_OK(weir_device_replace("ranked", 3, &vtable, devices[2]));
    CHECK_EQ(test_device_releases(devices[1]), 1);
    CHECK_EQ(memory_of(kind), 1002);
    CHECK_OK(weir_device_unregister("ranked", 3));
    CHECK_EQ(memory_of(kind), 1000);
    CHECK_CODE(weir_device_unregister("ranked", 3), WEIR_NOT_FOUND, "priority 3");
    CHECK_OK(weir_device_unregister("ranked", -7));
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(test_device_releases(devices[i]), 1);
        test_device_destroy(devices[i]);
    }
}

static const char *good_path;

static void *load(void *arg) {
    (void)arg;
    CHECK_OK(weir_device_load(good_path));
    return NULL;
}

/* How often a library was asked, by its own count. */
static int inits_of(const char *path) {
    void *library = dlopen(path, RTLD_NOW);
    CHECK(library != NULL);
    int *inits = (int *)dlsym(library, "test_plugin_inits");
    CHECK(inits != NULL);
    int count = *inits;
    dlclose(library);
    return count;
}

static void test_load(const char *failing) {
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    weir_engine_kind kind = 0;
    weir_engine *engine = NULL;
    for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, load, NULL) == 0);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK_OK(weir_device_load(good_path));
    CHECK_EQ(inits_of(good_path), 1);
    kind = kind_of("loaded");
    uint64_t memory = memory_of(kind);
    CHECK_EQ(memory, UINT64_C(1) << 30);

    /* What fails leaves nothing behind, and is asked again. */
    CHECK_CODE(weir_device_load(failing), WEIR_ALREADY_EXISTS, "weir_device_plugin_init: weir_device_register: there is a factory");
    CHECK(!has_kind("half-loaded"));
    CHECK_CODE(weir_device_load(failing), WEIR_UNAVAILABLE, "weir_device_plugin_init: the board is not plugged in");
    CHECK_TEXT(weir_last_error_message(), failing);
    CHECK(!has_kind("half-loaded"));
    CHECK_EQ(inits_of(failing), 2);
    CHECK(has_kind("loaded"));
    CHECK_OK(weir_engine_create(kind, 0, NULL, &engine));
    CHECK_OK(weir_device_unregister("loaded", 5));
    weir_engine_release(engine);
    CHECK_CODE(weir_device_load("/no/such/library.so"), WEIR_NOT_FOUND, "/no/such/library.so: cannot open");
}

int main(int argc, char **argv) {
    CHECK_EQ(argc, 3);
    good_path = argv[1];
    weir_runtime_info before = runtime_info();
    test_kinds();
    test_priorities();
    test_load(argv[2]);
    check_released(&before);
    return 0;
}

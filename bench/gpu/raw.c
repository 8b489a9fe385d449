/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "raw.h"

#include <dlfcn.h>
#include <string.h>

raw_table raw;

/* A conversion from an object's pointer to a function's, which dlsym is for. */
static void resolve(void *library, const char *name, void *member, int needed) {
    void *found = dlsym(library, name);
    if (found == NULL && needed) {
        fprintf(stderr, "the driver has no %s\n", name);
        exit(1);
    }
    memcpy(member, &found, sizeof found);
}

int raw_open(raw_device *device) {
    memset(device, 0, sizeof *device);
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (library == NULL) {
        printf("SKIPPED: no CUDA device (%s)\n", dlerror());
        return 0;
    }
#define RESOLVE(name, args) resolve(library, #name, &raw.name, 1);
    RAW_FUNCTIONS(RESOLVE)
#undef RESOLVE
#define RESOLVE(name, args) resolve(library, #name, &raw.name, 0);
    RAW_OPTIONAL(RESOLVE)
#undef RESOLVE
    int count = 0;
    int code = raw.cuInit(0);
    if (code == 0) code = raw.cuDeviceGetCount(&count);
    if (code != 0 || count == 0) {
        printf("SKIPPED: no CUDA device (%s)\n", raw_error(code));
        return 0;
    }
    RAW(cuDriverGetVersion(&device->version));
    RAW(cuDeviceGet(&device->device, 0));
    RAW(cuDeviceGetName(device->name, sizeof device->name, device->device));
    RAW(cuDeviceGetAttribute(&device->sms, RAW_SMS, device->device));
    RAW(cuDeviceGetAttribute(&device->clock_khz, RAW_CLOCK_KHZ, device->device));
    RAW(cuDeviceGetAttribute(&device->major, RAW_MAJOR, device->device));
    RAW(cuDeviceGetAttribute(&device->minor, RAW_MINOR, device->device));
    RAW(cuDeviceTotalMem_v2(&device->memory_bytes, device->device));
    RAW(cuDevicePrimaryCtxRetain(&device->context, device->device));
    RAW(cuCtxSetCurrent(device->context));
    return 1;
}

const char *raw_error(int code) {
    static char text[64];
    const char *name = NULL;
    if (raw.cuGetErrorName == NULL || raw.cuGetErrorName(code, &name) != 0 || name == NULL) {
        snprintf(text, sizeof text, "code %d", code);
        return text;
    }
    return name;
}

void *raw_kernel(const char *ptx, const char *entry, void **module, int *code) {
    void *function = NULL;
    *module = NULL;
    int result = raw.cuModuleLoadDataEx(module, ptx, 0, NULL, NULL);
    if (result == 0) result = raw.cuModuleGetFunction(&function, *module, entry);
    if (code != NULL) *code = result;
    return result == 0 ? function : NULL;
}

void *raw_stream(void) {
    void *stream = NULL;
    RAW(cuStreamCreateWithPriority(&stream, RAW_STREAM_NON_BLOCKING, 0));
    return stream;
}

void *raw_event(unsigned flags) {
    void *event = NULL;
    RAW(cuEventCreate(&event, flags));
    return event;
}

raw_pointer raw_memory(size_t bytes) {
    raw_pointer pointer = 0;
    RAW(cuMemAlloc_v2(&pointer, bytes));
    return pointer;
}

void *raw_node_of(void *graph, void *function, unsigned blocks, unsigned threads, void **arguments, void *const *after, size_t count) {
    void *node = NULL;
    const raw_kernel_node kernel = {.function = function, .grid = {blocks, 1, 1}, .block = {threads, 1, 1}, .params = arguments};
    RAW(cuGraphAddKernelNode_v2(&node, graph, after, count, &kernel));
    return node;
}

void *raw_executable(void *graph) {
    void *executable = NULL;
    RAW(cuGraphInstantiateWithFlags(&executable, graph, 0));
    RAW(cuGraphDestroy(graph));
    return executable;
}

int raw_keep_pool(const raw_device *device) {
    void *pool = NULL;
    uint64_t all = UINT64_MAX;
    if (raw.cuDeviceGetDefaultMemPool == NULL || raw.cuMemPoolSetAttribute == NULL) return 0;
    if (raw.cuDeviceGetDefaultMemPool(&pool, device->device) != 0) return 0;
    return raw.cuMemPoolSetAttribute(pool, RAW_POOL_KEEPS, &all) == 0;
}

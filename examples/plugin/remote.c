/* A plug-in for weir: devices that are processes of their own. Their memory is a file that only the worker has in front
 * of it; streams are queues, each with a thread that hands one thing after the other to the worker. It is not linked
 * against weir.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "remote.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/ops.h>
#include <weir/device.h>

enum { DEVICES = 2 };

static _Thread_local char error_text[160];

int32_t remote_fail(int32_t status, const char *why) {
    snprintf(error_text, sizeof error_text, "%s", why);
    return status;
}

void remote_error_text(void *ctx, char *buffer, size_t capacity) {
    (void)ctx;
    snprintf(buffer, capacity, "%s", error_text);
}

/* ---- Devices ---- */

static int32_t device_count(void *ctx, uint32_t *out_count) {
    (void)ctx;
    *out_count = DEVICES;
    return WEIR_OK;
}

static int32_t device_open(void *ctx, uint32_t index, void **out_device) {
    char why[128];
    pthread_condattr_t monotonic;
    struct device *device = calloc(1, sizeof *device);
    (void)ctx;
    if (device == NULL) return remote_fail(WEIR_RESOURCE_EXHAUSTED, "no memory for a device");
    if (process_start(&device->process, why) != 0) {
        free(device);
        return remote_fail(WEIR_UNAVAILABLE, why);
    }
    device->index = index;
    device->space.bytes = REMOTE_MEMORY_BYTES;
    pthread_mutex_init(&device->mutex, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&device->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    *out_device = device;
    return WEIR_OK;
}

static void device_close(void *ctx, void *closed) {
    struct device *device = closed;
    (void)ctx;
    process_end(&device->process);
    while (device->buried != NULL) {
        struct event *event = device->buried;
        device->buried = event->next;
        free(event);
    }
    pthread_cond_destroy(&device->changed);
    pthread_mutex_destroy(&device->mutex);
    free(device);
}

static int32_t device_info(void *ctx, void *device, weir_device_info *info) {
    (void)ctx;
    info->capabilities = WEIR_DEVICE_OWN_MEMORY | WEIR_DEVICE_CONCURRENT | WEIR_DEVICE_TIMING | WEIR_DEVICE_CALLBACK |
                         WEIR_DEVICE_NATIVE_HANDLE;
    info->memory_bytes = REMOTE_MEMORY_BYTES;
    info->alignment = SPACE_ALIGNMENT;
    snprintf(info->name, sizeof info->name, "process %d", (int)((struct device *)device)->process.pid);
    return WEIR_OK;
}

static int32_t native_handle(void *device, uint32_t what, void *object, uint64_t *out_handle) {
    *out_handle = what == WEIR_DEVICE_OBJECT_DEVICE ? (uint64_t)((struct device *)device)->process.pid : (uintptr_t)object;
    return WEIR_OK;
}

/* ---- Memory: addresses are where it would be in this process, so that nobody else has the same ---- */

static uint64_t base(const struct device *device) {
    return (uintptr_t)device->process.space;
}

static int32_t allocate(void *on, uint64_t bytes, const char *name, uint64_t *out_address) {
    struct device *device = on;
    uint64_t offset = 0;
    char why[128];
    pthread_mutex_lock(&device->mutex);
    int taken = space_take(&device->space, bytes, &offset);
    pthread_mutex_unlock(&device->mutex);
    if (taken != 0) {
        snprintf(why, sizeof why, "no room for %s among %llu bytes", name, (unsigned long long)REMOTE_MEMORY_BYTES);
        return remote_fail(WEIR_RESOURCE_EXHAUSTED, why);
    }
    *out_address = base(device) + offset;
    return WEIR_OK;
}

static void deallocate(void *on, uint64_t address, uint64_t bytes) {
    struct device *device = on;
    (void)bytes;
    pthread_mutex_lock(&device->mutex);
    space_give(&device->space, address - base(device));
    pthread_mutex_unlock(&device->mutex);
}

/* ---- Copies ---- */

static int32_t copy_to_device(void *device, void *stream, uint64_t to, const void *from, uint64_t bytes) {
    struct command command = {.verb = VERB_WRITE, .from = from, .request = {.to = to - base(device), .bytes = bytes}};
    return remote_issue(stream, &command);
}

static int32_t copy_to_host(void *device, void *stream, void *to, uint64_t from, uint64_t bytes) {
    struct command command = {.verb = VERB_READ, .to = to, .request = {.from = from - base(device), .bytes = bytes}};
    return remote_issue(stream, &command);
}

static int32_t copy_on_device(void *device, void *stream, uint64_t to, uint64_t from, uint64_t bytes) {
    struct command command = {.verb = VERB_ASK, .request = {.operation = REMOTE_COPY, .bytes = bytes}};
    command.request.to = to - base(device);
    command.request.from = from - base(device);
    return remote_issue(stream, &command);
}

static int32_t fill(void *device, void *stream, uint64_t to, uint8_t value, uint64_t bytes) {
    struct command command = {.verb = VERB_ASK, .request = {.operation = REMOTE_FILL, .value = value, .bytes = bytes}};
    command.request.to = to - base(device);
    return remote_issue(stream, &command);
}

/* ---- Kernels ---- */

/* A kernel is a request without its tensors. */
struct kernel {
    struct remote_request request;
};

/* The attributes, as much of them as both sides know. */
static void read_attributes(const weir_device_recipe *recipe, void *out, size_t bytes) {
    memset(out, 0, bytes);
    memcpy(out, recipe->attributes, recipe->attributes_bytes < bytes ? recipe->attributes_bytes : bytes);
}

static bool is(const weir_device_recipe *recipe, const char *operation) {
    return strcmp(recipe->operation, operation) == 0;
}

/* Fills the request; false if there is no such kernel here. */
static bool find_kernel(const weir_device_recipe *recipe, struct remote_request *request) {
    if (is(recipe, "binary")) {
        weir_binary_desc desc;
        read_attributes(recipe, &desc, sizeof desc);
        request->operation = REMOTE_ADD;
        return desc.op == WEIR_BINARY_ADD;
    } else if (is(recipe, "eltwise")) {
        weir_eltwise_desc desc;
        read_attributes(recipe, &desc, sizeof desc);
        request->operation = REMOTE_RELU;
        return desc.op == WEIR_ELTWISE_RELU && desc.alpha == 0;
    } else if (is(recipe, "matmul")) {
        weir_matmul_desc desc;
        read_attributes(recipe, &desc, sizeof desc);
        request->operation = REMOTE_MATMUL;
        request->bias = (desc.flags & WEIR_MATMUL_BIAS) != 0;
        request->relu = desc.activation == WEIR_ACTIVATION_RELU;
        bool known = (desc.flags & ~(uint64_t)WEIR_MATMUL_BIAS) == 0 && desc.activation <= WEIR_ACTIVATION_RELU;
        return known && desc.weights == NULL;
    } else if (is(recipe, "softmax")) {
        weir_softmax_desc desc;
        read_attributes(recipe, &desc, sizeof desc);
        request->operation = REMOTE_SOFTMAX;
        return desc.axis == -1 && desc.flags == 0;
    } else if (is(recipe, "reduce")) {
        weir_reduce_desc desc;
        read_attributes(recipe, &desc, sizeof desc);
        request->operation = REMOTE_ARGMAX;
        return desc.op == WEIR_REDUCE_ARGMAX && desc.flags == 0 && desc.num_axes == 1 && desc.axes[0] == -1;
    } else if (is(recipe, "weir.fail")) {
        request->operation = REMOTE_FAIL;
    } else {
        return false;
    }
    return true;
}

static int32_t kernel_create(void *device, const weir_device_recipe *recipe, void **out_kernel) {
    struct remote_request request = {.operation = 0};
    (void)device;
    if (!find_kernel(recipe, &request)) return remote_fail(WEIR_UNIMPLEMENTED, "the worker has no such kernel");
    struct kernel *kernel = malloc(sizeof *kernel);
    if (kernel == NULL) return remote_fail(WEIR_RESOURCE_EXHAUSTED, "no memory for a kernel");
    kernel->request = request;
    *out_kernel = kernel;
    return WEIR_OK;
}

static void kernel_destroy(void *device, void *kernel) {
    (void)device;
    free(kernel);
}

/* A tensor of floats, or one of integers as an output. */
static int32_t put_tensor(const struct device *device, const weir_tensor_view *view, struct remote_request *request) {
    if (request->num_tensors == REMOTE_MAX_TENSORS) return remote_fail(WEIR_OUT_OF_RANGE, "too many tensors");
    if (view->desc.dtype != WEIR_F32 && view->desc.dtype != WEIR_S32) return remote_fail(WEIR_UNIMPLEMENTED, "the worker computes in f32");
    struct remote_tensor *tensor = &request->tensors[request->num_tensors++];
    tensor->offset = (uintptr_t)view->data - base(device);
    tensor->dtype = view->desc.dtype;
    tensor->rank = view->desc.rank;
    memcpy(tensor->dims, view->desc.dims, sizeof tensor->dims);
    return WEIR_OK;
}

static int32_t launch(void *device, void *stream, void *kernel, const weir_device_launch *launch) {
    struct command command = {.verb = VERB_ASK, .request = ((struct kernel *)kernel)->request};
    int32_t status = WEIR_OK;
    for (size_t i = 0; i < launch->num_inputs && status == WEIR_OK; i++) status = put_tensor(device, &launch->inputs[i], &command.request);
    for (size_t i = 0; i < launch->num_outputs && status == WEIR_OK; i++) status = put_tensor(device, &launch->outputs[i], &command.request);
    return status == WEIR_OK ? remote_issue(stream, &command) : status;
}

extern int32_t weir_device_plugin_init(const weir_device_plugin_api *api);
int32_t weir_device_plugin_init(const weir_device_plugin_api *api) {
    const weir_device_vtable vtable = {
        .struct_size = sizeof vtable,
        .device_count = device_count,
        .device_open = device_open,
        .device_close = device_close,
        .device_info = device_info,
        .error_text = remote_error_text,
        .allocate = allocate,
        .deallocate = deallocate,
        .stream_create = remote_stream_create,
        .stream_destroy = remote_stream_destroy,
        .stream_clear_error = remote_stream_clear_error,
        .event_create = remote_event_create,
        .event_destroy = remote_event_destroy,
        .event_record = remote_event_record,
        .event_wait = remote_event_wait,
        .event_query = remote_event_query,
        .event_synchronize = remote_event_synchronize,
        .event_elapsed = remote_event_elapsed,
        .event_callback = remote_event_callback,
        .copy_to_device = copy_to_device,
        .copy_to_host = copy_to_host,
        .copy_on_device = copy_on_device,
        .fill = fill,
        .kernel_create = kernel_create,
        .kernel_destroy = kernel_destroy,
        .launch = launch,
        .native_handle = native_handle,
    };
    if (api->abi_version != WEIR_ABI_VERSION) {
        api->fail("this plug-in was built for another version of weir");
        return WEIR_FAILED_PRECONDITION;
    }
    return api->device_register("remote", 0, &vtable, NULL);
}

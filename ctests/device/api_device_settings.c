/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A plug-in that takes settings, is told the names of its work and what belongs together, and calls functions of the
 * host's: all that a device may have besides.
 */

#include <stdbool.h>
#include <weir/memory.h>
#include <weir/ops.h>
#include <weir/inspect.h>
#include <weir/device.h>

#include "make.h"
#include "test_device_board.h"

enum { LEN = 64 };

/* The settings of a "tuned" device: how many names it keeps. */
typedef struct tuning {
    uint32_t names, reserved;
} tuning;

static weir_device_vtable below; /* of the test device */
static tuning settled;
static char names[64][64];
static atomic_int num_names, batches, deepest, trims;
static _Atomic uint64_t trimmed;

static int32_t open_with(void *ctx, uint32_t index, const void *settings, size_t bytes, void **out_device) {
    settled = (tuning){.names = 64};
    if (bytes != 0 && bytes != sizeof settled) return WEIR_INVALID_ARGUMENT;
    if (bytes != 0) memcpy(&settled, settings, bytes);
    if (settled.names == 0) settled.names = 64;
    return below.device_open(ctx, index, out_device);
}

static int32_t open_never(void *ctx, uint32_t index, void **out_device) {
    (void)ctx, (void)index, (void)out_device;
    return WEIR_INTERNAL; /* open_with is there */
}

static int32_t settings_of(void *device, void *settings, size_t capacity, size_t *out_bytes) {
    (void)device;
    *out_bytes = sizeof settled;
    if (capacity >= sizeof settled) memcpy(settings, &settled, sizeof settled);
    return WEIR_OK;
}

static int32_t fits(void *device, const void *settings, size_t bytes) {
    (void)device;
    tuning asked;
    if (bytes != sizeof asked) return WEIR_INVALID_ARGUMENT;
    memcpy(&asked, settings, bytes);
    return asked.names == settled.names ? WEIR_OK : WEIR_FAILED_PRECONDITION;
}

static int32_t submit(void *device, void *stream, const weir_device_work *work) {
    int at = num_names++;
    if (at < (int)settled.names && at < 64) snprintf(names[at], sizeof names[at], "%s", work->name);
    if (work->kind == WEIR_DEVICE_WORK_LAUNCH) return below.launch(device, stream, work->kernel, work->launch);
    if (work->kind == WEIR_DEVICE_WORK_FILL) {
        return below.fill(device, stream, work->fill->to, work->fill->value, work->fill->bytes);
    }
    const weir_device_copy *copy = work->copy;
    if (copy->to_device == NULL) return below.copy_to_host(device, stream, (void *)(uintptr_t)copy->to, copy->from, copy->bytes);
    if (copy->from_device == NULL) return below.copy_to_device(device, stream, copy->to, (const void *)(uintptr_t)copy->from, copy->bytes);
    if (copy->to_device == copy->from_device) return below.copy_on_device(device, stream, copy->to, copy->from, copy->bytes);
    return below.copy_peer(device, stream, copy->to_device, copy->to, copy->from_device, copy->from, copy->bytes);
}

static void begin(void *device) {
    (void)device;
    int depth = ++batches;
    if (depth > deepest) deepest = depth;
}

static void end(void *device) {
    (void)device;
    batches--;
}

static void trim(void *device, uint64_t keep_bytes) {
    (void)device;
    trimmed = keep_bytes;
    trims++;
}

static bool has_name(const char *part) {
    bool found = false;
    for (int i = 0; i < num_names && i < 64; i++) found = found || strstr(names[i], part) != NULL;
    return found;
}

/* The host's part: it halves, and refuses what is negative. */
static atomic_int releases;

static int32_t halve(void *user, weir_kernel_context *context) {
    (void)user;
    const weir_tensor_view *in = NULL, *out = NULL;
    size_t count = 0;
    CHECK_OK(weir_kernel_context_get_inputs(context, &in, &count));
    CHECK_OK(weir_kernel_context_get_outputs(context, &out, &count));
    for (int i = 0; i < LEN; i++) {
        float value = ((const float *)in[0].data)[i];
        if (value < 0) {
            CHECK_OK(weir_kernel_context_fail(context, WEIR_OUT_OF_RANGE, "a negative number"));
            return WEIR_OUT_OF_RANGE;
        }
        ((float *)out[0].data)[i] = value / 2;
    }
    return WEIR_OK;
}

static void released(void *user) {
    (void)user;
    releases++;
}

static weir_engine_kind plug_tuned(test_device *device, const weir_device_vtable *vtable) {
    weir_engine_kind kind = 0;
    CHECK_OK(weir_device_register("tuned", 0, vtable, device));
    CHECK_OK(weir_engine_kind_from_name("tuned", &kind));
    return kind;
}

static weir_status tuned(weir_engine_kind kind, uint32_t count, weir_engine **out_engine) {
    const tuning asked = {.names = count};
    weir_engine_attr *attr = NULL;
    CHECK_OK(weir_engine_attr_create(kind, &attr));
    CHECK_OK(weir_engine_attr_set_device_settings(attr, &asked, sizeof asked));
    weir_status status = weir_engine_create(kind, 0, attr, out_engine);
    weir_engine_attr_destroy(attr);
    return status;
}

static void test_settings(weir_engine_kind kind) {
    weir_engine *first = NULL, *second = NULL;
    const weir_engine_attr *attr = NULL;
    tuning found = {0};
    size_t bytes = 0;
    CHECK_OK(tuned(kind, 0, &first));
    CHECK_OK(weir_engine_get_attr(first, &attr));
    CHECK_OK(weir_engine_attr_get_device_settings(attr, NULL, 0, &bytes));
    CHECK(bytes == sizeof found);
    CHECK_OK(weir_engine_attr_get_device_settings(attr, &found, sizeof found, &bytes));
    CHECK(found.names == 64);
    CHECK_OK(tuned(kind, 64, &second));
    weir_engine_release(second);
    CHECK_CODE(tuned(kind, 3, &second), WEIR_FAILED_PRECONDITION, "engine tuned:0: device_fits failed");
    CHECK_OK(weir_engine_create(kind, 0, NULL, &second));
    weir_engine_release(second);
    weir_engine_release(first);
    CHECK_OK(tuned(kind, 3, &first));
    weir_engine_release(first);
}

static void test_names(weir_engine_kind kind) {
    weir_engine *engine = NULL, *cpu = make_engine(NULL);
    weir_stream *stream = NULL;
    weir_kernel *kernel = NULL;
    const weir_tensor_desc vector = vector_desc(LEN);
    weir_host_kernel_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.struct_size = sizeof desc;
    desc.name = "halve";
    desc.compute = halve;
    desc.user = &releases;
    desc.destroy = released;
    desc.num_inputs = desc.num_outputs = 1;
    desc.inputs = desc.outputs = &vector;
    CHECK_OK(weir_engine_create(kind, 0, NULL, &engine));
    CHECK_OK(weir_stream_create(engine, WEIR_STREAM_DEFAULT, NULL, &stream));
    CHECK_OK(weir_kernel_create_host(engine, &desc, &kernel));
    weir_tensor *here = make_tensor(cpu, vector), *in = make_tensor(engine, vector), *out = make_tensor(engine, vector);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < LEN; i++) floats(here)[i] = (float)(i + round);
        CHECK_OK(weir_enqueue_copy(stream, here, in));
        CHECK_OK(weir_enqueue(stream, kernel, &in, 1, &out, 1));
        CHECK_OK(weir_enqueue_copy(stream, out, here));
        CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
        for (int i = 0; i < LEN; i++) CHECK(floats(here)[i] == (float)(i + round) / 2);
    }
    CHECK(has_name("halve"));
    /* A failure of the host's own comes back with its code and its words. */
    floats(here)[7] = -1;
    CHECK_OK(weir_enqueue_copy(stream, here, in));
    CHECK_OK(weir_enqueue(stream, kernel, &in, 1, &out, 1));
    CHECK_CODE(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE), WEIR_OUT_OF_RANGE, "a negative number");
    weir_tensor_release(here);
    weir_tensor_release(in);
    weir_tensor_release(out);
    weir_kernel_release(kernel);
    weir_stream_release(stream);
    EVENTUALLY(releases == 1);
    CHECK_OK(weir_engine_trim(engine, 4096));
    CHECK(trims > 0 && trimmed <= 4096);
    weir_engine_release(engine);
    weir_engine_release(cpu);
}

/* A program's work on the device is issued in batches, which end. */
static void test_batches(weir_engine_kind kind) {
    weir_engine *engines[2] = {make_engine(NULL), NULL};
    weir_graph *graph = make_graph("batched");
    weir_program *program = NULL;
    weir_kernel *relu = NULL;
    const weir_tensor_desc vector = vector_desc(LEN);
    weir_value value = 0;
    CHECK_OK(weir_engine_create(kind, 0, NULL, &engines[1]));
    CHECK_OK(weir_kernel_create_eltwise(engines[1], ELTWISE(RELU), NULL, &relu));
    CHECK_OK(weir_graph_add_input(graph, "in", &vector, &value));
    for (int i = 0; i < 5; i++) CHECK_OK(weir_graph_add_kernel(graph, (const char *[]){"a", "b", "c", "d", "e"}[i], relu, &value, 1, &value, 1, NULL));
    CHECK_OK(weir_graph_add_output(graph, "out", value));
    CHECK_OK(weir_graph_compile(graph, engines, 2, NULL, &program));
    weir_tensor *in = make_tensor(engines[0], vector), *out = make_tensor(engines[0], vector);
    for (int run = 0; run < 4; run++) {
        for (int i = 0; i < LEN; i++) floats(in)[i] = (float)(i - 8 * run);
        CHECK_OK(weir_program_run(program, NULL, &in, 1, &out, 1, NULL));
        for (int i = 0; i < LEN; i++) CHECK(floats(out)[i] == (i > 8 * run ? (float)(i - 8 * run) : 0));
    }
    CHECK(batches == 0 && deepest > 0);
    weir_tensor_release(in);
    weir_tensor_release(out);
    weir_program_release(program);
    weir_graph_destroy(graph);
    weir_kernel_release(relu);
    weir_engine_release(engines[1]);
    weir_engine_release(engines[0]);
}

int main(void) {
    weir_runtime_info before = runtime_info();
    below = test_device_vtable();
    weir_device_vtable vtable = below;
    vtable.device_open = open_never;
    vtable.device_open_with = open_with;
    vtable.device_settings = settings_of;
    vtable.device_fits = fits;
    vtable.work_submit = submit;
    vtable.launch = NULL;
    vtable.fill = NULL;
    vtable.copy_to_device = NULL;
    vtable.copy_to_host = NULL;
    vtable.copy_on_device = NULL;
    vtable.copy_peer = NULL;
    vtable.batch_begin = begin;
    vtable.batch_end = end;
    vtable.memory_trim = trim;
    test_device *device = test_device_create(WEIR_DEVICE_OWN_MEMORY | WEIR_DEVICE_CONCURRENT | WEIR_DEVICE_CALLBACK |
                                             WEIR_DEVICE_PEER_COPY | WEIR_DEVICE_HOST_KERNELS | WEIR_DEVICE_IN_PLACE);
    CHECK(device != NULL);
    weir_engine_kind kind = plug_tuned(device, &vtable);
    test_settings(kind);
    test_names(kind);
    test_batches(kind);
    CHECK(num_names > 0);
    board b = {.name = "tuned", .device = device, .kind = kind};
    pull_out(&b);
    check_released(&before);
    return 0;
}

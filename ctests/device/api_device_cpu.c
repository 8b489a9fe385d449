/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Plug-ins in the place of the host's own device: they give the memory of its tensors, the host's threads do the work.
 */

#include <stdbool.h>
#include <weir/ops.h>
#include <weir/inspect.h>
#include <weir/device.h>

#include "make.h"

enum { LEN = 1000 };

/* Memory of huge pages, of a GPU's, near a processor: here one that counts. */
typedef struct maker {
    const char *name;
    atomic_int made, blocks, opened, released;
    _Atomic uint64_t bytes, limit;
} maker;

static int32_t device_count(void *ctx, uint32_t *out_count) {
    (void)ctx;
    *out_count = 1;
    return WEIR_OK;
}

static int32_t device_open(void *ctx, uint32_t index, void **out_device) {
    maker *m = ctx;
    if (index != 0) return WEIR_INTERNAL;
    m->opened++;
    *out_device = m;
    return WEIR_OK;
}

static void device_close(void *ctx, void *device) {
    (void)device;
    ((maker *)ctx)->opened--;
}

static int32_t device_info(void *ctx, void *device, weir_device_info *info) {
    (void)device;
    info->capabilities = WEIR_DEVICE_CONCURRENT | WEIR_DEVICE_PINNED_MEMORY;
    info->alignment = 16;
    snprintf(info->name, sizeof info->name, "%s", ((maker *)ctx)->name);
    return WEIR_OK;
}

static int32_t host_allocate(void *device, uint64_t bytes, const char *name, void **out_data) {
    maker *m = device;
    CHECK(name[0] != '\0');
    if (m->bytes + bytes > m->limit) return WEIR_RESOURCE_EXHAUSTED;
    void *data = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    if (data == NULL) return WEIR_RESOURCE_EXHAUSTED;
    m->made++;
    m->blocks++;
    m->bytes += bytes;
    *out_data = data;
    return WEIR_OK;
}

static void host_deallocate(void *device, void *data, uint64_t bytes) {
    maker *m = device;
    m->blocks--;
    m->bytes -= bytes;
    free(data);
}

static void release(void *ctx) {
    ((maker *)ctx)->released++;
}

static const weir_device_vtable vtable = {
    .struct_size = sizeof(weir_device_vtable),
    .device_count = device_count,
    .device_open = device_open,
    .device_close = device_close,
    .device_info = device_info,
    .release = release,
    .host_allocate = host_allocate,
    .host_deallocate = host_deallocate,
};

static bool is_of(const weir_engine *engine, const char *name) {
    weir_engine_info info = {.struct_size = sizeof info};
    CHECK_OK(weir_engine_get_info(engine, &info));
    return strcmp(info.name, name) == 0;
}

/* A program and a stream on the engine, whose work is the host's. */
static void work(weir_engine *engine) {
    weir_graph *graph = make_graph("host");
    weir_kernel *relu = NULL;
    weir_program *program = NULL;
    weir_value value = 0;
    const weir_tensor_desc vector = vector_desc(LEN);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_DEFAULT, NULL, NULL);
    weir_tensor *in = make_tensor(engine, vector), *out = make_tensor(engine, vector);
    for (int i = 0; i < LEN; i++) floats(in)[i] = (float)(i - 500);
    CHECK_OK(weir_kernel_create_eltwise(engine, ELTWISE(RELU), NULL, &relu));
    CHECK_OK(weir_enqueue(stream, relu, &in, 1, &out, 1));
    CHECK(floats(out)[3] == 0 && floats(out)[700] == 200);
    CHECK_OK(weir_graph_add_input(graph, "x", &vector, &value));
    CHECK_OK(weir_graph_add_kernel(graph, "relu", relu, &value, 1, &value, 1, NULL));
    CHECK_OK(weir_graph_add_output(graph, "y", value));
    CHECK_OK(weir_graph_compile(graph, &engine, 1, NULL, &program));
    for (int run = 0; run < 2; run++) {
        memset(floats(out), 0, LEN * sizeof(float));
        CHECK_OK(weir_program_run(program, NULL, &in, 1, &out, 1, NULL));
        CHECK(floats(out)[3] == 0 && floats(out)[999] == 499);
    }
    weir_program_release(program);
    weir_graph_destroy(graph);
    weir_kernel_release(relu);
    weir_tensor_release(in);
    weir_tensor_release(out);
    weir_stream_release(stream);
}

int main(void) {
    weir_runtime_info before = runtime_info();
    maker sixty = {.name = "sixty", .limit = 1 << 20}, seventy = {.name = "seventy", .limit = 1 << 20};
    weir_engine *own = make_engine(NULL), *engine = NULL;
    CHECK_OK(weir_device_register("cpu", 60, &vtable, &sixty));
    /* An engine on a device that is there shares it. */
    CHECK_OK(weir_engine_create(WEIR_ENGINE_CPU, 0, NULL, &engine));
    CHECK(!is_of(engine, "sixty"));
    weir_engine_release(engine);
    weir_engine_release(own);

    engine = make_engine(NULL);
    CHECK(is_of(engine, "sixty") && sixty.opened == 1);
    work(engine);
    CHECK(sixty.made >= 1);
    weir_engine_release(engine);
    CHECK(sixty.blocks == 0 && sixty.bytes == 0 && sixty.opened == 0);

    /* The higher priority counts, whoever came first. */
    CHECK_OK(weir_device_register("cpu", 70, &vtable, &seventy));
    engine = make_engine(NULL);
    CHECK(is_of(engine, "seventy") && sixty.opened == 0);
    work(engine);
    weir_tensor *tensor = NULL;
    const weir_tensor_desc large = vector_desc(1 << 20);
    CHECK_CODE(weir_tensor_create(engine, &large, NULL, &tensor), WEIR_RESOURCE_EXHAUSTED, "needs 4194304 bytes");
    CHECK_OK(weir_device_unregister("cpu", 70));
    work(engine);
    CHECK(seventy.released == 0);
    weir_engine_release(engine);
    CHECK(seventy.released == 1 && seventy.blocks == 0);
    CHECK_OK(weir_device_unregister("cpu", 60));
    CHECK(sixty.released == 1);

    engine = make_engine(NULL);
    CHECK(!is_of(engine, "sixty") && !is_of(engine, "seventy"));
    work(engine);
    weir_engine_release(engine);
    CHECK_CODE(weir_device_unregister("cpu", 0), WEIR_INVALID_ARGUMENT, "the library's own maker");
    check_released(&before);
    return 0;
}

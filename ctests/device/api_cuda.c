/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A CUDA engine as a C program uses it: what the device is, a kernel of its own, streams and events of its own beside
 * weir's. It runs on a GPU, and on the fake driver where there is none.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include <weir.h>
#include <weir/resource.h>
#include <weir/inspect.h>
#include <weir/device.h>
#include <weir/cuda.h>

#include "check.h"

enum { LEN = 1000 };

static weir_engine *gpu, *cpu;
static const weir_tensor_desc like = {WEIR_F32, 1, {LEN}};

/* y[i] = by x[i] for all i < n */
static const char scale_ptx[] =
    ".version 6.4\n.target sm_52\n.address_size 64\n"
    ".visible .entry scale(.param .u64 y, .param .u64 x, .param .u64 n, .param .f32 by) {\n"
    "  .reg .pred %p<2>; .reg .f32 %f<4>; .reg .b32 %r<5>; .reg .b64 %d<9>;\n"
    "  ld.param.u64 %d1, [y]; ld.param.u64 %d2, [x]; ld.param.u64 %d3, [n]; ld.param.f32 %f1, [by];\n"
    "  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;\n"
    "  mad.lo.s32 %r4, %r1, %r2, %r3; cvt.u64.u32 %d4, %r4;\n"
    "  setp.ge.u64 %p1, %d4, %d3; @%p1 bra DONE;\n"
    "  cvta.to.global.u64 %d5, %d1; cvta.to.global.u64 %d6, %d2; shl.b64 %d7, %d4, 2;\n"
    "  add.s64 %d5, %d5, %d7; add.s64 %d6, %d6, %d7;\n"
    "  ld.global.f32 %f2, [%d6]; mul.f32 %f3, %f2, %f1; st.global.f32 [%d5], %f3;\n"
    "DONE: ret;\n}\n";

static const char scale_source[] =
    "extern \"C\" __global__ void scale(float *y, const float *x, unsigned long long n, float by) {\n"
    "    unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;\n"
    "    if (i < n) y[i] = by * x[i];\n"
    "}\n";

static weir_status make_scale_with(const void *source, weir_cuda_source kind, const char *entry, float by, uint64_t flags, weir_kernel **out) {
    const weir_cuda_argument arguments[] = {
        {WEIR_CUDA_ARGUMENT_OUTPUT, 0, NULL, 0},
        {WEIR_CUDA_ARGUMENT_INPUT, 0, NULL, 0},
        {WEIR_CUDA_ARGUMENT_OUTPUT_ELEMENTS, 0, NULL, 0},
        {WEIR_CUDA_ARGUMENT_VALUE, 0, &by, sizeof by},
    };
    const weir_cuda_kernel_desc desc = {
        .struct_size = sizeof desc, .source = source, .source_kind = kind, .entry = entry, .block = {128, 1, 1},
        .arguments = arguments, .num_arguments = 4, .num_inputs = 1, .num_outputs = 1, .outputs = &like,
        .flags = flags,
    };
    return weir_kernel_create_cuda(gpu, &desc, NULL, out);
}

static weir_status make_scale(const void *source, weir_cuda_source kind, const char *entry, float by, weir_kernel **out) {
    return make_scale_with(source, kind, entry, by, 0, out);
}

static weir_tensor *tensor_on(weir_engine *engine) {
    weir_tensor *tensor = NULL;
    CHECK_OK(weir_tensor_create(engine, &like, NULL, &tensor));
    return tensor;
}

static float *data_of(weir_tensor *tensor) {
    void *data = NULL;
    CHECK_OK(weir_tensor_get_data(tensor, &data));
    return data;
}

static void test_info(void) {
    weir_cuda_device_info info = {.struct_size = sizeof info};
    CHECK_OK(weir_cuda_get_device_info(gpu, &info));
    printf("%s (%s), compute capability %u.%u, CUDA %d.%d\n", info.name, info.pci_bus_id, info.capability_major,
           info.capability_minor, info.driver_version / 1000, info.driver_version % 1000 / 10);
    CHECK(info.driver_version >= 12000 && info.capability_major >= 1 && info.multiprocessors >= 1);
    CHECK(info.memory_bytes > 0 && info.free_bytes <= info.memory_bytes);
    CHECK(strlen(info.name) > 0 && strlen(info.pci_bus_id) >= 7);
    uint64_t context = 0;
    CHECK_OK(weir_engine_get_native_handle(gpu, &context));
    CHECK(context != 0);
}

/* host -> x -> y = by x -> host, on a stream */
static void scale_on(weir_stream *stream, weir_kernel *scale, float by) {
    weir_tensor *from = tensor_on(cpu), *to = tensor_on(cpu), *x = tensor_on(gpu), *y = tensor_on(gpu);
    for (int i = 0; i < LEN; i++) data_of(from)[i] = (float)i;
    CHECK_OK(weir_enqueue_copy(stream, from, x));
    CHECK_OK(weir_enqueue(stream, scale, &x, 1, &y, 1));
    CHECK_OK(weir_enqueue_copy(stream, y, to));
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    for (int i = 0; i < LEN; i++) CHECK(data_of(to)[i] == by * (float)i);
    weir_tensor_release(from), weir_tensor_release(to), weir_tensor_release(x), weir_tensor_release(y);
}

static void test_kernels(weir_stream *stream) {
    weir_kernel *scale = NULL;
    CHECK_OK(make_scale(scale_ptx, WEIR_CUDA_SOURCE_PTX, "scale", 3, &scale));
    scale_on(stream, scale, 3);
    weir_kernel_release(scale);
    CHECK_CODE(make_scale(scale_ptx, WEIR_CUDA_SOURCE_PTX, "missing", 3, &scale), WEIR_NOT_FOUND, "entry 'missing'");
    CHECK(make_scale("nonsense", WEIR_CUDA_SOURCE_PTX, "scale", 3, &scale) != WEIR_OK);
    CHECK_CODE(make_scale(scale_ptx, 9, "scale", 3, &scale), WEIR_INVALID_ARGUMENT, "desc->source_kind is 9");
    CHECK(scale == NULL);
    /* In place, where the kernel says that it may. */
    weir_kernel *in_place = NULL;
    weir_tensor *x = tensor_on(gpu), *here = tensor_on(cpu);
    CHECK_OK(make_scale_with(scale_ptx, WEIR_CUDA_SOURCE_PTX, "scale", 3, WEIR_KERNEL_IN_PLACE, &in_place));
    CHECK_OK(make_scale(scale_ptx, WEIR_CUDA_SOURCE_PTX, "scale", 3, &scale));
    CHECK_CODE(weir_enqueue(stream, scale, &x, 1, &x, 1), WEIR_INVALID_ARGUMENT, "share");
    weir_kernel_release(scale);
    scale = NULL;
    for (int i = 0; i < LEN; i++) data_of(here)[i] = (float)i;
    CHECK_OK(weir_enqueue_copy(stream, here, x));
    CHECK_OK(weir_enqueue(stream, in_place, &x, 1, &x, 1));
    CHECK_OK(weir_enqueue_copy(stream, x, here));
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    for (int i = 0; i < LEN; i++) CHECK(data_of(here)[i] == 3 * (float)i);
    CHECK_CODE(make_scale_with(scale_ptx, WEIR_CUDA_SOURCE_PTX, "scale", 3, WEIR_KERNEL_PURE, &scale), WEIR_INVALID_ARGUMENT, "desc->flags");
    weir_kernel_release(in_place), weir_tensor_release(x), weir_tensor_release(here);
    /* With a compiler, and without. */
    const weir_status compiled = make_scale(scale_source, WEIR_CUDA_SOURCE_TEXT, "scale", 5, &scale);
    if (compiled == WEIR_UNAVAILABLE) {
        CHECK_TEXT(weir_last_error_message(), "NVRTC, is not installed");
        return;
    }
    CHECK_OK(compiled);
    scale_on(stream, scale, 5);
    weir_kernel_release(scale);
    CHECK_CODE(make_scale("mistake", WEIR_CUDA_SOURCE_TEXT, "scale", 5, &scale), WEIR_INVALID_ARGUMENT, "NVRTC: ");
}

/* The driver's own functions, as another library of the program's would use them. */
struct driver {
    int (*set_context)(void *);
    int (*stream_create)(void **, unsigned, int);
    int (*stream_destroy)(void *);
    int (*event_create)(void **, unsigned);
    int (*event_destroy)(void *);
    int (*event_record)(void *, void *);
    int (*stream_wait)(void *, void *, unsigned);
    int (*fill)(uint64_t, unsigned, size_t, void *);
};

static struct driver load_driver(void) {
    struct driver driver;
    void *library = dlopen("libcuda.so", RTLD_NOW);
    if (library == NULL) library = dlopen("libcuda.so.1", RTLD_NOW);
    CHECK(library != NULL);
#define FIND(member, name) CHECK((*(void **)(&driver.member) = dlsym(library, name)) != NULL)
    FIND(set_context, "cuCtxSetCurrent");
    FIND(stream_create, "cuStreamCreateWithPriority");
    FIND(stream_destroy, "cuStreamDestroy_v2");
    FIND(event_create, "cuEventCreate");
    FIND(event_destroy, "cuEventDestroy_v2");
    FIND(event_record, "cuEventRecord");
    FIND(stream_wait, "cuStreamWaitEvent");
    FIND(fill, "cuMemsetD32Async");
    return driver;
}

static void test_beside(weir_stream *stream) {
    const struct driver driver = load_driver();
    weir_tensor *x = tensor_on(gpu), *to = tensor_on(cpu);
    weir_stream *wrapped = NULL;
    weir_event *event = NULL;
    void *own = NULL, *own_event = NULL;
    uint64_t context = 0, handle = 0;
    const float one = 1;
    unsigned bits;
    memcpy(&bits, &one, sizeof bits);
    CHECK_OK(weir_engine_get_native_handle(gpu, &context));
    CHECK_EQ(driver.set_context((void *)(uintptr_t)context), 0);
    CHECK_EQ(driver.stream_create(&own, 1, 0), 0);
    CHECK_EQ(driver.event_create(&own_event, 2), 0);
    const uint64_t address = (uint64_t)(uintptr_t)data_of(x);

    /* A stream of the program's, which both put work into. */
    CHECK_OK(weir_stream_wrap_cuda(gpu, own, NULL, &wrapped));
    CHECK_OK(weir_stream_get_native_handle(wrapped, &handle));
    CHECK(handle == (uint64_t)(uintptr_t)own);
    CHECK_OK(weir_enqueue_fill(wrapped, x, 0));
    CHECK_EQ(driver.fill(address, bits, LEN / 2, own), 0);
    CHECK_OK(weir_enqueue_copy(wrapped, x, to));
    CHECK_OK(weir_stream_synchronize(wrapped, WEIR_TIMEOUT_INFINITE));
    CHECK(data_of(to)[0] == 1 && data_of(to)[LEN / 2 - 1] == 1 && data_of(to)[LEN / 2] == 0);

    /* weir's stream, then the program's behind an event of weir's, then weir's behind one of the program's. */
    CHECK_OK(weir_event_create(gpu, 0, &event));
    CHECK_CODE(weir_event_get_native_handle(event, &handle), WEIR_FAILED_PRECONDITION, "never recorded");
    CHECK_OK(weir_enqueue_fill(stream, x, 0));
    CHECK_OK(weir_event_record(event, stream));
    CHECK_OK(weir_event_get_native_handle(event, &handle));
    CHECK_EQ(driver.stream_wait(own, (void *)(uintptr_t)handle, 0), 0);
    CHECK_EQ(driver.fill(address, bits, 10, own), 0);
    CHECK_EQ(driver.event_record(own_event, own), 0);
    CHECK_OK(weir_stream_wait_cuda_event(stream, own_event));
    CHECK_OK(weir_enqueue_copy(stream, x, to));
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    CHECK(data_of(to)[9] == 1 && data_of(to)[10] == 0);

    /* And an event of the program's that weir records. */
    CHECK_OK(weir_enqueue_fill(stream, x, 0));
    CHECK_OK(weir_stream_record_cuda_event(stream, own_event));
    CHECK_EQ(driver.stream_wait(own, own_event, 0), 0);
    CHECK_EQ(driver.fill(address, bits, 1, own), 0);
    CHECK_OK(weir_enqueue_copy(wrapped, x, to));
    CHECK_OK(weir_stream_synchronize(wrapped, WEIR_TIMEOUT_INFINITE));
    CHECK(data_of(to)[0] == 1 && data_of(to)[1] == 0);

    weir_event_release(event);
    weir_stream_release(wrapped);
    CHECK_EQ(driver.event_destroy(own_event), 0);
    CHECK_EQ(driver.stream_destroy(own), 0);
    CHECK_EQ(driver.set_context(NULL), 0);
    weir_tensor_release(x), weir_tensor_release(to);
}

/* Tables are the host's: their kernels are refused as they are made. */
static void test_tables(void) {
    const weir_table_desc desc = {.struct_size = sizeof desc, .key = WEIR_TABLE_KEY_INT64, .row = {WEIR_F32, 1, {2}}};
    weir_resource *table = NULL;
    weir_kernel *none = NULL;
    CHECK_OK(weir_table_create(gpu, NULL, "rows", &desc, &table));
    const char refused[] = "engine cuda:0 has no kernels of tables, which are in the host's memory";
    CHECK_CODE(weir_kernel_create_table(gpu, table, WEIR_TABLE_FIND, NULL, &none), WEIR_UNIMPLEMENTED, refused);
    CHECK_CODE(weir_kernel_create_table(gpu, table, WEIR_TABLE_INSERT, NULL, &none), WEIR_UNIMPLEMENTED, refused);
    CHECK_CODE(weir_kernel_create_table(gpu, table, WEIR_TABLE_SIZE, NULL, &none), WEIR_UNIMPLEMENTED, refused);
    CHECK(none == NULL);
    weir_resource_release(table);
}

int main(void) {
    uint32_t count = 0;
    weir_stream *stream = NULL;
    CHECK_OK(weir_engine_count(WEIR_ENGINE_CUDA, &count));
    if (count == 0) {
        CHECK(weir_engine_create(WEIR_ENGINE_CUDA, 0, NULL, &gpu) != WEIR_OK);
        printf("SKIPPED: no CUDA device: %s\n", weir_last_error_message());
        return 0;
    }
    const weir_runtime_info before = runtime_info();
    CHECK_OK(weir_engine_create(WEIR_ENGINE_CUDA, 0, NULL, &gpu));
    CHECK_OK(weir_engine_create(WEIR_ENGINE_CPU, 0, NULL, &cpu));
    CHECK_OK(weir_stream_create(gpu, 0, NULL, &stream));
    test_info();
    test_kernels(stream);
    test_beside(stream);
    test_tables();
    weir_stream_release(stream);
    weir_engine_release(gpu);
    weir_engine_release(cpu);
    check_released(&before);
    return 0;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Tensors to and from other libraries: who owns what, what is refused, what waits.
 */

#include <pthread.h>

#include "make.h"
#include "weir/dlpack.h"
#include "weir/testing.h"
#include <weir/inspect.h>

/* Another library's tensor. */
typedef struct foreign {
    DLManagedTensorVersioned managed;
    DLManagedTensor legacy;
    int64_t shape[3], strides[3];
    float data[24];
    atomic_int deleted;
} foreign;

static void delete_foreign(DLManagedTensorVersioned *self) {
    atomic_fetch_add(&((foreign *)self->manager_ctx)->deleted, 1);
}

static void delete_legacy(DLManagedTensor *self) {
    atomic_fetch_add(&((foreign *)self->manager_ctx)->deleted, 1);
}

/* f32[2,3], compact, from element 1 on. */
static void make_foreign(foreign *f) {
    memset(f, 0, sizeof *f);
    f->shape[0] = 2;
    f->shape[1] = 3;
    f->strides[0] = 3;
    f->strides[1] = 1;
    for (int i = 0; i < 24; i++) f->data[i] = (float)i;
    DLTensor tensor = {f->data, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, f->shape, f->strides, 4};
    f->managed = (DLManagedTensorVersioned){{1, 1}, f, delete_foreign, 0, tensor};
    f->legacy = (DLManagedTensor){tensor, f, delete_legacy};
}

static void test_import(void) {
    weir_engine *engine = make_engine(NULL);
    weir_tensor *tensor = NULL;
    foreign f;
    make_foreign(&f);
    CHECK_OK(weir_tensor_from_dlpack(engine, &f.managed, 0, &tensor));
    CHECK(floats(tensor) == f.data + 1);
    CHECK_EQ(f.deleted, 0);
    weir_tensor_release(tensor);
    CHECK_EQ(f.deleted, 1);
    CHECK_OK(weir_tensor_from_dlpack_legacy(engine, &f.legacy, 0, &tensor));
    weir_tensor_release(tensor);
    CHECK_EQ(f.deleted, 2);

    /* NULL strides are compact; those of single elements say nothing. */
    make_foreign(&f);
    f.managed.dl_tensor.strides = NULL;
    CHECK_OK(weir_tensor_from_dlpack(engine, &f.managed, 0, &tensor));
    weir_tensor_release(tensor);
    make_foreign(&f);
    f.shape[0] = 1;
    f.strides[0] = 999;
    CHECK_OK(weir_tensor_from_dlpack(engine, &f.managed, 0, &tensor));
    weir_tensor_release(tensor);

    /* Turned: refused, or copied. On failure it stays the caller's. */
    make_foreign(&f);
    f.strides[0] = 1;
    f.strides[1] = 2;
    CHECK_CODE(weir_tensor_from_dlpack(engine, &f.managed, 0, &tensor), WEIR_INVALID_ARGUMENT,
               "managed: strides [1, 2] of f32[2,3] are not row-major and compact; WEIR_DLPACK_COPY takes them");
    CHECK_EQ(f.deleted, 0);
    CHECK_OK(weir_tensor_from_dlpack(engine, &f.managed, WEIR_DLPACK_COPY, &tensor));
    CHECK_EQ(f.deleted, 1);
    const float turned[6] = {1, 3, 5, 2, 4, 6};
    CHECK(memcmp(floats(tensor), turned, sizeof turned) == 0);
    weir_tensor_release(tensor);

    /* Backwards, from the last element. */
    make_foreign(&f);
    f.strides[0] = -3;
    f.strides[1] = -1;
    f.managed.dl_tensor.byte_offset = 24;
    CHECK_OK(weir_tensor_from_dlpack(engine, &f.managed, WEIR_DLPACK_COPY, &tensor));
    CHECK(floats(tensor)[0] == 6 && floats(tensor)[5] == 1);
    weir_tensor_release(tensor);

    make_foreign(&f);
    f.managed.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
    CHECK_CODE(weir_tensor_from_dlpack(engine, &f.managed, 0, &tensor), WEIR_FAILED_PRECONDITION, "managed must not be written");
    CHECK_OK(weir_tensor_from_dlpack(engine, &f.managed, WEIR_DLPACK_READ_ONLY, &tensor));
    weir_tensor_release(tensor);

    make_foreign(&f);
    f.managed.version.major = 2;
    CHECK_CODE(weir_tensor_from_dlpack(engine, &f.managed, 0, &tensor), WEIR_UNIMPLEMENTED, "DLPack 2.1, expected 1.x");
    make_foreign(&f);
    f.managed.dl_tensor.dtype = (DLDataType){kDLUInt, 64, 1};
    CHECK_CODE(weir_tensor_from_dlpack(engine, &f.managed, 0, &tensor), WEIR_INVALID_ARGUMENT, "elements of uint64 have no counterpart");
    f.managed.dl_tensor.dtype = (DLDataType){kDLFloat, 32, 4};
    CHECK_CODE(weir_tensor_from_dlpack(engine, &f.managed, 0, &tensor), WEIR_INVALID_ARGUMENT, "elements of float32x4");
    make_foreign(&f);
    f.managed.dl_tensor.device.device_type = kDLCUDA;
    CHECK_CODE(weir_tensor_from_dlpack(engine, &f.managed, 0, &tensor), WEIR_INVALID_ARGUMENT, "kDLCUDA:0, expected kDLCPU");
    make_foreign(&f);
    f.managed.dl_tensor.ndim = 9;
    CHECK_CODE(weir_tensor_from_dlpack(engine, &f.managed, 0, &tensor), WEIR_INVALID_ARGUMENT, "ndim is 9");
    make_foreign(&f);
    f.managed.dl_tensor.byte_offset = 2;
    CHECK_CODE(weir_tensor_from_dlpack(engine, &f.managed, 0, &tensor), WEIR_INVALID_ARGUMENT, "data is not aligned to 4 bytes");
    CHECK_EQ(f.deleted, 0);
    weir_engine_release(engine);
}

static void *delete_here(void *arg) {
    DLManagedTensorVersioned *managed = (DLManagedTensorVersioned *)arg;
    managed->deleter(managed);
    return NULL;
}

static void test_export(void) {
    weir_engine *engine = make_engine(NULL);
    const struct {
        weir_dtype dtype;
        uint8_t code, bits;
    } types[] = {{WEIR_F32, kDLFloat, 32}, {WEIR_S32, kDLInt, 32},     {WEIR_U8, kDLUInt, 8}, {WEIR_S8, kDLInt, 8},
                 {WEIR_F16, kDLFloat, 16}, {WEIR_BF16, kDLBfloat, 16}, {WEIR_BOOL, kDLBool, 8}, {WEIR_S64, kDLInt, 64}};
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
        weir_tensor *tensor = make_tensor(engine, make_desc(types[t].dtype, 3, 4, 1, 5)), *again = NULL;
        DLManagedTensorVersioned *managed = NULL;
        CHECK_OK(weir_tensor_to_dlpack(tensor, NULL, NULL, WEIR_DLPACK_READ_ONLY, &managed));
        const DLTensor *dl = &managed->dl_tensor;
        CHECK(managed->version.major == 1 && managed->flags == DLPACK_FLAG_BITMASK_READ_ONLY);
        CHECK(dl->data == floats(tensor) && dl->byte_offset == 0 && dl->device.device_type == kDLCPU && dl->ndim == 3);
        CHECK(dl->dtype.code == types[t].code && dl->dtype.bits == types[t].bits && dl->dtype.lanes == 1);
        CHECK(dl->shape[0] == 4 && dl->shape[1] == 1 && dl->shape[2] == 5);
        CHECK(dl->strides[0] == 5 && dl->strides[1] == 5 && dl->strides[2] == 1);
        /* The export keeps the memory, and another thread may end it. */
        weir_tensor_release(tensor);
        CHECK_OK(weir_tensor_from_dlpack(engine, managed, WEIR_DLPACK_READ_ONLY, &again));
        CHECK(floats(again) == dl->data);
        weir_tensor_release(again);
    }
    weir_tensor *tensor = make_tensor(engine, vector_desc(6));
    DLManagedTensorVersioned *copy = NULL;
    DLManagedTensor *legacy = NULL;
    pthread_t thread;
    fill(tensor, 3);
    CHECK_OK(weir_tensor_to_dlpack(tensor, NULL, NULL, WEIR_DLPACK_COPY, &copy));
    CHECK(copy->flags == DLPACK_FLAG_BITMASK_IS_COPIED && copy->dl_tensor.data != floats(tensor));
    CHECK(memcmp(copy->dl_tensor.data, floats(tensor), 24) == 0);
    CHECK_EQ(pthread_create(&thread, NULL, delete_here, copy), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_OK(weir_tensor_to_dlpack_legacy(tensor, NULL, NULL, 0, &legacy));
    weir_tensor_release(tensor);
    weir_engine_release(engine);
    CHECK(((float *)legacy->dl_tensor.data)[1] == (float)((7 + 39) % 17 - 8));
    legacy->deleter(legacy);
}

/* Without a consumer the export waits for the producer; with one that stream does. */
static void test_streams(void) {
    weir_engine *engine = make_engine(NULL);
    weir_stream *producer = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "producer");
    weir_stream *consumer = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "consumer");
    weir_tensor *tensor = make_tensor(engine, vector_desc(4));
    DLManagedTensorVersioned *managed = NULL;
    gate g = {0};
    atomic_int ran = 0;
    CHECK_OK(weir_enqueue_task(producer, pass_gate, &g, NULL));
    CHECK_OK(weir_tensor_to_dlpack(tensor, producer, consumer, 0, &managed)); /* does not block */
    CHECK_OK(weir_enqueue_task(consumer, count_run, &ran, NULL));
    sleep_ms(5);
    CHECK_EQ(ran, 0);
    open_gate(&g);
    CHECK_OK(weir_stream_synchronize(consumer, WEIR_TIMEOUT_INFINITE));
    CHECK_EQ(ran, 1);
    managed->deleter(managed);
    for (int i = 0; i < 50; i++) CHECK_OK(weir_enqueue_task(producer, count_run, &ran, NULL));
    CHECK_OK(weir_tensor_to_dlpack(tensor, producer, NULL, 0, &managed));
    CHECK_EQ(ran, 51);
    managed->deleter(managed);
    CHECK_OK(weir_enqueue_task(producer, fail_with_data_loss, NULL, NULL));
    CHECK_CODE(weir_tensor_to_dlpack(tensor, producer, NULL, 0, &managed), WEIR_DATA_LOSS, "stream 'producer'");
    CHECK(managed == NULL);
    weir_tensor_release(tensor);
    weir_stream_release(producer);
    weir_stream_release(consumer);
    weir_engine_release(engine);
}

/* Memory of a device's goes out and comes back without being touched. */
static void test_device(void) {
    weir_engine *cpu = make_engine(NULL), *device = NULL;
    CHECK_OK(weir_engine_create(WEIR_ENGINE_EMULATED, 3, NULL, &device));
    weir_stream *stream = NULL;
    CHECK_OK(weir_stream_create(device, 0, NULL, &stream));
    weir_tensor *host = make_tensor(cpu, vector_desc(6)), *there = make_tensor(device, vector_desc(6)), *again = NULL;
    DLManagedTensorVersioned *managed = NULL;
    float values[6];
    fill(host, 5);
    memcpy(values, floats(host), sizeof values);
    CHECK_OK(weir_enqueue_copy(stream, host, there));
    CHECK_OK(weir_tensor_to_dlpack(there, stream, NULL, 0, &managed));
    CHECK(managed->dl_tensor.device.device_type == kDLExtDev && managed->dl_tensor.device.device_id == 3);
    CHECK_CODE(weir_tensor_from_dlpack(cpu, managed, 0, &again), WEIR_INVALID_ARGUMENT,
               "managed is in the memory of kDLExtDev:3, expected kDLCPU for engine cpu:0");
    CHECK_CODE(weir_tensor_from_dlpack(device, managed, WEIR_DLPACK_COPY, &again), WEIR_UNIMPLEMENTED,
               "flags has WEIR_DLPACK_COPY for memory of engine emulated:3");
    CHECK_OK(weir_tensor_from_dlpack(device, managed, 0, &again));
    weir_tensor_release(there);
    memset(floats(host), 0, sizeof values);
    CHECK_OK(weir_enqueue_copy(stream, again, host));
    /* The import, and with it the export, stay until the device is done. */
    weir_tensor_release(again);
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    CHECK(memcmp(floats(host), values, sizeof values) == 0);

    foreign f;
    make_foreign(&f);
    CHECK_CODE(weir_tensor_from_dlpack(device, &f.managed, 0, &again), WEIR_INVALID_ARGUMENT,
               "managed is in the memory of kDLCPU, expected kDLExtDev:3 for engine emulated:3");
    f.managed.dl_tensor.device.device_type = kDLCUDAHost;
    CHECK_OK(weir_tensor_from_dlpack(cpu, &f.managed, 0, &again));
    weir_tensor_release(again);
    weir_tensor_release(host);
    weir_stream_release(stream);
    weir_engine_release(device);
    weir_engine_release(cpu);
}

int main(void) {
    CHECK_OK(weir_emulated_register());
    weir_runtime_info before = runtime_info();
    test_device();
    test_import();
    test_export();
    test_streams();
    check_released(&before);
    puts("tensors go out and come in, and each is let go of once");
    return 0;
}

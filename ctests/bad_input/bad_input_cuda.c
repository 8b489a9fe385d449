/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Bad input for native handles, and for CUDA as far as it is refused without a device. A build without CUDA refuses the
 * same with the same status.
 */

#include <weir/device.h>
#include <weir/cuda.h>

#include "bad_input.h"

static void rows_of_handles(void) {
    ROW(weir_engine_get_native_handle, (NULL, &out.u64), INVALID, "engine is NULL");
    ROW(weir_engine_get_native_handle, (WRONG(tensor), &out.u64), INVALID, "engine: expected an engine");
    ROW(weir_engine_get_native_handle, (good.engine, NULL), INVALID, "out_handle is NULL");
    ROW(weir_engine_get_native_handle, (good.engine, &out.u64), WEIR_UNIMPLEMENTED, "engine cpu:0 has no native handles");
    ROW(weir_stream_get_native_handle, (NULL, &out.u64), INVALID, "stream is NULL");
    ROW(weir_stream_get_native_handle, (WRONG(engine), &out.u64), INVALID, "stream: expected a stream");
    ROW(weir_stream_get_native_handle, (good.stream, NULL), INVALID, "out_handle is NULL");
    ROW(weir_stream_get_native_handle, (good.stream, &out.u64), WEIR_UNIMPLEMENTED, "engine cpu:0 has no native handles");
    ROW(weir_event_get_native_handle, (NULL, &out.u64), INVALID, "event is NULL");
    ROW(weir_event_get_native_handle, (WRONG(engine), &out.u64), INVALID, "event: expected an event");
    ROW(weir_event_get_native_handle, (good.event, NULL), INVALID, "out_handle is NULL");
    ROW(weir_event_get_native_handle, (good.event, &out.u64), WEIR_UNIMPLEMENTED, "engine cpu:0 has no native handles");
}

static void rows_of_cuda(void) {
    weir_cuda_device_info info = {.struct_size = sizeof info};
    ROW(weir_cuda_get_device_info, (NULL, &info), INVALID, "engine is NULL");
    ROW(weir_cuda_get_device_info, (WRONG(tensor), &info), INVALID, "engine: expected an engine");
    ROW(weir_cuda_get_device_info, (good.engine, NULL), INVALID, "out_info is NULL");
    ROW(weir_cuda_get_device_info, (good.engine, &info), WEIR_UNIMPLEMENTED, "engine cpu:0: ");

    weir_engine_attr *attr = NULL;
    CHECK_OK(weir_engine_attr_create(WEIR_ENGINE_EMULATED, &attr));
    ROW(weir_engine_attr_set_cuda_context, (NULL, NULL), INVALID, "attr is NULL");
    ROW(weir_engine_attr_set_cuda_context, (WRONG(engine), NULL), INVALID, "attr: expected an engine_attr, got an engine");
    ROW(weir_engine_attr_set_cuda_context, (attr, &info), WEIR_UNIMPLEMENTED, "attr: ");
    weir_engine_attr_destroy(attr);

    ROW(weir_stream_wrap_cuda, (NULL, NULL, NULL, NEW(stream)), INVALID, "engine is NULL");
    ROW(weir_stream_wrap_cuda, (WRONG(tensor), NULL, NULL, NEW(stream)), INVALID, "engine: expected an engine");
    ROW(weir_stream_wrap_cuda, (good.engine, NULL, WRONG(engine), NEW(stream)), INVALID, "attr: expected a stream_attr, got an engine");
    ROW(weir_stream_wrap_cuda, (good.engine, NULL, NULL, NULL), INVALID, "out_stream is NULL");
    ROW(weir_stream_wrap_cuda, (good.engine, NULL, NULL, NEW(stream)), WEIR_UNIMPLEMENTED, "engine cpu:0: ");

    ROW(weir_stream_wait_cuda_event, (NULL, &info), INVALID, "stream is NULL");
    ROW(weir_stream_wait_cuda_event, (WRONG(engine), &info), INVALID, "stream: expected a stream");
    ROW(weir_stream_wait_cuda_event, (good.stream, &info), WEIR_UNIMPLEMENTED, "engine cpu:0: ");
    ROW(weir_stream_record_cuda_event, (NULL, &info), INVALID, "stream is NULL");
    ROW(weir_stream_record_cuda_event, (WRONG(engine), &info), INVALID, "stream: expected a stream");
    ROW(weir_stream_record_cuda_event, (good.stream, &info), WEIR_UNIMPLEMENTED, "engine cpu:0: ");
}

static void rows_of_kernels(void) {
    weir_tensor_desc descs[1] = {vector_desc(2)};
    weir_cuda_kernel_desc d = {.struct_size = sizeof d, .source = "", .entry = "double_all", .num_outputs = 1, .outputs = descs};
    ROW(weir_kernel_create_cuda, (NULL, &d, NULL, NEW(kernel)), INVALID, "engine is NULL");
    ROW(weir_kernel_create_cuda, (WRONG(tensor), &d, NULL, NEW(kernel)), INVALID, "engine: expected an engine");
    ROW(weir_kernel_create_cuda, (good.engine, NULL, NULL, NEW(kernel)), INVALID, "desc is NULL");
    ROW(weir_kernel_create_cuda, (good.engine, UNALIGNED, NULL, NEW(kernel)), INVALID, "desc is not aligned");
    ROW(weir_kernel_create_cuda, (good.engine, &d, WRONG(engine), NEW(kernel)), INVALID, "attr: expected a kernel_attr, got an engine");
    ROW(weir_kernel_create_cuda, (good.engine, &d, NULL, NULL), INVALID, "out_kernel is NULL");
    ROW(weir_kernel_create_cuda, (good.engine, &d, NULL, NEW(kernel)), WEIR_UNIMPLEMENTED, "engine cpu:0: ");
    d.struct_size = 8;
    ROW(weir_kernel_create_cuda, (good.engine, &d, NULL, NEW(kernel)), INVALID, "desc->struct_size is 8");
}

void bad_input_cuda(void) {
    rows_of_handles();
    rows_of_cuda();
    rows_of_kernels();
}

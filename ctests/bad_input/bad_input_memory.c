/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Bad input for allocators, and for the memory of engines.
 */

#include <weir/memory.h>
#include <weir/inspect.h>

#include "bad_input.h"

static void *no_memory(void *ctx, size_t bytes, size_t alignment) {
    (void)ctx, (void)bytes, (void)alignment;
    return NULL;
}

static void no_return(void *ctx, void *data, size_t bytes, size_t alignment) {
    (void)ctx, (void)data, (void)bytes, (void)alignment;
}

static void rows_of_allocators(void) {
    weir_allocator_vtable vtable = {.struct_size = sizeof vtable, .allocate = no_memory, .deallocate = no_return};
    weir_allocator_vtable wrong = vtable;
    CHECK_OK(weir_allocator_create(&vtable, NULL, &good.allocator));
    ROW(weir_allocator_create, (NULL, NULL, NEW(allocator)), INVALID, "vtable is NULL");
    ROW(weir_allocator_create, (&vtable, NULL, NULL), INVALID, "out_allocator is NULL");
    wrong.struct_size = 8;
    ROW(weir_allocator_create, (&wrong, NULL, NEW(allocator)), INVALID, "vtable->struct_size is 8");
    wrong = vtable, wrong.flags = 2;
    ROW(weir_allocator_create, (&wrong, NULL, NEW(allocator)), INVALID, "vtable->flags has unknown bits: 0x2");
    wrong = vtable, wrong.alignment = 96;
    ROW(weir_allocator_create, (&wrong, NULL, NEW(allocator)), INVALID, "vtable->alignment is 96, expected 0 or a power of two");
    wrong = vtable, wrong.alignment = SIZE_MAX;
    ROW(weir_allocator_create, (&wrong, NULL, NEW(allocator)), INVALID, "vtable->alignment is ");
    wrong = vtable, wrong.allocate = NULL;
    ROW(weir_allocator_create, (&wrong, NULL, NEW(allocator)), INVALID, "vtable->allocate is NULL");
    wrong = vtable, wrong.deallocate = NULL;
    ROW(weir_allocator_create, (&wrong, NULL, NEW(allocator)), INVALID, "vtable->deallocate is NULL");
    ROW(weir_allocator_retain, (NULL), INVALID, "allocator is NULL");
    ROW(weir_allocator_retain, (WRONG(engine)), INVALID, "allocator: expected an allocator, got an engine");
    ROW(weir_allocator_release, (NULL));
    ROW(weir_allocator_release, (WRONG(engine)));
}

static void rows_of_settings(void) {
    ROW(weir_engine_attr_set_allocator, (NULL, good.allocator), INVALID, "attr is NULL");
    ROW(weir_engine_attr_set_allocator, (good.engine_attr, WRONG(tensor)),
        INVALID, "allocator: expected an allocator, got a tensor");
    ROW(weir_engine_attr_get_allocator, (NULL, NEW(allocator)), INVALID, "attr is NULL");
    ROW(weir_engine_attr_get_allocator, (good.engine_attr, NULL), INVALID, "out_allocator is NULL");
    ROW(weir_engine_attr_set_memory_limit, (NULL, 1), INVALID, "attr is NULL");
    ROW(weir_engine_attr_set_memory_limit, (WRONG(engine), 1), INVALID, "attr: expected an engine_attr");
    ROW(weir_engine_attr_get_memory_limit, (NULL, &out.u64), INVALID, "attr is NULL");
    ROW(weir_engine_attr_get_memory_limit, (good.engine_attr, NULL), INVALID, "out_bytes is NULL");
    ROW(weir_engine_attr_set_memory_mode, (NULL, 0), INVALID, "attr is NULL");
    ROW(weir_engine_attr_set_memory_mode, (good.engine_attr, 3), INVALID, "mode is 3, which is no memory mode");
    ROW(weir_engine_attr_get_memory_mode, (NULL, &out.u32), INVALID, "attr is NULL");
    ROW(weir_engine_attr_get_memory_mode, (good.engine_attr, NULL), INVALID, "out_mode is NULL");
}

static void rows_of_engines(void) {
    weir_memory_info info = {.struct_size = sizeof info};
    char buffer[8];
    ROW(weir_engine_get_memory_info, (NULL, &info), INVALID, "engine is NULL");
    ROW(weir_engine_get_memory_info, (WRONG(stream), &info), INVALID, "engine: expected an engine, got a stream");
    ROW(weir_engine_get_memory_info, (good.engine, NULL), INVALID, "out_info is NULL");
    info.struct_size = 16;
    ROW(weir_engine_get_memory_info, (good.engine, &info), INVALID, "out_info->struct_size is 16");
    ROW(weir_engine_reset_memory_peak, (NULL), INVALID, "engine is NULL");
    ROW(weir_engine_trim, (NULL, 0), INVALID, "engine is NULL");
    ROW(weir_engine_trim, (WRONG(engine_attr), 0), INVALID, "engine: expected an engine, got an engine_attr");
    ROW(weir_engine_dump_memory, (NULL, buffer, sizeof buffer, &out.size), INVALID, "engine is NULL");
    ROW(weir_engine_dump_memory, (good.engine, NULL, 8, &out.size), INVALID, "buffer is NULL, but capacity is 8");
    ROW(weir_engine_dump_memory, (good.engine, NULL, 0, NULL), INVALID, "out_length is NULL");
    ROW(weir_engine_dump_memory, (good.engine, buffer, sizeof buffer, NULL), RANGE, "capacity is 8, the text needs ");
}

static void rows_of_buffers(void) {
    const weir_tensor_desc desc = vector_desc(4);
    weir_tensor_desc wrong = desc;
    char memory[32];
    CHECK_OK(weir_buffer_create(good.engine, 32, NULL, &good.buffer));
    ROW(weir_buffer_create, (NULL, 8, NULL, NEW(buffer)), INVALID, "engine is NULL");
    ROW(weir_buffer_create, (WRONG(stream), 8, NULL, NEW(buffer)), INVALID, "engine: expected an engine, got a stream");
    ROW(weir_buffer_create, (good.engine, 8, NULL, NULL), INVALID, "out_buffer is NULL");
    ROW(weir_buffer_create, (good.engine, SIZE_MAX, NULL, NEW(buffer)), WEIR_RESOURCE_EXHAUSTED, "for buffer: ");
    ROW(weir_buffer_create, (good.engine, 8, OVER(NULL), NEW(buffer)), INVALID, "data is NULL");
    ROW(weir_buffer_create, (good.engine, SIZE_MAX, OVER(memory), NEW(buffer)), RANGE, "bytes is 18446744073709551615");
    ROW(weir_buffer_create, (good.engine, 16, OVER_BYTES(memory, 8), NEW(buffer)),
        RANGE, "from->bytes is 8, and 16 are needed");
    ROW(weir_buffer_create, (good.engine, 8, ON_BUFFER(good.buffer, 0), NEW(buffer)),
        INVALID, "from->source is BUFFER, which is for tensors");
    ROW(weir_buffer_create, (good.engine, 8, MEMORY(.source = 4), NEW(buffer)), INVALID, "from->source is 4");
    ROW(weir_buffer_retain, (NULL), INVALID, "buffer is NULL");
    ROW(weir_buffer_retain, (WRONG(tensor)), INVALID, "buffer: expected a buffer, got a tensor");
    ROW(weir_buffer_release, (NULL));
    ROW(weir_buffer_release, (WRONG(tensor)));
    ROW(weir_buffer_get_data, (NULL, NEW(data)), INVALID, "buffer is NULL");
    ROW(weir_buffer_get_data, (good.buffer, NULL), INVALID, "out_data is NULL");
    ROW(weir_buffer_get_size, (WRONG(tensor), &out.size), INVALID, "buffer: expected a buffer");
    ROW(weir_buffer_get_size, (good.buffer, NULL), INVALID, "out_bytes is NULL");
    ROW(weir_buffer_get_engine, (NULL, NEW(engine)), INVALID, "buffer is NULL");
    ROW(weir_buffer_get_engine, (good.buffer, NULL), INVALID, "out_engine is NULL");
    ROW(weir_tensor_create, (good.engine, &desc, ON_BUFFER(NULL, 0), NEW(tensor)), INVALID, "from->buffer is NULL");
    ROW(weir_tensor_create, (good.engine, &desc, ON_BUFFER(WRONG(tensor), 0), NEW(tensor)),
        INVALID, "from->buffer: expected a buffer, got a tensor");
    ROW(weir_tensor_create, (good.engine, &desc, ON_BUFFER(good.buffer, 20), NEW(tensor)),
        RANGE, "f32[4] at offset 20 needs 16 bytes, and the buffer has 32");
    ROW(weir_tensor_create, (good.engine, &desc, ON_BUFFER(good.buffer, SIZE_MAX), NEW(tensor)), RANGE, "f32[4] at offset ");
    ROW(weir_tensor_create, (good.engine, &desc, ON_BUFFER(good.buffer, 2), NEW(tensor)), INVALID, "data is not aligned to 4 bytes");
    wrong.dims[0] = -2;
    ROW(weir_tensor_create, (good.engine, &wrong, ON_BUFFER(good.buffer, 0), NEW(tensor)), INVALID, "dims[0] is -2");
    wrong.dims[0] = WEIR_DIM_DYNAMIC;
    ROW(weir_tensor_create, (good.engine, &wrong, ON_BUFFER(good.buffer, 0), NEW(tensor)),
        INVALID, "desc: f32[?] leaves a dimension open");
}

static void rows_of_pinned(void) {
    const weir_tensor_desc desc = vector_desc(4);
    weir_tensor_desc wrong = desc;
    weir_engine_attr *of_device = NULL;
    weir_engine *device = NULL;
    CHECK_OK(weir_engine_attr_create(WEIR_ENGINE_EMULATED, &of_device));
    CHECK_OK(weir_engine_create(WEIR_ENGINE_EMULATED, 0, of_device, &device));
    ROW(weir_tensor_create, (good.engine, &desc, PINNED_FOR(NULL), NEW(tensor)), INVALID, "from->device is NULL");
    ROW(weir_tensor_create, (good.engine, &desc, PINNED_FOR(WRONG(stream)), NEW(tensor)),
        INVALID, "from->device: expected an engine, got a stream");
    ROW(weir_tensor_create, (device, &desc, PINNED_FOR(good.engine), NEW(tensor)),
        INVALID, "engine is emulated:0, expected a cpu engine");
    ROW(weir_tensor_create, (device, &desc, ON_BUFFER(good.buffer, 0), NEW(tensor)),
        INVALID, "from->buffer is of another engine (cpu:0) than the tensor (emulated:0)");
    wrong.dims[0] = -2;
    ROW(weir_tensor_create, (good.engine, &wrong, PINNED_FOR(device), NEW(tensor)), INVALID, "dims[0] is -2");
    ROW(weir_buffer_create, (good.engine, 8, PINNED_FOR(NULL), NEW(buffer)), INVALID, "from->device is NULL");
    ROW(weir_buffer_create, (device, 8, PINNED_FOR(device), NEW(buffer)), INVALID, "engine is emulated:0, expected a cpu engine");
    ROW(weir_buffer_create, (good.engine, SIZE_MAX, PINNED_FOR(device), NEW(buffer)), WEIR_RESOURCE_EXHAUSTED, "for buffer: ");
    ROW(weir_buffer_pin, (NULL, device), INVALID, "buffer is NULL");
    ROW(weir_buffer_pin, (good.buffer, NULL), INVALID, "device is NULL");
    ROW(weir_buffer_pin, (good.buffer, good.engine), WEIR_UNIMPLEMENTED, "engine cpu:0 does not pin memory");
    ROW(weir_buffer_is_pinned, (NULL, device, &out.i32), INVALID, "buffer is NULL");
    ROW(weir_buffer_is_pinned, (good.buffer, NULL, &out.i32), INVALID, "device is NULL");
    ROW(weir_buffer_is_pinned, (good.buffer, device, NULL), INVALID, "out_pinned is NULL");
    ROW(weir_tensor_is_pinned, (WRONG(buffer), device, &out.i32), INVALID, "tensor: expected a tensor");
    ROW(weir_tensor_is_pinned, (good.tensor, NULL, &out.i32), INVALID, "device is NULL");
    ROW(weir_tensor_is_pinned, (good.tensor, device, NULL), INVALID, "out_pinned is NULL");
    ROW(weir_engine_attr_set_pinned_limit, (NULL, 1), INVALID, "attr is NULL");
    ROW(weir_engine_attr_set_pinned_limit, (good.engine_attr, 1), PRECONDITION, "attr is for a cpu engine");
    ROW(weir_engine_attr_get_pinned_limit, (of_device, NULL), INVALID, "out_bytes is NULL");
    weir_wait_policy policy = 0;
    ROW(weir_engine_attr_set_wait_policy, (NULL, WEIR_WAIT_BLOCK, 0), INVALID, "attr is NULL");
    ROW(weir_engine_attr_set_wait_policy, (good.engine_attr, WEIR_WAIT_BLOCK, 0), PRECONDITION, "attr is for a cpu engine, which has no device");
    ROW(weir_engine_attr_set_wait_policy, (of_device, 3, 0), INVALID, "policy is 3, which is no wait policy");
    ROW(weir_engine_attr_set_wait_policy, (of_device, WEIR_WAIT_DEFAULT, 5), INVALID, "spin_ns is 5, WEIR_WAIT_DEFAULT takes none");
    ROW(weir_engine_attr_set_wait_policy, (of_device, WEIR_WAIT_YIELD, 1000000001), INVALID, "spin_ns is 1000000001, expected at most");
    ROW(weir_engine_attr_get_wait_policy, (of_device, NULL, &out.u64), INVALID, "out_policy is NULL");
    ROW(weir_engine_attr_get_wait_policy, (of_device, &policy, NULL), INVALID, "out_spin_ns is NULL");
    ROW(weir_engine_attr_get_wait_policy, (good.engine_attr, &policy, &out.u64), PRECONDITION, "attr is for a cpu engine");
    ROW(weir_engine_attr_get_pinned_limit, (good.engine_attr, &out.u64), PRECONDITION, "attr is for a cpu engine");
    weir_engine_release(device);
    weir_engine_attr_destroy(of_device);
}

void bad_input_memory(void) {
    rows_of_allocators();
    rows_of_settings();
    rows_of_engines();
    rows_of_buffers();
    rows_of_pinned();
    weir_buffer_release(good.buffer);
    weir_allocator_release(good.allocator);
}

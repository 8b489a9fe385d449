/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Bad input for tensors.
 */

#include "bad_input.h"

static void never_released(void *ctx) {
    (void)ctx;
    CHECK(!"what was never taken is released");
}

void bad_input_tensor(void) {
    weir_tensor_desc four = vector_desc(4), huge = make_desc(WEIR_F32, 3, INT64_MAX, 2, 2), deep = vector_desc(4);
    weir_tensor_desc negative = matrix_desc(3, -2), strange = make_desc(9, 1, 4, 0, 0);
    float memory[8] = {0};
    deep.rank = 9;

    ROW(weir_tensor_create, (NULL, &four, NULL, NEW(tensor)), INVALID, "engine is NULL");
    ROW(weir_tensor_create, (good.engine, NULL, NULL, NEW(tensor)), INVALID, "desc is NULL");
    ROW(weir_tensor_create, (good.engine, &four, NULL, NULL), INVALID, "out_tensor is NULL");
    ROW(weir_tensor_create, (good.engine, &four, NULL, UNALIGNED), INVALID, "out_tensor is not aligned");
    ROW(weir_tensor_get_size, (good.tensor, UNALIGNED), INVALID, "out_bytes is not aligned");
    ROW(weir_engine_get_attr, (good.engine, UNALIGNED), INVALID, "out_attr is not aligned");
    ROW(weir_tensor_create, (WRONG(stream), &four, NULL, NEW(tensor)), INVALID, "engine: expected an engine, got a stream");
    ROW(weir_tensor_create, (good.engine, &strange, NULL, NEW(tensor)), INVALID, "dtype is 9");
    ROW(weir_tensor_create, (good.engine, &deep, NULL, NEW(tensor)), INVALID, "rank is 9");
    ROW(weir_tensor_create, (good.engine, &negative, NULL, NEW(tensor)), INVALID, "dims[1] is -2");
    ROW(weir_tensor_create, (good.engine, &huge, NULL, NEW(tensor)), RANGE, "f32[9223372036854775807,2,2]");
    weir_tensor_desc open = matrix_desc(3, WEIR_DIM_DYNAMIC), less = open, any = open;
    less.dims[0] = -2;
    any.dtype = WEIR_DTYPE_ANY;
    ROW(weir_tensor_create, (good.engine, &less, NULL, NEW(tensor)), INVALID, "desc: dims[0] is -2");
    ROW(weir_tensor_create, (good.engine, &any, NULL, NEW(tensor)), INVALID, "desc: dtype is 0");
    ROW(weir_tensor_create, (good.engine, &any, OVER_BYTES(memory, 32), NEW(tensor)), INVALID, "desc: dtype is 0");
    ROW(weir_tensor_create, (good.engine, &open, OVER_BYTES(NULL, 32), NEW(tensor)), INVALID, "data is NULL");
    ROW(weir_tensor_create, (good.engine, &open, OVER_BYTES((char *)memory + 2, 32), NEW(tensor)),
        INVALID, "data is not aligned to 4 bytes");
    ROW(weir_tensor_create, (good.engine, &open, PINNED_FOR(good.engine), NEW(tensor)),
        INVALID, "desc: f32[3,?] leaves a dimension open");
    ROW(weir_tensor_create, (good.engine, &four, OVER_UNTIL(NULL, never_released, NULL), NEW(tensor)),
        INVALID, "data is NULL");
    ROW(weir_tensor_create, (good.engine, &four, OVER_UNTIL((char *)memory + 2, never_released, NULL), NEW(tensor)),
        INVALID, "data is not aligned to 4 bytes");
    ROW(weir_tensor_create, (good.engine, &four, OVER_BYTES(memory, 12), NEW(tensor)),
        RANGE, "from->bytes is 12, and 16 are needed");
    ROW(weir_tensor_create, (good.engine, &strange, OVER_UNTIL(memory, never_released, NULL), NEW(tensor)),
        INVALID, "desc: dtype is 9");
    ROW(weir_tensor_create, (good.engine, &deep, OVER_UNTIL(memory, never_released, NULL), NEW(tensor)),
        INVALID, "desc: rank is 9");
    ROW(weir_tensor_create, (good.engine, &huge, OVER_UNTIL(memory, never_released, NULL), NEW(tensor)),
        RANGE, "f32[9223372036854775807");
    ROW(weir_tensor_create, (good.engine, &four, MEMORY(.source = 3), NEW(tensor)),
        INVALID, "from->source is 3, expected 0 (FOREIGN), 1 (BUFFER) or 2 (PINNED)");
    ROW(weir_tensor_create, (good.engine, &four, MEMORY(.data = memory, .reserved = 1), NEW(tensor)),
        INVALID, "from->reserved is 1, expected 0");
    ROW(weir_tensor_create, (good.engine, &four, MEMORY(.data = memory, .offset = 4), NEW(tensor)),
        INVALID, "from->source is FOREIGN, and from sets members of another source");
    ROW(weir_tensor_create, (good.engine, &four, MEMORY(.source = WEIR_MEMORY_BUFFER, .data = memory), NEW(tensor)),
        INVALID, "from->source is BUFFER, and from sets members of another source");
    ROW(weir_tensor_create, (good.engine, &four, MEMORY(.source = WEIR_MEMORY_PINNED, .bytes = 1), NEW(tensor)),
        INVALID, "from->source is PINNED, and from sets members of another source");
    ROW(weir_tensor_create, (good.engine, &four, &(weir_memory){.struct_size = 8}, NEW(tensor)),
        INVALID, "from->struct_size is 8");
    ROW(weir_tensor_retain, (NULL), INVALID, "tensor is NULL");
    ROW(weir_tensor_retain, (WRONG(engine)), INVALID, "tensor: expected a tensor, got an engine");
    ROW(weir_tensor_get_desc, (NULL, &out.desc), INVALID, "tensor is NULL");
    ROW(weir_tensor_get_desc, (good.tensor, NULL), INVALID, "out_desc is NULL");
    ROW(weir_tensor_get_desc, (WRONG(event), &out.desc), INVALID, "tensor: expected a tensor, got an event");
    ROW(weir_tensor_get_data, (NULL, NEW(data)), INVALID, "tensor is NULL");
    ROW(weir_tensor_get_data, (good.tensor, NULL), INVALID, "out_data is NULL");
    ROW(weir_tensor_get_data, (WRONG(kernel), NEW(data)), INVALID, "tensor: expected a tensor, got a kernel");
    ROW(weir_tensor_get_size, (NULL, &out.size), INVALID, "tensor is NULL");
    ROW(weir_tensor_get_size, (good.tensor, NULL), INVALID, "out_bytes is NULL");
    ROW(weir_tensor_get_size, (NO_OBJECT, &out.size), INVALID, "tensor: expected a tensor, got no weir object");
    ROW(weir_tensor_get_engine, (NULL, NEW(engine)), INVALID, "tensor is NULL");
    ROW(weir_tensor_get_engine, (good.tensor, NULL), INVALID, "out_engine is NULL");
    ROW(weir_tensor_get_engine, (WRONG(engine), NEW(engine)), INVALID, "tensor: expected a tensor, got an engine");
}

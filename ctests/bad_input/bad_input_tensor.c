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
    weir_tensor_desc negative = matrix_desc(3, -1), strange = make_desc(9, 1, 4, 0, 0);
    float memory[8] = {0};
    deep.rank = 9;

    ROW(weir_tensor_create, (NULL, &four, NEW(tensor)), INVALID, "engine is NULL");
    ROW(weir_tensor_create, (good.engine, NULL, NEW(tensor)), INVALID, "desc is NULL");
    ROW(weir_tensor_create, (good.engine, &four, NULL), INVALID, "out_tensor is NULL");
    ROW(weir_tensor_create, (WRONG(stream), &four, NEW(tensor)), INVALID, "engine: expected an engine, got a stream");
    ROW(weir_tensor_create, (good.engine, &strange, NEW(tensor)), INVALID, "dtype is 9");
    ROW(weir_tensor_create, (good.engine, &deep, NEW(tensor)), INVALID, "rank is 9");
    ROW(weir_tensor_create, (good.engine, &negative, NEW(tensor)), INVALID, "dims[1] is -1");
    ROW(weir_tensor_create, (good.engine, &huge, NEW(tensor)), RANGE, "f32[9223372036854775807,2,2]");
    weir_tensor_desc open = matrix_desc(3, WEIR_DIM_DYNAMIC), less = matrix_desc(3, -2), any = open;
    any.dtype = WEIR_DTYPE_ANY;
    ROW(weir_tensor_create_dynamic, (NULL, &open, NEW(tensor)), INVALID, "engine is NULL");
    ROW(weir_tensor_create_dynamic, (WRONG(stream), &open, NEW(tensor)), INVALID, "engine: expected an engine, got a stream");
    ROW(weir_tensor_create_dynamic, (good.engine, NULL, NEW(tensor)), INVALID, "desc is NULL");
    ROW(weir_tensor_create_dynamic, (good.engine, &open, NULL), INVALID, "out_tensor is NULL");
    ROW(weir_tensor_create_dynamic, (good.engine, &four, NEW(tensor)), INVALID, "desc: f32[4] leaves no dimension open");
    ROW(weir_tensor_create_dynamic, (good.engine, &less, NEW(tensor)), INVALID, "desc: dims[1] is -2");
    ROW(weir_tensor_create_dynamic, (good.engine, &any, NEW(tensor)), INVALID, "desc: dtype is 0");
    ROW(weir_tensor_create_dynamic, (good.engine, &deep, NEW(tensor)), INVALID, "desc: rank is 9");
    ROW(weir_tensor_create_dynamic_from, (NULL, &open, memory, 32, never_released, NULL, NEW(tensor)), INVALID, "engine is NULL");
    ROW(weir_tensor_create_dynamic_from, (good.engine, NULL, memory, 32, never_released, NULL, NEW(tensor)),
        INVALID, "desc is NULL");
    ROW(weir_tensor_create_dynamic_from, (good.engine, &open, NULL, 32, never_released, NULL, NEW(tensor)),
        INVALID, "data is NULL");
    ROW(weir_tensor_create_dynamic_from, (good.engine, &open, (char *)memory + 2, 32, never_released, NULL, NEW(tensor)),
        INVALID, "data is not aligned to 4 bytes");
    ROW(weir_tensor_create_dynamic_from, (good.engine, &four, memory, 32, never_released, NULL, NEW(tensor)),
        INVALID, "desc: f32[4] leaves no dimension open");
    ROW(weir_tensor_create_dynamic_from, (good.engine, &any, memory, 32, never_released, NULL, NEW(tensor)),
        INVALID, "desc: dtype is 0");
    ROW(weir_tensor_create_dynamic_from, (good.engine, &open, memory, 32, never_released, NULL, NULL),
        INVALID, "out_tensor is NULL");
    ROW(weir_tensor_create_from, (NULL, &four, memory, never_released, NULL, NEW(tensor)), INVALID, "engine is NULL");
    ROW(weir_tensor_create_from, (good.engine, NULL, memory, never_released, NULL, NEW(tensor)),
        INVALID, "desc is NULL");
    ROW(weir_tensor_create_from, (good.engine, &four, NULL, never_released, NULL, NEW(tensor)),
        INVALID, "data is NULL");
    ROW(weir_tensor_create_from, (good.engine, &four, memory, never_released, NULL, NULL),
        INVALID, "out_tensor is NULL");
    ROW(weir_tensor_create_from, (WRONG(kernel), &four, memory, never_released, NULL, NEW(tensor)),
        INVALID, "engine: expected an engine");
    ROW(weir_tensor_create_from, (good.engine, &four, (char *)memory + 2, never_released, NULL, NEW(tensor)),
        INVALID, "data");
    ROW(weir_tensor_create_from, (good.engine, &strange, memory, never_released, NULL, NEW(tensor)),
        INVALID, "dtype is 9");
    ROW(weir_tensor_create_from, (good.engine, &deep, memory, never_released, NULL, NEW(tensor)), INVALID, "rank is 9");
    ROW(weir_tensor_create_from, (good.engine, &negative, memory, never_released, NULL, NEW(tensor)),
        INVALID, "dims[1] is -1");
    ROW(weir_tensor_create_from, (good.engine, &huge, memory, never_released, NULL, NEW(tensor)),
        RANGE, "f32[9223372036854775807");
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

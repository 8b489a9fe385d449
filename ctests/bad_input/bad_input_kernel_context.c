/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Bad input for what the body of a kernel may ask.
 */

#include <weir/task_group.h>

#include "bad_input.h"

static int32_t never_ranged(void *arg, int64_t begin, int64_t end, int32_t slot) {
    (void)arg, (void)begin, (void)end, (void)slot;
    CHECK(!"a region that was refused is run");
    return WEIR_INTERNAL;
}

static int32_t never_boxed(void *arg, const int64_t *begin, const int64_t *end, int32_t slot) {
    (void)arg, (void)begin, (void)end, (void)slot;
    CHECK(!"a region that was refused is run");
    return WEIR_INTERNAL;
}

/* The context lives only while the body runs, so its rows are in one. */
static int32_t rows_of_context(void *user, weir_kernel_context *context) {
    weir_parallel_hint hint = {.struct_size = 31};
    *(int *)user += 1;

    ROW(weir_kernel_context_get_inputs, (NULL, NEW(views), &out.size), INVALID, "context is NULL");
    ROW(weir_kernel_context_get_inputs, (context, NULL, &out.size), INVALID, "out_views is NULL");
    ROW(weir_kernel_context_get_inputs, (context, NEW(views), NULL), INVALID, "out_count is NULL");
    ROW(weir_kernel_context_get_inputs, (WRONG(kernel), NEW(views), &out.size),
        INVALID, "context: expected a kernel_context, got a kernel");
    ROW(weir_kernel_context_get_outputs, (NULL, NEW(views), &out.size), INVALID, "context is NULL");
    ROW(weir_kernel_context_get_outputs, (context, NULL, &out.size), INVALID, "out_views is NULL");
    ROW(weir_kernel_context_get_outputs, (context, NEW(views), NULL), INVALID, "out_count is NULL");
    ROW(weir_kernel_context_get_outputs, (WRONG(run), NEW(views), &out.size),
        INVALID, "context: expected a kernel_context");
    ROW(weir_kernel_context_create_task_group, (NULL, NEW(task_group)), INVALID, "context is NULL");
    ROW(weir_kernel_context_create_task_group, (context, NULL), INVALID, "out_group is NULL");
    ROW(weir_kernel_context_create_task_group, (WRONG(kernel), NEW(task_group)),
        INVALID, "context: expected a kernel_context, got a kernel");
    ROW(weir_kernel_context_get_num_slots, (NULL, &out.i32), INVALID, "context is NULL");
    ROW(weir_kernel_context_get_num_slots, (context, NULL), INVALID, "out_num_slots is NULL");
    ROW(weir_kernel_context_get_num_slots, (NO_OBJECT, &out.i32), INVALID, "context: expected a kernel_context");
    ROW(weir_kernel_context_get_scratch, (NULL, 0, NEW(data)), INVALID, "context is NULL");
    ROW(weir_kernel_context_get_scratch, (context, 0, NULL), INVALID, "out_scratch is NULL");
    ROW(weir_kernel_context_get_scratch, (context, -1, NEW(data)), RANGE, "slot is -1");
    ROW(weir_kernel_context_get_scratch, (context, INT32_MAX, NEW(data)), RANGE, "slot is 2147483647");
    ROW(weir_kernel_context_get_scratch, (WRONG(stream), 0, NEW(data)), INVALID, "context: expected a kernel_context");
    const int64_t extents[2] = {2, -2};
    ROW(weir_kernel_context_parallel_nd, (NULL, 2, extents, NULL, NULL, never_boxed, NULL), INVALID, "context is NULL");
    ROW(weir_kernel_context_parallel_nd, (context, 2, extents, NULL, NULL, never_boxed, NULL), RANGE, "extents[1] is -2");
    ROW(weir_kernel_context_parallel_nd, (context, -1, extents, NULL, NULL, never_boxed, NULL), INVALID, "rank is -1");
    ROW(weir_kernel_context_parallel_nd, (context, 1, extents, NULL, NULL, NULL, NULL), INVALID, "fn is NULL");
    ROW(weir_kernel_context_parallel_nd, (context, 1, extents, NULL, &hint, never_boxed, NULL),
        INVALID, "hint->struct_size is 31");
    ROW(weir_kernel_context_parallel_for, (NULL, 1, NULL, never_ranged, NULL), INVALID, "context is NULL");
    ROW(weir_kernel_context_parallel_for, (context, -1, NULL, never_ranged, NULL), RANGE, "n is -1");
    ROW(weir_kernel_context_parallel_for, (context, 1, NULL, NULL, NULL), INVALID, "fn is NULL");
    ROW(weir_kernel_context_parallel_for, (context, 1, &hint, never_ranged, NULL), INVALID, "hint->struct_size is 31");
    ROW(weir_kernel_context_parallel_for, (WRONG(threadpool), 1, NULL, never_ranged, NULL),
        INVALID, "context: expected a kernel_context");
    weir_program *program = good.program;
    weir_tensor *in = good.tensor, *odd = WRONG(stream), *none = NULL;
    ROW(weir_kernel_context_run_program, (NULL, program, 1, &in, 1, &in, 1), INVALID, "context is NULL");
    ROW(weir_kernel_context_run_program, (WRONG(run), program, 1, &in, 1, &in, 1), INVALID, "context: expected a kernel_context");
    ROW(weir_kernel_context_run_program, (context, NULL, 1, &in, 1, &in, 1), INVALID, "program is NULL");
    ROW(weir_kernel_context_run_program, (context, program, 1, NULL, 1, &in, 1), INVALID, "inputs is NULL");
    ROW(weir_kernel_context_run_program, (context, program, 1, &in, 1, NULL, 1), INVALID, "outputs is NULL");
    ROW(weir_kernel_context_run_program, (context, program, SIZE_MAX, &in, 2, &in, 1), RANGE, "count is");
    ROW(weir_kernel_context_run_program, (context, program, 1, &none, 1, &in, 1), INVALID, "instance 0: inputs[0] is NULL");
    ROW(weir_kernel_context_run_program, (context, program, 1, &odd, 1, &in, 1), INVALID, "inputs[0]: expected a tensor");
    ROW(weir_kernel_context_run_program, (context, program, 1, &in, 1, &in, 0), INVALID, "expected 1 outputs, got 0");
    ROW(weir_kernel_context_allocate_output, (NULL, 0, extents, 1, NEW(data)), INVALID, "context is NULL");
    ROW(weir_kernel_context_allocate_output, (WRONG(tensor), 0, extents, 1, NEW(data)), INVALID,
        "context: expected a kernel_context, got a tensor");
    ROW(weir_kernel_context_allocate_output, (context, 0, extents, 1, NULL), INVALID, "out_data is NULL");
    ROW(weir_kernel_context_allocate_output, (context, 0, NULL, 1, NEW(data)), INVALID, "dims is NULL");
    ROW(weir_kernel_context_allocate_output, (context, 0, extents, 9, NEW(data)), INVALID, "rank is 9");
    ROW(weir_kernel_context_allocate_output, (context, 1, extents, 1, NEW(data)), RANGE, "index is 1, the call has 1 outputs");
    ROW(weir_kernel_context_allocate_output, (context, 0, extents, 1, NEW(data)), WEIR_FAILED_PRECONDITION,
        "output 0 is f32[4], has its memory");
    ROW(weir_kernel_context_is_cancelled, (NULL, &out.i32), INVALID, "context is NULL");
    ROW(weir_kernel_context_is_cancelled, (context, NULL), INVALID, "out_cancelled is NULL");
    ROW(weir_kernel_context_is_cancelled, (WRONG(tensor), &out.i32),
        INVALID, "context: expected a kernel_context, got a tensor");
    ROW(weir_kernel_context_fail, (NULL, WEIR_UNKNOWN, "text"), INVALID, "context is NULL");
    ROW(weir_kernel_context_fail, (WRONG(event), WEIR_UNKNOWN, "text"), INVALID, "context: expected a kernel_context");
    ROW(weir_kernel_context_fail, (context, WEIR_OK, "text"), INVALID, "code is 0");
    ROW(weir_kernel_context_fail, (context, 4711, "text"), INVALID, "code is 4711");
    ROW(weir_kernel_context_fail, (context, WEIR_UNKNOWN, NULL), INVALID, "message is NULL");
    ROW(weir_kernel_context_fail, (context, WEIR_UNKNOWN, BAD_UTF8), INVALID, "message is not UTF-8");
    return WEIR_OK; /* none of the refused calls of fail made it fail */
}

static void rows_of_completion(void) {
    ROW(weir_completion_done, (NULL, WEIR_OK, NULL), INVALID, "done is NULL");
    ROW(weir_completion_done, (WRONG(kernel), WEIR_OK, NULL), INVALID, "done: expected a completion, got no handle of a call");
    ROW(weir_completion_done, (NO_OBJECT, WEIR_OK, NULL), INVALID, "done: expected a completion, got no handle of a call");
}

void bad_input_kernel_context(void) {
    int runs = 0;
    rows_of_completion();
    weir_tensor *in = good.tensor, *result = make_tensor(good.engine, vector_desc(4));
    weir_tensor_desc four = vector_desc(4);
    weir_kernel *kernel = make_unary_kernel(good.engine, "rows", rows_of_context, &runs, &four);
    CHECK_OK(weir_enqueue(good.stream, kernel, &in, 1, &result, 1));
    CHECK_EQ(runs, 1);
    weir_kernel_release(kernel);
    weir_tensor_release(result);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Bad input for what programs keep and bound: partial runs.
 */

#include "bad_input.h"

static void rows_of_partial_runs(void) {
    weir_compile_options *compiling = good.compile_options;
    weir_run_options *options = good.run_options;
    size_t indices[2] = {1, 1};
    const size_t *kept = NULL;

    ROW(weir_compile_options_set_partial_runs, (NULL, 1), INVALID, "options is NULL");
    ROW(weir_compile_options_set_partial_runs, (WRONG(run_options), 1), INVALID, "options is not a compile_options");
    ROW(weir_compile_options_set_partial_runs, (compiling, 257), RANGE, "max_lists is 257, expected at most 256");
    ROW(weir_compile_options_set_partial_runs, (compiling, SIZE_MAX), RANGE, "max_lists");
    ROW(weir_compile_options_get_partial_runs, (NULL, &out.size), INVALID, "options is NULL");
    ROW(weir_compile_options_get_partial_runs, (WRONG(run), &out.size), INVALID, "options is not a compile_options");
    ROW(weir_compile_options_get_partial_runs, (compiling, NULL), INVALID, "out_max_lists is NULL");
    ROW(weir_run_options_set_outputs, (NULL, indices, 1), INVALID, "options is NULL");
    ROW(weir_run_options_set_outputs, (WRONG(run), indices, 1), INVALID, "options is not a run_options (it is a run)");
    ROW(weir_run_options_set_outputs, (options, NULL, 1), INVALID, "indices is NULL, but its length is 1");
    ROW(weir_run_options_set_outputs, (options, indices, SIZE_MAX), RANGE, "indices");
    ROW(weir_run_options_set_outputs, (options, indices, 2), INVALID, "indices: 1 is there twice");
    ROW(weir_run_options_get_outputs, (NULL, &kept, &out.size), INVALID, "options is NULL");
    ROW(weir_run_options_get_outputs, (WRONG(run), &kept, &out.size), INVALID, "options is not a run_options");
    ROW(weir_run_options_get_outputs, (options, NULL, &out.size), INVALID, "out_indices is NULL");
    ROW(weir_run_options_get_outputs, (options, &kept, NULL), INVALID, "out_count is NULL");
}

void bad_input_program(void) {
    rows_of_partial_runs();
}

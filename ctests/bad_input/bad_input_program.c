/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Bad input for partial runs, many runs, and the bound on runs at once.
 */

#include "bad_input.h"

static void rows_of_partial_runs(void) {
    weir_compile_options *compiling = good.compile_options;
    weir_run_options *options = good.run_options;
    size_t indices[2] = {1, 1};
    const size_t *kept = NULL;

    ROW(weir_compile_options_set_partial_runs, (NULL, 1), INVALID, "options is NULL");
    ROW(weir_compile_options_set_partial_runs, (WRONG(run_options), 1), INVALID, "options: expected compile_options");
    ROW(weir_compile_options_set_partial_runs, (compiling, 257), RANGE, "max_lists is 257, expected at most 256");
    ROW(weir_compile_options_set_partial_runs, (compiling, SIZE_MAX), RANGE, "max_lists");
    ROW(weir_compile_options_get_partial_runs, (NULL, &out.size), INVALID, "options is NULL");
    ROW(weir_compile_options_get_partial_runs, (WRONG(run), &out.size), INVALID, "options: expected compile_options");
    ROW(weir_compile_options_get_partial_runs, (compiling, NULL), INVALID, "out_max_lists is NULL");
    ROW(weir_run_options_set_outputs, (NULL, indices, 1), INVALID, "options is NULL");
    ROW(weir_run_options_set_outputs, (WRONG(run), indices, 1), INVALID, "options: expected run_options, got a run");
    ROW(weir_run_options_set_outputs, (options, NULL, 1), INVALID, "indices is NULL, but its length is 1");
    ROW(weir_run_options_set_outputs, (options, indices, SIZE_MAX), RANGE, "indices");
    ROW(weir_run_options_set_outputs, (options, indices, 2), INVALID, "indices: 1 is there twice");
    ROW(weir_run_options_get_outputs, (NULL, &kept, &out.size), INVALID, "options is NULL");
    ROW(weir_run_options_get_outputs, (WRONG(run), &kept, &out.size), INVALID, "options: expected run_options");
    ROW(weir_run_options_get_outputs, (options, NULL, &out.size), INVALID, "out_indices is NULL");
    ROW(weir_run_options_get_outputs, (options, &kept, NULL), INVALID, "out_count is NULL");
}

static void rows_of_run_many(void) {
    weir_program *program = good.program;
    weir_tensor *in = good.tensor, *missing = NULL, *ins[2] = {good.tensor, WRONG(engine)};

    ROW(weir_program_run_many, (NULL, 1, &in, 1, &in, 1, NULL), INVALID, "program is NULL");
    ROW(weir_program_run_many, (WRONG(graph), 1, &in, 1, &in, 1, NULL), INVALID, "program: expected a program");
    ROW(weir_program_run_many, (program, 1, NULL, 1, &in, 1, NULL), INVALID, "inputs is NULL, but its length is 1");
    ROW(weir_program_run_many, (program, 1, &in, 1, NULL, 1, NULL), INVALID, "outputs is NULL, but its length is 1");
    ROW(weir_program_run_many, (program, 1, &missing, 1, &in, 1, NULL), INVALID, "inputs[0] is NULL");
    ROW(weir_program_run_many, (program, 1, &in, 1, &in, 1, NULL),
        INVALID, "instance 0: output 0 shares memory with input 0");
    ROW(weir_program_run_many, (program, 2, ins, 1, ins, 1, NULL), INVALID, "instance");
    ROW(weir_program_run_many, (program, 1, NULL, 0, &in, 1, NULL), INVALID, "input");
    ROW(weir_program_run_many, (program, SIZE_MAX, &in, 2, &in, 1, NULL), RANGE, "count is 18446744073709551615");
    ROW(weir_program_run_many, (program, 1, &in, 1, &in, 1, WRONG(compile_options)),
        INVALID, "options: expected run_options");
}

static void rows_of_the_bound(void) {
    weir_compile_options *compiling = good.compile_options;
    weir_run_options *options = good.run_options;

    ROW(weir_compile_options_set_max_concurrent_runs, (NULL, 1), INVALID, "options is NULL");
    ROW(weir_compile_options_set_max_concurrent_runs, (WRONG(run_options), 1),
        INVALID, "options: expected compile_options");
    ROW(weir_compile_options_get_max_concurrent_runs, (NULL, &out.u32), INVALID, "options is NULL");
    ROW(weir_compile_options_get_max_concurrent_runs, (compiling, NULL), INVALID, "out_max_runs is NULL");
    ROW(weir_run_options_set_no_wait, (NULL, 1), INVALID, "options is NULL");
    ROW(weir_run_options_set_no_wait, (WRONG(run), 1), INVALID, "options: expected run_options, got a run");
    ROW(weir_run_options_set_no_wait, (options, 2), INVALID, "no_wait is 2");
    ROW(weir_run_options_get_no_wait, (NULL, &out.i32), INVALID, "options is NULL");
    ROW(weir_run_options_get_no_wait, (options, NULL), INVALID, "out_no_wait is NULL");
}

void bad_input_program(void) {
    rows_of_the_bound();
    rows_of_run_many();
    rows_of_partial_runs();
}

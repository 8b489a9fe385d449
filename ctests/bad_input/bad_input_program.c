/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Bad input for many runs.
 */

#include "bad_input.h"

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
    ROW(weir_program_run_many, (program, 1, &in, 1, &in, 1, WRONG(engine)), INVALID, "options->struct_size is");
}

void bad_input_program(void) {
    rows_of_run_many();
}

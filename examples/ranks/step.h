/* One step of training as a weir program.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef RANKS_STEP_H
#define RANKS_STEP_H

#include <weir/comm.h>

enum { STEP_LAYERS = 3, STEP_BATCH = 48 };

/* What a layer keeps, in this order; the layers one after the other are the parameters. */
enum step_parameter {
    STEP_WEIGHTS,       /* f32 [inputs, outputs] */
    STEP_BIAS,          /* f32 [outputs] */
    STEP_WEIGHTS_SPEED, /* as the weights: what momentum remembers */
    STEP_BIAS_SPEED,
    STEP_A_LAYER, /* how many there are */
};

/* The inputs of the program, in order. Its outputs are the parameters after the step. */
enum step_input {
    STEP_SCANS,                                 /* f32 [rows, 64] */
    STEP_TARGETS,                               /* f32 [rows, 10], 1 for what the scan shows, else 0 */
    STEP_PARAMETER,                             /* the first of the parameters */
    STEP_PARAMETERS = STEP_LAYERS * STEP_A_LAYER, /* how many these are */
    STEP_INPUTS = STEP_PARAMETER + STEP_PARAMETERS,
};

/* What input `input` looks like, for a rank that has `rows` scans of each batch. */
weir_tensor_desc step_input_desc(int input, int64_t rows);

/* Builds and compiles the graph for such a rank. Batches have STEP_BATCH scans; after a step all ranks have the same
 * bits. Ends the process if something fails. */
weir_program *step_compile(weir_engine *engine, weir_comm *comm, int64_t rows);

#endif

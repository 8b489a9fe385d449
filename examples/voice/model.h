/* Silero VAD as a weir program: is this frame of sound speech?
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef VOICE_MODEL_H
#define VOICE_MODEL_H

#include <weir.h>

#include "weights.h"

/* A frame is 32 ms, behind the last 4 ms of the frame before it. */
enum { MODEL_FRAME_16K = 512, MODEL_CONTEXT_16K = 64, MODEL_FRAME_8K = 256, MODEL_CONTEXT_8K = 32, MODEL_STATE = 128 };

/* The inputs and outputs of the program, in order. */
enum model_input {
    MODEL_SAMPLES,   /* f32 [1, 576], context and frame; of 8 kHz only the first 288 count */
    MODEL_HIDDEN,    /* f32 [1, MODEL_STATE], from the run before, zeros at first */
    MODEL_CELL,      /* the same */
    MODEL_RATE,      /* s32 [1], 16000 or 8000 */
    MODEL_INPUTS,    /* how many there are */
};

enum model_output {
    MODEL_PROBABILITY, /* f32 [1, 1] */
    MODEL_NEXT_HIDDEN, /* f32 [1, MODEL_STATE], for the next run */
    MODEL_NEXT_CELL,   /* the same */
    MODEL_OUTPUTS,     /* how many there are */
};

/* The parts of the half for 16 kHz, each a program of its own. */
enum model_part {
    MODEL_SPECTRUM, /* f32 [1, 576], context and frame -> f32 [1, 129, 4], loudness by frequency and window */
    MODEL_CONVOLUTIONS, /* that -> f32 [1, 128, 1] */
    MODEL_MEMORY,   /* that, hidden, cell -> probability, next hidden, next cell */
    MODEL_PARTS,    /* how many there are */
};

weir_tensor_desc model_input_desc(enum model_input input);
weir_tensor_desc model_output_desc(enum model_output output);

/* Builds and compiles the graph: a cond on the rate with a graph for each half of the weights. `options` may be NULL. The
 * program reads the weights where they lie, so they must outlive it. Ends the process if something fails. */
weir_program *model_compile(const struct weights *weights, weir_engine *engine, const weir_compile_options *options);

/* Builds and compiles one part: one after the other they give the bits of the whole. Otherwise as above. */
weir_program *model_compile_part(const struct weights *weights, weir_engine *engine, enum model_part part);

/* What a part other than the last gives. */
weir_tensor_desc model_part_desc(enum model_part part);

#endif

/* The state of the LSTM is carried in two pairs of tensors: a run reads one pair and writes the other.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "listener.h"

#include <stdlib.h>
#include <string.h>

#include "model.h"
#include "weir_check.h"

struct listener {
    float samples[MODEL_CONTEXT_16K + MODEL_FRAME_16K]; /* the context, then the frame */
    float state[2][2][MODEL_STATE];                     /* of both pairs hidden and cell */
    float probability;
    int32_t rate, frame, context;
    int turn; /* the pair that the next run reads */
    weir_program *program;
    const weir_run_options *options;
    weir_tensor *inputs[2][MODEL_INPUTS]; /* by turn */
    weir_tensor *outputs[2][MODEL_OUTPUTS];
};

static weir_tensor *tensor_over(weir_engine *engine, weir_tensor_desc desc, void *data) {
    weir_tensor *tensor;
    CHECK(weir_tensor_create(engine, &desc, &(weir_memory){.struct_size = sizeof(weir_memory), .data = data}, &tensor));
    return tensor;
}

struct listener *listener_create(weir_program *program, weir_engine *engine, int32_t rate,
                                 const weir_run_options *options) {
    const size_t bytes = (sizeof(struct listener) + 63) / 64 * 64;
    struct listener *listener = aligned_alloc(64, bytes);
    if (listener == NULL) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    memset(listener, 0, bytes);
    listener->rate = rate;
    listener->frame = rate == 16000 ? MODEL_FRAME_16K : MODEL_FRAME_8K;
    listener->context = rate == 16000 ? MODEL_CONTEXT_16K : MODEL_CONTEXT_8K;
    listener->program = program;
    listener->options = options;
    CHECK(weir_program_retain(program));
    for (int turn = 0; turn < 2; turn++) {
        void *const in[MODEL_INPUTS] = {listener->samples, listener->state[turn][0], listener->state[turn][1],
                                        &listener->rate};
        void *const out[MODEL_OUTPUTS] = {&listener->probability, listener->state[!turn][0], listener->state[!turn][1]};
        for (int i = 0; i < MODEL_INPUTS; i++) {
            listener->inputs[turn][i] = tensor_over(engine, model_input_desc((enum model_input)i), in[i]);
        }
        for (int o = 0; o < MODEL_OUTPUTS; o++) {
            listener->outputs[turn][o] = tensor_over(engine, model_output_desc((enum model_output)o), out[o]);
        }
    }
    return listener;
}

void listener_destroy(struct listener *listener) {
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < MODEL_INPUTS; i++) {
            weir_tensor_release(listener->inputs[turn][i]);
        }
        for (int o = 0; o < MODEL_OUTPUTS; o++) {
            weir_tensor_release(listener->outputs[turn][o]);
        }
    }
    weir_program_release(listener->program);
    free(listener);
}

int32_t listener_frame(const struct listener *listener) {
    return listener->frame;
}

void listener_reset(struct listener *listener) {
    memset(listener->samples, 0, sizeof listener->samples);
    memset(listener->state, 0, sizeof listener->state);
    listener->turn = 0;
}

float listener_hear(struct listener *listener, const float *samples) {
    const size_t context = (size_t)listener->context, frame = (size_t)listener->frame;
    memcpy(listener->samples + context, samples, frame * sizeof *samples);
    CHECK(weir_program_run(listener->program, NULL, listener->inputs[listener->turn], MODEL_INPUTS,
                           listener->outputs[listener->turn], MODEL_OUTPUTS, listener->options));
    listener->turn = !listener->turn;
    /* The end of this frame is the context of the next. */
    memcpy(listener->samples, listener->samples + frame, context * sizeof *samples);
    return listener->probability;
}

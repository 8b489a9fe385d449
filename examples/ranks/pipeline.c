/* A run is a frame of each clip. On rank 1 its graph looks like this; rank 0 has samples in the place of what is
 * received, and rank 2 probabilities in the place of what is sent:
 *
 *     receive clip 1 -> convolutions of clip 1 -> send clip 1
 *     receive clip 2 -> convolutions of clip 2 -> send clip 2
 *     ...
 *
 * All receives come first in the order of operations, so they are all under way at once; a clip goes on as soon as it
 * is there, while those behind it are still with the rank before. Rank 0 need not wait for anybody: it is frames ahead.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "pipeline.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "audio.h"
#include "listener.h"
#include "model.h"
#include "training.h"
#include "weights.h"
#include "weir_check.h"

#ifndef VOICE_DATA_DIR
#define VOICE_DATA_DIR "../voice"
#endif

enum { SAMPLES = MODEL_CONTEXT_16K + MODEL_FRAME_16K };

struct pipeline {
    weir_engine *engine;
    weir_comm *comm;
    int rank;
    struct audio audio;
    struct weights weights;
    weir_program *program;
    weir_tensor *samples[PIPELINE_CLIPS];                  /* of rank 0 */
    weir_tensor *state[2][PIPELINE_CLIPS][2];              /* of rank 2, by turn: hidden, cell */
    weir_tensor *probabilities[PIPELINE_CLIPS];            /* of rank 2 */
    float heard[PIPELINE_FRAMES * PIPELINE_CLIPS];         /* frame by frame */
};

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static float *floats(const weir_tensor *tensor) {
    void *data;
    CHECK(weir_tensor_get_data(tensor, &data));
    return data;
}

static weir_tensor *new_tensor(const struct pipeline *p, weir_tensor_desc desc) {
    weir_tensor *tensor;
    CHECK(weir_tensor_create(p->engine, &desc, NULL, &tensor));
    return tensor;
}

/* The clips are parts of one recording. */
static const float *clip_frame(const struct pipeline *p, int clip, int frame) {
    const size_t last = p->audio.count - (size_t)PIPELINE_FRAMES * MODEL_FRAME_16K;
    return p->audio.samples + last * (size_t)clip / (PIPELINE_CLIPS - 1) + (size_t)frame * MODEL_FRAME_16K;
}

/* ---- The graph ----------------------------------------------------------------------------------- */

static const char *name_of(char name[32], const char *what, int clip) {
    snprintf(name, 32, "%s %d", what, clip + 1);
    return name;
}

/* A message of a clip to or from the rank beside this one: its tag is the clip. */
static void add_message(const struct pipeline *p, weir_graph *graph, weir_comm_op op, int clip, weir_value *value) {
    const bool sends = op == WEIR_COMM_SEND;
    const weir_communication desc = {.struct_size = sizeof desc,
                                     .op = op,
                                     .peer = sends ? p->rank + 1 : p->rank - 1,
                                     .tag = clip,
                                     .desc = sends ? (weir_tensor_desc){0} : model_part_desc(p->rank - 1)};
    char name[32];
    weir_kernel *kernel;
    CHECK(weir_kernel_create_communication(p->engine, p->comm, &desc, NULL, &kernel));
    CHECK(weir_graph_add_kernel(graph, name_of(name, sends ? "send clip" : "receive clip", clip), kernel, value, sends,
                                value, !sends, NULL));
    weir_kernel_release(kernel);
}

static weir_value add_input(weir_graph *graph, const char *what, int clip, weir_tensor_desc desc) {
    char name[32];
    weir_value value;
    CHECK(weir_graph_add_input(graph, name_of(name, what, clip), &desc, &value));
    return value;
}

static weir_program *compile(const struct pipeline *p) {
    static const char *const parts[MODEL_PARTS] = {"spectrum of clip", "convolutions of clip", "memory of clip"};
    static const char *const out_names[MODEL_OUTPUTS] = {"probability", "next hidden", "next cell"};
    weir_value inputs[PIPELINE_CLIPS][3], outputs[MODEL_OUTPUTS];
    weir_program *part = model_compile_part(&p->weights, p->engine, (enum model_part)p->rank), *program;
    weir_graph *graph;
    char name[32];

    CHECK(weir_graph_create("pipeline", &graph));
    for (int clip = 0; clip < PIPELINE_CLIPS; clip++) {
        if (p->rank == MODEL_SPECTRUM) {
            inputs[clip][0] = add_input(graph, "samples", clip, model_input_desc(MODEL_SAMPLES));
        } else {
            add_message(p, graph, WEIR_COMM_RECV, clip, &inputs[clip][0]);
        }
        if (p->rank == MODEL_MEMORY) {
            inputs[clip][1] = add_input(graph, "hidden", clip, model_input_desc(MODEL_HIDDEN));
            inputs[clip][2] = add_input(graph, "cell", clip, model_input_desc(MODEL_CELL));
        }
    }
    for (int clip = 0; clip < PIPELINE_CLIPS; clip++) {
        const bool last = p->rank == MODEL_MEMORY;
        CHECK(weir_graph_add_program(graph, name_of(name, parts[p->rank], clip), part, inputs[clip], last ? 3 : 1,
                                     outputs, last ? MODEL_OUTPUTS : 1, NULL));
        if (!last) {
            add_message(p, graph, WEIR_COMM_SEND, clip, outputs);
        }
        for (int i = 0; last && i < MODEL_OUTPUTS; i++) {
            CHECK(weir_graph_add_output(graph, name_of(name, out_names[i], clip), outputs[i]));
        }
    }
    CHECK(weir_graph_compile(graph, &p->engine, 1, NULL, &program));
    weir_graph_destroy(graph);
    weir_program_release(part);
    return program;
}

/* ---- Runs ---------------------------------------------------------------------------------------- */

static void make_tensors(struct pipeline *p) {
    for (int clip = 0; clip < PIPELINE_CLIPS; clip++) {
        p->samples[clip] = new_tensor(p, model_input_desc(MODEL_SAMPLES));
        p->probabilities[clip] = new_tensor(p, model_output_desc(MODEL_PROBABILITY));
        for (int i = 0; i < 4; i++) {
            p->state[i / 2][clip][i % 2] = new_tensor(p, model_input_desc(MODEL_HIDDEN));
        }
    }
}

static void release_tensors(struct pipeline *p) {
    for (int clip = 0; clip < PIPELINE_CLIPS; clip++) {
        weir_tensor_release(p->samples[clip]);
        weir_tensor_release(p->probabilities[clip]);
        for (int i = 0; i < 4; i++) {
            weir_tensor_release(p->state[i / 2][clip][i % 2]);
        }
    }
}

/* This rank's part of a frame of each clip. */
static void hear_frame(struct pipeline *p, int frame) {
    weir_tensor *inputs[2 * PIPELINE_CLIPS], *outputs[MODEL_OUTPUTS * PIPELINE_CLIPS];
    size_t num_inputs = 0, num_outputs = 0;
    for (int clip = 0; clip < PIPELINE_CLIPS && p->rank == MODEL_SPECTRUM; clip++) {
        float *samples = floats(p->samples[clip]);
        memmove(samples, samples + MODEL_FRAME_16K, MODEL_CONTEXT_16K * sizeof *samples); /* the end of the last one */
        memcpy(samples + MODEL_CONTEXT_16K, clip_frame(p, clip, frame), MODEL_FRAME_16K * sizeof *samples);
        inputs[num_inputs++] = p->samples[clip];
    }
    for (int clip = 0; clip < PIPELINE_CLIPS && p->rank == MODEL_MEMORY; clip++) {
        outputs[num_outputs++] = p->probabilities[clip];
        for (int i = 0; i < 2; i++) {
            inputs[num_inputs++] = p->state[frame % 2][clip][i];
            outputs[num_outputs++] = p->state[(frame + 1) % 2][clip][i];
        }
    }
    CHECK(weir_program_run(p->program, NULL, inputs, num_inputs, outputs, num_outputs, NULL));
    for (int clip = 0; clip < PIPELINE_CLIPS && p->rank == MODEL_MEMORY; clip++) {
        p->heard[frame * PIPELINE_CLIPS + clip] = *floats(p->probabilities[clip]);
    }
}

/* What rank 2 has heard, from there to rank 0: a stream does the same operations as a graph. */
static void hand_back(struct pipeline *p) {
    const int last = PIPELINE_RANKS - 1;
    const weir_tensor_desc all = {WEIR_F32, 1, {PIPELINE_FRAMES * PIPELINE_CLIPS}};
    const weir_memory memory = {.struct_size = sizeof memory, .data = p->heard};
    const weir_communication send = {.struct_size = sizeof send, .op = WEIR_COMM_SEND, .peer = 0};
    const weir_communication receive = {
        .struct_size = sizeof receive, .op = WEIR_COMM_RECV, .peer = last, .desc = all};
    weir_kernel *kernel;
    weir_stream *stream;
    weir_tensor *heard;
    if (p->rank != 0 && p->rank != last) {
        return;
    }
    CHECK(weir_tensor_create(p->engine, &all, &memory, &heard));
    CHECK(weir_stream_create(p->engine, WEIR_STREAM_DEFAULT, NULL, &stream));
    CHECK(weir_kernel_create_communication(p->engine, p->comm, p->rank == 0 ? &receive : &send, NULL, &kernel));
    CHECK(weir_enqueue(stream, kernel, &heard, p->rank == last, &heard, p->rank == 0));
    CHECK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    weir_kernel_release(kernel);
    weir_stream_release(stream);
    weir_tensor_release(heard);
}

/* One clip after the other, by the program of the voice example. */
static bool is_heard_alone(const struct pipeline *p) {
    weir_program *program = model_compile(&p->weights, p->engine, NULL);
    struct listener *listener = listener_create(program, p->engine, 16000, NULL);
    bool same = true;
    for (int clip = 0; clip < PIPELINE_CLIPS; clip++) {
        listener_reset(listener);
        for (int frame = 0; frame < PIPELINE_FRAMES; frame++) {
            const float probability = listener_hear(listener, clip_frame(p, clip, frame));
            same = same && memcmp(&probability, &p->heard[frame * PIPELINE_CLIPS + clip], sizeof probability) == 0;
        }
    }
    listener_destroy(listener);
    weir_program_release(program);
    return same;
}

int pipeline_run(weir_engine *engine, weir_comm *comm, struct pipeline_result *result) {
    static struct pipeline p;
    weir_comm_info info = {.struct_size = sizeof info};
    memset(&p, 0, sizeof p);
    memset(result, 0, sizeof *result);
    if (audio_load(&p.audio, VOICE_DATA_DIR "/clips/commands.wav") != 0) {
        return -1;
    }
    if (weights_load(&p.weights, VOICE_DATA_DIR "/weights.bin") != 0) {
        audio_free(&p.audio);
        return -1;
    }
    CHECK(weir_comm_get_info(comm, &info));
    p.engine = engine;
    p.comm = comm;
    p.rank = info.rank;
    p.program = compile(&p);
    make_tensors(&p);
    CHECK(weir_program_agree(p.program, comm, RANKS_LIMIT_NS));

    const double began = now_s();
    for (int frame = 0; frame < PIPELINE_FRAMES; frame++) {
        hear_frame(&p, frame);
    }
    hand_back(&p);
    const double ended = now_s();
    result->seconds = ended - began;
    if (p.rank == 0) {
        result->same = is_heard_alone(&p);
        result->alone_seconds = now_s() - ended;
    }
    release_tensors(&p);
    weir_program_release(p.program);
    weights_free(&p.weights);
    audio_free(&p.audio);
    return 0;
}

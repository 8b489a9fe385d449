/* Listens to a sound, frame after frame: the model with what it remembers.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef VOICE_LISTENER_H
#define VOICE_LISTENER_H

#include <stdint.h>

#include <weir.h>

struct listener;

/* For sound of 16000 or 8000 samples a second. The program is one of model_compile; `options` says where it runs, NULL
 * is the calling thread and the engine's pool. Both are retained or used for as long as the listener lives. */
struct listener *listener_create(weir_program *program, weir_engine *engine, int32_t rate,
                                 const weir_run_options *options);

void listener_destroy(struct listener *listener);

/* Samples of a frame: 512 or 256. */
int32_t listener_frame(const struct listener *listener);

/* Forgets what it has heard. */
void listener_reset(struct listener *listener);

/* Hears the next frame, and returns how probable it is that somebody speaks, from 0 to 1. The second and later calls
 * allocate nothing. Not from two threads at once. */
float listener_hear(struct listener *listener, const float *samples);

#endif

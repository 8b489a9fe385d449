/* The model of examples/voice for a caller that knows no weir: Python, through ctypes.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include <stdint.h>
#include <stdlib.h>

#include <weir.h>

#include "listener.h"
#include "model.h"
#include "weights.h"
#include "weir_check.h"

struct voice_session {
    struct weights weights;
    weir_threadpool *pool;
    weir_engine *engine;
    weir_program *program;
    weir_run_options options;
    struct listener *listener;
    float probability;
};

/* For sound of `rate` samples a second. With 0 threads steps run in the calling thread; else on it and a pool of weir's
 * with so many. NULL if the weights cannot be read. Sessions live until the process ends. */
struct voice_session *voice_open(const char *weights, int32_t rate, int32_t threads) {
    struct voice_session *session = calloc(1, sizeof *session);
    if (session == NULL || weights_load(&session->weights, weights) != 0) {
        free(session);
        return NULL;
    }
    CHECK(weir_engine_create(WEIR_ENGINE_CPU, 0, NULL, &session->engine));
    session->program = model_compile(&session->weights, session->engine, NULL);
    if (threads > 0) {
        weir_threadpool_attr *attr;
        CHECK(weir_threadpool_attr_create(&attr));
        CHECK(weir_threadpool_attr_set_num_threads(attr, threads));
        CHECK(weir_threadpool_create_builtin(attr, &session->pool));
        weir_threadpool_attr_destroy(attr);
    }
    session->options = (weir_run_options){.struct_size = sizeof session->options, .threadpool = session->pool};
    session->listener = listener_create(session->program, session->engine, rate, &session->options);
    return session;
}

/* Hears a frame. voice_probability says what it made of it. */
void voice_step(struct voice_session *session, const float *samples) {
    session->probability = listener_hear(session->listener, samples);
}

float voice_probability(const struct voice_session *session) {
    return session->probability;
}

/* Follows the pitch of a falling tone, block by block, in a loop that keeps one of two threads busy.
 *
 *     slow_pitch before|after [--trace NAME]
 *
 * Each iteration correlates a block of the sound with itself, which takes long, and then looks for the best lag near
 * that of the block before. Only the second step needs the iteration before. Before, one iteration runs at a time all
 * the same. After, four may. docs/slow.md tells how a trace leads to that.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <weir/control.h>

#include "runs.h"
#include "weir_check.h"

enum { RATE = 16000, BLOCK = 160, WINDOW = 480, BLOCKS = 100 };
enum { FIRST_LAG = 50, LAGS = 150, REACH = 8 }; /* 320 to 80 Hz; a lag moves by at most REACH from block to block */
enum { SAMPLES = BLOCKS * BLOCK + WINDOW + FIRST_LAG + LAGS };

static const weir_tensor_desc integer = {.dtype = WEIR_S32, .rank = 1, .dims = {1}};
static const weir_tensor_desc sound = {.dtype = WEIR_F32, .rank = 1, .dims = {SAMPLES}};
static const weir_tensor_desc correlation = {.dtype = WEIR_F32, .rank = 1, .dims = {LAGS}};
static const weir_tensor_desc pitch = {.dtype = WEIR_S32, .rank = 1, .dims = {BLOCKS}}; /* the lag of each block */

struct arrays {
    const weir_tensor_view *in, *out;
};

static struct arrays arrays_of(weir_kernel_context *context) {
    struct arrays arrays;
    size_t count;
    CHECK(weir_kernel_context_get_inputs(context, &arrays.in, &count));
    CHECK(weir_kernel_context_get_outputs(context, &arrays.out, &count));
    return arrays;
}

/* (block) -> whether there is such a block */
static int32_t is_there(void *user, weir_kernel_context *context) {
    const struct arrays arrays = arrays_of(context);
    (void)user;
    *(int32_t *)arrays.out->data = *(const int32_t *)arrays.in->data < BLOCKS;
    return WEIR_OK;
}

/* (block) -> the next one */
static int32_t next(void *user, weir_kernel_context *context) {
    const struct arrays arrays = arrays_of(context);
    (void)user;
    *(int32_t *)arrays.out->data = *(const int32_t *)arrays.in->data + 1;
    return WEIR_OK;
}

/* (block, sound) -> how well the block agrees with the sound some samples later */
static int32_t correlate(void *user, weir_kernel_context *context) {
    const struct arrays arrays = arrays_of(context);
    const float *x = (const float *)arrays.in[1].data + *(const int32_t *)arrays.in[0].data * BLOCK;
    float *sums = arrays.out->data;
    (void)user;
    for (int lag = 0; lag < LAGS; lag++) {
        float sum = 0;
        for (int i = 0; i < WINDOW; i++) sum += x[i] * x[i + FIRST_LAG + lag];
        sums[lag] = sum;
    }
    return WEIR_OK;
}

/* (block, correlation, pitch) -> the pitch with that of this block */
static int32_t follow(void *user, weir_kernel_context *context) {
    const struct arrays arrays = arrays_of(context);
    const int32_t block = *(const int32_t *)arrays.in[0].data;
    const float *sums = arrays.in[1].data;
    int32_t *lags = arrays.out->data, begin = 0, end = LAGS;
    (void)user;
    memcpy(lags, arrays.in[2].data, BLOCKS * sizeof *lags);
    if (block > 0) {
        const int32_t last = lags[block - 1] - FIRST_LAG;
        begin = last < REACH ? 0 : last - REACH;
        end = last + REACH >= LAGS ? LAGS : last + REACH + 1;
    }
    int32_t best = begin;
    for (int32_t lag = begin; lag < end; lag++) {
        if (sums[lag] > sums[best]) best = lag;
    }
    lags[block] = best + FIRST_LAG;
    return WEIR_OK;
}

static weir_value add(weir_graph *graph, weir_engine *engine, const char *name, weir_compute_fn compute,
                      const weir_value *inputs, size_t num_inputs, const weir_tensor_desc *output) {
    const weir_host_kernel_desc desc = {.struct_size = sizeof desc, .name = name, .compute = compute,
        .num_inputs = num_inputs, .num_outputs = 1, .outputs = output};
    weir_kernel *kernel;
    weir_value value;
    CHECK(weir_kernel_create_host(engine, &desc, &kernel));
    CHECK(weir_graph_add_kernel(graph, name, kernel, inputs, num_inputs, &value, 1, NULL));
    weir_kernel_release(kernel);
    return value;
}

/* A graph with the inputs of the loop: its two variables, and the sound. */
static weir_graph *graph_of(const char *name, weir_value *out_block, weir_value *out_pitch, weir_value *out_sound) {
    weir_graph *graph;
    CHECK(weir_graph_create(name, &graph));
    CHECK(weir_graph_add_input(graph, "block", &integer, out_block));
    CHECK(weir_graph_add_input(graph, "pitch", &pitch, out_pitch));
    CHECK(weir_graph_add_input(graph, "sound", &sound, out_sound));
    return graph;
}

static weir_program *compile(weir_engine *engine, bool after) {
    weir_value block, lags, wave, variables[2];
    weir_program *program;

    weir_graph *condition = graph_of("condition", &block, &lags, &wave);
    const weir_value goes_on = add(condition, engine, "is there", is_there, &block, 1, &integer);
    CHECK(weir_graph_add_output(condition, "goes on", goes_on));

    weir_graph *body = graph_of("body", &block, &lags, &wave);
    const weir_value following = add(body, engine, "next", next, &block, 1, &integer);
    const weir_value sums = add(body, engine, "correlate", correlate, (weir_value[]){block, wave}, 2, &correlation);
    const weir_value followed = add(body, engine, "follow", follow, (weir_value[]){block, sums, lags}, 3, &pitch);
    CHECK(weir_graph_add_output(body, "block", following));
    CHECK(weir_graph_add_output(body, "pitch", followed));

    weir_graph *graph = graph_of("pitch", &variables[0], &variables[1], &wave);
    const weir_while_desc loop = {.struct_size = sizeof loop, .cond_graph = condition, .body_graph = body,
        .variables = variables, .num_variables = 2, .invariants = &wave, .num_invariants = 1,
        .parallel_iterations = after ? 4 : 1};
    CHECK(weir_graph_add_while(graph, "blocks", &loop, variables, NULL));
    CHECK(weir_graph_add_output(graph, "pitch", variables[1]));
    CHECK(weir_graph_compile(graph, &engine, 1, NULL, &program));
    weir_graph_destroy(graph), weir_graph_destroy(body), weir_graph_destroy(condition);
    return program;
}

/* A saw whose frequency falls. The period at a sample is the lag that is to be found. */
static double period_at(int32_t sample) {
    return RATE / (160 - 60.0 * sample / SAMPLES);
}

static void sing(float *samples) {
    double phase = 0;
    for (int32_t i = 0; i < SAMPLES; i++) {
        phase += 1 / period_at(i);
        samples[i] = (float)(phase - floor(phase) - 0.5);
    }
}

static bool is_right(const int32_t *lags) {
    for (int32_t block = 0; block < BLOCKS; block++) {
        const double period = period_at(block * BLOCK + WINDOW / 2 + lags[block] / 2);
        if (fabs(lags[block] - period) > 2) {
            fprintf(stderr, "FAILED: block %d has a lag of %d, expected %.1f\n", (int)block, (int)lags[block], period);
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv) {
    const struct arguments arguments = arguments_read(argc, argv);
    static float samples[SAMPLES];
    static int32_t first, lags[2][BLOCKS]; /* those that the loop begins with, and those that it ends with */
    sing(samples);
    weir_engine *engine = engine_with_threads(1, 0);
    weir_program *program = compile(engine, arguments.after);
    weir_tensor *inputs[] = {tensor_over(engine, &integer, &first), tensor_over(engine, &pitch, lags[0]),
                             tensor_over(engine, &sound, samples)};
    weir_tensor *output = tensor_over(engine, &pitch, lags[1]);
    runs_measure(&arguments, program, inputs, 3, output, 100, NULL);
    const bool right = is_right(lags[1]);
    for (int i = 0; i < 3; i++) weir_tensor_release(inputs[i]);
    weir_tensor_release(output), weir_program_release(program), weir_engine_release(engine);
    return right ? 0 : 1;
}

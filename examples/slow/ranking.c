/* A server ranks articles for a reader. Its threads are always busy, with waiting.
 *
 *     slow_ranking before|after [--trace NAME]
 *
 * Four rows of numbers about an article come from a store on another machine, which answers after two milliseconds.
 * They and the article's four pictures go through a small network each. Before, the reads are nodes like all others,
 * and hold a thread while the store thinks. After, they say that they may block, and run on threads that are there for
 * waiting. docs/slow.md tells how a trace leads to that.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif

#include <stdio.h>
#include <time.h>

#include "runs.h"
#include "weir_check.h"

enum { WIDTH = 256, LAYERS = 10, ROWS = 4, PICTURES = 4, PARTS = ROWS + PICTURES };

static const weir_tensor_desc row = {.dtype = WEIR_F32, .rank = 1, .dims = {WIDTH}};
static float weights[WIDTH][WIDTH];

/* Stands for a request to the store, and the wait for its answer. */
static void read_row(const float *article, float *out) {
    const struct timespec answer_time = {.tv_nsec = 2000000};
    nanosleep(&answer_time, NULL);
    for (int i = 0; i < WIDTH; i++) out[i] = 1 - article[i];
}

static void network(const float *in, float *out) {
    float layers[2][WIDTH];
    for (int i = 0; i < WIDTH; i++) layers[0][i] = in[i];
    for (int layer = 0; layer < LAYERS; layer++) {
        const float *from = layers[layer % 2];
        for (int i = 0; i < WIDTH; i++) {
            float sum = 0;
            for (int k = 0; k < WIDTH; k++) sum += weights[i][k] * from[k];
            layers[(layer + 1) % 2][i] = sum > 0 ? sum : 0.1f * sum;
        }
    }
    for (int i = 0; i < WIDTH; i++) out[i] = layers[LAYERS % 2][i];
}

/* A function of one row as the body of a kernel. */
struct step {
    const char *name;
    void (*apply)(const float *in, float *out);
};

static struct step reading = {"read", read_row}, networking = {"network", network};

static int32_t apply_step(void *user, weir_kernel_context *context) {
    const struct step *step = user;
    const weir_tensor_view *in, *out;
    size_t count;
    CHECK(weir_kernel_context_get_inputs(context, &in, &count));
    CHECK(weir_kernel_context_get_outputs(context, &out, &count));
    step->apply(in->data, out->data);
    return WEIR_OK;
}

static int32_t add_up(void *user, weir_kernel_context *context) {
    const weir_tensor_view *in, *out;
    size_t num_in, num_out;
    (void)user;
    CHECK(weir_kernel_context_get_inputs(context, &in, &num_in));
    CHECK(weir_kernel_context_get_outputs(context, &out, &num_out));
    float *sums = out->data;
    for (int i = 0; i < WIDTH; i++) sums[i] = 0;
    for (size_t part = 0; part < num_in; part++) {
        for (int i = 0; i < WIDTH; i++) sums[i] += ((const float *)in[part].data)[i];
    }
    return WEIR_OK;
}

static weir_kernel *kernel_of(weir_engine *engine, struct step *step, uint64_t flags) {
    const weir_host_kernel_desc desc = {.struct_size = sizeof desc, .name = step->name, .compute = apply_step,
        .user = step, .num_inputs = 1, .inputs = &row, .num_outputs = 1, .outputs = &row, .flags = flags};
    weir_kernel *kernel;
    CHECK(weir_kernel_create_host(engine, &desc, &kernel));
    return kernel;
}

static weir_program *compile(weir_engine *engine, bool after) {
    const weir_host_kernel_desc sum = {.struct_size = sizeof sum, .name = "sum", .compute = add_up,
        .num_inputs = PARTS, .num_outputs = 1, .outputs = &row};
    const weir_threadpool_options waiting = {.struct_size = sizeof waiting, .num_threads = ROWS};
    weir_compile_options options = {.struct_size = sizeof options};
    weir_kernel *read, *compute, *rank;
    weir_graph *graph;
    weir_value article, parts[PARTS], score;
    weir_program *program;
    char name[32];

    read = kernel_of(engine, &reading, after ? WEIR_KERNEL_MAY_BLOCK : 0);
    if (after) CHECK(weir_threadpool_create_builtin(&waiting, &options.blocking_threadpool));
    compute = kernel_of(engine, &networking, 0);
    CHECK(weir_kernel_create_host(engine, &sum, &rank));
    CHECK(weir_graph_create("ranking", &graph));
    CHECK(weir_graph_add_input(graph, "article", &row, &article));
    for (int i = 0; i < PARTS; i++) {
        parts[i] = article;
        if (i < ROWS) {
            snprintf(name, sizeof name, "read %d", i);
            CHECK(weir_graph_add_kernel(graph, name, read, &parts[i], 1, &parts[i], 1, NULL));
        }
        snprintf(name, sizeof name, i < ROWS ? "network of row %d" : "network of picture %d", i % ROWS);
        CHECK(weir_graph_add_kernel(graph, name, compute, &parts[i], 1, &parts[i], 1, NULL));
    }
    CHECK(weir_graph_add_kernel(graph, "sum", rank, parts, PARTS, &score, 1, NULL));
    CHECK(weir_graph_add_output(graph, "score", score));
    CHECK(weir_graph_compile(graph, &engine, 1, &options, &program));
    weir_threadpool_release(options.blocking_threadpool);
    weir_graph_destroy(graph);
    weir_kernel_release(read), weir_kernel_release(compute), weir_kernel_release(rank);
    return program;
}

/* The same in a row. */
static bool is_right(const float *article, const float *score) {
    float read[WIDTH], of_row[WIDTH], of_picture[WIDTH];
    read_row(article, read);
    network(read, of_row);
    network(article, of_picture);
    for (int i = 0; i < WIDTH; i++) {
        float sum = 0;
        for (int part = 0; part < PARTS; part++) sum += part < ROWS ? of_row[i] : of_picture[i];
        if (score[i] != sum) return false;
    }
    return true;
}

int main(int argc, char **argv) {
    const struct arguments arguments = arguments_read(argc, argv);
    float article[WIDTH], score[WIDTH] = {0};
    for (int i = 0; i < WIDTH; i++) {
        article[i] = (float)(i % 7) / 7;
        for (int k = 0; k < WIDTH; k++) weights[i][k] = (float)((i * 31 + k * 17) % 101 - 50) / 500;
    }
    weir_engine *engine = engine_with_threads(1, 0);
    weir_program *program = compile(engine, arguments.after);
    weir_tensor *input = tensor_over(engine, &row, article), *output = tensor_over(engine, &row, score);
    runs_measure(&arguments, program, &input, 1, output, 100, NULL);
    const bool right = is_right(article, score);
    if (!right) fprintf(stderr, "FAILED: the score is another one than in one thread\n");
    weir_tensor_release(input), weir_tensor_release(output);
    weir_program_release(program), weir_engine_release(engine);
    return right ? 0 : 1;
}

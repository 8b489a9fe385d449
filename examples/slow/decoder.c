/* A small language model writes word after word. Its helper falls asleep behind each of them.
 *
 *     slow_decoder before|after [--trace NAME]
 *
 * A run of the graph is the attention of eight heads, which do not need one another. Behind it the program picks the
 * next word, for which the graph's threads have nothing to do. Before, a thread of the pool sleeps after 20 us without
 * work, as weir's pools do. After, it stays awake while a word is picked. docs/slow.md tells how a trace leads to that.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "runs.h"
#include "weir_check.h"

enum { HEADS = 8, WIDTH = 64, PAST = 320, WORDS = 160, STATE = HEADS * WIDTH };

static const weir_tensor_desc state = {.dtype = WEIR_F32, .rank = 1, .dims = {STATE}};
static const weir_tensor_desc part = {.dtype = WEIR_F32, .rank = 1, .dims = {WIDTH}};

/* One of the heads: what it remembers of the past. */
static struct head {
    int number;
    float keys[PAST][WIDTH], values[PAST][WIDTH];
} heads[HEADS];

static float words[WORDS][STATE], now[STATE], later[STATE];

static float dot(const float *a, const float *b, int count) {
    float sum = 0;
    for (int i = 0; i < count; i++) sum += a[i] * b[i];
    return sum;
}

/* What the head sees in the past, by how well it agrees with its part of the state. */
static void attend(const struct head *head, const float *from, float *seen) {
    float weights[PAST], sum = 0;
    for (int t = 0; t < PAST; t++) sum += weights[t] = expf(dot(from + head->number * WIDTH, head->keys[t], WIDTH));
    for (int i = 0; i < WIDTH; i++) seen[i] = 0;
    for (int t = 0; t < PAST; t++) {
        for (int i = 0; i < WIDTH; i++) seen[i] += weights[t] / sum * head->values[t][i];
    }
}

static int32_t attend_by_head(void *head, weir_kernel_context *context) {
    const weir_tensor_view *from, *seen;
    size_t count;
    CHECK(weir_kernel_context_get_inputs(context, &from, &count));
    CHECK(weir_kernel_context_get_outputs(context, &seen, &count));
    attend(head, from->data, seen->data);
    return WEIR_OK;
}

static int32_t join(void *user, weir_kernel_context *context) {
    const weir_tensor_view *parts, *out;
    size_t count;
    (void)user;
    CHECK(weir_kernel_context_get_outputs(context, &out, &count));
    CHECK(weir_kernel_context_get_inputs(context, &parts, &count));
    for (size_t i = 0; i < count; i++) memcpy((float *)out->data + i * WIDTH, parts[i].data, WIDTH * sizeof(float));
    return WEIR_OK;
}

static weir_value add(weir_graph *graph, weir_engine *engine, const char *name, const weir_host_kernel_desc *desc,
                      const weir_value *inputs) {
    weir_kernel *kernel;
    weir_value value;
    CHECK(weir_kernel_create_host(engine, desc, &kernel));
    CHECK(weir_graph_add_kernel(graph, name, kernel, inputs, desc->num_inputs, &value, 1, NULL));
    weir_kernel_release(kernel);
    return value;
}

static weir_program *compile(weir_engine *engine) {
    weir_host_kernel_desc attention = {.struct_size = sizeof attention, .name = "attention", .compute = attend_by_head,
        .num_inputs = 1, .num_outputs = 1, .outputs = &part};
    const weir_host_kernel_desc joining = {.struct_size = sizeof joining, .name = "join", .compute = join,
        .num_inputs = HEADS, .num_outputs = 1, .outputs = &state};
    /* A given cost makes each run ask for the helper. Else weir finds out from time to time whether one pays. */
    const weir_compile_options options = {.struct_size = sizeof options, .hop_ns = 5000};
    weir_graph *graph;
    weir_value from, seen[HEADS];
    weir_program *program;
    char name[32];
    CHECK(weir_graph_create("decoder", &graph));
    CHECK(weir_graph_add_input(graph, "now", &state, &from));
    for (int i = 0; i < HEADS; i++) {
        snprintf(name, sizeof name, "head %d", i);
        attention.user = &heads[i];
        seen[i] = add(graph, engine, name, &attention, &from);
    }
    CHECK(weir_graph_add_output(graph, "later", add(graph, engine, "join", &joining, seen)));
    CHECK(weir_graph_compile(graph, &engine, 1, &options, &program));
    weir_graph_destroy(graph);
    return program;
}

/* The word that agrees best with what was seen is where the next run begins. */
static void pick_word(void) {
    int best = 0;
    float most = -INFINITY;
    for (int word = 0; word < WORDS; word++) {
        const float score = dot(later, words[word], STATE);
        if (score > most) most = score, best = word;
    }
    memcpy(now, words[best], sizeof now);
}

/* Numbers between -0.5 and 0.5, the same ones each time. */
static float next_number(void) {
    static uint32_t seed = 1;
    seed = seed * 1664525 + 1013904223;
    return (float)(seed >> 8) / (1 << 24) - 0.5f;
}

static void learn(void) {
    for (int i = 0; i < HEADS; i++) {
        heads[i].number = i;
        for (int t = 0; t < PAST; t++) {
            for (int k = 0; k < WIDTH; k++) heads[i].keys[t][k] = next_number(), heads[i].values[t][k] = next_number();
        }
    }
    for (int word = 0; word < WORDS; word++) {
        for (int k = 0; k < STATE; k++) words[word][k] = next_number();
    }
}

/* What the heads see is what they see one after the other. */
static bool is_right(weir_program *program, weir_tensor *input, weir_tensor *output) {
    float expected[STATE];
    CHECK(weir_program_run(program, NULL, &input, 1, &output, 1, NULL));
    for (int i = 0; i < HEADS; i++) attend(&heads[i], now, expected + i * WIDTH);
    return memcmp(later, expected, sizeof expected) == 0;
}

int main(int argc, char **argv) {
    const struct arguments arguments = arguments_read(argc, argv);
    learn();
    weir_engine *engine = engine_with_threads(1, arguments.after ? 500000 : 0);
    weir_program *program = compile(engine);
    weir_tensor *input = tensor_over(engine, &state, now), *output = tensor_over(engine, &state, later);
    runs_measure(&arguments, program, &input, 1, output, 2000, pick_word);
    const bool right = is_right(program, input, output);
    if (!right) fprintf(stderr, "FAILED: the heads see something else than in one thread\n");
    weir_tensor_release(input), weir_tensor_release(output);
    weir_program_release(program), weir_engine_release(engine);
    return right ? 0 : 1;
}

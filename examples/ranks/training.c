/* A step is a run of one program, which takes parameters and gives new ones: those that it took are there until the
 * next run has begun. So nothing is lost when a rank dies in the middle of a step: the others take the parameters of
 * the one of them that has come furthest, divide the batches anew, and go on.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "training.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "network.h"
#include "weir_check.h"

enum { MOST_RANKS = STEP_BATCH }; /* each has a scan */

static weir_tensor *tensor_over(weir_engine *engine, weir_tensor_desc desc, void *data) {
    const weir_memory memory = {.struct_size = sizeof memory, .data = data};
    weir_tensor *tensor;
    CHECK(weir_tensor_create(engine, &desc, data != NULL ? &memory : NULL, &tensor));
    return tensor;
}

static void *data_of(const weir_tensor *tensor, size_t *out_bytes) {
    void *data;
    CHECK(weir_tensor_get_data(tensor, &data));
    CHECK(weir_tensor_get_size(tensor, out_bytes));
    return data;
}

/* ---- Batches ------------------------------------------------------------------------------------- */

/* Random numbers, the same on all ranks. */
static uint64_t next_random(uint64_t *state) {
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static int64_t steps_per_epoch(const struct training *t) {
    return t->data->count / STEP_BATCH;
}

/* The scans of the step that comes. The order depends on the epoch alone, so it is the same whoever goes on here. */
static const uint32_t *next_batch(struct training *t) {
    const int64_t epoch = t->step / steps_per_epoch(t);
    if (t->epoch != epoch) {
        uint64_t state = (uint64_t)epoch;
        t->epoch = epoch;
        for (uint32_t i = 0; i < t->data->count; i++) { /* to a random place among those before it */
            const uint32_t place = (uint32_t)(next_random(&state) % (i + 1));
            t->order[i] = t->order[place];
            t->order[place] = i;
        }
    }
    return t->order + t->step % steps_per_epoch(t) * STEP_BATCH;
}

/* Of each batch a rank has the scans from here to where the next one's begin. */
static int64_t first_row(const struct training *t, int32_t rank) {
    return (int64_t)STEP_BATCH * rank / t->size;
}

static void fill_inputs(struct training *t) {
    const uint32_t *batch = next_batch(t);
    size_t size;
    float *pixels = data_of(t->inputs[t->turn][STEP_SCANS], &size);
    float *targets = data_of(t->inputs[t->turn][STEP_TARGETS], &size);
    memset(targets, 0, size);
    for (int64_t row = first_row(t, t->rank); row < first_row(t, t->rank + 1); row++) {
        const float *scan = t->data->pixels + (size_t)batch[row] * DIGITS_PIXELS;
        memcpy(pixels, scan, DIGITS_PIXELS * sizeof *pixels);
        targets[t->data->labels[batch[row]]] = 1;
        pixels += DIGITS_PIXELS;
        targets += DIGITS_CLASSES;
    }
}

/* ---- Ranks --------------------------------------------------------------------------------------- */

/* One operation between the ranks, outside of a graph. */
static void communicate(const struct training *t, weir_communication desc, weir_tensor *input, weir_tensor *output) {
    weir_kernel *kernel;
    desc.struct_size = sizeof desc;
    CHECK(weir_kernel_create_communication(t->engine, t->comm, &desc, NULL, &kernel));
    CHECK(weir_enqueue(t->stream, kernel, &input, 1, &output, 1));
    CHECK(weir_stream_synchronize(t->stream, WEIR_TIMEOUT_INFINITE));
    weir_kernel_release(kernel);
}

/* Each rank's number, for all of them. */
static void gather(const struct training *t, int64_t mine, int64_t numbers[MOST_RANKS]) {
    weir_tensor *input = tensor_over(t->engine, (weir_tensor_desc){WEIR_S64, 1, {1}}, &mine);
    weir_tensor *output = tensor_over(t->engine, (weir_tensor_desc){WEIR_S64, 1, {t->size}}, numbers);
    communicate(t, (weir_communication){.op = WEIR_COMM_ALL_GATHER}, input, output);
    weir_tensor_release(output);
    weir_tensor_release(input);
}

/* Divides the batches among the ranks of the communicator, and takes the parameters of the one that has made the most
 * steps: of rank 0 at first. */
static void meet(struct training *t) {
    weir_comm_info info = {.struct_size = sizeof info};
    int64_t steps[MOST_RANKS];
    int32_t furthest = 0;
    CHECK(weir_comm_get_info(t->comm, &info));
    t->rank = info.rank;
    t->size = info.size;
    const int64_t rows = first_row(t, t->rank + 1) - first_row(t, t->rank);
    for (int input = STEP_SCANS; input < STEP_PARAMETER; input++) {
        weir_tensor_release(t->inputs[0][input]);
        t->inputs[0][input] = t->inputs[1][input] = tensor_over(t->engine, step_input_desc(input, rows), NULL);
    }
    weir_program_release(t->program);
    t->program = step_compile(t->engine, t->comm, rows);
    CHECK(weir_program_agree(t->program, t->comm, RANKS_LIMIT_NS));

    gather(t, t->step, steps);
    for (int32_t rank = 1; rank < t->size; rank++) {
        furthest = steps[rank] > steps[furthest] ? rank : furthest;
    }
    for (int input = STEP_PARAMETER; input < STEP_INPUTS; input++) {
        communicate(t, (weir_communication){.op = WEIR_COMM_BROADCAST, .peer = furthest}, t->inputs[t->turn][input],
                    t->inputs[!t->turn][input]);
    }
    t->turn = !t->turn;
    t->step = steps[furthest];
}

/* A step has failed: without the ranks that are not there any more, or not at all. */
static int go_on(struct training *t) {
    const int32_t before = t->size;
    weir_comm_info info = {.struct_size = sizeof info};
    weir_comm *left;
    char why[512];
    snprintf(why, sizeof why, "%s", weir_last_error_message());
    CHECK(weir_comm_get_info(t->comm, &info));
    if (!info.recoverable) {
        fprintf(stderr, "rank %d, step %d: %s\n%s cannot go on without a rank\n", (int)t->rank, (int)t->step, why,
                info.transport);
        return -1;
    }
    CHECK(weir_comm_recover(t->comm, NULL, &left));
    weir_comm_release(t->comm);
    t->comm = left;
    meet(t);
    if (t->size == before) {
        fprintf(stderr, "rank %d, step %d: %s\n", (int)t->rank, (int)t->step, why);
        return -1;
    }
    if (t->rank == 0) {
        printf("  %s\n  %d of %d ranks go on from step %d\n", why, (int)t->size, (int)before, (int)t->step);
    }
    return 0;
}

/* ---- Training ------------------------------------------------------------------------------------ */

void training_begin(struct training *t, weir_engine *engine, weir_comm *comm, const struct dataset *data) {
    uint64_t state = 1;
    size_t size;
    memset(t, 0, sizeof *t);
    t->data = data;
    t->epoch = -1;
    t->order = calloc(data->count, sizeof *t->order);
    if (t->order == NULL) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    t->engine = engine;
    t->comm = comm;
    CHECK(weir_engine_retain(engine));
    CHECK(weir_comm_retain(comm));
    CHECK(weir_stream_create(engine, WEIR_STREAM_DEFAULT, NULL, &t->stream));
    for (int input = STEP_PARAMETER; input < STEP_INPUTS; input++) {
        const weir_tensor_desc desc = step_input_desc(input, 0);
        t->inputs[0][input] = tensor_over(engine, desc, NULL); /* zeros */
        t->inputs[1][input] = tensor_over(engine, desc, NULL);
        if ((input - STEP_PARAMETER) % STEP_A_LAYER == STEP_WEIGHTS) {
            const float limit = sqrtf(6.0f / (float)desc.dims[0]);
            float *weights = data_of(t->inputs[0][input], &size);
            for (size_t i = 0; i < size / sizeof *weights; i++) {
                weights[i] = limit * ((float)(next_random(&state) >> 40) / (float)(1 << 23) - 1);
            }
        }
    }
    meet(t);
}

int training_run(struct training *t, int epochs, bool dies) {
    const int64_t steps = epochs * steps_per_epoch(t);
    while (t->step < steps) {
        if (dies && t->step == steps / 2) {
            raise(SIGKILL);
        }
        fill_inputs(t);
        const weir_status status =
            weir_program_run(t->program, NULL, t->inputs[t->turn], STEP_INPUTS,
                             &t->inputs[!t->turn][STEP_PARAMETER], STEP_PARAMETERS, NULL);
        if (status == WEIR_OK) {
            t->turn = !t->turn;
            t->step++;
        } else if (go_on(t) != 0) {
            return -1;
        }
    }
    return 0;
}

bool training_is_same(const struct training *t) {
    int64_t numbers[MOST_RANKS];
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    bool same = true;
    for (int input = STEP_PARAMETER; input < STEP_INPUTS; input++) {
        size_t size;
        const unsigned char *data = data_of(t->inputs[t->turn][input], &size);
        for (size_t i = 0; i < size; i++) {
            hash = (hash ^ data[i]) * UINT64_C(0x100000001b3);
        }
    }
    gather(t, (int64_t)hash, numbers);
    for (int32_t rank = 1; rank < t->size; rank++) {
        same = same && numbers[rank] == numbers[0];
    }
    return same;
}

/* By the program of the digits example. */
uint32_t training_count_right(const struct training *t, const struct dataset *data) {
    struct dataset trained = *data;
    weir_tensor *scans, *outputs[NETWORK_OUTPUTS];
    uint32_t right = 0;
    size_t size;
    trained.num_layers = STEP_LAYERS;
    for (int i = 0; i < STEP_LAYERS; i++) {
        weir_tensor *const *layer = &t->inputs[t->turn][STEP_PARAMETER + i * STEP_A_LAYER];
        const weir_tensor_desc desc = step_input_desc(STEP_PARAMETER + i * STEP_A_LAYER, 0);
        trained.layers[i] = (struct layer){(uint32_t)desc.dims[0], (uint32_t)desc.dims[1],
                                           data_of(layer[STEP_WEIGHTS], &size), data_of(layer[STEP_BIAS], &size)};
    }
    weir_program *program = network_compile(&trained, t->engine, data->count, NULL);
    scans = tensor_over(t->engine, (weir_tensor_desc){WEIR_F32, 2, {data->count, DIGITS_PIXELS}}, data->pixels);
    for (int i = 0; i < NETWORK_OUTPUTS; i++) {
        outputs[i] = tensor_over(t->engine, network_output_desc((enum network_output)i, data->count), NULL);
    }
    CHECK(weir_program_run(program, NULL, &scans, 1, outputs, NETWORK_OUTPUTS, NULL));
    const int32_t *classes = data_of(outputs[NETWORK_CLASSES], &size);
    for (uint32_t i = 0; i < data->count; i++) {
        right += classes[i] == data->labels[i];
    }
    for (int i = 0; i < NETWORK_OUTPUTS; i++) {
        weir_tensor_release(outputs[i]);
    }
    weir_tensor_release(scans);
    weir_program_release(program);
    return right;
}

void training_end(struct training *t) {
    weir_tensor_release(t->inputs[0][STEP_SCANS]);
    weir_tensor_release(t->inputs[0][STEP_TARGETS]);
    for (int input = STEP_PARAMETER; input < STEP_INPUTS; input++) {
        weir_tensor_release(t->inputs[0][input]);
        weir_tensor_release(t->inputs[1][input]);
    }
    weir_program_release(t->program);
    weir_stream_release(t->stream);
    weir_comm_release(t->comm);
    weir_engine_release(t->engine);
    free(t->order);
}

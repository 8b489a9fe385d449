/* The digits and the voice network with every second node on an emulated device: the same bits as on the CPU, on one to
 * four streams, in a hundred orders, and the device's checker has nothing to say.
 *
 *     placed_networks [folder of digits] [folder of voice]
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include <stdio.h>
#include <string.h>

#include <weir.h>
#include <weir/inspect.h>
#include <weir/testing.h>

#include "alternate.h"
#include "check.h"
#include "dataset.h"
#include "model.h"
#include "network.h"
#include "weights.h"

#ifndef DIGITS_DATA_DIR
#define DIGITS_DATA_DIR "."
#endif
#ifndef VOICE_DATA_DIR
#define VOICE_DATA_DIR "."
#endif

enum { BATCH = 20, FRAMES = 3, SEEDS = 100, STREAMS = 4 };

/* What both networks say. */
struct outputs {
    float logits[BATCH][DIGITS_CLASSES];
    float probabilities[BATCH][DIGITS_CLASSES];
    int32_t classes[BATCH];
    float speech[2][FRAMES];
    float state[2][2][MODEL_STATE];
};

static struct dataset digits;
static struct weights voice;
static struct outputs alone, found;

static weir_tensor *over(weir_engine *engine, weir_tensor_desc desc, void *data) {
    weir_tensor *tensor = NULL;
    CHECK_OK(weir_tensor_create(engine, &desc, OVER(data), &tensor));
    return tensor;
}

static void run(weir_program *program, weir_tensor **inputs, size_t num_inputs, weir_tensor **outputs, size_t num_outputs) {
    CHECK_OK(weir_program_run(program, NULL, inputs, num_inputs, outputs, num_outputs, NULL));
}

static void release(weir_tensor **tensors, int count) {
    for (int i = 0; i < count; i++) weir_tensor_release(tensors[i]);
}

static void read_digits(weir_engine *cpu, struct outputs *out) {
    weir_program *program = network_compile(&digits, cpu, BATCH, NULL);
    const weir_tensor_desc scans = {WEIR_F32, 2, {BATCH, DIGITS_PIXELS}};
    weir_tensor *input = over(cpu, scans, digits.pixels);
    weir_tensor *outputs[NETWORK_OUTPUTS] = {
        over(cpu, network_output_desc(NETWORK_LOGITS, BATCH), out->logits),
        over(cpu, network_output_desc(NETWORK_PROBABILITIES, BATCH), out->probabilities),
        over(cpu, network_output_desc(NETWORK_CLASSES, BATCH), out->classes),
    };
    run(program, &input, 1, outputs, NETWORK_OUTPUTS);
    release(outputs, NETWORK_OUTPUTS);
    weir_tensor_release(input);
    weir_program_release(program);
}

static void hear_voice(weir_engine *cpu, struct outputs *out) {
    weir_program *program = model_compile(&voice, cpu, NULL);
    static float samples[MODEL_CONTEXT_16K + MODEL_FRAME_16K], states[2][2][MODEL_STATE];
    for (int half = 0; half < 2; half++) {
        int32_t rate = half == 0 ? 16000 : 8000;
        memset(states, 0, sizeof states);
        for (int frame = 0; frame < FRAMES; frame++) {
            for (int i = 0; i < MODEL_CONTEXT_16K + MODEL_FRAME_16K; i++) {
                samples[i] = (float)((i * 37 + frame * 11) % 101 - 50) / 100.0f;
            }
            const int now = frame % 2, next = 1 - now;
            weir_tensor *inputs[MODEL_INPUTS] = {
                over(cpu, model_input_desc(MODEL_SAMPLES), samples),
                over(cpu, model_input_desc(MODEL_HIDDEN), states[now][0]),
                over(cpu, model_input_desc(MODEL_CELL), states[now][1]),
                over(cpu, model_input_desc(MODEL_RATE), &rate),
            };
            weir_tensor *outputs[MODEL_OUTPUTS] = {
                over(cpu, model_output_desc(MODEL_PROBABILITY), &out->speech[half][frame]),
                over(cpu, model_output_desc(MODEL_NEXT_HIDDEN), states[next][0]),
                over(cpu, model_output_desc(MODEL_NEXT_CELL), states[next][1]),
            };
            run(program, inputs, MODEL_INPUTS, outputs, MODEL_OUTPUTS);
            release(inputs, MODEL_INPUTS);
            release(outputs, MODEL_OUTPUTS);
        }
        memcpy(out->state[half], states[FRAMES % 2], sizeof out->state[half]);
    }
    weir_program_release(program);
}

/* Runs after the first ones take no memory for copies, streams and events. */
static void check_allocations(weir_engine *cpu) {
    const weir_tensor_desc scans = {WEIR_F32, 2, {BATCH, DIGITS_PIXELS}};
    CHECK_OK(weir_engine_create(WEIR_ENGINE_EMULATED, 0, NULL, &alternate_device));
    weir_program *program = network_compile(&digits, cpu, BATCH, NULL);
    weir_tensor *input = over(cpu, scans, digits.pixels);
    weir_tensor *outputs[NETWORK_OUTPUTS] = {
        over(cpu, network_output_desc(NETWORK_LOGITS, BATCH), found.logits),
        over(cpu, network_output_desc(NETWORK_PROBABILITIES, BATCH), found.probabilities),
        over(cpu, network_output_desc(NETWORK_CLASSES, BATCH), found.classes),
    };
    for (int i = 0; i < 3; i++) run(program, &input, 1, outputs, NETWORK_OUTPUTS);
    /* The device's own lists may still grow when its thread comes late: then another round has none. */
    uint64_t allocations = 1;
    for (int round = 0; allocations > 0 && round < 10; round++) {
        const uint64_t before = runtime_info().allocations;
        for (int i = 0; i < 20; i++) run(program, &input, 1, outputs, NETWORK_OUTPUTS);
        allocations = runtime_info().allocations - before;
    }
    CHECK_EQ(allocations, 0);
    release(outputs, NETWORK_OUTPUTS);
    weir_tensor_release(input);
    weir_program_release(program);
    weir_engine_release(alternate_device);
    alternate_device = NULL;
}

static void check_one(weir_engine *cpu, uint64_t seed, uint32_t streams) {
    const weir_emulation emulation = {.struct_size = sizeof emulation, .seed = seed, .flags = WEIR_EMULATION_CHECK};
    weir_engine_attr *attr = NULL;
    weir_emulated_race races[4] = {{.struct_size = sizeof races[0]}};
    weir_emulated_counters counters = {.struct_size = sizeof counters};
    size_t count = 0;
    for (int i = 0; i < 4; i++) races[i].struct_size = sizeof races[i];
    CHECK_OK(weir_engine_attr_create(WEIR_ENGINE_EMULATED, &attr));
    CHECK_OK(weir_engine_attr_set_emulation(attr, &emulation));
    CHECK_OK(weir_engine_attr_set_max_streams(attr, streams));
    CHECK_OK(weir_engine_create(WEIR_ENGINE_EMULATED, (uint32_t)(seed % 8), attr, &alternate_device));
    weir_engine_attr_destroy(attr);

    memset(&found, 0, sizeof found);
    read_digits(cpu, &found);
    hear_voice(cpu, &found);
    if (memcmp(&found, &alone, sizeof alone) != 0) {
        printf("FAILED: other bits with seed %llu on %u streams\n", (unsigned long long)seed, streams);
    }
    CHECK(memcmp(&found, &alone, sizeof alone) == 0);
    CHECK_OK(weir_emulated_get_races(alternate_device, races, 4, &count));
    if (count > 0) {
        printf("FAILED: %s\n", races[0].text);
    }
    CHECK_EQ(count, 0);
    CHECK_OK(weir_emulated_get_counters(alternate_device, &counters));
    /* Half of the digits' nodes and of each half of the voice's, and copies. */
    CHECK(counters.launches > 10 && counters.copies > 10 && counters.waits > 10);
    weir_engine_release(alternate_device);
    alternate_device = NULL;
}

int main(int argc, char **argv) {
    CHECK_OK(weir_emulated_register());
    const weir_runtime_info before = runtime_info();
    char path[1024];
    weir_engine *cpu = NULL;
    CHECK_EQ(dataset_load(&digits, argc > 1 ? argv[1] : DIGITS_DATA_DIR), 0);
    snprintf(path, sizeof path, "%s/weights.bin", argc > 2 ? argv[2] : VOICE_DATA_DIR);
    CHECK_EQ(weights_load(&voice, path), 0);
    CHECK_OK(weir_engine_create(WEIR_ENGINE_CPU, 0, NULL, &cpu));
    read_digits(cpu, &alone);
    hear_voice(cpu, &alone);
    check_allocations(cpu);
    const int seeds = scale(SEEDS);
    for (int seed = 1; seed <= seeds; seed++) {
        for (uint32_t streams = 1; streams <= STREAMS; streams++) check_one(cpu, (uint64_t)seed, streams);
    }
    printf("%d seeds on 1 to %d streams: the same bits, no race\n", seeds, STREAMS);
    weir_engine_release(cpu);
    weights_free(&voice);
    dataset_free(&digits);
    check_released(&before);
    return 0;
}

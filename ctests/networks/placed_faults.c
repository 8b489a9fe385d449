/* Every operation, copy and allocation of a program on an emulated device fails once, and the device is lost at every
 * operation: the status is right and names node and engine, the program can be run again where the device is not lost,
 * an engine made anew works, and nothing leaks.
 *
 *     placed_faults [folder of digits]
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
#include "network.h"

#ifndef DIGITS_DATA_DIR
#define DIGITS_DATA_DIR "."
#endif

enum { BATCH = 4, MOST = 1000 };

static struct dataset digits;
static float expected[BATCH][DIGITS_CLASSES];

enum fault { FAIL_OPERATION, FAIL_COPY, FAIL_ALLOCATION, LOSE, FAULTS };

static weir_engine *make_device(enum fault fault, uint64_t at) {
    weir_emulation emulation = {.struct_size = sizeof emulation, .flags = WEIR_EMULATION_CHECK};
    weir_engine_attr *attr = NULL;
    weir_engine *engine = NULL;
    *(fault == FAIL_OPERATION    ? &emulation.fail_operation
      : fault == FAIL_COPY       ? &emulation.fail_copy
      : fault == FAIL_ALLOCATION ? &emulation.fail_allocation
                                 : &emulation.lose_operation) = at;
    CHECK_OK(weir_engine_attr_create(WEIR_ENGINE_EMULATED, &attr));
    CHECK_OK(weir_engine_attr_set_emulation(attr, &emulation));
    CHECK_OK(weir_engine_attr_set_max_streams(attr, 2));
    CHECK_OK(weir_engine_create(WEIR_ENGINE_EMULATED, (uint32_t)(at % 8), attr, &engine));
    weir_engine_attr_destroy(attr);
    return engine;
}

static weir_tensor *over(weir_engine *engine, weir_tensor_desc desc, void *data) {
    weir_tensor *tensor = NULL;
    CHECK_OK(weir_tensor_create(engine, &desc, OVER(data), &tensor));
    return tensor;
}

static weir_status read_digits(weir_program *program, weir_engine *cpu, float (*logits)[DIGITS_CLASSES]) {
    static float probabilities[BATCH][DIGITS_CLASSES];
    static int32_t classes[BATCH];
    const weir_tensor_desc scans = {WEIR_F32, 2, {BATCH, DIGITS_PIXELS}};
    weir_tensor *input = over(cpu, scans, digits.pixels);
    weir_tensor *outputs[NETWORK_OUTPUTS] = {
        over(cpu, network_output_desc(NETWORK_LOGITS, BATCH), logits),
        over(cpu, network_output_desc(NETWORK_PROBABILITIES, BATCH), probabilities),
        over(cpu, network_output_desc(NETWORK_CLASSES, BATCH), classes),
    };
    const weir_status status = weir_program_run(program, NULL, &input, 1, outputs, NETWORK_OUTPUTS, NULL);
    for (int i = 0; i < NETWORK_OUTPUTS; i++) weir_tensor_release(outputs[i]);
    weir_tensor_release(input);
    return status;
}

static void check_right(weir_program *program, weir_engine *cpu) {
    float logits[BATCH][DIGITS_CLASSES];
    memset(logits, 0, sizeof logits);
    CHECK_OK(read_digits(program, cpu, logits));
    CHECK(memcmp(logits, expected, sizeof logits) == 0);
}

/* False once there is nothing with this number that could fail. */
static int fails(weir_engine *cpu, enum fault fault, uint64_t at) {
    static const weir_status codes[FAULTS] = {WEIR_INTERNAL, WEIR_INTERNAL, WEIR_RESOURCE_EXHAUSTED, WEIR_DEVICE_LOST};
    float logits[BATCH][DIGITS_CLASSES];
    alternate_device = make_device(fault, at);
    weir_program *program = network_compile(&digits, cpu, BATCH, NULL);
    const weir_status status = read_digits(program, cpu, logits);
    if (status != WEIR_OK) {
        char engine[32];
        weir_failure failure = {.struct_size = sizeof failure};
        CHECK_OK(weir_thread_get_failure(&failure));
        const char *text = failure.message;
        CHECK_EQ(failure.code, status);
        snprintf(engine, sizeof engine, "emulated:%d", (int)(at % 8));
        if (status != codes[fault] || strstr(text, engine) == NULL ||
            (strstr(text, "node '") == NULL && strstr(text, "program 'digits'") == NULL)) {
            printf("FAILED: fault %d at %d gives %d: %s\n", (int)fault, (int)at, (int)status, text);
        }
        CHECK_EQ(status, codes[fault]);
        CHECK(strstr(text, engine) != NULL);
        CHECK(strstr(text, "node '") != NULL || strstr(text, "program 'digits'") != NULL);
        if (fault == LOSE) {
            CHECK_EQ(read_digits(program, cpu, logits), WEIR_DEVICE_LOST);
        } else {
            check_right(program, cpu);
        }
    }
    weir_program_release(program);
    weir_engine_release(alternate_device);

    /* The same device, made anew. */
    alternate_device = make_device(fault, 8 + at % 8 + MOST * 8);
    program = network_compile(&digits, cpu, BATCH, NULL);
    check_right(program, cpu);
    weir_program_release(program);
    weir_engine_release(alternate_device);
    alternate_device = NULL;
    return status != WEIR_OK;
}

int main(int argc, char **argv) {
    CHECK_OK(weir_emulated_register());
    const weir_runtime_info before = runtime_info();
    weir_engine *cpu = NULL;
    CHECK_EQ(dataset_load(&digits, argc > 1 ? argv[1] : DIGITS_DATA_DIR), 0);
    CHECK_OK(weir_engine_create(WEIR_ENGINE_CPU, 0, NULL, &cpu));
    weir_program *program = network_compile(&digits, cpu, BATCH, NULL);
    CHECK_OK(read_digits(program, cpu, expected));
    weir_program_release(program);
    for (int fault = 0; fault < FAULTS; fault++) {
        uint64_t at = 1;
        while (at < MOST && fails(cpu, (enum fault)fault, at)) at++;
        printf("fault %d: %d places\n", fault, (int)at - 1);
        CHECK(at > 1 && at < MOST);
    }
    weir_engine_release(cpu);
    dataset_free(&digits);
    check_released(&before);
    return 0;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A program whose work on a device is recorded: what the device is asked for in each run, the same results with and
 * without, the report.
 */

#include <weir/ops.h>
#include <weir/inspect.h>
#include <weir/testing.h>

#include "make.h"

enum { LEN = 64, CHAINS = 3, LENGTH = 6, RUNS = 5, NODES = CHAINS * LENGTH + CHAINS - 1 };

static weir_emulated_counters counters_of(weir_engine *engine) {
    weir_emulated_counters counters = {.struct_size = sizeof counters};
    CHECK_OK(weir_emulated_get_counters(engine, &counters));
    return counters;
}

/* Chains of tanh side by side, and their sum. */
static weir_program *make_program(weir_engine *cpu, weir_engine *device, const weir_compile_options *options) {
    weir_engine *engines[2] = {cpu, device};
    const weir_tensor_desc desc = vector_desc(LEN);
    const weir_eltwise_desc tanh = {.struct_size = sizeof tanh, .op = WEIR_ELTWISE_TANH};
    weir_graph *graph = make_graph("chains");
    weir_kernel *kernel = NULL, *add = NULL;
    weir_program *program = NULL;
    weir_value x, sum = {0};
    CHECK_OK(weir_kernel_create_eltwise(device, &tanh, NULL, &kernel));
    CHECK_OK(weir_kernel_create_binary(device, BINARY(ADD), NULL, &add));
    CHECK_OK(weir_graph_add_input(graph, "x", &desc, &x));
    for (int chain = 0; chain < CHAINS; chain++) {
        weir_value value = x;
        char name[32];
        for (int i = 0; i < LENGTH; i++) {
            (void)snprintf(name, sizeof name, "tanh %d of %d", i, chain);
            CHECK_OK(weir_graph_add_kernel(graph, name, kernel, &value, 1, &value, 1, NULL));
        }
        const weir_value both[] = {sum, value};
        (void)snprintf(name, sizeof name, "add %d", chain);
        if (chain == 0) sum = value;
        else CHECK_OK(weir_graph_add_kernel(graph, name, add, both, 2, &sum, 1, NULL));
    }
    CHECK_OK(weir_graph_add_output(graph, "sum", sum));
    CHECK_OK(weir_graph_compile(graph, engines, 2, options, &program));
    weir_kernel_release(kernel);
    weir_kernel_release(add);
    weir_graph_destroy(graph);
    return program;
}

static void check_report(weir_program *program, const char *fact) {
    char report[8192];
    CHECK_OK(weir_program_report(program, WEIR_REPORT_JSON, report, sizeof report, NULL));
    CHECK_TEXT(report, fact);
}

int main(void) {
    CHECK_OK(weir_emulated_register());
    const weir_runtime_info started = runtime_info();
    weir_engine *cpu = make_engine(NULL), *device = NULL;
    const weir_emulation emulation = {.struct_size = sizeof emulation, .flags = WEIR_EMULATION_CHECK};
    weir_engine_attr *attr = NULL;
    float first[LEN];
    CHECK_OK(weir_engine_attr_create(WEIR_ENGINE_EMULATED, &attr));
    CHECK_OK(weir_engine_attr_set_emulation(attr, &emulation));
    CHECK_OK(weir_engine_create(WEIR_ENGINE_EMULATED, 0, attr, &device));
    weir_engine_attr_destroy(attr);

    static const weir_segments all[] = {WEIR_SEGMENTS_ALWAYS, WEIR_SEGMENTS_TIMED, WEIR_SEGMENTS_NEVER};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const int recorded = all[i] != WEIR_SEGMENTS_NEVER;
        weir_compile_options options = {.struct_size = sizeof options, .segments = all[i]};
        weir_program *program = make_program(cpu, device, &options);
        options.segments = 7;
        CHECK_OK(weir_program_get_options(program, &options));
        CHECK_EQ(options.segments, all[i]);
        weir_tensor *x = make_tensor(cpu, vector_desc(LEN)), *y = make_tensor(cpu, vector_desc(LEN));
        int quiet = 0;
        for (int i = 0; i < LEN; i++) floats(x)[i] = (float)i / LEN;
        for (int run = 0; run < RUNS; run++) {
            const weir_emulated_counters before = counters_of(device);
            CHECK_OK(weir_program_run(program, NULL, &x, 1, &y, 1, NULL));
            const weir_emulated_counters after = counters_of(device);
            CHECK_EQ(after.launches - before.launches, NODES);
            CHECK_EQ(after.replays - before.replays, recorded && run > 0 ? 1 : 0);
            if (recorded && run > 0) CHECK_EQ(after.records - before.records, 2);
            if (all[i] == WEIR_SEGMENTS_ALWAYS && run == 0) memcpy(first, floats(y), sizeof first);
            CHECK(memcmp(first, floats(y), sizeof first) == 0);
        }
        check_report(program, recorded ? "\"segments\":1" : "\"segments\":0");
        check_report(program, recorded ? "\"replayed_runs\":4" : "\"replayed_runs\":0");
        check_report(program, recorded ? "\"segments_why\":\"yes, " : "\"segments_why\":\"no, the compile options");
        /* One stream leaves nothing to try. */
        check_report(program, recorded ? "\"way\":\"recordings, no segment would be" : "\"way\":\"streams, there are no");
        /* Runs allocate nothing; what the device keeps of its own grows with how late its thread comes, and that not
         * for ever. */
        for (int run = 0; run < 1000 && quiet < 20; run++) {
            const uint64_t allocated = runtime_info().allocations;
            CHECK_OK(weir_program_run(program, NULL, &x, 1, &y, 1, NULL));
            quiet = runtime_info().allocations == allocated ? quiet + 1 : 0;
        }
        CHECK_EQ(quiet, 20);
        weir_tensor_release(x);
        weir_tensor_release(y);
        weir_program_release(program);
    }
    CHECK_EQ(counters_of(device).races, 0);
    weir_engine_release(device);
    weir_engine_release(cpu);
    check_released(&started);
    return 0;
}

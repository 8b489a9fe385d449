/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Hooks are told of runs with work on a device: of those that the host carries, and of those that the device carries
 * alone, whose nodes are there while they are issued; with hooks alone, and beside a trace. Of runs, too, that the
 * device refuses when they are issued.
 */

#include <weir/device.h>
#include <weir/inspect.h>
#include <weir/ops.h>
#include <weir/testing.h>

#include "saved_text.h"
#include "test_device_board.h"
#include "tracer.h"

enum { LEN = 16, LENGTH = 5, RUNS = 6 };

/* A chain of "a", each on the device. `ends`: the engine of its input and output, NULL = the CPU's. */
static weir_program *make_chain(weir_engine *cpu, weir_engine *device, weir_engine *ends, weir_segments segments) {
    const weir_tensor_desc desc = vector_desc(LEN);
    weir_graph *graph = make_graph("chain");
    weir_kernel *relu = NULL;
    weir_program *program = NULL;
    weir_engine *engines[2] = {cpu, device};
    weir_value value;
    CHECK_OK(weir_kernel_create_eltwise(device, ELTWISE(RELU), NULL, &relu));
    CHECK_OK(weir_graph_add_input(graph, "x", &desc, &value));
    for (int i = 0; i < LENGTH; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "a %d", i);
        CHECK_OK(weir_graph_add_kernel(graph, name, relu, &value, 1, &value, 1, NULL));
    }
    CHECK_OK(weir_graph_add_output(graph, "y", value));
    if (ends != NULL) {
        CHECK_OK(weir_graph_set_port_engine(graph, WEIR_PORT_INPUT, 0, ends));
        CHECK_OK(weir_graph_set_port_engine(graph, WEIR_PORT_OUTPUT, 0, ends));
    }
    const weir_compile_options options = {.struct_size = sizeof options, .segments = segments};
    CHECK_OK(weir_graph_compile(graph, engines, 2, &options, &program));
    weir_kernel_release(relu);
    weir_graph_destroy(graph);
    return program;
}

static int is_direct(weir_program *program) {
    char report[8192];
    CHECK_OK(weir_program_report(program, WEIR_REPORT_JSON, report, sizeof report, NULL));
    return strstr(report, "\"direct_runs\":0") == NULL;
}

/* `traces`: beside hooks, whose nodes are the same ones. */
static void test_runs(weir_engine *cpu, weir_engine *device, int is_alone, weir_segments segments, int traces) {
    weir_engine *ends = is_alone ? device : NULL;
    weir_program *program = make_chain(cpu, device, ends, segments);
    weir_stream *stream = NULL;
    weir_tensor *x = make_tensor(is_alone ? device : cpu, vector_desc(LEN));
    weir_tensor *y = make_tensor(is_alone ? device : cpu, vector_desc(LEN));
    weir_trace *trace = NULL;
    CHECK_OK(weir_stream_create(device, 0, NULL, &stream));
    text told = {NULL, 0};
    static tracer t;
    begin(&t);
    if (traces) CHECK_OK(weir_trace_start(NULL, &trace));
    for (int run = 0; run < RUNS; run++) {
        CHECK_OK(weir_program_run(program, is_alone ? stream : NULL, &x, 1, &y, 1, NULL));
        /* Some are issued while the one before is under way. */
        if (run % 2 == 0) CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    }
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    end(&t);
    CHECK_EQ(is_direct(program), is_alone);
    CHECK_EQ(t.runs, RUNS);
    CHECK_EQ(t.ok, RUNS);
    CHECK_EQ(t.failed_nodes, 0);
    CHECK_EQ(t.inside, 0);
    if (segments == WEIR_SEGMENTS_NEVER) CHECK_EQ(t.named['a' - 'a'], RUNS * LENGTH);
    CHECK(t.on_devices >= RUNS);
    if (traces) {
        CHECK_OK(weir_trace_stop(trace));
        CHECK_OK(weir_trace_save_to(trace, WEIR_TRACE_CHROME, collect, &told));
        weir_trace_release(trace);
        CHECK_EQ(t.nodes + t.again, occurrences(told.data, "\"cat\":\"node\""));
        free(told.data);
    }
    weir_tensor_release(x);
    weir_tensor_release(y);
    weir_stream_release(stream);
    weir_program_release(program);
}

/* The k-th launch fails, for every k: its node has failed, and so has its run, whoever carries it. */
static void test_refused(weir_engine *cpu, int is_alone) {
    board b = plug_in("board-hooked", WEIR_DEVICE_CONCURRENT | WEIR_DEVICE_CALLBACK | WEIR_DEVICE_OWN_MEMORY);
    int hits = 0;
    for (int k = 1, hit = 1; hit; k++) {
        weir_engine *device = NULL;
        weir_stream *stream = NULL;
        CHECK_OK(weir_engine_create(b.kind, 0, NULL, &device));
        CHECK_OK(weir_stream_create(device, 0, NULL, &stream));
        weir_program *program = make_chain(cpu, device, is_alone ? device : NULL, WEIR_SEGMENTS_NEVER);
        weir_tensor *x = make_tensor(is_alone ? device : cpu, vector_desc(LEN));
        weir_tensor *y = make_tensor(is_alone ? device : cpu, vector_desc(LEN));
        static tracer t;
        int well = 0;
        begin(&t);
        test_device_plan(b.device, "launch", k, WEIR_RESOURCE_EXHAUSTED);
        for (int run = 0; run < RUNS; run++) {
            weir_status status = weir_program_run(program, is_alone ? stream : NULL, &x, 1, &y, 1, NULL);
            if (status == WEIR_OK) status = weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE);
            well += status == WEIR_OK;
        }
        hit = test_device_hit(b.device);
        test_device_plan(b.device, "", 0, 0);
        CHECK_EQ(is_direct(program), is_alone);
        weir_tensor_release(x);
        weir_tensor_release(y);
        weir_stream_release(stream);
        weir_program_release(program);
        weir_engine_release(device);
        end(&t);
        CHECK_EQ(t.ok, well);
        CHECK(t.runs >= well + hit && t.runs <= RUNS);
        CHECK_EQ(t.failed, hit);
        CHECK_EQ(t.failed_nodes, hit);
        if (!hit) CHECK_EQ(t.named['a' - 'a'], RUNS * LENGTH);
        hits += hit;
    }
    CHECK_EQ(hits, RUNS * LENGTH);
    pull_out(&b);
}

int main(void) {
    CHECK_OK(weir_emulated_register());
    const weir_runtime_info before = runtime_info();
    weir_engine *cpu = make_engine(NULL), *device = NULL;
    CHECK_OK(weir_engine_create(WEIR_ENGINE_EMULATED, 0, NULL, &device));
    for (int is_alone = 0; is_alone < 2; is_alone++) {
        for (int traces = 0; traces < 2; traces++) {
            test_runs(cpu, device, is_alone, WEIR_SEGMENTS_NEVER, traces);
            test_runs(cpu, device, is_alone, WEIR_SEGMENTS_ALWAYS, traces);
        }
    }
    weir_engine_release(device);
    for (int is_alone = 0; is_alone < 2; is_alone++) test_refused(cpu, is_alone);
    weir_engine_release(cpu);
    check_released(&before);
    return 0;
}

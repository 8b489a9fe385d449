/* Straight lines of kernels: weir's programs against CUDA graphs made by hand, and what a graph costs and saves.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "bench.h"
#include "kernels.h"
#include "weir_side.h"

#include <string.h>

typedef struct line {
    void *raw_stream, *executable, *function, *from, *to;
    raw_pointer x;
    weir_stream *stream;
    weir_program *program;
    weir_tensor *input, *output;
    int length, runs;
} line;

static double raw_runs(void *with) {
    line *l = with;
    const double start = now_ns();
    for (int i = 0; i < l->runs; i++) {
        RAW(cuGraphLaunch(l->executable, l->raw_stream));
        RAW(cuStreamSynchronize(l->raw_stream));
    }
    return (now_ns() - start) / l->runs;
}

static double weir_runs(void *with) {
    line *l = with;
    const double start = now_ns();
    for (int i = 0; i < l->runs; i++) {
        OK(weir_program_run(l->program, l->stream, &l->input, 1, &l->output, 1, NULL));
        OK(weir_stream_synchronize(l->stream, WEIR_TIMEOUT_INFINITE));
    }
    return (now_ns() - start) / l->runs;
}

/* The kernels one by one. */
static double stream_runs(void *with) {
    line *l = with;
    raw_pointer y = l->x + 4;
    unsigned one = 1;
    void *arguments[] = {&l->x, &y, &one};
    const double start = now_ns();
    for (int i = 0; i < l->runs; i++) {
        for (int k = 0; k < l->length; k++) RAW(cuLaunchKernel(l->function, 1, 1, 1, 128, 1, 1, 0, l->raw_stream, arguments, NULL));
        RAW(cuStreamSynchronize(l->raw_stream));
    }
    return (now_ns() - start) / l->runs;
}

enum { LAUNCHES = 20 };

/* The host's part of a launch, with nothing in its way. */
static double launch_call(void *with) {
    line *l = with;
    double took = 0;
    for (int i = 0; i < LAUNCHES; i++) {
        const double start = now_ns();
        RAW(cuGraphLaunch(l->executable, l->raw_stream));
        took += now_ns() - start;
        RAW(cuStreamSynchronize(l->raw_stream));
    }
    return took / LAUNCHES;
}

/* The device's, between two events around launches behind one another. */
static double on_device(void *with) {
    line *l = with;
    float ms = 0;
    RAW(cuEventRecord(l->from, l->raw_stream));
    for (int i = 0; i < LAUNCHES; i++) RAW(cuGraphLaunch(l->executable, l->raw_stream));
    RAW(cuEventRecord(l->to, l->raw_stream));
    RAW(cuStreamSynchronize(l->raw_stream));
    RAW(cuEventElapsedTime(&ms, l->from, l->to));
    return (double)ms * 1e6 / LAUNCHES;
}

/* Kernels behind one another, behind one input; with the output on the engine. */
static weir_program *compile(weir_engine *cpu, weir_engine *engine, weir_kernel *kernel, int length,
                             weir_segments segments) {
    const weir_tensor_desc desc = {WEIR_F32, 1, {1}};
    weir_engine *const engines[] = {cpu, engine};
    weir_graph *graph = NULL;
    weir_program *program = NULL;
    weir_value value = {0};
    OK(weir_graph_create("line", &graph));
    OK(weir_graph_add_input(graph, "x", &desc, &value));
    OK(weir_graph_set_port_engine(graph, WEIR_PORT_INPUT, 0, engine));
    for (int i = 0; i < length; i++) {
        char name[32];
        snprintf(name, sizeof name, "%d", i);
        weir_value next = {0};
        OK(weir_graph_add_kernel(graph, name, kernel, &value, 1, &next, 1, NULL));
        value = next;
    }
    OK(weir_graph_add_output(graph, "y", value));
    OK(weir_graph_set_port_engine(graph, WEIR_PORT_OUTPUT, 0, engine));
    const weir_compile_options options = {.struct_size = sizeof options, .segments = segments};
    OK(weir_graph_compile(graph, engines, 2, &options, &program));
    weir_graph_destroy(graph);
    return program;
}

/* As many kernels by hand, in so many chains: each writes its own float behind x. */
static void *build(line *l, int chains) {
    void *graph = NULL;
    unsigned one = 1;
    RAW(cuGraphCreate(&graph, 0));
    for (int chain = 0; chain < chains; chain++) {
        raw_pointer y = l->x + 4 + 4 * (raw_pointer)chain;
        void *node = NULL, *arguments[] = {&l->x, &y, &one};
        for (int i = 0; i < l->length / chains; i++) node = raw_node_of(graph, l->function, 1, 128, arguments, &node, i > 0);
    }
    return raw_executable(graph);
}

void bench_graphs(raw_device *device) {
    enum { LENGTHS = 4, CHAINS = 8 };
    (void)device;
    weir_engine *cpu = NULL, *engine = cuda_engine(1);
    weir_kernel *kernel = add_one_kernel(engine, 1);
    void *module = NULL;
    line l = {.function = raw_kernel(PTX_PLAIN, "add_one", &module, NULL), .raw_stream = raw_stream(), .stream = cuda_stream(engine)};
    OK(weir_engine_create(WEIR_ENGINE_CPU, 0, NULL, &cpu));
    l.from = raw_event(RAW_EVENT_DEFAULT);
    l.to = raw_event(RAW_EVENT_DEFAULT);
    l.x = raw_memory(4 + 4 * CHAINS);
    l.input = floats_on(engine, 1);
    l.output = floats_on(engine, 1);
    RAW(cuMemsetD32Async(l.x, 0, 1 + CHAINS, l.raw_stream));
    OK(weir_enqueue_fill(l.stream, l.input, 0));
    const int lengths = quick ? LENGTHS - 1 : LENGTHS;
    double calls[LENGTHS], branched[LENGTHS], device_ns[LENGTHS], one_by_one[LENGTHS], whole[LENGTHS];
    char what[64];
    table("Straight graphs of small kernels, run to completion, as CUDA graphs on both sides (goal: 1.03)");
    for (int k = 0, length = 1; k < lengths; k++, length *= 10) {
        l.program = compile(cpu, engine, kernel, length, WEIR_SEGMENTS_TIMED);
        l.length = length;
        l.executable = build(&l, 1);
        l.runs = length < 100 ? 100 : 20;
        snprintf(what, sizeof what, "%d kernels", length);
        compare(what, raw_runs, weir_runs, &l, 31);
        calls[k] = alone(launch_call, &l, 31);
        device_ns[k] = alone(on_device, &l, 31);
        whole[k] = alone(raw_runs, &l, 15);
        one_by_one[k] = alone(stream_runs, &l, 15);
        RAW(cuGraphExecDestroy(l.executable));
        weir_program_release(l.program);
        branched[k] = 0;
        if (length < CHAINS) continue;
        l.executable = build(&l, CHAINS);
        branched[k] = alone(launch_call, &l, 31);
        RAW(cuGraphExecDestroy(l.executable));
    }
    table("The same one by one, without a recording on either side");
    for (int k = 0, length = 1; k < lengths; k++, length *= 10) {
        l.program = compile(cpu, engine, kernel, length, WEIR_SEGMENTS_NEVER);
        l.length = length;
        l.runs = length < 100 ? 20 : 4;
        snprintf(what, sizeof what, "%d kernels", length);
        compare(what, stream_runs, weir_runs, &l, 15);
        weir_program_release(l.program);
    }
    printf("\n## What a CUDA graph of small kernels costs, by hand\n\n"
           "| kernels | cuGraphLaunch, the host's ns | the same in %d chains | on the device, ns | run to completion, ns | kernels one by one, ns | "
           "graph is faster by |\n|---|---|---|---|---|---|---|\n", CHAINS);
    for (int k = 0, length = 1; k < lengths; k++, length *= 10) {
        char in_chains[32] = "";
        if (branched[k] > 0) snprintf(in_chains, sizeof in_chains, "%.0f", branched[k]);
        printf("| %d | %.0f | %s | %.0f | %.0f | %.0f | %.2f |\n", length, calls[k], in_chains, device_ns[k], whole[k], one_by_one[k],
               one_by_one[k] / whole[k]);
    }
    const int last = lengths - 1;
    const double nodes = last == 3 ? 990 : 90, per_node = (device_ns[last] - device_ns[1]) / nodes;
    printf("\nOn the device: %.0f ns and %.0f ns for each kernel. The host's part: %.0f ns for 10 kernels, %.0f ns for %d; in %d chains %.0f and %.0f.\n",
           device_ns[1] - 10 * per_node, per_node, calls[1], calls[last], last == 3 ? 1000 : 100, CHAINS, branched[1], branched[last]);
    answer(6, "cuGraphLaunch of 10 and %d kernels: %.0f and %.0f ns in a line, %.0f and %.0f ns in %d chains", last == 3 ? 1000 : 100, calls[1],
           calls[last], branched[1], branched[last], CHAINS);
    weir_tensor_release(l.input);
    weir_tensor_release(l.output);
    weir_kernel_release(kernel);
    weir_stream_release(l.stream);
    weir_engine_release(engine);
    weir_engine_release(cpu);
    RAW(cuEventDestroy_v2(l.from));
    RAW(cuEventDestroy_v2(l.to));
    RAW(cuStreamDestroy_v2(l.raw_stream));
    RAW(cuModuleUnload(module));
    RAW(cuMemFree_v2(l.x));
}

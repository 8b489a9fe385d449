/* Whole graphs: straight lines against a CUDA graph made by hand, and forks on one and several streams against the time that the work
 * takes at best.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "bench.h"
#include "kernels.h"
#include "weir_side.h"

#include <string.h>

typedef struct line {
    void *raw_stream, *executable;
    weir_stream *stream;
    weir_program *program;
    weir_tensor *input, *output;
    int runs;
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

/* `chains` chains of `length` kernels, side by side behind one input; the end of the first is the output, and the others are outputs that
 * nobody looks at. Inputs and outputs are on the engine. */
static weir_program *compile(weir_engine *cpu, weir_engine *engine, weir_kernel *kernel, int chains, int length) {
    const weir_tensor_desc desc = {WEIR_F32, 1, {1}};
    weir_engine *const engines[] = {cpu, engine};
    weir_graph *graph = NULL;
    weir_program *program = NULL;
    weir_value input = {0};
    OK(weir_graph_create("chains", &graph));
    OK(weir_graph_add_input(graph, "x", &desc, &input));
    OK(weir_graph_set_input_engine(graph, 0, engine));
    for (int chain = 0; chain < chains; chain++) {
        weir_value value = input;
        for (int i = 0; i < length; i++) {
            char name[32];
            snprintf(name, sizeof name, "%d.%d", chain, i);
            weir_value next = {0};
            OK(weir_graph_add_kernel(graph, name, kernel, &value, 1, &next, 1, NULL));
            value = next;
        }
        char name[32];
        snprintf(name, sizeof name, "end %d", chain);
        OK(weir_graph_add_output(graph, name, value));
        OK(weir_graph_set_output_engine(graph, (size_t)chain, engine));
    }
    OK(weir_graph_compile(graph, engines, 2, NULL, &program));
    weir_graph_destroy(graph);
    return program;
}

/* The same by hand. Chain i writes 4 i bytes behind `y`, which is what arguments[1] points to. */
static void *build(void *function, void **arguments, raw_pointer *y, unsigned blocks, unsigned threads, int chains, int length) {
    void *graph = NULL, *executable = NULL;
    RAW(cuGraphCreate(&graph, 0));
    for (int chain = 0; chain < chains; chain++) {
        void *node = NULL;
        for (int i = 0; i < length; i++) {
            void *before = node;
            const raw_kernel_node kernel = {
                .function = function, .grid = {blocks, 1, 1}, .block = {threads, 1, 1}, .params = arguments};
            RAW(cuGraphAddKernelNode_v2(&node, graph, &before, i > 0, &kernel));
        }
        *y += 4;
    }
    RAW(cuGraphInstantiateWithFlags(&executable, graph, 0));
    RAW(cuGraphDestroy(graph));
    return executable;
}

static void straight_lines(weir_engine *cpu) {
    weir_engine *engine = cuda_engine(1);
    weir_kernel *kernel = add_one_kernel(engine, 1);
    void *module = NULL, *function = raw_kernel(PTX_PLAIN, "add_one", &module, NULL);
    raw_pointer x = raw_memory(8), y = x + 4;
    unsigned one = 1;
    void *arguments[] = {&x, &y, &one};
    line l = {.raw_stream = raw_stream(), .stream = cuda_stream(engine)};
    l.input = floats_on(engine, 1);
    l.output = floats_on(engine, 1);
    table("Straight graphs of small kernels, run to completion (goal: 1.03)");
    for (int length = 1; length <= (quick ? 100 : 1000); length *= 10) {
        l.program = compile(cpu, engine, kernel, 1, length);
        y = x + 4;
        l.executable = build(function, arguments, &y, 1, 128, 1, length);
        l.runs = length < 100 ? 100 : 20;
        char what[64];
        snprintf(what, sizeof what, "%d kernels", length);
        compare(what, raw_runs, weir_runs, &l, 31);
        weir_program_release(l.program);
        RAW(cuGraphExecDestroy(l.executable));
    }
    weir_tensor_release(l.input);
    weir_tensor_release(l.output);
    weir_kernel_release(kernel);
    weir_stream_release(l.stream);
    weir_engine_release(engine);
    RAW(cuStreamDestroy_v2(l.raw_stream));
    RAW(cuModuleUnload(module));
    RAW(cuMemFree_v2(x));
}

/* Eight chains of eight kernels that use an eighth of the device each: one after the other, they take as long as 64 kernels; side by side,
 * as 8. */
static void forks(weir_engine *cpu, raw_device *device) {
    enum { CHAINS = 8, LENGTH = 8, ROUNDS = 15 };
    const int microseconds[] = {2, 10, 50};
    const unsigned blocks = device->sms >= 8 ? (unsigned)device->sms / 8 : 1;
    printf("\n## Eight chains of eight kernels, each on an eighth of the device\n\n"
           "Ideal: a chain's kernels one after the other, the chains side by side, at the time that one kernel is seen to take on the device.\n\n"
           "| kernel | streams | ideal, us | weir, us | ideal / weir (goal: 0.95 at 50 us) | CUDA graph by hand, us |\n|---|---|---|---|---|---|\n");
    for (size_t k = 0; k < sizeof microseconds / sizeof *microseconds; k++) {
        uint64_t cycles = (uint64_t)device->clock_khz / 1000 * (uint64_t)microseconds[k];
        if (quick) cycles = 100;
        /* What a kernel takes: a chain of a hundred between two events. */
        void *module = NULL, *function = raw_kernel(PTX_PLAIN, "spin", &module, NULL), *stream = raw_stream();
        void *from = raw_event(RAW_EVENT_DEFAULT), *to = raw_event(RAW_EVENT_DEFAULT);
        raw_pointer x = raw_memory(4 + 4 * CHAINS), y = x + 4;
        void *arguments[] = {&x, &y, &cycles};
        float ms = 0;
        RAW(cuMemsetD32Async(x, 0, 1 + CHAINS, stream));
        void *chain = build(function, arguments, &y, blocks, 32, 1, 100);
        for (int i = 0; i < 2; i++) {
            RAW(cuEventRecord(from, stream));
            RAW(cuGraphLaunch(chain, stream));
            RAW(cuEventRecord(to, stream));
            RAW(cuStreamSynchronize(stream));
            RAW(cuEventElapsedTime(&ms, from, to));
        }
        const double ideal = (double)ms * 1e3 / 100 * LENGTH;
        line l = {.raw_stream = stream, .runs = quick ? 1 : 10};
        y = x + 4;
        l.executable = build(function, arguments, &y, blocks, 32, CHAINS, LENGTH);
        double raw_ns[ROUNDS];
        for (int round = 0; round < ROUNDS; round++) raw_ns[round] = raw_runs(&l);
        const double by_hand = median(raw_ns, ROUNDS) / 1e3;
        const uint32_t streams[] = {1, 2, 4, 8, 0};
        for (size_t s = 0; s < sizeof streams / sizeof *streams; s++) {
            weir_engine *engine = cuda_engine(streams[s]);
            weir_kernel *kernel = spin_kernel(engine, cycles, blocks);
            weir_program *program = compile(cpu, engine, kernel, CHAINS, LENGTH);
            weir_stream *own = cuda_stream(engine);
            weir_tensor *input = floats_on(engine, 1), *outputs[CHAINS];
            double weir_ns[ROUNDS];
            for (int i = 0; i < CHAINS; i++) outputs[i] = floats_on(engine, 1);
            for (int round = -3; round < ROUNDS; round++) {
                const double start = now_ns();
                for (int i = 0; i < l.runs; i++) {
                    OK(weir_program_run(program, own, &input, 1, outputs, CHAINS, NULL));
                    OK(weir_stream_synchronize(own, WEIR_TIMEOUT_INFINITE));
                }
                if (round >= 0) weir_ns[round] = (now_ns() - start) / l.runs;
            }
            const double took = median(weir_ns, ROUNDS) / 1e3;
            char count[16];
            snprintf(count, sizeof count, streams[s] == 0 ? "as weir picks" : "%u", (unsigned)streams[s]);
            printf("| %d us | %s | %.0f | %.0f | %.2f | %.0f |\n", microseconds[k], count, ideal, took, ideal / took, by_hand);
            for (int i = 0; i < CHAINS; i++) weir_tensor_release(outputs[i]);
            weir_tensor_release(input);
            weir_stream_release(own);
            weir_program_release(program);
            weir_kernel_release(kernel);
            weir_engine_release(engine);
        }
        RAW(cuGraphExecDestroy(l.executable));
        RAW(cuGraphExecDestroy(chain));
        RAW(cuEventDestroy_v2(from));
        RAW(cuEventDestroy_v2(to));
        RAW(cuStreamDestroy_v2(stream));
        RAW(cuMemFree_v2(x));
        RAW(cuModuleUnload(module));
    }
}

void bench_graphs(raw_device *device) {
    weir_engine *cpu = NULL;
    OK(weir_engine_create(WEIR_ENGINE_CPU, 0, NULL, &cpu));
    straight_lines(cpu);
    forks(cpu, device);
    weir_engine_release(cpu);
}

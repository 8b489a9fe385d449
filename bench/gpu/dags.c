/* The same graph on one stream, on several, and as a CUDA graph, against the time that the kernels themselves take on
 * its longest path.
 *
 * No graph here has more than eight kernels side by side, and each uses an eighth of the multiprocessors: at best, all
 * of a graph takes as long as its longest path. A kernel's own time is what it measures with the device's clocks,
 * without anything in front of or behind it.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "bench.h"
#include "kernels.h"
#include "weir_side.h"

#include <string.h>
#include <weir/inspect.h>

enum { NODES = 64, WIDTH = 8, MOST_INPUTS = 3, WAYS = 10, ROUNDS = 9 };
enum { RAW_STREAM, RAW_GRAPH, WEIR_1, WEIR_2, WEIR_4, WEIR_8, WEIR_DEFAULT, HOST_STREAMS, HOST_GRAPH, HOST_PICKED };

static const char *const ways[WAYS] = {"by hand, one stream", "by hand, a CUDA graph", "weir, 1 stream", "weir, 2 streams",
                                       "weir, 4 streams", "weir, 8 streams", "weir as it is",
                                       "from the host, 8 streams", "from the host, a CUDA graph", "from the host, the picked one"};

/* Nodes in an order that runs. An input -1 is the graph's. */
typedef struct dag {
    const char *name;
    int inputs[NODES][MOST_INPUTS], num_inputs[NODES], is_end[NODES], longest;
} dag;

static void reads(dag *d, int node, int from) {
    d->inputs[node][d->num_inputs[node]++] = from;
    if (from >= 0) d->is_end[from] = 0;
}

static void finish(dag *d) {
    int depth[NODES];
    for (int node = 0; node < NODES; node++) {
        depth[node] = 1;
        for (int i = 0; i < d->num_inputs[node]; i++) {
            const int from = d->inputs[node][i];
            if (from >= 0 && depth[from] >= depth[node]) depth[node] = depth[from] + 1;
        }
        if (depth[node] > d->longest) d->longest = depth[node];
    }
}

static dag start(const char *name) {
    dag d = {.name = name};
    for (int node = 0; node < NODES; node++) d.is_end[node] = 1;
    return d;
}

static dag chains(void) {
    dag d = start("8 chains of 8");
    for (int node = 0; node < NODES; node++) reads(&d, node, node < WIDTH ? -1 : node - WIDTH);
    finish(&d);
    return d;
}

static dag layers(void) {
    dag d = start("8 layers of 8, each reads 3 of the layer before");
    for (int node = 0; node < NODES; node++) {
        const int layer = node / WIDTH, at = node % WIDTH;
        if (layer == 0) reads(&d, node, -1);
        for (int i = 0; layer > 0 && i < MOST_INPUTS; i++) reads(&d, node, (layer - 1) * WIDTH + (at + i * i + layer) % WIDTH);
    }
    finish(&d);
    return d;
}

/* One, four chains of 15 behind it, and three that join them. */
static dag fork_and_join(void) {
    dag d = start("a fork of 4 chains of 15, joined");
    reads(&d, 0, -1);
    for (int node = 1; node <= 60; node++) reads(&d, node, node <= 4 ? 0 : node - 4);
    for (int node = 61; node < NODES; node++) {
        reads(&d, node, node == 61 ? 57 : node - 1);
        reads(&d, node, node - 3);
    }
    finish(&d);
    return d;
}

typedef struct side {
    const dag *d;
    /* by hand */
    void *stream, *function, *executable;
    raw_pointer memory; /* the input, then each node's float */
    uint64_t cycles;
    unsigned blocks;
    /* weir's ways */
    weir_engine *engines[WAYS];
    weir_stream *streams[WAYS];
    weir_program *programs[WAYS];
    weir_tensor *inputs[WAYS], *outputs[WAYS][NODES];
    size_t num_outputs;
} side;

static void arguments_of(side *s, int node, raw_pointer *x, raw_pointer *y) {
    *x = s->memory + 4 * (raw_pointer)(s->d->inputs[node][0] + 1);
    *y = s->memory + 4 * (raw_pointer)(node + 1);
}

static void *build(side *s) {
    void *graph = NULL, *nodes[NODES];
    RAW(cuGraphCreate(&graph, 0));
    for (int node = 0; node < NODES; node++) {
        raw_pointer x, y;
        void *arguments[] = {&x, &y, &s->cycles}, *after[MOST_INPUTS];
        size_t count = 0;
        arguments_of(s, node, &x, &y);
        for (int i = 0; i < s->d->num_inputs[node]; i++) {
            if (s->d->inputs[node][i] >= 0) after[count++] = nodes[s->d->inputs[node][i]];
        }
        nodes[node] = raw_node_of(graph, s->function, s->blocks, 32, arguments, after, count);
    }
    return raw_executable(graph);
}

static void compile(side *s, weir_engine *cpu, int way) {
    static const uint32_t max_streams[WAYS] = {0, 0, 1, 2, 4, 8, 1, 8, 8, 8};
    enum { NEVER = WEIR_SEGMENTS_NEVER, TIMED = WEIR_SEGMENTS_TIMED, ALWAYS = WEIR_SEGMENTS_ALWAYS };
    static const weir_segments segments[WAYS] = {NEVER, NEVER, NEVER, NEVER,  NEVER,
                                                 NEVER, TIMED, NEVER, ALWAYS, TIMED};
    const weir_tensor_desc desc = {WEIR_F32, 1, {1}};
    weir_engine *engine = cuda_engine(max_streams[way]);
    weir_engine *const engines[] = {cpu, engine};
    weir_kernel *kernels[MOST_INPUTS];
    weir_graph *graph = NULL;
    weir_value input = {0}, values[NODES];
    for (size_t i = 0; i < MOST_INPUTS; i++) kernels[i] = spin_kernel(engine, s->cycles, s->blocks, i + 1);
    OK(weir_graph_create(s->d->name, &graph));
    OK(weir_graph_add_input(graph, "x", &desc, &input));
    OK(weir_graph_set_port_engine(graph, WEIR_PORT_INPUT, 0, engine));
    s->num_outputs = 0;
    for (int node = 0; node < NODES; node++) {
        const int count = s->d->num_inputs[node];
        weir_value from[MOST_INPUTS];
        char name[32];
        for (int i = 0; i < count; i++) from[i] = s->d->inputs[node][i] < 0 ? input : values[s->d->inputs[node][i]];
        snprintf(name, sizeof name, "%d", node);
        OK(weir_graph_add_kernel(graph, name, kernels[count - 1], from, (size_t)count, &values[node], 1, NULL));
        if (!s->d->is_end[node]) continue;
        OK(weir_graph_add_output(graph, name, values[node]));
        OK(weir_graph_set_port_engine(graph, WEIR_PORT_OUTPUT, s->num_outputs, engine));
        s->outputs[way][s->num_outputs++] = floats_on(engine, 1);
    }
    const weir_compile_options options = {.struct_size = sizeof options, .segments = segments[way]};
    OK(weir_graph_compile(graph, engines, 2, &options, &s->programs[way]));
    weir_graph_destroy(graph);
    for (int i = 0; i < MOST_INPUTS; i++) weir_kernel_release(kernels[i]);
    s->engines[way] = engine;
    s->streams[way] = cuda_stream(engine);
    s->inputs[way] = floats_on(engine, 1);
    OK(weir_enqueue_fill(s->streams[way], s->inputs[way], 0));
    /* Runs from the host are not behind what the stream does. */
    OK(weir_stream_synchronize(s->streams[way], WEIR_TIMEOUT_INFINITE));
}

static void run(side *s, int way) {
    if (way == RAW_STREAM) {
        for (int node = 0; node < NODES; node++) {
            raw_pointer x, y;
            void *arguments[] = {&x, &y, &s->cycles};
            arguments_of(s, node, &x, &y);
            RAW(cuLaunchKernel(s->function, s->blocks, 1, 1, 32, 1, 1, 0, s->stream, arguments, NULL));
        }
        RAW(cuStreamSynchronize(s->stream));
    } else if (way == RAW_GRAPH) {
        RAW(cuGraphLaunch(s->executable, s->stream));
        RAW(cuStreamSynchronize(s->stream));
    } else if (way >= HOST_STREAMS) {
        /* Not as work of the stream's own, which is a graph always. */
        OK(weir_program_run(s->programs[way], NULL, &s->inputs[way], 1, s->outputs[way], s->num_outputs, NULL));
    } else {
        OK(weir_program_run(s->programs[way], s->streams[way], &s->inputs[way], 1, s->outputs[way], s->num_outputs, NULL));
        OK(weir_stream_synchronize(s->streams[way], WEIR_TIMEOUT_INFINITE));
    }
}

/* What a program's report says of the way that its runs go. */
static const char *way_of(weir_program *program) {
    static char report[16384];
    OK(weir_program_report(program, WEIR_REPORT_JSON, report, sizeof report, NULL));
    const char *way = strstr(report, "\"way\":\"");
    return way == NULL ? "?" : way[7] == 's' ? "streams" : way[7] == 'r' ? "a graph" : "not yet";
}

/* Medians in us of all ways, which take turns; gives which one was picked. */
static const char *measure(const dag *d, raw_device *device, weir_engine *cpu, uint64_t cycles, double us[WAYS]) {
    static side s;
    static double took[WAYS][ROUNDS];
    void *module = NULL;
    const int rounds = quick ? 1 : ROUNDS, runs = quick ? 1 : 8;
    memset(&s, 0, sizeof s);
    s.d = d;
    s.cycles = cycles;
    s.blocks = device->sms >= WIDTH ? (unsigned)device->sms / WIDTH : 1;
    s.function = raw_kernel(PTX_PLAIN, "spin", &module, NULL);
    s.stream = raw_stream();
    s.memory = raw_memory(4 * (NODES + 1));
    RAW(cuMemsetD32Async(s.memory, 0, NODES + 1, s.stream));
    s.executable = build(&s);
    for (int way = WEIR_1; way < WAYS; way++) compile(&s, cpu, way);
    for (int round = -1; round < rounds; round++) {
        for (int way = 0; way < WAYS; way++) {
            /* A program's second run records, six more are timed where there is something to pick, and the next one is
             * as all others. */
            if (round < 0) for (int i = 0; i < 9; i++) run(&s, way);
            const double begun = now_ns();
            for (int i = 0; i < runs; i++) run(&s, way);
            if (round >= 0) took[way][round] = (now_ns() - begun) / runs;
        }
    }
    for (int way = 0; way < WAYS; way++) us[way] = median(took[way], rounds) / 1e3;
    const char *picked = way_of(s.programs[HOST_PICKED]);
    for (int way = WEIR_1; way < WAYS; way++) {
        for (size_t i = 0; i < s.num_outputs; i++) weir_tensor_release(s.outputs[way][i]);
        weir_tensor_release(s.inputs[way]);
        weir_stream_release(s.streams[way]);
        weir_program_release(s.programs[way]);
        weir_engine_release(s.engines[way]);
    }
    RAW(cuGraphExecDestroy(s.executable));
    RAW(cuStreamDestroy_v2(s.stream));
    RAW(cuMemFree_v2(s.memory));
    RAW(cuModuleUnload(module));
    return picked;
}

void bench_dags(raw_device *device) {
    static const double lengths[] = {2, 5, 10, 20, 50};
    enum { LENGTHS = sizeof lengths / sizeof *lengths };
    const spin_clock clock = measure_clock(device);
    const unsigned blocks = device->sms >= WIDTH ? (unsigned)device->sms / WIDTH : 1;
    const dag dags[] = {chains(), layers(), fork_and_join()};
    double streams_win = 0, graph_wins = 0;
    weir_engine *cpu = NULL;
    OK(weir_engine_create(WEIR_ENGINE_CPU, 0, NULL, &cpu));
    printf("\n## One graph, several ways\n\n"
           "64 kernels on an eighth of the device each. Ideal: the longest path, each kernel with the time that it measures itself. All in us, run to\n"
           "completion. \"weir as it is\" is what a program does that sets nothing: a CUDA graph from its second run on,\n"
           "as its stream's own work. \"From the host\" are runs by the host's executor: always on streams, always by a CUDA graph, and by the one of the two\n"
           "that the program has picked after it has timed both. The last column is 1.00 where it has picked right.\n\n| graph | kernel | ideal |");
    for (int way = 0; way < WAYS; way++) printf(" %s |", ways[way]);
    printf(" ideal / best of weir (goal: 0.95 at 50 us) | best of weir / weir as it is | picked | best from the host / picked |\n|---|---|---|");
    for (int way = 0; way < WAYS + 4; way++) printf("---|");
    printf("\n");
    for (size_t d = 0; d < sizeof dags / sizeof *dags; d++) {
        for (int k = 0; k < LENGTHS; k++) {
            if (d > 0 && (lengths[k] == 5 || lengths[k] == 20)) continue;
            if (quick && lengths[k] > 2 && lengths[k] < 50) continue;
            const uint64_t cycles = spin_cycles(clock, lengths[k]);
            const double kernel = spin_ns(clock, cycles, blocks, quick ? 1 : 51) / 1e3, ideal = kernel * dags[d].longest;
            double us[WAYS], best;
            const char *picked = measure(&dags[d], device, cpu, cycles, us);
            best = us[WEIR_1];
            for (int way = WEIR_1; way < WAYS; way++) best = us[way] < best ? us[way] : best;
            printf("| %s | %.1f | %.0f |", dags[d].name, kernel, ideal);
            for (int way = 0; way < WAYS; way++) printf(" %.0f |", us[way]);
            double from_host = us[HOST_STREAMS];
            for (int way = HOST_STREAMS; way <= HOST_PICKED; way++) from_host = us[way] < from_host ? us[way] : from_host;
            printf(" %.2f | %.2f | %s | %.2f |\n", ideal / best, best / us[WEIR_DEFAULT], picked, from_host / us[HOST_PICKED]);
            fflush(stdout);
            const double several = us[WEIR_4] < us[WEIR_8] ? us[WEIR_4] : us[WEIR_8];
            if (d == 0 && streams_win == 0 && several < us[WEIR_1] * 0.95) streams_win = lengths[k];
            if (d == 0 && graph_wins == 0 && us[WEIR_DEFAULT] < several && us[WEIR_DEFAULT] < us[WEIR_1]) graph_wins = lengths[k];
        }
    }
    char streams[32] = "at no length", graph[32] = "at no length";
    if (streams_win > 0) snprintf(streams, sizeof streams, "from %.0f us on", streams_win);
    if (graph_wins > 0) snprintf(graph, sizeof graph, "from %.0f us on", graph_wins);
    answer(6, "of kernels of 2 to 50 us, 8 chains of 8: several streams win over one %s, a CUDA graph over both %s", streams, graph);
    weir_engine_release(cpu);
}

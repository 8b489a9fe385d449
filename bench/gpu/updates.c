/* A graph of a thousand kernels: to make it again, against to give some of its kernels other addresses.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "bench.h"
#include "kernels.h"
#include "weir_side.h"

enum { MOST = 1000, ROUNDS = 9 };

static int nodes(void) {
    return quick ? 100 : MOST;
}

typedef struct updates {
    void *stream, *function, *graph, *executable, *nodes[MOST];
    raw_pointer memory; /* two inputs, then a float for each chain */
    int changed;
    uint32_t turn;
    weir_stream *weir_stream;
    weir_program *program;
    weir_tensor *inputs[2], **outputs;
    size_t chains;
} updates;

static void *build(updates *u) {
    void *graph = NULL;
    unsigned one = 1;
    RAW(cuGraphCreate(&graph, 0));
    for (int i = 0; i < nodes(); i++) {
        raw_pointer x = u->memory, y = u->memory + 8;
        void *arguments[] = {&x, &y, &one};
        u->nodes[i] = raw_node_of(graph, u->function, 1, 1, arguments, &u->nodes[i > 0 ? i - 1 : 0], i > 0);
    }
    return graph;
}

/* Nodes, executable, and the first launch, which may upload it. */
static double make_again(void *with) {
    updates *u = with;
    const double start = now_ns();
    void *executable = raw_executable(build(u));
    RAW(cuGraphLaunch(executable, u->stream));
    const double took = now_ns() - start;
    RAW(cuStreamSynchronize(u->stream));
    RAW(cuGraphExecDestroy(executable));
    return took;
}

static double instantiate(void *with) {
    updates *u = with;
    void *graph = build(u);
    const double start = now_ns();
    void *executable = NULL;
    RAW(cuGraphInstantiateWithFlags(&executable, graph, 0));
    const double took = now_ns() - start;
    RAW(cuGraphExecDestroy(executable));
    RAW(cuGraphDestroy(graph));
    return took;
}

static double launch_only(void *with) {
    updates *u = with;
    const double start = now_ns();
    RAW(cuGraphLaunch(u->executable, u->stream));
    const double took = now_ns() - start;
    RAW(cuStreamSynchronize(u->stream));
    return took;
}

/* Some kernels get the other input; then the launch. */
static double change_some(void *with) {
    updates *u = with;
    raw_pointer x = u->memory + 4 * (++u->turn % 2), y = u->memory + 8;
    unsigned one = 1;
    void *arguments[] = {&x, &y, &one};
    const raw_kernel_node params = {.function = u->function, .grid = {1, 1, 1}, .block = {1, 1, 1}, .params = arguments};
    const double start = now_ns();
    for (int i = 0; i < u->changed; i++) RAW(cuGraphExecKernelNodeSetParams_v2(u->executable, u->nodes[i * (nodes() / u->changed)], &params));
    RAW(cuGraphLaunch(u->executable, u->stream));
    const double took = now_ns() - start;
    RAW(cuStreamSynchronize(u->stream));
    return took;
}

/* The driver compares a whole graph with the executable. */
static double compare_all(void *with) {
    updates *u = with;
    struct {
        int result;
        void *node, *from;
    } found;
    const double start = now_ns();
    RAW(cuGraphExecUpdate_v2(u->executable, u->graph, &found));
    RAW(cuGraphLaunch(u->executable, u->stream));
    const double took = now_ns() - start;
    RAW(cuStreamSynchronize(u->stream));
    return took;
}

static double weir_run_with(updates *u, int other) {
    const double start = now_ns();
    OK(weir_program_run(u->program, u->weir_stream, &u->inputs[other], 1, u->outputs, u->chains, NULL));
    OK(weir_stream_synchronize(u->weir_stream, WEIR_TIMEOUT_INFINITE));
    return now_ns() - start;
}

static double weir_same(void *with) {
    return weir_run_with(with, 0);
}

static double weir_other(void *with) {
    updates *u = with;
    return weir_run_with(u, (int)(++u->turn % 2));
}

/* So many chains of kernels, together as many nodes: the first of each chain reads the input. */
static void compile(updates *u, weir_engine *cpu, weir_engine *engine, weir_kernel *kernel, int chains) {
    const weir_tensor_desc desc = {WEIR_F32, 1, {1}};
    weir_engine *const engines[] = {cpu, engine};
    weir_graph *graph = NULL;
    weir_value input = {0};
    OK(weir_graph_create("chains", &graph));
    OK(weir_graph_add_input(graph, "x", &desc, &input));
    OK(weir_graph_set_port_engine(graph, WEIR_PORT_INPUT, 0, engine));
    u->chains = (size_t)chains;
    for (int chain = 0; chain < chains; chain++) {
        weir_value value = input;
        char name[32];
        for (int i = 0; i < nodes() / chains; i++) {
            weir_value next = {0};
            snprintf(name, sizeof name, "%d.%d", chain, i);
            OK(weir_graph_add_kernel(graph, name, kernel, &value, 1, &next, 1, NULL));
            value = next;
        }
        snprintf(name, sizeof name, "end %d", chain);
        OK(weir_graph_add_output(graph, name, value));
        OK(weir_graph_set_port_engine(graph, WEIR_PORT_OUTPUT, (size_t)chain, engine));
        u->outputs[chain] = floats_on(engine, 1);
    }
    OK(weir_graph_compile(graph, engines, 2, NULL, &u->program));
    weir_graph_destroy(graph);
}

void bench_updates(raw_device *device) {
    (void)device;
    static weir_tensor *outputs[MOST];
    void *module = NULL;
    weir_engine *cpu = NULL, *engine = cuda_engine(1);
    weir_kernel *kernel = add_one_kernel(engine, 1);
    static updates u;
    u.function = raw_kernel(PTX_PLAIN, "add_one", &module, NULL);
    u.stream = raw_stream();
    u.memory = raw_memory(16);
    u.outputs = outputs;
    u.weir_stream = cuda_stream(engine);
    OK(weir_engine_create(WEIR_ENGINE_CPU, 0, NULL, &cpu));
    RAW(cuMemsetD32Async(u.memory, 0, 4, u.stream));
    for (int i = 0; i < 2; i++) {
        u.inputs[i] = floats_on(engine, 1);
        OK(weir_enqueue_fill(u.weir_stream, u.inputs[i], 0));
    }
    const double again = alone(make_again, &u, ROUNDS), instance = alone(instantiate, &u, ROUNDS);
    u.graph = build(&u);
    RAW(cuGraphInstantiateWithFlags(&u.executable, u.graph, 0));
    const double launch = alone(launch_only, &u, 31);
    printf("\n## A graph of %d kernels: made again, or changed\n\n"
           "The host's us. A change is with the launch behind it; a run of weir's is to completion.\n\n"
           "| what | us | made again takes so many times as long (goal: 20) |\n|---|---|---|\n"
           "| by hand: nodes, cuGraphInstantiate and the first launch | %.1f | |\n| cuGraphInstantiate alone | %.1f | |\n"
           "| cuGraphLaunch, nothing changed | %.1f | |\n", nodes(), again / 1e3, instance / 1e3, launch / 1e3);
    for (u.changed = 1; u.changed <= 100; u.changed *= 100) {
        const double took = alone(change_some, &u, 31);
        printf("| %d kernels changed | %.1f | %.1f |\n", u.changed, took / 1e3, again / took);
    }
    const double all = alone(compare_all, &u, ROUNDS);
    printf("| cuGraphExecUpdate of all | %.1f | %.1f |\n", all / 1e3, again / all);
    for (int chains = 1; chains <= 100; chains *= 100) {
        compile(&u, cpu, engine, kernel, chains);
        for (int i = 0; i < 2; i++) weir_run_with(&u, i);
        const double same = alone(weir_same, &u, 31), other = alone(weir_other, &u, 31);
        printf("| weir, the same input as before | %.1f | |\n| weir, another input, which %d kernels read | %.1f | |\n", same / 1e3, chains,
               other / 1e3);
        for (int i = 0; i < chains; i++) weir_tensor_release(u.outputs[i]);
        weir_program_release(u.program);
    }
    RAW(cuGraphExecDestroy(u.executable));
    RAW(cuGraphDestroy(u.graph));
    for (int i = 0; i < 2; i++) weir_tensor_release(u.inputs[i]);
    weir_stream_release(u.weir_stream);
    weir_kernel_release(kernel);
    weir_engine_release(engine);
    weir_engine_release(cpu);
    RAW(cuStreamDestroy_v2(u.stream));
    RAW(cuMemFree_v2(u.memory));
    RAW(cuModuleUnload(module));
}

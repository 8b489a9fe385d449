/* A hundred branches in one graph, taken or not: IF nodes by hand, and weir's cond, by the device and by the host.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include <weir/control.h>

#include "bench.h"
#include "kernels.h"
#include "weir_side.h"

enum { IFS = 100 };

typedef struct branches {
    void *stream, *executable;
} branches;

static double run(void *with) {
    branches *b = with;
    const double start = now_ns();
    RAW(cuGraphLaunch(b->executable, b->stream));
    RAW(cuStreamSynchronize(b->stream));
    return now_ns() - start;
}

/* One IF behind the other, each with a kernel in its body and a condition of its own that every launch sets; NULL if
 * the driver refuses. */
static void *ifs(raw_device *device, void *empty, void **arguments, unsigned taken) {
    void *graph = NULL, *node = NULL, *executable = NULL;
    RAW(cuGraphCreate(&graph, 0));
    for (int i = 0; i < IFS; i++) {
        uint64_t handle = 0;
        void *before = node;
        RAW(cuGraphConditionalHandleCreate(&handle, graph, device->context, taken, RAW_ASSIGN_DEFAULT));
        raw_node params = {.type = RAW_NODE_CONDITIONAL, .handle = handle, .condition = RAW_IF, .size = 1, .context = device->context};
        RAW(cuGraphAddNode_v2(&node, graph, &before, NULL, i > 0, &params));
        raw_node_of(params.bodies[0], empty, 1, 1, arguments, NULL, 0);
    }
    if (raw.cuGraphInstantiateWithFlags(&executable, graph, 0) != 0) executable = NULL;
    RAW(cuGraphDestroy(graph));
    return executable;
}

typedef struct conds {
    weir_stream *stream;
    weir_program *program;
    weir_tensor *inputs[2], *output;
} conds;

static double run_conds(void *with) {
    conds *c = with;
    const double start = now_ns();
    OK(weir_program_run(c->program, c->stream, c->inputs, 2, &c->output, 1, NULL));
    OK(weir_stream_synchronize(c->stream, WEIR_TIMEOUT_INFINITE));
    return now_ns() - start;
}

/* A graph of one kernel on one float. */
static weir_graph *one_kernel(weir_kernel *kernel) {
    const weir_tensor_desc desc = {WEIR_F32, 1, {1}};
    weir_graph *graph = NULL;
    weir_value x, y;
    OK(weir_graph_create("branch", &graph));
    OK(weir_graph_add_input(graph, "x", &desc, &x));
    OK(weir_graph_add_kernel(graph, "kernel", kernel, &x, 1, &y, 1, NULL));
    OK(weir_graph_add_output(graph, "y", y));
    return graph;
}

/* if (x < limit) y = y + 1, else y as it is; a hundred times. */
static weir_program *compile(weir_engine *cpu, weir_engine *engine, int by_device) {
    const weir_tensor_desc desc = {WEIR_F32, 1, {1}};
    weir_engine *const engines[] = {cpu, engine};
    weir_kernel *less = less_kernel(engine), *add = add_one_kernel(engine, 1), *copy = spin_kernel(engine, 0, 1, 1);
    weir_graph *taken = one_kernel(add), *not_taken = one_kernel(copy), *graph = NULL;
    weir_program *program = NULL;
    weir_value values[2], value, predicate;
    OK(weir_graph_create("branches", &graph));
    OK(weir_graph_add_input(graph, "x", &desc, &values[0]));
    OK(weir_graph_add_input(graph, "limit", &desc, &values[1]));
    for (size_t i = 0; i < 2; i++) OK(weir_graph_set_port_engine(graph, WEIR_PORT_INPUT, i, engine));
    OK(weir_graph_add_kernel(graph, "less", less, values, 2, &predicate, 1, NULL));
    value = values[0];
    for (int i = 0; i < IFS; i++) {
        char name[32];
        snprintf(name, sizeof name, "cond %d", i);
        OK(weir_graph_add_cond(graph, name, &(weir_cond_desc){.struct_size = sizeof(weir_cond_desc),
            .predicate = predicate, .then_graph = taken, .else_graph = not_taken, .inputs = &value, .num_inputs = 1},
            &value, 1, NULL));
    }
    OK(weir_graph_add_output(graph, "y", value));
    OK(weir_graph_set_port_engine(graph, WEIR_PORT_OUTPUT, 0, engine));
    const weir_compile_options options = {
        .struct_size = sizeof options, .flags = by_device ? 0 : WEIR_COMPILE_NO_DEVICE_CONTROL};
    OK(weir_graph_compile(graph, engines, 2, &options, &program));
    weir_graph *const graphs[] = {graph, taken, not_taken};
    weir_kernel *const kernels[] = {less, add, copy};
    for (int i = 0; i < 3; i++) {
        weir_graph_destroy(graphs[i]);
        weir_kernel_release(kernels[i]);
    }
    return program;
}

static void weir_conds(void) {
    const weir_tensor_desc desc = {WEIR_F32, 1, {1}};
    weir_engine *cpu = NULL, *engine = cuda_engine(1);
    OK(weir_engine_create(WEIR_ENGINE_CPU, 0, NULL, &cpu));
    conds c = {.stream = cuda_stream(engine), .inputs = {floats_on(engine, 1), floats_on(engine, 1)}, .output = floats_on(engine, 1)};
    for (int by_device = 1; by_device >= 0; by_device--) {
        c.program = compile(cpu, engine, by_device);
        for (int taken = 0; taken < 2; taken++) {
            float values[] = {0, taken ? 1.0f : -1.0f, -1};
            weir_tensor *host[3];
            for (int i = 0; i < 3; i++) OK(weir_tensor_create(cpu, &desc, &(weir_memory){.struct_size = sizeof(weir_memory), .data = &values[i]}, &host[i]));
            for (int i = 0; i < 2; i++) OK(weir_enqueue_copy(c.stream, host[i], c.inputs[i]));
            /* A program's second run records, and the third is as all others. */
            for (int i = 0; i < 2; i++) run_conds(&c);
            printf("- %d conds of weir's, decided by the %s, %s: %.0f ns each.\n", IFS, by_device ? "device if it can" : "host",
                   taken ? "taken" : "not taken", alone(run_conds, &c, 15) / IFS);
            OK(weir_enqueue_copy(c.stream, c.output, host[2]));
            OK(weir_stream_synchronize(c.stream, WEIR_TIMEOUT_INFINITE));
            if (values[2] != (taken ? IFS : 0)) {
                printf("- WRONG: it came to %g.\n", (double)values[2]);
                wrong = 1;
            }
            for (int i = 0; i < 3; i++) weir_tensor_release(host[i]);
        }
        if (by_device) printf("- The device is asked to decide: %s\n", decision(c.program));
        weir_program_release(c.program);
    }
    for (int i = 0; i < 2; i++) weir_tensor_release(c.inputs[i]);
    weir_tensor_release(c.output);
    weir_stream_release(c.stream);
    weir_engine_release(engine);
    weir_engine_release(cpu);
}

void bench_branches(raw_device *device) {
    printf("\n## Branches\n\n");
    weir_conds();
    if (raw.cuGraphAddNode_v2 == NULL || raw.cuGraphConditionalHandleCreate == NULL) {
        printf("This driver has no conditional nodes.\n");
        return;
    }
    branches b = {.stream = raw_stream()};
    void *module = NULL, *empty = raw_kernel(PTX_PLAIN, "empty", &module, NULL), *graph = NULL, *node = NULL;
    raw_pointer none = 0;
    void *arguments[] = {&none, &none, &none, &none};
    RAW(cuGraphCreate(&graph, 0));
    for (int i = 0; i < IFS; i++) node = raw_node_of(graph, empty, 1, 1, arguments, &node, i > 0);
    b.executable = raw_executable(graph);
    const double straight = alone(run, &b, 31) / IFS;
    RAW(cuGraphExecDestroy(b.executable));
    for (unsigned taken = 0; taken < 2; taken++) {
        b.executable = ifs(device, empty, arguments, taken);
        if (b.executable == NULL) {
            printf("A graph of %d IF nodes is refused.\n", IFS);
            break;
        }
        const double each = alone(run, &b, 31) / IFS;
        printf("- %d IF nodes, %s: %.0f ns each%s.\n", IFS, taken ? "taken" : "not taken", each, taken ? ", with an empty kernel in the body" : "");
        RAW(cuGraphExecDestroy(b.executable));
    }
    printf("- The kernels alone, in a line: %.0f ns each.\n", straight);
    RAW(cuStreamDestroy_v2(b.stream));
    RAW(cuModuleUnload(module));
}

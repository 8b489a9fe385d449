/* Loops with small kernels in their body: weir's while, by the device and by the host, against a WHILE node made by
 * hand, and all against a host that asks after each iteration.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include <weir/control.h>

#include "bench.h"
#include "kernels.h"
#include "weir_side.h"

/* Of a body's kernel, as weir launches it. */
enum { THREADS = 128 };

typedef struct loop {
    raw_device *device;
    void *plain, *conditions, *add, *less, *down, *set; /* kernels; those of conditions are NULL where the driver has none */
    void *raw_stream, *executable;
    void *flag;                 /* the host's, for the loop that it drives */
    raw_pointer left, counter;  /* iterations that are left; the counter, its limit, whether it is less */
    unsigned iterations;
    int kernels;                /* in a body */
    weir_stream *stream;
    weir_program *program;
    weir_tensor *inputs[2], *output;
} loop;

static double graph_loop(void *with) {
    loop *l = with;
    const double start = now_ns();
    RAW(cuMemsetD32Async(l->left, l->iterations, 1, l->raw_stream));
    RAW(cuGraphLaunch(l->executable, l->raw_stream));
    RAW(cuStreamSynchronize(l->raw_stream));
    return (now_ns() - start) / l->iterations;
}

static double weir_loop(void *with) {
    loop *l = with;
    const double start = now_ns();
    OK(weir_program_run(l->program, l->stream, l->inputs, 2, &l->output, 1, NULL));
    OK(weir_stream_synchronize(l->stream, WEIR_TIMEOUT_INFINITE));
    return (now_ns() - start) / l->iterations;
}

/* Where the host asks after each iteration: launches, a copy of the condition, and a wait. */
static double driven_loop(void *with) {
    loop *l = with;
    unsigned one = 1;
    raw_pointer limit = l->counter + 4, condition = l->counter + 8;
    void *add_arguments[] = {&l->counter, &l->counter, &one}, *less_arguments[] = {&l->counter, &limit, &condition};
    const double start = now_ns();
    RAW(cuMemsetD32Async(l->counter, 0, 1, l->raw_stream));
    do {
        for (int i = 0; i < l->kernels; i++) RAW(cuLaunchKernel(l->add, 1, 1, 1, THREADS, 1, 1, 0, l->raw_stream, add_arguments, NULL));
        RAW(cuLaunchKernel(l->less, 1, 1, 1, 1, 1, 1, 0, l->raw_stream, less_arguments, NULL));
        RAW(cuMemcpyDtoHAsync_v2(l->flag, condition, 1, l->raw_stream));
        RAW(cuStreamSynchronize(l->raw_stream));
    } while (*(volatile unsigned char *)l->flag != 0);
    return (now_ns() - start) / l->iterations;
}

/* while (x < limit) x = x + 1 + ... + 1, with everything on the engine. */
static weir_program *compile(weir_engine *cpu, weir_engine *engine, weir_kernel *less, weir_kernel *add, int kernels, int by_device) {
    const weir_tensor_desc desc = {WEIR_F32, 1, {1}};
    weir_engine *const engines[] = {cpu, engine};
    weir_graph *condition = NULL, *body = NULL, *graph = NULL;
    weir_program *program = NULL;
    weir_value values[2], more, next, last;
    OK(weir_graph_create("condition", &condition));
    OK(weir_graph_add_input(condition, "x", &desc, &values[0]));
    OK(weir_graph_add_input(condition, "limit", &desc, &values[1]));
    OK(weir_graph_add_kernel(condition, "less", less, values, 2, &more, 1, NULL));
    OK(weir_graph_add_output(condition, "more", more));
    OK(weir_graph_create("body", &body));
    OK(weir_graph_add_input(body, "x", &desc, &values[0]));
    OK(weir_graph_add_input(body, "limit", &desc, &values[1]));
    for (int i = 0; i < kernels; i++) {
        char name[32];
        snprintf(name, sizeof name, "add %d", i);
        OK(weir_graph_add_kernel(body, name, add, i == 0 ? &values[0] : &next, 1, &next, 1, NULL));
    }
    OK(weir_graph_add_output(body, "x", next));
    OK(weir_graph_create("loop", &graph));
    OK(weir_graph_add_input(graph, "x", &desc, &values[0]));
    OK(weir_graph_add_input(graph, "limit", &desc, &values[1]));
    for (size_t i = 0; i < 2; i++) OK(weir_graph_set_port_engine(graph, WEIR_PORT_INPUT, i, engine));
    OK(weir_graph_add_while(graph, "while", &(weir_while_desc){.struct_size = sizeof(weir_while_desc),
        .cond_graph = condition, .body_graph = body, .variables = &values[0], .num_variables = 1,
        .invariants = &values[1], .num_invariants = 1}, &last, NULL));
    OK(weir_graph_add_output(graph, "x", last));
    OK(weir_graph_set_port_engine(graph, WEIR_PORT_OUTPUT, 0, engine));
    const weir_compile_options options = {
        .struct_size = sizeof options, .flags = by_device ? 0 : WEIR_COMPILE_NO_DEVICE_CONTROL};
    OK(weir_graph_compile(graph, engines, 2, &options, &program));
    weir_graph_destroy(graph);
    weir_graph_destroy(body);
    weir_graph_destroy(condition);
    return program;
}

static void *add_nodes(loop *l, void *graph, void *after, int count) {
    unsigned one = 1;
    void *arguments[] = {&l->counter, &l->counter, &one};
    for (int i = 0; i < count; i++) after = raw_node_of(graph, l->add, 1, THREADS, arguments, &after, after != NULL);
    return after;
}

/* A WHILE node whose body is so many kernels and the one that counts down. */
static void *while_graph(loop *l) {
    void *graph = NULL, *loop_node = NULL;
    uint64_t handle = 0;
    RAW(cuGraphCreate(&graph, 0));
    RAW(cuGraphConditionalHandleCreate(&handle, graph, l->device->context, 0, 0));
    void *arguments[] = {&handle, &l->left};
    void *node = raw_node_of(graph, l->set, 1, 1, arguments, NULL, 0);
    raw_node params = {.type = RAW_NODE_CONDITIONAL, .handle = handle, .condition = RAW_WHILE, .size = 1, .context = l->device->context};
    RAW(cuGraphAddNode_v2(&loop_node, graph, &node, NULL, 1, &params));
    node = add_nodes(l, params.bodies[0], NULL, l->kernels);
    raw_node_of(params.bodies[0], l->down, 1, 1, arguments, &node, 1);
    return raw_executable(graph);
}

/* The kernels of all iterations in a line. */
static void *straight_graph(loop *l) {
    void *graph = NULL;
    RAW(cuGraphCreate(&graph, 0));
    add_nodes(l, graph, NULL, (int)l->iterations * (l->kernels + 1));
    return raw_executable(graph);
}

static void bodies_of(loop *l, weir_engine *cpu, weir_engine *engine, weir_kernel *less, weir_kernel *add) {
    const weir_tensor_desc desc = {WEIR_F32, 1, {1}};
    float first = 0, limit = (float)l->iterations * (float)l->kernels, result = -1;
    float *const values[] = {&first, &limit, &result};
    weir_tensor *host[3] = {NULL};
    const char *how = "";
    char what[112];
    RAW(cuMemcpyHtoDAsync_v2(l->counter + 4, &limit, 4, l->raw_stream));
    for (int i = 0; i < 3; i++) OK(weir_tensor_create(cpu, &desc, &(weir_memory){.struct_size = sizeof(weir_memory), .data = values[i]}, &host[i]));
    for (int i = 0; i < 2; i++) OK(weir_enqueue_copy(l->stream, host[i], l->inputs[i]));
    OK(weir_stream_synchronize(l->stream, WEIR_TIMEOUT_INFINITE));
    if (l->down != NULL) l->executable = while_graph(l);
    for (int by_device = 1; by_device >= 0; by_device--) {
        const char *who = by_device ? "while" : "while by the host";
        l->program = compile(cpu, engine, less, add, l->kernels, by_device);
        /* A program's second run records, and the third is as all others. */
        for (int i = 0; i < 2; i++) weir_loop(l);
        snprintf(what, sizeof what, "%d kernels in the body: %s, beside a loop that the host drives%s", l->kernels, who,
                 by_device && l->kernels == 1 ? " (goal: 0.333)" : "");
        compare(what, driven_loop, weir_loop, l, 15);
        if (l->down != NULL) {
            snprintf(what, sizeof what, "%d kernels in the body: %s, beside a WHILE node by hand", l->kernels, who);
            compare(what, graph_loop, weir_loop, l, 15);
        }
        result = -1;
        OK(weir_enqueue_copy(l->stream, l->output, host[2]));
        OK(weir_stream_synchronize(l->stream, WEIR_TIMEOUT_INFINITE));
        if (result != limit) {
            printf("\nWRONG: the loop ended at %g instead of %g.\n", (double)result, (double)limit);
            wrong = 1;
        }
        if (by_device) how = decision(l->program);
        weir_program_release(l->program);
    }
    printf("\nThe device is asked to drive it: %s\n", how);
    if (l->down != NULL) {
        const double by_node = alone(graph_loop, l, 15), driven = alone(driven_loop, l, 15);
        RAW(cuGraphExecDestroy(l->executable));
        l->executable = straight_graph(l);
        const double straight = alone(graph_loop, l, 15);
        RAW(cuGraphExecDestroy(l->executable));
        printf("\nBy hand, %d kernels in the body: a WHILE node takes %.0f ns for an iteration, the same kernels in a line %.0f ns, so the node itself\n"
               "%.0f ns; a loop that the host drives takes %.0f ns, %.2f times the node's.\n\n", l->kernels, by_node, straight, by_node - straight,
               driven, driven / by_node);
    }
    for (int i = 0; i < 3; i++) weir_tensor_release(host[i]);
}

void bench_loops(raw_device *device) {
    weir_engine *cpu = NULL, *engine = cuda_engine(1);
    OK(weir_engine_create(WEIR_ENGINE_CPU, 0, NULL, &cpu));
    weir_kernel *less = less_kernel(engine), *add = add_one_kernel(engine, 1);
    loop l = {.device = device, .raw_stream = raw_stream(), .stream = cuda_stream(engine), .iterations = quick ? 20 : 1000};
    l.add = raw_kernel(PTX_PLAIN, "add_one", &l.plain, NULL);
    RAW(cuModuleGetFunction(&l.less, l.plain, "less"));
    if (raw.cuGraphAddNode_v2 != NULL && raw.cuGraphConditionalHandleCreate != NULL) {
        l.down = raw_kernel(PTX_CONDITIONS, "count_down", &l.conditions, NULL);
        if (l.down != NULL) RAW(cuModuleGetFunction(&l.set, l.conditions, "set_condition"));
    }
    RAW(cuMemHostAlloc(&l.flag, 4, 0));
    l.left = raw_memory(4);
    l.counter = raw_memory(16);
    for (int i = 0; i < 2; i++) l.inputs[i] = floats_on(engine, 1);
    l.output = floats_on(engine, 1);
    for (l.kernels = 1; l.kernels <= 10; l.kernels *= 10) {
        table("A loop, per iteration");
        bodies_of(&l, cpu, engine, less, add);
    }
    for (int i = 0; i < 2; i++) weir_tensor_release(l.inputs[i]);
    weir_tensor_release(l.output);
    weir_kernel_release(less);
    weir_kernel_release(add);
    weir_stream_release(l.stream);
    weir_engine_release(engine);
    weir_engine_release(cpu);
    RAW(cuMemFreeHost(l.flag));
    RAW(cuMemFree_v2(l.left));
    RAW(cuMemFree_v2(l.counter));
    RAW(cuStreamDestroy_v2(l.raw_stream));
    RAW(cuModuleUnload(l.plain));
    if (l.conditions != NULL) RAW(cuModuleUnload(l.conditions));
}

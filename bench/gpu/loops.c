/* A loop with one small kernel in its body: weir's while, wherever weir has it run, against a WHILE node made by hand.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "bench.h"
#include "kernels.h"
#include "weir_side.h"

#include <string.h>

typedef struct loop {
    void *raw_stream, *executable;
    raw_pointer left, counter;
    unsigned iterations;
    weir_stream *stream;
    weir_program *program;
    weir_tensor *inputs[2], *output;
} loop;

static double raw_loop(void *with) {
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

static void *driven_module, *driven_flag;

/* Where the host asks after each iteration: a launch, a copy of the condition, and a wait. */
static double driven_loop(void *with) {
    loop *l = with;
    static void *add = NULL, *less = NULL;
    if (driven_module == NULL) {
        add = raw_kernel(PTX_PLAIN, "add_one", &driven_module, NULL);
        RAW(cuModuleGetFunction(&less, driven_module, "less"));
        RAW(cuMemHostAlloc(&driven_flag, 4, 0));
    }
    unsigned one = 1;
    raw_pointer limit = l->counter + 4, condition = l->counter + 8;
    void *add_arguments[] = {&l->counter, &l->counter, &one}, *less_arguments[] = {&l->counter, &limit, &condition};
    const double start = now_ns();
    RAW(cuMemsetD32Async(l->counter, 0, 1, l->raw_stream));
    for (;;) {
        RAW(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, l->raw_stream, add_arguments, NULL));
        RAW(cuLaunchKernel(less, 1, 1, 1, 1, 1, 1, 0, l->raw_stream, less_arguments, NULL));
        RAW(cuMemcpyDtoHAsync_v2(driven_flag, condition, 1, l->raw_stream));
        RAW(cuStreamSynchronize(l->raw_stream));
        if (*(unsigned char *)driven_flag == 0) break;
    }
    return (now_ns() - start) / l->iterations;
}

/* while (x < limit) x = x + 1; with everything on the engine. */
static weir_program *compile(weir_engine *cpu, weir_engine *engine, weir_kernel *less, weir_kernel *add) {
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
    OK(weir_graph_add_kernel(body, "add", add, values, 1, &next, 1, NULL));
    OK(weir_graph_add_output(body, "x", next));
    OK(weir_graph_create("loop", &graph));
    OK(weir_graph_add_input(graph, "x", &desc, &values[0]));
    OK(weir_graph_add_input(graph, "limit", &desc, &values[1]));
    for (size_t i = 0; i < 2; i++) OK(weir_graph_set_input_engine(graph, i, engine));
    OK(weir_graph_add_while(graph, "while", condition, body, &values[0], 1, &values[1], 1, 1, &last, NULL));
    OK(weir_graph_add_output(graph, "x", last));
    OK(weir_graph_set_output_engine(graph, 0, engine));
    OK(weir_graph_compile(graph, engines, 2, NULL, &program));
    weir_graph_destroy(graph);
    weir_graph_destroy(body);
    weir_graph_destroy(condition);
    return program;
}

/* NULL where the driver has no WHILE nodes. */
static void *build(raw_device *device, raw_pointer left, raw_pointer counter, void **modules) {
    void *module = NULL, *plain = NULL, *graph = NULL, *node = NULL, *executable = NULL, *set = NULL;
    void *down = raw.cuGraphAddNode_v2 == NULL ? NULL : raw_kernel(PTX_CONDITIONS, "count_down", &module, NULL);
    if (down == NULL) return NULL;
    void *add = raw_kernel(PTX_PLAIN, "add_one", &plain, NULL);
    RAW(cuModuleGetFunction(&set, module, "set_condition"));
    uint64_t handle = 0;
    unsigned one = 1;
    RAW(cuGraphCreate(&graph, 0));
    RAW(cuGraphConditionalHandleCreate(&handle, graph, device->context, 0, 0));
    void *conditions[] = {&handle, &left}, *additions[] = {&counter, &counter, &one};
    raw_kernel_node kernel = {.function = set, .grid = {1, 1, 1}, .block = {1, 1, 1}, .params = conditions};
    RAW(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &kernel));
    raw_node params = {.type = RAW_NODE_CONDITIONAL, .handle = handle, .condition = RAW_WHILE, .size = 1, .context = device->context};
    void *loop_node = NULL, *inside = NULL;
    RAW(cuGraphAddNode_v2(&loop_node, graph, &node, NULL, 1, &params));
    kernel.function = add;
    kernel.params = additions;
    RAW(cuGraphAddKernelNode_v2(&inside, params.bodies[0], NULL, 0, &kernel));
    kernel.function = down;
    kernel.params = conditions;
    RAW(cuGraphAddKernelNode_v2(&node, params.bodies[0], &inside, 1, &kernel));
    RAW(cuGraphInstantiateWithFlags(&executable, graph, 0));
    RAW(cuGraphDestroy(graph));
    modules[0] = module;
    modules[1] = plain;
    return executable;
}

void bench_loops(raw_device *device) {
    weir_engine *cpu = NULL, *engine = cuda_engine(1);
    OK(weir_engine_create(WEIR_ENGINE_CPU, 0, NULL, &cpu));
    weir_kernel *less = less_kernel(engine), *add = add_one_kernel(engine, 1);
    loop l = {.raw_stream = raw_stream(), .stream = cuda_stream(engine), .iterations = quick ? 20 : 1000};
    const weir_tensor_desc desc = {WEIR_F32, 1, {1}};
    float first = 0, limit = (float)l.iterations, result = -1;
    weir_tensor *host[3] = {NULL};
    l.left = raw_memory(4);
    l.counter = raw_memory(16);
    RAW(cuMemcpyHtoDAsync_v2(l.counter + 4, &limit, 4, l.raw_stream));
    void *modules[2] = {NULL};
    l.executable = build(device, l.left, l.counter, modules);
    l.program = compile(cpu, engine, less, add);
    float *const values[] = {&first, &limit, &result};
    for (int i = 0; i < 3; i++) OK(weir_tensor_create_from(cpu, &desc, values[i], NULL, NULL, &host[i]));
    for (int i = 0; i < 2; i++) {
        l.inputs[i] = floats_on(engine, 1);
        OK(weir_enqueue_copy(l.stream, host[i], l.inputs[i]));
    }
    l.output = floats_on(engine, 1);
    table("A loop, per iteration");
    compare("while, beside a loop that the host drives (goal: a third)", driven_loop, weir_loop, &l, 15);
    if (l.executable != NULL) compare("while, beside a WHILE node by hand", raw_loop, weir_loop, &l, 15);
    OK(weir_enqueue_copy(l.stream, l.output, host[2]));
    OK(weir_stream_synchronize(l.stream, WEIR_TIMEOUT_INFINITE));
    if (result != limit) {
        printf("\nWRONG: the loop ended at %g instead of %g.\n", (double)result, (double)limit);
        exit(1);
    }
    for (int i = 0; i < 3; i++) weir_tensor_release(host[i]);
    for (int i = 0; i < 2; i++) weir_tensor_release(l.inputs[i]);
    weir_tensor_release(l.output);
    weir_program_release(l.program);
    weir_kernel_release(less);
    weir_kernel_release(add);
    weir_stream_release(l.stream);
    weir_engine_release(engine);
    weir_engine_release(cpu);
    if (l.executable != NULL) {
        RAW(cuGraphExecDestroy(l.executable));
        for (int i = 0; i < 2; i++) RAW(cuModuleUnload(modules[i]));
    }
    RAW(cuModuleUnload(driven_module));
    RAW(cuMemFreeHost(driven_flag));
    RAW(cuMemFree_v2(l.left));
    RAW(cuMemFree_v2(l.counter));
    RAW(cuStreamDestroy_v2(l.raw_stream));
}

/* What only a GPU can answer, asked of the raw driver: whether conditional nodes take PTX of our own, which targets the driver still takes,
 * whether nodes inside a body can be changed, and what some calls cost. Each answer is a line of Markdown.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "bench.h"
#include "kernels.h"

#include <string.h>

static const char *const kinds[] = {"IF", "WHILE", "SWITCH"};

/* A graph that sets a condition from `value`, then has a conditional node; the node's bodies come back. NULL where the driver lacks it. */
static void *conditional(void *set, raw_device *device, raw_pointer value, int kind, unsigned size, void **bodies, int *code, uint64_t *handle) {
    void *graph = NULL, *first = NULL, *node = NULL;
    raw_node params = {.type = RAW_NODE_CONDITIONAL};
    RAW(cuGraphCreate(&graph, 0));
    *code = raw.cuGraphConditionalHandleCreate(handle, graph, device->context, 0, 0);
    if (*code != 0) return NULL;
    void *arguments[] = {handle, &value};
    const raw_kernel_node kernel = {
        .function = set, .grid = {1, 1, 1}, .block = {1, 1, 1}, .params = arguments};
    RAW(cuGraphAddKernelNode_v2(&first, graph, NULL, 0, &kernel));
    params.handle = *handle;
    params.condition = kind;
    params.size = size;
    params.context = device->context;
    *code = raw.cuGraphAddNode_v2(&node, graph, &first, NULL, 1, &params);
    if (*code != 0) return NULL;
    memcpy(bodies, params.bodies, size * sizeof *bodies);
    return graph;
}

static void *add_one_node(void *graph, void *function, raw_pointer data, void *const *after, size_t count) {
    void *node = NULL;
    unsigned n = 1;
    void *arguments[] = {&data, &data, &n};
    const raw_kernel_node kernel = {.function = function, .grid = {1, 1, 1}, .block = {1, 1, 1}, .params = arguments};
    RAW(cuGraphAddKernelNode_v2(&node, graph, after, count, &kernel));
    return node;
}

static float read_float(raw_pointer from, void *stream) {
    float value = -1;
    RAW(cuMemcpyDtoHAsync_v2(&value, from, sizeof value, stream));
    RAW(cuStreamSynchronize(stream));
    return value;
}

/* Launches a graph with `set` at value, and gives what the counter is then. */
static float launch_with(void *executable, raw_pointer value, unsigned set, raw_pointer counter, size_t counters, void *stream) {
    RAW(cuMemsetD32Async(value, set, 1, stream));
    RAW(cuMemsetD32Async(counter, 0, counters, stream));
    RAW(cuGraphLaunch(executable, stream));
    return read_float(counter, stream);
}

static void conditional_nodes(raw_device *device) {
    void *module = NULL, *plain = NULL;
    int code = 0;
    if (raw.cuGraphConditionalHandleCreate == NULL || raw.cuGraphAddNode_v2 == NULL) {
        printf("- Conditional nodes: this driver has none.\n");
        return;
    }
    void *set = raw_kernel(PTX_CONDITIONS, "set_condition", &module, &code);
    if (set == NULL) {
        printf("- Conditional nodes: PTX of our own is refused with %s.\n", raw_error(code));
        return;
    }
    void *add = raw_kernel(PTX_PLAIN, "add_one", &plain, NULL), *down = NULL;
    RAW(cuModuleGetFunction(&down, module, "count_down"));
    void *stream = raw_stream();
    raw_pointer value = raw_memory(4), counter = raw_memory(16);
    for (int kind = RAW_IF; kind <= RAW_SWITCH; kind++) {
        for (unsigned size = 1; size <= (kind == RAW_WHILE ? 1U : kind == RAW_IF ? 2U : 3U); size++) {
            void *bodies[3] = {NULL}, *executable = NULL;
            uint64_t handle = 0;
            if (kind == RAW_SWITCH && size < 3) continue;
            void *graph = conditional(set, device, value, kind, size, bodies, &code, &handle);
            if (graph == NULL) {
                printf("- Conditional nodes, %s with %u bodies: %s.\n", kinds[kind], size, raw_error(code));
                continue;
            }
            void *inside = NULL;
            for (unsigned body = 0; body < size; body++) {
                inside = add_one_node(bodies[body], add, counter + 4 * body, NULL, 0);
                if (kind == RAW_WHILE) {
                    void *node = NULL, *arguments[] = {&handle, &value};
                    const raw_kernel_node step = {
                        .function = down, .grid = {1, 1, 1}, .block = {1, 1, 1}, .params = arguments};
                    RAW(cuGraphAddKernelNode_v2(&node, bodies[body], &inside, 1, &step));
                }
            }
            code = raw.cuGraphInstantiateWithFlags(&executable, graph, 0);
            if (code != 0) {
                printf("- Conditional nodes, %s with %u bodies: not instantiated, %s.\n", kinds[kind], size, raw_error(code));
                continue;
            }
            const unsigned taken = kind == RAW_WHILE ? 7 : 1;
            const float yes = launch_with(executable, value, taken, counter, 4, stream);
            const float no = launch_with(executable, value, kind == RAW_SWITCH ? 7 : 0, counter, 4, stream);
            launch_with(executable, value, kind == RAW_SWITCH ? 1 : 0, counter, 4, stream);
            const float other = size > 1 ? read_float(counter + 4, stream) : -1;
            const int right = kind == RAW_IF      ? yes == 1 && no == 0 && (size == 1 || other == 1)
                              : kind == RAW_WHILE ? yes == 7 && no == 0
                                                  : yes == 0 && no == 0 && other == 1;
            printf("- Conditional nodes, %s with %u bodies: %s (taken %g, not taken %g%s).\n", kinds[kind], size,
                   right ? "right" : "WRONG", (double)yes, (double)no, size > 1 && other == 1 ? ", other body 1" : "");
            if (kind == RAW_WHILE) {
                raw_pointer moved = counter + 8;
                unsigned n = 1;
                void *arguments[] = {&moved, &moved, &n};
                const raw_kernel_node changed = {
                    .function = add, .grid = {1, 1, 1}, .block = {1, 1, 1}, .params = arguments};
                code = raw.cuGraphExecKernelNodeSetParams_v2(executable, inside, &changed);
                float at = -1;
                if (code == 0) {
                    launch_with(executable, value, 7, counter, 4, stream);
                    at = read_float(moved, stream);
                }
                printf("- A kernel's parameters inside a WHILE body, changed through the executable: %s%s.\n",
                       code == 0 ? "taken" : raw_error(code), code != 0 ? "" : at == 7 ? ", and right" : ", but WRONG");
            }
            RAW(cuGraphExecDestroy(executable));
            RAW(cuGraphDestroy(graph));
        }
    }
    RAW(cuMemFree_v2(value));
    RAW(cuMemFree_v2(counter));
    RAW(cuStreamDestroy_v2(stream));
    RAW(cuModuleUnload(module));
    RAW(cuModuleUnload(plain));
}

static void targets(void) {
    void *module = NULL;
    int code = 0;
    const char *taken = raw_kernel(PTX_OLD, "empty", &module, &code) != NULL ? "taken" : raw_error(code);
    printf("- PTX for sm_52: %s.\n", taken);
    if (code == 0) RAW(cuModuleUnload(module));
}

static void costs(void) {
    enum { ROUNDS = 9, CALLS = 1000 };
    const int allocations = quick ? 1 : 100, rounds = quick ? 3 : ROUNDS;
    void *stream = raw_stream(), *context = NULL;
    raw_pointer pointer = 0;
    double current[ROUNDS], allocate[2][ROUNDS];
    const size_t sizes[] = {64 << 10, 64 << 20};
    for (int round = 0; round < rounds; round++) {
        double start = now_ns();
        for (int i = 0; i < CALLS; i++) RAW(cuCtxGetCurrent(&context));
        current[round] = (now_ns() - start) / CALLS;
        for (int size = 0; size < 2; size++) {
            start = now_ns();
            for (int i = 0; i < allocations; i++) {
                RAW(cuMemAllocAsync(&pointer, sizes[size], stream));
                RAW(cuMemFreeAsync(pointer, stream));
            }
            allocate[size][round] = (now_ns() - start) / allocations;
        }
        RAW(cuStreamSynchronize(stream));
    }
    printf("- cuCtxGetCurrent: %.1f ns.\n", median(current, rounds));
    printf("- cuMemAllocAsync and cuMemFreeAsync from the default pool: %.0f ns for 64 KiB, %.0f ns for 64 MiB.\n",
           median(allocate[0], rounds), median(allocate[1], rounds));
    RAW(cuStreamDestroy_v2(stream));
}

typedef struct seen {
    volatile double at;
} seen;

static void tell(void *at) {
    ((seen *)at)->at = now_ns();
}

/* From the end of a kernel to the host that knows of it: by looking, by sleeping, and by a host function. */
static void completion(raw_device *device) {
    enum { ROUNDS = 201 };
    const int rounds = quick ? 5 : ROUNDS;
    void *module = NULL, *spin = raw_kernel(PTX_PLAIN, "spin", &module, NULL);
    void *stream = raw_stream(), *events[] = {raw_event(RAW_EVENT_NO_TIMING), raw_event(RAW_EVENT_NO_TIMING | RAW_EVENT_BLOCKING)};
    raw_pointer x = raw_memory(8), y = x + 4;
    uint64_t cycles = (uint64_t)device->clock_khz / 1000 * 50;
    void *arguments[] = {&x, &y, &cycles};
    static double took[3][ROUNDS];
    RAW(cuMemsetD32Async(x, 0, 2, stream));
    for (int round = 0; round < rounds; round++) {
        for (int way = 0; way < 3; way++) {
            seen told = {0};
            RAW(cuStreamSynchronize(stream));
            const double start = now_ns();
            RAW(cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL));
            if (way == 2) {
                RAW(cuLaunchHostFunc(stream, tell, &told));
                RAW(cuStreamSynchronize(stream));
            } else {
                RAW(cuEventRecord(events[way], stream));
                if (way == 0) {
                    while (raw.cuEventQuery(events[0]) != 0) continue;
                } else {
                    RAW(cuEventSynchronize(events[1]));
                }
                told.at = now_ns();
            }
            took[way][round] = told.at - start;
        }
    }
    double least = took[0][0];
    for (int round = 0; round < rounds; round++) least = took[0][round] < least ? took[0][round] : least;
    const char *const ways[] = {"looking", "sleeping in cuEventSynchronize", "a host function"};
    for (int way = 0; way < 3; way++) {
        const double half = median(took[way], rounds), late = quantile(took[way], rounds, 0.99);
        printf("- A kernel of 50 us known of by %s: median %.1f us, p99 %.1f us after the least of looking.\n", ways[way],
               (half - least) / 1000, (late - least) / 1000);
    }
    RAW(cuMemFree_v2(x));
    for (int i = 0; i < 2; i++) RAW(cuEventDestroy_v2(events[i]));
    RAW(cuStreamDestroy_v2(stream));
    RAW(cuModuleUnload(module));
}

/* Two streams that wait for each other in turn. */
static void hops(void) {
    enum { HOPS = 1000 };
    void *module = NULL, *empty = raw_kernel(PTX_PLAIN, "empty", &module, NULL);
    void *streams[] = {raw_stream(), raw_stream()}, *events[] = {raw_event(RAW_EVENT_NO_TIMING), raw_event(RAW_EVENT_NO_TIMING)};
    raw_pointer x = 0;
    void *arguments[] = {&x, &x, &x, &x};
    double took[2] = {0};
    for (int crossing = 0; crossing < 2; crossing++) {
        const double start = now_ns();
        for (int i = 0; i < HOPS; i++) {
            void *stream = streams[crossing ? i % 2 : 0];
            if (crossing && i > 0) RAW(cuStreamWaitEvent(stream, events[(i + 1) % 2], 0));
            RAW(cuLaunchKernel(empty, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL));
            if (crossing) RAW(cuEventRecord(events[i % 2], stream));
        }
        for (int i = 0; i < 2; i++) RAW(cuStreamSynchronize(streams[i]));
        took[crossing] = (now_ns() - start) / HOPS;
    }
    printf("- A kernel behind one on another stream: %.2f us each, %.2f us on one stream.\n", took[1] / 1000, took[0] / 1000);
    for (int i = 0; i < 2; i++) {
        RAW(cuEventDestroy_v2(events[i]));
        RAW(cuStreamDestroy_v2(streams[i]));
    }
    RAW(cuModuleUnload(module));
}

void bench_questions(raw_device *device) {
    printf("\n## Questions to the driver\n\n");
    conditional_nodes(device);
    targets();
    costs();
    completion(device);
    hops();
}

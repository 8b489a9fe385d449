/* Whether the driver does what its documentation says of conditional nodes when the kernels that set conditions are PTX
 * of our own, and whether nodes inside a body can be changed. Each answer is a line of Markdown. A process of its own
 * runs this: a device that is lost here answers nothing else.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "bench.h"
#include "kernels.h"

#include <string.h>

/* A graph that sets a condition from `value`, then has a conditional node; the node's bodies come back. NULL where the
 * driver lacks it. */
static void *conditional(void *set, raw_device *device, raw_pointer value, int kind, unsigned size, void **bodies, int *code, uint64_t *handle) {
    void *graph = NULL, *first = NULL, *node = NULL;
    raw_node params = {.type = RAW_NODE_CONDITIONAL};
    RAW(cuGraphCreate(&graph, 0));
    *code = raw.cuGraphConditionalHandleCreate(handle, graph, device->context, 0, 0);
    if (*code != 0) return NULL;
    void *arguments[] = {handle, &value};
    first = raw_node_of(graph, set, 1, 1, arguments, NULL, 0);
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
    unsigned n = 1;
    void *arguments[] = {&data, &data, &n};
    return raw_node_of(graph, function, 1, 1, arguments, after, count);
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

typedef struct proof {
    raw_device *device;
    void *set, *down, *add, *stream;
    raw_pointer value, counter; /* the condition; four floats, of which each body counts in its own */
} proof;

typedef struct shape {
    const char *name;
    int kind;
    unsigned bodies;
} shape;

/* What the counters are after a launch with the condition at `set`, against what they have to be. */
static int comes_to(proof *p, void *executable, unsigned set, const float expected[3], const char **text) {
    static char buffer[64];
    float found[3];
    found[0] = launch_with(executable, p->value, set, p->counter, 4, p->stream);
    for (unsigned i = 1; i < 3; i++) found[i] = read_float(p->counter + 4 * i, p->stream);
    snprintf(buffer, sizeof buffer, "%u gives %g %g %g", set, (double)found[0], (double)found[1], (double)found[2]);
    *text = buffer;
    return memcmp(found, expected, sizeof found) == 0;
}

/* Builds a node of the kind, runs it with several conditions, and says whether the bodies ran that should. */
static void prove(proof *p, shape s) {
    void *bodies[3] = {NULL}, *executable = NULL;
    uint64_t handle = 0;
    int code = 0;
    void *graph = conditional(p->set, p->device, p->value, s.kind, s.bodies, bodies, &code, &handle);
    if (graph == NULL) {
        printf("- %s: no such node, %s.\n", s.name, raw_error(code));
        answer(1, "%s no (%s)", s.name, raw_error(code));
        return;
    }
    for (unsigned body = 0; body < s.bodies; body++) {
        void *inside = add_one_node(bodies[body], p->add, p->counter + 4 * body, NULL, 0);
        if (s.kind == RAW_WHILE) {
            void *arguments[] = {&handle, &p->value};
            raw_node_of(bodies[body], p->down, 1, 1, arguments, &inside, 1);
        }
    }
    code = raw.cuGraphInstantiateWithFlags(&executable, graph, 0);
    if (code != 0) {
        printf("- %s: not instantiated, %s.\n", s.name, raw_error(code));
        answer(1, "%s not instantiated (%s)", s.name, raw_error(code));
        RAW(cuGraphDestroy(graph));
        return;
    }
    int right = 1;
    const char *text = "";
    for (unsigned set = 0; right && set <= (s.kind == RAW_SWITCH ? s.bodies : 1); set++) {
        const unsigned condition = s.kind == RAW_WHILE ? 7 * set : set;
        float expected[3] = {0};
        if (s.kind == RAW_WHILE) {
            expected[0] = (float)condition;
        } else if (s.kind == RAW_IF) {
            if (set == 1) expected[0] = 1;
            else if (s.bodies == 2) expected[1] = 1;
        } else if (set < s.bodies) {
            expected[set] = 1;
        }
        right = comes_to(p, executable, condition, expected, &text);
    }
    printf("- %s: %s%s%s.\n", s.name, right ? "right" : "WRONG", right ? "" : ", ", right ? "" : text);
    answer(1, "%s %s", s.name, right ? "yes" : "WRONG");
    wrong |= !right;
    RAW(cuGraphExecDestroy(executable));
    RAW(cuGraphDestroy(graph));
}

/* Whether nodes in the body of a WHILE, and of an IF, can be given other parameters through the executable of the whole
 * graph. */
static void change(proof *p, shape s) {
    void *bodies[3] = {NULL}, *executable = NULL, *set_node = NULL;
    uint64_t handle = 0;
    int code = 0;
    void *graph = conditional(p->set, p->device, p->value, s.kind, 1, bodies, &code, &handle);
    if (graph == NULL) return;
    /* The body counts in counter 0 and puts a 5 into counter 1. */
    const raw_memset_node put = {p->counter + 4, 0, 0x40a00000, 4, 1, 1}, put_more = {p->counter + 8, 0, 0x40c00000, 4, 1, 1};
    void *add_node = add_one_node(bodies[0], p->add, p->counter, NULL, 0);
    RAW(cuGraphAddMemsetNode(&set_node, bodies[0], &add_node, 1, &put, p->device->context));
    if (s.kind == RAW_WHILE) {
        void *arguments[] = {&handle, &p->value};
        raw_node_of(bodies[0], p->down, 1, 1, arguments, &set_node, 1);
    }
    code = raw.cuGraphInstantiateWithFlags(&executable, graph, 0);
    if (code != 0) {
        printf("- A memset in a %s: not instantiated, %s.\n", s.name, raw_error(code));
        answer(3, "memset in a %s refused (%s)", s.name, raw_error(code));
        RAW(cuGraphDestroy(graph));
        return;
    }
    raw_pointer elsewhere = p->counter + 12;
    unsigned n = 1;
    void *arguments[] = {&elsewhere, &elsewhere, &n};
    const raw_kernel_node changed = {.function = p->add, .grid = {1, 1, 1}, .block = {1, 1, 1}, .params = arguments};
    const unsigned times = s.kind == RAW_WHILE ? 7 : 1;
    const char *names[] = {"kernel", "memset"};
    const raw_pointer counters[] = {elsewhere, p->counter + 8};
    const float expected[] = {(float)times, 6};
    for (int which = 0; which < 2; which++) {
        code = which == 0 ? raw.cuGraphExecKernelNodeSetParams_v2(executable, add_node, &changed)
                          : raw.cuGraphExecMemsetNodeSetParams(executable, set_node, &put_more, p->device->context);
        const char *result = raw_error(code);
        if (code == 0) {
            launch_with(executable, p->value, times, p->counter, 4, p->stream);
            result = read_float(counters[which], p->stream) == expected[which] ? "works" : "taken, but WRONG";
        }
        printf("- The parameters of a %s in a %s, changed through the executable: %s.\n", names[which], s.name, result);
        answer(3, "%s in %s %s", names[which], s.name, result);
    }
    RAW(cuGraphExecDestroy(executable));
    RAW(cuGraphDestroy(graph));
}

void bench_conditions(raw_device *device) {
    static const shape shapes[] = {{"IF", RAW_IF, 1}, {"WHILE", RAW_WHILE, 1}, {"IF-ELSE", RAW_IF, 2}, {"SWITCH", RAW_SWITCH, 3}};
    void *module = NULL, *plain = NULL;
    int code = 0;
    printf("\n## Conditional nodes by PTX of our own\n\n");
    if (raw.cuGraphConditionalHandleCreate == NULL || raw.cuGraphAddNode_v2 == NULL) {
        printf("- This driver has none.\n");
        answer(1, "this driver has no conditional nodes");
        answer(3, "this driver has no conditional nodes");
        return;
    }
    proof p = {.device = device, .set = raw_kernel(PTX_CONDITIONS, "set_condition", &module, &code)};
    if (p.set == NULL) {
        printf("- The PTX is refused with %s.\n", raw_error(code));
        answer(1, "the PTX is refused (%s)", raw_error(code));
        answer(3, "the PTX is refused (%s)", raw_error(code));
        return;
    }
    p.add = raw_kernel(PTX_PLAIN, "add_one", &plain, NULL);
    RAW(cuModuleGetFunction(&p.down, module, "count_down"));
    p.stream = raw_stream();
    p.value = raw_memory(4);
    p.counter = raw_memory(16);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) prove(&p, shapes[i]);
    for (size_t i = 0; i < 2; i++) change(&p, shapes[i]);
    RAW(cuMemFree_v2(p.value));
    RAW(cuMemFree_v2(p.counter));
    RAW(cuStreamDestroy_v2(p.stream));
    RAW(cuModuleUnload(module));
    RAW(cuModuleUnload(plain));
}

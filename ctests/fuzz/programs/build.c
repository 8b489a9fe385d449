/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * From a plan to engines, kernels, graphs and programs.
 */

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/control.h>
#include <weir/ops.h>
#include <weir/inspect.h>
#include <weir/testing.h>

#include "world.h"

static weir_tensor_desc desc_of(type t) {
    weir_tensor_desc d = {.dtype = t == PRED ? WEIR_S32 : WEIR_F32, .rank = 1};
    d.dims[0] = t == VEC ? WIDTH : t == PRED ? 1 : WEIR_DIM_DYNAMIC;
    return d;
}

/* ---- Graphs ------------------------------------------------------------------------------------ */

typedef struct building {
    world *w;
    weir_graph *graph;
    weir_value zero; /* what reads a predicate that was left out */
    bool has_zero;
} building;

static bool compile(world *w, weir_graph *graph, const graph_plan *g, bool whole, weir_program **out);
static weir_graph *build_graph(world *w, const graph_plan *g, const char *name);

static weir_value constant_of(building *b, const char *name, type t, const float *v) {
    weir_tensor_desc desc = desc_of(t);
    weir_tensor *tensor = NULL;
    weir_value value;
    void *data = NULL;
    MUST(weir_tensor_create(b->w->cpu, &desc, NULL, &tensor));
    MUST(weir_tensor_get_data(tensor, &data));
    if (t == VEC) memcpy(data, v, WIDTH * sizeof(float));
    else *(int32_t *)data = (int32_t)v[0];
    MUST(weir_graph_add_constant(b->graph, name, tensor, &value));
    weir_tensor_release(tensor);
    return value;
}

static weir_value zero_of(building *b) {
    if (!b->has_zero) b->zero = constant_of(b, "zero", PRED, (const float[]){0});
    b->has_zero = true;
    return b->zero;
}

static weir_kernel *builtin_kernel(const node *n, weir_engine *engine) {
    weir_kernel *k = NULL;
    weir_binary_desc binary = {.struct_size = sizeof binary};
    weir_eltwise_desc relu = {.struct_size = sizeof relu, .op = WEIR_ELTWISE_RELU};
    weir_reduce_desc reduce = {.struct_size = sizeof reduce, .op = WEIR_REDUCE_ARGMAX, .flags = WEIR_REDUCE_KEEP_DIMS};
    switch (n->op) {
    case OP_ADD: binary.op = WEIR_BINARY_ADD; break;
    case OP_SUB: binary.op = WEIR_BINARY_SUB; break;
    case OP_MIN: binary.op = WEIR_BINARY_MIN; break;
    case OP_MAX: binary.op = WEIR_BINARY_MAX; break;
    case OP_RELU: MUST(weir_kernel_create_eltwise(engine, &relu, NULL, &k)); return k;
    default:
        reduce.num_axes = 1;
        MUST(weir_kernel_create_reduce(engine, &reduce, NULL, &k));
        return k;
    }
    MUST(weir_kernel_create_binary(engine, &binary, NULL, &k));
    return k;
}

static void add_nodes(building *b, const graph_plan *g, weir_value *values);

/* The nodes that wait for what a node of the plan waits for. */
typedef struct beginning {
    weir_node nodes[MAX_INS];
    int count;
} beginning;

/* A loop as nodes of a frame. */
static void add_frame(building *b, const node *n, const char *name, const weir_value *ins, weir_value *outs, weir_node *out_node,
                      beginning *first) {
    weir_value before[MAX_VALUES], inside[MAX_VALUES], merged[MAX_INS], left[MAX_INS], going, next;
    weir_node merges[MAX_INS], last;
    char part[48];
    for (int i = 0; i < n->num_in; i++) {
        const bool is_constant = i >= n->num_variables;
        snprintf(part, sizeof part, "%s.enter%d", name, i);
        MUST(weir_graph_add_enter(b->graph, part, ins[i], name, is_constant, n->parallel, &merged[i], &first->nodes[i]));
        snprintf(part, sizeof part, "%s.merge%d", name, i);
        if (!is_constant) MUST(weir_graph_add_loop_merge(b->graph, part, merged[i], &merged[i], &merges[i]));
        before[i] = inside[i] = merged[i];
    }
    first->count = n->num_in;
    add_nodes(b, n->graphs[0], before);
    snprintf(part, sizeof part, "%s.cond", name);
    MUST(weir_graph_add_loop_cond(b->graph, part, before[n->graphs[0]->outputs[0]], &going, NULL));
    for (int i = 0; i < n->num_variables; i++) {
        snprintf(part, sizeof part, "%s.switch%d", name, i);
        MUST(weir_graph_add_switch(b->graph, part, merged[i], going, &left[i], &inside[i], NULL));
    }
    add_nodes(b, n->graphs[1], inside);
    for (int i = 0; i < n->num_variables; i++) {
        snprintf(part, sizeof part, "%s.next%d", name, i);
        MUST(weir_graph_add_next_iteration(b->graph, part, inside[n->graphs[1]->outputs[i]], &next, NULL));
        MUST(weir_graph_set_back_edge(b->graph, merges[i], next));
        snprintf(part, sizeof part, "%s.exit%d", name, i);
        MUST(weir_graph_add_exit(b->graph, i == 0 ? name : part, left[i], &outs[i], &last));
        if (i == 0) *out_node = last;
    }
}

static void add_switch(building *b, const node *n, const char *name, const weir_value *ins, weir_value *outs, weir_node *out_node,
                       beginning *first) {
    weir_value side[2], ends[2];
    char part[48];
    snprintf(part, sizeof part, "%s.switch", name);
    first->count = 1;
    MUST(weir_graph_add_switch(b->graph, part, ins[1], ins[0], &side[0], &side[1], &first->nodes[0]));
    for (int s = 0; s < 2; s++) {
        weir_value values[MAX_VALUES];
        values[0] = side[s];
        for (int i = 2; i < n->num_in; i++) values[i - 1] = ins[i];
        add_nodes(b, n->graphs[s], values);
        ends[s] = values[n->graphs[s]->outputs[0]];
    }
    MUST(weir_graph_add_merge(b->graph, name, ends, 2, &outs[0], &outs[1], out_node));
    if (n->num_out > 2) outs[2] = ends[n->way];
}

static void add_kernel_node(building *b, const node *n, const char *name, const weir_value *ins, weir_value *outs, weir_node *out_node) {
    world *w = b->w;
    body *body = &w->bodies[n->id];
    bool host = op_is_host(n->op);
    if (n->op == OP_CALL) {
        weir_graph *inner = build_graph(w, n->graphs[0], name);
        b->w->refused |= !compile(w, inner, n->graphs[0], false, &body->program);
        weir_graph_destroy(inner);
    }
    weir_engine *engine = n->device >= 0 ? w->devices[n->device] : w->cpu;
    weir_kernel *kernel = host ? body_kernel(body, engine) : builtin_kernel(n, engine);
    MUST(weir_graph_add_kernel(b->graph, name, kernel, ins, (size_t)n->num_in, outs, (size_t)n->num_out, out_node));
    weir_kernel_release(kernel);
    if (n->forward == WEIR_FORWARD_NEVER) MUST(weir_graph_set_forwarding(b->graph, *out_node, 0, WEIR_FORWARD_NEVER));
    if (n->open_placement && !host) MUST(weir_graph_set_placement(b->graph, *out_node, WEIR_PLACEMENT_ANY));
}

static void add_node(building *b, const node *n, const weir_value *ins, weir_value *outs, weir_node *out_node, beginning *first) {
    world *w = b->w;
    char name[24];
    weir_graph *graphs[3] = {NULL, NULL, NULL};
    size_t num_in = (size_t)n->num_in, num_out = (size_t)n->num_out;
    snprintf(name, sizeof name, "n%d", n->id);
    if (n->op == OP_WHILE && n->in_frame) {
        add_frame(b, n, name, ins, outs, out_node, first);
        return;
    }
    if (n->op == OP_COND || n->op == OP_CASE || n->op == OP_WHILE) {
        for (int i = 0; i < n->num_graphs; i++) graphs[i] = build_graph(w, n->graphs[i], NULL);
    }
    switch (n->op) {
    case OP_CONSTANT: {
        val v;
        node_apply(n, NULL, &v);
        outs[0] = constant_of(b, name, VEC, v.v);
        return;
    }
    case OP_TASK: MUST(weir_graph_add_task(b->graph, name, body_task, &w->bodies[n->id], NULL, n->cost_ns, out_node)); break;
    case OP_COND:
        MUST(weir_graph_add_cond(b->graph, name, &(weir_cond_desc){.struct_size = sizeof(weir_cond_desc),
            .predicate = ins[0], .then_graph = graphs[0], .else_graph = graphs[1], .inputs = ins + 1,
            .num_inputs = num_in - 1}, outs, num_out, out_node));
        break;
    case OP_CASE:
        MUST(weir_graph_add_case(b->graph, name, &(weir_case_desc){.struct_size = sizeof(weir_case_desc),
            .index = ins[0], .branches = (const weir_graph *const *)graphs, .num_branches = (size_t)n->num_graphs,
            .inputs = ins + 1, .num_inputs = num_in - 1}, outs, num_out, out_node));
        break;
    case OP_WHILE: {
        size_t variables = (size_t)n->num_variables;
        MUST(weir_graph_add_while(b->graph, name, &(weir_while_desc){.struct_size = sizeof(weir_while_desc),
            .cond_graph = graphs[0], .body_graph = graphs[1], .variables = ins, .num_variables = variables,
            .invariants = ins + variables, .num_invariants = num_in - variables, .parallel_iterations = n->parallel},
            outs, out_node));
        break;
    }
    case OP_SWITCH: add_switch(b, n, name, ins, outs, out_node, first); break;
    case OP_PROGRAM: {
        weir_program *program = NULL;
        weir_graph *inner = build_graph(w, n->graphs[0], name);
        b->w->refused |= !compile(w, inner, n->graphs[0], false, &program);
        weir_graph_destroy(inner);
        if (program == NULL) {
            /* The whole will not be tried; any kernel of this form stands for it. */
            node stand_in = {.id = n->id, .op = OP_MIX, .device = -1, .num_in = n->num_in, .num_out = n->num_out, .forward = -1};
            add_kernel_node(b, &stand_in, name, ins, outs, out_node);
            break;
        }
        MUST(weir_graph_add_program(b->graph, name, program, ins, num_in, outs, num_out, out_node));
        weir_program_release(program);
        break;
    }
    default: add_kernel_node(b, n, name, ins, outs, out_node);
    }
    for (int i = 0; i < 3; i++) weir_graph_destroy(graphs[i]);
}

static void add_nodes(building *b, const graph_plan *g, weir_value *values) {
    weir_node nodes[MAX_NODES];
    for (int i = 0; i < g->num_nodes; i++) {
        const node *n = &g->nodes[i];
        weir_value ins[MAX_INS], outs[MAX_OUTS];
        if (n->dropped) continue;
        for (int k = 0; k < n->num_in; k++) ins[k] = n->ins[k] < 0 ? zero_of(b) : values[n->ins[k]];
        body *body = &b->w->bodies[n->id];
        body->node = n;
        body->world = b->w;
        beginning first = {.count = 0};
        add_node(b, n, ins, outs, &nodes[i], &first);
        if (first.count == 0 && n->op != OP_CONSTANT) first = (beginning){.nodes = {nodes[i]}, .count = 1};
        for (int k = 0; k < n->num_out; k++) values[n->first_out + k] = outs[k];
        for (int k = 0; k < n->num_before && n->op != OP_CONSTANT; k++) {
            const node *from = &g->nodes[n->before[k]];
            if (from->op == OP_CONSTANT) continue;
            for (int f = 0; f < first.count && !is_planted("order"); f++) {
                MUST(weir_graph_add_control_edge(b->graph, nodes[n->before[k]], first.nodes[f]));
            }
            bool bodies = (op_is_host(from->op) || from->op == OP_TASK) && (op_is_host(n->op) || n->op == OP_TASK);
            if (bodies) body->after[k] = &b->w->bodies[from->id];
        }
    }
}

static weir_graph *build_graph(world *w, const graph_plan *g, const char *name) {
    building b = {.w = w};
    weir_value values[MAX_VALUES];
    char part[24];
    MUST(weir_graph_create(name, &b.graph));
    for (int i = 0; i < g->num_inputs; i++) {
        weir_tensor_desc desc = desc_of(g->values[i].type);
        snprintf(part, sizeof part, "in%d", i);
        MUST(weir_graph_add_input(b.graph, part, &desc, &values[i]));
    }
    add_nodes(&b, g, values);
    for (int i = 0; i < g->num_outputs; i++) {
        snprintf(part, sizeof part, "out%d", i);
        MUST(weir_graph_add_output(b.graph, part, values[g->outputs[i]]));
    }
    return b.graph;
}

static bool compile(world *w, weir_graph *graph, const graph_plan *g, bool whole, weir_program **out) {
    const plan *p = w->plan;
    weir_compile_options o = {.struct_size = sizeof o, .segments = (weir_segments)p->segments};
    weir_engine *engines[1 + MAX_DEVICES] = {w->cpu};
    size_t count = 1;
    if (p->hop >= 0) o.hop_ns = p->hop == 0 ? WEIR_HOP_NONE : (uint64_t)p->hop;
    if (g->later) o.blocking_threadpool = w->pools[FOR_BLOCKING];
    if (p->statistics) o.flags |= WEIR_COMPILE_STATISTICS;
    if (!p->device_control) o.flags |= WEIR_COMPILE_NO_DEVICE_CONTROL;
    if (whole) {
        o.flags |= WEIR_COMPILE_ALLOW_ABSENT;
        o.partial_runs = (size_t)p->partial_lists;
        o.max_concurrent_runs = (uint32_t)p->max_runs;
    }
    if (p->any_placement && !g->later && !g->opens) o.placement = WEIR_PLACEMENT_ANY;
    for (int i = 0; i < MAX_DEVICES; i++) {
        if (w->devices[i] != NULL) engines[count++] = w->devices[i];
    }
    weir_status status = weir_graph_compile(graph, engines, count, &o, out);
    if (status == WEIR_UNIMPLEMENTED) return false;
    /* Of switches inside of switches compile does not always see that one side is there. */
    if (status == WEIR_INVALID_ARGUMENT && strstr(weir_last_error_message(), "can leave it absent") != NULL) return false;
    if (status != WEIR_OK) finding("compile", "weir_graph_compile says %s: %s", weir_status_name(status), weir_last_error_message());
    return true;
}

/* ---- The world --------------------------------------------------------------------------------- */

static weir_engine *make_device(const plan *p, int i) {
    const device_plan *d = &p->devices[i];
    weir_emulation e = {.struct_size = sizeof e, .seed = d->seed, .latency_ns = d->latency_ns, .kernel_ns = d->kernel_ns, .regions = d->regions};
    weir_engine_attr *attr = NULL;
    weir_engine *engine = NULL;
    e.flags = WEIR_EMULATION_CHECK | (d->strict ? WEIR_EMULATION_STRICT : 0);
    e.memory_bytes = 1 << 24;
    MUST(weir_engine_attr_create(WEIR_ENGINE_EMULATED, &attr));
    MUST(weir_engine_attr_set_emulation(attr, &e));
    MUST(weir_engine_attr_set_max_streams(attr, (uint32_t)d->max_streams));
    MUST(weir_engine_create(WEIR_ENGINE_EMULATED, (uint32_t)i, attr, &engine));
    weir_engine_attr_destroy(attr);
    return engine;
}

static weir_engine *make_host(weir_threadpool *pool) {
    weir_engine_attr *attr = NULL;
    weir_engine *engine = NULL;
    MUST(weir_engine_attr_create(WEIR_ENGINE_CPU, &attr));
    MUST(weir_engine_attr_set_threadpool(attr, pool));
    MUST(weir_engine_create(WEIR_ENGINE_CPU, 0, attr, &engine));
    weir_engine_attr_destroy(attr);
    return engine;
}

static void make_inputs(world *w) {
    weir_stream *streams[MAX_DEVICES] = {NULL, NULL};
    for (int set = 0; set < SETS; set++) {
        plan_inputs(w->plan, set, w->values[set]);
        reference_run(w->plan->graph, w->values[set], &w->expected[set]);
        for (int i = 0; i < w->plan->graph->num_inputs; i++) {
            weir_tensor *host = vec_tensor(w->cpu);
            int d = w->plan->input_device[i];
            vec_write(host, &w->values[set][i]);
            w->inputs[set][i] = host;
            if (d < 0) continue;
            if (streams[d] == NULL) MUST(weir_stream_create(w->devices[d], 0, NULL, &streams[d]));
            w->inputs[set][i] = vec_tensor(w->devices[d]);
            MUST(weir_enqueue_copy(streams[d], host, w->inputs[set][i]));
            MUST(weir_stream_synchronize(streams[d], WEIR_TIMEOUT_INFINITE));
            weir_tensor_release(host);
        }
    }
    for (int d = 0; d < MAX_DEVICES; d++) weir_stream_release(streams[d]);
}

bool build_world(world *w, const plan *p) {
    memset(w, 0, sizeof *w);
    w->plan = p;
    atomic_store(&w->calm, p->calm);
    for (int r = 0; r < ROLES; r++) {
        if (p->pools[r].source == POOL_SAME) {
            w->pools[r] = w->pools[p->pools[r].same_as];
            if (w->pools[r] != NULL) MUST(weir_threadpool_retain(w->pools[r]));
        } else {
            w->pools[r] = pool_make(&p->pools[r], &w->own[r]);
        }
    }
    int b = FOR_BLOCKING;
    while (p->pools[b].source == POOL_SAME) b = (int)p->pools[b].same_as;
    w->lenient_blocking = p->pools[b].source == POOL_WEIR_SEEDED || (p->pools[b].source == POOL_OWN && p->pools[b].refuses > 0);
    if (w->pools[FOR_BLOCKING] == NULL) MUST(weir_threadpool_create_builtin(NULL, &w->pools[FOR_BLOCKING]));
    w->cpu = make_host(w->pools[FOR_ENGINE]);
    for (int i = 0; i < p->num_devices; i++) {
        if (!p->devices[i].dropped) w->devices[i] = make_device(p, i);
    }
    for (int i = 0; i < 4; i++) {
        w->mix_nodes[i] = (node){.id = MAX_IDS - 4 + i, .op = OP_MIX, .manner = (manner)i, .device = -1, .num_in = 1, .num_out = 1};
        w->mix_nodes[i].factor[0] = 3;
        w->mix_nodes[i].factor[MAX_INS] = 5;
        w->mix_bodies[i] = (body){.node = &w->mix_nodes[i], .world = w};
        w->mixes[i] = body_kernel(&w->mix_bodies[i], w->cpu);
    }
    make_inputs(w);
    weir_graph *graph = build_graph(w, p->graph, "g");
    for (int i = 0; i < p->graph->num_inputs; i++) {
        if (p->input_device[i] >= 0) MUST(weir_graph_set_port_engine(graph, WEIR_PORT_INPUT, (size_t)i, w->devices[p->input_device[i]]));
    }
    for (int i = 0; i < p->graph->num_outputs; i++) {
        if (p->output_device[i] >= 0) MUST(weir_graph_set_port_engine(graph, WEIR_PORT_OUTPUT, (size_t)i, w->devices[p->output_device[i]]));
    }
    bool can = !w->refused && compile(w, graph, p->graph, true, &w->program);
    weir_graph_destroy(graph);
    return can;
}

void end_world(world *w) {
    weir_program_release(w->program);
    for (int i = 0; i < MAX_IDS; i++) {
        if (w->bodies[i].node != NULL && w->bodies[i].node->op == OP_CALL) weir_program_release(w->bodies[i].program);
    }
    for (int i = 0; i < 4; i++) weir_kernel_release(w->mixes[i]);
    for (int set = 0; set < SETS; set++) {
        for (int i = 0; i < MAX_PROGRAM_INS; i++) weir_tensor_release(w->inputs[set][i]);
    }
    for (int i = 0; i < MAX_DEVICES; i++) weir_engine_release(w->devices[i]);
    weir_engine_release(w->cpu);
    for (int r = 0; r < ROLES; r++) weir_threadpool_release(w->pools[r]);
    for (int r = 0; r < ROLES; r++) {
        if (w->own[r] != NULL) own_pool_end(w->own[r]);
    }
}

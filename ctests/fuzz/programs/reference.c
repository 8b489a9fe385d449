/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * What a program computes, said in the plainest way. A failed node poisons what reads it; everything else goes on, so
 * that all nodes that can be the first to fail are found.
 */

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "plan.h"

int whole(float x) {
    return ((int)fmod((double)x, 997.0) + 997) % 997;
}

bool node_fails(const node *n, const val *ins) {
    if (n->fail_modulus == 0) return false;
    if (n->num_in == 0 || n->fail_modulus == 1) return true;
    return whole(ins[0].v[0]) % n->fail_modulus == n->fail_rest;
}

static int greatest(const val *x) {
    int best = 0;
    for (int i = 1; i < WIDTH; i++) {
        if (x->v[i] > x->v[best]) best = i;
    }
    return best;
}

static float two(op op, float a, float b) {
    switch (op) {
    case OP_ADD: return a + b;
    case OP_SUB: return a - b;
    case OP_MIN: return a < b ? a : b;
    default: return a > b ? a : b;
    }
}

void node_apply(const node *n, const val *ins, val *outs) {
    for (int k = 0; k < n->num_out; k++) memset(&outs[k], 0, sizeof outs[k]), outs[k].n = WIDTH;
    switch (n->op) {
    case OP_MIX:
        for (int k = 0; k < n->num_out; k++) {
            for (int i = 0; i < WIDTH; i++) {
                long sum = n->factor[MAX_INS] + k * 7 + i;
                for (int j = 0; j < n->num_in; j++) sum += (long)n->factor[j] * whole(ins[j].v[i]);
                outs[k].v[i] = (float)(sum % 997);
            }
        }
        break;
    case OP_PICK:
        outs[0].n = 1;
        outs[0].v[0] = (float)(n->way == 1 ? greatest(&ins[0]) : (whole(ins[0].v[0]) + n->factor[0]) % 3);
        break;
    case OP_ARGMAX:
        outs[0].n = 1;
        outs[0].v[0] = (float)greatest(&ins[0]);
        break;
    case OP_BOUND:
        outs[0].v[1] = (float)(whole(ins[0].v[0]) % 6);
        break;
    case OP_MAKE:
        outs[0].n = whole(ins[0].v[0]) % (MAX_OPEN + 1);
        for (int i = 0; i < outs[0].n; i++) outs[0].v[i] = (float)(whole(ins[0].v[i % WIDTH]) + i);
        break;
    case OP_MAP:
        outs[0].n = ins[0].n;
        for (int i = 0; i < ins[0].n; i++) outs[0].v[i] = (float)((3 * whole(ins[0].v[i]) + n->factor[0]) % 997);
        break;
    case OP_FOLD:
        for (int i = 0; i < WIDTH; i++) {
            int sum = ins[0].n;
            for (int j = i; j < ins[0].n; j += WIDTH) sum += (j + 1) * whole(ins[0].v[j]);
            outs[0].v[i] = (float)(sum % 997);
        }
        break;
    case OP_CONSTANT:
        for (int i = 0; i < WIDTH; i++) outs[0].v[i] = (float)(n->way == 1 ? i == 0 : n->factor[i % MAX_INS]);
        break;
    case OP_ADD:
    case OP_SUB:
    case OP_MIN:
    case OP_MAX:
        for (int i = 0; i < WIDTH; i++) outs[0].v[i] = two(n->op, ins[0].v[i], ins[1].v[i]);
        break;
    case OP_RELU:
        for (int i = 0; i < WIDTH; i++) outs[0].v[i] = ins[0].v[i] > 0 ? ins[0].v[i] : 0;
        break;
    default:
        break;
    }
}

static void run_graph(const graph_plan *g, const val *inputs, val *outputs, outcome *out);

static void spread(const node *n, val *outs, bool absent, bool poison) {
    for (int k = 0; k < n->num_out; k++) {
        memset(&outs[k], 0, sizeof outs[k]);
        outs[k].absent = absent;
        outs[k].poison = poison;
    }
}

static void run_loop(const node *n, const val *ins, val *outs, outcome *out) {
    val vars[MAX_INS], next[MAX_PROGRAM_OUTS], test[MAX_PROGRAM_OUTS];
    for (int i = 0; i < n->num_in; i++) vars[i] = ins[i];
    for (int turn = 0; turn < 64; turn++) {
        run_graph(n->graphs[0], vars, test, out);
        if (test[0].poison) {
            spread(n, outs, false, true);
            return;
        }
        if (test[0].v[0] == 0) break;
        run_graph(n->graphs[1], vars, next, out);
        for (int i = 0; i < n->num_variables; i++) vars[i] = next[i];
    }
    for (int i = 0; i < n->num_variables; i++) outs[i] = vars[i];
}

/* Only the first value is switched. The others, and the nodes on the sides, are of the graph around: what needs nothing
 * of the switch runs in any case. */
static void run_switch(const node *n, const val *ins, val *outs, outcome *out, bool skipped, bool failed) {
    bool taken = ins[0].v[0] != 0;
    val side[MAX_INS], result[2][MAX_PROGRAM_OUTS];
    out->unsure |= failed;
    for (int s = 0; s < 2; s++) {
        for (int i = 1; i < n->num_in; i++) side[i - 1] = ins[i];
        side[0].poison = failed && !skipped;
        side[0].absent = skipped || (!failed && (s == 1) != taken);
        run_graph(n->graphs[s], side, result[s], out);
    }
    int live = result[1][0].absent ? 0 : 1;
    outs[0] = result[live][0];
    memset(&outs[1], 0, sizeof outs[1]);
    outs[1].n = 1;
    outs[1].v[0] = (float)live;
    outs[1].absent = outs[0].absent;
    outs[1].poison = outs[0].poison;
    if (n->num_out > 2) outs[2] = result[n->way][0];
}

/* Nothing is known of this node's inputs but that one is poisoned: what is inside and needs it not may run, and
 * fail. */
static void explore(const node *n, const val *ins, outcome *out) {
    bool chooses = n->op == OP_COND || n->op == OP_CASE;
    val outs[MAX_PROGRAM_OUTS];
    out->unsure |= n->num_graphs > 0;
    if (n->op == OP_CALL) return;
    if (n->op == OP_WHILE) {
        run_loop(n, ins, outs, out);
        return;
    }
    for (int k = 0; k < n->num_graphs; k++) run_graph(n->graphs[k], ins + chooses, outs, out);
}

/* Whether the node itself fails. */
static bool run_node(const node *n, const val *ins, val *outs, outcome *out) {
    switch (n->op) {
    case OP_COND:
    case OP_CASE: {
        int index = (int)ins[0].v[0];
        if (n->op == OP_COND) index = index != 0 ? 0 : 1;
        else if (index < 0 || index >= n->num_graphs) index = n->num_graphs - 1;
        run_graph(n->graphs[index], ins + 1, outs, out);
        return false;
    }
    case OP_WHILE:
        run_loop(n, ins, outs, out);
        return false;
    case OP_PROGRAM:
    case OP_CALL:
        run_graph(n->graphs[0], ins, outs, out);
        return false;
    default:
        if (n->op == OP_TASK || n->op == OP_SINK) out->effects[n->id]++;
        if (!node_fails(n, ins)) {
            node_apply(n, ins, outs);
            return false;
        }
        out->fails[n->id] = out->some_fail = true;
        out->must_fail |= (n->op == OP_TASK || n->op == OP_SINK) && !n->uncounted;
        spread(n, outs, false, true);
        return true;
    }
}

/* Whether the node itself reads this input. Others are for what is inside, which may not need them; then nobody does. */
static bool is_read(const node *n, int k) {
    bool chooses = n->op == OP_COND || n->op == OP_CASE || n->op == OP_SWITCH;
    return n->num_graphs == 0 || n->op == OP_CALL || (chooses && k == 0) || (n->op == OP_SWITCH && k == 1);
}

static void run_graph(const graph_plan *g, const val *inputs, val *outputs, outcome *out) {
    val values[MAX_VALUES];
    bool skipped[MAX_NODES] = {false}, failed[MAX_NODES] = {false};
    memset(values, 0, sizeof values);
    for (int i = 0; i < g->num_inputs; i++) values[i] = inputs[i];
    for (int i = 0; i < g->num_nodes; i++) {
        const node *n = &g->nodes[i];
        if (n->dropped) continue;
        val ins[MAX_INS], outs[MAX_PROGRAM_OUTS];
        for (int k = 0; k < n->num_in; k++) {
            val zero = {.n = 1};
            ins[k] = n->ins[k] < 0 ? zero : values[n->ins[k]];
            if (n->op == OP_SWITCH && k > 1) continue; /* see run_switch */
            skipped[i] |= ins[k].absent;
            failed[i] |= ins[k].poison && is_read(n, k);
            out->unsure |= ins[k].poison && !is_read(n, k);
        }
        /* Constants are there before anything runs. */
        for (int k = 0; k < n->num_before && n->op != OP_CONSTANT; k++) {
            skipped[i] |= skipped[n->before[k]];
            /* What has failed inside may be what nobody needs, and is left out then: this node may run. */
            bool inside = g->nodes[n->before[k]].num_graphs > 0;
            failed[i] |= failed[n->before[k]] && !inside;
            out->unsure |= failed[n->before[k]] && inside;
        }
        if (n->op == OP_SWITCH) {
            run_switch(n, ins, outs, out, skipped[i], failed[i]);
            skipped[i] = outs[0].absent;
            failed[i] = outs[0].poison;
        } else if (skipped[i]) {
            spread(n, outs, true, false);
        } else if (failed[i]) {
            explore(n, ins, out);
            spread(n, outs, false, true);
        } else {
            failed[i] = run_node(n, ins, outs, out);
            for (int k = 0; k < n->num_out; k++) failed[i] |= outs[k].poison;
        }
        for (int k = 0; k < n->num_out; k++) values[n->first_out + k] = outs[k];
    }
    for (int i = 0; i < g->num_outputs; i++) outputs[i] = values[g->outputs[i]];
}

void reference_run(const graph_plan *g, const val *inputs, outcome *out) {
    memset(out, 0, sizeof *out);
    run_graph(g, inputs, out->outputs, out);
}

void plan_inputs(const plan *p, int set, val *inputs) {
    dice d = {p->number * 31 + (uint64_t)set};
    for (int i = 0; i < MAX_PROGRAM_INS; i++) {
        memset(&inputs[i], 0, sizeof inputs[i]);
        inputs[i].n = WIDTH;
        for (int k = 0; k < WIDTH; k++) inputs[i].v[k] = (float)roll(&d, -500, 500);
    }
}

/* ---- To read ----------------------------------------------------------------------------------- */

const char *op_name(op op) {
    static const char *const names[] = {"mix",    "pick",     "bound", "sink", "make", "map",   "fold",
                                        "call",   "add",      "sub",   "min",  "max",  "relu",  "argmax",
                                        "constant", "task",   "cond",  "case", "while", "switch", "program"};
    return names[op];
}

bool op_is_host(op op) {
    return op <= OP_CALL;
}

static void print_graph(FILE *to, const graph_plan *g, int deep) {
    static const char *const manners[] = {"", " later(inside)", " later(soon)", " later(late)", " may-block"};
    for (int i = 0; i < g->num_nodes; i++) {
        const node *n = &g->nodes[i];
        if (n->dropped) continue;
        fprintf(to, "%*s", deep * 4 + 2, "");
        for (int k = 0; k < n->num_out; k++) fprintf(to, "%sv%d", k > 0 ? ", " : "", n->first_out + k);
        fprintf(to, "%sn%d = %s(", n->num_out > 0 ? " : " : "", n->id, op_name(n->op));
        for (int k = 0; k < n->num_in; k++) fprintf(to, "%sv%d", k > 0 ? ", " : "", n->ins[k]);
        fprintf(to, ")%s", manners[n->manner]);
        if (n->device >= 0) fprintf(to, " on d%d", n->device);
        if (n->open_placement) fprintf(to, " anywhere");
        if (n->fail_modulus > 0) fprintf(to, " fails(%d of %d)", n->fail_rest, n->fail_modulus);
        if (n->op == OP_WHILE) fprintf(to, " variables=%d parallel=%d%s", n->num_variables, n->parallel, n->in_frame ? " in a frame" : "");
        if (n->op == OP_CALL) fprintf(to, " way=%d count=%d", n->way, n->count);
        for (int k = 0; k < n->num_before; k++) fprintf(to, " after n%d", g->nodes[n->before[k]].id);
        fprintf(to, "\n");
        for (int k = 0; k < n->num_graphs; k++) {
            fprintf(to, "%*sgraph %d of n%d, %d inputs\n", deep * 4 + 4, "", k, n->id, n->graphs[k]->num_inputs);
            print_graph(to, n->graphs[k], deep + 1);
        }
    }
    fprintf(to, "%*soutputs:", deep * 4 + 2, "");
    for (int i = 0; i < g->num_outputs; i++) fprintf(to, " v%d", g->outputs[i]);
    fprintf(to, "\n");
}

static void print_pool(FILE *to, const plan *p, int r) {
    static const char *const roles[] = {"engine", "stream", "run", "blocking"}, *const orders[] = {"fifo", "lifo", "any"};
    static const char *const sources[] = {"none", "builtin", "weir inline", "weir seeded", "own", "same"};
    const pool_plan *pool = &p->pools[r];
    fprintf(to, "  p%d, of %s: %s", r, roles[r], sources[pool->source]);
    if (pool->source == POOL_SAME) fprintf(to, " as p%d", (int)pool->same_as);
    else if (pool->source != POOL_NONE) fprintf(to, ", %d threads", pool->threads);
    if (pool->source == POOL_OWN) {
        fprintf(to, "%s%s%s%s%s%s%s%s%s, %s, refuses %d %%, late %d us", pool->schedule ? " schedule" : "",
                pool->parallel_for ? " parallel_for" : "", pool->asynchronous ? " asynchronous" : "",
                pool->in_parallel ? " in_parallel" : "", pool->thread_index ? " thread_index" : "", pool->help ? " help" : "",
                pool->nested ? " nested" : "", pool->balancing ? " balancing" : "", pool->runs_inline ? " inline" : "",
                orders[pool->order], pool->refuses, pool->late_us);
    }
    fprintf(to, "\n");
}

static void print_act(FILE *to, const act *a) {
    static const char *const kinds[] = {"run", "run on stream", "start", "run_many", "enqueue kernel", "enqueue task",
                                        "enqueue task that runs", "enqueue task that waits", "event", "synchronize stream",
                                        "synchronize engine", "sync_devices"};
    static const char *const thens[] = {"wait", "wait later", "cancel", "cancel soon", "let go"};

    fprintf(to, "    a%d %s, stream %d, other %d, set %d", a->id, kinds[a->kind], a->stream, a->other, a->set);
    if (a->kind == ACT_START) fprintf(to, ", %s", thens[a->then]);
    if (a->kind == ACT_MANY) fprintf(to, ", count %d", a->count);
    if (a->run_pool) fprintf(to, ", pool of the run");
    if (a->deadline_ns > 0) fprintf(to, ", deadline %llu ns", (unsigned long long)a->deadline_ns);
    if (a->outputs != 0) fprintf(to, ", outputs %#x", a->outputs);
    if (a->deterministic) fprintf(to, ", deterministic");
    if (a->finish_independent) fprintf(to, ", finish_independent");
    if (a->no_wait) fprintf(to, ", no_wait");
    if (a->follows) fprintf(to, ", followed");
    if (a->tell != NOT_TOLD) fprintf(to, ", told by %s", a->tell == BY_OPTIONS ? "options" : "call");
    fprintf(to, "\n");
}

void plan_print(FILE *to, const plan *p) {
    static const char *const places[] = {"outside", "job of", "task of its stream 0"};
    fprintf(to, "program %llu: %d inputs (v0...), hop %d, partial lists %d, max runs %d, segments %d, device control %d\n",
            (unsigned long long)p->number, p->graph->num_inputs, p->hop, p->partial_lists, p->max_runs, p->segments,
            p->device_control);
    for (int i = 0; i < p->num_devices; i++) {
        const device_plan *v = &p->devices[i];
        fprintf(to, "  d%d: seed %llu latency %llu kernel %llu strict %d streams %d regions %llu\n", i, (unsigned long long)v->seed,
                (unsigned long long)v->latency_ns, (unsigned long long)v->kernel_ns, v->strict, v->max_streams,
                (unsigned long long)v->regions);
    }
    for (int i = 0; i < p->graph->num_inputs; i++) {
        if (p->input_device[i] >= 0) fprintf(to, "  input %d on d%d\n", i, p->input_device[i]);
    }
    for (int i = 0; i < p->graph->num_outputs; i++) {
        if (p->output_device[i] >= 0) fprintf(to, "  output %d on d%d\n", i, p->output_device[i]);
    }
    for (int r = 0; r < ROLES; r++) print_pool(to, p, r);
    print_graph(to, p->graph, 0);
    for (int i = 0; i < p->num_callers; i++) {
        const caller_plan *c = &p->callers[i];
        if (c->dropped) continue;
        fprintf(to, "  c%d %s", c->id, places[c->where]);
        if (c->where == POOL_JOB) fprintf(to, " p%d", (int)c->pool);
        for (int k = 0; k < c->num_streams; k++) {
            const stream_plan *s = &c->streams[k];
            fprintf(to, "; stream %d %s%s%s", k, s->asynchronous ? "asynchronous" : "synchronous",
                    s->pool ? " p1" : "", s->device < 0 ? "" : s->device == 0 ? " of d0" : " of d1");
        }
        fprintf(to, "\n");
        for (int k = 0; k < c->num_acts; k++) {
            if (!c->acts[k].dropped) print_act(to, &c->acts[k]);
        }
    }
}

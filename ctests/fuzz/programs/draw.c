/* SPDX-License-Identifier: MIT OR Apache-2.0 */

#include "plan.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* splitmix64 (Steele, Lea and Flood 2014). */
uint64_t roll_bits(dice *d) {
    uint64_t z = (d->state += UINT64_C(0x9E3779B97F4A7C15));
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

int roll(dice *d, int least, int most) {
    return least + (int)(roll_bits(d) % (uint64_t)(most - least + 1));
}

bool chance(dice *d, int percent) {
    return (int)(roll_bits(d) % 100) < percent;
}

/* ---- Graphs ------------------------------------------------------------------------------------ */

/* What is drawn for the whole program before its nodes. */
typedef struct taste {
    dice *d;
    plan *p;
    bool devices, control, dynamic, later, block, fail, tasks, uncounted, placed_switches;
    int id_limit;
} taste;

static int add_value(graph_plan *g, type t, int node) {
    g->values[g->num_values] = (value){t, node};
    return g->num_values++;
}

/* A value of this type, rather a late one; -1 if there is none. */
static int pick(taste *t, const graph_plan *g, type type) {
    int found[MAX_VALUES], n = 0;
    for (int i = 0; i < g->num_values; i++) {
        if (g->values[i].type == type) found[n++] = i;
    }
    if (n == 0) return -1;
    return chance(t->d, 60) ? found[n - 1 - roll(t->d, 0, n < 3 ? n - 1 : 2)] : found[roll(t->d, 0, n - 1)];
}

static node *add_node(taste *t, graph_plan *g, op op) {
    node *n = &g->nodes[g->num_nodes++];
    n->id = t->p->num_ids++;
    n->op = op;
    n->device = -1;
    n->forward = -1;
    n->first_out = g->num_values;
    n->uncounted = t->uncounted;
    for (int i = 0; i <= MAX_INS; i++) n->factor[i] = roll(t->d, 1, 40);
    n->work_us = chance(t->d, 10) ? roll(t->d, 1, 200) : 0;
    n->cost_ns = chance(t->d, 40) ? (uint64_t)roll(t->d, 1, 40) * 1000 : 0;
    n->all_next = t->p->all;
    t->p->all = n;
    return n;
}

static void reads(node *n, int value) {
    n->ins[n->num_in++] = value;
}

static void gives(graph_plan *g, node *n, type type) {
    add_value(g, type, (int)(n - g->nodes));
    n->num_out++;
}

static graph_plan *draw_graph(taste *t, int depth, const type *inputs, int num_inputs, int num_outputs, int least_nodes);

/* Inputs for a graph inside: the first is a VEC. */
static int draw_ports(taste *t, const graph_plan *g, node *n, type *types) {
    int ports = roll(t->d, 1, 3), k = 0;
    for (int i = 0; i < ports; i++) {
        type wanted = i == 0 ? VEC : (type)(chance(t->d, 75) ? VEC : chance(t->d, 60) ? PRED : OPEN);
        int v = pick(t, g, wanted);
        if (v < 0 || n->num_in == MAX_INS) continue;
        reads(n, v);
        types[k++] = wanted;
    }
    return k;
}

static int draw_predicate(taste *t, graph_plan *g) {
    int v = chance(t->d, 40) ? pick(t, g, PRED) : -1;
    if (v >= 0) return v;
    int from = pick(t, g, VEC);
    node *n = add_node(t, g, t->devices && chance(t->d, 60) ? OP_ARGMAX : OP_PICK);
    reads(n, from);
    gives(g, n, PRED);
    return n->first_out;
}

static void draw_loop(taste *t, graph_plan *g, int depth) {
    int from = pick(t, g, VEC);
    node *bound = add_node(t, g, OP_BOUND);
    reads(bound, from);
    gives(g, bound, VEC);
    int counter = bound->first_out;
    node *n = add_node(t, g, OP_WHILE);
    type types[MAX_INS];
    reads(n, counter);
    n->num_variables = roll(t->d, 1, 3);
    for (int i = 1; i < n->num_variables; i++) reads(n, pick(t, g, VEC));
    int invariants = roll(t->d, 0, MAX_INS - n->num_variables);
    for (int i = 0; i < invariants; i++) reads(n, pick(t, g, VEC));
    for (int i = 0; i < n->num_in; i++) types[i] = VEC;
    n->parallel = chance(t->d, 50) ? 1 : roll(t->d, 2, 8);
    for (int i = 0; i < n->num_variables; i++) gives(g, n, VEC);
    /* The condition: is the counter's place 0 the greatest? */
    graph_plan *c = draw_graph(t, 9, types, n->num_in, 0, 0);
    node *test = add_node(t, c, t->devices && chance(t->d, 70) ? OP_ARGMAX : OP_PICK);
    test->fail_modulus = 0;
    if (test->op == OP_PICK) test->way = 1; /* picks as argmax does */
    reads(test, 0);
    gives(c, test, PRED);
    c->outputs[c->num_outputs++] = test->first_out;
    /* The body: one more, and anything. */
    graph_plan *b = draw_graph(t, depth + 1, types, n->num_in, n->num_variables, 1);
    node *one = add_node(t, b, OP_CONSTANT);
    one->way = 1;
    gives(b, one, VEC);
    node *step = add_node(t, b, OP_ADD);
    reads(step, 0);
    reads(step, one->first_out);
    gives(b, step, VEC);
    b->outputs[0] = step->first_out;
    n->graphs[0] = c;
    n->graphs[1] = b;
    n->num_graphs = 2;
}

static void draw_choice(taste *t, graph_plan *g, int depth) {
    int predicate = draw_predicate(t, g);
    node *n = add_node(t, g, chance(t->d, 60) ? OP_COND : OP_CASE);
    type types[MAX_INS];
    reads(n, predicate);
    int ports = draw_ports(t, g, n, types), outs = roll(t->d, 1, 3);
    n->num_graphs = n->op == OP_COND ? 2 : roll(t->d, 1, 3);
    for (int i = 0; i < n->num_graphs; i++) n->graphs[i] = draw_graph(t, depth + 1, types, ports, outs, 0);
    for (int i = 0; i < outs; i++) gives(g, n, VEC);
}

/* Nodes on either side of a switch read the value of their side, so that they are skipped with it. */
static void draw_switch(taste *t, graph_plan *g, int depth) {
    int predicate = draw_predicate(t, g);
    node *n = add_node(t, g, OP_SWITCH);
    type types[MAX_INS] = {VEC};
    reads(n, predicate);
    reads(n, pick(t, g, VEC));
    int ports = 1;
    if (chance(t->d, 60)) {
        reads(n, pick(t, g, VEC));
        types[ports++] = VEC;
    }
    n->num_graphs = 2;
    for (int i = 0; i < 2; i++) {
        graph_plan *side = draw_graph(t, depth + 1, types, ports, 0, 0);
        node *last = add_node(t, side, OP_MIX);
        reads(last, 0);
        if (side->num_values > 1) reads(last, pick(t, side, VEC));
        gives(side, last, VEC);
        side->outputs[side->num_outputs++] = last->first_out;
        n->graphs[i] = side;
    }
    gives(g, n, VEC);
    gives(g, n, PRED);
    n->way = roll(t->d, 0, 1);
    if (depth == 0) gives(g, n, LEAK);
}

static void draw_program(taste *t, graph_plan *g, int depth, op op) {
    node *n = add_node(t, g, op);
    type types[MAX_INS];
    int ports = roll(t->d, 1, 2), outs = roll(t->d, 1, 2);
    for (int i = 0; i < ports; i++) reads(n, pick(t, g, VEC)), types[i] = VEC;
    for (int i = 0; i < outs; i++) gives(g, n, VEC);
    taste inner = *t;
    inner.devices = t->devices && chance(t->d, 40);
    inner.uncounted = t->uncounted || op == OP_CALL;
    if (op == OP_CALL) inner.fail = false;
    if (op == OP_CALL) inner.later = t->later && chance(t->d, 30), inner.block = false;
    n->graphs[0] = draw_graph(&inner, depth + 1, types, ports, outs, 1);
    n->num_graphs = 1;
    n->way = roll(t->d, 0, 3);
    n->count = roll(t->d, 1, 3);
}

static void draw_manner(taste *t, node *n) {
    if (t->later && chance(t->d, 30)) n->manner = (manner)roll(t->d, LATER_INSIDE, LATER_LATE);
    else if (t->block && chance(t->d, 20)) n->manner = MAY_BLOCK;
    if (t->fail && chance(t->d, 12)) {
        n->fail_modulus = roll(t->d, 1, 4);
        n->fail_rest = roll(t->d, 0, n->fail_modulus - 1);
        n->fail_early = chance(t->d, 30);
    }
}

static void draw_simple(taste *t, graph_plan *g) {
    if (t->tasks && chance(t->d, 12)) {
        node *n = add_node(t, g, chance(t->d, 60) ? OP_TASK : OP_SINK);
        if (n->op == OP_SINK) reads(n, pick(t, g, VEC)), draw_manner(t, n);
        else if (t->fail && chance(t->d, 3)) n->fail_modulus = 1;
        return;
    }
    if (t->dynamic && chance(t->d, 30)) {
        int from = pick(t, g, OPEN);
        op op = from < 0 ? OP_MAKE : chance(t->d, 40) ? OP_MAP : chance(t->d, 70) ? OP_FOLD : OP_MAKE;
        node *n = add_node(t, g, op);
        reads(n, op == OP_MAKE ? pick(t, g, VEC) : from);
        gives(g, n, op == OP_FOLD ? VEC : OPEN);
        return;
    }
    if (chance(t->d, t->devices ? 70 : 15)) {
        op op = (enum op)roll(t->d, OP_ADD, OP_ARGMAX);
        int first = pick(t, g, VEC), second = pick(t, g, VEC);
        node *n = add_node(t, g, op);
        reads(n, first);
        if (op <= OP_MAX) reads(n, second);
        gives(g, n, op == OP_ARGMAX ? PRED : VEC);
        if (t->devices && chance(t->d, 75)) n->device = roll(t->d, 0, t->p->num_devices - 1);
        n->open_placement = chance(t->d, 15);
        return;
    }
    if (chance(t->d, 4)) {
        node *n = add_node(t, g, OP_CONSTANT);
        gives(g, n, VEC);
        return;
    }
    if (chance(t->d, 8)) {
        (void)draw_predicate(t, g);
        return;
    }
    int ins[MAX_INS], num_in = roll(t->d, 1, 3);
    for (int i = 0; i < num_in; i++) ins[i] = pick(t, g, VEC);
    node *n = add_node(t, g, OP_MIX);
    for (int i = 0; i < num_in; i++) reads(n, ins[i]);
    gives(g, n, VEC);
    if (chance(t->d, 20)) gives(g, n, VEC);
    n->in_place = chance(t->d, 35);
    if (chance(t->d, 10)) n->forward = -2;
    draw_manner(t, n);
}

static graph_plan *draw_graph(taste *t, int depth, const type *inputs, int num_inputs, int num_outputs, int least_nodes) {
    graph_plan *g = calloc(1, sizeof *g);
    if (g == NULL) abort();
    t->p->owned[t->p->num_owned++] = g;
    for (int i = 0; i < num_inputs; i++) add_value(g, inputs[i], -1);
    g->num_inputs = num_inputs;
    int nodes = depth == 9 ? 0 : roll(t->d, least_nodes, depth == 0 ? 11 : depth == 1 ? 4 : 2);
    for (int i = 0; i < nodes && g->num_nodes < MAX_NODES - 5 && g->num_values < MAX_VALUES - 12; i++) {
        int what = roll(t->d, 0, 99);
        bool deeper = depth < 3 && t->p->num_ids < t->id_limit && t->control;
        int before = g->num_nodes;
        if (deeper && what < 9) draw_choice(t, g, depth);
        else if (deeper && what < 15) draw_loop(t, g, depth);
        else if (deeper && what < 21 && (!t->devices || t->placed_switches)) draw_switch(t, g, depth);
        else if (deeper && what < 25) draw_program(t, g, depth, OP_PROGRAM);
        else if (deeper && what < 28) draw_program(t, g, depth, OP_CALL);
        else draw_simple(t, g);
        if (before > 0 && g->num_nodes > before && chance(t->d, 15)) {
            node *n = &g->nodes[g->num_nodes - 1];
            n->before[n->num_before++] = roll(t->d, 0, before - 1);
            if (chance(t->d, 20)) n->before[n->num_before++] = roll(t->d, 0, before - 1);
        }
    }
    for (int i = 0; i < num_outputs; i++) {
        int leak = depth == 0 && chance(t->d, 30) ? pick(t, g, LEAK) : -1;
        g->outputs[g->num_outputs++] = leak >= 0 ? leak : pick(t, g, VEC);
    }
    return g;
}

/* ---- Pools, callers ---------------------------------------------------------------------------- */

static void draw_pool(dice *d, pool_plan *p, role role) {
    memset(p, 0, sizeof *p);
    p->seed = roll_bits(d);
    int what = roll(d, 0, 99);
    p->threads = roll(d, 1, 3);
    if (role > FOR_ENGINE && what < 25) {
        p->source = POOL_SAME;
        p->same_as = (enum role)roll(d, 0, (int)role - 1);
    } else if (what < 35 && role != FOR_BLOCKING) {
        p->source = POOL_NONE;
    } else if (what < 45) {
        p->source = POOL_BUILTIN;
    } else if (what < 48 && role != FOR_BLOCKING) {
        p->source = POOL_WEIR_INLINE;
    } else if (what < 52) {
        p->source = POOL_WEIR_SEEDED;
    } else {
        p->source = POOL_OWN;
    }
    int kind = roll(d, 0, 99);
    p->schedule = kind < 75;
    p->parallel_for = kind >= 55;
    p->asynchronous = p->parallel_for && chance(d, 40);
    if (role == FOR_BLOCKING && !p->schedule) p->asynchronous = true;
    int name = roll(d, 0, 99);
    p->in_parallel = name < 45;
    p->thread_index = name < 30;
    p->help = chance(d, 25);
    p->nested = chance(d, 40);
    p->balancing = chance(d, 30);
    p->runs_inline = chance(d, 6);
    p->order = (pool_order)roll(d, FIFO, ANY_ORDER);
    int refusing = roll(d, 0, 99);
    p->refuses = refusing < 70 ? 0 : refusing < 92 ? roll(d, 5, 60) : 100;
    p->late_us = chance(d, 25) ? roll(d, 20, 400) : 0;
}

static void draw_act(dice *d, const plan *p, caller_plan *c, act *a) {
    static const int weights[ACT_KINDS] = {18, 14, 18, 6, 5, 5, 7, 5, 5, 7, 4, 6};
    int at = roll(d, 0, 99), kind = 0;
    while (kind < ACT_KINDS - 1 && at >= weights[kind]) at -= weights[kind++];
    a->kind = (act_kind)kind;
    a->stream = roll(d, 0, c->num_streams - 1);
    a->other = roll(d, 0, c->num_streams - 1);
    a->set = roll(d, 0, SETS - 1);
    a->run_pool = chance(d, 50);
    a->deadline_ns = chance(d, 7) ? (uint64_t)roll(d, 1, 400) * 1000 : 0;
    a->outputs = p->partial_lists > 0 && chance(d, 40) ? (unsigned)roll(d, 1, (1 << p->graph->num_outputs) - 1) : 0;
    a->deterministic = chance(d, 5);
    a->finish_independent = chance(d, 5);
    a->no_wait = chance(d, 15);
    a->flags = chance(d, 50);
    int then = roll(d, 0, 99);
    a->then = then < 45 ? WAIT_NOW : then < 70 ? WAIT_LATER : then < 78 ? CANCEL_NOW : then < 86 ? CANCEL_SOON : LET_GO;
    a->count = roll(d, 1, 4);
    a->manner = (manner)roll(d, AT_ONCE, LATER_LATE);
}

static void draw_caller(dice *d, plan *p, caller_plan *c, int id) {
    c->id = id;
    int at = roll(d, 0, 99);
    c->where = at < 55 ? OUTSIDE : at < 85 ? POOL_JOB : STREAM_TASK;
    c->pool = (role)roll(d, 0, ROLES - 1);
    c->num_streams = roll(d, 1, MAX_STREAMS);
    for (int i = 0; i < c->num_streams; i++) {
        stream_plan *s = &c->streams[i];
        s->asynchronous = chance(d, 75);
        s->pool = chance(d, 60);
        s->priority = chance(d, 40) ? roll(d, -1, 1) : 0;
        s->device = -1;
        if (p->num_devices > 0 && chance(d, 35)) {
            s->device = roll(d, 0, p->num_devices - 1);
            s->asynchronous = true;
        }
    }
    c->num_acts = roll(d, 2, MAX_ACTS);
    for (int i = 0; i < c->num_acts; i++) {
        draw_act(d, p, c, &c->acts[i]);
        c->acts[i].id = id * MAX_ACTS + i;
    }
}

/* ---- Frames ------------------------------------------------------------------------------------ */

/* Which values of a graph are those of a frame if its inputs are; false if a node is in no frame then, and so would run
 * once and not in each iteration. Graphs on the sides of switches are a part of the graph around. */
static bool all_framed(const graph_plan *g, const bool *inputs, bool *outputs) {
    bool framed[MAX_VALUES] = {false}, sides[2][MAX_PROGRAM_OUTS];
    for (int i = 0; i < g->num_inputs; i++) framed[i] = inputs[i];
    for (int i = 0; i < g->num_nodes; i++) {
        const node *n = &g->nodes[i];
        bool any = false, ins[MAX_INS];
        for (int k = 0; k < n->num_in; k++) any |= ins[k] = framed[n->ins[k]];
        if (n->op == OP_CONSTANT) continue;
        if (!any) return false;
        /* The switch's own values, and then those of its sides. */
        if (n->op == OP_SWITCH) ins[1] = true;
        for (int s = 0; s < 2 && n->op == OP_SWITCH; s++) {
            if (!all_framed(n->graphs[s], ins + 1, sides[s])) return false;
        }
        for (int k = 0; k < n->num_out; k++) framed[n->first_out + k] = true;
    }
    for (int i = 0; i < g->num_outputs; i++) outputs[i] = framed[g->outputs[i]];
    return true;
}

/* A node of the body that reads invariants alone would run as often as the condition. */
static bool fits_frame(const node *loop) {
    bool inputs[MAX_INS] = {true, true, true, true}, outputs[MAX_PROGRAM_OUTS];
    for (int i = 0; i < 2; i++) {
        for (int k = loop->num_variables; i == 1 && k < MAX_INS; k++) inputs[k] = false;
        if (!all_framed(loop->graphs[i], inputs, outputs)) return false;
        for (int k = 0; k < loop->graphs[i]->num_outputs; k++) {
            if (!outputs[k]) return false;
        }
    }
    return true;
}

/* ---- The whole --------------------------------------------------------------------------------- */

plan *plan_draw(uint64_t number, const drops *dropped) {
    dice d = {number * UINT64_C(0x2545F4914F6CDD1D) + 77};
    plan *p = calloc(1, sizeof *p);
    if (p == NULL) abort();
    p->number = number;
    p->num_devices = chance(&d, 45) ? roll(&d, 1, MAX_DEVICES) : 0;
    taste t = {.d = &d, .p = p, .devices = p->num_devices > 0, .id_limit = 70};
    t.placed_switches = number % 2 == 0; /* no draw: the others keep their numbers */
    t.control = chance(&d, 85);
    t.dynamic = !t.devices && chance(&d, 20);
    t.later = chance(&d, 45);
    t.block = chance(&d, 20);
    t.fail = chance(&d, 18);
    t.tasks = chance(&d, 60);
    type inputs[MAX_PROGRAM_INS] = {VEC, VEC, VEC};
    p->graph = draw_graph(&t, 0, inputs, roll(&d, 1, MAX_PROGRAM_INS), roll(&d, 1, 4), 1);
    p->hop = chance(&d, 50) ? -1 : chance(&d, 50) ? 0 : roll(&d, 100, 20000);
    p->partial_lists = chance(&d, 25) ? roll(&d, 1, 2) : 0;
    p->max_runs = chance(&d, 15) ? roll(&d, 1, 2) : 0;
    p->segments = roll(&d, 0, 2);
    p->device_control = roll(&d, 0, 1);
    p->statistics = chance(&d, 15);
    p->any_placement = chance(&d, 10);
    for (int i = 0; i < MAX_DEVICES; i++) {
        device_plan *v = &p->devices[i];
        v->seed = chance(&d, 45) ? roll_bits(&d) | 1 : 0;
        v->latency_ns = chance(&d, 50) ? (uint64_t)roll(&d, 0, 60) * 1000 : 0;
        v->kernel_ns = chance(&d, 50) ? (uint64_t)roll(&d, 0, 200) * 1000 : 0;
        v->strict = chance(&d, 30);
        v->max_streams = roll(&d, 0, 3);
        v->regions = (number / 3 + (uint64_t)i) % 3; /* no draw: programs keep their numbers */
    }
    for (int i = 0; i < MAX_PROGRAM_INS; i++) p->input_device[i] = t.devices && chance(&d, 15) ? roll(&d, 0, p->num_devices - 1) : -1;
    for (int i = 0; i < MAX_PROGRAM_OUTS; i++) p->output_device[i] = t.devices && chance(&d, 15) ? roll(&d, 0, p->num_devices - 1) : -1;
    for (int r = 0; r < ROLES; r++) draw_pool(&d, &p->pools[r], (role)r);
    p->num_callers = roll(&d, 1, MAX_CALLERS);
    for (int i = 0; i < p->num_callers; i++) draw_caller(&d, p, &p->callers[i], i);
    /* What came later is drawn from dice of its own, so that the numbers keep their programs. */
    dice more = {number * UINT64_C(0xD1342543DE82EF95) + 1};
    for (int i = 0; i < p->num_callers; i++) {
        for (int k = 0; k < p->callers[i].num_acts; k++) {
            p->callers[i].acts[k].tell = chance(&more, 70) ? NOT_TOLD : chance(&more, 50) ? BY_OPTIONS : BY_CALL;
        }
    }
    for (int i = 0; i < p->num_callers; i++) {
        for (int k = 0; k < p->callers[i].num_acts; k++) p->callers[i].acts[k].follows = chance(&more, 25);
    }
    for (node *n = p->all; n != NULL; n = n->all_next) {
        if (n->op == OP_WHILE) n->in_frame = chance(&more, 50) && fits_frame(n);
    }
    plan_leave_out(p, dropped);
    return p;
}

void plan_free(plan *p) {
    for (int i = 0; i < p->num_owned; i++) free(p->owned[i]);
    free(p);
}

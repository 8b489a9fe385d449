/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * What is left out of a plan that was drawn, and what is noted of the rest.
 */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan.h"

const char *const feature_names[FEATURES] = {
    "devices", "later", "block", "fail",  "open",  "switch", "cond",       "while",        "frame",        "placed-switch", "program",      "call",
    "task",    "partial", "cancel", "deadline", "many", "later-many", "bound", "jobs", "nameless", "stream-task",
    "task-runs", "task-waits", "device-task", "sync", "absent", "placed-options", "ports", "pools", "notice",
    "progress"};

/* ---- Names -------------------------------------------------------------------------------------- */

static bool takes_number(const char *text, const char *prefix, int limit, int *out) {
    size_t n = strlen(prefix);
    char *end = NULL;
    if (strncmp(text, prefix, n) != 0 || text[n] < '0' || text[n] > '9') return false;
    long v = strtol(text + n, &end, 10);
    if (*end != 0 || v < 0 || v >= limit) return false;
    *out = (int)v;
    return true;
}

static bool read_list(drops *d, const char *list, bool features_only) {
    char word[32];
    while (*list != 0) {
        size_t n = strcspn(list, ",");
        int i = 0;
        bool known = n == 0;
        if (n >= sizeof word) return false;
        memcpy(word, list, n);
        word[n] = 0;
        for (int f = 0; f < FEATURES; f++) {
            if (strcmp(word, feature_names[f]) == 0) d->without[f] = true, known = true;
        }
        if (!known && !features_only) {
            known = true;
            if (takes_number(word, "n", MAX_IDS, &i)) d->nodes[i] = true;
            else if (takes_number(word, "a", MAX_CALLERS * MAX_ACTS, &i)) d->acts[i] = true;
            else if (takes_number(word, "c", MAX_CALLERS, &i)) d->callers[i] = true;
            else if (takes_number(word, "d", MAX_DEVICES, &i)) d->devices[i] = true;
            else if (takes_number(word, "p", ROLES, &i)) d->pools[i] = true;
            else if (takes_number(word, "o", MAX_PROGRAM_OUTS, &i)) d->outputs[i] = true;
            else known = false;
        }
        if (!known) {
            fprintf(stderr, "unknown: %s\n", word);
            return false;
        }
        list += n + (list[n] == ',');
    }
    return true;
}

bool read_drops(drops *d, const char *list) {
    return read_list(d, list, false);
}

bool read_without(drops *d, const char *list) {
    return read_list(d, list, true);
}

static void drop_node(node *n, const drops *d) {
    bool control[] = {[OP_COND] = d->without[F_COND],       [OP_CASE] = d->without[F_COND],
                      [OP_WHILE] = d->without[F_WHILE],     [OP_SWITCH] = d->without[F_SWITCH],
                      [OP_PROGRAM] = d->without[F_PROGRAM], [OP_CALL] = d->without[F_CALL],
                      [OP_TASK] = d->without[F_TASK],       [OP_SINK] = d->without[F_TASK],
                      [OP_MAKE] = d->without[F_OPEN],       [OP_MAP] = d->without[F_OPEN],
                      [OP_FOLD] = d->without[F_OPEN]};
    n->dropped = d->nodes[n->id] || control[n->op];
    if (d->without[F_FRAME]) n->in_frame = false;
    if (n->device >= 0 && (d->without[F_DEVICES] || d->devices[n->device])) n->device = -1;
    if (d->without[F_DEVICES]) n->open_placement = false;
    if (d->without[F_LATER] && n->manner >= LATER_INSIDE && n->manner <= LATER_LATE) n->manner = AT_ONCE;
    if (d->without[F_BLOCK] && n->manner == MAY_BLOCK) n->manner = AT_ONCE;
    if (d->without[F_FAIL]) n->fail_modulus = 0;
}

/* What read a node that is left out reads the graph's first input; a predicate is 0 then. */
static void bypass(graph_plan *g, bool without_absent) {
    int to[MAX_VALUES];
    for (int v = 0; v < g->num_values; v++) {
        const value *value = &g->values[v];
        bool gone = value->node >= 0 && g->nodes[value->node].dropped;
        to[v] = !gone ? v : value->type == VEC ? 0 : -1;
    }
    for (int i = 0; i < g->num_nodes; i++) {
        node *n = &g->nodes[i];
        for (int k = 0; k < n->num_in; k++) {
            if (g->values[n->ins[k]].type == OPEN && to[n->ins[k]] < 0) n->dropped = true;
            else n->ins[k] = to[n->ins[k]];
        }
        int kept = 0;
        for (int k = 0; k < n->num_before; k++) {
            if (!g->nodes[n->before[k]].dropped) n->before[kept++] = n->before[k];
        }
        n->num_before = kept;
        for (int k = 0; k < n->num_out && n->dropped; k++) to[n->first_out + k] = g->values[n->first_out + k].type == VEC ? 0 : -1;
    }
    for (int i = 0; i < g->num_outputs; i++) {
        int v = g->outputs[i];
        bool leak = g->values[v].type == LEAK && without_absent;
        g->outputs[i] = leak || to[v] < 0 ? 0 : to[v];
    }
}

static void drop_callers(plan *p, const drops *d) {
    for (int i = 0; i < p->num_callers; i++) {
        caller_plan *c = &p->callers[i];
        c->dropped = d->callers[i];
        if (c->where == POOL_JOB && d->without[F_JOBS]) c->where = OUTSIDE;
        if (c->where == STREAM_TASK && d->without[F_STREAM_TASK]) c->where = OUTSIDE;
        for (int k = 0; k < c->num_streams; k++) {
            stream_plan *s = &c->streams[k];
            if (s->device >= p->num_devices || (s->device >= 0 && p->devices[s->device].dropped)) s->device = -1;
        }
        for (int k = 0; k < c->num_acts; k++) {
            act *a = &c->acts[k];
            a->dropped = d->acts[a->id];
            if (d->without[F_CANCEL] && (a->then == CANCEL_NOW || a->then == CANCEL_SOON)) a->then = WAIT_NOW;
            if (d->without[F_DEADLINE]) a->deadline_ns = 0;
            if (d->without[F_NOTICE]) a->tell = NOT_TOLD;
            if (d->without[F_PROGRESS]) a->follows = false;
            if (d->without[F_PARTIAL]) a->outputs = 0;
            if (d->without[F_LATER]) a->manner = AT_ONCE;
            if (d->without[F_MANY] && a->kind == ACT_MANY) a->kind = ACT_RUN;
            if (d->without[F_LATER_MANY] && a->kind == ACT_MANY && !p->plain) a->kind = ACT_RUN;
            bool waits = a->kind == ACT_TASK_WAITS, runs = a->kind == ACT_TASK_RUNS;
            bool device = c->streams[a->stream].device >= 0;
            if ((waits && d->without[F_TASK_WAITS]) || (runs && d->without[F_TASK_RUNS])) a->kind = ACT_TASK;
            if ((waits || runs) && device && d->without[F_DEVICE_TASK]) a->kind = ACT_TASK;
            if ((a->kind == ACT_SYNC_ALL || a->kind == ACT_SYNC_ENGINE) && d->without[F_SYNC]) a->kind = ACT_SYNC_STREAM;
            if (d->without[F_PLACED_OPTIONS] && !p->plain) a->deterministic = a->finish_independent = false;
        }
        if (c->where == STREAM_TASK) c->stream = 0;
        if (c->where == STREAM_TASK && c->streams[0].device >= 0 && d->without[F_DEVICE_TASK]) c->where = OUTSIDE;
    }
}

static void drop_pools(plan *p, const drops *d) {
    for (int r = 0; r < ROLES; r++) {
        pool_plan *pool = &p->pools[r];
        if (pool->source == POOL_SAME) {
            const pool_plan *as = &p->pools[pool->same_as];
            /* The blocking pool must take single tasks. */
            bool single = as->source == POOL_BUILTIN || as->source == POOL_WEIR_SEEDED ||
                          (as->source == POOL_OWN && (as->schedule || as->asynchronous));
            while (as->source == POOL_SAME) as = &p->pools[as->same_as];
            if (r == FOR_BLOCKING && !single) pool->source = POOL_OWN;
        }
        if (pool->source == POOL_OWN && !pool->schedule && !pool->parallel_for) pool->schedule = true;
        if (d->pools[r] || d->without[F_POOLS]) {
            pool->source = r == FOR_BLOCKING ? POOL_BUILTIN : POOL_NONE;
        }
    }
}

static int pool_root(const plan *p, int r) {
    while (p->pools[r].source == POOL_SAME) r = (int)p->pools[r].same_as;
    return r;
}

static void settle_callers(plan *p, const drops *d) {
    for (int i = 0; i < p->num_callers; i++) {
        caller_plan *c = &p->callers[i];
        if (c->where != POOL_JOB) continue;
        c->pool = (role)pool_root(p, (int)c->pool);
        pool_plan *pool = &p->pools[c->pool];
        if (pool->source != POOL_OWN || pool->runs_inline) {
            c->where = OUTSIDE;
            continue;
        }
        pool->takes_jobs = true;
        if (d->without[F_NAMELESS] && !pool->thread_index) pool->in_parallel = true;
    }
}

/* ---- What is noted ------------------------------------------------------------------------------ */

static void note_graph(plan *p, graph_plan *g) {
    for (int i = 0; i < g->num_nodes; i++) {
        node *n = &g->nodes[i];
        if (n->dropped) continue;
        for (int k = 0; k < n->num_graphs; k++) {
            note_graph(p, n->graphs[k]);
            if (n->op == OP_CALL) continue; /* its run is its own */
            g->later |= n->graphs[k]->later;
            g->devices |= n->graphs[k]->devices;
            g->opens |= n->graphs[k]->opens;
        }
        if (n->manner != AT_ONCE) g->later = true;
        if (n->device >= 0 || n->open_placement) g->devices = true;
        if (n->op >= OP_MAKE && n->op <= OP_FOLD) g->opens = true;
        p->uses[F_DEVICES] |= n->device >= 0;
        p->uses[F_LATER] |= n->manner >= LATER_INSIDE && n->manner <= LATER_LATE;
        p->uses[F_BLOCK] |= n->manner == MAY_BLOCK;
        p->uses[F_FAIL] |= n->fail_modulus > 0;
        p->uses[F_OPEN] |= n->op == OP_MAKE;
        p->uses[F_SWITCH] |= n->op == OP_SWITCH;
        p->uses[F_COND] |= n->op == OP_COND || n->op == OP_CASE;
        p->uses[F_WHILE] |= n->op == OP_WHILE;
        p->uses[F_FRAME] |= n->op == OP_WHILE && n->in_frame;
        p->uses[F_PLACED_SWITCH] |= n->op == OP_SWITCH && p->num_devices > 0;
        p->uses[F_PROGRAM] |= n->op == OP_PROGRAM;
        p->uses[F_CALL] |= n->op == OP_CALL;
        p->uses[F_TASK] |= n->op == OP_TASK || n->op == OP_SINK;
    }
}

static void note_callers(plan *p) {
    p->calm = !p->uses[F_FAIL];
    for (int i = 0; i < p->graph->num_outputs; i++) p->uses[F_ABSENT] |= p->graph->values[p->graph->outputs[i]].type == LEAK;
    p->uses[F_BOUND] = p->max_runs > 0;
    p->uses[F_POOLS] = true;
    for (int i = 0; i < p->graph->num_outputs; i++) p->uses[F_PORTS] |= p->output_device[i] >= 0;
    for (int i = 0; i < p->graph->num_inputs; i++) p->uses[F_PORTS] |= p->input_device[i] >= 0;
    for (int i = 0; i < p->num_callers; i++) {
        const caller_plan *c = &p->callers[i];
        if (c->dropped) continue;
        if (c->where == POOL_JOB) {
            const pool_plan *pool = &p->pools[c->pool];
            p->uses[F_JOBS] = true;
            if (!pool->in_parallel && !pool->thread_index) p->uses[F_NAMELESS] = true;
        }
        p->uses[F_STREAM_TASK] |= c->where == STREAM_TASK;
        p->uses[F_DEVICE_TASK] |= c->where == STREAM_TASK && c->streams[0].device >= 0;
        for (int k = 0; k < c->num_acts; k++) {
            const act *a = &c->acts[k];
            if (a->dropped) continue;
            bool cancels = a->kind == ACT_START && (a->then == CANCEL_NOW || a->then == CANCEL_SOON);
            p->uses[F_CANCEL] |= cancels;
            p->uses[F_DEADLINE] |= a->deadline_ns > 0;
            p->uses[F_PARTIAL] |= a->outputs != 0;
            p->uses[F_MANY] |= a->kind == ACT_MANY;
            p->uses[F_PROGRESS] |= a->follows && a->kind <= ACT_START;
            p->uses[F_NOTICE] |= a->tell != NOT_TOLD && (a->kind == ACT_START || a->kind == ACT_RUN_STREAM || a->kind == ACT_EVENT);
            p->uses[F_LATER_MANY] |= a->kind == ACT_MANY && !p->plain;
            p->uses[F_PLACED_OPTIONS] |= !p->plain && (a->deterministic || a->finish_independent);
            bool in_task = a->kind == ACT_TASK_RUNS || a->kind == ACT_TASK_WAITS;
            p->uses[F_DEVICE_TASK] |= in_task && c->streams[a->stream].device >= 0;
            p->uses[F_TASK_RUNS] |= a->kind == ACT_TASK_RUNS;
            p->uses[F_TASK_WAITS] |= a->kind == ACT_TASK_WAITS;
            p->uses[F_SYNC] |= a->kind == ACT_SYNC_ALL || a->kind == ACT_SYNC_ENGINE;
            if (cancels || a->deadline_ns > 0 || a->outputs != 0) p->calm = false;
        }
    }
}

void plan_leave_out(plan *p, const drops *d) {
    const bool has_devices = p->num_devices > 0;
    for (node *n = p->all; n != NULL; n = n->all_next) {
        drop_node(n, d);
        n->dropped |= n->op == OP_SWITCH && has_devices && d->without[F_PLACED_SWITCH];
    }
    for (int i = 0; i < p->num_owned; i++) bypass(p->owned[i], d->without[F_ABSENT]);
    graph_plan *g = p->graph;
    for (int i = 0, kept = 0, all = g->num_outputs; i < all; i++) {
        if (d->outputs[i] && g->num_outputs > 1) {
            g->num_outputs--;
            continue;
        }
        p->output_device[kept] = p->output_device[i];
        g->outputs[kept++] = g->outputs[i];
    }
    if (d->without[F_DEVICES]) p->num_devices = 0;
    if (p->num_devices == 0) p->any_placement = false;
    for (int i = 0; i < MAX_DEVICES; i++) p->devices[i].dropped = d->devices[i];
    for (int i = 0; i < MAX_PROGRAM_INS; i++) {
        int v = p->input_device[i];
        if (v >= p->num_devices || (v >= 0 && p->devices[v].dropped) || d->without[F_PORTS]) p->input_device[i] = -1;
    }
    for (int i = 0; i < MAX_PROGRAM_OUTS; i++) {
        int v = p->output_device[i];
        if (v >= p->num_devices || (v >= 0 && p->devices[v].dropped) || d->without[F_PORTS]) p->output_device[i] = -1;
    }
    if (d->without[F_PARTIAL]) p->partial_lists = 0;
    if (d->without[F_BOUND]) p->max_runs = 0;
    note_graph(p, p->graph);
    p->plain = !p->graph->later && !p->graph->devices && !p->any_placement;
    for (int i = 0; i < g->num_inputs; i++) p->plain = p->plain && p->input_device[i] < 0;
    for (int i = 0; i < g->num_outputs; i++) p->plain = p->plain && p->output_device[i] < 0;
    drop_pools(p, d);
    drop_callers(p, d);
    settle_callers(p, d);
    for (int i = 0; i < p->num_callers; i++) {
        for (int k = 0; k < p->callers[i].num_acts; k++) {
            act *a = &p->callers[i].acts[k];
            a->outputs &= (1u << g->num_outputs) - 1;
        }
    }
    note_callers(p);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A tracer for tests of hooks, which checks that what it is told is well nested in each thread.
 */

#ifndef WEIR_CTESTS_TRACER_H
#define WEIR_CTESTS_TRACER_H

#include <weir/trace.h>

#include "make.h"

/* ---- A tracer ---- */

typedef struct frame {
    enum { STAY, NODE, REGION } kind;
    const void *key; /* the tracer's and, of a node, its name's address */
    uint64_t number;
} frame;

static _Thread_local struct {
    frame frames[256];
    int depth;
} stack;

static void push(frame f) {
    CHECK(stack.depth < 256);
    stack.frames[stack.depth++] = f;
}

static void pop(frame f) {
    CHECK(stack.depth > 0);
    const frame *top = &stack.frames[--stack.depth];
    CHECK(top->kind == f.kind && top->key == f.key && top->number == f.number);
}

/* The stay, of this run, that the calling thread is in. */
static int is_in(uint64_t run) {
    for (int i = stack.depth - 1; i >= 0; i--) {
        if (stack.frames[i].kind == STAY) return stack.frames[i].number == run;
    }
    return 0;
}

enum { MOST_NAMES = 8 };

typedef struct tracer {
    atomic_long runs, runs_ended, ok, cancelled, failed;
    atomic_long stays, stays_ended, nodes, nodes_ended, again, later, failed_nodes;
    atomic_long regions, regions_ended, helps;
    atomic_long on_devices;      /* nodes of other engines than the CPU */
    atomic_long inside;          /* runs with a run around them */
    atomic_long named[MOST_NAMES]; /* nodes by the first letter of their name, from 'a' on */
    atomic_int released;
} tracer;

static void check_run(tracer *t, const weir_trace_run *run) {
    CHECK_EQ(atomic_load(&t->released), 0);
    CHECK_EQ(run->struct_size, sizeof *run);
    CHECK(run->program != NULL && run->program[0] != 0 && run->number != 0 && run->outer != run->number);
}

static void run_begin(void *ctx, const weir_trace_run *run) {
    tracer *t = ctx;
    check_run(t, run);
    atomic_fetch_add(&t->runs, 1);
    if (run->outer != 0) atomic_fetch_add(&t->inside, 1);
}

static void run_end(void *ctx, const weir_trace_run *run, weir_status status) {
    tracer *t = ctx;
    check_run(t, run);
    atomic_fetch_add(&t->runs_ended, 1);
    atomic_fetch_add(status == WEIR_OK ? &t->ok : status == WEIR_CANCELLED ? &t->cancelled : &t->failed, 1);
}

static void stay_begin(void *ctx, const weir_trace_run *run) {
    tracer *t = ctx;
    check_run(t, run);
    atomic_fetch_add(&t->stays, 1);
    push((frame){STAY, t, run->number});
}

static void stay_end(void *ctx, const weir_trace_run *run) {
    tracer *t = ctx;
    check_run(t, run);
    pop((frame){STAY, t, run->number});
    atomic_fetch_add(&t->stays_ended, 1);
}

static void node_begin(void *ctx, const weir_trace_run *run, const weir_trace_node *node) {
    tracer *t = ctx;
    check_run(t, run);
    CHECK_EQ(node->struct_size, sizeof *node);
    CHECK(node->name != NULL);
    if (node->engine != NULL && strncmp(node->engine, "cpu", 3) != 0) atomic_fetch_add(&t->on_devices, 1);
    CHECK(is_in(run->number));
    push((frame){NODE, node->name, run->number});
    if (node->flags & WEIR_TRACE_NODE_AGAIN) {
        CHECK_EQ(node->flags, WEIR_TRACE_NODE_AGAIN);
        atomic_fetch_add(&t->again, 1);
        return;
    }
    CHECK_EQ(node->flags, 0);
    atomic_fetch_add(&t->nodes, 1);
    const char *name = strrchr(node->name, '/') != NULL ? strrchr(node->name, '/') + 1 : node->name;
    if (name[0] >= 'a' && name[0] < 'a' + MOST_NAMES) atomic_fetch_add(&t->named[name[0] - 'a'], 1);
}

static void node_end(void *ctx, const weir_trace_run *run, const weir_trace_node *node) {
    tracer *t = ctx;
    check_run(t, run);
    pop((frame){NODE, node->name, run->number});
    if (node->flags & WEIR_TRACE_NODE_FAILED) atomic_fetch_add(&t->failed_nodes, 1);
    if (node->flags & WEIR_TRACE_NODE_AGAIN) return;
    if (node->flags & WEIR_TRACE_NODE_LATER) atomic_fetch_add(&t->later, 1);
    atomic_fetch_add(&t->nodes_ended, 1);
}

static void region_begin(void *ctx, const weir_trace_region *region) {
    tracer *t = ctx;
    CHECK_EQ(atomic_load(&t->released), 0);
    CHECK_EQ(region->struct_size, sizeof *region);
    CHECK(region->number != 0);
    push((frame){REGION, t, region->number});
    atomic_fetch_add(region->helps ? &t->helps : &t->regions, 1);
}

static void region_end(void *ctx, const weir_trace_region *region) {
    tracer *t = ctx;
    CHECK_EQ(atomic_load(&t->released), 0);
    pop((frame){REGION, t, region->number});
    atomic_fetch_add(&t->regions_ended, 1);
}

static void release(void *ctx) {
    tracer *t = ctx;
    CHECK_EQ(t->runs, t->runs_ended);
    CHECK_EQ(t->stays, t->stays_ended);
    CHECK_EQ(t->nodes, t->nodes_ended);
    CHECK_EQ(t->regions + t->helps, t->regions_ended);
    CHECK(t->stays >= t->runs && t->ok + t->cancelled + t->failed == t->runs);
    /* The last step: the test may use it for something else now. */
    CHECK_EQ(atomic_fetch_add(&t->released, 1), 0);
}

static const weir_trace_hooks all = {
    .struct_size = sizeof all, .run_begin = run_begin, .run_end = run_end, .stay_begin = stay_begin,
    .stay_end = stay_end, .node_begin = node_begin, .node_end = node_end, .region_begin = region_begin,
    .region_end = region_end, .release = release};

static void begin(tracer *t) {
    memset(t, 0, sizeof *t);
    CHECK_OK(weir_trace_set_hooks(&all, t));
}

/* What was begun under these hooks is over, but helpers of pools may be on their way out. */
static void end(tracer *t) {
    CHECK_OK(weir_trace_set_hooks(NULL, NULL));
    EVENTUALLY(atomic_load(&t->released) == 1);
    CHECK_EQ(stack.depth, 0);
}

#endif

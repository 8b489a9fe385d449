/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Programs for tests of hooks.
 */

#ifndef WEIR_CTESTS_TRACED_PROGRAMS_H
#define WEIR_CTESTS_TRACED_PROGRAMS_H

#include <weir/control.h>

#include "saved_text.h"
#include "tracer.h"

static atomic_long ran[MOST_NAMES];

static int32_t piece(void *arg, int64_t first, int64_t behind, int32_t slot) {
    (void)arg, (void)slot;
    for (int64_t i = first; i < behind; i++) sleep_ns(1000);
    return WEIR_OK;
}

/* What "b" to "e" do; the others add 1. */
static int32_t add(void *user, weir_kernel_context *context) {
    const int letter = (int)(uintptr_t)user - 'a';
    const weir_tensor_view *in = NULL, *out = NULL;
    size_t count = 0;
    atomic_fetch_add(&ran[letter], 1);
    CHECK_OK(weir_kernel_context_get_inputs(context, &in, &count));
    CHECK_OK(weir_kernel_context_get_outputs(context, &out, &count));
    const int32_t x = *(const int32_t *)in[0].data;
    *(int32_t *)out[0].data = letter == 1 ? x > 0 : letter == 2 ? x - 1 : letter == 4 ? x : x + 1;
    if (letter != 3) return WEIR_OK;
    const weir_parallel_hint hint = {.struct_size = sizeof hint, .cost_ns = 100000};
    return weir_kernel_context_parallel_for(context, 8, &hint, piece, NULL);
}

static const weir_tensor_desc number = {.dtype = WEIR_S32, .rank = 1, .dims = {1}};

/* Adds a node by this name, whose first letter says what it does. */
static weir_value apply(weir_engine *engine, weir_graph *graph, const char *name, weir_value x) {
    weir_kernel *kernel = NULL;
    weir_host_kernel_desc desc = make_kernel_desc(name, add, (void *)(uintptr_t)name[0]);
    weir_value y;
    desc.num_inputs = desc.num_outputs = 1;
    desc.inputs = desc.outputs = &number;
    desc.cost_ns = 20000;
    CHECK_OK(weir_kernel_create_host(engine, &desc, &kernel));
    CHECK_OK(weir_graph_add_kernel(graph, name, kernel, &x, 1, &y, 1, NULL));
    weir_kernel_release(kernel);
    return y;
}

enum { WIDE = 6, TURNS = 5, OUTPUTS = WIDE + 2 };

/* WIDE chains of an "a" and a "d", which is a loop that threads share; a loop of TURNS turns with "b" as its condition,
 * and "e" and "c" in its body; a node "h" that is a program of two "f". */
static weir_program *make_program(weir_engine *engine, int32_t parallel) {
    weir_graph *condition = make_graph("condition"), *body = make_graph("body"), *inner = make_graph("inner");
    weir_graph *graph = make_graph("outer");
    weir_value x, y, last;
    char names[2][8];
    CHECK_OK(weir_graph_add_input(condition, "x", &number, &x));
    CHECK_OK(weir_graph_add_output(condition, "goes on", apply(engine, condition, "b", x)));
    CHECK_OK(weir_graph_add_input(body, "x", &number, &x));
    CHECK_OK(weir_graph_add_output(body, "x", apply(engine, body, "c", apply(engine, body, "e", x))));
    CHECK_OK(weir_graph_add_input(inner, "x", &number, &x));
    CHECK_OK(weir_graph_add_output(inner, "y", apply(engine, inner, "f", apply(engine, inner, "f too", x))));
    weir_program *program = compile(inner, engine);
    CHECK_OK(weir_graph_add_input(graph, "x", &number, &x));
    for (int i = 0; i < WIDE; i++) {
        (void)snprintf(names[0], sizeof names[0], "a %d", i);
        (void)snprintf(names[1], sizeof names[1], "d %d", i);
        y = apply(engine, graph, names[1], apply(engine, graph, names[0], x));
        CHECK_OK(weir_graph_add_output(graph, names[1], y));
    }
    CHECK_OK(weir_graph_add_while(graph, "loop", &(weir_while_desc){.struct_size = sizeof(weir_while_desc),
        .cond_graph = condition, .body_graph = body, .variables = &x, .num_variables = 1,
        .parallel_iterations = parallel}, &last, NULL));
    CHECK_OK(weir_graph_add_program(graph, "h", program, &x, 1, &y, 1, NULL));
    CHECK_OK(weir_graph_add_output(graph, "last", last));
    CHECK_OK(weir_graph_add_output(graph, "y", y));
    weir_program_release(program);
    program = compile(graph, engine);
    weir_graph_destroy(condition);
    weir_graph_destroy(body);
    weir_graph_destroy(inner);
    weir_graph_destroy(graph);
    return program;
}

static void make_feed(weir_engine *engine, weir_tensor *in, weir_tensor **out, int32_t turns) {
    void *x = NULL;
    CHECK_OK(weir_tensor_get_data(in, &x));
    *(int32_t *)x = turns;
    for (int i = 0; i < OUTPUTS; i++) out[i] = make_tensor(engine, number);
}

/* gate, and behind it a "c" each; beside it a "d" that fails if told to. */
static weir_program *make_gated(weir_engine *engine, gate *g, int fails) {
    weir_graph *graph = make_graph("gated");
    weir_node first, node;
    static atomic_int counter;
    CHECK_OK(weir_graph_add_task(graph, "gate", pass_gate, g, NULL, 0, &first));
    for (int i = 0; i < 3; i++) {
        const char *names[] = {"c", "c too", "c three"};
        CHECK_OK(weir_graph_add_task(graph, names[i], count_run, &counter, NULL, 0, &node));
        CHECK_OK(weir_graph_add_control_edge(graph, first, node));
    }
    if (fails) CHECK_OK(weir_graph_add_task(graph, "d", fail_with_data_loss, NULL, NULL, 0, NULL));
    weir_program *program = compile(graph, engine);
    weir_graph_destroy(graph);
    return program;
}

#endif

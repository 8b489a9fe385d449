/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Bad input for graphs, programs and their settings.
 */

#include <weir/control.h>
#include <weir/inspect.h>

#include "bad_input.h"

static int32_t never_called(void *arg) {
    (void)arg;
    CHECK(!"a task that was refused is run");
    return WEIR_INTERNAL;
}

static void never_destroyed(void *arg) {
    (void)arg;
    CHECK(!"a task that was refused is destroyed");
}

/* A graph and values and nodes that belong to another. */
typedef struct builder {
    weir_graph *graph, *other;
    weir_value x, foreign_value;
    weir_node node, foreign_node;
} builder;

static builder builder_create(void) {
    builder b = {.graph = make_graph("rows"), .other = make_graph("other")};
    weir_tensor_desc four = vector_desc(4);
    weir_value unused;
    CHECK_OK(weir_graph_add_input(b.graph, "x", &four, &b.x));
    CHECK_OK(weir_graph_add_kernel(b.graph, "node", good.kernel, &b.x, 1, &unused, 1, &b.node));
    CHECK_OK(weir_graph_add_input(b.other, "p", &four, &unused));
    CHECK_OK(weir_graph_add_input(b.other, "q", &four, &b.foreign_value));
    CHECK_OK(weir_graph_add_kernel(b.other, "r", good.kernel, &b.foreign_value, 1, &unused, 1, &b.foreign_node));
    CHECK_OK(weir_graph_add_output(b.graph, "taken", b.x));
    return b;
}

static void rows_of_inputs_and_constants(const builder *b) {
    weir_tensor_desc four = vector_desc(4), strange = make_desc(0, 1, 4, 0, 0), deep = vector_desc(4);
    weir_graph *graph = b->graph;
    deep.rank = UINT32_MAX;

    ROW(weir_graph_create, ("x", NULL), INVALID, "out_graph is NULL");
    ROW(weir_graph_create, (BAD_UTF8, NEW(graph)), INVALID, "name is not UTF-8 (bad byte at offset 2)");
    ROW(weir_graph_add_input, (NULL, "a", &four, &out.value), INVALID, "graph is NULL");
    ROW(weir_graph_add_input, (WRONG(program), "a", &four, &out.value),
        INVALID, "graph: expected a graph, got a program");
    ROW(weir_graph_add_input, (graph, NULL, &four, &out.value), INVALID, "name is NULL");
    ROW(weir_graph_add_input, (graph, "", &four, &out.value), INVALID, "name");
    ROW(weir_graph_add_input, (graph, BAD_UTF8, &four, &out.value), INVALID, "name is not UTF-8");
    ROW(weir_graph_add_input, (graph, "a", NULL, &out.value), INVALID, "desc is NULL");
    ROW(weir_graph_add_input, (graph, "a", &four, NULL), INVALID, "out_value is NULL");
    ROW(weir_graph_add_input, (graph, "a", &strange, &out.value), INVALID, "dtype is 0");
    ROW(weir_graph_add_input, (graph, "a", &deep, &out.value), INVALID, "rank is 4294967295");
    ROW(weir_graph_add_input, (graph, "x", &four, &out.value), WEIR_ALREADY_EXISTS, "'x'");
    ROW(weir_graph_add_constant, (NULL, "a", good.tensor, &out.value), INVALID, "graph is NULL");
    ROW(weir_graph_add_constant, (WRONG(engine), "a", good.tensor, &out.value),
        INVALID, "graph: expected a graph, got an engine");
    ROW(weir_graph_add_constant, (graph, NULL, good.tensor, &out.value), INVALID, "name is NULL");
    ROW(weir_graph_add_constant, (graph, BAD_UTF8, good.tensor, &out.value), INVALID, "name is not UTF-8");
    ROW(weir_graph_add_constant, (graph, "a", NULL, &out.value), INVALID, "tensor is NULL");
    ROW(weir_graph_add_constant, (graph, "a", WRONG(kernel), &out.value),
        INVALID, "tensor: expected a tensor, got a kernel");
    ROW(weir_graph_add_constant, (graph, "a", good.tensor, NULL), INVALID, "out_value is NULL");
    ROW(weir_graph_add_constant, (graph, "node", good.tensor, &out.value), WEIR_ALREADY_EXISTS, "'node'");
}

static void rows_of_kernels_and_tasks(const builder *b) {
    weir_graph *graph = b->graph;
    weir_kernel *kernel = good.kernel;
    weir_value x = b->x, foreign = b->foreign_value, garbage = UINT64_MAX;

    ROW(weir_graph_add_kernel, (NULL, "k", kernel, &x, 1, &out.value, 1, &out.node), INVALID, "graph is NULL");
    ROW(weir_graph_add_kernel, (WRONG(kernel), "k", kernel, &x, 1, &out.value, 1, &out.node),
        INVALID, "graph: expected a graph");
    ROW(weir_graph_add_kernel, (graph, NULL, kernel, &x, 1, &out.value, 1, &out.node), INVALID, "name is NULL");
    ROW(weir_graph_add_kernel, (graph, BAD_UTF8, kernel, &x, 1, &out.value, 1, &out.node),
        INVALID, "name is not UTF-8");
    ROW(weir_graph_add_kernel, (graph, "k", NULL, &x, 1, &out.value, 1, &out.node), INVALID, "kernel is NULL");
    ROW(weir_graph_add_kernel, (graph, "k", WRONG(graph), &x, 1, &out.value, 1, &out.node),
        INVALID, "kernel: expected a kernel");
    ROW(weir_graph_add_kernel, (graph, "k", kernel, NULL, 1, &out.value, 1, &out.node),
        INVALID, "inputs is NULL, but its length is 1");
    ROW(weir_graph_add_kernel, (graph, "k", kernel, &x, SIZE_MAX, &out.value, 1, &out.node), RANGE, "inputs");
    ROW(weir_graph_add_kernel, (graph, "k", kernel, &x, 1, NULL, 1, &out.node), INVALID, "out_outputs is NULL");
    ROW(weir_graph_add_kernel, (graph, "k", kernel, &x, 0, &out.value, 1, &out.node), INVALID, "input");
    ROW(weir_graph_add_kernel, (graph, "k", kernel, &x, 1, out.values, 2, &out.node), INVALID, "output");
    ROW(weir_graph_add_kernel, (graph, "k", kernel, &foreign, 1, &out.value, 1, &out.node), INVALID, "'k'");
    ROW(weir_graph_add_kernel, (graph, "k", kernel, &garbage, 1, &out.value, 1, &out.node), INVALID, "'k'");
    ROW(weir_graph_add_kernel, (graph, "x", kernel, &x, 1, &out.value, 1, &out.node), WEIR_ALREADY_EXISTS, "'x'");
    weir_program *program = good.program;
    ROW(weir_graph_add_program, (NULL, "p", program, &x, 1, &out.value, 1, &out.node), INVALID, "graph is NULL");
    ROW(weir_graph_add_program, (graph, NULL, program, &x, 1, &out.value, 1, &out.node), INVALID, "name is NULL");
    ROW(weir_graph_add_program, (graph, "p", NULL, &x, 1, &out.value, 1, &out.node), INVALID, "program is NULL");
    ROW(weir_graph_add_program, (graph, "p", WRONG(kernel), &x, 1, &out.value, 1, &out.node),
        INVALID, "program: expected a program, got a kernel");
    ROW(weir_graph_add_program, (graph, "p", program, NULL, 1, &out.value, 1, &out.node),
        INVALID, "inputs is NULL, but its length is 1");
    ROW(weir_graph_add_program, (graph, "p", program, &x, 1, NULL, 1, &out.node), INVALID, "out_outputs is NULL");
    ROW(weir_graph_add_program, (graph, "p", program, &x, 0, &out.value, 1, &out.node), INVALID, "node 'p': ");
    ROW(weir_graph_add_program, (graph, "p", program, &x, 1, out.values, 2, &out.node), INVALID, "node 'p': ");
    ROW(weir_graph_add_program, (graph, "p", program, &foreign, 1, &out.value, 1, &out.node), INVALID, "'p'");
    ROW(weir_graph_add_program, (graph, "x", program, &x, 1, &out.value, 1, &out.node), WEIR_ALREADY_EXISTS, "'x'");
    ROW(weir_graph_add_task, (NULL, "t", never_called, NULL, never_destroyed, 0, &out.node), INVALID, "graph is NULL");
    ROW(weir_graph_add_task, (WRONG(run), "t", never_called, NULL, never_destroyed, 0, &out.node),
        INVALID, "graph: expected a graph");
    ROW(weir_graph_add_task, (graph, NULL, never_called, NULL, never_destroyed, 0, &out.node), INVALID, "name is NULL");
    ROW(weir_graph_add_task, (graph, BAD_UTF8, never_called, NULL, never_destroyed, 0, &out.node),
        INVALID, "name is not UTF-8");
    ROW(weir_graph_add_task, (graph, "t", NULL, NULL, never_destroyed, 0, &out.node), INVALID, "fn is NULL");
    ROW(weir_graph_add_task, (graph, "x", never_called, NULL, never_destroyed, 0, &out.node),
        WEIR_ALREADY_EXISTS, "'x'");
}

static void rows_of_edges_and_outputs(const builder *b) {
    char buffer[4];
    weir_graph *graph = b->graph;

    ROW(weir_graph_add_control_edge, (NULL, b->node, b->node), INVALID, "graph is NULL");
    ROW(weir_graph_add_control_edge, (WRONG(tensor), b->node, b->node),
        INVALID, "graph: expected a graph, got a tensor");
    ROW(weir_graph_add_control_edge, (graph, b->node, b->node), INVALID, "'node'");
    ROW(weir_graph_add_control_edge, (graph, UINT64_MAX, b->node), INVALID, "from");
    ROW(weir_graph_add_control_edge, (graph, b->node, b->foreign_node), INVALID, "to");
    ROW(weir_graph_set_forwarding, (NULL, b->node, 0, 0), INVALID, "graph is NULL");
    ROW(weir_graph_set_forwarding, (WRONG(tensor), b->node, 0, 0),
        INVALID, "graph: expected a graph, got a tensor");
    ROW(weir_graph_set_forwarding, (graph, b->foreign_node, 0, 0), INVALID, "node");
    ROW(weir_graph_set_forwarding, (graph, b->node, -1, 0), RANGE, "output is -1");
    ROW(weir_graph_set_forwarding, (graph, b->node, 0, -3), INVALID, "input is -3");
    ROW(weir_graph_set_forwarding, (graph, b->node, 0, INT32_MAX), RANGE, "input is 2147483647");
    ROW(weir_graph_add_output, (NULL, "o", b->x), INVALID, "graph is NULL");
    ROW(weir_graph_add_output, (WRONG(stream), "o", b->x), INVALID, "graph: expected a graph, got a stream");
    ROW(weir_graph_add_output, (graph, NULL, b->x), INVALID, "name is NULL");
    ROW(weir_graph_add_output, (graph, BAD_UTF8, b->x), INVALID, "name is not UTF-8");
    ROW(weir_graph_add_output, (graph, "o", b->foreign_value), INVALID, "value");
    ROW(weir_graph_add_output, (graph, "o", UINT64_MAX), INVALID, "value");
    ROW(weir_graph_add_output, (graph, "taken", b->x), WEIR_ALREADY_EXISTS, "'taken'");
    ROW(weir_graph_dump, (NULL, WEIR_DUMP_DOT, buffer, 4, &out.size), INVALID, "graph is NULL");
    ROW(weir_graph_dump, (WRONG(program), WEIR_DUMP_DOT, buffer, 4, &out.size), INVALID, "graph: expected a graph");
    ROW(weir_graph_dump, (graph, 0, buffer, 4, &out.size), INVALID, "format is 0");
    ROW(weir_graph_dump, (graph, 99, buffer, 4, &out.size), INVALID, "format is 99");
    ROW(weir_graph_dump, (graph, WEIR_DUMP_DOT, NULL, 4, &out.size), INVALID, "buffer is NULL, but capacity is 4");
    ROW(weir_graph_dump, (graph, WEIR_DUMP_JSON, NULL, 0, NULL), INVALID, "out_length is NULL");
    ROW(weir_graph_dump, (graph, WEIR_DUMP_JSON, buffer, 4, NULL), RANGE, "capacity is 4");
}

#define COND(...) &(weir_cond_desc){.struct_size = sizeof(weir_cond_desc), .predicate = x, __VA_ARGS__}
#define CASE(...) &(weir_case_desc){.struct_size = sizeof(weir_case_desc), .index = x, __VA_ARGS__}
#define WHILE(...) &(weir_while_desc){.struct_size = sizeof(weir_while_desc), __VA_ARGS__}

static void rows_of_control_flow(const builder *b) {
    weir_graph *graph = b->graph, *inner = good.graph;
    const weir_graph *branches[2] = {inner, inner}, *missing[1] = {NULL};
    weir_value x = b->x;

    ROW(weir_graph_add_cond, (NULL, "c", COND(.then_graph = inner, .else_graph = inner), NULL, 0, NULL),
        INVALID, "graph");
    ROW(weir_graph_add_cond, (graph, NULL, COND(.then_graph = inner, .else_graph = inner), NULL, 0, NULL),
        INVALID, "name is NULL");
    ROW(weir_graph_add_cond, (graph, "c", NULL, NULL, 0, NULL), INVALID, "desc is NULL");
    ROW(weir_graph_add_cond, (graph, "c", &(weir_cond_desc){.struct_size = 8}, NULL, 0, NULL),
        INVALID, "desc->struct_size is 8, expected");
    ROW(weir_graph_add_cond, (graph, "c", COND(.then_graph = NULL, .else_graph = inner), NULL, 0, NULL),
        INVALID, "desc->then_graph is NULL");
    ROW(weir_graph_add_cond, (graph, "c", COND(.then_graph = inner, .else_graph = WRONG(tensor)), NULL, 0, NULL),
        INVALID, "desc->else_graph: expected a graph, got a tensor");
    ROW(weir_graph_add_cond, (graph, "c", COND(.then_graph = graph, .else_graph = inner), NULL, 0, NULL),
        INVALID, "inside of itself");
    ROW(weir_graph_add_cond, (graph, "c", COND(.then_graph = inner, .else_graph = inner, .num_inputs = 1), NULL, 0, NULL),
        INVALID, "desc->inputs is NULL");
    ROW(weir_graph_add_cond, (graph, "c", COND(.then_graph = inner, .else_graph = inner, .inputs = &x, .num_inputs = 1), &out.value, 99, NULL),
        INVALID, "num_outputs is 99");
    ROW(weir_graph_add_case, (NULL, "c", CASE(.branches = branches, .num_branches = 2), NULL, 0, NULL),
        INVALID, "graph");
    ROW(weir_graph_add_case, (graph, "c", NULL, NULL, 0, NULL), INVALID, "desc is NULL");
    ROW(weir_graph_add_case, (graph, "c", &(weir_case_desc){.struct_size = 8}, NULL, 0, NULL),
        INVALID, "desc->struct_size is 8, expected");
    ROW(weir_graph_add_case, (graph, "c", CASE(.branches = NULL, .num_branches = 2), NULL, 0, NULL),
        INVALID, "desc->branches is NULL");
    ROW(weir_graph_add_case, (graph, "c", CASE(.branches = branches, .num_branches = 0), NULL, 0, NULL),
        INVALID, "num_branches is 0");
    ROW(weir_graph_add_case, (graph, "c", CASE(.branches = missing, .num_branches = 1), NULL, 0, NULL),
        INVALID, "desc->branches[0] is NULL");
    ROW(weir_graph_add_while, (NULL, "w", WHILE(.cond_graph = inner, .body_graph = inner), NULL, NULL),
        INVALID, "graph");
    ROW(weir_graph_add_while, (graph, "w", NULL, NULL, NULL), INVALID, "desc is NULL");
    ROW(weir_graph_add_while, (graph, "w", &(weir_while_desc){.struct_size = 8}, NULL, NULL),
        INVALID, "desc->struct_size is 8, expected");
    ROW(weir_graph_add_while, (graph, "w", WHILE(.cond_graph = NULL, .body_graph = inner), NULL, NULL),
        INVALID, "desc->cond_graph is NULL");
    ROW(weir_graph_add_while, (graph, "w", WHILE(.cond_graph = inner, .body_graph = NULL), NULL, NULL),
        INVALID, "desc->body_graph is NULL");
    ROW(weir_graph_add_while, (graph, "w", WHILE(.cond_graph = inner, .body_graph = inner, .parallel_iterations = -1), NULL, NULL),
        INVALID, "desc->parallel_iterations is -1, expected 0 (one) or more");
    ROW(weir_graph_add_while, (graph, "w", WHILE(.cond_graph = inner, .body_graph = inner, .reserved = 1), NULL, NULL),
        INVALID, "desc->reserved is 1, expected 0");
    ROW(weir_graph_add_while, (graph, "w", WHILE(.cond_graph = inner, .body_graph = inner, .num_variables = 1), &out.value, NULL),
        INVALID, "desc->variables is NULL");
    ROW(weir_graph_add_switch, (NULL, "s", x, x, &out.value, &out.value, NULL), INVALID, "graph is NULL");
    ROW(weir_graph_add_switch, (graph, "s", UINT64_MAX, x, &out.value, &out.value, NULL), INVALID, "'s' value");
    ROW(weir_graph_add_switch, (graph, "s", x, b->foreign_value, &out.value, &out.value, NULL),
        INVALID, "'s' predicate");
    ROW(weir_graph_add_switch, (graph, "s", x, x, NULL, &out.value, NULL), INVALID, "out_false is NULL");
    ROW(weir_graph_add_switch, (graph, "s", x, x, &out.value, NULL, NULL), INVALID, "out_true is NULL");
    ROW(weir_graph_add_merge, (NULL, "m", &x, 1, &out.value, &out.value, NULL), INVALID, "graph is NULL");
    ROW(weir_graph_add_merge, (graph, "m", &x, 0, &out.value, &out.value, NULL), INVALID, "num_inputs is 0");
    ROW(weir_graph_add_merge, (graph, "m", NULL, 1, &out.value, &out.value, NULL), INVALID, "inputs is NULL");
    ROW(weir_graph_add_merge, (graph, "m", &x, 1, NULL, &out.value, NULL), INVALID, "out_value is NULL");
    ROW(weir_graph_add_enter, (NULL, "e", x, "f", 0, 1, &out.value, NULL), INVALID, "graph is NULL");
    ROW(weir_graph_add_enter, (graph, NULL, x, "f", 0, 1, &out.value, NULL), INVALID, "name is NULL");
    ROW(weir_graph_add_enter, (graph, "e", b->foreign_value, "f", 0, 1, &out.value, NULL), INVALID, "'e' value");
    ROW(weir_graph_add_enter, (graph, "e", x, NULL, 0, 1, &out.value, NULL), INVALID, "frame_name is NULL");
    ROW(weir_graph_add_enter, (graph, "e", x, "", 0, 1, &out.value, NULL), INVALID, "frame_name is empty");
    ROW(weir_graph_add_enter, (graph, "e", x, "f", 2, 1, &out.value, NULL), INVALID, "is_constant is 2");
    ROW(weir_graph_add_enter, (graph, "e", x, "f", 0, 0, &out.value, NULL), INVALID, "parallel_iterations is 0");
    ROW(weir_graph_add_enter, (graph, "e", x, "f", 0, 1, NULL, NULL), INVALID, "out_value is NULL");
    ROW(weir_graph_add_loop_merge, (NULL, "m", x, &out.value, NULL), INVALID, "graph is NULL");
    ROW(weir_graph_add_loop_merge, (graph, NULL, x, &out.value, NULL), INVALID, "name is NULL");
    ROW(weir_graph_add_loop_merge, (graph, "m", UINT64_MAX, &out.value, NULL), INVALID, "'m' value");
    ROW(weir_graph_add_loop_merge, (graph, "m", x, NULL, NULL), INVALID, "out_value is NULL");
    ROW(weir_graph_set_back_edge, (NULL, 1, x), INVALID, "graph is NULL");
    ROW(weir_graph_set_back_edge, (graph, UINT64_MAX, x), INVALID, "merge");
    ROW(weir_graph_add_loop_cond, (NULL, "l", x, &out.value, NULL), INVALID, "graph is NULL");
    ROW(weir_graph_add_loop_cond, (graph, NULL, x, &out.value, NULL), INVALID, "name is NULL");
    ROW(weir_graph_add_loop_cond, (graph, "l", UINT64_MAX, &out.value, NULL), INVALID, "'l' value");
    ROW(weir_graph_add_loop_cond, (graph, "l", x, NULL, NULL), INVALID, "out_value is NULL");
    ROW(weir_graph_add_next_iteration, (NULL, "n", x, &out.value, NULL), INVALID, "graph is NULL");
    ROW(weir_graph_add_next_iteration, (graph, NULL, x, &out.value, NULL), INVALID, "name is NULL");
    ROW(weir_graph_add_next_iteration, (graph, "n", UINT64_MAX, &out.value, NULL), INVALID, "'n' value");
    ROW(weir_graph_add_next_iteration, (graph, "n", x, NULL, NULL), INVALID, "out_value is NULL");
    ROW(weir_graph_add_exit, (NULL, "e", x, &out.value, NULL), INVALID, "graph is NULL");
    ROW(weir_graph_add_exit, (graph, NULL, x, &out.value, NULL), INVALID, "name is NULL");
    ROW(weir_graph_add_exit, (graph, "e", UINT64_MAX, &out.value, NULL), INVALID, "'e' value");
    ROW(weir_graph_add_exit, (graph, "e", x, NULL, NULL), INVALID, "out_value is NULL");
}

#define OPTIONS(...) &(weir_compile_options){.struct_size = sizeof(weir_compile_options), __VA_ARGS__}

static void rows_of_compile(void) {
    weir_engine *engine = good.engine, *missing = NULL, *odd = WRONG(stream);
    weir_graph *graph = good.graph;
    const struct {
        weir_compile_options known;
        uint64_t later;
    } newer = {.known = {.struct_size = sizeof newer}, .later = 1};
    weir_compile_options small = {.struct_size = 8}, kept = {.struct_size = sizeof kept};

    ROW(weir_graph_compile, (NULL, &engine, 1, NULL, NEW(program)), INVALID, "graph is NULL");
    ROW(weir_graph_compile, (WRONG(program), &engine, 1, NULL, NEW(program)),
        INVALID, "graph: expected a graph, got a program");
    ROW(weir_graph_compile, (graph, NULL, 1, NULL, NEW(program)), INVALID, "engines is NULL, but its length is 1");
    ROW(weir_graph_compile, (graph, NULL, 0, NULL, NEW(program)), INVALID, "engine");
    ROW(weir_graph_compile, (graph, &missing, 1, NULL, NEW(program)), INVALID, "engines[0] is NULL");
    ROW(weir_graph_compile, (graph, &odd, 1, NULL, NEW(program)),
        INVALID, "engines[0]: expected an engine, got a stream");
    ROW(weir_graph_compile, (graph, &engine, SIZE_MAX, NULL, NEW(program)), RANGE, "engines");
    ROW(weir_graph_compile, (graph, &engine, 1, WRONG(engine), NEW(program)), INVALID, "options->struct_size is");
    ROW(weir_graph_compile, (graph, &engine, 1, &small, NEW(program)), INVALID, "options->struct_size is 8, expected");
    ROW(weir_graph_compile, (graph, &engine, 1, &newer.known, NEW(program)),
        INVALID, "options sets members that this version of weir does not know");
    ROW(weir_graph_compile, (graph, &engine, 1, UNALIGNED, NEW(program)), INVALID, "options is not aligned");
    ROW(weir_graph_compile, (graph, &engine, 1, OPTIONS(.flags = 32 | WEIR_COMPILE_STATISTICS), NEW(program)),
        INVALID, "options->flags has unknown bits 0x20");
    ROW(weir_graph_compile, (graph, &engine, 1, OPTIONS(.blocking_threadpool = WRONG(stream)), NEW(program)),
        INVALID, "options->blocking_threadpool: expected a threadpool, got a stream");
    ROW(weir_graph_compile, (graph, &engine, 1, OPTIONS(.partial_runs = 257), NEW(program)),
        RANGE, "options->partial_runs is 257, expected at most 256");
    ROW(weir_graph_compile, (graph, &engine, 1, OPTIONS(.partial_runs = SIZE_MAX), NEW(program)),
        RANGE, "options->partial_runs");
    ROW(weir_graph_compile, (graph, &engine, 1, OPTIONS(.placement = UINT32_MAX), NEW(program)),
        INVALID, "options->placement is 4294967295, expected 0 (DEFAULT), 1 (KERNEL) or 2 (ANY)");
    ROW(weir_graph_compile, (graph, &engine, 1, OPTIONS(.segments = 3), NEW(program)),
        INVALID, "options->segments is 3, expected 0 (TIMED), 1 (NEVER) or 2 (ALWAYS)");
    ROW(weir_graph_compile, (graph, &engine, 1, OPTIONS(.reserved = 1), NEW(program)),
        INVALID, "options->reserved is 1, expected 0");
    ROW(weir_program_get_options, (NULL, &kept), INVALID, "program is NULL");
    ROW(weir_program_get_options, (WRONG(graph), &kept), INVALID, "program: expected a program, got a graph");
    ROW(weir_program_get_options, (good.program, NULL), INVALID, "out_options is NULL");
    ROW(weir_program_get_options, (good.program, &small), INVALID, "out_options->struct_size is 8");
    ROW(weir_graph_compile, (graph, &engine, 1, NULL, NULL), INVALID, "out_program is NULL");
}

static void rows_of_statistics(void) {
    char buffer[4];
    weir_program *program = good.program;
    weir_node_stats stats;
    memset(&stats, 0, sizeof stats);
    stats.struct_size = sizeof stats;

    ROW(weir_program_get_node_stats, (NULL, 0, &stats), INVALID, "program is NULL");
    ROW(weir_program_get_node_stats, (WRONG(run), 0, &stats), INVALID, "program: expected a program, got a run");
    ROW(weir_program_get_node_stats, (program, 0, &stats), PRECONDITION, "was compiled without statistics");
    ROW(weir_program_save_costs, (NULL, buffer, 4, &out.size), INVALID, "program is NULL");
    ROW(weir_program_save_costs, (WRONG(graph), buffer, 4, &out.size), INVALID, "program: expected a program");
    ROW(weir_program_save_costs, (program, NULL, 4, &out.size), INVALID, "buffer is NULL, but capacity is 4");
    ROW(weir_program_save_costs, (program, NULL, 0, NULL), INVALID, "out_length is NULL");
    ROW(weir_program_save_costs, (program, buffer, 4, NULL), RANGE, "capacity is 4");
    ROW(weir_program_load_costs, (NULL, "weir costs 1", &out.size), INVALID, "program is NULL");
    ROW(weir_program_load_costs, (WRONG(graph), "weir costs 1", &out.size), INVALID, "program: expected a program");
    ROW(weir_program_load_costs, (program, NULL, &out.size), INVALID, "costs is NULL");
    ROW(weir_program_load_costs, (program, BAD_UTF8, &out.size), INVALID, "costs");
    ROW(weir_program_load_costs, (program, "costs", &out.size), INVALID, "the text is no saved costs");
    ROW(weir_program_load_costs, (program, "weir costs 1\nx", &out.size), INVALID, "line 2");
    ROW(weir_program_load_costs, (program, "weir costs 1", NULL), INVALID, "out_num_known is NULL");
}

static void rows_of_programs(void) {
    char buffer[4];
    weir_program_info info = {.struct_size = sizeof info};
    weir_port_info port = {.struct_size = sizeof port};
    weir_program *program = good.program;

    ROW(weir_program_trim, (NULL), INVALID, "program is NULL");
    ROW(weir_program_trim, (WRONG(graph)), INVALID, "program: expected a program, got a graph");
    ROW(weir_program_retain, (NULL), INVALID, "program is NULL");
    ROW(weir_program_retain, (WRONG(graph)), INVALID, "program: expected a program, got a graph");
    ROW(weir_program_get_info, (NULL, &info), INVALID, "program is NULL");
    ROW(weir_program_get_info, (WRONG(kernel), &info), INVALID, "program: expected a program, got a kernel");
    ROW(weir_program_get_info, (program, NULL), INVALID, "out_info is NULL");
    ROW(weir_program_get_info, (program, &(weir_program_info){.struct_size = 8}),
        INVALID, "out_info->struct_size is 8");
    ROW(weir_program_get_port, (NULL, WEIR_PORT_INPUT, 0, &port), INVALID, "program is NULL");
    ROW(weir_program_get_port, (WRONG(run), WEIR_PORT_INPUT, 0, &port),
        INVALID, "program: expected a program, got a run");
    ROW(weir_program_get_port, (program, 0, 0, &port), INVALID, "kind is 0, expected 1 (INPUT) or 2 (OUTPUT)");
    ROW(weir_program_get_port, (program, WEIR_PORT_INPUT, 1, &port), RANGE, "index is 1");
    ROW(weir_program_get_port, (program, WEIR_PORT_INPUT, SIZE_MAX, &port), RANGE, "index is 18446744073709551615");
    ROW(weir_program_get_port, (program, WEIR_PORT_OUTPUT, 1, &port), RANGE, "index is 1");
    ROW(weir_program_get_port, (program, WEIR_PORT_OUTPUT, 0, NULL), INVALID, "out_info is NULL");
    ROW(weir_program_get_port, (program, WEIR_PORT_OUTPUT, 0, &(weir_port_info){.struct_size = 8}),
        INVALID, "out_info->struct_size is 8");
    ROW(weir_program_dump, (NULL, WEIR_DUMP_JSON, buffer, 4, &out.size), INVALID, "program is NULL");
    ROW(weir_program_dump, (WRONG(graph), WEIR_DUMP_JSON, buffer, 4, &out.size),
        INVALID, "program: expected a program, got a graph");
    ROW(weir_program_dump, (program, 3, buffer, 4, &out.size), INVALID, "format is 3");
    ROW(weir_program_dump, (program, WEIR_DUMP_DOT, NULL, 4, &out.size), INVALID, "buffer is NULL, but capacity is 4");
    ROW(weir_program_dump, (program, WEIR_DUMP_DOT, NULL, 0, NULL), INVALID, "out_length is NULL");
    ROW(weir_program_dump, (program, WEIR_DUMP_DOT, buffer, 4, NULL), RANGE, "capacity is 4");
    ROW(weir_program_report, (NULL, WEIR_REPORT_JSON, buffer, 4, &out.size), INVALID, "program is NULL");
    ROW(weir_program_report, (WRONG(graph), WEIR_REPORT_JSON, buffer, 4, &out.size),
        INVALID, "program: expected a program, got a graph");
    ROW(weir_program_report, (program, 0, buffer, 4, &out.size), INVALID, "format is 0");
    ROW(weir_program_report, (program, WEIR_REPORT_TEXT, NULL, 4, &out.size),
        INVALID, "buffer is NULL, but capacity is 4");
    ROW(weir_program_report, (program, WEIR_REPORT_TEXT, NULL, 0, NULL), INVALID, "out_length is NULL");
    ROW(weir_program_report, (program, WEIR_REPORT_TEXT, buffer, 4, NULL), RANGE, "capacity is 4");
}

void bad_input_graph(void) {
    builder b = builder_create();
    rows_of_inputs_and_constants(&b);
    rows_of_kernels_and_tasks(&b);
    rows_of_edges_and_outputs(&b);
    rows_of_control_flow(&b);
    rows_of_compile();
    rows_of_programs();
    rows_of_statistics();
    weir_graph_destroy(b.graph);
    weir_graph_destroy(b.other);
}

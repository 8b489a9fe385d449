/* weir/control.h: cond, case and while in graphs
 *
 * Generated from src/abi and src/ffi by cbindgen; do not edit.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#ifndef WEIR_CONTROL_H
#define WEIR_CONTROL_H

#include "../weir.h"

/** @file weir/control.h
 * cond, case and while in graphs. */

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Control flow -------------------------------------------------------------------------------------------------
 * A branch or a loop is a node whose parts are graphs of their own.
 */

/** A branch between two graphs, for weir_graph_add_cond. */
typedef struct weir_cond_desc {
  /** sizeof(weir_cond_desc) of the caller's header. */
  size_t struct_size;
  /** One element of bool, u8, s8 or s32. */
  weir_value predicate;
  /** Executed if predicate is not 0. */
  const weir_graph *then_graph;
  /** Executed if predicate is 0. */
  const weir_graph *else_graph;
  /** The inputs of either graph, in order. */
  const weir_value *inputs;
  /** Length of `inputs`. */
  size_t num_inputs;
} weir_cond_desc;

/** A branch between several graphs, for weir_graph_add_case. */
typedef struct weir_case_desc {
  /** sizeof(weir_case_desc) of the caller's header. */
  size_t struct_size;
  /** One element of bool, u8, s8 or s32: the number of the branch; the last one if it is less than 0 or too large. */
  weir_value index;
  /** The graphs. */
  const weir_graph *const *branches;
  /** Length of `branches`, at least 1. */
  size_t num_branches;
  /** The inputs of each graph, in order. */
  const weir_value *inputs;
  /** Length of `inputs`. */
  size_t num_inputs;
} weir_case_desc;

/** A loop, for weir_graph_add_while. Both graphs have the variables as inputs, then the invariants. */
typedef struct weir_while_desc {
  /** sizeof(weir_while_desc) of the caller's header. */
  size_t struct_size;
  /** Its output says whether the loop continues: one element of bool, u8, s8 or s32. */
  const weir_graph *cond_graph;
  /** Its outputs are the variables' next values, with their types and shapes. */
  const weir_graph *body_graph;
  /** The variables' initial values. */
  const weir_value *variables;
  /** Length of `variables`. */
  size_t num_variables;
  /** Values that stay the same in all iterations. */
  const weir_value *invariants;
  /** Length of `invariants`. */
  size_t num_invariants;
  /**
   * How many iterations may run at once where their data allow it; 0 = 1. It never changes a result. With more than
   * 1, tasks and kernels without outputs of different iterations may run at the same time and in any order. Memory
   * grows: with K iterations at once the program keeps K + 1 copies of the loop's values. compile may choose a
   * smaller number (weir_program_report says which, and why).
   */
  int32_t parallel_iterations;
  /** Reserved, 0. */
  uint32_t reserved;
} weir_while_desc;

/**
 * Adds a branch between two graphs: each run executes one of them. Both have as many inputs as the description, and
 * num_outputs outputs with the same types and shapes, which become the node's. A nested graph sees only its inputs of
 * the graph around it.
 *
 * The node begins when the predicate is available, and the inputs without which nothing in the branches can begin.
 * Another input holds back those nodes of the branch alone that need it. Each output is available as soon as the
 * branch has computed it; a control edge from the node waits for the whole branch. A branch that is not taken costs
 * nothing. out_node (may be NULL) receives the node.
 *
 * Ownership: both graphs are copied, they may be changed or destroyed afterwards. Errors: INVALID_ARGUMENT (NULL,
 * foreign value, number of inputs or outputs); ALREADY_EXISTS (name); OUT_OF_RANGE (more than 32 levels of nesting).
 * Types and shapes are checked by weir_graph_compile.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_graph_add_cond(weir_graph *graph,
                                const char *name,
                                const weir_cond_desc *desc,
                                weir_value *out_outputs,
                                size_t num_outputs,
                                weir_node *out_node);

/**
 * Adds a branch between several graphs, of which each run executes one. Everything else is as with
 * weir_graph_add_cond.
 *
 * Ownership: the graphs, name and desc are copied. Errors: as weir_graph_add_cond; INVALID_ARGUMENT if there are no
 * branches.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_graph_add_case(weir_graph *graph,
                                const char *name,
                                const weir_case_desc *desc,
                                weir_value *out_outputs,
                                size_t num_outputs,
                                weir_node *out_node);

/**
 * Adds a loop: while the condition's output is not 0, the body computes the variables' next values. out_outputs has
 * desc->num_variables elements, for the variables' final values; without an iteration, their initial ones. A short
 * loop whose number of iterations follows from constants is unrolled: its nodes are then called
 * "name/iteration/node". The node begins when all variables and invariants are available. out_node (may be NULL)
 * receives it.
 *
 * Ownership: both graphs, name and desc are copied. Errors: as weir_graph_add_cond; INVALID_ARGUMENT if
 * parallel_iterations is less than 0.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_graph_add_while(weir_graph *graph,
                                 const char *name,
                                 const weir_while_desc *desc,
                                 weir_value *out_outputs,
                                 weir_node *out_node);

/**
 * Adds a switch: the value goes to out_true if predicate (one element of bool, u8, s8 or s32) is not 0, else to
 * out_false; the other one is absent. A node with an absent input, or that waits for a skipped node, is skipped, and
 * its outputs are absent, until weir_graph_add_merge joins the two sides. Where both sides can be expressed as graphs,
 * weir_graph_add_cond costs less. Nodes on other engines than the CPU's may be skipped as any other: where switches
 * and merges do not form a cond, their values travel through the host. out_node (may be NULL) receives the node.
 *
 * Errors: INVALID_ARGUMENT (NULL, foreign value); ALREADY_EXISTS (name). weir_graph_compile refuses outputs that can
 * be absent, unless WEIR_COMPILE_ALLOW_ABSENT.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_graph_add_switch(weir_graph *graph,
                                  const char *name,
                                  weir_value value,
                                  weir_value predicate,
                                  weir_value *out_false,
                                  weir_value *out_true,
                                  weir_node *out_node);

/**
 * Adds a merge: passes on whichever of its inputs is present, and its index (s32[1]; out_index may be NULL). The shape
 * is what the inputs have in common: one may be open (WEIR_DIM_DYNAMIC) where another is not. If all are absent the
 * merge is skipped; a skipped node that it waits for without data does not matter. Two present inputs are an error of
 * the run (FAILED_PRECONDITION) that names the nodes which computed them. out_node (may be NULL) receives the node.
 *
 * Errors: INVALID_ARGUMENT (NULL, foreign value, num_inputs is 0); ALREADY_EXISTS (name); RESOURCE_EXHAUSTED.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_graph_add_merge(weir_graph *graph,
                                 const char *name,
                                 const weir_value *inputs,
                                 size_t num_inputs,
                                 weir_value *out_value,
                                 weir_value *out_index,
                                 weir_node *out_node);

/* ---- Loops of single nodes ----------------------------------------------------------------------------------------
 * Control flow as TensorFlow first had it: Enter, Merge, Switch, NextIteration and Exit as nodes. compile makes loops
 * of it.
 */

/**
 * Adds an enter: brings a value into the frame `frame_name`. This and the next five functions express a loop by its
 * edges, as graphs of TensorFlow's original control flow do; weir_graph_compile turns each frame into a loop, as
 * weir_graph_add_while would, and refuses malformed frames with the nodes' names (docs/control_flow.md has all rules).
 *
 * Every node that takes values of a frame is in it, up to the exits; enters of values of one frame that have the same
 * frame_name lead into one frame. A frame has one loop cond. Each of its variables has an enter, a loop merge, a
 * switch whose predicate is the loop cond, a next iteration and, if its last value is needed, an exit. With
 * is_constant (0 or 1) the value is the same in all iterations and goes to any node of the frame. Constants need no
 * enter. parallel_iterations is as for weir_graph_add_while, and the same for all enters of a frame. If the value is
 * absent the whole loop is skipped, and the values of its exits are absent. out_node (may be NULL) receives the node;
 * it may wait for nodes outside of the frame.
 *
 * Errors: INVALID_ARGUMENT (NULL, foreign value, empty frame_name, is_constant, parallel_iterations less than 1);
 * ALREADY_EXISTS (name).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_graph_add_enter(weir_graph *graph,
                                 const char *name,
                                 weir_value value,
                                 const char *frame_name,
                                 int32_t is_constant,
                                 int32_t parallel_iterations,
                                 weir_value *out_value,
                                 weir_node *out_node);

/**
 * Adds the merge of a loop's variable: passes on the value of an enter in the first iteration, and later the value of
 * the next iteration that weir_graph_set_back_edge connects. Each loop merge needs one. For a merge outside of loops
 * see weir_graph_add_merge.
 *
 * Errors: INVALID_ARGUMENT (NULL, foreign value); ALREADY_EXISTS (name).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_graph_add_loop_merge(weir_graph *graph,
                                      const char *name,
                                      weir_value value,
                                      weir_value *out_value,
                                      weir_node *out_node);

/**
 * Connects a loop merge to its value after the first iteration: the output of a next iteration, which was added after
 * the merge.
 *
 * Errors: INVALID_ARGUMENT (foreign node or value, no loop merge, no next iteration); ALREADY_EXISTS (it has one).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_graph_set_back_edge(weir_graph *graph,
                                     weir_node loop_merge,
                                     weir_value next_iteration);

/**
 * Adds a loop cond: its loop continues while predicate (one element of bool, u8, s8 or s32) is not 0. A switch of
 * weir_graph_add_switch that has its output for a predicate belongs to the loop: out_true is the variable in an
 * iteration that takes place, out_false goes to exits and to nothing else. Other switches, and merges, may be in a
 * loop as anywhere.
 *
 * Errors: INVALID_ARGUMENT (NULL, foreign value); ALREADY_EXISTS (name).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_graph_add_loop_cond(weir_graph *graph,
                                     const char *name,
                                     weir_value predicate,
                                     weir_value *out_value,
                                     weir_node *out_node);

/**
 * Adds a next iteration: passes the value to the loop merges that have it as their back edge, in the following
 * iteration.
 *
 * Errors: INVALID_ARGUMENT (NULL, foreign value); ALREADY_EXISTS (name).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_graph_add_next_iteration(weir_graph *graph,
                                          const char *name,
                                          weir_value value,
                                          weir_value *out_value,
                                          weir_node *out_node);

/**
 * Adds an exit: passes the last value of a loop's variable to the surrounding frame, or to the graph. `value` is
 * out_false of a switch of the loop cond on a loop merge. A control edge from out_node waits for the whole loop.
 *
 * Errors: INVALID_ARGUMENT (NULL, foreign value); ALREADY_EXISTS (name).
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_graph_add_exit(weir_graph *graph,
                                const char *name,
                                weir_value value,
                                weir_value *out_value,
                                weir_node *out_node);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_CONTROL_H */

//! TensorFlow's original control flow in the graph builder.
//!
//! Chapter: Loops of single nodes.

use super::argument::{boolean, out_value as checked_out, string};
use super::guard::guard;
use super::handle;
use crate::abi::*;
use crate::base::Result;
use crate::graph::{Graph, NodeId, ValueId};
use std::ffi::c_char;

/// Adds a node with one output.
///
/// # Safety
/// The pointers are the caller's.
unsafe fn add(
    graph: *mut weir_graph,
    name: *const c_char,
    out_value: *mut weir_value,
    out_node: *mut weir_node,
    adds: impl FnOnce(&mut Graph, &str) -> Result<NodeId>,
) -> Result<()> {
    // SAFETY: as demanded of the caller.
    unsafe {
        let out = checked_out(out_value, "out_value")?;
        let graph = handle::borrow_mut(graph, "graph")?;
        let node = adds(graph, string(name, "name")?)?;
        out.set(node.output(0).into());
        if !out_node.is_null() {
            out_node.write(node.into());
        }
    }
    Ok(())
}

/// Adds an enter: brings a value into the frame `frame_name`. This and the next five functions express a loop by its
/// edges, as graphs of TensorFlow's original control flow do; weir_graph_compile turns each frame into a loop, as
/// weir_graph_add_while would, and refuses malformed frames with the nodes' names (docs/control_flow.md has all rules).
///
/// Every node that takes values of a frame is in it, up to the exits; enters of values of one frame that have the same
/// frame_name lead into one frame. A frame has one loop cond. Each of its variables has an enter, a loop merge, a
/// switch whose predicate is the loop cond, a next iteration and, if its last value is needed, an exit. With
/// is_constant (0 or 1) the value is the same in all iterations and goes to any node of the frame. Constants need no
/// enter. parallel_iterations is as for weir_graph_add_while, and the same for all enters of a frame. If the value is
/// absent the whole loop is skipped, and the values of its exits are absent. out_node (may be NULL) receives the node;
/// it may wait for nodes outside of the frame.
///
/// Errors: INVALID_ARGUMENT (NULL, foreign value, empty frame_name, is_constant, parallel_iterations less than 1);
/// ALREADY_EXISTS (name).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_graph_add_enter(
    graph: *mut weir_graph,
    name: *const c_char,
    value: weir_value,
    frame_name: *const c_char,
    is_constant: i32,
    parallel_iterations: i32,
    out_value: *mut weir_value,
    out_node: *mut weir_node,
) -> weir_status {
    guard("weir_graph_add_enter", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe {
            let frame = string(frame_name, "frame_name")?;
            let is_constant = boolean(is_constant, "is_constant")?;
            let parallel = u32::try_from(parallel_iterations).unwrap_or(0);
            add(graph, name, out_value, out_node, |graph, name| {
                graph.add_enter(name, value.into(), frame, is_constant, parallel)
            })
        }
    })
}

/// Adds the merge of a loop's variable: passes on the value of an enter in the first iteration, and later the value of
/// the next iteration that weir_graph_set_back_edge connects. Each loop merge needs one. For a merge outside of loops
/// see weir_graph_add_merge.
///
/// Errors: INVALID_ARGUMENT (NULL, foreign value); ALREADY_EXISTS (name).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_graph_add_loop_merge(
    graph: *mut weir_graph,
    name: *const c_char,
    value: weir_value,
    out_value: *mut weir_value,
    out_node: *mut weir_node,
) -> weir_status {
    guard("weir_graph_add_loop_merge", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe { add(graph, name, out_value, out_node, |graph, name| graph.add_loop_merge(name, value.into())) }
    })
}

/// Connects a loop merge to its value after the first iteration: the output of a next iteration, which was added after
/// the merge.
///
/// Errors: INVALID_ARGUMENT (foreign node or value, no loop merge, no next iteration); ALREADY_EXISTS (it has one).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_graph_set_back_edge(
    graph: *mut weir_graph,
    loop_merge: weir_node,
    next_iteration: weir_value,
) -> weir_status {
    guard("weir_graph_set_back_edge", || {
        // SAFETY: the caller's handle, as documented.
        let graph = unsafe { handle::borrow_mut(graph, "graph") }?;
        graph.set_back_edge(NodeId::from(loop_merge), ValueId::from(next_iteration))
    })
}

/// Adds a loop cond: its loop continues while predicate (one element of bool, u8, s8 or s32) is not 0. A switch of
/// weir_graph_add_switch that has its output for a predicate belongs to the loop: out_true is the variable in an
/// iteration that takes place, out_false goes to exits and to nothing else. Other switches, and merges, may be in a
/// loop as anywhere.
///
/// Errors: INVALID_ARGUMENT (NULL, foreign value); ALREADY_EXISTS (name).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_graph_add_loop_cond(
    graph: *mut weir_graph,
    name: *const c_char,
    predicate: weir_value,
    out_value: *mut weir_value,
    out_node: *mut weir_node,
) -> weir_status {
    guard("weir_graph_add_loop_cond", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe { add(graph, name, out_value, out_node, |graph, name| graph.add_loop_cond(name, predicate.into())) }
    })
}

/// Adds a next iteration: passes the value to the loop merges that have it as their back edge, in the following
/// iteration.
///
/// Errors: INVALID_ARGUMENT (NULL, foreign value); ALREADY_EXISTS (name).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_graph_add_next_iteration(
    graph: *mut weir_graph,
    name: *const c_char,
    value: weir_value,
    out_value: *mut weir_value,
    out_node: *mut weir_node,
) -> weir_status {
    guard("weir_graph_add_next_iteration", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe { add(graph, name, out_value, out_node, |graph, name| graph.add_next_iteration(name, value.into())) }
    })
}

/// Adds an exit: passes the last value of a loop's variable to the surrounding frame, or to the graph. `value` is
/// out_false of a switch of the loop cond on a loop merge. A control edge from out_node waits for the whole loop.
///
/// Errors: INVALID_ARGUMENT (NULL, foreign value); ALREADY_EXISTS (name).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_graph_add_exit(
    graph: *mut weir_graph,
    name: *const c_char,
    value: weir_value,
    out_value: *mut weir_value,
    out_node: *mut weir_node,
) -> weir_status {
    guard("weir_graph_add_exit", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe { add(graph, name, out_value, out_node, |graph, name| graph.add_exit(name, value.into())) }
    })
}

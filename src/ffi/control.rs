//! Control flow in the graph builder.
//!
//! Chapter: Control flow.

use super::argument::{array, array_mut, out_value as checked_out, string};
use super::graph::values;
use super::guard::guard;
use super::{handle, versioned};
use crate::abi::*;
use crate::base::{Error, Result};
use crate::graph::{Graph, NodeId};
use std::ffi::c_char;

/// Stores a node's outputs, and the node if requested, for the caller.
fn give(node: NodeId, outputs: &mut [weir_value], out_node: *mut weir_node) {
    for (i, out) in outputs.iter_mut().enumerate() {
        *out = node.output(i).into();
    }
    if !out_node.is_null() {
        // SAFETY: the caller's pointer, as documented.
        unsafe { out_node.write(node.into()) }
    }
}

/// Adds a branch between two graphs: each run executes one of them. Both have as many inputs as the description, and
/// num_outputs outputs with the same types and shapes, which become the node's. A nested graph sees only its inputs of
/// the graph around it.
///
/// The node begins when the predicate is available, and the inputs without which nothing in the branches can begin.
/// Another input holds back those nodes of the branch alone that need it. Each output is available as soon as the
/// branch has computed it; a control edge from the node waits for the whole branch. A branch that is not taken costs
/// nothing. out_node (may be NULL) receives the node.
///
/// Ownership: both graphs are copied, they may be changed or destroyed afterwards. Errors: INVALID_ARGUMENT (NULL,
/// foreign value, number of inputs or outputs); ALREADY_EXISTS (name); OUT_OF_RANGE (more than 32 levels of nesting).
/// Types and shapes are checked by weir_graph_compile.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_graph_add_cond(
    graph: *mut weir_graph,
    name: *const c_char,
    desc: *const weir_cond_desc,
    out_outputs: *mut weir_value,
    num_outputs: usize,
    out_node: *mut weir_node,
) -> weir_status {
    guard("weir_graph_add_cond", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe {
            let outputs = array_mut(out_outputs, num_outputs, "out_outputs")?;
            let desc = versioned::read(desc, "desc")?;
            let then = handle::borrow(desc.then_graph, "desc->then_graph")?;
            let otherwise = handle::borrow(desc.else_graph, "desc->else_graph")?;
            let inputs = values(desc.inputs, desc.num_inputs, "desc->inputs")?;
            let name = string(name, "name")?;
            check_apart(graph, &[desc.then_graph, desc.else_graph])?;
            check_outputs(name, then, outputs.len())?;
            let graph = handle::borrow_mut(graph, "graph")?;
            let node = graph.add_cond(name, desc.predicate.into(), then, otherwise, inputs)?;
            give(node, outputs, out_node);
            Ok(())
        }
    })
}

/// Adds a branch between several graphs, of which each run executes one. Everything else is as with
/// weir_graph_add_cond.
///
/// Ownership: the graphs, name and desc are copied. Errors: as weir_graph_add_cond; INVALID_ARGUMENT if there are no
/// branches.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_graph_add_case(
    graph: *mut weir_graph,
    name: *const c_char,
    desc: *const weir_case_desc,
    out_outputs: *mut weir_value,
    num_outputs: usize,
    out_node: *mut weir_node,
) -> weir_status {
    guard("weir_graph_add_case", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe {
            let outputs = array_mut(out_outputs, num_outputs, "out_outputs")?;
            let desc = versioned::read(desc, "desc")?;
            let list = array(desc.branches, desc.num_branches, "desc->branches")?;
            let branches: Vec<&Graph> = list
                .iter()
                .enumerate()
                .map(|(i, &branch)| Ok(&**handle::borrow(branch, &format!("desc->branches[{i}]"))?))
                .collect::<Result<_>>()?;
            let inputs = values(desc.inputs, desc.num_inputs, "desc->inputs")?;
            let name = string(name, "name")?;
            if let Some(first) = branches.first() {
                check_outputs(name, first, outputs.len())?;
            }
            check_apart(graph, list)?;
            let graph = handle::borrow_mut(graph, "graph")?;
            let node = graph.add_case(name, desc.index.into(), &branches, inputs)?;
            give(node, outputs, out_node);
            Ok(())
        }
    })
}

/// Adds a loop: while the condition's output is not 0, the body computes the variables' next values. out_outputs has
/// desc->num_variables elements, for the variables' final values; without an iteration, their initial ones. A short
/// loop whose number of iterations follows from constants is unrolled: its nodes are then called
/// "name/iteration/node". The node begins when all variables and invariants are available. out_node (may be NULL)
/// receives it.
///
/// Ownership: both graphs, name and desc are copied. Errors: as weir_graph_add_cond; INVALID_ARGUMENT if
/// parallel_iterations is less than 0.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_graph_add_while(
    graph: *mut weir_graph,
    name: *const c_char,
    desc: *const weir_while_desc,
    out_outputs: *mut weir_value,
    out_node: *mut weir_node,
) -> weir_status {
    guard("weir_graph_add_while", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe {
            let desc = versioned::read(desc, "desc")?;
            let outputs = array_mut(out_outputs, desc.num_variables, "out_outputs")?;
            let condition = handle::borrow(desc.cond_graph, "desc->cond_graph")?;
            let body = handle::borrow(desc.body_graph, "desc->body_graph")?;
            let variables = values(desc.variables, desc.num_variables, "desc->variables")?;
            let invariants = values(desc.invariants, desc.num_invariants, "desc->invariants")?;
            let name = string(name, "name")?;
            let parallel = u32::try_from(desc.parallel_iterations).map_err(|_| {
                let given = desc.parallel_iterations;
                Error::invalid(format!("desc->parallel_iterations is {given}, expected 0 (one) or more"))
            })?;
            if desc.reserved != 0 {
                return Err(Error::invalid(format!("desc->reserved is {}, expected 0", desc.reserved)));
            }
            check_apart(graph, &[desc.cond_graph, desc.body_graph])?;
            let graph = handle::borrow_mut(graph, "graph")?;
            let node = graph.add_while(name, condition, body, variables, invariants, parallel.max(1))?;
            give(node, outputs, out_node);
            Ok(())
        }
    })
}

/// Adds a switch: the value goes to out_true if predicate (one element of bool, u8, s8 or s32) is not 0, else to
/// out_false; the other one is absent. A node with an absent input, or that waits for a skipped node, is skipped, and
/// its outputs are absent, until weir_graph_add_merge joins the two sides. Where both sides can be expressed as graphs,
/// weir_graph_add_cond costs less. Nodes on other engines than the CPU's may be skipped as any other: where switches
/// and merges do not form a cond, their values travel through the host. out_node (may be NULL) receives the node.
///
/// Errors: INVALID_ARGUMENT (NULL, foreign value); ALREADY_EXISTS (name). weir_graph_compile refuses outputs that can
/// be absent, unless WEIR_COMPILE_ALLOW_ABSENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_graph_add_switch(
    graph: *mut weir_graph,
    name: *const c_char,
    value: weir_value,
    predicate: weir_value,
    out_false: *mut weir_value,
    out_true: *mut weir_value,
    out_node: *mut weir_node,
) -> weir_status {
    guard("weir_graph_add_switch", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe {
            let (on_false, on_true) = (checked_out(out_false, "out_false")?, checked_out(out_true, "out_true")?);
            let graph = handle::borrow_mut(graph, "graph")?;
            let node = graph.add_switch(string(name, "name")?, value.into(), predicate.into())?;
            on_false.set(node.output(0).into());
            on_true.set(node.output(1).into());
            give(node, &mut [], out_node);
            Ok(())
        }
    })
}

/// Adds a merge: passes on whichever of its inputs is present, and its index (s32[1]; out_index may be NULL). The shape
/// is what the inputs have in common: one may be open (WEIR_DIM_DYNAMIC) where another is not. If all are absent the
/// merge is skipped; a skipped node that it waits for without data does not matter. Two present inputs are an error of
/// the run (FAILED_PRECONDITION) that names the nodes which computed them. out_node (may be NULL) receives the node.
///
/// Errors: INVALID_ARGUMENT (NULL, foreign value, num_inputs is 0); ALREADY_EXISTS (name); RESOURCE_EXHAUSTED.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_graph_add_merge(
    graph: *mut weir_graph,
    name: *const c_char,
    inputs: *const weir_value,
    num_inputs: usize,
    out_value: *mut weir_value,
    out_index: *mut weir_value,
    out_node: *mut weir_node,
) -> weir_status {
    guard("weir_graph_add_merge", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe {
            let value = checked_out(out_value, "out_value")?;
            let graph = handle::borrow_mut(graph, "graph")?;
            let inputs = values(inputs, num_inputs, "inputs")?;
            let node = graph.add_merge(string(name, "name")?, inputs)?;
            value.set(node.output(0).into());
            if !out_index.is_null() {
                out_index.write(node.output(1).into());
            }
            give(node, &mut [], out_node);
            Ok(())
        }
    })
}

fn check_outputs(name: &str, inner: &Graph, num_outputs: usize) -> Result<()> {
    if inner.num_outputs() == num_outputs {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "node '{name}': num_outputs is {num_outputs}, graph '{}' has {} outputs",
        inner.name(),
        inner.num_outputs()
    )))
}

/// A graph cannot lie inside of itself.
fn check_apart(graph: *mut weir_graph, inner: &[*const weir_graph]) -> Result<()> {
    if inner.contains(&graph.cast_const()) {
        return Err(Error::invalid("a graph cannot lie inside of itself"));
    }
    Ok(())
}

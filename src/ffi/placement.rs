//! Placement: the memory of a program's inputs and outputs, and the engines of its nodes.
//!
//! Chapter: Program.

use super::guard::guard;
use super::handle;
use crate::abi::weir_placement_value as V;
use crate::abi::*;
use crate::base::{Error, Result};
use crate::graph::NodeId;

/// Declares that runs receive input or output `index`, in the order in which they were added, in memory of `engine`.
/// Nodes on that engine read an input in place, others read a copy, made once for each engine. A node on that engine
/// writes an output directly into the tensor; otherwise the value is copied there as soon as it is done. NULL, the
/// default, is the program's own engine, a CPU engine. The engine must be among those of weir_graph_compile, and runs
/// refuse a tensor on another one. A program with inputs or outputs on other engines than the CPU's cannot be a node of
/// another graph (weir_graph_add_program).
///
/// Errors: OUT_OF_RANGE (index).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_graph_set_port_engine(
    graph: *mut weir_graph,
    kind: weir_port_kind,
    index: usize,
    engine: *mut weir_engine,
) -> weir_status {
    guard("weir_graph_set_port_engine", || {
        // SAFETY: the caller's handles, as documented.
        let (graph, engine) = unsafe { (handle::borrow_mut(graph, "graph")?, handle::share_opt(engine, "engine")?) };
        match is_input(kind)? {
            true => graph.set_input_engine(index, engine),
            false => graph.set_output_engine(index, engine),
        }
    })
}

/// Whether the ports are the inputs; otherwise they are the outputs.
pub(super) fn is_input(kind: weir_port_kind) -> Result<bool> {
    use weir_port_kind_value::*;
    match kind {
        kind if kind == WEIR_PORT_INPUT as u32 => Ok(true),
        kind if kind == WEIR_PORT_OUTPUT as u32 => Ok(false),
        kind => Err(Error::invalid(format!("kind is {kind}, expected 1 (INPUT) or 2 (OUTPUT)"))),
    }
}

/// Sets how the engine of a kernel's node is chosen: one of enum weir_placement_value. The compile report
/// (weir_program_report) shows the choice for each node that was open, and the reason; the same graph and the same list
/// of engines give the same choice.
///
/// Errors: INVALID_ARGUMENT (foreign node, no kernel, placement).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_graph_set_placement(
    graph: *mut weir_graph,
    node: weir_node,
    placement: weir_placement,
) -> weir_status {
    guard("weir_graph_set_placement", || {
        // SAFETY: the caller's handle, as documented.
        let graph = unsafe { handle::borrow_mut(graph, "graph") }?;
        graph.set_open(NodeId::from(node), open("placement", placement)?)
    })
}

/// Whether the choice of engine is open; None if the placement leaves it to the options.
pub(super) fn open(argument: &str, placement: weir_placement) -> Result<Option<bool>> {
    let all = [
        (V::WEIR_PLACEMENT_DEFAULT, None),
        (V::WEIR_PLACEMENT_KERNEL, Some(false)),
        (V::WEIR_PLACEMENT_ANY, Some(true)),
    ];
    let found = all.iter().find(|(value, _)| *value as weir_placement == placement).map(|(_, open)| *open);
    found.ok_or_else(|| {
        Error::invalid(format!("{argument} is {placement}, expected 0 (DEFAULT), 1 (KERNEL) or 2 (ANY)"))
    })
}

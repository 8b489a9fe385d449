//! The graph builder.
//!
//! Chapter: Graph.

use super::argument::{array, array_mut, out_ptr, out_value as checked_out, string};
use super::guard::{guard, guard_release};
use super::tensor::read_desc;
use super::{handle, task, text};
use crate::abi::*;
use crate::base::{Error, Result};
use crate::graph::{DumpFormat, Forwarding, Graph, NodeId, ValueId};
use crate::kernel::Task;
use crate::threadpool::HostCall;
use std::ffi::{c_char, c_void};
use std::sync::Arc;

/// The values in an array of the caller's.
///
/// # Safety
/// `list` is NULL or has `len` values, which stay the same during `'a`.
pub(super) unsafe fn values<'a>(list: *const weir_value, len: usize, argument: &str) -> Result<&'a [ValueId]> {
    // SAFETY: as demanded of the caller.
    unsafe { array(list.cast(), len, argument) }
}

/// Creates an empty graph. `name` (may be NULL) appears in error texts and dumps.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_graph_create(name: *const c_char, out_graph: *mut *mut weir_graph) -> weir_status {
    guard("weir_graph_create", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, name) = unsafe {
            let out = out_ptr(out_graph, "out_graph")?;
            (out, if name.is_null() { "graph" } else { string(name, "name")? })
        };
        handle::into_owned_c(Graph::new(name), out)
    })
}

/// Destroys a graph under construction. NULL does nothing. Programs compiled from it live on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_graph_destroy(graph: *mut weir_graph) {
    // SAFETY: the caller's handle, as documented.
    guard_release("weir_graph_destroy", || unsafe { handle::destroy(graph) });
}

/// Adds an input: a tensor that is passed to each run. Runs take inputs in the order in which they were added.
/// Dimensions of `desc` may be WEIR_DIM_DYNAMIC: each run passes a tensor that fits.
///
/// Errors: INVALID_ARGUMENT (NULL, bad UTF-8, empty name, bad desc); ALREADY_EXISTS (name).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_graph_add_input(
    graph: *mut weir_graph,
    name: *const c_char,
    desc: *const weir_tensor_desc,
    out_value: *mut weir_value,
) -> weir_status {
    guard("weir_graph_add_input", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, graph, name, desc) = unsafe {
            (
                checked_out(out_value, "out_value")?,
                handle::borrow_mut(graph, "graph")?,
                string(name, "name")?,
                read_desc(desc, "desc")?,
            )
        };
        out.set(graph.add_input(name, desc)?.into());
        Ok(())
    })
}

/// Adds a constant. The program keeps the tensor; its contents must not change any more. It may be in the memory of any
/// engine that the program is compiled for: nodes of that engine read it in place. It is copied to other engines.
///
/// Errors: ALREADY_EXISTS (name).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_graph_add_constant(
    graph: *mut weir_graph,
    name: *const c_char,
    tensor: *mut weir_tensor,
    out_value: *mut weir_value,
) -> weir_status {
    guard("weir_graph_add_constant", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, graph, name, tensor) = unsafe {
            (
                checked_out(out_value, "out_value")?,
                handle::borrow_mut(graph, "graph")?,
                string(name, "name")?,
                handle::share(tensor, "tensor")?,
            )
        };
        out.set(graph.add_constant(name, tensor)?.into());
        Ok(())
    })
}

/// Adds a kernel call. Types and shapes are checked by weir_graph_compile. out_outputs receives the num_outputs values;
/// out_node (may be NULL) receives the node, for control edges. Values of nodes added later cannot be used here, so
/// only control edges can close a cycle, which is an error of compile. weir_graph_set_back_edge closes a loop.
///
/// Errors: INVALID_ARGUMENT (NULL, foreign value, number of inputs or outputs); ALREADY_EXISTS (name).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_graph_add_kernel(
    graph: *mut weir_graph,
    name: *const c_char,
    kernel: *mut weir_kernel,
    inputs: *const weir_value,
    num_inputs: usize,
    out_outputs: *mut weir_value,
    num_outputs: usize,
    out_node: *mut weir_node,
) -> weir_status {
    guard("weir_graph_add_kernel", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe {
            let outputs = array_mut(out_outputs, num_outputs, "out_outputs")?;
            let graph = handle::borrow_mut(graph, "graph")?;
            let name = string(name, "name")?;
            let kernel = handle::share(kernel, "kernel")?;
            let inputs = values(inputs, num_inputs, "inputs")?;
            let node = graph.add_kernel(name, kernel, inputs, outputs.len())?;
            for (i, out) in outputs.iter_mut().enumerate() {
                *out = node.output(i).into();
            }
            if !out_node.is_null() {
                out_node.write(node.into());
            }
            Ok(())
        }
    })
}

/// Adds another program as one node: its inputs and outputs are the program's. It runs on the pool of the surrounding
/// run, and its helpers count among that run's. The failure of a node inside names both: "node 'outer': node 'inner':
/// ...". A cancel or a deadline of the run ends the inner run too, after its running kernels.
///
/// A program with kernels that complete later or may block is a node that completes later: no thread waits for the
/// inner run, and the rules for programs with such kernels hold for the graph. Kernels that may block run on the pool
/// that the inner program was compiled with.
///
/// At most 16 programs lie inside one another: the run of each is on the stack of the run around it, and so many have
/// room in 256 KiB.
///
/// Errors: INVALID_ARGUMENT (NULL, foreign value, number of inputs or outputs, a program with outputs that may be
/// absent); ALREADY_EXISTS (name); OUT_OF_RANGE (more programs inside one another).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_graph_add_program(
    graph: *mut weir_graph,
    name: *const c_char,
    program: *mut weir_program,
    inputs: *const weir_value,
    num_inputs: usize,
    out_outputs: *mut weir_value,
    num_outputs: usize,
    out_node: *mut weir_node,
) -> weir_status {
    guard("weir_graph_add_program", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe {
            let outputs = array_mut(out_outputs, num_outputs, "out_outputs")?;
            let graph = handle::borrow_mut(graph, "graph")?;
            let name = string(name, "name")?;
            let program = handle::share(program, "program")?;
            let inputs = values(inputs, num_inputs, "inputs")?;
            let node = graph.add_program(name, &program, inputs, outputs.len())?;
            for (i, out) in outputs.iter_mut().enumerate() {
                *out = node.output(i).into();
            }
            if !out_node.is_null() {
                out_node.write(node.into());
            }
            Ok(())
        }
    })
}

/// Adds a plain C function, called as fn(arg) in each run when everything that it depends on by control edges is done.
/// It has no inputs and no outputs. `cost_ns` is its estimated run time, 0 = unknown. `destroy` (may be NULL) is called
/// with arg when graph and programs are gone. Calls of several runs may overlap. out_node (may be NULL) receives the
/// node, for control edges.
///
/// Ownership: arg passes to the graph if destroy is given. Errors: ALREADY_EXISTS (name).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_graph_add_task(
    graph: *mut weir_graph,
    name: *const c_char,
    r#fn: weir_host_fn,
    arg: *mut c_void,
    destroy: weir_destroy_fn,
    cost_ns: u64,
    out_node: *mut weir_node,
) -> weir_status {
    guard("weir_graph_add_task", || {
        // SAFETY: the caller's pointers, as documented.
        let (graph, name) = unsafe { (handle::borrow_mut(graph, "graph")?, string(name, "name")?) };
        let f = r#fn.ok_or_else(|| Error::null("fn"))?;
        let node = match destroy {
            // SAFETY: the host promises that its function may run on any thread and does not unwind.
            None => graph.add_call(name, unsafe { HostCall::new(f, arg) }, cost_ns)?,
            Some(_) => {
                let task = task::HostTask::new(f, arg, destroy);
                let node = graph.add_task(name, Arc::clone(&task) as Arc<dyn Task>, cost_ns)?;
                task.adopt();
                node
            }
        };
        if !out_node.is_null() {
            // SAFETY: the caller's pointer, as documented.
            unsafe { out_node.write(node.into()) }
        }
        Ok(())
    })
}

/// Makes `to` wait for `from`, without data.
///
/// Errors: INVALID_ARGUMENT (foreign node, an edge to itself).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_graph_add_control_edge(
    graph: *mut weir_graph,
    from: weir_node,
    to: weir_node,
) -> weir_status {
    guard("weir_graph_add_control_edge", || {
        // SAFETY: the caller's handle, as documented.
        let graph = unsafe { handle::borrow_mut(graph, "graph") }?;
        graph.add_control_edge(NodeId::from(from), NodeId::from(to))
    })
}

/// Sets whether output `output` of a kernel takes over the memory of an input: `input` is WEIR_FORWARD_AUTO (the
/// default), WEIR_FORWARD_NEVER, or the index of the input whose memory it must be; weir_graph_compile refuses the
/// graph if that is impossible.
///
/// Errors: INVALID_ARGUMENT (foreign node, no kernel, input below WEIR_FORWARD_NEVER); OUT_OF_RANGE (output, input).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_graph_set_forwarding(
    graph: *mut weir_graph,
    node: weir_node,
    output: i32,
    input: i32,
) -> weir_status {
    guard("weir_graph_set_forwarding", || {
        // SAFETY: the caller's handle, as documented.
        let graph = unsafe { handle::borrow_mut(graph, "graph") }?;
        let forwarding = match input {
            _ if input == weir_forwarding_value::WEIR_FORWARD_AUTO as i32 => Forwarding::ByLastUse,
            _ if input == weir_forwarding_value::WEIR_FORWARD_NEVER as i32 => Forwarding::Never,
            _ if input < 0 => {
                return Err(Error::invalid(format!("input is {input}, expected an index, -1 (AUTO) or -2 (NEVER)")));
            }
            _ => Forwarding::Reserved(
                u16::try_from(input)
                    .map_err(|_| Error::out_of_range(format!("input is {input}, no kernel has that many")))?,
            ),
        };
        let output = usize::try_from(output)
            .map_err(|_| Error::out_of_range(format!("output is {output}, expected an index")))?;
        graph.set_forwarding(NodeId::from(node), output, forwarding)
    })
}

/// Makes a value an output of the graph: each run writes it into a tensor that it is passed. Runs take outputs in the
/// order in which they were added.
///
/// Errors: INVALID_ARGUMENT (foreign value); ALREADY_EXISTS (name of another output).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_graph_add_output(
    graph: *mut weir_graph,
    name: *const c_char,
    value: weir_value,
) -> weir_status {
    guard("weir_graph_add_output", || {
        // SAFETY: the caller's pointers, as documented.
        let (graph, name) = unsafe { (handle::borrow_mut(graph, "graph")?, string(name, "name")?) };
        graph.add_output(name, ValueId::from(value))
    })
}

/// Copies a drawing of the graph in its current state, in DOT or JSON.
///
/// Chapter: Drawings and reports.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_graph_dump(
    graph: *const weir_graph,
    format: weir_dump_format,
    buffer: *mut c_char,
    capacity: usize,
    out_length: *mut usize,
) -> weir_status {
    guard("weir_graph_dump", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe {
            let graph = handle::borrow(graph, "graph")?;
            text::copy(&graph.dump(dump_format(format)?), buffer, capacity, out_length)
        }
    })
}

/// Checks a format argument.
pub(super) fn dump_format(format: weir_dump_format) -> Result<DumpFormat> {
    DumpFormat::from_value(format)
        .ok_or_else(|| Error::invalid(format!("format is {format}, expected 1 (DOT) or 2 (JSON)")))
}

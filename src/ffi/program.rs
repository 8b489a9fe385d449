//! Compiling a graph, and the compiled program.
//!
//! Chapter: Program.

use super::argument::{array, boolean, out_ptr, out_value};
use super::graph::dump_format;
use super::guard::{guard, guard_release};
use super::placement::is_input;
use super::{handle, text, versioned};
use crate::abi::*;
use crate::base::Error;
use crate::base::text::fixed;
use crate::graph::{CompileOptions, Program, ReportFormat};
use crate::sync::ambient;
use std::ffi::c_char;

/// Creates settings for weir_graph_compile, all default.
///
/// Thread safety: any thread. Blocking: never. Ownership: the caller owns *out_options. Errors: INVALID_ARGUMENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_compile_options_create(out_options: *mut *mut weir_compile_options) -> weir_status {
    guard("weir_compile_options_create", || {
        // SAFETY: the caller's pointer, as documented.
        let out = unsafe { out_ptr(out_options, "out_options") }?;
        handle::into_owned_c(CompileOptions::default(), out)
    })
}

/// Destroys settings. NULL does nothing.
///
/// Thread safety: one thread at a time per object. Blocking: never. Ownership: ends here. Errors: none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_compile_options_destroy(options: *mut weir_compile_options) {
    // SAFETY: the caller's handle, as documented.
    guard_release("weir_compile_options_destroy", || unsafe { handle::destroy(options) });
}

/// The cost of bringing work to another thread of the pool, in nanoseconds. Ready work that is cheaper stays on the
/// thread that made it ready. Default UINT64_MAX: the pool's own costs in each run, as far as they are known; runs that
/// turn out to be faster on the caller alone then stay there. It never changes a result.
///
/// Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_compile_options_set_hop_ns(
    options: *mut weir_compile_options,
    hop_ns: u64,
) -> weir_status {
    guard("weir_compile_options_set_hop_ns", || {
        // SAFETY: the caller's handle, as documented.
        unsafe { handle::borrow_mut(options, "options") }?.hop_ns = (hop_ns != u64::MAX).then_some(hop_ns);
        Ok(())
    })
}

/// The cost set by weir_compile_options_set_hop_ns.
///
/// Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_compile_options_get_hop_ns(
    options: *const weir_compile_options,
    out_hop_ns: *mut u64,
) -> weir_status {
    guard("weir_compile_options_get_hop_ns", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, options) = unsafe { (out_value(out_hop_ns, "out_hop_ns")?, handle::borrow(options, "options")?) };
        out.set(options.hop_ns.unwrap_or(u64::MAX));
        Ok(())
    })
}

/// Whether outputs of the program may be absent (weir_graph_add_switch): 0 (the default) or 1. A run leaves the tensor
/// of an absent output unchanged; weir_run_options_set_absent reports which outputs were absent.
///
/// Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_compile_options_set_allow_absent(
    options: *mut weir_compile_options,
    allow: i32,
) -> weir_status {
    guard("weir_compile_options_set_allow_absent", || {
        // SAFETY: the caller's handle, as documented.
        unsafe { handle::borrow_mut(options, "options") }?.allow_absent = boolean(allow, "allow")?;
        Ok(())
    })
}

/// The value set by weir_compile_options_set_allow_absent.
///
/// Thread safety: one thread at a time per object. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_compile_options_get_allow_absent(
    options: *const weir_compile_options,
    out_allow: *mut i32,
) -> weir_status {
    guard("weir_compile_options_get_allow_absent", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, options) = unsafe { (out_value(out_allow, "out_allow")?, handle::borrow(options, "options")?) };
        out.set(i32::from(options.allow_absent));
        Ok(())
    })
}

/// The pool for kernels that may block (WEIR_KERNEL_MAY_BLOCK): each runs as one task of it, without holding another
/// thread. A thread that waits for such a kernel runs it itself if the pool has not begun it for 50 ms, unless the pool
/// has WEIR_THREADPOOL_OWN_THREADS_ONLY. The pool must take single tasks (schedule, or an ASYNCHRONOUS parallel_for),
/// and should have as many threads as kernels may block at once. If it refuses one, the kernel runs in the caller of a
/// synchronous run that is no worker of a pool; else the node fails with UNAVAILABLE. NULL (the default) = no such
/// pool: graphs with such kernels do not compile.
///
/// Thread safety: one thread at a time per object. Blocking: never. Ownership: the options, and programs compiled with
/// them, take references of their own.
/// Errors: INVALID_ARGUMENT (also a pool that takes no single tasks).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_compile_options_set_blocking_threadpool(
    options: *mut weir_compile_options,
    pool: *mut weir_threadpool,
) -> weir_status {
    guard("weir_compile_options_set_blocking_threadpool", || {
        // SAFETY: the caller's handles, as documented.
        let (options, pool) = unsafe { (handle::borrow_mut(options, "options")?, handle::share_opt(pool, "pool")?) };
        if pool.as_ref().is_some_and(|pool| !pool.can_spawn()) {
            return Err(Error::invalid(
                "pool takes no single tasks: it has neither schedule nor an ASYNCHRONOUS parallel_for",
            ));
        }
        options.blocking_pool = pool;
        Ok(())
    })
}

/// The pool that was set, or NULL.
///
/// Thread safety: one thread at a time per object. Blocking: never.
/// Ownership: *out_pool is borrowed and lives as long as the options keep it. Errors: INVALID_ARGUMENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_compile_options_get_blocking_threadpool(
    options: *const weir_compile_options,
    out_pool: *mut *mut weir_threadpool,
) -> weir_status {
    guard("weir_compile_options_get_blocking_threadpool", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, options) = unsafe { (out_ptr(out_pool, "out_pool")?, handle::borrow(options, "options")?) };
        *out = handle::borrowed_opt_c(options.blocking_pool.as_ref());
        Ok(())
    })
}

/// Compiles a graph for engines: verifies it, and lays it out for runs. Kernels on which no output, no task and no
/// kernel without outputs depends are left out. The graph may be changed and compiled again. options may be NULL.
///
/// A node runs on the engine of its kernel, unless weir_graph_set_placement or the options leave it open. The first CPU
/// engine among `engines` is the program's own: inputs and outputs are in its memory, unless weir_graph_set_port_engine
/// says otherwise, and runs use its pool by default. Values shared by nodes on different engines are copied, once for
/// each engine, as soon as they are available and while other work continues; the program keeps memory and streams on
/// the other engines for each concurrent run (weir_engine_attr_set_max_streams). In a branch or a loop that the host
/// executes in part, values that one engine computes and reads stay in its memory; the others are copied. A loop with
/// parallel_iterations K whose values cross between the host and an engine overlaps its iterations: it has memory on
/// the engine for K + 1 of them, or for fewer where that would be more than an eighth of it. weir_program_report counts
/// copies, streams, events and waits.
///
/// Thread safety: one thread at a time per graph. Blocking: never. Ownership: the caller owns one reference to
/// *out_program; the program takes references to kernels, constants and engines. Errors: INVALID_ARGUMENT, with the
/// names of the nodes: a cycle, an input with a wrong dtype or shape, a kernel or constant of a device that none of the
/// engines is for, no CPU engine; UNIMPLEMENTED for nodes on other engines than the CPU's with values whose shape is
/// known only at run time, and for a kernel that completes later or may block (weir_host_kernel_desc) with inputs or
/// outputs of such a shape: its arguments and the memory for its outputs are fixed when the graph is compiled;
/// FAILED_PRECONDITION for a kernel that may block, without a pool for such; OUT_OF_RANGE if sizes overflow;
/// RESOURCE_EXHAUSTED.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_graph_compile(
    graph: *const weir_graph,
    engines: *const *mut weir_engine,
    num_engines: usize,
    options: *const weir_compile_options,
    out_program: *mut *mut weir_program,
) -> weir_status {
    guard("weir_graph_compile", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe {
            let out = out_ptr(out_program, "out_program")?;
            let graph = handle::borrow(graph, "graph")?;
            let engines = array(engines, num_engines, "engines")?
                .iter()
                .enumerate()
                .map(|(i, &engine)| handle::share(engine, &format!("engines[{i}]")))
                .collect::<Result<Vec<_>, _>>()?;
            let options = handle::borrow_opt(options, "options")?;
            let default = CompileOptions::default();
            // Computes constants, also with host kernels.
            let compile = || Program::compile(graph, engines, options.map_or(&default, |o| &**o));
            handle::into_c(ambient::call(compile)?, out)
        }
    })
}

/// Takes one more reference.
///
/// Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference more. Errors: INVALID_ARGUMENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_program_retain(program: *mut weir_program) -> weir_status {
    // SAFETY: the caller's handle, as documented.
    guard("weir_program_retain", || unsafe { handle::retain(program, "program") })
}

/// Gives up one reference. NULL does nothing. Runs hold references of their own.
///
/// Thread safety: any thread. Blocking: never. Ownership: one reference less. Errors: none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_program_release(program: *mut weir_program) {
    // SAFETY: the caller's handle, as documented.
    guard_release("weir_program_release", || unsafe { handle::release(program) });
}

/// Describes the program: its ports and nodes, and the runs that have begun, ended, failed, and are active.
///
/// Thread safety: any thread. Blocking: never. Ownership: the caller's struct, struct_size set. Errors:
/// INVALID_ARGUMENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_program_get_info(
    program: *const weir_program,
    out_info: *mut weir_program_info,
) -> weir_status {
    guard("weir_program_get_info", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe {
            let program = handle::borrow(program, "program")?;
            let counters = program.counters();
            let info = weir_program_info {
                struct_size: 0,
                num_inputs: program.inputs().len(),
                num_outputs: program.outputs().len(),
                num_nodes: program.num_nodes(),
                begun: counters.begun,
                ended: counters.ended,
                failed: counters.failed,
                cancelled: counters.cancelled,
                running: counters.begun - counters.ended,
            };
            versioned::write(out_info, &info, "out_info")
        }
    })
}

/// Describes input or output `index` of the program.
///
/// Thread safety: any thread. Blocking: never. Ownership: the caller's struct, struct_size set; its engine is borrowed.
/// Errors: INVALID_ARGUMENT (NULL, unknown kind, struct_size); OUT_OF_RANGE (index).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_program_get_port(
    program: *const weir_program,
    kind: weir_port_kind,
    index: usize,
    out_info: *mut weir_port_info,
) -> weir_status {
    guard("weir_program_get_port", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe {
            let program = handle::borrow(program, "program")?;
            let ports = if is_input(kind)? { program.inputs() } else { program.outputs() };
            let port = Program::port(ports, index)?;
            let info = weir_port_info {
                struct_size: 0,
                desc: port.desc,
                engine: handle::borrowed_c(port.engine.as_ref().unwrap_or(program.engine())),
                name: fixed(&port.name),
            };
            versioned::write(out_info, &info, "out_info")
        }
    })
}

/// Copies a drawing of the compiled program, in DOT or JSON.
///
/// Thread safety: any thread. Blocking: never. Ownership: the caller's buffer.
/// Errors: INVALID_ARGUMENT (unknown format); OUT_OF_RANGE if capacity is too small (out_length is set).
///
/// Chapter: Drawings and reports.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_program_dump(
    program: *const weir_program,
    format: weir_dump_format,
    buffer: *mut c_char,
    capacity: usize,
    out_length: *mut usize,
) -> weir_status {
    guard("weir_program_dump", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe {
            let program = handle::borrow(program, "program")?;
            text::copy(&program.dump(dump_format(format)?), buffer, capacity, out_length)
        }
    })
}

/// Copies a report of the compilation, as text or JSON: nodes and edges left out or added, memory that values share,
/// sizes, the effect of the costs known so far on the use of other threads, the parts kept for partial runs, and the
/// figures of the executed nodes, if any. The members of the JSON are stable; more may be added.
///
/// Thread safety: any thread. Blocking: never. Ownership: the caller's buffer.
/// Errors: INVALID_ARGUMENT (unknown format); OUT_OF_RANGE if capacity is too small (out_length is set).
///
/// Chapter: Drawings and reports.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_program_report(
    program: *const weir_program,
    format: weir_report_format,
    buffer: *mut c_char,
    capacity: usize,
    out_length: *mut usize,
) -> weir_status {
    guard("weir_program_report", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe {
            let program = handle::borrow(program, "program")?;
            let format = ReportFormat::from_value(format)
                .ok_or_else(|| Error::invalid(format!("format is {format}, expected 1 (TEXT) or 2 (JSON)")))?;
            text::copy(&program.report(format), buffer, capacity, out_length)
        }
    })
}

//! Compiling a graph, and the compiled program.
//!
//! Chapter: Program.

use super::argument::{array, out_ptr};
use super::graph::dump_format;
use super::guard::{guard, guard_release};
use super::{handle, placement, text, versioned};
use crate::abi::weir_placement_value as P;
use crate::abi::*;
use crate::base::text::fixed;
use crate::base::{Error, Result};
use crate::graph::{CompileOptions, MOST_PARTS, Program, ReportFormat};
use crate::ops::check::flags;
use crate::sync::ambient;
use std::ffi::c_char;

const ALLOW_ABSENT: u64 = weir_compile_flags::WEIR_COMPILE_ALLOW_ABSENT as u64;
const STATISTICS: u64 = weir_compile_flags::WEIR_COMPILE_STATISTICS as u64;
const NO_DEVICE_CONTROL: u64 = weir_compile_flags::WEIR_COMPILE_NO_DEVICE_CONTROL as u64;
const NO_REGIONS: u64 = weir_compile_flags::WEIR_COMPILE_NO_REGIONS as u64;
const NO_FUSION: u64 = weir_compile_flags::WEIR_COMPILE_NO_FUSION as u64;
const TIMED: u32 = weir_segments_value::WEIR_SEGMENTS_TIMED as u32;
const NEVER: u32 = weir_segments_value::WEIR_SEGMENTS_NEVER as u32;
const ALWAYS: u32 = weir_segments_value::WEIR_SEGMENTS_ALWAYS as u32;

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
/// Thread safety: one thread at a time per graph. Ownership: the program takes references to kernels, constants and
/// engines. Errors: INVALID_ARGUMENT, with the names of the nodes: a cycle, an input with a wrong dtype or shape, a
/// kernel or constant of a device that none of the engines is for, no CPU engine; UNIMPLEMENTED for nodes on other
/// engines than the CPU's with values whose shape is known only at run time, and for a kernel that completes later or
/// may block (weir_host_kernel_desc) with inputs or outputs of such a shape: its arguments and the memory for its
/// outputs are fixed when the graph is compiled; FAILED_PRECONDITION for a kernel that may block, without a pool for
/// such; OUT_OF_RANGE if sizes overflow; RESOURCE_EXHAUSTED.
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
            let options = compile_options(options)?;
            // Computes constants, also with host kernels.
            let compile = || Program::compile(graph, engines, &options);
            handle::into_c(ambient::call(compile)?, out)
        }
    })
}

/// Reads and checks what the caller asks of compile.
///
/// # Safety
/// `options` is NULL or points to `struct_size` readable bytes, with a live pool or none.
unsafe fn compile_options(options: *const weir_compile_options) -> Result<CompileOptions> {
    // SAFETY: as demanded of the caller.
    let Some(told) = unsafe { versioned::read_opt(options, "options") }? else {
        return Ok(CompileOptions::default());
    };
    let known = ALLOW_ABSENT | STATISTICS | NO_DEVICE_CONTROL | NO_REGIONS | NO_FUSION;
    let bits = flags(told.flags, known, "options->flags")?;
    // SAFETY: as demanded of the caller.
    let blocking_pool = unsafe { handle::share_opt(told.blocking_threadpool, "options->blocking_threadpool") }?;
    if blocking_pool.as_ref().is_some_and(|pool| !pool.can_spawn()) {
        return Err(Error::invalid(
            "options->blocking_threadpool takes no single tasks: it has neither schedule nor an ASYNCHRONOUS \
             parallel_for",
        ));
    }
    if told.partial_runs > MOST_PARTS {
        let partial_runs = told.partial_runs;
        let text = format!("options->partial_runs is {partial_runs}, expected at most {MOST_PARTS}");
        return Err(Error::out_of_range(text));
    }
    let (without_segments, without_trial) = match told.segments {
        TIMED => (false, false),
        NEVER => (true, false),
        ALWAYS => (false, true),
        other => {
            let text = format!("options->segments is {other}, expected 0 (TIMED), 1 (NEVER) or 2 (ALWAYS)");
            return Err(Error::invalid(text));
        }
    };
    if told.reserved != 0 {
        return Err(Error::invalid(format!("options->reserved is {}, expected 0", told.reserved)));
    }
    Ok(CompileOptions {
        hop_ns: match told.hop_ns {
            0 => None,
            WEIR_HOP_NONE => Some(0),
            hop_ns => Some(hop_ns),
        },
        allow_absent: bits & ALLOW_ABSENT != 0,
        statistics: bits & STATISTICS != 0,
        blocking_pool,
        partial_runs: told.partial_runs,
        any_engine: placement::open("options->placement", told.placement)?.unwrap_or(false),
        max_concurrent_runs: told.max_concurrent_runs,
        without_segments,
        without_trial,
        without_device_control: bits & NO_DEVICE_CONTROL != 0,
        without_regions: bits & NO_REGIONS != 0,
        without_fusion: bits & NO_FUSION != 0,
    })
}

/// Fills *out_options with what the program was compiled with. A placement that was left open is
/// WEIR_PLACEMENT_KERNEL.
///
/// Ownership: its pool is borrowed and lives as long as the program.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_program_get_options(
    program: *const weir_program,
    out_options: *mut weir_compile_options,
) -> weir_status {
    guard("weir_program_get_options", || {
        // SAFETY: the caller's handle, as documented.
        let options = unsafe { handle::borrow(program, "program") }?.options();
        let bit = |is_set: bool, bit: u64| if is_set { bit } else { 0 };
        let told = weir_compile_options {
            struct_size: 0,
            flags: bit(options.allow_absent, ALLOW_ABSENT)
                | bit(options.statistics, STATISTICS)
                | bit(options.without_device_control, NO_DEVICE_CONTROL)
                | bit(options.without_regions, NO_REGIONS)
                | bit(options.without_fusion, NO_FUSION),
            hop_ns: match options.hop_ns {
                None => 0,
                Some(0) => WEIR_HOP_NONE,
                Some(hop_ns) => hop_ns,
            },
            blocking_threadpool: handle::borrowed_opt_c(options.blocking_pool.as_ref()),
            partial_runs: options.partial_runs,
            max_concurrent_runs: options.max_concurrent_runs,
            placement: if options.any_engine { P::WEIR_PLACEMENT_ANY } else { P::WEIR_PLACEMENT_KERNEL } as u32,
            segments: match (options.without_segments, options.without_trial) {
                (true, _) => NEVER,
                (_, true) => ALWAYS,
                _ => TIMED,
            },
            reserved: 0,
        };
        // SAFETY: the caller's pointer, as documented.
        unsafe { versioned::write(out_options, &told, "out_options") }
    })
}

/// Takes one more reference.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_program_retain(program: *mut weir_program) -> weir_status {
    // SAFETY: the caller's handle, as documented.
    guard("weir_program_retain", || unsafe { handle::retain(program, "program") })
}

/// Gives up one reference. NULL does nothing. Runs hold references of their own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_program_release(program: *mut weir_program) {
    // SAFETY: the caller's handle, as documented.
    guard_release("weir_program_release", || unsafe { handle::release(program) });
}

/// Describes the program: its ports and nodes, and the runs that have begun, ended, failed, and are active.
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
/// Ownership: its engine is borrowed. Errors: OUT_OF_RANGE (index).
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
            let ports = if placement::is_input(kind)? { program.inputs() } else { program.outputs() };
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

/// Frees the memory that the program keeps for later runs: all values, and the blocks of dynamic ones, which otherwise
/// stay as large as the largest run needed. The next run allocates again. Active runs keep theirs.
///
/// Chapter: Shapes that a run decides.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_program_trim(program: *mut weir_program) -> weir_status {
    guard("weir_program_trim", || {
        // SAFETY: the caller's handle, as documented.
        unsafe { handle::borrow(program, "program") }?.trim();
        Ok(())
    })
}

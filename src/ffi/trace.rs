//! Traces.
//!
//! Chapter: Trace.

use super::argument::{out_ptr, out_value, string};
use super::guard::{guard, guard_release};
use super::{handle, versioned};
use crate::abi::*;
use crate::base::text::fixed;
use crate::base::{Code, Error, Result};
use crate::memory::heap;
use crate::ops::check::flags;
use crate::sync::{ambient, fork};
use crate::trace::{self, Filter, HooksOf, HostHooks, Settings, Tape, Trace, TraceEvent, TraceFormat, TraceRecord};
use std::any::Any;
use std::ffi::{c_char, c_void};
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;

fn within(value: usize, limits: &RangeInclusive<usize>, what: &str) -> Result<usize> {
    if limits.contains(&value) {
        return Ok(value);
    }
    let (least, most) = (limits.start(), limits.end());
    Err(Error::out_of_range(format!("options->{what} is {value}, expected {least} to {most}, or 0")))
}

/// # Safety
/// The handles are NULL or live.
unsafe fn settings(options: &weir_trace_options) -> Result<Settings> {
    const KEEP_LAST: u64 = weir_trace_flags::WEIR_TRACE_KEEP_LAST as u64;
    const ONLY_ASKED: u64 = weir_trace_flags::WEIR_TRACE_ONLY_ASKED as u64;
    let bits = flags(options.flags, KEEP_LAST | ONLY_ASKED, "options->flags")?;
    if options.reserved != 0 {
        return Err(Error::invalid(format!("options->reserved is {}, expected 0", options.reserved)));
    }
    // SAFETY: as demanded of the caller.
    let (domain, engine, program) = unsafe {
        (
            handle::share_opt(options.domain, "options->domain")?,
            handle::share_opt(options.engine, "options->engine")?,
            handle::share_opt(options.program, "options->program")?,
        )
    };
    let is_asked = bits & ONLY_ASKED != 0;
    let given = [domain.is_some(), engine.is_some(), program.is_some(), is_asked];
    if given.iter().filter(|given| **given).count() > 1 {
        return Err(Error::invalid(
            "options: a trace is of one of domain, engine, program, or of runs that ask for it (ONLY_ASKED)",
        ));
    }
    type KeptObject = Option<Arc<dyn Any + Send + Sync>>;
    let (filter, keeps): (Filter, KeptObject) = match (domain, engine, program) {
        (Some(domain), _, _) => (Filter::Domain(domain.id().number()), Some(domain)),
        (_, Some(engine), _) => (Filter::Engine(Arc::as_ptr(engine.account()).addr()), Some(engine)),
        (_, _, Some(program)) => (Filter::Program(program.identity()), Some(program)),
        _ if is_asked => (Filter::Asked, None),
        _ => (Filter::Everything, None),
    };
    let records = match options.records_per_thread {
        0 => Settings::DEFAULT_RECORDS,
        records => within(records, &Settings::RECORDS, "records_per_thread")?.next_power_of_two(),
    };
    let threads = match options.threads as usize {
        0 => Settings::DEFAULT_THREADS,
        threads => within(threads, &Settings::THREADS, "threads")?,
    };
    Ok(Settings { filter, keeps, keeps_last: bits & KEEP_LAST != 0, records, threads })
}

/// Begins a trace: from here on the work that it is of writes a record of each step into a ring of the thread's own.
/// Up to four traces record at once, of the same work or of different work. Runs that have begun are not part of it. A
/// trace that was never stopped ends when its last reference is released; what was recorded is gone then.
///
/// Errors: INVALID_ARGUMENT (two of domain, engine, program and ONLY_ASKED); OUT_OF_RANGE (records_per_thread,
/// threads); RESOURCE_EXHAUSTED (memory, or four traces are there that were not released).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_trace_start(
    options: *const weir_trace_options,
    out_trace: *mut *mut weir_trace,
) -> weir_status {
    guard("weir_trace_start", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, settings) =
            unsafe { (out_ptr(out_trace, "out_trace")?, settings(&versioned::read_or_zero(options, "options")?)?) };
        handle::into_c(heap::whole(|| Trace::start(settings))?, out)
    })
}

/// Ends the recording. What begins later is not part of the trace; what is under way then is, as far as it has come
/// when the trace is saved. Stopping a trace that was stopped does nothing.
///
/// Blocking: for at most a millisecond, in which it reads two clocks, if the trace is younger than that; and if devices
/// are in it, for as long as each takes to reach an event, at most a second.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_trace_stop(trace: *mut weir_trace) -> weir_status {
    guard("weir_trace_stop", || {
        // SAFETY: the caller's handle, as documented.
        unsafe { handle::borrow(trace, "trace") }?.stop();
        Ok(())
    })
}

/// Takes one more reference.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_trace_retain(trace: *mut weir_trace) -> weir_status {
    // SAFETY: the caller's handle, as documented.
    guard("weir_trace_retain", || unsafe { handle::retain(trace, "trace") })
}

/// Gives up one reference. NULL does nothing. The last one ends the trace; its memory is given back when no thread
/// writes to it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_trace_release(trace: *mut weir_trace) {
    // SAFETY: the caller's handle, as documented.
    guard_release("weir_trace_release", || unsafe { handle::release(trace) });
}

fn format_of(format: weir_trace_format) -> Result<TraceFormat> {
    use weir_trace_format_value as F;
    const ALL: [(F, TraceFormat); 7] = [
        (F::WEIR_TRACE_PERFETTO, TraceFormat::Perfetto),
        (F::WEIR_TRACE_CHROME, TraceFormat::Chrome),
        (F::WEIR_TRACE_FOLDED, TraceFormat::Folded),
        (F::WEIR_TRACE_PPROF, TraceFormat::Pprof),
        (F::WEIR_TRACE_REPORT, TraceFormat::Report),
        (F::WEIR_TRACE_HTML, TraceFormat::Html),
        (F::WEIR_TRACE_JSON, TraceFormat::Json),
    ];
    let known = ALL.iter().find(|(value, _)| *value as u32 == format);
    known.map(|(_, format)| *format).ok_or_else(|| Error::invalid(format!("format is {format}, which is no format")))
}

/// Saves what the trace holds now, in any state: nothing is taken out of it, and threads may write meanwhile. The file
/// is written beside the path, under a name of its own, and takes its place when all of it is on the disk; so it is
/// there whole or not at all. A path that leads to something else than a file (a pipe, a device) is written to as it
/// is. Each file says how many records were lost.
///
/// Blocking: as weir_trace_stop, and until it is written. Errors: INVALID_ARGUMENT (also: the path is a directory);
/// NOT_FOUND (no such directory); PERMISSION_DENIED; RESOURCE_EXHAUSTED (the disk is full, the file too large, memory);
/// UNKNOWN for other errors of the system, with its text.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_trace_save(
    trace: *const weir_trace,
    path: *const c_char,
    format: weir_trace_format,
) -> weir_status {
    guard("weir_trace_save", || {
        // SAFETY: the caller's pointers, as documented.
        let (trace, path) = unsafe { (handle::borrow(trace, "trace")?, string(path, "path")?) };
        let format = format_of(format)?;
        if path.is_empty() {
            return Err(Error::invalid("path is empty"));
        }
        trace.save(Path::new(path), format)
    })
}

/// As weir_trace_save, but passes the bytes to a function, in pieces of up to 64 KiB, in order.
///
/// Blocking: as weir_trace_stop, and until all is passed on. Errors: INVALID_ARGUMENT; RESOURCE_EXHAUSTED; the status
/// of the function.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_trace_save_to(
    trace: *const weir_trace,
    format: weir_trace_format,
    write: weir_trace_write_fn,
    ctx: *mut c_void,
) -> weir_status {
    guard("weir_trace_save_to", || {
        // SAFETY: the caller's handle, as documented.
        let trace = unsafe { handle::borrow(trace, "trace") }?;
        let format = format_of(format)?;
        let write = write.ok_or_else(|| Error::null("write"))?;
        trace.write(format, &mut |bytes| {
            // SAFETY: the host's function with its own context, and a piece that lives during the call.
            let status = ambient::call(|| unsafe { write(ctx, bytes.as_ptr().cast(), bytes.len()) });
            match status {
                0 => Ok(()),
                status => {
                    let code = Code::from_status(status).unwrap_or(Code::Unknown);
                    Err(Error::new(code, format!("write returned {status}")))
                }
            }
        })
    })
}

/// Fills *out_info. Threads may write meanwhile: then each figure is one of a recent moment.
///
/// Blocking: as weir_trace_stop.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_trace_get_info(trace: *const weir_trace, out_info: *mut weir_trace_info) -> weir_status {
    guard("weir_trace_get_info", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe {
            let figures = handle::borrow(trace, "trace")?.figures();
            let info = weir_trace_info {
                struct_size: 0,
                recording: u32::from(figures.is_recording),
                threads: figures.threads,
                records: figures.records,
                lost: figures.lost,
                lost_without_ring: figures.lost_without_ring,
                begin_ns: figures.begin_ns,
                end_ns: figures.end_ns,
                clock_error_ns: figures.clock_error_ns,
                clock: fixed(figures.clock),
            };
            versioned::write(out_info, &info, "out_info")
        }
    })
}

/// Fills *out_thread for thread `index` of the trace, in the order of their first records.
///
/// Errors: OUT_OF_RANGE (index).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_trace_get_thread(
    trace: *const weir_trace,
    index: usize,
    out_thread: *mut weir_trace_thread,
) -> weir_status {
    guard("weir_trace_get_thread", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe {
            let figures = handle::borrow(trace, "trace")?.thread(index)?;
            let thread = weir_trace_thread {
                struct_size: 0,
                os_id: figures.os_id,
                records: figures.records,
                lost: figures.lost,
                name: fixed(&figures.name),
            };
            versioned::write(out_thread, &thread, "out_thread")
        }
    })
}

/// Gives a name of the host's a number, for marks and spans: the same for the same text, in all traces, as long as the
/// process lives.
///
/// Errors: INVALID_ARGUMENT; RESOURCE_EXHAUSTED (memory, or there are 65,536 names).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_trace_intern(name: *const c_char, out_name: *mut u32) -> weir_status {
    guard("weir_trace_intern", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, name) = unsafe { (out_value(out_name, "out_name")?, string(name, "name")?) };
        out.set(heap::whole(|| trace::intern(name))?);
        Ok(())
    })
}

fn known(name: u32) -> Result<u32> {
    if trace::is_known(name) {
        return Ok(name);
    }
    Err(Error::invalid(format!("name is {name}, which weir_trace_intern has not returned")))
}

/// Writes a record into the traces of everything, and of what the thread works for.
fn note(event: TraceEvent, with: impl FnOnce(TraceRecord) -> TraceRecord) {
    if trace::is_on() {
        Tape::of_thread().note(event, with);
    }
}

/// Marks this moment, with a value of the host's. The mark is part of traces of the whole process, and, inside of a
/// node of a run, of the traces that the run is part of. While no trace records, it does nothing.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_trace_mark(name: u32, value: u64) -> weir_status {
    guard("weir_trace_mark", || {
        let object = known(name)?;
        note(TraceEvent::Mark, |record| TraceRecord { object, ..record }.with_number(value));
        Ok(())
    })
}

/// Begins a span of the host's on this thread, which ends with the weir_trace_span_end that belongs to it: spans lie in
/// one another. It is part of the traces that a mark would be part of.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_trace_span_begin(name: u32) -> weir_status {
    guard("weir_trace_span_begin", || {
        let object = known(name)?;
        note(TraceEvent::SpanBegin, |record| TraceRecord { object, ..record });
        Ok(())
    })
}

/// Ends the span that this thread has begun last. An end without a beginning does nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_trace_span_end() {
    guard_release("weir_trace_span_end", || note(TraceEvent::SpanEnd, |record| record));
}

/// From here on these functions are called with ctx while programs run (weir_trace_hooks); NULL takes them away. The
/// struct is copied. There is one set of hooks in the process: a new one takes the place of the one before.
///
/// A run is told to the hooks that are there when it begins, to its end and in all of its threads; so is a region. Runs
/// that are under way when hooks are set are not told; those that are under way when hooks are taken away still are.
/// What ctx points to may be freed when hooks->release was called: behind the last of those runs. If this call fails,
/// it is never called. May be called from anywhere, also from nodes and hooks. A child of fork has no hooks.
///
/// While there are no hooks and no trace records, a run pays for one read of a word.
///
/// Errors: INVALID_ARGUMENT (struct_size, no function); RESOURCE_EXHAUSTED (memory, or runs that do not end keep seven
/// or eight sets of hooks that were taken away).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_trace_set_hooks(hooks: *const weir_trace_hooks, ctx: *mut c_void) -> weir_status {
    guard("weir_trace_set_hooks", || {
        fork::hook();
        // SAFETY: the caller's pointer, as documented.
        let Some(hooks) = unsafe { versioned::read_opt(hooks, "hooks") }? else {
            return trace::set_hooks([(HooksOf::Host, None)]);
        };
        // SAFETY: the functions follow their contract.
        let hooks = unsafe { HostHooks::new(hooks, ctx) };
        if !hooks.has_any() {
            return Err(Error::invalid("hooks: no function is set"));
        }
        let hooks = heap::whole(|| Ok(hooks.boxed()))?;
        trace::set_hooks([(HooksOf::Host, Some(hooks))])
    })
}

/// From here on these tools are told of runs by markers in their own format, and no others: OR of weir_trace_markers; 0
/// is none, as at the start. A tool names its library by a variable of the environment, which this reads; the library
/// is opened, and stays. Markers go beside the host's hooks and traces. Of runs under way the same holds as for hooks.
/// The variable WEIR_TRACE_MARKERS of the environment ("nvtx", "itt", "nvtx,itt") does the same in the first call of
/// the process.
///
/// Errors: INVALID_ARGUMENT (an unknown bit); NOT_FOUND (the variable is not set, or its library cannot be opened; the
/// text names it); UNAVAILABLE (the library takes no markers); UNIMPLEMENTED (not Linux); RESOURCE_EXHAUSTED as of
/// weir_trace_set_hooks. Then nothing has changed.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_trace_use_markers(kinds: u32) -> weir_status {
    guard("weir_trace_use_markers", || {
        const NVTX: u64 = weir_trace_markers::WEIR_TRACE_NVTX as u64;
        const ITT: u64 = weir_trace_markers::WEIR_TRACE_ITT as u64;
        fork::hook();
        let bits = flags(u64::from(kinds), NVTX | ITT, "kinds")?;
        trace::use_markers(bits & NVTX != 0, bits & ITT != 0)
    })
}

//! The conformance checks of a host's pool and of devices.
//!
//! Chapter: Conformance.

use super::argument::out_value;
use super::guard::guard;
use super::threadpool::host_pool;
use super::versioned;
use crate::abi::weir_conformance_verdict_value as V;
use crate::abi::*;
use crate::base::{Error, Result};
use crate::engine;
use crate::sync::fork;
use crate::threadpool::conformance::{ClauseVerdict, Options, ReportLine};
use std::ffi::{CString, c_void};

/// Checks a pool against docs/threadpool.md, and calls `report` once for each clause, in order, and then for notable
/// properties of the pool. The vtable and ctx are used as by weir_threadpool_create: vtable->release(ctx) is called at
/// the end, which is checked too. Nothing else may use the pool meanwhile. A pool that loses tasks or does not return
/// ends in a failed clause and not in a hang; a pool that does not return is never released.
///
/// Thread safety: any thread, but none of the pool. Blocking: a second or so on a good pool; on a bad one up to some
/// budgets (options->budget_ns) for each clause. Ownership: ctx passes to weir, if this call succeeds; the options are
/// copied and may be NULL; report_arg is the caller's. *out_failed is the number of clauses that failed.
/// Errors: INVALID_ARGUMENT (those of weir_threadpool_create; report is NULL; unknown options); then release is not
/// called. A broken clause is no error.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_threadpool_conformance(
    vtable: *const weir_threadpool_vtable,
    ctx: *mut c_void,
    options: *const weir_conformance_options,
    report: weir_conformance_fn,
    report_arg: *mut c_void,
    out_failed: *mut i32,
) -> weir_status {
    guard("weir_threadpool_conformance", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, options) =
            unsafe { (out_value(out_failed, "out_failed")?, versioned::read_opt(options, "options")?) };
        let options = options.map_or(Ok(Options::default()), |options| checked(&options))?;
        let report = report.ok_or_else(|| Error::null("report"))?;
        // SAFETY: the caller's pointers, as documented. From here on nothing fails: ctx is the library's.
        let host = unsafe { host_pool(vtable, ctx) }?;
        let lines = engine::examine(host, options);
        // SAFETY: the host's function with its own argument.
        out.set(unsafe { say_all(&lines, report, report_arg) });
        Ok(())
    })
}

/// Checks a device against docs/devices.md, and calls `report` once for each clause, in order: whether streams, events,
/// copies and kernels keep their contract. It calls the device's own functions, so plug-in devices and weir's own pass
/// the same checks. A device that hangs ends in a failed clause and not in a hang. Nothing else should use the device
/// meanwhile.
///
/// Thread safety: any thread, but no callback of a device. Blocking: a second or so on a good device; on a bad one up
/// to some budgets (options->budget_ns) for each clause. Ownership: the options are copied and may be NULL; report_arg
/// is the caller's. *out_failed is the number of clauses that failed. Errors: OUT_OF_RANGE (index); UNIMPLEMENTED for a
/// CPU engine; the errors of opening the device. A broken clause is no error.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_device_conformance(
    kind: weir_engine_kind,
    index: u32,
    options: *const weir_conformance_options,
    report: weir_conformance_fn,
    report_arg: *mut c_void,
    out_failed: *mut i32,
) -> weir_status {
    guard("weir_device_conformance", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, options) =
            unsafe { (out_value(out_failed, "out_failed")?, versioned::read_opt(options, "options")?) };
        let options = options.map_or(Ok(Options::default()), |options| checked(&options))?;
        let report = report.ok_or_else(|| Error::null("report"))?;
        fork::check()?;
        fork::arm();
        let lines = engine::examine_device(engine::checked_kind(kind)?, index, options)?;
        // SAFETY: the host's function with its own argument.
        out.set(unsafe { say_all(&lines, report, report_arg) });
        Ok(())
    })
}

pub(super) fn checked(options: &weir_conformance_options) -> Result<Options> {
    const MOST_NS: u64 = 100_000_000_000;
    const MOST_ROUNDS: u32 = 100_000;
    let default = Options::default();
    if options.flags != 0 {
        return Err(Error::invalid(format!("options->flags has unknown bits {:#x} (known: 0x0)", options.flags)));
    }
    if options.budget_ns > MOST_NS {
        return Err(Error::invalid(format!("options->budget_ns is {}, expected at most {MOST_NS}", options.budget_ns)));
    }
    let rounds = u32::try_from(options.rounds)
        .ok()
        .filter(|&rounds| rounds <= MOST_ROUNDS)
        .ok_or_else(|| Error::invalid(format!("options->rounds is {}, expected 0 to {MOST_ROUNDS}", options.rounds)))?;
    Ok(Options {
        budget_ns: if options.budget_ns == 0 { default.budget_ns } else { options.budget_ns },
        rounds: if rounds == 0 { default.rounds } else { rounds },
        seed: options.seed,
    })
}

type Report = unsafe extern "C" fn(*mut c_void, *const weir_conformance_line);

/// Reports the lines, and returns how many clauses failed.
///
/// # Safety
/// The report may be called with the argument.
pub(super) unsafe fn say_all(lines: &[ReportLine], report: Report, report_arg: *mut c_void) -> i32 {
    for line in lines {
        say(line, &|line| {
            // SAFETY: as demanded of the caller; the line lives during the call.
            unsafe { report(report_arg, line) }
        });
    }
    lines.iter().filter(|line| line.verdict == ClauseVerdict::Fail).count() as i32
}

/// Converts a line for C.
fn say(line: &ReportLine, report: &dyn Fn(&weir_conformance_line)) {
    let text = |text: &str| CString::new(text.replace('\0', " ")).unwrap_or_default();
    let (clause, title, what) = (text(line.clause), text(line.title), text(&line.text));
    let verdict = match line.verdict {
        ClauseVerdict::Pass => V::WEIR_CONFORMANCE_PASS,
        ClauseVerdict::Fail => V::WEIR_CONFORMANCE_FAIL,
        ClauseVerdict::NotOffered => V::WEIR_CONFORMANCE_NOT_OFFERED,
        ClauseVerdict::Note => V::WEIR_CONFORMANCE_NOTE,
        ClauseVerdict::NotChecked => V::WEIR_CONFORMANCE_NOT_CHECKED,
    };
    report(&weir_conformance_line {
        struct_size: size_of::<weir_conformance_line>(),
        clause: clause.as_ptr(),
        title: title.as_ptr(),
        text: what.as_ptr(),
        verdict: verdict as i32,
        reserved: 0,
    });
}

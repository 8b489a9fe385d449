//! The conformance checks of a host's transport between ranks.
//!
//! Chapter: Conformance.

use super::argument::out_value;
use super::conformance::{checked, say_all};
use super::guard::guard;
use super::versioned;
use crate::abi::*;
use crate::base::Error;
use crate::comm::{self, host::HostTransport, transport::Transport};
use crate::threadpool::conformance::Options;
use std::ffi::c_void;

/// Checks a transport against docs/ranks.md, and calls `report` once for each clause, in order, and then for notable
/// properties of the transport. All ranks call it, at the same time and with the same options; each reports what it has
/// seen. The vtable and ctx are used as by weir_comm_create, but vtable->release is not called. Nothing else may use
/// the transport meanwhile. An operation that is not over in time ends in a failed clause and not in a hang: its memory
/// is kept for good, and the clauses behind it are not checked. A function of the vtable that never returns is not
/// survived.
///
/// Thread safety: any thread; the transport's functions are called in it. Blocking: some seconds, in which the thread
/// runs and sleeps; on a bad transport one budget (options->budget_ns) more. Ownership: ctx stays the caller's; the
/// options are copied and may be NULL; report_arg is the caller's. *out_failed is the number of clauses that failed on
/// this rank. Errors: INVALID_ARGUMENT, OUT_OF_RANGE (those of weir_comm_create; report is NULL; unknown options); the
/// status of get_info. A broken clause is no error.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_comm_conformance(
    vtable: *const weir_comm_vtable,
    ctx: *mut c_void,
    options: *const weir_conformance_options,
    report: weir_conformance_fn,
    report_arg: *mut c_void,
    out_failed: *mut i32,
) -> weir_status {
    guard("weir_comm_conformance", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, options) =
            unsafe { (out_value(out_failed, "out_failed")?, versioned::read_opt(options, "options")?) };
        let options = options.map_or(Ok(Options::default()), |options| checked(&options))?;
        let report = report.ok_or_else(|| Error::null("report"))?;
        // SAFETY: the caller's pointers, as documented.
        let transport = unsafe { HostTransport::new(versioned::read(vtable, "vtable")?, ctx)? };
        if transport.info().on_host.ops == 0 {
            return Err(Error::invalid("vtable->start is NULL: there is nothing in the host's memory to look at"));
        }
        let lines = comm::conformance::examine(&transport, options);
        // SAFETY: the host's function with its own argument.
        out.set(unsafe { say_all(&lines, report, report_arg) });
        Ok(())
    })
}

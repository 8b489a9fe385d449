//! Variables of the environment: markers for tools, and a trace, begun by the first call of a process and saved at its
//! end.
//!
//! `at_end` stands in the list of functions that the loader calls (`.fini_array`) when the process has returned from
//! main or called exit, behind all that was registered with atexit. The list belongs to the object that the library is
//! linked into. So nothing is registered that could be left behind when that is unloaded: libweir.so never is, and a
//! plug-in with libweir.a in it saves when it is. A process that ends otherwise (_exit, abort, a signal) saves nothing,
//! nor does a child of fork.

use crate::base::{Error, Result};
use crate::memory::heap;
use crate::sync::Global;
use crate::trace::{self, ProcessTrace};
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static TRACE: Global<Option<ProcessTrace>> = Global::new(|| None);
/// ORDERING: Relaxed; a hint to look at `TRACE`, whose lock orders the rest.
static IS_BEGUN: AtomicBool = AtomicBool::new(false);

#[cfg(target_os = "linux")]
#[used]
// SAFETY: the loader calls what is in this section as functions without arguments.
#[unsafe(link_section = ".fini_array")]
static AT_END: extern "C" fn() = at_end;

/// Called once in a process, by its first call. Never fails: what is wrong is said on standard error.
#[cold]
pub(super) fn begin() {
    // The list is of use where it is linked, which this makes sure of.
    #[cfg(target_os = "linux")]
    std::hint::black_box(&raw const AT_END);
    if let Err(error) = caught(|| heap::whole(trace::use_markers_of_environment)) {
        complain(&error.within("there are no markers"));
    }
    match caught(|| heap::whole(ProcessTrace::begin)) {
        Ok(None) => {}
        Ok(begun) => {
            *TRACE.lock() = begun;
            IS_BEGUN.store(true, Relaxed);
        }
        Err(error) => complain(&error.within("nothing is traced")),
    }
}

extern "C" fn at_end() {
    if !IS_BEGUN.load(Relaxed) {
        return;
    }
    let saved = caught(|| {
        match TRACE.lock().take() {
            Some(trace) if trace.is_own() => trace.save(&complain),
            others => std::mem::forget(others),
        }
        Ok(())
    });
    if let Err(error) = saved {
        complain(&error.within("the trace is not saved"));
    }
}

/// As in a call of the host's: out of memory and panics are errors.
fn caught<T>(body: impl FnOnce() -> Result<T>) -> Result<T> {
    let checked = || heap::enter().and_then(|()| body());
    catch_unwind(AssertUnwindSafe(checked)).unwrap_or_else(|payload| {
        let error = Error::from_panic(&*payload);
        std::mem::forget(payload);
        Err(error)
    })
}

/// A line on standard error, in one piece. Without standard error nobody is told.
fn complain(error: &Error) {
    let _ = std::io::stderr().write_all(format!("weir: {}\n", error.message()).as_bytes());
}

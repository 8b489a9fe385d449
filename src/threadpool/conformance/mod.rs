//! The conformance kit: does a host's pool keep its side of docs/threadpool.md?
//!
//! The pool is put behind the same checker as in checking mode (`host::checks`), which names every wrong call. The
//! *probes* here make the traffic that provokes wrong calls, and detect what the checker cannot: a task that never
//! runs, a call that never returns. Each probe is responsible for one clause. It runs in a thread of its own and within
//! a time budget, so that a pool that loses tasks or hangs ends as a failed clause. A probe that does not return is
//! abandoned, with the pool, and the later clauses are not checked.
//!
//! A clause may be broken during the probe of another one, or long after, by a task that runs again. Hence the verdicts
//! are final only after the pool's release.
#![forbid(unsafe_code)]

mod handing;
mod identity;
mod observe;
mod stack;
mod subject;
mod traffic;

pub use subject::{ClauseVerdict, Options, Outcome, PoolSubject, ProbeBench, ReportLine};

use super::host::HostVtable;

/// Runs the probes of the host's clauses, and of regions. Others may be added (`PoolSubject::probe`) before `finish`.
pub fn begin(vtable: HostVtable, options: Options) -> PoolSubject {
    let subject = PoolSubject::new(vtable, options);
    identity::width(&subject);
    handing::schedule(&subject);
    handing::parallel_for(&subject);
    handing::early_return(&subject);
    handing::refusal(&subject);
    handing::callers(&subject);
    handing::progress(&subject);
    identity::threads(&subject);
    identity::help(&subject);
    stack::regions(&subject);
    subject
}

/// Releases the pool and gives the final lines: the clauses in order, then the notes.
pub fn finish(subject: PoolSubject) -> Vec<ReportLine> {
    let notes = observe::notes(&subject);
    subject.finish(notes)
}

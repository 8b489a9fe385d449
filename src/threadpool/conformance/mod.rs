//! The conformance kit: does a host's pool keep its side of docs/threadpool.md?
//!
//! The pool is put behind the same watch as in checking mode (`host::checks`), which names every wrong call. The
//! *probes* here make the traffic that brings wrong calls about, and see what the watch cannot: a task that never
//! comes, a call that never returns. Each probe answers for one clause. It runs in a thread of its own and within a
//! time budget, so that a pool that loses tasks or hangs ends as a failed clause. A probe that does not come back is
//! left behind, with the pool, and the clauses after it are not checked.
//!
//! A clause may be broken during the probe of another one, or long after, by a task that is run once more. Hence the
//! verdicts are final only after the pool's release.
#![forbid(unsafe_code)]

mod handing;
mod identity;
mod observe;
mod stack;
mod subject;
mod traffic;

pub use subject::{Bench, Line, Options, Outcome, Subject, Verdict};

use super::host::HostVtable;

/// Runs the probes of the host's clauses, and of regions. Others may be added (`Subject::probe`) before `finish`.
pub fn begin(vtable: HostVtable, options: Options) -> Subject {
    let subject = Subject::new(vtable, options);
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
pub fn finish(subject: Subject) -> Vec<Line> {
    let notes = observe::notes(&subject);
    subject.finish(notes)
}

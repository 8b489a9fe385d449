//! Recordings: device work that is built once and then submitted many times, each time as one.
//!
//! A recording is a list of steps in topological order: a step may begin when its predecessors are over, and unordered
//! steps may run in any order, or concurrently. The device makes an `Executable` of it. A stream that gets an
//! executable (`DeviceStream::replay`) executes all of its steps, after all earlier work in the stream and before all
//! later work.
//!
//! *Contract.* One thread at a time uses an executable, and one stream at a time: its launches are ordered. It, and all
//! objects that its steps name, live until an event behind its last launch was reached. `update` changes later launches
//! only.
//!
//! *Branches and loops* are steps that have steps of their own: which of them run, and how often, is read from the
//! device's memory when the step begins, so the host is not involved (`Accelerator::control_flow`); a loop may instead
//! compare two numbers. Steps inside are ordered as those of a recording, by indices into their own list; all of them
//! come after the step's own predecessors, and its successors after all of them. `update` is for the outermost list
//! only, and changes nothing in a branch or loop: steps inside use fixed addresses. A copy inside is between the
//! device's own memory and itself, or pinned host memory. `Recording::check` refuses invalid recordings.
#![forbid(unsafe_code)]

use super::predicate::{Integer, Predicate};
use super::{Fill, Launch, Transfer};
use crate::base::{Error, Result};
use std::any::Any;
use std::fmt::Debug;

/// The work of a step.
#[derive(Clone, Copy, Debug)]
pub enum RecordedWork<'a> {
    Launch(Launch<'a>),
    Copy(Transfer<'a>),
    Fill(Fill<'a>),
    Branch(RecordedBranch<'a>),
    Loop(RecordedLoop<'a>),
}

/// One list of several.
#[derive(Clone, Copy, Debug)]
pub struct RecordedBranch<'a> {
    pub name: &'a str,
    pub choice: Integer,
    /// Two lists: the first one runs if the choice is 0, else the second one. Otherwise the list with that number runs,
    /// or the last one if there is none.
    pub is_cond: bool,
    pub branches: &'a [&'a [RecordedStep<'a>]],
}

/// A list that runs while the predicate holds, which is read before each iteration, also before the first.
#[derive(Clone, Copy, Debug)]
pub struct RecordedLoop<'a> {
    pub name: &'a str,
    pub predicate: Predicate,
    pub body: &'a [RecordedStep<'a>],
    /// Steps of the body after which the predicate may be read for the next iteration: no other step writes the
    /// operands. `None`: it is read after all steps.
    pub behind: Option<&'a [usize]>,
}

impl RecordedBranch<'_> {
    /// Which of so many lists runs, also for a cond.
    pub fn chosen(choice: i64, lists: usize) -> usize {
        let last = lists - 1;
        usize::try_from(choice).map_or(last, |choice| choice.min(last))
    }
}

impl RecordedWork<'_> {
    pub fn name(&self) -> &str {
        match self {
            RecordedWork::Launch(launch) => launch.name,
            RecordedWork::Copy(transfer) => transfer.name,
            RecordedWork::Fill(fill) => fill.name,
            RecordedWork::Branch(branch) => branch.name,
            RecordedWork::Loop(again) => again.name,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct RecordedStep<'a> {
    pub work: RecordedWork<'a>,
    /// Earlier steps of the list that are over when it begins.
    pub after: &'a [usize],
}

#[derive(Debug)]
pub struct Recording<'a> {
    /// For messages.
    pub name: &'a str,
    pub steps: &'a [RecordedStep<'a>],
}

impl Recording<'_> {
    /// Refuses edges from later steps, and invalid branches and loops.
    pub fn check(&self) -> Result<()> {
        check(self.name, self.steps)
    }
}

fn check(of: &str, steps: &[RecordedStep<'_>]) -> Result<()> {
    for (at, step) in steps.iter().enumerate() {
        let name = step.work.name();
        if let Some(before) = step.after.iter().find(|&&before| before >= at) {
            return Err(Error::invalid(format!("{of}: step {at}, {name}, comes after step {before}")));
        }
        let refuse = |error: Error| error.within(format_args!("{of}: {name}"));
        match &step.work {
            RecordedWork::Branch(branch) => {
                branch.choice.check("its choice").map_err(refuse)?;
                let lists = branch.branches.len();
                if lists == 0 || branch.is_cond && lists != 2 {
                    let expected = if branch.is_cond { "2" } else { "1 or more" };
                    return Err(refuse(Error::invalid(format!("it has {lists} branches, expected {expected}"))));
                }
                branch.branches.iter().try_for_each(|steps| check(name, steps)).map_err(|error| error.within(of))?;
            }
            RecordedWork::Loop(again) => {
                again.predicate.check().map_err(refuse)?;
                let steps = again.body.len();
                if let Some(step) = again.behind.into_iter().flatten().find(|&&step| step >= steps) {
                    return Err(refuse(Error::invalid(format!("it is read behind step {step} of {steps}"))));
                }
                check(name, again.body).map_err(|error| error.within(of))?;
            }
            RecordedWork::Launch(_) | RecordedWork::Copy(_) | RecordedWork::Fill(_) => {}
        }
    }
    Ok(())
}

/// A recording in the form that a device runs.
pub trait Executable: Any + Send + Sync + Debug {
    /// Makes a step use other addresses from the next launch on; kernel, shapes and sizes are unchanged.
    fn update(&self, step: usize, work: &RecordedWork<'_>) -> crate::base::Result<()>;
}

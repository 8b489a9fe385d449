//! Recordings: work of a device's that is put together once and then submitted many times, each time as one.
//!
//! A recording is a list of steps in an order that their edges allow: a step may begin when those that it names are
//! over, and steps that no edges order may run in any order, or side by side. The device makes an `Executable` of it. A
//! stream that is given an executable (`DeviceStream::replay`) does all of its steps, behind what lies before it in the
//! stream and before what follows.
//!
//! *What is promised.* One thread at a time uses an executable, and it is given to one stream at a time: launches of it
//! come one after the other. It, and all that its steps name, stay until an event behind its last launch was reached.
//! `update` changes later launches, and none that was made.
//!
//! *Branches and loops* are steps that have steps of their own: which of them run, and how often, is read from the
//! device's memory when their turn comes, so the host is not asked (`Accelerator::control_flow`); of a loop it may be
//! two numbers and how they compare. Steps inside come after each other as those of a recording do, by numbers of their
//! own list; all of them are behind what the step itself comes after, and what comes after the step is behind all of
//! them. `update` is for the outermost list only, and of a branch or loop changes nothing: what is inside uses
//! addresses that stay. A copy inside is between bytes of the device's own memory, or of pinned memory of the host's.
//! `Recording::check` refuses what no device takes.
#![forbid(unsafe_code)]

use super::comparison::Comparison;
use super::{Fill, Launch, Transfer};
use crate::base::{Error, Result, dtype};
use std::any::Any;
use std::fmt::Debug;

/// What a step does.
#[derive(Clone, Copy, Debug)]
pub enum Work<'a> {
    Launch(Launch<'a>),
    Copy(Transfer<'a>),
    Fill(Fill<'a>),
    Branch(Branch<'a>),
    Loop(Loop<'a>),
}

/// An integer in the device's memory, read when the step's turn comes: the first element of a tensor of bool, u8, s8 or
/// s32.
#[derive(Clone, Copy, Debug)]
pub struct Integer {
    pub address: usize,
    pub dtype: u32,
}

/// One list of several.
#[derive(Clone, Copy, Debug)]
pub struct Branch<'a> {
    pub name: &'a str,
    pub choice: Integer,
    /// Two lists: the first one is done if the choice is 0, the second one if it is not. Otherwise the list with that
    /// number, or the last one if there is none.
    pub is_cond: bool,
    pub branches: &'a [&'a [Step<'a>]],
}

/// What a loop goes by: an integer that is not 0, or a comparison that holds.
#[derive(Clone, Copy, Debug)]
pub enum Predicate {
    Integer(Integer),
    Comparison(Comparison),
}

/// A list that is done again as long as the predicate holds: it is read before each time, also before the first.
#[derive(Clone, Copy, Debug)]
pub struct Loop<'a> {
    pub name: &'a str,
    pub predicate: Predicate,
    pub body: &'a [Step<'a>],
    /// Steps of the body behind which the predicate may be read for the next time: no step that these do not imply
    /// writes what is read. None: it is read behind all of them.
    pub behind: Option<&'a [usize]>,
}

impl From<Integer> for Predicate {
    fn from(integer: Integer) -> Predicate {
        Predicate::Integer(integer)
    }
}

impl Predicate {
    /// Where it reads, and how many bytes.
    pub fn reads(&self) -> impl Iterator<Item = (usize, usize)> {
        let (addresses, bytes) = match self {
            Predicate::Integer(integer) => ([integer.address; 2], integer.form().map_or(0, i32::unsigned_abs) as usize),
            Predicate::Comparison(comparison) => (comparison.addresses, Comparison::BYTES),
        };
        let count = if addresses[0] == addresses[1] { 1 } else { 2 };
        addresses.into_iter().take(count).map(move |address| (address, bytes))
    }

    fn check(&self) -> Result<()> {
        match self {
            Predicate::Integer(integer) => integer.check("its predicate"),
            Predicate::Comparison(comparison) => comparison.check("its predicate"),
        }
    }
}

impl Integer {
    /// How it is read: bytes that are taken as they are, less than 0 if with a sign; None: it is none of these types.
    pub fn form(&self) -> Option<i32> {
        match self.dtype {
            dtype::BOOL | dtype::U8 => Some(1),
            dtype::S8 => Some(-1),
            dtype::S32 => Some(4),
            _ => None,
        }
    }

    fn check(&self, what: &str) -> Result<()> {
        let name = dtype::name(self.dtype);
        let Some(form) = self.form() else {
            return Err(Error::invalid(format!("{what} is of {name}, expected bool, u8, s8 or s32")));
        };
        if self.address.is_multiple_of(form.unsigned_abs() as usize) {
            return Ok(());
        }
        Err(Error::invalid(format!("{what} at {:#x} is not aligned as {name} is", self.address)))
    }
}

impl Branch<'_> {
    /// Which of so many lists is done, also if it is a cond.
    pub fn chosen(choice: i64, lists: usize) -> usize {
        let last = lists - 1;
        usize::try_from(choice).map_or(last, |choice| choice.min(last))
    }
}

impl Work<'_> {
    pub fn name(&self) -> &str {
        match self {
            Work::Launch(launch) => launch.name,
            Work::Copy(transfer) => transfer.name,
            Work::Fill(fill) => fill.name,
            Work::Branch(branch) => branch.name,
            Work::Loop(again) => again.name,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    pub work: Work<'a>,
    /// Steps before it in the list that are over when it begins.
    pub after: &'a [usize],
}

#[derive(Debug)]
pub struct Recording<'a> {
    /// For texts.
    pub name: &'a str,
    pub steps: &'a [Step<'a>],
}

impl Recording<'_> {
    /// Refuses edges to later steps, and branches and loops that mean nothing.
    pub fn check(&self) -> Result<()> {
        check(self.name, self.steps)
    }
}

fn check(of: &str, steps: &[Step<'_>]) -> Result<()> {
    for (at, step) in steps.iter().enumerate() {
        let name = step.work.name();
        if let Some(before) = step.after.iter().find(|&&before| before >= at) {
            return Err(Error::invalid(format!("{of}: step {at}, {name}, comes after step {before}")));
        }
        let refuse = |error: Error| error.within(format_args!("{of}: {name}"));
        match &step.work {
            Work::Branch(branch) => {
                branch.choice.check("its choice").map_err(refuse)?;
                let lists = branch.branches.len();
                if lists == 0 || branch.is_cond && lists != 2 {
                    let expected = if branch.is_cond { "2" } else { "1 or more" };
                    return Err(refuse(Error::invalid(format!("it has {lists} branches, expected {expected}"))));
                }
                branch.branches.iter().try_for_each(|steps| check(name, steps)).map_err(|error| error.within(of))?;
            }
            Work::Loop(again) => {
                again.predicate.check().map_err(refuse)?;
                let steps = again.body.len();
                if let Some(step) = again.behind.into_iter().flatten().find(|&&step| step >= steps) {
                    return Err(refuse(Error::invalid(format!("it is read behind step {step} of {steps}"))));
                }
                check(name, again.body).map_err(|error| error.within(of))?;
            }
            Work::Launch(_) | Work::Copy(_) | Work::Fill(_) => {}
        }
    }
    Ok(())
}

/// A recording in the form that a device runs.
pub trait Executable: Any + Send + Sync + Debug {
    /// Has a step use other addresses from the next launch on; the kernel, the shapes and the bytes are those of
    /// before.
    fn update(&self, step: usize, work: &Work<'_>) -> crate::base::Result<()>;
}

//! Recordings: work of a device's that is put together once and then submitted many times, each time as one.
//!
//! A recording is a list of steps in an order that their edges allow: a step may begin when those that it names are over, and steps that
//! no edges order may run in any order, or side by side. The device makes an `Executable` of it. A stream that is given an executable
//! (`DeviceStream::replay`) does all of its steps, behind what lies before it in the stream and before what follows.
//!
//! *What is promised.* One thread at a time uses an executable, and it is given to one stream at a time: launches of it come one after
//! the other. It, and all that its steps name, stay until an event behind its last launch was reached. `update` changes later
//! launches, and none that was made.
#![forbid(unsafe_code)]

use super::{Fill, Launch, Transfer};
use std::any::Any;
use std::fmt::Debug;

/// What a step does.
#[derive(Clone, Copy, Debug)]
pub enum Work<'a> {
    Launch(Launch<'a>),
    Copy(Transfer<'a>),
    Fill(Fill<'a>),
}

impl Work<'_> {
    pub fn name(&self) -> &str {
        match self {
            Work::Launch(launch) => launch.name,
            Work::Copy(transfer) => transfer.name,
            Work::Fill(fill) => fill.name,
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

/// A recording in the form that a device runs.
pub trait Executable: Any + Send + Sync + Debug {
    /// Has a step use other addresses from the next launch on; the kernel, the shapes and the bytes are those of before.
    fn update(&self, step: usize, work: &Work<'_>) -> crate::base::Result<()>;
}

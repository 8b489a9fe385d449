//! Settings of a compilation and of a run.
#![forbid(unsafe_code)]

use crate::base::object::tag;
use crate::base::{Error, Kind, Ref, Result, live};
use crate::memory::Flags;
use crate::stream::Listener;
use crate::threadpool::ThreadPool;
use std::sync::Arc;

#[derive(Clone, Debug, Default)]
pub struct CompileOptions {
    /// What bringing work to another thread costs, in nanoseconds; None = what the run's pool costs.
    pub hop_ns: Option<u64>,
    /// Whether outputs may be absent.
    pub allow_absent: bool,
    /// Whether to keep figures of every node.
    pub statistics: bool,
    /// Runs the kernels that may block.
    pub blocking_pool: Option<Ref<ThreadPool>>,
    /// How many lists of outputs the program keeps compiled for runs that ask for a part of them; 0 = there are no such
    /// runs.
    pub partial_runs: usize,
    /// Whether any engine may do the nodes of which nothing else was said.
    pub any_engine: bool,
    /// How many runs may go on at once; 0 = any number.
    pub max_concurrent_runs: u32,
    /// Whether work on other engines is issued piece by piece in every run.
    pub without_segments: bool,
    /// Whether segments are submitted as recordings wherever they can be, without a trial of the other way.
    pub without_trial: bool,
    /// Whether the host decides in branches and loops on devices, even where these could.
    pub without_device_control: bool,
    /// Whether devices are offered no several nodes to make one kernel of.
    pub without_regions: bool,
}

/// Whether an output of a kernel takes over the memory of an input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Forwarding {
    /// If the kernel can work in place and is the last who uses the input.
    #[default]
    ByLastUse,
    Never,
    /// It must be this input's, or the graph is refused.
    Reserved(u16),
}

#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Comes before the stream's pool and the engine's.
    pub threadpool: Option<Ref<ThreadPool>>,
    /// How long after the call nothing is begun any more, in nanoseconds; 0 = no limit.
    pub deadline_ns: u64,
    /// Where to say which outputs were absent.
    pub absent: Option<Flags>,
    /// One thread, in the program's order.
    pub deterministic: bool,
    /// After a failure, run what does not depend on it.
    pub finish_independent: bool,
    /// The outputs that the run is to compute, by index; None = all.
    pub outputs: Option<Box<[usize]>>,
    /// Whether the run fails where it would have to wait for others of its program.
    pub no_wait: bool,
    /// Who is told when a run on an asynchronous stream is over.
    pub listener: Option<Arc<dyn Listener>>,
}

impl RunOptions {
    /// For a run that is over when the call returns.
    pub fn refuse_listener(&self) -> Result<()> {
        match self.listener {
            None => Ok(()),
            Some(_) => Err(Error::invalid(
                "the options have a notice, which is for runs on asynchronous streams; this one is over when the call \
                 returns",
            )),
        }
    }
}

impl Kind for CompileOptions {
    const TAG: u32 = tag::COMPILE_OPTIONS;
    const NAME: &'static str = "compile_options";
    const COUNTER: live::Counter = live::Counter::Attrs;
}

impl Kind for RunOptions {
    const TAG: u32 = tag::RUN_OPTIONS;
    const NAME: &'static str = "run_options";
    const COUNTER: live::Counter = live::Counter::Attrs;
}

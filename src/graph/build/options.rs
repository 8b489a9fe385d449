//! Settings of a compilation and of a run.
#![forbid(unsafe_code)]

use crate::base::{Error, Ref, Result};
use crate::memory::Flags;
use crate::stream::{Listener, ProgressListener};
use crate::threadpool::ThreadPool;

#[derive(Clone, Debug, Default)]
pub struct CompileOptions {
    /// The cost of moving work to another thread, in nanoseconds; `None` = the measured cost of the run's pool.
    pub hop_ns: Option<u64>,
    /// Whether outputs may be absent.
    pub allow_absent: bool,
    /// Whether to keep statistics of every node.
    pub statistics: bool,
    /// Runs the kernels that may block.
    pub blocking_pool: Option<Ref<ThreadPool>>,
    /// The number of lists of outputs that the program keeps compiled for partial runs; 0 = no partial runs.
    pub partial_runs: usize,
    /// Whether nodes without a setting may run on any engine.
    pub any_engine: bool,
    /// How many runs may be in flight at once; 0 = any number.
    pub max_concurrent_runs: u32,
    /// Whether work on other engines is issued operation by operation in every run, without segments.
    pub without_segments: bool,
    /// Whether segments are submitted as recordings wherever possible, without a trial of the other way.
    pub without_trial: bool,
    /// Whether the host decides in branches and loops on devices, even where these could.
    pub without_device_control: bool,
    /// Whether devices are not offered groups of nodes to compile into one kernel.
    pub without_regions: bool,
    /// Whether elementwise nodes stay apart from the nodes before them.
    pub without_fusion: bool,
}

/// Whether an output of a kernel takes over the memory of an input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Forwarding {
    /// If the kernel can work in place and is the last user of the input.
    #[default]
    ByLastUse,
    Never,
    /// It must take this input's memory, or the graph is refused.
    Reserved(u16),
}

#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Takes precedence over the stream's pool and the engine's.
    pub threadpool: Option<Ref<ThreadPool>>,
    /// No node begins later than this after the call, in nanoseconds; 0 = no limit.
    pub deadline_ns: u64,
    /// Receives which outputs were absent.
    pub absent: Option<Flags>,
    /// One thread, in the program's order.
    pub deterministic: bool,
    /// After a failure, run the nodes that do not depend on it.
    pub finish_independent: bool,
    /// Whether the run fails instead of waiting for other runs of its program.
    pub no_wait: bool,
    /// Notified when a run on an asynchronous stream is over.
    pub listener: Option<Listener>,
    /// The number of a trace that the run is to be part of.
    pub trace: Option<u64>,
    /// Told how far the run is.
    pub progress: Option<ProgressListener>,
}

impl RunOptions {
    /// For a run that is over when the call returns.
    pub fn refuse_listener(&self) -> Result<()> {
        match self.listener {
            None => Ok(()),
            Some(_) => Err(Error::invalid(
                "options->notice is given, which is for runs on asynchronous streams; this one is over when the call \
                 returns",
            )),
        }
    }
}

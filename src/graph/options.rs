//! Settings of a compilation and of a run.

use crate::base::object::tag;
use crate::base::{Kind, Ref, live};
use crate::threadpool::ThreadPool;

#[derive(Clone, Debug, Default)]
pub struct CompileOptions {
    /// What bringing work to another thread costs, in nanoseconds; None = what the run's pool costs.
    pub hop_ns: Option<u64>,
    /// Whether outputs may be absent.
    pub allow_absent: bool,
    /// Runs the kernels that may block.
    pub blocking_pool: Option<Ref<ThreadPool>>,
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

//! Settings of a compilation and of a run.

use crate::base::object::tag;
use crate::base::{Kind, Ref, live};
use crate::threadpool::ThreadPool;

/// What bringing work to another thread is taken to cost unless the options say otherwise, in nanoseconds.
const DEFAULT_HOP_NS: u64 = 5_000;

#[derive(Clone, Debug)]
pub struct CompileOptions {
    /// What bringing work to another thread costs, in nanoseconds.
    pub hop_ns: u64,
}

impl Default for CompileOptions {
    fn default() -> Self {
        CompileOptions { hop_ns: DEFAULT_HOP_NS }
    }
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

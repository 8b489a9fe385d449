//! The pool without threads: everything runs at once, in the calling thread.
#![forbid(unsafe_code)]

use super::backend::Backend;
use super::host::RawTask;
use crate::abi::weir_threadpool_flags as F;

#[derive(Debug)]
pub struct Inline;

impl Backend for Inline {
    fn flags(&self) -> u64 {
        F::WEIR_THREADPOOL_NESTED as u64
    }

    fn num_threads(&self) -> usize {
        1
    }

    fn max_threads(&self) -> usize {
        1
    }

    fn has_schedule(&self) -> bool {
        true
    }

    fn schedule(&self, task: RawTask, _cost_ns: u64, _priority: i32) -> bool {
        task.run(0);
        true
    }

    fn has_bulk(&self) -> bool {
        false
    }

    fn bulk(&self, _n: usize, _task: RawTask) -> bool {
        false
    }

    fn in_parallel(&self) -> bool {
        false
    }

    fn help(&self) -> bool {
        false
    }
}

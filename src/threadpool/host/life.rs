//! The part of a pool that outlives it, for closures that are on their way out.
#![forbid(unsafe_code)]

use super::budget::Budget;
use crate::sync::EventCount;
use crate::threadpool::door::Door;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};

#[derive(Debug, Default)]
pub struct PoolLife {
    /// Closures that hold a reference to the pool: queued, running, or on their way out.
    pub(in crate::threadpool) closures: AtomicUsize,
    /// Closures that have not done their work.
    pub(in crate::threadpool) budget: Budget,
    pub(in crate::threadpool) gone: AtomicBool,
    /// The gate to the host's functions. Calls of them and closures that have begun are inside; closures that must run
    /// are owed.
    pub(in crate::threadpool) door: Door,
    /// Whether a thread is ending the closed pool, and whether it has ended.
    pub(in crate::threadpool) ending: AtomicBool,
    pub(in crate::threadpool) ended: EventCount,
}

impl PoolLife {
    /// A closure has dropped its reference to the pool.
    pub(in crate::threadpool) fn closure_left(&self) {
        // ORDERING: Release pairs with the Acquire in `Watch::wait`.
        self.closures.fetch_sub(1, Release);
    }
}

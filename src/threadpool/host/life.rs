//! What is known of a pool beyond its end, by those who are on their way out.
#![forbid(unsafe_code)]

use super::budget::Budget;
use crate::sync::EventCount;
use crate::threadpool::door::Door;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};

#[derive(Debug, Default)]
pub struct Life {
    /// Closures that hold a reference to the pool: queued, running, or on their way out.
    pub(in crate::threadpool) closures: AtomicUsize,
    /// Closures that have not done their work.
    pub(in crate::threadpool) budget: Budget,
    pub(in crate::threadpool) gone: AtomicBool,
    /// To the host's functions. Calls of them and closures that have begun are inside; closures that must be run are
    /// owed.
    pub(in crate::threadpool) door: Door,
    /// Whether somebody sees to the end of the closed pool, and when that has come.
    pub(in crate::threadpool) ending: AtomicBool,
    pub(in crate::threadpool) ended: EventCount,
}

impl Life {
    /// A closure has let go of the pool.
    pub(in crate::threadpool) fn closure_left(&self) {
        // ORDERING: Release pairs with the Acquire in `Watch::wait`.
        self.closures.fetch_sub(1, Release);
    }
}

//! The monotonic clock in nanoseconds, and deadlines.

use crate::abi::WEIR_TIMEOUT_INFINITE;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Nanoseconds since the first call in this process.
pub fn now_ns() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// What one look at the clock costs, in nanoseconds; measured once.
pub fn clock_ns() -> u64 {
    static COST: OnceLock<u64> = OnceLock::new();
    *COST.get_or_init(|| (0..100).map(|_| now_ns().abs_diff(now_ns())).min().unwrap_or(0))
}

/// A point in time, or never.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Option<u64>);

impl Deadline {
    pub const NEVER: Deadline = Deadline(None);

    /// `timeout_ns` from now; WEIR_TIMEOUT_INFINITE = never.
    pub fn after(timeout_ns: u64) -> Deadline {
        match timeout_ns {
            WEIR_TIMEOUT_INFINITE => Deadline::NEVER,
            ns => Deadline(Some(now_ns().saturating_add(ns))),
        }
    }

    /// Whichever comes first.
    pub fn earlier(self, other: Deadline) -> Deadline {
        match (self.0, other.0) {
            (Some(a), Some(b)) => Deadline(Some(a.min(b))),
            (a, b) => Deadline(a.or(b)),
        }
    }

    pub fn is_past(self) -> bool {
        self.0.is_some_and(|at| now_ns() >= at)
    }

    /// Time left; None = for ever.
    pub fn left(self) -> Option<Duration> {
        self.0.map(|at| Duration::from_nanos(at.saturating_sub(now_ns())))
    }
}

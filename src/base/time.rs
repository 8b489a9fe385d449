//! The monotonic clock in nanoseconds, and deadlines.
#![forbid(unsafe_code)]

use crate::abi::WEIR_TIMEOUT_INFINITE;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

pub use super::clock::{now_ns, ticks};

/// The cost of one clock read, in nanoseconds; measured once.
pub fn clock_ns() -> u64 {
    const UNKNOWN: u64 = u64::MAX;
    static COST: AtomicU64 = AtomicU64::new(UNKNOWN);
    // ORDERING: Relaxed; a number by itself. Two threads may both measure, and either result will do.
    match COST.load(Relaxed) {
        UNKNOWN => {
            let cost = (0..100).map(|_| now_ns().abs_diff(now_ns())).min().unwrap_or(0);
            COST.store(cost, Relaxed);
            cost
        }
        cost => cost,
    }
}

/// Converts ticks to nanoseconds, to about one percent; the first call measures the rate, for 10 us.
pub fn ticks_ns(ticks: u64) -> u64 {
    static TICK: AtomicU64 = AtomicU64::new(0);
    const MEASURE_NS: u64 = 10_000;
    // ORDERING: as in `clock_ns`.
    let mut tick = f64::from_bits(TICK.load(Relaxed));
    if tick == 0.0 {
        let (start_ns, start) = (now_ns(), super::clock::ticks());
        while now_ns() - start_ns < MEASURE_NS {
            std::hint::spin_loop();
        }
        tick = (now_ns() - start_ns) as f64 / super::clock::ticks().wrapping_sub(start).max(1) as f64;
        TICK.store(tick.to_bits(), Relaxed);
    }
    (ticks as f64 * tick) as u64
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

    /// A time on the library's clock.
    pub fn at(ns: u64) -> Deadline {
        Deadline(Some(ns))
    }

    /// The earlier of the two.
    pub fn earlier(self, other: Deadline) -> Deadline {
        match (self.0, other.0) {
            (Some(a), Some(b)) => Deadline(Some(a.min(b))),
            (a, b) => Deadline(a.or(b)),
        }
    }

    pub fn is_past(self) -> bool {
        self.0.is_some_and(|at| now_ns() >= at)
    }

    /// Time left; `None` = for ever.
    pub fn left(self) -> Option<Duration> {
        self.0.map(|at| Duration::from_nanos(at.saturating_sub(now_ns())))
    }
}

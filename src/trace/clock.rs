//! The clock of traces: the processor's counter where that counts time, else the system's clock.
//!
//! A stamp is a raw number. It becomes a time when a trace is saved, by two pairs of a stamp and the system's time: one
//! of the trace's beginning, and one of now or of its end. Each pair is the best of some, so that an interrupt between
//! its two reads does not count.

use crate::base::time::{now_ns, ticks};
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

const UNKNOWN: u8 = 0;
const TICKS: u8 = 1;
const SYSTEM: u8 = 2;

/// Chosen when the first trace begins. ORDERING: Relaxed; it is chosen before any stamp is taken, always the same.
static SOURCE: AtomicU8 = AtomicU8::new(UNKNOWN);

/// How often a pair is read for the best one, and how far two pairs must lie apart at least.
const READS: usize = 20;
const APART_NS: u64 = 1_000_000;

/// Decides which clock this process takes stamps of.
pub(super) fn choose() {
    if SOURCE.load(Relaxed) == UNKNOWN {
        SOURCE.store(if counts_time() { TICKS } else { SYSTEM }, Relaxed);
    }
}

/// The name of the clock, for people.
pub(super) fn name() -> &'static str {
    match (SOURCE.load(Relaxed), cfg!(target_arch = "x86_64")) {
        (TICKS, true) => "TSC",
        (TICKS, false) => "CNTVCT",
        _ => "CLOCK_MONOTONIC",
    }
}

/// Whether stamps are of the processor's counter, and not nanoseconds.
#[inline]
pub fn is_in_ticks() -> bool {
    SOURCE.load(Relaxed) == TICKS
}

/// A stamp.
#[inline]
pub fn now() -> u64 {
    if is_in_ticks() { ticks() } else { now_ns() }
}

/// Whether the counter has the same rate and the same value on all processors, at all times.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[allow(unused_unsafe, reason = "later compilers know that the instruction is safe")]
fn counts_time() -> bool {
    use std::arch::x86_64::__cpuid;
    const POWER: u32 = 0x8000_0007;
    const INVARIANT: u32 = 1 << 8;
    // SAFETY: all x86-64 processors have the instruction.
    let is_invariant = unsafe { __cpuid(0x8000_0000).eax >= POWER && __cpuid(POWER).edx & INVARIANT != 0 };
    // The system has compared the counters of all processors, and takes the clock off this list if they differ.
    let known = std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/available_clocksource");
    is_invariant && known.map_or(!cfg!(target_os = "linux"), |known| known.split_whitespace().any(|name| name == "tsc"))
}

#[cfg(all(target_arch = "aarch64", not(miri)))]
fn counts_time() -> bool {
    true
}

#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
fn counts_time() -> bool {
    false
}

/// A stamp and the system's time of one moment.
#[derive(Clone, Copy, Debug)]
pub struct Anchor {
    pub stamp: u64,
    pub ns: u64,
    /// How much the two may lie apart, in ticks.
    pub slack: u64,
}

impl Anchor {
    pub fn now() -> Anchor {
        let read = || {
            let before = now();
            let ns = now_ns();
            let slack = now().wrapping_sub(before);
            Anchor { stamp: before.wrapping_add(slack / 2), ns, slack }
        };
        let first = read();
        (1..READS).map(|_| read()).fold(first, |best, next| if next.slack < best.slack { next } else { best })
    }

    /// As `now`, but far enough behind this one for a rate: it spins for what is missing to a millisecond.
    pub fn behind(&self) -> Anchor {
        loop {
            let next = Anchor::now();
            if next.ns.saturating_sub(self.ns) >= APART_NS {
                return next;
            }
            std::hint::spin_loop();
        }
    }
}

/// Turns stamps into times.
#[derive(Clone, Copy, Debug)]
pub struct ClockScale {
    from: Anchor,
    ticks: u64,
    ns: u64,
}

impl ClockScale {
    pub fn new(from: Anchor, to: Anchor) -> ClockScale {
        ClockScale { from, ticks: to.stamp.wrapping_sub(from.stamp).max(1), ns: to.ns.saturating_sub(from.ns).max(1) }
    }

    /// Nanoseconds of so many ticks.
    pub fn span_ns(&self, ticks: u64) -> u64 {
        (u128::from(ticks) * u128::from(self.ns) / u128::from(self.ticks)) as u64
    }

    /// On the system's monotonic clock.
    pub fn at_ns(&self, stamp: u64) -> u64 {
        if stamp >= self.from.stamp {
            self.from.ns + self.span_ns(stamp - self.from.stamp)
        } else {
            self.from.ns.saturating_sub(self.span_ns(self.from.stamp - stamp))
        }
    }

    /// How far all times together may be off, in nanoseconds.
    pub fn error_ns(&self) -> u64 {
        self.span_ns(self.from.slack).max(1)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn stamps_are_times_of_the_systems_clock() {
        choose();
        let from = Anchor::now();
        let scale = ClockScale::new(from, from.behind());
        for _ in 0..100 {
            let (before, stamp, after) = (now_ns(), now(), now_ns());
            let at = scale.at_ns(stamp);
            // The rate is that of a millisecond, with two reads that may be off.
            assert!(at + 20_000 > before && at < after + 20_000, "{before} {at} {after} {scale:?}");
        }
        assert!(scale.at_ns(from.stamp - 100) < from.ns);
    }
}

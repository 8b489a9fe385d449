//! A counter that only grows, and threads that wait until it has reached a value.
//!
//! `reached` is the count. `sleepers` counts those who are about to sleep or asleep, `epoch` is the word they sleep on.
//!
//! - Advance: add to `reached`, then look at `sleepers`; if there are any, bump `epoch` and wake them all.
//! - Wait: look at `reached` for a bounded time; then add to `sleepers`, read `epoch`, look at `reached` again, and
//!   sleep while `epoch` is unchanged.
//!
//! No wake is lost: in the single order of the SeqCst operations either the advance comes before the waiter's
//! second look, which then sees it, or the waiter's addition to `sleepers` comes before the advancer's look at it,
//! which then bumps `epoch` and wakes.

use super::futex;
use crate::base::time::{Deadline, now_ns};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};

#[derive(Debug, Default)]
pub struct Gate {
    reached: AtomicU64,
    epoch: AtomicU32,
    sleepers: AtomicU32,
}

impl Gate {
    pub const fn new() -> Gate {
        Gate { reached: AtomicU64::new(0), epoch: AtomicU32::new(0), sleepers: AtomicU32::new(0) }
    }

    /// ORDERING: Acquire pairs with the SeqCst addition in `advance`: who sees the count sees what was done before it.
    pub fn reached(&self) -> u64 {
        self.reached.load(Acquire)
    }

    /// Adds to the count and wakes whoever waits.
    pub fn advance(&self, by: u64) {
        self.reached.fetch_add(by, SeqCst);
        if self.sleepers.load(SeqCst) > 0 {
            self.epoch.fetch_add(1, SeqCst);
            futex::wake(&self.epoch, u32::MAX);
        }
    }

    /// Sets the count back to 0. Only while nobody waits or advances (the owner of a pooled object).
    pub fn reset(&self) {
        // ORDERING: Relaxed; exclusive by the caller's word, and the object is handed on through an Acquire/Release
        // of its own.
        self.reached.store(0, Relaxed);
    }

    /// Waits until the count is at least `target`: looks for up to `spin_ns`, then sleeps. False if the deadline
    /// passed first.
    pub fn wait(&self, target: u64, spin_ns: u64, deadline: Deadline) -> bool {
        if self.reached() >= target {
            return true;
        }
        if spin_ns > 0 && self.spin(target, spin_ns, deadline) {
            return true;
        }
        self.sleepers.fetch_add(1, SeqCst);
        let reached = loop {
            let epoch = self.epoch.load(SeqCst);
            if self.reached.load(SeqCst) >= target {
                break true;
            }
            if deadline.is_past() {
                break false;
            }
            futex::wait(&self.epoch, epoch, deadline.left());
        };
        self.sleepers.fetch_sub(1, SeqCst);
        reached
    }

    fn spin(&self, target: u64, spin_ns: u64, deadline: Deadline) -> bool {
        let start = now_ns();
        loop {
            for _ in 0..32 {
                if self.reached() >= target {
                    return true;
                }
                std::hint::spin_loop();
            }
            if now_ns() - start >= spin_ns || deadline.is_past() {
                return false;
            }
        }
    }
}

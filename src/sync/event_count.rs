//! A counter that only grows, and threads that wait until it has reached a value.
//!
//! `reached` is the count. `sleepers` counts those who are about to sleep or asleep, `epoch` is the word they sleep on.
//!
//! - Advance: add to `reached`, then look at `sleepers`; if there are any, bump `epoch` and wake them all.
//! - Wait: look at `reached` for a bounded time; then add to `sleepers`, read `epoch`, look at `reached` again, and
//!   sleep while `epoch` is unchanged.
//!
//! - Watch: add to `sleepers` and read `epoch`, look at the condition that an advance or a nudge hints at, and sleep
//!   while `epoch` is unchanged. A nudge is an advance by 0.
//!
//! No wake is lost: each side writes, then has a SeqCst fence, then looks at what the other writes. The fences have
//! an order, so either the waiter's second look sees the advance, or the advancer's look sees the waiter among
//! `sleepers`, bumps `epoch` and wakes.
#![forbid(unsafe_code)]

use super::atomic::fence;
use super::futex;
use super::lock::Word;
use super::progress::{self, Sleeper};
use crate::base::time::{Deadline, now_ns};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};

/// A 64-bit count, so that loom can run the two steps below.
pub(crate) trait CountWord {
    /// ORDERING: Release, pairs with `look`.
    fn add(&self, by: u64);
    /// ORDERING: Acquire.
    fn look(&self) -> u64;
}

impl CountWord for AtomicU64 {
    fn add(&self, by: u64) {
        self.fetch_add(by, Release);
    }
    fn look(&self) -> u64 {
        self.load(Acquire)
    }
}

pub(crate) fn advance<W: Word>(reached: &impl CountWord, sleepers: &W, epoch: &W, by: u64) {
    reached.add(by);
    // ORDERING: pairs with the fence in `sleep_until`.
    fence(SeqCst);
    if sleepers.load(Relaxed) > 0 {
        epoch.fetch_add(1, Relaxed);
        epoch.wake(u32::MAX);
    }
}

/// Sleeps until the count is at least `target`; `sleep(epoch)` returns false if there is no time left.
pub(crate) fn sleep_until<W: Word>(
    reached: &impl CountWord,
    sleepers: &W,
    epoch: &W,
    target: u64,
    sleep: impl Fn(u32) -> bool,
) -> bool {
    sleepers.fetch_add(1, Relaxed);
    // ORDERING: pairs with the fence in `advance`.
    fence(SeqCst);
    let reached = loop {
        // ORDERING: Acquire, so that the count is read after it: an advance between the two changes the epoch.
        let seen = epoch.load(Acquire);
        if reached.look() >= target {
            break true;
        }
        if !sleep(seen) {
            break false;
        }
    };
    sleepers.fetch_add(u32::MAX, Relaxed);
    reached
}

/// The epoch after which each advance and nudge ends a sleep.
pub(crate) fn watch<W: Word>(sleepers: &W, epoch: &W) -> u32 {
    sleepers.fetch_add(1, Relaxed);
    // ORDERING: pairs with the fence in `advance`. Acquire as in `sleep_until`.
    fence(SeqCst);
    epoch.load(Acquire)
}

/// A registered waiter: an advance or nudge since its creation ends its sleep.
#[derive(Debug)]
pub struct EventWatch<'a> {
    events: &'a EventCount,
    seen: u32,
}

impl EventWatch<'_> {
    /// Whether there was an advance or a nudge.
    pub fn is_over(&self) -> bool {
        self.events.epoch.load(Acquire) != self.seen
    }

    /// Sleeps until there is one, or the deadline. Wake-ups may be spurious.
    pub fn sleep(&self, deadline: Deadline) {
        if progress::is_used() {
            self.events.poll_until(&|| self.is_over(), deadline);
        } else if !deadline.is_past() {
            futex::wait(&self.events.epoch, self.seen, deadline.left());
        }
    }
}

impl Drop for EventWatch<'_> {
    fn drop(&mut self) {
        self.events.sleepers.fetch_sub(1, Relaxed);
    }
}

#[derive(Debug, Default)]
pub struct EventCount {
    reached: AtomicU64,
    epoch: AtomicU32,
    sleepers: AtomicU32,
}

impl EventCount {
    pub const fn new() -> EventCount {
        EventCount { reached: AtomicU64::new(0), epoch: AtomicU32::new(0), sleepers: AtomicU32::new(0) }
    }

    /// ORDERING: Acquire pairs with the Release in `CountWord::add`: a thread that sees the count sees all that was
    /// done before it.
    pub fn reached(&self) -> u64 {
        self.reached.load(Acquire)
    }

    /// Adds to the count and wakes the waiters.
    pub fn advance(&self, by: u64) {
        advance(&self.reached, &self.sleepers, &self.epoch, by);
    }

    /// Wakes the waiters without changing the count.
    pub fn nudge(&self) {
        // ORDERING: the fence in `advance` comes after the caller's change, the one in `watch` before the waiter's look
        // at it.
        self.advance(0);
    }

    /// Every advance and nudge from now on ends the `sleep` of the result, even one that comes before the sleep begins.
    pub fn watch(&self) -> EventWatch<'_> {
        EventWatch { events: self, seen: watch(&self.sleepers, &self.epoch) }
    }

    /// Sets the count back to 0. Only while nobody waits or advances (the owner of a pooled object).
    pub fn reset(&self) {
        // ORDERING: Relaxed; the caller has exclusive access, and the object is handed on through a release/acquire
        // pair of its own.
        self.reached.store(0, Relaxed);
    }

    /// Waits until the count is at least `target`: looks for up to `spin_ns`, then sleeps. False if the deadline
    /// passed first.
    pub fn wait(&self, target: u64, spin_ns: u64, deadline: Deadline) -> bool {
        if self.reached() >= target {
            return true;
        }
        if progress::is_used() {
            return self.poll_until(&|| self.reached() >= target, deadline);
        }
        if spin_ns > 0 && self.spin(target, spin_ns, deadline) {
            return true;
        }
        sleep_until(&self.reached, &self.sleepers, &self.epoch, target, |epoch| {
            if deadline.is_past() {
                return false;
            }
            futex::wait(&self.epoch, epoch, deadline.left());
            true
        })
    }

    /// Polls what must be asked to move until `is_over`; false if the deadline passed first.
    #[cold]
    fn poll_until(&self, is_over: &dyn Fn() -> bool, deadline: Deadline) -> bool {
        let sleep = |look: &dyn Fn() -> bool, until: Deadline| {
            let watch = self.watch();
            if !look() && !until.is_past() {
                futex::wait(&self.epoch, watch.seen, until.left());
            }
        };
        progress::wait(self, is_over, &sleep, deadline)
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

impl Sleeper for EventCount {
    fn nudge(&self) {
        EventCount::nudge(self);
    }
}

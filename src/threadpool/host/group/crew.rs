//! What all groups of a pool have together: where their tasks lie, who looks for some, and who sleeps.
#![forbid(unsafe_code)]

use crate::sync::futex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::*, fence};

#[derive(Debug)]
#[repr(align(128))]
pub struct Crew {
    /// The berths that tasks of these groups were laid down at. A bit stays.
    berths: AtomicU64,
    /// What a helper is worth at least, in nanoseconds, as an f32; and the pool's width. As they were when one was last
    /// asked for.
    pub(super) worth: AtomicU32,
    pub(super) width: AtomicU32,
    /// Helpers that have found nothing to do and look for more.
    pub(super) lookers: AtomicU32,
    /// Threads that sleep in a wait for a group.
    pub(super) sleepers: AtomicU32,
    /// The word that they sleep on.
    epoch: AtomicU32,
    /// Closures on their way that do what nobody may be expected to wait for.
    pub(super) owed: AtomicU32,
}

/// What a helper is taken to cost while nobody has asked for one.
const FIRST_WORTH_NS: f32 = 4000.0;

impl Default for Crew {
    fn default() -> Self {
        Crew::new()
    }
}

impl Crew {
    pub const fn new() -> Crew {
        Crew {
            berths: AtomicU64::new(0),
            worth: AtomicU32::new(FIRST_WORTH_NS.to_bits()),
            width: AtomicU32::new(1),
            lookers: AtomicU32::new(0),
            sleepers: AtomicU32::new(0),
            epoch: AtomicU32::new(0),
            owed: AtomicU32::new(0),
        }
    }

    /// For the next pool. Only while nobody uses it.
    pub fn renew(&mut self) {
        *self = Crew::new();
    }

    /// Tasks may lie at this berth from now on. ORDERING: SeqCst, and in `berths`; a bit is set once, in front of the
    /// first record, and who sleeps or leaves looks for it behind a fence.
    #[inline(always)]
    pub(super) fn uses(&self, berth: usize) {
        if self.berths.load(Relaxed) & 1 << berth == 0 {
            self.berths.fetch_or(1 << berth, SeqCst);
        }
    }

    /// The berths at which tasks may lie.
    #[inline(always)]
    pub(super) fn berths(&self) -> impl Iterator<Item = usize> + use<> {
        let mut left = self.berths.load(SeqCst);
        std::iter::from_fn(move || {
            let berth = (left != 0).then(|| left.trailing_zeros() as usize)?;
            left &= left - 1;
            Some(berth)
        })
    }

    #[inline(always)]
    pub(super) fn worth_ns(&self) -> f32 {
        f32::from_bits(self.worth.load(Relaxed))
    }

    /// All who sleep look again.
    #[cold]
    pub(super) fn wake(&self) {
        // ORDERING: Release pairs with the Acquire in `sleep`: who sees the new word sees what it was told for.
        self.epoch.fetch_add(1, Release);
        futex::wake(&self.epoch, u32::MAX);
    }

    /// Sleeps until `wake`, unless there is a reason not to: it is asked for when this thread counts as asleep.
    pub(super) fn sleep(&self, may_sleep: impl FnOnce() -> bool) {
        self.sleepers.fetch_add(1, Relaxed);
        // ORDERING: pairs with the fence behind a push (`call_others`): one of the two sees the other.
        fence(SeqCst);
        let epoch = self.epoch.load(Acquire);
        if may_sleep() {
            futex::wait(&self.epoch, epoch, None);
        }
        self.sleepers.fetch_sub(1, Relaxed);
    }
}

//! A work-stealing deque of fixed size: one thread pushes, any thread may take, slot by slot.
//!
//! One thread, the owner, pushes at the top and takes from there again; others take the oldest. Unlike in the deque of
//! Chase and Lev (SPAA 2005) the right to a record is not given by the two ends but by the slot itself: its state is
//! even while it is empty and odd while it has a record, and increments with each step. A taker reads the record first
//! and then moves the state from the odd number that it saw to the next even one. That has one winner, and proves that
//! the record was read whole: a slot is only written while its state is even, and no state recurs.
//!
//! - So a record can be taken out of the middle, too: a waiting thread may take only its own group's records, wherever
//!   they are.
//! - Both ends are hints for readers. `top` is the owner's; `base` is at or below the lowest record, and the owner
//!   moves it on over slots that were emptied.
//!
//! A push costs stores only, of which the last is a Release. It has no fence, so it may miss a thread that found
//! nothing and goes to sleep. A caller that must not miss one has a fence after its push, as `threadpool::host::group`
//! does.
#![forbid(unsafe_code)]

use std::sync::atomic::Ordering::*;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Words of a record.
pub const WORDS: usize = 7;
pub type Record = [u64; WORDS];

/// A 64-bit atomic, so that loom can run the steps below.
pub trait Cell64 {
    fn load(&self, order: Ordering) -> u64;
    fn store(&self, value: u64, order: Ordering);
    fn compare_exchange(&self, from: u64, to: u64, success: Ordering, failure: Ordering) -> Result<u64, u64>;
}

impl Cell64 for AtomicU64 {
    #[inline(always)]
    fn load(&self, order: Ordering) -> u64 {
        self.load(order)
    }
    #[inline(always)]
    fn store(&self, value: u64, order: Ordering) {
        self.store(value, order);
    }
    #[inline(always)]
    fn compare_exchange(&self, from: u64, to: u64, success: Ordering, failure: Ordering) -> Result<u64, u64> {
        self.compare_exchange(from, to, success, failure)
    }
}

/// One line of the cache, with the usual number of words.
#[repr(C, align(64))]
pub(super) struct DequeSlot<C, const N: usize = WORDS> {
    pub(super) state: C,
    pub(super) words: [C; N],
}

pub(super) const fn is_full(state: u64) -> bool {
    state & 1 == 1
}

impl<C: Cell64, const N: usize> DequeSlot<C, N> {
    /// By the owner: whether the slot is free. ORDERING: Acquire pairs with the Release in `take`, so that the record
    /// is not written over while it is read.
    #[inline(always)]
    pub(super) fn is_free(&self) -> bool {
        !is_full(self.state.load(Acquire))
    }

    /// By the owner: writes a free slot.
    #[inline(always)]
    pub(super) fn put(&self, record: &[u64; N]) {
        // ORDERING: Relaxed; only the owner fills slots.
        let state = self.state.load(Relaxed);
        debug_assert!(!is_full(state));
        for (word, value) in self.words.iter().zip(record) {
            word.store(*value, Relaxed);
        }
        // ORDERING: Release pairs with the Acquire in `look`: a thread that sees the state sees the record, and all
        // that the owner did before.
        self.state.store(state + 1, Release);
    }

    /// The record, if there is one, with the state in which it was read. It may be taken meanwhile.
    #[inline(always)]
    pub(super) fn look(&self) -> Option<(u64, [u64; N])> {
        let state = self.state.load(Acquire);
        is_full(state).then(|| (state, std::array::from_fn(|i| self.words[i].load(Relaxed))))
    }

    /// Takes the record that was read; false if another thread has. ORDERING: Release keeps the reads of the record
    /// before it, and pairs with the Acquire in `is_free`.
    #[inline(always)]
    pub(super) fn take(&self, state: u64) -> bool {
        self.state.compare_exchange(state, state + 1, AcqRel, Relaxed).is_ok()
    }
}

/// Slots of a deque.
pub const LEN: usize = 256;

/// A deque: the owner pushes, others take.
#[repr(C, align(128))]
pub struct Deque {
    base: AtomicU32,
    top: AtomicU32,
    slots: [DequeSlot<AtomicU64>; LEN],
}

impl Default for Deque {
    fn default() -> Self {
        Deque::new()
    }
}

impl Deque {
    pub const fn new() -> Deque {
        Deque {
            base: AtomicU32::new(0),
            top: AtomicU32::new(0),
            slots: [const { DequeSlot { state: AtomicU64::new(0), words: [const { AtomicU64::new(0) }; WORDS] } }; LEN],
        }
    }

    #[inline(always)]
    fn slot(&self, at: u32) -> &DequeSlot<AtomicU64> {
        &self.slots[at as usize % LEN]
    }

    /// By the owner: the records and gaps between both ends.
    #[inline(always)]
    pub fn extent(&self) -> usize {
        // ORDERING: Relaxed, as all uses of both ends: only the owner writes them, and to others they are hints.
        self.top.load(Relaxed).wrapping_sub(self.base.load(Relaxed)) as usize
    }

    /// By the owner: the same, from the oldest untaken record on.
    #[inline]
    pub fn tidy(&self) -> usize {
        let (top, mut base) = (self.top.load(Relaxed), self.base.load(Relaxed));
        while base != top && self.slot(base).is_free() {
            base = base.wrapping_add(1);
        }
        self.base.store(base, Relaxed);
        top.wrapping_sub(base) as usize
    }

    /// By the owner: where the next record goes (`push`), below `LEN`.
    #[inline(always)]
    pub fn place(&self) -> usize {
        self.top.load(Relaxed) as usize % LEN
    }

    /// By the owner: pushes a record; false if there is no room.
    #[inline(always)]
    pub fn push(&self, record: &Record) -> bool {
        let (top, mut base) = (self.top.load(Relaxed), self.base.load(Relaxed));
        // Two steps for each push are enough to keep up with the takers.
        let mut steps = 2;
        while base != top && steps > 0 && self.slot(base).is_free() {
            base = base.wrapping_add(1);
            steps -= 1;
        }
        if steps < 2 {
            self.base.store(base, Relaxed);
        }
        if top.wrapping_sub(base) as usize == LEN {
            return false;
        }
        self.slot(top).put(record);
        self.top.store(top.wrapping_add(1), Relaxed);
        true
    }

    /// By the owner: takes the newest record that is wanted. `passed` gets each place that the top moved down from.
    #[inline(always)]
    pub fn pop(&self, wanted: impl Fn(&Record) -> bool, mut passed: impl FnMut(usize)) -> Option<Record> {
        let base = self.base.load(Relaxed);
        let mut top = self.top.load(Relaxed);
        while top != base {
            let below = top.wrapping_sub(1);
            let slot = self.slot(below);
            let Some((state, record)) = slot.look() else {
                top = below;
                self.top.store(top, Relaxed);
                passed(top as usize % LEN);
                continue;
            };
            if !wanted(&record) {
                return self.pop_below(below, base, wanted);
            }
            let taken = slot.take(state);
            top = below;
            self.top.store(top, Relaxed);
            passed(top as usize % LEN);
            if taken {
                return Some(record);
            }
        }
        None
    }

    /// Below a record that is not wanted now.
    #[cold]
    fn pop_below(&self, from: u32, base: u32, wanted: impl Fn(&Record) -> bool) -> Option<Record> {
        let mut at = from;
        while at != base {
            at = at.wrapping_sub(1);
            let slot = self.slot(at);
            if let Some((state, record)) = slot.look()
                && wanted(&record)
                && slot.take(state)
            {
                return Some(record);
            }
        }
        None
    }

    /// The places between both ends as seen by the caller, from the oldest on.
    fn places(&self) -> impl Iterator<Item = &DequeSlot<AtomicU64>> {
        let (base, top) = (self.base.load(Relaxed), self.top.load(Relaxed));
        // The two are not read atomically, so the top may be below the base.
        let count = (top.wrapping_sub(base) as i32).clamp(0, LEN as i32) as u32;
        (0..count).map(move |i| self.slot(base.wrapping_add(i)))
    }

    /// Takes the oldest record that is wanted.
    pub fn steal(&self, wanted: impl Fn(&Record) -> bool) -> Option<Record> {
        self.places().find_map(|slot| {
            let (state, record) = slot.look()?;
            (wanted(&record) && slot.take(state)).then_some(record)
        })
    }

    /// Whether there is a record that is wanted.
    pub fn any(&self, wanted: impl Fn(&Record) -> bool) -> bool {
        self.places().any(|slot| slot.look().is_some_and(|(_, record)| wanted(&record)))
    }
}

impl std::fmt::Debug for Deque {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Deque({} places)", self.extent())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    fn record(value: u64) -> Record {
        [value; WORDS]
    }

    #[test]
    fn the_owner_takes_the_newest_and_others_the_oldest() {
        let deque = Deque::new();
        (0..4).for_each(|i| assert!(deque.push(&record(i))));
        assert_eq!(deque.pop(|_| true, |_| ()), Some(record(3)));
        assert_eq!(deque.steal(|_| true), Some(record(0)));
        // Out of the middle.
        assert!(deque.push(&record(7)));
        assert_eq!(deque.pop(|record| record[0] == 1, |_| ()), Some(record(1)));
        assert_eq!(deque.steal(|record| record[0] == 7), Some(record(7)));
        assert!(deque.any(|record| record[0] == 2) && !deque.any(|record| record[0] == 1));
        assert_eq!(deque.pop(|_| true, |_| ()), Some(record(2)));
        assert_eq!((deque.pop(|_| true, |_| ()), deque.steal(|_| true)), (None, None));
    }

    #[test]
    fn what_others_took_makes_room() {
        let deque = Deque::new();
        let fill = || (0..).take_while(|&i| deque.push(&record(i))).count();
        assert_eq!(fill(), LEN);
        (0..10).for_each(|_| assert!(deque.steal(|_| true).is_some()));
        assert_eq!(fill(), 10);
        assert!(deque.steal(|record| record[0] == 100).is_some(), "in the middle");
        assert_eq!(fill(), 0);
        let mut places = 0;
        while deque.pop(|_| true, |_| places += 1).is_some() {}
        assert_eq!((places, fill()), (LEN, LEN));
    }

    #[test]
    fn each_record_is_taken_once() {
        const EACH: usize = if cfg!(miri) { 40 } else { 20_000 };
        let (deque, taken) = (Deque::new(), [const { AtomicUsize::new(0) }; EACH]);
        let left = AtomicUsize::new(EACH);
        let note = |record: Record| {
            assert!(record.iter().all(|word| *word == record[0]), "a record that is not whole");
            taken[record[0] as usize].fetch_add(1, Relaxed);
            left.fetch_sub(1, Relaxed);
        };
        std::thread::scope(|scope| {
            for parity in 0..2 {
                let (deque, left, note) = (&deque, &left, &note);
                scope.spawn(move || {
                    while left.load(Relaxed) > 0 {
                        deque.steal(|record| record[0] % 3 != parity).into_iter().for_each(note);
                    }
                });
            }
            for i in 0..EACH {
                while !deque.push(&record(i as u64)) {
                    deque.pop(|_| true, |_| ()).into_iter().for_each(&note);
                }
                if i % 3 == 0 {
                    deque.pop(|record| record[0] % 2 == 0, |_| ()).into_iter().for_each(&note);
                }
            }
            while let Some(record) = deque.pop(|_| true, |_| ()) {
                note(record);
            }
        });
        assert!(taken.iter().all(|count| count.load(Relaxed) == 1));
    }
}

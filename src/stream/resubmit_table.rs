//! Work that is submitted again and again: held once while any of its submissions is in flight, and not once for each.
//!
//! A queue submits the same calls over and over, faster than they complete. A call's resources have to live until it
//! completes; but a second reference to resources that an earlier submission holds adds nothing. So work is in a *slot*
//! under a *key* that identifies it (the addresses of its resources: nothing else can have them meanwhile), with the
//! number of the last item that it was submitted as. Resubmitting it writes another number. When items are over, work
//! last submitted as one of them is taken out.
//!
//! One thread at a time submits (`Resubmitter`, guarded by the drain lock), and one takes out completed work
//! (`ResubmitTable::sweep`), concurrently. A slot's word:
//!
//! | word    | meaning                  | leaves it by                                                      |
//! |---------|--------------------------|-------------------------------------------------------------------|
//! | EMPTY   | no work                  | `put` -> n (resubmitter)                                          |
//! | n       | last submitted as item n | `again` -> IN_USE (resubmitter); `sweep` of n or later -> LEAVING |
//! | IN_USE  | it is being resubmitted  | the end of that -> a later n (resubmitter)                        |
//! | LEAVING | it is being taken out    | `sweep` -> EMPTY                                                  |
//!
//! *Resubmit against sweep.* Both want the slot, and the compare-exchange from n has one winner. If the sweep wins, the
//! resubmitter finds nothing and puts the work again. If the resubmitter wins, the sweep skips the slot. Nothing is
//! missed: the item that the resubmitter writes there is counted as issued only after that, so a later sweep is for it.
//!
//! Only the resubmitter reads and writes keys, and fills slots; `occupied` tells the sweep where to look, one bit for
//! each.

use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::*;
use std::cell::UnsafeCell;
use std::fmt;
use std::sync::Arc;

/// Slots, and how many of them are probed for a key, from its hash on.
const SLOTS: usize = if cfg!(loom) { 2 } else { 64 };
const TRIES: usize = if cfg!(loom) { 1 } else { 4 };
/// Most words of a key.
pub const MOST_WORDS: usize = 14;

const EMPTY: u64 = 0;
const IN_USE: u64 = u64::MAX;
const LEAVING: u64 = u64::MAX - 1;

struct ResubmitSlot<T> {
    word: AtomicU64,
    /// The resubmitter's.
    key: UnsafeCell<(usize, [usize; MOST_WORDS])>,
    work: UnsafeCell<Option<T>>,
}

/// The table: work with a submission in flight.
pub struct ResubmitTable<T> {
    occupied: AtomicU64,
    places: Box<[ResubmitSlot<T>]>,
}

// SAFETY: keys are reached through the one resubmitter. Work is reached by the thread that has taken its slot out of
// EMPTY (the resubmitter, before it writes a number) or to IN_USE or LEAVING, of which there is one at a time; the
// resubmitter only lends it where it is IN_USE.
unsafe impl<T: Send + Sync> Sync for ResubmitTable<T> {}
// SAFETY: nothing in it is tied to a thread.
unsafe impl<T: Send> Send for ResubmitTable<T> {}

/// The right to submit; one per table.
pub struct Resubmitter<T>(Arc<ResubmitTable<T>>);

/// Work that is being resubmitted. Dropping this marks it as submitted as the requested item.
pub struct Resubmission<'a, T> {
    slot: &'a ResubmitSlot<T>,
    item: u64,
}

impl<T> ResubmitTable<T> {
    /// An empty table.
    pub fn new() -> (Resubmitter<T>, Arc<ResubmitTable<T>>) {
        let slot = |_| ResubmitSlot {
            word: AtomicU64::new(EMPTY),
            key: UnsafeCell::new((0, [0; MOST_WORDS])),
            work: UnsafeCell::new(None),
        };
        let resubmits = Arc::new(ResubmitTable { occupied: AtomicU64::new(0), places: (0..SLOTS).map(slot).collect() });
        (Resubmitter(Arc::clone(&resubmits)), resubmits)
    }

    /// Whether it is empty, as far as the caller knows.
    #[inline]
    pub fn is_empty(&self) -> bool {
        // ORDERING: Relaxed; a wrong answer makes the caller put work that is there, which is held twice then, or look
        // in vain.
        self.occupied.load(Relaxed) == 0
    }

    /// Takes out work last submitted as item `upto` or an earlier one. All items up to there count as issued, and the
    /// caller has seen that count.
    pub fn sweep(&self, upto: u64, mut each: impl FnMut(T)) {
        // ORDERING: Acquire pairs with the Release in `put`. An item that is over was put before it was counted as
        // issued, and the caller has seen that count, so its bit is seen.
        let mut occupied = self.occupied.load(Acquire);
        while occupied != 0 {
            let at = occupied.trailing_zeros() as usize;
            occupied &= occupied - 1;
            let slot = &self.places[at];
            // ORDERING: Acquire pairs with the Release in `Resubmission::drop`: the resubmitter's use of the work is
            // over.
            let last = slot.word.load(Acquire);
            if last > upto || last == EMPTY || slot.word.compare_exchange(last, LEAVING, Acquire, Relaxed).is_err() {
                continue;
            }
            // SAFETY: LEAVING is this thread's.
            let work = unsafe { (*slot.work.get()).take() };
            // ORDERING: Release, both; pairs with the Acquire in `put`, by the resubmitter that fills the slot again.
            slot.word.store(EMPTY, Release);
            self.occupied.fetch_and(!(1 << at), Release);
            work.into_iter().for_each(&mut each);
        }
    }
}

impl<T> fmt::Debug for ResubmitTable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ResubmitTable({} places taken)", self.occupied.load(Relaxed).count_ones())
    }
}

/// The first slot to probe for a key.
fn first(key: &[usize]) -> usize {
    let sum = key.iter().fold(0u64, |sum, &word| sum.rotate_left(9) ^ word as u64);
    (sum.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - SLOTS.trailing_zeros())) as usize
}

impl<T> Resubmitter<T> {
    /// The work under this key, to be resubmitted as item `item`, later than all earlier ones. `None`: it must be put.
    #[inline]
    pub fn again(&mut self, key: &[usize], item: u64) -> Option<Resubmission<'_, T>> {
        // ORDERING: Relaxed; the resubmitter set the bits that it looks for, and a slot found empty is empty.
        let occupied = self.0.occupied.load(Relaxed);
        let first = first(key);
        for at in (first..first + TRIES).map(|at| at % SLOTS) {
            let slot = &self.0.places[at];
            if occupied & (1 << at) == 0 {
                continue;
            }
            // SAFETY: keys belong to the resubmitter, which this is.
            let (len, words) = unsafe { &*slot.key.get() };
            // Word by word: a call of memcmp takes longer for so few.
            if *len != key.len() || !words.iter().zip(key).all(|(word, key)| word == key) {
                continue;
            }
            let last = slot.word.load(Relaxed);
            // ORDERING: Relaxed; the resubmitter itself has put the work there, and it only reads it.
            if last != EMPTY && last != LEAVING && slot.word.compare_exchange(last, IN_USE, Relaxed, Relaxed).is_ok() {
                return Some(Resubmission { slot, item });
            }
        }
        None
    }

    /// Puts work that is submitted as item `item` now. Gives it back if there is no free slot.
    pub fn put(&mut self, key: &[usize], work: T, item: u64) -> Result<(), T> {
        if key.len() > MOST_WORDS {
            return Err(work);
        }
        // ORDERING: Acquire pairs with the Release in `sweep`: the former work is out.
        let occupied = self.0.occupied.load(Acquire);
        let first = first(key);
        let free = (first..first + TRIES).map(|at| at % SLOTS).find(|at| occupied & (1 << at) == 0);
        let Some(at) = free else { return Err(work) };
        let slot = &self.0.places[at];
        // SAFETY: the slot is empty, and nobody else fills slots.
        unsafe {
            let (len, words) = &mut *slot.key.get();
            *len = key.len();
            words[..key.len()].copy_from_slice(key);
            *slot.work.get() = Some(work);
        }
        // ORDERING: Release, both; pairs with the Acquire in `sweep`.
        slot.word.store(item, Release);
        self.0.occupied.fetch_or(1 << at, Release);
        Ok(())
    }
}

impl<T> std::ops::Deref for Resubmission<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: IN_USE belongs to the resubmitter, and the slot has work.
        unsafe { (*self.slot.work.get()).as_ref().unwrap_unchecked() }
    }
}

impl<T> Drop for Resubmission<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // ORDERING: Release pairs with the Acquire in `sweep`.
        self.slot.word.store(self.item, Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_again_stays_until_the_last_time_is_over() {
        let (mut resubmitter, resubmits) = ResubmitTable::new();
        let swept = |upto| {
            let mut out = Vec::new();
            resubmits.sweep(upto, |work: &str| out.push(work));
            out.sort_unstable();
            out
        };
        assert!(resubmitter.again(&[1, 2], 1).is_none());
        resubmitter.put(&[1, 2], "a", 1).unwrap();
        resubmitter.put(&[1, 3], "b", 2).unwrap();
        assert_eq!(*resubmitter.again(&[1, 2], 3).unwrap(), "a");
        assert!(resubmitter.again(&[1], 4).is_none() && resubmitter.again(&[1, 2, 0], 4).is_none());
        assert_eq!(swept(2), ["b"]);
        assert!(resubmitter.again(&[1, 3], 4).is_none());
        // While it is being resubmitted, it is not taken out.
        let again = resubmitter.again(&[1, 2], 4).unwrap();
        assert_eq!(swept(3), [""; 0]);
        drop(again);
        assert_eq!((swept(3), swept(4)), (vec![], vec!["a"]));
        resubmitter.put(&[1, 2], "c", 5).unwrap();
        assert_eq!(swept(9), ["c"]);
    }

    #[test]
    fn where_there_is_no_place_work_comes_back() {
        let (mut resubmitter, resubmits) = ResubmitTable::new();
        let refused = (1..=1000).filter(|&i| resubmitter.put(&[i], i, i as u64).is_err()).count();
        assert!((1000 - SLOTS..1000).contains(&refused), "{refused}");
        let mut out = 0;
        resubmits.sweep(1000, |_| out += 1);
        assert_eq!(out + refused, 1000);
        // All slots are free again.
        assert_eq!((1..=1000).filter(|&i| resubmitter.put(&[i], i, 1000).is_err()).count(), refused);
        assert!(resubmitter.put(&[0; MOST_WORDS + 1], 0, 1001).is_err());
    }
}

//! Work that is given again and again: kept once for as long as any of those times is under way, and not once for each.
//!
//! A queue gives the same calls over and over, faster than they are done. What each of them uses has to live until it
//! is done; but a second reference to what an earlier one holds already says nothing new. So a piece of work stands in
//! a *place* under a *key*, which tells what it is (the addresses of what it holds: nothing else can have them
//! meanwhile), with the number of the last item that it was given as. Giving it again is to write another number. When
//! items are over, what was last given as one of them is taken out.
//!
//! One thread at a time gives (`Issuer`, which is the queue's turn's), and one takes out what is over
//! (`ResubmitTable::sweep`), side by side. A place's word:
//!
//! | word   | meaning                                         | leaves it by                                                        |
//! |--------|-------------------------------------------------|---------------------------------------------------------------------|
//! | EMPTY  | nothing stands there                            | `put` -> n (giver)                                                  |
//! | n      | last given as item n                            | `again` -> IN_USE (giver); `sweep` of n or later -> LEAVING          |
//! | IN_USE | it is being given once more                     | the end of that -> a later n (giver)                                |
//! | LEAVING | it is being taken out                          | `sweep` -> EMPTY                                                    |
//!
//! *Given against taken out.* Both want the place, and the compare-exchange from n has one winner. If that is the
//! sweep, the giver finds nothing and puts the work anew. If it is the giver, the sweep leaves the place alone, and is
//! not missed: the item that the giver writes there is counted as issued only after that, so a later sweep is for it.
//!
//! Only the giver reads and writes keys, and fills places; `occupied` tells the sweep where to look, one bit for each.

use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::*;
use std::cell::UnsafeCell;
use std::fmt;
use std::sync::Arc;

/// Places, and how many of them a key may stand at, from its own on.
const PLACES: usize = if cfg!(loom) { 2 } else { 64 };
const TRIES: usize = if cfg!(loom) { 1 } else { 4 };
/// Most words of a key.
pub const MOST_WORDS: usize = 14;

const EMPTY: u64 = 0;
const IN_USE: u64 = u64::MAX;
const LEAVING: u64 = u64::MAX - 1;

struct Place<T> {
    word: AtomicU64,
    /// The giver's.
    key: UnsafeCell<(usize, [usize; MOST_WORDS])>,
    work: UnsafeCell<Option<T>>,
}

/// What stands.
pub struct ResubmitTable<T> {
    occupied: AtomicU64,
    places: Box<[Place<T>]>,
}

// SAFETY: keys are reached through the one giver. Work is reached by who has taken its place out of EMPTY (the giver,
// before it writes a number) or to IN_USE or LEAVING, of which there is one at a time; the giver only lends it where it
// is IN_USE.
unsafe impl<T: Send + Sync> Sync for ResubmitTable<T> {}
// SAFETY: nothing of it belongs to a thread.
unsafe impl<T: Send> Send for ResubmitTable<T> {}

/// The one who gives.
pub struct Issuer<T>(Arc<ResubmitTable<T>>);

/// Work that is being given once more. When this is dropped, it has been given as the item that it was asked for.
pub struct Again<'a, T> {
    place: &'a Place<T>,
    item: u64,
}

impl<T> ResubmitTable<T> {
    /// Nothing stands yet.
    pub fn new() -> (Issuer<T>, Arc<ResubmitTable<T>>) {
        let place = |_| Place {
            word: AtomicU64::new(EMPTY),
            key: UnsafeCell::new((0, [0; MOST_WORDS])),
            work: UnsafeCell::new(None),
        };
        let standing =
            Arc::new(ResubmitTable { occupied: AtomicU64::new(0), places: (0..PLACES).map(place).collect() });
        (Issuer(Arc::clone(&standing)), standing)
    }

    /// Whether nothing stands, as far as the caller knows.
    #[inline]
    pub fn is_empty(&self) -> bool {
        // ORDERING: Relaxed; who is wrong puts work that stands, which is held twice then, or looks for what does not.
        self.occupied.load(Relaxed) == 0
    }

    /// Takes out what was last given as item `upto` or an earlier one. All items up to there count as issued, and the
    /// caller knows of that.
    pub fn sweep(&self, upto: u64, mut each: impl FnMut(T)) {
        // ORDERING: Acquire pairs with the Release in `put`. Who has put an item that is over has done so before it
        // counted it as issued, of which the caller knows, so its bit is seen.
        let mut occupied = self.occupied.load(Acquire);
        while occupied != 0 {
            let at = occupied.trailing_zeros() as usize;
            occupied &= occupied - 1;
            let place = &self.places[at];
            // ORDERING: Acquire pairs with the Release in `Again::drop`: all of the giver's use of the work is over.
            let last = place.word.load(Acquire);
            if last > upto || last == EMPTY || place.word.compare_exchange(last, LEAVING, Acquire, Relaxed).is_err() {
                continue;
            }
            // SAFETY: LEAVING is this thread's.
            let work = unsafe { (*place.work.get()).take() };
            // ORDERING: Release, both; pairs with the Acquire in `put`, by the giver that fills the place again.
            place.word.store(EMPTY, Release);
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

/// Where a key would stand best.
fn first(key: &[usize]) -> usize {
    let sum = key.iter().fold(0u64, |sum, &word| sum.rotate_left(9) ^ word as u64);
    (sum.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - PLACES.trailing_zeros())) as usize
}

impl<T> Issuer<T> {
    /// What stands under this key, to be given as item `item`, which is later than all before. None: it is to be put.
    #[inline]
    pub fn again(&mut self, key: &[usize], item: u64) -> Option<Again<'_, T>> {
        // ORDERING: Relaxed; the giver's own bits are what it looks for, and a place that is found empty is one.
        let occupied = self.0.occupied.load(Relaxed);
        let first = first(key);
        for at in (first..first + TRIES).map(|at| at % PLACES) {
            let place = &self.0.places[at];
            if occupied & (1 << at) == 0 {
                continue;
            }
            // SAFETY: keys are the giver's, and this is it.
            let (len, words) = unsafe { &*place.key.get() };
            // Word by word: a call to compare so few takes longer.
            if *len != key.len() || !words.iter().zip(key).all(|(word, key)| word == key) {
                continue;
            }
            let last = place.word.load(Relaxed);
            // ORDERING: Relaxed; what stands there is what the giver itself has put, and it reads it only.
            if last != EMPTY && last != LEAVING && place.word.compare_exchange(last, IN_USE, Relaxed, Relaxed).is_ok() {
                return Some(Again { place, item });
            }
        }
        None
    }

    /// Has work stand that is given as item `item` now. Gives it back where there is no place.
    pub fn put(&mut self, key: &[usize], work: T, item: u64) -> Result<(), T> {
        if key.len() > MOST_WORDS {
            return Err(work);
        }
        // ORDERING: Acquire pairs with the Release in `sweep`: what stood there is out.
        let occupied = self.0.occupied.load(Acquire);
        let first = first(key);
        let free = (first..first + TRIES).map(|at| at % PLACES).find(|at| occupied & (1 << at) == 0);
        let Some(at) = free else { return Err(work) };
        let place = &self.0.places[at];
        // SAFETY: the place is empty, and nobody else fills places.
        unsafe {
            let (len, words) = &mut *place.key.get();
            *len = key.len();
            words[..key.len()].copy_from_slice(key);
            *place.work.get() = Some(work);
        }
        // ORDERING: Release, both; pairs with the Acquire in `sweep`.
        place.word.store(item, Release);
        self.0.occupied.fetch_or(1 << at, Release);
        Ok(())
    }
}

impl<T> std::ops::Deref for Again<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: IN_USE is the giver's, and work stands there.
        unsafe { (*self.place.work.get()).as_ref().unwrap_unchecked() }
    }
}

impl<T> Drop for Again<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // ORDERING: Release pairs with the Acquire in `sweep`.
        self.place.word.store(self.item, Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_again_stays_until_the_last_time_is_over() {
        let (mut giver, standing) = ResubmitTable::new();
        let swept = |upto| {
            let mut out = Vec::new();
            standing.sweep(upto, |work: &str| out.push(work));
            out.sort_unstable();
            out
        };
        assert!(giver.again(&[1, 2], 1).is_none());
        giver.put(&[1, 2], "a", 1).unwrap();
        giver.put(&[1, 3], "b", 2).unwrap();
        assert_eq!(*giver.again(&[1, 2], 3).unwrap(), "a");
        assert!(giver.again(&[1], 4).is_none() && giver.again(&[1, 2, 0], 4).is_none());
        assert_eq!(swept(2), ["b"]);
        assert!(giver.again(&[1, 3], 4).is_none());
        // While it is being given, it is not taken out.
        let again = giver.again(&[1, 2], 4).unwrap();
        assert_eq!(swept(3), [""; 0]);
        drop(again);
        assert_eq!((swept(3), swept(4)), (vec![], vec!["a"]));
        giver.put(&[1, 2], "c", 5).unwrap();
        assert_eq!(swept(9), ["c"]);
    }

    #[test]
    fn where_there_is_no_place_work_comes_back() {
        let (mut giver, standing) = ResubmitTable::new();
        let refused = (1..=1000).filter(|&i| giver.put(&[i], i, i as u64).is_err()).count();
        assert!((1000 - PLACES..1000).contains(&refused), "{refused}");
        let mut out = 0;
        standing.sweep(1000, |_| out += 1);
        assert_eq!(out + refused, 1000);
        // All places are free again.
        assert_eq!((1..=1000).filter(|&i| giver.put(&[i], i, 1000).is_err()).count(), refused);
        assert!(giver.put(&[0; MOST_WORDS + 1], 0, 1001).is_err());
    }
}

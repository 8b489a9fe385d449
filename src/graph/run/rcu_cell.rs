//! A cell whose value any number of threads read at once. One thread may replace the value while no thread reads it.
//!
//! One word: the readers inside, or CLAIMED. A reader adds itself, unless the cell is claimed; a writer claims a cell
//! without readers. No thread waits: a reader that meets a claim, and a claim that meets readers, find nothing. So if
//! more than one thread replaces, the caller has a lock for that, and a reader that found nothing may look again under
//! the same lock.

use crate::sync::atomic::AtomicU32;
use crate::sync::atomic::Ordering::*;
use std::cell::UnsafeCell;
use std::fmt;

const CLAIMED: u32 = 1 << 31;

/// The word: readers in the cell, or the claim.
#[derive(Debug)]
pub(in crate::graph) struct Readers(AtomicU32);

impl Readers {
    pub fn new() -> Readers {
        Readers(AtomicU32::new(0))
    }

    /// True if the caller reads now, until it leaves.
    pub fn enter(&self) -> bool {
        // ORDERING: Acquire pairs with the Release in `unclaim`: what was put in is visible.
        self.0.fetch_update(Acquire, Relaxed, |word| (word < CLAIMED).then_some(word + 1)).is_ok()
    }

    pub fn leave(&self) {
        // ORDERING: Release pairs with the Acquire in `claim`: the read is over.
        self.0.fetch_sub(1, Release);
    }

    /// True if the caller has the cell for itself, until it gives it back.
    pub fn claim(&self) -> bool {
        self.0.compare_exchange(0, CLAIMED, Acquire, Relaxed).is_ok()
    }

    pub fn unclaim(&self) {
        self.0.store(0, Release);
    }

    #[cfg(all(test, loom))]
    pub fn claim_among_readers(&self) {
        self.0.fetch_or(CLAIMED, AcqRel);
    }
}

pub struct RcuCell<T> {
    readers: Readers,
    value: UnsafeCell<Option<T>>,
}

// SAFETY: the value is written only by a thread that has claimed the cell, and read only by those that have entered it;
// the two exclude each other. Readers in several threads share it.
unsafe impl<T: Send + Sync> Sync for RcuCell<T> {}

impl<T> Default for RcuCell<T> {
    fn default() -> Self {
        RcuCell { readers: Readers::new(), value: UnsafeCell::new(None) }
    }
}

impl<T> fmt::Debug for RcuCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RcuCell(..)")
    }
}

impl<T> RcuCell<T> {
    /// Reads the value; `None` if there is none, or it is being replaced. `read` must not come back here, and should be
    /// short.
    pub fn read<R>(&self, read: impl FnOnce(&T) -> R) -> Option<R> {
        struct ReadGuard<'a>(&'a Readers);
        impl Drop for ReadGuard<'_> {
            fn drop(&mut self) {
                self.0.leave();
            }
        }
        if !self.readers.enter() {
            return None;
        }
        let _inside = ReadGuard(&self.readers);
        // SAFETY: entered, so nobody has claimed it.
        unsafe { (*self.value.get()).as_ref() }.map(read)
    }

    /// Replaces the value and returns the last one; or returns the new one if a thread reads.
    pub fn replace(&self, value: T) -> Result<Option<T>, T> {
        if !self.readers.claim() {
            return Err(value);
        }
        // SAFETY: claimed by this thread.
        let old = unsafe { (*self.value.get()).replace(value) };
        self.readers.unclaim();
        Ok(old)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn a_value_is_read_whole_or_not_at_all() {
        let cell = Arc::new(RcuCell::default());
        let over = Arc::new(AtomicBool::new(false));
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let (cell, over) = (Arc::clone(&cell), Arc::clone(&over));
                std::thread::spawn(move || {
                    let mut seen = 0u64;
                    while !over.load(Relaxed) {
                        let pair = cell.read(|pair: &(Box<u64>, Box<u64>)| (*pair.0, *pair.1));
                        if let Some((a, b)) = pair {
                            assert_eq!(a + 1, b);
                            assert!(a >= seen);
                            seen = a;
                        }
                    }
                })
            })
            .collect();
        let (mut replaced, mut i) = (0, 0u64);
        // A reader that is preempted in the middle keeps the value for long.
        while i < 20_000 || replaced == 0 {
            replaced += u64::from(cell.replace((Box::new(i), Box::new(i + 1))).is_ok());
            i += 1;
        }
        over.store(true, Relaxed);
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        assert!(cell.replace((Box::new(0), Box::new(1))).unwrap().is_some());
    }

    #[test]
    fn it_is_not_replaced_under_a_reader() {
        let cell = RcuCell::default();
        assert_eq!(cell.read(|value: &u32| *value), None);
        assert_eq!(cell.replace(1), Ok(None));
        assert_eq!(cell.read(|_| cell.replace(2)), Some(Err(2)));
        assert_eq!(cell.replace(3), Ok(Some(1)));
        assert_eq!(cell.read(|value| *value), Some(3));
    }
}

//! A set of small numbers of which any thread may take the least: bits, and words that summarize them.
//!
//! The lowest level has a bit for each number. A bit of a level above says that a word of the one below may have bits.
//! A thread that puts a bit into an empty word raises the bit above it, and so on up to the first word that was not
//! empty. A thread that takes the last bit out of a word lowers the bit above, and so on. Both then look at the word
//! below once more, because another thread may have emptied or filled it meanwhile and found the bit above as it should
//! be: the last thread to change that bit has seen the word as it is, or else changes it again. So at rest a bit above
//! is up if and only if there is one below (`models_of_ready_sets`). Until then a number that is there may not be found
//! for a moment; so a thread that has put one in or taken one then checks whether others are there for which a thread
//! must be called.
//!
//! A number may be put in again when it has been taken, by the same rules: a bit has no history.
#![forbid(unsafe_code)]

use crate::base::{Error, Result};
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::*;

const BITS: usize = 64;
/// Enough for 2^36 numbers.
const MOST_LEVELS: usize = 6;

#[derive(Debug)]
pub struct ReadySet {
    /// From the lowest level up; the last one has one word.
    levels: Box<[Box<[AtomicU64]>]>,
}

impl ReadySet {
    /// An empty set of numbers below `count`.
    pub fn create(count: usize) -> Result<ReadySet> {
        let exhausted = |bytes| move |_| Error::exhausted("a run's ready nodes", bytes);
        let mut levels = Vec::new();
        levels.try_reserve_exact(MOST_LEVELS).map_err(exhausted(MOST_LEVELS * size_of::<Box<[AtomicU64]>>()))?;
        let mut words = count.div_ceil(BITS).max(1);
        loop {
            let mut level = Vec::new();
            level.try_reserve_exact(words).map_err(exhausted(words * size_of::<AtomicU64>()))?;
            level.resize_with(words, || AtomicU64::new(0));
            levels.push(level.into_boxed_slice());
            if words == 1 {
                return Ok(ReadySet { levels: levels.into_boxed_slice() });
            }
            words = words.div_ceil(BITS);
        }
    }

    /// Puts in a number that is not there. The owner's writes are seen by the thread that removes it.
    pub fn insert(&self, number: usize) {
        self.insert_and(number, true);
    }

    /// `looks_again`: models leave that out.
    fn insert_and(&self, number: usize, looks_again: bool) {
        // ORDERING: Release pairs with the Acquire in `remove`. All changes of a word are single operations, so the
        // chain of releases is never broken.
        if self.levels[0][number / BITS].fetch_or(bit(number), AcqRel) == 0 {
            self.raise(1, number / BITS, looks_again);
        }
    }

    /// The word `at` of the level below is no longer empty.
    fn raise(&self, level: usize, at: usize, looks_again: bool) {
        let Some(words) = self.levels.get(level) else { return };
        // ORDERING: Release pairs with the Acquire in `lower`, and Acquire with the Release there: if a thread has
        // emptied the word and come to this bit before, the look below sees it empty.
        if words[at / BITS].fetch_or(bit(at), AcqRel) == 0 {
            self.raise(level + 1, at / BITS, looks_again);
        }
        // A thread that has emptied the word since may have found the bit not raised yet, and nothing to do.
        if looks_again && self.levels[level - 1][at].load(Acquire) == 0 {
            self.lower(level, at, looks_again);
        }
    }

    /// The least number, or one that was the least a moment ago. ORDERING: Relaxed; `remove` finds out.
    #[inline]
    pub fn first(&self) -> Option<usize> {
        self.first_below(self.levels.len() - 1, 0)
    }

    fn first_below(&self, level: usize, at: usize) -> Option<usize> {
        let mut word = self.levels[level][at].load(Relaxed);
        while word != 0 {
            let number = at * BITS + word.trailing_zeros() as usize;
            if level == 0 {
                return Some(number);
            }
            if let Some(first) = self.first_below(level - 1, number) {
                return Some(first);
            }
            // Another thread is about to take this bit back.
            word &= word - 1;
        }
        None
    }

    /// Whether nothing is to be seen. Below the highest level a bit may be gone already.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.levels[self.levels.len() - 1][0].load(Relaxed) == 0
    }

    /// Takes a number out; false if it is not there (any more). Check `is_empty` after that, not before.
    pub fn remove(&self, number: usize) -> bool {
        self.remove_and(number, true)
    }

    fn remove_and(&self, number: usize, looks_again: bool) -> bool {
        // ORDERING: Acquire pairs with the Release in `insert`.
        let before = self.levels[0][number / BITS].fetch_and(!bit(number), AcqRel);
        if before == bit(number) {
            self.lower(1, number / BITS, looks_again);
        }
        before & bit(number) != 0
    }

    /// The word `at` of the level below has become empty.
    fn lower(&self, level: usize, at: usize, looks_again: bool) {
        let Some(words) = self.levels.get(level) else { return };
        // ORDERING: as in `raise`, in reverse: if a thread has filled the word and found this bit still there, the look
        // below sees its bit.
        let before = words[at / BITS].fetch_and(!bit(at), AcqRel);
        if self.levels[level - 1][at].load(Acquire) != 0 {
            self.raise(level, at, looks_again);
        } else if before == bit(at) {
            self.lower(level + 1, at / BITS, looks_again);
        }
    }
}

fn bit(number: usize) -> u64 {
    1 << (number % BITS)
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    /// At rest no bit is left above an empty word, and every number is found. One thread takes the number 0, which is
    /// there or is put in meanwhile; the other puts in 1, and takes it or not.
    fn at_rest(is_there: bool, takes: bool, looks_again: bool) {
        loom::model(move || {
            let set = Arc::new(ReadySet::create(2 * BITS).unwrap());
            if is_there {
                set.insert(0);
            }
            let other = {
                let set = Arc::clone(&set);
                thread::spawn(move || set.remove_and(0, looks_again))
            };
            let number = usize::from(is_there);
            set.insert_and(number, looks_again);
            let taken = takes && set.remove_and(number, looks_again);
            let by_other = other.join().unwrap();
            let is_left = !(taken || (!is_there && by_other));
            assert_eq!(set.first().is_some(), is_left, "not found, or found and not there");
            assert_eq!(set.is_empty(), !is_left, "a bit is left above an empty word");
        });
    }

    #[test]
    fn models_of_ready_sets_two_take_from_one_word() {
        at_rest(true, true, true);
    }

    #[test]
    fn models_of_ready_sets_one_puts_in_and_the_other_takes_the_last() {
        at_rest(true, false, true);
    }

    #[test]
    fn models_of_ready_sets_a_number_is_taken_before_it_is_told_of() {
        at_rest(false, false, true);
        at_rest(false, true, true);
    }

    #[test]
    #[should_panic(expected = "left above an empty word")]
    fn models_of_ready_sets_who_takes_does_not_look_again() {
        at_rest(true, true, false);
    }

    #[test]
    #[should_panic(expected = "left above an empty word")]
    fn models_of_ready_sets_who_puts_in_does_not_look_again() {
        at_rest(false, false, false);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    fn take(set: &ReadySet) -> Option<usize> {
        loop {
            let first = set.first()?;
            if set.remove(first) {
                return Some(first);
            }
        }
    }

    #[test]
    fn the_least_comes_first() {
        for count in [1, 64, 65, 5000, 300_000] {
            let set = ReadySet::create(count).unwrap();
            let numbers: Vec<usize> = (0..7).map(|i| i * (count - 1) / 6).collect();
            for &number in numbers.iter().rev() {
                if !numbers[..numbers.iter().position(|n| *n == number).unwrap()].contains(&number) {
                    set.insert(number);
                }
            }
            let mut expected = numbers.clone();
            expected.dedup();
            assert_eq!(std::iter::from_fn(|| take(&set)).collect::<Vec<_>>(), expected);
            assert!(set.is_empty());
            set.insert(count - 1);
            assert!(!set.remove(0) || count == 1);
        }
    }

    #[test]
    fn nothing_is_left_above_where_threads_put_in_and_take_from_the_same_words() {
        let set = ReadySet::create(70_000).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let set = &set;
                scope.spawn(move || {
                    for round in 0..200_000 {
                        // Each takes its own number, or another thread's next one.
                        let number = round % 3 * 64 * 64 + thread;
                        set.insert(number);
                        let other = round % 3 * 64 * 64 + (thread + 1) % 4;
                        if !set.remove(number) || set.remove(other) {
                            continue;
                        }
                    }
                });
            }
        });
        while take(&set).is_some() {}
        assert!(set.is_empty());
    }

    #[test]
    fn threads_take_each_number_once_each_time_that_it_is_put_in() {
        const COUNT: usize = 70_000;
        const ROUNDS: u32 = 3;
        let set = ReadySet::create(COUNT).unwrap();
        let taken: Vec<AtomicU32> = (0..COUNT).map(|_| AtomicU32::new(0)).collect();
        (0..COUNT).step_by(2).for_each(|number| set.insert(number));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while let Some(number) = take(&set) {
                        if taken[number].fetch_add(1, Relaxed) + 1 < ROUNDS {
                            set.insert(number);
                        }
                        if number % 2 == 0 && taken[number].load(Relaxed) == 1 {
                            set.insert(number + 1);
                        }
                    }
                });
            }
        });
        // A thread that saw nothing for a moment has left; the rest must still be found.
        while let Some(number) = take(&set) {
            if taken[number].fetch_add(1, Relaxed) + 1 < ROUNDS {
                set.insert(number);
            }
        }
        assert!(taken.iter().step_by(2).all(|taken| taken.load(Relaxed) == ROUNDS));
        assert!(set.is_empty());
    }
}

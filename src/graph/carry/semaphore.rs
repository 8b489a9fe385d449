//! A counting semaphore with a line of waiters, served in their order.
//!
//! A waiter's place in the line is a number. A waiter that leaves the line for a while, and returns with its number, is
//! in front of all that have come after it.
//!
//! One word counts the permits in use and the waiters. A thread that finds a free permit and an empty line takes the
//! permit by one step on the word; one that leaves while no thread waits gives it back by one step. The line itself is
//! under a lock, and the number of waiters changes only under it. A thread that leaves while others wait hands its
//! permit to the first in the line: `inside` stays as it is, so no thread can slip in between, and waiters are served
//! in their order.
//!
//! A thread joins the line in the same step that sees all permits taken; so a thread that leaves afterwards sees it,
//! and comes for it under the lock, behind which it is in the line. Two steps would lose it
//! (`models_broken_semaphore_looks_and_joins`).
#![forbid(unsafe_code)]

use crate::sync::Mutex;
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::Relaxed;
use std::collections::VecDeque;
use std::fmt;

const WAITING: u64 = 1 << 32;
const INSIDE_MASK: u64 = WAITING - 1;

/// The word. ORDERING: Relaxed throughout; it limits, and data that runs share has an order of its own.
#[derive(Debug)]
pub(in crate::graph) struct SemaphoreWord {
    word: AtomicU64,
    most: u64,
}

impl SemaphoreWord {
    pub fn new(most: u32) -> SemaphoreWord {
        SemaphoreWord { word: AtomicU64::new(0), most: u64::from(most) }
    }

    fn is_open(&self, word: u64) -> bool {
        word < self.most
    }

    /// True if the caller is inside now.
    pub fn try_enter(&self) -> bool {
        self.word.fetch_update(Relaxed, Relaxed, |word| self.is_open(word).then_some(word + 1)).is_ok()
    }

    /// True if the caller is inside now, false if it is counted as waiting. With the line locked.
    pub fn enter_or_join(&self) -> bool {
        let step = |word| Some(if self.is_open(word) { word + 1 } else { word + WAITING });
        // The step never fails.
        self.word.fetch_update(Relaxed, Relaxed, step).is_ok_and(|before| self.is_open(before))
    }

    /// True if the permit was given back, false if a thread waits for it.
    pub fn try_leave(&self) -> bool {
        self.word.fetch_update(Relaxed, Relaxed, |word| (word <= INSIDE_MASK).then_some(word - 1)).is_ok()
    }

    /// One waiter less: it got a permit that was not given back, or gave up. With the line locked.
    pub fn left_the_line(&self) {
        self.word.fetch_sub(WAITING, Relaxed);
    }

    #[cfg(all(test, loom))]
    pub fn join_without_a_look(&self) {
        self.word.fetch_add(WAITING, Relaxed);
    }

    pub fn inside(&self) -> u64 {
        self.word.load(Relaxed) & INSIDE_MASK
    }
}

/// A waiter's place in the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place(u64);

struct Line<W> {
    /// In order of their places.
    waiters: VecDeque<(Place, W)>,
    next: Place,
}

pub struct Semaphore<W> {
    word: SemaphoreWord,
    line: Mutex<Line<W>>,
}

impl<W> fmt::Debug for Semaphore<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Semaphore({} of {})", self.word.inside(), self.word.most)
    }
}

impl<W> Semaphore<W> {
    pub fn new(most: u32) -> Semaphore<W> {
        let line = Line { waiters: VecDeque::new(), next: Place(0) };
        Semaphore { word: SemaphoreWord::new(most), line: Mutex::new(line) }
    }

    /// Takes a permit if one is free and no thread waits.
    pub fn try_enter(&self) -> bool {
        self.word.try_enter()
    }

    /// Takes a permit, or puts `waiter` at the end of the line, at this place; `None` if it took one.
    pub fn enter_or_wait(&self, waiter: impl FnOnce() -> W) -> Option<Place> {
        if self.word.try_enter() {
            return None;
        }
        let mut line = self.line.lock();
        if self.word.enter_or_join() {
            return None;
        }
        let place = line.next;
        line.next = Place(place.0 + 1);
        line.waiters.push_back((place, waiter()));
        Some(place)
    }

    /// As `enter_or_wait`, for a waiter that was withdrawn from this place; true if it took a permit.
    pub fn return_to(&self, place: Place, waiter: impl FnOnce() -> W) -> bool {
        let mut line = self.line.lock();
        if self.word.enter_or_join() {
            return true;
        }
        let at = line.waiters.partition_point(|(other, _)| *other < place);
        line.waiters.insert(at, (place, waiter()));
        false
    }

    /// Leaves: gives the permit back, or hands it to the first in the line, which is returned and is inside from now
    /// on.
    #[must_use]
    pub fn leave(&self) -> Option<W> {
        while !self.word.try_leave() {
            let first = self.line.lock().waiters.pop_front().inspect(|_| self.word.left_the_line());
            if let Some((_, first)) = first {
                return Some(first);
            }
            // The waiter gave up between the two looks.
        }
        None
    }

    /// Takes a waiter out of the line; `None` if it has been handed a permit.
    pub fn withdraw(&self, is_it: impl Fn(&W) -> bool) -> Option<W> {
        let mut line = self.line.lock();
        let at = line.waiters.iter().position(|(_, waiter)| is_it(waiter))?;
        self.word.left_the_line();
        line.waiters.remove(at).map(|(_, waiter)| waiter)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};

    #[test]
    fn the_line_is_served_in_order() {
        let semaphore = Semaphore::new(2);
        assert!(semaphore.try_enter() && semaphore.enter_or_wait(|| 0).is_none());
        assert!(!semaphore.try_enter());
        for i in 1..=3 {
            assert!(semaphore.enter_or_wait(|| i).is_some());
        }
        assert_eq!(semaphore.withdraw(|w| *w == 2), Some(2));
        assert_eq!(semaphore.withdraw(|w| *w == 2), None);
        assert_eq!(semaphore.leave(), Some(1));
        assert!(!semaphore.try_enter(), "the line comes first");
        assert_eq!([semaphore.leave(), semaphore.leave(), semaphore.leave()], [Some(3), None, None]);
        assert!(semaphore.try_enter());
    }

    #[test]
    fn a_waiter_that_returns_has_its_place_again() {
        let semaphore = Semaphore::new(1);
        assert!(semaphore.try_enter());
        let places = [1, 2, 3].map(|i| semaphore.enter_or_wait(|| i).unwrap());
        assert_eq!(semaphore.withdraw(|w| *w == 2), Some(2));
        assert_eq!(semaphore.leave(), Some(1));
        assert!(!semaphore.return_to(places[1], || 2));
        assert_eq!([semaphore.leave(), semaphore.leave(), semaphore.leave()], [Some(2), Some(3), None]);
        assert!(semaphore.return_to(places[1], || 2), "a permit is free");
        assert_eq!(semaphore.word.inside(), 1);
    }

    #[test]
    fn never_more_than_so_many() {
        let semaphore = Arc::new(Semaphore::<Arc<AtomicBool>>::new(2));
        let inside = Arc::new(AtomicU32::new(0));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let (semaphore, inside) = (Arc::clone(&semaphore), Arc::clone(&inside));
                std::thread::spawn(move || {
                    for _ in 0..5_000 {
                        let called = Arc::new(AtomicBool::new(false));
                        if semaphore.enter_or_wait(|| Arc::clone(&called)).is_some() {
                            while !called.load(SeqCst) {
                                std::thread::yield_now();
                            }
                        }
                        assert!(inside.fetch_add(1, SeqCst) < 2);
                        inside.fetch_sub(1, SeqCst);
                        if let Some(next) = semaphore.leave() {
                            next.store(true, SeqCst);
                        }
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(semaphore.word.inside(), 0);
    }
}

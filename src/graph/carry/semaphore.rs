//! So many places, and a line of those who wait for one.
//!
//! One word has how many are inside and how many wait. Who finds a place free, and nobody in the line, takes it by one
//! step on the word; who leaves while nobody waits gives it back by one. The line itself is under a lock, and the
//! number of those who wait changes only under it. Who leaves while somebody waits hands the place to the first in the
//! line: `inside` stays as it is, so nobody can slip in between, and those in the line are served in their order.
//!
//! Who joins the line counts itself in the same step that sees all places taken; so whoever leaves afterwards sees it,
//! and comes for it under the lock, behind which it is in the line. Two steps would lose it
//! (`models_broken_places_look_and_join`).
#![forbid(unsafe_code)]

use crate::sync::Mutex;
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::Relaxed;
use std::collections::VecDeque;
use std::fmt;

const WAITING: u64 = 1 << 32;
const INSIDE_MASK: u64 = WAITING - 1;

/// The word. ORDERING: Relaxed throughout; it limits, and what those inside share has orders of its own.
#[derive(Debug)]
pub(in crate::graph) struct Door {
    word: AtomicU64,
    most: u64,
}

impl Door {
    pub fn new(most: u32) -> Door {
        Door { word: AtomicU64::new(0), most: u64::from(most) }
    }

    fn is_open(&self, word: u64) -> bool {
        word < self.most
    }

    /// True if the caller is inside now.
    pub fn try_enter(&self) -> bool {
        self.word.fetch_update(Relaxed, Relaxed, |word| self.is_open(word).then_some(word + 1)).is_ok()
    }

    /// True if the caller is inside, false if it is counted as waiting. With the line held.
    pub fn enter_or_join(&self) -> bool {
        let step = |word| Some(if self.is_open(word) { word + 1 } else { word + WAITING });
        // The step never fails.
        self.word.fetch_update(Relaxed, Relaxed, step).is_ok_and(|before| self.is_open(before))
    }

    /// True if the place was given back, false if somebody waits for it.
    pub fn try_leave(&self) -> bool {
        self.word.fetch_update(Relaxed, Relaxed, |word| (word <= INSIDE_MASK).then_some(word - 1)).is_ok()
    }

    /// One waits no more: it got a place that was not given back, or gave up. With the line held.
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

pub struct Semaphore<W> {
    door: Door,
    line: Mutex<VecDeque<W>>,
}

impl<W> fmt::Debug for Semaphore<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Semaphore({} of {})", self.door.inside(), self.door.most)
    }
}

impl<W> Semaphore<W> {
    pub fn new(most: u32) -> Semaphore<W> {
        Semaphore { door: Door::new(most), line: Mutex::new(VecDeque::new()) }
    }

    /// Takes a place if one is free and nobody waits.
    pub fn try_enter(&self) -> bool {
        self.door.try_enter()
    }

    /// Takes a place, or puts `waiter` at the end of the line; true if it took one.
    pub fn enter_or_wait(&self, waiter: impl FnOnce() -> W) -> bool {
        if self.door.try_enter() {
            return true;
        }
        let mut line = self.line.lock();
        if self.door.enter_or_join() {
            return true;
        }
        line.push_back(waiter());
        false
    }

    /// Leaves: gives the place back, or hands it to the first in the line, who comes back and is inside from now on.
    #[must_use]
    pub fn leave(&self) -> Option<W> {
        while !self.door.try_leave() {
            let first = self.line.lock().pop_front().inspect(|_| self.door.left_the_line());
            if first.is_some() {
                return first;
            }
            // It gave up between the two looks.
        }
        None
    }

    /// Takes a waiter out of the line; None if it has been handed a place.
    pub fn withdraw(&self, is_it: impl Fn(&W) -> bool) -> Option<W> {
        let mut line = self.line.lock();
        let at = line.iter().position(is_it)?;
        self.door.left_the_line();
        line.remove(at)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};

    #[test]
    fn the_line_is_served_in_order() {
        let places = Semaphore::new(2);
        assert!(places.try_enter() && places.enter_or_wait(|| 0));
        assert!(!places.try_enter());
        for i in 1..=3 {
            assert!(!places.enter_or_wait(|| i));
        }
        assert_eq!(places.withdraw(|w| *w == 2), Some(2));
        assert_eq!(places.withdraw(|w| *w == 2), None);
        assert_eq!(places.leave(), Some(1));
        assert!(!places.try_enter(), "the line comes first");
        assert_eq!([places.leave(), places.leave(), places.leave()], [Some(3), None, None]);
        assert!(places.try_enter());
    }

    #[test]
    fn never_more_than_so_many() {
        let places = Arc::new(Semaphore::<Arc<AtomicBool>>::new(2));
        let inside = Arc::new(AtomicU32::new(0));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let (places, inside) = (Arc::clone(&places), Arc::clone(&inside));
                std::thread::spawn(move || {
                    for _ in 0..5_000 {
                        let called = Arc::new(AtomicBool::new(false));
                        if !places.enter_or_wait(|| Arc::clone(&called)) {
                            while !called.load(SeqCst) {
                                std::thread::yield_now();
                            }
                        }
                        assert!(inside.fetch_add(1, SeqCst) < 2);
                        inside.fetch_sub(1, SeqCst);
                        if let Some(next) = places.leave() {
                            next.store(true, SeqCst);
                        }
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(places.door.inside(), 0);
    }
}

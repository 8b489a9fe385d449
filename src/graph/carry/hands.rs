//! Who looks for work in a run, who may be called for some, and how nobody misses it.
//!
//! | count    | who is in it                                              | a call                                     |
//! |----------|-----------------------------------------------------------|--------------------------------------------|
//! | `hungry` | workers that look around                                  | is not needed: they find it                |
//! | `away`   | the caller of the run, who sleeps until it is over        | `call_back`, and its gate is advanced      |
//! | `asked`  | workers that the pool has sent or is about to, up to `width` | `take_place`, and the pool is asked      |
//!
//! Who has put something where others find it (`shown`) looks at the counts after that (`is_missed`). Who stops looking
//! leaves its count first, and looks for work once more after that (`leaves`, `goes_away`). Between the two steps of
//! each lies a fence. The fences have an order: if that of the first comes first, the second sees what is there, and
//! stays; else the first sees that the second has gone, and makes a call. So what is shown is found by somebody who was
//! there, or somebody is called for it.
//!
//! ORDERING: all else is Relaxed. Work itself is handed over by where it was put, and a call by how it is made.
#![forbid(unsafe_code)]

use crate::sync::atomic::Ordering::*;
use crate::sync::atomic::{AtomicU32, fence};

#[derive(Debug, Default)]
pub(in crate::graph) struct Hands {
    hungry: AtomicU32,
    away: AtomicU32,
    asked: AtomicU32,
    width: AtomicU32,
}

impl Hands {
    /// Nobody is here, and up to `width` may be asked for. Only by the owner of a closed run.
    pub fn open(&self, width: u32) {
        self.asked.store(0, Relaxed);
        self.width.store(width, Relaxed);
    }

    /// How many may be asked for.
    pub fn width(&self) -> u32 {
        self.width.load(Relaxed)
    }

    /// How many were asked for and have not left.
    pub fn asked(&self) -> u32 {
        self.asked.load(Relaxed)
    }

    /// So many come by one call. Only by who has taken a place for that.
    pub fn come(&self, count: u32) {
        self.asked.store(count, Relaxed);
    }

    /// Takes a place for one more worker to ask for; false if as many are out as may be.
    pub fn take_place(&self) -> bool {
        let width = self.width.load(Relaxed);
        self.asked.fetch_update(Relaxed, Relaxed, |asked| (asked < width).then_some(asked + 1)).is_ok()
    }

    /// A `parallel_for` may bring more than were asked for, where it leaves its caller out.
    pub fn give_place(&self) {
        let _ = self.asked.fetch_update(Relaxed, Relaxed, |asked| asked.checked_sub(1));
    }

    /// The pool refuses: nobody is asked for any more, until one leaves.
    pub fn fill_places(&self) {
        self.asked.store(self.width.load(Relaxed), Relaxed);
    }

    pub fn looks(&self) {
        self.hungry.fetch_add(1, Relaxed);
    }

    pub fn has_looked(&self) {
        self.hungry.fetch_sub(1, Relaxed);
    }

    pub fn is_hungry(&self) -> bool {
        self.hungry.load(Relaxed) > 0
    }

    pub fn is_away(&self) -> bool {
        self.away.load(Relaxed) == 1
    }

    /// Calls the run's caller back; true for the one whose call it is.
    pub fn call_back(&self) -> bool {
        self.is_away() && self.away.swap(0, Relaxed) == 1
    }

    /// The run's caller is here again.
    pub fn is_back(&self) {
        self.away.store(0, Relaxed);
    }

    /// After something was shown: whether nobody is looking who finds it, and somebody can be called.
    pub fn is_missed(&self) -> bool {
        fence(SeqCst);
        !self.is_hungry() && (self.is_away() || self.asked() < self.width())
    }

    /// Whether a worker that does not count as hungry any more may leave, because there is nothing to be seen. If it
    /// was asked for, it gives its place back.
    pub fn leaves(&self, was_asked_for: bool, shows_work: impl Fn() -> bool) -> bool {
        if was_asked_for {
            self.give_place();
        }
        fence(SeqCst);
        let stays = shows_work();
        if was_asked_for && stays {
            self.asked.fetch_add(1, Relaxed);
        }
        !stays
    }

    /// The run's caller is about to sleep; false if there is something to do.
    pub fn goes_away(&self, shows_work: impl Fn() -> bool) -> bool {
        self.away.store(1, Relaxed);
        fence(SeqCst);
        !shows_work()
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::graph::carry::ready_set::ReadySet;
    use loom::sync::Arc;
    use loom::thread;

    /// What a worker does that shows something, and what one does that stops looking.
    #[derive(Clone, Copy)]
    struct Steps {
        is_missed: fn(&Hands) -> bool,
        leaves: fn(&Hands, &ReadySet) -> bool,
    }

    const STEPS: Steps =
        Steps { is_missed: Hands::is_missed, leaves: |hands, ready| hands.leaves(true, || !ready.is_empty()) };

    /// One worker shows a node and goes into another one; the other worker, who was asked for, stops looking. Then
    /// either the second has the node, or somebody was called.
    fn showing_against_leaving(states: Steps) {
        loom::model(move || {
            let hands = Arc::new(Hands::default());
            let ready = Arc::new(ReadySet::create(1).unwrap());
            hands.open(1);
            assert!(hands.take_place());
            hands.looks();
            let other = {
                let (hands, ready) = (Arc::clone(&hands), Arc::clone(&ready));
                thread::spawn(move || {
                    hands.has_looked();
                    !(states.leaves)(&hands, &ready) && ready.remove(0)
                })
            };
            ready.insert(0);
            let is_called = (states.is_missed)(&hands) && hands.take_place();
            let is_taken = other.join().unwrap();
            // Hungry when it was looked at, and gone without another look: nobody comes.
            assert!(is_called || is_taken, "a node is shown and nobody comes");
        });
    }

    #[test]
    fn models_of_hands_showing_against_leaving() {
        showing_against_leaving(STEPS);
    }

    #[test]
    #[should_panic(expected = "nobody comes")]
    fn models_of_hands_without_a_fence_behind_what_is_shown() {
        let is_missed = |hands: &Hands| !hands.is_hungry() && hands.asked() < hands.width();
        showing_against_leaving(Steps { is_missed, ..STEPS });
    }

    #[test]
    #[should_panic(expected = "nobody comes")]
    fn models_of_hands_without_a_second_look() {
        let leaves = |hands: &Hands, _: &ReadySet| hands.leaves(true, || false);
        showing_against_leaving(Steps { leaves, ..STEPS });
    }

    #[test]
    #[should_panic(expected = "nobody comes")]
    fn models_of_hands_who_gives_its_place_back_too_late() {
        let leaves = |hands: &Hands, ready: &ReadySet| {
            let leaves = hands.leaves(false, || !ready.is_empty());
            hands.give_place();
            leaves
        };
        showing_against_leaving(Steps { leaves, ..STEPS });
    }

    /// The caller of the run goes to sleep while a worker shows something.
    #[test]
    fn models_of_hands_showing_against_a_caller_that_goes_away() {
        loom::model(|| {
            let hands = Arc::new(Hands::default());
            let ready = Arc::new(ReadySet::create(1).unwrap());
            let caller = {
                let (hands, ready) = (Arc::clone(&hands), Arc::clone(&ready));
                thread::spawn(move || !hands.goes_away(|| !ready.is_empty()))
            };
            ready.insert(0);
            let is_called = hands.is_missed() && hands.call_back();
            assert!(caller.join().unwrap() || is_called, "a node is shown and nobody comes");
        });
    }
}

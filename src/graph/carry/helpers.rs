//! The threads that look for work in a run, those that may be called for it, and why no ready work is missed.
//!
//! | count    | threads in it                                         | to call one                          |
//! |----------|-------------------------------------------------------|--------------------------------------|
//! | `hungry` | workers that look around                              | not needed: they find the work       |
//! | `away`   | the caller of the run, asleep until the run is over   | `call_back`; advance its event count |
//! | `asked`  | helpers that the pool has sent or will, up to `width` | `take_place`; ask the pool           |
//!
//! A thread that has put work where others find it (`shown`) then looks at the counts (`is_missed`). A thread that
//! stops looking first leaves its count, then looks for work once more (`leaves`, `goes_away`). Between the two steps
//! of each lies a fence. The fences have an order: if that of the first comes first, the second sees the work, and
//! stays; else the first sees that the second has gone, and makes a call. So work that is shown is found by a thread
//! that was there, or a thread is called for it.
//!
//! A caller that leaves its own blocking `parallel_for`, to make another one, cannot be called until the helpers of the
//! first have left it, too. So it does that only while none of them works in the run: it says so (`is_over`), has a
//! fence, and looks; a helper comes in, has a fence, and leaves at once if that was said.
//!
//! ORDERING: all else is Relaxed. Work itself is handed over by where it was put, and a call by how it is made.
#![forbid(unsafe_code)]

use crate::sync::atomic::Ordering::*;
use crate::sync::atomic::{AtomicU32, fence};

#[derive(Debug, Default)]
pub(in crate::graph) struct Helpers {
    hungry: AtomicU32,
    away: AtomicU32,
    asked: AtomicU32,
    width: AtomicU32,
    /// How many came by one call.
    came: AtomicU32,
    /// 1: the caller leaves its `parallel_for`, and helpers that come now are to do the same.
    is_over: AtomicU32,
}

impl Helpers {
    /// No thread is here, and up to `width` may be asked for. Only for the owner of a closed run.
    pub fn open(&self, width: u32) {
        self.asked.store(0, Relaxed);
        self.width.store(width, Relaxed);
    }

    /// How many helpers may be asked for.
    pub fn width(&self) -> u32 {
        self.width.load(Relaxed)
    }

    /// How many helpers were asked for and have not left.
    pub fn asked(&self) -> u32 {
        self.asked.load(Relaxed)
    }

    /// This many helpers come by one call. Only for the thread that has taken a place for that.
    pub fn come(&self, count: u32) {
        self.came.store(count, Relaxed);
        self.asked.store(count, Relaxed);
    }

    /// Whether some of those that came by one call have left.
    pub fn have_left(&self) -> bool {
        self.asked() < self.came.load(Relaxed)
    }

    /// Takes a place for one more helper to ask for; false if all places are taken.
    pub fn take_place(&self) -> bool {
        let width = self.width.load(Relaxed);
        self.asked.fetch_update(Relaxed, Relaxed, |asked| (asked < width).then_some(asked + 1)).is_ok()
    }

    /// A `parallel_for` may bring more helpers than were asked for, where it leaves its caller out.
    pub fn give_place(&self) {
        let _ = self.asked.fetch_update(Relaxed, Relaxed, |asked| asked.checked_sub(1));
    }

    /// The pool refuses: no helper is asked for until one leaves.
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

    /// Calls the run's caller back; true for the one thread that makes the call.
    pub fn call_back(&self) -> bool {
        self.is_away() && self.away.swap(0, Relaxed) == 1
    }

    /// The run's caller is here again.
    pub fn is_back(&self) {
        self.away.store(0, Relaxed);
    }

    /// After something was shown: whether no thread that looks around finds it, and one can be called.
    pub fn is_missed(&self) -> bool {
        fence(SeqCst);
        !self.is_hungry() && (self.is_away() || self.asked() < self.width())
    }

    /// Whether a worker that no longer counts as hungry may leave, because there is nothing to be seen. If it was asked
    /// for, it gives its place back.
    pub fn leaves(&self, was_asked_for: bool, shows_work: impl Fn() -> bool) -> bool {
        if was_asked_for {
            self.give_place();
        }
        let leaves = self.sees_nothing(shows_work);
        if was_asked_for && !leaves {
            self.asked.fetch_add(1, Relaxed);
        }
        leaves
    }

    /// Whether there is nothing to be seen, for a worker that no longer counts as hungry.
    pub fn sees_nothing(&self, shows_work: impl Fn() -> bool) -> bool {
        fence(SeqCst);
        !shows_work()
    }

    /// The caller begins a `parallel_for`, from which nobody comes yet.
    pub fn opens_bulk(&self) {
        self.is_over.store(0, Relaxed);
    }

    /// Whether the caller may leave its `parallel_for`: no helper is in the run, and none of those that still come
    /// stays.
    pub fn closes_bulk(&self, is_alone: impl Fn() -> bool) -> bool {
        self.is_over.store(1, Relaxed);
        fence(SeqCst);
        let is_alone = is_alone();
        if !is_alone {
            self.is_over.store(0, Relaxed);
        }
        is_alone
    }

    /// Whether a helper of a `parallel_for`, which has come into the run, may stay. Else it gives its place back.
    pub fn stays_in_bulk(&self) -> bool {
        fence(SeqCst);
        let stays = self.is_over.load(Relaxed) == 0;
        if !stays {
            self.give_place();
        }
        stays
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

    /// The steps of a worker that shows something, and of one that stops looking.
    #[derive(Clone, Copy)]
    struct Steps {
        is_missed: fn(&Helpers) -> bool,
        leaves: fn(&Helpers, &ReadySet) -> bool,
    }

    const STEPS: Steps =
        Steps { is_missed: Helpers::is_missed, leaves: |helpers, ready| helpers.leaves(true, || !ready.is_empty()) };

    /// One worker shows a node and goes into another one; the other worker, which was asked for, stops looking. Then
    /// either the second has the node, or a thread was called.
    fn showing_against_leaving(states: Steps) {
        loom::model(move || {
            let helpers = Arc::new(Helpers::default());
            let ready = Arc::new(ReadySet::create(1).unwrap());
            helpers.open(1);
            assert!(helpers.take_place());
            helpers.looks();
            let other = {
                let (helpers, ready) = (Arc::clone(&helpers), Arc::clone(&ready));
                thread::spawn(move || {
                    helpers.has_looked();
                    !(states.leaves)(&helpers, &ready) && ready.remove(0)
                })
            };
            ready.insert(0);
            let is_called = (states.is_missed)(&helpers) && helpers.take_place();
            let is_taken = other.join().unwrap();
            // It was hungry when looked at, and left without another look: nobody comes.
            assert!(is_called || is_taken, "a node is shown and nobody comes");
        });
    }

    #[test]
    fn models_of_helpers_showing_against_leaving() {
        showing_against_leaving(STEPS);
    }

    #[test]
    #[should_panic(expected = "nobody comes")]
    fn models_of_helpers_without_a_fence_behind_what_is_shown() {
        let is_missed = |helpers: &Helpers| !helpers.is_hungry() && helpers.asked() < helpers.width();
        showing_against_leaving(Steps { is_missed, ..STEPS });
    }

    #[test]
    #[should_panic(expected = "nobody comes")]
    fn models_of_helpers_without_a_second_look() {
        let leaves = |helpers: &Helpers, _: &ReadySet| helpers.leaves(true, || false);
        showing_against_leaving(Steps { leaves, ..STEPS });
    }

    #[test]
    #[should_panic(expected = "nobody comes")]
    fn models_of_helpers_with_a_place_given_back_too_late() {
        let leaves = |helpers: &Helpers, ready: &ReadySet| {
            let leaves = helpers.leaves(false, || !ready.is_empty());
            helpers.give_place();
            leaves
        };
        showing_against_leaving(Steps { leaves, ..STEPS });
    }

    /// A helper comes while the caller leaves its `parallel_for`: not both have their way.
    fn coming_against_leaving(comes: fn(&Helpers, &AtomicU32) -> bool) {
        loom::model(move || {
            let (helpers, inside) = (Arc::new(Helpers::default()), Arc::new(AtomicU32::new(1)));
            helpers.open(1);
            assert!(helpers.take_place());
            let helper = {
                let (helpers, inside) = (Arc::clone(&helpers), Arc::clone(&inside));
                thread::spawn(move || comes(&helpers, &inside))
            };
            let leaves = helpers.closes_bulk(|| inside.load(Relaxed) == 1);
            assert!(!(helper.join().unwrap() && leaves), "the caller waits for a helper that works");
        });
    }

    #[test]
    fn models_of_helpers_coming_against_leaving() {
        coming_against_leaving(|helpers, inside| {
            inside.fetch_add(1, Relaxed);
            helpers.stays_in_bulk()
        });
    }

    #[test]
    #[should_panic(expected = "a helper that works")]
    fn models_of_helpers_coming_after_a_look() {
        coming_against_leaving(|helpers, inside| {
            let stays = helpers.stays_in_bulk();
            inside.fetch_add(1, Relaxed);
            stays
        });
    }

    /// The caller of the run goes to sleep while a worker shows something.
    #[test]
    fn models_of_helpers_showing_against_a_caller_that_goes_away() {
        loom::model(|| {
            let helpers = Arc::new(Helpers::default());
            let ready = Arc::new(ReadySet::create(1).unwrap());
            let caller = {
                let (helpers, ready) = (Arc::clone(&helpers), Arc::clone(&ready));
                thread::spawn(move || !helpers.goes_away(|| !ready.is_empty()))
            };
            ready.insert(0);
            let is_called = helpers.is_missed() && helpers.call_back();
            assert!(caller.join().unwrap() || is_called, "a node is shown and nobody comes");
        });
    }
}

//! The stop flag of a call: it tells a kernel that its result is not needed any more, and ends the runs that it has
//! begun.
//!
//! A run inside of a call is *attached* to the call's stop while it is active: setting that stops the run too. So a
//! node of the inner run reads one word, its own run's, however deeply it is nested; the stopping thread walks down.
//! The list of attached runs is under a lock, taken once when an inner run begins, once when it ends, and by the
//! stopping thread: stops are rare, and locks are taken from the outside to the inside.
#![forbid(unsafe_code)]

use crate::base::Error;
use crate::base::time::now_ns;
use crate::sync::Mutex;
use smallvec::SmallVec;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};

/// A run that can be told to begin nothing more.
pub trait Stoppable: Send + Sync {
    /// `cause`: the failure because of which it ends, if that is known.
    fn stop(&self, cause: Option<&Error>);

    /// Begins here the work that a pool has accepted and not begun, if this thread may do it.
    fn begin_here(&self) -> BeginOutcome {
        BeginOutcome::Nothing
    }
}

/// The result of `begin_here`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BeginOutcome {
    Nothing,
    /// There is work, which is left to its pool for a while.
    Later,
    /// One piece of work was done.
    Done,
}

/// A stop flag with a deadline.
///
/// ORDERING: Relaxed throughout; a late reader does a little unneeded work, and no other data depends on it. The
/// deadline and the number change only while no thread is in the run.
#[derive(Default)]
pub struct Stop {
    flag: AtomicU32,
    /// 1 once a kernel was told that the deadline is past.
    told_late: AtomicU32,
    /// On the library's clock; 0 = never.
    deadline: AtomicU64,
    /// The number of the run, which runs inside of its nodes have in common with it; 0 = none.
    run: AtomicUsize,
    /// The attached runs, with the numbers of their groups.
    inner: Mutex<Vec<(usize, Arc<dyn Stoppable>)>>,
    /// The failure because of which it was set.
    cause: Mutex<Option<Error>>,
}

/// The flag of a call that cannot be stopped.
pub static NEVER: Stop = Stop {
    flag: AtomicU32::new(0),
    told_late: AtomicU32::new(0),
    deadline: AtomicU64::new(0),
    run: AtomicUsize::new(0),
    inner: Mutex::new(Vec::new()),
    cause: Mutex::new(None),
};

impl Stop {
    pub fn set(&self) {
        self.set_because(None);
    }

    /// The same because of a failure. The flag is set under the lock of the cause: a thread that sees the one finds the
    /// other.
    pub fn set_because(&self, cause: Option<&Error>) {
        if let Some(cause) = cause {
            let mut kept = self.cause.lock();
            kept.get_or_insert_with(|| cause.clone());
            self.flag.store(1, Relaxed);
        }
        self.flag.store(1, Relaxed);
        // After the flag is set: a run attached later sees it, because the lock orders the two.
        self.inner.lock().iter().for_each(|(_, run)| run.stop(cause));
    }

    /// The failure because of which it was set, if that is known.
    pub fn cause(&self) -> Option<Error> {
        self.cause.lock().clone()
    }

    /// As `Stoppable::begin_here`, for the attached runs.
    pub fn begin_here(&self) -> BeginOutcome {
        // Not under the lock: this runs host kernels.
        let inner: SmallVec<[Arc<dyn Stoppable>; 4]> =
            self.inner.lock().iter().map(|(_, run)| Arc::clone(run)).collect();
        let mut most = BeginOutcome::Nothing;
        for run in inner {
            most = most.max(run.begin_here());
            if most == BeginOutcome::Done {
                break;
            }
        }
        most
    }

    /// Stops the runs attached with this number, and nothing else.
    pub fn stop_group(&self, group: usize) {
        self.inner.lock().iter().filter(|(number, _)| *number == group).for_each(|(_, run)| run.stop(None));
    }

    /// Attaches `run` to this call until the result is dropped: it stops with the call.
    #[must_use]
    pub fn attach(&self, group: usize, run: Arc<dyn Stoppable>) -> Attached<&Stop> {
        Attached::new(self, group, run)
    }

    /// The same for a run that outlives the function that began it.
    #[must_use]
    pub fn attach_kept(self: &Arc<Self>, run: Arc<dyn Stoppable>) -> Attached<Arc<Stop>> {
        Attached::new(Arc::clone(self), 0, run)
    }

    #[inline]
    pub fn is_set(&self) -> bool {
        self.flag.load(Relaxed) != 0
    }

    pub fn clear(&self) {
        self.flag.store(0, Relaxed);
        *self.cause.lock() = None;
    }

    pub fn run(&self) -> usize {
        self.run.load(Relaxed)
    }

    pub fn set_run(&self, run: usize) {
        self.run.store(run, Relaxed);
    }

    /// Sets the deadline; 0 = never.
    pub fn set_deadline(&self, at_ns: u64) {
        self.told_late.store(0, Relaxed);
        self.deadline.store(at_ns, Relaxed);
    }

    /// `is_late`, for a kernel that may end early because of it: its run fails.
    pub fn tells_late(&self) -> bool {
        let is_late = self.is_late();
        if is_late {
            self.told_late.store(1, Relaxed);
        }
        is_late
    }

    pub fn has_told_late(&self) -> bool {
        self.told_late.load(Relaxed) != 0
    }

    /// 0 = never.
    pub fn deadline(&self) -> u64 {
        self.deadline.load(Relaxed)
    }

    pub fn is_late(&self) -> bool {
        match self.deadline.load(Relaxed) {
            0 => false,
            at_ns => now_ns() >= at_ns,
        }
    }
}

/// A run attached to a call.
pub struct Attached<S: Deref<Target = Stop>> {
    to: S,
    run: Arc<dyn Stoppable>,
}

impl<S: Deref<Target = Stop>> Attached<S> {
    fn new(to: S, group: usize, run: Arc<dyn Stoppable>) -> Attached<S> {
        if std::ptr::eq(&*to, &NEVER) {
            return Attached { to, run };
        }
        to.inner.lock().push((group, Arc::clone(&run)));
        if to.is_set() {
            run.stop(to.cause().as_ref());
        }
        Attached { to, run }
    }
}

impl<S: Deref<Target = Stop>> Drop for Attached<S> {
    fn drop(&mut self) {
        if std::ptr::eq(&*self.to, &NEVER) {
            return;
        }
        let mut inner = self.to.inner.lock();
        if let Some(at) = inner.iter().position(|(_, run)| Arc::ptr_eq(run, &self.run)) {
            inner.swap_remove(at);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    impl Stoppable for Stop {
        fn stop(&self, cause: Option<&Error>) {
            self.set_because(cause);
        }
    }

    fn attached(to: &Stop, group: usize) -> (Arc<Stop>, Attached<&Stop>) {
        let run = Arc::new(Stop::default());
        let guard = to.attach(group, Arc::clone(&run) as Arc<dyn Stoppable>);
        (run, guard)
    }

    #[test]
    fn a_stop_goes_down_to_what_is_attached() {
        let outer = Stop::default();
        let (middle, _middle) = attached(&outer, 0);
        let (inner, _inner) = attached(&middle, 0);
        let (gone, guard) = attached(&outer, 0);
        drop(guard);
        outer.set();
        assert!(middle.is_set() && inner.is_set() && !gone.is_set());
        assert!(inner.cause().is_none());
        let (late, _late) = attached(&outer, 0);
        assert!(late.is_set(), "attached behind the stop");
    }

    #[test]
    fn a_cause_goes_down_too() {
        let outer = Stop::default();
        let (middle, _middle) = attached(&outer, 0);
        let (inner, _inner) = attached(&middle, 0);
        outer.set_because(Some(&Error::internal("a disk is full")));
        let (late, _late) = attached(&middle, 0);
        for stop in [&middle, &inner, &late] {
            assert_eq!(stop.cause().unwrap().message(), "a disk is full");
        }
    }

    #[test]
    fn a_group_is_stopped_alone() {
        let outer = Stop::default();
        let (one, _one) = attached(&outer, 1);
        let (two, _two) = attached(&outer, 2);
        outer.stop_group(2);
        assert!(!outer.is_set() && !one.is_set() && two.is_set());
    }
}

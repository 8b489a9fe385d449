//! What the leaves of a program write down while they run, and the mischief that they make when they are asked to.

use super::interpret::Tally;
use super::later::Job;
use super::spec::Spec;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::*};
use weir_core::base::{Code, Error, Ref, Result};
use weir_core::graph::Run;

/// What a leaf does instead of its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    Fail,
    Panic,
    /// Cancels the run that it is in, and does its work all the same.
    Cancel,
}

pub const FAILURE: &str = "asked to fail";
pub const PANIC: &str = "asked to panic";

const NEVER: u64 = u64::MAX;

/// One leaf's notes. ORDERING: Relaxed throughout; they are read when the run is over, which its end orders.
#[derive(Default)]
pub struct Probe {
    calls: AtomicU64,
    sight: AtomicU64,
    /// When its first call began and its last one ended, by the board's clock; begun is kept one higher, 0 = never.
    begun: AtomicU64,
    ended: AtomicU64,
    /// The call in which to make trouble, counted from 1; 0 = none.
    trouble_at: AtomicU64,
    trouble: AtomicU32,
}

/// The notes of all leaves of a program, by node id.
pub struct Board {
    probes: Vec<Probe>,
    clock: AtomicU64,
    /// The run that `Trouble::Cancel` is for.
    cancel: Mutex<Cancel>,
    /// Whether some trouble was made since the last reset.
    made: AtomicBool,
    /// Ends of calls that were left to another leaf, and whether there are any.
    open: Mutex<Vec<Job>>,
    any_open: AtomicBool,
}

/// What a leaf was asked to say.
pub fn failure() -> Error {
    Error::new(Code::DataLoss, FAILURE)
}

#[derive(Default)]
struct Cancel {
    run: Option<Ref<Run>>,
    wanted: bool,
    /// The leaf had the run and cancelled it while it was in it.
    done: bool,
}

impl Board {
    pub fn new(spec: &Spec) -> Board {
        Board {
            probes: (0..spec.num_ids).map(|_| Probe::default()).collect(),
            clock: AtomicU64::new(1),
            cancel: Mutex::default(),
            made: AtomicBool::new(false),
            open: Mutex::default(),
            any_open: AtomicBool::new(false),
        }
    }

    /// Forgets everything, trouble included.
    pub fn reset(&self) {
        for probe in &self.probes {
            for word in [&probe.calls, &probe.sight, &probe.begun, &probe.ended, &probe.trouble_at] {
                word.store(0, Relaxed);
            }
        }
        self.clock.store(1, Relaxed);
        self.made.store(false, Relaxed);
        *self.cancel.lock().unwrap() = Cancel::default();
    }

    pub fn tally(&self, id: usize) -> Tally {
        Tally { calls: self.probes[id].calls.load(Relaxed), sight: self.probes[id].sight.load(Relaxed) }
    }

    /// When leaf `id` began first and ended last; None if it never ran.
    pub fn span(&self, id: usize) -> Option<(u64, u64)> {
        let probe = &self.probes[id];
        let begun = probe.begun.load(Relaxed);
        (begun != 0).then(|| (NEVER - begun, probe.ended.load(Relaxed)))
    }

    /// Leaf `id` makes trouble in call `at`, counted from 1.
    pub fn plant(&self, id: usize, at: u64, trouble: Trouble) {
        self.probes[id].trouble.store(trouble as u32, Relaxed);
        self.probes[id].trouble_at.store(at, Relaxed);
    }

    /// Whether the planted trouble was made.
    pub fn was_made(&self) -> bool {
        self.made.load(Relaxed)
    }

    /// The run that a leaf may cancel; cancels it if the leaf was reached before. Gives whether a leaf cancels it, or
    /// has done so, from inside.
    pub fn give_run(&self, run: &Ref<Run>) {
        let mut cancel = self.cancel.lock().unwrap();
        cancel.run = Some(Ref::clone(run));
        if cancel.wanted {
            run.cancel();
        }
    }

    /// Whether the leaf itself cancelled the run, so that it can't have been too late.
    pub fn cancelled_from_inside(&self) -> bool {
        self.cancel.lock().unwrap().done
    }

    /// The body of leaf `id`: notes what it sees, makes trouble, or works.
    pub fn call(&self, id: usize, sight: u64, work: impl FnOnce() -> Result<()>) -> Result<()> {
        if self.begin(id, sight) {
            return Err(failure());
        }
        let result = work();
        self.end(id);
        result
    }

    /// Leaf `id` begins, and may make trouble. True if it is to fail.
    pub fn begin(&self, id: usize, sight: u64) -> bool {
        self.end_another();
        let probe = &self.probes[id];
        // The earliest begin is the largest of these.
        probe.begun.fetch_max(NEVER - self.clock.fetch_add(1, Relaxed), Relaxed);
        let call = probe.calls.fetch_add(1, Relaxed) + 1;
        probe.sight.fetch_add(sight, Relaxed);
        if call == probe.trouble_at.load(Relaxed) {
            self.made.store(true, Relaxed);
            let is = |trouble: Trouble| probe.trouble.load(Relaxed) == trouble as u32;
            if is(Trouble::Fail) {
                return true;
            }
            assert!(!is(Trouble::Panic), "{PANIC}");
            self.cancel_run();
        }
        false
    }

    pub fn end(&self, id: usize) {
        self.probes[id].ended.fetch_max(self.clock.fetch_add(1, Relaxed), Relaxed);
    }

    /// Leaves the end of a call to whichever leaf begins next.
    pub fn leave_to_another(&self, job: Job) {
        self.open.lock().unwrap().push(job);
        self.any_open.store(true, Relaxed);
    }

    /// Ends a call that was left to another, if there is one.
    pub fn end_another(&self) {
        if !self.any_open.load(Relaxed) {
            return;
        }
        let job = {
            let mut open = self.open.lock().unwrap();
            let job = open.pop();
            self.any_open.store(!open.is_empty(), Relaxed);
            job
        };
        job.into_iter().for_each(|job| job());
    }

    fn cancel_run(&self) {
        let mut cancel = self.cancel.lock().unwrap();
        match &cancel.run {
            Some(run) => {
                run.cancel();
                cancel.done = true;
            }
            // The run was started by a thread that has not got its handle yet; it may be this very thread.
            None => cancel.wanted = true,
        }
    }
}

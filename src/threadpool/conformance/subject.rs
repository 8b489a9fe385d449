//! The pool under examination, and how its probes are run.

use crate::base::Ref;
use crate::base::time::Deadline;
use crate::sync::thread::{self, ThreadGroup, ThreadOrigin};
use crate::sync::{EventCount, Mutex};
use crate::threadpool::ThreadPool;
use crate::threadpool::host::{Checks, HostVtable};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::*};
use std::time::Duration;

/// A probe that takes so many budgets is abandoned.
const PROBE_BUDGETS: u64 = 5;

/// How much to try, and how long to wait.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// For each clause.
    pub budget_ns: u64,
    pub rounds: u32,
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options { budget_ns: 2_000_000_000, rounds: 16, seed: 1 }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClauseVerdict {
    Pass,
    Fail,
    /// The pool lacks the function.
    NotOffered,
    /// Nothing wrong: an observation.
    Note,
    /// An earlier probe did not return, or there was nothing to see: a pool that refuses all work breaks no clause.
    NotChecked,
}

/// The report on a clause.
#[derive(Clone, Debug)]
pub struct ReportLine {
    pub clause: &'static str,
    pub title: &'static str,
    pub verdict: ClauseVerdict,
    pub text: String,
}

/// All probes' observations of the pool.
#[derive(Debug, Default)]
pub struct PoolObservations {
    pub offered: AtomicU64,
    pub refused: AtomicU64,
    /// Tasks that ran inside schedule.
    pub inline: AtomicU64,
    /// Tasks that schedule took.
    pub scheduled: AtomicU64,
    /// Tasks of a parallel_for that ran in its caller.
    pub in_caller: AtomicU64,
    /// Tasks of parallel_for.
    pub bulk: AtomicU64,
    /// Nanoseconds from the call to the task.
    pub hops: Mutex<Vec<u64>>,
    /// Maximum of concurrent tasks.
    pub at_once: AtomicUsize,
    /// Of pairs of tasks: how many began in reverse order, of how many.
    pub overtaken: Mutex<(usize, usize)>,
}

/// The result of a probe.
#[derive(Clone, Debug)]
pub enum Outcome {
    Pass(String),
    Fail(String),
    NotOffered(String),
    /// There was nothing to see.
    NotMet(String),
}

/// A probe's access to the pool.
pub struct ProbeBench {
    pub(super) checks: Arc<Checks>,
    pub(super) options: Options,
    pub(super) seen: PoolObservations,
    pool: Mutex<Option<Ref<ThreadPool>>>,
    threads: Arc<ThreadGroup>,
    random: AtomicU64,
    /// The pool was seen to lose tasks.
    loses: AtomicBool,
    /// The running probe's current step.
    step: Mutex<&'static str>,
}

impl ProbeBench {
    /// The pool, with all of weir on top of it.
    pub fn pool(&self) -> Option<Ref<ThreadPool>> {
        self.pool.lock().clone()
    }

    /// For a wait for tasks. Shorter once the pool is known to lose some.
    pub fn deadline(&self) -> Deadline {
        Deadline::after(self.patience_ns())
    }

    fn patience_ns(&self) -> u64 {
        if self.loses.load(Relaxed) { self.options.budget_ns / 8 } else { self.options.budget_ns }
    }

    pub(super) fn tasks_are_lost(&self) {
        self.loses.store(true, Relaxed);
    }

    /// When to abandon a probe.
    pub(super) fn left_behind(&self) -> Deadline {
        Deadline::after(self.options.budget_ns.saturating_mul(PROBE_BUDGETS + 1))
    }

    /// "2 s".
    pub fn budget(&self) -> String {
        seconds(self.options.budget_ns)
    }

    pub fn rounds(&self) -> u32 {
        self.options.rounds
    }

    /// The next draw below `n` (splitmix64, Steele, Lea and Flood 2014).
    pub(super) fn draw(&self, n: u64) -> u64 {
        let mut z = self.random.fetch_add(0x9E37_79B9_7F4A_7C15, Relaxed);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % n.max(1)
    }

    /// Starts a thread that does not belong to the pool.
    pub(super) fn start(&self, index: Option<usize>, run: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
        thread::spawn(&self.threads, index, run)
    }

    /// Notes the current step, in case it does not return.
    pub fn step(&self, what: &'static str) {
        *self.step.lock() = what;
    }
}

pub(super) fn seconds(ns: u64) -> String {
    match ns {
        0..1_000_000 => format!("{} us", ns / 1_000),
        1_000_000..1_000_000_000 => format!("{} ms", ns / 1_000_000),
        _ => format!("{} s", ns as f64 / 1e9),
    }
}

/// A pool and the report on it.
pub struct PoolSubject {
    pub(super) bench: Arc<ProbeBench>,
    lines: Mutex<Vec<ReportLine>>,
    /// A probe did not return.
    stuck: AtomicBool,
}

impl PoolSubject {
    pub(super) fn new(vtable: HostVtable, options: Options) -> PoolSubject {
        let (pool, checks) = ThreadPool::observed(vtable);
        let (name, owner) = ("weir-probe".to_owned(), String::new());
        let bench = ProbeBench {
            threads: Arc::new(ThreadGroup { origin: ThreadOrigin::Conformance, name, owner, pool: 0 }),
            checks,
            options,
            seen: PoolObservations::default(),
            pool: Mutex::new(Some(pool)),
            random: AtomicU64::new(options.seed),
            loses: AtomicBool::new(false),
            step: Mutex::new(""),
        };
        PoolSubject { bench: Arc::new(bench), lines: Mutex::default(), stuck: AtomicBool::new(false) }
    }

    /// Runs `probe` in a thread of its own and records its result for `clause`.
    pub fn probe(
        &self,
        clause: &'static str,
        title: &'static str,
        probe: impl FnOnce(&ProbeBench) -> Outcome + Send + 'static,
    ) {
        let (verdict, text) = match self.run(probe) {
            Ok(Outcome::Pass(text)) => (ClauseVerdict::Pass, text),
            Ok(Outcome::Fail(text)) => (ClauseVerdict::Fail, text),
            Ok(Outcome::NotOffered(text)) => (ClauseVerdict::NotOffered, text),
            Ok(Outcome::NotMet(text)) => (ClauseVerdict::NotChecked, text),
            Err(line) => line,
        };
        self.lines.lock().push(ReportLine { clause, title, verdict, text });
    }

    fn run(
        &self,
        probe: impl FnOnce(&ProbeBench) -> Outcome + Send + 'static,
    ) -> Result<Outcome, (ClauseVerdict, String)> {
        if self.stuck.load(Relaxed) {
            return Err((ClauseVerdict::NotChecked, "a call before this one has not returned".to_owned()));
        }
        let report = Arc::new((Mutex::new(None), EventCount::new()));
        let (done, bench) = (Arc::clone(&report), Arc::clone(&self.bench));
        bench.step("a call of the pool");
        let started = self.bench.start(None, move || {
            let outcome = catch_unwind(AssertUnwindSafe(|| probe(&bench)));
            // Tasks that the pool has not begun by now are lost, and must not disturb the next probe.
            bench.checks.take_back(bench.patience_ns());
            drop(bench);
            *done.0.lock() = outcome.ok();
            done.1.advance(1);
        });
        if let Err(error) = started {
            return Err((ClauseVerdict::NotChecked, format!("no thread could be started: {error}")));
        }
        // The probe's waits have their own limit; this one is for a call that does not return.
        let limit_ns = self.bench.options.budget_ns.saturating_mul(PROBE_BUDGETS);
        if !report.1.wait(1, 0, Deadline::after(limit_ns)) {
            self.stuck.store(true, Relaxed);
            let step = *self.bench.step.lock();
            return Err((ClauseVerdict::Fail, format!("{step} has not returned in {}", seconds(limit_ns))));
        }
        let outcome = report.0.lock().take();
        outcome.ok_or_else(|| (ClauseVerdict::Fail, "a defect of weir: the probe panicked".to_owned()))
    }

    /// Releases the pool, checks that, and settles the verdicts.
    pub(super) fn finish(self, notes: Vec<ReportLine>) -> Vec<ReportLine> {
        self.probe("H13", "release ends the pool", |bench| {
            bench.settle(bench.deadline());
            bench.checks.take_back(0);
            bench.step("release");
            // Drops the last reference, in a thread that does not belong to the pool.
            drop(bench.pool.lock().take());
            let deadline = bench.deadline();
            while !bench.checks.is_released() && !deadline.is_past() {
                crate::threadpool::release_buried();
                std::thread::sleep(Duration::from_micros(200));
            }
            if !bench.checks.is_released() {
                return Outcome::Fail(format!("the pool could not be released in {}", bench.budget()));
            }
            std::thread::sleep(Duration::from_millis(20));
            Outcome::Pass("nothing was run after it".to_owned())
        });
        let released = self.bench.checks.is_released();
        let verdict = if released { ClauseVerdict::Pass } else { ClauseVerdict::NotChecked };
        let text = if released { "once, and not inside a task" } else { "the pool was not released" };
        let mut lines = std::mem::take(&mut *self.lines.lock());
        lines.push(ReportLine {
            clause: "W5",
            title: "release comes once, after the last task",
            verdict,
            text: text.to_owned(),
        });
        for line in &mut lines {
            if let Some(finding) = self.bench.checks.of_clause(line.clause) {
                if line.verdict != ClauseVerdict::Fail {
                    line.text = finding.text;
                } else if !line.text.contains(&finding.text) {
                    line.text = format!("{}; {}", finding.text, line.text);
                }
                line.verdict = ClauseVerdict::Fail;
            }
        }
        lines.sort_by_key(|line| (&line.clause[..1], line.clause[1..].parse::<u32>().unwrap_or(0)));
        lines.extend(notes);
        lines
    }
}

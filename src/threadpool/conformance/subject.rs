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

/// A probe that takes so many budgets is left behind.
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
pub enum Verdict {
    Pass,
    Fail,
    /// The pool lacks the function.
    NotOffered,
    /// Nothing wrong: what the pool is like.
    Note,
    /// An earlier probe did not come back, or there was nothing to see: a pool that refuses all work runs nothing
    /// wrong.
    NotChecked,
}

/// What is said of a clause.
#[derive(Clone, Debug)]
pub struct Line {
    pub clause: &'static str,
    pub title: &'static str,
    pub verdict: Verdict,
    pub text: String,
}

/// What all probes together have seen of the pool.
#[derive(Debug, Default)]
pub struct Seen {
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
    /// Most tasks at once.
    pub at_once: AtomicUsize,
    /// How many of the tasks that were submitted last of two were begun first, of how many.
    pub overtaken: Mutex<(usize, usize)>,
}

/// What a probe found.
#[derive(Clone, Debug)]
pub enum Outcome {
    Pass(String),
    Fail(String),
    NotOffered(String),
    /// There was nothing to see.
    NotMet(String),
}

/// What a probe sees of the pool.
pub struct Bench {
    pub(super) checks: Arc<Checks>,
    pub(super) options: Options,
    pub(super) seen: Seen,
    pool: Mutex<Option<Ref<ThreadPool>>>,
    threads: Arc<ThreadGroup>,
    random: AtomicU64,
    /// The pool was seen to lose tasks.
    loses: AtomicBool,
    /// What the running probe is at.
    step: Mutex<&'static str>,
}

impl Bench {
    /// The pool, with all of weir on top of it.
    pub fn pool(&self) -> Option<Ref<ThreadPool>> {
        self.pool.lock().clone()
    }

    /// For a wait for tasks. It is shorter once it is known that the pool loses some.
    pub fn deadline(&self) -> Deadline {
        Deadline::after(self.patience_ns())
    }

    fn patience_ns(&self) -> u64 {
        if self.loses.load(Relaxed) { self.options.budget_ns / 8 } else { self.options.budget_ns }
    }

    pub(super) fn tasks_are_lost(&self) {
        self.loses.store(true, Relaxed);
    }

    /// When nobody waits for a probe any more.
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

    /// Starts a thread that is none of the pool's.
    pub(super) fn start(&self, index: Option<usize>, run: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
        thread::spawn(&self.threads, index, run)
    }

    /// What is tried now, for the case that it does not come back.
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

/// A pool and what has been said of it.
pub struct Subject {
    pub(super) bench: Arc<Bench>,
    lines: Mutex<Vec<Line>>,
    /// A probe did not come back.
    stuck: AtomicBool,
}

impl Subject {
    pub(super) fn new(vtable: HostVtable, options: Options) -> Subject {
        let (pool, checks) = ThreadPool::observed(vtable);
        let (name, owner) = ("weir-probe".to_owned(), String::new());
        let bench = Bench {
            threads: Arc::new(ThreadGroup { origin: ThreadOrigin::Conformance, name, owner, pool: 0 }),
            checks,
            options,
            seen: Seen::default(),
            pool: Mutex::new(Some(pool)),
            random: AtomicU64::new(options.seed),
            loses: AtomicBool::new(false),
            step: Mutex::new(""),
        };
        Subject { bench: Arc::new(bench), lines: Mutex::default(), stuck: AtomicBool::new(false) }
    }

    /// Runs `probe` in a thread of its own and keeps what it found of `clause`.
    pub fn probe(
        &self,
        clause: &'static str,
        title: &'static str,
        probe: impl FnOnce(&Bench) -> Outcome + Send + 'static,
    ) {
        let (verdict, text) = match self.run(probe) {
            Ok(Outcome::Pass(text)) => (Verdict::Pass, text),
            Ok(Outcome::Fail(text)) => (Verdict::Fail, text),
            Ok(Outcome::NotOffered(text)) => (Verdict::NotOffered, text),
            Ok(Outcome::NotMet(text)) => (Verdict::NotChecked, text),
            Err(line) => line,
        };
        self.lines.lock().push(Line { clause, title, verdict, text });
    }

    fn run(&self, probe: impl FnOnce(&Bench) -> Outcome + Send + 'static) -> Result<Outcome, (Verdict, String)> {
        if self.stuck.load(Relaxed) {
            return Err((Verdict::NotChecked, "a call before this one has not returned".to_owned()));
        }
        let report = Arc::new((Mutex::new(None), EventCount::new()));
        let (done, bench) = (Arc::clone(&report), Arc::clone(&self.bench));
        bench.step("a call of the pool");
        let started = self.bench.start(None, move || {
            let outcome = catch_unwind(AssertUnwindSafe(|| probe(&bench)));
            // What the pool has not begun by now is lost, and must not disturb the next probe.
            bench.checks.take_back(bench.patience_ns());
            drop(bench);
            *done.0.lock() = outcome.ok();
            done.1.advance(1);
        });
        if let Err(error) = started {
            return Err((Verdict::NotChecked, format!("no thread could be started: {error}")));
        }
        // The probe's waits have their own limit; this one is for a call that does not return.
        let limit_ns = self.bench.options.budget_ns.saturating_mul(PROBE_BUDGETS);
        if !report.1.wait(1, 0, Deadline::after(limit_ns)) {
            self.stuck.store(true, Relaxed);
            let step = *self.bench.step.lock();
            return Err((Verdict::Fail, format!("{step} has not returned in {}", seconds(limit_ns))));
        }
        let outcome = report.0.lock().take();
        outcome.ok_or_else(|| (Verdict::Fail, "a defect of weir: the probe panicked".to_owned()))
    }

    /// Releases the pool, looks whether that was right, and settles the verdicts.
    pub(super) fn finish(self, notes: Vec<Line>) -> Vec<Line> {
        self.probe("H13", "release ends the pool", |bench| {
            bench.settle(bench.deadline());
            bench.checks.take_back(0);
            bench.step("release");
            // The last reference goes here, in a thread that is none of the pool's.
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
        let verdict = if released { Verdict::Pass } else { Verdict::NotChecked };
        let text = if released { "once, and not inside a task" } else { "the pool was not released" };
        let mut lines = std::mem::take(&mut *self.lines.lock());
        lines.push(Line {
            clause: "W5",
            title: "release comes once, after the last task",
            verdict,
            text: text.to_owned(),
        });
        for line in &mut lines {
            if let Some(finding) = self.bench.checks.of_clause(line.clause) {
                if line.verdict != Verdict::Fail {
                    line.text = finding.text;
                } else if !line.text.contains(&finding.text) {
                    line.text = format!("{}; {}", finding.text, line.text);
                }
                line.verdict = Verdict::Fail;
            }
        }
        lines.sort_by_key(|line| (&line.clause[..1], line.clause[1..].parse::<u32>().unwrap_or(0)));
        lines.extend(notes);
        lines
    }
}

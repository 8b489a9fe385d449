//! Measured gains of sharing: for each loop how long it took alone and shared, and which of the two is next.
//!
//! `costs` is only a forecast: estimates of loops are off by factors, and whether a helper really runs beside the
//! caller is up to the system, which may have put both on one processor or given the other one to another process. So
//! calls are timed, both ways are compared (`base::tune`), and a loop that does not gain stays with its caller. A trial
//! is not abandoned at once: sleeping threads need some time to come, and where the system has woken one on the
//! caller's own processor, it moves them apart only after a few milliseconds. Short loops are not timed each time.
//!
//! After a pause the pool's threads sleep, caches have gone cold and processors run slowly: both ways take longer, and
//! by other factors. So what is found out there is kept apart, and decides nothing for calls in a row, nor the reverse.
//!
//! Loops are identified by their site and size. An entry may change its owner between two reads.
#![forbid(unsafe_code)]

use super::span::Span;
use crate::base::time::now_ns;
use crate::base::tune::{Contest, Policy, Rate, Renewal, Variant};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

const ENTRIES: usize = 512;
/// Calls before the first sample. The very first finds a sleeping pool, and does not count.
const FIRST: u32 = 4;
const POLICY: Policy = Policy {
    rounds: 1,
    candidates: FIRST,
    cold: 1,
    baselines: 2,
    margin: 0.03,
    rate: Rate { down: 0.5, up: 0.25, most_up: 0.5, least_up: 0.0 },
    renewal: Some(Renewal {
        credit: 32.0,
        much: f32::INFINITY,
        credit_for_much: 0.0,
        least_loss: 0.0,
        fewest_to_try: 16,
        fewest_to_sample: 32,
        doublings: 3,
        agrees: 0.33,
        good: 2,
        lost_ns: 500_000.0,
        lost_times: 16.0,
    }),
};
/// One in so many short calls in the caller is timed, and one in so many short shared calls.
const TIMED_ALONE: u32 = 8;
const TIMED_SHARED: u32 = 4;
/// For a loop this long, in nanoseconds, two clock reads are negligible.
const SHORT_NS: f32 = 4_000.0;
/// Calls of a loop that is too small to be shared, from one that is timed to the next.
const TIMED_SMALL: u32 = 64;
/// Loops estimated longer than this, in nanoseconds, are shared without a trial: the system moves competing threads
/// apart meanwhile, and a sample would be too dear.
const LONGEST_NS: f32 = 20_000_000.0;

/// A loop that begins so long after the last one, in nanoseconds, comes after a pause.
const PAUSE_NS: u64 = 500_000;

/// The measurements of one loop.
#[derive(Debug, Default)]
#[repr(align(64))]
struct TrialEntry {
    tag: AtomicU32,
    /// Of calls in a row, and of those after a pause.
    contests: [Contest; 2],
}

/// The loops of a family of pools.
#[derive(Debug)]
pub struct Trials {
    entries: Box<[TrialEntry]>,
    /// When the last loop began or ended, but for short ones.
    last: AtomicU64,
}

impl Default for Trials {
    fn default() -> Self {
        let entries = (0..ENTRIES).map(|_| TrialEntry::default()).collect();
        Trials { entries, last: AtomicU64::new(0) }
    }
}

/// A loop about to run.
#[derive(Clone, Copy, Debug)]
pub struct Trial<'a> {
    contest: &'a Contest,
    /// The place for the time of its end, if it is not short.
    last: Option<&'a AtomicU64>,
}

/// How to run it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextRun {
    /// With helpers, if the plan wants some.
    Shared { timed: bool },
    /// In the caller.
    Alone { timed: bool },
}

/// Callers share this word: it is not written for a difference that says nothing about a pause.
fn note(last: &AtomicU64, now: u64) {
    if now.saturating_sub(last.load(Relaxed)) > PAUSE_NS / 8 {
        last.store(now, Relaxed);
    }
}

impl Trials {
    /// Forgets everything. A thread that finds another tag than its own resets the entry.
    pub fn forget(&self) {
        self.entries.iter().for_each(|entry| entry.tag.store(0, Relaxed));
    }

    /// The entry of a loop with an estimate of `total` nanoseconds; `None` if it is too long for a trial.
    pub fn of(&self, span: &Span, total: f32) -> Option<Trial<'_>> {
        self.at(span, total, if total > SHORT_NS { now_ns() } else { 0 })
    }

    /// The same at a time, which counts unless the loop is short.
    fn at(&self, span: &Span, total: f32, now: u64) -> Option<Trial<'_>> {
        if total > LONGEST_NS {
            return None;
        }
        // Without a caller's estimate the learned figure moves; a different cost counts as a different loop.
        let cost = if span.cost_ns > 0.0 { span.cost_ns } else { (total / span.items as f32).log2().round() };
        let mut hash = 0u64;
        for part in [span.site as u64, span.items as u64, u64::from(cost.to_bits()), span.max_slots as u64] {
            // Fibonacci hashing (Knuth, The Art of Computer Programming, 6.4), a part at a time.
            hash = (hash ^ part).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            hash ^= hash >> 29;
        }
        let (entry, tag) = (&self.entries[(hash >> 32) as usize % ENTRIES], hash as u32 | 1);
        // ORDERING: Relaxed, as all here: independent words, and no data depends on them.
        if entry.tag.load(Relaxed) != tag {
            entry.contests.iter().for_each(Contest::forget);
            entry.tag.store(tag, Relaxed);
        }
        let last = (total > SHORT_NS).then_some(&self.last);
        let paused = last.is_some_and(|last| {
            let idle = now.saturating_sub(last.load(Relaxed));
            note(last, now);
            idle > PAUSE_NS
        });
        Some(Trial { contest: &entry.contests[usize::from(paused)], last })
    }
}

impl Trial<'_> {
    /// The loop's duration alone, if known.
    pub fn alone_ns(&self) -> Option<f32> {
        self.contest.baseline_ns()
    }

    /// The loop is over.
    pub fn ended(&self) {
        if let Some(last) = self.last {
            note(last, now_ns());
        }
    }

    /// How the loop runs this time. `small`: by its duration alone it is not worth a helper.
    pub fn next(&self, small: bool) -> NextRun {
        if small {
            // Timed only for the case that it grows.
            let next = self.contest.hold_baseline(TIMED_SMALL);
            return NextRun::Alone { timed: next.left.is_multiple_of(TIMED_SMALL) };
        }
        let next = self.contest.next(&POLICY);
        let is_long = || self.alone_ns().is_none_or(|ns| ns > SHORT_NS);
        let timed = |one_in: u32| next.is_probe || is_long() || next.left.is_multiple_of(one_in);
        match next.way {
            Variant::Candidate => NextRun::Shared { timed: timed(TIMED_SHARED) },
            Variant::Baseline => NextRun::Alone { timed: timed(TIMED_ALONE) },
        }
    }

    /// It took so long in its caller.
    pub fn was_alone(&self, ns: f32) {
        self.contest.took_baseline(&POLICY, ns);
    }

    /// It took so long with helpers.
    pub fn was_shared(&self, ns: f32) {
        self.contest.took_candidate(&POLICY, ns);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn span(items: usize) -> Span {
        Span { items, cost_ns: 10.0, ..Span::default() }
    }

    /// Calls of a loop that takes so long alone and shared at each call; gives the time of all and how many were
    /// shared.
    fn calls(trials: &Trials, range: std::ops::Range<usize>, ns: impl Fn(usize) -> (f32, f32)) -> (f64, usize) {
        let (mut sum, mut shared) = (0.0, 0);
        for call in range {
            let trial = trials.at(&span(1000), 10_000.0, 0).unwrap();
            let (alone_ns, shared_ns) = ns(call);
            match trial.next(false) {
                NextRun::Alone { timed } => {
                    sum += f64::from(alone_ns);
                    if timed {
                        trial.was_alone(alone_ns);
                    }
                }
                NextRun::Shared { timed } => {
                    sum += f64::from(shared_ns);
                    shared += 1;
                    if timed {
                        trial.was_shared(shared_ns);
                    }
                }
            }
        }
        (sum, shared)
    }

    #[test]
    fn a_loop_that_gains_is_shared_but_for_rare_samples() {
        for gain in [1.1f32, 1.5, 1.95, 8.0, 60.0] {
            let shared_ns = 100_000.0 / gain;
            let (sum, shared) = calls(&Trials::default(), 0..20_000, |_| (100_000.0, shared_ns));
            assert!(shared > 19_000, "{gain}: {shared}");
            assert!(sum < 1.03 * 20_000.0 * f64::from(shared_ns), "{gain}: {}", sum / 20_000.0 / f64::from(shared_ns));
        }
    }

    #[test]
    fn a_loop_that_does_not_gain_loses_little_whatever_sharing_costs() {
        for factor in [0.99f32, 1.0, 1.2, 2.0, 5.0, 30.0, 500.0] {
            let trials = Trials::default();
            // The first calls are spent on finding out.
            calls(&trials, 0..FIRST as usize + 2, |_| (50_000.0, factor * 50_000.0));
            let (sum, shared) = calls(&trials, 0..50_000, |_| (50_000.0, factor * 50_000.0));
            assert!(sum < 1.04 * 50_000.0 * 50_000.0, "{factor}: {}", sum / 50_000.0 / 50_000.0);
            assert!(shared > 0, "never tried again");
        }
    }

    #[test]
    fn what_changes_is_noticed() {
        let trials = Trials::default();
        let good = |_| (80_000.0, 42_000.0);
        let bad = |_| (80_000.0, 4_000_000.0);
        calls(&trials, 0..1000, good);
        // Two calls or so are lost, each as long as fifty, and a try now and then.
        let (sum, _) = calls(&trials, 0..10_000, bad);
        assert!(sum < 1.05 * 10_000.0 * 80_000.0, "{}", sum / 10_000.0 / 80_000.0);
        calls(&trials, 0..30_000, good);
        let (_, shared) = calls(&trials, 0..1000, good);
        assert!(shared > 950, "{shared}");
    }

    #[test]
    fn a_single_slow_call_changes_nothing_and_the_first_of_a_try_does_not_count() {
        let trials = Trials::default();
        calls(&trials, 0..100, |_| (80_000.0, 40_000.0));
        let slow = |at: usize| move |call| (80_000.0, if call == at { 5_000_000.0 } else { 40_000.0 });
        assert!(calls(&trials, 0..100, slow(50)).1 >= 97);
        assert!(calls(&Trials::default(), 0..100, slow(0)).1 >= 95);
    }

    #[test]
    fn a_sample_that_was_interrupted_is_not_believed_for_long() {
        for at in [4, 5] {
            // Sharing is six times as slow; and the first or the second sample is interrupted for 4 ms.
            let ns = |call| (if call == at { 4_000_000.0 } else { 80_000.0 }, 500_000.0);
            let (_, shared) = calls(&Trials::default(), 0..3000, ns);
            assert!(shared < 24, "{at}: {shared}");
        }
        // Both, and every sample in the first two hundred calls.
        let ns = |call| (if call < 200 { 4_000_000.0 } else { 80_000.0 }, 500_000.0);
        let (_, shared) = calls(&Trials::default(), 0..3000, ns);
        assert!(shared < 500, "{shared}");
    }

    #[test]
    fn a_try_lasts_until_threads_are_awake_and_apart() {
        // The first calls lose a half; and whenever the loop was left alone, calls lose for 2 ms.
        for (alone, shared, bad, bad_ns) in [
            (10_000.0, 5_500.0, 15_000.0, 2e6),
            (130_000.0, 67_000.0, 140_000.0, 8e6),
            (31_000.0, 17_000.0, 54_000.0, 4e6),
        ] {
            let trials = Trials::default();
            let trial = trials.at(&span(1000), 10_000.0, 0).unwrap();
            let (mut together_ns, mut good) = (0.0, 0);
            for _ in 0..20_000 {
                match trial.next(false) {
                    NextRun::Alone { timed } => {
                        if timed {
                            trial.was_alone(alone);
                        }
                    }
                    NextRun::Shared { timed } => {
                        let ns = if together_ns < bad_ns { bad } else { shared };
                        together_ns += ns;
                        good += i32::from(ns == shared);
                        if timed {
                            trial.was_shared(ns);
                        }
                    }
                }
            }
            assert!(good > 10_000, "{alone}: {good}");
        }
    }

    #[test]
    fn what_a_pause_does_decides_nothing_for_calls_in_a_row() {
        let trials = Trials::default();
        let mut now = 0;
        // Calls after a pause of this length, or none; gives how many were shared.
        let mut calls = |count: usize, pause: u64, alone: f32, shared: f32| {
            let mut times = 0;
            for _ in 0..count {
                now += pause + 1000;
                let trial = trials.at(&span(1000), 10_000.0, now).unwrap();
                match trial.next(false) {
                    NextRun::Alone { timed } if timed => trial.was_alone(alone),
                    NextRun::Alone { .. } => {}
                    NextRun::Shared { timed } => {
                        times += 1;
                        if timed {
                            trial.was_shared(shared);
                        }
                    }
                }
            }
            times
        };
        assert!(calls(1000, 0, 100_000.0, 52_000.0) > 950);
        // Threads that sleep deeply are no help.
        assert!(calls(1000, 10_000_000, 300_000.0, 400_000.0) < 100);
        assert!(calls(1000, 0, 100_000.0, 52_000.0) > 980);
        assert!(calls(1000, 10_000_000, 300_000.0, 400_000.0) < 100);
        // Others are, though they take longer than the caller alone takes when it is warm.
        let trials = Trials::default();
        let mut now = 0;
        let mut shared = 0;
        for call in 0..2000 {
            now += if call < 1000 { 1000 } else { 10_000_000 };
            let trial = trials.at(&span(1000), 10_000.0, now).unwrap();
            let factor = if call < 1000 { 1.0 } else { 3.0 };
            match trial.next(false) {
                NextRun::Alone { .. } => trial.was_alone(factor * 100_000.0),
                NextRun::Shared { .. } => {
                    shared += usize::from(call >= 1000);
                    trial.was_shared(factor * 60_000.0);
                }
            }
        }
        assert!(shared > 950, "{shared}");
    }

    #[test]
    fn loops_are_known_by_their_size_and_place() {
        let trials = Trials::default();
        let at = |items, site| trials.at(&Span { site, ..span(items) }, 10_000.0, 0).unwrap();
        at(10, 0).was_alone(7.0);
        assert_eq!(at(10, 0).alone_ns(), Some(7.0));
        assert_eq!((at(11, 0).alone_ns(), at(10, 4096).alone_ns()), (None, None));
        assert!(trials.at(&span(1000), 2.0 * LONGEST_NS, 0).is_none());
        // Without an estimate, by what it took before, roughly.
        let unknown = |total| trials.at(&Span { items: 10, site: 64, ..Span::default() }, total, 0).unwrap();
        unknown(10_000.0).was_alone(9_000.0);
        assert_eq!(unknown(11_000.0).alone_ns(), Some(9_000.0));
        assert_eq!(unknown(40_000.0).alone_ns(), None);
    }

    #[test]
    fn a_small_loop_is_left_alone_until_it_grows() {
        let trials = Trials::default();
        let trial = trials.at(&span(1000), 10_000.0, 0).unwrap();
        let small = (0..1000).filter(|_| trial.next(true) == NextRun::Alone { timed: true }).count();
        assert!((10..=20).contains(&small), "{small}");
        assert!((0..200).any(|_| matches!(trial.next(false), NextRun::Shared { .. })));
    }
}

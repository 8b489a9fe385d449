//! What sharing a loop has brought: for each loop how long it took alone and shared, and which of the two is next.
//!
//! What `costs` says of a pool is a forecast: estimates of loops are off by factors, and whether a helper really runs
//! beside the caller is up to the system, which may have put both on one processor or given the other one to somebody
//! else. So calls are timed, both ways are compared, and a loop that does not gain stays with its caller.
//!
//! | state  | a call runs     | leads to                                                                             |
//! |--------|-----------------|--------------------------------------------------------------------------------------|
//! | first  | shared          | `sample`, after `FIRST` calls                                                        |
//! | sample | alone           | shared if that was a gain, else try                                                  |
//! | shared | shared          | try, as soon as it is no gain any more; `sample` now and then, for a fresh figure    |
//! | try    | shared          | shared, after `GOOD` calls that gain; alone, when `LOST_NS` is lost by those that do not |
//! | alone  | in its caller   | try, after a while                                                                   |
//!
//! *What it costs.* Being wrong is paid for in time: the while is `TRY_PART` times what the last try lost, compared
//! with being alone, and twice that after each try in vain. The samples of a shared loop are as far apart. A try is not
//! given up at once: threads that sleep need some time to come, and where the system has woken one on the caller's own
//! processor, it takes a few milliseconds of both wanting to run until they are moved apart. What is short is not timed
//! each time.
//!
//! *What a wrong figure costs.* Whoever is interrupted while he takes a sample finds the loop dear, and sharing would
//! look like a gain for as long as that is believed. So the first figure is the less of two samples, a smaller one is
//! believed sooner than a larger one, and samples that differ from the figure are followed by another soon.
//!
//! Loops are known by where they are and their size; each entry is a few words that are read and written one by one.
//! Two threads may both step the state, or an entry may change its owner between two looks: the figures only steer.
#![forbid(unsafe_code)]

use super::span::Span;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

const ENTRIES: usize = 512;
/// Calls before the first sample. The very first finds a pool that sleeps, and does not count.
const FIRST: u32 = 4;
/// Calls in a row that must gain for a try to succeed.
const GOOD: u32 = 2;
/// What a try may lose, in nanoseconds and in calls' time, and the part of the time until the next that this is.
const LOST_NS: f32 = 500_000.0;
const LOST_CALLS: f32 = 16.0;
const TRY_PART: f32 = 32.0;
/// Fewest calls between tries and between samples, and how often that doubles.
const FEWEST: u32 = 16;
const DOUBLINGS: u32 = 3;
/// Of the short calls in the caller one in so many is timed, and of short shared ones one in so many.
const TIMED_ALONE: u32 = 8;
const TIMED_SHARED: u32 = 4;
/// A loop this long, in nanoseconds, does not feel two looks at the clock.
const SHORT_NS: f32 = 4_000.0;
/// Calls of a loop that is too small to be shared, from one that is timed to the next.
const TIMED_SMALL: u32 = 64;
/// A sample agrees with the figure if neither is more than this part of the other larger.
const AGREES: f32 = 0.33;
/// Samples of a loop that is not known.
const SAMPLES: u32 = 2;
/// Sharing must save this part of the time alone.
const MARGIN: f32 = 0.03;
/// Longer loops are shared untried, in nanoseconds as estimated: threads that are in each other's way are moved apart
/// by the system meanwhile, and a sample would be too dear.
const LONGEST_NS: f32 = 20_000_000.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    First,
    Sample,
    Shared,
    Try,
    Alone,
}

/// A state, how many calls it has left, and how many tries were in vain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    state: State,
    left: u32,
    vain: u32,
}

impl Step {
    const NEW: Step = Step { state: State::First, left: FIRST, vain: 0 };
    const MOST: u32 = (1 << 24) - 1;

    fn word(self) -> u32 {
        (self.state as u32) << 28 | self.vain.min(15) << 24 | self.left.min(Step::MOST)
    }

    fn of(word: u32) -> Step {
        let state = match word >> 28 {
            0 => State::First,
            1 => State::Sample,
            2 => State::Shared,
            3 => State::Try,
            _ => State::Alone,
        };
        Step { state, left: word & Step::MOST, vain: word >> 24 & 15 }
    }
}

/// What one loop has shown. Times are in nanoseconds, bits of an f32, and 0 if they are not known.
#[derive(Debug)]
#[repr(align(32))]
struct Entry {
    tag: AtomicU32,
    alone: AtomicU32,
    shared: AtomicU32,
    /// By the present try.
    lost: AtomicU32,
    step: AtomicU32,
}

impl Entry {
    fn new() -> Entry {
        Entry {
            tag: AtomicU32::new(0),
            alone: AtomicU32::new(0),
            shared: AtomicU32::new(0),
            lost: AtomicU32::new(0),
            step: AtomicU32::new(Step::NEW.word()),
        }
    }
}

/// The loops of a family of pools.
#[derive(Debug)]
pub struct Trials(Box<[Entry]>);

impl Default for Trials {
    fn default() -> Self {
        Trials((0..ENTRIES).map(|_| Entry::new()).collect())
    }
}

/// A loop about to run.
#[derive(Clone, Copy, Debug)]
pub struct Trial<'a>(&'a Entry);

/// How it is to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// With helpers, if the plan wants some.
    Shared { timed: bool },
    /// In the caller.
    Alone { timed: bool },
}

impl Trials {
    /// As if new. An entry is made anew by whoever finds another tag than his.
    pub fn forget(&self) {
        self.0.iter().for_each(|entry| entry.tag.store(0, Relaxed));
    }

    /// The entry of a loop that is estimated to take `total` nanoseconds; None if it is too long to be tried.
    pub fn of(&self, span: &Span, total: f32) -> Option<Trial<'_>> {
        if total > LONGEST_NS {
            return None;
        }
        // Where the caller gives no estimate, the figure of the last calls moves; what another cost is another loop.
        let cost = if span.cost_ns > 0.0 { span.cost_ns } else { (total / span.items as f32).log2().round() };
        let mut hash = 0u64;
        for part in [span.site as u64, span.items as u64, u64::from(cost.to_bits()), span.max_slots as u64] {
            // Fibonacci hashing (Knuth, The Art of Computer Programming, 6.4), a part at a time.
            hash = (hash ^ part).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            hash ^= hash >> 29;
        }
        let (entry, tag) = (&self.0[(hash >> 32) as usize % ENTRIES], hash as u32 | 1);
        // ORDERING: Relaxed, as all here: words by themselves, and nothing is read on the strength of them.
        if entry.tag.load(Relaxed) != tag {
            entry.step.store(Step::NEW.word(), Relaxed);
            entry.alone.store(0, Relaxed);
            entry.shared.store(0, Relaxed);
            entry.tag.store(tag, Relaxed);
        }
        Some(Trial(entry))
    }
}

fn known(figure: &AtomicU32) -> Option<f32> {
    Some(f32::from_bits(figure.load(Relaxed))).filter(|&ns| ns > 0.0)
}

/// Moves a figure up by a quarter of the difference and never by more than half, as one slow call is none; and down by
/// half the difference, as nothing makes a call look faster than it is.
fn nearer(figure: &AtomicU32, ns: f32) -> f32 {
    let ns = known(figure).map_or(ns, |old| old + (ns.min(3.0 * old) - old) / if ns < old { 2.0 } else { 4.0 });
    figure.store(ns.to_bits(), Relaxed);
    ns
}

impl Trial<'_> {
    /// What the loop takes alone, if that is known.
    pub fn alone_ns(&self) -> Option<f32> {
        known(&self.0.alone)
    }

    fn step(&self) -> Step {
        Step::of(self.0.step.load(Relaxed))
    }

    fn go(&self, step: Step) {
        self.0.step.store(step.word(), Relaxed);
    }

    /// How the loop runs this time. `small`: it is not worth a helper, with what it takes alone.
    pub fn next(&self, small: bool) -> Next {
        let step = self.step();
        if small {
            // Only for the case that it grows.
            let timed = step.left.is_multiple_of(TIMED_SMALL);
            let left = if step.left == 0 { TIMED_SMALL } else { step.left };
            self.go(Step { state: State::Alone, left: left - 1, ..step });
            return Next::Alone { timed };
        }
        match step.state {
            State::First | State::Try => Next::Shared { timed: true },
            State::Sample => Next::Alone { timed: true },
            State::Shared if step.left == 0 => Next::Alone { timed: true },
            State::Shared => {
                self.go(Step { left: step.left - 1, ..step });
                Next::Shared { timed: self.is_long() || step.left.is_multiple_of(TIMED_SHARED) }
            }
            State::Alone if step.left == 0 => {
                self.begin_try(step);
                Next::Shared { timed: true }
            }
            State::Alone => {
                self.go(Step { left: step.left - 1, ..step });
                Next::Alone { timed: self.is_long() || step.left.is_multiple_of(TIMED_ALONE) }
            }
        }
    }

    /// Whether it does not feel two looks at the clock.
    fn is_long(&self) -> bool {
        self.alone_ns().is_none_or(|ns| ns > SHORT_NS)
    }

    fn begin_try(&self, step: Step) {
        self.0.lost.store(0, Relaxed);
        self.go(Step { state: State::Try, left: GOOD, ..step });
    }

    /// It took so long in its caller.
    pub fn was_alone(&self, ns: f32) {
        let (step, before) = (self.step(), self.alone_ns());
        if let (State::Sample, Some(first)) = (step.state, before) {
            self.0.alone.store(first.min(ns).to_bits(), Relaxed);
        }
        let alone = nearer(&self.0.alone, ns);
        let Some(shared) = known(&self.0.shared) else { return };
        if !matches!(step.state, State::Sample | State::Shared) {
            return;
        }
        if step.state == State::Sample && step.left > 1 {
            return self.go(Step { left: step.left - 1, ..step });
        }
        if shared > (1.0 - MARGIN) * alone {
            return self.begin_try(step);
        }
        let agrees = before.is_some_and(|before| ns.max(before) < (1.0 + AGREES) * ns.min(before));
        if step.state == State::Shared && !agrees {
            return self.go(Step { left: FEWEST, ..step });
        }
        // That tries were in vain is forgotten when it has been a gain for a while.
        let (confirmed, vain) = if step.state == State::Shared { (DOUBLINGS, 0) } else { (0, step.vain) };
        // A sample loses what sharing gains.
        let apart = (TRY_PART * (alone - shared) / shared) as u32;
        self.go(Step { state: State::Shared, left: apart.max(2 * FEWEST) << confirmed, vain });
    }

    /// It took so long with helpers.
    pub fn was_shared(&self, ns: f32) {
        let step = self.step();
        match (step.state, known(&self.0.alone)) {
            (State::First, _) => {
                if step.left < FIRST {
                    nearer(&self.0.shared, ns);
                }
                self.go(match step.left.saturating_sub(1) {
                    0 => Step { state: State::Sample, left: SAMPLES, ..step },
                    left => Step { left, ..step },
                });
            }
            (State::Try, Some(alone)) if ns < (1.0 - MARGIN) * alone => {
                self.0.shared.store(ns.to_bits(), Relaxed);
                let left = step.left.saturating_sub(1);
                let apart = (TRY_PART * (alone - ns) / ns) as u32;
                let good = Step { state: State::Shared, left: apart.max(2 * FEWEST), ..step };
                self.go(if left == 0 { good } else { Step { left, ..step } });
            }
            (State::Try, Some(alone)) => {
                // What neither gains nor loses is given up too, some time.
                let lost = known(&self.0.lost).unwrap_or(0.0) + (ns - alone).max(MARGIN * alone);
                self.0.lost.store(lost.to_bits(), Relaxed);
                if lost < LOST_NS.min(LOST_CALLS * alone) {
                    return self.go(Step { left: GOOD, ..step });
                }
                let calls = ((TRY_PART * lost / alone) as u32).max(FEWEST);
                let left = calls.saturating_mul(1 << step.vain);
                self.go(Step { state: State::Alone, left, vain: (step.vain + 1).min(DOUBLINGS) });
            }
            (State::Shared, Some(alone)) => {
                let shared = nearer(&self.0.shared, ns);
                if shared > (1.0 - MARGIN) * alone {
                    self.begin_try(step);
                }
            }
            // Another thread has begun the entry anew meanwhile.
            (State::Try, None) => self.go(Step { state: State::Sample, left: SAMPLES, ..step }),
            _ => {}
        }
    }
}

#[cfg(test)]
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
            let trial = trials.of(&span(1000), 10_000.0).unwrap();
            let (alone_ns, shared_ns) = ns(call);
            match trial.next(false) {
                Next::Alone { timed } => {
                    sum += f64::from(alone_ns);
                    if timed {
                        trial.was_alone(alone_ns);
                    }
                }
                Next::Shared { timed } => {
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
            // The first calls are what it takes to find out.
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
            let trial = trials.of(&span(1000), 10_000.0).unwrap();
            let (mut together_ns, mut good) = (0.0, 0);
            for _ in 0..20_000 {
                match trial.next(false) {
                    Next::Alone { timed } => {
                        if timed {
                            trial.was_alone(alone);
                        }
                    }
                    Next::Shared { timed } => {
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
    fn loops_are_known_by_their_size_and_place() {
        let trials = Trials::default();
        let at = |items, site| trials.of(&Span { site, ..span(items) }, 10_000.0).unwrap();
        at(10, 0).was_alone(7.0);
        assert_eq!(at(10, 0).alone_ns(), Some(7.0));
        assert_eq!((at(11, 0).alone_ns(), at(10, 4096).alone_ns()), (None, None));
        assert!(trials.of(&span(1000), 2.0 * LONGEST_NS).is_none());
        // Without an estimate, by what it took before, roughly.
        let unknown = |total| trials.of(&Span { items: 10, site: 64, ..Span::default() }, total).unwrap();
        unknown(10_000.0).was_alone(9_000.0);
        assert_eq!(unknown(11_000.0).alone_ns(), Some(9_000.0));
        assert_eq!(unknown(40_000.0).alone_ns(), None);
    }

    #[test]
    fn a_small_loop_is_left_alone_until_it_grows() {
        let trials = Trials::default();
        let trial = trials.of(&span(1000), 10_000.0).unwrap();
        let small = (0..1000).filter(|_| trial.next(true) == Next::Alone { timed: true }).count();
        assert!((10..=20).contains(&small), "{small}");
        assert!((0..200).any(|_| matches!(trial.next(false), Next::Shared { .. })));
    }
}

//! Whether a program's runs are faster alone or shared, and whether its known costs still hold.
//!
//! The costs of nodes and of a pool say when workers can be worth it. Whether they are depends on more: whether the
//! pool's threads get a processor at all, how its `parallel_for` waits, what the caches do; and costs change, with the
//! size of the inputs or with other load. So runs are timed, and compared with the expectation.
//!
//! *Which way.* A contest (`base::tune`) for each family of pools: the time of a run alone is the program's, that of a
//! shared run the family's. Being alone is not tried at all where sharing is clearly faster than all nodes together.
//!
//! *Costs that change.* A run that takes more than twice as long as expected, or less than half, is strange. After two
//! strange ones in a row, both too long or both too short, the next run measures all nodes and replaces the costs. One
//! alone changes nothing: a thread may have been interrupted, and one batch in ten may be a large one.
#![forbid(unsafe_code)]

use crate::base::tune::{Contest, Policy, Rate, Renewal, Variant};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

/// This many runs are shared at first with a family of which nothing is known.
const TIME_FIRST: u32 = 4;
/// Up by little: an interrupted run takes far too long, the next one is often interrupted as well, and none takes too
/// short. A way that has become slower by a half is left after a few runs.
const RATE: Rate = Rate { down: 1.0, up: 1.0, most_up: 0.125, least_up: 100.0 };
const POLICY: Policy = Policy {
    rounds: 1,
    candidates: TIME_FIRST,
    cold: 0,
    baselines: 0,
    margin: 0.0,
    rate: RATE,
    renewal: Some(Renewal {
        credit: 100.0,
        much: 0.05,
        credit_for_much: 500.0,
        least_loss: 0.02,
        fewest_to_try: 1,
        fewest_to_sample: 1,
        doublings: 0,
        agrees: f32::INFINITY,
        good: 1,
        lost_ns: 0.0,
        lost_times: 0.0,
    }),
};
/// Families that a program distinguishes.
const FAMILIES: usize = 4;
/// A run is strange beyond this factor and this much, in nanoseconds.
const STRANGE: u64 = 2;
const STRANGE_NS: u64 = 2_000;
/// The number of strange runs in a row that raises a doubt.
const STRANGE_RUNS: u32 = 2;

/// A program's times with one family of pools. Statistics: ORDERING Relaxed throughout.
#[derive(Debug, Default)]
struct OfFamily {
    family: AtomicU64,
    contest: Contest,
}

/// Times of one program. Two threads may both change them; only the way of some run depends on them.
#[derive(Debug, Default)]
pub(in crate::graph) struct Ways {
    of: [OfFamily; FAMILIES],
    next: AtomicU32,
    /// The time of a run alone, in nanoseconds; 0 = unknown.
    alone_ns: AtomicU64,
    /// Strange runs in a row: how many were too long, or too short.
    too_long: AtomicU32,
    too_short: AtomicU32,
    /// The costs are unreliable: the next run measures them.
    in_doubt: AtomicBool,
}

impl Ways {
    fn of(&self, family: u64) -> &Contest {
        if let Some(of) = self.of.iter().find(|of| of.family.load(Relaxed) == family) {
            return &of.contest;
        }
        let of = &self.of[self.next.fetch_add(1, Relaxed) as usize % FAMILIES];
        of.family.store(family, Relaxed);
        of.contest.forget();
        &of.contest
    }

    /// Whether to share a run with a pool of this family, of `nodes` nodes that cost `all_ns` together.
    pub fn choose(&self, family: u64, all_ns: u64, nodes: usize) -> bool {
        let contest = self.of(family);
        contest.set_baseline(self.alone_or(all_ns) as f32);
        // The costs of all nodes are an assumption, until runs alone have said otherwise.
        contest.reconsider(&POLICY);
        // Two reads of the clock make a cheap node look dearer than it is.
        let is_fine = all_ns >= 1_000 * nodes as u64;
        let clear_ns = all_ns as f32 * if is_fine { 0.95 } else { 0.75 };
        let is_clear =
            contest.verdict() == Some(Variant::Candidate) && contest.candidate_ns().is_some_and(|ns| ns < clear_ns);
        is_clear || contest.next(&POLICY).way == Variant::Candidate
    }

    /// The time of a run alone, of a shared one with the first family, and which of the two is used, as far as known.
    pub fn told(&self) -> (Option<u64>, Option<u64>, Option<Variant>) {
        let alone_ns = Some(self.alone_ns.load(Relaxed)).filter(|&ns| ns > 0);
        let contest = &self.of[0].contest;
        (alone_ns, contest.candidate_ns().map(|ns| ns as u64), contest.verdict())
    }

    /// The time of a run alone, or else of all its nodes.
    pub fn alone_or(&self, all_ns: u64) -> u64 {
        match self.alone_ns.load(Relaxed) {
            0 => all_ns,
            alone_ns => alone_ns,
        }
    }

    /// Records a shared run with a pool of this family, whose nodes should take at least `least_ns` and at most
    /// `all_ns`.
    pub fn was_shared(&self, family: u64, ns: u64, least_ns: u64, all_ns: u64) {
        let contest = self.of(family);
        // A time that was found before is not strange the next time: a busy machine, or a slow pool.
        let known_ns = contest.candidate_ns().unwrap_or(0.0) as u64;
        contest.set_baseline(self.alone_or(all_ns) as f32);
        contest.took_candidate(&POLICY, ns as f32);
        self.compare(ns, least_ns, all_ns.max(known_ns));
    }

    /// Records a run alone.
    pub fn was_alone(&self, ns: u64) {
        match self.alone_ns.load(Relaxed) {
            0 => self.alone_ns.store(ns.max(1), Relaxed),
            expected => {
                let moved = RATE.moved(expected as f32, ns as f32) as u64;
                if !self.compare(ns, expected, expected) && moved.abs_diff(expected) > expected / 16 {
                    self.alone_ns.store(moved.max(1), Relaxed);
                }
            }
        }
    }

    /// A run took much longer than it should.
    pub fn was_too_long(&self) {
        self.too_short.store(0, Relaxed);
        let runs = self.too_long.load(Relaxed) + 1;
        self.too_long.store(runs, Relaxed);
        self.doubt(runs);
    }

    fn doubt(&self, runs: u32) {
        if runs >= STRANGE_RUNS {
            self.in_doubt.store(true, Relaxed);
        }
    }

    /// Whether it was strange.
    fn compare(&self, ns: u64, least_ns: u64, most_ns: u64) -> bool {
        if ns > most_ns.saturating_mul(STRANGE).saturating_add(STRANGE_NS) {
            self.was_too_long();
            return true;
        }
        // Many threads may run the program: unchanged words are not written.
        if self.too_long.load(Relaxed) > 0 {
            self.too_long.store(0, Relaxed);
        }
        let is_short = ns.saturating_mul(STRANGE).saturating_add(STRANGE_NS) < least_ns;
        let runs = if is_short { self.too_short.load(Relaxed) + 1 } else { 0 };
        if runs > 0 || self.too_short.load(Relaxed) > 0 {
            self.too_short.store(runs, Relaxed);
        }
        self.doubt(runs);
        is_short
    }

    /// Whether costs are in doubt; the caller then measures them. `true`: they have grown.
    pub fn take_doubt(&self) -> Option<bool> {
        if !self.in_doubt.load(Relaxed) {
            return None;
        }
        self.in_doubt.store(false, Relaxed);
        Some(self.too_long.load(Relaxed) > 0)
    }

    /// The costs of nodes have changed: earlier times of runs say nothing.
    pub fn forget(&self) {
        self.of.iter().for_each(|of| of.contest.forget());
        self.alone_ns.store(0, Relaxed);
        self.too_long.store(0, Relaxed);
        self.too_short.store(0, Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const NODES: usize = 10;
    const ALL_NS: u64 = 100_000;

    fn run(ways: &Ways, family: u64, shared_ns: u64, alone_ns: u64) -> bool {
        let shared = ways.choose(family, ALL_NS, NODES);
        match shared {
            true => ways.was_shared(family, shared_ns, ALL_NS / 2, ALL_NS),
            false => ways.was_alone(alone_ns),
        }
        shared
    }

    /// How many of `runs` runs were shared, where a shared one takes `shared` (of its number) and one alone `alone`.
    fn shared(ways: &Ways, runs: usize, shared: impl Fn(usize) -> u64, alone: u64) -> usize {
        (0..runs).filter(|&number| run(ways, 7, shared(number), alone)).count()
    }

    #[test]
    fn the_faster_way_is_taken_and_the_other_one_tried_on_credit() {
        assert_eq!(shared(&Ways::default(), 2000, |_| 55_000, 100_000), 2000);
        // A gain of a fifth is clear where nodes are long enough to be measured well.
        assert_eq!(shared(&Ways::default(), 2000, |_| 80_000, 100_000), 2000);
        for (ns, alone) in [(97_000u64, 100_000u64), (105_000, 100_000), (150_000, 100_000), (199_000, 100_000)] {
            let ways = Ways::default();
            shared(&ways, TIME_FIRST as usize, |_| ns, alone);
            let runs = 20_000;
            let count = shared(&ways, runs, |_| ns, alone) as u64;
            let tried = if ns < alone { runs as u64 - count } else { count };
            assert!(tried > 0, "{ns}: never tried");
            assert!(tried * ns.abs_diff(alone) <= runs as u64 * ns.min(alone) / 90, "{ns}: {tried} of {runs}");
        }
    }

    #[test]
    fn a_pool_that_is_far_too_slow_costs_a_few_runs() {
        let ways = Ways::default();
        let count = shared(&ways, 1000, |_| 300_000, 100_000);
        assert!(count < 10, "{count} of 1000");
        assert_eq!(ways.take_doubt(), None);
    }

    #[test]
    fn a_bad_beginning_is_forgotten() {
        let late = shared(&Ways::default(), 600, |run| if run < 6 { 130_000 } else { 55_000 }, 100_000);
        assert!(late > 90, "{late} of 600");
    }

    #[test]
    fn pools_by_turns_and_a_new_one_do_not_disturb_what_is_known() {
        let ways = Ways::default();
        for _ in 0..10 {
            run(&ways, 1, 190_000, 100_000);
            run(&ways, 2, 55_000, 100_000);
        }
        assert!((0..10).all(|_| !run(&ways, 1, 190_000, 100_000)));
        assert!((0..10).all(|_| run(&ways, 2, 55_000, 100_000)));
        assert!(run(&ways, 3, 55_000, 100_000));
    }

    #[test]
    fn two_strange_runs_in_a_row_put_costs_in_doubt_and_one_does_not() {
        let ways = Ways::default();
        let alone = |ns: &[u64]| ns.iter().for_each(|&ns| ways.was_alone(ns));
        alone(&[50_000, 5_000_000, 50_000, 5_000_000, 51_000, 10_000, 50_000, 5_000_000, 10_000]);
        assert_eq!(ways.take_doubt(), None);
        alone(&[50_000, 5_000_000, 4_000_000]);
        assert_eq!(ways.take_doubt(), Some(true));
        assert_eq!(ways.take_doubt(), None);
        ways.forget();
        alone(&[5_000_000, 50_000, 50_000]);
        assert_eq!(ways.take_doubt(), Some(false));
        ways.forget();
        [30_000, 9_000, 8_000].iter().for_each(|&ns| ways.was_shared(7, ns, 50_000, 100_000));
        assert_eq!(ways.take_doubt(), Some(false));
    }
}

//! Finds the faster of two ways by timing both: a loop alone or shared, a run alone or shared, work on streams or as a
//! recording. It decides where work runs, never its results.
//!
//! The *baseline* is used until something else is known to be better. The *candidate* replaces it if it is faster by
//! the policy's margin. The fields of `Policy` describe how a `Contest` is run; each user has one.
//!
//! | state    | next use      | leads to                                                                       |
//! |----------|---------------|--------------------------------------------------------------------------------|
//! | `First`  | the candidate | `Sample`, after `candidates` uses; or a verdict, if the baseline needs no sample |
//! | `Sample` | the baseline  | `First`, while rounds are left; then a verdict                                 |
//! | `Better` | the candidate | `Try`, once it is no gain any more; occasionally a sample of the baseline      |
//! | `Try`    | the candidate | `Better`, after `good` gains; `Worse`, when uses without gain have lost enough |
//! | `Worse`  | the baseline  | `Try`, after a while                                                           |
//!
//! *Cost of a wrong verdict.* It is paid for in time: the time until the next sample or try is proportional to the loss
//! that it will cause, or has caused (`Renewal::credit`). A policy without renewal keeps its verdict.
//!
//! *Cost of a wrong figure.* A thread that is interrupted during a sample measures a slow baseline, and the candidate
//! would look like a gain for as long as that figure stands. So the first figure is the minimum of the samples, a
//! smaller figure is adopted faster than a larger one (`Rate`), and a sample that differs from the figure is soon
//! followed by another.
//!
//! Two threads may both step a contest: its words are read and written one by one. ORDERING: Relaxed throughout; the
//! figures only steer, and no other data depends on them.
#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// How a figure follows the measurements: by a fraction of the difference, and upwards at most by a fraction of itself
/// plus some nanoseconds. Nothing makes work look faster than it is, while an interrupted thread measures far too much.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    pub down: f32,
    pub up: f32,
    pub most_up: f32,
    pub least_up: f32,
}

impl Rate {
    /// Follows each measurement at once, in both directions.
    pub const BELIEVE: Rate = Rate { down: 1.0, up: 1.0, most_up: f32::INFINITY, least_up: 0.0 };
    /// Keeps the minimum.
    pub const LEAST: Rate = Rate { down: 1.0, up: 0.0, most_up: 0.0, least_up: 0.0 };

    #[inline]
    pub fn moved(&self, old: f32, seen: f32) -> f32 {
        if seen <= old {
            old + (seen - old) * self.down
        } else {
            old + ((seen - old) * self.up).min(old * self.most_up + self.least_up)
        }
    }
}

/// When a verdict is re-examined.
#[derive(Clone, Copy, Debug)]
pub struct Renewal {
    /// The slower way may lose one part in `credit` of the time, or one in `credit_for_much` if each use loses more
    /// than the fraction `much`.
    pub credit: f32,
    pub much: f32,
    pub credit_for_much: f32,
    /// Assumed minimum of the lost fraction.
    pub least_loss: f32,
    /// Minimum number of uses between two tries and between two samples.
    pub fewest_to_try: u32,
    pub fewest_to_sample: u32,
    /// How many times failed tries double the time to the next try, and a sample that confirms the figure the time to
    /// the next sample.
    pub doublings: u32,
    /// A sample agrees with the figure if neither exceeds the other by more than this fraction.
    pub agrees: f32,
    /// A try succeeds after this many gains in a row.
    pub good: u32,
    /// Maximum loss of a try, in nanoseconds and in multiples of the baseline.
    pub lost_ns: f32,
    pub lost_times: f32,
}

#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// A contest begins with `rounds` rounds of `candidates` uses of the candidate and `baselines` of the baseline
    /// (none needed if its figure is known). The first `cold` uses of the candidate do not count.
    pub rounds: u32,
    pub candidates: u32,
    pub cold: u32,
    pub baselines: u32,
    /// The fraction of the time that the candidate must save.
    pub margin: f32,
    pub rate: Rate,
    /// `None`: the first verdict is final.
    pub renewal: Option<Renewal>,
}

/// A candidate below this part of the baseline is far better than the verdict against it says.
const MUCH_SLOWER: f32 = 0.75;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    Baseline,
    Candidate,
}

/// The next use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selection {
    pub way: Variant,
    /// The time must be measured: this use was chosen to find it out.
    pub is_probe: bool,
    /// Number of uses before the verdict is re-examined.
    pub left: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ContestState {
    First,
    Sample,
    Better,
    Try,
    Worse,
}

/// A state, its remaining uses, and the number of failed tries; in the beginning the number of completed rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ContestStep {
    state: ContestState,
    left: u32,
    vain: u32,
}

impl ContestStep {
    const MOST: u32 = (1 << 24) - 1;

    /// 0 is the initial state.
    fn word(self) -> u32 {
        (self.state as u32) << 28 | self.vain.min(15) << 24 | self.left.min(ContestStep::MOST)
    }

    fn of(word: u32) -> ContestStep {
        let state = match word >> 28 {
            0 => ContestState::First,
            1 => ContestState::Sample,
            2 => ContestState::Better,
            3 => ContestState::Try,
            _ => ContestState::Worse,
        };
        ContestStep { state, left: word & ContestStep::MOST, vain: word >> 24 & 15 }
    }
}

/// Knowledge about two ways to do one thing. Figures are in nanoseconds, bits of an f32, and 0 if unknown. In state
/// `First` `left` counts the completed uses.
#[derive(Debug, Default)]
pub struct Contest {
    baseline: AtomicU32,
    candidate: AtomicU32,
    /// Loss of the current try.
    lost: AtomicU32,
    step: AtomicU32,
}

fn known(figure: &AtomicU32) -> Option<f32> {
    Some(f32::from_bits(figure.load(Relaxed))).filter(|&ns| ns > 0.0)
}

/// Insignificant changes are not written: threads that share the work would contend for the word.
fn moved(figure: &AtomicU32, rate: &Rate, ns: f32) -> f32 {
    let ns = ns.max(1.0);
    let old = known(figure);
    let new = old.map_or(ns, |old| rate.moved(old, ns));
    if old.is_none_or(|old| (new - old).abs() > old / 64.0) {
        figure.store(new.to_bits(), Relaxed);
    }
    new
}

impl Contest {
    /// Resets the contest.
    pub fn forget(&self) {
        [&self.step, &self.baseline, &self.candidate].into_iter().for_each(|word| word.store(0, Relaxed));
    }

    /// The measured times of the two ways, if known.
    pub fn baseline_ns(&self) -> Option<f32> {
        known(&self.baseline)
    }

    pub fn candidate_ns(&self) -> Option<f32> {
        known(&self.candidate)
    }

    /// The faster way, if known.
    pub fn verdict(&self) -> Option<Variant> {
        match self.step().state {
            ContestState::Better | ContestState::Try => Some(Variant::Candidate),
            ContestState::Worse => Some(Variant::Baseline),
            ContestState::First | ContestState::Sample => None,
        }
    }

    fn step(&self) -> ContestStep {
        ContestStep::of(self.step.load(Relaxed))
    }

    fn go(&self, state: ContestState, left: u32, vain: u32) {
        self.step.store(ContestStep { state, left, vain }.word(), Relaxed);
    }

    /// Chooses the way for this use.
    #[inline]
    pub fn next(&self, policy: &Policy) -> Selection {
        let ContestStep { state, left, vain } = self.step();
        let probe = |way| Selection { way, is_probe: true, left };
        let settled = |way| Selection { way, is_probe: false, left };
        match state {
            ContestState::First | ContestState::Try => probe(Variant::Candidate),
            ContestState::Sample => probe(Variant::Baseline),
            ContestState::Better | ContestState::Worse if policy.renewal.is_none() => {
                settled(if state == ContestState::Better { Variant::Candidate } else { Variant::Baseline })
            }
            ContestState::Better if left == 0 => {
                // If times are never reported, the candidate continues.
                self.go(state, self.until_sample(policy).0, vain);
                probe(Variant::Baseline)
            }
            ContestState::Worse if left == 0 => {
                self.begin_try(policy, vain);
                probe(Variant::Candidate)
            }
            ContestState::Better | ContestState::Worse => {
                self.go(state, left - 1, vain);
                settled(if state == ContestState::Better { Variant::Candidate } else { Variant::Baseline })
            }
        }
    }

    /// Holds the baseline, whatever the figures, for `left` uses or until that changes.
    pub fn hold_baseline(&self, left: u32) -> Selection {
        let ContestStep { left: before, vain, .. } = self.step();
        self.go(ContestState::Worse, if before == 0 { left } else { before } - 1, vain);
        Selection { way: Variant::Baseline, is_probe: false, left: before }
    }

    /// Whether the candidate is a gain over the baseline.
    fn gains(policy: &Policy, candidate: f32, baseline: f32) -> bool {
        candidate <= (1.0 - policy.margin) * baseline
    }

    fn begin_try(&self, policy: &Policy, vain: u32) {
        self.lost.store(0, Relaxed);
        match &policy.renewal {
            Some(renewal) => self.go(ContestState::Try, renewal.good, vain),
            None => self.go(ContestState::Worse, 0, vain),
        }
    }

    /// How many uses of one way pay for a loss of this size.
    fn times(renewal: &Renewal, own_ns: f32, loss_ns: f32) -> u32 {
        let loss = (loss_ns / own_ns).max(renewal.least_loss);
        (loss * if loss > renewal.much { renewal.credit_for_much } else { renewal.credit }) as u32
    }

    /// Uses until a sample, which costs the candidate's gain; and that gain.
    fn until_sample(&self, policy: &Policy) -> (u32, f32) {
        let (Some(renewal), Some(own_ns)) = (&policy.renewal, self.candidate_ns()) else { return (0, 0.0) };
        let gain = self.baseline_ns().map_or(0.0, |baseline| baseline - own_ns);
        (Contest::times(renewal, own_ns, gain).max(renewal.fewest_to_sample), gain)
    }

    fn settle_for_candidate(&self, policy: &Policy, doublings: u32, vain: u32) {
        self.go(ContestState::Better, self.until_sample(policy).0 << doublings, vain);
    }

    /// Holds the baseline until it has paid for the loss of a try.
    fn settle_for_baseline(&self, policy: &Policy, baseline: f32, lost_ns: f32, vain: u32) {
        let Some(renewal) = &policy.renewal else { return self.go(ContestState::Worse, 0, 0) };
        let left = Contest::times(renewal, baseline, lost_ns).max(renewal.fewest_to_try);
        self.go(ContestState::Worse, left.saturating_mul(1 << vain), (vain + 1).min(renewal.doublings));
    }

    /// Records the time of a baseline use.
    pub fn took_baseline(&self, policy: &Policy, ns: f32) {
        let (ContestStep { state, left, vain }, before) = (self.step(), self.baseline_ns());
        let least = before.map_or(ns, |before| before.min(ns));
        if state == ContestState::Sample {
            self.baseline.store(least.max(1.0).to_bits(), Relaxed);
        }
        let baseline = moved(&self.baseline, &policy.rate, ns);
        let Some(candidate) = self.candidate_ns() else { return };
        match state {
            ContestState::Sample if left > 1 => self.go(state, left - 1, vain),
            ContestState::Sample if vain + 1 < policy.rounds => self.go(ContestState::First, 0, vain + 1),
            ContestState::Sample | ContestState::Better if !Contest::gains(policy, candidate, baseline) => {
                self.begin_try(policy, 0)
            }
            ContestState::Sample => self.settle_for_candidate(policy, 0, 0),
            ContestState::Better => {
                let Some(renewal) = &policy.renewal else { return };
                let agrees = before.is_some_and(|before| ns.max(before) < (1.0 + renewal.agrees) * ns.min(before));
                match agrees {
                    // Failed tries are forgotten after the candidate has been a gain for a while.
                    true => self.settle_for_candidate(policy, renewal.doublings, 0),
                    false => self.go(state, renewal.fewest_to_try, vain),
                }
            }
            ContestState::First | ContestState::Try | ContestState::Worse => {}
        }
    }

    /// Records the time of a candidate use.
    pub fn took_candidate(&self, policy: &Policy, ns: f32) {
        let ContestStep { state, left, vain } = self.step();
        match (state, self.baseline_ns()) {
            (ContestState::First, baseline) => {
                let over = left + 1;
                if over > policy.cold || vain > 0 {
                    moved(&self.candidate, &policy.rate, ns);
                }
                match baseline {
                    _ if over < policy.candidates => self.go(state, over, vain),
                    Some(baseline) if policy.baselines == 0 => self.decide(policy, baseline),
                    _ => self.go(ContestState::Sample, policy.baselines, vain),
                }
            }
            (ContestState::Try, Some(baseline)) => self.tried(policy, (left, vain), ns, baseline),
            (ContestState::Better, Some(baseline)) => {
                let candidate = moved(&self.candidate, &policy.rate, ns);
                if !Contest::gains(policy, candidate, baseline) {
                    self.begin_try(policy, vain);
                }
            }
            // Another thread has restarted the contest meanwhile.
            (ContestState::Try, None) => self.go(ContestState::Sample, policy.baselines, 0),
            (ContestState::Sample | ContestState::Worse | ContestState::Better, _) => {}
        }
    }

    /// Decides by the initial figures.
    fn decide(&self, policy: &Policy, baseline: f32) {
        let candidate = self.candidate_ns().unwrap_or(f32::INFINITY);
        match Contest::gains(policy, candidate, baseline) {
            true => self.settle_for_candidate(policy, 0, 0),
            false => self.settle_for_baseline(policy, baseline, candidate - baseline, 0),
        }
    }

    fn tried(&self, policy: &Policy, (left, vain): (u32, u32), ns: f32, baseline: f32) {
        let Some(renewal) = &policy.renewal else { return };
        if Contest::gains(policy, ns, baseline) {
            self.candidate.store(ns.max(1.0).to_bits(), Relaxed);
            return match left.saturating_sub(1) {
                0 => self.settle_for_candidate(policy, 0, vain),
                left => self.go(ContestState::Try, left, vain),
            };
        }
        // A candidate that neither gains nor loses is eventually given up too.
        let lost = known(&self.lost).unwrap_or(0.0) + (ns - baseline).max(policy.margin * baseline);
        self.lost.store(lost.to_bits(), Relaxed);
        if lost < renewal.lost_ns.min(renewal.lost_times * baseline) {
            return self.go(ContestState::Try, renewal.good, vain);
        }
        moved(&self.candidate, &policy.rate, ns);
        self.settle_for_baseline(policy, baseline, lost, vain);
    }

    /// The baseline's time is known from elsewhere.
    /// Tries the candidate at once if the verdict against it rests on a baseline that turned out to be much slower.
    pub fn reconsider(&self, policy: &Policy) {
        let ContestStep { state, vain, .. } = self.step();
        if state == ContestState::Worse
            && let Some((candidate, baseline)) = self.candidate_ns().zip(self.baseline_ns())
            && candidate < baseline * MUCH_SLOWER
        {
            self.begin_try(policy, vain);
        }
    }

    pub fn set_baseline(&self, ns: f32) {
        if self.baseline_ns() != Some(ns) {
            self.baseline.store(ns.max(1.0).to_bits(), Relaxed);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const RENEWAL: Renewal = Renewal {
        credit: 50.0,
        much: f32::INFINITY,
        credit_for_much: 0.0,
        least_loss: 0.02,
        fewest_to_try: 4,
        fewest_to_sample: 4,
        doublings: 2,
        agrees: 0.33,
        good: 1,
        lost_ns: f32::INFINITY,
        lost_times: 1.0,
    };
    const POLICY: Policy = Policy {
        rounds: 2,
        candidates: 2,
        cold: 1,
        baselines: 1,
        margin: 0.05,
        rate: Rate { down: 1.0, up: 0.5, most_up: 0.5, least_up: 0.0 },
        renewal: Some(RENEWAL),
    };

    /// Takes the chosen way, and reports its time if `is_told`.
    fn go(contest: &Contest, policy: &Policy, (baseline, candidate): (f32, f32), is_told: bool) -> Variant {
        let way = contest.next(policy).way;
        match way {
            _ if !is_told => {}
            Variant::Baseline => contest.took_baseline(policy, baseline),
            Variant::Candidate => contest.took_candidate(policy, candidate),
        }
        way
    }

    #[test]
    fn a_figure_goes_down_and_up_as_its_rate_says() {
        let rate = Rate { down: 0.5, up: 0.25, most_up: 0.5, least_up: 10.0 };
        assert_eq!(rate.moved(100.0, 50.0), 75.0);
        assert_eq!(rate.moved(100.0, 140.0), 110.0);
        assert_eq!(rate.moved(100.0, 1e9), 160.0);
        assert_eq!((Rate::LEAST.moved(100.0, 200.0), Rate::LEAST.moved(100.0, 20.0)), (100.0, 20.0));
        assert_eq!(Rate::BELIEVE.moved(100.0, 20_000.0), 20_000.0);
    }

    #[test]
    fn the_beginning_goes_in_rounds_and_its_cold_times_do_not_count() {
        let contest = Contest::default();
        let ways: Vec<Variant> = (0..3).map(|_| go(&contest, &POLICY, (100.0, 50.0), true)).collect();
        assert_eq!(ways, [Variant::Candidate, Variant::Candidate, Variant::Baseline]);
        assert_eq!((contest.verdict(), contest.candidate_ns()), (None, Some(50.0)));
        let ways: Vec<Variant> = (0..3).map(|_| go(&contest, &POLICY, (100.0, 50.0), true)).collect();
        assert_eq!(ways, [Variant::Candidate, Variant::Candidate, Variant::Baseline]);
        assert_eq!(contest.verdict(), Some(Variant::Candidate));
        let cold = Contest::default();
        cold.took_candidate(&POLICY, 9e9);
        assert_eq!(cold.candidate_ns(), None);
    }

    #[test]
    fn the_faster_way_is_gone_whichever_it_is_and_the_other_one_costs_what_the_credit_allows() {
        for (baseline, candidate) in
            [(100.0f32, 50.0f32), (100.0, 93.0), (100.0, 97.0), (100.0, 200.0), (100.0, 9000.0)]
        {
            let contest = Contest::default();
            (0..6).for_each(|_| _ = go(&contest, &POLICY, (baseline, candidate), true));
            let took = |way| if way == Variant::Baseline { baseline } else { candidate };
            let all: f32 = (0..10_000).map(|_| took(go(&contest, &POLICY, (baseline, candidate), true))).sum();
            let best = if candidate <= 0.95 * baseline { candidate } else { baseline };
            assert!(all / 10_000.0 < 1.04 * best, "{baseline} {candidate}: {}", all / 10_000.0);
        }
    }

    #[test]
    fn a_sample_that_nobody_tells_of_holds_nothing_up() {
        let contest = Contest::default();
        (0..6).for_each(|_| _ = go(&contest, &POLICY, (100.0, 50.0), true));
        let ways: Vec<Variant> = (0..1000).map(|_| go(&contest, &POLICY, (100.0, 50.0), false)).collect();
        let samples = ways.iter().filter(|way| **way == Variant::Baseline).count();
        assert!((1..=50).contains(&samples), "{samples}");
        assert!(ways.windows(2).all(|pair| pair != [Variant::Baseline, Variant::Baseline]));
    }

    #[test]
    fn a_verdict_for_good_stays_whatever_comes() {
        let policy = Policy { renewal: None, ..POLICY };
        for (first, then) in [((100.0, 50.0), (10.0, 50.0)), ((100.0, 150.0), (100.0, 1.0))] {
            let contest = Contest::default();
            (0..6).for_each(|_| _ = go(&contest, &policy, first, true));
            let verdict = contest.verdict();
            assert!((0..1000).all(|_| Some(go(&contest, &policy, then, true)) == verdict), "{first:?}");
        }
    }
}

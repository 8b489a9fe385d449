//! The cost of bringing a pool's threads to a loop, and the best number of helpers for a loop.
//!
//! A pool is asked for threads in one of two *ways*: one by one (`schedule`), or by a `parallel_for` that waits. For
//! each way three figures are kept, in nanoseconds:
//!
//! - *submit*: the caller's time for each helper before it works itself;
//! - *arrive*: from asking to the moment at which the (last) helper begins;
//! - *join*: from the end of the last piece to the caller going on.
//!
//! With `h` helpers, `h + 1` threads share the work plus the time in which they do not work yet:
//!
//! ```text
//! alone(T)  = T
//! with(T,h) = (T + h arrive + submit (h + h (h - 1) / 2)) / (h + 1) + join   one by one
//! with(T,h) = (T + h arrive + submit) / (h + 1) + join                       parallel_for
//! ```
//!
//! A loop gets the number that makes `with` smallest, if that is less than being alone by a margin.
//!
//! *Where the figures come from.* The first loop that could be worth a thread measures the pool with a few empty
//! rounds (`measure`), unless the host gave figures. From then on loops are sampled. A pool that was used a moment
//! ago answers in a tenth of the time that a sleeping one takes, so the figures are kept twice, *hot* and *cold*, and
//! a look at the clock says which ones count. A measured figure moves the kept one by a quarter of the difference,
//! and never up by more than double: a thread that was interrupted measures far too much. A pool that looks too dear
//! is tried again now and then, so that a bad moment is forgotten.
//!
//! *Warming up.* Loops that are worth the hot figures and not the cold ones may come one after the other: sharing the
//! first would pay for all. Their missed gains are added up while they follow closely, and when the sum exceeds the
//! loss of a cold start, the next one is shared (the ski rental argument: at most twice the cost of knowing the
//! future).
//!
//! `learned` decides which pools share the figures, and for how long they are kept.
#![forbid(unsafe_code)]

use crate::base::tune::Rate;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// How threads are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DispatchKind {
    /// One `schedule` (or asynchronous `parallel_for` of one) for each.
    Single,
    /// One `parallel_for` that waits, for all of them and the caller.
    Bulk,
}

/// The three figures, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    pub submit: f32,
    pub arrive: f32,
    pub join: f32,
}

impl Cost {
    /// The smallest loop for which one helper is worth it, in nanoseconds.
    pub fn worth(self) -> f32 {
        (self.arrive + self.submit + 2.0 * self.join) / (1.0 - 2.0 * MARGIN)
    }
}

/// Assumed for a pool that was not measured: a round figure for waking a thread that sleeps lightly.
pub const PRIOR: Cost = Cost { submit: 500.0, arrive: 4_000.0, join: 500.0 };

/// A pool that was used less than this ago is hot: its threads still spin.
const HOT_NS: u64 = 30_000;
/// Helpers must save this part of the time alone.
const MARGIN: f32 = 0.04;
/// One in so many loops that run alone only because the pool became dear is shared all the same.
const TRY_AGAIN: u32 = 64;
/// All of the first loops are sampled, and then one in so many.
const SAMPLE_FIRST: u32 = 16;
const SAMPLE_EVERY: u32 = 8;
/// Slower than this is a busy machine rather than a slow pool, and would keep loops from asking for too long.
pub const SLOWEST_NS: f32 = 100_000.0;
/// How a figure follows what loops show.
const RATE: Rate = Rate { down: 0.25, up: 0.25, most_up: 0.25, least_up: 50.0 };
/// The cheapest that a pool is believed to be; keeps the threshold above zero.
const LEAST_WORTH_NS: f32 = 200.0;

#[derive(Debug)]
struct KeptCost {
    submit: AtomicU32,
    arrive: AtomicU32,
    join: AtomicU32,
}

impl KeptCost {
    fn new(cost: Cost) -> KeptCost {
        let bits = |ns: f32| AtomicU32::new(ns.to_bits());
        KeptCost { submit: bits(cost.submit), arrive: bits(cost.arrive), join: bits(cost.join) }
    }

    // ORDERING: Relaxed here and below; the figures only steer, no data depends on them.
    fn get(&self) -> Cost {
        let ns = |bits: &AtomicU32| f32::from_bits(bits.load(Relaxed));
        Cost { submit: ns(&self.submit), arrive: ns(&self.arrive), join: ns(&self.join) }
    }

    fn set(&self, cost: Cost) {
        self.submit.store(cost.submit.to_bits(), Relaxed);
        self.arrive.store(cost.arrive.to_bits(), Relaxed);
        self.join.store(cost.join.to_bits(), Relaxed);
    }
}

/// The measurements of one loop.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    pub submit: f32,
    /// None: no helper came before the loop was over, after `lasted` nanoseconds.
    pub arrive: Option<f32>,
    pub lasted: f32,
    pub join: f32,
}

/// The decision for one loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoopPlan {
    pub way: DispatchKind,
    /// How many helpers the loop is worth, and how many of them are taken from the pool's budget of `width`.
    pub helpers: usize,
    pub taken: usize,
    pub width: usize,
    pub hot: bool,
    /// Whether the loop is sampled.
    pub sampled: bool,
}

/// The figures: one set for each way, hot and cold.
#[derive(Debug)]
pub struct Costs {
    ways: [[KeptCost; 2]; 2],
    /// The smallest loop that can be worth a helper, in nanoseconds, as bits of an f32; read before anything else.
    worth: AtomicU32,
    /// The value of `worth` when the pool was measured.
    measured_worth: AtomicU32,
    /// When the pool was last asked for threads.
    used_at: AtomicU64,
    shared: AtomicU32,
    left_alone: AtomicU32,
    /// Time lost by loops that ran alone because the pool is cold, as an f32's bits; and when the last one ended.
    missed: AtomicU32,
    alone_until: AtomicU64,
}

impl Costs {
    pub fn new(given: Option<Cost>) -> Costs {
        let kept = || KeptCost::new(given.unwrap_or(PRIOR));
        let costs = Costs {
            ways: [[kept(), kept()], [kept(), kept()]],
            worth: AtomicU32::new(0),
            measured_worth: AtomicU32::new(0),
            used_at: AtomicU64::new(0),
            shared: AtomicU32::new(0),
            left_alone: AtomicU32::new(0),
            missed: AtomicU32::new(0),
            alone_until: AtomicU64::new(0),
        };
        costs.begin();
        costs
    }

    /// The threshold of figures that are new.
    fn begin(&self) {
        self.set_worth();
        self.measured_worth.store(self.worth.load(Relaxed), Relaxed);
    }

    /// As if new.
    pub fn forget(&self, given: Option<Cost>) {
        self.ways.iter().flatten().for_each(|kept| kept.set(given.unwrap_or(PRIOR)));
        self.begin();
        self.used_at.store(0, Relaxed);
        [&self.shared, &self.left_alone, &self.missed].into_iter().for_each(|count| count.store(0, Relaxed));
        self.alone_until.store(0, Relaxed);
    }

    fn kept(&self, way: DispatchKind, hot: bool) -> &KeptCost {
        &self.ways[way as usize][usize::from(hot)]
    }

    pub fn get(&self, way: DispatchKind, hot: bool) -> Cost {
        self.kept(way, hot).get()
    }

    /// Smaller loops are not considered any further.
    pub fn worth_ns(&self) -> f32 {
        f32::from_bits(self.worth.load(Relaxed))
    }

    fn set_worth(&self) {
        let least = [DispatchKind::Single, DispatchKind::Bulk].map(|way| self.get(way, true).worth());
        let least = least.into_iter().fold(f32::INFINITY, f32::min).max(LEAST_WORTH_NS);
        self.worth.store(least.to_bits(), Relaxed);
    }

    /// Whether to share a loop of `total` nanoseconds although the present figures are against it.
    pub fn try_again(&self, total: f32) -> bool {
        total > f32::from_bits(self.measured_worth.load(Relaxed))
            && (self.left_alone.fetch_add(1, Relaxed) + 1).is_multiple_of(TRY_AGAIN)
    }

    /// Whether the pool was in use a moment ago.
    pub fn is_hot(&self, now: u64) -> bool {
        now.saturating_sub(self.used_at.load(Relaxed)) < HOT_NS
    }

    /// Whether to share a loop that is not worth a cold start for the sake of the following ones: the number of
    /// helpers, and the time that it takes then.
    pub fn warm_up(&self, way: DispatchKind, total: f32, most: usize, now: u64) -> Option<(usize, f32)> {
        let (helpers, hot_ns) = self.helpers(way, true, total, most);
        if helpers == 0 {
            return None;
        }
        let follows = now.saturating_sub(self.alone_until.swap(now + total as u64, Relaxed)) < HOT_NS;
        let before = if follows { f32::from_bits(self.missed.load(Relaxed)) } else { 0.0 };
        let missed = before + total - hot_ns;
        let cold_ns = with(way, self.get(way, false), total, helpers as f32);
        let enough = missed > cold_ns - total;
        self.missed.store(if enough { 0.0 } else { missed }.to_bits(), Relaxed);
        enough.then_some((helpers, cold_ns))
    }

    /// The pool is in use until about this time.
    pub fn used_until(&self, end: u64) {
        self.used_at.store(end, Relaxed);
    }

    /// Whether the next shared loop is to be sampled.
    pub fn sample_next(&self) -> bool {
        let n = self.shared.fetch_add(1, Relaxed);
        n < SAMPLE_FIRST || n.is_multiple_of(SAMPLE_EVERY)
    }

    /// The best number of helpers, at most `most`, for `total` nanoseconds, and the time that it takes then; 0 = none
    /// is worth it.
    pub fn helpers(&self, way: DispatchKind, hot: bool, total: f32, most: usize) -> (usize, f32) {
        best(way, self.get(way, hot), total, most)
    }

    /// Replaces the figures by a measurement.
    pub fn measured(&self, way: DispatchKind, hot: Cost, cold: Cost) {
        self.kept(way, true).set(hot);
        self.kept(way, false).set(cold);
        self.set_worth();
        // A pool that was measured in a bad moment is tried again too.
        let worth = self.worth_ns().min(PRIOR.worth());
        self.measured_worth.store(worth.to_bits(), Relaxed);
    }

    /// Takes one loop's sample.
    pub fn refine(&self, way: DispatchKind, hot: bool, sample: Sample) {
        let kept = self.kept(way, hot);
        let old = kept.get();
        let arrive = sample.arrive.unwrap_or(old.arrive.max(sample.lasted));
        kept.set(Cost {
            submit: RATE.moved(old.submit, sample.submit).min(SLOWEST_NS),
            arrive: RATE.moved(old.arrive, arrive).min(SLOWEST_NS),
            join: RATE.moved(old.join, sample.join).min(SLOWEST_NS),
        });
        if hot {
            self.set_worth();
        }
    }
}

/// The time of a loop with `h` helpers.
fn with(way: DispatchKind, cost: Cost, total: f32, h: f32) -> f32 {
    let before = match way {
        DispatchKind::Single => cost.submit * (h + h * (h - 1.0) / 2.0),
        DispatchKind::Bulk => cost.submit,
    };
    (total + h * cost.arrive + before) / (h + 1.0) + cost.join
}

fn best(way: DispatchKind, cost: Cost, total: f32, most: usize) -> (usize, f32) {
    let limit = total * (1.0 - MARGIN);
    let mut found = (0, total);
    for h in 1..=most {
        let ns = with(way, cost, total, h as f32);
        // The figures are no better than a few per cent: another helper must be worth more than that.
        if ns < limit && ns < found.1 * 0.98 {
            found = (h, ns);
        } else if found.0 > 0 {
            break;
        }
    }
    found
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const DEAR: Cost = Cost { submit: 8_000.0, arrive: 30_000.0, join: 1_000.0 };
    const CHEAP: Cost = Cost { submit: 100.0, arrive: 600.0, join: 100.0 };

    #[test]
    fn small_loops_stay_alone_and_large_ones_get_all() {
        for way in [DispatchKind::Single, DispatchKind::Bulk] {
            assert_eq!(best(way, CHEAP, 500.0, 15).0, 0);
            assert_eq!(best(way, CHEAP, 1_000_000.0, 15).0, 15);
            assert_eq!(best(way, DEAR, 20_000.0, 15).0, 0);
            assert!(best(way, DEAR, 200_000.0, 15).0 > 0);
        }
        // Asking one by one takes time for each: half a millisecond is not worth sixty wakes of 8 us.
        assert!(best(DispatchKind::Single, DEAR, 500_000.0, 60).0 < 15);
        assert!(best(DispatchKind::Bulk, DEAR, 500_000.0, 60).0 > 8);
    }

    #[test]
    fn the_threshold_is_where_one_helper_begins_to_be_worth_it() {
        for (way, cost) in [
            (DispatchKind::Single, CHEAP),
            (DispatchKind::Bulk, CHEAP),
            (DispatchKind::Single, DEAR),
            (DispatchKind::Bulk, DEAR),
        ] {
            let at = cost.worth();
            assert_eq!(best(way, cost, at * 0.98, 1).0, 0, "{way:?} {cost:?}");
            assert_eq!(best(way, cost, at * 1.02, 1).0, 1, "{way:?} {cost:?}");
        }
    }

    #[test]
    fn one_bad_measurement_is_forgotten() {
        let costs = Costs::new(Some(CHEAP));
        let before = costs.worth_ns();
        costs.refine(
            DispatchKind::Single,
            true,
            Sample { submit: 100.0, arrive: Some(1_000_000.0), lasted: 2_000_000.0, join: 100.0 },
        );
        assert!(costs.get(DispatchKind::Single, true).arrive < 2.0 * CHEAP.arrive);
        for _ in 0..20 {
            costs.refine(
                DispatchKind::Single,
                true,
                Sample { submit: 100.0, arrive: Some(600.0), lasted: 5e3, join: 100.0 },
            );
        }
        assert!((costs.worth_ns() - before).abs() < 0.05 * before);
        assert_eq!(costs.get(DispatchKind::Single, false), CHEAP, "cold figures are apart");
    }

    #[test]
    fn loops_in_a_row_warm_the_pool_up_and_loops_far_apart_do_not() {
        let costs = Costs::new(Some(CHEAP));
        costs.measured(DispatchKind::Single, CHEAP, DEAR);
        let total = 6_000.0;
        assert_eq!(costs.helpers(DispatchKind::Single, false, total, 3).0, 0);
        let shared = |gap: u64| {
            (1..=100u64).filter(|i| costs.warm_up(DispatchKind::Single, total, 3, i * (6_000 + gap)).is_some()).count()
        };
        assert_eq!(shared(1_000_000), 0);
        assert!((5..=50).contains(&shared(100)));
        assert_eq!(costs.warm_up(DispatchKind::Single, 100.0, 3, 1), None);
    }

    #[test]
    fn a_pool_that_has_become_dear_is_tried_again() {
        let costs = Costs::new(Some(CHEAP));
        let tries = (0..1000).filter(|_| costs.try_again(10_000.0)).count();
        assert_eq!(tries, 1000 / TRY_AGAIN as usize);
        assert_eq!((0..1000).filter(|_| costs.try_again(500.0)).count(), 0);
    }
}

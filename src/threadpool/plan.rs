//! From what is known of a loop to how it is run: alone, or with how many helpers and in what pieces.
#![forbid(unsafe_code)]

use super::costs::{Plan, Way};
use super::measure;
use super::pool::ThreadPool;
use crate::abi::weir_threadpool_flags as F;
use crate::base::time::now_ns;
use crate::base::{Object, Ref};
use crate::sync::{Draw, Slots};

/// Most slots of a region: the caller and 63 helpers.
pub const MAX_SLOTS: usize = Slots::MAX;

/// Smallest piece worth drawing, in nanoseconds: a hundred times what drawing it takes.
const PIECE_NS: f32 = 1_000.0;

/// A loop of this length need not know what helpers cost.
const LONG_NS: f32 = 500_000.0;

/// What a region runs over, and what is known of it. Zero means "unknown", or "you choose".
#[derive(Clone, Copy, Debug, Default)]
pub struct Span {
    pub items: usize,
    /// Nanoseconds per item.
    pub cost_ns: f32,
    pub grain: usize,
    pub max_slots: usize,
    /// The address of what is run, so that its cost can be remembered if it is unknown; 0 = do not.
    pub site: usize,
    /// Small pieces are dear: each begins with work of its own, or what it reads lies in short runs.
    pub coarse: bool,
}

/// A loop in units: pieces are drawn in whole ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Units {
    pub count: u32,
    /// Items in each, but for the last.
    pub items: usize,
}

impl Span {
    /// Most threads that the caller of the region allows.
    pub fn slots(&self) -> usize {
        if self.max_slots == 0 { MAX_SLOTS } else { self.max_slots.min(MAX_SLOTS) }
    }

    /// One unit is a grain, and more if there were too many of them to count in 31 bits.
    pub fn units(&self) -> Units {
        let grain = self.grain.max(1);
        let grains = self.items.div_ceil(grain);
        let items = grain.saturating_mul(grains.div_ceil(i32::MAX as usize).max(1));
        Units { count: self.items.div_ceil(items) as u32, items }
    }

    /// Estimated time of the whole loop in one thread.
    pub fn total_ns(&self) -> f32 {
        self.items as f32 * self.cost_ns
    }
}

/// How to run a loop of known cost; None = in its caller alone.
pub fn plan(pool: &Ref<ThreadPool>, span: &Span) -> Option<Plan> {
    let (total, costs) = (span.total_ns(), &pool.learned().costs);
    let mut again = false;
    if total < costs.worth_ns() {
        again = costs.try_again(total);
        if !again {
            return None;
        }
    }
    let units = span.units().count as usize;
    let most = (units - 1).min(span.slots() - 1);
    if most == 0 {
        return None;
    }
    // A long loop is shared at any price; what it shows is sampled.
    if total < LONG_NS {
        measure::once(pool);
    }
    let now = now_ns();
    let hot = costs.is_hot(now);
    let width = pool.num_threads();
    let most = most.min(width).min(pool.regions().most_threads() - 1);
    let mut consider = |way: Way| {
        let (helpers, ns) = costs.helpers(way, hot, total, most);
        if let Some((helpers, ns)) = (helpers == 0 && !hot).then(|| costs.warm_up(way, total, most, now)).flatten() {
            return (way, helpers, ns);
        }
        if helpers == 0 && (again || costs.try_again(total)) {
            again = true;
            return (way, 1, ns);
        }
        (way, helpers, ns)
    };
    let single = pool.can_spawn().then(|| consider(Way::Single));
    let bulk = pool.has_blocking_bulk().then(|| consider(Way::Bulk)).filter(|&(_, helpers, _)| helpers > 0);
    // A parallel_for that waits may find the pool busy with something else; `schedule` never holds the caller.
    let bulk = bulk.filter(|&(_, _, ns)| single.is_none_or(|(_, helpers, alone)| helpers == 0 || ns < 0.9 * alone));
    let bulk = bulk.filter(|_| pool.has_flag(F::WEIR_THREADPOOL_NESTED) || !pool.in_parallel());
    let (way, helpers, expected) = bulk.or(single)?;
    if helpers == 0 {
        return None;
    }
    costs.used_until(now + expected as u64);
    // A pool that is tried again is looked at.
    let sampled = costs.sample_next() || again;
    let helpers = even(units, helpers + 1) - 1;
    Some(Plan { way, helpers, taken: pool.take_helpers(helpers, width), width, hot, sampled })
}

/// The smallest team that is no slower than `team` over so many equal units: 33 units keep 17 threads busy for two
/// units each, and so they do 32.
fn even(units: usize, team: usize) -> usize {
    units.div_ceil(units.div_ceil(team))
}

/// How a team draws so many units of so many nanoseconds each.
pub fn draw(pool: &Object<ThreadPool>, team: usize, units: u32, unit_ns: f32, coarse: bool) -> Draw {
    // A pool that balances by itself welcomes small pieces: the first is a quarter of the home, so there are more
    // than four for each thread. Elsewhere the first is half, so the slowest piece is at most half of an even share.
    let parts = if pool.has_flag(F::WEIR_THREADPOOL_AUTO_BALANCING) && !coarse { 4 } else { 2 };
    let least = if unit_ns >= PIECE_NS { 1 } else { (PIECE_NS / unit_ns.max(1e-3)).min(units as f32) as u32 };
    // Not so large that a thread would get fewer than this many pieces.
    let share = units / (team as u32 * parts);
    Draw { team, parts, least: least.clamp(1, share.max(1)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn teams_are_no_larger_than_the_slowest_share_needs() {
        assert_eq!(even(33, 32), 17);
        assert_eq!(even(32, 32), 32);
        assert_eq!(even(20, 16), 10);
        assert_eq!(even(100, 16), 15);
        assert_eq!(even(2, 16), 2);
        for units in 1..200 {
            for team in 1..=units {
                let even = even(units, team);
                assert!(even <= team && units.div_ceil(even) == units.div_ceil(team));
                let efficiency = units as f64 / (even * units.div_ceil(even)) as f64;
                assert!(even == 1 || efficiency > 0.5, "{units} on {even}");
            }
        }
    }

    #[test]
    fn units_are_whole_grains_and_can_be_counted() {
        let units = |items, grain| Span { items, grain, ..Span::default() }.units();
        assert_eq!(units(10, 0), Units { count: 10, items: 1 });
        assert_eq!(units(10, 4), Units { count: 3, items: 4 });
        assert_eq!(units(1, 100), Units { count: 1, items: 100 });
        let huge = units(usize::MAX >> 1, 3);
        assert!(huge.items % 3 == 0 && huge.count > 1 << 30);
    }
}

//! Plans a loop from its known cost: alone, or with how many helpers and in which pieces.
#![forbid(unsafe_code)]

use super::costs::{DispatchKind, LoopPlan};
use super::measure;
use super::pool::ThreadPool;
use super::ranges::Draw;
use super::span::Span;
use crate::abi::weir_threadpool_flags as F;
use crate::base::time::now_ns;
use crate::base::{Object, Ref};

/// Smallest piece worth drawing, in nanoseconds: a hundred times the cost of drawing it.
const PIECE_NS: f32 = 1_000.0;

/// For a loop of this length the cost of helpers does not matter.
const LONG_NS: f32 = 500_000.0;

/// How to run a loop of known cost; `None` = in its caller alone.
pub fn plan(pool: &Ref<ThreadPool>, span: &Span) -> Option<LoopPlan> {
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
    // A long loop is shared at any price, and sampled.
    if total < LONG_NS {
        measure::once(pool);
    }
    let now = now_ns();
    let hot = costs.is_hot(now);
    let width = pool.num_threads();
    let most = most.min(width).min(pool.regions().most_threads() - 1);
    let mut consider = |way: DispatchKind| {
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
    let single = pool.can_spawn().then(|| consider(DispatchKind::Single));
    let bulk = pool.has_blocking_bulk().then(|| consider(DispatchKind::Bulk)).filter(|&(_, helpers, _)| helpers > 0);
    // A parallel_for that waits may find the pool busy with something else; `schedule` never holds the caller.
    let bulk = bulk.filter(|&(_, _, ns)| single.is_none_or(|(_, helpers, alone)| helpers == 0 || ns < 0.9 * alone));
    let bulk = bulk.filter(|_| pool.has_flag(F::WEIR_THREADPOOL_NESTED) || !pool.in_parallel());
    let (way, helpers, expected) = bulk.or(single)?;
    if helpers == 0 {
        return None;
    }
    costs.used_until(now + expected as u64);
    // A pool that is tried again is sampled.
    let sampled = costs.sample_next() || again;
    let helpers = even(units, helpers + 1) - 1;
    Some(LoopPlan { way, helpers, taken: pool.take_helpers(helpers, width), width, hot, sampled })
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

#[cfg(all(test, not(loom)))]
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
}

//! Whether a program's runs are better made alone or shared, found out by trying.
//!
//! What nodes cost and what a pool costs say when helpers can be worth it. Whether they are depends on more: whether
//! the pool's threads get a processor at all, how its `parallel_for` waits, what the caches do. So runs are timed now
//! and then, and the way that is faster is taken. The other one is tried again after 2, 4, 8 ... runs, up to one in
//! 256, and after 2 again when the ways have changed places: a bad moment costs a few runs, and a bad way next to
//! nothing. Being alone is not tried while sharing takes less than three quarters of what the nodes cost. It changes
//! who runs what, never what comes out.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// So many runs are shared and timed at first, and of the later ones one in so many is timed.
const TIME_FIRST: u32 = 4;
const TIME_EVERY: u32 = 16;
/// After how many runs the other way is tried, at first and at most.
const TRY_FIRST: u32 = 2;
const TRY_LAST: u32 = 256;

/// Figures of one program with the family of pools that it was run with last. Statistics: ORDERING Relaxed throughout.
#[derive(Debug, Default)]
pub(super) struct Ways {
    family: AtomicU64,
    turns: AtomicU32,
    /// Times of a run in nanoseconds; 0 = not known.
    alone_ns: AtomicU64,
    shared_ns: AtomicU64,
    /// Timed runs that were shared, up to `TIME_FIRST`.
    timed: AtomicU32,
    /// The next turn in which the other way is tried, and how long after that the next but one comes.
    try_at: AtomicU32,
    interval: AtomicU32,
}

/// How a run is to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    pub shared: bool,
    pub timed: bool,
}

impl Ways {
    /// For a run with a pool of this family whose nodes cost `all_ns`.
    pub fn choose(&self, family: u64, all_ns: u64) -> Turn {
        if self.family.load(Relaxed) != family {
            self.family.store(family, Relaxed);
            let words = [&self.turns, &self.timed, &self.try_at];
            words.into_iter().for_each(|word| word.store(0, Relaxed));
            self.interval.store(TRY_FIRST, Relaxed);
            self.alone_ns.store(0, Relaxed);
            self.shared_ns.store(0, Relaxed);
        }
        // Two threads may count one turn; nothing depends on it.
        let turn = self.turns.load(Relaxed).wrapping_add(1);
        self.turns.store(turn, Relaxed);
        if self.timed.load(Relaxed) < TIME_FIRST {
            return Turn { shared: true, timed: true };
        }
        let shared = self.is_shared_faster(all_ns);
        if turn.wrapping_sub(self.try_at.load(Relaxed)) as i32 >= 0 {
            let interval = self.interval.load(Relaxed);
            self.interval.store((2 * interval).min(TRY_LAST), Relaxed);
            self.try_at.store(turn.wrapping_add(interval), Relaxed);
            // What nodes cost says well enough what being alone would take; who comes when says nothing but a try.
            let is_clear = shared && self.shared_ns.load(Relaxed) < all_ns - all_ns / 4;
            return Turn { shared: shared == is_clear, timed: true };
        }
        Turn { shared, timed: turn.is_multiple_of(TIME_EVERY) }
    }

    fn is_shared_faster(&self, all_ns: u64) -> bool {
        match self.alone_ns.load(Relaxed) {
            0 => self.shared_ns.load(Relaxed) < all_ns,
            alone => self.shared_ns.load(Relaxed) < alone,
        }
    }

    /// What a timed run took.
    pub fn took(&self, turn: Turn, ns: u64, all_ns: u64) {
        let before = self.is_shared_faster(all_ns);
        let kept = if turn.shared { &self.shared_ns } else { &self.alone_ns };
        let old = kept.load(Relaxed);
        // Down at once, up by little: an interrupted run takes far too long, and none takes too short.
        let new = if old == 0 { ns } else { ns.min(old + old / 4 + 100) };
        kept.store(new.max(1), Relaxed);
        let timed = self.timed.load(Relaxed);
        if turn.shared && timed < TIME_FIRST {
            self.timed.store(timed + 1, Relaxed);
        }
        if self.is_shared_faster(all_ns) != before {
            self.interval.store(TRY_FIRST, Relaxed);
            self.try_at.store(self.turns.load(Relaxed).wrapping_add(TRY_FIRST), Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The way of each of so many runs, where a shared one takes `shared` (of its number) and one alone `alone`.
    fn ways(runs: usize, shared: impl Fn(usize) -> u64, alone: u64) -> Vec<bool> {
        let ways = Ways::default();
        (0..runs)
            .map(|run| {
                let turn = ways.choose(7, 1000);
                if turn.timed {
                    ways.took(turn, if turn.shared { shared(run) } else { alone }, 1000);
                }
                turn.shared
            })
            .collect()
    }

    #[test]
    fn the_faster_way_is_taken_and_the_other_one_tried_less_and_less() {
        let good = ways(2000, |_| 800, 1000);
        let alone = good.iter().filter(|shared| !**shared).count();
        assert!((8..=18).contains(&alone), "{alone} of 2000");
        assert!(ways(2000, |_| 550, 1000).iter().all(|shared| *shared));
        let bad = ways(2000, |_| 5000, 1000);
        assert!(bad[..TIME_FIRST as usize].iter().all(|shared| *shared));
        let tried = bad[TIME_FIRST as usize..].iter().filter(|shared| **shared).count();
        assert!((8..=18).contains(&tried), "{tried} of 1996");
    }

    #[test]
    fn a_bad_beginning_is_forgotten() {
        let late = ways(200, |run| if run < 6 { 1300 } else { 550 }, 1000);
        let shared = late[6..].iter().filter(|shared| **shared).count();
        assert!(shared > 180, "{shared} of 194");
    }

    #[test]
    fn another_pool_begins_anew() {
        let ways = Ways::default();
        for _ in 0..10 {
            let turn = ways.choose(1, 1000);
            ways.took(turn, if turn.shared { 9000 } else { 1000 }, 1000);
        }
        let alone = (0..10).filter(|_| !ways.choose(1, 1000).shared).count();
        assert!(alone >= 8, "{alone} of 10");
        assert!(ways.choose(2, 1000).shared);
    }
}

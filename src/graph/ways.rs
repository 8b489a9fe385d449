//! Whether a program's runs are better made alone or shared, found out by trying.
//!
//! What nodes cost and what a pool costs say when helpers can be worth it. Whether they are depends on more: whether the pool's
//! threads get a processor at all, how its `parallel_for` waits, what the caches do. So runs that are shared are timed now
//! and then and compared with what the same nodes cost alone; the way that is faster is taken, and the other one is
//! tried again from time to time. It changes who runs what, never what comes out.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// The first runs are shared and timed, and one in so many later ones is timed.
const TIME_FIRST: u32 = 4;
const TIME_EVERY: u32 = 16;
/// While the other way is the better one, a run in so many is made in this way all the same.
const TRY_EVERY: u32 = 64;

/// Figures of one program with the pool that it was run with last. Statistics: ORDERING Relaxed throughout.
#[derive(Debug, Default)]
pub(super) struct Ways {
    pool: AtomicU64,
    turns: AtomicU32,
    /// Times of a run in nanoseconds; 0 = not known.
    alone_ns: AtomicU64,
    shared_ns: AtomicU64,
}

/// How a run is to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    pub shared: bool,
    pub timed: bool,
}

impl Ways {
    /// For a run with this pool whose nodes cost `all_ns`.
    pub fn choose(&self, pool: u64, all_ns: u64) -> Turn {
        if self.pool.load(Relaxed) != pool {
            self.pool.store(pool, Relaxed);
            self.turns.store(0, Relaxed);
            self.alone_ns.store(0, Relaxed);
            self.shared_ns.store(0, Relaxed);
        }
        // Two threads may count one turn; nothing depends on it.
        let turn = self.turns.load(Relaxed).wrapping_add(1);
        self.turns.store(turn, Relaxed);
        let timed = turn <= TIME_FIRST || turn.is_multiple_of(TIME_EVERY);
        let (alone, shared) = (self.alone_ns.load(Relaxed), self.shared_ns.load(Relaxed));
        let alone = if alone == 0 { all_ns } else { alone };
        let is_faster = turn <= TIME_FIRST || shared == 0 || shared < alone;
        let tries = turn.is_multiple_of(TRY_EVERY);
        Turn { shared: is_faster != tries || turn <= TIME_FIRST, timed: timed || tries }
    }

    /// What a timed run took.
    pub fn took(&self, turn: Turn, ns: u64) {
        let kept = if turn.shared { &self.shared_ns } else { &self.alone_ns };
        let old = kept.load(Relaxed);
        // Down at once, up by little: an interrupted run takes far too long, and none takes too short.
        let new = if old == 0 { ns } else { ns.min(old + old / 4 + 100) };
        kept.store(new.max(1), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The way of each of so many runs, where a shared one takes `shared` and one alone `alone`.
    fn ways(runs: usize, shared: u64, alone: u64) -> Vec<bool> {
        let ways = Ways::default();
        (0..runs)
            .map(|_| {
                let turn = ways.choose(7, 1000);
                if turn.timed {
                    ways.took(turn, if turn.shared { shared } else { alone });
                }
                turn.shared
            })
            .collect()
    }

    #[test]
    fn the_faster_way_is_taken_and_the_other_one_tried_again() {
        let good = ways(1000, 550, 1000);
        assert!(good.iter().filter(|shared| !**shared).count() <= 1000 / 64 + 1);
        let bad = ways(1000, 5000, 1000);
        assert!(bad[..4].iter().all(|shared| *shared));
        let tried = bad[4..].iter().filter(|shared| **shared).count();
        assert!((10..=20).contains(&tried), "{tried} of 996");
    }

    #[test]
    fn another_pool_begins_anew() {
        let ways = Ways::default();
        for _ in 0..10 {
            let turn = ways.choose(1, 1000);
            ways.took(turn, 9000);
        }
        assert!(!ways.choose(1, 1000).shared);
        assert!(ways.choose(2, 1000).shared);
    }
}

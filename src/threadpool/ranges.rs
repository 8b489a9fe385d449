//! A loop's units, divided into home ranges that threads take from at the front and steal from at the back.
//!
//! Each slot of a team has a home: one 64-bit word, alone on its cache lines, that holds the units nobody has claimed
//! yet as `begin : 32 | end : 32`. A thread that holds the slot holds the home. The caller's slot is usually the first,
//! so that it touches the same data in one loop and the next.
//!
//! | step  | who                          | change                                                            |
//! |-------|------------------------------|-------------------------------------------------------------------|
//! | fill  | the owner of the loop, alone | every home gets its share                                         |
//! | take  | the holder of a home         | `begin` moves up by a part of the rest: compare and swap          |
//! | steal | a thread whose home is empty | `end` of another home moves down by half: compare and swap; then  |
//! |       |                              | the stolen units but the first piece go to its own: a plain store |
//!
//! Pieces get smaller as the loop goes on: a piece is one part in `parts` of what its home still has, and not less
//! than `least`. So few pieces are drawn when all cost the same, and the last ones are small when they do not.
//!
//! *Why no unit is lost or drawn twice.* A unit is in at most one word at any time. Taking and stealing move a
//! bound by compare and swap on the whole word, so of two that saw the same word one fails. The plain store goes to a
//! word that is empty, and an empty word is changed by nobody but its holder. A word may come back to a value it had
//! before (a stolen range is stolen back whole); a compare and swap that then succeeds late takes units that are
//! unclaimed at that moment, which is all it has to know.
//!
//! A thread that finds all words empty may miss a range that a thief is about to store. The thief does it then; the
//! loop's end is counted elsewhere (`RunLatch`), not here.
#![forbid(unsafe_code)]

use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::*;

/// Two cache lines: adjacent ones are fetched together.
#[derive(Debug)]
#[repr(align(128))]
struct HomeRange(AtomicU64);

#[derive(Debug)]
pub struct Ranges {
    homes: Box<[HomeRange]>,
}

/// How a loop is drawn.
#[derive(Clone, Copy, Debug)]
pub struct Draw {
    /// Homes in use.
    pub team: usize,
    /// A piece is this part of its home's rest.
    pub parts: u32,
    /// Smallest piece, in units, at least 1.
    pub least: u32,
}

fn pack(begin: u32, end: u32) -> u64 {
    u64::from(begin) << 32 | u64::from(end)
}

fn unpack(word: u64) -> (u32, u32) {
    ((word >> 32) as u32, word as u32)
}

impl Draw {
    /// The size of the next piece of `left` units.
    fn piece(self, left: u32) -> u32 {
        let piece = (left / self.parts).max(self.least);
        // If the rest would be less than a piece, take it along.
        if left - piece.min(left) < self.least { left } else { piece }
    }
}

impl Ranges {
    /// Homes for teams of up to `most` slots.
    pub fn new(most: usize) -> Ranges {
        Ranges { homes: (0..most.max(1)).map(|_| HomeRange(AtomicU64::new(0))).collect() }
    }

    /// A home's word, for the models' broken twins.
    #[cfg(all(test, loom))]
    pub(super) fn word(&self, home: usize) -> &AtomicU64 {
        &self.homes[home].0
    }

    /// Gives each home of a team its share of the units `0..units`. Only while nobody draws.
    pub fn fill(&self, team: usize, units: u32) {
        let bound = |i: usize| (i as u64 * u64::from(units) / team as u64) as u32;
        for (i, home) in self.homes[..team].iter().enumerate() {
            // ORDERING: Relaxed; `RunLatch::open`, which lets the team in, publishes it.
            home.0.store(pack(bound(i), bound(i + 1)), Relaxed);
        }
    }

    /// The next piece for the holder of `home`: units `begin..end`.
    pub fn draw(&self, home: usize, draw: Draw) -> Option<(u32, u32)> {
        self.take(home, draw).or_else(|| (1..draw.team).find_map(|i| self.steal((home + i) % draw.team, home, draw)))
    }

    // ORDERING: Relaxed throughout; the words only divide the units, `RunLatch` orders the work on them.

    fn take(&self, home: usize, draw: Draw) -> Option<(u32, u32)> {
        let word = &self.homes[home].0;
        let mut seen = word.load(Relaxed);
        loop {
            let (begin, end) = unpack(seen);
            if begin == end {
                return None;
            }
            let next = begin + draw.piece(end - begin);
            match word.compare_exchange_weak(seen, pack(next, end), Relaxed, Relaxed) {
                Ok(_) => return Some((begin, next)),
                Err(now) => seen = now,
            }
        }
    }

    fn steal(&self, victim: usize, home: usize, draw: Draw) -> Option<(u32, u32)> {
        let word = &self.homes[victim].0;
        let mut seen = word.load(Relaxed);
        loop {
            let (begin, end) = unpack(seen);
            if begin == end {
                return None;
            }
            let left = end - begin;
            let stolen = if left < 2 * draw.least { left } else { left.div_ceil(2) };
            match word.compare_exchange_weak(seen, pack(begin, end - stolen), Relaxed, Relaxed) {
                Ok(_) => {
                    let first = end - stolen;
                    let next = first + draw.piece(stolen);
                    self.homes[home].0.store(pack(next, end), Relaxed);
                    return Some((first, next));
                }
                Err(now) => seen = now,
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn all(ranges: &Ranges, draw: Draw, homes: &[usize]) -> Vec<(u32, u32)> {
        let mut pieces = Vec::new();
        loop {
            let before = pieces.len();
            pieces.extend(homes.iter().filter_map(|&home| ranges.draw(home, draw)));
            if pieces.len() == before {
                return pieces;
            }
        }
    }

    #[test]
    fn every_unit_is_drawn_once_by_any_number_of_threads() {
        let ranges = Ranges::new(7);
        for units in [1, 2, 3, 7, 8, 33, 1000] {
            for team in 1..=7 {
                for present in 1..=team {
                    for (parts, least) in [(2, 1), (4, 1), (2, 5), (1, 1)] {
                        ranges.fill(team, units);
                        let homes: Vec<_> = (0..present).collect();
                        let mut pieces = all(&ranges, Draw { team, parts, least }, &homes);
                        pieces.sort_unstable();
                        assert_eq!(pieces.first().unwrap().0, 0);
                        assert_eq!(pieces.last().unwrap().1, units);
                        assert!(pieces.windows(2).all(|w| w[0].1 == w[1].0), "{units} units, team {team}: {pieces:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_thread_begins_at_home_and_pieces_get_smaller() {
        let ranges = Ranges::new(2);
        ranges.fill(2, 64);
        let draw = Draw { team: 2, parts: 2, least: 2 };
        assert_eq!(ranges.draw(1, draw), Some((32, 48)));
        assert_eq!(ranges.draw(1, draw), Some((48, 56)));
        assert_eq!(ranges.draw(0, draw), Some((0, 16)));
        assert_eq!(ranges.draw(1, draw), Some((56, 60)));
        assert_eq!(ranges.draw(1, draw), Some((60, 62)));
        assert_eq!(ranges.draw(1, draw), Some((62, 64)));
        // The back half of home 0's rest.
        assert_eq!(ranges.draw(1, draw), Some((24, 28)));
        assert_eq!(ranges.draw(1, draw), Some((28, 30)));
    }
}

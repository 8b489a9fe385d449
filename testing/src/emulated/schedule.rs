//! Which queue goes on, by a seed. Evenly drawn orders seldom keep one queue back for long, and that is where missing
//! waits show. So the draws come in episodes: all queues are equal, or one waits as long as another can go on, or one
//! goes on as long as it can.
#![forbid(unsafe_code)]

use crate::base::{Error, Result};

#[derive(Clone, Copy, Debug)]
enum Episode {
    Equal,
    /// This queue comes last.
    Starved(usize),
    /// This queue comes first.
    Favoured(usize),
}

#[derive(Debug)]
pub(super) struct Scheduler {
    random: u64,
    episode: Episode,
    /// The steps that are left of the episode.
    left: usize,
}

impl Scheduler {
    pub(super) fn new(seed: u64) -> Scheduler {
        // splitmix64's finalizer, so that neighbouring seeds begin far apart; xorshift must not start at 0.
        let mut random = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
        random = (random ^ (random >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        random = (random ^ (random >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        random = (random ^ (random >> 31)).max(1);
        Scheduler { random, episode: Episode::Equal, left: 0 }
    }

    /// The next draw below `n` (xorshift64*, Marsaglia 2003 and Vigna 2016).
    pub(super) fn draw(&mut self, n: usize) -> usize {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        ((self.random.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize) % n.max(1)
    }

    /// Chooses one of the queues that can go on; there is at least one.
    pub(super) fn choose(&mut self, ready: &[usize]) -> usize {
        if self.left == 0 {
            let queue = ready[self.draw(ready.len())];
            self.episode = match self.draw(4) {
                0 => Episode::Equal,
                1 | 2 => Episode::Starved(queue),
                _ => Episode::Favoured(queue),
            };
            self.left = match self.draw(8) {
                0 => 64 + self.draw(256),
                _ => 1 + self.draw(16),
            };
        }
        self.left -= 1;
        match self.episode {
            Episode::Favoured(queue) if ready.contains(&queue) => queue,
            Episode::Starved(queue) => {
                let others = ready.iter().filter(|&&other| other != queue).count();
                let drawn = self.draw(others);
                ready.iter().copied().filter(|&other| other != queue).nth(drawn).unwrap_or(queue)
            }
            _ => ready[self.draw(ready.len())],
        }
    }
}

/// The numbers of the operations in the order in which the device came to them: the latest ones, and how many there
/// were.
#[derive(Debug)]
pub(super) struct Order {
    ring: Vec<u64>,
    total: u64,
}

impl Order {
    const KEPT: usize = 16_384;

    pub(super) fn new() -> Result<Order> {
        let mut ring = Vec::new();
        ring.try_reserve_exact(Self::KEPT)
            .map_err(|_| Error::exhausted("the order of operations", Self::KEPT * size_of::<u64>()))?;
        Ok(Order { ring, total: 0 })
    }

    pub(super) fn add(&mut self, number: u64) {
        match self.ring.len() {
            Self::KEPT => self.ring[self.total as usize % Self::KEPT] = number,
            _ => self.ring.push(number),
        }
        self.total += 1;
    }

    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// The latest ones, at most `count`, the oldest first.
    pub(super) fn latest(&self, count: usize) -> Vec<u64> {
        let kept = self.ring.len().min(count);
        let first = self.total as usize - kept;
        (first..first + kept).map(|at| self.ring[at % Self::KEPT]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_are_kept() {
        let mut order = Order::new().unwrap();
        (1..=20_000).for_each(|number| order.add(number));
        assert_eq!((order.total(), order.latest(2)), (20_000, vec![19_999, 20_000]));
        let all = order.latest(usize::MAX);
        assert_eq!((all.len(), all[0]), (Order::KEPT, 20_000 - Order::KEPT as u64 + 1));
    }

    #[test]
    fn a_queue_may_be_kept_back_for_long_and_all_come() {
        let mut longest = 0;
        for seed in 1..50 {
            let mut scheduler = Scheduler::new(seed);
            let mut last = [0; 3];
            for step in 1..2000 {
                let chosen = scheduler.choose(&[0, 1, 2]);
                longest = longest.max(step - last[chosen]);
                last[chosen] = step;
            }
            assert!(last.iter().all(|&at| at > 1), "seed {seed}");
        }
        assert!(longest > 200, "{longest}");
    }
}

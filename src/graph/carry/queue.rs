//! Ready work that a worker offers: lists of ready nodes, which any thread takes whole.
//!
//! One worker pushes, all threads (it too) take the oldest. `head` and `tail` only grow, so a slot is never overwritten
//! while it is read: the owner writes slot `tail` only when `head` has passed it, and a taker that loses the race for
//! `head` discards what it read.
#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicU64, Ordering::*};

/// Offers share a cache line with `head` and `tail`: a thread that looks for an offer finds it with one transfer.
const ROOM: u64 = 4;

/// A list of ready nodes by its first node (the rest through the state's links), and what it is worth in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::graph) struct Offer {
    pub first: u32,
    pub worth_ns: u32,
}

#[derive(Debug)]
#[repr(align(128))]
pub(in crate::graph) struct WorkQueue {
    head: AtomicU64,
    tail: AtomicU64,
    slots: [AtomicU64; ROOM as usize],
}

impl WorkQueue {
    pub fn new() -> WorkQueue {
        WorkQueue {
            head: AtomicU64::new(0),
            tail: AtomicU64::new(0),
            slots: [const { AtomicU64::new(0) }; ROOM as usize],
        }
    }

    /// Puts an offer at the end; false if there is no room. Only by the worker that holds this queue.
    pub fn push(&self, offer: Offer) -> bool {
        let tail = self.tail.load(Relaxed);
        // ORDERING: Acquire pairs with the takers' AcqRel on `head`: their reads of the slot are over.
        if tail - self.head.load(Acquire) >= ROOM {
            return false;
        }
        self.slots[(tail % ROOM) as usize].store(u64::from(offer.first) << 32 | u64::from(offer.worth_ns), Relaxed);
        // ORDERING: Release pairs with the Acquire in `take`; it also publishes the list's links and the outputs of its
        // nodes' producers.
        self.tail.store(tail + 1, Release);
        true
    }

    /// Takes the oldest offer.
    pub fn take(&self) -> Option<Offer> {
        let mut head = self.head.load(Relaxed);
        loop {
            // ORDERING: Acquire pairs with the Release in `push`.
            if head >= self.tail.load(Acquire) {
                return None;
            }
            let word = self.slots[(head % ROOM) as usize].load(Relaxed);
            // ORDERING: Release half pairs with the Acquire of `push` one round later.
            match self.head.compare_exchange_weak(head, head + 1, AcqRel, Relaxed) {
                Ok(_) => return Some(Offer { first: (word >> 32) as u32, worth_ns: word as u32 }),
                Err(now) => head = now,
            }
        }
    }

    /// The first node of the oldest offer, or of one that was. ORDERING: Relaxed; a hint.
    pub fn peek(&self) -> Option<u32> {
        let head = self.head.load(Relaxed);
        let word = self.slots[(head % ROOM) as usize].load(Relaxed);
        (head < self.tail.load(Relaxed)).then_some((word >> 32) as u32)
    }

    /// Whether it looks empty. ORDERING: Relaxed; a hint.
    pub fn is_empty(&self) -> bool {
        self.head.load(Relaxed) >= self.tail.load(Relaxed)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn every_offer_is_taken_once() {
        let queue = Arc::new(WorkQueue::new());
        let takers: Vec<_> = (0..3)
            .map(|_| {
                let queue = Arc::clone(&queue);
                std::thread::spawn(move || {
                    let mut sum = 0u64;
                    let mut taken = 0;
                    while taken < 20_000 {
                        match queue.take() {
                            Some(Offer { first: u32::MAX, .. }) => break,
                            Some(offer) => {
                                assert_eq!(offer.first, offer.worth_ns);
                                sum += u64::from(offer.first);
                                taken += 1;
                            }
                            None => std::thread::yield_now(),
                        }
                    }
                    sum
                })
            })
            .collect();
        let push = |n: u32| {
            while !queue.push(Offer { first: n, worth_ns: n }) {
                std::thread::yield_now();
            }
        };
        (0..20_000).for_each(push);
        (0..3).for_each(|_| push(u32::MAX));
        let sum: u64 = takers.into_iter().map(|t| t.join().unwrap()).sum();
        assert_eq!(sum, (0..20_000).sum::<u64>());
    }
}

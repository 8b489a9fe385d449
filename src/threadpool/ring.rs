//! A bounded queue for many producers and many consumers, without a lock.
//!
//! The array queue by Dmitry Vyukov (1024cores.net, "Bounded MPMC queue"): each cell carries a sequence number that
//! says which ticket may use it. A cell with sequence `i` is free for the producer that draws ticket `i`; with `i + 1`
//! it is full for the consumer that draws ticket `i`; the consumer sets `i + capacity`, free for the next round.
#![forbid(unsafe_code)]

use super::host::RawTask;
use crate::sync::Mailbox;
use std::sync::atomic::{AtomicUsize, Ordering::*};

#[derive(Debug)]
struct RingCell {
    sequence: AtomicUsize,
    task: Mailbox<RawTask>,
}

#[derive(Debug)]
pub struct MpmcRing {
    cells: Box<[RingCell]>,
    mask: usize,
    tail: AtomicUsize,
    head: AtomicUsize,
}

impl MpmcRing {
    /// Room for `capacity` tasks, a power of two.
    pub fn new(capacity: usize) -> MpmcRing {
        assert!(capacity.is_power_of_two());
        let cell = |i| RingCell { sequence: AtomicUsize::new(i), task: Mailbox::default() };
        MpmcRing {
            cells: (0..capacity).map(cell).collect(),
            mask: capacity - 1,
            tail: AtomicUsize::new(0),
            head: AtomicUsize::new(0),
        }
    }

    /// False if the queue is full.
    pub fn push(&self, task: RawTask) -> bool {
        let mut at = self.tail.load(Relaxed);
        loop {
            let cell = &self.cells[at & self.mask];
            // ORDERING: Acquire pairs with the Release of the consumer that freed the cell.
            match cell.sequence.load(Acquire).wrapping_sub(at) as isize {
                0 => match self.tail.compare_exchange_weak(at, at + 1, Relaxed, Relaxed) {
                    Ok(_) => {
                        let put = cell.task.put(task);
                        debug_assert!(put.is_ok());
                        // ORDERING: Release pairs with the Acquire in `pop`.
                        cell.sequence.store(at + 1, Release);
                        return true;
                    }
                    Err(now) => at = now,
                },
                behind if behind < 0 => return false,
                _ => at = self.tail.load(Relaxed),
            }
        }
    }

    /// The oldest task.
    pub fn pop(&self) -> Option<RawTask> {
        let mut at = self.head.load(Relaxed);
        loop {
            let cell = &self.cells[at & self.mask];
            // ORDERING: Acquire pairs with the Release in `push`.
            match cell.sequence.load(Acquire).wrapping_sub(at + 1) as isize {
                0 => match self.head.compare_exchange_weak(at, at + 1, Relaxed, Relaxed) {
                    Ok(_) => {
                        let task = cell.task.take();
                        // ORDERING: Release pairs with the Acquire in `push` one round later.
                        cell.sequence.store(at + self.mask + 1, Release);
                        return task;
                    }
                    Err(now) => at = now,
                },
                behind if behind < 0 => return None,
                _ => at = self.head.load(Relaxed),
            }
        }
    }

    /// Whether it looks empty. ORDERING: SeqCst, see `builtin` (push against sleep).
    pub fn is_empty(&self) -> bool {
        let head = self.head.load(SeqCst);
        let cell = &self.cells[head & self.mask];
        (cell.sequence.load(SeqCst).wrapping_sub(head + 1) as isize) < 0
    }
}

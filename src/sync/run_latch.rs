//! Which workers are in a run, how many nodes are left, and which worker closes it: one 64-bit word.
//!
//! ```text
//! | generation : 20 | inside : 12 | left : 32 |
//! ```
//!
//! `left` counts the nodes that are not finished; workers subtract what they finished in one step, when they run out of
//! work or leave. `inside` counts the workers that may touch the run's memory. The run is closed by the one subtraction
//! that makes both zero: it happens once, and after it nobody is inside, so the closer owns the run's memory alone and
//! may reset it for the next run. `generation` changes with each opening, so a helper that was asked for in an earlier
//! run and comes late cannot enter a later one by mistake. (Where that does no harm, as for the helpers of regions, it
//! may enter on purpose with the current generation.)
//!
//! | step     | who                          | change                                           |
//! |----------|------------------------------|--------------------------------------------------|
//! | `open`   | the owner, alone             | generation + 1, inside = 1 (itself), left = n    |
//! | `enter`  | a helper with its generation | inside + 1, only if left > 0 and same generation |
//! | `finish` | a worker inside              | left - k                                         |
//! | `leave`  | a worker inside              | inside - 1, left - k                             |
#![forbid(unsafe_code)]

use super::atomic::{AtomicU64, Ordering::*};

const LEFT_BITS: u32 = 32;
const INSIDE_BITS: u32 = 12;
const INSIDE: u64 = 1 << LEFT_BITS;
const LEFT_MASK: u64 = INSIDE - 1;
const GENERATION_SHIFT: u32 = LEFT_BITS + INSIDE_BITS;

/// Most workers in one run at once.
const MAX_INSIDE: u64 = (1 << INSIDE_BITS) - 1;

#[derive(Debug)]
pub struct RunLatch(AtomicU64);

/// The result of `enter`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEntry {
    /// Entered; the helper must `leave`.
    Inside,
    /// The run that asked for this helper is over (or all of its nodes are finished).
    Over,
}

/// The result of `leave`: what the worker must do next.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Others are inside or nodes are left.
    Open,
    /// This was the last step: the caller owns the run's memory and must complete the run.
    Closed,
}

impl RunLatch {
    pub fn new() -> RunLatch {
        RunLatch(AtomicU64::new(0))
    }

    /// Opens a run of `nodes` nodes with the caller inside; gives its generation. Only by the owner of a closed word.
    pub fn open(&self, nodes: u32) -> u64 {
        // ORDERING: Relaxed load; the caller got the closed run through an Acquire of its own. Release store pairs
        // with `enter`.
        let generation = self.next_generation();
        self.0.store(generation << GENERATION_SHIFT | INSIDE | u64::from(nodes), Release);
        generation
    }

    /// The generation that is open now, or was last. ORDERING: Relaxed; `enter` finds out which.
    pub fn generation(&self) -> u64 {
        self.0.load(Relaxed) >> GENERATION_SHIFT
    }

    /// The generation that will be open next. Only by the owner of a closed word.
    pub fn next_generation(&self) -> u64 {
        (self.generation() + 1) & ((1 << (64 - GENERATION_SHIFT)) - 1)
    }

    /// A helper that was asked for in `generation` enters.
    pub fn enter(&self, generation: u64) -> RunEntry {
        let mut word = self.0.load(Relaxed);
        loop {
            let open = word >> GENERATION_SHIFT == generation && word & LEFT_MASK > 0;
            if !open || (word >> LEFT_BITS) & MAX_INSIDE == MAX_INSIDE {
                return RunEntry::Over;
            }
            // ORDERING: Acquire pairs with the Release in `open`: the run's memory is set up.
            match self.0.compare_exchange_weak(word, word + INSIDE, Acquire, Relaxed) {
                Ok(_) => return RunEntry::Inside,
                Err(now) => word = now,
            }
        }
    }

    /// A worker that stays inside has finished `nodes` nodes. ORDERING: Release, so that the closer (AcqRel in
    /// `leave`) sees what they did.
    pub fn finish(&self, nodes: u32) {
        self.0.fetch_sub(u64::from(nodes), Release);
    }

    /// Whether every node is finished. ORDERING: Relaxed; a hint to leave, no data depends on it.
    pub fn is_finished(&self) -> bool {
        self.0.load(Relaxed) & LEFT_MASK == 0
    }

    /// How many workers are inside. ORDERING: Relaxed; a hint for scheduling.
    pub fn inside(&self) -> u64 {
        (self.0.load(Relaxed) >> LEFT_BITS) & MAX_INSIDE
    }

    /// A worker leaves and has finished `nodes` nodes since its last `finish`.
    pub fn leave(&self, nodes: u32) -> Exit {
        // ORDERING: Release publishes this worker's writes to the closer; Acquire makes the closer see those of all
        // others.
        let step = INSIDE + u64::from(nodes);
        let after = self.0.fetch_sub(step, AcqRel) - step;
        if after & ((1 << GENERATION_SHIFT) - 1) == 0 { Exit::Closed } else { Exit::Open }
    }
}

impl Default for RunLatch {
    fn default() -> Self {
        RunLatch::new()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_last_one_out_closes() {
        let latch = RunLatch::new();
        let generation = latch.open(3);
        assert_eq!(latch.enter(generation), RunEntry::Inside);
        latch.finish(2);
        assert_eq!(latch.leave(1), Exit::Open);
        assert!(latch.is_finished());
        assert_eq!(latch.enter(generation), RunEntry::Over);
        assert_eq!(latch.leave(0), Exit::Closed);
    }

    #[test]
    fn a_late_helper_does_not_enter_the_next_run() {
        let latch = RunLatch::new();
        let first = latch.open(1);
        assert_eq!(latch.leave(1), Exit::Closed);
        let second = latch.open(1);
        assert_ne!(first, second);
        assert_eq!(latch.enter(first), RunEntry::Over);
        assert_eq!(latch.enter(second), RunEntry::Inside);
        assert_eq!(latch.leave(0), Exit::Open);
        assert_eq!(latch.leave(1), Exit::Closed);
    }
}

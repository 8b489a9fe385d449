//! Whether anybody wants to know of work: one word, which is all that work pays for when nobody does.
#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The places of traces that record, and behind them those of hooks, as bits. ORDERING: Relaxed; a hint to look at the
/// places. All bits are of one word, so a reader never sees that a place was opened and not that another was closed
/// before.
static ACTIVE: AtomicU32 = AtomicU32::new(0);

/// The bit of the first place of hooks.
const HOOKS: usize = 16;

/// What a bit is of.
#[derive(Clone, Copy, Debug)]
pub enum ActivePlace {
    Trace(usize),
    Hooks(usize),
}

impl ActivePlace {
    fn bit(self) -> u32 {
        match self {
            ActivePlace::Trace(at) => 1 << at,
            ActivePlace::Hooks(at) => 1 << (HOOKS + at),
        }
    }

    pub fn set(self) {
        ACTIVE.fetch_or(self.bit(), Relaxed);
    }

    pub fn clear(self) {
        ACTIVE.fetch_and(!self.bit(), Relaxed);
    }
}

/// Whether any trace records, or there are hooks.
#[inline]
pub fn is_on() -> bool {
    ACTIVE.load(Relaxed) != 0
}

/// The places at which a trace records.
pub fn traces() -> impl Iterator<Item = usize> {
    let active = ACTIVE.load(Relaxed);
    (0..HOOKS).filter(move |at| active >> at & 1 == 1)
}

/// The places at which there are hooks.
pub fn hooks() -> impl Iterator<Item = usize> {
    let active = ACTIVE.load(Relaxed) >> HOOKS;
    (0..HOOKS).filter(move |at| active >> at & 1 == 1)
}

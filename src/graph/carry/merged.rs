//! The state of a merge in one run: its word, and the input with which it fired.
#![forbid(unsafe_code)]

use crate::graph::plan::Merge;
use crate::graph::plan::merge::{MergeShape, MergeWord};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

const NOT: u32 = u32::MAX;
const DEAD: u32 = u32::MAX - 1;

/// How a merge was fired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::graph) enum Fired {
    /// Not at all: it runs when all of its inputs are there.
    Not,
    With(u32),
    Dead,
}

/// A merge's word, and the input with which it continues: stored by the arrival that fires it, and taken when the merge
/// runs.
pub(in crate::graph) struct Merged {
    pub word: MergeWord,
    /// ORDERING: Relaxed, always; the thread that fires the merge hands it to the one that runs it.
    fired: AtomicU32,
}

impl Merged {
    pub fn new(merge: Option<&Merge>) -> Merged {
        let unused = MergeShape { data: 1, controls: 0 };
        let shape = merge.and_then(|merge| merge.shape).unwrap_or(unused);
        Merged { word: MergeWord::new(shape), fired: AtomicU32::new(NOT) }
    }

    pub fn fire(&self, with: Option<u16>) {
        self.fired.store(with.map_or(DEAD, u32::from), Relaxed);
    }

    pub fn fired(&self) -> Fired {
        match self.fired.load(Relaxed) {
            NOT => Fired::Not,
            DEAD => Fired::Dead,
            input => Fired::With(input),
        }
    }

    pub fn take(&self) -> Fired {
        let fired = self.fired();
        self.fired.store(NOT, Relaxed);
        fired
    }

    /// Whether it is as before a run.
    pub fn is_clean(&self, merge: &Merge) -> bool {
        merge.shape.is_none_or(|shape| self.word.is_clean(shape)) && self.fired() == Fired::Not
    }
}

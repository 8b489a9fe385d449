//! Counters: which one an arrival goes to.
//!
//! A node that waits for one arrival has none. One that waits for more has a counter; beyond `WIDE` arrivals it has a
//! counter for each group of `GROUP` (a leaf), and one for the groups, so that threads which finish nodes side by side
//! do not all write one cache line.
#![forbid(unsafe_code)]

use crate::graph::plan::DIRECT;

/// Most arrivals at one counter.
pub(super) const WIDE: usize = 64;
/// Arrivals at a leaf.
const GROUP: usize = 32;

/// Marks a leaf in a counter's number until all are known: leaves come last.
const LEAF: u32 = 1 << 31;
/// Marks an arrival at a merge, which has a word of its own.
const MERGE: u32 = 1 << 30;

#[derive(Default)]
pub(super) struct Joins {
    /// Start values.
    counters: Vec<u32>,
    leaves: Vec<u32>,
    /// The counter of each leaf.
    leaf_of: Vec<u32>,
    pub wide: usize,
}

impl Joins {
    /// The counter for arrival `i` of `n` at the node that comes next.
    pub fn counter(&self, i: usize, n: usize) -> u32 {
        match n {
            0 | 1 => DIRECT,
            n if n <= WIDE => self.counters.len() as u32,
            _ => LEAF | (self.leaves.len() + i / GROUP) as u32,
        }
    }

    /// The counter of a node that has one whatever comes: for all of its `n` arrivals.
    pub fn single(&mut self, n: usize) -> u32 {
        self.counters.push(n as u32);
        self.counters.len() as u32 - 1
    }

    /// All `n` arrivals of that node are placed.
    pub fn close(&mut self, n: usize) {
        if n <= 1 {
            return;
        }
        let own = self.counters.len() as u32;
        if n <= WIDE {
            self.counters.push(n as u32);
            return;
        }
        self.wide += 1;
        let groups = n.div_ceil(GROUP);
        self.counters.push(groups as u32);
        for group in 0..groups {
            self.leaves.push((n - group * GROUP).min(GROUP) as u32);
            self.leaf_of.push(own);
        }
    }

    /// The start values with the leaves at the end, the first leaf, and what each leaf belongs to.
    pub fn finish(self) -> (Vec<u32>, u32, Vec<u32>) {
        let first_leaf = self.counters.len() as u32;
        let mut counters = self.counters;
        counters.extend(self.leaves);
        (counters, first_leaf, self.leaf_of)
    }

    /// The mark in the place of a counter, for the edge to a merge with this number.
    pub fn at_merge(edge: u32) -> u32 {
        MERGE | edge
    }

    /// The other way round, for what is the edge to a merge.
    #[cfg(debug_assertions)]
    pub fn merge_edge(counter: u32) -> u32 {
        counter & !MERGE
    }

    /// The final number of a counter, if there are so many. Beyond them are the edges to merges.
    pub fn number(counter: u32, first_leaf: u32, counters: u32) -> u32 {
        match counter {
            DIRECT => DIRECT,
            leaf if leaf & LEAF != 0 => first_leaf + (leaf & !LEAF),
            edge if edge & MERGE != 0 => counters + (edge & !MERGE),
            counter => counter,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn wide_joins_have_leaves() {
        let mut joins = Joins::default();
        assert_eq!(joins.counter(0, 1), DIRECT);
        joins.close(1);
        assert_eq!(joins.counter(1, 2), 0);
        joins.close(2);
        let placed: Vec<u32> = (0..100).map(|i| joins.counter(i, 100)).collect();
        joins.close(100);
        let (counters, first_leaf, leaf_of) = joins.finish();
        assert_eq!((counters.as_slice(), first_leaf), (&[2, 4, 32, 32, 32, 4][..], 2));
        assert_eq!(leaf_of, [1, 1, 1, 1]);
        let mut left = counters.clone();
        placed.iter().for_each(|&counter| left[Joins::number(counter, first_leaf, 6) as usize] -= 1);
        assert_eq!(left[2..], [0, 0, 0, 0]);
    }
}

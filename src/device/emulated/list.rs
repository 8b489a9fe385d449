//! The lists of steps of a recording, as this device keeps them: its own, and those inside of its branches and loops.
//! They are numbered by their places, 0 is the recording's own; a step that has lists of its own knows their numbers,
//! and each of those whose it is.
//!
//! *For the checker* all steps of all lists have a number besides, each step's before those inside of it, and one table
//! says which comes after which. That is enough, whatever runs: what is inside of a loop is behind all of the time
//! before, so only an order within one time can be missing; of a branch one list runs, so each counts as behind the one
//! before it. What may run counts as if it did.
#![forbid(unsafe_code)]

use super::checker::Ranges;
use super::operation::Act;
use crate::base::Reach;
use crate::memory::View;
use std::ops::Range;

/// An operation as it is launched each time. A branch or a loop is one that reads an integer.
#[derive(Clone)]
pub(super) struct Step {
    pub name: String,
    pub act: Act,
    pub inputs: Vec<View>,
    pub outputs: Vec<View>,
    pub duration_ns: u64,
    pub reads: Ranges,
    pub writes: Ranges,
}

/// Lists of a step's own, by their numbers.
#[derive(Debug)]
pub(super) enum Inner {
    None,
    /// One of these.
    Branch(Box<[u32]>),
    Loop(u32),
    /// It reads the predicate of the loop whose body it is in, for the next time.
    Again,
}

/// A step of one of the lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub list: u32,
    pub step: u32,
}

/// Steps with the edges between them.
#[derive(Default)]
pub(super) struct List {
    /// What does it; None: it is the recording's own.
    pub owner: Option<Place>,
    /// How many steps each one waits for.
    pub after: Vec<u32>,
    pub inner: Vec<Inner>,
    /// The number of each among all steps, and where those inside of it end.
    pub numbers: Vec<Range<u32>>,
    /// The steps of an inner list: those of the recording's own change.
    pub steps: Vec<Step>,
    /// Where each one's followers begin in `next`.
    first: Vec<u32>,
    next: Vec<u32>,
}

impl List {
    pub(super) fn of(owner: Option<Place>) -> List {
        List { owner, ..List::default() }
    }

    pub(super) fn followers(&self, step: usize) -> &[u32] {
        &self.next[self.first[step] as usize..self.first[step + 1] as usize]
    }

    /// `after`: of each step, which come before it.
    pub(super) fn connect(&mut self, after: &[&[usize]]) {
        let steps = after.len();
        let after: Vec<Vec<usize>> = after.iter().map(|after| sorted(after)).collect();
        self.after = after.iter().map(|after| after.len() as u32).collect();
        self.first = vec![0; steps + 1];
        after.iter().flatten().for_each(|&before| self.first[before + 1] += 1);
        (0..steps).for_each(|at| self.first[at + 1] += self.first[at]);
        let mut free = self.first.clone();
        self.next = vec![0; free[steps] as usize];
        for (at, after) in after.iter().enumerate() {
            for &before in after {
                self.next[free[before] as usize] = at as u32;
                free[before] += 1;
            }
        }
    }
}

fn sorted(after: &[usize]) -> Vec<usize> {
    let mut after = after.to_vec();
    after.sort_unstable();
    after.dedup();
    after
}

/// All lists of a recording.
pub(super) struct Lists {
    pub all: Vec<List>,
    /// Launches, copies and fills of the recording's own list, and copies before each of its steps.
    pub counts: [u64; 3],
    pub copies: Vec<u32>,
    /// Between all steps by their numbers, if there is a checker.
    pub reach: Reach,
}

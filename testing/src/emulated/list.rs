//! The lists of steps of a recording, as this device keeps them: its own, and those inside its branches and loops. A
//! list's number is its index, 0 is the recording's own. A step with inner lists knows their numbers, and each inner
//! list knows its step.
//!
//! *For the checker* all steps of all lists are numbered too, each before its inner steps, and one table says which
//! comes after which. That is enough for any run. An iteration of a loop comes after all of the previous one, so an
//! order can be missing only within an iteration. Only one list of a branch runs, so each counts as coming after the
//! one before it. A list that may run counts as run.
#![forbid(unsafe_code)]

use super::checker::Ranges;
use super::operation::Act;
use crate::base::Reach;
use crate::memory::View;
use std::ops::Range;

/// An operation as it is launched each time. A branch or a loop is an operation that reads an integer.
#[derive(Clone)]
pub(super) struct ReplayStep {
    pub name: String,
    pub act: Act,
    pub inputs: Vec<View>,
    pub outputs: Vec<View>,
    pub duration_ns: u64,
    pub reads: Ranges,
    pub writes: Ranges,
}

/// A step's inner lists, by number.
#[derive(Debug)]
pub(super) enum InnerLists {
    None,
    /// Runs one of these.
    Branch(Box<[u32]>),
    Loop(u32),
    /// Reads the predicate of the enclosing loop, for the next iteration.
    Again,
}

/// A step of one of the lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StepPlace {
    pub list: u32,
    pub step: u32,
}

/// Steps with the edges between them.
#[derive(Default)]
pub(super) struct StepList {
    /// The step that runs the list; `None` for the recording's own.
    pub owner: Option<StepPlace>,
    /// How many steps each step waits for.
    pub after: Vec<u32>,
    pub inner: Vec<InnerLists>,
    /// Each step's number among all steps, and the end of its inner steps' numbers.
    pub numbers: Vec<Range<u32>>,
    /// The steps of an inner list. Those of the recording's own list can change and are kept elsewhere.
    pub steps: Vec<ReplayStep>,
    /// Each step's first successor in `next`.
    first: Vec<u32>,
    next: Vec<u32>,
}

impl StepList {
    pub(super) fn of(owner: Option<StepPlace>) -> StepList {
        StepList { owner, ..StepList::default() }
    }

    pub(super) fn followers(&self, step: usize) -> &[u32] {
        &self.next[self.first[step] as usize..self.first[step + 1] as usize]
    }

    /// `after`: the steps that each step comes after.
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
    pub all: Vec<StepList>,
    /// Launches, copies and fills of the recording's own list, and the number of copies before each of its steps.
    pub counts: [u64; 3],
    pub copies: Vec<u32>,
    /// Reachability between all steps by number, if there is a checker.
    pub reach: Reach,
}

//! A list with branches and loops as a program of jumps, for a host that decides on the device's data (`driven`).
//!
//! It is cut at its branches and loops into *blocks*: actions without lists of their own, which are recorded as one, or
//! issued one by one. The operations say which block follows. A block before a decision ends with the copy of its
//! predicate or index to pinned memory.
#![forbid(unsafe_code)]

use super::actions::{Action, List, Selector, Test, What};
use std::ops::Range;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JumpOp {
    /// The block with this number.
    Do(usize),
    /// A test of the numbers brought back, from this slot on: if it fails, the operation with this number follows.
    Unless(Test, usize, usize),
    /// The operations that branches begin with.
    Choose {
        selector: Selector,
        slot: usize,
        is_cond: bool,
        to: Vec<usize>,
    },
    Go(usize),
}

/// Actions without lists of their own.
pub struct Section {
    pub list: List,
    /// Numbers that are brought to the host behind it, and their slots.
    pub fetch: Vec<(Selector, usize)>,
}

#[derive(Default)]
pub struct JumpProgram {
    pub ops: Vec<JumpOp>,
    pub blocks: Vec<Section>,
    /// How many predicates, indices and numbers there are.
    pub slots: usize,
}

impl JumpProgram {
    pub fn of(list: &List) -> JumpProgram {
        let mut plan = JumpProgram::default();
        plan.add(list, &[]);
        plan
    }

    /// Adds a list, and then what decides behind it.
    fn add(&mut self, list: &List, fetch: &[(Selector, usize)]) {
        let mut start = 0;
        for (at, action) in list.actions.iter().enumerate() {
            match &action.what {
                What::Launch { .. } | What::Copy { .. } => continue,
                What::Loop { predicate, body, .. } => {
                    let (slot, fetch) = self.fetched(predicate.reads());
                    self.block(list, start..at, &fetch);
                    let test = self.ops.len();
                    self.ops.push(JumpOp::Unless(*predicate, slot, 0));
                    // A number that stays is there already.
                    let changes = |(read, _): &&(Selector, usize)| body.writes(read.at);
                    let changing: Vec<_> = fetch.iter().filter(changes).copied().collect();
                    self.add(body, if changing.is_empty() { &fetch } else { &changing });
                    self.ops.push(JumpOp::Go(test));
                    self.ops[test] = JumpOp::Unless(*predicate, slot, self.ops.len());
                }
                What::Branch { choice, is_cond, branches } => {
                    let (slot, fetch) = self.fetched(&[*choice]);
                    self.block(list, start..at, &fetch);
                    let test = self.ops.len();
                    self.ops.push(JumpOp::Go(0));
                    let (mut to, mut ends) = (Vec::new(), Vec::new());
                    for branch in branches {
                        to.push(self.ops.len());
                        self.add(branch, &[]);
                        ends.push(self.ops.len());
                        self.ops.push(JumpOp::Go(0));
                    }
                    let end = self.ops.len();
                    ends.into_iter().for_each(|at| self.ops[at] = JumpOp::Go(end));
                    self.ops[test] = JumpOp::Choose { selector: *choice, slot, is_cond: *is_cond, to };
                }
            }
            start = at + 1;
        }
        if start < list.actions.len() || !fetch.is_empty() {
            self.block(list, start..list.actions.len(), fetch);
        }
    }

    /// Slots for what decides: the first one, and which is whose.
    fn fetched(&mut self, reads: &[Selector]) -> (usize, Vec<(Selector, usize)>) {
        let first = self.slots;
        self.slots += reads.len();
        (first, reads.iter().copied().zip(first..).collect())
    }

    fn block(&mut self, list: &List, range: Range<usize>, fetch: &[(Selector, usize)]) {
        let own = |action: &Action| {
            let after = action.after.iter().filter(|before| range.contains(before)).map(|before| before - range.start);
            Action { after: after.collect(), ..action.clone() }
        };
        let actions = list.actions[range.clone()].iter().map(own).collect();
        self.ops.push(JumpOp::Do(self.blocks.len()));
        self.blocks.push(Section { list: List { actions, values: Vec::new() }, fetch: fetch.to_vec() });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::base::{Desc, dtype};
    use crate::graph::plan::actions::Where;

    fn selector(value: usize) -> Selector {
        Selector { at: Where::Inner(value), desc: Desc::new(dtype::S32, &[1]) }
    }

    fn copy(after: &[usize]) -> Action {
        let what = What::Copy { from: Where::Input(0), to: Where::Output(0), bytes: 4 };
        Action { name: String::new(), what, after: after.to_vec() }
    }

    fn list(actions: Vec<Action>) -> List {
        List { actions, values: Vec::new() }
    }

    #[test]
    fn a_loop_with_a_branch_inside_becomes_blocks_and_jumps() {
        let action = |what| Action { name: String::new(), what, after: Vec::new() };
        let branches = vec![list(vec![copy(&[]), copy(&[0])]), list(Vec::new())];
        let branch = action(What::Branch { choice: selector(1), is_cond: true, branches });
        let body = list(vec![copy(&[]), branch, copy(&[0, 1]), copy(&[0, 2])]);
        let predicate = Test::Integer(selector(0));
        let looped = action(What::Loop { predicate, body, behind: Vec::new() });
        let plan = JumpProgram::of(&list(vec![copy(&[]), looped, copy(&[0])]));
        let expected = [
            JumpOp::Do(0),
            JumpOp::Unless(predicate, 0, 9),
            JumpOp::Do(1),
            JumpOp::Choose { selector: selector(1), slot: 1, is_cond: true, to: vec![4, 6] },
            JumpOp::Do(2),
            JumpOp::Go(7),
            JumpOp::Go(7),
            JumpOp::Do(3),
            JumpOp::Go(1),
            JumpOp::Do(4),
        ];
        assert_eq!(plan.ops, expected);
        let blocks: Vec<_> = plan.blocks.iter().map(|block| (block.list.actions.len(), block.fetch.clone())).collect();
        assert_eq!(
            blocks,
            [
                (1, vec![(selector(0), 0)]),
                (1, vec![(selector(1), 1)]),
                (2, vec![]),
                (2, vec![(selector(0), 0)]),
                (1, vec![])
            ]
        );
        let after: Vec<_> = plan.blocks[3].list.actions.iter().map(|action| action.after.clone()).collect();
        assert_eq!(after, [vec![], vec![0]], "what lies in an earlier block is over");
    }
}

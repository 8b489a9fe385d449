//! Branches that begin before all of their inputs are there (`compile::entries`).

use super::{After, Worker};
use crate::graph::exec::state::RunState;
use crate::graph::plan::Select;

/// A Select chooses: what the other branches will not make is made here.
pub(super) fn choose(state: &RunState, index: u32) -> After {
    let select = &state.plan().selects[index as usize];
    let taken = state.branch(select);
    for branch in &select.branches {
        if !std::ptr::eq(branch, taken) {
            state.drop_branch(branch);
        }
    }
    let number = select.branches.iter().position(|branch| std::ptr::eq(branch, taken));
    After::Branch(index, number.unwrap_or(0) as u32)
}

/// A Select that is skipped.
pub(super) fn choose_none(state: &RunState, select: &Select) -> After {
    select.branches.iter().for_each(|branch| state.drop_branch(branch));
    After::Nothing(select.uncounted)
}

impl<const MODE: u8> Worker<'_, MODE> {
    /// Lets a branch begin: what waits for the choice alone, and what waits for values from outside, too, if they are
    /// there.
    pub(super) fn begin_branch(&mut self, select: u32, taken: u32) -> Option<u32> {
        let branch = &self.plan.selects[select as usize].branches[taken as usize];
        let mut next = self.release(branch.release);
        for guard in &self.plan.guards[branch.guards.start as usize..branch.guards.end as usize] {
            if !self.arrive(guard.counter) {
                continue;
            }
            self.is_ready(guard.target);
            match next {
                None => next = Some(guard.target),
                Some(_) => self.push(guard.target),
            }
        }
        next
    }
}

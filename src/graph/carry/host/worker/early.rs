//! Branches that begin before all of their inputs are there (`compile::layout::entries`).

use super::Worker;

impl<const MODE: u8> Worker<'_, MODE> {
    /// Begins a branch: the nodes that wait only for the choice, and those that also wait for values from outside, if
    /// these are there.
    pub(in crate::graph) fn begin_branch(&mut self, select: u32, taken: u32) -> Option<u32> {
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

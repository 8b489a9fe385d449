//! Arrivals at merges that continue with the first value that comes.

use super::Worker;
use crate::graph::carry::state::RunState;
use crate::graph::plan::merge::MergeOutcome;
use crate::graph::plan::{Merge, MergeEdge};

impl RunState {
    /// The present input of a group. None in a run that has stopped: absence is no longer noted there.
    fn live_input(&self, merge: &Merge, group: u16) -> Option<u16> {
        if self.is_stopped() {
            return None;
        }
        let of_group = merge.inputs.iter().enumerate().filter(|(_, input)| input.group == group);
        let mut there = of_group.filter(|(_, input)| !self.is_absent(input.bit)).map(|(i, _)| i);
        let first = there.next()?;
        if let Some(second) = there.next() {
            self.fail_at(merge.node, &self.two_live(merge, first, second));
        }
        Some(first as u16)
    }
}

impl<const MODE: u8> Worker<'_, MODE> {
    /// One arrival at a merge; true if it can continue now.
    #[inline(never)]
    pub(in crate::graph) fn arrive_at_merge(&self, index: u32) -> bool {
        let (state, plan) = (self.state, self.plan);
        let MergeEdge { merge: number, group } = plan.merge_edges[index as usize - plan.counters.len()];
        let (merge, merged) = (&plan.merges[number as usize], &state.merges[number as usize]);
        let Some(shape) = merge.shape else { return false };
        let live = if group == MergeEdge::CONTROL { None } else { state.live_input(merge, group) };
        let arrival = match live {
            Some(input) => merged.word.arrive_live(input, shape),
            None if group == MergeEdge::CONTROL => merged.word.arrive_control(shape),
            None => merged.word.arrive_dead(shape),
        };
        match arrival.outcome {
            MergeOutcome::Waiting => return false,
            MergeOutcome::Fire(input) => merged.fire(Some(input)),
            MergeOutcome::FireDead => merged.fire(None),
            MergeOutcome::SecondLive { first } => {
                let [first, second] = [first, live.unwrap_or(first)].map(usize::from);
                state.fail_at(merge.node, &state.two_live(merge, first, second));
                return false;
            }
        }
        true
    }
}

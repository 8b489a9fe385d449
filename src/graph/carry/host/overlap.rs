//! Loops whose iterations overlap (`compile::layout::overlap`), in a run.

use super::independent::Poisoned;
use super::ops::After;
use super::serial::{Walked, may_report};
use super::shown::Show;
use super::worker::{CAREFUL, FAST, TRACED, Worker};
use crate::base::Ref;
use crate::graph::carry::arrivals::Arrival;
use crate::graph::carry::state::RunState;
use crate::graph::loops::ring::{Opening, Retired, Ring};
use crate::graph::plan::{DIRECT, Loop, Release};
use crate::graph::plan::{Overlap, Slot, Start};
use crate::threadpool::ThreadPool;
use std::sync::atomic::Ordering::*;

impl RunState {
    /// Gives a loop's variables their first values, and the first iteration its slot.
    pub(in crate::graph) fn enter_and_begin(&self, index: usize) -> After {
        let looped = self.enter(index);
        let Some(overlap) = self.plan().overlap(looped) else {
            return After::Release(looped.release_condition);
        };
        self.rings[looped.overlap as usize].begin();
        self.set_iteration(overlap.slots.start, 0);
        After::Start(overlap.begin)
    }

    fn ring(&self, slot: &Slot) -> &Ring {
        &self.rings[slot.overlap as usize]
    }

    /// The slot of the same loop with this number.
    fn sibling(&self, slot: &Slot, number: u32) -> u32 {
        self.plan().overlaps[slot.overlap as usize].slots.start + number
    }

    /// ORDERING: Relaxed here and below; written by the thread that opens the slot, before anything is released in it.
    fn set_iteration(&self, slot: u32, iteration: u64) {
        self.iterations[self.plan().slot_counts_at(slot)].store(iteration, Relaxed);
    }

    fn iteration(&self, slot: u32) -> u64 {
        self.iterations[self.plan().slot_counts_at(slot)].load(Relaxed)
    }

    /// Takes the ready copy of a node that belongs to the oldest iteration before the node's own, in a loop around it:
    /// values of later iterations may be of no use before that, and slots are given up in the order of iterations.
    pub(in crate::graph) fn take_older(&self, show: Show, node: u32) -> Option<u32> {
        let around = self.plan().overlaps.iter().filter(|overlap| overlap.nodes().contains(&node));
        for overlap in around {
            let (count, own) = (overlap.count(), (node - overlap.first) / overlap.len);
            let iteration = |slot: u32| self.iteration(overlap.slots.start + slot);
            for back in (1..count).rev() {
                let slot = (own + count - back) % count;
                let copy = node - own * overlap.len + slot * overlap.len;
                if iteration(slot) < iteration(own)
                    && self.place_of(show, copy).is_some_and(|place| self.ready.remove(place))
                {
                    return Some(copy);
                }
            }
        }
        None
    }

    /// The next iteration of this loop has the slot behind this one.
    fn opened<const MODE: u8>(&self, index: u32) -> Release {
        let slot = &self.plan().slots[index as usize];
        let next = self.sibling(slot, self.ring(slot).after(slot.number));
        self.set_iteration(next, self.iteration(index) + 1);
        if may_report::<MODE>() {
            self.begins_condition(self.plan().slot_counts_at(next));
        }
        slot.open
    }

    /// The last iteration, whose condition was false, leaves this slot, and the loop is over.
    fn leave<const MODE: u8>(&self, index: u32) {
        let slot = &self.plan().slots[index as usize];
        self.copy_all(&slot.leave);
        if may_report::<MODE>() {
            self.leaves(slot.looped as usize);
        }
        if MODE != FAST {
            self.learned().count_iterations(
                self.plan(),
                &self.plan().loops[slot.looped as usize],
                self.iteration(index),
            );
        }
    }

    /// The walk of a run in one thread: through the slots in turn. Separate from the walk of other loops, which is to
    /// stay small.
    #[inline(never)]
    pub(in crate::graph) fn walk_slots<const MODE: u8, const ABSENCE: bool>(
        &self,
        looped: &Loop,
        overlap: &Overlap,
        pool: Option<&Ref<ThreadPool>>,
        at: &Walked<'_>,
    ) {
        let slots = overlap.slots.clone();
        let (mut index, mut iteration) = (slots.start, 0);
        loop {
            self.set_iteration(index, iteration);
            if MODE == TRACED {
                at.iteration(self.plan().slot_counts_at(index));
            }
            let counted_at = self.plan().slot_counts_at(index);
            if may_report::<MODE>() && iteration > 0 {
                self.begins_condition(counted_at);
            }
            let Slot { condition, body, .. } = &self.plan().slots[index as usize];
            let goes_on = self.walk::<MODE, ABSENCE>(condition.start, condition.end, pool, at)
                && self.holds(index)
                && self.is_in_time::<MODE>(looped.first)
                && self.goes_around::<MODE>(counted_at)
                && self.walk::<MODE, ABSENCE>(body.start, body.end, pool, at)
                && self.is_in_time::<MODE>(looped.first);
            if !goes_on {
                break;
            }
            index = if index + 1 == slots.end { slots.start } else { index + 1 };
            iteration += 1;
        }
        self.leave::<MODE>(index);
    }

    /// The same for a run that finishes the nodes that do not depend on a failure. False if any node could not be run.
    pub(in crate::graph) fn go_through_slots(
        &self,
        overlap: &Overlap,
        pool: Option<&Ref<ThreadPool>>,
        poisoned: &mut Poisoned<'_>,
    ) -> bool {
        let slots = overlap.slots.clone();
        let (mut index, mut iteration) = (slots.start, 0);
        loop {
            self.set_iteration(index, iteration);
            let counted_at = self.plan().slot_counts_at(index);
            poisoned.iteration(counted_at);
            if iteration > 0 {
                self.begins_condition(counted_at);
            }
            let Slot { condition, body, .. } = &self.plan().slots[index as usize];
            if !self.go(condition.start, condition.end, pool, poisoned) {
                return false;
            }
            if !self.holds(index) {
                self.leave::<CAREFUL>(index);
                return true;
            }
            self.begins_body(counted_at);
            if !self.go(body.start, body.end, pool, poisoned) {
                return false;
            }
            index = if index + 1 == slots.end { slots.start } else { index + 1 };
            iteration += 1;
        }
    }

    /// Whether the condition in a slot is true.
    fn holds(&self, slot: u32) -> bool {
        // SAFETY: made before this is asked, in this turn of the slot, and one element, as verified.
        unsafe { self.args[self.plan().slots[slot as usize].predicate as usize].integer() != 0 }
    }
}

impl<const MODE: u8> Worker<'_, MODE> {
    /// The condition in a slot is known.
    pub(in crate::graph) fn guard(&self, index: u32) -> After {
        let state = self.state;
        let slot = &self.plan.slots[index as usize];
        let mut goes_on = state.holds(index);
        if goes_on && self.is_careful() {
            state.look_at_clock(self.plan.loops[slot.looped as usize].first);
            goes_on = !state.is_stopped();
        }
        if !goes_on {
            return After::Start(slot.retire);
        }
        if self.is_careful() {
            state.begins_body(self.plan.slot_counts_at(index));
        }
        match state.ring(slot).open_after(slot.number) {
            Opening::Opened => {
                let open = state.opened::<MODE>(index);
                self.trace_opened(index);
                After::Start(open)
            }
            // The retirement of the next slot does it.
            Opening::Parked => After::Later,
        }
    }

    /// All nodes of an iteration are done, and earlier iterations are retired.
    pub(in crate::graph) fn retire(&mut self, index: u32) -> Option<u32> {
        let (state, plan) = (self.state, self.plan);
        let slot = &plan.slots[index as usize];
        let ring = state.ring(slot);
        let next = state.sibling(slot, ring.after(slot.number));
        let token = plan.slots[next as usize].retire;
        match ring.retire(slot.number) {
            Retired::Free => self.start(plan.starts(token)),
            Retired::Resume => {
                let before = state.sibling(slot, ring.before(slot.number));
                let release = state.opened::<MODE>(before);
                self.trace_opened(before);
                let first = self.start(plan.starts(release));
                let retired = self.start(plan.starts(token));
                // The next one's retirement is short, and others may wait for its slot.
                if let (Some(_), Some(node)) = (retired, first) {
                    self.push(node);
                }
                retired.or(first)
            }
            Retired::Last => {
                state.leave::<MODE>(index);
                // Nothing else of the loop runs: all deliveries here have arrived.
                for &counter in &slot.delivered {
                    state.counters[counter as usize].reset(plan.counters[counter as usize]);
                }
                self.start(plan.starts(plan.overlaps[slot.overlap as usize].leave))
            }
        }
    }

    /// The iteration behind the one in this slot begins.
    #[inline]
    fn trace_opened(&self, index: u32) {
        if MODE == TRACED {
            let slot = &self.plan.slots[index as usize];
            let next = self.state.sibling(slot, self.state.ring(slot).after(slot.number));
            self.trace_iteration(self.plan.slot_counts_at(next));
        }
    }

    /// Makes the arrivals; of the nodes that become ready the last is returned, the others go onto the list.
    pub(in crate::graph) fn start(&mut self, starts: &[Start]) -> Option<u32> {
        let mut next = None;
        for start in starts {
            let Start { edge, amount } = *start;
            if edge.counter != DIRECT && !self.arrive_with(edge.counter, amount) {
                continue;
            }
            self.is_ready(edge.target);
            if let Some(node) = next.replace(edge.target) {
                self.push(node);
            }
        }
        next
    }

    fn arrive_with(&self, index: u32, amount: u32) -> bool {
        let start = self.plan.counters[index as usize];
        if self.state.counters[index as usize].arrive(amount, false, start) != Arrival::Ready {
            return false;
        }
        match index.checked_sub(self.plan.first_leaf) {
            None => true,
            Some(leaf) => self.arrive_with(self.plan.leaf_of[leaf as usize], 1),
        }
    }
}

//! The operations of nodes, for all carriers.

use crate::base::{Code, Error, Ref, Result};
use crate::graph::carry::merged::Fired;
use crate::graph::carry::state::RunState;
use crate::graph::plan::{
    Body, Branch, KernelNode, Loop, MOST_PICKED, Merge, NO_BIT, NOT_OPEN, NOT_PICKED, Place, Release, Select,
};
use crate::kernel::KernelContext;
use crate::memory::View;
use crate::threadpool::ThreadPool;
use std::mem::ManuallyDrop;
use std::sync::atomic::Ordering::*;

/// Where a run continues after a node.
#[derive(Clone, Copy, Debug)]
pub(in crate::graph) enum After {
    /// Along the node's edges.
    Edges,
    /// With the nodes that it releases.
    Release(Release),
    /// With the nodes that it starts in the slots of a loop.
    Start(Release),
    /// With the retirement of an iteration in the slot with this index.
    Retire(u32),
    /// With the branch of a Select that begins before all inputs are there.
    Branch(u32, u32),
    /// Along the edges if nothing inside of the node runs, with this many ends that are not reached.
    Nothing(u32),
    /// Nowhere: the node completes later.
    Later,
}

impl RunState {
    /// Runs a task, a kernel or another node that is not part of the control flow.
    #[inline]
    pub(in crate::graph) fn compute(&self, body: Body, pool: Option<&Ref<ThreadPool>>) -> Result<()> {
        match body {
            Body::Call(call) => match call.run() {
                0 => Ok(()),
                status => Err(call.failed(status)),
            },
            Body::Kernel(kernel) => self.compute_kernel_apart(kernel as usize, pool),
            // Only workers start these.
            Body::Async(_) => Err(Error::internal("a kernel that completes later")),
            Body::Task(task) => self.plan().tasks[task as usize].run(),
            Body::Switch(switch) => {
                let switch = &self.plan().switches[switch as usize];
                // SAFETY: made before this node, and one element, as verified.
                let side = unsafe { self.args[switch.predicate as usize].integer() } != 0;
                self.set_bit(switch.sides[0], side);
                self.set_bit(switch.sides[1], !side);
                Ok(())
            }
            Body::Merge(merge) => self.merge(merge as usize),
            Body::Dynamic(node) => self.compute_dynamic(node as usize, pool),
            Body::Move(moves) => self.move_values(moves as usize),
            Body::Select(_) | Body::End | Body::Enter(_) => Ok(()),
            Body::Test(_) | Body::Next(_) | Body::Guard(_) | Body::Retire(_) => Ok(()),
        }
    }

    #[inline(never)]
    fn compute_kernel_apart(&self, index: usize, pool: Option<&Ref<ThreadPool>>) -> Result<()> {
        self.compute_kernel(index, pool)
    }

    /// Part of the one loop that does little else.
    #[inline(always)]
    pub(in crate::graph) fn compute_kernel(&self, index: usize, pool: Option<&Ref<ThreadPool>>) -> Result<()> {
        let plan = self.plan();
        let node = &plan.kernels[index];
        if node.picks != NOT_PICKED {
            return self.compute_picked(node, pool);
        }
        let (inputs, outputs) = (&self.args[node.inputs()], &self.args[node.outputs()]);
        self.compute_with(node, (inputs, outputs), pool)
    }

    #[inline(always)]
    fn compute_with(
        &self,
        node: &KernelNode,
        (inputs, outputs): (&[View], &[View]),
        pool: Option<&Ref<ThreadPool>>,
    ) -> Result<()> {
        let Some(call) = node.call else { return self.compute_by_trait(node, (inputs, outputs), pool) };
        let scratch = self.scratch(node.scratch);
        // All of it is borrowed, so nothing needs a drop. It is made in its place and not moved: a move would read back
        // recent stores in larger pieces, and wait for them.
        // SAFETY: edges order the nodes. So the inputs are made, nobody else has the outputs, and nothing else is in
        // the same places of the arena, as compile has laid it out. The host keeps the run's own tensors to the run.
        // Scratch memory is shared only by nodes that do not run at once.
        let context = ManuallyDrop::new(unsafe { KernelContext::new(inputs, outputs, pool, scratch, &self.stop) });
        // SAFETY: once.
        call.run(&context, unsafe { context.outputs() })
    }

    #[inline(never)]
    fn compute_by_trait(
        &self,
        node: &KernelNode,
        (inputs, outputs): (&[View], &[View]),
        pool: Option<&Ref<ThreadPool>>,
    ) -> Result<()> {
        // SAFETY: as of `compute_with`.
        unsafe {
            let context = KernelContext::of_run((inputs, outputs), pool, self.scratch(node.scratch), &self.stop, self);
            self.plan().distinct[node.kernel as usize].compute(&context, context.outputs())
        }
    }

    /// With views that are picked one by one. They are copied side by side here, which takes less than reading lists
    /// that are in no cache.
    #[inline(never)]
    fn compute_picked(&self, node: &KernelNode, pool: Option<&Ref<ThreadPool>>) -> Result<()> {
        let picks = self.plan().picked(node);
        match picks.len() {
            1 => self.compute_copied::<1>(node, picks, pool),
            2 => self.compute_copied::<2>(node, picks, pool),
            3 => self.compute_copied::<3>(node, picks, pool),
            4 => self.compute_copied::<4>(node, picks, pool),
            5 => self.compute_copied::<5>(node, picks, pool),
            _ => self.compute_copied::<MOST_PICKED>(node, picks, pool),
        }
    }

    #[inline(always)]
    fn compute_copied<const N: usize>(
        &self,
        node: &KernelNode,
        picks: &[u32],
        pool: Option<&Ref<ThreadPool>>,
    ) -> Result<()> {
        let views: [View; N] = std::array::from_fn(|i| self.args[picks[i] as usize].clone());
        self.compute_with(node, views.split_at(usize::from(node.num_inputs)), pool)
    }

    /// Passes on the one input that is present. Not part of the loops that call it: they are as small as they can be.
    #[inline(never)]
    fn merge(&self, index: usize) -> Result<()> {
        let merge = &self.plan().merges[index];
        let winner = match self.merges[index].take() {
            Fired::With(input) => Some(input as usize),
            Fired::Dead => None,
            Fired::Not => {
                let mut there = (0..merge.inputs.len()).filter(|&i| !self.is_absent(merge.inputs[i].bit));
                let first = there.next();
                if let (Some(first), Some(second)) = (first, there.next()) {
                    return Err(self.two_live(merge, first, second));
                }
                first
            }
        };
        let Some(winner) = winner else { return Err(Error::internal("a merge without an input")) };
        if merge.open != NOT_OPEN {
            return self.merge_dynamic(merge, winner);
        }
        let input = &self.args[merge.inputs[winner].view as usize];
        // SAFETY: the input was made before this node, which makes the outputs; they are different memory.
        unsafe {
            self.args[merge.value as usize].as_bytes_mut().copy_from(input.as_bytes());
            self.args[merge.index as usize].as_bytes_mut().write_integer(winner as i32);
        }
        Ok(())
    }

    #[cold]
    pub(in crate::graph) fn two_live(&self, merge: &Merge, first: usize, second: usize) -> Error {
        let producer = |i: usize| match merge.inputs[i].from {
            NO_BIT => match self.plan().args[merge.inputs[i].view as usize].place {
                Place::Input(port) => format!("input '{}'", self.plan().inputs[port].name),
                _ => "the graph's surroundings".to_owned(),
            },
            node => format!("node '{}'", self.plan().name_of(node)),
        };
        Error::precondition(format!(
            "inputs {first} and {second} are both there, from {} and {}: a merge passes on one",
            producer(first),
            producer(second)
        ))
    }

    /// Whether a node is skipped because one of its inputs is absent; noted for its successors.
    pub(in crate::graph) fn skips(&self, node: usize) -> bool {
        let absence = &self.plan().absence;
        let own = absence.own[node];
        if own == NO_BIT {
            return false;
        }
        let skips = match self.plan().bodies[node] {
            Body::Merge(merge) => match self.merges[merge as usize].fired() {
                Fired::With(_) => false,
                Fired::Dead => true,
                Fired::Not => self.plan().merges[merge as usize].inputs.iter().all(|input| self.is_absent(input.bit)),
            },
            _ => absence.needs(node).iter().any(|&bit| self.is_absent(bit)),
        };
        self.set_bit(own, skips);
        if let (true, Body::Switch(switch)) = (skips, self.plan().bodies[node]) {
            self.plan().switches[switch as usize].sides.iter().for_each(|&side| self.set_bit(side, true));
        }
        skips
    }

    pub(in crate::graph) fn is_absent(&self, bit: u32) -> bool {
        // ORDERING: Relaxed; an arrival orders the reader of a bit behind its writer.
        bit != NO_BIT && self.absent[bit as usize].load(Relaxed)
    }

    fn set_bit(&self, bit: u32, absent: bool) {
        self.absent[bit as usize].store(absent, Relaxed);
    }

    /// The branch that a Select takes, with its arguments bound.
    pub(in crate::graph) fn branch<'a>(&self, select: &'a Select) -> &'a Branch {
        // SAFETY: made before this node, and one element, as verified.
        let value = unsafe { self.args[select.selector as usize].integer() };
        let last = select.branches.len() - 1;
        let index = if select.is_cond {
            usize::from(value != 0)
        } else {
            usize::try_from(value).map_or(last, |index| index.min(last))
        };
        let branch = &select.branches[index];
        self.point(&branch.bound);
        branch
    }

    /// Completes the counters of a branch that is not taken, up to the arrivals from outside. Called before the choice
    /// is published: nothing of this turn is over while there is more to drop.
    pub(in crate::graph) fn drop_branch(&self, branch: &Branch) {
        for drop in &self.plan().drops[branch.drops.start as usize..branch.drops.end as usize] {
            let start = self.plan().counters[drop.counter as usize];
            // Values from outside stay where they are: their readers are not counted.
            let _ = self.counters[drop.counter as usize].drop_branch(drop.amount, start);
        }
    }

    /// Gives a loop's variables their first values.
    pub(in crate::graph) fn enter(&self, index: usize) -> &Loop {
        let looped = &self.plan().loops[index];
        self.copy_all(&looped.enter);
        self.iterations[index].store(0, Relaxed);
        looped
    }

    /// Whether a loop continues.
    pub(in crate::graph) fn goes_on(&self, looped: &Loop) -> bool {
        // SAFETY: made before this node, and one element, as verified.
        unsafe { self.args[looped.predicate as usize].integer() != 0 }
    }

    /// Gives a loop's variables their next values.
    pub(in crate::graph) fn next(&self, index: usize) -> &Loop {
        let looped = &self.plan().loops[index];
        self.copy_all(&looped.next);
        // One thread at a time: the nodes of a loop's control follow one another.
        self.iterations[index].store(self.iterations[index].load(Relaxed) + 1, Relaxed);
        looped
    }

    #[inline]
    pub(in crate::graph) fn copy_all(&self, pairs: &[(u32, u32)]) {
        for &(from, to) in pairs {
            // SAFETY: made before this node, which makes the copy; they are different memory.
            unsafe { self.args[to as usize].as_bytes_mut().copy_from(self.args[from as usize].as_bytes()) };
        }
    }

    /// "node 'x', iteration 3 of 'loop'"
    #[cold]
    pub(in crate::graph) fn fail_at(&self, node: u32, error: &Error) {
        if self.ended_late(node, error) {
            return;
        }
        let plan = self.plan();
        let mut place = format!("node '{}'", plan.name_of(node));
        for (index, iteration) in self.loops_around(node) {
            place += &format!(", iteration {iteration} of '{}'", plan.name_of(plan.loops[index as usize].first));
        }
        self.fail(Some(node), error.clone().within(place));
    }

    /// The loops around a node, the innermost first, and how many iterations of each are over.
    pub(in crate::graph) fn loops_around(&self, node: u32) -> impl Iterator<Item = (u32, u64)> {
        // A loop comes before the loops nested in it.
        let loops = self.plan().loops.iter().enumerate().rev();
        let around = loops.filter(move |(_, l)| l.first < node && node < l.end);
        around.map(move |(index, _)| {
            let at = self.plan().counts_at(index, node);
            (index as u32, self.iterations[at].load(Relaxed))
        })
    }

    /// Whether the run was stopped. ORDERING: Relaxed; a thread that sees it late begins one node more.
    #[inline]
    pub(in crate::graph) fn is_stopped(&self) -> bool {
        self.stop.is_set()
    }
}

/// The error of a run that was stopped from outside.
pub(in crate::graph) fn cancelled() -> Error {
    Error::new(Code::Cancelled, "the run was cancelled")
}

/// A Select chooses: makes the arrivals of the other branches.
pub(in crate::graph) fn choose(state: &RunState, index: u32) -> After {
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
pub(in crate::graph) fn choose_none(state: &RunState, select: &Select) -> After {
    select.branches.iter().for_each(|branch| state.drop_branch(branch));
    After::Nothing(select.uncounted)
}

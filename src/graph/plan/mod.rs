//! A program as data: arrays that compile makes and that nothing changes any more.
//!
//! All graphs, those inside of others too, lie in one flat array of nodes, in an order in which one thread can run
//! them: a node comes after what it waits for, and what is inside of a cond, case or while lies together behind its
//! first node:
//!
//! ```text
//! case:   Select | branch 0 ... | branch 1 ... | End End        While: Enter | condition ... | Test | body ... | Next
//! ```
//!
//! A thread that runs it alone walks along the array (`carry::host::serial`), jumps over branches, and goes back for
//! another iteration. When several threads run it, edges say who goes on (`carry::host::worker`). An edge leads to a
//! node that waits for nothing else (DIRECT), or to a counter. A reader of a cond's value counts one arrival; each
//! branch makes it when it is the one that runs, and the Select itself makes it when none does (`Select::edges` are for
//! that case alone). The first nodes of a branch, of a condition and of a body wait for nothing: they are released by
//! the Select, the Enter, the Test or the Next. A loop that runs several iterations at once has other nodes (`slots`).
#![forbid(unsafe_code)]

pub(in crate::graph) mod actions;
pub(in crate::graph) mod arena;
pub(in crate::graph) mod copy_node;
pub(in crate::graph) mod dynamics;
pub(in crate::graph) mod effects;
pub(in crate::graph) mod jumps;
pub(in crate::graph) mod merge;
pub(in crate::graph) mod names;
pub(in crate::graph) mod node;
pub(in crate::graph) mod schedule;
pub(in crate::graph) mod slots;
pub(in crate::graph) mod streams;

use crate::base::{Desc, Ref};
use crate::engine::{Engine, Tensor};
use crate::kernel::{Effect, Kernel, Task};
use crate::threadpool::ThreadPool;
pub(in crate::graph) use dynamics::{DynamicMerge, DynamicNode, Dynamics, Write};
pub(in crate::graph) use names::NodeNames;
pub(in crate::graph) use node::*;
pub(in crate::graph) use slots::{Overlap, Slot, Start, origins};
use std::ops::Range;
use std::sync::Arc;

/// An input or output of a program.
#[derive(Clone, Debug)]
pub struct Port {
    pub name: String,
    pub desc: Desc,
    /// Where its tensor is; None: in the memory of the program's own engine.
    pub engine: Option<Ref<Engine>>,
}

/// A compiled graph. `Learned` holds the figures that its runs have found, `RunState` all that a run changes.
pub(in crate::graph) struct Plan {
    pub name: String,
    pub engines: Vec<Ref<Engine>>,
    pub inputs: Vec<Port>,
    pub outputs: Vec<Port>,
    /// The bit that says that an output is absent, or NO_BIT.
    pub output_bits: Vec<u32>,
    /// Its effects besides computing outputs.
    pub effects: Vec<Effect>,
    pub names: NodeNames,
    pub bodies: Vec<Body>,
    pub tasks: Vec<Arc<dyn Task>>,
    pub kernels: Vec<KernelNode>,
    /// Their kernels, each once.
    pub distinct: Vec<Arc<dyn Kernel>>,
    /// These kernels: each one's index in `kernels`, and its node.
    pub calls: Vec<(u32, u32)>,
    pub selects: Vec<Select>,
    pub loops: Vec<Loop>,
    pub overlaps: Vec<Overlap>,
    pub slots: Vec<Slot>,
    pub starts: Vec<Start>,
    /// The node that each one is a copy of; empty if there are no copies.
    pub origins: Vec<u32>,
    pub switches: Vec<Switch>,
    pub merges: Vec<Merge>,
    pub dynamics: Dynamics,
    pub merge_edges: Vec<MergeEdge>,
    pub absence: Absence,
    /// Where each node's edges begin; one more closes the last.
    pub first_edge: Vec<u32>,
    pub edges: Vec<Edge>,
    pub releases: Vec<u32>,
    /// For branches that begin before all inputs are there (`compile::entries`).
    pub guards: Vec<Edge>,
    pub drops: Vec<Drop>,
    /// Start value of each counter. Those from `first_leaf` on are parts of a join too wide for one.
    pub counters: Vec<u32>,
    pub first_leaf: u32,
    /// The counter that each leaf belongs to.
    pub leaf_of: Vec<u32>,
    /// Nodes that wait for nothing, the most urgent last.
    pub roots: Vec<u32>,
    /// How many ends a run has: nodes that nobody waits for.
    pub ends: u32,
    pub args: Vec<Arg>,
    /// The views of nodes that have no list of their own.
    pub picks: Vec<u32>,
    /// Their shapes, and how many bytes they have if that is known.
    pub descs: Vec<(Desc, usize)>,
    /// The arguments that are a run's inputs and outputs: those outside of branches, then those of each branch, which
    /// are bound when it is taken.
    pub bound: Vec<u32>,
    /// How many are outside of branches.
    pub always_bound: u32,
    pub constants: Vec<Ref<Tensor>>,
    pub arena_bytes: usize,
    /// Outputs that a run makes in its arena, and gives to their tensors when it has ended well.
    pub held: Vec<HeldOutput>,
    /// Scratch bytes per slot of each node that wants some.
    pub scratch: Vec<usize>,
    /// The cost of bringing work to another thread, by the options; None = as the pool says.
    pub hop_ns: Option<u64>,
    /// Runs the kernels that may block.
    pub blocking_pool: Option<Ref<ThreadPool>>,
    /// Whether anything in it can be done at once.
    pub is_parallel: bool,
    /// The loops, the one that ends last first, and of two the one around the other.
    pub loops_by_end: Vec<u32>,
    /// Of a part of a program: the inputs that no node of it needs. Empty otherwise.
    pub not_needed: Vec<bool>,
}

impl Plan {
    pub fn len(&self) -> usize {
        self.bodies.len()
    }

    /// The guards of a Select's branches.
    pub fn guards(&self, node: usize) -> &[Edge] {
        let Body::Select(index) = self.bodies[node] else { return &[] };
        let branches = &self.selects[index as usize].branches;
        let first = branches.first().map_or(0, |branch| branch.guards.start);
        let end = branches.last().map_or(0, |branch| branch.guards.end);
        &self.guards[first as usize..end as usize]
    }

    /// Gives back what the arrays have too much.
    pub fn shrink(&mut self) {
        self.names.shrink();
        self.bodies.shrink_to_fit();
        self.tasks.shrink_to_fit();
        self.releases.shrink_to_fit();
        self.guards.shrink_to_fit();
        self.drops.shrink_to_fit();
        self.counters.shrink_to_fit();
        self.leaf_of.shrink_to_fit();
        self.switches.shrink_to_fit();
        self.merges.shrink_to_fit();
        self.merge_edges.shrink_to_fit();
        self.absence.own.shrink_to_fit();
        self.absence.starts.shrink_to_fit();
        self.absence.needs.shrink_to_fit();
    }

    /// Whether a run has to be given this input.
    #[inline]
    pub fn needs_input(&self, input: usize) -> bool {
        !self.not_needed.get(input).copied().unwrap_or(false)
    }

    /// The edges that leave a node.
    #[inline]
    pub fn edges(&self, node: usize) -> &[Edge] {
        &self.edges[self.first_edge[node] as usize..self.first_edge[node + 1] as usize]
    }

    /// The node behind this one and all that is inside of it.
    pub fn behind(&self, node: u32) -> u32 {
        match self.bodies[node as usize] {
            Body::Select(index) => self.selects[index as usize].end,
            Body::Enter(index) => self.loops[index as usize].end,
            _ => node + 1,
        }
    }

    /// Whether a list of what was not run tells of this node: of all but those that only close others.
    pub fn is_step(&self, node: u32) -> bool {
        use Body::{End, Guard, Move, Next, Retire, Test};
        !matches!(self.bodies[node as usize], End | Test(_) | Next(_) | Guard(_) | Retire(_) | Move(_))
    }

    /// Whether a run that one thread has begun can be gone on with by several: what is done makes its arrivals then.
    /// Values that may be absent, and iterations side by side, would have left more behind than that.
    pub fn may_be_promoted(&self) -> bool {
        self.absence.own.is_empty() && self.merges.is_empty() && self.overlaps.is_empty() && self.calls.is_empty()
    }

    /// Whether a node makes several others ready at once.
    pub fn has_forks(&self) -> bool {
        let is_fork = |node: usize| self.edges(node).len() > 1 || self.released(node).len() > 1;
        self.roots.len() > 1 || (0..self.len()).any(is_fork)
    }

    /// The name of the engine whose work a node is.
    pub fn engine_of(&self, node: u32) -> String {
        let of_kernel = self.kernel_of(node).and_then(|kernel| kernel.engine());
        of_kernel.map_or_else(|| self.engines[0].label(), str::to_owned)
    }

    /// The kernel of a node, if it has one.
    pub fn kernel_of(&self, node: u32) -> Option<&Arc<dyn Kernel>> {
        let index = match self.bodies[node as usize] {
            Body::Kernel(index) => index,
            Body::Async(call) => self.calls[call as usize].0,
            Body::Dynamic(index) => self.dynamics.nodes[index as usize].kernel,
            _ => return None,
        };
        Some(self.kernel(index))
    }

    /// The kernel of a node of kernels.
    #[inline]
    pub fn kernel(&self, node: u32) -> &Arc<dyn Kernel> {
        &self.distinct[self.kernels[node as usize].kernel as usize]
    }

    /// The views of a node of kernels: inputs, then outputs.
    pub fn views(&self, node: u32) -> impl Iterator<Item = u32> {
        let node = &self.kernels[node as usize];
        let own = |range: Range<usize>| (node.picks == NOT_PICKED).then_some(range.start as u32..range.end as u32);
        let picked = (node.picks != NOT_PICKED).then(|| self.picked(node));
        let lists = [own(node.inputs()), own(node.outputs())];
        lists.into_iter().flatten().flatten().chain(picked.into_iter().flatten().copied())
    }

    /// The numbers of the views of a node whose arguments are picked.
    #[inline]
    pub fn picked(&self, node: &KernelNode) -> &[u32] {
        let first = node.picks as usize;
        &self.picks[first..first + usize::from(node.num_inputs) + usize::from(node.num_outputs)]
    }

    /// The shape of an argument, and its bytes.
    pub fn desc(&self, arg: u32) -> &(Desc, usize) {
        &self.descs[self.args[arg as usize].desc as usize]
    }

    pub fn name_of(&self, node: u32) -> &str {
        self.names.get(node as usize)
    }

    /// Bytes of the arrays above, and of what they own.
    pub fn bytes(&self) -> usize {
        fn of<T>(list: &Vec<T>) -> usize {
            list.capacity() * size_of::<T>()
        }
        self.names.bytes()
            + of(&self.bodies)
            + of(&self.tasks)
            + of(&self.kernels)
            + of(&self.distinct)
            + of(&self.calls)
            + of(&self.first_edge)
            + of(&self.edges)
            + of(&self.releases)
            + of(&self.guards)
            + of(&self.drops)
            + of(&self.counters)
            + of(&self.leaf_of)
            + of(&self.roots)
            + of(&self.args)
            + of(&self.descs)
            + of(&self.picks)
            + of(&self.scratch)
            + of(&self.absence.own)
            + of(&self.absence.starts)
            + of(&self.absence.needs)
            + of(&self.merges)
            + of(&self.merge_edges)
            + of(&self.switches)
            + self.dynamics.bytes()
            + self.selects.iter().map(|select| size_of::<Select>() + of(&select.branches)).sum::<usize>()
            + self.overlap_bytes()
            + self.loops.iter().map(|l| size_of::<Loop>() + of(&l.enter) + of(&l.next)).sum::<usize>()
    }

    pub fn overlap(&self, looped: &Loop) -> Option<&Overlap> {
        self.overlaps.get(looped.overlap as usize)
    }

    /// Where a step counts the iterations of the loop with this index, for a node inside of it: each slot knows its
    /// own.
    pub fn counts_at(&self, index: usize, node: u32) -> usize {
        match self.overlap(&self.loops[index]) {
            Some(overlap) if node >= overlap.first => {
                let slot = (node - overlap.first) / overlap.len;
                self.slot_counts_at(overlap.slots.start + slot.min(overlap.count() - 1))
            }
            _ => index,
        }
    }

    /// Where the first iteration of this loop is counted.
    pub fn first_counts_at(&self, index: usize) -> usize {
        self.overlap(&self.loops[index]).map_or(index, |overlap| self.slot_counts_at(overlap.slots.start))
    }

    pub fn slot_counts_at(&self, slot: u32) -> usize {
        self.loops.len() + slot as usize
    }

    /// The node in the first slot of each loop around that a node is a copy of; itself if it is none.
    pub fn origin(&self, node: u32) -> u32 {
        self.origins.get(node as usize).copied().unwrap_or(node)
    }

    pub fn starts(&self, release: Release) -> &[Start] {
        &self.starts[release.first as usize..release.end as usize]
    }

    /// The starts of a node in slots.
    pub fn started(&self, node: usize) -> &[Start] {
        match self.bodies[node] {
            Body::Enter(index) => {
                self.overlap(&self.loops[index as usize]).map_or(&[], |overlap| self.starts(overlap.begin))
            }
            Body::Guard(slot) => self.starts(self.slots[slot as usize].open),
            Body::Retire(slot) => self.starts(self.overlaps[self.slots[slot as usize].overlap as usize].leave),
            _ => &[],
        }
    }

    /// Bytes of the arrays that only such loops have.
    pub fn overlap_bytes(&self) -> usize {
        let of = |slot: &Slot| {
            slot.delivered.capacity() * size_of::<u32>() + slot.leave.capacity() * size_of::<(u32, u32)>()
        };
        self.overlaps.capacity() * size_of::<Overlap>()
            + self.origins.capacity() * size_of::<u32>()
            + self.slots.capacity() * size_of::<Slot>()
            + self.starts.capacity() * size_of::<Start>()
            + self.slots.iter().map(of).sum::<usize>()
    }

    /// Whether a node only starts what is done elsewhere: by a device, or by whoever completes it later. Nothing else
    /// is as cheap for what it brings about, so it comes before all that this thread computes itself.
    pub fn starts_elsewhere(&self, node: usize) -> bool {
        match self.bodies[node] {
            Body::Async(_) => true,
            Body::Kernel(kernel) => self.kernel(kernel).engine().is_some() || self.kernel(kernel).is_first_half(),
            _ => false,
        }
    }

    /// The nodes that a node may release.
    pub fn released(&self, node: usize) -> &[u32] {
        let of = |release: Release| &self.releases[release.first as usize..release.end as usize];
        match self.bodies[node] {
            Body::Select(i) => {
                let branches = &self.selects[i as usize].branches;
                let first = branches.first().map_or(0, |branch| branch.release.first);
                let end = branches.last().map_or(0, |branch| branch.release.end);
                of(Release { first, end })
            }
            Body::Enter(i) => of(self.loops[i as usize].release_condition),
            Body::Test(i) => of(self.loops[i as usize].release_body),
            _ => &[],
        }
    }
}

//! A program's arrays: everything about it that no run changes, but for the measured costs.
//!
//! All graphs, those inside of others too, lie in one flat array of nodes, in an order in which one thread can run
//! them: a node comes after what it waits for, and what is inside of a cond, case or while lies together behind its
//! first node:
//!
//! ```text
//! case:   Select | branch 0 ... | branch 1 ... | End End        While: Enter | condition ... | Test | body ... | Next
//! ```
//!
//! Who runs it alone walks along the array (`exec::serial`), jumps over branches, and goes back for another iteration.
//! When several threads run it, edges say who goes on (`exec::worker`). An edge leads to a node that waits for nothing
//! else (DIRECT), or to a counter. What waits for a value of a cond counts one arrival; each branch makes it when it is
//! the one that runs, and the Select itself makes it when none does (`Select::edges` are for that case alone). The
//! first nodes of a branch, of a condition and of a body wait for nothing: they are released by the Select, the Enter,
//! the Test or the Next. A loop that runs several iterations at once has other nodes (`overlap`).
#![forbid(unsafe_code)]

use super::dynamics::Dynamics;
use super::exec::Admission;
use super::figures::{NodeFigures, Tallies};
use super::names::Names;
use super::overlap::{Overlap, Slot, Start, Why};
use super::place::{Choice, Direct, Lanes};
use super::ways::Ways;
use crate::base::{Desc, Ref};
use crate::engine::{Engine, Tensor};
use crate::kernel::{Effect, Kernel, KernelCall, Task};
use crate::sync::MergeShape;
use crate::threadpool::{HostCall, ThreadPool};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

/// An input or output of a program.
#[derive(Clone, Debug)]
pub struct Port {
    pub name: String,
    pub desc: Desc,
    /// Where its tensor is; None: in the memory of the program's own engine.
    pub engine: Option<Ref<Engine>>,
}

/// What a node does when it is run. The numbers are indices into the layout's tables.
#[derive(Clone, Copy, Debug)]
pub(in crate::graph) enum Body {
    Call(HostCall),
    Task(u32),
    Kernel(u32),
    /// A kernel that completes later, or runs on the pool for kernels that block: of the call with this index.
    Async(u32),
    Select(u32),
    /// Waits for what is left of a branch.
    End,
    Enter(u32),
    Test(u32),
    Next(u32),
    /// The end of a condition in the slot with this index, and of all of the slot.
    Guard(u32),
    Retire(u32),
    Switch(u32),
    Merge(u32),
    /// A kernel with arguments whose shape only a run knows, by its index in `Dynamics::nodes`.
    Dynamic(u32),
    /// Moves next values of such a shape to a loop's variables: of the list with this index in `Dynamics::moves`.
    Move(u32),
}

/// A kernel and its arguments. With its `Body` it fills one line of the cache.
pub(in crate::graph) struct KernelNode {
    /// What a run calls; None: `Kernel::compute`.
    pub call: Option<KernelCall>,
    /// Index into `Layout::distinct`.
    pub kernel: u32,
    /// Where its views begin, in `Layout::args`. Other nodes may have the same ones.
    pub inputs: u32,
    pub outputs: u32,
    /// Or where their numbers do, in `Layout::picks`: inputs, then outputs. Else NOT_PICKED.
    pub picks: u32,
    pub num_inputs: u16,
    pub num_outputs: u16,
    /// Index into `Layout::scratch`, or NO_SCRATCH.
    pub scratch: u32,
}

const _: () = assert!(size_of::<Body>() + size_of::<KernelNode>() <= 64);

impl KernelNode {
    pub fn inputs(&self) -> Range<usize> {
        self.inputs as usize..self.inputs as usize + usize::from(self.num_inputs)
    }

    pub fn outputs(&self) -> Range<usize> {
        self.outputs as usize..self.outputs as usize + usize::from(self.num_outputs)
    }
}

pub(in crate::graph) const NO_SCRATCH: u32 = u32::MAX;
pub(in crate::graph) const NOT_PICKED: u32 = u32::MAX;

/// Most arguments that are picked one by one.
pub(in crate::graph) const MOST_PICKED: usize = 6;

/// Nodes that wait for nothing but their release, by position in `Layout::releases`.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::graph) struct Release {
    pub first: u32,
    pub end: u32,
}

/// The first node of a cond or case.
#[derive(Debug)]
pub(in crate::graph) struct Select {
    /// The view of the predicate or index.
    pub selector: u32,
    pub branches: Vec<Branch>,
    /// Behind the last node inside.
    pub end: u32,
    /// What nobody waits for and is still counted when no branch runs.
    pub uncounted: u32,
    /// Whether any value but 0 means branch 1.
    pub is_cond: bool,
    /// Whether a branch has guards or drops.
    pub is_early: bool,
}

#[derive(Clone, Debug)]
pub(in crate::graph) struct Branch {
    pub nodes: Range<u32>,
    pub release: Release,
    /// Of `Layout::guards`: nodes that wait for the choice and for values from outside.
    pub guards: Range<u32>,
    /// Of `Layout::drops`, for when another branch runs.
    pub drops: Range<u32>,
    /// The arguments of what is in it.
    pub args: Range<u32>,
    /// Its part of `Layout::bound`, without that of branches inside.
    pub bound: Range<u32>,
}

/// A while loop.
#[derive(Debug)]
pub(in crate::graph) struct Loop {
    /// Views in pairs, from and to: the variables' first values.
    pub enter: Vec<(u32, u32)>,
    /// The same for their next values.
    pub next: Vec<(u32, u32)>,
    pub predicate: u32,
    pub condition: Range<u32>,
    pub body: Range<u32>,
    pub release_condition: Release,
    pub release_body: Release,
    /// The node Enter; Test and Next are behind condition and body.
    pub first: u32,
    /// Behind the last node inside.
    pub end: u32,
    /// As of a Select.
    pub uncounted: u32,
    /// How many iterations run at once, how many may, and why fewer do.
    pub parallel_iterations: u32,
    pub asked: u32,
    pub why: Why,
    /// Index into `Layout::overlaps` if it is more than one, or NO_OVERLAP. Then the other fields about nodes are those
    /// of the first slot.
    pub overlap: u32,
    /// Where `releases` has the Test, for a loop that is stopped.
    pub stop: u32,
    /// Iterations of the last run that was measured. Statistics: ORDERING Relaxed.
    pub iterations: AtomicU32,
}

/// A switch: its views and the bits of its two sides.
#[derive(Debug)]
pub(in crate::graph) struct Switch {
    pub predicate: u32,
    pub sides: [u32; 2],
}

/// A merge, and the views of its outputs.
#[derive(Debug)]
pub(in crate::graph) struct Merge {
    pub node: u32,
    /// Of its word; None if it waits for all inputs.
    pub shape: Option<MergeShape>,
    pub inputs: Vec<MergeInput>,
    pub value: u32,
    pub index: u32,
    /// Index in `Dynamics::merges` if one of its values is in a slot, or NOT_OPEN.
    pub open: u32,
}

pub(in crate::graph) const NOT_OPEN: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
pub(in crate::graph) struct MergeInput {
    pub view: u32,
    pub bit: u32,
    /// The node that makes it, or NO_BIT.
    pub from: u32,
    /// Those of one source arrive together.
    pub group: u16,
}

/// An arrival at a merge's word: of a group of inputs, or of a control edge.
#[derive(Clone, Copy, Debug)]
pub(in crate::graph) struct MergeEdge {
    pub merge: u32,
    pub group: u16,
}

impl MergeEdge {
    pub const CONTROL: u16 = u16::MAX;
}

/// Always there.
pub(in crate::graph) const NO_BIT: u32 = u32::MAX;

/// An edge to a node that may become ready.
#[derive(Clone, Copy, Debug)]
pub(in crate::graph) struct Edge {
    pub target: u32,
    /// The counter that this arrival goes to, or DIRECT: the target waits for nothing else. Beyond all counters: by how
    /// much, the place in `Layout::merge_edges`.
    pub counter: u32,
}

pub(in crate::graph) const DIRECT: u32 = u32::MAX;

/// What a Select makes in the place of the arrivals at a counter that a branch makes only when it runs.
#[derive(Clone, Copy, Debug)]
pub(in crate::graph) struct Drop {
    pub counter: u32,
    pub amount: u32,
}

/// Where a view's memory comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::graph) enum Place {
    /// Offset into the step's arena.
    Arena(usize),
    /// A constant, by index.
    Constant(usize),
    /// The run's input or output, by index; set for each run.
    Input(usize),
    Output(usize),
    /// A slot of the step's, for a shape that only a run knows.
    Slot(usize),
}

/// What a view shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::graph) struct Arg {
    pub place: Place,
    /// Index into `Layout::descs`.
    pub desc: u32,
}

/// Which nodes can be skipped because an input is absent. Empty in a program without a switch.
#[derive(Debug, Default)]
pub(in crate::graph) struct Absence {
    /// Bits in a step: one for each node that can be skipped, two more for each switch.
    pub bits: u32,
    /// Each node's own bit, or NO_BIT.
    pub own: Vec<u32>,
    /// Where each node's list begins; one more closes the last.
    pub starts: Vec<u32>,
    /// The bits of what a node needs.
    pub needs: Vec<u32>,
}

impl Absence {
    pub fn needs(&self, node: usize) -> &[u32] {
        &self.needs[self.starts[node] as usize..self.starts[node + 1] as usize]
    }
}

pub(in crate::graph) struct Layout {
    pub name: String,
    pub engines: Vec<Ref<Engine>>,
    /// Those that work on their own.
    pub devices: Vec<Ref<Engine>>,
    /// What runs have there.
    pub lanes: Option<Arc<Lanes>>,
    /// If runs can be issued to a stream of the caller's.
    pub direct: Option<Arc<Direct>>,
    /// Where nodes are whose engine was open.
    pub choices: Vec<Choice>,
    pub inputs: Vec<Port>,
    pub outputs: Vec<Port>,
    /// The bit that says that an output is absent, or NO_BIT.
    pub output_bits: Vec<u32>,
    /// What it does besides computing its outputs.
    pub effects: Vec<Effect>,
    pub names: Names,
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
    /// What each node is a copy of; empty if there are no copies.
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
    /// What they look like, and how many bytes they have if that is known.
    pub descs: Vec<(Desc, usize)>,
    /// The arguments that are a run's inputs and outputs: those outside of branches, then those of each branch, which
    /// are bound when it is taken.
    pub bound: Vec<u32>,
    /// How many are outside of branches.
    pub always_bound: u32,
    pub constants: Vec<Ref<Tensor>>,
    pub arena_bytes: usize,
    /// Scratch bytes per slot of each node that wants some.
    pub scratch: Vec<usize>,
    /// What the options say that bringing work to another thread costs; None = what the pool costs.
    pub hop_ns: Option<u64>,
    /// Runs the kernels that may block.
    pub blocking_pool: Option<Ref<ThreadPool>>,
    /// Estimated or measured run time of each node, in nanoseconds. Statistics: ORDERING Relaxed.
    pub costs: Vec<AtomicU32>,
    /// What a thread that takes a node takes along: its cost and that of everything that is handed over directly
    /// behind it. Nodes too cheap to be worth a thread count as nothing. Follows `costs` (`weigh`). Statistics:
    /// ORDERING Relaxed.
    pub worth: Vec<AtomicU32>,
    /// How urgent each node is (`weigh::Rank`). As `worth`.
    pub ranks: Vec<AtomicU32>,
    /// How often the nodes were weighed.
    pub weighed: AtomicU32,
    /// Whether a node is dear (`weigh`). As `worth`.
    pub has_dear: AtomicBool,
    /// Whether anything in it can be done at once.
    pub is_parallel: bool,
    /// Nodes outside of conds and loops at which a run in one thread looks how late it is.
    pub checkpoints: Vec<u32>,
    /// Nothing is known of what some nodes cost until a run has measured them. ORDERING: Relaxed.
    pub is_unknown: AtomicBool,
    /// The costs of all nodes that count, in nanoseconds, and those on the longest path.
    pub total_ns: AtomicU64,
    pub longest_ns: AtomicU64,
    /// The costs of all nodes, those too that do not count.
    pub all_ns: AtomicU64,
    /// The loops, the one that ends last first, and of two the one around the other.
    pub loops_by_end: Vec<u32>,
    pub ways: Ways,
    /// Runs that were measured.
    pub runs: AtomicU64,
    pub report: super::report::Compiled,
    /// Figures of every node, if they were asked for.
    pub figures: Option<NodeFigures>,
    /// Of the whole program's runs and of those of its parts.
    pub tallies: Arc<Tallies>,
    /// The bound on runs at once, of the whole program's and of those of its parts.
    pub admission: Option<Arc<Admission>>,
    /// Of a part of a program: the inputs that no node of it needs. Empty otherwise.
    pub not_needed: Vec<bool>,
    /// The costs come from a profile: the first measurement is one like any other. ORDERING Relaxed.
    pub primed: AtomicBool,
}

impl Layout {
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

    /// Places for `checkpoints`: after one part in sixteen of the nodes, an eighth, a quarter and a half.
    pub fn set_checkpoints(&mut self) {
        let n = self.len();
        let is_fork = |node: usize| self.edges(node).len() > 1 || self.released(node).len() > 1;
        self.is_parallel = self.roots.len() > 1 || (0..n).any(is_fork);
        if !self.is_parallel || !self.may_be_promoted() {
            return;
        }
        let (mut node, mut part) = (0, 16);
        let mut checkpoints = Vec::new();
        while (node as usize) < n && part > 1 {
            node = self.behind(node);
            if node as usize * part >= n && (node as usize) < n {
                checkpoints.push(node);
                while part > 1 && node as usize * part >= n {
                    part /= 2;
                }
            }
        }
        self.checkpoints = checkpoints;
    }

    /// The name of the engine whose work a node is.
    pub fn engine_of(&self, node: u32) -> String {
        let of_kernel = match self.bodies[node as usize] {
            Body::Kernel(index) => self.kernel(index).engine(),
            Body::Async(index) => self.kernel(self.calls[index as usize].0).engine(),
            _ => None,
        };
        of_kernel.map_or_else(|| self.engines[0].label(), str::to_owned)
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

    /// What an argument looks like, and its bytes.
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
            + of(&self.costs)
            + of(&self.worth)
            + of(&self.ranks)
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
}

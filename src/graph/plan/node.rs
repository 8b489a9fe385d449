//! Elements of a plan's arrays: nodes, edges, and places of values.

use super::merge::MergeShape;
use crate::kernel::KernelCall;
use crate::threadpool::HostCall;
use std::ops::Range;

/// Most graphs inside one another.
pub(in crate::graph) const MAX_DEPTH: usize = 32;

/// The work of a node. The numbers are indices into the plan's tables.
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
    /// The function that a run calls; None: `Kernel::compute`.
    pub call: Option<KernelCall>,
    /// Index into `Plan::distinct`.
    pub kernel: u32,
    /// Where its views begin, in `Plan::args`. Other nodes may have the same ones.
    pub inputs: u32,
    pub outputs: u32,
    /// Or where their numbers do, in `Plan::picks`: inputs, then outputs. Else NOT_PICKED.
    pub picks: u32,
    pub num_inputs: u16,
    pub num_outputs: u16,
    /// Index into `Plan::scratch`, or NO_SCRATCH.
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

/// Nodes that wait for nothing but their release, by position in `Plan::releases`.
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
    /// Ends that nobody waits for and that are still counted when no branch runs.
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
    /// Of `Plan::guards`: nodes that wait for the choice and for values from outside.
    pub guards: Range<u32>,
    /// Of `Plan::drops`, for when another branch runs.
    pub drops: Range<u32>,
    /// The arguments of what is in it.
    pub args: Range<u32>,
    /// Its part of `Plan::bound`, without that of branches inside.
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
    pub why: OverlapWhy,
    /// Index into `Plan::overlaps` if it is more than one, or NO_OVERLAP. Then the other fields about nodes are those
    /// of the first slot.
    pub overlap: u32,
    /// Where `releases` has the Test, for a loop that is stopped.
    pub stop: u32,
}

/// `Loop::overlap` of a loop that runs one iteration at a time.
pub(in crate::graph) const NO_OVERLAP: u32 = u32::MAX;

/// Why a loop runs fewer iterations at once than it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::graph) enum OverlapWhy {
    AsAsked,
    /// Each iteration's work is one chain with the next one's.
    Chain,
    /// A variable must keep its memory.
    Reserved,
    /// The copies would be too many.
    Large,
    /// A slot holds one iteration's value of a shape that a run decides.
    Open,
    /// There are not as many processors.
    Processors,
    /// Effects of iterations on variables have an order.
    Effects,
}

impl OverlapWhy {
    pub fn text(self) -> &'static str {
        match self {
            OverlapWhy::AsAsked => "as asked",
            OverlapWhy::Chain => "each iteration depends on all of the one before",
            OverlapWhy::Reserved => "a variable's memory is reserved for its next value",
            OverlapWhy::Large => "more copies of it would be too large",
            OverlapWhy::Open => "it has values whose shapes a run decides",
            OverlapWhy::Effects => "it reads or writes a variable, in order",
            OverlapWhy::Processors => "twice as many as there are processors",
        }
    }
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
    /// much, the place in `Plan::merge_edges`.
    pub counter: u32,
}

pub(in crate::graph) const DIRECT: u32 = u32::MAX;

/// Arrivals that a Select makes at a counter, in the place of those that a branch makes only when it runs.
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

/// An output with a place in the arena.
#[derive(Clone, Copy, Debug)]
pub(in crate::graph) struct HeldOutput {
    pub output: usize,
    pub offset: usize,
    pub bytes: usize,
}

/// The memory and the shape of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::graph) struct Arg {
    pub place: Place,
    /// Index into `Plan::descs`.
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

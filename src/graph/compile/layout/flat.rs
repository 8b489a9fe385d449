//! The flat form while it grows: nodes, arrivals, storages.
#![forbid(unsafe_code)]

use crate::base::index::{HashIndex, mix};
use crate::base::{Desc, Ref, Result};
use crate::engine::Tensor;
use crate::graph::build::contents::{Contents, NodeBody, TaskWork};
use crate::graph::build::options::Forwarding;
use crate::graph::compile::facts::CompileFacts;
use crate::graph::plan::Dynamics;
use crate::graph::plan::NodeNames;
use crate::graph::plan::{Absence, Body, Drop, Edge, Loop, Merge, MergeEdge, NO_BIT, Release, Select, Switch};
use crate::graph::plan::{Overlap, Slot, Start};
use crate::kernel::{Kernel, PreparedForms, Task};
use std::ops::Range;
use std::sync::Arc;

use super::descs::Descs;
use super::joins::Joins;

/// Memory that one value or several share.
#[derive(Clone, Copy, Debug)]
pub(super) struct FlatStorage {
    pub bytes: usize,
    pub kind: StorageKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StorageKind {
    /// A place in the arena, to be found.
    Arena,
    Constant(usize),
    Input(usize),
    Output(usize),
    /// A slot, for a shape that only a run knows.
    Slot(usize),
}

/// The arrival that says that a value is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ArrivalSource {
    /// Nobody's: it is there before the graph begins.
    Nobody,
    Node(u32),
    /// That of one node of a list (an index into `Flat::alternatives`).
    OneOf(u32),
    /// That of the iteration before, which makes the variable with this number, in a loop whose iterations overlap.
    Carried(u32),
    /// That of the condition, for what begins such a loop's body.
    Guard,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Val {
    pub storage: u32,
    pub source: ArrivalSource,
    /// Set in a step when the value is absent.
    pub bit: u32,
}

impl Val {
    /// The same value, as an inner graph sees it that begins when it is there.
    pub fn inside(self) -> Val {
        Val { source: ArrivalSource::Nobody, bit: NO_BIT, ..self }
    }

    /// The same for an inner graph that begins without it: its readers wait.
    pub fn late(self) -> Val {
        Val { bit: NO_BIT, ..self }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct FlatArg {
    /// Index into `Flat::descs`.
    pub desc: u32,
    pub storage: u32,
}

pub(super) struct FlatKernel {
    /// Index into `Flat::distinct`.
    pub kernel: u32,
    pub args: u32,
    pub num_inputs: u16,
    pub num_outputs: u16,
    pub node: u32,
    /// Settings of the graph's for outputs that take over an input's memory.
    pub forwarding: Vec<(u16, Forwarding)>,
}

/// The edges to a node: `first..last`. Those up to `firm` come from branches, of which another one may run.
#[derive(Clone, Copy, Default)]
pub(super) struct Into {
    pub first: u32,
    pub firm: u32,
    pub last: u32,
}

/// A node in a branch that waits for late sources.
pub(super) struct BranchEntry {
    pub counter: u32,
    /// All arrivals that it waits for.
    pub arrivals: u32,
    /// Where the late sources are.
    pub outside: Vec<u32>,
}

#[derive(Default)]
pub(super) struct Flat {
    pub bodies: Vec<Body>,
    pub names: NodeNames,
    pub costs: Vec<u32>,
    pub tasks: Vec<Arc<dyn Task>>,
    pub kernels: Vec<FlatKernel>,
    /// Their kernels, each once, and these by where they are.
    pub distinct: Vec<Arc<dyn Kernel>>,
    pub known: HashIndex,
    /// The forms of constants that they share.
    pub prepared: PreparedForms,
    /// Those that complete later: index above, and node.
    pub calls: Vec<(u32, u32)>,
    pub selects: Vec<Select>,
    pub loops: Vec<Loop>,
    pub overlaps: Vec<Overlap>,
    pub slots: Vec<Slot>,
    pub starts: Vec<Start>,
    /// Edges from one iteration's nodes to the next one's.
    pub deliveries: Vec<(u32, Edge)>,
    /// Arrivals of sources that are not nodes, until the loop around is laid out.
    pub promised: Vec<(ArrivalSource, Edge)>,
    pub switches: Vec<Switch>,
    pub merges: Vec<Merge>,
    pub dynamics: Dynamics,
    pub merge_edges: Vec<MergeEdge>,
    pub absence: Absence,
    pub has_absence: bool,
    pub args: Vec<FlatArg>,
    pub descs: Descs,
    pub storages: Vec<FlatStorage>,
    pub constants: Vec<Ref<Tensor>>,
    /// From which node, and the edge.
    pub edges: Vec<(u32, Edge)>,
    /// Which of them are loose: behind such an edge nobody need wait for the node that it leaves (`entries`).
    pub loose: Vec<Range<u32>>,
    /// Which edges lead to each node.
    pub into: Vec<Into>,
    /// Marks of `Flat::look_back`: the search in which a node was last met.
    pub met: Vec<u32>,
    pub searches: u32,
    pub releases: Vec<u32>,
    pub entries: Vec<BranchEntry>,
    pub guards: Vec<Edge>,
    pub drops: Vec<Drop>,
    pub joins: Joins,
    pub alternatives: Vec<Vec<u32>>,
    /// The node that waits for outputs which branches compute.
    pub end: Option<u32>,
    pub facts: CompileFacts,
}

impl Flat {
    /// Room for more nodes, and for two edges to each; of kernels with an input or two.
    pub fn reserve(&mut self, nodes: usize, has_kernels: bool) {
        if has_kernels {
            self.kernels.reserve(nodes);
            self.storages.reserve(nodes);
            self.args.reserve(3 * nodes);
        }
        self.bodies.reserve(nodes);
        self.costs.reserve(nodes);
        self.into.reserve(nodes);
        self.met.reserve(nodes);
        self.edges.reserve(2 * nodes);
    }

    /// The number of a kernel.
    pub fn kernel(&mut self, kernel: &Arc<dyn Kernel>) -> Result<u32> {
        let place = |kernel: &Arc<dyn Kernel>| Arc::as_ptr(kernel).addr();
        let last = self.distinct.len().wrapping_sub(1);
        if self.distinct.get(last).is_some_and(|known| place(known) == place(kernel)) {
            return Ok(last as u32);
        }
        let hash = mix(place(kernel) as u64, 0);
        if let Some(number) = self.known.find(hash, |number| place(&self.distinct[number as usize]) == place(kernel)) {
            return Ok(number);
        }
        let number = self.distinct.len() as u32;
        self.known.reserve("the kernels of a program")?;
        self.known.insert(hash, number);
        self.distinct.push(Arc::clone(kernel));
        Ok(number)
    }

    /// The kernel of a node that has one, and values of known shapes.
    pub fn kernel_at(&self, node: usize) -> Option<&FlatKernel> {
        let number = match self.bodies[node] {
            Body::Kernel(number) => number,
            Body::Async(call) => self.calls[call as usize].0,
            _ => return None,
        };
        self.kernels.get(number as usize)
    }

    pub fn kernel_of(&self, node: &FlatKernel) -> &Arc<dyn Kernel> {
        &self.distinct[node.kernel as usize]
    }

    /// Takes the live tasks, and gives a body for each, by node. In the order of the graph, which is mostly that in
    /// which they lie in memory; the schedule's is another.
    pub fn take_tasks(&mut self, graph: &Contents, live: &[bool]) -> Vec<Body> {
        if !graph.nodes.iter().any(|node| matches!(node.body, NodeBody::Task { .. })) {
            return Vec::new();
        }
        let bodies = graph.nodes.iter().zip(live).map(|(node, live)| match &node.body {
            NodeBody::Task { task: TaskWork::Call(call), .. } if *live => Body::Call(*call),
            NodeBody::Task { task: TaskWork::Task(task), .. } if *live => {
                let number = self.tasks.len() as u32;
                self.tasks.push(Arc::clone(task));
                task.call().map_or(Body::Task(number), Body::Call)
            }
            _ => Body::End,
        });
        bodies.collect()
    }

    /// Adds a node that comes behind all others so far.
    pub fn push(&mut self, body: Body, name: &[&str], cost: u64) -> u32 {
        let id = self.bodies.len() as u32;
        self.bodies.push(body);
        self.names.push(name);
        self.into.push(Into::default());
        self.met.push(0);
        self.costs.push(u32::try_from(cost).unwrap_or(u32::MAX));
        if self.has_absence {
            self.absence.own.push(NO_BIT);
            self.absence.starts.push(self.absence.needs.len() as u32);
        }
        id
    }

    /// Makes a node wait for sources. False if there are none.
    pub fn wait_for(&mut self, node: u32, sources: &mut Vec<ArrivalSource>) -> bool {
        self.only_needed(node, sources);
        let n = sources.len();
        self.link(node, sources, |joins, i| joins.counter(i, n));
        self.joins.close(n);
        n > 0
    }

    /// Leaves out what need not be waited for.
    pub fn only_needed(&mut self, node: u32, sources: &mut Vec<ArrivalSource>) {
        sources.retain(|source| *source != ArrivalSource::Nobody);
        let before = sources.len();
        sources.sort_unstable();
        sources.dedup();
        self.facts.parallel_edges += before - sources.len();
        self.leave_out_implied(node, sources);
    }

    /// Draws the edges to a node; `counter` says which counter each source's arrival goes to. Those of sources that are
    /// no nodes are promised.
    pub fn link(&mut self, node: u32, sources: &[ArrivalSource], counter: impl Fn(&Joins, usize) -> u32) {
        let first = self.edges.len() as u32;
        let edge = |joins: &Joins, i: usize| Edge { target: node, counter: counter(joins, i) };
        for (i, source) in sources.iter().enumerate() {
            if let ArrivalSource::OneOf(list) = *source
                && let Some((_, branches)) = self.alternatives[list as usize].split_last()
            {
                self.edges.extend(branches.iter().map(|&from| (from, edge(&self.joins, i))));
            }
        }
        let firm = self.edges.len() as u32;
        for (i, source) in sources.iter().enumerate() {
            let edge = edge(&self.joins, i);
            match *source {
                ArrivalSource::Carried(_) | ArrivalSource::Guard => self.promised.push((*source, edge)),
                _ => self.edges.push((self.speaks(*source), edge)),
            }
        }
        self.into[node as usize] = Into { first, firm, last: self.edges.len() as u32 };
    }

    /// Leaves out sources that another one has waited for: by data or not, who waits for that one is behind them too.
    fn leave_out_implied(&mut self, node: u32, sources: &mut Vec<ArrivalSource>) {
        let Some(earliest) = sources.iter().map(|source| self.speaks(*source)).min().filter(|_| sources.len() > 1)
        else {
            return;
        };
        self.look_back(sources, earliest);
        debug_assert!(self.met[node as usize] != self.searches, "an edge that goes down");
        let before = sources.len();
        sources.retain(|source| !self.was_met(*source));
        self.facts.implied_edges += before - sources.len();
    }

    /// Whether who waits for these sources is behind that one as well.
    pub fn is_implied(&mut self, source: ArrivalSource, by: &[ArrivalSource]) -> bool {
        if by.contains(&source) {
            return true;
        }
        self.look_back(by, self.speaks(source));
        self.was_met(source)
    }

    /// Marks what these sources have waited for. Looks back over so many edges and no further, and not beyond
    /// `earliest`.
    fn look_back(&mut self, sources: &[ArrivalSource], earliest: u32) {
        const MOST_EDGES: u32 = 24;
        self.searches += 1;
        let mut queue = [0u32; MOST_EDGES as usize];
        let (mut at, mut end) = (0, 0);
        let is_node = |source: &&ArrivalSource| matches!(source, ArrivalSource::Node(_) | ArrivalSource::OneOf(_));
        for source in sources.iter().rev().filter(is_node).take(MOST_EDGES as usize / 2) {
            queue[end] = self.speaks(*source);
            end += 1;
        }
        let mut looked_at = 0;
        while at < end && looked_at < MOST_EDGES {
            let Some(&Into { first, firm, last }) = self.into.get(queue[at] as usize) else { break };
            at += 1;
            for edge in first..last.min(first + MOST_EDGES) {
                looked_at += 1;
                let from = self.edges[edge as usize].0;
                if from >= earliest && self.met[from as usize] != self.searches {
                    self.met[from as usize] = self.searches;
                    // A node that waits for whichever branch runs is not behind the predecessors of each branch.
                    if edge >= firm && end < queue.len() {
                        queue[end] = from;
                        end += 1;
                    }
                }
            }
        }
    }

    /// Whether the last search has met it: of one of several nodes, all.
    fn was_met(&self, source: ArrivalSource) -> bool {
        let met = |node: u32| self.met[node as usize] == self.searches;
        match source {
            ArrivalSource::Nobody | ArrivalSource::Carried(_) | ArrivalSource::Guard => false,
            ArrivalSource::Node(node) => met(node),
            ArrivalSource::OneOf(list) => self.alternatives[list as usize].iter().all(|&node| met(node)),
        }
    }

    /// The node that a source comes behind: of one of several branches it is the Select, the last of the list.
    pub fn speaks(&self, source: ArrivalSource) -> u32 {
        match source {
            ArrivalSource::Nobody | ArrivalSource::Carried(_) | ArrivalSource::Guard => u32::MAX,
            ArrivalSource::Node(node) => node,
            ArrivalSource::OneOf(list) => self.alternatives[list as usize].last().copied().unwrap_or(u32::MAX),
        }
    }

    /// One of several sources: whichever runs.
    pub fn one_of(&mut self, sources: &[ArrivalSource], also: &[u32]) -> ArrivalSource {
        let mut nodes: Vec<u32> = Vec::new();
        for source in sources {
            match *source {
                ArrivalSource::Nobody | ArrivalSource::Carried(_) | ArrivalSource::Guard => {}
                ArrivalSource::Node(node) => nodes.push(node),
                ArrivalSource::OneOf(list) => nodes.extend_from_slice(&self.alternatives[list as usize]),
            }
        }
        nodes.extend_from_slice(also);
        self.alternatives.push(nodes);
        ArrivalSource::OneOf(self.alternatives.len() as u32 - 1)
    }

    pub fn release(&mut self, nodes: &[u32]) -> Release {
        let first = self.releases.len() as u32;
        self.releases.extend_from_slice(nodes);
        Release { first, end: self.releases.len() as u32 }
    }

    pub fn guards(&mut self, edges: &[Edge]) -> Range<u32> {
        let first = self.guards.len() as u32;
        self.guards.extend_from_slice(edges);
        first..self.guards.len() as u32
    }

    pub fn arg(&mut self, desc: &Desc, storage: u32) -> Result<u32> {
        self.args.push(FlatArg { desc: self.descs.number(desc)?, storage });
        Ok(self.args.len() as u32 - 1)
    }

    pub fn storage(&mut self, desc: &Desc, kind: StorageKind) -> Result<u32> {
        if !desc.is_concrete() {
            return Ok(self.slot(desc, kind));
        }
        let number = self.descs.number(desc)?;
        self.storages.push(FlatStorage { bytes: self.descs.bytes(number), kind });
        Ok(self.storages.len() as u32 - 1)
    }

    /// A bit of its own for a node that can be skipped; `needs` are the bits of what it needs.
    pub fn may_be_skipped(&mut self, node: u32, needs: &[u32]) -> u32 {
        let bit = self.bit();
        self.absence.own[node as usize] = bit;
        self.absence.needs.extend(needs.iter().filter(|&&bit| bit != NO_BIT));
        bit
    }

    pub fn bit(&mut self) -> u32 {
        self.absence.bits += 1;
        self.absence.bits - 1
    }
}

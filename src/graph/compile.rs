//! From a verified graph to a program's arrays.
//!
//! 1. Keep what matters: what outputs, tasks and kernels without outputs depend on.
//! 2. Inputs and constants are no nodes of a run; their edges vanish.
//! 3. Rank each node by the longest path of estimated costs to the end, and number the nodes by descending rank
//!    among those that are ready: a stable topological order.
//! 4. Edges: parallel ones are one. A node that waits for one other has no counter; it is handed over directly.
//!    Successors are listed by descending rank, so that the first one that becomes ready is the best one to go on
//!    with.
//! 5. Memory: values that are outputs are written in place; others get a place in the arena; an output that is an
//!    input, a constant, or another output gets a copy node.

use super::builder::{self, Graph};
use super::copy::Copy;
use super::options::CompileOptions;
use super::program::{Arg, Body, DIRECT, Edge, Layout, NO_SCRATCH, Node, Place, Port, Program};
use super::verify::{self, Verified, predecessors};
use crate::base::{Desc, Error, Object, Ref, Result};
use crate::engine::{Engine, Tensor};
use crate::kernel::Kernel;
use crate::memory::{ALIGNMENT, heap};
use std::collections::{BTreeSet, BinaryHeap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// What a node is taken to cost when nobody says, in nanoseconds.
const PRIOR_NS: u64 = 1_000;

/// What compile needs at most, per node and per edge, in bytes: asked for in one piece first, so that a graph too
/// large for the memory left is a status and not a failure in the middle.
const BYTES_PER_NODE: usize = 1024;

/// A node of the run, while it is being laid out.
struct Draft {
    name: String,
    body: Body,
    inputs: Vec<(Desc, Source)>,
    outputs: Vec<Desc>,
    /// Drafts that it waits for.
    before: BTreeSet<usize>,
    cost_ns: u64,
}

/// Where an input of a draft comes from.
#[derive(Clone, Copy)]
enum Source {
    Input(usize),
    Constant(usize),
    /// Draft and output.
    Draft(usize, usize),
}

impl Program {
    pub fn compile(graph: &Graph, engines: Vec<Ref<Engine>>, options: &CompileOptions) -> Result<Ref<Program>> {
        let edges: usize = graph.nodes.iter().map(|node| predecessors(node).count()).sum();
        heap::probe((graph.nodes.len() + edges).saturating_mul(BYTES_PER_NODE), "compiling the graph")?;
        let verified = verify::verify(graph, &engines)?;
        let mut plan = Plan::new(graph, &verified);
        plan.add_outputs(graph, &verified);
        Ok(Object::shared(Program::new(plan.layout(graph, &verified, engines, options)?)))
    }
}

struct Plan {
    drafts: Vec<Draft>,
    constants: Vec<Ref<Tensor>>,
    /// For each output of the program: the draft value that is written in place.
    outputs: Vec<(usize, usize)>,
    /// Where each node of the graph went.
    sources: Vec<Option<Source>>,
}

impl Plan {
    /// Drafts for every node that matters, in the verified order.
    fn new(graph: &Graph, verified: &Verified) -> Plan {
        let live = live(graph, verified);
        let mut plan = Plan {
            drafts: Vec::new(),
            constants: Vec::new(),
            outputs: Vec::new(),
            sources: vec![None; graph.nodes.len()],
        };
        let mut inputs = 0;
        // Inputs are counted in the order of the graph, whether they are used or not: runs are given all of them.
        for (index, node) in graph.nodes.iter().enumerate() {
            if matches!(node.body, builder::Body::Input(_)) {
                plan.sources[index] = Some(Source::Input(inputs));
                inputs += 1;
            }
        }
        for &index in verified.order.iter().filter(|&&index| live[index]) {
            plan.add_node(graph, verified, index);
        }
        plan
    }

    fn add_node(&mut self, graph: &Graph, verified: &Verified, index: usize) {
        let node = &graph.nodes[index];
        let (body, cost_ns) = match &node.body {
            builder::Body::Input(_) => return,
            builder::Body::Constant(tensor) => {
                self.sources[index] = Some(Source::Constant(self.constants.len()));
                self.constants.push(Ref::clone(tensor));
                return;
            }
            builder::Body::Task { task, cost_ns } => (Body::Task(Arc::clone(task)), *cost_ns),
            builder::Body::Kernel { kernel, inputs, .. } => {
                let inputs: Vec<Desc> = inputs.iter().map(|&(p, o)| verified.descs[p][o]).collect();
                let cost = kernel.cost_ns(&inputs, &verified.descs[index]);
                (Body::Kernel(Arc::clone(kernel.kernel())), cost)
            }
        };
        let inputs = node.inputs().iter().map(|&(p, o)| (verified.descs[p][o], self.source(p, o))).collect();
        let before = predecessors(node).filter_map(|p| match self.sources[p] {
            Some(Source::Draft(draft, _)) => Some(draft),
            _ => None,
        });
        let draft = Draft {
            name: node.name.clone(),
            body,
            inputs,
            outputs: verified.descs[index].clone(),
            before: before.collect(),
            cost_ns,
        };
        self.sources[index] = Some(Source::Draft(self.drafts.len(), 0));
        self.drafts.push(draft);
    }

    /// Output `output` of node `node` of the graph.
    fn source(&self, node: usize, output: usize) -> Source {
        match self.sources[node] {
            Some(Source::Draft(draft, _)) => Source::Draft(draft, output),
            Some(source) => source,
            None => unreachable!("a node comes after what it uses"),
        }
    }

    /// Settles where each output of the program is written; adds copies where a value cannot be written in place.
    fn add_outputs(&mut self, graph: &Graph, verified: &Verified) {
        let mut taken = BTreeSet::new();
        for (name, (node, output)) in &graph.outputs {
            let source = self.source(*node, *output);
            match source {
                Source::Draft(draft, output) if taken.insert((draft, output)) => self.outputs.push((draft, output)),
                _ => {
                    let desc = verified.descs[*node][*output];
                    let before = match source {
                        Source::Draft(draft, _) => BTreeSet::from([draft]),
                        _ => BTreeSet::new(),
                    };
                    self.outputs.push((self.drafts.len(), 0));
                    self.drafts.push(Draft {
                        name: format!("copy to output '{name}'"),
                        body: Body::Kernel(Arc::new(Copy)),
                        inputs: vec![(desc, source)],
                        outputs: vec![desc],
                        before,
                        cost_ns: Copy.cost_ns(&[desc], &[desc]),
                    });
                }
            }
        }
    }

    fn layout(
        self,
        graph: &Graph,
        verified: &Verified,
        engines: Vec<Ref<Engine>>,
        options: &CompileOptions,
    ) -> Result<Layout> {
        let successors = self.successors();
        let ranks = self.ranks(&successors);
        let order = self.schedule(&successors, &ranks);
        let mut number = vec![0u32; order.len()];
        order.iter().enumerate().for_each(|(new, &old)| number[old] = new as u32);

        let mut layout = Layout {
            name: graph.name.clone(),
            engines,
            inputs: inputs(graph),
            outputs: graph
                .outputs
                .iter()
                .map(|(name, (node, output))| Port { name: name.clone(), desc: verified.descs[*node][*output] })
                .collect(),
            names: Vec::new(),
            bodies: Vec::new(),
            nodes: Vec::new(),
            edges: Vec::new(),
            counters: Vec::new(),
            roots: Vec::new(),
            args: Vec::new(),
            constants: self.constants,
            arena_bytes: 0,
            scratch: Vec::new(),
            hop_ns: options.hop_ns,
            costs: Vec::new(),
            worth: Vec::new(),
            total_ns: AtomicU64::new(0),
            runs: AtomicU64::new(0),
        };
        let counters = counters(&self.drafts, &mut layout);
        let places = places(&self.drafts, &self.outputs, &mut layout.arena_bytes)?;

        let mut drafts: Vec<Option<Draft>> = self.drafts.into_iter().map(Some).collect();
        for &old in &order {
            let Some(draft) = drafts[old].take() else { unreachable!("each draft is scheduled once") };
            let mut next: Vec<usize> = successors[old].clone();
            next.sort_by_key(|&s| (std::cmp::Reverse(ranks[s]), number[s]));
            lay_node(&mut layout, draft, old, &places)?;
            layout.edges.extend(next.iter().map(|&s| Edge { target: number[s], counter: counters[s] }));
        }
        let end =
            Node { args: 0, edges: layout.edges.len() as u32, num_inputs: 0, num_outputs: 0, scratch: NO_SCRATCH };
        layout.nodes.push(end);
        // The first in schedule order is the most urgent; it goes to the end, where it is popped first.
        let is_root: Vec<bool> = drafts_roots(&order, &counters);
        layout.roots = (0..order.len() as u32).rev().filter(|&n| is_root[n as usize]).collect();
        layout.weigh();
        Ok(layout)
    }

    fn successors(&self) -> Vec<Vec<usize>> {
        let mut successors = vec![Vec::new(); self.drafts.len()];
        for (index, draft) in self.drafts.iter().enumerate() {
            draft.before.iter().for_each(|&before| successors[before].push(index));
        }
        successors
    }

    /// The longest path of costs from each draft to the end. Drafts are in topological order.
    fn ranks(&self, successors: &[Vec<usize>]) -> Vec<u64> {
        let mut ranks = vec![0u64; self.drafts.len()];
        for index in (0..self.drafts.len()).rev() {
            let after = successors[index].iter().map(|&s| ranks[s]).max().unwrap_or(0);
            ranks[index] = after.saturating_add(cost(&self.drafts[index]));
        }
        ranks
    }

    /// A topological order that takes the highest rank first, and the older draft among equals.
    fn schedule(&self, successors: &[Vec<usize>], ranks: &[u64]) -> Vec<usize> {
        let mut waiting: Vec<usize> = self.drafts.iter().map(|draft| draft.before.len()).collect();
        let entry = |index: usize| (ranks[index], std::cmp::Reverse(index));
        let mut ready: BinaryHeap<_> = (0..waiting.len()).filter(|&i| waiting[i] == 0).map(entry).collect();
        let mut order = Vec::with_capacity(waiting.len());
        while let Some((_, std::cmp::Reverse(index))) = ready.pop() {
            order.push(index);
            for &next in &successors[index] {
                waiting[next] -= 1;
                if waiting[next] == 0 {
                    ready.push(entry(next));
                }
            }
        }
        order
    }
}

fn cost(draft: &Draft) -> u64 {
    if draft.cost_ns == 0 { PRIOR_NS } else { draft.cost_ns }
}

/// Marks a root, which nothing arrives at, in the list of counters.
const ROOT: u32 = u32::MAX - 1;

/// Which counter each draft's arrivals go to; start values go into the layout.
fn counters(drafts: &[Draft], layout: &mut Layout) -> Vec<u32> {
    drafts
        .iter()
        .map(|draft| match draft.before.len() {
            0 => ROOT,
            1 => DIRECT,
            n => {
                layout.counters.push(n as u32);
                layout.counters.len() as u32 - 1
            }
        })
        .collect()
}

fn drafts_roots(order: &[usize], counters: &[u32]) -> Vec<bool> {
    order.iter().map(|&old| counters[old] == ROOT).collect()
}

/// Where each output of each draft is written.
fn places(
    drafts: &[Draft],
    outputs: &[(usize, usize)],
    arena_bytes: &mut usize,
) -> Result<HashMap<(usize, usize), Place>> {
    let in_place: HashMap<_, _> = outputs.iter().enumerate().map(|(i, &value)| (value, i)).collect();
    let mut places = HashMap::new();
    for (index, draft) in drafts.iter().enumerate() {
        for (output, desc) in draft.outputs.iter().enumerate() {
            let place = match in_place.get(&(index, output)) {
                Some(&port) => Place::Output(port),
                None => {
                    let at = *arena_bytes;
                    *arena_bytes = at
                        .checked_add(desc.bytes()?)
                        .and_then(|end| end.checked_next_multiple_of(ALIGNMENT))
                        .ok_or_else(|| Error::out_of_range("the program's values are larger than memory can hold"))?;
                    Place::Arena(at)
                }
            };
            places.insert((index, output), place);
        }
    }
    Ok(places)
}

/// Appends a draft as the next node; its edges follow.
fn lay_node(layout: &mut Layout, draft: Draft, index: usize, places: &HashMap<(usize, usize), Place>) -> Result<()> {
    let args = layout.args.len() as u32;
    for (desc, source) in &draft.inputs {
        let place = match *source {
            Source::Input(i) => Place::Input(i),
            Source::Constant(i) => Place::Constant(i),
            Source::Draft(draft, output) => places[&(draft, output)],
        };
        layout.args.push(Arg { desc: *desc, bytes: desc.bytes()?, place });
    }
    for (output, desc) in draft.outputs.iter().enumerate() {
        layout.args.push(Arg { desc: *desc, bytes: desc.bytes()?, place: places[&(index, output)] });
    }
    let mut scratch = NO_SCRATCH;
    if let Body::Kernel(kernel) = &draft.body {
        let inputs: Vec<Desc> = draft.inputs.iter().map(|(desc, _)| *desc).collect();
        let bytes = kernel.scratch_bytes(&inputs, &draft.outputs);
        if bytes > 0 {
            scratch = layout.scratch.len() as u32;
            layout.scratch.push(bytes);
        }
    }
    layout.nodes.push(Node {
        args,
        edges: layout.edges.len() as u32,
        num_inputs: draft.inputs.len() as u16,
        num_outputs: draft.outputs.len() as u16,
        scratch,
    });
    layout.costs.push(AtomicU32::new(u32::try_from(cost(&draft)).unwrap_or(u32::MAX)));
    layout.worth.push(AtomicU32::new(0));
    layout.names.push(draft.name);
    layout.bodies.push(draft.body);
    Ok(())
}

fn inputs(graph: &Graph) -> Vec<Port> {
    graph
        .nodes
        .iter()
        .filter_map(|node| match &node.body {
            builder::Body::Input(desc) => Some(Port { name: node.name.clone(), desc: *desc }),
            _ => None,
        })
        .collect()
}

/// Which nodes matter: outputs, tasks, kernels without outputs, and whatever those wait for.
fn live(graph: &Graph, verified: &Verified) -> Vec<bool> {
    let mut live = vec![false; graph.nodes.len()];
    graph.outputs.iter().for_each(|(_, (node, _))| live[*node] = true);
    for &index in verified.order.iter().rev() {
        let node = &graph.nodes[index];
        live[index] |= match &node.body {
            builder::Body::Task { .. } => true,
            builder::Body::Kernel { num_outputs, .. } => *num_outputs == 0,
            builder::Body::Input(_) | builder::Body::Constant(_) => false,
        };
        if live[index] {
            predecessors(node).for_each(|before| live[before] = true);
        }
    }
    live
}

//! How many iterations of a loop run at once.
//!
//! As many as were asked for, unless the copies would be too large or more than the processors can work on, a variable
//! must keep its memory, or nothing is won: when the time from one iteration to the next, with a thread for everything
//! that could run, is that of a whole iteration. That is found out by going through some iterations with the nodes'
//! estimated costs.
#![forbid(unsafe_code)]

use super::flat::Flat;
use super::joins::Joins;
use crate::graph::build::contents::{Contents, NodeBody, Value};
use crate::graph::build::options::Forwarding;
use crate::graph::build::verify::Verified;
use crate::graph::plan::effects;
use crate::graph::plan::schedule;
use crate::graph::plan::{DIRECT, Loop, Release};
use crate::graph::plan::{NO_OVERLAP, OverlapWhy};
use std::collections::HashMap;

/// Most iterations at once, whatever is asked for.
const MOST_PARALLEL: u32 = 64;
/// Most iterations at once of loops that only compute, for each processor, and for all of them at least.
const PER_PROCESSOR: usize = 2;
const FEWEST: usize = 4;
/// Most nodes that the copies of one loop may have together.
const MOST_NODES: usize = 1 << 16;
/// How many iterations are gone through, and how many of them are left out of account at the beginning.
const ROUNDS: u64 = 12;
const FIRST_ROUNDS: u64 = 4;

#[derive(Clone, Copy)]
pub(in crate::graph) struct OverlapChoice {
    pub parallel: u32,
    pub asked: u32,
    pub why: OverlapWhy,
}

impl OverlapChoice {
    /// Of a loop whose slots are there already: placement chose as `choose` does.
    pub(in crate::graph) fn given(slots: usize, asked: u32) -> OverlapChoice {
        let parallel = slots as u32 - 1;
        let why = match parallel {
            _ if parallel == asked => OverlapWhy::AsAsked,
            _ if parallel == busy() => OverlapWhy::Processors,
            _ => OverlapWhy::Large,
        };
        OverlapChoice { parallel, asked, why }
    }

    /// A loop of which nothing else is known yet.
    pub(in crate::graph) fn looped(self, enter: u32) -> Loop {
        Loop {
            enter: Vec::new(),
            next: Vec::new(),
            predicate: 0,
            condition: 0..0,
            body: 0..0,
            release_condition: Release::default(),
            release_body: Release::default(),
            first: enter,
            end: 0,
            uncounted: 0,
            parallel_iterations: self.parallel,
            asked: self.asked,
            why: self.why,
            overlap: NO_OVERLAP,
            stop: 0,
        }
    }
}

/// Chooses for a loop that lies in something of which there are so many copies.
pub(in crate::graph) fn choose(
    condition: &Contents,
    body: &Contents,
    verified: &[Verified],
    num_variables: usize,
    asked: u32,
    copies: usize,
) -> OverlapChoice {
    let no = |why| OverlapChoice { parallel: 1, asked, why };
    if asked == 1 {
        return no(OverlapWhy::AsAsked);
    }
    if body.outputs.iter().take(num_variables).any(|(_, value)| is_reserved(body, *value)) {
        return no(OverlapWhy::Reserved);
    }
    if verified.iter().any(is_open) {
        return no(OverlapWhy::Open);
    }
    if [condition, body].into_iter().any(effects::is_ordered) {
        return no(OverlapWhy::Effects);
    }
    // The nodes that close an iteration count too.
    let nodes = condition.num_nodes() + body.num_nodes() + 3;
    let fit = (MOST_NODES / nodes.saturating_mul(copies)).saturating_sub(1);
    let fit = asked.min(MOST_PARALLEL).min(u32::try_from(fit).unwrap_or(MOST_PARALLEL));
    let parallel = if waits(condition) || waits(body) { fit } else { fit.min(busy()) };
    if parallel <= 1 {
        return no(OverlapWhy::Large);
    }
    if is_chain(condition, body, verified, num_variables) {
        return no(OverlapWhy::Chain);
    }
    let why = match parallel {
        _ if parallel == asked => OverlapWhy::AsAsked,
        _ if parallel < fit => OverlapWhy::Processors,
        _ => OverlapWhy::Large,
    };
    OverlapChoice { parallel, asked, why }
}

/// How many iterations keep this machine busy.
fn busy() -> u32 {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    u32::try_from((PER_PROCESSOR * processors).max(FEWEST)).unwrap_or(MOST_PARALLEL)
}

/// Whether something in a graph takes time without a processor.
fn waits(graph: &Contents) -> bool {
    graph.nodes.iter().any(|node| match &node.body {
        NodeBody::Kernel { kernel, .. } => kernel.kernel().is_async() || kernel.kernel().may_block(),
        _ => node.inner().any(|inner| waits(inner)),
    })
}

/// Whether a graph has values whose shapes only a run knows.
fn is_open(verified: &Verified) -> bool {
    let inner = verified.inner.values().flatten();
    verified.descs.all().iter().any(|desc| !desc.is_concrete()) || inner.into_iter().any(is_open)
}

fn is_reserved(body: &Contents, value: Value) -> bool {
    matches!(body.forwarding.get(&value), Some(Forwarding::Reserved(_)))
}

/// Whether iterations can't overlap by more than a twentieth of their work.
fn is_chain(condition: &Contents, body: &Contents, verified: &[Verified], num_variables: usize) -> bool {
    let (tests, works) = (GraphTiming::new(condition, &verified[0]), GraphTiming::new(body, &verified[1]));
    let work = tests.all.saturating_add(works.all);
    let ports: Vec<usize> = body.inputs().collect();
    let mut times = vec![0u64; num_variables];
    let (mut end, mut late) = (0, 0);
    for round in 0..ROUNDS {
        let tested = tests.go(&times, 0);
        let goes_on = tests.end(&tested).max(tested[condition.outputs[0].1.0]);
        let done = works.go(&times, goes_on);
        for (i, time) in times.iter_mut().enumerate() {
            let (maker, _) = body.outputs[i].1;
            *time = if maker == ports[i] { *time } else { done[maker] };
        }
        end = works.end(&done).max(goes_on);
        if round + 1 == FIRST_ROUNDS {
            late = end;
        }
    }
    (end - late) / (ROUNDS - FIRST_ROUNDS) >= work - work / 20
}

/// The costs of a graph, and its order.
struct GraphTiming<'a> {
    graph: &'a Contents,
    order: &'a [u32],
    /// How long an engine takes that works on its own is not known: as long as the host at least.
    costs: Vec<u64>,
    /// The costs of all nodes.
    all: u64,
    /// Which input each input node is.
    inputs: HashMap<usize, usize>,
}

impl<'a> GraphTiming<'a> {
    fn new(graph: &'a Contents, verified: &'a Verified) -> GraphTiming<'a> {
        let live = schedule::live(graph, verified, &vec![true; graph.outputs.len()]);
        let mut costs = schedule::costs(graph, verified, &live);
        let is_there = |&index: &usize| {
            let node = &graph.nodes[index];
            live[index]
                && matches!(&node.body, NodeBody::Kernel { kernel, .. } if kernel.engine().accelerator().is_some())
        };
        let there: Vec<usize> = (0..costs.len()).filter(is_there).collect();
        let whole = costs.iter().fold(0, |sum: u64, cost| sum.saturating_add(*cost));
        let here = there.iter().fold(whole, |sum, &index| sum.saturating_sub(costs[index]));
        there.iter().for_each(|&index| costs[index] = costs[index].max(here / there.len() as u64));
        let all = costs.iter().fold(0u64, |sum, cost| sum.saturating_add(*cost));
        let inputs = graph.inputs().enumerate().map(|(i, node)| (node, i)).collect();
        GraphTiming { graph, order: &verified.order, costs, all, inputs }
    }

    /// When the last of the nodes that do something is done.
    fn end(&self, done: &[u64]) -> u64 {
        let works = |(index, _): &(usize, &u64)| !matches!(self.graph.nodes[*index].body, NodeBody::Input(_));
        done.iter().enumerate().filter(works).map(|(_, &done)| done).max().unwrap_or(0)
    }

    /// When each node is done, if the inputs come at these times (others than variables at 0), and nothing begins
    /// before `begin`.
    fn go(&self, times: &[u64], begin: u64) -> Vec<u64> {
        let mut done = vec![0u64; self.graph.nodes.len()];
        for &index in self.order {
            let index = index as usize;
            let node = &self.graph.nodes[index];
            if matches!(node.body, NodeBody::Input(_)) {
                let time = self.inputs.get(&index).and_then(|input| times.get(*input));
                done[index] = time.copied().unwrap_or(0).max(begin);
                continue;
            }
            let start = node.predecessors().map(|before| done[before]).max().unwrap_or(0).max(begin);
            done[index] = start.saturating_add(self.costs[index]);
        }
        done
    }
}

/// Gives counters their final numbers; `leaf_of` has what the leaves from `first_leaf` on belong to.
pub(super) fn finish(flat: &mut Flat, first_leaf: u32, leaf_of: &[u32], counters: u32) {
    for start in &mut flat.starts {
        start.edge.counter = Joins::number(start.edge.counter, first_leaf, counters);
    }
    for slot in &mut flat.slots {
        slot.delivered.iter_mut().for_each(|counter| *counter = Joins::number(*counter, first_leaf, counters));
        slot.delivered.retain(|&counter| counter != DIRECT);
        // A leaf that is complete has arrived at what it belongs to.
        let above = |&counter: &u32| counter.checked_sub(first_leaf).map(|leaf| leaf_of[leaf as usize]);
        let more: Vec<u32> = slot.delivered.iter().filter_map(above).collect();
        slot.delivered.extend(more);
        slot.delivered.sort_unstable();
        slot.delivered.dedup();
    }
}

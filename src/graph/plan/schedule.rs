//! The order of one graph's nodes: what matters, and the longest path to the end first.
#![forbid(unsafe_code)]

use crate::graph::build::contents::{Contents, Node, NodeBody};
use crate::graph::build::verify::{Verified, has_effects};
use std::cmp::Reverse;

/// The cost of a node when nobody says, in nanoseconds.
pub(in crate::graph) const PRIOR_NS: u64 = 1_000;
/// Iterations of a loop before anybody has counted.
const PRIOR_ITERATIONS: u64 = 8;

/// Which nodes matter: the wanted outputs, what has effects, and whatever those wait for.
pub(in crate::graph) fn live(graph: &Contents, verified: &Verified, wanted: &[bool]) -> Vec<bool> {
    if verified.kinds.is_tasks() {
        return vec![true; graph.nodes.len()];
    }
    let mut live = vec![false; graph.nodes.len()];
    for ((_, (node, _)), _) in graph.outputs.iter().zip(wanted).filter(|(_, wanted)| **wanted) {
        live[*node] = true;
    }
    for &index in verified.order.iter().rev() {
        let index = index as usize;
        let node = &graph.nodes[index];
        live[index] |= has_effects(node);
        if live[index] {
            verified.links.of(index).iter().for_each(|&before| live[before as usize] = true);
        }
    }
    live
}

/// The estimated run time of each live node.
pub(in crate::graph) fn costs(graph: &Contents, verified: &Verified, live: &[bool]) -> Vec<u64> {
    let or_prior = |ns: u64| if ns == 0 { PRIOR_NS } else { ns };
    let mut costs = vec![0; graph.nodes.len()];
    let mut descs = Vec::new();
    for (index, node) in graph.nodes.iter().enumerate().filter(|(index, _)| live[*index]) {
        costs[index] = match &node.body {
            NodeBody::Task { cost_ns, .. } => or_prior(*cost_ns),
            NodeBody::Kernel { kernel, inputs, .. } => {
                descs.clear();
                descs.extend(inputs.iter().map(|&value| *verified.desc(value)));
                or_prior(kernel.cost_ns(&descs, &verified.descs[index]))
            }
            NodeBody::Case { branches, .. } => {
                let inner = &verified.inner[&index];
                branches.iter().zip(inner).map(|(graph, verified)| whole(graph, verified)).max().unwrap_or(0)
            }
            NodeBody::While { condition, body, .. } => {
                let inner = &verified.inner[&index];
                PRIOR_ITERATIONS.saturating_mul(whole(condition, &inner[0]).saturating_add(whole(body, &inner[1])))
            }
            _ => 0,
        };
    }
    costs
}

/// All of a graph's nodes together.
fn whole(graph: &Contents, verified: &Verified) -> u64 {
    let live = vec![true; graph.nodes.len()];
    costs(graph, verified, &live).into_iter().fold(0, u64::saturating_add)
}

/// Greater than all paths.
const URGENT: u64 = 1 << 62;

/// Whether a node starts what is done elsewhere, by a device or by whoever completes it later.
fn starts_elsewhere(node: &Node) -> bool {
    let NodeBody::Kernel { kernel, .. } = &node.body else { return false };
    kernel.kernel().engine().is_some() || kernel.kernel().is_async() || kernel.kernel().is_first_half()
}

/// A topological order of the live nodes: nodes that start work elsewhere come first, and their predecessors; then the
/// longest path of costs, and the older node among equals. Values that are there before a run begins come before all
/// others.
pub(in crate::graph) fn order(graph: &Contents, verified: &Verified, live: &[bool], costs: &[u64]) -> Vec<u32> {
    let successors = verified.links.successors(|index| live[index]);
    let mut ranks = vec![0u64; graph.nodes.len()];
    let mut is_strict = true;
    for &index in verified.order.iter().rev().filter(|&&index| live[index as usize]) {
        let after = successors.of(index as usize).iter().map(|&next| ranks[next as usize]).max().unwrap_or(0);
        let (cost, waits) = (costs[index as usize], !verified.links.of(index as usize).is_empty());
        let urgent = if starts_elsewhere(&graph.nodes[index as usize]) { URGENT } else { 0 };
        ranks[index as usize] = after.saturating_add(cost) | urgent;
        is_strict &= ranks[index as usize] > after || !waits;
    }
    let first = |index: u32| verified.links.of(index as usize).is_empty() && costs[index as usize] == 0;
    // A node whose rank is above those of all that wait for it comes before them where the ranks are sorted; what costs
    // nothing and waits for nothing comes before everything.
    if is_strict {
        let lives = (0..graph.nodes.len() as u32).filter(|&index| live[index as usize]);
        let mut order: Vec<u32> = lives.collect();
        let key = |index: &u32| (Reverse(first(*index)), Reverse(ranks[*index as usize]));
        // Graphs are mostly built along their edges, and then there is little to sort.
        if !order.is_sorted_by_key(key) {
            order.sort_by_cached_key(key);
        }
        return order;
    }
    // A node may have the rank of one that waits for it.
    successors.order((0..graph.nodes.len()).filter(|&index| live[index]), |index| Reverse(ranks[index]))
}

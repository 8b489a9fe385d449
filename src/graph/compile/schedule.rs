//! The order of one graph's nodes: what matters, and the longest path to the end first.

use crate::graph::builder::{Body, Contents, Node};
use crate::graph::verify::{Verified, predecessors};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What a node is taken to cost when nobody says, in nanoseconds.
pub(super) const PRIOR_NS: u64 = 1_000;
/// What loops are taken to do before anybody has counted.
const PRIOR_ITERATIONS: u64 = 8;

/// Which nodes matter: the wanted outputs, what has effects, and whatever those wait for.
pub(in crate::graph) fn live(graph: &Contents, verified: &Verified, wanted: &[bool]) -> Vec<bool> {
    let mut live = vec![false; graph.nodes.len()];
    for ((_, (node, _)), _) in graph.outputs.iter().zip(wanted).filter(|(_, wanted)| **wanted) {
        live[*node] = true;
    }
    for &index in verified.order.iter().rev() {
        let index = index as usize;
        let node = &graph.nodes[index];
        live[index] |= has_effects(node);
        if live[index] {
            predecessors(node).for_each(|before| live[before] = true);
        }
    }
    live
}

pub(super) fn has_effects(node: &Node) -> bool {
    match &node.body {
        Body::Task { .. } => true,
        Body::Kernel { kernel, num_outputs, .. } => {
            let kernel = kernel.kernel();
            *num_outputs == 0 || kernel.is_relied_on() || !kernel.effects().is_empty()
        }
        _ => node.inner().any(|inner| inner.nodes.iter().any(has_effects)),
    }
}

/// The estimated run time of each live node.
pub(in crate::graph) fn costs(graph: &Contents, verified: &Verified, live: &[bool]) -> Vec<u64> {
    let or_prior = |ns: u64| if ns == 0 { PRIOR_NS } else { ns };
    let mut costs = vec![0; graph.nodes.len()];
    for (index, node) in graph.nodes.iter().enumerate().filter(|(index, _)| live[*index]) {
        costs[index] = match &node.body {
            Body::Task { cost_ns, .. } => or_prior(*cost_ns),
            Body::Kernel { kernel, inputs, .. } => {
                let inputs: Vec<_> = inputs.iter().map(|&value| *verified.desc(value)).collect();
                or_prior(kernel.cost_ns(&inputs, &verified.descs[index]))
            }
            Body::Case { branches, .. } => {
                let inner = &verified.inner[&index];
                branches.iter().zip(inner).map(|(graph, verified)| whole(graph, verified)).max().unwrap_or(0)
            }
            Body::While { condition, body, .. } => {
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
    let Body::Kernel { kernel, .. } = &node.body else { return false };
    kernel.kernel().engine().is_some() || kernel.kernel().is_async()
}

/// A topological order of the live nodes that takes what starts something elsewhere first, and what that waits for;
/// then the longest path of costs, and the older node among equals.
pub(in crate::graph) fn order(graph: &Contents, verified: &Verified, live: &[bool], costs: &[u64]) -> Vec<u32> {
    let n = graph.nodes.len();
    let (starts, successors) = successors(graph, live);
    let of = |index: usize| &successors[starts[index] as usize..starts[index + 1] as usize];
    let mut ranks = vec![0u64; n];
    let mut waiting = vec![0u32; n];
    for &index in verified.order.iter().rev() {
        let index = index as usize;
        if live[index] {
            let after = of(index).iter().map(|&next| ranks[next as usize]).max().unwrap_or(0);
            let urgent = if starts_elsewhere(&graph.nodes[index]) { URGENT } else { 0 };
            ranks[index] = after.saturating_add(costs[index]) | urgent;
            of(index).iter().for_each(|&next| waiting[next as usize] += 1);
        }
    }
    let entry = |index: u32| (ranks[index as usize], Reverse(index));
    let mut ready: BinaryHeap<_> =
        (0..n as u32).filter(|&i| live[i as usize] && waiting[i as usize] == 0).map(entry).collect();
    let mut order = Vec::with_capacity(n);
    while let Some((_, Reverse(index))) = ready.pop() {
        order.push(index);
        for &next in of(index as usize) {
            waiting[next as usize] -= 1;
            if waiting[next as usize] == 0 {
                ready.push(entry(next));
            }
        }
    }
    order
}

/// Each node's successors, as many times as it has edges to them.
fn successors(graph: &Contents, live: &[bool]) -> (Vec<u32>, Vec<u32>) {
    let n = graph.nodes.len();
    let nodes = || graph.nodes.iter().enumerate().filter(|(index, _)| live[*index]);
    let mut starts = vec![0u32; n + 1];
    nodes().for_each(|(_, node)| predecessors(node).for_each(|before| starts[before + 1] += 1));
    for i in 0..n {
        starts[i + 1] += starts[i];
    }
    let mut next = starts.clone();
    let mut list = vec![0u32; starts[n] as usize];
    for (index, node) in nodes() {
        for before in predecessors(node) {
            list[next[before] as usize] = index as u32;
            next[before] += 1;
        }
    }
    (starts, list)
}

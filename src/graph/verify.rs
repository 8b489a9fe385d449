//! Checks of a whole graph: engines, cycles, types and shapes. Every refusal names the nodes.

use super::builder::{Body, Graph, Node};
use crate::base::{Desc, Error, Ref, Result};
use crate::engine::Engine;

/// A graph that passed: an order in which every node comes after what it waits for, and what each node's outputs
/// look like.
pub(super) struct Verified {
    pub order: Vec<usize>,
    pub descs: Vec<Vec<Desc>>,
}

pub(super) fn verify(graph: &Graph, engines: &[Ref<Engine>]) -> Result<Verified> {
    if engines.is_empty() {
        return Err(Error::invalid("num_engines is 0, a program needs at least one engine"));
    }
    check_engines(graph, engines)?;
    let order = order(graph)?;
    let descs = infer(graph, &order)?;
    Ok(Verified { order, descs })
}

fn check_engines(graph: &Graph, engines: &[Ref<Engine>]) -> Result<()> {
    for node in &graph.nodes {
        let engine = match &node.body {
            Body::Kernel { kernel, .. } => kernel.engine(),
            Body::Constant(tensor) => tensor.engine(),
            Body::Input(_) | Body::Task { .. } => continue,
        };
        if !engines.iter().any(|listed| listed.is_same_device(engine)) {
            return Err(Error::invalid(format!(
                "node '{}': its engine {} is not among the engines of the program",
                node.name,
                engine.label()
            )));
        }
    }
    Ok(())
}

/// What a node waits for, with and without data.
pub(super) fn predecessors(node: &Node) -> impl Iterator<Item = usize> {
    node.inputs().iter().map(|&(producer, _)| producer).chain(node.after.iter().copied())
}

/// Kahn's algorithm; first come, first served, so that the order is stable.
fn order(graph: &Graph) -> Result<Vec<usize>> {
    let n = graph.nodes.len();
    let mut waiting = vec![0usize; n];
    let mut successors = vec![Vec::new(); n];
    for (index, node) in graph.nodes.iter().enumerate() {
        for before in predecessors(node) {
            waiting[index] += 1;
            successors[before].push(index);
        }
    }
    let mut order: Vec<usize> = (0..n).filter(|&index| waiting[index] == 0).collect();
    let mut at = 0;
    while at < order.len() {
        for &next in &successors[order[at]] {
            waiting[next] -= 1;
            if waiting[next] == 0 {
                order.push(next);
            }
        }
        at += 1;
    }
    if order.len() < n { Err(cycle(graph, &waiting)) } else { Ok(order) }
}

/// Words a cycle among the nodes that still wait: 'a' -> 'b' -> 'a'.
fn cycle(graph: &Graph, waiting: &[usize]) -> Error {
    // Every node that still waits has a predecessor that does; walking back must meet a node again.
    let mut path = Vec::new();
    let mut seen = vec![false; graph.nodes.len()];
    let mut at = waiting.iter().position(|&n| n > 0).unwrap_or(0);
    while !seen[at] {
        seen[at] = true;
        path.push(at);
        at = predecessors(&graph.nodes[at]).find(|&before| waiting[before] > 0).unwrap_or(at);
    }
    let start = path.iter().position(|&index| index == at).unwrap_or(0);
    let mut text = format!("'{}'", graph.nodes[at].name);
    for &index in path[start..].iter().rev() {
        text.push_str(&format!(" -> '{}'", graph.nodes[index].name));
    }
    Error::invalid(format!("graph '{}' has a cycle: {text}", graph.name))
}

fn infer(graph: &Graph, order: &[usize]) -> Result<Vec<Vec<Desc>>> {
    let mut descs: Vec<Vec<Desc>> = vec![Vec::new(); graph.nodes.len()];
    for &index in order {
        let node = &graph.nodes[index];
        descs[index] = match &node.body {
            Body::Input(desc) => vec![*desc],
            Body::Constant(tensor) => vec![*tensor.desc()],
            Body::Task { .. } => Vec::new(),
            Body::Kernel { kernel, inputs, .. } => {
                let inputs: Vec<Desc> = inputs.iter().map(|&(producer, output)| descs[producer][output]).collect();
                // "node 'conv1' input 2: expected ...", without a colon between name and input.
                kernel
                    .infer_unnamed(&inputs)
                    .map_err(|error| Error::new(error.code(), format!("node '{}' {}", node.name, error.message())))?
            }
        };
    }
    Ok(descs)
}

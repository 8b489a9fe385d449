//! Nodes that may be skipped, in graphs of their own: what is inside of such a graph is there whenever the graph is
//! run.
//!
//! A *guard* is a branch without alternatives, around nodes that are there under the same conditions (`presence`). Like
//! any node it is skipped when one of its inputs is absent. Only nodes that the caller means are put into one.
//!
//! Nodes of one guard must not wait for each other by way of nodes outside of it. Each node has a level: that of the
//! nodes that it waits for, and one more behind those that are in no guard with it. A guard has the nodes of one level.
#![forbid(unsafe_code)]

use super::assemble::{Assembly, ValueOrigin};
use super::frames::is_constant;
use crate::base::{Error, Ref, Result};
use crate::engine::Tensor;
use crate::graph::build::contents::{After, Contents, Node, NodeBody, Value};
use crate::graph::build::verify::Verified;
use crate::graph::plan::MAX_DEPTH;
use std::collections::HashMap;
use std::sync::Arc;

/// Puts the nodes that `is_meant` names, also in graphs inside, into guards if they may be skipped. `zero` decides for
/// a guard's only branch.
pub(in crate::graph) fn guard(
    graph: &Contents,
    verified: &Verified,
    is_meant: &dyn Fn(&Node) -> bool,
    zero: &Ref<Tensor>,
) -> Result<Contents> {
    let mut graph = graph.clone();
    for (index, node) in graph.nodes.iter_mut().enumerate() {
        let Some(found) = verified.inner.get(&index) else { continue };
        for (inner, verified) in node.inner_mut().into_iter().zip(found) {
            *inner = Arc::new(guard(inner, verified, is_meant, zero)?);
            graph.depth = graph.depth.max(inner.depth + 1);
        }
    }
    let group_of = groups(&graph, verified, is_meant);
    if !group_of.is_empty() {
        graph = replace(&graph, &group_of, zero)?;
    }
    match graph.depth < MAX_DEPTH {
        true => Ok(graph),
        false => Err(Error::out_of_range(format!("more than {MAX_DEPTH} graphs lie inside one another"))),
    }
}

/// The number of the guard that a node goes into.
fn groups(graph: &Contents, verified: &Verified, is_meant: &dyn Fn(&Node) -> bool) -> HashMap<usize, usize> {
    let conditions = |node: usize| verified.presences.of_node(node);
    let is_member = |node: usize| !conditions(node).is_empty() && is_meant(&graph.nodes[node]);
    let mut levels = vec![0u32; graph.nodes.len()];
    let (mut numbers, mut group_of) = (HashMap::new(), HashMap::new());
    for &index in &verified.order {
        let index = index as usize;
        let is_ours = is_member(index);
        let level = graph.nodes[index].predecessors().map(|before| {
            let is_together = is_ours && group_of.contains_key(&before) && conditions(before) == conditions(index);
            levels[before] + u32::from(!is_together)
        });
        levels[index] = level.max().unwrap_or(0);
        if is_ours {
            let next = numbers.len();
            group_of.insert(index, *numbers.entry((conditions(index), levels[index])).or_insert(next));
        }
    }
    group_of
}

/// A guard that is being made.
#[derive(Default)]
struct Guard {
    members: Vec<usize>,
    /// Values from outside that are read inside, constants left out; and nodes outside that are waited for.
    inputs: Vec<Value>,
    after: After,
    /// Values from inside that are read outside.
    outputs: Vec<Value>,
}

fn replace(graph: &Contents, group_of: &HashMap<usize, usize>, zero: &Ref<Tensor>) -> Result<Contents> {
    let n = graph.nodes.len();
    let mut guards: Vec<Guard> = Vec::new();
    guards.resize_with(group_of.values().max().map_or(0, |last| last + 1), Guard::default);
    let group = |node: usize| group_of.get(&node).copied();
    for (index, node) in graph.nodes.iter().enumerate() {
        let own = group(index);
        for &value in node.inputs() {
            let maker = group(value.0);
            if maker == own {
                continue;
            }
            maker.into_iter().for_each(|maker| guards[maker].outputs.push(value));
            if !is_constant(&graph.nodes[value.0]) {
                own.into_iter().for_each(|own| guards[own].inputs.push(value));
            }
        }
        if let Some(own) = own {
            guards[own].members.push(index);
            guards[own].after.extend(node.after.iter().copied().filter(|&before| group(before) != Some(own)));
        }
    }
    for &(_, value) in &graph.outputs {
        group(value.0).into_iter().for_each(|maker| guards[maker].outputs.push(value));
    }
    let mut made = vec![Node { name: "guarded".into(), body: NodeBody::Constant(zero.clone()), after: After::new() }];
    let mut given: HashMap<Value, Value> = HashMap::new();
    for guard in &mut guards {
        for values in [&mut guard.inputs, &mut guard.outputs] {
            values.sort_unstable();
            values.dedup();
        }
        let outputs = guard.outputs.iter().enumerate();
        given.extend(outputs.map(|(output, &value)| (value, (n + made.len(), output))));
        let inputs = std::iter::once((n, 0)).chain(guard.inputs.iter().copied()).collect();
        let body = NodeBody::Case { branches: vec![Arc::new(inside(graph, guard)?)], inputs, is_cond: false };
        let name = graph.nodes[guard.members[0]].name.clone();
        made.push(Node { name, body, after: guard.after.clone() });
    }
    let members: Vec<usize> = (0..n + made.len()).filter(|&index| group(index).is_none()).collect();
    let node = |index: usize| if index < n { &graph.nodes[index] } else { &made[index - n] };
    let trace = |value: Value| ValueOrigin::Node(given.get(&value).copied().unwrap_or(value));
    let mut whole = Assembly::new(graph.name.clone(), &[], &members, &node, &trace);
    whole.tie(&members, graph, &|before| Some(group(before).map_or(before, |guard| n + 1 + guard)))?;
    for (name, value) in &graph.outputs {
        whole.output(name, *value)?;
    }
    Ok(Contents { homes: graph.homes.clone(), ..whole.finish() })
}

fn inside(graph: &Contents, guard: &Guard) -> Result<Contents> {
    let ports: Vec<_> = guard.inputs.iter().map(|value| graph.nodes[value.0].name.clone()).collect();
    let node = |index: usize| &graph.nodes[index];
    let trace = |value: Value| match guard.inputs.binary_search(&value) {
        Ok(port) => ValueOrigin::Port(port),
        Err(_) if is_constant(&graph.nodes[value.0]) => ValueOrigin::Constant(value.0),
        Err(_) => ValueOrigin::Node(value),
    };
    let name = format!("{}/guarded", graph.nodes[guard.members[0]].name);
    let mut part = Assembly::new(name, &ports, &guard.members, &node, &trace);
    part.tie(&guard.members, graph, &Some)?;
    for value in &guard.outputs {
        part.output(graph.nodes[value.0].name.as_str(), *value)?;
    }
    Ok(part.finish())
}

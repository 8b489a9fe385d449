//! Checks of a whole graph: engines, cycles, types and shapes, absent values. Every refusal names the nodes.

use super::builder::{Body, Contents, Node, Value};
use super::presence::{self, Presences};
use crate::base::{Desc, Error, Ref, Result, dtype};
use crate::engine::Engine;
use std::collections::HashMap;
use std::sync::Arc;

/// A graph that passed, or one inside of it.
pub(super) struct Verified {
    /// Every node comes after what it waits for.
    pub order: Vec<u32>,
    /// What each node's outputs look like.
    pub descs: Vec<Vec<Desc>>,
    /// The graphs inside of a node: the branches, or condition and body.
    pub inner: HashMap<usize, Vec<Verified>>,
    /// Which values can be absent.
    pub presences: Presences,
}

impl Verified {
    pub fn desc(&self, (node, output): Value) -> &Desc {
        &self.descs[node][output]
    }
}

pub(super) fn verify(graph: &Contents, engines: &[Ref<Engine>], allow_absent: bool) -> Result<Verified> {
    if engines.is_empty() {
        return Err(Error::invalid("num_engines is 0, a program needs at least one engine"));
    }
    let inputs: Vec<Desc> = graph
        .inputs()
        .filter_map(|index| match &graph.nodes[index].body {
            Body::Input(desc) => Some(*desc),
            _ => None,
        })
        .collect();
    let verified = verify_inside(graph, engines, &inputs)?;
    if !allow_absent {
        verified.presences.check_outputs(graph, "unless the compile options allow it")?;
    }
    Ok(verified)
}

/// A graph whose inputs look like `inputs`, which those of an inner graph must match.
fn verify_inside(graph: &Contents, engines: &[Ref<Engine>], inputs: &[Desc]) -> Result<Verified> {
    check_engines(graph, engines)?;
    let order = order(graph)?;
    let mut verified = Verified {
        order,
        descs: vec![Vec::new(); graph.nodes.len()],
        inner: HashMap::new(),
        presences: Presences::default(),
    };
    for (i, index) in graph.inputs().enumerate() {
        let Body::Input(desc) = &graph.nodes[index].body else { continue };
        if !desc.matches(&inputs[i]) {
            return Err(Error::invalid(format!(
                "graph '{}' input {i} '{}': expected {}, got {}",
                graph.name,
                graph.nodes[index].name,
                desc.text(),
                inputs[i].text()
            )));
        }
    }
    // What is known outside of an inner graph is known inside, too.
    for (index, desc) in graph.inputs().zip(inputs) {
        verified.descs[index] = vec![*desc];
    }
    for at in 0..verified.order.len() {
        let index = verified.order[at] as usize;
        let node = &graph.nodes[index];
        // "node 'conv1' input 2: expected ...", without a colon between name and input.
        let named = |error: Error| Error::new(error.code(), format!("node '{}' {}", node.name, error.message()));
        let descs = infer(node, &mut verified, engines, index).map_err(named)?;
        verified.descs[index] = descs;
    }
    verified.presences = presence::find(graph, &verified.order);
    Ok(verified)
}

fn check_engines(graph: &Contents, engines: &[Ref<Engine>]) -> Result<()> {
    for node in &graph.nodes {
        let engine = match &node.body {
            Body::Kernel { kernel, .. } => kernel.engine(),
            Body::Constant(tensor) => tensor.engine(),
            _ => continue,
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

/// Refuses kernels that may block, for programs that have no pool for them.
pub(super) fn check_blocking(graph: &Contents) -> Result<()> {
    for node in &graph.nodes {
        if matches!(&node.body, Body::Kernel { kernel, .. } if kernel.kernel().may_block()) {
            return Err(Error::precondition(format!(
                "node '{}' may block a worker of the pool; give a blocking lane (weir_compile_options_set_blocking_threadpool)",
                node.name
            )));
        }
        for inner in node.inner() {
            check_blocking(inner)
                .map_err(|error| Error::new(error.code(), format!("in graph '{}': {}", inner.name, error.message())))?;
        }
    }
    Ok(())
}

/// What a node waits for, with and without data.
pub(in crate::graph) fn predecessors(node: &Node) -> impl Iterator<Item = usize> {
    node.inputs().iter().map(|&(producer, _)| producer).chain(node.after.iter().copied())
}

/// An order in which every node comes after what it waits for: that in which they were added, if it is one; else by
/// Kahn's algorithm, first come, first served.
fn order(graph: &Contents) -> Result<Vec<u32>> {
    let n = graph.nodes.len();
    let goes_up = |(index, node): (usize, &Node)| predecessors(node).all(|before| before < index);
    if graph.nodes.iter().enumerate().all(goes_up) {
        return Ok((0..n as u32).collect());
    }
    let mut waiting = vec![0usize; n];
    let mut successors = vec![Vec::new(); n];
    for (index, node) in graph.nodes.iter().enumerate() {
        for before in predecessors(node) {
            waiting[index] += 1;
            successors[before].push(index as u32);
        }
    }
    let mut order: Vec<u32> = (0..n as u32).filter(|&index| waiting[index as usize] == 0).collect();
    let mut at = 0;
    while at < order.len() {
        for &next in &successors[order[at] as usize] {
            waiting[next as usize] -= 1;
            if waiting[next as usize] == 0 {
                order.push(next);
            }
        }
        at += 1;
    }
    if order.len() < n { Err(cycle(graph, &waiting)) } else { Ok(order) }
}

/// Words a cycle among the nodes that still wait: 'a' -> 'b' -> 'a'.
fn cycle(graph: &Contents, waiting: &[usize]) -> Error {
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

/// What a node's outputs look like. What its inputs are is known already.
fn infer(node: &Node, verified: &mut Verified, engines: &[Ref<Engine>], index: usize) -> Result<Vec<Desc>> {
    let inputs = || -> Vec<Desc> { node.inputs().iter().map(|&value| *verified.desc(value)).collect() };
    match &node.body {
        Body::Input(_) => Ok(verified.descs[index].clone()),
        Body::Constant(tensor) => Ok(vec![*tensor.desc()]),
        Body::Task { .. } => Ok(Vec::new()),
        Body::Kernel { kernel, .. } => kernel.infer_unnamed(&inputs()),
        Body::Switch { .. } => {
            let inputs = inputs();
            check_selector("predicate", &inputs[1])?;
            Ok(vec![inputs[0]; 2])
        }
        Body::Merge { .. } => {
            let inputs = inputs();
            let mut value = inputs[0];
            for (i, desc) in inputs.iter().enumerate() {
                value = value.join(desc).ok_or_else(|| mismatch(&format!("input {i}"), &value, desc))?;
            }
            Ok(vec![value, Desc::new(dtype::S32, &[1])])
        }
        Body::Case { branches, is_cond, .. } => {
            let inputs = inputs();
            check_selector(if *is_cond { "predicate" } else { "index" }, &inputs[0])?;
            let inner = verify_branches(branches, engines, &inputs[1..])?;
            let outputs = joined(branches, &inner)?;
            verified.inner.insert(index, inner);
            Ok(outputs)
        }
        Body::While { condition, body, num_variables, .. } => {
            let mut inputs = inputs();
            declare_variables(body, &mut inputs[..*num_variables]);
            let inner = verify_loop(condition, body, engines, &inputs, *num_variables)?;
            verified.inner.insert(index, inner);
            Ok(inputs[..*num_variables].to_vec())
        }
    }
}

fn verify_branches(branches: &[Arc<Contents>], engines: &[Ref<Engine>], inputs: &[Desc]) -> Result<Vec<Verified>> {
    let mut all = Vec::with_capacity(branches.len());
    for branch in branches {
        all.push(verify_inner(branch, engines, inputs)?);
    }
    Ok(all)
}

/// The outputs of a choice: what those of all branches have in common.
fn joined(branches: &[Arc<Contents>], all: &[Verified]) -> Result<Vec<Desc>> {
    let mut joined = outputs(&branches[0], &all[0]);
    for (branch, verified) in branches.iter().zip(all) {
        for (i, (want, have)) in joined.iter_mut().zip(&outputs(branch, verified)).enumerate() {
            let Some(both) = want.join(have) else {
                return Err(mismatch(&format!("graph '{}' output {i}", branch.name), want, have));
            };
            *want = both;
        }
    }
    Ok(joined)
}

/// A variable is what the body declares for it, which may leave open what its first value settles. Where they do not
/// agree, the body refuses it.
fn declare_variables(body: &Contents, variables: &mut [Desc]) {
    for (index, variable) in body.inputs().zip(variables) {
        match &body.nodes[index].body {
            Body::Input(desc) if desc.matches(variable) => *variable = *desc,
            _ => {}
        }
    }
}

fn verify_loop(
    condition: &Contents,
    body: &Contents,
    engines: &[Ref<Engine>],
    inputs: &[Desc],
    num_variables: usize,
) -> Result<Vec<Verified>> {
    let all = vec![verify_inner(condition, engines, inputs)?, verify_inner(body, engines, inputs)?];
    check_selector(&format!("graph '{}' output 0", condition.name), &outputs(condition, &all[0])[0])?;
    let next = outputs(body, &all[1]);
    for i in 0..num_variables {
        if !inputs[i].matches(&next[i]) {
            return Err(mismatch(&format!("graph '{}' output {i}", body.name), &inputs[i], &next[i]));
        }
    }
    Ok(all)
}

fn verify_inner(graph: &Contents, engines: &[Ref<Engine>], inputs: &[Desc]) -> Result<Verified> {
    let named = |error: Error| Error::new(error.code(), format!("in graph '{}': {}", graph.name, error.message()));
    let verified = verify_inside(graph, engines, inputs).map_err(named)?;
    verified.presences.check_outputs(graph, "in a graph inside of another one")?;
    Ok(verified)
}

fn outputs(graph: &Contents, verified: &Verified) -> Vec<Desc> {
    graph.outputs.iter().map(|(_, value)| *verified.desc(*value)).collect()
}

/// A predicate or an index: one element of an integer type.
fn check_selector(what: &str, desc: &Desc) -> Result<()> {
    let legal = [dtype::BOOL, dtype::U8, dtype::S8, dtype::S32].contains(&desc.dtype);
    if legal && desc.is_concrete() && desc.elements()? == 1 {
        return Ok(());
    }
    Err(Error::invalid(format!("{what}: expected one element of bool, u8, s8 or s32, got {}", desc.text())))
}

fn mismatch(what: &str, want: &Desc, have: &Desc) -> Error {
    Error::invalid(format!("{what}: expected {}, got {}", want.text(), have.text()))
}

//! Checks of a whole graph: engines, cycles, types and shapes, absent values. Every refusal names the nodes.
#![forbid(unsafe_code)]

use super::contents::{Contents, Node, NodeBody, Value};
use super::presence::{self, Presences};
use super::shapes::{Answers, NodeShapes, Recent};
use crate::base::{Desc, Error, Ref, Result, Successors, dtype};
use crate::engine::Engine;
use crate::kernel::Kernel;
use crate::memory::heap;
use std::collections::HashMap;
use std::sync::Arc;

/// A graph that passed, or one nested in it.
pub(in crate::graph) struct Verified {
    /// Every node comes after its predecessors.
    pub order: Vec<u32>,
    /// The predecessors of each node.
    pub links: Links,
    /// The kinds of nodes in it, nested graphs included.
    pub kinds: Kinds,
    /// The descriptors of each node's outputs.
    pub descs: NodeShapes,
    /// The graphs nested in a node: the branches, or condition and body.
    pub inner: HashMap<usize, Vec<Verified>>,
    /// Which values can be absent.
    pub presences: Presences,
}

impl Verified {
    pub fn desc(&self, (node, output): Value) -> &Desc {
        &self.descs[node][output]
    }

    /// Has a compile keep the kernels' answers for this graph and nested ones, before a pass rewrites it.
    pub fn keep_answers(&self, graph: &Contents, answers: &mut Answers) -> Result<()> {
        answers.keep();
        let mut inputs = Vec::new();
        for (index, node) in graph.nodes.iter().enumerate() {
            let NodeBody::Kernel { kernel, inputs: values, .. } = &node.body else { continue };
            inputs.clear();
            inputs.extend(values.iter().map(|&value| *self.desc(value)));
            answers.put(kernel.kernel(), &inputs, &self.descs[index])?;
        }
        for (&index, inner) in &self.inner {
            for (graph, verified) in graph.nodes[index].inner().zip(inner) {
                verified.keep_answers(graph, answers)?;
            }
        }
        Ok(())
    }

    fn has_inside(&mut self, node: usize, inner: Vec<Verified>) {
        self.kinds.add(Kinds::COMPOUND);
        inner.iter().for_each(|inner| self.kinds.add(inner.kinds));
        self.inner.insert(node, inner);
    }
}

/// The kinds of nodes in a graph, so that a pass that looks for another kind can skip the graph.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::graph) struct Kinds(u8);

impl Kinds {
    pub const KERNEL: Kinds = Kinds(1);
    pub const CONSTANT: Kinds = Kinds(2);
    /// A cond, case or while.
    pub const COMPOUND: Kinds = Kinds(4);
    pub const SWITCH: Kinds = Kinds(8);
    /// A kernel that has effects besides its outputs.
    pub const EFFECT: Kinds = Kinds(16);
    /// A kernel that may block.
    pub const BLOCKING: Kinds = Kinds(32);
    pub const PURE: Kinds = Kinds(64);
    /// An input or a merge.
    pub const OTHER: Kinds = Kinds(128);

    /// Whether the graph has any of these.
    pub fn has(self, any: Kinds) -> bool {
        self.0 & any.0 != 0
    }

    /// Whether the graph has only tasks.
    pub fn is_tasks(self) -> bool {
        self.0 == 0
    }

    pub const fn or(self, other: Kinds) -> Kinds {
        Kinds(self.0 | other.0)
    }

    fn add(&mut self, kinds: Kinds) {
        self.0 |= kinds.0;
    }
}

/// The predecessors of all nodes in one list: a node's data inputs come first.
#[derive(Default)]
pub(in crate::graph) struct Links {
    starts: Vec<u32>,
    before: Vec<u32>,
}

impl Links {
    /// Also refuses nodes on engines that are not listed. The flag says whether every node comes after its
    /// predecessors.
    fn new(graph: &Contents, engines: &[Ref<Engine>]) -> Result<(Links, bool)> {
        let n = graph.nodes.len();
        let mut links = Links { starts: heap::room(n + 1, "the graph's edges")?, before: Vec::with_capacity(2 * n) };
        let (mut goes_up, mut last) = (true, None);
        for (index, node) in graph.nodes.iter().enumerate() {
            check_engine(node, engines, &mut last)?;
            links.starts.push(links.before.len() as u32);
            for before in node.predecessors() {
                goes_up &= before < index;
                links.before.push(before as u32);
            }
        }
        links.starts.push(links.before.len() as u32);
        Ok((links, goes_up))
    }

    pub fn of(&self, node: usize) -> &[u32] {
        &self.before[self.starts[node] as usize..self.starts[node + 1] as usize]
    }

    /// The reverse: the successors of each node among those that count.
    pub fn successors(&self, counts: impl Fn(usize) -> bool + Clone) -> Successors {
        let nodes = (0..self.starts.len() - 1).filter(move |&node| counts(node));
        let edges = nodes.flat_map(|node| self.of(node).iter().map(move |&before| (before as usize, node)));
        Successors::new(self.starts.len() - 1, edges)
    }
}

/// Checks a graph. `answers` is one compile's, which verifies each graph that a pass has written anew.
pub(in crate::graph) fn verify(
    graph: &Contents,
    engines: &[Ref<Engine>],
    allow_absent: bool,
    answers: &mut Answers,
) -> Result<Verified> {
    if engines.is_empty() {
        return Err(Error::invalid("num_engines is 0, a program needs at least one engine"));
    }
    let inputs: Vec<Desc> = graph
        .inputs()
        .filter_map(|index| match &graph.nodes[index].body {
            NodeBody::Input(desc) => Some(*desc),
            _ => None,
        })
        .collect();
    let verified = verify_inside(graph, &mut VerifyContext { engines, answers }, &inputs)?;
    if !allow_absent {
        verified.presences.check_outputs(graph, "unless the compile options allow it")?;
    }
    Ok(verified)
}

/// The common state of the checks of a graph and of nested ones.
struct VerifyContext<'a> {
    engines: &'a [Ref<Engine>],
    answers: &'a mut Answers,
}

/// A graph whose inputs are `inputs`; those of a nested graph must match them.
fn verify_inside(graph: &Contents, context: &mut VerifyContext<'_>, inputs: &[Desc]) -> Result<Verified> {
    let (links, goes_up) = Links::new(graph, context.engines)?;
    let order = if goes_up { (0..graph.nodes.len() as u32).collect() } else { order(graph, &links)? };
    let mut verified = Verified {
        order,
        links,
        kinds: Kinds::default(),
        descs: NodeShapes::of(graph.nodes.len()),
        inner: HashMap::new(),
        presences: Presences::default(),
    };
    for (i, index) in graph.inputs().enumerate() {
        let NodeBody::Input(desc) = &graph.nodes[index].body else { continue };
        // The inputs of a raised loop are inferred.
        if desc.dtype != dtype::ANY && !desc.matches(&inputs[i]) {
            return Err(Error::invalid(format!(
                "graph '{}' input {i} '{}': expected {}, got {}",
                graph.name,
                graph.nodes[index].name,
                desc.text(),
                inputs[i].text()
            )));
        }
    }
    // Shapes that are known outside of a nested graph are known inside as well.
    for (index, desc) in graph.inputs().zip(inputs) {
        verified.descs.set(index, std::slice::from_ref(desc));
    }
    let mut recent = Recent::default();
    for at in 0..verified.order.len() {
        let index = verified.order[at] as usize;
        let node = &graph.nodes[index];
        // "node 'conv1' input 2: expected ...", without a colon between name and input.
        let named = |error: Error| Error::new(error.code(), format!("node '{}' {}", node.name, error.message()));
        infer(node, &mut verified, context, index, &mut recent).map_err(named)?;
    }
    if verified.kinds.has(Kinds::SWITCH) {
        verified.presences = presence::find(graph, &verified.order);
    }
    Ok(verified)
}

/// `last` is the engine of the last node that passed.
fn check_engine<'a>(node: &'a Node, engines: &[Ref<Engine>], last: &mut Option<&'a Ref<Engine>>) -> Result<()> {
    let engine = match &node.body {
        NodeBody::Kernel { kernel, .. } => kernel.engine(),
        NodeBody::Constant(tensor) => tensor.engine(),
        _ => return Ok(()),
    };
    if last.is_some_and(|last| Ref::ptr_eq(last, engine)) {
        return Ok(());
    }
    if !engines.iter().any(|listed| listed.is_same_device(engine)) {
        return Err(Error::invalid(format!(
            "node '{}': its engine {} is not among the engines of the program",
            node.name,
            engine.label()
        )));
    }
    *last = Some(engine);
    Ok(())
}

/// Refuses inputs and outputs on engines for which the program is not compiled.
pub(in crate::graph) fn check_homes(graph: &Contents, engines: &[Ref<Engine>]) -> Result<()> {
    let is_listed = |home: &Ref<Engine>| engines.iter().any(|engine| engine.is_same_device(home));
    let refuse = |what: &str, name: &str, home: &Ref<Engine>| {
        let label = home.label();
        Err(Error::invalid(format!("{what} '{name}': its engine {label} is not among the engines of the program")))
    };
    for (number, index) in graph.inputs().enumerate() {
        match graph.homes.input(number) {
            Some(home) if !is_listed(home) => return refuse("input", &graph.nodes[index].name, home),
            _ => {}
        }
    }
    for (number, (name, _)) in graph.outputs.iter().enumerate() {
        match graph.homes.output(number) {
            Some(home) if !is_listed(home) => return refuse("output", name, home),
            _ => {}
        }
    }
    Ok(())
}

/// Refuses kernels that may block in programs without a pool for them.
pub(in crate::graph) fn check_blocking(graph: &Contents) -> Result<()> {
    for node in &graph.nodes {
        if matches!(&node.body, NodeBody::Kernel { kernel, .. } if kernel.kernel().may_block()) {
            return Err(Error::precondition(format!(
                "node '{}' may block a worker of the pool; give a blocking lane \
                 (weir_compile_options.blocking_threadpool)",
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

/// Whether the node has to run even if nothing uses its outputs.
pub(in crate::graph) fn has_effects(node: &Node) -> bool {
    match &node.body {
        NodeBody::Task { .. } => true,
        NodeBody::Kernel { kernel, num_outputs, .. } => {
            let kernel = kernel.kernel();
            let has_more = kernel.has_side_effects() || !kernel.effects().is_empty();
            *num_outputs == 0 || kernel.is_relied_on() || has_more
        }
        _ => node.inner().any(|inner| inner.nodes.iter().any(has_effects)),
    }
}

/// A topological order, for graphs whose nodes were not added in one.
fn order(graph: &Contents, links: &Links) -> Result<Vec<u32>> {
    let n = graph.nodes.len();
    let order = links.successors(|_| true).first_come(0..n);
    if order.len() < n { Err(cycle(graph, &order)) } else { Ok(order) }
}

/// Describes a cycle among the nodes that have no place in the order: 'a' -> 'b' -> 'a'.
fn cycle(graph: &Contents, order: &[u32]) -> Error {
    let mut waits = vec![true; graph.nodes.len()];
    order.iter().for_each(|&node| waits[node as usize] = false);
    // Every node that still waits has a predecessor that does, so walking back must meet a node again.
    let mut path = Vec::new();
    let mut seen = vec![false; graph.nodes.len()];
    let mut at = waits.iter().position(|&waits| waits).unwrap_or(0);
    while !seen[at] {
        seen[at] = true;
        path.push(at);
        at = graph.nodes[at].predecessors().find(|&before| waits[before]).unwrap_or(at);
    }
    let start = path.iter().position(|&index| index == at).unwrap_or(0);
    let mut text = format!("'{}'", graph.nodes[at].name);
    for &index in path[start..].iter().rev() {
        text.push_str(&format!(" -> '{}'", graph.nodes[index].name));
    }
    Error::invalid(format!("graph '{}' has a cycle: {text}", graph.name))
}

/// Infers the descriptors of a node's outputs. Those of its inputs are known already.
fn infer<'a>(
    node: &'a Node,
    verified: &mut Verified,
    context: &mut VerifyContext<'_>,
    index: usize,
    recent: &mut Recent<'a>,
) -> Result<()> {
    let inputs =
        |verified: &Verified| -> Vec<Desc> { node.inputs().iter().map(|&value| *verified.desc(value)).collect() };
    match &node.body {
        NodeBody::Task { .. } => {}
        NodeBody::Cyclic { .. } => return Err(Error::internal("was not raised")),
        // Its descriptor is known from outside.
        NodeBody::Input(_) => verified.kinds.add(Kinds::OTHER),
        NodeBody::Constant(tensor) => {
            verified.kinds.add(Kinds::CONSTANT);
            verified.descs.set(index, std::slice::from_ref(tensor.desc()));
        }
        NodeBody::Kernel { kernel, inputs, .. } => {
            verified.kinds.add(kinds_of(&**kernel.kernel()));
            recent.inputs.clear();
            recent.inputs.extend(inputs.iter().map(|&value| *verified.desc(value)));
            recent.set(&mut verified.descs, index, kernel, context.answers)?;
        }
        NodeBody::Switch { .. } => {
            verified.kinds.add(Kinds::SWITCH);
            let inputs = inputs(verified);
            check_selector("predicate", &inputs[1])?;
            verified.descs.set(index, &[inputs[0]; 2]);
        }
        NodeBody::Merge { .. } => {
            verified.kinds.add(Kinds::OTHER);
            let inputs = inputs(verified);
            let mut value = inputs[0];
            for (i, desc) in inputs.iter().enumerate() {
                value = value.join(desc).ok_or_else(|| mismatch(&format!("input {i}"), &value, desc))?;
            }
            verified.descs.set(index, &[value, Desc::new(dtype::S32, &[1])]);
        }
        NodeBody::Case { branches, is_cond, .. } => {
            let inputs = inputs(verified);
            check_selector(if *is_cond { "predicate" } else { "index" }, &inputs[0])?;
            let inner = verify_branches(branches, context, &inputs[1..])?;
            verified.descs.set(index, &joined(branches, &inner)?);
            verified.has_inside(index, inner);
        }
        NodeBody::While { condition, body, num_variables, copies, .. } => {
            let mut inputs = inputs(verified);
            let mut inner = match is_settled(body) {
                true => {
                    declare_variables(body, &mut inputs[..*num_variables]);
                    verify_loop(condition, body, context, &inputs, *num_variables)?
                }
                false => settle_loop(condition, body, context, &mut inputs)?,
            };
            for [condition, body] in copies {
                inner.extend(verify_loop(condition, body, context, &inputs, *num_variables)?);
            }
            verified.descs.set(index, &inputs[..*num_variables]);
            verified.has_inside(index, inner);
        }
    }
    Ok(())
}

fn kinds_of(kernel: &dyn Kernel) -> Kinds {
    let mut kinds = Kinds::KERNEL;
    let has = [(kernel.may_block(), Kinds::BLOCKING), (kernel.is_pure(), Kinds::PURE)];
    has.into_iter().filter(|(has, _)| *has).for_each(|(_, kind)| kinds.add(kind));
    if !kernel.effects().is_empty() {
        kinds.add(Kinds::EFFECT);
    }
    kinds
}

fn verify_branches(
    branches: &[Arc<Contents>],
    context: &mut VerifyContext<'_>,
    inputs: &[Desc],
) -> Result<Vec<Verified>> {
    let mut all = Vec::with_capacity(branches.len());
    for branch in branches {
        all.push(verify_inner(branch, context, inputs)?);
    }
    Ok(all)
}

/// The outputs of a choice: the common part of all branches' outputs.
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

/// A variable has the descriptor that the body declares for it. The body may leave open a size that the first value
/// settles. The body refuses a first value that does not match.
fn declare_variables(body: &Contents, variables: &mut [Desc]) {
    for (index, variable) in body.inputs().zip(variables) {
        match &body.nodes[index].body {
            NodeBody::Input(desc) if desc.matches(variable) => *variable = *desc,
            _ => {}
        }
    }
}

/// Whether the graph declares the descriptors of its inputs.
fn is_settled(graph: &Contents) -> bool {
    graph.inputs().all(|index| !matches!(&graph.nodes[index].body, NodeBody::Input(desc) if desc.dtype == dtype::ANY))
}

/// Infers the variables of a loop from their first values. A size that differs from one iteration to the next is left
/// open. Each round leaves more open, so this ends.
fn settle_loop(
    condition: &Contents,
    body: &Contents,
    context: &mut VerifyContext<'_>,
    inputs: &mut [Desc],
) -> Result<Vec<Verified>> {
    // Kernels with the same inputs in the next round are not asked again.
    context.answers.keep();
    loop {
        let verified = verify_inner(body, context, inputs)?;
        let mut is_settled = true;
        let ports: Vec<usize> = body.inputs().collect();
        for (i, next) in outputs(body, &verified).iter().enumerate() {
            let Some(both) = inputs[i].widen(next) else {
                let what = format!("loop merge '{}'", body.nodes[ports[i]].name);
                return Err(mismatch(&what, &inputs[i], next));
            };
            is_settled &= both == inputs[i];
            inputs[i] = both;
        }
        if is_settled {
            // The body is not verified again: nested loops would be verified exponentially often.
            let of_condition = verify_inner(condition, context, inputs)?;
            check_predicate(condition, &of_condition)?;
            return Ok(vec![of_condition, verified]);
        }
    }
}

fn verify_loop(
    condition: &Contents,
    body: &Contents,
    context: &mut VerifyContext<'_>,
    inputs: &[Desc],
    num_variables: usize,
) -> Result<Vec<Verified>> {
    let all = vec![verify_inner(condition, context, inputs)?, verify_inner(body, context, inputs)?];
    check_predicate(condition, &all[0])?;
    let next = outputs(body, &all[1]);
    for i in 0..num_variables {
        if !inputs[i].matches(&next[i]) {
            return Err(mismatch(&format!("graph '{}' output {i}", body.name), &inputs[i], &next[i]));
        }
    }
    Ok(all)
}

fn check_predicate(condition: &Contents, verified: &Verified) -> Result<()> {
    check_selector(&format!("graph '{}' output 0", condition.name), &outputs(condition, verified)[0])
}

fn verify_inner(graph: &Contents, context: &mut VerifyContext<'_>, inputs: &[Desc]) -> Result<Verified> {
    let named = |error: Error| Error::new(error.code(), format!("in graph '{}': {}", graph.name, error.message()));
    let verified = verify_inside(graph, context, inputs).map_err(named)?;
    verified.presences.check_outputs(graph, "in a graph inside of another one")?;
    Ok(verified)
}

fn outputs(graph: &Contents, verified: &Verified) -> Vec<Desc> {
    graph.outputs.iter().map(|(_, value)| *verified.desc(*value)).collect()
}

/// Refuses a predicate or an index that is not one element of an integer type.
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

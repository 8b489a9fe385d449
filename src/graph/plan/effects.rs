//! In which order a graph reads and writes what is not its own: variables.
//!
//! The edges say it: data or control, from one node to the other, however far. Between two that touch the same
//! variable, and of which one writes it, there must be such a path. A cond or a loop touches what the nodes inside of
//! it do. Its values come and go one by one, so an edge with data says nothing about a node inside that the data does
//! not pass through: there only control edges count, which wait for all of it, and which all of it waits for. The
//! branches of a cond need no order among themselves, because one of them runs; the iterations of a loop run one after
//! the other (`overlap`).
#![forbid(unsafe_code)]

use crate::base::{Error, Result};
use crate::graph::build::contents::{Contents, Node, NodeBody};
use crate::graph::build::verify::{Kinds, Verified};
use crate::kernel::Effect;
use std::collections::BTreeMap;

/// All that nodes of a graph do besides their values, those inside of others too: with the path of the node,
/// "loop/step".
fn each(graph: &Contents, prefix: &str, f: &mut dyn FnMut(&str, &Effect)) {
    for node in &graph.nodes {
        of_node(node, prefix, f);
    }
}

fn of_node(node: &Node, prefix: &str, f: &mut dyn FnMut(&str, &Effect)) {
    if let NodeBody::Kernel { kernel, .. } = &node.body
        && !kernel.kernel().effects().is_empty()
    {
        let path = format!("{prefix}{}", node.name);
        kernel.kernel().effects().iter().for_each(|effect| f(&path, effect));
    }
    for inner in node.inner() {
        if has_any(inner) {
            each(inner, &format!("{prefix}{}/", node.name), f);
        }
    }
}

fn has_any(graph: &Contents) -> bool {
    let is_one = |node: &Node| match &node.body {
        NodeBody::Kernel { kernel, .. } => !kernel.kernel().effects().is_empty(),
        _ => node.inner().any(|inner| has_any(inner)),
    };
    graph.nodes.iter().any(is_one)
}

/// Whether something in a graph has an order that iterations must keep.
pub(in crate::graph) fn is_ordered(graph: &Contents) -> bool {
    let mut ordered = false;
    each(graph, "", &mut |_, effect| ordered |= effect.is_ordered);
    ordered
}

/// The effects of a program on things outside, each once: it writes what any of its nodes writes.
pub(in crate::graph) fn of(graph: &Contents, verified: &Verified) -> Vec<Effect> {
    if !verified.kinds.has(Kinds::EFFECT) {
        return Vec::new();
    }
    let mut all: BTreeMap<u64, Effect> = BTreeMap::new();
    each(graph, "", &mut |_, effect| {
        all.entry(effect.thing).or_insert_with(|| effect.clone()).writes |= effect.writes;
    });
    all.into_values().collect()
}

/// A node of a graph that touches a thing, itself or inside of it.
struct EffectTouch {
    node: usize,
    /// The node that does it, and whether it, or another one in there, writes.
    path: String,
    writes: bool,
}

/// Refuses a graph in which what is written has no order with what else touches it.
pub(in crate::graph) fn check(graph: &Contents, verified: &Verified) -> Result<()> {
    if !verified.kinds.has(Kinds::EFFECT) {
        return Ok(());
    }
    for inner in graph.nodes.iter().enumerate().flat_map(|(index, node)| {
        let of = verified.inner.get(&index).map_or(&[][..], Vec::as_slice);
        node.inner().zip(of)
    }) {
        let (inner, verified) = inner;
        check(inner, verified)
            .map_err(|error| Error::new(error.code(), format!("in graph '{}': {}", inner.name, error.message())))?;
    }
    // Along the order, so that a path leads forward.
    let mut things: BTreeMap<u64, (Effect, Vec<EffectTouch>)> = BTreeMap::new();
    let mut position = vec![0u32; graph.nodes.len()];
    for (at, &index) in verified.order.iter().enumerate() {
        let index = index as usize;
        position[index] = at as u32;
        of_node(&graph.nodes[index], "", &mut |path, effect| {
            if !effect.is_ordered {
                return;
            }
            let (_, touches) = things.entry(effect.thing).or_insert_with(|| (effect.clone(), Vec::new()));
            match touches.last_mut().filter(|last| last.node == index) {
                Some(last) if effect.writes && !last.writes => (last.path, last.writes) = (path.to_owned(), true),
                Some(_) => {}
                None => touches.push(EffectTouch { node: index, path: path.to_owned(), writes: effect.writes }),
            }
        });
    }
    let mut paths = Paths::new(graph, &position);
    things.values().try_for_each(|(thing, touches)| check_thing(thing, touches, &mut paths))
}

/// Writes must follow one another, and between two of them all reads must follow the first and come before the second:
/// then all others do, too.
fn check_thing(thing: &Effect, touches: &[EffectTouch], paths: &mut Paths<'_>) -> Result<()> {
    let writes: Vec<usize> = (0..touches.len()).filter(|&i| touches[i].writes).collect();
    for (i, &write) in writes.iter().enumerate() {
        let next = writes.get(i + 1).copied();
        // The reads before the first write, and everything up to the next one.
        let before = if i == 0 { 0..write } else { 0..0 };
        for read in before {
            paths.demand(&touches[read], &touches[write], thing)?;
        }
        for after in write + 1..next.map_or(touches.len(), |next| next + 1) {
            paths.demand(&touches[write], &touches[after], thing)?;
        }
        if let Some(next) = next {
            for read in write + 1..next {
                paths.demand(&touches[read], &touches[next], thing)?;
            }
        }
    }
    Ok(())
}

/// Finds out whether one node is done before another begins.
struct Paths<'a> {
    graph: &'a Contents,
    position: &'a [u32],
    /// The data and the control edges that leave each node.
    successors: Vec<Vec<(u32, bool)>>,
    /// The search in which a node was last met.
    met: Vec<u32>,
    searches: u32,
    stack: Vec<usize>,
}

impl<'a> Paths<'a> {
    fn new(graph: &'a Contents, position: &'a [u32]) -> Paths<'a> {
        let mut successors = vec![Vec::new(); graph.nodes.len()];
        for (index, node) in graph.nodes.iter().enumerate() {
            node.inputs().iter().for_each(|&(from, _)| successors[from].push((index as u32, false)));
            node.after.iter().for_each(|&from| successors[from].push((index as u32, true)));
        }
        Paths { graph, position, successors, met: vec![0; graph.nodes.len()], searches: 0, stack: Vec::new() }
    }

    fn is_compound(&self, node: usize) -> bool {
        matches!(self.graph.nodes[node].body, NodeBody::Case { .. } | NodeBody::While { .. })
    }

    fn is_before(&mut self, from: usize, to: usize) -> bool {
        self.searches += 1;
        self.stack.clear();
        self.stack.push(from);
        let (control_out, control_in) = (self.is_compound(from), self.is_compound(to));
        while let Some(node) = self.stack.pop() {
            for i in 0..self.successors[node].len() {
                let (next, is_control) = self.successors[node][i];
                let next = next as usize;
                if node == from && control_out && !is_control {
                    continue;
                }
                if next == to && (is_control || !control_in) {
                    return true;
                }
                if self.met[next] != self.searches && self.position[next] < self.position[to] {
                    self.met[next] = self.searches;
                    self.stack.push(next);
                }
            }
        }
        false
    }

    fn demand(&mut self, first: &EffectTouch, second: &EffectTouch, thing: &Effect) -> Result<()> {
        let Effect { name, remedy, .. } = thing;
        if self.is_before(first.node, second.node) {
            return Ok(());
        }
        let does = |touch: &EffectTouch| if touch.writes { "writes" } else { "reads" };
        Err(Error::invalid(format!(
            "node '{}' {} {name} and node '{}' {} it, in no order: {remedy}",
            first.path,
            does(first),
            second.path,
            does(second)
        )))
    }
}

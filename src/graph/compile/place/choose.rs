//! Which engine does a node, where the caller leaves that open: a pure function of the graph and the list of engines.
//!
//! Nodes are looked at one by one, each behind what it reads. A node goes where the fewest bytes have to cross: those
//! of inputs that are elsewhere and not copied there for another node already, and those of outputs that are known to
//! be wanted elsewhere, by the graph's outputs and by nodes whose engine is settled. Constants of the host's are copied
//! once in a program's life and count as nothing. Of equals the first in the list is taken; if it has no such kernel,
//! the next.
#![forbid(unsafe_code)]

use crate::base::{Ref, Result};
use crate::engine::{BoundKernel, Engine};
use crate::graph::build::contents::{Contents, Node, NodeBody, Value};
use crate::graph::build::verify::Verified;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt::Write as _;
use std::sync::Arc;

/// Where a node is that was left open, and why.
#[derive(Clone, Debug)]
pub struct EngineChoice {
    /// "loop/step" for one inside of another.
    pub node: String,
    pub engine: String,
    pub why: String,
}

struct Chooser<'a> {
    /// One for each memory, the program's order.
    places: Vec<&'a Ref<Engine>>,
    host: usize,
    /// Whether nodes are open unless the graph says otherwise.
    by_default: bool,
    choices: Vec<EngineChoice>,
}

/// The graph with the nodes that are open on engines; None if there is none.
pub(in crate::graph) fn choose(
    contents: &Contents,
    verified: &Verified,
    engines: &[Ref<Engine>],
    by_default: bool,
) -> Result<Option<(Contents, Vec<EngineChoice>)>> {
    let mut places: Vec<&Ref<Engine>> = Vec::new();
    for engine in engines {
        if !places.iter().any(|place| place.is_same_device(engine)) {
            places.push(engine);
        }
    }
    let Some(host) = places.iter().position(|place| place.accelerator().is_none()) else { return Ok(None) };
    if places.len() < 2 || !has_open(contents, by_default) {
        return Ok(None);
    }
    let mut chooser = Chooser { places, host, by_default, choices: Vec::new() };
    let contents = chooser.graph(contents, verified, "")?;
    Ok(Some((contents, chooser.choices)))
}

fn is_open(contents: &Contents, node: usize, by_default: bool) -> bool {
    matches!(contents.nodes[node].body, NodeBody::Kernel { .. }) && contents.homes.is_open(node).unwrap_or(by_default)
}

fn has_open(contents: &Contents, by_default: bool) -> bool {
    (0..contents.nodes.len()).any(|node| is_open(contents, node, by_default))
        || contents.nodes.iter().flat_map(Node::inner).any(|inner| has_open(inner, by_default))
}

/// The state of one graph while its nodes are looked at.
struct Choosing<'a> {
    verified: &'a Verified,
    /// Where each node's values are; None: not settled, or a constant that costs nothing.
    at: Vec<Option<usize>>,
    /// Places where a value is wanted that is not there, as far as is known.
    wanted: HashMap<Value, BTreeSet<usize>>,
    /// Places that a value is copied to.
    copied: HashSet<(Value, usize)>,
}

impl Choosing<'_> {
    /// Bytes that cross if the node is done there.
    fn crossing(&self, index: usize, node: &Node, place: usize) -> Result<u64> {
        let mut bytes = 0;
        let inputs: BTreeSet<Value> = node.inputs().iter().copied().collect();
        for value in inputs {
            let is_elsewhere = self.at[value.0].is_some_and(|at| at != place);
            if is_elsewhere && !self.copied.contains(&(value, place)) {
                bytes += self.bytes(value)?;
            }
        }
        for output in 0..node.num_outputs() {
            let value = (index, output);
            let away = self.wanted.get(&value).map_or(0, |to| to.iter().filter(|&&to| to != place).count());
            bytes += away as u64 * self.bytes(value)?;
        }
        Ok(bytes)
    }

    fn bytes(&self, value: Value) -> Result<u64> {
        let desc = self.verified.desc(value);
        Ok(if desc.is_concrete() { desc.bytes()? as u64 } else { 0 })
    }
}

impl Chooser<'_> {
    fn place_of(&self, engine: &Engine) -> usize {
        self.places.iter().position(|place| place.is_same_device(engine)).unwrap_or(self.host)
    }

    fn graph(&mut self, old: &Contents, verified: &Verified, prefix: &str) -> Result<Contents> {
        let mut new = old.clone();
        let mut work = self.look(old, verified);
        for &index in &verified.order {
            let index = index as usize;
            let node = &old.nodes[index];
            if let Some(inner) = verified.inner.get(&index) {
                let prefix = format!("{prefix}{}/", node.name);
                for (graph, verified) in new.nodes[index].inner_mut().into_iter().zip(inner) {
                    *graph = Arc::new(self.graph(graph, verified, &prefix)?);
                }
            }
            if is_open(old, index, self.by_default)
                && let NodeBody::Kernel { kernel, .. } = &mut new.nodes[index].body
            {
                let is_known = node.inputs().iter().map(|&value| verified.desc(value)).chain(&verified.descs[index]);
                let may_move = is_known.into_iter().all(|desc| desc.is_concrete());
                let (place, why) = self.settle(&work, index, node, kernel, may_move)?;
                work.at[index] = Some(place);
                let engine = self.places[place].label();
                self.choices.push(EngineChoice { node: format!("{prefix}{}", node.name), engine, why });
            }
            let Some(here) = work.at[index] else { continue };
            for &value in node.inputs() {
                if work.at[value.0].is_some_and(|at| at != here) {
                    work.copied.insert((value, here));
                }
            }
        }
        Ok(new)
    }

    /// The places that are settled before any choice.
    fn look<'v>(&self, graph: &Contents, verified: &'v Verified) -> Choosing<'v> {
        let inputs: Vec<usize> = graph.inputs().collect();
        let home = |engine: Option<&Ref<Engine>>| engine.map_or(self.host, |engine| self.place_of(engine));
        let at = graph.nodes.iter().enumerate().map(|(index, node)| match &node.body {
            // They are in ascending order.
            NodeBody::Input(_) => {
                Some(home(inputs.binary_search(&index).ok().and_then(|number| graph.homes.input(number))))
            }
            NodeBody::Constant(tensor) => Some(self.place_of(tensor.engine())).filter(|&at| at != self.host),
            NodeBody::Kernel { .. } if is_open(graph, index, self.by_default) => None,
            NodeBody::Kernel { kernel, .. } => Some(self.place_of(kernel.engine())),
            _ => Some(self.host),
        });
        let at: Vec<Option<usize>> = at.collect();
        let mut wanted: HashMap<Value, BTreeSet<usize>> = HashMap::new();
        for (index, node) in graph.nodes.iter().enumerate() {
            let Some(here) = at[index] else { continue };
            for &value in node.inputs() {
                wanted.entry(value).or_default().insert(here);
            }
        }
        for (number, (_, value)) in graph.outputs.iter().enumerate() {
            wanted.entry(*value).or_default().insert(home(graph.homes.output(number)));
        }
        Choosing { verified, at, wanted, copied: HashSet::new() }
    }

    /// Puts a kernel on an engine.
    fn settle(
        &self,
        work: &Choosing<'_>,
        index: usize,
        node: &Node,
        kernel: &mut Ref<BoundKernel>,
        may_move: bool,
    ) -> Result<(usize, String)> {
        let own = self.place_of(kernel.engine());
        let mut all = Vec::new();
        for place in 0..self.places.len() {
            all.push((work.crossing(index, node, place)?, place));
        }
        all.sort_unstable();
        let mut refused = String::new();
        for &(bytes, place) in &all {
            let engine = self.places[place];
            let made = match place {
                _ if place != self.host && !may_move => {
                    let _ = write!(refused, "; not {}: it has shapes that only a run knows", engine.label());
                    continue;
                }
                _ if place == own => Ok(None),
                _ => kernel.on(engine).map(Some),
            };
            match made {
                Err(error) => drop(write!(refused, "; not {}: {}", engine.label(), error.message())),
                Ok(other) => {
                    if let Some(other) = other {
                        *kernel = other;
                    }
                    let others = all.iter().filter(|&&(_, other)| other != place);
                    let others = others.map(|&(bytes, other)| format!("{bytes} on {}", self.places[other].label()));
                    let others: Vec<String> = others.collect();
                    return Ok((place, format!("{bytes} bytes cross, {}{refused}", others.join(", "))));
                }
            }
        }
        Ok((own, format!("no other engine takes it{refused}")))
    }
}

//! Where a program's inputs and outputs are, in the memory of its own engine or of one that works on its own; and which
//! nodes may be done by any engine.
#![forbid(unsafe_code)]

use super::builder::{Body, Contents, Graph};
use super::ids::NodeId;
use crate::base::{Error, Ref, Result, with_article};
use crate::engine::Engine;
use std::collections::BTreeMap;

/// Engines of inputs and outputs, by number; those that are not there are the program's own.
#[derive(Clone, Debug, Default)]
pub(super) struct Homes {
    inputs: BTreeMap<usize, Ref<Engine>>,
    outputs: BTreeMap<usize, Ref<Engine>>,
    /// Nodes of which was said whether their engine is open.
    open: BTreeMap<usize, bool>,
}

impl Homes {
    pub fn input(&self, index: usize) -> Option<&Ref<Engine>> {
        self.inputs.get(&index)
    }

    pub fn output(&self, index: usize) -> Option<&Ref<Engine>> {
        self.outputs.get(&index)
    }

    /// The same for a graph that has these outputs only, in this order.
    pub fn of_outputs(&self, outputs: &[usize]) -> Homes {
        let kept = outputs.iter().enumerate();
        let outputs = kept.filter_map(|(new, old)| Some((new, Ref::clone(self.outputs.get(old)?)))).collect();
        Homes { inputs: self.inputs.clone(), outputs, open: BTreeMap::new() }
    }

    /// Whether a node's engine is open, if that was said.
    pub fn is_open(&self, node: usize) -> Option<bool> {
        self.open.get(&node).copied()
    }

    pub fn is_empty(&self) -> bool {
        self.inputs.is_empty() && self.outputs.is_empty()
    }
}

impl Graph {
    /// Runs are given this input in the memory of this engine. None: of the program's own.
    pub fn set_input_engine(&mut self, input: usize, engine: Option<Ref<Engine>>) -> Result<()> {
        check_index("input", input, self.num_inputs())?;
        put(&mut self.contents.homes.inputs, input, engine);
        Ok(())
    }

    /// The same for an output.
    pub fn set_output_engine(&mut self, output: usize, engine: Option<Ref<Engine>>) -> Result<()> {
        check_index("output", output, self.contents.outputs.len())?;
        put(&mut self.contents.homes.outputs, output, engine);
        Ok(())
    }

    /// Whether any engine may do a node. None: as the compile options say.
    pub fn set_open(&mut self, node: NodeId, open: Option<bool>) -> Result<()> {
        let index = self.index(node, "node")?;
        let node = &self.contents.nodes[index];
        if !matches!(node.body, Body::Kernel { .. }) {
            return Err(Error::invalid(format!(
                "node '{}' is {}, expected a kernel",
                node.name,
                with_article(node.kind())
            )));
        }
        match open {
            Some(open) => drop(self.contents.homes.open.insert(index, open)),
            None => drop(self.contents.homes.open.remove(&index)),
        }
        Ok(())
    }
}

fn check_index(what: &str, index: usize, all: usize) -> Result<()> {
    if index < all {
        return Ok(());
    }
    Err(Error::out_of_range(format!("{what} is {index}, the graph has {all} {what}s")))
}

fn put(homes: &mut BTreeMap<usize, Ref<Engine>>, index: usize, engine: Option<Ref<Engine>>) {
    match engine {
        Some(engine) => drop(homes.insert(index, engine)),
        None => drop(homes.remove(&index)),
    }
}

/// Refuses inputs and outputs on engines that the program is not compiled for.
pub(super) fn check(graph: &Contents, engines: &[Ref<Engine>]) -> Result<()> {
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

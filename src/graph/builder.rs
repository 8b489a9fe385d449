//! The builder: nodes in the order in which they were added.

use super::ids::{NodeId, ValueId};
use crate::base::object::tag;
use crate::base::{Code, Desc, Error, Kind, Ref, Result, live};
use crate::engine::{BoundKernel, Tensor};
use crate::kernel::{Task, signature};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What a node does.
pub(super) enum Body {
    Input(Desc),
    Constant(Ref<Tensor>),
    Kernel { kernel: Ref<BoundKernel>, inputs: Vec<(usize, usize)>, num_outputs: usize },
    Task { task: Arc<dyn Task>, cost_ns: u64 },
}

pub(super) struct Node {
    pub name: String,
    pub body: Body,
    /// Nodes that this one waits for without data.
    pub after: Vec<usize>,
}

impl Node {
    /// The word for dumps.
    pub fn kind(&self) -> &str {
        match &self.body {
            Body::Input(_) => "input",
            Body::Constant(_) => "constant",
            Body::Kernel { kernel, .. } => kernel.kernel().name(),
            Body::Task { .. } => "task",
        }
    }

    fn num_outputs(&self) -> usize {
        match &self.body {
            Body::Input(_) | Body::Constant(_) => 1,
            Body::Kernel { num_outputs, .. } => *num_outputs,
            Body::Task { .. } => 0,
        }
    }

    /// Node and output of each data input.
    pub fn inputs(&self) -> &[(usize, usize)] {
        match &self.body {
            Body::Kernel { inputs, .. } => inputs,
            _ => &[],
        }
    }
}

/// A graph under construction.
pub struct Graph {
    serial: u16,
    pub(super) name: String,
    pub(super) nodes: Vec<Node>,
    /// Name, node and output of each output of the graph.
    pub(super) outputs: Vec<(String, (usize, usize))>,
    names: HashMap<String, usize>,
}

impl Kind for Graph {
    const TAG: u32 = tag::GRAPH;
    const NAME: &'static str = "graph";
    const COUNTER: live::Counter = live::Counter::Graphs;
}

impl Graph {
    pub fn new(name: &str) -> Graph {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        // Never 0, so that a zeroed weir_value belongs to no graph.
        let serial = (NEXT.fetch_add(1, Relaxed) % 0xffff) as u16 + 1;
        Graph { serial, name: name.to_owned(), nodes: Vec::new(), outputs: Vec::new(), names: HashMap::new() }
    }

    pub fn add_input(&mut self, name: &str, desc: Desc) -> Result<ValueId> {
        let desc = desc.check().map_err(|error| error.within(format_args!("input '{name}': desc")))?;
        Ok(self.add(name, Body::Input(desc))?.output(0))
    }

    pub fn add_constant(&mut self, name: &str, tensor: Ref<Tensor>) -> Result<ValueId> {
        Ok(self.add(name, Body::Constant(tensor))?.output(0))
    }

    pub fn add_kernel(
        &mut self,
        name: &str,
        kernel: Ref<BoundKernel>,
        inputs: &[ValueId],
        num_outputs: usize,
    ) -> Result<NodeId> {
        let named = |error: Error| error.within(format_args!("node '{name}'"));
        signature::check_count("input", kernel.num_inputs(), inputs.len()).map_err(named)?;
        signature::check_count("output", kernel.num_outputs(), num_outputs).map_err(named)?;
        let mut resolved = Vec::with_capacity(inputs.len());
        for (i, value) in inputs.iter().enumerate() {
            resolved.push(self.resolve(*value, &format!("node '{name}' input {i}"))?);
        }
        self.add(name, Body::Kernel { kernel, inputs: resolved, num_outputs })
    }

    pub fn add_task(&mut self, name: &str, task: Arc<dyn Task>, cost_ns: u64) -> Result<NodeId> {
        self.add(name, Body::Task { task, cost_ns })
    }

    pub fn add_control_edge(&mut self, from: NodeId, to: NodeId) -> Result<()> {
        let (from, to) = (self.index(from, "from")?, self.index(to, "to")?);
        let node = &self.nodes[to];
        if from == to {
            return Err(Error::invalid(format!("node '{}' cannot wait for itself", node.name)));
        }
        if matches!(node.body, Body::Input(_) | Body::Constant(_)) {
            return Err(Error::invalid(format!("to: node '{}' is a {} and waits for nothing", node.name, node.kind())));
        }
        // Twice the same edge is one arrival: compile sees to it.
        let after = &mut self.nodes[to].after;
        after.try_reserve(1).map_err(|_| Error::exhausted("the graph's edges", after.len() * size_of::<usize>()))?;
        after.push(from);
        Ok(())
    }

    pub fn add_output(&mut self, name: &str, value: ValueId) -> Result<()> {
        check_name(name)?;
        if self.outputs.iter().any(|(taken, _)| taken == name) {
            return Err(Error::new(Code::AlreadyExists, format!("name: the graph has an output '{name}' already")));
        }
        let value = self.resolve(value, "value")?;
        self.outputs.push((name.to_owned(), value));
        Ok(())
    }

    fn add(&mut self, name: &str, body: Body) -> Result<NodeId> {
        check_name(name)?;
        if self.names.contains_key(name) {
            return Err(Error::new(Code::AlreadyExists, format!("name: the graph has a node '{name}' already")));
        }
        let index = self.nodes.len();
        if index >= u32::MAX as usize / 2 {
            return Err(Error::new(Code::ResourceExhausted, format!("the graph has {index} nodes, the limit")));
        }
        self.nodes.try_reserve(1).map_err(|_| Error::exhausted("the graph's nodes", index * size_of::<Node>()))?;
        self.names.try_reserve(1).map_err(|_| Error::exhausted("the graph's names", index * size_of::<String>()))?;
        self.names.insert(name.to_owned(), index);
        self.nodes.push(Node { name: name.to_owned(), body, after: Vec::new() });
        Ok(NodeId::new(self.serial, index))
    }

    fn resolve(&self, value: ValueId, what: &str) -> Result<(usize, usize)> {
        value
            .index(self.serial)
            .filter(|&(node, output)| self.nodes.get(node).is_some_and(|node| output < node.num_outputs()))
            .ok_or_else(|| Error::invalid(format!("{what}: {:#x} is no value of this graph", u64::from(value))))
    }

    fn index(&self, node: NodeId, what: &str) -> Result<usize> {
        node.index(self.serial)
            .filter(|&node| node < self.nodes.len())
            .ok_or_else(|| Error::invalid(format!("{what}: {:#x} is no node of this graph", u64::from(node))))
    }
}

fn check_name(name: &str) -> Result<()> {
    if name.is_empty() {
        return Err(Error::invalid("name is empty"));
    }
    Ok(())
}

impl Graph {
    /// Draws the graph as it is now.
    pub fn dump(&self, format: super::DumpFormat) -> String {
        super::dump::graph(self, format)
    }
}

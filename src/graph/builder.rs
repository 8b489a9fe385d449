//! The builder: nodes in the order in which they were added.
#![forbid(unsafe_code)]

use super::build::contents::{After, Contents, LoopOp, Node, NodeBody, TaskWork, Value};
use super::build::ids::{NodeId, ValueId};
use super::build::options::Forwarding;
use super::observe::dump::{self, DumpFormat};
use super::plan::MAX_DEPTH;
use super::run::nested::Nested;
use super::run::program::Program;
use crate::base::index::{self, HashIndex};
use crate::base::object::tag;
use crate::base::{Code, Desc, Error, Kind, Name, Ref, Result, live, with_article};
use crate::engine::{BoundKernel, Engine, Tensor};
use crate::kernel::Task;
use crate::memory::heap;
use crate::ops::signature;
use crate::threadpool::HostCall;
use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A graph under construction.
pub struct Graph {
    serial: u16,
    pub(super) contents: Contents,
    /// Its nodes by name, and the seed of their hash.
    names: HashIndex,
    seed: u64,
    /// The names of its outputs.
    outputs: HashSet<String>,
    num_inputs: usize,
    /// How many programs lie inside one another in it.
    pub(super) programs: usize,
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
        Graph {
            serial,
            contents: Contents { name: name.to_owned(), ..Contents::default() },
            names: HashIndex::default(),
            seed: RandomState::new().hash_one(serial),
            outputs: HashSet::new(),
            num_inputs: 0,
            programs: 0,
        }
    }

    pub fn name(&self) -> &str {
        &self.contents.name
    }

    pub fn num_inputs(&self) -> usize {
        self.num_inputs
    }

    pub fn num_outputs(&self) -> usize {
        self.contents.outputs.len()
    }

    pub fn add_input(&mut self, name: &str, desc: Desc) -> Result<ValueId> {
        let desc = desc.check_open().map_err(|error| error.within(format_args!("input '{name}': desc")))?;
        Ok(self.add(name, NodeBody::Input(desc))?.output(0))
    }

    pub fn add_constant(&mut self, name: &str, tensor: Ref<Tensor>) -> Result<ValueId> {
        Ok(self.add(name, NodeBody::Constant(tensor))?.output(0))
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
        let inputs = self.resolve_all(name, "input", inputs)?;
        self.add(name, NodeBody::Kernel { kernel, inputs, num_outputs })
    }

    /// Another program as one node.
    pub fn add_program(
        &mut self,
        name: &str,
        program: &Ref<Program>,
        inputs: &[ValueId],
        num_outputs: usize,
    ) -> Result<NodeId> {
        let kernel = Nested::kernel(program).map_err(|error| error.within(format_args!("node '{name}'")))?;
        let node = self.add_kernel(name, kernel, inputs, num_outputs)?;
        self.programs = self.programs.max(program.facts.programs + 1);
        Ok(node)
    }

    /// A choice of two graphs by a predicate. `inputs` become the inputs of both, in their order.
    pub fn add_cond(
        &mut self,
        name: &str,
        predicate: ValueId,
        then: &Graph,
        otherwise: &Graph,
        inputs: &[ValueId],
    ) -> Result<NodeId> {
        // A predicate of 0 chooses branch 0.
        self.add_choice(name, predicate, &[otherwise, then], inputs, true)
    }

    /// A choice of one graph by its index; an index out of range chooses the last one.
    pub fn add_case(&mut self, name: &str, index: ValueId, branches: &[&Graph], inputs: &[ValueId]) -> Result<NodeId> {
        self.add_choice(name, index, branches, inputs, false)
    }

    fn add_choice(
        &mut self,
        name: &str,
        selector: ValueId,
        branches: &[&Graph],
        inputs: &[ValueId],
        is_cond: bool,
    ) -> Result<NodeId> {
        let Some(first) = branches.first() else {
            return Err(Error::invalid(format!("node '{name}': num_branches is 0")));
        };
        let mut all =
            vec![self.resolve(selector, &|| format!("node '{name}' {}", if is_cond { "predicate" } else { "index" }))?];
        all.extend(self.resolve_all(name, "input", inputs)?);
        for branch in branches {
            self.check_inner(name, branch, inputs.len(), first.contents.outputs.len())?;
        }
        let inner = branches.iter().map(|branch| Arc::new(branch.contents.clone())).collect();
        let node = self.add(name, NodeBody::Case { branches: inner, inputs: all, is_cond })?;
        self.programs = branches.iter().map(|branch| branch.programs).fold(self.programs, usize::max);
        Ok(node)
    }

    /// A loop: while `condition` of the variables is true, `body` gives their next values. Both graphs' inputs are the
    /// variables, then the invariants.
    pub fn add_while(
        &mut self,
        name: &str,
        condition: &Graph,
        body: &Graph,
        variables: &[ValueId],
        invariants: &[ValueId],
        parallel_iterations: u32,
    ) -> Result<NodeId> {
        if parallel_iterations == 0 {
            return Err(Error::invalid(format!("node '{name}': parallel_iterations is 0, expected 1 or more")));
        }
        let mut inputs = self.resolve_all(name, "variable", variables)?;
        inputs.extend(self.resolve_all(name, "invariant", invariants)?);
        self.check_inner(name, condition, inputs.len(), 1)?;
        self.check_inner(name, body, inputs.len(), variables.len())?;
        let programs = condition.programs.max(body.programs);
        let (condition, body) = (Arc::new(condition.contents.clone()), Arc::new(body.contents.clone()));
        let (num_variables, copies) = (variables.len(), Vec::new());
        let looped = NodeBody::While { condition, body, inputs, num_variables, parallel_iterations, copies };
        let node = self.add(name, looped)?;
        self.programs = self.programs.max(programs);
        Ok(node)
    }

    /// Passes a value on to output 0 (false) or 1 (true); the other output is absent.
    pub fn add_switch(&mut self, name: &str, value: ValueId, predicate: ValueId) -> Result<NodeId> {
        let value = self.resolve(value, &|| format!("node '{name}' value"))?;
        let predicate = self.resolve(predicate, &|| format!("node '{name}' predicate"))?;
        self.add(name, NodeBody::Switch { inputs: [value, predicate] })
    }

    /// Passes on the one input that is present; output 1 is its index.
    pub fn add_merge(&mut self, name: &str, inputs: &[ValueId]) -> Result<NodeId> {
        let inputs = self.resolve_all(name, "input", inputs)?;
        if inputs.is_empty() {
            return Err(Error::invalid(format!("node '{name}': num_inputs is 0")));
        }
        self.add(name, NodeBody::Merge { inputs })
    }

    /// Brings a value into the frame with this name; the frame's loop is written as edges.
    pub fn add_enter(
        &mut self,
        name: &str,
        value: ValueId,
        frame: &str,
        is_constant: bool,
        parallel_iterations: u32,
    ) -> Result<NodeId> {
        if frame.is_empty() {
            return Err(Error::invalid(format!("node '{name}': frame_name is empty")));
        }
        if parallel_iterations == 0 {
            return Err(Error::invalid(format!("node '{name}': parallel_iterations is 0, expected 1 or more")));
        }
        self.add_cyclic(name, LoopOp::Enter { frame: frame.into(), is_constant, parallel_iterations }, value)
    }

    /// The value of a loop's variable in each iteration: the first value, then that of the back edge (`set_back_edge`).
    pub fn add_loop_merge(&mut self, name: &str, first: ValueId) -> Result<NodeId> {
        self.add_cyclic(name, LoopOp::Merge, first)
    }

    /// Sets the next iteration from which a loop's merge takes its later values.
    pub fn set_back_edge(&mut self, merge: NodeId, next: ValueId) -> Result<()> {
        let index = self.index(merge, "loop_merge")?;
        let (nodes, name) = (&self.contents.nodes, &self.contents.nodes[index].name);
        let value = self.resolve(next, &|| format!("node '{name}' back edge"))?;
        let NodeBody::Cyclic { op: LoopOp::Merge, inputs } = &nodes[index].body else {
            let kind = with_article(nodes[index].kind());
            return Err(Error::invalid(format!("node '{name}' is {kind}, expected a loop merge")));
        };
        if inputs.len() > 1 {
            return Err(Error::new(Code::AlreadyExists, format!("node '{name}' has a back edge already")));
        }
        let from = &nodes[value.0];
        if !matches!(from.body, NodeBody::Cyclic { op: LoopOp::NextIteration, .. }) {
            let kind = with_article(from.kind());
            let text = format!("node '{name}' back edge: node '{}' is {kind}, expected a next iteration", from.name);
            return Err(Error::invalid(text));
        }
        if let NodeBody::Cyclic { inputs, .. } = &mut self.contents.nodes[index].body {
            inputs.push(value);
        }
        Ok(())
    }

    /// The value that decides whether its frame's loop continues.
    pub fn add_loop_cond(&mut self, name: &str, predicate: ValueId) -> Result<NodeId> {
        self.add_cyclic(name, LoopOp::LoopCond, predicate)
    }

    pub fn add_next_iteration(&mut self, name: &str, value: ValueId) -> Result<NodeId> {
        self.add_cyclic(name, LoopOp::NextIteration, value)
    }

    pub fn add_exit(&mut self, name: &str, value: ValueId) -> Result<NodeId> {
        self.add_cyclic(name, LoopOp::Exit, value)
    }

    fn add_cyclic(&mut self, name: &str, op: LoopOp, value: ValueId) -> Result<NodeId> {
        let mut inputs = heap::room(2, "a node's inputs")?;
        inputs.push(self.resolve(value, &|| format!("node '{name}' value"))?);
        self.add(name, NodeBody::Cyclic { op, inputs })
    }

    /// Checks a graph that is to be nested in this one.
    fn check_inner(&self, name: &str, inner: &Graph, num_inputs: usize, num_outputs: usize) -> Result<()> {
        let named = |error: Error| error.within(format_args!("node '{name}': graph '{}'", inner.contents.name));
        signature::check_count("input", inner.num_inputs, num_inputs).map_err(named)?;
        signature::check_count("output", inner.contents.outputs.len(), num_outputs).map_err(named)?;
        if !inner.contents.homes.is_empty() {
            return Err(named(Error::invalid(
                "it has inputs or outputs on engines, and in a graph inside of another one these are where what they \
                 stand for is",
            )));
        }
        if inner.contents.depth + 1 >= MAX_DEPTH {
            return Err(named(Error::out_of_range(format!("more than {MAX_DEPTH} graphs lie inside one another"))));
        }
        Ok(())
    }

    fn resolve_all(&self, name: &str, what: &str, values: &[ValueId]) -> Result<Vec<Value>> {
        let mut resolved = heap::room(values.len(), "a node's inputs")?;
        for (i, value) in values.iter().enumerate() {
            resolved.push(self.resolve(*value, &|| format!("node '{name}' {what} {i}"))?);
        }
        Ok(resolved)
    }

    pub fn add_task(&mut self, name: &str, task: Arc<dyn Task>, cost_ns: u64) -> Result<NodeId> {
        self.add(name, NodeBody::Task { task: TaskWork::Task(task), cost_ns })
    }

    /// As `add_task`, for a host function that needs no reference counting.
    pub fn add_call(&mut self, name: &str, call: HostCall, cost_ns: u64) -> Result<NodeId> {
        self.add(name, NodeBody::Task { task: TaskWork::Call(call), cost_ns })
    }

    pub fn add_control_edge(&mut self, from: NodeId, to: NodeId) -> Result<()> {
        let (from, to) = (self.index(from, "from")?, self.index(to, "to")?);
        let node = &self.contents.nodes[to];
        if from == to {
            return Err(Error::invalid(format!("node '{}' cannot wait for itself", node.name)));
        }
        if matches!(node.body, NodeBody::Input(_) | NodeBody::Constant(_)) {
            return Err(Error::invalid(format!(
                "to: node '{}' is {} and waits for nothing",
                node.name,
                with_article(node.kind())
            )));
        }
        // A duplicate edge is one arrival: compile merges them.
        let after = &mut self.contents.nodes[to].after;
        after.try_reserve(1).map_err(|_| Error::exhausted("the graph's edges", after.len() * size_of::<usize>()))?;
        after.push(from);
        Ok(())
    }

    pub fn add_output(&mut self, name: &str, value: ValueId) -> Result<()> {
        check_name(name)?;
        if self.outputs.contains(name) {
            return Err(Error::new(Code::AlreadyExists, format!("name: the graph has an output '{name}' already")));
        }
        let value = self.resolve(value, &|| "value".to_owned())?;
        let bytes = self.num_outputs() * size_of::<(String, Value)>();
        let refused = || Error::exhausted("the graph's outputs", bytes);
        self.outputs.try_reserve(1).map_err(|_| refused())?;
        self.contents.outputs.try_reserve(1).map_err(|_| refused())?;
        self.outputs.insert(name.to_owned());
        self.contents.outputs.push((name.to_owned(), value));
        Ok(())
    }

    /// Sets whether an output of a kernel takes over the memory of an input.
    pub fn set_forwarding(&mut self, node: NodeId, output: usize, forwarding: Forwarding) -> Result<()> {
        let index = self.index(node, "node")?;
        let node = &self.contents.nodes[index];
        let NodeBody::Kernel { inputs, num_outputs, .. } = &node.body else {
            return Err(Error::invalid(format!(
                "node '{}' is {}, expected a kernel",
                node.name,
                with_article(node.kind())
            )));
        };
        let outside = |what: &str, at: usize, all: usize| {
            Error::out_of_range(format!("{what} is {at}, node '{}' has {all}", node.name))
        };
        if output >= *num_outputs {
            return Err(outside("output", output, *num_outputs));
        }
        match forwarding {
            Forwarding::Reserved(input) if usize::from(input) >= inputs.len() => {
                return Err(outside("input", usize::from(input), inputs.len()));
            }
            Forwarding::ByLastUse => drop(self.contents.forwarding.remove(&(index, output))),
            _ => drop(self.contents.forwarding.insert((index, output), forwarding)),
        }
        Ok(())
    }

    fn add(&mut self, name: &str, body: NodeBody) -> Result<NodeId> {
        check_name(name)?;
        let (hash, nodes) = (index::hash(self.seed, name.as_bytes()), &self.contents.nodes);
        if self.names.find(hash, |node| nodes[node as usize].name.as_bytes() == name.as_bytes()).is_some() {
            return Err(Error::new(Code::AlreadyExists, format!("name: the graph has a node '{name}' already")));
        }
        let index = self.contents.nodes.len();
        if index >= u32::MAX as usize / 2 {
            return Err(Error::new(Code::ResourceExhausted, format!("the graph has {index} nodes, the limit")));
        }
        self.contents
            .nodes
            .try_reserve(1)
            .map_err(|_| Error::exhausted("the graph's nodes", index * size_of::<Node>()))?;
        self.names.reserve("the graph's names")?;
        let node = Node { name: Name::from(name), body, after: After::new() };
        let inner = node.inner().map(|inner| inner.depth + 1).max().unwrap_or(0);
        self.contents.depth = self.contents.depth.max(inner);
        self.num_inputs += usize::from(matches!(node.body, NodeBody::Input(_)));
        self.contents.nodes.push(node);
        self.names.insert(hash, index as u32);
        Ok(NodeId::new(self.serial, index))
    }

    fn resolve(&self, value: ValueId, what: &dyn Fn() -> String) -> Result<(usize, usize)> {
        value
            .index(self.serial)
            .filter(|&(node, output)| self.contents.nodes.get(node).is_some_and(|node| output < node.num_outputs()))
            .ok_or_else(|| Error::invalid(format!("{}: {:#x} is no value of this graph", what(), u64::from(value))))
    }

    pub(super) fn index(&self, node: NodeId, what: &str) -> Result<usize> {
        node.index(self.serial)
            .filter(|&node| node < self.contents.nodes.len())
            .ok_or_else(|| Error::invalid(format!("{what}: {:#x} is no node of this graph", u64::from(node))))
    }

    /// Runs are given this input in the memory of this engine. `None`: the program's own engine.
    pub fn set_input_engine(&mut self, input: usize, engine: Option<Ref<Engine>>) -> Result<()> {
        check_index("input", input, self.num_inputs())?;
        self.contents.homes.set_input(input, engine);
        Ok(())
    }

    /// The same for an output.
    pub fn set_output_engine(&mut self, output: usize, engine: Option<Ref<Engine>>) -> Result<()> {
        check_index("output", output, self.contents.outputs.len())?;
        self.contents.homes.set_output(output, engine);
        Ok(())
    }

    /// Whether any engine may run a node. `None`: as the compile options say.
    pub fn set_open(&mut self, node: NodeId, open: Option<bool>) -> Result<()> {
        let index = self.index(node, "node")?;
        let node = &self.contents.nodes[index];
        if !matches!(node.body, NodeBody::Kernel { .. }) {
            return Err(Error::invalid(format!(
                "node '{}' is {}, expected a kernel",
                node.name,
                with_article(node.kind())
            )));
        }
        self.contents.homes.set_open(index, open);
        Ok(())
    }

    /// Draws the graph as it is now.
    pub fn dump(&self, format: DumpFormat) -> String {
        dump::graph(&self.contents, format)
    }
}

fn check_index(what: &str, index: usize, all: usize) -> Result<()> {
    if index < all {
        return Ok(());
    }
    Err(Error::out_of_range(format!("index is {index}, the graph has {all} {what}s")))
}

fn check_name(name: &str) -> Result<()> {
    if name.is_empty() {
        return Err(Error::invalid("name is empty"));
    }
    Ok(())
}

//! A graph as it was added: nodes in their order, values between them, and graphs inside of nodes.
#![forbid(unsafe_code)]

use super::options::Forwarding;
use crate::base::{Desc, Name, Ref};
use crate::engine::{BoundKernel, Engine, Tensor};
use crate::kernel::Task;
use crate::threadpool::HostCall;
use smallvec::SmallVec;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The function of a task.
#[derive(Clone)]
pub(in crate::graph) enum TaskWork {
    /// A function that needs nothing to be kept or released.
    Call(HostCall),
    Task(Arc<dyn Task>),
}

/// Nodes; usually few.
pub(in crate::graph) type After = SmallVec<[usize; 2]>;

/// The operation of a node.
#[derive(Clone)]
pub(in crate::graph) enum NodeBody {
    Input(Desc),
    Constant(Ref<Tensor>),
    Kernel {
        kernel: Ref<BoundKernel>,
        inputs: Vec<Value>,
        num_outputs: usize,
    },
    Task {
        task: TaskWork,
        cost_ns: u64,
    },
    /// One of several sub-graphs, chosen by the first input; the others are the sub-graphs' inputs.
    Case {
        branches: Vec<Arc<Contents>>,
        inputs: Vec<Value>,
        is_cond: bool,
    },
    /// The inputs are the variables, then the invariants.
    While {
        condition: Arc<Contents>,
        body: Arc<Contents>,
        inputs: Vec<Value>,
        num_variables: usize,
        parallel_iterations: u32,
        /// Condition and body once more for each further slot of a loop whose iterations overlap, if a slot has more of
        /// its own than its arguments: places and events of engines. Empty: condition and body serve all slots.
        copies: Vec<[Arc<Contents>; 2]>,
    },
    /// Inputs: the value, the predicate.
    Switch {
        inputs: [Value; 2],
    },
    Merge {
        inputs: Vec<Value>,
    },
    /// A part of a loop that is written as edges. `raise` makes whiles of them before any other pass looks at them.
    Cyclic {
        op: LoopOp,
        inputs: Vec<Value>,
    },
}

/// Nodes of TensorFlow's first control flow that make a loop, besides switches.
#[derive(Clone)]
pub(in crate::graph) enum LoopOp {
    Enter {
        frame: Name,
        is_constant: bool,
        parallel_iterations: u32,
    },
    /// The first value, then the back edge once it is known.
    Merge,
    LoopCond,
    NextIteration,
    Exit,
}

/// A node and one of its outputs.
pub(in crate::graph) type Value = (usize, usize);

#[derive(Clone)]
pub(in crate::graph) struct Node {
    pub name: Name,
    pub body: NodeBody,
    /// Predecessors by control edges.
    pub after: After,
}

impl Node {
    /// The word for drawings.
    pub fn kind(&self) -> &str {
        match &self.body {
            NodeBody::Input(_) => "input",
            NodeBody::Constant(_) => "constant",
            NodeBody::Kernel { kernel, .. } => kernel.kernel().name(),
            NodeBody::Task { .. } => "task",
            NodeBody::Case { is_cond: true, .. } => "cond",
            NodeBody::Case { .. } => "case",
            NodeBody::While { .. } => "while",
            NodeBody::Switch { .. } => "switch",
            NodeBody::Merge { .. } => "merge",
            NodeBody::Cyclic { op, .. } => match op {
                LoopOp::Enter { .. } => "enter",
                LoopOp::Merge => "loop merge",
                LoopOp::LoopCond => "loop cond",
                LoopOp::NextIteration => "next iteration",
                LoopOp::Exit => "exit",
            },
        }
    }

    pub fn num_outputs(&self) -> usize {
        match &self.body {
            NodeBody::Input(_) | NodeBody::Constant(_) | NodeBody::Cyclic { .. } => 1,
            NodeBody::Kernel { num_outputs, .. } => *num_outputs,
            NodeBody::Task { .. } => 0,
            NodeBody::Case { branches, .. } => branches[0].outputs.len(),
            NodeBody::While { num_variables, .. } => *num_variables,
            NodeBody::Switch { .. } | NodeBody::Merge { .. } => 2,
        }
    }

    /// Node and output of each data input.
    pub fn inputs(&self) -> &[Value] {
        match &self.body {
            NodeBody::Kernel { inputs, .. }
            | NodeBody::Case { inputs, .. }
            | NodeBody::While { inputs, .. }
            | NodeBody::Cyclic { inputs, .. }
            | NodeBody::Merge { inputs } => inputs,
            NodeBody::Switch { inputs } => inputs,
            NodeBody::Input(_) | NodeBody::Constant(_) | NodeBody::Task { .. } => &[],
        }
    }

    /// The same, mutable.
    pub fn inputs_mut(&mut self) -> &mut [Value] {
        match &mut self.body {
            NodeBody::Kernel { inputs, .. }
            | NodeBody::Case { inputs, .. }
            | NodeBody::While { inputs, .. }
            | NodeBody::Cyclic { inputs, .. }
            | NodeBody::Merge { inputs } => inputs,
            NodeBody::Switch { inputs } => inputs,
            NodeBody::Input(_) | NodeBody::Constant(_) | NodeBody::Task { .. } => &mut [],
        }
    }

    /// All predecessors, by data and by control edges.
    pub fn predecessors(&self) -> impl Iterator<Item = usize> + Clone {
        self.inputs().iter().map(|&(producer, _)| producer).chain(self.after.iter().copied())
    }

    /// The graphs inside of this node.
    pub fn inner(&self) -> impl Iterator<Item = &Arc<Contents>> {
        let (list, pair, copies): (&[_], [Option<_>; 2], &[[_; 2]]) = match &self.body {
            NodeBody::Case { branches, .. } => (branches, [None, None], &[]),
            NodeBody::While { condition, body, copies, .. } => (&[], [Some(condition), Some(body)], copies),
            _ => (&[], [None, None], &[]),
        };
        list.iter().chain(pair.into_iter().flatten()).chain(copies.iter().flatten())
    }

    /// The graphs inside of this node, in the order of `inner`.
    pub fn inner_mut(&mut self) -> Vec<&mut Arc<Contents>> {
        match &mut self.body {
            NodeBody::Case { branches, .. } => branches.iter_mut().collect(),
            NodeBody::While { condition, body, copies, .. } => {
                [condition, body].into_iter().chain(copies.iter_mut().flatten()).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Replaces an input value by another one.
    pub(in crate::graph) fn reread(&mut self, from: Value, to: Value) {
        self.inputs_mut().iter_mut().filter(|value| **value == from).for_each(|value| *value = to);
    }

    /// The number of iterations that have graphs of their own, if this is a loop.
    pub(in crate::graph) fn num_slots(&self) -> usize {
        match &self.body {
            NodeBody::While { copies, .. } => copies.len() + 1,
            _ => 1,
        }
    }

    /// Limits a loop to this many slots. With fewer than two besides the one that ends, iterations run one after the
    /// other.
    pub(in crate::graph) fn limit_slots(&mut self, slots: usize) {
        if let NodeBody::While { parallel_iterations, copies, .. } = &mut self.body {
            copies.truncate(if slots < 3 { 0 } else { slots - 1 });
            if copies.is_empty() {
                *parallel_iterations = 1;
            }
        }
    }
}

/// The contents of a graph, as compile and enclosing graphs see them.
#[derive(Clone, Default)]
pub(in crate::graph) struct Contents {
    pub name: String,
    pub nodes: Vec<Node>,
    /// Name and value of each output of the graph.
    pub outputs: Vec<(String, Value)>,
    /// Outputs of kernels whose use of an input's memory was set.
    pub forwarding: HashMap<Value, Forwarding>,
    /// Engines of inputs and outputs. Only set for a program's own graph.
    pub homes: Homes,
    /// The depth of nesting of graphs in this one.
    pub depth: usize,
}

impl Contents {
    /// The number of nodes, nested ones included.
    pub fn num_nodes(&self) -> usize {
        let inside = |node: &Node| node.inner().map(|inner| inner.num_nodes()).sum::<usize>();
        self.nodes.len() + self.nodes.iter().map(inside).sum::<usize>()
    }

    /// The number of nodes and edges, nested ones included.
    pub fn size(&self) -> usize {
        let of = |node: &Node| 1 + node.predecessors().count() + node.inner().map(|inner| inner.size()).sum::<usize>();
        self.nodes.iter().map(of).sum()
    }

    /// The nodes that are inputs, in the order in which they were added.
    pub fn inputs(&self) -> impl Iterator<Item = usize> {
        let is_input = |(_, node): &(usize, &Node)| matches!(node.body, NodeBody::Input(_));
        self.nodes.iter().enumerate().filter(is_input).map(|(index, _)| index)
    }

    /// The graph of some of its nodes, with some of its outputs in this order; and the new number of each node that is
    /// kept. Nodes that are kept depend only on each other.
    pub fn part(&self, is_kept: &[bool], outputs: &[usize]) -> (Contents, Vec<usize>) {
        let mut number = vec![usize::MAX; self.nodes.len()];
        let kept = (0..self.nodes.len()).filter(|&node| is_kept[node]);
        kept.enumerate().for_each(|(new, old)| number[old] = new);
        let moved = |(node, output): Value| (number[node], output);
        let nodes = self.nodes.iter().zip(is_kept).filter(|(_, is_kept)| **is_kept).map(|(node, _)| {
            let mut node = node.clone();
            node.inputs_mut().iter_mut().for_each(|value| *value = moved(*value));
            node.after.iter_mut().for_each(|before| *before = number[*before]);
            node
        });
        let outputs_of = outputs.iter().map(|&output| &self.outputs[output]);
        let part = Contents {
            name: self.name.clone(),
            nodes: nodes.collect(),
            outputs: outputs_of.map(|(name, value)| (name.clone(), moved(*value))).collect(),
            forwarding: self
                .forwarding
                .iter()
                .filter(|(v, _)| is_kept[v.0])
                .map(|(v, how)| (moved(*v), *how))
                .collect(),
            homes: self.homes.of_outputs(outputs),
            depth: self.depth,
        };
        (part, number)
    }

    /// Whether a kernel may write an output over its own inputs, of which `is_there` says which lie there.
    pub fn may_write_over(&self, (node, output): Value, is_there: impl Fn(&Value) -> bool) -> bool {
        let NodeBody::Kernel { kernel, inputs, .. } = &self.nodes[node].body else { return false };
        let kernel = kernel.kernel();
        kernel.in_place()
            && inputs.iter().enumerate().all(|(i, value)| !is_there(value) || kernel.in_place_of(i))
            && match self.forwarding.get(&(node, output)) {
                None | Some(Forwarding::ByLastUse) => output == 0,
                Some(Forwarding::Never) => false,
                Some(Forwarding::Reserved(input)) => is_there(&inputs[usize::from(*input)]),
            }
    }

    /// The settings of a node's outputs.
    pub fn forwarding_of(&self, node: usize, num_outputs: usize) -> Vec<(u16, Forwarding)> {
        let outputs = if self.forwarding.is_empty() { 0 } else { num_outputs };
        (0..outputs).filter_map(|output| Some((output as u16, *self.forwarding.get(&(node, output))?))).collect()
    }

    /// Makes all readers of one value read another one.
    pub(in crate::graph) fn rewire(&mut self, from: Value, to: Value) {
        self.nodes.iter_mut().for_each(|node| node.reread(from, to));
        self.outputs.iter_mut().filter(|(_, value)| *value == from).for_each(|(_, value)| *value = to);
    }
}

/// Engines of inputs and outputs, by number. An engine that is not listed is the program's own.
#[derive(Clone, Debug, Default)]
pub(in crate::graph) struct Homes {
    inputs: BTreeMap<usize, Ref<Engine>>,
    outputs: BTreeMap<usize, Ref<Engine>>,
    /// Nodes for which it was set whether their engine is open.
    open: BTreeMap<usize, bool>,
}

impl Homes {
    pub fn input(&self, index: usize) -> Option<&Ref<Engine>> {
        self.inputs.get(&index)
    }

    pub fn output(&self, index: usize) -> Option<&Ref<Engine>> {
        self.outputs.get(&index)
    }

    /// The same for a graph that has only these outputs, in this order.
    pub fn of_outputs(&self, outputs: &[usize]) -> Homes {
        let kept = outputs.iter().enumerate();
        let outputs = kept.filter_map(|(new, old)| Some((new, Ref::clone(self.outputs.get(old)?)))).collect();
        Homes { inputs: self.inputs.clone(), outputs, open: BTreeMap::new() }
    }

    /// Whether a node's engine is open, if that was set.
    pub fn is_open(&self, node: usize) -> Option<bool> {
        self.open.get(&node).copied()
    }

    pub fn set_input(&mut self, index: usize, engine: Option<Ref<Engine>>) {
        put(&mut self.inputs, index, engine);
    }

    pub fn set_output(&mut self, index: usize, engine: Option<Ref<Engine>>) {
        put(&mut self.outputs, index, engine);
    }

    pub fn set_open(&mut self, node: usize, open: Option<bool>) {
        put(&mut self.open, node, open);
    }

    pub fn is_empty(&self) -> bool {
        self.inputs.is_empty() && self.outputs.is_empty()
    }
}

fn put<T>(all: &mut BTreeMap<usize, T>, index: usize, value: Option<T>) {
    match value {
        Some(value) => drop(all.insert(index, value)),
        None => drop(all.remove(&index)),
    }
}

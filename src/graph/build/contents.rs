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

/// What a task does.
#[derive(Clone)]
pub(in crate::graph) enum Work {
    /// A function that needs nothing to be kept or released.
    Call(HostCall),
    Task(Arc<dyn Task>),
}

/// Nodes, of which there are few as a rule.
pub(in crate::graph) type After = SmallVec<[usize; 2]>;

/// What a node does.
#[derive(Clone)]
pub(in crate::graph) enum Body {
    Input(Desc),
    Constant(Ref<Tensor>),
    Kernel {
        kernel: Ref<BoundKernel>,
        inputs: Vec<Value>,
        num_outputs: usize,
    },
    Task {
        task: Work,
        cost_ns: u64,
    },
    /// One of several sub-graphs, chosen by the first input; the others are the sub-graphs' inputs.
    Case {
        branches: Vec<Arc<Contents>>,
        inputs: Vec<Value>,
        is_cond: bool,
    },
    /// The inputs are the variables, then what all iterations share.
    While {
        condition: Arc<Contents>,
        body: Arc<Contents>,
        inputs: Vec<Value>,
        num_variables: usize,
        parallel_iterations: u32,
        /// Condition and body once more for each further slot of a loop whose iterations overlap, where a slot has
        /// more of its own than its arguments: places and events of engines. Empty: condition and body serve all slots.
        copies: Vec<[Arc<Contents>; 2]>,
    },
    /// Inputs: the value, the predicate.
    Switch {
        inputs: [Value; 2],
    },
    Merge {
        inputs: Vec<Value>,
    },
    /// A part of a loop that is said by its edges. `raise` makes a While of them before anything else looks at them.
    Cyclic {
        op: LoopOp,
        inputs: Vec<Value>,
    },
}

/// What TensorFlow's first control flow makes loops of, besides switches.
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
    pub body: Body,
    /// Nodes that this one waits for without data.
    pub after: After,
}

impl Node {
    /// The word for dumps.
    pub fn kind(&self) -> &str {
        match &self.body {
            Body::Input(_) => "input",
            Body::Constant(_) => "constant",
            Body::Kernel { kernel, .. } => kernel.kernel().name(),
            Body::Task { .. } => "task",
            Body::Case { is_cond: true, .. } => "cond",
            Body::Case { .. } => "case",
            Body::While { .. } => "while",
            Body::Switch { .. } => "switch",
            Body::Merge { .. } => "merge",
            Body::Cyclic { op, .. } => match op {
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
            Body::Input(_) | Body::Constant(_) | Body::Cyclic { .. } => 1,
            Body::Kernel { num_outputs, .. } => *num_outputs,
            Body::Task { .. } => 0,
            Body::Case { branches, .. } => branches[0].outputs.len(),
            Body::While { num_variables, .. } => *num_variables,
            Body::Switch { .. } | Body::Merge { .. } => 2,
        }
    }

    /// Node and output of each data input.
    pub fn inputs(&self) -> &[Value] {
        match &self.body {
            Body::Kernel { inputs, .. }
            | Body::Case { inputs, .. }
            | Body::While { inputs, .. }
            | Body::Cyclic { inputs, .. }
            | Body::Merge { inputs } => inputs,
            Body::Switch { inputs } => inputs,
            Body::Input(_) | Body::Constant(_) | Body::Task { .. } => &[],
        }
    }

    /// The same to be changed.
    pub fn inputs_mut(&mut self) -> &mut [Value] {
        match &mut self.body {
            Body::Kernel { inputs, .. }
            | Body::Case { inputs, .. }
            | Body::While { inputs, .. }
            | Body::Cyclic { inputs, .. }
            | Body::Merge { inputs } => inputs,
            Body::Switch { inputs } => inputs,
            Body::Input(_) | Body::Constant(_) | Body::Task { .. } => &mut [],
        }
    }

    /// Nodes that this one waits for, with and without data.
    pub fn predecessors(&self) -> impl Iterator<Item = usize> + Clone {
        self.inputs().iter().map(|&(producer, _)| producer).chain(self.after.iter().copied())
    }

    /// The graphs inside of this node.
    pub fn inner(&self) -> impl Iterator<Item = &Arc<Contents>> {
        let (list, pair, copies): (&[_], [Option<_>; 2], &[[_; 2]]) = match &self.body {
            Body::Case { branches, .. } => (branches, [None, None], &[]),
            Body::While { condition, body, copies, .. } => (&[], [Some(condition), Some(body)], copies),
            _ => (&[], [None, None], &[]),
        };
        list.iter().chain(pair.into_iter().flatten()).chain(copies.iter().flatten())
    }

    /// The graphs inside of this node, in the order of `inner`.
    pub fn inner_mut(&mut self) -> Vec<&mut Arc<Contents>> {
        match &mut self.body {
            Body::Case { branches, .. } => branches.iter_mut().collect(),
            Body::While { condition, body, copies, .. } => {
                [condition, body].into_iter().chain(copies.iter_mut().flatten()).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Has it read another value in the place of one.
    pub(in crate::graph) fn reread(&mut self, from: Value, to: Value) {
        self.inputs_mut().iter_mut().filter(|value| **value == from).for_each(|value| *value = to);
    }

    /// How many iterations have graphs of their own, if it is a loop.
    pub(in crate::graph) fn num_slots(&self) -> usize {
        match &self.body {
            Body::While { copies, .. } => copies.len() + 1,
            _ => 1,
        }
    }

    /// Leaves a loop so many slots: one iteration after the other, if there are not two beside the one that ends.
    pub(in crate::graph) fn limit_slots(&mut self, slots: usize) {
        if let Body::While { parallel_iterations, copies, .. } = &mut self.body {
            copies.truncate(if slots < 3 { 0 } else { slots - 1 });
            if copies.is_empty() {
                *parallel_iterations = 1;
            }
        }
    }
}

/// What a graph is made of, as compile and enclosing graphs see it.
#[derive(Clone, Default)]
pub(in crate::graph) struct Contents {
    pub name: String,
    pub nodes: Vec<Node>,
    /// Name and value of each output of the graph.
    pub outputs: Vec<(String, Value)>,
    /// Outputs of kernels that do not take over memory as they see fit.
    pub forwarding: HashMap<Value, Forwarding>,
    /// Where inputs and outputs are. Only a program's own graph says that.
    pub homes: Homes,
    /// How many graphs lie inside one another here.
    pub depth: usize,
}

impl Contents {
    /// Nodes, those inside of others too.
    pub fn num_nodes(&self) -> usize {
        let inside = |node: &Node| node.inner().map(|inner| inner.num_nodes()).sum::<usize>();
        self.nodes.len() + self.nodes.iter().map(inside).sum::<usize>()
    }

    /// Nodes and edges, those inside of others too.
    pub fn size(&self) -> usize {
        let of = |node: &Node| 1 + node.predecessors().count() + node.inner().map(|inner| inner.size()).sum::<usize>();
        self.nodes.iter().map(of).sum()
    }

    /// The nodes that are inputs, in the order in which they were added.
    pub fn inputs(&self) -> impl Iterator<Item = usize> {
        let is_input = |(_, node): &(usize, &Node)| matches!(node.body, Body::Input(_));
        self.nodes.iter().enumerate().filter(is_input).map(|(index, _)| index)
    }

    /// The graph of some of its nodes, with some of its outputs in this order; and the new number of each node that is
    /// kept. Nodes that are kept depend on no others.
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

    /// Whether a kernel may write an output where inputs of its own are, those that `is_there` says.
    pub fn may_write_over(&self, (node, output): Value, is_there: impl Fn(&Value) -> bool) -> bool {
        let Body::Kernel { kernel, inputs, .. } = &self.nodes[node].body else { return false };
        kernel.kernel().in_place()
            && match self.forwarding.get(&(node, output)) {
                None | Some(Forwarding::ByLastUse) => output == 0,
                Some(Forwarding::Never) => false,
                Some(Forwarding::Reserved(input)) => is_there(&inputs[usize::from(*input)]),
            }
    }

    /// What was said of a node's outputs.
    pub fn forwarding_of(&self, node: usize, num_outputs: usize) -> Vec<(u16, Forwarding)> {
        let outputs = if self.forwarding.is_empty() { 0 } else { num_outputs };
        (0..outputs).filter_map(|output| Some((output as u16, *self.forwarding.get(&(node, output))?))).collect()
    }

    /// Has all that read a value read another one.
    pub(in crate::graph) fn rewire(&mut self, from: Value, to: Value) {
        self.nodes.iter_mut().for_each(|node| node.reread(from, to));
        self.outputs.iter_mut().filter(|(_, value)| *value == from).for_each(|(_, value)| *value = to);
    }
}

/// Where inputs and outputs are: engines by number; those that are not there are the program's own.
#[derive(Clone, Debug, Default)]
pub(in crate::graph) struct Homes {
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

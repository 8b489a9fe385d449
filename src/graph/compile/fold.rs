//! Constant folding: pure kernels of constants, conds and cases whose selector is a constant, loops
//! that never begin, and those that go round a few times (`unroll`).
//!
//! The graph is written anew, node by node in its order. A kernel whose inputs are all constants is called here, and
//! its outputs are constants from then on; if it fails, it stays, and fails in the runs. A kernel that reads only the
//! shapes of its inputs is called where these are known. One whose settings are constants becomes one that has them
//! (`Kernel::settled`): shapes behind it are known where they were open, and all is looked at once more. The branch
//! that a constant chooses takes the place of its cond. Constants that go into a graph inside of another one are known
//! there too.
//!
//! A node in place of a cond waits for what the cond waited for only where that can be seen: if it has effects. It
//! waits for what is run at all: such an edge is no reason to run a pure node of which nothing takes the value
//! (`settle`).

mod unroll;

use crate::base::{Desc, Error, Ref, Result};
use crate::engine::{BoundKernel, Tensor};
use crate::graph::build::contents::{After, Contents, Node, NodeBody, Value};
use crate::graph::build::options::Forwarding;
use crate::graph::build::verify::{Kinds, Verified, has_effects};
use crate::kernel::{KernelContext, NEVER, Scratch};
use crate::memory::{AlignedBuffer, Bytes, View};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Larger results are left to the runs: a program is not for storing them.
const MOST_BYTES: usize = 64 << 20;

/// A graph in which something could be folded.
pub(super) struct Folded {
    pub contents: Contents,
    /// How many nodes were, and how many loops were unrolled.
    pub nodes: usize,
    pub unrolled: usize,
    /// Whether shapes may be known that were open.
    pub has_settled: bool,
    weak: WeakEdges,
}

/// By node: others that it waits for if they are run.
type WeakEdges = HashMap<usize, Vec<usize>>;

impl Folded {
    fn is_new(&self) -> bool {
        self.nodes + self.unrolled > 0
    }

    /// Makes control edges of the weak ones. In place of a node that nothing needs its predecessors are waited for.
    fn settle(mut self) -> Folded {
        let (weak, nodes) = (std::mem::take(&mut self.weak), &self.contents.nodes);
        if weak.is_empty() {
            return self;
        }
        let mut live = vec![false; nodes.len()];
        self.contents.outputs.iter().for_each(|(_, value)| live[value.0] = true);
        for (index, node) in nodes.iter().enumerate().rev() {
            live[index] |= has_effects(node);
            if live[index] {
                node.predecessors().for_each(|before| live[before] = true);
            }
        }
        let mut met = vec![usize::MAX; nodes.len()];
        let mut edges = Vec::new();
        for (&index, before) in weak.iter().filter(|(index, _)| live[**index]) {
            let mut to_do = before.clone();
            while let Some(before) = to_do.pop() {
                if std::mem::replace(&mut met[before], index) == index {
                    continue;
                }
                match &nodes[before].body {
                    NodeBody::Constant(_) => {}
                    _ if live[before] => edges.push((index, before)),
                    _ => {
                        to_do.extend(nodes[before].predecessors());
                        to_do.extend(weak.get(&before).into_iter().flatten());
                    }
                }
            }
        }
        edges.sort_unstable();
        edges.into_iter().for_each(|(index, before)| self.contents.nodes[index].after.push(before));
        self
    }
}

/// How a node is known to be done.
#[derive(Clone)]
enum FoldedEnd {
    /// When this one is, which stands for it.
    Kept(usize),
    /// When these are, as far as they are run.
    Parts(Vec<usize>),
}

/// None if there is nothing to fold.
pub(super) fn fold(graph: &Contents, verified: &Verified) -> Option<Folded> {
    if !verified.kinds.has(Kinds::PURE.or(Kinds::COMPOUND)) || !may_fold(graph) {
        return None;
    }
    Some(rewrite(graph, verified, &[])).filter(Folded::is_new).map(Folded::settle)
}

/// Whether it is worth a closer look.
fn may_fold(graph: &Contents) -> bool {
    let is_constant = |&(node, _): &Value| matches!(graph.nodes[node].body, NodeBody::Constant(_));
    graph.nodes.iter().any(|node| match &node.body {
        NodeBody::Kernel { kernel, inputs, .. } => {
            let kernel = kernel.kernel();
            let known = kernel.reads_shapes_alone() || inputs.iter().all(is_constant);
            let (held, from) = (kernel.num_settings(), inputs.len().saturating_sub(kernel.num_settings()));
            kernel.is_pure() && known || held > 0 && inputs[from..].iter().all(is_constant)
        }
        NodeBody::Case { inputs, .. } | NodeBody::While { inputs, .. } => {
            inputs.iter().any(is_constant) || node.inner().any(|inner| may_fold(inner))
        }
        _ => false,
    })
}

/// The elements of a graph's constant.
pub(super) fn elements(constant: &Tensor) -> Bytes<'_> {
    // SAFETY: nobody writes a constant, as the graph's maker has promised.
    unsafe { constant.view().as_bytes() }
}

fn has_switch(graph: &Contents) -> bool {
    graph.nodes.iter().any(|node| matches!(node.body, NodeBody::Switch { .. }))
}

/// `given` are the inputs that are known to be constants.
fn rewrite(graph: &Contents, verified: &Verified, given: &[Option<Ref<Tensor>>]) -> Folded {
    let mut work = Folding {
        graph,
        verified,
        nodes: Vec::with_capacity(graph.nodes.len()),
        values: vec![Vec::new(); graph.nodes.len()],
        done: vec![FoldedEnd::Parts(Vec::new()); graph.nodes.len()],
        weak: HashMap::new(),
        forwarding: HashMap::new(),
        has_switch: has_switch(graph),
        folded: 0,
        unrolled: 0,
        has_settled: false,
    };
    let mut given = given.iter();
    for &index in &verified.order {
        let index = index as usize;
        if matches!(graph.nodes[index].body, NodeBody::Input(_)) {
            work.keep(index);
            if let Some(Some(tensor)) = given.next() {
                let name = &graph.nodes[index].name;
                let constant = work.constant(name, tensor.clone());
                work.values[index] = vec![constant];
            }
            continue;
        }
        work.visit(index);
    }
    let outputs = graph.outputs.iter().map(|(name, value)| (name.clone(), work.value(*value))).collect();
    let contents = Contents {
        name: graph.name.clone(),
        nodes: work.nodes,
        outputs,
        forwarding: work.forwarding,
        homes: graph.homes.clone(),
        depth: graph.depth,
    };
    let (nodes, unrolled, has_settled) = (work.folded, work.unrolled, work.has_settled);
    Folded { contents, nodes, unrolled, has_settled, weak: work.weak }
}

struct Folding<'a> {
    graph: &'a Contents,
    verified: &'a Verified,
    nodes: Vec<Node>,
    /// Where each old node's values are now.
    values: Vec<Vec<Value>>,
    /// How each old node is known to be done.
    done: Vec<FoldedEnd>,
    weak: WeakEdges,
    forwarding: HashMap<Value, Forwarding>,
    has_switch: bool,
    folded: usize,
    unrolled: usize,
    has_settled: bool,
}

impl Folding<'_> {
    fn value(&self, (node, output): Value) -> Value {
        self.values[node][output]
    }

    fn tensor(&self, (node, _): Value) -> Option<&Ref<Tensor>> {
        match &self.nodes[node].body {
            NodeBody::Constant(tensor) => Some(tensor),
            _ => None,
        }
    }

    fn constant(&mut self, name: &str, tensor: Ref<Tensor>) -> Value {
        self.nodes.push(Node { name: name.into(), body: NodeBody::Constant(tensor), after: After::new() });
        (self.nodes.len() - 1, 0)
    }

    fn inputs(&self, node: &Node) -> Vec<Value> {
        node.inputs().iter().map(|value| self.value(*value)).collect()
    }

    fn visit(&mut self, index: usize) {
        let node = &self.graph.nodes[index];
        let folded = match &node.body {
            NodeBody::Kernel { kernel, num_outputs, .. } => {
                self.compute(index, kernel, *num_outputs) || self.settle_kernel(index, kernel)
            }
            // Where a shape is open it stays so: those behind were found to take it.
            NodeBody::Case { .. } | NodeBody::While { .. } if !verified_is_concrete(self.verified, index) => false,
            NodeBody::Case { branches, is_cond, .. } if !self.has_switch => self.choose(index, branches, *is_cond),
            NodeBody::While { condition, body, num_variables, parallel_iterations, copies, .. } if !self.has_switch => {
                if copies.is_empty() && self.unroll(index, condition, body, *num_variables, *parallel_iterations) {
                    return;
                }
                self.skip_loop(index, condition, *num_variables)
            }
            _ => false,
        };
        if folded {
            self.folded += 1;
        } else {
            self.keep(index);
        }
    }

    /// The node as it is, with what is inside of it folded.
    fn keep(&mut self, index: usize) {
        let old = &self.graph.nodes[index];
        let inputs = self.inputs(old);
        let known: Vec<Option<Ref<Tensor>>> = inputs.iter().map(|&value| self.tensor(value).cloned()).collect();
        let mut body = with_inputs(&old.body, inputs);
        match &mut body {
            NodeBody::Case { branches, .. } => {
                for (i, branch) in branches.iter_mut().enumerate() {
                    self.fold_inside(branch, &self.verified.inner[&index][i], &known[1..]);
                }
            }
            NodeBody::While { condition, body, num_variables, copies, .. } => {
                // The variables change.
                let known: Vec<_> =
                    known.iter().enumerate().map(|(i, known)| known.clone().filter(|_| i >= *num_variables)).collect();
                for (i, part) in [condition, body].into_iter().chain(copies.iter_mut().flatten()).enumerate() {
                    self.fold_inside(part, &self.verified.inner[&index][i], &known);
                }
            }
            _ => {}
        }
        let new = self.nodes.len();
        let mut after = After::new();
        for &before in &old.after {
            match &self.done[before] {
                FoldedEnd::Kept(before) => after.push(*before),
                FoldedEnd::Parts(parts) => self.weak.entry(new).or_default().extend(parts),
            }
        }
        self.nodes.push(Node { name: old.name.clone(), body, after });
        for output in 0..old.num_outputs() {
            self.values[index].push((new, output));
            if let Some(&how) = self.graph.forwarding.get(&(index, output)) {
                self.forwarding.insert((new, output), how);
            }
        }
        self.done[index] = FoldedEnd::Kept(new);
    }

    fn fold_inside(&mut self, graph: &mut Arc<Contents>, verified: &Verified, known: &[Option<Ref<Tensor>>]) {
        let folded = rewrite(graph, verified, known);
        if folded.is_new() {
            self.folded += folded.nodes;
            self.unrolled += folded.unrolled;
            self.has_settled |= folded.has_settled;
            *graph = Arc::new(folded.settle().contents);
        }
    }

    /// A kernel of constants.
    fn compute(&mut self, index: usize, kernel: &BoundKernel, num_outputs: usize) -> bool {
        let node = &self.graph.nodes[index];
        let is_bound = |output| self.graph.forwarding.contains_key(&(index, output));
        if !kernel.kernel().is_pure() || num_outputs == 0 || !node.after.is_empty() || (0..num_outputs).any(is_bound) {
            return false;
        }
        let descs: Vec<Desc> = node.inputs().iter().map(|&value| *self.verified.desc(value)).collect();
        let shapes_alone = kernel.kernel().reads_shapes_alone() && descs.iter().all(Desc::is_concrete);
        let known = node.inputs().iter().zip(descs).map(|(&value, desc)| match self.tensor(self.value(value)) {
            Some(tensor) => Some(tensor.view().clone()),
            None => shapes_alone.then(|| View::empty(desc)),
        });
        let Some(inputs) = known.collect::<Option<Vec<_>>>() else { return false };
        let Ok(outputs) = call(kernel, &inputs, &self.verified.descs[index]) else { return false };
        for (output, tensor) in outputs.into_iter().enumerate() {
            let name = if output == 0 { node.name.to_string() } else { format!("{}:{output}", node.name) };
            let constant = self.constant(&name, tensor);
            self.values[index].push(constant);
        }
        true
    }

    /// A kernel whose settings are constants, without these inputs.
    fn settle_kernel(&mut self, index: usize, kernel: &BoundKernel) -> bool {
        let node = &self.graph.nodes[index];
        let inputs = self.inputs(node);
        let from = inputs.len().saturating_sub(kernel.kernel().num_settings());
        let held: Option<Vec<Bytes<'_>>> =
            inputs[from..].iter().map(|&value| self.tensor(value).map(|tensor| elements(tensor))).collect();
        let Some(held) = held.filter(|held| !held.is_empty()) else { return false };
        // One that is refused is refused by the runs.
        let Ok(settled) = kernel.kernel().settled(&held) else { return false };
        let Ok(settled) = kernel.with_kernel(settled) else { return false };
        let own: Vec<Desc> = node.inputs()[..from].iter().map(|&value| *self.verified.desc(value)).collect();
        if settled.infer_unnamed(&own).is_err() {
            return false;
        }
        self.keep(index);
        if let Some(Node { body: NodeBody::Kernel { kernel, inputs, .. }, .. }) = self.nodes.last_mut() {
            *kernel = settled;
            self.has_settled = true;
            inputs.truncate(from);
        }
        true
    }

    /// The branch that a constant chooses, in place of the node.
    fn choose(&mut self, index: usize, branches: &[Arc<Contents>], is_cond: bool) -> bool {
        let node = &self.graph.nodes[index];
        let inputs = self.inputs(node);
        let Some(selector) = self.tensor(inputs[0]) else { return false };
        let selected = elements(selector).read_integer();
        let last = branches.len() - 1;
        let chosen = match is_cond {
            true => usize::from(selected != 0),
            false => usize::try_from(selected).map_or(last, |index| index.min(last)),
        };
        // Nodes that may be skipped in there do not concern those that wait for the cond; they would if they lay here.
        if has_switch(&branches[chosen]) {
            return false;
        }
        // A user of the choice's values comes behind what the choice waits for; behind pure nodes it would not.
        if !node.after.is_empty() {
            return false;
        }
        let known: Vec<_> = inputs[1..].iter().map(|&value| self.tensor(value).cloned()).collect();
        let branch = rewrite(&branches[chosen], &self.verified.inner[&index][chosen], &known);
        let (name, before) = (node.name.clone(), self.before(&inputs));
        let (values, last) = self.splice(&name, branch, &inputs[1..], &before);
        self.values[index] = values;
        self.done[index] = FoldedEnd::Parts(last.into_iter().chain(before).collect());
        true
    }

    /// The predecessors of a node with these inputs and without control edges.
    fn before(&self, inputs: &[Value]) -> Vec<usize> {
        let is_open = |value: &&Value| self.tensor(**value).is_none();
        let mut before: Vec<usize> = inputs.iter().filter(is_open).map(|value| value.0).collect();
        before.sort_unstable();
        before.dedup();
        before
    }

    /// The nodes of a graph inside of a node called `outer`, which see these inputs; what has effects waits for
    /// `before`. Its outputs, and what to wait for so that all of it is over, and `before`.
    fn splice(&mut self, outer: &str, branch: Folded, inputs: &[Value], before: &[usize]) -> (Vec<Value>, Vec<usize>) {
        self.folded += branch.nodes;
        self.unrolled += branch.unrolled;
        self.has_settled |= branch.has_settled;
        let Folded { contents: branch, weak, .. } = branch;
        let mut places: Vec<Vec<Value>> = Vec::with_capacity(branch.nodes.len());
        // Only a kernel waits for all that it takes: a cond, a loop and a merge may be done before an input that they
        // turn out not to need. And who takes a value of a cond or a loop does not wait for all that is in there.
        let has_inside: Vec<bool> = branch.nodes.iter().map(|inner| inner.inner().next().is_some()).collect();
        let mut has_successor = vec![false; branch.nodes.len()];
        let mut ports = inputs.iter();
        let (mut added, mut has_waited) = (Vec::new(), false);
        for (old, inner) in branch.nodes.into_iter().enumerate() {
            if let (NodeBody::Input(_), Some(port)) = (&inner.body, ports.as_slice().first()) {
                places.push(vec![*port]);
                ports.next();
                continue;
            }
            if matches!(inner.body, NodeBody::Kernel { .. }) {
                inner.inputs().iter().filter(|from| !has_inside[from.0]).for_each(|from| has_successor[from.0] = true);
            }
            let weak = weak.get(&old).map_or(&[][..], Vec::as_slice);
            inner.after.iter().chain(weak).for_each(|&before| has_successor[before] = true);
            let moved = inner.inputs().iter().map(|&(node, output)| places[node][output]).collect();
            let place = |&before: &usize| places[before].first().map(|value| value.0);
            let after: Vec<usize> = inner.after.iter().filter_map(place).collect();
            let mut weak: Vec<usize> = weak.iter().filter_map(place).collect();
            let waits = match &inner.body {
                NodeBody::Constant(_) => false,
                NodeBody::Kernel { kernel, .. } => !kernel.kernel().is_pure(),
                _ => true,
            };
            if waits {
                weak.extend(before);
                has_waited = true;
            }
            let new = self.nodes.len();
            if !weak.is_empty() {
                self.weak.insert(new, weak);
            }
            if !matches!(inner.body, NodeBody::Constant(_)) {
                added.push((old, new));
            }
            // At least one, for those who wait without data.
            places.push((0..inner.num_outputs().max(1)).map(|output| (new, output)).collect());
            let name = format!("{outer}/{}", inner.name);
            self.nodes.push(Node { name: name.into(), body: with_inputs(&inner.body, moved), after: after.into() });
        }
        for (&(old, output), &how) in &branch.forwarding {
            self.forwarding.insert(places[old][output], how);
        }
        let values = branch.outputs.iter().map(|(_, (node, output))| places[*node][*output]).collect();
        let last = added.iter().filter(|(old, _)| !has_successor[*old]).map(|(_, new)| *new);
        let waited = before.iter().copied().filter(|_| !has_waited);
        (values, last.chain(waited).collect())
    }

    /// A loop whose condition is false for its first values.
    fn skip_loop(&mut self, index: usize, condition: &Contents, num_variables: usize) -> bool {
        let node = &self.graph.nodes[index];
        if !node.after.is_empty() {
            return false;
        }
        let inputs = self.inputs(node);
        let known: Vec<_> = inputs.iter().map(|&value| self.tensor(value).cloned()).collect();
        let first = rewrite(condition, &self.verified.inner[&index][0], &known).contents;
        let (goes_on, _) = first.outputs[0].1;
        // A condition with effects is asked all the same.
        let quiet = first.nodes.iter().all(|node| match &node.body {
            NodeBody::Input(_) | NodeBody::Constant(_) => true,
            NodeBody::Kernel { kernel, .. } => kernel.kernel().is_pure(),
            _ => false,
        });
        match &first.nodes[goes_on].body {
            NodeBody::Constant(tensor) if quiet && elements(tensor).read_integer() == 0 => {}
            _ => return false,
        }
        let before = inputs.iter().filter(|value| self.tensor(**value).is_none()).map(|value| value.0).collect();
        self.values[index] = inputs[..num_variables].to_vec();
        self.done[index] = FoldedEnd::Parts(before);
        true
    }
}

fn verified_is_concrete(verified: &Verified, index: usize) -> bool {
    verified.descs[index].iter().all(Desc::is_concrete)
}

/// The same with other inputs.
fn with_inputs(body: &NodeBody, new: Vec<Value>) -> NodeBody {
    let mut body = body.clone();
    match &mut body {
        NodeBody::Kernel { inputs, .. }
        | NodeBody::Case { inputs, .. }
        | NodeBody::While { inputs, .. }
        | NodeBody::Cyclic { inputs, .. }
        | NodeBody::Merge { inputs } => *inputs = new,
        NodeBody::Switch { inputs } => inputs.copy_from_slice(&new),
        NodeBody::Input(_) | NodeBody::Constant(_) | NodeBody::Task { .. } => {}
    }
    body
}

fn views(tensors: &[Ref<Tensor>]) -> Vec<View> {
    tensors.iter().map(|tensor| tensor.view().clone()).collect()
}

/// Runs a kernel in this thread.
fn call(kernel: &BoundKernel, inputs: &[View], descs: &[Desc]) -> Result<Vec<Ref<Tensor>>> {
    let mut bytes = 0usize;
    for desc in descs {
        bytes = bytes.saturating_add(desc.bytes()?);
    }
    if bytes > MOST_BYTES {
        return Err(Error::out_of_range("larger than what compile keeps"));
    }
    let mut outputs = Vec::with_capacity(descs.len());
    for desc in descs {
        outputs.push(Tensor::create(kernel.engine().clone(), *desc)?);
    }
    let to = views(&outputs);
    let input_descs: Vec<_> = inputs.iter().map(|view| *view.desc()).collect();
    let bytes = kernel.kernel().scratch_bytes(&input_descs, descs);
    let memory = AlignedBuffer::zeroed(Scratch::stride(bytes), "scratch of a kernel of constants")?;
    let data = if bytes > 0 { memory.data() } else { std::ptr::null_mut() };
    // SAFETY: of constants, which nobody writes, and of tensors and memory that were made for this call.
    let context = unsafe { KernelContext::new(inputs, &to, None, Scratch::new(data, bytes, 1), &NEVER) };
    // SAFETY: once.
    match catch_unwind(AssertUnwindSafe(|| kernel.kernel().compute(&context, unsafe { context.outputs() }))) {
        Ok(result) => result.map(|()| outputs),
        Err(payload) => {
            let error = Error::from_panic(&*payload);
            std::mem::forget(payload);
            Err(error)
        }
    }
}

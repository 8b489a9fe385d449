//! Descriptors of the outputs of a graph's nodes.
#![forbid(unsafe_code)]

use crate::base::index::{HashIndex, mix};
use crate::base::{Desc, Result};
use crate::engine::BoundKernel;
use crate::kernel::Kernel;
use std::sync::Arc;

/// The descriptors of each node's outputs. Most nodes whose outputs look alike share one list.
#[derive(Default)]
pub(in crate::graph) struct NodeShapes {
    /// Start and length of each node's descriptors in the list.
    of: Vec<(u32, u32)>,
    list: Vec<Desc>,
    last: (u32, u32),
}

impl NodeShapes {
    /// For this many nodes, of which nothing is known yet.
    pub fn of(nodes: usize) -> NodeShapes {
        NodeShapes { of: vec![(0, 0); nodes], ..NodeShapes::default() }
    }

    pub fn set(&mut self, node: usize, descs: &[Desc]) {
        if self.at(self.last) != descs {
            self.last = (self.list.len() as u32, descs.len() as u32);
            self.list.extend_from_slice(descs);
        }
        self.of[node] = self.last;
    }

    /// The same as for another node.
    fn set_as(&mut self, node: usize, other: (u32, u32)) {
        self.of[node] = other;
    }

    fn at(&self, (first, len): (u32, u32)) -> &[Desc] {
        &self.list[first as usize..][..len as usize]
    }

    /// Whether the node was there when this was made.
    pub fn has(&self, node: usize) -> bool {
        node < self.of.len()
    }

    /// The descriptors of all nodes.
    pub fn all(&self) -> &[Desc] {
        &self.list
    }
}

impl std::ops::Index<usize> for NodeShapes {
    type Output = [Desc];

    fn index(&self, node: usize) -> &[Desc] {
        self.at(self.of[node])
    }
}

/// Answers of kernels about their outputs in one compile: when a pass rewrites a graph, its kernels are not asked
/// again. A compile of one pass keeps nothing.
#[derive(Default)]
pub(in crate::graph) struct Answers {
    is_kept: bool,
    /// Hash index of the answers.
    index: HashIndex,
    list: Vec<Answer>,
    /// Inputs and outputs of each answer.
    descs: Vec<Desc>,
}

struct Answer {
    /// Kept alive, so that no other kernel gets its address.
    kernel: Arc<dyn Kernel>,
    /// The start of its descriptors.
    first: u32,
    num_inputs: u32,
    num_outputs: u32,
}

impl Answers {
    /// Keeps answers from now on.
    pub fn keep(&mut self) {
        self.is_kept = true;
    }

    /// Keeps an answer of a kernel.
    pub fn put(&mut self, kernel: &Arc<dyn Kernel>, inputs: &[Desc], outputs: &[Desc]) -> Result<()> {
        if self.find(kernel, inputs).is_some() { Ok(()) } else { self.add(kernel, inputs, outputs) }
    }

    fn find(&self, kernel: &Arc<dyn Kernel>, inputs: &[Desc]) -> Option<&[Desc]> {
        let is_it = |number: u32| {
            let answer = &self.list[number as usize];
            address(&answer.kernel) == address(kernel) && self.descs_of(answer).0 == inputs
        };
        let number = self.index.find(hash(kernel, inputs), is_it)?;
        Some(self.descs_of(&self.list[number as usize]).1)
    }

    fn descs_of(&self, answer: &Answer) -> (&[Desc], &[Desc]) {
        let len = (answer.num_inputs + answer.num_outputs) as usize;
        self.descs[answer.first as usize..][..len].split_at(answer.num_inputs as usize)
    }

    fn add(&mut self, kernel: &Arc<dyn Kernel>, inputs: &[Desc], outputs: &[Desc]) -> Result<()> {
        self.index.reserve("the shapes of a graph")?;
        self.index.insert(hash(kernel, inputs), self.list.len() as u32);
        let (num_inputs, num_outputs) = (inputs.len() as u32, outputs.len() as u32);
        let first = self.descs.len() as u32;
        self.list.push(Answer { kernel: Arc::clone(kernel), first, num_inputs, num_outputs });
        self.descs.extend(inputs.iter().chain(outputs));
        Ok(())
    }

    /// Sets the outputs of a node to its kernel's answer for these inputs.
    fn set(&mut self, shapes: &mut NodeShapes, node: usize, kernel: &BoundKernel, inputs: &[Desc]) -> Result<()> {
        if let Some(outputs) = self.is_kept.then(|| self.find(kernel.kernel(), inputs)).flatten() {
            shapes.set(node, outputs);
            return Ok(());
        }
        let outputs = kernel.infer_unnamed(inputs)?;
        shapes.set(node, &outputs);
        if self.is_kept { self.add(kernel.kernel(), inputs, &outputs) } else { Ok(()) }
    }
}

fn address(kernel: &Arc<dyn Kernel>) -> usize {
    Arc::as_ptr(kernel).addr()
}

fn hash(kernel: &Arc<dyn Kernel>, inputs: &[Desc]) -> u64 {
    let of = |hash: u64, desc: &Desc| {
        let hash = mix(hash, u64::from(desc.dtype) << 32 | u64::from(desc.rank));
        desc.shape().iter().fold(hash, |hash, &dim| mix(hash, dim as u64))
    };
    inputs.iter().fold(mix(address(kernel) as u64, 0), of)
}

/// The last answers for nodes of one graph: nodes with the same kernel and the same inputs share a list of outputs. One
/// answer is kept for each of a few kernels.
#[derive(Default)]
pub(in crate::graph) struct Recent<'a> {
    kept: Vec<Option<RecentAnswer<'a>>>,
    /// The inputs of the current node.
    pub inputs: Vec<Desc>,
}

struct RecentAnswer<'a> {
    kernel: &'a BoundKernel,
    inputs: Vec<Desc>,
    outputs: (u32, u32),
}

const KEPT: usize = 64;

impl<'a> Recent<'a> {
    /// Sets the outputs of a node to its kernel's answer for the current inputs.
    pub fn set(
        &mut self,
        shapes: &mut NodeShapes,
        node: usize,
        kernel: &'a BoundKernel,
        answers: &mut Answers,
    ) -> Result<()> {
        if self.kept.is_empty() {
            self.kept.resize_with(KEPT, || None);
        }
        // Kernels have memory of their own, so their addresses differ in higher bits.
        let place = (std::ptr::from_ref(kernel).addr() >> 5) % KEPT;
        if let Some(answer) = &self.kept[place]
            && std::ptr::eq(answer.kernel, kernel)
            && answer.inputs == self.inputs
        {
            shapes.set_as(node, answer.outputs);
            return Ok(());
        }
        answers.set(shapes, node, kernel, &self.inputs)?;
        let answer =
            self.kept[place].get_or_insert_with(|| RecentAnswer { kernel, inputs: Vec::new(), outputs: (0, 0) });
        answer.kernel = kernel;
        answer.inputs.clone_from(&self.inputs);
        answer.outputs = shapes.of[node];
        Ok(())
    }
}

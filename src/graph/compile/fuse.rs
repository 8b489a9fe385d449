//! Fusion: an elementwise node becomes the end of the kernel that makes its input, so that the result in between is
//! neither stored nor read again.
//!
//! Kernels say what they can end with (`Kernel::with_epilogue`) and what they are at the end of another one
//! (`Kernel::as_epilogue`); only kernels of the library's on the processor do. The fused kernel makes the same bits.
//! The node stands where the last of its parts stood, and has all of their names: 'conv1+add1+relu1'.
//!
//! A result in between that others see stays: an output, one that is read more than once, one whose memory was set, one
//! of a node that others wait for. So the only way from the first part on is through the second, and what else the
//! second reads cannot depend on the first: no cycle comes about. An addend that comes late would hold up the product
//! that it is added to; the two stay apart if the estimated costs say that the result would be there later.
#![forbid(unsafe_code)]

use super::sizes::OpenSizes;
use crate::base::{Desc, Ref, Result};
use crate::engine::BoundKernel;
use crate::graph::build::contents::{Contents, Node, NodeBody, Value};
use crate::graph::build::verify::{Kinds, Verified};
use crate::graph::plan::schedule;
use crate::kernel::{EpilogueStep, Kernel, OtherShape};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

/// A node that another one can end with, and whether it does.
#[derive(Clone, Debug)]
pub(in crate::graph) struct Fusion {
    pub node: String,
    pub into: String,
    /// The reason why the two stay apart.
    pub why_not: Option<String>,
}

/// The graph with what can be fused in it and inside of its nodes, or `None`; and what was found.
pub(super) fn fuse(graph: &Contents, verified: &Verified) -> Result<(Option<Contents>, Vec<Fusion>)> {
    let mut found = Vec::new();
    if !verified.kinds.has(Kinds::PURE.or(Kinds::COMPOUND)) {
        return Ok((None, found));
    }
    let contents = rewrite(graph, verified, &mut found)?;
    Ok((contents, found))
}

fn rewrite(graph: &Contents, verified: &Verified, found: &mut Vec<Fusion>) -> Result<Option<Contents>> {
    let (mut fused, mut is_gone) = (HashMap::new(), vec![false; graph.nodes.len()]);
    if graph.nodes.iter().any(is_candidate) {
        let mut work = Fusing::new(graph, verified);
        for &index in &verified.order {
            work.visit(index as usize);
        }
        found.append(&mut work.found);
        (fused, is_gone) = (work.fused, work.is_gone);
    }
    let mut inner = HashMap::new();
    for (index, node) in graph.nodes.iter().enumerate() {
        for (i, graph) in node.inner().enumerate() {
            if let Some(new) = rewrite(graph, &verified.inner[&index][i], found)? {
                inner.insert((index, i), Arc::new(new));
            }
        }
    }
    if fused.is_empty() && inner.is_empty() {
        return Ok(None);
    }
    let mut new = graph.clone();
    for (&index, part) in &fused {
        let kernel = part.first.with_kernel(Arc::clone(&part.kernel))?;
        let node = &mut new.nodes[index];
        node.name = part.name.as_str().into();
        node.body = NodeBody::Kernel { kernel, inputs: part.inputs.clone(), num_outputs: 1 };
        node.after.extend(part.after.iter().copied());
    }
    for ((index, i), graph) in inner {
        *new.nodes[index].inner_mut()[i] = graph;
    }
    let is_kept: Vec<bool> = is_gone.iter().map(|is_gone| !is_gone).collect();
    let outputs: Vec<usize> = (0..new.outputs.len()).collect();
    Ok(Some(new.part(&is_kept, &outputs).0))
}

/// Whether another node might end with this one; all elementwise kernels of the library's can work in place.
fn is_candidate(node: &Node) -> bool {
    matches!(&node.body, NodeBody::Kernel { kernel, num_outputs: 1, .. } if kernel.kernel().in_place())
}

/// A kernel that ends with the nodes behind it.
struct FusedNode<'a> {
    /// The kernel of the first part.
    first: &'a Ref<BoundKernel>,
    kernel: Arc<dyn Kernel>,
    inputs: Vec<Value>,
    /// The nodes that parts before the last one wait for without data.
    after: Vec<usize>,
    name: String,
}

struct Fusing<'a> {
    graph: &'a Contents,
    verified: &'a Verified,
    sizes: OpenSizes,
    /// By the number of the last part.
    fused: HashMap<usize, FusedNode<'a>>,
    is_gone: Vec<bool>,
    /// How often the results of a node are read, and whether the node is seen otherwise: as an output, or by a node
    /// that waits for it.
    reads: Vec<u32>,
    is_output: Vec<bool>,
    is_waited_for: Vec<bool>,
    /// The place of each node in the order.
    place: Vec<u32>,
    costs: Vec<u64>,
    /// The earliest begin and end of each node, by the estimated costs.
    begin: Vec<u64>,
    end: Vec<u64>,
    found: Vec<Fusion>,
}

impl<'a> Fusing<'a> {
    fn new(graph: &'a Contents, verified: &'a Verified) -> Fusing<'a> {
        let n = graph.nodes.len();
        let (mut reads, mut is_output, mut is_waited_for) = (vec![0; n], vec![false; n], vec![false; n]);
        for node in &graph.nodes {
            node.inputs().iter().for_each(|value| reads[value.0] += 1);
            node.after.iter().for_each(|&before| is_waited_for[before] = true);
        }
        graph.outputs.iter().for_each(|(_, value)| is_output[value.0] = true);
        let mut place = vec![0; n];
        verified.order.iter().enumerate().for_each(|(at, &index)| place[index as usize] = at as u32);
        Fusing {
            graph,
            verified,
            sizes: OpenSizes::of(graph, verified),
            fused: HashMap::new(),
            is_gone: vec![false; n],
            reads,
            is_output,
            is_waited_for,
            place,
            costs: schedule::costs(graph, verified, &vec![true; n]),
            begin: vec![0; n],
            end: vec![0; n],
            found: Vec::new(),
        }
    }

    fn visit(&mut self, index: usize) {
        let node = &self.graph.nodes[index];
        let begin = node.predecessors().map(|before| self.end[before]).max().unwrap_or(0);
        (self.begin[index], self.end[index]) = (begin, begin.saturating_add(self.costs[index]));
        let NodeBody::Kernel { kernel, inputs, .. } = &node.body else { return };
        if !is_candidate(node) {
            return;
        }
        let descs: Vec<Desc> = inputs.iter().map(|&value| *self.verified.desc(value)).collect();
        // A product saves more than a chain. Of two, the one that comes later does not wait for the other.
        let mut positions: Vec<usize> = (0..inputs.len()).collect();
        positions
            .sort_by_key(|&position| Reverse((self.is_product(inputs[position].0), self.place[inputs[position].0])));
        positions.dedup_by_key(|position| inputs[*position]);
        for position in positions {
            let Some(step) = kernel.kernel().as_epilogue(&descs, position) else { continue };
            let before = inputs[position].0;
            let Some((first, fused)) = self.ended(before, step) else { continue };
            let why_not = self.obstacle(index, position, step, first, kernel);
            let is_fused = why_not.is_none();
            self.found.push(Fusion { node: node.name.to_string(), into: self.name(before), why_not });
            if is_fused {
                self.join(index, position, first, fused);
                return;
            }
        }
    }

    /// The kernel of a node with one more step at its end, and the kernel of its first part.
    fn ended(&self, index: usize, step: EpilogueStep) -> Option<(&'a Ref<BoundKernel>, Arc<dyn Kernel>)> {
        let descs = |inputs: &[Value]| inputs.iter().map(|&value| *self.verified.desc(value)).collect::<Vec<Desc>>();
        if let Some(part) = self.fused.get(&index) {
            return Some((part.first, part.kernel.with_epilogue(step, &descs(&part.inputs))?));
        }
        let NodeBody::Kernel { kernel, inputs, num_outputs: 1 } = &self.graph.nodes[index].body else { return None };
        Some((kernel, kernel.kernel().with_epilogue(step, &descs(inputs))?))
    }

    /// Whether a node begins with a kernel that is not elementwise.
    fn is_product(&self, index: usize) -> bool {
        let NodeBody::Kernel { kernel, inputs, .. } = &self.graph.nodes[index].body else { return false };
        let (first, inputs) = self.fused.get(&index).map_or((kernel, inputs), |part| (part.first, &part.inputs));
        let first = first.kernel();
        let descs: Vec<Desc> =
            inputs.iter().take(first.num_inputs()).map(|&value| *self.verified.desc(value)).collect();
        first.as_epilogue(&descs, 0).is_none()
    }

    fn name(&self, index: usize) -> String {
        self.fused.get(&index).map_or_else(|| self.graph.nodes[index].name.to_string(), |part| part.name.clone())
    }

    /// The reason why a node stays apart from the one that makes its input at this position.
    fn obstacle(
        &self,
        index: usize,
        position: usize,
        step: EpilogueStep,
        first: &BoundKernel,
        last: &BoundKernel,
    ) -> Option<String> {
        let Node { body: NodeBody::Kernel { inputs, .. }, .. } = &self.graph.nodes[index] else { return None };
        let before = inputs[position].0;
        let is_set = |index: usize| self.graph.forwarding.contains_key(&(index, 0));
        let same_engine = first.engine().is_same_device(last.engine()) && first.on_device().is_none();
        match () {
            () if self.is_output[before] => return Some("its result is an output".to_owned()),
            () if self.reads[before] > 1 => return Some("its result is read more than once".to_owned()),
            () if self.is_waited_for[before] => return Some("another node waits for it".to_owned()),
            () if is_set(before) || is_set(index) => return Some("the memory of a result was set".to_owned()),
            () if !same_engine => return Some("they are on different engines".to_owned()),
            () => {}
        }
        let other = inputs.iter().enumerate().find(|(i, _)| *i != position).map(|(_, value)| *value)?;
        let name = &self.graph.nodes[other.0].name;
        let is_same = matches!(step, EpilogueStep::Binary { other: OtherShape::Same, .. });
        if is_same && !self.sizes.are_same(self.verified, inputs[position], other) {
            return Some(format!("only a run knows whether '{name}' has its shape"));
        }
        let cost = self.end[before] - self.begin[before];
        let fused = self.begin[before].max(self.end[other.0]).saturating_add(cost);
        let apart = self.end[before].max(self.end[other.0]).saturating_add(self.costs[index]);
        (fused > apart).then(|| format!("it would wait for '{name}'"))
    }

    /// Makes the node the end of the one that makes its input at this position.
    fn join(&mut self, index: usize, position: usize, first: &'a Ref<BoundKernel>, kernel: Arc<dyn Kernel>) {
        let node = &self.graph.nodes[index];
        let before = node.inputs()[position].0;
        let mut part = self.fused.remove(&before).unwrap_or_else(|| {
            let old = &self.graph.nodes[before];
            FusedNode {
                first,
                kernel: Arc::clone(&kernel),
                inputs: old.inputs().to_vec(),
                after: Vec::new(),
                name: old.name.to_string(),
            }
        });
        let others = node.inputs().iter().enumerate().filter(|(i, _)| *i != position).map(|(_, value)| *value);
        part.inputs.extend(others);
        part.after.extend(self.graph.nodes[before].after.iter().copied());
        part.kernel = kernel;
        part.name = format!("{}+{}", part.name, node.name);
        let cost = self.end[before] - self.begin[before];
        let other = node.predecessors().filter(|&other| other != before).map(|other| self.end[other]).max();
        self.begin[index] = self.begin[before].max(other.unwrap_or(0));
        self.end[index] = self.begin[index].saturating_add(cost);
        self.is_gone[before] = true;
        self.fused.insert(index, part);
    }
}

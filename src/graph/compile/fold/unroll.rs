//! Loops that go round a few times, as constants say: each iteration is written out.
//!
//! How often that is, is found out by calling what the condition depends on, iteration by iteration: pure and cheap
//! kernels of constants. Nothing else is called for it. A loop is left as it is if it goes round more than `MOST_TRIPS`
//! times, if it would become more than `MOST_NODES` nodes, if there are loops inside of it, if its condition has
//! effects, or if a variable's memory is reserved.
//!
//! Nodes with effects wait for the whole of an earlier iteration: by as many earlier as may run at once. Which pure
//! nodes are run does not depend on that number.
#![forbid(unsafe_code)]

use super::{FoldedEnd, Folding, call, has_switch, rewrite};
use crate::base::Ref;
use crate::engine::Tensor;
use crate::graph::build::contents::{Contents, Node, NodeBody, Value};
use crate::graph::build::options::Forwarding;
use crate::graph::build::verify::{Verified, has_effects};
use crate::graph::plan::effects::is_ordered;
use std::collections::HashMap;

/// Most iterations that are written out.
const MOST_TRIPS: usize = 16;
/// Most nodes that a loop may become.
const MOST_NODES: usize = 256;
/// A kernel that takes longer, in nanoseconds, is not called to find out how often a loop goes round.
const MOST_NS: u64 = 100_000;

/// A value that is known, or not.
type Known = Option<Ref<Tensor>>;

impl Folding<'_> {
    /// Writes the loop out; false if it can't be.
    pub(super) fn unroll(
        &mut self,
        index: usize,
        condition: &Contents,
        body: &Contents,
        num_variables: usize,
        parallel: u32,
    ) -> bool {
        let (graph, nodes) = (self.graph, body.num_nodes());
        if nodes > MOST_NODES {
            return false;
        }
        let node = &graph.nodes[index];
        let inner = &self.verified.inner[&index];
        let inputs = self.inputs(node);
        let known: Vec<Known> = inputs.iter().map(|&value| self.tensor(value).cloned()).collect();
        let Some(trips) = trips(condition, body, inner, &known, num_variables) else { return false };
        // A user of the loop's values comes behind what the loop waits for; behind pure nodes it would not.
        let waits = !node.after.is_empty();
        if trips == 0 || trips * nodes > MOST_NODES || waits || !may_be_written_out(condition, body) {
            return false;
        }
        let parallel = if is_ordered(body) { 1 } else { parallel };
        let before = self.before(&inputs);
        let mut values = inputs;
        let mut ended: Vec<Vec<usize>> = Vec::with_capacity(trips);
        for trip in 0..trips {
            let known: Vec<Known> = values.iter().map(|&value| self.tensor(value).cloned()).collect();
            let iteration = rewrite(body, &inner[1], &known);
            let wait = trip.checked_sub(parallel as usize).map_or(&before, |done| &ended[done]).clone();
            let name = format!("{}/{trip}", node.name);
            let (next, last) = self.splice(&name, iteration, &values, &wait);
            ended.push(last);
            values[..num_variables].copy_from_slice(&next);
        }
        values.truncate(num_variables);
        self.values[index] = values;
        let last = ended.into_iter().rev().take(parallel as usize).flatten();
        self.done[index] = FoldedEnd::Parts(last.chain(before).collect());
        self.unrolled += 1;
        true
    }
}

fn may_be_written_out(condition: &Contents, body: &Contents) -> bool {
    let is_reserved =
        |(_, value): &(String, Value)| matches!(body.forwarding.get(value), Some(Forwarding::Reserved(_)));
    let has_loop = |node: &Node| matches!(node.body, NodeBody::While { .. });
    !condition.nodes.iter().any(has_effects)
        && !has_switch(body)
        && !any(body, &has_loop)
        && !body.outputs.iter().any(is_reserved)
}

/// Whether a node of a graph, or of those inside of it, is like that.
fn any(graph: &Contents, like: &dyn Fn(&Node) -> bool) -> bool {
    graph.nodes.iter().any(|node| like(node) || node.inner().any(|inner| any(inner, like)))
}

/// How often a loop goes round; None if that is not known, or too often.
fn trips(
    condition: &Contents,
    body: &Contents,
    verified: &[Verified],
    first: &[Known],
    num_variables: usize,
) -> Option<usize> {
    let decisive = decisive(condition, body, verified, num_variables);
    if decisive.iter().zip(first).any(|(decides, known)| *decides && known.is_none()) {
        return None;
    }
    let wanted: Vec<Value> = (0..num_variables).filter(|&i| decisive[i]).map(|i| body.outputs[i].1).collect();
    let mut known = first.to_vec();
    for trip in 0..=MOST_TRIPS {
        let goes_on = values(condition, &verified[0], &known, &[condition.outputs[0].1])?;
        if super::elements(&goes_on[0]).read_integer() == 0 {
            return Some(trip);
        }
        let mut next = values(body, &verified[1], &known, &wanted)?.into_iter();
        for i in (0..num_variables).filter(|&i| decisive[i]) {
            known[i] = next.next();
        }
    }
    None
}

/// Which of the loop's inputs the condition depends on, in any iteration.
fn decisive(condition: &Contents, body: &Contents, verified: &[Verified], num_variables: usize) -> Vec<bool> {
    let mut decisive = inputs_behind(condition, &verified[0], &[condition.outputs[0].1]);
    loop {
        let before = decisive.iter().filter(|decides| **decides).count();
        let next: Vec<Value> = (0..num_variables).filter(|&i| decisive[i]).map(|i| body.outputs[i].1).collect();
        for (known, more) in decisive.iter_mut().zip(inputs_behind(body, &verified[1], &next)) {
            *known |= more;
        }
        if decisive.iter().filter(|decides| **decides).count() == before {
            return decisive;
        }
    }
}

/// Which nodes are needed for some values.
fn needed(graph: &Contents, verified: &Verified, wanted: &[Value]) -> Vec<bool> {
    let mut needed = vec![false; graph.nodes.len()];
    wanted.iter().for_each(|value| needed[value.0] = true);
    for &index in verified.order.iter().rev() {
        if needed[index as usize] {
            graph.nodes[index as usize].inputs().iter().for_each(|value| needed[value.0] = true);
        }
    }
    needed
}

fn inputs_behind(graph: &Contents, verified: &Verified, wanted: &[Value]) -> Vec<bool> {
    let needed = needed(graph, verified, wanted);
    graph.inputs().map(|node| needed[node]).collect()
}

/// Some of a graph's values, if they are known when its inputs are, and cheap.
fn values(graph: &Contents, verified: &Verified, inputs: &[Known], wanted: &[Value]) -> Option<Vec<Ref<Tensor>>> {
    let needed = needed(graph, verified, wanted);
    if needed.iter().filter(|needed| **needed).count() > MOST_NODES {
        return None;
    }
    let ports: HashMap<usize, usize> = graph.inputs().enumerate().map(|(i, node)| (node, i)).collect();
    let mut made: HashMap<usize, Vec<Ref<Tensor>>> = HashMap::new();
    for &index in verified.order.iter().filter(|&&index| needed[index as usize]) {
        let index = index as usize;
        let outputs = match &graph.nodes[index].body {
            NodeBody::Input(_) => vec![inputs[ports[&index]].clone()?],
            NodeBody::Constant(tensor) => vec![tensor.clone()],
            NodeBody::Kernel { kernel, inputs, .. } if kernel.kernel().is_pure() => {
                let from: Vec<_> = inputs.iter().map(|(node, output)| made[node][*output].clone()).collect();
                let descs: Vec<_> = from.iter().map(|tensor| *tensor.desc()).collect();
                let own = kernel.kernel();
                let waits = own.is_async() || own.may_block();
                if waits || own.cost_ns(&descs, &verified.descs[index]) > MOST_NS {
                    return None;
                }
                call(kernel, &super::views(&from), &verified.descs[index]).ok()?
            }
            _ => return None,
        };
        made.insert(index, outputs);
    }
    Some(wanted.iter().map(|(node, output)| made[node][*output].clone()).collect())
}

//! Which inputs a cond begins without.

use super::GraphLayout;
use crate::graph::build::contents::{Contents, Node, NodeBody, Value};
use crate::graph::build::verify::Verified;
use crate::graph::compile::layout::flat::ArrivalSource;
use crate::graph::plan::NO_BIT;
use crate::graph::plan::schedule;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// Numbers of sources.
type Needs = BTreeSet<usize>;

impl GraphLayout<'_> {
    /// The inputs of a cond or case that its Select does not wait for: those that something in a branch can begin
    /// without, and that do not come before the selector anyway. An input that can be absent is never one, because the
    /// whole cond is skipped then; and in a loop whose iterations overlap none is.
    pub(super) fn late_inputs(&mut self, index: usize, branches: &[Arc<Contents>]) -> Vec<Value> {
        if self.scope.is_copied() {
            return Vec::new();
        }
        let node = &self.graph.nodes[index];
        let (selector, inputs) = (node.inputs()[0], &node.inputs()[1..]);
        let mut before: Vec<ArrivalSource> = node.after.iter().map(|&before| self.done[before]).collect();
        before.extend([selector].iter().chain(inputs).map(|value| self.value(*value)).enumerate().filter_map(
            |(i, val)| {
                let is_waited_for = i == 0 || val.bit != NO_BIT;
                is_waited_for.then_some(val.source)
            },
        ));
        before.retain(|source| *source != ArrivalSource::Nobody);
        before.sort_unstable();
        before.dedup();
        // The others, by source.
        let mut sources: Vec<ArrivalSource> = Vec::new();
        let mut source_of: Vec<Option<usize>> = Vec::with_capacity(inputs.len());
        for value in inputs {
            let val = self.value(*value);
            let may_be = val.source != ArrivalSource::Nobody && val.bit == NO_BIT;
            let known = sources.iter().position(|source| *source == val.source);
            let new = known.is_none() && may_be && !self.flat.is_implied(val.source, &before);
            source_of.push(known.filter(|_| may_be).or_else(|| new.then_some(sources.len())));
            sources.extend(new.then_some(val.source));
        }
        if sources.is_empty() {
            return Vec::new();
        }
        let wanted: Vec<bool> = (0..node.num_outputs()).map(|output| self.used[self.at((index, output))]).collect();
        let mut needed_by_all: Needs = (0..sources.len()).collect();
        for (graph, verified) in branches.iter().zip(&self.verified.inner[&index]) {
            for needs in first_needs(graph, verified, &wanted, &source_of) {
                needed_by_all.retain(|source| needs.contains(source));
            }
        }
        let is_late = |source: &Option<usize>| source.is_some_and(|source| !needed_by_all.contains(&source));
        let late: Vec<Value> =
            inputs.iter().zip(&source_of).filter(|(_, source)| is_late(source)).map(|(v, _)| *v).collect();
        self.late.extend(&late);
        late
    }

    /// As `arrive`, without waiting for these values.
    pub(super) fn arrive_but_for(&mut self, id: u32, node: &Node, late: &[Value]) {
        let values: Vec<Value> = node.inputs().iter().filter(|value| !late.contains(value)).copied().collect();
        let mut sources = self.sources(&values, node);
        self.wait_for(id, &mut sources);
    }
}

/// The needs of those nodes in a branch that wait for nothing else inside of it; `source_of` is by input. A branch
/// without such nodes needs nothing.
fn first_needs(graph: &Contents, verified: &Verified, wanted: &[bool], source_of: &[Option<usize>]) -> Vec<Needs> {
    let live = schedule::live(graph, verified, wanted);
    let ports: HashMap<usize, usize> = graph.inputs().enumerate().map(|(port, index)| (index, port)).collect();
    let is_given = |index: usize| matches!(graph.nodes[index].body, NodeBody::Input(_) | NodeBody::Constant(_));
    let needs = |values: &[Value]| -> Needs {
        values.iter().filter_map(|value| ports.get(&value.0).and_then(|&port| source_of[port])).collect()
    };
    let mut all = Vec::new();
    for (_, node) in graph.nodes.iter().enumerate().filter(|(index, _)| live[*index] && !is_given(*index)) {
        let waits_for = match &node.body {
            // It may begin before the rest is there as well.
            NodeBody::Case { inputs, .. } => &inputs[..1],
            _ => node.inputs(),
        };
        if waits_for.iter().all(|value| is_given(value.0)) && node.after.iter().all(|&before| is_given(before)) {
            all.push(needs(waits_for));
        }
    }
    for ((_, value), _) in graph.outputs.iter().zip(wanted).filter(|((_, value), wanted)| **wanted && is_given(value.0))
    {
        all.push(needs(&[*value]));
    }
    if all.is_empty() {
        all.push(Needs::new());
    }
    all
}

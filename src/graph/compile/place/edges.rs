//! Nodes taken apart so that their edges can be laid anew.
#![forbid(unsafe_code)]

use crate::graph::build::contents::{Body, Contents, Node, Value};

/// Where nodes go that are made one with others: for each node the one that it becomes, and which of its outputs is the
/// first one's.
#[derive(Default)]
pub(in crate::graph) struct Joined(Vec<(usize, usize)>);

impl Joined {
    pub fn none(nodes: usize) -> Joined {
        Joined((0..nodes).map(|node| (node, 0)).collect())
    }

    /// `node` is part of `into` from now on.
    pub fn join(&mut self, node: usize, into: usize, first_output: usize) {
        self.0[node] = (into, first_output);
    }

    /// `node` is left out. Nothing names it any more.
    pub fn leave_out(&mut self, node: usize) {
        self.0[node] = (usize::MAX, 0);
    }

    pub fn is_kept(&self, node: usize) -> bool {
        self.0.get(node).is_none_or(|&(into, _)| into != usize::MAX)
    }

    pub fn of(&self, node: usize) -> usize {
        self.0.get(node).map_or(node, |&(into, _)| into)
    }

    /// A value, where it is now.
    pub fn value(&self, (node, output): Value) -> Value {
        self.0.get(node).map_or((node, output), |&(into, first)| (into, first + output))
    }

    /// Leaves out the nodes that are part of others, here and wherever they are named; gives the new numbers.
    pub fn apply(&self, nodes: &mut Vec<Node>) -> Vec<usize> {
        let mut kept = 0;
        let number: Vec<usize> = (0..nodes.len())
            .map(|node| {
                let is_kept = self.of(node) == node;
                kept += usize::from(is_kept);
                if is_kept { kept - 1 } else { usize::MAX }
            })
            .collect();
        let mut at = 0;
        nodes.retain(|_| {
            at += 1;
            number[at - 1] != usize::MAX
        });
        for node in nodes.iter_mut() {
            for value in node.inputs_mut() {
                let (of, output) = self.value(*value);
                *value = (number[of], output);
            }
            node.after.iter_mut().for_each(|before| *before = number[self.of(*before)]);
            node.after.sort_unstable();
            node.after.dedup();
        }
        number
    }
}

impl Contents {
    /// Has all that read a value read another one.
    pub(in crate::graph) fn rewire(&mut self, from: Value, to: Value) {
        self.nodes.iter_mut().for_each(|node| node.reread(from, to));
        self.outputs.iter_mut().filter(|(_, value)| *value == from).for_each(|(_, value)| *value = to);
    }
}

impl Node {
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

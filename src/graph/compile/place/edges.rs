//! Nodes taken apart so that their edges can be laid anew.
#![forbid(unsafe_code)]

use crate::graph::build::contents::{Node, Value};

/// Where nodes go that are made one with others: for each node the one that it becomes, and which of its outputs is the
/// first one's.
#[derive(Default)]
pub(in crate::graph) struct JoinedNodes(Vec<(usize, usize)>);

impl JoinedNodes {
    pub fn none(nodes: usize) -> JoinedNodes {
        JoinedNodes((0..nodes).map(|node| (node, 0)).collect())
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

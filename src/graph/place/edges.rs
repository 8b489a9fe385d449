//! Nodes taken apart so that their edges can be laid anew.
#![forbid(unsafe_code)]

use crate::graph::builder::{Body, Contents, Node, Value};
use std::sync::Arc;

impl Node {
    /// Node and output of each data input.
    pub(super) fn inputs_mut(&mut self) -> &mut [Value] {
        match &mut self.body {
            Body::Kernel { inputs, .. }
            | Body::Case { inputs, .. }
            | Body::While { inputs, .. }
            | Body::Merge { inputs } => inputs,
            Body::Switch { inputs } => inputs,
            Body::Input(_) | Body::Constant(_) | Body::Task { .. } => &mut [],
        }
    }

    /// The graphs inside of this node, in the order of `inner`.
    pub(super) fn inner_mut(&mut self) -> Vec<&mut Arc<Contents>> {
        match &mut self.body {
            Body::Case { branches, .. } => branches.iter_mut().collect(),
            Body::While { condition, body, .. } => vec![condition, body],
            _ => Vec::new(),
        }
    }

    /// One more input, for what is inside.
    pub(super) fn add_inner_input(&mut self, value: Value) {
        match &mut self.body {
            Body::Case { inputs, .. } => inputs.push(value),
            Body::While { inputs, parallel_iterations, .. } => {
                inputs.push(value);
                *parallel_iterations = 1;
            }
            _ => {}
        }
    }
}

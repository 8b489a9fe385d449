//! Graphs inside of graphs as programs of their own: each branch, condition and body has one node, which is a program.

use super::super::spec::{Graph, Kind, Node};
use super::{Builder, Keep};
use std::sync::Arc;
use weir_core::base::{Ref, Result};
use weir_core::graph::{self, Program};

impl Builder<'_> {
    /// A graph with the ports of `spec`, whose one node is `spec` compiled.
    pub fn wrapped(&self, name: &str, spec: &Graph) -> Result<graph::Graph> {
        let inner = self.graph(name, spec)?;
        let program = Program::compile(&inner, vec![Ref::clone(self.engine)], &self.options(false))?;
        let mut outer = graph::Graph::new(name);
        let mut inputs = Vec::new();
        for (i, port) in program.inputs().iter().enumerate() {
            inputs.push(outer.add_input(&format!("input{i}"), port.desc)?);
        }
        let node = outer.add_program(&format!("program {name}"), &program, &inputs, spec.outputs.len())?;
        if !spec.outputs.is_empty() && spec.any(has_effects) {
            let keep = outer.add_task("keep", Arc::new(Keep), 0)?;
            outer.add_control_edge(node, keep)?;
        }
        for o in 0..spec.outputs.len() {
            outer.add_output(&format!("output{o}"), node.output(o))?;
        }
        Ok(outer)
    }
}

fn has_effects(node: &Node) -> bool {
    matches!(node.kind, Kind::Task) || matches!(node.kind, Kind::Leaf { .. }) && node.outputs.is_empty()
}

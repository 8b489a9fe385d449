//! Control flow out of the library's own nodes.

use super::super::spec::{self, Kind, Node};
use super::{Builder, Lowering};
use weir_core::base::Result;
use weir_core::graph::{Graph, NodeId, ValueId};

impl Builder<'_> {
    fn inner(&self, name: &str, graph: &spec::Graph) -> Result<Graph> {
        if self.lowering == Lowering::Programs { self.wrapped(name, graph) } else { self.graph(name, graph) }
    }

    pub fn add_region(&self, graph: &mut Graph, node: &Node, values: &[ValueId]) -> Result<NodeId> {
        let name = &node.name();
        match &node.kind {
            Kind::Cond { then, otherwise } => {
                let (then, otherwise) = (self.inner("then", then)?, self.inner("otherwise", otherwise)?);
                graph.add_cond(name, values[0], &then, &otherwise, &values[1..])
            }
            Kind::Case { branches } => {
                let branches: Vec<Graph> =
                    branches.iter().map(|branch| self.inner("branch", branch)).collect::<Result<_>>()?;
                let branches: Vec<&Graph> = branches.iter().collect();
                graph.add_case(name, values[0], &branches, &values[1..])
            }
            Kind::While { condition, body, parallel_iterations } => {
                let (condition, body) = (self.inner("condition", condition)?, self.inner("body", body)?);
                let (variables, invariants) = values.split_at(node.outputs.len());
                graph.add_while(name, &condition, &body, variables, invariants, *parallel_iterations)
            }
            Kind::Switch => graph.add_switch(name, values[0], values[1]),
            Kind::Merge => graph.add_merge(name, values),
            Kind::Constant(_) | Kind::Leaf { .. } | Kind::Task => unreachable!("no control flow"),
        }
    }
}

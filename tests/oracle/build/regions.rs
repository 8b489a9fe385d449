//! Control flow out of the library's own nodes.

use super::super::spec::{Kind, Node};
use super::Builder;
use weir::base::Result;
use weir::graph::{Graph, NodeId, ValueId};

impl Builder<'_> {
    pub fn add_region(&self, graph: &mut Graph, node: &Node, values: &[ValueId]) -> Result<NodeId> {
        let name = &node.name();
        match &node.kind {
            Kind::Cond { then, otherwise } => {
                let (then, otherwise) = (self.graph("then", then)?, self.graph("otherwise", otherwise)?);
                graph.add_cond(name, values[0], &then, &otherwise, &values[1..])
            }
            Kind::Case { branches } => {
                let branches: Vec<Graph> =
                    branches.iter().map(|branch| self.graph("branch", branch)).collect::<Result<_>>()?;
                let branches: Vec<&Graph> = branches.iter().collect();
                graph.add_case(name, values[0], &branches, &values[1..])
            }
            Kind::While { condition, body, parallel_iterations } => {
                let (condition, body) = (self.graph("condition", condition)?, self.graph("body", body)?);
                let (variables, invariants) = values.split_at(node.outputs.len());
                graph.add_while(name, &condition, &body, variables, invariants, *parallel_iterations)
            }
            Kind::Switch => graph.add_switch(name, values[0], values[1]),
            Kind::Merge => graph.add_merge(name, values),
            Kind::Constant(_) | Kind::Leaf { .. } | Kind::Task => unreachable!("no control flow"),
        }
    }
}

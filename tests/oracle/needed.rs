//! Which nodes must run, and which may be left out because nothing that comes out of the program depends on them.
//!
//! What must run: tasks and kernels without outputs, what outputs of the program depend on, with and without data, and
//! so on backwards. It is the least that a correct executor does; everything that is live is the most.

use super::spec::{Graph, Kind, Node, Spec, Value};
use std::collections::BTreeSet;

/// Ids of the nodes that must run when they are live.
pub fn needed(spec: &Spec) -> BTreeSet<usize> {
    let mut ids = BTreeSet::new();
    graph(&spec.graph, &(0..spec.graph.outputs.len()).collect(), &mut ids);
    ids
}

/// Notes the nodes that the graph needs to give `outputs` and for its effects; gives the inputs that it needs.
fn graph(graph: &Graph, outputs: &BTreeSet<usize>, ids: &mut BTreeSet<usize>) -> BTreeSet<usize> {
    let mut inputs = BTreeSet::new();
    // Of each node: whether it must run, and which of its outputs are asked for.
    let mut asked = vec![(false, BTreeSet::new()); graph.nodes.len()];
    let ask = |value: Value, asked: &mut Vec<(bool, BTreeSet<usize>)>, inputs: &mut BTreeSet<usize>| match value {
        Value::Input(i) => drop(inputs.insert(i)),
        Value::Node(n, o) => {
            asked[n].0 = true;
            asked[n].1.insert(o);
        }
    };
    outputs.iter().for_each(|&o| ask(graph.outputs[o], &mut asked, &mut inputs));
    for (place, node) in graph.nodes.iter().enumerate().rev() {
        let (run, outputs) = asked[place].clone();
        if !run && !has_effects(node) {
            continue;
        }
        for i in node_inputs(node, &outputs, ids) {
            ask(node.inputs[i], &mut asked, &mut inputs);
        }
        node.after.iter().for_each(|&before| asked[before].0 = true);
    }
    inputs
}

fn has_effects(node: &Node) -> bool {
    let own = |node: &Node| match node.kind {
        Kind::Task => true,
        Kind::Leaf { .. } => node.outputs.is_empty(),
        _ => false,
    };
    own(node) || node.graphs().iter().any(|(_, graph)| graph.any(own))
}

/// The inputs that a node needs when these outputs are asked for.
fn node_inputs(node: &Node, outputs: &BTreeSet<usize>, ids: &mut BTreeSet<usize>) -> BTreeSet<usize> {
    ids.insert(node.id);
    match &node.kind {
        Kind::Constant(_) | Kind::Switch | Kind::Merge | Kind::Leaf { .. } | Kind::Task => {
            (0..node.inputs.len()).collect()
        }
        Kind::Cond { .. } | Kind::Case { .. } => {
            let mut inputs = BTreeSet::from([0]);
            for (_, branch) in node.graphs() {
                inputs.extend(graph(branch, outputs, ids).iter().map(|i| i + 1));
            }
            inputs
        }
        Kind::While { condition, body, .. } => {
            // A variable is needed if the condition needs it, if it is asked for, or if a needed one's next value needs it.
            let variables = node.outputs.len();
            let mut inputs = graph(condition, &BTreeSet::from([0]), ids);
            inputs.extend(outputs);
            loop {
                let next: BTreeSet<usize> = inputs.iter().copied().filter(|&i| i < variables).collect();
                let more = graph(body, &next, ids);
                let before = inputs.len();
                inputs.extend(more);
                if inputs.len() == before {
                    return inputs;
                }
            }
        }
    }
}

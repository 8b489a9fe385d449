//! Which nodes must run, and which may be left out because nothing that comes out of the program depends on them.
//!
//! What must run: tasks and kernels without outputs, what outputs of the program depend on, with and without data, and
//! so on backwards. It is the least that a correct executor does; everything that is live is the most.

use super::spec::{Graph, Kind, Node, Spec, Value};
use std::collections::BTreeSet;

/// Ids of the nodes that must run when they are live.
pub fn needed(spec: &Spec) -> BTreeSet<usize> {
    let mut ids = BTreeSet::new();
    let scope = Scope { graph: &spec.graph, given: Vec::new() };
    scope.note(&(0..spec.graph.outputs.len()).collect(), &mut ids);
    ids
}

/// Names of the nodes of which it is known without a run what becomes of them: what they give may come from elsewhere.
pub fn decided(spec: &Spec) -> BTreeSet<String> {
    fn note(scope: &Scope<'_>, names: &mut BTreeSet<String>) {
        for node in &scope.graph.nodes {
            if scope.is_decided(node) {
                names.insert(node.name());
            }
            scope.inside(node).iter().for_each(|inner| note(inner, names));
        }
    }
    let mut names = BTreeSet::new();
    note(&Scope { graph: &spec.graph, given: Vec::new() }, &mut names);
    names
}

/// A graph, and the inputs that are constants in the graphs around it: what they decide may be decided before any run.
struct Scope<'a> {
    graph: &'a Graph,
    given: Vec<Option<i32>>,
}

impl<'a> Scope<'a> {
    /// The first item of a value that is a constant.
    fn known(&self, value: Value) -> Option<i32> {
        let (place, output) = match value {
            Value::Input(i) => return self.given.get(i).copied().flatten(),
            Value::Node(place, output) => (place, output),
        };
        let node = &self.graph.nodes[place];
        match &node.kind {
            Kind::Constant(data) => Some(data[output].items[0]),
            Kind::Cond { .. } | Kind::Case { .. } => {
                let [chosen] = &self.inside(node)[..] else { return None };
                chosen.known(chosen.graph.outputs[output])
            }
            Kind::While { body, .. } => {
                let stays = self.never_begins(node) || body.outputs[output] == Value::Input(output);
                if stays { self.known(node.inputs[output]) } else { None }
            }
            Kind::Leaf { .. } | Kind::Task | Kind::Switch | Kind::Merge => None,
        }
    }

    /// Whether it is known what becomes of a node with graphs inside.
    fn is_decided(&self, node: &Node) -> bool {
        match &node.kind {
            Kind::Cond { .. } | Kind::Case { .. } => self.known(node.inputs[0]).is_some(),
            Kind::While { .. } => self.never_begins(node),
            _ => false,
        }
    }

    fn never_begins(&self, node: &Node) -> bool {
        let Kind::While { condition, .. } = &node.kind else { return false };
        let given = node.inputs.iter().map(|&value| self.known(value)).collect();
        Scope { graph: condition, given }.known(condition.outputs[0]) == Some(0)
    }

    /// The graphs inside of a node that may run.
    fn inside(&self, node: &'a Node) -> Vec<Scope<'a>> {
        let known = |from: usize| -> Vec<Option<i32>> { node.inputs[from..].iter().map(|&v| self.known(v)).collect() };
        match &node.kind {
            Kind::Cond { then, otherwise } => {
                let graphs = match self.known(node.inputs[0]) {
                    None => vec![then, otherwise],
                    Some(0) => vec![otherwise],
                    Some(_) => vec![then],
                };
                graphs.into_iter().map(|graph| Scope { graph, given: known(1) }).collect()
            }
            Kind::Case { branches } => {
                let graphs: Vec<&Graph> = match self.known(node.inputs[0]) {
                    None => branches.iter().collect(),
                    Some(index) => {
                        let last = branches.len() - 1;
                        vec![&branches[usize::try_from(index).map_or(last, |index| index.min(last))]]
                    }
                };
                graphs.into_iter().map(|graph| Scope { graph, given: known(1) }).collect()
            }
            Kind::While { .. } if self.never_begins(node) => Vec::new(),
            Kind::While { condition, body, .. } => {
                let mut given = known(0);
                for (i, value) in given.iter_mut().enumerate().take(node.outputs.len()) {
                    value.take_if(|_| body.outputs[i] != Value::Input(i));
                }
                vec![Scope { graph: condition, given: given.clone() }, Scope { graph: body, given }]
            }
            _ => Vec::new(),
        }
    }

    /// Notes the nodes that the graph needs to give `outputs` and for its effects; gives the inputs that it needs.
    fn note(&self, outputs: &BTreeSet<usize>, ids: &mut BTreeSet<usize>) -> BTreeSet<usize> {
        let graph = self.graph;
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
            let has_effects = self.has_effects(node);
            if !run && !has_effects {
                continue;
            }
            for i in self.node_inputs(node, &outputs, ids) {
                ask(node.inputs[i], &mut asked, &mut inputs);
            }
            // What stands in the place of a decided node waits only where that can be seen.
            if has_effects || !self.is_decided(node) {
                node.after.iter().for_each(|&before| asked[before].0 = true);
            }
        }
        inputs
    }

    fn has_effects(&self, node: &Node) -> bool {
        match node.kind {
            Kind::Task => true,
            Kind::Leaf { .. } => node.outputs.is_empty(),
            _ => self.inside(node).iter().any(|inner| inner.graph.nodes.iter().any(|node| inner.has_effects(node))),
        }
    }

    /// The inputs that a node needs when these outputs are asked for.
    fn node_inputs(&self, node: &Node, outputs: &BTreeSet<usize>, ids: &mut BTreeSet<usize>) -> BTreeSet<usize> {
        ids.insert(node.id);
        match &node.kind {
            Kind::Constant(_) | Kind::Switch | Kind::Merge | Kind::Leaf { .. } | Kind::Task => {
                (0..node.inputs.len()).collect()
            }
            Kind::Cond { .. } | Kind::Case { .. } => {
                let mut inputs = BTreeSet::from([0]);
                for inner in self.inside(node) {
                    inputs.extend(inner.note(outputs, ids).iter().map(|i| i + 1));
                }
                inputs
            }
            Kind::While { .. } => {
                let [condition, body] = &self.inside(node)[..] else { return outputs.clone() };
                // A variable is needed if the condition needs it, if it is asked for, or if a needed one's next value
                // needs it.
                let variables = node.outputs.len();
                let mut inputs = condition.note(&BTreeSet::from([0]), ids);
                inputs.extend(outputs);
                loop {
                    let next: BTreeSet<usize> = inputs.iter().copied().filter(|&i| i < variables).collect();
                    let more = body.note(&next, ids);
                    let before = inputs.len();
                    inputs.extend(more);
                    if inputs.len() == before {
                        return inputs;
                    }
                }
            }
        }
    }
}

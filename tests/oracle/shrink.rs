//! Makes a spec that fails smaller while it goes on failing.

use super::spec::{Data, Effort, Graph, Kind, Manner, Spec, Value};
use std::time::{Duration, Instant};

/// How long to try.
const PATIENCE: Duration = Duration::from_secs(30);

/// The smallest spec found that still fails, with what it fails by. `fails` is asked many times.
pub fn shrink(spec: Spec, why: String, fails: impl Fn(&Spec) -> Option<String>) -> (Spec, String) {
    let begin = Instant::now();
    let (mut smallest, mut reason) = (spec, why);
    loop {
        let found = smaller(&smallest).into_iter().find_map(|candidate| {
            let why = (begin.elapsed() < PATIENCE).then(|| fails(&candidate)).flatten()?;
            Some((candidate, why))
        });
        match found {
            Some(found) => (smallest, reason) = found,
            None => return (smallest, reason),
        }
    }
}

/// Specs with a little less in them, those with much less first.
fn smaller(spec: &Spec) -> Vec<Spec> {
    let mut all: Vec<Spec> = Vec::new();
    if spec.inputs.len() > 1 {
        all.extend((0..spec.inputs.len()).map(|set| {
            let mut fewer = spec.clone();
            fewer.inputs = vec![spec.inputs[set].clone()];
            fewer
        }));
    }
    for outputs in [0..spec.graph.outputs.len() / 2, spec.graph.outputs.len().div_ceil(2)..spec.graph.outputs.len()] {
        if outputs.len() < spec.graph.outputs.len() {
            let mut fewer = spec.clone();
            fewer.graph.outputs = spec.graph.outputs[outputs].to_vec();
            all.push(fewer);
        }
    }
    for output in 0..spec.graph.outputs.len() {
        let mut fewer = spec.clone();
        fewer.graph.outputs.remove(output);
        all.push(fewer);
    }
    graphs(&spec.graph, &mut |graph| all.push(Spec { graph, ..spec.clone() }));
    if spec.hop_ns != Some(0) {
        all.push(Spec { hop_ns: Some(0), ..spec.clone() });
    }
    all
}

/// Gives variants of a graph, with the same inputs and outputs.
fn graphs(graph: &Graph, give: &mut dyn FnMut(Graph)) {
    for place in (0..graph.nodes.len()).rev() {
        if let Some(less) = without(graph, place) {
            give(less);
        }
        for value in [0, 1] {
            if let Some(less) = as_constant(graph, place, value) {
                give(less);
            }
        }
    }
    for place in 0..graph.nodes.len() {
        nodes(graph, place, give);
    }
}

/// The graph without a node that nobody takes anything from.
fn without(graph: &Graph, place: usize) -> Option<Graph> {
    let uses = |value: &Value| matches!(value, Value::Node(n, _) if *n == place);
    if graph.outputs.iter().any(uses) || graph.nodes.iter().any(|node| node.inputs.iter().any(uses)) {
        return None;
    }
    let mut less = graph.clone();
    less.nodes.remove(place);
    let moved = |n: &mut usize| *n -= usize::from(*n > place);
    let values = less.nodes.iter_mut().flat_map(|node| &mut node.inputs).chain(&mut less.outputs);
    for value in values {
        if let Value::Node(n, _) = value {
            moved(n);
        }
    }
    for node in &mut less.nodes {
        node.after.retain(|&before| before != place);
        node.after.iter_mut().for_each(moved);
    }
    Some(less)
}

/// The graph with constants in place of a node.
fn as_constant(graph: &Graph, place: usize, value: i32) -> Option<Graph> {
    let node = &graph.nodes[place];
    if matches!(node.kind, Kind::Constant(_)) || node.outputs.is_empty() {
        return None;
    }
    let mut less = graph.clone();
    let data = node.outputs.iter().map(|&kind| Data::new(kind, &vec![value; kind.len()])).collect();
    less.nodes[place].kind = Kind::Constant(data);
    less.nodes[place].inputs.clear();
    less.nodes[place].after.clear();
    less.nodes.iter_mut().for_each(|node| node.after.retain(|&before| before != place));
    Some(less)
}

/// Variants of one node.
fn nodes(graph: &Graph, place: usize, give: &mut dyn FnMut(Graph)) {
    let node = &graph.nodes[place];
    for at in 0..node.after.len() {
        let mut less = graph.clone();
        less.nodes[place].after.remove(at);
        give(less);
    }
    if let Kind::Leaf { effort, .. } = &node.kind
        && *effort != Effort::Plain
    {
        let mut less = graph.clone();
        if let Kind::Leaf { effort, .. } = &mut less.nodes[place].kind {
            *effort = Effort::Plain;
        }
        give(less);
    }
    if matches!(node.kind, Kind::Leaf { manner, .. } if manner != Manner::Now) {
        let mut less = graph.clone();
        if let Kind::Leaf { manner, .. } = &mut less.nodes[place].kind {
            *manner = Manner::Now;
        }
        give(less);
    }
    if matches!(node.kind, Kind::While { parallel_iterations, .. } if parallel_iterations > 1) {
        let mut less = graph.clone();
        if let Kind::While { parallel_iterations, .. } = &mut less.nodes[place].kind {
            *parallel_iterations = 1;
        }
        give(less);
    }
    for (which, (_, inner)) in node.graphs().iter().enumerate() {
        graphs(inner, &mut |smaller| {
            let mut less = graph.clone();
            *less.nodes[place].graphs_mut()[which] = smaller;
            give(less);
        });
    }
}

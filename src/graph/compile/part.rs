//! A part of a program: what some of its outputs need, compiled by itself.
//!
//! Kept is what these outputs depend on, along edges for data and for control; all else goes, tasks and kernels without
//! outputs too. What is inside of a cond, a case or a loop that is kept stays as it is: it is part of what that node
//! does. All inputs stay, so that they keep their numbers; those that nothing needs any more are noted.
#![forbid(unsafe_code)]

use super::{BYTES_PER_NODE, compile};
use crate::base::{Error, Ref, Result};
use crate::engine::Engine;
use crate::graph::compiled::Compiled;
use crate::graph::contents::{Contents, Value};
use crate::graph::facts::Facts;
use crate::graph::options::CompileOptions;
use crate::graph::place::{self, Devices};
use crate::graph::profile;
use crate::graph::program::Program;
use crate::graph::verify;
use crate::memory::heap;
use std::sync::Arc;

/// Compiles the part of `graph` that its outputs with these numbers need, in their order. `whole` is the program of
/// all.
pub(in crate::graph) fn compile_part(
    graph: &Contents,
    engines: &[Ref<Engine>],
    outputs: &[usize],
    whole: &Compiled,
    options: &CompileOptions,
) -> Result<Program> {
    heap::probe(graph.size().saturating_mul(BYTES_PER_NODE), "compiling a part of the program")?;
    let (contents, not_needed) = prune(graph, outputs);
    let mut verified = verify::verify(&contents, engines, options.allow_absent)?;
    let mut facts = Facts { graph_nodes: contents.num_nodes(), ..Facts::default() };
    let (mut compiled, facts, devices) = match place::place(&contents, &verified, engines, options)? {
        None => {
            let (compiled, facts) = compile(&contents, &verified, whole.plan.engines.clone(), options, facts)?;
            (compiled, facts, Devices::default())
        }
        Some(placed) => {
            facts.placement = placed.placement.clone();
            verified = verify::verify(&placed.contents, &placed.engines, options.allow_absent)?;
            let (mut compiled, facts) = compile(&placed.contents, &verified, placed.engines.clone(), options, facts)?;
            compiled.frames = placed.frames();
            (compiled, facts, placed.into_devices())
        }
    };
    let numbers = profile::numbers(&compiled.plan, &whole.plan);
    profile::learn(&compiled, whole, &numbers);
    compiled.figures = whole.figures.as_ref().map(|figures| figures.shared(&numbers));
    compiled.tallies = Arc::clone(&whole.tallies);
    compiled.admission = whole.admission.clone();
    compiled.plan.not_needed = not_needed;
    Ok(Program::new(compiled, devices, facts, None))
}

/// The part, and which inputs it does not need.
fn prune(graph: &Contents, outputs: &[usize]) -> (Contents, Vec<bool>) {
    let mut needed = vec![false; graph.nodes.len()];
    let mut to_do: Vec<usize> = outputs.iter().map(|&output| graph.outputs[output].1.0).collect();
    while let Some(node) = to_do.pop() {
        if !std::mem::replace(&mut needed[node], true) {
            to_do.extend(graph.nodes[node].predecessors().filter(|&before| !needed[before]));
        }
    }
    let not_needed = graph.inputs().map(|index| !needed[index]).collect();
    graph.inputs().for_each(|index| needed[index] = true);

    // Where each node is now.
    let mut places = vec![usize::MAX; graph.nodes.len()];
    let kept = needed.iter().enumerate().filter(|(_, needed)| **needed);
    kept.enumerate().for_each(|(place, (node, _))| places[node] = place);
    let moved = |(node, output): Value| (places[node], output);
    let nodes = graph.nodes.iter().zip(&needed).filter(|(_, needed)| **needed).map(|(node, _)| {
        let mut node = node.clone();
        node.inputs_mut().iter_mut().for_each(|input| *input = moved(*input));
        node.after.iter_mut().for_each(|before| *before = places[*before]);
        node
    });
    let contents = Contents {
        name: graph.name.clone(),
        nodes: nodes.collect(),
        outputs: outputs
            .iter()
            .map(|&output| &graph.outputs[output])
            .map(|(name, v)| (name.clone(), moved(*v)))
            .collect(),
        forwarding: graph.forwarding.iter().filter(|(v, _)| needed[v.0]).map(|(v, how)| (moved(*v), *how)).collect(),
        homes: graph.homes.of_outputs(outputs),
        depth: graph.depth,
    };
    (contents, not_needed)
}

/// Refuses a list of outputs that the program does not have.
pub(in crate::graph) fn check_outputs(outputs: &[usize], all: usize) -> Result<()> {
    match outputs.iter().enumerate().find(|(_, output)| **output >= all) {
        None => Ok(()),
        Some((i, output)) => Err(Error::out_of_range(format!(
            "output {i} of the run options is {output}, the program has {all} outputs"
        ))),
    }
}

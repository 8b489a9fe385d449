//! TensorFlow's first control flow becomes that of this library, before anything else looks at a graph.
//!
//! 1. `frames`: which nodes are in which loop, and that no edge goes from one to another but by an enter or an exit.
//! 2. `loops`: each frame becomes a while, the innermost first. Nodes keep their names, the while has the frame's.
//! 3. `conds`: in such a graph, switches and merges that are a cond become one. All others stay as they are.
//! 4. `verify` finds out what the variables look like, which nobody has said (`verify::settle_loop`).
#![forbid(unsafe_code)]

pub(in crate::graph) mod assemble;
pub(in crate::graph) mod conds;
pub(in crate::graph) mod frames;
pub(in crate::graph) mod guards;
pub(in crate::graph) mod loops;

use crate::base::{Error, Result, dtype};
use crate::graph::build::contents::{Contents, Node, NodeBody};
use crate::graph::build::verify::Verified;
use crate::graph::plan::MAX_DEPTH;
pub(in crate::graph) use conds::MergeIndices;
pub(in crate::graph) use guards::guard;
use std::sync::Arc;

/// The graph with whiles in the place of frames. None if it has no frames, graphs inside of it neither.
pub(in crate::graph) fn raise(graph: &Contents) -> Result<Option<Contents>> {
    if !has_frames(graph) {
        return Ok(None);
    }
    // With conds there are more graphs inside one another.
    for has_conds in [true, false] {
        let graph = raise_inside(graph, has_conds)?;
        if graph.depth < MAX_DEPTH {
            return Ok(Some(graph));
        }
    }
    Err(Error::out_of_range(format!("more than {MAX_DEPTH} graphs lie inside one another")))
}

fn has_frames(graph: &Contents) -> bool {
    let has = |node: &Node| matches!(node.body, NodeBody::Cyclic { .. }) || node.inner().any(|inner| has_frames(inner));
    graph.nodes.iter().any(has)
}

fn raise_inside(graph: &Contents, has_conds: bool) -> Result<Contents> {
    let mut graph = graph.clone();
    for node in &mut graph.nodes {
        for inner in node.inner_mut() {
            if has_frames(inner) {
                let named =
                    |error: Error| Error::new(error.code(), format!("in graph '{}': {}", inner.name, error.message()));
                *inner = Arc::new(raise_inside(inner, has_conds).map_err(named)?);
            }
        }
        let inner = node.inner().map(|inner| inner.depth + 1).max().unwrap_or(0);
        graph.depth = graph.depth.max(inner);
    }
    if graph.nodes.iter().any(|node| matches!(node.body, NodeBody::Cyclic { .. })) {
        let frames = frames::find(&graph)?;
        graph = loops::Raiser::new(&graph, frames, has_conds).raise()?;
    }
    Ok(graph)
}

/// The graph with conds in the place of switches and merges that are one, in graphs inside too. All others stay.
/// `level`: how many graphs lie around it.
pub(in crate::graph) fn raise_conds(graph: Contents, level: usize, constants: MergeIndices<'_>) -> Result<Contents> {
    let mut graph = graph;
    for node in &mut graph.nodes {
        for inner in node.inner_mut() {
            *inner = Arc::new(raise_conds(Contents::clone(inner), level + 1, constants)?);
            graph.depth = graph.depth.max(inner.depth + 1);
        }
    }
    conds::raise(graph, level, constants)
}

/// Says of the inputs of graphs inside what they look like, now that it is known.
pub(in crate::graph) fn settle(graph: &mut Contents, verified: &Verified) {
    for (index, node) in graph.nodes.iter_mut().enumerate() {
        let Some(found) = verified.inner.get(&index) else { continue };
        for (inner, verified) in node.inner_mut().into_iter().zip(found) {
            if !has_unknown(inner) {
                continue;
            }
            let inner: &mut Contents = Arc::make_mut(inner);
            for (index, node) in inner.nodes.iter_mut().enumerate() {
                match &mut node.body {
                    NodeBody::Input(desc) if desc.dtype == dtype::ANY => *desc = verified.descs[index][0],
                    _ => {}
                }
            }
            settle(inner, verified);
        }
    }
}

fn has_unknown(graph: &Contents) -> bool {
    let is_unknown = |node: &Node| match &node.body {
        NodeBody::Input(desc) => desc.dtype == dtype::ANY,
        _ => node.inner().any(|inner| has_unknown(inner)),
    };
    graph.nodes.iter().any(is_unknown)
}

//! TensorFlow's first control flow becomes that of this library, before anything else looks at a graph.
//!
//! 1. `frames`: which nodes are in which loop, and that no edge goes from one to another but by an enter or an exit.
//! 2. `loops`: each frame becomes a while, the innermost first. Nodes keep their names, the while has the frame's.
//! 3. `verify` finds out what the variables look like, which nobody has said (`verify::settle_loop`).
//!
//! Switches and merges that are of no loop stay as they are.
#![forbid(unsafe_code)]

mod assemble;
mod frames;
mod loops;

use super::builder::{Body, Contents, MAX_DEPTH, Node};
use super::verify::Verified;
use crate::base::{Error, Result, dtype};
use std::sync::Arc;

/// The graph with whiles in the place of frames. None if it has no frames, graphs inside of it neither.
pub(super) fn raise(graph: &Contents) -> Result<Option<Contents>> {
    if !has_frames(graph) {
        return Ok(None);
    }
    let graph = raise_inside(graph)?;
    match graph.depth >= MAX_DEPTH {
        true => Err(Error::out_of_range(format!("more than {MAX_DEPTH} graphs lie inside one another"))),
        false => Ok(Some(graph)),
    }
}

fn has_frames(graph: &Contents) -> bool {
    let has = |node: &Node| matches!(node.body, Body::Cyclic { .. }) || node.inner().any(|inner| has_frames(inner));
    graph.nodes.iter().any(has)
}

fn raise_inside(graph: &Contents) -> Result<Contents> {
    let mut graph = graph.clone();
    for node in &mut graph.nodes {
        for inner in node.inner_mut() {
            if has_frames(inner) {
                let named =
                    |error: Error| Error::new(error.code(), format!("in graph '{}': {}", inner.name, error.message()));
                *inner = Arc::new(raise_inside(inner).map_err(named)?);
            }
        }
        let inner = node.inner().map(|inner| inner.depth + 1).max().unwrap_or(0);
        graph.depth = graph.depth.max(inner);
    }
    if graph.nodes.iter().any(|node| matches!(node.body, Body::Cyclic { .. })) {
        let frames = frames::find(&graph)?;
        graph = loops::Raiser::new(&graph, frames).raise()?;
    }
    Ok(graph)
}

/// Says of the inputs of graphs inside what they look like, now that it is known.
pub(super) fn settle(graph: &mut Contents, verified: &Verified) {
    for (index, node) in graph.nodes.iter_mut().enumerate() {
        let Some(found) = verified.inner.get(&index) else { continue };
        for (inner, verified) in node.inner_mut().into_iter().zip(found) {
            if !has_unknown(inner) {
                continue;
            }
            let inner: &mut Contents = Arc::make_mut(inner);
            for (index, node) in inner.nodes.iter_mut().enumerate() {
                match &mut node.body {
                    Body::Input(desc) if desc.dtype == dtype::ANY => *desc = verified.descs[index][0],
                    _ => {}
                }
            }
            settle(inner, verified);
        }
    }
}

fn has_unknown(graph: &Contents) -> bool {
    let is_unknown = |node: &Node| match &node.body {
        Body::Input(desc) => desc.dtype == dtype::ANY,
        _ => node.inner().any(|inner| has_unknown(inner)),
    };
    graph.nodes.iter().any(is_unknown)
}

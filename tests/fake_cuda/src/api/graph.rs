//! Graphs as wholes: making, cloning, edges, and looking at them.

use crate::abi::{EdgeData, Handle, In, Out};
use crate::graph::{InUse, Work};
use crate::status::{Code, Result};
use crate::world::{World, lock};
use std::ffi::c_char;
use std::fmt::Write;

fn add_edges(graph: Handle, from: In<Handle>, to: In<Handle>, count: usize) -> Result {
    let _use = InUse::new(graph);
    let (from, to) = (from.list(count)?, to.list(count)?);
    let mut world = lock();
    let graph = world.graph(graph)?;
    for (from, to) in from.into_iter().zip(to) {
        let is_there = |node| graph.node(node).is_some();
        if from == to || !is_there(from) || !is_there(to) {
            return Err(Code::INVALID_VALUE);
        }
        let Some(node) = graph.nodes.iter_mut().find(|node| node.handle == to) else { continue };
        if node.after.contains(&from) {
            return Err(Code::INVALID_VALUE);
        }
        node.after.push(from);
    }
    Ok(())
}

/// Fills as many places as there are, and says how many there could be.
fn list<T: Copy>(places: Out<T>, count: Out<usize>, found: &[T]) -> Result {
    if !places.is_null() {
        let room = count.get()?;
        found.iter().take(room).enumerate().try_for_each(|(index, item)| places.at(index).set(*item))?;
    }
    count.set(found.len())
}

fn dot(world: &World, graph: Handle, name: &str, text: &mut String) -> std::fmt::Result {
    let Some(found) = world.graphs.get(&graph) else { return Ok(()) };
    for node in &found.nodes {
        writeln!(text, "{name}\"{:?}\" [label=\"{}\"];", node.handle, node.work.name())?;
        for before in &node.after {
            writeln!(text, "{name}\"{before:?}\" -> \"{:?}\";", node.handle)?;
        }
        let inner: Vec<Handle> = match &node.work {
            Work::Child(child) => vec![*child],
            Work::Conditional(conditional) => conditional.bodies.clone(),
            _ => Vec::new(),
        };
        for body in inner {
            writeln!(text, "{name}subgraph \"cluster {body:?}\" {{ label=\"{:?} {body:?}\";", node.handle)?;
            dot(world, body, &format!("{name}  "), text)?;
            writeln!(text, "{name}}}")?;
        }
    }
    Ok(())
}

crate::entries! {
    fn cuGraphCreate(graph: Out<Handle>, flags: u32) {
        graph.check()?;
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let new = lock().new_graph(None, false);
        graph.set(new)
    }

    fn cuGraphDestroy(graph: Handle) {
        let _use = InUse::new(graph);
        let mut world = lock();
        if world.graph(graph)?.parent.is_some() {
            return Err(Code::INVALID_VALUE);
        }
        world.destroy_graph(graph)
    }

    fn cuGraphClone(clone: Out<Handle>, graph: Handle) {
        clone.check()?;
        let _use = InUse::new(graph);
        let (new, _) = lock().clone_graph(graph, None)?;
        clone.set(new)
    }

    fn cuGraphAddDependencies(graph: Handle, from: In<Handle>, to: In<Handle>, count: usize) {
        add_edges(graph, from, to, count)
    }

    fn cuGraphAddDependencies_v2(
        graph: Handle, from: In<Handle>, to: In<Handle>, edges: In<EdgeData>, count: usize,
    ) {
        let _ = edges;
        add_edges(graph, from, to, count)
    }

    fn cuGraphGetNodes(graph: Handle, nodes: Out<Handle>, count: Out<usize>) {
        let mut world = lock();
        let found: Vec<Handle> = world.graph(graph)?.nodes.iter().map(|node| node.handle).collect();
        list(nodes, count, &found)
    }

    fn cuGraphGetRootNodes(graph: Handle, nodes: Out<Handle>, count: Out<usize>) {
        let mut world = lock();
        let roots = world.graph(graph)?.nodes.iter().filter(|node| node.after.is_empty());
        let found: Vec<Handle> = roots.map(|node| node.handle).collect();
        list(nodes, count, &found)
    }

    fn cuGraphGetEdges(graph: Handle, from: Out<Handle>, to: Out<Handle>, count: Out<usize>) {
        let mut world = lock();
        let nodes = &world.graph(graph)?.nodes;
        let edges = nodes.iter().flat_map(|node| node.after.iter().map(|before| (*before, node.handle)));
        let (starts, ends): (Vec<Handle>, Vec<Handle>) = edges.unzip();
        if !from.is_null() {
            let room = count.get()?;
            for (index, end) in ends.iter().take(room).enumerate() {
                to.at(index).set(*end)?;
            }
        }
        list(from, count, &starts)
    }

    fn cuGraphNodeGetType(node: Handle, kind: Out<i32>) {
        let mut world = lock();
        kind.set(world.node(node)?.work.kind())
    }

    fn cuGraphNodeGetDependencies(node: Handle, before: Out<Handle>, count: Out<usize>) {
        let mut world = lock();
        let found = world.node(node)?.after.clone();
        list(before, count, &found)
    }

    fn cuGraphChildGraphNodeGetGraph(node: Handle, graph: Out<Handle>) {
        let mut world = lock();
        match world.node(node)?.work {
            Work::Child(child) => graph.set(child),
            _ => Err(Code::INVALID_VALUE),
        }
    }

    fn cuGraphDestroyNode(node: Handle) {
        let mut world = lock();
        let graph = world.graph_of(node)?;
        let found = world.graph(graph)?;
        // What comes behind it no longer waits.
        found.nodes.retain(|other| other.handle != node);
        found.nodes.iter_mut().for_each(|other| other.after.retain(|before| *before != node));
        Ok(())
    }

    fn cuGraphDebugDotPrint(graph: Handle, path: In<c_char>, flags: u32) {
        let _ = flags;
        let path = path.text()?;
        let mut world = lock();
        world.graph(graph)?;
        let mut text = format!("digraph \"{graph:?}\" {{\n");
        dot(&world, graph, "  ", &mut text).map_err(|_| Code::UNKNOWN)?;
        text.push_str("}\n");
        std::fs::write(path, text).map_err(|_| Code::OPERATING_SYSTEM)
    }
}

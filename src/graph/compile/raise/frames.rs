//! The frames of a graph: which nodes are in which loop.
//!
//! A frame is known by its name and by the frame that its enters take their values in. The value of an enter is in it,
//! and so are the nodes that take it, up to the exits. Constants are everywhere. An enter, a loop cond or a next
//! iteration that takes nothing but a constant gives its value in the frame of the nodes that take it.

use crate::base::{Error, Result, Successors};
use crate::graph::build::contents::{Contents, LoopOp, Node, NodeBody};
use crate::graph::plan::MAX_DEPTH;
use std::collections::HashMap;

/// The graph itself, outside of all frames.
pub(super) const ROOT: usize = 0;
const UNKNOWN: usize = usize::MAX;

pub(super) struct LoopFrame {
    pub name: String,
    pub parent: usize,
    pub depth: usize,
    pub enters: Vec<usize>,
    /// Nodes that take their inputs in it: exits, but no enters.
    pub members: Vec<usize>,
}

pub(super) struct LoopFrames {
    /// The first one is the graph itself.
    pub all: Vec<LoopFrame>,
    /// The frame that each node's inputs are in, and that of its outputs.
    takes: Vec<usize>,
    gives: Vec<usize>,
}

/// The part that a node has in a loop, if it is of one.
pub(super) fn op(node: &Node) -> Option<&LoopOp> {
    match &node.body {
        NodeBody::Cyclic { op, .. } => Some(op),
        _ => None,
    }
}

pub(super) fn is_constant(node: &Node) -> bool {
    matches!(node.body, NodeBody::Constant(_))
}

/// Finds the frames, and refuses edges between them.
pub(super) fn find(graph: &Contents) -> Result<LoopFrames> {
    let mut search = FrameSearch::new(graph);
    search.go()?;
    let mut frames = search.frames;
    for (index, node) in graph.nodes.iter().enumerate() {
        match op(node) {
            Some(LoopOp::Enter { .. }) => frames.all[frames.gives[index]].enters.push(index),
            _ => frames.all[frames.takes[index]].members.push(index),
        }
    }
    check(graph, &frames)?;
    Ok(frames)
}

struct FrameSearch<'a> {
    graph: &'a Contents,
    frames: LoopFrames,
    by_name: HashMap<(usize, &'a str), usize>,
    /// With and without data.
    successors: Successors,
    to_do: Vec<usize>,
    /// Whether what is not known yet is where what takes its value is.
    looks_back: bool,
}

impl<'a> FrameSearch<'a> {
    fn new(graph: &'a Contents) -> FrameSearch<'a> {
        let n = graph.nodes.len();
        let nodes = graph.nodes.iter().enumerate();
        let edges = nodes.flat_map(|(index, node)| node.predecessors().map(move |before| (before, index)));
        let successors = Successors::new(n, edges);
        let root = LoopFrame { name: String::new(), parent: ROOT, depth: 0, enters: Vec::new(), members: Vec::new() };
        let frames = LoopFrames { all: vec![root], takes: vec![UNKNOWN; n], gives: vec![UNKNOWN; n] };
        FrameSearch { graph, frames, by_name: HashMap::new(), successors, to_do: Vec::new(), looks_back: false }
    }

    fn go(&mut self) -> Result<()> {
        let graph = self.graph;
        for (index, node) in graph.nodes.iter().enumerate() {
            if is_constant(node) || self.is_source(index) && !floats(node) {
                self.put(index, ROOT)?;
            }
        }
        self.spread()?;
        self.looks_back = true;
        let is_known = |index: &usize| self.frames.takes[*index] != UNKNOWN && !is_constant(&graph.nodes[*index]);
        self.to_do = (0..graph.nodes.len()).filter(is_known).collect();
        self.spread()?;
        for (index, node) in graph.nodes.iter().enumerate() {
            let Some(LoopOp::Enter { frame, .. }) = op(node) else { continue };
            if self.frames.takes[index] == UNKNOWN && self.is_source(index) {
                if self.successors.of(index).is_empty() {
                    // Nobody takes it.
                    (self.frames.takes[index], self.frames.gives[index]) = (ROOT, ROOT);
                    continue;
                }
                let mut named = self.frames.all.iter().filter(|other| other.name == frame.as_str());
                let parent = match (named.next(), named.next()) {
                    (None, _) => ROOT,
                    (Some(one), None) => one.parent,
                    _ => {
                        return Err(Error::invalid(format!(
                            "node '{}' takes a constant, and there are several frames '{}': a control edge to it says \
                             in which one",
                            node.name,
                            frame.as_str()
                        )));
                    }
                };
                self.put(index, parent)?;
                self.spread()?;
            }
        }
        for (index, node) in graph.nodes.iter().enumerate() {
            if self.frames.takes[index] != UNKNOWN {
                continue;
            }
            if op(node).is_some() && self.is_source(index) {
                return Err(Error::invalid(format!(
                    "node '{}' is {} of a constant, and nothing of a frame takes its value",
                    node.name,
                    crate::base::with_article(node.kind())
                )));
            }
            // On a cycle, or behind one: verify words it.
            (self.frames.takes[index], self.frames.gives[index]) = (ROOT, ROOT);
        }
        Ok(())
    }

    /// Whether it waits for nothing but constants.
    fn is_source(&self, index: usize) -> bool {
        self.graph.nodes[index].predecessors().all(|before| is_constant(&self.graph.nodes[before]))
    }

    /// Says where a node takes its inputs, unless that is known.
    fn put(&mut self, index: usize, frame: usize) -> Result<()> {
        if self.frames.takes[index] != UNKNOWN {
            return Ok(());
        }
        let node = &self.graph.nodes[index];
        let gives = match op(node) {
            Some(LoopOp::Enter { frame: name, .. }) => self.child(frame, name.as_str(), node)?,
            Some(LoopOp::Exit) => self.frames.all[frame].parent,
            _ => frame,
        };
        (self.frames.takes[index], self.frames.gives[index]) = (frame, gives);
        if !is_constant(node) {
            self.to_do.push(index);
        }
        Ok(())
    }

    fn child(&mut self, parent: usize, name: &'a str, enter: &Node) -> Result<usize> {
        if let Some(&known) = self.by_name.get(&(parent, name)) {
            return Ok(known);
        }
        let depth = self.frames.all[parent].depth + 1;
        if depth >= MAX_DEPTH {
            let text = format!("node '{}': more than {MAX_DEPTH} graphs lie inside one another", enter.name);
            return Err(Error::out_of_range(text));
        }
        let frame = LoopFrame { name: name.to_owned(), parent, depth, enters: Vec::new(), members: Vec::new() };
        self.frames.all.push(frame);
        self.by_name.insert((parent, name), self.frames.all.len() - 1);
        Ok(self.frames.all.len() - 1)
    }

    /// Goes on from what is known.
    fn spread(&mut self) -> Result<()> {
        while let Some(index) = self.to_do.pop() {
            let (takes, gives) = (self.frames.takes[index], self.frames.gives[index]);
            // A merge lies where its enter leads, and not where a body has strayed to.
            let goes_round = matches!(op(&self.graph.nodes[index]), Some(LoopOp::NextIteration));
            for at in 0..self.successors.of(index).len() {
                let next = self.successors.of(index)[at] as usize;
                let is_back = goes_round && matches!(op(&self.graph.nodes[next]), Some(LoopOp::Merge));
                if self.looks_back || !is_back {
                    self.put(next, gives)?;
                }
            }
            let inputs = if self.looks_back { self.graph.nodes[index].inputs() } else { &[] };
            for &(before, _) in inputs {
                let around = &self.frames.all[takes];
                match op(&self.graph.nodes[before]) {
                    Some(LoopOp::Enter { frame, .. }) => {
                        if frame.as_str() == around.name {
                            self.put(before, around.parent)?;
                        }
                    }
                    Some(LoopOp::Exit) => {}
                    _ => self.put(before, takes)?,
                }
            }
        }
        Ok(())
    }
}

/// Whether a node that takes a constant may be in any frame.
fn floats(node: &Node) -> bool {
    matches!(op(node), Some(LoopOp::Enter { .. } | LoopOp::LoopCond | LoopOp::NextIteration))
}

/// Refuses edges from one frame to another, and parts of loops that are in none.
fn check(graph: &Contents, frames: &LoopFrames) -> Result<()> {
    for (index, node) in graph.nodes.iter().enumerate() {
        let to = frames.takes[index];
        for (i, &(before, _)) in node.inputs().iter().enumerate() {
            let from = &graph.nodes[before];
            if frames.gives[before] != to && !is_constant(from) {
                let edge = format!("its input {i} comes from node '{}'", from.name);
                return Err(frames.crossing(graph, node, to, &edge, frames.gives[before], false));
            }
        }
        for &before in &node.after {
            let from = &graph.nodes[before];
            if frames.gives[before] != to && !is_constant(from) {
                let edge = format!("it waits for node '{}'", from.name);
                return Err(frames.crossing(graph, node, to, &edge, frames.gives[before], true));
            }
        }
        if to == ROOT && op(node).is_some_and(|op| !matches!(op, LoopOp::Enter { .. })) {
            let kind = crate::base::with_article(node.kind());
            return Err(Error::invalid(format!(
                "node '{}' is {kind} and in no frame: no enter leads to it",
                node.name
            )));
        }
    }
    for (name, (node, _)) in &graph.outputs {
        let (from, frame) = (&graph.nodes[*node], frames.gives[*node]);
        if frame != ROOT {
            return Err(Error::invalid(format!(
                "graph '{}' output '{name}': node '{}' is in frame '{}': only an exit takes a value out of a frame",
                graph.name, from.name, frames.all[frame].name
            )));
        }
    }
    Ok(())
}

impl LoopFrames {
    fn lies_in(&self, mut inner: usize, outer: usize) -> bool {
        while self.all[inner].depth > self.all[outer].depth {
            inner = self.all[inner].parent;
        }
        inner == outer
    }

    /// "node 'x' leads into frame 'inner' from frame 'outer'", of one of its enters.
    fn way_in(&self, graph: &Contents, frame: usize) -> String {
        let LoopFrame { name, parent, enters, .. } = &self.all[frame];
        let enter = enters.first().map_or("", |&enter| graph.nodes[enter].name.as_str());
        let from = match *parent {
            ROOT => "outside of all frames".to_owned(),
            parent => format!("frame '{}'", self.all[parent].name),
        };
        format!("node '{enter}' leads into frame '{name}' from {from}")
    }

    /// Words an edge from frame `from` to a node in frame `to`.
    fn crossing(&self, graph: &Contents, node: &Node, to: usize, edge: &str, from: usize, is_control: bool) -> Error {
        let (name, inner, outer) = (&node.name, &self.all[to].name, &self.all[from].name);
        let (into, out) = match is_control {
            false => ("only an enter brings a value into a frame", "only an exit takes a value out of a frame"),
            true => (
                "only an enter waits for what is outside of its frame",
                "only an exit is waited for outside of its frame",
            ),
        };
        Error::invalid(if self.lies_in(to, from) {
            format!("node '{name}' is in frame '{inner}', but {edge} outside of it: {into}")
        } else if self.lies_in(from, to) {
            format!("node '{name}' is outside of frame '{outer}', but {edge} inside of it: {out}")
        } else {
            // Neither of the two need be wrong: an enter before them may have another frame's name, or another place.
            let ways = [self.way_in(graph, to), self.way_in(graph, from)].join(", and ");
            format!("node '{name}' is in frame '{inner}', but {edge} in frame '{outer}': {out}, and {into}; {ways}")
        })
    }
}

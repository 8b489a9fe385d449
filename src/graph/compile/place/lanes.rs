//! Copies that take their turn in an engine's work, and have no stream of their own.
//!
//! On a stream for copies alone a copy waits for no work but that which it needs, and an event and a wait tie it to the
//! stream of the work. Where nothing else could go on meanwhile that gains nothing. Inside of a branch or a loop an
//! engine has one stream; there a copy to the engine is *in line*, on the stream of the work, if all work in front of
//! its first reader is over by then. So is a copy to the host if all work behind the writer of the value needs what it
//! brings, and the end of the last piece of work. All work of the engine in the graphs around must come before or
//! behind the branch or loop, since it may be on the same stream, and so may that of other iterations.
//!
//! Graphs are looked at that are small, since each copy looks at all of its graph, and that have no graphs inside of
//! their own, whose work is on the same stream.
#![forbid(unsafe_code)]

use super::region::{OnDevice, Region};
use crate::graph::build::contents::Value;

/// Most nodes of a graph that is looked at.
const MOST_NODES: usize = 256;

impl Region<'_> {
    fn has_lanes(&self, on: &OnDevice) -> bool {
        let is_small = self.old.nodes.len() <= MOST_NODES;
        let is_one = self.is_inner && !self.overlaps && on.segments.is_none() && on.plan.num_streams == 1;
        is_small
            && is_one
            && self.is_alone[on.engine]
            && self.old.nodes.iter().all(|node| node.inner().next().is_none())
    }

    /// The nodes that a node comes after, and itself.
    fn before(&self, node: usize) -> Vec<bool> {
        let mut is_before = vec![false; self.old.nodes.len()];
        is_before[node] = true;
        for &node in self.verified.order.iter().rev() {
            if is_before[node as usize] {
                self.old.nodes[node as usize].predecessors().for_each(|before| is_before[before] = true);
            }
        }
        is_before
    }

    /// The nodes that come after any that `begins`, and these.
    fn behind(&self, begins: impl Fn(usize) -> bool) -> Vec<bool> {
        let mut is_behind = vec![false; self.old.nodes.len()];
        for &node in &self.verified.order {
            let node = node as usize;
            is_behind[node] = begins(node) || self.old.nodes[node].predecessors().any(|before| is_behind[before]);
        }
        is_behind
    }

    /// For each engine, whether all of its work outside of the graphs in this node comes before or behind the node.
    pub fn alone_in(&self, node: usize, all: &[OnDevice]) -> Vec<bool> {
        if self.overlaps || self.old.nodes.len() > MOST_NODES {
            return vec![false; all.len()];
        }
        let (before, behind) = (self.before(node), self.behind(|other| other == node));
        let is_apart = |other: &usize| before[*other] || behind[*other];
        let others = (0..self.old.nodes.len()).filter(|&other| self.old.nodes[other].inner().next().is_some());
        let are_apart = others.into_iter().all(|other| is_apart(&other));
        all.iter().map(|on| are_apart && self.is_alone[on.engine] && on.nodes.iter().all(is_apart)).collect()
    }

    /// Whether the copy of a value of the host's goes onto the stream of its readers.
    pub fn is_upload_in_line(&self, on: &OnDevice, value: Value) -> bool {
        let reads = |node: &usize| self.old.nodes[*node].inputs().contains(&value);
        let Some(first) = on.nodes.iter().position(reads).filter(|_| self.has_lanes(on)) else { return false };
        let before = self.before(value.0);
        on.nodes[..first].iter().all(|&node| before[node])
    }

    /// Whether the copy of an engine's value to the host goes onto the stream of the work that makes it.
    pub fn is_fetch_in_line(&self, on: &OnDevice, value: Value) -> bool {
        if !self.is_piece(value.0) || !self.has_lanes(on) {
            return false;
        }
        let takes = |node: usize| self.old.nodes[node].inputs().contains(&value);
        let behind = self.behind(|node| self.device[node] != Some(on.engine) && takes(node));
        on.nodes[self.position[value.0] + 1..].iter().all(|&node| behind[node])
    }

    /// Whether a piece is the last one of its stream, so that its end is the stream's.
    pub fn is_end_in_line(&self, on: &OnDevice, node: usize) -> bool {
        self.has_lanes(on) && self.position[node] + 1 == on.nodes.len()
    }
}

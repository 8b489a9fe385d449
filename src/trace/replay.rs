//! A run again, on paper, with the times of its nodes: how much shorter it would be if some took none.
#![forbid(unsafe_code)]

use super::run_graph::{Lists, PathPart, PathSegment, RunGraph};
use super::timeline::room;
use crate::base::Result;
use crate::base::sort::sort_by_key;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Nodes that are told as worth making faster.
const TOLD: usize = 10;
/// Names that are tried, and how many node runs all replays together may have.
const TRIED: usize = 40;
const REPLAYED: usize = 2_000_000;

/// The time that the run would be shorter by, if all nodes of this name took none.
#[derive(Clone, Copy, Debug)]
pub struct NodeSaving {
    /// Among the timeline's labels.
    pub label: u32,
    pub count: u64,
    pub body_ns: u64,
    pub on_path_ns: u64,
    pub saves_ns: u64,
}

/// Runs a run again, on paper.
pub struct Replay<'a> {
    graph: &'a RunGraph<'a>,
    before: &'a Lists,
    after: Lists,
    groups: NameGroups,
    /// Of each node in the order of `RunGraph::nodes`.
    group: Vec<u32>,
    /// The longest path from each node's beginning to the end.
    ranks: Vec<u64>,
    /// Before the first node and behind the last one.
    around_ns: u64,
    waits: Vec<u32>,
    ready: BinaryHeap<(u64, Reverse<u32>)>,
    /// Moments: a thread is free, or a node is done.
    moments: BinaryHeap<Reverse<(u64, bool, u32)>>,
}

impl<'a> Replay<'a> {
    pub fn new(graph: &'a RunGraph<'a>, before: &'a Lists) -> Result<Replay<'a>> {
        let after = before.turned(graph.nodes.len())?;
        let mut ranks = room(graph.nodes.len())?;
        ranks.resize(graph.nodes.len(), 0);
        for (at, run) in graph.nodes.iter().enumerate().rev() {
            let behind = after.of(at).iter().map(|&next| ranks[next as usize]).max().unwrap_or(0);
            ranks[at] = behind + run.hold() + (run.done - run.end);
        }
        let groups = NameGroups::new(graph)?;
        let mut group = room(graph.nodes.len())?;
        group.extend(graph.nodes.iter().map(|run| groups.of(run.node)));
        let first = graph.nodes.iter().map(|run| run.could_begin).min().unwrap_or(0);
        let last = graph.nodes.iter().map(|run| run.done).max().unwrap_or(0);
        Ok(Replay {
            graph,
            before,
            after,
            groups,
            group,
            ranks,
            around_ns: first.saturating_sub(graph.run.begin_ns) + graph.run.end_ns.saturating_sub(last),
            waits: room(graph.nodes.len())?,
            ready: BinaryHeap::from(room(graph.nodes.len())?),
            moments: BinaryHeap::from(room(2 * graph.nodes.len())?),
        })
    }

    /// The time of the whole run if the nodes of a group took none. A list schedule: a thread that is free takes the
    /// ready node with the longest path to the end.
    pub fn time(&mut self, takes_none: Option<u32>) -> u64 {
        let nodes = &self.graph.nodes;
        self.waits.clear();
        self.waits.extend((0..nodes.len()).map(|at| self.before.of(at).len() as u32));
        let roots = (0..nodes.len()).filter(|&at| self.waits[at] == 0);
        self.ready.extend(roots.map(|at| (self.ranks[at], Reverse(at as u32))));
        let (mut free, mut now) = (self.graph.threads.max(1), 0);
        loop {
            while free > 0
                && let Some((_, Reverse(at))) = self.ready.pop()
            {
                free -= 1;
                let run = &nodes[at as usize];
                let (hold, later) = match takes_none == Some(self.group[at as usize]) {
                    true => (run.hold() - run.body(), 0),
                    false => (run.hold(), run.done - run.end),
                };
                self.moments.push(Reverse((now + hold, false, at)));
                self.moments.push(Reverse((now + hold + later, true, at)));
            }
            let Some(&Reverse((time, ..))) = self.moments.peek() else { break };
            now = time;
            while let Some(&Reverse((_, is_done, at))) = self.moments.peek().filter(|moment| moment.0.0 == time) {
                self.moments.pop();
                if !is_done {
                    free += 1;
                    continue;
                }
                for &next in self.after.of(at as usize) {
                    self.waits[next as usize] -= 1;
                    if self.waits[next as usize] == 0 {
                        self.ready.push((self.ranks[next as usize], Reverse(next)));
                    }
                }
            }
        }
        now + self.around_ns
    }

    /// The time that the run would be shorter by, for the nodes that are most likely to matter: those on one of
    /// the two paths, and of these those that take the longest.
    pub fn savings(&mut self, whole_ns: u64, path: &[PathSegment], longest: &[u32]) -> Result<Vec<NodeSaving>> {
        let graph = self.graph;
        let mut candidates: Vec<(bool, NodeSaving)> = room(self.groups.count)?;
        let nothing = NodeSaving { label: 0, count: 0, body_ns: 0, on_path_ns: 0, saves_ns: 0 };
        candidates.resize(self.groups.count, (false, nothing));
        for run in &graph.nodes {
            let (_, saving) = &mut candidates[self.groups.of(run.node) as usize];
            saving.label = graph.timeline.spans[run.span as usize].label;
            saving.count += 1;
            saving.body_ns += run.body();
        }
        let group_of = |span: u32| self.groups.of(graph.timeline.spans[span as usize].object) as usize;
        for segment in path.iter().filter(|segment| segment.part == PathPart::Body) {
            let (is_on_path, saving) = &mut candidates[group_of(segment.span)];
            *is_on_path = true;
            saving.on_path_ns += segment.length_ns();
        }
        longest.iter().for_each(|&span| candidates[group_of(span)].0 = true);
        let mut tried: Vec<(u32, bool, NodeSaving)> = room(candidates.len())?;
        tried.extend(candidates.into_iter().zip(0..).map(|((is_on_path, saving), group)| (group, is_on_path, saving)));
        sort_by_key(&mut tried, |(_, is_on_path, saving)| Reverse((*is_on_path, saving.body_ns)));
        tried.truncate(TRIED.min(REPLAYED / graph.nodes.len().max(1)));
        let mut savings: Vec<NodeSaving> = room(tried.len())?;
        for (group, _, mut saving) in tried {
            saving.saves_ns = whole_ns.saturating_sub(self.time(Some(group)));
            savings.push(saving);
        }
        sort_by_key(&mut savings, |saving| Reverse((saving.saves_ns, saving.body_ns)));
        savings.truncate(TOLD);
        Ok(savings)
    }
}

/// Nodes by their names: copies of one in the slots of a loop are one.
struct NameGroups {
    /// Each node that ran, and its group.
    of_node: Vec<(u32, u32)>,
    count: usize,
}

impl NameGroups {
    fn new(graph: &RunGraph<'_>) -> Result<NameGroups> {
        let table = graph.table();
        let name = |node: u32| table.and_then(|table| table.get(node)).map_or("", |node| node.name);
        let mut names: Vec<(&str, u32)> = room(graph.nodes.len())?;
        names.extend(graph.by_node.chunk_by(|a, b| a.0 == b.0).map(|runs| (name(runs[0].0), runs[0].0)));
        names.sort_unstable();
        let (mut of_node, mut count) = (room(names.len())?, 0);
        for group in names.chunk_by(|a, b| a.0 == b.0) {
            of_node.extend(group.iter().map(|(_, node)| (*node, count)));
            count += 1;
        }
        of_node.sort_unstable();
        Ok(NameGroups { of_node, count: count as usize })
    }

    fn of(&self, node: u32) -> u32 {
        self.of_node.binary_search_by_key(&node, |(node, _)| *node).map_or(0, |at| self.of_node[at].1)
    }
}

//! Why a run took as long as it did.
//!
//! Three things are told of a run, and they are not the same:
//!
//! - *The path of the run* is what happened: from the run's end back through the node that ended last, the node that it
//!   had waited for last, and so on to the run's beginning. Nodes and the gaps between them tile the run's time without
//!   a rest, and each gap says what it was (`PathPart`). Threads and their number are part of it.
//! - *The longest path of the graph* is what the graph asks for: the greatest sum of node times along its edges. No
//!   number of threads makes the run shorter than that.
//! - *Savings* are what may be gained: the run is replayed with its measured times, by as many threads as it had, the
//!   node with the longest path to the end first; and once more for each node with that node taking no time. The path
//!   minus the next path would be wrong, since with too few threads other nodes wait for the thread.
//!
//! A replay charges each node with the time that its thread took to begin it. How far the replay with nothing changed
//! is off the run is told too; if that is more than `MOST_OFF`, the model is not this run's, and no savings are told.
//!
//! Edges are those of the table (`Nodes::before`). Of a node in a loop they lead to the last instance that was over
//! when it began: nodes of one iteration are over before the next one's, or those of the slot before it is used again.
#![forbid(unsafe_code)]

use super::record::{CANCELLED, FAILED, KNOWN, LATER, NONE, TraceEvent};
use super::shares::{Shares, shares};
use super::table::Nodes;
use super::timeline::{RunOfTrace, Timeline, TraceSpan, room};
use crate::base::Result;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Replays whose error is greater than this part of the run, in thousandths, tell no savings.
pub const MOST_OFF: u64 = 50;
/// Nodes that are told as worth making faster.
const TOLD: usize = 10;
/// Names that are tried, and how many node runs all replays together may have.
const TRIED: usize = 40;
const REPLAYED: usize = 2_000_000;
/// Edges between nodes of which there are records, at most: more are not looked at, and only the path is told.
const MOST_EDGES: usize = 1 << 23;
/// Programs that are analysed, those first that took the longest.
const PROGRAMS: usize = 8;

/// What a stretch of a run's path was spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathPart {
    /// In a node.
    Body,
    /// The node had begun, and was completed elsewhere.
    Later,
    /// A node was over, and its thread or the next node's took some time to go on.
    HandOver,
    /// The next node was ready, and its thread was at another one.
    Queue,
    /// The next node was ready, and the thread that was to run it was not in the run yet.
    WakeUp,
    /// Before the first node, and behind the last one.
    Start,
    End,
}

impl PathPart {
    pub const ALL: [PathPart; 7] = [
        PathPart::Body,
        PathPart::Later,
        PathPart::HandOver,
        PathPart::Queue,
        PathPart::WakeUp,
        PathPart::Start,
        PathPart::End,
    ];

    pub fn text(self) -> &'static str {
        match self {
            PathPart::Body => "in nodes",
            PathPart::Later => "completed elsewhere",
            PathPart::HandOver => "hand-over",
            PathPart::Queue => "queue: ready, its thread busy",
            PathPart::WakeUp => "wake-up: ready, its thread not here yet",
            PathPart::Start => "start of the run",
            PathPart::End => "end of the run",
        }
    }
}

/// A stretch of a run's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathSegment {
    pub part: PathPart,
    pub begin_ns: u64,
    pub end_ns: u64,
    /// The node's span, of a gap that of the node behind it; NONE at the end.
    pub span: u32,
}

impl PathSegment {
    pub fn length_ns(&self) -> u64 {
        self.end_ns - self.begin_ns
    }
}

/// What the run would be shorter by, if all nodes of this name took no time.
#[derive(Clone, Copy, Debug)]
pub struct NodeSaving {
    /// Among the timeline's labels.
    pub label: u32,
    pub count: u64,
    pub body_ns: u64,
    pub on_path_ns: u64,
    pub saves_ns: u64,
}

/// What is told of one run.
#[derive(Debug)]
pub struct RunAnalysis {
    pub run: RunOfTrace,
    /// Of how many runs of its program, and whether it is the slowest; else the median.
    pub of_runs: usize,
    pub is_slowest: bool,
    pub threads: u64,
    /// How many nodes ran, each as often as it did.
    pub nodes: u64,
    pub shares: Shares,
    /// By thread: the time in nodes.
    pub busy: Vec<(u32, u64)>,
    pub path: Vec<PathSegment>,
    /// The graph's longest path, and the spans along it. `None` if the graph's edges are not known, or too many.
    pub longest: Option<(u64, Vec<u32>)>,
    /// What the replay took; `None` as above.
    pub replay_ns: Option<u64>,
    /// The most first. Empty if the replay is too far off.
    pub savings: Vec<NodeSaving>,
}

impl RunAnalysis {
    pub fn wall_ns(&self) -> u64 {
        self.run.end_ns - self.run.begin_ns
    }

    /// The time of the path in one kind of stretches.
    pub fn on_path(&self, part: PathPart) -> u64 {
        self.path.iter().filter(|segment| segment.part == part).map(PathSegment::length_ns).sum()
    }

    /// How far the replay is off, in thousandths of the run.
    pub fn replay_error(&self) -> Option<u64> {
        let off = self.replay_ns?.abs_diff(self.wall_ns());
        Some((u128::from(off) * 1000).div_ceil(u128::from(self.wall_ns().max(1))) as u64)
    }

    pub fn is_replay_close(&self) -> bool {
        self.replay_error().is_some_and(|error| error <= MOST_OFF)
    }
}

/// A node that ran.
#[derive(Clone, Copy, Debug)]
struct NodeRun {
    span: u32,
    node: u32,
    begin: u64,
    /// Of the thread's work; and of what the node began, which others complete.
    end: u64,
    done: u64,
    /// Since when nothing but its thread kept it from beginning.
    could_begin: u64,
}

impl NodeRun {
    /// The thread's time for it.
    fn hold(&self) -> u64 {
        self.end - self.could_begin
    }

    fn body(&self) -> u64 {
        self.end - self.begin
    }
}

/// Lists of numbers, one behind the other.
struct Lists {
    first: Vec<u32>,
    all: Vec<u32>,
}

impl Lists {
    fn new(count: usize) -> Result<Lists> {
        let mut first = room(count + 1)?;
        first.push(0);
        Ok(Lists { first, all: Vec::new() })
    }

    fn of(&self, list: usize) -> &[u32] {
        &self.all[self.first[list] as usize..self.first[list + 1] as usize]
    }

    fn push(&mut self, number: u32) -> Result<()> {
        if self.all.len() == self.all.capacity() {
            let mut more = room(2 * self.all.len().max(64))?;
            more.append(&mut self.all);
            self.all = more;
        }
        self.all.push(number);
        Ok(())
    }

    fn close(&mut self) {
        self.first.push(self.all.len() as u32);
    }

    /// For each number the lists that have it.
    fn turned(&self, count: usize) -> Result<Lists> {
        let (mut first, mut all) = (room(count + 1)?, room(self.all.len())?);
        first.resize(count + 1, 0u32);
        all.resize(self.all.len(), 0u32);
        self.all.iter().for_each(|&number| first[number as usize] += 1);
        let mut sum = 0;
        for count in &mut first {
            sum += *count;
            *count = sum;
        }
        for list in (0..self.first.len() - 1).rev() {
            for &number in self.of(list) {
                let at = &mut first[number as usize];
                *at -= 1;
                all[*at as usize] = list as u32;
            }
        }
        Ok(Lists { first, all })
    }
}

/// A run taken apart.
struct RunGraph<'a> {
    timeline: &'a Timeline,
    run: &'a RunOfTrace,
    /// In the order of their beginnings. What a node depends on comes before it.
    nodes: Vec<NodeRun>,
    /// Of each node and those before it the one that was done last.
    last_done: Vec<u32>,
    /// (node, place in `nodes`), sorted.
    by_node: Vec<(u32, u32)>,
    /// By thread: stays in the run, in order.
    stays: Vec<(u32, u64)>,
    threads: u64,
}

impl<'a> RunGraph<'a> {
    /// `spans`: of this run, by beginning, end and place. `None` if some of the records are not there.
    fn new(timeline: &'a Timeline, run: &'a RunOfTrace, spans: &[u32]) -> Result<Option<RunGraph<'a>>> {
        let all = || spans.iter().map(|&at| (at, &timeline.spans[at as usize]));
        let is_node = |span: &TraceSpan| span.event == TraceEvent::Node;
        let count = all().filter(|(_, span)| is_node(span)).count();
        let told: u64 =
            all().filter(|(_, span)| span.event == TraceEvent::Stay).map(|(_, span)| u64::from(span.other)).sum();
        if told != count as u64 || count == 0 {
            return Ok(None);
        }
        let mut stays = room(spans.len())?;
        stays.extend(all().filter(|(_, s)| s.event == TraceEvent::Stay).map(|(_, s)| (s.thread, s.begin_ns)));
        stays.sort_unstable();
        let threads = stays.chunk_by(|a, b| a.0 == b.0).count() as u64;
        // When nodes that are completed elsewhere were.
        let mut returns: Vec<(u32, u64)> = Vec::new();
        if all().any(|(_, span)| span.flags & LATER != 0) {
            returns = room(timeline.instants.len() + spans.len())?;
            let is_return = |instant: &&TraceSpan| instant.event == TraceEvent::Return && instant.frame == run.frame;
            returns.extend(timeline.instants.iter().filter(is_return).map(|instant| (instant.object, instant.end_ns)));
            let is_last = |span: &TraceSpan| span.event == TraceEvent::Round && span.flags & LATER == 0;
            returns.extend(all().filter(|(_, span)| is_last(span)).map(|(_, span)| (span.object, span.end_ns)));
            returns.sort_unstable();
        }
        // Until when each thread was at the node before.
        let mut busy: Vec<(u32, u64)> = room(threads as usize)?;
        busy.extend(stays.chunk_by(|a, b| a.0 == b.0).map(|of_thread| (of_thread[0].0, 0)));
        let (mut nodes, mut by_node, mut last_done): (Vec<NodeRun>, _, Vec<u32>) =
            (room(count)?, room(count)?, room(count)?);
        for (at, span) in all().filter(|(_, span)| matches!(span.event, TraceEvent::Node | TraceEvent::Round)) {
            let begin = span.begin_ns.clamp(run.begin_ns, run.end_ns);
            let end = span.end_ns.clamp(begin, run.end_ns);
            let Ok(thread) = busy.binary_search_by_key(&span.thread, |(thread, _)| *thread) else { return Ok(None) };
            let before = std::mem::replace(&mut busy[thread].1, end);
            if !is_node(span) {
                continue;
            }
            let could_begin = match (span.flags & KNOWN, before) {
                (0, 0) => begin,
                (0, before) => before.min(begin),
                _ => begin.saturating_sub(span.ready_ns).max(before).clamp(run.begin_ns, begin),
            };
            let mut done = end;
            if span.flags & LATER != 0 {
                let first = returns.partition_point(|&(node, at)| (node, at) < (span.object, begin));
                let found = returns.get(first).filter(|(node, _)| *node == span.object);
                done = found.map_or(end, |(_, at)| (*at).clamp(end, run.end_ns.max(end)));
            }
            by_node.push((span.object, nodes.len() as u32));
            let last = last_done.last().filter(|last| nodes[**last as usize].done > done);
            last_done.push(last.copied().unwrap_or(nodes.len() as u32));
            nodes.push(NodeRun { span: at, node: span.object, begin, end, done, could_begin });
        }
        by_node.sort_unstable();
        Ok(Some(RunGraph { timeline, run, nodes, last_done, by_node, stays, threads }))
    }

    fn span(&self, at: usize) -> &TraceSpan {
        &self.timeline.spans[self.nodes[at].span as usize]
    }

    fn table(&self) -> Option<&Nodes> {
        self.timeline.table(self.run.program).map(|table| &table.nodes)
    }

    /// The last instance of a node before `place` that was over at a time, or had begun.
    fn last_of(&self, node: u32, place: usize, is_before: impl Fn(&NodeRun) -> bool) -> Option<usize> {
        let behind = self.by_node.partition_point(|&entry| entry < (node, place as u32));
        let before = self.by_node[..behind].iter().rev().take_while(|entry| entry.0 == node);
        before.map(|entry| entry.1 as usize).find(|at| is_before(&self.nodes[*at]))
    }

    /// For each node that a record may be of: those that it waits for, behind all that only lead to others. `None` if
    /// that is not known, or too much.
    fn told_before(&self) -> Result<Option<Lists>> {
        let Some(table) = self.table().filter(|table| self.by_node.iter().all(|(n, _)| (*n as usize) < table.len()))
        else {
            return Ok(None);
        };
        let mut lists = Lists::new(table.len())?;
        // By which node each one was seen last.
        let mut seen: Vec<u32> = room(table.len())?;
        seen.resize(table.len(), NONE);
        let mut open: Vec<u32> = room(table.len())?;
        let mut looked_at = 0;
        let is_told = |node: u32| table.get(node).is_some_and(|node| node.is_told);
        for node in 0..table.len() as u32 {
            if is_told(node) {
                open.push(node);
            }
            while let Some(at) = open.pop() {
                for &before in table.before(at) {
                    looked_at += 1;
                    if std::mem::replace(&mut seen[before as usize], node) == node {
                        continue;
                    }
                    if is_told(before) { lists.push(before)? } else { open.push(before) }
                }
                if looked_at > MOST_EDGES {
                    return Ok(None);
                }
            }
            lists.close();
        }
        Ok(Some(lists))
    }

    /// What each node's run depends on.
    fn dependences(&self, told: &Lists) -> Result<Lists> {
        let mut lists = Lists::new(self.nodes.len())?;
        for (at, run) in self.nodes.iter().enumerate() {
            for &before in told.of(run.node as usize) {
                if let Some(before) = self.last_of(before, at, |before| before.done <= run.begin) {
                    lists.push(before as u32)?;
                }
            }
            lists.close();
        }
        Ok(lists)
    }

    /// What a node's run waited for last.
    fn came_last(&self, at: usize, ready: u64, edges: Option<&Lists>) -> Option<usize> {
        let last =
            |before: &mut dyn Iterator<Item = usize>| before.max_by_key(|&before| (self.nodes[before].done, before));
        if let Some(from) = self.span(at).last_edge() {
            let is_told = self.table().and_then(|table| table.get(from)).is_none_or(|node| node.is_told);
            let found = if is_told { self.last_of(from, at, |before| before.begin <= ready) } else { None };
            // A branch or a loop said so, which had waited for others.
            let found = found.or_else(|| last(&mut edges?.of(at).iter().map(|&before| before as usize)));
            if found.is_some() {
                return found;
            }
        }
        // The last one that was over; along a walk the one before.
        let before = self.last_done[at.checked_sub(1)?] as usize;
        let is_over = |before: &usize| self.nodes[*before].done <= ready;
        if is_over(&before) { Some(before) } else { last(&mut (0..at).filter(is_over)) }
    }

    /// The run's path, tiled from its end to its beginning, then turned.
    fn path(&self, edges: Option<&Lists>) -> Result<Vec<PathSegment>> {
        let mut path: Vec<PathSegment> = room(6 * self.nodes.len() + 8)?;
        let (first, mut until) = (self.run.begin_ns, self.run.end_ns);
        // Down to this moment.
        let mut part = |from: u64, part, span, until: &mut u64| {
            let from = from.clamp(first, *until);
            if from < *until || part == PathPart::Body {
                path.push(PathSegment { part, begin_ns: from, end_ns: *until, span });
                *until = from;
            }
        };
        let last = (0..self.nodes.len()).max_by_key(|&at| (self.nodes[at].done, at));
        if let Some(last) = last {
            part(self.nodes[last].done, PathPart::End, NONE, &mut until);
        }
        let mut next = last;
        while let Some(at) = next {
            let run = &self.nodes[at];
            part(run.end, PathPart::Later, run.span, &mut until);
            part(run.begin, PathPart::Body, run.span, &mut until);
            let span = self.span(at);
            let is_known = span.flags & KNOWN != 0;
            let ready = if is_known { run.begin.saturating_sub(span.ready_ns).max(first) } else { run.begin };
            next = self.came_last(at, ready, edges);
            let over = next.map_or(first, |before| self.nodes[before].done.min(run.begin));
            if is_known {
                let ready = ready.max(over);
                let came = self.came(span.thread, run.begin);
                part(run.could_begin.max(came).max(ready), PathPart::HandOver, run.span, &mut until);
                part(came.max(ready), PathPart::Queue, run.span, &mut until);
                part(ready, PathPart::WakeUp, run.span, &mut until);
            }
            let between = if next.is_some() { PathPart::HandOver } else { PathPart::Start };
            part(over, between, run.span, &mut until);
        }
        path.reverse();
        path.dedup_by(|next, last| {
            let joins = next.part == last.part && next.span == last.span;
            if joins {
                last.end_ns = next.end_ns;
            }
            joins
        });
        Ok(path)
    }

    /// When a thread came into the run, for what it did at a time.
    fn came(&self, thread: u32, at: u64) -> u64 {
        let behind = self.stays.partition_point(|&stay| stay <= (thread, at));
        self.stays[..behind].last().filter(|stay| stay.0 == thread).map_or(0, |stay| stay.1)
    }

    /// The greatest sum of times along the edges, and the spans on it.
    fn longest(&self, edges: &Lists) -> Result<(u64, Vec<u32>)> {
        let mut sums: Vec<(u64, u32)> = room(self.nodes.len())?;
        for (at, run) in self.nodes.iter().enumerate() {
            let before = edges.of(at).iter().map(|&before| (sums[before as usize].0, before)).max();
            let (sum, before) = before.unwrap_or((0, NONE));
            sums.push((sum + (run.done - run.begin), before));
        }
        let mut at = (0..sums.len()).max_by_key(|&at| sums[at].0).unwrap_or(0);
        let (longest, mut spans) = (sums[at].0, room(sums.len())?);
        loop {
            spans.push(self.nodes[at].span);
            match sums[at].1 {
                NONE => break,
                before => at = before as usize,
            }
        }
        spans.reverse();
        Ok((longest, spans))
    }
}

/// Runs a run again, on paper.
struct Replay<'a> {
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
    fn new(graph: &'a RunGraph<'a>, before: &'a Lists) -> Result<Replay<'a>> {
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
            around_ns: (first - graph.run.begin_ns) + (graph.run.end_ns - last),
            waits: room(graph.nodes.len())?,
            ready: BinaryHeap::from(room(graph.nodes.len())?),
            moments: BinaryHeap::from(room(2 * graph.nodes.len())?),
        })
    }

    /// The time of the whole run if the nodes of a group took none. A list schedule: a thread that is free takes the
    /// ready node with the longest path to the end.
    fn time(&mut self, takes_none: Option<u32>) -> u64 {
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

    /// What the run would be shorter by, for the nodes that are most likely to matter: those on one of the two paths,
    /// and of these those that take the longest.
    fn savings(&mut self, whole_ns: u64, path: &[PathSegment], longest: &[u32]) -> Result<Vec<NodeSaving>> {
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
        tried.sort_by_key(|(_, is_on_path, saving)| Reverse((*is_on_path, saving.body_ns)));
        tried.truncate(TRIED.min(REPLAYED / graph.nodes.len().max(1)));
        let mut savings: Vec<NodeSaving> = room(tried.len())?;
        for (group, _, mut saving) in tried {
            saving.saves_ns = whole_ns.saturating_sub(self.time(Some(group)));
            savings.push(saving);
        }
        savings.sort_by_key(|saving| Reverse((saving.saves_ns, saving.body_ns)));
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

/// `spans`: of the run. `None` if some of its records are not there.
fn analyse(
    timeline: &Timeline,
    spans: &[u32],
    (run, shares, threads): (RunOfTrace, Shares, u64),
) -> Result<Option<RunAnalysis>> {
    let Some(graph) = RunGraph::new(timeline, &run, spans)? else { return Ok(None) };
    let told = graph.told_before()?;
    let edges = told.as_ref().map(|told| graph.dependences(told)).transpose()?;
    let path = graph.path(edges.as_ref())?;
    let mut busy: Vec<(u32, u64)> = room(spans.len())?;
    let in_nodes = |span: &&TraceSpan| matches!(span.event, TraceEvent::Node | TraceEvent::Round | TraceEvent::Stay);
    let each = spans.iter().map(|&at| &timeline.spans[at as usize]).filter(in_nodes);
    busy.extend(each.map(|span| (span.thread, if span.event == TraceEvent::Stay { 0 } else { span.length_ns() })));
    busy.sort_unstable();
    busy.dedup_by(|next, sum| {
        let same = next.0 == sum.0;
        sum.1 += if same { next.1 } else { 0 };
        same
    });
    let mut analysis = RunAnalysis {
        run,
        of_runs: 1,
        is_slowest: false,
        threads,
        nodes: graph.nodes.len() as u64,
        shares,
        busy,
        path,
        longest: None,
        replay_ns: None,
        savings: Vec::new(),
    };
    if let Some(edges) = &edges {
        let longest = graph.longest(edges)?;
        let mut replay = Replay::new(&graph, edges)?;
        let whole_ns = replay.time(None);
        analysis.replay_ns = Some(whole_ns);
        if analysis.is_replay_close() {
            analysis.savings = replay.savings(whole_ns, &analysis.path, &longest.1)?;
        }
        analysis.longest = Some(longest);
    }
    Ok(Some(analysis))
}

/// Of each program the run with the median time and the slowest one, of those that ended well and whose records are all
/// there. Programs that took the longest come first.
pub fn analyses(timeline: &Timeline) -> Result<Vec<RunAnalysis>> {
    let mut runs = shares(timeline)?;
    runs.retain(|(run, ..)| run.flags & (FAILED | CANCELLED) == 0);
    runs.sort_by_key(|(run, ..)| (run.program, run.end_ns - run.begin_ns, run.frame));
    let frames = spans_by_frame(timeline)?;
    let mut programs: Vec<&[(RunOfTrace, Shares, u64)]> = room(runs.len())?;
    programs.extend(runs.chunk_by(|a, b| a.0.program == b.0.program));
    programs.sort_by_key(|runs| Reverse(runs.iter().map(|(run, ..)| run.end_ns - run.begin_ns).sum::<u64>()));
    let mut all = room(2 * PROGRAMS)?;
    for runs in programs.into_iter().take(PROGRAMS) {
        let places = [runs.len() / 2, runs.len() - 1];
        for (is_slowest, &place) in places.iter().enumerate().take(runs.len().min(2)) {
            let spans = of_frame(timeline, &frames, runs[place].0.frame);
            if let Some(analysis) = analyse(timeline, spans, runs[place])? {
                all.push(RunAnalysis { of_runs: runs.len(), is_slowest: is_slowest == 1, ..analysis });
            }
        }
    }
    Ok(all)
}

/// One run, by its frame. `None` if it has not begun and ended in the trace, or some of its records are not there.
pub fn analysis_of(timeline: &Timeline, frame: u32) -> Result<Option<RunAnalysis>> {
    let Some(run) = shares(timeline)?.into_iter().find(|(run, ..)| run.frame == frame) else { return Ok(None) };
    let frames = spans_by_frame(timeline)?;
    analyse(timeline, of_frame(timeline, &frames, frame), run)
}

/// Spans of runs, by frame and then in the order of their beginnings.
fn spans_by_frame(timeline: &Timeline) -> Result<Vec<u32>> {
    use TraceEvent::{Node, Round, Stay};
    let mut all: Vec<u32> = room(timeline.spans.len())?;
    let is_of_run = |at: &u32| matches!(timeline.spans[*at as usize].event, Stay | Node | Round);
    all.extend((0..timeline.spans.len() as u32).filter(is_of_run));
    all.sort_unstable_by_key(|&at| {
        let span = &timeline.spans[at as usize];
        (span.frame, span.begin_ns, span.end_ns, span.thread, span.place)
    });
    Ok(all)
}

fn of_frame<'a>(timeline: &Timeline, frames: &'a [u32], frame: u32) -> &'a [u32] {
    let first = frames.partition_point(|&at| timeline.spans[at as usize].frame < frame);
    let end = frames.partition_point(|&at| timeline.spans[at as usize].frame <= frame);
    &frames[first..end]
}

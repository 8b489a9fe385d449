//! A run taken apart: its nodes, what each depended on, the path that it took, and the longest path of its graph.
//!
//! Edges are those of the table (`Nodes::before`). Of a node in a loop they lead to the last instance that was over
//! when it began: nodes of one iteration are over before the next one's, or those of the slot before it is used again.
#![forbid(unsafe_code)]

use super::record::{KNOWN, LATER, NONE, TraceEvent};
use super::table::Nodes;
use super::timeline::{RunOfTrace, Timeline, TraceSpan, room};
use crate::base::Result;

/// Edges between nodes of which there are records, at most: more are not looked at, and only the path is told.
const MOST_EDGES: usize = 1 << 23;

/// What a stretch of a run's path was spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathPart {
    /// In a node.
    Body,
    /// The node had begun, and a device was at work for the run.
    Device,
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
    pub const ALL: [PathPart; 8] = [
        PathPart::Body,
        PathPart::Device,
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
            PathPart::Device => "on a device",
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

/// A node that ran.
#[derive(Clone, Copy, Debug)]
pub struct NodeRun {
    pub span: u32,
    pub node: u32,
    pub begin: u64,
    /// Of the thread's work; and of what the node began, which others complete.
    pub end: u64,
    pub done: u64,
    /// Since when nothing but its thread kept it from beginning.
    pub could_begin: u64,
}

impl NodeRun {
    /// The thread's time for it.
    pub fn hold(&self) -> u64 {
        self.end - self.could_begin
    }

    pub fn body(&self) -> u64 {
        self.end - self.begin
    }
}

/// Lists of numbers, one behind the other.
pub struct Lists {
    first: Vec<u32>,
    all: Vec<u32>,
}

impl Lists {
    fn new(count: usize) -> Result<Lists> {
        let mut first = room(count + 1)?;
        first.push(0);
        Ok(Lists { first, all: Vec::new() })
    }

    pub fn of(&self, list: usize) -> &[u32] {
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
    pub fn turned(&self, count: usize) -> Result<Lists> {
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
pub struct RunGraph<'a> {
    pub timeline: &'a Timeline,
    pub run: &'a RunOfTrace,
    /// In the order of their beginnings. What a node depends on comes before it.
    pub nodes: Vec<NodeRun>,
    /// Of each node and those before it the one that was done last.
    last_done: Vec<u32>,
    /// (node, place in `nodes`), sorted.
    pub by_node: Vec<(u32, u32)>,
    /// By thread: stays in the run, in order.
    stays: Vec<(u32, u64)>,
    pub threads: u64,
}

impl<'a> RunGraph<'a> {
    /// `spans`: of this run, by beginning, end and place. `None` if some of the records are not there.
    pub fn new(timeline: &'a Timeline, run: &'a RunOfTrace, spans: &[u32]) -> Result<Option<RunGraph<'a>>> {
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

    pub fn table(&self) -> Option<&Nodes> {
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
    pub fn told_before(&self) -> Result<Option<Lists>> {
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
    pub fn dependences(&self, told: &Lists) -> Result<Lists> {
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
    pub fn path(&self, edges: Option<&Lists>) -> Result<Vec<PathSegment>> {
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
    pub fn longest(&self, edges: &Lists) -> Result<(u64, Vec<u32>)> {
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

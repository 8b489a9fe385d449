//! What the threads of a run did with their time.
//!
//! The time of a run is divided among its threads without a rest: each nanosecond of each thread that was in the run is
//! one of five things, and their sum is the number of threads times the time of the run (`Shares`). A thread that is in
//! the run and has no node in hand waits for the next one to become ready, and then takes some time to begin it. Until
//! then it is *starved*, if no node of the run was ready anywhere, or idle *beside ready nodes*.
#![forbid(unsafe_code)]

use super::record::{KNOWN, TraceEvent};
use super::timeline::{RunOfTrace, Timeline, TraceSpan, room};
use crate::base::Result;

/// The time of threads that might have worked for a run, by what they did, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shares {
    /// In nodes.
    pub body: u64,
    /// Between a node's becoming ready, or the end of the one before, and its beginning.
    pub own: u64,
    /// In the run, with nothing ready.
    pub starved: u64,
    /// In the run, with a node ready that nobody had begun.
    pub beside_ready: u64,
    /// Not in the run: not yet, or no more.
    pub away: u64,
}

impl Shares {
    pub fn sum(&self) -> u64 {
        self.body + self.own + self.starved + self.beside_ready + self.away
    }

    /// Each with its text.
    pub fn parts(&self) -> [(&'static str, u64); 5] {
        [
            ("in nodes", self.body),
            ("weir's own, between nodes", self.own),
            ("starved: nothing was ready", self.starved),
            ("idle beside ready nodes", self.beside_ready),
            ("not in the run", self.away),
        ]
    }

    pub fn add(&mut self, other: &Shares) {
        self.body += other.body;
        self.own += other.own;
        self.starved += other.starved;
        self.beside_ready += other.beside_ready;
        self.away += other.away;
    }
}

/// Spans of time that do not overlap, in order.
struct Union(Vec<(u64, u64)>);

impl Union {
    fn of(mut spans: Vec<(u64, u64)>) -> Union {
        spans.sort_unstable();
        spans.dedup_by(|next, last| {
            let joins = next.0 <= last.1;
            if joins {
                last.1 = last.1.max(next.1);
            }
            joins
        });
        Union(spans)
    }

    /// How much of it lies between two times.
    fn between(&self, begin: u64, end: u64) -> u64 {
        let first = self.0.partition_point(|span| span.1 <= begin);
        let inside = self.0[first..].iter().take_while(|span| span.0 < end);
        inside.map(|span| span.1.min(end) - span.0.max(begin)).sum()
    }
}

/// The shares of the threads of one run, and how many they were. `spans`: of this run, by thread and beginning.
fn shares_of(run: &RunOfTrace, spans: &[&TraceSpan]) -> Result<(Shares, u64)> {
    let mut ready = room(spans.len())?;
    let waited = spans.iter().filter(|span| span.event == TraceEvent::Node && span.flags & KNOWN != 0);
    ready.extend(waited.map(|span| (span.begin_ns - span.ready_ns.min(span.begin_ns), span.begin_ns)));
    let ready = Union::of(ready);
    let (mut shares, mut threads) = (Shares::default(), 0);
    for of_thread in spans.chunk_by(|a, b| a.thread == b.thread) {
        threads += 1;
        let mut stays: Vec<(u64, u64)> = room(of_thread.len())?;
        let within = |span: &TraceSpan| (span.begin_ns.max(run.begin_ns), span.end_ns.min(run.end_ns));
        let is_of_run = |span: &&&TraceSpan| within(span).0 < within(span).1;
        stays.extend(
            of_thread.iter().filter(|s| s.event == TraceEvent::Stay).filter(is_of_run).map(|span| within(span)),
        );
        let stays = Union::of(stays);
        let mut nodes =
            of_thread.iter().filter(|span| matches!(span.event, TraceEvent::Node | TraceEvent::Round)).peekable();
        let mut idle = |begin: u64, end: u64| {
            let beside = ready.between(begin, end);
            shares.beside_ready += beside;
            shares.starved += end - begin - beside;
        };
        let (mut body, mut own, mut inside) = (0, 0, 0);
        for &(begin, end) in &stays.0 {
            inside += end - begin;
            let mut at = begin;
            while let Some(node) = nodes.next_if(|node| node.begin_ns < end) {
                let (from, to) = (node.begin_ns.max(at), node.end_ns.clamp(at, end));
                // Since when nothing but this thread kept it from beginning.
                let could_begin = match node.flags & KNOWN {
                    0 => at,
                    _ => (node.begin_ns - node.ready_ns.min(node.begin_ns)).clamp(at, from),
                };
                idle(at, could_begin);
                own += from - could_begin;
                body += to - from;
                at = to;
            }
            idle(at, end);
        }
        shares.body += body;
        shares.own += own;
        shares.away += run.end_ns - run.begin_ns - inside;
    }
    Ok((shares, threads))
}

/// For each run that has begun and ended in the trace, what its threads did.
pub fn shares(timeline: &Timeline) -> Result<Vec<(RunOfTrace, Shares, u64)>> {
    let mut spans: Vec<&TraceSpan> = room(timeline.spans.len())?;
    let is_of_run = |span: &&TraceSpan| matches!(span.event, TraceEvent::Stay | TraceEvent::Node | TraceEvent::Round);
    spans.extend(timeline.spans.iter().filter(is_of_run));
    spans.sort_by_key(|span| (span.frame, span.thread, span.begin_ns, span.depth));
    let mut all = room(timeline.runs.len())?;
    for of_run in spans.chunk_by(|a, b| a.frame == b.frame) {
        let Some(run) = timeline.run(of_run[0].frame).filter(|run| run.begin_ns > 0 && run.end_ns > 0) else {
            continue;
        };
        let (shares, threads) = shares_of(run, of_run)?;
        all.push((*run, shares, threads));
    }
    Ok(all)
}

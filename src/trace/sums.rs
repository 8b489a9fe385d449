//! Figures of programs: their runs, what their threads did, and their nodes.
#![forbid(unsafe_code)]

use super::record::{CANCELLED, FAILED, TraceEvent};
use super::shares::{Shares, shares};
use super::timeline::{Timeline, TraceSpan, room};
use crate::base::Result;
use crate::base::sort::sort_by_key;
use std::cmp::Reverse;

/// All runs of a node, or all that devices did by one name.
#[derive(Clone, Copy, Debug)]
pub struct NodeSums {
    /// Among the timeline's labels.
    pub label: u32,
    pub count: u64,
    pub all: u64,
    pub longest: u64,
    pub waited: u64,
}

/// The figures of one program, of runs that have begun and ended in the trace.
#[derive(Debug)]
pub struct ProgramSums {
    pub program: u32,
    pub runs: u64,
    pub failed: u64,
    pub cancelled: u64,
    pub wall: u64,
    pub least: u64,
    pub most: u64,
    pub threads: u64,
    pub shares: Shares,
    /// Those that took the longest first.
    pub nodes: Vec<NodeSums>,
    /// The work of devices in the runs, by its name, the longest first.
    pub on_devices: Vec<NodeSums>,
}

pub fn programs(timeline: &Timeline) -> Result<Vec<ProgramSums>> {
    let mut programs: Vec<ProgramSums> = Vec::new();
    for (run, shares, threads) in shares(timeline)? {
        let at = programs.iter().position(|sums| sums.program == run.program).unwrap_or(programs.len());
        if at == programs.len() {
            programs.push(ProgramSums {
                program: run.program,
                runs: 0,
                failed: 0,
                cancelled: 0,
                wall: 0,
                least: u64::MAX,
                most: 0,
                threads: 0,
                shares: Shares::default(),
                nodes: node_sums(timeline, run.program, &[TraceEvent::Node, TraceEvent::Round])?,
                on_devices: node_sums(timeline, run.program, &[TraceEvent::Device])?,
            });
        }
        let (sums, wall) = (&mut programs[at], run.end_ns - run.begin_ns);
        sums.runs += 1;
        sums.failed += u64::from(run.flags & FAILED != 0);
        sums.cancelled += u64::from(run.flags & CANCELLED != 0);
        sums.wall += wall;
        (sums.least, sums.most) = (sums.least.min(wall), sums.most.max(wall));
        sums.threads += threads;
        sums.shares.add(&shares);
    }
    Ok(programs)
}

/// `events`: the kinds of spans.
fn node_sums(timeline: &Timeline, program: u32, events: &[TraceEvent]) -> Result<Vec<NodeSums>> {
    let is_of_program = |span: &&TraceSpan| {
        events.contains(&span.event) && timeline.run(span.frame).is_some_and(|run| run.program == program)
    };
    let all = || timeline.spans.iter().filter(is_of_program);
    let mut nodes: Vec<NodeSums> = room(all().count())?;
    nodes.extend(all().map(|span| {
        let ns = span.length_ns();
        let waited = if span.event == TraceEvent::Device { 0 } else { span.ready_ns };
        NodeSums { label: span.label, count: 1, all: ns, longest: ns, waited }
    }));
    nodes.sort_unstable_by_key(|node| node.label);
    nodes.dedup_by(|next, sum| {
        let same = next.label == sum.label;
        if same {
            sum.count += next.count;
            sum.all += next.all;
            sum.longest = sum.longest.max(next.longest);
            sum.waited += next.waited;
        }
        same
    });
    sort_by_key(&mut nodes, |node| Reverse(node.all));
    Ok(nodes)
}

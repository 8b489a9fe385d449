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
#![forbid(unsafe_code)]

use super::record::{CANCELLED, FAILED, TraceEvent};
use super::replay::{NodeSaving, Replay};
use super::run_graph::{Lists, PathPart, PathSegment, RunGraph};
use super::shares::{Shares, Union, on_devices, shares};
use super::timeline::{RunOfTrace, Timeline, TraceSpan, room};
use crate::base::Result;
use crate::base::sort::sort_by_key;
use std::cmp::Reverse;

/// Replays whose error is greater than this part of the run, in thousandths, tell no savings.
pub const MOST_OFF: u64 = 50;
/// Programs that are analysed, those first that took the longest.
const PROGRAMS: usize = 8;
/// Graphs with more nodes that ran are not drawn.
const MOST_DRAWN: usize = 600;

/// A node of the graph that ran, as often as it did.
#[derive(Debug)]
pub struct NodeOfGraph {
    pub label: u32,
    pub count: u32,
    pub body_ns: u64,
    /// Whether the path of the run leads through it.
    pub is_on_path: bool,
    /// Those that it waits for, among the nodes; of a loop only within one iteration.
    pub before: Vec<u32>,
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
    /// In the order of their first beginnings. Empty if the edges are not known, or there are too many nodes.
    pub graph: Vec<NodeOfGraph>,
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

/// The nodes that ran, with the edges between them.
fn graph_of(graph: &RunGraph<'_>, told: &Lists, path: &[PathSegment]) -> Result<Vec<NodeOfGraph>> {
    // Of each node its first run's place, its number, and how many runs it has.
    let mut firsts: Vec<(u32, u32, u32)> = room(graph.by_node.len())?;
    let runs = graph.by_node.chunk_by(|a, b| a.0 == b.0);
    firsts.extend(runs.map(|runs| (runs[0].1, runs[0].0, runs.len() as u32)));
    firsts.sort_unstable();
    if firsts.len() > MOST_DRAWN {
        return Ok(Vec::new());
    }
    let mut places: Vec<(u32, u32)> = room(firsts.len())?;
    places.extend((0..).zip(&firsts).map(|(at, &(_, node, _))| (node, at)));
    places.sort_unstable();
    let place = |node: u32| places.binary_search_by_key(&node, |place| place.0).ok().map(|at| places[at].1);
    let mut nodes: Vec<NodeOfGraph> = room(firsts.len())?;
    for (at, &(first, node, count)) in (0..).zip(&firsts) {
        let all = told.of(node as usize).iter().filter_map(|&before| place(before)).filter(|&before| before < at);
        let mut before = room(told.of(node as usize).len())?;
        before.extend(all);
        let label = graph.timeline.spans[graph.nodes[first as usize].span as usize].label;
        nodes.push(NodeOfGraph { label, count, body_ns: 0, is_on_path: false, before });
    }
    for run in &graph.nodes {
        if let Some(at) = place(run.node) {
            nodes[at as usize].body_ns += run.body();
        }
    }
    for segment in path.iter().filter(|segment| segment.part == PathPart::Body) {
        if let Some(at) = place(graph.timeline.spans[segment.span as usize].object) {
            nodes[at as usize].is_on_path = true;
        }
    }
    Ok(nodes)
}

/// The path with what was completed elsewhere, and what is behind the last node, divided into a device's work and the
/// rest.
fn with_devices(path: Vec<PathSegment>, devices: &Union) -> Result<Vec<PathSegment>> {
    let is_later = |part| matches!(part, PathPart::Later | PathPart::End);
    let later = || path.iter().filter(|segment| is_later(segment.part));
    let pieces = later().map(|segment| 1 + 2 * devices.within(segment.begin_ns, segment.end_ns).count()).sum::<usize>();
    let mut divided: Vec<PathSegment> = room(path.len() + pieces)?;
    for &segment in &path {
        let mut at = segment.begin_ns;
        let mut put = |part, end_ns: u64| {
            if at < end_ns || part == PathPart::Body {
                divided.push(PathSegment { part, begin_ns: at, end_ns, ..segment });
                at = end_ns;
            }
        };
        if is_later(segment.part) {
            for (begin, end) in devices.within(segment.begin_ns, segment.end_ns) {
                put(segment.part, begin);
                put(PathPart::Device, end);
            }
        }
        put(segment.part, segment.end_ns);
    }
    Ok(divided)
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
    let path = with_devices(graph.path(edges.as_ref())?, &on_devices(timeline, run.frame)?)?;
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
        graph: Vec::new(),
    };
    if let Some(told) = &told {
        analysis.graph = graph_of(&graph, told, &analysis.path)?;
    }
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
    sort_by_key(&mut runs, |(run, ..)| (run.program, run.end_ns - run.begin_ns, run.frame));
    let frames = spans_by_frame(timeline)?;
    let mut programs: Vec<&[(RunOfTrace, Shares, u64)]> = room(runs.len())?;
    programs.extend(runs.chunk_by(|a, b| a.0.program == b.0.program));
    sort_by_key(&mut programs, |runs| Reverse(runs.iter().map(|(run, ..)| run.end_ns - run.begin_ns).sum::<u64>()));
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

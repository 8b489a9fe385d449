//! A trace as lines to read: what each program's runs took, what its threads did with their time, and its nodes.
//!
//! The time of a run is divided among its threads without a rest: each nanosecond of each thread that was in the run is
//! one of five things, and their sum is the number of threads times the time of the run (`Shares`). A thread that is in
//! the run and has no node in hand waits for the next one to become ready, and then takes some time to begin it. Until
//! then it is *starved*, if no node of the run was ready anywhere, or idle *beside ready nodes*.
#![forbid(unsafe_code)]

use super::output::TraceOutput;
use super::record::{CANCELLED, FAILED, KNOWN, TraceEvent};
use super::timeline::{RunOfTrace, Timeline, TraceSpan, room};
use crate::base::Result;
use std::fmt::Write as _;

/// Nodes of a program that are listed.
const LISTED: usize = 30;

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

    fn add(&mut self, other: &Shares) {
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

/// The figures of one program.
struct ProgramSums {
    program: u32,
    runs: u64,
    failed: u64,
    cancelled: u64,
    wall: u64,
    least: u64,
    most: u64,
    threads: u64,
    shares: Shares,
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

fn micros(ns: u64) -> f64 {
    ns as f64 / 1000.0
}

fn percent(part: u64, of: u64) -> f64 {
    100.0 * part as f64 / of.max(1) as f64
}

/// Writes the report.
pub fn write(timeline: &Timeline, output: &mut TraceOutput<'_>) -> Result<()> {
    let _ = writeln!(output, "{}", timeline.remark());
    for thread in &timeline.threads {
        let _ = writeln!(output, "thread {} '{}': {} records lost", thread.os_id, thread.name, thread.lost);
    }
    if timeline.lost_without_ring > 0 {
        let _ = writeln!(output, "threads without a ring: {} records lost", timeline.lost_without_ring);
    }
    let mut programs: Vec<ProgramSums> = Vec::new();
    for (run, shares, threads) in shares(timeline)? {
        let at = programs.iter().position(|sums| sums.program == run.program).unwrap_or(programs.len());
        if at == programs.len() {
            let (program, least) = (run.program, u64::MAX);
            let shares = Shares::default();
            programs.push(ProgramSums {
                program,
                runs: 0,
                failed: 0,
                cancelled: 0,
                wall: 0,
                least,
                most: 0,
                threads: 0,
                shares,
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
    for sums in &programs {
        write_program(timeline, sums, output)?;
        if output.has_failed() {
            break;
        }
    }
    Ok(())
}

fn write_program(timeline: &Timeline, sums: &ProgramSums, output: &mut TraceOutput<'_>) -> Result<()> {
    let name = timeline.table(sums.program).map_or("?", |table| &table.name);
    let _ = writeln!(
        output,
        "\nprogram '{name}': {} runs ({} failed, {} cancelled) of {:.3} us in the mean, {:.3} to {:.3}; {:.2} threads",
        sums.runs,
        sums.failed,
        sums.cancelled,
        micros(sums.wall) / sums.runs as f64,
        micros(sums.least),
        micros(sums.most),
        sums.threads as f64 / sums.runs as f64
    );
    let (shares, all) = (&sums.shares, sums.shares.sum());
    let _ = writeln!(output, "  {all} ns of threads:");
    for (what, ns) in [
        ("in nodes", shares.body),
        ("weir's own, between nodes", shares.own),
        ("starved: nothing was ready", shares.starved),
        ("idle beside ready nodes", shares.beside_ready),
        ("not in the run", shares.away),
    ] {
        let _ = writeln!(output, "  {ns:>15} ns {:>6.2} %  {what}", percent(ns, all));
    }
    // By label: count, total, longest, waited.
    let mut nodes: Vec<(u32, u64, u64, u64, u64)> = room(timeline.spans.len())?;
    let is_of_program = |span: &&TraceSpan| {
        matches!(span.event, TraceEvent::Node | TraceEvent::Round)
            && timeline.run(span.frame).is_some_and(|run| run.program == sums.program)
    };
    nodes.extend(timeline.spans.iter().filter(is_of_program).map(|span| {
        let ns = span.length_ns();
        (span.label, 1, ns, ns, span.ready_ns)
    }));
    nodes.sort_unstable();
    nodes.dedup_by(|next, sum| {
        let same = next.0 == sum.0;
        if same {
            *sum = (sum.0, sum.1 + 1, sum.2 + next.2, sum.3.max(next.3), sum.4 + next.4);
        }
        same
    });
    nodes.sort_by_key(|node| std::cmp::Reverse(node.2));
    let _ = writeln!(
        output,
        "  {:>9} {:>12} {:>12} {:>12} {:>12}  node",
        "count", "all us", "mean us", "longest us", "waited us"
    );
    for (label, count, all, longest, waited) in nodes.iter().take(LISTED) {
        let _ = writeln!(
            output,
            "  {count:>9} {:>12.3} {:>12.3} {:>12.3} {:>12.3}  {}",
            micros(*all),
            micros(*all) / *count as f64,
            micros(*longest),
            micros(*waited),
            timeline.name(*label)
        );
    }
    if nodes.len() > LISTED {
        let rest: u64 = nodes[LISTED..].iter().map(|node| node.2).sum();
        let _ = writeln!(output, "  {:>9} {:>12.3} of {} more nodes", "", micros(rest), nodes.len() - LISTED);
    }
    Ok(())
}

//! A trace as lines to read: what each program's runs took, what its threads did with their time, why its median and
//! its slowest run took as long as they did, and its nodes.
#![forbid(unsafe_code)]

use super::analysis::{MOST_OFF, RunAnalysis, analyses};
use super::output::TraceOutput;
use super::run_graph::PathPart;
use super::sums::{ProgramSums, programs};
use super::timeline::Timeline;
use crate::base::Result;
use std::fmt::Write as _;

/// Nodes of a program that are listed.
const LISTED: usize = 30;

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
    let analyses = analyses(timeline)?;
    for sums in &programs(timeline)? {
        write_program(timeline, sums, output);
        for analysis in analyses.iter().filter(|analysis| analysis.run.program == sums.program) {
            write_analysis(timeline, analysis, output);
        }
        if output.has_failed() {
            break;
        }
    }
    Ok(())
}

fn write_program(timeline: &Timeline, sums: &ProgramSums, output: &mut TraceOutput<'_>) {
    let name = timeline.table(sums.program).map_or("?", |table| table.shown_name());
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
    for (what, ns) in shares.parts() {
        let _ = writeln!(output, "  {ns:>15} ns {:>6.2} %  {what}", percent(ns, all));
    }
    let _ = writeln!(
        output,
        "  {:>9} {:>12} {:>12} {:>12} {:>12}  node",
        "count", "all us", "mean us", "longest us", "waited us"
    );
    for node in sums.nodes.iter().take(LISTED) {
        let _ = writeln!(
            output,
            "  {:>9} {:>12.3} {:>12.3} {:>12.3} {:>12.3}  {}",
            node.count,
            micros(node.all),
            micros(node.all) / node.count as f64,
            micros(node.longest),
            micros(node.waited),
            timeline.name(node.label)
        );
    }
    for piece in sums.on_devices.iter().take(LISTED) {
        let _ = writeln!(
            output,
            "  {:>9} {:>12.3} {:>12.3} {:>12.3} {:>12}  {}",
            piece.count,
            micros(piece.all),
            micros(piece.all) / piece.count as f64,
            micros(piece.longest),
            "on a device",
            timeline.name(piece.label)
        );
    }
    if let Some(rest) = sums.nodes.get(LISTED..).filter(|rest| !rest.is_empty()) {
        let ns = rest.iter().map(|node| node.all).sum();
        let _ = writeln!(output, "  {:>9} {:>12.3} of {} more nodes", "", micros(ns), rest.len());
    }
}

/// Why a run took as long as it did.
fn write_analysis(timeline: &Timeline, analysis: &RunAnalysis, output: &mut TraceOutput<'_>) {
    let (wall, work) = (analysis.wall_ns(), analysis.shares.body);
    let which = if analysis.is_slowest { "slowest" } else { "median" };
    let _ = writeln!(
        output,
        "  the {which} run: {:.3} us with {} threads, {:.3} us of work in {} nodes",
        micros(wall),
        analysis.threads,
        micros(work),
        analysis.nodes
    );
    let _ = writeln!(output, "    the path of the run, from its last end back by what came last:");
    for part in PathPart::ALL {
        let ns = analysis.on_path(part);
        if ns > 0 {
            let _ = writeln!(output, "    {ns:>13} ns {:>6.2} %  {}", percent(ns, wall), part.text());
        }
    }
    let Some(((longest, spans), replay)) = analysis.longest.as_ref().zip(analysis.replay_ns) else {
        let _ = writeln!(output, "    the edges of the graph are not known, or too many: no longest path, no savings");
        return;
    };
    let _ = writeln!(
        output,
        "    the longest path of the graph: {:.3} us in {} nodes, {:.2} % of the run",
        micros(*longest),
        spans.len(),
        percent(*longest, wall)
    );
    let _ = writeln!(
        output,
        "    replayed with nothing changed: {:.3} us, {:.1} % off",
        micros(replay),
        analysis.replay_error().unwrap_or(0) as f64 / 10.0
    );
    if !analysis.is_replay_close() {
        let _ = writeln!(output, "    that is more than {} %: no savings are told", MOST_OFF / 10);
        return;
    }
    for saving in analysis.savings.iter().filter(|saving| saving.saves_ns > 0) {
        let _ = writeln!(
            output,
            "    {:>12.3} us would be saved if it took none of its {:.3} us: {}",
            micros(saving.saves_ns),
            micros(saving.body_ns),
            timeline.name(saving.label)
        );
    }
}

//! The report of a program (what compile did, and the costs known by now), as text and as JSON.
#![forbid(unsafe_code)]

mod lists;

use super::Subject;
use crate::abi::weir_report_format_value as F;
use crate::base::text::json_string;
use crate::base::tune::Variant;
use crate::graph::carry::compiled::Compiled;
use crate::graph::carry::counters::Counters;
use crate::graph::carry::device::replays::RunCounts;
use crate::graph::carry::state::MOST_SORTED;
use crate::graph::plan::{Body, DIRECT, Edge, Loop, NO_OVERLAP, Plan};
use crate::memory::View;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Text formats of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportFormat {
    Text,
    Json,
}

impl ReportFormat {
    pub fn from_value(value: u32) -> Option<ReportFormat> {
        [(F::WEIR_REPORT_TEXT, ReportFormat::Text), (F::WEIR_REPORT_JSON, ReportFormat::Json)]
            .into_iter()
            .find(|(number, _)| *number as u32 == value)
            .map(|(_, format)| format)
    }
}

enum Fact {
    Count(usize),
    Ns(u64),
    PerItem(f64),
    Word(&'static str),
    /// None is nothing to tell.
    Text(Option<String>),
    /// None is not known.
    Time(Option<u64>),
}

/// A group's key, and its facts: key, words, value. The keys are those of the JSON.
type Group = (&'static str, Vec<(&'static str, &'static str, Fact)>);

fn facts(subject: &Subject<'_>) -> Vec<Group> {
    use Fact::*;
    let (Compiled { plan, learned, .. }, done) = (subject.compiled, subject.facts);
    let placed = &done.placement;
    let of_runs = |counter: fn(&RunCounts) -> &AtomicU64| {
        Count(placed.runs.as_ref().map_or(0, |runs| counter(runs).load(Relaxed) as usize))
    };
    let mut names = vec![plan.engines[0].label()];
    for node in 0..plan.len() as u32 {
        let engine = plan.engine_of(node);
        if !names.contains(&engine) {
            names.push(engine);
        }
    }
    let refusal = placed.runs.as_ref().and_then(|runs| runs.refusal.get().cloned());
    let way = placed.runs.as_ref().map_or("no other engine does any of them", |runs| runs.pick.verdict().text());
    let times = placed.runs.as_ref().map_or([None; 4], |runs| runs.pick.times());
    let (alone_ns, shared_ns, run_way) = learned.ways.told();
    let nodes = plan.len();
    // Of copies, only the first counts.
    let of_first = |count: &dyn Fn(Body) -> bool| {
        (0..nodes).filter(|&node| count(plan.bodies[node]) && plan.origin(node as u32) == node as u32).count()
    };
    let selects = of_first(&|body| matches!(body, Body::Select(_)));
    let conds = of_first(&|body| matches!(body, Body::Select(i) if plan.selects[i as usize].is_cond));
    let early = of_first(&|body| matches!(body, Body::Select(i) if plan.selects[i as usize].is_early));
    let bytes = plan.bytes() + learned.bytes();
    // The memory of the edges, as far as it can be told apart from that of nodes.
    let edge_bytes = plan.edges.len() * size_of::<Edge>();
    let per = |bytes: usize, items: usize| PerItem(if items == 0 { 0.0 } else { bytes as f64 / items as f64 });
    let state = state_bytes(plan);
    let (total, longest) = (learned.all_ns.load(Relaxed), learned.longest_ns.load(Relaxed));
    let gain = learned.saved_by(u64::MAX);
    let helpers = match plan.hop_ns {
        _ if gain == 0 => "no",
        Some(hop) if gain <= hop => "no",
        Some(_) => "yes",
        None => "if a thread costs less than the gain",
    };
    vec![
        (
            "nodes",
            vec![
                ("graph", "in the graph, and in those inside of it", Count(done.graph_nodes)),
                ("program", "in the program", Count(nodes)),
                ("dead", "left out: nothing depends on them", Count(done.dead_nodes)),
                ("folded", "computed by compile", Count(done.folded)),
                (
                    "fused",
                    "done at the end of others",
                    Count(done.fusions.iter().filter(|fusion| fusion.why_not.is_none()).count()),
                ),
                ("copies", "added to copy a value into an output", Count(done.copies)),
                ("slots", "in further slots of loops whose iterations overlap", Count(done.copied)),
            ],
        ),
        (
            "engines",
            vec![
                ("names", "the program's engines, the host's first", Text(Some(names.join(", ")))),
                ("nodes", "done by engines other than the host's", Count(placed.nodes as usize)),
                ("uploads", "copies to them", Count(placed.uploads as usize)),
                ("fetches", "copies from them", Count(placed.fetches as usize)),
                ("peer_copies", "copies from one straight to another", Count(placed.peer_copies as usize)),
                ("deliveries", "copies into outputs on them", Count(placed.deliveries as usize)),
                ("outputs_in_place", "outputs on them that are written in place", Count(placed.in_place as usize)),
                ("streams", "streams for the work", Count(placed.streams as usize)),
                ("records", "events that work records for other streams", Count(placed.records as usize)),
                ("waits", "waits of streams for work and copies", Count(placed.waits as usize)),
                (
                    "segments",
                    "segments of their work, submitted as one from the second run on",
                    Count(placed.segments as usize),
                ),
                ("segment_nodes", "nodes in these", Count(placed.segment_nodes as usize)),
                ("segment_copies", "copies to them in these", Count(placed.segment_copies as usize)),
                (
                    "segment_edges",
                    "edges in these, without those that others imply",
                    Count(placed.segment_edges as usize),
                ),
                ("segments_why", "segments", Word(placed.why.text())),
                ("regions_offered", "regions offered to devices", Count(placed.regions_offered as usize)),
                ("regions", "kernels that devices made of regions", Count(placed.regions as usize)),
                ("region_nodes", "nodes in these", Count(placed.region_nodes as usize)),
                ("regions_why", "regions", Word(placed.regions_why.text())),
                ("declined", "why a region was declined", Text(placed.declined.clone())),
                ("way", "runs go by", Word(way)),
                ("streams_ns", "ns of a run on streams, for the device", Time(times[0])),
                ("recording_ns", "ns of a run by recordings, for the device", Time(times[1])),
                ("streams_thread_ns", "ns of these on streams, for the calling threads", Time(times[2])),
                ("recording_thread_ns", "ns of these by recordings, for the calling threads", Time(times[3])),
                ("recordings", "recordings made of segments", of_runs(|runs| &runs.recordings)),
                ("updated_steps", "of their states given other addresses", of_runs(|runs| &runs.updates)),
                ("replayed_runs", "runs that submitted segments as one", of_runs(|runs| &runs.replayed)),
                ("issued_runs", "runs that issued their nodes one by one", of_runs(|runs| &runs.issued)),
                (
                    "inner_nodes",
                    "nodes inside of branches and loops that are an engine's",
                    Count(placed.inner_nodes as usize),
                ),
                ("device_loops", "loops that devices decide in", Count(placed.device_loops as usize)),
                ("device_branches", "branches that devices decide in", Count(placed.device_branches as usize)),
                ("direct_why", "runs on a stream go to it as kernels do", Word(placed.direct.text())),
                ("direct_runs", "such runs", of_runs(|runs| &runs.direct)),
                ("refusal", "why a recording was refused", Text(refusal)),
                (
                    "device_arena_bytes",
                    "bytes of their memory, for each run at once",
                    Count(placed.arena_bytes as usize),
                ),
                ("value_bytes", "bytes, if no two values shared a place", Count(placed.value_bytes as usize)),
            ],
        ),
        (
            "control_flow",
            vec![
                ("conds", "conds", Count(conds)),
                ("cases", "cases", Count(selects - conds)),
                ("early", "of both, with branches that begin before all inputs are there", Count(early)),
                ("loops", "loops", Count(of_first(&|body| matches!(body, Body::Enter(_))))),
                (
                    "overlapping",
                    "of them with several iterations at once",
                    Count(overlaps(plan).filter(|looped| looped.overlap != NO_OVERLAP).count()),
                ),
                ("held_back", "of them with fewer at once than they may have", Count(done.held_back)),
                ("unrolled", "loops that are written out", Count(done.unrolled)),
                ("switches", "switches", Count(of_first(&|body| matches!(body, Body::Switch(_))))),
                ("merges", "merges", Count(of_first(&|body| matches!(body, Body::Merge(_))))),
            ],
        ),
        (
            "edges",
            vec![
                ("all", "in the program", Count(plan.edges.len())),
                ("direct", "without a counter", Count(plan.edges.iter().filter(|e| e.counter == DIRECT).count())),
                ("parallel", "between the same two nodes, made one", Count(done.parallel_edges)),
                ("implied", "left out: others imply them", Count(done.implied_edges)),
                ("joins", "joins, nodes with a counter", Count(plan.first_leaf as usize)),
                ("wide_joins", "of them with counters in two levels", Count(done.wide_joins)),
            ],
        ),
        (
            "memory",
            vec![
                ("arena_bytes", "bytes for the values of a run", Count(plan.arena_bytes)),
                ("arena_bytes_unshared", "if each value had its own", Count(done.arena_bytes_unshared)),
                ("forwarded", "values written over an input", Count(done.forwarded)),
                ("in_place", "variables of loops written over themselves", Count(done.in_place)),
                ("program_bytes", "bytes of the program", Count(bytes)),
                ("program_bytes_per_node", "per node, without edges", per(bytes - edge_bytes.min(bytes), nodes)),
                ("program_bytes_per_edge", "per edge", per(edge_bytes, plan.edges.len())),
                ("step_bytes", "bytes of a run beside its values", Count(state)),
                ("step_bytes_per_node", "per node, beside its arguments", per(state - view_bytes(plan), nodes)),
            ],
        ),
        (
            "schedule",
            vec![
                ("total_ns", "ns of work, estimated or measured", Ns(total)),
                ("longest_ns", "ns on the longest path", Ns(longest)),
                ("gain_ns", "ns that other threads can save at most", Ns(gain)),
                ("helpers", "helpers", Word(helpers)),
                ("alone_ns", "ns of a run in one thread", Time(alone_ns)),
                ("shared_ns", "ns of a run that helpers share", Time(shared_ns)),
                (
                    "run_way",
                    "runs that helpers may share",
                    Word(match run_way {
                        None => "not known yet",
                        Some(Variant::Baseline) => "one thread, sharing is not faster",
                        Some(Variant::Candidate) => "shared, that is faster",
                    }),
                ),
            ],
        ),
    ]
}

fn view_bytes(plan: &Plan) -> usize {
    plan.args.len() * size_of::<View>()
}

/// The memory of a state that grows with the program: arguments, counters, lists, bits.
fn state_bytes(plan: &Plan) -> usize {
    view_bytes(plan)
        + Counters::bytes(plan.counters.len())
        + plan.len() * size_of::<u32>()
        + plan.len() / 8
        + if plan.len() <= MOST_SORTED { 2 * plan.len() * size_of::<u32>() } else { 0 }
        + plan.absence.bits as usize
        + (plan.loops.len() + plan.slots.len()) * size_of::<u64>()
}

/// Loops that may run several iterations at once; of copies the first.
fn overlaps(plan: &Plan) -> impl Iterator<Item = &Loop> {
    plan.loops.iter().filter(|looped| looped.asked > 1 && plan.origin(looped.first) == looped.first)
}

fn text(subject: &Subject<'_>) -> String {
    let plan = &subject.compiled.plan;
    let mut text = format!("program '{}'\n", plan.name);
    for (group, facts) in facts(subject) {
        let _ = writeln!(text, "{}", group.replace('_', " "));
        for (_, words, fact) in facts {
            let value = match fact {
                Fact::Count(n) => n.to_string(),
                Fact::Ns(n) => n.to_string(),
                Fact::PerItem(x) => format!("{x:.1}"),
                Fact::Word(word) => {
                    let _ = writeln!(text, "  {words}: {word}");
                    continue;
                }
                Fact::Time(Some(ns)) => ns.to_string(),
                Fact::Time(None) => continue,
                Fact::Text(told) => {
                    if let Some(told) = told {
                        let _ = writeln!(text, "  {words}: {told}");
                    }
                    continue;
                }
            };
            let _ = writeln!(text, "{value:>14} {words}");
        }
    }
    for looped in overlaps(plan) {
        let (name, why) = (plan.name_of(looped.first), looped.why.text());
        let Loop { parallel_iterations, asked, .. } = looped;
        let _ = writeln!(text, "loop '{name}': {parallel_iterations} of at most {asked} iterations at once, {why}");
    }
    text
}

fn json(subject: &Subject<'_>) -> String {
    let plan = &subject.compiled.plan;
    let mut text = format!("{{\"name\":{}", json_string(&plan.name));
    for (group, facts) in facts(subject) {
        let _ = write!(text, ",\n\"{group}\":{{");
        for (i, (key, _, fact)) in facts.iter().enumerate() {
            let value = match fact {
                Fact::Count(n) => n.to_string(),
                Fact::Ns(n) => n.to_string(),
                Fact::PerItem(x) => format!("{x:.1}"),
                Fact::Word(word) => json_string(word),
                Fact::Time(ns) => ns.map_or_else(|| "null".to_owned(), |ns| ns.to_string()),
                Fact::Text(told) => told.as_ref().map_or_else(|| "null".to_owned(), |told| json_string(told)),
            };
            let _ = write!(text, "{}\"{key}\":{value}", if i > 0 { "," } else { "" });
        }
        text.push('}');
    }
    text.push_str(",\n\"overlaps\":[");
    for (i, looped) in overlaps(plan).enumerate() {
        let name = json_string(plan.name_of(looped.first));
        let (comma, why) = (if i > 0 { "," } else { "" }, json_string(looped.why.text()));
        let Loop { parallel_iterations, asked, .. } = looped;
        let _ = write!(
            text,
            "{comma}\n{{\"loop\":{name},\"at_once\":{parallel_iterations},\"asked\":{asked},\"why\":{why}}}"
        );
    }
    text + "]"
}

/// Reports what compile did, what the costs that are known by now mean, and what the program keeps for partial runs.
pub(in crate::graph) fn report(subject: &Subject<'_>, format: ReportFormat) -> String {
    match format {
        ReportFormat::Text => text(subject) + &lists::text(subject),
        ReportFormat::Json => json(subject) + &lists::json(subject) + "}\n",
    }
}

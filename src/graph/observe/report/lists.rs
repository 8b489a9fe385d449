//! The lists of a report: the parts of the program that are compiled, and the statistics of its nodes.

use crate::base::text::json_string;
use crate::graph::carry::figures::NodeStats;
use crate::graph::compile::fuse::Fusion;
use crate::graph::compile::place::choose::EngineChoice;
use crate::graph::observe::Subject;
use std::fmt::Write as _;

/// Lines for the end of the text. Writing to a String cannot fail.
pub(in crate::graph) fn text(subject: &Subject<'_>) -> String {
    let mut text = String::new();
    for (i, EngineChoice { node, engine, why }) in subject.facts.choices.iter().enumerate() {
        if i == 0 {
            text += "engines of nodes that were open\n";
        }
        let _ = writeln!(text, "  '{node}' on {engine}: {why}");
    }
    for (i, Fusion { node, into, why_not }) in subject.facts.fusions.iter().enumerate() {
        if i == 0 {
            text += "nodes that others could end with\n";
        }
        let _ = match why_not {
            None => writeln!(text, "  '{into}' ends with '{node}'"),
            Some(why) => writeln!(text, "  '{into}' does not end with '{node}': {why}"),
        };
    }
    for (i, decided) in subject.facts.placement.decided.iter().enumerate() {
        if i == 0 {
            text += "branches and loops with work on other engines\n";
        }
        let _ = writeln!(text, "  '{}' {}", decided.node, decided.text());
    }
    let parts = subject.parts.as_deref().unwrap_or_default();
    if !parts.is_empty() {
        text += "partial runs\n";
    }
    for part in parts {
        let _ = writeln!(text, "{:>14} nodes for outputs {:?}", part.nodes, part.outputs);
    }
    for (i, node) in nodes(subject).enumerate() {
        if i == 0 {
            text += "nodes that were run: times, ns, shortest, longest, ready before they began\n";
        }
        let NodeStats { name, count, total_ns, min_ns, max_ns, waited_ns } = node;
        let _ = writeln!(text, "{count:>14} {total_ns} {min_ns} {max_ns} {waited_ns} '{name}'");
    }
    text
}

/// The nodes that have statistics, in the program's order; none for a program without.
fn nodes<'a>(subject: &Subject<'a>) -> impl Iterator<Item = NodeStats> + 'a {
    subject.compiled.node_stats().filter(|node| node.count > 0)
}

/// Members for the end of the object.
pub(in crate::graph) fn json(subject: &Subject<'_>) -> String {
    choices(subject) + &fusions(subject) + &control(subject) + &parts(subject) + &figures(subject)
}

/// Empty for a program in which no engine was open.
fn choices(subject: &Subject<'_>) -> String {
    let mut text = String::new();
    for (i, EngineChoice { node, engine, why }) in subject.facts.choices.iter().enumerate() {
        let (node, engine, why) = (json_string(node), json_string(engine), json_string(why));
        let before = if i > 0 { "," } else { ",\n\"placement\":[" };
        let _ = write!(text, "{before}\n{{\"node\":{node},\"engine\":{engine},\"why\":{why}}}");
    }
    if text.is_empty() { text } else { text + "]" }
}

/// Empty for a program without nodes that others could end with.
fn fusions(subject: &Subject<'_>) -> String {
    let mut text = String::new();
    for (i, Fusion { node, into, why_not }) in subject.facts.fusions.iter().enumerate() {
        let (node, into) = (json_string(node), json_string(into));
        let why = why_not.as_ref().map_or_else(|| "null".to_owned(), |why| json_string(why));
        let before = if i > 0 { "," } else { ",\n\"fusion\":[" };
        let _ = write!(text, "{before}\n{{\"node\":{node},\"into\":{into},\"why_not\":{why}}}");
    }
    if text.is_empty() { text } else { text + "]" }
}

/// Empty for a program without branches and loops with work on other engines.
fn control(subject: &Subject<'_>) -> String {
    let mut text = String::new();
    for (i, decided) in subject.facts.placement.decided.iter().enumerate() {
        let (node, how) = (json_string(&decided.node), json_string(&decided.text()));
        let before = if i > 0 { "," } else { ",\n\"device_control\":[" };
        let _ = write!(text, "{before}\n{{\"node\":{node},\"how\":{how}}}");
    }
    if text.is_empty() { text } else { text + "]" }
}

fn figures(subject: &Subject<'_>) -> String {
    if subject.compiled.figures.is_none() {
        return String::new();
    }
    let mut text = ",\n\"node_statistics\":[".to_owned();
    for (i, node) in nodes(subject).enumerate() {
        let NodeStats { name, count, total_ns, min_ns, max_ns, waited_ns } = node;
        let comma = if i > 0 { "," } else { "" };
        let name = json_string(&name);
        let _ = write!(
            text,
            "{comma}\n{{\"name\":{name},\"count\":{count},\"total_ns\":{total_ns},\"min_ns\":{min_ns},\
             \"max_ns\":{max_ns},\"waited_ns\":{waited_ns}}}"
        );
    }
    text + "]"
}

/// Empty for a program without partial runs.
fn parts(subject: &Subject<'_>) -> String {
    let mut text = String::new();
    let Some(parts) = &subject.parts else { return text };
    text += ",\n\"partial_runs\":[";
    for (i, part) in parts.iter().enumerate() {
        let outputs: Vec<String> = part.outputs.iter().map(usize::to_string).collect();
        let _ = write!(
            text,
            "{}{{\"outputs\":[{}],\"nodes\":{},\"arena_bytes\":{}}}",
            if i > 0 { "," } else { "" },
            outputs.join(","),
            part.nodes,
            part.arena_bytes
        );
    }
    text.push(']');
    text
}

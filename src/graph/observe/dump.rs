//! Drawings of graphs and programs: Graphviz DOT, and JSON.
#![forbid(unsafe_code)]

use crate::abi::weir_dump_format_value as F;
use crate::base::text::json_string;
use crate::graph::build::contents::{Contents, LoopOp, NodeBody};
use crate::graph::carry::compiled::Compiled;
use crate::graph::plan::{Arg, Body, DIRECT, Place};
use std::fmt::Write as _;
use std::sync::atomic::Ordering::Relaxed;

/// Text formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DumpFormat {
    Dot,
    Json,
}

impl DumpFormat {
    pub fn from_value(value: u32) -> Option<DumpFormat> {
        [(F::WEIR_DUMP_DOT, DumpFormat::Dot), (F::WEIR_DUMP_JSON, DumpFormat::Json)]
            .into_iter()
            .find(|(number, _)| *number as u32 == value)
            .map(|(_, format)| format)
    }
}

/// The fields of a node that both formats show.
struct DrawnNode {
    name: String,
    kind: String,
    /// The engine that runs the node, for a node of a program.
    engine: Option<String>,
    /// "key": value pairs beyond name and kind, values as JSON.
    facts: Vec<(&'static str, String)>,
    /// Indices of the item's predecessors, by data (true) or by control (false).
    before: Vec<(usize, bool)>,
}

/// Draws a graph under construction.
pub(in crate::graph) fn graph(graph: &Contents, format: DumpFormat) -> String {
    let mut items: Vec<DrawnNode> = graph
        .nodes
        .iter()
        .map(|node| DrawnNode {
            name: node.name.to_string(),
            kind: node.kind().to_owned(),
            engine: None,
            facts: match &node.body {
                NodeBody::Input(desc) => vec![("desc", json_string(&desc.text()))],
                NodeBody::Constant(tensor) => vec![("desc", json_string(&tensor.desc().text()))],
                NodeBody::Task { cost_ns, .. } => vec![("cost_ns", cost_ns.to_string())],
                NodeBody::Cyclic { op: LoopOp::Enter { frame, is_constant, parallel_iterations }, .. } => vec![
                    ("frame", json_string(frame)),
                    ("is_constant", is_constant.to_string()),
                    ("parallel_iterations", parallel_iterations.to_string()),
                ],
                _ => vec![],
            },
            before: node
                .inputs()
                .iter()
                .map(|&(producer, _)| (producer, true))
                .chain(node.after.iter().map(|&before| (before, false)))
                .collect(),
        })
        .collect();
    for (name, (node, _)) in &graph.outputs {
        let before = vec![(*node, true)];
        items.push(DrawnNode { name: name.clone(), kind: "output".to_owned(), engine: None, facts: vec![], before });
    }
    render(&graph.name, &items, format)
}

/// Draws a program: its nodes in schedule order, with costs, and the arrivals that are counted.
pub(in crate::graph) fn program(compiled: &Compiled, format: DumpFormat) -> String {
    let plan = &compiled.plan;
    let n = plan.len();
    let mut items: Vec<DrawnNode> = (0..n).map(|index| item(compiled, index)).collect();
    for index in 0..n {
        for edge in plan.edges(index) {
            items[edge.target as usize].before.push((index, true));
        }
    }
    for index in 0..n {
        for guard in plan.guards(index) {
            items[guard.target as usize].before.push((index, false));
        }
    }
    for item in &mut items {
        let counted = item.before.len() > 1;
        item.facts.push(("counted", counted.to_string()));
    }
    let counters = plan.counters.len() + plan.merge_edges.len();
    debug_assert!(plan.edges.iter().all(|edge| edge.counter == DIRECT || (edge.counter as usize) < counters));
    render(&plan.name, &items, format)
}

fn item(compiled: &Compiled, index: usize) -> DrawnNode {
    let plan = &compiled.plan;
    let mut facts = Vec::new();
    let kind = match plan.bodies[index] {
        body @ (Body::Kernel(number) | Body::Async(number) | Body::Dynamic(number)) => {
            let number = match body {
                Body::Async(call) => plan.calls[call as usize].0,
                Body::Dynamic(index) => plan.dynamics.nodes[index as usize].kernel,
                _ => number,
            };
            let node = &plan.kernels[number as usize];
            let views: Vec<u32> = plan.views(number).collect();
            let args: Vec<Arg> = views.iter().map(|&view| plan.args[view as usize]).collect();
            let (inputs, outputs) = args.split_at(usize::from(node.num_inputs));
            let descs: Vec<_> =
                outputs.iter().map(|arg| json_string(&plan.descs[arg.desc as usize].0.text())).collect();
            facts.push(("outputs", format!("[{}]", descs.join(","))));
            facts.push(("reads", places(inputs)));
            facts.push(("writes", places(outputs)));
            plan.kernel(number).name().to_owned()
        }
        Body::Call(..) | Body::Task(_) => "task".to_owned(),
        Body::Select(_) => "select".to_owned(),
        Body::End => "end".to_owned(),
        Body::Enter(number) => {
            let looped = &plan.loops[number as usize];
            facts.push(("parallel_iterations", looped.parallel_iterations.to_string()));
            "enter".to_owned()
        }
        Body::Test(_) => "test".to_owned(),
        Body::Next(_) => "next".to_owned(),
        Body::Guard(_) => "guard".to_owned(),
        Body::Retire(_) => "retire".to_owned(),
        Body::Move(_) => "move".to_owned(),
        Body::Switch(_) => "switch".to_owned(),
        Body::Merge(_) => "merge".to_owned(),
    };
    facts.push(("cost_ns", compiled.learned.costs[index].load(Relaxed).to_string()));
    let engine = plan.is_step(index as u32).then(|| plan.engine_of(index as u32));
    DrawnNode { name: plan.name_of(index as u32).to_owned(), kind, engine, facts, before: Vec::new() }
}

fn places(args: &[Arg]) -> String {
    let texts: Vec<_> = args
        .iter()
        .map(|arg| {
            json_string(&match arg.place {
                Place::Arena(offset) => format!("arena+{offset}"),
                Place::Constant(i) => format!("constant {i}"),
                Place::Input(i) => format!("input {i}"),
                Place::Output(i) => format!("output {i}"),
                Place::Slot(i) => format!("slot {i}"),
            })
        })
        .collect();
    format!("[{}]", texts.join(","))
}

fn render(name: &str, items: &[DrawnNode], format: DumpFormat) -> String {
    match format {
        DumpFormat::Dot => dot(name, items),
        DumpFormat::Json => json(name, items),
    }
}

fn dot(name: &str, items: &[DrawnNode]) -> String {
    let mut text = format!("digraph {} {{\n  node [shape=box];\n", dot_string(name));
    for (index, item) in items.iter().enumerate() {
        let on = item.engine.as_ref().map_or(String::new(), |engine| format!("\non {engine}"));
        let label = format!("{}\n{}{on}", item.name, item.kind);
        let _ = writeln!(text, "  n{index} [label={}];", dot_string(&label));
    }
    for (index, item) in items.iter().enumerate() {
        for (before, data) in &item.before {
            let style = if *data { "" } else { " [style=dashed]" };
            let _ = writeln!(text, "  n{before} -> n{index}{style};");
        }
    }
    text + "}\n"
}

fn json(name: &str, items: &[DrawnNode]) -> String {
    let mut text = format!("{{\"name\":{},\"nodes\":[", json_string(name));
    for (index, item) in items.iter().enumerate() {
        let comma = if index > 0 { "," } else { "" };
        let _ = write!(text, "{comma}\n{{\"name\":{},\"kind\":{}", json_string(&item.name), json_string(&item.kind));
        if let Some(engine) = &item.engine {
            let _ = write!(text, ",\"engine\":{}", json_string(engine));
        }
        for (key, value) in &item.facts {
            let _ = write!(text, ",\"{key}\":{value}");
        }
        let after = |data: bool| {
            let all: Vec<_> = item.before.iter().filter(|b| b.1 == data).map(|b| b.0.to_string()).collect();
            all.join(",")
        };
        let _ = write!(text, ",\"after\":[{}],\"after_control\":[{}]}}", after(true), after(false));
    }
    text + "\n]}\n"
}

/// A quoted DOT string.
fn dot_string(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped() {
        assert_eq!(dot_string("a\"b\n"), r#""a\"b\n""#);
    }
}

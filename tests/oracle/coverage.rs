//! Whether the generator draws what it is meant to draw: what never comes up is not tested, however many the graphs.

use super::build::Lowering;
use super::generate::{
    CONFLICTS, DIAMONDS, EVERYTHING, LATER, PLAIN, PLAIN_LATER, Profile, STRUCTURED, STRUCTURED_LATER, generate,
};
use super::generate::{LISTS, LISTS_CONFLICTS, LISTS_LATER, LISTS_STRUCTURED};
use super::interpret::{Outcome, interpret};
use super::needed::needed;
use super::spec::{Graph, Kind, Manner, Node, Spec, Type, Value};
use super::stage::{Stage, Subject};
use std::collections::BTreeMap;
use weir_core::graph::ReportFormat;

/// How often each thing comes up.
type Census = BTreeMap<&'static str, u32>;

fn note(census: &mut Census, what: &'static str, is_there: bool) {
    *census.entry(what).or_default() += u32::from(is_there);
}

fn depth(node: &Node) -> usize {
    let inner = node.graphs().iter().flat_map(|(_, graph)| graph.nodes.iter().map(depth)).max().unwrap_or(0);
    inner + usize::from(!node.graphs().is_empty())
}

fn is_while(node: &Node) -> bool {
    matches!(node.kind, Kind::While { .. })
}

fn is_branch(node: &Node) -> bool {
    matches!(node.kind, Kind::Cond { .. } | Kind::Case { .. })
}

fn holds(node: &Node, test: impl Fn(&Node) -> bool) -> bool {
    node.graphs().iter().any(|(_, graph)| graph.any(&test))
}

/// What is in a graph whatever its inputs.
fn note_shape(census: &mut Census, spec: &Spec) {
    let graph = &spec.graph;
    let any = |test: &dyn Fn(&Node) -> bool| graph.any(test);
    let is_input = |value: &Value| matches!(value, Value::Input(_));
    note(census, "an output that is an input", graph.outputs.iter().any(is_input));
    let twice = |value: &Value| graph.outputs.iter().filter(|other| *other == value).count() > 1;
    note(census, "an output twice", graph.outputs.iter().any(twice));
    note(census, "no inputs", graph.inputs.is_empty());
    note(census, "a leaf that need not run", needed(spec).len() < spec.leaves().len());
    note(census, "an effect", any(&|node| node.is_leaf() && node.outputs.is_empty()));
    note(census, "a control edge to a region", any(&|node| !node.graphs().is_empty() && !node.after.is_empty()));
    note(census, "a region in a region in a region", graph.nodes.iter().any(|node| depth(node) >= 3));
    note(census, "a branch in a loop", any(&|node| is_while(node) && holds(node, is_branch)));
    note(census, "a loop in a branch", any(&|node| is_branch(node) && holds(node, is_while)));
    note(census, "a loop in a loop", any(&|node| is_while(node) && holds(node, is_while)));
    let diamond = |node: &Node| matches!(node.kind, Kind::Merge);
    note(census, "a diamond in a loop", any(&|node| is_while(node) && holds(node, diamond)));
    note(census, "a merge of three or more", any(&|node| diamond(node) && node.inputs.len() > 2));
    let invariants = |node: &Node| is_while(node) && node.inputs.len() > node.outputs.len();
    note(census, "an invariant", any(&invariants));
    let passes = |graph: &Graph| graph.outputs.iter().any(is_input);
    note(
        census,
        "an output of a graph inside that is its input",
        any(&|node| node.graphs().iter().any(|(_, graph)| passes(graph))),
    );
    note(
        census,
        "an empty branch",
        any(&|node| is_branch(node) && node.graphs().iter().any(|(_, graph)| graph.nodes.is_empty())),
    );
    note(census, "a region without outputs", any(&|node| !node.graphs().is_empty() && node.outputs.is_empty()));
    let done = |manner: Manner| move |node: &Node| matches!(node.kind, Kind::Leaf { manner: own, .. } if own == manner);
    note(census, "a leaf done at once", any(&done(Manner::AtOnce)));
    note(census, "a leaf done later", any(&done(Manner::Later)));
    note(census, "a leaf done by another", any(&done(Manner::ByAnother)));
    note(census, "a leaf that may block", any(&done(Manner::Blocking)));
    note(census, "a leaf done later in a loop", any(&|node| is_while(node) && holds(node, done(Manner::Later))));
    note(census, "a switch of what a switch gave", switches_again(graph));
    note_lists(census, graph);
}

fn note_lists(census: &mut Census, graph: &Graph) {
    let any = |test: &dyn Fn(&Node) -> bool| graph.any(test);
    let gives = |node: &Node| node.outputs.contains(&Type::List);
    let constant = |node: &Node| matches!(node.kind, Kind::Constant(_));
    let mut takes = false;
    graph.visit(&mut |around, node| {
        let is_list = |value: &Value| around.type_of(*value) == Type::List;
        takes |= node.is_leaf() && !gives(node) && node.inputs.iter().any(is_list);
    });
    note(census, "a list that is an input", graph.inputs.contains(&Type::List));
    note(census, "a list that is an output", graph.outputs.iter().any(|&value| graph.type_of(value) == Type::List));
    note(census, "a list that is constant", any(&|node| constant(node) && gives(node)));
    note(census, "a list that a leaf makes", any(&|node| node.is_leaf() && gives(node)));
    note(
        census,
        "a list that a leaf makes in a loop",
        any(&|node| is_while(node) && holds(node, |inner| inner.is_leaf() && gives(inner))),
    );
    note(census, "a list that only a leaf of known shapes takes", takes);
    note(census, "a list out of a branch", any(&|node| is_branch(node) && gives(node)));
    note(census, "a list that goes round in a loop", any(&|node| is_while(node) && gives(node)));
    note(census, "a switch of lists", any(&|node| matches!(node.kind, Kind::Switch) && gives(node)));
    note(census, "a merge of lists", any(&|node| matches!(node.kind, Kind::Merge) && gives(node)));
    let merges = |node: &Node| matches!(node.kind, Kind::Merge) && gives(node);
    note(census, "a merge of lists in a loop", any(&|node| is_while(node) && holds(node, merges)));
}

fn switches_again(graph: &Graph) -> bool {
    let is_switch = |value: &Value| match *value {
        Value::Node(n, _) => matches!(graph.nodes[n].kind, Kind::Switch),
        Value::Input(_) => false,
    };
    graph.nodes.iter().any(|node| matches!(node.kind, Kind::Switch) && is_switch(&node.inputs[0]))
}

/// What happens in it with one set of inputs.
fn note_course(census: &mut Census, spec: &Spec, outcome: &Outcome) {
    let calls = |node: &Node| outcome.tallies[node.id].calls;
    let outermost = |test: &dyn Fn(&Node) -> bool| spec.graph.nodes.iter().any(test);
    note(census, "a dead leaf", outermost(&|node| node.is_leaf() && calls(node) == 0));
    note(census, "a dead region", outermost(&|node| !node.graphs().is_empty() && calls(node) == 0));
    note(census, "a dead merge", outermost(&|node| matches!(node.kind, Kind::Merge) && calls(node) == 0));
    let waits_for_dead = |node: &Node| {
        matches!(node.kind, Kind::Merge)
            && calls(node) == 1
            && node.after.iter().any(|&n| calls(&spec.graph.nodes[n]) == 0)
    };
    note(census, "a live merge behind a dead node", outermost(&waits_for_dead));
    let killed = |node: &Node| {
        let live_inputs = node.inputs.iter().all(|value| matches!(value, Value::Input(_)));
        node.is_leaf() && live_inputs && calls(node) == 0
    };
    note(census, "a leaf that a control edge kills", outermost(&killed));
    let body = |node: &Node| node.graphs()[1].1.nodes.first().map(|first| outcome.tallies[first.id].calls);
    note(census, "no round", outermost(&|node| is_while(node) && calls(node) == 1 && body(node) == Some(0)));
    note(census, "ten rounds", outermost(&|node| is_while(node) && body(node).is_some_and(|calls| calls >= 10)));
    note(census, "an absent output", outcome.outputs.iter().any(Option::is_none));
    note(census, "a conflict", !outcome.conflicts.is_empty());
    let list = |test: &dyn Fn(usize) -> bool| {
        let lists = outcome.outputs.iter().flatten().filter(|data| data.kind == Type::List);
        lists.into_iter().any(|data| test(data.items.len()))
    };
    note(census, "an empty list", list(&|len| len == 0));
    note(census, "a long list", list(&|len| len > 30));
}

fn census(profile: Profile) -> Census {
    let mut census = Census::new();
    for seed in 0..600 {
        let spec = generate(seed, profile);
        note_shape(&mut census, &spec);
        for set in 0..spec.inputs.len() {
            let outcome = interpret(&spec, set).expect("it was interpreted before");
            let absent = outcome.outputs.iter().any(Option::is_none);
            assert!(spec.allow_absent || !absent || !outcome.conflicts.is_empty(), "{spec}");
            note_course(&mut census, &spec, &outcome);
        }
    }
    census
}

/// Nothing but what is named here may be missing; what is named here must.
fn check(profile: Profile, missing: &[&str]) {
    let census = census(profile);
    for (what, count) in &census {
        let is_missing = missing.contains(what);
        assert_eq!(*count == 0, is_missing, "{profile:?}: {what} comes up {count} times; {census:?}");
    }
}

const NO_SWITCHES: &[&str] = &[
    "a conflict",
    "a dead leaf",
    "a dead merge",
    "a dead region",
    "a diamond in a loop",
    "a leaf that a control edge kills",
    "a live merge behind a dead node",
    "a merge of three or more",
    "a switch of what a switch gave",
    "an absent output",
];

const NO_REGIONS: &[&str] = &[
    "a branch in a loop",
    "a control edge to a region",
    "a dead region",
    "a diamond in a loop",
    "a loop in a branch",
    "a loop in a loop",
    "a region in a region in a region",
    "a region without outputs",
    "an empty branch",
    "an invariant",
    "an output of a graph inside that is its input",
    "no round",
    "ten rounds",
];

const NO_LATER: &[&str] = &[
    "a leaf done at once",
    "a leaf done by another",
    "a leaf done later",
    "a leaf done later in a loop",
    "a leaf that may block",
];

const NO_LISTS: &[&str] = &[
    "a list out of a branch",
    "a list that a leaf makes",
    "a list that a leaf makes in a loop",
    "a list that goes round in a loop",
    "a list that is an input",
    "a list that is an output",
    "a list that is constant",
    "a list that only a leaf of known shapes takes",
    "a long list",
    "a merge of lists",
    "a merge of lists in a loop",
    "a switch of lists",
    "an empty list",
];

const NO_MERGES_OF_LISTS: &[&str] = &["a merge of lists", "a merge of lists in a loop", "a switch of lists"];

#[test]
fn each_profile_has_everything_that_it_may_have() {
    check(PLAIN, &[NO_SWITCHES, NO_REGIONS, NO_LATER, NO_LISTS].concat());
    check(STRUCTURED, &[NO_SWITCHES, NO_LATER, NO_LISTS].concat());
    check(DIAMONDS, &[NO_REGIONS, NO_LATER, NO_LISTS, &["a conflict"]].concat());
    check(EVERYTHING, &[NO_LATER, NO_LISTS, &["a conflict"]].concat());
    check(CONFLICTS, &[NO_LATER, NO_LISTS].concat());
    check(PLAIN_LATER, &[NO_SWITCHES, NO_REGIONS, NO_LISTS, &["a leaf done later in a loop"]].concat());
    check(STRUCTURED_LATER, &[NO_SWITCHES, NO_LISTS].concat());
    check(LATER, &[NO_LISTS, &["a conflict"]].concat());
    check(LISTS, &[NO_LATER, &["a conflict"]].concat());
    check(LISTS_STRUCTURED, &[NO_SWITCHES, NO_LATER, NO_MERGES_OF_LISTS].concat());
    check(LISTS_CONFLICTS, NO_LATER);
    check(LISTS_LATER, &["a conflict"]);
}

/// Conds that begin before all of their inputs are there come up when compile sees what a branch can do without.
#[test]
fn conds_begin_early() {
    let stage = Stage::new();
    let early = |seed: u64| {
        let spec = generate(seed, STRUCTURED);
        let program = Subject::new(&spec, &stage, Lowering::Regions).unwrap().program;
        let report = program.report(ReportFormat::Json);
        !report.contains("\"early\":0")
    };
    let count = (0..300).filter(|&seed| early(seed)).count();
    assert!(count >= 10, "{count} of 300 graphs have a cond that begins early");
}

//! What a run must have done, and whether it did.

use super::interpret::{Conflict, Outcome, Tally, Useless, interpret};
use super::needed::{decided, needed};
use super::probe::Board;
use super::spec::{Data, Graph, Kind, Node, Spec, Value};
use super::stage::Targets;
use std::collections::BTreeSet;
use weir_core::base::{Error, Result as LibraryResult};

/// What the interpreter says of a spec.
pub struct Expected {
    /// For each set of inputs.
    pub outcomes: Vec<Outcome>,
    /// Id and name of each leaf.
    leaves: Vec<(usize, String)>,
    /// And the names of the nodes that it is in, and its own; none if one of them is a loop.
    paths: Vec<Vec<String>>,
    needed: BTreeSet<usize>,
    /// Names of the nodes whose values may come from elsewhere.
    pub decided: BTreeSet<String>,
    orders: Vec<Order>,
    merges: Vec<String>,
}

/// A control edge: the leaves of one node end before those of another begin. Told only where their graph runs once, and
/// both are live.
struct Order {
    /// The two nodes, by id.
    nodes: (usize, usize),
    before: Vec<(usize, String)>,
    after: Vec<(usize, String)>,
}

impl Expected {
    pub fn of(spec: &Spec) -> Result<Expected, Useless> {
        let outcomes = (0..spec.inputs.len()).map(|set| interpret(spec, set)).collect::<Result<_, _>>()?;
        let mut orders = Vec::new();
        note_orders(&spec.graph, &mut orders);
        let mut merges = Vec::new();
        spec.graph.visit(&mut |_, node| {
            if matches!(node.kind, Kind::Merge) {
                merges.push(node.name());
            }
        });
        let leaves = spec.leaves().iter().map(|leaf| (leaf.id, leaf.name())).collect();
        let mut paths = Vec::new();
        note_paths(&spec.graph, Some(&[]), &mut paths);
        Ok(Expected { outcomes, leaves, paths, needed: needed(spec), decided: decided(spec), orders, merges })
    }

    /// Whether a run with this set may fail by itself.
    pub fn conflicts(&self, set: usize) -> bool {
        !self.outcomes[set].conflicts.is_empty()
    }

    /// How a run with this set ended, when nobody meddled.
    pub fn check_end(&self, set: usize, result: &LibraryResult<()>, outputs: &Targets) -> Result<(), String> {
        let outcome = &self.outcomes[set];
        match (result, outcome.conflicts.as_slice()) {
            (Ok(()), []) => check_values(outcome, outputs),
            (Ok(()), all) if !all.iter().any(|conflict| self.needed.contains(&conflict.id)) => {
                // What made the conflict was left out.
                check_values(outcome, outputs)
            }
            (Ok(()), [first, ..]) => {
                Err(format!("ended well, although {} has live inputs {:?}", first.merge, first.producers))
            }
            (Err(error), []) => Err(format!("failed: {error}")),
            (Err(error), all) => {
                outputs.check_lists_are_left_alone()?;
                self.check_conflict(error.message(), all)
            }
        }
    }

    /// How a run with this set ended that asked for these outputs only.
    pub fn check_part(
        &self,
        set: usize,
        asked: &[usize],
        result: &LibraryResult<()>,
        got: &Targets,
    ) -> Result<(), String> {
        result.as_ref().map_err(|error| format!("failed: {error}"))?;
        let all = &self.outcomes[set].outputs;
        check_each(asked.iter().map(|&output| &all[output]), got)
    }

    /// What comes after a conflict depends on who won, so any merge may be the first to complain; but of those that the
    /// interpreter found, two producers must be named.
    fn check_conflict(&self, text: &str, all: &[Conflict]) -> Result<(), String> {
        // Producers may be merges with conflicts of their own.
        let complains = text.split(": inputs ").next().unwrap_or(text);
        let named = |conflict: &&Conflict| names(complains, &conflict.merge);
        let well = match all.iter().find(named) {
            Some(conflict) => {
                let is_named = |producer: &Option<String>| {
                    let unnamed = |producer: &String| self.decided.contains(producer) || names(text, producer);
                    producer.as_ref().is_none_or(unnamed)
                };
                conflict.producers.iter().filter(|producer| is_named(producer)).count() >= 2
            }
            None => self.merges.iter().any(|merge| names(complains, merge)),
        };
        if well { Ok(()) } else { Err(format!("expected one of {all:?}, got: {text}")) }
    }

    /// The tallies after one run with each of these sets; none of them fails.
    pub fn check_tallies(&self, sets: &[usize], board: &Board) -> Result<(), String> {
        for (id, name) in &self.leaves {
            let (most, got) = (self.most(*id, sets), board.tally(*id));
            let left_out = !self.needed.contains(id) && got == Tally::default();
            if got != most && !left_out {
                return Err(format!("{name}: expected {most:?}, got {got:?}"));
            }
        }
        Ok(())
    }

    /// The tallies of these leaves after one run with this set.
    pub fn check_some_tallies(&self, set: usize, ids: &BTreeSet<usize>, board: &Board) -> Result<(), String> {
        for (id, name) in self.leaves.iter().filter(|(id, _)| ids.contains(id) && self.needed.contains(id)) {
            let (expected, got) = (self.most(*id, &[set]), board.tally(*id));
            if got != expected {
                return Err(format!("{name} does not depend on what failed: expected {expected:?}, got {got:?}"));
            }
        }
        Ok(())
    }

    /// The tallies after runs that may have ended early.
    pub fn check_at_most(&self, sets: &[usize], board: &Board) -> Result<(), String> {
        for (id, name) in &self.leaves {
            let (most, got) = (self.most(*id, sets).calls, board.tally(*id).calls);
            if got > most {
                return Err(format!("{name}: expected at most {most} calls, got {got}"));
            }
        }
        Ok(())
    }

    fn most(&self, id: usize, sets: &[usize]) -> Tally {
        let mut sum = Tally::default();
        for &set in sets {
            let one = self.outcomes[set].tallies[id];
            sum.calls += one.calls;
            sum.sight = sum.sight.wrapping_add(one.sight);
        }
        sum
    }

    /// The control edges, after a single run with this set.
    pub fn check_order(&self, set: usize, board: &Board) -> Result<(), String> {
        let outcome = &self.outcomes[set];
        let once = |id: usize| outcome.turns[id] == 1 && outcome.tallies[id].calls == 1;
        for order in self.orders.iter().filter(|order| once(order.nodes.0) && once(order.nodes.1)) {
            for (before, name) in &order.before {
                let Some((_, ended)) = board.span(*before) else { continue };
                for (after, later) in &order.after {
                    match board.span(*after) {
                        Some((begun, _)) if begun < ended => {
                            return Err(format!("{later} began at {begun}, before {name} ended at {ended}"));
                        }
                        _ => {}
                    }
                }
            }
        }
        Ok(())
    }

    /// The list of nodes that a failed run with this set did not begin: each leaf that should have run is there, or
    /// what it is in, and none that ran. Told of leaves that are in no loop.
    pub fn check_left_out(&self, set: usize, error: &Error, board: &Board) -> Result<(), String> {
        let Some(run) = error.run() else { return Err(format!("says nothing of the run: {error}")) };
        let listed = |name: &String| run.left_out.iter().any(|left_out| left_out.rsplit('/').next() == Some(name));
        let outcome = &self.outcomes[set];
        for ((id, name), path) in self.leaves.iter().zip(&self.paths) {
            if path.is_empty() || !self.needed.contains(id) {
                continue;
            }
            let (ran, live) = (board.tally(*id).calls > 0, outcome.tallies[*id].calls > 0);
            if ran && path.iter().any(listed) {
                return Err(format!("{name} ran, and is listed as not begun: {:?}", run.left_out));
            }
            if live && !ran && !path.iter().any(listed) {
                return Err(format!("{name} did not run, and is not listed: {:?}", run.left_out));
            }
        }
        Ok(())
    }

    /// Whether the graph that a node is in runs once.
    pub fn has_one_turn(&self, set: usize, id: usize) -> bool {
        self.outcomes[set].turns[id] == 1
    }

    /// The leaves that must run with these sets: id, name, and how often together.
    pub fn victims(&self, sets: &[usize]) -> Vec<(usize, String, u64)> {
        let ran = |(id, name): &(usize, String)| {
            let calls = self.most(*id, sets).calls;
            (calls > 0 && self.needed.contains(id)).then(|| (*id, name.clone(), calls))
        };
        self.leaves.iter().filter_map(ran).collect()
    }
}

fn check_values(outcome: &Outcome, outputs: &Targets) -> Result<(), String> {
    check_each(outcome.outputs.iter(), outputs)
}

fn check_each<'a>(all: impl Iterator<Item = &'a Option<Data>>, outputs: &Targets) -> Result<(), String> {
    for (i, (expected, (before, got))) in all.zip(outputs.look()).enumerate() {
        match expected {
            Some(expected) if expected.items != got => {
                return Err(format!("output {i}: expected {:?}, got {got:?}", expected.items));
            }
            None if before != got => return Err(format!("output {i} is absent, but was written: {got:?}")),
            _ => {}
        }
    }
    Ok(())
}

/// Whether a text has this name in it, and not as the beginning of another.
pub fn names(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + name.len()..].chars().next();
        ![before, after].iter().flatten().any(|c| c.is_ascii_alphanumeric())
    })
}

/// The leaves of a node, or those that are in it.
pub fn leaves_in(node: &Node) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    if node.is_leaf() {
        found.push((node.id, node.name()));
    }
    for (_, graph) in node.graphs() {
        graph.nodes.iter().for_each(|inner| found.extend(leaves_in(inner)));
    }
    found
}

/// Of each leaf, in the order of `Spec::leaves`: the names of the nodes that it is in, and its own; none if one of them
/// is a loop.
fn note_paths(graph: &Graph, around: Option<&[String]>, paths: &mut Vec<Vec<String>>) {
    for node in &graph.nodes {
        let path = around.map(|around| [around, &[node.name()]].concat());
        let around = path.as_deref().filter(|_| !matches!(node.kind, Kind::While { .. }));
        node.graphs().iter().for_each(|(_, inner)| note_paths(inner, around, paths));
        if node.is_leaf() {
            paths.push(path.unwrap_or_default());
        }
    }
}

fn note_orders(graph: &Graph, orders: &mut Vec<Order>) {
    for (place, node) in graph.nodes.iter().enumerate() {
        for &before in &node.after {
            for &after in &followers(graph, place) {
                let (before, after) = (&graph.nodes[before], &graph.nodes[after]);
                orders.push(Order { nodes: (before.id, after.id), before: leaves_in(before), after: leaves_in(after) });
            }
        }
        node.graphs().iter().for_each(|(_, inner)| note_orders(inner, orders));
    }
}

/// The node itself; and if it has nothing that takes notes, those that certainly come after it.
fn followers(graph: &Graph, place: usize) -> Vec<usize> {
    let node = &graph.nodes[place];
    let mut found = vec![place];
    if !matches!(node.kind, Kind::Switch | Kind::Merge) {
        return found;
    }
    for (next, follower) in graph.nodes.iter().enumerate() {
        let uses = |value: &Value| matches!(value, Value::Node(n, _) if *n == place);
        let strict = match follower.kind {
            Kind::Leaf { .. } | Kind::Switch => follower.inputs.iter().any(uses),
            // Branches begin when the predicate is there; what needs no other input does not wait for it.
            Kind::Cond { .. } | Kind::Case { .. } => follower.inputs.first().is_some_and(uses),
            // One live input is enough for a merge; the inside of a loop begins with what it has.
            Kind::Merge | Kind::While { .. } | Kind::Constant(_) | Kind::Task => false,
        };
        if strict || follower.after.contains(&place) {
            found.extend(followers(graph, next));
        }
    }
    found
}

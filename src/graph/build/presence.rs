//! Which values can be absent: those behind a switch that no merge brings together again.
//!
//! Each value has the conditions under which it is there: switches by the value that decides them, and the side. A node
//! is run when all of its inputs and all that it waits for are there, so it has the conditions of all. A merge is there
//! when one of its inputs is: two inputs whose conditions differ in one switch alone, and that in the side, are
//! together there under what they have in common. What a merge makes otherwise is a condition of its own.
#![forbid(unsafe_code)]

use super::contents::{Body, Contents, Value};
use crate::base::{Error, Result};
use std::collections::HashMap;

/// The value that decides, and for which side; or a merge that nothing is known about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::graph) enum Condition {
    Switch(Value, bool),
    Merge(usize),
}

type Conditions = Vec<Condition>;

/// Values that can be absent; all others are always there.
#[derive(Debug, Default)]
pub(in crate::graph) struct Presences {
    values: HashMap<Value, Conditions>,
    nodes: HashMap<usize, Conditions>,
}

impl Presences {
    /// Whether the node may not be run.
    pub fn may_be_skipped(&self, node: usize) -> bool {
        self.nodes.contains_key(&node)
    }

    /// Under what a node is run; empty if it always is.
    pub fn of_node(&self, node: usize) -> &[Condition] {
        self.nodes.get(&node).map_or(&[], |conditions| conditions)
    }

    /// Whether a value may not be there.
    pub fn may_be_absent(&self, value: Value) -> bool {
        !self.of(value).is_empty()
    }

    fn of(&self, value: Value) -> &[Condition] {
        self.values.get(&value).or_else(|| self.nodes.get(&value.0)).map_or(&[], |conditions| conditions)
    }

    /// Refuses outputs that can be absent.
    pub fn check_outputs(&self, graph: &Contents, unless: &str) -> Result<()> {
        for (name, value) in &graph.outputs {
            let Some(Condition::Switch((node, _), _) | Condition::Merge(node)) = self.of(*value).first() else {
                continue;
            };
            return Err(Error::invalid(format!(
                "graph '{}' output '{name}': node '{}' can leave it absent, which is refused {unless}: it depends on node '{}'",
                graph.name, graph.nodes[value.0].name, graph.nodes[*node].name
            )));
        }
        Ok(())
    }
}

/// Of a graph that has a switch, or one inside of it that has.
pub(in crate::graph) fn find(graph: &Contents, order: &[u32]) -> Presences {
    let mut found = Presences::default();
    for &index in order {
        let index = index as usize;
        let node = &graph.nodes[index];
        let mut own: Conditions = match &node.body {
            Body::Merge { inputs } => merge(inputs.iter().map(|&value| found.of(value).to_vec()).collect(), index),
            _ => node.inputs().iter().flat_map(|&value| found.of(value)).copied().collect(),
        };
        if !matches!(node.body, Body::Merge { .. }) {
            own.extend(node.after.iter().filter_map(|before| found.nodes.get(before)).flatten());
        }
        own.sort_unstable();
        own.dedup();
        if let Body::Switch { inputs } = &node.body {
            for side in [false, true] {
                let mut conditions = own.clone();
                conditions.push(Condition::Switch(inputs[1], side));
                conditions.sort_unstable();
                conditions.dedup();
                found.values.insert((index, usize::from(side)), conditions);
            }
        }
        if !own.is_empty() {
            found.nodes.insert(index, own);
        }
    }
    found
}

/// Under what conditions one of the alternatives is there.
fn merge(mut alternatives: Vec<Conditions>, node: usize) -> Conditions {
    while let Some((i, j, common)) = pair(&alternatives) {
        alternatives.swap_remove(j);
        alternatives[i] = common;
    }
    match <[Conditions; 1]>::try_from(alternatives) {
        Ok([one]) => one,
        Err(several) if several.iter().any(Vec::is_empty) => Vec::new(),
        Err(_) => vec![Condition::Merge(node)],
    }
}

/// Two alternatives that differ in the side of one switch, and what is left of them.
fn pair(alternatives: &[Conditions]) -> Option<(usize, usize, Conditions)> {
    for i in 0..alternatives.len() {
        for j in i + 1..alternatives.len() {
            let (a, b) = (&alternatives[i], &alternatives[j]);
            let differ: Vec<usize> = (0..a.len().min(b.len())).filter(|&k| a[k] != b[k]).collect();
            if let ([k], true) = (&differ[..], a.len() == b.len()) {
                let complementary = matches!((a[*k], b[*k]),
                    (Condition::Switch(p, x), Condition::Switch(q, y)) if p == q && x != y);
                if complementary {
                    let mut common = a.clone();
                    common.remove(*k);
                    return Some((i, j, common));
                }
            }
        }
    }
    None
}

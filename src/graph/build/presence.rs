//! Which values can be absent: those behind a switch that no merge brings together again.
//!
//! Each value has the conditions under which it is present: switches by the value that decides them, and the side. A
//! node runs when all of its inputs and control predecessors are present, so it has the conditions of all of them. A
//! merge is present when one of its inputs is. Two inputs whose conditions differ only in the side of one switch are
//! together present under their common conditions. Any other set of inputs gives the merge a condition of its own.
#![forbid(unsafe_code)]

use super::contents::{Contents, NodeBody, Value};
use crate::base::{Error, Result};
use std::collections::HashMap;

/// The value that decides and the side; or a merge of which nothing is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::graph) enum Condition {
    Switch(Value, bool),
    Merge(usize),
}

type Conditions = Vec<Condition>;

/// Values that can be absent; all others are always present.
#[derive(Debug, Default)]
pub(in crate::graph) struct Presences {
    values: HashMap<Value, Conditions>,
    nodes: HashMap<usize, Conditions>,
}

impl Presences {
    /// Whether the node can be skipped.
    pub fn may_be_skipped(&self, node: usize) -> bool {
        self.nodes.contains_key(&node)
    }

    /// The conditions under which a node runs; empty if it always does.
    pub fn of_node(&self, node: usize) -> &[Condition] {
        self.nodes.get(&node).map_or(&[], |conditions| conditions)
    }

    /// Whether a value can be absent.
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
                "graph '{}' output '{name}': node '{}' can leave it absent, which is refused {unless}: it depends on \
                 node '{}'",
                graph.name, graph.nodes[value.0].name, graph.nodes[*node].name
            )));
        }
        Ok(())
    }
}

/// For a graph that has a switch, itself or nested.
pub(in crate::graph) fn find(graph: &Contents, order: &[u32]) -> Presences {
    let mut found = Presences::default();
    for &index in order {
        let index = index as usize;
        let node = &graph.nodes[index];
        let mut own: Conditions = match &node.body {
            NodeBody::Merge { inputs } => merge(inputs.iter().map(|&value| found.of(value).to_vec()).collect(), index),
            _ => node.inputs().iter().flat_map(|&value| found.of(value)).copied().collect(),
        };
        if !matches!(node.body, NodeBody::Merge { .. }) {
            own.extend(node.after.iter().filter_map(|before| found.nodes.get(before)).flatten());
        }
        own.sort_unstable();
        own.dedup();
        if let NodeBody::Switch { inputs } = &node.body {
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

/// The conditions under which one of the alternatives is present.
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

/// Two alternatives that differ in the side of one switch, and their common conditions.
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

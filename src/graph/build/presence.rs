//! Which values can be absent: those behind a switch that no merge brings together again.
//!
//! Each value has the conditions under which it is present: switches by the value that decides them, and the side. A
//! node runs when all of its inputs and control predecessors are present, so it has the conditions of all of them. A
//! merge is present when one of its inputs is. Two inputs whose conditions differ only in the side of one switch are
//! together present under their common conditions. Any other set of inputs gives the merge a condition of its own.
#![forbid(unsafe_code)]

use super::contents::{Contents, NodeBody, Value};
use crate::base::index::mix;
use crate::base::{Error, Result};
use std::collections::{BTreeMap, HashMap};

/// The value that decides and the side; or a merge of which nothing is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Condition {
    Switch(Value, bool),
    Merge(usize),
}

/// Conditions that hold together. Equal sets have equal numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::graph) struct Conditions(u32);

impl Conditions {
    const NONE: Conditions = Conditions(0);

    pub fn is_empty(self) -> bool {
        self == Conditions::NONE
    }
}

/// A set, as a smaller one and the last condition that is not in it.
#[derive(Debug)]
struct ConditionStep {
    below: Conditions,
    /// Larger than all below.
    last: u32,
    len: u32,
    /// Sums over its conditions: of a number for each, and of one for each switch, whatever the side.
    sum: u64,
    sum_of_switches: u64,
}

/// All sets of a graph. A chain of switches has one step for each.
#[derive(Debug, Default)]
struct ConditionSets {
    /// The two sides of a switch are neighbours: the even number and the one behind it.
    conditions: Vec<Condition>,
    switches: HashMap<Value, u32>,
    /// Those that are not empty, from number 1 on.
    steps: Vec<ConditionStep>,
    known: HashMap<(Conditions, u32), Conditions>,
}

/// Most conditions that are looked at to find out whether a merge's inputs are all leaves of a tree.
const MOST_STEPS_OF_TREE: usize = 1 << 20;

/// Whether a tree with two branches at each fork can have leaves at these depths.
fn may_be_leaves(mut depths: Vec<u32>) -> bool {
    depths.sort_unstable_by(|a, b| b.cmp(a));
    let (mut level, mut open) = (depths.first().copied().unwrap_or(0), 0u64);
    for depth in depths {
        while level > depth {
            if open % 2 == 1 {
                return false;
            }
            (level, open) = (level - 1, open / 2);
        }
        open += 1;
    }
    open.is_power_of_two()
}

fn sums_of(condition: u32) -> (u64, u64) {
    (mix(u64::from(condition), 1), mix(u64::from(condition / 2), 2))
}

impl ConditionSets {
    fn step(&self, set: Conditions) -> Option<&ConditionStep> {
        self.steps.get((set.0 as usize).wrapping_sub(1))
    }

    fn last(&self, set: Conditions) -> Option<u32> {
        self.step(set).map(|step| step.last)
    }

    fn below(&self, set: Conditions) -> Conditions {
        self.step(set).map_or(Conditions::NONE, |step| step.below)
    }

    /// From the last one down.
    fn each(&self, set: Conditions) -> impl Iterator<Item = u32> {
        std::iter::successors(self.step(set), |step| self.step(step.below)).map(|step| step.last)
    }

    /// The sum over its conditions, and the one over its switches with their number.
    fn sums(&self, set: Conditions) -> (u64, (u64, u32)) {
        self.step(set).map_or((0, (0, 0)), |step| (step.sum, (step.sum_of_switches, step.len)))
    }

    fn switch(&mut self, decides: Value, side: bool) -> u32 {
        let next = self.conditions.len() as u32;
        let first = *self.switches.entry(decides).or_insert(next);
        if first == next {
            self.conditions.extend([false, true].map(|side| Condition::Switch(decides, side)));
        }
        first + u32::from(side)
    }

    fn merge(&mut self, node: usize) -> u32 {
        self.conditions.extend([Condition::Merge(node); 2]);
        self.conditions.len() as u32 - 2
    }

    /// A set and a condition behind all that it has.
    fn push(&mut self, below: Conditions, last: u32) -> Conditions {
        if let Some(&known) = self.known.get(&(below, last)) {
            return known;
        }
        let (sum, (sum_of_switches, len)) = self.sums(below);
        let (own, of_switch) = sums_of(last);
        let (sum, sum_of_switches) = (sum.wrapping_add(own), sum_of_switches.wrapping_add(of_switch));
        self.steps.push(ConditionStep { below, last, len: len + 1, sum, sum_of_switches });
        let new = Conditions(self.steps.len() as u32);
        self.known.insert((below, last), new);
        new
    }

    /// All conditions of both. It takes as long as the part that only one of them has.
    fn union(&mut self, mut a: Conditions, mut b: Conditions) -> Conditions {
        let (whole_a, whole_b, mut above) = (a, b, Vec::new());
        while a != b && !a.is_empty() && !b.is_empty() {
            let (of_a, of_b) = (self.last(a), self.last(b));
            above.extend(of_a.max(of_b));
            if of_a >= of_b {
                a = self.below(a);
            }
            if of_b >= of_a {
                b = self.below(b);
            }
        }
        match () {
            // One of them is a part of the other.
            () if a == b && a == whole_a => whole_b,
            () if a == b && b == whole_b => whole_a,
            () => {
                let rest = if a.is_empty() { b } else { a };
                above.into_iter().rev().fold(rest, |set, condition| self.push(set, condition))
            }
        }
    }

    /// The set without a condition that it has, and with another one if there is one.
    fn replace(&mut self, set: Conditions, old: u32, new: Option<u32>) -> Conditions {
        let (mut at, mut above) = (set, Vec::new());
        while let Some(last) = self.last(at) {
            at = self.below(at);
            if last == old {
                break;
            }
            above.push(last);
        }
        let without = above.into_iter().rev().fold(at, |set, condition| self.push(set, condition));
        match new {
            Some(new) => {
                let new = self.push(Conditions::NONE, new);
                self.union(without, new)
            }
            None => without,
        }
    }

    /// The conditions under which one of the alternatives is present.
    fn of_merge(&mut self, inputs: &[Conditions], node: usize) -> Conditions {
        let mut alternatives = Alternatives::default();
        inputs.iter().for_each(|&set| alternatives.add(self, set));
        while let Some(set) = alternatives.to_do.pop() {
            if let Some((condition, other)) = self.complement(&alternatives, set) {
                alternatives.remove(self, set);
                alternatives.remove(self, other);
                let common = self.replace(set, condition, None);
                alternatives.add(self, common);
            }
        }
        let mut left = alternatives.count.iter().filter(|(_, count)| **count > 0);
        match (left.next(), left.next()) {
            (Some((&one, 1)), None) => one,
            _ if alternatives.has(Conditions::NONE) => Conditions::NONE,
            _ => {
                let unknown = |sets: &mut ConditionSets| vec![sets.merge(node)];
                let conditions = self.of_tree(inputs).unwrap_or_else(|| unknown(self));
                conditions.into_iter().fold(Conditions::NONE, |set, condition| self.push(set, condition))
            }
        }
    }

    /// The conditions that sets have in common, all of them leaves of a tree of switches. Its branches may ask the same
    /// in different orders; then a pair that was rolled up across them can be one too few elsewhere.
    fn of_tree(&self, leaves: &[Conditions]) -> Option<Vec<u32>> {
        let len = |set: &Conditions| self.sums(*set).1.1;
        if !may_be_leaves(leaves.iter().map(len).collect()) {
            return None;
        }
        let (mut common, mut steps) = (None, 0);
        let mut to_do = vec![(leaves.to_vec(), 0)];
        while let Some((group, depth)) = to_do.pop() {
            let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
            for condition in group.iter().flat_map(|&set| self.each(set)) {
                *counts.entry(condition).or_default() += 1;
                steps += 1;
            }
            if steps > MOST_STEPS_OF_TREE {
                return None;
            }
            let in_all = counts.iter().filter(|(_, count)| **count == group.len()).map(|(condition, _)| *condition);
            let known = common.get_or_insert_with(|| in_all.collect::<Vec<u32>>());
            if let [one] = group[..] {
                if len(&one) as usize != known.len() + depth {
                    return None;
                }
                continue;
            }
            // A switch that all ask, and that leads to both sides.
            let is_asked_by_all = |condition: &u32| {
                let other = counts.get(&(condition ^ 1)).copied().unwrap_or(0);
                condition.is_multiple_of(2) && other > 0 && counts[condition] + other == group.len()
            };
            let asked = counts.keys().copied().find(is_asked_by_all)?;
            let has = |set: Conditions, wanted: u32| self.each(set).any(|condition| condition == wanted);
            let (one, other): (Vec<_>, Vec<_>) = group.into_iter().partition(|&set| has(set, asked));
            if one.iter().any(|&set| has(set, asked + 1)) || !other.iter().all(|&set| has(set, asked + 1)) {
                return None;
            }
            to_do.extend([(one, depth + 1), (other, depth + 1)]);
        }
        common
    }

    /// An alternative that differs from one in the side of one switch, and that condition of the latter's. The last
    /// condition is looked at first, so a chain of switches is rolled up from its end.
    fn complement(&mut self, all: &Alternatives, set: Conditions) -> Option<(u32, Conditions)> {
        let (sum, switches) = self.sums(set);
        if !all.has(set) || all.alike.get(&switches).is_none_or(|&alike| alike < 2) {
            return None;
        }
        let mut at = set;
        while let Some(condition) = self.last(at) {
            at = self.below(at);
            let other_side = condition ^ 1;
            let wanted = sum.wrapping_sub(sums_of(condition).0).wrapping_add(sums_of(other_side).0);
            if let Some(&other) = all.by_sum.get(&wanted)
                && all.has(other)
                && matches!(self.conditions[condition as usize], Condition::Switch(..))
                && self.replace(set, condition, Some(other_side)) == other
            {
                return Some((condition, other));
            }
        }
        None
    }
}

/// The alternatives of a merge that are left.
#[derive(Default)]
struct Alternatives {
    to_do: Vec<Conditions>,
    /// How often each is there.
    count: HashMap<Conditions, u32>,
    by_sum: HashMap<u64, Conditions>,
    /// How many have the same switches. The others cannot differ in one side alone.
    alike: HashMap<(u64, u32), u32>,
}

impl Alternatives {
    fn has(&self, set: Conditions) -> bool {
        self.count.get(&set).is_some_and(|&count| count > 0)
    }

    fn add(&mut self, sets: &ConditionSets, set: Conditions) {
        let (sum, switches) = sets.sums(set);
        *self.count.entry(set).or_default() += 1;
        *self.alike.entry(switches).or_default() += 1;
        self.by_sum.insert(sum, set);
        self.to_do.push(set);
    }

    fn remove(&mut self, sets: &ConditionSets, set: Conditions) {
        let (_, switches) = sets.sums(set);
        self.count.entry(set).and_modify(|count| *count -= 1);
        self.alike.entry(switches).and_modify(|count| *count -= 1);
    }
}

/// Values that can be absent; all others are always present.
#[derive(Debug, Default)]
pub(in crate::graph) struct Presences {
    sets: ConditionSets,
    values: HashMap<Value, Conditions>,
    nodes: HashMap<usize, Conditions>,
}

impl Presences {
    /// Whether the node can be skipped.
    pub fn may_be_skipped(&self, node: usize) -> bool {
        self.nodes.contains_key(&node)
    }

    /// The conditions under which a node runs; empty if it always does.
    pub fn of_node(&self, node: usize) -> Conditions {
        self.nodes.get(&node).copied().unwrap_or(Conditions::NONE)
    }

    /// Whether a value can be absent.
    pub fn may_be_absent(&self, value: Value) -> bool {
        !self.of(value).is_empty()
    }

    fn of(&self, value: Value) -> Conditions {
        self.values.get(&value).copied().unwrap_or_else(|| self.of_node(value.0))
    }

    /// Refuses outputs that can be absent.
    pub fn check_outputs(&self, graph: &Contents, unless: &str) -> Result<()> {
        for (name, value) in &graph.outputs {
            let conditions = self.sets.each(self.of(*value)).map(|number| self.sets.conditions[number as usize]);
            let Some(Condition::Switch((node, _), _) | Condition::Merge(node)) = conditions.min() else { continue };
            return Err(Error::invalid(format!(
                "graph '{}' output '{name}': node '{}' can leave it absent, which is refused {unless}: it depends on \
                 node '{}'",
                graph.name, graph.nodes[value.0].name, graph.nodes[node].name
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
        let inputs: Vec<Conditions> = node.inputs().iter().map(|&value| found.of(value)).collect();
        let own = match &node.body {
            NodeBody::Merge { .. } => found.sets.of_merge(&inputs, index),
            _ => {
                let waits = node.after.iter().map(|&before| found.of_node(before)).collect::<Vec<_>>();
                inputs.into_iter().chain(waits).fold(Conditions::NONE, |all, set| found.sets.union(all, set))
            }
        };
        if let NodeBody::Switch { inputs } = &node.body {
            for side in [false, true] {
                let condition = found.sets.switch(inputs[1], side);
                let alone = found.sets.push(Conditions::NONE, condition);
                let conditions = found.sets.union(own, alone);
                found.values.insert((index, usize::from(side)), conditions);
            }
        }
        if !own.is_empty() {
            found.nodes.insert(index, own);
        }
    }
    found
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::base::{Desc, dtype};
    use crate::graph::build::contents::{After, Node};

    /// Inputs that decide, and one that is passed on, behind them.
    fn inputs(count: usize) -> Contents {
        let desc = Desc::new(dtype::S32, &[1]);
        let input = || Node { name: "x".into(), body: NodeBody::Input(desc), after: After::new() };
        Contents { nodes: (0..=count).map(|_| input()).collect(), ..Contents::default() }
    }

    fn add(graph: &mut Contents, body: NodeBody) -> usize {
        graph.nodes.push(Node { name: "n".into(), body, after: After::new() });
        graph.nodes.len() - 1
    }

    fn find_in(graph: &Contents) -> Presences {
        find(graph, &(0..graph.nodes.len() as u32).collect::<Vec<_>>())
    }

    #[test]
    fn a_chain_of_switches_takes_steps_and_no_lists() {
        for (n, left_out, turns) in
            [(10, None, false), (3000, None, true), (3000, None, false), (3000, Some(1500), false)]
        {
            let mut graph = inputs(n);
            let (mut rest, mut leaves) = ((n, 0), Vec::new());
            for decides in 0..n {
                let switch = add(&mut graph, NodeBody::Switch { inputs: [rest, (decides, 0)] });
                leaves.push((switch, 1));
                rest = (switch, 0);
            }
            leaves.push(rest);
            leaves =
                leaves.into_iter().enumerate().filter(|(i, _)| Some(*i) != left_out).map(|(_, leaf)| leaf).collect();
            if turns {
                leaves.reverse();
            }
            let merge = add(&mut graph, NodeBody::Merge { inputs: leaves });
            let found = find_in(&graph);
            assert_eq!(found.may_be_skipped(merge), left_out.is_some());
            // A step for each side of each switch, and for what the merge comes by.
            assert!(found.sets.steps.len() <= 6 * n + 2, "{} steps for {n}", found.sets.steps.len());
        }
    }

    /// Leaves of a tree of switches, which ask the same questions in any order.
    fn grow(graph: &mut Contents, value: Value, asked: &[usize], random: &mut u64, leaves: &mut Vec<Value>) {
        let mut draw = |n: usize| {
            *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (*random >> 33) as usize % n
        };
        if asked.is_empty() || draw(4) == 0 {
            return leaves.push(value);
        }
        let decides = asked[draw(asked.len())];
        let switch = add(graph, NodeBody::Switch { inputs: [value, (decides, 0)] });
        let rest: Vec<usize> = asked.iter().copied().filter(|&other| other != decides).collect();
        [0, 1].into_iter().for_each(|side| grow(graph, (switch, side), &rest, random, leaves));
    }

    #[test]
    fn all_leaves_of_a_tree_together_are_always_there_and_some_are_not() {
        let mut random = 1;
        for round in 0..500 {
            let mut graph = inputs(6);
            let mut leaves = Vec::new();
            grow(&mut graph, (6, 0), &[0, 1, 2, 3, 4, 5], &mut random, &mut leaves);
            if leaves.len() == 1 {
                continue;
            }
            leaves.sort_by_key(|value| (value.0 * 7919 + value.1 * 31 + round) % 101);
            let some = add(&mut graph, NodeBody::Merge { inputs: leaves[1..].to_vec() });
            let all = add(&mut graph, NodeBody::Merge { inputs: leaves });
            let found = find_in(&graph);
            assert!(!found.may_be_skipped(all), "round {round}");
            assert!(found.may_be_skipped(some), "round {round}");
        }
    }
}

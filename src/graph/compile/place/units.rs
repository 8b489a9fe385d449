//! Which pieces of work are submitted as one: a pure function.
//!
//! A *unit* is a set of an engine's pieces between which nothing else lies. Two pieces are in one unit if the same
//! other nodes come before both, and the same other nodes come after both; others are all nodes but the engine's own
//! pieces, inputs and constants. So a unit that is submitted as one makes no piece wait for a node that it did not wait
//! for before, and a node after one of its pieces comes after all of it by edges that were there. No cycle comes of it
//! either: along an edge what lies before only grows and what lies behind only shrinks, so a path that leaves a unit
//! does not come back.
#![forbid(unsafe_code)]

use crate::base::{Reach, Successors};
use std::collections::HashMap;

/// Fewest pieces that are worth a recording, and most that one has.
pub const FEWEST: usize = 4;
pub const MOST: usize = 4096;
/// Fewest where the engine does all of a program. Such a run is the launch of its recording and nothing else, and that
/// costs the host about as much as the launch of one kernel.
pub const FEWEST_ALONE: usize = 2;

/// Most bits that are spent on knowing what lies before and behind each node.
const BITS: usize = 1 << 28;

/// The role of a graph's nodes for one engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitRole {
    /// A piece of its work.
    Piece,
    /// One that cannot be recorded: it is a unit of its own, and to others as if it were not the engine's.
    Alone,
    /// Work that is not its own.
    Other,
    /// There from the beginning.
    Source,
}

impl UnitRole {
    fn is_other(self) -> bool {
        matches!(self, UnitRole::Other | UnitRole::Alone)
    }
}

/// For each node the others that reach it by edges, itself too if it is one. `edges` go along an order, from and to.
fn others(roles: &[UnitRole], edges: impl Iterator<Item = (usize, usize)>) -> Reach {
    let others: Vec<usize> = (0..roles.len()).filter(|&node| roles[node].is_other()).collect();
    let mut reach = Reach::of_marks(roles.len(), others.len());
    others.iter().enumerate().for_each(|(number, &other)| reach.mark(other, number));
    edges.for_each(|(from, to)| reach.follow(to, from));
    reach
}

/// The units of an engine, and what comes before each node.
#[derive(Debug)]
pub struct EngineUnits {
    /// Nodes, each unit's in the given order.
    pub units: Vec<Vec<usize>>,
    pub before: Reach,
    /// Fewest pieces that are recorded.
    pub fewest: usize,
}

/// Finds the units of the nodes that are pieces. `order` is one that all edges allow, `after` has for each node what it
/// comes after. None: there are too many nodes to tell.
pub fn units(roles: &[UnitRole], order: &[u32], after: &[Vec<usize>]) -> Option<EngineUnits> {
    let count = roles.iter().filter(|role| role.is_other()).count();
    if count.saturating_mul(roles.len()) > BITS {
        return None;
    }
    let forward = order.iter().map(|&node| node as usize);
    let edges = |node: usize| after[node].iter().map(move |&before| (before, node));
    let before = others(roles, forward.clone().flat_map(edges));
    let behind = others(roles, forward.clone().rev().flat_map(edges).map(|(before, node)| (node, before)));
    let mut known: HashMap<(&[u64], &[u64]), usize> = HashMap::new();
    let mut units: Vec<Vec<usize>> = Vec::new();
    for node in forward.filter(|&node| matches!(roles[node], UnitRole::Piece | UnitRole::Alone)) {
        let unit = known.entry((before.row(node), behind.row(node))).or_insert(usize::MAX);
        if *unit == usize::MAX || units[*unit].len() == MOST {
            *unit = units.len();
            units.push(Vec::new());
        }
        units[*unit].push(node);
    }
    Some(EngineUnits { units, before, fewest: FEWEST })
}

/// An order that all edges allow, in which the nodes of a unit lie together; close to the given one otherwise.
pub fn together(units: &[Vec<usize>], order: &[u32], after: &[Vec<usize>]) -> Vec<u32> {
    let n = order.len();
    let mut group: Vec<usize> = (0..n).map(|node| units.len() + node).collect();
    for (number, unit) in units.iter().enumerate() {
        unit.iter().for_each(|&node| group[node] = number);
    }
    let mut place = vec![0; n];
    order.iter().enumerate().for_each(|(at, &node)| place[node as usize] = at);
    let edges = after.iter().enumerate().flat_map(|(node, after)| after.iter().map(move |&before| (before, node)));
    let between = edges.map(|(before, node)| (group[before], group[node])).filter(|(from, to)| from != to);
    let groups = Successors::new(units.len() + n, between);
    let first = |group: usize| match units.get(group) {
        Some(unit) => place[unit[0]],
        None => place[group - units.len()],
    };
    let exists = |&at: &usize| at < units.len() || group[at - units.len()] == at;
    let mut result = Vec::with_capacity(n);
    for at in groups.order((0..units.len() + n).filter(exists), first) {
        match units.get(at as usize) {
            Some(unit) => result.extend(unit.iter().map(|&node| node as u32)),
            None => result.push(at - units.len() as u32),
        }
    }
    result
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn draw(state: &mut u64, n: usize) -> usize {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((*state >> 33) as usize) % n
    }

    #[test]
    fn a_host_node_in_between_cuts_and_nothing_else_does() {
        use UnitRole::{Other, Piece, Source};
        // x -> a -> b -> H -> c -> d, and a -> e, x -> f.
        let roles = [Source, Piece, Piece, Other, Piece, Piece, Piece, Piece];
        let after = [vec![], vec![0], vec![1], vec![2], vec![3], vec![4], vec![1], vec![0]];
        let order: Vec<u32> = (0..8).collect();
        let found = units(&roles, &order, &after).unwrap().units;
        assert_eq!(found, [vec![1, 2], vec![4, 5], vec![6, 7]], "what H waits for is not held up by the rest");
        assert_eq!(together(&found, &order, &after), [0, 1, 2, 3, 4, 5, 6, 7]);
        let merged = [vec![1, 2], vec![4, 5, 6, 7]];
        assert_eq!(together(&merged, &order, &after), [0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn units_of_several_engines_have_an_order_and_delay_nothing() {
        let mut state = 1;
        for round in 0..500 {
            let n = 1 + draw(&mut state, 40);
            let engines: Vec<usize> = (0..n).map(|_| draw(&mut state, 4)).collect();
            let after: Vec<Vec<usize>> =
                (0..n).map(|i| (0..draw(&mut state, 3).min(i)).map(|_| draw(&mut state, i)).collect()).collect();
            let order: Vec<u32> = (0..n as u32).collect();
            let mut all = Vec::new();
            for engine in 1..3 {
                let role = |&on: &usize| match on {
                    3 => UnitRole::Source,
                    on if on == engine => UnitRole::Piece,
                    _ => UnitRole::Other,
                };
                // Sources come after nothing.
                let after: Vec<Vec<usize>> =
                    (0..n).map(|i| if engines[i] == 3 { vec![] } else { after[i].clone() }).collect();
                let roles: Vec<UnitRole> = engines.iter().map(role).collect();
                let found = units(&roles, &order, &after).unwrap();
                for unit in &found.units {
                    let rows = unit.iter().all(|&node| found.before.row(node) == found.before.row(unit[0]));
                    assert!(rows, "round {round}: one waits for what another one does not");
                }
                all.extend(found.units);
            }
            let after: Vec<Vec<usize>> =
                (0..n).map(|i| if engines[i] == 3 { vec![] } else { after[i].clone() }).collect();
            let joined = together(&all, &order, &after);
            assert_eq!(joined.len(), n, "round {round}: a cycle");
            let mut place = vec![usize::MAX; n];
            joined.iter().enumerate().for_each(|(at, &node)| place[node as usize] = at);
            for node in 0..n {
                after[node].iter().for_each(|&before| assert!(place[before] < place[node]));
            }
            for unit in &all {
                assert!(
                    unit.windows(2).all(|pair| place[pair[0]] + 1 == place[pair[1]]),
                    "round {round}: not together"
                );
            }
        }
    }
}

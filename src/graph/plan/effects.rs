//! In which order a graph reads and writes what is not its own: variables.
//!
//! The edges say it: data or control, from one node to the other, however far. Between two that touch the same
//! variable, and of which one writes it, there must be such a path. A cond or a loop touches what the nodes inside of
//! it do. Its values come and go one by one, so an edge with data says nothing about a node inside that the data does
//! not pass through: there only control edges count, which wait for all of it, and which all of it waits for. The
//! branches of a cond need no order among themselves, because one of them runs; the iterations of a loop run one after
//! the other (`overlap`).
#![forbid(unsafe_code)]

use crate::base::sort::sort_by_key;
use crate::base::{Error, Reach, Result};
use crate::graph::build::contents::{Contents, Node, NodeBody};
use crate::graph::build::verify::{Kinds, Verified};
use crate::kernel::Effect;
use std::collections::BTreeMap;

/// All that nodes of a graph do besides their values, those inside of others too: with the path of the node,
/// "loop/step".
fn each(graph: &Contents, prefix: &str, f: &mut dyn FnMut(&str, &Effect)) {
    for node in &graph.nodes {
        of_node(node, prefix, f);
    }
}

fn of_node(node: &Node, prefix: &str, f: &mut dyn FnMut(&str, &Effect)) {
    if let NodeBody::Kernel { kernel, .. } = &node.body
        && !kernel.kernel().effects().is_empty()
    {
        let path = format!("{prefix}{}", node.name);
        kernel.kernel().effects().iter().for_each(|effect| f(&path, effect));
    }
    for inner in node.inner() {
        if has_any(inner) {
            each(inner, &format!("{prefix}{}/", node.name), f);
        }
    }
}

fn has_any(graph: &Contents) -> bool {
    let is_one = |node: &Node| match &node.body {
        NodeBody::Kernel { kernel, .. } => !kernel.kernel().effects().is_empty(),
        _ => node.inner().any(|inner| has_any(inner)),
    };
    graph.nodes.iter().any(is_one)
}

/// Whether something in a graph has an order that iterations must keep.
pub(in crate::graph) fn is_ordered(graph: &Contents) -> bool {
    let mut ordered = false;
    each(graph, "", &mut |_, effect| ordered |= effect.is_ordered);
    ordered
}

/// The effects of a program on things outside, each once: it writes what any of its nodes writes.
pub(in crate::graph) fn of(graph: &Contents, verified: &Verified) -> Vec<Effect> {
    if !verified.kinds.has(Kinds::EFFECT) {
        return Vec::new();
    }
    let mut all: BTreeMap<u64, Effect> = BTreeMap::new();
    each(graph, "", &mut |_, effect| {
        all.entry(effect.thing).or_insert_with(|| effect.clone()).writes |= effect.writes;
    });
    all.into_values().collect()
}

/// A node of a graph that touches a thing, itself or inside of it.
struct EffectTouch {
    node: usize,
    /// The node that does it, and whether it, or another one in there, writes.
    path: String,
    writes: bool,
}

/// Refuses a graph in which what is written has no order with what else touches it.
pub(in crate::graph) fn check(graph: &Contents, verified: &Verified) -> Result<()> {
    if !verified.kinds.has(Kinds::EFFECT) {
        return Ok(());
    }
    for inner in graph.nodes.iter().enumerate().flat_map(|(index, node)| {
        let of = verified.inner.get(&index).map_or(&[][..], Vec::as_slice);
        node.inner().zip(of)
    }) {
        let (inner, verified) = inner;
        check(inner, verified)
            .map_err(|error| Error::new(error.code(), format!("in graph '{}': {}", inner.name, error.message())))?;
    }
    // Along the order, so that a path leads forward.
    let mut things: BTreeMap<u64, (Effect, Vec<EffectTouch>)> = BTreeMap::new();
    let mut position = vec![0u32; graph.nodes.len()];
    for (at, &index) in verified.order.iter().enumerate() {
        let index = index as usize;
        position[index] = at as u32;
        of_node(&graph.nodes[index], "", &mut |path, effect| {
            if !effect.is_ordered {
                return;
            }
            let (_, touches) = things.entry(effect.thing).or_insert_with(|| (effect.clone(), Vec::new()));
            match touches.last_mut().filter(|last| last.node == index) {
                Some(last) if effect.writes && !last.writes => (last.path, last.writes) = (path.to_owned(), true),
                Some(_) => {}
                None => touches.push(EffectTouch { node: index, path: path.to_owned(), writes: effect.writes }),
            }
        });
    }
    let mut demands = Vec::new();
    things.values().for_each(|(thing, touches)| demand(thing, touches, &mut demands));
    let Some(Demand { thing, first, second }) = first_unmet(graph, &verified.order, &position, &demands) else {
        return Ok(());
    };
    let does = |touch: &EffectTouch| if touch.writes { "writes" } else { "reads" };
    Err(Error::invalid(format!(
        "node '{}' {} {} and node '{}' {} it, in no order: {}",
        first.path,
        does(first),
        thing.name,
        second.path,
        does(second),
        thing.remedy
    )))
}

/// One node must be done before another begins.
struct Demand<'a> {
    thing: &'a Effect,
    first: &'a EffectTouch,
    second: &'a EffectTouch,
}

/// Writes must follow one another, and between two of them all reads must follow the first and come before the second:
/// then all others do, too.
fn demand<'a>(thing: &'a Effect, touches: &'a [EffectTouch], demands: &mut Vec<Demand<'a>>) {
    let mut add = |first: usize, second: usize| {
        demands.push(Demand { thing, first: &touches[first], second: &touches[second] });
    };
    let writes: Vec<usize> = (0..touches.len()).filter(|&i| touches[i].writes).collect();
    for (i, &write) in writes.iter().enumerate() {
        let next = writes.get(i + 1).copied();
        // The reads before the first write, and everything up to the next one.
        let before = if i == 0 { 0..write } else { 0..0 };
        before.for_each(|read| add(read, write));
        (write + 1..next.map_or(touches.len(), |next| next + 1)).for_each(|after| add(write, after));
        if let Some(next) = next {
            (write + 1..next).for_each(|read| add(read, next));
        }
    }
}

/// Most demands that one walk along the graph answers.
const TOGETHER: usize = 256;

/// The first demand that no path fulfils. Those that begin near one another are looked at together, in a walk from
/// where the first of them begins to where the last one ends: it takes a few words for each edge.
fn first_unmet<'a, 'b>(
    graph: &Contents,
    order: &[u32],
    position: &[u32],
    demands: &'b [Demand<'a>],
) -> Option<&'b Demand<'a>> {
    let place = |touch: &EffectTouch| position[touch.node] as usize;
    let mut by_begin: Vec<usize> = (0..demands.len()).collect();
    sort_by_key(&mut by_begin, |&demand| place(demands[demand].first));
    let mut unmet = None;
    for group in by_begin.chunks(TOGETHER) {
        let begin = place(demands[group[0]].first);
        let end = group.iter().map(|&demand| place(demands[demand].second)).max().unwrap_or(begin);
        let paths =
            DemandPaths::new(graph, &order[begin..=end], position, group.iter().map(|&demand| &demands[demand]));
        let missing =
            group.iter().enumerate().filter(|&(mark, &demand)| !paths.meets(mark, demands[demand].second.node));
        unmet = missing.map(|(_, &demand)| demand).chain(unmet).min();
    }
    unmet.map(|demand| &demands[demand])
}

/// Which of some demands a path meets, up to each node of a part of the order.
struct DemandPaths<'a> {
    graph: &'a Contents,
    position: &'a [u32],
    begin: u32,
    /// Three rows for each node, with a mark for each demand.
    reach: Reach,
}

/// The demands that begin at a node; those that a path meets which ends there; and of these, for a cond or a loop, the
/// ones with a path whose last edge has no data.
#[derive(Clone, Copy)]
enum DemandRow {
    Begun,
    Met,
    MetByControl,
}

impl<'a> DemandPaths<'a> {
    fn new<'b>(
        graph: &'a Contents,
        order: &[u32],
        position: &'a [u32],
        demands: impl ExactSizeIterator<Item = &'b Demand<'b>>,
    ) -> DemandPaths<'a> {
        let reach = Reach::of_marks(3 * order.len(), demands.len());
        let mut paths = DemandPaths { graph, position, begin: position[order[0] as usize], reach };
        for (mark, demand) in demands.enumerate() {
            let row = paths.row(demand.first.node, DemandRow::Begun);
            paths.reach.mark(row, mark);
        }
        for &index in order {
            let node = &graph.nodes[index as usize];
            node.inputs().iter().for_each(|&(before, _)| paths.follow(index as usize, before, false));
            node.after.iter().for_each(|&before| paths.follow(index as usize, before, true));
        }
        paths
    }

    fn row(&self, node: usize, which: DemandRow) -> usize {
        3 * (self.position[node] - self.begin) as usize + which as usize
    }

    fn is_compound(&self, node: usize) -> bool {
        matches!(self.graph.nodes[node].body, NodeBody::Case { .. } | NodeBody::While { .. })
    }

    fn follow(&mut self, node: usize, before: usize, is_control: bool) {
        if self.position[before] < self.begin {
            return;
        }
        let begins = is_control || !self.is_compound(before);
        let ends = is_control && self.is_compound(node);
        for (to, _) in [(DemandRow::Met, true), (DemandRow::MetByControl, ends)].into_iter().filter(|(_, takes)| *takes)
        {
            let row = self.row(node, to);
            self.reach.follow(row, self.row(before, DemandRow::Met));
            if begins {
                self.reach.follow(row, self.row(before, DemandRow::Begun));
            }
        }
    }

    fn meets(&self, mark: usize, end: usize) -> bool {
        let row = if self.is_compound(end) { DemandRow::MetByControl } else { DemandRow::Met };
        self.reach.is_before(mark, self.row(end, row))
    }
}

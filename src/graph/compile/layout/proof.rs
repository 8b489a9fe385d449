//! The proof of a plan of memory (`arena::prove`), for builds with debug assertions: whether the edges keep the nodes
//! that touch two storages apart, or only one of them runs. It knows nothing of how the plan was made. Of a loop whose
//! iterations overlap, what is done in one slot is in no order with what is done in another.
#![forbid(unsafe_code)]

use super::accesses::{self, Subgraphs};
use super::flat::{Flat, StorageKind};
use super::joins::Joins;
use super::memory::{self, Places};
use crate::graph::plan::Slot;
use crate::graph::plan::arena::prove;
use crate::graph::plan::{Body, Loop, Place, Release};
use std::ops::Range;

/// Larger programs are not checked: it takes cubic time.
const MOST_NODES: usize = 1000;

/// Panics if two storages share memory that may be touched at the same time.
pub(super) fn check(flat: &Flat, places: &Places) {
    let n = flat.bodies.len();
    if n == 0 || n > MOST_NODES {
        return;
    }
    let before = before(flat);
    let touched = touched(flat);
    let range = |storage: usize| match places.of[storage] {
        Place::Arena(at) => (u64::MAX, at..at + flat.storages[storage].bytes),
        // Of outputs each is a memory of its own.
        Place::Output(i) => (i as u64, 0..flat.storages[storage].bytes),
        Place::Constant(_) | Place::Input(_) | Place::Slot(_) => (u64::MAX, 0..0),
    };
    for storage in 0..touched.len() {
        let (memory, at) = range(storage);
        assert!(memory != u64::MAX || at.end <= places.arena_bytes, "storage {storage} lies outside of the arena");
    }
    let comes_first = |first: usize, second: usize| {
        touched[first].iter().all(|x| {
            touched[second].iter().all(|y| {
                before[x.node as usize][y.node as usize]
                    || brings(flat, *y, second).is_some_and(|brings| {
                        brings.iter().all(|&d| d == x.node || before[x.node as usize][d as usize])
                    })
                    || is_one_or_other(flat, x.node, y.node)
                    || x.node == y.node && range(first) == range(second) && replaces(flat, (first, *x), *y)
            })
        })
    };
    prove(touched.len(), range, comes_first, |storage| {
        format!("{:?}, touched by {:?}", flat.storages[storage], names(flat, &touched[storage]))
    });
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct StorageTouch {
    node: u32,
    writes: bool,
}

/// A merge that does not wait for all inputs reads what it goes on with: then it comes behind who brings it.
fn brings(flat: &Flat, touch: StorageTouch, storage: usize) -> Option<Vec<u32>> {
    let Body::Merge(number) = flat.bodies[touch.node as usize] else { return None };
    let merge = &flat.merges[number as usize];
    if touch.writes || merge.shape.is_none() {
        return None;
    }
    let reads = |group: u16| {
        let mut inputs = merge.inputs.iter().filter(|input| input.group == group);
        inputs.any(|input| flat.args[input.view as usize].storage as usize == storage)
    };
    let edges = flat.edges.iter().filter(|(_, edge)| edge.target == touch.node);
    let brings = edges.filter(|(_, edge)| reads(flat.merge_edges[Joins::merge_edge(edge.counter) as usize].group));
    Some(brings.map(|(from, _)| *from).collect()).filter(|all: &Vec<u32>| !all.is_empty())
}

/// Whether the nodes are in different branches of one cond: of those one runs.
fn is_one_or_other(flat: &Flat, x: u32, y: u32) -> bool {
    flat.selects.iter().any(|select| {
        let branch = |node: u32| select.branches.iter().position(|branch| branch.nodes.contains(&node));
        matches!((branch(x), branch(y)), (Some(a), Some(b)) if a != b)
    })
}

/// Whether a kernel may read the one and write the other in the same memory.
fn replaces(flat: &Flat, (storage, x): (usize, StorageTouch), y: StorageTouch) -> bool {
    let allows = |kernel| flat.kernel_of(kernel).in_place() && memory::may_write_over(flat, kernel, storage as u32);
    flat.kernel_at(x.node as usize).is_some_and(allows) && !x.writes && y.writes
}

fn names<'a>(flat: &'a Flat, touched: &[StorageTouch]) -> Vec<&'a str> {
    touched.iter().map(|touch| flat.names.get(touch.node as usize)).collect()
}

/// The nodes that touch each storage. A storage that is used inside of a loop and outside of it is touched by
/// everything in the loop, whatever the iteration.
fn touched(flat: &Flat) -> Vec<Vec<StorageTouch>> {
    let mut touched: Vec<Vec<StorageTouch>> = vec![Vec::new(); flat.storages.len()];
    accesses::each(flat, |node, storage, writes| touched[storage as usize].push(StorageTouch { node, writes }));
    for (storage, touches) in touched.iter_mut().enumerate() {
        if matches!(flat.storages[storage].kind, StorageKind::Constant(_) | StorageKind::Input(_)) {
            continue;
        }
        for looped in &flat.loops {
            let inside = |touch: &StorageTouch| looped.first < touch.node && touch.node < looped.end;
            let crosses = touches.iter().any(inside) && !touches.iter().all(inside);
            // The condition is over when the body begins, but the other way round only in the next iteration.
            let touched =
                |part: &&Range<u32>| touches.iter().any(|touch| part.contains(&touch.node) || touch.node == part.end);
            if crosses || parts(flat, looped).iter().filter(touched).count() > 1 {
                touches.extend((looped.first..looped.end).map(|node| StorageTouch { node, writes: true }));
            }
        }
    }
    touched
}

/// The conditions and bodies of a loop, and what closes its slots.
fn parts(flat: &Flat, looped: &Loop) -> Vec<Range<u32>> {
    match flat.overlaps.get(looped.overlap as usize) {
        None => vec![looped.condition.clone(), looped.body.clone()],
        Some(overlap) => {
            let slots = &flat.slots[overlap.slots.start as usize..overlap.slots.end as usize];
            let closes = |slot: &Slot| slot.body.end + 1..slot.body.end + 1;
            slots.iter().flat_map(|slot| [slot.condition.clone(), slot.body.clone(), closes(slot)]).collect()
        }
    }
}

/// Whether node a is done before node b begins, in one iteration of the loops that both are in.
fn before(flat: &Flat) -> Vec<Vec<bool>> {
    let n = flat.bodies.len();
    let mut after: Vec<Vec<u32>> = vec![Vec::new(); n];
    let is_loose = |edge: u32| flat.loose.iter().any(|range| range.contains(&edge));
    let (loose, firm): (Vec<u32>, Vec<u32>) = (0..flat.edges.len() as u32).partition(|&edge| is_loose(edge));
    for edge in firm {
        let (from, edge) = flat.edges[edge as usize];
        after[from as usize].push(edge.target);
    }
    let released = |release: Release| flat.releases[release.first as usize..release.end as usize].iter().copied();
    for (node, body) in flat.bodies.iter().enumerate() {
        match *body {
            Body::Select(i) => {
                for branch in &flat.selects[i as usize].branches {
                    after[node].extend(released(branch.release));
                    let guards = &flat.guards[branch.guards.start as usize..branch.guards.end as usize];
                    after[node].extend(guards.iter().map(|guard| guard.target));
                }
            }
            Body::Enter(i) => after[node].extend(released(flat.loops[i as usize].release_condition)),
            Body::Test(i) => after[node].extend(released(flat.loops[i as usize].release_body)),
            Body::Guard(i) => {
                // Only what it starts in its own slot.
                let slot = &flat.slots[i as usize];
                let open = &flat.starts[slot.open.first as usize..slot.open.end as usize];
                let here = slot.body.start..slot.body.end + 1;
                after[node].extend(open.iter().map(|start| start.edge.target).filter(|target| here.contains(target)));
            }
            _ => {}
        }
    }
    for looped in &flat.loops {
        if let Some(overlap) = flat.overlaps.get(looped.overlap as usize) {
            // All slots lie between the Enter and the last End.
            after[looped.first as usize].extend(overlap.first..overlap.exit);
            (overlap.first..overlap.exit).for_each(|node| after[node as usize].push(overlap.exit));
            continue;
        }
        // A node behind the Test is behind the last iteration's Next as well.
        let exits = after[looped.condition.end as usize].clone();
        after[looped.end as usize - 1].extend(exits.into_iter().filter(|&target| target >= looped.end));
    }
    let mut before = vec![vec![false; n]; n];
    for node in (0..n).rev() {
        let mut row = std::mem::take(&mut before[node]);
        for &next in &after[node] {
            row[next as usize] = true;
            for (to, reached) in before[next as usize].iter().enumerate() {
                row[to] |= reached;
            }
        }
        before[node] = row;
    }
    add_loose(flat, loose, &mut before);
    before
}

/// A loose edge keeps an order only if the branch runs that it leads into: so only for the nodes in there. A node
/// behind a merge comes behind one of its inputs: so behind the nodes that all of them come behind.
fn add_loose(flat: &Flat, mut loose: Vec<u32>, before: &mut [Vec<bool>]) {
    let regions = Subgraphs::new(flat);
    let target_of = |edge: &u32| flat.edges[*edge as usize].1.target;
    loose.sort_by_key(target_of);
    for edges in loose.chunk_by(|a, b| target_of(a) == target_of(b)) {
        let target = target_of(&edges[0]) as usize;
        let branch = regions.of[target];
        let is_merge = matches!(flat.bodies[target], Body::Merge(merge) if flat.merges[merge as usize].shape.is_some());
        let is_inside = |node: usize| regions.common(regions.of[node], branch) == branch;
        let from: Vec<usize> = edges.iter().map(|edge| flat.edges[*edge as usize].0 as usize).collect();
        let leads = |node: usize, from: usize| node == from || before[node][from];
        let leads_here = |node: &usize| match is_merge {
            true => from.iter().all(|&from| leads(*node, from)),
            false => from.iter().any(|&from| leads(*node, from)),
        };
        let first: Vec<usize> = (0..target).filter(leads_here).collect();
        let is_behind = |node: &usize| *node == target || before[target][*node];
        let behind: Vec<usize> = (target..before.len()).filter(is_behind).collect();
        for node in first {
            let sure = behind.iter().filter(|&&later| is_inside(later) || is_merge && is_inside(node));
            sure.for_each(|&later| before[node][later] = true);
        }
    }
}

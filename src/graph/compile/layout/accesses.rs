//! Reads and writes of each storage, and the graph that each node is of.
#![forbid(unsafe_code)]

use super::flat::Flat;
use crate::graph::plan::Body;

/// Calls `f(node, storage, writes)` for each access.
pub(super) fn each(flat: &Flat, mut f: impl FnMut(u32, u32, bool)) {
    for kernel in &flat.kernels {
        let args = &flat.args[kernel.args as usize..][..usize::from(kernel.num_inputs + kernel.num_outputs)];
        for (i, arg) in args.iter().enumerate() {
            f(kernel.node, arg.storage, i >= usize::from(kernel.num_inputs));
        }
    }
    let storage = |view: u32| flat.args[view as usize].storage;
    for (node, body) in flat.bodies.iter().enumerate() {
        let node = node as u32;
        match *body {
            Body::Call(..) | Body::Task(_) | Body::Kernel(_) | Body::Async(_) | Body::End => {}
            Body::Dynamic(_) | Body::Move(_) => {}
            Body::Select(i) => f(node, storage(flat.selects[i as usize].selector), false),
            Body::Test(i) => f(node, storage(flat.loops[i as usize].predicate), false),
            Body::Guard(i) => f(node, storage(flat.slots[i as usize].predicate), false),
            Body::Retire(i) => {
                for &(from, to) in &flat.slots[i as usize].leave {
                    f(node, storage(from), false);
                    f(node, storage(to), true);
                }
            }
            Body::Switch(i) => f(node, storage(flat.switches[i as usize].predicate), false),
            Body::Enter(i) | Body::Next(i) => {
                let looped = &flat.loops[i as usize];
                let pairs = if matches!(body, Body::Enter(_)) { &looped.enter } else { &looped.next };
                for &(from, to) in pairs {
                    f(node, storage(from), false);
                    f(node, storage(to), true);
                }
            }
            Body::Merge(i) => {
                let merge = &flat.merges[i as usize];
                merge.inputs.iter().for_each(|input| f(node, storage(input.view), false));
                f(node, storage(merge.value), true);
                f(node, storage(merge.index), true);
            }
        }
    }
}

/// A graph: the outermost, a branch, or a loop's condition or body.
#[derive(Clone, Copy, Debug)]
pub(super) struct Subgraph {
    /// The graph around it, and the node there that this one is inside of.
    pub outer: u32,
    pub owner: u32,
    pub depth: u32,
    pub is_loop: bool,
}

pub(super) struct Subgraphs {
    pub list: Vec<Subgraph>,
    /// The region of each node. That of a Select, an Enter, an End, and of what tests or closes an iteration, is the
    /// one around it.
    pub of: Vec<u32>,
    /// The Enter of what tests or closes an iteration, and every other node itself; empty if there are no loops.
    speaker: Vec<u32>,
}

impl Subgraphs {
    pub fn new(flat: &Flat) -> Subgraphs {
        let n = flat.bodies.len();
        let mut regions = Subgraphs {
            list: vec![Subgraph { outer: 0, owner: 0, depth: 0, is_loop: false }],
            of: vec![0; n],
            speaker: Vec::new(),
        };
        if !flat.loops.is_empty() {
            regions.speaker = (0..n as u32).collect();
        }
        // An outer graph comes first in the array, so an inner one is marked later.
        for (node, body) in flat.bodies.iter().enumerate() {
            match *body {
                Body::Select(i) => {
                    for branch in &flat.selects[i as usize].branches {
                        regions.mark(node, branch.nodes.clone(), false);
                    }
                }
                Body::Enter(i) => {
                    let looped = &flat.loops[i as usize];
                    let Some(overlap) = flat.overlaps.get(looped.overlap as usize) else {
                        for part in [&looped.condition, &looped.body] {
                            regions.mark(node, part.clone(), true);
                            // Test and Next are behind their parts.
                            regions.speaker[part.end as usize] = node as u32;
                        }
                        continue;
                    };
                    for slot in &flat.slots[overlap.slots.start as usize..overlap.slots.end as usize] {
                        regions.mark(node, slot.condition.clone(), true);
                        regions.mark(node, slot.body.clone(), true);
                        for closes in [slot.condition.end, slot.body.end, slot.body.end + 1] {
                            regions.speaker[closes as usize] = node as u32;
                        }
                    }
                    regions.speaker[overlap.exit as usize] = node as u32;
                }
                _ => {}
            }
        }
        regions
    }

    fn mark(&mut self, owner: usize, nodes: std::ops::Range<u32>, is_loop: bool) {
        let outer = self.of[owner];
        let depth = self.list[outer as usize].depth + 1;
        self.of[nodes.start as usize..nodes.end as usize].fill(self.list.len() as u32);
        self.list.push(Subgraph { outer, owner: owner as u32, depth, is_loop });
    }

    /// The node that stands for this one where it is: a loop's Enter for its Test and its Next.
    pub fn speaker(&self, node: u32) -> u32 {
        self.speaker.get(node as usize).copied().unwrap_or(node)
    }

    /// The innermost region that both are in.
    pub fn common(&self, mut a: u32, mut b: u32) -> u32 {
        while a != b {
            let (x, y) = (self.list[a as usize], self.list[b as usize]);
            if x.depth >= y.depth { a = x.outer } else { b = y.outer }
        }
        a
    }
}

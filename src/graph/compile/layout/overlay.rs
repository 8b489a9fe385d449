//! The memory of a cond's branches: of one cond only one branch runs, so all of them begin at the same place in the
//! arena.
//!
//! A value that is used in one branch only has fresh memory there, or that of another value of the branch. In an order
//! of one thread, which the array is, all of it lies behind the memory that was taken before the Select. Each branch
//! begins there again, and the nodes behind the cond begin behind the largest of them. Nobody else has this memory,
//! before or after: its order is a matter of the branch alone, also if the branch begins before its inputs are there.
//! In the next iteration of a loop around the cond another branch may run. It begins when the iteration before is over,
//! and with it all that ran in there.
#![forbid(unsafe_code)]

use super::flat::Flat;

/// A cond that the walk along the array is in.
struct OpenCond {
    select: usize,
    /// Branches that have begun.
    begun: usize,
    base: usize,
    /// The most that a branch took.
    top: usize,
}

/// The conds around a node, in the order of the array.
#[derive(Default)]
pub(super) struct Overlay {
    open: Vec<OpenCond>,
}

impl Overlay {
    /// Where fresh memory begins for this node, if it begins at `fresh` for the one before.
    pub fn at(&mut self, flat: &Flat, node: usize, mut fresh: usize) -> usize {
        while let Some(open) = self.open.last_mut() {
            let branches = &flat.selects[open.select].branches;
            while branches.get(open.begun).is_some_and(|branch| branch.nodes.start as usize == node) {
                open.begun += 1;
                open.top = open.top.max(fresh);
                fresh = open.base;
            }
            if branches.last().is_none_or(|branch| branch.nodes.end as usize != node) {
                break;
            }
            fresh = fresh.max(open.top);
            self.open.pop();
        }
        fresh
    }

    /// Behind a Select, which has its own.
    pub fn open(&mut self, select: usize, fresh: usize) {
        self.open.push(OpenCond { select, begun: 0, base: fresh, top: fresh });
    }
}

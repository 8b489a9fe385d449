//! The ready nodes of a run that all workers see, and their order.
//!
//! A worker's list is its own: its nodes wait until the worker comes to them, or offers them (`share`). That is right
//! for nodes that are cheaper than the cost of showing them. A *dear* node is long enough to be shown, and a worker
//! that waits for it would wait for long: so the state has a set of the dear nodes that are ready (`ReadySet`), by
//! rank, and a worker that becomes idle takes the most urgent one, whichever worker has made it ready. And before a
//! worker goes into a dear node it offers the rest of its list. So while a worker is in a dear node all ready nodes are
//! within reach of the others. A node whose cost is unknown, because no run has taken its branch so far, counts as dear
//! until a run has measured it.
//!
//! *Order.* A node's place in the set is its place among the dear nodes, the longest path to the end first, as the
//! state has found it when ranks were last computed. Paths are sorted by their logarithm, to two parts in a hundred, so
//! it takes two passes over the nodes. A run whose costs are unknown shows everything, in the order of the array, which
//! is that of the longest paths as far as compile could tell.
//!
//! *No thread waits beside work.* A worker that shows a node, or offers its list before it goes into a dear node,
//! checks whether a thread must be called: those that look around find it by themselves; else it calls the caller back,
//! or asks the pool for one more worker, up to the run's width (`Worker::call_others`). A worker that leaves first
//! announces that and then looks once more. Between the two steps of each of them lies a fence, so that one of the two
//! sees the other. And a worker that takes a node and sees that more is there calls the next one, so that one worker
//! need not call all.
#![forbid(unsafe_code)]

use crate::graph::carry::figures::is_measured;
use crate::graph::carry::learned::{Class, Rank};
use crate::graph::carry::state::RunState;
use std::sync::atomic::Ordering::*;

/// The parts of an octave into which paths are sorted, as a power of two; and the parts of all octaves, for each class.
const STEPS_LOG2: u32 = 5;
const PER_CLASS: usize = 1 << 11;
const BUCKETS: usize = PER_CLASS * Class::COUNT;

/// The nodes that a run shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(in crate::graph) enum Show {
    /// Nothing: no node is dear.
    Nothing,
    /// The dear nodes, by rank, or in the order of the array.
    ByRank,
    InOrder,
    /// All nodes that compute something, in the order of the array.
    All,
}

impl Show {
    fn of(word: u32) -> Show {
        match word {
            0 => Show::Nothing,
            1 => Show::ByRank,
            2 => Show::InOrder,
            _ => Show::All,
        }
    }
}

const NO_PLACE: u32 = u32::MAX;

impl RunState {
    /// Decides which nodes the next run shows. Only for the owner of a closed state.
    pub(in crate::graph) fn set_shown(&self, all: bool) {
        // ORDERING: Acquire pairs with the Release in `Plan::weigh`. The rest is Relaxed: the owner's, and published to
        // others by `open`.
        let weighed = self.learned().weighed.load(Acquire);
        if self.ranked.load(Relaxed) != weighed {
            let any = self.rank();
            self.dear.store(any as u32, Relaxed);
            self.ranked.store(weighed, Relaxed);
        }
        let show = if all { Show::All as u32 } else { self.dear.load(Relaxed) };
        self.shown.store(show, Relaxed);
    }

    pub(in crate::graph) fn shown(&self) -> Show {
        Show::of(self.shown.load(Relaxed))
    }

    /// Gives the dear nodes their places. In a frame of its own, which is large: programs inside one another would have
    /// one on the stack for each.
    #[inline(never)]
    fn rank(&self) -> Show {
        let (plan, learned) = (self.plan(), self.learned());
        if self.places.is_empty() {
            let any = (0..plan.len()).any(|node| learned.is_shown(plan, node));
            return if any { Show::InOrder } else { Show::Nothing };
        }
        // The links of a closed state are free. Another thread may recompute ranks meanwhile: each is read only once.
        let mut longest = [0; Class::COUNT];
        for node in 0..plan.len() {
            let rank = if learned.is_shown(plan, node) { learned.rank(node as u32) } else { Rank::NONE };
            self.links[node].store(rank.bits(), Relaxed);
            let longest = &mut longest[rank.class() as usize];
            *longest = rank.bits().max(*longest);
        }
        self.places.iter().for_each(|place| place.store(NO_PLACE, Relaxed));
        if longest == [0; Class::COUNT] {
            return Show::Nothing;
        }
        let bucket = |rank: Rank| {
            let class = rank.class() as usize;
            let steps = (longest[class] - rank.bits()) >> (Rank::OCTAVE_SHIFT - STEPS_LOG2);
            (Class::COUNT - 1 - class) * PER_CLASS + (steps as usize).min(PER_CLASS - 1)
        };
        let ranks = || {
            let ranks = self.links.iter().map(|rank| Rank::of_bits(rank.load(Relaxed))).enumerate();
            ranks.filter(|(_, rank)| *rank != Rank::NONE)
        };
        let mut starts = [0u32; BUCKETS + 1];
        ranks().for_each(|(_, rank)| starts[bucket(rank) + 1] += 1);
        for i in 0..BUCKETS {
            starts[i + 1] += starts[i];
        }
        for (node, rank) in ranks() {
            let place = &mut starts[bucket(rank)];
            self.places[node].store(*place, Relaxed);
            self.sorted[*place as usize].store(node as u32, Relaxed);
            *place += 1;
        }
        Show::ByRank
    }

    /// Whether others can find work: nodes that are shown, or on offer.
    pub(in crate::graph) fn shows_work(&self) -> bool {
        !self.ready.is_empty() || self.queues.iter().any(|queue| !queue.is_empty())
    }

    /// A node's place among those that are shown; `None` if it is not.
    #[inline]
    pub(in crate::graph) fn place_of(&self, show: Show, node: u32) -> Option<usize> {
        match show {
            Show::Nothing => None,
            Show::ByRank => {
                let place = self.places[node as usize].load(Relaxed);
                (place != NO_PLACE).then_some(place as usize)
            }
            Show::InOrder => self.learned().is_shown(self.plan(), node as usize).then_some(node as usize),
            Show::All => is_measured(&self.plan().bodies[node as usize]).then_some(node as usize),
        }
    }

    #[inline]
    pub(in crate::graph) fn node_at(&self, show: Show, place: usize) -> u32 {
        if show == Show::ByRank { self.sorted[place].load(Relaxed) } else { place as u32 }
    }

    /// Whether a node comes before the one that has this place.
    pub(in crate::graph) fn is_before(&self, show: Show, node: u32, place: usize) -> bool {
        match (show, self.place_of(show, node)) {
            (_, Some(own)) => own < place,
            // Its cheap nodes only control others.
            (Show::All, None) => true,
            (_, None) => self.learned().rank(node) >= self.learned().rank(self.node_at(show, place)),
        }
    }
}

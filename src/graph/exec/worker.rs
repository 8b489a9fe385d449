//! One thread's part in a run: run nodes, propagate, offer what is too much, take what others offer.
//!
//! The loop exists in three versions: as fast as can be, measuring, and careful (`orders`).

mod early;
mod merges;

use super::ops::After;
use super::queue::Offer;
use super::role::Role;
use super::step::Step;
use crate::base::time::{clock_ns, now_ns};
use crate::base::{Error, Ref};
use crate::graph::layout::{Body, DIRECT, Layout, Release};
use crate::sync::{Arrival, Exit};
use crate::threadpool::{Job, ThreadPool};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::*;

/// The versions of the loops, here and in `serial`: without a look at the clock; with two for each node; with a look at
/// what the run was told, too.
pub(super) const FAST: u8 = 0;
pub(super) const MEASURED: u8 = 1;
pub(super) const CAREFUL: u8 = 2;

/// End of a list.
const NONE: u32 = u32::MAX;
/// How long a worker without work looks around before it leaves.
const LOOK_NS: u64 = 20_000;
/// What must be waiting for a worker that is looking around to be given some of it, in nanoseconds.
const SHARE_NS: u64 = 500;
/// Most nodes that are looked at to find the middle of a list.
const LONGEST_WALK: usize = 256;
/// After a list had nothing worth sharing: how many nodes later to look again.
const PATIENCE: u32 = 64;
/// A helper that took less than this many hops' worth of work was not worth its waking.
const WORTHWHILE_HOPS: u64 = 4;

/// A list of ready nodes, linked through the step's links, the newest first; and what they are worth.
#[derive(Clone, Copy)]
struct List {
    first: u32,
    worth_ns: u64,
}

const EMPTY: List = List { first: NONE, worth_ns: 0 };

pub(super) struct Worker<'a, const MODE: u8> {
    step: &'a Arc<Step>,
    layout: &'a Layout,
    pool: Option<&'a Ref<ThreadPool>>,
    generation: u64,
    /// The queue that is this worker's; None for one more worker than there are queues (it offers nothing).
    own: Option<usize>,
    role: Role,
    list: List,
    /// The node in hand, for the case that it panics.
    current: u32,
    /// Ends reached and not yet reported.
    done: u32,
    /// How many more times not to look for something to share.
    patience: u32,
    /// What all nodes were worth that this worker has taken from others.
    taken_ns: u64,
}

impl<'a, const MODE: u8> Worker<'a, MODE> {
    pub fn new(step: &'a Arc<Step>, pool: Option<&'a Ref<ThreadPool>>, generation: u64, role: Role) -> Self {
        let own = step.owners.claim();
        let layout = &*step.layout;
        Worker {
            step,
            layout,
            pool,
            generation,
            own,
            role,
            list: EMPTY,
            current: NONE,
            done: 0,
            patience: 0,
            taken_ns: 0,
        }
    }

    /// Begins with the run's roots.
    pub fn with_roots(mut self) -> Self {
        self.layout.roots.iter().for_each(|&root| self.push(root));
        self
    }

    /// Works until there is nothing to do, and leaves the run.
    pub fn work(mut self) -> Exit {
        self.work_and_leave()
    }

    /// As `work`, for a worker that brings no nodes of its own; and whether it found any.
    pub(super) fn visit(mut self) -> (Exit, bool) {
        let exit = self.work_and_leave();
        (exit, self.taken_ns > 0)
    }

    fn work_and_leave(&mut self) -> Exit {
        let mut interrupted = None;
        // Caught here and not around each node: a panic is a defect of a kernel, and costs nothing while there is none.
        while let Err(payload) = catch_unwind(AssertUnwindSafe(|| self.drain(interrupted))) {
            let error = Error::from_panic(&*payload);
            std::mem::forget(payload);
            if self.current == NONE {
                // Not in a node: the executor itself is broken. What it has lost can't be counted, so the run can't
                // be closed, and its tensors must not be let go of while other workers may use them.
                self.step.fail(None, error);
                break;
            }
            self.step.fail_at(self.current, &error);
            interrupted = Some(std::mem::replace(&mut self.current, NONE));
        }
        if let Some(own) = self.own {
            self.step.owners.give_back(own);
        }
        if self.role == Role::Helper {
            self.make_room();
        }
        self.step.tokens.leave(self.done)
    }

    /// A helper leaves: another one may be asked for, from more work on if this one was not worth it.
    fn make_room(&self) {
        let step = self.step;
        if self.taken_ns < WORTHWHILE_HOPS * self.hop_ns() {
            let above = step.ask_above_ns.load(Relaxed);
            step.ask_above_ns.store(above.saturating_mul(2), Relaxed);
        }
        step.asked.fetch_sub(1, Relaxed);
    }

    /// Runs everything there is; begins behind the node in which it was interrupted.
    fn drain(&mut self, interrupted: Option<u32>) {
        if let Some(next) = interrupted.and_then(|node| self.finish(node, After::Edges)) {
            self.chain(next);
        }
        loop {
            while let Some(node) = self.pop() {
                self.chain(node);
            }
            if self.take_up() {
                continue;
            }
            match self.take().or_else(|| self.look_around()) {
                Some(offer) => {
                    self.taken_ns += u64::from(offer.worth_ns.max(1));
                    self.list = List { first: offer.first, worth_ns: u64::from(offer.worth_ns) };
                }
                None if self.step.calls.returns.any() => {}
                None => return,
            }
        }
    }

    /// Takes up what was started and has come back; false if there is nothing.
    fn take_up(&mut self) -> bool {
        let Some(mut node) = self.step.calls.returns.take() else { return false };
        while node != NONE {
            // The link is the node's again as soon as the next one is ready.
            let below = self.step.links[node as usize].load(Relaxed);
            if let Some(next) = self.finish(node, After::Edges) {
                self.push(next);
            }
            node = below;
        }
        true
    }

    /// Runs a node, then its best ready successor, and so on.
    fn chain(&mut self, mut node: u32) {
        loop {
            self.current = node;
            let after = self.run(node);
            self.current = NONE;
            match self.finish(node, after) {
                Some(next) => node = next,
                None => return,
            }
        }
    }

    /// Makes the arrivals behind a node; gives the one to go on with.
    fn finish(&mut self, node: u32, after: After) -> Option<u32> {
        let next = match after {
            After::Edges => self.propagate(node),
            After::Release(release) => self.release(release),
            After::Branch(select, taken) => self.begin_branch(select, taken),
            After::Later => None,
            After::Nothing(uncounted) => {
                self.done += uncounted;
                self.follow_edges(node)
            }
        };
        if next.is_some() && self.list.worth_ns > SHARE_NS {
            self.share();
        }
        next
    }

    fn run(&self, node: u32) -> After {
        let (step, layout) = (self.step, self.layout);
        let body = layout.bodies[node as usize];
        if MODE == CAREFUL && (layout.is_step(node) || matches!(body, Body::Next(_))) {
            step.look_at_clock(node);
        }
        let stopped = step.is_stopped();
        let absent = !stopped && !layout.absence.own.is_empty() && step.skips(node as usize);
        if stopped || absent {
            return self.skip(node, body, stopped);
        }
        match body {
            Body::Select(index) => {
                let select = &layout.selects[index as usize];
                return if select.is_early {
                    early::choose(step, index)
                } else {
                    After::Release(step.branch(select).release)
                };
            }
            Body::Enter(index) => return After::Release(step.enter(index as usize).release_condition),
            Body::Next(index) => return After::Release(step.next(index as usize).release_condition),
            Body::Test(index) => return self.test(index as usize),
            Body::End => return After::Edges,
            _ => {}
        }
        let start = if MODE != FAST { now_ns() } else { 0 };
        let mut after = After::Edges;
        if let Body::Async(call) = body {
            after = if step.begin_call(call, self.pool) { After::Edges } else { After::Later };
        } else if let Err(error) = step.compute(body, self.pool) {
            step.fail_at(node, &error);
        }
        if MODE != FAST {
            step.measured(node as usize, (now_ns() - start).saturating_sub(clock_ns()));
        }
        after
    }

    fn test(&self, index: usize) -> After {
        let looped = &self.layout.loops[index];
        if self.step.goes_on(looped) {
            if MODE == CAREFUL {
                self.step.look_at_clock(looped.first);
                if self.step.is_stopped() {
                    return After::Edges;
                }
            }
            return After::Release(looped.release_body);
        }
        if MODE != FAST {
            let iterations = self.step.iterations[index].load(Relaxed);
            looped.iterations.store(u32::try_from(iterations).unwrap_or(u32::MAX), Relaxed);
        }
        After::Edges
    }

    /// A node that is not run because the run has stopped, or because something that it needs is absent.
    #[cold]
    fn skip(&self, node: u32, body: Body, stopped: bool) -> After {
        if stopped && self.layout.is_step(node) {
            self.step.left_out(node);
        }
        match body {
            Body::Select(index) => early::choose_none(self.step, &self.layout.selects[index as usize]),
            Body::Enter(index) => After::Nothing(self.layout.loops[index as usize].uncounted),
            Body::Merge(index) => {
                let _ = self.step.merges[index as usize].take();
                After::Edges
            }
            // A loop that has stopped ends here; its Test says so.
            Body::Next(index) => {
                let looped = &self.layout.loops[index as usize];
                After::Release(Release { first: looped.stop, end: looped.stop + 1 })
            }
            _ => After::Edges,
        }
    }

    fn hop_ns(&self) -> u64 {
        self.layout.hop_ns.unwrap_or_else(|| self.pool.map_or(0, |pool| pool.worth_ns() as u64))
    }

    /// Makes a finished node's arrivals; one that nobody waits for is an end.
    fn propagate(&mut self, node: u32) -> Option<u32> {
        self.done += u32::from(self.layout.edges(node as usize).is_empty());
        self.follow_edges(node)
    }

    /// The first target that becomes ready is returned, the others go onto the list.
    fn follow_edges(&mut self, node: u32) -> Option<u32> {
        let mut next = None;
        for edge in self.layout.edges(node as usize) {
            if edge.counter != DIRECT && !self.arrive(edge.counter) {
                continue;
            }
            match next {
                None => next = Some(edge.target),
                Some(_) => self.push(edge.target),
            }
        }
        next
    }

    fn release(&mut self, release: Release) -> Option<u32> {
        let (first, rest) = self.layout.releases[release.first as usize..release.end as usize].split_first()?;
        // The first is the most urgent; it is gone on with, and the next ones are popped first.
        rest.iter().rev().for_each(|&node| self.push(node));
        Some(*first)
    }

    /// One arrival at a counter; true if the node is ready, and then the counter is whole again.
    fn arrive(&self, index: u32) -> bool {
        let Some(&start) = self.layout.counters.get(index as usize) else { return self.arrive_at_merge(index) };
        if self.step.counters[index as usize].arrive(1, false, start) != Arrival::Ready {
            return false;
        }
        match index.checked_sub(self.layout.first_leaf) {
            None => true,
            Some(leaf) => self.arrive(self.layout.leaf_of[leaf as usize]),
        }
    }

    fn worth(&self, node: u32) -> u64 {
        u64::from(self.layout.worth[node as usize].load(Relaxed))
    }

    fn push(&mut self, node: u32) {
        // ORDERING: Relaxed; the links of a list are this worker's until `WorkQueue` publishes it.
        self.step.links[node as usize].store(self.list.first, Relaxed);
        self.list.first = node;
        self.list.worth_ns += self.worth(node);
    }

    fn pop(&mut self) -> Option<u32> {
        let node = self.list.first;
        if node == NONE {
            return None;
        }
        self.list.first = self.step.links[node as usize].load(Relaxed);
        self.list.worth_ns = self.list.worth_ns.saturating_sub(self.worth(node));
        // The node in hand does not count: it keeps this worker busy, what is left may be worth a hop.
        if self.list.first != NONE && self.list.worth_ns > SHARE_NS {
            self.share();
        }
        Some(node)
    }

    /// Offers half of the list, if somebody wants it or the pool has a thread left for this run.
    fn share(&mut self) {
        let step = self.step;
        let Some(queue) = self.own.map(|own| &step.queues[own]) else { return };
        if self.list.first == NONE {
            // Worths may have been weighed anew since the nodes were put on the list: the sum is an estimate.
            self.list.worth_ns = 0;
            return;
        }
        if self.patience > 0 {
            self.patience -= 1;
            return;
        }
        let hungry = step.hungry.load(Relaxed) > 0 && queue.is_empty();
        // ORDERING: Relaxed; all are hints, a helper too many finds nothing and leaves.
        let may_ask =
            step.asked.load(Relaxed) < step.width.load(Relaxed) && self.list.worth_ns > step.ask_above_ns.load(Relaxed);
        let may_call = step.away.load(Relaxed) == 1 && self.list.worth_ns > self.hop_ns();
        if !hungry && !may_ask && !may_call {
            return;
        }
        let Some(offer) = self.cut() else {
            self.patience = PATIENCE;
            return;
        };
        if !queue.push(offer) {
            self.append(offer);
        } else if hungry {
            // Somebody is about to take it.
        } else if may_call && step.away.swap(0, Relaxed) == 1 {
            step.calls.news.advance(1);
        } else if may_ask {
            self.ask();
        }
    }

    /// Cuts off the older half of the list, the nodes with more behind them in a tree (all of it if this worker is
    /// about to block in `parallel_for`). None if what would go is not worth going.
    fn cut(&mut self) -> Option<Offer> {
        let clamp = |worth_ns: u64| u32::try_from(worth_ns).unwrap_or(u32::MAX);
        if self.role == Role::BulkCaller {
            let list = std::mem::replace(&mut self.list, EMPTY);
            return Some(Offer { first: list.first, worth_ns: clamp(list.worth_ns) });
        }
        let links = &self.step.links;
        let half = self.list.worth_ns / 2;
        let mut last = self.list.first;
        let mut kept = self.worth(last);
        // Not further than this: a long list may keep its worth far behind, and would be walked again and again.
        for _ in 0..LONGEST_WALK {
            let next = links[last as usize].load(Relaxed);
            if next == NONE || kept + self.worth(next) > half {
                break;
            }
            last = next;
            kept += self.worth(last);
        }
        let first = links[last as usize].load(Relaxed);
        if first == NONE && last == self.list.first && kept >= SHARE_NS {
            // The only one: this worker has a node in hand, and would come to it later than a helper.
            self.list = EMPTY;
            return Some(Offer { first: last, worth_ns: clamp(kept) });
        }
        let worth_ns = self.list.worth_ns.saturating_sub(kept);
        if first == NONE || worth_ns < SHARE_NS {
            return None;
        }
        links[last as usize].store(NONE, Relaxed);
        self.list.worth_ns = kept;
        Some(Offer { first, worth_ns: clamp(worth_ns) })
    }

    /// Undoes `cut`.
    fn append(&mut self, offer: Offer) {
        let links = &self.step.links;
        self.list.worth_ns += u64::from(offer.worth_ns);
        if self.list.first == NONE {
            self.list.first = offer.first;
            return;
        }
        let mut last = self.list.first;
        loop {
            match links[last as usize].load(Relaxed) {
                NONE => break,
                next => last = next,
            }
        }
        links[last as usize].store(offer.first, Relaxed);
    }

    /// Asks the pool for one more helper; a refusal is the last question of this run.
    fn ask(&mut self) {
        let (step, Some(pool)) = (self.step, self.pool) else { return };
        let width = step.width.load(Relaxed);
        if step.asked.fetch_add(1, Relaxed) >= width {
            return;
        }
        let job = Arc::clone(step) as Arc<dyn Job>;
        if self.role == Role::BulkCaller {
            // All at once, from here: this thread comes back when they have left.
            step.asked.store(width, Relaxed);
            let helpers = pool.take_helpers(width as usize, pool.num_threads());
            if helpers > 0 {
                pool.spawn_bulk_taken(job, self.generation, helpers);
            }
            // What comes up later is worth another region.
            step.asked.store(0, Relaxed);
        } else if pool.take_helpers(1, pool.num_threads()) == 0 {
            // Other work has the pool's threads now; look again when there is more to share.
            step.asked.fetch_sub(1, Relaxed);
            self.patience = PATIENCE;
        } else if !pool.spawn_taken(job, self.generation, self.hop_ns()) {
            step.asked.store(width, Relaxed);
        }
    }

    /// An offer, from the own queue first.
    fn take(&self) -> Option<Offer> {
        let queues = &self.step.queues;
        let own = self.own.unwrap_or(0);
        (0..queues.len()).find_map(|i| queues[(own + i) % queues.len()].take())
    }

    /// Reports what is done, and looks for offers for a bounded time.
    fn look_around(&mut self) -> Option<Offer> {
        let step = self.step;
        step.tokens.finish(std::mem::take(&mut self.done));
        if step.tokens.is_finished() || step.tokens.inside() == 1 {
            // Alone: nobody can offer anything.
            return self.take();
        }
        step.hungry.fetch_add(1, Relaxed);
        let start = now_ns();
        let offer = loop {
            if let Some(offer) = self.take() {
                break Some(offer);
            }
            if step.tokens.is_finished() || step.calls.returns.any() || now_ns() - start > LOOK_NS {
                break None;
            }
            (0..8).for_each(|_| std::hint::spin_loop());
        };
        step.hungry.fetch_sub(1, Relaxed);
        // Something may have been offered to a worker that was counted as hungry and is about to leave.
        offer.or_else(|| self.take())
    }
}

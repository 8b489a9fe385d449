//! One thread's part in a run: runs nodes, propagates, offers surplus nodes, takes offers of others.
//!
//! The loop exists in four versions: as fast as possible, measuring, careful (`orders`), and traced (`traced`).
#![forbid(unsafe_code)]

mod early;
mod merges;
mod promoted;
mod traced;

use super::ops::{self, After};
use super::role::Role;
use super::run_tape::RunTape;
use super::shown::Show;
use crate::base::time::{clock_ns, now_ns};
use crate::base::{Error, Ref};
use crate::graph::carry::arrivals::Arrival;
use crate::graph::carry::learned::Learned;
use crate::graph::carry::state::RunState;
use crate::graph::plan::{Body, DIRECT, Plan, Release};
use crate::sync::Exit;
use crate::threadpool::ThreadPool;
use crate::trace::TraceEvent;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::*;

/// How much work must be waiting for some of it to go to a worker that looks around, in nanoseconds.
pub(in crate::graph) const SHARE_NS: u64 = 500;

/// The next step after `share`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::graph) enum Go {
    On,
    /// Out of the `parallel_for`: this worker's nodes are to be put on offer.
    Out,
}

/// The versions of the loops, here and in `serial`: without a read of the clock; with two for each node; with checks of
/// the run's orders, too; and one that writes to traces, and does what else the run asks for.
pub(in crate::graph) const FAST: u8 = 0;
pub(in crate::graph) const MEASURED: u8 = 1;
pub(in crate::graph) const CAREFUL: u8 = 2;
pub(in crate::graph) const TRACED: u8 = 3;

/// End of a list.
pub(in crate::graph) const NONE: u32 = u32::MAX;

/// A list of ready nodes, linked through the state's links, the newest first; and their worth.
#[derive(Clone, Copy)]
pub(in crate::graph) struct ReadyList {
    pub first: u32,
    pub worth_ns: u64,
}

pub(in crate::graph) const EMPTY: ReadyList = ReadyList { first: NONE, worth_ns: 0 };

pub(in crate::graph) struct Worker<'a, const MODE: u8> {
    pub(in crate::graph) state: &'a Arc<RunState>,
    pub(in crate::graph) plan: &'a Plan,
    pub(in crate::graph) learned: &'a Learned,
    pub(in crate::graph) pool: Option<&'a Ref<ThreadPool>>,
    pub(in crate::graph) generation: u64,
    /// This worker's queue; `None` for one more worker than there are queues (it offers nothing).
    pub(in crate::graph) own: Option<usize>,
    pub(in crate::graph) role: Role,
    pub(in crate::graph) list: ReadyList,
    /// The nodes that the run shows; and whether this worker has shown some for which no thread was called.
    pub(in crate::graph) show: Show,
    pub(in crate::graph) has_shown: bool,
    /// The cheap work done since the last look at the shown nodes, in nanoseconds.
    pub(in crate::graph) unseen_ns: u64,
    /// It no longer counts as asked for.
    pub(in crate::graph) has_made_room: bool,
    /// The node in hand, in case it panics.
    current: u32,
    /// Ends reached and not yet reported.
    pub(in crate::graph) done: u32,
    /// How many more times not to look for something to share.
    pub(in crate::graph) patience: u32,
    /// The worth of all nodes that this worker has taken from others.
    pub(in crate::graph) taken_ns: u64,
    /// It has offered something and run no node since.
    pub(in crate::graph) has_offered: bool,
    /// It has run a node.
    pub(in crate::graph) has_run: bool,
    /// Nodes of unknown cost are measured, in any run.
    has_new: bool,
    /// Leave as soon as there is nothing in hand.
    pub(in crate::graph) out: bool,
    /// The last read of the clock. Only careful workers keep it.
    at_ns: Cell<u64>,
    /// The tape of a traced worker; and the node behind which it makes arrivals.
    pub(in crate::graph) tape: Option<RunTape<'a>>,
    from: u32,
}

impl<'a, const MODE: u8> Worker<'a, MODE> {
    pub fn new(state: &'a Arc<RunState>, pool: Option<&'a Ref<ThreadPool>>, generation: u64, role: Role) -> Self {
        let own = state.owners.claim();
        Worker {
            state,
            plan: state.plan(),
            learned: state.learned(),
            pool,
            generation,
            own,
            role,
            list: EMPTY,
            show: state.shown(),
            has_shown: false,
            unseen_ns: u64::MAX / 2,
            has_made_room: false,
            current: NONE,
            done: 0,
            patience: 0,
            taken_ns: 0,
            has_offered: false,
            has_run: false,
            has_new: state.learned().has_new.load(Relaxed),
            out: false,
            at_ns: Cell::new(if MODE == CAREFUL { now_ns() } else { 0 }),
            tape: (MODE == TRACED).then(|| RunTape::open(state, role.carrier())),
            from: NONE,
        }
    }

    /// Works until there is nothing to do, and leaves the run.
    pub fn work(mut self) -> Exit {
        self.work_and_leave()
    }

    /// As `work`, for a worker that brings no nodes of its own; and whether it found any.
    pub(in crate::graph) fn visit(mut self) -> (Exit, bool) {
        let exit = self.work_and_leave();
        (exit, self.taken_ns > 0)
    }

    fn work_and_leave(&mut self) -> Exit {
        let mut interrupted = None;
        // Caught here and not around each node: a panic is a defect of a kernel, and this costs nothing while there is
        // none.
        while let Err(payload) = catch_unwind(AssertUnwindSafe(|| self.drain(interrupted))) {
            let error = Error::from_panic(&*payload);
            std::mem::forget(payload);
            if self.current == NONE {
                // Not in a node: the executor itself is broken. Its lost arrivals are unknown, so the run cannot be
                // closed, and its tensors must not be released while other workers may use them.
                self.state.fail(None, error);
                break;
            }
            self.state.fail_at(self.current, &error);
            self.trace_panic(self.current);
            interrupted = Some(std::mem::replace(&mut self.current, NONE));
        }
        if let Some(own) = self.own {
            self.state.owners.give_back(own);
        }
        if matches!(self.role, Role::Helper | Role::BulkHelper) {
            self.make_room();
        }
        if MODE == TRACED {
            drop(self.tape.take());
        }
        self.state.latch.leave(self.done)
    }

    /// Runs all nodes there are; begins behind the node in which it was interrupted.
    fn drain(&mut self, interrupted: Option<u32>) {
        if let Some(next) = interrupted.and_then(|node| self.finish(node, After::Edges)) {
            self.chain(next);
        }
        loop {
            if !self.out {
                self.take_up();
            }
            if let Some(node) = self.next_node() {
                self.chain(node);
                continue;
            }
            if self.out {
                return;
            }
            if self.list.first != NONE {
                // Put back for completed nodes, which others have taken up.
                continue;
            }
            match self.take().or_else(|| self.look_around()) {
                Some(offer) => {
                    self.taken_ns += u64::from(offer.worth_ns.max(1));
                    self.trace_note(TraceEvent::Take, offer.first, NONE);
                    // The call for this one may have been meant for others, too.
                    self.has_shown |= self.state.shows_work();
                    self.list = ReadyList { first: offer.first, worth_ns: u64::from(offer.worth_ns) };
                }
                None if self.state.calls.returns.any() || !self.may_leave() => {}
                None => return,
            }
        }
    }

    /// Takes up completed nodes.
    #[inline]
    fn take_up(&mut self) {
        if self.state.calls.returns.any()
            && let Some(first) = self.state.calls.returns.take()
        {
            self.take_up_from(first);
        }
    }

    #[cold]
    fn take_up_from(&mut self, mut node: u32) {
        if MODE == CAREFUL {
            self.at_ns.set(now_ns());
        }
        if let Some(tape) = self.tape() {
            let _ = tape.stamp();
        }
        while node != NONE {
            // The link is the node's again as soon as the next one is ready.
            let below = self.next_of(node);
            if let Body::Async(call) = self.plan.bodies[node as usize]
                && self.state.is_under_way(call)
            {
                // Others may have it, like any ready node.
                self.push(node);
            } else {
                self.trace_note(TraceEvent::Return, node, NONE);
                self.is_over(node);
                if let Some(next) = self.finish(node, After::Edges) {
                    self.push(next);
                }
            }
            node = below;
        }
    }

    /// Runs a node, then its best ready successor, and so on.
    fn chain(&mut self, mut node: u32) {
        loop {
            self.current = node;
            let after = self.run(node);
            self.current = NONE;
            self.has_offered = false;
            self.has_run = true;
            match self.finish(node, after) {
                Some(next) => node = next,
                None => return,
            }
        }
    }

    /// Makes the arrivals behind a node; returns the node to continue with.
    fn finish(&mut self, node: u32, after: After) -> Option<u32> {
        if MODE == TRACED {
            self.from = node;
        }
        let next = match after {
            After::Edges => self.propagate(node),
            After::Release(release) => self.release(release),
            After::Branch(select, taken) => self.begin_branch(select, taken),
            After::Later => None,
            After::Start(release) => self.start(self.plan.starts(release)),
            After::Retire(slot) => self.retire(slot),
            After::Nothing(uncounted) => {
                self.done += uncounted;
                self.follow_edges(node)
            }
        };
        if self.show != Show::Nothing {
            return next.and_then(|next| self.choose(Some(next)));
        }
        match next {
            Some(next) if self.list.worth_ns > SHARE_NS => self.weigh_up(next),
            _ => next,
        }
    }

    /// Before it continues with a node: shares some of its list.
    pub(in crate::graph) fn weigh_up(&mut self, next: u32) -> Option<u32> {
        if self.role == Role::BulkCaller {
            // It may come back late.
            self.push(next);
            let _ = self.share();
            return self.pop_one();
        }
        if self.share() == Go::Out {
            self.push(next);
            return if self.offer_all() { None } else { self.pop_one() };
        }
        Some(next)
    }

    fn run(&self, node: u32) -> After {
        let (state, plan) = (self.state, self.plan);
        let body = plan.bodies[node as usize];
        if self.is_careful() && (plan.is_step(node) || matches!(body, Body::Next(_))) {
            state.look_at_clock(node);
        }
        let stopped = state.is_stopped();
        let absent = !stopped && !plan.absence.own.is_empty() && state.skips(node as usize);
        if stopped || absent {
            return self.skip(node, body, stopped);
        }
        if MODE == CAREFUL {
            self.at_ns.set(now_ns());
        }
        match body {
            Body::Select(index) => {
                let select = &plan.selects[index as usize];
                if self.is_careful() && state.reports_progress() {
                    state.takes(node, state.branch(select));
                }
                return if select.is_early {
                    ops::choose(state, index)
                } else {
                    After::Release(state.branch(select).release)
                };
            }
            Body::Enter(index) => return self.enter(index as usize),
            Body::Next(index) => return self.next(index as usize),
            Body::Test(index) => return self.test(index as usize),
            Body::Guard(slot) => return self.guard(slot),
            Body::Retire(slot) => return After::Retire(slot),
            Body::End => return After::Edges,
            // It was measured when it began.
            Body::Async(call) if state.is_under_way(call) => return self.call_again(node, call),
            _ if MODE == TRACED => return self.run_traced(node, body),
            _ => {}
        }
        let is_new = MODE == FAST && self.has_new && self.learned.is_new(node);
        let start = match MODE {
            FAST if !is_new => 0,
            CAREFUL => self.at_ns.get(),
            _ => now_ns(),
        };
        if MODE == CAREFUL {
            state.begun(node as usize, start);
        }
        let mut after = After::Edges;
        if let Body::Async(call) = body {
            after = self.call(call);
        } else if let Err(error) = state.compute(body, self.pool) {
            state.fail_at(node, &error);
        }
        if MODE != FAST || is_new {
            let end = now_ns();
            state.measured(node as usize, (end - start).saturating_sub(clock_ns()));
            self.at_ns.set(end);
            if MODE == CAREFUL && !matches!(after, After::Later) {
                state.is_over(node, || end);
            }
        }
        after
    }

    /// A node that completes later.
    fn call(&self, index: u32) -> After {
        if self.state.call(index, self.pool) { After::Edges } else { After::Later }
    }

    fn test(&self, index: usize) -> After {
        let looped = &self.plan.loops[index];
        if self.state.goes_on(looped) {
            if self.is_careful() {
                self.state.look_at_clock(looped.first);
                if self.state.is_stopped() {
                    return After::Edges;
                }
                self.state.begins_body(index);
            }
            return After::Release(looped.release_body);
        }
        if self.is_careful() {
            self.state.leaves(index);
        }
        if MODE != FAST {
            let iterations = self.state.iterations[index].load(Relaxed);
            self.learned.count_iterations(self.plan, looped, iterations);
        }
        After::Edges
    }

    /// A node that is not run because the run has stopped, or because one of its inputs is absent.
    #[cold]
    fn skip(&self, node: u32, body: Body, stopped: bool) -> After {
        if let Body::Async(call) = body
            && self.state.is_under_way(call)
        {
            // A call in flight is completed.
            return self.call(call);
        }
        if stopped && self.plan.is_step(node) {
            self.state.left_out(node);
        }
        if !stopped && self.is_careful() {
            self.state.is_passed_over(node);
        }
        match body {
            Body::Select(index) => ops::choose_none(self.state, &self.plan.selects[index as usize]),
            Body::Enter(index) => After::Nothing(self.plan.loops[index as usize].uncounted),
            // Its iteration is the last.
            Body::Guard(slot) => After::Start(self.plan.slots[slot as usize].retire),
            Body::Retire(slot) => After::Retire(slot),
            Body::Merge(index) => {
                let _ = self.state.merges[index as usize].take();
                After::Edges
            }
            // A loop that has stopped ends here; its Test says so.
            Body::Next(index) => {
                let looped = &self.plan.loops[index as usize];
                After::Release(Release { first: looped.stop, end: looped.stop + 1 })
            }
            _ => After::Edges,
        }
    }

    pub(in crate::graph) fn hop_ns(&self) -> u64 {
        self.plan.hop_ns.unwrap_or_else(|| self.pool.map_or(0, |pool| pool.worth_ns() as u64))
    }

    /// Makes a finished node's arrivals; one without successors is an end.
    fn propagate(&mut self, node: u32) -> Option<u32> {
        self.done += u32::from(self.plan.edges(node as usize).is_empty());
        self.follow_edges(node)
    }

    /// Notes when a node has become ready, for its statistics.
    #[inline]
    pub(in crate::graph) fn is_ready(&self, node: u32) {
        if MODE == CAREFUL {
            self.state.is_ready(node as usize, self.at_ns.get());
        }
        if let Some(tape) = self.tape() {
            tape.ready(node, self.from);
        }
    }

    /// The first target that becomes ready is returned, the others go onto the list.
    fn follow_edges(&mut self, node: u32) -> Option<u32> {
        let mut next = None;
        for edge in self.plan.edges(node as usize) {
            if edge.counter != DIRECT && !self.arrive(edge.counter) {
                continue;
            }
            self.is_ready(edge.target);
            match next {
                None => next = Some(edge.target),
                Some(_) => self.push(edge.target),
            }
        }
        next
    }

    fn release(&mut self, release: Release) -> Option<u32> {
        let (first, rest) = self.plan.releases[release.first as usize..release.end as usize].split_first()?;
        // The first is the most urgent; the worker continues with it, and the next ones are popped first.
        for &node in rest.iter().rev() {
            self.is_ready(node);
            self.push(node);
        }
        self.is_ready(*first);
        Some(*first)
    }

    /// One arrival at a counter; true if the node is ready, and then the counter has its start value again.
    fn arrive(&self, index: u32) -> bool {
        let Some(&start) = self.plan.counters.get(index as usize) else { return self.arrive_at_merge(index) };
        if self.state.counters[index as usize].arrive(1, false, start) != Arrival::Ready {
            return false;
        }
        match index.checked_sub(self.plan.first_leaf) {
            None => true,
            Some(leaf) => self.arrive(self.plan.leaf_of[leaf as usize]),
        }
    }

    pub(in crate::graph) fn worth(&self, node: u32) -> u64 {
        u64::from(self.learned.worth[node as usize].load(Relaxed))
    }

    pub(in crate::graph) fn next_of(&self, node: u32) -> u32 {
        // ORDERING: Relaxed here and in `link`; the links of a list are this worker's until `WorkQueue` publishes it.
        self.state.links[node as usize].load(Relaxed)
    }

    pub(in crate::graph) fn link(&self, node: u32, next: u32) {
        self.state.links[node as usize].store(next, Relaxed);
    }

    /// A node that is ready, and with which this worker does not continue at once.
    #[inline]
    pub(in crate::graph) fn push(&mut self, node: u32) {
        match self.state.place_of(self.show, node) {
            None => self.push_cheap(node),
            Some(place) => {
                self.state.ready.insert(place);
                self.has_shown = true;
            }
        }
    }

    #[inline]
    pub(in crate::graph) fn push_cheap(&mut self, node: u32) {
        self.link(node, self.list.first);
        self.list.first = node;
        self.list.worth_ns += self.worth(node);
    }

    fn next_node(&mut self) -> Option<u32> {
        if self.show != Show::Nothing {
            return self.choose(None);
        }
        let node = self.pop_one()?;
        // The node in hand does not count: it keeps this worker busy, the rest may be worth a hop.
        if self.list.worth_ns > SHARE_NS { self.weigh_up(node) } else { Some(node) }
    }

    pub(in crate::graph) fn pop_one(&mut self) -> Option<u32> {
        let node = self.list.first;
        if node == NONE {
            return None;
        }
        self.list.first = self.next_of(node);
        self.list.worth_ns = self.list.worth_ns.saturating_sub(self.worth(node));
        Some(node)
    }
}

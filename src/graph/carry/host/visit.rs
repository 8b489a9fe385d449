//! Threads that join a run that another thread has opened: helpers that the pool sends, and workers that wait for the
//! run.
#![forbid(unsafe_code)]

use super::role::Role;
use super::worker::{CAREFUL, FAST, MEASURED, TRACED, Worker};
use crate::base::Ref;
use crate::base::time::Deadline;
use crate::graph::carry::state::RunState;
use crate::kernel::BeginOutcome;
use crate::stream::{JoinOutcome, Joinable};
use crate::sync::{Exit, RunEntry, ambient};
use crate::threadpool::{HelpAnswer, HelpRequest, Job, ThreadPool};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// How long the caller spins for the end of a run before it sleeps: the last nodes are running.
pub(in crate::graph) const JOIN_SPIN_NS: u64 = 20_000;

impl RunState {
    /// For a thread that has entered: works until there is nothing to do, and leaves. False if it did nothing.
    pub(in crate::graph) fn visit(self: &Arc<Self>, pool: Option<&Ref<ThreadPool>>) -> bool {
        // A node of the run itself must not wait for it.
        let (exit, done) = if ambient::within(ambient::ActiveWork::Run(self.id)) {
            (self.latch.leave(0), false)
        } else {
            let _lineage = self.lineage.enter();
            let _frame = ambient::enter(ambient::ActiveWork::Run(self.id));
            let generation = self.latch.generation();
            match self.mode() {
                TRACED => Worker::<TRACED>::new(self, pool, generation, Role::Visitor).visit(),
                CAREFUL => Worker::<CAREFUL>::new(self, pool, generation, Role::Visitor).visit(),
                MEASURED => Worker::<MEASURED>::new(self, pool, generation, Role::Visitor).visit(),
                _ => Worker::<FAST>::new(self, pool, generation, Role::Visitor).visit(),
            }
        };
        // The caller may wait for this (`stays_in_bulk`).
        self.calls.news.advance(1);
        if exit == Exit::Closed {
            self.close();
        }
        done
    }
}

/// The part of a run whose owner, a caller that blocks, sleeps: others begin what its pools have not begun.
pub(super) const OF_SLEEPER: u64 = u64::MAX;

/// A thread that waits for the stream of a run joins in.
impl Joinable for RunState {
    fn join(self: Arc<Self>, generation: u64, may_work: bool) -> JoinOutcome {
        if generation == OF_SLEEPER {
            let is_awake = self.calls.returns.any() || self.latch.is_finished() || self.latch.inside() > 0;
            return if is_awake { JoinOutcome::Others } else { self.join_pending() };
        }
        let mut done = false;
        if may_work
            && !ambient::within(ambient::ActiveWork::Run(self.id))
            && self.latch.enter(generation) == RunEntry::Inside
        {
            // The run is not over while this thread is inside.
            let pool = self.visitors.lock().clone();
            if pool.as_ref().is_none_or(|pool| pool.may_work_here()) {
                done = self.visit(pool.as_ref());
            } else if self.latch.leave(0) == Exit::Closed {
                self.close();
            }
        }
        // A thread that is about to end the run, or to call the owner, works on it, too.
        let is_pending = || {
            let latch = &self.latch;
            latch.generation() == generation && !latch.is_finished() && latch.inside() == 0 && !self.calls.returns.any()
        };
        match done {
            true => JoinOutcome::Worked,
            false if is_pending() => self.join_pending(),
            false => JoinOutcome::Others,
        }
    }
}

impl RunState {
    /// No thread is in the run: it waits for calls.
    fn join_pending(&self) -> JoinOutcome {
        match self.begin_blocking() {
            BeginOutcome::Done => JoinOutcome::Worked,
            BeginOutcome::Later => JoinOutcome::Others,
            BeginOutcome::Nothing => JoinOutcome::Nobody,
        }
    }

    /// A helper that the pool sends, or the caller in its own `parallel_for`.
    pub(in crate::graph) fn help(self: &Arc<Self>, generation: u64, pool: &Ref<ThreadPool>) {
        let role = if ambient::within_bulk_of(self.id) {
            Role::CallerInBulk
        } else if ambient::within(ambient::ActiveWork::Run(self.id)) || ambient::within_device() {
            // A pool that runs tasks at once was asked by a device's thread, which must not be kept: nothing depends on
            // a helper.
            return;
        } else {
            Role::of_helper(pool)
        };
        let frame = ambient::enter(ambient::ActiveWork::Run(self.id));
        loop {
            let seen = self.calls.news.reached();
            if self.latch.enter(generation) == RunEntry::Over {
                return;
            }
            let exit = if role == Role::BulkHelper && !self.helpers.stays_in_bulk() {
                self.latch.leave(0)
            } else {
                let _lineage = self.lineage.enter();
                self.work_as(role, Some(pool), generation)
            };
            if exit == Exit::Closed {
                drop(frame);
                return self.close();
            }
            if role == Role::BulkHelper {
                self.calls.news.advance(1);
            }
            if role != Role::CallerInBulk || !self.stays_in_bulk(seen) {
                return;
            }
        }
    }
}

impl RunState {
    /// The job for a pool that brings a thread.
    pub(in crate::graph) fn invitation(&self) -> Arc<dyn Job> {
        Arc::clone(&self.invitation) as Arc<dyn Job>
    }

    /// Has the pool bring one more worker, for which a place was taken: by a closure of its own, or, if other work has
    /// the pool's threads now, by the first of them that is done. False if none comes; the place is then given back, or
    /// all are filled because the pool refuses.
    pub(in crate::graph) fn bring_one(self: &Arc<Self>, pool: &Ref<ThreadPool>, generation: u64, cost_ns: u64) -> bool {
        if pool.take_helpers(1, pool.num_threads()) == 0 {
            match self.wants_thread(pool, generation) {
                HelpAnswer::Now => return true,
                HelpAnswer::Granted => {}
                HelpAnswer::Not => {
                    self.helpers.give_place();
                    return false;
                }
            }
        }
        let accepted = pool.spawn_taken(self.invitation(), generation, cost_ns);
        if !accepted {
            self.helpers.fill_places();
        }
        accepted
    }

    fn wants_thread(self: &Arc<Self>, pool: &Ref<ThreadPool>, generation: u64) -> HelpAnswer {
        let width = pool.num_threads();
        let mut want = self.want.lock();
        if want.is_none() {
            *want = HelpRequest::claim(pool);
            // ORDERING: Relaxed; read by the thread that closes the run, after all others have left it.
            self.has_want.store(true, Relaxed);
        }
        want.as_ref().map_or(HelpAnswer::Not, |want| want.want(self.invitation(), generation, width))
    }

    /// For a closed run.
    pub(in crate::graph) fn wants_no_thread(&self) {
        if self.has_want.load(Relaxed) {
            self.has_want.store(false, Relaxed);
            drop(self.want.lock().take());
        }
    }

    /// The caller in its `parallel_for`, out of work: waits for news while others in the run may have some, instead of
    /// at the barrier where it cannot be reached. False if there is no reason to stay. `seen`: the news before it went
    /// to work. The run does not close meanwhile, because the caller is in it a second time, outside of the
    /// `parallel_for`; so each of the others tells when it leaves. A thread that has not come yet does not count: it
    /// leaves again at once.
    fn stays_in_bulk(&self, seen: u64) -> bool {
        // Nodes that complete later come back to the thread that has opened the run.
        if self.has_calls() || self.latch.is_finished() {
            return false;
        }
        // The others have left this call, and it calls them again, perhaps for what it has shown. One that comes now,
        // and stays, could call nobody while this thread is at the barrier.
        let is_alone = || self.latch.inside() == 1;
        let is_left = is_alone() || self.helpers.asked() == 0 && self.shows_work();
        if is_left && self.helpers.closes_bulk(is_alone) {
            return false;
        }
        if self.helpers.goes_away(|| self.shows_work()) {
            self.calls.news.wait(seen + 1, JOIN_SPIN_NS, Deadline::NEVER);
        }
        self.helpers.is_back();
        true
    }
}

//! Threads that come into a run which others have opened: helpers that the pool sends, and workers that wait for the
//! run.
#![forbid(unsafe_code)]

use super::role::Role;
use super::worker::{CAREFUL, FAST, MEASURED, Worker};
use crate::base::Ref;
use crate::base::time::Deadline;
use crate::graph::carry::state::RunState;
use crate::kernel::BeginOutcome;
use crate::stream::{Joinable, Joined};
use crate::sync::{Entry, Exit, ambient};
use crate::threadpool::{Job, ThreadPool, Want, Wanted};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// How long the caller looks for the end of a run before it sleeps: what it waits for is running.
pub(in crate::graph) const JOIN_SPIN_NS: u64 = 20_000;

impl RunState {
    /// By a thread that has entered: works until there is nothing to do, and leaves. False if it did nothing.
    pub(in crate::graph) fn visit(self: &Arc<Self>, pool: Option<&Ref<ThreadPool>>) -> bool {
        // A node of the run itself must not wait for it.
        let (exit, done) = if ambient::within(ambient::Work::Run(self.id)) {
            (self.tokens.leave(0), false)
        } else {
            let _lineage = self.lineage.enter();
            let _frame = ambient::enter(ambient::Work::Run(self.id));
            let generation = self.tokens.generation();
            match self.mode() {
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

/// Who waits for the stream of a run joins in.
impl Joinable for RunState {
    fn join(self: Arc<Self>, generation: u64, may_work: bool) -> Joined {
        let mut done = false;
        if may_work && !ambient::within(ambient::Work::Run(self.id)) && self.tokens.enter(generation) == Entry::Inside {
            // The run is not over while this thread is inside.
            let pool = self.visitors.lock().clone();
            if pool.as_ref().is_none_or(|pool| pool.may_work_here()) {
                done = self.visit(pool.as_ref());
            } else if self.tokens.leave(0) == Exit::Closed {
                self.close();
            }
        }
        // Who is about to end the run, or to bring the owner, is at it, too.
        let is_pending = || {
            let tokens = &self.tokens;
            tokens.generation() == generation
                && !tokens.is_finished()
                && tokens.inside() == 0
                && !self.calls.returns.any()
        };
        match done {
            true => Joined::Worked,
            false if is_pending() => match self.begin_blocking() {
                BeginOutcome::Done => Joined::Worked,
                BeginOutcome::Later => Joined::Others,
                BeginOutcome::Nothing => Joined::Nobody,
            },
            false => Joined::Others,
        }
    }
}

impl RunState {
    /// A helper that the pool sends, or the caller in its own `parallel_for`.
    pub(in crate::graph) fn help(self: &Arc<Self>, generation: u64, pool: &Ref<ThreadPool>) {
        let role = if ambient::within_bulk_of(self.id) {
            Role::CallerInBulk
        } else if ambient::within(ambient::Work::Run(self.id)) || ambient::within_device() {
            // A pool that runs tasks at once was asked by a device's thread, which is not to be kept: nothing depends
            // on a helper.
            return;
        } else {
            Role::of_helper(pool)
        };
        let frame = ambient::enter(ambient::Work::Run(self.id));
        loop {
            let seen = self.calls.news.reached();
            if self.tokens.enter(generation) == Entry::Over {
                return;
            }
            let lineage = self.lineage.enter();
            let exit = self.work_as(role, Some(pool), generation);
            drop(lineage);
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
    /// The job that a pool is given to bring a thread.
    pub(in crate::graph) fn invitation(&self) -> Arc<dyn Job> {
        Arc::clone(&self.invitation) as Arc<dyn Job>
    }

    /// Has the pool bring one worker more, for whom a place was taken: by a closure of his own, or, where other work has
    /// the pool's threads now, by the first of them that is done. False if nobody comes; the place is given back then, or
    /// all are filled because the pool refuses.
    pub(in crate::graph) fn bring_one(self: &Arc<Self>, pool: &Ref<ThreadPool>, generation: u64, cost_ns: u64) -> bool {
        if pool.take_helpers(1, pool.num_threads()) == 0 {
            match self.wants_thread(pool, generation) {
                Wanted::Now => return true,
                Wanted::Granted => {}
                Wanted::Not => {
                    self.hands.give_place();
                    return false;
                }
            }
        }
        let accepted = pool.spawn_taken(self.invitation(), generation, cost_ns);
        if !accepted {
            self.hands.fill_places();
        }
        accepted
    }

    fn wants_thread(self: &Arc<Self>, pool: &Ref<ThreadPool>, generation: u64) -> Wanted {
        let width = pool.num_threads();
        let mut want = self.want.lock();
        if want.is_none() {
            *want = Want::claim(pool);
            // ORDERING: Relaxed; read by who closes the run, after all others have left it.
            self.has_want.store(true, Relaxed);
        }
        want.as_ref().map_or(Wanted::Not, |want| want.want(self.invitation(), generation, width))
    }

    /// Of a closed run.
    pub(in crate::graph) fn wants_no_thread(&self) {
        if self.has_want.load(Relaxed) {
            self.has_want.store(false, Relaxed);
            drop(self.want.lock().take());
        }
    }

    /// The caller in its `parallel_for`, out of work: waits for news while others are in the run who may have some,
    /// instead of at the barrier where nobody can reach it. False if there is no reason to stay. `seen`: the news
    /// before it went to work. The run does not close meanwhile, because the caller is in it a second time, outside of
    /// the `parallel_for`; so each of the others tells when it leaves. Who has not come yet, or comes too late for this
    /// run, does not count: it would tell nobody.
    fn stays_in_bulk(&self, seen: u64) -> bool {
        // What completes later comes back to whoever has opened the run.
        if self.has_calls() || self.tokens.is_finished() || self.tokens.inside() == 1 {
            return false;
        }
        // It has come out for those who have left this call, and will call them again.
        if self.hands.asked() == 0 && self.shows_work() {
            return false;
        }
        if self.hands.goes_away(|| self.shows_work()) {
            self.calls.news.wait(seen + 1, JOIN_SPIN_NS, Deadline::NEVER);
        }
        self.hands.is_back();
        true
    }
}

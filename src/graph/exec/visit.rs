//! Threads that come into a run which others have opened: helpers that the pool sends, and workers that wait for the run.

use super::role::Role;
use super::step::Step;
use super::worker::{CAREFUL, FAST, Worker};
use crate::base::Ref;
use crate::sync::{Entry, Exit, ambient};
use crate::threadpool::{Job, ThreadPool};
use std::sync::Arc;

impl Step {
    /// By a thread that has entered: works until there is nothing to do, and leaves. False if it did nothing.
    pub(super) fn visit(self: &Arc<Self>, pool: Option<&Ref<ThreadPool>>) -> bool {
        // A node of the run itself must not wait for it.
        let (exit, done) = if ambient::within(ambient::Work::Run(self.id)) {
            (self.tokens.leave(0), false)
        } else {
            let _frame = ambient::enter(ambient::Work::Run(self.id));
            let generation = self.tokens.generation();
            if self.is_careful() {
                Worker::<CAREFUL>::new(self, pool, generation, Role::Visitor).visit()
            } else {
                Worker::<FAST>::new(self, pool, generation, Role::Visitor).visit()
            }
        };
        if exit == Exit::Closed {
            self.close();
        }
        done
    }
}

/// A helper that the pool sends.
impl Job for Step {
    fn run(self: Arc<Self>, generation: u64, _index: usize, pool: &Ref<ThreadPool>) {
        if ambient::within(ambient::Work::Run(self.id)) || self.tokens.enter(generation) == Entry::Over {
            return;
        }
        let exit = {
            let _frame = ambient::enter(ambient::Work::Run(self.id));
            let role = Role::of_helper(pool);
            if self.is_careful() {
                Worker::<CAREFUL>::new(&self, Some(pool), generation, role).work()
            } else {
                Worker::<FAST>::new(&self, Some(pool), generation, role).work()
            }
        };
        if exit == Exit::Closed {
            self.close();
        }
    }
}

//! How threads come into a run.
#![forbid(unsafe_code)]

use crate::base::Ref;
use crate::graph::carry::traced::Carrier;
use crate::threadpool::ThreadPool;

/// How a worker came into the run, which decides how it can call others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::graph) enum Role {
    /// The thread that opened it.
    Caller,
    /// The thread that opened it, on a pool that takes no single jobs: it asks through `parallel_for`, and blocks in
    /// it.
    BulkCaller,
    /// The same within that `parallel_for`.
    CallerInBulk,
    /// Sent by the pool, one at a time.
    Helper,
    /// Sent by the pool within a `parallel_for`.
    BulkHelper,
    /// A worker of the pool that waits for the run, and helps it meanwhile. It was not asked for.
    Visitor,
}

impl Role {
    pub fn carrier(self) -> Carrier {
        match self {
            Role::Caller | Role::BulkCaller | Role::CallerInBulk => Carrier::Caller,
            Role::Helper | Role::BulkHelper => Carrier::Helper,
            Role::Visitor => Carrier::Visitor,
        }
    }

    /// Within a `parallel_for` that asked for all.
    pub fn is_in_bulk(self) -> bool {
        matches!(self, Role::CallerInBulk | Role::BulkHelper)
    }

    pub fn of_caller(pool: Option<&Ref<ThreadPool>>) -> Role {
        if pool.is_some_and(|pool| !pool.can_spawn()) { Role::BulkCaller } else { Role::Caller }
    }

    pub fn of_helper(pool: &Ref<ThreadPool>) -> Role {
        if pool.can_spawn() { Role::Helper } else { Role::BulkHelper }
    }
}

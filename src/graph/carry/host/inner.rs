//! A run that is a call of another run: a program as a node, with kernels that complete later.
//!
//! To the outer run the node is such a kernel itself. Its call is made in rounds (`kernel::Rest`). In a round a worker
//! of the outer run works in the inner one, as its owner, until that is closed, or until nothing is left to do before
//! something completes; then it leaves the rest of the call and continues with other nodes. No thread waits, and none
//! is bound to the inner run meanwhile.
//!
//! # The end of a round
//!
//! The owner's role is protected by a `DrainLock`, and the completion of the round in flight is stored beside it:
//!
//! | lock     | meaning                                     | left by                                               |
//! |----------|---------------------------------------------|-------------------------------------------------------|
//! | IDLE     | the state serves no such run                | HELD by `start_inside`                                |
//! | HELD     | a worker of the outer run works in this one | PARKED by `park`; NOTIFIED by `tell`; IDLE at the end |
//! | NOTIFIED | the same, and there is news                 | `park` fails; it looks again                          |
//! | PARKED   | the run waits for calls that were started   | CALLED by `tell`, which ends the round                |
//! | CALLED   | the rest is on its way to a worker          | HELD by `go_on`                                       |
//!
//! News is a completion that finds the owner asleep in `Returns`, or the close of the run by a helper that was the last
//! one out. The thread that brings news and finds the lock PARKED ends the round by its completion; it is the only one,
//! so a completion is used once. From then on the node is like every node that completes later: if the worker that made
//! the round has left, the node goes onto the outer run's `Returns`, the outer run's owner is told, which may be a node
//! in turn, and any of its workers takes the node up, as a ready node of its list. So however deeply runs are nested,
//! the thread that completes a kernel runs no node of any of them.
//!
//! The worker that parks no longer touches the call. News of a run that is over may reach the state's next run; it is a
//! hint to look, as it is to all owners.
//!
//! # Ends
//!
//! The inner run is attached to the stop word of the outer run's calls until it is over, and has the same deadline. A
//! node in flight is continued in a stopped run too: the calls that it has started are waited for, and only then is the
//! outer run over.

use crate::base::{Error, Result};
use crate::graph::carry::calls::{NestedRun, StateHome};
use crate::graph::carry::orders::Orders;
use crate::graph::carry::state::RunState;
use crate::kernel::{Completion, KernelContext, Outputs, Rest, Stoppable};
use crate::sync::{DrainGuard, Exit};
use std::any::Any;
use std::sync::Arc;

impl RunState {
    /// Begins the run as a call of another one, over that one's tensors; on an error it was not begun.
    ///
    /// # Safety
    /// The caller owns the state, which is closed, and has pointed it at these tensors.
    pub(in crate::graph) unsafe fn start_inside(
        self: &Arc<Self>,
        home: Arc<dyn StateHome>,
        context: &KernelContext<'_>,
        outputs: Outputs<'_>,
        done: Completion,
    ) -> Result<()> {
        let Some(stop) = context.kept_stop() else { return Err(Error::internal("a call that does not last")) };
        let Some(mut owner) = self.calls.rounds.drain_lock.hold() else {
            return Err(Error::internal("a state in use"));
        };
        self.obey(Orders::inside(stop).as_ref());
        *owner = Some(NestedRun {
            home,
            attached: stop.attach_kept(Arc::clone(self) as Arc<dyn Stoppable>),
            closed: self.closed.reached() + 1,
        });
        let exit = context.with_pool(|pool| self.open_and_work(pool));
        self.round(owner, exit, (context, outputs), done);
        Ok(())
    }

    /// Works until the run is closed, which ends the call, or until the owner must be told of something.
    fn round(
        self: &Arc<Self>,
        mut owner: DrainGuard<'_, Option<NestedRun>>,
        mut exit: Exit,
        (context, outputs): (&KernelContext<'_>, Outputs<'_>),
        done: Completion,
    ) {
        let closed = owner.as_ref().map_or(0, |inner| inner.closed);
        loop {
            if exit == Exit::Open {
                exit = context.with_pool(|pool| self.work_until_asleep(pool));
            }
            if exit == Exit::Closed || self.closed.reached() >= closed {
                let inner = owner.take();
                drop(owner);
                return self.end_inside(inner, (context, outputs), done);
            }
            done.leave(Some(Arc::clone(self) as Arc<dyn Rest>));
            // Empty: that of the last round was taken by the thread that ended it.
            let _ = self.calls.rounds.told.put(done);
            match owner.park() {
                Ok(()) => return,
                Err(again) => {
                    owner = again;
                    let _ = self.calls.rounds.told.take();
                    done.leave(None);
                }
            }
        }
    }

    fn end_inside(
        self: &Arc<Self>,
        inner: Option<NestedRun>,
        (context, mut outputs): (&KernelContext<'_>, Outputs<'_>),
        done: Completion,
    ) {
        self.calls.returns.wake();
        let result = match inner {
            None => Err(Error::internal("a run without a program")),
            Some(NestedRun { home, attached, .. }) => {
                // Before the result is taken: a stop is part of it or does nothing; else it would stop the state's next
                // run.
                drop(attached);
                // SAFETY: the run is closed, and its owner is here.
                let mut publish = || unsafe { self.publish_to(context, &mut outputs) };
                let result = self.result().and_then(|()| publish());
                home.give_back(Arc::clone(self) as Arc<dyn Any + Send + Sync>);
                result
            }
        };
        // No other thread has this completion.
        let _ = done.done(result);
    }
}

impl Rest for RunState {
    fn go_on(self: Arc<Self>, context: &KernelContext<'_>, outputs: Outputs<'_>, done: Completion) -> Result<()> {
        let Some(owner) = self.calls.rounds.drain_lock.hold() else {
            return Err(Error::internal("a run without an owner"));
        };
        self.round(owner, Exit::Open, (context, outputs), done);
        Ok(())
    }
}

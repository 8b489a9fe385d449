//! A run that is a call of another run: a program as a node, with kernels that complete later.
//!
//! To the outer run the node is such a kernel itself. Its call is made in rounds (`kernel::Rest`). In a round a worker
//! of the outer run works in the inner one, as its owner, until that is closed, or until nothing is left to do before
//! something comes back; then it leaves the rest of the call behind and goes on with other nodes. Nobody waits, and no
//! thread is bound to the inner run meanwhile.
//!
//! # Who ends a round
//!
//! The owner's place is a `DrainLock`, and the handle of the round that is under way lies beside it:
//!
//! | turn     | meaning                                        | leaves it by                                                       |
//! |----------|------------------------------------------------|--------------------------------------------------------------------|
//! | IDLE     | the state serves no such run                    | `start_inside` -> HELD                                             |
//! | HELD     | a worker of the outer run works in this one    | `park` -> PARKED; `tell` -> NOTIFIED; the end of the run -> IDLE   |
//! | NOTIFIED | the same, and there is news                    | `park` fails, and it looks once more                               |
//! | PARKED   | the run waits for what was started             | `tell` -> CALLED, and who tells ends the round                     |
//! | CALLED   | the rest of the call is on its way to a worker | `go_on` -> HELD                                                    |
//!
//! News is what meets a sleeping owner in `Returns`, or the close of the run by a helper that was the last one out. Who
//! brings it and finds the turn PARKED ends the round by its handle; it is the only one, so a handle is used once. From
//! there on it is the life of every node that completes later: if the worker that made the round has gone on, the node
//! goes onto the outer run's `Returns`, the outer run's owner is told, which may be a node in turn, and any of its
//! workers takes the node up, as a ready node of its list. So however deep runs lie in runs, the thread that completes
//! a kernel runs no node of any of them.
//!
//! The worker that parks touches nothing of the call any more. What was told too late, of a run that is over, may meet
//! the state's next run; it is a hint to look, as it is to all owners.
//!
//! # Ends
//!
//! The inner run is attached to the stop word of the outer run's calls until it is over, and has no more time than
//! that. A node that is under way is gone on with in a stopped run too: what it has started is waited for, and only
//! then is the outer run over.

use crate::base::{Error, Result};
use crate::graph::carry::calls::{Inner, StateHome};
use crate::graph::carry::orders::Orders;
use crate::graph::carry::state::RunState;
use crate::kernel::{Completion, KernelContext, Outputs, Rest, Stoppable};
use crate::sync::{DrainGuard, Exit};
use std::any::Any;
use std::sync::Arc;

impl RunState {
    /// Begins the run as a call of another one, over that one's tensors; an error says that it was not begun.
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
        let Some(mut turn) = self.calls.rounds.turn.hold() else { return Err(Error::internal("a state in use")) };
        self.obey(Orders::inside(stop).as_ref());
        *turn = Some(Inner {
            home,
            attached: stop.attach_kept(Arc::clone(self) as Arc<dyn Stoppable>),
            closed: self.closed.reached() + 1,
        });
        let exit = context.with_pool(|pool| self.open_and_work(pool));
        self.round(turn, exit, (context, outputs), done);
        Ok(())
    }

    /// Works until the run is closed, which ends the call, or until the owner must be told of something.
    fn round(
        self: &Arc<Self>,
        mut turn: DrainGuard<'_, Option<Inner>>,
        mut exit: Exit,
        (context, outputs): (&KernelContext<'_>, Outputs<'_>),
        done: Completion,
    ) {
        let closed = turn.as_ref().map_or(0, |inner| inner.closed);
        loop {
            if exit == Exit::Open {
                exit = context.with_pool(|pool| self.work_until_asleep(pool));
            }
            if exit == Exit::Closed || self.closed.reached() >= closed {
                let inner = turn.take();
                drop(turn);
                return self.end_inside(inner, (context, outputs), done);
            }
            done.leave(Some(Arc::clone(self) as Arc<dyn Rest>));
            // Empty: the last round's was taken by who ended it.
            let _ = self.calls.rounds.told.put(done);
            match turn.park() {
                Ok(()) => return,
                Err(again) => {
                    turn = again;
                    let _ = self.calls.rounds.told.take();
                    done.leave(None);
                }
            }
        }
    }

    fn end_inside(
        self: &Arc<Self>,
        inner: Option<Inner>,
        (context, mut outputs): (&KernelContext<'_>, Outputs<'_>),
        done: Completion,
    ) {
        self.calls.returns.wake();
        let result = match inner {
            None => Err(Error::internal("a run without a program")),
            Some(Inner { home, attached, .. }) => {
                // Before the result is taken: a stop is part of it or does nothing; else it would hit the state's next
                // run.
                drop(attached);
                // SAFETY: the run is closed, and its owner is here.
                let mut publish = || unsafe { self.publish_to(context, &mut outputs) };
                let result = self.result().and_then(|()| publish());
                home.give_back(Arc::clone(self) as Arc<dyn Any + Send + Sync>);
                result
            }
        };
        // Nobody else has this handle.
        let _ = done.done(result);
    }
}

impl Rest for RunState {
    fn go_on(self: Arc<Self>, context: &KernelContext<'_>, outputs: Outputs<'_>, done: Completion) -> Result<()> {
        let Some(turn) = self.calls.rounds.turn.hold() else { return Err(Error::internal("a run without an owner")) };
        self.round(turn, Exit::Open, (context, outputs), done);
        Ok(())
    }
}

//! The handle of an asynchronous run.
#![forbid(unsafe_code)]

use crate::base::object::{self, tag};
use crate::base::time::Deadline;
use crate::base::{Error, Kind, Object, Ref, Result, live};
use crate::graph::carry::host::execute::none_begun;
use crate::graph::carry::host::ops::cancelled;
use crate::graph::carry::state::RunState;
use crate::memory::heap;
use crate::stream::{Awaited, Listener, Notice, Queue, Wait, WaitTarget, What, until};
use crate::sync::{EventCount, Mutex, MutexGuard, OnceLock};
use crate::threadpool::ThreadPool;
use std::sync::Arc;

/// One asynchronous run, as the thread that started it sees it. Aligned so that its block is one that the heap keeps: a
/// start allocates nothing.
#[repr(align(32))]
pub struct Run {
    queue: Arc<Queue>,
    progress: Mutex<RunProgress>,
    done: EventCount,
    error: OnceLock<Error>,
}

#[derive(Default)]
struct RunProgress {
    cancelled: bool,
    /// Its result is decided.
    over: bool,
    /// Listeners to notify when it is done.
    notices: Vec<Notice>,
    /// The state while it serves this run. Detached before the state's result is taken, so that a cancel is part of the
    /// result or does nothing; else it would cancel the state's next run.
    state: Option<Arc<RunState>>,
}

#[cfg(not(loom))]
const _: () = {
    let (size, align) = object::block::<Run>();
    assert!(size == object::KEPT[1].0 && align == object::KEPT[1].1, "object::KEPT has not the block of a run");
};

impl Kind for Run {
    const TAG: u32 = tag::RUN;
    const NAME: &'static str = "run";
    const COUNTER: live::Counter = live::Counter::Runs;
}

impl Awaited for Object<Run> {
    fn is_over(&self) -> bool {
        self.is_done()
    }
}

impl Run {
    pub(in crate::graph) fn create(queue: &Arc<Queue>) -> Ref<Run> {
        Object::shared(Run {
            queue: Arc::clone(queue),
            progress: Mutex::default(),
            done: EventCount::new(),
            error: OnceLock::new(),
        })
    }

    /// The pool of the stream that the run is on.
    pub fn pool(&self) -> Option<&Ref<ThreadPool>> {
        self.queue.pool()
    }

    pub fn is_done(&self) -> bool {
        self.done.reached() > 0
    }

    /// The run's error, once it is done.
    pub fn error(&self) -> Option<Error> {
        if self.is_done() { self.error.get().cloned() } else { None }
    }

    pub fn wait(run: &Ref<Run>, timeout_ns: u64) -> Result<()> {
        let sleep = |spin_ns, deadline| Ok(run.done.wait(1, spin_ns, deadline));
        let (spin_ns, deadline) = (run.queue.spin_ns(), Deadline::after(timeout_ns));
        let done = || run.is_done();
        let target = WaitTarget::Object(Arc::<Object<Run>>::downgrade(run));
        let wait = Wait { what: "a run", done: &done, target, on_device: &|| false, sleep: &sleep, spin_ns };
        until(&wait, Some(&run.queue), deadline)?;
        run.error().map_or(Ok(()), Err)?;
        run.pool().map_or(Ok(()), |pool| pool.intact())
    }

    pub fn cancel(&self) {
        let mut progress = self.progress();
        if !progress.over {
            progress.cancelled = true;
            progress.state.as_ref().inspect(|state| state.stop());
        }
    }

    fn progress(&self) -> MutexGuard<'_, RunProgress> {
        self.progress.lock()
    }

    /// The run begins on this state, unless it was cancelled before.
    pub(in crate::graph) fn attach(&self, state: &Arc<RunState>) -> Result<()> {
        let mut progress = self.progress();
        if progress.cancelled {
            return Err(none_begun(state.plan(), cancelled()));
        }
        progress.state = Some(Arc::clone(state));
        Ok(())
    }

    /// The run is over: from here on a cancel comes too late. The state may serve another run once its result has been
    /// taken; no cancel may come in between.
    pub(in crate::graph) fn detach(&self) {
        let mut progress = self.progress();
        progress.over = true;
        let state = progress.state.take();
        drop(progress);
        drop(state);
    }

    /// The run is over.
    pub(in crate::graph) fn complete(run: &Ref<Run>, error: Option<Error>) {
        if let Some(error) = error {
            let _ = run.error.set(error);
        }
        run.done.advance(1);
        run.queue.nudge();
        // A listener that is added from here on finds the run done.
        let notices = std::mem::take(&mut run.progress().notices);
        let tell = |notice: Notice| notice.tell(run.error.get().cloned(), Some(Arc::clone(run) as What));
        notices.into_iter().for_each(tell);
    }

    /// Notifies the listener when the run is done, or now.
    pub fn notify(run: &Ref<Run>, listener: Listener) -> Result<()> {
        let notice = run.queue.notice(listener)?;
        heap::check()?;
        let mut progress = run.progress();
        if run.is_done() {
            drop(progress);
            notice.adopt();
            notice.tell_here(run.error(), Some(Arc::clone(run) as What));
            return Ok(());
        }
        let exhausted = |_| Error::exhausted("the notices of a run", size_of::<Notice>());
        progress.notices.try_reserve(1).map_err(exhausted)?;
        notice.adopt();
        progress.notices.push(notice);
        Ok(())
    }
}

//! A run in a stream's queue: it holds the tensors until it is drained, then the state that serves it.
//!
//! A queued run takes a state only when it is drained, so a stream with many runs queued needs the memory of one.
//! Queued runs are small, and the program keeps a pool of them.
//!
//! Access: `bind` fills a queued run before it is submitted; after that only the thread that holds the stream's drain
//! lock touches it. `phase` is its state:
//!
//! | phase   | meaning                                          | next                                              |
//! |---------|--------------------------------------------------|---------------------------------------------------|
//! | QUEUED  | filled, not begun                                | RUNNING by `poll`                                 |
//! | RUNNING | the state is open; the stream parks or is parked | CLOSED by the last worker out (`RunState::close`) |
//! | CLOSED  | the state's result is there                      | back to the pool, by `poll`                       |

use super::pool::Keeps;
use crate::base::{Code, Error, Ref, Result};
use crate::engine::{Tensor, scratch_slots};
use crate::graph::carry::admission::{Accepted, Permit, Queued};
use crate::graph::carry::host::execute::none_begun;
use crate::graph::carry::orders::Orders;
use crate::graph::carry::state::{CloseListener, RunState};
use crate::graph::run::handle::Run;
use crate::memory::heap;
use crate::stream::{Joinable, Notice, Queue, QueueWork, What};
use crate::sync::{Exit, Mailbox};
use crate::threadpool::ThreadPool;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::*};
use std::task::Poll;

const QUEUED: u32 = 0;
const RUNNING: u32 = 1;
const CLOSED: u32 = 2;

#[derive(Default)]
pub struct QueuedRun {
    phase: AtomicU32,
    program: Mailbox<Arc<dyn Keeps<QueuedRun>>>,
    /// Inputs, then outputs; `None` for an input that is not needed. Empty between runs, and kept for its memory.
    tensors: Mailbox<Vec<Option<Ref<Tensor>>>>,
    pool: Mailbox<Ref<ThreadPool>>,
    handle: Mailbox<Ref<Run>>,
    state: Mailbox<Arc<RunState>>,
    orders: Mailbox<Orders>,
    /// Notified of the end.
    notice: Mailbox<Notice>,
    /// Whether a permit is needed before it begins (`admission`).
    admission: AtomicU32,
    accepted: Mailbox<Accepted>,
    permit: Mailbox<Permit>,
}

/// It has a permit, or needs none.
const FREE: u32 = 0;
const MUST_ENTER: u32 = 1;
/// It is in the line.
const IN_LINE: u32 = 2;

impl QueuedRun {
    /// An empty queued run with room for the program's tensors.
    pub fn create(num_tensors: usize) -> Result<Arc<QueuedRun>> {
        heap::whole(|| {
            let run = QueuedRun::default();
            let _ = run.tensors.put(heap::room(num_tensors, "a run's tensors")?);
            Ok(Arc::new(run))
        })
    }

    /// The list to fill with inputs and outputs; `fill` puts it back.
    pub(in crate::graph) fn list(&self) -> Vec<Option<Ref<Tensor>>> {
        self.tensors.take().unwrap_or_default()
    }

    /// Fills the queued run.
    pub(in crate::graph) fn fill(
        &self,
        program: Arc<dyn Keeps<QueuedRun>>,
        tensors: Vec<Option<Ref<Tensor>>>,
        pool: Option<&Ref<ThreadPool>>,
        handle: Option<&Ref<Run>>,
    ) {
        // All cells are empty: the queued run came from the pool, or is new.
        let _ = self.program.put(program);
        let _ = self.tensors.put(tensors);
        let _ = pool.map(|pool| self.pool.put(Ref::clone(pool)));
        let _ = handle.map(|handle| self.handle.put(Ref::clone(handle)));
    }

    /// Sets the run's orders.
    pub(in crate::graph) fn order(&self, orders: Option<Orders>) {
        let _ = orders.map(|orders| self.orders.put(orders));
    }

    /// Sets the run's listener.
    pub(in crate::graph) fn announce(&self, notice: Option<Notice>) {
        let _ = notice.map(|notice| self.notice.put(notice));
    }

    /// The run counts among those of a program that bounds its concurrent runs.
    pub(in crate::graph) fn accept(&self, accepted: Option<Accepted>) {
        if let Some(accepted) = accepted {
            self.admission.store(MUST_ENTER, Relaxed);
            let _ = self.accepted.put(accepted);
        }
    }

    /// Whether it may begin; else it is in the line.
    fn enters(self: &Arc<Self>, queue: &Arc<Queue>) -> bool {
        // ORDERING: Acquire pairs with the Release in `admit`.
        match self.admission.load(Acquire) {
            MUST_ENTER => {}
            state => return state == FREE,
        }
        let Some(program) = self.program.take() else { return true };
        let admission = program.runs().compiled.admission.clone();
        let _ = self.program.put(program);
        let Some(admission) = admission else { return true };
        self.admission.store(IN_LINE, Relaxed);
        queue.set_program_waited_for(admission.number);
        queue.share(Some((Arc::clone(&admission) as Arc<dyn Joinable>, 0)));
        match admission.enter_or_wait(&(Arc::clone(self) as Arc<dyn Queued>), queue) {
            Some(permit) => {
                self.has_permit(permit, queue);
                true
            }
            None => false,
        }
    }

    fn has_permit(&self, permit: Permit, queue: &Queue) {
        let _ = self.permit.put(permit);
        queue.share(None);
        queue.set_program_waited_for(0);
        self.admission.store(FREE, Release);
    }

    /// Begins: takes a state, points it at the tensors, and runs.
    fn begin(self: &Arc<Self>, queue: &Arc<Queue>) -> Poll<Result<()>> {
        let handle = self.handle.take();
        let state = match self.prepare(handle.as_ref()) {
            Ok(state) => state,
            Err(error) => {
                self.tell_not_begun(&error);
                return Poll::Ready(self.end(handle, Err(error)));
            }
        };
        let own = self.pool.take();
        let pool = own.as_ref();
        if queue.is_synchronous() {
            // Such a stream gives no handles, so nobody can cancel the run.
            if state.has_calls() {
                *state.calls.holds.lock() = Some(Arc::clone(queue));
            }
            let result = state.run_here(pool).and_then(|()| self.publish(&state));
            drop(state.calls.holds.lock().take());
            self.give_state_back(state);
            return Poll::Ready(self.end(handle, result));
        }
        self.phase.store(RUNNING, Relaxed);
        let _ = handle.map(|handle| self.handle.put(handle));
        let _ = self.state.put(Arc::clone(&state));
        let _ = state.waiter.put((Arc::clone(self) as Arc<dyn CloseListener>, Arc::clone(queue)));
        if state.has_calls() && !state.is_serial() {
            *state.calls.stream.lock() = Some(Arc::clone(queue));
        }
        if pool.is_some() || state.has_calls() {
            *state.visitors.lock() = own.clone();
            queue.share(Some((Arc::clone(&state) as Arc<dyn Joinable>, state.latch.next_generation())));
        }
        let exit = state.open_and_work(pool);
        let exit = if exit == Exit::Open && state.has_calls() { state.work_until_asleep(pool) } else { exit };
        let _ = own.map(|pool| self.pool.put(pool));
        self.worked(&state, exit, queue)
    }

    /// A completion may have arrived for a run in flight.
    fn go_on(self: &Arc<Self>, queue: &Queue) -> Poll<Result<()>> {
        let Some(state) = self.state.take() else { return Poll::Pending };
        let _ = self.state.put(Arc::clone(&state));
        if !state.has_calls() {
            return Poll::Pending;
        }
        let pool = self.pool.take();
        let exit = state.work_until_asleep(pool.as_ref());
        let _ = pool.map(|pool| self.pool.put(pool));
        self.worked(&state, exit, queue)
    }

    /// From here on no thread joins in.
    fn unshare(&self, state: &RunState, queue: &Queue) {
        let pool = state.visitors.lock().take();
        if pool.is_some() || state.has_calls() {
            queue.share(None);
        }
    }

    fn worked(self: &Arc<Self>, state: &RunState, exit: Exit, queue: &Queue) -> Poll<Result<()>> {
        match exit {
            Exit::Open => Poll::Pending,
            Exit::Closed => {
                drop(state.waiter.take());
                self.unshare(state, queue);
                Poll::Ready(self.complete())
            }
        }
    }

    fn enter_and_begin(self: &Arc<Self>, queue: &Arc<Queue>) -> Poll<Result<()>> {
        if self.enters(queue) { self.begin(queue) } else { Poll::Pending }
    }

    /// A state for this run, with its arguments set. A run that was cancelled before fails here.
    fn prepare(&self, handle: Option<&Ref<Run>>) -> Result<Arc<RunState>> {
        let (Some(program), Some(tensors)) = (self.program.take(), self.tensors.take()) else {
            return Err(Error::internal("a run without a program"));
        };
        let pool = self.pool.take();
        let mut state = program.runs().take_state(scratch_slots(pool.as_ref()));
        if let Ok(taken) = &state
            // SAFETY: a state that is this run's alone, and the host keeps the tensors to the run.
            && let Err(error) = unsafe { taken.take_shapes(|i| given(&tensors, i).map(|tensor| tensor.view())) }
        {
            program.runs().give_state(Arc::clone(taken));
            state = Err(error);
        }
        if let Ok(state) = &state {
            let num_inputs = program.runs().plan().inputs.len();
            let data = |i: usize| tensors[i].as_ref().map_or(std::ptr::null_mut(), |tensor| tensor.data());
            state.obey(self.orders.take().as_ref());
            // SAFETY: as above; the tensors were checked.
            unsafe { state.bind(None, data, |o| data(num_inputs + o)) };
        }
        let _ = pool.map(|pool| self.pool.put(pool));
        let _ = self.tensors.put(tensors);
        let _ = self.program.put(program);
        let state = state?;
        match handle.map_or(Ok(()), |handle| handle.attach(&state)) {
            Ok(()) => {
                state.set_handle(|| handle.map(|handle| Arc::clone(handle) as What));
                Ok(state)
            }
            Err(cancelled) => {
                self.give_state_back(state);
                Err(cancelled)
            }
        }
    }

    /// Those hear of its failure that know of other runs by what these begin.
    #[cold]
    fn tell_not_begun(&self, error: &Error) {
        if let Some(program) = self.program.take() {
            program.runs().not_begun(error);
            let _ = self.program.put(program);
        }
    }

    /// The state is closed: collects its result.
    fn complete(self: &Arc<Self>) -> Result<()> {
        let handle = self.handle.take();
        let Some(state) = self.state.take() else { return Err(Error::internal("a run without a state")) };
        if let Some(handle) = &handle {
            handle.detach();
            state.set_handle(|| None);
        }
        if state.has_calls() {
            drop(state.calls.stream.lock().take());
            state.calls.returns.wake();
        }
        let result = state.result().and_then(|()| self.publish(&state));
        self.give_state_back(state);
        self.end(handle, result)
    }

    /// Publishes the outputs that have a shape of their own in this run.
    fn publish(&self, state: &RunState) -> Result<()> {
        if state.plan().dynamics.is_empty() {
            return Ok(());
        }
        let tensors = self.tensors.take().unwrap_or_default();
        let first = state.plan().inputs.len();
        // SAFETY: the run is closed, and its owner is here; the host keeps the tensors to the run.
        let result = unsafe { state.publish(|o| given(&tensors, first + o)) };
        let _ = self.tensors.put(tensors);
        result
    }

    /// Gives the state back. From here on it belongs to another run.
    fn give_state_back(&self, state: Arc<RunState>) {
        if let Some(program) = self.program.take() {
            program.runs().give_state(state);
            let _ = self.program.put(program);
        }
    }

    /// Engines may still work for a run that has failed.
    #[cold]
    fn keep(&self, tensors: &[Option<Ref<Tensor>>]) {
        let Some(program) = self.program.take() else { return };
        if let Some(frames) = &program.runs().devices.frames {
            let is_there = |tensor: &&Ref<Tensor>| tensor.engine().accelerator().is_some();
            let tensors: Vec<Ref<Tensor>> = tensors.iter().flatten().filter(is_there).cloned().collect();
            frames.keep(Arc::new((Arc::clone(&program), tensors)));
        }
        let _ = self.program.put(program);
    }

    /// Releases what the run held, gives the queued run back, and reports: to the handle if there is one (the stream
    /// continues), else to the stream.
    fn end(self: &Arc<Self>, handle: Option<Ref<Run>>, result: Result<()>) -> Result<()> {
        drop(self.pool.take());
        let admitted = (self.permit.take(), self.accepted.take());
        self.admission.store(FREE, Relaxed);
        // Still there if it never began.
        let _ = self.orders.take();
        let notice = self.notice.take();
        if let Some(mut tensors) = self.tensors.take() {
            if result.is_err() {
                self.keep(&tensors);
            }
            tensors.clear();
            let _ = self.tensors.put(tensors);
        }
        self.phase.store(QUEUED, Relaxed);
        if let Some(program) = self.program.take() {
            program.keep(Arc::clone(self));
        }
        // Releasing the permit may run a waiter right here: this object already belongs to another run. It is released
        // before the notification, so that a listener finds the permit free.
        drop(admitted);
        let error = result.as_ref().err();
        if let Some(handle) = &handle {
            Run::complete(handle, error.cloned());
        }
        if let Some(notice) = notice {
            notice.tell(error.cloned(), handle.clone().map(|run| run as What));
        }
        if handle.is_some() { Ok(()) } else { result }
    }
}

impl Queued for QueuedRun {
    fn admit(&self, permit: Permit, queue: &Arc<Queue>) {
        self.has_permit(permit, queue);
        queue.resume();
    }
}

impl CloseListener for QueuedRun {
    fn closed(&self) {
        // ORDERING: Release pairs with the Acquire in `poll`.
        self.phase.store(CLOSED, Release);
    }
}

impl QueueWork for QueuedRun {
    fn poll(self: Arc<Self>, queue: &Arc<Queue>) -> Poll<Result<()>> {
        match self.phase.load(Acquire) {
            RUNNING => self.go_on(queue),
            CLOSED => {
                if let Some(state) = self.state.take() {
                    self.unshare(&state, queue);
                    let _ = self.state.put(state);
                }
                Poll::Ready(self.complete())
            }
            _ => self.enter_and_begin(queue),
        }
    }

    /// Its host nodes are.
    fn is_hosts(&self) -> bool {
        true
    }

    fn skip(self: Arc<Self>, cause: &Error) {
        let handle = self.handle.take();
        let program = self.program.take();
        if let (IN_LINE, Some(program)) = (self.admission.load(Acquire), &program) {
            program
                .runs()
                .compiled
                .admission
                .iter()
                .for_each(|admission| admission.withdraw(&(Arc::clone(&self) as Arc<dyn Queued>)));
        }
        // Only a handle gets the error: the stream has its own.
        let error = || not_begun(cause);
        let error = program.as_ref().map_or_else(error, |program| none_begun(program.runs().plan(), error()));
        let _ = program.map(|program| self.program.put(program));
        self.tell_not_begun(&error);
        let _ = self.end(handle, Err(error));
    }
}

/// ABORTED: the result of a run whose stream had failed before the run began.
pub(in crate::graph) fn not_begun(cause: &Error) -> Error {
    let text = format!("the run did not begin, because its stream had failed: {}", cause.message());
    Error::new(Code::Aborted, text)
}

/// A tensor of the run. Only inputs that it does not need are missing.
fn given(tensors: &[Option<Ref<Tensor>>], index: usize) -> Result<&Ref<Tensor>> {
    tensors[index].as_ref().ok_or_else(|| Error::internal("a tensor that a run needs is missing"))
}

//! A run that is issued to a stream of its engine, like a kernel (`carry::device::direct`): it holds its tensors until
//! the device is done with them.
//!
//! Runs come from a pool and return to it when they are over, so in the long run as many exist as were in flight at
//! once. A run that is repeated with the same tensors while it is in flight is the same object
//! (`stream::QueueWork::again`).
#![forbid(unsafe_code)]

use super::pool::Keeps;
use super::queued_run::not_begun;
use crate::base::{Error, Ref, Result};
use crate::device::{DeviceEvent, DeviceStream, Reached, Then};
use crate::engine::{Stream, Tensor};
use crate::graph::carry::compiled::Compiled;
use crate::graph::carry::device::direct::{Direct, FrameHold};
use crate::memory::heap;
use crate::stream::{Notice, Queue, QueueWork};
use crate::sync::{Mailbox, Mutex};
use smallvec::SmallVec;
use std::sync::{Arc, Weak};
use std::task::Poll;

/// The most runs that are kept for reuse.
const KEPT: usize = 1024;

/// Inputs, then outputs; `None` for an input that is not needed.
pub(in crate::graph) type Tensors = SmallVec<[Option<Ref<Tensor>>; 4]>;

/// The listener to notify when the device is done with the run, and the event behind it.
struct DirectNotice {
    event: Arc<dyn DeviceEvent>,
    notice: Mailbox<Notice>,
    queue: Mailbox<Weak<Queue>>,
}

impl DirectNotice {
    /// The run's result is known: notifies, unless that was done before.
    fn over(&self, error: Option<Error>) {
        let queue = self.queue.take().and_then(|queue| queue.upgrade());
        let named = |error: Error| match &queue {
            Some(queue) => error.within(format_args!("stream '{}'", queue.name())),
            None => error,
        };
        if let Some(notice) = self.notice.take() {
            notice.tell(error.map(named), None);
        }
    }
}

impl Reached for DirectNotice {
    fn reached(&self) {
        self.over(self.event.is_reached().err());
    }
}

#[derive(Default)]
pub(in crate::graph) struct DirectRun(Mutex<DirectRunState>);

/// The stream that a run goes to, and what its program is.
type Way<'a> = (&'a dyn DeviceStream, &'a Compiled);

#[derive(Default)]
struct DirectRunState {
    program: Option<Arc<dyn Keeps<DirectRun>>>,
    tensors: Tensors,
    hold: FrameHold,
    /// Kept for later runs that have a listener.
    told: Option<Arc<DirectNotice>>,
}

impl DirectRunState {
    /// Issues the run to its queue's stream.
    fn given(
        &mut self,
        queue: &Queue,
        give: impl FnOnce(&Direct, Way<'_>, &[Option<Ref<Tensor>>], &mut FrameHold) -> Result<()>,
    ) -> Result<()> {
        let DirectRunState { program, tensors, hold, .. } = self;
        let direct = program.as_ref().and_then(|program| Some((program, program.runs().devices.direct.as_ref()?)));
        let (Some((program, direct)), Some(line)) = (direct, queue.device_queue()) else {
            return Err(Error::internal("a run on a stream that is not its engine's"));
        };
        let given = give(direct, (line.stream(), &program.runs().compiled), tensors, hold);
        given.map_err(|error| error.within(format_args!("program '{}'", program.runs().plan().name)))
    }

    /// Sets the run's listener. Called before the run is issued.
    fn announce(&mut self, stream: &Stream, notice: Notice) -> Result<()> {
        // If the device still holds it, it belongs to an earlier run.
        if self.told.as_mut().is_none_or(|told| Arc::get_mut(told).is_none()) {
            let accelerator = stream.engine().accelerator();
            let event = accelerator.map(|accelerator| accelerator.event(false)).transpose()?;
            let event = event.ok_or_else(|| Error::internal("a direct run on the host"))?;
            let (notice, queue) = Default::default();
            self.told = Some(Arc::new(DirectNotice { event, notice, queue }));
        }
        heap::check()?;
        notice.adopt();
        if let Some(told) = &self.told {
            // Both are empty: the contents were taken when the last run was notified.
            let _ = told.queue.put(Arc::downgrade(stream.queue()));
            let _ = told.notice.put(notice);
        }
        Ok(())
    }

    /// Notifies when an issued run is done, or now if issuing has failed.
    fn told_when_done(&self, queue: &Queue, issued: Result<()>) -> Result<()> {
        let Some(told) = self.told.as_ref().filter(|told| told.notice.is_full()) else { return issued };
        let device = queue.device_queue().and_then(|line| Some((line.stream(), line.device().accelerator()?)));
        let recorded = match (issued, device) {
            (Err(error), _) => Err(error),
            (Ok(()), Some((stream, accelerator))) => stream.record(&told.event).map(|()| accelerator),
            (Ok(()), None) => Err(Error::internal("a run on a stream that is not its engine's")),
        };
        match recorded {
            Ok(accelerator) => {
                accelerator.when_reached(&told.event, Then::shared(Arc::clone(told) as Arc<dyn Reached>));
                Ok(())
            }
            Err(error) => {
                told.over(Some(error.clone()));
                Err(error)
            }
        }
    }
}

/// Runs that are over.
#[derive(Default)]
pub(in crate::graph) struct DirectRuns(Mutex<Vec<Arc<DirectRun>>>);

impl DirectRuns {
    /// Releases them, and their records of frames.
    pub fn trim(&self) {
        drop(std::mem::take(&mut *self.0.lock()));
    }

    pub fn keep(&self, run: Arc<DirectRun>) {
        let mut kept = self.0.lock();
        if kept.len() < KEPT {
            kept.push(run);
        }
    }

    /// A finished one, else a new one.
    pub(in crate::graph) fn take(&self) -> Arc<DirectRun> {
        let kept = self.0.lock().pop();
        kept.unwrap_or_default()
    }
}

impl QueueWork for DirectRun {
    fn poll(self: Arc<Self>, queue: &Arc<Queue>) -> Poll<Result<()>> {
        Poll::Ready(self.issue(queue))
    }

    fn give(&self, queue: &Arc<Queue>) -> Option<Result<()>> {
        Some(self.issue(queue))
    }

    fn may_be_captured(&self) -> Result<()> {
        let held = self.0.lock();
        let direct = held.program.as_ref().and_then(|program| Some((program, program.runs().devices.direct.as_ref()?)));
        let Some((program, direct)) = direct else { return Err(Error::internal("a run without a program")) };
        direct.check_capture().map_err(|error| error.within(format_args!("program '{}'", program.runs().plan().name)))
    }

    fn capture(&self, queue: &Arc<Queue>) -> Result<()> {
        self.0.lock().given(queue, |direct, (stream, _), tensors, hold| direct.capture(stream, tensors, hold))
    }

    fn again(&self, queue: &Arc<Queue>) -> Option<Result<()>> {
        let mut held = self.0.lock();
        let DirectRunState { program, tensors, hold, .. } = &mut *held;
        let (program, line) = (program.as_ref()?, queue.device_queue()?);
        let (runs, stream) = (program.runs(), line.stream());
        let issued = runs.devices.direct.as_ref()?.again(queue, (stream, &runs.compiled), tensors, hold)?;
        Some(issued.map_err(|error| error.within(format_args!("program '{}'", program.runs().plan().name))))
    }

    fn skip(self: Arc<Self>, cause: &Error) {
        let held = self.0.lock();
        let Some(told) = held.told.clone() else { return };
        drop(held);
        told.over(Some(not_begun(cause)));
    }

    fn over(mut self: Arc<Self>, is_well: bool) {
        let Some(DirectRun(held)) = Arc::get_mut(&mut self) else { return };
        let held = held.get_mut();
        held.hold.over(is_well);
        let program = held.program.take();
        held.tensors.clear();
        if let Some(program) = program {
            program.keep(self);
        }
    }
}

impl DirectRun {
    /// Makes it a run of this program on the stream, over these tensors. Nobody else has it.
    pub(in crate::graph) fn fill(
        self: &mut Arc<Self>,
        program: Arc<dyn Keeps<DirectRun>>,
        give: impl FnOnce(&mut Tensors) -> Result<()>,
        (stream, notice): (&Stream, Option<Notice>),
    ) -> Result<()> {
        let Some(DirectRun(held)) = Arc::get_mut(self) else {
            return Err(Error::internal("a run that is over and somebody has"));
        };
        let held = held.get_mut();
        give(&mut held.tensors)?;
        held.program = Some(program);
        notice.map_or(Ok(()), |notice| held.announce(stream, notice))
    }

    fn issue(&self, queue: &Arc<Queue>) -> Result<()> {
        let mut held = self.0.lock();
        let issued = held.given(queue, |direct, way, tensors, hold| direct.issue(queue, way, tensors, hold));
        held.told_when_done(queue, issued)
    }
}

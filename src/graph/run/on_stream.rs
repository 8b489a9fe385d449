//! A run that is issued to a stream of its engine's, as a kernel is (`place::direct`): its tensors, until the device is
//! done with them.
//!
//! Runs come from a stock and go back to it when they are over, so in the long run as many are made as were under way
//! at once. A run that is given again with the same tensors while it is under way is the same one
//! (`stream::QueueWork::again`).
#![forbid(unsafe_code)]

use super::pool::Keeps;
use super::queued_run::not_begun;
use crate::base::{Error, Ref, Result};
use crate::device::{DeviceEvent, DeviceStream, Reached, Then};
use crate::engine::{Stream, Tensor};
use crate::graph::carry::device::direct::{Direct, Lent};
use crate::memory::heap;
use crate::stream::{Notice, Queue, QueueWork};
use crate::sync::{Mailbox, Mutex};
use smallvec::SmallVec;
use std::sync::{Arc, Weak};
use std::task::Poll;

/// Most runs that are kept for later ones.
const KEPT: usize = 1024;

/// Inputs, then outputs; None for an input that is not needed.
pub(in crate::graph) type Tensors = SmallVec<[Option<Ref<Tensor>>; 4]>;

/// Who is told when the device is done with the run, and the event behind it.
struct Told {
    event: Arc<dyn DeviceEvent>,
    notice: Mailbox<Notice>,
    queue: Mailbox<Weak<Queue>>,
}

impl Told {
    /// How the run ended is known: unless it was told before.
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

impl Reached for Told {
    fn reached(&self) {
        self.over(self.event.is_reached().err());
    }
}

#[derive(Default)]
pub(in crate::graph) struct DirectRun(Mutex<Held>);

#[derive(Default)]
struct Held {
    program: Option<Arc<dyn Keeps<DirectRun>>>,
    tensors: Tensors,
    lent: Lent,
    /// Kept for later runs that are told of.
    told: Option<Arc<Told>>,
}

impl Held {
    /// Gives the run to its queue's stream.
    fn given(
        &mut self,
        queue: &Queue,
        give: impl FnOnce(&Direct, &dyn DeviceStream, &[Option<Ref<Tensor>>], &mut Lent) -> Result<()>,
    ) -> Result<()> {
        let Held { program, tensors, lent, .. } = self;
        let direct = program.as_ref().and_then(|program| Some((program, program.runs().devices.direct.as_ref()?)));
        let (Some((program, direct)), Some(line)) = (direct, queue.device_queue()) else {
            return Err(Error::internal("a run on a stream that is not its engine's"));
        };
        let given = give(direct, line.stream(), tensors, lent);
        given.map_err(|error| error.within(format_args!("program '{}'", program.runs().plan().name)))
    }

    /// The run's end is to be told. Before it is issued.
    fn announce(&mut self, stream: &Stream, notice: Notice) -> Result<()> {
        // One whose device has not let go of it yet is that of a run before.
        if self.told.as_mut().is_none_or(|told| Arc::get_mut(told).is_none()) {
            let accelerator = stream.engine().accelerator();
            let event = accelerator.map(|accelerator| accelerator.event(false)).transpose()?;
            let event = event.ok_or_else(|| Error::internal("a direct run on the host"))?;
            let (notice, queue) = Default::default();
            self.told = Some(Arc::new(Told { event, notice, queue }));
        }
        heap::check()?;
        notice.adopt();
        if let Some(told) = &self.told {
            // Both are empty: what was in them was taken when the last run was told of.
            let _ = told.queue.put(Arc::downgrade(stream.queue()));
            let _ = told.notice.put(notice);
        }
        Ok(())
    }

    /// The run was issued, or was not.
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
pub(in crate::graph) struct Stock(Mutex<Vec<Arc<DirectRun>>>);

impl Stock {
    /// Lets go of them, and of what they remember of frames.
    pub fn trim(&self) {
        drop(std::mem::take(&mut *self.0.lock()));
    }

    pub fn keep(&self, run: Arc<DirectRun>) {
        let mut kept = self.0.lock();
        if kept.len() < KEPT {
            kept.push(run);
        }
    }

    /// One that is over, else a new one.
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
        self.0.lock().given(queue, |direct, stream, tensors, lent| direct.capture(stream, tensors, lent))
    }

    fn again(&self, queue: &Arc<Queue>) -> Option<Result<()>> {
        let mut held = self.0.lock();
        let Held { program, tensors, lent, .. } = &mut *held;
        let (program, line) = (program.as_ref()?, queue.device_queue()?);
        let issued = program.runs().devices.direct.as_ref()?.again(queue, line.stream(), tensors, lent)?;
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
        held.lent.over(is_well);
        let program = held.program.take();
        held.tensors.clear();
        if let Some(program) = program {
            program.keep(self);
        }
    }
}

impl DirectRun {
    /// A run of this program on the stream, over these tensors. Nobody else has it.
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
        let issued = held.given(queue, |direct, stream, tensors, lent| direct.issue(queue, stream, tensors, lent));
        held.told_when_done(queue, issued)
    }
}

//! One call of a communication, from its inputs to its outputs.
//!
//! | stage | who has its memory | leaves it by |
//! |---|---|---|
//! | IDLE | nobody; it is with its kernel's spare ones | `fill` -> FILLED |
//! | FILLED | nobody | `open` -> OPEN |
//! | OPEN | the transport and the driver | `end` -> OVER, or LOST if the transport may still use it |
//! | OVER | nobody | `deliver` -> IDLE |
//! | LOST | the transport, as long as it lives | - |
//!
//! Memory of a tensor that was lent counts as its own in all of these stages, from `fill_or_lend` on.
//!
//! An operation in a device's memory has none here: it goes from IDLE to OPEN when a stream of the device has it
//! (`open_on_device`), is over when the event behind it is reached, and is IDLE again at once, as nobody waits for it.
//!
//! The stage is under a lock, and each use of the memory looks at it: that is what makes the slices sound.

use super::algorithm::{Phase, Procedure, Wanted};
use super::message;
use super::staging::Staging;
use crate::base::{Error, Result};
use crate::comm::reduce::fold;
use crate::device::{Accelerator, DeviceEvent};
use crate::kernel::{Completion, IssuedFor, KernelContext, LateFailure, Outputs, Rest, Stop};
use crate::memory::{MemoryBlock, View};
use crate::sync::{Mutex, OnceLock};
use crate::trace::KeptTraces;
use std::sync::{Arc, Weak};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Idle,
    Filled,
    Open,
    Over,
    Lost,
}

/// The node of a program that an operation is.
#[derive(Debug)]
pub struct CommNode {
    /// "loop/step"
    pub path: Box<str>,
    /// Among the collectives of the program.
    pub number: u64,
}

/// Its stage, its result, and the call that is told.
struct Fate {
    stage: Stage,
    /// The values of a run, if the operation uses some of them where they are: kept until nobody can.
    values: Option<Arc<MemoryBlock>>,
    result: Result<()>,
    completion: Option<Completion>,
    stop: Option<Arc<Stop>>,
    /// Of an operation on a device: the stream of the host's that has it; `None` for a run.
    stream: Option<Weak<dyn LateFailure>>,
    /// Of what has submitted it.
    traces: Option<KeptTraces>,
    node: Option<Arc<CommNode>>,
    /// The number of its run among those that have had the communicator; 0 for an operation of a stream.
    run: u64,
}

/// Requests of one kernel that are not in use.
#[derive(Default)]
pub struct SpareRequests(Mutex<Vec<Arc<Request>>>);

impl SpareRequests {
    /// One for this operation, if there is one.
    pub fn take(&self, wanted: &Wanted) -> Option<Arc<Request>> {
        let mut spare = self.0.lock();
        let at = spare.iter().position(|request| request.wanted == *wanted)?;
        Some(spare.swap_remove(at))
    }
}

pub struct Request {
    pub wanted: Wanted,
    /// `all_reduce f32[1000]`
    pub label: String,
    procedure: Procedure,
    fate: Mutex<Fate>,
    /// Behind an operation on a device.
    event: OnceLock<Arc<dyn DeviceEvent>>,
    home: Weak<SpareRequests>,
}

fn misused(stage: Stage) -> Error {
    Error::internal(format!("a communication is {stage:?}"))
}

impl Request {
    pub fn new(wanted: Wanted, label: String, procedure: Procedure, home: &Arc<SpareRequests>) -> Arc<Request> {
        let (values, completion, stop, stream, traces, node) = (None, None, None, None, None, None);
        let fate = Fate { stage: Stage::Idle, values, result: Ok(()), completion, stop, stream, traces, node, run: 0 };
        let (fate, event) = (Mutex::new(fate), OnceLock::new());
        Arc::new(Request { wanted, label, procedure, fate, event, home: Arc::downgrade(home) })
    }

    /// The node that it is of this time.
    pub fn set_node(&self, node: Option<&Arc<CommNode>>) {
        self.fate.lock().node = node.cloned();
    }

    pub fn set_run(&self, run: u64) {
        self.fate.lock().run = run;
    }

    /// The parts of a check: a digest that is the same where the operations belong together, and the text.
    pub fn shown(&self) -> (u64, String) {
        let fate = self.fate.lock();
        let number = fate.node.as_ref().map_or(0, |node| node.number);
        let digest = [number, fate.run]
            .iter()
            .fold(message::digest(&self.wanted), |digest, word| message::hash_on(digest, &word.to_le_bytes()));
        let text = match &fate.node {
            Some(node) => format!("node '{}' ({}) in run {}", node.path, self.label, fate.run),
            None => self.label.clone(),
        };
        (digest, text)
    }

    pub fn bytes(&self) -> usize {
        self.procedure.bytes
    }

    pub fn phases(&self) -> &[Phase] {
        &self.procedure.phases
    }

    /// Takes the inputs, one behind the other.
    pub fn fill<'i>(&self, inputs: impl Iterator<Item = &'i [u8]>) -> Result<()> {
        // SAFETY: nothing is lent.
        unsafe { self.fill_or_lend(inputs, [None, None], None) }
    }

    /// Takes the inputs, or uses the one input where it is; so for the one output. Keeps the memory of a run's values
    /// until the operation is over, or for good.
    ///
    /// # Safety
    /// Until it is delivered, or for good if that never comes, nobody writes the first of the tensors, nobody else uses
    /// the second one, and their memory is valid, except for that of `values`, which this function sees to.
    pub unsafe fn fill_or_lend<'i>(
        &self,
        inputs: impl Iterator<Item = &'i [u8]>,
        [input, output]: [Option<&View>; 2],
        values: Option<&Arc<MemoryBlock>>,
    ) -> Result<()> {
        let mut fate = self.fate.lock();
        if fate.stage != Stage::Idle {
            return Err(misused(fate.stage));
        }
        let (send, recv) = (&self.procedure.send.block, &self.procedure.recv.block);
        let lend = |tensor: Option<&View>, block: &Staging| -> Result<bool> {
            let is_lent = tensor.is_some_and(|tensor| block.stands_for(tensor));
            if is_lent { Ok(true) } else { block.use_own().map(|()| false) }
        };
        let is_lent = lend(input, send)?;
        let has_lent = (!Arc::ptr_eq(send, recv) && lend(output, recv)?) || is_lent;
        fate.values = values.filter(|_| has_lent).cloned();
        if is_lent {
            fate.stage = Stage::Filled;
            return Ok(());
        }
        let (part, mut at) = (&self.procedure.send, self.procedure.send.bytes.start);
        for input in inputs {
            let end = at + input.len();
            assert!(end <= part.bytes.end, "inputs of {end} bytes for {:?}", part.bytes);
            // SAFETY: IDLE, under the lock: nobody else has the memory.
            unsafe { part.block.slice_mut(&(at..end)) }.copy_from_slice(input);
            at = end;
        }
        fate.stage = Stage::Filled;
        Ok(())
    }

    /// From here on the driver has it.
    pub fn open(&self) -> Result<()> {
        let mut fate = self.fate.lock();
        if fate.stage != Stage::Filled {
            return Err(misused(fate.stage));
        }
        (fate.stage, fate.result) = (Stage::Open, Ok(()));
        fate.traces = KeptTraces::of_thread();
        Ok(())
    }

    /// For an operation on a device: the event behind it.
    pub fn event(&self, accelerator: &dyn Accelerator) -> Result<&Arc<dyn DeviceEvent>> {
        if self.event.get().is_none() {
            let _ = self.event.set(accelerator.event(false)?);
        }
        self.event.get().ok_or_else(|| Error::internal("a request without its event"))
    }

    /// Whether the device is done with it; true for an operation in the host's memory.
    pub fn is_reached(&self) -> Result<bool> {
        self.event.get().map_or(Ok(true), |event| event.is_reached())
    }

    /// The device has it, and the event behind it; from here on the driver has it, too.
    pub fn open_on_device(&self, issued_for: IssuedFor<'_>) -> Result<()> {
        let mut fate = self.fate.lock();
        if fate.stage != Stage::Idle {
            return Err(misused(fate.stage));
        }
        (fate.stage, fate.result) = (Stage::Open, Ok(()));
        fate.traces = KeptTraces::of_thread();
        (fate.stop, fate.stream) = match issued_for {
            IssuedFor::Run(_, stop) => (stop.cloned(), None),
            IssuedFor::Stream(stream) => (None, Some(Arc::downgrade(stream))),
        };
        Ok(())
    }

    /// The stream of the host's that has it; `None` if a run has it.
    pub fn stream(&self) -> Option<Arc<dyn LateFailure>> {
        self.fate.lock().stream.as_ref().and_then(Weak::upgrade)
    }

    pub fn is_of_run(&self) -> bool {
        self.fate.lock().stream.is_none()
    }

    /// An operation on a device is over, and another one may have it.
    pub fn close_on_device(self: &Arc<Self>) {
        {
            let mut fate = self.fate.lock();
            (fate.stage, fate.stop, fate.stream) = (Stage::Idle, None, None);
        }
        if let Some(home) = self.home.upgrade() {
            home.0.lock().push(Arc::clone(self));
        }
    }

    /// The traces that it is of, once.
    pub fn take_traces(&self) -> Option<KeptTraces> {
        self.fate.lock().traces.take()
    }

    /// This rank's part when the operations of a phase are over.
    pub fn conclude(&self, phase: &Phase) -> Result<()> {
        let fate = self.fate.lock();
        if fate.stage != Stage::Open {
            return Err(misused(fate.stage));
        }
        for copy in &phase.copies {
            // SAFETY: OPEN, and no operation of it is under way: the memory is the driver's. Own copies go from one
            // block, or part, to another one.
            unsafe { copy.to.block.slice_mut(&copy.to.bytes).copy_from_slice(copy.from.block.slice(&copy.from.bytes)) };
        }
        let Some(of) = &phase.fold else { return Ok(()) };
        // SAFETY: as above; the parts lie in another block than the result.
        let (parts, to) = unsafe {
            let parts: Vec<&[u8]> = of.parts.iter().map(|part| part.block.slice(&part.bytes)).collect();
            (parts, of.to.block.slice_mut(&of.to.bytes))
        };
        fold(of.reduction, of.dtype, &parts, to)
    }

    /// It is over. `is_lost`: the transport may still use its memory. Returns the waiting call.
    pub fn end(&self, result: Result<()>, is_lost: bool) -> Option<Completion> {
        let mut fate = self.fate.lock();
        fate.stage = if is_lost { Stage::Lost } else { Stage::Over };
        if result.is_err() && !is_lost {
            fate.values = None;
        }
        fate.result = result;
        fate.stop = None;
        fate.completion.take()
    }

    /// Whether it was stopped from outside: the error with which it ends then.
    pub fn stopped(&self) -> Option<Error> {
        let fate = self.fate.lock();
        let stop = fate.stop.as_ref()?;
        if stop.is_late() {
            return Some(Error::new(crate::base::Code::DeadlineExceeded, "the run's deadline is over"));
        }
        stop.is_set().then(|| match stop.cause() {
            Some(cause) => Error::new(cause.code(), format!("the run has failed: {}", cause.message())),
            None => Error::new(crate::base::Code::Cancelled, "the run was cancelled"),
        })
    }

    /// The deadline of the run that it is of.
    pub fn deadline_ns(&self) -> Option<u64> {
        let deadline = self.fate.lock().stop.as_ref()?.deadline();
        (deadline > 0).then_some(deadline)
    }

    /// The call `done` waits for it; false if it is over already.
    pub fn attach(self: &Arc<Self>, done: Completion, stop: Option<&Arc<Stop>>) -> bool {
        let mut fate = self.fate.lock();
        if matches!(fate.stage, Stage::Over | Stage::Lost) {
            return false;
        }
        done.leave(Some(Arc::clone(self) as Arc<dyn Rest>));
        (fate.completion, fate.stop) = (Some(done), stop.cloned());
        true
    }

    /// The received bytes, once it is over; for a request that no call waits for.
    pub fn received(&self) -> Option<Result<Vec<u8>>> {
        let mut fate = self.fate.lock();
        match fate.stage {
            Stage::Over | Stage::Lost => {}
            _ => return None,
        }
        if let Err(error) = std::mem::replace(&mut fate.result, Ok(())) {
            return Some(Err(error));
        }
        let part = &self.procedure.recv;
        // SAFETY: OVER, under the lock: nobody else has the memory.
        Some(Ok(unsafe { part.block.slice(&part.bytes) }.to_vec()))
    }

    /// Its result, and the outputs.
    pub fn deliver(self: &Arc<Self>, mut outputs: Outputs<'_>) -> Result<()> {
        let mut fate = self.fate.lock();
        if fate.stage == Stage::Lost {
            return std::mem::replace(&mut fate.result, Ok(()));
        }
        if fate.stage != Stage::Over {
            return Err(misused(fate.stage));
        }
        let result = std::mem::replace(&mut fate.result, Ok(()));
        if result.is_ok() {
            let (part, mut at) = (&self.procedure.recv, self.procedure.recv.bytes.start);
            for index in 0..outputs.count() {
                let mut output = outputs.get(index);
                let end = at + output.len();
                assert!(end <= part.bytes.end, "outputs of {end} bytes of {:?}", part.bytes);
                let from = at..end;
                let output = output.write_bytes();
                if !std::ptr::eq(output.as_ptr(), part.block.at(&from)) {
                    // SAFETY: OVER, under the lock: nobody else has the memory; and it is not the output's.
                    output.copy_from_slice(unsafe { part.block.slice(&from) });
                }
                at = end;
            }
        }
        (fate.stage, fate.values) = (Stage::Idle, None);
        drop(fate);
        if let Some(home) = self.home.upgrade() {
            home.0.lock().push(Arc::clone(self));
        }
        result
    }
}

impl Rest for Request {
    fn go_on(self: Arc<Self>, _context: &KernelContext<'_>, outputs: Outputs<'_>, done: Completion) -> Result<()> {
        done.done(self.deliver(outputs))
    }
}

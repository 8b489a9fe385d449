//! A branch or a loop that the host drives on the device's data: where the device does not decide by itself, only the
//! predicate is copied back.
//!
//! *Blocks.* The inside is a program of jumps (`jumps`).
//!
//! *Continuation.* The thread that issues a block in front of a decision arms a callback for its end, and leaves; no
//! thread is held. The callback reads the predicate and issues the next block. It may run in the same thread, if the
//! device is fast: then that thread continues in its own loop, and nothing nests.
//!
//! | phase | meaning                                       | next                                                   |
//! |-------|-----------------------------------------------|--------------------------------------------------------|
//! | ARMED | a callback is armed, the asker is still there | TOLD by `reached`; LEFT by the asker                   |
//! | TOLD  | the callback ran while the asker was there    | ARMED at the next decision by the asker, which goes on |
//! | LEFT  | the asker is gone                             | ARMED by the callback, which goes on                   |

use super::control::DeviceControl;
use super::device_frame::DeviceFrame;
use super::frame_stream::{EventMark, Giving, of};
use crate::base::{Code, Error, Ref, Result};
use crate::device::{
    Comparison, DeviceEvent, DeviceStream, Executable, HostAddress, Location, Reached, Then, Transfer,
};
use crate::engine::Engine;
use crate::graph::plan::actions::{Selector, Test, Where};
use crate::graph::plan::jumps::{JumpOp, Section};
use crate::kernel::{Completion, Rest, Stop};
use crate::memory::{MemoryBlock, Tag, View};
use crate::sync::{Mutex, OnceLock};
use crate::trace::KeptTraces;
use smallvec::SmallVec;
use std::sync::atomic::{AtomicU32, Ordering::*};
use std::sync::{Arc, Weak};

/// The fewest steps, with the copy of the predicate, of a block that is worth a recording.
const FEWEST: usize = 3;

/// The most bytes of a predicate or an index; each has a slot of this size in pinned memory.
const SLOT: usize = 16;

const ARMED: u32 = 0;
const TOLD: u32 = 1;
const LEFT: u32 = 2;

/// A frame's state for a driven branch or loop.
#[derive(Debug)]
pub(in crate::graph) struct Driven {
    event: Arc<dyn DeviceEvent>,
    /// Receives predicates and indices.
    staging: MemoryBlock,
    engine: Ref<Engine>,
    /// Each block's recording; `None` inside: the block is issued.
    recorded: Vec<OnceLock<Option<Arc<dyn Executable>>>>,
    going: Mutex<Option<Going>>,
    phase: AtomicU32,
    me: Weak<Driven>,
}

/// One run's way through it.
pub(in crate::graph) struct Going {
    pub device_frame: Arc<DeviceFrame>,
    pub control: Arc<DeviceControl>,
    pub stream: usize,
    /// Recorded behind all of it.
    pub records: Option<Arc<EventMark>>,
    pub done: Completion,
    /// The rest of the node's work.
    pub rest: Option<Arc<dyn Rest>>,
    pub stop: Option<Arc<Stop>>,
    /// Those of the run.
    pub traces: Option<KeptTraces>,
    /// The next operation.
    pub at: usize,
    /// Addresses of outputs that are a run's own tensors.
    pub outputs: SmallVec<[usize; 4]>,
}

impl std::fmt::Debug for Going {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Going({}, at {})", self.control.name, self.at)
    }
}

impl Going {
    /// Issues the copies of the run's own outputs, and the event behind all of it.
    fn end(&self, stream: &Giving<'_>) -> Result<()> {
        let control = &self.control;
        for (&(output, bytes), &to) in control.copied_out.iter().zip(&self.outputs) {
            let from = Location::Device(control.address(&self.device_frame, Where::Output(output)));
            stream.copy(&Transfer { name: &control.name, to: Location::Device(to), from, bytes })?;
        }
        self.records.as_ref().map_or(Ok(()), |mark| stream.mark(mark))
    }
}

impl Driven {
    pub fn make(engine: &Ref<Engine>, [blocks, slots]: [usize; 2], owner: &str) -> Result<Arc<Driven>> {
        let Some(accelerator) = engine.accelerator() else {
            return Err(Error::internal("a branch or a loop of the host's engine"));
        };
        let event = accelerator.event(false)?;
        let tag = Tag::text(format!("predicates of {owner}"));
        let staging = engine.host_memory().allocate(slots.max(1) * SLOT, tag)?;
        Ok(Arc::new_cyclic(|me| Driven {
            event,
            staging,
            engine: Ref::clone(engine),
            recorded: (0..blocks).map(|_| OnceLock::new()).collect(),
            going: Mutex::new(None),
            phase: AtomicU32::new(LEFT),
            me: Weak::clone(me),
        }))
    }

    /// Begins a run's way through it, behind the copies of its own inputs.
    pub fn begin(self: &Arc<Self>, going: Going) {
        *self.going.lock() = Some(going);
        self.go();
    }

    /// Continues until there is something to wait for, and arms the callback for that; or to the end.
    fn go(self: &Arc<Self>) {
        loop {
            let Some(mut going) = self.going.lock().take() else { return };
            let (is_over, accelerator) = (self.issue(&mut going), self.engine.accelerator());
            let (Ok(false), Some(accelerator)) = (&is_over, accelerator) else {
                return self.finish(going, is_over.map(drop));
            };
            *self.going.lock() = Some(going);
            // ORDERING: Relaxed; no other thread looks until the device was asked, which orders the two.
            self.phase.store(ARMED, Relaxed);
            accelerator.when_reached(&self.event, Then::shared(Arc::clone(self) as Arc<dyn Reached>));
            // ORDERING: AcqRel pairs with that of `reached`: the thread that goes on has seen the writes of the other
            // one.
            if self.phase.compare_exchange(ARMED, LEFT, AcqRel, Acquire).is_ok() {
                return;
            }
        }
    }

    /// Issues the next operations; true if those were the last. If not, the event is behind them.
    fn issue(&self, going: &mut Going) -> Result<bool> {
        let (device_frame, control) = (Arc::clone(&going.device_frame), Arc::clone(&going.control));
        if going.at > 0 {
            self.event.is_reached().map_err(Error::as_origin)?;
            if going.stop.as_ref().is_some_and(|stop| stop.is_set() || stop.is_late()) {
                return Err(Error::new(Code::Cancelled, format!("{}: cancelled", control.name)));
            }
        }
        let _working = going.traces.as_ref().map(KeptTraces::work);
        let stream = device_frame.streams[going.stream].lock();
        while let Some(op) = control.plan.ops.get(going.at) {
            going.at = match op {
                JumpOp::Do(block) => {
                    self.block(&device_frame, &control, *block, &*stream)?;
                    going.at + 1
                }
                JumpOp::Go(to) => *to,
                JumpOp::Unless(test, slot, to) => match self.holds(test, *slot) {
                    true => going.at + 1,
                    false => *to,
                },
                JumpOp::Choose { selector, slot, is_cond, to } => match (self.integer(selector, *slot), is_cond) {
                    (0, true) => to[0],
                    (_, true) => to[1],
                    (index, false) => {
                        let index = usize::try_from(index).ok().filter(|&index| index < to.len());
                        to[index.unwrap_or(to.len() - 1)]
                    }
                },
            };
            if matches!(op, JumpOp::Do(block) if !control.plan.blocks[*block].fetch.is_empty()) {
                stream.record(&self.event)?;
                return Ok(false);
            }
        }
        going.end(&stream)?;
        Ok(true)
    }

    /// The value that was copied to a slot.
    fn view(&self, selector: &Selector, slot: usize) -> View {
        let (at, bytes) = (self.slot(slot), selector.desc.bytes().unwrap_or(0));
        self.engine.host_uses(at, bytes, false, "predicate");
        assert!(bytes <= SLOT && (slot + 1) * SLOT <= self.staging.bytes());
        // SAFETY: within the block, which this keeps.
        unsafe { View::new(std::ptr::with_exposed_provenance_mut(at), bytes, selector.desc) }
    }

    fn integer(&self, selector: &Selector, slot: usize) -> i32 {
        // SAFETY: the copy that brings it is over, and the next one comes behind this.
        unsafe { self.view(selector, slot).as_bytes().read_integer() }
    }

    fn slot(&self, slot: usize) -> usize {
        self.staging.data().expose_provenance() + slot * SLOT
    }

    fn holds(&self, test: &Test, slot: usize) -> bool {
        match test {
            Test::Integer(selector) => self.integer(selector, slot) != 0,
            Test::Comparison(relation, both) => {
                let numbers = [0, 1].map(|number| {
                    let view = self.view(&both[number], slot + number);
                    let mut bytes = [0u8; Comparison::BYTES];
                    // SAFETY: as of `integer`.
                    bytes.copy_from_slice(&unsafe { view.as_bytes() }.read_bytes()[..Comparison::BYTES]);
                    bytes
                });
                Comparison::of(*relation, both[0].desc.dtype, numbers)
            }
        }
    }

    fn block(
        &self,
        device_frame: &DeviceFrame,
        control: &DeviceControl,
        number: usize,
        stream: &dyn DeviceStream,
    ) -> Result<()> {
        let Section { list, fetch } = &control.plan.blocks[number];
        let fetch: SmallVec<[Transfer<'_>; 2]> = fetch
            .iter()
            .map(|(selector, slot)| Transfer {
                name: &control.name,
                // SAFETY: this keeps the block, and looks at the slot when the copy is done.
                to: Location::Host(unsafe { HostAddress::new(self.slot(*slot)) }),
                from: Location::Device(control.address(device_frame, selector.at)),
                bytes: selector.desc.bytes().unwrap_or(0),
            })
            .collect();
        let is_worth_it = control.is_recorded && list.actions.len() + fetch.len() >= FEWEST;
        if is_worth_it {
            let recorded = &self.recorded[number];
            if recorded.get().is_none() {
                let _ = recorded.set(control.record(device_frame, list, &fetch)?);
            }
            if let Some(Some(executable)) = recorded.get() {
                return stream.replay(executable, &control.name);
            }
        }
        control.issue(device_frame, stream, list)?;
        fetch.iter().try_for_each(|transfer| stream.copy(transfer))
    }

    fn finish(&self, going: Going, result: Result<()>) {
        let Going { device_frame, control, done, rest, .. } = going;
        // After the call has ended the program may be dropped, and this thread must not hold the last reference to it.
        drop((device_frame, control));
        if result.is_ok() {
            done.leave(rest);
        }
        let _ = done.done(result.map_err(|error| of(&self.engine.label())(error)));
    }
}

impl Reached for Driven {
    fn reached(&self) {
        // ORDERING: AcqRel pairs with that of `go`.
        if self.phase.compare_exchange(ARMED, TOLD, AcqRel, Acquire).is_err()
            && let Some(me) = self.me.upgrade()
        {
            me.go();
        }
    }
}

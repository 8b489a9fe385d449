//! A branch or a loop that the host drives on the device's data: where the device does not decide by itself, the
//! predicate alone is brought back.
//!
//! *Blocks.* What is inside is a program of jumps (`jumps`).
//!
//! *Going on.* Who issues a block in front of a decision asks to be told when it is done, and leaves; no thread is
//! held. Who is told looks at the predicate and issues what follows. That may be the same thread, if the device is
//! fast: then it goes on in its own loop, and nothing nests.
//!
//! | turn  | meaning                                           | next                                                    |
//! |-------|---------------------------------------------------|---------------------------------------------------------|
//! | ARMED | somebody has asked to be told, and is not gone yet | TOLD by `reached`: the asker goes on; LEFT by the asker |
//! | TOLD  | it was told while the asker was there             | ARMED by the asker, in front of the next decision       |
//! | LEFT  | the asker is gone                                 | ARMED by who is told, who goes on                       |

use super::control::Control;
use super::device_frame::DeviceFrame;
use super::frame_stream::{Giving, Mark, of};
use crate::base::{Code, Error, Ref, Result};
use crate::device::{Comparison, DeviceEvent, DeviceStream, Executable, HostAddress, Place, Reached, Then, Transfer};
use crate::engine::Engine;
use crate::graph::plan::actions::{Selector, Test, Where};
use crate::graph::plan::jumps::{Op, Section};
use crate::kernel::{Completion, Rest, Stop};
use crate::memory::{MemoryBlock, Tag, View};
use crate::sync::{Mutex, OnceLock};
use smallvec::SmallVec;
use std::sync::atomic::{AtomicU32, Ordering::*};
use std::sync::{Arc, Weak};

/// Fewest steps, with the copy of the predicate, of a block that is worth a recording.
const FEWEST: usize = 3;

/// Bytes of a predicate or an index, at most: there are so many for each in pinned memory.
const SLOT: usize = 16;

const ARMED: u32 = 0;
const TOLD: u32 = 1;
const LEFT: u32 = 2;

/// What a frame has for it.
#[derive(Debug)]
pub(in crate::graph) struct Driven {
    event: Arc<dyn DeviceEvent>,
    /// Where predicates and indices come to.
    staging: MemoryBlock,
    engine: Ref<Engine>,
    /// Each block's recording; None inside: it is issued.
    recorded: Vec<OnceLock<Option<Arc<dyn Executable>>>>,
    going: Mutex<Option<Going>>,
    turn: AtomicU32,
    me: Weak<Driven>,
}

/// One run's way through it.
pub(in crate::graph) struct Going {
    pub on: Arc<DeviceFrame>,
    pub control: Arc<Control>,
    pub stream: usize,
    /// What is recorded behind all of it.
    pub records: Option<Arc<Mark>>,
    pub done: Completion,
    /// What is left to do for the node.
    pub rest: Option<Arc<dyn Rest>>,
    pub stop: Option<Arc<Stop>>,
    /// The next operation.
    pub at: usize,
    /// Where outputs go that are a run's own.
    pub outputs: SmallVec<[usize; 4]>,
}

impl std::fmt::Debug for Going {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Going({}, at {})", self.control.name, self.at)
    }
}

impl Going {
    /// Issues the run's own outputs, and what says that all is done.
    fn end(&self, stream: &Giving<'_>) -> Result<()> {
        let control = &self.control;
        for (&(output, bytes), &to) in control.copied_out.iter().zip(&self.outputs) {
            let from = Place::Device(control.address(&self.on, Where::Output(output)));
            stream.copy(&Transfer { name: &control.name, to: Place::Device(to), from, bytes })?;
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
            turn: AtomicU32::new(LEFT),
            me: Weak::clone(me),
        }))
    }

    /// Begins a run's way through it, behind the copies of its own inputs.
    pub fn begin(self: &Arc<Self>, going: Going) {
        *self.going.lock() = Some(going);
        self.go();
    }

    /// Goes on until there is something to wait for, and has itself told of that; or to the end.
    fn go(self: &Arc<Self>) {
        loop {
            let Some(mut going) = self.going.lock().take() else { return };
            let (is_over, accelerator) = (self.issue(&mut going), self.engine.accelerator());
            let (Ok(false), Some(accelerator)) = (&is_over, accelerator) else {
                return self.finish(going, is_over.map(drop));
            };
            *self.going.lock() = Some(going);
            // ORDERING: Relaxed; nobody else looks until the device was asked, which orders the two.
            self.turn.store(ARMED, Relaxed);
            accelerator.when_reached(&self.event, Then::shared(Arc::clone(self) as Arc<dyn Reached>));
            // ORDERING: AcqRel pairs with that of `reached`: who goes on has seen what the other one did.
            if self.turn.compare_exchange(ARMED, LEFT, AcqRel, Acquire).is_ok() {
                return;
            }
        }
    }

    /// Issues what comes next; true if that is all. If not, the event is behind it.
    fn issue(&self, going: &mut Going) -> Result<bool> {
        let (on, control) = (Arc::clone(&going.on), Arc::clone(&going.control));
        if going.at > 0 {
            self.event.is_reached().map_err(Error::as_origin)?;
            if going.stop.as_ref().is_some_and(|stop| stop.is_set() || stop.is_late()) {
                return Err(Error::new(Code::Cancelled, format!("{}: cancelled", control.name)));
            }
        }
        let stream = on.streams[going.stream].lock();
        while let Some(op) = control.plan.ops.get(going.at) {
            going.at = match op {
                Op::Do(block) => {
                    self.block(&on, &control, *block, &*stream)?;
                    going.at + 1
                }
                Op::Go(to) => *to,
                Op::Unless(test, slot, to) => match self.holds(test, *slot) {
                    true => going.at + 1,
                    false => *to,
                },
                Op::Choose { selector, slot, is_cond, to } => match (self.integer(selector, *slot), is_cond) {
                    (0, true) => to[0],
                    (_, true) => to[1],
                    (index, false) => {
                        let index = usize::try_from(index).ok().filter(|&index| index < to.len());
                        to[index.unwrap_or(to.len() - 1)]
                    }
                },
            };
            if matches!(op, Op::Do(block) if !control.plan.blocks[*block].fetch.is_empty()) {
                stream.record(&self.event)?;
                return Ok(false);
            }
        }
        going.end(&stream)?;
        Ok(true)
    }

    /// What was brought to a slot.
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

    fn block(&self, on: &DeviceFrame, control: &Control, number: usize, stream: &dyn DeviceStream) -> Result<()> {
        let Section { list, fetch } = &control.plan.blocks[number];
        let fetch: SmallVec<[Transfer<'_>; 2]> = fetch
            .iter()
            .map(|(selector, slot)| Transfer {
                name: &control.name,
                // SAFETY: this keeps the block, and looks at the slot when the copy is done.
                to: Place::Host(unsafe { HostAddress::new(self.slot(*slot)) }),
                from: Place::Device(control.address(on, selector.at)),
                bytes: selector.desc.bytes().unwrap_or(0),
            })
            .collect();
        let is_worth_it = control.is_recorded && list.actions.len() + fetch.len() >= FEWEST;
        if is_worth_it {
            let recorded = &self.recorded[number];
            if recorded.get().is_none() {
                let _ = recorded.set(control.record(on, list, &fetch)?);
            }
            if let Some(Some(executable)) = recorded.get() {
                return stream.replay(executable);
            }
        }
        control.issue(on, stream, list)?;
        fetch.iter().try_for_each(|transfer| stream.copy(transfer))
    }

    fn finish(&self, going: Going, result: Result<()>) {
        let Going { on, control, done, rest, .. } = going;
        // Behind the end of the call the program may go, and this thread is not to be the last to have it.
        drop((on, control));
        if result.is_ok() {
            done.leave(rest);
        }
        let _ = done.done(result.map_err(|error| of(&self.engine.label())(error)));
    }
}

impl Reached for Driven {
    fn reached(&self) {
        // ORDERING: AcqRel pairs with that of `go`.
        if self.turn.compare_exchange(ARMED, TOLD, AcqRel, Acquire).is_err()
            && let Some(me) = self.me.upgrade()
        {
            me.go();
        }
    }
}

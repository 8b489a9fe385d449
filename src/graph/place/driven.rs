//! A branch or a loop that the host drives on the device's data: where the device does not decide by itself, the
//! predicate alone is brought back.
//!
//! *Plan.* What is inside is cut at its branches and loops into *blocks*: actions without lists of their own, which are
//! recorded as one, or issued one by one. A small program of jumps says which block follows. A block before a decision
//! ends with the copy of its predicate or index to pinned memory.
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
use super::flow::{Action, List, Selector, Test, What};
use super::kernels::{Issue, of};
use super::lane::Lane;
use super::line::{Giving, Mark};
use crate::base::{Code, Error, Ref, Result};
use crate::device::{Comparison, DeviceEvent, DeviceStream, Executable, HostAddress, Place, Reached, Then, Transfer};
use crate::engine::Engine;
use crate::kernel::{Completion, KernelContext, Rest, Stop};
use crate::memory::{Block, Tag, View};
use crate::sync::{Mutex, OnceLock};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering::*};
use std::sync::{Arc, Weak};

/// Fewest steps, with the copy of the predicate, of a block that is worth a recording.
const FEWEST: usize = 3;

/// Bytes of a predicate or an index, at most: there are so many for each in pinned memory.
const SLOT: usize = 16;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// The block with this number.
    Do(usize),
    /// What was brought back, from this slot on, decides: if it does not hold, the operation with this number follows.
    Unless(Test, usize, usize),
    /// The operations that branches begin with.
    Choose {
        selector: Selector,
        slot: usize,
        is_cond: bool,
        to: Vec<usize>,
    },
    Go(usize),
}

/// Actions without lists of their own.
pub struct Section {
    pub list: List,
    /// What is brought to the host behind it, and to which slots.
    pub fetch: Vec<(Selector, usize)>,
}

#[derive(Default)]
pub struct Plan {
    pub ops: Vec<Op>,
    pub blocks: Vec<Section>,
    /// How many predicates, indices and numbers there are.
    pub slots: usize,
}

impl Plan {
    pub fn of(list: &List) -> Plan {
        let mut plan = Plan::default();
        plan.add(list, &[]);
        plan
    }

    /// Adds a list, and then what decides behind it.
    fn add(&mut self, list: &List, fetch: &[(Selector, usize)]) {
        let mut start = 0;
        for (at, action) in list.actions.iter().enumerate() {
            match &action.what {
                What::Launch { .. } | What::Copy { .. } => continue,
                What::Loop { predicate, body, .. } => {
                    let (slot, fetch) = self.fetched(predicate.reads());
                    self.block(list, start..at, &fetch);
                    let test = self.ops.len();
                    self.ops.push(Op::Unless(*predicate, slot, 0));
                    // A number that stays is there already.
                    let changes = |(read, _): &&(Selector, usize)| body.writes(read.at);
                    let changing: Vec<_> = fetch.iter().filter(changes).copied().collect();
                    self.add(body, if changing.is_empty() { &fetch } else { &changing });
                    self.ops.push(Op::Go(test));
                    self.ops[test] = Op::Unless(*predicate, slot, self.ops.len());
                }
                What::Branch { choice, is_cond, branches } => {
                    let (slot, fetch) = self.fetched(&[*choice]);
                    self.block(list, start..at, &fetch);
                    let test = self.ops.len();
                    self.ops.push(Op::Go(0));
                    let (mut to, mut ends) = (Vec::new(), Vec::new());
                    for branch in branches {
                        to.push(self.ops.len());
                        self.add(branch, &[]);
                        ends.push(self.ops.len());
                        self.ops.push(Op::Go(0));
                    }
                    let end = self.ops.len();
                    ends.into_iter().for_each(|at| self.ops[at] = Op::Go(end));
                    self.ops[test] = Op::Choose { selector: *choice, slot, is_cond: *is_cond, to };
                }
            }
            start = at + 1;
        }
        if start < list.actions.len() || !fetch.is_empty() {
            self.block(list, start..list.actions.len(), fetch);
        }
    }

    /// Slots for what decides: the first one, and which is whose.
    fn fetched(&mut self, reads: &[Selector]) -> (usize, Vec<(Selector, usize)>) {
        let first = self.slots;
        self.slots += reads.len();
        (first, reads.iter().copied().zip(first..).collect())
    }

    fn block(&mut self, list: &List, range: Range<usize>, fetch: &[(Selector, usize)]) {
        let own = |action: &Action| {
            let after = action.after.iter().filter(|before| range.contains(before)).map(|before| before - range.start);
            Action { after: after.collect(), ..action.clone() }
        };
        let actions = list.actions[range.clone()].iter().map(own).collect();
        self.ops.push(Op::Do(self.blocks.len()));
        self.blocks.push(Section { list: List { actions, values: Vec::new() }, fetch: fetch.to_vec() });
    }
}

const ARMED: u32 = 0;
const TOLD: u32 = 1;
const LEFT: u32 = 2;

/// What a lane has for it.
#[derive(Debug)]
pub(super) struct Driven {
    event: Arc<dyn DeviceEvent>,
    /// Where predicates and indices come to.
    staging: Block,
    engine: Ref<Engine>,
    /// Each block's recording; None inside: it is issued.
    recorded: Vec<OnceLock<Option<Arc<dyn Executable>>>>,
    going: Mutex<Option<Going>>,
    turn: AtomicU32,
    me: Weak<Driven>,
}

/// One run's way through it.
pub(super) struct Going {
    pub lane: Arc<Lane>,
    pub control: Arc<Control>,
    pub stream: usize,
    /// What is recorded behind all of it.
    pub records: Option<Arc<Mark>>,
    pub done: Completion,
    /// What is left to do for the node.
    pub rest: Option<Arc<dyn Rest>>,
    stop: Option<Arc<Stop>>,
    /// The next operation.
    at: usize,
    /// Where outputs go that are a run's own.
    outputs: SmallVec<[usize; 4]>,
}

impl std::fmt::Debug for Going {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Going({}, at {})", self.control.name, self.at)
    }
}

impl Going {
    /// Begins: copies the run's own inputs.
    pub fn begin(
        lane: &Arc<Lane>,
        issue: &Issue,
        control: &Arc<Control>,
        (stream, records): (usize, Option<Arc<Mark>>),
        context: &KernelContext<'_>,
        (done, rest): (Completion, Option<Arc<dyn Rest>>),
    ) -> Result<()> {
        let on = &lane.engines[control.engine];
        let line = on.streams[stream].lock();
        issue.copies_in(control, lane, context).try_for_each(|transfer| line.copy(&transfer))?;
        drop(line);
        let outputs = control.copied_out.iter();
        let outputs = outputs.map(|&(output, _)| issue.outputs[output].0.address(lane, control.engine, context));
        let (lane, control, stop) = (Arc::clone(lane), Arc::clone(control), context.kept_stop().cloned());
        let driven = Arc::clone(&lane.engines[control.engine].controls[control.number].driven);
        let outputs = outputs.collect();
        *driven.going.lock() = Some(Going { lane, control, stream, records, done, rest, stop, at: 0, outputs });
        driven.go();
        Ok(())
    }

    /// Issues the run's own outputs, and what says that all is done.
    fn end(&self, stream: &Giving<'_>) -> Result<()> {
        let control = &self.control;
        for (&(output, bytes), &to) in control.copied_out.iter().zip(&self.outputs) {
            let from = Place::Device(control.address(&self.lane, super::flow::Where::Output(output)));
            stream.copy(&Transfer { name: &control.name, to: Place::Device(to), from, bytes })?;
        }
        self.records.as_ref().map_or(Ok(()), |mark| stream.mark(mark))
    }
}

impl Driven {
    pub fn make(
        engine: &Ref<Engine>,
        event: Arc<dyn DeviceEvent>,
        [blocks, slots]: [usize; 2],
        owner: &str,
    ) -> Result<Arc<Driven>> {
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
        let (lane, control) = (Arc::clone(&going.lane), Arc::clone(&going.control));
        if going.at > 0 {
            self.event.is_reached().map_err(Error::as_origin)?;
            if going.stop.as_ref().is_some_and(|stop| stop.is_set() || stop.is_late()) {
                return Err(Error::new(Code::Cancelled, format!("{}: cancelled", control.name)));
            }
        }
        let stream = lane.engines[control.engine].streams[going.stream].lock();
        while let Some(op) = control.plan.ops.get(going.at) {
            going.at = match op {
                Op::Do(block) => {
                    self.block(&lane, &control, *block, &*stream)?;
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

    fn block(&self, lane: &Lane, control: &Control, number: usize, stream: &dyn DeviceStream) -> Result<()> {
        let Section { list, fetch } = &control.plan.blocks[number];
        let fetch: SmallVec<[Transfer<'_>; 2]> = fetch
            .iter()
            .map(|(selector, slot)| Transfer {
                name: &control.name,
                // SAFETY: this keeps the block, and looks at the slot when the copy is done.
                to: Place::Host(unsafe { HostAddress::new(self.slot(*slot)) }),
                from: Place::Device(control.address(lane, selector.at)),
                bytes: selector.desc.bytes().unwrap_or(0),
            })
            .collect();
        let is_worth_it = control.is_recorded && list.actions.len() + fetch.len() >= FEWEST;
        if is_worth_it {
            let recorded = &self.recorded[number];
            if recorded.get().is_none() {
                let _ = recorded.set(control.record(lane, list, &fetch)?);
            }
            if let Some(Some(executable)) = recorded.get() {
                return stream.replay(executable);
            }
        }
        control.issue(lane, stream, list)?;
        fetch.iter().try_for_each(|transfer| stream.copy(transfer))
    }

    fn finish(&self, going: Going, result: Result<()>) {
        let Going { lane, control, done, rest, .. } = going;
        // Behind the end of the call the program may go, and this thread is not to be the last to have it.
        drop((lane, control));
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

#[cfg(test)]
mod tests {
    use super::super::flow::Where;
    use super::*;
    use crate::base::{Desc, dtype};

    fn selector(value: usize) -> Selector {
        Selector { at: Where::Inner(value), desc: Desc::new(dtype::S32, &[1]) }
    }

    fn copy(after: &[usize]) -> Action {
        let what = What::Copy { from: Where::Input(0), to: Where::Output(0), bytes: 4 };
        Action { name: String::new(), what, after: after.to_vec() }
    }

    fn list(actions: Vec<Action>) -> List {
        List { actions, values: Vec::new() }
    }

    #[test]
    fn a_loop_with_a_branch_inside_becomes_blocks_and_jumps() {
        let action = |what| Action { name: String::new(), what, after: Vec::new() };
        let branches = vec![list(vec![copy(&[]), copy(&[0])]), list(Vec::new())];
        let branch = action(What::Branch { choice: selector(1), is_cond: true, branches });
        let body = list(vec![copy(&[]), branch, copy(&[0, 1]), copy(&[0, 2])]);
        let predicate = Test::Integer(selector(0));
        let looped = action(What::Loop { predicate, body, behind: Vec::new() });
        let plan = Plan::of(&list(vec![copy(&[]), looped, copy(&[0])]));
        let expected = [
            Op::Do(0),
            Op::Unless(predicate, 0, 9),
            Op::Do(1),
            Op::Choose { selector: selector(1), slot: 1, is_cond: true, to: vec![4, 6] },
            Op::Do(2),
            Op::Go(7),
            Op::Go(7),
            Op::Do(3),
            Op::Go(1),
            Op::Do(4),
        ];
        assert_eq!(plan.ops, expected);
        let blocks: Vec<_> = plan.blocks.iter().map(|block| (block.list.actions.len(), block.fetch.clone())).collect();
        assert_eq!(
            blocks,
            [
                (1, vec![(selector(0), 0)]),
                (1, vec![(selector(1), 1)]),
                (2, vec![]),
                (2, vec![(selector(0), 0)]),
                (1, vec![])
            ]
        );
        let after: Vec<_> = plan.blocks[3].list.actions.iter().map(|action| action.after.clone()).collect();
        assert_eq!(after, [vec![], vec![0]], "what lies in an earlier block is over");
    }
}

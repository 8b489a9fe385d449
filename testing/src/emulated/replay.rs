//! Launches of recordings. When the launch's turn comes in its queue, any of its operations whose edges allow it may be
//! the next: with a seed a drawn one, without one the earliest by the model, in which they run side by side. Later
//! items of the queue come after all of them.
//!
//! A branch or a loop is an operation that reads its integer. Then the chosen list runs; its operations are drawn among
//! all that may be next. A loop reads the integer again when all of the list is done, or in a step of the list that
//! comes after the steps that the recording names. When that list is over, the step is, and its successors may begin.
//!
//! An operation that fails ends the launch, inside of a branch or loop as well: no further operation begins.
#![forbid(unsafe_code)]

use super::list::{InnerLists, Lists, ReplayStep, StepList, StepPlace};
use super::operation::{Act, DeviceOperation, OperationCounts};
use super::schedule::Scheduler;
use crate::base::Error;
use crate::sync::Mutex;
use std::sync::{Arc, Weak};

pub(super) type Stock = Mutex<Vec<Box<Replay>>>;

/// The progress of a list that is running; it runs once at a time.
#[derive(Default)]
struct Frame {
    /// How many steps each step still waits for.
    left: Vec<u32>,
    /// The modelled time at which each step's predecessors are done.
    ready_ns: Vec<u64>,
    /// How many steps are not done yet.
    undone: usize,
    /// Whether it runs again, if a step of its own has found that out.
    again: Option<bool>,
    until: u64,
}

/// A launch of a recording.
pub(super) struct Replay {
    lists: Arc<Lists>,
    /// Those of the recording's own list. `None` while the launch is pooled.
    steps: Option<Arc<Vec<ReplayStep>>>,
    stock: Weak<Stock>,
    /// The numbers of the first operation and the first copy of that list.
    first: u64,
    first_copy: u64,
    /// The time before the first of its operations begins.
    head_ns: u64,
    /// By the lists' numbers.
    frames: Vec<Frame>,
    ready: Vec<StepPlace>,
    /// Those of the recording's own list.
    begun: Vec<bool>,
    /// The checker's errors, by the steps' numbers among all.
    refused: Vec<(u32, Error)>,
}

impl Frame {
    fn begin(&mut self, list: &StepList, time: u64) {
        self.left.clone_from(&list.after);
        self.ready_ns.clear();
        self.ready_ns.resize(list.after.len(), time);
        (self.undone, self.until, self.again) = (list.after.len(), time, None);
    }
}

impl Replay {
    /// A launch for the pool.
    pub(super) fn new(lists: &Arc<Lists>, stock: &Arc<Stock>) -> Box<Replay> {
        Box::new(Replay {
            lists: Arc::clone(lists),
            steps: None,
            stock: Arc::downgrade(stock),
            first: 0,
            first_copy: 0,
            head_ns: 0,
            frames: lists.all.iter().map(|_| Frame::default()).collect(),
            ready: Vec::with_capacity(lists.all[0].after.len()),
            begun: Vec::with_capacity(lists.all[0].after.len()),
            refused: Vec::new(),
        })
    }

    pub(super) fn begin(&mut self, steps: Arc<Vec<ReplayStep>>, first: u64, first_copy: u64, head_ns: u64) {
        self.head_ns = head_ns;
        self.begun.clear();
        self.begun.resize(steps.len(), false);
        self.steps = Some(steps);
        (self.first, self.first_copy) = (first, first_copy);
        self.ready.clear();
        self.refused.clear();
        self.open(0, 0);
    }

    /// Sets the checker's error for a step, if there is one.
    pub(super) fn refuse(&mut self, number: u32, refused: Option<Error>) {
        self.refused.extend(refused.map(|refused| (number, refused)));
    }

    /// Whether none of its operations is left to run or running.
    pub(super) fn is_over(&self) -> bool {
        self.frames[0].undone == 0
    }

    /// When its first operation can begin, if the launch's turn comes at this time.
    pub(super) fn from(&self, time: u64) -> u64 {
        time.saturating_add(self.head_ns)
    }

    /// When the last of the operations that have run is done.
    pub(super) fn until(&self) -> u64 {
        self.frames[0].until
    }

    fn ready_ns(&self, place: StepPlace) -> u64 {
        self.frames[place.list as usize].ready_ns[place.step as usize]
    }

    fn number(&self, place: StepPlace) -> u32 {
        self.lists.all[place.list as usize].numbers[place.step as usize].start
    }

    /// The next operation by the model, and when its predecessors are done.
    pub(super) fn earliest(&self) -> Option<(usize, u64)> {
        let ready = self.ready.iter().enumerate();
        ready
            .map(|(at, &place)| (at, self.ready_ns(place)))
            .min_by_key(|&(at, time)| (time, self.number(self.ready[at])))
    }

    /// The index in `ready` of the operation that the seed draws.
    pub(super) fn drawn(&self, scheduler: &mut Scheduler) -> usize {
        scheduler.draw(self.ready.len())
    }

    /// Takes a ready step and fills in its operation: gives the step, and when its predecessors are done.
    pub(super) fn take(
        &mut self,
        at: usize,
        operation: &mut DeviceOperation,
        counts: &mut OperationCounts,
    ) -> (StepPlace, u64) {
        let place = self.ready.swap_remove(at);
        let (index, number) = (place.step as usize, self.number(place));
        let is_numbered = place.list == 0 && !std::mem::replace(&mut self.begun[index], true);
        let step = match (place.list, &self.steps) {
            (0, Some(steps)) => &steps[index],
            (list, _) => &self.lists.all[list as usize].steps[index],
        };
        operation.copy = 0;
        let is_copy = matches!(step.act, Act::Copy { .. });
        if is_numbered {
            operation.number = self.first + u64::from(place.step);
            if is_copy {
                operation.copy = self.first_copy + u64::from(self.lists.copies[index]);
            }
        } else {
            counts.operations += 1;
            operation.number = counts.operations;
            match step.act {
                Act::Launch(..) => counts.launches += 1,
                Act::Copy { .. } => counts.copies += 1,
                Act::Fill { .. } | Act::Nothing => counts.fills += 1,
                Act::Read(_) => {}
            }
            if is_copy {
                operation.copy = counts.copies;
            }
        }
        operation.name.push_str(&step.name);
        operation.act = step.act.clone();
        operation.inputs.extend(step.inputs.iter().cloned());
        operation.outputs.extend(step.outputs.iter().cloned());
        operation.duration_ns = step.duration_ns;
        let refused = self.refused.iter().position(|(of, _)| *of == number);
        operation.refused = refused.map(|at| self.refused.swap_remove(at).1);
        (place, self.ready_ns(place))
    }

    /// A step's operation has run; `found` is the value that a branch or loop has read.
    pub(super) fn done(&mut self, place: StepPlace, until: u64, found: i64) {
        let list = match &self.lists.all[place.list as usize].inner[place.step as usize] {
            InnerLists::Branch(branches) => Some(branches[chosen(found, branches.len())]),
            InnerLists::Loop(list) => Some(*list).filter(|_| found != 0),
            InnerLists::Again => {
                self.frames[place.list as usize].again = Some(found != 0);
                None
            }
            InnerLists::None => None,
        };
        match list {
            Some(list) => self.open(list, until),
            None => self.step_is_over(place, until),
        }
    }

    /// A list begins.
    fn open(&mut self, list: u32, time: u64) {
        let of = &self.lists.all[list as usize];
        self.frames[list as usize].begin(of, time);
        let first = of.after.iter().enumerate().filter(|(_, after)| **after == 0);
        self.ready.extend(first.map(|(step, _)| StepPlace { list, step: step as u32 }));
        if of.after.is_empty() {
            self.list_is_over(list);
        }
    }

    /// All of a step is done: its successors without other predecessors are ready.
    fn step_is_over(&mut self, place: StepPlace, until: u64) {
        let frame = &mut self.frames[place.list as usize];
        frame.undone -= 1;
        frame.until = frame.until.max(until);
        for &next in self.lists.all[place.list as usize].followers(place.step as usize) {
            let step = next as usize;
            frame.ready_ns[step] = frame.ready_ns[step].max(until);
            frame.left[step] -= 1;
            if frame.left[step] == 0 {
                self.ready.push(StepPlace { list: place.list, step: next });
            }
        }
        if frame.undone == 0 {
            self.list_is_over(place.list);
        }
    }

    fn list_is_over(&mut self, list: u32) {
        let Some(owner) = self.lists.all[list as usize].owner else { return };
        let until = self.frames[list as usize].until;
        match self.lists.all[owner.list as usize].inner[owner.step as usize] {
            InnerLists::Loop(_) if self.frames[list as usize].again == Some(true) => self.open(list, until),
            // It reads the predicate again.
            InnerLists::Loop(_) if self.frames[list as usize].again.is_none() => {
                self.frames[owner.list as usize].ready_ns[owner.step as usize] = until;
                self.ready.push(owner);
            }
            _ => self.step_is_over(owner, until),
        }
    }

    /// The numbers of the recording's own list.
    pub(super) fn numbers(&self) -> std::ops::Range<u64> {
        self.first..self.first + self.begun.len() as u64
    }

    /// Those of them that have not begun.
    pub(super) fn passed_over(&self) -> impl Iterator<Item = u64> {
        self.begun.iter().zip(self.first..).filter(|(begun, _)| !**begun).map(|(_, number)| number)
    }

    /// Returns a finished launch to the pool.
    pub(super) fn keep(mut self: Box<Self>) {
        self.steps = None;
        if let Some(stock) = self.stock.upgrade() {
            stock.lock().push(self);
        }
    }
}

/// Which of so many lists of a branch runs.
fn chosen(choice: i64, lists: usize) -> usize {
    let last = lists - 1;
    usize::try_from(choice).map_or(last, |choice| choice.min(last))
}

//! The state behind the device's lock, and the possible next events: ends of operations, waits, records, and the
//! operation that begins.
//!
//! *Modelled time.* An operation begins when it was submitted, when its predecessors in the queue are done, and when
//! the events that the queue waited for were reached, whichever is last; it ends its duration later. All of these are
//! modelled times, so a thread that wakes up late does not delay work: later work begins when it should have.
#![forbid(unsafe_code)]

use super::checker::CHECKER;
use super::core::{Core, EventCallback};
use super::list::StepPlace;
use super::operation::{DeviceOperation, OperationCounts};
use super::queue::{Busy, EmulatedQueue, Item, ItemKind};
use super::races::Races;
use super::schedule::{Order, Scheduler};
use crate::base::{Error, Result};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// How many operations are kept for reuse.
const STOCK: usize = 4096;

/// How many staging buffers are kept.
const STAGING: usize = 16;

/// A demand on a device that works on demand.
pub(super) enum Demand {
    /// The event is to be reached for this time; then the call is made, if there is one.
    Event(Arc<Core>, u64, Option<EventCallback>),
    /// A few operations are to run: how many are left, once the number was drawn.
    Steps(Option<usize>),
}

/// A demand, and the last item that it looks at.
pub(super) struct Asked {
    pub demand: Demand,
    pub horizon: u64,
}

pub(super) struct DeviceState {
    pub label: String,
    checks: bool,
    pub queues: Vec<EmulatedQueue>,
    pub counts: OperationCounts,
    /// How many items all queues were given.
    pub sequence: u64,
    pub asked: VecDeque<Asked>,
    /// How many demands were made, and met.
    pub demanded: u64,
    pub met: u64,
    pub scheduler: Scheduler,
    pub order: Order,
    pub races: Races,
    #[expect(clippy::vec_box, reason = "they come and go as they lie in queues")]
    stock: Vec<Box<DeviceOperation>>,
    /// Callbacks of events that were reached, for the thread to call.
    pub calls: Vec<EventCallback>,
    /// The thread is inside a callback.
    pub is_calling: bool,
    /// How many callbacks of events that were not reached.
    pub pending: usize,
    pub has_thread: bool,
    /// No engine uses the device any more.
    pub is_closing: bool,
    /// The thread has ended; no more work is done.
    pub is_over: bool,
    pub events: u64,
    /// Copies to host memory that are still to be made, by number.
    pub host_writes: Vec<(u64, Range<usize>)>,
    /// Staging buffers.
    pub staging: Vec<Vec<u8>>,
}

/// An operation that begins.
pub(super) struct BegunOperation {
    pub operation: Box<DeviceOperation>,
    pub start: u64,
    /// Its step, if it belongs to a launch.
    pub step: Option<StepPlace>,
}

/// The thread's next action.
pub(super) enum NextAction {
    /// Runs the first operation of this queue.
    Run(usize),
    /// Nothing can begin; the next end is at this time.
    Sleep(Option<u64>),
}

impl DeviceState {
    pub(super) fn new(label: &str, seed: u64, checks: bool) -> Result<DeviceState> {
        Ok(DeviceState {
            checks,
            label: label.to_owned(),
            queues: Vec::new(),
            counts: OperationCounts::default(),
            sequence: 0,
            asked: VecDeque::new(),
            demanded: 0,
            met: 0,
            scheduler: Scheduler::new(seed),
            order: Order::new()?,
            races: Races::default(),
            stock: Vec::new(),
            calls: Vec::new(),
            is_calling: false,
            pending: 0,
            has_thread: false,
            is_closing: false,
            is_over: false,
            events: 0,
            host_writes: Vec::new(),
            staging: Vec::new(),
        })
    }

    pub(super) fn push(&mut self, queue: usize, issued_ns: u64, what: ItemKind) {
        self.sequence += 1;
        let item = Item { sequence: self.sequence, issued_ns, what };
        self.queues[queue].items.push_back(item);
    }

    pub(super) fn blank(&mut self) -> Box<DeviceOperation> {
        self.stock.pop().unwrap_or_default()
    }

    pub(super) fn keep(&mut self, mut operation: Box<DeviceOperation>) {
        if operation.copy > 0 {
            self.forget_writes(&(operation.number..operation.number + 1));
        }
        if let Some(staged) = operation.staged.take().filter(|_| self.staging.len() < STAGING) {
            self.staging.push(staged);
        }
        operation.clear();
        if self.stock.len() < STOCK {
            self.stock.push(operation);
        }
    }

    /// Processes due ends, waits, records and skipped operations, among the items up to `horizon`, until none of these
    /// can go on.
    pub(super) fn settle(&mut self, now: u64, horizon: u64) {
        loop {
            let mut moved = false;
            for queue in 0..self.queues.len() {
                while self.advance(queue, now, horizon) {
                    moved = true;
                }
            }
            if !moved {
                return;
            }
        }
    }

    /// One step of one queue that does not begin an operation.
    fn advance(&mut self, index: usize, now: u64, horizon: u64) -> bool {
        let queue = &mut self.queues[index];
        if let Some(busy) = &mut queue.busy {
            let Some(until) = busy.until.filter(|&until| until <= now) else { return false };
            let failure = busy.failure.take();
            queue.busy = None;
            queue.time = until;
            if queue.failure.is_none() {
                queue.failure = failure;
            }
            return true;
        }
        let can_go = queue.items.front().is_some_and(|item| {
            item.sequence <= horizon
                && match &item.what {
                    // Skipped, because of the failure.
                    ItemKind::Operation(_) => queue.failure.is_some(),
                    ItemKind::Replay(replay) => queue.failure.is_some() || replay.is_over() && replay.until() <= now,
                    ItemKind::Wait(core, time) => core.is_reached_for(*time),
                    ItemKind::Record(_) | ItemKind::Clear => true,
                }
        });
        if !can_go {
            return false;
        }
        let Some(item) = queue.items.pop_front() else { return false };
        match item.what {
            ItemKind::Operation(operation) => {
                self.order.add(operation.number);
                self.keep(operation);
            }
            ItemKind::Replay(replay) => {
                replay.passed_over().for_each(|number| self.order.add(number));
                queue.time = queue.time.max(replay.until());
                self.forget_writes(&replay.numbers());
                replay.keep();
            }
            ItemKind::Wait(core, _) => {
                let (reached, failure) = core.outcome();
                queue.time = queue.time.max(reached);
                if let Some(origin) = failure.filter(|_| queue.failure.is_none()) {
                    queue.failure = Some(derived(&self.label, &queue.name, &core, &origin));
                }
            }
            ItemKind::Record(core) => {
                let time = queue.time.max(item.issued_ns);
                let count = core.reach(time, queue.failure.clone(), &mut self.calls);
                self.pending -= count;
                if count > 0 {
                    self.told(&core);
                }
            }
            ItemKind::Clear => queue.failure = None,
        }
        true
    }

    /// The operation that begins next by the model: the earliest, then the one of the highest priority.
    pub(super) fn earliest(&self) -> NextAction {
        let mut best: Option<(u64, i64, usize)> = None;
        let mut due = None;
        for (index, queue) in self.queues.iter().enumerate() {
            if let Some(busy) = &queue.busy {
                due = busy.until.into_iter().chain(due).min();
                continue;
            }
            let Some(item) = queue.items.front() else { continue };
            let turn = queue.time.max(item.issued_ns);
            let ready = match &item.what {
                ItemKind::Operation(_) => turn,
                ItemKind::Replay(replay) => match replay.earliest() {
                    Some((_, ready)) => replay.from(turn).max(ready),
                    None => {
                        due = due.into_iter().chain([replay.until()]).min();
                        continue;
                    }
                },
                _ => continue,
            };
            let key = (ready, -i64::from(queue.priority), index);
            if best.is_none_or(|best| key < best) {
                best = Some(key);
            }
        }
        best.map_or(NextAction::Sleep(due), |(_, _, index)| NextAction::Run(index))
    }

    /// The operation that the seed draws among those that can begin; `None` if none can.
    pub(super) fn drawn(&mut self, horizon: u64) -> Option<usize> {
        let ready: SmallVec<[usize; 16]> = (0..self.queues.len())
            .filter(|&index| {
                let queue = &self.queues[index];
                let item = queue.items.front().filter(|item| queue.busy.is_none() && item.sequence <= horizon);
                matches!(item, Some(Item { what: ItemKind::Operation(_) | ItemKind::Replay(_), .. }))
            })
            .collect();
        if ready.is_empty() { None } else { Some(self.scheduler.choose(&ready)) }
    }

    /// Takes the first operation of a queue, or one of its first launch, and makes the queue busy with it; also gives
    /// its start.
    pub(super) fn begin(&mut self, index: usize, is_seeded: bool) -> Option<BegunOperation> {
        let mut operation = self.blank();
        let queue = &mut self.queues[index];
        let begun = match queue.items.front_mut() {
            Some(Item { what: ItemKind::Replay(replay), issued_ns, .. }) => {
                let at = if is_seeded { replay.drawn(&mut self.scheduler) } else { replay.earliest()?.0 };
                let (step, ready) = replay.take(at, &mut operation, &mut self.counts);
                let start = replay.from(queue.time.max(*issued_ns)).max(ready);
                BegunOperation { operation, start, step: Some(step) }
            }
            Some(Item { what: ItemKind::Operation(first), issued_ns, .. }) => {
                std::mem::swap(first, &mut operation);
                let start = queue.time.max(*issued_ns);
                queue.busy = Some(Busy { until: None, failure: None });
                let blank = queue.items.pop_front();
                if let Some(Item { what: ItemKind::Operation(blank), .. }) = blank {
                    self.keep(blank);
                }
                BegunOperation { operation, start, step: None }
            }
            _ => return None,
        };
        self.order.add(begun.operation.number);
        Some(begun)
    }

    /// An operation has run; a launch's if it has a step, which may have read an integer.
    pub(super) fn has_run(
        &mut self,
        index: usize,
        step: Option<StepPlace>,
        until: u64,
        failure: Option<Error>,
        found: i64,
    ) {
        let queue = &mut self.queues[index];
        let Some(step) = step else {
            if let Some(busy) = &mut queue.busy {
                (busy.until, busy.failure) = (Some(until), failure);
            }
            return;
        };
        if let Some(Item { what: ItemKind::Replay(replay), .. }) = queue.items.front_mut() {
            replay.done(step, until, found);
            if queue.failure.is_none() {
                queue.failure = failure;
            }
        }
    }

    /// Fails everything in flight and all queued work, and tells those who wait for it.
    pub(super) fn fail_all(&mut self, failure: &Error) {
        for queue in &mut self.queues {
            queue.busy = None;
            queue.failure = Some(failure.clone());
            while let Some(item) = queue.items.pop_front() {
                if let ItemKind::Record(core) = item.what {
                    self.pending -= core.reach(queue.time, Some(failure.clone()), &mut self.calls);
                }
            }
        }
        self.host_writes.clear();
        while let Some(asked) = self.asked.pop_front() {
            self.meet(asked.demand);
        }
    }

    /// A demand is met. The host asked to be called then, so it knows now.
    pub(super) fn meet(&mut self, demand: Demand) {
        self.met += 1;
        if let Demand::Event(core, _, Some(then)) = demand {
            self.told(&core);
            self.calls.push(then);
            self.pending -= 1;
        }
    }

    fn told(&self, core: &Core) {
        if self.checks {
            core.with_point(|point| CHECKER.with(|checker| checker.observe(point)));
        }
    }

    /// The operations with these numbers are done or skipped.
    pub(super) fn forget_writes(&mut self, numbers: &Range<u64>) {
        self.host_writes.retain(|(number, _)| !numbers.contains(number));
    }

    /// Whether a copy in flight has still to write some of these bytes of host memory.
    pub(super) fn will_write(&self, range: &Range<usize>) -> bool {
        self.host_writes.iter().any(|(_, other)| other.start < range.end && range.start < other.end)
    }

    /// A staging buffer.
    pub(super) fn staging(&mut self, bytes: usize) -> Result<Vec<u8>> {
        let mut room = self.staging.pop().unwrap_or_default();
        room.clear();
        room.try_reserve_exact(bytes).map_err(|_| Error::exhausted("the staging of a copy", bytes))?;
        room.resize(bytes, 0);
        Ok(room)
    }
}

/// The failure of a queue that waited for an event of a failed one.
fn derived(label: &str, queue: &str, core: &Arc<Core>, origin: &Error) -> Error {
    let text =
        format!("{label}, stream '{queue}': waited for event {} of a failed stream: {}", core.id, origin.message());
    Error::derived(origin, text)
}

//! Submission: calls on a stream add items to its queue.

use super::check;
use super::checker::{CHECKER, Ranges};
use super::event::EmulatedEvent;
use super::given::Given;
use super::operation::Act;
use super::queue::{EmulatedQueue, ItemKind};
use super::races::Race;
use super::recorded::Recorded;
use super::shared::SharedDevice;
use crate::base::{Error, Fifo, Result};
use crate::sync::fork;
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct EmulatedStream {
    shared: Arc<SharedDevice>,
    /// Its queue.
    pub(super) index: usize,
}

impl EmulatedStream {
    pub(super) fn open(shared: &Arc<SharedDevice>, name: &str, priority: i32) -> Result<EmulatedStream> {
        let mut state = shared.open()?;
        shared.ensure_thread(&mut state)?;
        let slot = if shared.checks() { CHECKER.with(|checker| checker.open(shared.id, name)) } else { 0 };
        let queue = EmulatedQueue {
            name: name.to_owned(),
            priority,
            slot,
            items: Fifo::default(),
            busy: None,
            time: 0,
            failure: None,
            is_open: true,
        };
        let index = match state.queues.iter().position(EmulatedQueue::is_over) {
            Some(index) => {
                state.queues[index] = queue;
                index
            }
            None => {
                state.queues.push(queue);
                state.queues.len() - 1
            }
        };
        Ok(EmulatedStream { shared: Arc::clone(shared), index })
    }

    /// Adds an operation to the queue, and to the checker.
    pub(super) fn submit(&self, given: Given<'_>) -> Result<()> {
        let shared = &self.shared;
        let mut state = shared.open()?;
        let mut operation = state.blank();
        let counts = &mut state.counts;
        counts.operations += 1;
        operation.number = counts.operations;
        operation.copy = 0;
        match &given.act {
            Act::Launch(..) => counts.launches += 1,
            Act::Copy { .. } => {
                counts.copies += 1;
                operation.copy = counts.copies;
            }
            Act::Fill { .. } | Act::Nothing | Act::Read(_) => counts.fills += 1,
        }
        operation.name.push_str(&given.name);
        operation.inputs.extend(given.inputs.iter().cloned());
        operation.outputs.extend(given.outputs.iter().cloned());
        operation.duration_ns = shared.settings.duration_ns(given.bytes());
        if let Some(source) = shared.note(&mut state, operation.number, &given.act) {
            let mut staged = state.staging(source.len())?;
            let from = std::ptr::with_exposed_provenance::<u8>(source.start);
            assert!(staged.len() >= source.len());
            // SAFETY: host memory, which stays as it is until the copy is done, as the maker of the address has
            // promised.
            unsafe { from.copy_to_nonoverlapping(staged.as_mut_ptr(), source.len()) };
            operation.staged = Some(staged);
        }
        if shared.checks() {
            let (mut reads, mut writes) = (Ranges::new(), Ranges::new());
            given.used(&mut reads, &mut writes);
            let used = (&reads, &writes);
            operation.refused = match &given.act {
                Act::Launch(form, scratch) => {
                    let launch = (&*given.name, &**form, (given.inputs, given.outputs, *scratch));
                    check::launch(shared, &mut state, self.index, launch, used, None)
                }
                _ => check::operation(shared, &mut state, self.index, &given.name, used, None),
            };
        }
        operation.act = given.act;
        state.push(self.index, self.shared.time_ns(), ItemKind::Operation(operation));
        drop(state);
        shared.submitted();
        Ok(())
    }

    /// Adds a launch of a recording to the queue, and its operations to the checker.
    pub(super) fn replay(&self, recorded: &Recorded) -> Result<()> {
        let shared = &self.shared;
        let mut state = shared.open()?;
        let replay = recorded.launch(&mut state, self.index);
        state.push(self.index, shared.time_ns(), ItemKind::Replay(replay));
        drop(state);
        shared.submitted();
        Ok(())
    }

    pub(super) fn record(&self, event: &EmulatedEvent) -> Result<()> {
        let mut state = self.shared.open()?;
        if !event.core.is_reached() {
            return Err(Error::precondition(format!(
                "event {} of {} was recorded before and not reached yet",
                event.core.id, self.shared.label
            )));
        }
        state.counts.records += 1;
        let slot = state.queues[self.index].slot;
        event.core.record(|point| {
            if self.shared.checks() {
                CHECKER.with(|checker| checker.record(slot, point));
            }
        });
        state.push(self.index, self.shared.time_ns(), ItemKind::Record(Arc::clone(&event.core)));
        drop(state);
        self.shared.submitted();
        Ok(())
    }

    pub(super) fn wait(&self, event: &EmulatedEvent) -> Result<()> {
        let mut state = self.shared.open()?;
        state.counts.waits += 1;
        let time = event.core.recorded();
        if self.shared.checks() {
            let (slot, after) = (state.queues[self.index].slot, state.counts.operations);
            match time {
                0 => {
                    let race = Race::of_wait(&state.queues[self.index].name, after, event.core.id);
                    state.races.add(race);
                }
                _ => event.core.with_point(|point| CHECKER.with(|checker| checker.wait(slot, point))),
            }
        }
        state.push(self.index, self.shared.time_ns(), ItemKind::Wait(Arc::clone(&event.core), time));
        drop(state);
        self.shared.submitted();
        Ok(())
    }

    pub(super) fn clear_error(&self) -> Result<()> {
        let mut state = self.shared.open()?;
        state.push(self.index, self.shared.time_ns(), ItemKind::Clear);
        drop(state);
        self.shared.submitted();
        Ok(())
    }
}

impl Drop for EmulatedStream {
    fn drop(&mut self) {
        // A forked child leaves the lock alone.
        if fork::forked() {
            return;
        }
        let mut state = self.shared.state.lock();
        let queue = &mut state.queues[self.index];
        queue.is_open = false;
        let slot = queue.slot;
        if self.shared.checks() && !state.is_over {
            CHECKER.with(|checker| checker.close(slot));
        }
    }
}

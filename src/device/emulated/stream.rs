//! Submission: what the calls on a stream put into its queue.

use super::checker::{CHECKER, Ranges};
use super::event::Event;
use super::queue::{Act, Address, Operation, Queue, What};
use super::races::Race;
use super::recorded::Recorded;
use super::state::Counts;
use super::work::Shared;
use super::{check, effect};
use crate::base::{Error, Fifo, Result};
use crate::device::{
    DeviceEvent, DeviceKernel, DeviceStream, Executable, Fill, HostFunction, Launch, Place, StreamAttr, Transfer,
};
use crate::memory::View;
use crate::sync::fork;
use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

/// A kernel: the host function that computes the same.
pub(super) struct Kernel {
    pub operation: String,
    pub function: Arc<dyn HostFunction>,
}

impl std::fmt::Debug for Kernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "emulated {}", self.operation)
    }
}

impl DeviceKernel for Kernel {
    /// It is the host's.
    fn in_place(&self) -> bool {
        true
    }
}

#[derive(Debug)]
pub(super) struct Stream {
    shared: Arc<Shared>,
    /// Its queue.
    pub(super) index: usize,
}

impl Stream {
    pub(super) fn open(shared: &Arc<Shared>, attr: &StreamAttr<'_>) -> Result<Stream> {
        let mut state = shared.open()?;
        shared.ensure_thread(&mut state)?;
        let slot = if shared.checks() { CHECKER.with(|checker| checker.open(shared.id, attr.name)) } else { 0 };
        let queue = Queue {
            name: attr.name.to_owned(),
            priority: attr.priority,
            slot,
            items: Fifo::default(),
            busy: None,
            time: 0,
            failure: None,
            is_open: true,
        };
        let index = match state.queues.iter().position(Queue::is_over) {
            Some(index) => {
                state.queues[index] = queue;
                index
            }
            None => {
                state.queues.push(queue);
                state.queues.len() - 1
            }
        };
        Ok(Stream { shared: Arc::clone(shared), index })
    }

    /// Puts an operation into the queue, and into the checker.
    fn submit(
        &self,
        name: &str,
        bytes: Option<usize>,
        uses: impl FnOnce(&mut Ranges, &mut Ranges),
        make: impl FnOnce(&mut Operation, &mut Counts),
    ) -> Result<()> {
        let shared = &self.shared;
        let mut state = shared.open()?;
        let mut operation = state.blank();
        state.counts.operations += 1;
        operation.number = state.counts.operations;
        operation.copy = 0;
        operation.name.push_str(name);
        operation.duration_ns = shared.settings.duration_ns(bytes);
        make(&mut operation, &mut state.counts);
        if let Some(source) = shared.note(&mut state, operation.number, &operation.act) {
            let mut staged = state.staging(source.len())?;
            let from = std::ptr::with_exposed_provenance::<u8>(source.start);
            assert!(staged.len() >= source.len());
            // SAFETY: memory of the host's, which stays as it is until the copy is done, as whoever made
            // the address has said.
            unsafe { from.copy_to_nonoverlapping(staged.as_mut_ptr(), source.len()) };
            operation.staged = Some(staged);
        }
        if shared.checks() {
            let (mut reads, mut writes) = (Ranges::new(), Ranges::new());
            uses(&mut reads, &mut writes);
            operation.refused = check::operation(shared, &mut state, self.index, name, (&reads, &writes), None);
        }
        state.push(self.index, self.shared.time_ns(), What::Operation(operation));
        drop(state);
        shared.submitted();
        Ok(())
    }
}

impl Shared {
    /// An address as the operation keeps it, checked.
    pub(super) fn address(&self, what: &str, place: &Place<'_>, bytes: usize) -> Result<Address> {
        let outside = |address: usize, of: &str| {
            Err(Error::invalid(format!("{what} is {bytes} bytes at {address:#x}, which are not {of}")))
        };
        match *place {
            Place::Host(address) => match check::owner(address.get(), bytes) {
                None => Ok(Address::Host(address)),
                Some(device) => outside(address.get(), &format!("the host's but of {}", device.label)),
            },
            Place::Device(address) => match self.reserve.translate(address, bytes) {
                Some(_) => Ok(Address::Own(address)),
                None if bytes == 0 => Ok(Address::Own(self.reserve.start())),
                None => outside(address, &format!("in the memory of {}", self.label)),
            },
            Place::Peer(_, address) => match check::owner(address, bytes) {
                Some(peer) if peer.reserve.translate(address, bytes).is_some() => Ok(Address::Peer(peer, address)),
                _ => outside(address, "in the memory of an emulated device"),
            },
        }
    }

    /// The kernel of a launch, whose tensors are the device's.
    pub(super) fn kernel_of<'a>(&self, launch: &Launch<'a>) -> Result<&'a Kernel> {
        let any: &dyn Any = &**launch.kernel;
        let Some(kernel) = any.downcast_ref::<Kernel>() else {
            return Err(Error::invalid("kernel is not one of an emulated device"));
        };
        for (what, views) in [("input", launch.inputs), ("output", launch.outputs)] {
            if let Some((i, view)) = views.iter().enumerate().find(|(_, view)| !effect::covers(self, view)) {
                return Err(Error::invalid(format!(
                    "{what} {i}: {} bytes at {:#x} are not in the memory of {}",
                    view.bytes(),
                    view.data() as usize,
                    self.label
                )));
            }
        }
        Ok(kernel)
    }

    pub(super) fn copy_of(&self, transfer: &Transfer<'_>) -> Result<Act> {
        let bytes = transfer.bytes;
        let to = self.address("the destination", &transfer.to, bytes)?;
        let from = self.address("the source", &transfer.from, bytes)?;
        Ok(Act::Copy { to, from, bytes })
    }

    pub(super) fn fill_of(&self, fill: &Fill<'_>) -> Result<Act> {
        let Fill { address, bytes, value, .. } = *fill;
        self.address("the destination", &Place::Device(address), bytes)?;
        Ok(if bytes > 0 { Act::Fill { to: address, bytes, value } } else { Act::Nothing })
    }
}

pub(super) fn range(address: usize, bytes: usize) -> Range<usize> {
    address..address + bytes
}

fn of_place(place: &Place<'_>, bytes: usize) -> Range<usize> {
    range(place.address(), bytes)
}

/// The bytes that a launch reads and writes.
pub(super) fn used(launch: &Launch<'_>, reads: &mut Ranges, writes: &mut Ranges) {
    let ranges = |views: &[View], ranges: &mut Ranges| {
        let used = views.iter().filter(|view| view.bytes() > 0);
        ranges.extend(used.map(|view| range(view.data() as usize, view.bytes())));
    };
    ranges(launch.inputs, reads);
    ranges(launch.outputs, writes);
}

/// Those of a copy.
pub(super) fn moved(transfer: &Transfer<'_>, reads: &mut Ranges, writes: &mut Ranges) {
    if transfer.bytes > 0 {
        reads.push(of_place(&transfer.from, transfer.bytes));
        writes.push(of_place(&transfer.to, transfer.bytes));
    }
}

pub(super) fn filled(fill: &Fill<'_>, writes: &mut Ranges) {
    if fill.bytes > 0 {
        writes.push(range(fill.address, fill.bytes));
    }
}

impl DeviceStream for Stream {
    fn launch(&self, launch: &Launch<'_>) -> Result<()> {
        let kernel = self.shared.kernel_of(launch)?;
        let uses = |reads: &mut Ranges, writes: &mut Ranges| used(launch, reads, writes);
        self.submit(launch.name, None, uses, |operation, counts| {
            counts.launches += 1;
            operation.act = Act::Launch(Arc::clone(&kernel.function));
            operation.inputs.extend(launch.inputs.iter().cloned());
            operation.outputs.extend(launch.outputs.iter().cloned());
        })
    }

    fn copy(&self, transfer: &Transfer<'_>) -> Result<()> {
        let act = self.shared.copy_of(transfer)?;
        let uses = |reads: &mut Ranges, writes: &mut Ranges| moved(transfer, reads, writes);
        self.submit(transfer.name, Some(transfer.bytes), uses, |operation, counts| {
            counts.copies += 1;
            operation.copy = counts.copies;
            operation.act = act;
        })
    }

    fn fill(&self, fill: &Fill<'_>) -> Result<()> {
        let act = self.shared.fill_of(fill)?;
        let uses = |_: &mut Ranges, writes: &mut Ranges| filled(fill, writes);
        self.submit(fill.name, Some(fill.bytes), uses, |operation, counts| {
            counts.fills += 1;
            operation.act = act;
        })
    }

    fn replay(&self, executable: &Arc<dyn Executable>) -> Result<()> {
        let any: &dyn Any = &**executable;
        match any.downcast_ref::<Recorded>() {
            Some(recorded) if recorded.is_of(&self.shared) => recorded.submit(self),
            _ => Err(Error::invalid(format!("executable is not one of {}", self.shared.label))),
        }
    }

    fn record(&self, event: &Arc<dyn DeviceEvent>) -> Result<()> {
        let event = Event::of(event, &self.shared)?;
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
        state.push(self.index, self.shared.time_ns(), What::Record(Arc::clone(&event.core)));
        drop(state);
        self.shared.submitted();
        Ok(())
    }

    fn wait(&self, event: &Arc<dyn DeviceEvent>) -> Result<()> {
        let event = Event::of(event, &self.shared)?;
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
        state.push(self.index, self.shared.time_ns(), What::Wait(Arc::clone(&event.core), time));
        drop(state);
        self.shared.submitted();
        Ok(())
    }

    fn clear_error(&self) {
        if let Ok(mut state) = self.shared.open() {
            state.push(self.index, self.shared.time_ns(), What::Clear);
            drop(state);
            self.shared.submitted();
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // A child of fork leaves the lock alone.
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

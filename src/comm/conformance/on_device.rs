//! Operations in the memory of a device, in the order of a stream.
//!
//! One stream copies there the bytes that are sent, has the operation, and copies on those that are received, without a
//! wait: a transport that does not keep to the stream's order sends and gives something else.

use super::collective::{collective, offered};
use super::probe::{Checked, MARGIN, Memory, Probe, ProbedOperation, Wrong, broken, failed, late, unmade};
use crate::abi::{weir_comm_op_value as Op, weir_comm_operation};
use crate::base::Ref;
use crate::base::time::{Deadline, now_ns};
use crate::comm::transport::{DeviceCapabilities, Transport};
use crate::device::{Accelerator, DeviceStream, DeviceStreamAttr, HostAddress, Location, Transfer};
use crate::engine::Engine;

/// A wait for the device is cut into pieces, between which the transport is asked.
const SLICE_NS: u64 = 200_000;

/// A stream of the transport's device.
struct StreamProbe<'a> {
    probe: &'a Probe<'a>,
    engine: Ref<Engine>,
    stream: Box<dyn DeviceStream>,
}

/// Memory of the device: a copy of a block of the kit's, with its margins, or room for one.
struct DeviceCopy<'a> {
    accelerator: &'a dyn Accelerator,
    address: usize,
    bytes: usize,
}

impl Drop for DeviceCopy<'_> {
    fn drop(&mut self) {
        self.accelerator.deallocate(self.address, self.bytes);
    }
}

/// Where an operation's bytes are, and where those that it has received are copied to.
type DeviceSides<'a> = [Option<DeviceCopy<'a>>; 3];

impl StreamProbe<'_> {
    fn open<'a>(probe: &'a Probe<'a>, on: DeviceCapabilities) -> Checked<StreamProbe<'a>> {
        let engine = Engine::create(on.kind, on.index, None).map_err(unmade("an engine of its device"))?;
        let attr = DeviceStreamAttr { name: "conformance", priority: 0 };
        let stream = match engine.accelerator() {
            Some(accelerator) => accelerator.stream(&attr).map_err(unmade("a stream"))?,
            None => return broken("get_info: its device is the host"),
        };
        Ok(StreamProbe { probe, engine, stream })
    }

    fn accelerator(&self) -> Checked<&dyn Accelerator> {
        self.engine.accelerator().map_or_else(|| broken("the device is gone"), |accelerator| Ok(accelerator as _))
    }

    fn room(&self, bytes: usize) -> Checked<DeviceCopy<'_>> {
        let accelerator = self.accelerator()?;
        let address = accelerator.allocate(bytes, "conformance").map_err(unmade("memory of the device"))?;
        Ok(DeviceCopy { accelerator, address, bytes })
    }

    fn copy(&self, to: Location<'_>, from: Location<'_>, bytes: usize) -> Checked {
        let transfer = Transfer { name: "conformance", to, from, bytes };
        self.stream.copy(&transfer).map_err(unmade("a copy"))
    }

    fn upload(&self, memory: &Memory) -> Checked<DeviceCopy<'_>> {
        let block = self.room(memory.whole().1)?;
        let (at, bytes) = memory.whole();
        // SAFETY: the operation's memory, which lives until the stream is done with it, or for good (`run`).
        let from = Location::Host(unsafe { HostAddress::new(at as usize) });
        self.copy(Location::Device(block.address), from, bytes)?;
        Ok(block)
    }

    /// Into the block that it was a copy of.
    fn download(&self, memory: &Memory, block: &DeviceCopy<'_>) -> Checked {
        let (at, bytes) = memory.whole();
        // SAFETY: as above, and nobody else has it.
        let to = Location::Host(unsafe { HostAddress::new(at as usize) });
        self.copy(to, Location::Device(block.address), bytes)
    }

    /// Waits until the stream is done with all that it was given; false if that takes longer than the budget.
    fn is_over(&self, transport: &dyn Transport) -> Checked<bool> {
        let event = self.accelerator()?.event(false).map_err(unmade("an event"))?;
        self.stream.record(&event).map_err(unmade("an event"))?;
        let end = now_ns().saturating_add(self.probe.options.budget_ns);
        loop {
            let deadline = Deadline::after(SLICE_NS);
            if event.synchronize(deadline).map_err(unmade("the device's work"))? {
                return Ok(true);
            }
            if now_ns() >= end {
                return Ok(false);
            }
            self.probe.progress(transport)?;
        }
    }

    /// The operation with addresses of the device.
    fn on_device(operation: &ProbedOperation, sides: &DeviceSides<'_>) -> weir_comm_operation {
        let at = |side: &Option<DeviceCopy<'_>>| side.as_ref().map_or(0, |block| block.address + MARGIN);
        let [send, recv] = [at(&sides[0]), at(&sides[1])];
        operation.raw.raw(std::ptr::with_exposed_provenance(send), std::ptr::with_exposed_provenance_mut(recv))
    }

    fn submit(&self, transport: &dyn Transport, what: &str, operations: &[weir_comm_operation]) -> Checked {
        let mut submitted = Ok(());
        let within = self.accelerator()?.within(&mut || {
            submitted = transport.enqueue(operations, &*self.stream);
            Ok(())
        });
        within.map_err(unmade("the device"))?;
        submitted.map_err(failed(&format!("enqueue of {what}")))
    }

    /// Runs operations as one, and looks at their bytes.
    fn run(&self, operations: Vec<ProbedOperation>) -> Checked {
        let mut sides: Vec<DeviceSides<'_>> = Vec::new();
        for operation in &operations {
            let [send, recv] = operation.sides();
            let room = recv.map(|memory| self.room(memory.whole().1)).transpose()?;
            let [send, recv] = [send, recv].map(|side| side.map(|memory| self.upload(memory)).transpose());
            sides.push([send?, recv?, room]);
        }
        let raw: Vec<weir_comm_operation> =
            operations.iter().zip(&sides).map(|(operation, sides)| StreamProbe::on_device(operation, sides)).collect();
        self.submit(self.probe.transport, &operations[0].what, &raw)?;
        for [_, recv, room] in &sides {
            if let (Some(recv), Some(room)) = (recv, room) {
                self.copy(Location::Device(room.address), Location::Device(recv.address), recv.bytes)?;
            }
        }
        if !self.is_over(self.probe.transport)? {
            let text = late(&operations[0], self.probe.options.budget_ns);
            std::mem::forget((operations, sides));
            return Err(Wrong::Stuck(text));
        }
        for (operation, [send, _, room]) in operations.iter().zip(&sides) {
            let [sent, received] = operation.sides();
            for (memory, block) in [(sent, send), (received, room)] {
                if let (Some(memory), Some(block)) = (memory, block) {
                    self.download(memory, block)?;
                }
            }
        }
        if !self.is_over(self.probe.transport)? {
            std::mem::forget((operations, sides));
            return Err(Wrong::Stuck("copies of the device are not over".to_owned()));
        }
        operations.iter().try_for_each(ProbedOperation::check)
    }
}

/// All operations that the transport claims; a text for the report.
pub fn operations(probe: &Probe<'_>, on: DeviceCapabilities) -> Checked<String> {
    let bench = StreamProbe::open(probe, on)?;
    let (offered, counts) = (offered(&on.capabilities), [1, 7, 300]);
    for (at, &(op, reduction, of)) in offered.iter().enumerate() {
        for count in counts {
            bench.run(vec![collective(probe, op, reduction, of, count, at + count)?])?;
        }
    }
    let (rank, size) = (probe.rank(), probe.size());
    let has_messages =
        on.capabilities.takes(Op::WEIR_COMM_SEND) && on.capabilities.takes(Op::WEIR_COMM_RECV) && size > 1;
    for bytes in [1, 64, 5000].into_iter().filter(|_| has_messages) {
        let content = |from: usize| vec![(from + bytes) as u8; bytes];
        let (next, previous) = ((rank + 1) % size, (rank + size - 1) % size);
        let send = ProbedOperation::message(true, next, 0, &content(rank))?;
        bench.run(vec![send, ProbedOperation::message(false, previous, 0, &content(previous))?])?;
    }
    let messages = if has_messages { ", and messages around" } else { "" };
    Ok(format!("{} collectives with {counts:?} elements{messages}", offered.len()))
}

/// An operation that rank 0 has alone, and that all give up: its stream goes on. `None` if there is none to try with.
pub fn abort(probe: &Probe<'_>, on: DeviceCapabilities, other: &dyn Transport) -> Checked<Option<String>> {
    let Some(&(op, reduction, of)) = offered(&on.capabilities).iter().find(|(op, ..)| *op == Op::WEIR_COMM_ALL_REDUCE)
    else {
        return Ok(None);
    };
    if probe.rank() != 0 {
        other.abort();
        return Ok(Some("rank 0 has looked".to_owned()));
    }
    let bench = StreamProbe::open(probe, on)?;
    let operation = collective(probe, op, reduction, of, 300, 0)?;
    let [send, recv] = operation.sides().map(|side| side.map(|memory| bench.upload(memory)).transpose());
    let sides = [send?, recv?, None];
    bench.submit(other, &operation.what, &[StreamProbe::on_device(&operation, &sides)])?;
    other.abort();
    if !bench.is_over(probe.transport)? {
        let text = format!("{} was given up, and its stream does not go on", operation.what);
        std::mem::forget((operation, sides));
        std::mem::forget(bench);
        return Err(Wrong::Stuck(text));
    }
    Ok(Some(format!("{} alone, given up: its stream went on", operation.what)))
}

//! Fields: the streams, events and memory of a device with which a probe observes one thing.

use super::bench::DeviceBench;
use super::keep::{DeviceBlock, OnHost, Parts, Pinned, told};
use crate::device::{
    Device, DeviceEvent, DeviceKernel, DeviceStream, DeviceStreamAttr, Executable, Fill, HostAddress, Location,
    Transfer,
};
use std::sync::Arc;

/// The size of a copy in a burden, and the number of copies.
const CHUNK: usize = 4 << 20;
const CHUNKS: usize = 6;

/// A field that is not taken down leaks: its probe has found a fault, so the device's answers cannot be trusted.
pub(super) struct Field<'a> {
    bench: &'a DeviceBench,
    parts: Parts,
}

/// Host memory that the device writes.
#[derive(Clone, Copy)]
pub(super) struct Landing(usize);

impl Drop for Field<'_> {
    fn drop(&mut self) {
        self.bench.keep.leave(std::mem::take(&mut self.parts));
    }
}

impl<'a> Field<'a> {
    pub(super) fn new(bench: &'a DeviceBench, streams: Vec<Box<dyn DeviceStream>>) -> Field<'a> {
        Field { bench, parts: Parts { streams, ..Parts::default() } }
    }

    /// Ends a field that has found no fault.
    pub(super) fn take_down(mut self) -> Result<(), String> {
        (0..self.parts.streams.len()).try_for_each(|stream| self.finish(stream))?;
        self.bench.keep.take_down(std::mem::take(&mut self.parts));
        Ok(())
    }

    /// The alignment of the device's memory.
    pub(super) fn alignment(&self) -> usize {
        self.bench.device.alignment()
    }

    pub(super) fn stream(&mut self, stream: usize) -> &dyn DeviceStream {
        self.bench.step();
        &*self.parts.streams[stream]
    }

    /// Ends one stream, which is done.
    pub(super) fn end(&mut self, stream: usize) {
        drop(self.parts.streams.remove(stream));
    }

    /// Allocates memory of the device.
    pub(super) fn block(&mut self, bytes: usize) -> Result<usize, String> {
        self.block_on(&Arc::clone(&self.bench.device), bytes)
    }

    /// Allocates memory of another device.
    pub(super) fn block_on(&mut self, device: &Arc<dyn Device>, bytes: usize) -> Result<usize, String> {
        self.bench.step();
        let memory = DeviceBlock::on(device, bytes).map_err(told)?;
        let address = memory.address;
        self.parts.memory.push(memory);
        Ok(address)
    }

    /// Keeps pinned memory as long as the field.
    pub(super) fn pin(&mut self, memory: Pinned) -> Arc<Pinned> {
        let memory = Arc::new(memory);
        self.parts.host.push(OnHost::Pinned(Arc::clone(&memory)));
        memory
    }

    /// Keeps an executable as long as the field.
    pub(super) fn keep_executable(&mut self, executable: &Arc<dyn Executable>) {
        self.parts.executables.push(Arc::clone(executable));
    }

    /// Keeps a kernel as long as the field.
    pub(super) fn keep_kernel(&mut self, kernel: &Arc<dyn DeviceKernel>) {
        self.parts.kernels.push(Arc::clone(kernel));
    }

    fn buffer(&mut self, bytes: usize) -> Result<usize, String> {
        let memory = self.bench.keep.host(bytes)?;
        let address = memory.view().data().expose_provenance();
        self.parts.host.push(OnHost::Any(memory));
        Ok(address)
    }

    pub(super) fn copy(
        &mut self,
        stream: usize,
        to: Location<'_>,
        from: Location<'_>,
        bytes: usize,
    ) -> Result<(), String> {
        self.stream(stream).copy(&Transfer { name: "conformance", to, from, bytes }).map_err(told)
    }

    /// Copies bytes to the device; the field keeps them.
    pub(super) fn upload(&mut self, stream: usize, to: usize, bytes: &[u8]) -> Result<(), String> {
        let memory = self.bench.keep.host(bytes.len())?;
        let view = memory.view();
        // SAFETY: nobody else has the buffer yet.
        unsafe { view.as_bytes_mut() }.write_bytes().copy_from_slice(bytes);
        // SAFETY: the field keeps it, and nobody writes it again.
        let from = Location::Host(unsafe { HostAddress::new(view.data().expose_provenance()) });
        self.parts.host.push(OnHost::Any(memory));
        self.copy(stream, Location::Device(to), from, bytes.len())
    }

    /// Copies bytes back, to be read with `landed`.
    pub(super) fn download(&mut self, stream: usize, from: usize, bytes: usize) -> Result<Landing, String> {
        // SAFETY: the field keeps it, and looks at it when the copy is done.
        let to = Location::Host(unsafe { HostAddress::new(self.buffer(bytes)?) });
        self.copy(stream, to, Location::Device(from), bytes)?;
        Ok(Landing(self.parts.host.len() - 1))
    }

    /// As `download`, but behind work in flight. The copy must not block this thread until that is over, which only
    /// pinned memory promises.
    pub(super) fn download_aside(&mut self, stream: usize, from: usize, bytes: usize) -> Result<Landing, String> {
        if self.bench.accelerator()?.pinning().is_none() {
            return self.download(stream, from, bytes);
        }
        let memory = self.pin(Pinned::allocate(&self.bench.device, bytes)?);
        self.copy(stream, memory.place(), Location::Device(from), bytes)?;
        Ok(Landing(self.parts.host.len() - 1))
    }

    pub(super) fn landed(&mut self, landing: Landing) -> Vec<u8> {
        // SAFETY: the field keeps it, and the copy that it is for is over, or the device is found out.
        unsafe { self.parts.host[landing.0].view().as_bytes().read_bytes().to_vec() }
    }

    /// Compares the bytes that have landed with the expected ones.
    pub(super) fn expect(&mut self, landing: Landing, expected: &[u8], what: &str) -> Result<(), String> {
        self.bench.step();
        let got = self.landed(landing);
        if got == expected {
            return Ok(());
        }
        match got.iter().zip(expected).position(|(got, expected)| got != expected) {
            Some(at) => {
                let (got, wanted) = (got[at], expected[at]);
                Err(format!("{what}: byte {at} of {} is {got}, expected {wanted}", expected.len()))
            }
            None => Ok(()),
        }
    }

    pub(super) fn fill(&mut self, stream: usize, address: usize, bytes: usize, value: u8) -> Result<(), String> {
        self.stream(stream).fill(&Fill { name: "conformance", address, bytes, value }).map_err(told)
    }

    pub(super) fn event(&mut self, timing: bool) -> Result<Arc<dyn DeviceEvent>, String> {
        let event = self.bench.accelerator()?.event(timing).map_err(told)?;
        self.parts.events.push(Arc::clone(&event));
        Ok(event)
    }

    pub(super) fn record(&mut self, stream: usize, event: &Arc<dyn DeviceEvent>) -> Result<(), String> {
        self.stream(stream).record(event).map_err(told)
    }

    /// Records an event behind all that the stream was given.
    pub(super) fn mark(&mut self, stream: usize) -> Result<Arc<dyn DeviceEvent>, String> {
        let event = self.event(false)?;
        self.record(stream, &event)?;
        Ok(event)
    }

    /// Waits until the stream is done; an error if it is not done in time. A failure of its work counts as done.
    pub(super) fn finish(&mut self, stream: usize) -> Result<(), String> {
        let event = self.mark(stream)?;
        self.reach(&event)
    }

    pub(super) fn reach(&self, event: &Arc<dyn DeviceEvent>) -> Result<(), String> {
        self.bench.step();
        match event.synchronize(self.bench.deadline()) {
            Ok(false) => Err(format!("an event was not reached in {}", self.bench.budget())),
            _ => Ok(()),
        }
    }

    /// Issues copies of megabytes to delay all that comes after them; `weight` multiplies their number. Gives the final
    /// bytes, and their address. Only the last copy brings them, so a read that comes too early finds other bytes.
    pub(super) fn burden(&mut self, stream: usize, weight: usize) -> Result<(usize, Vec<u8>), String> {
        let (a, b, to) = (self.block(CHUNK)?, self.block(CHUNK)?, self.block(CHUNK)?);
        let bytes = self.bench.bytes(CHUNK);
        self.fill(stream, b, CHUNK, 0)?;
        self.upload(stream, a, &bytes)?;
        for _ in 1..CHUNKS * weight {
            self.copy(stream, Location::Device(to), Location::Device(b), CHUNK)?;
        }
        self.copy(stream, Location::Device(to), Location::Device(a), CHUNK)?;
        Ok((to, bytes))
    }
}

impl DeviceBench {
    /// A field with this many streams.
    pub(super) fn field(&self, streams: usize) -> Result<Field<'_>, String> {
        let accelerator = self.accelerator()?;
        let stream = |_| accelerator.stream(&DeviceStreamAttr { name: "conformance", priority: 0 }).map_err(told);
        let streams = (0..streams).map(stream).collect::<Result<_, _>>()?;
        Ok(Field::new(self, streams))
    }
}

//! What the probes work with: a device, and fields of streams, events and memory on it.
//!
//! A field is only taken down when its streams are known to be done, and then streams first: a device that lies about its events would
//! otherwise be given memory back that it is still at. One that is not done in time is left behind for good.

use crate::base::time::Deadline;
use crate::base::{Desc, Error, Result as Outcome, dtype};
use crate::device::{Accelerator, Device, DeviceEvent, DeviceStream, Fill, Place, StreamAttr, Transfer};
use crate::memory::{Buffer, View};
use crate::threadpool::conformance::Options;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// So much is put in front of what is looked at, in copies of `CHUNK`.
const CHUNK: usize = 4 << 20;
const CHUNKS: usize = 6;

pub(super) struct Bench {
    pub(super) device: Arc<dyn Device>,
    options: Options,
    random: AtomicU64,
}

/// A stretch of a device's memory.
pub(super) struct Memory {
    device: Arc<dyn Device>,
    pub(super) address: usize,
    bytes: usize,
}

impl Memory {
    pub(super) fn on(device: &Arc<dyn Device>, bytes: usize) -> Outcome<Memory> {
        let none = || Error::internal("a device without memory of its own");
        let address = device.accelerator().ok_or_else(none)?.allocate(bytes, "conformance")?;
        Ok(Memory { device: Arc::clone(device), address, bytes })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Some(accelerator) = self.device.accelerator() {
            accelerator.deallocate(self.address, self.bytes);
        }
    }
}

/// Text of a failure.
pub(super) fn told(error: Error) -> String {
    error.message().to_owned()
}

impl Bench {
    pub(super) fn new(device: Arc<dyn Device>, options: Options) -> Bench {
        Bench { device, options, random: AtomicU64::new(options.seed) }
    }

    pub(super) fn accelerator(&self) -> Result<&dyn Accelerator, String> {
        self.device.accelerator().ok_or_else(|| "the device has no streams".to_owned())
    }

    pub(super) fn budget_ns(&self) -> u64 {
        self.options.budget_ns
    }

    pub(super) fn deadline(&self) -> Deadline {
        Deadline::after(self.options.budget_ns)
    }

    pub(super) fn budget(&self) -> String {
        format!("{} ms", self.options.budget_ns / 1_000_000)
    }

    pub(super) fn rounds(&self) -> usize {
        self.options.rounds as usize
    }

    /// The next draw below `n` (splitmix64, Steele, Lea and Flood 2014).
    pub(super) fn draw(&self, n: usize) -> usize {
        let mut z = self.random.fetch_add(0x9E37_79B9_7F4A_7C15, Relaxed);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % n.max(1) as u64) as usize
    }

    /// Bytes that are unlike any others.
    pub(super) fn bytes(&self, count: usize) -> Vec<u8> {
        let mut state = self.draw(usize::MAX) as u64 | 1;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        };
        (0..count).map(|_| next()).collect()
    }

    /// A field with so many streams.
    pub(super) fn field(&self, streams: usize) -> Result<Field<'_>, String> {
        let accelerator = self.accelerator()?;
        let stream = |_| accelerator.stream(&StreamAttr { name: "conformance", priority: 0 }).map_err(told);
        let streams = (0..streams).map(stream).collect::<Result<_, _>>()?;
        Ok(Field { bench: self, parts: Some(Parts { streams, ..Parts::default() }), done: false })
    }
}

/// In the order in which they are taken down.
#[derive(Default)]
struct Parts {
    streams: Vec<Box<dyn DeviceStream>>,
    events: Vec<Arc<dyn DeviceEvent>>,
    memory: Vec<Memory>,
    host: Vec<Buffer>,
}

pub(super) struct Field<'a> {
    bench: &'a Bench,
    parts: Option<Parts>,
    done: bool,
}

/// Memory of the host's that the device writes.
#[derive(Clone, Copy)]
pub(super) struct Landing(usize);

impl Drop for Field<'_> {
    fn drop(&mut self) {
        let streams = self.parts().streams.len();
        if !self.done && (0..streams).any(|stream| self.finish(stream).is_err()) {
            std::mem::forget(self.parts.take());
        }
    }
}

impl Field<'_> {
    fn parts(&mut self) -> &mut Parts {
        self.parts.get_or_insert_default()
    }

    pub(super) fn stream(&mut self, stream: usize) -> &dyn DeviceStream {
        &*self.parts().streams[stream]
    }

    /// Ends one stream, which is done.
    pub(super) fn end(&mut self, stream: usize) {
        drop(self.parts().streams.remove(stream));
    }

    /// Memory of the device's.
    pub(super) fn block(&mut self, bytes: usize) -> Result<usize, String> {
        let memory = Memory::on(&self.bench.device, bytes).map_err(told)?;
        let address = memory.address;
        self.parts().memory.push(memory);
        Ok(address)
    }

    fn buffer(&mut self, bytes: usize) -> Result<usize, String> {
        let buffer = Buffer::zeroed(bytes, "conformance").map_err(told)?;
        let address = buffer.data().expose_provenance();
        self.parts().host.push(buffer);
        Ok(address)
    }

    pub(super) fn copy(&mut self, stream: usize, to: Place<'_>, from: Place<'_>, bytes: usize) -> Result<(), String> {
        self.stream(stream).copy(&Transfer { name: "conformance", to, from, bytes }).map_err(told)
    }

    /// Copies bytes there; they are kept until then.
    pub(super) fn upload(&mut self, stream: usize, to: usize, bytes: &[u8]) -> Result<(), String> {
        let from = self.buffer(bytes.len())?;
        let desc = Desc::new(dtype::U8, &[bytes.len() as i64]);
        let whole = View::new(bytes.as_ptr().cast_mut(), bytes.len(), desc);
        View::new(std::ptr::with_exposed_provenance_mut(from), bytes.len(), desc).copy_from(&whole);
        self.copy(stream, Place::Device(to), Place::Host(from), bytes.len())
    }

    /// Copies bytes back, to be looked at with `landed`.
    pub(super) fn download(&mut self, stream: usize, from: usize, bytes: usize) -> Result<Landing, String> {
        let to = self.buffer(bytes)?;
        self.copy(stream, Place::Host(to), Place::Device(from), bytes)?;
        Ok(Landing(self.parts().host.len() - 1))
    }

    pub(super) fn landed(&mut self, landing: Landing) -> Vec<u8> {
        let buffer = &self.parts().host[landing.0];
        let desc = Desc::new(dtype::U8, &[buffer.bytes() as i64]);
        View::new(buffer.data(), buffer.bytes(), desc).read_bytes().to_vec()
    }

    /// What has landed must be this.
    pub(super) fn expect(&mut self, landing: Landing, expected: &[u8], what: &str) -> Result<(), String> {
        let got = self.landed(landing);
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
        self.parts().events.push(Arc::clone(&event));
        Ok(event)
    }

    pub(super) fn record(&mut self, stream: usize, event: &Arc<dyn DeviceEvent>) -> Result<(), String> {
        self.stream(stream).record(event).map_err(told)
    }

    /// An event behind all that the stream was given.
    pub(super) fn mark(&mut self, stream: usize) -> Result<Arc<dyn DeviceEvent>, String> {
        let event = self.event(false)?;
        self.record(stream, &event)?;
        Ok(event)
    }

    /// Waits until the stream is done; an error if it is not in time. A failure of its work counts as done.
    pub(super) fn finish(&mut self, stream: usize) -> Result<(), String> {
        let event = self.mark(stream)?;
        self.reach(&event)
    }

    pub(super) fn reach(&self, event: &Arc<dyn DeviceEvent>) -> Result<(), String> {
        match event.synchronize(self.bench.deadline()) {
            Ok(false) => Err(format!("an event was not reached in {}", self.bench.budget())),
            _ => Ok(()),
        }
    }

    /// Megabytes that are copied about before anything that comes after them, `weight` times as many as a little. Gives what is there at the end, and where.
    pub(super) fn burden(&mut self, stream: usize, weight: usize) -> Result<(usize, Vec<u8>), String> {
        let (a, b) = (self.block(CHUNK)?, self.block(CHUNK)?);
        let bytes = self.bench.bytes(CHUNK);
        self.fill(stream, b, CHUNK, 0)?;
        self.upload(stream, a, &bytes)?;
        for _ in 0..CHUNKS * weight {
            self.copy(stream, Place::Device(b), Place::Device(a), CHUNK)?;
        }
        Ok((b, bytes))
    }
}

/// Repeats a probe of work that is under way until it has met such work so many times, and gives how many. A probe that came too late, as
/// a thread that is held up does, is repeated with twice the work; a device that is always done already ends that.
pub(super) fn under_way(times: usize, mut probe: impl FnMut(usize) -> Result<bool, String>) -> Result<usize, String> {
    const MOST: usize = 64;
    let (mut met, mut weight) = (0, 1);
    while met < times {
        if probe(weight)? {
            met += 1;
        } else if weight < MOST {
            weight *= 2;
        } else {
            break;
        }
    }
    Ok(met)
}

//! The clause about pinned memory of the host's.

use super::bench::{Bench, told, under_way};
use super::{Finding, Seen, of_work_under_way};
use crate::base::{Desc, dtype};
use crate::device::{Device, HostAddress, Pinning, Place};
use crate::memory::{ALIGNMENT, Buffer, View};
use std::sync::Arc;

/// Memory of the host's that the device knows.
pub(super) struct Pinned {
    device: Arc<dyn Device>,
    address: usize,
    bytes: usize,
    /// Somebody else's, which was registered.
    _others: Option<Buffer>,
}

fn pinning(device: &Arc<dyn Device>) -> Result<&dyn Pinning, String> {
    device.accelerator().and_then(|accelerator| accelerator.pinning()).ok_or_else(|| "it pins nothing".to_owned())
}

impl Pinned {
    pub(super) fn allocate(device: &Arc<dyn Device>, bytes: usize) -> Result<Pinned, String> {
        let address = pinning(device)?.allocate_host(bytes, "conformance").map_err(told)?;
        if !address.is_multiple_of(ALIGNMENT) {
            return Err(format!("{address:#x} is not aligned to {ALIGNMENT}"));
        }
        Ok(Pinned { device: Arc::clone(device), address, bytes, _others: None })
    }

    fn register(device: &Arc<dyn Device>, bytes: usize) -> Result<Pinned, String> {
        let memory = Buffer::zeroed(bytes, "conformance").map_err(told)?;
        let address = memory.data().expose_provenance();
        pinning(device)?.register(address, bytes, "conformance").map_err(told)?;
        Ok(Pinned { device: Arc::clone(device), address, bytes, _others: Some(memory) })
    }

    pub(super) fn view(&self) -> View {
        let desc = Desc::new(dtype::U8, &[self.bytes as i64]);
        // SAFETY: so many bytes that the device allocated, or of the buffer; whoever looks at the view keeps this.
        unsafe { View::new(std::ptr::with_exposed_provenance_mut(self.address), self.bytes, desc) }
    }

    pub(super) fn place(&self) -> Place<'static> {
        // SAFETY: the field keeps it (`Field::pin`), and looks at it when the copies are done.
        Place::Host(unsafe { HostAddress::new(self.address) })
    }

    fn write(&self, value: u8) {
        // SAFETY: nobody else uses it yet.
        unsafe { self.view().as_bytes_mut().fill(value) };
    }

    fn expect(&self, value: impl Fn(usize) -> u8, what: &str) -> Result<(), String> {
        let view = self.view();
        // SAFETY: what was copied to it is there.
        match unsafe { view.as_bytes() }.read_bytes().iter().enumerate().find(|&(at, &byte)| byte != value(at)) {
            Some((at, byte)) => Err(format!("{what}: byte {at} of {} is {byte}, expected {}", self.bytes, value(at))),
            None => Ok(()),
        }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let Ok(pinning) = pinning(&self.device) else { return };
        match self._others {
            Some(_) => pinning.unregister(self.address, self.bytes),
            None => pinning.deallocate_host(self.address, self.bytes),
        }
    }
}

type Make = fn(&Arc<dyn Device>, usize) -> Result<Pinned, String>;

pub(super) fn pinned(bench: &Bench) -> Finding {
    let device = &bench.device;
    let Ok(pinning) = pinning(device) else {
        return Ok(Seen::NotOffered("copies take whatever memory there is".to_owned()));
    };
    apart(bench)?;
    let mut met = 0;
    let all: &[Make] = &[Pinned::allocate, Pinned::register];
    for &make in if pinning.can_register() { all } else { &all[..1] } {
        met += under_way(bench.rounds().div_ceil(8), |weight| pass_on(bench, weight, make))?;
    }
    of_work_under_way(met, format!("allocated{}", if pinning.can_register() { ", and registered" } else { "" }))
}

/// Memory is aligned, nobody else has it, and it keeps what the host writes.
fn apart(bench: &Bench) -> Result<(), String> {
    let mut blocks: Vec<Pinned> = Vec::new();
    for number in 0..bench.rounds() {
        if number % 3 == 2 {
            drop(blocks.swap_remove(bench.draw(blocks.len())));
        }
        let block = Pinned::allocate(&bench.device, 1 + bench.draw(70_000))?;
        let (start, end) = (block.address, block.address + block.bytes);
        if let Some(other) = blocks.iter().find(|other| other.address < end && start < other.address + other.bytes) {
            let (bytes, at) = (other.bytes, other.address);
            return Err(format!(
                "{} bytes at {start:#x} lie in {bytes} bytes at {at:#x}, which are in use",
                block.bytes
            ));
        }
        block.write(block.address as u8 ^ (block.address >> 8) as u8);
        blocks.push(block);
    }
    let value = |block: &Pinned| block.address as u8 ^ (block.address >> 8) as u8;
    blocks.iter().try_for_each(|block| block.expect(|_| value(block), "what the host wrote"))
}

/// One stream writes pinned memory late, and another one reads it behind that: it must see what was written, and not
/// what was there as the copy was asked for. Whether it was asked for before that.
fn pass_on(bench: &Bench, weight: usize, make: Make) -> Result<bool, String> {
    let mut field = bench.field(2)?;
    let (from, expected) = field.burden(0, weight)?;
    let bytes = expected.len();
    let middle = field.pin(make(&bench.device, bytes)?);
    middle.write(0xEE);
    field.copy(0, middle.place(), Place::Device(from), bytes)?;
    let written = field.mark(0)?;
    let back = field.block(bytes)?;
    field.stream(1).wait(&written).map_err(told)?;
    field.copy(1, Place::Device(back), middle.place(), bytes)?;
    let is_valid = matches!(written.is_reached(), Ok(false));
    let landing = field.download(1, back, bytes)?;
    field.finish(1)?;
    middle.expect(|at| expected[at], "pinned memory behind a copy to it")?;
    field.expect(landing, &expected, "what a copy read of pinned memory behind one that wrote it")?;
    field.take_down()?;
    Ok(is_valid)
}

//! The clause about pinned memory of the host's.

use super::bench::{Bench, Field, told};
use super::{Finding, Seen};
use crate::base::{Desc, dtype};
use crate::device::{Device, Pinning, Place};
use crate::memory::{ALIGNMENT, Buffer, View};
use std::sync::Arc;

/// Memory of the host's that the device knows.
struct Pinned {
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
    fn allocate(device: &Arc<dyn Device>, bytes: usize) -> Result<Pinned, String> {
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

    fn view(&self) -> View {
        let desc = Desc::new(dtype::U8, &[self.bytes as i64]);
        View::new(std::ptr::with_exposed_provenance_mut(self.address), self.bytes, desc)
    }

    fn write(&self, value: u8) {
        self.view().fill(value);
    }

    fn expect(&self, value: impl Fn(usize) -> u8, what: &str) -> Result<(), String> {
        let view = self.view();
        match view.read_bytes().iter().enumerate().find(|&(at, &byte)| byte != value(at)) {
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

pub(super) fn pinned(bench: &Bench) -> Finding {
    let device = &bench.device;
    let Ok(pinning) = pinning(device) else {
        return Ok(Seen::NotOffered("copies take whatever memory there is".to_owned()));
    };
    apart(bench)?;
    for _ in 0..bench.rounds().div_ceil(8) {
        pass_on(bench, Pinned::allocate)?;
        if pinning.can_register() {
            pass_on(bench, Pinned::register)?;
        }
    }
    Ok(Seen::Kept(format!("allocated{}", if pinning.can_register() { ", and registered" } else { "" })))
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

/// One stream writes pinned memory late, and another one reads it behind that: it must see what was written, and not what was there as
/// the copy was asked for.
fn pass_on(bench: &Bench, make: fn(&Arc<dyn Device>, usize) -> Result<Pinned, String>) -> Result<(), String> {
    let mut field = bench.field(2)?;
    let (from, expected) = field.burden(0, 1)?;
    let middle = make(&bench.device, expected.len())?;
    let result = through(&mut field, &middle, from, &expected);
    match field.finish(0).and_then(|()| field.finish(1)) {
        Ok(()) => result,
        Err(error) => {
            // The device may still be at it.
            std::mem::forget(middle);
            Err(error)
        }
    }
}

fn through(field: &mut Field<'_>, middle: &Pinned, from: usize, expected: &[u8]) -> Result<(), String> {
    let bytes = expected.len();
    middle.write(0xEE);
    field.copy(0, Place::Host(middle.address), Place::Device(from), bytes)?;
    let written = field.mark(0)?;
    let back = field.block(bytes)?;
    field.stream(1).wait(&written).map_err(told)?;
    field.copy(1, Place::Device(back), Place::Host(middle.address), bytes)?;
    let landing = field.download(1, back, bytes)?;
    field.finish(1)?;
    middle.expect(|at| expected[at], "pinned memory behind a copy to it")?;
    field.expect(landing, expected, "what a copy read of pinned memory behind one that wrote it")
}

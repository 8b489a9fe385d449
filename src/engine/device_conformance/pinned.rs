//! The clause about pinned host memory.
#![forbid(unsafe_code)]

use super::bench::{DeviceBench, Finding, Seen, of_work_under_way, under_way};
use super::keep::{Pinned, pinning, told};
use crate::device::{Device, Location};
use std::sync::Arc;

type Make = fn(&Arc<dyn Device>, usize) -> Result<Pinned, String>;

pub(super) fn pinned(bench: &DeviceBench) -> Finding {
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

/// Memory is aligned, does not overlap, and keeps what the host writes.
fn apart(bench: &DeviceBench) -> Result<(), String> {
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

/// One stream writes pinned memory late, and another one reads it behind that: the copy must see the written bytes, not
/// those that were there when it was submitted. Gives whether it was submitted before the write was done.
fn pass_on(bench: &DeviceBench, weight: usize, make: Make) -> Result<bool, String> {
    let mut field = bench.field(2)?;
    let (from, expected) = field.burden(0, weight)?;
    let bytes = expected.len();
    let middle = field.pin(make(&bench.device, bytes)?);
    middle.write(0xEE);
    field.copy(0, middle.place(), Location::Device(from), bytes)?;
    let written = field.mark(0)?;
    let back = field.block(bytes)?;
    field.stream(1).wait(&written).map_err(told)?;
    field.copy(1, Location::Device(back), middle.place(), bytes)?;
    let is_valid = matches!(written.is_reached(), Ok(false));
    let landing = field.download(1, back, bytes)?;
    field.finish(1)?;
    middle.expect(|at| expected[at], "pinned memory behind a copy to it")?;
    field.expect(landing, &expected, "what a copy read of pinned memory behind one that wrote it")?;
    field.take_down()?;
    Ok(is_valid)
}

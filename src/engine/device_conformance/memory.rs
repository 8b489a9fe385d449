//! Clauses about memory and copies.
#![forbid(unsafe_code)]

use super::bench::{DeviceBench, Finding, Seen};
use super::keep::{DeviceBlock, told};
use crate::base::Code;
use crate::device::{self, DeviceSettings, Location};

pub(super) fn facts(bench: &DeviceBench) -> Finding {
    let device = &*bench.device;
    if device.name().is_empty() {
        return Err("the device has no name".to_owned());
    }
    if !device.alignment().is_power_of_two() {
        return Err(format!("alignment is {}, expected a power of two", device.alignment()));
    }
    let count = device::count(device.kind());
    if device.index() >= count {
        return Err(format!("it is number {}, and there are {count}", device.index()));
    }
    Ok(Seen::Kept(format!("'{}', alignment {}", device.name(), device.alignment())))
}

pub(super) fn apart(bench: &DeviceBench) -> Finding {
    const LARGEST: usize = 70_000;
    let mut field = bench.field(1)?;
    let mut blocks: Vec<(usize, usize, u8)> = Vec::new();
    for number in 0..bench.rounds() * 3 {
        // Some are freed before others are allocated.
        if number % 3 == 2 {
            let passing = DeviceBlock::on(&bench.device, 1 + bench.draw(LARGEST)).map_err(told)?;
            drop(passing);
        }
        let bytes = 1 + if number % 5 == 0 { bench.draw(40) } else { bench.draw(LARGEST) };
        let address = field.block(bytes)?;
        if !address.is_multiple_of(bench.device.alignment()) {
            return Err(format!("{address:#x} is not aligned to {}", bench.device.alignment()));
        }
        if let Some(other) = blocks.iter().find(|other| other.0 < address + bytes && address < other.0 + other.1) {
            let (at, size, _) = other;
            return Err(format!("{bytes} bytes at {address:#x} lie in {size} bytes at {at:#x}, which are in use"));
        }
        field.fill(0, address, bytes, number as u8)?;
        blocks.push((address, bytes, number as u8));
    }
    let landings =
        blocks.iter().map(|&(address, bytes, _)| field.download(0, address, bytes)).collect::<Result<Vec<_>, _>>()?;
    field.finish(0)?;
    for (landing, (_, bytes, value)) in landings.into_iter().zip(&blocks) {
        field.expect(landing, &vec![*value; *bytes], "memory that nobody else has")?;
    }
    field.take_down()?;
    Ok(Seen::Kept(format!("{} blocks", blocks.len())))
}

pub(super) fn limit(bench: &DeviceBench) -> Finding {
    let known = bench.device.memory_bytes();
    let asked = if known == 0 { 1 << 60 } else { known.saturating_add(1 << 30) };
    match DeviceBlock::on(&bench.device, asked as usize) {
        Ok(_) => Err(format!("it gives {asked} bytes, and has {known}")),
        Err(error) if error.code() == Code::ResourceExhausted => Ok(Seen::Kept(format!("{asked} bytes are refused"))),
        Err(error) => Err(format!("too much memory is refused with another code than RESOURCE_EXHAUSTED: {error}")),
    }
}

/// Bytes around the written ones.
const MARGIN: usize = 32;

fn sizes() -> [usize; 9] {
    [1, 3, 64, 255, 4095, 4096, 4097, 65_537, 1_048_575]
}

/// Copies to the device, within it, and back.
pub(super) fn round_trip(bench: &DeviceBench, bytes: usize) -> Finding {
    let mut field = bench.field(1)?;
    for offset in [0, 1, MARGIN / 2] {
        let whole = bytes + MARGIN;
        let (a, b) = (field.block(whole)?, field.block(whole)?);
        field.fill(0, a, whole, 0xA5)?;
        field.fill(0, b, whole, 0x5A)?;
        let data = bench.bytes(bytes);
        field.upload(0, a + offset, &data)?;
        field.copy(0, Location::Device(b + offset), Location::Device(a + offset), bytes)?;
        let landings = [field.download(0, a, whole)?, field.download(0, b, whole)?];
        field.finish(0)?;
        for (landing, value, what) in [(landings[0], 0xA5, "to the device"), (landings[1], 0x5A, "on the device")] {
            let mut expected = vec![value; whole];
            expected[offset..offset + bytes].copy_from_slice(&data);
            field.expect(landing, &expected, &format!("a copy of {bytes} bytes {what}, {offset} behind"))?;
        }
    }
    field.take_down()?;
    Ok(Seen::Kept(format!("{bytes} bytes")))
}

pub(super) fn copies(bench: &DeviceBench) -> Finding {
    for bytes in sizes() {
        round_trip(bench, bytes)?;
    }
    Ok(Seen::Kept(format!("{} sizes, in three directions", sizes().len())))
}

pub(super) fn fills(bench: &DeviceBench) -> Finding {
    let mut field = bench.field(1)?;
    for bytes in sizes() {
        let whole = bytes + MARGIN;
        let block = field.block(whole)?;
        field.fill(0, block, whole, 1)?;
        field.fill(0, block + 7, bytes, 0xFE)?;
        let landing = field.download(0, block, whole)?;
        field.finish(0)?;
        let mut expected = vec![1; whole];
        expected[7..7 + bytes].fill(0xFE);
        field.expect(landing, &expected, &format!("a fill of {bytes} bytes, 7 behind"))?;
    }
    field.take_down()?;
    Ok(Seen::Kept(format!("{} sizes", sizes().len())))
}

/// Trims while some memory is in use, and some was freed; then all that was freed can be had at once, in one piece.
pub(super) fn trimmed(bench: &DeviceBench) -> Finding {
    const PARTS: usize = 6;
    /// More memory than this is not asked for: others may want it meanwhile.
    const MOST: u64 = 4 << 30;
    let accelerator = bench.accelerator()?;
    if !accelerator.can_trim() {
        return Ok(Seen::NotOffered("it keeps no memory that was freed".to_owned()));
    }
    let mut field = bench.field(1)?;
    let mut blocks = Vec::new();
    for number in 0..bench.rounds() {
        let bytes = 1 + bench.draw(70_000);
        drop(DeviceBlock::on(&bench.device, bytes).map_err(told)?);
        // Other memory of the same size is in use while that is trimmed.
        let address = field.block(bytes)?;
        field.fill(0, address, bytes, number as u8)?;
        drop(DeviceBlock::on(&bench.device, bytes).map_err(told)?);
        accelerator.trim([0, 100_000, 0, usize::MAX][number % 4]);
        let after = field.block(bytes)?;
        field.fill(0, after, bytes, !(number as u8))?;
        blocks.extend([(address, bytes, number as u8), (after, bytes, !(number as u8))]);
    }
    let landings =
        blocks.iter().map(|&(address, bytes, _)| field.download(0, address, bytes)).collect::<Result<Vec<_>, _>>()?;
    field.finish(0)?;
    for (landing, (_, bytes, value)) in landings.into_iter().zip(&blocks) {
        field.expect(landing, &vec![*value; *bytes], "memory in use, when other memory was trimmed")?;
    }
    let known = bench.device.memory_bytes();
    if (1..=MOST).contains(&known) {
        accelerator.trim(0);
        let part = known as usize / 8;
        // As many as there is room for: a faulty device's memory may be left behind by earlier clauses.
        let parts: Vec<DeviceBlock> = (0..PARTS).map_while(|_| DeviceBlock::on(&bench.device, part).ok()).collect();
        let count = parts.len();
        drop(parts);
        accelerator.trim(0);
        let whole = if count > 1 { DeviceBlock::on(&bench.device, part * (count - 1)).map(drop) } else { Ok(()) };
        whole.map_err(|error| format!("memory that was freed and trimmed is not to be had: {}", error.message()))?;
    }
    field.take_down()?;
    Ok(Seen::Kept(format!("{} times", bench.rounds())))
}

pub(super) fn peers(bench: &DeviceBench) -> Finding {
    const BYTES: usize = 100_001;
    let (kind, index) = (bench.device.kind(), bench.device.index());
    let Some(other) = (0..device::count(kind)).find(|&other| other != index) else {
        return Ok(Seen::NotOffered("there is one device".to_owned()));
    };
    let other = device::open(kind, other, &DeviceSettings::default()).map_err(told)?;
    let peer = other.accelerator().ok_or("its peer has no streams")?;
    if !bench.accelerator()?.is_peer(peer) {
        return Ok(Seen::NotOffered("bytes go through the host".to_owned()));
    }
    let mut field = bench.field(1)?;
    let away = field.block_on(&other, BYTES)?;
    let (from, back) = (field.block(BYTES)?, field.block(BYTES)?);
    let data = bench.bytes(BYTES);
    field.upload(0, from, &data)?;
    field.copy(0, Location::Peer(peer, away), Location::Device(from), BYTES)?;
    field.copy(0, Location::Device(back), Location::Peer(peer, away), BYTES)?;
    let landing = field.download(0, back, BYTES)?;
    field.finish(0)?;
    field.expect(landing, &data, "there and back")?;
    field.take_down()?;
    Ok(Seen::Kept(format!("{BYTES} bytes there and back")))
}

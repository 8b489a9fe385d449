//! Scratch memory for the kernels of a plug-in's device.
//!
//! *Launches.* A stream's work is done in order, so all its launches share one block: the largest that any of them has
//! requested. A block that has become too small may be in use, so it stays as long as the stream. Each block is at
//! least twice as large as the one before, so all of them together are less than twice the last.
//!
//! *Recordings.* An executable has a block of its own, since its launches come one after the other. A step shares its
//! part of the block with steps that the edges say are over by then.

use super::opened::Opened;
use crate::abi::weir_device_capability_flags as C;
use crate::abi::weir_device_launch;
use crate::base::{Error, Result};
use crate::sync::Mutex;
use std::ffi::c_void;
use std::sync::Arc;

/// Device memory.
#[derive(Debug)]
pub(super) struct ScratchBlock {
    device: Arc<Opened>,
    address: usize,
    bytes: usize,
}

impl ScratchBlock {
    pub(super) fn new(device: &Arc<Opened>, bytes: usize, what: &str) -> Result<ScratchBlock> {
        let address = device.allocate(bytes, what)?;
        Ok(ScratchBlock { device: Arc::clone(device), address, bytes })
    }

    pub(super) fn address(&self) -> usize {
        self.address
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for ScratchBlock {
    fn drop(&mut self) {
        self.device.deallocate(self.address, self.bytes);
    }
}

/// The blocks that the launches of one stream share.
#[derive(Debug, Default)]
pub(super) struct StreamScratch(Mutex<Vec<Arc<ScratchBlock>>>);

impl StreamScratch {
    /// At least `bytes` for the stream's next launch.
    pub(super) fn take(&self, device: &Arc<Opened>, bytes: usize, name: &str) -> Result<Arc<ScratchBlock>> {
        let mut blocks = self.0.lock();
        let largest = blocks.last().map_or(0, |block| block.bytes);
        if let Some(block) = blocks.last().filter(|_| bytes <= largest) {
            return Ok(Arc::clone(block));
        }
        let block = ScratchBlock::new(device, bytes.max(largest.saturating_mul(2)), &format!("scratch of {name}"))?;
        let block = Arc::new(block);
        blocks.push(Arc::clone(&block));
        Ok(block)
    }
}

impl Opened {
    /// The scratch memory that a launch needs, in bytes.
    ///
    /// # Safety
    /// A kernel of this device's, and a call of it.
    pub(super) unsafe fn scratch_bytes(&self, kernel: *mut c_void, launch: &weir_device_launch) -> Result<usize> {
        if !self.can(C::WEIR_DEVICE_SCRATCH) {
            return Ok(0);
        }
        let mut bytes = 0;
        let ask = self.functions().kernel_scratch;
        self.call("kernel_scratch", || {
            // SAFETY: the plug-in's function and objects, as demanded of the caller, and a place for the answer.
            ask.map(|f| unsafe { f(self.handle(), kernel, launch, &raw mut bytes) })
        })?;
        usize::try_from(bytes)
            .ok()
            .filter(|&bytes| bytes <= isize::MAX as usize)
            .ok_or_else(|| self.nonsense("kernel_scratch", format!("wants {bytes} bytes")))
    }
}

/// The parts of a block that the steps of a list use.
#[derive(Debug, Default)]
pub(super) struct StepScratch {
    pub(super) bytes: usize,
    pub(super) steps: Vec<ScratchPart>,
}

/// The part of one step. Lists inside the step begin where it does.
#[derive(Debug, Default)]
pub(super) struct ScratchPart {
    pub(super) offset: usize,
    pub(super) bytes: usize,
    pub(super) inside: Vec<StepScratch>,
}

/// A range of a block, the step that used it last, and the size it needs.
struct ScratchRange {
    last: usize,
    bytes: usize,
}

impl StepScratch {
    /// Lays out steps, each with the steps it comes after and the bytes it needs.
    pub(super) fn of<'a>(
        steps: impl Iterator<Item = (&'a [usize], ScratchPart)>,
        alignment: usize,
    ) -> Result<StepScratch> {
        let mut slots: Vec<ScratchRange> = Vec::new();
        let mut found = Vec::new();
        for (at, (after, part)) in steps.enumerate() {
            // The previous users of these slots are over, and so are all users before them.
            slots.iter_mut().filter(|slot| after.contains(&slot.last)).for_each(|slot| slot.last = at);
            let mut slot = None;
            if part.bytes > 0 {
                let mine = slots.iter().enumerate().filter(|(_, slot)| slot.last == at);
                let number = mine.max_by_key(|(_, slot)| slot.bytes).map_or(slots.len(), |(number, _)| number);
                if number == slots.len() {
                    slots.push(ScratchRange { last: at, bytes: 0 });
                }
                slots[number].bytes = slots[number].bytes.max(part.bytes);
                slot = Some(number);
            }
            found.push((slot, part));
        }
        let too_much = || Error::out_of_range("a recording's scratch memory is larger than addresses can say");
        let (mut bytes, mut offsets) = (0usize, Vec::with_capacity(slots.len()));
        for slot in &slots {
            offsets.push(bytes);
            let end = bytes.checked_add(slot.bytes).and_then(|end| end.checked_next_multiple_of(alignment));
            bytes = end.ok_or_else(too_much)?;
        }
        let steps =
            found.into_iter().map(|(slot, part)| ScratchPart { offset: slot.map_or(0, |slot| offsets[slot]), ..part });
        Ok(StepScratch { bytes, steps: steps.collect() })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn layout(steps: &[(&[usize], usize)]) -> StepScratch {
        let part = |bytes| ScratchPart { offset: 0, bytes, inside: Vec::new() };
        StepScratch::of(steps.iter().map(|&(after, bytes)| (after, part(bytes))), 64).unwrap()
    }

    #[test]
    fn steps_share_memory_only_with_those_that_are_over() {
        assert_eq!(layout(&[(&[], 100), (&[0], 0), (&[1], 300), (&[2], 64)]).bytes, 320, "a chain has one part");
        let fork = layout(&[(&[], 100), (&[0], 100), (&[0], 100), (&[1, 2], 100)]);
        assert_eq!(fork.bytes, 256);
        assert_ne!(fork.steps[1].offset, fork.steps[2].offset);
        let mut seed = 7u64;
        let mut draw = |n: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % n
        };
        for _ in 0..200 {
            let count = 1 + draw(30) as usize;
            let edges: Vec<Vec<usize>> = (0..count).map(|at| (0..at).filter(|_| draw(5) == 0).collect()).collect();
            let needs: Vec<usize> = (0..count).map(|_| (draw(4) * 100) as usize).collect();
            let steps: Vec<(&[usize], usize)> = edges.iter().map(Vec::as_slice).zip(needs).collect();
            let found = layout(&steps);
            let mut reach = vec![vec![false; count]; count];
            for at in 0..count {
                for &before in &edges[at] {
                    let behind = reach[before].clone();
                    reach[at].iter_mut().zip(behind).for_each(|(reach, far)| *reach |= far);
                    reach[at][before] = true;
                }
            }
            for (late, part) in found.steps.iter().enumerate() {
                assert!(part.offset.is_multiple_of(64) && part.offset + part.bytes <= found.bytes);
                for (early, other) in found.steps[..late].iter().enumerate() {
                    let apart = part.offset + part.bytes <= other.offset || other.offset + other.bytes <= part.offset;
                    assert!(apart || reach[late][early] || part.bytes == 0 || other.bytes == 0);
                }
            }
        }
    }
}

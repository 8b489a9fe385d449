//! Weights of a convolution as tiles read them: filters side by side, as many as a register has lanes.

use super::super::isa::Isa;
use super::super::movement::TileTranspose;
use crate::base::{Error, Result};
use crate::memory::AlignedBuffer;
use std::ops::Range;

/// Packed weights of all groups: for each group `[block][K][lanes]`, with zeros behind its last filter.
#[derive(Debug)]
pub struct PackedFilters {
    memory: AlignedBuffer,
    lanes: usize,
    depth: usize,
    /// Blocks of a group.
    blocks: usize,
}

impl PackedFilters {
    /// Packs `weights`, `[group][filter][K]`.
    pub fn new(isa: Isa, lanes: usize, groups: usize, filters: usize, weights: &[f32]) -> Result<PackedFilters> {
        let depth = weights.len() / (groups * filters).max(1);
        PackedFilters::of_blocks(lanes, groups, filters, depth, |group, block, to| {
            let first = group * filters + block * lanes;
            let end = (group + 1) * filters;
            let rows = &weights[first * depth..(first + lanes).min(end) * depth];
            pack(isa, lanes, rows, depth, 0..depth, to);
        })
    }

    /// Weights that `fill` writes: of a block of a group, `[depth][lanes]`.
    pub fn of_blocks(
        lanes: usize,
        groups: usize,
        filters: usize,
        depth: usize,
        fill: impl Fn(usize, usize, &mut [f32]),
    ) -> Result<PackedFilters> {
        let blocks = filters.div_ceil(lanes);
        let bytes = (groups * blocks * lanes)
            .checked_mul(depth)
            .and_then(|floats| floats.checked_mul(size_of::<f32>()))
            .filter(|&bytes| bytes <= isize::MAX as usize)
            .ok_or_else(|| Error::out_of_range("packed weights are larger than memory can hold"))?;
        let memory = AlignedBuffer::zeroed(bytes, "packed weights")?;
        // SAFETY: the floats of the buffer, which nobody else has.
        let all = unsafe { std::slice::from_raw_parts_mut(memory.data().cast::<f32>(), bytes / size_of::<f32>()) };
        for (number, to) in all.chunks_exact_mut((lanes * depth).max(1)).enumerate() {
            fill(number / blocks, number % blocks, to);
        }
        Ok(PackedFilters { memory, lanes, depth, blocks })
    }

    /// Floats of a block.
    pub fn block(&self) -> usize {
        self.depth * self.lanes
    }

    /// Weights of a block of a group, from place `k` on.
    pub fn at(&self, group: usize, block: usize, k: usize) -> *const f32 {
        assert!(block < self.blocks && k < self.depth);
        let at = (group * self.blocks + block) * self.block() + k * self.lanes;
        self.memory.data().cast::<f32>().wrapping_add(at).cast_const()
    }

    /// Whether they are of so many groups of filters with so many weights, for this instruction set.
    pub fn fits(&self, lanes: usize, groups: usize, filters: usize, depth: usize) -> bool {
        let bytes = groups * filters.div_ceil(lanes) * lanes * depth * size_of::<f32>();
        (self.lanes, self.depth, self.blocks, self.memory.bytes()) == (lanes, depth, filters.div_ceil(lanes), bytes)
    }

    pub fn bytes(&self) -> usize {
        self.memory.bytes()
    }
}

/// Packs a stretch of the weights of some filters, rows of `depth`, into `[block][stretch][lanes]`.
pub fn pack(isa: Isa, lanes: usize, weights: &[f32], depth: usize, stretch: Range<usize>, to: &mut [f32]) {
    let turn = TileTranspose::of(isa, size_of::<f32>()).expect("floats are turned on every level");
    let block = stretch.len() * lanes;
    if depth == 0 {
        return;
    }
    for (rows, to) in weights.chunks(lanes * depth).zip(to.chunks_exact_mut(block)) {
        let filters = rows.len() / depth;
        if filters < lanes {
            to.fill(0.0);
        }
        let [from_stride, to_stride] = [depth, lanes].map(|floats| (floats * size_of::<f32>()) as isize);
        let from = rows[stretch.start..].as_ptr();
        // SAFETY: the level is supported; each row has the stretch, and the block has as many rows of `lanes`.
        unsafe { turn.run((from.cast(), from_stride), (to.as_mut_ptr().cast(), to_stride), filters, stretch.len()) };
    }
}

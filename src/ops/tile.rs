//! Creates a repetition of a tensor, see weir_tile_desc.
//!
//! Errors: INVALID_ARGUMENT (unknown mode, a count below 0, but for -1 with WEIR_TILE_EXPAND); OUT_OF_RANGE (rank above
//! WEIR_MAX_RANK).
//!
//! Chapter: Data movement.
#![forbid(unsafe_code)]

use super::broadcast::{size, stretched};
use super::check::{rank, value_of};
use super::operator::{Operator, PackedShape};
use super::setting::Setting;
use super::signature;
use crate::base::desc::{ANY_DIM, MAX_RANK};
use crate::base::{Desc, Error, Result};
use std::mem::offset_of;

/// The meaning of the counts of a weir_tile_desc: one of enum weir_tile_mode_value.
pub type weir_tile_mode = u32;

/// Meanings of counts.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_tile_mode_value {
    /// How many copies of x lie one after the other along the dimension; 0 leaves nothing.
    WEIR_TILE_REPEAT = 0,
    /// The size of the dimension: that of x, or any if x has 1 there. 1 and WEIR_DIM_DYNAMIC: as in x.
    WEIR_TILE_EXPAND = 1,
}

/// Repetition: copies of x along each dimension, or x broadcast to a shape.
///
/// Shapes are aligned at the last dimension, as weir_binary_desc aligns them. x has a size of 1 in dimensions that only
/// the counts have, and dimensions that only x has stay as they are. Input: x of any type. Output: of the greater rank
/// of both.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_tile_desc {
    /// sizeof(weir_tile_desc) of the caller's header.
    pub struct_size: usize,
    /// Number of counts.
    pub rank: u32,
    /// One of weir_tile_mode_value.
    pub mode: weir_tile_mode,
    /// A count for each dimension.
    pub counts: [i64; 8],
}

/// Copies of a tensor along its dimensions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tile {
    pub rank: usize,
    pub mode: weir_tile_mode_value,
    pub counts: [i64; MAX_RANK],
}

impl Tile {
    /// The count of the dimension `from_last` before the last one.
    fn count(&self, from_last: usize) -> i64 {
        if from_last < self.rank { self.counts[self.rank - 1 - from_last] } else { 1 }
    }
}

impl Operator for Tile {
    type Desc = weir_tile_desc;
    const NAME: &'static str = "tile";
    const SETTINGS: &'static [Setting<weir_tile_desc>] =
        &[Setting::int64("counts", offset_of!(weir_tile_desc, counts)).times(|desc| desc.rank as usize)];

    fn new(desc: &mut weir_tile_desc, _: Option<PackedShape>) -> Result<Tile> {
        use weir_tile_mode_value::*;
        let rank = rank(desc.rank)?;
        let mode = value_of!("mode", desc.mode, weir_tile_mode_value { WEIR_TILE_REPEAT, WEIR_TILE_EXPAND })?;
        desc.counts[rank..].fill(0);
        let (least, expected) = match mode {
            WEIR_TILE_REPEAT => (0, "0 or more"),
            WEIR_TILE_EXPAND => (ANY_DIM, "-1 (as in the input), 0 or more"),
        };
        if let Some(i) = desc.counts.iter().position(|&count| count < least) {
            return Err(Error::invalid(format!("desc->counts[{i}] is {}, expected {expected}", desc.counts[i])));
        }
        desc.counts.iter_mut().filter(|count| **count == ANY_DIM).for_each(|count| *count = 1);
        Ok(Tile { rank, mode, counts: desc.counts })
    }

    fn dim_from(&self, inputs: &[Desc], _: usize, dim: usize) -> [Option<(usize, usize)>; 2] {
        let own = inputs[0].shape().len();
        let from_last = own.max(self.rank) - 1 - dim;
        let same = from_last < own && self.count(from_last) == 1;
        [same.then(|| (0, own - 1 - from_last)), None]
    }

    fn output(&self, inputs: &[Desc]) -> Result<Desc> {
        use weir_tile_mode_value::*;
        let input = &inputs[0];
        let rank = input.shape().len().max(self.rank);
        let mut output = Desc::new(input.dtype, &[0; MAX_RANK][..rank]);
        for (axis, dim) in output.dims[..rank].iter_mut().enumerate() {
            let from_last = rank - 1 - axis;
            *dim = match (self.mode, size(input, from_last), self.count(from_last)) {
                (WEIR_TILE_EXPAND, own, count) => stretched(own, count).ok_or_else(|| {
                    let shape = Desc::new(input.dtype, &self.counts[..self.rank]);
                    signature::mismatch("input", 0, &format!("a shape that broadcasts with {}", shape.text()), input)
                })?,
                (WEIR_TILE_REPEAT, _, 0) => 0,
                (WEIR_TILE_REPEAT, ANY_DIM, _) => ANY_DIM,
                (WEIR_TILE_REPEAT, own, count) => own.checked_mul(count).ok_or_else(|| {
                    Error::out_of_range(format!("axis {axis} has more elements than can be counted"))
                })?,
            };
        }
        output.check_open()
    }
}

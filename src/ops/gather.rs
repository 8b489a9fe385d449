//! Creates a gather, see weir_gather_desc. NULL desc = axis -1.
//!
//! Errors: INVALID_ARGUMENT (reserved not 0, unknown flags); OUT_OF_RANGE (axis outside -8..7).
//!
//! Chapter: Data movement.
#![forbid(unsafe_code)]

use super::check::{axis, flags, reserved};
use super::operator::{Operator, PackedShape};
use super::signature;
use crate::base::desc::MAX_RANK;
use crate::base::{Desc, Result};

/// Gather: rows of a table by their indices, as for an embedding.
///
/// Inputs: table; indices, s32 or s64, of any shape. Output: the table with the indices' shape in place of the axis. A
/// call with an index below 0 or beyond the axis fails with OUT_OF_RANGE, which names it, and writes nothing. With
/// WEIR_GATHER_FROM_END an index below 0 counts from the end of the axis, as in NumPy. On a CUDA engine that is a late
/// failure of the stream or run, and the rows of such indices are zeros.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_gather_desc {
    /// sizeof(weir_gather_desc) of the caller's header.
    pub struct_size: usize,
    /// The axis of the table that the indices select from; negative counts from the end, -1 = last.
    pub axis: i32,
    /// Reserved, 0.
    pub reserved: i32,
    /// OR of weir_gather_flags.
    pub flags: u64,
}

/// Flags of weir_gather_desc.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_gather_flags {
    /// Indices below 0 count from the end of the axis: -1 is the last row.
    WEIR_GATHER_FROM_END = 1,
}

/// Rows of a table by their indices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gather {
    pub axis: i32,
    /// Indices below 0 count from the end.
    pub from_end: bool,
}

impl Gather {
    /// The least index of an axis of this size.
    pub fn least(&self, size: i64) -> i64 {
        if self.from_end { -size } else { 0 }
    }
}

impl Operator for Gather {
    type Desc = weir_gather_desc;
    const NAME: &'static str = "gather";
    const DEFAULT: Option<weir_gather_desc> =
        Some(weir_gather_desc { struct_size: size_of::<weir_gather_desc>(), axis: -1, reserved: 0, flags: 0 });

    fn new(desc: &mut weir_gather_desc, _: Option<PackedShape>) -> Result<Gather> {
        reserved(desc.reserved)?;
        let from_end = flags(desc.flags, weir_gather_flags::WEIR_GATHER_FROM_END as u64, "desc->flags")? != 0;
        Ok(Gather { axis: axis(desc.axis)?, from_end })
    }

    fn num_inputs(&self) -> usize {
        2
    }

    fn output(&self, inputs: &[Desc]) -> Result<Desc> {
        let (table, indices) = (&inputs[0], &inputs[1]);
        let axis = signature::axis(self.axis, table)?;
        signature::check_indices(1, indices)?;
        let (before, after) = (&table.shape()[..axis], &table.shape()[axis + 1..]);
        let rank = before.len() + indices.shape().len() + after.len();
        let mut output = Desc { dtype: table.dtype, rank: rank as u32, dims: [0; MAX_RANK] };
        let dims = before.iter().chain(indices.shape()).chain(after);
        output.dims.iter_mut().zip(dims).for_each(|(to, &dim)| *to = dim);
        output.check_open()
    }
}

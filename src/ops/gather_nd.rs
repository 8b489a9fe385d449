//! Creates a gather by places, see weir_gather_nd_desc. NULL desc = no batch.
//!
//! Errors: INVALID_ARGUMENT (unknown flags); OUT_OF_RANGE (more than 8 dimensions of a batch).
//!
//! Chapter: Data movement.
#![forbid(unsafe_code)]

use super::check::flags;
use super::operator::{Operator, PackedShape};
use super::signature;
use crate::base::desc::{ANY_DIM, MAX_RANK};
use crate::base::{Desc, Error, Result};

/// Gather by places: blocks of a table, each by the indices of its first dimensions.
///
/// Inputs: table; indices[..., Q], s32 or s64. The first `batch_dims` dimensions of both are the same; each Q indices
/// select from the next Q dimensions of the table, and what is behind those is a block. Output: the indices' shape
/// without Q, and a block's. A call with an index below 0 or beyond its dimension fails with OUT_OF_RANGE, which names
/// it, and writes nothing. With WEIR_GATHER_ND_FROM_END an index below 0 counts from the end of its dimension. Q
/// decides the rank of the output, so in a graph it is not open.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_gather_nd_desc {
    /// sizeof(weir_gather_nd_desc) of the caller's header.
    pub struct_size: usize,
    /// OR of weir_gather_nd_flags.
    pub flags: u64,
    /// Number of the first dimensions that belong to table and indices alike.
    pub batch_dims: u64,
}

/// Flags of weir_gather_nd_desc.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_gather_nd_flags {
    /// Indices below 0 count from the end of their dimension.
    WEIR_GATHER_ND_FROM_END = 1,
}

/// Blocks by their places.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GatherNd {
    pub batch_dims: usize,
    /// Indices below 0 count from the end.
    pub from_end: bool,
}

impl Operator for GatherNd {
    type Desc = weir_gather_nd_desc;
    const NAME: &'static str = "gather_nd";
    const DEFAULT: Option<weir_gather_nd_desc> =
        Some(weir_gather_nd_desc { struct_size: size_of::<weir_gather_nd_desc>(), flags: 0, batch_dims: 0 });

    fn new(desc: &mut weir_gather_nd_desc, _: Option<PackedShape>) -> Result<GatherNd> {
        let from_end = flags(desc.flags, weir_gather_nd_flags::WEIR_GATHER_ND_FROM_END as u64, "desc->flags")? != 0;
        match desc.batch_dims as usize {
            batch_dims if batch_dims <= MAX_RANK => Ok(GatherNd { batch_dims, from_end }),
            dims => Err(Error::out_of_range(format!("desc->batch_dims is {dims}, expected 0 to {MAX_RANK}"))),
        }
    }

    fn num_inputs(&self) -> usize {
        2
    }

    fn output(&self, inputs: &[Desc]) -> Result<Desc> {
        let (table, indices) = (&inputs[0], &inputs[1]);
        let batch = self.batch_dims;
        let depth = place_depth(table, batch, 1, indices)?;
        let (rows, block) = (&indices.shape()[..indices.shape().len() - 1], &table.shape()[batch + depth..]);
        let fits = |(a, b): (&i64, &i64)| a == b || [a, b].contains(&&ANY_DIM);
        if !table.shape()[..batch].iter().zip(rows).all(fits) {
            let expected = format!("the first {batch} dimensions of {}", table.text());
            return Err(signature::mismatch("input", 1, &expected, indices));
        }
        let mut output = Desc { dtype: table.dtype, rank: (rows.len() + block.len()) as u32, dims: [0; MAX_RANK] };
        output.dims.iter_mut().zip(rows.iter().chain(block)).for_each(|(to, &dim)| *to = dim);
        output.check_open()
    }
}

/// Number of dimensions of a table that indices[..., Q] select from, behind those of the batch: Q, which is not open.
pub fn place_depth(table: &Desc, batch: usize, index: usize, indices: &Desc) -> Result<usize> {
    signature::check_indices(index, indices)?;
    let left = table.shape().len().checked_sub(batch);
    let depth = indices.shape().last().copied().filter(|_| indices.shape().len() > batch);
    match (left, depth) {
        (Some(left), Some(depth)) if (0..=left as i64).contains(&depth) => Ok(depth as usize),
        (None, _) => Err(signature::mismatch("input", 0, &format!("a tensor of rank {batch} or more"), table)),
        (Some(left), _) => {
            let fixed = if depth == Some(ANY_DIM) { "fixed, " } else { "" };
            let expected = format!("a shape of rank {} or more whose last dimension is {fixed}0 to {left}", batch + 1);
            Err(signature::mismatch("input", index, &expected, indices))
        }
    }
}

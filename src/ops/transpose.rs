//! Creates a transposition, see weir_transpose_desc. NULL desc = the dimensions in reverse order.
//!
//! Errors: INVALID_ARGUMENT (reserved not 0, a dimension named twice); OUT_OF_RANGE (rank above WEIR_MAX_RANK, a
//! dimension that does not exist).
//!
//! Chapter: Data movement.
#![forbid(unsafe_code)]

use super::check::{rank, reserved};
use super::operator::{Operator, PackedShape};
use super::signature;
use crate::base::desc::MAX_RANK;
use crate::base::{Desc, Error, Result};

/// Transposition: dimension i of the output is dimension permutation[i] of the input.
///
/// Input: x. Output: x with its dimensions in that order.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_transpose_desc {
    /// sizeof(weir_transpose_desc) of the caller's header.
    pub struct_size: usize,
    /// Number of dimensions of x; 0 = any number, in reverse order.
    pub rank: u32,
    /// Reserved, 0.
    pub reserved: u32,
    /// A permutation of 0 to rank - 1.
    pub permutation: [i32; 8],
}

/// Another order of dimensions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transpose {
    /// Number of dimensions; `None`: any number, in reverse order.
    pub rank: Option<usize>,
    pub permutation: [usize; MAX_RANK],
}

impl Transpose {
    /// The dimension of the input that each dimension of the output is.
    pub fn order(&self, rank: usize) -> [usize; MAX_RANK] {
        match self.rank {
            Some(_) => self.permutation,
            None => std::array::from_fn(|i| rank.wrapping_sub(1 + i)),
        }
    }
}

impl Operator for Transpose {
    type Desc = weir_transpose_desc;
    const NAME: &'static str = "transpose";
    const DEFAULT: Option<weir_transpose_desc> =
        Some(weir_transpose_desc { struct_size: size_of::<Self::Desc>(), rank: 0, reserved: 0, permutation: [0; 8] });

    fn new(desc: &mut weir_transpose_desc, _: Option<PackedShape>) -> Result<Transpose> {
        reserved(desc.reserved)?;
        let rank = rank(desc.rank)?;
        desc.permutation[rank..].fill(0);
        let mut permutation = [0; MAX_RANK];
        for (i, &axis) in desc.permutation[..rank].iter().enumerate() {
            if axis < 0 || axis as usize >= rank {
                let text = format!("desc->permutation[{i}] is {axis}, expected 0 to {}", rank - 1);
                return Err(Error::out_of_range(text));
            }
            if let Some(before) = desc.permutation[..i].iter().position(|&other| other == axis) {
                let text = format!("desc->permutation[{i}] is {axis}, and so is desc->permutation[{before}]");
                return Err(Error::invalid(text));
            }
            permutation[i] = axis as usize;
        }
        Ok(Transpose { rank: (rank > 0).then_some(rank), permutation })
    }

    fn dim_from(&self, inputs: &[Desc], _: usize, dim: usize) -> [Option<(usize, usize)>; 2] {
        [Some((0, self.order(inputs[0].shape().len())[dim])), None]
    }

    fn output(&self, inputs: &[Desc]) -> Result<Desc> {
        let input = &inputs[0];
        if let Some(rank) = self.rank {
            signature::check_rank(rank, input)?;
        }
        let (rank, mut output) = (input.shape().len(), *input);
        let order = self.order(rank);
        (0..rank).for_each(|i| output.dims[i] = input.dims[order[i]]);
        Ok(output)
    }
}

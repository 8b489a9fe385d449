//! Creates a search for the elements that are not 0, see weir_nonzero_desc. NULL desc = room for all of them.
//!
//! Errors: INVALID_ARGUMENT (unknown flags).
//!
//! Chapter: Data movement.
#![forbid(unsafe_code)]

use super::check::flags;
use super::operator::{Operator, PackedShape, zeroed};
use crate::base::desc::ANY_DIM;
use crate::base::{Desc, Result, dtype};

/// Flags of weir_nonzero_desc.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_nonzero_flags {
    /// The places have as many columns as there are elements that are not 0. Only the call knows how many: for nodes of
    /// graphs alone, and the output is open (WEIR_DIM_DYNAMIC) for whoever reads it.
    WEIR_NONZERO_EXACT = 1,
}

/// The places of the elements that are not 0, or not false; a NaN is not 0, and the two zeros are.
///
/// Input: x of any type. Outputs: places s64 [rank of x, E], where E is the number of elements of x, and their number
/// s64 [1]. Column i is the place of the i-th of these elements, in the order of memory; columns behind the last one
/// are -1.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_nonzero_desc {
    /// sizeof(weir_nonzero_desc) of the caller's header.
    pub struct_size: usize,
    /// OR of weir_nonzero_flags.
    pub flags: u64,
}

/// Places of elements that are not 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Nonzero {
    /// The output has no more columns than needed.
    pub exact: bool,
}

impl Operator for Nonzero {
    type Desc = weir_nonzero_desc;
    const NAME: &'static str = "nonzero";
    const DEFAULT: Option<weir_nonzero_desc> = Some(zeroed());

    fn new(desc: &mut weir_nonzero_desc, _: Option<PackedShape>) -> Result<Nonzero> {
        let bits = flags(desc.flags, weir_nonzero_flags::WEIR_NONZERO_EXACT as u64, "desc->flags")?;
        Ok(Nonzero { exact: bits != 0 })
    }

    fn num_outputs(&self) -> usize {
        2
    }

    fn output(&self, inputs: &[Desc]) -> Result<Desc> {
        let (shape, rank) = (inputs[0].shape(), inputs[0].rank.into());
        let columns = match self.exact || shape.contains(&ANY_DIM) {
            true => ANY_DIM,
            false => inputs[0].elements()? as i64,
        };
        Desc::new(dtype::S64, &[rank, columns]).check_open()
    }

    fn output_at(&self, inputs: &[Desc], index: usize) -> Result<Desc> {
        let places = self.output(inputs)?;
        Ok(if index == 0 { places } else { Desc::new(dtype::S64, &[1]) })
    }
}

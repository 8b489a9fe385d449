//! Creates a gather of elements, see weir_gather_elements_desc. NULL desc = axis -1.
//!
//! Errors: INVALID_ARGUMENT (reserved not 0, unknown flags); OUT_OF_RANGE (axis outside -8..7).
//!
//! Chapter: Data movement.
#![forbid(unsafe_code)]

use super::check::{axis, flags, reserved};
use super::operator::{Operator, PackedShape};
use super::signature;
use crate::base::desc::ANY_DIM;
use crate::base::{Desc, Result};

/// Gather of elements: each one by an index of its own, from where it is itself, but for one axis.
///
/// Inputs: x; indices, s32 or s64, of x's rank, and along the other axes of at most its sizes. Output: the indices'
/// shape of elements of x. Of matrices and axis 0: y[i, j] = x[indices[i, j], j]. A call with an index below 0 or beyond
/// the axis fails with OUT_OF_RANGE, which names it, and writes nothing. With WEIR_GATHER_ELEMENTS_FROM_END an index
/// below 0 counts from the end of the axis.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_gather_elements_desc {
    /// sizeof(weir_gather_elements_desc) of the caller's header.
    pub struct_size: usize,
    /// The axis of x that the indices select from; negative counts from the end, -1 = last.
    pub axis: i32,
    /// Reserved, 0.
    pub reserved: i32,
    /// OR of weir_gather_elements_flags.
    pub flags: u64,
}

/// Flags of weir_gather_elements_desc.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_gather_elements_flags {
    /// Indices below 0 count from the end of the axis: -1 is the last element.
    WEIR_GATHER_ELEMENTS_FROM_END = 1,
}

/// Elements by an index each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GatherElements {
    pub axis: i32,
    /// Indices below 0 count from the end.
    pub from_end: bool,
}

impl Operator for GatherElements {
    type Desc = weir_gather_elements_desc;
    const NAME: &'static str = "gather_elements";
    const DEFAULT: Option<weir_gather_elements_desc> = Some(weir_gather_elements_desc {
        struct_size: size_of::<weir_gather_elements_desc>(),
        axis: -1,
        reserved: 0,
        flags: 0,
    });

    fn new(desc: &mut weir_gather_elements_desc, _: Option<PackedShape>) -> Result<GatherElements> {
        reserved(desc.reserved)?;
        let known = weir_gather_elements_flags::WEIR_GATHER_ELEMENTS_FROM_END as u64;
        Ok(GatherElements { axis: axis(desc.axis)?, from_end: flags(desc.flags, known, "desc->flags")? != 0 })
    }

    fn num_inputs(&self) -> usize {
        2
    }

    fn output(&self, inputs: &[Desc]) -> Result<Desc> {
        let (x, indices) = (&inputs[0], &inputs[1]);
        let axis = signature::axis(self.axis, x)?;
        signature::check_indices(1, indices)?;
        check_elements(x, axis, 1, indices)?;
        Desc { dtype: x.dtype, ..*indices }.check_open()
    }
}

/// Refuses indices that are not along one axis of a tensor, and along the others within it.
pub fn check_elements(x: &Desc, axis: usize, index: usize, indices: &Desc) -> Result<()> {
    let fits = |(i, (&size, &dim)): (usize, (&i64, &i64))| i == axis || [size, dim].contains(&ANY_DIM) || size <= dim;
    if indices.rank == x.rank && indices.shape().iter().zip(x.shape()).enumerate().all(fits) {
        return Ok(());
    }
    let expected = format!("a shape that lies within {}, but for axis {axis}", x.text());
    Err(signature::mismatch("input", index, &expected, indices))
}

//! Creates a reshape, see weir_reshape_desc.
//!
//! Errors: INVALID_ARGUMENT (reserved not 0, a dimension below -2, two that are -1); OUT_OF_RANGE (rank above
//! WEIR_MAX_RANK).
//!
//! Chapter: Data movement.
#![forbid(unsafe_code)]

use super::check::{rank, reserved};
use super::operator::{Operator, PackedShape};
use super::setting::Setting;
use super::signature;
use crate::base::desc::{ANY_DIM, MAX_RANK};
use crate::base::{Desc, Error, Result};
use std::mem::offset_of;

/// The same elements, in their order, in another shape. In a graph the output takes over the memory of the input where
/// possible, and nothing is copied; on a stream x may be its own output.
///
/// Dimensions of WEIR_RESHAPE_KEEP are those of x, whatever their size; the other dimensions of x and of the output
/// hold equally many elements. Input: x. Output: x in the shape.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_reshape_desc {
    /// sizeof(weir_reshape_desc) of the caller's header.
    pub struct_size: usize,
    /// Number of dimensions of the output.
    pub rank: u32,
    /// Reserved, 0.
    pub reserved: u32,
    /// The output's shape: sizes, WEIR_RESHAPE_INFER or WEIR_RESHAPE_KEEP.
    pub dims: [i64; 8],
}

/// Dimensions of a weir_reshape_desc that depend on x.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_reshape_dim {
    /// It follows from the number of elements; for one dimension at most.
    WEIR_RESHAPE_INFER = -1,
    /// It is the dimension of x at the same place.
    WEIR_RESHAPE_KEEP = -2,
}

const KEEP: i64 = weir_reshape_dim::WEIR_RESHAPE_KEEP as i64;

/// The same elements in another shape, one of whose dimensions may be open, and some those of the input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reshape {
    pub rank: usize,
    pub shape: [i64; MAX_RANK],
}

impl Operator for Reshape {
    type Desc = weir_reshape_desc;
    const NAME: &'static str = "reshape";
    const SETTINGS: &'static [Setting<weir_reshape_desc>] =
        &[Setting::int64("dims", offset_of!(weir_reshape_desc, dims)).times(|desc| desc.rank as usize)];

    fn stand_in(desc: &mut weir_reshape_desc) {
        if desc.dims == [0; MAX_RANK] {
            desc.dims = [1; MAX_RANK];
        }
    }

    fn new(desc: &mut weir_reshape_desc, _: Option<PackedShape>) -> Result<Reshape> {
        reserved(desc.reserved)?;
        let rank = rank(desc.rank)?;
        desc.dims[rank..].fill(0);
        if let Some(i) = desc.dims.iter().position(|&dim| dim < KEEP) {
            let dim = desc.dims[i];
            let text = format!("desc->dims[{i}] is {dim}, expected -2 (as in the input), -1 (the rest), 0 or more");
            return Err(Error::invalid(text));
        }
        let mut open = (0..rank).filter(|&i| desc.dims[i] == ANY_DIM);
        if let (Some(first), Some(second)) = (open.next(), open.next()) {
            return Err(Error::invalid(format!("desc->dims[{second}] is -1, and so is desc->dims[{first}]")));
        }
        Ok(Reshape { rank, shape: desc.dims })
    }

    fn output(&self, inputs: &[Desc]) -> Result<Desc> {
        let input = &inputs[0];
        let mut output = Desc::new(input.dtype, &self.shape[..self.rank]);
        // The dimensions that are not kept: elements of both sides, as far as they are known.
        let (mut from, mut to, mut inferred) = (*input, output, None);
        for (i, dim) in output.dims[..self.rank].iter_mut().enumerate() {
            if *dim == KEEP {
                let Some(&size) = input.shape().get(i) else {
                    let expected = format!("a tensor of rank {} or more, as desc->dims[{i}] is one of its", i + 1);
                    return Err(signature::mismatch("input", 0, &expected, input));
                };
                (*dim, from.dims[i], to.dims[i]) = (size, 1, 1);
            } else if *dim == ANY_DIM {
                (inferred, to.dims[i]) = (Some(i), 1);
            }
        }
        let is_open = from.shape().contains(&ANY_DIM);
        from.dims.iter_mut().filter(|dim| **dim == ANY_DIM).for_each(|dim| *dim = 1);
        let (from, to) = (from.elements()?, to.elements()?);
        let fits = match inferred {
            Some(_) => to > 0 && (is_open || from.is_multiple_of(to)),
            None if is_open => to.is_multiple_of(from),
            None => from == to,
        };
        if !fits {
            let expected = format!("as many elements as {} has", output.text());
            return Err(signature::mismatch("input", 0, &expected, input));
        }
        if let Some(i) = inferred.filter(|_| !is_open) {
            output.dims[i] = (from / to) as i64;
        }
        output.check_open()
    }
}

//! Elementwise nodes as the end of the kernel that makes their input.
#![forbid(unsafe_code)]

use crate::base::desc::ANY_DIM;
use crate::base::{Desc, dtype};
use crate::ops::{Binary, Eltwise};

/// A function of each element of an f32 result, whose shape stays.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum EpilogueStep {
    Unary(Eltwise),
    /// A function of the result and of another tensor, which is the last input.
    Binary {
        of: Binary,
        /// Whether the result is the first operand.
        is_first: bool,
        other: OtherShape,
    },
}

/// The shape of the other operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherShape {
    /// That of the result, as far as it is known.
    Same,
    /// One number for each column, the last dimension.
    Columns,
    /// One number.
    One,
}

impl EpilogueStep {
    pub fn unary(of: Eltwise, inputs: &[Desc]) -> Option<EpilogueStep> {
        (inputs[0].dtype == dtype::F32).then_some(EpilogueStep::Unary(of))
    }

    /// The step that a function is whose input `position` is the result.
    pub fn binary(of: Binary, inputs: &[Desc], position: usize) -> Option<EpilogueStep> {
        let (result, other) = (&inputs[position], &inputs[1 - position]);
        if of.op.compares() || result.dtype != dtype::F32 {
            return None;
        }
        let is_like = |(a, b): (&i64, &i64)| a == b || [a, b].contains(&&ANY_DIM);
        let columns = result.shape().last().copied().filter(|&columns| columns != ANY_DIM);
        let other = match other.shape() {
            shape if other.rank == result.rank && shape.iter().zip(result.shape()).all(is_like) => OtherShape::Same,
            [size] if result.rank > 1 && Some(*size) == columns => OtherShape::Columns,
            shape if other.rank <= result.rank && shape.iter().all(|&size| size == 1) => OtherShape::One,
            _ => return None,
        };
        Some(EpilogueStep::Binary { of, is_first: position == 0, other })
    }
}

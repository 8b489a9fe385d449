//! Creates a normalisation by neighbouring channels, see weir_lrn_desc.
//!
//! Errors: INVALID_ARGUMENT (alpha, beta or bias that is no finite number); OUT_OF_RANGE (size below 1).
//!
//! Chapter: Reductions and normalisation.
#![forbid(unsafe_code)]

use super::check::reserved;
use super::operator::{Operator, PackedShape};
use super::signature;
use crate::base::{Desc, Error, Result};

/// Local response normalisation: x / (bias + alpha / size * s)^beta, where s is the sum of the squares of the `size`
/// elements in the channels around it; beyond the first and the last channel there are none.
///
/// The channels are axis 1, and of `size` channels (size - 1) / 2, rounded down, lie in front. Input: x[N, C, ...],
/// f32, f16 or bf16. Output: as x; computed in f32, and rounded once.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_lrn_desc {
    /// sizeof(weir_lrn_desc) of the caller's header.
    pub struct_size: usize,
    /// Number of channels whose squares are added, 1 or more.
    pub size: i64,
    /// The factor of the mean of the squares.
    pub alpha: f32,
    /// The exponent.
    pub beta: f32,
    /// The number that is added to the squares.
    pub bias: f32,
    /// Reserved, 0.
    pub reserved: i32,
}

/// Normalisation by neighbouring channels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lrn {
    pub size: usize,
    pub alpha: f32,
    pub beta: f32,
    pub bias: f32,
}

impl Operator for Lrn {
    type Desc = weir_lrn_desc;
    const NAME: &'static str = "lrn";

    fn new(desc: &mut weir_lrn_desc, _: Option<PackedShape>) -> Result<Lrn> {
        reserved(desc.reserved)?;
        for (name, value) in [("alpha", desc.alpha), ("beta", desc.beta), ("bias", desc.bias)] {
            if !value.is_finite() {
                return Err(Error::invalid(format!("desc->{name} is {value}, expected a finite number")));
            }
        }
        match usize::try_from(desc.size) {
            Ok(size) if size > 0 => Ok(Lrn { size, alpha: desc.alpha, beta: desc.beta, bias: desc.bias }),
            _ => Err(Error::out_of_range(format!("desc->size is {}, expected 1 or more", desc.size))),
        }
    }

    fn dim_from(&self, _: &[Desc], _: usize, dim: usize) -> [Option<(usize, usize)>; 2] {
        [Some((0, dim)), None]
    }

    fn output(&self, inputs: &[Desc]) -> Result<Desc> {
        signature::check_floats(inputs)?;
        signature::axis(1, &inputs[0])?;
        Ok(inputs[0])
    }
}

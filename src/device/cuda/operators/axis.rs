//! Axes of tensors, which may count from the end.
#![forbid(unsafe_code)]

use crate::base::{Desc, Error, Result};

/// A shape seen from one of its axes: blocks of `len` rows of `inner` elements.
#[derive(Clone, Copy, Debug)]
pub(super) struct AxisView {
    pub(super) outer: usize,
    pub(super) len: usize,
    pub(super) inner: usize,
}

impl AxisView {
    pub(super) fn new(axis: i32, desc: &Desc) -> Result<AxisView> {
        let axis = place(axis, desc)?;
        let product = |dims: &[i64]| dims.iter().product::<i64>() as usize;
        let shape = desc.shape();
        Ok(AxisView { outer: product(&shape[..axis]), len: shape[axis] as usize, inner: product(&shape[axis + 1..]) })
    }
}

/// The index of an axis that may count from the end.
pub(super) fn place(axis: i32, desc: &Desc) -> Result<usize> {
    let rank = desc.shape().len();
    let index = i64::from(axis) + if axis < 0 { rank as i64 } else { 0 };
    usize::try_from(index)
        .ok()
        .filter(|&index| index < rank)
        .ok_or_else(|| Error::internal(format!("axis {axis} of {}", desc.text())))
}

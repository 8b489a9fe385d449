//! A shape seen from one of its axes.
#![forbid(unsafe_code)]

use crate::base::{Desc, Result};
use crate::kernel::vector::columns::ColumnStripes;
use crate::ops::signature;

/// The shape as blocks of `len` rows of `inner` elements, where `len` is the size of the axis. With `inner` 1 the
/// elements along the axis are consecutive.
pub fn split(axis: i32, desc: &Desc) -> Result<ColumnStripes> {
    let axis = signature::axis(axis, desc)?;
    let product = |dims: &[i64]| if dims.contains(&0) { 0 } else { dims.iter().product::<i64>() as usize };
    let shape = desc.shape();
    Ok(ColumnStripes { outer: product(&shape[..axis]), len: shape[axis] as usize, inner: product(&shape[axis + 1..]) })
}

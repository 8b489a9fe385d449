//! Creates a kernel that gives the shape of its input, see weir_shape_desc. desc may be NULL.
//!
//! Chapter: Data movement.
#![forbid(unsafe_code)]

use super::operator::{Operator, PackedShape};
use crate::base::{Desc, Result, dtype};

/// The shape of a tensor as a tensor, from which shapes of others are computed. Compile knows it where it knows the
/// shape of x, and then what is computed of it.
///
/// Input: x of any type, whose elements are not read. Output: its sizes, s64 [rank of x].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_shape_desc {
    /// sizeof(weir_shape_desc) of the caller's header.
    pub struct_size: usize,
}

/// The sizes of a tensor's dimensions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape;

impl Operator for Shape {
    type Desc = weir_shape_desc;
    const NAME: &'static str = "shape";
    const DEFAULT: Option<weir_shape_desc> = Some(weir_shape_desc { struct_size: size_of::<weir_shape_desc>() });

    fn new(_: &mut weir_shape_desc, _: Option<PackedShape>) -> Result<Shape> {
        Ok(Shape)
    }

    fn output(&self, inputs: &[Desc]) -> Result<Desc> {
        Ok(Desc::new(dtype::S64, &[inputs[0].rank.into()]))
    }
}

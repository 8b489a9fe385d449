//! Creates an arithmetic sequence, see weir_range_desc. desc may be NULL.
//!
//! Chapter: Data movement.
#![forbid(unsafe_code)]

use super::operator::{Operator, PackedShape};
use super::signature;
use crate::base::desc::ANY_DIM;
use crate::base::{Desc, Result, dtype};

/// Numbers from a start to a limit, which is not among them, in steps.
///
/// Inputs: start, limit and step, one element each, all f32, s32 or s64. Output: [n] of that type, where n is the
/// difference of limit and start, divided by the step and rounded up, and 0 if that is negative. Element i is the start
/// and i steps. Integers are exact. Of f32 the difference is f32 and its quotient f64; an element is rounded after the
/// product and after the sum. Only the call knows n: for nodes of graphs alone, and the output is open
/// (WEIR_DIM_DYNAMIC) for whoever reads it. A step of 0, and an n that cannot be counted, fail with OUT_OF_RANGE.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_range_desc {
    /// sizeof(weir_range_desc) of the caller's header.
    pub struct_size: usize,
}

/// Numbers one step apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range;

impl Operator for Range {
    type Desc = weir_range_desc;
    const NAME: &'static str = "range";
    const DEFAULT: Option<weir_range_desc> = Some(weir_range_desc { struct_size: size_of::<weir_range_desc>() });

    fn new(_: &mut weir_range_desc, _: Option<PackedShape>) -> Result<Range> {
        Ok(Range)
    }

    fn num_inputs(&self) -> usize {
        3
    }

    fn output(&self, inputs: &[Desc]) -> Result<Desc> {
        if ![dtype::F32, dtype::S32, dtype::S64].contains(&inputs[0].dtype) {
            return Err(signature::mismatch("input", 0, "f32, s32 or s64 elements", &inputs[0]));
        }
        for (i, input) in inputs.iter().enumerate() {
            signature::check_like(inputs, i, 0)?;
            if input.shape().iter().any(|dim| ![1, ANY_DIM].contains(dim)) {
                return Err(signature::mismatch("input", i, "one element", input));
            }
        }
        Ok(Desc::new(inputs[0].dtype, &[ANY_DIM]))
    }
}

//! Broadcasting: shapes are aligned at the last dimension, and a dimension of 1 matches any size.
#![forbid(unsafe_code)]

use super::signature;
use crate::base::{Desc, Result, desc::ANY_DIM};

/// The size that two sizes broadcast to. An open size becomes 1 or the other size; with another open one, or 1, it
/// stays open.
pub(super) fn stretched(a: i64, b: i64) -> Option<i64> {
    match (a, b) {
        _ if a == b => Some(a),
        (1, other) | (other, 1) | (ANY_DIM, other) | (other, ANY_DIM) => Some(other),
        _ => None,
    }
}

/// Size of the dimension `from_last` before the last one; 1 if there is none.
pub fn size(desc: &Desc, from_last: usize) -> i64 {
    desc.shape().iter().rev().nth(from_last).copied().unwrap_or(1)
}

/// The shape that all inputs broadcast to, as a descriptor of type `dtype`.
pub(super) fn shape(inputs: &[Desc], dtype: u32) -> Result<Desc> {
    let mut output = Desc { dtype, ..inputs[0] };
    for (i, input) in inputs.iter().enumerate().skip(1) {
        let before = output;
        if input.rank > output.rank {
            output = Desc { dtype, ..*input };
        }
        let rank = output.shape().len();
        for at in 0..rank {
            output.dims[rank - 1 - at] = stretched(size(&before, at), size(input, at)).ok_or_else(|| {
                let with = Desc { dtype: inputs[0].dtype, ..before };
                signature::mismatch("input", i, &format!("a shape that broadcasts with {}", with.text()), input)
            })?;
        }
    }
    output.check_open()
}

//! Broadcasting: shapes are aligned at the last dimension, and a dimension of 1 matches any size.
#![forbid(unsafe_code)]

use crate::base::{Desc, Result, desc::ANY_DIM, desc::MAX_RANK};
use crate::kernel::signature;
use crate::kernel::vector::elements::SourceRow;

/// The size that two sizes broadcast to. An open size becomes 1 or the other size; with another open one, or 1, it
/// stays open.
fn stretched(a: i64, b: i64) -> Option<i64> {
    match (a, b) {
        _ if a == b => Some(a),
        (1, other) | (other, 1) | (ANY_DIM, other) | (other, ANY_DIM) => Some(other),
        _ => None,
    }
}

/// Size of the dimension `from_last` before the last one; 1 if there is none.
fn size(desc: &Desc, from_last: usize) -> i64 {
    desc.shape().iter().rev().nth(from_last).copied().unwrap_or(1)
}

/// The shape that all inputs broadcast to, as a descriptor of type `dtype`.
pub fn shape(inputs: &[Desc], dtype: u32) -> Result<Desc> {
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

/// A dimension of the output, and its stride in each operand: 0 if the operand is broadcast.
#[derive(Clone, Copy, Debug)]
struct BroadcastDim<const N: usize> {
    size: usize,
    strides: [usize; N],
}

/// The output's dimensions, the last one first. Neighbouring dimensions with one common stride are merged, so operands
/// of the same shape have a single one, and a bias has two.
#[derive(Debug)]
pub struct Broadcast<const N: usize> {
    all: [BroadcastDim<N>; MAX_RANK],
    rank: usize,
}

impl<const N: usize> Broadcast<N> {
    pub fn new(operands: [&Desc; N], output: &Desc) -> Self {
        let mut dims = Broadcast { all: [BroadcastDim { size: 1, strides: [0; N] }; MAX_RANK], rank: 1 };
        let mut strides = [1; N];
        for i in 0..output.shape().len() {
            let sizes = operands.map(|desc| size(desc, i) as usize);
            let of = size(output, i) as usize;
            if of != 1 {
                dims.push(BroadcastDim {
                    size: of,
                    strides: std::array::from_fn(|n| if sizes[n] == 1 { 0 } else { strides[n] }),
                });
            }
            strides = std::array::from_fn(|n| strides[n] * sizes[n]);
        }
        dims
    }

    fn push(&mut self, next: BroadcastDim<N>) {
        let last = &mut self.all[self.rank - 1];
        if last.size == 1 {
            *last = next;
        } else if (0..N).all(|n| next.strides[n] == last.strides[n] * last.size) {
            last.size *= next.size;
        } else {
            self.all[self.rank] = next;
            self.rank += 1;
        }
    }

    /// Length of the rows.
    pub fn row_len(&self) -> usize {
        self.all[0].size
    }

    /// Calls `body` for the rows, or parts of rows, that make up `len` elements of the output from `begin` on, with the
    /// positions of the operands, the number of output elements before in this call, and the length of the part.
    pub fn rows(&self, begin: usize, len: usize, mut body: impl FnMut([SourceRow; N], usize, usize)) {
        let inner = self.all[0];
        if len == 0 {
            return;
        }
        let (mut index, mut rest) = ([0; MAX_RANK], begin / inner.size);
        for (index, dim) in index.iter_mut().zip(&self.all[..self.rank]).skip(1) {
            *index = rest % dim.size;
            rest /= dim.size;
        }
        let mut places: [usize; N] =
            std::array::from_fn(|n| (1..self.rank).map(|i| index[i] * self.all[i].strides[n]).sum());
        let (mut at, mut done) = (begin % inner.size, 0);
        loop {
            let count = (inner.size - at).min(len - done);
            let row = |n: usize| SourceRow { at: places[n] + at * inner.strides[n], stretched: inner.strides[n] == 0 };
            body(std::array::from_fn(row), done, count);
            (done, at) = (done + count, 0);
            if done == len {
                return;
            }
            // Advances to the next row, like an odometer.
            for (index, dim) in index.iter_mut().zip(&self.all[..self.rank]).skip(1) {
                *index += 1;
                (0..N).for_each(|n| places[n] += dim.strides[n]);
                if *index < dim.size {
                    break;
                }
                *index = 0;
                (0..N).for_each(|n| places[n] -= dim.strides[n] * dim.size);
            }
        }
    }
}

//! Operands along the dimensions of a broadcast.
#![forbid(unsafe_code)]

use crate::base::{Desc, desc::MAX_RANK};
use crate::kernel::vector::elements::SourceRow;
use crate::ops::broadcast::size;

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

    /// Whether an operand lies in memory as the output does.
    pub fn is_whole(&self, n: usize) -> bool {
        let mut step = 1;
        self.all[..self.rank].iter().all(|dim| {
            let follows = dim.strides[n] == step;
            step *= dim.size;
            follows
        })
    }

    /// Whether all rows of an operand are the same one.
    pub fn repeats(&self, n: usize) -> bool {
        self.all[1..self.rank].iter().all(|dim| dim.strides[n] == 0)
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

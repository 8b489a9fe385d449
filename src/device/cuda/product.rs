//! A matrix product in the terms of a BLAS: shapes and addresses of its operands.
#![forbid(unsafe_code)]

use crate::memory::ALIGNMENT;

/// C = A B + bias + addend, matrix by matrix, in the order of rows, without gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProductShape {
    /// Of A and B.
    pub dtype: u32,
    /// Of C, bias and addend.
    pub to: u32,
    pub m: usize,
    pub n: usize,
    pub k: usize,
    /// The number of matrices, and the strides of A and B in elements, 0 = the same for all.
    pub batch: usize,
    pub strides: [i64; 2],
    /// A is stored as K rows of M, B as N rows of K.
    pub transpose_a: bool,
    pub transpose_b: bool,
    pub bias: bool,
    pub addend: bool,
    /// Factors of f32 may be rounded to TF32.
    pub tf32: bool,
    /// The alignment of all addresses, at most `memory::ALIGNMENT`: all memory of weir's own is aligned so, and the
    /// choice of algorithm must not depend on where tensors happen to be.
    pub alignment: u32,
}

/// One call.
#[derive(Clone, Copy, Debug)]
pub struct MatrixProduct {
    pub shape: ProductShape,
    pub a: usize,
    pub b: usize,
    pub c: usize,
    /// 0 = none.
    pub bias: usize,
    pub addend: usize,
}

impl MatrixProduct {
    /// Sets the alignment in `shape`.
    pub fn new(mut shape: ProductShape, [a, b, c, bias, addend]: [usize; 5]) -> MatrixProduct {
        shape.alignment = 1 << (ALIGNMENT | a | b | c | bias | addend).trailing_zeros();
        MatrixProduct { shape, a, b, c, bias, addend }
    }
}

//! A matrix product in the terms of libraries of such: what its operands look like, and where they are.
#![forbid(unsafe_code)]

use crate::memory::ALIGNMENT;

/// C = A B + bias + addend, matrix by matrix, in the order of rows, without gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Of A and B.
    pub dtype: u32,
    /// Of C, bias and addend.
    pub to: u32,
    pub m: usize,
    pub n: usize,
    pub k: usize,
    /// How many matrices; from one to the next there are so many elements in A and in B, 0 = the same for all.
    pub batch: usize,
    pub strides: [i64; 2],
    /// A is stored as K rows of M, B as N rows of K.
    pub transpose_a: bool,
    pub transpose_b: bool,
    pub bias: bool,
    pub addend: bool,
    /// Factors of f32 may be rounded to TF32.
    pub tf32: bool,
    /// What all addresses are multiples of, at most `memory::ALIGNMENT`: all memory of weir's own is aligned so, and
    /// which algorithm is taken must not depend on where in it tensors happen to lie.
    pub alignment: u32,
}

/// One call.
#[derive(Clone, Copy, Debug)]
pub struct Product {
    pub shape: Shape,
    pub a: usize,
    pub b: usize,
    pub c: usize,
    /// 0 = none.
    pub bias: usize,
    pub addend: usize,
}

impl Product {
    /// `shape` says how the addresses are aligned.
    pub fn new(mut shape: Shape, [a, b, c, bias, addend]: [usize; 5]) -> Product {
        shape.alignment = 1 << (ALIGNMENT | a | b | c | bias | addend).trailing_zeros();
        Product { shape, a, b, c, bias, addend }
    }
}

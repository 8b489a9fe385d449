//! The parameters of a product: sizes, and its operands (`gemm`).
#![forbid(unsafe_code)]

use super::finish::ProductEpilogue;
use super::panels::Panels;
use super::site::Matrix;
use super::step::Scale;

/// Sizes of a product and the layout of its operands.
#[derive(Clone, Copy, Debug)]
pub struct GemmShape {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    /// A is [K, M].
    pub transpose_a: bool,
    /// B is [N, K].
    pub transpose_b: bool,
}

/// A product to compute.
#[derive(Clone, Copy, Debug)]
pub struct GemmProduct<'a> {
    pub shape: GemmShape,
    /// [M, K], or [K, M] if it is transposed.
    pub a: Matrix<'a, f32>,
    /// [K, N], or [N, K] if it is transposed.
    pub b: Matrix<'a, f32>,
    /// With an alpha of zero A and B are not read, with a beta of zero C is not.
    pub scale: Scale,
    pub bias: Option<&'a [f32]>,
    pub relu: bool,
}

/// The source of B.
#[derive(Clone, Copy)]
pub enum OperandB<'a> {
    /// [K, N], or [N, K] if it is transposed.
    Matrix(Matrix<'a, f32>),
    /// Packed before, for the same K, N and micro-kernels.
    Panels(&'a Panels),
}

/// The operands of one product of a batch.
#[derive(Clone, Copy)]
pub struct Operands<'a> {
    pub a: Matrix<'a, f32>,
    pub b: OperandB<'a>,
    pub finish: ProductEpilogue<'a>,
}

/// Products of one shape.
pub struct GemmBatch<'a> {
    pub shape: GemmShape,
    pub count: usize,
    pub scale: Scale,
    /// The operands of product `number`; they fit the shape.
    pub operands: &'a (dyn Fn(usize) -> Operands<'a> + Sync),
}

/// The division of a product. Depends only on the sizes and the instruction set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tiling {
    pub depth: usize,
    pub stretches: usize,
    /// Maximum columns of a block, whose panels fit into the L2 cache.
    pub block_columns: usize,
    pub tile_rows: usize,
    pub tile_columns: usize,
    /// Tiles in a block of columns, and blocks of columns.
    pub tiles_down: usize,
    pub across: usize,
    /// Whether the panels of a tile's columns are kept for the next piece.
    pub keeps: bool,
    pub tiles: usize,
}

//! The parameters of a micro-kernel: a tile of C, and the addresses of A and B.
#![forbid(unsafe_code)]

use std::ptr::null;

/// Floats of a cache line.
pub const LINE: usize = 16;

/// The address and strides of a matrix.
#[derive(Clone, Copy)]
pub struct Strided {
    pub data: *const f32,
    /// Distance between neighbours along k.
    pub depth: usize,
    /// Distance between neighbours along the other dimension.
    pub across: usize,
}

/// The factors of a product and of the old result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    pub alpha: f32,
    pub beta: f32,
}

/// A tile of C to compute: `scale.beta` * C + `scale.alpha` * A * B. With a beta of zero C is not read.
#[derive(Clone, Copy)]
pub struct MicroTile {
    pub rows: usize,
    pub columns: usize,
    pub depth: usize,
    pub a: Strided,
    pub ahead: RowsAhead,
    /// Neighbouring columns are neighbours in memory.
    pub b: Strided,
    pub from: From,
    pub c: *mut f32,
    pub c_stride: usize,
    pub scale: Scale,
    pub epilogue: TileEpilogue,
}

/// As many rows of A as the tile has, which come next and are prefetched, if A's rows lie along k: weights may come from
/// memory. They are never read: any address is allowed.
#[derive(Clone, Copy)]
pub struct RowsAhead {
    pub data: *const f32,
    /// Distance between rows.
    pub stride: usize,
}

impl RowsAhead {
    /// The rows behind the first `rows` of A.
    pub fn behind(a: Strided, rows: usize) -> RowsAhead {
        RowsAhead { data: a.data.wrapping_add(rows * a.across), stride: a.across }
    }
}

/// The last operations on the elements of a tile, in registers: numbers that are added in this order, where there are
/// any, and max(x, 0).
#[derive(Clone, Copy)]
pub struct TileEpilogue {
    /// A number per column, or null.
    pub columns: *const f32,
    /// A number per row, or null.
    pub rows: *const f32,
    /// A number per element, or null.
    pub addend: *const f32,
    /// Distance between rows of `addend`.
    pub addend_stride: usize,
    pub relu: bool,
}

impl TileEpilogue {
    pub const NOTHING: TileEpilogue =
        TileEpilogue { columns: null(), rows: null(), addend: null(), addend_stride: 0, relu: false };
}

/// How B is read.
#[derive(Clone, Copy, Debug)]
pub enum From {
    /// From a panel, in whole registers.
    Panel,
    /// In place: rows of a matrix that end with the tile's columns.
    Place,
    /// In place, in whole registers, and copied to a panel with this distance between rows. A mask for a partial one
    /// would take the register of a sum.
    Copy(*mut f32, usize),
    /// In place, in whole registers: row k begins at this place of k.
    Places(*const usize),
}

/// A K block of a product.
#[derive(Clone, Copy)]
pub struct Thin {
    pub rows: usize,
    pub columns: usize,
    pub depth: usize,
    pub a: Strided,
    /// Neighbours in one direction are neighbours in memory.
    pub b: Strided,
    /// Rows of accumulators, `pitch` apart.
    pub sums: *mut f32,
    pub pitch: usize,
}

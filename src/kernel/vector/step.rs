//! What a micro-kernel is given: a tile of C, and where A and B are.
#![forbid(unsafe_code)]

/// Where a matrix begins and how far its steps are.
#[derive(Clone, Copy)]
pub struct Strided {
    pub data: *const f32,
    /// Distance between neighbours along k.
    pub depth: usize,
    /// Distance between neighbours along the other dimension.
    pub across: usize,
}

/// What a product and what it is added to are multiplied with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    pub alpha: f32,
    pub beta: f32,
}

/// A tile of C to compute: `scale.beta` * C + `scale.alpha` * A * B. With a beta of zero C is not read.
#[derive(Clone, Copy)]
pub struct Tile {
    pub rows: usize,
    pub columns: usize,
    pub depth: usize,
    pub a: Strided,
    /// Neighbouring columns are neighbours in memory.
    pub b: Strided,
    pub from: From,
    pub c: *mut f32,
    pub c_stride: usize,
    pub scale: Scale,
}

/// What B is read from.
#[derive(Clone, Copy, Debug)]
pub enum From {
    /// Whole registers.
    Panel,
    /// Rows of a matrix that end with the tile's columns; these are whole registers where micro-kernels do not read in
    /// place.
    Place,
    /// The same, and what is read is stored in a panel whose rows are so far apart; parts of registers are filled up
    /// with zeros.
    Copy(*mut f32, usize),
}

/// A stretch of K of a product.
#[derive(Clone, Copy)]
pub struct Thin {
    pub rows: usize,
    pub columns: usize,
    pub depth: usize,
    pub a: Strided,
    /// Neighbours one way are neighbours in memory.
    pub b: Strided,
    /// Row after row of sums, `pitch` apart.
    pub sums: *mut f32,
    pub pitch: usize,
}

//! Interface of the micro-kernels: tiles and their operands (`micro`).

use std::ops::Range;

/// Bytes of a cell.
pub const CELL: usize = size_of::<u32>();
/// A cache line, in bytes.
pub const ROUND: usize = 64;
/// Maximum rows and columns of a tile of any set.
pub const MAX_ROWS: usize = 32;
pub const MAX_COLUMNS: usize = 32;

/// The format of panels of B.
pub struct PanelFormat {
    /// Columns of a panel.
    pub columns: usize,
    /// Neighbours along K in a cell, and the multiple of cells.
    pub depth: usize,
    pub step: usize,
}

/// A tile: `out` = A * B for `groups` groups, plus the contribution of the zero points (`Terms`).
pub type Tile = unsafe fn(groups: usize, a: CellRows, b: Panel, terms: Option<Terms>, out: TileOutput);

/// Rows of cells of A.
#[derive(Clone, Copy)]
pub struct CellRows {
    pub data: *const u8,
    /// Row stride in bytes.
    pub stride: usize,
}

/// A panel of B, and memory that is needed next and may be prefetched meanwhile: for each group a cache line or two
/// from `next` on, then `step` bytes further.
#[derive(Clone, Copy)]
pub struct Panel {
    pub data: *const u32,
    /// Never read: any address is allowed.
    pub next: *const u8,
    pub step: usize,
}

impl Panel {
    /// A panel in cache, like its neighbours.
    pub fn near(data: *const u32) -> Panel {
        Panel { data, next: data.cast(), step: 0 }
    }

    /// A panel of `groups` groups that is used for `parts` tiles, each of which prefetches a part of the next panel.
    pub fn ahead(data: *const u32, groups: usize, width: usize, part: usize, parts: usize) -> Panel {
        let step = width * size_of::<u32>() / parts;
        let next = data.wrapping_add(groups * width).cast::<u8>().wrapping_add(part * groups * step);
        Panel { data, next, step }
    }
}

/// The destination of a tile.
#[derive(Clone, Copy)]
pub struct TileOutput {
    pub data: *mut i32,
    /// Row stride in elements.
    pub stride: usize,
    /// Whether it is added to the existing values, modulo 2^32.
    pub adds: bool,
}

/// The contribution of zero points to the sums of each row and of each column of a tile, modulo 2^32: as many numbers
/// as a tile of the set has rows and columns.
#[derive(Clone, Copy)]
pub struct Terms {
    pub rows: *const i32,
    pub columns: *const i32,
}

/// Divides a range into parts of `size`, the last one possibly smaller.
pub fn parts(range: &Range<usize>, size: usize) -> impl Iterator<Item = Range<usize>> + use<> {
    let end = range.end;
    range.clone().step_by(size).map(move |begin| begin..(begin + size).min(end))
}

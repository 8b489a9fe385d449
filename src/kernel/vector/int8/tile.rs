//! Tiles, as the micro-kernels take them and leave them (`micro`).

use std::ops::Range;

/// Bytes of a cell.
pub const CELL: usize = size_of::<u32>();
/// A cache line, in bytes.
pub const ROUND: usize = 64;
/// Most rows and columns of a tile of any set.
pub const MAX_ROWS: usize = 32;
pub const MAX_COLUMNS: usize = 32;

/// How panels of B are cut.
pub struct Cut {
    /// Columns of a panel.
    pub columns: usize,
    /// Neighbours along K in a cell, and what cells come in multiples of.
    pub depth: usize,
    pub step: usize,
}

/// A tile: `out` = A * B for `groups` groups, plus what the zero points add (`Terms`).
pub type Tile = unsafe fn(groups: usize, a: Rows, b: Panel, terms: Option<Terms>, out: Out);

/// Rows of cells of A.
#[derive(Clone, Copy)]
pub struct Rows {
    pub data: *const u8,
    /// Bytes from one row to the next.
    pub stride: usize,
}

/// A panel of B, and memory that is wanted next, which may be asked for meanwhile: for each group a cache line or two
/// from `next` on, then `step` bytes further.
#[derive(Clone, Copy)]
pub struct Panel {
    pub data: *const u32,
    /// Never read: any address will do.
    pub next: *const u8,
    pub step: usize,
}

impl Panel {
    /// One that is in a cache, as are its neighbours.
    pub fn near(data: *const u32) -> Panel {
        Panel { data, next: data.cast(), step: 0 }
    }

    /// One of so many groups that is used for `parts` tiles, each of which asks for a part of the panel behind it.
    pub fn ahead(data: *const u32, groups: usize, width: usize, part: usize, parts: usize) -> Panel {
        let step = width * size_of::<u32>() / parts;
        let next = data.wrapping_add(groups * width).cast::<u8>().wrapping_add(part * groups * step);
        Panel { data, next, step }
    }
}

/// Where a tile goes.
#[derive(Clone, Copy)]
pub struct Out {
    pub data: *mut i32,
    /// Elements from one row to the next.
    pub stride: usize,
    /// Whether it is added to what is there, modulo 2^32.
    pub adds: bool,
}

/// What zero points add to the sums of each row and of each column of a tile, modulo 2^32: as many numbers as a tile of
/// the set has rows and columns.
#[derive(Clone, Copy)]
pub struct Terms {
    pub rows: *const i32,
    pub columns: *const i32,
}

/// Cuts a range into parts of `size`, the last one maybe smaller.
pub fn parts(range: &Range<usize>, size: usize) -> impl Iterator<Item = Range<usize>> + use<> {
    let end = range.end;
    range.clone().step_by(size).map(move |begin| begin..(begin + size).min(end))
}

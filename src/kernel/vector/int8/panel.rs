//! Packing a part of a byte matrix into cells (`micro`), in panels or in rows, and the sums along K that zero points
//! need.
//!
//! The functions are compiled once per instruction set: everything here is inlined into its caller.

use super::lines::{self, Line};
use super::tile::{CellRows, MAX_COLUMNS};

/// A format of cells.
pub trait CellFormat {
    /// Neighbours along K.
    const DEPTH: usize;

    /// Builds a cell from the first DEPTH of these bytes.
    fn join<const SIGNED: bool>(bytes: [u8; 4]) -> u32;

    /// Four cells from 4 * DEPTH consecutive bytes.
    ///
    /// # Safety
    /// That many bytes are readable.
    unsafe fn line<const SIGNED: bool>(bytes: *const u8, flip: u8) -> Line;

    /// Sixteen cells from DEPTH rows of sixteen bytes.
    ///
    /// # Safety
    /// That many bytes are readable.
    unsafe fn weave<const SIGNED: bool>(rows: [*const u8; 4], flip: u8) -> [Line; 4];

    /// The sum of a cell's numbers.
    fn sum<const SIGNED: bool>(cell: u32) -> i32;
}

/// Four bytes.
pub struct Quad;

impl CellFormat for Quad {
    const DEPTH: usize = 4;

    #[inline(always)]
    fn join<const SIGNED: bool>(bytes: [u8; 4]) -> u32 {
        u32::from_le_bytes(bytes)
    }

    #[inline(always)]
    unsafe fn line<const SIGNED: bool>(bytes: *const u8, flip: u8) -> Line {
        // SAFETY: passed on.
        unsafe { lines::quads(bytes, flip) }
    }

    #[inline(always)]
    unsafe fn weave<const SIGNED: bool>(rows: [*const u8; 4], flip: u8) -> [Line; 4] {
        // SAFETY: passed on.
        unsafe { lines::weave_quads(rows, flip) }
    }

    #[inline(always)]
    fn sum<const SIGNED: bool>(cell: u32) -> i32 {
        if SIGNED {
            let cell = cell as i32;
            (cell << 24 >> 24) + (cell << 16 >> 24) + (cell << 8 >> 24) + (cell >> 24)
        } else {
            ((cell & 255) + (cell >> 8 & 255) + (cell >> 16 & 255) + (cell >> 24)) as i32
        }
    }
}

/// Two numbers of 16 bits.
pub struct PairCell;

impl CellFormat for PairCell {
    const DEPTH: usize = 2;

    #[inline(always)]
    fn join<const SIGNED: bool>(bytes: [u8; 4]) -> u32 {
        lines::pair::<SIGNED>([bytes[0], bytes[1]])
    }

    #[inline(always)]
    unsafe fn line<const SIGNED: bool>(bytes: *const u8, flip: u8) -> Line {
        // SAFETY: passed on.
        unsafe { lines::pairs::<SIGNED>(bytes, flip) }
    }

    #[inline(always)]
    unsafe fn weave<const SIGNED: bool>(rows: [*const u8; 4], flip: u8) -> [Line; 4] {
        // SAFETY: passed on.
        unsafe { lines::weave_pairs::<SIGNED>([rows[0], rows[1]], flip) }
    }

    #[inline(always)]
    fn sum<const SIGNED: bool>(cell: u32) -> i32 {
        // Sixteen bits hold both signs.
        i32::from(cell as i16) + ((cell as i32) >> 16)
    }
}

/// A part of a matrix: `depth` numbers along K of some lanes (rows of A, columns of B).
pub struct PackSource {
    pub data: *const u8,
    /// Row stride of the matrix, in bytes.
    pub stride: usize,
    /// Whether neighbours along K are neighbours in memory; otherwise lanes are.
    pub along: bool,
    /// Numbers along K. The last group is padded with zeros.
    pub depth: usize,
    /// XOR mask of each byte: 128 turns a signed byte into an unsigned one, 128 greater.
    pub flip: u8,
    /// Whether the matrix is in memory rather than in a near cache, so that it is prefetched.
    pub far: bool,
}

/// Rows that are prefetched before they are packed, if the matrix is far.
pub const AHEAD: usize = 16;
/// Lanes that are transposed at once.
const SIDE: usize = 4;
/// Cells from one panel to the next. Panels that are filled side by side must not lie a power of two apart, where they
/// would evict each other from the cache.
#[inline(always)]
pub fn pitch(groups: usize, width: usize) -> usize {
    groups * width + 16
}

/// Groups that are transposed before the next lanes are: a cache line of bytes, which may be evicted before it is
/// revisited.
const REACH: usize = 16;

/// Fills panels of `groups` groups of `width` cells of signed numbers, `pitch` apart, from the first `lanes` lanes,
/// and, if `sums` is given, writes the sums of all lanes of the panels, modulo 2^32. The lanes of the last panel that
/// do not exist are unspecified, and their results are unused.
///
/// # Safety
/// The source is readable and `groups` is its depth in cells, rounded up. The panels are writable and do not overlap
/// the source.
#[inline(always)]
pub unsafe fn pack<C: CellFormat>(
    source: &PackSource,
    groups: usize,
    lanes: usize,
    panels: *mut u32,
    width: usize,
    lane_sums: *mut i32,
) {
    let whole = source.depth / C::DEPTH;
    // SAFETY: as demanded of the caller: groups below `whole` lie in the source for all lanes, the last one partially.
    unsafe {
        if !source.along {
            for group in 0..whole {
                for (index, first) in (0..lanes).step_by(width).enumerate() {
                    let cells = panels.add(index * pitch(groups, width) + group * width);
                    straight::<C, true>(source, group, first, width.min(lanes - first), cells);
                }
            }
        }
        for (index, first) in (0..lanes).step_by(width).enumerate() {
            let panel = panels.add(index * pitch(groups, width));
            let count = width.min(lanes - first);
            if source.along {
                let source = PackSource { data: source.data.add(first * source.stride), ..*source };
                turned::<C, true>(&source, whole, count, panel, width);
            }
            if whole < groups {
                for lane in 0..count {
                    *panel.add(whole * width + lane) = last_cell::<C, true>(source, first + lane);
                }
            }
            if !lane_sums.is_null() {
                let sums_here = std::slice::from_raw_parts_mut(lane_sums.add(index * width), width);
                sums::<C, true>(panel, groups, width, sums_here);
            }
        }
    }
}

/// The partial cell at the end of a lane.
///
/// # Safety
/// As `pack`.
#[inline(always)]
unsafe fn last_cell<C: CellFormat, const SIGNED: bool>(source: &PackSource, lane: usize) -> u32 {
    let whole = source.depth / C::DEPTH * C::DEPTH;
    let mut bytes = [0; 4];
    for (i, byte) in bytes.iter_mut().enumerate().take(source.depth - whole) {
        let at = if source.along { lane * source.stride + whole + i } else { (whole + i) * source.stride + lane };
        // SAFETY: as demanded of the caller.
        *byte = unsafe { *source.data.add(at) ^ source.flip };
    }
    C::join::<SIGNED>(bytes)
}

/// Packs rows of `groups` cells, `stride` bytes apart, from the first `lanes` lanes, padded with zeros beyond the
/// source's depth.
///
/// # Safety
/// The source is readable and `groups` is at least its depth in cells, rounded up. The rows are writable and do not
/// overlap the source.
#[inline(always)]
pub unsafe fn pack_rows<C: CellFormat>(source: &PackSource, groups: usize, lanes: usize, data: *mut u8, stride: usize) {
    // SAFETY: passed on.
    unsafe { pack_rows_of::<C, false>(source, groups, lanes, data, stride) }
}

/// The same for signed or unsigned numbers.
///
/// # Safety
/// The same.
#[inline(always)]
pub unsafe fn pack_rows_of<C: CellFormat, const SIGNED: bool>(
    source: &PackSource,
    groups: usize,
    lanes: usize,
    data: *mut u8,
    stride: usize,
) {
    let whole = source.depth / C::DEPTH;
    // SAFETY: as demanded of the caller.
    unsafe {
        let cell = |lane: usize, group: usize| data.add(lane * stride).cast::<u32>().add(group);
        // Squares of four lanes and four groups, if lanes are neighbours in memory.
        let (square_groups, square_lanes) = if source.along { (0, 0) } else { (whole / SIDE * SIDE, lanes / 16 * 16) };
        for lane in (0..square_lanes).step_by(16) {
            for group in (0..square_groups).step_by(SIDE) {
                let woven: [[Line; 4]; SIDE] = std::array::from_fn(|g| {
                    let row =
                        |i: usize| source.data.add(((group + g) * C::DEPTH + i % C::DEPTH) * source.stride + lane);
                    C::weave::<SIGNED>(std::array::from_fn(row), source.flip)
                });
                let [a, b, c, d] = woven;
                for (part, (((a, b), c), d)) in a.into_iter().zip(b).zip(c).zip(d).enumerate() {
                    let square = lines::turn([a, b, c, d]);
                    for (i, line) in square.into_iter().enumerate() {
                        lines::store(line, cell(lane + part * SIDE + i, group));
                    }
                }
            }
        }
        for lane in 0..lanes {
            let first = if lane < square_lanes { square_groups } else { 0 };
            let mut group = first;
            if source.along {
                let from = source.data.add(lane * source.stride);
                while group + SIDE <= whole {
                    lines::store(C::line::<SIGNED>(from.add(group * C::DEPTH), source.flip), cell(lane, group));
                    group += SIDE;
                }
            }
            while group < whole {
                let bytes = std::array::from_fn(|i| {
                    let k = group * C::DEPTH + i % C::DEPTH;
                    let at = if source.along { lane * source.stride + k } else { k * source.stride + lane };
                    *source.data.add(at) ^ source.flip
                });
                cell(lane, group).write(C::join::<SIGNED>(bytes));
                group += 1;
            }
            if whole * C::DEPTH < source.depth {
                cell(lane, whole).write(last_cell::<C, SIGNED>(source, lane));
            }
            for group in source.depth.div_ceil(C::DEPTH)..groups {
                cell(lane, group).write(0);
            }
        }
    }
}

/// The sum of each row of cells, modulo 2^32.
///
/// # Safety
/// There are as many rows as sums, of `groups` readable cells.
#[inline(always)]
pub unsafe fn row_sums<C: CellFormat, const SIGNED: bool>(rows: CellRows, groups: usize, sums: &mut [i32]) {
    for (row, sum) in sums.iter_mut().enumerate() {
        // SAFETY: as demanded of the caller; arrays of bytes have no alignment.
        let cells = unsafe {
            let first = rows.data.add(row * rows.stride).cast::<[u8; 4]>();
            std::slice::from_raw_parts(first, groups)
        };
        *sum = cells.iter().fold(0, |sum: i32, &cell| sum.wrapping_add(C::sum::<SIGNED>(u32::from_ne_bytes(cell))));
    }
}

/// A whole group of some lanes of a source with adjacent lanes: DEPTH rows are interleaved.
///
/// # Safety
/// As `pack`.
#[inline(always)]
unsafe fn straight<C: CellFormat, const SIGNED: bool>(
    source: &PackSource,
    group: usize,
    first: usize,
    lanes: usize,
    cells: *mut u32,
) {
    // SAFETY: as demanded of the caller.
    unsafe {
        let rows: [*const u8; 4] =
            std::array::from_fn(|i| source.data.add((group * C::DEPTH + i % C::DEPTH) * source.stride + first));
        let whole = lanes / 16 * 16;
        for lane in (0..whole).step_by(16) {
            if source.far && (first + lane).is_multiple_of(64) {
                for row in &rows[..C::DEPTH] {
                    lines::ask(row.wrapping_add(lane + AHEAD * source.stride));
                }
            }
            let lines = C::weave::<SIGNED>(rows.map(|row| row.add(lane)), source.flip);
            for (i, line) in lines.into_iter().enumerate() {
                lines::store(line, cells.add(lane + 4 * i));
            }
        }
        for lane in whole..lanes {
            let bytes = std::array::from_fn(|i| *rows[i].add(lane) ^ source.flip);
            *cells.add(lane) = C::join::<SIGNED>(bytes);
        }
    }
}

/// Whole groups of a source in which each lane is a row: squares of cells are transposed.
///
/// # Safety
/// As `pack`.
#[inline(always)]
unsafe fn turned<C: CellFormat, const SIGNED: bool>(
    source: &PackSource,
    groups: usize,
    lanes: usize,
    panel: *mut u32,
    width: usize,
) {
    let (whole_groups, whole_lanes) = (groups / SIDE * SIDE, lanes / SIDE * SIDE);
    // SAFETY: as demanded of the caller; all indices are below groups and lanes.
    unsafe {
        for reach in (0..whole_groups).step_by(REACH) {
            for lane in (0..whole_lanes).step_by(SIDE) {
                for group in (reach..whole_groups.min(reach + REACH)).step_by(SIDE) {
                    let from = source.data.add(lane * source.stride + group * C::DEPTH);
                    let square = lines::turn([
                        C::line::<SIGNED>(from, source.flip),
                        C::line::<SIGNED>(from.add(source.stride), source.flip),
                        C::line::<SIGNED>(from.add(2 * source.stride), source.flip),
                        C::line::<SIGNED>(from.add(3 * source.stride), source.flip),
                    ]);
                    for (i, line) in square.into_iter().enumerate() {
                        lines::store(line, panel.add((group + i) * width + lane));
                    }
                }
            }
        }
        for group in 0..groups {
            for lane in if group < whole_groups { whole_lanes } else { 0 }..lanes {
                let from = source.data.add(lane * source.stride + group * C::DEPTH);
                let bytes = std::array::from_fn(|i| if i < C::DEPTH { *from.add(i) ^ source.flip } else { 0 });
                *panel.add(group * width + lane) = C::join::<SIGNED>(bytes);
            }
        }
    }
}

/// Groups that are summed side by side, so that vectors are full for every width.
const BESIDE: usize = 8;

/// The sum of each lane of a panel, modulo 2^32.
///
/// # Safety
/// The panel has `groups` groups of `width` cells, at most `MAX_COLUMNS`; there are at least as many sums.
#[inline(always)]
unsafe fn sums<C: CellFormat, const SIGNED: bool>(panel: *const u32, groups: usize, width: usize, sums: &mut [i32]) {
    let mut beside = [0i32; BESIDE * MAX_COLUMNS];
    let beside = &mut beside[..BESIDE * width];
    // SAFETY: as demanded of the caller.
    let cells = unsafe { std::slice::from_raw_parts(panel, groups * width) };
    for cells in cells.chunks(BESIDE * width) {
        for (sum, &cell) in beside.iter_mut().zip(cells) {
            *sum = sum.wrapping_add(C::sum::<SIGNED>(cell));
        }
    }
    for (lane, sum) in sums[..width].iter_mut().enumerate() {
        *sum = beside.iter().skip(lane).step_by(width).fold(0, |sum, &part| sum.wrapping_add(part));
    }
}

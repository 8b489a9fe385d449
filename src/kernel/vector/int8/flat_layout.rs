//! How the windows of an int8 convolution over flat planes (`flat`) are divided into items, and where their cells lie.
#![forbid(unsafe_code)]

use super::flat_tile::{BEYOND, ROWS, sets};
use super::scaled::Store;
use crate::kernel::vector::caches::Caches;
use crate::memory::ALIGNMENT;
use crate::ops::axis::Axis;

/// Most windows of an item: with many filters, and with few, whose sums then stay in the first-level cache.
const WINDOWS: usize = 1024;
const WINDOWS_OF_FEW: usize = 2048;
/// Windows that are enough for a tile's operands to be worth their copies.
const ENOUGH_WINDOWS: usize = 64;
/// Items that are enough for any pool, and sets of filters that are worth copying an image's part once more.
const ENOUGH_ITEMS: usize = 16;
const ENOUGH_SETS: usize = 8;
/// Cells that are made at once.
pub const CHUNK: usize = 16;
/// Channels of a quad.
pub const QUAD: usize = 4;

/// The windows of groups of channels.
#[derive(Clone, Copy, Debug)]
pub struct FlatShape {
    pub images: usize,
    pub groups: usize,
    /// Of a group.
    pub channels: usize,
    pub filters: usize,
    pub rows: Axis,
    pub columns: Axis,
}

/// The numbers that a cell holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlatCells {
    /// Neighbours in a row, for filters one by one.
    Few,
    Pairs,
    Quads,
}

/// How the windows are divided into items, and where the cells of an item are.
#[derive(Clone, Copy, Debug)]
pub struct FlatLayout {
    pub rows: Axis,
    pub columns: Axis,
    /// Channels of a cell; its numbers are neighbours in a row if it is one.
    pub deep: usize,
    pub planes: usize,
    /// Cells of a row of taps, and the distance from one to the next in elements.
    pub steps: usize,
    pub step: usize,
    pub lines: usize,
    pub across: usize,
    pub down: usize,
    pub wide: usize,
    /// Phases down and across, and rows of each.
    pub phases: [usize; 2],
    pub height: usize,
    /// Elements of a row that are under windows.
    pub needed: usize,
    /// Cells from one row to the next, and of a phase of a plane.
    pub pitch: usize,
    pub area: usize,
    /// Sets of filters of an item: a part of them if there are few items.
    pub split: usize,
}

/// The scratch memory of a slot, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct FlatRoom {
    pub offsets: usize,
    /// For each channel of a cell.
    pub bytes: usize,
    pub cells: usize,
    pub sums: usize,
    pub elements: usize,
    pub weights: usize,
}

/// Quotient and remainder. A division takes as long as some rows of a small image, and is seldom needed.
#[inline(always)]
pub fn divided(number: usize, by: usize) -> (usize, usize) {
    if number < by {
        (0, number)
    } else if by == 1 {
        (number, 0)
    } else {
        (number / by, number % by)
    }
}

pub fn aligned(bytes: usize) -> usize {
    bytes.next_multiple_of(ALIGNMENT)
}

impl FlatLayout {
    pub fn new(of: &FlatShape, cells: FlatCells) -> FlatLayout {
        let few = cells == FlatCells::Few;
        let (mut rows, mut columns) = (of.rows, of.columns);
        if rows.is_plain() && columns.is_plain() {
            let all = rows.input * columns.input;
            (rows, columns) = (Axis::ONE, Axis { input: all, output: all, ..Axis::ONE });
        }
        for axis in [&mut rows, &mut columns].into_iter().filter(|axis| axis.output == 1) {
            axis.stride = 1;
        }
        let pairs = columns.taps.div_ceil(2);
        let along = of.channels * pairs < of.channels.div_ceil(2) * columns.taps;
        let deep = match cells {
            FlatCells::Few => 1,
            FlatCells::Pairs => {
                if along {
                    1
                } else {
                    2
                }
            }
            FlatCells::Quads => QUAD,
        };
        let planes = of.channels.div_ceil(deep);
        let (steps, step) = match deep {
            1 => (pairs, 2 * columns.dilation),
            _ => (columns.taps, columns.dilation),
        };
        let phases_of = |step: usize, steps: usize, stride: usize| match step.is_multiple_of(stride) {
            true => 1,
            false => stride.min((steps - 1) * step + 1),
        };
        let phases = [phases_of(rows.dilation, rows.taps, rows.stride), phases_of(step, steps, columns.stride)];
        // Rows and columns beyond those of the windows themselves.
        let (more_rows, more) = ((rows.taps - 1) * rows.dilation / rows.stride, (steps - 1) * step / columns.stride);
        let most = if few { WINDOWS_OF_FEW } else { WINDOWS };
        let cells = Caches::of_machine().l2 * 3 / 8 / size_of::<u32>() / (planes * phases[0] * phases[1]);
        let fit = (cells / (1 + more_rows)).saturating_sub(more).clamp(ENOUGH_WINDOWS, most);
        let across = if columns.output <= fit.next_multiple_of(CHUNK) {
            columns.output
        } else {
            columns.output.div_ceil(columns.output.div_ceil(fit)).next_multiple_of(CHUNK)
        };
        let wide = columns.output.div_ceil(across);
        let needed = (across - 1) * columns.stride + (columns.taps - 1) * columns.dilation + 1;
        let behind = needed.saturating_sub(columns.before + columns.input);
        let shared = if columns.stride == 1 && wide == 1 { columns.before.min(behind) } else { 0 };
        let pitch = (across + more).max(needed.div_ceil(columns.stride)) - shared;
        // Rows between taps that are far apart are copied too, and not for each row of windows anew.
        let lines = (cells / pitch).saturating_sub(more_rows).max(more_rows.div_ceil(2));
        let lines = lines.min(most / pitch).clamp(1, rows.output);
        let down = rows.output.div_ceil(lines);
        let lines = rows.output.div_ceil(down);
        let height = lines + more_rows;
        // Planes an odd number of cache lines apart do not compete for the same sets of a cache.
        let area = ((phases[0] * height * pitch + shared).div_ceil(CHUNK) | 1) * CHUNK;
        let (sixes, fours) = sets(of.filters);
        let blocks = (of.images * of.groups * down * wide).max(1);
        let split = ENOUGH_ITEMS.div_ceil(blocks).min((sixes + fours) / ENOUGH_SETS).max(1);
        let split = if few || blocks >= ENOUGH_ITEMS { 1 } else { split };
        FlatLayout {
            rows,
            columns,
            deep,
            planes,
            steps,
            step,
            lines,
            across,
            down,
            wide,
            phases,
            height,
            needed,
            pitch,
            area,
            split,
        }
    }

    /// Groups along K.
    pub fn groups(&self) -> usize {
        self.planes * self.rows.taps * self.steps
    }

    /// The place of each group's cell from that of a window, in bytes.
    pub fn offsets(&self, to: &mut [usize]) {
        let mut all = to.iter_mut();
        for (plane, tap) in (0..self.planes).flat_map(|plane| (0..self.rows.taps).map(move |tap| (plane, tap))) {
            let down = tap * self.rows.dilation;
            let row = down % self.rows.stride * self.height + down / self.rows.stride;
            for (step, to) in (0..self.steps).zip(&mut all) {
                let right = step * self.step;
                let plane = plane * self.phases[1] + right % self.columns.stride;
                let cell = plane * self.area + row * self.pitch + right / self.columns.stride;
                *to = cell * size_of::<u32>();
            }
        }
    }

    /// Sums of a row of a tile: those of a whole item, up to a whole tile.
    pub fn sums(&self) -> usize {
        (self.lines - 1) * self.pitch + self.across + BEYOND
    }

    /// The scratch memory of a slot, in bytes.
    pub fn room(&self, store: Store) -> FlatRoom {
        let bytes = (self.area + CHUNK) * self.columns.stride + self.needed + self.columns.dilation + 2 * CHUNK;
        FlatRoom {
            offsets: aligned(self.groups() * size_of::<usize>()),
            bytes: self.deep * aligned(bytes),
            cells: aligned((self.planes * self.phases[1] * self.area + CHUNK + BEYOND + self.pitch) * size_of::<u32>()),
            sums: aligned(ROWS * self.sums() * size_of::<i32>()),
            elements: aligned(self.sums() * store.bytes() + CHUNK),
            weights: aligned(self.groups() * size_of::<u32>()),
        }
    }

    /// The number of an item's image and group, and its windows.
    pub fn block(&self, item: usize) -> (usize, FlatBlock) {
        let (item, across) = divided(item, self.wide);
        let (number, down) = divided(item, self.down);
        let (row, column) = (down * self.lines, across * self.across);
        let (lines, across) = (self.lines.min(self.rows.output - row), self.across.min(self.columns.output - column));
        (number, FlatBlock { row, column, lines, across })
    }
}

/// The windows of an item.
#[derive(Clone, Copy, Debug)]
pub struct FlatBlock {
    pub row: usize,
    pub column: usize,
    pub lines: usize,
    pub across: usize,
}

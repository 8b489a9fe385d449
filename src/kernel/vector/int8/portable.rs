//! The portable micro-kernels.

use super::finish::{self, Rule, Stash};
use super::micro::{MicroKernelSet, loops, nothing};
use super::panel::{self, CellFormat, PackSource, PairCell};
use super::tile::{CellRows, Panel, Terms, Tile, TileOutput};
use super::{dots, lines, thin};

loops!(PairCell);

const COLUMNS: usize = 8;
const THIN: Option<thin::ThinKernels> = None;
const DOTS: Option<dots::DotsKernels> = None;
static TILES: [Tile; 4] = [tile::<1>, tile::<2>, tile::<3>, tile::<4>];

unsafe fn pack_a(source: &PackSource, groups: usize, lanes: usize, data: *mut u8, stride: usize) {
    // SAFETY: passed on.
    unsafe { panel::pack_rows::<PairCell>(source, groups, lanes, data, stride) }
}

unsafe fn pack_b(source: &PackSource, groups: usize, lanes: usize, panels: *mut u32, sums: *mut i32) {
    // SAFETY: passed on.
    unsafe { panel::pack::<PairCell>(source, groups, lanes, panels, COLUMNS, sums) }
}

/// # Safety
/// A has ROWS rows of `groups` cells, the panel has as many groups of COLUMNS cells, `out` has ROWS rows of COLUMNS
/// writable integers, `stride` apart. Terms are as `Terms` says.
unsafe fn tile<const ROWS: usize>(groups: usize, a: CellRows, b: Panel, terms: Option<Terms>, out: TileOutput) {
    let mut sums = [[0i32; COLUMNS]; ROWS];
    if let Some(terms) = terms {
        for (i, j) in (0..ROWS).flat_map(|i| (0..COLUMNS).map(move |j| (i, j))) {
            // SAFETY: as demanded of the caller.
            sums[i][j] = unsafe { (*terms.rows.add(i)).wrapping_add(*terms.columns.add(j)) };
        }
    }
    for group in 0..groups {
        lines::ask(b.next.wrapping_add(group * b.step));
        // SAFETY: as demanded of the caller; arrays of cells have the alignment of a cell.
        let b = unsafe { &*b.data.add(group * COLUMNS).cast::<[u32; COLUMNS]>() };
        for (row, sums) in sums.iter_mut().enumerate() {
            // SAFETY: as demanded of the caller.
            let a = unsafe { a.data.add(row * a.stride).cast::<u32>().add(group).read_unaligned() };
            let (a0, a1) = (i32::from(a as i16), (a as i32) >> 16);
            for (sum, &b) in sums.iter_mut().zip(b) {
                *sum = sum.wrapping_add(a0 * i32::from(b as i16) + a1 * ((b as i32) >> 16));
            }
        }
    }
    for (row, sums) in sums.iter_mut().enumerate() {
        // SAFETY: as demanded of the caller.
        let out_row = unsafe { &mut *out.data.add(row * out.stride).cast::<[i32; COLUMNS]>() };
        for (sum, out_sum) in sums.iter().zip(out_row) {
            *out_sum = sum.wrapping_add(if out.adds { *out_sum } else { 0 });
        }
    }
}

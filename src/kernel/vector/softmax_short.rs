//! Softmax of rows of at most sixteen elements, sixteen rows side by side: a lane is a row. One by one, the way from a
//! register to its greatest lane and to its sum would take longer than such a row.
//!
//! The sum of a row is made in f64, in pairs: each element is added to the one eight before it, then four, two and one.

use super::elements::ElementPair;
use super::lanes::Vector;
use super::movement::TileTranspose;
use super::reduce::{SideBySide, Sum};
use super::softmax_terms::{Shift, logarithm, scale};
use super::wide::{LANES as ROWS, Wide};

/// Elements of the longest row.
pub const MOST: usize = ROWS;
/// Bytes between two elements of a row.
const STRIDE: isize = (ROWS * size_of::<f32>()) as isize;

/// Softmax, or its logarithm, of rows of `len` elements.
///
/// # Safety
/// The processor has the instructions of V and W, and the transposition's; rows have 1 to MOST elements, and are whole.
#[inline(always)]
pub unsafe fn rows<V: Vector, W: Wide, const LOG: bool>(
    transpose: &TileTranspose,
    mut pair: ElementPair<'_, f32, f32>,
    len: usize,
) {
    let dense = (len * size_of::<f32>()) as isize;
    // By elements, and by rows.
    let (mut of_x, mut of_y) = ([[0f32; ROWS]; MOST], SideBySide::<Sum>::neutral());
    pair.for_chunks(ROWS * len, |_, mut pair| {
        let rows = pair.num_elements() / len;
        let (x, out) = pair.addresses();
        let mut greatest = [0f32; ROWS];
        // SAFETY: as demanded of the caller; there is room for sixteen rows of MOST elements, and vectors begin LANES
        // before the end of sixteen.
        unsafe {
            transpose.run((x.cast(), dense), (of_x.as_mut_ptr().cast(), STRIDE), rows, len);
            for at in (0..ROWS).step_by(V::LANES) {
                let mut most = V::splat(f32::NEG_INFINITY);
                for x in &of_x[..len] {
                    most = V::load(x.as_ptr().add(at)).max(most);
                }
                most.store(greatest.as_mut_ptr().add(at));
                let shift = Shift::of(most);
                for (x, y) in of_x.iter().zip(&mut of_y.numbers).take(len) {
                    shift.exponential(V::load(x.as_ptr().add(at))).store(y.as_mut_ptr().add(at));
                }
            }
        }
        // SAFETY: as demanded of the caller.
        let sums = unsafe { of_y.totals::<W, true>(len) };
        let mut last = [0f32; ROWS];
        for ((last, &max), &sum) in last.iter_mut().zip(&greatest).zip(&sums).take(if LOG { rows } else { ROWS }) {
            *last = if LOG { logarithm(max, sum) } else { scale(max, sum) };
        }
        for (y, x) in of_y.numbers.iter_mut().zip(&of_x).take(len) {
            for (((y, x), max), last) in y.iter_mut().zip(x).zip(&greatest).zip(&last) {
                *y = if LOG { *x - *max - *last } else { *y * *last };
            }
        }
        // SAFETY: as above.
        unsafe { transpose.run((of_y.numbers.as_ptr().cast(), STRIDE), (out.cast(), dense), len, rows) };
    });
}

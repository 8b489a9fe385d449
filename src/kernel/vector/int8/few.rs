//! Rectangles of few rows or few columns: nothing is packed, the sums come from `thin`, and the zero points' terms are added to
//! them here.

use super::panel::Source;
use super::{Piece, Product, parts, thin};
use std::ops::Range;

/// # Safety
/// As all functions of a piece.
impl Piece<'_> {
    /// A rectangle of few rows or few columns, without panels.
    pub(super) unsafe fn thin(&self, rows: &Range<usize>, columns: &Range<usize>) {
        let &Product { a, b, k, transpose_b, signed_a, zero_b, .. } = self.product;
        let (zero_a, pitch) = (self.zero_a(), self.plan.depth.next_multiple_of(thin::DEEP));
        let along = self.product.columns_lie_along();
        let sums = self.scratch.wrapping_add(self.room.thin).cast::<i32>();
        let copies = self.scratch.wrapping_add(self.room.thin + thin::SUMS * size_of::<i32>());
        for rows in parts(rows, thin::ROWS) {
            // One row of sums more for those of B's columns.
            let most = thin::SUMS / (rows.len() + 1) / thin::WIDE * thin::WIDE;
            // SAFETY: rows and columns are inside A and B; the room has SUMS sums and the copies of ROWS + 1 rows.
            unsafe {
                let of_a = a.at(rows.start, 0);
                let flip = if signed_a { 128 } else { 0 };
                let of_a = Source { data: of_a, stride: a.stride(), along: true, depth: k, flip };
                if !along {
                    thin::copy_rows(&of_a, rows.len(), zero_a != 0, copies, pitch);
                }
                for columns in parts(columns, most) {
                    let stride = columns.len().next_multiple_of(thin::WIDE);
                    let data = if transpose_b { b.at(columns.start, 0) } else { b.at(0, columns.start) };
                    let step = if transpose_b { b.stride() } else { k };
                    let of_b = Source { data, stride: if along { step } else { b.stride() }, along, depth: k, flip: 0 };
                    let ones = sums.add(rows.len() * stride);
                    if along {
                        let ones = if zero_a == 0 { std::ptr::null_mut() } else { ones };
                        thin::along(&of_a, rows.len(), &of_b, columns.len(), sums, stride, ones);
                    } else {
                        let rows = rows.len() + usize::from(zero_a != 0);
                        thin::across((copies, pitch), rows, &of_b, columns.len(), sums, stride);
                    }
                    let all = std::slice::from_raw_parts_mut(sums, (rows.len() + 1) * stride);
                    let (all, ones) = all.split_at_mut(rows.len() * stride);
                    if zero_a != 0 || zero_b != 0 {
                        for (row, sums) in rows.clone().zip(all.chunks_exact_mut(stride)) {
                            let of_row = if zero_b == 0 { 0 } else { thin::sum(a.row(row), flip) };
                            let both = (k as i32).wrapping_mul(zero_a * zero_b);
                            let term = both.wrapping_sub(of_row.wrapping_mul(zero_b));
                            add_terms(
                                &mut sums[..columns.len()],
                                term,
                                if zero_a == 0 { None } else { Some(ones) },
                                zero_a,
                            );
                        }
                    }
                    (self.plan.set.finish)(&self.product.rule, &self.place(&rows, &columns, stride), all, self.c);
                }
            }
        }
    }
}

/// Adds what the zero points say to the sums of a row: a term, and the sums of B's columns times that of A.
fn add_terms(sums: &mut [i32], term: i32, ones: Option<&[i32]>, zero_a: i32) {
    match ones {
        None => sums.iter_mut().for_each(|sum| *sum = sum.wrapping_add(term)),
        Some(ones) => {
            for (sum, one) in sums.iter_mut().zip(ones) {
                *sum = sum.wrapping_add(term.wrapping_sub(one.wrapping_mul(zero_a)));
            }
        }
    }
}

//! Matrix products with a single result column: each element is the dot product of a row of A with the column.
//!
//! The SIMD lanes of `gemm` lie along the columns of C, and only one of them would be busy. Here they lie along K, for
//! rows of A and a dense column of B (`dots`): partial sums, and so another order than in products with more columns.
//! An element depends only on its row, the column and K.

use super::dots::{self, Target};
use super::isa::Isa;
use super::micro::Scale;
use super::product::{GemmBatch, OperandB, Operands};
use super::site::{Matrix, MatrixMut, Site};
use crate::base::Result;
use crate::threadpool::Span;

/// Minimum rows of a piece; there are enough pieces for any pool.
const LEAST_ROWS: usize = 16;
const ENOUGH: usize = 64;

/// The column of B, as a row, if this algorithm applies.
fn column<'a>(batch: &GemmBatch<'_>, operands: &Operands<'a>) -> Option<Matrix<'a, f32>> {
    let plain = batch.scale.alpha == 1.0 && [0.0, 1.0].contains(&batch.scale.beta);
    if batch.shape.n != 1 || batch.shape.k == 0 || batch.shape.transpose_a || !plain {
        return None;
    }
    match operands.b {
        OperandB::Matrix(b) if batch.shape.transpose_b => Some(b),
        OperandB::Matrix(b) => (b.stride() == 1).then(|| b.as_row()),
        OperandB::Panels(panels) => panels.column(),
    }
}

/// Computes a batch in a region of `site`, if this algorithm applies; it needs no scratch memory.
pub fn compute(isa: Isa, batch: &GemmBatch<'_>, c: &MatrixMut<'_, f32>, site: &dyn Site) -> Option<Result<()>> {
    let (shape, count) = (batch.shape, batch.count);
    if count == 0 || column(batch, &(batch.operands)(0)).is_none() {
        return None;
    }
    let rows = shape.m.div_ceil(ENOUGH.div_ceil(count)).next_multiple_of(LEAST_ROWS);
    let down = shape.m.div_ceil(rows.max(1));
    if down == 0 {
        return Some(Ok(()));
    }
    let cost_ns = shape.cost_ns() as f32 / down as f32;
    let span = Span { items: down * count, cost_ns, ..Span::default() };
    Some(site.parallel_for(&span, &|claim| {
        assert!(claim.end() <= down * count);
        for item in claim.begin()..claim.end() {
            let operands = (batch.operands)(item / down);
            // SAFETY: only rows of this claim are written through it.
            let c = unsafe { c.one_of(item / down, count) };
            let first = item % down * rows;
            let Some(b) = column(batch, &operands) else { unreachable!("products of one shape") };
            let fits = operands.a.holds(shape.m, shape.k, false) && c.holds(shape.m, 1);
            assert!(fits && b.holds(1, shape.k, false) && operands.finish.fits(shape.m, 1), "{shape:?}");
            // SAFETY: the sizes were compared; no other claim has these rows.
            unsafe { some(isa, batch.scale, (&operands, b, &c), first..shape.m.min(first + rows)) };
        }
        Ok(())
    }))
}

/// Some rows.
///
/// # Safety
/// The operands fit together, and nothing else writes these rows.
unsafe fn some(
    isa: Isa,
    scale: Scale,
    (operands, b, c): (&Operands<'_>, Matrix<'_, f32>, &MatrixMut<'_, f32>),
    rows: std::ops::Range<usize>,
) {
    let Operands { a, finish, .. } = *operands;
    // SAFETY: rows of A and C; those of the result are exclusive.
    unsafe {
        let data = c.data().add(rows.start * c.stride());
        let to = Target { data, row: 0, column: c.stride(), add: scale.beta != 0.0 };
        dots::products(isa, (1, rows.len(), b.columns()), b, a, rows.start, &to);
        if finish.is_nothing() {
            return;
        }
        if let (1, Some(finish)) = (c.stride(), finish.turned()) {
            let part = std::slice::from_raw_parts_mut(data, rows.len());
            return finish.part_of_row(isa, 0, rows.start, part);
        }
        for row in rows {
            let element = std::slice::from_raw_parts_mut(c.data().add(row * c.stride()), 1);
            finish.part_of_row(isa, row, 0, element);
        }
    }
}

//! A matrix B packed once into the panels that the f32 micro-kernels read, for any number of products.
//!
//! K block after K block, and in it panel after panel as wide as a micro-kernel. The layout depends on K, N and the
//! instruction set, not on the blocks and division of a product. A single column is stored once more, densely, behind
//! the panels (`column`).

use super::micro::MicroKernels;
use super::pack::{self, stretches};
use super::site::Matrix;
use crate::base::{Error, Result};
use crate::memory::AlignedBuffer;

/// A packed B.
#[derive(Debug)]
pub struct Panels {
    memory: AlignedBuffer,
    k: usize,
    n: usize,
    /// Columns of a panel.
    width: usize,
}

impl Panels {
    /// Packs B, which is [K, N], or [N, K] if it is transposed.
    pub fn new(b: Matrix<'_, f32>, k: usize, n: usize, transposed: bool) -> Result<Panels> {
        Panels::new_with(&MicroKernels::best(), b, k, n, transposed)
    }

    pub(super) fn new_with(
        micro: &MicroKernels,
        b: Matrix<'_, f32>,
        k: usize,
        n: usize,
        transposed: bool,
    ) -> Result<Panels> {
        assert!(b.holds(k, n, transposed));
        let width = micro.width;
        let bytes = n
            .checked_next_multiple_of(width)
            .and_then(|columns| columns.checked_add((n == 1) as usize)?.checked_mul(k)?.checked_mul(size_of::<f32>()))
            .filter(|&bytes| bytes <= isize::MAX as usize)
            .ok_or_else(|| Error::out_of_range(format!("{k} x {n} packed weights are larger than memory can hold")))?;
        let panels = Panels { memory: AlignedBuffer::zeroed(bytes, "packed weights")?, k, n, width };
        let (depth, count) = stretches(k);
        for begin in (0..count).map(|number| number * depth) {
            let depth = depth.min(k - begin);
            for first in (0..n).step_by(width) {
                let columns = width.min(n - first);
                let size = (depth, columns, columns);
                // SAFETY: K block and columns are inside B; the panel is inside the memory, which has a multiple of its
                // width for every row of B.
                unsafe {
                    let panel = panels.at(begin, depth, first).cast_mut();
                    if transposed {
                        pack::columns(micro.isa, b.at(first, begin), b.stride(), size, panel, width);
                    } else {
                        pack::rows(b.at(begin, first), b.stride(), size, panel, width);
                    }
                }
            }
        }
        if n == 1 {
            let column = panels.memory.data().cast::<f32>().wrapping_add(k * width);
            for at in 0..k {
                // SAFETY: an element of B; there is room for the column behind the panels.
                unsafe { *column.add(at) = if transposed { *b.at(0, at) } else { *b.at(at, 0) } };
            }
        }
        Ok(panels)
    }

    /// The column as a row, if it is the only one.
    pub fn column(&self) -> Option<Matrix<'_, f32>> {
        let data = self.memory.data().cast::<f32>().wrapping_add(self.k * self.width);
        // SAFETY: K elements that were written when the column was packed, and are never written again.
        (self.n == 1).then(|| unsafe { Matrix::new(data, 1, self.k, self.k) })
    }

    /// Whether it is a packed `k` x `n` in panels of `width`.
    pub fn holds(&self, k: usize, n: usize, width: usize) -> bool {
        (self.k, self.n, self.width) == (k, n, width)
    }

    /// Size in bytes.
    pub fn bytes(&self) -> usize {
        self.memory.bytes()
    }

    /// The panel with column `first`, of the K block from row `begin` on.
    pub(super) fn at(&self, begin: usize, depth: usize, first: usize) -> *const f32 {
        let padded = self.n.next_multiple_of(self.width);
        self.memory.data().cast::<f32>().wrapping_add(begin * padded + first * depth).cast_const()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::finish::ProductEpilogue;
    use super::super::gemm::{GemmBatch, GemmShape, OperandB, Operands, compute_batch_with};
    use super::super::isa::Isa;
    use super::super::micro::Scale;
    use super::super::site::MatrixMut;
    use super::super::standalone::StandaloneCall;
    use super::*;

    #[test]
    fn a_product_with_panels_has_the_same_bits_on_every_level() {
        for (m, n, k) in [(1, 1, 1), (1, 130, 700), (7, 65, 512), (60, 200, 1030), (100, 5, 3), (2, 9, 0), (70, 1, 600)]
        {
            let values = |len: usize| (0..len).map(|i| ((i * 7919 % 1000) as f32 - 500.0) / 321.0).collect::<Vec<_>>();
            let (a, b) = (values(m * k), values(k * n));
            for isa in Isa::available() {
                let micro = MicroKernels::of(isa);
                for transpose_b in [false, true] {
                    let (rows, columns) = if transpose_b { (n, k) } else { (k, n) };
                    let matrix = Matrix::dense(&b, rows, columns);
                    let panels = Panels::new_with(&micro, matrix, k, n, transpose_b).unwrap();
                    let shape = GemmShape { m, n, k, transpose_a: false, transpose_b };
                    let product = |b: OperandB<'_>| {
                        let mut c = vec![7.0f32; m * n];
                        let operands = Operands { a: Matrix::dense(&a, m, k), b, finish: ProductEpilogue::default() };
                        let scale = Scale { alpha: 1.0, beta: 0.0 };
                        let call = StandaloneCall::new(None, 1000, shape.scratch_bytes_with(&micro)).unwrap();
                        let batch = GemmBatch { shape, count: 1, scale, operands: &|_| operands };
                        compute_batch_with(micro, &batch, MatrixMut::dense(&mut c, m, n), &call).unwrap();
                        c.into_iter().map(f32::to_bits).collect::<Vec<_>>()
                    };
                    let same = product(OperandB::Panels(&panels)) == product(OperandB::Matrix(matrix));
                    assert!(same, "{isa:?} {m} x {n} x {k} {transpose_b}");
                }
            }
        }
    }
}

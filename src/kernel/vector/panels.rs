//! A matrix B packed once into the panels that the f32 micro-kernels read, for any number of products; one of 16-bit
//! floats stays what it is.
//!
//! K block after K block, and in it panel after panel as wide as a micro-kernel. The layout depends on K, N and the
//! instruction set, not on the blocks and division of a product. A single column is stored once more, densely, behind
//! the panels (`column`).

use super::convert::Stored;
use super::micro::MicroKernels;
use super::pack::{self, stretches};
use super::site::Matrix;
use crate::base::{Error, Result};
use crate::memory::AlignedBuffer;
use std::marker::PhantomData;
use std::ops::Range;

/// A packed B, of f32 or of 16-bit floats, which are converted when a panel is read.
#[derive(Debug)]
pub struct Panels<T = f32> {
    memory: AlignedBuffer,
    k: usize,
    n: usize,
    /// Columns of a panel.
    width: usize,
    of: PhantomData<T>,
}

impl<T: Copy> Panels<T> {
    /// Memory of zeros for the panels, and `behind` them for another row and column each. `pack` writes a panel, of a K
    /// block and of so many columns from one on.
    fn filled(
        width: usize,
        (k, n): (usize, usize),
        behind: usize,
        mut pack: impl FnMut(Range<usize>, usize, usize, *mut T),
    ) -> Result<Panels<T>> {
        let bytes = n
            .checked_next_multiple_of(width)
            .and_then(|columns| columns.checked_add(behind)?.checked_mul(k)?.checked_mul(size_of::<T>()))
            .filter(|&bytes| bytes <= isize::MAX as usize)
            .ok_or_else(|| Error::out_of_range(format!("{k} x {n} packed weights are larger than memory can hold")))?;
        let memory = AlignedBuffer::zeroed(bytes, "packed weights")?;
        let panels = Self { memory, k, n, width, of: PhantomData };
        let (depth, count) = stretches(k);
        for begin in (0..count).map(|number| number * depth) {
            let depth = depth.min(k - begin);
            for first in (0..n).step_by(width) {
                pack(begin..begin + depth, first, width.min(n - first), panels.at(begin, depth, first).cast_mut());
            }
        }
        Ok(panels)
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
    pub(super) fn at(&self, begin: usize, depth: usize, first: usize) -> *const T {
        let padded = self.n.next_multiple_of(self.width);
        self.memory.data().cast::<T>().wrapping_add(begin * padded + first * depth).cast_const()
    }
}

impl<T: Stored> Panels<T> {
    /// Packs a B of 16-bit floats, which is [K, N], or [N, K] if it is transposed.
    pub fn of_halves(b: Matrix<'_, T>, k: usize, n: usize, transposed: bool) -> Result<Panels<T>> {
        assert!(b.holds(k, n, transposed));
        let width = MicroKernels::best().width;
        Self::filled(width, (k, n), 0, |depth, first, columns, panel| {
            // SAFETY: rows of a panel, in memory that is ours alone.
            let row = |at: usize| unsafe { std::slice::from_raw_parts_mut(panel.add(at * width), width) };
            match transposed {
                false => {
                    for (at, k) in depth.enumerate() {
                        row(at)[..columns].copy_from_slice(&b.row(k)[first..first + columns]);
                    }
                }
                true => {
                    for j in 0..columns {
                        let column = &b.row(first + j)[depth.clone()];
                        column.iter().enumerate().for_each(|(at, &x)| row(at)[j] = x);
                    }
                }
            }
        })
    }

    /// The panels with these columns, of the K block from row `begin` on, one after the other; each row of them is as
    /// wide as a panel.
    pub fn panels(&self, begin: usize, depth: usize, columns: Range<usize>) -> &[T] {
        assert!(begin + depth <= self.k && columns.start.is_multiple_of(self.width) && columns.end <= self.n);
        // SAFETY: panels that lie in the memory, which is written once, when they are packed.
        unsafe {
            let from = self.at(begin, depth, columns.start);
            std::slice::from_raw_parts(from, depth * columns.len().next_multiple_of(self.width))
        }
    }
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
        let behind = usize::from(n == 1);
        let panels = Self::filled(width, (k, n), behind, |depth, first, columns, panel| {
            let size = (depth.len(), columns, columns);
            // SAFETY: K block and columns are inside B; the panel is inside the memory, which has a multiple of its
            // width for every row of B.
            unsafe {
                match transposed {
                    true => pack::columns(micro.isa, b.at(first, depth.start), b.stride(), size, panel, width),
                    false => pack::rows(b.at(depth.start, first), b.stride(), size, panel, width),
                }
            }
        })?;
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
            for isa in Isa::levels() {
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

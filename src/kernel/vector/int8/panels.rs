//! A byte matrix B packed once into the panels that the micro-kernels read, for any number of products; with the sums
//! of its columns, which the zero point of A needs.
//!
//! K block after K block, and in it panel after panel as wide as a tile of the set. The layout depends on K, N and the
//! instruction set, not on the blocks and division of a product. If there are few enough columns for `dots` to hold,
//! they are stored once more, each from end to end.

use super::panel::pitch;
use super::tile::PanelFormat;
use crate::kernel::vector::site::Matrix;
use crate::memory::AlignedBuffer;

/// A packed B.
#[derive(Debug)]
pub struct BytePanels {
    pub(super) memory: AlignedBuffer,
    /// Offset of the sums: for each K block one per column, rounded up to whole panels.
    pub(super) sums: usize,
    /// Offset of the columns that are stored from end to end.
    pub(super) columns: Option<usize>,
    pub(super) k: usize,
    pub(super) n: usize,
    /// Columns of a panel, numbers along K of a cell and of a K block, and the multiple of cells.
    pub(super) width: usize,
    pub(super) cell: usize,
    pub(super) depth: usize,
    pub(super) step: usize,
}

impl BytePanels {
    /// B as a transposed matrix, if it has few columns.
    pub(super) fn columns(&self) -> Option<Matrix<'_, u8>> {
        let at = self.columns?;
        // SAFETY: n columns of k bytes were written there, and are never written again.
        Some(unsafe { Matrix::new(self.memory.data().add(at).cast_const(), self.n, self.k, self.k) })
    }

    /// Whether it is a packed `k` x `n` in this format.
    pub(super) fn holds(&self, k: usize, n: usize, set: &PanelFormat) -> bool {
        (self.k, self.n, self.width, self.cell, self.step) == (k, n, set.columns, set.depth, set.step)
    }

    /// Size in bytes.
    pub fn bytes(&self) -> usize {
        self.memory.bytes()
    }

    /// The panel that begins with column `first`, of the K block from `begin` on, with this many cells.
    pub(super) fn panel(&self, begin: usize, cells: usize, first: usize) -> *const u32 {
        let cells_of_first = self.depth.min(self.k).div_ceil(self.cell).next_multiple_of(self.step);
        let whole = pitch(cells_of_first, self.width);
        let stretch = begin / self.depth.max(1) * self.n.div_ceil(self.width) * whole;
        let at = stretch + first / self.width * pitch(cells, self.width);
        self.memory.data().cast::<u32>().wrapping_add(at).cast_const()
    }

    /// The sums along a K block of the columns from `first` on.
    pub(super) fn sums_at(&self, begin: usize, first: usize) -> *const i32 {
        let stretch = begin / self.depth.max(1) * self.n.next_multiple_of(self.width);
        self.memory.data().wrapping_add(self.sums).cast::<i32>().wrapping_add(stretch + first).cast_const()
    }
}

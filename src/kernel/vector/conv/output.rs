//! Sums that lie `[window][filter]`, as rows of the output.

use super::super::isa::Isa;
use super::super::movement::TileTranspose;
use std::ops::Range;

/// Some windows of a few planes of the output.
pub struct OutputRegion {
    /// The first plane.
    pub data: *mut f32,
    /// Floats of a plane, and of a row.
    pub plane: usize,
    pub line: usize,
    pub rows: Range<usize>,
    pub columns: Range<usize>,
}

impl OutputRegion {
    /// Turns sums, `[window][width]`, into `count` planes.
    ///
    /// # Safety
    /// The level is supported, and nobody else writes these elements of the output, which exist.
    pub unsafe fn store(&self, isa: Isa, sums: &[f32], width: usize, count: usize) {
        let turn = TileTranspose::of(isa, size_of::<f32>()).expect("floats are turned on every level");
        let columns = self.columns.len();
        // Rows that follow one another in the output are turned at once.
        let (runs, run) =
            if columns == self.line { (1, self.rows.len() * columns) } else { (self.rows.len(), columns) };
        for i in 0..runs {
            let from = sums[i * run * width..][..run * width].as_ptr();
            let to = self.data.wrapping_add((self.rows.start + i) * self.line + self.columns.start);
            let [from_stride, to_stride] = [width, self.plane].map(|floats| (floats * size_of::<f32>()) as isize);
            // SAFETY: as demanded of the caller; there are so many sums.
            unsafe { turn.run((from.cast(), from_stride), (to.cast(), to_stride), run, count) };
        }
    }
}

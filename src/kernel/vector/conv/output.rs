//! Sums that lie `[window][filter]`, as rows of the output.

use super::super::activation::{self, Activation};
use super::super::isa::Isa;
use super::super::levels::{self, LevelLoop};
use super::super::movement::TileTranspose;
use super::super::strip::PieceRows;
use std::ops::Range;

/// Some windows of a few planes of the output.
pub struct OutputRegion {
    /// The first plane.
    pub data: *mut f32,
    /// Floats of a plane, and of a row.
    pub plane: usize,
    pub line: usize,
    pub rows: PieceRows,
    pub columns: Range<usize>,
}

impl OutputRegion {
    /// The begin and the length of the runs of elements that follow one another in a plane.
    fn runs(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        self.rows.runs(self.columns.clone(), self.line)
    }

    /// Completes `count` planes that were stored: adds the addend, which begins with the first of them, and applies
    /// the activation.
    ///
    /// # Safety
    /// As of `store`; the elements were stored.
    pub unsafe fn finish(&self, isa: Isa, addend: &[f32], activation: Activation, count: usize) {
        for plane in 0..count {
            for (at, len) in self.runs() {
                let at = plane * self.plane + at;
                // SAFETY: as demanded of the caller.
                let run = unsafe { std::slice::from_raw_parts_mut(self.data.add(at), len) };
                finish(isa, activation, Some(&addend[at..at + len]), run);
            }
        }
    }

    /// Turns sums, `[window][width]`, into `count` planes.
    ///
    /// # Safety
    /// The level is supported, and nobody else writes these elements of the output, which exist.
    pub unsafe fn store(&self, isa: Isa, sums: &[f32], width: usize, count: usize) {
        let turn = TileTranspose::of(isa, size_of::<f32>()).expect("floats are turned on every level");
        for (i, (at, run)) in self.runs().enumerate() {
            let from = sums[i * run * width..][..run * width].as_ptr();
            let to = self.data.wrapping_add(at);
            let [from_stride, to_stride] = [width, self.plane].map(|floats| (floats * size_of::<f32>()) as isize);
            // SAFETY: as demanded of the caller; there are so many sums.
            unsafe { turn.run((from.cast(), from_stride), (to.cast(), to_stride), run, count) };
        }
    }
}

/// Completes a run of the output: adds the addend's elements, and applies the activation.
pub fn finish(isa: Isa, activation: Activation, addend: Option<&[f32]>, run: &mut [f32]) {
    if let Some(addend) = addend {
        levels::on(isa, AddTo { run: &mut *run, addend });
    }
    activation::apply(activation, isa, run);
}

struct AddTo<'a> {
    run: &'a mut [f32],
    addend: &'a [f32],
}

impl LevelLoop for AddTo<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.run.iter_mut().zip(self.addend).for_each(|(x, more)| *x += more);
    }
}

//! Normalisation: rows by their own statistics, or channels by given ones. All levels give the same bits.
//!
//! x and the result are f32 or 16-bit floats, T; scale and shift are f32 or of that type, P. Statistics and all
//! intermediate results are computed as for f32, and the result is rounded once.

mod channels;
mod rows;

use super::convert::Stored;
use super::elements::ElementPair;
use super::isa::{Isa, SimdLevel};
use super::wide::{LANES, Wide};

pub use channels::Channels;
pub use rows::{RowNorm, RowStatistic};

/// Scale and shift of a row, or of many.
#[derive(Clone, Copy, Debug)]
pub struct Affine<'a, P> {
    pub scale: Option<&'a [P]>,
    pub shift: Option<&'a [P]>,
}

impl<'a, P: Stored> Affine<'a, P> {
    /// A range of both.
    #[inline(always)]
    fn part(&self, begin: usize, len: usize) -> Affine<'a, P> {
        let part = |values: Option<&'a [P]>| values.map(|values| &values[begin..][..len]);
        Affine { scale: part(self.scale), shift: part(self.shift) }
    }

    /// Scale and shift of a channel.
    #[inline(always)]
    fn of(&self, channel: usize) -> (f32, f32) {
        let of = |values: Option<&'a [P]>, other: f32| values.map_or(other, |values| values[channel].widened());
        (of(self.scale, 1.0), of(self.shift, 0.0))
    }
}

/// out = (x - mean) * factor + shift.
///
/// # Safety
/// As of `Wide`.
#[inline(always)]
unsafe fn all<W: Wide, T: Stored>(mut pair: ElementPair<'_, T, T>, mean: f32, factor: f32, shift: f32) {
    let len = pair.num_elements();
    let whole = len - len % LANES;
    let (x, out) = pair.addresses();
    // SAFETY: as demanded of the caller; addresses are below `len`.
    unsafe {
        let (mean, factor, shift) = (W::splat(mean), W::splat(factor), W::splat(shift));
        let mut at = 0;
        while at < whole {
            W::load(x.add(at)).sub(mean).mul(factor).add(shift).store(out.add(at));
            at += LANES;
        }
        if at < len {
            W::load_part(x.add(at), len - at).sub(mean).mul(factor).add(shift).store_part(out.add(at), len - at);
        }
    }
}

/// Estimated time per element.
pub fn element_ns(isa: Isa) -> f32 {
    if isa.level > SimdLevel::Portable { 0.15 } else { 0.4 }
}

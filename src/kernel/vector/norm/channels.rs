//! Normalisation of channels by given statistics.

use super::{Affine, all};
use crate::kernel::vector::convert::Stored;
use crate::kernel::vector::elements::ElementPair;
use crate::kernel::vector::isa::Isa;
use crate::kernel::vector::wide::{self, LANES, Wide, WideWork};

/// Elements of channels with given statistics: `inner` of one channel, then `inner` of the next.
#[derive(Debug)]
pub struct Channels<'a, T, P> {
    pub mean: &'a [f32],
    pub variance: &'a [f32],
    pub epsilon: f32,
    pub affine: Affine<'a, P>,
    pub inner: usize,
    pub pair: ElementPair<'a, T, T>,
    /// Index of the first element.
    pub first: usize,
}

/// Channels whose factors are computed at once, if each has only one element in a row.
const AT_ONCE: usize = 256;

impl<T: Stored, P: Stored> Channels<'_, T, P> {
    pub fn normalise(self, isa: Isa) {
        wide::on(isa, self);
    }

    #[inline(always)]
    fn factor(&self, channel: usize) -> f32 {
        let scale = f64::from(self.affine.of(channel).0);
        (scale / (f64::from(self.variance[channel]) + f64::from(self.epsilon)).sqrt()) as f32
    }

    /// One channel after the other.
    ///
    /// # Safety
    /// As of `Wide`.
    #[inline(always)]
    unsafe fn in_turn<W: Wide>(&mut self) {
        let count = self.mean.len();
        let (mut done, all_of) = (0, self.pair.num_elements());
        let (mut channel, mut at) = (self.first / self.inner % count, self.first % self.inner);
        while done < all_of {
            let len = (self.inner - at).min(all_of - done);
            let (mean, factor, shift) = (self.mean[channel], self.factor(channel), self.affine.of(channel).1);
            // SAFETY: as demanded of the caller.
            unsafe { all::<W, T>(self.pair.part(done..done + len), mean, factor, shift) };
            (done, at) = (done + len, 0);
            channel = if channel + 1 == count { 0 } else { channel + 1 };
        }
    }

    /// Adjacent channels: the factors of some of them, and then all rows.
    ///
    /// # Safety
    /// As of `Wide`.
    #[inline(always)]
    unsafe fn side_by_side<W: Wide>(&mut self) {
        let (len, count) = (self.pair.num_elements(), self.mean.len());
        let mut factors = [0f32; AT_ONCE];
        for begin in (0..count).step_by(AT_ONCE) {
            let channels = begin..(begin + AT_ONCE).min(count);
            for (factor, channel) in factors.iter_mut().zip(channels.clone()) {
                *factor = self.factor(channel);
            }
            // A row begins where the channel is 0; the first and the last row may be partial.
            let mut row = 0isize - (self.first % count) as isize;
            while row < len as isize {
                let low = (row + channels.start as isize).max(0) as usize;
                let high = (row + channels.end as isize).clamp(low as isize, len.max(low) as isize) as usize;
                if low < high {
                    let channel = (low as isize - row) as usize;
                    let constants = (&self.mean[channel..][..high - low], &factors[channel - begin..][..high - low]);
                    let shift = self.affine.shift.map(|shift| &shift[channel..][..high - low]);
                    // SAFETY: as demanded of the caller.
                    unsafe { each::<W, T, P>(self.pair.part(low..high), constants, shift) }
                }
                row += count as isize;
            }
        }
    }
}

impl<T: Stored, P: Stored> WideWork for Channels<'_, T, P> {
    #[inline(always)]
    unsafe fn run<W: Wide>(mut self) {
        // SAFETY: as demanded of the caller.
        unsafe { if self.inner > 1 { self.in_turn::<W>() } else { self.side_by_side::<W>() } }
    }
}

/// out = (x - mean) * factor + shift, with separate parameters for each element.
///
/// # Safety
/// As of `Wide`.
#[inline(always)]
unsafe fn each<W: Wide, T: Stored, P: Stored>(
    mut pair: ElementPair<'_, T, T>,
    (means, factors): (&[f32], &[f32]),
    shift: Option<&[P]>,
) {
    let len = pair.num_elements();
    let whole = len - len % LANES;
    assert!(means.len() == len && factors.len() == len);
    assert!(shift.is_none_or(|shift| shift.len() == len));
    let ((x, out), means, factors) = (pair.addresses(), means.as_ptr(), factors.as_ptr());
    let shift = shift.map(<[P]>::as_ptr);
    // SAFETY: as demanded of the caller; addresses are below `len`.
    unsafe {
        let mut at = 0;
        while at < whole {
            let mut y = W::load(x.add(at)).sub(W::load(means.add(at))).mul(W::load(factors.add(at)));
            if let Some(shift) = shift {
                y = y.add(W::load(shift.add(at)));
            }
            y.store(out.add(at));
            at += LANES;
        }
        if at < len {
            let rest = len - at;
            let of_channels = |from: *const f32| W::load_part(from.add(at), rest);
            let mut y = W::load_part(x.add(at), rest).sub(of_channels(means)).mul(of_channels(factors));
            if let Some(shift) = shift {
                y = y.add(W::load_part(shift.add(at), rest));
            }
            y.store_part(out.add(at), rest);
        }
    }
}

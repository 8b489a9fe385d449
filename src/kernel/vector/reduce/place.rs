//! Index of the greatest or the least number: the first of equals, and the first NaN if there is one.
#![forbid(unsafe_code)]

use super::fold::{Fold, Greatest, Least};
use super::{Reduction, WIDTH};

/// The index of the greatest number, or of the least one.
#[derive(Clone, Copy, Debug)]
pub struct ExtremeIndex<const LEAST: bool>;

/// The best number so far, and its index; `NOWHERE` before there is one.
#[derive(Clone, Copy, Debug)]
pub struct Best {
    value: f32,
    pub place: u32,
}

const NOWHERE: u32 = u32::MAX;
/// Numbers that are compared at once in the search for the best one.
const CHUNK: usize = 64;

#[inline(always)]
fn better<const LEAST: bool>(x: f32, than: f32) -> bool {
    // A NaN wins by the second condition and stays, because it fails both.
    (if LEAST { x < than } else { x > than }) || (x.is_nan() && !than.is_nan())
}

impl<const LEAST: bool> Reduction for ExtremeIndex<LEAST> {
    type Number = f32;
    type Partial = Best;

    fn neutral(self) -> Best {
        Best { value: 0.0, place: NOWHERE }
    }

    #[inline(always)]
    fn row(self, x: &[f32], first: usize) -> Best {
        // Two simple passes beat one that carries the index along: both are vector code.
        let value = if LEAST { Fold(Least).row(x, 0) } else { Fold(Greatest).row(x, 0) } as f32;
        let is = |x: f32| x == value || (x.is_nan() && value.is_nan());
        let (chunks, _) = x.as_chunks::<CHUNK>();
        let in_chunks = chunks.iter().position(|chunk| {
            let mut found = false;
            for &x in chunk {
                found |= is(x);
            }
            found
        });
        let begin = in_chunks.unwrap_or(chunks.len()) * CHUNK;
        let at = x[begin..].iter().position(|&x| is(x)).unwrap_or(0);
        Best { value, place: (first + begin + at) as u32 }
    }

    #[inline(always)]
    fn columns(self, x: &[f32], stride: usize, rows: usize, first: usize, to: &mut [Best]) {
        let width = to.len();
        let (mut best, mut place) = ([0f32; WIDTH], [0u32; WIDTH]);
        best[..width].copy_from_slice(&x[..width]);
        for i in 1..rows {
            let row = &x[i * stride..][..width];
            for ((&x, best), place) in row.iter().zip(&mut best).zip(&mut place) {
                let better = better::<LEAST>(x, *best);
                *best = if better { x } else { *best };
                *place = if better { i as u32 } else { *place };
            }
        }
        for ((to, value), place) in to.iter_mut().zip(best).zip(place) {
            *to = self.merge(*to, Best { value, place: place + first as u32 });
        }
    }

    #[inline(always)]
    fn merge(self, a: Best, b: Best) -> Best {
        let takes_over = a.place == NOWHERE || (b.place != NOWHERE && better::<LEAST>(b.value, a.value));
        if takes_over { b } else { a }
    }
}

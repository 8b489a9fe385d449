//! Index of the greatest or the least number: the first of equals, and the first NaN if there is one.
#![forbid(unsafe_code)]

use super::fold::{self, Greatest, Least};
use super::{ColumnsBlock, Reduction, WIDTH};
use crate::kernel::vector::isa::Isa;
use crate::kernel::vector::levels::{self, LevelLoop};

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

/// The index of the greatest number, or of the least one, as a reduction.
pub fn extreme_index<const LEAST: bool>() -> Reduction<f32, Best> {
    Reduction {
        neutral: Best { value: 0.0, place: NOWHERE },
        row: row::<LEAST>,
        rows: |isa, x, len, to| to.iter_mut().zip(x.chunks(len)).for_each(|(to, x)| *to = row::<LEAST>(isa, x, 0)),
        turns: true,
        columns: |isa, block, to| levels::on(isa, IndexColumns::<LEAST> { block, to }),
        merge: merge::<LEAST>,
    }
}

fn row<const LEAST: bool>(isa: Isa, x: &[f32], first: usize) -> Best {
    // Two simple passes beat one that carries the index along: both are vector code.
    let value = if LEAST { fold::row::<Least>(isa, x) } else { fold::row::<Greatest>(isa, x) } as f32;
    Best { value, place: (first + levels::on(isa, Search { x, value })) as u32 }
}

fn merge<const LEAST: bool>(a: Best, b: Best) -> Best {
    let takes_over = a.place == NOWHERE || (b.place != NOWHERE && better::<LEAST>(b.value, a.value));
    if takes_over { b } else { a }
}

/// Finds the first number that is `value`.
struct Search<'a> {
    x: &'a [f32],
    value: f32,
}

impl LevelLoop for Search<'_> {
    type Output = usize;

    #[inline(always)]
    fn run(self) -> usize {
        let Search { x, value } = self;
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
        begin + x[begin..].iter().position(|&x| is(x)).unwrap_or(0)
    }
}

struct IndexColumns<'a, const LEAST: bool> {
    block: &'a ColumnsBlock<'a, f32>,
    to: &'a mut [Best],
}

impl<const LEAST: bool> LevelLoop for IndexColumns<'_, LEAST> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let IndexColumns { block, to } = self;
        let width = to.len();
        let (mut best, mut place) = ([0f32; WIDTH], [0u32; WIDTH]);
        best[..width].copy_from_slice(block.row(0, 0..width));
        for i in 1..block.rows {
            let row = block.row(i, 0..width);
            for ((&x, best), place) in row.iter().zip(&mut best).zip(&mut place) {
                let better = better::<LEAST>(x, *best);
                *best = if better { x } else { *best };
                *place = if better { i as u32 } else { *place };
            }
        }
        for ((to, value), place) in to.iter_mut().zip(best).zip(place) {
            *to = merge::<LEAST>(*to, Best { value, place: place + block.first as u32 });
        }
    }
}

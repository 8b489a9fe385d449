//! Reductions of integers: exact in 64 bits, modulo 2^64. So the bits that a narrower type keeps of a result are the
//! same in any order.
#![forbid(unsafe_code)]

use super::{ColumnsBlock, Reduction, WIDTH};
use crate::kernel::vector::convert::Whole;
use crate::kernel::vector::isa::Isa;
use crate::kernel::vector::levels::{self, LevelLoop};
use std::marker::PhantomData;

/// An operation that folds integers in any order.
pub trait WholeOperation {
    /// The neutral element.
    const NEUTRAL: i64;

    fn fold(a: i64, b: i64) -> i64;
}

macro_rules! operations {
    ($($name:ident: $neutral:expr, $fold:expr;)*) => {$(
        #[derive(Debug)]
        pub struct $name;

        impl WholeOperation for $name {
            const NEUTRAL: i64 = $neutral;

            #[inline(always)]
            fn fold(a: i64, b: i64) -> i64 {
                $fold(a, b)
            }
        }
    )*};
}

// The neutral elements of extremes become those of the type when a result is saturated.
operations! {
    SumOfWhole: 0, i64::wrapping_add;
    ProductOfWhole: 1, i64::wrapping_mul;
    LeastWhole: i64::MAX, i64::min;
    GreatestWhole: i64::MIN, i64::max;
}

/// An operation as a reduction.
pub fn fold_whole<O: WholeOperation, T: Whole>() -> Reduction<T, i64> {
    Reduction {
        neutral: O::NEUTRAL,
        row: |isa, x, _| row::<O, T>(isa, x),
        rows: |isa, x, len, to| to.iter_mut().zip(x.chunks(len)).for_each(|(to, x)| *to = row::<O, T>(isa, x)),
        turns: true,
        columns: |isa, block, to| levels::on(isa, WholeColumns::<O, T> { block, to, _of: PhantomData }),
        merge: O::fold,
    }
}

fn row<O: WholeOperation, T: Whole>(isa: Isa, x: &[T]) -> i64 {
    levels::on(isa, WholeRow::<O, T> { x, _of: PhantomData })
}

struct WholeRow<'a, O, T> {
    x: &'a [T],
    _of: PhantomData<O>,
}

impl<O: WholeOperation, T: Whole> LevelLoop for WholeRow<'_, O, T> {
    type Output = i64;

    #[inline(always)]
    fn run(self) -> i64 {
        self.x.iter().fold(O::NEUTRAL, |total, x| O::fold(total, x.wide()))
    }
}

struct WholeColumns<'a, O, T> {
    block: &'a ColumnsBlock<'a, T>,
    to: &'a mut [i64],
    _of: PhantomData<O>,
}

impl<O: WholeOperation, T: Whole> LevelLoop for WholeColumns<'_, O, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (block, to) = (self.block, self.to);
        // One array for all rows, which no row can overlap.
        let mut lanes = [O::NEUTRAL; WIDTH];
        for i in 0..block.rows {
            let row = block.row(i, 0..to.len());
            lanes.iter_mut().zip(row).for_each(|(lane, x)| *lane = O::fold(*lane, x.wide()));
        }
        to.iter_mut().zip(lanes).for_each(|(to, lane)| *to = O::fold(*to, lane));
    }
}

/// The best number so far, and its index; `NOWHERE` before there is one.
#[derive(Clone, Copy, Debug)]
pub struct BestWhole {
    value: i64,
    pub place: u32,
}

const NOWHERE: u32 = u32::MAX;
/// Numbers that are compared at once in the search for the best one.
const CHUNK: usize = 64;

/// The index of the greatest number, or of the least one: the first of equals.
pub fn whole_index<T: Whole, const LEAST: bool>() -> Reduction<T, BestWhole> {
    Reduction {
        neutral: BestWhole { value: 0, place: NOWHERE },
        row: best_of_row::<T, LEAST>,
        rows: |isa, x, len, to| {
            to.iter_mut().zip(x.chunks(len)).for_each(|(to, x)| *to = best_of_row::<T, LEAST>(isa, x, 0));
        },
        turns: true,
        columns: |_, block, to| {
            for i in 0..block.rows {
                let row = block.row(i, 0..to.len());
                for (to, x) in to.iter_mut().zip(row) {
                    *to = better::<LEAST>(*to, BestWhole { value: x.wide(), place: (block.first + i) as u32 });
                }
            }
        },
        merge: better::<LEAST>,
    }
}

fn best_of_row<T: Whole, const LEAST: bool>(isa: Isa, x: &[T], first: usize) -> BestWhole {
    // Two simple passes beat one that carries the index along.
    let value = if LEAST { row::<LeastWhole, T>(isa, x) } else { row::<GreatestWhole, T>(isa, x) };
    BestWhole { value, place: (first + levels::on(isa, WholeSearch { x, value })) as u32 }
}

/// Finds the first number that is `value`.
struct WholeSearch<'a, T> {
    x: &'a [T],
    value: i64,
}

impl<T: Whole> LevelLoop for WholeSearch<'_, T> {
    type Output = usize;

    #[inline(always)]
    fn run(self) -> usize {
        let WholeSearch { x, value } = self;
        let (chunks, _) = x.as_chunks::<CHUNK>();
        let in_chunks =
            chunks.iter().position(|chunk| chunk.iter().fold(false, |found, x| found | (x.wide() == value)));
        let begin = in_chunks.unwrap_or(chunks.len()) * CHUNK;
        begin + x[begin..].iter().position(|x| x.wide() == value).unwrap_or(0)
    }
}

#[inline(always)]
fn better<const LEAST: bool>(a: BestWhole, b: BestWhole) -> BestWhole {
    let is_better = if LEAST { b.value < a.value } else { b.value > a.value };
    if a.place == NOWHERE || (b.place != NOWHERE && is_better) { b } else { a }
}

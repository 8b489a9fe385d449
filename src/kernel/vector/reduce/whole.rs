//! Reductions of integers and of truth values: exact in 64 bits, modulo 2^64. What is left of a result in its type is
//! the same in any order.
#![forbid(unsafe_code)]

use super::Reduction;
use crate::kernel::vector::convert::Whole;
use std::marker::PhantomData;

/// Numbers that a step of the loops takes.
const LANES: usize = 16;

/// An operation that folds integers in any order.
pub trait WholeOperation: Copy + Sync {
    /// The neutral element.
    const NEUTRAL: i64;

    fn fold(a: i64, b: i64) -> i64;
}

macro_rules! operations {
    ($($name:ident: $neutral:expr, $fold:expr;)*) => {$(
        #[derive(Clone, Copy, Debug)]
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

/// An operation as a reduction of a type.
#[derive(Clone, Copy, Debug)]
pub struct WholeFold<O, T>(pub O, pub PhantomData<T>);

impl<O: WholeOperation, T: Whole> Reduction for WholeFold<O, T> {
    type Number = T;
    type Partial = i64;

    fn neutral(self) -> i64 {
        O::NEUTRAL
    }

    #[inline(always)]
    fn row(self, x: &[T], _first: usize) -> i64 {
        let (chunks, rest) = x.as_chunks::<LANES>();
        let mut lanes = [O::NEUTRAL; LANES];
        for chunk in chunks {
            for j in 0..LANES {
                lanes[j] = O::fold(lanes[j], chunk[j].wide());
            }
        }
        let total = rest.iter().fold(O::NEUTRAL, |total, x| O::fold(total, x.wide()));
        lanes.into_iter().fold(total, O::fold)
    }

    #[inline(always)]
    fn columns(self, x: &[T], stride: usize, rows: usize, _first: usize, to: &mut [i64]) {
        for i in 0..rows {
            for (to, x) in to.iter_mut().zip(&x[i * stride..]) {
                *to = O::fold(*to, x.wide());
            }
        }
    }

    #[inline(always)]
    fn merge(self, a: i64, b: i64) -> i64 {
        O::fold(a, b)
    }
}

/// The index of the greatest number, or of the least one: the first of equals.
#[derive(Clone, Copy, Debug)]
pub struct WholeIndex<T, const LEAST: bool>(pub PhantomData<T>);

/// The best number so far, and its index; `NOWHERE` before there is one.
#[derive(Clone, Copy, Debug)]
pub struct BestWhole {
    value: i64,
    pub place: u32,
}

const NOWHERE: u32 = u32::MAX;

impl<T: Whole, const LEAST: bool> WholeIndex<T, LEAST> {
    fn is_better(x: i64, than: i64) -> bool {
        if LEAST { x < than } else { x > than }
    }
}

impl<T: Whole, const LEAST: bool> Reduction for WholeIndex<T, LEAST> {
    type Number = T;
    type Partial = BestWhole;

    fn neutral(self) -> BestWhole {
        BestWhole { value: 0, place: NOWHERE }
    }

    #[inline(always)]
    fn row(self, x: &[T], first: usize) -> BestWhole {
        // Two simple passes beat one that carries the index along.
        let value = if LEAST {
            WholeFold(LeastWhole, PhantomData).row(x, 0)
        } else {
            WholeFold(GreatestWhole, PhantomData).row(x, 0)
        };
        let at = x.iter().position(|x| x.wide() == value).unwrap_or(0);
        BestWhole { value, place: (first + at) as u32 }
    }

    #[inline(always)]
    fn columns(self, x: &[T], stride: usize, rows: usize, first: usize, to: &mut [BestWhole]) {
        for i in 0..rows {
            for (to, x) in to.iter_mut().zip(&x[i * stride..]) {
                *to = self.merge(*to, BestWhole { value: x.wide(), place: (first + i) as u32 });
            }
        }
    }

    #[inline(always)]
    fn merge(self, a: BestWhole, b: BestWhole) -> BestWhole {
        let takes_over = a.place == NOWHERE || (b.place != NOWHERE && Self::is_better(b.value, a.value));
        if takes_over { b } else { a }
    }
}

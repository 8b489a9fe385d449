//! Folding reductions: sums, products, extremes, sums of absolute values and of squares.
//!
//! Numbers are folded in sixteen lanes, four times side by side, until a block ends. The lanes are then folded in
//! pairs, and blocks one after the other, in f64. Sums are kept in f32 within a block: a lane of a row adds so few
//! numbers that its error is less than the result's rounding, and the lane of a column errs by up to four units in the
//! last place. Products and squares exceed the range of f32 early, so their lanes are f64.

use super::{ColumnsBlock, Reduction};
use crate::kernel::vector::isa::Isa;
use crate::kernel::vector::wide::{self, LANES, Wide, WideWork};
use std::marker::PhantomData;

const GROUPS: usize = 4;
/// Numbers of a block in a row, and rows of a block of columns.
const BLOCK: usize = 4096;
const ROWS: usize = 32;

/// An operation that folds numbers in any order. Without numbers the result is the neutral element.
pub trait FoldOperation {
    /// A lane, and sixteen of them in registers.
    type Lane: Copy + Into<f64>;
    type Lanes<W: Wide>: Copy;
    const NEUTRAL: Self::Lane;

    fn step(lane: Self::Lane, x: f32) -> Self::Lane;
    fn merge(a: f64, b: f64) -> f64;

    /// # Safety
    /// As of `Wide`, like those below.
    unsafe fn start<W: Wide>() -> Self::Lanes<W>;
    unsafe fn steps<W: Wide>(lanes: Self::Lanes<W>, x: W) -> Self::Lanes<W>;
    unsafe fn join<W: Wide>(a: Self::Lanes<W>, b: Self::Lanes<W>) -> Self::Lanes<W>;
    unsafe fn array<W: Wide>(lanes: Self::Lanes<W>) -> [Self::Lane; LANES];
}

/// The greater or smaller one; NaN propagates.
macro_rules! extreme {
    ($a:expr, $b:expr, $better:tt) => {{
        let (a, b) = ($a, $b);
        // A NaN enters by the second condition and stays, because it fails both.
        if b $better a || (b != b && a == a) { b } else { a }
    }};
}

macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident: $lane:ident, $neutral:expr, $merge:expr, $step:expr, $steps:expr,
        $join:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name;

        impl FoldOperation for $name {
            type Lane = $lane;
            type Lanes<W: Wide> = operations!(@lanes $lane, W);
            const NEUTRAL: $lane = $neutral;

            #[inline(always)]
            fn step(lane: $lane, x: f32) -> $lane {
                $step(lane, x)
            }
            #[inline(always)]
            fn merge(a: f64, b: f64) -> f64 {
                $merge(a, b)
            }
            #[inline(always)]
            unsafe fn start<W: Wide>() -> Self::Lanes<W> {
                // SAFETY: as demanded of the caller.
                unsafe { operations!(@start $lane, W) }
            }
            #[inline(always)]
            unsafe fn steps<W: Wide>(lanes: Self::Lanes<W>, x: W) -> Self::Lanes<W> {
                // SAFETY: as demanded of the caller.
                unsafe { $steps(lanes, x) }
            }
            #[inline(always)]
            unsafe fn join<W: Wide>(a: Self::Lanes<W>, b: Self::Lanes<W>) -> Self::Lanes<W> {
                // SAFETY: as demanded of the caller.
                unsafe { $join(a, b) }
            }
            #[inline(always)]
            unsafe fn array<W: Wide>(lanes: Self::Lanes<W>) -> [$lane; LANES] {
                // SAFETY: as demanded of the caller.
                unsafe { operations!(@array $lane, W, lanes) }
            }
        }
    )*};
    (@lanes f32, $w:ident) => { $w };
    (@lanes f64, $w:ident) => { $w::Doubles };
    (@start f32, $w:ident) => { $w::splat(Self::NEUTRAL) };
    (@start f64, $w:ident) => { $w::doubles(Self::NEUTRAL) };
    (@array f32, $w:ident, $lanes:ident) => {{
        let mut all = [0f32; LANES];
        $lanes.store(all.as_mut_ptr());
        all
    }};
    (@array f64, $w:ident, $lanes:ident) => { $w::doubles_array($lanes) };
}

operations! {
    Sum: f32, 0.0, |a, b| a + b, |lane, x| lane + x, W::add, W::add;
    /// The sum of absolute values.
    Sizes: f32, 0.0, |a, b| a + b, |lane, x: f32| lane + x.abs(), |lanes: W, x: W| lanes.add(x.abs()), W::add;
    Squares: f64, 0.0, |a, b| a + b, |lane, x| lane + f64::from(x) * f64::from(x), |lanes, x: W| x.add_squares(lanes),
        W::add_doubles;
    Product: f64, 1.0, |a, b| a * b, |lane, x| lane * f64::from(x), |lanes, x: W| x.multiply(lanes), W::mul_doubles;
    Least: f32, f32::INFINITY, |a, b| extreme!(a, b, <), |lane, x| extreme!(lane, x, <), W::lesser, W::lesser;
    Greatest: f32, f32::NEG_INFINITY, |a, b| extreme!(a, b, >), |lane, x| extreme!(lane, x, >), W::greater, W::greater;
}

/// An operation as a reduction.
pub fn fold<O: FoldOperation>() -> Reduction<f32, f64> {
    Reduction {
        neutral: O::NEUTRAL.into(),
        row: |isa, x, _| row::<O>(isa, x),
        columns: |isa, block, to| wide::on(isa, FoldColumns::<O> { block, to, _of: PhantomData }),
        merge: O::merge,
    }
}

/// Some numbers, at least one, folded into one.
pub(super) fn row<O: FoldOperation>(isa: Isa, x: &[f32]) -> f64 {
    let mut total = O::NEUTRAL.into();
    wide::on(isa, FoldRow::<O> { x, total: &mut total, _of: PhantomData });
    total
}

struct FoldRow<'a, O> {
    x: &'a [f32],
    total: &'a mut f64,
    _of: PhantomData<O>,
}

impl<O: FoldOperation> WideWork for FoldRow<'_, O> {
    #[inline(always)]
    unsafe fn run<W: Wide>(self) {
        for block in self.x.chunks(BLOCK) {
            // SAFETY: as demanded of the caller.
            let lanes = unsafe { fold_block::<W, O>(block) };
            *self.total = O::merge(*self.total, total::<O>(&lanes, block.len()));
        }
    }
}

/// # Safety
/// As of `Wide`.
#[inline(always)]
unsafe fn fold_block<W: Wide, O: FoldOperation>(x: &[f32]) -> [O::Lane; LANES] {
    let (quads, rest) = x.as_chunks::<{ GROUPS * LANES }>();
    let (singles, rest) = rest.as_chunks::<LANES>();
    // SAFETY: as demanded of the caller; the addresses are of sixteen numbers each.
    let mut lanes = unsafe {
        let mut a = O::start::<W>();
        if !quads.is_empty() {
            let (mut b, mut c, mut d) = (a, a, a);
            for quad in quads {
                let x = quad.as_ptr();
                a = O::steps(a, W::load(x));
                b = O::steps(b, W::load(x.add(LANES)));
                c = O::steps(c, W::load(x.add(2 * LANES)));
                d = O::steps(d, W::load(x.add(3 * LANES)));
            }
            a = O::join::<W>(O::join::<W>(a, b), O::join::<W>(c, d));
        }
        for single in singles {
            a = O::steps(a, W::load(single.as_ptr()));
        }
        O::array::<W>(a)
    };
    for (lane, &x) in lanes.iter_mut().zip(rest) {
        *lane = O::step(*lane, x);
    }
    lanes
}

/// All lanes folded into one. Of fewer numbers than lanes the last ones are neutral.
#[inline(never)]
fn total<O: FoldOperation>(lanes: &[O::Lane; LANES], numbers: usize) -> f64 {
    let (mut wide, mut half) = (lanes.map(Into::into), LANES / 2);
    let mut count = numbers.min(LANES);
    while half > 0 {
        for j in 0..half.min(count.saturating_sub(half)) {
            wide[j] = O::merge(wide[j], wide[j + half]);
        }
        (count, half) = (count.min(half), half / 2);
    }
    wide[0]
}

struct FoldColumns<'a, O> {
    block: &'a ColumnsBlock<'a, f32>,
    to: &'a mut [f64],
    _of: PhantomData<O>,
}

impl<O: FoldOperation> WideWork for FoldColumns<'_, O> {
    #[inline(always)]
    unsafe fn run<W: Wide>(self) {
        let FoldColumns { block, to, .. } = self;
        for first in (0..block.rows).step_by(ROWS) {
            let rows = first..(first + ROWS).min(block.rows);
            let mut at = 0;
            // SAFETY: as demanded of the caller; the addresses are of numbers of a row.
            unsafe {
                while at + 2 * LANES <= to.len() {
                    let (mut a, mut b) = (O::start::<W>(), O::start::<W>());
                    for row in rows.clone() {
                        let x = block.row(row, at..at + 2 * LANES).as_ptr();
                        a = O::steps(a, W::load(x));
                        b = O::steps(b, W::load(x.add(LANES)));
                    }
                    merge_lanes::<O>(&mut to[at..][..LANES], &O::array::<W>(a));
                    merge_lanes::<O>(&mut to[at + LANES..][..LANES], &O::array::<W>(b));
                    at += 2 * LANES;
                }
                while at < to.len() {
                    let count = LANES.min(to.len() - at);
                    let mut a = O::start::<W>();
                    for row in rows.clone() {
                        let x = block.row(row, at..at + count).as_ptr();
                        let x = if count == LANES { W::load(x) } else { W::load_floats(x, count) };
                        a = O::steps(a, x);
                    }
                    merge_lanes::<O>(&mut to[at..][..count], &O::array::<W>(a));
                    at += count;
                }
            }
        }
    }
}

/// The lanes of some columns merged with the columns' results so far.
#[inline(never)]
fn merge_lanes<O: FoldOperation>(to: &mut [f64], lanes: &[O::Lane; LANES]) {
    for (to, &lane) in to.iter_mut().zip(lanes) {
        *to = O::merge(*to, lane.into());
    }
}

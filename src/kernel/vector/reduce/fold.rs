//! Folding reductions: sums, products, extremes, sums of absolute values and of squares.
//!
//! Numbers are folded in independent lanes until a block ends; the lanes are then folded in pairs, and blocks one after
//! the other, in f64. Sums are kept in f32 within a block: a lane adds so few numbers that its error is less than the
//! result's rounding. Products and squares exceed the range of f32 early, so their lanes are f64.
#![forbid(unsafe_code)]

use super::Reduction;

/// Numbers that a step of the loops takes in each of four groups, and lanes of a group.
pub(super) const LANES: usize = 16;
const GROUPS: usize = 4;
/// Numbers of a block in a row, and rows of a block of columns.
const BLOCK: usize = 4096;
const ROWS: usize = 32;

/// An operation that folds numbers in any order.
pub trait FoldOperation: Copy + Send + Sync {
    /// The type of a lane.
    type Lane: Copy;
    const START: Self::Lane;
    /// The neutral element of blocks: the result for no numbers.
    const NEUTRAL: f64;

    fn step(lane: Self::Lane, x: f32) -> Self::Lane;
    fn join(a: Self::Lane, b: Self::Lane) -> Self::Lane;
    fn widen(lane: Self::Lane) -> f64;
    fn merge(a: f64, b: f64) -> f64;
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
    ($($(#[$doc:meta])* $name:ident: $lane:ty, $start:expr, $neutral:expr,
        |$a:ident, $b:ident| $merge:expr, |$l:ident, $x:ident| $step:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;

        impl FoldOperation for $name {
            type Lane = $lane;
            const START: $lane = $start;
            const NEUTRAL: f64 = $neutral;

            #[inline(always)]
            fn step($l: $lane, $x: f32) -> $lane {
                $step
            }
            #[inline(always)]
            fn join($a: $lane, $b: $lane) -> $lane {
                $merge
            }
            #[inline(always)]
            #[allow(clippy::unnecessary_cast, reason = "some lanes are f64 already")]
            fn widen(lane: $lane) -> f64 {
                lane as f64
            }
            #[inline(always)]
            fn merge($a: f64, $b: f64) -> f64 {
                $merge
            }
        }
    )*};
}

operations! {
    Sum: f32, 0.0, 0.0, |a, b| a + b, |lane, x| lane + x;
    /// The sum of absolute values.
    Sizes: f32, 0.0, 0.0, |a, b| a + b, |lane, x| lane + x.abs();
    Squares: f64, 0.0, 0.0, |a, b| a + b, |lane, x| lane + f64::from(x) * f64::from(x);
    Product: f64, 1.0, 1.0, |a, b| a * b, |lane, x| lane * f64::from(x);
    Least: f32, f32::INFINITY, f64::INFINITY, |a, b| extreme!(a, b, <), |lane, x| extreme!(lane, x, <);
    Greatest: f32, f32::NEG_INFINITY, f64::NEG_INFINITY, |a, b| extreme!(a, b, >), |lane, x| extreme!(lane, x, >);
}

/// An operation as a reduction.
#[derive(Clone, Copy, Debug)]
pub struct Fold<O>(pub O);

impl<O: FoldOperation> Reduction for Fold<O> {
    type Number = f32;
    type Partial = f64;

    fn neutral(self) -> f64 {
        O::NEUTRAL
    }

    #[inline(always)]
    fn row(self, x: &[f32], _first: usize) -> f64 {
        let mut total = O::NEUTRAL;
        for block in x.chunks(BLOCK) {
            total = O::merge(total, fold_block::<O>(block));
        }
        total
    }

    #[inline(always)]
    fn columns(self, x: &[f32], stride: usize, rows: usize, _first: usize, to: &mut [f64]) {
        let mut row = 0;
        while row < rows {
            let count = ROWS.min(rows - row);
            let x = &x[row * stride..];
            let mut at = 0;
            while at + LANES <= to.len() {
                let mut lanes = [O::START; LANES];
                for i in 0..count {
                    let x: &[f32; LANES] = x[i * stride + at..][..LANES].try_into().unwrap_or(&[0.0; LANES]);
                    for j in 0..LANES {
                        lanes[j] = O::step(lanes[j], x[j]);
                    }
                }
                merge_lanes::<O>(&mut to[at..][..LANES], &lanes);
                at += LANES;
            }
            if at < to.len() {
                let mut lanes = [O::START; LANES];
                for i in 0..count {
                    for (lane, &x) in lanes.iter_mut().zip(&x[i * stride + at..][..to.len() - at]) {
                        *lane = O::step(*lane, x);
                    }
                }
                merge_lanes::<O>(&mut to[at..], &lanes);
            }
            row += count;
        }
    }

    #[inline(always)]
    fn merge(self, a: f64, b: f64) -> f64 {
        O::merge(a, b)
    }
}

#[inline(always)]
fn fold_block<O: FoldOperation>(x: &[f32]) -> f64 {
    let (quads, rest) = x.as_chunks::<{ GROUPS * LANES }>();
    let (singles, rest) = rest.as_chunks::<LANES>();
    let mut a = [O::START; LANES];
    let (mut b, mut c, mut d) = (a, a, a);
    for quad in quads {
        for j in 0..LANES {
            a[j] = O::step(a[j], quad[j]);
        }
        for j in 0..LANES {
            b[j] = O::step(b[j], quad[LANES + j]);
        }
        for j in 0..LANES {
            c[j] = O::step(c[j], quad[2 * LANES + j]);
        }
        for j in 0..LANES {
            d[j] = O::step(d[j], quad[3 * LANES + j]);
        }
    }
    for single in singles {
        for j in 0..LANES {
            a[j] = O::step(a[j], single[j]);
        }
    }
    let mut last = a;
    for (lane, &x) in last.iter_mut().zip(rest) {
        *lane = O::step(*lane, x);
    }
    total::<O>(&[last, b, c, d])
}

/// All lanes folded into one. A separate function: inlined into the loops, it would make the compiler shorten their
/// vectors to its pairs.
#[inline(never)]
fn total<O: FoldOperation>(lanes: &[[O::Lane; LANES]; GROUPS]) -> f64 {
    let [a, b, c, d] = lanes;
    let mut wide: [f64; LANES] = std::array::from_fn(|j| O::widen(O::join(O::join(a[j], b[j]), O::join(c[j], d[j]))));
    let mut half = LANES / 2;
    while half > 0 {
        for j in 0..half {
            wide[j] = O::merge(wide[j], wide[j + half]);
        }
        half /= 2;
    }
    wide[0]
}

/// The lanes of some columns merged with the columns' results so far. A separate function, like `total`.
#[inline(never)]
fn merge_lanes<O: FoldOperation>(to: &mut [f64], lanes: &[O::Lane; LANES]) {
    for (to, &lane) in to.iter_mut().zip(lanes) {
        *to = O::merge(*to, O::widen(lane));
    }
}

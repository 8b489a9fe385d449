//! Folding reductions: sums, products, extremes, sums of absolute values and of squares.
//!
//! Numbers are folded in sixteen lanes, four times side by side, until a block ends. The lanes are then folded in
//! pairs, and blocks one after the other, in f64. Sums are kept in f32 within a block: a lane of a row adds so few
//! numbers that its error is less than the result's rounding, and the lane of a column errs by up to four units in the
//! last place. Products and squares exceed the range of f32 early, so their lanes are f64.

use super::{ColumnsBlock, Reduction};
use crate::kernel::vector::isa::Isa;
use crate::kernel::vector::movement::TileTranspose;
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
    /// Sixteen lanes as they are folded into one another.
    type Totals<W: Wide>: Copy;
    const NEUTRAL: Self::Lane;

    fn merge(a: f64, b: f64) -> f64;

    /// # Safety
    /// As of `Wide`, like those below.
    unsafe fn start<W: Wide>() -> Self::Lanes<W>;
    unsafe fn steps<W: Wide>(lanes: Self::Lanes<W>, x: W) -> Self::Lanes<W>;
    unsafe fn join<W: Wide>(a: Self::Lanes<W>, b: Self::Lanes<W>) -> Self::Lanes<W>;
    unsafe fn array<W: Wide>(lanes: Self::Lanes<W>) -> [Self::Lane; LANES];
    unsafe fn load<W: Wide>(from: *const Self::Lane) -> Self::Lanes<W>;
    unsafe fn totals<W: Wide>(lanes: Self::Lanes<W>) -> Self::Totals<W>;
    /// As `merge`.
    unsafe fn merge_totals<W: Wide>(a: Self::Totals<W>, b: Self::Totals<W>) -> Self::Totals<W>;
    unsafe fn totals_array<W: Wide>(totals: Self::Totals<W>) -> [f64; LANES];
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
    ($($(#[$doc:meta])* $name:ident: $lane:ident, $totals:ident, $neutral:expr, $merge:expr, $steps:expr,
        $join:expr, $merge_totals:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name;

        impl FoldOperation for $name {
            type Lane = $lane;
            type Lanes<W: Wide> = operations!(@lanes $lane, W);
            type Totals<W: Wide> = operations!(@lanes $totals, W);
            const NEUTRAL: $lane = $neutral;

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
            #[inline(always)]
            unsafe fn load<W: Wide>(from: *const $lane) -> Self::Lanes<W> {
                // SAFETY: as demanded of the caller.
                unsafe { operations!(@load $lane, W, from) }
            }
            #[inline(always)]
            unsafe fn totals<W: Wide>(lanes: Self::Lanes<W>) -> Self::Totals<W> {
                operations!(@totals $lane, $totals, W, lanes)
            }
            #[inline(always)]
            unsafe fn merge_totals<W: Wide>(a: Self::Totals<W>, b: Self::Totals<W>) -> Self::Totals<W> {
                // SAFETY: as demanded of the caller.
                unsafe { $merge_totals(a, b) }
            }
            #[inline(always)]
            unsafe fn totals_array<W: Wide>(totals: Self::Totals<W>) -> [f64; LANES] {
                // SAFETY: as demanded of the caller.
                unsafe { operations!(@array $totals, W, totals).map(Into::into) }
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
    (@load f32, $w:ident, $from:ident) => { $w::load($from) };
    (@load f64, $w:ident, $from:ident) => { $w::load_doubles($from) };
    (@totals f32, f64, $w:ident, $lanes:ident) => {
        // SAFETY: as demanded of the caller.
        unsafe { $w::widened($lanes) }
    };
    (@totals $lane:ident, $totals:ident, $w:ident, $lanes:ident) => { $lanes };
}

operations! {
    Sum: f32, f64, 0.0, |a, b| a + b, W::add, W::add, W::add_doubles;
    /// The sum of absolute values.
    Sizes: f32, f64, 0.0, |a, b| a + b, |lanes: W, x: W| lanes.add(x.abs()), W::add, W::add_doubles;
    Squares: f64, f64, 0.0, |a, b| a + b, |lanes, x: W| x.add_squares(lanes), W::add_doubles, W::add_doubles;
    Product: f64, f64, 1.0, |a, b| a * b, |lanes, x: W| x.multiply(lanes), W::mul_doubles, W::mul_doubles;
    Least: f32, f32, f32::INFINITY, |a, b| extreme!(a, b, <), W::lesser, W::lesser, W::lesser;
    Greatest: f32, f32, f32::NEG_INFINITY, |a, b| extreme!(a, b, >), W::greater, W::greater, W::greater;
}

/// An operation as a reduction.
pub fn fold<O: FoldOperation>() -> Reduction<f32, f64> {
    Reduction {
        neutral: O::NEUTRAL.into(),
        row: |isa, x, _| row::<O>(isa, x),
        rows: |isa, x, len, to| {
            assert!(len > 0 && x.len() == len * to.len(), "{} numbers in rows of {len}", x.len());
            let transposes = [size_of::<f32>(), size_of::<O::Lane>()].map(|size| TileTranspose::of(isa, size));
            wide::on(isa, FoldRows::<O> { x, len, to, transposes, _of: PhantomData });
        },
        turns: false,
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
        // SAFETY: as demanded of the caller.
        *self.total = unsafe { fold_row::<W, O>(self.x) };
    }
}

/// # Safety
/// As of `Wide`.
#[inline(always)]
unsafe fn fold_row<W: Wide, O: FoldOperation>(x: &[f32]) -> f64 {
    let mut folded = O::NEUTRAL.into();
    for block in x.chunks(BLOCK) {
        // SAFETY: as demanded of the caller.
        let lanes = unsafe { fold_block::<W, O>(block) };
        folded = O::merge(folded, total::<O>(&lanes, block.len()));
    }
    folded
}

/// # Safety
/// As of `Wide`.
#[inline(always)]
unsafe fn fold_block<W: Wide, O: FoldOperation>(x: &[f32]) -> [O::Lane; LANES] {
    let (quads, rest) = x.as_chunks::<{ GROUPS * LANES }>();
    let (singles, rest) = rest.as_chunks::<LANES>();
    // SAFETY: as demanded of the caller; the addresses are of sixteen numbers each, or of the last ones.
    unsafe {
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
        if !rest.is_empty() {
            // The other lanes stay as they are, bit by bit.
            a = O::steps(a, W::load_floats_or(rest.as_ptr(), rest.len(), O::NEUTRAL.into() as f32));
        }
        O::array::<W>(a)
    }
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

/// The lanes, or as many numbers, of sixteen rows side by side.
pub struct SideBySide<O: FoldOperation> {
    pub numbers: [[f32; LANES]; LANES],
    lanes: [[O::Lane; LANES]; LANES],
}

impl<O: FoldOperation> SideBySide<O> {
    pub fn neutral() -> Self {
        SideBySide { numbers: [[0.0; LANES]; LANES], lanes: [[O::NEUTRAL; LANES]; LANES] }
    }

    /// The result of `total` for each row that has `count` numbers, or whose lanes these are.
    ///
    /// # Safety
    /// As of `Wide`, as for those below.
    #[inline(always)]
    pub unsafe fn totals<W: Wide, const NUMBERS: bool>(&self, count: usize) -> [f64; LANES] {
        // SAFETY: as demanded of the caller.
        unsafe {
            let mut all = self.twos::<W, NUMBERS>(0, count);
            if 1 < count {
                all = O::merge_totals::<W>(all, self.twos::<W, NUMBERS>(1, count));
            }
            O::totals_array::<W>(all)
        }
    }

    /// Every second lane from this one on, folded into one.
    #[inline(always)]
    unsafe fn twos<W: Wide, const NUMBERS: bool>(&self, lane: usize, count: usize) -> O::Totals<W> {
        // SAFETY: as demanded of the caller.
        unsafe {
            let some = self.fours::<W, NUMBERS>(lane, count);
            if lane + 2 >= count {
                return some;
            }
            O::merge_totals::<W>(some, self.fours::<W, NUMBERS>(lane + 2, count))
        }
    }

    /// Every fourth one.
    #[inline(always)]
    unsafe fn fours<W: Wide, const NUMBERS: bool>(&self, lane: usize, count: usize) -> O::Totals<W> {
        // SAFETY: as demanded of the caller.
        unsafe {
            let some = self.eights::<W, NUMBERS>(lane, count);
            if lane + 4 >= count {
                return some;
            }
            O::merge_totals::<W>(some, self.eights::<W, NUMBERS>(lane + 4, count))
        }
    }

    /// Every eighth one.
    #[inline(always)]
    unsafe fn eights<W: Wide, const NUMBERS: bool>(&self, lane: usize, count: usize) -> O::Totals<W> {
        // SAFETY: as demanded of the caller.
        unsafe {
            let some = self.lane::<W, NUMBERS>(lane);
            if lane + 8 >= count {
                return some;
            }
            O::merge_totals::<W>(some, self.lane::<W, NUMBERS>(lane + 8))
        }
    }

    #[inline(always)]
    unsafe fn lane<W: Wide, const NUMBERS: bool>(&self, lane: usize) -> O::Totals<W> {
        // SAFETY: as demanded of the caller.
        unsafe {
            O::totals::<W>(match NUMBERS {
                true => O::steps(O::start::<W>(), W::load(self.numbers[lane].as_ptr())),
                false => O::load::<W>(self.lanes[lane].as_ptr()),
            })
        }
    }
}

/// Rows one behind the other, of `len` numbers each.
struct FoldRows<'a, O> {
    x: &'a [f32],
    len: usize,
    to: &'a mut [f64],
    /// For numbers, and for lanes.
    transposes: [Option<TileTranspose>; 2],
    _of: PhantomData<O>,
}

impl<O: FoldOperation> WideWork for FoldRows<'_, O> {
    #[inline(always)]
    unsafe fn run<W: Wide>(self) {
        let FoldRows { x, len, to, transposes, .. } = self;
        let [Some(of_numbers), Some(of_lanes)] = transposes else { unreachable!("registers hold numbers") };
        // Rows side by side take longer than one row.
        if len > BLOCK || to.len() < 4 {
            // SAFETY: as demanded of the caller.
            return x.chunks(len).zip(to).for_each(|(x, to)| *to = unsafe { fold_row::<W, O>(x) });
        }
        let (mut rows, mut of_rows) = (SideBySide::<O>::neutral(), [[O::NEUTRAL; LANES]; LANES]);
        for (x, to) in x.chunks(LANES * len).zip(to.chunks_mut(LANES)) {
            // SAFETY: as demanded of the caller; so many rows lie there, and there is room for sixteen by sixteen.
            let totals = unsafe {
                if len <= LANES {
                    let (size, stride) = (size_of::<f32>() as isize, size_of_val(&rows.numbers[0]) as isize);
                    let side_by_side = (rows.numbers.as_mut_ptr().cast(), stride);
                    of_numbers.run((x.as_ptr().cast(), len as isize * size), side_by_side, to.len(), len);
                    rows.totals::<W, true>(len)
                } else {
                    for (x, lanes) in x.chunks(len).zip(&mut of_rows) {
                        *lanes = fold_block::<W, O>(x);
                    }
                    let stride = size_of_val(&of_rows[0]) as isize;
                    let side_by_side = (rows.lanes.as_mut_ptr().cast(), stride);
                    of_lanes.run((of_rows.as_ptr().cast(), stride), side_by_side, LANES, LANES);
                    rows.totals::<W, false>(LANES)
                }
            };
            to.copy_from_slice(&totals[..to.len()]);
        }
    }
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

//! The greatest element, or the average, of each window of a signal, an image or a volume.
//!
//! The planes of a volume that are under a slice of windows are combined first, which makes one plane of them.
//!
//! Determinism: an element compares, adds and divides in an order that its shape says, so its bits are the same on
//! every instruction set. Sums are one chain over the taps, row after row, under windows that are read in place: of two
//! or three neighbouring columns, at most two apart. Others are chains down each column, which are added from the left.
//! A maximum is that of one chain over the taps. The planes of a volume are combined in their order before that. The average of a whole plane is that of sixteen chains, which are
//! added in pairs.

use super::isa::Isa;
use super::levels::{self, LevelLoop};
use super::site::{Alone, MatrixMut, Site, check_scratch};
use super::sliding::{Added, Filters, Greatest, Sliding, WindowEnds};
use super::wide::{self, LANES, Wide, WideWork};
use super::window::Axis;
use crate::base::Result;
use crate::memory::ALIGNMENT;
use crate::ops::weir_pooling_op_value as PoolingOp;
use crate::threadpool::Span;
use std::ops::Range;

/// Numbers of a whole plane that are added in f32, sixteen by each lane. Their sums are added in f64.
const BLOCK: usize = 16 * LANES;
/// Floats of the planes of small slices, whose windows are computed together.
const TOGETHER: usize = 4 << 10;

/// Windows over each of some planes, or of some volumes.
#[derive(Clone, Copy, Debug)]
pub struct PoolingShape {
    pub planes: usize,
    pub slices: Axis,
    pub rows: Axis,
    pub columns: Axis,
}

impl PoolingShape {
    fn sliding(&self) -> Sliding {
        let PoolingShape { planes: images, rows, columns, .. } = *self;
        Sliding { images, channels: 1, filters: 1, slices: Axis::ONE, rows, columns }
    }

    fn plane(&self) -> usize {
        self.rows.input * self.columns.input
    }

    /// Slices that are computed together at most.
    fn together(&self) -> usize {
        (TOGETHER / self.plane().max(1)).clamp(1, self.slices.output.max(1))
    }

    /// Bytes of the planes that are made of those under slices.
    fn folded_bytes(&self) -> usize {
        match self.slices.is_one() {
            true => 0,
            false => (self.together() * self.plane() * size_of::<f32>()).next_multiple_of(ALIGNMENT),
        }
    }

    /// Scratch memory that `compute` needs per slot, in bytes.
    pub fn scratch_bytes(&self) -> usize {
        let sliding = self.sliding();
        self.folded_bytes() + sliding.scratch_bytes::<Greatest>().max(sliding.scratch_bytes::<Added>())
    }

    /// Whether the only window of a plane is all of it.
    pub fn is_whole(&self) -> bool {
        let whole = |axis: &Axis| (axis.output, axis.before, axis.dilation, axis.taps) == (1, 0, 1, axis.input);
        whole(&self.slices) && whole(&self.rows) && whole(&self.columns)
    }

    /// The number of taps in depth that an average of a slice counts.
    fn count(&self, pooling: PoolingOp, slice: usize) -> f32 {
        counts(pooling, &self.slices, slice)
    }
}

/// The number of taps along an axis that an average counts.
fn counts(pooling: PoolingOp, axis: &Axis, window: usize) -> f32 {
    match pooling {
        PoolingOp::WEIR_POOLING_AVERAGE => axis.taps as f32,
        _ => axis.count(window).max(1) as f32,
    }
}

/// Computes all windows of `x` into `out`, a plane after the other, in a region of `site`, which has `scratch_bytes`
/// per slot, at this cost on one thread.
pub fn compute(
    isa: Isa,
    pooling: PoolingOp,
    shape: &PoolingShape,
    x: &[f32],
    out: MatrixMut<'_, f32>,
    cost_ns: u64,
    site: &dyn Site,
) -> Result<()> {
    if shape.slices.is_one() {
        return of_planes(isa, pooling, (shape, 1.0), x, out, cost_ns, site);
    }
    let PoolingShape { planes, slices, rows, columns } = *shape;
    let (plane, windows, items) = (shape.plane(), rows.output * columns.output, planes * slices.output);
    assert!(x.len() == planes * slices.input * plane && out.holds(planes, slices.output * windows), "{shape:?}");
    check_scratch(site, shape.scratch_bytes());
    let (room, all) = (shape.folded_bytes(), shape.scratch_bytes());
    let item_ns = cost_ns as f32 / items.max(1) as f32;
    site.parallel_for(&Span { items, cost_ns: item_ns, ..Span::default() }, &|claim| {
        let memory = site.scratch(claim.slot());
        // SAFETY: the parts of the slot's scratch memory, which is initialised, as large as `scratch_bytes` asked for,
        // and exclusive to this claim.
        let (folded, alone) = unsafe {
            let folded = std::slice::from_raw_parts_mut(memory.cast::<f32>(), room / size_of::<f32>());
            (folded, Alone::new(std::slice::from_raw_parts_mut(memory.add(room), all - room)))
        };
        let mut item = claim.begin();
        while item < claim.end() {
            let (number, first) = (item / slices.output, item % slices.output);
            let count = shape.count(pooling, first);
            let most = (claim.end() - item).min(slices.output - first).min(shape.together());
            let same = 1 + (1..most).take_while(|i| shape.count(pooling, first + i) == count).count();
            let volume = &x[number * slices.input * plane..][..slices.input * plane];
            let planes = Folded { pooling, slices: &slices, volume, plane, of: first..first + same };
            let folded = &mut folded[..same * plane];
            levels::on(isa, FoldedInto { planes, to: folded });
            // SAFETY: claimed slices of the output, which follow one another.
            let to = unsafe { MatrixMut::new(out.data().add(item * windows), same, windows, windows) };
            let of = PoolingShape { planes: same, slices: Axis::ONE, ..*shape };
            of_planes(isa, pooling, (&of, count), folded, to, 0, &alone)?;
            item += same;
        }
        Ok(())
    })
}

/// The greatest element of a chain: the first NaN, or the last one of equals.
#[inline(always)]
fn later(most: f32, x: f32) -> f32 {
    if most.is_nan() | (most > x) { most } else { x }
}

/// The planes under some slices of windows.
struct Folded<'a> {
    pooling: PoolingOp,
    slices: &'a Axis,
    volume: &'a [f32],
    plane: usize,
    of: Range<usize>,
}

/// Combines them: one plane for each slice.
struct FoldedInto<'a> {
    planes: Folded<'a>,
    to: &'a mut [f32],
}

impl LevelLoop for FoldedInto<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Folded { pooling, slices, volume, plane, of } = self.planes;
        for (slice, to) in of.zip(self.to.chunks_exact_mut(plane.max(1))) {
            let under = (0..slices.taps).filter_map(|tap| slices.element(slice, tap));
            let mut planes = under.map(|at| &volume[at * plane..][..plane]);
            let is_max = pooling == PoolingOp::WEIR_POOLING_MAX;
            let Some(first) = planes.next() else {
                to.fill(if is_max { f32::NEG_INFINITY } else { 0.0 });
                continue;
            };
            match (planes.next(), planes.next()) {
                (Some(second), Some(third)) => {
                    let all = to.iter_mut().zip(first).zip(second).zip(third);
                    match is_max {
                        true => all.for_each(|(((to, x), y), z)| *to = later(later(*x, *y), *z)),
                        false => all.for_each(|(((to, x), y), z)| *to = x + y + z),
                    }
                }
                (Some(second), None) => {
                    let all = to.iter_mut().zip(first).zip(second);
                    match is_max {
                        true => all.for_each(|((to, x), y)| *to = later(*x, *y)),
                        false => all.for_each(|((to, x), y)| *to = x + y),
                    }
                }
                (None, _) => to.copy_from_slice(first),
            }
            for more in planes {
                match is_max {
                    true => to.iter_mut().zip(more).for_each(|(to, x)| *to = later(*to, *x)),
                    false => to.iter_mut().zip(more).for_each(|(to, x)| *to += x),
                }
            }
        }
    }
}

/// The windows of planes, of each of which so many make one.
fn of_planes(
    isa: Isa,
    pooling: PoolingOp,
    (shape, depth): (&PoolingShape, f32),
    x: &[f32],
    out: MatrixMut<'_, f32>,
    cost_ns: u64,
    site: &dyn Site,
) -> Result<()> {
    let PoolingShape { rows, columns, .. } = *shape;
    let (of_row, of_column) = (|row| depth * counts(pooling, &rows, row), |column| counts(pooling, &columns, column));
    let is_max = pooling == PoolingOp::WEIR_POOLING_MAX;
    let first = if is_max { f32::NEG_INFINITY } else { 0.0 };
    let filters = Filters { count: 1, weights: &[], first: &[], otherwise: first };
    let ends =
        WindowEnds { filters, divisors: (!is_max).then_some([&of_row, &of_column]), bounds: None, finish: &|_, _| {} };
    match is_max {
        true => shape.sliding().compute::<Greatest>(isa, x, &ends, out, cost_ns, site),
        false => shape.sliding().compute::<Added>(isa, x, &ends, out, cost_ns, site),
    }
}

/// NaN propagates.
#[inline(always)]
fn greater(most: f32, x: f32) -> f32 {
    if (x > most) | x.is_nan() { x } else { most }
}

/// One number for each whole plane; planes have elements.
pub fn whole(isa: Isa, pooling: PoolingOp, x: &[f32], out: &mut [f32]) {
    wide::on(isa, WholePlanes { x, out, is_max: pooling == PoolingOp::WEIR_POOLING_MAX });
}

struct WholePlanes<'a> {
    x: &'a [f32],
    out: &'a mut [f32],
    is_max: bool,
}

impl WideWork for WholePlanes<'_> {
    #[inline(always)]
    unsafe fn run<W: Wide>(self) {
        let size = self.x.len() / self.out.len();
        for (plane, out) in self.x.chunks_exact(size).zip(self.out) {
            // SAFETY: as demanded of the caller.
            *out = unsafe { if self.is_max { greatest::<W>(plane) } else { average::<W>(plane) } };
        }
    }
}

/// # Safety
/// As of `Wide`.
#[inline(always)]
unsafe fn average<W: Wide>(plane: &[f32]) -> f32 {
    let mut total = 0.0;
    for block in plane.chunks(BLOCK) {
        let (lanes, rest) = block.as_chunks::<LANES>();
        // SAFETY: as demanded of the caller; the addresses are of so many numbers.
        unsafe {
            let mut sums = W::load_floats(rest.as_ptr(), rest.len());
            for lanes in lanes {
                sums = sums.add(W::load(lanes.as_ptr()));
            }
            total += sums.total();
        }
    }
    (total / plane.len() as f64) as f32
}

/// # Safety
/// As of `Wide`.
#[inline(always)]
unsafe fn greatest<W: Wide>(plane: &[f32]) -> f32 {
    let (lanes, rest) = plane.as_chunks::<LANES>();
    let mut most = [f32::NEG_INFINITY; LANES];
    // SAFETY: as demanded of the caller; the addresses are of sixteen numbers each.
    unsafe {
        let mut all = W::splat(f32::NEG_INFINITY);
        for lanes in lanes {
            all = all.greater(W::load(lanes.as_ptr()));
        }
        all.store(most.as_mut_ptr());
    }
    most.into_iter().chain(rest.iter().copied()).fold(f32::NEG_INFINITY, greater)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::pieces_tests::Cutter;
    use super::super::standalone::StandaloneCall;
    use super::super::window::EdgeMode;
    use super::*;

    fn axis(input: usize, taps: usize, stride: usize, dilation: usize, (before, after): (usize, usize)) -> Axis {
        let output = (input + before + after - (taps - 1) * dilation - 1) / stride + 1;
        Axis { input, output, taps, stride, dilation, before, edge: EdgeMode::Zero }
    }

    /// The definition, window by window.
    fn reference(pooling: PoolingOp, rows: &Axis, columns: &Axis, plane: &[f32]) -> Vec<f32> {
        let windows = (0..rows.output).flat_map(|row| (0..columns.output).map(move |column| (row, column)));
        let is_chain = [2, 3].contains(&columns.taps) && columns.stride <= 2 && rows.dilation * columns.dilation == 1;
        let element = |at: Option<usize>, column: Option<usize>| Some(plane[at? * columns.input + column?]);
        let column_sum = |row, column, across| {
            let taps =
                (0..rows.taps).filter_map(|down| element(rows.element(row, down), columns.element(column, across)));
            taps.fold(0.0, |sum, x| sum + x)
        };
        windows
            .map(|(row, column)| {
                let taps = (0..rows.taps).flat_map(|down| (0..columns.taps).map(move |across| (down, across)));
                let elements =
                    taps.filter_map(|(down, across)| element(rows.element(row, down), columns.element(column, across)));
                let sum = || match is_chain {
                    true => elements.clone().fold(0.0, |sum, x| sum + x),
                    false => {
                        (0..columns.taps).map(|across| column_sum(row, column, across)).fold(0.0, |sum, x| sum + x)
                    }
                };
                match pooling {
                    PoolingOp::WEIR_POOLING_MAX => elements.fold(f32::NEG_INFINITY, greater),
                    PoolingOp::WEIR_POOLING_AVERAGE => sum() / (rows.taps * columns.taps) as f32,
                    PoolingOp::WEIR_POOLING_AVERAGE_INSIDE => sum() / elements.clone().count().max(1) as f32,
                }
            })
            .collect()
    }

    #[test]
    fn every_level_computes_what_the_definition_says() {
        let shapes = [
            (axis(9, 3, 1, 1, (1, 1)), axis(61, 3, 1, 1, (1, 1))),
            (axis(9, 3, 2, 1, (1, 1)), axis(61, 3, 2, 1, (1, 0))),
            (axis(8, 2, 2, 1, (0, 0)), axis(33, 2, 3, 1, (1, 1))),
            (axis(7, 7, 1, 1, (3, 3)), axis(7, 7, 1, 1, (3, 3))),
            (axis(8, 2, 2, 1, (0, 0)), axis(33, 2, 2, 1, (1, 1))),
            (axis(7, 3, 1, 1, (1, 1)), axis(7, 3, 1, 1, (1, 1))),
            (axis(15, 3, 2, 1, (2, 2)), axis(112, 3, 2, 1, (2, 0))),
            (axis(90, 3, 1, 1, (0, 2)), axis(100, 3, 1, 1, (5, 5))),
            (Axis::ONE, axis(500, 5, 1, 2, (4, 2))),
            (axis(70, 2, 1, 3, (0, 1)), axis(5, 1, 2, 1, (0, 0))),
            (axis(20, 5, 1, 1, (2, 2)), axis(20, 5, 1, 1, (2, 2))),
            (axis(13, 5, 1, 1, (0, 4)), axis(75, 5, 1, 1, (4, 1))),
            (axis(20, 5, 1, 1, (2, 2)), axis(20, 6, 1, 1, (2, 2))),
            (axis(13, 13, 1, 1, (6, 6)), axis(13, 13, 1, 1, (6, 6))),
            (axis(5, 9, 1, 1, (4, 8)), axis(3, 13, 1, 1, (12, 4))),
            (axis(30, 6, 1, 2, (0, 3)), axis(40, 7, 1, 3, (9, 0))),
            (axis(30, 4, 4, 1, (0, 0)), axis(61, 4, 4, 1, (0, 3))),
            (axis(17, 7, 2, 1, (3, 3)), axis(90, 6, 2, 1, (1, 2))),
            (axis(9, 4, 1, 5, (15, 15)), axis(6, 1, 1, 1, (0, 0))),
            (axis(120, 5, 1, 1, (2, 2)), axis(130, 9, 1, 1, (4, 4))),
            // Windows that touch one another, that lie apart, and that have elements in common, with strides of one's
            // own registers and of none; narrower and wider than a register, and wider than a piece.
            (axis(56, 4, 4, 1, (0, 0)), axis(56, 4, 4, 1, (0, 0))),
            (axis(14, 7, 7, 1, (0, 0)), axis(21, 7, 7, 1, (0, 0))),
            (axis(14, 4, 2, 1, (1, 1)), axis(14, 4, 2, 1, (1, 1))),
            (axis(40, 7, 2, 1, (3, 3)), axis(41, 7, 2, 1, (3, 3))),
            (axis(29, 5, 3, 1, (4, 2)), axis(70, 5, 3, 1, (2, 4))),
            (axis(33, 3, 5, 1, (2, 0)), axis(37, 2, 5, 1, (1, 0))),
            (axis(64, 8, 8, 1, (0, 0)), axis(64, 8, 8, 1, (0, 0))),
            (axis(31, 6, 4, 1, (5, 5)), axis(130, 9, 4, 1, (8, 8))),
            (axis(20, 3, 2, 3, (6, 5)), axis(33, 4, 2, 2, (3, 6))),
            (axis(20, 3, 6, 4, (8, 8)), axis(20, 5, 1, 2, (4, 4))),
            (axis(3, 5, 2, 1, (4, 4)), axis(2, 5, 4, 1, (4, 4))),
            (axis(2, 2, 1, 5, (5, 5)), axis(1, 3, 3, 4, (8, 8))),
            (axis(9, 2, 2, 1, (0, 0)), axis(9000, 5, 2, 1, (2, 2))),
            (axis(4, 3, 1, 1, (1, 1)), axis(5000, 6, 1, 1, (3, 0))),
            (axis(9, 2, 3, 1, (1, 0)), axis(9000, 4, 3, 1, (3, 3))),
            (Axis::ONE, axis(20000, 17, 1, 1, (8, 8))),
        ];
        for (rows, columns) in shapes {
            let shape = PoolingShape { planes: 2, slices: Axis::ONE, rows, columns };
            let size = 2 * rows.input * columns.input;
            let mut x: Vec<f32> = (0..size).map(|i| (i * 7919 % 1000) as f32 / 321.0 - 1.5).collect();
            for special in [None, Some(f32::NAN), Some(f32::INFINITY)] {
                if let Some(special) = special {
                    x[size / 3] = special;
                }
                for pooling in [
                    PoolingOp::WEIR_POOLING_MAX,
                    PoolingOp::WEIR_POOLING_AVERAGE,
                    PoolingOp::WEIR_POOLING_AVERAGE_INSIDE,
                ] {
                    let planes = x.chunks_exact(size / 2);
                    let want: Vec<f32> = planes.flat_map(|plane| reference(pooling, &rows, &columns, plane)).collect();
                    for isa in Isa::levels() {
                        let mut got = vec![f32::NAN; want.len()];
                        let call = StandaloneCall::new(None, 1000, shape.scratch_bytes()).unwrap();
                        let out = MatrixMut::dense(&mut got, 2, want.len() / 2);
                        compute(isa, pooling, &shape, &x, out, 1000, &call).unwrap();
                        for (i, (got, want)) in got.iter().zip(&want).enumerate() {
                            let same = got == want || got.is_nan() && want.is_nan();
                            assert!(same, "{isa:?} {pooling:?} {shape:?} {i}: {got} for {want}");
                        }
                        // In pieces of any size and order.
                        let bits = |floats: &[f32]| floats.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                        for seed in 1..3 {
                            let mut again = vec![f32::NAN; want.len()];
                            let cutter = Cutter::new(seed, shape.scratch_bytes());
                            let out = MatrixMut::dense(&mut again, 2, want.len() / 2);
                            compute(isa, pooling, &shape, &x, out, 1000, &cutter).unwrap();
                            cutter.check_guards();
                            assert_eq!(bits(&again), bits(&got), "{isa:?} {pooling:?} {shape:?}: by seed {seed}");
                        }
                    }
                }
            }
        }
    }

    /// As if the elements were taken in the order of rows and columns: the last one of equals, the first NaN.
    #[test]
    fn the_greatest_zero_and_the_nan_are_those_of_the_order() {
        let chain = |most: f32, x: f32| if most.is_nan() || most > x { most } else { x };
        for (taps, height, width, stride) in [
            (2, 9, 20, 1),
            (3, 9, 33, 1),
            (5, 20, 20, 1),
            (7, 30, 9, 1),
            (9, 13, 40, 1),
            (13, 13, 13, 1),
            (4, 56, 56, 4),
            (7, 29, 29, 2),
            (5, 40, 50, 3),
        ] {
            let [rows, columns] = [height, width].map(|input| axis(input, taps, stride, 1, (taps / 2, taps / 2)));
            let shape = PoolingShape { planes: 1, slices: Axis::ONE, rows, columns };
            let mut x: Vec<f32> = (0..height * width).map(|i| [0.0, -0.0, -1.0][i * i * 7919 % 101 % 3]).collect();
            for with_nan in [false, true] {
                if with_nan {
                    for (number, at) in [height * width / 3, height * width / 3 + width + 1].into_iter().enumerate() {
                        x[at] = f32::from_bits(f32::NAN.to_bits() + 1 + number as u32);
                    }
                }
                let mut want = Vec::new();
                for (row, column) in (0..rows.output).flat_map(|row| (0..columns.output).map(move |c| (row, c))) {
                    let taps = (0..taps * taps).map(|tap| (tap / taps, tap % taps));
                    let elements = taps.filter_map(|(down, across)| {
                        Some(x[rows.element(row, down)? * width + columns.element(column, across)?])
                    });
                    want.push(elements.fold(f32::NEG_INFINITY, chain).to_bits());
                }
                for isa in Isa::levels() {
                    let mut got = vec![0.0; want.len()];
                    let call = StandaloneCall::new(None, 1000, shape.scratch_bytes()).unwrap();
                    let out = MatrixMut::dense(&mut got, 1, want.len());
                    compute(isa, PoolingOp::WEIR_POOLING_MAX, &shape, &x, out, 1000, &call).unwrap();
                    let got: Vec<_> = got.into_iter().map(f32::to_bits).collect();
                    assert_eq!(got, want, "{isa:?} {shape:?}");
                }
            }
        }
    }

    #[test]
    fn whole_planes_have_the_same_bits_on_every_level() {
        for size in (1..70).chain([169, 255, 256, 257, 1000]) {
            let mut x: Vec<f32> = (0..5 * size).map(|i| (i * 7919 % 1000) as f32 / 321.0 - 1.5).collect();
            x[size * 2 / 3] = f32::NAN;
            x[size + size * 2 / 3] = f32::INFINITY;
            x[2 * size..3 * size].fill(f32::NEG_INFINITY);
            for pooling in [PoolingOp::WEIR_POOLING_MAX, PoolingOp::WEIR_POOLING_AVERAGE] {
                let mut first: Option<Vec<f32>> = None;
                for isa in Isa::levels() {
                    let mut got = [0.0; 5];
                    whole(isa, pooling, &x, &mut got);
                    for (plane, got) in x.chunks_exact(size).zip(got) {
                        let want = match pooling {
                            PoolingOp::WEIR_POOLING_MAX => plane.iter().copied().fold(f32::NEG_INFINITY, greater),
                            _ => (plane.iter().map(|x| f64::from(*x)).sum::<f64>() / size as f64) as f32,
                        };
                        let near = got == want || (got - want).abs() <= 1e-6 || got.is_nan() && want.is_nan();
                        assert!(near, "{isa:?} {pooling:?} {size}: {got} for {want}");
                    }
                    let bits = |floats: &[f32]| floats.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                    let first = first.get_or_insert(got.to_vec());
                    assert_eq!(bits(first), bits(&got), "{isa:?} {pooling:?} {size}");
                }
            }
        }
    }
}

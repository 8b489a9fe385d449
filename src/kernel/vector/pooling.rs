//! The greatest element, or the average, of each window of an image or signal.
//!
//! Determinism: an element is one chain over the taps in order. It compares, adds and divides, so its bits are the same
//! on every instruction set.
#![forbid(unsafe_code)]

use super::isa::Isa;
use super::site::{MatrixMut, Site};
use super::sliding::{Added, Greatest, Sliding, WindowEnds};
use super::window::Axis;
use crate::base::Result;
use crate::ops::weir_pooling_op_value as PoolingOp;

/// Partial sums of a plane.
const LANES: usize = 16;

/// Windows over each of some planes.
#[derive(Clone, Copy, Debug)]
pub struct PoolingShape {
    pub planes: usize,
    pub rows: Axis,
    pub columns: Axis,
}

impl PoolingShape {
    fn sliding(&self) -> Sliding {
        Sliding { images: self.planes, channels: 1, filters: 1, rows: self.rows, columns: self.columns }
    }

    /// Scratch memory that `compute` needs per slot, in bytes.
    pub fn scratch_bytes(&self) -> usize {
        let sliding = self.sliding();
        sliding.scratch_bytes::<Greatest>().max(sliding.scratch_bytes::<Added>())
    }

    /// Whether the only window of a plane is all of it.
    pub fn is_whole(&self) -> bool {
        let whole = |axis: &Axis| (axis.output, axis.before, axis.dilation, axis.taps) == (1, 0, 1, axis.input);
        whole(&self.rows) && whole(&self.columns)
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
    let PoolingShape { rows, columns, .. } = *shape;
    let divisor = |row: usize, column: usize| match pooling {
        PoolingOp::WEIR_POOLING_AVERAGE => (rows.taps * columns.taps) as f32,
        _ => (rows.count(row) * columns.count(column)).max(1) as f32,
    };
    let is_max = pooling == PoolingOp::WEIR_POOLING_MAX;
    let first = if is_max { f32::NEG_INFINITY } else { 0.0 };
    let divisor: Option<&(dyn Fn(usize, usize) -> f32 + Sync)> = if is_max { None } else { Some(&divisor) };
    let ends = WindowEnds { weights: &[], filter: &|_, _| (&[], first), divisor, finish: &|_, _| {} };
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

/// One number for a whole plane, which has elements.
pub fn whole(pooling: PoolingOp, plane: &[f32]) -> f32 {
    let chunks = plane.chunks_exact(LANES);
    let rest = chunks.remainder();
    if pooling == PoolingOp::WEIR_POOLING_MAX {
        let mut most = [f32::NEG_INFINITY; LANES];
        for chunk in chunks {
            most.iter_mut().zip(chunk).for_each(|(most, x)| *most = greater(*most, *x));
        }
        return most.into_iter().chain(rest.iter().copied()).fold(f32::NEG_INFINITY, greater);
    }
    let mut sums = [0.0f64; LANES];
    for chunk in chunks {
        sums.iter_mut().zip(chunk).for_each(|(sum, x)| *sum += f64::from(*x));
    }
    let sum = rest.iter().fold(sums.iter().sum::<f64>(), |sum, x| sum + f64::from(*x));
    (sum / plane.len() as f64) as f32
}

#[cfg(all(test, not(loom)))]
mod tests {
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
        windows
            .map(|(row, column)| {
                let taps = (0..rows.taps).flat_map(|down| (0..columns.taps).map(move |across| (down, across)));
                let elements = taps.filter_map(|(down, across)| {
                    Some(plane[rows.element(row, down)? * columns.input + columns.element(column, across)?])
                });
                match pooling {
                    PoolingOp::WEIR_POOLING_MAX => elements.fold(f32::NEG_INFINITY, greater),
                    PoolingOp::WEIR_POOLING_AVERAGE => elements.sum::<f32>() / (rows.taps * columns.taps) as f32,
                    PoolingOp::WEIR_POOLING_AVERAGE_INSIDE => {
                        elements.clone().sum::<f32>() / elements.count().max(1) as f32
                    }
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
        ];
        for (rows, columns) in shapes {
            let shape = PoolingShape { planes: 2, rows, columns };
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
                    for isa in Isa::available() {
                        let mut got = vec![f32::NAN; want.len()];
                        let call = StandaloneCall::new(None, 1000, shape.scratch_bytes()).unwrap();
                        let out = MatrixMut::dense(&mut got, 2, want.len() / 2);
                        compute(isa, pooling, &shape, &x, out, 1000, &call).unwrap();
                        for (i, (got, want)) in got.iter().zip(&want).enumerate() {
                            let same = got == want || got.is_nan() && want.is_nan();
                            assert!(same, "{isa:?} {pooling:?} {shape:?} {i}: {got} for {want}");
                        }
                    }
                }
            }
        }
    }
}

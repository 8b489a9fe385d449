//! The greatest element, or the average, of each window of an image or signal.
//!
//! The loops are plain, and also compiled for AVX2. They compare, add and divide, so their bits are the same on every
//! instruction set.

use super::isa::Isa;
use super::window::Axis;
use crate::ops::weir_pooling_op_value as PoolingOp;

/// Partial sums of a plane.
const LANES: usize = 16;

/// A row of the output, computed from its input plane.
pub fn row(pooling: PoolingOp, rows: &Axis, columns: &Axis, plane: &[f32], row: usize, out: &mut [f32]) {
    row_with(Isa::best(), pooling, rows, columns, plane, row, out);
}

/// The same on a supported level.
fn row_with(isa: Isa, pooling: PoolingOp, rows: &Axis, columns: &Axis, plane: &[f32], row: usize, out: &mut [f32]) {
    assert!(isa <= Isa::detected(), "{isa:?} on a processor with {:?}", Isa::detected());
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the processor has AVX2.
        Isa::Avx2 | Isa::Avx512 | Isa::Avx512Vnni | Isa::Amx => unsafe {
            avx2(pooling, rows, columns, plane, row, out)
        },
        _ => portable(pooling, rows, columns, plane, row, out),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn avx2(pooling: PoolingOp, rows: &Axis, columns: &Axis, plane: &[f32], row: usize, out: &mut [f32]) {
    portable(pooling, rows, columns, plane, row, out);
}

#[inline(always)]
fn portable(pooling: PoolingOp, rows: &Axis, columns: &Axis, plane: &[f32], row: usize, out: &mut [f32]) {
    out.fill(if pooling == PoolingOp::WEIR_POOLING_MAX { f32::NEG_INFINITY } else { 0.0 });
    for tap in 0..rows.taps {
        let Some(at) = rows.element(row, tap) else { continue };
        let x = &plane[at * columns.input..][..columns.input];
        for tap in 0..columns.taps {
            let inside = columns.inside(tap);
            if inside.is_empty() {
                continue;
            }
            let x = &x[inside.start * columns.stride + tap * columns.dilation - columns.before..];
            let out = &mut out[inside];
            match (pooling, columns.stride) {
                (PoolingOp::WEIR_POOLING_MAX, 2) => every_second(x, out, greater),
                (_, 2) => every_second(x, out, |sum, x| sum + x),
                (PoolingOp::WEIR_POOLING_MAX, 1) => out.iter_mut().zip(x).for_each(|(out, x)| *out = greater(*out, *x)),
                (PoolingOp::WEIR_POOLING_MAX, stride) => {
                    out.iter_mut().zip(x.iter().step_by(stride)).for_each(|(out, x)| *out = greater(*out, *x));
                }
                (_, 1) => out.iter_mut().zip(x).for_each(|(out, x)| *out += x),
                (_, stride) => out.iter_mut().zip(x.iter().step_by(stride)).for_each(|(out, x)| *out += x),
            }
        }
    }
    match pooling {
        PoolingOp::WEIR_POOLING_MAX => {}
        PoolingOp::WEIR_POOLING_AVERAGE => {
            let taps = (rows.taps * columns.taps) as f32;
            out.iter_mut().for_each(|out| *out /= taps);
        }
        PoolingOp::WEIR_POOLING_AVERAGE_INSIDE => {
            let (down, interior) = (rows.count(row), columns.interior());
            for (window, out) in out.iter_mut().enumerate() {
                let across = if interior.contains(&window) { columns.taps } else { columns.count(window) };
                *out /= (down * across).max(1) as f32;
            }
        }
    }
}

/// Combines each element of `out` with every second one of `x`. In pairs, which the compiler vectorises.
#[inline(always)]
fn every_second(x: &[f32], out: &mut [f32], combine: impl Fn(f32, f32) -> f32) {
    let pairs = x.chunks_exact(2);
    let whole = pairs.len().min(out.len());
    for (out, pair) in out.iter_mut().zip(pairs) {
        *out = combine(*out, pair[0]);
    }
    // The last one may lack a second element.
    if let Some(out) = out.get_mut(whole) {
        *out = combine(*out, x[2 * whole]);
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

#[cfg(test)]
mod tests {
    use super::super::window::EdgeMode;
    use super::*;

    #[test]
    fn every_level_gives_the_same_bits() {
        let plane: Vec<f32> = (0..9 * 61).map(|i| (i * 7919 % 1000) as f32 / 321.0 - 1.5).collect();
        for (stride, output) in [(1, 61), (2, 31), (3, 21)] {
            let columns = Axis { input: 61, output, taps: 3, stride, dilation: 1, before: 1, edge: EdgeMode::Zero };
            let rows = Axis { input: 9, output: 5, taps: 3, stride: 2, dilation: 1, before: 1, edge: EdgeMode::Zero };
            for pooling in
                [PoolingOp::WEIR_POOLING_MAX, PoolingOp::WEIR_POOLING_AVERAGE, PoolingOp::WEIR_POOLING_AVERAGE_INSIDE]
            {
                for row in 0..5 {
                    let of = |isa| {
                        let mut out = vec![0.0f32; output];
                        row_with(isa, pooling, &rows, &columns, &plane, row, &mut out);
                        out.into_iter().map(f32::to_bits).collect::<Vec<_>>()
                    };
                    let want = of(Isa::Portable);
                    assert!(Isa::available().all(|isa| of(isa) == want), "{pooling:?} stride {stride} row {row}");
                }
            }
        }
    }
}

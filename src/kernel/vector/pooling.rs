//! The greatest element, or the average, of each window of an image or signal.
#![forbid(unsafe_code)]

use super::window::Axis;

/// What is made of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pooling {
    /// NaN if there is one; -inf for a window without elements.
    Max,
    /// Over all taps: what is beyond the ends counts as zeros.
    Average,
    /// Over the elements; 0 for a window without.
    AverageInside,
}

/// Partial sums of a plane.
const LANES: usize = 16;

/// A row of the output, from the plane that is its input.
pub fn row(pooling: Pooling, rows: &Axis, columns: &Axis, plane: &[f32], row: usize, out: &mut [f32]) {
    out.fill(if pooling == Pooling::Max { f32::NEG_INFINITY } else { 0.0 });
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
                (Pooling::Max, 1) => out.iter_mut().zip(x).for_each(|(out, x)| *out = greater(*out, *x)),
                (Pooling::Max, stride) => {
                    out.iter_mut().zip(x.iter().step_by(stride)).for_each(|(out, x)| *out = greater(*out, *x));
                }
                (_, 1) => out.iter_mut().zip(x).for_each(|(out, x)| *out += x),
                (_, stride) => out.iter_mut().zip(x.iter().step_by(stride)).for_each(|(out, x)| *out += x),
            }
        }
    }
    match pooling {
        Pooling::Max => {}
        Pooling::Average => {
            let taps = (rows.taps * columns.taps) as f32;
            out.iter_mut().for_each(|out| *out /= taps);
        }
        Pooling::AverageInside => {
            let (down, interior) = (rows.count(row), columns.interior());
            for (window, out) in out.iter_mut().enumerate() {
                let across = if interior.contains(&window) { columns.taps } else { columns.count(window) };
                *out /= (down * across).max(1) as f32;
            }
        }
    }
}

/// A NaN stays, and is taken over.
#[inline(always)]
fn greater(most: f32, x: f32) -> f32 {
    if x > most || x.is_nan() { x } else { most }
}

/// One number for a whole plane, which has elements.
pub fn whole(pooling: Pooling, plane: &[f32]) -> f32 {
    let chunks = plane.chunks_exact(LANES);
    let rest = chunks.remainder();
    if pooling == Pooling::Max {
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

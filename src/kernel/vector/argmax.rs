//! Index of the greatest element: the first of equals, and the first NaN if there is one.
#![forbid(unsafe_code)]

use super::columns::{Stripe, WIDTH};
use super::softmax::greatest;

/// For a nonempty contiguous row.
pub fn row(x: &[f32]) -> i32 {
    // Two simple passes beat one that carries the index along: the first is vector code, the second stops at the match.
    let max = greatest(x);
    let at = if max.is_nan() { x.iter().position(|x| x.is_nan()) } else { x.iter().position(|&x| x == max) };
    at.unwrap_or(0) as i32
}

/// For each column of a stripe of at most WIDTH columns with at least one row.
pub fn columns(x: &[f32], at: Stripe, out: &mut [i32]) {
    let mut best = [0f32; WIDTH];
    best[..at.width].copy_from_slice(&x[at.first..][..at.width]);
    out.fill(0);
    for i in 1..at.len {
        let row = &x[at.first + i * at.stride..][..at.width];
        for ((&x, best), index) in row.iter().zip(&mut best).zip(out.iter_mut()) {
            // A NaN wins by the second condition and stays, because it fails both.
            let better = x > *best || (x.is_nan() && !best.is_nan());
            *best = if better { x } else { *best };
            *index = if better { i as i32 } else { *index };
        }
    }
}

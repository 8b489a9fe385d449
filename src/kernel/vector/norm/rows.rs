//! Rows by their own mean and variance, in registers.
//!
//! A row takes three passes while it is in the cache: mean, mean of squared differences, and the result. The first two end in a
//! chain of steps that wait for one another, so short rows go through a pass several at a time: the chain of one runs beside the
//! sums of the next.

use super::Rows;
use crate::kernel::vector::isa::Isa;
#[cfg(target_arch = "x86_64")]
use crate::kernel::vector::wide::Avx2;
use crate::kernel::vector::wide::{LANES, Wide};

/// Numbers that are added up in f32.
const BLOCK: usize = 4096;
/// Numbers of the rows that go through a pass at once, about, and the most such rows.
const GROUP: usize = 2048;
const ROWS: usize = 8;
/// Sums side by side.
const SUMS: usize = 4;

/// Normalises rows by mean and variance.
pub(super) fn by_variance(isa: Isa, rows: &mut Rows<'_>) {
    assert!(isa <= Isa::detected(), "{isa:?} on a processor with {:?}", Isa::detected());
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the processor has AVX-512.
        isa if isa >= Isa::Avx512 => unsafe { avx512(rows) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the processor has AVX2.
        Isa::Avx2 => unsafe { avx2(rows) },
        // SAFETY: arrays need no instructions that a processor may lack.
        _ => unsafe { run::<[f32; LANES]>(rows) },
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn avx512(rows: &mut Rows<'_>) {
    // SAFETY: the processor has AVX-512.
    unsafe { run::<std::arch::x86_64::__m512>(rows) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn avx2(rows: &mut Rows<'_>) {
    // SAFETY: the processor has AVX2.
    unsafe { run::<Avx2>(rows) }
}

/// # Safety
/// As of `Wide`.
#[inline(always)]
unsafe fn run<W: Wide>(rows: &mut Rows<'_>) {
    let (len, count) = (rows.len, rows.x.len() / rows.len);
    let (inverse, epsilon) = (1.0 / len as f64, f64::from(rows.epsilon));
    let at_once = (GROUP / len).clamp(1, ROWS);
    let mut first = 0;
    while first < count {
        let some = at_once.min(count - first);
        let (mut means, mut factors) = ([0f32; ROWS], [0f32; ROWS]);
        // SAFETY: as demanded of the caller.
        unsafe {
            for (i, mean) in means[..some].iter_mut().enumerate() {
                let x = &rows.x[(first + i) * len..][..len];
                *mean = (sum::<W, false>(x, 0.0) * inverse) as f32;
            }
            for (i, factor) in factors[..some].iter_mut().enumerate() {
                let x = &rows.x[(first + i) * len..][..len];
                *factor = (1.0 / (sum::<W, true>(x, means[i]) * inverse + epsilon).sqrt()) as f32;
            }
            for i in 0..some {
                write::<W>(rows, first + i, means[i], factors[i]);
            }
        }
        first += some;
    }
}

/// The sum of x, or of (x - mean)^2: in f32 within a block, whose total is in f64.
///
/// # Safety
/// As of `Wide`.
#[inline(always)]
unsafe fn sum<W: Wide, const SQUARES: bool>(x: &[f32], mean: f32) -> f64 {
    let mut total = 0.0;
    let mut begin = 0;
    while begin < x.len() {
        let len = BLOCK.min(x.len() - begin);
        let block = &x[begin..][..len];
        let (whole, steps) = (len - len % LANES, len - len % (SUMS * LANES));
        // SAFETY: as demanded of the caller; addresses are of the block's floats.
        unsafe {
            let (data, mean) = (block.as_ptr(), W::splat(mean));
            let term = |x: W| if SQUARES { x.sub(mean).mul(x.sub(mean)) } else { x };
            let mut sums = [W::splat(0.0); SUMS];
            let mut at = 0;
            while at < steps {
                for (i, sum) in sums.iter_mut().enumerate() {
                    *sum = sum.add(term(W::load(data.add(at + i * LANES))));
                }
                at += SUMS * LANES;
            }
            while at < whole {
                sums[0] = sums[0].add(term(W::load(data.add(at))));
                at += LANES;
            }
            if at < len {
                sums[1] = sums[1].add(term(W::load_part(data.add(at), len - at)).first(len - at));
            }
            total += sums[0].add(sums[1]).add(sums[2].add(sums[3])).total();
        }
        begin += len;
    }
    total
}

/// A row of the result.
///
/// # Safety
/// As of `Wide`.
#[inline(always)]
unsafe fn write<W: Wide>(rows: &mut Rows<'_>, number: usize, mean: f32, factor: f32) {
    let (len, inner) = (rows.len, rows.inner);
    let (x, out) = (&rows.x[number * len..][..len], &mut rows.out[number * len..][..len]);
    let channels = len / inner;
    // A division is as long as a short row's sums.
    let at = if rows.cycle == 1 { 0 } else { (rows.first + number) % rows.cycle * channels };
    let affine = rows.affine.part(at, channels);
    // SAFETY: as demanded of the caller.
    unsafe {
        if inner == 1 {
            return match (affine.scale, affine.shift) {
                (None, None) => each::<W, false, false>(x, mean, factor, (x, x), out),
                (Some(scale), None) => each::<W, true, false>(x, mean, factor, (scale, x), out),
                (None, Some(shift)) => each::<W, false, true>(x, mean, factor, (x, shift), out),
                (Some(scale), Some(shift)) => each::<W, true, true>(x, mean, factor, (scale, shift), out),
            };
        }
        for c in 0..channels {
            let (x, out) = (&x[c * inner..][..inner], &mut out[c * inner..][..inner]);
            let factor = factor * affine.scale.map_or(1.0, |scale| scale[c]);
            all::<W>(x, mean, factor, affine.shift.map_or(0.0, |shift| shift[c]), out);
        }
    }
}

/// out = (x - mean) * factor * scale + shift, with a scale and a shift for each, if at all.
///
/// # Safety
/// As of `Wide`.
#[inline(always)]
unsafe fn each<W: Wide, const SCALE: bool, const SHIFT: bool>(
    x: &[f32],
    mean: f32,
    factor: f32,
    (scale, shift): (&[f32], &[f32]),
    out: &mut [f32],
) {
    let (len, whole) = (x.len(), x.len() - x.len() % LANES);
    assert!(scale.len() == len && shift.len() == len && out.len() == len);
    let (x, scale, shift, out) = (x.as_ptr(), scale.as_ptr(), shift.as_ptr(), out.as_mut_ptr());
    // SAFETY: as demanded of the caller; addresses are below `len`.
    unsafe {
        let (mean, factor) = (W::splat(mean), W::splat(factor));
        let mut at = 0;
        while at < whole {
            let mut y = W::load(x.add(at)).sub(mean).mul(factor);
            if SCALE {
                y = y.mul(W::load(scale.add(at)));
            }
            if SHIFT {
                y = y.add(W::load(shift.add(at)));
            }
            y.store(out.add(at));
            at += LANES;
        }
        if at < len {
            let rest = len - at;
            let mut y = W::load_part(x.add(at), rest).sub(mean).mul(factor);
            if SCALE {
                y = y.mul(W::load_part(scale.add(at), rest));
            }
            if SHIFT {
                y = y.add(W::load_part(shift.add(at), rest));
            }
            y.store_part(out.add(at), rest);
        }
    }
}

/// out = (x - mean) * factor + shift.
///
/// # Safety
/// As of `Wide`.
#[inline(always)]
unsafe fn all<W: Wide>(x: &[f32], mean: f32, factor: f32, shift: f32, out: &mut [f32]) {
    let (len, whole) = (x.len(), x.len() - x.len() % LANES);
    assert_eq!(out.len(), len);
    let (x, out) = (x.as_ptr(), out.as_mut_ptr());
    // SAFETY: as demanded of the caller; addresses are below `len`.
    unsafe {
        let (mean, factor, shift) = (W::splat(mean), W::splat(factor), W::splat(shift));
        let mut at = 0;
        while at < whole {
            W::load(x.add(at)).sub(mean).mul(factor).add(shift).store(out.add(at));
            at += LANES;
        }
        if at < len {
            W::load_part(x.add(at), len - at).sub(mean).mul(factor).add(shift).store_part(out.add(at), len - at);
        }
    }
}

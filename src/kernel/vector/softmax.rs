//! Softmax: exp(x - max) / sum; and its logarithm: x - max - ln(sum).
//!
//! A row takes three passes: its maximum, exponentials and their sum, division (`softmax_terms`). Short rows take them
//! side by side (`softmax_short`).
//!
//! Sums are kept in f64. Their order depends on the length of the row and the instruction set.
//!
//! NaN: a pass for the maximum may skip one, but the exponential of a NaN is a NaN, and so are the sum and the row. The
//! same holds for inf - inf in a row whose maximum is infinite.

use super::columns::{Stripe, StripeRows, WIDTH};
use super::isa::Isa;
use super::lanes::Reduced;
use super::levels::{self, LevelLoop};
#[cfg(target_arch = "x86_64")]
use super::movement::TileTranspose;
#[cfg(target_arch = "x86_64")]
use super::softmax_short;
use super::softmax_terms::{exp_of_difference, logarithm, scale};

/// Partial sums of a row and vectors of a step: constant, so that a row's bits depend on nothing else.
const LANES: usize = 16;
const STEP: usize = 4;
/// Elements between two passes of the portable loops, few enough to stay in the L1 cache.
const BLOCK: usize = 1024;

/// The greatest element, NaN if there is a NaN, -inf if there is no element.
pub fn greatest(row: &[f32]) -> f32 {
    let mut max = [f32::NEG_INFINITY; LANES];
    let mut nan = [0u32; LANES];
    let chunks = row.chunks_exact(LANES);
    let rest = chunks.remainder();
    for chunk in chunks {
        for i in 0..LANES {
            max[i] = if chunk[i] > max[i] { chunk[i] } else { max[i] };
            nan[i] |= chunk[i].is_nan() as u32;
        }
    }
    for (i, &x) in rest.iter().enumerate() {
        max[i] = if x > max[i] { x } else { max[i] };
        nan[i] |= x.is_nan() as u32;
    }
    if nan.iter().any(|&seen| seen != 0) {
        return f32::NAN;
    }
    max.into_iter().fold(f32::NEG_INFINITY, f32::max)
}

/// Estimated time of a row, and of each of its elements, at a level.
const ROW_NS: f32 = 10.0;
fn element_ns(isa: Isa) -> f32 {
    match isa {
        Isa::Avx512 | Isa::Avx512Vnni | Isa::Amx => 0.4,
        Isa::Avx2 => 0.55,
        Isa::Portable | Isa::Neon => COLUMN_ELEMENT_NS,
    }
}

/// Time per element with baseline instructions.
const COLUMN_ELEMENT_NS: f32 = 1.7;

/// Estimated time of a row of `len` elements in consecutive memory.
pub fn row_ns(len: usize) -> f32 {
    ROW_NS + len as f32 * element_ns(Isa::best())
}

/// Estimated time of a stripe of `width` columns of `len` elements.
pub fn columns_ns(len: usize, width: usize) -> f32 {
    // Passes along columns are slower than those along rows.
    (len * width) as f32 * element_ns(Isa::best()) * 1.5
}

/// Softmax, or its logarithm, of each row of `len` elements, on a supported level. Slices of the same length, a
/// multiple of `len`, which is not 0.
pub fn rows(isa: Isa, log: bool, x: &[f32], out: &mut [f32], len: usize) {
    if log { rows_of::<true>(isa, x, out, len) } else { rows_of::<false>(isa, x, out, len) }
}

fn rows_of<const LOG: bool>(isa: Isa, x: &[f32], out: &mut [f32], len: usize) {
    assert!(isa <= Isa::detected(), "{isa:?} on a processor with {:?}", Isa::detected());
    assert!(x.len() == out.len() && x.len().is_multiple_of(len));
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the processor has AVX-512.
        Isa::Avx512 | Isa::Avx512Vnni | Isa::Amx => unsafe { rows_avx512::<LOG>(isa, x, out, len) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the processor has AVX2 and FMA.
        Isa::Avx2 => unsafe { rows_avx2::<LOG>(isa, x, out, len) },
        _ => x.chunks_exact(len).zip(out.chunks_exact_mut(len)).for_each(|(x, out)| portable_row::<LOG>(x, out)),
    }
}

/// The transposition of rows that are short.
#[cfg(target_arch = "x86_64")]
fn transposes(isa: Isa, len: usize) -> Option<TileTranspose> {
    TileTranspose::of(isa, size_of::<f32>()).filter(|_| len <= softmax_short::MOST)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw")]
fn rows_avx512<const LOG: bool>(isa: Isa, x: &[f32], out: &mut [f32], len: usize) {
    if let Some(transpose) = transposes(isa, len) {
        // SAFETY: the processor has the level, and the rows are short.
        return unsafe {
            softmax_short::rows::<std::arch::x86_64::__m512, std::arch::x86_64::__m512, LOG>(&transpose, x, out, len)
        };
    }
    for (x, out) in x.chunks_exact(len).zip(out.chunks_exact_mut(len)) {
        // SAFETY: the processor has AVX-512.
        unsafe { vector_row::<std::arch::x86_64::__m512, LOG>(x, out) };
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn rows_avx2<const LOG: bool>(isa: Isa, x: &[f32], out: &mut [f32], len: usize) {
    if let Some(transpose) = transposes(isa, len) {
        // SAFETY: the processor has the level, and the rows are short.
        return unsafe {
            softmax_short::rows::<std::arch::x86_64::__m256, super::wide::Avx2, LOG>(&transpose, x, out, len)
        };
    }
    for (x, out) in x.chunks_exact(len).zip(out.chunks_exact_mut(len)) {
        // SAFETY: the processor has AVX2 and FMA.
        unsafe { vector_row::<std::arch::x86_64::__m256, LOG>(x, out) };
    }
}

/// Softmax of a row: STEP vectors at a time, then one by one. The remainder goes in the last vector of the row, which
/// overlaps the previous one, or in a partial vector if the row is shorter. It is written after everything else.
///
/// # Safety
/// The processor has the instructions of V.
#[inline(always)]
unsafe fn vector_row<V: Reduced, const LOG: bool>(x: &[f32], out: &mut [f32]) {
    let len = x.len().min(out.len());
    let (x, out) = (x.as_ptr(), out.as_mut_ptr());
    let (steps, whole) = (len - len % (STEP * V::LANES), len - len % V::LANES);
    let (each_step, each_vector) = ((0..steps).step_by(STEP * V::LANES), (steps..whole).step_by(V::LANES));
    let left = len - whole;
    // SAFETY: all reads and writes are below `len`: STEP vectors from each step on, a vector from each after those, and
    // the last `LANES` or `len` elements.
    unsafe {
        let mut last = V::splat(f32::NEG_INFINITY);
        if left > 0 {
            last = if whole > 0 {
                V::load(x.add(len - V::LANES))
            } else {
                V::load_lanes(x, V::lanes(0, left), f32::NEG_INFINITY)
            };
        }
        let mut max = [V::splat(f32::NEG_INFINITY); STEP];
        for at in each_step.clone() {
            for (i, max) in max.iter_mut().enumerate() {
                *max = V::load(x.add(at + i * V::LANES)).max(*max);
            }
        }
        for at in each_vector.clone() {
            max[0] = V::load(x.add(at)).max(max[0]);
        }
        max[1] = last.max(max[1]);
        let max = max[0].max(max[1]).max(max[2].max(max[3])).greatest();

        let mut sums = V::no_sums();
        for at in each_step.clone() {
            let mut y = [V::splat(0.0); STEP];
            for (i, y) in y.iter_mut().enumerate() {
                *y = exp_of_difference(V::load(x.add(at + i * V::LANES)), V::splat(max));
                y.store(out.add(at + i * V::LANES));
            }
            sums = y[0].add(y[1]).add(y[2].add(y[3])).add_to(sums);
        }
        for at in each_vector.clone() {
            let y = exp_of_difference(V::load(x.add(at)), V::splat(max));
            y.store(out.add(at));
            sums = y.add_to(sums);
        }
        let last_x = last;
        if left > 0 {
            last = exp_of_difference(last, V::splat(max));
            // A lane without an element held -inf, whose exponential is too small to affect a sum.
            let once = if whole > 0 { last.last_lanes(left) } else { last };
            sums = once.add_to(sums);
        }

        if LOG {
            let (max, minus) = (V::splat(max), V::splat(logarithm(max, V::total(sums))));
            for at in each_step {
                for i in 0..STEP {
                    let at = at + i * V::LANES;
                    V::load(x.add(at)).sub(max).sub(minus).store(out.add(at));
                }
            }
            for at in each_vector {
                V::load(x.add(at)).sub(max).sub(minus).store(out.add(at));
            }
            if left > 0 {
                let last = last_x.sub(max).sub(minus);
                if whole > 0 { last.store(out.add(len - V::LANES)) } else { last.store_part(out, left) }
            }
            return;
        }
        let scale = V::splat(scale(max, V::total(sums)));
        for at in each_step {
            for i in 0..STEP {
                let y = out.add(at + i * V::LANES);
                V::load(y).mul(scale).store(y);
            }
        }
        for at in each_vector {
            let y = out.add(at);
            V::load(y).mul(scale).store(y);
        }
        if left > 0 {
            let last = last.mul(scale);
            if whole > 0 { last.store(out.add(len - V::LANES)) } else { last.store_part(out, left) }
        }
    }
}

/// Softmax of a row with baseline instructions.
fn portable_row<const LOG: bool>(x: &[f32], out: &mut [f32]) {
    let max = greatest(x);
    let mut sums = [0.0; LANES];
    for (x, out) in x.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
        exponentials(x, max, out);
        for y in out.chunks(LANES) {
            add_to(&mut sums, y);
        }
    }
    if LOG {
        let minus = logarithm(max, sums.iter().sum());
        return out.iter_mut().zip(x).for_each(|(y, x)| *y = x - max - minus);
    }
    let scale = scale(max, sums.iter().sum());
    out.iter_mut().for_each(|y| *y *= scale);
}

/// out = exp(x - max) * 2^64. A separate function, so that the compiler sees one loop.
#[inline(never)]
fn exponentials(x: &[f32], max: f32, out: &mut [f32]) {
    for (out, &x) in out.iter_mut().zip(x) {
        // SAFETY: plain floats need no instructions that a processor may lack.
        *out = unsafe { exp_of_difference(x, max) };
    }
}

#[inline(always)]
pub(super) fn add_to(sums: &mut [f64], y: &[f32]) {
    for (sum, &y) in sums.iter_mut().zip(y) {
        *sum += f64::from(y);
    }
}

/// Softmax, or its logarithm, of each column of a stripe, on a supported level.
pub fn columns(isa: Isa, log: bool, x: &[f32], at: Stripe, out: &mut StripeRows<'_, f32>) {
    levels::on(isa, OfColumns { log, x, at, out });
}

struct OfColumns<'a, 'b> {
    log: bool,
    x: &'a [f32],
    at: Stripe,
    out: &'a mut StripeRows<'b, f32>,
}

impl LevelLoop for OfColumns<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        columns_of(self.log, self.x, self.at, self.out);
    }
}

#[inline(always)]
fn columns_of(log: bool, x: &[f32], at: Stripe, out: &mut StripeRows<'_, f32>) {
    let input = |i: usize| &x[at.first + i * at.stride..][..at.width];
    let mut max = [f32::NEG_INFINITY; WIDTH];
    for i in 0..at.len {
        for (max, &x) in max.iter_mut().zip(input(i)) {
            // A NaN enters by the second condition and stays, because it fails both.
            *max = if x > *max || (x.is_nan() && !max.is_nan()) { x } else { *max };
        }
    }
    let mut sums = [0.0; WIDTH];
    for i in 0..at.len {
        let y = out.row(i);
        for ((y, &x), &max) in y.iter_mut().zip(input(i)).zip(&max) {
            // SAFETY: plain floats need no instructions that a processor may lack.
            *y = unsafe { exp_of_difference(x, max) };
        }
        add_to(&mut sums, y);
    }
    if log {
        let mut minus = [0.0; WIDTH];
        for (minus, (&max, &sum)) in minus.iter_mut().zip(max.iter().zip(&sums)) {
            *minus = logarithm(max, sum);
        }
        for i in 0..at.len {
            let constants = max.iter().zip(&minus);
            for ((y, &x), (&max, &minus)) in out.row(i).iter_mut().zip(input(i)).zip(constants) {
                *y = x - max - minus;
            }
        }
        return;
    }
    let mut scales = [0.0; WIDTH];
    for (scale_of, (&max, &sum)) in scales.iter_mut().zip(max.iter().zip(&sums)) {
        *scale_of = scale(max, sum);
    }
    for i in 0..at.len {
        out.row(i).iter_mut().zip(&scales).for_each(|(y, scale)| *y *= scale);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// The exponential in plain floats, without the factor.
    fn exp(x: f32, max: f32) -> f32 {
        // SAFETY: plain floats need nothing.
        unsafe { exp_of_difference(x, max) * 2f32.powi(-64) }
    }

    #[test]
    fn exponentials_are_exact_to_a_few_units() {
        let mut worst = 0f64;
        for max in [0.0f32, 0.1, 1.0, 50.337, -3.7e4, 1e-20, 88.8, 1234.567] {
            for step in 0..100_000 {
                let x = max - step as f32 * 1.03e-3;
                let want = (f64::from(x) - f64::from(max)).exp();
                let error = (f64::from(exp(x, max)) - want).abs();
                if want > f64::from(f32::MIN_POSITIVE) {
                    worst = worst.max(error / want);
                } else {
                    assert!(error <= 1.5e-45, "{x} - {max}: {error}");
                }
            }
        }
        assert!(worst < 2e-7, "{worst}");
    }

    #[test]
    fn far_below_the_maximum_is_zero() {
        for (x, max) in [(f32::NEG_INFINITY, 0.0), (f32::MIN, f32::MAX), (-200.0, 0.0), (-104.0, 0.0)] {
            assert_eq!(exp(x, max), 0.0, "{x} - {max}");
        }
        assert_eq!(exp(f32::MAX, f32::MAX), 1.0);
        assert!(exp(-103.0, 0.0) > 0.0);
    }

    fn reference(x: &[f32]) -> Vec<f64> {
        let max = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let y: Vec<_> = x.iter().map(|&x| (f64::from(x) - f64::from(max)).exp()).collect();
        let sum: f64 = y.iter().sum();
        y.into_iter().map(|y| y / sum).collect()
    }

    /// Pseudorandom numbers in [-1, 1).
    fn noise(len: usize) -> Vec<f32> {
        let mut state = len as u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        };
        (0..len).map(|_| next()).collect()
    }

    fn softmax(isa: Isa, x: &[f32], len: usize) -> Vec<f32> {
        // Guards reveal a write behind the end.
        let mut out = vec![7.0; x.len() + 64];
        rows(isa, false, x, &mut out[..x.len()], len);
        assert!(out[x.len()..].iter().all(|&guard| guard == 7.0));
        out.truncate(x.len());
        out
    }

    fn lengths() -> impl Iterator<Item = usize> {
        (1..=70).chain([127, 128, 129, 1000, 1023, 1024, 1025, 4097])
    }

    #[test]
    fn every_level_is_exact_to_a_millionth() {
        for isa in Isa::available() {
            for len in lengths() {
                // Also around 89 with either sign, and so wide that most results are zero or subnormal.
                for (factor, offset) in [(1.0, 0.0), (20.0, 0.0), (1.0, 89.0), (1.0, -89.0), (90.0, 3.0), (3e4, 0.0)] {
                    let x: Vec<_> = noise(len).into_iter().map(|x| x * factor + offset).collect();
                    for (i, (&got, want)) in softmax(isa, &x, len).iter().zip(reference(&x)).enumerate() {
                        let error = (f64::from(got) - want).abs();
                        let good = error <= 6e-7 * want || error <= 1.5e-45;
                        assert!(good, "{isa:?} {len} x {factor} + {offset}: {i}: {got:e} for {want:e}");
                    }
                }
            }
        }
    }

    #[test]
    fn sums_of_long_rows_are_exact() {
        for isa in Isa::available() {
            let y = softmax(isa, &vec![0.3; 3_000_001], 3_000_001);
            let want = 1.0 / 3_000_001.0;
            assert!(y.iter().all(|&y| (f64::from(y) - want).abs() <= 1.2e-7 * want), "{isa:?}: {} for {want}", y[0]);
        }
    }

    #[test]
    fn special_values_count_wherever_they_are() {
        const INF: f32 = f32::INFINITY;
        // Quiet NaNs of either sign whose payloads reach into the low bits, too.
        let nans = [f32::NAN, -f32::NAN, f32::from_bits(0x7fc0_0055), f32::from_bits(0xffff_ffff)];
        for isa in Isa::available() {
            for len in lengths().filter(|&len| len <= 129) {
                for at in 0..len {
                    let with = |value: f32| {
                        let mut x = noise(len);
                        x[at] = value;
                        (softmax(isa, &x, len), reference(&x))
                    };
                    for value in nans.into_iter().chain([INF]) {
                        let (y, _) = with(value);
                        assert!(y.iter().all(|y| y.is_nan()), "{isa:?} {len}: {value} at {at}: {y:?}");
                    }
                    let (y, want) = with(-INF);
                    let near = |(&y, want): (&f32, f64)| (f64::from(y) - want).abs() <= 6e-7 * want;
                    let good = if len == 1 { y[0].is_nan() } else { y.iter().zip(want).all(near) };
                    assert!(good, "{isa:?} {len}: -inf at {at}: {y:?}");
                    let (y, _) = with(f32::MAX);
                    assert!(y.iter().enumerate().all(|(i, &y)| y == if i == at { 1.0 } else { 0.0 }), "{isa:?} {len}");
                }
                for all in nans.into_iter().chain([INF, -INF]) {
                    assert!(softmax(isa, &vec![all; len], len).iter().all(|y| y.is_nan()), "{isa:?} {len}: {all}");
                }
                let mut x = vec![-INF; len];
                x[len - 1] = -80.0;
                let y = softmax(isa, &x, len);
                assert!(y[len - 1] == 1.0 && y[..len - 1].iter().all(|&y| y == 0.0), "{isa:?} {len}: {y:?}");
            }
        }
    }

    #[test]
    fn a_row_has_the_same_bits_wherever_it_lies() {
        for isa in Isa::available() {
            for len in (1..20).chain([33, 70, 128, 1000]) {
                // More rows than are computed side by side.
                let x = noise(len * 37);
                let y = softmax(isa, &x, len);
                for (x, y) in x.chunks(len).zip(y.chunks(len)) {
                    assert_eq!(softmax(isa, x, len), y, "{isa:?} {len}");
                }
            }
        }
    }
}

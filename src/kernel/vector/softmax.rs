//! Softmax: exp(x - max) / sum; and its logarithm: x - max - ln(sum).
//!
//! A row takes three passes: its maximum, exponentials and their sum, division (`softmax_terms`). Several rows go
//! through each, and short ones take them side by side (`softmax_short`).
//!
//! Sums are kept in f64. Their order depends on the length of the row and the instruction set.
//!
//! NaN: a pass for the maximum may skip one, but the exponential of a NaN is a NaN, and so are the sum and the row. The
//! same holds for inf - inf in a row whose maximum is infinite.

use super::columns::{Stripe, StripeRows, WIDTH};
use super::elements::ElementPair;
use super::isa::{Isa, SimdLevel};
use super::lanes::Reduced;
use super::levels::{self, LevelLoop};
#[cfg(target_arch = "x86_64")]
use super::movement::TileTranspose;
#[cfg(target_arch = "x86_64")]
use super::softmax_short;
use super::softmax_terms::{Shift, exp_of_difference, logarithm, scale};

/// Partial sums of a row and vectors of a step: constant, so that a row's bits depend on nothing else.
const LANES: usize = 16;
const STEP: usize = 4;
/// Elements of rows that go through a pass together, and the most rows.
const TOGETHER: usize = 512;
const ROWS: usize = 16;
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
    match isa.level {
        SimdLevel::Avx512 => 0.4,
        SimdLevel::Avx2 => 0.55,
        SimdLevel::Portable | SimdLevel::Neon => COLUMN_ELEMENT_NS,
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

/// Softmax, or its logarithm, of each row of `len` elements, on a supported level. A multiple of `len`, which is not 0.
pub fn rows(isa: Isa, log: bool, mut pair: ElementPair<'_, f32, f32>, len: usize) {
    isa.assert_detected();
    assert!(pair.num_elements().is_multiple_of(len));
    match isa.level {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the processor has AVX-512.
        SimdLevel::Avx512 => unsafe { rows_avx512(isa, log, pair, len) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the processor has AVX2 and FMA.
        SimdLevel::Avx2 => unsafe { rows_avx2(isa, log, pair, len) },
        _ => pair.for_chunks(len, |_, row| portable_row(log, row)),
    }
}

/// The transposition of rows that are short.
#[cfg(target_arch = "x86_64")]
fn transposes(isa: Isa, len: usize) -> Option<TileTranspose> {
    TileTranspose::of(isa, size_of::<f32>()).filter(|_| len <= softmax_short::MOST)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw")]
fn rows_avx512(isa: Isa, log: bool, pair: ElementPair<'_, f32, f32>, len: usize) {
    use std::arch::x86_64::__m512;
    // SAFETY: the processor has the level, and rows that are turned are short.
    unsafe {
        match (transposes(isa, len), log) {
            (Some(transpose), true) => softmax_short::rows::<__m512, __m512, true>(&transpose, pair, len),
            (Some(transpose), false) => softmax_short::rows::<__m512, __m512, false>(&transpose, pair, len),
            _ => vector_rows::<__m512>(log, pair, len),
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn rows_avx2(isa: Isa, log: bool, pair: ElementPair<'_, f32, f32>, len: usize) {
    use super::wide::Avx2;
    use std::arch::x86_64::__m256;
    // SAFETY: the processor has the level, and rows that are turned are short.
    unsafe {
        match (transposes(isa, len), log) {
            (Some(transpose), true) => softmax_short::rows::<__m256, Avx2, true>(&transpose, pair, len),
            (Some(transpose), false) => softmax_short::rows::<__m256, Avx2, false>(&transpose, pair, len),
            _ => vector_rows::<__m256>(log, pair, len),
        }
    }
}

/// Softmax of rows. Each pass goes over some of them, so that the way from registers to a maximum or a sum of one row
/// overlaps with other rows.
///
/// # Safety
/// The processor has the instructions of V; there are whole rows of `len` elements.
#[inline(always)]
unsafe fn vector_rows<V: Reduced>(log: bool, mut pair: ElementPair<'_, f32, f32>, len: usize) {
    let together = (TOGETHER / len).clamp(1, ROWS) * len;
    pair.for_chunks(together, |_, rows| {
        // SAFETY: as demanded of the caller.
        unsafe { if log { some_rows::<V, true>(rows, len) } else { some_rows::<V, false>(rows, len) } };
    });
}

/// As `vector_rows`, of at most ROWS.
///
/// # Safety
/// As of `vector_rows`.
#[inline(always)]
unsafe fn some_rows<V: Reduced, const LOG: bool>(mut rows: ElementPair<'_, f32, f32>, len: usize) {
    let count = rows.num_elements() / len;
    let (x, out) = rows.addresses();
    let (mut greatest, mut sums) = ([0.0; ROWS], [0.0; ROWS]);
    // SAFETY: as demanded of the caller.
    unsafe {
        for (i, greatest) in greatest.iter_mut().enumerate().take(count) {
            *greatest = row_greatest::<V>(x.add(i * len), len);
        }
        let mut shifts = [Shift::of(0.0); ROWS];
        for (shift, &max) in shifts.iter_mut().zip(&greatest).take(count) {
            *shift = Shift::of(max);
        }
        for (i, (sum, shift)) in sums.iter_mut().zip(&shifts).enumerate().take(count) {
            *sum = row_exponentials::<V, LOG>(x.add(i * len), out.add(i * len), len, &shift.in_lanes());
        }
        for (i, (&max, &sum)) in greatest.iter().zip(&sums).enumerate().take(count) {
            let (x, out) = (x.add(i * len), out.add(i * len));
            match LOG {
                true => row_logarithms::<V>(x, out, len, V::splat(max), V::splat(logarithm(max, sum))),
                false => row_quotients::<V>(out, len, V::splat(scale(max, sum))),
            }
        }
    }
}

/// The elements of a row that go STEP vectors at a time, and those that go by whole vectors. The others go in the last
/// vector of the row, which overlaps the one before, or in a partial vector if the row is shorter.
#[inline(always)]
fn steps<V: Reduced>(len: usize) -> (usize, usize) {
    (len - len % (STEP * V::LANES), len - len % V::LANES)
}

/// The last elements of a row, which are not in whole vectors; `other` in lanes without one.
///
/// # Safety
/// The processor has the instructions of V; the row has so many elements, which are not a whole number of vectors.
#[inline(always)]
unsafe fn last_of<V: Reduced>(x: *const f32, len: usize, other: f32) -> V {
    // SAFETY: as demanded of the caller.
    unsafe {
        match len > V::LANES {
            true => V::load(x.add(len - V::LANES)),
            false => V::load_lanes(x, V::lanes(0, len), other),
        }
    }
}

/// # Safety
/// As of `last_of`.
#[inline(always)]
unsafe fn store_last<V: Reduced>(last: V, to: *mut f32, len: usize) {
    // SAFETY: as demanded of the caller.
    unsafe { if len > V::LANES { last.store(to.add(len - V::LANES)) } else { last.store_part(to, len) } }
}

/// The greatest element; it may skip a NaN.
///
/// # Safety
/// The processor has the instructions of V; the row has so many elements.
#[inline(always)]
unsafe fn row_greatest<V: Reduced>(x: *const f32, len: usize) -> f32 {
    let (steps, whole) = steps::<V>(len);
    // SAFETY: as demanded of the caller.
    unsafe {
        let mut max = [V::splat(f32::NEG_INFINITY); STEP];
        for at in (0..steps).step_by(STEP * V::LANES) {
            for (i, max) in max.iter_mut().enumerate() {
                *max = V::load(x.add(at + i * V::LANES)).max(*max);
            }
        }
        for at in (steps..whole).step_by(V::LANES) {
            max[0] = V::load(x.add(at)).max(max[0]);
        }
        if whole < len {
            max[1] = last_of::<V>(x, len, f32::NEG_INFINITY).max(max[1]);
        }
        max[0].max(max[1]).max(max[2].max(max[3])).greatest()
    }
}

/// Writes the exponentials, unless their logarithms are wanted; their sum.
///
/// # Safety
/// As of `row_greatest`, and of what is written.
#[inline(always)]
unsafe fn row_exponentials<V: Reduced, const LOG: bool>(
    x: *const f32,
    out: *mut f32,
    len: usize,
    shift: &Shift<V>,
) -> f64 {
    let (steps, whole) = steps::<V>(len);
    // SAFETY: as demanded of the caller. The last vector is read before, and written after everything else.
    unsafe {
        let last = if whole < len { last_of::<V>(x, len, f32::NEG_INFINITY) } else { V::splat(0.0) };
        let mut sums = V::no_sums();
        for at in (0..steps).step_by(STEP * V::LANES) {
            let mut y = [V::splat(0.0); STEP];
            for (i, y) in y.iter_mut().enumerate() {
                *y = shift.exponential(V::load(x.add(at + i * V::LANES)));
                if !LOG {
                    y.store(out.add(at + i * V::LANES));
                }
            }
            sums = y[0].add(y[1]).add(y[2].add(y[3])).add_to(sums);
        }
        // As few as those of a step.
        let mut some = V::splat(0.0);
        for at in (steps..whole).step_by(V::LANES) {
            let y = shift.exponential(V::load(x.add(at)));
            if !LOG {
                y.store(out.add(at));
            }
            some = some.add(y);
        }
        if whole < len {
            let last = shift.exponential(last);
            if !LOG {
                store_last(last, out, len);
            }
            // A lane without an element held -inf, whose exponential is too small to affect a sum.
            some = some.add(if whole > 0 { last.last_lanes(len - whole) } else { last });
        }
        if steps < len {
            sums = some.add_to(sums);
        }
        V::total(sums)
    }
}

/// Multiplies the exponentials.
///
/// # Safety
/// As of `row_greatest`, and of what is written.
#[inline(always)]
unsafe fn row_quotients<V: Reduced>(out: *mut f32, len: usize, scale: V) {
    let (steps, whole) = steps::<V>(len);
    // SAFETY: as demanded of the caller. The last vector is read before, and written after everything else.
    unsafe {
        let last = if whole < len { last_of::<V>(out, len, 0.0) } else { scale };
        for at in (0..steps).step_by(STEP * V::LANES) {
            for i in 0..STEP {
                let y = out.add(at + i * V::LANES);
                V::load(y).mul(scale).store(y);
            }
        }
        for at in (steps..whole).step_by(V::LANES) {
            let y = out.add(at);
            V::load(y).mul(scale).store(y);
        }
        if whole < len {
            store_last(last.mul(scale), out, len);
        }
    }
}

/// Writes the logarithms: x without the maximum and that of the sum.
///
/// # Safety
/// As of `row_greatest`, and of what is written.
#[inline(always)]
unsafe fn row_logarithms<V: Reduced>(x: *const f32, out: *mut f32, len: usize, max: V, minus: V) {
    let (steps, whole) = steps::<V>(len);
    // SAFETY: as demanded of the caller. The last vector is read before, and written after everything else.
    unsafe {
        let last = if whole < len { last_of::<V>(x, len, 0.0) } else { max };
        for at in (0..steps).step_by(STEP * V::LANES) {
            for i in 0..STEP {
                let at = at + i * V::LANES;
                V::load(x.add(at)).sub(max).sub(minus).store(out.add(at));
            }
        }
        for at in (steps..whole).step_by(V::LANES) {
            V::load(x.add(at)).sub(max).sub(minus).store(out.add(at));
        }
        if whole < len {
            store_last(last.sub(max).sub(minus), out, len);
        }
    }
}

/// Softmax of a row with baseline instructions.
fn portable_row(log: bool, mut row: ElementPair<'_, f32, f32>) {
    let max = greatest(row.x());
    let mut sums = [0.0; LANES];
    if log {
        let mut block = [0.0; BLOCK];
        for x in row.x().chunks(BLOCK) {
            let y = &mut block[..x.len()];
            y.copy_from_slice(x);
            exponentials(y, max, &mut sums);
        }
        let minus = logarithm(max, sums.iter().sum());
        return row.copied().iter_mut().for_each(|x| *x = *x - max - minus);
    }
    row.for_chunks(BLOCK, |_, mut block| exponentials(block.copied(), max, &mut sums));
    let scale = scale(max, sums.iter().sum());
    row.y().iter_mut().for_each(|y| *y *= scale);
}

/// exp(x - max) * 2^64, and the sums with it. A separate function, so that the compiler sees one loop.
#[inline(never)]
fn exponentials(x: &mut [f32], max: f32, sums: &mut [f64; LANES]) {
    // SAFETY: plain floats need no instructions that a processor may lack.
    let shift = unsafe { Shift::of(max) };
    for x in x.iter_mut() {
        // SAFETY: as above.
        *x = unsafe { shift.exponential(*x) };
    }
    for y in x.chunks(LANES) {
        add_to(sums, y);
    }
}

#[inline(always)]
pub(super) fn add_to(sums: &mut [f64], y: &[f32]) {
    for (sum, &y) in sums.iter_mut().zip(y) {
        *sum += f64::from(y);
    }
}

/// Softmax, or its logarithm, of each column of a stripe, on a supported level.
pub fn columns(isa: Isa, log: bool, at: Stripe, rows: &mut StripeRows<'_, f32>) {
    levels::on(isa, OfColumns { log, at, rows });
}

struct OfColumns<'a, 'b> {
    log: bool,
    at: Stripe,
    rows: &'a mut StripeRows<'b, f32>,
}

impl LevelLoop for OfColumns<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        columns_of(self.log, self.at, self.rows);
    }
}

#[inline(always)]
fn columns_of(log: bool, at: Stripe, rows: &mut StripeRows<'_, f32>) {
    let mut max = [f32::NEG_INFINITY; WIDTH];
    for i in 0..at.len {
        for (max, &x) in max.iter_mut().zip(rows.row(i).x()) {
            // A NaN enters by the second condition and stays, because it fails both.
            *max = if x > *max || (x.is_nan() && !max.is_nan()) { x } else { *max };
        }
    }
    let (mut sums, mut line) = ([0.0; WIDTH], [0.0; WIDTH]);
    let line = &mut line[..at.width];
    for i in 0..at.len {
        let mut row = rows.row(i);
        line.copy_from_slice(row.x());
        for (y, &max) in line.iter_mut().zip(&max) {
            // SAFETY: plain floats need no instructions that a processor may lack.
            *y = unsafe { exp_of_difference(*y, max) };
        }
        add_to(&mut sums, line);
        if !log {
            row.y().copy_from_slice(line);
        }
    }
    if log {
        let mut minus = [0.0; WIDTH];
        for (minus, (&max, &sum)) in minus.iter_mut().zip(max.iter().zip(&sums)) {
            *minus = logarithm(max, sum);
        }
        for i in 0..at.len {
            let constants = max.iter().zip(&minus);
            for (x, (&max, &minus)) in rows.row(i).copied().iter_mut().zip(constants) {
                *x = *x - max - minus;
            }
        }
        return;
    }
    let mut scales = [0.0; WIDTH];
    for (scale_of, (&max, &sum)) in scales.iter_mut().zip(max.iter().zip(&sums)) {
        *scale_of = scale(max, sum);
    }
    for i in 0..at.len {
        rows.row(i).y().iter_mut().zip(&scales).for_each(|(y, scale)| *y *= scale);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// The exponential in plain floats, without the factor, in both ways.
    fn exp(x: f32, max: f32) -> [f32; 2] {
        // SAFETY: plain floats need nothing.
        unsafe { [exp_of_difference(x, max), Shift::of(max).exponential(x)].map(|y| y * 2f32.powi(-64)) }
    }

    #[test]
    fn exponentials_are_exact_to_a_few_units() {
        let mut worst = 0f64;
        for max in [0.0f32, 0.1, 1.0, 50.337, -3.7e4, 1e-20, 88.8, -150.001, 209.999_98, 210.0, -210.1, 1234.567] {
            for step in 0..100_000 {
                let x = max - step as f32 * 1.03e-3;
                let want = (f64::from(x) - f64::from(max)).exp();
                for y in exp(x, max) {
                    let error = (f64::from(y) - want).abs();
                    if want > f64::from(f32::MIN_POSITIVE) {
                        worst = worst.max(error / want);
                    } else {
                        assert!(error <= 1.5e-45, "{x} - {max}: {error}");
                    }
                }
            }
        }
        assert!(worst < 2e-7, "{worst}");
    }

    #[test]
    fn far_below_the_maximum_is_zero() {
        for (x, max) in [(f32::NEG_INFINITY, 0.0), (f32::MIN, f32::MAX), (-200.0, 0.0), (-104.0, 0.0), (-5.0, 209.9)] {
            assert_eq!(exp(x, max), [0.0; 2], "{x} - {max}");
        }
        for max in [f32::MAX, f32::MIN, 0.1, -209.987, 1e-30] {
            assert_eq!(exp(max, max), [1.0; 2], "{max}");
        }
        assert!(exp(-103.0, 0.0).iter().all(|&y| y > 0.0));
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
        rows(isa, false, ElementPair::apart(x, &mut out[..x.len()]), len);
        assert!(out[x.len()..].iter().all(|&guard| guard == 7.0));
        out.truncate(x.len());
        out
    }

    fn lengths() -> impl Iterator<Item = usize> {
        (1..=70).chain([127, 128, 129, 1000, 1023, 1024, 1025, 4097])
    }

    #[test]
    fn every_level_is_exact_to_a_millionth() {
        for isa in Isa::levels() {
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
        for isa in Isa::levels() {
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
        for isa in Isa::levels() {
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
        for isa in Isa::levels() {
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

//! Scales and zero points, on blocks of floats in the L1 cache. All levels give the same bits: none fuses an operation
//! that another one rounds twice.

#[cfg(target_arch = "x86_64")]
use super::convert::Converting;
use super::convert::Stored;
use super::isa::{Isa, SimdLevel};
#[cfg(target_arch = "x86_64")]
use super::lanes::Vector;
use super::real::Real;
use crate::ops::weir_rounding_value as Rounding;

/// x = x factor + summand.
pub fn scale(isa: Isa, x: &mut [f32], factor: f32, summand: f32) {
    map(isa, &ScaleShift(factor, summand), x, &[], &[]);
}

/// x without what is behind the point, or the integer below it, or the nearest one.
pub fn round(isa: Isa, x: &mut [f32], rounding: Rounding) {
    match rounding {
        Rounding::WEIR_ROUNDING_ZERO => map(isa, &Truncate, x, &[], &[]),
        Rounding::WEIR_ROUNDING_NEAREST => map(isa, &Nearest, x, &[], &[]),
        Rounding::WEIR_ROUNDING_FLOOR => map(isa, &Floor, x, &[], &[]),
    }
}

/// x = round(x / scale) + zero, of slices of the same length.
pub fn quantize(isa: Isa, x: &mut [f32], scale: &[f32], zero: &[f32]) {
    map(isa, &Quantize, x, scale, zero);
}

/// x = (x - zero) scale, of slices of the same length.
pub fn dequantize(isa: Isa, x: &mut [f32], scale: &[f32], zero: &[f32]) {
    map(isa, &Dequantize, x, scale, zero);
}

/// y = round(x / scale) + zero, of slices of the same length, in one pass.
pub fn quantize_by<T: Stored, U: Stored>(isa: Isa, x: &[T], y: &mut [U], (scale, zero): (f32, f32)) {
    between(isa, &QuantizeBy(scale, zero), x, y);
}

/// y = (x - zero) scale, of slices of the same length, in one pass.
pub fn dequantize_by<T: Stored, U: Stored>(isa: Isa, x: &[T], y: &mut [U], (scale, zero): (f32, f32)) {
    between(isa, &DequantizeBy(scale, zero), x, y);
}

trait Formula {
    /// Whether it uses a and b.
    const THREE: bool = true;

    /// # Safety
    /// As of `Number`.
    unsafe fn of<N: Real>(&self, x: N, a: N, b: N) -> N;
}

struct ScaleShift(f32, f32);
struct Truncate;
struct Nearest;
struct Floor;
struct Quantize;
struct Dequantize;
struct QuantizeBy(f32, f32);
struct DequantizeBy(f32, f32);

impl Formula for ScaleShift {
    const THREE: bool = false;

    #[inline(always)]
    unsafe fn of<N: Real>(&self, x: N, _: N, _: N) -> N {
        // SAFETY: as demanded of the caller.
        unsafe { x.mul(N::splat(self.0)).add(N::splat(self.1)) }
    }
}

macro_rules! roundings {
    ($($name:ident: $method:ident),*) => {$(
        impl Formula for $name {
            const THREE: bool = false;

            #[inline(always)]
            unsafe fn of<N: Real>(&self, x: N, _: N, _: N) -> N {
                // SAFETY: as demanded of the caller.
                unsafe { x.$method() }
            }
        }
    )*};
}

roundings!(Truncate: trunc, Nearest: round, Floor: floor);

impl Formula for Quantize {
    #[inline(always)]
    unsafe fn of<N: Real>(&self, x: N, scale: N, zero: N) -> N {
        // SAFETY: as demanded of the caller.
        unsafe { x.div(scale).round().add(zero) }
    }
}

impl Formula for Dequantize {
    #[inline(always)]
    unsafe fn of<N: Real>(&self, x: N, scale: N, zero: N) -> N {
        // SAFETY: as demanded of the caller.
        unsafe { x.sub(zero).mul(scale) }
    }
}

macro_rules! formulas_of_numbers {
    ($($name:ident: $formula:ident),*) => {$(
        impl Formula for $name {
            const THREE: bool = false;

            #[inline(always)]
            unsafe fn of<N: Real>(&self, x: N, _: N, _: N) -> N {
                // SAFETY: as demanded of the caller.
                unsafe { $formula.of(x, N::splat(self.0), N::splat(self.1)) }
            }
        }
    )*};
}

formulas_of_numbers!(QuantizeBy: Quantize, DequantizeBy: Dequantize);

fn map<F: Formula>(isa: Isa, f: &F, x: &mut [f32], a: &[f32], b: &[f32]) {
    isa.assert_detected();
    assert!(!F::THREE || (a.len(), b.len()) == (x.len(), x.len()));
    match isa.level {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the processor has AVX-512; the lengths were compared.
        SimdLevel::Avx512 => unsafe { map_avx512(f, x, a, b) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the processor has AVX2 and FMA; the lengths were compared.
        SimdLevel::Avx2 => unsafe { map_avx2(f, x, a, b) },
        _ => rest(f, x, a, b, 0),
    }
}

/// # Safety
/// The processor has AVX-512; a and b are as long as x, or unused.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn map_avx512<F: Formula>(f: &F, x: &mut [f32], a: &[f32], b: &[f32]) {
    // SAFETY: as demanded of the caller.
    unsafe { map_vectors::<F, std::arch::x86_64::__m512>(f, x, a, b) }
}

/// # Safety
/// The processor has AVX2 and FMA; a and b are as long as x, or unused.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn map_avx2<F: Formula>(f: &F, x: &mut [f32], a: &[f32], b: &[f32]) {
    // SAFETY: as demanded of the caller.
    unsafe { map_vectors::<F, std::arch::x86_64::__m256>(f, x, a, b) }
}

/// # Safety
/// As of those that call it.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn map_vectors<F: Formula, V: Vector + Real>(f: &F, x: &mut [f32], a: &[f32], b: &[f32]) {
    let whole = x.len() - x.len() % V::LANES;
    for at in (0..whole).step_by(V::LANES) {
        // SAFETY: vectors below `whole`.
        unsafe {
            let other = |from: &[f32]| if F::THREE { V::load(from.as_ptr().add(at)) } else { V::splat(0.0) };
            let address = x.as_mut_ptr().add(at);
            f.of(V::load(address), other(a), other(b)).store(address);
        }
    }
    rest(f, x, a, b, whole);
}

/// One element at a time, from `begin` on.
#[inline(always)]
fn rest<F: Formula>(f: &F, x: &mut [f32], a: &[f32], b: &[f32], begin: usize) {
    let x = &mut x[begin..];
    if !F::THREE {
        // SAFETY: plain floats need no instructions that a processor may lack.
        return x.iter_mut().for_each(|x| *x = unsafe { f.of(*x, 0.0, 0.0) });
    }
    for (x, (&a, &b)) in x.iter_mut().zip(a[begin..].iter().zip(&b[begin..])) {
        // SAFETY: as above.
        *x = unsafe { f.of(*x, a, b) };
    }
}

/// y = f(x), of slices of the same length and a formula of x alone.
fn between<F: Formula, T: Stored, U: Stored>(isa: Isa, f: &F, x: &[T], y: &mut [U]) {
    isa.assert_detected();
    assert_eq!(x.len(), y.len());
    match isa.level {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the processor has AVX-512.
        SimdLevel::Avx512 => unsafe { between_avx512(f, x, y) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the processor has AVX2, FMA and F16C.
        SimdLevel::Avx2 => unsafe { between_avx2(f, x, y) },
        _ => between_floats(f, x, y),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw")]
fn between_avx512<F: Formula, T: Stored, U: Stored>(f: &F, x: &[T], y: &mut [U]) {
    // SAFETY: the processor has AVX-512.
    unsafe { between_vectors::<F, T, U, std::arch::x86_64::__m512>(f, x, y) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
fn between_avx2<F: Formula, T: Stored, U: Stored>(f: &F, x: &[T], y: &mut [U]) {
    // SAFETY: the processor has AVX2, FMA and F16C.
    unsafe { between_vectors::<F, T, U, std::arch::x86_64::__m256>(f, x, y) }
}

/// Vectors from the front; the last one overlaps the one before.
///
/// # Safety
/// The processor has the instructions of V.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn between_vectors<F: Formula, T: Stored, U: Stored, V: Converting + Real>(f: &F, x: &[T], y: &mut [U]) {
    let len = x.len().min(y.len());
    if len < V::LANES {
        return between_floats(f, x, y);
    }
    let (x, y, last) = (x.as_ptr(), y.as_mut_ptr(), len - V::LANES);
    // A loop, not a closure: one of a formula that is long is not inlined.
    for at in (0..len).step_by(V::LANES).map(|at| at.min(last)) {
        // SAFETY: a vector begins at most LANES before the end.
        unsafe { f.of(V::load_stored(x.add(at)), V::splat(0.0), V::splat(0.0)).store_stored(y.add(at)) };
    }
}

#[inline(always)]
fn between_floats<F: Formula, T: Stored, U: Stored>(f: &F, x: &[T], y: &mut [U]) {
    // SAFETY: plain floats need no instructions that a processor may lack.
    y.iter_mut().zip(x).for_each(|(y, x)| *y = U::narrowed(unsafe { f.of(x.widened(), 0.0, 0.0) }));
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_level_and_length_gives_the_bits_of_the_definition() {
        let noise = |seed: u32| {
            let mut state = seed;
            move || {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 8) as f32 / (1 << 23) as f32 - 1.0
            }
        };
        for isa in Isa::levels() {
            for len in (0..70).chain([1024]) {
                let (mut x, mut scales, mut zeros) = (noise(1), noise(2), noise(3));
                let x: Vec<f32> = (0..len).map(|_| 1000.0 * x()).collect();
                let scales: Vec<f32> = (0..len).map(|_| 3.0 * scales()).collect();
                let zeros: Vec<f32> = (0..len).map(|_| (zeros() * 128.0).round_ties_even()).collect();
                let done = |f: &dyn Fn(&mut [f32])| {
                    let mut x = x.clone();
                    f(&mut x);
                    x
                };
                let scaled = done(&|x| scale(isa, x, 1.7, 0.3));
                let quantized = done(&|x| quantize(isa, x, &scales, &zeros));
                let back = done(&|x| dequantize(isa, x, &scales, &zeros));
                let (mut bytes, mut floats) = (vec![0u8; len], vec![0.0f32; len]);
                quantize_by(isa, &x, &mut bytes, (7.3, 128.0));
                dequantize_by(isa, &bytes, &mut floats, (0.03, 77.0));
                for (rounding, of) in [
                    (Rounding::WEIR_ROUNDING_ZERO, f32::trunc as fn(f32) -> f32),
                    (Rounding::WEIR_ROUNDING_NEAREST, f32::round_ties_even),
                    (Rounding::WEIR_ROUNDING_FLOOR, f32::floor),
                ] {
                    let mut y: Vec<f32> = x.iter().map(|x| (x / 4.0).round() / 4.0).collect();
                    let ends = [-0.0, 0.5, -0.5, 0.499_999_97, 8_388_607.5, -8_388_607.5, 3e9, f32::INFINITY, f32::MIN];
                    y.iter_mut().zip(ends).for_each(|(y, end)| *y = end);
                    let want: Vec<u32> = y.iter().map(|&x| of(x).to_bits()).collect();
                    round(isa, &mut y, rounding);
                    assert_eq!(y.iter().map(|y| y.to_bits()).collect::<Vec<_>>(), want, "{isa:?} {len} {rounding:?}");
                }
                for i in 0..len {
                    assert_eq!(scaled[i], x[i] * 1.7 + 0.3, "{isa:?} {len} {i}");
                    assert_eq!(quantized[i], (x[i] / scales[i]).round_ties_even() + zeros[i], "{isa:?} {len} {i}");
                    assert_eq!(back[i], (x[i] - zeros[i]) * scales[i], "{isa:?} {len} {i}");
                    let byte = (x[i] / 7.3).round_ties_even() + 128.0;
                    assert_eq!(bytes[i], byte.clamp(0.0, 255.0) as u8, "{isa:?} {len} {i}");
                    assert_eq!(floats[i], (f32::from(bytes[i]) - 77.0) * 0.03, "{isa:?} {len} {i}");
                }
            }
        }
    }
}

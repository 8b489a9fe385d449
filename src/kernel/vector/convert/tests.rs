//! Conversions against their definition in f64.
#![forbid(unsafe_code)]

use super::*;
use crate::memory::{Bf16, Bool, F16};

/// The value of an f16 or bf16 from its fields; `None` for a NaN.
fn value(bits: u16, exponent_bits: u32) -> Option<f64> {
    let fraction_bits = 15 - exponent_bits;
    let bias = (1 << (exponent_bits - 1)) - 1;
    let (exponent, fraction) = (i32::from(bits & 0x7fff) >> fraction_bits, bits & ((1 << fraction_bits) - 1));
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let unit = f64::powi(2.0, 1 - bias - fraction_bits as i32);
    Some(match exponent {
        0 => sign * f64::from(fraction) * unit,
        top if top == (1 << exponent_bits) - 1 => (fraction == 0).then_some(sign * f64::INFINITY)?,
        _ => sign * f64::from(fraction + (1 << fraction_bits)) * unit * f64::powi(2.0, exponent - 1),
    })
}

/// The nearest number of the type, ties to even, by bisection, as bits are ordered like values.
fn nearest(x: f32, exponent_bits: u32) -> u16 {
    let infinity = ((1u16 << exponent_bits) - 1) << (15 - exponent_bits);
    let (sign, x) = (if x.is_sign_negative() { 0x8000 } else { 0 }, f64::from(x.abs()));
    let (mut low, mut high) = (0, infinity);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if value(middle, exponent_bits).unwrap() <= x { low = middle } else { high = middle }
    }
    // For rounding, infinity is the number after the greatest one.
    let next = |bits| {
        if bits == infinity { f64::powi(2.0, 1 << (exponent_bits - 1)) } else { value(bits, exponent_bits).unwrap() }
    };
    let (below, above) = (x - next(low), next(high) - x);
    let up = above < below || above == below && high % 2 == 0;
    sign | if up { high } else { low }
}

/// All kinds of floats: each f16 and bf16 number, values between and beside two of them, integers and their ties,
/// limits of the integer types, and noise.
fn floats() -> Vec<f32> {
    let mut all = vec![];
    for bits in (0..=0x7fff).step_by(if cfg!(debug_assertions) { 7 } else { 1 }) {
        let pair = |exponent_bits| (value(bits, exponent_bits), value(bits.wrapping_add(1), exponent_bits));
        for (x, next) in [pair(5), pair(8)] {
            if let (Some(x), Some(next)) = (x, next) {
                let tie = ((x + next) / 2.0) as f32;
                all.extend([x as f32, tie, tie.next_up(), tie.next_down()]);
            }
        }
    }
    for i in -600..600 {
        all.extend([i as f32, i as f32 + 0.5, i as f32 * 0.5 + 0.499_999_97]);
    }
    for limit in
        [127.0f32, 128.0, 255.0, 256.0, 65504.0, 65520.0, 8_388_608.0, 16_777_216.0, 2_147_483_648.0, 4e9, f32::MAX]
    {
        all.extend([limit, limit.next_up(), limit.next_down(), limit - 0.5, limit + 0.5]);
    }
    let mut state = 1u32;
    for _ in 0..20_000 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        all.push(f32::from_bits(state));
    }
    all.extend([
        0.0,
        f32::INFINITY,
        f32::NAN,
        f32::from_bits(0x7f80_0001),
        f32::from_bits(0x7fff_ffff),
        1e-45,
        f32::MIN_POSITIVE,
    ]);
    let negative: Vec<f32> = all.iter().map(|x| -x).collect();
    all.into_iter().chain(negative).collect()
}

fn narrowed<T: Stored + Default>(isa: Isa, x: &[f32]) -> Vec<T> {
    let mut out = vec![T::default(); x.len()];
    narrow(isa, x, &mut out);
    out
}

fn widened<T: Stored>(isa: Isa, x: &[T]) -> Vec<f32> {
    let mut out = vec![7.0; x.len()];
    widen(isa, x, &mut out);
    out
}

#[test]
fn halves_are_read_exactly_on_every_level() {
    let bits: Vec<u16> = (0..=u16::MAX).collect();
    for isa in Isa::levels() {
        let f16 = widened(isa, &bits.iter().map(|&bits| F16(bits)).collect::<Vec<_>>());
        let bf16 = widened(isa, &bits.iter().map(|&bits| Bf16(bits)).collect::<Vec<_>>());
        for (i, &bits) in bits.iter().enumerate() {
            for (got, exponent_bits) in [(f16[i], 5), (bf16[i], 8)] {
                match value(bits, exponent_bits) {
                    Some(want) => {
                        assert_eq!(got.to_bits(), (want as f32).to_bits(), "{isa:?} {exponent_bits} {bits:04x}")
                    }
                    None => {
                        assert!(got.is_nan() && got.to_bits() & 0x40_0000 != 0, "{isa:?} {exponent_bits} {bits:04x}")
                    }
                }
            }
        }
    }
}

#[test]
fn halves_are_the_nearest_numbers_on_every_level() {
    let x = floats();
    for isa in Isa::levels() {
        let (f16, bf16) = (narrowed::<F16>(isa, &x), narrowed::<Bf16>(isa, &x));
        for (i, &x) in x.iter().enumerate() {
            for (got, exponent_bits) in [(f16[i].0, 5), (bf16[i].0, 8)] {
                if x.is_nan() {
                    let quiet = 1 << (14 - exponent_bits);
                    let same_sign = (got >> 15 == 1) == x.is_sign_negative();
                    let good = value(got, exponent_bits).is_none() && got & quiet != 0 && same_sign;
                    assert!(good, "{isa:?} {exponent_bits}: {got:04x} for NaN {:08x}", x.to_bits());
                } else {
                    let want = nearest(x, exponent_bits);
                    assert_eq!(got, want, "{isa:?} {exponent_bits}: {got:04x}, expected {want:04x} for {x:e}");
                }
            }
        }
    }
}

#[test]
fn integers_are_rounded_and_saturate_on_every_level() {
    let x = floats();
    for isa in Isa::levels() {
        let (s32, s8, u8) = (narrowed::<i32>(isa, &x), narrowed::<i8>(isa, &x), narrowed::<u8>(isa, &x));
        let (bools, s64) = (narrowed::<Bool>(isa, &x), narrowed::<i64>(isa, &x));
        for (i, &x) in x.iter().enumerate() {
            // Conversions from f64 saturate and turn NaN into 0.
            let even = f64::from(x).round_ties_even();
            assert_eq!((s32[i], s8[i], u8[i]), (even as i32, even as i8, even as u8), "{isa:?} {x:e}");
            assert_eq!(s64[i], even as i64, "{isa:?} {x:e}");
            assert_eq!(bools[i].0, u8::from(x != 0.0), "{isa:?} {x:e}");
        }
    }
}

#[test]
fn integers_are_read_on_every_level() {
    let bytes: Vec<u8> = (0..=255).collect();
    let signed: Vec<i8> = bytes.iter().map(|&byte| byte as i8).collect();
    let bools: Vec<Bool> = bytes.iter().map(|&byte| Bool(byte)).collect();
    let mut words: Vec<i32> = (0..31).flat_map(|i| [1 << i, (1 << i) + 1, -(1 << i) - 1]).collect();
    words.extend([16_777_217, 16_777_219, i32::MAX, i32::MIN, 0]);
    for isa in Isa::levels() {
        assert_eq!(widened(isa, &bytes), bytes.iter().map(|&x| f32::from(x)).collect::<Vec<_>>(), "{isa:?}");
        assert_eq!(widened(isa, &signed), signed.iter().map(|&x| f32::from(x)).collect::<Vec<_>>(), "{isa:?}");
        assert_eq!(widened(isa, &words), words.iter().map(|&x| f64::from(x) as f32).collect::<Vec<_>>(), "{isa:?}");
        let longs: Vec<i64> = (0..63).flat_map(|i| [1 << i, (1 << i) + 1, -(1i64 << i) - 1]).collect();
        assert_eq!(widened(isa, &longs), longs.iter().map(|&x| x as f32).collect::<Vec<_>>(), "{isa:?}");
        assert_eq!(widened(isa, &bools), bytes.iter().map(|&x| f32::from(x.min(1))).collect::<Vec<_>>(), "{isa:?}");
    }
}

/// Every number of both types, or of the first and its limits, at each length.
fn check_exchange<T: Whole, U: Whole + Default + PartialEq + std::fmt::Debug>(
    numbers: &[i64],
    least: i64,
    greatest: i64,
    bits: u32,
) {
    let x: Vec<T> = numbers.iter().map(|&x| T::wrapped(x)).collect();
    for isa in Isa::levels() {
        for (saturates, len) in [true, false].into_iter().flat_map(|saturates| [(saturates, 7), (saturates, x.len())]) {
            let mut y = vec![U::default(); len];
            exchange(isa, &x[..len], &mut y, saturates);
            for (x, y) in x.iter().zip(&y) {
                let x = x.wide();
                let low = x << (64 - bits);
                let wrapped = if least < 0 { low >> (64 - bits) } else { (low as u64 >> (64 - bits)) as i64 };
                let want = if saturates { x.clamp(least, greatest) } else { wrapped };
                assert_eq!(y.wide(), want, "{isa:?} {x} {saturates}");
            }
            let mut truths = vec![Bool(9); len];
            exchange(isa, &x[..len], &mut truths, saturates);
            let want: Vec<Bool> = x[..len].iter().map(|x| Bool(u8::from(x.wide() != 0))).collect();
            assert_eq!(truths, want, "{isa:?}");
        }
    }
}

#[test]
fn integers_wrap_or_saturate_in_other_types() {
    let limits = [0, 1 << 7, 1 << 8, 1 << 15, 1 << 31, 1 << 32, i64::MAX, i64::MIN, 1 << 53];
    let numbers = limits.into_iter().flat_map(|x: i64| [x, x.wrapping_neg()]);
    let numbers: Vec<i64> =
        numbers.flat_map(|x: i64| (-3..4).map(move |i| x.wrapping_add(i))).chain(-300..300).collect();
    fn from<T: Whole>(numbers: &[i64]) {
        check_exchange::<T, i64>(numbers, i64::MIN, i64::MAX, 64);
        check_exchange::<T, i32>(numbers, i32::MIN.into(), i32::MAX.into(), 32);
        check_exchange::<T, i8>(numbers, i8::MIN.into(), i8::MAX.into(), 8);
        check_exchange::<T, u8>(numbers, 0, 255, 8);
    }
    from::<i64>(&numbers);
    from::<i32>(&numbers);
    from::<i8>(&numbers);
    from::<u8>(&numbers);
    from::<Bool>(&numbers);
}

/// Every length, so that all ends of loops are covered: nothing is left out, nothing written behind the end, and the
/// bits are those of the portable level, NaNs included.
fn check_lengths<T: Stored + Default + PartialEq + std::fmt::Debug>(x: &[f32]) {
    for isa in Isa::levels() {
        for (len, start) in (0..70).flat_map(|len| [0, 1, 37, 1000].map(|start| (len, start))) {
            let x = &x[start * 37..][..len];
            let mut stored = vec![T::default(); len + 40];
            narrow(isa, x, &mut stored[..len]);
            assert!(stored[len..].iter().all(|guard| *guard == T::default()), "{isa:?} {len}");
            stored.truncate(len);
            assert_eq!(stored, narrowed::<T>(Isa::PORTABLE, x), "{isa:?} {len}");
            let mut wide = vec![7.0; len + 40];
            widen(isa, &stored, &mut wide[..len]);
            assert!(wide[len..].iter().all(|&guard| guard == 7.0), "{isa:?} {len}");
            wide.truncate(len);
            let bits = |x: &[f32]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&wide), bits(&widened(Isa::PORTABLE, &stored)), "{isa:?} {len}");
        }
    }
}

#[test]
fn every_length_ends_well() {
    let x: Vec<f32> = floats().into_iter().rev().step_by(3).collect();
    check_lengths::<F16>(&x);
    check_lengths::<Bf16>(&x);
    check_lengths::<i64>(&x);
    check_lengths::<i32>(&x);
    check_lengths::<i8>(&x);
    check_lengths::<u8>(&x);
    check_lengths::<Bool>(&x);
}

#[test]
fn levels_make_the_same_nan() {
    let x: Vec<f32> = floats().into_iter().filter(|x| x.is_nan()).collect();
    assert!(x.len() > 32);
    for isa in Isa::levels() {
        assert_eq!(narrowed::<F16>(isa, &x), narrowed::<F16>(Isa::PORTABLE, &x), "{isa:?}");
        assert_eq!(narrowed::<Bf16>(isa, &x), narrowed::<Bf16>(Isa::PORTABLE, &x), "{isa:?}");
    }
}

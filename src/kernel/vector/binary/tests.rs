//! Binary elementwise functions at every level: rows of every kind and length, in place or not.
#![forbid(unsafe_code)]

use super::integers::of_slices::{compare_integers, integers};
use super::*;
use crate::memory::Bool;
use crate::ops::weir_overflow_value as Overflow;

const OPS: [Op; 13] = [
    Op::WEIR_BINARY_ADD,
    Op::WEIR_BINARY_SUB,
    Op::WEIR_BINARY_MUL,
    Op::WEIR_BINARY_DIV,
    Op::WEIR_BINARY_MIN,
    Op::WEIR_BINARY_MAX,
    Op::WEIR_BINARY_EQ,
    Op::WEIR_BINARY_NE,
    Op::WEIR_BINARY_LT,
    Op::WEIR_BINARY_LE,
    Op::WEIR_BINARY_GT,
    Op::WEIR_BINARY_GE,
    Op::WEIR_BINARY_REM,
];

fn reference(op: Op, a: f32, b: f32) -> f32 {
    let truth = |holds: bool| f32::from(u8::from(holds));
    match op {
        Op::WEIR_BINARY_ADD => a + b,
        Op::WEIR_BINARY_SUB => a - b,
        Op::WEIR_BINARY_MUL => a * b,
        Op::WEIR_BINARY_DIV => a / b,
        Op::WEIR_BINARY_MIN | Op::WEIR_BINARY_MAX if a.is_nan() || b.is_nan() => f32::NAN,
        Op::WEIR_BINARY_MIN => a.min(b),
        Op::WEIR_BINARY_MAX => a.max(b),
        Op::WEIR_BINARY_POW => a.powf(b),
        Op::WEIR_BINARY_EQ => truth(a == b),
        Op::WEIR_BINARY_NE => truth(a != b),
        Op::WEIR_BINARY_LT => truth(a < b),
        Op::WEIR_BINARY_LE => truth(a <= b),
        Op::WEIR_BINARY_GT => truth(a > b),
        Op::WEIR_BINARY_GE => truth(a >= b),
        Op::WEIR_BINARY_REM => a % b,
    }
}

/// Numbers of which many pairs are equal, unordered, or have a NaN result.
fn numbers(len: usize, mut state: u32) -> Vec<f32> {
    const SPECIAL: [f32; 8] = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, 1.0, -1.0, 3e38, 1e-40];
    (0..len)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let kind = (state >> 8) as usize % 16;
            SPECIAL.get(kind).copied().unwrap_or((state >> 16) as f32 / 65_536.0 * 7.0 - 3.0)
        })
        .collect()
}

fn same(got: f32, want: f32) -> bool {
    got == want || got.is_nan() && want.is_nan()
}

#[test]
fn every_level_and_length_does_what_floats_do() {
    for isa in Isa::levels() {
        for (op, len) in OPS.into_iter().flat_map(|op| (0..70).chain([300]).map(move |len| (op, len))) {
            let (a, b) = (numbers(len, 1), numbers(len, 2));
            let mut y = [b.as_slice(), &[7.0; 20]].concat();
            block(isa, &Binary::of(op), &a, &mut y[..len]);
            assert!(y[len..].iter().all(|&guard| guard == 7.0), "{isa:?} {op:?} {len}: written outside");
            for i in 0..len {
                let want = reference(op, a[i], b[i]);
                assert!(same(y[i], want), "{isa:?} {op:?} {}, {}: {} for {want}", a[i], b[i], y[i]);
            }
        }
    }
}

const ROUNDINGS: [Rounding; 3] =
    [Rounding::WEIR_ROUNDING_ZERO, Rounding::WEIR_ROUNDING_NEAREST, Rounding::WEIR_ROUNDING_FLOOR];
const OVERFLOWS: [Overflow; 2] = [Overflow::WEIR_OVERFLOW_WRAP, Overflow::WEIR_OVERFLOW_SATURATE];
const OF_INTEGERS: [Op; 7] = [
    Op::WEIR_BINARY_ADD,
    Op::WEIR_BINARY_SUB,
    Op::WEIR_BINARY_MUL,
    Op::WEIR_BINARY_DIV,
    Op::WEIR_BINARY_MIN,
    Op::WEIR_BINARY_MAX,
    Op::WEIR_BINARY_REM,
];

/// The integer quotient of a divisor that is not 0, from the definition of each rounding.
fn rounded_quotient(a: i128, b: i128, rounding: Rounding) -> i128 {
    let floor = a.div_euclid(b) - i128::from(b < 0 && a.rem_euclid(b) != 0);
    let (rest, of) = ((a - floor * b).abs(), b.abs());
    match rounding {
        Rounding::WEIR_ROUNDING_FLOOR => floor,
        Rounding::WEIR_ROUNDING_ZERO => floor + i128::from(rest != 0 && floor < 0),
        Rounding::WEIR_ROUNDING_NEAREST => floor + i128::from(2 * rest > of || 2 * rest == of && floor % 2 != 0),
    }
}

/// The exact result, brought into the type.
fn integer_reference(of: &Binary, a: i128, b: i128, least: i128, greatest: i128) -> i128 {
    let saturates = of.overflow == Overflow::WEIR_OVERFLOW_SATURATE;
    let value = match of.op {
        Op::WEIR_BINARY_ADD => a + b,
        Op::WEIR_BINARY_SUB => a - b,
        Op::WEIR_BINARY_MUL => a * b,
        Op::WEIR_BINARY_DIV if b == 0 && saturates => a.signum() * (1 << 100),
        Op::WEIR_BINARY_DIV | Op::WEIR_BINARY_REM if b == 0 => 0,
        Op::WEIR_BINARY_DIV => rounded_quotient(a, b, of.rounding),
        Op::WEIR_BINARY_REM => a - b * rounded_quotient(a, b, of.rounding),
        Op::WEIR_BINARY_MIN => a.min(b),
        _ => a.max(b),
    };
    if saturates { value.clamp(least, greatest) } else { (value - least).rem_euclid(greatest - least + 1) + least }
}

/// Every function with every setting at every level, for all pairs of these numbers.
fn check_integers<T: Integer + Into<i128> + std::fmt::Debug>(numbers: &[T], least: T, greatest: T) {
    let (least, greatest) = (least.into(), greatest.into());
    let pairs = numbers.iter().flat_map(|&a| numbers.iter().map(move |&b| (a, b)));
    let (a, b): (Vec<T>, Vec<T>) = pairs.unzip();
    let ofs = OF_INTEGERS.into_iter().flat_map(|op| {
        ROUNDINGS.into_iter().flat_map(move |rounding| OVERFLOWS.map(|overflow| Binary { op, rounding, overflow }))
    });
    for of in ofs {
        let want: Vec<i128> =
            a.iter().zip(&b).map(|(&a, &b)| integer_reference(&of, a.into(), b.into(), least, greatest)).collect();
        for isa in Isa::levels() {
            let mut y = b.clone();
            integers(isa, &of, &a, &mut y);
            for (i, &y) in y.iter().enumerate() {
                assert_eq!(y.into(), want[i], "{isa:?} {of:?} of {:?} and {:?}", a[i], b[i]);
            }
        }
    }
    for isa in Isa::levels() {
        for op in &OPS[6..12] {
            let mut y = vec![Bool(9); a.len()];
            compare_integers(isa, *op, &a, &b, &mut y);
            let want = |(a, b): (&T, &T)| match op {
                Op::WEIR_BINARY_EQ => a == b,
                Op::WEIR_BINARY_NE => a != b,
                Op::WEIR_BINARY_LT => a < b,
                Op::WEIR_BINARY_LE => a <= b,
                Op::WEIR_BINARY_GT => a > b,
                _ => a >= b,
            };
            let want: Vec<Bool> = a.iter().zip(&b).map(|pair| Bool(u8::from(want(pair)))).collect();
            assert!(y == want, "{isa:?} {op:?}");
        }
    }
}

#[test]
fn integers_are_exact_and_wrap_or_saturate_with_each_rounding() {
    check_integers::<i8>(&(i8::MIN..=i8::MAX).collect::<Vec<_>>(), i8::MIN, i8::MAX);
    check_integers::<u8>(&(0..=u8::MAX).collect::<Vec<_>>(), 0, u8::MAX);
    let near = |limits: &[i64]| limits.iter().flat_map(|x| (-3..4).map(move |i| x.wrapping_add(i))).collect::<Vec<_>>();
    let words = near(&[0, 10, -10, 46_341, -46_341, 1 << 24, 1 << 30, i32::MAX.into(), i32::MIN.into()]);
    let words: Vec<i32> = words.into_iter().map(|x| x as i32).collect();
    check_integers(&words, i32::MIN, i32::MAX);
    let longs = near(&[0, 10, -10, 1 << 32, -(1 << 31), 3_037_000_500, 1 << 53, 1 << 62, i64::MAX, i64::MIN]);
    check_integers(&longs, i64::MIN, i64::MAX);
}

#[test]
fn defaults_are_those_of_c_and_numpy() {
    let of = |op, a: i32, b: i32| {
        let mut y = [b];
        integers(Isa::best(), &Binary::of(op), &[a], &mut y);
        y[0]
    };
    assert_eq!((of(Op::WEIR_BINARY_DIV, 7, 2), of(Op::WEIR_BINARY_DIV, -7, 2)), (3, -3));
    assert_eq!((of(Op::WEIR_BINARY_REM, 7, 2), of(Op::WEIR_BINARY_REM, -7, 2)), (1, -1));
    assert_eq!((of(Op::WEIR_BINARY_DIV, 7, 0), of(Op::WEIR_BINARY_DIV, i32::MIN, -1)), (0, i32::MIN));
    assert_eq!(of(Op::WEIR_BINARY_ADD, i32::MAX, 1), i32::MIN);
    let mut y = [100u8];
    integers(Isa::best(), &Binary::of(Op::WEIR_BINARY_ADD), &[200], &mut y);
    assert_eq!(y, [44]);
}

#[test]
fn remainders_of_floats_are_those_of_each_rounding() {
    // Multiples of 1/64, whose remainders integers say exactly.
    let numbers: Vec<f32> =
        (-300..300).map(|i| (i * i % 977 - 400) as f32 / 64.0 * if i < 0 { -1.0 } else { 1.0 }).collect();
    let numbers: Vec<f32> = numbers.into_iter().step_by(3).chain([0.5, -0.5, 1.5, 2.5, -2.5, 1.0, -1.0]).collect();
    let nonzero = numbers.iter().filter(|&&b| b != 0.0);
    let pairs = numbers.iter().flat_map(|&a| nonzero.clone().map(move |&b| (a, b)));
    let (a, b): (Vec<f32>, Vec<f32>) = pairs.unzip();
    let of = |rounding| Binary { rounding, ..Binary::of(Op::WEIR_BINARY_REM) };
    for isa in Isa::levels() {
        for rounding in ROUNDINGS {
            let mut y = b.clone();
            block(isa, &of(rounding), &a, &mut y);
            for (i, &y) in y.iter().enumerate() {
                let [c, d] = [a[i], b[i]].map(|x| (x * 64.0) as i128);
                let want = (c - d * rounded_quotient(c, d, rounding)) as f32 / 64.0;
                assert!(y == want, "{isa:?} {rounding:?} of {} and {}: {y} for {want}", a[i], b[i]);
            }
        }
        let one = |rounding, a: f32, b: f32| {
            let mut y = [b];
            block(isa, &of(rounding), &[a], &mut y);
            y[0]
        };
        use Rounding::*;
        for rounding in ROUNDINGS {
            for (a, b) in [(1.0, 0.0), (f32::INFINITY, 2.0), (f32::NAN, 1.0), (1.0, f32::NAN)] {
                assert!(one(rounding, a, b).is_nan(), "{rounding:?} of {a} and {b}");
            }
            assert_eq!(one(rounding, 2.0, f32::INFINITY), 2.0);
            assert!(one(rounding, f32::MAX, 1e-45) == 0.0);
        }
        assert_eq!(one(WEIR_ROUNDING_ZERO, -4.0, 2.0).to_bits(), (-0.0f32).to_bits());
        assert_eq!(one(WEIR_ROUNDING_FLOOR, -4.0, 2.0).to_bits(), 0);
        assert_eq!(one(WEIR_ROUNDING_NEAREST, -4.0, 2.0).to_bits(), (-0.0f32).to_bits());
        assert_eq!(one(WEIR_ROUNDING_FLOOR, -2.0, f32::INFINITY), f32::INFINITY);
    }
}

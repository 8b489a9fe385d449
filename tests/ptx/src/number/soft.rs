//! Floating point by integers: exact values, and rounding them into any format in any direction.

/// The four directions of rounding: .rn .rz .rm .rp.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rounding {
    Nearest,
    Zero,
    Down,
    Up,
}

/// A binary format: sign, exponent, fraction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Format {
    pub fraction: u32,
    pub exponent: u32,
    /// The NaN that operations make.
    pub nan: u64,
}

pub const F16: Format = Format { fraction: 10, exponent: 5, nan: 0x7FFF };
pub const BF16: Format = Format { fraction: 7, exponent: 8, nan: 0x7FFF };
pub const F32: Format = Format { fraction: 23, exponent: 8, nan: 0x7FFF_FFFF };
pub const F64: Format = Format { fraction: 52, exponent: 11, nan: 0xFFF8_0000_0000_0000 };

impl Format {
    fn bias(self) -> i32 {
        (1 << (self.exponent - 1)) - 1
    }

    pub fn sign_bit(self) -> u64 {
        1 << (self.fraction + self.exponent)
    }

    fn infinite(self) -> u64 {
        ((1 << self.exponent) - 1) << self.fraction
    }

    pub fn is_nan(self, bits: u64) -> bool {
        bits & (self.sign_bit() - 1) > self.infinite()
    }
}

/// What bits in a format stand for.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Value {
    Nan,
    Infinite {
        negative: bool,
    },
    Zero {
        negative: bool,
    },
    /// `mantissa * 2^exponent`, or more than that and less than one more mantissa if `inexact`.
    Finite {
        negative: bool,
        exponent: i32,
        mantissa: u128,
        inexact: bool,
    },
}
use Value::{Finite, Infinite, Nan, Zero};

impl Value {
    pub fn exact(negative: bool, exponent: i32, mantissa: u128) -> Self {
        if mantissa == 0 { Zero { negative } } else { Finite { negative, exponent, mantissa, inexact: false } }
    }

    pub fn of(bits: u64, format: Format) -> Self {
        let negative = bits & format.sign_bit() != 0;
        let fraction = bits & ((1 << format.fraction) - 1);
        let biased = (bits >> format.fraction) & ((1 << format.exponent) - 1);
        let least = 1 - format.bias() - format.fraction as i32;
        if biased == (1 << format.exponent) - 1 {
            if fraction == 0 { Infinite { negative } } else { Nan }
        } else if biased == 0 {
            Self::exact(negative, least, fraction.into())
        } else {
            Self::exact(negative, least + biased as i32 - 1, (fraction | 1 << format.fraction).into())
        }
    }

    pub fn negative(self) -> bool {
        match self {
            Nan => false,
            Infinite { negative } | Zero { negative } | Finite { negative, .. } => negative,
        }
    }

    pub fn negated(self) -> Self {
        match self {
            Nan => Nan,
            Infinite { negative } => Infinite { negative: !negative },
            Zero { negative } => Zero { negative: !negative },
            Finite { negative, exponent, mantissa, inexact } => {
                Finite { negative: !negative, exponent, mantissa, inexact }
            }
        }
    }

    /// The nearest value in `format`, as bits.
    pub fn round(self, format: Format, rounding: Rounding) -> u64 {
        let sign = |negative| if negative { format.sign_bit() } else { 0 };
        let (negative, exponent, mantissa, inexact) = match self {
            Nan => return format.nan,
            Infinite { negative } => return sign(negative) | format.infinite(),
            Zero { negative } => return sign(negative),
            Finite { negative, exponent, mantissa, inexact } => (negative, exponent, mantissa, inexact),
        };
        // The first bit goes to bit 126, so that what is to be cut off lies to the right.
        let lift = mantissa.leading_zeros() as i32 - 1;
        let (mantissa, exponent) = (mantissa << lift, exponent - lift);
        let least = 1 - format.bias() - format.fraction as i32;
        let mut last = (exponent + 126 - format.fraction as i32).max(least);
        let mut kept = rounded(mantissa, (last - exponent) as u32, inexact, negative, rounding) as u64;
        if kept >> (format.fraction + 1) != 0 {
            kept >>= 1;
            last += 1;
        }
        let biased = if kept >> format.fraction == 0 { 0 } else { last - least + 1 };
        if biased >= (1 << format.exponent) - 1 {
            let beyond = match rounding {
                Rounding::Nearest => true,
                Rounding::Zero => false,
                Rounding::Down => negative,
                Rounding::Up => !negative,
            };
            return sign(negative) | (format.infinite() - u64::from(!beyond));
        }
        sign(negative) | (biased as u64) << format.fraction | (kept & ((1 << format.fraction) - 1))
    }

    /// Rounds to an integer; its magnitude, at most 2^127, saturates there.
    pub fn to_integer(self, rounding: Rounding) -> u128 {
        const MOST: u128 = 1 << 127;
        match self {
            Nan | Zero { .. } => 0,
            Infinite { .. } => MOST,
            Finite { negative, exponent, mantissa, inexact } => {
                if exponent >= 0 {
                    if exponent as u32 >= mantissa.leading_zeros() { MOST } else { mantissa << exponent }
                } else {
                    rounded(mantissa, exponent.unsigned_abs(), inexact, negative, rounding)
                }
            }
        }
    }
}

/// Cuts `cut` bits off and rounds.
fn rounded(mantissa: u128, cut: u32, inexact: bool, negative: bool, rounding: Rounding) -> u128 {
    if cut == 0 && !inexact {
        return mantissa;
    }
    let (kept, rest, half) = match cut {
        0 => (mantissa, 0, 1),
        1..=127 => (mantissa >> cut, mantissa & ((1 << cut) - 1), 1 << (cut - 1)),
        // Everything is cut off, and less than half of the last place, as bit 127 is never set.
        _ => (0, u128::from(mantissa != 0), u128::MAX),
    };
    let lost = rest != 0 || inexact;
    let up = match rounding {
        Rounding::Nearest => rest > half || rest == half && cut > 0 && (inexact || kept & 1 == 1),
        Rounding::Zero => false,
        Rounding::Down => negative && lost,
        Rounding::Up => !negative && lost,
    };
    kept + u128::from(up)
}

/// The sum of two exact values; `rounding` decides only the sign of an exact zero.
pub fn add(a: Value, b: Value, rounding: Rounding) -> Value {
    match (a, b) {
        (Nan, _) | (_, Nan) => Nan,
        (Infinite { negative: x }, Infinite { negative: y }) => {
            if x == y {
                a
            } else {
                Nan
            }
        }
        (Infinite { .. }, _) => a,
        (_, Infinite { .. }) => b,
        (Zero { negative: x }, Zero { negative: y }) => {
            Zero { negative: if x == y { x } else { rounding == Rounding::Down } }
        }
        (Zero { .. }, _) => b,
        (_, Zero { .. }) => a,
        (Finite { .. }, Finite { .. }) => sum(a, b, rounding),
    }
}

/// Both finite and exact. The larger has its first bit at 125; what the smaller loses on the right becomes `inexact`.
/// If it loses anything, the larger exceeds it so much that at most one bit cancels.
fn sum(a: Value, b: Value, rounding: Rounding) -> Value {
    let lifted = |value| match value {
        Finite { negative, exponent, mantissa, .. } => {
            let lift = mantissa.leading_zeros() as i32 - 2;
            (exponent - lift, mantissa << lift, negative)
        }
        _ => unreachable!("finite values only"),
    };
    let (mut large, mut small) = (lifted(a), lifted(b));
    if (small.0, small.1) > (large.0, large.1) {
        std::mem::swap(&mut large, &mut small);
    }
    let distance = (large.0 - small.0) as u32;
    let shifted = small.1.checked_shr(distance).unwrap_or(0);
    let inexact = shifted.checked_shl(distance).unwrap_or(0) != small.1;
    let mantissa = if large.2 == small.2 { large.1 + shifted } else { large.1 - shifted - u128::from(inexact) };
    if mantissa == 0 {
        return Zero { negative: rounding == Rounding::Down };
    }
    Finite { negative: large.2, exponent: large.0, mantissa, inexact }
}

/// The exact product; the mantissas together must have at most 126 bits.
pub fn multiply(a: Value, b: Value) -> Value {
    let negative = a.negative() != b.negative();
    match (a, b) {
        (Nan, _) | (_, Nan) | (Infinite { .. }, Zero { .. }) | (Zero { .. }, Infinite { .. }) => Nan,
        (Infinite { .. }, _) | (_, Infinite { .. }) => Infinite { negative },
        (Zero { .. }, _) | (_, Zero { .. }) => Zero { negative },
        (Finite { exponent: e, mantissa: m, .. }, Finite { exponent: f, mantissa: n, .. }) => {
            Value::exact(negative, e + f, m * n)
        }
    }
}

/// The quotient to at least 64 bits.
pub fn divide(a: Value, b: Value) -> Value {
    let negative = a.negative() != b.negative();
    match (a, b) {
        (Nan, _) | (_, Nan) | (Infinite { .. }, Infinite { .. }) | (Zero { .. }, Zero { .. }) => Nan,
        (Infinite { .. }, _) | (_, Zero { .. }) => Infinite { negative },
        (Zero { .. }, _) | (_, Infinite { .. }) => Zero { negative },
        (Finite { exponent: e, mantissa: m, .. }, Finite { exponent: f, mantissa: n, .. }) => {
            let lift = m.leading_zeros() as i32 - 1;
            let (m, e) = (m << lift, e - lift);
            Finite { negative, exponent: e - f, mantissa: m / n, inexact: m % n != 0 }
        }
    }
}

/// The square root to at least 60 bits.
pub fn square_root(a: Value) -> Value {
    match a {
        Zero { .. } | Nan | Infinite { negative: false } => a,
        Infinite { negative: true } | Finite { negative: true, .. } => Nan,
        Finite { exponent, mantissa, .. } => {
            let mut lift = mantissa.leading_zeros() as i32 - 1;
            if (exponent - lift) % 2 != 0 {
                lift -= 1;
            }
            let square = mantissa << lift;
            let root = square.isqrt();
            Finite { negative: false, exponent: (exponent - lift) / 2, mantissa: root, inexact: root * root != square }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::random::Random;

    /// Against the processor, which rounds to nearest.
    #[test]
    fn nearest_is_what_the_processor_computes() {
        let mut random = Random::new(1);
        let n = Rounding::Nearest;
        for _ in 0..200_000 {
            let (a, b, c) = (random.single(), random.single(), random.single());
            let (x, y, z) = (Value::of(a, F32), Value::of(b, F32), Value::of(c, F32));
            let f = |bits: u64| f32::from_bits(bits as u32);
            let same = |soft: Value, hard: f32, what: &str| {
                let soft = soft.round(F32, n);
                assert!(
                    soft == u64::from(hard.to_bits()) || hard.is_nan() && F32.is_nan(soft),
                    "{what} of {a:#x} {b:#x} {c:#x}: {soft:#x}, not {:#x}",
                    hard.to_bits()
                );
            };
            same(add(x, y, n), f(a) + f(b), "sum");
            same(multiply(x, y), f(a) * f(b), "product");
            same(divide(x, y), f(a) / f(b), "quotient");
            same(square_root(x), f(a).sqrt(), "root");
            same(add(multiply(x, y), z, n), f(a).mul_add(f(b), f(c)), "fma");
        }
        for _ in 0..100_000 {
            let (a, b, c) = (random.double(), random.double(), random.double());
            let (x, y, z) = (Value::of(a, F64), Value::of(b, F64), Value::of(c, F64));
            let f = f64::from_bits;
            let same = |soft: Value, hard: f64, what: &str| {
                let soft = soft.round(F64, n);
                assert!(
                    soft == hard.to_bits() || hard.is_nan() && F64.is_nan(soft),
                    "{what} of {a:#x} {b:#x} {c:#x}: {soft:#x}, not {:#x}",
                    hard.to_bits()
                );
            };
            same(add(x, y, n), f(a) + f(b), "sum");
            same(multiply(x, y), f(a) * f(b), "product");
            same(divide(x, y), f(a) / f(b), "quotient");
            same(square_root(x), f(a).sqrt(), "root");
            same(add(multiply(x, y), z, n), f(a).mul_add(f(b), f(c)), "fma");
            let narrow = x.round(F32, n);
            assert!(narrow == u64::from((f(a) as f32).to_bits()) || f(a).is_nan());
        }
    }

    /// A value between two neighbours goes down, up or towards zero as asked; an exact one stays.
    #[test]
    fn directions_enclose_the_exact_value() {
        let mut random = Random::new(2);
        for _ in 0..200_000 {
            let bits = random.double();
            let value = Value::of(bits, F64);
            let exact = f64::from_bits(bits);
            if exact.is_nan() {
                continue;
            }
            for format in [F16, BF16, F32] {
                let wide =
                    |rounding| f64::from_bits(Value::of(value.round(format, rounding), format).round(F64, rounding));
                let (down, up, zero) = (wide(Rounding::Down), wide(Rounding::Up), wide(Rounding::Zero));
                let nearest = wide(Rounding::Nearest);
                assert!(down <= exact && exact <= up, "{exact:e}: {down:e} {up:e}");
                assert_eq!(zero.to_bits(), if exact < 0.0 || exact.is_sign_negative() { up } else { down }.to_bits());
                assert!(nearest == down || nearest == up);
                if down == up {
                    assert_eq!(down, exact);
                } else if down.is_finite() && up.is_finite() {
                    let next = value.round(format, Rounding::Zero) + 1;
                    assert_eq!(next, value.round(format, if exact > 0.0 { Rounding::Up } else { Rounding::Down }));
                    assert!((exact - nearest).abs() <= (exact - down).min(up - exact));
                }
            }
        }
    }

    #[test]
    fn zeros_overflow_and_integers() {
        let one = Value::exact(false, 0, 1);
        assert_eq!(add(one, one.negated(), Rounding::Down), Zero { negative: true });
        assert_eq!(add(one, one.negated(), Rounding::Nearest), Zero { negative: false });
        let huge = Value::exact(true, 200, 1);
        assert_eq!(huge.round(F32, Rounding::Zero), 0xFF7F_FFFF);
        assert_eq!(huge.round(F32, Rounding::Up), 0xFF7F_FFFF);
        assert_eq!(huge.round(F32, Rounding::Down), 0xFF80_0000);
        let tiny = Value::exact(false, -400, 1);
        assert_eq!(tiny.round(F32, Rounding::Up), 1);
        assert_eq!(tiny.round(F32, Rounding::Nearest), 0);
        let five_halves = Value::exact(true, -1, 5);
        let rounded = |rounding| five_halves.to_integer(rounding);
        assert_eq!([rounded(Rounding::Nearest), rounded(Rounding::Zero)], [2, 2]);
        assert_eq!([rounded(Rounding::Down), rounded(Rounding::Up)], [3, 2]);
        assert_eq!(Value::exact(false, 200, 1).to_integer(Rounding::Zero), 1 << 127);
    }
}

//! Conversion of one number at a time, branch-free, so that the compiler vectorises it.
#![forbid(unsafe_code)]

use super::{Stored, Whole};
use crate::memory::{Bf16, Bool, F16};

const SIGN: u32 = 0x8000_0000;
const INFINITE: u32 = 0x7f80_0000;
const QUIET: u32 = 0x0040_0000;
/// Adding it to a number below 2^22 rounds that to an integer, which is then in the low bits.
const ROUND: f32 = 12_582_912.0;

impl Stored for f32 {
    #[inline(always)]
    fn widened(self) -> f32 {
        self
    }
    #[inline(always)]
    fn narrowed(x: f32) -> f32 {
        x
    }
}

impl Stored for Bf16 {
    #[inline(always)]
    fn widened(self) -> f32 {
        let bits = u32::from(self.0) << 16;
        f32::from_bits(if bits & !SIGN > INFINITE { bits | QUIET } else { bits })
    }
    #[inline(always)]
    fn narrowed(x: f32) -> Bf16 {
        let bits = x.to_bits();
        let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
        Bf16(if bits & !SIGN > INFINITE { bits >> 16 | QUIET >> 16 } else { rounded } as u16)
    }
}

impl Stored for F16 {
    #[inline(always)]
    fn widened(self) -> f32 {
        // The bias of exponents is 15 in f16 and 127 in f32; the product of a subnormal number is exact.
        const BIAS: f32 = f32::from_bits((127 + 112) << 23);
        let half = u32::from(self.0);
        let (sign, shifted) = ((half & 0x8000) << 16, (half & 0x7fff) << 13);
        let finite = (f32::from_bits(shifted) * BIAS).to_bits();
        let special = shifted | INFINITE | if half & 0x3ff != 0 { QUIET } else { 0 };
        f32::from_bits(sign | if half & 0x7c00 == 0x7c00 { special } else { finite })
    }
    #[inline(always)]
    fn narrowed(x: f32) -> F16 {
        const TOO_LARGE: u32 = (127 + 16) << 23;
        const NORMAL: u32 = (127 - 14) << 23;
        let bits = x.to_bits();
        let (sign, bits) = ((bits & SIGN) >> 16, bits & !SIGN);
        let normal = bits.wrapping_sub(112 << 23).wrapping_add(0xfff + (bits >> 13 & 1)) >> 13;
        // The last bit of one half is the smallest subnormal number.
        let subnormal = (f32::from_bits(bits) + 0.5).to_bits().wrapping_sub(0.5f32.to_bits());
        let finite = if bits < NORMAL { subnormal } else { normal };
        let infinite = if bits > INFINITE { 0x7e00 | (bits >> 13 & 0x3ff) } else { 0x7c00 };
        F16((sign | if bits >= TOO_LARGE { infinite } else { finite }) as u16)
    }
}

impl Stored for i32 {
    #[inline(always)]
    fn widened(self) -> f32 {
        self as f32
    }
    #[inline(always)]
    fn narrowed(x: f32) -> i32 {
        // From 2^23 on floats are integers.
        const WHOLE: f32 = 8_388_608.0;
        let magic = f32::from_bits(WHOLE.to_bits() | x.to_bits() & SIGN);
        let rounded = (x + magic) - magic;
        (if x.abs() < WHOLE { rounded } else { x }) as i32
    }
}

impl Stored for i64 {
    #[inline(always)]
    fn widened(self) -> f32 {
        self as f32
    }
    #[inline(always)]
    fn narrowed(x: f32) -> i64 {
        const WHOLE: f32 = 8_388_608.0;
        let magic = f32::from_bits(WHOLE.to_bits() | x.to_bits() & SIGN);
        let rounded = (x + magic) - magic;
        (if x.abs() < WHOLE { rounded } else { x }) as i64
    }
}

macro_rules! whole {
    ($($type:ident),*) => {$(
        impl Whole for $type {
            #[inline(always)]
            fn wide(self) -> i64 {
                self as i64
            }
            #[inline(always)]
            fn wrapped(x: i64) -> $type {
                x as $type
            }
            #[inline(always)]
            fn saturated(x: i64) -> $type {
                x.clamp($type::MIN as i64, $type::MAX as i64) as $type
            }
        }
    )*};
}

whole!(i8, u8, i32, i64);

impl Whole for Bool {
    #[inline(always)]
    fn wide(self) -> i64 {
        i64::from(self.0 != 0)
    }
    #[inline(always)]
    fn wrapped(x: i64) -> Bool {
        Bool(u8::from(x != 0))
    }
    #[inline(always)]
    fn saturated(x: i64) -> Bool {
        Bool::wrapped(x)
    }
}

impl Stored for i8 {
    #[inline(always)]
    fn widened(self) -> f32 {
        f32::from(self)
    }
    #[inline(always)]
    fn narrowed(x: f32) -> i8 {
        let number = if x.is_nan() { 0.0 } else { x };
        let low = if number > -128.0 { number } else { -128.0 };
        ((if low < 127.0 { low } else { 127.0 }) + ROUND).to_bits() as i8
    }
}

impl Stored for u8 {
    #[inline(always)]
    fn widened(self) -> f32 {
        f32::from(self)
    }
    #[inline(always)]
    fn narrowed(x: f32) -> u8 {
        let low = if x > 0.0 { x } else { 0.0 };
        ((if low < 255.0 { low } else { 255.0 }) + ROUND).to_bits() as u8
    }
}

impl Stored for Bool {
    #[inline(always)]
    fn widened(self) -> f32 {
        if self.0 != 0 { 1.0 } else { 0.0 }
    }
    #[inline(always)]
    fn narrowed(x: f32) -> Bool {
        Bool(u8::from(x != 0.0))
    }
}

//! weir's own reductions over ranks: in rank order, so the same bits whatever the transport.
#![forbid(unsafe_code)]

use crate::abi::weir_comm_reduction_value as Reduction;
use crate::base::{Error, Result, dtype};
use crate::kernel::vector::convert::Stored;
use crate::memory::{Bf16, Bool, F16};

/// A type of numbers, and how it is reduced.
trait FoldedElement: Copy {
    const BYTES: usize;
    /// The type in which sums are kept.
    type Sum: Copy;
    fn read(bytes: &[u8]) -> Self::Sum;
    fn write(sum: Self::Sum, bytes: &mut [u8]);
    fn reduce(reduction: Reduction, a: Self::Sum, b: Self::Sum) -> Self::Sum;
}

/// A NaN of either makes a NaN; -0 is less than +0.
fn lesser(a: f32, b: f32) -> f32 {
    match a {
        _ if a.is_nan() || b.is_nan() => f32::NAN,
        _ if a == b => {
            if a.is_sign_negative() {
                a
            } else {
                b
            }
        }
        _ => {
            if a < b {
                a
            } else {
                b
            }
        }
    }
}

fn of_floats(reduction: Reduction, a: f32, b: f32) -> f32 {
    match reduction {
        Reduction::WEIR_COMM_SUM => a + b,
        Reduction::WEIR_COMM_PRODUCT => a * b,
        Reduction::WEIR_COMM_MIN => lesser(a, b),
        Reduction::WEIR_COMM_MAX => -lesser(-a, -b),
    }
}

macro_rules! floats {
    ($($element:ty: $bytes:literal, $read:expr, $write:expr);* $(;)?) => {$(
        impl FoldedElement for $element {
            const BYTES: usize = $bytes;
            type Sum = f32;
            #[inline]
            fn read(bytes: &[u8]) -> f32 {
                let mut word = [0; $bytes];
                word.copy_from_slice(bytes);
                ($read)(word)
            }
            #[inline]
            fn write(sum: f32, bytes: &mut [u8]) {
                bytes.copy_from_slice(&($write)(sum));
            }
            #[inline]
            fn reduce(reduction: Reduction, a: f32, b: f32) -> f32 {
                of_floats(reduction, a, b)
            }
        }
    )*};
}

floats! {
    f32: 4, f32::from_ne_bytes, f32::to_ne_bytes;
    F16: 2, |word| F16(u16::from_ne_bytes(word)).widened(), |sum| F16::narrowed(sum).0.to_ne_bytes();
    Bf16: 2, |word| Bf16(u16::from_ne_bytes(word)).widened(), |sum| Bf16::narrowed(sum).0.to_ne_bytes();
}

macro_rules! integers {
    ($($element:ty: $number:ty),* $(,)?) => {$(
        impl FoldedElement for $element {
            const BYTES: usize = size_of::<$number>();
            type Sum = $number;
            #[inline]
            fn read(bytes: &[u8]) -> $number {
                let mut word = [0; size_of::<$number>()];
                word.copy_from_slice(bytes);
                <$number>::from_ne_bytes(word)
            }
            #[inline]
            fn write(sum: $number, bytes: &mut [u8]) {
                bytes.copy_from_slice(&sum.to_ne_bytes());
            }
            #[inline]
            fn reduce(reduction: Reduction, a: $number, b: $number) -> $number {
                match reduction {
                    Reduction::WEIR_COMM_SUM => a.wrapping_add(b),
                    Reduction::WEIR_COMM_PRODUCT => a.wrapping_mul(b),
                    Reduction::WEIR_COMM_MIN => a.min(b),
                    Reduction::WEIR_COMM_MAX => a.max(b),
                }
            }
        }
    )*};
}

integers! { i8: i8, u8: u8, i32: i32, i64: i64 }

impl FoldedElement for Bool {
    const BYTES: usize = 1;
    type Sum = bool;
    fn read(bytes: &[u8]) -> bool {
        bytes[0] != 0
    }
    fn write(sum: bool, bytes: &mut [u8]) {
        bytes[0] = u8::from(sum);
    }
    /// As of 0 and 1, which saturate.
    fn reduce(reduction: Reduction, a: bool, b: bool) -> bool {
        match reduction {
            Reduction::WEIR_COMM_SUM | Reduction::WEIR_COMM_MAX => a | b,
            Reduction::WEIR_COMM_PRODUCT | Reduction::WEIR_COMM_MIN => a & b,
        }
    }
}

/// Elements whose sums are kept at once.
const BLOCK: usize = 256;

fn fold_of<T: FoldedElement>(reduction: Reduction, parts: &[&[u8]], to: &mut [u8])
where
    T::Sum: Default,
{
    let block = BLOCK * T::BYTES;
    let mut sums = [T::Sum::default(); BLOCK];
    for (at, to) in to.chunks_mut(block).enumerate() {
        let range = at * block..at * block + to.len();
        for (rank, part) in parts.iter().enumerate() {
            let elements = part[range.clone()].chunks_exact(T::BYTES);
            if rank == 0 {
                sums.iter_mut().zip(elements).for_each(|(sum, element)| *sum = T::read(element));
            } else {
                let add = |(sum, element): (&mut T::Sum, _)| *sum = T::reduce(reduction, *sum, T::read(element));
                sums.iter_mut().zip(elements).for_each(add);
            }
        }
        to.chunks_exact_mut(T::BYTES).zip(&sums).for_each(|(to, sum)| T::write(*sum, to));
    }
}

/// to = the reduction of the parts, from the first on; all have its length.
pub fn fold(reduction: Reduction, of: u32, parts: &[&[u8]], to: &mut [u8]) -> Result<()> {
    match of {
        dtype::F32 => fold_of::<f32>(reduction, parts, to),
        dtype::F16 => fold_of::<F16>(reduction, parts, to),
        dtype::BF16 => fold_of::<Bf16>(reduction, parts, to),
        dtype::S8 => fold_of::<i8>(reduction, parts, to),
        dtype::U8 => fold_of::<u8>(reduction, parts, to),
        dtype::S32 => fold_of::<i32>(reduction, parts, to),
        dtype::S64 => fold_of::<i64>(reduction, parts, to),
        dtype::BOOL => fold_of::<Bool>(reduction, parts, to),
        other => return Err(Error::internal(format!("a reduction of dtype {other}"))),
    }
    Ok(())
}

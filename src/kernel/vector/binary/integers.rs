//! Binary functions of integers, in the type itself: exact, and wrapped or saturated.

use super::SideRow;
use crate::kernel::vector::elements::{Sides, SourceRow};
use crate::kernel::vector::isa::Isa;
use crate::kernel::vector::levels::{self, LevelLoop};
use crate::memory::{Bool, Element};
use crate::ops::{
    Binary, weir_binary_op_value as Op, weir_overflow_value as Overflow, weir_rounding_value as Rounding,
};
use std::cmp::Ordering;

/// A type of integers.
pub trait Integer: Element + Ord + Default {
    fn sum(self, other: Self, overflow: Overflow) -> Self;
    fn difference(self, other: Self, overflow: Overflow) -> Self;
    fn product(self, other: Self, overflow: Overflow) -> Self;
    fn quotient(self, divisor: Self, rounding: Rounding, overflow: Overflow) -> Self;
    /// The remainder of that quotient; 0 for a divisor of 0. It may be below zero, which not every type has.
    fn remainder(self, divisor: Self, rounding: Rounding, overflow: Overflow) -> Self;
}

/// The number that rounding adds to a quotient that was rounded toward zero and left `rest`: 1, 0, or -1 in two's
/// complement.
macro_rules! correction {
    ($type:ident, $rest:expr, $divisor:expr, $quotient:expr, $rounding:expr) => {{
        let (rest, divisor, quotient): ($type, $type, $type) = ($rest, $divisor, $quotient);
        let is_below = (rest < 0) != (divisor < 0);
        let down: $type = (0 as $type).wrapping_sub(1);
        match $rounding {
            Rounding::WEIR_ROUNDING_ZERO => 0,
            Rounding::WEIR_ROUNDING_FLOOR => {
                if rest != 0 && is_below {
                    down
                } else {
                    0
                }
            }
            Rounding::WEIR_ROUNDING_NEAREST => {
                let (over, under) = (rest.abs_diff(0), divisor.abs_diff(0) - rest.abs_diff(0));
                let is_farther = over > under || over == under && quotient & 1 != 0;
                if !is_farther {
                    0
                } else if is_below {
                    down
                } else {
                    1
                }
            }
        }
    }};
}

macro_rules! integers {
    ($($type:ident),*) => {$(
        #[allow(unused_comparisons, reason = "some types have no sign")]
        impl Integer for $type {
            #[inline(always)]
            fn sum(self, other: Self, overflow: Overflow) -> Self {
                if saturates(overflow) { self.saturating_add(other) } else { self.wrapping_add(other) }
            }
            #[inline(always)]
            fn difference(self, other: Self, overflow: Overflow) -> Self {
                if saturates(overflow) { self.saturating_sub(other) } else { self.wrapping_sub(other) }
            }
            #[inline(always)]
            fn product(self, other: Self, overflow: Overflow) -> Self {
                if saturates(overflow) { self.saturating_mul(other) } else { self.wrapping_mul(other) }
            }
            #[inline(always)]
            fn quotient(self, divisor: Self, rounding: Rounding, overflow: Overflow) -> Self {
                if divisor == 0 {
                    return match self.cmp(&0) {
                        Ordering::Greater if saturates(overflow) => $type::MAX,
                        Ordering::Less if saturates(overflow) => $type::MIN,
                        _ => 0,
                    };
                }
                match self.overflowing_div(divisor) {
                    (_, true) if saturates(overflow) => $type::MAX,
                    (least, true) => least,
                    (quotient, false) => {
                        quotient.wrapping_add(correction!($type, self % divisor, divisor, quotient, rounding))
                    }
                }
            }
            #[inline(always)]
            fn remainder(self, divisor: Self, rounding: Rounding, overflow: Overflow) -> Self {
                if divisor == 0 {
                    return 0;
                }
                let (quotient, rest) = (self.wrapping_div(divisor), self.wrapping_rem(divisor));
                let more = correction!($type, rest, divisor, quotient, rounding);
                if $type::MIN == 0 && more != 0 && saturates(overflow) {
                    return 0;
                }
                rest.wrapping_sub(more.wrapping_mul(divisor))
            }
        }
    )*};
}

integers!(i8, u8, i32, i64);

fn saturates(overflow: Overflow) -> bool {
    overflow == Overflow::WEIR_OVERFLOW_SATURATE
}

/// y = f(a, b), element by element.
struct EachInteger<T, U, F> {
    a: SideRow<T>,
    b: SideRow<T>,
    y: *mut U,
    len: usize,
    f: F,
}

impl<T: Integer, U, F: Fn(T, T) -> U> EachInteger<T, U, F> {
    /// # Safety
    /// Rows of this many integers, at least one; y is disjoint from them, or one that is not stretched, if its elements
    /// are as large.
    unsafe fn new([a, b]: [SideRow<T>; 2], y: *mut U, len: usize, f: F) -> Self {
        EachInteger { a, b, y, len, f }
    }
}

impl<T: Integer, U, F: Fn(T, T) -> U> LevelLoop for EachInteger<T, U, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        // Integers that are read before as many results are written, so that the compiler need not care where.
        const STEP: usize = 16;
        let EachInteger { a, b, y, len, f } = self;
        // SAFETY: as demanded of the caller of `new`; a stretched row is read from a copy of its element.
        unsafe {
            let copies = [[*a.data; STEP], [*b.data; STEP]];
            let begin = |row: &SideRow<T>, copies: &[T; STEP]| match row.stretched {
                true => (copies.as_ptr(), 0),
                false => (row.data, STEP),
            };
            let ((mut a, step_a), (mut b, step_b)) = (begin(&a, &copies[0]), begin(&b, &copies[1]));
            for at in (0..len / STEP).map(|step| step * STEP) {
                let (x, z) = (a.cast::<[T; STEP]>().read(), b.cast::<[T; STEP]>().read());
                y.add(at).cast::<[U; STEP]>().write(std::array::from_fn(|i| f(x[i], z[i])));
                (a, b) = (a.wrapping_add(step_a), b.wrapping_add(step_b));
            }
            for i in 0..len % STEP {
                y.add(len - len % STEP + i).write(f(*a.add(i), *b.add(i)));
            }
        }
    }
}

/// An operand: a row of the input, or integers that were gathered from it.
#[derive(Clone, Copy, Debug)]
pub enum IntegerSide<'a, T> {
    Row(SourceRow),
    Gathered(&'a [T]),
}

impl<T: Element> IntegerSide<'_, T> {
    fn of<U: Element>(&self, sides: &Sides<'_, T, U>, i: usize, len: usize) -> SideRow<T> {
        match self {
            IntegerSide::Row(row) => SideRow { data: sides.input(i).row(*row, len), stretched: row.stretched },
            IntegerSide::Gathered(block) => SideRow { data: block[..len].as_ptr(), stretched: false },
        }
    }
}

/// y = op(a, b) of `len` integers from `at` on in y, as `row`; not for functions that compare.
pub fn integers<T: Integer>(
    isa: Isa,
    of: &Binary,
    sides: &mut Sides<'_, T, T>,
    [a, b]: [IntegerSide<'_, T>; 2],
    at: usize,
    len: usize,
) {
    let (operands, y) = ([a.of(sides, 0, len), b.of(sides, 1, len)], sides.address(at, len));
    if len > 0 {
        // SAFETY: `row` and `address` have compared; what was gathered is separate.
        unsafe { each_integer(isa, of, operands, y, len) }
    }
}

/// The same for a function that compares.
pub fn compare_integers<T: Integer>(
    isa: Isa,
    of: &Binary,
    sides: &mut Sides<'_, T, Bool>,
    [a, b]: [IntegerSide<'_, T>; 2],
    at: usize,
    len: usize,
) {
    let (operands, y) = ([a.of(sides, 0, len), b.of(sides, 1, len)], sides.address(at, len));
    if len > 0 {
        // SAFETY: as above.
        unsafe { each_comparison(isa, of.op, operands, y, len) }
    }
}

/// b = op(a, b), or y = op(a, b) for a function that compares, of slices.
#[cfg(all(test, not(loom)))]
pub mod of_slices {
    use super::*;

    fn operand<T>(x: &[T]) -> SideRow<T> {
        SideRow { data: x.as_ptr(), stretched: false }
    }

    pub fn integers<T: Integer>(isa: Isa, of: &Binary, a: &[T], b: &mut [T]) {
        assert_eq!(a.len(), b.len());
        let y = b.as_mut_ptr();
        // SAFETY: two slices, of which one is read and written.
        unsafe { each_integer(isa, of, [operand(a), SideRow { data: y, stretched: false }], y, a.len()) }
    }

    pub fn compare_integers<T: Integer>(isa: Isa, op: Op, a: &[T], b: &[T], y: &mut [Bool]) {
        assert!((a.len(), b.len()) == (y.len(), y.len()));
        // SAFETY: three slices.
        unsafe { each_comparison(isa, op, [operand(a), operand(b)], y.as_mut_ptr(), y.len()) }
    }
}

/// # Safety
/// As of `EachInteger`.
#[inline(never)]
unsafe fn each_integer<T: Integer>(isa: Isa, of: &Binary, operands: [SideRow<T>; 2], y: *mut T, len: usize) {
    use Overflow::*;
    macro_rules! each {
        ($f:expr) => {
            // SAFETY: as demanded of the caller.
            levels::up_to_avx2(isa, unsafe { EachInteger::new(operands, y, len, $f) })
        };
    }
    // A loop for each setting, which the compiler then makes plain.
    macro_rules! overflowing {
        ($f:ident) => {
            match of.overflow {
                WEIR_OVERFLOW_WRAP => each!(|a: T, b| a.$f(b, WEIR_OVERFLOW_WRAP)),
                WEIR_OVERFLOW_SATURATE => each!(|a: T, b| a.$f(b, WEIR_OVERFLOW_SATURATE)),
            }
        };
    }
    // Processors divide integers one by one: neither vectors nor a loop for each setting would gain.
    macro_rules! divided {
        ($f:ident) => {
            // SAFETY: as demanded of the caller.
            unsafe { EachInteger::new(operands, y, len, |a: T, b| a.$f(b, of.rounding, of.overflow)) }.run()
        };
    }
    match of.op {
        Op::WEIR_BINARY_ADD => overflowing!(sum),
        Op::WEIR_BINARY_SUB => overflowing!(difference),
        Op::WEIR_BINARY_MUL => overflowing!(product),
        Op::WEIR_BINARY_MIN => each!(|a: T, b| a.min(b)),
        Op::WEIR_BINARY_MAX => each!(|a: T, b| a.max(b)),
        Op::WEIR_BINARY_DIV => divided!(quotient),
        Op::WEIR_BINARY_REM => divided!(remainder),
        Op::WEIR_BINARY_POW
        | Op::WEIR_BINARY_EQ
        | Op::WEIR_BINARY_NE
        | Op::WEIR_BINARY_LT
        | Op::WEIR_BINARY_LE
        | Op::WEIR_BINARY_GT
        | Op::WEIR_BINARY_GE => {
            unreachable!("{:?} of integers gives no integer", of.op)
        }
    }
}

/// # Safety
/// As of `EachInteger`.
#[inline(never)]
unsafe fn each_comparison<T: Integer>(isa: Isa, op: Op, operands: [SideRow<T>; 2], y: *mut Bool, len: usize) {
    macro_rules! each {
        ($f:expr) => {
            // SAFETY: as demanded of the caller.
            levels::up_to_avx2(isa, unsafe { EachInteger::new(operands, y, len, |a: T, b| Bool(u8::from($f(&a, &b)))) })
        };
    }
    match op {
        Op::WEIR_BINARY_EQ => each!(T::eq),
        Op::WEIR_BINARY_NE => each!(T::ne),
        Op::WEIR_BINARY_LT => each!(T::lt),
        Op::WEIR_BINARY_LE => each!(T::le),
        Op::WEIR_BINARY_GT => each!(T::gt),
        Op::WEIR_BINARY_GE => each!(T::ge),
        Op::WEIR_BINARY_ADD
        | Op::WEIR_BINARY_SUB
        | Op::WEIR_BINARY_MUL
        | Op::WEIR_BINARY_DIV
        | Op::WEIR_BINARY_MIN
        | Op::WEIR_BINARY_MAX
        | Op::WEIR_BINARY_POW
        | Op::WEIR_BINARY_REM => unreachable!("{op:?} compares nothing"),
    }
}

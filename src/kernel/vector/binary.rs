//! Binary elementwise functions: rows of f32, one of which may be a scalar, and blocks of all other types.
//!
//! As in `eltwise`, a result depends only on its elements, the function and the level. 16-bit floats are computed in
//! f32; integers have functions of their own, which are exact.

mod integers;
#[cfg(all(test, not(loom)))]
mod tests;

pub use integers::{Integer, IntegerSide, compare_integers, integers};

use super::elements::{Sides, SourceRow};
use super::isa::{Isa, SimdLevel};
#[cfg(target_arch = "x86_64")]
use super::lanes::Vector;
use super::real::Real;
use crate::base::{Desc, dtype};
use crate::ops::{Binary, weir_binary_op_value as Op, weir_rounding_value as Rounding};

/// A function of two numbers; a truth value is 1 or 0.
trait Formula {
    /// # Safety
    /// As of `Number`.
    unsafe fn of<N: Real>(a: N, b: N) -> N;
}

macro_rules! formulas {
    ($($name:ident: |$a:ident, $b:ident| $body:expr;)*) => {
        $(
            struct $name;

            impl Formula for $name {
                #[inline(always)]
                unsafe fn of<N: Real>($a: N, $b: N) -> N {
                    // SAFETY: as demanded of the caller.
                    unsafe { $body }
                }
            }
        )*
    };
}

formulas! {
    Add: |a, b| a.add(b);
    Sub: |a, b| a.sub(b);
    Mul: |a, b| a.mul(b);
    Div: |a, b| a.div(b);
    // min and max give b if one is NaN, so what is left is that a is.
    Min: |a, b| N::if_equal(a, a, a.min(b), a);
    Max: |a, b| N::if_equal(a, a, a.max(b), a);
    Eq: |a, b| N::if_equal(a, b, N::splat(1.0), N::splat(0.0));
    Ne: |a, b| N::if_equal(a, b, N::splat(0.0), N::splat(1.0));
    Lt: |a, b| N::if_less(a, b, N::splat(1.0), N::splat(0.0));
    Le: |a, b| N::if_less(a, b, N::splat(1.0), N::if_equal(a, b, N::splat(1.0), N::splat(0.0)));
}

/// A row of elements to read, or one element for all of a row.
#[derive(Clone, Copy)]
struct SideRow<T> {
    data: *const T,
    stretched: bool,
}

type Floats = SideRow<f32>;

/// y = op(a, b) for a row of `len` floats from `at` on in y, which may be the memory of an operand that is not
/// broadcast.
pub fn row(isa: Isa, of: &Binary, sides: &mut Sides<'_, f32, f32>, rows: &[SourceRow; 2], at: usize, len: usize) {
    isa.assert_detected();
    let [a, b] = [0, 1].map(|i| Floats { data: sides.input(i).row(rows[i], len), stretched: rows[i].stretched });
    let y = sides.address(at, len);
    if len > 0 {
        // SAFETY: `row` and `address` have compared; the level was.
        unsafe { run(isa, of, a, b, y, len) }
    }
}

/// b = op(a, b), for slices of the same length.
pub fn block(isa: Isa, of: &Binary, a: &[f32], b: &mut [f32]) {
    isa.assert_detected();
    assert_eq!(a.len(), b.len());
    let y = b.as_mut_ptr();
    let floats = |data| Floats { data, stretched: false };
    if b.is_empty() {
        return;
    }
    // SAFETY: two slices, of which one is read and written; the level was compared.
    unsafe { run(isa, of, floats(a.as_ptr()), floats(y), y, b.len()) }
}

/// How much longer than moving the elements it takes.
pub fn slowness(op: Op, of: &Desc) -> f32 {
    let is_float = [dtype::F32, dtype::F16, dtype::BF16].contains(&of.dtype);
    match op {
        Op::WEIR_BINARY_POW => 60.0,
        Op::WEIR_BINARY_REM => 30.0,
        Op::WEIR_BINARY_DIV if !is_float => 10.0,
        _ => 1.0,
    }
}

/// The other operand of a function of each element of a slice.
#[derive(Clone, Copy)]
pub enum Operand<'a> {
    /// As many elements.
    Each(&'a [f32]),
    One(f32),
}

/// x = op(x, other), or op(other, x).
pub fn in_place(isa: Isa, of: &Binary, x: &mut [f32], other: Operand<'_>, is_first: bool) {
    isa.assert_detected();
    let (len, y) = (x.len(), x.as_mut_ptr());
    let own = Floats { data: y, stretched: false };
    let other = match &other {
        Operand::Each(elements) => {
            assert_eq!(elements.len(), len);
            Floats { data: elements.as_ptr(), stretched: false }
        }
        Operand::One(element) => Floats { data: element, stretched: true },
    };
    let (a, b) = if is_first { (own, other) } else { (other, own) };
    if len > 0 {
        // SAFETY: two slices, or one and a number, of which one is read and written; the level was compared.
        unsafe { run(isa, of, a, b, y, len) }
    }
}

/// # Safety
/// Rows of this many floats; y is one of them or disjoint from them; the processor has the level.
unsafe fn run(isa: Isa, of: &Binary, a: Floats, b: Floats, y: *mut f32, len: usize) {
    // SAFETY: as demanded of the caller.
    unsafe {
        match of.op {
            Op::WEIR_BINARY_ADD => map::<Add>(isa, a, b, y, len),
            Op::WEIR_BINARY_SUB => map::<Sub>(isa, a, b, y, len),
            Op::WEIR_BINARY_MUL => map::<Mul>(isa, a, b, y, len),
            Op::WEIR_BINARY_DIV => map::<Div>(isa, a, b, y, len),
            Op::WEIR_BINARY_MIN => map::<Min>(isa, a, b, y, len),
            Op::WEIR_BINARY_MAX => map::<Max>(isa, a, b, y, len),
            Op::WEIR_BINARY_EQ => map::<Eq>(isa, a, b, y, len),
            Op::WEIR_BINARY_NE => map::<Ne>(isa, a, b, y, len),
            Op::WEIR_BINARY_LT => map::<Lt>(isa, a, b, y, len),
            Op::WEIR_BINARY_LE => map::<Le>(isa, a, b, y, len),
            Op::WEIR_BINARY_GT => map::<Lt>(isa, b, a, y, len),
            Op::WEIR_BINARY_GE => map::<Le>(isa, b, a, y, len),
            Op::WEIR_BINARY_POW => each_float(f32::powf, a, b, y, len),
            Op::WEIR_BINARY_REM => match of.rounding {
                Rounding::WEIR_ROUNDING_ZERO => each_float(|a, b| a % b, a, b, y, len),
                Rounding::WEIR_ROUNDING_FLOOR => each_float(floored_remainder, a, b, y, len),
                Rounding::WEIR_ROUNDING_NEAREST => each_float(nearest_remainder, a, b, y, len),
            },
        }
    }
}

/// One by one, by functions of the C library.
///
/// # Safety
/// As of `run`.
unsafe fn each_float(f: impl Fn(f32, f32) -> f32, a: Floats, b: Floats, y: *mut f32, len: usize) {
    let step = |x: Floats| usize::from(!x.stretched);
    for i in 0..len {
        // SAFETY: as demanded of the caller.
        unsafe { *y.add(i) = f(*a.data.add(i * step(a)), *b.data.add(i * step(b))) }
    }
}

/// The remainder of a quotient that is rounded down: it has the sign of b.
fn floored_remainder(a: f32, b: f32) -> f32 {
    let rest = a % b;
    if rest == 0.0 {
        rest.copysign(b)
    } else if rest.is_sign_negative() != b.is_sign_negative() {
        rest + b
    } else {
        rest
    }
}

/// The remainder of a quotient that is rounded to nearest, ties to even.
fn nearest_remainder(a: f32, b: f32) -> f32 {
    // Exact: a float has so few digits that none is lost in f64. The remainder by two b says whether the quotient is
    // even.
    let (size, b) = (f64::from(a).abs() % (2.0 * f64::from(b).abs()), f64::from(b).abs());
    let rest = if size <= 0.5 * b || size.is_nan() {
        size
    } else if size < 1.5 * b {
        size - b
    } else {
        size - 2.0 * b
    } as f32;
    if a.is_sign_negative() { -rest } else { rest }
}

/// # Safety
/// As of `run`.
unsafe fn map<F: Formula>(isa: Isa, a: Floats, b: Floats, y: *mut f32, len: usize) {
    // SAFETY: as demanded of the caller.
    unsafe {
        match isa.level {
            #[cfg(target_arch = "x86_64")]
            SimdLevel::Avx512 => map_avx512::<F>(a, b, y, len),
            #[cfg(target_arch = "x86_64")]
            SimdLevel::Avx2 => map_avx2::<F>(a, b, y, len),
            _ => map_portable::<F>(a, b, y, len),
        }
    }
}

/// # Safety
/// As of `run`.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn map_avx512<F: Formula>(a: Floats, b: Floats, y: *mut f32, len: usize) {
    // SAFETY: as demanded of the caller.
    unsafe { map_vectors::<F, std::arch::x86_64::__m512>(a, b, y, len) }
}

/// # Safety
/// As of `run`.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn map_avx2<F: Formula>(a: Floats, b: Floats, y: *mut f32, len: usize) {
    // SAFETY: as demanded of the caller.
    unsafe { map_vectors::<F, std::arch::x86_64::__m256>(a, b, y, len) }
}

/// # Safety
/// As of `run`, and the processor has the instructions of V.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn map_vectors<F: Formula, V: Vector + Real>(a: Floats, b: Floats, y: *mut f32, len: usize) {
    // SAFETY: rows have an element.
    unsafe {
        let (first_a, first_b) = (V::splat(*a.data), V::splat(*b.data));
        match (a.stretched, b.stretched) {
            (false, false) => each::<V>(
                len,
                y,
                |i| F::of(V::load(a.data.add(i)), V::load(b.data.add(i))),
                |i, n| F::of(V::load_part(a.data.add(i), n), V::load_part(b.data.add(i), n)),
            ),
            (false, true) => each::<V>(
                len,
                y,
                |i| F::of(V::load(a.data.add(i)), first_b),
                |i, n| F::of(V::load_part(a.data.add(i), n), first_b),
            ),
            (true, false) => each::<V>(
                len,
                y,
                |i| F::of(first_a, V::load(b.data.add(i))),
                |i, n| F::of(first_a, V::load_part(b.data.add(i), n)),
            ),
            (true, true) => each::<V>(len, y, |_| F::of(first_a, first_b), |_, _| F::of(first_a, first_b)),
        }
    }
}

/// Four vectors at a time, then one by one, then the remainder.
///
/// # Safety
/// y has `len` floats, and the processor the instructions of V.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn each<V: Vector>(len: usize, y: *mut f32, whole: impl Fn(usize) -> V, part: impl Fn(usize, usize) -> V) {
    let (steps, wholes) = (len - len % (4 * V::LANES), len - len % V::LANES);
    // SAFETY: all below `len`.
    unsafe {
        for at in (0..steps).step_by(4 * V::LANES) {
            let values = [whole(at), whole(at + V::LANES), whole(at + 2 * V::LANES), whole(at + 3 * V::LANES)];
            values.iter().enumerate().for_each(|(i, value)| value.store(y.add(at + i * V::LANES)));
        }
        for at in (steps..wholes).step_by(V::LANES) {
            whole(at).store(y.add(at));
        }
        if wholes < len {
            part(wholes, len - wholes).store_part(y.add(wholes), len - wholes);
        }
    }
}

/// In blocks that the compiler knows not to alias.
///
/// # Safety
/// As of `run`.
unsafe fn map_portable<F: Formula>(a: Floats, b: Floats, y: *mut f32, len: usize) {
    const BLOCK: usize = 256;
    let (mut left, mut right) = ([0.0; BLOCK], [0.0; BLOCK]);
    for at in (0..len).step_by(BLOCK) {
        let count = BLOCK.min(len - at);
        let fill = |from: Floats, to: &mut [f32]| match from.stretched {
            // SAFETY: rows have an element.
            true => to.fill(unsafe { *from.data }),
            // SAFETY: that many floats are left, and the block is separate from them.
            false => unsafe { std::ptr::copy_nonoverlapping(from.data.add(at), to.as_mut_ptr(), count) },
        };
        fill(a, &mut left[..count]);
        fill(b, &mut right[..count]);
        for (b, &a) in right[..count].iter_mut().zip(&left[..count]) {
            // SAFETY: plain floats need no instructions that a processor may lack.
            *b = unsafe { F::of(a, *b) };
        }
        // SAFETY: as above.
        unsafe { std::ptr::copy_nonoverlapping(right.as_ptr(), y.add(at), count) };
    }
}

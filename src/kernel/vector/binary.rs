//! Binary elementwise functions: rows of f32, one of which may be a scalar, and blocks of all other types.
//!
//! As in `eltwise`, a result depends only on its elements, the function and the level. 16-bit floats and bytes are
//! computed in f32; s32 has functions of its own, because f32 cannot hold every s32.

#[cfg(test)]
mod tests;

use super::elements::{Sides, SourceRow};
use super::isa::Isa;
#[cfg(target_arch = "x86_64")]
use super::lanes::Vector;
use super::real::Real;
use crate::memory::Bool;
use crate::ops::weir_binary_op_value as Op;

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

/// A row of floats to read.
#[derive(Clone, Copy)]
struct Floats {
    data: *const f32,
    stretched: bool,
}

/// y = op(a, b) for a row of `len` floats from `at` on in y, which may be the memory of an operand that is not
/// broadcast.
pub fn row(isa: Isa, op: Op, sides: &mut Sides<'_, f32, f32>, rows: &[SourceRow; 2], at: usize, len: usize) {
    assert!(isa <= Isa::detected(), "{isa:?} on a processor with {:?}", Isa::detected());
    let floats = |i: usize| Floats { data: sides.input(i).row(rows[i], len), stretched: rows[i].stretched };
    let (a, b) = (floats(0), floats(1));
    let y = sides.address(at, len);
    if len > 0 {
        // SAFETY: `row` and `address` have compared; the level was.
        unsafe { run(isa, op, a, b, y, len) }
    }
}

/// b = op(a, b), for slices of the same length.
pub fn block(isa: Isa, op: Op, a: &[f32], b: &mut [f32]) {
    assert!(isa <= Isa::detected(), "{isa:?} on a processor with {:?}", Isa::detected());
    assert_eq!(a.len(), b.len());
    let y = b.as_mut_ptr();
    let floats = |data| Floats { data, stretched: false };
    if b.is_empty() {
        return;
    }
    // SAFETY: two slices, of which one is read and written; the level was compared.
    unsafe { run(isa, op, floats(a.as_ptr()), floats(y), y, b.len()) }
}

/// # Safety
/// Rows of this many floats; y is one of them or disjoint from them; the processor has the level.
unsafe fn run(isa: Isa, op: Op, a: Floats, b: Floats, y: *mut f32, len: usize) {
    // SAFETY: as demanded of the caller.
    unsafe {
        match op {
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
            Op::WEIR_BINARY_POW => {
                let step = |x: Floats| usize::from(!x.stretched);
                for i in 0..len {
                    *y.add(i) = (*a.data.add(i * step(a))).powf(*b.data.add(i * step(b)));
                }
            }
        }
    }
}

/// # Safety
/// As of `run`.
unsafe fn map<F: Formula>(isa: Isa, a: Floats, b: Floats, y: *mut f32, len: usize) {
    // SAFETY: as demanded of the caller.
    unsafe {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 | Isa::Avx512Vnni | Isa::Amx => map_avx512::<F>(a, b, y, len),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => map_avx2::<F>(a, b, y, len),
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

/// b = op(a, b) of integers; not for functions that compare.
pub fn integers(op: Op, a: &[i32], b: &mut [i32]) {
    fn each(a: &[i32], b: &mut [i32], f: impl Fn(i32, i32) -> i32) {
        b.iter_mut().zip(a).for_each(|(b, &a)| *b = f(a, *b));
    }
    match op {
        Op::WEIR_BINARY_ADD => each(a, b, i32::wrapping_add),
        Op::WEIR_BINARY_SUB => each(a, b, i32::wrapping_sub),
        Op::WEIR_BINARY_MUL => each(a, b, i32::wrapping_mul),
        Op::WEIR_BINARY_MIN => each(a, b, i32::min),
        Op::WEIR_BINARY_MAX => each(a, b, i32::max),
        // A conversion from f64 saturates and turns NaN into 0.
        Op::WEIR_BINARY_DIV => each(a, b, |a, b| (f64::from(a) / f64::from(b)).round_ties_even() as i32),
        Op::WEIR_BINARY_POW
        | Op::WEIR_BINARY_EQ
        | Op::WEIR_BINARY_NE
        | Op::WEIR_BINARY_LT
        | Op::WEIR_BINARY_LE
        | Op::WEIR_BINARY_GT
        | Op::WEIR_BINARY_GE => {
            unreachable!("{op:?} of integers gives no integer")
        }
    }
}

/// y = op(a, b) of integers, for a function that compares.
pub fn compare_integers(op: Op, a: &[i32], b: &[i32], y: &mut [Bool]) {
    fn each(a: &[i32], b: &[i32], y: &mut [Bool], f: impl Fn(i32, i32) -> bool) {
        y.iter_mut().zip(a.iter().zip(b)).for_each(|(y, (&a, &b))| *y = Bool(u8::from(f(a, b))));
    }
    match op {
        Op::WEIR_BINARY_EQ => each(a, b, y, |a, b| a == b),
        Op::WEIR_BINARY_NE => each(a, b, y, |a, b| a != b),
        Op::WEIR_BINARY_LT => each(a, b, y, |a, b| a < b),
        Op::WEIR_BINARY_LE => each(a, b, y, |a, b| a <= b),
        Op::WEIR_BINARY_GT => each(a, b, y, |a, b| a > b),
        Op::WEIR_BINARY_GE => each(a, b, y, |a, b| a >= b),
        Op::WEIR_BINARY_ADD
        | Op::WEIR_BINARY_SUB
        | Op::WEIR_BINARY_MUL
        | Op::WEIR_BINARY_DIV
        | Op::WEIR_BINARY_MIN
        | Op::WEIR_BINARY_MAX
        | Op::WEIR_BINARY_POW => unreachable!("{op:?} compares nothing"),
    }
}

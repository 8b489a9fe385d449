//! Unary elementwise functions for the floating-point storage types, in place or not.
//!
//! `formulas` has the functions, each written once; here they are compiled into a loop for each instruction set. f16
//! and bf16 go through blocks of f32 in the L1 cache. A result depends only on the element, the function and the level,
//! so a loop may be cut anywhere: the remainder goes through a partial register.

mod formulas;
#[cfg(all(test, not(loom)))]
mod tests;

use super::isa::{Isa, SimdLevel};
#[cfg(target_arch = "x86_64")]
use super::lanes::Vector;
use super::real::Real;
use crate::ops::{Eltwise, weir_eltwise_op_value as Op};
pub use formulas::apply;

/// Nanoseconds per element, measured on one thread.
pub fn element_ns(of: &Eltwise, isa: Isa) -> f32 {
    let (wide, portable) = match of.op {
        Op::WEIR_ELTWISE_RELU
        | Op::WEIR_ELTWISE_SQUARE
        | Op::WEIR_ELTWISE_ABS
        | Op::WEIR_ELTWISE_NEG
        | Op::WEIR_ELTWISE_CLIP
        | Op::WEIR_ELTWISE_LINEAR
        | Op::WEIR_ELTWISE_ROUND
        | Op::WEIR_ELTWISE_FLOOR
        | Op::WEIR_ELTWISE_CEIL
        | Op::WEIR_ELTWISE_TRUNC
        | Op::WEIR_ELTWISE_SIGN => (0.12, 0.2),
        Op::WEIR_ELTWISE_HARDSIGMOID | Op::WEIR_ELTWISE_HARDSWISH | Op::WEIR_ELTWISE_SQRT => (0.15, 0.6),
        Op::WEIR_ELTWISE_POW if of.beta.abs() <= 3.0 && (2.0 * of.beta).fract() == 0.0 => (0.3, 1.0),
        Op::WEIR_ELTWISE_POW => (12.0, 12.0),
        Op::WEIR_ELTWISE_EXP
        | Op::WEIR_ELTWISE_TANH
        | Op::WEIR_ELTWISE_LOG
        | Op::WEIR_ELTWISE_ELU
        | Op::WEIR_ELTWISE_SIGMOID => (0.25, 2.0),
        Op::WEIR_ELTWISE_SWISH
        | Op::WEIR_ELTWISE_GELU_TANH
        | Op::WEIR_ELTWISE_GELU_ERF
        | Op::WEIR_ELTWISE_MISH
        | Op::WEIR_ELTWISE_SOFTPLUS
        | Op::WEIR_ELTWISE_ERF
        | Op::WEIR_ELTWISE_SIN
        | Op::WEIR_ELTWISE_COS
        | Op::WEIR_ELTWISE_TAN
        | Op::WEIR_ELTWISE_ASIN
        | Op::WEIR_ELTWISE_ACOS
        | Op::WEIR_ELTWISE_ATAN
        | Op::WEIR_ELTWISE_SINH
        | Op::WEIR_ELTWISE_COSH => (0.4, 3.0),
    };
    match isa.level {
        SimdLevel::Avx512 => wide,
        SimdLevel::Avx2 => wide * 1.6,
        SimdLevel::Portable | SimdLevel::Neon => portable,
    }
}

/// A unary function. The number of registers processed at once depends on its own register use.
trait Formula: Copy {
    const AT_ONCE: usize = 4;

    /// # Safety
    /// As of `Number`.
    unsafe fn of<N: Real>(self, x: N) -> N;
}

/// Floats of a block.
const BLOCK: usize = 1024;

/// y = f(x) for `len` floats.
///
/// # Safety
/// x and y are the addresses of so many floats, the same or without a float in common; the processor has the level.
unsafe fn map<F: Formula>(isa: Isa, f: F, x: *const f32, y: *mut f32, len: usize) {
    // SAFETY: as demanded of the caller.
    unsafe {
        match isa.level {
            #[cfg(target_arch = "x86_64")]
            SimdLevel::Avx512 => map_avx512(f, x, y, len),
            #[cfg(target_arch = "x86_64")]
            SimdLevel::Avx2 => map_avx2(f, x, y, len),
            _ => map_portable(f, x, y, len),
        }
    }
}

/// # Safety
/// As of `map`.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn map_avx512<F: Formula>(f: F, x: *const f32, y: *mut f32, len: usize) {
    // SAFETY: as demanded of the caller.
    unsafe { map_vectors::<F, std::arch::x86_64::__m512>(f, x, y, len) }
}

/// # Safety
/// As of `map`.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn map_avx2<F: Formula>(f: F, x: *const f32, y: *mut f32, len: usize) {
    // SAFETY: as demanded of the caller.
    unsafe { map_vectors::<F, std::arch::x86_64::__m256>(f, x, y, len) }
}

/// # Safety
/// As of `map`, and the processor has the instructions of V.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn map_vectors<F: Formula, V: Vector + Real>(f: F, x: *const f32, y: *mut f32, len: usize) {
    const MOST: usize = 4;
    let step = F::AT_ONCE * V::LANES;
    let (steps, whole) = (len - len % step, len - len % V::LANES);
    // SAFETY: AT_ONCE vectors from each step on, a vector from each after those, and what is left: all below `len`.
    unsafe {
        for at in (0..steps).step_by(step) {
            let mut values = [V::splat(0.0); MOST];
            for (i, value) in values[..F::AT_ONCE].iter_mut().enumerate() {
                *value = f.of(V::load(x.add(at + i * V::LANES)));
            }
            for (i, value) in values[..F::AT_ONCE].iter().enumerate() {
                value.store(y.add(at + i * V::LANES));
            }
        }
        for at in (steps..whole).step_by(V::LANES) {
            f.of(V::load(x.add(at))).store(y.add(at));
        }
        if whole < len {
            f.of(V::load_part(x.add(whole), len - whole)).store_part(y.add(whole), len - whole);
        }
    }
}

/// In blocks that the compiler knows not to alias.
///
/// # Safety
/// As of `map`.
unsafe fn map_portable<F: Formula>(f: F, x: *const f32, y: *mut f32, len: usize) {
    let mut floats = [0.0; BLOCK];
    for at in (0..len).step_by(BLOCK) {
        let block = &mut floats[..BLOCK.min(len - at)];
        // SAFETY: that many floats are left, and the block is separate from them.
        unsafe { std::ptr::copy_nonoverlapping(x.add(at), block.as_mut_ptr(), block.len()) };
        for value in block.iter_mut() {
            // SAFETY: plain floats need no instructions that a processor may lack.
            *value = unsafe { f.of(*value) };
        }
        // SAFETY: as above.
        unsafe { std::ptr::copy_nonoverlapping(block.as_ptr(), y.add(at), block.len()) };
    }
}

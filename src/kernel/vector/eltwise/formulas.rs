//! The unary elementwise functions.

use super::{BLOCK, Formula, map};
use crate::base::dtype;
use crate::kernel::vector::convert::{self, Stored};
use crate::kernel::vector::elements::ElementPair;
use crate::kernel::vector::functions::*;
use crate::kernel::vector::isa::Isa;
use crate::kernel::vector::real::Real;
use crate::ops::{Eltwise, weir_eltwise_op_value as Op};

/// y = f(x).
pub fn apply<T: Stored>(isa: Isa, f: &Eltwise, mut elements: ElementPair<'_, T, T>) {
    isa.assert_detected();
    let len = elements.num_elements();
    let (x, y) = elements.addresses();
    if T::DTYPE == dtype::F32 {
        // SAFETY: both are floats, and the pair's; the processor has the level.
        return unsafe { function(f, isa, x.cast(), y.cast(), len) };
    }
    let mut floats = [0.0; BLOCK];
    for at in (0..len).step_by(BLOCK) {
        let block = &mut floats[..BLOCK.min(len - at)];
        // SAFETY: the pair's elements from `at` on; the slice to read is gone when the one to write is made.
        unsafe { convert::widen(isa, std::slice::from_raw_parts(x.add(at), block.len()), block) };
        let data = block.as_mut_ptr();
        // SAFETY: in place, on a processor with the level.
        unsafe { function(f, isa, data, data, block.len()) };
        // SAFETY: as above.
        convert::narrow(isa, block, unsafe { std::slice::from_raw_parts_mut(y.add(at), block.len()) });
    }
}

/// y = f(x) for `len` floats.
///
/// # Safety
/// As of `map`.
unsafe fn function(of: &Eltwise, isa: Isa, x: *const f32, y: *mut f32, len: usize) {
    let Eltwise { op, alpha, beta } = *of;
    // SAFETY: as demanded of the caller.
    unsafe {
        if alpha == 0.0 && level(of, isa, x, y, len) {
            return;
        }
        match op {
            Op::WEIR_ELTWISE_RELU if alpha == 0.0 => map(isa, Relu, x, y, len),
            Op::WEIR_ELTWISE_RELU => map(isa, LeakyRelu(alpha), x, y, len),
            Op::WEIR_ELTWISE_ELU => map(isa, Elu(alpha), x, y, len),
            Op::WEIR_ELTWISE_GELU_ERF => map(isa, GeluErf, x, y, len),
            Op::WEIR_ELTWISE_GELU_TANH => map(isa, GeluTanh, x, y, len),
            Op::WEIR_ELTWISE_TANH => map(isa, Tanh, x, y, len),
            Op::WEIR_ELTWISE_SIGMOID => map(isa, Sigmoid, x, y, len),
            Op::WEIR_ELTWISE_SWISH => map(isa, Swish(alpha), x, y, len),
            Op::WEIR_ELTWISE_EXP => map(isa, Exp, x, y, len),
            Op::WEIR_ELTWISE_LOG => map(isa, Log, x, y, len),
            Op::WEIR_ELTWISE_SQRT => map(isa, Sqrt, x, y, len),
            Op::WEIR_ELTWISE_SQUARE => map(isa, Square, x, y, len),
            Op::WEIR_ELTWISE_ABS => map(isa, Abs, x, y, len),
            Op::WEIR_ELTWISE_NEG => map(isa, Neg, x, y, len),
            Op::WEIR_ELTWISE_CLIP => map(isa, Clip(alpha, beta), x, y, len),
            Op::WEIR_ELTWISE_LINEAR => map(isa, Linear(alpha, beta), x, y, len),
            Op::WEIR_ELTWISE_POW => power(isa, alpha, beta, x, y, len),
            Op::WEIR_ELTWISE_HARDSIGMOID => map(isa, HardSigmoid(alpha, beta), x, y, len),
            Op::WEIR_ELTWISE_HARDSWISH => map(isa, HardSwish(alpha, beta), x, y, len),
            Op::WEIR_ELTWISE_ROUND => map(isa, Round, x, y, len),
            Op::WEIR_ELTWISE_MISH => map(isa, Mish, x, y, len),
            Op::WEIR_ELTWISE_SOFTPLUS => map(isa, Softplus(alpha), x, y, len),
            Op::WEIR_ELTWISE_ERF => map(isa, Erf, x, y, len),
            Op::WEIR_ELTWISE_FLOOR => map(isa, Floor, x, y, len),
            Op::WEIR_ELTWISE_CEIL => map(isa, Ceil, x, y, len),
            Op::WEIR_ELTWISE_TRUNC => map(isa, Trunc, x, y, len),
            Op::WEIR_ELTWISE_SIGN => map(isa, Sign, x, y, len),
            Op::WEIR_ELTWISE_SIN => angles(isa, Sin, f64::sin, x, y, len),
            Op::WEIR_ELTWISE_COS => angles(isa, Cos, f64::cos, x, y, len),
            Op::WEIR_ELTWISE_TAN => angles(isa, Tan, f64::tan, x, y, len),
            Op::WEIR_ELTWISE_ASIN => map(isa, Asin, x, y, len),
            Op::WEIR_ELTWISE_ACOS => map(isa, Acos, x, y, len),
            Op::WEIR_ELTWISE_ATAN => map(isa, Atan, x, y, len),
            Op::WEIR_ELTWISE_SINH => map(isa, Sinh, x, y, len),
            Op::WEIR_ELTWISE_COSH => map(isa, Cosh, x, y, len),
        }
    }
}

/// The functions that become a constant, or a multiple of x, if alpha is 0, computed so that they have the right
/// limits at the infinities, where the product alpha x is NaN. False for other functions.
///
/// # Safety
/// As of `map`.
unsafe fn level(of: &Eltwise, isa: Isa, x: *const f32, y: *mut f32, len: usize) -> bool {
    let factor = of.beta.clamp(0.0, 1.0);
    // SAFETY: as demanded of the caller.
    unsafe {
        match of.op {
            Op::WEIR_ELTWISE_SWISH => map(isa, Linear(0.5, 0.0), x, y, len),
            Op::WEIR_ELTWISE_HARDSIGMOID => map(isa, Level(factor), x, y, len),
            Op::WEIR_ELTWISE_HARDSWISH if factor == 0.0 => map(isa, Level(0.0), x, y, len),
            Op::WEIR_ELTWISE_HARDSWISH => map(isa, Linear(factor, 0.0), x, y, len),
            _ => return false,
        }
    }
    true
}

/// alpha * x^beta: with roots and products for common exponents, else by the C library.
///
/// # Safety
/// As of `map`.
unsafe fn power(isa: Isa, alpha: f32, beta: f32, x: *const f32, y: *mut f32, len: usize) {
    // SAFETY: as demanded of the caller.
    unsafe {
        match beta {
            0.0 => map(isa, Constant(alpha), x, y, len),
            1.0 => map(isa, Linear(alpha, 0.0), x, y, len),
            2.0 => map(isa, SquareTimes(alpha), x, y, len),
            3.0 => map(isa, CubeTimes(alpha), x, y, len),
            0.5 => map(isa, RootTimes(alpha), x, y, len),
            1.5 => map(isa, OneAndHalfTimes(alpha), x, y, len),
            -0.5 => map(isa, OverRoot(alpha), x, y, len),
            -1.0 => map(isa, Over(alpha), x, y, len),
            _ => (0..len).for_each(|i| *y.add(i) = alpha * (*x.add(i)).powf(beta)),
        }
    }
}

/// A function of angles, whose formula is for those up to `MOST_ANGLE`; greater ones, which are rare, go one by one
/// through the C library.
///
/// # Safety
/// As of `map`.
unsafe fn angles<F: Formula>(isa: Isa, f: F, rare: fn(f64) -> f64, x: *const f32, y: *mut f32, len: usize) {
    let mut floats = [0.0; BLOCK];
    for at in (0..len).step_by(BLOCK) {
        let block = &mut floats[..BLOCK.min(len - at)];
        // SAFETY: that many floats are left, and the block, which is separate from them, keeps what y may overwrite.
        unsafe {
            std::ptr::copy_nonoverlapping(x.add(at), block.as_mut_ptr(), block.len());
            map(isa, f, block.as_ptr(), y.add(at), block.len());
        }
        if block.iter().fold(false, |is_rare, x| is_rare | (x.abs() > MOST_ANGLE)) {
            for (i, &x) in block.iter().enumerate().filter(|(_, x)| x.abs() > MOST_ANGLE) {
                // SAFETY: as above.
                unsafe { *y.add(at + i) = rare(f64::from(x)) as f32 };
            }
        }
    }
}

/// A formula: its parameters, and its expression in x.
macro_rules! formulas {
    ($($name:ident $(($($parameter:ident),*))? $([$at_once:literal])?: |$x:ident| $body:expr;)*) => {
        $(
            #[derive(Clone, Copy)]
            struct $name $(($(formulas!(@f32 $parameter)),*))?;

            impl Formula for $name {
                $(const AT_ONCE: usize = $at_once;)?

                #[inline(always)]
                unsafe fn of<N: Real>(self, $x: N) -> N {
                    let Self $(($($parameter),*))? = self;
                    // SAFETY: as demanded of the caller.
                    unsafe {
                        $($(let $parameter = N::splat($parameter);)*)?
                        $body
                    }
                }
            }
        )*
    };
    (@f32 $parameter:ident) => { f32 };
}

/// # Safety
/// As of `Number`.
#[inline(always)]
unsafe fn zero<N: Real>() -> N {
    // SAFETY: as demanded of the caller.
    unsafe { N::splat(0.0) }
}

/// x times a factor that vanishes as x goes to an infinity: zero there, not NaN.
///
/// # Safety
/// As of `Number`.
#[inline(always)]
unsafe fn damped<N: Real>(x: N, factor: N) -> N {
    // SAFETY: as demanded of the caller.
    unsafe { N::if_less(factor, N::splat(f32::from_bits(1)), zero(), x.mul(factor)) }
}

/// x^(1/2): infinity for -infinity, 0 for -0.
///
/// # Safety
/// As of `Number`.
#[inline(always)]
unsafe fn root<N: Real>(x: N) -> N {
    // SAFETY: as demanded of the caller.
    unsafe { N::if_less(x, N::splat(f32::MIN), N::splat(f32::INFINITY), x.add(zero())).sqrt() }
}

/// Clamped to 0 and 1.
///
/// # Safety
/// As of `Number`.
#[inline(always)]
unsafe fn between_0_and_1<N: Real>(x: N) -> N {
    // SAFETY: as demanded of the caller.
    unsafe { N::splat(1.0).min(zero::<N>().max(x)) }
}

formulas! {
    // In this order NaN propagates.
    Relu: |x| zero::<N>().max(x);
    LeakyRelu(alpha): |x| N::if_less(x, zero(), x.mul(alpha), x);
    Elu(alpha)[2]: |x| N::if_less(x, zero(), exp_minus_one(zero::<N>().min(x)).mul(alpha), x);
    GeluErf[2]: |x| damped(x, normal_cdf(x));
    GeluTanh[2]: |x| {
        // (1 + tanh(u)) / 2 is the sigmoid of 2u, u = sqrt(2 / pi) (x + 0.044715 x^3).
        let u = x.mul(x).mul_add(N::splat(0.071_354_816), N::splat(1.595_769_2)).mul(x);
        damped(x, sigmoid(u))
    };
    Tanh[2]: |x| tanh(x);
    Sigmoid[2]: |x| sigmoid(x);
    Swish(alpha)[2]: |x| damped(x, sigmoid(x.mul(alpha)));
    Exp[2]: |x| exp(x);
    Log[2]: |x| log(x);
    Sqrt: |x| x.sqrt();
    Square: |x| x.mul(x);
    Abs: |x| x.abs();
    Neg: |x| x.negated();
    Clip(low, high): |x| high.min(low.max(x));
    Linear(alpha, beta): |x| x.mul_add(alpha, beta);
    Constant(alpha): |_x| alpha;
    Level(beta): |x| N::if_equal(x, x, beta, x);
    SquareTimes(alpha): |x| x.mul(x).mul(alpha);
    CubeTimes(alpha): |x| x.mul(x).mul(x).mul(alpha);
    RootTimes(alpha): |x| root(x).mul(alpha);
    OneAndHalfTimes(alpha): |x| root(x).mul(x.abs()).mul(alpha);
    OverRoot(alpha): |x| alpha.div(root(x));
    Over(alpha): |x| alpha.div(x);
    HardSigmoid(alpha, beta): |x| between_0_and_1(x.mul_add(alpha, beta));
    HardSwish(alpha, beta): |x| damped(x, between_0_and_1(x.mul_add(alpha, beta)));
    Round: |x| x.round();
    Floor: |x| x.floor();
    Ceil: |x| x.ceil();
    Trunc: |x| x.trunc();
    Sign: |x| N::if_less(x, zero(), N::splat(-1.0), N::if_less(zero(), x, N::splat(1.0), x));
    Erf[2]: |x| erf(x);
    Sin[2]: |x| sin(x);
    Cos[2]: |x| cos(x);
    Tan[2]: |x| tan(x);
    Asin[2]: |x| asin(x);
    Acos[2]: |x| acos(x);
    Atan[2]: |x| atan(x);
    Sinh[2]: |x| sinh(x);
    Cosh[2]: |x| cosh(x);
    Mish[2]: |x| {
        // tanh(ln(1 + e)) is n / (n + 2) with n = e (e + 2), e = e^x; from 20 on that is 1.
        let e = exp(N::splat(20.0).min(x));
        let n = e.mul(e.add(N::splat(2.0)));
        damped(x, n.div(n.add(N::splat(2.0))))
    };
    Softplus(alpha)[2]: |x| {
        let u = x.mul(alpha);
        let small = log_one_plus(exp_not_above_one(u.abs().negated()));
        // Not u / a, which may be infinite where x is not.
        N::if_less(zero(), u, x, zero()).add(small.mul(N::splat(1.0).div(alpha)))
    };
}

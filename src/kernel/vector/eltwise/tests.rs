//! The unary elementwise functions against f64, at every level and position.
#![forbid(unsafe_code)]

use super::*;
use crate::kernel::vector::convert::{self, Stored};
use crate::kernel::vector::elements::ElementPair;
use crate::memory::{Bf16, F16};
use crate::ops::{Eltwise, weir_eltwise_op_value as Op};

fn made(op: Op, alpha: f32, beta: f32) -> Eltwise {
    Eltwise { op, alpha, beta }
}

/// Every function with the parameters of its tests, and its maximum relative error.
fn cases() -> Vec<(Eltwise, f64)> {
    use Op::*;
    let mut cases = vec![];
    let mut add = |op, bound, parameters: &[(f32, f32)]| {
        cases.extend(parameters.iter().map(|&(alpha, beta)| (made(op, alpha, beta), bound)));
    };
    let quarters: Vec<(f32, f32)> =
        [0.0, 0.25, -0.25].iter().flat_map(|&a| [0.0, 0.25, -0.25].map(|b| (a, b))).collect();
    add(WEIR_ELTWISE_RELU, 1.2e-7, &[(0.0, 0.0), (0.25, 0.0), (-0.25, 0.0)]);
    add(WEIR_ELTWISE_ELU, 2.5e-7, &[(0.0, 0.0), (0.25, 0.0), (-0.25, 0.0), (1.0, 0.0)]);
    add(WEIR_ELTWISE_GELU_ERF, 2e-6, &[(0.0, 0.0)]);
    add(WEIR_ELTWISE_GELU_TANH, 4e-6, &[(0.0, 0.0)]);
    add(WEIR_ELTWISE_TANH, 4e-7, &[(0.0, 0.0)]);
    add(WEIR_ELTWISE_SIGMOID, 2.5e-7, &[(0.0, 0.0)]);
    add(WEIR_ELTWISE_SWISH, 4e-7, &[(1.0, 0.0), (-2.0, 0.0), (0.0, 0.0), (0.3, 0.0), (1.702, 0.0)]);
    add(WEIR_ELTWISE_EXP, 1.3e-7, &[(0.0, 0.0)]);
    add(WEIR_ELTWISE_LOG, 2e-7, &[(0.0, 0.0)]);
    add(WEIR_ELTWISE_SQRT, 6e-8, &[(0.0, 0.0)]);
    add(WEIR_ELTWISE_SQUARE, 6e-8, &[(0.0, 0.0)]);
    add(WEIR_ELTWISE_ABS, 0.0, &[(0.0, 0.0)]);
    add(WEIR_ELTWISE_NEG, 0.0, &[(0.0, 0.0)]);
    add(WEIR_ELTWISE_CLIP, 0.0, &quarters);
    add(WEIR_ELTWISE_CLIP, 0.0, &[(-2.0, 3.0), (f32::NEG_INFINITY, 1.0)]);
    add(WEIR_ELTWISE_LINEAR, 1.3e-7, &quarters);
    add(WEIR_ELTWISE_LINEAR, 1.3e-7, &[(-2.0, 3.0)]);
    add(WEIR_ELTWISE_HARDSIGMOID, 1.3e-7, &[(0.2, 0.5), (1.0 / 6.0, 3.0), (0.0, 0.3), (-0.0, 7.0)]);
    add(WEIR_ELTWISE_HARDSWISH, 2e-7, &[(1.0 / 6.0, 0.5), (0.0, 0.3), (0.0, 0.0), (0.0, 2.0)]);
    add(WEIR_ELTWISE_ROUND, 0.0, &[(0.0, 0.0)]);
    for exact in [WEIR_ELTWISE_FLOOR, WEIR_ELTWISE_CEIL, WEIR_ELTWISE_TRUNC, WEIR_ELTWISE_SIGN] {
        add(exact, 0.0, &[(0.0, 0.0)]);
    }
    add(WEIR_ELTWISE_ERF, 1.3e-7, &[(0.0, 0.0)]);
    add(WEIR_ELTWISE_SIN, 1.8e-7, &[(0.0, 0.0)]);
    add(WEIR_ELTWISE_COS, 1.8e-7, &[(0.0, 0.0)]);
    add(WEIR_ELTWISE_TAN, 2.6e-7, &[(0.0, 0.0)]);
    add(WEIR_ELTWISE_ASIN, 3e-7, &[(0.0, 0.0)]);
    add(WEIR_ELTWISE_ACOS, 1.7e-7, &[(0.0, 0.0)]);
    add(WEIR_ELTWISE_ATAN, 1.7e-7, &[(0.0, 0.0)]);
    add(WEIR_ELTWISE_SINH, 2.8e-7, &[(0.0, 0.0)]);
    add(WEIR_ELTWISE_COSH, 2.6e-7, &[(0.0, 0.0)]);
    add(WEIR_ELTWISE_MISH, 5e-7, &[(0.0, 0.0)]);
    add(WEIR_ELTWISE_SOFTPLUS, 3e-7, &[(-1.0, 0.0), (1.0, 0.0), (2.0, 0.0), (0.3, 0.0), (-0.7, 0.0)]);
    add(
        WEIR_ELTWISE_POW,
        3e-7,
        &[
            (1.0, -1.0),
            (1.0, 0.5),
            (1.0, 1.5),
            (-2.0, 2.0),
            (0.5, 3.0),
            (1.0, -0.5),
            (2.0, 1.0),
            (3.0, 0.0),
            (1.0, 0.7),
        ],
    );
    cases
}

/// erfc by its series, and by its continued fraction where that is better.
fn erfc(x: f64) -> f64 {
    if x < 0.0 {
        return 2.0 - erfc(-x);
    }
    if x > 3.0 {
        let fraction = (1..=60).rev().fold(0.0, |f, k| f64::from(k) / 2.0 / (x + f));
        return (-x * x).exp() / std::f64::consts::PI.sqrt() / (x + fraction);
    }
    let (mut sum, mut term) = (0.0, x);
    for k in 0..80 {
        sum += term / f64::from(2 * k + 1);
        term *= -x * x / f64::from(k + 1);
    }
    1.0 - sum * 2.0 / std::f64::consts::PI.sqrt()
}

fn reference(f: &Eltwise, x: f64) -> f64 {
    let (alpha, beta) = (f64::from(f.alpha), f64::from(f.beta));
    let sigmoid = |x: f64| if x < 0.0 { x.exp() / (1.0 + x.exp()) } else { 1.0 / (1.0 + (-x).exp()) };
    let times = |factor: f64| if factor == 0.0 { 0.0 } else { x * factor };
    let softplus = |x: f64| x.max(0.0) + (-x.abs()).exp().ln_1p();
    match f.op {
        _ if x.is_nan() && !(f.op == Op::WEIR_ELTWISE_POW && beta == 0.0) => x,
        Op::WEIR_ELTWISE_RELU => {
            if x < 0.0 {
                times(alpha)
            } else {
                x
            }
        }
        Op::WEIR_ELTWISE_ELU => {
            if x < 0.0 {
                alpha * x.exp_m1()
            } else {
                x
            }
        }
        Op::WEIR_ELTWISE_GELU_ERF => times(erfc(-x / std::f64::consts::SQRT_2) / 2.0),
        Op::WEIR_ELTWISE_GELU_TANH => {
            times(sigmoid(2.0 * (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x * x * x)))
        }
        Op::WEIR_ELTWISE_TANH => x.tanh(),
        Op::WEIR_ELTWISE_SIGMOID => sigmoid(x),
        Op::WEIR_ELTWISE_SWISH if alpha == 0.0 => x / 2.0,
        Op::WEIR_ELTWISE_SWISH => times(sigmoid(alpha * x)),
        Op::WEIR_ELTWISE_EXP => x.exp(),
        Op::WEIR_ELTWISE_LOG => x.ln(),
        Op::WEIR_ELTWISE_SQRT => x.sqrt(),
        Op::WEIR_ELTWISE_SQUARE => x * x,
        Op::WEIR_ELTWISE_ABS => x.abs(),
        Op::WEIR_ELTWISE_NEG => -x,
        Op::WEIR_ELTWISE_CLIP => x.max(alpha).min(beta),
        Op::WEIR_ELTWISE_LINEAR => alpha * x + beta,
        // The power is an f32 of its own.
        Op::WEIR_ELTWISE_POW => alpha * f64::from(x.powf(beta) as f32),
        Op::WEIR_ELTWISE_HARDSIGMOID if alpha == 0.0 && !x.is_nan() => beta.clamp(0.0, 1.0),
        Op::WEIR_ELTWISE_HARDSWISH if alpha == 0.0 => times(beta.clamp(0.0, 1.0)),
        Op::WEIR_ELTWISE_HARDSIGMOID => (alpha * x + beta).clamp(0.0, 1.0),
        Op::WEIR_ELTWISE_HARDSWISH => times((alpha * x + beta).clamp(0.0, 1.0)),
        Op::WEIR_ELTWISE_ROUND => x.round_ties_even(),
        Op::WEIR_ELTWISE_MISH => times(softplus(x).tanh()),
        Op::WEIR_ELTWISE_SOFTPLUS => softplus(alpha * x) / alpha,
        // By its series near 0, where 1 - erfc cancels.
        Op::WEIR_ELTWISE_ERF if x.abs() < 0.5 => {
            let terms = (0..20).scan(x, |power, k| {
                let term = *power / f64::from(2 * k + 1);
                *power *= -x * x / f64::from(k + 1);
                Some(term)
            });
            terms.sum::<f64>() * std::f64::consts::FRAC_2_SQRT_PI
        }
        Op::WEIR_ELTWISE_ERF => (1.0 - erfc(x.abs())).copysign(x),
        Op::WEIR_ELTWISE_FLOOR => x.floor(),
        Op::WEIR_ELTWISE_CEIL => x.ceil(),
        Op::WEIR_ELTWISE_TRUNC => x.trunc(),
        Op::WEIR_ELTWISE_SIGN => f64::from(i8::from(x > 0.0) - i8::from(x < 0.0)),
        Op::WEIR_ELTWISE_SIN => x.sin(),
        Op::WEIR_ELTWISE_COS => x.cos(),
        Op::WEIR_ELTWISE_TAN => x.tan(),
        Op::WEIR_ELTWISE_ASIN => x.asin(),
        Op::WEIR_ELTWISE_ACOS => x.acos(),
        Op::WEIR_ELTWISE_ATAN => x.atan(),
        Op::WEIR_ELTWISE_SINH => x.sinh(),
        Op::WEIR_ELTWISE_COSH => x.cosh(),
    }
}

/// The classes of numbers at which functions differ, and numbers of every magnitude.
fn numbers() -> Vec<f32> {
    let mut all =
        vec![0.0, 1.0, 0.5, 0.25, 2.0, 3.0, f32::MIN_POSITIVE, 1e-40, 1e-45, f32::MAX, 1e30, f32::INFINITY, f32::NAN];
    let mut state = 7u32;
    let mut random = |limit: f32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 24) as f32 * limit
    };
    for _ in 0..200 {
        let around = [
            random(10.0).round(),
            random(0.1),
            random(100.0),
            random(1.0),
            88.0 + random(0.9),
            1.0 - random(2.0),
            random(4000.0),
            (random(2000.0).round() * std::f32::consts::FRAC_PI_2).next_up(),
            22.0 + random(1.0),
            44.0 + random(1.0),
        ];
        all.extend(around);
        all.extend([
            random(10.0),
            random(5.0),
            random(1e-3),
            1.0 + random(0.01),
            1.0 - random(0.01),
            103.0 + random(3.0),
        ]);
    }
    let step = if cfg!(debug_assertions) { 399_989 } else { 39_989 };
    all.extend((0..0x7f80_0000).step_by(step).map(f32::from_bits));
    let negative: Vec<f32> = all.iter().map(|x| -x).collect();
    all.extend(negative);
    all
}

fn results<T: Stored>(isa: Isa, f: &Eltwise, x: &[T]) -> Vec<T> {
    let mut y = x.to_vec();
    y.reverse(); // what was there does not matter
    apply(isa, f, ElementPair::apart(x, &mut y));
    y
}

/// Whether both are equal up to the bound, or both NaN. With cancellation, and for subnormal numbers, the error is
/// absolute.
fn close(f: &Eltwise, x: f64, got: f32, want: f64, bound: f64) -> bool {
    let rounded = want as f32;
    if rounded.is_nan() || rounded.is_infinite() || got.is_nan() || got.is_infinite() {
        let (largest, near) = (f64::from(f32::MAX), |x: f64| x.abs() >= f64::from(f32::MAX) * (1.0 - bound));
        return got.is_nan() && rounded.is_nan()
            || got == rounded
            || got.abs() >= largest as f32 && near(want)
            || near(f64::from(got)) && near(want);
    }
    let terms = match f.op {
        Op::WEIR_ELTWISE_LINEAR | Op::WEIR_ELTWISE_HARDSIGMOID => {
            (f64::from(f.alpha) * x).abs().max(f64::from(f.beta).abs())
        }
        Op::WEIR_ELTWISE_HARDSWISH => ((f64::from(f.alpha) * x).abs() + f64::from(f.beta).abs()) * x.abs(),
        _ => want.abs(),
    };
    // The argument of the exponential in a far tail is rounded, and its error is amplified by the argument.
    let tail = match f.op {
        Op::WEIR_ELTWISE_GELU_ERF if x < 0.0 => x * x * 6e-8,
        Op::WEIR_ELTWISE_GELU_TANH if x < 0.0 => (x * x * x).abs() * 0.08 * 1.5e-7,
        // The product with alpha is exact for powers of two.
        Op::WEIR_ELTWISE_SWISH | Op::WEIR_ELTWISE_SOFTPLUS if f.alpha.to_bits().trailing_zeros() < 23 => {
            (f64::from(f.alpha) * x).abs() * 0.5_f64.powi(24)
        }
        _ => 0.0,
    };
    f64::from(got) == want
        || (f64::from(got) - want).abs() <= (bound + tail) * terms + 1e-44 * (1.0 + x.abs().min(200.0))
}

#[test]
fn functions_are_exact_to_their_bound_at_every_level() {
    let x = numbers();
    for (f, bound) in cases() {
        for isa in Isa::levels() {
            let y = results(isa, &f, &x);
            for (&x, &got) in x.iter().zip(&y) {
                let want = reference(&f, f64::from(x));
                let error = (f64::from(got) - want).abs() / want.abs();
                assert!(
                    close(&f, f64::from(x), got, want, bound),
                    "{isa:?} {f:?} of {x:e}: {got:e} for {want:e} ({error:.2e})"
                );
            }
        }
    }
}

/// The numbers between which the error of a function is largest, if numbers of every magnitude are too few of them.
fn critical(op: Op) -> Option<(f32, f32)> {
    use Op::*;
    Some(match op {
        WEIR_ELTWISE_EXP => (-87.0, 88.7),
        WEIR_ELTWISE_LOG => (0.4, 2.5),
        WEIR_ELTWISE_TANH => (0.1, 9.5),
        WEIR_ELTWISE_SINH | WEIR_ELTWISE_COSH => (0.01, 12.0),
        WEIR_ELTWISE_ERF => (0.1, 4.0),
        WEIR_ELTWISE_ASIN | WEIR_ELTWISE_ACOS => (-1.0, 1.0),
        WEIR_ELTWISE_SIN | WEIR_ELTWISE_COS | WEIR_ELTWISE_TAN | WEIR_ELTWISE_ATAN => (-8.0, 8.0),
        WEIR_ELTWISE_ELU => (-4.0, 0.0),
        WEIR_ELTWISE_GELU_ERF | WEIR_ELTWISE_GELU_TANH => (-6.0, 6.0),
        WEIR_ELTWISE_SIGMOID | WEIR_ELTWISE_SWISH | WEIR_ELTWISE_SOFTPLUS | WEIR_ELTWISE_MISH => (-40.0, 20.0),
        _ => return None,
    })
}

#[test]
fn bounds_hold_where_errors_are_largest() {
    const COUNT: usize = 1 << 17;
    for (f, bound) in cases() {
        let Some((low, high)) = critical(f.op) else { continue };
        // Steps of the golden ratio are dense everywhere.
        let x: Vec<f32> =
            (0..COUNT).map(|i| low + (high - low) * (i as f64 * 0.618_033_988_749_895).fract() as f32).collect();
        let wants: Vec<f64> = x.iter().map(|&x| reference(&f, f64::from(x))).collect();
        for isa in Isa::levels() {
            let y = results(isa, &f, &x);
            for ((&x, &got), &want) in x.iter().zip(&y).zip(&wants) {
                let error = (f64::from(got) - want).abs() / want.abs();
                assert!(
                    close(&f, f64::from(x), got, want, bound),
                    "{isa:?} {f:?} of {x:e}: {got:e} for {want:e} ({error:.2e})"
                );
            }
        }
    }
}

#[test]
fn special_numbers_give_limits() {
    const INF: f32 = f32::INFINITY;
    let limits = [
        (made(Op::WEIR_ELTWISE_EXP, 0.0, 0.0), -INF, 0.0),
        (made(Op::WEIR_ELTWISE_EXP, 0.0, 0.0), INF, INF),
        (made(Op::WEIR_ELTWISE_LOG, 0.0, 0.0), 0.0, -INF),
        (made(Op::WEIR_ELTWISE_LOG, 0.0, 0.0), -0.0, -INF),
        (made(Op::WEIR_ELTWISE_LOG, 0.0, 0.0), INF, INF),
        (made(Op::WEIR_ELTWISE_TANH, 0.0, 0.0), -INF, -1.0),
        (made(Op::WEIR_ELTWISE_SIGMOID, 0.0, 0.0), -INF, 0.0),
        (made(Op::WEIR_ELTWISE_SIGMOID, 0.0, 0.0), INF, 1.0),
        (made(Op::WEIR_ELTWISE_GELU_ERF, 0.0, 0.0), -INF, 0.0),
        (made(Op::WEIR_ELTWISE_GELU_ERF, 0.0, 0.0), INF, INF),
        (made(Op::WEIR_ELTWISE_GELU_TANH, 0.0, 0.0), -INF, 0.0),
        (made(Op::WEIR_ELTWISE_GELU_TANH, 0.0, 0.0), INF, INF),
        (made(Op::WEIR_ELTWISE_SWISH, 1.0, 0.0), -INF, 0.0),
        (made(Op::WEIR_ELTWISE_SWISH, -1.0, 0.0), INF, 0.0),
        (made(Op::WEIR_ELTWISE_MISH, 0.0, 0.0), -INF, 0.0),
        (made(Op::WEIR_ELTWISE_MISH, 0.0, 0.0), INF, INF),
        (made(Op::WEIR_ELTWISE_SOFTPLUS, 1.0, 0.0), -INF, 0.0),
        (made(Op::WEIR_ELTWISE_SOFTPLUS, 1.0, 0.0), INF, INF),
        (made(Op::WEIR_ELTWISE_ELU, 2.0, 0.0), -INF, -2.0),
        (made(Op::WEIR_ELTWISE_RELU, 0.0, 0.0), -INF, 0.0),
        (made(Op::WEIR_ELTWISE_HARDSWISH, 0.2, 0.5), -INF, 0.0),
        (made(Op::WEIR_ELTWISE_POW, 1.0, 0.5), -INF, INF),
        (made(Op::WEIR_ELTWISE_POW, 1.0, -0.5), -0.0, INF),
        (made(Op::WEIR_ELTWISE_ROUND, 0.0, 0.0), 2.5, 2.0),
        (made(Op::WEIR_ELTWISE_FLOOR, 0.0, 0.0), -0.5, -1.0),
        (made(Op::WEIR_ELTWISE_CEIL, 0.0, 0.0), 2.1, 3.0),
        (made(Op::WEIR_ELTWISE_TRUNC, 0.0, 0.0), -2.7, -2.0),
        (made(Op::WEIR_ELTWISE_SIGN, 0.0, 0.0), -INF, -1.0),
        (made(Op::WEIR_ELTWISE_SIGN, 0.0, 0.0), -0.0, -0.0),
        (made(Op::WEIR_ELTWISE_ERF, 0.0, 0.0), -INF, -1.0),
        (made(Op::WEIR_ELTWISE_ATAN, 0.0, 0.0), INF, std::f32::consts::FRAC_PI_2),
        (made(Op::WEIR_ELTWISE_SINH, 0.0, 0.0), -INF, -INF),
        (made(Op::WEIR_ELTWISE_COSH, 0.0, 0.0), -INF, INF),
        (made(Op::WEIR_ELTWISE_COSH, 0.0, 0.0), 0.0, 1.0),
        (made(Op::WEIR_ELTWISE_ACOS, 0.0, 0.0), 1.0, 0.0),
        (made(Op::WEIR_ELTWISE_ACOS, 0.0, 0.0), -1.0, std::f32::consts::PI),
        (made(Op::WEIR_ELTWISE_ASIN, 0.0, 0.0), -1.0, -std::f32::consts::FRAC_PI_2),
        (made(Op::WEIR_ELTWISE_COS, 0.0, 0.0), 0.0, 1.0),
        (made(Op::WEIR_ELTWISE_CLIP, 3.0, -2.0), 0.0, -2.0),
    ];
    for isa in Isa::levels() {
        for (f, x, want) in &limits {
            // In each lane, and in the partial register of the remainder.
            let y = results(isa, f, &[*x; 83]);
            assert!(y.iter().all(|y| y == want), "{isa:?} {f:?} of {x}: {y:?}");
        }
        for (f, _) in cases().iter().filter(|(f, _)| f.op != Op::WEIR_ELTWISE_POW) {
            let y = results(isa, f, &[f32::NAN, -f32::NAN, f32::from_bits(0x7fc0_0055)].repeat(30));
            assert!(y.iter().all(|y| y.is_nan()), "{isa:?} {f:?} of NaN: {y:?}");
        }
        let y = results(isa, &made(Op::WEIR_ELTWISE_TANH, 0.0, 0.0), &numbers());
        assert!(y.iter().all(|y| y.is_nan() || y.abs() <= 1.0), "{isa:?}: beyond 1");
    }
}

#[test]
fn a_result_depends_on_its_element_alone() {
    let x: Vec<f32> = numbers().into_iter().step_by(7).take(300).collect();
    for (f, _) in cases() {
        for isa in Isa::levels() {
            let whole = results(isa, &f, &x);
            let bits =
                |y: &[f32]| y.iter().map(|y| if y.is_nan() { 0x7fc0_0000 } else { y.to_bits() }).collect::<Vec<_>>();
            for (begin, len) in (0..70).map(|len| (len % 11, len)).chain([(3, 290), (1, 128)]) {
                let part = &x[begin..begin + len];
                // In place, with guards on both sides.
                let mut y = [&[7.0; 20], part, &[7.0; 20]].concat();
                apply(isa, &f, ElementPair::in_place(&mut y[20..20 + len]));
                assert!(
                    y[..20].iter().chain(&y[20 + len..]).all(|&guard| guard == 7.0),
                    "{isa:?} {f:?} {len}: written outside"
                );
                assert_eq!(bits(&y[20..20 + len]), bits(&whole[begin..begin + len]), "{isa:?} {f:?} {begin} {len}");
            }
        }
    }
}

#[test]
fn halves_are_rounded_results_of_floats() {
    let x = numbers();
    for (f, _) in cases() {
        for isa in Isa::levels() {
            let (mut bf16, mut f16) = (vec![Bf16(0); x.len()], vec![F16(0); x.len()]);
            convert::narrow(isa, &x, &mut bf16);
            convert::narrow(isa, &x, &mut f16);
            check_half(isa, &f, &bf16);
            check_half(isa, &f, &f16);
        }
    }
}

fn check_half<T: Stored + PartialEq + std::fmt::Debug + Default>(isa: Isa, f: &Eltwise, x: &[T]) {
    let mut wide = vec![0.0; x.len()];
    convert::widen(isa, x, &mut wide);
    let mut want = vec![T::default(); x.len()];
    convert::narrow(isa, &results(isa, f, &wide), &mut want);
    assert!(results(isa, f, x) == want, "{isa:?} {f:?}");
    let mut y = x[..x.len() - 3].to_vec();
    apply(isa, f, ElementPair::in_place(&mut y));
    assert!(y == want[..y.len()], "{isa:?} {f:?} in place");
}

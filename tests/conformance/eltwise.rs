//! Functions of each element, with all their parameters, in place and not.

use crate::data::{Random, count};
use crate::rule::{Rule, epsilon};
use crate::suite::{Place, Stage, Suite};
use crate::values::Values;
use weir_core::base::dtype;
use weir_core::kernel::builtin::Builtin;
use weir_core::ops::{Eltwise, weir_eltwise_op_value as Op};

const SHAPES: [&[i64]; 7] = [
    &[16, 16, 2, 1],
    &[3, 15, 2, 5, 3],
    &[5, 16, 3],
    &[16, 64, 1, 1],
    &[3, 7, 3, 2],
    &[32, 5, 2, 3],
    &[3, 17, 2, 5, 3],
];

fn functions() -> Vec<Eltwise> {
    let quarters = [0.0, 0.25, -0.25];
    let with = |op, parameters: &[(f32, f32)]| {
        parameters.iter().map(|&(alpha, beta)| Eltwise { op, alpha, beta }).collect::<Vec<_>>()
    };
    let pairs = [(-2.0, 3.0)].into_iter().chain(quarters.into_iter().flat_map(|a| quarters.map(|b| (a, b))));
    let pairs: Vec<(f32, f32)> = pairs.collect();
    let firsts = quarters.map(|a| (a, 0.0));
    let plain = [
        Op::WEIR_ELTWISE_ABS,
        Op::WEIR_ELTWISE_EXP,
        Op::WEIR_ELTWISE_GELU_ERF,
        Op::WEIR_ELTWISE_GELU_TANH,
        Op::WEIR_ELTWISE_LOG,
        Op::WEIR_ELTWISE_SIGMOID,
        Op::WEIR_ELTWISE_MISH,
        Op::WEIR_ELTWISE_ROUND,
        Op::WEIR_ELTWISE_SQRT,
        Op::WEIR_ELTWISE_SQUARE,
        Op::WEIR_ELTWISE_TANH,
        Op::WEIR_ELTWISE_NEG,
        Op::WEIR_ELTWISE_ERF,
        Op::WEIR_ELTWISE_FLOOR,
        Op::WEIR_ELTWISE_CEIL,
        Op::WEIR_ELTWISE_TRUNC,
        Op::WEIR_ELTWISE_SIGN,
        Op::WEIR_ELTWISE_SIN,
        Op::WEIR_ELTWISE_COS,
        Op::WEIR_ELTWISE_TAN,
        Op::WEIR_ELTWISE_ASIN,
        Op::WEIR_ELTWISE_ACOS,
        Op::WEIR_ELTWISE_ATAN,
        Op::WEIR_ELTWISE_SINH,
        Op::WEIR_ELTWISE_COSH,
    ];
    let mut all: Vec<Eltwise> = plain.into_iter().flat_map(|op| with(op, &[(0.0, 0.0)])).collect();
    all.extend(with(Op::WEIR_ELTWISE_RELU, &firsts));
    all.extend(with(Op::WEIR_ELTWISE_ELU, &firsts));
    all.extend(with(Op::WEIR_ELTWISE_SWISH, &[(-2.0, 0.0), (1.0, 0.0)]));
    all.extend(with(Op::WEIR_ELTWISE_SOFTPLUS, &[(-1.0, 0.0), (1.0, 0.0), (2.0, 0.0)]));
    all.extend(with(Op::WEIR_ELTWISE_CLIP, &pairs));
    all.extend(with(Op::WEIR_ELTWISE_LINEAR, &pairs));
    all.extend(with(Op::WEIR_ELTWISE_HARDSIGMOID, &[(0.2, 0.5), (1.0 / 6.0, 3.0)]));
    all.extend(with(Op::WEIR_ELTWISE_HARDSWISH, &[(1.0 / 6.0, 0.5)]));
    all.extend(with(Op::WEIR_ELTWISE_POW, &[(1.0, -1.0), (1.0, 0.5), (1.0, 1.5)]));
    all
}

pub fn cases(suite: &mut Suite) {
    for (seed, shape) in
        SHAPES.iter().enumerate().filter(|(_, shape)| suite.takes(count(shape) * 100)).collect::<Vec<_>>()
    {
        for f in functions() {
            for of in [dtype::F32, dtype::BF16, dtype::F16] {
                let x = data(of, shape, &f, seed as u64);
                let reference: Vec<f64> = x.x.iter().map(|&x| value(&f, x)).collect();
                for place in [Place::In, Place::Out] {
                    let name = format!("{f:?} {} {shape:?} {place:?}", dtype::name(of));
                    let stage = vec![Stage::new(Builtin::new(f), vec![x.clone()])];
                    suite.stages(name, rule(&f, of), reference.clone(), place, stage);
                }
            }
        }
    }
}

/// Numbers of all sizes, where functions overflow, and the parameters themselves.
fn data(of: u32, shape: &[i64], f: &Eltwise, seed: u64) -> Values {
    let mut random = Random::new(seed);
    let is_log = f.op == Op::WEIR_ELTWISE_LOG;
    let x = (0..count(shape)).map(|i| {
        let unit = random.unit();
        match i % 13 {
            0 => random.whole(0, 10),
            1 => -random.whole(0, 10),
            2 => 0.1 * unit,
            3 => -0.1 * unit,
            4 => 100.0 * unit,
            5 => -100.0 * unit,
            6 => 88.0 + 0.9 * unit,
            7 => 22.0 + unit,
            8 => 44.0 + unit,
            9 => f64::from(f.alpha),
            10 => f64::from(f.beta),
            11 if is_log => f64::INFINITY,
            12 if is_log => f64::NEG_INFINITY,
            11 => unit,
            _ => -unit,
        }
    });
    Values::nearest(of, shape, x)
}

fn rule(f: &Eltwise, of: u32) -> Rule {
    let tolerance = match f.op {
        _ if of != dtype::F32 => epsilon(of),
        Op::WEIR_ELTWISE_GELU_TANH
        | Op::WEIR_ELTWISE_ELU
        | Op::WEIR_ELTWISE_SWISH
        | Op::WEIR_ELTWISE_TANH
        | Op::WEIR_ELTWISE_SOFTPLUS
        | Op::WEIR_ELTWISE_MISH
        | Op::WEIR_ELTWISE_LOG => 4e-5,
        _ => 4e-6,
    };
    // A few parameters make a constant of it.
    let is_constant =
        f.op == Op::WEIR_ELTWISE_CLIP && f.alpha >= f.beta || f.op == Op::WEIR_ELTWISE_LINEAR && f.alpha == 0.0;
    let zeros = if is_constant && f.beta == 0.0 { 100 } else { 65 };
    // Where a sum nearly vanishes, what is rounded before counts.
    let absolute = if matches!(f.op, Op::WEIR_ELTWISE_HARDSIGMOID | Op::WEIR_ELTWISE_HARDSWISH) {
        f64::from(f32::EPSILON)
    } else {
        0.0
    };
    Rule { absolute, ..Rule::with(tolerance).zeros(zeros) }
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

fn value(f: &Eltwise, x: f64) -> f64 {
    let (alpha, beta) = (f64::from(f.alpha), f64::from(f.beta));
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    let softplus = |x: f64| x.max(0.0) + (-x.abs()).exp().ln_1p();
    match f.op {
        Op::WEIR_ELTWISE_RELU => {
            if x >= 0.0 {
                x
            } else {
                alpha * x
            }
        }
        Op::WEIR_ELTWISE_ELU => {
            if x >= 0.0 {
                x
            } else {
                alpha * x.exp_m1()
            }
        }
        Op::WEIR_ELTWISE_GELU_ERF => x * (erfc(-x / std::f64::consts::SQRT_2) / 2.0),
        Op::WEIR_ELTWISE_GELU_TANH => {
            x * sigmoid(2.0 * (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x * x * x))
        }
        Op::WEIR_ELTWISE_TANH => x.tanh(),
        Op::WEIR_ELTWISE_SIGMOID => sigmoid(x),
        Op::WEIR_ELTWISE_SWISH => x * sigmoid(alpha * x),
        Op::WEIR_ELTWISE_EXP => x.exp(),
        Op::WEIR_ELTWISE_LOG => x.ln(),
        Op::WEIR_ELTWISE_SQRT => x.sqrt(),
        Op::WEIR_ELTWISE_SQUARE => x * x,
        Op::WEIR_ELTWISE_ABS => x.abs(),
        Op::WEIR_ELTWISE_NEG => -x,
        Op::WEIR_ELTWISE_CLIP => x.max(alpha).min(beta),
        Op::WEIR_ELTWISE_LINEAR => alpha * x + beta,
        Op::WEIR_ELTWISE_POW => alpha * x.powf(beta),
        Op::WEIR_ELTWISE_HARDSIGMOID => (alpha * x + beta).clamp(0.0, 1.0),
        Op::WEIR_ELTWISE_HARDSWISH => x * (alpha * x + beta).clamp(0.0, 1.0),
        Op::WEIR_ELTWISE_ROUND => x.round_ties_even(),
        Op::WEIR_ELTWISE_MISH => x * softplus(x).tanh(),
        Op::WEIR_ELTWISE_SOFTPLUS => softplus(alpha * x) / alpha,
        // Near 0 by its slope, as 1 - erfc cancels there.
        Op::WEIR_ELTWISE_ERF if x.abs() < 1e-4 => x * (1.0 - x * x / 3.0) * std::f64::consts::FRAC_2_SQRT_PI,
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

//! Functions of two tensors that broadcast.

use crate::data::{self, count};
use crate::product::matrix_of;
use crate::rule::{Rule, epsilon};
use crate::suite::{Place, Stage, Suite};
use crate::values::{is_integer, wrapped};
use weir_core::base::dtype;
use weir_core::kernel::builtin::Builtin;
use weir_core::ops::{
    Binary, weir_binary_op_value as Op, weir_overflow_value as Overflow, weir_rounding_value as Rounding,
};

const SHAPES: [(&[i64], &[i64]); 7] = [
    (&[3, 5, 6, 9], &[3, 5, 6, 9]),
    (&[5, 3, 2, 9], &[1, 3, 2, 9]),
    (&[32, 17, 2, 3], &[1, 17, 1, 1]),
    (&[15, 12, 3, 5], &[1, 1, 1, 1]),
    (&[5, 3, 1, 9], &[1, 3, 2, 9]),
    (&[12, 1], &[1, 12]),
    (&[2, 3, 48], &[1, 3, 48]),
];
const TYPES: [u32; 7] = [dtype::F32, dtype::BF16, dtype::F16, dtype::S64, dtype::S32, dtype::S8, dtype::U8];
const OPS: [Op; 13] = [
    Op::WEIR_BINARY_ADD,
    Op::WEIR_BINARY_SUB,
    Op::WEIR_BINARY_MUL,
    Op::WEIR_BINARY_DIV,
    Op::WEIR_BINARY_MIN,
    Op::WEIR_BINARY_MAX,
    Op::WEIR_BINARY_EQ,
    Op::WEIR_BINARY_NE,
    Op::WEIR_BINARY_LT,
    Op::WEIR_BINARY_LE,
    Op::WEIR_BINARY_GT,
    Op::WEIR_BINARY_GE,
    Op::WEIR_BINARY_REM,
];

pub fn cases(suite: &mut Suite) {
    for (seed, (a, b)) in SHAPES.iter().enumerate() {
        let to: Vec<i64> = a.iter().zip(*b).map(|(&a, &b)| a.max(b)).collect();
        for (op, is_default) in OPS.into_iter().flat_map(|op| [(op, true), (op, false)]) {
            let kernel = match is_default {
                true => Binary::of(op),
                false => Binary {
                    rounding: Rounding::WEIR_ROUNDING_NEAREST,
                    overflow: Overflow::WEIR_OVERFLOW_SATURATE,
                    ..Binary::of(op)
                },
            };
            for of in TYPES {
                // Few different numbers, so that some are equal; and none is 0.
                let range = if of == dtype::U8 { (1, 9) } else { (-9, 9) };
                let operand = |dims: &[i64], seed: u64| {
                    let mut values = data::whole(of, dims, range, seed);
                    values.x.iter_mut().filter(|x| **x == 0.0).for_each(|x| *x = 10.0);
                    values
                };
                let (x, y) = (operand(a, 2 * seed as u64), operand(b, 2 * seed as u64 + 1));
                let reference = (0..count(&to))
                    .map(|i| value(&kernel, of, x.x[matrix_of(i, a, &to)], y.x[matrix_of(i, b, &to)]))
                    .collect::<Vec<_>>();
                let compares = op.compares();
                // With a single number b, which may be any, most comparisons can have one result.
                let zeros = match op {
                    _ if compares && b.iter().all(|&dim| dim == 1) => 100,
                    Op::WEIR_BINARY_EQ => 97,
                    _ if compares => 70,
                    Op::WEIR_BINARY_REM => 80,
                    Op::WEIR_BINARY_SUB | Op::WEIR_BINARY_DIV if is_integer(of) => 85,
                    _ => 30,
                };
                let rule = Rule::with(if compares { 0.0 } else { epsilon(of) }).zeros(zeros);
                let name = format!("{kernel:?} {} {a:?} {b:?}", dtype::name(of));
                let stage = || vec![Stage::new(Builtin::new(kernel), vec![x.clone(), y.clone()])];
                if !compares && to == *a {
                    suite.stages(format!("{name} in place"), rule, reference.clone(), Place::In, stage());
                }
                suite.stages(name, rule, reference, Place::Out, stage());
            }
        }
    }
}

fn value(of: &Binary, dtype: u32, a: f64, b: f64) -> f64 {
    let round = |x: f64| match of.rounding {
        Rounding::WEIR_ROUNDING_NEAREST => x.round_ties_even(),
        _ => x.trunc(),
    };
    let value = match of.op {
        Op::WEIR_BINARY_ADD => a + b,
        Op::WEIR_BINARY_SUB => a - b,
        Op::WEIR_BINARY_MUL => a * b,
        Op::WEIR_BINARY_DIV if is_integer(dtype) => round(a / b),
        Op::WEIR_BINARY_DIV => a / b,
        Op::WEIR_BINARY_REM => a - b * round(a / b),
        Op::WEIR_BINARY_MIN => a.min(b),
        Op::WEIR_BINARY_MAX => a.max(b),
        Op::WEIR_BINARY_POW => a.powf(b),
        Op::WEIR_BINARY_EQ => f64::from(a == b),
        Op::WEIR_BINARY_NE => f64::from(a != b),
        Op::WEIR_BINARY_LT => f64::from(a < b),
        Op::WEIR_BINARY_LE => f64::from(a <= b),
        Op::WEIR_BINARY_GT => f64::from(a > b),
        Op::WEIR_BINARY_GE => f64::from(a >= b),
    };
    // What saturates does so when it is stored.
    if is_integer(dtype) && of.overflow == Overflow::WEIR_OVERFLOW_WRAP { wrapped(dtype, value as i64) } else { value }
}

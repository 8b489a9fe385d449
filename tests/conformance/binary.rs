//! Functions of two tensors that broadcast.

use crate::data::{self, count};
use crate::product::matrix_of;
use crate::rule::{Rule, epsilon};
use crate::suite::{Place, Stage, Suite};
use crate::values::is_integer;
use weir::base::dtype;
use weir::kernel::builtin::Binary;
use weir::kernel::vector::binary::Op;

const SHAPES: [(&[i64], &[i64]); 7] = [
    (&[3, 5, 6, 9], &[3, 5, 6, 9]),
    (&[5, 3, 2, 9], &[1, 3, 2, 9]),
    (&[32, 17, 2, 3], &[1, 17, 1, 1]),
    (&[15, 12, 3, 5], &[1, 1, 1, 1]),
    (&[5, 3, 1, 9], &[1, 3, 2, 9]),
    (&[12, 1], &[1, 12]),
    (&[2, 3, 48], &[1, 3, 48]),
];
const TYPES: [u32; 6] = [dtype::F32, dtype::BF16, dtype::F16, dtype::S32, dtype::S8, dtype::U8];
const OPS: [Op; 12] =
    [Op::Add, Op::Sub, Op::Mul, Op::Div, Op::Min, Op::Max, Op::Eq, Op::Ne, Op::Lt, Op::Le, Op::Gt, Op::Ge];

pub fn cases(suite: &mut Suite) {
    for (seed, (a, b)) in SHAPES.iter().enumerate() {
        let to: Vec<i64> = a.iter().zip(*b).map(|(&a, &b)| a.max(b)).collect();
        for op in OPS {
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
                    .map(|i| value(op, x.x[matrix_of(i, a, &to)], y.x[matrix_of(i, b, &to)]))
                    .collect::<Vec<_>>();
                let compares = op.compares();
                // With a single number b, which may be any, most comparisons can have one result.
                let zeros = match op {
                    _ if compares && b.iter().all(|&dim| dim == 1) => 100,
                    Op::Eq => 97,
                    _ if compares => 70,
                    Op::Sub | Op::Div if is_integer(of) => 70,
                    _ => 30,
                };
                let rule = Rule::with(if compares { 0.0 } else { epsilon(of) }).zeros(zeros);
                let name = format!("{op:?} {} {a:?} {b:?}", dtype::name(of));
                let stage = || vec![Stage::new(Binary { op }, vec![x.clone(), y.clone()])];
                if !compares && to == *a {
                    suite.stages(format!("{name} in place"), rule, reference.clone(), Place::In, stage());
                }
                suite.stages(name, rule, reference, Place::Out, stage());
            }
        }
    }
}

fn value(op: Op, a: f64, b: f64) -> f64 {
    match op {
        Op::Add => a + b,
        Op::Sub => a - b,
        Op::Mul => a * b,
        Op::Div => a / b,
        Op::Min => a.min(b),
        Op::Max => a.max(b),
        Op::Pow => a.powf(b),
        Op::Eq => f64::from(a == b),
        Op::Ne => f64::from(a != b),
        Op::Lt => f64::from(a < b),
        Op::Le => f64::from(a <= b),
        Op::Gt => f64::from(a > b),
        Op::Ge => f64::from(a >= b),
    }
}

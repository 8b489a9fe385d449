//! Elementwise choice between two tensors.
#![forbid(unsafe_code)]

use super::broadcast::Broadcast;
use super::{Builtin, BuiltinOperation, GRAIN, LEAST_NS, NS_PER_FLOAT, elements};
use crate::base::{Desc, Result, dtype};
use crate::kernel::vector::elements::SourceRow;
use crate::kernel::{KernelContext, Outputs};
use crate::memory::{Bf16, Bool, Element, F16};
use crate::ops::Select;
use crate::threadpool::Span;

/// A row of a tensor, from its first element on.
fn row<T>(all: &[T], row: SourceRow, len: usize) -> &[T] {
    &all[row.at..][..if row.stretched { 1 } else { len }]
}

/// y = a where the condition holds, else b; each of them as long as y, or a single element for all.
fn pick<T: Copy>(condition: &[Bool], a: &[T], b: &[T], y: &mut [T]) {
    let choose = |condition: Bool, a: T, b: T| if condition.0 != 0 { a } else { b };
    let len = y.len();
    if condition.len() != len {
        let from = if condition[0].0 != 0 { a } else { b };
        return if from.len() == len { y.copy_from_slice(from) } else { y.fill(from[0]) };
    }
    let items = y.iter_mut().zip(condition);
    match (a.len() == len, b.len() == len) {
        (true, true) => items.zip(a.iter().zip(b)).for_each(|((y, &c), (&a, &b))| *y = choose(c, a, b)),
        (true, false) => items.zip(a).for_each(|((y, &c), &a)| *y = choose(c, a, b[0])),
        (false, true) => items.zip(b).for_each(|((y, &c), &b)| *y = choose(c, a[0], b)),
        (false, false) => items.for_each(|(y, &c)| *y = choose(c, a[0], b[0])),
    }
}

fn run<T: Element>(context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
    let (inputs, output) = ([0, 1, 2].map(|i| context.input(i)), outputs.only());
    let dims = Broadcast::new([inputs[0].desc(), inputs[1].desc(), inputs[2].desc()], output.desc());
    let (condition, a, b) = (inputs[0].read::<Bool>(), inputs[1].read::<T>(), inputs[2].read::<T>());
    let span = Span { items: elements(output.desc()), cost_ns: 3.0 * NS_PER_FLOAT, grain: GRAIN, ..Span::default() };
    context.parallel_into(&span, output.shards::<T>(1), |y, claim| {
        dims.rows(claim.begin(), y.len(), |rows, at, len| {
            pick(row(condition, rows[0], len), row(a, rows[1], len), row(b, rows[2], len), &mut y[at..at + len]);
        });
        Ok(())
    })
}

impl BuiltinOperation for Builtin<Select> {
    fn cost_ns(&self, inputs: &[Desc], output: &Desc) -> u64 {
        super::traffic_ns(inputs.iter().chain([output]).map(elements).sum()).max(LEAST_NS)
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        match outputs.desc(0).dtype {
            dtype::F32 => run::<f32>(context, outputs),
            dtype::S64 => run::<i64>(context, outputs),
            dtype::S32 => run::<i32>(context, outputs),
            dtype::F16 => run::<F16>(context, outputs),
            dtype::BF16 => run::<Bf16>(context, outputs),
            dtype::S8 => run::<i8>(context, outputs),
            dtype::U8 => run::<u8>(context, outputs),
            _ => run::<Bool>(context, outputs),
        }
    }
}

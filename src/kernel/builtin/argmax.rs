//! Index of the greatest element along an axis.
#![forbid(unsafe_code)]

use super::{BuiltinOperation, LEAST_NS, axis, elements, input};
use crate::base::{Desc, Result, desc::ANY_DIM, dtype};
use crate::kernel::vector::argmax;
use crate::kernel::vector::columns::{Stripe, WIDTH};
use crate::kernel::{KernelContext, Outputs, signature};
use crate::threadpool::Span;

/// The index of the greatest element along `axis`, which counts from the end if negative: the first of equals, the
/// first NaN if there is one. An axis without elements, or with more than an s32 can count, is refused.
#[derive(Clone, Copy, Debug)]
pub struct Argmax {
    pub axis: i32,
}

impl BuiltinOperation for Argmax {
    fn name(&self) -> &str {
        "argmax"
    }

    fn num_inputs(&self) -> usize {
        1
    }

    fn output(&self, inputs: &[Desc]) -> Result<Desc> {
        signature::check_f32(inputs)?;
        let axis = signature::axis(self.axis, &inputs[0])?;
        let shape = inputs[0].shape();
        if shape[axis] != ANY_DIM && !(1..=i64::from(i32::MAX)).contains(&shape[axis]) {
            let expected = format!("1 to {} elements along axis {}", i32::MAX, self.axis);
            return Err(signature::mismatch("input", 0, &expected, &inputs[0]));
        }
        let mut output = Desc { dtype: dtype::S32, rank: inputs[0].rank - 1, ..inputs[0] };
        output.dims[axis..].rotate_left(1);
        output.check_open()
    }

    fn cost_ns(&self, inputs: &[Desc], _output: &Desc) -> u64 {
        (elements(&inputs[0]) as u64).max(LEAST_NS)
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        let x = input(context, 0);
        let columns = axis::split(self.axis, context.inputs()[0].desc())?;
        let (len, inner) = (columns.len, columns.inner);
        let span = Span { items: columns.outer * inner, cost_ns: len as f32, ..Span::default() };
        context.parallel_into(&span, outputs.only().shards::<i32>(1), |mut out, claim| {
            let mut at = claim.begin();
            while !out.is_empty() {
                let (block, column) = (at / inner, at % inner);
                let width = if inner == 1 { 1 } else { WIDTH.min(inner - column).min(out.len()) };
                let (part, rest) = out.split_at_mut(width);
                if inner == 1 {
                    part[0] = argmax::row(&x[at * len..][..len]);
                } else {
                    argmax::columns(x, Stripe { first: block * len * inner + column, width, len, stride: inner }, part);
                }
                (out, at) = (rest, at + width);
            }
            Ok(())
        })
    }
}

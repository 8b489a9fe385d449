//! Sum of two tensors, with broadcasting.
#![forbid(unsafe_code)]

use super::{BuiltinOperation, GRAIN, LEAST_NS, NS_PER_FLOAT, elements, input, traffic_ns};
use crate::base::{Desc, Result, desc::ANY_DIM, desc::MAX_RANK};
use crate::kernel::vector::{elementwise, isa::Isa};
use crate::kernel::{KernelContext, Outputs, signature};
use crate::threadpool::Span;

/// a + b, with broadcasting: shapes are aligned at the last dimension, and a dimension of 1 is broadcast.
#[derive(Clone, Copy, Debug)]
pub struct Add;

/// The size that two sizes broadcast to. An open size becomes 1 or the other size; with another open one, or 1, it
/// stays open.
fn stretched(a: i64, b: i64) -> Option<i64> {
    match (a, b) {
        _ if a == b => Some(a),
        (1, other) | (other, 1) | (ANY_DIM, other) | (other, ANY_DIM) => Some(other),
        _ => None,
    }
}

/// Size of the dimension `from_last` before the last one; 1 if there is none.
fn size(desc: &Desc, from_last: usize) -> i64 {
    desc.shape().iter().rev().nth(from_last).copied().unwrap_or(1)
}

/// A dimension of the sum, and its stride in each operand: 0 if the operand is broadcast.
#[derive(Clone, Copy, Debug, Default)]
struct SumDim {
    size: usize,
    a: usize,
    b: usize,
}

/// The sum's dimensions, the last one first. Neighbouring dimensions with one common stride are merged, so operands of
/// the same shape have a single one, and a bias has two.
#[derive(Debug)]
struct Dims {
    all: [SumDim; MAX_RANK],
    rank: usize,
}

impl Dims {
    fn new(a: &Desc, b: &Desc, output: &Desc) -> Dims {
        let mut dims = Dims { all: [SumDim { size: 1, a: 0, b: 0 }; MAX_RANK], rank: 1 };
        let (mut stride_a, mut stride_b) = (1, 1);
        for i in 0..output.shape().len() {
            let [size, a, b] = [output, a, b].map(|desc| size(desc, i) as usize);
            if size != 1 {
                let next = SumDim { size, a: if a == 1 { 0 } else { stride_a }, b: if b == 1 { 0 } else { stride_b } };
                dims.push(next);
            }
            stride_a *= a;
            stride_b *= b;
        }
        dims
    }

    fn push(&mut self, next: SumDim) {
        let last = &mut self.all[self.rank - 1];
        if last.size == 1 {
            *last = next;
        } else if next.a == last.a * last.size && next.b == last.b * last.size {
            last.size *= next.size;
        } else {
            self.all[self.rank] = next;
            self.rank += 1;
        }
    }

    /// The operands' offsets for row `row`; a row is the last dimension.
    fn offsets(&self, mut row: usize) -> (usize, usize) {
        let (mut a, mut b) = (0, 0);
        for dim in &self.all[1..self.rank] {
            let at = row % dim.size;
            row /= dim.size;
            a += at * dim.a;
            b += at * dim.b;
        }
        (a, b)
    }

    /// Computes the elements of the sum from index `begin` on.
    fn add(&self, a: &[f32], b: &[f32], begin: usize, mut out: &mut [f32]) {
        let isa = Isa::best();
        let inner = self.all[0];
        let (mut row, mut at) = (begin / inner.size, begin % inner.size);
        while !out.is_empty() {
            let (part, rest) = out.split_at_mut((inner.size - at).min(out.len()));
            let (a_row, b_row) = self.offsets(row);
            let (a, b) = (&a[a_row + at * inner.a..], &b[b_row + at * inner.b..]);
            match (inner.a, inner.b) {
                (0, _) => elementwise::add_scalar(isa, b, a[0], part),
                (_, 0) => elementwise::add_scalar(isa, a, b[0], part),
                _ => elementwise::add(isa, a, b, part),
            }
            (out, row, at) = (rest, row + 1, 0);
        }
    }
}

impl BuiltinOperation for Add {
    fn name(&self) -> &str {
        "add"
    }

    fn num_inputs(&self) -> usize {
        2
    }

    fn output(&self, inputs: &[Desc]) -> Result<Desc> {
        signature::check_f32(inputs)?;
        let (a, b) = (&inputs[0], &inputs[1]);
        let mut output = if a.rank >= b.rank { *a } else { *b };
        let rank = output.shape().len();
        for i in 0..rank {
            output.dims[rank - 1 - i] = stretched(size(a, i), size(b, i)).ok_or_else(|| {
                signature::mismatch("input", 1, &format!("a shape that broadcasts with {}", a.text()), b)
            })?;
        }
        output.check_open()
    }

    fn cost_ns(&self, inputs: &[Desc], output: &Desc) -> u64 {
        traffic_ns(inputs.iter().chain([output]).map(elements).sum()).max(LEAST_NS)
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        let (a, b) = (input(context, 0), input(context, 1));
        let output = outputs.only();
        let dims = Dims::new(context.inputs()[0].desc(), context.inputs()[1].desc(), output.desc());
        let span =
            Span { items: elements(output.desc()), cost_ns: 3.0 * NS_PER_FLOAT, grain: GRAIN, ..Span::default() };
        context.parallel_into(&span, output.shards(1), |sum, claim| {
            dims.add(a, b, claim.begin(), sum);
            Ok(())
        })
    }
}

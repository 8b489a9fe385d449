//! Functions of two tensors, with broadcasting.
#![forbid(unsafe_code)]

use super::broadcast::{self, Broadcast};
use super::{GRAIN, LEAST_NS, NS_PER_FLOAT, Operation, elements};
use crate::base::{Desc, Result, dtype};
use crate::device::Relation;
use crate::kernel::vector::binary::{self, Op};
use crate::kernel::vector::convert::{self, Stored};
use crate::kernel::vector::elements::{Source, Target, check_in_place};
use crate::kernel::vector::isa::Isa;
use crate::kernel::{KernelContext, signature};
use crate::memory::{Bf16, Bool, Element, F16};
use crate::sync::Claim;
use crate::threadpool::Span;

/// op(a, b), element by element. Shapes are aligned at the last dimension, and a dimension of 1 stretches.
#[derive(Clone, Copy, Debug)]
pub struct Binary {
    pub op: Op,
}

/// Elements that are gathered before they are computed with, where rows are short or hold no floats.
const BLOCK: usize = 512;
/// Rows of floats that are at least so long are computed with where they are.
const LONG: usize = 64;

/// A call: two operands that lie in a certain way under an output.
struct Call<'c, 'a> {
    op: Op,
    isa: Isa,
    dims: Broadcast<2>,
    context: &'c KernelContext<'a>,
}

impl Call<'_, '_> {
    fn region(&self, body: &(dyn Fn(&mut Claim) + Sync)) -> Result<()> {
        let items = elements(self.context.outputs()[0].desc());
        let cost_ns = 3.0 * NS_PER_FLOAT * if self.op == Op::Pow { 60.0 } else { 1.0 };
        self.context.parallel_for(&Span { items, cost_ns, grain: GRAIN, ..Span::default() }, &|mut claim| {
            body(&mut claim);
            Ok(())
        })
    }

    fn sources<T: Element>(&self) -> (Source<'_, T>, Source<'_, T>) {
        (Source::of(&self.context.inputs()[0]), Source::of(&self.context.inputs()[1]))
    }

    /// Floats in long rows.
    fn long_rows(&self) -> Result<()> {
        let ((a, b), output) = (self.sources::<f32>(), &self.context.outputs()[0]);
        self.region(&|claim| {
            let (begin, end) = (claim.begin(), claim.end());
            let mut y = Target::part(output, claim);
            self.dims.rows(begin, end - begin, |rows, at, len| {
                binary::row(self.isa, self.op, (&a, rows[0]), (&b, rows[1]), &mut y, at, len);
            });
        })
    }

    /// Anything by blocks of floats.
    fn blocks<T: Stored, U: Stored>(&self) -> Result<()> {
        let ((a, b), output) = (self.sources::<T>(), &self.context.outputs()[0]);
        self.region(&|claim| {
            let (begin, end) = (claim.begin(), claim.end());
            let mut y = Target::<U>::part(output, claim);
            let (mut left, mut right) = ([0.0; BLOCK], [0.0; BLOCK]);
            for from in (begin..end).step_by(BLOCK) {
                let count = BLOCK.min(end - from);
                self.dims.rows(from, count, |rows, at, len| {
                    a.widen(self.isa, rows[0], &mut left[at..at + len]);
                    b.widen(self.isa, rows[1], &mut right[at..at + len]);
                });
                binary::block(self.isa, self.op, &left[..count], &mut right[..count]);
                convert::narrow(self.isa, &right[..count], y.slice(from - begin, count));
            }
        })
    }

    /// s32 by blocks.
    fn integers(&self) -> Result<()> {
        let ((a, b), output) = (self.sources::<i32>(), &self.context.outputs()[0]);
        self.region(&|claim| {
            let (begin, end) = (claim.begin(), claim.end());
            let (mut left, mut right) = ([0; BLOCK], [0; BLOCK]);
            for from in (begin..end).step_by(BLOCK) {
                let count = BLOCK.min(end - from);
                self.dims.rows(from, count, |rows, at, len| {
                    a.copy(rows[0], &mut left[at..at + len]);
                    b.copy(rows[1], &mut right[at..at + len]);
                });
                let (left, right) = (&left[..count], &mut right[..count]);
                if self.op.compares() {
                    let mut y = Target::<Bool>::part(output, claim);
                    binary::compare_integers(self.op, left, right, y.slice(from - begin, count));
                } else {
                    binary::integers(self.op, left, right);
                    Target::part(output, claim).slice(from - begin, count).copy_from_slice(right);
                }
            }
        })
    }

    /// Bytes and halves.
    fn narrow<T: Stored>(&self) -> Result<()> {
        if self.op.compares() { self.blocks::<T, Bool>() } else { self.blocks::<T, T>() }
    }
}

impl Operation for Binary {
    fn name(&self) -> &str {
        match self.op {
            Op::Add => "add",
            Op::Sub => "sub",
            Op::Mul => "mul",
            Op::Div => "div",
            Op::Min => "min",
            Op::Max => "max",
            Op::Pow => "pow",
            Op::Eq => "eq",
            Op::Ne => "ne",
            Op::Lt => "lt",
            Op::Le => "le",
            Op::Gt => "gt",
            Op::Ge => "ge",
        }
    }

    fn num_inputs(&self) -> usize {
        2
    }

    fn output(&self, inputs: &[Desc]) -> Result<Desc> {
        signature::check_computes(inputs)?;
        let floats = [dtype::F32, dtype::BF16, dtype::F16];
        let taken = match inputs[0].dtype {
            of if floats.contains(&of) => true,
            dtype::BOOL => self.op.compares(),
            _ => self.op != Op::Pow,
        };
        if !taken {
            let expected = if self.op == Op::Pow { "f32, bf16 or f16 elements" } else { "elements that are numbers" };
            return Err(signature::mismatch("input", 0, expected, &inputs[0]));
        }
        if inputs[1].dtype != inputs[0].dtype {
            let expected = format!("{} elements, as input 0 has", dtype::name(inputs[0].dtype));
            return Err(signature::mismatch("input", 1, &expected, &inputs[1]));
        }
        let of = if self.op.compares() { dtype::BOOL } else { inputs[0].dtype };
        broadcast::shape(inputs, of)
    }

    fn cost_ns(&self, inputs: &[Desc], output: &Desc) -> u64 {
        let all: usize = inputs.iter().chain([output]).map(elements).sum();
        let slow = if self.op == Op::Pow { 60.0 } else { 1.0 };
        ((all as f32 * NS_PER_FLOAT * slow) as u64).max(LEAST_NS)
    }

    fn in_place(&self) -> bool {
        !self.op.compares()
    }

    fn comparison(&self) -> Option<Relation> {
        Some(match self.op {
            Op::Eq => Relation::Eq,
            Op::Ne => Relation::Ne,
            Op::Lt => Relation::Lt,
            Op::Le => Relation::Le,
            Op::Gt => Relation::Gt,
            Op::Ge => Relation::Ge,
            Op::Add | Op::Sub | Op::Mul | Op::Div | Op::Min | Op::Max | Op::Pow => return None,
        })
    }

    fn compute(&self, context: &KernelContext<'_>) -> Result<()> {
        let (inputs, output) = (context.inputs(), &context.outputs()[0]);
        check_in_place(inputs, output, |i| elements(inputs[i].desc()) != elements(output.desc()))?;
        let dims = Broadcast::new([inputs[0].desc(), inputs[1].desc()], output.desc());
        let long = dims.row_len() >= LONG || dims.row_len() == elements(output.desc());
        let call = Call { op: self.op, isa: Isa::best(), dims, context };
        match inputs[0].desc().dtype {
            dtype::F32 if long && !self.op.compares() => call.long_rows(),
            dtype::F32 => call.narrow::<f32>(),
            dtype::BF16 => call.narrow::<Bf16>(),
            dtype::F16 => call.narrow::<F16>(),
            dtype::S32 => call.integers(),
            dtype::S8 => call.narrow::<i8>(),
            dtype::U8 => call.narrow::<u8>(),
            _ => call.blocks::<Bool, Bool>(),
        }
    }
}

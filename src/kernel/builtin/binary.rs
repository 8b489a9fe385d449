//! Binary elementwise functions, with broadcasting.
#![forbid(unsafe_code)]

use super::broadcast::Broadcast;
use super::{Builtin, BuiltinOperation, GRAIN, LEAST_NS, NS_PER_FLOAT, elements};
use crate::base::{Desc, Result, dtype};
use crate::device::Relation;
use crate::kernel::vector::binary;
use crate::kernel::vector::convert::{self, Stored};
use crate::kernel::vector::elements::{Beside, Sides};
use crate::kernel::vector::isa::Isa;
use crate::kernel::{KernelContext, Outputs};
use crate::memory::{Bf16, Bool, Element, F16};
use crate::ops::{Binary, weir_binary_op_value as Op};
use crate::threadpool::Span;
use std::ops::Range;

/// Block of elements that are gathered before the computation, for short rows and types other than f32.
const BLOCK: usize = 512;
/// f32 rows of at least this length are computed in place.
const LONG: usize = 64;

/// A call: the strided operands and the output.
struct BinaryCall<'c, 'a> {
    op: Op,
    isa: Isa,
    dims: Broadcast<2>,
    context: &'c KernelContext<'a>,
    outputs: Outputs<'c>,
}

/// Parameters of its pieces.
struct BinaryPiece {
    op: Op,
    isa: Isa,
    dims: Broadcast<2>,
}

impl BinaryCall<'_, '_> {
    fn region<T: Element, U: Element>(
        self,
        body: impl Fn(&BinaryPiece, &mut Sides<'_, T, U>, Range<usize>) + Sync,
    ) -> Result<()> {
        let BinaryCall { op, isa, dims, context, outputs } = self;
        let items = elements(outputs.desc(0));
        let sides = Beside::of(context, outputs, |i| elements(context.inputs()[i].desc()) != items)?;
        let cost_ns = 3.0 * NS_PER_FLOAT * if op == Op::WEIR_BINARY_POW { 60.0 } else { 1.0 };
        let span = Span { items, cost_ns, grain: GRAIN, ..Span::default() };
        let work = BinaryPiece { op, isa, dims };
        context.parallel_into(&span, sides, |mut sides, claim| {
            body(&work, &mut sides, claim.begin()..claim.end());
            Ok(())
        })
    }

    /// f32 with long rows.
    fn long_rows(self) -> Result<()> {
        self.region::<f32, f32>(|work, sides, items| {
            work.dims.rows(items.start, items.len(), |rows, at, len| {
                binary::row(work.isa, work.op, sides, &rows, at, len);
            });
        })
    }

    /// Any type, in blocks converted to f32.
    fn blocks<T: Stored, U: Stored>(self) -> Result<()> {
        self.region::<T, U>(|&BinaryPiece { op, isa, ref dims }, sides, items| {
            let (mut left, mut right) = ([0.0; BLOCK], [0.0; BLOCK]);
            for from in items.clone().step_by(BLOCK) {
                let count = BLOCK.min(items.end - from);
                dims.rows(from, count, |rows, at, len| {
                    sides.input(0).widen(isa, rows[0], &mut left[at..at + len]);
                    sides.input(1).widen(isa, rows[1], &mut right[at..at + len]);
                });
                binary::block(isa, op, &left[..count], &mut right[..count]);
                convert::narrow(isa, &right[..count], sides.slice(from - items.start, count));
            }
        })
    }

    /// s32 in blocks: `narrow` stores the results of one into the output.
    fn integers<U: Element>(self, narrow: impl Fn(Op, &[i32], &mut [i32], &mut [U]) + Sync) -> Result<()> {
        self.region::<i32, U>(|work, sides, items| {
            let (mut left, mut right) = ([0; BLOCK], [0; BLOCK]);
            for from in items.clone().step_by(BLOCK) {
                let count = BLOCK.min(items.end - from);
                work.dims.rows(from, count, |rows, at, len| {
                    sides.input(0).copy(rows[0], &mut left[at..at + len]);
                    sides.input(1).copy(rows[1], &mut right[at..at + len]);
                });
                narrow(work.op, &left[..count], &mut right[..count], sides.slice(from - items.start, count));
            }
        })
    }

    /// s8, u8 and 16-bit floats.
    fn narrow<T: Stored>(self) -> Result<()> {
        if self.op.compares() { self.blocks::<T, Bool>() } else { self.blocks::<T, T>() }
    }
}

impl BuiltinOperation for Builtin<Binary> {
    fn cost_ns(&self, inputs: &[Desc], output: &Desc) -> u64 {
        let all: usize = inputs.iter().chain([output]).map(elements).sum();
        let slow = if self.op == Op::WEIR_BINARY_POW { 60.0 } else { 1.0 };
        ((all as f32 * NS_PER_FLOAT * slow) as u64).max(LEAST_NS)
    }

    fn in_place(&self) -> bool {
        !self.op.compares()
    }

    fn comparison(&self) -> Option<Relation> {
        Some(match self.op {
            Op::WEIR_BINARY_EQ => Relation::Eq,
            Op::WEIR_BINARY_NE => Relation::Ne,
            Op::WEIR_BINARY_LT => Relation::Lt,
            Op::WEIR_BINARY_LE => Relation::Le,
            Op::WEIR_BINARY_GT => Relation::Gt,
            Op::WEIR_BINARY_GE => Relation::Ge,
            Op::WEIR_BINARY_ADD
            | Op::WEIR_BINARY_SUB
            | Op::WEIR_BINARY_MUL
            | Op::WEIR_BINARY_DIV
            | Op::WEIR_BINARY_MIN
            | Op::WEIR_BINARY_MAX
            | Op::WEIR_BINARY_POW => return None,
        })
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        let (inputs, output) = (context.inputs(), outputs.desc(0));
        let dims = Broadcast::new([inputs[0].desc(), inputs[1].desc()], output);
        let long = dims.row_len() >= LONG || dims.row_len() == elements(output);
        let call = BinaryCall { op: self.op, isa: Isa::best(), dims, context, outputs };
        match inputs[0].desc().dtype {
            dtype::F32 if long && !self.op.compares() => call.long_rows(),
            dtype::F32 => call.narrow::<f32>(),
            dtype::BF16 => call.narrow::<Bf16>(),
            dtype::F16 => call.narrow::<F16>(),
            dtype::S32 if self.op.compares() => {
                call.integers::<Bool>(|op, a, b, y| binary::compare_integers(op, a, b, y))
            }
            dtype::S32 => call.integers::<i32>(|op, a, b, y| {
                binary::integers(op, a, b);
                y.copy_from_slice(b);
            }),
            dtype::S8 => call.narrow::<i8>(),
            dtype::U8 => call.narrow::<u8>(),
            _ => call.blocks::<Bool, Bool>(),
        }
    }
}

//! Binary elementwise functions, with broadcasting.
#![forbid(unsafe_code)]

use super::broadcast::Broadcast;
use super::chain::Chain;
use super::{Builtin, BuiltinOperation, GRAIN, LEAST_NS, NS_PER_FLOAT, elements};
use crate::base::{Desc, Result, dtype};
use crate::device::Relation;
use crate::kernel::vector::binary::{self, Integer, IntegerSide};
use crate::kernel::vector::convert::{self, Stored};
use crate::kernel::vector::elements::{Beside, Sides, SourceRow};
use crate::kernel::vector::isa::Isa;
use crate::kernel::{EpilogueStep, Kernel, KernelContext, Outputs};
use crate::memory::{Bf16, Bool, Element, F16};
use crate::ops::{Binary, weir_binary_op_value as Op};
use crate::threadpool::Span;
use std::ops::Range;
use std::sync::Arc;

/// Block of elements that are gathered before the computation, for short rows and types other than f32.
const BLOCK: usize = 512;
/// Rows of at least so many f32, and of integers of at least so many bytes, are computed where they are.
const LONG: usize = 64;
const LONG_BYTES: usize = 2048;

/// A call: the strided operands and the output.
struct BinaryCall<'c, 'a> {
    of: Binary,
    isa: Isa,
    dims: Broadcast<2>,
    context: &'c KernelContext<'a>,
    outputs: Outputs<'c>,
}

/// Computes some integers of an output from some of the operands.
type PutIntegers<T, U> = fn(Isa, &Binary, &mut Sides<'_, T, U>, [IntegerSide<'_, T>; 2], usize, usize);

/// Parameters of its pieces.
struct BinaryPiece {
    of: Binary,
    isa: Isa,
    dims: Broadcast<2>,
}

impl BinaryCall<'_, '_> {
    fn region<T: Element, U: Element>(
        self,
        body: impl Fn(&BinaryPiece, &mut Sides<'_, T, U>, Range<usize>) + Sync,
    ) -> Result<()> {
        let BinaryCall { of, isa, dims, context, outputs } = self;
        let items = elements(outputs.desc(0));
        let sides = Beside::of(context, outputs, |i| elements(context.inputs()[i].desc()) != items)?;
        let cost_ns = 3.0 * NS_PER_FLOAT * binary::slowness(of.op, context.inputs()[0].desc());
        let span = Span { items, cost_ns, grain: GRAIN, ..Span::default() };
        let work = BinaryPiece { of, isa, dims };
        context.parallel_into(&span, sides, |mut sides, claim| {
            body(&work, &mut sides, claim.begin()..claim.end());
            Ok(())
        })
    }

    /// f32 with long rows.
    fn long_rows(self) -> Result<()> {
        self.region::<f32, f32>(|work, sides, items| {
            work.dims.rows(items.start, items.len(), |rows, at, len| {
                binary::row(work.isa, &work.of, sides, &rows, at, len);
            });
        })
    }

    /// Any type, in blocks converted to f32.
    fn blocks<T: Stored, U: Stored>(self) -> Result<()> {
        self.region::<T, U>(|&BinaryPiece { ref of, isa, ref dims }, sides, items| {
            let (mut left, mut right) = ([0.0; BLOCK], [0.0; BLOCK]);
            for from in items.clone().step_by(BLOCK) {
                let count = BLOCK.min(items.end - from);
                dims.rows(from, count, |rows, at, len| {
                    sides.input(0).widen(isa, rows[0], &mut left[at..at + len]);
                    sides.input(1).widen(isa, rows[1], &mut right[at..at + len]);
                });
                binary::block(isa, of, &left[..count], &mut right[..count]);
                convert::narrow(isa, &right[..count], sides.slice(from - items.start, count));
            }
        })
    }

    /// Integers: `put` computes some, from an index on.
    fn integers_of<T: Integer, U: Element>(self, put: PutIntegers<T, U>) -> Result<()> {
        let (row, items) = (self.dims.row_len(), elements(self.outputs.desc(0)));
        if row * size_of::<T>() >= LONG_BYTES || row == items {
            return self.region::<T, U>(|work, sides, items| {
                work.dims.rows(items.start, items.len(), |rows, at, len| {
                    put(work.isa, &work.of, sides, rows.map(IntegerSide::Row), at, len);
                });
            });
        }
        let (whole, repeats) = ([0, 1].map(|n| self.dims.is_whole(n)), [0, 1].map(|n| self.dims.repeats(n)));
        self.region::<T, U>(|work, sides, items| {
            let mut gathered = [[T::default(); BLOCK]; 2];
            // Whole rows, so that each block has the repeated ones at the same places.
            let at_once = if row <= BLOCK { BLOCK / row * row } else { BLOCK };
            for from in items.clone().step_by(at_once) {
                let count = at_once.min(items.end - from);
                let is_there = |n: usize| whole[n] || repeats[n] && row <= BLOCK && from > items.start;
                let gathers = [!is_there(0), !is_there(1)];
                if gathers != [false; 2] {
                    work.dims.rows(from, count, |rows, at, len| {
                        for n in (0..2).filter(|&n| gathers[n]) {
                            sides.input(n).copy(rows[n], &mut gathered[n][at..at + len]);
                        }
                    });
                }
                let side = |n: usize| match whole[n] {
                    true => IntegerSide::Row(SourceRow { at: from, stretched: false }),
                    false => IntegerSide::Gathered(&gathered[n]),
                };
                put(work.isa, &work.of, sides, [side(0), side(1)], from - items.start, count);
            }
        })
    }

    fn integers<T: Integer>(self) -> Result<()> {
        if self.of.op.compares() {
            return self.integers_of::<T, Bool>(binary::compare_integers);
        }
        self.integers_of::<T, T>(binary::integers)
    }

    /// 16-bit floats, bools, and f32 in short rows.
    fn narrow<T: Stored>(self) -> Result<()> {
        if self.of.op.compares() { self.blocks::<T, Bool>() } else { self.blocks::<T, T>() }
    }
}

impl BuiltinOperation for Builtin<Binary> {
    fn cost_ns(&self, inputs: &[Desc], output: &Desc) -> u64 {
        let all: usize = inputs.iter().chain([output]).map(elements).sum();
        ((all as f32 * NS_PER_FLOAT * binary::slowness(self.op, &inputs[0])) as u64).max(LEAST_NS)
    }

    fn in_place_of(&self, _: usize) -> bool {
        !self.op.compares()
    }

    fn as_epilogue(&self, inputs: &[Desc], position: usize) -> Option<EpilogueStep> {
        EpilogueStep::binary(**self, inputs, position)
    }

    fn with_epilogue(&self, step: EpilogueStep, inputs: &[Desc]) -> Option<Arc<dyn Kernel>> {
        Chain::of(self.isa, EpilogueStep::binary(**self, inputs, 0)?, step, inputs)
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
            | Op::WEIR_BINARY_POW
            | Op::WEIR_BINARY_REM => return None,
        })
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        let (inputs, output) = (context.inputs(), outputs.desc(0));
        let dims = Broadcast::new([inputs[0].desc(), inputs[1].desc()], output);
        let long = dims.row_len() >= LONG || dims.row_len() == elements(output);
        let call = BinaryCall { of: **self, isa: self.isa, dims, context, outputs };
        match inputs[0].desc().dtype {
            dtype::F32 if long && !self.op.compares() => call.long_rows(),
            dtype::F32 => call.narrow::<f32>(),
            dtype::BF16 => call.narrow::<Bf16>(),
            dtype::F16 => call.narrow::<F16>(),
            dtype::S64 => call.integers::<i64>(),
            dtype::S32 => call.integers::<i32>(),
            dtype::S8 => call.integers::<i8>(),
            dtype::U8 => call.integers::<u8>(),
            _ => call.blocks::<Bool, Bool>(),
        }
    }
}

//! Conversion between storage types.
#![forbid(unsafe_code)]

use super::{Builtin, BuiltinOperation, GRAIN, LEAST_NS, elements};
use crate::base::{Desc, Result, dtype};
use crate::kernel::vector::affine;
use crate::kernel::vector::convert::{self, Numbers, Stored, Whole};
use crate::kernel::{KernelContext, Outputs};
use crate::memory::{Bf16, Bool, Element, F16};
use crate::ops::{Convert, weir_overflow_value, weir_rounding_value};
use crate::threadpool::Span;
use std::ops::Range;

/// Block of elements between two conversions.
const BLOCK: usize = 1024;
/// Time per element.
const ELEMENT_NS: f32 = 0.25;

fn span(output: &Desc) -> Span {
    Span { items: elements(output), cost_ns: ELEMENT_NS, grain: GRAIN, ..Span::default() }
}

fn is_integer(dtype: u32) -> bool {
    [dtype::S64, dtype::S32, dtype::S8, dtype::U8].contains(&dtype)
}

impl Builtin<Convert> {
    /// `body` makes some elements of the output of those of the input.
    fn region<U: Element>(
        &self,
        context: &KernelContext<'_>,
        outputs: Outputs<'_>,
        body: &(dyn Fn(&mut [U], Range<usize>) + Sync),
    ) -> Result<()> {
        let output = outputs.only();
        context.parallel_into(&span(output.desc()), output.shards(1), |y, claim| {
            body(y, claim.begin()..claim.end());
            Ok(())
        })
    }

    /// By way of f32.
    fn run<U: Stored>(&self, context: &KernelContext<'_>, outputs: Outputs<'_>, x: &Numbers<'_, f32>) -> Result<()> {
        let isa = self.isa;
        // `narrow` rounds to nearest.
        let is_rounded = is_integer(U::DTYPE) && self.rounding != weir_rounding_value::WEIR_ROUNDING_NEAREST;
        self.region::<U>(context, outputs, &|y, Range { start: begin, end }| {
            let (mut floats, mut read) = ([0.0; BLOCK], [0.0; BLOCK]);
            for from in (begin..end).step_by(BLOCK) {
                let count = BLOCK.min(end - from);
                let y = &mut y[from - begin..][..count];
                if self.is_plain() && !is_rounded {
                    convert::narrow(isa, x.read(isa, from..from + count, &mut read), y);
                    continue;
                }
                let block = &mut floats[..count];
                x.convert(isa, from..from + count, block);
                if !self.is_plain() {
                    affine::scale(isa, block, self.scale, self.shift);
                }
                if is_rounded {
                    affine::round(isa, block, self.rounding);
                }
                convert::narrow(isa, block, y);
            }
        })
    }

    /// Integers or truth values as longer integers.
    fn widen<N: Whole>(&self, context: &KernelContext<'_>, outputs: Outputs<'_>, x: &Numbers<'_, N>) -> Result<()> {
        self.region::<N>(context, outputs, &|y, range| x.convert(self.isa, range, y))
    }

    /// Integers or truth values as others.
    fn exchange<N: Whole + Default, U: Whole>(
        &self,
        context: &KernelContext<'_>,
        outputs: Outputs<'_>,
        x: &Numbers<'_, N>,
    ) -> Result<()> {
        let isa = self.isa;
        let saturates = self.overflow == weir_overflow_value::WEIR_OVERFLOW_SATURATE;
        self.region::<U>(context, outputs, &|y, Range { start: begin, end }| {
            let mut read = [N::default(); BLOCK];
            for from in (begin..end).step_by(BLOCK) {
                let count = BLOCK.min(end - from);
                let numbers = x.read(isa, from..from + count, &mut read);
                convert::exchange(isa, numbers, &mut y[from - begin..][..count], saturates);
            }
        })
    }

    /// The same type: copies bytes, so that each element stays exact.
    fn copy(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        let (x, unit, output) = (context.input(0).read_bytes(), dtype::size(self.dtype)?, outputs.only());
        context.parallel_into(&span(output.desc()), output.byte_shards(unit), |y, claim| {
            y.copy_from_slice(&x[claim.begin() * unit..claim.end() * unit]);
            Ok(())
        })
    }

    fn run_from(&self, context: &KernelContext<'_>, outputs: Outputs<'_>, x: &Numbers<'_, f32>) -> Result<()> {
        match self.dtype {
            dtype::F32 => self.run::<f32>(context, outputs, x),
            dtype::S64 => self.run::<i64>(context, outputs, x),
            dtype::S32 => self.run::<i32>(context, outputs, x),
            dtype::U8 => self.run::<u8>(context, outputs, x),
            dtype::S8 => self.run::<i8>(context, outputs, x),
            dtype::F16 => self.run::<F16>(context, outputs, x),
            dtype::BF16 => self.run::<Bf16>(context, outputs, x),
            _ => self.run::<Bool>(context, outputs, x),
        }
    }

    /// Elements of type T; N is the shortest of i32 and i64 that holds them.
    fn run_from_whole<T: Whole, N: Whole + Default>(
        &self,
        context: &KernelContext<'_>,
        outputs: Outputs<'_>,
    ) -> Result<()> {
        let bytes = context.input(0);
        if !self.is_plain() || [dtype::F32, dtype::F16, dtype::BF16].contains(&self.dtype) {
            return self.run_from(context, outputs, &Numbers::floats::<T>(bytes));
        }
        match self.dtype {
            dtype::S64 => self.widen::<i64>(context, outputs, &Numbers::integers::<T>(bytes)),
            dtype::S32 if size_of::<T>() < size_of::<i32>() => {
                self.widen::<i32>(context, outputs, &Numbers::integers::<T>(bytes))
            }
            dtype::S32 => self.exchange::<N, i32>(context, outputs, &Numbers::integers::<T>(bytes)),
            dtype::U8 => self.exchange::<N, u8>(context, outputs, &Numbers::integers::<T>(bytes)),
            dtype::S8 => self.exchange::<N, i8>(context, outputs, &Numbers::integers::<T>(bytes)),
            _ => self.exchange::<N, Bool>(context, outputs, &Numbers::integers::<T>(bytes)),
        }
    }
}

impl BuiltinOperation for Builtin<Convert> {
    fn cost_ns(&self, inputs: &[Desc], _output: &Desc) -> u64 {
        ((elements(&inputs[0]) as f32 * ELEMENT_NS) as u64).max(LEAST_NS)
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        let bytes = context.input(0);
        match bytes.desc().dtype {
            same if same == self.dtype && self.is_plain() => self.copy(context, outputs),
            dtype::F32 => self.run_from(context, outputs, &Numbers::floats::<f32>(bytes)),
            dtype::S64 => self.run_from_whole::<i64, i64>(context, outputs),
            dtype::S32 => self.run_from_whole::<i32, i32>(context, outputs),
            dtype::U8 => self.run_from_whole::<u8, i32>(context, outputs),
            dtype::S8 => self.run_from_whole::<i8, i32>(context, outputs),
            dtype::F16 => self.run_from(context, outputs, &Numbers::floats::<F16>(bytes)),
            dtype::BF16 => self.run_from(context, outputs, &Numbers::floats::<Bf16>(bytes)),
            _ => self.run_from_whole::<Bool, i32>(context, outputs),
        }
    }
}

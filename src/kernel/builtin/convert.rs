//! Conversion between storage types.
#![forbid(unsafe_code)]

use super::{Builtin, BuiltinOperation, GRAIN, LEAST_NS, elements};
use crate::base::{Desc, Result, dtype};
use crate::kernel::vector::affine;
use crate::kernel::vector::convert::{self, Stored, Whole};
use crate::kernel::vector::elements::{ClaimInput, SourceRow};
use crate::kernel::{KernelContext, Outputs};
use crate::memory::{Bf16, Bool, F16};
use crate::ops::{Convert, weir_overflow_value, weir_rounding_value};
use crate::threadpool::Span;
use std::ops::Range;

/// Block of elements between two conversions.
const BLOCK: usize = 1024;
/// Time per element.
const ELEMENT_NS: f32 = 0.25;

fn is_integer(dtype: u32) -> bool {
    [dtype::S64, dtype::S32, dtype::S8, dtype::U8].contains(&dtype)
}

impl Builtin<Convert> {
    fn region<U: Stored>(
        &self,
        context: &KernelContext<'_>,
        outputs: Outputs<'_>,
        body: impl Fn(&mut [U], Range<usize>) + Sync,
    ) -> Result<()> {
        let output = outputs.only();
        let span = Span { items: elements(output.desc()), cost_ns: ELEMENT_NS, grain: GRAIN, ..Span::default() };
        context.parallel_into(&span, output.shards(1), |y, claim| {
            body(y, claim.begin()..claim.end());
            Ok(())
        })
    }

    fn run<T: Stored, U: Stored>(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        let (isa, input) = (self.isa, context.input(0));
        let x = ClaimInput::<T>::of(input);
        // `narrow` rounds to nearest.
        let is_rounded = is_integer(U::DTYPE) && self.rounding != weir_rounding_value::WEIR_ROUNDING_NEAREST;
        self.region::<U>(context, outputs, |y, Range { start: begin, end }| {
            let mut floats = [0.0; BLOCK];
            if self.is_plain() && T::DTYPE == dtype::F32 && !is_rounded {
                // The elements are f32 already.
                return convert::narrow(isa, &input.read::<f32>()[begin..end], y);
            }
            for from in (begin..end).step_by(BLOCK) {
                let block = &mut floats[..BLOCK.min(end - from)];
                x.widen(isa, SourceRow { at: from, stretched: false }, block);
                if !self.is_plain() {
                    affine::scale(isa, block, self.scale, self.shift);
                }
                if is_rounded {
                    affine::round(isa, block, self.rounding);
                }
                convert::narrow(isa, block, &mut y[from - begin..][..block.len()]);
            }
        })
    }

    /// Integers of another type, or truth values.
    fn exchange<T: Whole, U: Whole>(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        let (isa, input) = (self.isa, context.input(0));
        let saturates = self.overflow == weir_overflow_value::WEIR_OVERFLOW_SATURATE;
        self.region::<U>(context, outputs, |y, range| {
            convert::exchange(isa, &input.read::<T>()[range], y, saturates);
        })
    }

    /// The same type: copies bytes, so that each element stays exact.
    fn copy<T: Stored>(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        let x = ClaimInput::<T>::of(context.input(0));
        self.region::<T>(context, outputs, |y, range| x.copy(SourceRow { at: range.start, stretched: false }, y))
    }

    fn run_from<T: Stored>(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        match self.dtype {
            to if to == T::DTYPE && self.is_plain() => self.copy::<T>(context, outputs),
            dtype::F32 => self.run::<T, f32>(context, outputs),
            dtype::S64 => self.run::<T, i64>(context, outputs),
            dtype::S32 => self.run::<T, i32>(context, outputs),
            dtype::U8 => self.run::<T, u8>(context, outputs),
            dtype::S8 => self.run::<T, i8>(context, outputs),
            dtype::F16 => self.run::<T, F16>(context, outputs),
            dtype::BF16 => self.run::<T, Bf16>(context, outputs),
            _ => self.run::<T, Bool>(context, outputs),
        }
    }

    fn run_from_whole<T: Whole>(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        match self.dtype {
            _ if !self.is_plain() => self.run_from::<T>(context, outputs),
            dtype::S64 => self.exchange::<T, i64>(context, outputs),
            dtype::S32 => self.exchange::<T, i32>(context, outputs),
            dtype::U8 => self.exchange::<T, u8>(context, outputs),
            dtype::S8 => self.exchange::<T, i8>(context, outputs),
            dtype::BOOL if T::DTYPE != dtype::BOOL => self.exchange::<T, Bool>(context, outputs),
            _ => self.run_from::<T>(context, outputs),
        }
    }
}

impl BuiltinOperation for Builtin<Convert> {
    fn cost_ns(&self, inputs: &[Desc], _output: &Desc) -> u64 {
        ((elements(&inputs[0]) as f32 * ELEMENT_NS) as u64).max(LEAST_NS)
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        match context.inputs()[0].desc().dtype {
            dtype::F32 => self.run_from::<f32>(context, outputs),
            dtype::S64 => self.run_from_whole::<i64>(context, outputs),
            dtype::S32 => self.run_from_whole::<i32>(context, outputs),
            dtype::U8 => self.run_from_whole::<u8>(context, outputs),
            dtype::S8 => self.run_from_whole::<i8>(context, outputs),
            dtype::F16 => self.run_from::<F16>(context, outputs),
            dtype::BF16 => self.run_from::<Bf16>(context, outputs),
            _ => self.run_from_whole::<Bool>(context, outputs),
        }
    }
}

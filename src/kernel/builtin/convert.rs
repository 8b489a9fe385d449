//! Tensors in another storage type.
#![forbid(unsafe_code)]

use super::{GRAIN, LEAST_NS, Operation, elements};
use crate::base::{Desc, Result, dtype};
use crate::kernel::vector::convert::{self, Stored};
use crate::kernel::vector::elements::{Row, Source, Target};
use crate::kernel::vector::{affine, isa::Isa};
use crate::kernel::{KernelContext, signature};
use crate::memory::{Bf16, Bool, F16};
use crate::threadpool::Span;

/// x scale + shift in the type `dtype`, which `create` has checked.
#[derive(Clone, Copy, Debug)]
pub struct Convert {
    pub dtype: u32,
    pub scale: f32,
    pub shift: f32,
}

/// Elements that are computed with between two conversions.
const BLOCK: usize = 1024;
/// Time for an element to go through.
const ELEMENT_NS: f32 = 0.25;

impl Convert {
    fn is_plain(&self) -> bool {
        self.scale == 1.0 && self.shift == 0.0
    }

    fn region(&self, context: &KernelContext<'_>, body: &(dyn Fn(&mut crate::sync::Claim) + Sync)) -> Result<()> {
        let items = elements(context.outputs()[0].desc());
        context.parallel_for(&Span { items, cost_ns: ELEMENT_NS, grain: GRAIN, ..Span::default() }, &|mut claim| {
            body(&mut claim);
            Ok(())
        })
    }

    fn run<T: Stored, U: Stored>(&self, context: &KernelContext<'_>) -> Result<()> {
        let (isa, x, output) = (Isa::best(), Source::<T>::of(&context.inputs()[0]), &context.outputs()[0]);
        self.region(context, &|claim| {
            let (begin, end) = (claim.begin(), claim.end());
            let mut y = Target::<U>::part(output, claim);
            let mut floats = [0.0; BLOCK];
            if self.is_plain() && T::DTYPE == dtype::F32 {
                // They are floats already.
                let x = context.inputs()[0].read::<f32>();
                return convert::narrow(isa, &x[begin..end], y.slice(0, end - begin));
            }
            for from in (begin..end).step_by(BLOCK) {
                let block = &mut floats[..BLOCK.min(end - from)];
                x.widen(isa, Row { at: from, stretched: false }, block);
                if !self.is_plain() {
                    affine::scale(isa, block, self.scale, self.shift);
                }
                convert::narrow(isa, block, y.slice(from - begin, block.len()));
            }
        })
    }

    /// The same type: bytes, so that each of them stays what it is.
    fn copy<T: Stored>(&self, context: &KernelContext<'_>) -> Result<()> {
        let (x, output) = (Source::<T>::of(&context.inputs()[0]), &context.outputs()[0]);
        self.region(context, &|claim| {
            let (begin, end) = (claim.begin(), claim.end());
            let mut y = Target::<T>::part(output, claim);
            x.copy(Row { at: begin, stretched: false }, y.slice(0, end - begin));
        })
    }

    fn run_from<T: Stored>(&self, context: &KernelContext<'_>) -> Result<()> {
        match self.dtype {
            to if to == T::DTYPE && self.is_plain() => self.copy::<T>(context),
            dtype::F32 => self.run::<T, f32>(context),
            dtype::S32 => self.run::<T, i32>(context),
            dtype::U8 => self.run::<T, u8>(context),
            dtype::S8 => self.run::<T, i8>(context),
            dtype::F16 => self.run::<T, F16>(context),
            dtype::BF16 => self.run::<T, Bf16>(context),
            _ => self.run::<T, Bool>(context),
        }
    }
}

impl Operation for Convert {
    fn name(&self) -> &str {
        "convert"
    }

    fn num_inputs(&self) -> usize {
        1
    }

    fn output(&self, inputs: &[Desc]) -> Result<Desc> {
        signature::check_computes(inputs)?;
        Desc { dtype: self.dtype, ..inputs[0] }.check_open()
    }

    fn cost_ns(&self, inputs: &[Desc], _output: &Desc) -> u64 {
        ((elements(&inputs[0]) as f32 * ELEMENT_NS) as u64).max(LEAST_NS)
    }

    fn compute(&self, context: &KernelContext<'_>) -> Result<()> {
        match context.inputs()[0].desc().dtype {
            dtype::F32 => self.run_from::<f32>(context),
            dtype::S32 => self.run_from::<i32>(context),
            dtype::U8 => self.run_from::<u8>(context),
            dtype::S8 => self.run_from::<i8>(context),
            dtype::F16 => self.run_from::<F16>(context),
            dtype::BF16 => self.run_from::<Bf16>(context),
            _ => self.run_from::<Bool>(context),
        }
    }
}

//! Unary elementwise functions.
#![forbid(unsafe_code)]

use super::{Builtin, BuiltinOperation, GRAIN, LEAST_NS, elements};
use crate::base::{Desc, Result, dtype};
use crate::kernel::vector::convert::Stored;
use crate::kernel::vector::elements::Pairs;
use crate::kernel::vector::eltwise;
use crate::kernel::vector::isa::Isa;
use crate::kernel::{KernelContext, Outputs};
use crate::memory::{Bf16, F16};
use crate::ops::{Eltwise, weir_eltwise_op_value as Op};
use crate::threadpool::Span;

/// Nanoseconds per element, measured on one thread.
fn element_ns(of: &Eltwise, isa: Isa) -> f32 {
    let (wide, portable) = match of.op {
        Op::WEIR_ELTWISE_RELU
        | Op::WEIR_ELTWISE_SQUARE
        | Op::WEIR_ELTWISE_ABS
        | Op::WEIR_ELTWISE_NEG
        | Op::WEIR_ELTWISE_CLIP
        | Op::WEIR_ELTWISE_LINEAR
        | Op::WEIR_ELTWISE_ROUND
        | Op::WEIR_ELTWISE_FLOOR
        | Op::WEIR_ELTWISE_CEIL
        | Op::WEIR_ELTWISE_TRUNC
        | Op::WEIR_ELTWISE_SIGN => (0.12, 0.2),
        Op::WEIR_ELTWISE_HARDSIGMOID | Op::WEIR_ELTWISE_HARDSWISH | Op::WEIR_ELTWISE_SQRT => (0.15, 0.6),
        Op::WEIR_ELTWISE_POW if of.beta.abs() <= 3.0 && (2.0 * of.beta).fract() == 0.0 => (0.3, 1.0),
        Op::WEIR_ELTWISE_POW => (12.0, 12.0),
        Op::WEIR_ELTWISE_EXP
        | Op::WEIR_ELTWISE_TANH
        | Op::WEIR_ELTWISE_LOG
        | Op::WEIR_ELTWISE_ELU
        | Op::WEIR_ELTWISE_SIGMOID => (0.25, 2.0),
        Op::WEIR_ELTWISE_SWISH
        | Op::WEIR_ELTWISE_GELU_TANH
        | Op::WEIR_ELTWISE_GELU_ERF
        | Op::WEIR_ELTWISE_MISH
        | Op::WEIR_ELTWISE_SOFTPLUS
        | Op::WEIR_ELTWISE_ERF
        | Op::WEIR_ELTWISE_SIN
        | Op::WEIR_ELTWISE_COS
        | Op::WEIR_ELTWISE_TAN
        | Op::WEIR_ELTWISE_ASIN
        | Op::WEIR_ELTWISE_ACOS
        | Op::WEIR_ELTWISE_ATAN
        | Op::WEIR_ELTWISE_SINH
        | Op::WEIR_ELTWISE_COSH => (0.4, 3.0),
    };
    match isa {
        Isa::Avx512 | Isa::Avx512Vnni | Isa::Amx => wide,
        Isa::Avx2 => wide * 1.6,
        Isa::Portable | Isa::Neon => portable,
    }
}

fn run<T: Stored>(of: &Eltwise, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
    let (isa, items) = (Isa::best(), elements(outputs.desc(0)));
    let pairs = Pairs::<T, T>::of(context, outputs)?;
    let span = Span { items, cost_ns: element_ns(of, isa), grain: GRAIN, ..Span::default() };
    context.parallel_into(&span, pairs, |pair, _| {
        eltwise::apply(isa, of, pair);
        Ok(())
    })
}

impl BuiltinOperation for Builtin<Eltwise> {
    fn cost_ns(&self, inputs: &[Desc], _output: &Desc) -> u64 {
        ((elements(&inputs[0]) as f32 * element_ns(self, Isa::best())) as u64).max(LEAST_NS)
    }

    fn in_place(&self) -> bool {
        true
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        match context.inputs()[0].desc().dtype {
            dtype::BF16 => run::<Bf16>(self, context, outputs),
            dtype::F16 => run::<F16>(self, context, outputs),
            _ => run::<f32>(self, context, outputs),
        }
    }
}

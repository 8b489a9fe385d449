//! Unary elementwise functions.
#![forbid(unsafe_code)]

use super::{BuiltinOperation, GRAIN, LEAST_NS, elements};
use crate::base::{Desc, Result, dtype};
use crate::kernel::vector::convert::Stored;
use crate::kernel::vector::elements::Pairs;
use crate::kernel::vector::eltwise::{self, Eltwise, Op};
use crate::kernel::vector::isa::Isa;
use crate::kernel::{KernelContext, Outputs, signature};
use crate::memory::{Bf16, F16};
use crate::threadpool::Span;

/// Nanoseconds per element, measured on one thread.
fn element_ns(of: &Eltwise, isa: Isa) -> f32 {
    let (wide, portable) = match of.op {
        Op::Relu | Op::Square | Op::Abs | Op::Neg | Op::Clip | Op::Linear | Op::Round => (0.12, 0.2),
        Op::HardSigmoid | Op::HardSwish | Op::Sqrt => (0.15, 0.6),
        Op::Pow if of.beta.abs() <= 3.0 && (2.0 * of.beta).fract() == 0.0 => (0.3, 1.0),
        Op::Pow => (12.0, 12.0),
        Op::Exp | Op::Tanh | Op::Log | Op::Elu | Op::Sigmoid => (0.25, 2.0),
        Op::Swish | Op::GeluTanh | Op::GeluErf | Op::Mish | Op::Softplus => (0.4, 3.0),
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

impl BuiltinOperation for Eltwise {
    fn name(&self) -> &str {
        match self.op {
            Op::Relu => "relu",
            Op::Elu => "elu",
            Op::GeluErf => "gelu_erf",
            Op::GeluTanh => "gelu_tanh",
            Op::Tanh => "tanh",
            Op::Sigmoid => "sigmoid",
            Op::Swish => "swish",
            Op::Exp => "exp",
            Op::Log => "log",
            Op::Sqrt => "sqrt",
            Op::Square => "square",
            Op::Abs => "abs",
            Op::Neg => "neg",
            Op::Clip => "clip",
            Op::Linear => "linear",
            Op::Pow => "pow",
            Op::HardSigmoid => "hardsigmoid",
            Op::HardSwish => "hardswish",
            Op::Round => "round",
            Op::Mish => "mish",
            Op::Softplus => "softplus",
        }
    }

    fn num_inputs(&self) -> usize {
        1
    }

    fn output(&self, inputs: &[Desc]) -> Result<Desc> {
        match inputs[0].dtype {
            dtype::F32 | dtype::BF16 | dtype::F16 => Ok(inputs[0]),
            _ => Err(signature::mismatch("input", 0, "f32, bf16 or f16 elements", &inputs[0])),
        }
    }

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

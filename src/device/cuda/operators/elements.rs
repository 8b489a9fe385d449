//! Functions of each element, of two, and a choice.
#![forbid(unsafe_code)]

use crate::base::{Result, dtype};
use crate::device::cuda::images::{BINARY, BINARY_INTEGERS, ELTWISE, SELECT};
use crate::device::cuda::plan::{Emit, Operator, Params, count, unimplemented};
use crate::device::cuda::walk::StrideWalk;
use crate::memory::View;
use crate::ops::weir_binary_op_value::{WEIR_BINARY_EQ, WEIR_BINARY_GE};
use crate::ops::weir_eltwise_op_value::{self, *};
use crate::ops::{Binary, Eltwise, Select};

/// A function as the kernel has it (`gpu/kernels/elements.cu`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Function {
    op: u32,
    alpha: f32,
    beta: f32,
}

// Parametrised functions.
const LEAKY: u32 = 64;
const CONSTANT: u32 = 65;
const LEVEL: u32 = 66;
const SQUARE_TIMES: u32 = 67;
const CUBE_TIMES: u32 = 68;
const ROOT_TIMES: u32 = 69;
const ONE_AND_HALF_TIMES: u32 = 70;
const OVER_ROOT: u32 = 71;
const OVER: u32 = 72;

impl Function {
    pub const RELU: Function = Function::of(WEIR_ELTWISE_RELU);

    /// A function without parameters.
    pub const fn of(op: weir_eltwise_op_value) -> Function {
        Function { op: op as u32, alpha: 0.0, beta: 0.0 }
    }

    /// Sines, cosines and tangents, whose great angles take more digits, are not there.
    pub fn new(eltwise: Eltwise) -> Result<Function> {
        let Eltwise { op, alpha, beta } = eltwise;
        if matches!(op, WEIR_ELTWISE_SIN | WEIR_ELTWISE_COS | WEIR_ELTWISE_TAN) {
            return Err(unimplemented("the kernels of CUDA devices have no sine, cosine and tangent"));
        }
        let is = |value| op == value;
        let op = op as u32;
        let (linear, factor) = (WEIR_ELTWISE_LINEAR as u32, beta.clamp(0.0, 1.0));
        // alpha x is a constant or a multiple of x if alpha is 0, also at the infinities.
        let (op, alpha, beta) = match alpha == 0.0 {
            false if is(WEIR_ELTWISE_RELU) => (LEAKY, alpha, beta),
            true if is(WEIR_ELTWISE_SWISH) => (linear, 0.5, 0.0),
            true if is(WEIR_ELTWISE_HARDSIGMOID) => (LEVEL, 0.0, factor),
            true if is(WEIR_ELTWISE_HARDSWISH) && factor == 0.0 => (LEVEL, 0.0, 0.0),
            true if is(WEIR_ELTWISE_HARDSWISH) => (linear, factor, 0.0),
            _ if is(WEIR_ELTWISE_POW) => match beta {
                0.0 => (CONSTANT, alpha, 0.0),
                1.0 => (linear, alpha, 0.0),
                2.0 => (SQUARE_TIMES, alpha, 0.0),
                3.0 => (CUBE_TIMES, alpha, 0.0),
                0.5 => (ROOT_TIMES, alpha, 0.0),
                1.5 => (ONE_AND_HALF_TIMES, alpha, 0.0),
                -0.5 => (OVER_ROOT, alpha, 0.0),
                -1.0 => (OVER, alpha, 0.0),
                _ => (op, alpha, beta),
            },
            _ => (op, alpha, beta),
        };
        Ok(Function { op, alpha, beta })
    }
}

impl Operator for Function {
    fn in_place(&self) -> bool {
        true
    }

    fn launches(&self, inputs: &[View], outputs: &[View], emit: &mut Emit<'_>) -> Result<()> {
        let count = count(outputs[0].desc())?;
        let mut params = Params::new();
        params.view(&inputs[0]).view(&outputs[0]).word(count).word(inputs[0].desc().dtype);
        params.word(self.op).float(self.alpha).float(self.beta);
        params.launch_each(emit, &ELTWISE, count)
    }
}

// Kernels take these for comparisons.
const _: () = assert!(WEIR_BINARY_EQ as u32 == 8 && WEIR_BINARY_GE as u32 == 13);

impl Operator for Binary {
    fn in_place(&self) -> bool {
        true
    }

    fn launches(&self, inputs: &[View], outputs: &[View], emit: &mut Emit<'_>) -> Result<()> {
        let (a, b, y) = (inputs[0].desc(), inputs[1].desc(), outputs[0].desc());
        let count = count(y)?;
        let mut params = Params::new();
        params
            .view(&inputs[0])
            .view(&inputs[1])
            .view(&outputs[0])
            .word(count)
            .word(a.dtype)
            .word(self.op as u32)
            .word(self.rounding as u32 | (self.overflow as u32) << 8);
        params.walk(&StrideWalk::broadcast([a, b], y));
        let is_integer = [dtype::S64, dtype::S32, dtype::S8, dtype::U8].contains(&a.dtype);
        params.launch_each(emit, if is_integer { &BINARY_INTEGERS } else { &BINARY }, count)
    }
}

impl Operator for Select {
    fn launches(&self, inputs: &[View], outputs: &[View], emit: &mut Emit<'_>) -> Result<()> {
        let y = outputs[0].desc();
        let count = count(y)?;
        let mut params = Params::new();
        inputs.iter().for_each(|input| _ = params.view(input));
        params.view(&outputs[0]).word(count).word(dtype::size(y.dtype)? as u32);
        params.walk(&StrideWalk::broadcast([inputs[0].desc(), inputs[1].desc(), inputs[2].desc()], y));
        params.launch_each(emit, &SELECT, count)
    }
}

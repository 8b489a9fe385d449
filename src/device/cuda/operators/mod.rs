//! The built-in operators as launches of the library's own kernels.
//!
//! The room `kernel` has checked the tensors against the operator before a launch, so only the kernels' limits are
//! checked here. Beyond them is UNIMPLEMENTED: when the kernel is made if its settings suffice to tell, else when it is
//! launched.
#![forbid(unsafe_code)]

mod axis;
mod cell;
mod conv;
mod elements;
mod gather;
mod margin;
mod matmul;
mod movement;
mod norm;
mod quantize;
mod reduce;

use super::plan::{Operator, unimplemented};
use crate::base::Result;
use crate::device::{Operation, Recipe};
use crate::ops::Op;

/// The operator of a recipe.
pub fn operator(recipe: &Recipe<'_>) -> Result<Box<dyn Operator>> {
    let op = match recipe.operation {
        Operation::Builtin(described) => described.op,
        Operation::Host => return Err(unimplemented("a CUDA device runs no functions of the host's")),
        Operation::Named(name, _) => return Err(unimplemented(format!("CUDA devices have no operation '{name}'"))),
    };
    Ok(match op {
        Op::Matmul(op) => matmul::checked(op)?,
        Op::MatmulInt8(op) => matmul::checked_int8(op)?,
        Op::Eltwise(op) => Box::new(elements::Function::new(op)?),
        Op::Binary(op) => Box::new(op),
        Op::Select(op) => Box::new(op),
        Op::Convert(op) => Box::new(op),
        Op::Quantize(op) => Box::new(op),
        Op::Transpose(op) => Box::new(op),
        Op::Concat(op) => Box::new(op),
        Op::Slice(op) => Box::new(op),
        Op::Reshape(op) => Box::new(op),
        Op::Gather(op) => Box::new(op),
        Op::Pad(op) => Box::new(op),
        Op::Softmax(op) => Box::new(op),
        Op::Reduce(op) => Box::new(op),
        Op::Norm(op) => Box::new(op),
        Op::Conv(op) => conv::checked(op)?,
        Op::Pooling(op) => conv::checked_pooling(op)?,
        Op::Lstm(op) => Box::new(op),
        Op::Gru(op) => Box::new(op),
        other => {
            let text = format!("CUDA devices have no operation '{}'", other.operation());
            return Err(unimplemented(text));
        }
    })
}

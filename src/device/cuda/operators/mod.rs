//! The built-in operations as launches of the library's own kernels.
//!
//! An operation is identified by its name and its descriptor, both as in the C interface. The room `kernel` has checked
//! the tensors against the operation before a launch, so only the kernels' limits are checked here. Beyond them is
//! UNIMPLEMENTED: when the kernel is made if its settings suffice to tell, else when it is launched.
#![forbid(unsafe_code)]

mod attributes;
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
use crate::device::Recipe;
use attributes::DescriptorBytes;

/// The operation of a recipe.
pub fn operator(recipe: &Recipe<'_>) -> Result<Box<dyn Operator>> {
    let attributes = DescriptorBytes(recipe.attributes);
    Ok(match recipe.operation {
        "matmul" => Box::new(matmul::Matmul::new(attributes)?),
        "matmul_int8" => Box::new(matmul::MatmulInt8::new(attributes)?),
        "relu" => Box::new(elements::Eltwise::RELU),
        "eltwise" => Box::new(elements::Eltwise::new(attributes)),
        "add" => Box::new(elements::Binary::add()),
        "binary" => Box::new(elements::Binary::new(attributes)),
        "select" => Box::new(elements::Select),
        "convert" => Box::new(quantize::Convert::new(attributes)),
        "quantize" => Box::new(quantize::Quantization::quantize(attributes)),
        "dequantize" => Box::new(quantize::Quantization::dequantize(attributes)),
        "transpose" => Box::new(movement::Transpose::new(attributes)),
        "concat" => Box::new(movement::Concat::new(attributes)),
        "slice" => Box::new(movement::Slice::new(attributes)),
        "reshape" => Box::new(movement::Reshape),
        "gather" => Box::new(gather::Gather::new(attributes)),
        "pad" => Box::new(margin::Pad::new(attributes)),
        "softmax" => Box::new(reduce::Softmax::new(attributes)),
        "argmax" => Box::new(reduce::Reduce::argmax(attributes)),
        "reduce" => Box::new(reduce::Reduce::new(attributes)),
        "norm" => Box::new(norm::Norm::new(attributes)),
        "conv" => Box::new(conv::Conv::new(attributes)),
        "pooling" => Box::new(conv::Pooling::new(attributes)),
        "lstm" => Box::new(cell::Lstm::new(attributes)),
        "gru" => Box::new(cell::Gru::new(attributes)),
        "" => return Err(unimplemented("a CUDA device runs no functions of the host's")),
        operation => return Err(unimplemented(format!("CUDA devices have no operation '{operation}'"))),
    })
}

//! Matrix products.
#![forbid(unsafe_code)]

use super::elements::Function;
use crate::base::{Desc, Result, dtype};
use crate::device::cuda::images::*;
use crate::device::cuda::plan::{
    Emit, KernelEntry, MatrixProduct, Operator, Params, ProductShape, count, small, unimplemented,
};
use crate::device::cuda::walk::StrideWalk;
use crate::memory::View;
use crate::ops::weir_activation_value::*;
use crate::ops::weir_eltwise_op_value::*;
use crate::ops::{Activation, Eltwise, Matmul, MatmulInt8, Operator as _, PackedShape};

/// The last two dimensions, in the order of the product.
fn sides(desc: &Desc, transposed: bool) -> (usize, usize) {
    let rank = desc.shape().len();
    let (rows, columns) = (desc.dims[rank - 2] as usize, desc.dims[rank - 1] as usize);
    if transposed { (columns, rows) } else { (rows, columns) }
}

/// Elements to the next row, and to the next column, of a matrix with so many rows and columns.
fn steps(rows: usize, columns: usize, transposed: bool) -> (i64, i64) {
    if transposed { (1, rows as i64) } else { (columns as i64, 1) }
}

/// Packed weights cannot be had here.
fn without_packed(packed: Option<PackedShape>) -> Result<()> {
    let text = "packed weights are in a layout for the processor; a CUDA device takes B as an input";
    packed.map_or(Ok(()), |_| Err(unimplemented(text)))
}

/// Whether the kernels have an activation.
pub fn check_activation(of: Activation) -> Result<()> {
    match after(of) {
        None if of != Activation::NONE => {
            let name = Eltwise::of(of).map_or("none", |function| function.name());
            let text =
                format!("CUDA devices have no activation with parameters, '{name}', in products and convolutions");
            Err(unimplemented(text))
        }
        _ => Ok(()),
    }
}

pub fn checked(op: Matmul) -> Result<Box<dyn Operator>> {
    without_packed(op.packed)?;
    check_activation(op.activation)?;
    Ok(Box::new(op))
}

pub fn checked_int8(op: MatmulInt8) -> Result<Box<dyn Operator>> {
    without_packed(op.packed)?;
    Ok(Box::new(op))
}

/// The matrices of a batch.
fn batch(a: &Desc, b: &Desc, c: &Desc) -> StrideWalk<2> {
    let mut walk = StrideWalk::new();
    let leading = |desc: &Desc, i: usize| desc.shape().iter().rev().nth(2 + i).map_or(1, |&size| size);
    let matrix = |desc: &Desc| desc.shape().iter().rev().take(2).product::<i64>();
    let mut next = [matrix(a), matrix(b)];
    for i in 0..c.shape().len() - 2 {
        let of = [leading(a, i), leading(b, i)];
        walk.push(leading(c, i) as usize, std::array::from_fn(|n| if of[n] == 1 { 0 } else { next[n] }));
        next = std::array::from_fn(|n| next[n] * of[n]);
    }
    walk
}

/// An activation as a function of each element; `None` for those that do nothing or have parameters.
fn after(of: Activation) -> Option<Function> {
    Some(Function::of(match of.function {
        WEIR_ACTIVATION_NONE
        | WEIR_ACTIVATION_LEAKY_RELU
        | WEIR_ACTIVATION_CLIP
        | WEIR_ACTIVATION_SWISH
        | WEIR_ACTIVATION_HARDSIGMOID
        | WEIR_ACTIVATION_HARDSWISH => return None,
        WEIR_ACTIVATION_RELU => WEIR_ELTWISE_RELU,
        WEIR_ACTIVATION_GELU_ERF => WEIR_ELTWISE_GELU_ERF,
        WEIR_ACTIVATION_GELU_TANH => WEIR_ELTWISE_GELU_TANH,
        WEIR_ACTIVATION_SIGMOID => WEIR_ELTWISE_SIGMOID,
        WEIR_ACTIVATION_TANH => WEIR_ELTWISE_TANH,
    }))
}

/// The product without its activation: the shape in terms of the kernels and of libraries.
fn shape(of: &Matmul, a: &Desc, b: &Desc, c: &Desc) -> (ProductShape, StrideWalk<2>) {
    let ((mut m, k), (_, n)) = (sides(a, of.transpose_a), sides(b, of.transpose_b));
    let mut walk = batch(a, b, c);
    if !of.transpose_a && walk.rank() == 1 && walk.strides()[1][0] == 0 && walk.strides()[0][0] == (m * k) as i64 {
        // One B for all: the matrices of A are more rows.
        m *= walk.places();
        walk = StrideWalk::new();
    }
    let strides = [walk.strides()[0][0], walk.strides()[1][0]];
    let (Matmul { transpose_a, transpose_b, bias, sum: addend, tf32, .. }, batch) = (*of, walk.places());
    let (dtype, to) = (a.dtype, c.dtype);
    let shape =
        ProductShape { dtype, to, m, n, k, batch, strides, transpose_a, transpose_b, bias, addend, tf32, alignment: 0 };
    (shape, walk)
}

/// The kernel whose tiles fill a device and leave little of themselves out. All give the same bits.
fn entry(of: u32, m: usize, n: usize, batch: usize) -> (&'static KernelEntry, usize) {
    const ENOUGH: usize = 128;
    let tiles = |side: usize| m.div_ceil(side) * n.div_ceil(side) * batch;
    let wide = m.min(n) > 32;
    let side = match () {
        () if wide && of == dtype::F32 && tiles(128) >= ENOUGH => 128,
        () if wide && tiles(64) >= ENOUGH => 64,
        () => 16,
    };
    let entry = match (side, of) {
        (128, _) => &MATMUL_128_F32,
        (64, dtype::F16) => &MATMUL_64_F16,
        (64, dtype::BF16) => &MATMUL_64_BF16,
        (64, _) => &MATMUL_64_F32,
        (_, dtype::F16) => &MATMUL_16_F16,
        (_, dtype::BF16) => &MATMUL_16_BF16,
        _ => &MATMUL_16_F32,
    };
    (entry, side)
}

impl Operator for Matmul {
    fn launches(&self, inputs: &[View], outputs: &[View], emit: &mut Emit<'_>) -> Result<()> {
        let (a, b, c) = (inputs[0].desc(), inputs[1].desc(), outputs[0].desc());
        if count(c)? == 0 {
            return Ok(());
        }
        // Rows of a matrix of A as it is stored: more of them in one product make no difference to steps.
        let (rows, _) = sides(a, self.transpose_a);
        let (ProductShape { m, n, k, .. }, walk) = shape(self, a, b, c);
        let ((a_row, a_k), (b_k, b_column)) = (steps(rows, k, self.transpose_a), steps(k, n, self.transpose_b));
        let batch = small(&[walk.places()])?;
        let mut params = Params::new();
        params.view(&inputs[0]).view(&inputs[1]);
        params.optional(self.bias.then(|| &inputs[2])).optional(self.sum.then(|| &inputs[inputs.len() - 1]));
        params.view(&outputs[0]).word(small(&[m])?).word(small(&[n])?).word(small(&[k])?).word(batch);
        params
            .word(c.dtype)
            .word(self.activation.function as u32)
            .long(a_row)
            .long(a_k)
            .long(b_k)
            .long(b_column)
            .walk(&walk);
        let (entry, side) = entry(a.dtype, m, n, batch as usize);
        params.launch(emit, entry, (m.div_ceil(side) * n.div_ceil(side), batch as usize), 256)
    }

    fn has_products(&self) -> bool {
        true
    }

    fn product(&self, inputs: &[View], outputs: &[View]) -> Result<Option<MatrixProduct>> {
        let (a, b, c) = (inputs[0].desc(), inputs[1].desc(), outputs[0].desc());
        // A function of a number that was rounded to 16 bits is another one, but for that which leaves it or makes it
        // zero.
        let is_rounded = c.dtype != dtype::F32 && !matches!(after(self.activation), None | Some(Function::RELU));
        if is_rounded || count(c)? == 0 {
            return Ok(None);
        }
        let (shape, walk) = shape(self, a, b, c);
        if shape.k == 0 || walk.rank() > 1 {
            return Ok(None);
        }
        let address = |view: Option<&View>| view.map_or(0, |view| view.data().addr());
        let bias = address(self.bias.then(|| &inputs[2]));
        let addend = address(self.sum.then(|| &inputs[inputs.len() - 1]));
        let [a, b, c] = [&inputs[0], &inputs[1], &outputs[0]].map(|view| address(Some(view)));
        Ok(Some(MatrixProduct::new(shape, [a, b, c, bias, addend])))
    }

    fn after_product(&self, outputs: &[View], emit: &mut Emit<'_>) -> Result<()> {
        after(self.activation).map_or(Ok(()), |after| after.launches(outputs, outputs, emit))
    }
}

impl Operator for MatmulInt8 {
    fn launches(&self, inputs: &[View], outputs: &[View], emit: &mut Emit<'_>) -> Result<()> {
        let (a, b, c) = (inputs[0].desc(), inputs[1].desc(), outputs[0].desc());
        let elements = count(c)? as usize;
        let (_, n) = sides(b, self.transpose_b);
        if elements == 0 {
            return Ok(());
        }
        // Leading dimensions of A are more rows.
        let m = elements / n;
        let k = a.dims[if self.transpose_a { 0 } else { a.shape().len() - 1 }] as usize;
        let ((a_row, a_k), (b_k, b_column)) = (steps(m, k, self.transpose_a), steps(k, n, self.transpose_b));
        let zeros = [self.zero_a, self.zero_b, self.zero_c];
        let plain = c.dtype == dtype::S32 && !self.scales && self.scale == 1.0;
        let exact = plain && (!self.bias || self.zero_c == 0);
        let mut params = Params::new();
        params.view(&inputs[0]).view(&inputs[1]).optional(self.bias.then(|| &inputs[2]));
        params.optional(self.scales.then(|| &inputs[inputs.len() - 1])).view(&outputs[0]);
        params.word(small(&[m])?).word(small(&[n])?).word(small(&[k])?).flag(a.dtype == dtype::S8);
        params.word(c.dtype).flag(exact);
        zeros.iter().for_each(|&zero| _ = params.integer(zero));
        params.float(self.scale).long(a_row).long(a_k).long(b_k).long(b_column);
        params.launch(emit, &MATMUL_INT8, (m.div_ceil(16) * n.div_ceil(16), 1), 256)
    }
    fn has_products(&self) -> bool {
        true
    }

    /// Sums of signed bytes as they are, which fit in 32 bits whatever they are of.
    fn product(&self, inputs: &[View], outputs: &[View]) -> Result<Option<MatrixProduct>> {
        /// As many times (-128)^2 leave 32 bits.
        const TOO_MANY: usize = 1 << 17;
        let (a, b, c) = (inputs[0].desc(), inputs[1].desc(), outputs[0].desc());
        let is_plain = a.dtype == dtype::S8 && c.dtype == dtype::S32 && !self.bias && !self.scales;
        if !is_plain || self.scale != 1.0 || [self.zero_a, self.zero_b, self.zero_c] != [0; 3] || count(c)? == 0 {
            return Ok(None);
        }
        let ((k, n), m) = (sides(b, self.transpose_b), c.elements()? / sides(b, self.transpose_b).1);
        // Libraries have units of four, and both factors row by row along K.
        let has_form = self.transpose_b && !self.transpose_a && n.is_multiple_of(4) && k.is_multiple_of(4);
        if !has_form || k == 0 || k >= TOO_MANY {
            return Ok(None);
        }
        let shape = ProductShape {
            dtype: dtype::S8,
            to: dtype::S32,
            m,
            n,
            k,
            batch: 1,
            strides: [0; 2],
            transpose_a: false,
            transpose_b: true,
            bias: false,
            addend: false,
            tf32: false,
            alignment: 0,
        };
        let [a, b, c] = [&inputs[0], &inputs[1], &outputs[0]].map(|view| view.data().addr());
        let product = MatrixProduct::new(shape, [a, b, c, 0, 0]);
        // Its kernels of integers take nothing else.
        Ok((product.shape.alignment >= 16).then_some(product))
    }
}

//! Matrix products.
#![forbid(unsafe_code)]

use super::attributes::Attributes;
use crate::abi::weir_activation_value::WEIR_ACTIVATION_RELU;
use crate::abi::weir_matmul_flags::*;
use crate::abi::weir_matmul_int8_flags::*;
use crate::abi::{weir_matmul_desc, weir_matmul_int8_desc};
use crate::base::{Desc, Result, dtype};
use crate::device::cuda::images::*;
use crate::device::cuda::plan::{Emit, Entry, Operator, Params, count, small, unimplemented};
use crate::device::cuda::walk::Walk;
use crate::memory::View;
use std::mem::offset_of;

/// C = activation(A B + bias + addend), batch by batch.
#[derive(Clone, Copy, Debug)]
pub struct Matmul {
    transpose_a: bool,
    transpose_b: bool,
    bias: bool,
    sum: bool,
    activation: u32,
}

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

fn packed() -> crate::base::Error {
    unimplemented("packed weights are in a layout for the processor; a CUDA device takes B as an input")
}

impl Matmul {
    pub fn new(attributes: Attributes<'_>) -> Result<Matmul> {
        if !attributes.is_null(offset_of!(weir_matmul_desc, weights)) {
            return Err(packed());
        }
        let flags = attributes.u64(offset_of!(weir_matmul_desc, flags));
        let has = |flag| flags & flag as u64 != 0;
        let activation = match has(WEIR_MATMUL_RELU) {
            true => WEIR_ACTIVATION_RELU as u32,
            false => attributes.u32(offset_of!(weir_matmul_desc, activation)),
        };
        Ok(Matmul {
            transpose_a: has(WEIR_MATMUL_TRANSPOSE_A),
            transpose_b: has(WEIR_MATMUL_TRANSPOSE_B),
            bias: has(WEIR_MATMUL_BIAS),
            sum: has(WEIR_MATMUL_SUM),
            activation,
        })
    }

    /// The matrices of a batch.
    fn batch(a: &Desc, b: &Desc, c: &Desc) -> Walk<2> {
        let mut walk = Walk::new();
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

    /// The kernel whose tiles fill a device and leave little of themselves out. All give the same bits.
    fn entry(of: u32, m: usize, n: usize, batch: usize) -> (&'static Entry, usize) {
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
}

impl Operator for Matmul {
    fn entries(&self) -> &'static [&'static Entry] {
        const {
            &[
                &MATMUL_128_F32,
                &MATMUL_64_F32,
                &MATMUL_64_F16,
                &MATMUL_64_BF16,
                &MATMUL_16_F32,
                &MATMUL_16_F16,
                &MATMUL_16_BF16,
            ]
        }
    }

    fn launches(&self, inputs: &[View], outputs: &[View], emit: &mut Emit<'_>) -> Result<()> {
        let (a, b, c) = (inputs[0].desc(), inputs[1].desc(), outputs[0].desc());
        if count(c)? == 0 {
            return Ok(());
        }
        let ((mut m, k), (_, n)) = (sides(a, self.transpose_a), sides(b, self.transpose_b));
        let ((a_row, a_k), (b_k, b_column)) = (steps(m, k, self.transpose_a), steps(k, n, self.transpose_b));
        let mut walk = Matmul::batch(a, b, c);
        if !self.transpose_a && walk.rank() == 1 && walk.strides()[1][0] == 0 && walk.strides()[0][0] == (m * k) as i64
        {
            // One B for all: the matrices of A are more rows.
            m *= walk.places();
            walk = Walk::new();
        }
        let batch = small(&[walk.places()])?;
        let mut params = Params::new();
        params.view(&inputs[0]).view(&inputs[1]);
        params.optional(self.bias.then(|| &inputs[2])).optional(self.sum.then(|| &inputs[inputs.len() - 1]));
        params.view(&outputs[0]).word(small(&[m])?).word(small(&[n])?).word(small(&[k])?).word(batch);
        params.word(c.dtype).word(self.activation).long(a_row).long(a_k).long(b_k).long(b_column).walk(&walk);
        let (entry, side) = Matmul::entry(a.dtype, m, n, batch as usize);
        params.launch(emit, entry, (m.div_ceil(side) * n.div_ceil(side), batch as usize), 256)
    }
}

/// The same of bytes, exact, with scales and zero points.
#[derive(Clone, Copy, Debug)]
pub struct MatmulInt8 {
    transpose_a: bool,
    transpose_b: bool,
    bias: bool,
    scales: bool,
    scale: f32,
    zeros: [i32; 3],
}

impl MatmulInt8 {
    pub fn new(attributes: Attributes<'_>) -> Result<MatmulInt8> {
        if !attributes.is_null(offset_of!(weir_matmul_int8_desc, weights)) {
            return Err(packed());
        }
        let flags = attributes.u64(offset_of!(weir_matmul_int8_desc, flags));
        let has = |flag| flags & flag as u64 != 0;
        let scale = attributes.f32(offset_of!(weir_matmul_int8_desc, scale));
        let zeros = [
            offset_of!(weir_matmul_int8_desc, zero_a),
            offset_of!(weir_matmul_int8_desc, zero_b),
            offset_of!(weir_matmul_int8_desc, zero_c),
        ];
        Ok(MatmulInt8 {
            transpose_a: has(WEIR_MATMUL_INT8_TRANSPOSE_A),
            transpose_b: has(WEIR_MATMUL_INT8_TRANSPOSE_B),
            bias: has(WEIR_MATMUL_INT8_BIAS),
            scales: has(WEIR_MATMUL_INT8_SCALES),
            scale: if scale == 0.0 { 1.0 } else { scale },
            zeros: zeros.map(|at| attributes.i32(at)),
        })
    }
}

impl Operator for MatmulInt8 {
    fn entries(&self) -> &'static [&'static Entry] {
        const { &[&MATMUL_INT8] }
    }

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
        let plain = c.dtype == dtype::S32 && !self.scales && self.scale == 1.0;
        let exact = plain && (!self.bias || self.zeros[2] == 0);
        let mut params = Params::new();
        params.view(&inputs[0]).view(&inputs[1]).optional(self.bias.then(|| &inputs[2]));
        params.optional(self.scales.then(|| &inputs[inputs.len() - 1])).view(&outputs[0]);
        params.word(small(&[m])?).word(small(&[n])?).word(small(&[k])?).flag(a.dtype == dtype::S8);
        params.word(c.dtype).flag(exact);
        self.zeros.iter().for_each(|&zero| _ = params.integer(zero));
        params.float(self.scale).long(a_row).long(a_k).long(b_k).long(b_column);
        params.launch(emit, &MATMUL_INT8, (m.div_ceil(16) * n.div_ceil(16), 1), 256)
    }
}

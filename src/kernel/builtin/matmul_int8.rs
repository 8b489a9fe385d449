//! int8 matrix product.
#![forbid(unsafe_code)]

use super::packed::Packed;
use super::{LEAST_NS, elements, input};
use crate::base::{Desc, Error, Result, desc::ANY_DIM, desc::MAX_RANK, dtype};
use crate::kernel::vector::int8::{self, Int8Product, Offset, Rule, Scaled, Store};
use crate::kernel::vector::isa::Isa;
use crate::kernel::vector::site::Matrix;
use crate::kernel::{Kernel, KernelContext, Outputs, signature};
use std::sync::Arc;

/// `C[..., M, N] = saturate(round(scale * scales[N] * ((A[..., M, K] - zero_a) * (B[K, N] - zero_b) + bias[N])) +
/// zero_c)`, A of u8 or s8, B of s8, bias of s32. The leading dimensions of A become more rows. A transposed A is `[K,
/// M]` and has none; a transposed B is `[N, K]`.
#[derive(Clone, Debug)]
pub struct MatmulInt8 {
    pub transpose_a: bool,
    pub transpose_b: bool,
    pub bias: bool,
    /// The last input has a scale for each column.
    pub scales: bool,
    pub scale: f32,
    pub zero_a: i32,
    pub zero_b: i32,
    pub zero_c: i32,
    pub store: Store,
    /// Packed B instead of an input; its orientation was fixed when it was packed.
    pub weights: Option<Arc<Packed>>,
}

impl MatmulInt8 {
    fn operands(&self) -> usize {
        if self.weights.is_some() { 1 } else { 2 }
    }

    /// N, from B.
    fn width(&self, inputs: &[Desc]) -> i64 {
        match &self.weights {
            Some(weights) => weights.n() as i64,
            None => inputs[1].dims[if self.transpose_b { 0 } else { 1 }],
        }
    }

    /// The descriptor of C; refuses inputs that do not fit together.
    fn result(&self, inputs: &[Desc]) -> Result<Desc> {
        let a = &inputs[0];
        if ![dtype::U8, dtype::S8].contains(&a.dtype) {
            return Err(signature::mismatch("input", 0, "u8 or s8 elements", a));
        }
        let values = if a.dtype == dtype::U8 { 0..=255 } else { -128..=127 };
        if !values.contains(&self.zero_a) {
            let (zero, name) = (self.zero_a, dtype::name(a.dtype));
            return Err(Error::invalid(format!("input 0: zero_a is {zero}, which is no {name}")));
        }
        let rank = if self.transpose_a { 2 } else { a.shape().len().max(2) };
        let mut dims = [ANY_DIM; MAX_RANK];
        if let Some(weights) = &self.weights {
            dims[if self.transpose_a { 0 } else { rank - 1 }] = weights.k() as i64;
        }
        let mut patterns = vec![Desc::new(a.dtype, &dims[..rank])];
        signature::check("input", &patterns, &inputs[..1])?;
        let k = a.dims[if self.transpose_a { 0 } else { rank - 1 }];
        if self.weights.is_none() {
            patterns.push(Desc::new(dtype::S8, &if self.transpose_b { [ANY_DIM, k] } else { [k, ANY_DIM] }));
            signature::check("input", &patterns, &inputs[..2])?;
        }
        let n = self.width(inputs);
        if self.bias {
            patterns.push(Desc::new(dtype::S32, &[n]));
        }
        if self.scales {
            patterns.push(Desc::new(dtype::F32, &[n]));
        }
        signature::check("input", &patterns, inputs)?;
        let mut output = *a;
        output.dtype = match self.store {
            Store::S32 => dtype::S32,
            Store::F32 => dtype::F32,
            Store::S8 => dtype::S8,
            Store::U8 => dtype::U8,
        };
        if self.transpose_a {
            output.dims[0] = a.dims[1];
        }
        output.dims[rank - 1] = n;
        output.check()
    }

    /// The product of these operands, or, without data, one of the same sizes.
    fn product<'a>(
        &'a self,
        inputs: &[Desc],
        output: &Desc,
        a: Option<&'a [u8]>,
        b: Option<&'a [u8]>,
    ) -> Int8Product<'a> {
        let rank = inputs[0].shape().len();
        let k = inputs[0].dims[if self.transpose_a { 0 } else { rank - 1 }] as usize;
        let n = self.width(inputs) as usize;
        let m = elements(output).checked_div(n).unwrap_or(0);
        let dense = |data: Option<&'a [u8]>, transposed: bool, rows: usize, columns: usize| {
            let (rows, columns) = if transposed { (columns, rows) } else { (rows, columns) };
            data.map_or(Matrix::dense(&[], 0, 0), |data| Matrix::dense(data, rows, columns))
        };
        Int8Product {
            m,
            n,
            k,
            a: dense(a, self.transpose_a, m, k),
            transpose_a: self.transpose_a,
            signed_a: inputs[0].dtype == dtype::S8,
            b: dense(b, self.transpose_b, k, n),
            transpose_b: self.transpose_b,
            packed_b: self.weights.as_ref().map(|weights| weights.s8_panels()),
            zero_a: self.zero_a,
            zero_b: self.zero_b,
            rule: Rule { alpha: 1.0, beta: 0.0, offset: Offset::Fixed(0) },
        }
    }
}

impl Kernel for MatmulInt8 {
    fn name(&self) -> &str {
        "matmul_int8"
    }

    fn num_inputs(&self) -> usize {
        self.operands() + self.bias as usize + self.scales as usize
    }

    fn num_outputs(&self) -> usize {
        1
    }

    fn infer(&self, inputs: &[Desc]) -> Result<Vec<Desc>> {
        Ok(vec![self.result(inputs)?])
    }

    fn scratch_bytes(&self, inputs: &[Desc], outputs: &[Desc]) -> usize {
        int8::scratch_bytes(Isa::best(), &self.product(inputs, &outputs[0], None, None), self.store)
    }

    fn cost_ns(&self, inputs: &[Desc], outputs: &[Desc]) -> u64 {
        self.product(inputs, &outputs[0], None, None).cost_ns(Isa::best()).max(LEAST_NS)
    }

    fn is_pure(&self) -> bool {
        true
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        let output = outputs.only();
        if elements(output.desc()) == 0 {
            return Ok(());
        }
        let views = context.inputs();
        let descs = [*views[0].desc(), *views[self.operands() - 1].desc()];
        let b = self.weights.is_none().then(|| context.input(1).read_bytes());
        let product = self.product(&descs, output.desc(), Some(context.input(0).read_bytes()), b);
        let scaled = Scaled {
            store: self.store,
            scale: self.scale,
            scales: self.scales.then(|| input(context, self.num_inputs() - 1)),
            bias: self.bias.then(|| context.input(self.operands()).read::<i32>()),
            zero: self.zero_c,
        };
        int8::compute_scaled(Isa::best(), &product, &scaled, output, context)
    }
}

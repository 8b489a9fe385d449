//! int8 matrix product.
#![forbid(unsafe_code)]

use super::{Builtin, BuiltinOperation, LEAST_NS, elements, input};
use crate::base::{Desc, Result, dtype};
use crate::kernel::vector::int8::{self, Int8Product, Offset, Rule, Scaled, Store};
use crate::kernel::vector::isa::Isa;
use crate::kernel::vector::site::Matrix;
use crate::kernel::{KernelContext, Outputs};
use crate::ops::{MatmulInt8, Operator};

impl Builtin<MatmulInt8> {
    fn store(&self) -> Store {
        match self.dtype {
            dtype::F32 => Store::F32,
            dtype::S8 => Store::S8,
            dtype::U8 => Store::U8,
            _ => Store::S32,
        }
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
            packed_b: self.weights.as_ref().map(|weights| weights.panels()),
            zero_a: self.zero_a,
            zero_b: self.zero_b,
            rule: Rule { alpha: 1.0, beta: 0.0, offset: Offset::Fixed(0) },
        }
    }
}

impl BuiltinOperation for Builtin<MatmulInt8> {
    fn scratch_bytes(&self, inputs: &[Desc], output: &Desc) -> usize {
        int8::scratch_bytes(Isa::best(), &self.product(inputs, output, None, None), self.store())
    }

    fn cost_ns(&self, inputs: &[Desc], output: &Desc) -> u64 {
        self.product(inputs, output, None, None).cost_ns(Isa::best()).max(LEAST_NS)
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
            store: self.store(),
            scale: self.scale,
            scales: self.scales.then(|| input(context, self.num_inputs() - 1)),
            bias: self.bias.then(|| context.input(self.operands()).read::<i32>()),
            zero: self.zero_c,
        };
        int8::compute_scaled(Isa::best(), &product, &scaled, output, context)
    }
}

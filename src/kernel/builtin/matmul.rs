//! Matrix product.
#![forbid(unsafe_code)]

use super::{LEAST_NS, Operation, elements, input};
use crate::base::{Desc, Result, desc::ANY_DIM, dtype};
use crate::kernel::vector::gemm::{self, Product, Shape};
use crate::kernel::vector::micro::Scale;
use crate::kernel::vector::site::{Matrix, MatrixMut};
use crate::kernel::{KernelContext, signature};

/// A size of which it makes no difference to the scratch memory how large it is.
const LARGE: usize = 1 << 20;

/// `C[..., M, N] = A[..., M, K] * B[K, N]`, plus `bias[N]`, then relu. The leading dimensions of A are more rows. A
/// transposed A is `[K, M]` and has no leading dimensions; a transposed B is `[N, K]`.
#[derive(Clone, Copy, Debug)]
pub struct Matmul {
    pub transpose_a: bool,
    pub transpose_b: bool,
    pub bias: bool,
    pub relu: bool,
}

impl Matmul {
    /// Refuses inputs that do not fit together.
    fn check(&self, inputs: &[Desc]) -> Result<()> {
        let any = [ANY_DIM; crate::base::desc::MAX_RANK];
        let rank = if self.transpose_a { 2 } else { inputs[0].shape().len().max(2) };
        let a = Desc::new(dtype::F32, &any[..rank]);
        signature::check_fit("input", &[a], &inputs[..1])?;
        let k = self.depth(&inputs[0]);
        let b = Desc::new(dtype::F32, &if self.transpose_b { [ANY_DIM, k] } else { [k, ANY_DIM] });
        signature::check_fit("input", &[a, b], &inputs[..2])?;
        if self.bias {
            let bias = Desc::new(dtype::F32, &[self.width(&inputs[1])]);
            signature::check_fit("input", &[a, b, bias], inputs)?;
        }
        Ok(())
    }

    /// K, by A.
    fn depth(&self, a: &Desc) -> i64 {
        let shape = a.shape();
        if self.transpose_a { shape[0] } else { shape[shape.len() - 1] }
    }

    /// N, by B.
    fn width(&self, b: &Desc) -> i64 {
        if self.transpose_b { b.dims[0] } else { b.dims[1] }
    }

    /// The sizes, of inputs that `check` took.
    fn shape(&self, inputs: &[Desc], output: &Desc) -> Shape {
        let (n, k) = (self.width(&inputs[1]) as usize, self.depth(&inputs[0]) as usize);
        let m = elements(output).checked_div(n).unwrap_or(0);
        Shape { m, n, k, transpose_a: self.transpose_a, transpose_b: self.transpose_b }
    }
}

impl Operation for Matmul {
    fn name(&self) -> &str {
        "matmul"
    }

    fn num_inputs(&self) -> usize {
        2 + self.bias as usize
    }

    fn output(&self, inputs: &[Desc]) -> Result<Desc> {
        self.check(inputs)?;
        let mut output = inputs[0];
        let rank = output.shape().len();
        if self.transpose_a {
            output.dims[0] = output.dims[1];
        }
        output.dims[rank - 1] = self.width(&inputs[1]);
        output.check_open()
    }

    fn scratch_bytes(&self, inputs: &[Desc], output: &Desc) -> usize {
        if inputs.iter().chain([output]).all(Desc::is_concrete) {
            return self.shape(inputs, output).scratch_bytes();
        }
        // More rows, columns and depth than this need no more.
        let size = |side: i64| if side == ANY_DIM { LARGE } else { side as usize };
        let (k, n) = (size(self.depth(&inputs[0])), size(self.width(&inputs[1])));
        let (transpose_a, transpose_b) = (self.transpose_a, self.transpose_b);
        Shape { m: LARGE, n, k, transpose_a, transpose_b }.scratch_bytes()
    }

    fn cost_ns(&self, inputs: &[Desc], output: &Desc) -> u64 {
        self.shape(inputs, output).cost_ns().max(LEAST_NS)
    }

    fn compute(&self, context: &KernelContext<'_>) -> Result<()> {
        let output = &context.outputs()[0];
        let inputs = [context.inputs()[0].desc(), context.inputs()[1].desc()].map(|desc| *desc);
        let shape = self.shape(&inputs, output.desc());
        if shape.m * shape.n == 0 {
            return Ok(());
        }
        let stored =
            |transposed: bool, rows: usize, columns: usize| if transposed { (columns, rows) } else { (rows, columns) };
        let (a, b) = (stored(shape.transpose_a, shape.m, shape.k), stored(shape.transpose_b, shape.k, shape.n));
        let product = Product {
            shape,
            a: Matrix::dense(input(context, 0), a.0, a.1),
            b: Matrix::dense(input(context, 1), b.0, b.1),
            scale: Scale { alpha: 1.0, beta: 0.0 },
            bias: self.bias.then(|| input(context, 2)),
            relu: self.relu,
        };
        gemm::compute(&product, MatrixMut::output(output, shape.m, shape.n), context)
    }
}

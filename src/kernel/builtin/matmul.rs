//! Matrix product.
#![forbid(unsafe_code)]

use super::packed::Packed;
use super::{BuiltinOperation, LEAST_NS, elements, input};
use crate::base::desc::{ANY_DIM, MAX_RANK};
use crate::base::{Desc, Result, dtype};
use crate::kernel::vector::activation::Activation;
use crate::kernel::vector::convert::Stored;
use crate::kernel::vector::finish::ProductEpilogue;
use crate::kernel::vector::gemm::{self, GemmBatch, GemmShape, OperandB, Operands};
use crate::kernel::vector::halves;
use crate::kernel::vector::micro::Scale;
use crate::kernel::vector::site::{Matrix, MatrixMut};
use crate::kernel::{KernelContext, Outputs, signature};
use crate::memory::{Bf16, BytesMut, F16};
use std::sync::Arc;

/// From this size on the scratch memory no longer grows.
const LARGE: usize = 1 << 20;

/// `C[..., M, N] = activation(A[..., M, K] * B[..., K, N] + bias[N] + addend[..., M, N])`. The leading dimensions
/// broadcast. A transposed A is `[..., K, M]`, a transposed B `[..., N, K]`. A and B are of one type, f32, f16 or bf16;
/// C, the bias and the addend are of that type, or f32.
#[derive(Clone, Debug)]
pub struct Matmul {
    pub transpose_a: bool,
    pub transpose_b: bool,
    pub bias: bool,
    /// The last input, of the shape of C, is added.
    pub sum: bool,
    pub activation: Activation,
    /// C is f32 even if A and B are not.
    pub wide: bool,
    /// Packed B instead of an input; its orientation was fixed when it was packed.
    pub weights: Option<Arc<Packed>>,
}

/// A batch dimension: strides of A and B from one product to the next.
#[derive(Clone, Copy, Default)]
struct BatchStrides {
    size: usize,
    a: usize,
    b: usize,
}

/// The products of a call.
struct MatmulPlan {
    shape: GemmShape,
    count: usize,
    /// The batch's dimensions, the last one first.
    walks: [BatchStrides; MAX_RANK],
}

impl MatmulPlan {
    /// Offsets of a product's A and B.
    fn offsets(&self, mut number: usize) -> (usize, usize) {
        let (mut a, mut b) = (0, 0);
        for walk in self.walks.iter().take_while(|walk| walk.size > 0) {
            let at = number % walk.size;
            number /= walk.size;
            a += at * walk.a;
            b += at * walk.b;
        }
        (a, b)
    }
}

/// Size of the leading dimension `from_last` before the last of these; 1 if there is none.
fn leading(desc: &Desc, from_last: usize) -> i64 {
    desc.shape().iter().rev().nth(2 + from_last).copied().unwrap_or(1)
}

/// Number of matrices.
fn matrices(desc: &Desc) -> usize {
    (0..MAX_RANK - 2).map(|i| leading(desc, i) as usize).product()
}

impl Matmul {
    /// The last two dimensions, in the order of the product.
    fn sides(desc: &Desc, transposed: bool) -> (i64, i64) {
        let rank = desc.shape().len();
        let (rows, columns) = (desc.dims[rank - 2], desc.dims[rank - 1]);
        if transposed { (columns, rows) } else { (rows, columns) }
    }

    /// The descriptor of B, also if B is packed.
    fn right(&self, inputs: &[Desc]) -> Desc {
        match &self.weights {
            None => inputs[1],
            Some(weights) => Desc::new(weights.dtype(), &[weights.k() as i64, weights.n() as i64]),
        }
    }

    /// Number of inputs before the bias.
    fn operands(&self) -> usize {
        if self.weights.is_some() { 1 } else { 2 }
    }

    /// The type of A and B: that of packed weights, else that of the given A.
    fn element(&self, a: &Desc) -> u32 {
        match &self.weights {
            Some(weights) => weights.dtype(),
            None if [dtype::F16, dtype::BF16].contains(&a.dtype) => a.dtype,
            None => dtype::F32,
        }
    }

    /// The descriptor of C; refuses inputs that do not fit together.
    fn result(&self, inputs: &[Desc]) -> Result<Desc> {
        let of = self.element(&inputs[0]);
        let of_c = if self.wide { dtype::F32 } else { of };
        // A matrix of any batch, whose side along K is `k`.
        let pattern = |desc: &Desc, first: i64, second: i64, transposed: bool| {
            let mut dims = [ANY_DIM; MAX_RANK];
            let rank = desc.shape().len().max(2);
            (dims[rank - 2], dims[rank - 1]) = if transposed { (second, first) } else { (first, second) };
            Desc::new(of, &dims[..rank])
        };
        let mut k = ANY_DIM;
        if let Some(weights) = &self.weights {
            k = weights.k() as i64;
        }
        // No allocation: this runs each time the kernel is enqueued.
        let (mut patterns, mut count) = ([inputs[0]; 4], self.operands());
        patterns[0] = pattern(&inputs[0], ANY_DIM, k, self.transpose_a);
        signature::check_fit("input", &patterns[..1], &inputs[..1])?;
        let (m, k) = Self::sides(&inputs[0], self.transpose_a);
        if self.weights.is_none() {
            patterns[1] = pattern(&inputs[1], k, ANY_DIM, self.transpose_b);
            signature::check_fit("input", &patterns[..2], &inputs[..2])?;
        }
        let (a, b) = (inputs[0], self.right(inputs));
        let mut output = if a.rank >= b.rank { a } else { b };
        let rank = output.shape().len();
        for i in 0..rank - 2 {
            output.dims[rank - 3 - i] = match (leading(&a, i), leading(&b, i)) {
                (a, b) if a == b => a,
                (1, other) | (other, 1) | (ANY_DIM, other) | (other, ANY_DIM) => other,
                _ => {
                    let expected = format!("leading dimensions that broadcast with {}", a.text());
                    return Err(signature::mismatch("input", 1, &expected, &b));
                }
            };
        }
        let n = Self::sides(&b, self.transpose_b).1;
        (output.dtype, output.dims[rank - 2], output.dims[rank - 1]) = (of_c, m, n);
        if self.bias {
            patterns[count] = Desc::new(of_c, &[n]);
            count += 1;
        }
        if self.sum {
            patterns[count] = output;
            count += 1;
        }
        signature::check_fit("input", &patterns[..count], inputs)?;
        output.check_open()
    }

    /// The products for inputs that `result` accepted.
    fn plan(&self, inputs: &[Desc], output: &Desc) -> MatmulPlan {
        let (a, b) = (&inputs[0], &self.right(inputs));
        let ((m, k), (_, n)) = (Self::sides(a, self.transpose_a), Self::sides(b, self.transpose_b));
        let [m, n, k] = [m, n, k].map(|side| side as usize);
        let mut shape = GemmShape { m, n, k, transpose_a: self.transpose_a, transpose_b: self.transpose_b };
        let mut plan = MatmulPlan { shape, count: 1, walks: [BatchStrides::default(); MAX_RANK] };
        if !self.transpose_a && matrices(b) == 1 {
            // One B for all: the leading dimensions become more rows.
            shape.m *= matrices(output);
            return MatmulPlan { shape, ..plan };
        }
        let (mut next_a, mut next_b) = (m * k, k * n);
        for (i, walk) in plan.walks.iter_mut().enumerate().take(output.shape().len() - 2) {
            let [of_a, of_b, size] = [a, b, output].map(|desc| leading(desc, i) as usize);
            *walk = BatchStrides { size, a: if of_a == 1 { 0 } else { next_a }, b: if of_b == 1 { 0 } else { next_b } };
            (next_a, next_b) = (next_a * of_a, next_b * of_b);
            plan.count *= size;
        }
        plan
    }
}

impl Matmul {
    /// Products of 16-bit floats of type T with results of type U.
    fn halves<T: Stored, U: Stored>(
        &self,
        context: &KernelContext<'_>,
        output: BytesMut<'_>,
        plan: &MatmulPlan,
    ) -> Result<()> {
        let GemmShape { m, n, k, transpose_a, transpose_b } = plan.shape;
        let dense = |data, transposed, rows, columns| {
            if transposed { Matrix::dense(data, columns, rows) } else { Matrix::dense(data, rows, columns) }
        };
        let bias = self.bias.then(|| &context.input(self.operands()).read::<U>()[..n]);
        let addend = self.sum.then(|| context.input(self.num_inputs() - 1).read::<U>());
        let a = context.input(0).read::<T>();
        let b = if self.weights.is_none() { context.input(1).read::<T>() } else { &[] };
        let c = MatrixMut::<U>::output(output, plan.count * m, n);
        let operands = |number: usize| {
            let (of_a, of_b) = plan.offsets(number);
            halves::HalvesOperands {
                a: dense(&a[of_a..], transpose_a, m, k),
                b: match &self.weights {
                    Some(weights) => halves::HalvesB::Panels(weights.f32_panels()),
                    None => halves::HalvesB::Matrix(dense(&b[of_b..], transpose_b, k, n)),
                },
                bias,
                addend: addend.map(|addend| Matrix::dense(&addend[number * m * n..], m, n)),
                activation: self.activation,
            }
        };
        halves::compute(&plan.shape, plan.count, &operands, c, context)
    }
}

impl BuiltinOperation for Matmul {
    fn name(&self) -> &str {
        "matmul"
    }

    fn num_inputs(&self) -> usize {
        self.operands() + self.bias as usize + self.sum as usize
    }

    fn output(&self, inputs: &[Desc]) -> Result<Desc> {
        self.result(inputs)
    }

    fn scratch_bytes(&self, inputs: &[Desc], output: &Desc) -> usize {
        if inputs.iter().chain([output]).all(Desc::is_concrete) {
            let plan = self.plan(inputs, output);
            return match self.element(&inputs[0]) {
                dtype::F32 => plan.shape.batch_scratch_bytes(plan.count),
                _ => halves::scratch_bytes(&plan.shape, plan.count),
            };
        }
        // Larger sizes need no more scratch memory than this.
        let size = |side: i64| if side == ANY_DIM { LARGE } else { side as usize };
        let (_, k) = Self::sides(&inputs[0], self.transpose_a);
        let (_, n) = Self::sides(&self.right(inputs), self.transpose_b);
        let shape = GemmShape {
            m: LARGE,
            n: size(n),
            k: size(k),
            transpose_a: self.transpose_a,
            transpose_b: self.transpose_b,
        };
        match self.element(&inputs[0]) {
            dtype::F32 => shape.batch_scratch_bytes(LARGE),
            _ => halves::most_scratch_bytes(&shape),
        }
    }

    fn cost_ns(&self, inputs: &[Desc], output: &Desc) -> u64 {
        let plan = self.plan(inputs, output);
        let finish = elements(output) as f32 * self.activation.cost_ns();
        (plan.count as u64).saturating_mul(plan.shape.cost_ns()).saturating_add(finish as u64).max(LEAST_NS)
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        let output = outputs.only();
        if elements(output.desc()) == 0 {
            return Ok(());
        }
        let mut descs = [*context.inputs()[0].desc(); 2];
        if self.weights.is_none() {
            descs[1] = *context.inputs()[1].desc();
        }
        let plan = self.plan(&descs[..self.operands()], output.desc());
        match (self.element(&descs[0]), self.wide) {
            (dtype::F16, false) => return self.halves::<F16, F16>(context, output, &plan),
            (dtype::F16, true) => return self.halves::<F16, f32>(context, output, &plan),
            (dtype::BF16, false) => return self.halves::<Bf16, Bf16>(context, output, &plan),
            (dtype::BF16, true) => return self.halves::<Bf16, f32>(context, output, &plan),
            _ => {}
        }
        let GemmShape { m, n, k, transpose_a, transpose_b } = plan.shape;
        let bias = self.bias.then(|| input(context, self.operands()));
        let addend = self.sum.then(|| input(context, self.num_inputs() - 1));
        let dense = |data, transposed, rows, columns| {
            if transposed { Matrix::dense(data, columns, rows) } else { Matrix::dense(data, rows, columns) }
        };
        let a = input(context, 0);
        let b = if self.weights.is_none() { input(context, 1) } else { &[] };
        let c = MatrixMut::output(output, plan.count * m, n);
        let operands = |number: usize| {
            let (of_a, of_b) = plan.offsets(number);
            let finish = ProductEpilogue {
                columns: bias,
                rows: None,
                addend: addend.map(|addend| Matrix::dense(&addend[number * m * n..][..m * n], m, n)),
                activation: self.activation,
            };
            Operands {
                a: dense(&a[of_a..], transpose_a, m, k),
                b: match &self.weights {
                    Some(weights) => OperandB::Panels(weights.f32_panels()),
                    None => OperandB::Matrix(dense(&b[of_b..], transpose_b, k, n)),
                },
                finish,
            }
        };
        let scale = Scale { alpha: 1.0, beta: 0.0 };
        gemm::compute_batch(&GemmBatch { shape: plan.shape, count: plan.count, scale, operands: &operands }, c, context)
    }
}

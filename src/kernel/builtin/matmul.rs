//! Matrix product.
#![forbid(unsafe_code)]

use super::packed::Packed;
use super::{Builtin, BuiltinOperation, LEAST_NS, elements, input};
use crate::base::desc::MAX_RANK;
use crate::base::{Desc, Result, dtype};
use crate::kernel::vector::activation;
use crate::kernel::vector::convert::Stored;
use crate::kernel::vector::finish::ProductEpilogue;
use crate::kernel::vector::gemm::{self, GemmBatch, GemmShape, OperandB, Operands};
use crate::kernel::vector::halves;
use crate::kernel::vector::micro::Scale;
use crate::kernel::vector::panels::Panels;
use crate::kernel::vector::site::{Matrix, MatrixMut};
use crate::kernel::{EpilogueStep, Kernel, KernelContext, OtherShape, Outputs, PreparedForms};
use crate::memory::{Bf16, Bytes, BytesMut, F16};
use crate::ops::Activation;
use crate::ops::matmul::{Matmul, leading, sides};
use crate::ops::weir_binary_op_value::WEIR_BINARY_ADD;
use std::sync::Arc;

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

/// Number of matrices.
fn matrices(desc: &Desc) -> usize {
    (0..MAX_RANK - 2).map(|i| leading(desc, i) as usize).product()
}

impl Builtin<Matmul> {
    /// The products for inputs that `result` accepted.
    fn plan(&self, inputs: &[Desc], output: &Desc) -> MatmulPlan {
        let (a, b) = (&inputs[0], &self.right(inputs));
        let ((m, k), (_, n)) = (sides(a, self.transpose_a), sides(b, self.transpose_b));
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

impl Builtin<Matmul> {
    /// Panels of B, which the host or compile has packed.
    fn panels<T: 'static>(&self) -> Option<&Panels<T>> {
        self.weights.as_deref().map(Packed::panels).or_else(|| self.kept())
    }

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
        let panels = self.panels::<T>();
        let b = if panels.is_none() { context.input(1).read::<T>() } else { &[] };
        let c = MatrixMut::<U>::output(output, plan.count * m, n);
        let operands = |number: usize| {
            let (of_a, of_b) = plan.offsets(number);
            halves::HalvesOperands {
                a: dense(&a[of_a..], transpose_a, m, k),
                b: match panels {
                    Some(panels) => halves::HalvesB::Panels(panels),
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

impl BuiltinOperation for Builtin<Matmul> {
    fn with_epilogue(&self, step: EpilogueStep, _: &[Desc]) -> Option<Arc<dyn Kernel>> {
        if self.activation != Activation::NONE {
            return None;
        }
        let operator = match step {
            EpilogueStep::Unary(function) => Matmul { activation: function.activation()?, ..**self },
            // The sum is the last input, behind the bias.
            EpilogueStep::Binary { of, other, .. } if of.op == WEIR_BINARY_ADD && !self.sum => match other {
                OtherShape::Same => Matmul { sum: true, ..**self },
                OtherShape::Columns if !self.bias => Matmul { bias: true, ..**self },
                _ => return None,
            },
            EpilogueStep::Binary { .. } => return None,
        };
        Some(Arc::new(self.with_operator(operator)))
    }

    /// Panels of B, if it is one for all products: they are read in one sweep, where rows of B far apart, and more so a
    /// transposed B, keep the processor from what the memory could give.
    fn prepared(
        &self,
        inputs: &[Desc],
        constants: &[Option<Bytes<'_>>],
        forms: &mut PreparedForms,
    ) -> Result<Option<Self>> {
        let (None, &[_, Some(constant), ..]) = (&self.weights, constants) else { return Ok(None) };
        let b = &inputs[1];
        if matrices(b) != 1 {
            return Ok(None);
        }
        let (k, n) = sides(b, self.transpose_b);
        let [k, n] = [k, n].map(|side| side as usize);
        let (rows, columns) = if self.transpose_b { (n, k) } else { (k, n) };
        let settings = [k, n, self.transpose_b.into()];
        macro_rules! packed {
            ($of:ty, $pack:expr) => {{
                let b = || Matrix::<$of>::dense(constant.read(), rows, columns);
                self.keeping(forms.get(constant, settings, || $pack(b(), k, n, self.transpose_b))?)
            }};
        }
        Ok(Some(match self.element(&inputs[0]) {
            dtype::F16 => packed!(F16, Panels::of_halves),
            dtype::BF16 => packed!(Bf16, Panels::of_halves),
            _ => packed!(f32, Panels::new),
        }))
    }

    fn scratch_bytes(&self, inputs: &[Desc], output: &Desc) -> usize {
        let plan = self.plan(inputs, output);
        match self.element(&inputs[0]) {
            dtype::F32 => plan.shape.batch_scratch_bytes(plan.count),
            _ => halves::scratch_bytes(&plan.shape, plan.count),
        }
    }

    fn cost_ns(&self, inputs: &[Desc], output: &Desc) -> u64 {
        let plan = self.plan(inputs, output);
        let finish = elements(output) as f32 * activation::cost_ns(self.activation);
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
        let panels = self.panels::<f32>();
        let bias = self.bias.then(|| input(context, self.operands()));
        let addend = self.sum.then(|| input(context, self.num_inputs() - 1));
        let dense = |data, transposed, rows, columns| {
            if transposed { Matrix::dense(data, columns, rows) } else { Matrix::dense(data, rows, columns) }
        };
        let a = input(context, 0);
        let b = if panels.is_none() { input(context, 1) } else { &[] };
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
                b: match panels {
                    Some(panels) => OperandB::Panels(panels),
                    None => OperandB::Matrix(dense(&b[of_b..], transpose_b, k, n)),
                },
                finish,
            }
        };
        let scale = Scale { alpha: 1.0, beta: 0.0 };
        gemm::compute_batch(&GemmBatch { shape: plan.shape, count: plan.count, scale, operands: &operands }, c, context)
    }
}

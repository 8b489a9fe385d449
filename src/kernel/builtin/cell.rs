//! Recurrent cells, one step at a time: LSTM and GRU.
#![forbid(unsafe_code)]

use super::{LEAST_NS, elements, input};
use crate::base::{Desc, Result, desc::ANY_DIM, dtype};
use crate::kernel::vector::cell::{self, CellSizes, CellStep, GruGates, LstmGates};
use crate::kernel::vector::isa::Isa;
use crate::kernel::vector::site::{Matrix, MatrixMut};
use crate::kernel::{Kernel, KernelContext, Outputs, signature};

/// How the blocks of the weights are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateOrder {
    /// LSTM: input, output, forget, cell. GRU: update, reset, new.
    Onnx,
    /// LSTM: input, forget, cell, output. GRU: reset, update, new.
    Torch,
}

/// x [N, I], h [N, H], c [N, H], W [4 H, I], R [4 H, H], and on request the biases of W and of R, [4 H] each; returns h
/// and c.
#[derive(Clone, Copy, Debug)]
pub struct Lstm {
    pub order: GateOrder,
    pub bias: bool,
}

/// x [N, I], h [N, H], W [3 H, I], R [3 H, H], and on request the biases of W and of R, [3 H] each; returns h.
#[derive(Clone, Copy, Debug)]
pub struct Gru {
    pub order: GateOrder,
    pub bias: bool,
    pub linear_before_reset: bool,
}

/// Maximum number of inputs of a cell.
const MOST_INPUTS: usize = 7;

/// Checks x, `states` states, W, R and the biases, and returns their sizes. Allocates nothing unless it refuses.
fn check(inputs: &[Desc], gates: i64, states: usize) -> Result<CellSizes> {
    let matrix = |rows: i64, columns: i64| Desc::new(dtype::F32, &[rows, columns]);
    let mut patterns = [matrix(ANY_DIM, ANY_DIM); MOST_INPUTS];
    signature::check("input", &patterns[..1], &inputs[..1])?;
    let (rows, width) = (inputs[0].dims[0], inputs[0].dims[1]);
    patterns[1] = matrix(rows, ANY_DIM);
    signature::check("input", &patterns[..2], &inputs[..2])?;
    let hidden = inputs[1].dims[1];
    let (all, weights) = (hidden.saturating_mul(gates), 1 + states);
    patterns[2..weights].fill(matrix(rows, hidden));
    patterns[weights] = matrix(all, width);
    patterns[weights + 1] = matrix(all, hidden);
    patterns[weights + 2..].fill(Desc::new(dtype::F32, &[all]));
    signature::check("input", &patterns[..inputs.len().min(MOST_INPUTS)], inputs)?;
    let size = |dim: i64| dim as usize;
    Ok(CellSizes { rows: size(rows), inputs: size(width), hidden: size(hidden) })
}

/// The sizes of checked inputs.
fn sizes(inputs: &[Desc]) -> CellSizes {
    let [rows, inputs, hidden] = [inputs[0].dims[0], inputs[0].dims[1], inputs[1].dims[1]].map(|dim| dim as usize);
    CellSizes { rows, inputs, hidden }
}

/// The operands; the weights are inputs `weights` and the next, followed by the biases.
fn step<'a>(context: &'a KernelContext<'_>, gates: usize, weights: usize, bias: bool) -> CellStep<'a> {
    let descs = [0, 1].map(|i| *context.inputs()[i].desc());
    let sizes = sizes(&descs);
    let dense = |index: usize, rows: usize, columns: usize| Matrix::dense(input(context, index), rows, columns);
    let all = gates * sizes.hidden;
    CellStep {
        sizes,
        x: dense(0, sizes.rows, sizes.inputs),
        h: dense(1, sizes.rows, sizes.hidden),
        w: dense(weights, all, sizes.inputs),
        r: dense(weights + 1, all, sizes.hidden),
        bias: bias.then(|| [input(context, weights + 2), input(context, weights + 3)]),
    }
}

impl Kernel for Lstm {
    fn name(&self) -> &str {
        "lstm"
    }

    fn num_inputs(&self) -> usize {
        5 + 2 * self.bias as usize
    }

    fn num_outputs(&self) -> usize {
        2
    }

    fn infer(&self, inputs: &[Desc]) -> Result<Vec<Desc>> {
        check(inputs, 4, 2)?;
        Ok(vec![inputs[1], inputs[1]])
    }

    fn scratch_bytes(&self, inputs: &[Desc], _outputs: &[Desc]) -> usize {
        sizes(inputs).lstm_scratch_bytes()
    }

    fn cost_ns(&self, inputs: &[Desc], _outputs: &[Desc]) -> u64 {
        sizes(inputs).cost_ns(4).max(LEAST_NS)
    }

    fn is_pure(&self) -> bool {
        true
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        if elements(outputs.desc(0)) == 0 {
            return Ok(());
        }
        let step = step(context, 4, 3, self.bias);
        let CellSizes { rows, hidden, .. } = step.sizes;
        let gates = match self.order {
            GateOrder::Onnx => LstmGates { input: 0, output: 1, forget: 2, cell: 3 },
            GateOrder::Torch => LstmGates { input: 0, forget: 1, cell: 2, output: 3 },
        };
        let c = Matrix::dense(input(context, 2), rows, hidden);
        let [new_h, new_c] = outputs.split().map(|output| MatrixMut::output(output, rows, hidden));
        cell::lstm(Isa::best(), &step, gates, c, (new_h, new_c), context)
    }
}

impl Gru {
    fn gates(&self) -> GruGates {
        let linear_before_reset = self.linear_before_reset;
        match self.order {
            GateOrder::Onnx => GruGates { update: 0, reset: 1, new: 2, linear_before_reset },
            GateOrder::Torch => GruGates { reset: 0, update: 1, new: 2, linear_before_reset },
        }
    }
}

impl Kernel for Gru {
    fn name(&self) -> &str {
        "gru"
    }

    fn num_inputs(&self) -> usize {
        4 + 2 * self.bias as usize
    }

    fn num_outputs(&self) -> usize {
        1
    }

    fn infer(&self, inputs: &[Desc]) -> Result<Vec<Desc>> {
        check(inputs, 3, 1)?;
        Ok(vec![inputs[1]])
    }

    fn scratch_bytes(&self, inputs: &[Desc], _outputs: &[Desc]) -> usize {
        sizes(inputs).gru_scratch_bytes(&self.gates())
    }

    fn cost_ns(&self, inputs: &[Desc], _outputs: &[Desc]) -> u64 {
        sizes(inputs).cost_ns(3).max(LEAST_NS)
    }

    fn is_pure(&self) -> bool {
        true
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        if elements(outputs.desc(0)) == 0 {
            return Ok(());
        }
        let step = step(context, 3, 2, self.bias);
        let CellSizes { rows, hidden, .. } = step.sizes;
        cell::gru(Isa::best(), &step, self.gates(), MatrixMut::output(outputs.only(), rows, hidden), context)
    }
}

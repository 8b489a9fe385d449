//! Recurrent cells, one step at a time: LSTM and GRU.
#![forbid(unsafe_code)]

use super::{Builtin, BuiltinOperation, LEAST_NS, elements, input};
use crate::base::{Desc, Result};
use crate::kernel::vector::cell::{self, CellSizes, CellStep, GruGates, LstmGates};
use crate::kernel::vector::isa::Isa;
use crate::kernel::vector::site::{Matrix, MatrixMut};
use crate::kernel::{KernelContext, Outputs};
use crate::ops::weir_gate_order_value::{WEIR_GATES_ONNX, WEIR_GATES_TORCH};
use crate::ops::{Gru, Lstm, weir_gate_order_value};

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

impl BuiltinOperation for Builtin<Lstm> {
    fn scratch_bytes(&self, inputs: &[Desc], _output: &Desc) -> usize {
        sizes(inputs).lstm_scratch_bytes()
    }

    fn cost_ns(&self, inputs: &[Desc], _output: &Desc) -> u64 {
        sizes(inputs).cost_ns(4).max(LEAST_NS)
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        if elements(outputs.desc(0)) == 0 {
            return Ok(());
        }
        let step = step(context, 4, 3, self.bias);
        let CellSizes { rows, hidden, .. } = step.sizes;
        let c = Matrix::dense(input(context, 2), rows, hidden);
        let [new_h, new_c] = outputs.split().map(|output| MatrixMut::output(output, rows, hidden));
        cell::lstm(Isa::best(), &step, lstm_gates(self.order), c, (new_h, new_c), context)
    }
}

impl Builtin<Gru> {
    fn gates(&self) -> GruGates {
        gru_gates(self.order, self.linear_before_reset)
    }
}

/// The blocks of the gates in this order.
pub(super) fn lstm_gates(order: weir_gate_order_value) -> LstmGates {
    match order {
        WEIR_GATES_ONNX => LstmGates { input: 0, output: 1, forget: 2, cell: 3 },
        WEIR_GATES_TORCH => LstmGates { input: 0, forget: 1, cell: 2, output: 3 },
    }
}

pub(super) fn gru_gates(order: weir_gate_order_value, linear_before_reset: bool) -> GruGates {
    match order {
        WEIR_GATES_ONNX => GruGates { update: 0, reset: 1, new: 2, linear_before_reset },
        WEIR_GATES_TORCH => GruGates { reset: 0, update: 1, new: 2, linear_before_reset },
    }
}

impl BuiltinOperation for Builtin<Gru> {
    fn scratch_bytes(&self, inputs: &[Desc], _output: &Desc) -> usize {
        sizes(inputs).gru_scratch_bytes(&self.gates())
    }

    fn cost_ns(&self, inputs: &[Desc], _output: &Desc) -> u64 {
        sizes(inputs).cost_ns(3).max(LEAST_NS)
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

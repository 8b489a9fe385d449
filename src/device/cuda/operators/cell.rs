//! Recurrent cells.
#![forbid(unsafe_code)]

use crate::base::Result;
use crate::device::cuda::images::{GRU, GRU_LINEAR, LSTM};
use crate::device::cuda::plan::{Emit, Operator, Params, count, small, unimplemented};
use crate::memory::View;
use crate::ops::weir_gate_order_value::{WEIR_GATES_ONNX, WEIR_GATES_TORCH};
use crate::ops::{Gru, Lstm};

/// Shared memory that every device gives a block, in bytes.
const SHARED: usize = 48 << 10;

/// The operands of a step: x, h, perhaps c, then W, R and the biases.
fn cell(inputs: &[View], outputs: &[View], states: usize, bias: bool, gates: [u32; 4]) -> Result<(Params, u32, u32)> {
    let (x, h) = (inputs[0].desc(), inputs[1].desc());
    let biases = |which: usize| bias.then(|| &inputs[3 + states + which]);
    let (rows, hidden) = (small(&[h.dims[0] as usize])?, small(&[h.dims[1] as usize])?);
    let mut params = Params::new();
    params.view(&inputs[0]).view(&inputs[1]).optional((states > 1).then(|| &inputs[2]));
    params.view(&inputs[1 + states]).view(&inputs[2 + states]).optional(biases(0)).optional(biases(1));
    params.view(&outputs[0]).optional(outputs.get(1));
    params.word(rows).word(small(&[x.dims[1] as usize])?).word(hidden).word(0);
    gates.iter().for_each(|&gate| _ = params.word(gate));
    // Blocks of weights are numbered as well.
    small(&[4, hidden as usize])?;
    Ok((params, rows, hidden))
}

impl Operator for Lstm {
    fn launches(&self, inputs: &[View], outputs: &[View], emit: &mut Emit<'_>) -> Result<()> {
        let units = count(outputs[0].desc())? as usize;
        // The blocks of the input, output, forget and cell gates.
        let gates = match self.order {
            WEIR_GATES_ONNX => [0, 1, 2, 3],
            WEIR_GATES_TORCH => [0, 3, 1, 2],
        };
        let (params, ..) = cell(inputs, outputs, 2, self.bias, gates)?;
        params.launch(emit, &LSTM, (units.div_ceil(4), 1), 128)
    }
}

impl Operator for Gru {
    fn launches(&self, inputs: &[View], outputs: &[View], emit: &mut Emit<'_>) -> Result<()> {
        let units = count(outputs[0].desc())? as usize;
        if units == 0 {
            return Ok(());
        }
        // The blocks of the update, reset and new gates.
        let gates = match self.order {
            WEIR_GATES_ONNX => [0, 1, 2, 0],
            WEIR_GATES_TORCH => [1, 0, 2, 0],
        };
        let (params, rows, hidden) = cell(inputs, outputs, 1, self.bias, gates)?;
        if self.linear_before_reset {
            return params.launch(emit, &GRU_LINEAR, (units.div_ceil(4), 1), 128);
        }
        let shared = hidden as usize * size_of::<f32>();
        if shared > SHARED {
            return Err(unimplemented(format!(
                "a GRU on a CUDA device that resets before the product has at most {} units, got {hidden}; with \
                 WEIR_GRU_LINEAR_BEFORE_RESET it may have more",
                SHARED / size_of::<f32>()
            )));
        }
        let threads = (hidden * 32).min(1024);
        params.launch_with(emit, &GRU, (rows as usize, 1), threads, shared as u32)
    }
}

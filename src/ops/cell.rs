//! Recurrent cells: the order of gates, and what shapes fit together.
//!
//! Chapter: Recurrent cells.
#![forbid(unsafe_code)]

use super::check::value_of;
use super::signature;
use crate::base::{Desc, Result, desc::ANY_DIM, dtype};

/// How the blocks of the weights and biases of a cell are ordered.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_gate_order_value {
    /// As in ONNX. LSTM: input, output, forget, cell. GRU: update, reset, new.
    WEIR_GATES_ONNX = 0,
    /// As in PyTorch. LSTM: input, forget, cell, output. GRU: reset, update, new.
    WEIR_GATES_TORCH = 1,
}

/// An order of gates: one of enum weir_gate_order_value.
pub type weir_gate_order = u32;

/// Maximum number of inputs of a cell.
const MOST_INPUTS: usize = 7;

/// The order with this number.
pub(super) fn order(order: weir_gate_order) -> Result<weir_gate_order_value> {
    value_of!("gate_order", order, weir_gate_order_value { WEIR_GATES_ONNX, WEIR_GATES_TORCH })
}

/// Checks x, `states` states, W, R and the biases; gives the descriptor of a state. Allocates nothing unless it
/// refuses.
pub(super) fn check(inputs: &[Desc], gates: i64, states: usize) -> Result<Desc> {
    let matrix = |rows: i64, columns: i64| Desc::new(dtype::F32, &[rows, columns]);
    let mut patterns = [matrix(ANY_DIM, ANY_DIM); MOST_INPUTS];
    signature::check_fit("input", &patterns[..1], &inputs[..1])?;
    let (mut rows, width, weights) = (inputs[0].dims[0], inputs[0].dims[1], 1 + states);
    let mut hidden = ANY_DIM;
    for state in 1..weights {
        patterns[state] = matrix(rows, hidden);
        signature::check_fit("input", &patterns[..=state], &inputs[..=state])?;
        let [of_rows, of_hidden, ..] = inputs[state].dims;
        (rows, hidden) = (signature::known(rows, of_rows), signature::known(hidden, of_hidden));
    }
    let all = if hidden == ANY_DIM { ANY_DIM } else { hidden.saturating_mul(gates) };
    patterns[weights] = matrix(all, width);
    patterns[weights + 1] = matrix(all, hidden);
    patterns[weights + 2..].fill(Desc::new(dtype::F32, &[all]));
    signature::check_fit("input", &patterns[..inputs.len().min(MOST_INPUTS)], inputs)?;
    Ok(matrix(rows, signature::known(hidden, inputs[weights + 1].dims[1])))
}

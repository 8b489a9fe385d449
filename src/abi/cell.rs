//! Recurrent cells: descriptors.
//!
//! Chapter: Recurrent cells.
#![forbid(unsafe_code)]

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

/// Flags of weir_lstm_desc.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_lstm_flags {
    /// Two more inputs, the biases of W and of R, [4 H] each, are added to the gates.
    WEIR_LSTM_BIAS = 1,
}

/// One step of an LSTM in f32. With the gates i, o, f (sigmoid) and g (tanh), each of x * W^T + h * R^T of its block:
/// c' = f * c + i * g, h' = o * tanh(c').
///
/// Inputs: x[N, I], h[N, H], c[N, H], W[4 H, I], R[4 H, H] and, with WEIR_LSTM_BIAS, the biases. Outputs: h'[N, H],
/// c'[N, H].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_lstm_desc {
    /// sizeof(weir_lstm_desc) of the caller's header.
    pub struct_size: usize,
    /// OR of weir_lstm_flags.
    pub flags: u64,
    /// How the blocks of W, R and the biases are ordered.
    pub gate_order: weir_gate_order,
    /// Reserved, 0.
    pub reserved: u32,
}

/// Flags of weir_gru_desc.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_gru_flags {
    /// Two more inputs, the biases of W and of R, [3 H] each, are added to the gates.
    WEIR_GRU_BIAS = 1,
    /// The reset gate is applied to h * R^T and its bias, not to h: what ONNX calls linear_before_reset, and the only
    /// way of PyTorch.
    WEIR_GRU_LINEAR_BEFORE_RESET = 2,
}

/// One step of a GRU in f32. With the gates z (update) and r (reset), sigmoids of x * W^T + h * R^T of their blocks,
/// and n = tanh(x * W^T + (r * h) * R^T) of its block, or tanh(x * W^T + r * (h * R^T)) as flags say: h' = (1 - z) * n
/// + z * h.
///
/// Inputs: x[N, I], h[N, H], W[3 H, I], R[3 H, H] and, with WEIR_GRU_BIAS, the biases. Output: h'[N, H].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_gru_desc {
    /// sizeof(weir_gru_desc) of the caller's header.
    pub struct_size: usize,
    /// OR of weir_gru_flags.
    pub flags: u64,
    /// How the blocks of W, R and the biases are ordered.
    pub gate_order: weir_gate_order,
    /// Reserved, 0.
    pub reserved: u32,
}

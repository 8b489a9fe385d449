//! Creates a step of an LSTM, see weir_lstm_desc. Shapes are checked when it is enqueued or compiled. NULL desc = no
//! biases, gates in the order of ONNX.
//!
//! Errors: INVALID_ARGUMENT (unknown flags or gate order, reserved not 0).
//!
//! Chapter: Recurrent cells.
#![forbid(unsafe_code)]

use super::cell::{self, weir_gate_order, weir_gate_order_value};
use super::check::{flags, reserved};
use super::operator::{Operator, PackedShape, zeroed};
use crate::base::{Desc, Result};

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

/// x [N, I], h [N, H], c [N, H], W [4 H, I], R [4 H, H], and on request the biases of W and of R, [4 H] each; gives h
/// and c.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lstm {
    pub order: weir_gate_order_value,
    pub bias: bool,
}

impl Operator for Lstm {
    type Desc = weir_lstm_desc;
    const NAME: &'static str = "lstm";
    const DEFAULT: Option<weir_lstm_desc> = Some(zeroed());

    fn new(desc: &mut weir_lstm_desc, _: Option<PackedShape>) -> Result<Lstm> {
        let bias = flags(desc.flags, weir_lstm_flags::WEIR_LSTM_BIAS as u64, "desc->flags")? != 0;
        reserved(desc.reserved)?;
        Ok(Lstm { order: cell::order(desc.gate_order)?, bias })
    }

    fn num_inputs(&self) -> usize {
        if self.bias { 7 } else { 5 }
    }

    fn num_outputs(&self) -> usize {
        2
    }

    fn output(&self, inputs: &[Desc]) -> Result<Desc> {
        cell::check(inputs, 4, 2)
    }
}

//! Creates a step of a GRU, see weir_gru_desc. Shapes are checked when it is enqueued or compiled. NULL desc = no
//! biases, gates in the order of ONNX, reset before the product.
//!
//! Errors: INVALID_ARGUMENT (unknown flags or gate order, reserved not 0).
//!
//! Chapter: Recurrent cells.
#![forbid(unsafe_code)]

use super::cell::{self, weir_gate_order, weir_gate_order_value};
use super::check::{flags, reserved};
use super::operator::{Operator, PackedShape, zeroed};
use crate::base::{Desc, Result};

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

/// x [N, I], h [N, H], W [3 H, I], R [3 H, H], and on request the biases of W and of R, [3 H] each; gives h.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gru {
    pub order: weir_gate_order_value,
    pub bias: bool,
    pub linear_before_reset: bool,
}

impl Operator for Gru {
    type Desc = weir_gru_desc;
    const NAME: &'static str = "gru";
    const DEFAULT: Option<weir_gru_desc> = Some(zeroed());

    fn new(desc: &mut weir_gru_desc, _: Option<PackedShape>) -> Result<Gru> {
        use weir_gru_flags::*;
        let bits = flags(desc.flags, WEIR_GRU_BIAS as u64 | WEIR_GRU_LINEAR_BEFORE_RESET as u64, "desc->flags")?;
        reserved(desc.reserved)?;
        let has = |flag: weir_gru_flags| bits & flag as u64 != 0;
        let linear_before_reset = has(WEIR_GRU_LINEAR_BEFORE_RESET);
        Ok(Gru { order: cell::order(desc.gate_order)?, bias: has(WEIR_GRU_BIAS), linear_before_reset })
    }

    fn num_inputs(&self) -> usize {
        if self.bias { 6 } else { 4 }
    }

    fn output(&self, inputs: &[Desc]) -> Result<Desc> {
        cell::check(inputs, 3, 1)
    }
}

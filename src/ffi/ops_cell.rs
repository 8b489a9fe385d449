//! Recurrent cells.
//!
//! Chapter: Recurrent cells.

use super::argument::flags;
use super::attributes::create;
use super::guard::guard;
use super::ops_conv::one_of;
use super::versioned;
use crate::abi::*;
use crate::base::{Error, Result};
use crate::kernel::builtin::{self, GateOrder};
use crate::kernel::vector::isa::Isa;

/// Creates a step of an LSTM, see weir_lstm_desc. Shapes are checked when it is enqueued or compiled. NULL desc = no
/// biases, gates in the order of ONNX.
///
/// Errors: INVALID_ARGUMENT (NULL, struct_size, unknown flags or gate order, reserved not 0, WEIR_MAX_ISA).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_kernel_create_lstm(
    engine: *mut weir_engine,
    desc: *const weir_lstm_desc,
    options: *const weir_kernel_options,
    out_kernel: *mut *mut weir_kernel,
) -> weir_status {
    // SAFETY: the caller's pointers, as documented.
    guard("weir_kernel_create_lstm", || unsafe {
        create(engine, options, out_kernel, desc, |_| {
            let desc = versioned::read_or_zero(desc, "desc")?;
            let bias = weir_lstm_flags::WEIR_LSTM_BIAS as u64;
            let bias = flags(desc.flags, bias, "desc->flags")? & bias != 0;
            let order = order(desc.gate_order, desc.reserved)?;
            Ok(builtin::Lstm { order, bias })
        })
    })
}

/// Creates a step of a GRU, see weir_gru_desc. Shapes are checked when it is enqueued or compiled. NULL desc = no
/// biases, gates in the order of ONNX, reset before the product.
///
/// Errors: INVALID_ARGUMENT (NULL, struct_size, unknown flags or gate order, reserved not 0, WEIR_MAX_ISA).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_kernel_create_gru(
    engine: *mut weir_engine,
    desc: *const weir_gru_desc,
    options: *const weir_kernel_options,
    out_kernel: *mut *mut weir_kernel,
) -> weir_status {
    // SAFETY: the caller's pointers, as documented.
    guard("weir_kernel_create_gru", || unsafe {
        create(engine, options, out_kernel, desc, |_| {
            let desc = versioned::read_or_zero(desc, "desc")?;
            let (bias, linear) =
                (weir_gru_flags::WEIR_GRU_BIAS as u64, weir_gru_flags::WEIR_GRU_LINEAR_BEFORE_RESET as u64);
            let bits = flags(desc.flags, bias | linear, "desc->flags")?;
            let order = order(desc.gate_order, desc.reserved)?;
            Ok(builtin::Gru { order, bias: bits & bias != 0, linear_before_reset: bits & linear != 0 })
        })
    })
}

fn order(value: weir_gate_order, reserved: u32) -> Result<GateOrder> {
    if reserved != 0 {
        return Err(Error::invalid(format!("desc->reserved is {reserved}, expected 0")));
    }
    Isa::checked()?;
    Ok([GateOrder::Onnx, GateOrder::Torch][one_of("desc->gate_order", value, 0, 1)? as usize])
}

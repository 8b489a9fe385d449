//! Elementwise kernels: functions, selection, conversion between storage types, quantization.
//!
//! Chapter: Elements.

use super::argument::flags;
use super::attributes::create;
use super::guard::guard;
use super::versioned;
use crate::abi::*;
use crate::base::{Error, Result, dtype};
use crate::kernel::builtin;
use crate::kernel::vector::isa::Isa;
use crate::kernel::vector::{binary, eltwise};

/// Creates a unary elementwise function, see weir_eltwise_desc.
///
/// Errors: INVALID_ARGUMENT (NULL, struct_size, unknown op, a parameter that is NaN or that the function does not have,
/// alpha 0 for WEIR_ELTWISE_SOFTPLUS, reserved not 0, WEIR_MAX_ISA).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_kernel_create_eltwise(
    engine: *mut weir_engine,
    desc: *const weir_eltwise_desc,
    options: *const weir_kernel_options,
    out_kernel: *mut *mut weir_kernel,
) -> weir_status {
    // SAFETY: the caller's pointers, as documented.
    guard("weir_kernel_create_eltwise", || unsafe {
        create(engine, options, out_kernel, desc, |_| {
            let desc = versioned::read(desc, "desc")?;
            reserved(desc.reserved)?;
            Isa::checked()?;
            eltwise_of(&desc)
        })
    })
}

/// The function, and the number of its parameters.
fn eltwise_of(desc: &weir_eltwise_desc) -> Result<builtin::Eltwise> {
    use eltwise::Op;
    use weir_eltwise_op_value::*;
    const OPS: [(weir_eltwise_op_value, Op, usize); 21] = [
        (WEIR_ELTWISE_RELU, Op::Relu, 1),
        (WEIR_ELTWISE_ELU, Op::Elu, 1),
        (WEIR_ELTWISE_GELU_ERF, Op::GeluErf, 0),
        (WEIR_ELTWISE_GELU_TANH, Op::GeluTanh, 0),
        (WEIR_ELTWISE_TANH, Op::Tanh, 0),
        (WEIR_ELTWISE_SIGMOID, Op::Sigmoid, 0),
        (WEIR_ELTWISE_SWISH, Op::Swish, 1),
        (WEIR_ELTWISE_EXP, Op::Exp, 0),
        (WEIR_ELTWISE_LOG, Op::Log, 0),
        (WEIR_ELTWISE_SQRT, Op::Sqrt, 0),
        (WEIR_ELTWISE_SQUARE, Op::Square, 0),
        (WEIR_ELTWISE_ABS, Op::Abs, 0),
        (WEIR_ELTWISE_NEG, Op::Neg, 0),
        (WEIR_ELTWISE_CLIP, Op::Clip, 2),
        (WEIR_ELTWISE_LINEAR, Op::Linear, 2),
        (WEIR_ELTWISE_POW, Op::Pow, 2),
        (WEIR_ELTWISE_HARDSIGMOID, Op::HardSigmoid, 2),
        (WEIR_ELTWISE_HARDSWISH, Op::HardSwish, 2),
        (WEIR_ELTWISE_ROUND, Op::Round, 0),
        (WEIR_ELTWISE_MISH, Op::Mish, 0),
        (WEIR_ELTWISE_SOFTPLUS, Op::Softplus, 1),
    ];
    let row = OPS.iter().find(|row| row.0 as u32 == desc.op);
    let Some(&(_, op, parameters)) = row else { return Err(unknown("weir_eltwise_op_value", desc.op)) };
    for (i, (name, value)) in [("alpha", desc.alpha), ("beta", desc.beta)].into_iter().enumerate() {
        if value.is_nan() {
            return Err(Error::invalid(format!("desc->{name} is NaN, expected a number")));
        }
        if value != 0.0 && i >= parameters {
            return Err(Error::invalid(format!(
                "desc->{name} is {value}, but the function does not have it; expected 0"
            )));
        }
    }
    if op == Op::Softplus && desc.alpha == 0.0 {
        return Err(Error::invalid("desc->alpha is 0, but softplus divides by it"));
    }
    Ok(builtin::Eltwise { op, alpha: desc.alpha, beta: desc.beta })
}

/// Creates a binary elementwise function, see weir_binary_desc.
///
/// Errors: INVALID_ARGUMENT (NULL, struct_size, unknown op, reserved not 0, WEIR_MAX_ISA).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_kernel_create_binary(
    engine: *mut weir_engine,
    desc: *const weir_binary_desc,
    options: *const weir_kernel_options,
    out_kernel: *mut *mut weir_kernel,
) -> weir_status {
    use binary::Op;
    use weir_binary_op_value::*;
    const OPS: [(weir_binary_op_value, Op); 13] = [
        (WEIR_BINARY_ADD, Op::Add),
        (WEIR_BINARY_SUB, Op::Sub),
        (WEIR_BINARY_MUL, Op::Mul),
        (WEIR_BINARY_DIV, Op::Div),
        (WEIR_BINARY_MIN, Op::Min),
        (WEIR_BINARY_MAX, Op::Max),
        (WEIR_BINARY_POW, Op::Pow),
        (WEIR_BINARY_EQ, Op::Eq),
        (WEIR_BINARY_NE, Op::Ne),
        (WEIR_BINARY_LT, Op::Lt),
        (WEIR_BINARY_LE, Op::Le),
        (WEIR_BINARY_GT, Op::Gt),
        (WEIR_BINARY_GE, Op::Ge),
    ];
    // SAFETY: the caller's pointers, as documented.
    guard("weir_kernel_create_binary", || unsafe {
        create(engine, options, out_kernel, desc, |_| {
            let desc = versioned::read(desc, "desc")?;
            reserved(desc.reserved)?;
            Isa::checked()?;
            let row = OPS.iter().find(|row| row.0 as u32 == desc.op);
            let &(_, op) = row.ok_or_else(|| unknown("weir_binary_op_value", desc.op))?;
            Ok(builtin::Binary { op })
        })
    })
}

/// Creates an elementwise choice between two tensors, see weir_select_desc. desc may be NULL.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_kernel_create_select(
    engine: *mut weir_engine,
    desc: *const weir_select_desc,
    options: *const weir_kernel_options,
    out_kernel: *mut *mut weir_kernel,
) -> weir_status {
    // SAFETY: the caller's pointers, as documented.
    guard("weir_kernel_create_select", || unsafe {
        create(engine, options, out_kernel, desc, |_| {
            versioned::read_opt(desc, "desc")?;
            Ok(builtin::Select)
        })
    })
}

/// Creates a conversion to another storage type, see weir_convert_desc.
///
/// Errors: INVALID_ARGUMENT (NULL, struct_size, dtype, scale or shift that is NaN, reserved not 0, WEIR_MAX_ISA).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_kernel_create_convert(
    engine: *mut weir_engine,
    desc: *const weir_convert_desc,
    options: *const weir_kernel_options,
    out_kernel: *mut *mut weir_kernel,
) -> weir_status {
    // SAFETY: the caller's pointers, as documented.
    guard("weir_kernel_create_convert", || unsafe {
        create(engine, options, out_kernel, desc, |_| {
            let desc = versioned::read(desc, "desc")?;
            reserved(desc.reserved)?;
            dtype::size(desc.dtype).map_err(|error| error.within("desc"))?;
            if desc.dtype == dtype::S64 {
                return Err(Error::invalid(
                    "desc->dtype is s64 (8), which is for keys and indices: nothing is converted to it",
                ));
            }
            for (name, value) in [("scale", desc.scale), ("shift", desc.shift)] {
                if value.is_nan() {
                    return Err(Error::invalid(format!("desc->{name} is NaN, expected a number")));
                }
            }
            Isa::checked()?;
            let scale = if desc.scale == 0.0 { 1.0 } else { desc.scale };
            Ok(builtin::Convert { dtype: desc.dtype, scale, shift: desc.shift })
        })
    })
}

/// Creates a quantization, see weir_quantize_desc.
///
/// Errors: INVALID_ARGUMENT (NULL, struct_size, unknown flags, dtype, WEIR_MAX_ISA); OUT_OF_RANGE (axis outside -8..7).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_kernel_create_quantize(
    engine: *mut weir_engine,
    desc: *const weir_quantize_desc,
    options: *const weir_kernel_options,
    out_kernel: *mut *mut weir_kernel,
) -> weir_status {
    // SAFETY: the caller's pointers, as documented.
    guard("weir_kernel_create_quantize", || unsafe {
        create(engine, options, out_kernel, desc, |_| {
            let desc = versioned::read(desc, "desc")?;
            let taken = ([dtype::S8, dtype::U8, dtype::S32], "s8, u8 or s32");
            quantization(builtin::QuantizeDirection::Quantize, desc.flags, desc.dtype, desc.axis, taken)
        })
    })
}

/// Creates a dequantization, see weir_dequantize_desc.
///
/// Errors: INVALID_ARGUMENT (NULL, struct_size, unknown flags, dtype, WEIR_MAX_ISA); OUT_OF_RANGE (axis outside -8..7).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_kernel_create_dequantize(
    engine: *mut weir_engine,
    desc: *const weir_dequantize_desc,
    options: *const weir_kernel_options,
    out_kernel: *mut *mut weir_kernel,
) -> weir_status {
    // SAFETY: the caller's pointers, as documented.
    guard("weir_kernel_create_dequantize", || unsafe {
        create(engine, options, out_kernel, desc, |_| {
            let desc = versioned::read(desc, "desc")?;
            let to = if desc.dtype == dtype::ANY { dtype::F32 } else { desc.dtype };
            let taken = ([dtype::F32, dtype::BF16, dtype::F16], "f32, bf16 or f16");
            quantization(builtin::QuantizeDirection::Dequantize, desc.flags, to, desc.axis, taken)
        })
    })
}

fn quantization(
    way: builtin::QuantizeDirection,
    bits: u64,
    dtype: u32,
    axis: i32,
    (taken, text): ([u32; 3], &str),
) -> Result<builtin::Quantization> {
    let zero_point = weir_quantize_flags::WEIR_QUANTIZE_ZERO_POINT as u64;
    let bits = flags(bits, zero_point, "desc->flags")?;
    if !taken.contains(&dtype) {
        return Err(Error::invalid(format!("desc->dtype is {} ({dtype}), expected {text}", dtype::name(dtype))));
    }
    let max = weir_limit::WEIR_MAX_RANK as i32;
    if !(-max..max).contains(&axis) {
        return Err(Error::out_of_range(format!("desc->axis is {axis}, expected {} to {}", -max, max - 1)));
    }
    Isa::checked()?;
    Ok(builtin::Quantization { way, dtype, zero_point: bits & zero_point != 0, axis })
}

fn reserved(value: u32) -> Result<()> {
    match value {
        0 => Ok(()),
        other => Err(Error::invalid(format!("desc->reserved is {other}, expected 0"))),
    }
}

fn unknown(kind: &str, op: u32) -> Error {
    Error::invalid(format!("desc->op is {op}, which is none of {kind}"))
}

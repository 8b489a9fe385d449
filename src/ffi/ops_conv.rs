//! Convolution and pooling.
//!
//! Chapter: Convolution.

use super::argument::flags;
use super::attributes::create;
use super::guard::guard;
use super::versioned;
use crate::abi::*;
use crate::base::{Error, Result};
use crate::kernel::builtin::{self, Windows, check_step};
use crate::kernel::vector::activation::Activation;
use crate::kernel::vector::isa::Isa;
use crate::kernel::vector::window::EdgeMode;

/// Creates a convolution, see weir_conv_desc. Shapes are checked when it is enqueued or compiled. NULL desc = no bias,
/// no padding, strides of 1.
///
/// Errors: INVALID_ARGUMENT (NULL, struct_size, unknown flags, layouts, padding or activation, WEIR_MAX_ISA);
/// OUT_OF_RANGE (negative or enormous numbers).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_kernel_create_conv(
    engine: *mut weir_engine,
    desc: *const weir_conv_desc,
    options: *const weir_kernel_options,
    out_kernel: *mut *mut weir_kernel,
) -> weir_status {
    // SAFETY: the caller's pointers, as documented.
    guard("weir_kernel_create_conv", || unsafe {
        create(engine, options, out_kernel, desc, |_| {
            let desc = versioned::read_or_zero(desc, "desc")?;
            flags(desc.flags, weir_conv_flags::WEIR_CONV_BIAS as u64, "desc->flags")?;
            layout(desc.data_layout)?;
            one_of("desc->weights_layout", desc.weights_layout, 0, 0)?;
            one_of("desc->padding", desc.padding, 0, 1)?;
            let activation = activation("desc->activation", desc.activation)?;
            check_step("desc->groups", desc.groups)?;
            let windows = Windows {
                strides: desc.strides,
                dilations: desc.dilations,
                begin: desc.padding_begin,
                end: desc.padding_end,
                edge: if desc.padding == 0 { EdgeMode::Zero } else { EdgeMode::Reflect },
            };
            windows.check()?;
            Isa::checked()?;
            let bias = desc.flags & weir_conv_flags::WEIR_CONV_BIAS as u64 != 0;
            Ok(builtin::Conv { windows, groups: desc.groups.max(1), bias, activation })
        })
    })
}

/// Creates a pooling, see weir_pooling_desc. Shapes are checked when it is enqueued or compiled.
///
/// Errors: INVALID_ARGUMENT (NULL, struct_size, unknown flags, op or layout, windows beside WEIR_POOLING_GLOBAL);
/// OUT_OF_RANGE (negative or enormous numbers, a window without taps, padding as long as the window).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_kernel_create_pooling(
    engine: *mut weir_engine,
    desc: *const weir_pooling_desc,
    options: *const weir_kernel_options,
    out_kernel: *mut *mut weir_kernel,
) -> weir_status {
    // SAFETY: the caller's pointers, as documented.
    guard("weir_kernel_create_pooling", || unsafe {
        create(engine, options, out_kernel, desc, |_| {
            let desc = versioned::read(desc, "desc")?;
            let global = weir_pooling_flags::WEIR_POOLING_GLOBAL as u64;
            let global = flags(desc.flags, global, "desc->flags")? == global;
            layout(desc.data_layout)?;
            let op = [builtin::PoolingOp::Max, builtin::PoolingOp::Average, builtin::PoolingOp::AverageInside];
            let op = op[one_of("desc->op", desc.op, 1, 3)? as usize - 1];
            let windows = Windows {
                strides: desc.strides,
                dilations: desc.dilations,
                begin: desc.padding_begin,
                end: desc.padding_end,
                edge: EdgeMode::Zero,
            };
            windows.check()?;
            let kernel = if global { None } else { Some(desc.kernel) };
            match kernel {
                None if desc.kernel != [0; 2] || !windows.is_default() => {
                    let what = "desc sets kernel, strides, dilations or padding, and WEIR_POOLING_GLOBAL";
                    return Err(Error::invalid(what));
                }
                None => {}
                Some(kernel) => windows.check_kernel(kernel)?,
            }
            Ok(builtin::Pooling { op, kernel, windows })
        })
    })
}

fn layout(value: weir_data_layout) -> Result<()> {
    one_of("desc->data_layout", value, 0, 0).map(|_| ())
}

/// Refuses a number that is no value of an enum.
pub(super) fn one_of(name: &str, value: u32, first: u32, last: u32) -> Result<u32> {
    if (first..=last).contains(&value) {
        return Ok(value);
    }
    let expected = if first == last { first.to_string() } else { format!("{first} to {last}") };
    Err(Error::invalid(format!("{name} is {value}, expected {expected}")))
}

/// An activation from C.
pub(super) fn activation(name: &str, value: weir_activation) -> Result<Activation> {
    use Activation::*;
    Ok([None, Relu, GeluErf, GeluTanh, Sigmoid, Tanh][one_of(name, value, 0, 5)? as usize])
}

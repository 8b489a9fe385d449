//! Reductions.
//!
//! Chapter: Rows and columns.

use super::argument::flags;
use super::attributes::create;
use super::guard::guard;
use super::versioned;
use crate::abi::*;
use crate::base::desc::MAX_RANK;
use crate::base::{Error, Result};
use crate::kernel::builtin;
use crate::kernel::vector::isa::Isa;

/// The reduction with this number.
fn operation(number: weir_reduce_op) -> Result<weir_reduce_op_value> {
    use weir_reduce_op_value::*;
    let all = [
        WEIR_REDUCE_SUM,
        WEIR_REDUCE_MEAN,
        WEIR_REDUCE_MIN,
        WEIR_REDUCE_MAX,
        WEIR_REDUCE_MUL,
        WEIR_REDUCE_NORM_MAX,
        WEIR_REDUCE_NORM_SUM,
        WEIR_REDUCE_NORM_POWER_MAX,
        WEIR_REDUCE_NORM_POWER_SUM,
        WEIR_REDUCE_ARGMAX,
        WEIR_REDUCE_ARGMIN,
    ];
    all.into_iter()
        .find(|&op| op as u32 == number)
        .ok_or_else(|| Error::invalid(format!("desc->op is {number}, which is no weir_reduce_op")))
}

/// Creates a reduction, see weir_reduce_desc.
///
/// Errors: INVALID_ARGUMENT (NULL, struct_size, unknown flags, unknown op, p of a norm other than 1 and 2, eps below 0
/// or a NaN, p or eps of a reduction other than a norm, WEIR_MAX_ISA); OUT_OF_RANGE (num_axes above WEIR_MAX_RANK, an
/// axis outside -8..7).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_kernel_create_reduce(
    engine: *mut weir_engine,
    desc: *const weir_reduce_desc,
    options: *const weir_kernel_options,
    out_kernel: *mut *mut weir_kernel,
) -> weir_status {
    // SAFETY: the caller's pointers, as documented.
    guard("weir_kernel_create_reduce", || unsafe {
        create(engine, options, out_kernel, desc, |_| {
            use weir_reduce_op_value::*;
            let desc = versioned::read(desc, "desc")?;
            flags(desc.flags, weir_reduce_flags::WEIR_REDUCE_KEEP_DIMS as u64, "desc->flags")?;
            let op = operation(desc.op)?;
            let (num_axes, most) = (desc.num_axes as usize, MAX_RANK as i32);
            if num_axes > MAX_RANK {
                return Err(Error::out_of_range(format!("desc->num_axes is {num_axes}, expected 0 to {MAX_RANK}")));
            }
            if let Some(i) = desc.axes[..num_axes].iter().position(|axis| !(-most..most).contains(axis)) {
                let (axis, last) = (desc.axes[i], most - 1);
                return Err(Error::out_of_range(format!("desc->axes[{i}] is {axis}, expected {} to {last}", -most)));
            }
            let is_norm = matches!(
                op,
                WEIR_REDUCE_NORM_MAX | WEIR_REDUCE_NORM_SUM | WEIR_REDUCE_NORM_POWER_MAX | WEIR_REDUCE_NORM_POWER_SUM
            );
            let powers: &[f32] = if is_norm { &[1.0, 2.0] } else { &[0.0] };
            if !powers.contains(&desc.p) {
                let expected = if is_norm { "1 or 2" } else { "0, as the operation is no norm" };
                return Err(Error::invalid(format!("desc->p is {}, expected {expected}", desc.p)));
            }
            if !(if is_norm { desc.eps >= 0.0 } else { desc.eps == 0.0 }) {
                let expected = if is_norm { "0 or more" } else { "0, as the operation is no norm" };
                return Err(Error::invalid(format!("desc->eps is {}, expected {expected}", desc.eps)));
            }
            Ok(builtin::Reduce {
                op,
                axes: desc.axes,
                num_axes,
                keep_dims: desc.flags != 0,
                squares: desc.p == 2.0,
                eps: desc.eps,
                isa: Isa::checked()?,
            })
        })
    })
}

//! Normalisations.
//!
//! Chapter: Rows and columns.

use super::argument::flags;
use super::attributes::{axis, create};
use super::guard::guard;
use super::versioned;
use crate::abi::*;
use crate::base::Error;
use crate::kernel::builtin;
use crate::kernel::vector::isa::Isa;

/// Creates a normalisation, see weir_norm_desc.
///
/// Errors: INVALID_ARGUMENT (NULL, struct_size, unknown flags, unknown op, groups 0 of a group normalisation or not 0
/// of another one, epsilon below 0 or a NaN, WEIR_MAX_ISA); OUT_OF_RANGE (axis outside -8..7).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_kernel_create_norm(
    engine: *mut weir_engine,
    desc: *const weir_norm_desc,
    options: *const weir_kernel_options,
    out_kernel: *mut *mut weir_kernel,
) -> weir_status {
    // SAFETY: the caller's pointers, as documented.
    guard("weir_kernel_create_norm", || unsafe {
        create(engine, options, out_kernel, desc, |_| {
            use weir_norm_flags::*;
            use weir_norm_op_value::*;
            let desc = versioned::read(desc, "desc")?;
            flags(desc.flags, WEIR_NORM_SCALE as u64 | WEIR_NORM_SHIFT as u64, "desc->flags")?;
            let op = [WEIR_NORM_LAYER, WEIR_NORM_RMS, WEIR_NORM_BATCH, WEIR_NORM_GROUP]
                .into_iter()
                .find(|&op| op as u32 == desc.op)
                .ok_or_else(|| Error::invalid(format!("desc->op is {}, which is no weir_norm_op", desc.op)))?;
            let axis = axis(desc.axis, 0)?;
            if (op == WEIR_NORM_GROUP) != (desc.groups > 0) {
                let expected = if desc.groups == 0 { "1 or more" } else { "0, as the operation has no groups" };
                return Err(Error::invalid(format!("desc->groups is {}, expected {expected}", desc.groups)));
            }
            if desc.epsilon.is_nan() || desc.epsilon < 0.0 {
                return Err(Error::invalid(format!("desc->epsilon is {}, expected 0 or more", desc.epsilon)));
            }
            Ok(builtin::Norm {
                op,
                axis,
                groups: desc.groups as usize,
                epsilon: desc.epsilon,
                scale: desc.flags & WEIR_NORM_SCALE as u64 != 0,
                shift: desc.flags & WEIR_NORM_SHIFT as u64 != 0,
                isa: Isa::checked()?,
            })
        })
    })
}

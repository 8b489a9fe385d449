//! Data movement kernels, which compute nothing.
//!
//! Chapter: Moving elements.

use super::attributes::{axis, create};
use super::guard::guard;
use super::versioned;
use crate::abi::*;
use crate::base::desc::MAX_RANK;
use crate::base::{Error, Result};
use crate::kernel::builtin::movement;

/// Refuses a rank beyond the limit, and a reserved member that is not 0.
fn rank(rank: u32, reserved: u32) -> Result<usize> {
    if reserved != 0 {
        return Err(Error::invalid(format!("desc->reserved is {reserved}, expected 0")));
    }
    match rank as usize {
        rank if rank <= MAX_RANK => Ok(rank),
        rank => Err(Error::out_of_range(format!("desc->rank is {rank}, expected 0 to {MAX_RANK}"))),
    }
}

/// Creates a transposition, see weir_transpose_desc. NULL desc = the dimensions in reverse order.
///
/// Errors: INVALID_ARGUMENT (NULL, struct_size, reserved not 0, a dimension named twice); OUT_OF_RANGE (rank above
/// WEIR_MAX_RANK, a dimension that does not exist).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_kernel_create_transpose(
    engine: *mut weir_engine,
    desc: *const weir_transpose_desc,
    options: *const weir_kernel_options,
    out_kernel: *mut *mut weir_kernel,
) -> weir_status {
    // SAFETY: the caller's pointers, as documented.
    guard("weir_kernel_create_transpose", || unsafe {
        create(engine, options, out_kernel, desc, |_| {
            let kernel = match versioned::read_opt(desc, "desc")? {
                None => movement::Transpose::new(&[])?,
                Some(desc) => movement::Transpose::new(&desc.permutation[..rank(desc.rank, desc.reserved)?])?,
            };
            Ok(kernel)
        })
    })
}

/// Creates a concatenation, see weir_concat_desc.
///
/// Errors: OUT_OF_RANGE (num_inputs, axis outside -8..7).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_kernel_create_concat(
    engine: *mut weir_engine,
    desc: *const weir_concat_desc,
    options: *const weir_kernel_options,
    out_kernel: *mut *mut weir_kernel,
) -> weir_status {
    // SAFETY: the caller's pointers, as documented.
    guard("weir_kernel_create_concat", || unsafe {
        create(engine, options, out_kernel, desc, |_| {
            let desc = versioned::read(desc, "desc")?;
            let most = weir_limit::WEIR_MAX_ARGS as u32;
            if !(1..=most).contains(&desc.num_inputs) {
                return Err(Error::out_of_range(format!(
                    "desc->num_inputs is {}, expected 1 to {most}",
                    desc.num_inputs
                )));
            }
            let axis = axis(desc.axis, 0)?;
            Ok(movement::Concat { axis, inputs: desc.num_inputs as usize })
        })
    })
}

/// Creates a slice, see weir_slice_desc.
///
/// Errors: OUT_OF_RANGE (rank above WEIR_MAX_RANK).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_kernel_create_slice(
    engine: *mut weir_engine,
    desc: *const weir_slice_desc,
    options: *const weir_kernel_options,
    out_kernel: *mut *mut weir_kernel,
) -> weir_status {
    // SAFETY: the caller's pointers, as documented.
    guard("weir_kernel_create_slice", || unsafe {
        create(engine, options, out_kernel, desc, |_| {
            let weir_slice_desc { begin, end, step, rank: r, reserved, .. } = versioned::read(desc, "desc")?;
            Ok(movement::Slice { rank: rank(r, reserved)?, begin, end, step })
        })
    })
}

/// Creates a padding, see weir_pad_desc.
///
/// Errors: INVALID_ARGUMENT (NULL, struct_size, unknown mode, a margin below 0); OUT_OF_RANGE (rank above
/// WEIR_MAX_RANK).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_kernel_create_pad(
    engine: *mut weir_engine,
    desc: *const weir_pad_desc,
    options: *const weir_kernel_options,
    out_kernel: *mut *mut weir_kernel,
) -> weir_status {
    // SAFETY: the caller's pointers, as documented.
    guard("weir_kernel_create_pad", || unsafe {
        create(engine, options, out_kernel, desc, |_| {
            use weir_pad_mode_value::*;
            let weir_pad_desc { before, after, value, rank: r, mode, .. } = versioned::read(desc, "desc")?;
            let rank = rank(r, 0)?;
            let mode = match mode {
                mode if mode == WEIR_PAD_CONSTANT as u32 => movement::PadMode::Constant(value),
                mode if mode == WEIR_PAD_REFLECT as u32 => movement::PadMode::Reflect,
                mode if mode == WEIR_PAD_EDGE as u32 => movement::PadMode::Edge,
                mode => return Err(Error::invalid(format!("desc->mode is {mode}, which is no weir_pad_mode"))),
            };
            for (name, margin) in [("before", &before), ("after", &after)] {
                if let Some(i) = margin[..rank].iter().position(|&elements| elements < 0) {
                    return Err(Error::invalid(format!("desc->{name}[{i}] is {}, expected 0 or more", margin[i])));
                }
            }
            Ok(movement::Pad { rank, before, after, mode })
        })
    })
}

/// Creates a reshape, see weir_reshape_desc.
///
/// Errors: INVALID_ARGUMENT (NULL, struct_size, reserved not 0, a dimension below -1, two that are -1); OUT_OF_RANGE
/// (rank above WEIR_MAX_RANK).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_kernel_create_reshape(
    engine: *mut weir_engine,
    desc: *const weir_reshape_desc,
    options: *const weir_kernel_options,
    out_kernel: *mut *mut weir_kernel,
) -> weir_status {
    // SAFETY: the caller's pointers, as documented.
    guard("weir_kernel_create_reshape", || unsafe {
        create(engine, options, out_kernel, desc, |_| {
            let desc = versioned::read(desc, "desc")?;
            movement::Reshape::new(&desc.dims[..rank(desc.rank, desc.reserved)?])
        })
    })
}

/// Creates a gather, see weir_gather_desc. NULL desc = axis -1.
///
/// Errors: OUT_OF_RANGE (axis outside -8..7).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_kernel_create_gather(
    engine: *mut weir_engine,
    desc: *const weir_gather_desc,
    options: *const weir_kernel_options,
    out_kernel: *mut *mut weir_kernel,
) -> weir_status {
    let last = weir_gather_desc { struct_size: size_of::<weir_gather_desc>(), axis: -1, reserved: 0 };
    let desc = if desc.is_null() { &raw const last } else { desc };
    // SAFETY: the caller's pointers, as documented.
    guard("weir_kernel_create_gather", || unsafe {
        create(engine, options, out_kernel, desc, |_| {
            let desc = versioned::read(desc, "desc")?;
            let axis = axis(desc.axis, desc.reserved)?;
            Ok(movement::Gather { axis })
        })
    })
}

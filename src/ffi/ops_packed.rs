//! Packed weights, and int8 matrix products.
//!
//! Chapter: Products.

use super::argument::{flags, out_ptr, out_value};
use super::attributes::create;
use super::guard::{guard, guard_release};
use super::{handle, versioned};
use crate::abi::*;
use crate::base::{Error, Result, dtype};
use crate::engine::{Engine, PackedWeights};
use crate::kernel::builtin::{MatmulInt8, Packed};
use crate::kernel::vector::int8::Store;
use crate::kernel::vector::isa::Isa;
use std::sync::Arc;

/// Packs the weights of matrix products: a tensor [K, N] of f32, f16, bf16 or s8, as desc says; NULL desc = not
/// transposed. Any number of kernels, on any pools and threads, take the result in place of the input B. The packed
/// layout depends only on the size, the type and the instruction set. The tensor is read before this returns, and not
/// needed any more.
///
/// Thread safety: any thread, while nothing writes the tensor. Blocking: never, but it takes the time to copy the
/// tensor. Ownership: kernels hold references of their own. Errors: INVALID_ARGUMENT (NULL, struct_size, unknown flags,
/// another type or rank, a tensor of another engine's device, WEIR_MAX_ISA); FAILED_PRECONDITION (a dynamic tensor);
/// OUT_OF_RANGE; RESOURCE_EXHAUSTED.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_packed_weights_create(
    engine: *mut weir_engine,
    tensor: *const weir_tensor,
    desc: *const weir_packed_weights_desc,
    out_weights: *mut *mut weir_packed_weights,
) -> weir_status {
    guard("weir_packed_weights_create", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe {
            let out = out_ptr(out_weights, "out_weights")?;
            let (engine, tensor) = (handle::share(engine, "engine")?, handle::borrow(tensor, "tensor")?);
            let desc = versioned::read_or_zero(desc, "desc")?;
            let transposed = weir_packed_weights_flags::WEIR_PACKED_WEIGHTS_TRANSPOSED as u64;
            let transposed = flags(desc.flags, transposed, "desc->flags")? & transposed != 0;
            if tensor.open().is_some() {
                return Err(Error::precondition("tensor is dynamic: its shape may change"));
            }
            handle::into_c(PackedWeights::create(engine, tensor, transposed)?, out)
        }
    })
}

/// Takes one more reference.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_packed_weights_retain(weights: *mut weir_packed_weights) -> weir_status {
    // SAFETY: the caller's handle, as documented.
    guard("weir_packed_weights_retain", || unsafe { handle::retain(weights, "weights") })
}

/// Gives up one reference. NULL does nothing. Kernels made with the weights keep them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_packed_weights_release(weights: *mut weir_packed_weights) {
    // SAFETY: the caller's handle, as documented.
    guard_release("weir_packed_weights_release", || unsafe { handle::release(weights) });
}

/// Size of the packed weights in bytes.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_packed_weights_get_size(
    weights: *const weir_packed_weights,
    out_bytes: *mut usize,
) -> weir_status {
    guard("weir_packed_weights_get_size", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, weights) = unsafe { (out_value(out_bytes, "out_bytes")?, handle::borrow(weights, "weights")?) };
        out.set(weights.packed().bytes());
        Ok(())
    })
}

/// Creates an int8 matrix product, see weir_matmul_int8_desc. Shapes are checked when it is enqueued or compiled. NULL
/// desc = 32-bit sums, no zero points.
///
/// Ownership: desc and options are copied, and the kernel keeps desc->weights alive. Errors: INVALID_ARGUMENT (NULL,
/// struct_size, unknown flags or type, reserved not 0, a scale that is not finite, weights that are not s8, are to be
/// transposed or are of another engine's device, WEIR_MAX_ISA); OUT_OF_RANGE (zero points).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_kernel_create_matmul_int8(
    engine: *mut weir_engine,
    desc: *const weir_matmul_int8_desc,
    options: *const weir_kernel_options,
    out_kernel: *mut *mut weir_kernel,
) -> weir_status {
    // SAFETY: the caller's pointers, as documented.
    guard("weir_kernel_create_matmul_int8", || unsafe {
        create(engine, options, out_kernel, desc, |engine| {
            use weir_matmul_int8_flags::*;
            let desc = versioned::read_or_zero(desc, "desc")?;
            let known = WEIR_MATMUL_INT8_TRANSPOSE_A as u64
                | WEIR_MATMUL_INT8_TRANSPOSE_B as u64
                | WEIR_MATMUL_INT8_BIAS as u64
                | WEIR_MATMUL_INT8_SCALES as u64;
            let bits = flags(desc.flags, known, "desc->flags")?;
            let has = |flag: weir_matmul_int8_flags| bits & flag as u64 != 0;
            if desc.reserved != 0 {
                return Err(Error::invalid(format!("desc->reserved is {}, expected 0", desc.reserved)));
            }
            if !desc.scale.is_finite() {
                return Err(Error::invalid(format!("desc->scale is {}, expected a finite number", desc.scale)));
            }
            for (name, value, least, most) in [("zero_a", desc.zero_a, -128, 255), ("zero_b", desc.zero_b, -128, 127)] {
                if !(least..=most).contains(&value) {
                    let what = format!("desc->{name} is {value}, expected {least} to {most}");
                    return Err(Error::out_of_range(what));
                }
            }
            let store = match desc.dtype {
                dtype::ANY | dtype::S32 => Store::S32,
                dtype::F32 => Store::F32,
                dtype::S8 => Store::S8,
                dtype::U8 => Store::U8,
                other => {
                    let what = format!("desc->dtype is {other}, expected the number of s32, f32, s8 or u8");
                    return Err(Error::invalid(what));
                }
            };
            if !desc.weights.is_null() && has(WEIR_MATMUL_INT8_TRANSPOSE_B) {
                return Err(Error::invalid("desc->weights are packed, and WEIR_MATMUL_INT8_TRANSPOSE_B is set"));
            }
            Isa::checked()?;
            Ok(MatmulInt8 {
                transpose_a: has(WEIR_MATMUL_INT8_TRANSPOSE_A),
                transpose_b: has(WEIR_MATMUL_INT8_TRANSPOSE_B),
                bias: has(WEIR_MATMUL_INT8_BIAS),
                scales: has(WEIR_MATMUL_INT8_SCALES),
                scale: if desc.scale == 0.0 { 1.0 } else { desc.scale },
                zero_a: desc.zero_a,
                zero_b: desc.zero_b,
                zero_c: desc.zero_c,
                store,
                weights: packed(desc.weights, engine, &[dtype::S8])?,
            })
        })
    })
}

/// The packed weights of a descriptor: none, or weights of one of these types and of the engine's device.
///
/// # Safety
/// The handle is as the C documentation demands.
pub(super) unsafe fn packed(
    weights: *const weir_packed_weights,
    engine: &Engine,
    wanted: &[u32],
) -> Result<Option<Arc<Packed>>> {
    // SAFETY: as demanded of the caller.
    let Some(weights) = (unsafe { handle::borrow_opt(weights, "desc->weights") })? else { return Ok(None) };
    if !weights.engine().is_same_device(engine) {
        let (has, expected) = (weights.engine().label(), engine.label());
        return Err(Error::invalid(format!("desc->weights is of engine {has}, expected {expected}")));
    }
    let packed = weights.packed();
    if !wanted.contains(&packed.dtype()) {
        let names: Vec<_> = wanted.iter().map(|&wanted| dtype::name(wanted)).collect();
        let (has, expected) = (dtype::name(packed.dtype()), names.join(" or "));
        return Err(Error::invalid(format!("desc->weights was packed from {has}, expected {expected}")));
    }
    Ok(Some(Arc::clone(packed)))
}

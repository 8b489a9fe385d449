//! Shapes known only at run time: tensors that take them, and outputs that kernels allocate.
//!
//! Chapter: Shapes that a run decides.

use super::argument::{array, out_ptr};
use super::guard::guard;
use super::tensor::read_desc;
use super::{context, handle, task};
use crate::abi::*;
use crate::base::Error;
use crate::base::desc::MAX_RANK;
use crate::engine::Tensor;
use std::any::Any;
use std::ffi::c_void;
use std::sync::Arc;

/// Creates a tensor whose shape is decided by the run that writes it: it is passed to runs as an output whose shape is
/// open. At least one dimension of `desc` is WEIR_DIM_DYNAMIC; a run whose output shape does not match `desc` fails.
/// Until a run has succeeded the open dimensions are 0. Its memory is the engine's and grows; weir_tensor_get_desc,
/// weir_tensor_get_data and weir_tensor_get_size describe the last run's output, and addresses obtained before are no
/// longer valid. It can be an input whose shape is open too.
///
/// Thread safety: any thread; reading it while a run writes it is a race. Blocking: never. Ownership: the caller owns
/// one reference to *out_tensor; desc is copied. Errors: INVALID_ARGUMENT (NULL, unknown dtype, rank, no open
/// dimension).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_tensor_create_dynamic(
    engine: *mut weir_engine,
    desc: *const weir_tensor_desc,
    out_tensor: *mut *mut weir_tensor,
) -> weir_status {
    guard("weir_tensor_create_dynamic", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, engine, desc) =
            unsafe { (out_ptr(out_tensor, "out_tensor")?, handle::share(engine, "engine")?, read_desc(desc, "desc")?) };
        handle::into_c(Tensor::create_open(engine, desc)?, out)
    })
}

/// As weir_tensor_create_dynamic, over `capacity` bytes of the caller's at `data`, aligned to the element size; the
/// address stays. A run whose output does not fit fails with OUT_OF_RANGE and both sizes in its text, and leaves all
/// its dynamic outputs unchanged. `release` (may be NULL) is called with `release_ctx` exactly once, when nothing uses
/// the memory any more; not if this call fails.
///
/// Thread safety: any thread; reading it while a run writes it is a race. Blocking: never. Ownership: the caller owns
/// one reference to *out_tensor; the memory must live until release is called, or, without release, until the tensor
/// and all work on it are gone. Errors: INVALID_ARGUMENT (NULL, alignment, unknown dtype, rank, no open dimension).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_tensor_create_dynamic_from(
    engine: *mut weir_engine,
    desc: *const weir_tensor_desc,
    data: *mut c_void,
    capacity: usize,
    release: weir_destroy_fn,
    release_ctx: *mut c_void,
    out_tensor: *mut *mut weir_tensor,
) -> weir_status {
    guard("weir_tensor_create_dynamic_from", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe {
            let out = out_ptr(out_tensor, "out_tensor")?;
            let (engine, desc) = (handle::share(engine, "engine")?, read_desc(desc, "desc")?);
            let release = Arc::new(task::Destroy::new(release, release_ctx));
            let kept: Box<dyn Any + Send + Sync> = Box::new(Arc::clone(&release));
            handle::into_c(Tensor::create_open_from(engine, desc, data.cast(), capacity, kept)?, out)?;
            release.adopt();
            Ok(())
        }
    })
}

/// Sets the shape of an open output (WEIR_KERNEL_DYNAMIC), and returns its memory, aligned to 64, contents undefined:
/// once for each such output, before compute returns. `dims` are the `rank` dimensions, which must agree with the
/// declared ones; 0 is a legal dimension. From then on the output's view (weir_kernel_context_get_outputs) has address,
/// size and shape. The kernel fails if an open output is not allocated, unless nothing in the graph uses it.
///
/// The memory belongs to the program and is kept from run to run; it grows, with memory of the engine's, when a run
/// needs more than all runs before.
///
/// Thread safety: any thread, during the call. Blocking: never. Ownership: *out_data is borrowed, valid until compute
/// returns. Errors: INVALID_ARGUMENT (NULL, dims against the declared shape; the text names node and output);
/// OUT_OF_RANGE (index, size overflows); FAILED_PRECONDITION (an output of a fixed shape, or allocated before);
/// RESOURCE_EXHAUSTED.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_kernel_context_allocate_output(
    context: *const weir_kernel_context,
    index: usize,
    dims: *const i64,
    rank: usize,
    out_data: *mut *mut c_void,
) -> weir_status {
    guard("weir_kernel_context_allocate_output", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, context) = unsafe { (out_ptr(out_data, "out_data")?, context::borrow(context, "context")?) };
        if rank > MAX_RANK {
            return Err(Error::invalid(format!("rank is {rank}, expected 0 to {MAX_RANK}")));
        }
        // SAFETY: the caller's pointer, as documented.
        let given = unsafe { array(dims, rank, "dims") }?;
        // They may lie in the output's view, which is about to be written.
        let mut dims = [0; MAX_RANK];
        dims[..rank].copy_from_slice(given);
        // SAFETY: the kernel has its views through C, where it reads them anew after this, as documented.
        *out = unsafe { context.allocate_output(index, &dims[..rank]) }?.cast();
        Ok(())
    })
}

/// Frees the memory that the program keeps for later runs: all values, and the blocks of dynamic ones, which otherwise
/// stay as large as the largest run needed. The next run allocates again. Active runs keep theirs.
///
/// Thread safety: any thread. Blocking: never. Ownership: none. Errors: INVALID_ARGUMENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_program_trim(program: *mut weir_program) -> weir_status {
    guard("weir_program_trim", || {
        // SAFETY: the caller's handle, as documented.
        unsafe { handle::borrow(program, "program") }?.trim();
        Ok(())
    })
}

//! Shapes known only at run time: outputs that kernels allocate.
//!
//! Chapter: Shapes that a run decides.

use super::argument::{array, out_ptr};
use super::context;
use super::guard::guard;
use crate::abi::*;
use crate::base::Error;
use crate::base::desc::MAX_RANK;
use std::ffi::c_void;

/// Sets the shape of an open output (WEIR_KERNEL_DYNAMIC), and returns its memory, aligned to 64, contents undefined:
/// once for each such output, before compute returns. `dims` has `rank` elements, which must agree with the declared
/// dimensions; 0 is a legal dimension. From then on the output's view (weir_kernel_context_get_outputs) has address,
/// size and shape. The kernel fails if an open output is not allocated, unless nothing in the graph uses it.
///
/// The memory belongs to the program and is kept from run to run; it grows, with memory of the engine's, when a run
/// needs more than all runs before.
///
/// Thread safety: any thread, during the call. Ownership: *out_data is borrowed, valid until compute returns. Errors:
/// INVALID_ARGUMENT (NULL, dims against the declared shape; the text names node and output); OUT_OF_RANGE (index, size
/// overflows); FAILED_PRECONDITION (an output of a fixed shape, or allocated before); RESOURCE_EXHAUSTED.
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

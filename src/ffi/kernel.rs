//! Kernels: creation, queries, enqueuing.
//!
//! Chapter: Kernel.

use super::argument::{array, out_ptr};
use super::guard::{guard, guard_release};
use super::{context, handle, versioned};
use crate::abi::*;
use crate::base::text::fixed;
use crate::base::{Error, Result};
use crate::engine::{Borrowed, BoundKernel, KernelOptions, LaunchKey, PreparedCall, Tensors};
use crate::kernel::Kernel;
use crate::ops::check::flags;
use std::sync::Arc;

/// Creates a kernel from a function of the host's.
///
/// Ownership: desc->user passes to the kernel if desc->destroy is given. Errors: INVALID_ARGUMENT (NULL engine, desc or
/// compute, struct_size, unknown flags, bad signature, bad UTF-8); OUT_OF_RANGE (num_inputs, num_outputs).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_kernel_create_host(
    engine: *mut weir_engine,
    desc: *const weir_host_kernel_desc,
    out_kernel: *mut *mut weir_kernel,
) -> weir_status {
    guard("weir_kernel_create_host", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe {
            let out = out_ptr(out_kernel, "out_kernel")?;
            let engine = handle::share(engine, "engine")?;
            let desc = versioned::read(desc, "desc")?;
            use weir_kernel_flags::*;
            let known = WEIR_KERNEL_IN_PLACE as u64
                | WEIR_KERNEL_PURE as u64
                | WEIR_KERNEL_MAY_BLOCK as u64
                | WEIR_KERNEL_DYNAMIC as u64;
            flags(desc.flags, known, "desc->flags")?;
            let kernel = context::HostKernel::new(&desc)?;
            let bound = BoundKernel::create(engine, Arc::clone(&kernel) as Arc<dyn Kernel>, &KernelOptions::default())?;
            handle::into_c(bound, out)?;
            // Only now, with the creation a success, is `user` the kernel's to release.
            kernel.adopt();
            Ok(())
        }
    })
}

/// Takes one more reference.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_kernel_retain(kernel: *mut weir_kernel) -> weir_status {
    // SAFETY: the caller's handle, as documented.
    guard("weir_kernel_retain", || unsafe { handle::retain(kernel, "kernel") })
}

/// Gives up one reference. NULL does nothing. Graphs, programs and queued work hold references of their own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_kernel_release(kernel: *mut weir_kernel) {
    // SAFETY: the caller's handle, as documented.
    guard_release("weir_kernel_release", || unsafe { handle::release(kernel) });
}

/// Describes the kernel.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_kernel_get_info(
    kernel: *const weir_kernel,
    out_info: *mut weir_kernel_info,
) -> weir_status {
    guard("weir_kernel_get_info", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe {
            let kernel = handle::borrow(kernel, "kernel")?;
            let info = weir_kernel_info {
                struct_size: 0,
                num_inputs: kernel.num_inputs(),
                num_outputs: kernel.num_outputs(),
                name: fixed(kernel.name()),
            };
            versioned::write(out_info, &info, "out_info")
        }
    })
}

/// Computes the descriptors of the kernel's outputs for inputs of these types and shapes.
///
/// Errors: INVALID_ARGUMENT (also inputs that the kernel refuses; the text names the input).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_kernel_infer(
    kernel: *const weir_kernel,
    inputs: *const weir_tensor_desc,
    num_inputs: usize,
    out_outputs: *mut weir_tensor_desc,
    num_outputs: usize,
) -> weir_status {
    guard("weir_kernel_infer", || {
        // SAFETY: the caller's pointers, as documented.
        let (kernel, inputs, outputs) = unsafe {
            (
                handle::borrow(kernel, "kernel")?,
                array(inputs, num_inputs, "inputs")?,
                super::argument::array_mut(out_outputs, num_outputs, "out_outputs")?,
            )
        };
        let answer = kernel.infer(inputs)?;
        if answer.len() != outputs.len() {
            return Err(Error::invalid(format!(
                "num_outputs is {}, kernel '{}' has {}",
                outputs.len(),
                kernel.name(),
                answer.len()
            )));
        }
        outputs.copy_from_slice(&answer);
        Ok(())
    })
}

/// Runs a kernel on a stream. The tensors are checked against the kernel's signature before anything is queued, and
/// they stay alive until the work is done. An output may share memory with an input only if the kernel says
/// WEIR_KERNEL_IN_PLACE.
///
/// A kernel with compute_async blocks the stream until its call is completed: later work begins then, a wait for the
/// stream waits for it, and its failure is the stream's. The completing thread continues the stream; a stream that is
/// released meanwhile ends when its work has.
///
/// Blocking: until the kernel is done on a synchronous stream, never on an asynchronous one. Ownership: an asynchronous
/// stream, or a kernel with compute_async, takes references to kernel and tensors; else the caller keeps them alive
/// until the call returns. The arrays are copied. Errors: INVALID_ARGUMENT (NULL, count, dtype, shape, overlap, a
/// kernel or a tensor of another device than the stream's; the text names the argument); OUT_OF_RANGE (more than
/// WEIR_MAX_ARGS); FAILED_PRECONDITION if the stream has failed, or for a kernel with compute_async on a synchronous
/// stream in a worker of a pool; RESOURCE_EXHAUSTED; on a synchronous stream also the kernel's own status.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_enqueue(
    stream: *mut weir_stream,
    kernel: *mut weir_kernel,
    inputs: *const *mut weir_tensor,
    num_inputs: usize,
    outputs: *const *mut weir_tensor,
    num_outputs: usize,
) -> weir_status {
    guard("weir_enqueue", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe {
            // Its work may release it, here too.
            let stream = handle::share(stream, "stream")?;
            let called = handle::borrow(kernel, "kernel")?;
            let (inputs, outputs) = (handles(inputs, num_inputs, "inputs")?, handles(outputs, num_outputs, "outputs")?);
            if stream.queue().is_synchronous() && !called.kernel().is_async() {
                let (mut from, mut to) = (Borrowed::new(), Borrowed::new());
                borrow_all(inputs, "inputs", &mut from)?;
                borrow_all(outputs, "outputs", &mut to)?;
                return stream.call(called, &from, &to);
            }
            let address = |handle: &*mut weir_tensor| handle.addr();
            // The objects at these addresses are alive, so these are their handles.
            let mut key = LaunchKey::default();
            key.set(kernel.addr(), inputs.iter().map(address), outputs.iter().map(address));
            if stream.again(&key) {
                return Ok(());
            }
            let (inputs, outputs) = (shared(inputs, "inputs")?, shared(outputs, "outputs")?);
            stream.enqueue_as(handle::share(kernel, "kernel")?, inputs, outputs, &key)
        }
    })
}

/// Prepares a call: a kernel with its tensors on a stream. All that weir_enqueue checks is checked here, once, and the
/// scratch memory that the kernel wants is allocated here. For calls that are repeated with the same tensors, whose
/// numbers may change: besides the kernel's own time a call costs about a third of what weir_enqueue does.
///
/// Ownership: the call holds references to stream, kernel and tensors; the arrays are copied. Errors: those of
/// weir_enqueue for arguments; RESOURCE_EXHAUSTED (scratch memory).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_call_create(
    stream: *mut weir_stream,
    kernel: *mut weir_kernel,
    inputs: *const *mut weir_tensor,
    num_inputs: usize,
    outputs: *const *mut weir_tensor,
    num_outputs: usize,
    out_call: *mut *mut weir_call,
) -> weir_status {
    guard("weir_call_create", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe {
            let out = out_ptr(out_call, "out_call")?;
            let (stream, kernel) = (handle::share(stream, "stream")?, handle::share(kernel, "kernel")?);
            let (inputs, outputs) = (handles(inputs, num_inputs, "inputs")?, handles(outputs, num_outputs, "outputs")?);
            let (inputs, outputs) = (shared(inputs, "inputs")?, shared(outputs, "outputs")?);
            handle::into_c(PreparedCall::create(stream, kernel, inputs, outputs)?, out)
        }
    })
}

/// Takes one more reference.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_call_retain(call: *mut weir_call) -> weir_status {
    // SAFETY: the caller's handle, as documented.
    guard("weir_call_retain", || unsafe { handle::retain(call, "call") })
}

/// Gives up one reference. NULL does nothing. Queued work holds references of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_call_release(call: *mut weir_call) {
    // SAFETY: the caller's handle, as documented.
    guard_release("weir_call_release", || unsafe { handle::release(call) });
}

/// Runs a prepared call on its stream, as weir_enqueue would with the same arguments. Any thread may enqueue a call,
/// also before earlier turns are done: its turns come one after another, in the order of the stream.
///
/// Blocking: as weir_enqueue. Errors: FAILED_PRECONDITION, RESOURCE_EXHAUSTED and the kernel's own status, as
/// weir_enqueue.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_call_enqueue(call: *mut weir_call) -> weir_status {
    // SAFETY: the caller's handle, as documented.
    guard("weir_call_enqueue", || unsafe { handle::borrow(call, "call") }?.enqueue())
}

/// An array of tensor handles.
///
/// # Safety
/// `data` is NULL or points to `len` tensor handles.
#[inline]
unsafe fn handles<'a>(data: *const *mut weir_tensor, len: usize, argument: &str) -> Result<&'a [*mut weir_tensor]> {
    if len > weir_limit::WEIR_MAX_ARGS as usize {
        return Err(too_many(len, argument));
    }
    // SAFETY: as demanded of the caller.
    unsafe { array(data, len, argument) }
}

#[cold]
fn too_many(len: usize, argument: &str) -> Error {
    let most = weir_limit::WEIR_MAX_ARGS as usize;
    Error::out_of_range(format!("{argument} has {len} tensors, the limit is {most}"))
}

/// The tensors, which the caller keeps alive.
///
/// # Safety
/// As of `handle::borrow`, for each.
#[inline]
unsafe fn borrow_all<'a>(handles: &[*mut weir_tensor], argument: &str, out: &mut Borrowed<'a>) -> Result<()> {
    for (i, &h) in handles.iter().enumerate() {
        // SAFETY: as demanded of the caller. The tensor's name is only made for a refusal.
        out.push(unsafe { handle::borrow(h, argument).or_else(|_| handle::borrow(h, &format!("{argument}[{i}]")))? });
    }
    Ok(())
}

/// The tensors, each with a reference of its own.
///
/// # Safety
/// As of `handle::share`, for each.
unsafe fn shared(handles: &[*mut weir_tensor], argument: &str) -> Result<Tensors> {
    let mut tensors = Tensors::with_capacity(handles.len());
    for (i, &h) in handles.iter().enumerate() {
        // SAFETY: as demanded of the caller. The tensor's name is only made for a refusal.
        let tensor = unsafe { handle::share(h, argument).or_else(|_| handle::share(h, &format!("{argument}[{i}]"))) };
        tensors.push(tensor?);
    }
    Ok(tensors)
}

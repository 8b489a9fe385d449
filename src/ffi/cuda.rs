//! CUDA devices: their properties, and the host's own contexts, streams, events and kernels on them.
//!
//! Chapter: CUDA.

use super::argument::{out_ptr, string};
use super::context::HostKernel;
use super::guard::guard;
use super::kernel_named::{Named, signature};
use super::kernel_options::kernel_options;
use super::{handle, versioned};
use crate::abi::*;
use crate::base::{Code, Error, Result};
use crate::device::{CUDA_KERNEL, DeviceKind, Operation};
use crate::engine::{BoundKernel, Engine, KernelIdentity, Stream, StreamAttr};
use crate::ops::check::flags;
use std::ffi::c_void;
use std::sync::Arc;

/// Refuses builds without CUDA, and engines of other kinds.
fn check_kind(kind: DeviceKind) -> Result<()> {
    if cfg!(not(feature = "cuda")) {
        return Err(Error::new(Code::Unimplemented, "this build of weir is without CUDA"));
    }
    match kind {
        DeviceKind::CUDA => Ok(()),
        other => Err(Error::new(Code::Unimplemented, format!("it is of kind {}, only cuda has that", other.name()))),
    }
}

fn check_engine(engine: &Engine) -> Result<()> {
    check_kind(engine.kind()).map_err(|error| error.at_engine(&engine.label()))
}

fn native(pointer: *mut c_void) -> u64 {
    pointer.expose_provenance() as u64
}

#[cfg(feature = "cuda")]
fn device_info(engine: &Engine) -> Result<weir_cuda_device_info> {
    use crate::base::text::fixed;
    let none = || Error::new(Code::Unimplemented, "a plug-in makes the cuda engines, of which weir knows no more");
    let device = crate::device::cuda::CudaDevice::of(engine.device()).ok_or_else(none)?;
    let facts = device.facts();
    Ok(weir_cuda_device_info {
        struct_size: 0,
        driver_version: facts.driver_version,
        capability_major: facts.capability[0],
        capability_minor: facts.capability[1],
        multiprocessors: facts.multiprocessors,
        max_threads_per_block: facts.max_threads_per_block,
        max_shared_bytes: facts.max_shared_bytes,
        memory_bytes: facts.memory_bytes,
        free_bytes: device.free_bytes()?,
        has_memory_pool: u32::from(device.has_memory_pool()),
        reserved: 0,
        uuid: facts.uuid,
        pci_bus_id: fixed(&facts.pci_bus_id),
        name: fixed(&facts.name),
        products: fixed(&device.products()),
    })
}

#[cfg(not(feature = "cuda"))]
fn device_info(_engine: &Engine) -> Result<weir_cuda_device_info> {
    Err(Error::internal("an engine that this build does not have"))
}

/// Fills *out_info with properties of a CUDA engine's device.
///
/// Errors: UNIMPLEMENTED if the engine is of another kind, or the build is without CUDA; errors of the driver.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_cuda_get_device_info(
    engine: *const weir_engine,
    out_info: *mut weir_cuda_device_info,
) -> weir_status {
    guard("weir_cuda_get_device_info", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe {
            let engine = handle::borrow(engine, "engine")?;
            if out_info.is_null() {
                return Err(Error::null("out_info"));
            }
            check_engine(engine)?;
            versioned::write(out_info, &device_info(engine)?, "out_info")
        }
    })
}

/// The CUcontext that an engine works in; NULL (the default) = the device's primary context, which weir retains and
/// whose flags it leaves alone. It must be of the device with the engine's index, and no other engine may be on that
/// device with another context.
///
/// Ownership: the context stays the caller's, who keeps it until the engine and all objects on it are gone. Errors:
/// UNIMPLEMENTED if the attribute's kind is not CUDA, or the build is without CUDA.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_engine_attr_set_cuda_context(
    attr: *mut weir_engine_attr,
    context: *mut c_void,
) -> weir_status {
    guard("weir_engine_attr_set_cuda_context", || {
        // SAFETY: the caller's pointer, as documented.
        let attr = unsafe { handle::borrow_mut(attr, "attr") }?;
        check_kind(attr.kind).map_err(|error| error.within("attr"))?;
        attr.context = (!context.is_null()).then(|| native(context));
        Ok(())
    })
}

/// Creates a weir stream on a CUstream of the caller's. NULL or (CUstream)1 = the legacy default stream, (CUstream)2 =
/// the default stream of the submitting thread. The caller's own work on it runs in the order of the calls. Work that
/// is enqueued while the caller captures the CUstream becomes part of the caller's graph, and the graph keeps
/// everything that this work uses. Work that cannot be captured is refused (docs/cuda.md). attr may be NULL; its
/// priority is ignored.
///
/// Ownership: cuda_stream stays the caller's, who keeps it until the submitted work is done and the last reference
/// gone, and if that was released during a capture, until the graph is gone. Errors: INVALID_ARGUMENT (also a stream of
/// another context, an attr of another kind); UNIMPLEMENTED if the engine is of another kind, or the build is without
/// CUDA; errors of the driver.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_stream_wrap_cuda(
    engine: *mut weir_engine,
    cuda_stream: *mut c_void,
    attr: *const weir_stream_attr,
    out_stream: *mut *mut weir_stream,
) -> weir_status {
    guard("weir_stream_wrap_cuda", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, engine, attr) = unsafe {
            (out_ptr(out_stream, "out_stream")?, handle::share(engine, "engine")?, handle::borrow_opt(attr, "attr")?)
        };
        check_engine(&engine)?;
        let mut attr = attr.map_or_else(|| StreamAttr::new(engine.kind()), |attr| StreamAttr::clone(attr));
        attr.wrapped = Some(native(cuda_stream));
        handle::into_c(Stream::create(engine, attr)?, out)
    })
}

/// Submits an event of the caller's own to a stream.
///
/// # Safety
/// The caller's pointers are as the C documentation demands.
unsafe fn foreign_event(stream: *mut weir_stream, event: *mut c_void, records: bool) -> Result<()> {
    // SAFETY: as demanded of the caller.
    let stream = unsafe { handle::borrow(stream, "stream") }?;
    check_engine(stream.engine())?;
    if event.is_null() {
        return Err(Error::null("cuda_event"));
    }
    stream.enqueue_foreign_event(native(event), records)
}

/// Makes later work on the stream wait for a CUevent of the caller's, as last recorded when this call is issued.
///
/// Ownership: the event stays the caller's, who keeps it until this call has been issued: when it returns, unless
/// something in front of it waits for the host. Errors: UNIMPLEMENTED if the stream's engine is of another kind, or the
/// build is without CUDA; an error of the event becomes the stream's.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_stream_wait_cuda_event(stream: *mut weir_stream, cuda_event: *mut c_void) -> weir_status {
    // SAFETY: the caller's pointers, as documented.
    guard("weir_stream_wait_cuda_event", || unsafe { foreign_event(stream, cuda_event, false) })
}

/// Records a CUevent of the caller's after all work submitted so far.
///
/// Ownership: as weir_stream_wait_cuda_event. Errors: as weir_stream_wait_cuda_event.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_stream_record_cuda_event(
    stream: *mut weir_stream,
    cuda_event: *mut c_void,
) -> weir_status {
    // SAFETY: the caller's pointers, as documented.
    guard("weir_stream_record_cuda_event", || unsafe { foreign_event(stream, cuda_event, true) })
}

/// Creates a kernel from source code of the caller's: CUDA C++, PTX or a binary. It is compiled, if necessary, and
/// loaded in this call; a launch only fills in addresses and counts. The output of NVRTC is cached on disk, in the
/// folder that the environment variable WEIR_CUDA_CACHE names (empty = no cache), else in weir/cuda in the user's cache
/// folder; a file is read only if nobody but this user can have written it. options may be NULL; without a name in them
/// the kernel has the name of its entry.
///
/// Blocking: while it is compiled and loaded. Ownership: desc, the data it points to and options are copied; desc->user
/// passes to the kernel if desc->destroy is given. Errors: INVALID_ARGUMENT (NULL, struct_size, signature, block,
/// arguments that do not match the entry as far as the driver knows them; a source with errors: the text is the
/// compiler's); OUT_OF_RANGE; NOT_FOUND if there is no such entry; UNAVAILABLE without NVRTC; UNIMPLEMENTED if the
/// engine is of another kind, the source not for its device, or the build without CUDA; errors of the driver.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_kernel_create_cuda(
    engine: *mut weir_engine,
    desc: *const weir_cuda_kernel_desc,
    options: *const weir_kernel_options,
    out_kernel: *mut *mut weir_kernel,
) -> weir_status {
    guard("weir_kernel_create_cuda", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe {
            let out = out_ptr(out_kernel, "out_kernel")?;
            let engine = handle::share(engine, "engine")?;
            let desc = versioned::read(desc, "desc")?;
            let options = kernel_options(options)?;
            check_engine(&engine)?;
            string(desc.entry, "desc->entry")?;
            let given = flags(desc.flags, weir_kernel_flags::WEIR_KERNEL_IN_PLACE as u64, "desc->flags")?;
            let signature = weir_host_kernel_desc { flags: given, ..signature!(desc, desc.entry) };
            let kernel = Arc::new(Named(HostKernel::new(&signature)?));
            let attributes = std::slice::from_raw_parts((&raw const desc).cast::<u8>(), size_of_val(&desc));
            let host = Arc::clone(&kernel.0);
            let operation = Operation::Named(CUDA_KERNEL, attributes);
            let identity = KernelIdentity { is_bound: true, ..KernelIdentity::of(operation) };
            handle::into_c(BoundKernel::create_as(engine, kernel, identity, &options)?, out)?;
            // Only now, with the creation a success, is `user` the kernel's to release.
            host.adopt();
            Ok(())
        }
    })
}

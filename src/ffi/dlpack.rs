//! Tensors to and from other libraries, by DLPack.
//!
//! An export is a box that holds the tensor; the receiver's call of the deleter frees it. An import is a tensor over
//! the producer's memory, and its end calls the producer's deleter. Either happens once, on any thread.
//!
//! Chapter: Exchange.

use super::argument::out_ptr;
use super::dlpack_device::{NO_DEVICE, check, device};
use super::dlpack_layout::{DlpackLayout, compact, element_type};
use super::guard::{guard, guard_release};
use super::handle;
use crate::abi::weir_dlpack_flags::*;
use crate::abi::*;
use crate::base::{Code, Error, Ref, Result, desc::MAX_RANK, dtype};
use crate::engine::{Engine, Event, Stream, Tensor};
use crate::memory::heap;
use crate::ops::check::flags;
use crate::sync::ambient;
use std::ffi::c_void;

const IS_READ_ONLY: u64 = 1;
const IS_COPIED: u64 = 2;

/// Keeps an export alive, with the data that its tensor points to.
struct Exported<M> {
    managed: M,
    shape: [i64; MAX_RANK],
    strides: [i64; MAX_RANK],
    tensor: Ref<Tensor>,
}

/// Implemented by the two DLPack structs.
trait Managed: Sized {
    fn fill(&mut self, tensor: DLTensor, context: *mut c_void, flags: u64);
    fn empty() -> Self;
    /// The tensor and its flags, or the reason why it cannot be read.
    fn open(&self) -> Result<(&DLTensor, u64)>;
    /// # Safety
    /// Nothing uses it any more.
    unsafe fn delete(this: *mut Self);
}

const NOTHING: DLTensor = DLTensor {
    data: std::ptr::null_mut(),
    device: NO_DEVICE,
    ndim: 0,
    dtype: DLDataType { code: 0, bits: 0, lanes: 1 },
    shape: std::ptr::null_mut(),
    strides: std::ptr::null_mut(),
    byte_offset: 0,
};

/// # Safety
/// `context` came from `export`, and the receiver gives it up.
unsafe fn end<M>(context: *mut c_void) {
    guard_release("the deleter of a DLPack tensor", || {
        if !context.is_null() {
            // SAFETY: as demanded of the caller.
            let exported = unsafe { Box::from_raw(context.cast::<Exported<M>>()) };
            if exported.tensor.is_inherited() {
                // As with a handle: a child of fork leaves it alone.
                std::mem::forget(exported);
            }
        }
    });
}

unsafe extern "C" fn end_legacy(this: *mut DLManagedTensor) {
    // SAFETY: the receiver's pointer, which came from `export`.
    unsafe { end::<DLManagedTensor>((*this).manager_ctx) }
}

unsafe extern "C" fn end_versioned(this: *mut DLManagedTensorVersioned) {
    // SAFETY: the receiver's pointer, which came from `export`.
    unsafe { end::<DLManagedTensorVersioned>((*this).manager_ctx) }
}

impl Managed for DLManagedTensor {
    fn empty() -> Self {
        DLManagedTensor { dl_tensor: NOTHING, manager_ctx: std::ptr::null_mut(), deleter: Some(end_legacy) }
    }

    fn fill(&mut self, tensor: DLTensor, context: *mut c_void, _flags: u64) {
        (self.dl_tensor, self.manager_ctx) = (tensor, context);
    }

    fn open(&self) -> Result<(&DLTensor, u64)> {
        Ok((&self.dl_tensor, 0))
    }

    unsafe fn delete(this: *mut Self) {
        // SAFETY: the struct's own function, with the struct, once.
        unsafe {
            if let Some(deleter) = (*this).deleter {
                deleter(this);
            }
        }
    }
}

impl Managed for DLManagedTensorVersioned {
    fn empty() -> Self {
        DLManagedTensorVersioned {
            version: DLPackVersion { major: 1, minor: 0 },
            manager_ctx: std::ptr::null_mut(),
            deleter: Some(end_versioned),
            flags: 0,
            dl_tensor: NOTHING,
        }
    }

    fn fill(&mut self, tensor: DLTensor, context: *mut c_void, flags: u64) {
        (self.dl_tensor, self.manager_ctx, self.flags) = (tensor, context, flags);
    }

    fn open(&self) -> Result<(&DLTensor, u64)> {
        match self.version {
            DLPackVersion { major: 1, .. } => Ok((&self.dl_tensor, self.flags)),
            DLPackVersion { major, minor } => {
                Err(Error::new(Code::Unimplemented, format!("managed is of DLPack {major}.{minor}, expected 1.x")))
            }
        }
    }

    unsafe fn delete(this: *mut Self) {
        // SAFETY: the struct's own function, with the struct, once.
        unsafe {
            if let Some(deleter) = (*this).deleter {
                deleter(this);
            }
        }
    }
}

/// Orders the consumer, its stream or this thread, after the work that the producer has queued so far.
fn order(producer: Option<&Stream>, consumer: Option<&Stream>) -> Result<()> {
    match (producer, consumer) {
        (None, _) => Ok(()),
        (Some(producer), None) => producer.synchronize(WEIR_TIMEOUT_INFINITE),
        (Some(producer), Some(consumer)) if std::ptr::eq(producer, consumer) => Ok(()),
        (Some(producer), Some(consumer)) => {
            let event = Event::create(Ref::clone(producer.engine()), false);
            event.record(producer)?;
            consumer.wait_event(&event)
        }
    }
}

/// # Safety
/// The caller's pointers are as the C documentation demands.
unsafe fn export<M: Managed>(
    tensor: *mut weir_tensor,
    producer: *mut weir_stream,
    consumer: *mut weir_stream,
    bits: u64,
    out_managed: *mut *mut M,
) -> Result<()> {
    // SAFETY: the caller's pointers, as documented.
    let (out, tensor, producer, consumer) = unsafe {
        let out = out_ptr(out_managed, "out_managed")?;
        let streams = (handle::borrow_opt(producer, "producer")?, handle::borrow_opt(consumer, "consumer")?);
        (out, handle::share(tensor, "tensor")?, streams.0, streams.1)
    };
    let bits = flags(bits, WEIR_DLPACK_READ_ONLY as u64 | WEIR_DLPACK_COPY as u64, "flags")?;
    let device = device(tensor.engine())?;
    if tensor.open().is_some() {
        return Err(Error::invalid("tensor is a dynamic tensor, expected one of a fixed shape"));
    }
    let is_copy = bits & WEIR_DLPACK_COPY as u64 != 0;
    refuse_copy(tensor.engine(), is_copy)?;
    // The copy is taken when the producer is done.
    order(producer.map(|stream| &**stream), if is_copy { None } else { consumer.map(|stream| &**stream) })?;
    let tensor = match is_copy {
        false => tensor,
        true => {
            let copy = Tensor::create(Ref::clone(tensor.engine()), *tensor.desc())?;
            // SAFETY: the host's memory, and the copy's own; the producer is done.
            unsafe { copy.view().as_bytes_mut().copy_from(tensor.view().as_bytes()) };
            copy
        }
    };
    let desc = *tensor.desc();
    let dtype = element_type(desc.dtype)?;
    let data = tensor.data();
    let boxed = Exported { managed: M::empty(), shape: desc.dims, strides: compact(&desc), tensor };
    let exported = Box::into_raw(Box::new(boxed));
    let said = if bits & WEIR_DLPACK_READ_ONLY as u64 != 0 { IS_READ_ONLY } else { 0 };
    // SAFETY: just made, and nobody else has it.
    unsafe {
        let dl = DLTensor {
            data: data.cast(),
            device,
            ndim: desc.rank as i32,
            dtype,
            shape: (&raw mut (*exported).shape).cast(),
            strides: (&raw mut (*exported).strides).cast(),
            ..NOTHING
        };
        (*exported).managed.fill(dl, exported.cast(), said | if is_copy { IS_COPIED } else { 0 });
        if let Err(error) = heap::check() {
            drop(Box::from_raw(exported));
            return Err(error);
        }
        *out = &raw mut (*exported).managed;
    }
    Ok(())
}

/// This thread cannot copy bytes in a device's memory.
fn refuse_copy(engine: &Engine, is_copy: bool) -> Result<()> {
    match is_copy && engine.accelerator().is_some() {
        true => Err(Error::new(
            Code::Unimplemented,
            format!("flags has WEIR_DLPACK_COPY for memory of engine {}: weir_enqueue_copy copies it", engine.label()),
        )),
        false => Ok(()),
    }
}

/// Calls the producer's deleter when it is dropped.
struct ForeignOwner<M: Managed>(*mut M);

// SAFETY: DLPack lets the deleter be called from any thread.
unsafe impl<M: Managed> Send for ForeignOwner<M> {}
// SAFETY: as above; nothing else is done with it.
unsafe impl<M: Managed> Sync for ForeignOwner<M> {}

impl<M: Managed> Drop for ForeignOwner<M> {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // SAFETY: it was taken over with the import, and the memory is not used any more.
            ambient::call(|| unsafe { M::delete(self.0) });
        }
    }
}

/// # Safety
/// The caller's pointers are as the C documentation demands.
unsafe fn import<M: Managed + 'static>(
    engine: *mut weir_engine,
    managed: *mut M,
    bits: u64,
    out_tensor: *mut *mut weir_tensor,
) -> Result<()> {
    // SAFETY: the caller's pointers, as documented.
    let (out, engine) = unsafe { (out_ptr(out_tensor, "out_tensor")?, handle::share(engine, "engine")?) };
    if managed.is_null() {
        return Err(Error::null("managed"));
    }
    let bits = flags(bits, WEIR_DLPACK_READ_ONLY as u64 | WEIR_DLPACK_COPY as u64, "flags")?;
    let is_copy = bits & WEIR_DLPACK_COPY as u64 != 0;
    // SAFETY: not NULL, and a struct of this kind as documented.
    let (tensor, said) = unsafe { (*managed).open() }?;
    check(&engine, tensor.device)?;
    refuse_copy(&engine, is_copy)?;
    // SAFETY: as documented.
    let layout = unsafe { DlpackLayout::read(tensor) }?;
    if said & IS_READ_ONLY != 0 && bits == 0 {
        return Err(Error::precondition(
            "managed must not be written: import a copy (WEIR_DLPACK_COPY), or say that nothing writes it \
             (WEIR_DLPACK_READ_ONLY)",
        ));
    }
    if !is_copy && !layout.is_compact()? {
        let strides = &layout.strides[..layout.desc.shape().len()];
        return Err(Error::invalid(format!(
            "managed: strides {strides:?} of {} are not row-major and compact; WEIR_DLPACK_COPY takes them",
            layout.desc.text()
        )));
    }
    let offset = usize::try_from(tensor.byte_offset).map_err(|_| Error::out_of_range("managed: byte_offset"))?;
    let data = tensor.data.cast::<u8>().wrapping_add(offset);
    if tensor.data.is_null() && layout.desc.elements()? > 0 {
        return Err(Error::null("managed: data"));
    }
    if is_copy {
        let copy = Tensor::create(engine, layout.desc)?;
        // SAFETY: the other's memory holds the tensor that it describes, and the copy is new.
        unsafe { layout.copy(data, copy.data(), dtype::size(layout.desc.dtype)?) }?;
        handle::into_c(copy, out)?;
        // SAFETY: it is ours from here on, and not needed any more.
        ambient::call(|| unsafe { M::delete(managed) });
        return Ok(());
    }
    // The producer's struct becomes ours to delete only if the import succeeds.
    let owner = std::sync::Arc::new(Later::<M>::default());
    let release = Box::new(std::sync::Arc::clone(&owner));
    // SAFETY: the other's memory holds the tensor that it describes, and is kept until its owner is dropped.
    handle::into_c(unsafe { Tensor::create_from(engine, layout.desc, data, release) }?, out)?;
    owner.adopt(managed);
    Ok(())
}

/// An owner that is set once the import has succeeded.
struct Later<M: Managed>(crate::sync::OnceLock<ForeignOwner<M>>);

impl<M: Managed> Default for Later<M> {
    fn default() -> Self {
        Later(crate::sync::OnceLock::new())
    }
}

impl<M: Managed> Later<M> {
    fn adopt(&self, managed: *mut M) {
        let _ = self.0.set(ForeignOwner(managed));
    }
}

/// Exports a tensor to another library: a DLManagedTensorVersioned of DLPack 1.0 over the same memory, row-major, with
/// strides. The receiver calls its deleter, once and on any thread; the memory stays until then. `producer` (may be
/// NULL) is the stream that writes the tensor. With `consumer`, a stream of weir's, that stream waits for the work that
/// `producer` has queued so far, and nothing blocks; without, this call waits for it. So a program that implements
/// `__dlpack__(stream=None)` passes its stream and NULL. Later work on `producer` is not kept away from the receiver.
/// Memory of a CUDA engine is kDLCUDA, and a receiver's own stream becomes a consumer by weir_stream_wrap_cuda; that of
/// an emulated engine is kDLExtDev. `flags`: of weir_dlpack_flags.
///
/// Blocking: until `producer` has finished the work queued so far, if there is no `consumer` or a copy is made; else
/// never. Ownership: *out_managed is the caller's until its deleter is called; it holds a reference to the tensor.
/// Errors: INVALID_ARGUMENT (NULL, unknown flags, a dynamic tensor); UNIMPLEMENTED (memory that DLPack has no name for,
/// a copy of device memory); those of weir_stream_synchronize and weir_stream_wait_event.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_tensor_to_dlpack(
    tensor: *mut weir_tensor,
    producer: *mut weir_stream,
    consumer: *mut weir_stream,
    flags: u64,
    out_managed: *mut *mut DLManagedTensorVersioned,
) -> weir_status {
    // SAFETY: the caller's pointers, as documented.
    guard("weir_tensor_to_dlpack", || unsafe { export(tensor, producer, consumer, flags, out_managed) })
}

/// As weir_tensor_to_dlpack, as a DLManagedTensor for libraries that know no other. It cannot express that it is
/// read-only, nor that it is a copy.
///
/// Blocking: as weir_tensor_to_dlpack. Ownership: as there. Errors: as there.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_tensor_to_dlpack_legacy(
    tensor: *mut weir_tensor,
    producer: *mut weir_stream,
    consumer: *mut weir_stream,
    flags: u64,
    out_managed: *mut *mut DLManagedTensor,
) -> weir_status {
    // SAFETY: the caller's pointers, as documented.
    guard("weir_tensor_to_dlpack_legacy", || unsafe { export(tensor, producer, consumer, flags, out_managed) })
}

/// Creates a tensor over another library's memory. Elements are float32, float16, bfloat16, int64, int32, int8, uint8
/// or bool; others are refused by name. Strides must be row-major and compact, unless WEIR_DLPACK_COPY asks for a copy.
/// Read-only memory is accepted with WEIR_DLPACK_COPY or WEIR_DLPACK_READ_ONLY. The memory must be the engine's: the
/// host's for a CPU engine (kDLCPU, kDLCUDAHost), kDLCUDA with the engine's index for a CUDA engine, kDLExtDev for an
/// emulated one; for the latter two WEIR_DLPACK_COPY is not implemented. The contents must be there, or ordered before
/// the stream that uses them: ask the other library for the export on the stream None, or on that stream's native
/// handle.
///
/// Ownership: on success *managed is weir's, which calls its deleter once, when nothing uses the memory any more, in
/// any thread (with WEIR_DLPACK_COPY in this call); on failure it stays the caller's. Errors: INVALID_ARGUMENT (NULL,
/// flags, elements, strides, rank, device, alignment); FAILED_PRECONDITION (it is read-only); UNIMPLEMENTED (another
/// major version, an engine whose memory DLPack has no name for); OUT_OF_RANGE; RESOURCE_EXHAUSTED.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_tensor_from_dlpack(
    engine: *mut weir_engine,
    managed: *mut DLManagedTensorVersioned,
    flags: u64,
    out_tensor: *mut *mut weir_tensor,
) -> weir_status {
    // SAFETY: the caller's pointers, as documented.
    guard("weir_tensor_from_dlpack", || unsafe { import(engine, managed, flags, out_tensor) })
}

/// As weir_tensor_from_dlpack, from a DLManagedTensor, which says nothing about writing.
///
/// Ownership: as weir_tensor_from_dlpack. Errors: as there.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_tensor_from_dlpack_legacy(
    engine: *mut weir_engine,
    managed: *mut DLManagedTensor,
    flags: u64,
    out_tensor: *mut *mut weir_tensor,
) -> weir_status {
    // SAFETY: the caller's pointers, as documented.
    guard("weir_tensor_from_dlpack_legacy", || unsafe { import(engine, managed, flags, out_tensor) })
}

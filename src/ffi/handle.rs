//! Opaque C handles and the Rust objects behind them: all pointer casts of handles are here.

use crate::abi::*;
use crate::base::object::tag;
use crate::base::{Error, Kind, Object, Ref, Result};
use crate::memory::heap;
use crate::threadpool::group::TaskGroup;
use crate::threadpool::{PoolEndWatch, ThreadPool};
use std::mem::ManuallyDrop;
use std::sync::Arc;

/// Ties an opaque C type to the Rust object behind it. The handle points to an `Object`, whose first field is a tag.
///
/// # Safety
/// Every non-NULL pointer to `Self` that the library hands out points to an `Object<Self::Inner>`.
pub(super) unsafe trait Handle {
    type Inner: Kind;
}

macro_rules! handles {
    ($($handle:ident => $inner:ty),* $(,)?) => {
        // SAFETY: `into_c`, `borrowed_c` and `into_owned_c` below are the only makers of these pointers.
        $(unsafe impl Handle for $handle { type Inner = $inner; })*
    };
}

handles! {
    weir_threadpool => crate::threadpool::ThreadPool,
    weir_allocator => crate::memory::HostAllocator,
    weir_domain => crate::engine::Domain,
    weir_engine => crate::engine::Engine,
    weir_engine_attr => crate::engine::EngineAttr,
    weir_stream => crate::engine::Stream,
    weir_stream_attr => crate::engine::StreamAttr,
    weir_event => crate::engine::Event,
    weir_buffer => crate::engine::Buffer,
    weir_tensor => crate::engine::Tensor,
    weir_kernel => crate::engine::BoundKernel,
    weir_call => crate::engine::PreparedCall,
    weir_packed_weights => crate::engine::PackedWeights,
    weir_resource => crate::resource::Resource,
}

#[cfg(feature = "graph")]
handles! {
    weir_graph => crate::graph::Graph,
    weir_program => crate::graph::Program,
    weir_run => crate::graph::Run,
    weir_comm => crate::comm::Communicator,
    weir_trace => crate::trace::Trace,
}

/// Borrows the object behind a handle.
///
/// # Safety
/// `handle` is NULL or points to readable memory of a live weir handle, kept alive by the caller during `'a`.
pub(super) unsafe fn borrow<'a, H: Handle>(handle: *const H, argument: &str) -> Result<&'a Object<H::Inner>> {
    // SAFETY: as demanded of the caller.
    unsafe { borrow_opt(handle, argument) }?.ok_or_else(|| Error::null(argument))
}

/// As `borrow`, with NULL as a legal value.
///
/// # Safety
/// As `borrow`.
pub(super) unsafe fn borrow_opt<'a, H: Handle>(
    handle: *const H,
    argument: &str,
) -> Result<Option<&'a Object<H::Inner>>> {
    if handle.is_null() {
        return Ok(None);
    }
    if !handle.cast::<u64>().is_aligned() {
        return Err(Error::wrong_handle(argument, H::Inner::NAME, None));
    }
    // SAFETY: every weir handle points to an Object, whose first field is the tag (repr(C)).
    let tag = unsafe { handle.cast::<u32>().read() };
    if tag != H::Inner::TAG {
        return Err(Error::wrong_handle(argument, H::Inner::NAME, Some(tag)));
    }
    // SAFETY: the tag proves the type; the caller keeps the object alive.
    let object = unsafe { &*handle.cast::<Object<H::Inner>>() };
    if object.is_inherited() { Err(inherited(argument)) } else { Ok(Some(object)) }
}

#[cold]
pub(super) fn inherited(argument: &str) -> Error {
    Error::precondition(format!(
        "{argument} is of the process that this one was forked from, and can only be released here"
    ))
}

/// The task group behind a handle. Groups are not `Object`s, but begin with the same tag.
///
/// # Safety
/// `handle` is NULL or points to readable memory of a live weir handle, kept by the caller during its call.
#[inline]
pub(super) unsafe fn group(handle: *const weir_task_group) -> Result<&'static TaskGroup> {
    if handle.is_null() {
        return Err(Error::null("group"));
    }
    let name = TaskGroup::NAME;
    if !handle.cast::<u64>().is_aligned() {
        return Err(Error::wrong_handle("group", name, None));
    }
    // SAFETY: as demanded of the caller: every handle points to a tag.
    let found = unsafe { handle.cast::<u32>().read() };
    if found != tag::TASK_GROUP {
        return Err(Error::wrong_handle("group", name, Some(found)));
    }
    // SAFETY: the tag proves the type, and cells of groups stay for ever.
    let group = unsafe { &*handle.cast::<TaskGroup>() };
    if group.is_inherited() { Err(inherited("group")) } else { Ok(group) }
}

/// Borrows an exclusively owned object (attribute, builder) for change.
///
/// # Safety
/// As `borrow`; moreover no other thread uses the object during `'a` (the documented rule of attributes and builders).
pub(super) unsafe fn borrow_mut<'a, H: Handle>(handle: *mut H, argument: &str) -> Result<&'a mut Object<H::Inner>> {
    // SAFETY: as demanded of the caller.
    unsafe { borrow(handle.cast_const(), argument) }?;
    // SAFETY: the tag was checked just now; exclusive use is demanded of the caller.
    Ok(unsafe { &mut *handle.cast::<Object<H::Inner>>() })
}

/// As `borrow`: a reference for the length of a call, which is not counted.
///
/// # Safety
/// As `borrow`; `H` is a shared kind (made by `into_c`), and the host's own reference outlives the result.
pub(super) unsafe fn lend<H: Handle>(handle: *const H, argument: &str) -> Result<ManuallyDrop<Ref<H::Inner>>> {
    // SAFETY: as demanded of the caller.
    let object: *const Object<H::Inner> = unsafe { borrow(handle, argument) }?;
    // SAFETY: shared handles come from Arc::into_raw, and this one is never dropped.
    Ok(ManuallyDrop::new(unsafe { Arc::from_raw(object) }))
}

/// Takes a reference of its own to a shared object.
///
/// # Safety
/// As `borrow`; `H` is a shared kind (made by `into_c`).
pub(super) unsafe fn share<H: Handle>(handle: *const H, argument: &str) -> Result<Ref<H::Inner>> {
    // SAFETY: as demanded of the caller.
    let object: *const Object<H::Inner> = unsafe { borrow(handle, argument) }?;
    // SAFETY: shared handles come from Arc::into_raw, and the caller's own reference keeps the count above zero.
    unsafe {
        Arc::increment_strong_count(object);
        Ok(Arc::from_raw(object))
    }
}

/// As `share`, with NULL as a legal value.
///
/// # Safety
/// As `share`.
pub(super) unsafe fn share_opt<H: Handle>(handle: *const H, argument: &str) -> Result<Option<Ref<H::Inner>>> {
    if handle.is_null() {
        return Ok(None);
    }
    // SAFETY: as demanded of the caller.
    unsafe { share(handle, argument) }.map(Some)
}

/// The body of every `_retain`.
///
/// # Safety
/// As `share`.
pub(super) unsafe fn retain<H: Handle>(handle: *const H, argument: &str) -> Result<()> {
    // SAFETY: as demanded of the caller.
    std::mem::forget(unsafe { share(handle, argument) }?);
    Ok(())
}

/// The body of every `_release`. NULL does nothing; a handle of another kind is left alone, and so is, in a child of
/// fork, an inherited object: threads that no longer exist may hold the locks around it.
///
/// # Safety
/// As `share`; the caller gives up one reference that it owns.
pub(super) unsafe fn release<H: Handle>(handle: *mut H) {
    // SAFETY: as demanded of the caller; the reference given up is the one that `into_c` made.
    if let Ok(Some(object)) = unsafe { borrow_opt(handle.cast_const(), "handle") } {
        // SAFETY: made by Arc::into_raw in `into_c`.
        drop(unsafe { Arc::from_raw(std::ptr::from_ref(object)) });
    }
}

/// As `release`, for objects that may hold the last reference to a pool: finishes the pool's end if it comes now.
///
/// # Safety
/// As `release`.
pub(super) unsafe fn release_with_pool<H: Handle>(
    handle: *mut H,
    pool: impl FnOnce(&H::Inner) -> Option<&Ref<ThreadPool>>,
) {
    // SAFETY: as demanded of the caller.
    let watch = match unsafe { borrow_opt(handle.cast_const(), "handle") } {
        Ok(Some(object)) => pool(object).and_then(PoolEndWatch::of),
        _ => None,
    };
    // SAFETY: as demanded of the caller.
    unsafe { release(handle) };
    watch.into_iter().for_each(PoolEndWatch::wait);
}

/// Hands out a new shared object; the receiver owns one reference.
pub(super) fn into_c<H: Handle>(object: Ref<H::Inner>, out: &mut *mut H) -> Result<()> {
    heap::check()?;
    *out = Arc::into_raw(object).cast_mut().cast();
    Ok(())
}

/// As `into_c`, for something that has begun: it exists, so its handle is returned in any case. The memory was checked
/// before it began.
pub(super) fn begun_into_c<H: Handle>(object: Ref<H::Inner>, out: &mut *mut H) {
    *out = Arc::into_raw(object).cast_mut().cast();
}

/// The handle of an object that something else keeps alive.
pub(super) fn borrowed_c<H: Handle>(object: &Object<H::Inner>) -> *mut H {
    std::ptr::from_ref(object).cast_mut().cast()
}

/// The handle of an optional object; NULL for none.
pub(super) fn borrowed_opt_c<H: Handle>(object: Option<&Ref<H::Inner>>) -> *mut H {
    object.map_or(std::ptr::null_mut(), |object| borrowed_c(object))
}

/// Hands out a new exclusively owned object.
pub(super) fn into_owned_c<H: Handle>(inner: H::Inner, out: &mut *mut H) -> Result<()> {
    let object = Box::new(Object::new(inner));
    heap::check()?;
    *out = Box::into_raw(object).cast();
    Ok(())
}

/// The body of every `_destroy`. NULL does nothing; a handle of another kind is left alone, and so are inherited
/// objects, as by `release`.
///
/// # Safety
/// `handle` is NULL or came from `into_owned_c`, and nobody uses it any more.
pub(super) unsafe fn destroy<H: Handle>(handle: *mut H) {
    // SAFETY: as demanded of the caller.
    if let Ok(Some(_)) = unsafe { borrow_opt(handle.cast_const(), "handle") } {
        // SAFETY: made by Box::into_raw in `into_owned_c`.
        drop(unsafe { Box::from_raw(handle.cast::<Object<H::Inner>>()) });
    }
}

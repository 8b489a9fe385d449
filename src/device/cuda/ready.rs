//! A call's prepared launches: launching it again only calls the driver.

use super::context::Context;
use super::downcast::downcast;
use super::grid::{Arguments, LaunchGrid};
use super::stream::CudaStream;
use crate::base::{Error, Result};
use crate::device::PreparedLaunch;
use smallvec::SmallVec;
use std::any::Any;
use std::ffi::c_void;
use std::sync::Arc;

/// The alignment of storage, as of the parameters of the library's own kernels.
type Block = u128;

#[derive(Debug)]
pub(super) struct Ready {
    context: Arc<Context>,
    launches: SmallVec<[KeptLaunch; 1]>,
    /// The number in use; the rest are of earlier calls.
    count: usize,
}

/// One launch. Its places are in its storage, or in the kernel.
#[derive(Debug)]
struct KeptLaunch {
    grid: LaunchGrid,
    places: SmallVec<[*mut c_void; 8]>,
    storage: LaunchStorage,
}

// SAFETY: the pointers are to memory of this one, or of a kernel, that nobody writes to while it can be launched; a
// function is an opaque name.
unsafe impl Send for KeptLaunch {}
// SAFETY: as above; only the driver reads it.
unsafe impl Sync for KeptLaunch {}

impl PreparedLaunch for Ready {}

/// Bytes at a stable address.
#[derive(Debug)]
struct LaunchStorage(*mut [Block]);

impl LaunchStorage {
    fn new(bytes: usize) -> LaunchStorage {
        LaunchStorage(Box::into_raw(vec![0; bytes.div_ceil(size_of::<Block>())].into_boxed_slice()))
    }

    /// Stores these bytes; returns their address.
    fn put(&mut self, bytes: &[u8]) -> *mut u8 {
        if self.0.len() * size_of::<Block>() < bytes.len() {
            *self = LaunchStorage::new(bytes.len());
        }
        let own = self.0.cast::<u8>();
        // SAFETY: there is enough room, which nobody else uses.
        unsafe { own.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        own
    }
}

impl Drop for LaunchStorage {
    fn drop(&mut self) {
        // SAFETY: from a box, and not shared.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

impl Ready {
    pub(super) fn new(context: &Arc<Context>) -> Ready {
        Ready { context: Arc::clone(context), launches: SmallVec::new(), count: 0 }
    }

    /// A launch prepared by a stream of this context.
    #[inline]
    pub(super) fn of<'a>(prepared: &'a dyn PreparedLaunch, context: &Arc<Context>) -> Result<&'a Ready> {
        let ready = downcast::<Ready>(prepared);
        let ready = ready.filter(|ready| Arc::ptr_eq(&ready.context, context));
        ready.ok_or_else(|| Error::internal("a device was given a call that another one has prepared"))
    }

    /// A former one without its launches, for another call in this context.
    pub(super) fn emptied(before: Box<dyn PreparedLaunch>, context: &Arc<Context>) -> Option<Box<Ready>> {
        let mut ready = (before as Box<dyn Any>).downcast::<Ready>().ok()?;
        ready.count = 0;
        Some(ready).filter(|ready| Arc::ptr_eq(&ready.context, context))
    }

    /// Appends a launch.
    pub(super) fn push(&mut self, grid: &LaunchGrid, arguments: &Arguments<'_>) {
        if self.count == self.launches.len() {
            self.launches.push(KeptLaunch {
                grid: grid.clone(),
                places: SmallVec::new(),
                storage: LaunchStorage::new(0),
            });
        }
        let kept = &mut self.launches[self.count];
        self.count += 1;
        kept.grid = grid.clone();
        let given = arguments.storage;
        let own = kept.storage.put(given);
        let place = |&place: &*mut c_void| match place.addr().checked_sub(given.as_ptr().addr()) {
            Some(offset) if offset < given.len() => own.wrapping_add(offset).cast(),
            _ => place,
        };
        kept.places.clear();
        kept.places.extend(arguments.places.iter().map(place));
    }

    #[inline]
    pub(super) fn issue(&self, stream: &CudaStream, name: &str) -> Result<()> {
        let launches = &self.launches[..self.count];
        launches.iter().try_for_each(|kept| stream.launch_on(&name, &kept.grid, &kept.places))
    }
}

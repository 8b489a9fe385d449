//! A call's launches as the driver takes them, kept: who launches it again has no more to do than to call the driver.

use super::context::Context;
use super::downcast::downcast;
use super::grid::{Arguments, Grid};
use super::stream::CudaStream;
use crate::base::{Error, Result};
use crate::device::PreparedLaunch;
use smallvec::SmallVec;
use std::any::Any;
use std::ffi::c_void;
use std::sync::Arc;

/// What storage is aligned to: the parameters of the library's own kernels are.
type Block = u128;

#[derive(Debug)]
pub(super) struct Ready {
    context: Arc<Context>,
    launches: SmallVec<[Kept; 1]>,
    /// How many of them there are; the rest are of earlier calls.
    count: usize,
}

/// One launch. Its places are in its storage, or in the kernel.
#[derive(Debug)]
struct Kept {
    grid: Grid,
    places: SmallVec<[*mut c_void; 8]>,
    storage: Storage,
}

// SAFETY: the places are of memory that is this one's own, or a kernel's, and that nobody writes to while it can be
// launched; a function is a name.
unsafe impl Send for Kept {}
// SAFETY: as above; all that is done with one is to have the driver read it.
unsafe impl Sync for Kept {}

impl PreparedLaunch for Ready {}

/// Bytes that stay where they are, however this moves.
#[derive(Debug)]
struct Storage(*mut [Block]);

impl Storage {
    fn new(bytes: usize) -> Storage {
        Storage(Box::into_raw(vec![0; bytes.div_ceil(size_of::<Block>())].into_boxed_slice()))
    }

    /// Where these bytes are from now on.
    fn put(&mut self, bytes: &[u8]) -> *mut u8 {
        if self.0.len() * size_of::<Block>() < bytes.len() {
            *self = Storage::new(bytes.len());
        }
        let own = self.0.cast::<u8>();
        // SAFETY: there is as much room, which is nobody else's.
        unsafe { own.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        own
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        // SAFETY: a box's, and nobody else's.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

impl Ready {
    pub(super) fn new(context: &Arc<Context>) -> Ready {
        Ready { context: Arc::clone(context), launches: SmallVec::new(), count: 0 }
    }

    /// What a stream of this context has prepared.
    #[inline]
    pub(super) fn of<'a>(prepared: &'a dyn PreparedLaunch, context: &Arc<Context>) -> Result<&'a Ready> {
        let ready = downcast::<Ready>(prepared);
        let ready = ready.filter(|ready| Arc::ptr_eq(&ready.context, context));
        ready.ok_or_else(|| Error::internal("a device was given a call that another one has prepared"))
    }

    /// One of before without its launches, for another call in this context.
    pub(super) fn emptied(before: Box<dyn PreparedLaunch>, context: &Arc<Context>) -> Option<Box<Ready>> {
        let mut ready = (before as Box<dyn Any>).downcast::<Ready>().ok()?;
        ready.count = 0;
        Some(ready).filter(|ready| Arc::ptr_eq(&ready.context, context))
    }

    /// One more launch, behind those before.
    pub(super) fn push(&mut self, grid: &Grid, arguments: &Arguments<'_>) {
        if self.count == self.launches.len() {
            self.launches.push(Kept { grid: grid.clone(), places: SmallVec::new(), storage: Storage::new(0) });
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

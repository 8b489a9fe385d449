//! The source of an engine's memory: the process, or a host-provided allocator.

use super::process;
use super::tag::Tag;
use crate::abi::weir_allocator_vtable;
use crate::base::object::tag;
use crate::base::{Code, Error, Kind, Ref, Result, live};
use crate::sync::{ambient, fork};
use std::ffi::c_void;
use std::fmt::Debug;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering::*};

/// A source of memory regions. No lock is held during these calls, and several may run at once.
///
/// # Safety
/// Memory from `allocate` is valid and exclusively the caller's until it is given back.
pub unsafe trait Source: Send + Sync + Debug {
    /// The address of `bytes` bytes, a multiple of `alignment`. The error says what was wrong with the source, as words
    /// to follow the name of the requester. `what` is for texts of the source's own.
    fn allocate(&self, bytes: usize, alignment: usize, what: &Tag) -> Result<usize>;

    /// Takes back memory from `allocate`, with the same arguments.
    ///
    /// # Safety
    /// The memory came from `allocate` with these arguments, and nothing uses it any more.
    unsafe fn deallocate(&self, address: usize, bytes: usize, alignment: usize);

    /// Keeps at most this many bytes of returned memory.
    fn trim(&self, _keep: usize) {}

    /// Whether memory from `allocate` is zero.
    fn is_zeroed(&self) -> bool;

    /// Fills memory from `allocate` with zeros, before this returns.
    ///
    /// # Safety
    /// At least this much memory came from `allocate`, and nothing else uses it meanwhile.
    unsafe fn fill_zero(&self, address: usize, bytes: usize) -> Result<()>;
}

/// The memory of the process.
#[derive(Debug)]
pub struct ProcessMemory;

fn no_more() -> Error {
    Error::new(Code::ResourceExhausted, "the system has no more memory")
}

// SAFETY: memory of the process's allocator.
unsafe impl Source for ProcessMemory {
    fn allocate(&self, bytes: usize, alignment: usize, _: &Tag) -> Result<usize> {
        process::allocate_zeroed(bytes, alignment).map(|data| data.expose_provenance().get()).ok_or_else(no_more)
    }

    unsafe fn deallocate(&self, address: usize, bytes: usize, alignment: usize) {
        let Some(data) = NonNull::new(std::ptr::with_exposed_provenance_mut(address)) else { return };
        // SAFETY: passed on.
        unsafe { process::deallocate(data, bytes, alignment) }
    }

    fn is_zeroed(&self) -> bool {
        true
    }

    unsafe fn fill_zero(&self, address: usize, bytes: usize) -> Result<()> {
        // SAFETY: as demanded of the caller; the host can access it.
        unsafe { fill_zero(address, bytes) };
        Ok(())
    }
}

/// # Safety
/// As of `Source::fill_zero`, and the host can access the memory.
unsafe fn fill_zero(address: usize, bytes: usize) {
    // SAFETY: as demanded of the caller.
    unsafe { std::ptr::with_exposed_provenance_mut::<u8>(address).write_bytes(0, bytes) }
}

/// A host-provided allocator.
#[derive(Debug)]
pub struct HostAllocator {
    vtable: weir_allocator_vtable,
    ctx: *mut c_void,
    /// The alignment that `allocate` guarantees.
    alignment: usize,
    /// Set when `ctx` becomes the library's to release.
    adopted: AtomicBool,
}

// SAFETY: the host promises that its functions may be called from any thread, several at a time.
unsafe impl Send for HostAllocator {}
// SAFETY: as above.
unsafe impl Sync for HostAllocator {}

impl Kind for HostAllocator {
    const TAG: u32 = tag::ALLOCATOR;
    const NAME: &'static str = "allocator";
    const COUNTER: live::Counter = live::Counter::Allocators;
}

impl HostAllocator {
    /// # Safety
    /// The functions follow the contract of `weir_allocator_vtable`, for as long as this lives.
    pub unsafe fn new(vtable: weir_allocator_vtable, ctx: *mut c_void) -> Result<HostAllocator> {
        if vtable.allocate.is_none() {
            return Err(Error::invalid("vtable->allocate is NULL"));
        }
        if vtable.deallocate.is_none() {
            return Err(Error::invalid("vtable->deallocate is NULL"));
        }
        if vtable.flags != 0 {
            return Err(Error::invalid(format!("vtable->flags has unknown bits: {:#x}", vtable.flags)));
        }
        let alignment = vtable.alignment.max(1);
        if !alignment.is_power_of_two() || alignment > MOST_ALIGNED {
            return Err(Error::invalid(format!(
                "vtable->alignment is {alignment}, expected 0 or a power of two up to {MOST_ALIGNED}"
            )));
        }
        Ok(HostAllocator { vtable, ctx, alignment, adopted: AtomicBool::new(false) })
    }

    /// From now on the library releases the context. ORDERING: Release pairs with the Acquire in `drop`.
    pub fn adopt(&self) {
        self.adopted.store(true, Release);
    }

    /// The alignment of every address that it returns, regardless of the request.
    pub fn alignment(&self) -> usize {
        self.alignment
    }

    /// # Safety
    /// Memory from the host's `allocate`, which nothing uses any more.
    unsafe fn give_back(&self, data: *mut c_void, bytes: usize, alignment: usize) {
        if let Some(deallocate) = self.vtable.deallocate {
            // SAFETY: the host's function with its own context, for what its `allocate` gave.
            ambient::call(|| unsafe { deallocate(self.ctx, data, bytes, alignment) });
        }
    }
}

/// Largest alignment that an allocator may guarantee: a large page.
const MOST_ALIGNED: usize = 2 << 20;

impl Drop for HostAllocator {
    fn drop(&mut self) {
        if let Some(release) = self.vtable.release.filter(|_| self.adopted.load(Acquire) && !fork::forked()) {
            // SAFETY: the host's function with its own context, once.
            ambient::call(|| unsafe { release(self.ctx) });
        }
    }
}

// SAFETY: by the contract of `weir_allocator_vtable`, as `new` demands.
unsafe impl Source for Ref<HostAllocator> {
    fn allocate(&self, bytes: usize, alignment: usize, _: &Tag) -> Result<usize> {
        let Some(allocate) = self.vtable.allocate else {
            return Err(Error::internal("an allocator without functions"));
        };
        // SAFETY: the host's function with its own context.
        let data = ambient::call(|| unsafe { allocate(self.ctx, bytes, alignment) });
        if data.is_null() {
            return Err(Error::new(Code::ResourceExhausted, "the host's allocator has no more memory"));
        }
        if !data.addr().is_multiple_of(alignment) {
            // SAFETY: just allocated, and not handed out.
            unsafe { self.give_back(data, bytes, alignment) };
            return Err(Error::new(
                Code::Internal,
                format!("the host's allocator gave {data:p}, which is not aligned to {alignment} bytes"),
            ));
        }
        Ok(data.expose_provenance())
    }

    unsafe fn deallocate(&self, address: usize, bytes: usize, alignment: usize) {
        // SAFETY: as demanded of the caller.
        unsafe { self.give_back(std::ptr::with_exposed_provenance_mut(address), bytes, alignment) };
    }

    fn is_zeroed(&self) -> bool {
        false
    }

    unsafe fn fill_zero(&self, address: usize, bytes: usize) -> Result<()> {
        // SAFETY: as demanded of the caller; the host can access it.
        unsafe { fill_zero(address, bytes) };
        Ok(())
    }
}

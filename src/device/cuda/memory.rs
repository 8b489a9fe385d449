//! Memory of a device.
//!
//! An engine's pool (`memory::Pool`) allocates regions of a megabyte and more here, or each block in its mode "direct".
//! Regions come from a pool of the driver's if it has them: freeing one there does not wait for the device. The
//! driver's pool keeps freed memory mapped for reuse until it is trimmed, or until another engine of the device runs
//! out of memory.
//!
//! *Other devices.* Memory is accessible from each other open device, where the machine supports that. Else the driver
//! stages copies between the two through host memory. `cuCtxEnablePeerAccess` does not apply to memory of pools, which
//! have `cuMemPoolSetAccess`, so there are two ways.

use super::context::{Context, Handle};
use super::status;
use super::table::{CUdeviceptr, CUmemAccessDesc, CUmemPoolProps, CUmemoryPool, CUstream};
use crate::base::{Code, Error, Result};
use crate::sync::Mutex;
use cudarc::driver::sys;
use std::ffi::{c_int, c_uint};
use std::sync::{Arc, Weak};

/// The driver's guaranteed alignment.
pub(super) const ALIGNMENT: usize = 256;

#[derive(Debug)]
pub(super) struct CudaMemory {
    context: Arc<Context>,
    pooled: Option<Pooled>,
}

/// A pool of the driver's, and the stream in which memory is allocated and freed.
#[derive(Debug)]
struct Pooled {
    pool: Handle<CUmemoryPool>,
    stream: Handle<CUstream>,
    /// One thread at a time waits for the stream.
    turn: Mutex<()>,
}

/// The memory of each open device.
static OPEN: Mutex<Vec<Weak<CudaMemory>>> = Mutex::new(Vec::new());

impl CudaMemory {
    pub(super) fn new(context: &Arc<Context>) -> Result<Arc<CudaMemory>> {
        let memory = Arc::new(CudaMemory { context: Arc::clone(context), pooled: Pooled::new(context)? });
        let mut open = OPEN.lock();
        open.retain(|other| other.strong_count() > 0);
        for other in open.iter().filter_map(Weak::upgrade) {
            memory.let_in(&other.context);
            other.let_in(&memory.context);
        }
        open.push(Arc::downgrade(&memory));
        Ok(memory)
    }

    /// Gives another device access to this memory. Copies work without, so a failure is ignored.
    fn let_in(&self, other: &Context) {
        let (device, what) = (self.context.device(), &"memory of another device");
        let mut can = 0;
        let asked = other.call("cuDeviceCanAccessPeer", what, |table| {
            // SAFETY: the driver's function, and a place for the answer.
            unsafe { (table.device_can_access_peer)(&raw mut can, other.device(), device) }
        });
        if asked.is_err() || can == 0 || device == other.device() {
            return;
        }
        let rights = access(other.device());
        let _ = match &self.pooled {
            Some(pooled) => self.context.call("cuMemPoolSetAccess", what, |table| match table.mem_pool_set_access {
                // SAFETY: the driver's function with a pool of this context, and what lives during the call.
                Some(set) => unsafe { set(pooled.pool.0, &raw const rights, 1) },
                None => status::SUCCESS,
            }),
            None => other.call("cuCtxEnablePeerAccess", what, |table| {
                // SAFETY: the driver's function with the context of another device.
                match unsafe { (table.ctx_enable_peer_access)(self.context.raw(), 0) } {
                    status::PEER_ACCESS_ALREADY_ENABLED => status::SUCCESS,
                    status => status,
                }
            }),
        };
    }

    /// Whether the driver's pools are used.
    pub(super) fn is_pooled(&self) -> bool {
        self.pooled.is_some()
    }

    pub(super) fn allocate(&self, bytes: usize, what: &str) -> Result<usize> {
        let (context, wanted) = (&*self.context, bytes.max(1));
        let short = |error: Error| match error.code() {
            Code::ResourceExhausted => error.within(format_args!("{what} needs {bytes} bytes")),
            _ => error,
        };
        let mut address: CUdeviceptr = 0;
        match &self.pooled {
            None => context
                .call("cuMemAlloc", &"memory", |table| {
                    // SAFETY: the driver's function, and a place for the answer.
                    unsafe { (table.mem_alloc)(&raw mut address, wanted) }
                })
                .map_err(short)?,
            Some(pooled) => {
                let mut allocated = pooled.allocate(context, wanted, &mut address);
                if allocated.as_ref().is_err_and(|error| error.code() == Code::ResourceExhausted) {
                    self.trim_all();
                    allocated = pooled.allocate(context, wanted, &mut address);
                }
                allocated.map_err(short)?;
            }
        }
        match usize::try_from(address) {
            Ok(at) if at != 0 && at.is_multiple_of(ALIGNMENT) => Ok(at),
            _ => {
                self.deallocate(address);
                Err(Error::new(
                    Code::Unknown,
                    format!("the driver gave {address:#x}, expected a multiple of {ALIGNMENT}"),
                ))
            }
        }
    }

    /// An otherwise unused stream, if there is one.
    pub(super) fn stream(&self) -> Option<CUstream> {
        self.pooled.as_ref().map(|pooled| pooled.stream.0)
    }

    /// Returns freed memory to the driver, except for `keep` bytes.
    pub(super) fn trim(&self, keep: usize) {
        if let Some(pooled) = &self.pooled {
            pooled.trim(&self.context, keep);
        }
    }

    /// The same for all open memory of the device.
    fn trim_all(&self) {
        let others: Vec<_> = OPEN.lock().iter().filter_map(Weak::upgrade).collect();
        others.iter().filter(|other| other.context.device() == self.context.device()).for_each(|other| other.trim(0));
    }

    pub(super) fn deallocate(&self, address: CUdeviceptr) {
        self.deallocate_behind(address, None);
    }

    /// The same, in order behind the work of a stream of the context, if one is given.
    pub(super) fn deallocate_behind(&self, address: CUdeviceptr, stream: Option<CUstream>) {
        match &self.pooled {
            // It waits for the device. SAFETY: the driver's function with its own memory, for which no more work is
            // issued.
            None => self.context.take_back("cuMemFree", |table| unsafe { (table.mem_free)(address) }),
            Some(pooled) => self.context.take_back("cuMemFreeAsync", |table| match table.mem_free_async {
                // SAFETY: as above.
                Some(free) => unsafe { free(address, stream.unwrap_or(pooled.stream.0)) },
                None => status::SUCCESS,
            }),
        }
    }
}

impl Pooled {
    /// None where the driver or the device has no pools.
    fn new(context: &Arc<Context>) -> Result<Option<Pooled>> {
        let (driver, table) = (context.driver(), context.table());
        let (Some(create), Some(_), Some(_), Some(_)) =
            (table.mem_pool_create, table.mem_pool_destroy, table.mem_alloc_from_pool_async, table.mem_free_async)
        else {
            return Ok(None);
        };
        let supported = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED;
        if driver.attribute(context.device(), supported)? == 0 {
            return Ok(None);
        }
        let mut pool = std::ptr::null_mut();
        let properties = properties(context.device());
        context.call("cuMemPoolCreate", &"memory", |_| {
            // SAFETY: the driver's function; the properties live during the call.
            unsafe { create(&raw mut pool, &raw const properties) }
        })?;
        let mut stream = std::ptr::null_mut();
        let flags = sys::CUstream_flags_enum::CU_STREAM_NON_BLOCKING as c_uint;
        let made = context.call("cuStreamCreateWithPriority", &"memory", |table| {
            // SAFETY: the driver's function, and a place for the answer.
            unsafe { (table.stream_create_with_priority)(&raw mut stream, flags, 0) }
        });
        let pooled = Pooled { pool: Handle(pool), stream: Handle(stream), turn: Mutex::default() };
        pooled.keep_all(context);
        if made.is_err() {
            pooled.end(context);
        }
        made.map(|()| Some(pooled))
    }

    fn allocate(&self, context: &Context, bytes: usize, address: &mut CUdeviceptr) -> Result<()> {
        let _turn = self.turn.lock();
        context.call("cuMemAllocFromPoolAsync", &"memory", |table| match table.mem_alloc_from_pool_async {
            // SAFETY: the driver's function with objects of this context, and a place for the answer.
            Some(allocate) => unsafe { allocate(address, bytes, self.pool.0, self.stream.0) },
            None => status::OUT_OF_MEMORY,
        })?;
        // Then every stream may use it. Nothing else is in this stream.
        let there = context.call("cuStreamSynchronize", &"memory", |table| {
            // SAFETY: the driver's function with a stream of this context.
            unsafe { (table.stream_synchronize)(self.stream.0) }
        });
        if there.is_err() {
            context.take_back("cuMemFreeAsync", |table| match table.mem_free_async {
                // SAFETY: the driver's function with memory that it gave just now.
                Some(free) => unsafe { free(*address, self.stream.0) },
                None => status::SUCCESS,
            });
        }
        there
    }

    /// Makes the pool keep all freed memory. If it cannot, that only costs time.
    fn keep_all(&self, context: &Context) {
        let which = sys::CUmemPool_attribute_enum::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD as c_int;
        let mut bytes = u64::MAX;
        context.take_back("cuMemPoolSetAttribute", |table| match table.mem_pool_set_attribute {
            // SAFETY: the driver's function with a pool of this context, and a 64-bit number as this attribute is.
            Some(set) => unsafe { set(self.pool.0, which, (&raw mut bytes).cast()) },
            None => status::SUCCESS,
        });
    }

    fn trim(&self, context: &Context, keep: usize) {
        // Freed memory returns to the pool when the stream has reached that point. SAFETY: the driver's function with a
        // stream of this context.
        context.take_back("cuStreamSynchronize", |table| unsafe { (table.stream_synchronize)(self.stream.0) });
        context.take_back("cuMemPoolTrimTo", |table| match table.mem_pool_trim_to {
            // SAFETY: the driver's function with a pool of this context.
            Some(trim) => unsafe { trim(self.pool.0, keep) },
            None => status::SUCCESS,
        });
    }

    fn end(&self, context: &Context) {
        if !self.stream.0.is_null() {
            // SAFETY: the driver's function with a stream of this context; all frees in it are done.
            context.take_back("cuStreamSynchronize", |table| unsafe { (table.stream_synchronize)(self.stream.0) });
            // SAFETY: as above; nobody uses it any more.
            context.take_back("cuStreamDestroy", |table| unsafe { (table.stream_destroy)(self.stream.0) });
        }
        context.take_back("cuMemPoolDestroy", |table| match table.mem_pool_destroy {
            // SAFETY: the driver's function with a pool whose memory was given back.
            Some(destroy) => unsafe { destroy(self.pool.0) },
            None => status::SUCCESS,
        });
    }
}

/// A pool of ordinary memory of the device's.
fn properties(device: c_int) -> CUmemPoolProps {
    CUmemPoolProps {
        allocType: sys::CUmemAllocationType_enum::CU_MEM_ALLOCATION_TYPE_PINNED,
        handleTypes: sys::CUmemAllocationHandleType_enum::CU_MEM_HANDLE_TYPE_NONE,
        location: sys::CUmemLocation { type_: sys::CUmemLocationType_enum::CU_MEM_LOCATION_TYPE_DEVICE, id: device },
        win32SecurityAttributes: std::ptr::null_mut(),
        maxSize: 0,
        usage: 0,
        reserved: [0; 54],
    }
}

/// Reading and writing by a device.
fn access(device: c_int) -> CUmemAccessDesc {
    CUmemAccessDesc {
        location: sys::CUmemLocation { type_: sys::CUmemLocationType_enum::CU_MEM_LOCATION_TYPE_DEVICE, id: device },
        flags: sys::CUmemAccess_flags_enum::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
    }
}

impl Drop for CudaMemory {
    fn drop(&mut self) {
        if let Some(pooled) = &self.pooled {
            pooled.end(&self.context);
        }
    }
}

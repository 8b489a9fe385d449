//! Pinned host memory for direct copies of every context.

use super::context::Context;
use crate::base::{Code, Error, Result};
use crate::device::Pinning;
use std::ffi::c_uint;
use std::sync::Arc;

/// CU_MEMHOSTALLOC_PORTABLE and CU_MEMHOSTREGISTER_PORTABLE: pinned for all contexts.
const PORTABLE: c_uint = 1;

#[derive(Debug)]
pub(super) struct CudaHostMemory(pub Arc<Context>);

impl Pinning for CudaHostMemory {
    fn allocate_host(&self, bytes: usize, what: &str) -> Result<usize> {
        let (mut memory, wanted) = (std::ptr::null_mut(), bytes.max(1));
        let allocated = self.0.call("cuMemHostAlloc", &"pinned memory", |table| {
            // SAFETY: the driver's function, and a place for the answer.
            unsafe { (table.mem_host_alloc)(&raw mut memory, wanted, PORTABLE) }
        });
        allocated.map_err(|error| match error.code() {
            Code::ResourceExhausted => error.within(format_args!("{what} needs {bytes} bytes")),
            _ => error,
        })?;
        if memory.is_null() {
            return Err(Error::new(Code::Unknown, "cuMemHostAlloc gave no memory and no error"));
        }
        Ok(memory.expose_provenance())
    }

    fn deallocate_host(&self, address: usize, _bytes: usize) {
        let memory = std::ptr::with_exposed_provenance_mut(address);
        // SAFETY: the driver's function with memory of its own that nobody uses any more.
        self.0.take_back("cuMemFreeHost", |table| unsafe { (table.mem_free_host)(memory) });
    }

    fn can_register(&self) -> bool {
        true
    }

    fn register(&self, address: usize, bytes: usize, what: &str) -> Result<()> {
        let memory = std::ptr::with_exposed_provenance_mut(address);
        self.0.call("cuMemHostRegister", &what, |table| {
            // SAFETY: the driver's function; the memory is there until `unregister`, which is the caller's duty.
            unsafe { (table.mem_host_register)(memory, bytes, PORTABLE) }
        })
    }

    fn unregister(&self, address: usize, _bytes: usize) {
        let memory = std::ptr::with_exposed_provenance_mut(address);
        // SAFETY: the driver's function with memory that was registered.
        self.0.take_back("cuMemHostUnregister", |table| unsafe { (table.mem_host_unregister)(memory) });
    }
}

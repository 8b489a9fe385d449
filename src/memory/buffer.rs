//! Aligned, zeroed memory of a user-chosen size: the allocation may fail.

use super::process;
use crate::base::{Error, Result};
use std::ptr::NonNull;

/// Alignment of everything that the CPU engine allocates: a cache line, and the widest vector register.
pub const ALIGNMENT: usize = 64;

/// Owned memory, aligned to `ALIGNMENT`.
#[derive(Debug)]
pub struct AlignedBuffer {
    data: NonNull<u8>,
    bytes: usize,
}

// SAFETY: plain memory without an owner thread; the code that hands out pointers to it states who may read and write it
// when.
unsafe impl Send for AlignedBuffer {}
// SAFETY: as above.
unsafe impl Sync for AlignedBuffer {}

impl AlignedBuffer {
    /// `bytes` zero bytes; `what` names them in the error.
    pub fn zeroed(bytes: usize, what: &str) -> Result<AlignedBuffer> {
        let data = process::allocate_zeroed(bytes.max(1), ALIGNMENT).ok_or_else(|| Error::exhausted(what, bytes))?;
        Ok(AlignedBuffer { data, bytes })
    }

    pub fn data(&self) -> *mut u8 {
        self.data.as_ptr()
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The address at `offset` bytes.
    pub fn at(&self, offset: usize) -> *mut u8 {
        assert!(offset <= self.bytes, "offset {offset} in a buffer of {} bytes", self.bytes);
        // SAFETY: within the allocation or one past its end.
        unsafe { self.data.as_ptr().add(offset) }
    }
}

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        // SAFETY: allocated in `zeroed` with these arguments, and nothing uses it any more.
        unsafe { process::deallocate(self.data, self.bytes.max(1), ALIGNMENT) }
    }
}

//! Memory between the tensors of a call and the transport.
//!
//! An operation's inputs are copied here when it begins, and its outputs are copied from here when it is over.
//! So a transport that was given up, and that may read and write for a while yet, touches no tensor and no memory of a
//! later run: the memory is kept for good.

use crate::base::Result;
use crate::memory::AlignedBuffer;
use std::ops::Range;

/// Bytes with an address that stays.
#[derive(Debug)]
pub struct Staging(AlignedBuffer);

impl Staging {
    pub fn new(bytes: usize) -> Result<Staging> {
        AlignedBuffer::zeroed(bytes, "the memory of a communication").map(Staging)
    }

    pub fn bytes(&self) -> usize {
        self.0.bytes()
    }

    /// The address of a range, which is inside.
    pub fn at(&self, range: &Range<usize>) -> *mut u8 {
        assert!(range.start <= range.end && range.end <= self.0.bytes(), "{range:?} of {} bytes", self.0.bytes());
        self.0.at(range.start)
    }

    /// The bytes of a range.
    ///
    /// # Safety
    /// Nothing writes them while the result lives: no operation that receives there is open, and no other thread has
    /// the right to `bytes_mut`.
    pub unsafe fn slice(&self, range: &Range<usize>) -> &[u8] {
        // SAFETY: inside of the buffer (`at`), initialised from the beginning; the rest is demanded of the caller.
        unsafe { std::slice::from_raw_parts(self.at(range), range.len()) }
    }

    /// The same for writing.
    ///
    /// # Safety
    /// Nothing else reads or writes them while the result lives.
    #[allow(clippy::mut_from_ref, reason = "the caller vouches for it")]
    pub unsafe fn slice_mut(&self, range: &Range<usize>) -> &mut [u8] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.at(range), range.len()) }
    }
}

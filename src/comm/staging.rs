//! Memory that a transport reads and writes.
//!
//! A block is memory of the operation's own, or stands for a tensor. Then nothing is copied: the tensor is a value of a
//! run, whose memory the operation keeps (`Request`), or the host has promised that it stays. Into its own memory an
//! operation copies its inputs when it begins, and its outputs from there when it is over. Either way a transport that
//! was given up, and that may read and write for a while yet, touches nothing of a later run: what it has is kept.

use crate::base::Result;
use crate::memory::{AlignedBuffer, View};
use crate::sync::OnceLock;
use std::ops::Range;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// Bytes with an address that stays while an operation has them.
#[derive(Debug)]
pub struct Staging {
    bytes: usize,
    /// ORDERING: Relaxed; it changes under the request's lock, before the request is handed to the driver.
    at: AtomicPtr<u8>,
    own: OnceLock<AlignedBuffer>,
}

impl Staging {
    /// Without memory yet: `use_own` or `stands_for` comes before the first use.
    pub fn new(bytes: usize) -> Staging {
        Staging { bytes, at: AtomicPtr::default(), own: OnceLock::new() }
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// From here on it is memory of its own.
    pub fn use_own(&self) -> Result<()> {
        let own = match self.own.get() {
            Some(own) => own,
            None => {
                let _ = self.own.set(AlignedBuffer::zeroed(self.bytes, "the memory of a communication")?);
                return self.use_own();
            }
        };
        self.at.store(own.at(0), Relaxed);
        Ok(())
    }

    /// From here on it is the memory of this tensor, if that is as large.
    pub fn stands_for(&self, tensor: &View) -> bool {
        let is_fit = tensor.bytes() == self.bytes && !tensor.data().is_null();
        if is_fit {
            self.at.store(tensor.data(), Relaxed);
        }
        is_fit
    }

    /// The address of a range, which is inside.
    pub fn at(&self, range: &Range<usize>) -> *mut u8 {
        assert!(range.start <= range.end && range.end <= self.bytes, "{range:?} of {} bytes", self.bytes);
        let at = self.at.load(Relaxed);
        assert!(!at.is_null(), "a block without memory");
        at.wrapping_add(range.start)
    }

    /// The bytes of a range.
    ///
    /// # Safety
    /// Nothing writes them while the result lives: no operation that receives there is open, and no other thread has
    /// the right to `slice_mut`. The tensor that it stands for is alive.
    pub unsafe fn slice(&self, range: &Range<usize>) -> &[u8] {
        // SAFETY: inside of the block (`at`), whose bytes are initialised from the beginning; the rest is demanded of
        // the caller.
        unsafe { std::slice::from_raw_parts(self.at(range), range.len()) }
    }

    /// The same for writing.
    ///
    /// # Safety
    /// Nothing else reads or writes them while the result lives. The tensor that it stands for is alive.
    #[allow(clippy::mut_from_ref, reason = "the caller vouches for it")]
    pub unsafe fn slice_mut(&self, range: &Range<usize>) -> &mut [u8] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.at(range), range.len()) }
    }
}

//! Bytes of the caller's that the library sets to 0 or 1.

/// An address whose validity the caller has guaranteed.
#[derive(Clone, Copy, Debug)]
pub struct Flags {
    data: *mut u8,
    count: usize,
}

// SAFETY: an address; `new` states who may write through it when.
unsafe impl Send for Flags {}
// SAFETY: as above.
unsafe impl Sync for Flags {}

impl Flags {
    /// # Safety
    /// The bytes are there, and nobody else uses them, until the work that fills them is done.
    pub unsafe fn new(data: *mut u8, count: usize) -> Flags {
        Flags { data, count }
    }

    pub fn data(&self) -> *mut u8 {
        self.data
    }

    pub fn count(&self) -> usize {
        self.count
    }

    pub fn set(&self, index: usize, value: bool) {
        assert!(index < self.count, "flag {index} of {}", self.count);
        // SAFETY: in bounds; writable, as the caller of `new` guarantees.
        unsafe { self.data.add(index).write(u8::from(value)) }
    }
}

//! Bytes of the caller's that the library fills with 0 and 1.

/// As a view: safe to use by the rules of the API, which say that the bytes stay alive and the caller's own until the
/// work that fills them is done.
#[derive(Clone, Copy, Debug)]
pub struct Flags {
    data: *mut u8,
    count: usize,
}

// SAFETY: an address; who may write through it when is said above.
unsafe impl Send for Flags {}
// SAFETY: as above.
unsafe impl Sync for Flags {}

impl Flags {
    pub fn new(data: *mut u8, count: usize) -> Flags {
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
        // SAFETY: in bounds; writable by the rules above.
        unsafe { self.data.add(index).write(u8::from(value)) }
    }
}

//! The descriptor of an operation, member by member: `offset_of!` says where each is.
#![forbid(unsafe_code)]

/// A descriptor's bytes. Members beyond their end read as zero.
#[derive(Clone, Copy, Debug)]
pub struct DescriptorBytes<'a>(pub &'a [u8]);

impl DescriptorBytes<'_> {
    fn bytes<const N: usize>(&self, at: usize) -> [u8; N] {
        self.0.get(at..at + N).and_then(|bytes| bytes.try_into().ok()).unwrap_or([0; N])
    }

    pub fn u32(&self, at: usize) -> u32 {
        u32::from_ne_bytes(self.bytes(at))
    }

    pub fn i32(&self, at: usize) -> i32 {
        i32::from_ne_bytes(self.bytes(at))
    }

    pub fn u64(&self, at: usize) -> u64 {
        u64::from_ne_bytes(self.bytes(at))
    }

    pub fn f32(&self, at: usize) -> f32 {
        f32::from_ne_bytes(self.bytes(at))
    }

    pub fn f64(&self, at: usize) -> f64 {
        f64::from_ne_bytes(self.bytes(at))
    }

    /// Whether a pointer is NULL.
    pub fn is_null(&self, at: usize) -> bool {
        usize::from_ne_bytes(self.bytes(at)) == 0
    }

    pub fn i32s<const N: usize>(&self, at: usize) -> [i32; N] {
        std::array::from_fn(|i| self.i32(at + i * size_of::<i32>()))
    }

    pub fn i64s<const N: usize>(&self, at: usize) -> [i64; N] {
        std::array::from_fn(|i| i64::from_ne_bytes(self.bytes(at + i * size_of::<i64>())))
    }
}

//! Keys of kernels in the cache.
#![forbid(unsafe_code)]

use crate::kernel::Kernel;
use std::any::TypeId;
use std::hash::{Hash, Hasher};

/// Maximum number of words for the settings of a kernel: a slice has a begin, an end and a step for each dimension.
const MOST: usize = 32;

/// A kernel that is fully determined by its settings: two of one type with the same settings are the same kernel.
pub trait KernelSettings: Kernel + Sized + 'static {
    /// Adds every setting to the key, in a fixed order. Values beyond a rank or a count are not settings.
    fn settings(&self, key: &mut KernelKey);
}

/// The type of a kernel and its settings, bit by bit.
#[derive(Clone, Debug)]
pub struct KernelKey {
    kind: TypeId,
    words: [u64; MOST],
    len: usize,
    has_identity: bool,
}

impl KernelKey {
    /// The key of a kernel for the devices that `place` distinguishes.
    pub fn of<K: KernelSettings>(place: [u32; 2], kernel: &K) -> KernelKey {
        let mut key = KernelKey { kind: TypeId::of::<K>(), words: [0; MOST], len: 0, has_identity: false };
        key.word(u64::from(place[0]) << 32 | u64::from(place[1]));
        kernel.settings(&mut key);
        key
    }

    pub fn word(&mut self, word: u64) -> &mut KernelKey {
        self.words[self.len] = word;
        self.len += 1;
        self
    }

    pub fn int(&mut self, value: i64) -> &mut KernelKey {
        self.word(value as u64)
    }

    pub fn ints(&mut self, values: &[i64]) -> &mut KernelKey {
        values.iter().fold(self, |key, &value| key.int(value))
    }

    pub fn flag(&mut self, value: bool) -> &mut KernelKey {
        self.word(u64::from(value))
    }

    /// A float by its bits: 0 and -0 are two settings, and a NaN is one like any other.
    pub fn float(&mut self, value: f32) -> &mut KernelKey {
        self.word(u64::from(value.to_bits()))
    }

    pub fn double(&mut self, value: f64) -> &mut KernelKey {
        self.word(value.to_bits())
    }

    /// The identity of an object that the kernel keeps, if it keeps one. The cache then does not keep the kernel (see
    /// there).
    pub fn identity<T>(&mut self, object: Option<&T>) -> &mut KernelKey {
        self.has_identity |= object.is_some();
        self.word(object.map_or(0, |object| std::ptr::from_ref(object) as usize as u64))
    }

    pub(super) fn has_identity(&self) -> bool {
        self.has_identity
    }

    pub(super) fn kind(&self) -> TypeId {
        self.kind
    }

    pub(super) fn words(&self) -> &[u64] {
        &self.words[..self.len]
    }

    pub(super) fn hash(&self) -> u64 {
        let mut mix = Mix(0);
        self.kind.hash(&mut mix);
        self.words().iter().for_each(|&word| mix.write_u64(word));
        mix.finish()
    }
}

impl PartialEq for KernelKey {
    fn eq(&self, other: &KernelKey) -> bool {
        self.kind == other.kind && self.words() == other.words()
    }
}

/// A hash of words: multiplies by an odd factor, and folds in the high half of the product.
struct Mix(u64);

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(u64::from(byte)));
    }

    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word ^ 0x9E37_79B9_7F4A_7C15) * 0xD6E8_FEB8_6659_FD93;
        self.0 = (product ^ product >> 64) as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

//! Keys of kernels in the cache.
#![forbid(unsafe_code)]

use std::any::TypeId;
use std::hash::{Hash, Hasher};

/// Maximum number of words for the settings of a kernel: a slice has a begin, an end and a step for each dimension.
const MOST: usize = 32;

/// The type of a kernel and its settings, bit by bit.
#[derive(Clone, Debug)]
pub struct KernelKey {
    kind: TypeId,
    words: [u64; MOST],
    len: usize,
    has_identity: bool,
}

impl KernelKey {
    /// The key of a kernel of type K with these settings, for the devices that `place` distinguishes. `kept`: the
    /// object that the kernel keeps, if it keeps one. The cache then does not keep the kernel (see there).
    pub fn new<K: 'static, T>(place: [u32; 2], settings: &[u8], kept: Option<&T>) -> KernelKey {
        let mut key = KernelKey { kind: TypeId::of::<K>(), words: [0; MOST], len: 0, has_identity: kept.is_some() };
        key.word(u64::from(place[0]) << 32 | u64::from(place[1]));
        key.word(kept.map_or(0, |object| std::ptr::from_ref(object).addr() as u64));
        for bytes in settings.chunks(8) {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            key.word(u64::from_ne_bytes(word));
        }
        key
    }

    fn word(&mut self, word: u64) {
        self.words[self.len] = word;
        self.len += 1;
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

//! Storages that lie behind one another in the arena, since one message has them all.
#![forbid(unsafe_code)]

use crate::base::{Error, Result};
use crate::memory::ALIGNMENT;
use std::collections::HashMap;

struct Bucket {
    bytes: usize,
    at: Option<usize>,
}

#[derive(Default)]
pub(super) struct Buckets {
    list: Vec<Bucket>,
    /// The bucket of a storage, and where it is there.
    of: HashMap<u32, (usize, usize)>,
}

impl Buckets {
    /// Storages with their bytes, each of which must be whole blocks of the arena. A storage is in one bucket.
    pub fn add(&mut self, storages: &[(u32, usize)]) {
        let are_whole = storages.iter().all(|(_, bytes)| *bytes > 0 && bytes % ALIGNMENT == 0);
        if storages.len() < 2 || !are_whole || storages.iter().any(|(storage, _)| self.has(*storage)) {
            return;
        }
        let (number, mut bytes) = (self.list.len(), 0);
        for &(storage, own) in storages {
            if self.of.insert(storage, (number, bytes)).is_some() {
                // Twice in one message.
                self.of.retain(|_, place| place.0 != number);
                return;
            }
            bytes += own;
        }
        self.list.push(Bucket { bytes, at: None });
    }

    pub fn has(&self, storage: u32) -> bool {
        !self.of.is_empty() && self.of.contains_key(&storage)
    }

    /// The place of a storage; the first one of its bucket takes memory for all.
    pub fn place(&mut self, storage: u32, fresh_at: &mut usize) -> Result<Option<usize>> {
        let Some(&(number, offset)) = self.of.get(&storage) else { return Ok(None) };
        let bucket = &mut self.list[number];
        let at = match bucket.at {
            Some(at) => at,
            None => {
                let at = *fresh_at;
                *fresh_at = at.checked_add(bucket.bytes).ok_or_else(|| Error::out_of_range("a bucket is too large"))?;
                *bucket.at.insert(at)
            }
        };
        Ok(Some(at + offset))
    }
}

//! A hash table with its entries in LRU order. All links are indices into one array.
#![forbid(unsafe_code)]

use super::key::KernelKey;
use crate::kernel::Kernel;
use std::any::TypeId;
use std::sync::{Arc, Weak};

const NONE: u32 = u32::MAX;
/// Maximum number of entries, so that indices fit.
pub const MOST: usize = 1 << 20;
const FIRST: usize = 16;

/// A kernel in the cache.
#[derive(Clone)]
pub enum CachedKernel {
    Kept(Arc<dyn Kernel>),
    /// Weak: alive as long as it has another owner.
    Seen(Weak<dyn Kernel>),
}

impl CachedKernel {
    fn get(&self) -> Option<Arc<dyn Kernel>> {
        match self {
            CachedKernel::Kept(kernel) => Some(Arc::clone(kernel)),
            CachedKernel::Seen(kernel) => kernel.upgrade(),
        }
    }
}

struct CacheEntry {
    hash: u64,
    kind: TypeId,
    words: Box<[u64]>,
    /// `None` in a free entry.
    held: Option<CachedKernel>,
    newer: u32,
    older: u32,
    /// The next entry in the bucket, or the next free one.
    next: u32,
}

impl CacheEntry {
    fn is(&self, key: &KernelKey, hash: u64) -> bool {
        self.hash == hash && self.kind == key.kind() && *self.words == *key.words()
    }
}

pub struct LruTable {
    entries: Vec<CacheEntry>,
    /// The first entry of each bucket, by the low bits of the hash. Their number is a power of two, the capacity of the
    /// entries, or 0.
    buckets: Vec<u32>,
    free: u32,
    newest: u32,
    oldest: u32,
    len: usize,
}

impl LruTable {
    pub const fn new() -> LruTable {
        LruTable { entries: Vec::new(), buckets: Vec::new(), free: NONE, newest: NONE, oldest: NONE, len: 0 }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn find(&self, key: &KernelKey, hash: u64) -> Option<u32> {
        let mut at = *self.buckets.get(self.bucket(hash))?;
        while at != NONE {
            let entry = &self.entries[at as usize];
            if entry.is(key, hash) {
                return Some(at);
            }
            at = entry.next;
        }
        None
    }

    /// The kernel of an entry, which becomes the most recently used; `None` if it is gone.
    pub fn take_up(&mut self, at: u32) -> Option<Arc<dyn Kernel>> {
        let kernel = self.entries[at as usize].held.as_ref()?.get()?;
        if self.newest != at {
            self.leave_order(at);
            self.enter_order(at);
        }
        Some(kernel)
    }

    /// Adds a new entry, the most recently used. Returns the kernel if there is no memory for the entry.
    pub fn insert(
        &mut self,
        key: &KernelKey,
        hash: u64,
        words: Box<[u64]>,
        held: CachedKernel,
    ) -> Result<(), CachedKernel> {
        if self.len >= self.buckets.len() && !self.grow() {
            return Err(held);
        }
        let entry =
            CacheEntry { hash, kind: key.kind(), words, held: Some(held), newer: NONE, older: NONE, next: NONE };
        let at = self.free;
        let at = if at == NONE {
            self.entries.push(entry); // `grow` made room.
            (self.entries.len() - 1) as u32
        } else {
            self.free = std::mem::replace(&mut self.entries[at as usize], entry).next;
            at
        };
        self.enter_bucket(at);
        self.enter_order(at);
        self.len += 1;
        Ok(())
    }

    pub fn remove(&mut self, at: u32) -> Option<CachedKernel> {
        let bucket = self.bucket(self.entries[at as usize].hash);
        let next = self.entries[at as usize].next;
        let mut before = self.buckets[bucket];
        if before == at {
            self.buckets[bucket] = next;
        } else {
            while self.entries[before as usize].next != at {
                before = self.entries[before as usize].next;
            }
            self.entries[before as usize].next = next;
        }
        self.leave_order(at);
        let entry = &mut self.entries[at as usize];
        entry.next = self.free;
        self.free = at;
        self.len -= 1;
        entry.words = Box::default();
        entry.held.take()
    }

    /// Removes the least recently used entry.
    pub fn remove_oldest(&mut self) -> Option<CachedKernel> {
        if self.oldest == NONE { None } else { self.remove(self.oldest) }
    }

    fn bucket(&self, hash: u64) -> usize {
        // Without buckets: an invalid index.
        hash as usize & self.buckets.len().wrapping_sub(1)
    }

    /// Doubles the capacity; false if there is no memory.
    fn grow(&mut self) -> bool {
        let room = (2 * self.buckets.len()).max(FIRST);
        let more = room - self.entries.len();
        let mut buckets: Vec<u32> = Vec::new();
        if buckets.try_reserve_exact(room).is_err() || self.entries.try_reserve_exact(more).is_err() {
            return false;
        }
        buckets.resize(room, NONE);
        self.buckets = buckets;
        // It grows only when every entry is in use.
        (0..self.entries.len() as u32).for_each(|at| self.enter_bucket(at));
        true
    }

    fn enter_bucket(&mut self, at: u32) {
        let bucket = self.bucket(self.entries[at as usize].hash);
        self.entries[at as usize].next = std::mem::replace(&mut self.buckets[bucket], at);
    }

    fn enter_order(&mut self, at: u32) {
        let entry = &mut self.entries[at as usize];
        (entry.newer, entry.older) = (NONE, self.newest);
        match self.newest {
            NONE => self.oldest = at,
            newest => self.entries[newest as usize].newer = at,
        }
        self.newest = at;
    }

    fn leave_order(&mut self, at: u32) {
        let CacheEntry { newer, older, .. } = self.entries[at as usize];
        match newer {
            NONE => self.newest = older,
            newer => self.entries[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.entries[older as usize].newer = newer,
        }
    }
}

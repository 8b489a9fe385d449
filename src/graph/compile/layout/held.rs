//! Free memory, and shares of memory that is not yet free, on their way along the edges (`memory`).
#![forbid(unsafe_code)]

use crate::graph::plan::arena::{FreeBlocks, cut};
use smallvec::SmallVec;

/// How many free blocks a node looks at, and how many shares of unfinished storages it carries: bounds that keep
/// compile linear. Memory beyond is not used again.
pub(super) const WINDOW: usize = 64;

/// The memory that predecessors gave to a node.
#[derive(Default)]
pub(super) struct HeldMemory {
    pub free: FreeBlocks<()>,
    /// Storages and the number of their shares, by storage.
    pub shares: SmallVec<[(u32, u32); 2]>,
}

// Most nodes hold a block or two shares: that takes no more memory than the two lists do anyway.
const _: () = assert!(size_of::<HeldMemory>() == 2 * size_of::<Vec<u8>>());

impl HeldMemory {
    /// Adds a reader's own share of a storage that has `all`; true if these are all.
    pub fn has_all(&mut self, storage: u32, all: u32) -> bool {
        let at = self.shares.binary_search_by_key(&storage, |share| share.0);
        let have = 1 + at.map_or(0, |at| self.shares[at].1);
        if have == all {
            let _ = at.map(|at| self.shares.remove(at));
            return true;
        }
        match at {
            Ok(at) => self.shares[at].1 = have,
            Err(at) if self.shares.len() < WINDOW => self.shares.insert(at, (storage, have)),
            Err(_) => {}
        }
        false
    }

    /// Drops the shares of a storage that another one has taken over.
    pub fn forget(&mut self, storage: u32) {
        self.shares.retain(|share| share.0 != storage);
    }

    /// The place of so many bytes in a free block.
    pub fn cut(&mut self, bytes: usize) -> Option<usize> {
        if bytes == 0 { Some(0) } else { cut(&mut self.free, bytes, WINDOW, |_| true).map(|block| block.at) }
    }

    /// Adds what comes from another predecessor. Gives the storages of which all shares are here now.
    pub fn merge(&mut self, mut other: HeldMemory, readers: &dyn Fn(u32) -> u32) -> Vec<u32> {
        let mut met = Vec::new();
        if self.free.len() < other.free.len() {
            std::mem::swap(&mut self.free, &mut other.free);
        }
        self.free.append(&mut other.free);
        if self.shares.is_empty() {
            self.shares = other.shares;
            return met;
        }
        for (storage, count) in other.shares {
            match self.shares.binary_search_by_key(&storage, |share| share.0) {
                Ok(at) => {
                    self.shares[at].1 += count;
                    if self.shares[at].1 == readers(storage) {
                        self.shares.remove(at);
                        met.push(storage);
                    }
                }
                Err(at) if self.shares.len() < WINDOW => self.shares.insert(at, (storage, count)),
                Err(_) => {}
            }
        }
        met
    }
}

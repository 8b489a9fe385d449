//! Free memory, and shares of memory that is not yet free, on their way along the edges (`memory`).
#![forbid(unsafe_code)]

use smallvec::SmallVec;

/// How many free blocks a node looks at, and how many shares of unfinished storages it carries: bounds that keep
/// compile linear. What goes beyond is not found or not used again.
pub(super) const WINDOW: usize = 64;

#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub at: usize,
    pub bytes: usize,
}

/// What a node was given.
#[derive(Default)]
pub(super) struct Held {
    pub free: SmallVec<[Block; 1]>,
    /// Storages and the number of their shares, by storage.
    pub shares: SmallVec<[(u32, u32); 2]>,
}

// Most nodes hold a block or two shares: that takes no more memory than the two lists do anyway.
const _: () = assert!(size_of::<Held>() == 2 * size_of::<Vec<Block>>());

impl Held {
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

    /// The smallest block that is large enough, or what is needed of it.
    pub fn cut(&mut self, bytes: usize) -> Option<usize> {
        if bytes == 0 {
            return Some(0);
        }
        let best = match self.best(bytes) {
            Some(best) => best,
            None => {
                self.join_neighbours();
                self.best(bytes)?
            }
        };
        let block = &mut self.free[best];
        let at = block.at;
        if block.bytes == bytes {
            self.free.swap_remove(best);
        } else {
            (block.at, block.bytes) = (at + bytes, block.bytes - bytes);
        }
        Some(at)
    }

    fn best(&self, bytes: usize) -> Option<usize> {
        let from = self.free.len().saturating_sub(WINDOW);
        let large = self.free[from..].iter().enumerate().filter(|(_, block)| block.bytes >= bytes);
        Some(from + large.min_by_key(|(_, block)| block.bytes)?.0)
    }

    /// Only when no block is large enough: blocks of equal sizes fit again as they are, and can go different ways.
    fn join_neighbours(&mut self) {
        let from = self.free.len().saturating_sub(WINDOW);
        self.free[from..].sort_unstable_by_key(|block| block.at);
        let mut last = from;
        for i in from + 1..self.free.len() {
            let block = self.free[i];
            if self.free[last].at + self.free[last].bytes == block.at {
                self.free[last].bytes += block.bytes;
            } else {
                last += 1;
                self.free[last] = block;
            }
        }
        self.free.truncate(last + 1);
    }

    /// Adds what comes from another predecessor. Gives the storages of which all shares are here now.
    pub fn merge(&mut self, mut other: Held, readers: &dyn Fn(u32) -> u32) -> Vec<u32> {
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

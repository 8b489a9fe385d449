//! The device's memory: allocated addresses with their users, and freed ones. Allocation is best fit and free
//! neighbours are joined, so an address is reused soon after it was freed: a use after that, or too soon, does meet the
//! new owner.
#![forbid(unsafe_code)]

use crate::base::{Code, Error, Result};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::ops::Range;

pub(super) const ALIGNMENT: usize = 256;

/// How many freed blocks are remembered by name.
const GRAVES: usize = 64;

/// How many of the largest blocks an out-of-memory text names.
const NAMED: usize = 3;

#[derive(Debug)]
struct AllocatedBlock {
    /// The size asked for.
    bytes: usize,
    room: usize,
    what: String,
    /// How many operations had been submitted before.
    born: u64,
}

#[derive(Debug)]
struct Grave {
    range: Range<usize>,
    what: String,
    /// How many operations had been submitted before.
    after: u64,
}

#[derive(Debug)]
pub(super) struct DeviceSpace {
    start: usize,
    limit: usize,
    /// Start to room, and the same by room.
    free: BTreeMap<usize, usize>,
    by_room: BTreeSet<(usize, usize)>,
    live: BTreeMap<usize, AllocatedBlock>,
    graves: VecDeque<Grave>,
    made: u64,
    in_use: usize,
    peak: usize,
}

/// The memory that an address is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MemoryPlace {
    Live {
        what: String,
        offset: usize,
        born: u64,
    },
    Freed {
        what: String,
        offset: usize,
        after: u64,
    },
    /// In the device's range, but not allocated, or freed long ago.
    Nothing {
        offset: usize,
    },
    Host {
        address: usize,
    },
    /// Host memory, pinned for a device.
    Pinned {
        what: String,
        offset: usize,
    },
}

impl MemoryPlace {
    pub(super) fn offset(&self) -> usize {
        match self {
            MemoryPlace::Live { offset, .. }
            | MemoryPlace::Freed { offset, .. }
            | MemoryPlace::Nothing { offset }
            | MemoryPlace::Pinned { offset, .. } => *offset,
            MemoryPlace::Host { address } => *address,
        }
    }

    pub(super) fn text(&self, bytes: usize) -> String {
        let end = self.offset().wrapping_add(bytes);
        match self {
            MemoryPlace::Live { what, offset, .. } => format!("bytes {offset} to {end} of {what}"),
            MemoryPlace::Freed { what, offset, after } => {
                format!("bytes {offset} to {end} of {what}, which was freed after operation {after}")
            }
            MemoryPlace::Nothing { offset } => {
                format!("bytes {offset} to {end} of the device's memory, which nobody has")
            }
            MemoryPlace::Pinned { what, offset } => format!("bytes {offset} to {end} of pinned memory for {what}"),
            MemoryPlace::Host { address } => format!("{bytes} bytes of the host's memory at {address:#x}"),
        }
    }
}

/// Counts of allocations.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MemoryUse {
    pub made: u64,
    pub alive: u64,
    pub bytes: usize,
    pub peak: usize,
}

impl DeviceSpace {
    pub(super) fn new(start: usize, size: usize, limit: usize) -> DeviceSpace {
        DeviceSpace {
            start,
            limit,
            free: BTreeMap::from([(start, size)]),
            by_room: BTreeSet::from([(size, start)]),
            live: BTreeMap::new(),
            graves: VecDeque::new(),
            made: 0,
            in_use: 0,
            peak: 0,
        }
    }

    /// Counts an allocation, here or of pinned memory. `failing`: the number of the allocation that fails.
    pub(super) fn count(&mut self, bytes: usize, what: &str, failing: u64) -> Result<()> {
        self.made += 1;
        if self.made == failing {
            let text = format!("out of memory, as asked: {what} needs {bytes} bytes (allocation {failing})");
            return Err(Error::new(Code::ResourceExhausted, text));
        }
        Ok(())
    }

    /// `now`: how many operations were submitted.
    pub(super) fn allocate(&mut self, bytes: usize, what: &str, failing: u64, now: u64) -> Result<usize> {
        self.count(bytes, what, failing)?;
        let room = bytes.max(1).checked_next_multiple_of(ALIGNMENT).ok_or_else(|| self.full(bytes, what))?;
        if room > self.limit.saturating_sub(self.in_use) {
            return Err(self.full(bytes, what));
        }
        let Some(&(size, start)) = self.by_room.range((room, 0)..).next() else {
            return Err(self.full(bytes, what));
        };
        self.take(start, size);
        if size > room {
            self.put(start + room, size - room);
        }
        self.in_use += room;
        self.peak = self.peak.max(self.in_use);
        self.live.insert(start, AllocatedBlock { bytes, room, what: what.to_owned(), born: now });
        Ok(start)
    }

    /// Frees the block that begins at the address: gives its range.
    pub(super) fn deallocate(&mut self, address: usize, now: u64) -> Option<Range<usize>> {
        let block = self.live.remove(&address)?;
        self.in_use -= block.room;
        let (mut start, mut size) = (address, block.room);
        if let Some(next) = self.free.get(&(start + size)).copied() {
            self.take(start + size, next);
            size += next;
        }
        if let Some((&before, &room)) = self.free.range(..start).next_back()
            && before + room == start
        {
            self.take(before, room);
            (start, size) = (before, size + room);
        }
        self.put(start, size);
        if self.graves.len() == GRAVES {
            self.graves.pop_front();
        }
        let range = address..address + block.bytes;
        self.graves.push_back(Grave { range: range.clone(), what: block.what, after: now });
        Some(range)
    }

    fn take(&mut self, start: usize, size: usize) {
        self.free.remove(&start);
        self.by_room.remove(&(size, start));
    }

    fn put(&mut self, start: usize, size: usize) {
        self.free.insert(start, size);
        self.by_room.insert((size, start));
    }

    /// Whether all of these bytes belong to one allocation.
    pub(super) fn is_live(&self, range: &Range<usize>) -> bool {
        let before = self.live.range(..=range.start).next_back();
        before.is_some_and(|(start, block)| range.end <= start + block.bytes)
    }

    pub(super) fn place(&self, address: usize) -> MemoryPlace {
        if let Some((start, block)) = self.live.range(..=address).next_back()
            && address < start + block.room
        {
            return MemoryPlace::Live { what: block.what.clone(), offset: address - start, born: block.born };
        }
        match self.graves.iter().rev().find(|grave| grave.range.contains(&address)) {
            Some(Grave { range, what, after }) => {
                MemoryPlace::Freed { what: what.clone(), offset: address - range.start, after: *after }
            }
            None => MemoryPlace::Nothing { offset: address - self.start },
        }
    }

    pub(super) fn usage(&self) -> MemoryUse {
        MemoryUse { made: self.made, alive: self.live.len() as u64, bytes: self.in_use, peak: self.peak }
    }

    fn full(&self, bytes: usize, what: &str) -> Error {
        let largest = self.by_room.last().map_or(0, |last| last.0).min(self.limit - self.in_use);
        let mut text = format!(
            "out of memory: {what} needs {bytes} bytes, {} of {} are in use, the largest free piece has {largest}",
            self.in_use, self.limit
        );
        let mut holders: Vec<_> = self.live.values().map(|block| (block.bytes, block.what.as_str())).collect();
        holders.sort_by(|a, b| b.cmp(a));
        for (i, (bytes, what)) in holders.iter().take(NAMED).enumerate() {
            let _ = write!(text, "{}{what} has {bytes}", if i == 0 { "; " } else { ", " });
        }
        Error::new(Code::ResourceExhausted, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_fit_is_taken_and_neighbours_are_joined() {
        let mut space = DeviceSpace::new(1024, 4096, 4096);
        let take = |space: &mut DeviceSpace, bytes| space.allocate(bytes, "x", 0, 0);
        let (a, b, c, d) = (take(&mut space, 600), take(&mut space, 1), take(&mut space, 256), take(&mut space, 300));
        let [a, b, c, d] = [a, b, c, d].map(|address| address.unwrap());
        assert_eq!([a, b, c, d], [1024, 1792, 2048, 2304]);
        space.deallocate(a, 1).unwrap();
        space.deallocate(c, 2).unwrap();
        assert_eq!(take(&mut space, 200).unwrap(), c, "256 bytes fit better than 768");
        space.deallocate(b, 3).unwrap();
        assert_eq!(take(&mut space, 1000).unwrap(), a, "768 and 256 bytes were joined");
        assert_eq!(space.usage().alive, 3);
        assert!(space.deallocate(1025, 0).is_none());
    }

    #[test]
    fn a_refusal_says_who_has_the_memory() {
        let mut space = DeviceSpace::new(0x1000, 4096, 2048);
        space.allocate(1000, "tensor a", 0, 0).unwrap();
        space.allocate(500, "tensor b", 0, 0).unwrap();
        let error = space.allocate(600, "tensor c", 0, 0).unwrap_err();
        assert_eq!(error.code(), Code::ResourceExhausted);
        assert_eq!(
            error.message(),
            "out of memory: tensor c needs 600 bytes, 1536 of 2048 are in use, the largest free piece has 512; tensor \
             a has 1000, tensor b has 500"
        );
        assert!(space.allocate(usize::MAX, "tensor d", 0, 0).is_err());
        assert_eq!(
            space.allocate(1, "e", 5, 0).unwrap_err().message(),
            "out of memory, as asked: e needs 1 bytes (allocation 5)"
        );
        assert!(space.allocate(1, "e", 5, 0).is_ok());
    }

    #[test]
    fn an_address_has_a_past() {
        let mut space = DeviceSpace::new(0x1000, 4096, 4096);
        let a = space.allocate(300, "old", 0, 0).unwrap();
        assert!(space.is_live(&(a..a + 300)) && !space.is_live(&(a..a + 301)));
        space.deallocate(a, 7).unwrap();
        assert_eq!(space.place(a + 5), MemoryPlace::Freed { what: "old".to_owned(), offset: 5, after: 7 });
        assert!(!space.is_live(&(a..a + 1)));
        let b = space.allocate(300, "new", 0, 9).unwrap();
        assert_eq!(a, b);
        assert_eq!(space.place(a), MemoryPlace::Live { what: "new".to_owned(), offset: 0, born: 9 });
        assert_eq!(space.place(0x1f00), MemoryPlace::Nothing { offset: 0xf00 });
        assert_eq!(space.place(0x1f00).text(16), "bytes 3840 to 3856 of the device's memory, which nobody has");
    }
}

//! Memory: addresses of the device, and where their bytes are.
//!
//! Addresses of all devices come from one range that the host can neither read nor write; the bytes lie elsewhere, and
//! only operations translate. So host code that takes a device's address for its own faults at once. Blocks are apart
//! from one another, and an address is not given out again before the range has been gone through once, so whoever goes
//! over a block's end or uses it after its end meets nothing that is alive, and is told whose it was.
//!
//! New memory is full of ones (floats that are no numbers), up to a size.

use crate::abi::Handle;
use crate::guard::TwoViews;
use crate::status::{Code, Result};
use std::alloc::Layout;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Bytes of the range of addresses.
const RESERVE: u64 = 64 << 30;
/// Where it is if nothing else is there: addresses are then the same in each run.
const BASE: u64 = 0x2000_0000_0000;
/// Of addresses; between two blocks is at least so much.
const ALIGN: u64 = 512;
/// Larger blocks are full of zeros.
const FILLED: usize = 16 << 20;

/// Bytes of the host's.
#[derive(Debug)]
struct Bytes {
    start: *mut u8,
    layout: Layout,
}

// SAFETY: the bytes belong to the block, and are used through raw addresses by operations that the tested program
// orders.
unsafe impl Send for Bytes {}
// SAFETY: as above.
unsafe impl Sync for Bytes {}

impl Bytes {
    fn new(bytes: usize) -> Option<Bytes> {
        let layout = Layout::from_size_align(bytes.max(1), 4096).ok()?;
        // SAFETY: the size is not zero.
        let start = unsafe { std::alloc::alloc_zeroed(layout) };
        if start.is_null() {
            return None;
        }
        if bytes <= FILLED {
            // SAFETY: so many bytes were allocated just now.
            unsafe { start.write_bytes(0xff, bytes) };
        }
        Some(Bytes { start, layout })
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout; nobody has the block any more.
        unsafe { std::alloc::dealloc(self.start, self.layout) }
    }
}

/// Memory of a device.
#[derive(Debug)]
pub struct Block {
    pub start: u64,
    pub size: u64,
    pub device: i32,
    pub context: Handle,
    /// Of asynchronous allocations.
    pub pool: Option<Handle>,
    /// "cuMemAlloc_v2 #3".
    pub name: String,
    bytes: Bytes,
}

/// Memory of the host's that operations can use while the host goes on.
#[derive(Debug)]
pub struct Pinned {
    pub start: u64,
    pub size: u64,
    pub context: Handle,
    pub flags: u32,
    /// Ours; else the program's, registered.
    bytes: Option<TwoViews>,
}

impl Pinned {
    pub fn has_views(&self) -> bool {
        self.bytes.is_some()
    }
}

/// Where bytes are; alive while this is.
#[derive(Clone, Debug)]
pub struct Place {
    pub at: *mut u8,
    _block: Option<Arc<Block>>,
}

/// What an address belongs to.
pub enum Owner<'a> {
    Device(&'a Arc<Block>),
    Pinned(&'a Pinned),
    Pageable,
}

#[derive(Debug)]
pub struct Space {
    start: u64,
    next: u64,
    count: u64,
    live: BTreeMap<u64, Arc<Block>>,
    /// Blocks that were given back: size and name.
    dead: BTreeMap<u64, (u64, String)>,
    pinned: BTreeMap<u64, Pinned>,
}

static SPACE: RwLock<Option<Space>> = RwLock::new(None);

/// For a look; `None` only before the first use.
pub fn read() -> RwLockReadGuard<'static, Option<Space>> {
    let guard = SPACE.read().unwrap_or_else(PoisonError::into_inner);
    if guard.is_some() {
        return guard;
    }
    drop(guard);
    with(|_| {});
    SPACE.read().unwrap_or_else(PoisonError::into_inner)
}

pub fn with<R>(f: impl FnOnce(&mut Space) -> R) -> R {
    let mut guard: RwLockWriteGuard<'_, Option<Space>> = SPACE.write().unwrap_or_else(PoisonError::into_inner);
    f(guard.get_or_insert_with(Space::new))
}

pub fn look<R>(f: impl FnOnce(&Space) -> R) -> R {
    match &*read() {
        Some(space) => f(space),
        None => crate::call::stop("the memory is gone"),
    }
}

impl Space {
    fn new() -> Space {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let map = |address: u64, flags| {
            // SAFETY: a new mapping, which replaces none.
            unsafe { libc::mmap(address as *mut libc::c_void, RESERVE as usize, libc::PROT_NONE, flags, -1, 0) }
        };
        let mut start = map(BASE, flags | libc::MAP_FIXED_NOREPLACE);
        if start == libc::MAP_FAILED {
            start = map(0, flags);
        }
        if start == libc::MAP_FAILED {
            crate::call::stop("no range of addresses for the devices' memory");
        }
        let start = start as u64;
        Space { start, next: start, count: 0, live: BTreeMap::new(), dead: BTreeMap::new(), pinned: BTreeMap::new() }
    }

    pub fn is_device(&self, address: u64) -> bool {
        (self.start..self.start + RESERVE).contains(&address)
    }

    fn used(&self, device: i32) -> u64 {
        self.live.values().filter(|block| block.device == device).map(|block| block.size).sum()
    }

    pub fn free_bytes(&self, device: i32) -> u64 {
        crate::settings::SETTINGS.memory.saturating_sub(self.used(device))
    }

    /// A new block; `what` made it.
    pub fn allocate(
        &mut self,
        what: &str,
        size: u64,
        device: i32,
        context: Handle,
        pool: Option<Handle>,
    ) -> Result<u64> {
        if size == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let room = size.checked_next_multiple_of(ALIGN).ok_or(Code::OUT_OF_MEMORY)? + ALIGN;
        if size > self.free_bytes(device) || room > RESERVE {
            return Err(Code::OUT_OF_MEMORY);
        }
        let start = self.gap(room).ok_or(Code::OUT_OF_MEMORY)?;
        let bytes = Bytes::new(size as usize).ok_or(Code::OUT_OF_MEMORY)?;
        let stale: Vec<u64> = self
            .dead
            .range(..start + room)
            .rev()
            .map(|(start, (size, _))| (*start, *size))
            .take_while(|(at, size)| at + size > start)
            .map(|(at, _)| at)
            .collect();
        stale.iter().for_each(|at| {
            self.dead.remove(at);
        });
        self.count += 1;
        let name = format!("{what} #{}", self.count);
        self.live.insert(start, Arc::new(Block { start, size, device, context, pool, name, bytes }));
        self.next = start + room;
        Ok(start)
    }

    /// The next free addresses, from where the last ones were given out on.
    fn gap(&self, room: u64) -> Option<u64> {
        for (mut at, end) in [(self.next, self.start + RESERVE), (self.start, self.next)] {
            for (start, block) in self.live.range(at..end) {
                if *start - at >= room {
                    return Some(at);
                }
                at = (start + block.size).next_multiple_of(ALIGN) + ALIGN;
            }
            if end.saturating_sub(at) >= room {
                return Some(at);
            }
        }
        None
    }

    /// The block that begins here ends.
    pub fn free(&mut self, start: u64) -> Option<Arc<Block>> {
        let block = self.live.remove(&start)?;
        self.dead.insert(start, (block.size, block.name.clone()));
        Some(block)
    }

    pub fn block(&self, address: u64) -> Option<&Arc<Block>> {
        let (_, block) = self.live.range(..=address).next_back()?;
        (address < block.start + block.size).then_some(block)
    }

    pub fn blocks_of(&self, context: Handle) -> Vec<Arc<Block>> {
        self.live.values().filter(|block| block.context == context).cloned().collect()
    }

    pub fn blocks(&self) -> impl Iterator<Item = &Arc<Block>> {
        self.live.values()
    }

    pub fn host_allocate(&mut self, size: usize, context: Handle, flags: u32) -> Result<u64> {
        if size == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let bytes = TwoViews::new(size).ok_or(Code::OUT_OF_MEMORY)?;
        let start = bytes.host as u64;
        self.pinned.insert(start, Pinned { start, size: size as u64, context, flags, bytes: Some(bytes) });
        Ok(start)
    }

    pub fn host_register(&mut self, start: u64, size: usize, context: Handle, flags: u32) -> Result {
        let end = start.checked_add(size as u64).filter(|end| *end > start).ok_or(Code::INVALID_VALUE)?;
        if self.is_device(start) {
            return Err(Code::INVALID_VALUE);
        }
        if self.pinned.range(..end).next_back().is_some_and(|(_, other)| other.start + other.size > start) {
            return Err(Code::HOST_MEMORY_ALREADY_REGISTERED);
        }
        self.pinned.insert(start, Pinned { start, size: size as u64, context, flags, bytes: None });
        Ok(())
    }

    /// Ends what `host_allocate` or `host_register` began.
    pub fn host_free(&mut self, start: u64, is_ours: bool) -> Result<Pinned> {
        if self.pinned.get(&start).is_none_or(|pinned| pinned.bytes.is_some() != is_ours) {
            return Err(if is_ours { Code::INVALID_VALUE } else { Code::HOST_MEMORY_NOT_REGISTERED });
        }
        self.pinned.remove(&start).ok_or(Code::INVALID_VALUE)
    }

    pub fn pinned(&self, address: u64) -> Option<&Pinned> {
        let (_, pinned) = self.pinned.range(..=address).next_back()?;
        (address < pinned.start + pinned.size).then_some(pinned)
    }

    pub fn all_pinned(&self) -> impl Iterator<Item = &Pinned> {
        self.pinned.values()
    }

    pub fn owner(&self, address: u64) -> Option<Owner<'_>> {
        if self.is_device(address) {
            return self.block(address).map(Owner::Device);
        }
        Some(self.pinned(address).map_or(Owner::Pageable, Owner::Pinned))
    }

    /// Where bytes that a device uses are.
    pub fn translate(&self, bytes: &Range<u64>) -> std::result::Result<Place, String> {
        if let Some(block) = self.block(bytes.start) {
            if bytes.end > block.start + block.size {
                return Err(format!("{} of it, past its end", self.describe(bytes)));
            }
            let at = block.bytes.start.wrapping_add((bytes.start - block.start) as usize);
            return Ok(Place { at, _block: Some(Arc::clone(block)) });
        }
        match self.pinned(bytes.start) {
            Some(pinned) if bytes.end <= pinned.start + pinned.size => {
                let at = match &pinned.bytes {
                    Some(views) => views.device.wrapping_add((bytes.start - pinned.start) as usize),
                    None => bytes.start as *mut u8,
                };
                Ok(Place { at, _block: None })
            }
            _ => Err(self.describe(bytes)),
        }
    }

    /// The whole block that an address is in.
    pub fn around(&self, address: u64) -> Option<Range<u64>> {
        if let Some(block) = self.block(address) {
            return Some(block.start..block.start + block.size);
        }
        self.pinned(address).map(|pinned| pinned.start..pinned.start + pinned.size)
    }

    /// For texts: whose bytes these are.
    pub fn describe(&self, bytes: &Range<u64>) -> String {
        let size = bytes.end - bytes.start;
        if let Some(block) = self.block(bytes.start) {
            let from = bytes.start - block.start;
            return format!("bytes {from}..{} of the {} of {}", from + size, block.size, block.name);
        }
        if let Some(pinned) = self.pinned(bytes.start) {
            let from = bytes.start - pinned.start;
            return format!("bytes {from}..{} of {} pinned ones of the host's", from + size, pinned.size);
        }
        let dead = self.dead.range(..=bytes.start).next_back();
        if let Some((start, (of, name))) = dead.filter(|(start, (of, _))| bytes.start < *start + *of) {
            let from = bytes.start - start;
            return format!("bytes {from}..{} of the {of} of {name}, which was freed", from + size);
        }
        if self.is_device(bytes.start) {
            let before = self.live.range(..bytes.start).next_back();
            let near = before.map_or(String::new(), |(_, block)| {
                let behind = bytes.start - block.start - block.size;
                format!(", {behind} bytes behind the end of {}", block.name)
            });
            return format!("{size} bytes at {:#x}, which nobody allocated{near}", bytes.start);
        }
        format!("{size} bytes at {:#x}, which are not the device's", bytes.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_apart_and_known_after_their_end() {
        let mut space = Space::new();
        let block = |space: &mut Space, size| space.allocate("test", size, 0, Handle::NULL, None).unwrap();
        let (a, b) = (block(&mut space, 100), block(&mut space, 100));
        assert!(b - a >= 100 + ALIGN && a % ALIGN == 0);
        assert!(space.translate(&(a + 90..a + 100)).is_ok());
        assert!(space.translate(&(a + 90..a + 101)).unwrap_err().contains("past its end"));
        assert!(space.translate(&(a + 100..a + 101)).unwrap_err().contains("nobody allocated, 0 bytes behind the end"));
        space.free(a).unwrap();
        assert!(space.translate(&(a..a + 4)).unwrap_err().contains("test #1, which was freed"));
        assert!(space.free(a).is_none());
        let c = block(&mut space, 100);
        assert!(c > b, "addresses are not given out again soon");
    }

    #[test]
    fn the_range_is_gone_through_again() {
        let mut space = Space::new();
        let first = space.allocate("kept", 1000, 0, Handle::NULL, None).unwrap();
        space.next = space.start + RESERVE - ALIGN;
        let next = space.allocate("next", 1000, 0, Handle::NULL, None).unwrap();
        assert!(next >= first + 1000 && next < first + 4096);
        assert_eq!(space.block(first + 999).unwrap().name, "kept #1");
    }

    #[test]
    fn pinned_memory_is_the_hosts_and_the_devices() {
        let mut space = Space::new();
        let start = space.host_allocate(64, Handle::NULL, 0).unwrap();
        let place = space.translate(&(start..start + 64)).unwrap();
        // SAFETY: both views of memory that is alive.
        unsafe {
            (start as *mut u8).write(7);
            assert_eq!(place.at.read(), 7);
        }
        assert!(space.translate(&(start..start + 65)).is_err());
        assert_eq!(space.host_register(start + 32, 64, Handle::NULL, 0), Err(Code::HOST_MEMORY_ALREADY_REGISTERED));
        assert!(space.host_free(start, false).is_err());
        space.host_free(start, true).unwrap();
        assert!(matches!(space.owner(start), Some(Owner::Pageable)));
    }
}

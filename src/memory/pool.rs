//! An engine's memory: regions from a source, cut into blocks.
//!
//! A request is served by a block kept for its stream (`stream_cache`), else from the free range that fits best
//! (`space`), else from a new region. Regions double in size as the pool grows, so in the steady state the source is
//! not called. They return to it when the pool is trimmed, when the limit leaves no room for a new one, when the source
//! has no more memory, and with the pool. One lock guards the lists; it is never held while the source is called.
//!
//! In direct mode each block is a region and is returned at once: for memory checkers, and for sources that are pools
//! themselves.

use super::classes::{Size, size_of_request};
use super::source::Source;
use super::space::AddressSpace;
use super::stream_cache::{Last, Note, Progress, SHARED, StreamCaches};
use super::tag::Tag;
use crate::base::Result;
use crate::sync::{Mutex, fork};
use crate::trace;
use std::sync::Arc;

/// Settings of a pool.
#[derive(Clone, Debug)]
pub struct PoolAttr {
    /// "engine cpu:0", for texts.
    pub name: String,
    /// Alignment of every block; a power of two.
    pub alignment: usize,
    /// Maximum total size of all regions.
    pub limit: usize,
    pub direct: bool,
}

#[derive(Debug)]
pub struct Pool {
    pub(super) attr: PoolAttr,
    source: Box<dyn Source>,
    pub(super) state: Mutex<PoolState>,
}

#[derive(Debug)]
pub(super) struct PoolState {
    pub space: AddressSpace<Note>,
    lanes: StreamCaches,
    pub usage: Usage,
}

/// A range that was handed out.
struct TakenRange {
    index: u32,
    /// It has not been used before.
    clean: bool,
    last: Last,
}

/// Figures of a pool.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    pub in_use: usize,
    pub peak_in_use: usize,
    /// Bytes of all regions.
    pub reserved: usize,
    pub peak_reserved: usize,
    /// Blocks in use.
    pub blocks: usize,
    pub regions: usize,
    /// Count since the pool was created.
    pub allocations: u64,
    /// Calls of the source for memory.
    pub region_allocations: u64,
    /// Filled in by `usage`.
    pub largest_free: usize,
}

impl Usage {
    /// 0 if the free memory is in one piece, near 1 if it is in very many.
    pub fn fragmentation(&self) -> f64 {
        let free = self.reserved - self.in_use.min(self.reserved);
        if free == 0 { 0.0 } else { 1.0 - self.largest_free as f64 / free as f64 }
    }

    fn add_region(&mut self) {
        self.regions += 1;
        self.region_allocations += 1;
        self.peak_reserved = self.peak_reserved.max(self.reserved);
    }
}

/// A region is at least this large, and at most `LARGEST_REGION` unless one block needs more.
const SMALLEST_REGION: usize = 1 << 20;
const LARGEST_REGION: usize = 64 << 20;

impl PoolState {
    /// Hands out a range, if there is one that `lane` may use.
    fn take(&mut self, size: Size, lane: u32) -> Option<TakenRange> {
        let PoolState { space, lanes, .. } = self;
        if size.class.is_none() {
            lanes.settle(space);
        }
        let (index, last) =
            lanes.take(space, size, lane).or_else(|| space.take(size.bytes).map(|index| (index, None)))?;
        Some(self.hand_out(index, last))
    }

    fn hand_out(&mut self, index: u32, last: Last) -> TakenRange {
        let range = self.space.get_mut(index);
        let (bytes, clean) = (range.bytes, std::mem::replace(&mut range.clean, false));
        let usage = &mut self.usage;
        usage.in_use += bytes;
        usage.peak_in_use = usage.peak_in_use.max(usage.in_use);
        usage.blocks += 1;
        usage.allocations += 1;
        TakenRange { index, clean, last }
    }
}

impl Pool {
    pub fn new(attr: PoolAttr, source: Box<dyn Source>) -> Arc<Pool> {
        let state = PoolState { space: AddressSpace::new(), lanes: StreamCaches::new(), usage: Usage::default() };
        Arc::new(Pool { attr, source, state: Mutex::new(state) })
    }

    pub fn alignment(&self) -> usize {
        self.attr.alignment
    }

    /// Uninitialised memory with exclusive use.
    pub fn allocate(self: &Arc<Self>, bytes: usize, tag: Tag) -> Result<MemoryBlock> {
        self.allocate_on(SHARED, bytes, tag).map(|(block, _)| block)
    }

    /// Zeroed memory with exclusive use.
    pub fn allocate_zeroed(self: &Arc<Self>, bytes: usize, tag: Tag) -> Result<MemoryBlock> {
        let (block, clean) = self.allocate_on(SHARED, bytes, tag)?;
        if !clean && bytes > 0 {
            // SAFETY: in a region of the source, and this block's alone.
            unsafe { self.source.fill_zero(block.address, bytes) }?;
        }
        Ok(block)
    }

    /// Memory for work on a stream: earlier work there may still use it. Also returns whether it is known to be zero.
    fn allocate_on(self: &Arc<Self>, lane: u32, bytes: usize, tag: Tag) -> Result<(MemoryBlock, bool)> {
        let Some(size) = self.size(bytes) else { return Err(self.no_room(bytes, &tag)) };
        if self.attr.direct {
            // A large block whose last use was not over when it came back may be done now.
            while self.give_back_one() {}
        } else {
            let mut state = self.state.lock();
            if let Some(taken) = state.take(size, lane) {
                return Ok(self.block(&mut state, taken, bytes, &tag));
            }
        }
        self.grow(size, lane, bytes, &tag)
    }

    fn size(&self, bytes: usize) -> Option<Size> {
        match self.attr.direct {
            true => Some(Size { bytes: bytes.max(1), class: None }).filter(|size| size.bytes <= isize::MAX as usize),
            false => size_of_request(bytes, self.attr.alignment),
        }
    }

    fn block(
        self: &Arc<Self>,
        state: &mut PoolState,
        taken: TakenRange,
        bytes: usize,
        tag: &Tag,
    ) -> (MemoryBlock, bool) {
        let TakenRange { index, clean, last } = taken;
        let range = state.space.get_mut(index);
        range.note.tag = tag.clone();
        (MemoryBlock { pool: Arc::clone(self), index, address: range.address, bytes, last }, clean)
    }

    /// Takes a block out of a new region.
    #[cold]
    fn grow(self: &Arc<Self>, size: Size, lane: u32, bytes: usize, tag: &Tag) -> Result<(MemoryBlock, bool)> {
        let mut may_double = !self.attr.direct;
        loop {
            let region = {
                let mut state = self.state.lock();
                let PoolState { space, lanes, .. } = &mut *state;
                lanes.flush(space);
                if !self.attr.direct
                    && let Some(taken) = state.take(size, lane)
                {
                    return Ok(self.block(&mut state, taken, bytes, tag));
                }
                let room = self.attr.limit - state.usage.reserved.min(self.attr.limit);
                let doubled = state.usage.reserved.clamp(SMALLEST_REGION, LARGEST_REGION);
                let doubled = doubled.next_multiple_of(self.attr.alignment);
                let region = if may_double && size.bytes < doubled { doubled } else { size.bytes };
                let region = if region > room { size.bytes } else { region };
                if region <= room {
                    // Counted before the region exists, so that concurrent requests cannot exceed the limit.
                    state.usage.reserved += region;
                }
                (region <= room).then_some(region)
            };
            let Some(region) = region else {
                if self.give_back_one() {
                    continue;
                }
                return Err(self.no_room(bytes, tag));
            };
            let what = if self.attr.direct { tag } else { &Tag::Fixed("a region") };
            match self.source.allocate(region, self.attr.alignment, what) {
                Ok(address) => return self.settle_in(address, region, size, bytes, tag),
                Err(error) => {
                    self.state.lock().usage.reserved -= region;
                    if region > size.bytes {
                        may_double = false;
                    } else if !self.give_back_one() {
                        return Err(self.refused(bytes, tag, error));
                    }
                }
            }
        }
    }

    /// Adds a region, and takes its first block before any other thread can.
    fn settle_in(
        self: &Arc<Self>,
        address: usize,
        region: usize,
        size: Size,
        bytes: usize,
        tag: &Tag,
    ) -> Result<(MemoryBlock, bool)> {
        let (added, reserved) = {
            let mut state = self.state.lock();
            let clean = self.source.is_zeroed();
            let added = state.space.add(address, region, clean).map(|index| {
                state.usage.add_region();
                let index = state.space.take_front(index, size.bytes);
                let taken = state.hand_out(index, None);
                self.block(&mut state, taken, bytes, tag)
            });
            (added, state.usage.reserved)
        };
        if added.is_ok() {
            trace::memory(&self.attr.name, reserved);
        }
        added.inspect_err(|_| {
            // SAFETY: just allocated, and none of it was handed out.
            unsafe { self.source.deallocate(address, region, self.attr.alignment) };
            self.state.lock().usage.reserved -= region;
        })
    }

    /// Returns the largest completely free region; false if there is none.
    fn give_back_one(&self) -> bool {
        let removed = {
            let mut state = self.state.lock();
            let PoolState { space, lanes, usage } = &mut *state;
            lanes.flush(space);
            space.free_region().map(|index| {
                usage.regions -= 1;
                space.remove(index)
            })
        };
        let Some(region) = removed else { return false };
        self.return_region(region);
        true
    }

    /// Returns completely free regions, the largest first, until at most `keep` bytes are left or no region is free.
    pub fn trim(&self, keep: usize) {
        while self.state.lock().usage.reserved > keep && self.give_back_one() {}
        // Not under the lock: the source may drop objects that give blocks back.
        let reserved = self.state.lock().usage.reserved;
        self.source.trim(keep.saturating_sub(reserved));
    }

    /// Takes a block back. `last`: work up to this mark of this stream may still use it.
    fn take_back(&self, index: u32, last: Last) {
        let removed = {
            let mut state = self.state.lock();
            let PoolState { space, lanes, usage } = &mut *state;
            let bytes = space.get(index).bytes;
            usage.in_use -= bytes;
            usage.blocks -= 1;
            let size = size_of_request(bytes, self.attr.alignment).filter(|size| size.bytes == bytes);
            let class = size.filter(|_| !self.attr.direct).and_then(|size| size.class);
            if lanes.keep(space, index, class, last) {
                return;
            }
            match space.give(index) {
                Some(region) if self.attr.direct => {
                    usage.regions -= 1;
                    Some(space.remove(region))
                }
                _ => None,
            }
        };
        if let Some(region) = removed {
            self.return_region(region);
        }
    }

    /// Returns a region to the source; only then is there room for another.
    fn return_region(&self, (address, bytes): (usize, usize)) {
        // SAFETY: a region of the source, of which nothing is handed out.
        unsafe { self.source.deallocate(address, bytes, self.attr.alignment) };
        let reserved = {
            let mut state = self.state.lock();
            state.usage.reserved -= bytes;
            state.usage.reserved
        };
        trace::memory(&self.attr.name, reserved);
    }

    /// A cache for the blocks of a stream's work.
    pub fn open_lane(self: &Arc<Self>, progress: Arc<dyn Progress>) -> StreamCache {
        let lane = self.state.lock().lanes.open(progress);
        StreamCache { pool: Arc::clone(self), lane }
    }

    /// Current figures.
    pub fn usage(&self) -> Usage {
        let state = self.state.lock();
        Usage { largest_free: state.space.largest(), ..state.usage }
    }

    /// Whether all of these addresses are the pool's. It searches the blocks.
    pub fn owns(&self, range: std::ops::Range<usize>) -> bool {
        let space = &self.state.lock().space;
        space.regions().any(|first| {
            let start = space.get(first).address;
            let bytes: usize = space.ranges(first).map(|range| range.bytes).sum();
            start <= range.start && range.end <= start + bytes
        })
    }

    /// Resets the peaks to the current use.
    pub fn reset_peaks(&self) {
        let usage = &mut self.state.lock().usage;
        (usage.peak_in_use, usage.peak_reserved) = (usage.in_use, usage.reserved);
    }

    /// "engine cpu:0", for texts.
    pub fn name(&self) -> &str {
        &self.attr.name
    }

    pub fn limit(&self) -> usize {
        self.attr.limit
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if fork::forked() {
            return;
        }
        // Blocks hold the pool, so all have come back; work on a stream holds its cache, and that the pool.
        let PoolState { space, lanes, .. } = &mut *self.state.lock();
        lanes.empty(space);
        while let Some(index) = space.free_region() {
            let (address, bytes) = space.remove(index);
            // SAFETY: a region of the source, of which nothing is handed out.
            unsafe { self.source.deallocate(address, bytes, self.attr.alignment) };
        }
    }
}

/// A stream's cache. Its blocks are returned before it is dropped.
#[derive(Debug)]
pub struct StreamCache {
    pool: Arc<Pool>,
    lane: u32,
}

impl StreamCache {
    /// Memory for work that is submitted to the stream from now on. It is uninitialised, and earlier work may still use
    /// it.
    pub fn allocate(&self, bytes: usize, tag: Tag) -> Result<MemoryBlock> {
        self.pool.allocate_on(self.lane, bytes, tag).map(|(block, _)| block)
    }

    /// Takes a block back, from this stream's cache or the shared one, that work up to this mark of the stream may
    /// still use.
    pub fn take_back(&self, block: MemoryBlock, mark: u64) {
        let mut block = block;
        let before = block.last.map_or(0, |(lane, mark)| {
            assert_eq!(lane, self.lane, "a block of another stream's");
            mark
        });
        block.last = Some((self.lane, mark.max(before)));
    }
}

impl Drop for StreamCache {
    fn drop(&mut self) {
        if fork::forked() {
            return;
        }
        let state = &mut *self.pool.state.lock();
        state.lanes.close(self.lane, &mut state.space);
    }
}

/// A block of a pool's memory, returned when this is dropped.
#[derive(Debug)]
pub struct MemoryBlock {
    pool: Arc<Pool>,
    index: u32,
    address: usize,
    bytes: usize,
    /// Work that may still use it when it is returned.
    last: Last,
}

impl MemoryBlock {
    /// The first byte. An address to read and write only if the host can access the memory.
    pub fn data(&self) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.address)
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The address at `offset` bytes.
    pub fn at(&self, offset: usize) -> *mut u8 {
        assert!(offset <= self.bytes, "offset {offset} in a block of {} bytes", self.bytes);
        self.data().wrapping_add(offset)
    }

    /// Whether these bytes are in it.
    pub fn holds(&self, data: *const u8, bytes: usize) -> bool {
        let start = data.addr().checked_sub(self.address);
        start.and_then(|start| start.checked_add(bytes)).is_some_and(|end| end <= self.bytes)
    }
}

impl Drop for MemoryBlock {
    fn drop(&mut self) {
        // A child of fork does not take the lock.
        if !fork::forked() {
            self.pool.take_back(self.index, self.last);
        }
    }
}

//! The library's allocator: the system's malloc, counted, with a reserve for small requests.
//!
//! Memory of a user-chosen size is requested fallibly, and a failure becomes a status. All other requests of the
//! library are small, and Rust's collections abort the process when such a request fails. A host must not die of that:
//! when malloc fails, requests of at most `LARGEST` bytes are served from a fixed reserve, the call in progress is
//! marked, and it ends with RESOURCE_EXHAUSTED (`check`). While more than half of the reserve is in use new calls are
//! refused at once (`enter`).
//!
//! The reserve is one array. Its state is one word: the number of live pieces, and how far the array is used. Pieces
//! are cut off the front and never reused one by one; when the last one is freed the array is whole again. Both steps
//! are one compare-exchange.
//!
//! Blocks of two sizes and alignments are kept instead of freed: those of thread pools and of the handles of runs,
//! which may come and go with each call of a host (`base::object`). A kept block counts as in use.

use crate::base::object::KEPT;
use crate::base::{Error, Result, reserve};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering::*};

pub use crate::base::reserve::{check, whole};

/// Pages of it are not committed before they are used.
const SIZE: usize = 4 << 20;
/// Alignment of every piece of the reserve: two cache lines, the largest that the library requests.
const ALIGN: usize = 128;
/// Largest request that the reserve serves, normally and in `whole`.
const LARGEST: usize = 64 << 10;
const LARGEST_IN_WHOLE: usize = 512 << 10;
const ALIVE: u64 = 1 << 32;
const USED_MASK: u64 = ALIVE - 1;

#[repr(align(128))]
struct ReserveArray(UnsafeCell<[u8; SIZE]>);

// SAFETY: pieces are cut off by compare-exchange, so no two owners overlap.
unsafe impl Sync for ReserveArray {}

static RESERVE: ReserveArray = ReserveArray(UnsafeCell::new([0; SIZE]));
/// Pieces alive (high half) and bytes used from the front (low half).
static STATE: AtomicU64 = AtomicU64::new(0);

/// Allocation counts of some threads. ORDERING: statistics, Relaxed.
#[repr(align(128))]
struct AllocationCounts {
    allocations: AtomicU64,
    bytes_allocated: AtomicU64,
    bytes_freed: AtomicU64,
}

/// A single cache line for all threads would be the bottleneck of concurrent allocations.
const SHARES: usize = 16;
static COUNTS: [AllocationCounts; SHARES] = [const {
    AllocationCounts {
        allocations: AtomicU64::new(0),
        bytes_allocated: AtomicU64::new(0),
        bytes_freed: AtomicU64::new(0),
    }
}; SHARES];

/// The counts that this thread adds to, chosen by the address of its thread-local memory.
#[inline]
fn counts() -> &'static AllocationCounts {
    &COUNTS[(reserve::address_of_thread().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 60) as usize % SHARES]
}

fn sum(of: impl Fn(&AllocationCounts) -> &AtomicU64) -> u64 {
    COUNTS.iter().map(|counts| of(counts).load(Relaxed)).fold(0, u64::wrapping_add)
}

/// Blocks of one layout.
type Store = [AtomicPtr<u8>; 32];

/// Those that are kept.
static STORES: [Store; KEPT.len()] = [const { [const { AtomicPtr::new(ptr::null_mut()) }; 32] }; KEPT.len()];

/// Where blocks of this layout are kept, if they are.
#[inline]
fn store_of(layout: Layout) -> Option<&'static Store> {
    KEPT.iter().position(|kept| *kept == (layout.size(), layout.align())).map(|at| &STORES[at])
}

/// A kept block, or NULL.
fn from_store(store: &Store) -> *mut u8 {
    let full = store.iter().filter(|place| !place.load(Relaxed).is_null());
    // ORDERING: Acquire pairs with the Release in `to_store`: the last owner is done with the block.
    full.map(|place| place.swap(ptr::null_mut(), Acquire)).find(|block| !block.is_null()).unwrap_or(ptr::null_mut())
}

/// Stores a block; false if there is no room.
///
/// # Safety
/// A block of `System`'s, of the store's layout, which nobody uses any more.
unsafe fn to_store(store: &Store, block: *mut u8) -> bool {
    let mut empty = store.iter().filter(|place| place.load(Relaxed).is_null());
    empty.any(|place| place.compare_exchange(ptr::null_mut(), block, Release, Relaxed).is_ok())
}

pub struct Heap;

#[cfg_attr(feature = "allocator", global_allocator)]
pub static HEAP: Heap = Heap;

// SAFETY: forwards to System, which keeps the contract; the reserve returns disjoint, aligned pieces that stay until
// they are freed.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if let Some(store) = store_of(layout) {
            let kept = from_store(store);
            if !kept.is_null() {
                return kept;
            }
        }
        // SAFETY: the caller's layout is passed on.
        let data = unsafe { System.alloc(layout) };
        count(layout.size(), if data.is_null() { from_reserve(layout) } else { data })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's layout is passed on.
        let mut data = unsafe { System.alloc_zeroed(layout) };
        if data.is_null() {
            data = from_reserve(layout);
            if !data.is_null() {
                // SAFETY: the piece has layout.size() bytes.
                unsafe { data.write_bytes(0, layout.size()) };
            }
        }
        count(layout.size(), data)
    }

    unsafe fn dealloc(&self, data: *mut u8, layout: Layout) {
        if let Some(store) = store_of(layout)
            && !in_reserve(data)
            // SAFETY: of this layout and not of the reserve, and the caller is done with it.
            && unsafe { to_store(store, data) }
        {
            return;
        }
        counts().bytes_freed.fetch_add(layout.size() as u64, Relaxed);
        if in_reserve(data) {
            to_reserve();
        } else {
            // SAFETY: it came from System with this layout.
            unsafe { System.dealloc(data, layout) }
        }
    }

    unsafe fn realloc(&self, data: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if !in_reserve(data) {
            // SAFETY: it came from System with this layout.
            let moved = unsafe { System.realloc(data, layout, new_size) };
            if !moved.is_null() {
                counts().bytes_freed.fetch_add(layout.size() as u64, Relaxed);
                return count(new_size, moved);
            }
        }
        // SAFETY: same alignment; new_size is legal for it by the caller's contract.
        let fresh = unsafe { self.alloc(Layout::from_size_align_unchecked(new_size, layout.align())) };
        if !fresh.is_null() {
            // SAFETY: both have the copied bytes and do not overlap; the old piece is the caller's to free.
            unsafe {
                ptr::copy_nonoverlapping(data, fresh, layout.size().min(new_size));
                self.dealloc(data, layout);
            }
        }
        fresh
    }
}

fn count(bytes: usize, data: *mut u8) -> *mut u8 {
    if !data.is_null() {
        let counts = counts();
        counts.allocations.fetch_add(1, Relaxed);
        counts.bytes_allocated.fetch_add(bytes as u64, Relaxed);
    }
    data
}

fn in_reserve(data: *mut u8) -> bool {
    let start = RESERVE.0.get().cast::<u8>() as usize;
    (start..start + SIZE).contains(&(data as usize))
}

fn from_reserve(layout: Layout) -> *mut u8 {
    let largest = if reserve::is_in_whole() { LARGEST_IN_WHOLE } else { LARGEST };
    if layout.size() > largest || layout.align() > ALIGN {
        return ptr::null_mut();
    }
    let size = (layout.size().max(1) as u64).next_multiple_of(ALIGN as u64);
    // ORDERING: Acquire pairs with the Release in `to_reserve`: the last user of these bytes is done with them.
    let cut = STATE.fetch_update(Acquire, Relaxed, |state| {
        ((state & USED_MASK) + size <= SIZE as u64).then_some(state + ALIVE + size)
    });
    let Ok(before) = cut else { return ptr::null_mut() };
    reserve::touch();
    // SAFETY: within the array, by the check above.
    unsafe { RESERVE.0.get().cast::<u8>().add((before & USED_MASK) as usize) }
}

fn to_reserve() {
    // ORDERING: Release pairs with the Acquire in `from_reserve`.
    let _ = STATE.fetch_update(Release, Relaxed, |state| {
        let left = state - ALIVE;
        Some(if left < ALIVE { 0 } else { left })
    });
}

/// Called at the entry of a call: clears the mark of earlier calls, and refuses new work while more than half of the
/// reserve is in use.
#[inline]
pub fn enter() -> Result<()> {
    reserve::begin_call();
    if STATE.load(Relaxed) & USED_MASK > SIZE as u64 / 2 {
        return Err(reserve::short());
    }
    Ok(())
}

/// Fails if `bytes` are not available in one piece. For work that needs many growing collections with sizes that follow
/// from the user's input.
pub fn probe(bytes: usize, what: &str) -> Result<()> {
    let mut trial: Vec<u8> = Vec::new();
    trial.try_reserve_exact(bytes).map_err(|_| Error::exhausted(what, bytes))
}

/// An empty vector with room for `len` elements, or an error that names it.
pub fn room<T>(len: usize, what: &str) -> Result<Vec<T>> {
    let mut all = Vec::new();
    all.try_reserve_exact(len).map_err(|_| Error::exhausted(what, len.saturating_mul(size_of::<T>())))?;
    Ok(all)
}

/// A vector of `len` elements, or an error that names it.
pub fn filled<T>(len: usize, what: &str, element: impl FnMut() -> T) -> Result<Box<[T]>> {
    let mut all = room(len, what)?;
    all.resize_with(len, element);
    Ok(all.into_boxed_slice())
}

/// Allocations made since the library was loaded.
pub fn allocations() -> u64 {
    sum(|counts| &counts.allocations)
}

/// Bytes allocated and not freed.
pub fn bytes_in_use() -> u64 {
    let freed = sum(|counts| &counts.bytes_freed);
    sum(|counts| &counts.bytes_allocated).saturating_sub(freed)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_reserve_is_whole_again_when_its_last_piece_dies() {
        let layout = Layout::from_size_align(1000, 8).unwrap();
        let pieces: Vec<_> = (0..16).map(|_| from_reserve(layout)).collect();
        assert!(pieces.iter().all(|p| in_reserve(*p)));
        assert!(check().is_err());
        pieces.iter().for_each(|_| to_reserve());
        assert_eq!(STATE.load(Relaxed), 0);
        assert!(enter().is_ok() && check().is_ok());
        let large = Layout::from_size_align(LARGEST + 1, 8).unwrap();
        assert!(from_reserve(large).is_null());
        let failed = whole(|| {
            assert!(in_reserve(from_reserve(large)));
            to_reserve();
            Ok(())
        });
        assert!(failed.is_err() && check().is_err());
        assert!(whole(|| Ok(())).is_ok() && check().is_err() && from_reserve(large).is_null());
        assert!(enter().is_ok() && check().is_ok());
    }
}

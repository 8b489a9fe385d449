//! Scratch memory that outlives the call that needed it, for functions that do not belong to an engine.
//!
//! A stock has 64 entries with a buffer each, allocated when the entry is first used, grown when a call needs more, and
//! kept for later calls. A call leases the lowest free entries, one for each thread that may work for it, so that a
//! program holds about as many buffers as it ever had threads in such calls at once. The size of a buffer is bounded by
//! the largest request, which the callers keep small. A call that finds all entries taken gets one buffer of its own.
//!
//! Thread-locals would need destructors, which no longer exist when a library is unloaded; nothing here has one. The
//! stock is never freed. After fork the entries that other threads had leased stay taken in the child.

use super::AlignedBuffer;
use crate::base::Result;
use crate::sync::Slots;
use std::cell::UnsafeCell;
use std::mem::MaybeUninit;

const PLACES: usize = Slots::MAX;
/// Buffers come in units of this size: growth is rare, and the heap's reserve, which must become whole again, never
/// holds one of them.
const UNIT: usize = 128 << 10;

/// Buffers shared by many calls.
#[derive(Debug)]
pub struct ScratchStock {
    free: Slots,
    places: [UnsafeCell<Option<AlignedBuffer>>; PLACES],
}

// SAFETY: an entry is touched only by the lease that has claimed it (`free`).
unsafe impl Sync for ScratchStock {}

impl Default for ScratchStock {
    fn default() -> Self {
        ScratchStock::new()
    }
}

impl ScratchStock {
    pub const fn new() -> ScratchStock {
        ScratchStock { free: Slots::new(PLACES), places: [const { UnsafeCell::new(None) }; PLACES] }
    }

    /// At least one buffer of `bytes` bytes and at most `count`, limited by memory and free entries. Their contents are
    /// left from earlier calls.
    pub fn lease(&self, count: usize, bytes: usize, what: &str) -> Result<Lease<'_>> {
        let mut lease =
            Lease { stock: self, count: 0, places: [0; PLACES], data: [MaybeUninit::uninit(); PLACES], own: None };
        while lease.count < count.clamp(1, PLACES) {
            let Some(place) = self.free.claim() else { break };
            // SAFETY: the entry is this lease's until it is returned.
            match hold(unsafe { &mut *self.places[place].get() }, bytes, what) {
                Ok(data) => lease.push(place, data),
                Err(error) => {
                    self.free.give_back(place);
                    if lease.count > 0 {
                        break;
                    }
                    return Err(error);
                }
            }
        }
        if lease.count == 0 {
            let buffer = AlignedBuffer::zeroed(bytes, what)?;
            lease.data[0].write(buffer.data());
            lease.own = Some(buffer);
        }
        Ok(lease)
    }
}

/// The address of an entry's buffer, after making it large enough.
fn hold(place: &mut Option<AlignedBuffer>, bytes: usize, what: &str) -> Result<*mut u8> {
    if let Some(buffer) = place.as_ref().filter(|buffer| buffer.bytes() >= bytes) {
        return Ok(buffer.data());
    }
    *place = None;
    let buffer = AlignedBuffer::zeroed(bytes.max(1).next_multiple_of(UNIT), what)?;
    Ok(place.insert(buffer).data())
}

/// Buffers that belong to a call until it drops this.
#[derive(Debug)]
pub struct Lease<'a> {
    stock: &'a ScratchStock,
    /// Number of claimed entries; 0 if the lease has one buffer of its own.
    count: usize,
    places: [u8; PLACES],
    data: [MaybeUninit<*mut u8>; PLACES],
    own: Option<AlignedBuffer>,
}

// SAFETY: addresses of plain memory; a slot of a region uses the buffer with its own number only.
unsafe impl Sync for Lease<'_> {}

impl Lease<'_> {
    fn push(&mut self, place: usize, data: *mut u8) {
        self.places[self.count] = place as u8;
        self.data[self.count].write(data);
        self.count += 1;
    }

    /// Number of buffers, at least 1.
    pub fn buffers(&self) -> usize {
        self.count.max(1)
    }

    /// The buffer with this number, aligned to `ALIGNMENT`.
    pub fn data(&self, number: usize) -> *mut u8 {
        assert!(number < self.buffers(), "buffer {number} of {}", self.buffers());
        // SAFETY: the first `buffers` addresses were written.
        unsafe { self.data[number].assume_init() }
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        self.places[..self.count].iter().for_each(|&place| self.stock.free.give_back(usize::from(place)));
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn buffers_come_back_and_grow() {
        let stock = ScratchStock::new();
        let first = {
            let lease = stock.lease(2, 1000, "test").unwrap();
            assert_eq!(lease.buffers(), 2);
            assert_ne!(lease.data(0), lease.data(1));
            lease.data(0)
        };
        let lease = stock.lease(1, UNIT, "test").unwrap();
        assert_eq!(lease.data(0), first);
        drop(lease);
        let lease = stock.lease(1, UNIT + 1, "test").unwrap();
        // SAFETY: as many bytes were leased.
        unsafe { lease.data(0).write_bytes(1, UNIT + 1) };
    }

    #[test]
    fn a_call_without_a_place_has_a_buffer_of_its_own() {
        let stock = ScratchStock::new();
        let all = stock.lease(1000, 8, "test").unwrap();
        assert_eq!(all.buffers(), PLACES);
        let more = stock.lease(3, 8, "test").unwrap();
        assert_eq!(more.buffers(), 1);
        assert!((0..PLACES).all(|number| all.data(number) != more.data(0)));
        drop((all, more));
        assert_eq!(stock.lease(1000, 8, "test").unwrap().buffers(), PLACES);
    }

    #[test]
    fn what_memory_cannot_hold_is_an_error_and_leaves_the_places_free() {
        let stock = ScratchStock::new();
        assert!(stock.lease(2, isize::MAX as usize - 2 * UNIT, "test").is_err());
        assert_eq!(stock.lease(1000, 8, "test").unwrap().buffers(), PLACES);
    }
}

//! An inaccessible range of addresses, and the bytes behind them at other addresses: an address space of its own for
//! emulated devices. Using one of its addresses as a pointer faults at once; only its owner can translate it.

use crate::base::{Error, Result};

/// Two ranges of the same size: the inaccessible addresses, and the bytes. Neither commits memory before it is used.
#[derive(Debug)]
pub struct AddressReserve {
    addresses: usize,
    bytes: *mut u8,
    size: usize,
}

// SAFETY: plain memory without an owner thread; the code that receives pointers into it rules who uses which part when.
unsafe impl Send for AddressReserve {}
// SAFETY: as above.
unsafe impl Sync for AddressReserve {}

impl AddressReserve {
    /// `size` bytes, rounded up to whole pages; `what` names them in the refusal.
    pub fn new(size: usize, what: &str) -> Result<AddressReserve> {
        let refused = || Error::exhausted(what, size);
        let size = size.max(1).checked_next_multiple_of(1 << 16).ok_or_else(refused)?;
        let bytes = map::readable(size).ok_or_else(refused)?;
        match map::untouchable(size) {
            Some(addresses) => Ok(AddressReserve { addresses: addresses.addr(), bytes, size }),
            None => {
                // SAFETY: mapped above, and unused.
                unsafe { map::unmap(bytes.addr(), size) };
                Err(refused())
            }
        }
    }

    /// The first address.
    pub fn start(&self) -> usize {
        self.addresses
    }

    pub fn size(&self) -> usize {
        self.size
    }

    /// Whether a byte of the range is in it.
    pub fn touches(&self, address: usize, bytes: usize) -> bool {
        address < self.addresses + self.size && self.addresses < address.saturating_add(bytes.max(1))
    }

    /// The address of the bytes behind these addresses; `None` if they are not all in this reserve.
    pub fn translate(&self, address: usize, bytes: usize) -> Option<*mut u8> {
        let offset = address.checked_sub(self.addresses)?;
        let end = offset.checked_add(bytes)?;
        (end <= self.size).then(|| self.bytes.wrapping_add(offset))
    }
}

impl Drop for AddressReserve {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`; all users of its pointers are gone with the device.
        unsafe {
            map::unmap(self.addresses, self.size);
            map::unmap(self.bytes.addr(), self.size);
        }
    }
}

#[cfg(unix)]
mod map {
    fn map(size: usize, access: libc::c_int) -> Option<*mut u8> {
        #[cfg(target_os = "linux")]
        const FLAGS: libc::c_int = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        #[cfg(not(target_os = "linux"))]
        const FLAGS: libc::c_int = libc::MAP_PRIVATE | libc::MAP_ANON;
        // SAFETY: a new mapping at an address of the system's choice touches nothing that is there.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), size, access, FLAGS, -1, 0) };
        (at != libc::MAP_FAILED).then_some(at.cast())
    }

    pub(super) fn readable(size: usize) -> Option<*mut u8> {
        map(size, libc::PROT_READ | libc::PROT_WRITE)
    }

    pub(super) fn untouchable(size: usize) -> Option<*mut u8> {
        map(size, libc::PROT_NONE)
    }

    /// # Safety
    /// A mapping of `map`'s, which nobody uses any more.
    pub(super) unsafe fn unmap(at: usize, size: usize) {
        // SAFETY: as demanded of the caller.
        unsafe { libc::munmap(at as *mut libc::c_void, size) };
    }
}

/// Not implemented for other systems, which have no such devices.
#[cfg(not(unix))]
mod map {
    pub(super) fn readable(_size: usize) -> Option<*mut u8> {
        None
    }

    pub(super) fn untouchable(_size: usize) -> Option<*mut u8> {
        None
    }

    /// # Safety
    /// None: there are no mappings.
    pub(super) unsafe fn unmap(_at: usize, _size: usize) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_translated_within_the_range_only() {
        let reserve = AddressReserve::new(100_000, "a test").unwrap();
        assert_eq!(reserve.size(), 131_072);
        let (start, end) = (reserve.start(), reserve.start() + reserve.size());
        let first = reserve.translate(start, 4).unwrap();
        assert_ne!(first.addr(), start);
        let last = reserve.translate(end - 4, 4).unwrap();
        // SAFETY: four bytes each, of a reserve that nobody else has.
        let read = unsafe {
            first.cast::<[u8; 4]>().write([1, 2, 3, 4]);
            last.write_bytes(9, 4);
            last.copy_from(first, 2);
            last.cast::<[u8; 4]>().read()
        };
        assert_eq!(read, [1, 2, 9, 9]);
        assert!(reserve.translate(end, 0).is_some());
        for (address, bytes) in [(end - 3, 4), (end + 1, 0), (start - 1, 2), (0, 1), (start, usize::MAX)] {
            assert!(reserve.translate(address, bytes).is_none(), "{address} {bytes}");
        }
        assert!(reserve.touches(start - 1, 2) && reserve.touches(end - 1, 9) && reserve.touches(start, 0));
        assert!(!reserve.touches(start - 1, 1) && !reserve.touches(end, 1));
    }

    #[test]
    fn more_than_there_is_is_refused() {
        assert!(AddressReserve::new(usize::MAX, "a test").is_err());
        assert!(AddressReserve::new(usize::MAX >> 4, "a test").is_err());
    }
}

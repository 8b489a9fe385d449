//! A range of addresses that nobody can touch, and the bytes behind them elsewhere: an address space of its own, for
//! devices that are emulated. Whoever uses one of its addresses as a pointer faults at once; who knows the reserve can
//! translate it.

use crate::base::{Error, Result};

/// Two ranges of the same size: the addresses, without access, and the bytes. Neither takes memory before it is used.
#[derive(Debug)]
pub struct Reserve {
    addresses: usize,
    bytes: usize,
    size: usize,
}

impl Reserve {
    /// `size` bytes, rounded up to whole pages; `what` names them in the refusal.
    pub fn new(size: usize, what: &str) -> Result<Reserve> {
        let refused = || Error::exhausted(what, size);
        let size = size.max(1).checked_next_multiple_of(1 << 16).ok_or_else(refused)?;
        let bytes = map::readable(size).ok_or_else(refused)?;
        match map::untouchable(size) {
            Some(addresses) => Ok(Reserve { addresses, bytes, size }),
            None => {
                map::unmap(bytes, size);
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

    /// Where the bytes of these addresses are; None if they are not all of this reserve.
    pub fn translate(&self, address: usize, bytes: usize) -> Option<usize> {
        let offset = address.checked_sub(self.addresses)?;
        let end = offset.checked_add(bytes)?;
        (end <= self.size).then(|| self.bytes + offset)
    }
}

impl Drop for Reserve {
    fn drop(&mut self) {
        map::unmap(self.addresses, self.size);
        map::unmap(self.bytes, self.size);
    }
}

/// Copies bytes, which may overlap. As all access to tensors it rests on the rules of the API (module `view`): both are
/// alive during the call, and nobody else writes them.
pub fn copy_bytes(to: usize, from: usize, bytes: usize) {
    if bytes > 0 {
        // SAFETY: as said above.
        unsafe { std::ptr::copy(from as *const u8, to as *mut u8, bytes) }
    }
}

/// Sets bytes, by the same rules.
pub fn fill_bytes(to: usize, value: u8, bytes: usize) {
    if bytes > 0 {
        // SAFETY: as said above.
        unsafe { std::ptr::write_bytes(to as *mut u8, value, bytes) }
    }
}

#[cfg(unix)]
mod map {
    fn map(size: usize, access: libc::c_int) -> Option<usize> {
        #[cfg(target_os = "linux")]
        const FLAGS: libc::c_int = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        #[cfg(not(target_os = "linux"))]
        const FLAGS: libc::c_int = libc::MAP_PRIVATE | libc::MAP_ANON;
        // SAFETY: a new mapping at an address of the system's choice touches nothing that is there.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), size, access, FLAGS, -1, 0) };
        (at != libc::MAP_FAILED).then_some(at as usize)
    }

    pub(super) fn readable(size: usize) -> Option<usize> {
        map(size, libc::PROT_READ | libc::PROT_WRITE)
    }

    pub(super) fn untouchable(size: usize) -> Option<usize> {
        map(size, libc::PROT_NONE)
    }

    pub(super) fn unmap(at: usize, size: usize) {
        // SAFETY: a mapping that `map` made, whose owner is being dropped.
        unsafe { libc::munmap(at as *mut libc::c_void, size) };
    }
}

/// Not done for other systems: there are no such devices on them.
#[cfg(not(unix))]
mod map {
    pub(super) fn readable(_size: usize) -> Option<usize> {
        None
    }

    pub(super) fn untouchable(_size: usize) -> Option<usize> {
        None
    }

    pub(super) fn unmap(_at: usize, _size: usize) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_translated_within_the_range_only() {
        let reserve = Reserve::new(100_000, "a test").unwrap();
        assert_eq!(reserve.size(), 131_072);
        let (start, end) = (reserve.start(), reserve.start() + reserve.size());
        let first = reserve.translate(start, 4).unwrap();
        assert_ne!(first, start);
        let source = [1u8, 2, 3, 4];
        copy_bytes(first, source.as_ptr() as usize, 4);
        let last = reserve.translate(end - 4, 4).unwrap();
        fill_bytes(last, 9, 4);
        copy_bytes(last, first, 2);
        let mut read = [0u8; 4];
        copy_bytes(read.as_mut_ptr() as usize, last, 4);
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
        assert!(Reserve::new(usize::MAX, "a test").is_err());
        assert!(Reserve::new(usize::MAX >> 4, "a test").is_err());
    }
}

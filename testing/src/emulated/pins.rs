//! Host memory that is pinned for the device's copies.
#![forbid(unsafe_code)]

use crate::base::{Error, Result};
use crate::memory::AlignedBuffer;
use std::collections::BTreeMap;

#[derive(Debug)]
pub(super) struct Pin {
    pub bytes: usize,
    pub what: String,
    /// The memory, if the device allocated it.
    pub _memory: Option<AlignedBuffer>,
}

/// Ranges that do not overlap, by their first byte.
#[derive(Debug, Default)]
pub(super) struct Pins {
    all: BTreeMap<usize, Pin>,
    bytes: usize,
}

impl Pins {
    pub(super) fn add(&mut self, address: usize, pin: Pin) -> Result<()> {
        let end = address + pin.bytes;
        if let Some((_, other)) = self.all.range(..end).next_back().filter(|(start, pin)| *start + pin.bytes > address)
        {
            return Err(Error::invalid(format!("some of it is pinned already, as {}", other.what)));
        }
        self.bytes += pin.bytes;
        self.all.insert(address, pin);
        Ok(())
    }

    pub(super) fn remove(&mut self, address: usize) -> Option<Pin> {
        self.all.remove(&address).inspect(|pin| self.bytes -= pin.bytes)
    }

    /// Whether all of these bytes are pinned.
    pub(super) fn cover(&self, address: usize, bytes: usize) -> bool {
        let before = self.all.range(..=address).next_back();
        before.is_some_and(|(start, pin)| address + bytes <= start + pin.bytes)
    }

    /// The name of the pinned memory around an address, and the offset in it.
    pub(super) fn find(&self, address: usize) -> Option<(&str, usize)> {
        let (start, pin) = self.all.range(..=address).next_back()?;
        (address < start + pin.bytes).then(|| (pin.what.as_str(), address - start))
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_found_and_do_not_overlap() {
        let pin = |bytes| Pin { bytes, what: format!("{bytes} bytes"), _memory: None };
        let mut pins = Pins::default();
        pins.add(100, pin(50)).unwrap();
        pins.add(150, pin(10)).unwrap();
        assert!(pins.add(90, pin(11)).is_err() && pins.add(159, pin(9)).is_err() && pins.add(90, pin(100)).is_err());
        pins.add(90, pin(10)).unwrap();
        assert!(pins.cover(100, 50) && pins.cover(149, 1) && !pins.cover(149, 2) && !pins.cover(160, 1));
        assert_eq!((pins.find(149), pins.find(160), pins.bytes()), (Some(("50 bytes", 49)), None, 70));
        assert!(pins.remove(100).is_some() && pins.remove(101).is_none() && !pins.cover(100, 1));
    }
}

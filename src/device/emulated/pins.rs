//! Pinned memory: what of the host's memory the device's copies go straight from and to.
//!
//! A copy from other memory takes its bytes when it is submitted, as a device's driver that stages them does; unless a
//! copy that is under way has still to write them, for which a driver would have waited. A copy to other memory looks
//! the same from here: a driver may hold up the thread that asks for it, the emulation holds up nobody. Both are
//! counted (`pageable_copies`). What was recorded stages nothing.
#![forbid(unsafe_code)]

use super::check;
use super::given::range;
use super::queue::{Act, Address};
use super::state::State;
use super::work::Shared;
use crate::base::{Error, Result};
use crate::memory::Buffer;
use std::collections::BTreeMap;
use std::ops::Range;

#[derive(Debug)]
struct Pin {
    bytes: usize,
    what: String,
    /// The memory, if it is the device's.
    _memory: Option<Buffer>,
}

/// Ranges that do not overlap, by their first byte.
#[derive(Debug, Default)]
pub(super) struct Pins {
    all: BTreeMap<usize, Pin>,
    bytes: usize,
}

impl Pins {
    fn add(&mut self, address: usize, pin: Pin) -> Result<()> {
        let end = address + pin.bytes;
        if let Some((_, other)) = self.all.range(..end).next_back().filter(|(start, pin)| *start + pin.bytes > address)
        {
            return Err(Error::invalid(format!("some of it is pinned already, as {}", other.what)));
        }
        self.bytes += pin.bytes;
        self.all.insert(address, pin);
        Ok(())
    }

    fn remove(&mut self, address: usize) -> Option<Pin> {
        self.all.remove(&address).inspect(|pin| self.bytes -= pin.bytes)
    }

    /// Whether all of these bytes are pinned.
    pub(super) fn cover(&self, address: usize, bytes: usize) -> bool {
        let before = self.all.range(..=address).next_back();
        before.is_some_and(|(start, pin)| address + bytes <= start + pin.bytes)
    }

    /// Whose byte this is, and where in there.
    pub(super) fn find(&self, address: usize) -> Option<(&str, usize)> {
        let (start, pin) = self.all.range(..=address).next_back()?;
        (address < start + pin.bytes).then(|| (pin.what.as_str(), address - start))
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Shared {
    pub(super) fn unpin(&self, address: usize, bytes: usize) {
        let mut state = self.state.lock();
        if self.checks() && !state.is_over {
            check::unpin(self, &mut state, &(address..address + bytes));
        }
        let pin = self.pins.lock().remove(address);
        drop(state);
        drop(pin);
    }

    pub(super) fn allocate_host(&self, bytes: usize, what: &str) -> Result<usize> {
        self.intact()?;
        let counted = self.space.lock().count(bytes, what, self.settings.fail_allocation);
        counted.map_err(|error| error.within(&self.label))?;
        let memory = Buffer::zeroed(bytes.max(1), what)?;
        let address = memory.data().expose_provenance();
        let pin = Pin { bytes: bytes.max(1), what: what.to_owned(), _memory: Some(memory) };
        self.pins.lock().add(address, pin)?;
        Ok(address)
    }

    pub(super) fn register(&self, address: usize, bytes: usize) -> Result<()> {
        self.intact()?;
        if let Some(device) = check::owner(address, bytes) {
            let text = format!("{bytes} bytes at {address:#x} are not the host's but of {}", device.label);
            return Err(Error::invalid(text));
        }
        let pin = Pin { bytes, what: "registered memory".to_owned(), _memory: None };
        let added = self.pins.lock().add(address, pin);
        added.map_err(|error| error.within(&self.label))
    }

    pub(super) fn host_used(&self, address: usize, bytes: usize, writes: bool, what: &str) {
        if bytes == 0 || !self.checks() {
            return;
        }
        let mut state = self.state.lock();
        if !state.is_over {
            check::host(self, &mut state, &(address..address + bytes), writes, what);
        }
    }
}

impl Shared {
    /// Notes what an operation that is submitted has to do with the host's memory. Gives bytes that are not pinned and
    /// are there to be staged.
    pub(super) fn note(&self, state: &mut State, number: u64, act: &Act) -> Option<Range<usize>> {
        let Act::Copy { to, from, bytes } = act else { return None };
        let pins = self.pins.lock();
        let at_host = |address: &Address| match *address {
            Address::Host(at) if *bytes > 0 => Some(range(at.get(), *bytes)),
            _ => None,
        };
        let is_pageable = |range: &Range<usize>| !pins.cover(range.start, range.len());
        let (source, target) = (at_host(from).filter(is_pageable), at_host(to));
        if source.is_some() || target.as_ref().is_some_and(is_pageable) {
            state.counts.pageable_copies += 1;
        }
        let source = source.filter(|source| !state.will_write(source));
        state.host_writes.extend(target.map(|target| (number, target)));
        source
    }
}

impl State {
    /// The operations with these numbers were done, or are passed over.
    pub(super) fn forget_writes(&mut self, numbers: &Range<u64>) {
        self.host_writes.retain(|(number, _)| !numbers.contains(number));
    }

    /// Whether a copy under way has still to write some of these bytes of the host's.
    pub(super) fn will_write(&self, range: &Range<usize>) -> bool {
        self.host_writes.iter().any(|(_, other)| other.start < range.end && range.start < other.end)
    }

    /// Room for bytes that are staged.
    pub(super) fn staging(&mut self, bytes: usize) -> Result<Vec<u8>> {
        let mut room = self.staging.pop().unwrap_or_default();
        room.clear();
        room.try_reserve_exact(bytes).map_err(|_| Error::exhausted("the staging of a copy", bytes))?;
        room.resize(bytes, 0);
        Ok(room)
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

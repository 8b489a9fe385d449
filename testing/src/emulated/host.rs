//! Host memory, as copies and the host's own use of pinned memory see it.
//!
//! A copy from pageable memory takes its bytes when it is submitted, as a driver that stages them does. The exception:
//! if a copy in flight has still to write them (a driver would have waited for it), nothing is staged. A copy to
//! pageable memory looks the same from here: a driver may block the calling thread, the emulation never does. Both are
//! counted (`pageable_copies`). Recordings stage nothing.
#![forbid(unsafe_code)]

use super::check;
use super::operation::{Act, Address};
use super::pins::Pin;
use super::shared::{SharedDevice, range};
use super::state::DeviceState;
use crate::base::{Error, Result};
use crate::memory::AlignedBuffer;
use std::ops::Range;

impl SharedDevice {
    pub(super) fn unpin(&self, address: usize, bytes: usize) {
        let mut state = self.state.lock();
        if self.watches_host(&state) {
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
        let memory = AlignedBuffer::zeroed(bytes.max(1), what)?;
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
        if self.watches_host(&state) {
            check::host(self, &mut state, &(address..address + bytes), writes, what);
        }
    }
}

impl SharedDevice {
    /// Notes an operation's use of host memory as it is submitted. Gives pageable bytes that can be staged now.
    pub(super) fn note(&self, state: &mut DeviceState, number: u64, act: &Act) -> Option<Range<usize>> {
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

//! The checker: is each operation ordered behind those that use the same bytes? It knows the reads and writes that
//! operations declare, and everything that orders them: a queue, events, and what the host saw before it submitted. It
//! checks operations as they are submitted, so it finds what *may* go wrong, however the device ran this time.
//!
//! One checker serves all emulated devices, because copies between them and host memory are shared. It exists while a
//! device that asked for it does.
//!
//! It cannot see the host's own reads and writes, except for weir's own use of pinned memory; an order between host
//! threads (the host counts as one thread, which knows what any of its threads saw); and reads and writes that a kernel
//! does not declare.
#![forbid(unsafe_code)]

use super::cells::{AccessRange, ByteAccess, Cells};
use super::clocks::VectorClock;
use crate::base::Reach;
use crate::sync::{Mutex, MutexGuard};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::ops::Range;

/// The conflict between two operations that use the same bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clash {
    ReadAfterWrite,
    WriteAfterRead,
    WriteAfterWrite,
}

/// Another operation that this one is not ordered behind.
#[derive(Clone, Debug)]
pub(super) struct Hit {
    pub clash: Clash,
    pub other: ByteAccess,
    pub bytes: Range<usize>,
    /// The queue waited for an event of the other queue after that operation was submitted, but the event was recorded
    /// before it.
    pub recorded_too_soon: bool,
    /// Both belong to one replay.
    pub is_inside: bool,
}

/// The step of an operation within a replay: its queue's order says nothing about the other steps, edges do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Inside<'a> {
    /// The number of the replay's first operation.
    pub first: u64,
    /// Its number among all steps, also those inside of others.
    pub step: u32,
    pub reach: &'a Reach,
}

pub(super) type Hits = SmallVec<[Hit; 2]>;
pub(super) type Ranges = SmallVec<[Range<usize>; 8]>;

/// A point in a queue, as kept by an event.
#[derive(Clone, Debug, Default)]
pub(super) struct Point {
    slot: usize,
    clock: VectorClock,
}

#[derive(Debug)]
struct CheckedQueue {
    device: u64,
    queue: u32,
    /// Positions are this plus the operation's number on the device, so they still grow if another device gets the
    /// slot.
    base: u64,
    last: u64,
    clock: VectorClock,
    /// By the other queue's slot: its last submitted position when this queue last began to wait for an event of it.
    met: Vec<u64>,
    is_open: bool,
    /// No access of it is left in the cells.
    is_clean: bool,
}

/// An operation's name, for texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Who {
    pub name: String,
    pub queue: String,
    pub number: u64,
    pub device: u64,
}

#[derive(Debug, Default)]
pub(super) struct Checker {
    devices: u64,
    slots: Vec<CheckedQueue>,
    host: VectorClock,
    cells: Cells,
    /// The number of cells above which old ones are looked for.
    many: usize,
    names: Names,
}

/// Texts that occur often, by number.
#[derive(Debug, Default)]
struct Names {
    texts: Vec<Box<str>>,
    numbers: HashMap<Box<str>, u32>,
}

impl Names {
    fn number(&mut self, text: &str) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.texts.len() as u32;
        self.texts.push(text.into());
        self.numbers.insert(text.into(), number);
        number
    }
}

/// A checker for the whole process, while a device needs it.
pub(super) struct SharedChecker(Mutex<Option<Box<Checker>>>);

pub(super) static CHECKER: SharedChecker = SharedChecker(Mutex::new(None));

impl SharedChecker {
    fn lock(&self) -> MutexGuard<'_, Option<Box<Checker>>> {
        self.0.lock()
    }

    pub(super) fn with<R>(&self, f: impl FnOnce(&mut Checker) -> R) -> R {
        f(self.lock().get_or_insert_default())
    }

    /// A device that asked for the checker is opened.
    pub(super) fn enter(&self) {
        self.with(|checker| checker.devices += 1);
    }

    /// Such a device is closed.
    pub(super) fn leave(&self, device: u64) {
        let mut there = self.lock();
        let Some(checker) = there.as_mut() else { return };
        checker.devices -= 1;
        match checker.devices {
            0 => *there = None,
            _ => checker.forget(device),
        }
    }
}

impl Checker {
    /// Adds a device's queue; gives its slot.
    pub(super) fn open(&mut self, device: u64, queue: &str) -> usize {
        let queue = self.names.number(queue);
        let host = &self.host;
        let is_free = |(at, slot): (usize, &CheckedQueue)| {
            // Another device's slot is free when none of its accesses is left; one of the same device, when the host
            // has seen its end.
            !slot.is_open && (slot.is_clean || (slot.device == device && host.at(at) >= slot.last))
        };
        let at = self.slots.iter().enumerate().position(|(at, slot)| is_free((at, slot)));
        let (at, base, last) = match at {
            Some(at) if self.slots[at].is_clean => (at, self.slots[at].last, self.slots[at].last),
            Some(at) => (at, self.slots[at].base, self.slots[at].last),
            None => (self.slots.len(), 0, 0),
        };
        let clock = self.host.clone();
        let slot = CheckedQueue { device, queue, base, last, clock, met: Vec::new(), is_open: true, is_clean: false };
        match self.slots.get_mut(at) {
            Some(old) => *old = slot,
            None => self.slots.push(slot),
        }
        self.slots.iter_mut().filter_map(|slot| slot.met.get_mut(at)).for_each(|met| *met = 0);
        at
    }

    pub(super) fn close(&mut self, slot: usize) {
        self.slots[slot].is_open = false;
    }

    /// Checks operation `number` of the device, on a queue, maybe one of a replay: gives the operations that it may
    /// race with.
    pub(super) fn operation(
        &mut self,
        at: usize,
        number: u64,
        name: &str,
        (reads, writes): (&Ranges, &Ranges),
        inside: Option<Inside<'_>>,
    ) -> Hits {
        let name = self.names.number(name);
        let slot = &mut self.slots[at];
        slot.clock.join(&self.host);
        let position = slot.base + number;
        let slot = Own { at, slot, inside };
        let mut hits = Hits::new();
        for range in reads {
            for cell in self.cells.overlapping(range) {
                let write = cell.write.iter().map(|write| (Clash::ReadAfterWrite, write));
                slot.collect(cell, range, write, &mut hits);
            }
        }
        for range in writes {
            for cell in self.cells.overlapping(range) {
                let reads = cell.reads.iter().map(|read| (Clash::WriteAfterRead, read));
                let write = cell.write.iter().map(|write| (Clash::WriteAfterWrite, write));
                slot.collect(cell, range, reads.chain(write), &mut hits);
            }
        }
        let step = slot.inside.map_or(0, |inside| inside.step);
        let access = ByteAccess { slot: at as u32, name, position, step };
        reads.iter().for_each(|range| self.cells.read(range, access, |other| slot.is_behind(other)));
        writes.iter().for_each(|range| self.cells.write(range, access));
        let slot = slot.slot;
        slot.last = position;
        slot.clock.set(at, position);
        if self.cells.len() > self.many.max(256) {
            let host = &self.host;
            self.cells.retain(|_, access| host.at(access.slot as usize) < access.position);
            self.many = 2 * self.cells.len();
        }
        hits
    }

    /// An event is recorded in a queue.
    pub(super) fn record(&mut self, at: usize, point: &mut Point) {
        let slot = &mut self.slots[at];
        slot.clock.join(&self.host);
        point.slot = at;
        point.clock.copy_from(&slot.clock);
    }

    /// A queue waits for an event.
    pub(super) fn wait(&mut self, at: usize, point: &Point) {
        let submitted = self.slots[point.slot].last;
        let slot = &mut self.slots[at];
        slot.clock.join(&point.clock);
        if slot.met.len() <= point.slot {
            slot.met.resize(point.slot + 1, 0);
        }
        slot.met[point.slot] = submitted;
    }

    /// The host has seen that an event was reached.
    pub(super) fn observe(&mut self, point: &Point) {
        self.host.join(&point.clock);
    }

    /// A device is lost: it does nothing any more, and the host knows that.
    pub(super) fn lose(&mut self, device: u64) {
        for (at, slot) in self.slots.iter().enumerate().filter(|(_, slot)| slot.device == device) {
            self.host.set(at, slot.last);
        }
    }

    /// The host frees bytes: gives the operations that it does not know to be done.
    pub(super) fn free(&mut self, range: &Range<usize>) -> Hits {
        let hits = self.host(range, true);
        let host = &self.host;
        let unknown = |access: &ByteAccess| host.at(access.slot as usize) < access.position;
        let inside = |cell: &AccessRange| range.start <= cell.start && cell.end <= range.end;
        self.cells.retain(|cell, access| !inside(cell) || unknown(access));
        hits
    }

    /// The host itself reads or writes bytes: gives the operations that it does not know to be done with them.
    pub(super) fn host(&self, range: &Range<usize>, writes: bool) -> Hits {
        let mut hits = Hits::new();
        for cell in self.cells.overlapping(range) {
            let reads = cell.reads.iter().filter(|_| writes).map(|read| (Clash::WriteAfterRead, read));
            let clash = if writes { Clash::WriteAfterWrite } else { Clash::ReadAfterWrite };
            let all = reads.chain(cell.write.iter().map(|write| (clash, write)));
            for (clash, other) in all.filter(|(_, access)| self.host.at(access.slot as usize) < access.position) {
                let bytes = cell.start.max(range.start)..cell.end.min(range.end);
                add(&mut hits, Hit { clash, other: *other, bytes, recorded_too_soon: false, is_inside: false });
            }
        }
        hits
    }

    pub(super) fn who(&self, access: &ByteAccess) -> Who {
        let slot = &self.slots[access.slot as usize];
        let text = |number: u32| self.names.texts[number as usize].to_string();
        Who {
            name: text(access.name),
            queue: text(slot.queue),
            number: access.position - slot.base,
            device: slot.device,
        }
    }

    #[cfg(test)]
    pub(super) fn cells(&self) -> usize {
        self.cells.len()
    }

    pub(super) fn forget(&mut self, device: u64) {
        let slots = &mut self.slots;
        self.cells.retain(|_, access| slots[access.slot as usize].device != device);
        for slot in slots.iter_mut().filter(|slot| slot.device == device) {
            (slot.is_open, slot.is_clean) = (false, true);
        }
    }
}

/// An operation's queue, and its access in it.
struct Own<'a> {
    at: usize,
    slot: &'a mut CheckedQueue,
    inside: Option<Inside<'a>>,
}

impl Own<'_> {
    /// Its replay, if the other operation belongs to the same one.
    fn inside(&self, other: &ByteAccess) -> Option<Inside<'_>> {
        let is_own = |inside: &Inside<'_>| other.position >= self.slot.base + inside.first;
        self.inside.filter(|inside| other.slot as usize == self.at && is_own(inside))
    }

    /// Whether the operation comes after another one.
    fn is_behind(&self, other: &ByteAccess) -> bool {
        match self.inside(other) {
            // It may use the same bytes twice.
            Some(inside) => {
                other.step == inside.step || inside.reach.is_before(other.step as usize, inside.step as usize)
            }
            None => other.slot as usize == self.at || self.slot.clock.at(other.slot as usize) >= other.position,
        }
    }

    /// Adds the accesses that the operation is not known to be behind.
    fn collect<'a>(
        &self,
        cell: &AccessRange,
        range: &Range<usize>,
        accesses: impl Iterator<Item = (Clash, &'a ByteAccess)>,
        hits: &mut Hits,
    ) {
        for (clash, other) in accesses.filter(|(_, other)| !self.is_behind(other)) {
            let submitted = self.slot.met.get(other.slot as usize);
            let is_inside = self.inside(other).is_some();
            let recorded_too_soon = !is_inside && submitted.is_some_and(|&submitted| other.position <= submitted);
            let bytes = cell.start.max(range.start)..cell.end.min(range.end);
            add(hits, Hit { clash, other: *other, bytes, recorded_too_soon, is_inside });
        }
    }
}

/// Keeps one hit for each other operation and conflict, with the first contiguous bytes.
fn add(hits: &mut Hits, found: Hit) {
    match hits.iter_mut().find(|hit| hit.clash == found.clash && hit.other == found.other) {
        Some(hit) if hit.bytes.end == found.bytes.start => hit.bytes.end = found.bytes.end,
        Some(_) => {}
        None => hits.push(found),
    }
}

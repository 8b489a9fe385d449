//! Turns the checker's hits into reports: finds the memory's owner and the device that gets the report.
#![forbid(unsafe_code)]

use super::checker::{CHECKER, Checker, Hit, Hits, Inside, Ranges, Who};
use super::races::{Party, Race};
use super::region::Form;
use super::shared::SharedDevice;
use super::space::MemoryPlace;
use super::state::DeviceState;
use crate::base::Error;
use crate::memory::View;
use crate::sync::Mutex;
use std::ops::Range;
use std::sync::{Arc, Weak};

/// All open emulated devices. Every address belongs to one of them or to the host.
static DEVICES: Mutex<Vec<Weak<SharedDevice>>> = Mutex::new(Vec::new());

pub(super) fn enter(shared: &Arc<SharedDevice>) {
    let mut devices = DEVICES.lock();
    devices.retain(|device| device.strong_count() > 0);
    devices.push(Arc::downgrade(shared));
}

/// The device to which a byte of the range belongs.
pub(super) fn owner(address: usize, bytes: usize) -> Option<Arc<SharedDevice>> {
    let devices = DEVICES.lock();
    devices.iter().filter_map(Weak::upgrade).find(|device| device.reserve.touches(address, bytes))
}

/// The emulated device with this handle, if there is one.
pub(super) fn with_handle(handle: usize) -> Option<Arc<SharedDevice>> {
    let devices = DEVICES.lock();
    devices.iter().filter_map(Weak::upgrade).find(|device| Arc::as_ptr(device).addr() == handle)
}

/// The memory that an address is in, and its device's id.
fn place(shared: &SharedDevice, address: usize) -> (MemoryPlace, u64) {
    if shared.reserve.touches(address, 1) {
        return (shared.space.lock().place(address), shared.id);
    }
    match owner(address, 1) {
        Some(device) => (device.space.lock().place(address), device.id),
        None => (host_place(shared, address), 0),
    }
}

fn host_place(shared: &SharedDevice, address: usize) -> MemoryPlace {
    match shared.pins.lock().find(address) {
        Some((what, offset)) => MemoryPlace::Pinned { what: what.to_owned(), offset },
        None => MemoryPlace::Host { address },
    }
}

fn is_live(shared: &SharedDevice, range: &Range<usize>) -> bool {
    if shared.reserve.touches(range.start, range.len()) {
        return shared.space.lock().is_live(range);
    }
    owner(range.start, range.len()).is_none_or(|device| device.space.lock().is_live(range))
}

/// Checks an operation as it is submitted, maybe one of a replay. Gives the error for an operation that is to fail
/// because of a race.
pub(super) fn operation(
    shared: &SharedDevice,
    state: &mut DeviceState,
    queue: usize,
    name: &str,
    (reads, writes): (&Ranges, &Ranges),
    inside: Option<Inside<'_>>,
) -> Option<Error> {
    let number = state.counts.operations;
    let slot = state.queues[queue].slot;
    let hits = hits(|checker| checker.operation(slot, number, name, (reads, writes), inside));
    let second = |state: &DeviceState| Party { name: name.to_owned(), queue: state.queues[queue].name.clone(), number };
    let mut refused = None;
    let mut add = |state: &mut DeviceState, race: Race| {
        if shared.settings.is_strict() && refused.is_none() {
            refused = Some(race.error());
        }
        state.races.add(race);
    };
    for (ranges, does) in [(reads, "reads"), (writes, "writes")] {
        for range in ranges.iter().filter(|range| !is_live(shared, range)) {
            let race = Race::of_use(second(state), does, &place(shared, range.start).0, range.len());
            add(state, race);
        }
    }
    for (who, hit) in hits {
        let (place, owner) = place(shared, hit.bytes.start);
        let is_older = matches!(place, MemoryPlace::Live { born, .. } if who.device == owner && who.number <= born);
        add(state, Race::of_operations(&hit, who, second(state), &place, is_older));
    }
    refused
}

/// Checks a launch as it is submitted, maybe one of a replay: as a whole or, if its kernel is a region's, node by node.
pub(super) fn launch(
    shared: &SharedDevice,
    state: &mut DeviceState,
    queue: usize,
    (name, form, tensors): (&str, &Form, (&[View], &[View], usize)),
    used: (&Ranges, &Ranges),
    inside: Option<Inside<'_>>,
) -> Option<Error> {
    let mut refused = None;
    let are_told = form.each_use(tensors, |name, reads, writes| {
        let found = operation(shared, state, queue, name, (reads, writes), inside);
        if refused.is_none() {
            refused = found;
        }
    });
    if are_told { refused } else { operation(shared, state, queue, name, used, inside) }
}

/// The host frees memory.
pub(super) fn free(shared: &SharedDevice, state: &mut DeviceState, address: usize, bytes: usize) {
    let after = state.counts.operations;
    let range = address..address + bytes;
    if !is_live(shared, &range) {
        let place = place(shared, address).0;
        state.races.add(Race::of_use(Party::free(after), "gives back", &place, bytes));
        return;
    }
    for (who, hit) in hits(|checker| checker.free(&range)) {
        let race = Race::of_free(&hit, who, after, &place(shared, hit.bytes.start).0);
        state.races.add(race);
    }
}

/// The host frees pinned memory, or unpins it.
pub(super) fn unpin(shared: &SharedDevice, state: &mut DeviceState, range: &Range<usize>) {
    let after = state.counts.operations;
    for (who, hit) in hits(|checker| checker.free(range)) {
        let race = Race::of_free(&hit, who, after, &place(shared, hit.bytes.start).0);
        state.races.add(race);
    }
}

/// The host is about to use pinned memory.
pub(super) fn host(shared: &SharedDevice, state: &mut DeviceState, range: &Range<usize>, writes: bool, what: &str) {
    let after = state.counts.operations;
    for (who, hit) in hits(|checker| checker.host(range, writes)) {
        let race = Race::of_host(&hit, who, what, after, writes, &place(shared, hit.bytes.start).0);
        state.races.add(race);
    }
}

/// The checker's hits, each with the operation that it names.
fn hits(find: impl FnOnce(&mut Checker) -> Hits) -> Vec<(Who, Hit)> {
    CHECKER.with(|checker| find(checker).into_iter().map(|hit| (checker.who(&hit.other), hit)).collect())
}

//! Who makes the devices of a kind, and which devices there are.
//!
//! *Factories.* Several may be registered for one kind; the one with the highest priority makes its devices. Equal
//! priority is refused, so which one counts never depends on the order of registration; whoever means to take another's
//! place says so (`replace`). Lower ones stay, and count once those above are gone. Kinds are listed in the order of
//! their numbers.
//!
//! *Devices.* Engines on one device share it, and it ends with the last of them. The table only knows devices, it does
//! not keep them. A thread that ended a run may hold the last reference for a moment longer than the host, so a device
//! that is in the way of other settings gets `LEAVE_NS` to go before they are refused; those that take settings say
//! when they have gone (`Presence`). Neither list is locked while a factory works: a factory may be slow, call the
//! host, or come back here. So two threads may make the same device at the same time; the one that is done first is
//! entered, and the other one's is dropped.
#![forbid(unsafe_code)]

use super::presence::GONE;
use super::{Device, DeviceKind, Factory, Settings, cpu, emulated};
use crate::base::time::Deadline;
use crate::base::{Code, Error, Result};
use crate::sync::{Global, fork};
use std::sync::{Arc, Weak};

/// Priority of the library's own factories.
pub const OWN_PRIORITY: i32 = 0;

/// How long a device that the host has let go of may take to go.
const LEAVE_NS: u64 = 1_000_000_000;

struct Entry {
    kind: DeviceKind,
    priority: i32,
    factory: Arc<dyn Factory>,
}

/// Sorted by kind, the highest priority of each first.
struct Registry {
    entries: Vec<Entry>,
    has_own: bool,
}

static REGISTRY: Global<Registry> = Global::new(|| Registry { entries: Vec::new(), has_own: false });
static DEVICES: Global<Vec<Weak<dyn Device>>> = Global::new(Vec::new);

impl Registry {
    fn with<R>(f: impl FnOnce(&mut Registry) -> R) -> R {
        let mut registry = REGISTRY.lock();
        if !registry.has_own {
            registry.has_own = true;
            registry.insert(DeviceKind::CPU, OWN_PRIORITY, Arc::new(cpu::Cpus));
            #[cfg(feature = "cuda")]
            registry.insert(DeviceKind::CUDA, OWN_PRIORITY, Arc::new(super::cuda::Devices));
            registry.insert(DeviceKind::EMULATED, OWN_PRIORITY, Arc::new(emulated::plugin()));
        }
        f(&mut registry)
    }

    fn find(&self, kind: DeviceKind, priority: i32) -> Option<usize> {
        self.entries.iter().position(|entry| entry.kind == kind && entry.priority == priority)
    }

    fn insert(&mut self, kind: DeviceKind, priority: i32, factory: Arc<dyn Factory>) {
        let before =
            |entry: &Entry| (entry.kind.value(), -i64::from(entry.priority)) < (kind.value(), -i64::from(priority));
        let at = self.entries.partition_point(before);
        self.entries.insert(at, Entry { kind, priority, factory });
    }
}

/// Adds a factory.
pub fn register(kind: DeviceKind, priority: i32, factory: Arc<dyn Factory>) -> Result<()> {
    Registry::with(|registry| match registry.find(kind, priority) {
        Some(_) => Err(Error::new(
            Code::AlreadyExists,
            format!("there is a factory for {} devices with priority {priority} already", kind.name()),
        )),
        None => {
            registry.insert(kind, priority, factory);
            Ok(())
        }
    })
}

/// Puts a factory in the place of the one that has this priority, which is given back.
pub fn replace(kind: DeviceKind, priority: i32, factory: Arc<dyn Factory>) -> Result<Arc<dyn Factory>> {
    check_not_host(kind, priority)?;
    Registry::with(|registry| match registry.find(kind, priority) {
        Some(at) => Ok(std::mem::replace(&mut registry.entries[at].factory, factory)),
        None => Err(missing(kind, priority)),
    })
}

/// Takes a factory away, which is given back. Its devices that are in use stay.
pub fn unregister(kind: DeviceKind, priority: i32) -> Result<Arc<dyn Factory>> {
    check_not_host(kind, priority)?;
    Registry::with(|registry| match registry.find(kind, priority) {
        Some(at) => Ok(registry.entries.remove(at).factory),
        None => Err(missing(kind, priority)),
    })
}

fn missing(kind: DeviceKind, priority: i32) -> Error {
    Error::new(Code::NotFound, format!("there is no factory for {} devices with priority {priority}", kind.name()))
}

/// There is always somebody who makes the host's own device.
fn check_not_host(kind: DeviceKind, priority: i32) -> Result<()> {
    if (kind, priority) != (DeviceKind::CPU, OWN_PRIORITY) {
        return Ok(());
    }
    Err(Error::invalid(format!("name is 'cpu' and priority {priority}, which is the library's own maker of it")))
}

/// The kinds that have a factory, in the order of their numbers.
pub fn kinds() -> Vec<DeviceKind> {
    Registry::with(|registry| {
        let mut kinds: Vec<_> = registry.entries.iter().map(|entry| entry.kind).collect();
        kinds.dedup();
        kinds
    })
}

fn factory(kind: DeviceKind) -> Option<Arc<dyn Factory>> {
    Registry::with(|registry| {
        registry.entries.iter().find(|entry| entry.kind == kind).map(|entry| Arc::clone(&entry.factory))
    })
}

/// All devices that this machine has, by kind and index.
pub fn devices() -> Vec<(DeviceKind, u32)> {
    let mut kinds = kinds();
    kinds.retain(|kind| factory(*kind).is_some_and(|factory| factory.is_listed()));
    kinds.iter().flat_map(|&kind| (0..count(kind)).map(move |index| (kind, index))).collect()
}

/// How many devices of a kind there are.
pub fn count(kind: DeviceKind) -> u32 {
    factory(kind).map_or(0, |factory| factory.count())
}

/// The device, made if nobody has it. `settings` are for a device that is made; one that is there must have been made
/// with the same.
pub fn open(kind: DeviceKind, index: u32, settings: &Settings) -> Result<Arc<dyn Device>> {
    if kind != DeviceKind::CPU {
        fork::check()?;
    }
    let Some(factory) = factory(kind) else {
        let text = format!("there is no {} engine: neither in this build of weir nor from a plug-in", kind.name());
        return Err(Error::new(Code::Unimplemented, text));
    };
    match factory.count() {
        count if index < count => {}
        0 => {
            let why = factory.why_none().map_or(String::new(), |why| format!(": {why}"));
            return Err(Error::new(Code::Unavailable, format!("this machine has no {} device{why}", kind.name())));
        }
        count => {
            return Err(Error::out_of_range(format!("index is {index}, there are {count} {} devices", kind.name())));
        }
    }
    let known = |devices: &[Weak<dyn Device>]| {
        let mut alive = devices.iter().filter_map(Weak::upgrade);
        alive.find(|device| device.kind() == kind && device.index() == index && !device.is_lost())
    };
    let shared = |device: Arc<dyn Device>| device.fits(settings).map(|()| device);
    let deadline = Deadline::after(LEAVE_NS);
    loop {
        let gone = GONE.reached();
        let there = known(&DEVICES.lock());
        let Some(device) = there else { break };
        let result = shared(Arc::clone(&device));
        if result.is_ok() || deadline.is_past() {
            return result;
        }
        // The reference from above may have been the last one.
        drop(device);
        GONE.wait(gone + 1, 0, deadline);
    }
    let made = factory.open(index, settings)?;
    let mut devices = DEVICES.lock();
    devices.retain(|device| device.strong_count() > 0);
    if let Some(device) = known(&devices) {
        drop(devices);
        return shared(device);
    }
    devices.push(Arc::downgrade(&made));
    Ok(made)
}

//! The registry of device factories and of live devices.
//!
//! *Factories.* Several may be registered for one kind; the one with the highest priority makes its devices. Equal
//! priority is refused, so the choice never depends on the order of registration; replacing one is explicit
//! (`replace`). Lower ones stay, and take over once those above are gone. Kinds are listed in the order of their
//! numbers.
//!
//! *Devices.* Engines on one device share it, and it ends with the last of them. The table holds weak references only.
//! A thread that ended a run may hold the last reference for a moment longer than the host, so a device that conflicts
//! with new settings gets `LEAVE_NS` to end before they are refused; devices with settings report their end
//! (`Presence`). Neither list is locked while a factory works: a factory may be slow, call the host, or come back here.
//! So two threads may make the same device at the same time; the first one is entered, and the other one is dropped.
#![forbid(unsafe_code)]

use super::presence::GONE;
use super::{Device, DeviceKind, DeviceSettings, Factory, cpu};
use crate::base::time::Deadline;
use crate::base::{Code, Error, Result};
use crate::sync::{Global, fork};
use std::sync::{Arc, Weak};

/// Priority of the library's own factories.
pub const OWN_PRIORITY: i32 = 0;

/// How long a device that the host has released may take to end.
const LEAVE_NS: u64 = 1_000_000_000;

struct FactoryEntry {
    kind: DeviceKind,
    priority: i32,
    factory: Arc<dyn Factory>,
}

/// Sorted by kind, the highest priority of each first.
struct DeviceRegistry {
    entries: Vec<FactoryEntry>,
    has_own: bool,
}

static REGISTRY: Global<DeviceRegistry> = Global::new(|| DeviceRegistry { entries: Vec::new(), has_own: false });
static DEVICES: Global<Vec<Weak<dyn Device>>> = Global::new(Vec::new);

impl DeviceRegistry {
    fn with<R>(f: impl FnOnce(&mut DeviceRegistry) -> R) -> R {
        let mut registry = REGISTRY.lock();
        if !registry.has_own {
            registry.has_own = true;
            registry.insert(DeviceKind::CPU, OWN_PRIORITY, Arc::new(cpu::Cpus));
            #[cfg(feature = "cuda")]
            registry.insert(DeviceKind::CUDA, OWN_PRIORITY, Arc::new(super::cuda::CudaDevices));
        }
        f(&mut registry)
    }

    fn find(&self, kind: DeviceKind, priority: i32) -> Option<usize> {
        self.entries.iter().position(|entry| entry.kind == kind && entry.priority == priority)
    }

    fn insert(&mut self, kind: DeviceKind, priority: i32, factory: Arc<dyn Factory>) {
        let before = |entry: &FactoryEntry| {
            (entry.kind.value(), -i64::from(entry.priority)) < (kind.value(), -i64::from(priority))
        };
        let at = self.entries.partition_point(before);
        self.entries.insert(at, FactoryEntry { kind, priority, factory });
    }
}

/// Adds a factory.
pub fn register(kind: DeviceKind, priority: i32, factory: Arc<dyn Factory>) -> Result<()> {
    DeviceRegistry::with(|registry| match registry.find(kind, priority) {
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

/// Replaces the factory with this priority, which is returned.
pub fn replace(kind: DeviceKind, priority: i32, factory: Arc<dyn Factory>) -> Result<Arc<dyn Factory>> {
    check_not_host(kind, priority)?;
    DeviceRegistry::with(|registry| match registry.find(kind, priority) {
        Some(at) => Ok(std::mem::replace(&mut registry.entries[at].factory, factory)),
        None => Err(missing(kind, priority)),
    })
}

/// Removes and returns a factory. Its devices in use stay.
pub fn unregister(kind: DeviceKind, priority: i32) -> Result<Arc<dyn Factory>> {
    check_not_host(kind, priority)?;
    DeviceRegistry::with(|registry| match registry.find(kind, priority) {
        Some(at) => Ok(registry.entries.remove(at).factory),
        None => Err(missing(kind, priority)),
    })
}

fn missing(kind: DeviceKind, priority: i32) -> Error {
    Error::new(Code::NotFound, format!("there is no factory for {} devices with priority {priority}", kind.name()))
}

/// The factory of the CPU cannot be removed.
fn check_not_host(kind: DeviceKind, priority: i32) -> Result<()> {
    if (kind, priority) != (DeviceKind::CPU, OWN_PRIORITY) {
        return Ok(());
    }
    Err(Error::invalid(format!("name is 'cpu' and priority {priority}, which is the library's own maker of it")))
}

/// The kinds that have a factory, in the order of their numbers.
pub fn kinds() -> Vec<DeviceKind> {
    DeviceRegistry::with(|registry| {
        let mut kinds: Vec<_> = registry.entries.iter().map(|entry| entry.kind).collect();
        kinds.dedup();
        kinds
    })
}

fn factory(kind: DeviceKind) -> Option<Arc<dyn Factory>> {
    DeviceRegistry::with(|registry| {
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

/// The device, made if it does not exist. `settings` are for a new device; an existing one must have been made with the
/// same.
pub fn open(kind: DeviceKind, index: u32, settings: &DeviceSettings) -> Result<Arc<dyn Device>> {
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

//! An engine's resources: containers of names, and numbers.
#![forbid(unsafe_code)]

use super::name::{check, check_container};
use super::{Resource, ResourceKind, leaks};
use crate::base::{Code, Error, Object, Ref, Result};
use crate::device::Device;
use crate::memory::heap;
use crate::sync::{Mutex, MutexGuard, Promise, ambient};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

/// A resource under construction: `None` if that has failed.
type Work = Arc<Promise<Option<Ref<Resource>>>>;

enum NameEntry {
    There(Ref<Resource>),
    UnderWay(Work),
}

#[derive(Default)]
struct NumberSlot {
    generation: u32,
    resource: Option<Weak<Object<Resource>>>,
}

#[derive(Default)]
struct RegistryState {
    containers: BTreeMap<Box<str>, BTreeMap<Box<str>, NameEntry>>,
    slots: Vec<NumberSlot>,
    free: Vec<u32>,
}

pub struct Registry {
    /// "engine cpu:0"
    label: String,
    device: Arc<dyn Device>,
    state: Mutex<RegistryState>,
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Registry of {}", self.label)
    }
}

thread_local! {
    /// Number of resources that this thread is making while others may wait for them.
    static MAKING: Cell<u32> = const { Cell::new(0) };
}

/// A resource in a list, with its number of references besides its container's.
pub struct Listed {
    pub resource: Ref<Resource>,
    pub references: usize,
    pub has_name: bool,
}

impl Listed {
    /// A resource of which this is a reference of the caller's.
    pub fn of(resource: Ref<Resource>) -> Listed {
        let registry = resource.registry.upgrade();
        // Under the lock a name and its reference go together.
        let state = registry.as_ref().map(|registry| registry.state.lock());
        let entry = state.as_ref().zip(resource.place()).and_then(|(state, at)| state.find(&at.container, &at.name));
        let has_name = matches!(entry, Some(NameEntry::There(named)) if Ref::ptr_eq(named, &resource));
        let references = Ref::strong_count(&resource) - 1 - usize::from(has_name);
        drop(state);
        Listed { resource, references, has_name }
    }
}

impl Registry {
    pub fn open(label: String, device: Arc<dyn Device>) -> Arc<Registry> {
        Arc::new(Registry { label, device, state: Mutex::default() })
    }

    pub fn label(&self) -> &str {
        &self.label
    }

    pub fn device(&self) -> &Arc<dyn Device> {
        &self.device
    }

    /// Registers a new resource under its name.
    pub fn enter(&self, container: &str, name: &str, resource: &Ref<Resource>) -> Result<()> {
        check_container(container)?;
        check(name)?;
        let mut state = self.state.lock();
        match state.find(container, name) {
            Some(NameEntry::There(_)) => return Err(self.exists(container, name, "has")),
            Some(NameEntry::UnderWay(_)) => return Err(self.exists(container, name, "is about to have")),
            None => {}
        }
        resource.set_place(container, name)?;
        state.put(container, name, NameEntry::There(Ref::clone(resource)));
        // A call that used the memory reserve fails, and leaves nothing behind.
        heap::check().inspect_err(|_| drop((state.take(container, name), state)))
    }

    fn exists(&self, container: &str, name: &str, how: &str) -> Error {
        let text = format!("container '{container}' of {} {how} a resource '{name}' already", self.label);
        Error::new(Code::AlreadyExists, text)
    }

    fn missing(&self, state: &RegistryState, container: &str, name: &str) -> Error {
        let text = match state.containers.contains_key(container) {
            true => format!("container '{container}' of {} has no resource '{name}'", self.label),
            false => format!("{} has no container '{container}'", self.label),
        };
        Error::new(Code::NotFound, text)
    }

    /// A reference to the resource of this name; a kind other than `expected` is refused.
    pub fn lookup(&self, container: &str, name: &str, expected: Option<ResourceKind>) -> Result<Ref<Resource>> {
        check_container(container)?;
        check(name)?;
        let state = self.state.lock();
        let Some(NameEntry::There(resource)) = state.find(container, name) else {
            return Err(self.missing(&state, container, name));
        };
        let resource = Ref::clone(resource);
        drop(state);
        resource.check_kind(expected)?;
        Ok(resource)
    }

    /// The resource of this name, or the result of `make`, which is called by one thread at a time and not under a
    /// lock. Other threads wait for it where they may sleep. `make` returns a resource without a name.
    pub fn lookup_or_make(
        &self,
        container: &str,
        name: &str,
        expected: Option<ResourceKind>,
        make: impl FnOnce() -> Result<Ref<Resource>>,
    ) -> Result<Ref<Resource>> {
        check_container(container)?;
        check(name)?;
        loop {
            let mut state = self.state.lock();
            match state.find(container, name) {
                Some(NameEntry::There(resource)) => {
                    let resource = Ref::clone(resource);
                    drop(state);
                    resource.check_kind(expected)?;
                    return Ok(resource);
                }
                Some(NameEntry::UnderWay(work)) => {
                    let work = Arc::clone(work);
                    drop(state);
                    self.check_may_sleep(container, name)?;
                    if let Some(resource) = work.wait() {
                        resource.check_kind(expected)?;
                        return Ok(resource);
                    }
                }
                None => {
                    let work = Work::default();
                    state.put(container, name, NameEntry::UnderWay(Arc::clone(&work)));
                    drop(state);
                    return self.make(container, name, expected, work, make);
                }
            }
        }
    }

    /// The resource waited for may need this very thread, as a worker or because the thread is making something else
    /// that is needed there.
    fn check_may_sleep(&self, container: &str, name: &str) -> Result<()> {
        let why = match () {
            () if MAKING.get() > 0 => "this thread is making a resource that others may wait for",
            () if ambient::depth() > 0 => "waiting for it here could block a worker of a thread pool",
            () => return Ok(()),
        };
        Err(Error::precondition(format!(
            "resource '{name}' of container '{container}' is being made by another call, and {why}"
        )))
    }

    fn make(
        &self,
        container: &str,
        name: &str,
        expected: Option<ResourceKind>,
        work: Work,
        make: impl FnOnce() -> Result<Ref<Resource>>,
    ) -> Result<Ref<Resource>> {
        let mut broken = BrokenPromise { registry: self, container, name, work: Some(work) };
        let resource = {
            let _making = Making::begin();
            make()?
        };
        resource.check_kind(expected)?;
        if resource.registry.as_ptr() != std::ptr::from_ref(self) {
            return Err(Error::invalid(format!(
                "{} was made for another engine than this {}",
                resource.text(),
                self.label
            )));
        }
        heap::check()?;
        let mut state = self.state.lock();
        resource.set_place(container, name)?;
        if let Some(entry) = state.find_mut(container, name) {
            *entry = NameEntry::There(Ref::clone(&resource));
        }
        drop(state);
        if let Some(work) = broken.work.take() {
            work.settle(Some(Ref::clone(&resource)));
        }
        Ok(resource)
    }

    /// Removes the name. The resource ends with its last reference.
    pub fn delete(&self, container: &str, name: &str) -> Result<()> {
        check_container(container)?;
        check(name)?;
        let mut state = self.state.lock();
        if !matches!(state.find(container, name), Some(NameEntry::There(_))) {
            return Err(self.missing(&state, container, name));
        }
        let gone = state.take(container, name);
        drop(state);
        drop(gone);
        Ok(())
    }

    /// Removes all names of a container, and returns their number. A container that does not exist has none.
    pub fn clear(&self, container: &str) -> Result<usize> {
        check_container(container)?;
        let mut state = self.state.lock();
        let gone = state.clear(container);
        drop(state);
        Ok(gone.len())
    }

    /// The resources of a container, or of all, in the order of their names.
    pub fn list(&self, container: Option<&str>) -> Result<Vec<Listed>> {
        if let Some(container) = container {
            check_container(container)?;
        }
        let state = self.state.lock();
        let is_asked = |name: &str| container.is_none_or(|container| container == name);
        let containers = state.containers.iter().filter(|(name, _)| is_asked(name));
        let there = |entry: &NameEntry| match entry {
            NameEntry::There(named) => {
                let resource = Ref::clone(named);
                Some(Listed { references: Ref::strong_count(&resource) - 2, has_name: true, resource })
            }
            NameEntry::UnderWay(_) => None,
        };
        Ok(containers.flat_map(|(_, entries)| entries.values().filter_map(there)).collect())
    }

    /// Reserves a number for a resource that is about to be made.
    pub(super) fn take_number(&self) -> Result<u64> {
        let mut state = self.state.lock();
        let index = match state.free.pop() {
            Some(index) => index,
            None => {
                let index = state.slots.len();
                let short = |_| Error::exhausted("an engine's resources", (index + 1) * size_of::<NumberSlot>());
                // Room for all indices: returning one allocates nothing.
                state.free.try_reserve(index + 1).map_err(short)?;
                state.slots.try_reserve(1).map_err(short)?;
                state.slots.push(NumberSlot { generation: 1, resource: None });
                index as u32
            }
        };
        Ok(number(state.slots[index as usize].generation, index))
    }

    /// Assigns the reserved number to this resource.
    pub(super) fn number(&self, resource: &Ref<Resource>) {
        let mut state = self.state.lock();
        if let Some(slot) = state.slot(resource.number) {
            slot.resource = Some(Ref::downgrade(resource));
        }
    }

    /// A reference to the resource with this number.
    pub fn by_number(&self, number: u64) -> Result<Ref<Resource>> {
        let mut state = self.state.lock();
        if let Some(found) = state.slot(number).and_then(|slot| slot.resource.as_ref()?.upgrade()) {
            return Ok(found);
        }
        Err(Error::new(
            Code::NotFound,
            match state.has_been(number) {
                true => format!("resource {number:#x} of {} was destroyed", self.label),
                false => format!("{} has never had a resource {number:#x}", self.label),
            },
        ))
    }

    /// Frees the number.
    pub(super) fn vacate(&self, number: u64) {
        self.state.lock().vacate(number);
    }

    /// The engine ends: all names are removed, and resources that others hold are recorded.
    pub fn close(&self) {
        let containers = std::mem::take(&mut self.state.lock().containers);
        for entry in containers.values().flat_map(BTreeMap::values) {
            if let NameEntry::There(resource) = entry
                && Ref::strong_count(resource) > 1
            {
                leaks::note(&self.label, resource);
            }
        }
        // Without the lock: the end of a resource may call the host.
        drop(containers);
    }
}

fn number(generation: u32, index: u32) -> u64 {
    u64::from(generation) << 32 | u64::from(index)
}

impl RegistryState {
    fn find(&self, container: &str, name: &str) -> Option<&NameEntry> {
        self.containers.get(container)?.get(name)
    }

    fn find_mut(&mut self, container: &str, name: &str) -> Option<&mut NameEntry> {
        self.containers.get_mut(container)?.get_mut(name)
    }

    fn put(&mut self, container: &str, name: &str, entry: NameEntry) {
        self.containers.entry(container.into()).or_default().insert(name.into(), entry);
    }

    /// Removes an entry. Its resource loses its number.
    fn take(&mut self, container: &str, name: &str) -> Option<NameEntry> {
        let entry = self.containers.get_mut(container)?.remove(name)?;
        if let NameEntry::There(resource) = &entry {
            self.vacate(resource.number);
        }
        Some(entry)
    }

    /// Removes all resources of a container, and the container if nothing is being made for it.
    fn clear(&mut self, container: &str) -> Vec<NameEntry> {
        let Some(entries) = self.containers.get_mut(container) else { return Vec::new() };
        let (gone, kept): (BTreeMap<_, _>, BTreeMap<_, _>) =
            std::mem::take(entries).into_iter().partition(|(_, entry)| matches!(entry, NameEntry::There(_)));
        match kept.is_empty() {
            true => drop(self.containers.remove(container)),
            false => *entries = kept,
        }
        for entry in gone.values() {
            if let NameEntry::There(resource) = entry {
                self.vacate(resource.number);
            }
        }
        gone.into_values().collect()
    }

    fn slot(&mut self, of: u64) -> Option<&mut NumberSlot> {
        let slot = self.slots.get_mut(of as u32 as usize)?;
        (slot.generation == (of >> 32) as u32).then_some(slot)
    }

    /// Whether a resource has had this number. Generation 0 does not exist, and a vacant slot's is for the next one.
    fn has_been(&self, number: u64) -> bool {
        let generation = (number >> 32) as u32;
        self.slots.get(number as u32 as usize).is_some_and(|slot| {
            (1..slot.generation).contains(&generation) || slot.generation == generation && slot.resource.is_some()
        })
    }

    fn vacate(&mut self, of: u64) {
        let Some(slot) = self.slot(of) else { return };
        // Generation 0 does not exist, so that no number is 0.
        slot.generation = slot.generation.checked_add(1).unwrap_or(1);
        slot.resource = None;
        self.free.push(of as u32);
    }
}

/// This thread makes a resource until this is dropped.
struct Making;

impl Making {
    fn begin() -> Making {
        MAKING.set(MAKING.get() + 1);
        Making
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        MAKING.set(MAKING.get() - 1);
    }
}

/// Breaks a promise that was not kept: `make` has failed, or panics. Then one of the waiting threads tries.
struct BrokenPromise<'a> {
    registry: &'a Registry,
    container: &'a str,
    name: &'a str,
    work: Option<Work>,
}

impl Drop for BrokenPromise<'_> {
    fn drop(&mut self) {
        let Some(work) = self.work.take() else { return };
        let mut state: MutexGuard<'_, RegistryState> = self.registry.state.lock();
        let is_ours = |entry: &NameEntry| matches!(entry, NameEntry::UnderWay(other) if Arc::ptr_eq(other, &work));
        if state.find(self.container, self.name).is_some_and(is_ours) {
            drop(state.take(self.container, self.name));
        }
        drop(state);
        work.settle(None);
    }
}

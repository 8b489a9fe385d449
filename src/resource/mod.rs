//! Resources: objects that an engine keeps by name between runs. Variables, lookup tables, host objects.
//!
//! # Ownership
//!
//! A resource is reference-counted. Its *container* holds one reference, as long as it has the name; handles of the
//! host, programs compiled with it and work in flight hold others. Deleting a name, or clearing a container, drops the
//! container's reference and makes the resource's number stale; the resource ends with its last reference. The end may
//! call the host, so it never happens under a lock.
//!
//! A resource does not keep its engine alive, because the engine keeps the resource. When the engine ends, resources
//! that are still referenced are recorded (`leaks`), and remain readable memory until they are released.
//!
//! # Names and numbers
//!
//! A name is for people and for sharing: container and name, looked up under a lock (`registry`). A *number* is an
//! index and the generation of its object, so a stale one is detected. Kernels of variables hold numbers. They are
//! looked up when a graph is compiled (`Kernel::resolve`): the program holds the variable itself, and its runs go
//! through a pointer. A call on a stream looks the number up.
//!
//! # Exclusive and optimistic variables
//!
//! *Exclusive* (`access`): one buffer, and a lock that a node holds while it reads or writes. A node that finds it
//! taken does not block its worker: it registers as a waiter, completes its round, and tries again when the lock is
//! free. Accesses by runs of different programs are atomic, in some order; within a graph the edges give the order, and
//! compile refuses a graph without one.
//!
//! *Optimistic* (`versions`): no lock during a read or write. A reader holds the version that was current; a writer
//! fills a version of its own and replaces the one that it began with, or begins again. Readers see one value or the
//! other, never parts of both, and no sum is lost.
//!
//! On an accelerator (`on_device`) both are one chain of accesses that the device executes one after the other.

mod access;
mod host;
mod leaks;
mod name;
mod on_device;
mod operations;
mod registry;
mod table;
mod table_kernels;
mod variable;
mod versions;

pub use host::HostObject;
pub use leaks::{count as leak_count, report as leak_report};
pub use name::{DEFAULT_CONTAINER, check as check_name, check_container};
pub use on_device::Side;
pub use operations::{VariableOperation, kernel};
pub use registry::{Listed, Registry};
pub use table::{KeyKind, Keys, LookupTable, TableKey};
pub use table_kernels::{TableOperation, table_kernel};
pub use variable::Variable;

use crate::abi::{weir_resource_kind, weir_resource_kind_value as V};
use crate::base::object::tag;
use crate::base::{Error, Kind, Object, Ref, Result, live};
use crate::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};

/// Kinds of resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceKind {
    Variable,
    Table,
    Host,
}

impl ResourceKind {
    const ALL: [ResourceKind; 3] = [ResourceKind::Variable, ResourceKind::Table, ResourceKind::Host];

    pub fn value(self) -> weir_resource_kind {
        let value = match self {
            ResourceKind::Variable => V::WEIR_RESOURCE_VARIABLE,
            ResourceKind::Table => V::WEIR_RESOURCE_TABLE,
            ResourceKind::Host => V::WEIR_RESOURCE_HOST,
        };
        value as weir_resource_kind
    }

    /// `None` = any.
    pub fn from_value(value: weir_resource_kind) -> Result<Option<ResourceKind>> {
        if value == V::WEIR_RESOURCE_ANY as weir_resource_kind {
            return Ok(None);
        }
        let kind = ResourceKind::ALL.into_iter().find(|kind| kind.value() == value);
        kind.map(Some).ok_or_else(|| Error::invalid(format!("kind is {value}, which is no resource kind")))
    }

    pub fn name(self) -> &'static str {
        match self {
            ResourceKind::Variable => "variable",
            ResourceKind::Table => "table",
            ResourceKind::Host => "host object",
        }
    }
}

/// A number for objects that nodes of graphs read and write, unique in this process. ORDERING: Relaxed; only uniqueness
/// matters.
pub fn next_serial() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Relaxed)
}

/// The object behind a resource.
pub enum ResourceBody {
    Variable(Variable),
    Table(LookupTable),
    Host(HostObject),
}

/// The container and name under which a resource was registered.
#[derive(Clone, Debug)]
pub struct ResourcePlace {
    pub container: Box<str>,
    pub name: Box<str>,
}

pub struct Resource {
    registry: Weak<Registry>,
    number: u64,
    place: OnceLock<ResourcePlace>,
    body: ResourceBody,
}

impl Kind for Resource {
    const TAG: u32 = tag::RESOURCE;
    const NAME: &'static str = "resource";
    const COUNTER: live::Counter = live::Counter::Resources;
}

impl Resource {
    /// A resource without a name.
    pub fn create(registry: &Arc<Registry>, body: ResourceBody) -> Result<Ref<Resource>> {
        let number = registry.take_number()?;
        let resource = Resource { registry: Arc::downgrade(registry), number, place: OnceLock::new(), body };
        let resource = Object::shared(resource);
        registry.number(&resource);
        Ok(resource)
    }

    pub fn kind(&self) -> ResourceKind {
        match &self.body {
            ResourceBody::Variable(_) => ResourceKind::Variable,
            ResourceBody::Table(_) => ResourceKind::Table,
            ResourceBody::Host(_) => ResourceKind::Host,
        }
    }

    /// Index and generation.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// `None` if it was never registered in a container.
    pub fn place(&self) -> Option<&ResourcePlace> {
        self.place.get()
    }

    fn set_place(&self, container: &str, name: &str) -> Result<()> {
        let place = ResourcePlace { container: container.into(), name: name.into() };
        self.place.set(place).map_err(|_| Error::invalid(format!("{} has a name already", self.text())))
    }

    /// "variable 'x' of container 'default'"
    pub fn text(&self) -> String {
        match self.place() {
            Some(place) => format!("{} '{}' of container '{}'", self.kind().name(), place.name, place.container),
            None => format!("{} {:#x} without a name", self.kind().name(), self.number),
        }
    }

    pub fn belongs_to(&self, registry: &Arc<Registry>) -> bool {
        self.registry.as_ptr() == Arc::as_ptr(registry)
    }

    /// Refuses a resource of another engine; `argument` names it.
    pub fn check_engine(&self, registry: &Arc<Registry>, argument: &str) -> Result<()> {
        if self.belongs_to(registry) {
            return Ok(());
        }
        Err(Error::invalid(format!("{argument} is {}, of another engine than this {}", self.text(), registry.label())))
    }

    fn is_not(&self, expected: ResourceKind) -> Error {
        Error::invalid(format!("{} is no {}", self.text(), expected.name()))
    }

    pub fn check_kind(&self, expected: Option<ResourceKind>) -> Result<()> {
        match expected {
            Some(expected) if expected != self.kind() => Err(self.is_not(expected)),
            _ => Ok(()),
        }
    }

    pub fn variable(&self) -> Result<&Variable> {
        match &self.body {
            ResourceBody::Variable(variable) => Ok(variable),
            _ => Err(self.is_not(ResourceKind::Variable)),
        }
    }

    pub fn table(&self) -> Result<&LookupTable> {
        match &self.body {
            ResourceBody::Table(table) => Ok(table),
            _ => Err(self.is_not(ResourceKind::Table)),
        }
    }

    pub fn host(&self) -> Result<&HostObject> {
        match &self.body {
            ResourceBody::Host(object) => Ok(object),
            _ => Err(self.is_not(ResourceKind::Host)),
        }
    }

    /// Bytes of memory that it holds.
    pub fn bytes(&self) -> usize {
        match &self.body {
            ResourceBody::Variable(variable) => variable.bytes(),
            ResourceBody::Table(table) => table.bytes(),
            ResourceBody::Host(_) => 0,
        }
    }
}

impl Drop for Resource {
    fn drop(&mut self) {
        if let Some(registry) = self.registry.upgrade() {
            registry.vacate(self.number);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;

//! An engine's memory: its sources, modes and statistics.

use super::attr::{EngineAttr, MemoryMode};
use super::threads::EnvVariable;
use crate::base::{Error, Ref, Result};
use crate::device::{Accelerator, Device, Pinning};
use crate::memory::{ALIGNMENT, HostAllocator, Pool, PoolAttr, ProcessMemory, Source, Tag};
use std::sync::Arc;

static MODE: EnvVariable = EnvVariable::new("WEIR_MEMORY_MODE");

/// Memory that the host may be unable to touch.
#[derive(Debug)]
struct DeviceMemory(Arc<dyn Device>);

impl DeviceMemory {
    fn accelerator(&self) -> Result<&dyn Accelerator> {
        self.0.accelerator().ok_or_else(|| Error::internal("a device without memory of its own"))
    }
}

// SAFETY: the device's memory, by the contract of `Accelerator`.
unsafe impl Source for DeviceMemory {
    fn allocate(&self, bytes: usize, alignment: usize, what: &Tag) -> Result<usize> {
        let address = self.accelerator()?.allocate(bytes, &what.to_string())?;
        if address.is_multiple_of(alignment) {
            return Ok(address);
        }
        // SAFETY: just given, and nobody has it.
        unsafe { self.deallocate(address, bytes, alignment) };
        Err(Error::internal(format!("the device gave {address:#x}, which is not aligned to {alignment} bytes")))
    }

    unsafe fn deallocate(&self, address: usize, bytes: usize, _alignment: usize) {
        if let Ok(accelerator) = self.accelerator() {
            accelerator.deallocate(address, bytes);
        }
    }

    fn trim(&self, keep: usize) {
        if let Ok(accelerator) = self.accelerator() {
            accelerator.trim(keep);
        }
    }

    fn is_zeroed(&self) -> bool {
        false
    }

    unsafe fn fill_zero(&self, _address: usize, _bytes: usize) -> Result<()> {
        Err(only_streams_fill())
    }
}

/// Device memory from an allocator of the host's: the host may be unable to touch it.
#[derive(Debug)]
struct LentMemory(Ref<HostAllocator>);

// SAFETY: the allocator's memory, by its contract.
unsafe impl Source for LentMemory {
    fn allocate(&self, bytes: usize, alignment: usize, what: &Tag) -> Result<usize> {
        self.0.allocate(bytes, alignment, what)
    }

    unsafe fn deallocate(&self, address: usize, bytes: usize, alignment: usize) {
        // SAFETY: as demanded of the caller.
        unsafe { self.0.deallocate(address, bytes, alignment) };
    }

    fn is_zeroed(&self) -> bool {
        false
    }

    unsafe fn fill_zero(&self, _address: usize, _bytes: usize) -> Result<()> {
        Err(only_streams_fill())
    }
}

fn only_streams_fill() -> Error {
    Error::internal("only streams of a device fill its memory")
}

/// Host memory that a device has pinned.
#[derive(Debug)]
struct PinnedMemory(Arc<dyn Device>);

impl PinnedMemory {
    fn pinning(&self) -> Result<&dyn Pinning> {
        self.0.host_memory().ok_or_else(|| Error::internal("a device that pins no memory"))
    }
}

// SAFETY: the host's memory, by the contract of `Pinning`.
unsafe impl Source for PinnedMemory {
    fn allocate(&self, bytes: usize, alignment: usize, what: &Tag) -> Result<usize> {
        let address = self.pinning()?.allocate_host(bytes, &what.to_string())?;
        if address.is_multiple_of(alignment) {
            return Ok(address);
        }
        // SAFETY: just given, and nobody has it.
        unsafe { self.deallocate(address, bytes, alignment) };
        Err(Error::internal(format!("the device gave {address:#x}, which is not aligned to {alignment} bytes")))
    }

    unsafe fn deallocate(&self, address: usize, bytes: usize, _alignment: usize) {
        if let Ok(pinning) = self.pinning() {
            pinning.deallocate_host(address, bytes);
        }
    }

    fn is_zeroed(&self) -> bool {
        false
    }

    unsafe fn fill_zero(&self, address: usize, bytes: usize) -> Result<()> {
        // SAFETY: as demanded of the caller.
        unsafe { ProcessMemory.fill_zero(address, bytes) }
    }
}

/// Host memory for copies of an accelerator's engine: pinned where the device supports it. `None` on the CPU, where the
/// engine's memory is the host's.
pub(super) fn open_host(attr: &EngineAttr, device: &Arc<dyn Device>, label: &str) -> Option<Arc<Pool>> {
    device.accelerator()?;
    let is_pinned = device.host_memory().is_some();
    let (source, what): (Box<dyn Source>, _) = match is_pinned {
        true => (Box::new(PinnedMemory(Arc::clone(device))), "pinned memory"),
        false => (Box::new(ProcessMemory), "memory of the host"),
    };
    let limit = attr.pinned_limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
    let name = format!("{label}, {what}");
    let direct = attr.memory_mode == Some(MemoryMode::Direct);
    Some(Pool::new(PoolAttr { name, alignment: ALIGNMENT, limit, direct }, source))
}

/// The memory of the engine with this label, on this device; sets the resolved mode in `attr`.
pub(super) fn open(attr: &mut EngineAttr, device: &Arc<dyn Device>, label: &str) -> Result<Arc<Pool>> {
    let mode = match attr.memory_mode {
        Some(mode) => mode,
        None => {
            let default = if device.wants_direct_memory() { MemoryMode::Direct } else { MemoryMode::Pooled };
            MODE.get(MemoryMode::from_name, "pooled or direct")?.unwrap_or(default)
        }
    };
    attr.memory_mode = Some(mode);
    let mut alignment = device.alignment();
    alignment = attr.allocator().map_or(alignment, |allocator| alignment.max(allocator.alignment()));
    let source: Box<dyn Source> = match attr.allocator() {
        Some(allocator) if device.accelerator().is_some() => Box::new(LentMemory(Ref::clone(allocator))),
        Some(allocator) => Box::new(Ref::clone(allocator)),
        None if device.accelerator().is_some() => Box::new(DeviceMemory(Arc::clone(device))),
        None if device.host_memory().is_some() => Box::new(PinnedMemory(Arc::clone(device))),
        None => Box::new(ProcessMemory),
    };
    let limit = attr.memory_limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
    let name = label.to_owned();
    Ok(Pool::new(PoolAttr { name, alignment, limit, direct: mode == MemoryMode::Direct }, source))
}

//! An engine's memory: where it comes from, how it is kept, and figures of it.

use super::attr::EngineAttr;
use super::engine::Engine;
use super::threads::Variable;
use crate::abi::{weir_memory_info, weir_memory_mode, weir_memory_mode_value as V};
use crate::base::{Error, Ref, Result};
use crate::device::Device;
use crate::memory::{Pool, PoolAttr, Source};
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryMode {
    Pooled,
    Direct,
}

impl MemoryMode {
    const ALL: [(MemoryMode, V, &str); 2] = [
        (MemoryMode::Pooled, V::WEIR_MEMORY_MODE_POOLED, "pooled"),
        (MemoryMode::Direct, V::WEIR_MEMORY_MODE_DIRECT, "direct"),
    ];

    pub fn value(self) -> weir_memory_mode {
        MemoryMode::ALL.iter().find(|row| row.0 == self).map_or(0, |row| row.1 as weir_memory_mode)
    }

    pub fn from_value(value: weir_memory_mode) -> Result<MemoryMode> {
        let mode = MemoryMode::ALL.iter().find(|row| row.1 as weir_memory_mode == value).map(|row| row.0);
        mode.ok_or_else(|| Error::invalid(format!("mode is {value}, which is no memory mode")))
    }

    fn from_name(name: &str) -> Option<MemoryMode> {
        MemoryMode::ALL.iter().find(|row| row.2.eq_ignore_ascii_case(name)).map(|row| row.0)
    }
}

static MODE: Variable = Variable::new("WEIR_MEMORY_MODE");

/// The memory of an engine on this device; then `attr` says how it is kept.
pub(super) fn open(attr: &mut EngineAttr, device: &dyn Device) -> Result<Arc<Pool>> {
    let mode = match attr.memory_mode {
        Some(mode) => mode,
        None => MODE.get(MemoryMode::from_name, "pooled or direct")?.unwrap_or(MemoryMode::Pooled),
    };
    attr.memory_mode = Some(mode);
    let mut alignment = device.alignment();
    let source: Box<dyn Source> = match attr.allocator().ok().flatten() {
        Some(allocator) => {
            alignment = alignment.max(allocator.alignment());
            Box::new(Ref::clone(allocator))
        }
        None => device.memory(),
    };
    let limit = attr.memory_limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
    let name = format!("engine {}:{}", device.kind().name(), device.index());
    Ok(Pool::new(PoolAttr { name, alignment, limit, direct: mode == MemoryMode::Direct }, source))
}

impl Engine {
    pub fn memory_info(&self) -> weir_memory_info {
        let usage = self.memory().usage();
        let limit = self.memory().limit();
        weir_memory_info {
            struct_size: 0,
            limit: if limit == usize::MAX { u64::MAX } else { limit as u64 },
            in_use: usage.in_use as u64,
            peak_in_use: usage.peak_in_use as u64,
            reserved: usage.reserved as u64,
            peak_reserved: usage.peak_reserved as u64,
            largest_free: usage.largest_free as u64,
            blocks: usage.blocks as u64,
            regions: usage.regions as u64,
            allocations: usage.allocations,
            region_allocations: usage.region_allocations,
            fragmentation: usage.fragmentation(),
        }
    }
}

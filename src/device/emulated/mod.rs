//! The emulated device: asynchronous in-order queues, memory that the host cannot touch, and kernels that are host
//! functions. It serves tests of device code, in this library and in its users' programs, on machines without a device.
//!
//! To the library it is a plug-in like any other, through the functions of `vtable`. The code behind them knows the C
//! structs (`given`) and none of the traits of `device`.
//!
//! - `settings`: how it is emulated.
//! - `space`, and `memory::Reserve`: addresses that the host cannot touch, and the bytes behind them.
//! - `stream`, `queue`, `event`: submission, and the queues' items.
//! - `pins`: pinned host memory.
//! - `kernel`: host functions as kernels.
//! - `state`, `work`, `effect`: the device's thread, modelled time, demands, faults, and the operations themselves.
//! - `region`: kernels made of several nodes.
//! - `recorded`, `list`, `replay`: recordings, the lists of their steps, and their launches.
//! - `schedule`: seeded orders, and the record of them.
//! - `checker` with `clocks` and `cells`, `check`, `races`: whether operations that use the same bytes are ordered.
//!
//! *Replay by a seed.* With a seed that is not 0 the device works only on demand (`work`), and takes no time. The order
//! of its operations is then a function of the seed and of the order of the host's calls: submissions, waits, queries,
//! and requests for callbacks. So are the answers to queries, except for a query on another thread while the device has
//! been inside a callback for longer than a tenth of a second. The host's own behaviour is not replayed: calls from
//! several threads that nothing orders, such as those of a graph on a pool of several; waits that end by their
//! deadline; and addresses.
//!
//! *Locks.* `DeviceState` first; under it, for a moment each and one at a time: the memory's, an event's, the list of
//! devices. The checker's comes last of all. No lock is held while a kernel or a callback runs.

mod cells;
mod check;
mod checker;
mod clocks;
mod core;
mod effect;
mod event;
mod given;
mod host;
mod kernel;
mod list;
mod operation;
mod pins;
mod queue;
mod races;
mod recorded;
mod region;
mod replay;
mod schedule;
mod settings;
mod shared;
mod space;
mod state;
mod stream;
mod vtable;
mod work;

#[cfg(test)]
mod checker_tests;

pub use races::{Party, Race, RaceKind};
pub use settings::Emulation;

use super::plugin::Plugin;
use super::{Accelerator, Device, DeviceKind, DeviceSettings, Factory};
use crate::abi::weir_emulated_counters;
use crate::base::Result;
use crate::sync::OnceLock;
use shared::SharedDevice;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// The factory of emulated devices: one for all, so that they are peers.
pub fn plugin() -> Plugin {
    static PLUGIN: OnceLock<Plugin> = OnceLock::new();
    PLUGIN.get_or_init(|| Plugin::own(DeviceKind::EMULATED, vtable::VTABLE)).clone()
}

/// An emulated device, and its diagnostics.
#[derive(Clone, Debug)]
pub struct Emulated {
    device: Arc<dyn Device>,
    shared: Arc<SharedDevice>,
}

impl Deref for Emulated {
    type Target = dyn Accelerator + 'static;

    fn deref(&self) -> &Self::Target {
        self.device.accelerator().unwrap_or_else(|| unreachable!("`of` has asked"))
    }
}

impl Emulated {
    /// A device of its own, which no engine shares.
    pub fn new(index: u32, emulation: Emulation) -> Result<Emulated> {
        let settings = DeviceSettings { attributes: Some(emulation.settings()), ..DeviceSettings::default() };
        let device = plugin().open(index, &settings)?;
        Emulated::of(&device).ok_or_else(|| crate::base::Error::internal("an emulated device that is none"))
    }

    /// The emulated device behind `device`, if it is one.
    pub fn of(device: &Arc<dyn Device>) -> Option<Emulated> {
        let [_, handle] = device.accelerator()?.plugin_identity()?;
        Some(Emulated { device: Arc::clone(device), shared: check::with_handle(handle)? })
    }

    pub fn device(&self) -> &Arc<dyn Device> {
        &self.device
    }

    /// The settings, with defaults filled in.
    pub fn emulation(&self) -> Emulation {
        self.shared.settings
    }

    pub fn counters(&self) -> weir_emulated_counters {
        let usage = self.shared.space.lock().usage();
        let state = self.shared.state.lock();
        weir_emulated_counters {
            struct_size: 0,
            operations: state.counts.operations,
            completed: state.order.total(),
            launches: state.counts.launches,
            copies: state.counts.copies,
            fills: state.counts.fills,
            waits: state.counts.waits,
            records: state.counts.records,
            allocations: usage.made,
            allocations_in_use: usage.alive,
            bytes_in_use: usage.bytes as u64,
            peak_bytes: usage.peak as u64,
            races: state.races.found(),
            replays: state.counts.replays,
            pageable_copies: state.counts.pageable_copies,
            pinned_bytes: self.shared.pins.lock().bytes() as u64,
            // ORDERING: Relaxed; a count.
            regions: self.shared.regions.load(Relaxed),
        }
    }

    /// How many operations the device has come to, and the numbers of the latest ones, at most `count`, the oldest
    /// first.
    pub fn order(&self, count: usize) -> (u64, Vec<u64>) {
        let state = self.shared.state.lock();
        (state.order.total(), state.order.latest(count))
    }

    /// The checker's reports, in the order in which they were first found. Races that are alike make one report.
    pub fn races(&self) -> Vec<Race> {
        self.shared.state.lock().races.list().to_vec()
    }

    /// Forgets the reports.
    pub fn clear_races(&self) {
        self.shared.state.lock().races.clear();
    }
}

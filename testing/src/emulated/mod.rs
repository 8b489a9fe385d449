//! The emulated device: asynchronous in-order queues, memory that the host cannot touch, and kernels that are host
//! functions. It serves tests of device code, in this library and in its users' programs, on machines without a device.
//!
//! To libweir it is a plug-in like any other, through the functions of `vtable`. The code behind them knows the C structs
//! (`given`) and nothing of the inside of libweir.
//!
//! - `settings`: how it is emulated.
//! - `space`, `reserve`: addresses that the host cannot touch, and the bytes behind them.
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
mod reserve;
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

use crate::abi::{weir_device_vtable, weir_emulated_counters};
use shared::SharedDevice;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// The functions by which libweir knows emulated devices. They need no context.
pub const VTABLE: weir_device_vtable = vtable::VTABLE;

/// The diagnostics of an emulated device.
#[derive(Clone, Debug)]
pub struct Emulated(Arc<SharedDevice>);

impl Emulated {
    /// The emulated device with this native handle, if there is one.
    pub fn with_handle(handle: u64) -> Option<Emulated> {
        check::with_handle(usize::try_from(handle).ok()?).map(Emulated)
    }

    /// The settings, with defaults filled in.
    pub fn emulation(&self) -> Emulation {
        self.0.settings
    }

    pub fn counters(&self) -> weir_emulated_counters {
        let usage = self.0.space.lock().usage();
        let state = self.0.state.lock();
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
            pinned_bytes: self.0.pins.lock().bytes() as u64,
            // ORDERING: Relaxed; a count.
            regions: self.0.regions.load(Relaxed),
        }
    }

    /// How many operations the device has come to, and the numbers of the latest ones, at most `count`, the oldest
    /// first.
    pub fn order(&self, count: usize) -> (u64, Vec<u64>) {
        let state = self.0.state.lock();
        (state.order.total(), state.order.latest(count))
    }

    /// The checker's reports, in the order in which they were first found. Races that are alike make one report.
    pub fn races(&self) -> Vec<Race> {
        self.0.state.lock().races.list().to_vec()
    }

    /// Forgets the reports.
    pub fn clear_races(&self) {
        self.0.state.lock().races.clear();
    }
}

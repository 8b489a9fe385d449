//! The emulated device: asynchronous in-order queues, memory that the host cannot touch, and kernels that are host
//! functions. It is for tests of everything that works with devices, by this library and by those who use it, where
//! there is no device.
//!
//! - `space`, and `memory::Reserve`: addresses, of which none can be touched by the host, and the bytes behind them.
//! - `stream`, `queue`, `event`: submission, and what lies in the queues.
//! - `pins`: memory of the host's that copies go straight from and to.
//! - `state`, `work`, `effect`: the device's thread, modelled time, demands, faults, and the operations themselves.
//! - `recorded`, `list`, `replay`: recordings, the lists of their steps, and their launches.
//! - `schedule`: orders by a seed, and the record of them.
//! - `checker` with `clocks` and `cells`, `check`, `races`: whether operations are ordered that use the same bytes.
//!
//! *What a seed replays.* With a seed that is not 0 the device works only on demand (`work`), and takes no time. The
//! order in which it comes to its operations is then a function of the seed and of the order in which the host calls
//! it: submissions, waits, questions, and requests to be called. So is what each question is answered, but for one that
//! is asked on another thread while the device calls somebody for longer than a tenth of a second. Not replayed is what
//! the host does by itself: calls from several threads that nothing orders, such as those that run a graph on a pool of
//! several; waits that end by their deadline; and addresses.
//!
//! *Locks.* `State` first; under it, for a moment each and one at a time: the memory's, an event's, the list of
//! devices. The checker's comes last of all. No lock is held while a kernel runs or somebody is called.

mod cells;
mod check;
mod checker;
mod clocks;
mod effect;
mod event;
mod list;
mod pins;
mod queue;
mod races;
mod recorded;
mod replay;
mod schedule;
mod space;
mod state;
mod stream;
mod work;

#[cfg(test)]
mod checker_tests;

pub use races::{Party, Race, RaceKind};

use super::{
    Accelerator, Device, DeviceEvent, DeviceKernel, DeviceKind, DeviceStream, Executable, Pinning, Presence, Recipe,
    Recording, Settings, StreamAttr, Then,
};
use crate::abi::{weir_emulated_counters, weir_emulation_flags as F};
use crate::base::{Code, Error, Result};
use crate::memory::Reserve;
use crate::sync::{Gate, Mutex, OnceLock, fork};
use checker::CHECKER;
use event::{Core, Event};
use recorded::Recorded;
use space::Space;
use state::State;
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use stream::{Kernel, Stream};
use work::{Demand, Shared};

const MEMORY_BYTES: u64 = 1 << 30;

const DEVICES: u32 = 8;

/// How a device is emulated; `weir_emulation` says what each means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Emulation {
    pub seed: u64,
    pub flags: u64,
    pub latency_ns: u64,
    pub bytes_per_us: u64,
    pub kernel_ns: u64,
    pub memory_bytes: u64,
    pub fail_operation: u64,
    pub fail_copy: u64,
    pub fail_allocation: u64,
    pub lose_operation: u64,
    pub replay_ns: u64,
}

impl Emulation {
    pub const CHECK: u64 = F::WEIR_EMULATION_CHECK as u64;
    pub const STRICT: u64 = F::WEIR_EMULATION_STRICT as u64;
    pub const PRECISE: u64 = F::WEIR_EMULATION_PRECISE as u64;

    /// Refuses settings that mean nothing.
    pub fn check(&self) -> Result<()> {
        let known = Self::CHECK | Self::STRICT | Self::PRECISE;
        if self.flags & !known != 0 {
            return Err(Error::invalid(format!("flags has unknown bits {:#x}", self.flags & !known)));
        }
        if self.is_strict() && !self.checks() {
            return Err(Error::invalid("flags has WEIR_EMULATION_STRICT without WEIR_EMULATION_CHECK"));
        }
        Ok(())
    }

    fn settled(self) -> Emulation {
        let memory_bytes = if self.memory_bytes == 0 { MEMORY_BYTES } else { self.memory_bytes };
        Emulation { memory_bytes, ..self }
    }

    fn checks(&self) -> bool {
        self.flags & Self::CHECK != 0
    }

    fn is_strict(&self) -> bool {
        self.flags & Self::STRICT != 0
    }

    fn is_precise(&self) -> bool {
        self.flags & Self::PRECISE != 0
    }

    /// What an operation takes: with `bytes` it moves them, without it is a kernel.
    fn duration_ns(&self, bytes: Option<usize>) -> u64 {
        let work = match bytes {
            None => self.kernel_ns,
            Some(_) if self.bytes_per_us == 0 => 0,
            Some(bytes) => (bytes as u64).saturating_mul(1000) / self.bytes_per_us,
        };
        self.latency_ns.saturating_add(work)
    }
}

/// An emulated device.
#[derive(Debug)]
pub struct Emulated {
    shared: Arc<Shared>,
    _presence: Presence,
}

impl Emulated {
    /// A device of its own, which no engine shares.
    pub fn new(index: u32, settings: Emulation) -> Result<Emulated> {
        static IDS: AtomicU64 = AtomicU64::new(1);
        settings.check().map_err(|error| error.within("emulation"))?;
        let settings = settings.settled();
        let label = format!("{}:{index}", DeviceKind::EMULATED.name());
        let what = format!("the memory of {label}");
        let limit = usize::try_from(settings.memory_bytes).map_err(|_| Error::exhausted(&what, usize::MAX))?;
        let reserve = Reserve::new(limit, &what)?;
        let shared = Arc::new(Shared {
            index,
            settings,
            // ORDERING: Relaxed; only that each has another one matters.
            id: IDS.fetch_add(1, Relaxed),
            space: Mutex::new(Space::new(reserve.start(), reserve.size(), limit)),
            reserve,
            pins: Mutex::default(),
            state: Mutex::new(State::new(&label, settings.seed, settings.checks())?),
            label,
            called: Gate::new(),
            holding: AtomicUsize::new(0),
            is_put_off: AtomicBool::new(false),
            met: Gate::new(),
            lost: OnceLock::new(),
        });
        check::enter(&shared);
        if settings.checks() {
            CHECKER.enter();
        }
        Ok(Emulated { shared, _presence: Presence::default() })
    }

    /// The emulated device that this is, if it is one.
    pub fn of(device: &Arc<dyn Device>) -> Option<&Emulated> {
        let any: &dyn Any = &**device;
        any.downcast_ref()
    }

    /// How it is emulated, with what was left open as it was settled.
    pub fn emulation(&self) -> &Emulation {
        &self.shared.settings
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
        }
    }

    /// How many operations the device has come to, and the numbers of the latest ones, at most `count`, the oldest
    /// first.
    pub fn order(&self, count: usize) -> (u64, Vec<u64>) {
        let state = self.shared.state.lock();
        (state.order.total(), state.order.latest(count))
    }

    /// The checker's reports, in the order in which they were first found; finds that are alike are one.
    pub fn races(&self) -> Vec<Race> {
        self.shared.state.lock().races.list().to_vec()
    }

    /// Forgets the reports.
    pub fn clear_races(&self) {
        self.shared.state.lock().races.clear();
    }
}

impl Drop for Emulated {
    fn drop(&mut self) {
        // A child of fork has no thread of the device's, and leaves the lock alone.
        if !fork::forked() {
            self.shared.close();
        }
    }
}

impl Device for Emulated {
    fn kind(&self) -> DeviceKind {
        DeviceKind::EMULATED
    }

    fn index(&self) -> u32 {
        self.shared.index
    }

    fn name(&self) -> &str {
        "emulated device"
    }

    fn alignment(&self) -> usize {
        space::ALIGNMENT
    }

    fn memory_bytes(&self) -> u64 {
        self.shared.settings.memory_bytes
    }

    fn accelerator(&self) -> Option<&dyn Accelerator> {
        Some(self)
    }

    fn fits(&self, settings: &Settings) -> Result<()> {
        match settings.emulation {
            Some(asked) if asked.settled() != self.shared.settings => Err(Error::precondition(format!(
                "{} is in use and emulated in another way than attr asks for",
                self.shared.label
            ))),
            _ => Ok(()),
        }
    }

    fn is_lost(&self) -> bool {
        self.shared.lost.get().is_some()
    }
}

impl Accelerator for Emulated {
    fn allocate(&self, bytes: usize, what: &str) -> Result<usize> {
        self.shared.intact()?;
        let now = self.shared.state.lock().counts.operations;
        let failing = self.shared.settings.fail_allocation;
        let address = self.shared.space.lock().allocate(bytes, what, failing, now);
        address.map_err(|error| error.within(&self.shared.label))
    }

    fn deallocate(&self, address: usize, bytes: usize) {
        if fork::forked() {
            return;
        }
        let mut state = self.shared.state.lock();
        if self.shared.checks() && !state.is_over {
            check::free(&self.shared, &mut state, address, bytes);
        }
        let now = state.counts.operations;
        self.shared.space.lock().deallocate(address, now);
    }

    fn stream(&self, attr: &StreamAttr<'_>) -> Result<Box<dyn DeviceStream>> {
        Ok(Box::new(Stream::open(&self.shared, attr)?))
    }

    fn event(&self, timing: bool) -> Result<Arc<dyn DeviceEvent>> {
        let mut state = self.shared.open()?;
        state.events += 1;
        let core = Arc::new(Core::new(state.events));
        drop(state);
        Ok(Arc::new(Event { shared: Arc::clone(&self.shared), core, timing }))
    }

    fn kernel(&self, recipe: &Recipe<'_>) -> Result<Arc<dyn DeviceKernel>> {
        self.shared.intact()?;
        let Some(function) = recipe.host.clone() else {
            let text = format!("an emulated device has no kernel '{}' of its own", recipe.operation);
            return Err(Error::new(Code::Unimplemented, text));
        };
        Ok(Arc::new(Kernel { operation: recipe.name.to_owned(), function }))
    }

    fn within(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        self.shared.within(work)
    }

    fn pinning(&self) -> Option<&dyn Pinning> {
        Some(self)
    }

    fn can_record(&self) -> bool {
        true
    }

    fn control_flow(&self) -> Result<()> {
        self.shared.intact()
    }

    fn record(&self, recording: &Recording<'_>) -> Result<Arc<dyn Executable>> {
        self.shared.intact()?;
        let recorded = Recorded::new(&self.shared, recording).map_err(|error| error.within(&self.shared.label))?;
        Ok(Arc::new(recorded))
    }

    fn when_reached(&self, event: &Arc<dyn DeviceEvent>, then: Then) {
        let Ok(event) = Event::of(event, &self.shared) else { return then.tell() };
        let mut state = self.shared.state.lock();
        let time = event.core.recorded();
        if time > 0 && self.shared.is_seeded() && !state.is_over && !self.is_lost() {
            // Reached or not, its turn comes after the demands before it.
            state.pending += 1;
            self.shared.ask(&mut state, Demand::Event(Arc::clone(&event.core), time, Some(then)));
        } else if event.core.is_reached_for(time) {
            event.seen(&state);
            drop(state);
            return then.tell();
        } else {
            event.core.then(then);
            state.pending += 1;
        }
        drop(state);
        self.shared.called.advance(1);
    }
}

pub(super) struct Factory;

impl super::Factory for Factory {
    fn count(&self) -> u32 {
        if cfg!(unix) { DEVICES } else { 0 }
    }

    fn why_none(&self) -> Option<String> {
        (!cfg!(unix)).then(|| "memory without access is not done for this system".to_owned())
    }

    fn open(&self, index: u32, settings: &Settings) -> Result<Arc<dyn Device>> {
        Ok(Arc::new(Emulated::new(index, settings.emulation.unwrap_or_default())?))
    }
}

//! State that the device's thread shares with submitting threads.
#![forbid(unsafe_code)]

use super::pins::Pins;
use super::reserve::AddressReserve;
use super::settings::Emulation;
use super::space::DeviceSpace;
use super::state::{Asked, Demand, DeviceState};
use crate::base::time::now_ns;
use crate::base::{Error, Result};
use crate::memory::View;
use crate::sync::{EventCount, Mutex, MutexGuard, OnceLock};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};

pub(super) struct SharedDevice {
    pub index: u32,
    pub label: String,
    pub settings: Emulation,
    /// Distinguishes devices in the checker.
    pub id: u64,
    pub reserve: Arc<AddressReserve>,
    pub space: Mutex<DeviceSpace>,
    pub pins: Mutex<Pins>,
    pub state: Mutex<DeviceState>,
    /// Advances when there may be work.
    pub called: EventCount,
    /// How many callers are delaying wake-ups, and whether one was delayed.
    pub holding: AtomicUsize,
    pub is_put_off: AtomicBool,
    /// Advances as demands are met, and at the end.
    pub met: EventCount,
    pub lost: OnceLock<Error>,
    /// How many regions it was asked to compile, and how many it has compiled.
    pub regions_asked: AtomicU64,
    pub regions: AtomicU64,
}

impl std::fmt::Debug for SharedDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?}", self.label, self.settings)
    }
}

impl SharedDevice {
    pub(super) fn is_seeded(&self) -> bool {
        self.settings.seed != 0
    }

    pub(super) fn checks(&self) -> bool {
        self.settings.checks()
    }

    /// Whether the checker looks at what the host uses and frees. A lost device does nothing any more, and the host
    /// frees even what its work names.
    pub(super) fn watches_host(&self, state: &DeviceState) -> bool {
        self.checks() && !state.is_over && self.lost.get().is_none()
    }

    /// The modelled time of a submission; 0 with a seed.
    pub(super) fn time_ns(&self) -> u64 {
        if self.is_seeded() { 0 } else { now_ns() }
    }

    /// Fails once the device is lost.
    pub(super) fn intact(&self) -> Result<()> {
        self.lost.get().map_or(Ok(()), |lost| Err(lost.clone()))
    }

    /// As `intact`, and fails once no work is accepted.
    pub(super) fn open(&self) -> Result<MutexGuard<'_, DeviceState>> {
        let state = self.state.lock();
        // Under the lock, as the loss is: what came behind that would never be done.
        self.intact()?;
        if state.is_closing {
            return Err(Error::precondition(format!("{} has ended: nobody has an engine on it", self.label)));
        }
        Ok(state)
    }

    /// Work was submitted.
    pub(super) fn submitted(&self) {
        if self.is_seeded() {
            return;
        }
        // ORDERING: SeqCst here and in `let_go`: a submitter looks for callers that delay wake-ups, and those look for
        // delayed wake-ups, each after its own write, so one of the two sees the other.
        if self.holding.load(SeqCst) > 0 {
            self.is_put_off.store(true, SeqCst);
            if self.holding.load(SeqCst) > 0 {
                return;
            }
        }
        self.called.advance(1);
    }

    /// Wakes the device's thread once for all that is submitted until `let_go`.
    pub(super) fn hold(&self) {
        self.holding.fetch_add(1, SeqCst);
    }

    pub(super) fn let_go(&self) {
        if self.holding.fetch_sub(1, SeqCst) == 1 && self.is_put_off.swap(false, SeqCst) {
            self.called.advance(1);
        }
    }

    /// Adds a demand, and gives the number of demands including it.
    pub(super) fn ask(&self, state: &mut DeviceState, demand: Demand) -> u64 {
        let horizon = state.sequence;
        state.asked.push_back(Asked { demand, horizon });
        state.demanded += 1;
        state.demanded
    }

    /// Whether all bytes of a view are the device's.
    pub(super) fn covers(&self, view: &View) -> bool {
        view.bytes() == 0 || self.reserve.translate(view.data() as usize, view.bytes()).is_some()
    }
}

/// The range of `bytes` from `address`.
pub(super) fn range(address: usize, bytes: usize) -> Range<usize> {
    address..address + bytes
}

//! Emulated devices of libweir_testing, as tests inside the library know them.
#![allow(dead_code, unused_imports, reason = "each test takes what it needs")]

use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use weir_core::base::Result;
use weir_core::device::plugin::Plugin;
use weir_core::device::{Accelerator, Device, DeviceKind, DeviceSettings, Factory, OWN_PRIORITY};
pub use weir_testing::emulation::weir_emulated_counters;
pub use weir_testing::{Emulation, Race, RaceKind};

/// The factory of emulated devices: one for all, so that they are peers.
fn plugin() -> &'static Plugin {
    static PLUGIN: OnceLock<Plugin> = OnceLock::new();
    PLUGIN.get_or_init(|| {
        // SAFETY: the two types are one source, compiled twice.
        let functions = unsafe { std::mem::transmute_copy(&weir_testing::VTABLE) };
        // SAFETY: they keep the contract, and need no context.
        let plugin = unsafe { Plugin::new(DeviceKind::EMULATED, functions, std::ptr::null_mut()) }.unwrap();
        weir_core::device::register(DeviceKind::EMULATED, OWN_PRIORITY, Arc::new(plugin.clone())).unwrap();
        plugin
    })
}

/// Makes the kind known, for engines that are made by it.
pub fn register() {
    plugin();
}

/// An emulated device, and its diagnostics.
#[derive(Clone, Debug)]
pub struct Emulated {
    device: Arc<dyn Device>,
    inside: weir_testing::Emulated,
}

impl Deref for Emulated {
    type Target = dyn Accelerator + 'static;

    fn deref(&self) -> &Self::Target {
        self.device.accelerator().unwrap()
    }
}

impl Emulated {
    /// A device of its own, which no engine shares.
    pub fn new(index: u32, emulation: Emulation) -> Result<Emulated> {
        let settings = DeviceSettings { attributes: Some(emulation.settings()), ..DeviceSettings::default() };
        Ok(Emulated::of(&plugin().open(index, &settings)?).unwrap())
    }

    /// The emulated device behind `device`, if it is one.
    pub fn of(device: &Arc<dyn Device>) -> Option<Emulated> {
        let [_, handle] = device.accelerator()?.plugin_identity()?;
        let inside = weir_testing::Emulated::with_handle(handle as u64)?;
        Some(Emulated { device: Arc::clone(device), inside })
    }

    pub fn device(&self) -> &Arc<dyn Device> {
        &self.device
    }

    pub fn emulation(&self) -> Emulation {
        self.inside.emulation()
    }

    pub fn counters(&self) -> weir_emulated_counters {
        self.inside.counters()
    }

    pub fn order(&self, count: usize) -> (u64, Vec<u64>) {
        self.inside.order(count)
    }

    pub fn races(&self) -> Vec<Race> {
        self.inside.races()
    }

    pub fn clear_races(&self) {
        self.inside.clear_races();
    }
}
